//! The name block of zoning objects (FC-GS fabric zone server, FC-SW zoning): length, three reserved bytes, text, fill to a word.

use crate::bytes::{Put, Reader};
use crate::error::ParseError;

/// Longest name, in bytes: its length is one byte. The standards allow 64.
const MAX_BYTES: usize = 255;

/// Reads a name block.
pub(crate) fn parse(field: &'static str, reader: &mut Reader<'_>) -> Result<Box<[u8]>, ParseError> {
    let len = usize::from(reader.take(field, 4)?[0]);
    let text = reader.take(field, len.next_multiple_of(4))?;
    Ok(text[..len].into())
}

/// Appends a name block; the name is cut at 255 bytes.
pub(crate) fn emit(name: &[u8], out: &mut Vec<u8>) {
    let name = clip(name);
    out.extend_from_slice(&[name.len() as u8, 0, 0, 0]);
    out.extend_from_slice(name);
    out.put_zeros(name.len().next_multiple_of(4) - name.len());
}

/// Bytes that [`emit`] appends.
pub(crate) fn encoded_len(name: &[u8]) -> usize {
    4 + clip(name).len().next_multiple_of(4)
}

fn clip(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_BYTES)]
}
