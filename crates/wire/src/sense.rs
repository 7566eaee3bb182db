//! Sense data in fixed and descriptor format (SPC, sense data): the cause of an error or unit
//! attention.

use crate::bytes::{Put, fixed, put_with_len32, u32_at, u64_at};
use crate::codes::codes;
use crate::error::ParseError;
use std::fmt;

/// Sense data, in either format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sense {
    /// The error belongs to an earlier command.
    pub deferred: bool,
    /// General kind of the condition.
    pub key: SenseKey,
    /// Additional sense code and qualifier: the exact condition.
    pub code: SenseCode,
    /// INFORMATION, for example the first bad block; valid if present. Fixed format has 32 bits for
    /// it and omits larger values.
    pub information: Option<u64>,
    /// Sense-key specific bytes, valid if bit 7 of the first is set; for example the position of
    /// the invalid CDB byte.
    pub key_specific: [u8; 3],
    /// True for descriptor format on the wire, false for fixed format.
    pub descriptor: bool,
}

impl Sense {
    /// Length of fixed format as sent, in bytes.
    pub const BYTES: usize = 18;
    /// Length of descriptor format without descriptors, in bytes.
    const DESCRIPTOR_HEADER_BYTES: usize = 8;
    /// Response codes in byte 0: current and deferred errors in fixed format, then in descriptor
    /// format.
    const CURRENT: u8 = 0x70;
    const DEFERRED: u8 = 0x71;
    const DESCRIPTOR_CURRENT: u8 = 0x72;
    const DESCRIPTOR_DEFERRED: u8 = 0x73;
    /// Flag "INFORMATION is valid": in byte 0 of fixed format and byte 2 of the information
    /// descriptor.
    const VALID: u8 = 0x80;
    /// Descriptor types.
    const INFORMATION: u8 = 0x00;
    const KEY_SPECIFIC: u8 = 0x02;

    /// A current error without further information, in fixed format.
    pub const fn new(key: SenseKey, code: SenseCode) -> Sense {
        Sense { deferred: false, key, code, information: None, key_specific: [0; 3], descriptor: false }
    }

    /// Sense data for an invalid byte of the CDB (SPC, field pointer).
    pub const fn invalid_field_in_cdb(byte: u16) -> Sense {
        let [high, low] = byte.to_be_bytes();
        Sense {
            // Flags: key-specific data is valid, and the pointer refers to the CDB.
            key_specific: [0xc0, high, low],
            ..Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_CDB)
        }
    }

    /// Sense data for an invalid byte of a parameter list (SPC, field pointer).
    pub const fn invalid_field_in_list(byte: u16) -> Sense {
        let [high, low] = byte.to_be_bytes();
        Sense {
            key_specific: [0x80, high, low],
            ..Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_LIST)
        }
    }

    /// Reads sense data: at least 18 bytes of fixed format, or descriptor format. Unknown
    /// descriptors are skipped.
    pub fn parse(bytes: &[u8]) -> Result<Sense, ParseError> {
        let first = fixed::<1>("sense data", bytes)?;
        match first[0] & 0x7f {
            code @ (Self::CURRENT | Self::DEFERRED) => {
                let b = fixed::<{ Self::BYTES }>("sense data", bytes)?;
                Ok(Sense {
                    deferred: code == Self::DEFERRED,
                    key: SenseKey(b[2] & 0x0f),
                    code: SenseCode(u16::from(b[12]) << 8 | u16::from(b[13])),
                    information: (b[0] & Self::VALID != 0).then(|| u32_at(b, 3).into()),
                    key_specific: [b[15], b[16], b[17]],
                    descriptor: false,
                })
            }
            code @ (Self::DESCRIPTOR_CURRENT | Self::DESCRIPTOR_DEFERRED) => {
                Self::parse_descriptors(bytes, code == Self::DESCRIPTOR_DEFERRED)
            }
            other => Err(ParseError::Unsupported { field: "sense response code", got: other.into() }),
        }
    }

    fn parse_descriptors(bytes: &[u8], deferred: bool) -> Result<Sense, ParseError> {
        let b = fixed::<{ Self::DESCRIPTOR_HEADER_BYTES }>("sense data", bytes)?;
        let mut sense = Sense {
            deferred,
            descriptor: true,
            ..Sense::new(SenseKey(b[1] & 0x0f), SenseCode(u16::from(b[2]) << 8 | u16::from(b[3])))
        };
        let end = Self::DESCRIPTOR_HEADER_BYTES + usize::from(b[7]);
        let Some(mut rest) = bytes.get(Self::DESCRIPTOR_HEADER_BYTES..end) else {
            return Err(ParseError::Truncated { field: "sense data", needed_bytes: end, got_bytes: bytes.len() });
        };
        while let [kind, len, ..] = *rest {
            let Some((descriptor, behind)) = rest.split_at_checked(2 + usize::from(len)) else {
                break;
            };
            match (kind, descriptor.len()) {
                (Self::INFORMATION, 12) if descriptor[2] & Self::VALID != 0 => {
                    sense.information = Some(u64_at(descriptor, 4));
                }
                (Self::KEY_SPECIFIC, 8) => sense.key_specific = [descriptor[4], descriptor[5], descriptor[6]],
                _ => {}
            }
            rest = behind;
        }
        Ok(sense)
    }

    /// Deferred flag, key and code.
    pub const fn condition(&self) -> Condition {
        Condition { deferred: self.deferred, key: self.key, code: self.code }
    }

    /// Appends 18 bytes of fixed format, or 8 to 28 bytes of descriptor format.
    pub fn emit(&self, out: &mut Vec<u8>) {
        if self.descriptor {
            return self.emit_descriptors(out);
        }
        let response_code = if self.deferred { Self::DEFERRED } else { Self::CURRENT };
        let information = self.information.and_then(|value| u32::try_from(value).ok());
        out.put_u8(response_code | if information.is_some() { Self::VALID } else { 0 });
        out.put_u8(0);
        out.put_u8(self.key.0 & 0x0f);
        out.put_u32(information.unwrap_or(0));
        out.put_len8(Self::BYTES - 8);
        out.put_u32(0);
        out.put_u16(self.code.0);
        out.put_u8(0);
        out.extend_from_slice(&self.key_specific);
    }

    fn emit_descriptors(&self, out: &mut Vec<u8>) {
        let key_specific = (self.key_specific != [0; 3]).then_some(self.key_specific);
        out.put_u8(if self.deferred { Self::DESCRIPTOR_DEFERRED } else { Self::DESCRIPTOR_CURRENT });
        out.put_u8(self.key.0 & 0x0f);
        out.put_u16(self.code.0);
        put_with_len32(out, |out| {
            if let Some(information) = self.information {
                out.put_slice(&[Self::INFORMATION, 10, Self::VALID, 0]);
                out.put_u64(information);
            }
            if let Some([first, second, third]) = key_specific {
                out.put_slice(&[Self::KEY_SPECIFIC, 6, 0, 0, first, second, third, 0]);
            }
        });
    }

    /// Encoded bytes, for [`FcpRsp::sense`](crate::fcp::FcpRsp::sense).
    pub fn to_bytes(&self) -> Box<[u8]> {
        let mut out = Vec::with_capacity(Self::BYTES);
        self.emit(&mut out);
        out.into()
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.code)
    }
}

/// The part of sense data that both formats have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Condition {
    /// The error belongs to an earlier command.
    pub deferred: bool,
    /// General kind of the condition.
    pub key: SenseKey,
    /// Additional sense code and qualifier: the exact condition.
    pub code: SenseCode,
}

impl Condition {
    /// Reads fixed (70, 71) or descriptor format (72, 73) of any length. A missing code is
    /// [`SenseCode::NONE`]. Returns `None` for other response codes.
    pub fn parse(bytes: &[u8]) -> Option<Condition> {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let response_code = bytes.first()? & 0x7f;
        let (key, code) = match response_code {
            0x70 | 0x71 => (byte(2), [byte(12), byte(13)]),
            0x72 | 0x73 => (byte(1), [byte(2), byte(3)]),
            _ => return None,
        };
        Some(Condition {
            deferred: response_code & 1 != 0,
            key: SenseKey(key & 0x0f),
            code: SenseCode(u16::from_be_bytes(code)),
        })
    }

    /// True if the target port that received the command cannot serve the unit now. Its target port
    /// group is standby, unavailable or in transition (SPC-4, 5.15.2.4 and 5.15.2.5). Another port
    /// may serve the unit.
    pub fn refuses_port(&self) -> bool {
        let codes = [SenseCode::ALUA_TRANSITION, SenseCode::ALUA_STANDBY, SenseCode::ALUA_UNAVAILABLE];
        !self.deferred && self.key == SenseKey::NOT_READY && codes.contains(&self.code)
    }

    /// True if target port groups changed their state, or a state transition failed (SPC-4,
    /// 5.15.2.5).
    pub fn changes_ports(&self) -> bool {
        let codes = [SenseCode::ALUA_STATE_CHANGED, SenseCode::ALUA_TRANSITION_FAILED];
        !self.deferred && self.key == SenseKey::UNIT_ATTENTION && codes.contains(&self.code)
    }
}

/// Sense key, 0 to 15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SenseKey(pub u8);

codes!(SenseKey, u8, "sense key" {
    NO_SENSE = 0x0, "no sense";
    RECOVERED_ERROR = 0x1, "recovered error";
    NOT_READY = 0x2, "not ready";
    MEDIUM_ERROR = 0x3, "medium error";
    HARDWARE_ERROR = 0x4, "hardware error";
    ILLEGAL_REQUEST = 0x5, "illegal request";
    UNIT_ATTENTION = 0x6, "unit attention";
    DATA_PROTECT = 0x7, "data protect";
    BLANK_CHECK = 0x8, "blank check";
    VENDOR = 0x9, "vendor specific";
    COPY_ABORTED = 0xa, "copy aborted";
    ABORTED_COMMAND = 0xb, "aborted command";
    VOLUME_OVERFLOW = 0xd, "volume overflow";
    MISCOMPARE = 0xe, "miscompare";
    COMPLETED = 0xf, "completed";
});

/// Additional sense code (high byte) and its qualifier (low byte).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SenseCode(pub u16);

codes!(SenseCode, u16, "sense code" {
    NONE = 0x0000, "no additional sense information";
    BECOMING_READY = 0x0401, "logical unit is in process of becoming ready";
    NOT_READY_INITIALIZING = 0x0402, "logical unit not ready, initializing command required";
    NOT_READY_MANUAL = 0x0403, "logical unit not ready, manual intervention required";
    ALUA_TRANSITION = 0x040a, "asymmetric access state transition";
    ALUA_STANDBY = 0x040b, "target port in standby state";
    ALUA_UNAVAILABLE = 0x040c, "target port in unavailable state";
    COMMUNICATION_FAILURE = 0x0800, "logical unit communication failure";
    COMMUNICATION_TIMEOUT = 0x0801, "logical unit communication time-out";
    WRITE_ERROR = 0x0c00, "write error";
    UNRECOVERED_READ_ERROR = 0x1100, "unrecovered read error";
    PARAMETER_LIST_LENGTH = 0x1a00, "parameter list length error";
    MISCOMPARE = 0x1d00, "miscompare during verify operation";
    INVALID_OPERATION = 0x2000, "invalid command operation code";
    LBA_OUT_OF_RANGE = 0x2100, "logical block address out of range";
    INVALID_FIELD_IN_CDB = 0x2400, "invalid field in CDB";
    LUN_NOT_SUPPORTED = 0x2500, "logical unit not supported";
    INVALID_FIELD_IN_LIST = 0x2600, "invalid field in parameter list";
    INVALID_RELEASE = 0x2604, "invalid release of persistent reservation";
    WRITE_PROTECTED = 0x2700, "write protected";
    SOFTWARE_WRITE_PROTECTED = 0x2702, "logical unit software write protected";
    SPACE_EXHAUSTED = 0x2707, "space allocation failed write protect";
    POWER_ON_OR_RESET = 0x2900, "power on, reset, or bus device reset occurred";
    POWER_ON = 0x2901, "power on occurred";
    BUS_RESET = 0x2902, "SCSI bus reset occurred";
    LUN_RESET = 0x2903, "bus device reset function occurred";
    I_T_NEXUS_LOSS = 0x2907, "I_T nexus loss occurred";
    MODE_PARAMETERS_CHANGED = 0x2a01, "mode parameters changed";
    RESERVATIONS_PREEMPTED = 0x2a03, "reservations preempted";
    RESERVATIONS_RELEASED = 0x2a04, "reservations released";
    REGISTRATIONS_PREEMPTED = 0x2a05, "registrations preempted";
    ALUA_STATE_CHANGED = 0x2a06, "asymmetric access state changed";
    ALUA_TRANSITION_FAILED = 0x2a07, "implicit asymmetric access state transition failed";
    CAPACITY_CHANGED = 0x2a09, "capacity data has changed";
    COMMANDS_CLEARED = 0x2f00, "commands cleared by another initiator";
    INQUIRY_DATA_CHANGED = 0x3f03, "inquiry data has changed";
    REPORTED_LUNS_CHANGED = 0x3f0e, "reported LUNs data has changed";
    SAVING_NOT_SUPPORTED = 0x3900, "saving parameters not supported";
    INSUFFICIENT_REGISTRATIONS = 0x5504, "insufficient registration resources";
    INTERNAL_TARGET_FAILURE = 0x4400, "internal target failure";
    DATA_PHASE_ERROR = 0x4b00, "data phase error";
    OVERLAPPED_COMMANDS = 0x4e00, "overlapped commands attempted";
    SET_PORT_GROUPS_FAILED = 0x670a, "set target port groups command failed";
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_at_its_offset() {
        let sense = Sense {
            information: Some(0x0102_0304),
            ..Sense::new(SenseKey::MEDIUM_ERROR, SenseCode::UNRECOVERED_READ_ERROR)
        };
        let bytes = sense.to_bytes();
        assert_eq!(bytes[..], [0xf0, 0, 3, 1, 2, 3, 4, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0]);
        assert_eq!(Sense::parse(&bytes), Ok(sense));
    }

    #[test]
    fn points_at_the_wrong_byte_of_the_cdb() {
        assert_eq!(Sense::invalid_field_in_cdb(2).to_bytes()[15..], [0xc0, 0, 2]);
    }

    #[test]
    fn rejects_other_formats_and_short_data() {
        let mut bytes = Sense::new(SenseKey::NO_SENSE, SenseCode::NONE).to_bytes().into_vec();
        assert!(matches!(
            Sense::parse(&bytes[..17]),
            Err(ParseError::Truncated { needed_bytes: 18, got_bytes: 17, .. })
        ));
        bytes[0] = 0x7f;
        assert!(matches!(Sense::parse(&bytes), Err(ParseError::Unsupported { got: 0x7f, .. })));
    }

    #[test]
    fn descriptor_format_has_room_for_large_blocks() {
        let sense = Sense { information: Some(0x1_0000_0002), descriptor: true, ..Sense::invalid_field_in_cdb(2) };
        let bytes = sense.to_bytes();
        assert_eq!(bytes[..8], [0x72, 5, 0x24, 0, 0, 0, 0, 20]);
        assert_eq!(bytes[8..20], [0, 10, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(bytes[20..], [2, 6, 0, 0, 0xc0, 0, 2, 0]);
        assert_eq!(Sense::parse(&bytes), Ok(sense));
        for len in 0..bytes.len() {
            assert!(matches!(Sense::parse(&bytes[..len]), Err(ParseError::Truncated { .. })), "{len}");
        }
        let fixed = Sense { descriptor: false, ..sense };
        assert_eq!(Sense::parse(&fixed.to_bytes()), Ok(Sense { information: None, ..fixed }));
    }

    #[test]
    fn reads_the_condition_of_both_formats() {
        let condition =
            |deferred| Condition { deferred, key: SenseKey::UNIT_ATTENTION, code: SenseCode::CAPACITY_CHANGED };
        let fixed = Sense { deferred: true, ..Sense::new(SenseKey::UNIT_ATTENTION, SenseCode::CAPACITY_CHANGED) };
        assert_eq!(Condition::parse(&fixed.to_bytes()), Some(condition(true)));
        assert_eq!(Condition::parse(&[0x72, 0xf6, 0x2a, 0x09]), Some(condition(false)));
        assert_eq!(Condition::parse(&[0x70, 0, 6]).map(|short| short.code), Some(SenseCode::NONE));
        assert_eq!(Condition::parse(&[0x00, 0, 6, 0]), None);
        assert_eq!(Condition::parse(&[]), None);
    }

    #[test]
    fn conditions_of_the_port_are_distinguished_from_conditions_of_the_unit() {
        let (refuses, changes) = ([0x040a, 0x040b, 0x040c], [0x2a06, 0x2a07]);
        let others = [SenseCode::BECOMING_READY.0, SenseCode::MODE_PARAMETERS_CHANGED.0, SenseCode::NONE.0];
        for code in refuses.into_iter().chain(changes).chain(others) {
            for key in [SenseKey::NOT_READY, SenseKey::UNIT_ATTENTION, SenseKey::ABORTED_COMMAND] {
                let sense = Sense::new(key, SenseCode(code));
                let expected = [
                    key == SenseKey::NOT_READY && refuses.contains(&code),
                    key == SenseKey::UNIT_ATTENTION && changes.contains(&code),
                ];
                let condition = sense.condition();
                assert_eq!(Condition::parse(&sense.to_bytes()), Some(condition));
                assert_eq!([condition.refuses_port(), condition.changes_ports()], expected, "{sense}");
                // The same condition as a deferred error of an earlier command.
                let earlier = Condition { deferred: true, ..condition };
                assert!(!earlier.refuses_port() && !earlier.changes_ports(), "{sense}");
            }
        }
    }

    #[test]
    fn prints_known_and_unknown_codes() {
        let sense = Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode::LBA_OUT_OF_RANGE);
        assert_eq!(sense.to_string(), "illegal request: logical block address out of range");
        assert_eq!(SenseCode(0x1234).to_string(), "sense code 1234");
    }
}
