//! UNMAP parameter list (SBC).

use crate::bytes::{Put, counted, fixed, put_with_len16, u16_at, u32_at, u64_at};
use crate::error::ParseError;

/// A range of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockDescriptor {
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
}

const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;

/// Reads the list. Incomplete descriptors are ignored (SBC, UNMAP parameter list).
pub fn parse(data: &[u8]) -> Result<Vec<BlockDescriptor>, ParseError> {
    let b = fixed::<HEADER_BYTES>("UNMAP parameter list", data)?;
    let declared = usize::from(u16_at(b, 2)).min(data.len() - HEADER_BYTES);
    let descriptors = data[HEADER_BYTES..HEADER_BYTES + declared].as_chunks::<DESCRIPTOR_BYTES>().0;
    Ok(descriptors.iter().map(|b| BlockDescriptor { lba: u64_at(b, 0), blocks: u32_at(b, 8) }).collect())
}

/// Appends the list, with at most 4095 descriptors because of its 16-bit length field.
pub fn emit(descriptors: &[BlockDescriptor], out: &mut Vec<u8>) {
    let count = descriptors.len().min((usize::from(u16::MAX) - HEADER_BYTES) / DESCRIPTOR_BYTES);
    let put_descriptors = |out: &mut dyn Put| {
        for descriptor in &descriptors[..count] {
            out.put_u64(descriptor.lba);
            out.put_u32(descriptor.blocks);
            out.put_u32(0);
        }
    };
    put_with_len16(out, |out| {
        out.put_len16(counted(|_, out| put_descriptors(out)));
        out.put_u32(0);
        put_descriptors(out);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_two_lengths_and_sixteen_bytes_per_entry() {
        let list = [BlockDescriptor { lba: 0x100, blocks: 8 }, BlockDescriptor { lba: 1 << 40, blocks: u32::MAX }];
        let mut out = Vec::new();
        emit(&list, &mut out);
        assert_eq!(out[..8], [0, 38, 0, 32, 0, 0, 0, 0]);
        assert_eq!(out[8..24], [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 8, 0, 0, 0, 0]);
        assert_eq!(parse(&out), Ok(list.to_vec()));
        assert_eq!(parse(&out[..39]), Ok(list[..1].to_vec()));
        assert!((0..8).all(|len| parse(&out[..len]).is_err()));
    }
}
