//! MODE SENSE and MODE SELECT parameter lists (SPC, mode parameters; SBC for the block descriptor
//! and page 08).

use crate::bytes::{Put, counted, fixed, len8, put_with_len16, slice, u16_at, u32_at, u64_at};
use crate::error::ParseError;

/// Page codes.
pub mod page {
    /// Read-write error recovery (SBC).
    pub const ERROR_RECOVERY: u8 = 0x01;
    /// Disconnect-reconnect.
    pub const DISCONNECT: u8 = 0x02;
    /// Caching (SBC).
    pub const CACHING: u8 = 0x08;
    /// Control.
    pub const CONTROL: u8 = 0x0a;
    /// Informational exceptions.
    pub const EXCEPTIONS: u8 = 0x1c;
    /// All pages.
    pub const ALL: u8 = 0x3f;
}

/// Device-specific parameter of a disk (SBC): write protected.
pub const WRITE_PROTECTED: u8 = 0x80;
/// Device-specific parameter of a disk (SBC): DPO and FUA are supported.
pub const DPO_FUA: u8 = 0x10;
/// Caching page, byte 2: the write cache is enabled (WCE).
pub const WRITE_CACHE: u8 = 0x04;
/// Control page, byte 2: sense data in descriptor format (D_SENSE).
pub const DESCRIPTOR_SENSE: u8 = 0x04;
/// Control page, byte 4: software write protect (SWP).
pub const SOFTWARE_PROTECT: u8 = 0x08;

/// A mode page with a code below 3F and no subpage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ModePage {
    /// Page code.
    pub code: u8,
    /// The page can be saved.
    pub savable: bool,
    /// The whole page from byte 0. The first two bytes are computed from code and length.
    pub bytes: Vec<u8>,
}

impl ModePage {
    /// Page of `bytes` zero bytes, its two header bytes included.
    pub fn new(code: u8, bytes: usize) -> ModePage {
        let len = bytes.max(2);
        let mut page = ModePage { code: code & 0x3f, savable: false, bytes: vec![0; len] };
        page.bytes[0] = page.code;
        page.bytes[1] = len8(len - 2);
        page
    }

    /// Returns the page with byte `at` set to `value`.
    pub fn with(mut self, at: usize, value: u8) -> ModePage {
        self.bytes[at] = value;
        self
    }
}

/// Mode parameter block descriptor: number and size of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockDescriptor {
    /// Number of blocks. The short form contains FFFFFFFF if the number does not fit.
    pub blocks: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
}

/// A mode parameter list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ModeParameters {
    /// Medium type; 0 for a disk.
    pub medium: u8,
    /// Device-specific parameter.
    pub device: u8,
    /// Block descriptor, if present.
    pub descriptor: Option<BlockDescriptor>,
    /// Pages in wire order.
    pub pages: Vec<ModePage>,
}

impl ModeParameters {
    /// Reads a whole list: of the 6-byte command, or of the 10-byte command if `long` is set.
    pub fn parse(data: &[u8], long: bool) -> Result<ModeParameters, ParseError> {
        const FIELD: &str = "mode parameter list";
        let (medium, device, header, descriptor_bytes, wide) = if long {
            let b = fixed::<8>(FIELD, data)?;
            (b[2], b[3], 8, usize::from(u16_at(b, 6)), b[4] & 1 != 0)
        } else {
            let b = fixed::<4>(FIELD, data)?;
            (b[1], b[2], 4, usize::from(b[3]), false)
        };
        let b = slice(FIELD, data, header, descriptor_bytes)?;
        let descriptor = match (descriptor_bytes, wide) {
            (0, _) => None,
            (8.., false) => {
                Some(BlockDescriptor { blocks: u32_at(b, 0).into(), block_bytes: u32_at(b, 4) & 0xff_ffff })
            }
            (16.., true) => Some(BlockDescriptor { blocks: u64_at(b, 0), block_bytes: u32_at(b, 12) }),
            _ => {
                return Err(ParseError::Length {
                    field: "block descriptor",
                    got_bytes: descriptor_bytes,
                    rule: "0, 8 or, with LONGLBA, 16 bytes",
                });
            }
        };
        let mut pages = Vec::new();
        let mut at = header + descriptor_bytes;
        while at < data.len() {
            let [first, len] = *fixed::<2>(FIELD, &data[at..])?;
            if first & 0x40 != 0 {
                return Err(ParseError::Unsupported { field: "mode subpage", got: first.into() });
            }
            let bytes = slice(FIELD, data, at, 2 + usize::from(len))?;
            pages.push(ModePage { code: first & 0x3f, savable: first & 0x80 != 0, bytes: bytes.to_vec() });
            at += bytes.len();
        }
        Ok(ModeParameters { medium, device, descriptor, pages })
    }

    /// Appends the list. The mode data length counts the bytes after itself.
    pub fn emit(&self, out: &mut Vec<u8>, long: bool) {
        if long {
            put_with_len16(out, |out| self.put_after_length(long, out));
        } else {
            out.put_len8(counted(|_, out| self.put_after_length(long, out)));
            self.put_after_length(long, out);
        }
    }

    fn put_after_length(&self, long: bool, out: &mut dyn Put) {
        out.put_slice(&[self.medium, self.device]);
        if long {
            out.put_u16(0);
            put_with_len16(out, |out| self.put_descriptor(out));
        } else {
            out.put_len8(counted(|_, out| self.put_descriptor(out)));
            self.put_descriptor(out);
        }
        for page in &self.pages {
            out.put_u8(page.code | if page.savable { 0x80 } else { 0 });
            out.put_slice(&page.bytes[1..]);
        }
    }

    fn put_descriptor(&self, out: &mut dyn Put) {
        if let Some(descriptor) = self.descriptor {
            out.put_u32(u32::try_from(descriptor.blocks).unwrap_or(u32::MAX));
            out.put_u32(descriptor.block_bytes & 0xff_ffff);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> ModeParameters {
        ModeParameters {
            medium: 0,
            device: DPO_FUA,
            descriptor: Some(BlockDescriptor { blocks: 1000, block_bytes: 512 }),
            pages: vec![ModePage::new(page::CACHING, 20).with(2, WRITE_CACHE)],
        }
    }

    #[test]
    fn the_two_forms_differ_in_their_header_only() {
        let mut short = Vec::new();
        parameters().emit(&mut short, false);
        assert_eq!(short[..4], [31, 0, 0x10, 8]);
        let mut long = Vec::new();
        parameters().emit(&mut long, true);
        assert_eq!(long[..8], [0, 34, 0, 0x10, 0, 0, 0, 8]);
        assert_eq!(short[4..], long[8..]);
        assert_eq!(short[4..15], [0, 0, 3, 0xe8, 0, 0, 2, 0, 8, 18, 4]);
        for (bytes, is_long) in [(&short, false), (&long, true)] {
            assert_eq!(ModeParameters::parse(bytes, is_long), Ok(ModeParameters { ..parameters() }));
        }
    }

    #[test]
    fn a_list_that_ends_within_a_page_is_refused() {
        let mut out = Vec::new();
        parameters().emit(&mut out, true);
        for len in 0..out.len() {
            let whole = len == 16;
            assert_eq!(ModeParameters::parse(&out[..len], true).is_ok(), whole, "{len}");
        }
    }

    #[test]
    fn a_subpage_and_a_strange_descriptor_are_refused() {
        assert!(matches!(
            ModeParameters::parse(&[0, 0, 0, 0, 0x4a, 1, 0, 0], false),
            Err(ParseError::Unsupported { got: 0x4a, .. })
        ));
        assert!(matches!(
            ModeParameters::parse(&[0, 0, 0, 4, 0, 0, 0, 0], false),
            Err(ParseError::Length { got_bytes: 4, .. })
        ));
    }
}
