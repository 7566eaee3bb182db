//! Readers and writers of big-endian fields.
//!
//! [`fixed`] checks the length of a structure once. The accessors `u16_at`, `u32_at`, `u64_at` and
//! [`id_at`] do not check again. Their callers pass constant offsets below the checked length, so
//! no input can make them panic.

use crate::error::ParseError;
use crate::id::FcId;

/// Returns the first `N` bytes of `data`. The error gives the required and the available length.
pub(crate) fn fixed<'a, const N: usize>(field: &'static str, data: &'a [u8]) -> Result<&'a [u8; N], ParseError> {
    data.first_chunk::<N>().ok_or(ParseError::Truncated { field, needed_bytes: N, got_bytes: data.len() })
}

/// Returns `len` bytes of `data` from offset `at`, for lengths that are read from the data
/// themselves.
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

/// Reads a 24-bit address at offset `at`.
pub(crate) fn id_at(data: &[u8], at: usize) -> FcId {
    FcId::from_bytes([data[at], data[at + 1], data[at + 2]])
}

/// Reader of consecutive fields, for layouts whose offsets depend on lengths and counts in the
/// data.
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader that starts at offset `at`. If `at` lies beyond the end, the first read
    /// fails.
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
    /// Reads a 32-bit count and then that many items. Memory grows with the items that are read,
    /// because the count may be wrong.
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

/// A length or count for a field of one byte. A value beyond its range becomes the largest one.
pub(crate) fn len8(len: usize) -> u8 {
    u8::try_from(len).unwrap_or(u8::MAX)
}

/// A length or count for a field of two bytes, as [`len8`].
pub(crate) fn len16(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// A length or count for a field of four bytes, as [`len8`].
pub(crate) fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Writer of big-endian fields: a buffer, or a sink that only counts the bytes.
pub trait Put {
    /// Appends bytes.
    fn put_slice(&mut self, bytes: &[u8]);
    /// Appends `count` zero bytes.
    fn put_zeros(&mut self, count: usize);
    /// Appends `count` records of `len` bytes. `write` receives the index of a record and its
    /// zeroed bytes; a sink that only counts the bytes does not call it.
    fn put_records(&mut self, count: usize, len: usize, write: &mut dyn FnMut(usize, &mut [u8]));
    /// Appends one byte.
    fn put_u8(&mut self, value: u8) {
        self.put_slice(&[value]);
    }
    /// Appends two bytes.
    fn put_u16(&mut self, value: u16) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends four bytes.
    fn put_u32(&mut self, value: u32) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends one byte, usually reserved or flags, and a 24-bit address.
    fn put_word(&mut self, first: u8, id: FcId) {
        let [domain, area, port] = id.to_bytes();
        self.put_slice(&[first, domain, area, port]);
    }
    /// Appends a length or count of one byte. A value beyond its range becomes the largest one.
    fn put_len8(&mut self, len: usize) {
        self.put_u8(len8(len));
    }
    /// Appends a length or count of two bytes, as [`put_len8`](Self::put_len8).
    fn put_len16(&mut self, len: usize) {
        self.put_u16(len16(len));
    }
    /// Appends a length or count of four bytes, as [`put_len8`](Self::put_len8).
    fn put_len32(&mut self, len: usize) {
        self.put_u32(len32(len));
    }
}

impl Put for Vec<u8> {
    fn put_slice(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
    fn put_records(&mut self, count: usize, len: usize, write: &mut dyn FnMut(usize, &mut [u8])) {
        let start = self.len();
        self.put_zeros(count * len);
        self[start..].chunks_exact_mut(len.max(1)).enumerate().for_each(|(at, record)| write(at, record));
    }
}

/// Writer that only counts the bytes.
struct ByteCount(usize);

impl Put for ByteCount {
    fn put_slice(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
    fn put_zeros(&mut self, count: usize) {
        self.0 += count;
    }
    fn put_records(&mut self, count: usize, len: usize, _: &mut dyn FnMut(usize, &mut [u8])) {
        self.0 += count * len;
    }
}

/// Number of bytes that `put` appends. Its first argument, the value of a length field, must not
/// affect that number.
pub(crate) fn counted(put: impl Fn(usize, &mut dyn Put)) -> usize {
    let mut count = ByteCount(0);
    put(0, &mut count);
    count.0
}

/// Appends a structure that contains its own length: `put` receives the number of bytes that it
/// appends, so that a length field cannot differ from the bytes.
pub(crate) fn put_counted(out: &mut dyn Put, put: impl Fn(usize, &mut dyn Put)) {
    put(counted(&put), out);
}

/// Appends the length of a part, in a field of two bytes, and the part.
pub(crate) fn put_with_len16(out: &mut dyn Put, part: impl Fn(&mut dyn Put)) {
    out.put_len16(counted(|_, out| part(out)));
    part(out);
}

/// Appends the length of a part, in a field of four bytes, and the part.
pub(crate) fn put_with_len32(out: &mut dyn Put, part: impl Fn(&mut dyn Put)) {
    out.put_len32(counted(|_, out| part(out)));
    part(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_field_has_the_number_of_appended_bytes() {
        let put = |len: usize, out: &mut dyn Put| {
            out.put_len16(len);
            out.put_word(7, FcId::new(0x01_0203));
            out.put_zeros(3);
            out.put_u64(1);
            out.put_slice(b"end");
        };
        let mut out = vec![0xff];
        put_counted(&mut out, put);
        assert_eq!(counted(put), 20);
        let word = [7, 1, 2, 3];
        assert_eq!(out, [&[0xff, 0, 20][..], &word, &[0; 3], &1u64.to_be_bytes(), b"end"].concat());
    }

    #[test]
    fn records_are_counted_without_writing_them() {
        let put = |out: &mut dyn Put| out.put_records(3, 2, &mut |at, record| record[1] = len8(at));
        let mut out = vec![0xff];
        put(&mut out);
        assert_eq!(out, [0xff, 0, 0, 0, 1, 0, 2]);
        assert_eq!(counted(|_, out| put(out)), 6);
        let never = |_, out: &mut dyn Put| out.put_records(1 << 20, 16, &mut |at, _| panic!("record {at}"));
        assert_eq!(counted(never), 16 << 20);
    }

    #[test]
    fn a_part_follows_its_length() {
        let mut out = Vec::new();
        put_with_len32(&mut out, |out| put_with_len16(out, |out| out.put_slice(b"part")));
        assert_eq!(out, [&[0, 0, 0, 6, 0, 4][..], b"part"].concat());
    }
}
