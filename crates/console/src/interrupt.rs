//! Ctrl-C: the first one asks the work to come to an end, the second one ends the program.

use crate::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Listens from now on. Where the system does not let us, Ctrl-C just ends the program.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(exit::INTERRUPTED));
        }
    });
}

/// As Ctrl-C does, as often as it may be.
pub fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Waits, unless Ctrl-C is pressed; whether all the time has passed.
pub fn pause(time: Duration) -> bool {
    const LOOK: Duration = Duration::from_millis(50);
    let begun = Instant::now();
    while !requested() {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
    false
}

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
