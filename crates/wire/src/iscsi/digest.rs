//! Digests: CRC-32C of headers and data segments (section 13.1), with the widest instructions that the processor has.

use crc_fast::{CrcAlgorithm, Digest, checksum, checksum_combine};

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;

/// CRC-32C of `bytes` behind others whose CRC-32C is `before`; 0 for none.
pub fn append(before: u32, bytes: &[u8]) -> u32 {
    if before == 0 {
        return checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
    }
    // The register holds the complement of what stands on the wire.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, (!before).into());
    digest.update(bytes);
    digest.finalize() as u32
}

/// The CRC-32C of all of `first` and `second`, one behind the other, if that of each alone is known.
pub fn combine(first: u32, second: u32, second_bytes: usize) -> u32 {
    checksum_combine(CrcAlgorithm::Crc32Iscsi, first.into(), second.into(), second_bytes as u64) as u32
}

/// The four bytes of the wire: least-significant first, unlike every other field.
pub fn to_bytes(crc: u32) -> [u8; DIGEST_BYTES] {
    crc.to_le_bytes()
}

/// The digest of `bytes` as it stands on the wire.
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
