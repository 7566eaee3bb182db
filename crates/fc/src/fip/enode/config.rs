//! Configuration, inputs and outputs of an ENode.

use crate::fip::Advertisement;
use sanloom_scsi::time::Span;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::FipFrame;
use sanloom_wire::{FcId, Frame, Wwnn, fcoe};

/// Initial configuration of an ENode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnodeConfig {
    /// MAC address of the Ethernet port.
    pub mac: MacAddr,
    /// World-wide node name.
    pub node_name: Wwnn,
    /// Largest FCoE PDU that the port accepts, in bytes, at most 2158.
    pub max_fcoe_bytes: u16,
    /// Delay from the first usable FCF to the selection. libfcoe waits 2 s for further FCFs.
    pub selection_delay: Span,
}

impl EnodeConfig {
    /// Returns the defaults of libfcoe.
    pub fn new(mac: MacAddr, node_name: Wwnn) -> EnodeConfig {
        EnodeConfig { mac, node_name, max_fcoe_bytes: fcoe::MAX_PDU_BYTES as u16, selection_delay: Span::from_secs(2) }
    }
}

/// Event for an ENode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up in the VLAN of the ENode. A port that was already up goes down
    /// first.
    LinkUp,
    /// The Ethernet port is down.
    LinkDown,
    /// A FIP frame was received.
    Fip {
        /// Destination MAC address.
        to: MacAddr,
        /// Source MAC address.
        from: MacAddr,
        /// Bytes after the Ethernet header, including padding.
        pdu: Box<[u8]>,
    },
    /// Frame sent by an N_Port ([`nport::Output::Send`](crate::nport::Output::Send)). Data frames
    /// may bypass this input with [`Enode::path`](super::Enode::path).
    Send(Frame),
    /// Start VLAN discovery. Each reply yields an [`Output::Vlans`]. No FCF needs to be selected.
    DiscoverVlans,
    /// The deadline of [`Enode::poll_timeout`](super::Enode::poll_timeout) was reached. An early
    /// call is harmless.
    Timeout,
}

/// Action for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a FIP frame.
    Fip(FipFrame),
    /// Send a message over FCoE. The driver segments it if it is longer than a frame.
    Fcoe {
        /// Destination MAC address: the FCF.
        to: MacAddr,
        /// Source MAC address: the VN_Port.
        from: MacAddr,
        /// Whole message.
        frame: Frame,
    },
    /// Deliver the reply to a fabric login or logout to the N_Port with the pending request. The
    /// D_ID of an accepted login is new to the N_Port (see
    /// [`NPort::expects`](crate::nport::NPort::expects)).
    Deliver(Frame),
    /// An FCF is selected: the physical N_Port has a link
    /// ([`nport::Input::LinkUp`](crate::nport::Input::LinkUp)).
    FcfUp(Advertisement),
    /// The FCF is lost with all logins: no N_Port has a link.
    FcfDown,
    /// The fabric ended the login of this virtual N_Port. Its link goes down and comes up again at
    /// once.
    Cleared {
        /// N_Port_ID of the ended login.
        port_id: FcId,
    },
    /// An FCF announced the VLANs that carry FCoE.
    Vlans {
        /// MAC address of the FCF.
        fcf: MacAddr,
        /// VLANs in the order of the notification.
        vlans: Vec<u16>,
    },
}

/// Counters of an ENode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Advertisements not received within one and a half periods: "missed discovery advertisement"
    /// of the link error block.
    pub missed_advertisements: u64,
    /// Virtual links that ended because advertisements stopped or the FCF cleared them: "virtual
    /// link failure" of the link error block.
    pub virtual_link_failures: u64,
    /// Failed selections because the usable FCFs belong to different fabrics.
    pub conflicts: u64,
    /// Completed FCF selections.
    pub selections: u64,
}
