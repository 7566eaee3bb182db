//! The machines of error recovery: the error handler of an HBA, and the queue depth of a target.

use sanloom_sim::host::{
    Action, Device, EVENT_PS, ErrorHandler, Event, HBA_RESET_PS, IDLE_PAUSE_PS, QueueDepth, SEND_PS,
};
use std::fmt::Write;

const RESET_PS: u64 = 10_000;
const LUN_0: Device = Device { system: 0, path: 0, lun: 0 };
const LUN_1: Device = Device { system: 0, path: 0, lun: 1 };

fn handler(deadline_ps: Option<u64>) -> ErrorHandler {
    ErrorHandler::new(RESET_PS, deadline_ps, true)
}

fn handle(handler: &mut ErrorHandler, now_ps: u64, event: Event) -> Vec<Action> {
    handler.handle(now_ps, event);
    std::iter::from_fn(|| handler.poll_action()).collect()
}

fn failed(command: u32, device: Device) -> Event {
    Event::Failed { command, device, timed_out_ps: 0 }
}

#[test]
fn every_state_of_the_error_handler_meets_every_event() {
    let (fail, idle) = ((1_000, failed(1, LUN_0)), (1_000, Event::Idle));
    let (lun_late, target_late) = ((11_000, Event::Timeout), (21_000, Event::Timeout));
    let states: [(&str, &[(u64, Event)]); 5] = [
        ("ready", &[]),
        ("draining", &[fail]),
        ("LUN reset", &[fail, idle]),
        ("target reset", &[fail, idle, lun_late]),
        ("HBA reset", &[fail, idle, lun_late, target_late]),
    ];
    let events: [(&str, u64, Event); 9] = [
        ("another failure", 0, failed(2, LUN_1)),
        ("idle", 0, Event::Idle),
        ("reset 1 done", 0, Event::Reset { serial: 1, good: true }),
        ("reset 1 rejected", 0, Event::Reset { serial: 1, good: false }),
        ("reset 2 done", 0, Event::Reset { serial: 2, good: true }),
        ("path up", 0, Event::PathUp { system: 0, path: 0 }),
        ("other path up", 0, Event::PathUp { system: 0, path: 1 }),
        ("path lost", 0, Event::PathLost { system: 0, path: 0 }),
        ("late", HBA_RESET_PS, Event::Timeout),
    ];
    let mut table = String::new();
    for (state, script) in states {
        for (name, after_ps, event) in events {
            let mut handler = handler(None);
            let mut now_ps = 0;
            for &(at_ps, event) in script {
                now_ps = at_ps;
                handle(&mut handler, at_ps, event);
            }
            let now_ps = now_ps + after_ps;
            let actions = handle(&mut handler, now_ps, event);
            let blocked = if handler.is_recovering() { "blocked" } else { "ready" };
            let timeout = handler.poll_timeout();
            writeln!(table, "{state}, {name}: {blocked} {actions:?} timeout {timeout:?}").expect("a string");
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn escalation_waits_until_the_hba_is_idle_and_then_resets_luns_targets_and_the_hba() {
    let mut handler = handler(None);
    assert_eq!(handle(&mut handler, 0, failed(7, LUN_1)), []);
    assert!(handler.is_recovering() && handler.is_draining());
    assert_eq!(handle(&mut handler, 5, failed(8, LUN_0)), []);
    let device = LUN_0;
    assert_eq!(handle(&mut handler, 10, Event::Idle), [Action::ResetLun { device, serial: 1 }]);
    assert_eq!(handler.poll_timeout(), Some(10 + RESET_PS));
    let device = LUN_1;
    assert_eq!(handle(&mut handler, 10_010, Event::Timeout), [Action::ResetLun { device, serial: 2 }]);
    // The answer to the second reset gives its command back; the answer to the first is too late.
    assert_eq!(handle(&mut handler, 10_020, Event::Reset { serial: 1, good: true }), []);
    let device = LUN_0;
    let next = [Action::Retry(7), Action::ResetTarget { device, serial: 3 }];
    assert_eq!(handle(&mut handler, 10_030, Event::Reset { serial: 2, good: true }), next);
    assert_eq!(handle(&mut handler, 20_030, Event::Timeout), [Action::ResetHba]);
    assert_eq!(handler.poll_timeout(), Some(20_030 + HBA_RESET_PS));
    let end = [Action::Fail(8), Action::Resume];
    assert_eq!(handle(&mut handler, 20_030 + HBA_RESET_PS, Event::Timeout), end);
    assert!(!handler.is_recovering());
    assert_eq!(handler.poll_timeout(), None);
}

#[test]
fn after_eh_deadline_the_hba_is_reset_at_once() {
    let mut handler = handler(Some(500));
    handle(&mut handler, 400, failed(1, LUN_0));
    let device = LUN_0;
    assert_eq!(handle(&mut handler, 400, Event::Idle), [Action::ResetLun { device, serial: 1 }]);
    assert_eq!(handle(&mut handler, 10_400, Event::Timeout), [Action::ResetHba]);
    let back = [Action::Retry(1), Action::Resume];
    assert_eq!(handle(&mut handler, 10_500, Event::PathUp { system: 0, path: 0 }), back);
}

#[test]
fn a_virtual_port_is_not_reset() {
    let mut handler = ErrorHandler::new(RESET_PS, Some(0), false);
    handle(&mut handler, 0, failed(1, LUN_0));
    assert_eq!(handle(&mut handler, 0, Event::Idle), [Action::Fail(1), Action::Resume]);
}

/// Sends and refuses one command at the start of each period of TASK SET FULL.
fn refuse(depth: &mut QueueDepth, periods: std::ops::Range<u64>) {
    for period in periods {
        assert!(depth.start(0, 1));
        depth.refused(period * EVENT_PS, 0, true);
        depth.unblock(0);
    }
}

#[test]
fn eleven_periods_with_task_set_full_reduce_the_depth_by_one() {
    let mut depth = QueueDepth::new(32, 1_000, std::iter::empty());
    refuse(&mut depth, 1..11);
    assert_eq!(depth.depth(), 32);
    // Further refusals in the same period do not count.
    refuse(&mut depth, 10..11);
    assert_eq!(depth.depth(), 32);
    refuse(&mut depth, 11..12);
    assert_eq!(depth.depth(), 31);
    refuse(&mut depth, 12..22);
    assert_eq!(depth.depth(), 31);
    refuse(&mut depth, 22..23);
    assert_eq!(depth.depth(), 30);
}

#[test]
fn the_depth_never_falls_below_one_and_grows_by_one_in_each_ramp_up_period() {
    let period_ps = 50 * EVENT_PS;
    let mut depth = QueueDepth::new(3, period_ps, std::iter::empty());
    refuse(&mut depth, 1..100);
    assert_eq!(depth.depth(), 1);
    let full_ps = 99 * EVENT_PS;
    let good = |depth: &mut QueueDepth, at_ps| {
        assert!(depth.start(0, 1));
        depth.end(at_ps, 0, true);
        depth.depth()
    };
    assert_eq!(good(&mut depth, full_ps + period_ps - 1), 1);
    assert_eq!(good(&mut depth, full_ps + period_ps), 2);
    assert_eq!(good(&mut depth, full_ps + 2 * period_ps - 1), 2);
    assert_eq!(good(&mut depth, full_ps + 2 * period_ps), 3);
    assert_eq!(good(&mut depth, full_ps + 9 * period_ps), 3);
}

#[test]
fn a_refused_command_waits_until_another_command_of_its_lun_ends() {
    let mut depth = QueueDepth::new(4, 1_000, [0, 0, 1].into_iter());
    assert_eq!(depth.refused(5, 0, true), None, "another command of the LUN is in flight");
    depth.hold_first(0, 7);
    assert!(!depth.start(0, 8), "a blocked LUN takes no command");
    assert_eq!(depth.release(5, 0), None);
    assert!(depth.start(1, 9), "other LUNs are not blocked");
    depth.end(6, 0, true);
    let next_ps = 6 + SEND_PS;
    assert_eq!([depth.release(6, 0), depth.release(6, 0), depth.release(next_ps, 0)], [Some(7), None, Some(8)]);
}

#[test]
fn an_idle_lun_waits_for_a_pause_after_a_refusal() {
    let mut depth = QueueDepth::new(4, 1_000, [0].into_iter());
    assert_eq!(depth.refused(5, 0, false), Some(5 + IDLE_PAUSE_PS));
    depth.hold_first(0, 7);
    let end_ps = 5 + IDLE_PAUSE_PS;
    assert_eq!((depth.release(end_ps, 0), depth.next_release(0)), (None, None));
    depth.unblock(0);
    assert_eq!(depth.release(end_ps, 0), Some(7));
}
