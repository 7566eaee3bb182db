//! Vital product data pages of INQUIRY (SPC-4, 7.8; SBC-3, 6.5).

use crate::bytes::{Put, fixed, slice, u16_at, u32_at, u64_at};
use crate::codes::code_constants;
use crate::error::ParseError;

/// Page codes.
pub mod page {
    use super::code_constants;

    code_constants!(u8 {
        SUPPORTED = 0x00, "supported VPD pages";
        SERIAL = 0x80, "unit serial number";
        IDENTIFICATION = 0x83, "device identification";
        EXTENDED_INQUIRY = 0x86, "extended INQUIRY data";
        BLOCK_LIMITS = 0xb0, "block limits";
        BLOCK_CHARACTERISTICS = 0xb1, "block device characteristics";
        PROVISIONING = 0xb2, "logical block provisioning";
    });
}

/// Appends a page: the peripheral byte of standard INQUIRY data, page code, length, body.
pub fn emit(peripheral: u8, page: u8, body: &[u8], out: &mut Vec<u8>) {
    out.put_u8(peripheral);
    out.put_u8(page);
    out.put_len16(body.len());
    out.extend_from_slice(body);
}

/// Returns page code and body.
pub fn parse(data: &[u8]) -> Result<(u8, &[u8]), ParseError> {
    let b = fixed::<4>("VPD page", data)?;
    Ok((b[1], slice("VPD page", data, 4, u16_at(b, 2).into())?))
}

/// A designator of page 83.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Designator {
    /// Protocol that the designator applies to (see [`protocol`]), if given.
    pub protocol: Option<u8>,
    /// Code set: 1 binary, 2 ASCII, 3 UTF-8.
    pub code_set: u8,
    /// Described object: 0 the logical unit, 1 the target port, 2 the target device.
    pub association: u8,
    /// Designator type: 1 T10 vendor, 2 EUI-64, 3 NAA, 4 relative target port, 5 target port group,
    /// 8 SCSI name string.
    pub kind: u8,
    /// Value, at most 255 bytes.
    pub bytes: Vec<u8>,
}

/// Protocol identifiers.
pub mod protocol {
    /// Fibre Channel.
    pub const FCP: u8 = 0;
    /// SRP.
    pub const SRP: u8 = 4;
    /// iSCSI.
    pub const ISCSI: u8 = 5;
}

/// Values of [`Designator::association`].
pub mod association {
    /// The logical unit.
    pub const UNIT: u8 = 0;
    /// The target port that received the command.
    pub const PORT: u8 = 1;
    /// The target device.
    pub const DEVICE: u8 = 2;
}

impl Designator {
    /// Reads the first designator in the body of page 83. Returns it and the rest.
    pub fn parse(body: &[u8]) -> Result<(Designator, &[u8]), ParseError> {
        const FIELD: &str = "designator";
        let b = fixed::<4>(FIELD, body)?;
        let bytes = slice(FIELD, body, 4, b[3].into())?;
        let designator = Designator {
            protocol: (b[1] & 0x80 != 0).then_some(b[0] >> 4),
            code_set: b[0] & 0x0f,
            association: b[1] >> 4 & 3,
            kind: b[1] & 0x0f,
            bytes: bytes.to_vec(),
        };
        Ok((designator, &body[4 + bytes.len()..]))
    }

    /// Reads the body of page 83.
    pub fn parse_list(mut body: &[u8]) -> Result<Vec<Designator>, ParseError> {
        let mut list = Vec::new();
        while !body.is_empty() {
            let (designator, rest) = Designator::parse(body)?;
            list.push(designator);
            body = rest;
        }
        Ok(list)
    }

    /// Appends the designator.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let bytes = &self.bytes[..self.bytes.len().min(255)];
        out.put_u8(self.protocol.unwrap_or(0) << 4 | self.code_set & 0x0f);
        out.put_u8(u8::from(self.protocol.is_some()) << 7 | (self.association & 3) << 4 | self.kind & 0x0f);
        out.put_u8(0);
        out.put_len8(bytes.len());
        out.extend_from_slice(bytes);
    }

    /// Binary designator: NAA (kind 3), relative port (4) or port group (5).
    pub fn binary(association: u8, kind: u8, bytes: &[u8]) -> Designator {
        Designator { protocol: None, code_set: 1, association, kind, bytes: bytes.to_vec() }
    }

    /// A SCSI name string: UTF-8, padded with NUL to a multiple of four bytes.
    pub fn name(association: u8, name: &str) -> Designator {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        Designator { protocol: None, code_set: 3, association, kind: 8, bytes }
    }

    /// Returns the designator with a protocol identifier.
    pub fn of_protocol(self, protocol: u8) -> Designator {
        Designator { protocol: Some(protocol), ..self }
    }
}

/// Page B0, block limits. Zero means no limit or not supported.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockLimits {
    /// WRITE SAME with zero blocks is rejected (WSNZ).
    pub write_same_nonzero: bool,
    /// Largest COMPARE AND WRITE, in blocks.
    pub max_compare_blocks: u8,
    /// Optimal transfer length granularity, in blocks.
    pub granularity_blocks: u16,
    /// Largest transfer, in blocks.
    pub max_transfer_blocks: u32,
    /// Optimal transfer length, in blocks.
    pub best_transfer_blocks: u32,
    /// Largest prefetch, in blocks.
    pub max_prefetch_blocks: u32,
    /// Largest number of blocks of one UNMAP.
    pub max_unmap_blocks: u32,
    /// Largest number of descriptors of one UNMAP.
    pub max_unmap_descriptors: u32,
    /// Optimal UNMAP granularity, in blocks.
    pub unmap_granularity_blocks: u32,
    /// Largest WRITE SAME, in blocks.
    pub max_write_same_blocks: u64,
}

impl BlockLimits {
    /// Length of the body, in bytes.
    pub const BYTES: usize = 60;

    /// Reads the body.
    pub fn parse(body: &[u8]) -> Result<BlockLimits, ParseError> {
        let b = fixed::<{ Self::BYTES }>("block limits", body)?;
        Ok(BlockLimits {
            write_same_nonzero: b[0] & 1 != 0,
            max_compare_blocks: b[1],
            granularity_blocks: u16_at(b, 2),
            max_transfer_blocks: u32_at(b, 4),
            best_transfer_blocks: u32_at(b, 8),
            max_prefetch_blocks: u32_at(b, 12),
            max_unmap_blocks: u32_at(b, 16),
            max_unmap_descriptors: u32_at(b, 20),
            unmap_granularity_blocks: u32_at(b, 24),
            max_write_same_blocks: u64_at(b, 32),
        })
    }

    /// Appends the body.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u8(self.write_same_nonzero.into());
        out.put_u8(self.max_compare_blocks);
        out.put_u16(self.granularity_blocks);
        for word in [
            self.max_transfer_blocks,
            self.best_transfer_blocks,
            self.max_prefetch_blocks,
            self.max_unmap_blocks,
            self.max_unmap_descriptors,
            self.unmap_granularity_blocks,
            0,
        ] {
            out.put_u32(word);
        }
        out.put_u64(self.max_write_same_blocks);
        out.put_zeros(20);
    }
}

/// Body of page 86 (extended INQUIRY data). SIMPLE, ORDERED and HEAD OF QUEUE tasks are supported;
/// protection information is not. The loss of an I_T nexus clears its unit attentions.
/// `volatile_cache` reports a volatile cache.
pub fn extended_inquiry(volatile_cache: bool) -> [u8; 60] {
    const HEADSUP_ORDSUP_SIMPSUP: u8 = 0x07;
    const V_SUP: u8 = 0x01;
    let mut body = [0; 60];
    body[1] = HEADSUP_ORDSUP_SIMPSUP;
    body[2] = if volatile_cache { V_SUP } else { 0 };
    body
}

/// Body of page B1 (block device characteristics): a non-rotating medium without a form factor.
pub fn block_characteristics() -> [u8; 60] {
    const NOT_ROTATING: [u8; 2] = [0, 1];
    let mut body = [0; 60];
    body[..2].copy_from_slice(&NOT_ROTATING);
    body
}

/// Body of page B2 (logical block provisioning). If `thin`: UNMAP, both WRITE SAME commands with
/// UNMAP, and deallocated blocks that read as zeros. Otherwise nothing is supported.
pub fn provisioning(thin: bool) -> [u8; 4] {
    const UNMAP_WRITE_SAMES_ZEROES: u8 = 0xe4;
    const THIN: u8 = 2;
    if thin { [0, UNMAP_WRITE_SAMES_ZEROES, THIN, 0] } else { [0; 4] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_header_and_a_body() {
        let mut out = Vec::new();
        emit(0, page::SERIAL, b"abc", &mut out);
        assert_eq!(out, [0, 0x80, 0, 3, b'a', b'b', b'c']);
        assert_eq!(parse(&out), Ok((page::SERIAL, &b"abc"[..])));
        assert!((0..7).all(|len| parse(&out[..len]).is_err()));
    }

    #[test]
    fn designators_of_unit_and_ports_have_the_layout_of_the_standard() {
        let list = [
            Designator::binary(association::UNIT, 3, &[0x60; 16]),
            Designator::binary(association::PORT, 3, &[0x50, 0, 0, 0, 0, 0, 0, 1]).of_protocol(protocol::FCP),
            Designator::name(association::PORT, "iqn.x,t,0x0001").of_protocol(protocol::ISCSI),
        ];
        let mut out = Vec::new();
        list.iter().for_each(|designator| designator.emit(&mut out));
        assert_eq!(out[..4], [0x01, 0x03, 0, 16]);
        assert_eq!(out[20..24], [0x01, 0x93, 0, 8]);
        assert_eq!(out[32..36], [0x53, 0x98, 0, 16]);
        assert_eq!(Designator::parse_list(&out), Ok(list.to_vec()));
        for len in 0..out.len() {
            assert_eq!(Designator::parse_list(&out[..len]).is_ok(), [0, 20, 32].contains(&len), "{len}");
        }
    }

    #[test]
    fn block_limits_are_at_the_offsets_of_sbc() {
        let limits = BlockLimits {
            write_same_nonzero: true,
            max_compare_blocks: 0xff,
            granularity_blocks: 8,
            max_transfer_blocks: 0x1000,
            best_transfer_blocks: 0x800,
            max_prefetch_blocks: 1,
            max_unmap_blocks: 0x10_0000,
            max_unmap_descriptors: 256,
            unmap_granularity_blocks: 8,
            max_write_same_blocks: 0x2_0000,
        };
        let mut out = Vec::new();
        limits.emit(&mut out);
        assert_eq!((out.len(), &out[..8]), (60, &[1, 0xff, 0, 8, 0, 0, 0x10, 0][..]));
        // Byte 20 of the page is byte 16 of the body.
        assert_eq!(out[16..24], [0, 0x10, 0, 0, 0, 0, 1, 0]);
        assert_eq!(out[32..40], [0, 0, 0, 0, 0, 2, 0, 0]);
        assert_eq!(BlockLimits::parse(&out), Ok(limits));
        assert!((0..60).all(|len| BlockLimits::parse(&out[..len]).is_err()));
    }

    #[test]
    fn the_pages_without_parameters_have_the_bytes_of_the_standard() {
        assert_eq!(extended_inquiry(true)[..4], [0, 7, 1, 0]);
        assert_eq!(block_characteristics()[..4], [0, 1, 0, 0]);
        assert_eq!((provisioning(true), provisioning(false)), ([0, 0xe4, 2, 0], [0; 4]));
    }
}
