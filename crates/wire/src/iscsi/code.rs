//! Codes of iSCSI: opcodes, flags, statuses, reasons.

use crate::codes::{code_constants, codes};

/// Opcode: the type of a PDU (section 11.2.1.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Opcode(pub u8);

codes!(Opcode, u8, "opcode" {
    NOP_OUT = 0x00, "NOP-Out";
    SCSI_COMMAND = 0x01, "SCSI Command";
    TASK_REQUEST = 0x02, "Task Management Function Request";
    LOGIN_REQUEST = 0x03, "Login Request";
    TEXT_REQUEST = 0x04, "Text Request";
    DATA_OUT = 0x05, "SCSI Data-Out";
    LOGOUT_REQUEST = 0x06, "Logout Request";
    SNACK = 0x10, "SNACK Request";
    NOP_IN = 0x20, "NOP-In";
    SCSI_RESPONSE = 0x21, "SCSI Response";
    TASK_RESPONSE = 0x22, "Task Management Function Response";
    LOGIN_RESPONSE = 0x23, "Login Response";
    TEXT_RESPONSE = 0x24, "Text Response";
    DATA_IN = 0x25, "SCSI Data-In";
    LOGOUT_RESPONSE = 0x26, "Logout Response";
    R2T = 0x31, "Ready To Transfer";
    ASYNC_MESSAGE = 0x32, "Asynchronous Message";
    REJECT = 0x3f, "Reject";
});

/// Flags in byte 1 of most PDUs.
pub mod flag {
    /// The last PDU of a sequence.
    pub const FINAL: u8 = 0x80;
    /// SCSI Command: the command reads data.
    pub const READ: u8 = 0x40;
    /// SCSI Command: the command writes data.
    pub const WRITE: u8 = 0x20;
    /// SCSI Command: the task attribute.
    pub const ATTRIBUTE: u8 = 0x07;
    /// SCSI Data-In: the initiator must acknowledge the data with a SNACK.
    pub const ACKNOWLEDGE: u8 = 0x40;
    /// SCSI Data-In: the PDU contains the status.
    pub const STATUS: u8 = 0x01;
    /// SCSI Response and Data-In: the command had more data than expected.
    pub const OVERFLOW: u8 = 0x04;
    /// SCSI Response and Data-In: the command had less data than expected.
    pub const UNDERFLOW: u8 = 0x02;
    /// SCSI Response: overflow of the read part of a bidirectional command.
    pub const READ_OVERFLOW: u8 = 0x10;
    /// SCSI Response: underflow of the read part of a bidirectional command.
    pub const READ_UNDERFLOW: u8 = 0x08;
    /// Login: transition to the next stage.
    pub const TRANSIT: u8 = 0x80;
    /// Login and text: the text continues in the next PDU.
    pub const CONTINUE: u8 = 0x40;
}

/// Task attributes (section 11.3.1.2).
pub mod attribute {
    use super::code_constants;
    code_constants!(u8 {
        UNTAGGED = 0, "Untagged";
        SIMPLE = 1, "Simple";
        ORDERED = 2, "Ordered";
        HEAD_OF_QUEUE = 3, "Head of queue";
        ACA = 4, "ACA";
    });
}

/// Response of a SCSI Response PDU (section 11.4.3).
pub mod response {
    use super::code_constants;
    code_constants!(u8 {
        COMPLETED = 0x00, "Command completed at target";
        TARGET_FAILURE = 0x01, "Target failure";
    });
}

/// Task management functions (section 11.5.1; RFC 7144, section 5.1).
pub mod function {
    use super::code_constants;
    code_constants!(u8 {
        ABORT_TASK = 1, "ABORT TASK";
        ABORT_TASK_SET = 2, "ABORT TASK SET";
        CLEAR_ACA = 3, "CLEAR ACA";
        CLEAR_TASK_SET = 4, "CLEAR TASK SET";
        LUN_RESET = 5, "LOGICAL UNIT RESET";
        WARM_RESET = 6, "TARGET WARM RESET";
        COLD_RESET = 7, "TARGET COLD RESET";
        TASK_REASSIGN = 8, "TASK REASSIGN";
        QUERY_TASK = 9, "QUERY TASK";
        QUERY_TASK_SET = 10, "QUERY TASK SET";
        NEXUS_RESET = 11, "I_T NEXUS RESET";
        QUERY_ASYNCHRONOUS_EVENT = 12, "QUERY ASYNCHRONOUS EVENT";
    });
}

/// Responses to task management functions (section 11.6.1).
pub mod task_response {
    use super::code_constants;
    code_constants!(u8 {
        COMPLETE = 0, "Function complete";
        NO_TASK = 1, "Task does not exist";
        NO_LUN = 2, "LUN does not exist";
        STILL_ALLEGIANT = 3, "Task still allegiant";
        NO_REASSIGNMENT = 4, "Task allegiance reassignment not supported";
        NOT_SUPPORTED = 5, "Task management function not supported";
        NOT_AUTHORIZED = 6, "Function authorization failed";
        SUCCEEDED = 7, "Function succeeded";
        REJECTED = 255, "Function rejected";
    });
}

/// Stages of a login (section 11.12.3).
pub mod stage {
    use super::code_constants;
    code_constants!(u8 {
        SECURITY = 0, "Security negotiation";
        OPERATIONAL = 1, "Login operational negotiation";
        FULL_FEATURE = 3, "Full feature phase";
    });
}

/// Status class (high byte) and detail (low byte) of a Login Response (section 11.13.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoginStatus(pub u16);

codes!(LoginStatus, u16, "login status" {
    SUCCESS = 0x0000, "success";
    MOVED_TEMPORARILY = 0x0101, "target moved temporarily";
    MOVED_PERMANENTLY = 0x0102, "target moved permanently";
    INITIATOR_ERROR = 0x0200, "initiator error";
    AUTHENTICATION_FAILURE = 0x0201, "authentication failure";
    AUTHORIZATION_FAILURE = 0x0202, "authorization failure";
    NOT_FOUND = 0x0203, "target not found";
    REMOVED = 0x0204, "target removed";
    UNSUPPORTED_VERSION = 0x0205, "unsupported version";
    TOO_MANY_CONNECTIONS = 0x0206, "too many connections";
    MISSING_PARAMETER = 0x0207, "missing parameter";
    CANNOT_INCLUDE = 0x0208, "cannot include in session";
    SESSION_TYPE = 0x0209, "session type not supported";
    NO_SESSION = 0x020a, "session does not exist";
    INVALID_REQUEST = 0x020b, "invalid during login";
    TARGET_ERROR = 0x0300, "target error";
    SERVICE_UNAVAILABLE = 0x0301, "service unavailable";
    OUT_OF_RESOURCES = 0x0302, "out of resources";
});

impl LoginStatus {
    /// True if the login continues or is complete.
    pub const fn is_success(self) -> bool {
        self.0 >> 8 == 0
    }

    /// True if the initiator must log in at another address, which the response contains.
    pub const fn is_redirection(self) -> bool {
        self.0 >> 8 == 1
    }

    /// Name of the status class, which is the high byte.
    pub const fn class_name(self) -> &'static str {
        match self.0 >> 8 {
            0 => "success",
            1 => "redirection",
            2 => "initiator error",
            3 => "target error",
            _ => "status class",
        }
    }

    /// True for an initiator error: the initiator should not repeat the same request. All other
    /// failures are target errors and may be temporary.
    pub const fn is_initiator_error(self) -> bool {
        self.0 >> 8 == 2
    }
}

/// Reason of a Reject PDU (section 11.17.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RejectReason(pub u8);

codes!(RejectReason, u8, "reject reason" {
    DATA_DIGEST_ERROR = 0x02, "data digest error";
    SNACK_REJECT = 0x03, "SNACK reject";
    PROTOCOL_ERROR = 0x04, "protocol error";
    NOT_SUPPORTED = 0x05, "command not supported";
    TOO_MANY_IMMEDIATE = 0x06, "too many immediate commands";
    TASK_IN_PROGRESS = 0x07, "task in progress";
    INVALID_DATA_ACK = 0x08, "invalid data ACK";
    INVALID_FIELD = 0x09, "invalid PDU field";
    OUT_OF_RESOURCES = 0x0a, "long operation reject";
    DEPRECATED = 0x0b, "negotiation reset";
    WAITING_FOR_LOGOUT = 0x0c, "waiting for logout";
});

/// Event of an Asynchronous Message (section 11.9.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AsyncEvent(pub u8);

codes!(AsyncEvent, u8, "event" {
    SCSI = 0, "SCSI asynchronous event";
    LOGOUT = 1, "logout requested";
    CONNECTION_DROP = 2, "connection will be dropped";
    SESSION_DROP = 3, "all connections will be dropped";
    NEGOTIATION = 4, "parameter negotiation requested";
    TASKS_ENDED = 5, "all active tasks of the LUN terminated";
});

/// Reasons of a logout request (section 11.14.1).
pub mod logout {
    use super::code_constants;
    code_constants!(u8 {
        CLOSE_SESSION = 0, "close the session";
        CLOSE_CONNECTION = 1, "close the connection";
        REMOVE_FOR_RECOVERY = 2, "remove the connection for recovery";
    });
}

/// Responses to a logout (section 11.15.1).
pub mod logout_response {
    use super::code_constants;
    code_constants!(u8 {
        CLOSED = 0, "closed";
        NO_CONNECTION = 1, "CID not found";
        NO_RECOVERY = 2, "connection recovery is not supported";
        CLEANUP_FAILED = 3, "cleanup failed";
    });
}

/// Kinds of SNACK (section 11.16.1).
pub mod snack {
    use super::code_constants;
    code_constants!(u8 {
        DATA = 0, "Data or R2T";
        STATUS = 1, "Status";
        DATA_ACK = 2, "Data ACK";
        R_DATA = 3, "R-Data";
    });
}
