//! The plane against the plain engine, on random networks with faults, at every instant.
//!
//! ```text
//! SANLOOM_SEED=17 cargo test -p sanloom-sim --test it infiniband::random              one case
//! SANLOOM_FIRST_SEED=5000 SANLOOM_SEEDS=4000 cargo test -p sanloom-sim --test it …    other cases
//! ```

use super::fabric::{Fabric, guids};
use super::plain::Engine;
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::net::infiniband::{
    self, Arbitration, InfinibandLinkPlan, InfinibandPlan, InfinibandSwitchPlan, Packet, PacketLoss, Station, life_ps,
};
use sanloom_sim::net::line::ByteTime;
use sanloom_transport::infiniband::arbitration::{Entry, SlToVl};
use sanloom_transport::infiniband::manager::Config;
use sanloom_transport::infiniband::routing::Engine as Routing;
use std::collections::BTreeMap;

const SEEDS: u64 = 300;
/// Blocks of the longest packet: 4,096 bytes and 26 of headers.
const LONGEST_BLOCKS: u64 = 65;

/// A step of a case.
enum Action {
    Send(u16, Packet),
    Link(u32, bool),
    Hold(u16, bool),
    Errors(u32, [u32; 3]),
}

fn draw_levels(dice: &mut SplitMix64, lanes: u8) -> SlToVl {
    if dice.chance(60) {
        return SlToVl::spread(lanes);
    }
    // A lane that does not exist, and the lane of management, discard packets.
    let lane =
        |dice: &mut SplitMix64| if dice.chance(4) { 15 - dice.below(2) as u8 } else { dice.below(lanes.into()) as u8 };
    SlToVl(std::array::from_fn(|_| lane(dice)))
}

fn draw_table(dice: &mut SplitMix64, lanes: u8) -> Vec<Entry> {
    let weight = |dice: &mut SplitMix64| dice.below(70) as u8;
    (0..dice.below(6)).map(|_| Entry { lane: dice.below(lanes.into()) as u8, weight: weight(dice) }).collect()
}

fn draw_arbitration(dice: &mut SplitMix64, lanes: u8) -> Arbitration {
    // Each lane has a share in the low table.
    let mut low: Vec<Entry> = (0..lanes).map(|lane| Entry { lane, weight: 1 + dice.below(70) as u8 }).collect();
    low.extend(draw_table(dice, lanes));
    Arbitration { high: draw_table(dice, lanes), low, limit: [0, 1, 3, 255][dice.index(4)] }
}

fn draw_plan(dice: &mut SplitMix64) -> InfinibandPlan {
    let switches = 1 + dice.index(4);
    let interfaces = 2 + dice.index(6);
    let lanes = [1, 1, 2, 4][dice.index(4)];
    let mut ports = vec![0u8; switches];
    let mut next_port = |switch: usize| {
        ports[switch] += 1;
        Station::Switch { switch: switch as u16, port: ports[switch] - 1 }
    };
    let mut ends = Vec::new();
    for interface in 0..interfaces as u16 {
        let at = next_port(dice.index(switches));
        ends.push(if dice.chance(50) {
            [Station::Interface(interface), at]
        } else {
            [at, Station::Interface(interface)]
        });
    }
    for switch in 1..switches {
        let other = dice.index(switch);
        for _ in 0..1 + dice.below(3) {
            ends.push([next_port(switch), next_port(other)]);
        }
    }
    for _ in 0..dice.below(3) {
        let (one, two) = (dice.index(switches), dice.index(switches));
        if one != two {
            ends.push([next_port(one), next_port(two)]);
        }
    }
    let rates = [4_000, 1_000, 1_000, 500, 80];
    let links = ends.into_iter().map(|ends| InfinibandLinkPlan {
        ends,
        byte: ByteTime::new(rates[dice.index(rates.len())], 1),
        propagation_ps: dice.below(1_000_000),
        lanes: if dice.chance(85) { lanes } else { 1 },
        blocks: std::array::from_fn(|_| (LONGEST_BLOCKS + dice.below(150)) as u16),
        refresh_ps: 1_000_000 + dice.below(20_000_000),
        arbitration: std::array::from_fn(|_| draw_arbitration(dice, lanes)),
    });
    let links: Vec<InfinibandLinkPlan> = links.collect();
    let lives = dice.chance(60);
    let switch = |number: usize, ports: u8, dice: &mut SplitMix64| InfinibandSwitchPlan {
        guid: 0x1000 + number as u64,
        ports,
        latency_ps: dice.below(400_000),
        cut_through: dice.chance(60),
        levels: if dice.chance(70) {
            vec![draw_levels(dice, lanes)]
        } else {
            (0..u16::from(ports) * u16::from(ports)).map(|_| draw_levels(dice, lanes)).collect()
        },
        life_ps: std::array::from_fn(|_| if lives { life_ps(dice.below(4) as u8) } else { life_ps(20) }),
        management_blocks: 5 + dice.below(20) as u16,
    };
    let switches = ports.iter().enumerate().map(|(number, &ports)| switch(number, ports, dice)).collect();
    InfinibandPlan {
        switches,
        links,
        interfaces: guids(interfaces as u16),
        manager: dice.below(interfaces as u64) as u16,
        config: Config {
            engine: if dice.chance(70) { Routing::MinHop } else { Routing::UpDown },
            lmc: [0, 0, 1, 2][dice.index(4)],
            ..Config::default()
        },
        sweep_ps: dice.below(30_000_000),
        levels: draw_levels(dice, lanes),
        seed: dice.bits(),
    }
}

fn draw_actions(dice: &mut SplitMix64, plan: &InfinibandPlan, lids: &[u16]) -> BTreeMap<u64, Vec<Action>> {
    let mut actions: BTreeMap<u64, Vec<Action>> = BTreeMap::new();
    let mut now = 0;
    let interfaces = plan.interfaces.len();
    let faulty = dice.chance(60);
    for position in 0..60 + dice.below(200) as u32 {
        now += if dice.chance(60) { dice.below(2_000) } else { dice.below(6_000_000) };
        let (from, to) = (dice.index(interfaces), dice.index(interfaces));
        if from != to {
            let bytes = [26, 30, 282, 1_050, 2_074, 4_122][dice.index(6)];
            // Each LID of the destination has paths of its own.
            let lid = lids[to] + dice.below(1 << plan.config.lmc) as u16;
            let mut packet = Packet::new(lids[from], lid, 7, position, bytes);
            packet = packet.with_level(dice.below(16) as u8);
            if dice.chance(10) {
                packet = Packet::new(lids[from], lid, 7, position, 282).of_management();
            }
            actions.entry(now).or_default().push(Action::Send(from as u16, packet));
        }
        if faulty && dice.chance(6) {
            let link = dice.below(plan.links.len() as u64) as u32;
            let action = match dice.below(3) {
                0 => Action::Link(link, dice.chance(60)),
                1 => Action::Hold(dice.index(interfaces) as u16, dice.chance(75)),
                _ => {
                    let chances = std::array::from_fn(|_| dice.bits() as u32 >> 2);
                    Action::Errors(2 * link + dice.below(2) as u32, chances)
                }
            };
            actions.entry(now).or_default().push(action);
        }
    }
    // In the end everything is healed.
    now += 20_000_000;
    let healed = actions.entry(now).or_default();
    healed.extend((0..plan.links.len() as u32).map(|link| Action::Link(link, true)));
    healed.extend((0..interfaces as u16).map(|interface| Action::Hold(interface, false)));
    healed.extend((0..2 * plan.links.len() as u32).map(|line| Action::Errors(line, [0; 3])));
    actions
}

fn why(loss: PacketLoss) -> &'static str {
    match loss {
        PacketLoss::Lifetime => "lifetime",
        PacketLoss::Stalled => "stalled",
        PacketLoss::Crc => "bad CRC",
        PacketLoss::PacketLoss => "lost",
        PacketLoss::LinkDown => "link down",
        PacketLoss::NoPath => "no path",
        PacketLoss::NoLane => "no lane",
        PacketLoss::ManagementFull => "management full",
    }
}

/// Returns all that must agree, except of the delivered packets.
fn states(fabric: &Fabric, plain: &Engine, now: u64) -> [Vec<u64>; 2] {
    let mut states = [Vec::new(), Vec::new()];
    let plane = &fabric.net.infiniband;
    for (number, (fast, plain)) in (0u32..).zip(plane.lines().iter().zip(&plain.lines)) {
        let count = fast.count();
        states[0].extend([count.packets, count.bytes, count.flow, count.stalls]);
        states[1].extend([plain.packets, plain.bytes, plain.flow_packets, plain.stalls]);
        let reverse = &plane.lines()[(number ^ 1) as usize];
        for lane in 0..4u8 {
            let credit = fast.available(reverse, lane, now);
            states[0].extend([u64::from(plane.queued(number, lane)), credit.into()]);
            states[1].extend([plain.queued(lane) as u64, plain.available(lane).into()]);
        }
        states[0].push(plane.queued(number, 15).into());
        states[1].push(plain.queued(15) as u64);
    }
    states
}

/// Runs both engines. Returns the packets delivered, lost, ended by their lifetime, the
/// flow-control packets lost and the lanes drained.
fn compare(seed: u64) -> [u64; 5] {
    let mut dice = SplitMix64(seed);
    let plan = draw_plan(&mut dice);
    let mut plain = Engine::new(&plan);
    let mut fabric = Fabric::new(plan.clone());
    let lids = (0..plan.interfaces.len() as u16).map(|interface| fabric.net.infiniband.lid(interface));
    let lids: Vec<u16> = lids.map(|lid| lid.expect("a LID")).collect();
    let actions = draw_actions(&mut dice, &plan, &lids);
    let mut pending = actions.into_iter().peekable();
    let mut compared = 0;
    loop {
        let action_ps = pending.peek().map_or(u64::MAX, |action| action.0);
        let now = plain.next_ps().min(action_ps);
        if now == u64::MAX {
            break;
        }
        let agree = |fabric: &Fabric, plain: &Engine, when: &str, at: u64| {
            let [fast, slow] = states(fabric, plain, at);
            assert_eq!(fast, slow, "seed {seed}, {when} {now} ps");
        };
        // Nothing may happen before.
        if let Some(before) = now.checked_sub(1) {
            fabric.run_to(before);
            agree(&fabric, &plain, "before", before);
        }
        fabric.run_to(now);
        plain.go(now);
        if action_ps == now {
            for action in pending.next().map(|action| action.1).unwrap_or_default() {
                match action {
                    Action::Send(from, packet) => {
                        fabric.send(from, packet);
                        plain.send(from, packet);
                    }
                    Action::Link(link, up) => {
                        infiniband::set_link(&mut fabric.net, link, up);
                        plain.set_link(link as usize, up);
                    }
                    Action::Hold(interface, holds) => {
                        infiniband::hold(&mut fabric.net, interface, holds);
                        plain.hold(interface, holds);
                    }
                    Action::Errors(line, chances) => {
                        *fabric.net.infiniband.errors_mut(line) = chances;
                        plain.lines[line as usize].chances = chances;
                    }
                }
            }
        }
        agree(&fabric, &plain, "at", now);
        let new = fabric.delivered[compared..].iter();
        let fast: Vec<_> = new.map(|(at, to, packet)| (*at, *to, packet.position)).collect();
        assert_eq!(fast, plain.delivered[compared..], "seed {seed}, {now} ps");
        compared = plain.delivered.len();
    }
    let lost: BTreeMap<(u32, &str), u64> =
        fabric.net.infiniband.losses().map(|(line, loss, packets)| ((line, why(loss)), packets)).collect();
    assert_eq!(lost, plain.lost, "seed {seed}");
    for (number, link) in (0..).zip(&plan.links) {
        for (line, end) in [(2 * number, 1), (2 * number + 1, 0)] {
            let lines = fabric.net.infiniband.lines();
            let credit = lines[line].available(&lines[line ^ 1], 0, u64::MAX);
            assert_eq!(credit, link.blocks[end], "seed {seed}: credit of line {line} has not healed");
        }
    }
    let fate = fabric.net.infiniband.fate;
    let waits = fabric.net.infiniband.packets_in_network();
    assert_eq!(waits, 0, "seed {seed}: packets wait");
    let expired = lost.iter().filter(|(key, _)| key.1 == "lifetime").map(|entry| entry.1).sum();
    let stalls = fabric.net.infiniband.lines().iter().map(|line| line.count().stalls).sum();
    [fate.delivered, fate.lost, expired, fate.flow_lost, stalls]
}

#[test]
fn random_networks_agree_with_the_plain_engine_at_every_instant() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let one = number("SANLOOM_SEED");
    let first = one.or(number("SANLOOM_FIRST_SEED")).unwrap_or(0);
    let seeds = one.map_or(number("SANLOOM_SEEDS").unwrap_or(SEEDS), |_| 1);
    let mut totals = [0; 5];
    for seed in first..first + seeds {
        compare(seed).iter().zip(&mut totals).for_each(|(part, sum)| *sum += part);
    }
    let [delivered, lost, expired, flow_lost, stalls] = totals;
    println!(
        "{seeds} networks: {delivered} packets delivered, {lost} lost, {expired} of them expired, \
         {flow_lost} flow-control packets lost, {stalls} lanes drained"
    );
    let enough =
        delivered > 20 * seeds && lost > 5 * seeds && expired > seeds && flow_lost > seeds / 4 && stalls > seeds / 100;
    assert!(one.is_some() || enough, "{totals:?}");
}
