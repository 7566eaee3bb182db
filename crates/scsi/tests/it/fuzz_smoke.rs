//! Short fuzzing campaign on the stable toolchain: the entry points of the fuzz targets with a
//! fixed set of pseudo-random inputs.

use crate::entry_points;
use sanloom_scsi::iscsi::forward::Counters;
use sanloom_scsi::random::SplitMix64;

const INPUTS: u64 = 4_000;

/// Keys that advance a login.
const TEXTS: [&str; 9] = [
    "InitiatorName=iqn.2026-11.net.example:host\0TargetName=iqn.2026-11.net.example:disk\0SessionType=Normal\0",
    "InitiatorName=iqn.2026-11.net.example:host\0TargetName=iqn.2026-11.net.example:asks\0AuthMethod=CHAP\0",
    "CHAP_A=7,5\0",
    "CHAP_N=host\0CHAP_R=0x00112233445566778899aabbccddeeff\0CHAP_I=1\0CHAP_C=0x0102030405060708\0",
    "HeaderDigest=CRC32C,None\0DataDigest=None\0MaxRecvDataSegmentLength=8192\0InitialR2T=No\0",
    "InitiatorName=iqn.2026-11.net.example:host\0SessionType=Discovery\0MaxBurstLength=512\0",
    "AuthMethod=CHAP\0TargetPortalGroupTag=1\0",
    "CHAP_A=5\0CHAP_I=9\0CHAP_C=0x00112233445566778899aabbccddeeff\0",
    "TargetAddress=192.0.2.9:3260,1\0",
];

fn input(chance: &mut SplitMix64) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..1 + chance.below(6) {
        if chance.chance(50) {
            let text = TEXTS[chance.index(TEXTS.len())];
            let flags = [0x87, 0x81, 0x83, 0x04, 0x00, 0x40][chance.index(6)];
            input.extend([flags, 0, text.len() as u8, 0]);
            input.extend_from_slice(text.as_bytes());
        } else {
            input.extend((0..chance.below(120)).map(|_| chance.bits() as u8));
        }
    }
    for _ in 0..chance.below(3) {
        if !input.is_empty() {
            let at = chance.index(input.len());
            input[at] = chance.bits() as u8;
        }
    }
    input
}

/// Generates one byte and records of six bytes that are nearly valid PDUs. For the Data Mover:
/// sender, type, flags, tag, place, length. For the initiator: type, flags, tag, place, status,
/// length, followed by that many bytes.
fn records(chance: &mut SplitMix64, of_mover: bool) -> Vec<u8> {
    let mut records = vec![chance.bits() as u8 | u8::from(!of_mover)];
    for _ in 0..1 + chance.below(40) {
        let usual = if of_mover { [1; 4] } else { [0, 0, 5, 6] };
        let kind = if chance.chance(60) { usual[chance.index(4)] } else { chance.below(12) as u8 };
        let flags = [0x80, 0x81, 0xc0, 0xa0, 0x20, 0x01][chance.index(6)];
        let tag = if chance.chance(80) { chance.below(5) as u8 } else { chance.bits() as u8 };
        let place = if chance.chance(50) { 0 } else { chance.bits() as u8 };
        let length = [0, 0, 0, 1, 127, 128][chance.index(6)];
        let record = match of_mover {
            _ if chance.chance(10) => [0; 6].map(|_| chance.bits() as u8),
            true => [chance.below(6) as u8, kind, flags, tag, place, length],
            false => [kind, flags, tag, place, chance.below(4) as u8, length],
        };
        records.extend(record);
        if !of_mover {
            records.extend((0..record[5]).map(|_| chance.bits() as u8));
        }
    }
    records
}

/// A fuzz target is useful only if its inputs reach deep into the code: commands are forwarded,
/// split, moved, solicited and aborted.
#[test]
fn the_mover_forwards_what_it_reads() {
    let mut all = Counters::default();
    (0..INPUTS).for_each(|number| all.add(&entry_points::moved(&records(&mut SplitMix64(number), true))));
    println!("{all:?}");
    let Counters { forwarded, split, read_bytes, written_bytes, aborts, .. } = all;
    assert!(forwarded > INPUTS / 2 && split > INPUTS / 8 && aborts > 50, "{all:?}");
    assert!(read_bytes > 10_000 && written_bytes > 100_000, "{all:?}");
}

/// Data of the host for an R2T of a task that an ABORT TASK has ended meanwhile, while its back
/// ends still write.
const DATA_AFTER_ABORT: [u8; 81] = [
    98, 33, 0, 48, 48, 48, 48, 48, 48, 224, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 27, 48, 48, 48, 32, 0, 0, 193, 193,
    0, 18, 193, 193, 27, 0, 0, 250, 5, 153, 152, 152, 193, 193, 0, 18, 193, 193, 27, 0, 0, 250, 5, 153, 152, 152, 153,
    152, 152, 48, 48, 48, 48, 48, 48, 48, 48, 161, 9, 90, 64, 35, 152, 32, 0, 126, 32, 33, 1, 33, 152, 0,
];

#[test]
fn data_for_an_aborted_task_that_back_ends_still_write_are_discarded() {
    let counters = entry_points::moved(&DATA_AFTER_ABORT);
    assert!(counters.aborts > 0 && counters.forwarded > 0, "{counters:?}");
}

#[test]
fn the_initiator_gets_answers() {
    let ended = |number| entry_points::initiator::answered(&records(&mut SplitMix64(number), false)[1..]) as u64;
    let all: u64 = (0..INPUTS).map(ended).sum();
    println!("{all} commands have ended");
    assert!(all > INPUTS / 4, "{all}");
}

#[test]
fn pseudo_random_inputs_violate_no_guarantee() {
    for (target, (name, run)) in entry_points::ALL.iter().enumerate() {
        for number in 0..INPUTS {
            let mut chance = SplitMix64(target as u64 * INPUTS + number);
            let input = match number % 3 {
                0 => input(&mut chance),
                kind => records(&mut chance, kind == 1),
            };
            let outcome = std::panic::catch_unwind(|| run(&input));
            assert!(outcome.is_ok(), "{name}, input {number}: {input:02x?}");
        }
    }
}

/// Each entry point has a fuzz target, and the soak runs every target.
#[test]
fn every_entry_point_has_its_fuzz_target() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/");
    let manifest = std::fs::read_to_string(format!("{folder}Cargo.toml")).unwrap();
    for (name, _) in entry_points::ALL {
        let target = std::fs::read_to_string(format!("{folder}fuzz_targets/{name}.rs")).unwrap();
        let run = format!("entry_points::{}(data)", name.trim_start_matches("iscsi_"));
        assert!(target.contains(&run) && manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
