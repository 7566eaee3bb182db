//! iSCSI: SCSI over TCP (RFC 7143, sections named in each file; task management of RFC 7144).
//!
//! A connection carries PDUs. A PDU has a basic header segment of 48 bytes, then additional header
//! segments ([`Ahs`]) and a header digest. A data segment, padded to four bytes, and a data digest
//! ([`digest`]) follow. [`Head`] decodes the basic header segment; [`Bhs`] gives access to single
//! fields. Both digests are negotiated. Negotiation uses text: `key=value` pairs ([`text`]).
//!
//! ```text
//!   0     48        + 4 x TotalAHSLength  + 4            + DataSegmentLength  + 0..3
//!   | BHS | AHS ... | [header digest]     | data segment | padding            | [data digest]
//! ```

mod ahs;
mod bhs;
pub mod code;
pub mod digest;
mod head;
pub mod name;
mod sense;
pub mod text;

pub use ahs::Ahs;
pub use bhs::{Bhs, at};
pub use code::{AsyncEvent, LoginStatus, Opcode, RejectReason};
pub use head::{
    AsyncMessage, DataIn, DataOut, Head, Header, LoginRequest, LoginResponse, LogoutRequest, LogoutResponse, NopIn,
    NopOut, R2t, Reject, ScsiCommand, ScsiResponse, Snack, TaskRequest, TaskResponse, TextRequest, TextResponse,
};
pub use sense::{SenseSegment, emit_sense};

/// Length of a basic header segment, in bytes.
pub const BHS_BYTES: usize = 48;
/// Default TCP port of iSCSI targets (IANA).
pub const PORT: u16 = 3260;
/// Reserved tag: as task tag "no such task", as transfer tag "no such transfer".
pub const NO_TAG: u32 = u32::MAX;
/// Largest value of DataSegmentLength.
pub const MAX_SEGMENT_BYTES: u32 = 0x00ff_ffff;
/// Longest data segment during login, and the default if no other limit was declared (section
/// 13.12).
pub const DEFAULT_SEGMENT_BYTES: u32 = 8192;

/// Number of zero bytes that pad a segment of `bytes` bytes.
pub const fn padding(bytes: u32) -> u32 {
    bytes.wrapping_neg() & 3
}
