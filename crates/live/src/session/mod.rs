//! The connection layer of iSCSI, for the target's side, the initiator's side and forwarding.
//!
//! ```text
//!   socket -> Unread -> PduReader -> Login or Session (a machine of sanloom-scsi)
//!          |         -> Mover (forwarding walks the headers in place)
//!          <- Egress: whole PDUs in order, status numbers, digests
//! ```
//!
//! [`crate::iscsi`] drives targets with it, [`crate::iscsi_initiator`] drives initiators. Neither
//! contains a second copy of framing, of digests or of an output queue.

pub mod buffers;
mod egress;
mod reader;
pub mod socket;
mod transport;

pub use egress::Egress;
pub use reader::{Arrived, PduReader, Step, Unread};
pub use transport::{Transport, check};

/// Size of an input buffer in bytes: the most that one read returns.
pub const INPUT_BYTES: usize = 256 << 10;
/// Reads of one connection before other connections are served.
pub const MAX_READS: usize = 8;
