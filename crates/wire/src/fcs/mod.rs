//! The fabric configuration server: the interconnect elements (switches) of a fabric and their
//! ports (FC-GS, fabric configuration server; GS FA/01).

mod accept;
pub mod command;

pub use accept::{AttachedPort, FcsAccept, PortEntry};

use crate::error::ParseError;
use crate::field::{Cursor, Field, requests};
use crate::id::{Wwnn, Wwpn};

requests! {
    /// A request to the fabric configuration server. Interconnect elements are identified by their
    /// switch names.
    FcsRequest of "fabric configuration server"
    /// 0101: the interconnect elements.
    GIEL Giel {}
    /// 0111: the type of an element.
    GIET Giet { element: Wwnn }
    /// 0112: the domain identifier of an element.
    GDID Gdid { element: Wwnn }
    /// 0113: the management identifier of an element.
    GMID Gmid { element: Wwnn }
    /// 0114: the name of the fabric of an element.
    GFN Gfn { element: Wwnn }
    /// 0115: the logical name of an element.
    GIELN Gieln { element: Wwnn }
    /// 0116: the management addresses of an element.
    GMAL Gmal { element: Wwnn }
    /// 0117: vendor, model and release of an element.
    GIEIL Gieil { element: Wwnn }
    /// 0118: the ports of an element.
    GPL Gpl { element: Wwnn }
    /// 0121: the type of a port.
    GPT Gpt { port: Wwpn }
    /// 0122: the physical number of a port.
    GPPN Gppn { port: Wwpn }
    /// 0124: the ports attached to a port.
    GAPNL Gapnl { port: Wwpn }
    /// 0126: type and state of a port.
    GPS Gps { port: Wwpn }
}

/// Types of interconnect elements.
pub mod element_type {
    use crate::codes::code_constants;

    code_constants!(u8 {
        UNKNOWN = 0x00, "unknown element";
        SWITCH = 0x01, "switch";
        HUB = 0x02, "hub";
        BRIDGE = 0x03, "bridge";
    });
}

/// States of ports.
pub mod port_state {
    use crate::codes::code_constants;

    code_constants!(u8 {
        UNKNOWN = 0x00, "unknown state";
        ONLINE = 0x01, "online";
        OFFLINE = 0x02, "offline";
        TESTING = 0x03, "testing";
        FAULT = 0x04, "fault";
    });
}

/// Reject explanations of the fabric configuration server.
pub mod explanation {
    use crate::codes::code_constants;

    code_constants!(u8 {
        NONE = 0x00, "no additional explanation";
        INVALID_NAME = 0x01, "invalid name identifier of interconnect element or port";
        ELEMENT_LIST = 0x10, "interconnect element list not available";
        ELEMENT_TYPE = 0x11, "interconnect element type not available";
        DOMAIN_ID = 0x12, "domain identifier not available";
        MANAGEMENT_ID = 0x13, "management identifier not available";
        FABRIC_NAME = 0x14, "fabric name not available";
        LOGICAL_NAME = 0x15, "interconnect element logical name not available";
        MANAGEMENT_ADDRESS = 0x16, "management address list not available";
        ELEMENT_INFORMATION = 0x17, "interconnect element information list not available";
        PORT_LIST = 0x30, "port list not available";
        PORT_TYPE = 0x31, "port type not available";
        PHYSICAL_NUMBER = 0x32, "physical port number not available";
        ATTACHED_PORTS = 0x34, "attached port name list not available";
        PORT_STATE = 0x36, "port state not available";
    });
}
