//! Random labs whose rates a fluid model determines. Everything follows from a seed.

use super::wire;
use crate::random_lab::Dice;
use sanloom_fc::config::LineRate;
use std::fmt::Write;

/// Speeds of a lab. Neighbouring generations, so that the fastest flows of a lab do not send a
/// multiple of the frames of the slowest.
const SPEEDS: [&[LineRate]; 5] = [
    &[LineRate::Fc4, LineRate::Fc8],
    &[LineRate::Fc8, LineRate::Fc16],
    &[LineRate::Fc8, LineRate::Fc16, LineRate::Fc32],
    &[LineRate::Fc16, LineRate::Fc32, LineRate::Fc64],
    &[LineRate::Fc4, LineRate::Fc16, LineRate::Fc64],
];
/// Data in flight of each flow, in bytes: many times what a line carries in a round trip.
const WINDOW: u32 = 128 << 10;
/// Data in flight of each flow of writes that need a whole line. Commands wait behind the data of
/// earlier writes, so all requests of a flow advance together, and the line is idle for one round
/// trip per window.
const WINDOW_OF_WRITES: u32 = 512 << 10;
/// Data that each bottleneck carries during the warm-up, and during the measurement, in windows of
/// all flows.
const CYCLES: [f64; 2] = [2.5, 6.5];

/// The arrangement of flows.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shape {
    /// Each host uses a storage system of its own.
    Pairs,
    /// One host or storage system receives all data.
    Incast,
    /// One host or storage system sends all data.
    Outcast,
}

/// A lab in preparation.
struct Draft {
    dice: Dice,
    text: String,
    speeds: &'static [LineRate],
    /// Number of requests in flight of each flow.
    depth: u32,
    bytes: u32,
    flows: u64,
    write: bool,
    shape: Shape,
    slowest: f64,
}

/// Draws a lab file.
pub fn draw(seed: u64) -> String {
    let mut dice = Dice::new(seed ^ 0xf1d);
    let bytes = 2048 << dice.range(0, 5);
    let speeds = SPEEDS[dice.index(SPEEDS.len())];
    let flows = dice.range(2, 6);
    let write = dice.chance(1, 4);
    let shape = dice.weighted(&[(Shape::Pairs, 4), (Shape::Incast, 2), (Shape::Outcast, 1)]);
    let fast = 1 + u32::from(speeds.iter().any(|rate| *rate > LineRate::Fc16));
    let window = if write && shape == Shape::Pairs { WINDOW_OF_WRITES * fast } else { WINDOW };
    let depth = (window / bytes).max(8);
    let mut draft = Draft { dice, text: String::new(), speeds, depth, bytes, flows, write, shape, slowest: f64::MAX };
    draft.draw();
    let Draft { text, slowest, .. } = draft;
    // The window of all flows at the slowest line or node of the lab is the longest cycle.
    let cycle_s = f64::from(depth * bytes) * flows as f64 / slowest;
    let [warmup, measured] = CYCLES.map(|cycles| (cycles * cycle_s * 1e9) as u64 + 100_000);
    format!(
        "[lab]\nname = \"fluid-{seed}\"\n[run]\nduration = \"{}ns\"\nwarmup = \"{warmup}ns\"\nseed = {}\n{text}",
        warmup + measured,
        seed % (1 << 32),
    )
}

impl Draft {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn rate(&mut self, lines: u64) -> LineRate {
        let rate = self.dice.pick(self.speeds);
        self.slowest = self.slowest.min(wire::capacity(rate) * lines as f64);
        rate
    }

    fn draw(&mut self) {
        let (shape, write) = (self.shape, self.write);
        let ample = shape != Shape::Incast || self.dice.chance(1, 2);
        if !ample {
            // Requests in flight fill the buffers of the whole way.
            self.depth *= 3;
        }
        // Short links hold few frames on the line, so 16 buffers keep each line busy.
        let frames = (self.bytes / 2048 + 3) * self.depth * self.flows as u32;
        let credits = if ample { frames } else { self.dice.range(12, 32) as u32 };
        let core_edge = shape == Shape::Pairs && self.dice.chance(1, 3);
        let switches = if core_edge { 4 } else { self.dice.range(1, 4) };
        let channels = self.switches(switches, ample);
        // Each channel holds all frames. The buffers of a line are divided among its channels.
        let credits_of_isl = if ample { credits * channels.max(1) + 8 } else { credits };
        let nodes = match (shape, write) {
            (Shape::Pairs, _) => [self.flows, self.flows],
            (Shape::Incast, false) | (Shape::Outcast, true) => [1, self.flows],
            (Shape::Incast, true) | (Shape::Outcast, false) => [self.flows, 1],
        };
        self.nodes(nodes, switches, core_edge, credits);
        if core_edge {
            self.core_edge(credits_of_isl);
        } else {
            for switch in 1..switches {
                let lines = if self.dice.chance(1, 2) { 1 } else { self.dice.range(2, 8) };
                let rate = self.rate(lines);
                let bundle = lines > 1;
                self.line(format_args!(
                    "[[isl]]\nfrom = \"sw{switch}\"\nto = \"sw{}\"\nrate = \"{rate}\"\ncount = {lines}\nbundle = \
                     {bundle}\ncredits = {credits_of_isl}",
                    switch + 1
                ));
            }
        }
        self.workloads(nodes, write);
    }

    /// Writes the switches, and returns the number of virtual channels of their ISLs.
    fn switches(&mut self, count: u64, ample: bool) -> u32 {
        // The bound for FIFO queues needs frames whose outputs are independent. A source that sends
        // whole sequences to slower hosts blocks the others for longer.
        let fifo = if self.shape == Shape::Outcast { 0 } else { 2 };
        let queueing = self.dice.weighted(&[("voq", 4), ("any", 2), ("fifo", fifo)]);
        // With few credits, oldest-first divides an output in proportion to what waits.
        let arbitration = if ample { self.dice.pick(&["round-robin", "oldest-first"]) } else { "round-robin" };
        let forwarding = self.dice.pick(&["cut-through", "store-and-forward"]);
        // `spray` counts frames. With one data frame per response, every other link gets all data.
        let spray = u64::from(self.bytes > 2048);
        let choice = self.dice.weighted(&[("exchange", 1), ("spray", spray), ("least-loaded", 1)]);
        let speedup = self.dice.pick(&["1.5", "2", "3"]);
        // With one place, a line waits whenever the input with the grant is busy with another
        // frame.
        let places = self.dice.range(2, 4);
        // With few credits, several channels would have too few each to keep a line busy.
        let channels = match queueing {
            "voq" if ample => self.dice.range(0, 4),
            "voq" => self.dice.range(0, 1),
            _ => 0,
        };
        self.line(format_args!(
            "[switch.\"sw{{1..{count}}}\"]\nqueueing = \"{queueing}\"\narbitration = \"{arbitration}\"\nforwarding = \
             \"{forwarding}\"\nisl_choice = \"{choice}\"\ncrossbar = {{ speedup = {speedup}, egress_buffers = {places} }}\nvirtual_channels = {{ medium = {channels} }}"
        ));
        channels as u32
    }

    /// Writes hosts and storage systems with their links.
    fn nodes(&mut self, counts: [u64; 2], switches: u64, core_edge: bool, credits: u32) {
        let most = u64::from(self.depth) * self.flows;
        for (kind, count) in ["host", "disk"].into_iter().zip(counts) {
            for node in 1..=count {
                if kind == "host" {
                    self.line(format_args!("[host.host{node}]\nqueue_depth = {most}"));
                    self.limits_of_host();
                } else {
                    self.line(format_args!("[storage.disk{node}]\nlun_size = \"64MiB\""));
                    self.limits_of_disk();
                }
                let switch = match (core_edge, kind) {
                    (true, "host") => 1,
                    (true, _) => 4,
                    _ => self.dice.range(1, switches),
                };
                let rate = self.rate(1);
                self.line(format_args!(
                    "[[link]]\nfrom = \"{kind}{node}\"\nto = \"sw{switch}\"\nrate = \"{rate}\"\ncredits = {credits}"
                ));
            }
        }
    }

    /// Writes a limit of a host, sometimes: its processor, interrupts or bus.
    fn limits_of_host(&mut self) {
        if !self.dice.chance(1, 8) {
            return;
        }
        match self.dice.range(0, 2) {
            kind @ (0 | 1) => {
                let rate = self.limit();
                let time = f64::from(self.bytes) / rate * 1e9;
                if kind == 0 {
                    self.line(format_args!("cpu_per_io = \"{}ns\"", time as u64));
                } else {
                    self.line(format_args!("interrupt = {{ cost = \"{}ns\", max_frames = 1 }}", time as u64));
                }
            }
            _ => {
                let mega = (self.limit() / 8e6) as u64;
                self.line(format_args!("bus = {{ bits = 64, clock = \"{mega}MHz\" }}"));
            }
        }
    }

    /// Writes the rate of a controller, and sometimes a pause before each data sequence.
    fn limits_of_disk(&mut self) {
        if self.dice.chance(1, 8) {
            let rate = self.limit() / f64::from(self.bytes);
            let servers = self.dice.range(1, 3);
            self.line(format_args!("rate = \"{}/s\"\nservers = {servers}", (rate / servers as f64) as u64));
            return;
        }
        self.line(format_args!("rate = \"10M/s\"\nservers = 4"));
        if self.dice.chance(1, 8) {
            let time = f64::from(self.bytes) / self.limit() * 1e9 / 4.0;
            self.line(format_args!("sequence_overhead = \"{}ns\"", time as u64));
        }
    }

    /// Returns a data rate of a node around that of the slowest line that may occur.
    fn limit(&mut self) -> f64 {
        let rate = wire::capacity(self.speeds[0]) * self.dice.range(50, 150) as f64 / 100.0;
        self.slowest = self.slowest.min(rate);
        rate
    }

    /// Writes links between two edges and two cores: between each pair either parallel links, which
    /// are paths of equal cost, or a trunk.
    fn core_edge(&mut self, credits: u32) {
        let lines = self.dice.range(1, 4);
        let bundle = lines > 1 && self.dice.chance(1, 2);
        let rate = self.rate(lines);
        for edge in [1, 4] {
            self.line(format_args!(
                "[[isl]]\nfrom = \"sw{edge}\"\nto = \"sw{{2..3}}\"\nrate = \"{rate}\"\ncount = {lines}\nbundle = \
                 {bundle}\ncredits = {credits}"
            ));
        }
    }

    fn workloads(&mut self, [hosts, disks]: [u64; 2], write: bool) {
        for flow in 1..=self.flows {
            let (host, disk) = (flow.min(hosts), flow.min(disks));
            let (depth, bytes) = (self.depth, self.bytes);
            self.line(format_args!(
                "[workload.flow{flow}]\nhosts = \"host{host}\"\ntargets = \"disk{disk}\"\nsize = \"{bytes}B\"\ndepth = \
                 {depth}\nread_share = {}",
                u8::from(!write)
            ));
        }
    }
}
