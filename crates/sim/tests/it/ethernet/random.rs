//! The plane against the plain engine, on random networks with faults, at every instant.
//!
//! ```text
//! SANLOOM_SEED=17 cargo test -p sanloom-sim --test it ethernet::random                one case
//! SANLOOM_FIRST_SEED=5000 SANLOOM_SEEDS=4000 cargo test -p sanloom-sim --test it …    other cases
//! ```

use super::fabric::Fabric;
use super::plain::{Engine, PlainGroup};
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::net::ethernet::{
    Ecn, EthernetLinkPlan, EthernetPlan, EthernetPlane, EthernetSwitchPlan, LineErrors, MemoryPlan, Packet, PacketLoss,
    Station,
};
use sanloom_sim::net::line::ByteTime;
use std::collections::BTreeMap;

const SEEDS: u64 = 300;

/// A step of a case.
enum Action {
    Send(Packet),
    Link(u32, bool),
    Storm(u16, u8),
    Errors(u32, LineErrors),
}

fn draw_switch(dice: &mut SplitMix64, ports: usize, (lossless, pauses_links): (u8, bool)) -> EthernetSwitchPlan {
    let headroom_bytes: Vec<u64> = (0..ports).map(|_| dice.below(12_000)).collect();
    let reserve_bytes = dice.below(3_000);
    let cell_bytes = if dice.chance(30) { 208 } else { 1 };
    let classes = if pauses_links { 1 } else { u64::from(lossless.count_ones()) };
    let set_aside = classes * (headroom_bytes.iter().sum::<u64>() + ports as u64 * reserve_bytes);
    let ecn = std::array::from_fn(|_| {
        dice.chance(40).then(|| {
            let from_bytes = dice.below(8_000);
            let all_bytes = from_bytes + if dice.chance(50) { 0 } else { 1 + dice.below(20_000) };
            Ecn { from_bytes, all_bytes, chance: dice.bits() as u32 }
        })
    });
    EthernetSwitchPlan {
        memory: MemoryPlan {
            bytes: set_aside + 2_000 + dice.below(60_000),
            cell_bytes,
            reserve_bytes,
            headroom_bytes,
            alpha_256: 1 << dice.below(11),
            lossy_alpha_256: 1 << dice.below(11),
            resume_bytes: dice.below(4_000),
        },
        lossless,
        pauses_links,
        latency_ps: dice.below(2_000_000),
        cut_through: dice.chance(30),
        ecn,
        longest_bytes: if dice.chance(90) { 9_238 } else { 1_522 },
        vlans: vec![u32::MAX; ports],
    }
}

/// Gives VLANs to some links, mostly the same ones at both ends. All links accept frames of no
/// VLAN.
fn draw_vlans(dice: &mut SplitMix64, links: &[EthernetLinkPlan], switches: &mut [EthernetSwitchPlan]) {
    for link in links {
        if !dice.chance(60) {
            continue;
        }
        let mut vlans = dice.bits() as u32 | 1;
        for end in link.ends {
            if let Station::Switch { switch, port } = end {
                switches[usize::from(switch)].vlans[usize::from(port)] = vlans;
            }
            if dice.chance(5) {
                vlans = dice.bits() as u32 | 1;
            }
        }
    }
}

/// Returns a random Ethernet.
pub fn draw_plan(dice: &mut SplitMix64) -> EthernetPlan {
    let switches = 1 + dice.index(4);
    let interfaces = 2 + dice.index(6);
    let mut ports = vec![0u16; switches];
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
    let rates = [8_000, 800, 800, 320, 80];
    let lossless = [0, 1 << 3, 1 << 3, 1 << 3 | 1 << 4][dice.index(4)];
    let links = ends.into_iter().map(|ends| EthernetLinkPlan {
        ends,
        byte: ByteTime::new(rates[dice.index(rates.len())], 1),
        propagation_ps: dice.below(1_000_000),
        reaction_ps: dice.below(3_000_000),
        shares: std::array::from_fn(|_| {
            std::array::from_fn(|_| if dice.chance(50) { 0 } else { 1 + dice.below(60) as u8 })
        }),
    });
    let links: Vec<EthernetLinkPlan> = links.collect();
    // Some networks pause whole links; in some of them, not all switches do.
    // A generator of its own, so that the other draws do not depend on it.
    let mut other = SplitMix64(!dice.0);
    let (all, most) = (other.chance(25), other.chance(15));
    let switches = ports.iter().map(|&ports| {
        let pauses_links = all || (most && other.chance(70));
        draw_switch(dice, ports.into(), (lossless, pauses_links))
    });
    let mut switches: Vec<EthernetSwitchPlan> = switches.collect();
    if other.chance(50) {
        draw_vlans(&mut other, &links, &mut switches);
    }
    EthernetPlan { switches, links, interfaces: interfaces as u16, seed: dice.bits() }
}

fn draw_actions(dice: &mut SplitMix64, plan: &EthernetPlan) -> BTreeMap<u64, Vec<Action>> {
    let mut actions: BTreeMap<u64, Vec<Action>> = BTreeMap::new();
    let mut now = 0;
    let interfaces = u64::from(plan.interfaces);
    let faulty = dice.chance(60);
    for position in 0..60 + dice.below(160) as u32 {
        now += if dice.chance(60) { dice.below(3_000) } else { dice.below(8_000_000) };
        let (from, to) = (dice.below(interfaces) as u16, dice.below(interfaces) as u16);
        if from != to {
            let bytes = [64, 84, 594, 1_518, 2_180, 9_018][dice.index(6)];
            let flow = u32::from(from) << 16 | dice.below(6) as u32;
            let mut packet = Packet::new(from, to, flow, position, bytes);
            packet = packet.with_priority([0, 3, 3, 4, 7][dice.index(5)]).with_vlan([0, 0, 1, 2, 31][dice.index(5)]);
            packet = if dice.chance(50) { packet.with_ecn() } else { packet };
            actions.entry(now).or_default().push(Action::Send(packet));
        }
        if faulty && dice.chance(6) {
            let link = dice.below(plan.links.len() as u64) as u32;
            let action = match dice.below(3) {
                0 => Action::Link(link, dice.chance(60)),
                1 => Action::Storm(dice.below(interfaces) as u16, [0, 1 << 3, 1 << 4, 0xff][dice.index(4)]),
                _ => {
                    let [loss, damage, lateness] = [(); 3].map(|()| dice.bits() as u32 >> 2);
                    let late_ps = 1 + dice.below(5_000_000);
                    let errors = LineErrors { loss, damage, lateness, late_ps };
                    Action::Errors(2 * link + dice.below(2) as u32, errors)
                }
            };
            actions.entry(now).or_default().push(action);
        }
    }
    // In the end everything is healed.
    now += 20_000_000;
    let healed = actions.entry(now).or_default();
    healed.extend((0..plan.links.len() as u32).map(|link| Action::Link(link, true)));
    healed.extend((0..plan.interfaces).map(|interface| Action::Storm(interface, 0)));
    healed.extend((0..2 * plan.links.len() as u32).map(|line| Action::Errors(line, LineErrors::default())));
    actions
}

fn why(loss: PacketLoss) -> &'static str {
    match loss {
        PacketLoss::Congestion => "congestion",
        PacketLoss::Headroom => "headroom",
        PacketLoss::Fcs => "bad FCS",
        PacketLoss::FrameLoss => "lost",
        PacketLoss::LinkDown => "link down",
        PacketLoss::Vlan => "VLAN",
        PacketLoss::TooLong => "too long",
        PacketLoss::NoPath => "no path",
    }
}

/// Returns the lost frames by line and reason, with the words of the plain engine.
pub fn lost(plane: &EthernetPlane) -> BTreeMap<(u32, &'static str), u64> {
    plane.losses().map(|(line, loss, frames)| ((line, why(loss)), frames)).collect()
}

/// Returns all that must agree, except of the delivered frames.
pub fn states(plane: &EthernetPlane, plain: &Engine, plan: &EthernetPlan) -> [Vec<u64>; 2] {
    let mut states = [Vec::new(), Vec::new()];
    for (fast, plain) in plane.lines().iter().zip(&plain.lines) {
        let count = fast.count();
        states[0].extend([count.packets, count.bytes, count.pauses]);
        states[1].extend([plain.frames, plain.bytes, plain.pause_frames]);
    }
    for line in 0..plain.lines.len() {
        for priority in [0u8, 3, 4, 7] {
            states[0].push(plane.lines()[line].queued_bytes(priority.into()));
            states[1].push(plain.queued(line, priority));
        }
    }
    for (switch, switch_plan) in (0..).zip(&plan.switches) {
        for port in 0..switch_plan.vlans.len() {
            for priority in [3u8, 4] {
                let fast = plane.memory(switch).group(port, priority.into());
                let PlainGroup { reserve, shared, headroom, pauses } = plain.group(switch, port as u16, priority);
                states[0].extend([fast.reserve_bytes, fast.shared_bytes, fast.headroom_bytes, fast.pauses.into()]);
                states[1].extend([reserve, shared, headroom, pauses.into()]);
            }
        }
    }
    states
}

/// Runs both engines. Returns the frames delivered, the frames lost and the pause frames.
fn compare(seed: u64) -> [u64; 3] {
    let mut dice = SplitMix64(seed);
    let plan = draw_plan(&mut dice);
    let actions = draw_actions(&mut dice, &plan);
    let mut plain = Engine::new(&plan);
    let mut fabric = Fabric::new(plan.clone());
    let mut pending = actions.into_iter().peekable();
    let mut compared = 0;
    loop {
        let action_ps = pending.peek().map_or(u64::MAX, |action| action.0);
        let now = plain.next_ps().min(action_ps);
        if now == u64::MAX {
            break;
        }
        // Nothing may happen before.
        fabric.run_to(now.saturating_sub(1));
        let agree = |fabric: &Fabric, plain: &Engine, when: &str| {
            let [fast, slow] = states(&fabric.net.ethernet, plain, &plan);
            assert_eq!(fast, slow, "seed {seed}, {when} {now} ps");
        };
        agree(&fabric, &plain, "before");
        fabric.run_to(now);
        plain.go(now);
        if action_ps == now {
            for action in pending.next().map(|action| action.1).unwrap_or_default() {
                match action {
                    Action::Send(packet) => {
                        fabric.send(packet);
                        plain.send(packet);
                    }
                    Action::Link(link, up) => {
                        fabric.net.set_ethernet_link(link, up);
                        plain.set_link(link as usize, up);
                    }
                    Action::Storm(interface, storm) => {
                        fabric.net.set_pause_storm(interface, storm);
                        plain.set_storm(interface, storm);
                    }
                    Action::Errors(line, errors) => {
                        *fabric.net.ethernet.errors_mut(line) = errors;
                        plain.lines[line as usize].errors = errors;
                    }
                }
            }
        }
        agree(&fabric, &plain, "at");
        let new = fabric.delivered[compared..].iter();
        let fast: Vec<_> =
            new.map(|(at, to, packet)| (*at, *to, packet.flow, packet.position, packet.has_congestion())).collect();
        assert_eq!(fast, plain.delivered[compared..], "seed {seed}, {now} ps");
        compared = plain.delivered.len();
    }
    assert_eq!(lost(&fabric.net.ethernet), plain.lost, "seed {seed}");
    let fate = fabric.net.ethernet.fate;
    let waits = fabric.net.ethernet.packets_in_network();
    assert!(waits == 0 || !fabric.net.ethernet.deadlocks().is_empty(), "seed {seed}: {waits} frames wait");
    let pauses = fabric.net.ethernet.lines().iter().map(|line| line.count().pauses).sum();
    [fate.delivered, fate.lost, pauses]
}

#[test]
fn random_networks_agree_with_the_plain_engine_at_every_instant() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let one = number("SANLOOM_SEED");
    let first = one.or(number("SANLOOM_FIRST_SEED")).unwrap_or(0);
    let seeds = one.map_or(number("SANLOOM_SEEDS").unwrap_or(SEEDS), |_| 1);
    let mut totals = [0; 3];
    for seed in first..first + seeds {
        compare(seed).iter().zip(&mut totals).for_each(|(part, sum)| *sum += part);
    }
    let [delivered, lost, pauses] = totals;
    println!("{seeds} networks: {delivered} frames delivered, {lost} lost, {pauses} pause frames");
    assert!(one.is_some() || (lost > 10 * seeds && delivered > 20 * seeds && pauses > seeds), "{totals:?}");
}
