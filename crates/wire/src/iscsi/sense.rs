//! The data segment of a SCSI Response (section 11.4.7): length and sense data, then response data.

use crate::bytes::{Put, slice, u16_at};
use crate::error::ParseError;

/// Parts of the data segment of a SCSI Response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenseSegment<'a> {
    /// Sense data in the format of SPC.
    pub sense: &'a [u8],
    /// Response data: further bytes from the target.
    pub response: &'a [u8],
}

impl SenseSegment<'_> {
    /// Reads a data segment; an empty one has neither part.
    pub fn parse(segment: &[u8]) -> Result<SenseSegment<'_>, ParseError> {
        if segment.is_empty() {
            return Ok(SenseSegment { sense: &[], response: &[] });
        }
        let len = usize::from(u16_at(slice("SCSI Response data", segment, 0, 2)?, 0));
        let sense = slice("SCSI Response data", segment, 2, len)?;
        Ok(SenseSegment { sense, response: &segment[2 + len..] })
    }
}

/// Appends length and sense data. Sense data that exceeds the length field is cut.
pub fn emit_sense(sense: &[u8], out: &mut Vec<u8>) {
    let sense = &sense[..sense.len().min(usize::from(u16::MAX))];
    out.put_len16(sense.len());
    out.extend_from_slice(sense);
}
