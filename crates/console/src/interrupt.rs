//! Ctrl-C: the first one requests the end of the work, the second one ends the program. SIGTERM has
//! the same effect.

use crate::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// True while the program does nothing that an end would spoil.
static ENDS_AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Installs the handler. If the system rejects it, the first Ctrl-C ends the program.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) || ENDS_AT_ONCE.load(Ordering::SeqCst) {
            std::process::exit(i32::from(exit::INTERRUPTED));
        }
    });
}

/// Runs work that may take long and writes nothing, such as a read of standard input or the load of
/// a lab. Ctrl-C ends the program during it, because nothing is lost yet.
pub fn interruptible<T>(work: impl FnOnce() -> T) -> T {
    let was_set = ENDS_AT_ONCE.swap(true, Ordering::SeqCst);
    if requested() {
        std::process::exit(i32::from(exit::INTERRUPTED));
    }
    let outcome = work();
    ENDS_AT_ONCE.store(was_set, Ordering::SeqCst);
    outcome
}

/// Requests the end of the work, as the first Ctrl-C does. May be called repeatedly.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Waits for this time or for Ctrl-C. Returns true if the full time has passed.
pub fn pause(time: Duration) -> bool {
    const CHECK_INTERVAL: Duration = Duration::from_millis(50);
    let begun = Instant::now();
    while !requested() {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(CHECK_INTERVAL));
    }
    false
}

/// Returns whether the end of the work was requested.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
