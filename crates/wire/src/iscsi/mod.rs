//! iSCSI: SCSI over TCP (RFC 7143, sections named in each file; task management of RFC 7144).
//!
//! Everything on a connection is a PDU: a basic header segment of 48 bytes ([`Head`], or [`Bhs`] where only some of its
//! fields count), additional header segments ([`Ahs`]), a header digest, a data segment that is padded to four bytes, and a
//! data digest ([`digest`]). Both digests are negotiated. Negotiation is text: `key=value` pairs ([`text`]).
//!
//! ```text
//!   0        48            + 4 x TotalAHSLength  + 4                  + DataSegmentLength  + 0..3   + 4
//!   | BHS     | AHS ...     | [header digest]     | data segment       | padding            | [data digest]
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

/// Bytes of a basic header segment.
pub const BHS_BYTES: usize = 48;
/// Port of iSCSI targets where nothing else is said (IANA).
pub const PORT: u16 = 3260;
/// "No such task" and "no such transfer", as task tag.
pub const NO_TAG: u32 = u32::MAX;
/// Largest value of DataSegmentLength.
pub const MAX_SEGMENT_BYTES: u32 = 0x00ff_ffff;
/// Longest data segment during login, and where nothing else was declared (section 13.12).
pub const DEFAULT_SEGMENT_BYTES: u32 = 8192;

/// Zero bytes behind a segment of this length.
pub const fn padding(bytes: u32) -> u32 {
    bytes.wrapping_neg() & 3
}
