//! LLDP (IEEE 802.1AB): the description that a port sends to the other end of its link, and the
//! TLVs of DCBX in it.

pub mod dcbx;

pub use dcbx::{AppPriority, Application, EtsConfiguration, EtsRecommendation, Pfc, PriorityMap, TrafficClasses};

use crate::bytes::{Put, fixed, len16, slice, u16_at};
use crate::error::ParseError;
use crate::ether::MacAddr;

/// An LLDPDU: the payload of an Ethernet frame of type
/// [`EtherType::LLDP`](crate::ether::EtherType::LLDP).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lldpdu {
    /// TLVs in wire order, without the End Of LLDPDU TLV.
    pub tlvs: Vec<Tlv>,
}

/// One TLV: a type of 7 bits and a length of 9 bits. Contents longer than 511 bytes are cut when
/// they are sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tlv {
    /// Identity of the station.
    ChassisId(Id),
    /// Identity of the port.
    PortId(Id),
    /// Time for which the information is valid, in seconds; 0 means that it is no longer valid.
    TimeToLive(u16),
    /// Port description, text.
    PortDescription(Box<[u8]>),
    /// System name, text.
    SystemName(Box<[u8]>),
    /// System description, text.
    SystemDescription(Box<[u8]>),
    /// Supported and enabled functions of the station.
    SystemCapabilities {
        /// Bitmap of supported functions.
        capable: u16,
        /// Bitmap of enabled functions.
        enabled: u16,
    },
    /// ETS configuration of DCBX.
    EtsConfiguration(EtsConfiguration),
    /// ETS recommendation of DCBX.
    EtsRecommendation(EtsRecommendation),
    /// Priority-based flow control of DCBX.
    Pfc(Pfc),
    /// Application priorities of DCBX.
    Application(Application),
    /// Any other organisation-specific TLV.
    Organisation {
        /// OUI of the organisation.
        oui: [u8; 3],
        /// Subtype within the organisation; never one of the variants above.
        subtype: u8,
        /// Bytes after the subtype.
        body: Box<[u8]>,
    },
    /// Any other TLV.
    Other {
        /// Type: 9 to 126, or 8 (management address). Type 0 would end the LLDPDU.
        kind: u8,
        /// Bytes after type and length.
        body: Box<[u8]>,
    },
}

/// Identity of a chassis or a port: kind and value of the identifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Id {
    /// Kind of identifier. MAC address: 4 in a chassis ID, 3 in a port ID. Interface name: 5 in a
    /// port ID.
    pub subtype: u8,
    /// Value of the identifier.
    pub id: Box<[u8]>,
}

impl Id {
    /// Chassis ID from a MAC address.
    pub fn chassis_mac(mac: MacAddr) -> Id {
        Id { subtype: 4, id: mac.0.into() }
    }
    /// Port ID from a MAC address.
    pub fn port_mac(mac: MacAddr) -> Id {
        Id { subtype: 3, id: mac.0.into() }
    }
    /// Port ID from an interface name.
    pub fn interface(name: &str) -> Id {
        Id { subtype: 5, id: name.as_bytes().into() }
    }
}

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const CHASSIS_ID: u8 = 1;
    pub(super) const PORT_ID: u8 = 2;
    pub(super) const TIME_TO_LIVE: u8 = 3;
    pub(super) const PORT_DESCRIPTION: u8 = 4;
    pub(super) const SYSTEM_NAME: u8 = 5;
    pub(super) const SYSTEM_DESCRIPTION: u8 = 6;
    pub(super) const SYSTEM_CAPABILITIES: u8 = 7;
    pub(super) const ORGANISATION: u8 = 127;
}

/// Longest content of a TLV, in bytes.
const MAX_TLV_BYTES: usize = 511;

impl Lldpdu {
    /// Reads TLVs up to the End Of LLDPDU TLV or the end of the bytes. Missing mandatory TLVs are
    /// not an error.
    pub fn parse(pdu: &[u8]) -> Result<Lldpdu, ParseError> {
        let mut tlvs = Vec::new();
        let mut rest = pdu;
        while !rest.is_empty() {
            let head = u16_at(fixed::<2>("LLDP TLV", rest)?, 0);
            let (kind, len) = ((head >> 9) as u8, usize::from(head & 0x01ff));
            if kind == kind::END {
                break;
            }
            let body = slice("LLDP TLV", rest, 2, len)?;
            tlvs.push(Tlv::read(kind, body)?);
            rest = &rest[2 + len..];
        }
        Ok(Lldpdu { tlvs })
    }

    /// Appends the TLVs and the End Of LLDPDU TLV.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.tlvs.iter().for_each(|tlv| tlv.emit(out));
        out.put_u16(0);
    }

    /// Time to live in seconds; `None` without such a TLV.
    pub fn time_to_live_s(&self) -> Option<u16> {
        self.tlvs.iter().find_map(|tlv| match tlv {
            Tlv::TimeToLive(seconds) => Some(*seconds),
            _ => None,
        })
    }
}

impl Tlv {
    fn read(kind: u8, body: &[u8]) -> Result<Tlv, ParseError> {
        let id = |field| fixed::<1>(field, body).map(|[subtype]| Id { subtype: *subtype, id: body[1..].into() });
        Ok(match kind {
            kind::CHASSIS_ID => Tlv::ChassisId(id("LLDP chassis id")?),
            kind::PORT_ID => Tlv::PortId(id("LLDP port id")?),
            kind::TIME_TO_LIVE => Tlv::TimeToLive(u16_at(fixed::<2>("LLDP time to live", body)?, 0)),
            kind::PORT_DESCRIPTION => Tlv::PortDescription(body.into()),
            kind::SYSTEM_NAME => Tlv::SystemName(body.into()),
            kind::SYSTEM_DESCRIPTION => Tlv::SystemDescription(body.into()),
            kind::SYSTEM_CAPABILITIES => {
                let b = fixed::<4>("LLDP system capabilities", body)?;
                Tlv::SystemCapabilities { capable: u16_at(b, 0), enabled: u16_at(b, 2) }
            }
            kind::ORGANISATION => {
                let [a, b, c, subtype] = *fixed::<4>("LLDP organisation", body)?;
                let oui = [a, b, c];
                match dcbx::read(oui, subtype, &body[4..])? {
                    Some(tlv) => tlv,
                    None => Tlv::Organisation { oui, subtype, body: body[4..].into() },
                }
            }
            kind => Tlv::Other { kind, body: body.into() },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(0);
        let kind = self.emit_body(out);
        out.truncate(start + 2 + MAX_TLV_BYTES);
        let head = u16::from(kind) << 9 | len16(out.len() - start - 2);
        out[start..start + 2].copy_from_slice(&head.to_be_bytes());
    }

    /// Appends the content of the TLV and returns its type.
    fn emit_body(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Tlv::ChassisId(id) | Tlv::PortId(id) => {
                out.put_u8(id.subtype);
                out.extend_from_slice(&id.id);
                if matches!(self, Tlv::ChassisId(_)) { kind::CHASSIS_ID } else { kind::PORT_ID }
            }
            Tlv::TimeToLive(seconds) => {
                out.put_u16(*seconds);
                kind::TIME_TO_LIVE
            }
            Tlv::PortDescription(text) => {
                out.extend_from_slice(text);
                kind::PORT_DESCRIPTION
            }
            Tlv::SystemName(text) => {
                out.extend_from_slice(text);
                kind::SYSTEM_NAME
            }
            Tlv::SystemDescription(text) => {
                out.extend_from_slice(text);
                kind::SYSTEM_DESCRIPTION
            }
            Tlv::SystemCapabilities { capable, enabled } => {
                out.put_u16(*capable);
                out.put_u16(*enabled);
                kind::SYSTEM_CAPABILITIES
            }
            Tlv::EtsConfiguration(ets) => {
                ets.emit(out);
                kind::ORGANISATION
            }
            Tlv::EtsRecommendation(ets) => {
                ets.emit(out);
                kind::ORGANISATION
            }
            Tlv::Pfc(pfc) => {
                pfc.emit(out);
                kind::ORGANISATION
            }
            Tlv::Application(application) => {
                application.emit(out);
                kind::ORGANISATION
            }
            Tlv::Organisation { oui, subtype, body } => {
                out.extend_from_slice(oui);
                out.put_u8(*subtype);
                out.extend_from_slice(body);
                kind::ORGANISATION
            }
            Tlv::Other { kind, body } => {
                out.extend_from_slice(body);
                *kind
            }
        }
    }
}
