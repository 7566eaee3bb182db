//! Small messages of zone merge and change (FC-SW): [`Mrra`], [`MrraAcc`], the domain list of ACA,
//! and the [`ZoneReply`] to MR, ACA, RCA, SFC and UFC.

use super::command;
use crate::bytes::{Put, Reader, fixed, put_with_len16, u32_at};
use crate::codes::codes;
use crate::error::ParseError;
use std::fmt;

/// Operation of a Stage Fabric Configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SfcOperation(pub u8);

codes!(SfcOperation, u8, "operation" {
    ACTIVATE = 0x03, "activate zone set";
    DEACTIVATE = 0x04, "deactivate zone set";
});

/// Merge Request Resource Allocation: requests buffer space before a large MR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mrra {
    /// Revision.
    pub revision: u32,
    /// Size of the following MR, in words of 4 bytes.
    pub size_words: u32,
    /// Vendor, eight characters.
    pub vendor: [u8; 8],
    /// Vendor specific.
    pub vendor_info: [u8; 8],
}

/// Accept of an MRRA.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MrraAcc {
    /// Vendor, eight characters.
    pub vendor: [u8; 8],
    /// Result of the allocation.
    pub response: MrraResponse,
    /// Largest MR that the replying switch can store, in words of 4 bytes.
    pub max_words: u32,
    /// Time to wait before the next request if no space is available, in seconds.
    pub wait_seconds: u32,
}

/// Result of a Merge Request Resource Allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MrraResponse(pub u32);

codes!(MrraResponse, u32, "response" {
    AVAILABLE = 0x01, "resources available";
    NOT_AVAILABLE = 0x02, "resources not available";
});

/// The reply to MR, ACA, RCA, SFC and UFC. It is an SW_ACC even if it rejects the request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ZoneReply {
    /// Done, busy, or rejected.
    pub status: ZoneStatus,
    /// Reason of a rejection.
    pub reason: ZoneReason,
    /// Vendor specific.
    pub vendor: u8,
}

/// Status in a [`ZoneReply`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ZoneStatus(pub u8);

codes!(ZoneStatus, u8, "status" {
    DONE = 0x00, "command completed";
    BUSY = 0x01, "fabric busy";
    FAILED = 0x02, "failed";
});

/// Reason in a [`ZoneReply`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ZoneReason(pub u8);

codes!(ZoneReason, u8, "reason" {
    NONE = 0x00, "no reason";
    INVALID_LENGTH = 0x01, "invalid data length";
    NOT_SUPPORTED = 0x02, "unsupported command";
    NOT_AUTHORISED = 0x04, "not authorised";
    INVALID_REQUEST = 0x05, "invalid request";
    FABRIC_CHANGING = 0x06, "fabric changing";
    NOT_STAGED = 0x07, "update not staged";
    INVALID_FORMAT = 0x08, "invalid zone set format";
    INVALID_DATA = 0x09, "invalid data";
    CANNOT_MERGE = 0x0a, "unable to merge";
});

impl Mrra {
    /// Length of an MRRA, in bytes.
    pub const BYTES: usize = 28;

    pub(super) fn parse(payload: &[u8]) -> Result<Mrra, ParseError> {
        let b = fixed::<{ Mrra::BYTES }>("MRRA", payload)?;
        Ok(Mrra {
            revision: u32_at(b, 4),
            size_words: u32_at(b, 8),
            vendor: eight_at(b, 12),
            vendor_info: eight_at(b, 20),
        })
    }

    pub(super) fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[command::MRRA, 0, 0, 0]);
        out.put_u32(self.revision);
        out.put_u32(self.size_words);
        out.put_slice(&self.vendor);
        out.put_slice(&self.vendor_info);
    }
}

impl MrraAcc {
    /// Length of the accept, in bytes.
    pub const BYTES: usize = 24;

    pub(super) fn parse(payload: &[u8]) -> Result<MrraAcc, ParseError> {
        let b = fixed::<{ MrraAcc::BYTES }>("MRRA accept", payload)?;
        Ok(MrraAcc {
            vendor: eight_at(b, 4),
            response: MrraResponse(u32_at(b, 12)),
            max_words: u32_at(b, 16),
            wait_seconds: u32_at(b, 20),
        })
    }

    pub(super) fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[command::SW_ACC, 0, 0, 0]);
        out.put_slice(&self.vendor);
        out.put_u32(self.response.0);
        out.put_u32(self.max_words);
        out.put_u32(self.wait_seconds);
    }
}

impl ZoneReply {
    /// Length of the reply, in bytes.
    pub const BYTES: usize = 8;
    /// Reply "done" without a reason.
    pub const DONE: ZoneReply = ZoneReply::new(ZoneStatus::DONE, ZoneReason::NONE);

    /// Reply without a vendor code.
    pub const fn new(status: ZoneStatus, reason: ZoneReason) -> ZoneReply {
        ZoneReply { status, reason, vendor: 0 }
    }

    pub(super) fn parse(payload: &[u8]) -> Result<ZoneReply, ParseError> {
        let b = fixed::<{ ZoneReply::BYTES }>("zoning reply", payload)?;
        Ok(ZoneReply { status: ZoneStatus(b[5]), reason: ZoneReason(b[6]), vendor: b[7] })
    }

    pub(super) fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[command::SW_ACC, 0, 0, 0, 0, self.status.0, self.reason.0, self.vendor]);
    }
}

impl fmt::Display for ZoneReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        match self.reason {
            ZoneReason::NONE => Ok(()),
            reason => write!(f, ", {reason}"),
        }
    }
}

/// Reads the domains of an ACA.
pub(super) fn parse_domains(payload: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut reader = Reader::new(payload, 0);
    let head = reader.take("ACA", 4)?;
    let len = u16::from_be_bytes([head[2], head[3]]);
    if len % 4 != 0 {
        let rule = "a multiple of 4 bytes";
        return Err(ParseError::Length { field: "domain list length", got_bytes: len.into(), rule });
    }
    Ok(reader.take("domain list", len.into())?.chunks_exact(4).map(|word| word[3]).collect())
}

/// Appends an ACA.
pub(super) fn emit_domains(domains: &[u8], out: &mut dyn Put) {
    out.put_slice(&[command::ACA, 0]);
    put_with_len16(out, |out| domains.iter().for_each(|domain| out.put_u32((*domain).into())));
}

fn eight_at(data: &[u8], at: usize) -> [u8; 8] {
    std::array::from_fn(|i| data[at + i])
}
