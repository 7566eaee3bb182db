//! Hosts and switches of this crate against each other, with and without faults of the segment.

use crate::fip::host::host_mac;
use crate::fip::net::{Net, SegmentFaults, fcf_config, switch_config};
use sanloom_fc::fip::fcf::Input;
use sanloom_fc::nport::{self, FabricState};
use sanloom_scsi::time::Span;
use sanloom_wire::FcId;

/// Number of ports of a host that have completed all steps of a login.
fn ready(net: &Net, host: usize) -> usize {
    net.host(host).nports.iter().filter(|port| port.state() == FabricState::Ready).count()
}

/// Addresses logged in at a switch.
fn logged_in(net: &Net, switch: usize) -> Vec<FcId> {
    net.switch(switch).switch.logins().map(|(id, _)| id).collect()
}

/// Asserts that both sides have the same logins.
#[track_caller]
fn agree(net: &Net, switch: usize, hosts: &[usize]) {
    let mut of_hosts: Vec<FcId> =
        hosts.iter().flat_map(|host| net.host(*host).nports.iter().map(|port| port.port_id())).collect();
    of_hosts.sort_unstable();
    assert_eq!(logged_in(net, switch), of_hosts);
    let station = net.switch(switch);
    for host in hosts.iter().map(|host| net.host(*host)) {
        for (id, mac, _) in host.enode.vn_ports() {
            let (to, from) = host.enode.path(id).expect("a path");
            assert_eq!((to, from), (station.bindings.mac(), mac));
            let port = station.bindings.port_of(id).expect("a port");
            assert_eq!(station.bindings.egress(port, id), mac);
        }
    }
}

#[test]
fn initiators_find_targets_through_a_switch() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let hosts = [net.add_host(1, false, 0), net.add_host(2, true, 0), net.add_host(3, true, 3)];
    net.run(Span::from_secs(10));
    assert_eq!(hosts.map(|host| ready(&net, host)), [1, 1, 4]);
    agree(&net, switch, &hosts);
    assert_eq!(net.host(hosts[0]).remotes[0].len(), 5);
    assert_eq!(net.switch(switch).fcf.discards().total(), 0);
    assert!(hosts.iter().all(|host| net.host(*host).enode.discards().total() == 0));
    // The logins persist, because all stations send their keep-alives often enough.
    net.run(Span::from_secs(1_000));
    agree(&net, switch, &hosts);
    assert_eq!(net.host(hosts[0]).nports[0].counters().fabric_logins, 1);
}

#[test]
fn a_logout_frees_everything() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let host = net.add_host(1, false, 40);
    net.run(Span::from_secs(30));
    assert_eq!((ready(&net, host), logged_in(&net, switch).len()), (41, 41));
    for port in (0..41).rev() {
        net.nport(host, port, nport::Input::LogOut);
        net.run(Span::from_ms(100));
    }
    assert_eq!((logged_in(&net, switch).len(), net.switch(switch).fcf.links().count()), (0, 0));
    assert_eq!(net.host(host).enode.vn_ports().count(), 0);
}

#[test]
fn all_ports_log_in_again_after_a_switch_crash() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let hosts = [net.add_host(1, false, 2), net.add_host(2, true, 0)];
    net.run(Span::from_secs(20));
    agree(&net, switch, &hosts);
    net.restart(switch, switch_config(1), fcf_config(1));
    net.run(Span::from_secs(10));
    agree(&net, switch, &hosts);
    assert_eq!(hosts.map(|host| ready(&net, host)), [3, 1]);
    assert_eq!(net.host(hosts[0]).remotes[0].len(), 1);
}

#[test]
fn a_long_link_failure_ends_the_login_on_both_sides() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let hosts = [net.add_host(1, false, 1), net.add_host(2, true, 0)];
    net.run(Span::from_secs(20));
    net.unplugged = vec![hosts[0]];
    net.run(Span::from_secs(21));
    assert_eq!((ready(&net, hosts[0]), logged_in(&net, switch).len()), (0, 1));
    assert_eq!(net.host(hosts[0]).enode.counters().missed_advertisements, 1);
    net.unplugged.clear();
    net.run(Span::from_secs(20));
    agree(&net, switch, &hosts);
    assert_eq!(hosts.map(|host| ready(&net, host)), [2, 1]);
}

#[test]
fn a_host_logs_in_again_after_its_link_is_cleared() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let hosts = [net.add_host(1, false, 1), net.add_host(2, true, 0)];
    net.run(Span::from_secs(20));
    let port = net.switch(switch).fcf.links().find(|link| link.mac == host_mac(1)).expect("a link").port;
    net.fcf(switch, Input::Clear { port });
    assert_eq!(logged_in(&net, switch).len(), 1);
    net.run(Span::from_secs(10));
    agree(&net, switch, &hosts);
    assert_eq!(net.host(hosts[0]).nports[0].counters().fabric_logins, 2);
}

#[test]
fn all_ports_log_in_again_when_the_domains_are_reassigned() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let hosts = [net.add_host(1, false, 1), net.add_host(2, true, 0)];
    net.run(Span::from_secs(20));
    net.rebuild(switch);
    net.run(Span::from_secs(60));
    agree(&net, switch, &hosts);
    assert_eq!(hosts.map(|host| ready(&net, host)), [2, 1]);
    assert_eq!(net.host(hosts[0]).nports[0].counters().fabric_logins, 2);
}

#[test]
fn the_other_fcf_takes_over() {
    let mut net = Net::new(1);
    // Two switches of one fabric, of which the first is preferred.
    let mut best = fcf_config(1);
    best.priority = 1;
    let switches = [net.add_switch(switch_config(1), best), net.add_switch(switch_config(2), fcf_config(2))];
    net.run(Span::from_secs(60));
    let hosts = [net.add_host(1, false, 0), net.add_host(2, true, 0)];
    net.run(Span::from_secs(20));
    agree(&net, switches[0], &hosts);
    net.fcf(switches[0], Input::Shutdown);
    net.run(Span::from_secs(60));
    agree(&net, switches[1], &hosts);
    assert_eq!(net.host(hosts[0]).remotes[0].len(), 1);
}

#[test]
fn logins_survive_frames_that_are_lost_repeated_and_reordered() {
    for seed in 0..10 {
        let mut net = Net::new(seed);
        net.faults = SegmentFaults { lost: 10, repeated: 10, late: 20 };
        let switch = net.add_switch(switch_config(1), fcf_config(1));
        let hosts = [net.add_host(1, false, 3), net.add_host(2, true, 1), net.add_host(3, false, 0)];
        net.run(Span::from_secs(300));
        net.faults = SegmentFaults::default();
        net.run(Span::from_secs(300));
        assert_eq!(hosts.map(|host| ready(&net, host)), [4, 2, 1], "seed {seed}");
        agree(&net, switch, &hosts);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut net = Net::new(7);
        net.faults = SegmentFaults { lost: 10, repeated: 10, late: 20 };
        net.add_switch(switch_config(1), fcf_config(1));
        net.add_host(1, false, 3);
        net.add_host(2, true, 1);
        let probe = net.add_probe();
        net.run(Span::from_secs(60));
        net.received(probe)
    };
    assert_eq!(run(), run());
}
