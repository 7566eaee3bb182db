//! CloudPhysics vscsi: little-endian records of SCSI commands.
//!
//! | version | record |
//! |---|---|
//! | 1 | u32 sequence, u32 bytes, u32 segments, u16 operation code, u16 version (0100), u64 block, u64 us |
//! | 2 | u16 operation code, u16 version (02xx), u32 sequence, u32 bytes, u32 segments, u64 block, u64 us, u64 response us |
//!
//! Commands other than reads, writes, UNMAP, WRITE SAME and SYNCHRONIZE CACHE are skipped.

use super::error::{Place, TraceError};
use super::format::US;
use super::parse::{RawRequest, size};
use super::request::TraceOp;

/// Bytes of a record of version 1.
pub(super) const RECORD_1: usize = 32;
/// Bytes of a record of version 2.
pub(super) const RECORD_2: usize = 40;

fn two(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn four(record: &[u8], at: usize) -> u32 {
    u32::from(two(record, at)) | u32::from(two(record, at + 2)) << 16
}

fn eight(record: &[u8], at: usize) -> u64 {
    u64::from(four(record, at)) | u64::from(four(record, at + 4)) << 32
}

/// True if a record has the version of its format.
pub(super) fn is_version(record: &[u8], version: u8) -> bool {
    match version {
        1 => record.len() >= RECORD_1 && two(record, 14) == 0x0100,
        _ => record.len() >= RECORD_2 && two(record, 2) >> 8 == 0x02,
    }
}

/// Operation of a SCSI operation code; none for commands that move no data.
fn operation(code: u16) -> Option<TraceOp> {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(TraceOp::Read),
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e => Some(TraceOp::Write),
        0x41 | 0x42 | 0x93 => Some(TraceOp::Trim),
        0x35 | 0x91 => Some(TraceOp::Flush),
        _ => None,
    }
}

/// Parses a record; none if the command is no request.
pub(super) fn parse(place: Place, record: &[u8], version: u8) -> Result<Option<RawRequest>, TraceError> {
    if !is_version(record, version) {
        let at = if version == 1 { 14 } else { 2 };
        let shown = format!("{:04x}", two(record, at));
        let remedy = if version == 1 { "version 0100, or name `vscsi-2`" } else { "version 02xx, or name `vscsi-1`" };
        return Err(TraceError::value(place, "version", shown.as_bytes(), remedy));
    }
    let (code, bytes, block, us) = match version {
        1 => (two(record, 12), four(record, 4), eight(record, 16), eight(record, 24)),
        _ => (two(record, 0), four(record, 8), eight(record, 16), eight(record, 24)),
    };
    let Some(op) = operation(code) else { return Ok(None) };
    let mut request = RawRequest::new(u128::from(us) * u128::from(US), op);
    if op != TraceOp::Flush {
        request.offset_bytes = size(place, "block", block, 512)?;
        request.length_bytes = u64::from(bytes);
    }
    if version == 2 {
        let ps = eight(record, 32).checked_mul(US);
        let error = || {
            let value = eight(record, 32).to_string();
            TraceError::value(place, "response time", value.as_bytes(), "a time of less than 213 days")
        };
        request.response_ps = Some(ps.ok_or_else(error)?);
    }
    Ok(Some(request))
}
