//! LLDP (IEEE 802.1AB): what a port says of itself to the other end of its link, and the TLVs of DCBX that it carries.

pub mod dcbx;

pub use dcbx::{AppPriority, Application, EtsConfiguration, EtsRecommendation, Pfc, PriorityMap, TrafficClasses};

use crate::bytes::{Put, fixed, slice, u16_at};
use crate::error::ParseError;
use crate::ether::MacAddr;

/// An LLDPDU: what stands behind an Ethernet header of type [`EtherType::LLDP`](crate::ether::EtherType::LLDP).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lldpdu {
    /// Its TLVs in their order, the one that ends it not counted.
    pub tlvs: Vec<Tlv>,
}

/// One TLV: seven bits of type, nine of length. Longer contents are cut at 511 bytes when they go out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tlv {
    /// Which station this is.
    ChassisId(Id),
    /// Which of its ports.
    PortId(Id),
    /// For how many seconds all this is true; 0: no longer.
    TimeToLive(u16),
    /// Port description, text.
    PortDescription(Box<[u8]>),
    /// System name, text.
    SystemName(Box<[u8]>),
    /// System description, text.
    SystemDescription(Box<[u8]>),
    /// What the station can do, and what of it is on.
    SystemCapabilities {
        /// By bit.
        capable: u16,
        /// By bit.
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
    /// Any other TLV of an organisation.
    Organisation {
        /// Who.
        oui: [u8; 3],
        /// Which of its TLVs; none of those above.
        subtype: u8,
        /// What follows.
        body: Box<[u8]>,
    },
    /// Any other.
    Other {
        /// Type, 9 to 126 or 8 (management address); 0 would end the LLDPDU.
        kind: u8,
        /// What follows.
        body: Box<[u8]>,
    },
}

/// Identity of a chassis or a port: what kind of identifier, and the identifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Id {
    /// 4 in a chassis id and 3 in a port id for a MAC address, 5 in a port id for the name of an interface.
    pub subtype: u8,
    /// The identifier.
    pub id: Box<[u8]>,
}

impl Id {
    /// Address of a chassis.
    pub fn chassis_mac(mac: MacAddr) -> Id {
        Id { subtype: 4, id: mac.0.into() }
    }
    /// Address of a port.
    pub fn port_mac(mac: MacAddr) -> Id {
        Id { subtype: 3, id: mac.0.into() }
    }
    /// Name of an interface.
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

/// Longest content of a TLV.
const MAX_TLV_BYTES: usize = 511;

impl Lldpdu {
    /// Reads TLVs up to the one that ends the LLDPDU, or to the end of the bytes. Which TLVs must be there is not judged.
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

    /// Appends the TLVs and the one that ends the LLDPDU.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.tlvs.iter().for_each(|tlv| tlv.emit(out));
        out.put_u16(0);
    }

    /// For how many seconds it is true; nothing if it does not say so.
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
        let head = u16::from(kind) << 9 | (out.len() - start - 2) as u16;
        out[start..start + 2].copy_from_slice(&head.to_be_bytes());
    }

    /// Appends what follows type and length, and returns the type.
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
