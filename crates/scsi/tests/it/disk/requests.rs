//! Conversion of requests to commands within the target's limits.

use crate::disk::target::{BLOCK, BLOCKS, Bed, Target};
use proptest::prelude::*;
use sanloom_scsi::disk::{DiskConfig, Done, Error, ErrorKind, Op, Run};
use sanloom_wire::cdb::{Cdb, operation as op};

fn ranges(bed: &Bed) -> Vec<(u64, u32)> {
    let range = |cdb: &[u8; 16]| match Cdb::parse(cdb) {
        Cdb::Read { lba, blocks, .. } | Cdb::Write { lba, blocks, .. } => (lba, blocks),
        other => panic!("{other}"),
    };
    bed.sent.iter().map(range).collect()
}

#[test]
fn transfers_are_split_at_the_smaller_limit() {
    let mut bed = Bed::ready(Target::new());
    bed.write(1, 100, 150, 0x22);
    assert_eq!(ranges(&bed), [(100, 64), (164, 64), (228, 22)]);
    assert_eq!(bed.done[&1], Ok(Done::All));
    bed.read(2, 99, 152);
    assert_eq!(bed.buffers[&2][..BLOCK], [0x11; BLOCK]);
    assert_eq!(bed.buffers[&2][BLOCK..151 * BLOCK], vec![0x22; 150 * BLOCK]);
    assert_eq!(bed.buffers[&2][151 * BLOCK..], [0x11; BLOCK]);

    let config = DiskConfig { max_transfer_bytes: 8 * BLOCK as u32, ..DiskConfig::default() };
    let mut bed = Bed::ready_with(config, Target::new());
    bed.read(1, 0, 20);
    assert_eq!(ranges(&bed), [(0, 8), (8, 8), (16, 4)]);
}

#[test]
fn commands_in_flight_are_limited_by_the_queue_depth() {
    let config = DiskConfig { queue_depth: 3, ..DiskConfig::default() };
    let mut bed = Bed::ready_with(config, Target::new());
    bed.hold = true;
    bed.write(1, 0, 64 * 5, 1);
    bed.write(2, 1000, 64, 2);
    assert_eq!(bed.open.len(), 3);
    // Completions in any order.
    while !bed.open.is_empty() {
        assert!(bed.open.len() <= 3);
        bed.answer(bed.open.len() - 1);
    }
    assert_eq!(bed.done.len(), 2);
    assert!(bed.target.medium[..64 * 5 * BLOCK].iter().all(|byte| *byte == 1));
    assert!(bed.target.medium[1000 * BLOCK..1064 * BLOCK].iter().all(|byte| *byte == 2));
}

#[test]
fn a_durable_write_uses_fua_a_flush_or_neither() {
    let cases = [
        // Write cache and FUA support, with the commands of a durable write and of a flush.
        (false, true, vec![op::WRITE_10], false, vec![]),
        (true, true, vec![op::WRITE_10], true, vec![op::SYNCHRONIZE_CACHE_10]),
        (true, false, vec![op::WRITE_10, op::SYNCHRONIZE_CACHE_10], false, vec![op::SYNCHRONIZE_CACHE_10]),
    ];
    for (write_cache, dpofua, write, flag, flush) in cases {
        let mut bed = Bed::ready(Target { write_cache, dpofua, ..Target::new() });
        bed.buffers.insert(1, vec![0; BLOCK]);
        bed.submit(1, Op::Write, 100, 1, true);
        assert_eq!((bed.operations(), bed.sent[0][1] & 8 != 0), (write, flag));
        bed.sent.clear();
        bed.submit(2, Op::Flush, 0, 0, false);
        assert_eq!(bed.operations(), flush);
        // Commands without an FUA bit are followed by a flush.
        bed.sent.clear();
        bed.submit(3, Op::WriteZeroes { unmap: false }, 200, 1, true);
        let expected =
            if write_cache { vec![op::WRITE_SAME_16, op::SYNCHRONIZE_CACHE_10] } else { vec![op::WRITE_SAME_16] };
        assert_eq!(bed.operations(), expected);
        // The data of a read may have been in the cache only.
        bed.sent.clear();
        bed.buffers.insert(4, vec![0; BLOCK]);
        bed.submit(4, Op::Read, 100, 1, true);
        let expected =
            if write_cache && !dpofua { vec![op::READ_10, op::SYNCHRONIZE_CACHE_10] } else { vec![op::READ_10] };
        assert_eq!((bed.operations(), bed.sent[0][1] & 8 != 0), (expected, flag));
        assert!(bed.done.values().all(Result::is_ok));
    }
}

#[test]
fn a_disk_without_flush_gets_none_but_honours_fua() {
    let mut bed = Bed::ready(Target { write_cache: true, synchronize: false, ..Target::new() });
    bed.submit(1, Op::Flush, 0, 0, false);
    bed.submit(2, Op::Flush, 0, 0, false);
    assert_eq!(bed.operations(), [op::SYNCHRONIZE_CACHE_10], "requested once");
    bed.sent.clear();
    bed.buffers.insert(3, vec![0; BLOCK]);
    bed.submit(3, Op::Write, 100, 1, true);
    assert_eq!((bed.operations(), bed.sent[0][1] & 8), (vec![op::WRITE_10], 8));
    let mut bed = Bed::ready(Target { write_cache: true, dpofua: false, synchronize: false, ..Target::new() });
    bed.buffers.insert(1, vec![0; BLOCK]);
    bed.submit(1, Op::Write, 100, 1, true);
    assert_eq!(bed.operations(), [op::WRITE_10, op::SYNCHRONIZE_CACHE_10]);
    bed.submit(2, Op::Flush, 0, 0, false);
    assert_eq!(bed.sent.len(), 2, "requested once");
    assert!(bed.done.values().all(Result::is_ok));
}

#[test]
fn zeros_are_written_in_the_cheapest_way_that_the_target_supports() {
    let mut bed = Bed::ready(Target::new());
    bed.submit(1, Op::WriteZeroes { unmap: true }, 0, 1500, false);
    assert_eq!(bed.operations(), [op::WRITE_SAME_16; 2]);
    assert!(bed.sent.iter().all(|cdb| cdb[1] == 8), "blocks are given back");
    bed.sent.clear();
    bed.submit(2, Op::WriteZeroes { unmap: false }, 0, 8, false);
    assert_eq!(bed.sent[0][1], 0);
    assert!(bed.target.medium[..1500 * BLOCK].iter().all(|byte| *byte == 0));

    // A target without WRITE SAME gets it in two forms, and then writes of zeros.
    let mut bed = Bed::ready(Target { write_same: false, ..Target::new() });
    bed.submit(1, Op::WriteZeroes { unmap: true }, 0, 100, false);
    assert_eq!(bed.operations(), [op::WRITE_SAME_16, op::WRITE_SAME_16, op::WRITE_10, op::WRITE_10]);
    assert_eq!(bed.done[&1], Ok(Done::All));
    bed.sent.clear();
    bed.submit(2, Op::WriteZeroes { unmap: true }, 100, 64, false);
    assert_eq!(bed.operations(), [op::WRITE_10]);
    assert!(bed.target.medium[..164 * BLOCK].iter().all(|byte| *byte == 0));
    assert_eq!(bed.target.medium[164 * BLOCK], 0x11);
}

#[test]
fn blocks_are_unmapped_if_the_disk_supports_it() {
    let mut bed = Bed::ready(Target::new());
    bed.submit(1, Op::Unmap, 10, 250, false);
    assert_eq!(bed.operations(), [op::UNMAP; 3]);
    assert!(bed.target.medium[10 * BLOCK..260 * BLOCK].iter().all(|byte| *byte == 0));
    assert_eq!(bed.target.medium[260 * BLOCK], 0x11);

    let mut bed = Bed::ready(Target { provisioned: false, ..Target::new() });
    bed.submit(1, Op::Unmap, 10, 250, false);
    assert_eq!((bed.sent.len(), bed.done[&1].clone()), (0, Ok(Done::All)));
}

#[test]
fn the_mapping_is_reported_in_runs() {
    let mut bed = Bed::ready(Target::new());
    bed.target.medium[8 * BLOCK..16 * BLOCK].fill(0);
    let data = |blocks| Run { blocks, mapped: true, zero: false };
    bed.submit(1, Op::Status, 4, 20, false);
    let hole = Run { blocks: 8, mapped: false, zero: true };
    assert_eq!(bed.done[&1], Ok(Done::Runs(vec![data(4), hole, data(8)])));

    let mut bed = Bed::ready(Target { provisioned: false, ..Target::new() });
    bed.submit(1, Op::Status, 4, 20, false);
    assert_eq!((bed.sent.len(), bed.done[&1].clone()), (0, Ok(Done::Runs(vec![data(20)]))));
}

#[test]
fn requests_beyond_the_end_fail_without_a_command() {
    let mut bed = Bed::ready(Target::new());
    for (tag, lba, blocks) in [(1, BLOCKS, 1), (2, BLOCKS - 1, 2), (3, u64::MAX, 8)] {
        bed.read(tag, lba, blocks);
        assert_eq!(bed.done[&tag], Err(Error { kind: ErrorKind::OutOfRange, sense: None }));
    }
    assert!(bed.sent.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any limits and any order of completion, the medium has the written data and every
    /// request ends once.
    #[test]
    fn the_medium_holds_the_written_data(
        (depth, transfer) in (1..6_u16, 1..80_u32),
        steps in proptest::collection::vec((0..4_u8, 0..1800_u64, 1..200_u32, any::<prop::sample::Index>()), 1..30),
    ) {
        let config = DiskConfig {
            queue_depth: depth,
            max_transfer_bytes: transfer * BLOCK as u32,
            ..DiskConfig::default()
        };
        let mut bed = Bed::ready_with(config, Target::new());
        bed.hold = true;
        let mut model = bed.target.medium.clone();
        for (tag, (what, lba, blocks, order)) in steps.into_iter().enumerate() {
            let (tag, range) = (tag as u64, lba as usize * BLOCK..(lba as usize + blocks as usize) * BLOCK);
            match what {
                0 => {
                    bed.submit(tag, Op::WriteZeroes { unmap: blocks % 2 == 0 }, lba, blocks, false);
                    model[range].fill(0);
                }
                1 => {
                    bed.submit(tag, Op::Unmap, lba, blocks, false);
                    model[range].fill(0);
                }
                2 => bed.read(tag, lba, blocks),
                _ => {
                    bed.write(tag, lba, blocks, tag as u8);
                    model[range].fill(tag as u8);
                }
            }
            while !bed.open.is_empty() {
                let index = order.index(bed.open.len());
                bed.answer(index);
            }
            prop_assert_eq!(&bed.done[&tag], &Ok(Done::All));
        }
        prop_assert!(bed.target.medium == model);
        prop_assert_eq!(bed.disk.open_requests(), 0);
    }
}
