//! Block I/O: what a device asks of its medium.

use super::NexusId;
use crate::fcp::DataDirection;
use sanloom_wire::sense::{SenseCode, SenseKey};

/// What block I/O does. All of it happens to whole blocks of one unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IoOp {
    /// From the medium.
    Read,
    /// To the medium.
    Write,
    /// To the medium; durable and read back before it is done.
    WriteVerify,
    /// Nothing moves: the blocks can be read.
    Verify,
    /// Data-out is compared with the medium.
    Compare,
    /// Data-out, one block, is compared with every block of the extent.
    CompareSame,
    /// The first half of data-out is compared with the medium; if it is the same, the second half is written. No other
    /// I/O to the extent comes in between.
    CompareAndWrite,
    /// Data-out, one block, is written to every block of the extent.
    WriteSame,
    /// Zeros are written to every block of the extent.
    WriteZeroes,
    /// The blocks are given back; they read as zeros.
    Unmap,
    /// Everything written before is durable. The extent may be the whole unit.
    Flush,
    /// Says whether the first block is mapped, and how many blocks from there are the same
    /// ([`IoStatus::Mapping`]).
    Mapping,
}

impl IoOp {
    /// Which way the data of the command flows.
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

    /// The medium may have changed when it is done.
    pub const fn changes_medium(self) -> bool {
        matches!(
            self,
            IoOp::Write | IoOp::WriteVerify | IoOp::CompareAndWrite | IoOp::WriteSame | IoOp::WriteZeroes | IoOp::Unmap
        )
    }
}

/// Block I/O within the range of its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockIo {
    /// Index of the unit.
    pub unit: u16,
    /// What to do.
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes that the command moves between initiator and target; 0 where nothing moves.
    pub bytes: u32,
    /// Force unit access: durable before it is done. Also set for every change of a unit without a write cache.
    pub fua: bool,
}

/// Block I/O of a task, as a transport hands it to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// Names the I/O.
    pub tag: IoTag,
    /// Who asked for it.
    pub nexus: NexusId,
    /// Index of the unit.
    pub unit: u16,
    /// What to do.
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes that move between initiator and target: those of the command, or less if the transport's expected length
    /// is less. Of a write that brings less, only the whole blocks among them are written.
    pub bytes: u32,
    /// Force unit access: durable before it is done.
    pub fua: bool,
}

/// Names a task and its I/O within a port: the transport's number in the low half, and how often it was used before in
/// the high half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct IoTag(pub u32);

impl IoTag {
    /// From a number and its generation.
    pub const fn new(number: u16, generation: u16) -> IoTag {
        IoTag((generation as u32) << 16 | number as u32)
    }
    /// The exchange that the I/O belongs to, for FCP.
    pub const fn rx_id(self) -> u16 {
        self.0 as u16
    }
}

/// How block I/O ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoStatus {
    /// Done.
    Good,
    /// The controller's queue is full: status TASK SET FULL.
    TaskSetFull,
    /// The unit cannot take it now: status BUSY.
    Busy,
    /// The medium failed: CHECK CONDITION, medium error.
    MediumError,
    /// Data-out differs from the medium, first at this byte of it.
    Miscompare {
        /// Offset of the first byte that differs.
        offset: u32,
    },
    /// No room for the blocks of a thin unit.
    NoSpace,
    /// CHECK CONDITION with this sense, of a medium that is a device of its own.
    Failed {
        /// Its key.
        key: SenseKey,
        /// Its additional code.
        code: SenseCode,
    },
    /// Answer to [`IoOp::Mapping`].
    Mapping {
        /// The blocks are mapped.
        mapped: bool,
        /// How many blocks from the first one on are the same.
        blocks: u64,
    },
}
