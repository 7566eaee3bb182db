//! RAID: address maps, and plans of reads and writes on the members.
//!
//! - [`Geometry`] maps blocks of the array to blocks of members, in the layouts of md.
//! - [`Plan`] lists the reads and writes of members that one request needs.

mod geometry;
mod layout;
mod plan;

pub use geometry::{Content, Geometry, GeometryError, Level, Piece, Stripe};
pub use layout::{ParityLayout, Role, StripeLayout};
pub use plan::{Member, MemberIo, Method, Phase, Plan, StripePlan};
