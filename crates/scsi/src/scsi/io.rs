//! Block I/O that a device requests of its medium.

use super::NexusId;
use crate::scsi::DataDirection;
use sanloom_wire::sense::{SenseCode, SenseKey};

/// Operation of block I/O on whole blocks of one unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IoOp {
    /// Read from the medium.
    Read,
    /// Write to the medium.
    Write,
    /// Write to the medium; the data are durable and were read back before completion.
    WriteVerify,
    /// Check that the blocks can be read, without data transfer.
    Verify,
    /// Compare data-out with the medium.
    Compare,
    /// Compare data-out, one block, with every block of the extent.
    CompareSame,
    /// Compare the first half of data-out with the medium. If they are equal, write the second
    /// half. No other I/O to the extent may intervene.
    CompareAndWrite,
    /// Write data-out, one block, to every block of the extent.
    WriteSame,
    /// Write zeros to every block of the extent.
    WriteZeroes,
    /// Unmap the blocks, which then read as zeros.
    Unmap,
    /// Make all completed writes of the extent durable. The extent may be the whole unit.
    Flush,
    /// Report whether the first block is mapped, and how many blocks from there have the same state
    /// ([`IoStatus::Mapping`]).
    Mapping,
}

impl IoOp {
    /// Direction of the data of the command.
    pub const fn direction(self) -> DataDirection {
        match self {
            IoOp::Read => DataDirection::Read,
            IoOp::Write
            | IoOp::WriteVerify
            | IoOp::Compare
            | IoOp::CompareSame
            | IoOp::CompareAndWrite
            | IoOp::WriteSame => DataDirection::Write,
            IoOp::Verify | IoOp::WriteZeroes | IoOp::Unmap | IoOp::Flush | IoOp::Mapping => DataDirection::None,
        }
    }

    /// Returns whether the operation may change the medium.
    pub const fn changes_medium(self) -> bool {
        matches!(
            self,
            IoOp::Write | IoOp::WriteVerify | IoOp::CompareAndWrite | IoOp::WriteSame | IoOp::WriteZeroes | IoOp::Unmap
        )
    }
}

/// Block I/O whose range lies within its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockIo {
    /// Index of the unit.
    pub unit: u16,
    /// Operation to carry out.
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes transferred between initiator and target; 0 if there is no data transfer.
    pub bytes: u32,
    /// Force unit access: data are durable before completion. Also set for every change of a unit
    /// without a write cache.
    pub fua: bool,
}

/// Block I/O of a task, in the form that a transport passes to its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// Task of the I/O, within its port.
    pub tag: IoTag,
    /// Nexus of the task.
    pub nexus: NexusId,
    /// Index of the unit.
    pub unit: u16,
    /// Operation to carry out.
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes transferred between initiator and target: those of the command, or fewer if the
    /// transport's expected length is smaller. A shorter write may end inside a block: a medium
    /// writes the received bytes and keeps the rest of that block, and a virtual disk writes only
    /// the blocks that are covered entirely.
    pub bytes: u32,
    /// Force unit access: data are durable before completion.
    pub fua: bool,
}

/// Identifies a task and its I/O within a port. The low half is the transport's task number, the
/// high half a generation that counts the uses of that number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct IoTag(pub u32);

impl IoTag {
    /// Combines a task number and its generation.
    pub const fn new(number: u16, generation: u16) -> IoTag {
        IoTag((generation as u32) << 16 | number as u32)
    }
    /// Task number: the slot of an iSCSI task.
    pub const fn slot(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
    /// RX_ID of the exchange of the I/O, for FCP.
    pub const fn rx_id(self) -> u16 {
        self.slot()
    }
}

/// Result of block I/O.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoStatus {
    /// Completed.
    Good,
    /// The controller's queue is full; reported as TASK SET FULL.
    TaskSetFull,
    /// The unit cannot accept the I/O now; reported as BUSY.
    Busy,
    /// The medium failed; reported as CHECK CONDITION with medium error.
    MediumError,
    /// Data-out differs from the medium.
    Miscompare {
        /// Offset in data-out of the first byte that differs.
        offset: u32,
    },
    /// No space is left for the blocks of a thin unit.
    NoSpace,
    /// The medium is another SCSI device and failed with this sense; reported as CHECK CONDITION.
    Failed {
        /// Sense key of that device.
        key: SenseKey,
        /// Additional sense code of that device.
        code: SenseCode,
    },
    /// Result of [`IoOp::Mapping`].
    Mapping {
        /// True if the first block is mapped.
        mapped: bool,
        /// Number of blocks, from the first one, in the same state.
        blocks: u64,
    },
}
