//! Transports other than Fibre Channel, without I/O and without payload.
//!
//! The machines count positions in a stream or packets of a queue pair, and never hold a byte that
//! is transported. All follow the contract of `sanloom_scsi`: no clock, no I/O, no hidden
//! randomness, no threads.

#![warn(missing_docs)]

pub mod infiniband;
pub mod tcp;
