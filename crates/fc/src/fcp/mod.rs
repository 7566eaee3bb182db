//! SCSI over Fibre Channel (FCP): initiator and target side of an exchange.
//!
//! Both machines store their exchanges in a vector indexed by exchange number, with a free list. No
//! command allocates memory once the vector has grown. Every exchange is in at most one timer list.

pub mod initiator;
pub mod target;
mod timers;
