//! A second model of a RAID 5 group that carries data, through a power failure.
//!
//! The model follows the requests that the group sends to its members, and stores a byte for each
//! block of a member when a write ends. At the power failure, each block of a write in flight is
//! stored or not at random. Then a member fails, and its blocks are computed from the others. All
//! blocks that come out wrong must be among those that the backstore predicts.

use super::devices::{DeviceIo, Owner};
use super::{Backstore, BackstoreConfig, Command, Outcome, RaidConfig};
use crate::disk::Op;
use crate::flash::{Drive, preset};
use crate::raid::{Consistency, Content, Geometry, Level, Phase, SyncLimits};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const US: u64 = 1_000_000;
const MEMBERS: u32 = 4;
const CHUNK: u64 = 8;
const STRIPE: u64 = 3 * CHUNK;
const BLOCKS: u64 = 12 * STRIPE;

/// A write of a host: its blocks and their new byte.
#[derive(Clone, Copy)]
struct Write {
    id: u32,
    lba: u64,
    blocks: u64,
    byte: u8,
}

impl Write {
    /// Blocks of a stripe that it writes.
    fn part(&self, stripe: u64) -> impl Iterator<Item = u64> {
        let end = self.lba + self.blocks;
        self.lba.max(stripe * STRIPE)..end.min((stripe + 1) * STRIPE)
    }

    /// Blocks that it writes on all members of a stripe: data, and a parity block for each row.
    fn member_blocks(&self, stripe: u64) -> u64 {
        let rows: BTreeSet<u64> = self.part(stripe).map(|block| block % CHUNK).collect();
        (self.part(stripe).count() + rows.len()) as u64
    }
}

/// Writes of one stripe, of which only the first one is in service.
#[derive(Clone, Default)]
struct Stripe {
    writes: VecDeque<Write>,
    /// Blocks on members that the first write has passed to them, and that have ended.
    issued: u64,
    ended: u64,
}

struct Shadow {
    geometry: Geometry,
    /// Byte of each block of the members.
    disks: BTreeMap<(u32, u64), u8>,
    /// Byte of each block of the unit after the writes that have begun to write.
    data: BTreeMap<u64, u8>,
    /// Bytes that a read may return after a failure of power.
    permitted: BTreeMap<u64, BTreeSet<u8>>,
    stripes: BTreeMap<u64, Stripe>,
    /// Bytes of writes in flight on members.
    in_flight: BTreeMap<(u32, u64), u8>,
}

impl Shadow {
    /// Byte that a block of a member gets when all writes that have begun end.
    fn intended(&self, member: u32, lba: u64) -> u8 {
        let data = |block| self.data.get(&block).copied().unwrap_or(0);
        match self.geometry.content(member, lba / CHUNK) {
            Some(Content::Data { chunk, .. }) => data(chunk * CHUNK + lba % CHUNK),
            Some(Content::P { stripe }) => {
                (0..3).fold(0, |sum, index| sum ^ data(stripe * STRIPE + index * CHUNK + lba % CHUNK))
            }
            _ => 0,
        }
    }

    fn follow(&mut self, log: &[(bool, DeviceIo)]) {
        for &(is_end, io) in log.iter().filter(|(_, io)| io.phase == Phase::Write) {
            let Owner::Request(_) = io.owner else { continue };
            let blocks = u64::from(io.blocks);
            let stripe = self.stripes.get_mut(&io.stripe).expect("a write of the stripe");
            if is_end {
                stripe.ended += blocks;
                for lba in io.lba..io.lba + blocks {
                    if let Some(byte) = self.in_flight.remove(&(io.device, lba)) {
                        self.disks.insert((io.device, lba), byte);
                    }
                }
                let first = stripe.writes.front().expect("a write in service");
                if stripe.ended == first.member_blocks(io.stripe) {
                    stripe.writes.pop_front();
                    (stripe.issued, stripe.ended) = (0, 0);
                }
                continue;
            }
            if stripe.issued == 0 {
                let first = *stripe.writes.front().expect("a write in service");
                self.data.extend(first.part(io.stripe).map(|block| (block, first.byte)));
            }
            stripe.issued += blocks;
            for lba in io.lba..io.lba + blocks {
                self.in_flight.insert((io.device, lba), self.intended(io.device, lba));
            }
        }
    }

    /// Byte of a block of a member, computed from the others.
    fn computed(&self, member: u32, lba: u64) -> u8 {
        let others = (0..MEMBERS).filter(|other| *other != member);
        others.fold(0, |sum, other| sum ^ self.disks.get(&(other, lba)).copied().unwrap_or(0))
    }

    /// Blocks of the unit on a member whose computed byte no read may return.
    fn wrong(&self, member: u32) -> BTreeSet<u64> {
        let is_wrong = |block: &u64| {
            let (place, row) = self.geometry.place(block / CHUNK, 0);
            let byte = self.computed(place, row * CHUNK + block % CHUNK);
            place == member && !self.permitted.get(block).map_or(byte == 0, |bytes| bytes.contains(&byte))
        };
        (0..BLOCKS).filter(is_wrong).collect()
    }
}

/// Runs random writes until the power fails. Returns the wrong blocks of each member: those of the
/// model and those that the backstore predicts.
fn crash(seed: u64, count: u32, consistency: Consistency) -> Vec<(BTreeSet<u64>, BTreeSet<u64>)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let limits = SyncLimits::default();
    let raid = RaidConfig { level: Level::RAID5, members: MEMBERS, chunk_blocks: CHUNK as u32, spares: 0, limits };
    let drive = Drive::new(&preset::pm883(4 << 20)).expect("the preset is valid");
    let config = BackstoreConfig { raid: Some(raid), cache: None, loops: None };
    let mut store = Backstore::new(&config, &drive, &[BLOCKS]).expect("the parameters fit");
    store.set_consistency(consistency).expect("RAID 5 has all of them");
    let geometry = *store.groups[0].array().expect("an array").geometry();
    let mut shadow = Shadow {
        geometry,
        disks: BTreeMap::new(),
        data: BTreeMap::new(),
        permitted: (0..BLOCKS).map(|block| (block, BTreeSet::from([0]))).collect(),
        stripes: BTreeMap::new(),
        in_flight: BTreeMap::new(),
    };
    let mut writes: BTreeMap<u32, Write> = BTreeMap::new();
    let mut now_ps = 0;
    let run = |store: &mut Backstore, shadow: &mut Shadow, writes: &mut BTreeMap<u32, Write>, until_ps: u64| {
        loop {
            let at_ps = store.next_ps();
            if at_ps > until_ps {
                return;
            }
            while let Some(end) = store.pop_ended(at_ps) {
                assert_eq!(end.outcome, Outcome::Good);
                let write = writes.remove(&end.id).expect("a write");
                let last =
                    |block| writes.values().any(|other: &Write| (other.lba..other.lba + other.blocks).contains(&block));
                for block in write.lba..write.lba + write.blocks {
                    // Writes of a block follow each other, so later ones may have been stored, too.
                    let bytes = shadow.permitted.get_mut(&block).expect("a block of the unit");
                    if !last(block) {
                        bytes.clear();
                    }
                    bytes.insert(write.byte);
                }
            }
            let log = std::mem::take(&mut store.devices.log);
            shadow.follow(&log);
        }
    };
    for id in 0..count {
        now_ps += random.random_range(0..60) * US;
        run(&mut store, &mut shadow, &mut writes, now_ps);
        let blocks = random.random_range(1..30);
        let lba = random.random_range(0..BLOCKS - blocks);
        let write = Write { id, lba, blocks, byte: random.random_range(1..=255) };
        writes.insert(id, write);
        for stripe in lba / STRIPE..=(lba + blocks - 1) / STRIPE {
            shadow.stripes.entry(stripe).or_default().writes.push_back(write);
        }
        (lba..lba + blocks).for_each(|block| {
            shadow.permitted.get_mut(&block).expect("a block of the unit").insert(write.byte);
        });
        store.submit(now_ps, Command { id, unit: 0, lba, blocks: blocks as u32, op: Op::Write });
        let log = std::mem::take(&mut store.devices.log);
        shadow.follow(&log);
    }
    now_ps += random.random_range(0..200) * US;
    run(&mut store, &mut shadow, &mut writes, now_ps);
    let loss = store.power_loss(now_ps);
    assert!(loss.aborted.iter().all(|id| writes.values().any(|write| write.id == *id)));
    let mut in_flight = std::mem::take(&mut shadow.in_flight);
    match consistency {
        Consistency::Journal => {
            // Replay stores every write whose log has ended, and only such writes have begun.
            for (&number, _) in shadow.stripes.iter().filter(|(_, stripe)| stripe.issued > 0) {
                for lba in (number * CHUNK..(number + 1) * CHUNK).flat_map(|lba| (0..MEMBERS).map(move |m| (m, lba))) {
                    in_flight.insert(lba, shadow.intended(lba.0, lba.1));
                }
            }
            shadow.disks.extend(in_flight);
        }
        _ => shadow.disks.extend(in_flight.into_iter().filter(|_| random.random_bool(0.5))),
    }
    let predicted = |member| {
        let ranges = store.wrong_blocks(0, Some(member));
        ranges.into_iter().flat_map(|(lba, blocks)| lba..lba + blocks).collect()
    };
    (0..MEMBERS).map(|member| (shadow.wrong(member), predicted(member))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_block_that_a_crash_and_a_failed_member_make_wrong_is_predicted(
        seed in any::<u64>(), count in 1..40_u32, has_bitmap: bool,
    ) {
        let consistency = if has_bitmap { Consistency::Bitmap { region_stripes: 2 } } else { Consistency::None };
        for (wrong, predicted) in crash(seed, count, consistency) {
            prop_assert!(wrong.is_subset(&predicted), "{wrong:?} {predicted:?}");
        }
    }

    #[test]
    fn a_journal_leaves_no_wrong_block(seed in any::<u64>(), count in 1..40_u32) {
        for (wrong, predicted) in crash(seed, count, Consistency::Journal) {
            prop_assert!(wrong.is_empty() && predicted.is_empty(), "{wrong:?} {predicted:?}");
        }
    }
}

#[test]
fn the_prediction_is_not_much_larger_than_the_damage() {
    let (mut wrong, mut predicted) = (0, 0);
    for seed in 0..300 {
        for (found, expected) in crash(seed, 30, Consistency::None) {
            wrong += found.len();
            predicted += expected.len();
        }
    }
    println!("{wrong} blocks wrong, {predicted} predicted");
    assert!(wrong > 500 && predicted < 5 * wrong, "{wrong} wrong, {predicted} predicted");
}
