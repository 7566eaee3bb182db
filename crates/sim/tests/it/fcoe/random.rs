//! Both planes against the plain engine, on random networks of virtual links with faults, at every
//! instant.
//!
//! ```text
//! SANLOOM_SEED=17 cargo test -p sanloom-sim --test it fcoe::random                one case
//! SANLOOM_FIRST_SEED=5000 SANLOOM_SEEDS=4000 cargo test -p sanloom-sim --test it …    other cases
//! ```

use super::plain::Below as Plain;
use crate::ethernet::random::{draw_plan, lost, states};
use crate::frame_path::Comparison;
use crate::frame_path::case::{Action, Case, NPortCase, SwitchCase, Target};
use crate::frame_path::network::{Below, Both};
use crate::frame_path::plain::Chances;
use sanloom_fc::config::{Arbitration, CrossbarLimits, IslChoice, IslHash, LineRate, Queueing};
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::net::ethernet::{EthernetPlan, EthernetPlane, LineErrors, Packet, Station};
use sanloom_sim::net::fcoe::{FcoeLanePlan, FcoePlan};
use std::collections::BTreeMap;

const SEEDS: u64 = 120;
const RATES: [LineRate; 5] = [LineRate::Fc1, LineRate::Fc2, LineRate::Fc4, LineRate::Fc10, LineRate::Fc32];
/// Time after the last action, in ps: enough for the backlog of most cases.
const REST_PS: u64 = 20_000_000_000;

/// A step of a case.
#[derive(Clone, Debug)]
enum Step {
    Fibre(Action),
    Send(Packet),
    EthernetLink(u32, bool),
    Storm(u16, u8),
    Errors(u32, LineErrors),
}

/// A network and what happens to it.
struct Draw {
    case: Case,
    ethernet: EthernetPlan,
    fcoe: FcoePlan,
    steps: Vec<(u64, Step)>,
}

fn draw_case(dice: &mut SplitMix64) -> Case {
    let switches = 1 + dice.index(3);
    let queueing = [Queueing::Fifo, Queueing::Any, Queueing::Voq];
    let switch = |dice: &mut SplitMix64| SwitchCase {
        queueing: queueing[dice.index(3)],
        arbitration: [Arbitration::RoundRobin, Arbitration::OldestFirst][dice.index(2)],
        crossbar: CrossbarLimits {
            speedup_percent: 50 + dice.below(350) as u32,
            bandwidth_bit_per_s: dice.chance(30).then(|| 1_000_000_000 + dice.below(60_000_000_000)),
            egress_frames: 1 + dice.below(3) as u16,
        },
        cut_through: dice.chance(50),
        latency_ns: dice.below(2_000),
    };
    let light = |dice: &mut SplitMix64| if dice.chance(50) { 250 } else { 5 + dice.below(20_000) };
    let credits = |dice: &mut SplitMix64| [1 + dice.below(16) as u32, 1 + dice.below(16) as u32];
    let mut isls = Vec::new();
    for number in 1..switches {
        for _ in 0..1 + dice.below(2) {
            let other = dice.index(number);
            isls.push((other, number, RATES[dice.index(5)], light(dice), credits(dice), false));
        }
    }
    let nport = |dice: &mut SplitMix64| NPortCase {
        switch: dice.index(switches),
        rate: RATES[dice.index(5)],
        light_ns: light(dice),
        credits: credits(dice),
        empties_after_ns: if dice.chance(60) { 0 } else { 1 + dice.below(40_000) },
    };
    let nports = (0..2 + dice.below(5)).map(|_| nport(dice)).collect();
    let timeout = |dice: &mut SplitMix64, least: u64, more: u64| dice.chance(40).then(|| least + dice.below(more));
    Case {
        switches: (0..switches).map(|_| switch(dice)).collect(),
        isls,
        nports,
        channels: Vec::new(),
        isl_choice: [IslChoice::Ingress, IslChoice::Exchange, IslChoice::Spray, IslChoice::LeastLoaded][dice.index(4)],
        isl_hash: IslHash::Plain,
        bb_sc_n: 0,
        hold_time: timeout(dice, 50_000, 1_000_000),
        e_d_tov: timeout(dice, 100_000, 2_000_000),
        actions: Vec::new(),
    }
}

/// Draws the virtual links of a case: some links of N_Ports (VN_Ports) and between switches
/// (VE_Ports).
fn draw_virtual_links(dice: &mut SplitMix64, case: &Case, ethernet: &EthernetPlan) -> FcoePlan {
    let mut plan = FcoePlan::default();
    let links = case.nports.len() + case.isls.len();
    let interfaces = usize::from(ethernet.interfaces);
    for link in (0..links).filter(|link| *link == 0 || dice.chance(60)).collect::<Vec<usize>>() {
        let one = dice.index(interfaces);
        let other = (one + 1 + dice.index(interfaces - 1)) % interfaces;
        let priority = if dice.chance(85) { 3 } else { [0, 4][dice.index(2)] };
        let vlan = if dice.chance(90) { 0 } else { 1 };
        let pauses = dice.chance(75);
        for (lane, ends) in [(2 * link, [one, other]), (2 * link + 1, [other, one])] {
            let headroom_bytes = dice.below(15_000);
            let lane_plan = FcoeLanePlan {
                interfaces: ends.map(|end| end as u16),
                priority,
                vlan,
                has_tag: priority != 0,
                pauses,
                is_tunnel: false,
                buffer_bytes: headroom_bytes + 2_200 + dice.below(20_000),
                headroom_bytes,
                overhead_bytes: if priority == 0 { 28 } else { 32 },
            };
            plan.lanes.push((lane as u32, lane_plan));
        }
    }
    plan
}

fn draw_fault(dice: &mut SplitMix64, case: &Case, fcoe: &FcoePlan, ethernet: &EthernetPlan) -> Step {
    let links = case.nports.len() + case.isls.len();
    let link = dice.index(links);
    let ethernet_link = dice.below(ethernet.links.len() as u64) as u32;
    let interface = dice.below(ethernet.interfaces.into()) as u16;
    let is_virtual = |lane: usize| fcoe.lanes.iter().any(|(other, _)| *other as usize == lane);
    match dice.below(12) {
        0 | 1 => Step::EthernetLink(ethernet_link, dice.chance(60)),
        2 | 3 => Step::Storm(interface, [0, 1 << 3, 1 << 4, 0xff][dice.index(4)]),
        4 | 5 => {
            let [loss, damage, lateness] = [(); 3].map(|()| dice.bits() as u32 >> 2);
            let late_ps = 1 + dice.below(2_000_000);
            let errors =
                if dice.chance(30) { LineErrors::default() } else { LineErrors { loss, damage, lateness, late_ps } };
            Step::Errors(2 * ethernet_link + dice.below(2) as u32, errors)
        }
        6 => Step::Fibre(Action::Down { link }),
        7 | 8 => Step::Fibre(Action::Up { link }),
        9 => Step::Fibre(Action::Reroute),
        10 => Step::Fibre(Action::Reset { switch: dice.index(case.switches.len()) }),
        _ => {
            let lane = 2 * link + dice.index(2);
            let chance = |dice: &mut SplitMix64| [0.0, 0.05, 0.3][dice.index(3)];
            let chances = Chances { frame_loss: chance(dice), crc_errors: chance(dice), r_rdy_loss: chance(dice) };
            // Faults of a virtual link are those of its Ethernet.
            let chances =
                if is_virtual(lane) { Chances { frame_loss: 0.0, crc_errors: 0.0, r_rdy_loss: 0.0 } } else { chances };
            Step::Fibre(Action::Chances { lane, chances })
        }
    }
}

fn draw_load(dice: &mut SplitMix64, case: &Case, ethernet: &EthernetPlan, position: u32) -> Step {
    let nports = case.nports.len();
    let from = dice.index(nports);
    let to = match dice.below(12) {
        0 => Target::Nobody(dice.index(case.switches.len())),
        1 => Target::Controller(dice.index(case.switches.len())),
        2 => Target::NameServer,
        _ => Target::NPort(dice.index(nports)),
    };
    match dice.below(10) {
        0..6 => Step::Fibre(Action::Data { from, to, bytes: 1 + dice.below(30_000) as u32 }),
        6 => Step::Fibre(Action::Message { from, to, bytes: dice.index(200) }),
        7 => {
            let switch = dice.index(case.switches.len());
            Step::Fibre(Action::FromSwitch { switch, port: dice.index(8), to, bytes: dice.index(3_000) })
        }
        _ => {
            let interfaces = usize::from(ethernet.interfaces);
            let from = dice.index(interfaces);
            let to = (from + 1 + dice.index(interfaces - 1)) % interfaces;
            let flow = 1 << 20 | dice.below(6) as u32;
            let bytes = [64, 594, 1_518, 9_018][dice.index(4)];
            let packet = Packet::new(from as u16, to as u16, flow, position, bytes);
            Step::Send(packet.with_priority([0, 3, 4, 7][dice.index(4)]))
        }
    }
}

fn draw(seed: u64) -> Draw {
    let dice = &mut SplitMix64(seed);
    let (case, ethernet) = (draw_case(dice), draw_plan(dice));
    let fcoe = draw_virtual_links(dice, &case, &ethernet);
    let faulty = dice.chance(65);
    let (mut steps, mut now) = (Vec::new(), 0);
    for position in 0..20 + dice.below(60) as u32 {
        now += match dice.below(10) {
            0..5 => 0,
            5..8 => dice.below(20_000_000),
            _ => dice.below(300_000_000),
        };
        steps.push((now, draw_load(dice, &case, &ethernet, position)));
        if faulty && dice.chance(25) {
            steps.push((now, draw_fault(dice, &case, &fcoe, &ethernet)));
        }
    }
    // In the end everything is healed.
    now += 50_000_000;
    let links = case.nports.len() + case.isls.len();
    let healed = (0..ethernet.links.len() as u32).map(|link| Step::EthernetLink(link, true));
    let healed = healed.chain((0..ethernet.interfaces).map(|interface| Step::Storm(interface, 0)));
    let healed =
        healed.chain((0..2 * ethernet.links.len() as u32).map(|line| Step::Errors(line, LineErrors::default())));
    let healed = healed.chain((0..links).map(|link| Step::Fibre(Action::Up { link })));
    steps.extend(healed.chain([Step::Fibre(Action::Reroute)]).map(|step| (now, step)));
    Draw { case, ethernet, fcoe, steps }
}

/// Both engines during a case.
struct Run {
    seed: u64,
    plan: EthernetPlan,
    comparison: Comparison,
    plain: Plain,
    compared: usize,
}

impl Run {
    fn new(seed: u64, Draw { case, ethernet, fcoe, .. }: &Draw) -> Run {
        let mut plane = EthernetPlane::new(ethernet.clone()).expect("enough memory");
        let mut plain = Plain::new(fcoe, ethernet);
        let line_of = |interface: u16| {
            let ends = |line: &sanloom_sim::net::ethernet::Line| line.from == Station::Interface(interface);
            plane.lines().iter().position(ends).expect("each interface has a link")
        };
        let lanes: BTreeMap<usize, (usize, FcoeLanePlan)> =
            fcoe.lanes.iter().map(|&(lane, plan)| (lane as usize, (line_of(plan.interfaces[0]), plan))).collect();
        let rate = |line: usize| ethernet.links[line / 2].byte.fraction().0;
        let rates = lanes.iter().map(|(&lane, &(line, _))| (lane, rate(line))).collect();
        for (line, plan) in lanes.values().filter(|(_, plan)| !plan.pauses) {
            plane.ignore_pauses(*line as u32, 1 << plan.priority);
            plain.ethernet.lines[*line].obeys &= !(1 << plan.priority);
        }
        let below = Below { lanes: rates, fcoe: fcoe.clone(), ethernet: plane };
        let comparison = Comparison::new(Both::over(case, below));
        Run { seed, plan: ethernet.clone(), comparison, plain, compared: 0 }
    }

    /// Runs both engines up to `until` and compares them at each instant, and just before it.
    fn run(&mut self, until: u64) {
        loop {
            let next = self.plain.next_ps(&self.comparison.both.plain).min(until);
            if next > self.comparison.both.plain.now {
                self.comparison.run_fast(next - 1);
                self.agree("before");
            }
            self.comparison.run_fast(next);
            self.plain.go(&mut self.comparison.both.plain, next);
            self.agree("at");
            if next == until {
                return;
            }
        }
    }

    fn execute(&mut self, step: Step) {
        let Run { comparison, plain, .. } = self;
        match step {
            Step::Fibre(action) => comparison.execute(action),
            Step::Send(packet) => {
                comparison.both.fast.send_packet(packet);
                plain.ethernet.send(packet);
            }
            Step::EthernetLink(link, up) => {
                comparison.both.fast.set_ethernet_link(link, up);
                plain.ethernet.set_link(link as usize, up);
            }
            Step::Storm(interface, storm) => {
                comparison.both.fast.set_pause_storm(interface, storm);
                plain.ethernet.set_storm(interface, storm);
            }
            Step::Errors(line, errors) => {
                *comparison.both.fast.ethernet.errors_mut(line) = errors;
                plain.ethernet.lines[line as usize].errors = errors;
            }
        }
    }

    fn agree(&mut self, when: &str) {
        let (seed, now) = (self.seed, self.comparison.both.fast.now());
        let place = format!("seed {seed}, {when} {} ps", self.comparison.both.plain.now);
        self.comparison.same(when).unwrap_or_else(|error| panic!("{place}: {error}"));
        let (fast, fibre, plain) = (&self.comparison.both.fast, &self.comparison.both.plain, &self.plain);
        let [found, expected] = states(&fast.ethernet, &plain.ethernet, &self.plan);
        assert_eq!(found, expected, "{place}: Ethernet");
        for (number, (lane, expected)) in fast.fc.lanes().iter().zip(&fibre.lanes).enumerate() {
            let held = fast.fc.held_by_receiver(number as u32) as usize;
            let found = (lane.up, lane.credits_at(now) as usize, lane.bytes(), held);
            let held = fibre.held_by_receiver(number);
            assert_eq!(
                found,
                (expected.up, expected.credits_at(now), expected.sent_bytes(), held),
                "{place}: {number}"
            );
        }
        for (&number, lane) in &plain.lanes {
            let buffer = fast.fc.fcoe.buffer(number as u32).expect("a virtual link");
            let found = (buffer.held_bytes, buffer.max_bytes, buffer.lost, buffer.is_pausing);
            assert_eq!(found, (lane.held_bytes(), lane.most_bytes, lane.lost, lane.pauses), "{place}: buffer {number}");
        }
        assert_eq!(fast.fc.fcoe.frames(), plain.frames(), "{place}: frames on Ethernet");
        let packets = self.comparison.packets[self.compared..].iter();
        let found: Vec<_> =
            packets.map(|(at, to, packet)| (*at, *to, packet.flow, packet.position, packet.has_congestion())).collect();
        assert_eq!(found, plain.ethernet.delivered[self.compared..], "{place}: frames of others");
        self.compared = plain.ethernet.delivered.len();
    }

    /// Compares the times of all deliveries and the losses. Returns what occurred.
    fn end(mut self) -> BTreeMap<&'static str, u64> {
        let seed = self.seed;
        self.comparison.same_history().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (fast, fibre) = (&self.comparison.both.fast, &self.comparison.both.plain);
        assert_eq!(lost(&fast.ethernet), self.plain.ethernet.lost, "seed {seed}");
        fast.ethernet.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut occurred: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (&(_, why), frames) in &fibre.lost {
            *occurred.entry(why).or_default() += frames;
        }
        occurred.insert("delivered", fibre.delivered.len() as u64);
        occurred.insert("over Ethernet", self.plain.carried());
        occurred.insert("of others", self.plain.ethernet.delivered.len() as u64);
        occurred.insert("pauses", self.plain.ethernet.lines.iter().map(|line| line.pause_frames).sum());
        occurred.insert("pauses of receivers", self.plain.begun_pauses);
        occurred.insert("held at the sender", self.plain.returned_places);
        occurred
    }
}

fn compare(seed: u64) -> BTreeMap<&'static str, u64> {
    let draw = draw(seed);
    let mut run = Run::new(seed, &draw);
    let mut now = 0;
    for (at, step) in draw.steps {
        if at > now {
            run.run(at);
            now = at;
        }
        run.execute(step);
        run.run(now);
    }
    run.run(now + REST_PS);
    run.end()
}

/// Events that must occur, with their least number in a hundred cases.
const WANTED: [(&str, u64); 13] = [
    ("delivered", 2_000),
    ("over Ethernet", 5_000),
    ("of others", 100),
    ("pauses", 2_000),
    ("pauses of receivers", 50),
    ("held at the sender", 5_000),
    ("ethernet", 2_000),
    ("fcoe_buffer", 40),
    ("link_down", 100),
    ("switch_reset", 30),
    ("hold_time", 25),
    ("link_reset", 4),
    ("crc_error", 6),
];

#[test]
fn random_virtual_links_agree_with_the_plain_engine_at_every_instant() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let one = number("SANLOOM_SEED");
    let first = one.or(number("SANLOOM_FIRST_SEED")).unwrap_or(0);
    let seeds = one.map_or(number("SANLOOM_SEEDS").unwrap_or(SEEDS), |_| 1);
    let mut occurred: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in first..first + seeds {
        for (what, times) in compare(seed) {
            *occurred.entry(what).or_default() += times;
        }
    }
    println!("{seeds} networks: {occurred:?}");
    for (what, least) in WANTED {
        let times = occurred.get(what).copied().unwrap_or(0);
        assert!(one.is_some() || times * 100 >= least * seeds, "{what}: {times} times in {seeds} cases: {occurred:?}");
    }
}
