//! Cases that random scripts do not cover: back ends that fail, violate the protocol or fall
//! silent, and the rules for the choice of the path.

use crate::forward::bed::{Bed, Setup, Shapes};
use crate::forward::disk::BLOCK;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::{
    CloseReason, Conn, Kept, MAX_PARTS, Settings, Unfit, back_offers, fits, front_offers,
};
use sanloom_scsi::iscsi::initiator::Outcome;
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use sanloom_scsi::map::{LunId, Shape};
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::time::Span;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{RejectReason, flag, function};
use sanloom_wire::iscsi::{
    AsyncEvent, AsyncMessage, DataIn, DataOut, Head, Header, NO_TAG, NopIn, R2t, Reject, ScsiResponse, emit_sense,
};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Two LUNs of 16 blocks, one after the other.
pub fn shapes() -> Shapes {
    let both = Parameters { initial_r2t: false, ..Parameters::default() };
    Shapes {
        luns: 2,
        extent_blocks: 16,
        shape: Shape::Linear,
        blocks: 64,
        front: both,
        back: both,
        depth: 8,
        bad: Vec::new(),
        settings: Settings::default(),
        cut_through: false,
    }
}

/// First block of the second LUN.
pub const EDGE: u64 = 48;

pub fn bed() -> Bed {
    bed_of(shapes())
}

pub fn bed_of(shapes: Shapes) -> Bed {
    let mut bed = Bed::new(Setup::Forwarding, &shapes, 7);
    bed.submit(1000, Cdb::TestUnitReady, DataDirection::None, Vec::new());
    bed.run_until_idle();
    bed.submit(1001, Cdb::TestUnitReady, DataDirection::None, Vec::new());
    bed.run_until_idle();
    bed.done.clear();
    bed
}

pub fn read(bed: &mut Bed, id: u64, lba: u64, blocks: u32) {
    let room = vec![0; blocks as usize * BLOCK];
    bed.submit(id, Cdb::Read { lba, blocks, fua: false }, DataDirection::Read, room);
}

pub fn write(bed: &mut Bed, id: u64, lba: u64, blocks: u32) {
    let data = vec![id as u8; blocks as usize * BLOCK];
    bed.submit(id, Cdb::Write { lba, blocks, fua: false }, DataDirection::Write, data);
}

/// Status, sense key and code of a command that has ended.
pub fn ended(bed: &mut Bed, id: u64) -> (u8, u8, u16) {
    let at = bed.done.iter().position(|(done, _)| *done == id).expect("it has ended");
    match bed.done.remove(at).1 {
        Outcome::Completed { status, sense, .. } if sense.is_empty() => (status, 0, 0),
        Outcome::Completed { status, sense, .. } => {
            let sense = Sense::parse(&sense).unwrap();
            (status, sense.key.0, sense.code.0)
        }
        other => panic!("{other:?}"),
    }
}

pub const GOOD: (u8, u8, u16) = (0, 0, 0);
/// Result after which hosts repeat the command.
pub const BUSY: (u8, u8, u16) = (8, 0, 0);

#[test]
fn a_lost_back_end_fails_only_its_tasks_and_later_ones_take_the_conventional_path() {
    let mut bed = bed();
    write(&mut bed, 1, EDGE - 1, 2);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 1), bed.counters().split), (GOOD, 1));
    read(&mut bed, 2, 0, 8);
    read(&mut bed, 3, EDGE, 8);
    read(&mut bed, 4, EDGE - 4, 8);
    bed.host_alone();
    bed.cut(1);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 2), GOOD);
    // Hosts repeat these commands.
    assert_eq!(ended(&mut bed, 3), BUSY);
    assert_eq!(ended(&mut bed, 4), BUSY);
    read(&mut bed, 5, EDGE - 1, 2);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 5), GOOD);
    assert_eq!(bed.buffers[&5], [1; 2 * BLOCK]);
    assert_eq!(bed.counters().kept[Kept::Path as usize], 1);
    bed.connect(1);
    bed.run_until_idle();
    let before = bed.counters().forwarded;
    read(&mut bed, 6, EDGE - 1, 2);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 6), bed.counters().forwarded), (GOOD, before + 1));
    bed.assert_idle();
}

#[test]
fn writes_to_a_lost_back_end_end_once_the_host_has_sent_all_solicited_data() {
    let mut bed = bed();
    let front = shapes().front;
    let blocks = front.first_burst_bytes / BLOCK as u32;
    // Longer than the unsolicited data, so the rest is solicited.
    write(&mut bed, 1, 0, 32.min(blocks));
    write(&mut bed, 2, EDGE - 8, 16);
    bed.host_alone();
    bed.cut(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), BUSY);
    assert_eq!(ended(&mut bed, 2), BUSY);
    bed.connect(0);
    bed.run_until_idle();
    bed.assert_idle();
}

#[test]
fn a_lost_write_locks_its_blocks_until_a_new_session_replaces_the_lost_one() {
    let mut bed = bed();
    write(&mut bed, 1, 4, 4);
    bed.host_alone();
    bed.cut(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), BUSY);
    // The target may still be writing. The host's repetition waits on either path; a command that
    // does not overlap proceeds.
    write(&mut bed, 2, 0, 5);
    write(&mut bed, 3, 8, 4);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 3), GOOD);
    assert!(bed.done.is_empty() && bed.forward.has_lost_writes(0));
    bed.connect(0);
    assert!(!bed.forward.has_lost_writes(0));
    read(&mut bed, 4, 20, 1);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 2), ended(&mut bed, 4)), (GOOD, GOOD));
    bed.assert_idle();
    // A lost host leaves its writes pending, but no reads.
    write(&mut bed, 5, 0, 4);
    read(&mut bed, 6, EDGE, 4);
    bed.host_alone();
    bed.forward.close(&mut bed.volumes);
    assert_eq!([0, 1].map(|back| bed.forward.has_lost_writes(back)), [true, false]);
    assert!(!bed.volumes.is_idle());
    bed.forward.end_lost_writes(0, &mut bed.volumes);
    assert!(bed.volumes.is_idle());
}

#[test]
fn the_rule_selects_the_path() {
    let mut bed = bed();
    let kept = |bed: &Bed, why: Kept| bed.counters().kept[why as usize];
    // A range beyond the end, and a length of no blocks: the device answers these itself.
    read(&mut bed, 1, 63, 2);
    bed.submit(2, Cdb::Read { lba: 0, blocks: 2, fua: false }, DataDirection::Read, vec![0; BLOCK]);
    bed.submit(3, Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false }, DataDirection::None, Vec::new());
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), (2, 5, 0x2100));
    assert_eq!((ended(&mut bed, 2), ended(&mut bed, 3)), (GOOD, GOOD));
    // The count includes two TEST UNIT READY commands.
    assert_eq!((kept(&bed, Kept::Unusual), kept(&bed, Kept::Length)), (4, 1));
    assert_eq!(bed.counters().forwarded, 0);
    // An exclusive conventional command locks its blocks until it ends.
    compare_and_write(&mut bed, 4, 0, 4);
    read(&mut bed, 5, 3, 4);
    read(&mut bed, 6, 4, 4);
    bed.host_alone();
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 4), ended(&mut bed, 5), kept(&bed, Kept::Order)), (GOOD, GOOD, 1));
    assert_eq!((ended(&mut bed, 6), bed.counters().forwarded), (GOOD, 1));
    read(&mut bed, 7, 0, 4);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 7), bed.counters().forwarded), (GOOD, 2));
    assert_eq!(bed.buffers[&7], [9; 4 * BLOCK]);
}

/// Checks that one command takes the conventional path for this reason only.
fn kept(bed: &mut Bed, submit: impl Fn(&mut Bed), why: Kept) {
    let before = bed.counters();
    submit(bed);
    bed.run_until_idle();
    assert_eq!(ended(bed, 1), GOOD, "{why:?}");
    let after = bed.counters();
    for reason in Kept::ALL {
        let times = after.kept[reason as usize] - before.kept[reason as usize];
        assert_eq!(times, u64::from(reason == why), "{reason:?}");
    }
    assert_eq!(after.forwarded, before.forwarded, "{why:?}");
    bed.assert_idle();
}

#[test]
fn a_unit_that_is_no_volume_is_not_forwarded_to() {
    let mut bed = bed();
    let volumes = std::mem::replace(&mut bed.disks, vec![None]);
    read(&mut bed, 1, 0, 2);
    bed.host_alone();
    assert_eq!((bed.counters().kept[Kept::NoVolume as usize], bed.counters().forwarded), (1, 0));
    bed.disks = volumes;
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), GOOD);
    bed.assert_idle();
}

#[test]
fn unfit_parameters_too_many_pieces_and_unsolicited_data_keep_commands_conventional() {
    let plain = shapes();
    // Segments covered by a digest would have to be split.
    let digests = Parameters { data_digest: true, ..plain.front };
    let short = Parameters { send_bytes: 512, receive_bytes: 512, ..digests };
    let mut bed = bed_of(Shapes { front: digests, back: short, ..shapes() });
    kept(&mut bed, |bed| read(bed, 1, 0, 2), Kept::Unfit);
    // Two pieces with data digests are kept; one piece is forwarded.
    let mut bed = bed_of(Shapes { front: digests, back: digests, ..shapes() });
    kept(&mut bed, |bed| read(bed, 1, EDGE - 1, 2), Kept::Pieces);
    read(&mut bed, 2, EDGE - 2, 2);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 2), bed.counters().forwarded), (GOOD, 1));
    // 33 pieces are kept, 32 are forwarded.
    let striped = Shape::Striped { width: 2, stripe_blocks: 1 };
    let mut bed = bed_of(Shapes { shape: striped, ..shapes() });
    kept(&mut bed, |bed| read(bed, 1, 0, MAX_PARTS as u32 + 1), Kept::Pieces);
    read(&mut bed, 2, 0, MAX_PARTS as u32);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 2), bed.counters().forwarded), (GOOD, 1));
    // Immediate data for a back end that accepts none.
    let none = Parameters { immediate_data: false, ..plain.front };
    let mut bed = bed_of(Shapes { back: none, ..shapes() });
    kept(&mut bed, |bed| write(bed, 1, 0, 2), Kept::Unsolicited);
    read(&mut bed, 2, 0, 2);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 2), bed.counters().forwarded), (GOOD, 1));
}

#[test]
fn exclusive_commands_wait_for_forwarded_commands_in_their_blocks() {
    let mut bed = bed();
    write(&mut bed, 1, 0, 4);
    compare_and_write_after(&mut bed, 2, 0, &[1; 4 * BLOCK]);
    // The write has left for its target but has not arrived. The other command must not overtake
    // it.
    bed.host_alone();
    assert!(bed.done.is_empty());
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 1), ended(&mut bed, 2)), (GOOD, GOOD));
    assert_eq!(bed.content()[..4 * BLOCK], [9; 4 * BLOCK]);
    bed.assert_idle();
}

/// COMPARE AND WRITE that writes nines where zeros are expected.
fn compare_and_write(bed: &mut Bed, id: u64, lba: u64, blocks: u8) {
    compare_and_write_after(bed, id, lba, &vec![0; usize::from(blocks) * BLOCK]);
}

fn compare_and_write_after(bed: &mut Bed, id: u64, lba: u64, there: &[u8]) {
    let cdb = Cdb::CompareAndWrite { lba, blocks: (there.len() / BLOCK) as u8, fua: false };
    bed.submit(id, cdb, DataDirection::Write, [there, &vec![9; there.len()]].concat());
}

/// Tag of the next command to a back end, which is intercepted.
pub fn intercepted(bed: &mut Bed, back: u8) -> u32 {
    bed.host_alone();
    match bed.intercept(back).expect("a command").header {
        Header::ScsiCommand(command) => command.initiator_tag,
        other => panic!("{other:?}"),
    }
}

pub fn data_in(initiator_tag: u32, flags: u8, offset: u32) -> Head {
    Head::new(DataIn {
        flags,
        status: 0,
        lun: [0; 8],
        initiator_tag,
        target_tag: NO_TAG,
        stat_sn: 2,
        exp_cmd_sn: 3,
        max_cmd_sn: 6,
        data_sn: 0,
        offset,
        residual: 0,
    })
}

pub fn response(initiator_tag: u32, status: u8) -> Head {
    Head::new(ScsiResponse {
        flags: 0,
        response: 0,
        status,
        initiator_tag,
        snack_tag: 0,
        stat_sn: 2,
        exp_cmd_sn: 3,
        max_cmd_sn: 6,
        exp_data_sn: 0,
        read_residual: 0,
        residual: 0,
    })
}

#[test]
fn sense_data_contain_addresses_of_the_virtual_disk() {
    let mut bed = bed();
    read(&mut bed, 1, EDGE + 2, 4);
    let tag = intercepted(&mut bed, 1);
    let sense = Sense {
        // Second block of the command, as an address of the target.
        information: Some(3),
        ..Sense::new(SenseKey::MEDIUM_ERROR, SenseCode::UNRECOVERED_READ_ERROR)
    };
    let mut segment = Vec::new();
    emit_sense(&sense.to_bytes(), &mut segment);
    bed.back_sends(1, response(tag, 2), &segment);
    bed.back_alone(1);
    bed.run_until_idle();
    let (_, Outcome::Completed { sense, .. }) = bed.done.pop().unwrap() else { panic!() };
    assert_eq!(Sense::parse(&sense).unwrap().information, Some(EDGE + 3));
}

pub fn check(initiator_tag: u32, sense: Sense) -> (Head, Vec<u8>) {
    let mut segment = Vec::new();
    emit_sense(&sense.to_bytes(), &mut segment);
    (response(initiator_tag, 2), segment)
}

#[test]
fn a_unit_that_may_be_another_disk_gets_no_commands_before_it_is_verified() {
    for code in [SenseCode::INQUIRY_DATA_CHANGED, SenseCode::REPORTED_LUNS_CHANGED, SenseCode::CAPACITY_CHANGED] {
        let mut bed = bed();
        read(&mut bed, 1, 0, 4);
        let tag = intercepted(&mut bed, 0);
        let (head, sense) = check(tag, Sense::new(SenseKey::UNIT_ATTENTION, code));
        bed.back_sends(0, head, &sense);
        bed.back_alone(0);
        assert_eq!((bed.closed.as_slice(), bed.counters().retries), (&[(Conn::Back(0), CloseReason::Changed)][..], 0));
        bed.cut(0);
        bed.run_until_idle();
        assert_eq!(ended(&mut bed, 1), BUSY);
    }
}

#[test]
fn unit_attentions_of_back_ends_are_not_passed_to_the_host() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    let (head, sense) = check(tag, Sense::new(SenseKey::UNIT_ATTENTION, SenseCode::POWER_ON_OR_RESET));
    bed.back_sends(0, head, &sense);
    bed.back_alone(0);
    assert_eq!((bed.closed.len(), bed.counters().retries), (0, 1));
    let tag = intercepted(&mut bed, 0);
    bed.back_sends(0, data_in(tag, flag::FINAL | flag::STATUS, 0), &[1; 4 * BLOCK]);
    bed.back_alone(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), GOOD);
}

#[test]
fn a_status_in_a_data_in_without_data_is_passed_on() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.back_sends(0, data_in(tag, 0, 0), &[1; 4 * BLOCK]);
    bed.back_sends(0, data_in(tag, flag::FINAL | flag::STATUS, 4 * BLOCK as u32), &[]);
    bed.back_alone(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), GOOD);
    assert_eq!(bed.buffers[&1], [1; 4 * BLOCK]);
}

#[test]
fn data_rejected_by_a_back_end_fail_only_their_command() {
    let mut bed = bed();
    write(&mut bed, 1, 0, 4);
    let initiator_tag = intercepted(&mut bed, 0);
    let (lun, exp_stat_sn, data_sn, offset, flags) = ([0; 8], 0, 0, 0, flag::FINAL);
    let data = Head::new(DataOut { flags, lun, initiator_tag, target_tag: NO_TAG, exp_stat_sn, data_sn, offset });
    let (reason, stat_sn, exp_cmd_sn, max_cmd_sn) = (RejectReason::DATA_DIGEST_ERROR, 2, 3, 6);
    let reject = Reject { reason, initiator_tag: NO_TAG, stat_sn, exp_cmd_sn, max_cmd_sn, data_sn };
    bed.back_sends(0, Head::new(reject), &data.to_bytes());
    let crc_error = Sense::new(SenseKey::ABORTED_COMMAND, SenseCode(0x4705));
    let (head, sense) = check(initiator_tag, crc_error);
    bed.back_sends(0, head, &sense);
    bed.back_alone(0);
    bed.run_until_idle();
    assert_eq!((bed.closed.len(), ended(&mut bed, 1)), (0, (2, 0x0b, 0x4705)));
}

#[test]
fn segments_longer_than_agreed_are_discarded() {
    let longest = shapes().back.receive_bytes as usize;
    let mut bed = bed();
    read(&mut bed, 1, 0, 40);
    let tag = intercepted(&mut bed, 0);
    bed.back_sends(0, data_in(tag, 0, 0), &vec![1; longest + BLOCK]);
    bed.back_alone(0);
    assert_eq!(bed.closed, [(Conn::Back(0), CloseReason::Protocol)]);
    bed.cut(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), BUSY);
}

#[test]
fn good_status_before_all_data_is_a_target_failure() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.back_sends(0, data_in(tag, flag::FINAL, 0), &[1; BLOCK]);
    bed.back_sends(0, response(tag, 0), &[]);
    bed.back_alone(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), (2, 4, 0x4400));
    // BUSY of a back end is passed on if the command was not split.
    read(&mut bed, 2, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.back_sends(0, response(tag, 8), &[]);
    bed.back_alone(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 2), (8, 0, 0));
}

#[test]
fn a_protocol_violation_closes_the_back_end() {
    let lies: [fn(u32) -> Head; 3] = [
        // Data out of order.
        |tag| data_in(tag, flag::FINAL, 512),
        // More data than requested.
        |tag| data_in(tag, flag::FINAL, 4 * 512),
        // An R2T for a read.
        |initiator_tag| {
            let (lun, stat_sn, exp_cmd_sn, max_cmd_sn) = ([0; 8], 2, 3, 6);
            let (target_tag, r2t_sn, offset, desired_bytes) = (1, 0, 0, 512);
            Head::new(R2t {
                lun,
                initiator_tag,
                target_tag,
                stat_sn,
                exp_cmd_sn,
                max_cmd_sn,
                r2t_sn,
                offset,
                desired_bytes,
            })
        },
    ];
    for lie in lies {
        let mut bed = bed();
        read(&mut bed, 1, 0, 4);
        let tag = intercepted(&mut bed, 0);
        let head = lie(tag);
        let data: &[u8] = if matches!(head.header, Header::DataIn(_)) { &[1; BLOCK] } else { &[] };
        bed.back_sends(0, head, data);
        bed.back_alone(0);
        assert_eq!(bed.closed, [(Conn::Back(0), CloseReason::Protocol)], "{head}");
        bed.cut(0);
        bed.run_until_idle();
        assert_eq!(ended(&mut bed, 1), BUSY);
    }
}

#[test]
fn a_silent_back_end_is_pinged_and_closed_and_its_pings_are_answered() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    bed.host_alone();
    let secs = Span::from_secs;
    assert!(bed.forward.poll_timeout().is_some());
    bed.forward_timeout(secs(10));
    let heads: Vec<Head> = std::iter::from_fn(|| bed.intercept(0)).collect();
    assert!(matches!(heads[..], [_, Head { header: Header::NopOut(_), immediate: true, .. }]), "{heads:?}");
    bed.forward_timeout(secs(10));
    assert_eq!(bed.closed, [(Conn::Back(0), CloseReason::Silent)]);
    let ping = NopIn { lun: [0; 8], initiator_tag: NO_TAG, target_tag: 77, stat_sn: 2, exp_cmd_sn: 3, max_cmd_sn: 6 };
    bed.back_sends(1, Head::new(ping), &[]);
    bed.back_alone(1);
    let answer = bed.intercept(1).map(|head| head.header);
    assert!(matches!(answer, Some(Header::NopOut(pong)) if pong.target_tag == 77));
}

#[test]
fn an_unanswered_abort_ends_the_session_with_the_back_end() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.wait(Span::from_secs(31));
    bed.host_alone();
    let heads: Vec<Head> = std::iter::from_fn(|| bed.intercept(0)).collect();
    let aborts = |head: &Head| {
        matches!(head.header, Header::TaskRequest(task)
            if (task.function, task.referenced_tag) == (function::ABORT_TASK, tag))
    };
    assert!(heads.iter().any(aborts), "{heads:?}");
    assert_eq!(bed.counters().aborts, 1);
    bed.forward_timeout(Span::from_secs(11));
    assert_eq!(bed.closed, [(Conn::Back(0), CloseReason::Silent)]);
    // The response to the abort waits until no back end can be active for the task.
    assert!(bed.done.is_empty());
    bed.cut(0);
    bed.run_until_idle();
    assert_eq!(bed.done, [(1, Outcome::TimedOut)]);
    bed.assert_idle();
}

#[test]
fn a_target_that_requests_a_logout_gets_no_new_commands() {
    for event in [AsyncEvent::LOGOUT, AsyncEvent::NEGOTIATION] {
        leaves_at(event);
    }
}

fn leaves_at(event: AsyncEvent) {
    let mut bed = bed();
    let message = AsyncMessage {
        lun: [0; 8],
        initiator_tag: NO_TAG,
        stat_sn: 2,
        exp_cmd_sn: 3,
        max_cmd_sn: 6,
        event,
        vendor_code: 0,
        parameter1: 0,
        parameter2: 0,
        parameter3: 5,
    };
    bed.back_sends(0, Head::new(message), &[]);
    bed.back_alone(0);
    assert_eq!(bed.closed, [(Conn::Back(0), CloseReason::LogoutRequested)]);
    read(&mut bed, 1, 0, 4);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 1), bed.counters().kept[Kept::Path as usize]), (GOOD, 1));
}

#[test]
fn blocks_outside_of_iscsi_targets_take_the_conventional_path() {
    let mut bed = bed();
    bed.forward.exclude([LunId(1)]);
    write(&mut bed, 1, EDGE - 8, 8);
    write(&mut bed, 2, EDGE, 8);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 1), ended(&mut bed, 2), bed.counters().forwarded), (GOOD, GOOD, 1));
    read(&mut bed, 3, EDGE - 1, 2);
    read(&mut bed, 4, EDGE - 2, 2);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 3), ended(&mut bed, 4)), (GOOD, GOOD));
    assert_eq!(bed.buffers[&3], [[1; BLOCK], [2; BLOCK]].concat());
    assert_eq!((bed.counters().forwarded, bed.counters().kept[Kept::Transport as usize]), (2, 2));
}

#[test]
fn offers_make_the_parameters_of_both_sides_match() {
    let back = Parameters { initial_r2t: true, send_bytes: 4096, max_burst_bytes: 65_536, ..Parameters::default() };
    let other = Parameters { immediate_data: false, initial_r2t: false, first_burst_bytes: 8192, ..back };
    let front = front_offers(Offers::default(), &[back, other]);
    assert_eq!((front.receive_bytes, front.max_burst_bytes, front.first_burst_bytes), (4096, 65_536, 8192));
    assert!(front.initial_r2t && !front.immediate_data);
    let digests = Parameters { data_digest: true, send_bytes: 1024, receive_bytes: 1024, ..Parameters::default() };
    let offers = back_offers(&digests);
    assert_eq!((offers.receive_bytes, offers.data_digest), (1024, Digests::Always));
    assert_eq!(fits(&digests, &digests), Ok(()));
    assert_eq!(fits(&digests, &Parameters { data_digest: false, ..digests }), Err(Unfit::DataDigest));
    assert_eq!(fits(&digests, &Parameters { receive_bytes: 2048, ..digests }), Err(Unfit::Segment));
    assert_eq!(fits(&digests, &Parameters { max_burst_bytes: 512, ..digests }), Err(Unfit::Burst));
    assert_eq!(fits(&back, &other), Ok(()), "without digests, segments are cut");
}
