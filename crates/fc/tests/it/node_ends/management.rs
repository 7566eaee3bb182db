//! Task management from end to end, and requests that ports do not carry out.

use crate::node_ends::harness::{COMMAND_TIMEOUT, Job, Links, MANAGEMENT, R_A_TOV, World};
use sanloom_fc::fcp::initiator::{AbortReason, Input, Manage, Outcome};
use sanloom_fc::nport;
use sanloom_scsi::scsi::IoOp;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::status;
use sanloom_wire::els::{Els, ExchangeRef, LsRjtReason};
use sanloom_wire::fcp::{response, task_management};
use sanloom_wire::{Frame, Message, Payload};

/// Sends a LOGICAL UNIT RESET from an initiator to a target.
fn reset_unit(world: &mut World, [host, target]: [usize; 2], tag: u64, unit: u8) {
    let d_id = world.nodes[target].nport.port_id();
    let (lun, function) = ([0, unit, 0, 0, 0, 0, 0, 0], task_management::LUN_RESET);
    let initiator = world.nodes[host].initiator.as_mut().expect("an initiator");
    initiator.handle(world.now, Input::Manage(Manage { tag, d_id, lun, function }));
    world.drain(host);
}

#[test]
fn a_unit_reset_by_one_host_ends_the_command_of_another() {
    let mut world = World::new(Links::PERFECT, 7);
    let (host, other, target) = (world.add_initiator(), world.add_initiator(), world.add_target());
    world.run(Instant::ZERO + Span::from_ms(50), |_| false);
    // Without the reset, the command would end well before its time-out.
    world.io_time = Span::from_ms(COMMAND_TIMEOUT.as_ms() / 3);
    world.add_job(Job { initiator: other, target, op: IoOp::Read, lba: 0, blocks: 8, at: world.now });
    let exchanges = |world: &World| world.nodes[target].target.as_ref().unwrap().exchanges_in_use();
    let soon = |world: &World| world.now + Span::from_ms(1);
    world.run(soon(&world), |_| false);
    assert_eq!(exchanges(&world), 1);
    world.io_time = Span::from_us(50);
    // A reset of a missing unit is refused, and the command continues.
    reset_unit(&mut world, [host, target], MANAGEMENT, 5);
    assert!(world.run(soon(&world), |world| !world.managed.is_empty()));
    let refused = Outcome::Aborted(AbortReason::Refused(response::INVALID_LUN));
    assert_eq!((&world.managed[..], exchanges(&world)), (&[(MANAGEMENT, refused)][..], 1));
    reset_unit(&mut world, [host, target], MANAGEMENT + 1, 0);
    assert!(world.run(soon(&world), |world| world.managed.len() == 2));
    let (tag, outcome) = world.managed[1];
    assert!(matches!(outcome, Outcome::Completed { status: status::GOOD, .. }), "{outcome:?}");
    assert_eq!(tag, MANAGEMENT + 1);
    // The other host is notified at once, and its next attempt succeeds.
    assert!(world.run(world.now + COMMAND_TIMEOUT, |world| world.done.len() == 1));
    let [Outcome::Completed { status: status::TASK_ABORTED, .. }] = world.failures[..] else {
        panic!("{:?}", world.failures)
    };
    world.run(world.now + R_A_TOV.times(3), |_| false);
    assert_eq!(exchanges(&world), 0);
}

#[test]
fn rec_is_refused_by_a_target_that_cannot_retry_sequences() {
    let mut world = World::new(Links::PERFECT, 7);
    let (host, target) = (world.add_initiator(), world.add_target());
    world.run(Instant::ZERO + Span::from_ms(50), |_| false);
    let (from, to) = (world.nodes[host].nport.port_id(), world.nodes[target].nport.port_id());
    let rec = Message::from(Els::Rec(ExchangeRef { originator: from, ox_id: 0, rx_id: 0 }));
    let frame = Frame { header: rec.header(from, to, 0x8000, 0xffff), payload: Payload::Typed(rec) };
    let nport = &mut world.nodes[target].nport;
    nport.handle(world.now, nport::Input::Frame(frame));
    let emitted = nport.poll_output();
    let Some(nport::Output::Send(Frame { header, payload: Payload::Typed(Message::Els(els)) })) = emitted else {
        panic!("{emitted:?}")
    };
    let Els::LsRjt(reject) = *els else { panic!("{els:?}") };
    assert_eq!((header.d_id, header.ox_id, reject.reason), (from, 0x8000, LsRjtReason::NOT_SUPPORTED));
}
