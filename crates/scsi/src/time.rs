//! Time of the control machines, in nanoseconds since the driver's epoch.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Point in time, in nanoseconds since the driver's epoch. 2^64 ns are 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(u64);

/// Length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u64);

impl Instant {
    /// Epoch of the driver.
    pub const ZERO: Instant = Instant(0);
    /// Latest possible time, used for "never".
    pub const NEVER: Instant = Instant(u64::MAX);

    /// Creates a time from nanoseconds since the epoch.
    pub const fn from_ns(ns: u64) -> Instant {
        Instant(ns)
    }
    /// Nanoseconds since the epoch.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// Returns the earliest of the given times, if there is any.
    pub fn earliest(times: &[Option<Instant>]) -> Option<Instant> {
        times.iter().flatten().copied().min()
    }
    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero length.
    pub const ZERO: Span = Span(0);

    /// Creates a span from nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }
    /// Creates a span from microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us.saturating_mul(1_000))
    }
    /// Creates a span from milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }
    /// Creates a span from seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s.saturating_mul(1_000_000_000))
    }
    /// Length in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// Length in milliseconds, rounded down.
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Returns `n` times the length, saturating.
    pub const fn times(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }
}

impl Add<Span> for Instant {
    type Output = Instant;
    fn add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Instant;
    fn sub(self, span: Span) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
