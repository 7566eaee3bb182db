//! iSCSI (RFC 7143): SCSI over TCP, on the target's and the initiator's side, without sockets.
//!
//! ```text
//!   socket <-> Framer             PDU boundaries, digests
//!                |
//!                +-> target::Login ----> target::Session <-> scsi::Device
//!                |   Negotiation, Chap   SessionSeq, TaskTable
//!                |                           ^ |  Forward: READ and WRITE past the device
//!                +-> initiator::Login -> initiator::Session <-> disk::Disk
//! ```
//!
//! A driver owns a [`Framer`] and one machine for each connection. Payload never enters a machine.
//! After each header the machine returns the destination of the data segment. The driver moves the
//! data there and reports completion.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod chap;
pub mod forward;
pub mod framer;
pub mod initiator;
pub mod keys;
pub mod negotiation;
pub mod parameters;
pub mod sequence;
pub mod target;

pub use framer::{Destination, Framer, Layout};
pub use parameters::Parameters;
