//! Flows of a lab, their routes, and the stations that limit them.

use super::fill::{Share, Station};
use super::wire::{self, GAP, Request, Traffic};
use sanloom_fc::config::{Arbitration, IslChoice, LineRate, Load, Node, Picos, Queueing, SizeDistribution};
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, BTreeSet};

/// Most virtual channels for data of medium priority.
const MOST_CHANNELS: u8 = 4;
/// Most buffers of a link with virtual channels that are for frames between switches.
const FABRIC_BUFFERS: u64 = 4;

/// A closed loop of one host on one storage system.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    pub workload: usize,
    pub host: u16,
    pub storage: u16,
    pub write: bool,
    /// Bytes of a request.
    pub bytes: u32,
    /// Requests in flight.
    pub depth: u32,
    /// Frames of one request.
    pub request: Request,
}

/// An input of a switch: a link of a node, or a link or trunk of another switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Input {
    Access(usize),
    Isl(usize),
}

/// A link or a trunk between two switches.
struct Isl {
    ends: [u16; 2],
    lines: usize,
    rate: LineRate,
    cost: u64,
    name: String,
    links: Vec<usize>,
}

/// A way through the switches.
#[derive(Clone, Debug)]
struct Route {
    /// Part of the frames that take this way.
    part: f64,
    /// ISLs with the switch that sends.
    hops: Vec<(usize, u16)>,
}

/// The stations of a lab and the structure that judges need.
pub struct Network {
    pub flows: Vec<Flow>,
    pub stations: Vec<Station>,
    /// Groups of flows that share an input with a FIFO queue and leave it through several outputs.
    pub blocking: Vec<Vec<usize>>,
    /// For each flow, whether the line of its source is faster than that of its receiver.
    pub fast_source: Vec<bool>,
    /// For each flow, the time from the last data of a window to the first data of the next one, in
    /// seconds: passage of a command behind the data, and of FCP_XFER_RDY. 0 for reads.
    pub turnaround_s: Vec<f64>,
    /// For each flow, the number of ways among which its exchanges are distributed at random.
    pub random_ways: Vec<usize>,
    /// True if the buffers of every link hold all frames of the flows over it, so that no sender
    /// waits for credits.
    pub ample: bool,
    /// True if all data leave the fabric through one port (incast).
    pub single_output: bool,
    /// For each flow, whether its requests in flight fill all buffers on its way, so that its
    /// source always has a frame to send.
    pub backlogged: Vec<bool>,
}

/// A use of a station by a flow before the tree is built.
struct Use {
    flow: usize,
    frames: f64,
    bytes: f64,
    /// Inputs from the sending switch back to the source, with their lines.
    origin: Vec<(Input, usize)>,
    /// Virtual channel of the frames on this line; 0 if the line has none.
    channel: u64,
    /// True if the frames include the data of the flow.
    is_data: bool,
}

/// Order of service of a station.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// All flows share one queue.
    Queue,
    /// An arbiter serves the inputs in turn.
    Turns,
    /// All flows share one queue. If senders wait for credits, the queue gets frames in the
    /// proportions in which the last switch sends them in turn.
    Arrivals,
}

/// Location of a station.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// A processor, bus or controller.
    Node,
    /// The line of a node towards its switch.
    Source,
    Switch,
}

/// Capacity, order and location of a station.
#[derive(Clone, Copy)]
struct Kind {
    capacity: f64,
    order: Order,
    at: At,
}

/// Collects the uses of a station.
struct Draft {
    kind: Kind,
    uses: Vec<Use>,
}

impl Network {
    /// Derives flows and stations.
    ///
    /// # Errors
    ///
    /// The reason why a fluid model does not describe the lab.
    pub fn new(lab: &Lab) -> Result<Network, String> {
        let flows = flows(lab)?;
        let held = vec![[0; 2]; lab.links.len()];
        let buffers = vec![0; flows.len()];
        let mut build = Build { lab, isls: isls(lab), drafts: BTreeMap::new(), held, buffers };
        let mut inputs: BTreeMap<(u16, Input), BTreeMap<String, Vec<usize>>> = BTreeMap::new();
        let mut random_ways = Vec::new();
        let mut data_outputs = Vec::new();
        let (mut fast_source, mut turnaround_s) = (Vec::new(), Vec::new());
        for (number, flow) in flows.iter().enumerate() {
            let ends = [build.access(Node::Host(flow.host))?, build.access(Node::Storage(flow.storage))?];
            let mut ways = 1;
            for (from, to, traffic, is_data) in
                [(ends[0], ends[1], flow.request.out, flow.write), (ends[1], ends[0], flow.request.back, !flow.write)]
            {
                let routes = build.routes(from.1, to.1)?;
                if is_data {
                    ways = routes.len();
                    data_outputs.push(to.0);
                }
                for route in &routes {
                    build.add_route(number, flow, (from, to), (traffic, is_data), route, &mut inputs);
                }
            }
            let by_frame = lab.switches.iter().all(|switch| switch.isl_choice.is_by_frame());
            if ways > 1
                && lab.switches.iter().any(|s| matches!(s.isl_choice, IslChoice::Ingress | IslChoice::DevicePair))
            {
                return Err("the split of `ingress` and `pair` over equal paths depends on addresses".to_owned());
            }
            random_ways.push(if by_frame { 1 } else { ways });
            build.add_nodes(number, flow);
            let [host, disk] = ends.map(|(link, _)| wire::capacity(lab.links[link].rate));
            fast_source.push(if flow.write { host > disk } else { disk > host });
            turnaround_s.push(if flow.write { build.turnaround_s(flow, ends)? } else { 0.0 });
        }
        data_outputs.sort_unstable();
        data_outputs.dedup();
        let fifo = |switch: u16| lab.switches[usize::from(switch)].queueing == Queueing::Fifo;
        let blocking = inputs.into_iter().filter(|((switch, _), outputs)| fifo(*switch) && outputs.len() > 1);
        let blocking = blocking.map(|(_, outputs)| outputs.into_values().flatten().collect()).collect();
        let ample = build.has_ample_credits();
        let stations = build.stations(&flows, ample);
        let single_output = data_outputs.len() == 1;
        let fills = |(flow, buffers): (&Flow, &u64)| {
            flow.request.data_frames * f64::from(flow.depth.saturating_sub(2)) >= *buffers as f64
        };
        let backlogged = flows.iter().zip(&build.buffers).map(fills).collect();
        Ok(Network {
            flows,
            stations,
            blocking,
            fast_source,
            turnaround_s,
            random_ways,
            ample,
            single_output,
            backlogged,
        })
    }
}

/// Returns the flows of the workloads.
fn flows(lab: &Lab) -> Result<Vec<Flow>, String> {
    let mut flows = Vec::new();
    for (workload, work) in lab.workloads.iter().enumerate() {
        let refuse = |what: &str| Err(format!("workload {}: {what}", work.name));
        let Load::Closed { depth, think_time } = work.load else { return refuse("an open loop") };
        let SizeDistribution::Fixed(bytes) = work.size else { return refuse("several sizes") };
        let &[target] = &work.targets[..] else { return refuse("several targets") };
        if think_time.mean() > Picos::ZERO || (work.read_share != 0.0 && work.read_share != 1.0) {
            return refuse("think time, or both directions");
        }
        let write = work.read_share == 0.0;
        for &host in &work.hosts {
            let (at, system) = (&lab.hosts[usize::from(host)], &lab.storage[usize::from(target.storage)]);
            let ([hba], [port]) = (&at.hbas[..], &system.ports[..]) else { return refuse("several ports") };
            let field = hba.receive_size_bytes.min(port.receive_size_bytes);
            let request = Request::new(write, bytes, field, system.max_burst_bytes);
            flows.push(Flow { workload, host, storage: target.storage, write, bytes, depth, request });
        }
    }
    Ok(flows)
}

/// Returns the links and trunks between switches.
fn isls(lab: &Lab) -> Vec<Isl> {
    let mut isls: Vec<Isl> = Vec::new();
    let mut of_bundle = BTreeMap::new();
    for (number, link) in lab.links.iter().enumerate() {
        let (Node::Switch(a), Node::Switch(b)) = (link.ends[0].node, link.ends[1].node) else { continue };
        if let Some(bundle) = link.bundle {
            if let Some(&at) = of_bundle.get(&bundle) {
                let isl: &mut Isl = &mut isls[at];
                isl.lines += 1;
                isl.links.push(number);
                continue;
            }
            of_bundle.insert(bundle, isls.len());
        }
        // RFC 4626, link cost: 1000 at 1GFC, inversely proportional to the rate.
        let cost = (1000.0 * wire::capacity(LineRate::Fc1) / wire::capacity(link.rate)).floor().max(1.0) as u64;
        isls.push(Isl { ends: [a, b], lines: 1, rate: link.rate, cost, name: link.name.clone(), links: vec![number] });
    }
    isls
}

/// Stations in preparation.
struct Build<'a> {
    lab: &'a Lab,
    isls: Vec<Isl>,
    drafts: BTreeMap<String, Draft>,
    /// Frames that the windows of all flows may put on each link, by direction.
    held: Vec<[u64; 2]>,
    /// Buffers for the data of each flow, at the ends of all links of its way.
    buffers: Vec<u64>,
}

impl Build<'_> {
    /// Returns the link of a node and its switch.
    fn access(&self, node: Node) -> Result<(usize, u16), String> {
        let mut links = self.lab.links.iter().enumerate().filter(|(_, link)| link.ends.iter().any(|e| e.node == node));
        let (Some((number, link)), None) = (links.next(), links.next()) else {
            return Err(format!("{node:?} has several links, or none"));
        };
        let far = link.ends.iter().find_map(|end| match end.node {
            Node::Switch(switch) => Some(switch),
            _ => None,
        });
        far.map(|switch| (number, switch)).ok_or_else(|| format!("{node:?} is not linked to a switch"))
    }

    /// Returns the cheapest ways. At each switch the frames are distributed equally.
    fn routes(&self, from: u16, to: u16) -> Result<Vec<Route>, String> {
        let mut distance = vec![u64::MAX / 2; self.lab.switches.len()];
        distance[usize::from(to)] = 0;
        for _ in 0..distance.len() {
            for isl in &self.isls {
                let [a, b] = isl.ends.map(usize::from);
                distance[a] = distance[a].min(distance[b] + isl.cost);
                distance[b] = distance[b].min(distance[a] + isl.cost);
            }
        }
        if distance[usize::from(from)] >= u64::MAX / 2 {
            return Err("no way".to_owned());
        }
        let mut open = vec![(from, Route { part: 1.0, hops: Vec::new() })];
        let mut done = Vec::new();
        while let Some((here, route)) = open.pop() {
            if here == to {
                done.push(route);
                continue;
            }
            let next = self.isls.iter().enumerate().filter_map(|(number, isl)| {
                let there = if isl.ends[0] == here { isl.ends[1] } else { isl.ends[0] };
                let leads =
                    isl.ends.contains(&here) && distance[usize::from(there)] + isl.cost == distance[usize::from(here)];
                leads.then_some((number, there))
            });
            let next: Vec<_> = next.collect();
            for &(number, there) in &next {
                let mut further = route.clone();
                further.part /= next.len() as f64;
                further.hops.push((number, here));
                open.push((there, further));
            }
        }
        Ok(done)
    }

    fn add(&mut self, station: String, kind: Kind, used: Use) {
        self.drafts.entry(station).or_insert_with(|| Draft { kind, uses: Vec::new() }).uses.push(used);
    }

    /// Returns the time from the last data of a window of writes to the first data of the next one,
    /// in seconds.
    fn turnaround_s(&self, flow: &Flow, [host, disk]: [(usize, u16); 2]) -> Result<f64, String> {
        let out = self.passage_s(host, disk, wire::longest_frame(flow.bytes))?;
        Ok(out + self.passage_s(disk, host, wire::READY_FRAME)?)
    }

    /// Returns the longest time that a frame of `bytes` needs from one node to another, in seconds.
    fn passage_s(&self, from: (usize, u16), to: (usize, u16), bytes: f64) -> Result<f64, String> {
        let of_link = |link: usize| {
            let link = &self.lab.links[link];
            bytes / wire::capacity(link.rate) + link.propagation.as_secs_f64()
        };
        let latency = |switch: u16| self.lab.switches[usize::from(switch)].latency.as_secs_f64();
        let of_route = |route: &Route| {
            let hops = route.hops.iter().map(|&(isl, switch)| of_link(self.isls[isl].links[0]) + latency(switch));
            of_link(from.0) + hops.sum::<f64>() + latency(to.1) + of_link(to.0)
        };
        Ok(self.routes(from.1, to.1)?.iter().map(of_route).fold(0.0, f64::max))
    }

    /// Returns the bytes per second of the lines of an input.
    fn line_rate(&self, input: Input) -> f64 {
        match input {
            Input::Access(link) => wire::capacity(self.lab.links[link].rate),
            Input::Isl(isl) => wire::capacity(self.isls[isl].rate) * self.isls[isl].lines as f64,
        }
    }

    /// Adds the frames of a flow that take a way.
    fn add_route(
        &mut self,
        number: usize,
        flow: &Flow,
        (from, to): ((usize, u16), (usize, u16)),
        (traffic, is_data): (Traffic, bool),
        route: &Route,
        inputs: &mut BTreeMap<(u16, Input), BTreeMap<String, Vec<usize>>>,
    ) {
        let lab = self.lab;
        let (frames, bytes) = (traffic.frames * route.part, traffic.bytes * route.part);
        let used = |origin: &[(Input, usize)], bytes| Use {
            flow: number,
            frames,
            bytes,
            origin: origin.to_vec(),
            channel: 0,
            is_data,
        };
        let window = (traffic.frames * f64::from(flow.depth)).ceil() as u64;
        let holder = (number, window, is_data);
        let mut origin = vec![(Input::Access(from.0), 1)];
        // The source's own line. A pause before each data sequence occupies the port.
        let link = &lab.links[from.0];
        let capacity = wire::capacity(link.rate);
        let source = link.ends.iter().map(|end| end.node).find(|node| !matches!(node, Node::Switch(_)));
        let pause = match source {
            Some(Node::Storage(storage)) if !flow.write => {
                lab.storage[usize::from(storage)].ports[0].sequence_overhead.as_secs_f64() * capacity * route.part
            }
            _ => 0.0,
        };
        let kind = Kind { capacity, order: Order::Queue, at: At::Source };
        self.add(format!("{} from its node", link.name), kind, used(&origin, bytes + pause));
        self.hold(from.0, |node| matches!(node, Node::Switch(_)), holder);
        for hop in 0..=route.hops.len() {
            let here = route.hops.get(hop).map_or(to.1, |&(_, switch)| switch);
            let config = &lab.switches[usize::from(here)];
            let first = origin[0];
            let (output, capacity) = match route.hops.get(hop) {
                Some(&(isl, _)) => {
                    let isl = &self.isls[isl];
                    (format!("{} from {}", isl.name, config.name), wire::capacity(isl.rate) * isl.lines as f64)
                }
                None => (format!("{} to its node", lab.links[to.0].name), wire::capacity(lab.links[to.0].rate)),
            };
            let flows = inputs.entry((here, first.0)).or_default().entry(output.clone()).or_default();
            if !flows.contains(&number) {
                flows.push(number);
            }
            let order = match config.arbitration {
                Arbitration::OldestFirst => Order::Queue,
                Arbitration::RoundRobin => Order::Turns,
            };
            let at = At::Switch;
            let channels = route.hops.get(hop).map_or(0, |&(isl, _)| self.channels(isl));
            let channel = self.area(to).checked_rem(channels).unwrap_or(0);
            self.add(output, Kind { capacity, order, at }, Use { channel, ..used(&origin, bytes) });
            if config.queueing != Queueing::Any {
                let crossing = bytes - frames * GAP as f64;
                if let Some(bits) = config.crossbar.bandwidth_bit_per_s {
                    let name = format!("crossbar of {}", config.name);
                    let kind = Kind { capacity: bits as f64 / 8.0, order: Order::Turns, at };
                    self.add(name, kind, used(&origin, crossing));
                }
                let lines = lab.links.iter().filter(|l| l.ends.iter().any(|end| end.node == Node::Switch(here)));
                let fastest = lines.map(|link| wire::capacity(link.rate)).fold(0.0, f64::max);
                let capacity = fastest * f64::from(config.crossbar.speedup_percent) / 100.0 * first.1 as f64;
                let name = format!("input {:?} of {}", first.0, config.name);
                self.add(name, Kind { capacity, order: Order::Queue, at }, used(&origin, crossing));
            }
            match route.hops.get(hop) {
                Some(&(isl, _)) => {
                    for link in self.isls[isl].links.clone() {
                        self.hold(link, |node| node != Node::Switch(here), holder);
                    }
                    origin.insert(0, (Input::Isl(isl), self.isls[isl].lines));
                }
                None => {
                    self.hold(to.0, |node| !matches!(node, Node::Switch(_)), holder);
                    if is_data && !flow.write {
                        let order = if order == Order::Turns { Order::Arrivals } else { order };
                        self.add_bus(flow, order, route.part, used(&origin, 0.0));
                    }
                }
            }
        }
    }

    /// Returns the number of virtual channels that an ISL has for data of medium priority.
    fn channels(&self, isl: usize) -> u64 {
        let of = |switch: u16| {
            let channels = self.lab.switches[usize::from(switch)].virtual_channels;
            channels.map_or(0, |channels| channels.medium.unwrap_or(MOST_CHANNELS).into())
        };
        self.isls[isl].ends.map(of).into_iter().min().unwrap_or(0)
    }

    /// Returns the area of the address of the node at a link, which is the number of its port. The
    /// third byte of the address is 0, so the area alone chooses a virtual channel.
    fn area(&self, (link, switch): (usize, u16)) -> u64 {
        let mut ends = self.lab.links[link].ends.iter();
        ends.find(|end| end.node == Node::Switch(switch)).map_or(0, |end| end.port.into())
    }

    /// Counts the frames of a flow that may wait at the end of a link whose node satisfies
    /// `is_end`, and the buffers there.
    fn hold(&mut self, link: usize, is_end: impl Fn(Node) -> bool, (flow, frames, is_data): (usize, u64, bool)) {
        for (end, at) in self.lab.links[link].ends.iter().enumerate() {
            if is_end(at.node) {
                self.held[link][end] += frames;
                self.buffers[flow] += if is_data { u64::from(at.bb_credit) } else { 0 };
            }
        }
    }

    /// Adds processors, buses and controllers.
    fn add_nodes(&mut self, number: usize, flow: &Flow) {
        let host = &self.lab.hosts[usize::from(flow.host)];
        let system = &self.lab.storage[usize::from(flow.storage)];
        let used =
            |units: f64| Use { flow: number, frames: 1.0, bytes: units, origin: Vec::new(), channel: 0, is_data: true };
        let kind = |capacity: f64| Kind { capacity, order: Order::Queue, at: At::Node };
        let interrupt = host.interrupt.map_or(0.0, |i| i.cost.as_secs_f64() / f64::from(i.max_frames));
        let cpu = host.cpu_per_io.as_secs_f64() + interrupt;
        if cpu > 0.0 {
            self.add(format!("processor of {}", host.name), kind(1.0), used(cpu));
        }
        if flow.write {
            self.add_bus(flow, Order::Queue, 1.0, used(0.0));
        }
        let time = system.service.time.mean().as_secs_f64();
        self.add(format!("controller of {}", system.name), kind(f64::from(system.service.servers)), used(time));
    }

    /// Adds the use of the bus of a host, if there is one, by `part` of the data of a flow.
    fn add_bus(&mut self, flow: &Flow, order: Order, part: f64, used: Use) {
        let host = &self.lab.hosts[usize::from(flow.host)];
        if let Some(bus) = host.bus {
            let words = f64::from(flow.bytes) * 8.0 / f64::from(bus.bits) * part;
            let kind = Kind { capacity: bus.clock_hz as f64, order, at: At::Node };
            self.add(format!("bus of {}", host.name), kind, Use { bytes: words, ..used });
        }
    }

    fn has_ample_credits(&self) -> bool {
        // All frames of a link may use one of its channels. A part of the buffers is for frames
        // between switches.
        let channels = |link: usize| self.isls.iter().position(|isl| isl.links.contains(&link));
        let of_channel = |link: usize, buffers: u64| match channels(link).map_or(0, |isl| self.channels(isl)) {
            0 => buffers,
            channels => buffers.saturating_sub(FABRIC_BUFFERS) / channels,
        };
        let ends = |link: usize| self.lab.links[link].ends.map(|end| of_channel(link, end.bb_credit.into()));
        (0..self.held.len()).all(|link| (0..2).all(|end| ends(link)[end] >= self.held[link][end]))
    }

    fn stations(&self, flows: &[Flow], ample: bool) -> Vec<Station> {
        let build = |(name, draft): (&String, &Draft)| {
            let mut uses: BTreeMap<usize, f64> = BTreeMap::new();
            for used in &draft.uses {
                *uses.entry(used.flow).or_default() += used.bytes;
            }
            let Kind { capacity, order, at } = draft.kind;
            let share = |uses: &[&Use]| match order {
                Order::Queue => queue(uses, flows, 1),
                Order::Arrivals if ample => queue(uses, flows, 1),
                Order::Turns | Order::Arrivals => turns(uses, flows, 0, 1, !ample),
            };
            let mut channels: BTreeMap<u64, Vec<&Use>> = BTreeMap::new();
            draft.uses.iter().for_each(|used| channels.entry(used.channel).or_default().push(used));
            let mut shares: Vec<Share> = channels.values().map(|uses| share(uses)).collect();
            let share = match shares.len() {
                1 => shares.remove(0),
                _ => Share::Group { weight: 1.0, queue: false, members: shares },
            };
            let uses = uses.into_iter().collect();
            let data: BTreeSet<usize> = draft.uses.iter().filter(|used| used.is_data).map(|used| used.flow).collect();
            let inputs: BTreeSet<Input> =
                draft.uses.iter().filter_map(|used| used.origin.first()).map(|origin| origin.0).collect();
            let arriving: f64 = inputs.into_iter().map(|input| self.line_rate(input)).sum();
            let holds_bursts = at != At::Switch || arriving > capacity * (1.0 + f64::EPSILON * 8.0);
            let in_node = at == At::Node;
            Station { name: name.clone(), capacity, share, uses, in_node, data, holds_bursts }
        };
        self.drafts.iter().map(build).collect()
    }
}

/// Returns the share of flows in one queue: in proportion to their frames that wait there.
fn queue(uses: &[&Use], flows: &[Flow], lines: usize) -> Share {
    let member = |used: &&Use| Share::Flow {
        flow: used.flow,
        frames: used.frames,
        weight: f64::from(flows[used.flow].depth) * used.frames,
    };
    Share::Group { weight: lines as f64, queue: true, members: uses.iter().map(member).collect() }
}

/// Returns the share of inputs that an arbiter serves in turn. `nested`: senders wait for credits,
/// so the frames of an input have the proportions in which the arbiter before it sends them.
/// Otherwise they wait in the queue of the input, in proportion to the requests in flight.
fn turns(uses: &[&Use], flows: &[Flow], hop: usize, lines: usize, nested: bool) -> Share {
    let mut inputs: BTreeMap<(Input, usize), Vec<&Use>> = BTreeMap::new();
    for used in uses {
        inputs.entry(used.origin[hop]).or_default().push(used);
    }
    let group = |((_, lines), uses): ((Input, usize), Vec<&Use>)| {
        if nested && uses.iter().all(|used| used.origin.len() > hop + 1) {
            turns(&uses, flows, hop + 1, lines, true)
        } else {
            queue(&uses, flows, lines)
        }
    };
    Share::Group { weight: lines as f64, queue: false, members: inputs.into_iter().map(group).collect() }
}
