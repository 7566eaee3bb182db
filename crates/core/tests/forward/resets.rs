//! What others do at a back end, and units that come later: a host that has nothing to do with it notices no more than BUSY.

use crate::bed::{Bed, Shapes};
use crate::cases::{BUSY, GOOD, bed, bed_of, check, data_in, ended, intercepted, read, response, shapes, write};
use crate::disk::BLOCK;
use sanloom_core::disk::WriteCache;
use sanloom_core::iscsi::forward::{BackUnit, Kept};
use sanloom_core::map::LunId;
use sanloom_core::time::Span;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{flag, function, task_response};
use sanloom_wire::iscsi::{Head, Header, TaskResponse};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

const RESETS: [SenseCode; 3] = [SenseCode::POWER_ON_OR_RESET, SenseCode::LUN_RESET, SenseCode::COMMANDS_CLEARED];

fn attention(code: SenseCode) -> Sense {
    Sense::new(SenseKey::UNIT_ATTENTION, code)
}

/// The tags of aborts that a back end would get next, and of the tasks that they end. Commands before them are dropped.
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
fn commands_that_a_reset_of_somebody_else_has_ended_are_aborted_and_sent_again_by_the_host() {
    for code in RESETS {
        let mut bed = bed();
        // Its target forgets it without a word.
        write(&mut bed, 1, 0, 4);
        let lost = intercepted(&mut bed, 0);
        while bed.intercept(0).is_some() {}
        read(&mut bed, 2, 8, 4);
        let told = intercepted(&mut bed, 0);
        let (head, sense) = check(told, attention(code));
        bed.back_says(0, head, &sense);
        bed.back_alone(0);
        // The one that was told is sent again, the one before it is over.
        let aborts = aborts(&mut bed, 0);
        assert_eq!((aborts.len(), aborts[0].1, bed.counters().again), (1, lost, 1), "{code:?}");
        assert!(bed.done.is_empty(), "the target may be at work until it has answered the abort");
        bed.back_says(0, no_task(aborts[0].0), &[]);
        bed.back_says(0, data_in(told, flag::FINAL | flag::STATUS, 0), &[7; 4 * BLOCK]);
        bed.back_alone(0);
        bed.settle();
        assert_eq!((ended(&mut bed, 1), ended(&mut bed, 2)), (BUSY, GOOD), "{code:?}");
        assert_eq!((bed.buffers[&2].as_slice(), bed.closed.len()), (&[7; 4 * BLOCK][..], 0));
        assert!(bed.volumes.is_idle());
    }
}

#[test]
fn a_command_that_does_not_go_on_is_not_forgotten_with_its_unit_reset() {
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
        bed.back_says(0, head, &sense);
        bed.back_alone(0);
        let aborts = aborts(&mut bed, 0);
        assert_eq!((aborts.len(), aborts[0].1), (1, lost));
        bed.back_says(0, no_task(aborts[0].0), &[]);
        bed.back_alone(0);
        bed.settle();
        assert_eq!(ended(&mut bed, 1), BUSY);
        assert!(bed.volumes.is_idle());
    }
}

#[test]
fn a_command_that_takes_long_goes_on_when_its_unit_has_nothing_to_tell() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let slow = intercepted(&mut bed, 0);
    for _ in 0..4 {
        bed.forward_timeout(Span::from_secs(5));
    }
    // Asked once: one question at a time.
    let heads: Vec<Head> = std::iter::from_fn(|| bed.intercept(0)).collect();
    let questions = heads.iter().filter_map(|head| match head.header {
        Header::ScsiCommand(command) if command.cdb == Cdb::TestUnitReady.to_bytes() => Some(command.initiator_tag),
        _ => None,
    });
    let questions: Vec<u32> = questions.collect();
    assert_eq!(questions.len(), 1, "{heads:?}");
    bed.back_says(0, response(questions[0], 0), &[]);
    bed.back_says(0, data_in(slow, flag::FINAL | flag::STATUS, 0), &[7; 4 * BLOCK]);
    bed.back_alone(0);
    bed.settle();
    assert_eq!((ended(&mut bed, 1), bed.counters().aborts), (GOOD, 0));
}

#[test]
fn task_aborted_of_a_back_end_is_no_answer_for_a_host_whose_task_nobody_aborted() {
    let mut bed = bed();
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.back_says(0, response(tag, 0x40), &[]);
    bed.back_alone(0);
    bed.settle();
    assert_eq!(ended(&mut bed, 1), BUSY);
}

#[test]
fn a_unit_that_is_not_ready_or_new_is_asked_again_and_holds_up_no_other() {
    let unit = |id, lun| BackUnit { id: LunId(id), lun, cache: WriteCache::Absent };
    let (first, second) = (unit(0, [0; 8]), unit(9, [0, 1, 0, 0, 0, 0, 0, 0]));
    let mut bed = bed_of(Shapes { depth: 64, ..shapes() });
    assert!(!bed.forward.awaits_unit(0));
    bed.units(0, &[first, second]);
    assert!(bed.forward.awaits_unit(0));
    let question = intercepted(&mut bed, 0);
    // What it is asked is about the new one; the other one goes on.
    read(&mut bed, 1, 0, 4);
    let tag = intercepted(&mut bed, 0);
    bed.back_says(0, data_in(tag, flag::FINAL | flag::STATUS, 0), &[7; 4 * BLOCK]);
    let not_ready = Sense::new(SenseKey::NOT_READY, SenseCode::COMMUNICATION_FAILURE);
    for _ in 0..16 {
        let (head, sense) = check(question, not_ready);
        bed.back_says(0, head, &sense);
        bed.back_alone(0);
    }
    bed.settle();
    assert_eq!((ended(&mut bed, 1), bed.counters().forwarded), (GOOD, 1));
    while bed.intercept(0).is_some() {}
    assert!(bed.forward.awaits_unit(0));
    bed.units(0, &[first, second]);
    let again = intercepted(&mut bed, 0);
    bed.back_says(0, response(again, 0), &[]);
    bed.back_alone(0);
    assert!(!bed.forward.awaits_unit(0));
}

#[test]
fn nothing_more_is_forwarded_to_a_back_end_that_takes_nothing() {
    let mut bed = bed();
    bed.forward.stuck(0, true);
    read(&mut bed, 1, 0, 4);
    bed.settle();
    assert_eq!((ended(&mut bed, 1), bed.counters().kept[Kept::Window as usize]), (GOOD, 1));
    bed.forward.stuck(0, false);
    read(&mut bed, 2, 0, 4);
    bed.settle();
    assert_eq!((ended(&mut bed, 2), bed.counters().forwarded), (GOOD, 1));
}
