//! FCP information units (FCP, IU formats).

/// FCP_CMND with a CDB of at most 16 bytes, 32 bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FcpCmnd {
    /// The eight LUN bytes of SAM.
    pub lun: [u8; 8],
    /// Command reference number.
    pub crn: u8,
    /// Priority and task attribute; low 3 bits: 0 simple, 1 head of queue, 2 ordered, 4 ACA.
    pub attribute: u8,
    /// Task management flags (see [`task_management`]); 0: a command.
    pub task_management: u8,
    /// Bit 0: write data, bit 1: read data.
    pub flags: u8,
    /// The CDB, zero filled.
    pub cdb: [u8; 16],
    /// FCP_DL in bytes.
    pub data_len: u32,
}

/// Task management flags of FCP_CMND.
#[allow(missing_docs)] // the names are the standard's own
pub mod task_management {
    pub const ABORT_TASK_SET: u8 = 0x02;
    pub const CLEAR_TASK_SET: u8 = 0x04;
    pub const LUN_RESET: u8 = 0x10;
    pub const TARGET_RESET: u8 = 0x20;
    pub const CLEAR_ACA: u8 = 0x40;
}

impl FcpCmnd {
    /// Flag: data flows to the target.
    pub const WRITE: u8 = 0x01;
    /// Flag: data flows to the initiator.
    pub const READ: u8 = 0x02;
}

/// FCP_XFER_RDY, 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FcpXferRdy {
    /// First byte wanted.
    pub offset: u32,
    /// Bytes wanted.
    pub burst_len: u32,
}

/// FCP_RSP: 24 bytes, then response information and sense data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FcpRsp {
    /// SCSI status.
    pub status: u8,
    /// Retry delay timer.
    pub retry_delay: u16,
    /// What was not transferred, where it is reported.
    pub residual: Residual,
    /// The target wants FCP_CONF.
    pub confirm: bool,
    /// FCP response code, where response information is present.
    pub response_code: Option<u8>,
    /// Sense data, where present.
    pub sense: Option<Box<[u8]>>,
}

/// Residual of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Residual {
    /// All of FCP_DL was transferred.
    None,
    /// Bytes of FCP_DL that were not transferred.
    Under(u32),
    /// Bytes that did not fit into FCP_DL.
    Over(u32),
}
