//! Switches that discover each other over Ethernet.

use crate::fip::net::{Net, SegmentFaults, fcf_config, fcf_mac, switch_config, switch_name};
use sanloom_fc::fabric_switch::IslState;
use sanloom_fc::fip::fcf::LinkEnd;
use sanloom_scsi::time::Span;

/// Neighbours of a switch on links that carry traffic, sorted.
fn neighbours(net: &Net, at: usize) -> Vec<u64> {
    let isls = net.switch(at).switch.isls();
    let up = isls.filter(|isl| isl.state == IslState::Up).filter_map(|isl| isl.neighbour).map(|name| name.0 & 0xff);
    let mut up: Vec<u64> = up.collect();
    up.sort_unstable();
    up
}

fn domains(net: &Net, at: usize) -> usize {
    net.switch(at).switch.members().len()
}

#[test]
fn three_switches_on_a_segment_form_one_fabric() {
    let mut net = Net::new(1);
    for number in 0..3 {
        net.add_switch(switch_config(number), fcf_config(number));
    }
    net.run(Span::from_secs(60));
    for at in 0..3 {
        let others: Vec<u64> = (0..3).filter(|other| *other != at).map(|other| switch_name(other).0 & 0xff).collect();
        assert_eq!(neighbours(&net, at), others);
        assert_eq!(domains(&net, at), 3);
        let fcf = &net.switch(at).fcf;
        assert_eq!(fcf.links().filter(|link| matches!(link.end, LinkEnd::Fcf { .. })).count(), 2);
        assert_eq!(fcf.discards().total(), 0, "{:?}", fcf.discards());
        assert_eq!(net.switch(at).refused.len(), 0);
    }
}

#[test]
fn three_switches_form_one_fabric_despite_lost_and_reordered_frames() {
    for seed in 0..6 {
        let mut net = Net::new(seed);
        net.faults = SegmentFaults { lost: 5, repeated: 5, late: 20 };
        for number in 0..3 {
            net.add_switch(switch_config(number), fcf_config(number));
        }
        net.run(Span::from_secs(120));
        net.faults = SegmentFaults::default();
        net.run(Span::from_secs(120));
        for at in 0..3 {
            assert_eq!((neighbours(&net, at).len(), domains(&net, at)), (2, 3), "seed {seed}, switch {at}");
        }
    }
}

#[test]
fn the_link_to_a_switch_ends_without_advertisements_and_returns_with_them() {
    let mut net = Net::new(1);
    for number in 0..2 {
        net.add_switch(switch_config(number), fcf_config(number));
    }
    net.run(Span::from_secs(40));
    assert_eq!(neighbours(&net, 0).len(), 1);
    net.unplugged = vec![1];
    net.run(Span::from_secs(21));
    assert_eq!((neighbours(&net, 0).len(), net.switch(0).fcf.links().count()), (0, 0));
    net.unplugged.clear();
    net.run(Span::from_secs(60));
    assert_eq!((neighbours(&net, 0).len(), neighbours(&net, 1).len()), (1, 1));
    assert_eq!((domains(&net, 0), domains(&net, 1)), (2, 2));
}

#[test]
fn a_restarted_switch_gets_a_new_link() {
    let mut net = Net::new(1);
    for number in 0..2 {
        net.add_switch(switch_config(number), fcf_config(number));
    }
    net.run(Span::from_secs(40));
    net.restart(1, switch_config(1), fcf_config(1));
    net.run(Span::from_secs(40));
    assert_eq!((neighbours(&net, 0).len(), neighbours(&net, 1).len()), (1, 1));
    assert_eq!((domains(&net, 0), domains(&net, 1)), (2, 2));
    assert_eq!(net.switch(0).bindings.egress(10, sanloom_wire::FcId::FABRIC_CONTROLLER), fcf_mac(1));
}

#[test]
fn fcfs_of_other_fabrics_do_not_become_neighbours() {
    let mut net = Net::new(1);
    net.add_switch(switch_config(0), fcf_config(0));
    let mut other = fcf_config(1);
    other.fc_map = sanloom_wire::ether::FcMap([0x0e, 0xfc, 0x01]);
    net.add_switch(switch_config(1), other);
    let mut tagged = fcf_config(2);
    tagged.vf_id = 7;
    net.add_switch(switch_config(2), tagged);
    let mut without_neighbours = fcf_config(3);
    without_neighbours.neighbours = false;
    net.add_switch(switch_config(3), without_neighbours);
    net.run(Span::from_secs(40));
    for at in 0..4 {
        assert_eq!((neighbours(&net, at).len(), net.switch(at).fcf.links().count()), (0, 0), "{at}");
    }
    // Advertisements every 8 s, and solicitations at the start.
    assert!(net.frames() < 250, "{} frames", net.frames());
}
