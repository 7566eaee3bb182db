//! TCP over the Ethernet plane.

use super::fabric::{Fabric, LINK};
use sanloom_scsi::time::Span;
use sanloom_sim::net::ethernet::{Ecn, EthernetPlan, LineErrors};
use sanloom_sim::net::{Net, NetEvent};
use sanloom_sim::tcp::{Endpoint, Stacks};
use sanloom_transport::tcp::{Algorithm, Config, State};
use std::sync::Arc;

/// Bytes that each server sends for one request.
const BLOCK: u64 = 256 * 1_024;

/// A network with TCP, and the bytes that each end has consumed.
struct Hosts {
    net: Net,
    stacks: Stacks,
    consumed: Vec<u64>,
}

impl Hosts {
    fn new(plan: EthernetPlan) -> Hosts {
        let net = Fabric::with_timers(plan, 1).net;
        Hosts { net, stacks: Stacks::new(0), consumed: Vec::new() }
    }

    /// Opens a connection whose first end is at `from`.
    fn connect(&mut self, [from, to]: [u16; 2], config: &Arc<Config>, tag: Option<(u8, u8)>) -> u32 {
        let endpoint = |interface| Endpoint { config: config.clone(), interface };
        self.consumed.extend([0, 0]);
        self.stacks.connect(&mut self.net, [endpoint(from), endpoint(to)], tag, None)
    }

    /// Runs until data have arrived at an end or the time is over. Returns the end.
    fn step(&mut self, until_ps: u64) -> Option<u32> {
        while let Some(event) = self.net.step(until_ps) {
            self.stacks.forget_lost(&mut self.net);
            match event {
                NetEvent::Packet { packet, .. } => {
                    let end = self.stacks.receive(&mut self.net, &packet);
                    let bytes = self.stacks.connection(end).readable();
                    if bytes > 0 {
                        self.stacks.with(&mut self.net, end, |connection, now| connection.consume(now, bytes));
                        self.consumed[end as usize] += bytes;
                        return Some(end);
                    }
                }
                NetEvent::Timer(0) => self.stacks.timer_expired(&mut self.net),
                other => panic!("{other:?}"),
            }
        }
        self.net.ethernet.check().expect("conserved");
        None
    }

    fn write(&mut self, end: u32, bytes: u64) {
        let taken = self.stacks.with(&mut self.net, end, |connection, _| connection.send(bytes));
        assert_eq!(taken, bytes, "the send buffer of end {end} is too small");
    }
}

fn config(change: impl FnOnce(&mut Config)) -> Arc<Config> {
    let mut config = Config::linux(1_500);
    config.algorithm = Algorithm::Reno;
    config.timestamps = false;
    config.send_buffer = sanloom_transport::tcp::Buffer::fixed(1 << 30);
    change(&mut config);
    Arc::new(config)
}

/// Returns the rate in MB/s of one flow over `gbits`, without its first tenth of `millis`.
fn bulk(mut plan: EthernetPlan, config: &Arc<Config>, millis: u64) -> f64 {
    plan.switches[0].memory.bytes = 16 << 20;
    let mut hosts = Hosts::new(plan);
    let client = hosts.connect([0, 1], config, None);
    while hosts.step(10_000_000_000).is_some() {}
    hosts.write(client, 1 << 29);
    let (begin, end) = (hosts.net.now() + millis * 100_000_000, hosts.net.now() + millis * 1_000_000_000);
    while hosts.step(begin).is_some() {}
    let before = hosts.consumed[1];
    while hosts.step(end).is_some() {}
    (hosts.consumed[1] - before) as f64 / ((end - begin) as f64 / 1e6)
}

#[test]
fn a_flow_reaches_the_share_of_the_line() {
    let linux = config(|config| config.timestamps = true);
    for (gbits, config, expected) in
        [(1, &config(|_| ()), 118.66), (1, &linux, 117.69), (10, &config(|_| ()), 1186.6), (25, &linux, 2942.1)]
    {
        let rate = bulk(Fabric::star(2, gbits), config, 30);
        assert!((rate / expected - 1.0).abs() < 0.005, "{gbits} Gb/s: {rate:.2}, expected {expected}");
    }
}

#[test]
fn a_window_limits_the_rate_of_a_long_way() {
    let mut plan = Fabric::star(2, 10);
    // A round trip of 1 ms, and a window of 64 KiB.
    plan.links.iter_mut().for_each(|link| link.propagation_ps = 249_000_000);
    let config = config(|config| {
        config.receive_buffer = sanloom_transport::tcp::Buffer::fixed(65_535);
        config.window_scaling = false;
    });
    let rate = bulk(plan, &config, 1_000);
    // The frames of a window take up to 55 us more than a round trip.
    assert!((60.0..65.6).contains(&rate), "{rate:.2} MB/s");
}

/// Returns the goodput in Mb/s of synchronised reads from `servers` hosts over 1 Gb/s.
fn incast(servers: u16, config: &Arc<Config>, tag: Option<(u8, u8)>, change: impl FnOnce(&mut EthernetPlan)) -> f64 {
    let mut plan = Fabric::star(usize::from(servers) + 1, 1);
    // A buffer of 64 KB for a queue, and a round trip of about 100 us.
    plan.switches[0].memory.bytes = (u64::from(servers) + 1) * (40_000 + 4_096) + 131_072;
    plan.links.iter_mut().for_each(|link| link.propagation_ps = 25_000_000);
    change(&mut plan);
    let mut hosts = Hosts::new(plan);
    let clients: Vec<u32> = (0..servers).map(|server| hosts.connect([servers, server], config, tag)).collect();
    while hosts.step(50_000_000_000).is_some() {}
    let start = hosts.net.now();
    let mut answered = vec![0u64; 2 * usize::from(servers)];
    let mut open = 0;
    let end = start + 8_000_000_000_000;
    let mut rounds = 0;
    while hosts.net.now() < end && rounds * u32::from(servers) < 800 {
        if open == 0 {
            open = servers;
            rounds += 1;
            clients.iter().for_each(|&client| hosts.write(client, 64));
        }
        let Some(at) = hosts.step(end) else { break };
        let consumed = hosts.consumed[at as usize];
        if at % 2 == 1 {
            let wanted = consumed / 64 * BLOCK;
            let given = std::mem::replace(&mut answered[at as usize], wanted);
            if wanted > given {
                hosts.write(at, wanted - given);
            }
        } else if consumed / BLOCK > answered[at as usize] {
            answered[at as usize] = consumed / BLOCK;
            open -= 1;
        }
    }
    let bytes: u64 = clients.iter().map(|&client| hosts.consumed[client as usize]).sum();
    bytes as f64 * 8e6 / (hosts.net.now() - start) as f64
}

#[test]
fn incast_collapses_by_five_times_and_a_lossless_priority_or_dctcp_cures_it() {
    let reno = config(|_| ());
    let one = incast(1, &reno, None, |_| ());
    let many = incast(16, &reno, None, |_| ());
    let lossless = incast(16, &reno, Some((LINK, 0)), |_| ());
    let dctcp = config(|config| config.algorithm = Algorithm::Dctcp);
    let k = 20 * 1_518;
    let marked = incast(16, &dctcp, None, |plan| {
        plan.switches[0].memory.bytes += 131_072;
        plan.switches[0].ecn[0] = Some(Ecn { from_bytes: k, all_bytes: k, chance: 0 });
    });
    let fast = config(|config| (config.rto_min, config.delayed_ack) = (Span::from_ms(1), Span::from_us(200)));
    let cured = incast(16, &fast, None, |_| ());
    println!("one {one:.0}, 16 {many:.0}, PFC {lossless:.0}, DCTCP {marked:.0}, 1 ms {cured:.0} Mb/s");
    assert!(one > 800.0 && many * 5.0 < one, "{one:.0} and {many:.0} Mb/s");
    assert!(lossless > 850.0 && marked > 800.0 && cured > 3.0 * many, "{lossless:.0}, {marked:.0}, {cured:.0} Mb/s");
}

#[test]
fn a_lossless_priority_delivers_each_byte_without_a_retransmission() {
    let mut plan = Fabric::star(9, 10);
    plan.switches[0].memory.bytes = 9 * 44_096 + 200_000;
    let mut hosts = Hosts::new(plan);
    let config = config(|_| ());
    let flows: Vec<u32> = (0..8).map(|from| hosts.connect([from, 8], &config, Some((LINK, 0)))).collect();
    while hosts.step(1_000_000_000).is_some() {}
    flows.iter().for_each(|&flow| hosts.write(flow, 4 << 20));
    while hosts.step(200_000_000_000).is_some() {}
    assert!(flows.iter().all(|&flow| hosts.consumed[flow as usize + 1] == 4 << 20), "{:?}", hosts.consumed);
    let again: u64 = flows.iter().map(|&flow| hosts.stacks.connection(flow).counters().retransmissions).sum();
    assert_eq!((again, hosts.net.ethernet.fate.lost), (0, 0));
    assert!(hosts.net.ethernet.lines().iter().any(|line| line.count().pauses > 0));
}

#[test]
fn lost_and_damaged_frames_cost_time_and_no_byte_and_their_segments_are_forgotten() {
    let mut hosts = Hosts::new(Fabric::star(2, 1));
    *hosts.net.ethernet.errors_mut(0) =
        LineErrors { loss: u32::MAX / 100, damage: u32::MAX / 100, ..LineErrors::default() };
    *hosts.net.ethernet.errors_mut(3) = LineErrors { loss: u32::MAX / 200, damage: 0, ..LineErrors::default() };
    let flow = hosts.connect([0, 1], &config(|_| ()), None);
    hosts.write(flow, 8 << 20);
    while hosts.step(60_000_000_000_000).is_some() {}
    assert_eq!(hosts.consumed[1], 8 << 20);
    assert!(hosts.stacks.connection(flow).counters().retransmissions > 50);
    hosts.stacks.forget_lost(&mut hosts.net);
    assert_eq!(hosts.stacks.segments() as u64, hosts.net.ethernet.packets_in_network());
}

#[test]
fn ten_thousand_connections_take_64_mib() {
    let taken = allocation_counter::measure(|| {
        let mut hosts = Hosts::new(Fabric::star(2, 100));
        let config = Arc::new(Config { timestamps: false, ..Config::linux(1_500) });
        let flows: Vec<u32> = (0..10_000).map(|_| hosts.connect([0, 1], &config, None)).collect();
        while hosts.step(100_000_000_000).is_some() {}
        flows.iter().for_each(|&flow| hosts.write(flow, 4_096));
        while hosts.step(1_000_000_000_000).is_some() {}
        let open = |flow: &u32| hosts.stacks.connection(*flow).state() == State::Established;
        assert!(flows.iter().all(open) && flows.iter().all(|&flow| hosts.consumed[flow as usize + 1] == 4_096));
    });
    println!("{} bytes at most", taken.bytes_max);
    assert!(taken.bytes_max < 64 << 20, "{}", taken.bytes_max);
}
