//! Locations of requests on LUNs.

use super::zipf::Zipf;
use crate::rng::{StreamRng, below, uniform};
use sanloom_fc::config::{HotSet, Location, Lun};

/// Selects the location of each request on its LUN. Every LUN has its own cursor.
///
/// With a hot set, the first part of the space is hot and is divided into equal slots. The hot
/// share of the requests goes to a slot selected by Zipf's law (slot 0 is the most popular). All
/// other requests follow `location` in the rest of the space.
#[derive(Clone, Debug)]
pub struct Locations {
    location: Location,
    hot: Option<Hot>,
    luns: Vec<Space>,
}

#[derive(Clone, Copy, Debug)]
struct Hot {
    share: f64,
    zipf: Zipf,
    items: u32,
}

#[derive(Clone, Copy, Debug)]
struct Space {
    usable_blocks: u64,
    hot_blocks: u64,
    stride_blocks: u64,
    cursor_lba: u64,
}

impl Locations {
    /// Returns locations on `luns`, limited to the first `span_bytes` of each (at least one block).
    pub fn new(location: Location, hot_set: Option<&HotSet>, span_bytes: Option<u64>, luns: &[Lun]) -> Locations {
        let hot = hot_set.map(|set| Hot {
            share: set.share_of_requests,
            zipf: Zipf::new(set.items, set.zipf_exponent),
            items: set.items.max(1),
        });
        let space_of = |lun: &Lun| {
            let block_bytes = u64::from(lun.block_bytes.max(1));
            let span_blocks = span_bytes.map_or(u64::MAX, |bytes| bytes / block_bytes);
            let usable_blocks = lun.blocks.min(span_blocks).max(1);
            let hot_blocks = hot_set.map_or(0, |set| {
                let blocks = libm::floor(usable_blocks as f64 * set.share_of_space) as u64;
                blocks.clamp(1, usable_blocks)
            });
            let stride_blocks = match location {
                Location::Strided { stride_bytes } => stride_bytes.div_ceil(block_bytes),
                Location::Random | Location::Sequential => 0,
            };
            Space { usable_blocks, hot_blocks, stride_blocks, cursor_lba: hot_blocks }
        };
        Locations { location, hot, luns: luns.iter().map(space_of).collect() }
    }

    /// Returns the number of blocks that requests may use on LUN `lun`, an index into the
    /// constructor's list.
    pub fn usable_blocks(&self, lun: usize) -> u64 {
        self.luns[lun].usable_blocks
    }

    /// Returns the first block of a request of `blocks` blocks on LUN `lun`. The request ends
    /// within the usable part, unless it is longer than that part.
    pub fn next_lba(&mut self, lun: usize, blocks: u32, rng: &mut StreamRng) -> u64 {
        let space = &mut self.luns[lun];
        let blocks = u64::from(blocks.max(1));
        if let Some(hot) = &self.hot
            && uniform(rng) < hot.share
        {
            let place = hot.zipf.next(rng);
            let (begin, end) = space.place(place, hot.items);
            return space.aligned_within(begin, end, blocks, rng);
        }
        match self.location {
            Location::Random => space.aligned_within(space.hot_blocks, space.usable_blocks, blocks, rng),
            Location::Sequential => space.advance(blocks, blocks),
            Location::Strided { .. } => space.advance(blocks, space.stride_blocks),
        }
    }
}

impl Space {
    /// Returns begin and end of one of `items` equal slots in the hot part.
    fn place(&self, place: u32, items: u32) -> (u64, u64) {
        let edge = |index: u64| (u128::from(self.hot_blocks) * u128::from(index) / u128::from(items)) as u64;
        (edge(u64::from(place)), edge(u64::from(place) + 1))
    }

    /// Returns a block between `begin` and `end` that is a multiple of the request's length. If
    /// there is none, the request contains `begin`.
    fn aligned_within(&self, begin: u64, end: u64, blocks: u64, rng: &mut StreamRng) -> u64 {
        let first = begin.div_ceil(blocks);
        let last = end / blocks;
        let slot = if first < last { first + below(rng, last - first) } else { begin / blocks };
        let last_slot = (self.usable_blocks / blocks).saturating_sub(1);
        slot.min(last_slot) * blocks
    }

    /// Returns the cursor, or the beginning if the request does not fit behind the cursor; then
    /// moves the cursor by `step`.
    fn advance(&mut self, blocks: u64, step: u64) -> u64 {
        let fits = |lba: u64| lba.saturating_add(blocks) <= self.usable_blocks;
        let begin = if fits(self.hot_blocks) { self.hot_blocks } else { 0 };
        let lba = if fits(self.cursor_lba) { self.cursor_lba } else { begin };
        self.cursor_lba = lba.saturating_add(step);
        lba
    }
}
