//! Random commands, compared with a model in which a disk is an array of blocks.

use super::bench::{BLOCK, BLOCKS, Bench, config};
use proptest::prelude::*;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};

/// Each byte represents a block filled with it.
type Model = [u8; BLOCKS as usize];

#[derive(Clone, Debug)]
enum Command {
    Read { lba: u64, blocks: u32 },
    Write { lba: u64, blocks: u32, byte: u8, verify: bool },
    Same { lba: u64, blocks: u32, byte: u8, unmap: bool },
    Zeroes { lba: u64, blocks: u32, unmap: bool },
    Swap { lba: u64, blocks: u8, old: u8, new: u8 },
    Unmap { ranges: Vec<(u64, u32)> },
    Verify { lba: u64, blocks: u32, byte: u8, one: bool },
}

fn any_command() -> impl Strategy<Value = Command> {
    let lba = 0..BLOCKS + 4;
    let blocks = 0_u32..20;
    // Few different values, so that comparisons sometimes succeed.
    let byte = 0_u8..3;
    let range = (lba.clone(), blocks.clone());
    prop_oneof![
        range.clone().prop_map(|(lba, blocks)| Command::Read { lba, blocks }),
        (range.clone(), byte.clone(), any::<bool>()).prop_map(|((lba, blocks), byte, verify)| Command::Write {
            lba,
            blocks,
            byte,
            verify
        }),
        (range.clone(), byte.clone(), any::<bool>()).prop_map(|((lba, blocks), byte, unmap)| Command::Same {
            lba,
            blocks,
            byte,
            unmap
        }),
        (range.clone(), any::<bool>()).prop_map(|((lba, blocks), unmap)| Command::Zeroes { lba, blocks, unmap }),
        (lba, 0_u8..4, byte.clone(), byte.clone()).prop_map(|(lba, blocks, old, new)| Command::Swap {
            lba,
            blocks,
            old,
            new
        }),
        prop::collection::vec(range.clone(), 0..4).prop_map(|ranges| Command::Unmap { ranges }),
        (range, byte, any::<bool>()).prop_map(|((lba, blocks), byte, one)| Command::Verify { lba, blocks, byte, one }),
    ]
}

/// Range as indices, if it lies within the disk.
fn part(lba: u64, blocks: u32) -> Option<std::ops::Range<usize>> {
    let end = lba + u64::from(blocks);
    (end <= BLOCKS).then_some(lba as usize..end as usize)
}

/// Applies the command to the model and returns whether it should succeed.
fn expect(model: &mut Model, command: &Command) -> bool {
    let fill = |model: &mut Model, lba, blocks, byte| part(lba, blocks).map(|at| model[at].fill(byte)).is_some();
    match *command {
        Command::Read { lba, blocks } => part(lba, blocks).is_some(),
        Command::Write { lba, blocks, byte, .. } => fill(model, lba, blocks, byte),
        Command::Same { lba, blocks, byte, .. } => blocks > 0 && fill(model, lba, blocks, byte),
        Command::Zeroes { lba, blocks, .. } => blocks > 0 && fill(model, lba, blocks, 0),
        Command::Swap { lba, blocks, old, new } => {
            let same = part(lba, blocks.into()).filter(|at| model[at.clone()].iter().all(|&byte| byte == old));
            same.map(|at| model[at].fill(new)).is_some()
        }
        Command::Unmap { ref ranges } => {
            let fits = ranges.iter().all(|&(lba, blocks)| part(lba, blocks).is_some());
            fits && ranges.iter().all(|&(lba, blocks)| fill(model, lba, blocks, 0))
        }
        Command::Verify { lba, blocks, byte, .. } => {
            part(lba, blocks).is_some_and(|at| model[at].iter().all(|&other| other == byte))
        }
    }
}

fn encode(command: &Command) -> (Cdb, Vec<u8>) {
    let filled = |blocks: u32, byte: u8| vec![byte; blocks as usize * BLOCK];
    match *command {
        Command::Read { lba, blocks } => (Cdb::Read { lba, blocks, fua: false }, Vec::new()),
        Command::Write { lba, blocks, byte, verify: true } => {
            (Cdb::WriteAndVerify { lba, blocks, byte_check: 0 }, filled(blocks, byte))
        }
        Command::Write { lba, blocks, byte, .. } => (Cdb::Write { lba, blocks, fua: true }, filled(blocks, byte)),
        Command::Same { lba, blocks, byte, unmap } => {
            let unmap = unmap && byte == 0;
            (Cdb::WriteSame { lba, blocks, unmap, anchor: false, no_data: false }, filled(1, byte))
        }
        Command::Zeroes { lba, blocks, unmap } => {
            (Cdb::WriteSame { lba, blocks, unmap, anchor: false, no_data: true }, Vec::new())
        }
        Command::Swap { lba, blocks, old, new } => {
            let data = [filled(blocks.into(), old), filled(blocks.into(), new)].concat();
            (Cdb::CompareAndWrite { lba, blocks, fua: false }, data)
        }
        Command::Unmap { ref ranges } => {
            let ranges: Vec<_> = ranges.iter().map(|&(lba, blocks)| BlockDescriptor { lba, blocks }).collect();
            let mut list = Vec::new();
            unmap::emit(&ranges, &mut list);
            (Cdb::Unmap { anchor: false, list_len: list.len() as u16 }, list)
        }
        Command::Verify { lba, blocks, byte, one } => {
            let data = filled(if one { 1 } else { blocks }, byte);
            (Cdb::Verify { lba, blocks, byte_check: if one { 3 } else { 1 } }, data)
        }
    }
}

proptest! {
    #[test]
    fn a_disk_behaves_like_an_array_of_blocks(commands in prop::collection::vec(any_command(), 1..60)) {
        let mut bench = Bench::new(config());
        let nexus = bench.host(1, 0);
        let mut model: Model = [0; BLOCKS as usize];
        for command in &commands {
            let good = expect(&mut model, command);
            let (cdb, out) = encode(command);
            let response = bench.run(nexus, 0, cdb, &out);
            prop_assert_eq!(response.status == status::GOOD, good, "{:?} {:?}", command, response.sense);
            if let (Command::Read { lba, blocks }, true) = (command, good) {
                let expected: Vec<u8> = model[part(*lba, *blocks).unwrap()].iter().flat_map(|&b| [b; BLOCK]).collect();
                prop_assert_eq!(&response.data, &expected);
            }
        }
        let all: Vec<u8> = model.iter().flat_map(|&byte| [byte; BLOCK]).collect();
        prop_assert!(bench.disks[0].bytes == all);
    }
}
