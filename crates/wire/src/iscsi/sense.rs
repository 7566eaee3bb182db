//! The data segment of a SCSI Response (section 11.4.7): sense data behind their length, then response data.

use crate::bytes::{Put, slice, u16_at};
use crate::error::ParseError;

/// Where the parts of the data segment of a SCSI Response are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenseSegment<'a> {
    /// Sense data, as SPC has them.
    pub sense: &'a [u8],
    /// What the target adds.
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

/// Appends sense data behind their length; what does not fit the length field is cut.
pub fn emit_sense(sense: &[u8], out: &mut Vec<u8>) {
    let sense = &sense[..sense.len().min(usize::from(u16::MAX))];
    out.put_u16(sense.len() as u16);
    out.extend_from_slice(sense);
}
