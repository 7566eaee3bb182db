//! FC-CT, the common transport of the generic services (FC-GS).

use crate::ns::{NsAccept, NsRequest};

/// A CT information unit: preamble and body.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ct {
    /// IN_ID, filled by switches when they relay; zero elsewhere.
    pub in_id: u32,
    /// Service type and subtype, for example FC 02 for the name server.
    pub service: Service,
    /// Options.
    pub options: u8,
    /// Request: largest accept the requester takes, in words. Accept: words that did not fit. 0: no limit.
    pub max_or_residual_words: u16,
    /// What is asked or answered.
    pub body: CtBody,
}

/// GS_Type and GS_Subtype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Service {
    /// GS_Type.
    pub gs_type: u8,
    /// GS_Subtype.
    pub gs_subtype: u8,
}

#[allow(missing_docs)] // the names are the standard's own
impl Service {
    pub const NAME_SERVER: Service = Service { gs_type: 0xfc, gs_subtype: 0x02 };
    pub const FABRIC_CONFIGURATION: Service = Service { gs_type: 0xfa, gs_subtype: 0x01 };
    pub const FABRIC_ZONE_SERVER: Service = Service { gs_type: 0xfa, gs_subtype: 0x03 };
    pub const FDMI: Service = Service { gs_type: 0xfa, gs_subtype: 0x10 };
}

/// The part of a CT unit that depends on command and service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CtBody {
    /// A request to the name server.
    Ns(NsRequest),
    /// An accept of the name server.
    NsAccept(NsAccept),
    /// A reject, of any service.
    Reject(CtReject),
    /// A request or accept of another service, or of a command that we do not know: command code and bytes.
    Other {
        /// Command code.
        command: u16,
        /// The bytes behind the preamble.
        body: Box<[u8]>,
    },
}

/// FS_RJT: reason and explanation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CtReject {
    /// Reason code.
    pub reason: CtReason,
    /// Explanation, by service (for the name server see [`crate::ns::explanation`]).
    pub explanation: u8,
    /// Vendor specific.
    pub vendor: u8,
}

/// Reason code of a CT reject.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CtReason(pub u8);

#[allow(missing_docs)] // the names are the standard's own
impl CtReason {
    pub const INVALID_COMMAND: Self = Self(0x01);
    pub const INVALID_VERSION: Self = Self(0x02);
    pub const LOGICAL_ERROR: Self = Self(0x03);
    pub const INVALID_SIZE: Self = Self(0x04);
    pub const LOGICAL_BUSY: Self = Self(0x05);
    pub const PROTOCOL_ERROR: Self = Self(0x07);
    pub const UNABLE: Self = Self(0x09);
    pub const NOT_SUPPORTED: Self = Self(0x0b);
}

/// Command code of an accept.
pub const FS_ACC: u16 = 0x8002;
/// Command code of a reject.
pub const FS_RJT: u16 = 0x8001;
/// Bytes of the basic preamble.
pub const PREAMBLE_BYTES: usize = 16;
