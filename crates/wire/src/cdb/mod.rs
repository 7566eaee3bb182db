//! SCSI command descriptor blocks (SPC, SBC) and statuses (SAM). Sense data is in [`crate::sense`],
//! parameter data in [`crate::scsi`].

mod emit;
pub mod operation;
mod parse;

use crate::codes::code_constants;
use std::fmt;

/// Length of the CDB field in FCP_CMND, in bytes. Shorter CDBs are padded with zeros.
pub const CDB_BYTES: usize = 16;

/// A SCSI command as a value. Each variant lists its operation codes in hexadecimal; a service
/// action follows after a slash.
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
        /// The sense data is requested in descriptor format.
        descriptor: bool,
        /// Allocation length in bytes.
        allocation_len: u8,
    },
    /// 1A, 5A
    ModeSense {
        /// True for the 10-byte form, which has a longer header.
        long: bool,
        /// Block descriptors are not requested.
        no_descriptor: bool,
        /// Page control: 0 current, 1 changeable, 2 default, 3 saved values.
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
        /// True for the 10-byte form, which has a longer header.
        long: bool,
        /// Pages have the format of the standard.
        page_format: bool,
        /// The pages survive a power cycle.
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
        /// 0: verify the medium only. 1: compare with data-out. 3: compare each block with the one
        /// block of data-out.
        byte_check: u8,
    },
    /// 2E, AE, 8E
    WriteAndVerify {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u32,
        /// 0: verify the medium only. 1: compare with data-out.
        byte_check: u8,
    },
    /// 35, 91
    SynchronizeCache {
        /// First block.
        lba: u64,
        /// Number of blocks; 0: up to the last block.
        blocks: u32,
        /// The status is returned before the operation has completed.
        immediate: bool,
    },
    /// 41, 93
    WriteSame {
        /// First block.
        lba: u64,
        /// Number of blocks; 0: up to the last block.
        blocks: u32,
        /// The device may deallocate the blocks.
        unmap: bool,
        /// Deallocated blocks become anchored.
        anchor: bool,
        /// There is no data-out; the device writes zeros.
        no_data: bool,
    },
    /// 42
    Unmap {
        /// Deallocated blocks become anchored.
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
        /// Number of blocks; the data-out buffer has twice as many.
        blocks: u8,
        /// Force unit access.
        fua: bool,
    },
    /// 34, 90
    Prefetch {
        /// First block.
        lba: u64,
        /// Number of blocks; 0: up to the last block.
        blocks: u32,
        /// The status is returned before the operation has completed.
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
        /// The extended header is requested.
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
        /// Command timeouts are requested.
        timeouts: bool,
        /// 0: report all commands; 1 to 3: report one command.
        options: u8,
        /// Requested operation code.
        operation: u8,
        /// Requested service action.
        action: u16,
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// A3/0D
    ReportSupportedTaskManagement {
        /// Sixteen bytes are requested instead of four.
        extended: bool,
        /// Allocation length in bytes.
        allocation_len: u32,
    },
    /// 1B
    StartStopUnit {
        /// The status is returned before the operation has completed.
        immediate: bool,
        /// Power condition; 0: `start` applies.
        power: u8,
        /// The cache is not flushed.
        no_flush: bool,
        /// The medium is loaded or ejected.
        load_eject: bool,
        /// True makes the unit ready; false stops it.
        start: bool,
    },
    /// 16: reservation of the whole unit for the sender
    Reserve6,
    /// 17: release of the whole unit by the sender
    Release6,
    /// Any other CDB. This includes known operation codes with an unsupported service action, page
    /// or protection field.
    Other([u8; 16]),
}

impl Cdb {
    /// The 16 bytes in wire order.
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
