//! Time on a loop.

use crate::config::LineRate;
use std::fmt;
use std::ops::{Add, Sub};

/// A time or a duration in units of 1/17 ps, so that a word of every loop rate is a whole number.
/// The range is twelve days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LoopTime(pub u64);

/// Units of [`LoopTime`] in a picosecond.
const UNITS_PER_PS: u64 = 17;

/// Line rate of a loop. A word of four bytes takes 40 bit times (FC-PH, 8b/10b).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopRate {
    /// 1.0625 Gbaud.
    Gb1,
    /// 2.125 Gbaud.
    Gb2,
    /// 4.25 Gbaud.
    Gb4,
    /// 8.5 Gbaud.
    Gb8,
}

impl LoopRate {
    /// The rate of a loop with this line rate, or `None`: faster lines have no 8b/10b code, and no
    /// loops.
    pub const fn of(rate: LineRate) -> Option<LoopRate> {
        match rate {
            LineRate::Fc1 => Some(LoopRate::Gb1),
            LineRate::Fc2 => Some(LoopRate::Gb2),
            LineRate::Fc4 => Some(LoopRate::Gb4),
            LineRate::Fc8 => Some(LoopRate::Gb8),
            _ => None,
        }
    }
    /// Duration of one word. At 1.0625 Gbaud, 40 bits take 640,000/17 ps.
    pub const fn word(self) -> LoopTime {
        LoopTime(match self {
            LoopRate::Gb1 => 640_000,
            LoopRate::Gb2 => 320_000,
            LoopRate::Gb4 => 160_000,
            LoopRate::Gb8 => 80_000,
        })
    }
}

impl LoopTime {
    /// Start of the run.
    pub const ZERO: LoopTime = LoopTime(0);
    /// A time that never comes.
    pub(super) const NEVER: LoopTime = LoopTime(u64::MAX);

    /// Time of `ps` picoseconds; saturates after twelve days.
    pub const fn from_ps(ps: u64) -> LoopTime {
        LoopTime(ps.saturating_mul(UNITS_PER_PS))
    }
    /// Picoseconds, rounded down.
    pub const fn ps(self) -> u64 {
        self.0 / UNITS_PER_PS
    }
    /// This duration `count` times.
    pub const fn times(self, count: u64) -> LoopTime {
        LoopTime(self.0.saturating_mul(count))
    }
}

impl Add for LoopTime {
    type Output = LoopTime;
    fn add(self, other: LoopTime) -> LoopTime {
        LoopTime(self.0.saturating_add(other.0))
    }
}

/// Saturates at zero.
impl Sub for LoopTime {
    type Output = LoopTime;
    fn sub(self, other: LoopTime) -> LoopTime {
        LoopTime(self.0.saturating_sub(other.0))
    }
}

impl fmt::Debug for LoopTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps", self.ps())
    }
}
