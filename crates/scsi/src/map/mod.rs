//! Virtual disks as maps of extents of back-end LUNs: the Address Translator of the iSCSI switch
//! paper.
//!
//! A *pool* is a set of back-end LUNs that are divided into extents of the same size. A *volume* is
//! a virtual disk made of extents of one pool. No two volumes share an extent.
//!
//! ```text
//!   volume   |-- segment 0: 1 column -----|-- segment 1: 2 columns --------------|
//!                     |                        stripe 0 2 4 |   stripe 1 3 5 |
//!   LUNs       A |---extent-extent---|     B |---extent---|      C |---extent---|
//! ```
//!
//! A [`Segment`] is a run of the volume over one or several columns. Each column is a run of one
//! LUN. With several columns, stripes alternate between them. A linear volume has segments of one
//! column. An extension appends segments, so existing blocks stay in place.
//!
//! # Changes during I/O
//!
//! ```text
//!   Map::plan_create, plan_extend, plan_delete -> Change     or a Refusal: reason and remedy
//!     the driver stores it, in one transaction
//!   Map::apply(change)                                        a new epoch
//!
//!   task:  Map::begin(volume) -> EpochId
//!          Map::resolve(epoch, lba, blocks) -> Pieces …
//!          Map::end(epoch)
//! ```
//!
//! A task holds the epoch on which it began, so a change does not affect it. Extents of a deleted
//! volume are not reused before the last task on it has ended and the blocks were wiped
//! ([`Map::next_wipe`], [`Map::wiped`]). So no volume exposes data of another one. This module
//! allocates nothing per task or per request.

mod extents;
mod layout;
mod plan;
mod pool;
mod refusal;
mod volumes;

pub use layout::{BadLayout, Layout, LunBlock, Piece, Pieces, Segment};
pub use plan::{Change, Shape, Volume};
pub use pool::{BackEnd, Freed, LunConfig, LunUse, PoolConfig, PoolUse};
pub use refusal::{Refusal, RestoreError};
pub use volumes::Map;

/// Index of a pool in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolId(pub u16);

/// Index of a back-end LUN in the configuration, over all pools.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LunId(pub u16);

/// Number of a volume. It is not reused during the lifetime of the map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VolumeId(pub u32);

/// Number of one layout of one volume. Greater numbers are newer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EpochId(pub u64);
