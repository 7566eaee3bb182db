//! Task attributes, task management, and their effect on tasks.

use super::bench::{Bench, config};
use sanloom_scsi::scsi::{Attribute, Ends, IoOp, IoStatus, Managed, NexusId, Notice, Step, TaskId, TaskManagement};
use sanloom_wire::cdb::Cdb;

/// Starts a read, which begins or waits.
fn read(bench: &mut Bench, nexus: NexusId, attribute: Attribute) -> (TaskId, bool) {
    let cdb = Cdb::Read { lba: 0, blocks: 1, fua: false }.to_bytes();
    let command = bench.command(nexus, 0, cdb, attribute);
    let step = bench.device.begin(&command);
    let task = TaskId { nexus, tag: command.tag, unit: 0 };
    match step {
        Step::Io(_) => (task, true),
        Step::Wait => (task, false),
        other => unreachable!("{other:?}"),
    }
}

fn end(bench: &mut Bench, task: TaskId) -> Vec<TaskId> {
    assert!(matches!(bench.device.io_done(task, IoOp::Read, IoStatus::Good), Step::Done(_)));
    begun(bench)
}

/// Tasks that begin now.
fn begun(bench: &mut Bench) -> Vec<TaskId> {
    let began = |(_, notice)| match notice {
        Notice::Step { task, step: Step::Io(_) } => Some(task),
        _ => None,
    };
    bench.listen().into_iter().filter_map(began).collect()
}

#[test]
fn an_ordered_task_runs_after_older_and_before_younger_tasks() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let (first, began) = read(&mut bench, nexus, Attribute::Simple);
    assert!(began);
    let (second, began) = read(&mut bench, nexus, Attribute::Simple);
    assert!(began);
    let (ordered, began) = read(&mut bench, nexus, Attribute::Ordered);
    assert!(!began);
    let (third, began) = read(&mut bench, nexus, Attribute::Simple);
    assert!(!began);
    let (urgent, began) = read(&mut bench, nexus, Attribute::HeadOfQueue);
    assert!(began, "a HEAD OF QUEUE task begins at once");
    assert_eq!(end(&mut bench, second), []);
    assert_eq!(end(&mut bench, urgent), []);
    assert_eq!(end(&mut bench, first), [ordered]);
    let (fourth, began) = read(&mut bench, nexus, Attribute::Simple);
    assert!(!began);
    assert_eq!(end(&mut bench, ordered), [third, fourth]);
    assert_eq!(bench.device.active(0), 2);
    let (_, began) = read(&mut bench, nexus, Attribute::Simple);
    assert!(began, "nothing is ordered any more");
}

#[test]
fn an_aborted_task_unblocks_others_whether_it_had_begun_or_not() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let (first, _) = read(&mut bench, nexus, Attribute::Ordered);
    let (waiting, began) = read(&mut bench, nexus, Attribute::Ordered);
    assert!(!began);
    let (last, began) = read(&mut bench, nexus, Attribute::Simple);
    assert!(!began);
    bench.device.abandon(waiting);
    assert_eq!(begun(&mut bench), []);
    bench.device.abandon(first);
    assert_eq!(begun(&mut bench), [last]);
    assert_eq!(bench.device.active(0), 1);
}

/// A transport may end a task before it has confirmed the notice of the result. The task is then
/// counted once; otherwise an ordered task would begin too early.
#[test]
fn a_task_that_has_ended_before_its_notice_is_counted_once() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let (first, _) = read(&mut bench, nexus, Attribute::Ordered);
    let ready = bench.command(nexus, 0, Cdb::TestUnitReady.to_bytes(), Attribute::Simple);
    assert_eq!(bench.device.begin(&ready), Step::Wait);
    let ready = TaskId { nexus, tag: ready.tag, unit: 0 };
    let (last, began) = read(&mut bench, nexus, Attribute::Simple);
    assert!(!began);
    assert!(matches!(bench.device.io_done(first, IoOp::Read, IoStatus::Good), Step::Done(_)));
    bench.device.abandon(ready);
    assert_eq!(begun(&mut bench), [last]);
    assert_eq!(bench.device.active(0), 1);
    let (_, began) = read(&mut bench, nexus, Attribute::Ordered);
    assert!(!began, "the last task is still active");
}

#[test]
fn task_management_names_the_tasks_that_end() {
    let mut bench = Bench::new(config());
    let (one, two) = (bench.host(1, 0), bench.host(2, 1));
    let all = |unit| Ends { unit, nexus: None, by: one };
    let cases = [
        (TaskManagement::AbortTaskSet, Some(0), Managed::Complete(Some(Ends { nexus: Some(one), ..all(Some(0)) })), 0),
        (TaskManagement::ClearTaskSet, Some(0), Managed::Complete(Some(all(Some(0)))), 1),
        (TaskManagement::LunReset, Some(1), Managed::Complete(Some(all(Some(1)))), 1),
        (TaskManagement::TargetReset, None, Managed::Complete(Some(all(None))), 1),
        (TaskManagement::ClearAca, Some(0), Managed::Complete(None), 0),
        (TaskManagement::LunReset, None, Managed::IncorrectLun, 0),
    ];
    for (function, unit, managed, notices) in cases {
        assert_eq!(bench.device.manage(one, unit, function), managed, "{function:?}");
        let others = bench.listen();
        assert_eq!(others.len(), notices, "{function:?}");
        assert!(others.iter().all(|(port, notice)| *port == 1 && matches!(notice, Notice::End(_))));
    }
    assert!(all(Some(0)).affects(0, two) && !all(Some(0)).affects(1, two));
    assert!(all(None).answered(two) && !all(None).answered(one));
}
