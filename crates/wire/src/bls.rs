//! Basic link services (FC-FS, basic link services).

use crate::bytes::{Put, fixed, u16_at};
use crate::codes::code_constants;
use crate::error::ParseError;
use crate::header::{Header, RCtl};

/// A basic link service. R_CTL of the frame selects the variant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bls {
    /// No operation.
    Nop,
    /// Abort of an exchange, or of one sequence if bit 0 of the parameter field is set.
    Abts,
    /// Basic accept of an ABTS.
    BaAcc(BaAcc),
    /// Basic reject of an ABTS.
    BaRjt(BaRjt),
}

/// Payload of BA_ACC, 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BaAcc {
    /// SEQ_ID of the last deliverable sequence, if the recipient reports one.
    pub seq_id: Option<u8>,
    /// Exchange identifier assigned by the originator.
    pub ox_id: u16,
    /// Exchange identifier assigned by the responder.
    pub rx_id: u16,
    /// Lowest aborted SEQ_CNT. The value 0 together with a `high_seq_cnt` of FFFF means the whole
    /// exchange.
    pub low_seq_cnt: u16,
    /// Highest aborted SEQ_CNT.
    pub high_seq_cnt: u16,
}

/// Payload of BA_RJT, 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BaRjt {
    /// Reason code (see [`reason`]).
    pub reason: u8,
    /// Reason explanation (see [`explanation`]).
    pub explanation: u8,
    /// Vendor-specific reason.
    pub vendor: u8,
}

/// Length of the BA_ACC payload, in bytes.
pub const BA_ACC_BYTES: usize = 12;
/// Length of the BA_RJT payload, in bytes.
pub const BA_RJT_BYTES: usize = 4;

impl Bls {
    /// Reads the payload of a frame of TYPE 00. R_CTL of `header` selects the service.
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Bls, ParseError> {
        match header.r_ctl {
            RCtl::BLS_NOP => Ok(Bls::Nop),
            RCtl::BLS_ABTS => Ok(Bls::Abts),
            RCtl::BLS_BA_ACC => BaAcc::parse(payload).map(Bls::BaAcc),
            RCtl::BLS_BA_RJT => BaRjt::parse(payload).map(Bls::BaRjt),
            other => Err(ParseError::Unsupported { field: "basic link service R_CTL", got: other.0.into() }),
        }
    }

    /// Appends the payload.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Bls::Nop | Bls::Abts => {}
            Bls::BaAcc(accept) => accept.emit(out),
            Bls::BaRjt(reject) => reject.emit(out),
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub const fn encoded_len(&self) -> usize {
        match self {
            Bls::Nop | Bls::Abts => 0,
            Bls::BaAcc(_) => BA_ACC_BYTES,
            Bls::BaRjt(_) => BA_RJT_BYTES,
        }
    }

    /// R_CTL of the frame that carries the payload.
    pub const fn r_ctl(&self) -> RCtl {
        match self {
            Bls::Nop => RCtl::BLS_NOP,
            Bls::Abts => RCtl::BLS_ABTS,
            Bls::BaAcc(_) => RCtl::BLS_BA_ACC,
            Bls::BaRjt(_) => RCtl::BLS_BA_RJT,
        }
    }
}

impl BaAcc {
    /// Flag in byte 0: the SEQ_ID in byte 1 is valid.
    const SEQ_ID_VALID: u8 = 0x80;

    /// BA_ACC for an ABTS that aborts a whole exchange.
    pub const fn whole_exchange(ox_id: u16, rx_id: u16) -> BaAcc {
        BaAcc { seq_id: None, ox_id, rx_id, low_seq_cnt: 0, high_seq_cnt: 0xffff }
    }

    /// Reads 12 bytes.
    pub fn parse(payload: &[u8]) -> Result<BaAcc, ParseError> {
        let b = fixed::<BA_ACC_BYTES>("BA_ACC", payload)?;
        Ok(BaAcc {
            seq_id: (b[0] & Self::SEQ_ID_VALID != 0).then_some(b[1]),
            ox_id: u16_at(b, 4),
            rx_id: u16_at(b, 6),
            low_seq_cnt: u16_at(b, 8),
            high_seq_cnt: u16_at(b, 10),
        })
    }

    /// Appends 12 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u8(if self.seq_id.is_some() { Self::SEQ_ID_VALID } else { 0 });
        out.put_u8(self.seq_id.unwrap_or(0));
        out.put_u16(0);
        out.put_u16(self.ox_id);
        out.put_u16(self.rx_id);
        out.put_u16(self.low_seq_cnt);
        out.put_u16(self.high_seq_cnt);
    }
}

impl BaRjt {
    /// Reads 4 bytes.
    pub fn parse(payload: &[u8]) -> Result<BaRjt, ParseError> {
        let b = fixed::<BA_RJT_BYTES>("BA_RJT", payload)?;
        Ok(BaRjt { reason: b[1], explanation: b[2], vendor: b[3] })
    }

    /// Appends 4 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, self.reason, self.explanation, self.vendor]);
    }
}

/// Reason codes of BA_RJT.
pub mod reason {
    use super::code_constants;

    code_constants!(u8 {
        INVALID_COMMAND = 0x01, "invalid command code";
        LOGICAL_ERROR = 0x03, "logical error";
        LOGICAL_BUSY = 0x05, "logical busy";
        PROTOCOL_ERROR = 0x07, "protocol error";
        UNABLE = 0x09, "unable to perform command request";
        VENDOR = 0xff, "vendor specific";
    });
}

/// Reason explanations of BA_RJT.
pub mod explanation {
    use super::code_constants;

    code_constants!(u8 {
        NONE = 0x00, "no additional explanation";
        INVALID_OX_RX_ID = 0x03, "invalid OX_ID/RX_ID combination";
        SEQUENCE_ABORTED = 0x05, "sequence aborted, no sequence information";
    });
}

impl std::fmt::Display for Bls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bls::BaRjt(reject) => write!(
                f,
                "BA_RJT: {}, {}",
                reason::name(reject.reason).unwrap_or("unknown reason"),
                explanation::name(reject.explanation).unwrap_or("unknown explanation"),
            ),
            other => other.r_ctl().fmt(f),
        }
    }
}
