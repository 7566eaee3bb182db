//! Switches, links and timers.

use super::joining::Joining;
use super::units::{LineRate, Picos};
use super::virtual_fabric::VirtualFabric;
use crate::switch::Policy;
use sanloom_wire::Wwnn;
use sanloom_wire::ether::MacAddr;

/// A node of the lab, by index into [`super::Lab`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    /// Index into `switches`.
    Switch(u16),
    /// Index into `hosts`.
    Host(u16),
    /// Index into `storage`.
    Storage(u16),
}

/// One switch.
#[derive(Clone, PartialEq, Debug)]
pub struct Switch {
    /// Name, unique in the lab.
    pub name: String,
    /// World-wide name, which no other switch, node or N_Port of the lab has: whoever has the lowest becomes principal switch, and the fabric is called by it.
    pub wwn: Wwnn,
    /// Domain, 1 to 239, unique in the fabric.
    pub domain: u8,
    /// Number of ports; every link end takes one.
    pub ports: u16,
    /// How a frame crosses.
    pub forwarding: Forwarding,
    /// How input buffers are organised.
    pub queueing: Queueing,
    /// Who goes next at an output.
    pub arbitration: Arbitration,
    /// From the last bit (store-and-forward) or the end of the header (cut-through) to the arbiter.
    pub latency: Picos,
    /// How one of several equal paths is chosen.
    pub isl_choice: IslChoice,
    /// The processor that serves logins and requests to the services; `None`: they are answered at once.
    pub processor: Option<Processor>,
    /// What an administrator decides about logins and zoning.
    pub policy: Policy,
    /// What an administrator decides about links to other switches.
    pub joining: Joining,
    /// The switch is one of several in a chassis; `None`: it is a box of its own.
    pub virtual_fabric: Option<VirtualFabric>,
}

impl Switch {
    /// The world-wide name that a switch gets by its index in a lab: IEEE format 1 of a locally administered address.
    pub fn made_up_wwn(index: u16) -> Wwnn {
        Wwnn(0x1000_0253_4c00_0000 + u64::from(index) + 1)
    }

    /// Address of a port as an FCoE forwarder (FCF-MAC): locally administered, the vendor's part and the last byte of the
    /// world-wide name, and the number of the port.
    pub fn fcf_mac(&self, port: u16) -> MacAddr {
        let name = self.wwn.0;
        // Where the OUI stands depends on the format (FC-FS, Name_Identifier): NAA 5 and 6 have it right behind the NAA.
        let oui = if matches!(name >> 60, 5 | 6) { name >> 36 } else { name >> 24 };
        let ([.., vendor, b, c], [high, low]) = (oui.to_be_bytes(), port.to_be_bytes());
        MacAddr([vendor & !1 | 2, b, c, name as u8, high, low])
    }
}

/// What the services of a switch cost its processor. A request takes the sum of what was counted for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// One processor for the whole switch, or one for each port.
    pub sharing: ProcessorSharing,
    /// Any request.
    pub per_command: Picos,
    /// A fabric login (FLOGI or FDISC), in addition.
    pub per_login: Picos,
    /// Each object of the name server, at a fabric login: the search for a port of the same name.
    pub per_name_search: Picos,
    /// Each comparison of two addresses when the permissions of hard zoning are worked out.
    pub per_comparison: Picos,
}

/// How many processors a switch has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProcessorSharing {
    /// One; requests wait for each other.
    One,
    /// One at each port; only requests through the same port wait for each other.
    PerPort,
}

/// How a frame crosses a switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Forwarding {
    /// Forwarded when its last bit has arrived; a frame with a bad CRC is discarded here.
    StoreAndForward,
    /// Forwarded when its header has arrived and the output is free; a bad CRC is found at the destination.
    CutThrough,
}

/// How the input buffers of a port are organised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Queueing {
    /// One queue; only its head may leave: head-of-line blocking.
    Fifo,
    /// Any frame may leave, also several at once to different outputs.
    Any,
    /// One queue for each output; the input sends one frame at a time.
    Voq,
}

/// Who goes next at an output that several inputs want.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arbitration {
    /// The next input in turn.
    RoundRobin,
    /// The frame that has waited longest; ties by input number.
    OldestFirst,
}

/// How one of several equal-cost ports is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IslChoice {
    /// By ingress port.
    Ingress,
    /// By S_ID, D_ID and OX_ID: an exchange keeps its path.
    Exchange,
    /// By S_ID and D_ID.
    DevicePair,
    /// In turn, frame by frame; frames may overtake each other.
    Spray,
}

/// A link between two ports.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Name, unique in the lab.
    pub name: String,
    /// The two ends.
    pub ends: [LinkEnd; 2],
    /// Speed.
    pub rate: LineRate,
    /// Time that light takes from end to end.
    pub propagation: Picos,
    /// Links of one bundle (a trunk) carry the same number: frame by frame, delivered in order.
    pub bundle: Option<u16>,
}

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEnd {
    /// The node.
    pub node: Node,
    /// Port of the switch, HBA of the host, port of the storage.
    pub port: u16,
    /// Receive buffers here: the buffer-to-buffer credit that the other end is given, in frames.
    pub bb_credit: u16,
}

/// Fabric-wide timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// Error detect timeout: no credit for this long resets the link.
    pub e_d_tov: Picos,
    /// Resource allocation timeout: how long an exchange number stays out of use.
    pub r_a_tov: Picos,
    /// A frame that waits longer in a switch is discarded.
    pub hold_time: Picos,
    /// State changes within this time share one RSCN.
    pub rscn_delay: Picos,
    /// Fabric stability timeout: how long switches wait for each other before they agree on a principal.
    pub f_s_tov: Picos,
    /// From one FSPF HLO to the next, in whole seconds.
    pub hello: Picos,
    /// A neighbour is down after so long without an HLO, in whole seconds.
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
