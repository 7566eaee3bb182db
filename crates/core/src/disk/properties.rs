//! What a disk says about itself: [`Properties`], read from its answers.

use super::cdb::CACHING_PAGE;

/// A disk's description of itself. Lengths of zero mean: no limit told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Properties {
    /// INQUIRY: vendor, product and revision, without the blanks behind.
    pub vendor: String,
    /// See `vendor`.
    pub product: String,
    /// See `vendor`.
    pub revision: String,
    /// VPD page 80.
    pub serial: Option<String>,
    /// VPD page 83: the best name of the logical unit.
    pub designator: Option<Designator>,
    /// Number of blocks.
    pub blocks: u64,
    /// Their size in bytes, a power of two from 512 on.
    pub block_bytes: u32,
    /// Size of a physical block in bytes.
    pub physical_block_bytes: u32,
    /// Nothing may be written (MODE SENSE, WP).
    pub write_protected: bool,
    /// Written data may stand in a volatile cache (caching mode page, WCE).
    pub write_cache: bool,
    /// FUA is obeyed (MODE SENSE, DPOFUA).
    pub fua: bool,
    /// The medium turns, or does not say (VPD page B1).
    pub rotational: bool,
    /// Most blocks of one command (VPD page B0).
    pub max_transfer_blocks: u32,
    /// Blocks of the transfers that are fastest.
    pub optimal_transfer_blocks: u32,
    /// What can be given back.
    pub provisioning: Provisioning,
}

/// Thin provisioning (VPD pages B0 and B2, READ CAPACITY).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Provisioning {
    /// LBPME: blocks can be given back.
    pub enabled: bool,
    /// LBPU: by UNMAP.
    pub unmap: bool,
    /// LBPWS: by WRITE SAME(16).
    pub write_same: bool,
    /// LBPRZ: such blocks read as zeros.
    pub zeros: bool,
    /// Most blocks of an UNMAP; 0: none at all where [`Self::unmap`] is set.
    pub max_unmap_blocks: u32,
    /// Most blocks of a WRITE SAME; 0: not told.
    pub max_write_same_blocks: u64,
}

/// A name of a logical unit (SPC-4, designation descriptor).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Designator {
    /// 1 T10 vendor, 2 EUI-64, 3 NAA, 8 SCSI name.
    pub kind: u8,
    /// Its bytes.
    pub bytes: Box<[u8]>,
}

impl Designator {
    /// NAA: what is there most often and is unique in the world; the others in the order of their usefulness.
    const BY_USE: [u8; 4] = [3, 2, 8, 1];
}

impl std::fmt::Display for Designator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (prefix, text) = match self.kind {
            3 => ("naa.", false),
            2 => ("eui.", false),
            _ => ("", true),
        };
        f.write_str(prefix)?;
        for byte in &self.bytes {
            match text && (byte.is_ascii_graphic() || *byte == b' ') {
                true => write!(f, "{}", char::from(*byte))?,
                false => write!(f, "{byte:02x}")?,
            }
        }
        Ok(())
    }
}

impl Properties {
    /// Size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes.into())
    }

    /// Standard INQUIRY data (SPC-4, 6.4.2). False: not a disk.
    pub(super) fn read_inquiry(&mut self, data: &[u8]) -> bool {
        const CONNECTED_DISK: u8 = 0;
        let text = |from: usize, to: usize| {
            String::from_utf8_lossy(data.get(from..to).unwrap_or_default()).trim_end().to_owned()
        };
        (self.vendor, self.product, self.revision) = (text(8, 16), text(16, 32), text(32, 36));
        data.first() == Some(&CONNECTED_DISK)
    }

    /// READ CAPACITY(16) (SBC-3, 5.16).
    pub(super) fn read_capacity_16(&mut self, data: &[u8]) -> bool {
        let Some(b) = data.first_chunk::<32>().map(|b| &b[..]).or(data.first_chunk::<12>().map(|b| &b[..])) else {
            return false;
        };
        self.block_bytes = u32_at(b, 8);
        self.physical_block_bytes = self.block_bytes;
        if b.len() == 32 {
            self.physical_block_bytes = self.block_bytes.checked_shl((b[13] & 0x0f).into()).unwrap_or(self.block_bytes);
            self.provisioning.enabled = b[14] & 0x80 != 0;
            self.provisioning.zeros = b[14] & 0x40 != 0;
        }
        self.set_blocks(u64_at(b, 0))
    }

    /// READ CAPACITY(10) (SBC-3, 5.15).
    pub(super) fn read_capacity_10(&mut self, data: &[u8]) -> bool {
        let Some(b) = data.first_chunk::<8>() else {
            return false;
        };
        self.block_bytes = u32_at(b, 4);
        self.physical_block_bytes = self.block_bytes;
        self.set_blocks(u32_at(b, 0).into())
    }

    fn set_blocks(&mut self, last: u64) -> bool {
        self.blocks = last.saturating_add(1);
        let sensible = (512..=64 << 10).contains(&self.block_bytes) && self.block_bytes.is_power_of_two();
        sensible && self.blocks.checked_mul(self.block_bytes.into()).is_some()
    }

    /// MODE SENSE with the caching page (SPC-4, 7.5; SBC-3, 6.4.5). `long`: the 10-byte command's header.
    pub(super) fn read_mode(&mut self, data: &[u8], long: bool) -> bool {
        let (specific, descriptors, header) = match (data, long) {
            ([_, _, specific, descriptors, ..], false) => (*specific, usize::from(*descriptors), 4),
            ([_, _, _, specific, _, _, high, low, ..], true) => {
                (*specific, usize::from(u16::from_be_bytes([*high, *low])), 8)
            }
            _ => return false,
        };
        self.write_protected = specific & 0x80 != 0;
        self.fua = specific & 0x10 != 0;
        let page = data.get(header + descriptors..).unwrap_or_default();
        if let [code, _, flags, ..] = page
            && code & 0x3f == CACHING_PAGE
        {
            self.write_cache = flags & 0x04 != 0;
        }
        true
    }

    /// A vital product data page.
    pub(super) fn read_vpd(&mut self, page: u8, data: &[u8]) {
        let body = match data {
            [_, code, high, low, body @ ..] if *code == page => {
                &body[..body.len().min(u16::from_be_bytes([*high, *low]).into())]
            }
            _ => return,
        };
        match page {
            vpd::SERIAL => self.serial = Some(String::from_utf8_lossy(body).trim().to_owned()),
            vpd::IDENTIFICATION => self.designator = best_designator(body),
            vpd::BLOCK_LIMITS => {
                // SBC-3, 6.6.3; offsets of the body.
                let u32_or_0 = |at| body.get(at..at + 4).map_or(0, |b| u32_at(b, 0));
                self.max_transfer_blocks = u32_or_0(4);
                self.optimal_transfer_blocks = u32_or_0(8);
                self.provisioning.max_unmap_blocks = if u32_or_0(20) == 0 { 0 } else { u32_or_0(16) };
                self.provisioning.max_write_same_blocks = body.get(32..40).map_or(0, |b| u64_at(b, 0));
            }
            vpd::CHARACTERISTICS => {
                const DOES_NOT_TURN: u16 = 1;
                self.rotational = body.first_chunk().is_some_and(|rate| u16::from_be_bytes(*rate) > DOES_NOT_TURN);
            }
            vpd::PROVISIONING => {
                if let Some(flags) = body.get(1) {
                    self.provisioning.unmap = flags & 0x80 != 0;
                    self.provisioning.write_same = flags & 0x40 != 0;
                    self.provisioning.zeros |= flags & 0x1c != 0;
                }
            }
            _ => {}
        }
    }
}

/// Vital product data pages (SPC-4, 7.8; SBC-3, 6.6).
pub(super) mod vpd {
    pub const SUPPORTED: u8 = 0x00;
    pub const SERIAL: u8 = 0x80;
    pub const IDENTIFICATION: u8 = 0x83;
    pub const BLOCK_LIMITS: u8 = 0xb0;
    pub const CHARACTERISTICS: u8 = 0xb1;
    pub const PROVISIONING: u8 = 0xb2;
}

/// The most useful name of the logical unit itself (SPC-4, 7.8.6); the longer one of two of a kind.
fn best_designator(mut body: &[u8]) -> Option<Designator> {
    let mut best: Option<(usize, Designator)> = None;
    while let [_, flags, _, len, rest @ ..] = body {
        let Some(bytes) = rest.get(..usize::from(*len)) else {
            break;
        };
        body = &rest[bytes.len()..];
        let of_unit = flags & 0x30 == 0;
        let kind = flags & 0x0f;
        let Some(rank) = Designator::BY_USE.iter().position(|by| *by == kind).filter(|_| of_unit && *len > 0) else {
            continue;
        };
        let better = best
            .as_ref()
            .is_none_or(|(than, designator)| rank < *than || rank == *than && bytes.len() > designator.bytes.len());
        if better {
            best = Some((rank, Designator { kind, bytes: bytes.into() }));
        }
    }
    best.map(|(_, designator)| designator)
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from(u32_at(b, at)) << 32 | u64::from(u32_at(b, at + 4))
}
