//! GET LBA STATUS parameter data (SBC).

use super::items;
use crate::bytes::{put_with_len32, u32_at, u64_at};
use crate::error::ParseError;

/// A range of blocks in the same provisioning state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LbaStatus {
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// 0: mapped; 1: deallocated; 2: anchored.
    pub provisioning: u8,
}

/// [`LbaStatus::provisioning`]: mapped.
pub const MAPPED: u8 = 0;
/// [`LbaStatus::provisioning`]: deallocated.
pub const DEALLOCATED: u8 = 1;

/// Reads the descriptors. The list may be truncated at the allocation length.
pub fn parse(data: &[u8]) -> Result<Vec<LbaStatus>, ParseError> {
    let descriptors = items::<16>("GET LBA STATUS data", data, 8, 4)?;
    let read = |b: &[u8; 16]| LbaStatus { lba: u64_at(b, 0), blocks: u32_at(b, 8), provisioning: b[12] & 0x0f };
    Ok(descriptors.map(read).collect())
}

/// Appends the descriptors.
pub fn emit(descriptors: &[LbaStatus], out: &mut Vec<u8>) {
    put_with_len32(out, |out| {
        out.put_u32(0);
        for descriptor in descriptors {
            out.put_u64(descriptor.lba);
            out.put_u32(descriptor.blocks);
            out.put_u8(descriptor.provisioning & 0x0f);
            out.put_zeros(3);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_sixteen_bytes_per_entry_and_a_length_that_counts_four_more() {
        let list = [LbaStatus { lba: 5, blocks: 3, provisioning: DEALLOCATED }];
        let mut out = Vec::new();
        emit(&list, &mut out);
        assert_eq!(out, [0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 3, 1, 0, 0, 0]);
        assert_eq!(parse(&out), Ok(list.to_vec()));
        assert_eq!(parse(&out[..23]), Ok(Vec::new()));
        assert!((0..8).all(|len| parse(&out[..len]).is_err()));
    }
}
