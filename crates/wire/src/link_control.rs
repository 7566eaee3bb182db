//! Link control frames (FC-FS, link control): acknowledgements, busies and rejects, all without a
//! data field; R_CTL and the parameter word hold their content.

use crate::codes::code_constants;
use crate::error::ParseError;
use crate::header::{FcType, Header, RCtl};

/// A link control frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkControl {
    /// ACK_1.
    Ack1,
    /// ACK_0.
    Ack0,
    /// Reject by the N_Port.
    PRjt(Reject),
    /// Reject by the fabric.
    FRjt(Reject),
    /// Busy N_Port.
    PBsy(Reject),
    /// Busy fabric, in reply to a data frame. Only the reason (0 to 15) is on the wire, in the
    /// upper half of TYPE.
    FBsy(Reject),
}

/// The parameter word of a reject or busy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reject {
    /// P_RJT and F_RJT: 1 if the sender may retry, 2 if it must not (see [`action`]).
    pub action: u8,
    /// Reason code (see [`reject_reason`], [`p_bsy_reason`] and [`f_bsy_reason`]).
    pub reason: u8,
    /// Vendor specific.
    pub vendor: u8,
}

impl LinkControl {
    /// Reads R_CTL, TYPE and parameter.
    pub fn parse(header: &Header) -> Result<LinkControl, ParseError> {
        let reject = Reject::parse(header.parameter);
        Ok(match header.r_ctl {
            RCtl::ACK_1 => LinkControl::Ack1,
            RCtl::ACK_0 => LinkControl::Ack0,
            RCtl::P_RJT => LinkControl::PRjt(reject),
            RCtl::F_RJT => LinkControl::FRjt(reject),
            RCtl::P_BSY => LinkControl::PBsy(reject),
            RCtl::F_BSY_DATA => LinkControl::FBsy(Reject { action: 0, reason: header.fc_type.0 >> 4, vendor: 0 }),
            other => {
                return Err(ParseError::Unsupported { field: "link control R_CTL", got: other.0.into() });
            }
        })
    }

    /// R_CTL of the frame.
    pub const fn r_ctl(&self) -> RCtl {
        match self {
            LinkControl::Ack1 => RCtl::ACK_1,
            LinkControl::Ack0 => RCtl::ACK_0,
            LinkControl::PRjt(_) => RCtl::P_RJT,
            LinkControl::FRjt(_) => RCtl::F_RJT,
            LinkControl::PBsy(_) => RCtl::P_BSY,
            LinkControl::FBsy(_) => RCtl::F_BSY_DATA,
        }
    }

    /// TYPE of the frame: zero, except for F_BSY, which carries its reason there.
    pub const fn fc_type(&self) -> FcType {
        match self {
            LinkControl::FBsy(busy) => FcType(busy.reason << 4),
            _ => FcType(0),
        }
    }

    /// Parameter field of the frame. That of ACK_1 acknowledges one frame.
    pub const fn parameter(&self) -> u32 {
        match self {
            LinkControl::Ack1 => 1,
            LinkControl::Ack0 | LinkControl::FBsy(_) => 0,
            LinkControl::PRjt(reject) | LinkControl::FRjt(reject) | LinkControl::PBsy(reject) => reject.to_u32(),
        }
    }
}

impl Reject {
    /// Decodes a parameter word.
    pub const fn parse(parameter: u32) -> Reject {
        let [action, reason, _, vendor] = parameter.to_be_bytes();
        Reject { action, reason, vendor }
    }

    /// Encodes the parameter word.
    pub const fn to_u32(&self) -> u32 {
        u32::from_be_bytes([self.action, self.reason, 0, self.vendor])
    }
}

/// Actions of P_RJT and F_RJT.
pub mod action {
    use super::code_constants;

    code_constants!(u8 {
        RETRYABLE = 0x01, "retryable";
        NOT_RETRYABLE = 0x02, "not retryable";
    });
}

/// Reason codes of P_RJT and F_RJT.
pub mod reject_reason {
    use super::code_constants;

    code_constants!(u8 {
        INVALID_D_ID = 0x01, "invalid D_ID";
        INVALID_S_ID = 0x02, "invalid S_ID";
        UNAVAILABLE_TEMPORARY = 0x03, "port unavailable, temporary";
        UNAVAILABLE_PERMANENT = 0x04, "port unavailable, permanent";
        CLASS_NOT_SUPPORTED = 0x05, "class not supported";
        DELIMITER_USAGE = 0x06, "delimiter usage error";
        TYPE_NOT_SUPPORTED = 0x07, "TYPE not supported";
        INVALID_LINK_CONTROL = 0x08, "invalid link control";
        INVALID_R_CTL = 0x09, "invalid R_CTL";
        INVALID_F_CTL = 0x0a, "invalid F_CTL";
        INVALID_OX_ID = 0x0b, "invalid OX_ID";
        INVALID_RX_ID = 0x0c, "invalid RX_ID";
        INVALID_SEQ_ID = 0x0d, "invalid SEQ_ID";
        INVALID_DF_CTL = 0x0e, "invalid DF_CTL";
        INVALID_SEQ_CNT = 0x0f, "invalid SEQ_CNT";
        INVALID_PARAMETER = 0x10, "invalid parameter field";
        EXCHANGE_ERROR = 0x11, "exchange error";
        PROTOCOL_ERROR = 0x12, "protocol error";
        INCORRECT_LENGTH = 0x13, "incorrect length";
        UNEXPECTED_ACK = 0x14, "unexpected ACK";
        CLASS_NOT_SUPPORTED_BY_F_PORT = 0x15, "class not supported by FFFFFE";
        LOGIN_REQUIRED = 0x16, "login required";
        EXCESSIVE_SEQUENCES = 0x17, "too many sequences";
        EXCHANGE_NOT_ESTABLISHED = 0x18, "exchange not established";
        PATH_UNAVAILABLE = 0x1a, "fabric path unavailable";
        INVALID_VC_ID = 0x1b, "invalid VC_ID";
        INVALID_CS_CTL = 0x1c, "invalid CS_CTL";
        INSUFFICIENT_RESOURCES = 0x1d, "insufficient resources";
        INVALID_CLASS = 0x1f, "invalid class of service";
        PREEMPTION_REJECTED = 0x20, "preemption rejected";
        PREEMPTION_NOT_ENABLED = 0x21, "preemption not enabled";
        MULTICAST_ERROR = 0x22, "multicast error";
        MULTICAST_TERMINATE = 0x23, "multicast error, terminate";
        PROCESS_LOGIN_REQUIRED = 0x24, "process login required";
        INVALID_ATTACHMENT = 0x25, "invalid attachment";
        VENDOR = 0xff, "vendor specific";
    });
}

/// Reason codes of P_BSY.
pub mod p_bsy_reason {
    use super::code_constants;

    code_constants!(u8 {
        PORT_BUSY = 0x01, "physical N_Port busy";
        RESOURCE_BUSY = 0x03, "N_Port resource busy";
        PARTIAL_MULTICAST = 0x07, "partial multicast busy";
        VENDOR = 0xff, "vendor specific";
    });
}

/// Reason codes of F_BSY.
pub mod f_bsy_reason {
    use super::code_constants;

    code_constants!(u8 {
        FABRIC_BUSY = 0x01, "fabric busy";
        N_PORT_BUSY = 0x03, "N_Port busy";
    });
}

impl std::fmt::Display for LinkControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = match self {
            LinkControl::Ack1 | LinkControl::Ack0 => return self.r_ctl().fmt(f),
            LinkControl::PRjt(reject) | LinkControl::FRjt(reject) => reject_reason::name(reject.reason),
            LinkControl::PBsy(busy) => p_bsy_reason::name(busy.reason),
            LinkControl::FBsy(busy) => f_bsy_reason::name(busy.reason),
        };
        write!(f, "{}: {}", self.r_ctl(), reason.unwrap_or("unknown reason"))
    }
}
