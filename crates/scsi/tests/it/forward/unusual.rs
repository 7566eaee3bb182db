//! Unusual commands, hosts with few R2Ts or one command at a time, and targets that shut down.

use crate::forward::bed::{Bed, Shapes};
use crate::forward::cases::{BUSY, GOOD, bed, bed_of, ended, read, shapes, write};
use crate::forward::disk::BLOCK;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::{CloseReason, Conn, Kept};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{attribute, flag};
use sanloom_wire::iscsi::{AsyncEvent, AsyncMessage, Head, Header, NO_TAG, ScsiCommand};

/// Initiator task tag of a command that the host's own session does not know.
const TAG: u32 = 0x5555;

/// Builds a read of one block with these flags, in addition to `flag::READ`.
fn read_with(flags: u8, initiator_tag: u32, cmd_sn: u32) -> Head {
    let cdb = Cdb::Read { lba: 0, blocks: 1, fua: false }.to_bytes();
    let (lun, expected_bytes, exp_stat_sn) = ([0; 8], BLOCK as u32, 1);
    let flags = flag::READ | flags;
    Head::new(ScsiCommand { flags, lun, initiator_tag, expected_bytes, cmd_sn, exp_stat_sn, cdb })
}

#[test]
fn ordered_commands_and_additional_headers_take_the_conventional_path() {
    let head = |attribute: u8, cmd_sn: u32| read_with(flag::FINAL | attribute, TAG, cmd_sn);
    type Case = (&'static str, u64, fn(&dyn Fn(u8, u32) -> Head, u32) -> Vec<Head>);
    let cases: [Case; 7] = [
        ("untagged, which is as simple", 0, |head, next| vec![head(attribute::UNTAGGED, next)]),
        ("ordered", 1, |head, next| vec![head(attribute::ORDERED, next)]),
        ("head of queue", 1, |head, next| vec![head(attribute::HEAD_OF_QUEUE, next)]),
        ("ACA", 1, |head, next| vec![head(attribute::ACA, next)]),
        ("immediate", 1, |head, next| vec![Head { immediate: true, ..head(attribute::SIMPLE, next) }]),
        ("additional headers", 1, |head, next| vec![Head { ahs_words: 2, ..head(attribute::SIMPLE, next) }]),
        // The command before it is kept too, because this one waits for it.
        ("out of turn", 2, |head, next| {
            vec![head(attribute::SIMPLE, next + 1), read_with(flag::FINAL | attribute::SIMPLE, TAG + 1, next)]
        }),
    ];
    for (what, kept, heads) in cases {
        let mut bed = bed();
        read(&mut bed, 1, 0, 1);
        let (_, before) = bed.last_command();
        bed.run_until_idle();
        let counted = bed.counters();
        assert_eq!((ended(&mut bed, 1), counted.forwarded), (GOOD, 1), "{what}");
        for head in heads(&head, before + 1) {
            bed.host_sends(head);
        }
        bed.run_until_idle();
        let (now, unusual) = (bed.counters(), Kept::Unusual as usize);
        assert_eq!(now.kept[unusual] - counted.kept[unusual], kept, "{what}");
        assert_eq!(now.forwarded - counted.forwarded, u64::from(kept == 0), "{what}");
        let is_good = |head: &Head| matches!(head.header, Header::DataIn(data) if data.initiator_tag == TAG && data.flags & flag::STATUS != 0 && data.status == 0);
        assert!(bed.received.iter().any(is_good), "{what}: {:?}", bed.received);
    }
}

#[test]
fn open_r2ts_of_all_back_ends_are_limited_to_the_agreed_number() {
    for most in [1, 2, 5] {
        let both = Parameters {
            initial_r2t: true,
            immediate_data: false,
            max_burst_bytes: 2 * BLOCK as u32,
            max_outstanding_r2t: 8,
            ..Parameters::default()
        };
        let front = Parameters { max_outstanding_r2t: most, ..both };
        let mut bed = bed_of(Shapes { front, back: both, ..shapes() });
        // Eight blocks at each of two back ends make four R2Ts from each.
        write(&mut bed, 1, 40, 16);
        let (mut closed, mut highest) = (0, 0);
        while bed.done.is_empty() {
            (0..2).for_each(|back| bed.back_does(back));
            (0..2).for_each(|back| bed.back_alone(back));
            bed.deliver_all_to_host();
            let r2ts = bed.received.iter().filter(|head| matches!(head.header, Header::R2t(_))).count();
            assert!(r2ts - closed <= most.into(), "{} R2Ts are open, of {most}", r2ts - closed);
            highest = highest.max(r2ts - closed);
            let Some(next) = bed.next_of_host() else { continue };
            closed += usize::from(matches!(next.header, Header::DataOut(data) if data.flags & flag::FINAL != 0));
            bed.host_once();
        }
        assert_eq!((ended(&mut bed, 1), highest, closed), (GOOD, most.into(), 8));
        assert_eq!(bed.content()[40 * BLOCK..56 * BLOCK], [1; 16 * BLOCK]);
        assert_eq!(bed.counters().split, 1);
        bed.assert_idle();
    }
}

/// RFC 7143, section 11.9.1: an initiator that receives such an event does not wait for the
/// connection to be dropped.
#[test]
fn a_dropped_connection_fails_only_its_commands() {
    for event in [AsyncEvent::CONNECTION_DROP, AsyncEvent::SESSION_DROP] {
        let mut bed = bed();
        read(&mut bed, 1, 0, 4);
        read(&mut bed, 2, 60, 4);
        bed.host_alone();
        let (lun, initiator_tag, stat_sn, exp_cmd_sn, max_cmd_sn) = ([0; 8], NO_TAG, 2, 3, 6);
        let (vendor_code, parameter1, parameter2, parameter3) = (0, 0, 2, 0);
        #[rustfmt::skip]
        let message = AsyncMessage {
            lun, initiator_tag, stat_sn, exp_cmd_sn, max_cmd_sn, event, vendor_code, parameter1, parameter2, parameter3,
        };
        bed.back_sends(0, Head::new(message), &[]);
        bed.back_alone(0);
        assert_eq!(bed.closed, [(Conn::Back(0), CloseReason::LogoutRequested)]);
        bed.cut(0);
        bed.run_until_idle();
        assert_eq!((ended(&mut bed, 1), ended(&mut bed, 2)), (BUSY, GOOD), "{event:?}");
        bed.assert_idle();
    }
}

#[test]
fn only_small_commands_one_at_a_time_are_light() {
    let mut bed = bed();
    let one_at_a_time = |bed: &mut Bed, ids: std::ops::Range<u64>| {
        ids.for_each(|id| {
            read(bed, id, 0, 8);
            bed.run_until_idle();
        });
        bed.forward.is_light()
    };
    assert!(!bed.forward.is_light());
    assert!(!one_at_a_time(&mut bed, 0..7));
    assert!(one_at_a_time(&mut bed, 7..8));
    // The same holds while a command is in flight.
    read(&mut bed, 8, 0, 8);
    bed.host_alone();
    assert!(bed.forward.is_light());
    read(&mut bed, 9, 8, 8);
    bed.host_alone();
    assert!(!bed.forward.is_light());
    bed.run_until_idle();
    // For a moment the last of several commands is the only one in flight.
    assert!(!bed.forward.is_light());
    assert!(one_at_a_time(&mut bed, 10..18));
    read(&mut bed, 18, 0, (16 << 10) / BLOCK as u32 + 1);
    bed.run_until_idle();
    assert!(!bed.forward.is_light());
    bed.assert_idle();
}
