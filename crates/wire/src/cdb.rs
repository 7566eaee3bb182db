//! SCSI command descriptor blocks that the workloads use (SPC, SBC), statuses and sense keys.

/// A SCSI command as a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cdb {
    /// 00
    TestUnitReady,
    /// 12
    Inquiry {
        /// Vital product data page, if EVPD is set.
        vpd_page: Option<u8>,
        /// Allocation length in bytes.
        allocation_len: u16,
    },
    /// 25
    ReadCapacity10,
    /// 9E/10
    ReadCapacity16 {
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// A0
    ReportLuns {
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// 28, 88
    Read {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// Force unit access.
        fua: bool,
    },
    /// 2A, 8A
    Write {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// Force unit access.
        fua: bool,
    },
    /// Any other.
    Other([u8; 16]),
}

/// SCSI statuses.
#[allow(missing_docs)] // the names are the standard's own
pub mod status {
    pub const GOOD: u8 = 0x00;
    pub const CHECK_CONDITION: u8 = 0x02;
    pub const BUSY: u8 = 0x08;
    pub const RESERVATION_CONFLICT: u8 = 0x18;
    pub const TASK_SET_FULL: u8 = 0x28;
    pub const TASK_ABORTED: u8 = 0x40;
}
