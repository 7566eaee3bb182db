//! RAID: address maps, plans of reads and writes on the members, and the state of an array.
//!
//! - [`Geometry`] maps blocks of the array to blocks of members, in the layouts of md.
//! - [`Plan`] lists the reads and writes of members that one request needs.
//! - [`Array`] keeps the states of members, rebuilds onto spares, repairs and scrubs.
//! - [`WriteTracker`] follows writes in flight, for the write hole.

mod array;
mod consistency;
mod geometry;
mod layout;
mod plan;
mod scrub;

pub(crate) use consistency::LOG_HEADER_BLOCKS;

pub use array::{Array, Condition, Pass, Step, SyncLimits};
pub use consistency::{Consistency, Recovery, WriteTracker};
pub use geometry::{Content, Geometry, GeometryError, Level, Piece, Stripe};
pub use layout::{ParityLayout, Role, StripeLayout};
pub use plan::{Member, MemberIo, Method, Phase, Plan, StripePlan};
