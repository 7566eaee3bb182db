//! SCSI over Fibre Channel (FCP): the initiator's and the target's side of an exchange.
//!
//! Both machines keep their exchanges in a vector that the exchange number indexes, with a free list, so that no command
//! allocates once the vector has grown. Every exchange stands in at most one list of equal timeouts.

pub mod initiator;
pub mod target;
mod timers;

/// Which way the data of a command flows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataDirection {
    /// No data.
    None,
    /// To the initiator.
    Read,
    /// To the target.
    Write,
}

/// Response codes of FCP_RSP (FCP, response information).
pub mod response_code {
    /// Task management function complete.
    pub const COMPLETE: u8 = 0;
    /// FCP_DATA length is not the burst length.
    pub const DATA_LENGTH: u8 = 1;
    /// Fields of FCP_CMND are invalid.
    pub const INVALID_FIELDS: u8 = 2;
    /// Task management function not supported.
    pub const TASK_MANAGEMENT_REJECTED: u8 = 4;
    /// Task management function failed.
    pub const TASK_MANAGEMENT_FAILED: u8 = 5;
    /// Task management function for a LUN that does not exist.
    pub const INVALID_LUN: u8 = 9;
}
