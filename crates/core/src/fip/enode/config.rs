//! What an ENode is told, and what it says.

use crate::fip::Advertisement;
use crate::time::Span;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::FipFrame;
use sanloom_wire::{FcId, Frame, Wwnn, fcoe};

/// What an ENode is told at its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnodeConfig {
    /// Address of the Ethernet port.
    pub mac: MacAddr,
    /// Name of the node.
    pub node_name: Wwnn,
    /// Largest FCoE PDU that the port takes, in bytes, at most 2158.
    pub max_fcoe_bytes: u16,
    /// From the first FCF that can be used to the choice of one. libfcoe waits 2 s for others.
    pub selection_delay: Span,
}

impl EnodeConfig {
    /// As libfcoe has it.
    pub fn new(mac: MacAddr, node_name: Wwnn) -> EnodeConfig {
        EnodeConfig { mac, node_name, max_fcoe_bytes: fcoe::MAX_PDU_BYTES as u16, selection_delay: Span::from_secs(2) }
    }
}

/// Something that happened to an ENode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up, in the VLAN of the ENode. One that was up goes down first.
    LinkUp,
    /// The Ethernet port is down.
    LinkDown,
    /// A FIP frame.
    Fip {
        /// Destination.
        to: MacAddr,
        /// Source.
        from: MacAddr,
        /// What follows the Ethernet header, padding included.
        pdu: Box<[u8]>,
    },
    /// What an N_Port sends ([`nport::Output::Send`](crate::nport::Output::Send)). Data frames need not come here: see
    /// [`Enode::path`](super::Enode::path).
    Send(Frame),
    /// Ask which VLANs carry FCoE; answered by any number of [`Output::Vlans`]. Works without a choice of an FCF.
    DiscoverVlans,
    /// The time that [`Enode::poll_timeout`](super::Enode::poll_timeout) named has come; too early is harmless.
    Timeout,
}

/// Something that an ENode wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a FIP frame.
    Fip(FipFrame),
    /// Send a message in FCoE. One that is longer than a frame is cut by the driver.
    Fcoe {
        /// Destination: the FCF.
        to: MacAddr,
        /// Source: the address of the VN_Port.
        from: MacAddr,
        /// The message.
        frame: Frame,
    },
    /// Give the answer to a fabric login or logout to the N_Port that waits for it. The D_ID of an accepted login is new to it
    /// (see [`NPort::expects`](crate::nport::NPort::expects)).
    Deliver(Frame),
    /// An FCF is chosen: the N_Port that is not virtual has a link ([`nport::Input::LinkUp`](crate::nport::Input::LinkUp)).
    FcfUp(Advertisement),
    /// The FCF is gone, and every login with it: no N_Port has a link.
    FcfDown,
    /// The fabric has ended the login of this virtual N_Port: its link went down, and comes up again at once.
    Cleared {
        /// Its address.
        port_id: FcId,
    },
    /// An FCF names the VLANs that carry FCoE.
    Vlans {
        /// Address of the FCF.
        fcf: MacAddr,
        /// The VLANs, as they stand in its notification.
        vlans: Vec<u16>,
    },
}

/// What an ENode has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Advertisements that did not come in one and a half periods: "missed discovery advertisement" of the link error
    /// block.
    pub missed_advertisements: u64,
    /// Virtual links that ended because the FCF fell silent or cleared them: "virtual link failure" of the link error block.
    pub virtual_link_failures: u64,
    /// Choices that were not made, because the FCFs that can be used are of different fabrics.
    pub conflicts: u64,
    /// FCFs chosen.
    pub selections: u64,
}
