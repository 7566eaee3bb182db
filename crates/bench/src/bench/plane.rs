//! `sanloom bench sim --plane ethernet`: packet-hops per second of processor time with TCP, beside
//! the bare credit program.
//!
//! Hosts read from storage devices through the cabling of the core/edge fabric, with one connection
//! to each of up to four devices and two reads in flight on each. The layers above TCP cost
//! nothing.

use super::bound::{self, Bound};
use super::rate::Args;
use super::statistics::{Estimate, median};
use super::work::Fabric;
use sanloom_bare::{Program, Shape};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::{rss_bytes, thread_cpu};
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_sim::net::ethernet::{
    Ecn, EthernetLinkPlan, EthernetPlan, EthernetPlane, EthernetSwitchPlan, MemoryPlan, PRIORITIES, Station,
};
use sanloom_sim::net::line::ByteTime;
use sanloom_sim::net::{Net, NetEvent, NetPlan};
use sanloom_sim::tcp::{Endpoint, Stacks};
use sanloom_transport::tcp::{Algorithm, Buffer, Config};
use serde::Serialize;
use std::sync::Arc;

/// Plane of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Plane {
    /// Fibre Channel.
    Fc,
    /// 10 Gb/s Ethernet with DCTCP.
    Ethernet,
}

/// Bytes of a request and of its answer.
const REQUEST_BYTES: u64 = 64;
const ANSWER_BYTES: u64 = 32 << 10;
/// Devices that a host reads from, and reads in flight on each.
const DEVICES: u32 = 4;
const DEPTH: u64 = 2;
/// 10 Gb/s in ps per byte.
const PS_PER_BYTE: u32 = 800;
/// Bytes in a queue from which on DCTCP is told: 65 frames, as in the paper of DCTCP.
const MARK_BYTES: u64 = 65 * 1518;

/// Results of all runs.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Rate {
    /// Number of nodes.
    pub nodes: u32,
    /// Simulated time of a run, in seconds.
    pub duration_s: f64,
    /// Completed reads of a run.
    pub ios: u64,
    /// Packet-hops of a run.
    pub packet_hops: u64,
    /// Events of a run.
    pub events: u64,
    /// Packet-hops per second of processor time, for each run.
    pub runs: Vec<f64>,
    /// Resident memory of the process after the first run, in bytes.
    pub rss_bytes: u64,
    /// Frame-hops per second of processor time of the bare credit program, for each run.
    pub bare_runs: Vec<f64>,
    /// Rate of the simulator to that of the program: median of the paired runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
}

/// Measures the plane, and prints the results.
///
/// # Errors
/// If the duration is invalid, an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let shape = args.nodes.shape(Fabric::Sansim);
    let time = args.duration.as_deref().unwrap_or(if shape.nodes() > 16 { "10ms" } else { "500ms" });
    let duration_ps = (quantity::seconds(time).map_err(Failure::usage)? * 1e12) as u64;
    let mut rate = Rate { nodes: shape.nodes(), duration_s: duration_ps as f64 / 1e12, ..Rate::default() };
    for number in 0..args.runs {
        if interrupt::requested() {
            return Err(Failure::interrupted("a run was not complete"));
        }
        if number % 2 == 1 {
            rate.bare_runs.push(bare(shape));
        }
        let mut hosts = Hosts::new(shape);
        let start = thread_cpu();
        hosts.run(duration_ps);
        let cpu_s = (thread_cpu() - start).as_secs_f64();
        rate.ios = hosts.ios;
        rate.packet_hops = hosts.net.ethernet.fate.packet_hops;
        rate.events = hosts.net.events();
        rate.runs.push(rate.packet_hops as f64 / cpu_s.max(1e-9));
        if number == 0 {
            rate.rss_bytes = rss_bytes();
        }
        if number % 2 == 0 {
            rate.bare_runs.push(bare(shape));
        }
    }
    rate.ratio = Estimate::of_ratios(&rate.runs, &rate.bare_runs);
    let bounds = rate.bounds();
    args.outputs.write_or_print("sim", &rate, || text(&rate) + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

/// Returns the rate of the bare credit program on the same cabling.
fn bare(shape: Shape) -> f64 {
    let mut program = Program::new(shape, Fabric::Sansim.rules());
    let start = thread_cpu();
    let done = program.run(300_000_000_000 * 16 / u64::from(shape.nodes()));
    done.frame_hops as f64 / (thread_cpu() - start).as_secs_f64().max(1e-9)
}

impl Rate {
    fn bounds(&self) -> Vec<Bound> {
        let best = self.runs.iter().copied().fold(0.0, f64::max);
        vec![Bound::at_least("packet-hops per CPU second", best / 1e6, 5.0, "M")]
    }
}

/// Hosts and devices that exchange requests and answers over TCP.
struct Hosts {
    net: Net,
    stacks: Stacks,
    /// Bytes that each end has consumed, and those that belong to complete messages.
    consumed: Vec<[u64; 2]>,
    ios: u64,
}

impl Hosts {
    fn new(shape: Shape) -> Hosts {
        let plane = EthernetPlane::new(plan(shape)).expect("the memory suffices");
        let plan = NetPlan {
            switches: Vec::new(),
            lanes: Vec::new(),
            channels: Vec::new(),
            nports: Vec::new(),
            timers: 1,
            bundles: 0,
            loops: 0,
            e_d_tov_ps: 0,
            hold_time_ps: 0,
        };
        let mut hosts =
            Hosts { net: Net::with_ethernet(plan, plane), stacks: Stacks::new(0), consumed: Vec::new(), ios: 0 };
        let config = Arc::new(Config {
            algorithm: Algorithm::Dctcp,
            send_buffer: Buffer::fixed(1 << 20),
            receive_buffer: Buffer::fixed(1 << 20),
            ..Config::linux(1500)
        });
        let count = shape.hosts();
        for host in 0..count {
            for device in 0..DEVICES.min(count) {
                let device = count + (host + device) % count;
                let ends = [host, device].map(|node| Endpoint { config: config.clone(), interface: node as u16 });
                let end = hosts.stacks.connect(&mut hosts.net, ends, None);
                hosts.consumed.extend([[0; 2]; 2]);
                hosts.write(end, DEPTH * REQUEST_BYTES);
            }
        }
        hosts
    }

    fn write(&mut self, end: u32, bytes: u64) {
        let taken = self.stacks.with(&mut self.net, end, |connection, _| connection.send(bytes));
        debug_assert_eq!(taken, bytes, "the send buffer holds all requests in flight");
    }

    fn run(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            match event {
                NetEvent::Packet { packet, .. } => {
                    let end = self.stacks.receive(&mut self.net, &packet);
                    self.read(end);
                }
                NetEvent::Timer(_) => {
                    self.stacks.forget_lost(&mut self.net);
                    self.stacks.timer_expired(&mut self.net);
                }
                _ => {}
            }
        }
    }

    /// Consumes what has arrived, and answers complete messages.
    fn read(&mut self, end: u32) {
        let bytes = self.stacks.connection(end).readable();
        if bytes == 0 {
            return;
        }
        let [message, answer] =
            if end.is_multiple_of(2) { [ANSWER_BYTES, REQUEST_BYTES] } else { [REQUEST_BYTES, ANSWER_BYTES] };
        let [consumed, complete] = &mut self.consumed[end as usize];
        *consumed += bytes;
        let messages = (*consumed - *complete) / message;
        *complete += messages * message;
        if end.is_multiple_of(2) {
            self.ios += messages;
        }
        self.stacks.with(&mut self.net, end, |connection, now| {
            connection.consume(now, bytes);
            connection.send(messages * answer);
        });
    }
}

/// Returns the cabling of the core/edge fabric at 10 Gb/s.
fn plan(shape: Shape) -> EthernetPlan {
    let switch = |ports: usize| EthernetSwitchPlan {
        memory: MemoryPlan {
            bytes: 16 << 20,
            cell_bytes: 1,
            reserve_bytes: 0,
            headroom_bytes: vec![0; ports],
            alpha_256: 256,
            lossy_alpha_256: 256,
            resume_bytes: 0,
        },
        lossless: 0,
        latency_ps: 700_000,
        cut_through: false,
        ecn: [Some(Ecn { from_bytes: MARK_BYTES, all_bytes: MARK_BYTES, chance: 0 }); PRIORITIES],
        longest_bytes: 1522,
        vlans: vec![u32::MAX; ports],
    };
    let link = |ends: [Station; 2]| EthernetLinkPlan {
        ends,
        byte: ByteTime::new(PS_PER_BYTE, 1),
        propagation_ps: 50_000,
        reaction_ps: 0,
        shares: [[0; PRIORITIES]; 2],
    };
    let Shape { edges, nodes_per_edge, cores, isls_per_core } = shape;
    let mut links = Vec::new();
    for node in 0..shape.nodes() {
        let (switch, port) = (shape.edge_of(node) as u16, (node % nodes_per_edge) as u16);
        links.push(link([Station::Interface(node as u16), Station::Switch { switch, port }]));
    }
    for edge in 0..edges {
        for core in 0..cores {
            for isl in 0..isls_per_core {
                let up = nodes_per_edge + core * isls_per_core + isl;
                let down = edge * isls_per_core + isl;
                links.push(link([
                    Station::Switch { switch: edge as u16, port: up as u16 },
                    Station::Switch { switch: (edges + core) as u16, port: down as u16 },
                ]));
            }
        }
    }
    let edge_switches = (0..edges).map(|_| switch((nodes_per_edge + cores * isls_per_core) as usize));
    let core_switches = (0..cores).map(|_| switch((edges * isls_per_core) as usize));
    EthernetPlan {
        switches: edge_switches.chain(core_switches).collect(),
        links,
        interfaces: shape.nodes() as u16,
        seed: 1,
    }
}

fn text(rate: &Rate) -> String {
    let millions =
        |runs: &[f64]| runs.iter().map(|run| format!("{:.2}", run / 1e6)).collect::<Vec<String>>().join(", ");
    let best = rate.runs.iter().copied().fold(0.0, f64::max);
    let ratio = rate.ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string());
    format!(
        "{} nodes, 10 Gb/s Ethernet, DCTCP, reads of 32 KiB, {} simulated\n\
         reads                  {}\n\
         packet-hops            {}, {:.2} events each\n\
         packet-hops per CPU s  {:.2} M (runs: {})\n\
         resident               {}\n\
         bare credit program    {:.2} M frame-hops (runs: {})\n\
         ratio to it            {ratio}\n",
        rate.nodes,
        format::seconds(rate.duration_s),
        format::grouped(rate.ios),
        format::grouped(rate.packet_hops),
        rate.events as f64 / rate.packet_hops.max(1) as f64,
        best / 1e6,
        millions(&rate.runs),
        format::bytes(rate.rss_bytes),
        median(rate.bare_runs.iter().copied()) / 1e6,
        millions(&rate.bare_runs),
    )
}
