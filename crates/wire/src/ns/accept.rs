//! Accepts of the name server (FC-GS, name server). The layout depends on the request.

use crate::bytes::{Put, counted, fixed, id_at, u32_at, u64_at};
use crate::error::ParseError;
use crate::field::{DESCRIPTOR_BYTES, read_descriptor, write_descriptor};
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{
    Entries, Fc4Types, IpAddress, NsObject, ProcessAssociator, TYPES_BYTES, command, emit_symbolic_name,
    parse_symbolic_name, types_at,
};

/// An accept of the name server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // each variant is named after the object that the standard names
pub enum NsAccept {
    /// Accept of registrations.
    Empty,
    PortName(Wwpn),
    NodeName(Wwnn),
    FabricPortName(Wwpn),
    Classes(u32),
    Types(Fc4Types),
    SymbolicName(Box<[u8]>),
    PortType(u8),
    /// FC-4 features, 128 bytes: one nibble per FC-4 type.
    Features(Box<[u8; 128]>),
    PortId(FcId),
    HardAddress(FcId),
    /// Address of a port or of its node.
    Ip(IpAddress),
    ProcessAssociator(ProcessAssociator),
    /// GFD_ID: one descriptor for each requested type, in the order of the types, empty if none is
    /// registered. Each has at most 255 bytes; the accept contains no count.
    Descriptors(Vec<Box<[u8]>>),
    /// GID_A, GID_NN, GID_FT, GID_PT, GID_IPP, GID_FF. Lists have at least one record; the server
    /// rejects a request that finds none.
    PortIds(Vec<FcId>),
    /// GPN_NN, GPN_FT, GPN_IPP: addresses and port names.
    PortNames(Vec<(FcId, Wwpn)>),
    /// GNN_FT: addresses and node names.
    NodeNames(Vec<(FcId, Wwnn)>),
    /// GA_NXT: the next object.
    Object(Box<NsObject>),
    /// GE_ID to GE_FF, exchanged between switches.
    Entries(Entries),
}

/// Control byte of the last record of a list.
const LAST_RECORD: u8 = 0x80;

impl NsAccept {
    /// Reads the bytes after the CT preamble of the accept of `request`. A list ends at the record
    /// that is marked as the last. If `residual_words` is not zero, records did not fit, and the
    /// list may end with the bytes. An unsupported request is [`ParseError::Unsupported`].
    pub fn parse(request: u16, residual_words: u16, body: &[u8]) -> Result<NsAccept, ParseError> {
        let field = command::name(request).unwrap_or("name server accept");
        let name = || Ok(u64_at(fixed::<8>(field, body)?, 0));
        let cut = residual_words != 0;
        Ok(match request {
            command::GA_NXT => NsAccept::Object(Box::new(NsObject::parse(body)?)),
            command::GPN_ID => NsAccept::PortName(Wwpn(name()?)),
            command::GNN_ID | command::GNN_IP => NsAccept::NodeName(Wwnn(name()?)),
            command::GCS_ID => NsAccept::Classes(u32_at(fixed::<4>(field, body)?, 0)),
            command::GFT_ID => NsAccept::Types(types_at(fixed::<TYPES_BYTES>(field, body)?, 0)),
            command::GSPN_ID | command::GSNN_NN => NsAccept::SymbolicName(parse_symbolic_name(body, 0)?),
            command::GIPP_ID | command::GIPP_PN | command::GIP_NN => NsAccept::Ip(*fixed(field, body)?),
            command::GIPA_NN | command::GIPA_IP => NsAccept::ProcessAssociator(*fixed(field, body)?),
            command::GHA_ID => NsAccept::HardAddress(id_at(fixed::<4>(field, body)?, 1)),
            command::GFD_ID => NsAccept::Descriptors(parse_descriptors(body)?),
            command::GPT_ID => NsAccept::PortType(fixed::<4>(field, body)?[0]),
            command::GFPN_ID => NsAccept::FabricPortName(Wwpn(name()?)),
            command::GFF_ID => NsAccept::Features(Box::new(*fixed::<128>(field, body)?)),
            command::GID_PN => NsAccept::PortId(id_at(fixed::<4>(field, body)?, 1)),
            command::GID_A
            | command::GID_NN
            | command::GID_FT
            | command::GID_PT
            | command::GID_IPP
            | command::GID_FF => NsAccept::PortIds(parse_records::<4, _>(field, body, cut, |b| id_at(b, 1))?),
            command::GPN_NN | command::GPN_FT | command::GPN_IPP => {
                NsAccept::PortNames(parse_records::<16, _>(field, body, cut, |b| (id_at(b, 1), Wwpn(u64_at(b, 8))))?)
            }
            command::GNN_FT => {
                NsAccept::NodeNames(parse_records::<16, _>(field, body, cut, |b| (id_at(b, 1), Wwnn(u64_at(b, 8))))?)
            }
            command::GE_ID
            | command::GE_PN
            | command::GE_NN
            | command::GE_IP
            | command::GE_FT
            | command::GE_PT
            | command::GE_ZM
            | command::GE_ZN
            | command::GE_IPP
            | command::GE_FF => NsAccept::Entries(Entries::parse(body)?),
            command::RPN_ID
            | command::RNN_ID
            | command::RCS_ID
            | command::RFT_ID
            | command::RSPN_ID
            | command::RPT_ID
            | command::RIPP_ID
            | command::RHA_ID
            | command::RFD_ID
            | command::RFF_ID
            | command::RIP_NN
            | command::RIPA_NN
            | command::RSNN_NN
            | command::DA_ID => NsAccept::Empty,
            other => {
                return Err(ParseError::Unsupported { field: "name server command", got: other.into() });
            }
        })
    }

    /// Appends the bytes after the CT preamble and marks the last record of a list. Symbolic names
    /// and descriptors are cut at 255 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            NsAccept::Empty => {}
            NsAccept::PortName(name) | NsAccept::FabricPortName(name) => out.put_u64(name.0),
            NsAccept::NodeName(name) => out.put_u64(name.0),
            NsAccept::Classes(classes) => out.put_u32(*classes),
            NsAccept::Types(types) => types.iter().for_each(|word| out.put_u32(*word)),
            NsAccept::SymbolicName(name) => emit_symbolic_name(name, out),
            NsAccept::PortType(port_type) => out.put_slice(&[*port_type, 0, 0, 0]),
            NsAccept::Features(features) => out.put_slice(&features[..]),
            NsAccept::PortId(id) | NsAccept::HardAddress(id) => out.put_word(0, *id),
            NsAccept::Ip(address) => out.put_slice(address),
            NsAccept::ProcessAssociator(associator) => out.put_slice(associator),
            NsAccept::Descriptors(all) => all.iter().for_each(|descriptor| write_descriptor(descriptor, out)),
            NsAccept::PortIds(records) => emit_records(records, out, |port_id| {
                let [domain, area, port] = port_id.to_bytes();
                [0, domain, area, port]
            }),
            NsAccept::PortNames(records) => emit_records(records, out, |(port_id, name)| named(*port_id, name.0)),
            NsAccept::NodeNames(records) => emit_records(records, out, |(port_id, name)| named(*port_id, name.0)),
            NsAccept::Object(object) => object.emit(out),
            NsAccept::Entries(entries) => entries.emit(out),
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        counted(|_, out| self.emit(out))
    }
}

/// Reads descriptors up to the end of the bytes, at least one.
fn parse_descriptors(mut body: &[u8]) -> Result<Vec<Box<[u8]>>, ParseError> {
    let mut all = Vec::new();
    loop {
        all.push(read_descriptor(body)?);
        body = &body[DESCRIPTOR_BYTES..];
        if body.is_empty() {
            return Ok(all);
        }
    }
}

fn parse_records<const N: usize, T>(
    field: &'static str,
    mut body: &[u8],
    cut: bool,
    read: impl Fn(&[u8; N]) -> T,
) -> Result<Vec<T>, ParseError> {
    let mut records = Vec::new();
    loop {
        if cut && body.is_empty() && !records.is_empty() {
            return Ok(records);
        }
        let record = fixed::<N>(field, body)?;
        records.push(read(record));
        if record[0] & LAST_RECORD != 0 {
            return Ok(records);
        }
        body = &body[N..];
    }
}

/// Appends records and marks the last one. The first byte of a record is its control byte.
fn emit_records<T, const N: usize>(records: &[T], out: &mut dyn Put, encode: impl Fn(&T) -> [u8; N]) {
    out.put_records(records.len(), N, &mut |at, record| {
        record.copy_from_slice(&encode(&records[at]));
        if at + 1 == records.len() {
            record[0] = LAST_RECORD;
        }
    });
}

/// Record of an address and a name.
fn named(port_id: FcId, name: u64) -> [u8; 16] {
    let mut record = [0; 16];
    record[1..4].copy_from_slice(&port_id.to_bytes());
    record[8..].copy_from_slice(&name.to_be_bytes());
    record
}
