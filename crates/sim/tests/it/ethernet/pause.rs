//! Flow control of switches: pauses of priorities, of whole links, and none.

use super::fabric::{Fabric, frame};
use sanloom_sim::net::ethernet::{EthernetPlan, PacketLoss};

/// Sends ten frames of two priorities from interface 0 to interface 2, which pauses the priorities
/// of `storm`. Returns the frames that arrive before the end of the storm and in all, and the time
/// for which priority 3 of the line to interface 2 was paused, in ps.
fn under_storm(plan: EthernetPlan, storm: u8) -> ([usize; 2], u64) {
    let mut fabric = Fabric::new(plan);
    fabric.net.set_pause_storm(2, storm);
    // The worst reaction of the standard at 10 Gb/s is 6 us.
    fabric.run_to(10_000_000);
    for number in 0..10 {
        fabric.send(frame(0, 2, number, 1_518));
        fabric.send(frame(0, 2, number, 1_518).with_priority(0));
    }
    fabric.run_to(50_000_000_000);
    let before = fabric.delivered.len();
    let paused_ps = fabric.net.ethernet.lines()[5].paused_ps(3, 50_000_000_000);
    fabric.net.set_pause_storm(2, 0);
    fabric.run_to(60_000_000_000);
    ([before, fabric.delivered.len()], paused_ps)
}

/// Returns a star of three interfaces whose switch pauses whole links, these priorities, or
/// nothing.
fn star(lossless: u8, pauses_links: bool) -> EthernetPlan {
    let mut plan = Fabric::star(3, 10);
    (plan.switches[0].lossless, plan.switches[0].pauses_links) = (lossless, pauses_links);
    plan
}

#[test]
fn a_pause_of_a_link_stops_all_priorities_and_is_refreshed() {
    for storm in [1 << 3, 1 << 5, u8::MAX] {
        let (frames, paused_ps) = under_storm(star(0, true), storm);
        assert_eq!(frames, [0, 20], "{storm}");
        // Longer than the longest pause of 3.355 ms.
        assert!(paused_ps > 49_990_000_000, "{paused_ps}");
    }
}

#[test]
fn a_switch_without_flow_control_ignores_pauses() {
    let (frames, paused_ps) = under_storm(star(0, false), u8::MAX);
    assert_eq!((frames, paused_ps), ([20, 20], 0));
}

#[test]
fn a_switch_ignores_pauses_of_priorities_without_pfc() {
    let (frames, paused_ps) = under_storm(star(1 << 5, false), 1 << 3 | 1);
    assert_eq!((frames, paused_ps), ([20, 20], 0));
    let (frames, paused_ps) = under_storm(star(1 << 3, false), 1 << 3 | 1);
    assert!(frames == [10, 20] && paused_ps > 49_990_000_000, "{frames:?} {paused_ps}");
}

/// Returns the fabric after twelve interfaces have sent frames of all priorities to one, over 100 m
/// of 10 Gb/s, with this headroom.
fn incast(headroom: u64) -> Fabric {
    let mut plan = Fabric::star(13, 10);
    let switch = &mut plan.switches[0];
    (switch.lossless, switch.pauses_links, switch.longest_bytes) = (0, true, 2_180);
    switch.memory.headroom_bytes.fill(headroom);
    switch.memory.reserve_bytes = 0;
    switch.memory.bytes = 13 * headroom + 4_000;
    for link in &mut plan.links {
        link.propagation_ps = 500_000;
        link.reaction_ps = 118 * 51_200 / 2;
    }
    let mut fabric = Fabric::new(plan);
    for number in 0..100 {
        (0..12).for_each(|from| fabric.send(frame(from, 12, number, 2_180).with_priority(number as u8 % 8)));
    }
    fabric.run_to(100_000_000_000);
    fabric
}

/// The headroom of one lossless priority suffices for a link, whatever the priorities of its
/// frames.
#[test]
fn a_paused_link_loses_nothing_with_its_headroom_and_loses_frames_with_less() {
    // Twice the cable, 59 quanta, a longest frame before the pause frame, one that had begun, the
    // pause frame, and the frame that passes the threshold.
    let rule = 2 * 100 * 5 * 10 / 8 + 59 * 64 + 2 * 2_200 + 84 + 2_180;
    let fabric = incast(rule);
    assert_eq!((fabric.delivered.len(), fabric.net.ethernet.losses().count()), (1_200, 0));
    let memory = fabric.net.ethernet.memory(0);
    let most = (0..12).map(|port| memory.group(port, 0).headroom_max_bytes).max().unwrap_or(0);
    assert!(most <= rule && most + 3 * 2_200 > rule, "{most} of {rule}");
    assert_eq!(incast(most).net.ethernet.losses().count(), 0);
    let lost: Vec<_> = incast(most - 1).net.ethernet.losses().map(|(_, loss, _)| loss).collect();
    assert!(!lost.is_empty() && lost.iter().all(|loss| *loss == PacketLoss::Headroom), "{lost:?}");
}
