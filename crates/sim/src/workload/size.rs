//! Sizes of requests.

use crate::rng::{StreamRng, below, exponential, uniform};
use sanloom_fc::config::SizeDistribution;

/// Random request lengths. Every length is a whole number of blocks, at least one.
#[derive(Clone, Debug)]
pub struct Sizes {
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Fixed(u32),
    /// Sizes with cumulative weights.
    Weighted(Vec<(u32, f64)>),
    Uniform {
        min: u32,
        step: u32,
        count: u64,
    },
    Exponential {
        mean: f64,
        max: u32,
    },
}

/// Granularity of exponential sizes: the smallest block of a disk.
const SECTOR_BYTES: u32 = 512;

impl Sizes {
    /// Returns the sizes of `distribution`. Weights that are negative or not numbers count as zero.
    pub fn new(distribution: &SizeDistribution) -> Sizes {
        let law = match distribution {
            SizeDistribution::Fixed(bytes) => Law::Fixed(*bytes),
            SizeDistribution::Weighted(list) => {
                let mut sum = 0.0;
                let running = list.iter().map(|&(bytes, weight)| {
                    sum += if weight > 0.0 { weight } else { 0.0 };
                    (bytes, sum)
                });
                Law::Weighted(running.collect())
            }
            SizeDistribution::Uniform { min, max, step } => {
                let step = (*step).max(1);
                Law::Uniform { min: *min, step, count: u64::from(max.saturating_sub(*min) / step) + 1 }
            }
            SizeDistribution::Exponential { mean, max } => Law::Exponential { mean: f64::from(*mean), max: *max },
        };
        Sizes { law }
    }

    /// Returns the next length in bytes, as drawn from the distribution.
    pub fn next_bytes(&self, rng: &mut StreamRng) -> u32 {
        match &self.law {
            Law::Fixed(bytes) => *bytes,
            Law::Weighted(running) => {
                let total = running.last().map_or(0.0, |&(_, sum)| sum);
                let point = uniform(rng) * total;
                let chosen = running.iter().find(|&&(_, sum)| point < sum);
                chosen.or(running.last()).map_or(0, |&(bytes, _)| bytes)
            }
            Law::Uniform { min, step, count } => {
                let steps = below(rng, *count);
                (u64::from(*min) + steps * u64::from(*step)) as u32
            }
            Law::Exponential { mean, max } => {
                let bytes = libm::ceil(mean * exponential(rng)) as u32;
                let sectors = bytes.div_ceil(SECTOR_BYTES).max(1);
                sectors.saturating_mul(SECTOR_BYTES).min(*max)
            }
        }
    }

    /// Returns the next length in blocks of `block_bytes`, rounded up to whole blocks and limited
    /// to 1 to `limit_blocks`.
    pub fn next_blocks(&self, rng: &mut StreamRng, block_bytes: u32, limit_blocks: u64) -> u32 {
        let block_bytes = block_bytes.max(1);
        let blocks = self.next_bytes(rng).div_ceil(block_bytes);
        // The length in bytes must also fit into 32 bits.
        let limit = limit_blocks.min(u64::from(u32::MAX / block_bytes)).max(1);
        u64::from(blocks.max(1)).min(limit) as u32
    }
}
