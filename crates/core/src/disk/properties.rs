//! What a disk says about itself: [`Properties`], read from its answers.

use sanloom_wire::scsi::capacity::{ReadCapacity10, ReadCapacity16};
use sanloom_wire::scsi::inquiry::StandardInquiry;
use sanloom_wire::scsi::mode;
use sanloom_wire::scsi::vpd::{self, BlockLimits, association, page};

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
    /// Target ports are in groups with access states (INQUIRY, TPGS).
    pub has_port_groups: bool,
    /// The medium turns, or does not say (VPD page B1).
    pub rotational: bool,
    /// Most blocks of one command (VPD page B0).
    pub max_transfer_blocks: u32,
    /// Blocks of the transfers that are fastest.
    pub optimal_transfer_blocks: u32,
    /// What can be given back.
    pub provisioning: Provisioning,
}

/// A volatile cache of written data (SBC-3, 4.15), and what makes data in it durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum WriteCache {
    /// There is none.
    #[default]
    Absent,
    /// FUA of each command (caching mode page, WCE; MODE SENSE, DPOFUA).
    Fua,
    /// SYNCHRONIZE CACHE alone: FUA is not obeyed, or refused (WCE without DPOFUA).
    Synchronize,
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

    /// What has to be done for data that are to be durable.
    pub fn cache(&self) -> WriteCache {
        match (self.write_cache, self.fua) {
            (false, _) => WriteCache::Absent,
            (true, true) => WriteCache::Fua,
            (true, false) => WriteCache::Synchronize,
        }
    }

    /// Standard INQUIRY data. False: not a disk.
    pub(super) fn read_inquiry(&mut self, data: &[u8]) -> bool {
        const CONNECTED_DISK: u8 = 0;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if let Ok(inquiry) = StandardInquiry::parse(&padded::<{ StandardInquiry::MIN_BYTES }>(data, b' ')) {
            self.vendor = text(&inquiry.vendor);
            self.product = text(&inquiry.product);
            self.revision = text(&inquiry.revision);
            self.has_port_groups = data.len() >= StandardInquiry::MIN_BYTES && inquiry.port_groups != 0;
        }
        data.first() == Some(&CONNECTED_DISK)
    }

    /// READ CAPACITY(16). What is behind the block size need not be there.
    pub(super) fn read_capacity_16(&mut self, data: &[u8]) -> bool {
        const NEEDED_BYTES: usize = 12;
        let whole = padded::<{ ReadCapacity16::BYTES }>(data, 0);
        let Some(capacity) = ReadCapacity16::parse(&whole).ok().filter(|_| data.len() >= NEEDED_BYTES) else {
            return false;
        };
        let block_bytes = capacity.block_bytes;
        self.block_bytes = block_bytes;
        self.physical_block_bytes = block_bytes.checked_shl(capacity.physical_exponent.into()).unwrap_or(block_bytes);
        self.provisioning.enabled = capacity.thin;
        self.provisioning.zeros = capacity.zeroes;
        self.set_blocks(capacity.last_lba)
    }

    /// READ CAPACITY(10).
    pub(super) fn read_capacity_10(&mut self, data: &[u8]) -> bool {
        let Ok(capacity) = ReadCapacity10::parse(data) else {
            return false;
        };
        self.block_bytes = capacity.block_bytes;
        self.physical_block_bytes = capacity.block_bytes;
        self.set_blocks(capacity.last_lba.into())
    }

    fn set_blocks(&mut self, last: u64) -> bool {
        self.blocks = last.saturating_add(1);
        let sensible = (512..=64 << 10).contains(&self.block_bytes) && self.block_bytes.is_power_of_two();
        sensible && self.blocks.checked_mul(self.block_bytes.into()).is_some()
    }

    /// MODE SENSE with the caching page (SPC-4, 7.5; SBC-3, 6.4.5), of which the pages behind may be cut. `long`: the 10-byte
    /// command's header.
    pub(super) fn read_mode(&mut self, data: &[u8], long: bool) -> bool {
        let (specific, descriptors, header) = match (data, long) {
            ([_, _, specific, descriptors, ..], false) => (*specific, usize::from(*descriptors), 4),
            ([_, _, _, specific, _, _, high, low, ..], true) => {
                (*specific, usize::from(u16::from_be_bytes([*high, *low])), 8)
            }
            _ => return false,
        };
        self.write_protected = specific & mode::WRITE_PROTECTED != 0;
        self.fua = specific & mode::DPO_FUA != 0;
        let page = data.get(header + descriptors..).unwrap_or_default();
        if let [code, _, flags, ..] = page
            && code & mode::page::ALL == mode::page::CACHING
        {
            self.write_cache = flags & mode::WRITE_CACHE != 0;
        }
        true
    }

    /// A vital product data page.
    pub(super) fn read_vpd(&mut self, page: u8, data: &[u8]) {
        // A page that is longer than the room for it is cut.
        let body = match data {
            [_, code, high, low, body @ ..] if *code == page => {
                &body[..body.len().min(u16::from_be_bytes([*high, *low]).into())]
            }
            _ => return,
        };
        match page {
            page::SERIAL => self.serial = Some(String::from_utf8_lossy(body).trim().to_owned()),
            page::IDENTIFICATION => self.designator = best_designator(body),
            page::BLOCK_LIMITS => {
                // Older disks send less of it; zero means no limit.
                if let Ok(limits) = BlockLimits::parse(&padded::<{ BlockLimits::BYTES }>(body, 0)) {
                    let ranges = limits.max_unmap_descriptors;
                    self.max_transfer_blocks = limits.max_transfer_blocks;
                    self.optimal_transfer_blocks = limits.best_transfer_blocks;
                    self.provisioning.max_unmap_blocks = if ranges == 0 { 0 } else { limits.max_unmap_blocks };
                    self.provisioning.max_write_same_blocks = limits.max_write_same_blocks;
                }
            }
            page::BLOCK_CHARACTERISTICS => {
                const DOES_NOT_TURN: u16 = 1;
                self.rotational = body.first_chunk().is_some_and(|rate| u16::from_be_bytes(*rate) > DOES_NOT_TURN);
            }
            page::PROVISIONING => {
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

/// The most useful name of the logical unit itself (SPC-4, 7.8.6); the longer one of two of a kind. A list that is cut ends
/// with its last whole designator.
fn best_designator(mut body: &[u8]) -> Option<Designator> {
    let mut best: Option<(usize, Designator)> = None;
    while let Ok((vpd::Designator { association, kind, bytes, .. }, rest)) = vpd::Designator::parse(body) {
        body = rest;
        let of_unit = association == association::UNIT && !bytes.is_empty();
        let Some(rank) = Designator::BY_USE.iter().position(|by| *by == kind).filter(|_| of_unit) else {
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

/// The first `N` bytes; what is missing is `filler`.
fn padded<const N: usize>(data: &[u8], filler: u8) -> [u8; N] {
    std::array::from_fn(|at| data.get(at).copied().unwrap_or(filler))
}
