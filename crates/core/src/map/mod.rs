//! Virtual disks as maps of extents of back-end LUNs: the Address Translator of document 003.
//!
//! A *pool* is a number of back-end LUNs, cut into extents of the same size. A *volume* is a virtual disk made of extents of
//! one pool, none of which another volume has.
//!
//! ```text
//!   volume   |-- segment 0: 1 column -----|-- segment 1: 2 columns --------------|
//!                     |                        stripe 0 2 4 |   stripe 1 3 5 |
//!   LUNs       A |---extent-extent---|     B |---extent---|      C |---extent---|
//! ```
//!
//! A [`Segment`] is a run of the volume over one or several columns, each of which is a run of one LUN; with several, stripes
//! go round. A linear volume has segments of one column. To extend a volume appends segments, so what is there stays where it is.
//!
//! # Changes while hosts are at work
//!
//! ```text
//!   Map::plan_create, plan_extend, plan_delete -> Change     or a Refusal: reason and remedy
//!     the driver keeps it, in one transaction
//!   Map::apply(change)                                        a new epoch
//!
//!   task:  Map::begin(volume) -> EpochId, Map::resolve(epoch, lba, blocks) -> Pieces …, Map::end(epoch)
//! ```
//!
//! A task holds the epoch that it began on: a change does not touch it. What a deleted volume had is given to nobody before the
//! last task on it has ended and its blocks were wiped ([`Map::next_wipe`], [`Map::wiped`]), so that no volume shows data of another one.
//! Nothing here allocates per task or per request.

mod extents;
mod layout;
mod plan;
mod pool;
mod refusal;
mod volumes;

pub use layout::{BadLayout, Layout, Piece, Pieces, Place, Segment};
pub use plan::{Change, Shape, Volume};
pub use pool::{BackEnd, Freed, LunConfig, LunUse, PoolConfig, PoolUse};
pub use refusal::{Refusal, RestoreError};
pub use volumes::Map;

/// A pool: its index in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolId(pub u16);

/// A back-end LUN: its index in the configuration, over all pools.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LunId(pub u16);

/// A volume. Its number is not given to another one while the map lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VolumeId(pub u32);

/// One layout of one volume. Greater ones are newer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EpochId(pub u64);
