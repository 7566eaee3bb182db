//! Random times: [`Jitter`].

use crate::time::Span;

/// SplitMix64: enough to keep stations from falling into step, and the same for the same seed.
#[derive(Clone, Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) const fn new(seed: u64) -> Jitter {
        Jitter(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// Up to `most`, both ends included.
    pub(super) fn up_to(&mut self, most: Span) -> Span {
        Span::from_ns(self.next() % most.as_ns().saturating_add(1))
    }
}
