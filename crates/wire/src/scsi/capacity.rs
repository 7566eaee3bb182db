//! READ CAPACITY parameter data (SBC).

use crate::bytes::{Put, fixed, u32_at, u64_at};
use crate::error::ParseError;

/// Parameter data of READ CAPACITY (10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReadCapacity10 {
    /// Number of the last block; FFFFFFFF if it does not fit.
    pub last_lba: u32,
    /// Block size in bytes.
    pub block_bytes: u32,
}

impl ReadCapacity10 {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 8;

    /// Reads 8 bytes.
    pub fn parse(data: &[u8]) -> Result<ReadCapacity10, ParseError> {
        let b = fixed::<{ Self::BYTES }>("READ CAPACITY(10) data", data)?;
        Ok(ReadCapacity10 { last_lba: u32_at(b, 0), block_bytes: u32_at(b, 4) })
    }

    /// Appends 8 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.last_lba);
        out.put_u32(self.block_bytes);
    }
}

/// READ CAPACITY (16), without protection information.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReadCapacity16 {
    /// Number of the last block.
    pub last_lba: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Logical blocks per physical block, as an exponent of two.
    pub physical_exponent: u8,
    /// Blocks can be deallocated (LBPME).
    pub thin: bool,
    /// Deallocated blocks read as zeros (LBPRZ).
    pub zeroes: bool,
}

impl ReadCapacity16 {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 32;
    const THIN: u8 = 0x80;
    const ZEROES: u8 = 0x40;

    /// Reads 32 bytes.
    pub fn parse(data: &[u8]) -> Result<ReadCapacity16, ParseError> {
        let b = fixed::<{ Self::BYTES }>("READ CAPACITY(16) data", data)?;
        Ok(ReadCapacity16 {
            last_lba: u64_at(b, 0),
            block_bytes: u32_at(b, 8),
            physical_exponent: b[13] & 0x0f,
            thin: b[14] & Self::THIN != 0,
            zeroes: b[14] & Self::ZEROES != 0,
        })
    }

    /// Appends 32 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u64(self.last_lba);
        out.put_u32(self.block_bytes);
        out.put_u8(0);
        out.put_u8(self.physical_exponent & 0x0f);
        out.put_u8(if self.thin { Self::THIN } else { 0 } | if self.zeroes { Self::ZEROES } else { 0 });
        out.put_zeros(17);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_read_capacity_10_are_two_words() {
        let value = ReadCapacity10 { last_lba: 0x0102_0304, block_bytes: 512 };
        let mut out = Vec::new();
        value.emit(&mut out);
        assert_eq!(out, [1, 2, 3, 4, 0, 0, 2, 0]);
        assert_eq!(ReadCapacity10::parse(&out), Ok(value));
        assert!((0..8).all(|len| ReadCapacity10::parse(&out[..len]).is_err()));
    }

    #[test]
    fn the_data_of_read_capacity_16_contain_further_fields() {
        let value = ReadCapacity16 {
            last_lba: 0x1_0000_0000,
            block_bytes: 4096,
            physical_exponent: 3,
            thin: true,
            zeroes: true,
        };
        let mut out = Vec::new();
        value.emit(&mut out);
        assert_eq!(out[..16], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 3, 0xc0, 0]);
        assert_eq!(ReadCapacity16::parse(&out), Ok(value));
        assert!((0..32).all(|len| ReadCapacity16::parse(&out[..len]).is_err()));
    }
}
