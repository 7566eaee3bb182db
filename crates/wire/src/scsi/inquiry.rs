//! Standard INQUIRY data (SPC-4, 6.6.2).

use crate::bytes::{Put, fixed, len8};
use crate::error::ParseError;

/// Standard INQUIRY data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StandardInquiry {
    /// Peripheral qualifier (bits 7 to 5) and device type. 00 is a disk; 7F means that the device
    /// cannot have this unit.
    pub peripheral: u8,
    /// Version of SPC; 6 is SPC-4.
    pub version: u8,
    /// Target port group support: bit 0 implicit, bit 1 explicit.
    pub port_groups: u8,
    /// The device has several target ports.
    pub multi_port: bool,
    /// Vendor, padded with blanks.
    pub vendor: [u8; 8],
    /// Product, padded with blanks.
    pub product: [u8; 16],
    /// Revision, padded with blanks.
    pub revision: [u8; 4],
    /// Version descriptors of the supported standards; at most eight.
    pub standards: Vec<u16>,
}

impl StandardInquiry {
    /// Length that every device returns, in bytes.
    pub const MIN_BYTES: usize = 36;
    /// Length with version descriptors, in bytes.
    pub const BYTES: usize = 96;
    /// Offset of the version descriptors, in bytes.
    const STANDARDS: usize = 58;
    /// Byte 3: hierarchical LUN support, and response data format 2.
    const HISUP_FORMAT_2: u8 = 0x12;
    /// Byte 6: several target ports.
    const MULTI_PORT: u8 = 0x10;
    /// Byte 7: command queuing.
    const COMMAND_QUEUING: u8 = 0x02;

    /// Reads at least 36 bytes.
    pub fn parse(data: &[u8]) -> Result<StandardInquiry, ParseError> {
        let b = fixed::<{ Self::MIN_BYTES }>("INQUIRY data", data)?;
        let end = (5 + usize::from(b[4])).min(data.len()).min(Self::STANDARDS + 16);
        let standards = data.get(Self::STANDARDS..end).unwrap_or(&[]);
        let standards = standards.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair));
        Ok(StandardInquiry {
            peripheral: b[0],
            version: b[2],
            port_groups: b[5] >> 4 & 3,
            multi_port: b[6] & Self::MULTI_PORT != 0,
            vendor: std::array::from_fn(|i| b[8 + i]),
            product: std::array::from_fn(|i| b[16 + i]),
            revision: std::array::from_fn(|i| b[32 + i]),
            standards: standards.filter(|&standard| standard != 0).collect(),
        })
    }

    /// Appends 96 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[self.peripheral, 0, self.version, Self::HISUP_FORMAT_2, len8(Self::BYTES - 5)]);
        out.put_u8((self.port_groups & 3) << 4);
        out.put_u8(if self.multi_port { Self::MULTI_PORT } else { 0 });
        out.put_u8(Self::COMMAND_QUEUING);
        out.extend_from_slice(&self.vendor);
        out.extend_from_slice(&self.product);
        out.extend_from_slice(&self.revision);
        out.resize(begin + Self::STANDARDS, 0);
        self.standards.iter().take(8).for_each(|&standard| out.put_u16(standard));
        out.resize(begin + Self::BYTES, 0);
    }
}

/// Text padded with blanks to a fixed length, for vendor, product and revision.
pub fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [b' '; N];
    let printable = text.bytes().filter(|byte| (0x20..0x7f).contains(byte));
    out.iter_mut().zip(printable).for_each(|(to, byte)| *to = byte);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_at_its_offset() {
        let inquiry = StandardInquiry {
            peripheral: 0,
            version: 6,
            port_groups: 1,
            multi_port: true,
            vendor: text("SANLOOM"),
            product: text("VIRTUAL DISK"),
            revision: text("0001"),
            standards: vec![0x00a2, 0x0460],
        };
        let mut out = Vec::new();
        inquiry.emit(&mut out);
        assert_eq!((out.len(), &out[..8]), (96, &[0, 0, 6, 0x12, 91, 0x10, 0x10, 2][..]));
        assert_eq!(&out[8..36], b"SANLOOM VIRTUAL DISK    0001");
        assert_eq!(out[58..64], [0, 0xa2, 4, 0x60, 0, 0]);
        assert_eq!(StandardInquiry::parse(&out), Ok(inquiry.clone()));
        let short = StandardInquiry { standards: Vec::new(), ..inquiry };
        assert_eq!(StandardInquiry::parse(&out[..36]), Ok(short));
        assert!((0..36).all(|len| StandardInquiry::parse(&out[..len]).is_err()));
    }
}
