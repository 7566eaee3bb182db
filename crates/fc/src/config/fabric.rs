//! Switches, links and timers of a lab.

use super::channels::{SlowDrain, VirtualChannels};
use super::fcoe::VirtualLink;
use super::joining::Joining;
use super::policy::Policy;
use super::units::{LineRate, Picos};
use super::virtual_fabric::VirtualFabric;
use sanloom_wire::Wwnn;
use sanloom_wire::ether::MacAddr;

/// Node of the lab, by index into [`Lab`](crate::san::Lab).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    /// Index into `switches`.
    Switch(u16),
    /// Index into `hosts`.
    Host(u16),
    /// Index into `storage`.
    Storage(u16),
    /// Index into `loops`.
    Loop(u16),
}

/// Switch of a lab.
#[derive(Clone, PartialEq, Debug)]
pub struct Switch {
    /// Name, unique in the lab.
    pub name: String,
    /// World-wide name, unique among all switches, nodes and N_Ports of the lab. At equal priority
    /// the switch with the lowest name becomes principal switch. Its name becomes the fabric name.
    pub wwn: Wwnn,
    /// Domain, 1 to 239, unique in the fabric.
    pub domain: u8,
    /// Number of ports; every link end uses one.
    pub ports: u16,
    /// Lowest and highest rate of its ports; `None`: no limit.
    pub rates: [Option<LineRate>; 2],
    /// Point at which frames are forwarded.
    pub forwarding: Forwarding,
    /// Organisation of the input buffers.
    pub queueing: Queueing,
    /// Arbitration between inputs at an output.
    pub arbitration: Arbitration,
    /// Rates of the crossbar, unless the queueing is [`Queueing::Any`].
    pub crossbar: CrossbarLimits,
    /// Virtual channels of its links to switches that have them, too; `None`: one channel.
    pub virtual_channels: Option<VirtualChannels>,
    /// Quarantine of slow devices at its ports; `None`: off.
    pub quarantine: Option<SlowDrain>,
    /// Latency to the arbiter, from the last bit (store-and-forward) or the end of the header
    /// (cut-through).
    pub latency: Picos,
    /// Choice among several equal-cost paths.
    pub isl_choice: IslChoice,
    /// Hash function of [`IslChoice::Exchange`] and [`IslChoice::DevicePair`].
    pub isl_hash: IslHash,
    /// Processor that handles logins and service requests; `None`: replies take no time.
    pub processor: Option<Processor>,
    /// Administrator's choices for logins and zoning.
    pub policy: Policy,
    /// Administrator's choices for links to other switches.
    pub joining: Joining,
    /// Virtual fabric, if the switch is one of several in a chassis; `None`: it is a separate box.
    pub virtual_fabric: Option<VirtualFabric>,
}

impl Switch {
    /// Default world-wide name of a switch by its index in a lab: IEEE format 1 of a locally
    /// administered address.
    pub fn made_up_wwn(index: u16) -> Wwnn {
        Wwnn(0x1000_0253_4c00_0000 + u64::from(index) + 1)
    }

    /// Salt of the hash that chooses among several equal-cost paths, for
    /// [`Fib::with_salt`](crate::fabric::Fib::with_salt).
    pub fn isl_salt(&self) -> u64 {
        match self.isl_hash {
            IslHash::Salted => self.wwn.0,
            IslHash::Plain => 0,
        }
    }

    /// FCF-MAC of a port, its address as an FCoE forwarder. It is locally administered and contains
    /// the vendor part and the last byte of the world-wide name, and the port number.
    pub fn fcf_mac(&self, port: u16) -> MacAddr {
        let name = self.wwn.0;
        // The position of the OUI depends on the format (FC-FS, Name_Identifier); in NAA 5 and 6 it
        // directly follows the NAA.
        let oui = if matches!(name >> 60, 5 | 6) { name >> 36 } else { name >> 24 };
        let ([.., vendor, b, c], [high, low]) = (oui.to_be_bytes(), port.to_be_bytes());
        MacAddr([vendor & !1 | 2, b, c, name as u8, high, low])
    }
}

/// Processing times of a switch's services. A request costs the sum of the times of its operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// One processor for the whole switch, or one per port.
    pub sharing: ProcessorSharing,
    /// Order of service of messages between switches and requests of N_Ports.
    pub priority: ProcessorPriority,
    /// Base time of any request.
    pub per_command: Picos,
    /// Time of a message of another switch, before the work that it causes.
    pub per_message: Picos,
    /// Additional time of a fabric login (FLOGI or FDISC).
    pub per_login: Picos,
    /// Additional time per name-server object at a fabric login, for the search for a port with the
    /// same name.
    pub per_name_search: Picos,
    /// Time per comparison of two addresses when hard zoning permissions are computed.
    pub per_comparison: Picos,
}

/// Number of processors of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProcessorSharing {
    /// One processor; requests through all ports share its queue.
    One,
    /// One processor per port; only requests through the same port share a queue.
    PerPort,
}

/// Order in which a processor serves messages between switches and requests of N_Ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessorPriority {
    /// Messages between switches first. A request that is being served is not interrupted.
    FabricFirst,
    /// All in the order of arrival.
    None,
}

/// Point at which a switch forwards a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Forwarding {
    /// Forwarding after the last bit has arrived; a frame with a bad CRC is discarded in the
    /// switch.
    StoreAndForward,
    /// Forwarding after the header has arrived and the output is free; a bad CRC is detected at the
    /// destination.
    CutThrough,
}

/// Organisation of the input buffers of a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Queueing {
    /// One queue; only its head may cross, which causes head-of-line blocking.
    Fifo,
    /// Any frame may leave, even several at once to different outputs; the crossbar has no limit.
    Any,
    /// One queue per output; one frame at a time crosses from the input.
    Voq,
}

/// Limits of the crossbar between the input buffers and the lines of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CrossbarLimits {
    /// Rate of each input, in percent of the fastest line of the switch.
    pub speedup_percent: u32,
    /// Rate of all inputs together, in bit/s; `None`: no limit.
    pub bandwidth_bit_per_s: Option<u64>,
    /// Frames that may wait in front of each line.
    pub egress_frames: u16,
}

impl Default for CrossbarLimits {
    fn default() -> CrossbarLimits {
        CrossbarLimits { speedup_percent: 200, bandwidth_bit_per_s: None, egress_frames: 2 }
    }
}

/// Arbitration between several inputs with frames for one output.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arbitration {
    /// Inputs in cyclic order.
    RoundRobin,
    /// The frame with the longest waiting time; ties by input number.
    OldestFirst,
}

/// Hash function that distributes frames over several equal-cost ports.
///
/// If all switches hash alike, the frames that reach a switch behind a split all have hashes of the
/// same part of the range, so the switch uses only some of its own ports (hash polarisation).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum IslHash {
    /// Each switch mixes its world-wide name into the hash.
    #[default]
    Salted,
    /// The same function in every switch.
    Plain,
}

/// Choice among several equal-cost ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IslChoice {
    /// Choice by ingress port.
    Ingress,
    /// Choice by S_ID, D_ID and OX_ID, so that an exchange keeps its path.
    Exchange,
    /// Choice by S_ID and D_ID.
    DevicePair,
    /// Ports in turn, frame by frame; frames may overtake each other.
    Spray,
    /// For each frame, the port with the least load; frames may overtake each other.
    LeastLoaded,
}

impl IslChoice {
    /// Returns true if frames of one exchange may take different paths and overtake each other.
    pub fn is_by_frame(self) -> bool {
        matches!(self, IslChoice::Spray | IslChoice::LeastLoaded)
    }
}

/// Link between two ports.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Name, unique in the lab.
    pub name: String,
    /// First and second end; the direction of a fault refers to this order.
    pub ends: [LinkEnd; 2],
    /// Line rate of both directions.
    pub rate: LineRate,
    /// Propagation delay from end to end.
    pub propagation: Picos,
    /// Bundle number, equal for all links of a bundle (a trunk). Frames are distributed
    /// individually and delivered in order.
    pub bundle: Option<u16>,
    /// `Some` if a simulation carries the frames over the Ethernet of the lab (FCoE).
    pub fcoe: Option<VirtualLink>,
}

/// End of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEnd {
    /// Node at this end.
    pub node: Node,
    /// Port number of the switch or storage, or HBA number of the host.
    pub port: u16,
    /// Receive buffers at this end: the buffer-to-buffer credit granted to the other end, in
    /// frames.
    pub bb_credit: u16,
    /// BB_SC_N that this end offers: state changes for credit recovery follow every 2^n frames and
    /// R_RDYs; 0: not supported, at most 15.
    pub bb_sc_n: u8,
}

impl Link {
    /// BB_SC_N of both ends: the larger one, or 0 if one end does not support it (FC-FS, BB_Credit
    /// recovery).
    pub fn bb_sc_n(&self) -> u8 {
        common_bb_sc_n(self.ends[0].bb_sc_n, self.ends[1].bb_sc_n)
    }
}

/// BB_SC_N that two ports use if they announced `one` and `other` in ELP or FLOGI: the larger one,
/// or 0, no credit recovery, if one of them is 0 (FC-FS, BB_Credit recovery).
pub fn common_bb_sc_n(one: u8, other: u8) -> u8 {
    if one == 0 || other == 0 { 0 } else { one.max(other) }
}

/// Fabric-wide timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// Error detect timeout: time without credit after which the link is reset.
    pub e_d_tov: Picos,
    /// Resource allocation timeout: time that an exchange number stays unused after an abort.
    pub r_a_tov: Picos,
    /// Maximum waiting time of a frame in a switch; after it the frame is discarded.
    pub hold_time: Picos,
    /// Length of the window in which state changes are collected into one RSCN.
    pub rscn_delay: Picos,
    /// Fabric stability timeout: quiet time before switches agree on a principal.
    pub f_s_tov: Picos,
    /// Interval between FSPF HLOs, in whole seconds.
    pub hello: Picos,
    /// Time without an HLO after which a neighbour is down, in whole seconds.
    pub dead: Picos,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            e_d_tov: Picos::from_secs(2),
            r_a_tov: Picos::from_secs(10),
            hold_time: Picos::from_ms(500),
            rscn_delay: Picos::from_ms(5),
            f_s_tov: Picos::from_secs(5),
            hello: Picos::from_secs(20),
            dead: Picos::from_secs(80),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::common_bb_sc_n;

    #[test]
    fn the_larger_exponent_counts_unless_one_port_has_none() {
        let pairs = [(0, 0), (0, 8), (8, 0), (3, 8), (8, 3), (15, 15)];
        assert_eq!(pairs.map(|(one, other)| common_bb_sc_n(one, other)), [0, 0, 0, 8, 8, 15]);
    }
}
