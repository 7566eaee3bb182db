//! Time of the control machines: nanoseconds since the driver's own beginning.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time, in nanoseconds since the driver's beginning. 2^64 ns are 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u64);

impl Instant {
    /// The driver's beginning.
    pub const ZERO: Instant = Instant(0);
    /// Later than everything.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// From nanoseconds since the beginning.
    pub const fn from_ns(ns: u64) -> Instant {
        Instant(ns)
    }
    /// Nanoseconds since the beginning.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// The earliest of these that there are.
    pub fn earliest(times: &[Option<Instant>]) -> Option<Instant> {
        times.iter().flatten().copied().min()
    }
    /// Time since `earlier`, zero if it is later.
    pub const fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }
    /// From microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us.saturating_mul(1_000))
    }
    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }
    /// From seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s.saturating_mul(1_000_000_000))
    }
    /// In nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// In whole milliseconds, rounded down.
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000
    }
    /// `self` times `n`.
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
