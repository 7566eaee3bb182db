//! The descriptors of FIP packets: [`Descriptor`].

use crate::bytes::{Put, counted, fixed, id_at, slice, u16_at, u32_at, u64_at};
use crate::els::command as els;
use crate::error::ParseError;
use crate::ether::{FcMap, MacAddr};
use crate::frame::{Frame, ReplyTo};
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::Fc4Types;
use crate::sw_ils::command as sw_ils;

/// One descriptor. The second byte on the wire is its length in words, type and length included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Descriptor {
    /// Priority of an FCF; the lowest number is preferred.
    Priority(u8),
    /// MAC address: of the sender, proposed, or granted.
    Mac(MacAddr),
    /// FC-MAP: upper half of fabric-provided addresses.
    FcMap(FcMap),
    /// Name of a node or a switch.
    Name(Wwnn),
    /// A fabric.
    Fabric {
        /// Number of the virtual fabric; 0 without virtual fabrics.
        vf_id: u16,
        /// FC-MAP of the fabric.
        fc_map: FcMap,
        /// Name of the fabric.
        name: Wwnn,
    },
    /// Largest FCoE PDU that the sender can receive, in bytes.
    MaxFcoeBytes(u16),
    /// A link service encapsulated in FIP, without delimiters and CRC.
    LinkService {
        /// Kind of link service; the same for request and reply.
        service: LinkService,
        /// The frame. It is boxed because it is many times larger than the other variants.
        frame: Box<Frame>,
    },
    /// A VN_Port.
    VxPort {
        /// MAC address of the VN_Port.
        mac: MacAddr,
        /// FC_ID of the VN_Port.
        port_id: FcId,
        /// Port name of the VN_Port.
        port_name: Wwpn,
    },
    /// Interval of advertisements by FCFs and of keep-alives by ENodes.
    AdvertisementPeriod {
        /// D bit: the FCF does not require keep-alives.
        no_keep_alives: bool,
        /// FKA_ADV_PERIOD in ms.
        period_ms: u32,
    },
    /// Vendor of the sender, eight bytes as received.
    VendorId([u8; 8]),
    /// A VLAN that carries FCoE, 12 bits.
    Vlan(u16),
    /// FC-4 types and their features, as in the name server.
    Fc4Attributes {
        /// Bitmap of FC-4 types.
        types: Fc4Types,
        /// Features of each FC-4 type.
        features: Box<Fc4Features>,
    },
    /// Any other descriptor: unknown or vendor specific.
    Other {
        /// Descriptor type; never one of the variants above.
        kind: u8,
        /// Bytes after type and length. Their number is 2 more than a multiple of four, and at most
        /// 1,018.
        body: Box<[u8]>,
    },
}

/// Four bits for each FC-4 type. Type 0 is in the low bits of the last byte of the first word.
pub type Fc4Features = [u32; 32];

/// Kind of a link service encapsulated in FIP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkService {
    /// Fabric login.
    Flogi,
    /// Additional N_Port_ID.
    Fdisc,
    /// Logout from the fabric.
    Logo,
    /// Exchange of link parameters between two switches.
    Elp,
}

mod kind {
    pub(super) const PRIORITY: u8 = 1;
    pub(super) const MAC: u8 = 2;
    pub(super) const FC_MAP: u8 = 3;
    pub(super) const NAME: u8 = 4;
    pub(super) const FABRIC: u8 = 5;
    pub(super) const MAX_FCOE_BYTES: u8 = 6;
    pub(super) const FLOGI: u8 = 7;
    pub(super) const FDISC: u8 = 8;
    pub(super) const LOGO: u8 = 9;
    pub(super) const ELP: u8 = 10;
    pub(super) const VX_PORT: u8 = 11;
    pub(super) const PERIOD: u8 = 12;
    pub(super) const VENDOR_ID: u8 = 13;
    pub(super) const VLAN: u8 = 14;
    pub(super) const FC4_ATTRIBUTES: u8 = 15;
}

impl LinkService {
    /// Type code of the descriptor.
    const fn kind(self) -> u8 {
        match self {
            LinkService::Flogi => kind::FLOGI,
            LinkService::Fdisc => kind::FDISC,
            LinkService::Logo => kind::LOGO,
            LinkService::Elp => kind::ELP,
        }
    }

    /// Request that a reply in such a descriptor answers.
    const fn reply_to(self) -> ReplyTo {
        match self {
            LinkService::Flogi => ReplyTo::Els(els::FLOGI),
            LinkService::Fdisc => ReplyTo::Els(els::FDISC),
            LinkService::Logo => ReplyTo::Els(els::LOGO),
            LinkService::Elp => ReplyTo::SwIls(sw_ils::ELP),
        }
    }
}

/// Bit D of the flags of [`Descriptor::AdvertisementPeriod`].
const NO_KEEP_ALIVES: u8 = 1;
const FC4_BYTES: usize = 164;
/// Length of type and length byte of a descriptor, in bytes.
const HEAD_BYTES: usize = 2;

impl Descriptor {
    /// Lowest type of a non-critical descriptor. A receiver may skip such a descriptor if its type
    /// is unknown.
    pub const FIRST_NON_CRITICAL: u8 = 128;

    /// Reads the first descriptor of a list. Returns it and the rest of the list.
    pub fn parse(list: &[u8]) -> Result<(Descriptor, &[u8]), ParseError> {
        let [kind, words] = *fixed::<2>("FIP descriptor", list)?;
        let len = 4 * usize::from(words);
        if len == 0 {
            return Err(ParseError::Length { field: "FIP descriptor", got_bytes: 0, rule: "at least a word" });
        }
        let body = slice("FIP descriptor", list, 0, len)?;
        Ok((Descriptor::read(kind, body)?, &list[len..]))
    }

    /// Reads a whole descriptor, type and length included.
    fn read(kind: u8, b: &[u8]) -> Result<Descriptor, ParseError> {
        let exactly = |field, words: usize| match b.len() == 4 * words {
            true => Ok(()),
            false => Err(ParseError::Length { field, got_bytes: b.len(), rule: "the length that its type requires" }),
        };
        let map_at = |at: usize| FcMap([b[at], b[at + 1], b[at + 2]]);
        let mac_at = |at: usize| MacAddr([b[at], b[at + 1], b[at + 2], b[at + 3], b[at + 4], b[at + 5]]);
        Ok(match kind {
            kind::PRIORITY => {
                exactly("FIP priority", 1)?;
                Descriptor::Priority(b[3])
            }
            kind::MAC => {
                exactly("FIP MAC address", 2)?;
                Descriptor::Mac(mac_at(2))
            }
            kind::FC_MAP => {
                exactly("FIP FC-MAP", 2)?;
                Descriptor::FcMap(map_at(5))
            }
            kind::NAME => {
                exactly("FIP name", 3)?;
                Descriptor::Name(Wwnn(u64_at(b, 4)))
            }
            kind::FABRIC => {
                exactly("FIP fabric", 4)?;
                Descriptor::Fabric { vf_id: u16_at(b, 2), fc_map: map_at(5), name: Wwnn(u64_at(b, 8)) }
            }
            kind::MAX_FCOE_BYTES => {
                exactly("FIP maximum FCoE size", 1)?;
                Descriptor::MaxFcoeBytes(u16_at(b, 2))
            }
            kind::FLOGI => Descriptor::link_service(LinkService::Flogi, b)?,
            kind::FDISC => Descriptor::link_service(LinkService::Fdisc, b)?,
            kind::LOGO => Descriptor::link_service(LinkService::Logo, b)?,
            kind::ELP => Descriptor::link_service(LinkService::Elp, b)?,
            kind::VX_PORT => {
                exactly("FIP Vx_Port", 5)?;
                Descriptor::VxPort { mac: mac_at(2), port_id: id_at(b, 9), port_name: Wwpn(u64_at(b, 12)) }
            }
            kind::PERIOD => {
                exactly("FIP advertisement period", 2)?;
                Descriptor::AdvertisementPeriod { no_keep_alives: b[3] & NO_KEEP_ALIVES != 0, period_ms: u32_at(b, 4) }
            }
            kind::VENDOR_ID => {
                exactly("FIP vendor", 3)?;
                Descriptor::VendorId(u64_at(b, 4).to_be_bytes())
            }
            kind::VLAN => {
                exactly("FIP VLAN", 1)?;
                Descriptor::Vlan(u16_at(b, 2) & 0x0fff)
            }
            kind::FC4_ATTRIBUTES => {
                exactly("FIP FC-4 attributes", FC4_BYTES / 4)?;
                Descriptor::Fc4Attributes {
                    types: std::array::from_fn(|word| u32_at(b, 4 + 4 * word)),
                    features: Box::new(std::array::from_fn(|word| u32_at(b, 36 + 4 * word))),
                }
            }
            kind => Descriptor::Other { kind, body: b[2..].into() },
        })
    }

    fn link_service(service: LinkService, b: &[u8]) -> Result<Descriptor, ParseError> {
        let frame = Frame::parse(&b[4..], Some(service.reply_to()))?;
        Ok(Descriptor::LinkService { service, frame: Box::new(frame) })
    }

    /// Appends the descriptor. [`Descriptor::Other`] is padded to whole words, and cut to the
    /// maximum of its length byte.
    pub fn emit(&self, out: &mut dyn Put) {
        let len = counted(|len, out| self.put_unpadded(len, out));
        let padded = len.next_multiple_of(4);
        self.put_unpadded(padded, out);
        out.put_zeros(padded - len);
    }

    /// Appends the descriptor without padding; `padded` is its length in bytes with padding.
    fn put_unpadded(&self, padded: usize, out: &mut dyn Put) {
        out.put_u8(self.kind());
        out.put_len8(padded / 4);
        self.put_body(out);
    }

    fn put_body(&self, out: &mut dyn Put) {
        match self {
            Descriptor::Priority(priority) => out.put_slice(&[0, *priority]),
            Descriptor::Mac(mac) => out.put_slice(&mac.0),
            Descriptor::FcMap(map) => {
                out.put_zeros(3);
                out.put_slice(&map.0);
            }
            Descriptor::Name(name) => {
                out.put_u16(0);
                out.put_u64(name.0);
            }
            Descriptor::Fabric { vf_id, fc_map, name } => {
                out.put_u16(*vf_id);
                out.put_u8(0);
                out.put_slice(&fc_map.0);
                out.put_u64(name.0);
            }
            Descriptor::MaxFcoeBytes(bytes) => out.put_u16(*bytes),
            Descriptor::LinkService { frame, .. } => {
                let mut bytes = Vec::new();
                frame.emit(&mut bytes);
                out.put_u16(0);
                out.put_slice(&bytes);
            }
            Descriptor::VxPort { mac, port_id, port_name } => {
                out.put_slice(&mac.0);
                out.put_word(0, *port_id);
                out.put_u64(port_name.0);
            }
            Descriptor::AdvertisementPeriod { no_keep_alives, period_ms } => {
                out.put_slice(&[0, if *no_keep_alives { NO_KEEP_ALIVES } else { 0 }]);
                out.put_u32(*period_ms);
            }
            Descriptor::VendorId(vendor) => {
                out.put_u16(0);
                out.put_slice(vendor);
            }
            Descriptor::Vlan(vlan) => out.put_u16(vlan & 0x0fff),
            Descriptor::Fc4Attributes { types, features } => {
                out.put_u16(0);
                types.iter().chain(features.iter()).for_each(|word| out.put_u32(*word));
            }
            Descriptor::Other { body, .. } => out.put_slice(&body[..body.len().min(Self::MAX_BYTES - HEAD_BYTES)]),
        }
    }

    /// Longest descriptor in bytes, given by its length byte.
    const MAX_BYTES: usize = 4 * 255;

    /// Type on the wire.
    pub const fn kind(&self) -> u8 {
        match self {
            Descriptor::Priority(_) => kind::PRIORITY,
            Descriptor::Mac(_) => kind::MAC,
            Descriptor::FcMap(_) => kind::FC_MAP,
            Descriptor::Name(_) => kind::NAME,
            Descriptor::Fabric { .. } => kind::FABRIC,
            Descriptor::MaxFcoeBytes(_) => kind::MAX_FCOE_BYTES,
            Descriptor::LinkService { service, .. } => service.kind(),
            Descriptor::VxPort { .. } => kind::VX_PORT,
            Descriptor::AdvertisementPeriod { .. } => kind::PERIOD,
            Descriptor::VendorId(_) => kind::VENDOR_ID,
            Descriptor::Vlan(_) => kind::VLAN,
            Descriptor::Fc4Attributes { .. } => kind::FC4_ATTRIBUTES,
            Descriptor::Other { kind, .. } => *kind,
        }
    }
}
