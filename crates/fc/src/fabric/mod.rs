//! Forwarding of frames in a switch.
//!
//! [`Fib`] is the table that both drivers query once per frame. The switch machine
//! ([`crate::switch`]) updates it with [`FibDelta`]s; [`routes`] computes the paths between
//! switches from the topology.
//!
//! # Order of deltas
//!
//! A driver applies each delta when it takes it out of the machine's outputs, in order. The machine
//! emits routes and permissions before the LS_ACC or RSCN that reveals them, and revokes
//! permissions before the accept of a LOGO. Therefore no N_Port is notified of a peer that it
//! cannot reach, and none reaches a peer after the peer's logout was accepted.

mod delta;
mod fib;
pub(crate) mod hash;
mod key_set;
pub mod routes;
pub(crate) mod table;
mod zone_membership;
mod zone_set;

pub use delta::{Decision, DropReason, Egress, FibDelta, Leg, PortMode};
pub use fib::{Fib, FibWork};
pub use zone_membership::{PortIdentity, ZoneMembership, ZoneRole};
pub use zone_set::ZoneSet;
