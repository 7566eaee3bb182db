//! Resets by other initiators at a back end, and units that appear later. A host that is not
//! involved gets no more than BUSY.

use crate::forward::bed::{Bed, Shapes};
use crate::forward::cases::{
    BUSY, GOOD, bed, bed_of, check, data_in, ended, intercepted, read, response, shapes, write,
};
use crate::forward::disk::BLOCK;
use sanloom_scsi::disk::WriteCache;
use sanloom_scsi::iscsi::forward::{BackUnit, Kept};
use sanloom_scsi::map::LunId;
use sanloom_scsi::time::Span;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{flag, function, task_response};
use sanloom_wire::iscsi::{Head, Header, TaskResponse};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

const RESETS: [SenseCode; 3] = [SenseCode::POWER_ON_OR_RESET, SenseCode::LUN_RESET, SenseCode::COMMANDS_CLEARED];

fn attention(code: SenseCode) -> Sense {
    Sense::new(SenseKey::UNIT_ATTENTION, code)
}

/// Tags of the aborts next sent to a back end, and tags of the tasks that they abort. Commands
/// before them are dropped.
fn aborts(bed: &mut Bed, back: u8) -> Vec<(u32, u32)> {
    let heads = std::iter::from_fn(|| bed.intercept(back));
    let of = |head: Head| match head.header {
        Header::TaskRequest(task) if task.function == function::ABORT_TASK => {
            Some((task.initiator_tag, task.referenced_tag))
        }
        _ => None,
    };
    heads.filter_map(of).collect()
}

fn no_task(initiator_tag: u32) -> Head {
    let response = task_response::NO_TASK;
    Head::new(TaskResponse { response, initiator_tag, stat_sn: 2, exp_cmd_sn: 3, max_cmd_sn: 6 })
}

#[test]
fn commands_lost_in_a_foreign_reset_are_aborted_and_answered_with_busy() {
    for code in RESETS {
        let mut bed = bed();
        // The target drops the command without notice.
        write(&mut bed, 1, 0, 4);
        let lost = intercepted(&mut bed, 0);
        while bed.intercept(0).is_some() {}
        read(&mut bed, 2, 8, 4);
        let retried = intercepted(&mut bed, 0);
        let (head, sense) = check(retried, attention(code));
        bed.back_sends(0, head, &sense);
        bed.back_alone(0);
        // The command that got the unit attention is repeated; the one before it has ended.
        let aborts = aborts(&mut bed, 0);
        assert_eq!((aborts.len(), aborts[0].1, bed.counters().retries), (1, lost, 1), "{code:?}");
        assert!(bed.done.is_empty(), "the target may be at work until it has answered the abort");
        bed.back_sends(0, no_task(aborts[0].0), &[]);
        bed.back_sends(0, data_in(retried, flag::FINAL | flag::STATUS, 0), &[7; 4 * BLOCK]);
        bed.back_alone(0);
        bed.run_until_idle();
        assert_eq!((ended(&mut bed, 1), ended(&mut bed, 2)), (BUSY, GOOD), "{code:?}");
        assert_eq!((bed.buffers[&2].as_slice(), bed.closed.len()), (&[7; 4 * BLOCK][..], 0));
        assert!(bed.volumes.is_idle());
    }
}

#[test]
fn a_stalled_command_of_a_reset_unit_is_detected() {
    let secs = Span::from_secs;
    for code in RESETS {
        let mut bed = bed();
        read(&mut bed, 1, 0, 4);
        let lost = intercepted(&mut bed, 0);
        bed.forward_timeout(secs(1));
        assert!(bed.intercept(0).is_none(), "it has had no time yet");
        bed.forward_timeout(secs(5));
        let question = intercepted(&mut bed, 0);
        let (head, sense) = check(question, attention(code));
        bed.back_sends(0, head, &sense);
        bed.back_alone(0);
        let aborts = aborts(&mut bed, 0);
        assert_eq!((aborts.len(), aborts[0].1), (1, lost));
        bed.back_sends(0, no_task(aborts[0].0), &[]);
        bed.back_alone(0);
        bed.run_until_idle();
        assert_eq!(ended(&mut bed, 1), BUSY);
        assert!(bed.volumes.is_idle());
    }
}

#[test]
fn a_slow_command_continues_if_its_unit_reports_no_attention() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let slow = intercepted(&mut bed, 0);
    for _ in 0..4 {
        bed.forward_timeout(Span::from_secs(5));
    }
    // Only one check is sent at a time.
    let heads: Vec<Head> = std::iter::from_fn(|| bed.intercept(0)).collect();
    let questions = heads.iter().filter_map(|head| match head.header {
        Header::ScsiCommand(command) if command.cdb == Cdb::TestUnitReady.to_bytes() => Some(command.initiator_tag),
        _ => None,
    });
    let questions: Vec<u32> = questions.collect();
    assert_eq!(questions.len(), 1, "{heads:?}");
    bed.back_sends(0, response(questions[0], 0), &[]);
    bed.back_sends(0, data_in(slow, flag::FINAL | flag::STATUS, 0), &[7; 4 * BLOCK]);
    bed.back_alone(0);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 1), bed.counters().aborts), (GOOD, 0));
}

#[test]
fn task_aborted_of_a_back_end_becomes_busy() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.back_sends(0, response(tag, 0x40), &[]);
    bed.back_alone(0);
    bed.run_until_idle();
    assert_eq!(ended(&mut bed, 1), BUSY);
}

#[test]
fn units_that_are_new_or_not_ready_are_probed_and_delay_no_other() {
    let unit = |id, lun| BackUnit { id: LunId(id), lun, cache: WriteCache::Absent };
    let (first, second) = (unit(0, [0; 8]), unit(9, [0, 1, 0, 0, 0, 0, 0, 0]));
    let mut bed = bed_of(Shapes { depth: 64, ..shapes() });
    assert!(!bed.forward.awaits_unit(0));
    bed.units(0, &[first, second]);
    assert!(bed.forward.awaits_unit(0));
    let question = intercepted(&mut bed, 0);
    // The check concerns the new unit; the other one stays in use.
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.back_sends(0, data_in(tag, flag::FINAL | flag::STATUS, 0), &[7; 4 * BLOCK]);
    let not_ready = Sense::new(SenseKey::NOT_READY, SenseCode::COMMUNICATION_FAILURE);
    for _ in 0..16 {
        let (head, sense) = check(question, not_ready);
        bed.back_sends(0, head, &sense);
        bed.back_alone(0);
    }
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 1), bed.counters().forwarded), (GOOD, 1));
    while bed.intercept(0).is_some() {}
    assert!(bed.forward.awaits_unit(0));
    bed.units(0, &[first, second]);
    let again = intercepted(&mut bed, 0);
    bed.back_sends(0, response(again, 0), &[]);
    bed.back_alone(0);
    assert!(!bed.forward.awaits_unit(0));
}

#[test]
fn no_command_is_forwarded_to_a_stalled_back_end() {
    let mut bed = bed();
    bed.forward.set_stalled(0, true);
    read(&mut bed, 1, 0, 4);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 1), bed.counters().kept[Kept::Window as usize]), (GOOD, 1));
    bed.forward.set_stalled(0, false);
    read(&mut bed, 2, 0, 4);
    bed.run_until_idle();
    assert_eq!((ended(&mut bed, 2), bed.counters().forwarded), (GOOD, 1));
}
