//! Basic header segments as values, defined by one table of field offsets (sections 11.3 to 11.19).
//!
//! A header value does not contain the lengths of the segments after it; [`Head`] does. Reserved
//! bits are not stored.

use super::code::AsyncEvent;
use super::{BHS_BYTES, LoginStatus, Opcode, RejectReason};
use crate::bytes::{u16_at, u32_at};
use crate::lun::LunBytes;
use std::fmt;

/// A field of constant length.
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

/// Defines the PDU types: opcode, name, bits of byte 1 that are always set, and the fields with
/// their offsets.
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

        /// Content of a basic header segment, without the lengths of the segments after it.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Header {
            $($(#[$doc])* $name($name),)*
            /// A PDU with an unsupported opcode.
            Other {
                /// The opcode.
                opcode: Opcode,
                /// Bytes 1 to 3, and bytes 8 to 47.
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
                        // Bits that are always set are not flags.
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

            /// Opcode: the type of the PDU.
            pub const fn opcode(&self) -> Opcode {
                match self {
                    $(Header::$name(_) => Opcode::$opcode,)*
                    Header::Other { opcode, .. } => *opcode,
                }
            }
        }
    };
}

/// Masks for byte 0.
const OPCODE: u8 = 0x3f;
const IMMEDIATE: u8 = 0x40;

headers! {
    /// NOP-Out: a ping, or the reply to a NOP-In (section 11.18).
    NopOut = NOP_OUT, set 0x80 {
        /// Logical unit number of the NOP-In that is answered.
        lun: LunBytes = 8,
        /// Initiator task tag; [`super::NO_TAG`] if no reply is requested.
        initiator_tag: u32 = 16,
        /// Target transfer tag of the NOP-In that is answered, or [`super::NO_TAG`].
        target_tag: u32 = 20,
        /// CmdSN: command sequence number.
        cmd_sn: u32 = 24,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
    }

    /// A SCSI command (section 11.3).
    ScsiCommand = SCSI_COMMAND, set 0x00 {
        /// FINAL, READ, WRITE and the attribute (see [`super::code::flag`]).
        flags: u8 = 1,
        /// Logical unit number.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Expected data transfer length in bytes.
        expected_bytes: u32 = 20,
        /// CmdSN: command sequence number.
        cmd_sn: u32 = 24,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
        /// The command, or its first 16 bytes.
        cdb: [u8; 16] = 32,
    }

    /// Task management request (section 11.5).
    TaskRequest = TASK_REQUEST, set 0x80 {
        /// Task management function, one of [`super::code::function`].
        function: u8 = 1,
        /// Logical unit number.
        lun: LunBytes = 8,
        /// Initiator task tag of the request itself.
        initiator_tag: u32 = 16,
        /// Initiator task tag of the task to manage, or [`super::NO_TAG`].
        referenced_tag: u32 = 20,
        /// CmdSN: command sequence number.
        cmd_sn: u32 = 24,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
        /// CmdSN of the task to manage.
        ref_cmd_sn: u32 = 32,
        /// Next DataSN or R2TSN expected for a reassigned task.
        exp_data_sn: u32 = 36,
    }

    /// A step of a login (section 11.12).
    LoginRequest = LOGIN_REQUEST, set 0x00 {
        /// TRANSIT, CONTINUE, the current stage in bits 3 and 2, the next one in bits 1 and 0.
        flags: u8 = 1,
        /// Highest supported protocol version of the initiator.
        version_max: u8 = 2,
        /// Lowest supported protocol version of the initiator.
        version_min: u8 = 3,
        /// ISID: the initiator's part of the session identifier.
        isid: [u8; 6] = 8,
        /// TSIH: the target's part of the session identifier; 0 for a new session.
        tsih: u16 = 14,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Connection identifier.
        cid: u16 = 20,
        /// CmdSN of the first command.
        cmd_sn: u32 = 24,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
    }

    /// Text request: discovery and renegotiation (section 11.10).
    TextRequest = TEXT_REQUEST, set 0x00 {
        /// FINAL and CONTINUE.
        flags: u8 = 1,
        /// Logical unit number that was received with the target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag of the previous response, or [`super::NO_TAG`].
        target_tag: u32 = 20,
        /// CmdSN: command sequence number.
        cmd_sn: u32 = 24,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
    }

    /// Data of a write (section 11.7).
    DataOut = DATA_OUT, set 0x00 {
        /// FINAL flag.
        flags: u8 = 1,
        /// Logical unit number, if there is a target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag of the R2T, or [`super::NO_TAG`] for unsolicited data.
        target_tag: u32 = 20,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
        /// DataSN: number of the PDU in its sequence.
        data_sn: u32 = 36,
        /// Offset of the segment in the data of the command, in bytes.
        offset: u32 = 40,
    }

    /// Logout request: ends a session or a connection (section 11.14).
    LogoutRequest = LOGOUT_REQUEST, set 0x80 {
        /// Reason of the logout, one of [`super::code::logout`].
        reason: u8 = 1,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Connection identifier.
        cid: u16 = 20,
        /// CmdSN: command sequence number.
        cmd_sn: u32 = 24,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
    }

    /// SNACK: request to send again, or acknowledgement of data (section 11.16).
    Snack = SNACK, set 0x80 {
        /// Type of the SNACK, one of [`super::code::snack`].
        kind: u8 = 1,
        /// Logical unit number, for Data ACK.
        lun: LunBytes = 8,
        /// Initiator task tag, or [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// Target transfer tag or SNACK tag, or [`super::NO_TAG`].
        target_tag: u32 = 20,
        /// ExpStatSN: next expected StatSN.
        exp_stat_sn: u32 = 28,
        /// First missing number.
        begin: u32 = 40,
        /// Number of missing PDUs; 0: all from `begin`.
        run: u32 = 44,
    }

    /// NOP-In: a ping, or the reply to a NOP-Out (section 11.19).
    NopIn = NOP_IN, set 0x80 {
        /// Logical unit number, if there is a target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag of the NOP-Out that is answered, or [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// Target transfer tag; [`super::NO_TAG`] if no reply is requested.
        target_tag: u32 = 20,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
    }

    /// SCSI Response: completion of a SCSI command (section 11.4).
    ScsiResponse = SCSI_RESPONSE, set 0x80 {
        /// Residual flags of [`super::code::flag`].
        flags: u8 = 1,
        /// iSCSI service response, one of [`super::code::response`].
        response: u8 = 2,
        /// SCSI status.
        status: u8 = 3,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// SNACK tag.
        snack_tag: u32 = 20,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
        /// Number of Data-In and R2T PDUs that were sent for the command.
        exp_data_sn: u32 = 36,
        /// Residual of the read part of a bidirectional command, in bytes.
        read_residual: u32 = 40,
        /// Residual count in bytes.
        residual: u32 = 44,
    }

    /// Task management response (section 11.6).
    TaskResponse = TASK_RESPONSE, set 0x80 {
        /// Response to the function, one of [`super::code::task_response`].
        response: u8 = 2,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
    }

    /// Login response (section 11.13).
    LoginResponse = LOGIN_RESPONSE, set 0x00 {
        /// TRANSIT, CONTINUE and the stages, as in [`LoginRequest`].
        flags: u8 = 1,
        /// Highest supported protocol version of the target.
        version_max: u8 = 2,
        /// Protocol version in use.
        version_active: u8 = 3,
        /// ISID: the initiator's part of the session identifier.
        isid: [u8; 6] = 8,
        /// TSIH: the target's part of the session identifier, set in the last response.
        tsih: u16 = 14,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
        /// Status class and detail.
        status: LoginStatus = 36,
    }

    /// Text response (section 11.11).
    TextResponse = TEXT_RESPONSE, set 0x00 {
        /// FINAL and CONTINUE.
        flags: u8 = 1,
        /// Logical unit number, if there is a target transfer tag.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag; [`super::NO_TAG`] if the text is complete.
        target_tag: u32 = 20,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
    }

    /// Data of a read (section 11.7).
    DataIn = DATA_IN, set 0x00 {
        /// FINAL, ACKNOWLEDGE, OVERFLOW, UNDERFLOW, STATUS.
        flags: u8 = 1,
        /// SCSI status; valid with STATUS.
        status: u8 = 3,
        /// Logical unit number; valid with ACKNOWLEDGE.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag; [`super::NO_TAG`] without ACKNOWLEDGE.
        target_tag: u32 = 20,
        /// StatSN: status sequence number; valid with STATUS.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
        /// DataSN: number of the PDU within its command.
        data_sn: u32 = 36,
        /// Offset of the segment in the data of the command, in bytes.
        offset: u32 = 40,
        /// Residual count in bytes; valid with STATUS.
        residual: u32 = 44,
    }

    /// Logout response (section 11.15).
    LogoutResponse = LOGOUT_RESPONSE, set 0x80 {
        /// Result of the logout, one of [`super::code::logout_response`].
        response: u8 = 2,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
        /// Time2Wait: minimum time before the next login, in seconds.
        time_to_wait: u16 = 40,
        /// Time2Retain: time for which the target keeps the tasks, in seconds.
        time_to_retain: u16 = 42,
    }

    /// R2T: request for data of a write (section 11.8).
    R2t = R2T, set 0x80 {
        /// Logical unit number.
        lun: LunBytes = 8,
        /// Initiator task tag.
        initiator_tag: u32 = 16,
        /// Target transfer tag that the requested Data-Out PDUs must contain.
        target_tag: u32 = 20,
        /// Next StatSN.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
        /// R2TSN: number of the R2T within its command.
        r2t_sn: u32 = 36,
        /// Offset of the requested data in the data of the command, in bytes.
        offset: u32 = 40,
        /// Length of the requested data, in bytes.
        desired_bytes: u32 = 44,
    }

    /// Asynchronous message from the target (section 11.9).
    AsyncMessage = ASYNC_MESSAGE, set 0x80 {
        /// Logical unit number, for SCSI events.
        lun: LunBytes = 8,
        /// Reserved, always [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
        /// Event code.
        event: AsyncEvent = 36,
        /// Vendor-specific event code.
        vendor_code: u8 = 37,
        /// Connection identifier, if the event concerns a connection.
        parameter1: u16 = 38,
        /// Time2Wait in seconds.
        parameter2: u16 = 40,
        /// Time2Retain in seconds, or the time limit for the requested action.
        parameter3: u16 = 42,
    }

    /// Rejected PDU; the data segment contains its header (section 11.17).
    Reject = REJECT, set 0x80 {
        /// Reason code.
        reason: RejectReason = 2,
        /// Reserved, always [`super::NO_TAG`].
        initiator_tag: u32 = 16,
        /// StatSN: status sequence number.
        stat_sn: u32 = 24,
        /// ExpCmdSN: next CmdSN that the target expects.
        exp_cmd_sn: u32 = 28,
        /// MaxCmdSN: highest CmdSN that the initiator may send.
        max_cmd_sn: u32 = 32,
        /// Next DataSN or R2TSN of the rejected task.
        data_sn: u32 = 36,
    }
}

/// A basic header segment with the lengths of the segments after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// The request is immediate, so it is not subject to command ordering.
    pub immediate: bool,
    /// Opcode-specific fields.
    pub header: Header,
    /// Length of the additional header segments, in words of four bytes.
    pub ahs_words: u8,
    /// Length of the data segment in bytes, without padding.
    pub data_bytes: u32,
}

impl Head {
    /// Header of a PDU without additional header segments and data.
    pub fn new(header: impl Into<Header>) -> Head {
        Head { immediate: false, header: header.into(), ahs_words: 0, data_bytes: 0 }
    }

    /// Header of a PDU with a data segment of `data_bytes`.
    pub fn with_data(header: impl Into<Header>, data_bytes: u32) -> Head {
        Head { data_bytes, ..Head::new(header) }
    }

    /// Reads a basic header segment. Every 48 bytes are one: an unknown opcode becomes
    /// [`Header::Other`], and unknown codes keep their values.
    pub fn parse(bytes: &[u8; BHS_BYTES]) -> Head {
        Head {
            immediate: bytes[0] & IMMEDIATE != 0,
            header: Header::get(bytes),
            ahs_words: bytes[4],
            data_bytes: u32_at(bytes, 4) & super::MAX_SEGMENT_BYTES,
        }
    }

    /// The 48 bytes in wire order.
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
    /// Current stage (see [`super::code::stage`]).
    pub const fn stage(&self) -> u8 {
        self.flags >> 2 & 3
    }

    /// Requested next stage.
    pub const fn next_stage(&self) -> u8 {
        self.flags & 3
    }
}

impl LoginResponse {
    /// Current stage (see [`super::code::stage`]).
    pub const fn stage(&self) -> u8 {
        self.flags >> 2 & 3
    }

    /// Next stage.
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
