//! Random commands against a model: a disk is an array of blocks.

use super::bench::{BLOCK, BLOCKS, Bench, config};
use proptest::prelude::*;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};

/// One byte stands for a block that is filled with it.
type Model = [u8; BLOCKS as usize];

#[derive(Clone, Debug)]
enum Deed {
    Read { lba: u64, blocks: u32 },
    Write { lba: u64, blocks: u32, byte: u8, verify: bool },
    Same { lba: u64, blocks: u32, byte: u8, unmap: bool },
    Zeroes { lba: u64, blocks: u32, unmap: bool },
    Swap { lba: u64, blocks: u8, old: u8, new: u8 },
    Unmap { ranges: Vec<(u64, u32)> },
    Verify { lba: u64, blocks: u32, byte: u8, one: bool },
}

fn deed() -> impl Strategy<Value = Deed> {
    let lba = 0..BLOCKS + 4;
    let blocks = 0_u32..20;
    // Few values, so that comparisons succeed now and then.
    let byte = 0_u8..3;
    let range = (lba.clone(), blocks.clone());
    prop_oneof![
        range.clone().prop_map(|(lba, blocks)| Deed::Read { lba, blocks }),
        (range.clone(), byte.clone(), any::<bool>()).prop_map(|((lba, blocks), byte, verify)| Deed::Write {
            lba,
            blocks,
            byte,
            verify
        }),
        (range.clone(), byte.clone(), any::<bool>()).prop_map(|((lba, blocks), byte, unmap)| Deed::Same {
            lba,
            blocks,
            byte,
            unmap
        }),
        (range.clone(), any::<bool>()).prop_map(|((lba, blocks), unmap)| Deed::Zeroes { lba, blocks, unmap }),
        (lba, 0_u8..4, byte.clone(), byte.clone()).prop_map(|(lba, blocks, old, new)| Deed::Swap {
            lba,
            blocks,
            old,
            new
        }),
        prop::collection::vec(range.clone(), 0..4).prop_map(|ranges| Deed::Unmap { ranges }),
        (range, byte, any::<bool>()).prop_map(|((lba, blocks), byte, one)| Deed::Verify { lba, blocks, byte, one }),
    ]
}

/// The range as indices, if it lies within the disk.
fn part(lba: u64, blocks: u32) -> Option<std::ops::Range<usize>> {
    let end = lba + u64::from(blocks);
    (end <= BLOCKS).then_some(lba as usize..end as usize)
}

/// Whether the command should succeed, after it was done to the model.
fn expect(model: &mut Model, deed: &Deed) -> bool {
    let fill = |model: &mut Model, lba, blocks, byte| part(lba, blocks).map(|at| model[at].fill(byte)).is_some();
    match *deed {
        Deed::Read { lba, blocks } => part(lba, blocks).is_some(),
        Deed::Write { lba, blocks, byte, .. } => fill(model, lba, blocks, byte),
        Deed::Same { lba, blocks, byte, .. } => blocks > 0 && fill(model, lba, blocks, byte),
        Deed::Zeroes { lba, blocks, .. } => blocks > 0 && fill(model, lba, blocks, 0),
        Deed::Swap { lba, blocks, old, new } => {
            let same = part(lba, blocks.into()).filter(|at| model[at.clone()].iter().all(|&byte| byte == old));
            same.map(|at| model[at].fill(new)).is_some()
        }
        Deed::Unmap { ref ranges } => {
            let fits = ranges.iter().all(|&(lba, blocks)| part(lba, blocks).is_some());
            fits && ranges.iter().all(|&(lba, blocks)| fill(model, lba, blocks, 0))
        }
        Deed::Verify { lba, blocks, byte, .. } => {
            part(lba, blocks).is_some_and(|at| model[at].iter().all(|&other| other == byte))
        }
    }
}

fn command(deed: &Deed) -> (Cdb, Vec<u8>) {
    let filled = |blocks: u32, byte: u8| vec![byte; blocks as usize * BLOCK];
    match *deed {
        Deed::Read { lba, blocks } => (Cdb::Read { lba, blocks, fua: false }, Vec::new()),
        Deed::Write { lba, blocks, byte, verify: true } => {
            (Cdb::WriteAndVerify { lba, blocks, byte_check: 0 }, filled(blocks, byte))
        }
        Deed::Write { lba, blocks, byte, .. } => (Cdb::Write { lba, blocks, fua: true }, filled(blocks, byte)),
        Deed::Same { lba, blocks, byte, unmap } => {
            let unmap = unmap && byte == 0;
            (Cdb::WriteSame { lba, blocks, unmap, anchor: false, no_data: false }, filled(1, byte))
        }
        Deed::Zeroes { lba, blocks, unmap } => {
            (Cdb::WriteSame { lba, blocks, unmap, anchor: false, no_data: true }, Vec::new())
        }
        Deed::Swap { lba, blocks, old, new } => {
            let data = [filled(blocks.into(), old), filled(blocks.into(), new)].concat();
            (Cdb::CompareAndWrite { lba, blocks, fua: false }, data)
        }
        Deed::Unmap { ref ranges } => {
            let ranges: Vec<_> = ranges.iter().map(|&(lba, blocks)| BlockDescriptor { lba, blocks }).collect();
            let mut list = Vec::new();
            unmap::emit(&ranges, &mut list);
            (Cdb::Unmap { anchor: false, list_len: list.len() as u16 }, list)
        }
        Deed::Verify { lba, blocks, byte, one } => {
            let data = filled(if one { 1 } else { blocks }, byte);
            (Cdb::Verify { lba, blocks, byte_check: if one { 3 } else { 1 } }, data)
        }
    }
}

proptest! {
    #[test]
    fn a_disk_does_what_an_array_does(deeds in prop::collection::vec(deed(), 1..60)) {
        let mut bench = Bench::new(config());
        let nexus = bench.host(1, 0);
        let mut model: Model = [0; BLOCKS as usize];
        for deed in &deeds {
            let good = expect(&mut model, deed);
            let (cdb, out) = command(deed);
            let response = bench.run(nexus, 0, cdb, &out);
            prop_assert_eq!(response.status == status::GOOD, good, "{:?} {:?}", deed, response.sense);
            if let (Deed::Read { lba, blocks }, true) = (deed, good) {
                let expected: Vec<u8> = model[part(*lba, *blocks).unwrap()].iter().flat_map(|&b| [b; BLOCK]).collect();
                prop_assert_eq!(&response.data, &expected);
            }
        }
        let all: Vec<u8> = model.iter().flat_map(|&byte| [byte; BLOCK]).collect();
        prop_assert!(bench.disks[0].bytes == all);
    }
}
