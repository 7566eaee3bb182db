//! Block I/O on volumes: the same answers and bytes as one disk, with any layout and any order of
//! answers from back ends.

use proptest::prelude::*;
use sanloom_scsi::disk::{self, Done, Error, ErrorKind, Op, Run};
use sanloom_scsi::map::{LunConfig, LunId, Map, PoolConfig, PoolId, Shape, VolumeId};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::scsi::{IoOp, IoStatus};
use sanloom_scsi::volume::{Buffer, Output, RangeOrder, VolumeIo, Volumes};
use sanloom_wire::sense::{SenseCode, SenseKey};
use std::collections::BTreeMap;

const BLOCK: usize = 512;
const EXTENT_BLOCKS: u64 = 6;

/// Switch with back ends in memory that answer in any order.
struct Rig {
    volumes: Volumes,
    luns: Vec<Vec<u8>>,
    /// Data and scratch of each job.
    buffers: BTreeMap<u64, [Vec<u8>; 2]>,
    requests: Vec<(u64, LunId, disk::Request, Buffer, usize)>,
    done: Vec<(u64, IoStatus, Vec<u8>)>,
    /// LUN whose requests fail, with the error.
    broken: Option<(LunId, ErrorKind)>,
    random: SplitMix64,
    next_job: u64,
}

impl Rig {
    fn new(luns: usize, seed: u64) -> Rig {
        const EXTENTS: u64 = 40;
        let pool = PoolConfig { name: "pool".into(), block_bytes: BLOCK as u32, extent_blocks: EXTENT_BLOCKS };
        let lun = |number| LunConfig { name: format!("lun{number}").into(), pool: PoolId(0) };
        let mut map = Map::new(vec![pool], (0..luns).map(lun).collect());
        for lun in 0..luns as u16 {
            assert!(map.reached(LunId(lun), EXTENTS * EXTENT_BLOCKS));
        }
        Rig {
            volumes: Volumes::new(map),
            luns: vec![vec![0; (EXTENTS * EXTENT_BLOCKS) as usize * BLOCK]; luns],
            buffers: BTreeMap::new(),
            requests: Vec::new(),
            done: Vec::new(),
            broken: None,
            random: SplitMix64(seed),
            next_job: 0,
        }
    }

    fn create(&mut self, name: &str, shape: Shape, blocks: u64) -> VolumeId {
        let change = self.volumes.map().plan_create(name, PoolId(0), shape, blocks).unwrap();
        self.volumes.map_mut().apply(change);
        self.volumes.map().find(name).unwrap()
    }

    fn submit(&mut self, io: VolumeIo, data: Vec<u8>) -> u64 {
        let id = self.next_job;
        self.next_job += 1;
        self.buffers.insert(id, [data, Vec::new()]);
        self.volumes.submit(id, io);
        self.drain();
        id
    }

    fn drain(&mut self) {
        while let Some(output) = self.volumes.poll_output() {
            match output {
                Output::Request { job, lun, request, buffer, at } => {
                    self.requests.push((job, lun, request, buffer, at as usize));
                }
                Output::Repeat { job, block_bytes, bytes } => {
                    let [data, scratch] = self.buffers.get_mut(&job).unwrap();
                    *scratch = data[..block_bytes as usize].repeat((bytes / block_bytes) as usize);
                }
                Output::Compare { job, bytes, at, block_bytes } => {
                    let [data, scratch] = &self.buffers[&job];
                    let difference = match block_bytes as usize {
                        0 => first_difference(&scratch[..bytes as usize], &data[at as usize..]),
                        block => scratch[..bytes as usize].chunks(block).find_map(|one| first_difference(one, data)),
                    };
                    self.volumes.compared(job, difference);
                }
                Output::Done { job, status } => {
                    let [data, _] = self.buffers.remove(&job).unwrap();
                    self.done.push((job, status, data));
                }
            }
        }
    }

    /// Answers a random request at its back end.
    fn answer(&mut self) -> bool {
        if self.requests.is_empty() {
            return false;
        }
        let which = self.random.index(self.requests.len());
        let (job, lun, request, buffer, at) = self.requests.swap_remove(which);
        let result = match self.broken.filter(|(broken, _)| *broken == lun) {
            Some((_, kind)) => Err(Error { kind, sense: None }),
            None => Ok(self.perform(job, lun, request, buffer, at)),
        };
        self.volumes.ended(request.tag, result);
        self.drain();
        true
    }

    fn perform(&mut self, job: u64, lun: LunId, request: disk::Request, buffer: Buffer, at: usize) -> Done {
        let lun = &mut self.luns[usize::from(lun.0)];
        let (first, len) = (request.lba as usize * BLOCK, request.blocks as usize * BLOCK);
        let medium = &mut lun[first..first + len];
        let buffer = &mut self.buffers.get_mut(&job).unwrap()[usize::from(buffer == Buffer::Scratch)];
        match request.op {
            Op::Read => {
                if buffer.len() < at + len {
                    buffer.resize(at + len, 0xee);
                }
                buffer[at..at + len].copy_from_slice(medium);
            }
            Op::Write => medium.copy_from_slice(&buffer[at..at + len]),
            Op::WriteZeroes { .. } | Op::Unmap => medium.fill(0),
            Op::Flush => {}
            Op::Status => {
                return Done::Runs(vec![Run { blocks: request.blocks, mapped: true, zero: false }]);
            }
        }
        Done::All
    }

    /// Runs until all jobs have ended and returns their results.
    fn run_until_idle(&mut self) -> Vec<(u64, IoStatus, Vec<u8>)> {
        while self.answer() {}
        assert_eq!(self.volumes.open_jobs(), 0);
        std::mem::take(&mut self.done)
    }

    fn one(&mut self, io: VolumeIo, data: Vec<u8>) -> (IoStatus, Vec<u8>) {
        self.submit(io, data);
        let mut done = self.run_until_idle();
        assert_eq!(done.len(), 1);
        let (_, status, data) = done.remove(0);
        (status, data)
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<u32> {
    a.iter().zip(b).position(|(a, b)| a != b).map(|at| at as u32)
}

fn io(volume: VolumeId, op: IoOp, lba: u64, blocks: u32, bytes: usize) -> VolumeIo {
    VolumeIo { volume, op, lba, blocks, bytes: bytes as u32, fua: false }
}

/// Model: the effect on one disk.
fn plain(disk: &mut [u8], op: IoOp, lba: u64, blocks: u32, data: &mut Vec<u8>) -> IoStatus {
    let (first, len) = (lba as usize * BLOCK, blocks as usize * BLOCK);
    let medium = &mut disk[first..first + len];
    let miscompare = |difference: Option<u32>| difference.map(|offset| IoStatus::Miscompare { offset });
    let mut status = IoStatus::Good;
    match op {
        IoOp::Read => *data = medium.to_vec(),
        IoOp::Write | IoOp::WriteVerify => medium.copy_from_slice(data),
        IoOp::Compare => status = miscompare(first_difference(medium, data)).unwrap_or(status),
        IoOp::CompareSame => {
            let difference = medium.chunks(BLOCK).find_map(|block| first_difference(block, data));
            status = miscompare(difference).unwrap_or(status);
        }
        IoOp::CompareAndWrite => match miscompare(first_difference(medium, data)) {
            Some(different) => status = different,
            None => medium.copy_from_slice(&data[len..]),
        },
        IoOp::WriteSame => medium.chunks_mut(BLOCK).for_each(|block| block.copy_from_slice(data)),
        IoOp::WriteZeroes | IoOp::Unmap => medium.fill(0),
        IoOp::Verify | IoOp::Flush | IoOp::Mapping => {}
    }
    status
}

const OPS: [IoOp; 11] = [
    IoOp::Read,
    IoOp::Write,
    IoOp::WriteVerify,
    IoOp::Verify,
    IoOp::Compare,
    IoOp::CompareSame,
    IoOp::CompareAndWrite,
    IoOp::WriteSame,
    IoOp::WriteZeroes,
    IoOp::Unmap,
    IoOp::Flush,
];

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Linear),
        (2u16..4, prop::sample::select(vec![1u32, 2, 3]))
            .prop_map(|(width, stripe_blocks)| Shape::Striped { width, stripe_blocks }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_volume_answers_like_one_disk(shape in shape(), seed in any::<u64>(), blocks in 20u64..100) {
        let mut rig = Rig::new(3, seed);
        let hole = rig.create("other", Shape::Linear, 200);
        let id = rig.create("v", shape, blocks);
        rig.volumes.map_mut().apply(sanloom_scsi::map::Change::Delete(hole));
        while let Some(freed) = rig.volumes.map().next_wipe(|_| true, u64::MAX) {
            rig.volumes.map_mut().wiped(&freed);
        }
        let mut blocks = blocks;
        let mut model = vec![0; blocks as usize * BLOCK];
        let mut random = SplitMix64(seed ^ 0xabcd);
        for number in 0..60 {
            if random.chance(5) {
                // The extension crosses the hole that a deleted volume has left.
                let change = rig.volumes.map().plan_extend(id, blocks + 7).unwrap();
                rig.volumes.map_mut().apply(change);
                let grown = stored_blocks(&rig, id, blocks, 7);
                blocks += 7;
                model.extend(grown);
            }
            let op = OPS[random.index(OPS.len())];
            let count = 1 + random.below(blocks.min(40));
            let lba = random.below(blocks - count + 1);
            let len = count as usize * BLOCK;
            // Mostly the current content, so that comparisons succeed.
            let there = lba as usize * BLOCK;
            let mut data = match op {
                IoOp::Write | IoOp::WriteVerify => (0..len).map(|at| (at / BLOCK) as u8 ^ number).collect(),
                IoOp::Compare => model[there..there + len].to_vec(),
                IoOp::CompareSame => model[there..there + BLOCK].to_vec(),
                IoOp::CompareAndWrite => [model[there..there + len].to_vec(), vec![number; len]].concat(),
                IoOp::WriteSame => vec![number; BLOCK],
                _ => Vec::new(),
            };
            if matches!(op, IoOp::Compare | IoOp::CompareAndWrite) && random.chance(50) {
                let at = random.index(len);
                data[at] ^= 1;
            }
            let (status, got) = rig.one(io(id, op, lba, count as u32, data.len()), data.clone());
            let expected = plain(&mut model, op, lba, count as u32, &mut data);
            prop_assert_eq!(status, expected, "{:?} {} {}", op, lba, count);
            if op == IoOp::Read {
                prop_assert!(got == data, "{} {}", lba, count);
            }
        }
        let (_, whole) = rig.one(io(id, IoOp::Read, 0, blocks as u32, 0), Vec::new());
        prop_assert!(whole == model);
    }

    /// Several hosts increment counters by COMPARE AND WRITE at once, and no increment is lost.
    #[test]
    fn compare_and_write_is_atomic(shape in shape(), seed in any::<u64>()) {
        const HOSTS: usize = 4;
        const EACH: u8 = 6;
        let mut rig = Rig::new(3, seed);
        let id = rig.create("v", shape, 30);
        let mut left = [EACH; HOSTS];
        let mut at_work: BTreeMap<u64, (usize, u8)> = BTreeMap::new();
        let mut seen = [0u8; HOSTS];
        let ask = |rig: &mut Rig, host: usize, seen: u8| {
            let data = [vec![seen; 5 * BLOCK], vec![seen + 1; 5 * BLOCK]].concat();
            // Other I/O continues nearby.
            rig.submit(io(id, IoOp::Read, 0, 30, 0), Vec::new());
            rig.submit(io(id, IoOp::Write, 20, 10, 10 * BLOCK), vec![host as u8; 10 * BLOCK]);
            rig.submit(io(id, IoOp::CompareAndWrite, 4, 5, data.len()), data)
        };
        for host in 0..HOSTS {
            at_work.insert(ask(&mut rig, host, 0), (host, 0));
        }
        while !at_work.is_empty() {
            prop_assert!(rig.answer(), "a job waits forever");
            for (job, status, data) in std::mem::take(&mut rig.done) {
                let Some((host, old)) = at_work.remove(&job) else {
                    // A read is atomic: it shows no half-done increment.
                    if let Some(counter) = data.get(4 * BLOCK..9 * BLOCK) {
                        prop_assert!(counter.iter().all(|byte| *byte == counter[0]));
                    }
                    continue;
                };
                match status {
                    IoStatus::Good => {
                        left[host] -= 1;
                        seen[host] = old + 1;
                    }
                    IoStatus::Miscompare { offset: 0 } => seen[host] = old + 1,
                    other => prop_assert!(false, "{:?}", other),
                }
                if left[host] > 0 {
                    at_work.insert(ask(&mut rig, host, seen[host]), (host, seen[host]));
                }
            }
        }
        rig.run_until_idle();
        let (_, data) = rig.one(io(id, IoOp::Read, 4, 5, 0), Vec::new());
        prop_assert_eq!(&data, &vec![HOSTS as u8 * EACH; 5 * BLOCK]);
    }
}

/// Content of blocks as stored by the back ends.
fn stored_blocks(rig: &Rig, id: VolumeId, lba: u64, blocks: u32) -> Vec<u8> {
    let epoch = rig.volumes.map().epoch(id).unwrap();
    let pieces = rig.volumes.map().resolve(epoch, lba, blocks).unwrap();
    let bytes = pieces.flat_map(|piece| {
        let first = piece.place.lba as usize * BLOCK;
        rig.luns[usize::from(piece.place.lun.0)][first..first + piece.blocks as usize * BLOCK].to_vec()
    });
    bytes.collect()
}

#[test]
fn the_first_failure_counts_and_a_split_job_ends_once() {
    for seed in 0..20 {
        let mut rig = Rig::new(2, seed);
        let id = rig.create("v", Shape::Striped { width: 2, stripe_blocks: 2 }, 24);
        for (kind, expected) in [
            (ErrorKind::Medium, IoStatus::MediumError),
            (ErrorKind::Busy, IoStatus::Busy),
            (ErrorKind::NoSpace, IoStatus::NoSpace),
            (
                ErrorKind::PathLost,
                IoStatus::Failed { key: SenseKey::NOT_READY, code: SenseCode::COMMUNICATION_FAILURE },
            ),
            (
                ErrorKind::Target,
                IoStatus::Failed { key: SenseKey::HARDWARE_ERROR, code: SenseCode::INTERNAL_TARGET_FAILURE },
            ),
        ] {
            rig.broken = Some((LunId(1), kind));
            let (status, _) = rig.one(io(id, IoOp::Write, 1, 20, 20 * BLOCK), vec![1; 20 * BLOCK]);
            assert_eq!(status, expected);
            // Data on other LUNs are not affected.
            assert_eq!(rig.one(io(id, IoOp::Read, 0, 2, 0), Vec::new()).0, IoStatus::Good);
        }
        rig.broken = None;
        let first = rig.submit(io(id, IoOp::Read, 0, 24, 0), Vec::new());
        // A LUN fails while the other one answers.
        rig.answer();
        rig.broken = Some((LunId(0), ErrorKind::Medium));
        let done = rig.run_until_idle();
        assert_eq!((done.len(), done[0].0), (1, first));
        assert_eq!(rig.volumes.counters().split, 6);
    }
}

#[test]
fn jobs_of_a_deleted_volume_end_on_its_old_map_and_later_ones_are_refused() {
    let mut rig = Rig::new(1, 1);
    let id = rig.create("v", Shape::Linear, 12);
    rig.submit(io(id, IoOp::Write, 0, 12, 12 * BLOCK), vec![7; 12 * BLOCK]);
    rig.volumes.map_mut().apply(sanloom_scsi::map::Change::Delete(id));
    assert_eq!(rig.volumes.map().pool_use(PoolId(0)).used, 2);
    let gone = IoStatus::Failed { key: SenseKey::ILLEGAL_REQUEST, code: SenseCode::LUN_NOT_SUPPORTED };
    let late = rig.submit(io(id, IoOp::Read, 0, 1, 0), Vec::new());
    assert_eq!(rig.done, [(late, gone, Vec::new())]);
    rig.done.clear();
    assert_eq!(rig.run_until_idle()[0].1, IoStatus::Good);
    assert_eq!(rig.volumes.map().pool_use(PoolId(0)).used, 0);
}

#[test]
fn an_exclusive_command_waits_only_for_earlier_ones() {
    let mut order = RangeOrder::default();
    assert!(order.begin(1, 0, 10, false) && order.begin(2, 5, 10, false));
    assert!(!order.begin(3, 8, 4, true), "two are there");
    assert!(!order.begin(4, 9, 1, false), "he does not overtake");
    assert!(order.begin(5, 100, 1, true) && order.begin(6, 12, 3, false));
    assert_eq!(order.end(1), []);
    assert_eq!(order.end(2), [3]);
    assert_eq!(order.end(3), [4]);
    assert_eq!((order.end(4), order.end(5), order.end(6)), (vec![], vec![], vec![]));
    assert!(order.is_idle());
}

#[test]
fn flush_goes_to_every_lun_of_the_volume_and_mapping_to_the_first() {
    let mut rig = Rig::new(3, 1);
    let id = rig.create("v", Shape::Striped { width: 2, stripe_blocks: 2 }, 24);
    rig.submit(io(id, IoOp::Flush, 0, 0, 0), Vec::new());
    let luns: Vec<u16> = rig.requests.iter().map(|(_, lun, ..)| lun.0).collect();
    assert_eq!(luns, [0, 1]);
    assert_eq!(rig.run_until_idle()[0].1, IoStatus::Good);
    let (status, _) = rig.one(io(id, IoOp::Mapping, 1, 23, 0), Vec::new());
    assert_eq!(status, IoStatus::Mapping { mapped: true, blocks: 1 });
    // A short write changes the blocks that it covers entirely.
    let short = rig.one(io(id, IoOp::Write, 0, 4, BLOCK + 5), vec![9; BLOCK + 5]);
    assert_eq!(short.0, IoStatus::Good);
    assert_eq!(stored_blocks(&rig, id, 0, 2), [vec![9; BLOCK], vec![0; BLOCK]].concat());
}

#[test]
fn durable_writes_are_durable_at_every_back_end() {
    let data = [(IoOp::Read, 0), (IoOp::Write, 4), (IoOp::WriteSame, 1), (IoOp::WriteZeroes, 0), (IoOp::Unmap, 0)];
    for (op, blocks, fua) in data.into_iter().flat_map(|(op, blocks)| [true, false].map(|fua| (op, blocks, fua))) {
        let mut rig = Rig::new(2, 1);
        let id = rig.create("v", Shape::Striped { width: 2, stripe_blocks: 2 }, 24);
        rig.submit(VolumeIo { fua, ..io(id, op, 0, 4, blocks * BLOCK) }, vec![9; blocks * BLOCK]);
        let sent: Vec<(u16, bool)> = rig.requests.iter().map(|(_, lun, request, ..)| (lun.0, request.fua)).collect();
        assert_eq!(sent, [(0, fua), (1, fua)], "{op:?}");
        assert_eq!(rig.run_until_idle()[0].1, IoStatus::Good, "{op:?}");
    }
}

#[test]
fn a_command_without_its_data_changes_nothing() {
    let mut rig = Rig::new(1, 1);
    let id = rig.create("v", Shape::Linear, 12);
    let refused = IoStatus::Failed { key: SenseKey::ILLEGAL_REQUEST, code: SenseCode::INVALID_FIELD_IN_CDB };
    for (op, bytes) in [
        (IoOp::Compare, 4 * BLOCK - 1),
        // Half of the data must not be taken for a comparison of fewer blocks.
        (IoOp::CompareAndWrite, 4 * BLOCK),
        (IoOp::CompareAndWrite, 8 * BLOCK - 1),
        (IoOp::CompareSame, BLOCK - 1),
        (IoOp::WriteSame, BLOCK - 1),
        (IoOp::WriteSame, 0),
    ] {
        let before = stored_blocks(&rig, id, 0, 12);
        assert_eq!(rig.one(io(id, op, 0, 4, bytes), before[..1].repeat(bytes)).0, refused, "{op:?} {bytes}");
        assert_eq!(stored_blocks(&rig, id, 0, 12), before, "{op:?} {bytes}");
    }
}

/// The data read back are those written, despite concurrent writes to the same blocks.
#[test]
fn write_and_verify_is_exclusive_in_its_blocks() {
    for seed in 0..100 {
        let mut rig = Rig::new(2, seed);
        let id = rig.create("v", Shape::Striped { width: 2, stripe_blocks: 2 }, 24);
        rig.submit(io(id, IoOp::WriteVerify, 0, 10, 10 * BLOCK), vec![1; 10 * BLOCK]);
        rig.submit(io(id, IoOp::Write, 5, 10, 10 * BLOCK), vec![2; 10 * BLOCK]);
        let done = rig.run_until_idle();
        assert!(done.len() == 2 && done.iter().all(|(_, status, _)| *status == IoStatus::Good), "{seed}: {done:?}");
    }
}
