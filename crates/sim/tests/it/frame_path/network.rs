//! Construction of the same network for both engines.

use crate::frame_path::case::{Case, Target};
use crate::frame_path::plain;
use sanloom_fc::config::{ChannelCredits, Forwarding, IslHash, LineRate, Picos, Priority, Queueing, Switch};
use sanloom_fc::fabric::routes::{Isl, IslEnd, SwitchRoutes, routes};
use sanloom_fc::fabric::{FibDelta, Leg, PortMode};
use sanloom_sim::net::ethernet::EthernetPlane;
use sanloom_sim::net::fcoe::FcoePlan;
use sanloom_sim::net::line::ByteTime;
use sanloom_sim::net::{End, Lane, NPortPlan, Net, NetPlan, SwitchPlan};
use sanloom_wire::FcId;
use std::collections::BTreeMap;

/// A time after the end of any case.
const NEVER_PS: u64 = 1 << 60;

/// Area part of an unassigned address.
const NOBODY: u8 = 0xee;

/// Links and ports of a case, in the order of the ports.
#[derive(Default)]
pub struct Wiring {
    /// Number of ports of each switch.
    pub ports: Vec<u16>,
    /// Ends of each lane.
    pub ends: Vec<[End; 2]>,
    /// Time of a byte on each lane: ps and the bytes they belong to.
    rates: Vec<(u64, u64)>,
    pub ids: Vec<FcId>,
    lanes: Vec<Lane>,
    channels: Vec<(u32, ChannelCredits)>,
    plain_lanes: Vec<plain::Lane>,
    /// ISLs with their link numbers.
    isls: Vec<(usize, Isl)>,
    /// Bundle of each port, indexed by switch.
    bundle_of: Vec<Vec<Option<u16>>>,
    bundles: u16,
    /// Switch and port of each N_Port.
    homes: Vec<(usize, u16)>,
}

/// Ethernet below the virtual links of a case.
#[derive(Default)]
pub struct Below {
    /// Time of a byte on each lane of a virtual link, in ps.
    pub lanes: BTreeMap<usize, u32>,
    pub fcoe: FcoePlan,
    pub ethernet: EthernetPlane,
}

impl Wiring {
    fn of(case: &Case, virtual_lanes: &BTreeMap<usize, u32>) -> Wiring {
        let count = case.switches.len();
        let mut wiring = Wiring { ports: vec![0; count], bundle_of: vec![Vec::new(); count], ..Wiring::default() };
        for (number, nport) in case.nports.iter().enumerate() {
            let port = wiring.take(nport.switch);
            let ends = [End::NPort(number as u16), End::Switch { switch: nport.switch as u16, port }];
            wiring.link(ends, nport.rate, nport.light_ns, nport.credits, None);
            wiring.ids.push(FcId::from_parts(nport.switch as u8 + 1, port as u8, 0));
            wiring.homes.push((nport.switch, port));
        }
        wiring.join(case);
        wiring.add_channels(case);
        for (&lane, &ps_per_byte) in virtual_lanes {
            wiring.lanes[lane] = wiring.lanes[lane].clone().with_byte_time(ByteTime::new(ps_per_byte, 1));
            wiring.rates[lane] = (ps_per_byte.into(), 1);
            let plain = wiring.plain_lanes.remove(lane);
            wiring.plain_lanes.insert(lane, plain.carried(ps_per_byte.into()));
        }
        wiring
    }

    /// Adds the ISLs, some of them in bundles.
    fn join(&mut self, case: &Case) {
        let mut previous = None;
        for &(a, b, rate, light, credits, joins) in case.isls.iter().filter(|isl| isl.0 != isl.1) {
            // Links of a bundle join the same switches and have the same rate.
            let bundle = match previous {
                Some((pa, pb, pr, pl, bundle)) if joins && (pa, pb, pr, pl) == (a, b, rate, light) => bundle,
                _ => {
                    self.bundles += 1;
                    self.bundles - 1
                }
            };
            previous = Some((a, b, rate, light, bundle));
            for _ in 0..if joins { 2 } else { 1 } {
                let (pa, pb) = (self.take(a), self.take(b));
                let number = joins.then_some(bundle);
                let ends = [(a, pa), (b, pb)].map(|(switch, port)| End::Switch { switch: switch as u16, port });
                self.link(ends, rate, light, credits, number);
                for (switch, port) in [(a, pa), (b, pb)] {
                    self.bundle_of[switch].resize(usize::from(port) + 1, None);
                    self.bundle_of[switch][usize::from(port)] = number;
                }
                let (a, b) = (IslEnd { switch: a, port: pa }, IslEnd { switch: b, port: pb });
                self.isls.push((self.links() - 1, Isl { a, b, cost: 1, bundle: number, up: true }));
            }
        }
    }

    /// Adds virtual channels to the links between switches with virtual output queues.
    fn add_channels(&mut self, case: &Case) {
        let is_voq = |end: &End| matches!(end, End::Switch { switch, .. } if case.switches[usize::from(*switch)].queueing == Queueing::Voq);
        for number in 0..self.lanes.len() {
            if case.channels.is_empty() || !self.ends[number].iter().all(is_voq) {
                continue;
            }
            let lane = &self.lanes[number];
            // The lines of a bundle have the same channels, as many as its shortest line allows.
            let lines = self.lanes.iter().filter(|other| other.bundle.is_some() && other.bundle == lane.bundle);
            let least = lines.map(|line| line.bb_credit).min().unwrap_or(lane.bb_credit);
            // Medium priority is always there.
            let medium = case.channels.iter().copied().find(|(number, _)| *number == 2).unwrap_or((2, 1));
            let others = case.channels.iter().copied().filter(|(number, _)| *number != 2);
            let numbers = std::iter::once((0, 1)).chain([medium]).chain(others);
            let mut credits = ChannelCredits::default();
            for (number, _) in numbers.clone().take(least as usize) {
                // The numbers of a priority have no gaps.
                let mut range = Priority::of_channel(number).channels();
                let free = range.find(|&free| credits.0[usize::from(free)] == 0);
                credits.0[usize::from(if number == 0 { 0 } else { free.expect("a free number") })] = 1;
            }
            if least < 2 {
                continue;
            }
            let mut rest = lane.bb_credit as u16 - credits.channels().count() as u16;
            let present: Vec<u8> = credits.channels().collect();
            for (channel, (_, share)) in present.iter().zip(numbers) {
                let more = (share - 1).min(rest);
                credits.0[usize::from(*channel)] += more;
                rest -= more;
            }
            credits.0[2] += rest;
            let by_number = present.iter().map(|&channel| (channel, credits.0[usize::from(channel)].into())).collect();
            self.plain_lanes[number].channels = Some(plain::Channels::new(&by_number));
            self.channels.push((number as u32, credits));
        }
    }

    /// Allocates the next port of a switch.
    fn take(&mut self, switch: usize) -> u16 {
        self.ports[switch] += 1;
        self.ports[switch] - 1
    }

    pub fn links(&self) -> usize {
        self.ends.len() / 2
    }

    /// Returns the links of a switch.
    pub fn links_of(&self, switch: usize) -> Vec<usize> {
        let at_switch = |end: &End| matches!(end, End::Switch { switch: s, .. } if usize::from(*s) == switch);
        (0..self.links()).filter(|&link| self.ends[2 * link].iter().any(at_switch)).collect()
    }

    fn link(&mut self, [a, b]: [End; 2], rate: LineRate, light: u64, credits: [u32; 2], bundle: Option<u16>) {
        for (from, to, credit, direction) in [(a, b, credits[0], 0), (b, a, credits[1], 1)] {
            let mut lane = Lane::new(from, to, rate, light * 1_000, credit);
            lane.bundle = bundle.map(|bundle| 2 * bundle + direction);
            let bundle = lane.bundle.map(usize::from);
            let (plain_from, plain_to) = (plain_end(from), plain_end(to));
            self.plain_lanes.push(plain::Lane::new(plain_from, plain_to, rate, light * 1_000, credit as usize, bundle));
            self.lanes.push(lane);
            self.ends.push([from, to]);
            self.rates.push(rate.ps_per_byte());
        }
    }

    /// Returns the output ports of a switch for its legs. A bundle is represented by its first
    /// port.
    fn outputs(&self, switch: usize, legs: &[Leg]) -> Vec<usize> {
        let first_of = |bundle: u16| self.bundle_of[switch].iter().position(|&b| b == Some(bundle)).unwrap();
        let port_of = |leg: &Leg| match leg {
            Leg::Port(port) => usize::from(*port),
            Leg::Bundle(bundle) => first_of(*bundle),
        };
        legs.iter().map(port_of).collect()
    }

    fn routes(&self, up: impl Fn(usize) -> bool) -> Vec<SwitchRoutes> {
        let domains: Vec<u8> = (1..=self.ports.len() as u8).collect();
        let isls: Vec<Isl> = self.isls.iter().map(|&(link, isl)| Isl { up: up(link), ..isl }).collect();
        routes(&domains, &isls)
    }
}

pub fn plain_end(end: End) -> plain::End {
    match end {
        End::Switch { switch, port } => plain::End::Switch(usize::from(switch), usize::from(port)),
        End::NPort(nport) => plain::End::NPort(usize::from(nport)),
        End::Loop { number, .. } => panic!("the plain engine has no loops, but the lane ends at loop {number}"),
    }
}

/// Returns the same switch for each of the two engines.
fn build_switch(case: &Case, wiring: &Wiring, number: usize) -> (SwitchPlan, plain::Switch) {
    let case_switch = &case.switches[number];
    let ports = wiring.ports[number].max(1);
    let domain = number as u8 + 1;
    let config = Switch {
        name: format!("s{number}"),
        wwn: Switch::made_up_wwn(number as u16),
        domain,
        ports,
        rates: [None; 2],
        forwarding: if case_switch.cut_through { Forwarding::CutThrough } else { Forwarding::StoreAndForward },
        queueing: case_switch.queueing,
        arbitration: case_switch.arbitration,
        crossbar: case_switch.crossbar,
        virtual_channels: None,
        quarantine: None,
        latency: Picos::from_ns(case_switch.latency_ns),
        isl_choice: case.isl_choice,
        isl_hash: case.isl_hash,
        processor: None,
        policy: Default::default(),
        joining: Default::default(),
        virtual_fabric: None,
    };
    let mut bundle_of = wiring.bundle_of[number].clone();
    bundle_of.resize(usize::from(ports), None);
    let together = |port: usize| match bundle_of[port] {
        Some(bundle) => (0..bundle_of.len()).filter(|&other| bundle_of[other] == Some(bundle)).collect(),
        None => vec![port],
    };
    let mut plain = plain::Switch::new(
        (config.queueing, config.arbitration, config.isl_choice),
        case_switch.cut_through,
        case_switch.latency_ns * 1_000,
        domain.into(),
        (0..usize::from(ports)).map(together).collect(),
    );
    let at_switch = |end: &End| matches!(end, End::Switch { switch, .. } if usize::from(*switch) == number);
    let rates = wiring.ends.iter().zip(&wiring.rates).filter(|(ends, _)| ends.iter().any(at_switch));
    if let Some(fastest) = rates.map(|(_, rate)| *rate).min_by_key(|&(ps, bytes)| (ps << 20) / bytes) {
        plain.speed = plain::Speed::new(config.crossbar, fastest);
        plain.fastest = fastest;
    }
    plain.salt = (case.isl_hash == IslHash::Salted).then_some(config.wwn.0);
    for (id, home) in wiring.ids.iter().zip(&wiring.homes).filter(|(_, home)| home.0 == number) {
        plain.owners.insert(id.to_u32(), home.1.into());
    }
    (SwitchPlan { bundle_of_port: bundle_of, config }, plain)
}

/// Both engines, built from one case.
pub struct Both {
    pub fast: Net,
    pub plain: plain::Engine,
    pub wiring: Wiring,
    /// For each N_Port, the time to empty a buffer, in ps.
    pub empties_after: Vec<u64>,
}

impl Both {
    pub fn of(case: &Case) -> Both {
        Both::over(case, Below::default())
    }

    /// Returns both engines of a case some of whose links are virtual. The plain engine leaves
    /// their frames to its caller.
    pub fn over(case: &Case, Below { lanes, fcoe, ethernet }: Below) -> Both {
        let mut wiring = Wiring::of(case, &lanes);
        let built = (0..case.switches.len()).map(|number| build_switch(case, &wiring, number));
        let (plans, plain_switches): (Vec<SwitchPlan>, Vec<plain::Switch>) = built.unzip();
        let [hold_time_ps, e_d_tov_ps] = [case.hold_time, case.e_d_tov].map(|ns| ns.map_or(NEVER_PS, |ns| ns * 1_000));
        let empties_after: Vec<u64> = case.nports.iter().map(|nport| nport.empties_after_ns * 1_000).collect();
        for (lane, plain) in wiring.lanes.iter_mut().zip(&mut wiring.plain_lanes) {
            (lane.state_changes.n, plain.state_changes) = (case.bb_sc_n, case.bb_sc_n);
        }
        let plan = NetPlan {
            switches: plans,
            lanes: std::mem::take(&mut wiring.lanes),
            channels: wiring.channels.clone(),
            nports: case
                .nports
                .iter()
                .map(|_| NPortPlan { sequence_overhead_ps: 0, frame_overhead_ps: 0, frame_bytes: 2048 })
                .collect(),
            timers: 0,
            loops: 0,
            fcoe,
            bundles: 2 * usize::from(wiring.bundles),
            e_d_tov_ps,
            hold_time_ps,
        };
        let mut fast = Net::with_ethernet(plan, ethernet);
        for (number, &ports) in wiring.ports.iter().enumerate() {
            for port in 0..ports {
                let mode = if wiring.homes.contains(&(number, port)) { PortMode::F } else { PortMode::E };
                fast.fc.fib_mut(number as u16).apply(&FibDelta::PortMode { port, mode });
            }
        }
        for (&id, &(home, port)) in wiring.ids.iter().zip(&wiring.homes) {
            fast.fc.fib_mut(home as u16).apply(&FibDelta::OwnId { port, id });
        }
        let mut plain = plain::Engine::new(
            std::mem::take(&mut wiring.plain_lanes),
            plain_switches,
            empties_after.iter().copied().map(plain::NPort::new).collect(),
            hold_time_ps,
            e_d_tov_ps,
        );
        for (lane, credits) in &wiring.channels {
            let plain::End::Switch(switch, port) = plain.lanes[*lane as usize].from else { continue };
            let switch = &mut plain.switches[switch];
            let port = switch.together[port][0];
            if !switch.has_doors(port) {
                switch.add_doors(port, credits.channels());
            }
        }
        plain.priorities.matter = !wiring.channels.is_empty();
        let mut both = Both { fast, plain, wiring, empties_after };
        both.reroute();
        both
    }

    /// Updates the routes for the links that are up. Returns true if a route has changed.
    pub fn reroute(&mut self) -> bool {
        let mut changed = false;
        for (number, routes) in self.wiring.routes(|link| self.plain.lanes[2 * link].up).into_iter().enumerate() {
            for (domain, legs) in routes {
                let outputs = self.wiring.outputs(number, &legs);
                changed |= self.plain.switches[number].legs.insert(domain.into(), outputs.clone()) != Some(outputs);
                self.fast.fc.fib_mut(number as u16).apply(&FibDelta::Routes { domain, legs });
            }
        }
        changed
    }

    pub fn address(&self, target: Target) -> FcId {
        let domain = |switch: usize| (switch % self.wiring.ports.len()) as u8 + 1;
        match target {
            Target::NPort(nport) => self.wiring.ids[nport % self.wiring.ids.len()],
            Target::Nobody(switch) => FcId::from_parts(domain(switch), NOBODY, 0),
            Target::Controller(switch) => FcId::from_parts(0xff, 0xfc, domain(switch)),
            Target::NameServer => FcId::NAME_SERVER,
        }
    }
}
