//! The zone database as an administrator knows it: aliases, zones, configurations, and what of them is in force.
//!
//! Nothing here does I/O or knows of the wire. [`ZoneDatabase`] is one committed state of a fabric; a [`Transaction`]
//! turns one into the next, and [`ZoneStore`] keeps the one before for a rollback. [`merge`] says what becomes of two
//! databases when an ISL joins their fabrics, and [`explain`] why two ports can or cannot talk.
//!
//! What is enforced is [`crate::config::Zoning`]: the effective zones with aliases resolved, which
//! [`ZoneDatabase::zoning`] gives and [`crate::fabric::ZoneSet`] indexes.

mod database;
mod explain;
mod limits;
mod merge;
mod objects;
mod preview;
mod problem;
pub mod requests;
pub mod server;
mod store;
mod transaction;

pub use database::{AliasMembers, DefinedZones, EffectiveZones, MemberRef, ObjectKind, ZoneDatabase, ZoneDefinition};
pub use explain::{Explanation, Membership, Verdict, explain};
pub use limits::{DatabaseSize, Limit, ZoneLimits};
pub use merge::{MergeConflict, MergeControl, MergeRules, Merged, merge};
pub(crate) use objects::member_of;
pub use objects::{BadZones, MergedZones, Zones};
pub use preview::Preview;
pub use problem::ZoneProblem;
pub use store::ZoneStore;
pub use transaction::{Transaction, ZoneEdit};
