//! The Ethernet plane: rates, lossless priorities, shares, marks, paths and deadlocks.

pub mod fabric;
mod pause;
pub mod plain;
pub mod random;
mod tcp;

use fabric::{Fabric, LINK, frame, switch};
use sanloom_sim::net::ethernet::{Ecn, EthernetPlan, LineErrors, Packet, PacketLoss, Station};
use std::collections::BTreeSet;

/// Headroom of a lossless priority by the rule of IEEE 802.1Qbb annex O: twice the cable, the
/// reaction of the peer, a longest frame that delays the pause frame, one that had begun, and the
/// pause frame.
fn headroom_bytes(metres: u64, gbits: u64, quanta: u64, longest: u64) -> u64 {
    2 * metres * 5 * gbits / 8 + quanta * 64 + 2 * (longest + 20) + 84
}

#[test]
fn the_share_of_the_line_is_that_of_the_bytes_on_the_wire() {
    // Payload, bytes of the frame, MB/s of payload at 1, 10, 25 and 100 Gb/s.
    let rows: [(u64, u16, [f64; 4]); 4] = [
        (1460, 1518, [118.66, 1186.6, 2966.5, 11866.0]),
        (8960, 9018, [123.92, 1239.2, 3098.0, 12392.0]),
        (2048, 2116, [119.85, 1198.5, 2996.3, 11985.0]),
        (4096, 4158, [122.5, 1225.5, 3063.7, 12255.0]),
    ];
    for (payload, bytes, rates) in rows {
        for (gbits, expected) in [1, 10, 25, 100].into_iter().zip(rates) {
            let mut plan = Fabric::star(2, gbits);
            plan.switches[0].longest_bytes = 9_238;
            let mut fabric = Fabric::new(plan);
            let count = 1_000;
            (0..count).for_each(|number| fabric.send(Packet::new(0, 1, 1, number, bytes)));
            fabric.run_to(u64::MAX / 2);
            let times: Vec<u64> = fabric.delivered.iter().map(|delivered| delivered.0).collect();
            let interval_ps = (times[count as usize - 1] - times[0]) as f64 / f64::from(count - 1);
            let rate = payload as f64 / interval_ps * 1e6;
            assert!((rate / expected - 1.0).abs() < 1e-3, "{payload} at {gbits} Gb/s: {rate:.2}, expected {expected}");
        }
    }
}

#[test]
fn the_longest_pause_has_65535_quanta() {
    for (gbits, expected_ms) in [(1, 33.55), (10, 3.355), (25, 1.342), (40, 0.839), (100, 0.336)] {
        let fabric = Fabric::new(Fabric::star(2, gbits));
        let ms = fabric.net.ethernet.lines()[0].longest_pause_ps() as f64 / 1e9;
        assert!((ms / expected_ms - 1.0f64).abs() < 2e-3, "{gbits} Gb/s: {ms} ms");
    }
}

/// Returns the lost frames if `senders` hosts send lossless frames of 2,180 bytes to one, all at
/// once, over 100 m of 10 Gb/s.
fn incast(senders: u16, headroom: u64) -> Fabric {
    let mut plan = Fabric::star(usize::from(senders) + 1, 10);
    plan.switches[0].longest_bytes = 2_180;
    plan.switches[0].memory.headroom_bytes.fill(headroom);
    // Without a reserve and almost without a pool, a group pauses with its first frames.
    plan.switches[0].memory.reserve_bytes = 0;
    let ports = u64::from(senders) + 1;
    plan.switches[0].memory.bytes = ports * headroom + 4_000;
    for link in &mut plan.links {
        link.propagation_ps = 500_000;
        link.reaction_ps = 118 * 51_200 / 2;
    }
    let mut fabric = Fabric::new(plan);
    for number in 0..100 {
        (0..senders).for_each(|from| fabric.send(frame(from, senders, number, 2_180)));
    }
    fabric.run_to(100_000_000_000);
    fabric
}

#[test]
fn a_lossless_priority_loses_nothing_with_the_headroom_of_the_rule() {
    let headroom = headroom_bytes(100, 10, 59, 2_180);
    let fabric = incast(12, headroom);
    assert_eq!(fabric.delivered.len(), 1_200);
    assert_eq!(fabric.net.ethernet.losses().count(), 0);
    let memory = fabric.net.ethernet.memory(0);
    let most = (0..12).map(|port| memory.group(port, LINK.into()).headroom_max_bytes).max();
    // The rule is nearly exhausted: it is not generous.
    assert!(most.is_some_and(|most| most <= headroom && most + 2 * 2_200 > headroom), "{most:?} of {headroom}");
}

#[test]
fn headroom_that_is_too_small_loses_frames_and_names_the_error() {
    let headroom = headroom_bytes(100, 10, 59, 2_180);
    let needed = {
        let fabric = incast(12, headroom);
        let memory = fabric.net.ethernet.memory(0);
        (0..12).map(|port| memory.group(port, LINK.into()).headroom_max_bytes).max().unwrap_or(0)
    };
    assert_eq!(incast(12, needed).net.ethernet.losses().count(), 0, "exactly enough");
    let losses: Vec<_> = incast(12, needed - 1).net.ethernet.losses().map(|(_, loss, _)| loss).collect();
    assert!(!losses.is_empty() && losses.iter().all(|&loss| loss == PacketLoss::Headroom), "{losses:?}");
}

#[test]
fn other_priorities_are_dropped_in_an_incast_and_no_sender_is_paused() {
    let mut plan = Fabric::star(9, 10);
    plan.switches[0].memory.bytes = 9 * 60_000 + 200_000;
    let mut fabric = Fabric::new(plan);
    for number in 0..400 {
        (0..8).for_each(|from| fabric.send(frame(from, 8, number, 1_518).with_priority(0)));
    }
    fabric.run_to(100_000_000_000);
    let lost: u64 = fabric
        .net
        .ethernet
        .losses()
        .map(|(_, loss, frames)| {
            assert_eq!(loss, PacketLoss::Congestion);
            frames
        })
        .sum();
    assert_eq!(fabric.delivered.len() as u64 + lost, 3_200);
    assert!(lost > 1_000, "{lost}");
    assert!(fabric.net.ethernet.lines().iter().all(|line| line.count().pauses == 0));
}

#[test]
fn a_pause_stops_its_priority_only() {
    let mut fabric = Fabric::new(Fabric::star(3, 10));
    fabric.net.set_pause_storm(2, 1 << LINK);
    // The worst reaction of the standard at 10 Gb/s is 6 us.
    fabric.run_to(10_000_000);
    for number in 0..10 {
        fabric.send(frame(0, 2, number, 1_518));
        fabric.send(frame(0, 2, number, 1_518).with_priority(0));
    }
    fabric.run_to(50_000_000_000);
    let priorities: Vec<u8> = fabric.delivered.iter().map(|delivered| delivered.2.priority()).collect();
    assert_eq!(priorities, [0; 10]);
    // The line to the interface was paused all the time, because the pauses were refreshed.
    let paused_ps = fabric.net.ethernet.lines()[5].paused_ps(LINK.into(), 50_000_000_000);
    assert!(paused_ps > 49_990_000_000, "{paused_ps}");
    fabric.net.set_pause_storm(2, 0);
    fabric.run_to(60_000_000_000);
    assert_eq!(fabric.delivered.len(), 20);
}

#[test]
fn a_lost_resume_heals_when_the_pause_runs_out() {
    let mut fabric = Fabric::new(Fabric::star(2, 10));
    fabric.net.set_pause_storm(1, 1 << LINK);
    fabric.run_to(10_000_000);
    fabric.send(frame(0, 1, 0, 1_518));
    // All frames from the interface are lost, so the resume is.
    *fabric.net.ethernet.errors_mut(2) = LineErrors { loss: u32::MAX, damage: 0, ..LineErrors::default() };
    fabric.net.set_pause_storm(1, 0);
    fabric.run_to(3_300_000_000);
    assert!(fabric.delivered.is_empty() && fabric.net.ethernet.fate.pauses_lost == 1);
    fabric.run_to(3_400_000_000);
    assert_eq!(fabric.delivered.len(), 1, "after 65,535 quanta, 3.355 ms");
}

#[test]
fn shares_of_backlogged_priorities_are_within_one_percent_and_idle_shares_go_to_the_others() {
    for (shares, sends, expected) in [
        ([10, 20, 0, 50, 20, 0, 0, 0], [true, true, true, true], [10, 20, 50, 20]),
        ([10, 20, 0, 50, 20, 0, 0, 0], [true, true, false, true], [20, 40, 0, 40]),
        ([1, 9, 0, 30, 60, 0, 0, 0], [true, true, true, true], [1, 9, 30, 60]),
    ] {
        let mut plan = Fabric::star(5, 10);
        plan.switches[0].memory.bytes = 1 << 30;
        plan.links.iter_mut().for_each(|link| link.shares = [shares; 2]);
        let mut fabric = Fabric::new(plan);
        let priorities = [0u8, 1, 3, 4];
        for number in 0..20_000 {
            for (from, priority) in (0..).zip(priorities).filter(|(from, _)| sends[usize::from(*from)]) {
                // Frames of different lengths: the shares are of bytes.
                fabric.send(frame(from, 4, number, 300 + 300 * u16::from(priority)).with_priority(priority));
            }
        }
        fabric.run_to(10_000_000_000);
        // The backlog needs a while to form.
        let late = fabric.delivered.iter().filter(|delivered| delivered.0 > 100_000_000);
        let mut bytes = [0u64; 4];
        late.for_each(|(_, _, packet)| {
            let at = priorities.iter().position(|&priority| priority == packet.priority()).expect("sent");
            bytes[at] += u64::from(packet.bytes);
        });
        let all: u64 = bytes.iter().sum();
        for (bytes, expected) in bytes.into_iter().zip(expected) {
            let percent = 100.0 * bytes as f64 / all as f64;
            assert!((percent - f64::from(expected)).abs() < 1.0, "{percent:.2} %, expected {expected}");
        }
    }
}

#[test]
fn a_strict_priority_waits_for_one_frame_at_most() {
    let mut plan = Fabric::star(3, 1);
    plan.links.iter_mut().for_each(|link| link.shares = [[100, 0, 0, 0, 0, 0, 0, 0]; 2]);
    let mut fabric = Fabric::new(plan);
    (0..50).for_each(|number| fabric.send(frame(0, 2, number, 1_518).with_priority(0)));
    fabric.run_to(200_000_000);
    let sent_ps = fabric.net.now();
    fabric.send(frame(1, 2, 0, 64).with_priority(6));
    fabric.run_to(1_000_000_000);
    let (at_ps, ..) = fabric.delivered.iter().find(|delivered| delivered.2.priority() == 6).expect("delivered");
    // Two lines and a latency of its own, and a frame of 1,538 bytes in front of it.
    let own_ps = 2 * (84 * 8_000 + 50_000) + 1_000_000;
    assert!(at_ps - sent_ps < own_ps + 1_538 * 8_000, "{} ns", (at_ps - sent_ps) / 1_000);
}

#[test]
fn a_step_marks_exactly_the_frames_that_find_more_than_k_bytes() {
    let mut plan = Fabric::star(3, 10);
    let k = 10 * 1_518;
    plan.switches[0].ecn[0] = Some(Ecn { from_bytes: k, all_bytes: k, chance: 0 });
    let mut fabric = Fabric::new(plan);
    for number in 0..60 {
        fabric.send(frame(0, 2, number, 1_518).with_priority(0).with_ecn());
        fabric.send(frame(1, 2, number, 1_518).with_priority(0));
    }
    fabric.run_to(10_000_000_000);
    // Two lines fill a queue that one empties, so the queue has about half of the frames that came.
    let marked = |from: u16| {
        let of = fabric.delivered.iter().filter(|delivered| delivered.2.from == from);
        of.map(|delivered| delivered.2.has_congestion()).collect::<Vec<bool>>()
    };
    let first = marked(0).iter().position(|&marked| marked).expect("a mark");
    assert!((9..=12).contains(&first), "{first}");
    assert!(marked(0)[first..].iter().all(|&marked| marked), "the queue only grows");
    assert!(!marked(1).contains(&true), "no ECN-capable transport");
}

#[test]
fn red_marks_in_proportion_to_the_queue() {
    let mut plan = Fabric::star(3, 10);
    plan.switches[0].memory.bytes = 1 << 28;
    plan.switches[0].ecn[0] = Some(Ecn { from_bytes: 100_000, all_bytes: 400_000, chance: u32::MAX / 5 });
    let mut fabric = Fabric::new(plan);
    let count = 2_000;
    for number in 0..count {
        (0..2).for_each(|from| fabric.send(frame(from, 2, number, 1_518).with_priority(0).with_ecn()));
    }
    fabric.run_to(100_000_000_000);
    // The n-th frame finds about n / 2 frames in the queue.
    let marked = |from: usize, to: usize| {
        let part = &fabric.delivered[from..to];
        part.iter().filter(|delivered| delivered.2.has_congestion()).count() as f64 / part.len() as f64
    };
    let at = |bytes: usize| 2 * bytes / 1_518;
    assert_eq!(marked(0, at(95_000)), 0.0);
    let middle = marked(at(110_000), at(390_000));
    assert!((0.05..0.15).contains(&middle), "{middle}");
    assert_eq!(marked(at(410_000), fabric.delivered.len()), 1.0);
}

#[test]
fn flows_spread_over_a_bundle_and_stay_in_order() {
    let mut plan = Fabric::star(2, 10);
    plan.switches[0].vlans = vec![u32::MAX; 6];
    plan.switches[0].memory.headroom_bytes = vec![20_000; 6];
    plan.switches.push(switch(6));
    plan.links[1].ends[0] = Station::Interface(1);
    plan.links[1].ends[1] = Station::Switch { switch: 1, port: 0 };
    for port in 2..6 {
        let ends = [Station::Switch { switch: 0, port }, Station::Switch { switch: 1, port }];
        plan.links.push(fabric::link(ends, 10));
    }
    let mut fabric = Fabric::new(plan);
    for number in 0..50 {
        (0..64).for_each(|flow| fabric.send(Packet::new(0, 1, flow, number, 1_518)));
    }
    fabric.run_to(100_000_000_000);
    for flow in 0..64 {
        let order: Vec<u32> = fabric
            .delivered
            .iter()
            .filter(|delivered| delivered.2.flow == flow)
            .map(|delivered| delivered.2.position)
            .collect();
        assert_eq!(order, (0..50).collect::<Vec<u32>>());
    }
    let used: Vec<u64> = (2..6).map(|link| fabric.net.ethernet.lines()[2 * link].count().packets).collect();
    assert!(used.iter().all(|&frames| frames >= 50 * 8), "{used:?}");
    // A member that goes down takes its flows to the others.
    fabric.net.set_ethernet_link(3, false);
    (0..64).for_each(|flow| fabric.send(Packet::new(0, 1, flow, 50, 1_518)));
    fabric.run_to(200_000_000_000);
    assert_eq!(fabric.delivered.len(), 64 * 51);
}

#[test]
fn a_port_outside_of_a_vlan_does_not_carry_its_frames() {
    let mut plan = Fabric::star(3, 10);
    plan.switches[0].vlans = vec![0b11, 0b01, 0b11];
    let mut fabric = Fabric::new(plan);
    for to in [1, 2] {
        (0..2).for_each(|vlan| fabric.send(frame(0, to, 0, 1_518).with_vlan(vlan)));
    }
    fabric.run_to(1_000_000_000);
    let reached: Vec<(u16, u8)> =
        fabric.delivered.iter().map(|(_, interface, packet)| (*interface, packet.vlan())).collect();
    assert_eq!(reached, [(1, 0), (2, 0), (2, 1)]);
    assert_eq!(fabric.net.ethernet.losses().collect::<Vec<_>>(), [(0, PacketLoss::Vlan, 1)]);
}

/// Returns three switches in a ring with an interface at the first two. The links are 2 and 3
/// (parallel), 4 and 5 (the way over the third switch), with these VLANs at both ends.
fn triangle(vlans: [u32; 4]) -> Fabric {
    let at = |switch, port| Station::Switch { switch, port };
    let mut plan = EthernetPlan { interfaces: 2, seed: 1, ..EthernetPlan::default() };
    plan.switches = vec![switch(4), switch(4), switch(2)];
    let own = [[Station::Interface(0), at(0, 0)], [Station::Interface(1), at(1, 0)]];
    let between = [[at(0, 1), at(1, 1)], [at(0, 2), at(1, 2)], [at(0, 3), at(2, 0)], [at(2, 1), at(1, 3)]];
    for (ends, vlans) in between.into_iter().zip(vlans) {
        for end in ends {
            if let Station::Switch { switch, port } = end {
                plan.switches[usize::from(switch)].vlans[usize::from(port)] = vlans;
            }
        }
    }
    plan.links = own.into_iter().chain(between).map(|ends| fabric::link(ends, 10)).collect();
    Fabric::new(plan)
}

/// Sends frames of 32 flows in a VLAN. Returns the frames that each link between switches carries,
/// and the reasons of lost frames.
fn carried(fabric: &mut Fabric, vlan: u8) -> ([u64; 4], BTreeSet<PacketLoss>) {
    let frames =
        |fabric: &Fabric| [2, 3, 4, 5].map(|link: usize| fabric.net.ethernet.lines()[2 * link].count().packets);
    let lost = |fabric: &Fabric| fabric.net.ethernet.losses().map(|(.., frames)| frames).sum::<u64>();
    let (before, lost_before) = (frames(fabric), lost(fabric));
    (0..32).for_each(|flow| fabric.send(Packet::new(0, 1, flow, 0, 1_518).with_vlan(vlan)));
    fabric.run_to(fabric.net.now() + 1_000_000_000);
    let after = frames(fabric);
    let reasons = fabric.net.ethernet.losses().map(|(_, loss, _)| loss).filter(|_| lost(fabric) > lost_before);
    (std::array::from_fn(|link| after[link] - before[link]), reasons.collect())
}

#[test]
fn each_vlan_takes_its_shortest_way_over_the_links_that_accept_it() {
    // VLAN 1 may use one of the parallel links, VLAN 2 the other one, VLAN 3 the long way only, and
    // VLAN 4 half of it.
    let mut fabric = triangle([0b00011, 0b00101, 0b11111, 0b01111]);
    let none = BTreeSet::new();
    let (frames, lost) = carried(&mut fabric, 0);
    assert!(frames[0] > 0 && frames[0] + frames[1] == 32 && frames[2..] == [0, 0] && lost.is_empty(), "{frames:?}");
    assert_eq!(carried(&mut fabric, 1), ([32, 0, 0, 0], none.clone()));
    assert_eq!(carried(&mut fabric, 2), ([0, 32, 0, 0], none.clone()));
    assert_eq!(carried(&mut fabric, 3), ([0, 0, 32, 32], none.clone()));
    assert_eq!(carried(&mut fabric, 4), ([0; 4], BTreeSet::from([PacketLoss::Vlan])));
}

#[test]
fn the_ways_of_each_vlan_follow_links_that_fail_and_return() {
    let mut fabric = triangle([0b011, 0b101, 0b111, 0b111]);
    let none = BTreeSet::new();
    fabric.net.set_ethernet_link(2, false);
    assert_eq!(carried(&mut fabric, 1), ([0, 0, 32, 32], none.clone()), "around the failed link");
    assert_eq!(carried(&mut fabric, 2), ([0, 32, 0, 0], none.clone()), "its own link is up");
    fabric.net.set_ethernet_link(2, true);
    assert_eq!(carried(&mut fabric, 1), ([32, 0, 0, 0], none));
    (2..5).for_each(|link| fabric.net.set_ethernet_link(link, false));
    assert_eq!(carried(&mut fabric, 1), ([0; 4], BTreeSet::from([PacketLoss::NoPath])), "for no VLAN");
}

#[test]
fn cut_through_saves_the_time_of_a_frame_and_nothing_of_the_last_byte() {
    let delays = [false, true].map(|cut_through| {
        let mut plan = Fabric::star(2, 10);
        plan.switches[0].cut_through = cut_through;
        let mut fabric = Fabric::new(plan);
        fabric.send(frame(0, 1, 0, 1_518));
        fabric.run_to(1_000_000_000);
        fabric.delivered[0].0
    });
    let [header_ps, frame_ps] = [72, 1_526].map(|bytes| bytes * 800);
    // Store and forward: two lines, cables and the latency. Cut-through: one line and a header.
    assert_eq!(delays, [2 * frame_ps + 1_100_000, header_ps + frame_ps + 1_100_000]);
}

/// Returns a ring of `count` switches with a host each, which sends to the host two places on.
fn ring(count: u16) -> Fabric {
    let mut plan = EthernetPlan { interfaces: count, ..EthernetPlan::default() };
    for number in 0..count {
        let mut switch = switch(3);
        switch.memory.bytes = 3 * 60_000 + 30_000;
        plan.switches.push(switch);
        plan.links.push(fabric::link([Station::Interface(number), Station::Switch { switch: number, port: 0 }], 10));
    }
    for number in 0..count {
        let next = (number + 1) % count;
        plan.links.push(fabric::link(
            [Station::Switch { switch: number, port: 1 }, Station::Switch { switch: next, port: 2 }],
            10,
        ));
    }
    let mut fabric = Fabric::new(plan);
    for number in 0..4_000 {
        (0..count).for_each(|from| fabric.send(frame(from, (from + 2) % count, number, 2_180)));
    }
    fabric.run_to(200_000_000_000);
    fabric
}

#[test]
fn pauses_that_wait_for_each_other_in_a_ring_are_found_as_a_deadlock() {
    // In a ring of five, each line between switches carries frames of two hosts, and the shortest
    // path has one direction.
    let fabric = ring(5);
    let deadlocks = fabric.net.ethernet.deadlocks();
    assert_eq!(deadlocks.len(), 1, "{deadlocks:?}");
    let between: Vec<u32> = deadlocks[0].waits.iter().map(|wait| wait.0).filter(|line| *line >= 10).collect();
    assert_eq!(between, [10, 12, 14, 16, 18]);
    assert!(fabric.delivered.len() < 20_000);
    // In a ring of three each path is direct, so there is no circle.
    let fabric = ring(3);
    assert!(fabric.net.ethernet.deadlocks().is_empty() && fabric.delivered.len() == 12_000);
}

#[test]
fn a_pause_storm_spreads_to_the_switches_before_but_is_no_deadlock() {
    let mut fabric = Fabric::new(Fabric::star(3, 10));
    fabric.net.set_pause_storm(2, 1 << LINK);
    fabric.run_to(1_000_000);
    for number in 0..3_000 {
        fabric.send(frame(0, 2, number, 2_180));
        fabric.send(frame(0, 1, number, 2_180));
    }
    fabric.run_to(20_000_000_000);
    // The frames to the healthy host wait behind the others at the interface.
    assert!(fabric.delivered.len() < 1_000, "{}", fabric.delivered.len());
    assert!(fabric.net.ethernet.lines()[0].paused_ps(LINK.into(), 20_000_000_000) > 15_000_000_000);
    assert!(fabric.net.ethernet.deadlocks().is_empty());
    fabric.net.set_pause_storm(2, 0);
    fabric.run_to(40_000_000_000);
    assert_eq!(fabric.delivered.len(), 6_000);
}

#[test]
fn damaged_frames_are_dropped_by_the_next_switch_and_all_frames_are_accounted_for() {
    let mut fabric = Fabric::new(Fabric::star(2, 10));
    *fabric.net.ethernet.errors_mut(0) =
        LineErrors { loss: u32::MAX / 10, damage: u32::MAX / 10, ..LineErrors::default() };
    (0..2_000).for_each(|number| fabric.send(frame(0, 1, number, 1_518)));
    fabric.run_to(100_000_000_000);
    let losses: Vec<_> = fabric.net.ethernet.losses().collect();
    assert_eq!(
        losses.iter().map(|&(line, loss, _)| (line, loss)).collect::<Vec<_>>(),
        [(0, PacketLoss::Fcs), (0, PacketLoss::FrameLoss)]
    );
    assert!(losses.iter().all(|&(.., frames)| (140..260).contains(&frames)), "{losses:?}");
    fabric.net.ethernet.check().expect("all frames");
}

#[test]
fn a_warm_plane_allocates_nothing_per_frame() {
    let mut fabric = Fabric::new(Fabric::star(5, 10));
    fabric.keeps = false;
    let load = |fabric: &mut Fabric, number: u32| {
        for from in 0..4u16 {
            fabric.send(frame(from, 4, number, 1_518));
            fabric.send(frame(from, (from + 1) % 4, number, 1_518).with_priority(0));
        }
        fabric.run_to(fabric.net.now() + 6_000_000);
    };
    (0..500).for_each(|number| load(&mut fabric, number));
    let allocations = allocation_counter::measure(|| (0..500).for_each(|number| load(&mut fabric, number)));
    assert_eq!(allocations.count_total, 0);
    assert!(fabric.net.ethernet.fate.delivered > 7_000);
}
