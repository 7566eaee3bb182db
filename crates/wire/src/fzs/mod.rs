//! The fabric zone server (FC-GS, CT service FA/03): basic requests and accepts.

mod accept;
mod object;
mod request;

pub use accept::FzsAccept;
pub use object::{FzsMember, FzsZone, FzsZoneSet};
pub use request::FzsRequest;

/// Command codes.
pub mod command {
    use crate::codes::code_constants;

    code_constants!(u16 {
        GZC = 0x0100, "GZC";
        GEST = 0x0111, "GEST";
        GZSN = 0x0112, "GZSN";
        GZD = 0x0113, "GZD";
        GZM = 0x0114, "GZM";
        GAZS = 0x0115, "GAZS";
        GZS = 0x0116, "GZS";
        ADZS = 0x0200, "ADZS";
        AZSD = 0x0201, "AZSD";
        AZS = 0x0202, "AZS";
        DZS = 0x0203, "DZS";
        AZM = 0x0204, "AZM";
        AZD = 0x0205, "AZD";
        RZM = 0x0300, "RZM";
        RZD = 0x0301, "RZD";
        RZS = 0x0302, "RZS";
    });
}

/// Reject explanations of the zone server.
pub mod explanation {
    use crate::codes::code_constants;

    code_constants!(u8 {
        NONE = 0x00, "no additional explanation";
        ZONING_NOT_SUPPORTED = 0x01, "zones not supported";
        UNKNOWN_ZONE_SET = 0x10, "zone set name unknown";
        NO_ACTIVE_ZONE_SET = 0x11, "no zone set active";
        UNKNOWN_ZONE = 0x12, "zone name unknown";
        UNKNOWN_ZONE_STATE = 0x13, "zone state unknown";
        INCORRECT_LENGTH = 0x14, "incorrect payload length";
        TOO_LARGE = 0x15, "zone set to be activated too large";
        DEACTIVATION_FAILED = 0x16, "deactivate zone set failed";
        REQUEST_NOT_SUPPORTED = 0x17, "request not supported";
        CAPABILITY_NOT_SUPPORTED = 0x18, "capability not supported";
        UNKNOWN_MEMBER_TYPE = 0x19, "zone member identifier type not supported";
        INVALID_ZONE_SET = 0x1a, "invalid zone set definition";
    });
}

/// Bits of the capabilities in an accept of GZC, and of the state in an accept of GEST.
pub mod capability {
    /// GZC: hard zoning is supported.
    pub const HARD_ZONES: u8 = 0x80;
    /// GZC: soft zoning is supported.
    pub const SOFT_ZONES: u8 = 0x40;
    /// GZC: the server stores zone sets, including inactive ones.
    pub const ZONE_SET_DATABASE: u8 = 0x01;
    /// GEST: a soft zone set is enforced.
    pub const SOFT_ENFORCED: u8 = 0x80;
    /// GEST: a hard zone set is enforced.
    pub const HARD_ENFORCED: u8 = 0x40;
}
