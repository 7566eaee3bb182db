//! Configuration, inputs and outputs of a station on a VN2VN segment.

use sanloom_scsi::time::Span;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::FipFrame;
use sanloom_wire::{FcId, Frame, Wwnn, Wwpn, fcoe};

/// Initial configuration of a station.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vn2vnConfig {
    /// MAC address of the Ethernet port.
    pub mac: MacAddr,
    /// World-wide port name. Its low 16 bits are the first N_Port_ID tried.
    pub port_name: Wwpn,
    /// World-wide node name.
    pub node_name: Wwnn,
    /// Largest FCoE PDU that the port accepts, in bytes, at most 2158.
    pub max_fcoe_bytes: u16,
    /// Largest data field of a frame announced in logins, in bytes.
    pub receive_size_bytes: u16,
    /// True if the port has the initiator function of FCP.
    pub initiator: bool,
    /// True if the port has the target function of FCP.
    pub target: bool,
    /// Timeout of a FLOGI.
    pub e_d_tov: Span,
    /// Seed of random delays and of further N_Port_IDs.
    pub seed: u64,
}

impl Vn2vnConfig {
    /// Returns a configuration with frames of full size and the timeout of libfc.
    pub fn new(mac: MacAddr, port_name: Wwpn, node_name: Wwnn, initiator: bool, target: bool) -> Vn2vnConfig {
        Vn2vnConfig {
            mac,
            port_name,
            node_name,
            max_fcoe_bytes: fcoe::MAX_PDU_BYTES as u16,
            receive_size_bytes: 2112,
            initiator,
            target,
            e_d_tov: Span::from_ms(2_000),
            seed: port_name.0,
        }
    }
}

/// Event for a station.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up. A port that was already up goes down first.
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
    /// Frame sent by the N_Port ([`nport::Output::Send`](crate::nport::Output::Send)). Data frames
    /// may bypass this input with [`Vn2vn::path`](super::Vn2vn::path).
    Send(Frame),
    /// The deadline of [`Vn2vn::poll_timeout`](super::Vn2vn::poll_timeout) was reached. An early
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
        /// Destination MAC address: the other VN_Port.
        to: MacAddr,
        /// Source MAC address: the own VN_Port.
        from: MacAddr,
        /// Whole message.
        frame: Frame,
    },
    /// The own N_Port_ID is established; pass [`nport::Input::Joined`](crate::nport::Input::Joined)
    /// to the N_Port.
    Up {
        /// Own N_Port_ID.
        port_id: FcId,
    },
    /// The own N_Port_ID and all neighbours are lost; pass a link-down to the N_Port.
    Down,
    /// A login with another station exists; pass
    /// [`nport::Input::Neighbour`](crate::nport::Input::Neighbour) to the N_Port.
    NeighbourUp {
        /// N_Port_ID of the other station.
        port_id: FcId,
        /// Port name of the other station.
        port_name: Wwpn,
    },
    /// The login ended; pass [`nport::Input::NeighbourGone`](crate::nport::Input::NeighbourGone) to
    /// the N_Port.
    NeighbourDown {
        /// N_Port_ID of the other station.
        port_id: FcId,
    },
}

/// Progress of a station towards its N_Port_ID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// No link.
    Down,
    /// Waiting to send the first probe.
    Start,
    /// First probe sent.
    Probe1,
    /// Second probe sent.
    Probe2,
    /// Claim sent.
    Claim,
    /// The N_Port_ID is established; beacons are sent.
    Up,
}
