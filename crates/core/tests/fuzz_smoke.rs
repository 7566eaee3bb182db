//! A short fuzzing campaign on the stable toolchain: the entry points of the fuzz targets on a fixed set of pseudo-random inputs.

mod entry_points;

use sanloom_core::random::SplitMix64;

const INPUTS: u64 = 4_000;

/// Keys that take a login somewhere.
const TEXTS: [&str; 6] = [
    "InitiatorName=iqn.2026-11.net.example:host\0TargetName=iqn.2026-11.net.example:disk\0SessionType=Normal\0",
    "InitiatorName=iqn.2026-11.net.example:host\0TargetName=iqn.2026-11.net.example:asks\0AuthMethod=CHAP\0",
    "CHAP_A=7,5\0",
    "CHAP_N=host\0CHAP_R=0x00112233445566778899aabbccddeeff\0CHAP_I=1\0CHAP_C=0x0102030405060708\0",
    "HeaderDigest=CRC32C,None\0DataDigest=None\0MaxRecvDataSegmentLength=8192\0InitialR2T=No\0",
    "InitiatorName=iqn.2026-11.net.example:host\0SessionType=Discovery\0MaxBurstLength=512\0",
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

#[test]
fn pseudo_random_inputs_keep_every_promise() {
    for (target, (name, run)) in entry_points::ALL.iter().enumerate() {
        for number in 0..INPUTS {
            let input = input(&mut SplitMix64(target as u64 * INPUTS + number));
            let outcome = std::panic::catch_unwind(|| run(&input));
            assert!(outcome.is_ok(), "{name}, input {number}: {input:02x?}");
        }
    }
}

/// Each has a target, and the soak runs every target that is there.
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
