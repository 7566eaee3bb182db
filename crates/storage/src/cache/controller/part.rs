//! Parts of requests: lines, and sectors as bit masks.

use super::{Controller, Extent, Settings};

/// Part of a request within one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) key: u64,
    pub(super) extent: Extent,
    /// Sectors that the part touches.
    pub(super) touched: u64,
    /// Sectors that the part covers from end to end, or to the end of the volume.
    pub(super) covered: u64,
}

impl Controller {
    /// Splits the next line off a request, clipped to the volume.
    pub(super) fn next_part(&self, rest: &mut Extent) -> Option<Part> {
        let Settings { line_blocks, sector_blocks, volume_blocks, .. } = self.settings;
        let end = rest.end().min(volume_blocks);
        if rest.lba >= end {
            return None;
        }
        let key = rest.lba / u64::from(line_blocks);
        let first = (rest.lba % u64::from(line_blocks)) as u32;
        let blocks = (end - rest.lba).min(u64::from(line_blocks - first)) as u32;
        let extent = Extent { lba: rest.lba, blocks };
        *rest = Extent { lba: extent.end(), blocks: (end - extent.end()) as u32 };
        let last = first + blocks;
        let touched = mask(first / sector_blocks, last.div_ceil(sector_blocks));
        let covered_end =
            if extent.end() == volume_blocks { last.div_ceil(sector_blocks) } else { last / sector_blocks };
        let covered = mask(first.div_ceil(sector_blocks), covered_end);
        Some(Part { key, extent, touched, covered })
    }

    /// Blocks in a set of sectors of a line; the last sector of the volume may be shorter.
    pub(super) fn blocks_of(&self, key: u64, sectors: u64) -> u64 {
        let Settings { line_blocks, sector_blocks, volume_blocks, .. } = self.settings;
        let whole = u64::from(sectors.count_ones()) * u64::from(sector_blocks);
        if sectors == 0 {
            return 0;
        }
        let end = key * u64::from(line_blocks) + u64::from(64 - sectors.leading_zeros()) * u64::from(sector_blocks);
        whole - end.saturating_sub(volume_blocks)
    }

    /// Blocks from the first to the last of consecutive sectors.
    pub(super) fn extent_of(&self, key: u64, sectors: u64) -> Extent {
        let first = u64::from(sectors.trailing_zeros() * self.settings.sector_blocks);
        let lba = key * u64::from(self.settings.line_blocks) + first;
        Extent { lba, blocks: self.blocks_of(key, sectors) as u32 }
    }

    /// Sectors of a line that are inside the volume.
    pub(super) fn all_sectors(&self, key: u64) -> u64 {
        let Settings { line_blocks, sector_blocks, volume_blocks, .. } = self.settings;
        let blocks = (volume_blocks - key * u64::from(line_blocks)).min(u64::from(line_blocks)) as u32;
        mask(0, blocks.div_ceil(sector_blocks))
    }

    /// Blocks of a part that are in a set of sectors.
    pub(super) fn overlap(&self, part: Part, sectors: u64) -> u64 {
        if sectors == 0 {
            return 0;
        }
        if sectors & part.touched == part.touched {
            return u64::from(part.extent.blocks);
        }
        let mut blocks = 0;
        for run in runs(sectors & part.touched) {
            let run = self.extent_of(part.key, run);
            blocks += run.end().min(part.extent.end()) - run.lba.max(part.extent.lba);
        }
        blocks
    }
}

/// Bits from `first` to before `end`; none if `end` is not above `first`.
pub(super) fn mask(first: u32, end: u32) -> u64 {
    if end <= first {
        return 0;
    }
    (u64::MAX >> (64 - (end - first))) << first
}

/// Splits a mask into runs of consecutive bits, lowest first.
pub(super) fn runs(mut sectors: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        if sectors == 0 {
            return None;
        }
        let first = sectors.trailing_zeros();
        let length = (sectors >> first).trailing_ones();
        let run = mask(first, first + length);
        sectors &= !run;
        Some(run)
    })
}
