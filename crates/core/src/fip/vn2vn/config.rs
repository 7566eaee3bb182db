//! What a station of a VN2VN segment is told, and what it says.

use crate::time::Span;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::FipFrame;
use sanloom_wire::{FcId, Frame, Wwnn, Wwpn, fcoe};

/// What a station is told at its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vn2vnConfig {
    /// Address of the Ethernet port.
    pub mac: MacAddr,
    /// Name of the port. Its low 16 bits are the address that it tries first.
    pub port_name: Wwpn,
    /// Name of the node.
    pub node_name: Wwnn,
    /// Largest FCoE PDU that the port takes, in bytes, at most 2158.
    pub max_fcoe_bytes: u16,
    /// Largest data field of a frame, in bytes, for the logins.
    pub receive_size_bytes: u16,
    /// Has the initiator function of FCP.
    pub initiator: bool,
    /// Has the target function of FCP.
    pub target: bool,
    /// How long the answer to a FLOGI may take.
    pub e_d_tov: Span,
    /// Seed of waiting times and of further addresses.
    pub seed: u64,
}

impl Vn2vnConfig {
    /// With frames of full size and the timeout of libfc.
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

/// Something that happened to a station.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up. One that was up goes down first.
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
    /// What the N_Port sends ([`nport::Output::Send`](crate::nport::Output::Send)). Data frames need not come here: see
    /// [`Vn2vn::path`](super::Vn2vn::path).
    Send(Frame),
    /// The time that [`Vn2vn::poll_timeout`](super::Vn2vn::poll_timeout) named has come; too early is harmless.
    Timeout,
}

/// Something that a station wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a FIP frame.
    Fip(FipFrame),
    /// Send a message in FCoE. One that is longer than a frame is cut by the driver.
    Fcoe {
        /// Destination: the address of the other VN_Port.
        to: MacAddr,
        /// Source: our own.
        from: MacAddr,
        /// The message.
        frame: Frame,
    },
    /// Nobody objects to our address: for the N_Port, [`nport::Input::Joined`](crate::nport::Input::Joined).
    Up {
        /// Our address.
        port_id: FcId,
    },
    /// We have no address any more, and no neighbour: for the N_Port, its link is down.
    Down,
    /// A login with another station: for the N_Port, [`nport::Input::Neighbour`](crate::nport::Input::Neighbour).
    NeighbourUp {
        /// Its address.
        port_id: FcId,
        /// Its name.
        port_name: Wwpn,
    },
    /// It is gone: for the N_Port, [`nport::Input::NeighbourGone`](crate::nport::Input::NeighbourGone).
    NeighbourDown {
        /// Its address.
        port_id: FcId,
    },
}

/// Where a station stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// No link.
    Down,
    /// About to ask whether its address is free.
    Start,
    /// Has asked once.
    Probe1,
    /// Has asked twice.
    Probe2,
    /// Has said that the address is its own.
    Claim,
    /// The address is its own.
    Up,
}
