//! Accepts of the fabric configuration server. The layout depends on the request.

use crate::bytes::{Put, fixed, id_at, slice, u32_at, u64_at};
use crate::error::ParseError;
use crate::fcs::command;
use crate::field::{DESCRIPTOR_BYTES, read_descriptor, write_descriptor};
use crate::id::{FcId, Wwnn, Wwpn};

/// An accept of the fabric configuration server. Texts are ASCII, at most 255 bytes long unless
/// stated otherwise.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FcsAccept {
    /// GIEL: name and type of each element (see [`element_type`](crate::fcs::element_type)).
    Elements(Vec<(Wwnn, u8)>),
    /// GIET.
    ElementType(u8),
    /// GDID.
    DomainId(u8),
    /// GMID.
    ManagementId(FcId),
    /// GFN: name of the fabric.
    FabricName(Wwnn),
    /// GIELN: logical name of an element.
    LogicalName(Box<[u8]>),
    /// GMAL: management addresses, as URLs.
    ManagementAddresses(Vec<Box<[u8]>>),
    /// GIEIL: vendor, model and release, then further vendor texts. A zero byte ends each text, so
    /// texts contain none. All texts together have at most 255 bytes, zero bytes included.
    Information(Vec<Box<[u8]>>),
    /// GPL: ports of an element.
    Ports(Vec<PortEntry>),
    /// GPT: type of a port (see [`port_type`](crate::ns::port_type)).
    PortType(u8),
    /// GPPN: physical number of a port.
    PhysicalNumber(u32),
    /// GAPNL: ports attached to a port.
    AttachedPorts(Vec<AttachedPort>),
    /// GPS: type and state of a port.
    PortState {
        /// See [`port_type`](crate::ns::port_type).
        port_type: u8,
        /// See [`port_state`](crate::fcs::port_state).
        state: u8,
    },
}

/// A port of an interconnect element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortEntry {
    /// Name of the port.
    pub name: Wwpn,
    /// Kind of transceiver module; 1 means unknown.
    pub module: u8,
    /// Kind of transmitter; 1 means unknown.
    pub transmitter: u8,
    /// See [`port_type`](crate::ns::port_type).
    pub port_type: u8,
}

/// A port at the other end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttachedPort {
    /// Name of the port.
    pub name: Wwpn,
    /// Flags.
    pub flags: u8,
    /// See [`port_type`](crate::ns::port_type).
    pub port_type: u8,
}

/// Length of a list record, in bytes.
const RECORD_BYTES: usize = 12;
/// Longest text list of GIEIL, in bytes, because its length field is one byte.
const MAX_INFORMATION_BYTES: usize = 255;

impl FcsAccept {
    /// Reads the bytes after the CT preamble of the accept of `request`. An unsupported request is
    /// [`ParseError::Unsupported`].
    pub fn parse(request: u16, body: &[u8]) -> Result<FcsAccept, ParseError> {
        let field = command::name(request).unwrap_or("fabric configuration server accept");
        let word = || fixed::<4>(field, body);
        Ok(match request {
            command::GIEL => FcsAccept::Elements(records(field, body, |b| (Wwnn(u64_at(b, 0)), b[11]))?),
            command::GIET => FcsAccept::ElementType(word()?[3]),
            command::GDID => FcsAccept::DomainId(word()?[1]),
            command::GMID => FcsAccept::ManagementId(id_at(word()?, 1)),
            command::GFN => FcsAccept::FabricName(Wwnn(u64_at(fixed::<8>(field, body)?, 0))),
            command::GIELN => FcsAccept::LogicalName(read_descriptor(body)?),
            command::GMAL => {
                let text = |at: u32| {
                    let start = 4 + at as usize * DESCRIPTOR_BYTES;
                    read_descriptor(slice(field, body, start, DESCRIPTOR_BYTES)?)
                };
                FcsAccept::ManagementAddresses((0..u32_at(word()?, 0)).map(text).collect::<Result<_, _>>()?)
            }
            command::GIEIL => {
                let list = slice(field, body, 4, word()?[3].into())?;
                // The zero byte of the last text does not start another text.
                let texts = list.split_last().map_or(&[][..], |(_, texts)| texts);
                let texts = texts.split(|byte| *byte == 0).map(Box::from);
                FcsAccept::Information(if list.is_empty() { Vec::new() } else { texts.collect() })
            }
            command::GPL => FcsAccept::Ports(records(field, body, |b| PortEntry {
                name: Wwpn(u64_at(b, 0)),
                module: b[9],
                transmitter: b[10],
                port_type: b[11],
            })?),
            command::GPT => FcsAccept::PortType(word()?[3]),
            command::GPPN => FcsAccept::PhysicalNumber(u32_at(word()?, 0)),
            command::GAPNL => FcsAccept::AttachedPorts(records(field, body, |b| AttachedPort {
                name: Wwpn(u64_at(b, 0)),
                flags: b[10],
                port_type: b[11],
            })?),
            command::GPS => {
                let b = fixed::<8>(field, body)?;
                FcsAccept::PortState { port_type: b[3], state: b[7] }
            }
            other => {
                let field = "fabric configuration server command";
                return Err(ParseError::Unsupported { field, got: other.into() });
            }
        })
    }

    /// Appends the bytes after the CT preamble. Texts that are too long are cut.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            FcsAccept::Elements(list) => {
                emit_records(list, out, |(name, element_type)| (name.0, [0, 0, 0, *element_type]));
            }
            FcsAccept::ElementType(code) | FcsAccept::PortType(code) => out.put_u32((*code).into()),
            FcsAccept::DomainId(domain) => out.put_slice(&[0, *domain, 0, 0]),
            FcsAccept::ManagementId(id) => out.put_word(0, *id),
            FcsAccept::FabricName(name) => out.put_u64(name.0),
            FcsAccept::LogicalName(name) => write_descriptor(name, out),
            FcsAccept::ManagementAddresses(list) => {
                out.put_len32(list.len());
                list.iter().for_each(|address| write_descriptor(address, out));
            }
            FcsAccept::Information(_) => {
                let list = self.information();
                out.put_len32(list.len());
                out.put_slice(&list);
            }
            FcsAccept::Ports(list) => {
                emit_records(list, out, |port| (port.name.0, [0, port.module, port.transmitter, port.port_type]))
            }
            FcsAccept::PhysicalNumber(number) => out.put_u32(*number),
            FcsAccept::AttachedPorts(list) => {
                emit_records(list, out, |port| (port.name.0, [0, 0, port.flags, port.port_type]));
            }
            FcsAccept::PortState { port_type, state } => {
                out.put_u32((*port_type).into());
                out.put_u32((*state).into());
            }
        }
    }

    /// The texts of GIEIL, each with a zero byte at its end.
    fn information(&self) -> Vec<u8> {
        let FcsAccept::Information(texts) = self else {
            return Vec::new();
        };
        let mut list: Vec<u8> = texts.iter().flat_map(|text| [text, &[0][..]].concat()).collect();
        if list.len() > MAX_INFORMATION_BYTES {
            list.truncate(MAX_INFORMATION_BYTES - 1);
            list.push(0);
        }
        list
    }
}

fn records<T>(field: &'static str, body: &[u8], read: impl Fn(&[u8; RECORD_BYTES]) -> T) -> Result<Vec<T>, ParseError> {
    let count = u32_at(fixed::<4>(field, body)?, 0);
    let record = |number: u32| {
        let start = 4 + number as usize * RECORD_BYTES;
        Ok(read(fixed(field, slice(field, body, start, RECORD_BYTES)?)?))
    };
    (0..count).map(record).collect()
}

fn emit_records<T>(list: &[T], out: &mut dyn Put, record: impl Fn(&T) -> (u64, [u8; 4])) {
    out.put_len32(list.len());
    for (name, rest) in list.iter().map(record) {
        out.put_u64(name);
        out.put_slice(&rest);
    }
}
