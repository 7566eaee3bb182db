//! SCSI command descriptor blocks (SPC, SBC) and statuses (SAM). Sense data is in [`crate::sense`], parameter data in
//! [`crate::scsi`].

mod emit;
pub mod operation;
mod parse;

use crate::codes::code_constants;
use std::fmt;

/// Bytes of a CDB in FCP_CMND; shorter ones are followed by zeros.
pub const CDB_BYTES: usize = 16;

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
    /// 08, 28, A8, 88
    Read {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// Force unit access.
        fua: bool,
    },
    /// 0A, 2A, AA, 8A
    Write {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// Force unit access.
        fua: bool,
    },
    /// 03
    RequestSense {
        /// Descriptor format wanted.
        descriptor: bool,
        /// Allocation length in bytes.
        allocation_len: u8,
    },
    /// 1A, 5A
    ModeSense {
        /// The 10-byte form, whose header is longer.
        long: bool,
        /// No block descriptor wanted.
        no_descriptor: bool,
        /// Which values: 0 current, 1 changeable, 2 default, 3 saved.
        control: u8,
        /// Page code; 3F: all.
        page: u8,
        /// Subpage code; FF: all.
        subpage: u8,
        /// Allocation length in bytes.
        allocation_len: u16,
    },
    /// 15, 55
    ModeSelect {
        /// The 10-byte form, whose header is longer.
        long: bool,
        /// Pages as the standard has them.
        page_format: bool,
        /// Keep the pages over a power cycle.
        save: bool,
        /// Parameter list length in bytes.
        list_len: u16,
    },
    /// 2F, AF, 8F
    Verify {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// 0: the medium alone; 1: compare with data-out; 3: compare each block with one block of data-out.
        byte_check: u8,
    },
    /// 2E, AE, 8E
    WriteAndVerify {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// 0: the medium alone; 1: compare with data-out.
        byte_check: u8,
    },
    /// 35, 91
    SynchronizeCache {
        /// First block.
        lba: u64,
        /// Number of blocks; 0: to the end.
        blocks: u32,
        /// Answer before it is done.
        immediate: bool,
    },
    /// 41, 93
    WriteSame {
        /// First block.
        lba: u64,
        /// Number of blocks; 0: to the end.
        blocks: u32,
        /// The blocks may be given back.
        unmap: bool,
        /// The blocks are anchored when they are given back.
        anchor: bool,
        /// No data-out: zeros are written.
        no_data: bool,
    },
    /// 42
    Unmap {
        /// The blocks are anchored.
        anchor: bool,
        /// Parameter list length in bytes.
        list_len: u16,
    },
    /// 9E/12
    GetLbaStatus {
        /// First block.
        lba: u64,
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// 89
    CompareAndWrite {
        /// First block.
        lba: u64,
        /// Number of blocks; data-out is twice as long.
        blocks: u8,
        /// Force unit access.
        fua: bool,
    },
    /// 34, 90
    Prefetch {
        /// First block.
        lba: u64,
        /// Number of blocks; 0: to the end.
        blocks: u32,
        /// Answer before it is done.
        immediate: bool,
    },
    /// 5E
    PersistentReserveIn {
        /// Service action (see [`crate::scsi::reservation::in_action`]).
        action: u8,
        /// Allocation length in bytes.
        allocation_len: u16,
    },
    /// 5F
    PersistentReserveOut {
        /// Service action (see [`crate::scsi::reservation::out_action`]).
        action: u8,
        /// Scope; 0: the logical unit.
        scope: u8,
        /// Type (see [`crate::scsi::reservation::kind`]).
        kind: u8,
        /// Parameter list length in bytes.
        list_len: u32,
    },
    /// A3/0A
    ReportTargetPortGroups {
        /// Extended header wanted.
        extended: bool,
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// A4/0A
    SetTargetPortGroups {
        /// Parameter list length in bytes (see [`crate::scsi::port_groups`]).
        list_len: u32,
    },
    /// A3/0C
    ReportSupportedOperations {
        /// Command timeouts wanted.
        timeouts: bool,
        /// 0: all; 1 to 3: one.
        options: u8,
        /// Operation code asked about.
        operation: u8,
        /// Service action asked about.
        action: u16,
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// A3/0D
    ReportSupportedTaskManagement {
        /// Sixteen bytes wanted instead of four.
        extended: bool,
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// 1B
    StartStopUnit {
        /// Answer before it is done.
        immediate: bool,
        /// Power condition; 0: what `start` says.
        power: u8,
        /// Leave the cache as it is.
        no_flush: bool,
        /// Load or eject the medium.
        load_eject: bool,
        /// Make the unit ready; otherwise stop it.
        start: bool,
    },
    /// 16, of the whole unit for the sender
    Reserve6,
    /// 17, of the whole unit by the sender
    Release6,
    /// Any other: also a known operation code with a service action, a page or a protection field that has no value here.
    Other([u8; 16]),
}

impl Cdb {
    /// The 16 bytes of the wire.
    pub fn to_bytes(&self) -> [u8; CDB_BYTES] {
        let mut out = [0; CDB_BYTES];
        self.emit(&mut out);
        out
    }

    /// The operation code that [`emit`](Self::emit) writes (see [`operation`]).
    pub fn operation(&self) -> u8 {
        self.to_bytes()[0]
    }
}

impl fmt::Display for Cdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation();
        match operation::name(operation) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "operation {operation:02x}")?,
        }
        match self {
            Cdb::Inquiry { vpd_page: Some(page), .. } => write!(f, " page {page:02x}"),
            Cdb::Read { lba, blocks, .. }
            | Cdb::Write { lba, blocks, .. }
            | Cdb::Verify { lba, blocks, .. }
            | Cdb::WriteAndVerify { lba, blocks, .. }
            | Cdb::SynchronizeCache { lba, blocks, .. }
            | Cdb::WriteSame { lba, blocks, .. }
            | Cdb::Prefetch { lba, blocks, .. } => write!(f, " {blocks} blocks at {lba}"),
            Cdb::CompareAndWrite { lba, blocks, .. } => write!(f, " {blocks} blocks at {lba}"),
            Cdb::ModeSense { page, subpage, .. } => write!(f, " page {page:02x}/{subpage:02x}"),
            Cdb::PersistentReserveIn { action, .. } | Cdb::PersistentReserveOut { action, .. } => {
                write!(f, " action {action:02x}")
            }
            _ => Ok(()),
        }
    }
}

/// SCSI statuses (SAM).
pub mod status {
    use super::code_constants;

    code_constants!(u8 {
        GOOD = 0x00, "GOOD";
        CHECK_CONDITION = 0x02, "CHECK CONDITION";
        CONDITION_MET = 0x04, "CONDITION MET";
        BUSY = 0x08, "BUSY";
        RESERVATION_CONFLICT = 0x18, "RESERVATION CONFLICT";
        TASK_SET_FULL = 0x28, "TASK SET FULL";
        ACA_ACTIVE = 0x30, "ACA ACTIVE";
        TASK_ABORTED = 0x40, "TASK ABORTED";
    });
}

#[cfg(test)]
mod tests;
