//! FC-CT, the common transport of the generic services (FC-GS).

use crate::bytes::{Put, counted, fixed, id_at, u16_at};
use crate::codes::codes;
use crate::error::ParseError;
use crate::fcs::{self, FcsAccept, FcsRequest};
use crate::fdmi::{self, FdmiAccept, FdmiRequest};
use crate::fzs::{self, FzsAccept, FzsRequest};
use crate::id::FcId;
use crate::ns::{self, NsAccept, NsRequest};
use std::fmt;

/// A CT information unit: preamble and body.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ct {
    /// IN_ID, 24 bits. Switches fill it in when they relay a unit; otherwise it is zero.
    pub in_id: u32,
    /// Service type and subtype, for example FC 02 for the name server.
    pub service: Service,
    /// Options byte of the preamble; [`Ct::reply`] copies it from the request.
    pub options: u8,
    /// Request: largest accept that the requester can receive, in words of 4 bytes; 0 means no
    /// limit. Accept: number of words that did not fit.
    pub max_or_residual_words: u16,
    /// Command-specific part: a request, an accept or a reject.
    pub body: CtBody,
}

/// GS_Type and GS_Subtype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Service {
    /// GS_Type, for example FC for the directory service.
    pub gs_type: u8,
    /// GS_Subtype, for example 02 for the name server.
    pub gs_subtype: u8,
}

#[allow(missing_docs)] // the names are the standard's own
impl Service {
    pub const NAME_SERVER: Service = Service::new(0xfc, 0x02);
    pub const FABRIC_CONFIGURATION: Service = Service::new(0xfa, 0x01);
    pub const UNZONED_NAME_SERVER: Service = Service::new(0xfa, 0x02);
    pub const FABRIC_ZONE_SERVER: Service = Service::new(0xfa, 0x03);
    pub const FDMI: Service = Service::new(0xfa, 0x10);
    pub const APPLICATION_SERVER: Service = Service::new(0xfa, 0x20);
    pub const TIME: Service = Service::new(0xfb, 0x01);
    pub const ALIAS: Service = Service::new(0xf8, 0x01);
}

impl Service {
    /// Service with the given GS_Type and GS_Subtype.
    pub const fn new(gs_type: u8, gs_subtype: u8) -> Service {
        Service { gs_type, gs_subtype }
    }

    /// Name of the service; `None` if it is unknown.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Service::NAME_SERVER => Some("name server"),
            Service::FABRIC_CONFIGURATION => Some("fabric configuration server"),
            Service::UNZONED_NAME_SERVER => Some("unzoned name server"),
            Service::FABRIC_ZONE_SERVER => Some("fabric zone server"),
            Service::FDMI => Some("FDMI"),
            Service::APPLICATION_SERVER => Some("application server"),
            Service::TIME => Some("time server"),
            Service::ALIAS => Some("alias server"),
            _ => None,
        }
    }
}

/// Code tables of each service.
impl Service {
    /// Name of a command of the service; `None` if it is unknown.
    fn command(self, code: u16) -> Option<&'static str> {
        match self {
            Service::NAME_SERVER => ns::command::name(code),
            Service::FDMI => fdmi::command::name(code),
            Service::FABRIC_ZONE_SERVER => fzs::command::name(code),
            Service::FABRIC_CONFIGURATION => fcs::command::name(code),
            _ => None,
        }
    }

    /// Text of a reject explanation of the service; `None` if it is unknown.
    fn explanation(self, code: u8) -> Option<&'static str> {
        match self {
            Service::NAME_SERVER => ns::explanation::name(code),
            Service::FDMI => fdmi::explanation::name(code),
            Service::FABRIC_ZONE_SERVER => fzs::explanation::name(code),
            Service::FABRIC_CONFIGURATION => fcs::explanation::name(code),
            _ => None,
        }
    }
}

/// The part of a CT unit that depends on command and service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CtBody {
    /// A request to the name server.
    Ns(NsRequest),
    /// An accept of the name server.
    NsAccept(NsAccept),
    /// A request to the HBA management service.
    Fdmi(FdmiRequest),
    /// An accept of the HBA management service.
    FdmiAccept(FdmiAccept),
    /// A request to the fabric configuration server.
    Fcs(FcsRequest),
    /// An accept of the fabric configuration server.
    FcsAccept(FcsAccept),
    /// A request to the fabric zone server.
    Fzs(FzsRequest),
    /// An accept of the fabric zone server.
    FzsAccept(FzsAccept),
    /// A reject, of any service.
    Reject(CtReject),
    /// Undecoded request or accept: of another service, of an unknown command, or an accept that
    /// was parsed without its request.
    Other {
        /// Command code; never that of a reject.
        command: u16,
        /// The bytes after the preamble.
        body: Box<[u8]>,
    },
}

/// FS_RJT: reason and explanation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CtReject {
    /// Reason code, common to all services.
    pub reason: CtReason,
    /// Explanation, by service (for the name server see [`crate::ns::explanation`]).
    pub explanation: u8,
    /// Vendor specific.
    pub vendor: u8,
}

impl CtReject {
    /// A reject without anything vendor specific.
    pub const fn new(reason: CtReason, explanation: u8) -> CtReject {
        CtReject { reason, explanation, vendor: 0 }
    }

    /// Reject with the reason "unable to perform command request"; `explanation` gives the cause.
    pub const fn unable(explanation: u8) -> CtReject {
        CtReject::new(CtReason::UNABLE, explanation)
    }
}

/// Reason code of a CT reject.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CtReason(pub u8);

codes!(CtReason, u8, "reason" {
    INVALID_COMMAND = 0x01, "invalid command code";
    INVALID_VERSION = 0x02, "invalid version level";
    LOGICAL_ERROR = 0x03, "logical error";
    INVALID_SIZE = 0x04, "invalid CT_IU size";
    LOGICAL_BUSY = 0x05, "logical busy";
    PROTOCOL_ERROR = 0x07, "protocol error";
    UNABLE = 0x09, "unable to perform command request";
    NOT_SUPPORTED = 0x0b, "command not supported";
    VENDOR = 0xff, "vendor specific";
});

/// Command code of an accept.
pub const FS_ACC: u16 = 0x8002;
/// Command code of a reject.
pub const FS_RJT: u16 = 0x8001;
/// Length of the basic preamble, in bytes.
pub const PREAMBLE_BYTES: usize = 16;
/// The only preamble revision that is supported.
const REVISION: u8 = 1;

impl Ct {
    /// A request to the name server.
    pub const fn ns_request(request: NsRequest) -> Ct {
        Ct { in_id: 0, service: Service::NAME_SERVER, options: 0, max_or_residual_words: 0, body: CtBody::Ns(request) }
    }

    /// A request to another service than the name server.
    pub const fn request(service: Service, body: CtBody) -> Ct {
        Ct { in_id: 0, service, options: 0, max_or_residual_words: 0, body }
    }

    /// Reads the preamble alone, so that a unit that does not parse can be rejected. The revision
    /// is not checked and the body stays empty. Returns `None` if the preamble is incomplete.
    pub fn preamble(payload: &[u8]) -> Option<Ct> {
        let b = payload.first_chunk::<PREAMBLE_BYTES>()?;
        Some(Ct {
            in_id: id_at(b, 1).to_u32(),
            service: Service::new(b[4], b[5]),
            options: b[6],
            max_or_residual_words: u16_at(b, 10),
            body: CtBody::Other { command: u16_at(b, 8), body: Box::default() },
        })
    }

    /// A request to the fabric zone server.
    pub const fn fzs_request(request: FzsRequest) -> Ct {
        let service = Service::FABRIC_ZONE_SERVER;
        Ct { in_id: 0, service, options: 0, max_or_residual_words: 0, body: CtBody::Fzs(request) }
    }

    /// Reply to this request: same service, IN_ID and options, with no residual words.
    pub const fn reply(&self, body: CtBody) -> Ct {
        Ct { in_id: self.in_id, service: self.service, options: self.options, max_or_residual_words: 0, body }
    }

    /// Reads a CT unit. If the unit is an accept, `reply_to` holds the service and command of its
    /// request.
    pub fn parse(payload: &[u8], reply_to: Option<(Service, u16)>) -> Result<Ct, ParseError> {
        let b = fixed::<PREAMBLE_BYTES>("CT preamble", payload)?;
        if b[0] != REVISION {
            return Err(ParseError::Unsupported { field: "CT revision", got: b[0].into() });
        }
        let service = Service::new(b[4], b[5]);
        let command = u16_at(b, 8);
        let max_or_residual_words = u16_at(b, 10);
        let bytes = &payload[PREAMBLE_BYTES..];
        let other = || CtBody::Other { command, body: bytes.into() };
        let body = match command {
            FS_RJT => CtBody::Reject(CtReject { reason: CtReason(b[13]), explanation: b[14], vendor: b[15] }),
            FS_ACC => match reply_to {
                Some((Service::NAME_SERVER, request)) => {
                    known(NsAccept::parse(request, max_or_residual_words, bytes))?.map_or_else(other, CtBody::NsAccept)
                }
                Some((Service::FDMI, request)) => {
                    known(FdmiAccept::parse(request, bytes))?.map_or_else(other, CtBody::FdmiAccept)
                }
                Some((Service::FABRIC_CONFIGURATION, request)) => {
                    known(FcsAccept::parse(request, bytes))?.map_or_else(other, CtBody::FcsAccept)
                }
                Some((Service::FABRIC_ZONE_SERVER, request)) => {
                    known(FzsAccept::parse(request, bytes))?.map_or_else(other, CtBody::FzsAccept)
                }
                _ => other(),
            },
            _ => match service {
                Service::NAME_SERVER => known(NsRequest::parse(command, bytes))?.map_or_else(other, CtBody::Ns),
                Service::FDMI => known(FdmiRequest::parse(command, bytes))?.map_or_else(other, CtBody::Fdmi),
                Service::FABRIC_ZONE_SERVER => {
                    known(FzsRequest::parse(command, bytes))?.map_or_else(other, CtBody::Fzs)
                }
                Service::FABRIC_CONFIGURATION => {
                    known(FcsRequest::parse(command, bytes))?.map_or_else(other, CtBody::Fcs)
                }
                _ => other(),
            },
        };
        Ok(Ct { in_id: id_at(b, 1).to_u32(), service, options: b[6], max_or_residual_words, body })
    }

    /// Appends preamble and body.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(REVISION, FcId::new(self.in_id));
        out.put_slice(&[self.service.gs_type, self.service.gs_subtype, self.options, 0]);
        out.put_u16(self.command());
        out.put_u16(self.max_or_residual_words);
        if let CtBody::Reject(reject) = &self.body {
            return out.put_slice(&[0, reject.reason.0, reject.explanation, reject.vendor]);
        }
        out.put_u32(0);
        match &self.body {
            CtBody::Reject(_) => {}
            CtBody::Ns(request) => request.emit(out),
            CtBody::NsAccept(accept) => accept.emit(out),
            CtBody::Fdmi(request) => request.emit(out),
            CtBody::FdmiAccept(accept) => accept.emit(out),
            CtBody::Fcs(request) => request.emit(out),
            CtBody::FcsAccept(accept) => accept.emit(out),
            CtBody::Fzs(request) => request.emit(out),
            CtBody::FzsAccept(accept) => accept.emit(out),
            CtBody::Other { body, .. } => out.put_slice(body),
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        counted(|_, out| self.emit(out))
    }

    /// Command code of the request; 8002 for an accept, 8001 for a reject.
    pub const fn command(&self) -> u16 {
        match &self.body {
            CtBody::Ns(request) => request.command(),
            CtBody::Fdmi(request) => request.command(),
            CtBody::Fcs(request) => request.command(),
            CtBody::Fzs(request) => request.command(),
            CtBody::NsAccept(_) | CtBody::FzsAccept(_) | CtBody::FdmiAccept(_) | CtBody::FcsAccept(_) => FS_ACC,
            CtBody::Reject(_) => FS_RJT,
            CtBody::Other { command, .. } => *command,
        }
    }

    /// True for accepts and rejects.
    pub const fn is_reply(&self) -> bool {
        matches!(self.command(), FS_ACC | FS_RJT)
    }
}

/// Maps [`ParseError::Unsupported`] to `None`, so that the caller keeps the undecoded bytes.
fn known<T>(parsed: Result<T, ParseError>) -> Result<Option<T>, ParseError> {
    match parsed {
        Ok(value) => Ok(Some(value)),
        Err(ParseError::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Display for Ct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Service { gs_type, gs_subtype } = self.service;
        match (&self.body, self.command()) {
            (CtBody::Reject(reject), _) => match self.service.explanation(reject.explanation) {
                Some(text) => write!(f, "FS_RJT: {}, {text}", reject.reason),
                None => write!(f, "FS_RJT: {}, explanation {:02x}", reject.reason, reject.explanation),
            },
            (_, FS_ACC) => f.pad("FS_ACC"),
            (_, code) => match (self.service.command(code), self.service.name()) {
                (Some(name), _) => f.pad(name),
                (None, Some(service)) => write!(f, "{service} command {code:04x}"),
                (None, None) => write!(f, "CT {gs_type:02x}/{gs_subtype:02x} command {code:04x}"),
            },
        }
    }
}
