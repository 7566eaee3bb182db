//! Pools and their back-end LUNs.

use super::extents::Extents;
use super::layout::Segment;
use super::{LunId, PoolId};

/// A pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolConfig {
    /// Its name.
    pub name: Box<str>,
    /// Size of a block in bytes: that of all its LUNs and volumes.
    pub block_bytes: u32,
    /// Blocks of an extent, at least 1.
    pub extent_blocks: u64,
}

/// A back-end LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LunConfig {
    /// Its name.
    pub name: Box<str>,
    /// Its pool.
    pub pool: PoolId,
}

/// What is known of a back-end LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackEnd {
    /// Name and pool.
    pub config: LunConfig,
    /// Whole extents of it, once it was reached.
    pub(super) extents: Option<u64>,
    /// Those that nobody may have: volumes have them, or had.
    pub(super) used: Extents,
    /// Those of them that deleted volumes had, and that have not been wiped.
    pub(super) wiping: Extents,
}

impl BackEnd {
    pub(super) fn new(config: LunConfig) -> BackEnd {
        BackEnd { config, extents: None, used: Extents::default(), wiping: Extents::default() }
    }

    pub(super) fn free(&self) -> u64 {
        self.extents.unwrap_or(0).saturating_sub(self.used.count())
    }

    /// Takes `wanted` extents beside each other, or fewer; first and count.
    pub(super) fn take(&mut self, wanted: u64) -> Option<(u64, u64)> {
        let (first, count) = self.used.first_gap(self.extents?)?;
        let count = count.min(wanted);
        self.used.insert(first, count).then_some((first, count))
    }
}

/// The extents of each column of a segment: LUN, first, count.
pub(super) fn extents_of(segment: &Segment, extent_blocks: u64) -> impl Iterator<Item = (LunId, u64, u64)> {
    let count = segment.column_blocks / extent_blocks;
    segment.columns.iter().map(move |place| (place.lun, place.lba / extent_blocks, count))
}

/// Whether all columns of a segment are whole extents.
pub(super) fn is_aligned(segment: &Segment, extent_blocks: u64) -> bool {
    segment.column_blocks.is_multiple_of(extent_blocks)
        && segment.columns.iter().all(|place| place.lba.is_multiple_of(extent_blocks))
}

/// Blocks of a back-end LUN that a deleted volume had. Another one gets them when they read as zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Freed {
    /// Where they are.
    pub lun: LunId,
    /// The first.
    pub lba: u64,
    /// How many: whole extents.
    pub blocks: u64,
}

/// How full a back-end LUN is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LunUse {
    /// Whole extents of it; none before it was reached.
    pub extents: Option<u64>,
    /// How many of them volumes have.
    pub used: u64,
    /// How many of them deleted volumes had, and nobody gets before they were wiped.
    pub wiping: u64,
}

impl LunUse {
    /// There is something on it of volumes that are there or were.
    pub fn is_taken(&self) -> bool {
        self.used + self.wiping > 0
    }
}

/// How full a pool is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolUse {
    /// Extents of the LUNs that were reached.
    pub extents: u64,
    /// How many of them volumes have.
    pub used: u64,
}
