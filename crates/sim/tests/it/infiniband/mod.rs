//! The InfiniBand plane.

mod fabric;
mod faults;
mod lanes;
mod pairs;
mod paths;
mod plain;
mod random;
mod spreading;
mod world;

use fabric::{Fabric, SDR4, link, star, switch};
use sanloom_sim::net::infiniband::{self, Arbitration, Packet, PacketLoss, Station, byte_time, life_ps, refresh_ps};
use sanloom_transport::infiniband::arbitration::{Entry, SlToVl};
use sanloom_transport::infiniband::rate::{Rate, Speed, Width};

/// A packet of 2,048 bytes: 2,074 with its headers, 2,076 on the line, 33 blocks.
const FULL: u16 = 2_074;

/// Returns the packets of each interface that have arrived.
fn arrived(fabric: &Fabric, interface: u16) -> usize {
    fabric.delivered.iter().filter(|delivered| delivered.1 == interface).count()
}

#[test]
fn a_packet_takes_the_time_of_both_lines_the_switch_and_the_cables() {
    for (cut_through, expected) in [(false, 2 * 2_076_000), (true, 2_076_000 + 9_000)] {
        let mut plan = star(2, SDR4);
        plan.switches[0].cut_through = cut_through;
        let mut fabric = Fabric::new(plan);
        let packet = fabric.packet(0, 1, 0, FULL);
        fabric.send(0, packet);
        fabric.run_to(100_000_000);
        assert_eq!(fabric.delivered[0].0, expected + 100_000 + 2 * 50_000);
    }
}

/// Returns the packets that cross one cable of `metres` in a millisecond, with `blocks` of buffer.
fn through(metres: u64, blocks: u16) -> usize {
    let mut plan = star(2, SDR4);
    plan.links.iter_mut().for_each(|link| (link.propagation_ps, link.blocks) = (5_000 * metres, [blocks; 2]));
    let mut fabric = Fabric::new(plan);
    for position in 0..600 {
        let packet = fabric.packet(0, 1, position, FULL);
        fabric.send(0, packet);
    }
    fabric.run_to(1_000_000_000);
    arrived(&fabric, 1)
}

#[test]
fn a_cable_needs_the_blocks_of_its_round_trip_and_of_its_packets() {
    // Facts: 16 blocks in flight on 100 m at 4x SDR. With the packet that leaves the switch, the
    // one that arrives, and the latency of the switch, three packets never wait.
    let full = 1_000_000 / 2_076;
    let enough = through(100, 99);
    assert!(enough + 2 >= full, "{enough} of {full}");
    // One packet at a time: its time on the line, both cables, the switch, its time on the second
    // line less the cut-through, and the flow-control packet.
    let one = through(100, 33);
    let trip = 1_000_000 / (2_076 + 9 + 100 + 2 * 500 + 8);
    assert!(one.abs_diff(trip) <= 1, "{one}, expected {trip}");
    // Six packets in each round trip of 5 km.
    let few = through(5_000, 200);
    assert!((104..=114).contains(&few), "{few} of {full}");
}

#[test]
fn a_lost_credit_update_heals_with_the_next_one() {
    let mut fabric = Fabric::new(star(2, SDR4));
    // All flow-control packets to the sender are lost for a while.
    *fabric.net.infiniband.errors_mut(1) = [0, 0, u32::MAX];
    for position in 0..20 {
        let packet = fabric.packet(0, 1, position, FULL);
        fabric.send(0, packet);
    }
    fabric.run_to(1_000_000_000);
    // 200 blocks hold 6 packets.
    assert_eq!(arrived(&fabric, 1), 6);
    let lost = fabric.net.infiniband.fate.flow_lost;
    assert!((6 + 3..6 + 5).contains(&lost), "{lost}: the freed packets, and one each 262 us");
    *fabric.net.infiniband.errors_mut(1) = [0; 3];
    fabric.run_to(1_000_000_000 + refresh_ps(Speed::Sdr) + 50_000_000);
    assert_eq!(arrived(&fabric, 1), 20);
    let lines = fabric.net.infiniband.lines();
    assert_eq!(lines[0].available(&lines[1], 0, u64::MAX), 200);
}

#[test]
fn the_blocks_of_a_lost_packet_return_with_the_total_of_its_sender() {
    let mut fabric = Fabric::new(star(2, SDR4));
    *fabric.net.infiniband.errors_mut(0) = [u32::MAX, 0, 0];
    for position in 0..20 {
        let packet = fabric.packet(0, 1, position, FULL);
        fabric.send(0, packet);
    }
    fabric.run_to(100_000_000);
    assert_eq!(fabric.net.infiniband.fate.lost, 6, "200 blocks");
    *fabric.net.infiniband.errors_mut(0) = [0; 3];
    fabric.run_to(2 * refresh_ps(Speed::Sdr));
    assert_eq!((arrived(&fabric, 1), fabric.net.infiniband.fate.lost), (14, 6));
}

#[test]
fn the_low_table_shares_the_line_by_weight_and_the_high_table_comes_first() {
    let mut plan = star(3, SDR4);
    plan.levels = SlToVl::spread(4);
    plan.switches[0].levels = vec![SlToVl::spread(4)];
    let low = [(0, 33), (1, 66), (2, 99)].map(|(lane, weight)| Entry { lane, weight }).to_vec();
    let high = vec![Entry { lane: 3, weight: 33 }];
    for link in &mut plan.links {
        link.lanes = 4;
        link.arbitration = std::array::from_fn(|_| Arbitration { high: high.clone(), low: low.clone(), limit: 255 });
    }
    let mut fabric = Fabric::new(plan);
    for position in 0..2_000 {
        for level in 0..4u8 {
            if level == 3 && position >= 100 {
                continue;
            }
            let packet = fabric.packet(0, 1, position, FULL).with_level(level);
            fabric.send(0, packet);
        }
    }
    fabric.run_to(100 * 2_076_000);
    let line = &fabric.net.infiniband.lines()[0];
    assert!(line.packets_of(3) >= 99, "{}: the high table first", line.packets_of(3));
    fabric.run_to(1_300 * 2_076_000);
    let line = &fabric.net.infiniband.lines()[0];
    let shares = [0, 1, 2].map(|lane| line.packets_of(lane));
    assert!((195..=205).contains(&shares[0]), "{shares:?}");
    assert!(shares[1].abs_diff(2 * shares[0]) <= 6 && shares[2].abs_diff(3 * shares[0]) <= 9, "{shares:?}");
}

#[test]
fn a_head_that_waits_for_its_lifetime_is_dropped_and_seven_drops_drain_the_lane() {
    let mut plan = star(3, SDR4);
    plan.switches[0].life_ps = [life_ps(2); 2];
    let mut fabric = Fabric::new(plan);
    // Interface 1 consumes nothing: 200 blocks hold 6 packets.
    infiniband::hold(&mut fabric.net, 1, true);
    for position in 0..40 {
        let packet = fabric.packet(0, 1, position, FULL);
        fabric.send(0, packet);
    }
    fabric.run_to(20 * life_ps(2));
    let losses = |fabric: &Fabric, wanted: PacketLoss| -> u64 {
        fabric.net.infiniband.losses().filter(|loss| loss.1 == wanted).map(|loss| loss.2).sum()
    };
    assert_eq!((losses(&fabric, PacketLoss::Lifetime), losses(&fabric, PacketLoss::Stalled)), (7, 27));
    assert_eq!(fabric.net.infiniband.lines()[3].count().stalls, 1);
    // The lane accepts packets after 8 lifetimes, and delivers them if the host consumes again.
    infiniband::hold(&mut fabric.net, 1, false);
    let packet = fabric.packet(0, 1, 100, FULL);
    fabric.send(0, packet);
    fabric.run_to(30 * life_ps(2));
    assert_eq!(arrived(&fabric, 1), 7);
}

#[test]
fn management_needs_no_credit_and_is_dropped_when_its_buffer_is_full() {
    let mut plan = star(3, SDR4);
    plan.switches[0].management_blocks = 10;
    let mut fabric = Fabric::new(plan);
    infiniband::hold(&mut fabric.net, 1, true);
    for position in 0..10 {
        let packet = fabric.packet(0, 1, position, FULL);
        fabric.send(0, packet);
    }
    fabric.run_to(100_000_000);
    assert_eq!(arrived(&fabric, 1), 6, "data wait for credit");
    // Two senders of MADs with 282 bytes each: 5 blocks.
    for position in 0..30 {
        for from in [0, 2] {
            let packet = fabric.packet(from, 1, position, 282).of_management();
            fabric.send(from, packet);
        }
    }
    fabric.run_to(200_000_000);
    let dropped: u64 = fabric.net.infiniband.losses().map(|loss| loss.2).sum();
    let full = fabric.net.infiniband.losses().all(|loss| loss.1 == PacketLoss::ManagementFull);
    assert!(full && dropped > 10, "{dropped}");
    assert_eq!(arrived(&fabric, 1) as u64, 6 + 60 - dropped);
}

#[test]
fn the_subnet_manager_moves_paths_away_from_a_link_that_goes_down() {
    // Two leaves, two spines.
    let mut plan = star(2, SDR4);
    plan.switches = (0..4).map(|number| switch(number, 4)).collect();
    let at = |switch, port| Station::Switch { switch, port };
    plan.links = vec![
        link([Station::Interface(0), at(0, 0)], SDR4),
        link([Station::Interface(1), at(1, 0)], SDR4),
        link([at(0, 2), at(2, 0)], SDR4),
        link([at(0, 3), at(3, 0)], SDR4),
        link([at(1, 2), at(2, 1)], SDR4),
        link([at(1, 3), at(3, 1)], SDR4),
    ];
    plan.sweep_ps = 1_000_000_000;
    let mut fabric = Fabric::new(plan);
    let lid = fabric.net.infiniband.lid(1).expect("a LID");
    let port = fabric.net.infiniband.output(0, lid).expect("a path");
    let link = if port == 2 { 2 } else { 3 };
    infiniband::set_link(&mut fabric.net, link, false);
    let send = |fabric: &mut Fabric, position| {
        let packet = fabric.packet(0, 1, position, FULL);
        fabric.send(0, packet);
    };
    send(&mut fabric, 0);
    fabric.run_to(2_000_000_000);
    send(&mut fabric, 1);
    fabric.run_to(3_000_000_000);
    let seen: Vec<u32> = fabric.delivered.iter().map(|delivered| delivered.2.position).collect();
    assert_eq!(seen, [1], "the first one is lost before the sweep");
    assert_eq!(fabric.net.infiniband.output(0, lid), Some(5 - port));
    assert_eq!(fabric.net.infiniband.lid(1), Some(lid), "LIDs stay");
    // An interface without a link is unknown after a sweep, and known again after the next one.
    for (up, expected) in [(false, 1), (true, 2)] {
        infiniband::set_link(&mut fabric.net, 1, up);
        let later = fabric.net.now() + 2_000_000_000;
        fabric.run_to(later);
        send(&mut fabric, 2);
        fabric.run_to(later + 100_000_000);
        assert_eq!(arrived(&fabric, 1), expected, "{up}");
    }
    assert!(fabric.net.infiniband.losses().any(|loss| loss.1 == PacketLoss::NoPath));
}

#[test]
fn a_merge_is_shared_by_input_port() {
    let mut fabric = Fabric::new(star(4, SDR4));
    for position in 0..1_000 {
        for from in 0..3 {
            let packet = fabric.packet(from, 3, position, FULL);
            fabric.send(from, packet);
        }
    }
    fabric.run_to(900 * 2_076_000);
    let shares = [0, 1, 2].map(|from| {
        let lid = fabric.net.infiniband.lid(from);
        fabric.delivered.iter().filter(|delivered| Some(delivered.2.from) == lid).count()
    });
    assert!(shares.iter().all(|share| (297..=300).contains(share)), "{shares:?}");
}

#[test]
fn a_lane_of_its_own_is_not_held_back_by_a_stalled_one() {
    let mut plan = star(4, SDR4);
    plan.levels = SlToVl::spread(2);
    plan.switches[0].levels = vec![SlToVl::spread(2)];
    let low = [0, 1].map(|lane| Entry { lane, weight: 33 }).to_vec();
    for link in &mut plan.links {
        link.lanes = 2;
        link.arbitration = std::array::from_fn(|_| Arbitration { low: low.clone(), ..Arbitration::default() });
    }
    let mut fabric = Fabric::new(plan);
    infiniband::hold(&mut fabric.net, 1, true);
    for position in 0..100 {
        let stuck = fabric.packet(0, 1, position, FULL);
        fabric.send(0, stuck);
        let victim = fabric.packet(0, 2, position, FULL);
        fabric.send(0, victim);
        let free = fabric.packet(0, 3, position, FULL).with_level(1);
        fabric.send(0, free);
    }
    fabric.run_to(1_000_000_000);
    assert_eq!(arrived(&fabric, 3), 100);
    assert!(arrived(&fabric, 2) < 20, "{}: the victims share the lane", arrived(&fabric, 2));
}

#[test]
fn rates_give_the_times_of_the_facts() {
    for (speed, width, numerator, denominator) in [
        (Speed::Sdr, Width::X1, 4_000, 1),
        (Speed::Sdr, Width::X4, 1_000, 1),
        (Speed::Qdr, Width::X4, 250, 1),
        (Speed::Edr, Width::X4, 80, 1),
        (Speed::Ndr, Width::X4, 20, 1),
    ] {
        let (ps, bytes) = byte_time(Rate { speed, width }).fraction();
        assert_eq!(u64::from(ps), numerator * u64::from(bytes) / denominator);
    }
    // FDR: 14.0625 Gb/s in 64b/66b on four lanes.
    let ns = byte_time(Rate { speed: Speed::Fdr, width: Width::X4 }).time_of(6_818_181_818);
    assert!((999_999_990_000..=1_000_000_000_000).contains(&ns), "{ns}");
    assert_eq!(refresh_ps(Speed::Sdr), 262_144_000);
    assert_eq!([0, 18, 20].map(life_ps), [4_096_000, 1_073_741_824_000, u64::MAX]);
    assert_eq!(Packet::new(1, 2, 3, 0, FULL).blocks(), 33);
}
