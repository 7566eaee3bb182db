//! Whatever back ends say, the host gets PDUs in order, every command ends, and nothing is left behind.

use crate::bed::{Bed, Way};
use crate::cases::shapes;
use crate::disk::BLOCK;
use sanloom_core::fcp::DataDirection;
use sanloom_core::iscsi::forward::Conn;
use sanloom_core::random::SplitMix64;
use sanloom_core::time::Span;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::{Bhs, Head, at};

const BACK_ENDS: u8 = 2;

/// A PDU of a target that is nearly right: one of a kind that exists, about a command that may be there.
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
    (Head::parse(&bhs.0).unwrap(), data)
}

#[test]
fn back_ends_that_say_anything_harm_no_other_and_leave_nothing_behind() {
    let (mut closed, mut ended) = (0, 0);
    for seed in 0..2000 {
        let mut chance = SplitMix64(seed);
        let mut bed = Bed::new(Way::Forwarding, &shapes(), seed);
        for id in 1000..1003 {
            bed.submit(id, Cdb::TestUnitReady, DataDirection::None, Vec::new());
            bed.settle();
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
            bed.back_says(chance.below(BACK_ENDS.into()) as u8, head, &data);
            for _ in 0..chance.below(12) {
                bed.step();
            }
            // As a driver does it.
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
        bed.settle();
        (0..BACK_ENDS).for_each(|back| bed.forward.ended_at(back, &mut bed.volumes));
        // What the host still waits for it gives up, and hears that it is gone.
        for _ in 0..2 {
            bed.wait(Span::from_secs(31));
            bed.settle();
        }
        ended += bed.done.len();
        assert_eq!(bed.forward.tasks(), 0, "seed {seed}");
        bed.assert_idle();
    }
    assert_eq!(ended, 8 * 2000, "every command ends once");
    assert!(closed > 0);
}
