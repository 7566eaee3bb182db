//! The forwarding side of a switch: what happens to a frame that arrives at a port.
//!
//! [`Fib`] is the table that both drivers ask once per frame. The switch machine ([`crate::switch`]) keeps it right with
//! [`FibDelta`]s; [`routes`] computes the paths between switches from the topology.
//!
//! # Order of deltas
//!
//! A driver applies each delta in place when it takes it out of the machine's outputs, in order. The machine emits
//! routes and permissions before the LS_ACC or RSCN that reveals them, and takes permissions away before the accept of a
//! LOGO. So no N_Port is ever told of a peer that it cannot reach, and none reaches a peer after its logout was accepted.

mod delta;
mod fib;
pub(crate) mod hash;
mod key_set;
pub mod routes;
pub(crate) mod table;
mod zone_place;
mod zone_set;

pub use delta::{Decision, DropReason, Egress, FibDelta, Leg, PortMode};
pub use fib::{Fib, FibWork};
pub use zone_place::{PortIdentity, ZonePlace, ZoneRole};
pub use zone_set::ZoneSet;
