//! Basic header segments as values: one table that says which field stands where (sections 11.3 to 11.19).
//!
//! A value holds no lengths of what follows; [`Head`] does. Reserved bits are not kept.

use super::code::AsyncEvent;
use super::{BHS_BYTES, LoginStatus, Opcode, RejectReason};
use crate::bytes::{fixed, u16_at, u32_at};
use crate::error::ParseError;
use crate::lun::LunBytes;
use std::fmt;

/// A field of a constant length.
trait Field: Sized {
    fn get(bytes: &[u8; BHS_BYTES], at: usize) -> Self;
    fn put(self, bytes: &mut [u8; BHS_BYTES], at: usize);
}

macro_rules! fields {
    ($($type:ty, |$bytes:ident, $at:ident| $get:expr, |$value:ident| $put:expr;)*) => {$(
        impl Field for $type {
            fn get($bytes: &[u8; BHS_BYTES], $at: usize) -> $type {
                $get
            }
            fn put(self, bytes: &mut [u8; BHS_BYTES], at: usize) {
                let $value = self;
                let field = $put;
                bytes[at..at + field.len()].copy_from_slice(&field);
            }
        }
    )*};
}

fields! {
    u8, |bytes, at| bytes[at], |value| [value];
    u16, |bytes, at| u16_at(bytes, at), |value| value.to_be_bytes();
    u32, |bytes, at| u32_at(bytes, at), |value| value.to_be_bytes();
    LoginStatus, |bytes, at| LoginStatus(u16_at(bytes, at)), |value| value.0.to_be_bytes();
    RejectReason, |bytes, at| RejectReason(bytes[at]), |value| [value.0];
    AsyncEvent, |bytes, at| AsyncEvent(bytes[at]), |value| [value.0];
    [u8; 6], |bytes, at| array(bytes, at), |value| value;
    [u8; 8], |bytes, at| array(bytes, at), |value| value;
    [u8; 16], |bytes, at| array(bytes, at), |value| value;
}

fn array<const N: usize>(bytes: &[u8; BHS_BYTES], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// The PDUs: opcode, name, bits of byte 1 that are always set, and their fields with the offset of each.
macro_rules! headers {
    ($(
        $(#[$doc:meta])*
        $name:ident = $opcode:ident, set $set:literal {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $at:literal,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }
        )*

        /// What a basic header segment says, but for the lengths of what follows.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Header {
            $($(#[$doc])* $name($name),)*
            /// An opcode that has no value here.
            Other {
                /// It.
                opcode: Opcode,
                /// Byte 1 to 3, and from 8 on.
                rest: [u8; 43],
            },
        }

        $(
            impl From<$name> for Header {
                fn from(value: $name) -> Header {
                    Header::$name(value)
                }
            }
        )*

        impl Header {
            fn get(bytes: &[u8; BHS_BYTES]) -> Header {
                match Opcode(bytes[0] & OPCODE) {
                    $(Opcode::$opcode => {
                        // What is always set is no flag.
                        let mut bytes = *bytes;
                        bytes[1] &= !$set;
                        Header::$name($name { $($field: Field::get(&bytes, $at),)* })
                    })*
                    opcode => {
                        let mut rest = [0; 43];
                        rest[..3].copy_from_slice(&bytes[1..4]);
                        rest[3..].copy_from_slice(&bytes[8..]);
                        Header::Other { opcode, rest }
                    }
                }
            }

            fn put(self, bytes: &mut [u8; BHS_BYTES]) {
                match self {
                    $(Header::$name(value) => {
                        bytes[0] |= Opcode::$opcode.0;
                        $(value.$field.put(bytes, $at);)*
                        bytes[1] |= $set;
                    })*
                    Header::Other { opcode, rest } => {
                        bytes[0] |= opcode.0 & OPCODE;
                        bytes[1..4].copy_from_slice(&rest[..3]);
                        bytes[8..].copy_from_slice(&rest[3..]);
                    }
                }
            }

            /// What the PDU is.
            pub const fn opcode(&self) -> Opcode {
                match self {
                    $(Header::$name(_) => Opcode::$opcode,)*
                    Header::Other { opcode, .. } => *opcode,
                }
            }
        }
    };
}

/// Bits of byte 0.
const OPCODE: u8 = 0x3f;
const IMMEDIATE: u8 = 0x40;

headers! {
    /// NOP-Out: are you there, or the answer to that (section 11.18).
    NopOut = NOP_OUT, set 0x80 {
        /// Logical unit number of the NOP-In that it answers.
        lun: LunBytes = 8,
        /// Initiator task tag; [`super::NO_TAG`]: no answer wanted.
        initiator_tag: u32 = 16,
        /// Target transfer tag of the NOP-In that it answers, or [`super::NO_TAG`].
        target_tag: u32 = 20,
        /// Number of the command.
        cmd_sn: u32 = 24,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
    }

    /// A SCSI command (section 11.3).
    ScsiCommand = SCSI_COMMAND, set 0x00 {
        /// [`super::code::flag`]: FINAL, READ, WRITE and the attribute.
        flags: u8 = 1,
        /// Logical unit number.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Expected data transfer length in bytes.
        expected_bytes: u32 = 20,
        /// Number of the command.
        cmd_sn: u32 = 24,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
        /// The command, or its first 16 bytes.
        cdb: [u8; 16] = 32,
    }

    /// Task management (section 11.5).
    TaskRequest = TASK_REQUEST, set 0x80 {
        /// One of [`super::code::function`].
        function: u8 = 1,
        /// Logical unit number.
        lun: LunBytes = 8,
        /// Initiator task tag of the request itself.
        initiator_tag: u32 = 16,
        /// Initiator task tag of the task that it is about, or [`super::NO_TAG`].
        referenced_tag: u32 = 20,
        /// Number of the command.
        cmd_sn: u32 = 24,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
        /// Number of the command that it is about.
        ref_cmd_sn: u32 = 32,
        /// The next data of a task that is reassigned.
        exp_data_sn: u32 = 36,
    }

    /// A step of a login (section 11.12).
    LoginRequest = LOGIN_REQUEST, set 0x00 {
        /// TRANSIT, CONTINUE, the current stage in bits 3 and 2, the next one in bits 1 and 0.
        flags: u8 = 1,
        /// Newest version that the initiator knows.
        version_max: u8 = 2,
        /// Oldest version that the initiator knows.
        version_min: u8 = 3,
        /// The initiator's part of the session identifier.
        isid: [u8; 6] = 8,
        /// The target's part; 0 for a new session.
        tsih: u16 = 14,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Connection identifier.
        cid: u16 = 20,
        /// Number of the first command.
        cmd_sn: u32 = 24,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
    }

    /// Text: discovery and renegotiation (section 11.10).
    TextRequest = TEXT_REQUEST, set 0x00 {
        /// FINAL, CONTINUE.
        flags: u8 = 1,
        /// Logical unit number that came with the target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag of the answer before, or [`super::NO_TAG`].
        target_tag: u32 = 20,
        /// Number of the command.
        cmd_sn: u32 = 24,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
    }

    /// Data of a write (section 11.7).
    DataOut = DATA_OUT, set 0x00 {
        /// FINAL.
        flags: u8 = 1,
        /// Logical unit number, with a target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag of the R2T, or [`super::NO_TAG`] for unsolicited data.
        target_tag: u32 = 20,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
        /// Number of the PDU in its sequence.
        data_sn: u32 = 36,
        /// Where in the data of the command, in bytes.
        offset: u32 = 40,
    }

    /// The end of a session or connection (section 11.14).
    LogoutRequest = LOGOUT_REQUEST, set 0x80 {
        /// One of [`super::code::logout`].
        reason: u8 = 1,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Connection identifier.
        cid: u16 = 20,
        /// Number of the command.
        cmd_sn: u32 = 24,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
    }

    /// Send again, or acknowledgement of data (section 11.16).
    Snack = SNACK, set 0x80 {
        /// One of [`super::code::snack`].
        kind: u8 = 1,
        /// Logical unit number, with Data ACK.
        lun: LunBytes = 8,
        /// Initiator task tag, or [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// Target transfer tag or SNACK tag, or [`super::NO_TAG`].
        target_tag: u32 = 20,
        /// The next status that is expected.
        exp_stat_sn: u32 = 28,
        /// First number that is missing.
        begin: u32 = 40,
        /// How many; 0: all from there.
        run: u32 = 44,
    }

    /// NOP-In: are you there, or the answer to that (section 11.19).
    NopIn = NOP_IN, set 0x80 {
        /// Logical unit number, with a target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag of the NOP-Out that it answers, or [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// Target transfer tag; [`super::NO_TAG`]: no answer wanted.
        target_tag: u32 = 20,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
    }

    /// The end of a SCSI command (section 11.4).
    ScsiResponse = SCSI_RESPONSE, set 0x80 {
        /// Residual flags of [`super::code::flag`].
        flags: u8 = 1,
        /// One of [`super::code::response`].
        response: u8 = 2,
        /// SCSI status.
        status: u8 = 3,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// SNACK tag.
        snack_tag: u32 = 20,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
        /// Number of Data-In and R2T PDUs that were sent for the command.
        exp_data_sn: u32 = 36,
        /// Residual of the read part of a bidirectional command, in bytes.
        read_residual: u32 = 40,
        /// Residual in bytes.
        residual: u32 = 44,
    }

    /// The end of task management (section 11.6).
    TaskResponse = TASK_RESPONSE, set 0x80 {
        /// One of [`super::code::task_response`].
        response: u8 = 2,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
    }

    /// The target's answer to a step of a login (section 11.13).
    LoginResponse = LOGIN_RESPONSE, set 0x00 {
        /// As those of [`LoginRequest`].
        flags: u8 = 1,
        /// Newest version that the target knows.
        version_max: u8 = 2,
        /// The version that is used.
        version_active: u8 = 3,
        /// The initiator's part of the session identifier.
        isid: [u8; 6] = 8,
        /// The target's part, in the last answer.
        tsih: u16 = 14,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
        /// Class and detail.
        status: LoginStatus = 36,
    }

    /// The answer to text (section 11.11).
    TextResponse = TEXT_RESPONSE, set 0x00 {
        /// FINAL, CONTINUE.
        flags: u8 = 1,
        /// Logical unit number, with a target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag; [`super::NO_TAG`]: this was all.
        target_tag: u32 = 20,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
    }

    /// Data of a read (section 11.7).
    DataIn = DATA_IN, set 0x00 {
        /// FINAL, ACKNOWLEDGE, OVERFLOW, UNDERFLOW, STATUS.
        flags: u8 = 1,
        /// SCSI status, with STATUS.
        status: u8 = 3,
        /// Logical unit number, with ACKNOWLEDGE.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag, with ACKNOWLEDGE; otherwise [`super::NO_TAG`].
        target_tag: u32 = 20,
        /// Number of the status, with STATUS.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
        /// Number of the PDU among those of its command.
        data_sn: u32 = 36,
        /// Where in the data of the command, in bytes.
        offset: u32 = 40,
        /// Residual in bytes, with STATUS.
        residual: u32 = 44,
    }

    /// The answer to a logout (section 11.15).
    LogoutResponse = LOGOUT_RESPONSE, set 0x80 {
        /// One of [`super::code::logout_response`].
        response: u8 = 2,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
        /// Seconds to wait before the next login.
        time_to_wait: u16 = 40,
        /// Seconds for which tasks are kept.
        time_to_retain: u16 = 42,
    }

    /// Send data (section 11.8).
    R2t = R2T, set 0x80 {
        /// Logical unit number.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag.
        target_tag: u32 = 20,
        /// The next status number.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
        /// Number of the R2T among those of its command.
        r2t_sn: u32 = 36,
        /// From where in the data of the command, in bytes.
        offset: u32 = 40,
        /// How many bytes.
        desired_bytes: u32 = 44,
    }

    /// What the target tells unasked (section 11.9).
    AsyncMessage = ASYNC_MESSAGE, set 0x80 {
        /// Logical unit number, with SCSI events.
        lun: LunBytes = 8,
        /// Reserved: [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
        /// What happened.
        event: AsyncEvent = 36,
        /// Vendor's code.
        vendor_code: u8 = 37,
        /// Connection identifier, where the event is about one.
        parameter1: u16 = 38,
        /// Time2Wait in seconds.
        parameter2: u16 = 40,
        /// Time2Retain in seconds, or the time within which something is asked for.
        parameter3: u16 = 42,
    }

    /// A PDU was not taken; its header is the data segment (section 11.17).
    Reject = REJECT, set 0x80 {
        /// Why.
        reason: RejectReason = 2,
        /// Reserved: [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// Number of the status.
        stat_sn: u32 = 24,
        /// The next command that is expected.
        exp_cmd_sn: u32 = 28,
        /// The last command that may be sent.
        max_cmd_sn: u32 = 32,
        /// The next data or R2T of a task that is rejected.
        data_sn: u32 = 36,
    }
}

/// A basic header segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// A request that does not wait for its turn.
    pub immediate: bool,
    /// What the PDU is.
    pub header: Header,
    /// Additional header segments, in words of four bytes.
    pub ahs_words: u8,
    /// Bytes of the data segment, without padding.
    pub data_bytes: u32,
}

impl Head {
    /// A header without anything behind it.
    pub fn new(header: impl Into<Header>) -> Head {
        Head { immediate: false, header: header.into(), ahs_words: 0, data_bytes: 0 }
    }

    /// A header in front of data.
    pub fn with_data(header: impl Into<Header>, data_bytes: u32) -> Head {
        Head { data_bytes, ..Head::new(header) }
    }

    /// Reads 48 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Head, ParseError> {
        let bytes = fixed::<BHS_BYTES>("iSCSI header", bytes)?;
        Ok(Head {
            immediate: bytes[0] & IMMEDIATE != 0,
            header: Header::get(bytes),
            ahs_words: bytes[4],
            data_bytes: u32_at(bytes, 4) & super::MAX_SEGMENT_BYTES,
        })
    }

    /// The 48 bytes of the wire.
    pub fn to_bytes(&self) -> [u8; BHS_BYTES] {
        let mut bytes = [0; BHS_BYTES];
        bytes[0] = if self.immediate { IMMEDIATE } else { 0 };
        self.header.put(&mut bytes);
        bytes[4..8].copy_from_slice(&(self.data_bytes & super::MAX_SEGMENT_BYTES).to_be_bytes());
        bytes[4] = self.ahs_words;
        bytes
    }
}

impl LoginRequest {
    /// Stage that the request belongs to (see [`super::code::stage`]).
    pub const fn stage(&self) -> u8 {
        self.flags >> 2 & 3
    }

    /// Stage that it wants to go to.
    pub const fn next_stage(&self) -> u8 {
        self.flags & 3
    }
}

impl LoginResponse {
    /// Stage that the answer belongs to (see [`super::code::stage`]).
    pub const fn stage(&self) -> u8 {
        self.flags >> 2 & 3
    }

    /// Stage that comes next.
    pub const fn next_stage(&self) -> u8 {
        self.flags & 3
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.header.opcode())?;
        if self.immediate {
            f.write_str(" immediate")?;
        }
        if self.data_bytes > 0 {
            write!(f, " with {} bytes", self.data_bytes)?;
        }
        Ok(())
    }
}
