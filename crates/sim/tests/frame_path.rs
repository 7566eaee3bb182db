//! The fast engine against the plain one: the same frames at the same times, on random networks.

mod plain;

use proptest::prelude::*;
use sanloom_core::config::{Arbitration, Forwarding, IslChoice, LineRate, Picos, Queueing, Switch};
use sanloom_core::exchange::{SeqIds, SeqTx};
use sanloom_core::fabric::routes::{Isl, IslEnd, routes};
use sanloom_core::fabric::{FibDelta, Leg, PortMode};
use sanloom_sim::net::{End, Lane, NPortPlan, Net, NetEvent, NetPlan, SwitchPlan};
use sanloom_wire::FcId;

/// A network and what is sent through it.
#[derive(Clone, Debug)]
struct Case {
    switches: Vec<SwitchCase>,
    /// Switches at the ends, rate, ns of light, credits both ways, whether it shares a bundle with the one before.
    isls: Vec<(usize, usize, LineRate, u64, [u32; 2], bool)>,
    /// Switch, rate, ns of light, credits both ways.
    nports: Vec<(usize, LineRate, u64, [u32; 2])>,
    /// Time in ns since the one before, sender, receiver, bytes.
    sends: Vec<(u64, usize, usize, u32)>,
    isl_choice: IslChoice,
}

#[derive(Clone, Copy, Debug)]
struct SwitchCase {
    queueing: Queueing,
    arbitration: Arbitration,
    cut_through: bool,
    latency_ns: u64,
}

fn rate() -> impl Strategy<Value = LineRate> {
    prop::sample::select(vec![
        LineRate::Fc1,
        LineRate::Fc2,
        LineRate::Fc2,
        LineRate::Fc4,
        LineRate::Fc10,
        LineRate::Fc32,
    ])
}

fn switch() -> impl Strategy<Value = SwitchCase> {
    let queueing = prop::sample::select(vec![Queueing::Fifo, Queueing::Any, Queueing::Voq]);
    let arbitration = prop::sample::select(vec![Arbitration::RoundRobin, Arbitration::OldestFirst]);
    (queueing, arbitration, any::<bool>(), 0u64..2_000).prop_map(|(queueing, arbitration, cut_through, latency_ns)| {
        SwitchCase { queueing, arbitration, cut_through, latency_ns }
    })
}

fn case() -> impl Strategy<Value = Case> {
    let light = prop_oneof![Just(250u64), 5u64..60_000];
    let credits = [1u32..6, 1u32..6];
    (1usize..5, 2usize..8).prop_flat_map(move |(switches, nports)| {
        let isl = (0..switches, 0..switches, rate(), light.clone(), credits.clone(), any::<bool>());
        let nport = (0..switches, rate(), light.clone(), credits.clone());
        let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..20_000, 1 => 0u64..2_000_000];
        (
            prop::collection::vec(switch(), switches),
            prop::collection::vec(isl, 0..8),
            prop::collection::vec(nport, nports),
            prop::collection::vec((gap, 0..nports, 0..nports, 1u32..20_000), 1..60),
            prop::sample::select(vec![IslChoice::Ingress, IslChoice::Spray]),
        )
            .prop_map(|(switches, isls, nports, sends, isl_choice)| Case {
                switches,
                isls,
                nports,
                sends,
                isl_choice,
            })
    })
}

/// Both engines, built from one case.
struct Both {
    fast: Net,
    plain: plain::Engine,
    ids: Vec<FcId>,
    reachable: Vec<Vec<bool>>,
}

/// Links and ports of a case, in the order of the ports.
#[derive(Default)]
struct Wiring {
    /// Ports of each switch so far.
    ports: Vec<u16>,
    lanes: Vec<Lane>,
    plain_lanes: Vec<plain::Lane>,
    isls: Vec<Isl>,
    /// Bundle of each port, by switch.
    bundle_of: Vec<Vec<Option<u16>>>,
    bundles: u16,
    ids: Vec<FcId>,
    /// Switch and port of each N_Port.
    homes: Vec<(usize, u16)>,
}

impl Wiring {
    fn of(case: &Case) -> Wiring {
        let count = case.switches.len();
        let mut wiring = Wiring { ports: vec![0; count], bundle_of: vec![Vec::new(); count], ..Wiring::default() };
        for (number, &(home, rate, light, credits)) in case.nports.iter().enumerate() {
            let port = wiring.take(home);
            let ends = [End::NPort(number as u16), End::Switch { switch: home as u16, port }];
            wiring.link(ends, rate, light, credits, None);
            wiring.ids.push(FcId::from_parts(home as u8 + 1, port as u8, 0));
            wiring.homes.push((home, port));
        }
        wiring.join(case);
        wiring
    }

    /// The ISLs, some of them in bundles.
    fn join(&mut self, case: &Case) {
        let mut previous: Option<(usize, usize, LineRate, u64, u16)> = None;
        for &(a, b, rate, light, credits, joins) in case.isls.iter().filter(|isl| isl.0 != isl.1) {
            // Links of a bundle join the same switches and are equally fast.
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
                self.isls.push(Isl { a, b, cost: 1, bundle: number, up: true });
            }
        }
    }

    /// The next port of a switch.
    fn take(&mut self, switch: usize) -> u16 {
        self.ports[switch] += 1;
        self.ports[switch] - 1
    }

    fn link(&mut self, [a, b]: [End; 2], rate: LineRate, light: u64, credits: [u32; 2], bundle: Option<u16>) {
        for (from, to, credit, direction) in [(a, b, credits[0], 0), (b, a, credits[1], 1)] {
            let mut lane = Lane::new(from, to, rate, light * 1_000, credit);
            lane.bundle = bundle.map(|bundle| 2 * bundle + direction);
            let plain_bundle = lane.bundle.map(usize::from);
            self.plain_lanes.push(plain::Lane::new(
                plain_end(from),
                plain_end(to),
                rate,
                light * 1_000,
                credit as usize,
                plain_bundle,
            ));
            self.lanes.push(lane);
        }
    }

    /// The output ports of a switch towards an N_Port: of a bundle its first one.
    fn legs(&self, switch: usize, routes: &[(u8, Vec<Leg>)], nport: usize) -> Vec<usize> {
        let (home, port) = self.homes[nport];
        if home == switch {
            return vec![usize::from(port)];
        }
        let first_of = |bundle: u16| self.bundle_of[switch].iter().position(|&b| b == Some(bundle)).unwrap();
        let (_, legs) = routes.iter().find(|route| usize::from(route.0) == home + 1).unwrap();
        let port_of = |leg: &Leg| match leg {
            Leg::Port(port) => usize::from(*port),
            Leg::Bundle(bundle) => first_of(*bundle),
        };
        legs.iter().map(port_of).collect()
    }
}

/// A switch for each of the two engines.
fn build_switch(case: &Case, wiring: &Wiring, number: usize, routes: &[(u8, Vec<Leg>)]) -> (SwitchPlan, plain::Switch) {
    let case_switch = &case.switches[number];
    let ports = wiring.ports[number].max(1);
    let config = Switch {
        name: format!("s{number}"),
        wwn: Switch::made_up_wwn(number as u16),
        domain: number as u8 + 1,
        ports,
        forwarding: if case_switch.cut_through { Forwarding::CutThrough } else { Forwarding::StoreAndForward },
        queueing: case_switch.queueing,
        arbitration: case_switch.arbitration,
        latency: Picos::from_ns(case_switch.latency_ns),
        isl_choice: case.isl_choice,
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
    let legs = |nport: usize| (wiring.homes[nport].0, wiring.legs(number, routes, nport));
    let plain = plain::Switch::new(
        (config.queueing, config.arbitration, config.isl_choice),
        case_switch.cut_through,
        case_switch.latency_ns * 1_000,
        usize::from(ports),
        (0..case.nports.len()).map(legs).collect(),
        (0..usize::from(ports)).map(together).collect(),
    );
    (SwitchPlan { bundle_of_port: bundle_of, config }, plain)
}

fn build(case: &Case) -> Both {
    let count = case.switches.len();
    let wiring = Wiring::of(case);
    let domains: Vec<u8> = (1..=count as u8).collect();
    let all_routes = routes(&domains, &wiring.isls);
    let built = (0..count).map(|number| build_switch(case, &wiring, number, &all_routes[number]));
    let (plans, plain_switches): (Vec<SwitchPlan>, Vec<plain::Switch>) = built.unzip();
    let reaches = |a: usize, b: usize| a == b || !wiring.legs(a, &all_routes[a], first_at(&wiring, b)).is_empty();
    let reachable = wiring.homes.iter().map(|a| wiring.homes.iter().map(|b| reaches(a.0, b.0)).collect()).collect();
    let never = 1 << 60;
    let mut fast = Net::new(NetPlan {
        switches: plans,
        lanes: wiring.lanes,
        nports: case.nports.iter().map(|_| NPortPlan { sequence_overhead_ps: 0, frame_bytes: 2048 }).collect(),
        timers: 0,
        bundles: 2 * usize::from(wiring.bundles),
        e_d_tov_ps: never,
        hold_time_ps: never,
    });
    let homes = wiring.homes;
    for (number, routes) in all_routes.into_iter().enumerate() {
        for port in 0..wiring.ports[number] {
            let mode = if homes.contains(&(number, port)) { PortMode::F } else { PortMode::E };
            fast.fib_mut(number as u16).apply(&FibDelta::PortMode { port, mode });
        }
        for (domain, legs) in routes {
            fast.fib_mut(number as u16).apply(&FibDelta::Routes { domain, legs });
        }
    }
    for (&id, &(home, port)) in wiring.ids.iter().zip(&homes) {
        fast.fib_mut(home as u16).apply(&FibDelta::OwnId { port, id });
    }
    let plain = plain::Engine::new(wiring.plain_lanes, plain_switches, case.nports.len());
    Both { fast, plain, ids: wiring.ids, reachable }
}

/// An N_Port at a switch that has one.
fn first_at(wiring: &Wiring, switch: usize) -> usize {
    wiring.homes.iter().position(|home| home.0 == switch).unwrap()
}

fn plain_end(end: End) -> plain::End {
    match end {
        End::Switch { switch, port } => plain::End::Switch(usize::from(switch), usize::from(port)),
        End::NPort(nport) => plain::End::NPort(usize::from(nport)),
    }
}

fn run_fast(both: &mut Both, until: u64, delivered: &mut Vec<(u64, usize, plain::Frame)>) {
    while let Some(event) = both.fast.step(until) {
        let NetEvent::Deliver { nport, frame } = event else { panic!("{event:?}") };
        let number = |id: FcId| both.ids.iter().position(|&other| other == id).unwrap();
        let frame = plain::Frame {
            source: number(frame.s_id()),
            destination: number(frame.d_id()),
            exchange: frame.ox_id(),
            seq_cnt: frame.seq_cnt(),
            len: frame.len_bytes(),
        };
        delivered.push((both.fast.now(), usize::from(nport), frame));
        both.fast.release(nport, both.fast.now());
        assert_eq!(both.fast.check_credits(), Ok(()));
    }
}

fn same_frames_at_the_same_times(case: &Case) -> Result<(), TestCaseError> {
    let mut both = build(case);
    let mut delivered = Vec::new();
    let mut now = 0;
    let mut sent = 0;
    for (exchange, &(gap, from, to, bytes)) in case.sends.iter().enumerate() {
        if from == to || !both.reachable[from][to] {
            continue;
        }
        now += gap * 1_000;
        run_fast(&mut both, now, &mut delivered);
        both.plain.run_until(now);
        let ids = SeqIds {
            s_id: both.ids[from],
            d_id: both.ids[to],
            ox_id: exchange as u16,
            rx_id: 0,
            seq_id: 0,
            from_responder: true,
        };
        let seq = SeqTx::new(ids, 2048, 0, 0, bytes);
        let mut copy = seq;
        let mut frames = Vec::new();
        while let Some(data) = copy.next_frame() {
            let exchange = exchange as u16;
            frames.push(plain::Frame { source: from, destination: to, exchange, seq_cnt: data.seq_cnt, len: data.len });
        }
        sent += frames.len();
        both.fast.send_data(from as u16, seq);
        both.plain.send(from, frames);
    }
    let end = now + 1_000_000_000_000;
    run_fast(&mut both, end, &mut delivered);
    both.plain.run_until(end);
    let by_time = |list: &mut Vec<(u64, usize, plain::Frame)>| list.sort();
    by_time(&mut delivered);
    by_time(&mut both.plain.delivered);
    if let Some(at) = (0..delivered.len()).find(|&i| both.plain.delivered.get(i) != Some(&delivered[i])) {
        let near = |list: &[(u64, usize, plain::Frame)]| format!("{:#?}", list.get(at));
        return Err(TestCaseError::fail(format!(
            "delivery {at} of {sent}: fast {} plain {}",
            near(&delivered),
            near(&both.plain.delivered)
        )));
    }
    prop_assert_eq!(delivered.len(), both.plain.delivered.len());
    prop_assert_eq!(both.fast.fate.frame_hops, both.plain.hops);
    prop_assert_eq!(both.fast.fate.delivered + both.fast.frames_under_way(), both.fast.fate.sent);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn both_engines_deliver_the_same_frames_at_the_same_times(case in case()) {
        same_frames_at_the_same_times(&case)?;
    }
}
