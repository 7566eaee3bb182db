//! FIP (FC-BB, FCoE Initialization Protocol). ENodes use it to find FCFs and log in to them, FCFs
//! to find each other, and ENodes to communicate without an FCF (VN2VN).
//!
//! ```text
//!   0   version (high nibble 1), reserved      5   subcode
//!   2   operation code                         6   length of the descriptor list, in words
//!   4   reserved                               8   flags                10  descriptors
//! ```
//!
//! The length of the descriptor list marks the end of a packet. Any bytes after it are padding.

mod descriptor;

pub use descriptor::{Descriptor, Fc4Features, LinkService};

use crate::bytes::{Put, counted, fixed, slice, u16_at};
use crate::codes::codes;
use crate::error::ParseError;
use crate::ether::{EtherHeader, EtherType, FcMap, MIN_FRAME_BYTES, MacAddr, VlanTag};
use crate::frame::Frame;
use crate::id::{FcId, Wwnn, Wwpn};

/// A FIP packet: the payload of an Ethernet frame of type [`EtherType::FIP`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fip {
    /// Operation code and subcode.
    pub operation: Operation,
    /// Header flags (see [`flag`]).
    pub flags: u16,
    /// Descriptors in wire order.
    pub descriptors: Vec<Descriptor>,
}

/// Operation code and subcode: the code in the upper bits, the subcode in the low eight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Operation(pub u32);

codes!(Operation, u32, "FIP operation" {
    SOLICITATION = 0x0101, "discovery solicitation";
    ADVERTISEMENT = 0x0102, "discovery advertisement";
    LINK_SERVICE_REQUEST = 0x0201, "link service request";
    LINK_SERVICE_REPLY = 0x0202, "link service reply";
    KEEP_ALIVE = 0x0301, "keep-alive";
    CLEAR_VIRTUAL_LINKS = 0x0302, "clear virtual links";
    VLAN_REQUEST = 0x0401, "VLAN request";
    VLAN_NOTIFICATION = 0x0402, "VLAN notification";
    VN2VN_VLAN_NOTIFICATION = 0x0403, "VN2VN VLAN notification";
    PROBE_REQUEST = 0x0501, "VN2VN probe request";
    PROBE_REPLY = 0x0502, "VN2VN probe reply";
    CLAIM_NOTIFICATION = 0x0503, "VN2VN claim notification";
    CLAIM_RESPONSE = 0x0504, "VN2VN claim response";
    BEACON = 0x0505, "VN2VN beacon";
});

impl Operation {
    /// Operation from the two header fields.
    pub const fn new(code: u16, subcode: u8) -> Operation {
        Operation((code as u32) << 8 | subcode as u32)
    }
    /// Operation code.
    pub const fn code(self) -> u16 {
        (self.0 >> 8 & 0xffff) as u16
    }
    /// Subcode.
    pub const fn subcode(self) -> u8 {
        (self.0 & 0xff) as u8
    }
    /// True for the operation codes FFF8 to FFFE, which are reserved for vendors.
    pub const fn is_vendor_specific(self) -> bool {
        matches!(self.code(), 0xfff8..=0xfffe)
    }
}

/// Flags of the header.
pub mod flag {
    /// FP: fabric-provided addresses.
    pub const FPMA: u16 = 0x8000;
    /// SP: server-provided addresses.
    pub const SPMA: u16 = 0x4000;
    /// The sender is a controlling FCF.
    pub const CONTROLLING_FCF: u16 = 0x0020;
    /// The sender is an FDF.
    pub const FDF: u16 = 0x0010;
    /// REC/P2P: the address is a recorded one, or the sender requests a point-to-point link.
    pub const RECORDED: u16 = 0x0008;
    /// A: available for login.
    pub const AVAILABLE: u16 = 0x0004;
    /// S: reply to a solicitation.
    pub const SOLICITED: u16 = 0x0002;
    /// F: sent by an FCF.
    pub const FCF: u16 = 0x0001;
}

/// Length of the part before the descriptors, in bytes.
pub const HEAD_BYTES: usize = 10;
const VERSION: u8 = 1;

impl Fip {
    /// Reads a packet. Padding after the descriptor list is ignored. A descriptor of an unknown
    /// type is kept; a known one of a wrong length is an error. Callers that must reject unknown
    /// critical descriptors check [`unknown_critical`](Self::unknown_critical).
    pub fn parse(pdu: &[u8]) -> Result<Fip, ParseError> {
        let b = fixed::<HEAD_BYTES>("FIP header", pdu)?;
        let version = b[0] >> 4;
        if version != VERSION {
            return Err(ParseError::Unsupported { field: "FIP version", got: version.into() });
        }
        let mut list = slice("FIP descriptor list", pdu, HEAD_BYTES, 4 * usize::from(u16_at(b, 6)))?;
        let mut descriptors = Vec::new();
        while !list.is_empty() {
            let (descriptor, rest) = Descriptor::parse(list)?;
            descriptors.push(descriptor);
            list = rest;
        }
        Ok(Fip { operation: Operation::new(u16_at(b, 2), b[5]), flags: u16_at(b, 8), descriptors })
    }

    /// Appends the packet without padding. The total length of the descriptors must not exceed
    /// 262,140 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_u16(u16::from(VERSION) << 12);
        out.put_u16(self.operation.code());
        out.put_u16(self.operation.subcode().into());
        out.put_len16(counted(|_, out| self.put_descriptors(out)) / 4);
        out.put_u16(self.flags);
        self.put_descriptors(out);
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        counted(|_, out| self.emit(out))
    }

    fn put_descriptors(&self, out: &mut dyn Put) {
        self.descriptors.iter().for_each(|descriptor| descriptor.emit(out));
    }

    /// Type of the first unknown critical descriptor (type below 128). A receiver must drop such a
    /// packet.
    pub fn unknown_critical(&self) -> Option<u8> {
        self.descriptors.iter().find_map(|descriptor| match descriptor {
            Descriptor::Other { kind, .. } if *kind < Descriptor::FIRST_NON_CRITICAL => Some(*kind),
            _ => None,
        })
    }

    /// True if all of `flags` are set.
    pub const fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// Defines methods that return the value of the first descriptor that matches a pattern.
macro_rules! first {
    ($(#[$doc:meta])* $name:ident: $pattern:pat => $value:expr, $type:ty) => {
        $(#[$doc])*
        pub fn $name(&self) -> Option<$type> {
            self.descriptors.iter().find_map(|descriptor| match descriptor {
                $pattern => Some($value),
                _ => None,
            })
        }
    };
}

impl Fip {
    first!(
        /// Value of the first MAC address descriptor.
        mac: Descriptor::Mac(mac) => *mac, MacAddr);
    first!(
        /// Value of the first name descriptor.
        name: Descriptor::Name(name) => *name, Wwnn);
    first!(
        /// Value of the first priority descriptor.
        priority: Descriptor::Priority(priority) => *priority, u8);
    first!(
        /// Value of the first FC-MAP descriptor.
        fc_map: Descriptor::FcMap(map) => *map, FcMap);
    first!(
        /// Value of the first maximum FCoE size descriptor, in bytes.
        max_fcoe_bytes: Descriptor::MaxFcoeBytes(bytes) => *bytes, u16);
    first!(
        /// Value of the first link service descriptor.
        link_service: Descriptor::LinkService { service, frame } => (*service, &**frame), (LinkService, &Frame));
    first!(
        /// Value of the first VN_Port descriptor: MAC address, FC_ID, name.
        vx_port: Descriptor::VxPort { mac, port_id, port_name } => (*mac, *port_id, *port_name), (MacAddr, FcId, Wwpn));

    /// Values of all VN_Port descriptors: MAC address, FC_ID, name.
    pub fn vx_ports(&self) -> impl Iterator<Item = (MacAddr, FcId, Wwpn)> + '_ {
        self.descriptors.iter().filter_map(|descriptor| match descriptor {
            Descriptor::VxPort { mac, port_id, port_name } => Some((*mac, *port_id, *port_name)),
            _ => None,
        })
    }

    /// Values of all VLAN descriptors.
    pub fn vlans(&self) -> impl Iterator<Item = u16> + '_ {
        self.descriptors.iter().filter_map(|descriptor| match descriptor {
            Descriptor::Vlan(vlan) => Some(*vlan),
            _ => None,
        })
    }
}

/// A FIP packet with its Ethernet addresses and padding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FipFrame {
    /// Destination address.
    pub to: MacAddr,
    /// Source address.
    pub from: MacAddr,
    /// Length in bytes, without the Ethernet header, up to which the packet is padded with zeros;
    /// 0: no padding.
    pub padded_bytes: u16,
    /// The packet.
    pub packet: Fip,
}

impl FipFrame {
    /// Appends the whole Ethernet frame, padded to at least [`MIN_FRAME_BYTES`].
    pub fn emit(&self, tag: Option<VlanTag>, out: &mut Vec<u8>) {
        let start = out.len();
        let header = EtherHeader { to: self.to, from: self.from, tag, ether_type: EtherType::FIP };
        header.emit(out);
        self.packet.emit(out);
        let padded = header.encoded_len() + usize::from(self.padded_bytes);
        let end = start + padded.max(MIN_FRAME_BYTES);
        if out.len() < end {
            out.resize(end, 0);
        }
    }
}
