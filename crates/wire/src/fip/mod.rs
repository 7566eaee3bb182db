//! FIP (FC-BB, FCoE Initialization Protocol): how ENodes find FCFs and log in to them, how FCFs find each other, and how
//! ENodes do without an FCF (VN2VN).
//!
//! ```text
//!   0   version (high nibble 1), reserved      5   subcode
//!   2   operation code                         6   length of the descriptor list, in words
//!   4   reserved                               8   flags                10  descriptors
//! ```
//!
//! The length of the descriptor list says where a packet ends; what stands behind it is padding.

mod descriptor;

pub use descriptor::{Descriptor, Fc4Features, LinkService};

use crate::bytes::{Put, fixed, slice, u16_at};
use crate::codes::codes;
use crate::error::ParseError;
use crate::ether::{EtherHeader, EtherType, FcMap, MIN_FRAME_BYTES, MacAddr, VlanTag};
use crate::frame::Frame;
use crate::id::{FcId, Wwnn, Wwpn};

/// A FIP packet: what stands behind an Ethernet header of type [`EtherType::FIP`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fip {
    /// What it is.
    pub operation: Operation,
    /// See [`flag`].
    pub flags: u16,
    /// Its descriptors, in their order.
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
    /// From the two fields of the header.
    pub const fn new(code: u16, subcode: u8) -> Operation {
        Operation((code as u32) << 8 | subcode as u32)
    }
    /// Operation code.
    pub const fn code(self) -> u16 {
        (self.0 >> 8) as u16
    }
    /// Subcode.
    pub const fn subcode(self) -> u8 {
        self.0 as u8
    }
    /// One of those that vendors may use as they like (FFF8 to FFFE).
    pub const fn is_vendor_specific(self) -> bool {
        matches!(self.code(), 0xfff8..=0xfffe)
    }
}

/// Flags of the header.
pub mod flag {
    /// FP: fabric-provided addresses.
    pub const FPMA: u16 = 0x8000;
    /// SP: addresses that the server provides.
    pub const SPMA: u16 = 0x4000;
    /// From a controlling FCF.
    pub const CONTROLLING_FCF: u16 = 0x0020;
    /// From an FDF.
    pub const FDF: u16 = 0x0010;
    /// REC/P2P: the address is a recorded one, or the sender wants a point-to-point link.
    pub const RECORDED: u16 = 0x0008;
    /// A: available for login.
    pub const AVAILABLE: u16 = 0x0004;
    /// S: answers a solicitation.
    pub const SOLICITED: u16 = 0x0002;
    /// F: sent by an FCF.
    pub const FCF: u16 = 0x0001;
}

/// Bytes in front of the descriptors.
pub const HEAD_BYTES: usize = 10;
const VERSION: u8 = 1;

impl Fip {
    /// Reads a packet. Padding behind the descriptor list is ignored; a descriptor of an unknown type is kept, a known one of
    /// a wrong length is an error. Whoever must not take an unknown critical descriptor asks
    /// [`unknown_critical`](Self::unknown_critical).
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

    /// Appends the packet without padding. The descriptors must not be longer than 262,140 bytes together.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(u16::from(VERSION) << 12);
        out.put_u16(self.operation.code());
        out.put_u16(self.operation.subcode().into());
        out.put_u16(0);
        out.put_u16(self.flags);
        for descriptor in &self.descriptors {
            descriptor.emit(out);
        }
        let words = ((out.len() - start - HEAD_BYTES) / 4) as u16;
        out[start + 6..start + 8].copy_from_slice(&words.to_be_bytes());
    }

    /// Bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        HEAD_BYTES + self.descriptors.iter().map(Descriptor::encoded_len).sum::<usize>()
    }

    /// The first descriptor of an unknown type below 128: a receiver must drop the packet.
    pub fn unknown_critical(&self) -> Option<u8> {
        self.descriptors.iter().find_map(|descriptor| match descriptor {
            Descriptor::Other { kind, .. } if *kind < Descriptor::FIRST_NON_CRITICAL => Some(*kind),
            _ => None,
        })
    }

    /// All of the flags are set.
    pub const fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// The first value that a pattern finds among the descriptors of a packet.
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
        /// The first address.
        mac: Descriptor::Mac(mac) => *mac, MacAddr);
    first!(
        /// The first name.
        name: Descriptor::Name(name) => *name, Wwnn);
    first!(
        /// The first priority.
        priority: Descriptor::Priority(priority) => *priority, u8);
    first!(
        /// The first FC-MAP that stands alone.
        fc_map: Descriptor::FcMap(map) => *map, FcMap);
    first!(
        /// The first maximum FCoE size, in bytes.
        max_fcoe_bytes: Descriptor::MaxFcoeBytes(bytes) => *bytes, u16);
    first!(
        /// The first encapsulated link service.
        link_service: Descriptor::LinkService { service, frame } => (*service, &**frame), (LinkService, &Frame));
    first!(
        /// The first VN_Port: address, FC_ID, name.
        vx_port: Descriptor::VxPort { mac, port_id, port_name } => (*mac, *port_id, *port_name), (MacAddr, FcId, Wwpn));

    /// Every VN_Port: address, FC_ID, name.
    pub fn vx_ports(&self) -> impl Iterator<Item = (MacAddr, FcId, Wwpn)> + '_ {
        self.descriptors.iter().filter_map(|descriptor| match descriptor {
            Descriptor::VxPort { mac, port_id, port_name } => Some((*mac, *port_id, *port_name)),
            _ => None,
        })
    }

    /// Every VLAN.
    pub fn vlans(&self) -> impl Iterator<Item = u16> + '_ {
        self.descriptors.iter().filter_map(|descriptor| match descriptor {
            Descriptor::Vlan(vlan) => Some(*vlan),
            _ => None,
        })
    }
}

/// A FIP packet on its way: addresses, and how far it is padded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FipFrame {
    /// Destination.
    pub to: MacAddr,
    /// Source.
    pub from: MacAddr,
    /// The packet is filled up with zeros to this length in bytes, Ethernet header not counted; 0: as long as it is.
    pub padded_bytes: u16,
    /// The packet.
    pub packet: Fip,
}

impl FipFrame {
    /// Appends the whole Ethernet frame, at least [`MIN_FRAME_BYTES`] long.
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
