//! iSCSI (RFC 7143): SCSI over TCP, the target's and the initiator's side, without sockets.
//!
//! ```text
//!   socket <-> Framer             where a PDU begins and ends, digests
//!                |
//!                +-> target::Login ----> target::Session <-> scsi::Device
//!                |   Negotiation, Chap   SessionSeq, TaskTable
//!                |                           ^ |  Forward: READ and WRITE past the device's buffers
//!                +-> initiator::Login -> initiator::Session <-> disk::Disk
//! ```
//!
//! A driver owns a [`Framer`] and one machine for each connection. Payload never enters a machine: after each header the
//! machine says where the data segment goes, the driver moves it there, and says so.

pub mod chap;
pub mod forward;
pub mod framer;
pub mod initiator;
pub mod negotiation;
pub mod parameters;
pub mod sequence;
pub mod target;

pub use framer::Framer;
pub use parameters::Parameters;
