//! Planning of map changes: allocation of extents, or the reason for a refusal.

use super::layout::{Layout, LunBlock, Segment};
use super::pool::{BackEnd, PoolConfig};
use super::refusal::Refusal;
use super::volumes::Map;
use super::{LunId, PoolId, VolumeId};

/// Distribution of the blocks of a volume. Mirrored and thin volumes would be further shapes with
/// their own logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One run after the other.
    Linear,
    /// Striped over several LUNs.
    Striped {
        /// Number of LUNs.
        width: u16,
        /// Blocks on one LUN before the next one.
        stripe_blocks: u32,
    },
}

/// Volume in the form in which it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Unique name of the volume.
    pub name: Box<str>,
    /// Pool of its extents.
    pub pool: PoolId,
    /// Shape used for its extension.
    pub shape: Shape,
    /// Location of its blocks.
    pub layout: Layout,
}

/// Change that was planned and can be applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Create or replace a volume.
    Put(VolumeId, Volume),
    /// Delete a volume.
    Delete(VolumeId),
}

/// Maximum length of a volume name in bytes.
const NAME_BYTES: usize = 64;

impl Map {
    /// Plans a new volume of `blocks` blocks.
    ///
    /// # Errors
    /// Returns the reason why the volume cannot be created.
    pub fn plan_create(&self, name: &str, pool: PoolId, shape: Shape, blocks: u64) -> Result<Change, Refusal> {
        let allowed = |at: usize, c: char| c.is_ascii_alphanumeric() || at > 0 && "-_.".contains(c);
        if name.is_empty() || name.len() > NAME_BYTES || !name.char_indices().all(|(at, c)| allowed(at, c)) {
            return Err(Refusal::BadName(name.into()));
        }
        if self.find(name).is_some() {
            return Err(Refusal::NameTaken(name.into()));
        }
        let config = self.pool(pool).ok_or(Refusal::UnknownPool)?;
        if blocks == 0 {
            return Err(Refusal::NoBlocks);
        }
        if let Shape::Striped { width, stripe_blocks } = shape {
            if width < 2 {
                return Err(Refusal::TooNarrow);
            }
            let stripe_blocks = u64::from(stripe_blocks);
            if stripe_blocks == 0 || !config.extent_blocks.is_multiple_of(stripe_blocks) {
                return Err(Refusal::BadStripe { stripe_blocks, extent_blocks: config.extent_blocks });
            }
        }
        let layout = self.grow(pool, config, shape, blocks, Vec::new())?;
        Ok(Change::Put(self.next_volume(), Volume { name: name.into(), pool, shape, layout }))
    }

    /// Plans the extension of a volume to `blocks` blocks in total. Existing blocks stay in place.
    ///
    /// # Errors
    /// Returns the reason why the volume cannot be extended.
    pub fn plan_extend(&self, id: VolumeId, blocks: u64) -> Result<Change, Refusal> {
        let volume = self.volume(id).ok_or(Refusal::UnknownVolume)?;
        let config = self.pool(volume.pool).ok_or(Refusal::UnknownPool)?;
        if blocks <= volume.layout.blocks() {
            return Err(Refusal::NotLarger { blocks: volume.layout.blocks() });
        }
        let layout = self.grow(volume.pool, config, volume.shape, blocks, volume.layout.segments().to_vec())?;
        Ok(Change::Put(id, Volume { layout, ..volume.clone() }))
    }

    /// Plans the deletion of a volume.
    ///
    /// # Errors
    /// Returns an error if the volume does not exist.
    pub fn plan_delete(&self, id: VolumeId) -> Result<Change, Refusal> {
        self.volume(id).map(|_| Change::Delete(id)).ok_or(Refusal::UnknownVolume)
    }

    /// Extends a layout that begins with these segments to the requested number of blocks.
    fn grow(
        &self,
        pool: PoolId,
        config: &PoolConfig,
        shape: Shape,
        blocks: u64,
        mut segments: Vec<Segment>,
    ) -> Result<Layout, Refusal> {
        let has: u64 = segments.iter().filter_map(Segment::blocks).sum();
        // Copies of the LUNs, on which the allocation is tried.
        let mut luns: Vec<(LunId, BackEnd)> =
            self.luns().filter(|(_, lun)| lun.config.pool == pool).map(|(id, lun)| (id, lun.clone())).collect();
        let (width, stripe_blocks) = match shape {
            Shape::Linear => (1, None),
            Shape::Striped { width, stripe_blocks } => (width, Some(u64::from(stripe_blocks))),
        };
        let row_blocks = config.extent_blocks.checked_mul(width.into()).ok_or(Refusal::TooLarge)?;
        let mut rows = blocks.saturating_sub(has).div_ceil(row_blocks);
        let wanted = rows.checked_mul(width.into()).ok_or(Refusal::TooLarge)?;
        while rows > 0 {
            let Some(count) = row(&mut luns, width, stripe_blocks, rows, config.extent_blocks, &mut segments) else {
                return Err(no_room(self, pool, width, wanted, wanted - rows * u64::from(width)));
            };
            rows -= count;
        }
        Layout::new(blocks, segments.into()).map_err(|_| Refusal::TooLarge)
    }
}

/// Allocates up to `rows` rows of extents, with one extent of each of `width` LUNs per row, and
/// appends them to the segments. Returns the number of rows.
fn row(
    luns: &mut [(LunId, BackEnd)],
    width: u16,
    stripe_blocks: Option<u64>,
    rows: u64,
    extent_blocks: u64,
    segments: &mut Vec<Segment>,
) -> Option<u64> {
    let mut chosen: Vec<usize> = (0..luns.len()).filter(|&at| luns[at].1.free() > 0).collect();
    if chosen.len() < usize::from(width) {
        return None;
    }
    // Stripes use the LUNs with the most free extents. A linear volume fills one LUN after the
    // other.
    if width > 1 {
        chosen.sort_by_key(|&at| (std::cmp::Reverse(luns[at].1.free()), luns[at].0));
    }
    chosen.truncate(width.into());
    chosen.sort_unstable();
    // The shortest free run among the chosen LUNs limits the number of rows.
    let gaps = chosen.iter().map(|&at| luns[at].1.used.first_gap(luns[at].1.extents?).map(|(_, count)| count));
    let count = rows.min(gaps.flatten().min()?);
    let columns: Option<Box<[LunBlock]>> = chosen
        .iter()
        .map(|&at| {
            let (first, _) = luns[at].1.take(count)?;
            Some(LunBlock { lun: luns[at].0, lba: first * extent_blocks })
        })
        .collect();
    let column_blocks = count * extent_blocks;
    let new = Segment { column_blocks, stripe_blocks: stripe_blocks.unwrap_or(column_blocks), columns: columns? };
    match segments.last_mut().filter(|last| continues(last, &new)) {
        Some(last) => {
            last.column_blocks += column_blocks;
            if stripe_blocks.is_none() {
                last.stripe_blocks = last.column_blocks;
            }
        }
        None => segments.push(new),
    }
    Some(count)
}

/// Returns whether each column of `new` begins at the end of the same column of `last`.
fn continues(last: &Segment, new: &Segment) -> bool {
    let beside = |(a, b): (&LunBlock, &LunBlock)| a.lun == b.lun && a.lba + last.column_blocks == b.lba;
    let same_stripes = last.columns.len() == 1 || last.stripe_blocks == new.stripe_blocks;
    last.columns.len() == new.columns.len() && same_stripes && last.columns.iter().zip(&new.columns).all(beside)
}

/// Returns the refusal that explains the lack of extents.
fn no_room(map: &Map, pool: PoolId, width: u16, wanted: u64, free: u64) -> Refusal {
    let of_pool = || map.luns().filter(|(_, lun)| lun.config.pool == pool);
    if let Some((_, lun)) = of_pool().find(|(_, lun)| lun.extents.is_none()) {
        return Refusal::Unreached { lun: lun.config.name.clone() };
    }
    let wiping = of_pool().map(|(_, lun)| lun.wiping.count()).sum::<u64>();
    if wiping > 0 && wanted <= free + wiping {
        return Refusal::Wiping { wanted, free, wiping };
    }
    let with_room = of_pool().filter(|(_, lun)| lun.free() > 0).count() as u16;
    match width > 1 && with_room < width {
        true => Refusal::TooWide { wanted: width, has: with_room },
        false => Refusal::NoSpace { wanted, free },
    }
}
