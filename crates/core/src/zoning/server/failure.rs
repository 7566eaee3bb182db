//! Why zones did not merge and changes did not happen: [`MergeFailure`], [`ChangeFailure`].

use crate::zoning::merge::MergeConflict;
use crate::zoning::objects::BadZones;
use crate::zoning::problem::ZoneProblem;
use sanloom_wire::sw_ils::{SwRjt, ZoneReason};
use std::fmt;

/// Why a link is isolated because of zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MergeFailure {
    /// The databases contradict each other; "the first" is ours.
    Conflicts(Vec<MergeConflict>),
    /// The neighbour sent objects that are no database of ours.
    Invalid(BadZones),
    /// The neighbour refuses our database, and has not sent its own.
    Refused(ZoneReason),
    /// One of the two switches is in enhanced mode, the other is not.
    Mode {
        /// It is ours.
        ours_enhanced: bool,
    },
    /// Both switches are in enhanced mode, and one of them joins fabrics with equal databases only.
    MergeControl {
        /// It is ours.
        ours_restrict: bool,
    },
    /// The neighbour rejects zone merges altogether.
    NotSupported(SwRjt),
    /// The neighbour has no room for our database.
    TooLarge {
        /// Bytes that it has room for.
        max_bytes: u64,
    },
    /// We reject zone merges altogether.
    Unsupported,
    /// We have no room for the database of the neighbour.
    NoRoom {
        /// Its size in bytes.
        bytes: u64,
    },
    /// The neighbour does not answer, or not what the protocol allows.
    NoAnswer,
}

impl fmt::Display for MergeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeFailure::Conflicts(conflicts) => {
                for (number, conflict) in conflicts.iter().enumerate() {
                    write!(f, "{}{conflict}", if number == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            MergeFailure::Invalid(bad) => bad.fmt(f),
            MergeFailure::Refused(reason) => write!(f, "the other switch refuses our zones: {reason}"),
            MergeFailure::Mode { ours_enhanced: true } => {
                f.write_str("this switch is in enhanced zoning mode, the other switch is not")
            }
            MergeFailure::Mode { ours_enhanced: false } => {
                f.write_str("the other switch is in enhanced zoning mode, this switch is not")
            }
            MergeFailure::MergeControl { ours_restrict: true } => {
                f.write_str("merge control is `restrict` at this switch and `allow` at the other")
            }
            MergeFailure::MergeControl { ours_restrict: false } => {
                f.write_str("merge control is `allow` at this switch and `restrict` at the other")
            }
            MergeFailure::NotSupported(reject) => write!(f, "the other switch rejects zone merges: {reject}"),
            MergeFailure::TooLarge { max_bytes } => {
                write!(f, "the other switch has room for a zone database of {max_bytes} bytes only")
            }
            MergeFailure::Unsupported => {
                f.write_str("this switch knows no zones, and rejects those of the other switch")
            }
            MergeFailure::NoRoom { bytes } => {
                write!(f, "this switch has no room for the zone database of the other switch, {bytes} bytes")
            }
            MergeFailure::NoAnswer => f.write_str("the other switch does not answer zone merge requests as it should"),
        }
    }
}

/// Why a change did not happen.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChangeFailure {
    /// The outcome is no good database.
    #[error(transparent)]
    Zones(#[from] ZoneProblem),
    /// Something else went on in the fabric all the time.
    #[error("the fabric is busy with another change or merge, {}", match domain {
        Some(domain) => format!("as domain {domain} says"),
        None => "as this switch knows itself".to_owned(),
    })]
    Busy {
        /// Who said so last; nothing: this switch.
        domain: Option<u8>,
    },
    /// A switch refuses.
    #[error("domain {domain} refuses the change: {reason}")]
    Refused {
        /// The switch.
        domain: u8,
        /// Why.
        reason: ZoneReason,
    },
    /// A switch rejects the request as such: it knows no zoning.
    #[error("domain {domain} rejects zone changes: {reject}")]
    Rejected {
        /// The switch.
        domain: u8,
        /// How.
        reject: SwRjt,
    },
    /// A switch does not answer, or not what the protocol allows.
    #[error("domain {domain} does not answer")]
    NoAnswer {
        /// The switch.
        domain: u8,
    },
    /// The switch knows no zoning.
    #[error("this switch knows no zoning")]
    NotSupported,
}
