//! InfiniBand: lines with credit per virtual lane, and switches with buffers at their inputs.
//!
//! A *packet-hop* is one crossing of one line by one packet; flow-control packets do not count.
//! Hosts and storage systems send through *interfaces*, the ports of their adapters. A packet
//! leaves only if the buffer of its lane at the other end has room, so no data packet is dropped
//! for congestion until the lifetime at the head of its queue ends.
//!
//! # Rules at one instant
//!
//! First flow-control packets arrive, then packets, line by line; a packet that meets an idle line
//! leaves at once. Then lines that have become free send, line by line: the buffer of the packet
//! that has left is freed, flow-control packets leave, and the next packet follows them directly.
//! Last, lifetimes end, flow-control packets are repeated, and the subnet manager changes tables.
//!
//! # Simplifications
//!
//! - An input of a switch has one queue for each output and lane, and sends to several outputs at
//!   once; the switch itself limits nothing.
//! - A receiver sends a flow-control packet for each freed packet. The repetition after 65,536
//!   symbol times has no event if it changes nothing.
//! - A sweep takes a fixed time and computes all tables anew; its packets are not simulated.

mod deadlock;
mod line;
mod observe;
mod packet;
mod queues;
mod step;
mod subnet;

pub use deadlock::Deadlock;
pub use line::{FLOW_BYTES, LANES, Line, LineCount, STALL_DROPS, STALL_LIVES, Station};
pub use observe::{Observed, ObservedKind};
pub use packet::Packet;
pub use subnet::PlanError;

use super::ethernet::EthernetPlane;
use super::line::{BusyPeriod, ByteTime};
use super::queue::NEVER;
use super::{Net, NetPlan};
use line::LaneState;
use observe::Recorder;
use queues::Queues;
use sanloom_scsi::random::{SplitMix64, mix};
use sanloom_transport::infiniband::arbitration::{Arbiter, Entry, MANAGEMENT, SlToVl};
use sanloom_transport::infiniband::lids::Range;
use sanloom_transport::infiniband::manager::Config;
use sanloom_transport::infiniband::packet::LRH;
use sanloom_transport::infiniband::rate::{Rate, Speed, Width};
use sanloom_transport::infiniband::routing::{Engine, Refusal};
use std::collections::{BTreeMap, VecDeque};
use subnet::Manager;

/// Bytes that a switch with cut-through needs: the start symbol and the LRH.
const ENTRY_BYTES: u64 = 1 + LRH as u64;

/// State of the InfiniBand plane.
pub struct InfinibandPlane {
    lines: Vec<Line>,
    /// Randomness of each line, for faults.
    dice: Vec<SplitMix64>,
    switches: Vec<SwitchState>,
    /// Queues of the switches, then of the interfaces.
    nodes: Vec<Queues>,
    /// Outgoing line of each interface.
    interface_tx: Vec<u32>,
    /// Interfaces that keep the blocks of arrived packets, and these blocks of each lane.
    holds: Vec<bool>,
    held: Vec<[u16; LANES]>,
    /// Lanes of the packets that interfaces send.
    levels: SlToVl,
    manager: Manager,
    /// Packet counters.
    pub fate: PacketFate,
    lost: BTreeMap<(u32, PacketLoss), u64>,
    deadlocks: Vec<Deadlock>,
    recorder: Recorder,
    /// Lost packets since the last call of [`InfinibandPlane::take_lost`], if somebody takes them.
    lost_packets: Option<Vec<Packet>>,
}

/// A switch of the plane.
struct SwitchState {
    /// Outgoing line of each port.
    tx: Vec<u32>,
    /// Port for each LID, `u8::MAX` if there is none.
    outputs: Vec<u8>,
    levels: Vec<SlToVl>,
}

/// Construction parameters of an [`InfinibandPlane`].
#[derive(Clone, Debug)]
pub struct InfinibandPlan {
    pub switches: Vec<InfinibandSwitchPlan>,
    /// Lines 2n and 2n + 1 are the two directions of link n.
    pub links: Vec<InfinibandLinkPlan>,
    /// Node GUIDs of the adapters of the interfaces. Each has one link.
    pub interfaces: Vec<u64>,
    /// Interface of the subnet manager.
    pub manager: u16,
    /// Settings of the subnet manager.
    pub config: Config,
    /// Time from a change of a link to new forwarding tables, in ps.
    pub sweep_ps: u64,
    /// Lanes of the packets that interfaces send.
    pub levels: SlToVl,
    /// Start of all randomness.
    pub seed: u64,
}

/// A switch of an [`InfinibandPlan`].
#[derive(Clone, Debug)]
pub struct InfinibandSwitchPlan {
    /// Node GUID.
    pub guid: u64,
    pub ports: u8,
    /// Time from the arrival of a packet until it may leave, in ps.
    pub latency_ps: u64,
    /// True if a packet may leave before its end has arrived.
    pub cut_through: bool,
    /// One map of service levels for all ports, or one for each pair of an input and an output.
    pub levels: Vec<SlToVl>,
    /// Lifetime of a packet at the head of its queue, towards switches and towards interfaces, in
    /// ps; see [`life_ps`].
    pub life_ps: [u64; 2],
    /// Blocks of management packets that an input holds.
    pub management_blocks: u16,
}

/// A link of an [`InfinibandPlan`].
#[derive(Clone, Debug)]
pub struct InfinibandLinkPlan {
    pub ends: [Station; 2],
    /// Time of a byte.
    pub byte: ByteTime,
    /// Propagation delay, in ps.
    pub propagation_ps: u64,
    /// Data lanes, from 1 to 15.
    pub lanes: u8,
    /// Blocks of 64 bytes that each end holds for each lane, at most 2,048.
    pub blocks: [u16; 2],
    /// Time within which each lane sends a flow-control packet, in ps; see [`refresh_ps`].
    pub refresh_ps: u64,
    /// Arbitration of the sender at each end.
    pub arbitration: [Arbitration; 2],
}

/// Arbitration tables of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arbitration {
    pub high: Vec<Entry>,
    pub low: Vec<Entry>,
    /// Bytes of high priority before one packet of low priority, in units of 4,096.
    pub limit: u8,
}

/// Packet counters by outcome. Flow-control packets do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketFate {
    /// Packets that interfaces were given to send.
    pub sent: u64,
    /// Packets that reached the interface that they were for.
    pub delivered: u64,
    /// Packets that did not.
    pub lost: u64,
    /// Flow-control packets lost on a line.
    pub flow_lost: u64,
    /// Packets that met a full buffer in spite of their credit: never.
    pub overruns: u64,
    /// Number of line crossings.
    pub packet_hops: u64,
    /// Sweeps of the subnet manager after changes.
    pub sweeps: u64,
}

/// Reason for a lost packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PacketLoss {
    /// Its lifetime at the head of a queue has ended.
    Lifetime,
    /// Its lane is drained, because it was stalled.
    Stalled,
    /// Bad CRC.
    Crc,
    /// Lost through a fault of the lab.
    PacketLoss,
    /// On a link that went down, or queued for one.
    LinkDown,
    /// No path to the LID.
    NoPath,
    /// The service level has no lane on the next line.
    NoLane,
    /// No room for a management packet.
    ManagementFull,
}

impl PacketLoss {
    /// Returns the name of the reason in results.
    pub fn name(self) -> &'static str {
        match self {
            PacketLoss::Lifetime => "lifetime",
            PacketLoss::Stalled => "stalled_lane",
            PacketLoss::Crc => "crc_error",
            PacketLoss::PacketLoss => "packet_loss",
            PacketLoss::LinkDown => "link_down",
            PacketLoss::NoPath => "no_path",
            PacketLoss::NoLane => "no_lane",
            PacketLoss::ManagementFull => "management_full",
        }
    }
}

/// Returns the lifetime 4.096 us times 2 to the power of `exponent`, in ps. From 20 on it never
/// ends (IBA volume 1, 14.2.5.6).
pub const fn life_ps(exponent: u8) -> u64 {
    if exponent >= 20 { NEVER } else { 4_096_000 << exponent }
}

/// Returns the time of 65,536 symbols, in ps, within which each lane sends a flow-control packet
/// (IBA volume 1, 7.9.4). A symbol is a byte of one lane of the cable.
pub fn refresh_ps(speed: Speed) -> u64 {
    Rate { speed, width: Width::X1 }.time(65_536).ceil() as u64
}

/// Returns the time of a byte at a rate. A denominator above 255 is rounded away: no rate has one.
pub fn byte_time(rate: Rate) -> ByteTime {
    let time = rate.time(1);
    ByteTime::new(time.numerator as u32, time.denominator as u16)
}

impl Default for Arbitration {
    /// Lane 0 alone.
    fn default() -> Arbitration {
        Arbitration { high: Vec::new(), low: vec![Entry { lane: 0, weight: 64 }], limit: 0 }
    }
}

impl Default for InfinibandPlane {
    /// A plane without nodes.
    fn default() -> InfinibandPlane {
        InfinibandPlane {
            lines: Vec::new(),
            dice: Vec::new(),
            switches: Vec::new(),
            nodes: Vec::new(),
            interface_tx: Vec::new(),
            holds: Vec::new(),
            held: Vec::new(),
            levels: SlToVl::spread(1),
            manager: Manager::default(),
            fate: PacketFate::default(),
            lost: BTreeMap::new(),
            deadlocks: Vec::new(),
            recorder: Recorder::default(),
            lost_packets: None,
        }
    }
}

impl SwitchState {
    /// Returns the port for a LID.
    #[inline]
    fn output(&self, lid: u16) -> Option<u8> {
        self.outputs.get(usize::from(lid)).copied().filter(|&port| port != u8::MAX)
    }

    #[inline]
    fn levels(&self, input: u8, output: u8) -> &SlToVl {
        let pair = if self.levels.len() == 1 { 0 } else { usize::from(input) * self.tx.len() + usize::from(output) };
        &self.levels[pair]
    }
}

impl InfinibandPlane {
    /// Returns an idle plane with all links up, as the subnet manager has configured it.
    ///
    /// # Errors
    ///
    /// A mistake of the plan.
    pub fn new(plan: InfinibandPlan) -> Result<InfinibandPlane, PlanError> {
        let manager = Manager::new(&plan)?;
        let mut lines = Vec::with_capacity(2 * plan.links.len());
        let mut interface_tx = vec![u32::MAX; plan.interfaces.len()];
        let mut tx: Vec<Vec<u32>> = plan.switches.iter().map(|switch| vec![u32::MAX; switch.ports.into()]).collect();
        for link in &plan.links {
            for [near, far] in [[0, 1], [1, 0]] {
                let number = lines.len() as u32;
                let (from, to) = (link.ends[near], link.ends[far]);
                let queues = match from {
                    Station::Switch { switch, port } => {
                        let slot = tx.get_mut(usize::from(switch)).and_then(|tx| tx.get_mut(usize::from(port)));
                        *slot.ok_or(PlanError::Fabric(missing_port(switch, port)))? = number;
                        (u32::from(switch), port)
                    }
                    Station::Interface(interface) => {
                        let slot = interface_tx.get_mut(usize::from(interface));
                        *slot.ok_or(PlanError::NoLink(interface))? = number;
                        (plan.switches.len() as u32 + u32::from(interface), 0)
                    }
                };
                let mut line = new_line(link, [from, to], queues, (&link.arbitration[near], link.blocks[far]));
                if let Station::Switch { switch, .. } = to {
                    let switch = &plan.switches[usize::from(switch)];
                    line.latency_ps = switch.latency_ps;
                    line.entry_bytes = if switch.cut_through { ENTRY_BYTES } else { u64::MAX };
                    line.lanes[usize::from(MANAGEMENT)] = LaneState::new(switch.management_blocks);
                    line.onward = vec![0; usize::from(switch.ports) * usize::from(link.lanes)];
                }
                if let Station::Switch { switch, .. } = from {
                    let is_last = matches!(to, Station::Interface(_));
                    line.life_ps = plan.switches[usize::from(switch)].life_ps[usize::from(is_last)];
                }
                lines.push(line);
            }
        }
        if let Some(interface) = interface_tx.iter().position(|&line| line == u32::MAX) {
            return Err(PlanError::NoLink(interface as u16));
        }
        let data_lanes = plan.links.iter().map(|link| link.lanes).max().unwrap_or(1);
        let switch_queues = plan.switches.iter().map(|switch| Queues::new(switch.ports.into(), data_lanes));
        let nodes = switch_queues.chain(plan.interfaces.iter().map(|_| Queues::new(1, data_lanes))).collect();
        let state = |(switch, tx): (InfinibandSwitchPlan, Vec<u32>)| SwitchState {
            tx,
            outputs: Vec::new(),
            levels: switch.levels,
        };
        let mut plane = InfinibandPlane {
            dice: (0..lines.len() as u64).map(|line| SplitMix64(mix(plan.seed ^ mix(line)))).collect(),
            lines,
            switches: plan.switches.into_iter().zip(tx).map(state).collect(),
            nodes,
            holds: vec![false; interface_tx.len()],
            held: vec![[0; LANES]; interface_tx.len()],
            interface_tx,
            levels: plan.levels,
            manager,
            ..InfinibandPlane::default()
        };
        plane.apply_sweep()?;
        Ok(plane)
    }

    /// Returns the lines; 2n and 2n + 1 are the two directions of link n.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the base LID of an interface; `None` if the subnet manager did not reach it.
    pub fn lid(&self, interface: u16) -> Option<u16> {
        self.manager.lid(interface)
    }

    /// Returns the LID of a switch; `None` if the subnet manager did not reach it.
    pub fn switch_lid(&self, switch: u16) -> Option<u16> {
        self.manager.switch_lid(switch)
    }

    /// Returns all LIDs of an interface.
    pub fn lids_of(&self, interface: u16) -> Option<Range> {
        self.manager.lids_of(interface)
    }

    /// Returns the routing engine of the last sweep, and the reason why it is not the configured
    /// one.
    pub fn routing(&self) -> (Engine, Option<Refusal>) {
        self.manager.routing
    }

    /// Returns the port of a switch for a LID.
    pub fn output(&self, switch: u16, lid: u16) -> Option<u8> {
        self.switches[usize::from(switch)].output(lid)
    }

    /// Returns the packets of a lane that wait for a line.
    pub fn queued(&self, line: u32, lane: u8) -> u32 {
        let state = &self.lines[line as usize];
        let (node, output) = state.queues;
        let exists = lane < state.data_lanes || lane == MANAGEMENT;
        if exists { self.nodes[node as usize].packets(output, lane) } else { 0 }
    }

    /// Returns the lost packets: the line on which or at whose end, the reason and the number.
    pub fn losses(&self) -> impl Iterator<Item = (u32, PacketLoss, u64)> {
        self.lost.iter().map(|(&(line, loss), &packets)| (line, loss, packets))
    }

    /// Returns the number of packets on lines and in queues.
    pub fn packets_in_network(&self) -> u64 {
        let on_lines: usize = self.lines.iter().map(|line| line.flight.len()).sum();
        on_lines as u64 + self.nodes.iter().map(Queues::all).sum::<u64>()
    }

    /// The chance of packets on a line to be lost and to be damaged, and of flow-control packets to
    /// be lost, in 2^-32.
    pub fn errors_mut(&mut self, line: u32) -> &mut [u32; 3] {
        &mut self.lines[line as usize].chances
    }

    /// Checks the invariants: packets are conserved, and no packet meets a full buffer.
    ///
    /// # Errors
    ///
    /// A description of the violated invariant.
    pub fn check(&self) -> Result<(), String> {
        let (fate, inside) = (&self.fate, self.packets_in_network());
        if fate.sent != fate.delivered + fate.lost + inside {
            return Err(format!("InfiniBand packets: {fate:?}, {inside} in the network"));
        }
        if fate.overruns > 0 {
            return Err(format!("{} InfiniBand packets met a full buffer", fate.overruns));
        }
        Ok(())
    }

    /// Keeps each lost packet from now on until [`InfinibandPlane::take_lost`] takes it.
    pub(crate) fn report_losses(&mut self) {
        self.lost_packets.get_or_insert_default();
    }

    /// Takes the lost packets.
    pub(crate) fn take_lost(&mut self, take: impl FnMut(Packet)) {
        self.lost_packets.iter_mut().flat_map(|packets| packets.drain(..)).for_each(take);
    }

    fn lose(&mut self, at_ps: u64, line: u32, packet: Packet, loss: PacketLoss) {
        self.record(line, at_ps, ObservedKind::Lost { packet, loss });
        if let Some(packets) = &mut self.lost_packets {
            packets.push(packet);
        }
        self.fate.lost += 1;
        *self.lost.entry((line, loss)).or_default() += 1;
    }
}

fn missing_port(switch: u16, port: u8) -> sanloom_transport::infiniband::fabric::FabricError {
    let port = sanloom_transport::infiniband::fabric::PortId { node: switch.into(), port };
    sanloom_transport::infiniband::fabric::FabricError::NoSuchPort(port)
}

fn new_line(
    link: &InfinibandLinkPlan,
    [from, to]: [Station; 2],
    queues: (u32, u8),
    (arbitration, blocks): (&Arbitration, u16),
) -> Line {
    let Arbitration { high, low, limit } = arbitration.clone();
    Line {
        from,
        to,
        busy: BusyPeriod::default(),
        byte: link.byte,
        wake_ps: NEVER,
        queues,
        used: 0,
        due: 0,
        blocked: 0,
        lanes: [LaneState::new(blocks); LANES],
        arbiter: Arbiter::new(high, low, limit),
        leaving: None,
        flight: VecDeque::new(),
        updates: VecDeque::new(),
        cable_ps: link.propagation_ps,
        latency_ps: 0,
        entry_bytes: u64::MAX,
        data_lanes: link.lanes,
        life_ps: NEVER,
        expiry_ps: NEVER,
        refresh_ps: link.refresh_ps,
        chances: [0; 3],
        up: true,
        watched: false,
        count: LineCount::default(),
        starved_ps: NEVER,
        waits: (0, 0),
        starved_lanes: 0,
        lane_waits_ps: [0; LANES],
        onward: Vec::new(),
    }
}

/// Returns an idle network of Fibre Channel, Ethernet and InfiniBand.
pub fn network(plan: NetPlan, ethernet: EthernetPlane, infiniband: InfinibandPlane) -> Net {
    Net::with_planes(plan, ethernet, infiniband)
}

/// Appends a packet to the queue of an interface.
pub fn send(net: &mut Net, interface: u16, packet: Packet) {
    net.infiniband.send(&mut net.events, interface, packet);
}

/// Takes a link down or brings it up. Packets on it and packets queued for it are lost. The subnet
/// manager changes the forwarding tables later.
pub fn set_link(net: &mut Net, link: u32, up: bool) {
    net.infiniband.set_link(&mut net.events, link, up);
}

/// Lets an interface keep the buffers of packets that arrive, or free them all.
pub fn hold(net: &mut Net, interface: u16, holds: bool) {
    net.infiniband.hold(&mut net.events, interface, holds);
}
