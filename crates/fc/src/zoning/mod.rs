//! The zone database from the administrator's view: aliases, zones, configurations, and the
//! effective zones.
//!
//! This module does no I/O and does not depend on the wire format. [`ZoneDatabase`] is one
//! committed state of a fabric. A [`Transaction`] turns one state into the next, and [`ZoneStore`]
//! keeps the previous state for a rollback. [`merge`] computes the result when an ISL joins two
//! fabrics. [`explain`] gives the reason why two ports can or cannot communicate.
//!
//! The enforced form is [`crate::config::Zoning`]: the effective zones with aliases resolved.
//! [`ZoneDatabase::zoning`] returns it, and [`crate::fabric::ZoneSet`] indexes it.

mod catalogue;
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

pub use crate::config::{MergeControl, MergeRules, ZoneLimits};
pub use catalogue::ZoneCatalogue;
pub use database::{AliasMembers, DefinedZones, EffectiveZones, MemberRef, ObjectKind, ZoneDatabase, ZoneDefinition};
pub use explain::{Explanation, Membership, Verdict, explain};
pub use limits::{DatabaseSize, Limit};
pub use merge::{MergeConflict, Merged, merge};
pub(crate) use objects::member_of;
pub use objects::{BadZones, MergedZones, Zones};
pub use preview::Preview;
pub use problem::ZoneProblem;
pub use store::ZoneStore;
pub use transaction::{Transaction, ZoneEdit};
