//! Reasons for failed merges and failed changes: [`MergeFailure`], [`ChangeFailure`].

use crate::zoning::merge::MergeConflict;
use crate::zoning::objects::BadZones;
use crate::zoning::problem::ZoneProblem;
use sanloom_wire::sw_ils::{SwRjt, ZoneReason};
use std::fmt;

/// Reason why a failed zone merge isolates a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MergeFailure {
    /// The databases conflict; "the first" is ours.
    Conflicts(Vec<MergeConflict>),
    /// The neighbour sent objects that do not form a valid database.
    Invalid(BadZones),
    /// The neighbour rejects our database and has not sent its own.
    Refused(ZoneReason),
    /// Only one of the two switches is in enhanced mode.
    Mode {
        /// True if it is this switch.
        ours_enhanced: bool,
    },
    /// Both switches are in enhanced mode, but only one restricts merges to equal databases.
    MergeControl {
        /// True if it is this switch.
        ours_restrict: bool,
    },
    /// The neighbour rejects all zone merges.
    NotSupported(SwRjt),
    /// Our database is too large for the neighbour.
    TooLarge {
        /// Maximum size that the neighbour accepts, in bytes.
        max_bytes: u64,
    },
    /// This switch rejects all zone merges.
    Unsupported,
    /// The neighbour's database is too large for this switch.
    NoRoom {
        /// Size of the neighbour's database, in bytes.
        bytes: u64,
    },
    /// The neighbour does not reply, or violates the protocol.
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
            MergeFailure::Refused(reason) => write!(f, "the other switch refuses the zones of this switch: {reason}"),
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
                write!(f, "the other switch accepts a zone database of at most {max_bytes} bytes")
            }
            MergeFailure::Unsupported => {
                f.write_str("this switch does not support zoning and rejects the zones of the other switch")
            }
            MergeFailure::NoRoom { bytes } => {
                write!(f, "the zone database of the other switch, {bytes} bytes, is too large for this switch")
            }
            MergeFailure::NoAnswer => {
                f.write_str("the other switch does not reply to zone merge requests, or replies incorrectly")
            }
        }
    }
}

/// Reason for a failed change.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChangeFailure {
    /// The resulting database is invalid.
    #[error(transparent)]
    Zones(#[from] ZoneProblem),
    /// Other activity in the fabric prevented the change until it timed out.
    #[error("the fabric is busy with another change or merge, {}", match domain {
        Some(domain) => format!("reported by domain {domain}"),
        None => "in which this switch takes part".to_owned(),
    })]
    Busy {
        /// Domain that last reported busy; `None` for this switch.
        domain: Option<u8>,
    },
    /// A switch refuses the change.
    #[error("domain {domain} refuses the change: {reason}")]
    Refused {
        /// Domain of the switch.
        domain: u8,
        /// Reason code of its reply.
        reason: ZoneReason,
    },
    /// A switch rejects the request because it does not support zoning.
    #[error("domain {domain} rejects zone changes: {reject}")]
    Rejected {
        /// Domain of the switch.
        domain: u8,
        /// Its reject.
        reject: SwRjt,
    },
    /// A switch does not reply, or violates the protocol.
    #[error("domain {domain} does not answer")]
    NoAnswer {
        /// Domain of the switch.
        domain: u8,
    },
    /// This switch does not support zoning.
    #[error("this switch does not support zoning")]
    NotSupported,
    /// This switch restarted while the change was in progress.
    #[error("this switch restarts, and other switches may have the change; read the zones when it runs again")]
    Restarted,
}
