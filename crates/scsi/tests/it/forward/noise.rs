//! Random PDUs of back ends: the host gets PDUs in order, every command ends, and no state is left.

use crate::forward::bed::{Bed, Setup};
use crate::forward::cases::shapes;
use crate::forward::disk::BLOCK;
use sanloom_scsi::iscsi::forward::Conn;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::time::Span;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::{Bhs, Head, at};

const BACK_ENDS: u8 = 2;

/// Generates a nearly valid PDU of a target: an existing type, for a command that may exist.
fn noise(chance: &mut SplitMix64) -> (Head, Vec<u8>) {
    const OPCODES: [u8; 8] = [0x20, 0x21, 0x22, 0x25, 0x25, 0x31, 0x32, 0x3f];
    let mut bhs = Bhs([0; 48]);
    bhs.0[0] = OPCODES[chance.index(OPCODES.len())];
    bhs.0[1] = chance.bits() as u8;
    bhs.0[3] = [0, 0, 2, 8][chance.index(4)];
    let slot = chance.below(4) as u32;
    let part = chance.below(3) as u32;
    let abort = u32::from(chance.chance(20));
    let tag = if chance.chance(10) { chance.bits() as u32 } else { slot | part << 16 | abort << 28 };
    bhs.set_word(at::INITIATOR_TAG, tag);
    bhs.set_word(at::TARGET_TAG, chance.below(3) as u32);
    bhs.set_word(at::CMD_SN, chance.below(9) as u32);
    bhs.set_word(at::EXP_SN, 1);
    bhs.set_word(at::MAX_CMD_SN, chance.below(12) as u32);
    bhs.set_word(at::DATA_SN, chance.below(3) as u32);
    bhs.set_word(at::OFFSET, chance.below(6) as u32 * 512);
    bhs.set_word(at::LENGTH, chance.below(6) as u32 * 512);
    let bytes = if chance.chance(50) { 0 } else { chance.below(1500) as usize };
    let data = (0..bytes).map(|_| chance.bits() as u8).collect();
    (Head::parse(&bhs.0), data)
}

#[test]
fn random_pdus_of_a_back_end_affect_no_other_and_leak_nothing() {
    let (mut closed, mut ended) = (0, 0);
    for seed in 0..2000 {
        let mut chance = SplitMix64(seed);
        let mut bed = Bed::new(Setup::Forwarding, &shapes(), seed);
        for id in 1000..1003 {
            bed.submit(id, Cdb::TestUnitReady, DataDirection::None, Vec::new());
            bed.run_until_idle();
        }
        bed.done.clear();
        for id in 0..8 {
            let (lba, blocks) = (chance.below(48), 1 + chance.below(16) as u32);
            let data = vec![1; blocks as usize * BLOCK];
            match chance.chance(50) {
                true => bed.submit(id, Cdb::Read { lba, blocks, fua: false }, DataDirection::Read, data),
                false => bed.submit(id, Cdb::Write { lba, blocks, fua: false }, DataDirection::Write, data),
            }
            for _ in 0..chance.below(12) {
                bed.step();
            }
            let (head, data) = noise(&mut chance);
            bed.back_sends(chance.below(BACK_ENDS.into()) as u8, head, &data);
            for _ in 0..chance.below(12) {
                bed.step();
            }
            // Close connections as a driver does.
            for (conn, _) in std::mem::take(&mut bed.closed) {
                let Conn::Back(back) = conn else { panic!("the host has done nothing wrong") };
                closed += 1;
                bed.cut(back);
                bed.connect(back);
            }
        }
        for back in 0..BACK_ENDS {
            bed.cut(back);
        }
        bed.run_until_idle();
        (0..BACK_ENDS).for_each(|back| bed.forward.end_lost_writes(back, &mut bed.volumes));
        // The host aborts its remaining commands, and the switch responds that they do not exist.
        for _ in 0..2 {
            bed.wait(Span::from_secs(31));
            bed.run_until_idle();
        }
        ended += bed.done.len();
        assert_eq!(bed.forward.tasks(), 0, "seed {seed}");
        bed.assert_idle();
    }
    assert_eq!(ended, 8 * 2000, "every command ends once");
    assert!(closed > 0);
}
