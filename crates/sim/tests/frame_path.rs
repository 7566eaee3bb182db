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

fn build(case: &Case) -> Both {
    let count = case.switches.len();
    let mut ports = vec![0u16; count];
    let mut take = |switch: usize| {
        ports[switch] += 1;
        ports[switch] - 1
    };
    let (mut lanes, mut plain_lanes, mut isls) = (Vec::new(), Vec::new(), Vec::new());
    let mut link = |a: End, b: End, rate, light: u64, credits: [u32; 2], bundle: Option<u16>| {
        for (from, to, credit, direction) in [(a, b, credits[0], 0), (b, a, credits[1], 1)] {
            let mut lane = Lane::new(from, to, rate, light * 1_000, credit);
            lane.bundle = bundle.map(|bundle| 2 * bundle + direction);
            let plain_bundle = lane.bundle.map(usize::from);
            plain_lanes.push(plain::Lane::new(
                plain_end(from),
                plain_end(to),
                rate,
                light * 1_000,
                credit as usize,
                plain_bundle,
            ));
            lanes.push(lane);
        }
    };
    let mut ids = Vec::new();
    let mut homes = Vec::new();
    for (number, &(home, rate, light, credits)) in case.nports.iter().enumerate() {
        let port = take(home);
        link(End::NPort(number as u16), End::Switch { switch: home as u16, port }, rate, light, credits, None);
        ids.push(FcId::from_parts(home as u8 + 1, port as u8, 0));
        homes.push((home, port));
    }
    let mut bundle_of: Vec<Vec<Option<u16>>> = vec![Vec::new(); count];
    let mut previous: Option<(usize, usize, LineRate, u64, u16)> = None;
    let mut bundles = 0u16;
    for &(a, b, rate, light, credits, joins) in &case.isls {
        if a == b {
            continue;
        }
        // Links of a bundle join the same switches and are equally fast.
        let bundle = match previous {
            Some((pa, pb, pr, pl, bundle)) if joins && (pa, pb, pr, pl) == (a, b, rate, light) => bundle,
            _ => {
                bundles += 1;
                bundles - 1
            }
        };
        let copies = if joins { 2 } else { 1 };
        previous = Some((a, b, rate, light, bundle));
        for _ in 0..copies {
            let (pa, pb) = (take(a), take(b));
            let number = joins.then_some(bundle);
            link(
                End::Switch { switch: a as u16, port: pa },
                End::Switch { switch: b as u16, port: pb },
                rate,
                light,
                credits,
                number,
            );
            for (switch, port) in [(a, pa), (b, pb)] {
                bundle_of[switch].resize(usize::from(port) + 1, None);
                bundle_of[switch][usize::from(port)] = number;
            }
            let (a, b) = (IslEnd { switch: a, port: pa }, IslEnd { switch: b, port: pb });
            isls.push(Isl { a, b, cost: 1, bundle: number, up: true });
        }
    }
    let domains: Vec<u8> = (1..=count as u8).collect();
    let all_routes = routes(&domains, &isls);
    let mut plans = Vec::new();
    let mut plain_switches = Vec::new();
    let mut reachable = vec![vec![false; count]; count];
    for (number, case_switch) in case.switches.iter().enumerate() {
        let config = Switch {
            name: format!("s{number}"),
            domain: domains[number],
            ports: ports[number].max(1),
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
        bundle_of[number].resize(usize::from(config.ports), None);
        let first_of = |bundle: u16| bundle_of[number].iter().position(|&b| b == Some(bundle)).unwrap();
        let together: Vec<Vec<usize>> = (0..usize::from(config.ports))
            .map(|port| match bundle_of[number][port] {
                Some(bundle) => {
                    (0..usize::from(config.ports)).filter(|&p| bundle_of[number][p] == Some(bundle)).collect()
                }
                None => vec![port],
            })
            .collect();
        let legs_to = |destination: usize| -> Vec<usize> {
            let (home, port) = homes[destination];
            if home == number {
                return vec![usize::from(port)];
            }
            let route = all_routes[number].iter().find(|r| r.0 == domains[home]).unwrap();
            route
                .1
                .iter()
                .map(|leg| match leg {
                    Leg::Port(port) => usize::from(*port),
                    Leg::Bundle(bundle) => first_of(*bundle),
                })
                .collect()
        };
        for destination in 0..case.nports.len() {
            reachable[number][homes[destination].0] |= !legs_to(destination).is_empty();
        }
        plain_switches.push(plain::Switch::new(
            (config.queueing, config.arbitration, config.isl_choice),
            case_switch.cut_through,
            case_switch.latency_ns * 1_000,
            usize::from(config.ports),
            (0..case.nports.len()).map(|d| (homes[d].0, legs_to(d))).collect(),
            together,
        ));
        plans.push(SwitchPlan { bundle_of_port: bundle_of[number].clone(), config });
    }
    let never = 1 << 60;
    let mut fast = Net::new(NetPlan {
        switches: plans,
        lanes,
        nports: case.nports.iter().map(|_| NPortPlan { sequence_overhead_ps: 0, frame_bytes: 2048 }).collect(),
        timers: 0,
        bundles: 2 * usize::from(bundles),
        e_d_tov_ps: never,
        hold_time_ps: never,
    });
    for (number, routes) in all_routes.into_iter().enumerate() {
        for port in 0..ports[number] {
            let mode = if homes.contains(&(number, port)) { PortMode::F } else { PortMode::E };
            fast.fib_mut(number as u16).apply(&FibDelta::PortMode { port, mode });
        }
        for (domain, legs) in routes {
            fast.fib_mut(number as u16).apply(&FibDelta::Routes { domain, legs });
        }
    }
    for (&id, &(home, port)) in ids.iter().zip(&homes) {
        fast.fib_mut(home as u16).apply(&FibDelta::OwnId { port, id });
    }
    let reachable = homes.iter().map(|a| homes.iter().map(|b| a.0 == b.0 || reachable[a.0][b.0]).collect()).collect();
    Both { fast, plain: plain::Engine::new(plain_lanes, plain_switches, case.nports.len()), ids, reachable }
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
