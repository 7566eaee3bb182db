//! Properties that a disk reports: [`Properties`].

use sanloom_wire::scsi::capacity::{ReadCapacity10, ReadCapacity16};
use sanloom_wire::scsi::inquiry::StandardInquiry;
use sanloom_wire::scsi::mode;
use sanloom_wire::scsi::vpd::{self, BlockLimits, association, page};

/// Properties of a disk. A length limit of zero means that the disk reports no limit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Properties {
    /// Vendor, product and revision from INQUIRY, without trailing blanks.
    pub vendor: String,
    /// See `vendor`.
    pub product: String,
    /// See `vendor`.
    pub revision: String,
    /// Serial number from VPD page 80.
    pub serial: Option<String>,
    /// Most useful designator of the logical unit in VPD page 83.
    pub designator: Option<Designator>,
    /// Number of blocks.
    pub blocks: u64,
    /// Size of a logical block in bytes, a power of two of at least 512.
    pub block_bytes: u32,
    /// Size of a physical block in bytes.
    pub physical_block_bytes: u32,
    /// True if the medium is write-protected (MODE SENSE, WP).
    pub write_protected: bool,
    /// True if written data may be in a volatile cache (caching mode page, WCE).
    pub write_cache: bool,
    /// True if the disk obeys FUA (MODE SENSE, DPOFUA).
    pub fua: bool,
    /// True if target ports are in groups with access states (INQUIRY, TPGS).
    pub has_port_groups: bool,
    /// True if the medium rotates or the disk does not report it (VPD page B1).
    pub rotational: bool,
    /// Maximum number of blocks in one command (VPD page B0).
    pub max_transfer_blocks: u32,
    /// Optimal transfer length in blocks.
    pub optimal_transfer_blocks: u32,
    /// Thin provisioning features.
    pub provisioning: Provisioning,
}

/// Volatile write cache (SBC-3, 4.15), by the method that makes its data durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum WriteCache {
    /// No volatile cache.
    #[default]
    Absent,
    /// FUA in each command makes data durable (caching mode page, WCE; MODE SENSE, DPOFUA).
    Fua,
    /// Only SYNCHRONIZE CACHE makes data durable; FUA is ignored or refused (WCE without DPOFUA).
    Synchronize,
}

/// Thin provisioning (VPD pages B0 and B2, READ CAPACITY).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Provisioning {
    /// LBPME: blocks can be deallocated.
    pub enabled: bool,
    /// LBPU: UNMAP deallocates.
    pub unmap: bool,
    /// LBPWS: WRITE SAME (16) deallocates.
    pub write_same: bool,
    /// LBPRZ: deallocated blocks read as zeros.
    pub zeros: bool,
    /// Maximum number of blocks in an UNMAP. If it is 0, UNMAP is unusable even with
    /// [`Self::unmap`] set.
    pub max_unmap_blocks: u32,
    /// Maximum number of blocks in a WRITE SAME; 0 if not reported.
    pub max_write_same_blocks: u64,
}

/// Designator of a logical unit (SPC-4, designation descriptor).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Designator {
    /// Designator type: 1 T10 vendor ID, 2 EUI-64, 3 NAA, 8 SCSI name string.
    pub kind: u8,
    /// Designator bytes.
    pub bytes: Box<[u8]>,
}

impl Designator {
    /// Designator types in order of usefulness. NAA comes first because it is the most common one
    /// and is globally unique.
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
    /// Size of the disk in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes.into())
    }

    /// Returns the method that makes written data durable.
    pub fn cache(&self) -> WriteCache {
        match (self.write_cache, self.fua) {
            (false, _) => WriteCache::Absent,
            (true, true) => WriteCache::Fua,
            (true, false) => WriteCache::Synchronize,
        }
    }

    /// Reads standard INQUIRY data. Returns false if the unit is not a connected disk.
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

    /// Reads READ CAPACITY (16) data. Fields after the block size are optional.
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

    /// Reads READ CAPACITY (10) data.
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

    /// Reads MODE SENSE data with the caching page (SPC-4, 7.5; SBC-3, 6.4.5). Later pages may be
    /// truncated. `long` selects the header of the 10-byte command.
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

    /// Reads a vital product data page.
    pub(super) fn read_vpd(&mut self, page: u8, data: &[u8]) {
        // A page longer than the allocation length is truncated.
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
                // Older disks send a shorter page; the missing fields count as zero, that is, no
                // limit.
                if let Ok(limits) = BlockLimits::parse(&padded::<{ BlockLimits::BYTES }>(body, 0)) {
                    let ranges = limits.max_unmap_descriptors;
                    self.max_transfer_blocks = limits.max_transfer_blocks;
                    self.optimal_transfer_blocks = limits.best_transfer_blocks;
                    self.provisioning.max_unmap_blocks = if ranges == 0 { 0 } else { limits.max_unmap_blocks };
                    self.provisioning.max_write_same_blocks = limits.max_write_same_blocks;
                }
            }
            page::BLOCK_CHARACTERISTICS => {
                const NON_ROTATING: u16 = 1;
                self.rotational = body.first_chunk().is_some_and(|rate| u16::from_be_bytes(*rate) > NON_ROTATING);
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

/// Returns the most useful designator of the logical unit (SPC-4, 7.8.6), and the longer of two of
/// the same type. Parsing a truncated list ends at its last complete designator.
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

/// Returns the first `N` bytes, padded with `filler`.
fn padded<const N: usize>(data: &[u8], filler: u8) -> [u8; N] {
    std::array::from_fn(|at| data.get(at).copied().unwrap_or(filler))
}
