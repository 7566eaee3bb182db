//! Frames of FIP as the plane moves them.

use crate::net::ethernet::Packet;
use sanloom_fc::config::{FCOE_MTU, TAG_BYTES};
use sanloom_wire::FcId;
use sanloom_wire::fip::Operation;

/// A frame of discovery, a keep-alive, or the end of virtual links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    VlanRequest,
    VlanNotification,
    /// To all forwarders.
    Solicitation,
    /// To one forwarder.
    UnicastSolicitation,
    /// Padded to the largest frame of FCoE.
    SolicitedAdvertisement,
    Advertisement,
    KeepAlive,
    VnPortKeepAlive(FcId),
    /// Of all VN_Ports behind an ENode.
    ClearVirtualLinks,
    /// The same, to all ENodes.
    ClearAll,
}

/// Bits of a code that hold an address.
const ADDRESS_BITS: u32 = 24;
/// Ethernet header and FCS.
const ETHERNET_BYTES: u16 = 14 + 4;
/// Header of FIP.
const HEAD_BYTES: u16 = 10;

impl Message {
    /// Returns the position of its packet.
    pub fn code(self) -> u32 {
        let (kind, address) = match self {
            Message::VlanRequest => (0, 0),
            Message::VlanNotification => (1, 0),
            Message::Solicitation => (2, 0),
            Message::UnicastSolicitation => (3, 0),
            Message::SolicitedAdvertisement => (4, 0),
            Message::Advertisement => (5, 0),
            Message::KeepAlive => (6, 0),
            Message::ClearVirtualLinks => (7, 0),
            Message::ClearAll => (8, 0),
            Message::VnPortKeepAlive(port_id) => {
                let [a, b, c] = port_id.to_bytes();
                (9, u32::from_be_bytes([0, a, b, c]))
            }
        };
        kind << ADDRESS_BITS | address
    }

    /// Returns the message of a packet.
    pub fn of(packet: &Packet) -> Message {
        let [kind, a, b, c] = packet.position.to_be_bytes();
        match kind {
            0 => Message::VlanRequest,
            1 => Message::VlanNotification,
            2 => Message::Solicitation,
            3 => Message::UnicastSolicitation,
            4 => Message::SolicitedAdvertisement,
            5 => Message::Advertisement,
            6 => Message::KeepAlive,
            7 => Message::ClearVirtualLinks,
            8 => Message::ClearAll,
            _ => Message::VnPortKeepAlive(FcId::from_bytes([a, b, c])),
        }
    }

    /// Returns whether the message discovers the VLAN, and therefore has no tag.
    pub fn is_of_vlan_discovery(self) -> bool {
        matches!(self, Message::VlanRequest | Message::VlanNotification)
    }

    /// Returns its operation code and subcode.
    pub fn operation(self) -> Operation {
        match self {
            Message::VlanRequest => Operation::VLAN_REQUEST,
            Message::VlanNotification => Operation::VLAN_NOTIFICATION,
            Message::Solicitation | Message::UnicastSolicitation => Operation::SOLICITATION,
            Message::SolicitedAdvertisement | Message::Advertisement => Operation::ADVERTISEMENT,
            Message::KeepAlive | Message::VnPortKeepAlive(_) => Operation::KEEP_ALIVE,
            Message::ClearVirtualLinks | Message::ClearAll => Operation::CLEAR_VIRTUAL_LINKS,
        }
    }

    /// Returns its length from the destination address to the FCS. Short frames are padded by
    /// [`Packet::new`].
    pub fn bytes(self, has_tag: bool) -> u16 {
        let list = match self {
            // MAC address.
            Message::VlanRequest | Message::KeepAlive => 8,
            // MAC address, VLAN.
            Message::VlanNotification => 8 + 4,
            // MAC address, FC-MAP of a forwarder, name, largest frame.
            Message::Solicitation | Message::UnicastSolicitation => 8 + 8 + 12 + 4,
            // Priority, MAC address, name, fabric, period.
            Message::Advertisement => 4 + 8 + 12 + 16 + 8,
            Message::SolicitedAdvertisement => FCOE_MTU - HEAD_BYTES,
            // MAC address, VN_Port.
            Message::VnPortKeepAlive(_) => 8 + 20,
            // MAC address, name.
            Message::ClearVirtualLinks | Message::ClearAll => 8 + 12,
        };
        ETHERNET_BYTES + if has_tag { TAG_BYTES } else { 0 } + HEAD_BYTES + list
    }
}
