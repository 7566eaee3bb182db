//! ns-3 with its TCP on the lab of `sanloom bench sim --plane ethernet`.
//!
//! The program gets the lab as text, so that cables, paths, rates, delays and connections have one
//! source. Switches of ns-3 do less: no stack of IP, no shared memory, no priorities, no pauses.
//! Its hosts do more: each packet has the bytes of its headers.

use super::super::ns3::Program;
use super::super::ns3::program::Source;
use super::super::statistics::{Estimate, median};
use super::{ANSWER_BYTES, Counts, DEPTH, Place, REQUEST_BYTES, cabling, ethernet};
use sanloom_bare::Shape;
use sanloom_console::exit::Failure;
use sanloom_console::report::format;
use sanloom_sim::net::ethernet::{EthernetPlane, GAP_BYTES, PREAMBLE_BYTES, Packet};
use sanloom_sim::tcp::HEADER_BYTES;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

const SOURCE: Source = Source {
    name: "f8_tcp",
    text: include_str!("../../../ns3/f8_tcp.cc"),
    libraries: &["-lns3-core", "-lns3-network", "-lns3-point-to-point", "-lns3-internet"],
    short: &["0.00001"],
};
/// Nodes of the lab that is compared. A larger one would take minutes in ns-3.
const NODES: u32 = 16;
/// Simulated time of a run of ns-3, in ps: some seconds of processor time.
const DURATION_PS: u64 = 20_000_000_000;
/// Bytes of a packet of IP in ns-3 beside the packet: the header of PPP.
const PPP_BYTES: u64 = 2;
/// Bytes of a packet of IP on a line of Ethernet beside the packet: header and FCS.
const FRAME_BYTES: u64 = 18;
/// Bytes of the option of time stamps, which each segment carries (RFC 7323).
const TIME_STAMP_BYTES: u16 = 12;
/// Lines on the way from a host to a device.
const LINES: u64 = 4;
/// Largest difference of the completed reads.
const TOLERANCE: f64 = 0.05;
/// Largest difference of the packet-hops: both send the same data, and differ in the number of
/// acknowledgements.
const HOP_TOLERANCE: f64 = 0.02;
/// Processor time of the runs of sanloom that are compared with one of ns-3, in seconds. A single
/// one of 20 ms would be too short to be measured.
const OWN_CPU_S: f64 = 0.2;
/// Most such runs.
const MOST_OWN_RUNS: u32 = 100;

/// ns-3 beside sanloom.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Beside {
    /// Nothing was measured.
    Skipped {
        /// The reason.
        skipped: String,
    },
    /// Both were measured.
    Compared(Compared),
}

/// Comparison with ns-3, run by run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// Simulated time of a run of ns-3, in seconds.
    pub duration_s: f64,
    /// Work of a run of ns-3.
    pub ns3: Counts,
    /// Work of sanloom in the same simulated time.
    pub sanloom: Counts,
    /// Packet-hops of ns-3 per second of processor time, for each run.
    pub runs: Vec<f64>,
    /// Packet-hops of sanloom per second, in runs of the same simulated time beside each of ns-3.
    pub own_runs: Vec<f64>,
    /// Rate of sanloom to that of ns-3: median of the paired runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
}

/// Output of a run of ns-3.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Run {
    #[serde(flatten)]
    counts: Counts,
    cpu_s: f64,
}

/// The compiled program with its lab and its runs so far.
pub(super) struct Ns3 {
    program: Program,
    lab: String,
    shape: Shape,
    compared: Compared,
}

impl Ns3 {
    /// Compiles the program; `Ok(Err)` is the reason for a skip.
    ///
    /// # Errors
    /// If the source cannot be written.
    pub(super) fn start(cxx: &str, shape: Shape) -> Result<Result<Ns3, String>, Failure> {
        if shape.nodes() != NODES {
            return Ok(Err(format!("the lab for ns-3 has {NODES} nodes; use `--nodes {NODES}`")));
        }
        let lab = describe(shape);
        Ok(Program::compile(&SOURCE, cxx, &lab)?.map(|program| {
            let compared = Compared {
                duration_s: DURATION_PS as f64 / 1e12,
                ns3: Counts::default(),
                sanloom: ethernet::sample(shape, DURATION_PS).counts,
                runs: Vec::new(),
                own_runs: Vec::new(),
                ratio: None,
            };
            Ns3 { program, lab, shape, compared }
        }))
    }

    /// Runs ns-3 once, and sanloom on the same simulated time.
    ///
    /// # Errors
    /// If the program fails, or does other work.
    pub(super) fn once(&mut self) -> Result<(), Failure> {
        let seconds = self.compared.duration_s.to_string();
        let run: Run = self.program.run(&[&seconds], &self.lab)?;
        self.compared.ns3 = run.counts;
        self.compared.runs.push(run.counts.packet_hops as f64 / run.cpu_s.max(1e-9));
        self.compared.own_runs.push(own_rate(self.shape));
        self.compared.check().map_err(Failure::environment)
    }

    /// Returns the comparison with the ratio of the rates.
    pub(super) fn finish(self) -> Compared {
        self.compared.with_ratio()
    }
}

/// Returns the packet-hops of sanloom per second of processor time, in runs of the simulated time
/// of ns-3.
fn own_rate(shape: Shape) -> f64 {
    let (mut packet_hops, mut cpu_s) = (0, 0.0);
    for _ in 0..MOST_OWN_RUNS {
        let sample = ethernet::sample(shape, DURATION_PS);
        packet_hops += sample.counts.packet_hops;
        cpu_s += sample.cpu_s;
        if cpu_s >= OWN_CPU_S {
            break;
        }
    }
    packet_hops as f64 / cpu_s.max(1e-9)
}

impl Compared {
    /// Adds the ratio of the rates in runs of the same simulated time.
    fn with_ratio(self) -> Compared {
        Compared { ratio: Estimate::of_ratios(&self.own_runs, &self.runs), ..self }
    }

    /// Compares the work of both.
    fn check(&self) -> Result<(), String> {
        for (name, counts) in [("ns-3", &self.ns3), ("sanloom", &self.sanloom)] {
            // A packet on its way has crossed at most all lines but the last.
            let least = LINES * counts.delivered;
            let most = least + (LINES - 1) * counts.sent.saturating_sub(counts.delivered);
            if !(least..=most).contains(&counts.packet_hops) {
                return Err(format!(
                    "{name} counts {} packet-hops; {} delivered packets and those on their way have {least} to {most}",
                    counts.packet_hops, counts.delivered
                ));
            }
        }
        let (ns3, sanloom) = (self.ns3.ios as f64, self.sanloom.ios as f64);
        if (ns3 - sanloom).abs() > TOLERANCE * sanloom.max(1.0) {
            return Err(format!("ns-3 completes {ns3} reads and sanloom {sanloom}, so the work differs"));
        }
        let (ns3, sanloom) = (self.ns3.packet_hops as f64, self.sanloom.packet_hops as f64);
        if (ns3 - sanloom).abs() > HOP_TOLERANCE * sanloom.max(1.0) {
            return Err(format!("ns-3 counts {ns3} packet-hops and sanloom {sanloom}, so the work differs"));
        }
        Ok(())
    }
}

/// Returns the lab in the language of the program.
fn describe(shape: Shape) -> String {
    let nodes = shape.nodes();
    let plan = ethernet::plan(shape);
    let (cables, ports) = cabling(shape);
    let config = ethernet::config();
    // A packet of ns-3 has the header of PPP instead of preamble, header and FCS of Ethernet. Their
    // bytes delay the packet, and follow it on the line together with the gap.
    let tail_bytes = PREAMBLE_BYTES + FRAME_BYTES - PPP_BYTES;
    let mut text = format!(
        "lab {nodes} {} {} {} {tail_bytes} {} {} {} {REQUEST_BYTES} {ANSWER_BYTES} {DEPTH}\n",
        ports.len(),
        ethernet::PS_PER_BYTE,
        tail_bytes + GAP_BYTES,
        ethernet::MARK_BYTES,
        config.mss - TIME_STAMP_BYTES,
        config.send_buffer.max,
    );
    for (ends, link) in cables.iter().zip(&plan.links) {
        // A channel of ns-3 has one delay for both directions, so each of the two links of nodes
        // on a path has half the latency of a switch.
        let at_node = ends.iter().any(|end| matches!(end, Place::Node(_)));
        let latency_ps = plan.switches[0].latency_ps / if at_node { 2 } else { 1 };
        text += "link";
        for end in ends {
            let (station, port) = match *end {
                Place::Node(node) => (node, 0),
                Place::Port(switch, port) => (nodes + switch, port),
            };
            let _ = write!(text, " {station} {port}");
        }
        let _ = writeln!(text, " {}", link.propagation_ps + latency_ps);
    }
    let plane = EthernetPlane::new(plan).expect("the memory suffices");
    for (number, [host, device]) in (0..).zip(ethernet::connections(shape)) {
        let _ = writeln!(text, "connection {host} {device}");
        for (flow, [from, to]) in [(2 * number, [host, device]), (2 * number + 1, [device, host])] {
            let packet = Packet::new(from as u16, to as u16, flow, 0, HEADER_BYTES as u16);
            for switch in 0..ports.len() as u16 {
                if let Some(port) = plane.port_of(switch, &packet) {
                    let _ = writeln!(text, "route {switch} {from} {to} {port}");
                }
            }
        }
    }
    text
}

/// Returns the lines of the comparison.
pub(super) fn text(beside: &Beside) -> String {
    let compared = match beside {
        Beside::Skipped { skipped } => return format!("ns-3                   skipped: {skipped}\n"),
        Beside::Compared(compared) => compared,
    };
    let ratio = compared.ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string());
    format!(
        "ns-3 with its TCP      {:.3} M packet-hops, {:.2} events each (runs: {})\n\
         \x20 reads in {}        {} in ns-3, {} in sanloom, at {:.2} M packet-hops\n\
         ratio to it            {ratio}\n",
        median(compared.runs.iter().copied()) / 1e6,
        compared.ns3.events as f64 / compared.ns3.packet_hops.max(1) as f64,
        compared.runs.iter().map(|run| format!("{:.3}", run / 1e6)).collect::<Vec<String>>().join(", "),
        format::seconds(compared.duration_s),
        format::grouped(compared.ns3.ios),
        format::grouped(compared.sanloom.ios),
        median(compared.own_runs.iter().copied()) / 1e6,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::work::{Fabric, Nodes};

    /// Work of 20 ms in which nothing is on its way.
    fn compared() -> Compared {
        let counts = Counts { ios: 1000, packet_hops: 4000, sent: 1000, delivered: 1000, events: 1 };
        Compared { duration_s: 0.02, ns3: counts, sanloom: counts, runs: Vec::new(), own_runs: Vec::new(), ratio: None }
    }

    #[test]
    fn other_work_is_refused() {
        assert_eq!(compared().check(), Ok(()));
        let mut fewer = compared();
        fewer.ns3.ios = 949;
        assert!(fewer.check().is_err_and(|error| error.contains("949 reads and sanloom 1000")));
        // As many reads, with more acknowledgements.
        let mut more = compared();
        more.ns3 = Counts { packet_hops: 4084, sent: 1021, delivered: 1021, ..more.ns3 };
        assert!(more.check().is_err_and(|error| error.contains("4084 packet-hops and sanloom 4000")));
        more.ns3 = Counts { packet_hops: 4076, sent: 1019, delivered: 1019, ..more.ns3 };
        assert_eq!(more.check(), Ok(()));
        for hops in [3999, 4001] {
            let mut other = compared();
            other.ns3.packet_hops = hops;
            assert!(other.check().is_err_and(|error| error.contains("ns-3 counts")), "{hops}");
        }
        // A packet on its way may have crossed up to three lines.
        let mut on_the_way = compared();
        (on_the_way.sanloom.sent, on_the_way.sanloom.packet_hops) = (1001, 4003);
        assert_eq!(on_the_way.check(), Ok(()));
    }

    #[test]
    fn the_ratio_is_that_of_runs_of_the_same_simulated_time() {
        let compared = Compared { runs: vec![10.0, 20.0], own_runs: vec![300.0, 600.0], ..compared() };
        assert_eq!(compared.with_ratio().ratio.map(|ratio| ratio.median), Some(30.0));
    }

    #[test]
    fn a_lab_that_would_take_minutes_in_ns3_is_a_skip_with_its_remedy() {
        let started = Ns3::start("no-such-compiler", Nodes::N1024.shape(Fabric::Sansim));
        assert!(matches!(started, Ok(Err(reason)) if reason.contains("use `--nodes 16`")));
    }

    #[test]
    fn the_lab_has_the_cables_and_connections_of_the_bench() {
        let lab = describe(Nodes::N16.shape(Fabric::Sansim));
        let count = |word: &str| lab.lines().filter(|line| line.split(' ').next() == Some(word)).count();
        // 16 nodes and four edges with two links to the core; eight hosts with four devices each.
        assert_eq!([count("lab"), count("link"), count("connection")], [1, 16 + 8, 32]);
        // Three switches are on the path of each direction; the others have a path, too.
        assert_eq!(count("route"), 32 * 2 * 5);
        // 10 Gb/s, 1538 bytes on the line for 1502 in ns-3, 65 frames, 1448 bytes a segment.
        assert_eq!(lab.lines().next(), Some("lab 16 5 800 36 24 98670 1448 1048576 64 32768 2"));
    }
}
