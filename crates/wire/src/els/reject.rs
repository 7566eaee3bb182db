//! LS_RJT (FC-LS, link service reject): reason and explanation.

use crate::bytes::Put;
use crate::bytes::fixed;
use crate::codes::codes;
use crate::els::command;
use crate::error::ParseError;
use std::fmt;

/// LS_RJT (FC-LS): reason and explanation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LsRjt {
    /// Reason code.
    pub reason: LsRjtReason,
    /// Reason explanation.
    pub explanation: LsRjtExplanation,
    /// Vendor specific.
    pub vendor: u8,
}

/// Length of an LS_RJT, in bytes.
pub const LS_RJT_BYTES: usize = 8;

impl LsRjt {
    /// A reject without a vendor code.
    pub const fn new(reason: LsRjtReason, explanation: LsRjtExplanation) -> LsRjt {
        LsRjt { reason, explanation, vendor: 0 }
    }

    /// Reads 8 bytes, the command word included.
    pub fn parse(payload: &[u8]) -> Result<LsRjt, ParseError> {
        let b = fixed::<LS_RJT_BYTES>("LS_RJT", payload)?;
        Ok(LsRjt { reason: LsRjtReason(b[5]), explanation: LsRjtExplanation(b[6]), vendor: b[7] })
    }

    /// Appends 8 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[command::LS_RJT, 0, 0, 0, 0, self.reason.0, self.explanation.0, self.vendor]);
    }
}

impl fmt::Display for LsRjt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LS_RJT: {}, {}", self.reason, self.explanation)
    }
}

/// Reason code of LS_RJT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LsRjtReason(pub u8);

codes!(LsRjtReason, u8, "reason" {
    INVALID_COMMAND = 0x01, "invalid command";
    LOGICAL_ERROR = 0x03, "logical error";
    LOGICAL_BUSY = 0x05, "logical busy";
    PROTOCOL_ERROR = 0x07, "protocol error";
    UNABLE = 0x09, "unable to perform";
    NOT_SUPPORTED = 0x0b, "not supported";
    IN_PROGRESS = 0x0e, "already in progress";
    FIP_ERROR = 0x20, "FIP error";
    VENDOR = 0xff, "vendor specific";
});

/// Reason explanation of LS_RJT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LsRjtExplanation(pub u8);

codes!(LsRjtExplanation, u8, "explanation" {
    NONE = 0x00, "no additional explanation";
    OPTIONS = 0x01, "service parameter error: options";
    INITIATOR_CONTROL = 0x03, "service parameter error: initiator control";
    RECIPIENT_CONTROL = 0x05, "service parameter error: recipient control";
    RECEIVE_SIZE = 0x07, "service parameter error: receive data field size";
    CONCURRENT_SEQUENCES = 0x09, "service parameter error: concurrent sequences";
    CREDIT = 0x0b, "service parameter error: credit";
    INVALID_PORT_NAME = 0x0d, "invalid N_Port or F_Port name";
    INVALID_NODE_NAME = 0x0e, "invalid node or fabric name";
    INVALID_COMMON_PARAMETERS = 0x0f, "invalid common service parameters";
    INVALID_ASSOCIATION_HEADER = 0x11, "invalid association header";
    ASSOCIATION_HEADER_REQUIRED = 0x13, "association header required";
    INVALID_ORIGINATOR_S_ID = 0x15, "invalid originator S_ID";
    INVALID_OX_RX_ID = 0x17, "invalid OX_ID/RX_ID combination";
    REQUEST_IN_PROGRESS = 0x19, "request already in progress";
    N_PORT_LOGIN_REQUIRED = 0x1e, "N_Port login required";
    INVALID_N_PORT_ID = 0x1f, "invalid N_Port_ID";
    INVALID_SEQ_ID = 0x21, "invalid SEQ_ID";
    ABORT_OF_INVALID_EXCHANGE = 0x23, "attempt to abort an invalid exchange";
    ABORT_OF_INACTIVE_EXCHANGE = 0x25, "attempt to abort an inactive exchange";
    RECOVERY_QUALIFIER_REQUIRED = 0x27, "recovery qualifier required";
    INSUFFICIENT_RESOURCES = 0x29, "insufficient resources";
    CANNOT_SUPPLY_DATA = 0x2a, "unable to supply requested data";
    NOT_SUPPORTED = 0x2c, "request not supported";
    INVALID_PAYLOAD_LENGTH = 0x2d, "invalid payload length";
    INVALID_PORT_OR_NODE_NAME = 0x44, "invalid port or node name";
    AUTHENTICATION_REQUIRED = 0x48, "authentication required";
    MAC_ADDRESSING_MODE = 0x60, "MAC addressing mode not supported";
    BAD_PROPOSED_MAC = 0x61, "proposed MAC address incorrectly formed";
    NOT_A_VN2VN_NEIGHBOUR = 0x62, "VN2VN port not in neighbour set";
});
