//! Requests to the name server (FC-GS, name server, requests).

use crate::bytes::{Put, fixed, id_at, u32_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{Fc4Types, TYPES_BYTES, clip, command, emit_symbolic_name, parse_symbolic_name, types_at};

/// A request to the name server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // each field is named after the object that the standard names
pub enum NsRequest {
    /// 0100: the object of the next higher id.
    GaNxt { port_id: FcId },
    /// 0112
    GpnId { port_id: FcId },
    /// 0113
    GnnId { port_id: FcId },
    /// 0114
    GcsId { port_id: FcId },
    /// 0117
    GftId { port_id: FcId },
    /// 0118
    GspnId { port_id: FcId },
    /// 011A
    GptId { port_id: FcId },
    /// 011C
    GfpnId { port_id: FcId },
    /// 011F
    GffId { port_id: FcId },
    /// 0121
    GidPn { port_name: Wwpn },
    /// 0131
    GidNn { node_name: Wwnn },
    /// 0139
    GsnnNn { node_name: Wwnn },
    /// 0171
    GidFt { domain: u8, area: u8, fc4_type: u8 },
    /// 0172
    GpnFt { domain: u8, area: u8, fc4_type: u8 },
    /// 0173
    GnnFt { domain: u8, area: u8, fc4_type: u8 },
    /// 01A1
    GidPt { port_type: u8, domain: u8, area: u8 },
    /// 01F1: features is the nibble of the type, bit 0 target, bit 1 initiator for FCP.
    GidFf { domain: u8, area: u8, features: u8, fc4_type: u8 },
    /// 0212
    RpnId { port_id: FcId, port_name: Wwpn },
    /// 0213
    RnnId { port_id: FcId, node_name: Wwnn },
    /// 0214
    RcsId { port_id: FcId, classes: u32 },
    /// 0217
    RftId { port_id: FcId, types: Fc4Types },
    /// 0218: at most 255 bytes.
    RspnId { port_id: FcId, symbolic_name: Box<[u8]> },
    /// 021A
    RptId { port_id: FcId, port_type: u8 },
    /// 021F
    RffId { port_id: FcId, features: u8, fc4_type: u8 },
    /// 0239: at most 255 bytes.
    RsnnNn { node_name: Wwnn, symbolic_name: Box<[u8]> },
    /// 0300
    DaId { port_id: FcId },
}

impl NsRequest {
    /// Reads the bytes behind the CT preamble. A command that has no value here is [`ParseError::Unsupported`].
    pub fn parse(command: u16, body: &[u8]) -> Result<NsRequest, ParseError> {
        let field = command::name(command).unwrap_or("name server request");
        let port_id = || Ok(id_at(fixed::<4>(field, body)?, 1));
        let name = || Ok(u64_at(fixed::<8>(field, body)?, 0));
        Ok(match command {
            command::GA_NXT => NsRequest::GaNxt { port_id: port_id()? },
            command::GPN_ID => NsRequest::GpnId { port_id: port_id()? },
            command::GNN_ID => NsRequest::GnnId { port_id: port_id()? },
            command::GCS_ID => NsRequest::GcsId { port_id: port_id()? },
            command::GFT_ID => NsRequest::GftId { port_id: port_id()? },
            command::GSPN_ID => NsRequest::GspnId { port_id: port_id()? },
            command::GPT_ID => NsRequest::GptId { port_id: port_id()? },
            command::GFPN_ID => NsRequest::GfpnId { port_id: port_id()? },
            command::GFF_ID => NsRequest::GffId { port_id: port_id()? },
            command::GID_PN => NsRequest::GidPn { port_name: Wwpn(name()?) },
            command::GID_NN => NsRequest::GidNn { node_name: Wwnn(name()?) },
            command::GSNN_NN => NsRequest::GsnnNn { node_name: Wwnn(name()?) },
            command::GID_FT => {
                let [_, domain, area, fc4_type] = *fixed(field, body)?;
                NsRequest::GidFt { domain, area, fc4_type }
            }
            command::GPN_FT => {
                let [_, domain, area, fc4_type] = *fixed(field, body)?;
                NsRequest::GpnFt { domain, area, fc4_type }
            }
            command::GNN_FT => {
                let [_, domain, area, fc4_type] = *fixed(field, body)?;
                NsRequest::GnnFt { domain, area, fc4_type }
            }
            command::GID_PT => {
                let [port_type, domain, area, _] = *fixed(field, body)?;
                NsRequest::GidPt { port_type, domain, area }
            }
            command::GID_FF => {
                let [_, domain, area, _, _, _, features, fc4_type] = *fixed(field, body)?;
                NsRequest::GidFf { domain, area, features, fc4_type }
            }
            command::RPN_ID => {
                let b = fixed::<12>(field, body)?;
                NsRequest::RpnId { port_id: id_at(b, 1), port_name: Wwpn(u64_at(b, 4)) }
            }
            command::RNN_ID => {
                let b = fixed::<12>(field, body)?;
                NsRequest::RnnId { port_id: id_at(b, 1), node_name: Wwnn(u64_at(b, 4)) }
            }
            command::RCS_ID => {
                let b = fixed::<8>(field, body)?;
                NsRequest::RcsId { port_id: id_at(b, 1), classes: u32_at(b, 4) }
            }
            command::RFT_ID => {
                let b = fixed::<{ 4 + TYPES_BYTES }>(field, body)?;
                NsRequest::RftId { port_id: id_at(b, 1), types: types_at(b, 4) }
            }
            command::RSPN_ID => NsRequest::RspnId { port_id: port_id()?, symbolic_name: parse_symbolic_name(body, 4)? },
            command::RPT_ID => {
                let b = fixed::<8>(field, body)?;
                NsRequest::RptId { port_id: id_at(b, 1), port_type: b[4] }
            }
            command::RFF_ID => {
                let b = fixed::<8>(field, body)?;
                NsRequest::RffId { port_id: id_at(b, 1), features: b[6], fc4_type: b[7] }
            }
            command::RSNN_NN => {
                NsRequest::RsnnNn { node_name: Wwnn(name()?), symbolic_name: parse_symbolic_name(body, 8)? }
            }
            command::DA_ID => NsRequest::DaId { port_id: port_id()? },
            other => {
                return Err(ParseError::Unsupported { field: "name server command", got: other.into() });
            }
        })
    }

    /// Appends the bytes behind the CT preamble. Symbolic names are cut at 255 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            NsRequest::GaNxt { port_id }
            | NsRequest::GpnId { port_id }
            | NsRequest::GnnId { port_id }
            | NsRequest::GcsId { port_id }
            | NsRequest::GftId { port_id }
            | NsRequest::GspnId { port_id }
            | NsRequest::GptId { port_id }
            | NsRequest::GfpnId { port_id }
            | NsRequest::GffId { port_id }
            | NsRequest::DaId { port_id } => out.put_word(0, *port_id),
            NsRequest::GidPn { port_name } => out.put_u64(port_name.0),
            NsRequest::GidNn { node_name } | NsRequest::GsnnNn { node_name } => out.put_u64(node_name.0),
            NsRequest::GidFt { domain, area, fc4_type }
            | NsRequest::GpnFt { domain, area, fc4_type }
            | NsRequest::GnnFt { domain, area, fc4_type } => {
                out.extend_from_slice(&[0, *domain, *area, *fc4_type]);
            }
            NsRequest::GidPt { port_type, domain, area } => {
                out.extend_from_slice(&[*port_type, *domain, *area, 0]);
            }
            NsRequest::GidFf { domain, area, features, fc4_type } => {
                out.extend_from_slice(&[0, *domain, *area, 0, 0, 0, *features, *fc4_type]);
            }
            NsRequest::RpnId { port_id, port_name } => {
                out.put_word(0, *port_id);
                out.put_u64(port_name.0);
            }
            NsRequest::RnnId { port_id, node_name } => {
                out.put_word(0, *port_id);
                out.put_u64(node_name.0);
            }
            NsRequest::RcsId { port_id, classes } => {
                out.put_word(0, *port_id);
                out.put_u32(*classes);
            }
            NsRequest::RftId { port_id, types } => {
                out.put_word(0, *port_id);
                types.iter().for_each(|word| out.put_u32(*word));
            }
            NsRequest::RspnId { port_id, symbolic_name } => {
                out.put_word(0, *port_id);
                emit_symbolic_name(symbolic_name, out);
            }
            NsRequest::RptId { port_id, port_type } => {
                out.put_word(0, *port_id);
                out.extend_from_slice(&[*port_type, 0, 0, 0]);
            }
            NsRequest::RffId { port_id, features, fc4_type } => {
                out.put_word(0, *port_id);
                out.extend_from_slice(&[0, 0, *features, *fc4_type]);
            }
            NsRequest::RsnnNn { node_name, symbolic_name } => {
                out.put_u64(node_name.0);
                emit_symbolic_name(symbolic_name, out);
            }
        }
    }

    /// Bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        match self {
            NsRequest::GaNxt { .. }
            | NsRequest::GpnId { .. }
            | NsRequest::GnnId { .. }
            | NsRequest::GcsId { .. }
            | NsRequest::GftId { .. }
            | NsRequest::GspnId { .. }
            | NsRequest::GptId { .. }
            | NsRequest::GfpnId { .. }
            | NsRequest::GffId { .. }
            | NsRequest::DaId { .. }
            | NsRequest::GidFt { .. }
            | NsRequest::GpnFt { .. }
            | NsRequest::GnnFt { .. }
            | NsRequest::GidPt { .. } => 4,
            NsRequest::GidPn { .. }
            | NsRequest::GidNn { .. }
            | NsRequest::GsnnNn { .. }
            | NsRequest::GidFf { .. }
            | NsRequest::RcsId { .. }
            | NsRequest::RptId { .. }
            | NsRequest::RffId { .. } => 8,
            NsRequest::RpnId { .. } | NsRequest::RnnId { .. } => 12,
            NsRequest::RftId { .. } => 4 + TYPES_BYTES,
            NsRequest::RspnId { symbolic_name, .. } => 5 + clip(symbolic_name).len(),
            NsRequest::RsnnNn { symbolic_name, .. } => 9 + clip(symbolic_name).len(),
        }
    }

    /// The command code (see [`command`]).
    pub const fn command(&self) -> u16 {
        match self {
            NsRequest::GaNxt { .. } => command::GA_NXT,
            NsRequest::GpnId { .. } => command::GPN_ID,
            NsRequest::GnnId { .. } => command::GNN_ID,
            NsRequest::GcsId { .. } => command::GCS_ID,
            NsRequest::GftId { .. } => command::GFT_ID,
            NsRequest::GspnId { .. } => command::GSPN_ID,
            NsRequest::GptId { .. } => command::GPT_ID,
            NsRequest::GfpnId { .. } => command::GFPN_ID,
            NsRequest::GffId { .. } => command::GFF_ID,
            NsRequest::GidPn { .. } => command::GID_PN,
            NsRequest::GidNn { .. } => command::GID_NN,
            NsRequest::GsnnNn { .. } => command::GSNN_NN,
            NsRequest::GidFt { .. } => command::GID_FT,
            NsRequest::GpnFt { .. } => command::GPN_FT,
            NsRequest::GnnFt { .. } => command::GNN_FT,
            NsRequest::GidPt { .. } => command::GID_PT,
            NsRequest::GidFf { .. } => command::GID_FF,
            NsRequest::RpnId { .. } => command::RPN_ID,
            NsRequest::RnnId { .. } => command::RNN_ID,
            NsRequest::RcsId { .. } => command::RCS_ID,
            NsRequest::RftId { .. } => command::RFT_ID,
            NsRequest::RspnId { .. } => command::RSPN_ID,
            NsRequest::RptId { .. } => command::RPT_ID,
            NsRequest::RffId { .. } => command::RFF_ID,
            NsRequest::RsnnNn { .. } => command::RSNN_NN,
            NsRequest::DaId { .. } => command::DA_ID,
        }
    }
}
