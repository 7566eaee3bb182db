//! Waiting for a state that no event announces.

use std::thread;
use std::time::{Duration, Instant};

/// Longest wait of a test for a state. It is no requirement: a busy machine that is three times
/// slower than another must not reach it.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// First and longest time between two probes; each one is twice the one before.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
const LONGEST_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until `holds` returns `true`. `what` describes the awaited state.
///
/// # Panics
/// If that takes longer than [`TIMEOUT`].
#[track_caller]
pub fn until(what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    value(what, || holds().then_some(()));
}

/// Waits until `probe` returns a value, and returns it. `what` describes the awaited state.
///
/// # Panics
/// If that takes longer than [`TIMEOUT`].
#[track_caller]
pub fn value<T>(what: impl Fn() -> String, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    let mut interval = FIRST_INTERVAL;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {TIMEOUT:?}: {}", what());
        thread::sleep(interval);
        interval = (2 * interval).min(LONGEST_INTERVAL);
    }
}
