//! Reading and writing of big-endian fields.
//!
//! [`fixed`] is the one check of a length. The accessors behind it index with offsets that the check has covered; each
//! caller passes constant offsets below the checked length, so none of them can panic on input.

use crate::error::ParseError;
use crate::id::FcId;

/// The first `N` bytes of `data`, or the error that says how many are missing.
pub(crate) fn fixed<'a, const N: usize>(field: &'static str, data: &'a [u8]) -> Result<&'a [u8; N], ParseError> {
    data.first_chunk::<N>().ok_or(ParseError::Truncated { field, needed_bytes: N, got_bytes: data.len() })
}

/// The `len` bytes of `data` from `at`, for lengths that stand in the data themselves.
pub(crate) fn slice<'a>(field: &'static str, data: &'a [u8], at: usize, len: usize) -> Result<&'a [u8], ParseError> {
    let end = at.saturating_add(len);
    data.get(at..end).ok_or(ParseError::Truncated { field, needed_bytes: end, got_bytes: data.len() })
}

pub(crate) fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([data[at], data[at + 1]])
}

pub(crate) fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

pub(crate) fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from(u32_at(data, at)) << 32 | u64::from(u32_at(data, at + 4))
}

/// An address of three bytes.
pub(crate) fn id_at(data: &[u8], at: usize) -> FcId {
    FcId::from_bytes([data[at], data[at + 1], data[at + 2]])
}

/// Reads one field after the other, for layouts whose offsets follow from lengths and counts in the data.
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// From `at` on, which may lie behind the end: then the first read fails.
    pub(crate) fn new(data: &'a [u8], at: usize) -> Reader<'a> {
        Reader { data, at }
    }
    /// Offset of the next byte in the data.
    pub(crate) fn at(&self) -> usize {
        self.at
    }
    pub(crate) fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], ParseError> {
        let bytes = slice(field, self.data, self.at, len)?;
        self.at += len;
        Ok(bytes)
    }
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, ParseError> {
        Ok(u32_at(self.take(field, 4)?, 0))
    }
    /// A count of four bytes and as many items. The count is not believed: room is made as items come.
    pub(crate) fn repeat<T>(
        &mut self,
        field: &'static str,
        mut item: impl FnMut(&mut Reader<'a>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let count = self.u32(field)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }
}

/// Appends big-endian fields.
pub(crate) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// A byte, mostly reserved or a flag, and the address behind it.
    fn put_word(&mut self, first: u8, id: FcId);
    fn put_zeros(&mut self, count: usize);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }
    fn put_word(&mut self, first: u8, id: FcId) {
        self.push(first);
        self.extend_from_slice(&id.to_bytes());
    }
    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
}
