//! `sanloom bench sim --plane ethernet|infiniband`: packet-hops per second of processor time with
//! TCP or reliable connections, beside the bare credit program, and for Ethernet also beside ns-3.
//!
//! Hosts read from storage devices through the cabling of the core/edge fabric, with one connection
//! to each of up to four devices and two reads in flight on each. The layers above the transport
//! cost nothing.

mod ethernet;
mod infiniband;
mod ns3;

use super::bound::{self, Bound};
use super::rate::Args;
use super::statistics::{Estimate, Limit, median, order};
use super::work::Fabric;
use ns3::{Beside, Ns3};
use sanloom_bare::{Program, Shape};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::{rss_bytes, thread_cpu};
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_sim::net::NetPlan;
use serde::{Deserialize, Serialize};

/// Plane of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Plane {
    /// Fibre Channel.
    Fc,
    /// 10 Gb/s Ethernet with DCTCP.
    Ethernet,
    /// 4x SDR InfiniBand with reliable connections.
    Infiniband,
}

/// Bytes of a request and of its answer.
const REQUEST_BYTES: u64 = 64;
const ANSWER_BYTES: u64 = 32 << 10;
/// Devices that a host reads from, and reads in flight on each.
const DEVICES: u32 = 4;
const DEPTH: u64 = 2;

/// Most ports of a switch of InfiniBand.
const MOST_PORTS: u32 = 254;

/// Least ratio to ns-3.
const NS3_RATIO: f64 = 20.0;
/// Runs without `--runs`: an interval of 95 % requires six.
const RUNS: u32 = 6;

/// Work of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Completed reads.
    pub ios: u64,
    /// Crossings of a line by a packet.
    pub packet_hops: u64,
    /// Packets that nodes have sent.
    pub sent: u64,
    /// Packets that have arrived at their node.
    pub delivered: u64,
    /// Events.
    pub events: u64,
}

/// Work and processor time of a run.
struct Sample {
    counts: Counts,
    cpu_s: f64,
}

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
    /// Comparison with ns-3, of Ethernet only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns3: Option<Beside>,
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
    if args.plane == Plane::Infiniband && cabling(shape).1.into_iter().any(|ports| ports > MOST_PORTS) {
        return Err(Failure::usage("a switch of InfiniBand has at most 254 ports; use `--nodes 16`"));
    }
    let mut skipped = None;
    let mut ns3 = None;
    if args.plane == Plane::Ethernet {
        match Ns3::start(&args.cxx, shape)? {
            Ok(program) => ns3 = Some(program),
            Err(reason) => skipped = Some(Beside::Skipped { skipped: reason }),
        }
    }
    let sides = if ns3.is_some() { 3 } else { 2 };
    for side in (0..args.runs.unwrap_or(RUNS) as usize).flat_map(|round| order(sides, round)) {
        if interrupt::requested() {
            return Err(Failure::interrupted("a run was not complete"));
        }
        match (side, &mut ns3) {
            (0, _) => rate.once(args.plane, shape, duration_ps),
            (2, Some(ns3)) => ns3.once()?,
            _ => rate.bare_runs.push(bare(shape)),
        }
    }
    rate.ns3 = ns3.map(|ns3| Beside::Compared(ns3.finish())).or(skipped);
    rate.ratio = Estimate::of_ratios(&rate.runs, &rate.bare_runs);
    let bounds = rate.bounds(args.plane);
    args.outputs.write_or_print("sim", &rate, || text(&rate, args.plane) + &bound::text(&bounds))?;
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
    /// Runs the simulator once.
    fn once(&mut self, plane: Plane, shape: Shape, duration_ps: u64) {
        let Sample { counts, cpu_s } = match plane {
            Plane::Infiniband => infiniband::sample(shape, duration_ps),
            Plane::Fc | Plane::Ethernet => ethernet::sample(shape, duration_ps),
        };
        (self.ios, self.packet_hops, self.events) = (counts.ios, counts.packet_hops, counts.events);
        self.runs.push(counts.packet_hops as f64 / cpu_s.max(1e-9));
        if self.runs.len() == 1 {
            self.rss_bytes = rss_bytes();
        }
    }

    fn bounds(&self, plane: Plane) -> Vec<Bound> {
        let best = self.runs.iter().copied().fold(0.0, f64::max);
        let goal = if plane == Plane::Infiniband { 8.0 } else { 5.0 };
        let mut bounds = vec![Bound::at_least("packet-hops per CPU second", best / 1e6, goal, "M")];
        if let Some(Beside::Compared(compared)) = &self.ns3
            && let Some(ratio) = compared.ratio
        {
            bounds.push(Bound::of_estimate("ratio to ns-3", ratio, Limit::AtLeast(NS3_RATIO), "times"));
        }
        bounds
    }
}

fn text(rate: &Rate, plane: Plane) -> String {
    let network =
        if plane == Plane::Infiniband { "4x SDR InfiniBand, RC, MTU 2048" } else { "10 Gb/s Ethernet, DCTCP" };
    let millions =
        |runs: &[f64]| runs.iter().map(|run| format!("{:.2}", run / 1e6)).collect::<Vec<String>>().join(", ");
    let best = rate.runs.iter().copied().fold(0.0, f64::max);
    let ratio = rate.ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string());
    format!(
        "{} nodes, {network}, reads of 32 KiB, {} simulated\n\
         reads                  {}\n\
         packet-hops            {}, {:.2} events each\n\
         packet-hops per CPU s  {:.2} M (runs: {})\n\
         resident               {}\n\
         bare credit program    {:.2} M frame-hops (runs: {})\n\
         ratio to it            {ratio}\n\
         {}",
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
        rate.ns3.as_ref().map(ns3::text).unwrap_or_default(),
    )
}

/// One end of a link of the cabling.
#[derive(Clone, Copy)]
enum Place {
    /// A node.
    Node(u32),
    /// A port of a switch: the edge switches, then the cores.
    Port(u32, u32),
}

/// Returns the links of the core/edge fabric, and the ports of its switches.
fn cabling(shape: Shape) -> (Vec<[Place; 2]>, Vec<u32>) {
    let Shape { edges, nodes_per_edge, cores, isls_per_core } = shape;
    let mut links = Vec::new();
    for node in 0..shape.nodes() {
        links.push([Place::Node(node), Place::Port(shape.edge_of(node), node % nodes_per_edge)]);
    }
    for edge in 0..edges {
        for core in 0..cores {
            for isl in 0..isls_per_core {
                let up = nodes_per_edge + core * isls_per_core + isl;
                links.push([Place::Port(edge, up), Place::Port(edges + core, edge * isls_per_core + isl)]);
            }
        }
    }
    let edge_ports = (0..edges).map(|_| nodes_per_edge + cores * isls_per_core);
    (links, edge_ports.chain((0..cores).map(|_| edges * isls_per_core)).collect())
}

/// Returns a plan without Fibre Channel, with one timer.
fn no_fc() -> NetPlan {
    NetPlan {
        switches: Vec::new(),
        lanes: Vec::new(),
        channels: Vec::new(),
        nports: Vec::new(),
        timers: 1,
        bundles: 0,
        loops: 0,
        fcoe: Default::default(),
        e_d_tov_ps: 0,
        hold_time_ps: 0,
    }
}
