//! The real clock in machine time: nanoseconds since the start of the instance.

use sanloom_scsi::time::{Instant, Span};
use std::time::Duration;

/// A monotonic clock that begins at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// Starts a clock at zero.
    pub fn start() -> Clock {
        Clock { start: std::time::Instant::now() }
    }

    /// Returns the machine time, without the pauses of [`stand_still`](Clock::stand_still).
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.start.elapsed().as_nanos() as u64)
    }

    /// Subtracts a stall of this length from machine time.
    pub fn stand_still(&mut self, time: Duration) {
        self.start += time;
    }
}

/// Returns the time from `now` to `at`, or zero if `at` has passed.
pub fn until(now: Instant, at: Instant) -> Duration {
    let span: Span = at.since(now);
    Duration::from_nanos(span.as_ns())
}
