//! Digests: CRC-32C of headers and data segments (section 13.1), computed with the
//! instructions of the processor.

/// Length of a digest, in bytes.
pub const DIGEST_BYTES: usize = 4;

/// Continues a CRC-32C with `bytes`. `before` is the CRC-32C of the preceding bytes; 0 if there are
/// none.
pub fn append(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

/// CRC-32C of `first` followed by `second`, computed from the CRC-32C of each. `second_bytes` is
/// the length of the second part.
pub fn combine(first: u32, second: u32, second_bytes: usize) -> u32 {
    crc32c::crc32c_combine(first, second, second_bytes)
}

/// The four bytes in wire order: least-significant first, unlike every other field.
pub fn to_bytes(crc: u32) -> [u8; DIGEST_BYTES] {
    crc.to_le_bytes()
}

/// Digest of `bytes` in wire order.
pub fn of(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    to_bytes(append(0, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of section 13.1 (from RFC 3720, B.4).
    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(of(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(of(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(of(&up), [0x4e, 0x79, 0xdd, 0x46]);
        let down: Vec<u8> = (0..32).rev().collect();
        assert_eq!(of(&down), [0x5c, 0xdb, 0x3f, 0x11]);
    }

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..1000_u32).map(|n| (n * 7) as u8).collect();
        let (a, b) = bytes.split_at(301);
        assert_eq!(to_bytes(append(append(0, a), b)), of(&bytes));
        assert_eq!(combine(append(0, a), append(0, b), b.len()), append(0, &bytes));
    }
}
