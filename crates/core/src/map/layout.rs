//! Where the blocks of a volume are: [`Layout`], and the pure function [`Layout::resolve`].

use super::LunId;

/// A block of a back-end LUN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The LUN.
    pub lun: LunId,
    /// Its block.
    pub lba: u64,
}

/// A run of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Blocks of each column, a multiple of `stripe_blocks`.
    pub column_blocks: u64,
    /// Blocks of a column before the next column is used. With one column it makes no difference.
    pub stripe_blocks: u64,
    /// Where each column begins.
    pub columns: Box<[Place]>,
}

impl Segment {
    /// A run of one LUN.
    pub fn linear(place: Place, blocks: u64) -> Segment {
        Segment { column_blocks: blocks, stripe_blocks: blocks, columns: [place].into() }
    }

    /// Blocks of the volume in it; none: it has more than there are numbers.
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

    /// Where block `offset` of the segment is, and how many blocks from it on are beside each other.
    fn at(&self, offset: u64) -> (Place, u64) {
        if let [place] = *self.columns {
            return (Place { lba: place.lba + offset, ..place }, self.column_blocks - offset);
        }
        let (stripe, within) = (offset / self.stripe_blocks, offset % self.stripe_blocks);
        let width = self.columns.len() as u64;
        let place = self.columns[(stripe % width) as usize];
        let lba = place.lba + stripe / width * self.stripe_blocks + within;
        (Place { lba, ..place }, self.stripe_blocks - within)
    }
}

/// A layout that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadLayout {
    /// A segment without columns, or whose numbers do not fit together.
    #[error("segment {0} is none that can be")]
    Segment(usize),
    /// The segments have fewer blocks than the volume.
    #[error("the segments have {has} blocks of {wanted}")]
    TooShort {
        /// What there is.
        has: u64,
        /// What the volume has.
        wanted: u64,
    },
}

/// Where the blocks of a volume are. It never changes: a change is another layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    blocks: u64,
    segments: Box<[Segment]>,
    /// First block of each segment.
    starts: Box<[u64]>,
}

impl Layout {
    /// The layout of a volume of so many blocks. The segments may have more.
    ///
    /// # Errors
    /// When the segments are not sound or too few.
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

    /// Blocks of the volume.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Its segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Where `blocks` blocks from `lba` on are: pieces in the order of the volume, which cover them exactly once. None where the
    /// volume ends before.
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

/// A part of a request, on one LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where it begins in the request, in blocks.
    pub at: u32,
    /// How many blocks.
    pub blocks: u32,
    /// Where it is.
    pub place: Place,
}

/// The parts of a request, in its order.
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
