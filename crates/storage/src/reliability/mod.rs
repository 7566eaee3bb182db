//! Mean time to data loss of RAID groups and write-back caches.
//!
//! Three views of one configuration:
//!
//! - [`Reliability::closed_form_h`]: the formula of Patterson, Gibson and Katz (1988), with latent
//!   sector errors, for repairs that are short against the time between failures.
//! - [`Reliability::markov`]: the mean time to absorption of a Markov chain, exact up to rounding.
//! - [`Reliability::monte_carlo`]: a simulation of disks, spares and rebuilds with a confidence
//!   interval.
//!
//! Times are hours. The caller derives the rebuild time from the size of a disk and the rate of the
//! rebuild.
//!
//! Assumptions: failures are independent, and all times are exponential. A group rebuilds one disk
//! at a time. Spares do not fail before their use. Replacements of a group arrive one at a time.

mod chain;
mod closed;
mod trial;

pub use chain::Mean;
pub use closed::mttdl_h;
pub use trial::Estimate;

use crate::raid::Level;
use thiserror::Error;

/// Hours in a year of 365.25 days.
pub const HOURS_PER_YEAR: f64 = 8_766.0;

/// Groups that lose data independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Organisation {
    /// Number of groups.
    pub groups: u32,
    /// Disks of a group, without spares.
    pub members: u32,
    /// Disks of a group that can be missing without a loss.
    pub tolerated: u32,
    /// Disks that the rebuild of a group without redundancy reads.
    pub sources: u32,
}

impl Organisation {
    /// Returns the groups of a RAID level with so many members in all.
    ///
    /// # Errors
    ///
    /// Far or offset copies, or copies that do not divide the members. A loss then depends on
    /// which neighbours fail.
    pub fn new(level: Level, members: u32) -> Result<Organisation, ReliabilityError> {
        match level {
            Level::Mirror { near: 1, far: 1, .. } => Ok(Organisation { groups: 1, members, tolerated: 0, sources: 0 }),
            Level::Mirror { near, far: 1, .. } if near > 0 && members > 0 && members.is_multiple_of(near) => {
                Ok(Organisation { groups: members / near, members: near, tolerated: near - 1, sources: 1 })
            }
            Level::Mirror { .. } => Err(ReliabilityError::Layout),
            Level::Parity { has_q, groups, .. } => {
                let tolerated = 1 + u32::from(has_q);
                if groups == 0 || !members.is_multiple_of(groups) || members / groups <= tolerated {
                    return Err(ReliabilityError::Members);
                }
                let members = members / groups;
                Ok(Organisation { groups, members, tolerated, sources: members - tolerated })
            }
        }
    }
}

/// Part with copies, such as the controllers that mirror a write-back cache. Data are lost when all
/// copies have failed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Component {
    /// Number of copies.
    pub copies: u32,
    /// Mean time to failure of one copy.
    pub mttf_h: f64,
    /// Mean time to repair of one copy; one is repaired at a time.
    pub mttr_h: f64,
}

/// Disks, groups and caches whose loss of data is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Reliability {
    /// Groups of disks.
    pub organisation: Organisation,
    /// Mean time to failure of a disk.
    pub mttf_h: f64,
    /// Mean time to rebuild a disk, once a spare is there.
    pub mttr_h: f64,
    /// Spares of each group.
    pub spares: u32,
    /// Mean time until a new disk replaces a failed one, or becomes a spare; 0: at once.
    pub replacement_h: f64,
    /// Bits of a disk that a rebuild reads.
    pub disk_bits: f64,
    /// Unrecoverable read errors per bit; 0: none.
    pub errors_per_bit: f64,
    /// Other parts that hold data.
    pub components: Vec<Component>,
}

/// Contradiction in a [`Reliability`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReliabilityError {
    /// A time, rate or size is not a number of the permitted range.
    #[error("`{0}` must be a finite number above 0, or 0 if it is a replacement time, a size or an error rate")]
    Number(&'static str),
    /// Groups without members, or that tolerate the failure of all of them.
    #[error(
        "a group needs more members than it can lose, and there must be 1 to 4,096 groups of at most 1,024 members"
    )]
    Members,
    /// More spares or copies than the model follows.
    #[error("a group can have at most 64 spares, and a component 1 to 16 copies")]
    Copies,
    /// Copies on neighbours of each other.
    #[error(
        "far copies, or copies that do not divide the members, are not modelled; choose two near copies on an even number"
    )]
    Layout,
    /// No time, or too few trials for an interval.
    #[error("a Monte Carlo estimate needs at least 100 trials")]
    Trials,
}

impl Reliability {
    /// Checks the parameters.
    ///
    /// # Errors
    ///
    /// Numbers outside their ranges.
    pub fn check(&self) -> Result<(), ReliabilityError> {
        let positive = |value: f64, name| {
            if value.is_finite() && value > 0.0 { Ok(()) } else { Err(ReliabilityError::Number(name)) }
        };
        let not_negative = |value: f64, name| {
            if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(ReliabilityError::Number(name)) }
        };
        positive(self.mttf_h, "mttf_h")?;
        positive(self.mttr_h, "mttr_h")?;
        not_negative(self.replacement_h, "replacement_h")?;
        not_negative(self.disk_bits, "disk_bits")?;
        not_negative(self.errors_per_bit, "errors_per_bit")?;
        for component in &self.components {
            positive(component.mttf_h, "mttf_h of a component")?;
            positive(component.mttr_h, "mttr_h of a component")?;
        }
        let Organisation { groups, members, tolerated, .. } = self.organisation;
        if !(1..=4_096).contains(&groups) || tolerated >= members || members > 1_024 {
            return Err(ReliabilityError::Members);
        }
        if self.spares > 64 || self.components.iter().any(|component| !(1..=16).contains(&component.copies)) {
            return Err(ReliabilityError::Copies);
        }
        Ok(())
    }

    /// Probability that a rebuild of a group without redundancy meets an unrecoverable read error:
    /// 1 - exp(-bits * rate).
    pub fn rebuild_error(&self) -> f64 {
        let bits = self.disk_bits * f64::from(self.organisation.sources);
        -libm::expm1(-bits * self.errors_per_bit)
    }

    /// Disks in all groups, without spares.
    pub fn disks(&self) -> u32 {
        self.organisation.groups * self.organisation.members
    }
}

/// Probability of a loss within a time, for losses at a constant rate.
pub fn loss_probability(mttdl_h: f64, hours: f64) -> f64 {
    -libm::expm1(-hours / mttdl_h)
}
