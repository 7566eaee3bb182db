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
