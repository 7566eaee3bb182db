//! The real clock, as machines count time: nanoseconds since the start of the instance.

use sanloom_core::time::{Instant, Span};
use std::time::Duration;

/// A monotonic clock that begins at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock { start: std::time::Instant::now() }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.start.elapsed().as_nanos() as u64)
    }

    /// So much of the time that has passed has not.
    pub fn stand_still(&mut self, time: Duration) {
        self.start += time;
    }
}

/// How long it is from `now` to `at`; nothing if it is over.
pub fn until(now: Instant, at: Instant) -> Duration {
    let span: Span = at.since(now);
    Duration::from_nanos(span.as_ns())
}
