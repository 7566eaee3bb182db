//! Logins through a real switch.

use crate::node_ends::harness::{Links, R_A_TOV, World, wwpn};
use sanloom_fc::nport::{FabricState, RemoteState};
use sanloom_scsi::time::{Instant, Span};

const SOON: Instant = Instant::from_ns(100_000_000);

#[test]
fn every_initiator_logs_in_to_every_target_and_to_no_other_port() {
    let mut world = World::new(Links::PERFECT, 1);
    let nodes: Vec<usize> = (0..40).map(|n| if n < 20 { world.add_initiator() } else { world.add_target() }).collect();
    world.run(SOON, |_| false);
    for &at in &nodes {
        let node = &world.nodes[at];
        assert_eq!(node.nport.state(), FabricState::Ready);
        let remotes: Vec<_> =
            node.remotes.values().map(|remote| (remote.wwpn, remote.initiator, remote.target)).collect();
        let others = if at < 20 { 20..40 } else { 0..20 };
        let expected: Vec<_> = others.map(|other| (wwpn(other), at >= 20, at < 20)).collect();
        assert_eq!(remotes, expected);
        assert!(node.nport.remotes().all(|(_, state)| state == RemoteState::Up));
        let next = node.nport.poll_timeout();
        assert!(
            next.is_none_or(|at| at > world.now + R_A_TOV),
            "a port that is logged in waits for nothing but an audit"
        );
    }
}

#[test]
fn ports_of_both_kinds_log_in_to_each_other_exactly_once() {
    for jitter in [Span::ZERO, Span::from_us(30)] {
        let mut world = World::new(Links { jitter, ..Links::PERFECT }, 3);
        for _ in 0..12 {
            world.add_both();
        }
        world.run(SOON.max(Instant::ZERO + R_A_TOV.times(20)), |_| false);
        for node in &world.nodes {
            assert!(node.remotes.values().all(|remote| remote.initiator && remote.target));
            assert_eq!(node.remotes.len(), 11);
            let logins = node.nport.counters().process_logins;
            assert!(logins <= 22, "{logins} process logins with 11 ports");
        }
    }
}

#[test]
fn a_departed_target_is_soon_reported_down_and_up_after_its_return() {
    let mut world = World::new(Links::PERFECT, 1);
    let host = world.add_initiator();
    let storage = world.add_target();
    world.run(SOON, |_| false);
    assert_eq!(world.nodes[host].remotes.len(), 1);
    world.set_link(world.now, storage, false);
    world.run(world.now + Span::from_ms(20), |_| false);
    assert_eq!(world.nodes[host].remotes.len(), 0);
    world.set_link(world.now, storage, true);
    world.run(world.now + Span::from_ms(20), |_| false);
    assert_eq!(world.nodes[host].remotes.len(), 1);
    assert_eq!(world.nodes[storage].remotes.len(), 1);
}

#[test]
fn a_target_removes_an_initiator_that_has_left() {
    let mut world = World::new(Links::PERFECT, 1);
    let host = world.add_initiator();
    let storage = world.add_target();
    world.run(SOON, |_| false);
    world.set_link(world.now, host, false);
    world.run(world.now + Span::from_ms(20), |_| false);
    assert_eq!(world.nodes[storage].remotes.len(), 0);
    assert_eq!(world.nodes[storage].nport.remotes().count(), 0);
    assert_eq!(world.nodes[storage].target.as_ref().map(|target| target.logins()), Some(0));
}

#[test]
fn one_query_covers_many_ports_that_come_up_together() {
    let mut world = World::new(Links::PERFECT, 1);
    let host = world.add_initiator();
    for n in 0..32u64 {
        world.add_target_at(Instant::ZERO + Span::from_us(n * 300));
    }
    world.run(SOON, |_| false);
    assert_eq!(world.nodes[host].remotes.len(), 32);
    let queries = world.nodes[host].nport.counters().discoveries;
    assert!(queries <= 5, "{queries} queries for 32 new ports");
}

#[test]
fn the_fabric_raises_timeouts_and_never_lowers_them() {
    let mut world = World::new(Links::PERFECT, 1);
    let host = world.add_initiator();
    let (e_d_tov, r_a_tov) = (world.nodes[host].nport.e_d_tov(), world.nodes[host].nport.r_a_tov());
    world.run(SOON, |_| false);
    assert_eq!(world.nodes[host].nport.e_d_tov(), e_d_tov.max(crate::node_ends::harness::E_D_TOV));
    assert_eq!(world.nodes[host].nport.r_a_tov(), r_a_tov.max(crate::node_ends::harness::R_A_TOV));
}
