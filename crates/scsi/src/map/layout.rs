//! Location of the blocks of a volume: [`Layout`], with the pure function [`Layout::resolve`].

use super::LunId;

/// Block of a back-end LUN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LunBlock {
    /// Back-end LUN.
    pub lun: LunId,
    /// Block on that LUN.
    pub lba: u64,
}

/// Run of a volume over one or several columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Blocks of each column, a multiple of `stripe_blocks`.
    pub column_blocks: u64,
    /// Blocks of a column before the next column continues. Irrelevant with one column.
    pub stripe_blocks: u64,
    /// First block of each column.
    pub columns: Box<[LunBlock]>,
}

impl Segment {
    /// Creates a segment over one run of one LUN.
    pub fn linear(place: LunBlock, blocks: u64) -> Segment {
        Segment { column_blocks: blocks, stripe_blocks: blocks, columns: [place].into() }
    }

    /// Number of volume blocks in the segment; `None` if the number exceeds 64 bits.
    pub fn blocks(&self) -> Option<u64> {
        self.column_blocks.checked_mul(self.columns.len() as u64)
    }

    fn is_sound(&self) -> bool {
        self.stripe_blocks > 0
            && self.column_blocks > 0
            && self.column_blocks.is_multiple_of(self.stripe_blocks)
            && !self.columns.is_empty()
            && self.columns.iter().all(|place| place.lba.checked_add(self.column_blocks).is_some())
    }

    /// Returns the location of block `offset` of the segment, and the number of adjacent blocks
    /// from there on.
    fn at(&self, offset: u64) -> (LunBlock, u64) {
        if let [place] = *self.columns {
            return (LunBlock { lba: place.lba + offset, ..place }, self.column_blocks - offset);
        }
        let (stripe, within) = (offset / self.stripe_blocks, offset % self.stripe_blocks);
        let width = self.columns.len() as u64;
        let place = self.columns[(stripe % width) as usize];
        let lba = place.lba + stripe / width * self.stripe_blocks + within;
        (LunBlock { lba, ..place }, self.stripe_blocks - within)
    }
}

/// Reason why a layout is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadLayout {
    /// A segment has no columns, or its sizes are inconsistent.
    #[error("segment {0} has no columns or inconsistent sizes")]
    Segment(usize),
    /// The segments have fewer blocks than the volume.
    #[error("the segments have {has} blocks, but the volume has {wanted}")]
    TooShort {
        /// Blocks in the segments.
        has: u64,
        /// Blocks of the volume.
        wanted: u64,
    },
}

/// Location of all blocks of a volume. A layout is immutable; a change creates a new one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    blocks: u64,
    segments: Box<[Segment]>,
    /// First block of each segment in the volume.
    starts: Box<[u64]>,
}

impl Layout {
    /// Creates the layout of a volume of `blocks` blocks. The segments may have more.
    ///
    /// # Errors
    /// Returns an error if a segment is invalid or the segments are too small.
    pub fn new(blocks: u64, segments: Box<[Segment]>) -> Result<Layout, BadLayout> {
        let mut starts = Vec::with_capacity(segments.len());
        let mut next = 0u64;
        for (number, segment) in segments.iter().enumerate() {
            let end = segment.blocks().and_then(|blocks| next.checked_add(blocks));
            let Some(end) = end.filter(|_| segment.is_sound()) else {
                return Err(BadLayout::Segment(number));
            };
            starts.push(next);
            next = end;
        }
        match next < blocks {
            true => Err(BadLayout::TooShort { has: next, wanted: blocks }),
            false => Ok(Layout { blocks, segments, starts: starts.into() }),
        }
    }

    /// Number of blocks of the volume.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Segments in the order of the volume.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Locates `blocks` blocks from `lba` on. The pieces are in the order of the volume and cover
    /// each block exactly once. `None` if the range exceeds the volume.
    #[inline]
    pub fn resolve(&self, lba: u64, blocks: u32) -> Option<Pieces<'_>> {
        let end = lba.checked_add(blocks.into())?;
        if end > self.blocks {
            return None;
        }
        let segment = self.starts.partition_point(|&start| start <= lba).saturating_sub(1);
        Some(Pieces { layout: self, segment, lba, at: 0, left: blocks })
    }
}

/// Part of a request on one LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Offset in the request, in blocks.
    pub at: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Location of its first block.
    pub place: LunBlock,
}

/// Iterator over the pieces of a request, in its order.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    layout: &'a Layout,
    segment: usize,
    lba: u64,
    at: u32,
    left: u32,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let segment = self.layout.segments.get(self.segment)?;
        let offset = self.lba - self.layout.starts[self.segment];
        let (place, run) = segment.at(offset);
        let blocks = u64::from(self.left).min(run) as u32;
        let piece = Piece { at: self.at, blocks, place };
        self.lba += u64::from(blocks);
        self.at += blocks;
        self.left -= blocks;
        if self.layout.starts.get(self.segment + 1).is_some_and(|&next| next <= self.lba) {
            self.segment += 1;
        }
        Some(piece)
    }
}
