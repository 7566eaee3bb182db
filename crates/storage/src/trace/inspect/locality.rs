//! Footprint, popularity of blocks, and LRU reuse distances.
//!
//! All blocks are followed as long as their number is bounded. Beyond it, a share of them is
//! followed, chosen by a hash of their addresses, so that all accesses to a block count or none
//! (SHARDS: Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC Construction with SHARDS, FAST
//! 2015, sections 3.1 and 3.2). Here the share is halved each time.

use serde::Serialize;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Bytes of a block of the statistics.
pub const BLOCK_BYTES: u64 = 4_096;
/// Blocks of one request that are followed: 256 MiB.
const MAX_BLOCKS_PER_REQUEST: u64 = 1 << 16;
/// Default number of blocks that are followed at the same time. Each takes about 100 bytes.
pub(super) const DEFAULT_BLOCKS: usize = 1 << 18;

/// Shares of the space whose requests are counted.
const HOT: [f64; 4] = [0.01, 0.05, 0.10, 0.20];
/// Parts of a power of two in the histogram of distances.
const PARTS: u64 = 8;

/// Popularity of blocks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Hot {
    /// Share of the footprint: its most popular blocks.
    pub space: f64,
    /// Share of the accesses that go to these blocks.
    pub accesses: f64,
}

/// LRU hit ratio of a cache.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct HitRatio {
    /// Size of the cache.
    pub bytes: u64,
    /// Share of the accesses that hit.
    pub hits: f64,
}

/// Locality of reads and writes, in blocks of 4 KiB.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Locality {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Share of the blocks that was followed: 1 is exact.
    pub sampled: f64,
    /// Accesses to blocks.
    pub accesses: u64,
    /// Different blocks, in bytes.
    pub footprint_bytes: u64,
    /// Share of the accesses to the hottest 1, 5, 10 and 20 % of the footprint.
    pub hot: Vec<Hot>,
    /// Share of the accesses to a block that was accessed before.
    pub reused: f64,
    /// Median of the reuse distance, in bytes of different blocks between two accesses to a block;
    /// none without a reuse.
    pub reuse_p50_bytes: Option<u64>,
    /// 90th percentile of the reuse distance.
    pub reuse_p90_bytes: Option<u64>,
    /// Hit ratios of LRU caches whose sizes double, up to the footprint.
    pub lru: Vec<HitRatio>,
}

/// Address of a block, with its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    hash: u64,
    block: u64,
    device: u32,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Hasher of keys that bring their hash.
#[derive(Clone, Copy, Default, Debug)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        // The low bits choose the bucket; the sample is chosen by the high bits.
        self.0 = hash;
    }
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    /// Position of the last access in the order of accesses.
    position: u32,
    count: u32,
}

/// Counters of accesses.
#[derive(Clone, Debug)]
pub(super) struct Accesses {
    blocks: HashMap<Key, Followed, BuildHasherDefault<Same>>,
    limit: usize,
    /// Largest hash that is followed.
    threshold: u64,
    /// Weight of an access: one over the share of the blocks.
    weight: f64,
    /// Number of last accesses at or before each position (Fenwick tree).
    tree: Vec<u32>,
    next: u32,
    accesses: u64,
    first: f64,
    /// Weights of reuse distances, by [`bin`].
    distances: Vec<f64>,
}

impl Accesses {
    /// Creates counters that follow at most `limit` blocks.
    pub(super) fn new(limit: usize) -> Accesses {
        let limit = limit.max(16);
        Accesses {
            blocks: HashMap::default(),
            limit,
            threshold: u64::MAX,
            weight: 1.0,
            tree: vec![0; 4 * limit + 1],
            next: 0,
            accesses: 0,
            first: 0.0,
            distances: Vec::new(),
        }
    }

    /// Counts the blocks of a request.
    pub(super) fn add(&mut self, device: u32, offset_bytes: u64, length_bytes: u64) {
        if length_bytes == 0 {
            return;
        }
        let first = offset_bytes / BLOCK_BYTES;
        let last = (offset_bytes + (length_bytes - 1)) / BLOCK_BYTES;
        let blocks = (last - first + 1).min(MAX_BLOCKS_PER_REQUEST);
        self.accesses += blocks;
        for block in first..first + blocks {
            let hash = mixed(block ^ mixed(u64::from(device)));
            if hash <= self.threshold {
                self.access(Key { hash, block, device });
            }
        }
    }

    fn access(&mut self, key: Key) {
        if self.next as usize + 1 == self.tree.len() {
            self.compact();
        }
        let position = self.next;
        self.next += 1;
        let live = self.blocks.len() as u64;
        let entry = self.blocks.entry(key).or_insert(Followed { position: u32::MAX, count: 0 });
        entry.count = entry.count.saturating_add(1);
        let before = std::mem::replace(&mut entry.position, position);
        if before == u32::MAX {
            self.first += self.weight;
        } else {
            // All blocks whose last access is behind that of this block.
            let distance = live - u64::from(count(&self.tree, before));
            let bin = bin((distance as f64 * self.weight) as u64);
            if self.distances.len() <= bin {
                self.distances.resize(bin + 1, 0.0);
            }
            self.distances[bin] += self.weight;
            add(&mut self.tree, before, u32::MAX);
        }
        add(&mut self.tree, position, 1);
        while self.blocks.len() > self.limit {
            self.threshold /= 2;
            self.weight *= 2.0;
            let threshold = self.threshold;
            self.blocks.retain(|key, _| key.hash <= threshold);
            self.compact();
        }
    }

    /// Numbers the last accesses from 0 on in their order.
    fn compact(&mut self) {
        let mut positions: Vec<&mut u32> = self.blocks.values_mut().map(|followed| &mut followed.position).collect();
        positions.sort_unstable();
        self.next = 0;
        for position in positions {
            *position = self.next;
            self.next += 1;
        }
        self.tree.fill(0);
        (0..self.next).for_each(|position| add(&mut self.tree, position, 1));
    }

    /// Different blocks of each device, in bytes; the index is the device.
    pub(super) fn footprints(&self, devices: usize) -> Vec<u64> {
        let mut blocks = vec![0_u64; devices];
        for key in self.blocks.keys() {
            if let Some(blocks) = blocks.get_mut(key.device as usize) {
                *blocks += 1;
            }
        }
        blocks.iter().map(|blocks| (*blocks as f64 * self.weight) as u64 * BLOCK_BYTES).collect()
    }

    pub(super) fn locality(&self) -> Locality {
        let mut counts: Vec<u64> = self.blocks.values().map(|followed| u64::from(followed.count)).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let all = counts.iter().sum::<u64>().max(1) as f64;
        let hot = |space: f64| {
            let blocks = (space * counts.len() as f64).ceil() as usize;
            Hot { space, accesses: counts.iter().take(blocks).sum::<u64>() as f64 / all }
        };
        let reuses: f64 = self.distances.iter().sum();
        let total = reuses + self.first;
        let footprint = (self.blocks.len() as f64 * self.weight) as u64;
        let quantile = |share: f64| {
            let mut below = 0.0;
            let found = self.distances.iter().position(|weight| {
                below += weight;
                below >= share * reuses
            });
            found.filter(|_| reuses > 0.0).map(|bin| lower(bin) * BLOCK_BYTES)
        };
        // The first size that holds the footprint is the last one.
        let sizes = if total > 0.0 { footprint.max(1).next_power_of_two().ilog2() + 1 } else { 0 };
        let hits = |power: u32| {
            let inside = self.distances.iter().take(bin(1 << power)).sum::<f64>();
            HitRatio { bytes: BLOCK_BYTES << power, hits: inside / total }
        };
        let lru = (0..sizes).map(hits).collect();
        Locality {
            block_bytes: BLOCK_BYTES,
            sampled: 1.0 / self.weight,
            accesses: self.accesses,
            footprint_bytes: footprint * BLOCK_BYTES,
            hot: if counts.is_empty() { Vec::new() } else { HOT.map(hot).to_vec() },
            reused: if total > 0.0 { reuses / total } else { 0.0 },
            reuse_p50_bytes: quantile(0.5),
            reuse_p90_bytes: quantile(0.9),
            lru,
        }
    }
}

/// Mixes the bits of a number (finaliser of SplitMix64: Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators, OOPSLA 2014, figure 16).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Number of the bin of a distance. Powers of two begin a bin.
fn bin(distance: u64) -> usize {
    if distance < PARTS {
        return distance as usize;
    }
    let power = u64::from(distance.ilog2());
    let part = (distance >> (power - 3)) & (PARTS - 1);
    ((power - 2) * PARTS + part) as usize
}

/// Smallest distance of a bin.
fn lower(bin: usize) -> u64 {
    let (power, part) = (bin as u64 / PARTS, bin as u64 % PARTS);
    if power == 0 { part } else { (PARTS + part) << (power - 1) }
}

/// Adds to a position of a Fenwick tree; `u32::MAX` is −1.
fn add(tree: &mut [u32], position: u32, value: u32) {
    let mut at = position as usize + 1;
    while let Some(node) = tree.get_mut(at) {
        *node = node.wrapping_add(value);
        at += at & at.wrapping_neg();
    }
}

/// Sum of the positions from 0 to `position`.
fn count(tree: &[u32], position: u32) -> u32 {
    let mut at = position as usize + 1;
    let mut sum = 0_u32;
    while at > 0 {
        sum = sum.wrapping_add(tree[at]);
        at &= at - 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_at_powers_of_two_and_cover_all_distances() {
        let mut last = 0;
        for distance in (0..5_000).chain([1 << 40, u64::MAX]) {
            let number = bin(distance);
            assert!(number >= last && lower(number) <= distance, "{distance}");
            assert!(distance < 1 << 20 || lower(number) as f64 > distance as f64 * 0.8);
            last = number;
        }
        (0..60).for_each(|power| assert_eq!(lower(bin(1 << power)), 1 << power));
    }
}
