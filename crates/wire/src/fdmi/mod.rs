//! FDMI: descriptions of host bus adapters, registered with the fabric (FC-GS, HBA management
//! service; GS FA/10).

mod attribute;
pub mod command;

pub use attribute::{Attribute, Attributes, find, hba_attribute, port_attribute, port_speed};

use crate::bytes::Put;
use crate::error::ParseError;
use crate::field::{Cursor, Field, requests};
use crate::id::Wwpn;

requests! {
    /// A request to the HBA management service. An HBA is identified by one of its port names.
    FdmiRequest of "FDMI"
    /// 0100: the registered HBAs.
    GRHL Grhl {}
    /// 0101: the ports and attributes of an HBA.
    GHAT Ghat { hba: Wwpn }
    /// 0102: the ports of an HBA.
    GRPL Grpl { hba: Wwpn }
    /// 0110: the attributes of a port.
    GPAT Gpat { port: Wwpn }
    /// 0200: register an HBA with its ports and attributes.
    RHBA Rhba { hba: Wwpn, ports: Vec<Wwpn>, attributes: Attributes }
    /// 0201: register the attributes of an HBA.
    RHAT Rhat { hba: Wwpn, attributes: Attributes }
    /// 0210: register a port of an HBA with its attributes.
    RPRT Rprt { hba: Wwpn, port: Wwpn, attributes: Attributes }
    /// 0211: register the attributes of a port.
    RPA Rpa { port: Wwpn, attributes: Attributes }
    /// 0300: deregister an HBA.
    DHBA Dhba { hba: Wwpn }
    /// 0301: deregister the attributes of an HBA.
    DHAT Dhat { hba: Wwpn }
    /// 0310: deregister a port.
    DPRT Dprt { port: Wwpn }
    /// 0311: deregister the attributes of a port.
    DPA Dpa { port: Wwpn }
}

/// An accept of the HBA management service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FdmiAccept {
    /// Accept of registrations and deregistrations.
    Empty,
    /// GRHL: names of the HBAs. GRPL: names of the ports.
    Names(Vec<Wwpn>),
    /// GHAT: one HBA.
    Hba {
        /// Names of its ports.
        ports: Vec<Wwpn>,
        /// Attributes of the HBA.
        attributes: Attributes,
    },
    /// GPAT: attributes of one port.
    Port(Attributes),
}

impl FdmiAccept {
    /// Reads the bytes after the CT preamble of the accept of `request`. An unsupported request is
    /// [`ParseError::Unsupported`].
    pub fn parse(request: u16, body: &[u8]) -> Result<FdmiAccept, ParseError> {
        let structure = command::name(request).unwrap_or("FDMI accept");
        let mut from = Cursor { structure, data: body, at: 0 };
        Ok(match request {
            command::GRHL | command::GRPL => FdmiAccept::Names(from.field(0)?),
            command::GHAT => FdmiAccept::Hba { ports: from.field(0)?, attributes: from.field(0)? },
            command::GPAT => FdmiAccept::Port(from.field(0)?),
            command::RHBA
            | command::RHAT
            | command::RPRT
            | command::RPA
            | command::DHBA
            | command::DHAT
            | command::DPRT
            | command::DPA => FdmiAccept::Empty,
            other => return Err(ParseError::Unsupported { field: "FDMI command", got: other.into() }),
        })
    }

    /// Appends the bytes after the CT preamble.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            FdmiAccept::Empty => {}
            FdmiAccept::Names(names) => names.write(out),
            FdmiAccept::Hba { ports, attributes } => {
                ports.write(out);
                attributes.write(out);
            }
            FdmiAccept::Port(attributes) => attributes.write(out),
        }
    }
}

/// Reject explanations of FDMI.
pub mod explanation {
    use crate::codes::code_constants;

    code_constants!(u8 {
        NONE = 0x00, "no additional explanation";
        HBA_NOT_REGISTERED = 0x10, "HBA not registered";
        DUPLICATE_HBA_ATTRIBUTE = 0x11, "HBA attribute given twice";
        HBA_BLOCK_LENGTH = 0x12, "invalid HBA attribute block length";
        HBA_ATTRIBUTE_MISSING = 0x13, "HBA attribute missing";
        PORT_NOT_REGISTERED = 0x20, "port not registered";
        DUPLICATE_PORT_ATTRIBUTE = 0x21, "port attribute given twice";
        PORT_BLOCK_LENGTH = 0x22, "invalid port attribute block length";
        AUTHORIZATION = 0xf0, "authorization exception";
        DATABASE_FULL = 0xf2, "database full";
    });
}
