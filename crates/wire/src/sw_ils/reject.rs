//! SW_RJT (FC-SW, switch fabric internal link service reject): reason and explanation.

use super::command;
use crate::bytes::Put;
use crate::bytes::fixed;
use crate::codes::codes;
use crate::error::ParseError;
use std::fmt;

/// SW_RJT (FC-SW): reason and explanation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwRjt {
    /// Reason code.
    pub reason: SwRjtReason,
    /// Reason explanation.
    pub explanation: SwRjtExplanation,
    /// Vendor specific.
    pub vendor: u8,
}

/// Length of an SW_RJT, in bytes.
pub const SW_RJT_BYTES: usize = 8;

impl SwRjt {
    /// A reject without a vendor code.
    pub const fn new(reason: SwRjtReason, explanation: SwRjtExplanation) -> SwRjt {
        SwRjt { reason, explanation, vendor: 0 }
    }

    /// Reads 8 bytes, the command word included.
    pub fn parse(payload: &[u8]) -> Result<SwRjt, ParseError> {
        let b = fixed::<SW_RJT_BYTES>("SW_RJT", payload)?;
        Ok(SwRjt { reason: SwRjtReason(b[5]), explanation: SwRjtExplanation(b[6]), vendor: b[7] })
    }

    /// Appends 8 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[command::SW_RJT, 0, 0, 0, 0, self.reason.0, self.explanation.0, self.vendor]);
    }
}

impl fmt::Display for SwRjt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SW_RJT: {}, {}", self.reason, self.explanation)
    }
}

/// Reason code of SW_RJT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwRjtReason(pub u8);

codes!(SwRjtReason, u8, "reason" {
    INVALID_COMMAND = 0x01, "invalid command";
    INVALID_REVISION = 0x02, "invalid revision";
    LOGICAL_ERROR = 0x03, "logical error";
    INVALID_SIZE = 0x04, "invalid payload size";
    LOGICAL_BUSY = 0x05, "logical busy";
    PROTOCOL_ERROR = 0x07, "protocol error";
    UNABLE = 0x09, "unable to perform";
    NOT_SUPPORTED = 0x0b, "not supported";
    VENDOR = 0xff, "vendor specific";
});

/// Reason explanation of SW_RJT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwRjtExplanation(pub u8);

codes!(SwRjtExplanation, u8, "explanation" {
    NONE = 0x00, "no additional explanation";
    CLASS_F_PARAMETERS = 0x01, "class F service parameter error";
    CLASS_N_PARAMETERS = 0x03, "class N service parameter error";
    FLOW_CONTROL_MODE = 0x04, "unknown flow control mode";
    FLOW_CONTROL_PARAMETERS = 0x05, "invalid flow control parameters";
    INVALID_PORT_NAME = 0x0d, "invalid port name";
    INVALID_SWITCH_NAME = 0x0e, "invalid switch name";
    TOV_MISMATCH = 0x0f, "R_A_TOV or E_D_TOV mismatch";
    INVALID_DOMAIN_ID_LIST = 0x10, "invalid domain identifier list";
    COMMAND_IN_PROGRESS = 0x19, "command already in progress";
    INSUFFICIENT_RESOURCES = 0x29, "insufficient resources";
    DOMAIN_UNAVAILABLE = 0x2a, "domain identifier not available";
    INVALID_DOMAIN = 0x2b, "invalid domain identifier";
    NOT_SUPPORTED = 0x2c, "request not supported";
    LINK_PARAMETERS_NOT_ESTABLISHED = 0x2d, "link parameters not yet established";
    DOMAINS_UNAVAILABLE = 0x2e, "requested domain identifiers not available";
    E_PORT_ISOLATED = 0x2f, "E_Port is isolated";
});
