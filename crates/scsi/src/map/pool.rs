//! Pools and their back-end LUNs.

use super::extents::Extents;
use super::layout::Segment;
use super::{LunId, PoolId};

/// Configuration of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolConfig {
    /// Name of the pool.
    pub name: Box<str>,
    /// Block size in bytes, common to all its LUNs and volumes.
    pub block_bytes: u32,
    /// Blocks per extent, at least 1.
    pub extent_blocks: u64,
}

/// Configuration of a back-end LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LunConfig {
    /// Name of the LUN.
    pub name: Box<str>,
    /// Pool of the LUN.
    pub pool: PoolId,
}

/// State of a back-end LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackEnd {
    /// Name and pool of the LUN.
    pub config: LunConfig,
    /// Number of whole extents; `None` until the LUN was reached.
    pub(super) extents: Option<u64>,
    /// Allocated extents, including those of deleted volumes that were not wiped yet.
    pub(super) used: Extents,
    /// Extents of deleted volumes that were not wiped yet; a subset of `used`.
    pub(super) wiping: Extents,
}

impl BackEnd {
    pub(super) fn new(config: LunConfig) -> BackEnd {
        BackEnd { config, extents: None, used: Extents::default(), wiping: Extents::default() }
    }

    pub(super) fn free(&self) -> u64 {
        self.extents.unwrap_or(0).saturating_sub(self.used.count())
    }

    /// Allocates up to `wanted` adjacent extents and returns the first one and their number.
    pub(super) fn take(&mut self, wanted: u64) -> Option<(u64, u64)> {
        let (first, count) = self.used.first_gap(self.extents?)?;
        let count = count.min(wanted);
        self.used.insert(first, count).then_some((first, count))
    }
}

/// Extents of each column of a segment: LUN, first extent, number.
pub(super) fn extents_of(segment: &Segment, extent_blocks: u64) -> impl Iterator<Item = (LunId, u64, u64)> {
    let count = segment.column_blocks / extent_blocks;
    segment.columns.iter().map(move |place| (place.lun, place.lba / extent_blocks, count))
}

/// Returns whether all columns of a segment consist of whole extents.
pub(super) fn is_aligned(segment: &Segment, extent_blocks: u64) -> bool {
    segment.column_blocks.is_multiple_of(extent_blocks)
        && segment.columns.iter().all(|place| place.lba.is_multiple_of(extent_blocks))
}

/// Blocks of a back-end LUN that belonged to a deleted volume. The pool reuses them once they read
/// as zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Freed {
    /// Back-end LUN of the blocks.
    pub lun: LunId,
    /// First block.
    pub lba: u64,
    /// Number of blocks, in whole extents.
    pub blocks: u64,
}

/// Allocation of a back-end LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LunUse {
    /// Number of whole extents; `None` until the LUN was reached.
    pub extents: Option<u64>,
    /// Number of extents that volumes have.
    pub used: u64,
    /// Number of extents of deleted volumes that were not wiped yet.
    pub wiping: u64,
}

impl LunUse {
    /// Returns whether any extent belongs to an existing or deleted volume.
    pub fn is_taken(&self) -> bool {
        self.used + self.wiping > 0
    }
}

/// Allocation of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolUse {
    /// Number of extents of the LUNs that were reached.
    pub extents: u64,
    /// Number of extents that volumes have.
    pub used: u64,
}
