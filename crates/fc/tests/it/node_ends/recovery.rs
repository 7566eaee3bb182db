//! After all work is done, no state is left behind.

use crate::node_ends::harness::{COMMAND_TIMEOUT, Job, Links, R_A_TOV, World};
use sanloom_fc::fcp::initiator::{AbortReason, Outcome};
use sanloom_fc::fcp::target;
use sanloom_scsi::scsi::IoOp;
use sanloom_scsi::time::{Instant, Span};

/// World in which a twentieth of all frames was lost for a second, some time after all its work was
/// done.
fn after_losses(jitter: Span) -> World {
    let healed_at = Instant::ZERO + Span::from_secs(1);
    let broken_at = Instant::ZERO + Span::from_ms(50);
    let mut world = World::new(Links { lost_per_mille: 50, jitter, broken_at, healed_at }, 7);
    let host = world.add_initiator();
    let storage = world.add_target();
    for n in 0..300u64 {
        let op = if n % 3 == 0 { IoOp::Write } else { IoOp::Read };
        world.add_job(Job {
            initiator: host,
            target: storage,
            op,
            lba: n,
            blocks: 1 + (n % 100) as u32,
            at: Instant::ZERO + Span::from_ms(50 + n * 3),
        });
    }
    assert!(world.run(Instant::ZERO + Span::from_secs(20), |world| world.done.len() == 300));
    let rest = world.now + R_A_TOV.times(10);
    world.run(rest, |_| false);
    world
}

#[test]
fn all_exchanges_are_free_after_recovery() {
    for jitter in [Span::ZERO, Span::from_us(40)] {
        let world = after_losses(jitter);
        assert!(!world.failures.is_empty(), "the losses hit no command");
        let initiator = world.nodes[0].initiator.as_ref().unwrap();
        assert_eq!(initiator.in_flight(), 0);
        assert_eq!(initiator.poll_timeout(), None);
        let target = world.nodes[1].target.as_ref().unwrap();
        assert_eq!(target.exchanges_in_use(), 0);
        assert_eq!(target.poll_timeout(), None);
    }
}

#[test]
fn a_command_delayed_by_the_medium_is_aborted_and_its_number_reinstated() {
    let mut world = World::new(Links::PERFECT, 7);
    let initiator = world.add_initiator();
    let target = world.add_target();
    for op in [IoOp::Read, IoOp::Write] {
        world.add_job(Job { initiator, target, op, lba: 0, blocks: 8, at: Instant::ZERO });
    }
    world.io_time = COMMAND_TIMEOUT.times(2);
    world.run(Instant::ZERO + COMMAND_TIMEOUT.times(3) + R_A_TOV.times(2), |world| world.failures.len() == 2);
    let timeout = Outcome::Aborted(AbortReason::Timeout);
    assert_eq!(world.failures, [timeout, timeout]);
    world.io_time = Span::from_us(50);
    assert!(world.run(world.now + R_A_TOV, |world| world.done.len() == 2));
    world.run(world.now + R_A_TOV.times(2), |_| false);
    let counters = *world.nodes[initiator].initiator.as_ref().unwrap().counters();
    assert_eq!((counters.abts_sent, counters.rrq_sent, counters.stale_frames), (2, 2, 0));
    let counters = *world.nodes[target].target.as_ref().unwrap().counters();
    assert_eq!((counters.aborted, counters.unknown_aborts), (2, 0));
}

#[test]
fn a_target_that_lost_a_login_is_logged_in_to_again_and_work_continues() {
    let mut world = World::new(Links::PERFECT, 7);
    let initiator = world.add_initiator();
    let target = world.add_target();
    world.run(Instant::ZERO + Span::from_ms(50), |_| false);
    let port_id = world.nodes[initiator].nport.port_id();
    let lost = target::Input::LoginDown { port_id };
    let now = world.now;
    let node = &mut world.nodes[target];
    node.target.as_mut().unwrap().handle(now, lost, &mut node.device);
    world.add_job(Job { initiator, target, op: IoOp::Read, lba: 0, blocks: 8, at: now });
    // This is well before the command time-out, which would also detect the loss.
    assert!(world.run(now + COMMAND_TIMEOUT, |world| world.done.len() == 1));
    assert_eq!(world.failures, [Outcome::PortGone]);
}
