//! Ethernet: lines with pauses per priority, and switches with shared memory.
//!
//! A *packet-hop* is one crossing of one line by one frame; pause frames do not count. Hosts and
//! storage systems send through *interfaces*, the Ethernet counterpart of N_Ports. Frames of a
//! lossless priority are never dropped as long as the headroom of each port suffices; other frames
//! are dropped when the queue of their port is full.
//!
//! # Rules at one instant
//!
//! First frames arrive, line by line, and a frame that meets an idle line leaves at once. Then
//! lines that have become free, or whose pause has ended, send, line by line. Last, pauses that
//! last are refreshed.
//!
//! # Flow control
//!
//! A switch pauses priorities (IEEE 802.1Qbb), whole links (IEEE 802.3, annex 31B) or nothing. It
//! ignores pause frames of the other form, and of priorities that it does not pause itself.
//!
//! # Simplifications
//!
//! - The memory of a frame is taken when the switch acts on it and freed when it begins to leave.
//! - A frame that is forwarded by cut-through takes its whole memory at once.
//! - Routes follow a link that goes down or comes up at once. Each VLAN takes its shortest paths,
//!   and no spanning tree blocks links.

mod deadlock;
mod egress;
mod ets;
mod line;
mod links;
mod memory;
mod observe;
mod packet;
mod pause;
mod routes;
mod step;

pub use ets::Ets;
pub use line::{Line, LineCount, LineErrors, Onward, Station};
pub use memory::{Full, Group, Memory, MemoryPlan};
pub use observe::{Observed, ObservedKind};
pub use packet::{GAP_BYTES, PREAMBLE_BYTES, PRIORITIES, Packet, SHORTEST_BYTES};
pub use pause::{LONGEST_QUANTA, QUANTUM_BITS};

use super::fcoe::Handed;
use super::line::ByteTime;
use observe::Recorder;
use packet::LONGEST_BYTES;
use routes::Routes;
use sanloom_scsi::random::{SplitMix64, mix};
use std::collections::{BTreeMap, VecDeque};

/// State of the Ethernet plane.
#[derive(Default)]
pub struct EthernetPlane {
    lines: Vec<Line>,
    /// Randomness of each line, for faults and for marks of its queue.
    dice: Vec<SplitMix64>,
    /// Frames of the sender of each line at the last refresh of its pause.
    refreshed: Vec<u64>,
    switches: Vec<SwitchState>,
    /// Outgoing line of each interface.
    interface_tx: Vec<u32>,
    /// Priorities that an interface pauses by itself.
    storms: Vec<u8>,
    /// Priorities that an interface pauses because of its receive buffers.
    busy: Vec<u8>,
    /// Frames of FCoE that have left their interface or were lost.
    handed: VecDeque<Handed>,
    routes: Routes,
    /// Packet counters.
    pub fate: PacketFate,
    lost: BTreeMap<(u32, PacketLoss), u64>,
    /// Lost frames since the last call of [`EthernetPlane::take_lost`], if somebody takes them.
    lost_packets: Option<Vec<Packet>>,
    deadlocks: Vec<PauseDeadlock>,
    recorder: Recorder,
}

/// A switch of the plane.
struct SwitchState {
    plan: EthernetSwitchPlan,
    memory: Memory,
    /// Outgoing line of each port.
    tx: Vec<u32>,
    /// Start of the hash.
    salt: u64,
}

impl SwitchState {
    /// Returns the hash that chooses among paths and ports of a bundle.
    #[inline]
    fn hash(&self, packet: &Packet) -> u64 {
        mix(u64::from(packet.flow) ^ self.salt)
    }
}

/// Construction parameters of an [`EthernetPlane`].
#[derive(Clone, Debug, Default)]
pub struct EthernetPlan {
    pub switches: Vec<EthernetSwitchPlan>,
    /// Lines 2n and 2n + 1 are the two directions of link n.
    pub links: Vec<EthernetLinkPlan>,
    /// Number of interfaces; each is the end of one link.
    pub interfaces: u16,
    /// Start of all randomness.
    pub seed: u64,
}

/// A switch of an [`EthernetPlan`].
#[derive(Clone, Debug)]
pub struct EthernetSwitchPlan {
    pub memory: MemoryPlan,
    /// Priorities with PFC. The ports ignore pauses of other priorities.
    pub lossless: u8,
    /// True if the ports pause whole links (IEEE 802.3, annex 31B). All priorities are lossless
    /// then, and `lossless` has no effect.
    pub pauses_links: bool,
    /// Time from the arrival of a frame until it may leave, in ps.
    pub latency_ps: u64,
    /// True if a frame may leave before its end has arrived.
    pub cut_through: bool,
    /// Marks of each priority.
    pub ecn: [Option<Ecn>; PRIORITIES],
    /// Longest frame from the destination address to the FCS.
    pub longest_bytes: u16,
    /// VLANs of each port, as a mask of their numbers in the lab. Frames take the shortest path
    /// over links whose ports belong to their VLAN.
    pub vlans: Vec<u32>,
}

/// Marks of an egress queue, when a frame enters it (RFC 3168; step marks as in RFC 8257).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ecn {
    /// Bytes in the queue from which on frames are marked.
    pub from_bytes: u64,
    /// Bytes from which on every frame is marked. Equal to `from_bytes` for a step.
    pub all_bytes: u64,
    /// Chance just below `all_bytes`, in 2^-32.
    pub chance: u32,
}

/// A link of an [`EthernetPlan`].
#[derive(Clone, Copy, Debug)]
pub struct EthernetLinkPlan {
    pub ends: [Station; 2],
    /// Time of a byte.
    pub byte: ByteTime,
    /// Propagation delay, in ps.
    pub propagation_ps: u64,
    /// Time within which a paused sender may still begin a frame, in ps.
    pub reaction_ps: u64,
    /// Shares of the priorities in percent at the sender of each direction; 0 for a strict one
    /// (IEEE 802.1Qaz).
    pub shares: [[u8; PRIORITIES]; 2],
}

/// Packet counters by outcome. Pause frames do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketFate {
    /// Frames that interfaces were given to send.
    pub sent: u64,
    /// Frames that reached the interface that they were for.
    pub delivered: u64,
    /// Frames that did not.
    pub lost: u64,
    /// Pause frames lost on a line.
    pub pauses_lost: u64,
    /// Number of line crossings.
    pub packet_hops: u64,
}

/// Reason for a lost frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PacketLoss {
    /// No memory for the frame of a priority without PFC.
    Congestion,
    /// The headroom of a lossless priority was too small: an error of the lab.
    Headroom,
    /// Bad FCS.
    Fcs,
    /// Lost through a fault of the lab.
    FrameLoss,
    /// On a link that went down, or queued for one.
    LinkDown,
    /// A port does not belong to the VLAN of the frame.
    Vlan,
    /// Longer than a switch forwards.
    TooLong,
    /// No path to the interface.
    NoPath,
}

impl PacketLoss {
    /// Returns the name of the reason in results.
    pub fn name(self) -> &'static str {
        match self {
            PacketLoss::Congestion => "congestion",
            PacketLoss::Headroom => "headroom",
            PacketLoss::Fcs => "fcs",
            PacketLoss::FrameLoss => "frame_loss",
            PacketLoss::LinkDown => "link_down",
            PacketLoss::Vlan => "vlan",
            PacketLoss::TooLong => "too_long",
            PacketLoss::NoPath => "no_path",
        }
    }
}

/// Priorities of lines that wait for each other in a circle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseDeadlock {
    /// Time at which it was found, in ps.
    pub at_ps: u64,
    /// Last time at which it was seen, in ps.
    pub until_ps: u64,
    /// Lines with their priorities: those of the circles, and those that wait for them.
    pub waits: Vec<(u32, u8)>,
    /// The circles. Each line waits for the next one, and the last for the first.
    pub cycles: Vec<Vec<(u32, u8)>>,
}

impl EthernetPlane {
    /// Returns an idle plane with all links up.
    ///
    /// # Errors
    ///
    /// The number of a switch whose reserves and headroom exceed its memory, and the bytes that are
    /// missing.
    pub fn new(plan: EthernetPlan) -> Result<EthernetPlane, (u16, u64)> {
        let mut lines = Vec::with_capacity(2 * plan.links.len());
        let mut interface_tx = vec![u32::MAX; usize::from(plan.interfaces)];
        let mut tx: Vec<Vec<u32>> = plan.switches.iter().map(|switch| vec![u32::MAX; switch.vlans.len()]).collect();
        for link in &plan.links {
            for ([from, to], shares) in [link.ends, [link.ends[1], link.ends[0]]].into_iter().zip(link.shares) {
                let number = lines.len() as u32;
                let longest = match from {
                    Station::Switch { switch, port } => {
                        tx[usize::from(switch)][usize::from(port)] = number;
                        plan.switches[usize::from(switch)].longest_bytes
                    }
                    Station::Interface(interface) => {
                        interface_tx[usize::from(interface)] = number;
                        LONGEST_BYTES
                    }
                };
                let mut line = Line::new(from, to, link.byte, link.propagation_ps, Ets::new(shares, longest));
                line.reaction_ps = link.reaction_ps;
                (line.obeys, line.pauses_link) = flow_control(&plan.switches, from, to);
                if let Station::Switch { switch, .. } = to {
                    let switch = &plan.switches[usize::from(switch)];
                    line.onward = vec![Onward::default(); switch.vlans.len()];
                    if switch.cut_through {
                        line.entry_bytes = PREAMBLE_BYTES + u64::from(SHORTEST_BYTES);
                    }
                }
                lines.push(line);
            }
        }
        let mut switches = Vec::with_capacity(plan.switches.len());
        for ((number, plan), tx) in (0..).zip(plan.switches).zip(tx) {
            let memory = Memory::new(plan.memory.clone(), plan.lossless, plan.pauses_links);
            let memory = memory.map_err(|missing| (number, missing))?;
            switches.push(SwitchState { plan, memory, tx, salt: mix(u64::from(number)) });
        }
        let mut plane = EthernetPlane {
            dice: (0..lines.len() as u64).map(|line| SplitMix64(mix(plan.seed ^ mix(line)))).collect(),
            refreshed: vec![0; lines.len()],
            lines,
            switches,
            storms: vec![0; interface_tx.len()],
            busy: vec![0; interface_tx.len()],
            interface_tx,
            ..EthernetPlane::default()
        };
        plane.find_routes();
        Ok(plane)
    }

    /// Returns the lines; 2n and 2n + 1 are the two directions of link n.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns whether the link of an interface is up.
    pub fn has_light(&self, interface: u16) -> bool {
        self.interface_tx.get(usize::from(interface)).is_some_and(|line| self.lines[*line as usize].up)
    }

    /// Returns the memory of a switch.
    pub fn memory(&self, switch: u16) -> &Memory {
        &self.switches[usize::from(switch)].memory
    }

    /// Returns the port through which a switch forwards a frame; `None` if there is no path.
    pub fn port_of(&self, switch: u16, packet: &Packet) -> Option<u16> {
        self.routes.port(switch, packet, self.switches.get(usize::from(switch))?.hash(packet))
    }

    /// Returns the lost frames: the line on which or at whose end, the reason and the number.
    pub fn losses(&self) -> impl Iterator<Item = (u32, PacketLoss, u64)> {
        self.lost.iter().map(|(&(line, loss), &frames)| (line, loss, frames))
    }

    /// Returns the deadlocks found so far.
    pub fn deadlocks(&self) -> &[PauseDeadlock] {
        &self.deadlocks
    }

    /// Notes which deadlocks still hold at `now`.
    pub(in crate::net) fn confirm_deadlocks(&mut self, now: u64) {
        deadlock::confirm(self, now);
    }

    /// Returns the number of frames on lines and in queues.
    pub fn packets_in_network(&self) -> u64 {
        let frames = |line: &Line| {
            let on_line = line.flight.iter().filter(|on_line| on_line.packet.paused().is_none()).count();
            (on_line + line.egress.frames()) as u64
        };
        self.lines.iter().map(frames).sum()
    }

    /// Checks the invariants: frames and memory are conserved.
    ///
    /// # Errors
    ///
    /// A description of the violated invariant.
    pub fn check(&self) -> Result<(), String> {
        let (fate, inside) = (&self.fate, self.packets_in_network());
        if fate.sent != fate.delivered + fate.lost + inside {
            return Err(format!("Ethernet frames: {fate:?}, {inside} in the network"));
        }
        match self.switches.iter().position(|switch| !switch.memory.adds_up()) {
            Some(switch) => Err(format!("memory of Ethernet switch {switch} does not add up")),
            None => Ok(()),
        }
    }

    /// Takes the next frame of FCoE that has left its interface or was lost.
    pub(in crate::net) fn take_handed(&mut self) -> Option<Handed> {
        self.handed.pop_front()
    }

    /// Returns whether [`EthernetPlane::take_handed`] returns a frame.
    #[inline]
    pub(in crate::net) fn has_handed(&self) -> bool {
        !self.handed.is_empty()
    }

    fn find_routes(&mut self) {
        // A VLAN may use a link if the ports at both ends belong to it. Interfaces belong to all.
        let vlans = |end: Station| match end {
            Station::Switch { switch, port } => self.switches[usize::from(switch)].plan.vlans[usize::from(port)],
            Station::Interface(_) => u32::MAX,
        };
        let links = self.lines.iter().step_by(2).filter(|line| line.up);
        let links: Vec<_> = links.map(|line| ([line.from, line.to], vlans(line.from) & vlans(line.to))).collect();
        self.routes = Routes::new(self.switches.len(), self.interface_tx.len(), &links);
    }

    /// Keeps each lost frame from now on until [`EthernetPlane::take_lost`] takes it.
    pub(crate) fn report_losses(&mut self) {
        self.lost_packets.get_or_insert_default();
    }

    /// Takes the lost frames for which `take` returns true.
    pub(crate) fn take_lost(&mut self, mut take: impl FnMut(&Packet) -> bool) {
        self.lost_packets.iter_mut().for_each(|packets| packets.retain(|packet| !take(packet)));
    }

    fn lose(&mut self, at_ps: u64, line: u32, packet: Packet, loss: PacketLoss) {
        self.record(line, at_ps, ObservedKind::Lost { packet, loss });
        if packet.is_fcoe() {
            self.handed.push_back(Handed::Lost(packet.position));
        } else if let Some(packets) = &mut self.lost_packets
            && !packet.is_fip()
            && !packet.is_lldp()
        {
            packets.push(packet);
        }
        self.fate.lost += 1;
        *self.lost.entry((line, loss)).or_default() += 1;
    }
}

/// Returns the priorities whose pauses the sender of a line obeys, and whether it pauses the whole
/// link. A switch has its own flow control, and an interface that of the switch at the other end,
/// as after DCBX and autonegotiation. Two interfaces obey pauses of all priorities.
fn flow_control(switches: &[EthernetSwitchPlan], from: Station, to: Station) -> (u8, bool) {
    let switch = |station: Station| match station {
        Station::Switch { switch, .. } => Some(&switches[usize::from(switch)]),
        Station::Interface(_) => None,
    };
    match switch(from).or_else(|| switch(to)) {
        Some(plan) if plan.pauses_links => (u8::MAX, true),
        Some(plan) => (plan.lossless, false),
        None => (u8::MAX, false),
    }
}
