//! The name block of zoning objects (FC-GS fabric zone server, FC-SW zoning): length, three
//! reserved bytes, text, fill up to a word boundary.

use crate::bytes::{Put, Reader, len8};
use crate::error::ParseError;

/// Longest name, in bytes, because the length field is one byte. The standards allow 64.
const MAX_BYTES: usize = 255;

/// Reads a name block.
pub(crate) fn parse(field: &'static str, reader: &mut Reader<'_>) -> Result<Box<[u8]>, ParseError> {
    let len = usize::from(reader.take(field, 4)?[0]);
    let text = reader.take(field, len.next_multiple_of(4))?;
    Ok(text[..len].into())
}

/// Appends a name block; the name is cut at 255 bytes.
pub(crate) fn emit(name: &[u8], out: &mut dyn Put) {
    let name = clip(name);
    out.put_slice(&[len8(name.len()), 0, 0, 0]);
    out.put_slice(name);
    out.put_zeros(name.len().next_multiple_of(4) - name.len());
}

fn clip(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_BYTES)]
}
