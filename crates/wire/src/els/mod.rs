//! Extended link services (FC-LS): requests and replies.

mod accept;
pub mod command;
pub mod link_incident;
pub mod node_id;
pub mod prli;
mod records;
mod reject;
pub mod rscn;
pub mod speed;

pub use accept::LsAcc;
pub use link_incident::LinkIncident;
pub use node_id::Rnid;
pub use prli::{Prli, PrliPage, Prlo};
pub use records::{Adisc, ExchangeRef, Fan, LinkErrorStatus, Logo, RecAcc, Rtv};
pub use reject::{LS_RJT_BYTES, LsRjt, LsRjtExplanation, LsRjtReason};
pub use rscn::{AddressFormat, Rscn, RscnPage};
pub use speed::PortSpeed;

use crate::bytes::{Put, counted, fixed, id_at};
use crate::error::ParseError;
use crate::id::FcId;
use crate::login::Login;
use std::fmt;

/// An extended link service. R_CTL 22 carries requests, 23 carries [`Els::LsAcc`] and
/// [`Els::LsRjt`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Els {
    /// Reject.
    LsRjt(LsRjt),
    /// Accept; its layout depends on the request.
    LsAcc(LsAcc),
    /// N_Port login.
    Plogi(Login),
    /// Fabric login.
    Flogi(Login),
    /// Additional N_Port_ID over an existing fabric login (NPIV).
    Fdisc(Login),
    /// Current service parameters of an existing login.
    Pdisc(Login),
    /// Logout.
    Logo(Logo),
    /// Read timeout values.
    Rtv,
    /// Read link error status of a port.
    Rls {
        /// The port whose counters are requested.
        port_id: FcId,
    },
    /// Echo: the accept returns the bytes.
    Echo(Box<[u8]>),
    /// Test: no reply is sent.
    Test(Box<[u8]>),
    /// Reinstate recovery qualifier.
    Rrq(ExchangeRef),
    /// Read exchange concise.
    Rec(ExchangeRef),
    /// Process login.
    Prli(Prli),
    /// Process logout.
    Prlo(Prlo),
    /// Address and names of an existing login.
    Adisc(Adisc),
    /// Fabric address notification on an arbitrated loop.
    Fan(Fan),
    /// State change notification.
    Rscn(Rscn),
    /// Registration for state change notifications.
    Scr {
        /// Registration function (see [`scr`]).
        function: u8,
    },
    /// Link incident record registration.
    Lirr {
        /// Registration function (see [`link_incident::registration`]).
        function: u8,
        /// Format of the records.
        format: u8,
    },
    /// Registered link incident report.
    Rlir(LinkIncident),
    /// Request node identification data.
    Rnid {
        /// Format of the requested data (see [`node_id`]).
        format: u8,
    },
    /// Report port speed capabilities.
    Rpsc,
    /// Any other request.
    Other {
        /// Command code; never one of the variants above.
        command: u8,
        /// The payload after the command byte: at least three bytes, because the command word has
        /// four.
        body: Box<[u8]>,
    },
}

/// Functions of [`Els::Scr`].
pub mod scr {
    use crate::codes::code_constants;

    code_constants!(u8 {
        FABRIC_DETECTED = 0x01, "fabric detected registration";
        N_PORT_DETECTED = 0x02, "N_Port detected registration";
        FULL = 0x03, "full registration";
        CLEAR = 0xff, "clear registration";
    });
}

impl Els {
    /// Reads a payload of TYPE 01. If it is an LS_ACC, `reply_to` is the command code of its
    /// request. Bytes beyond the end of a fixed layout are ignored.
    pub fn parse(payload: &[u8], reply_to: Option<u8>) -> Result<Els, ParseError> {
        let head = fixed::<4>("ELS command word", payload)?;
        Ok(match head[0] {
            command::LS_RJT => Els::LsRjt(LsRjt::parse(payload)?),
            command::LS_ACC => Els::LsAcc(LsAcc::parse(reply_to, payload)?),
            command::PLOGI => Els::Plogi(Login::parse(payload)?),
            command::FLOGI => Els::Flogi(Login::parse(payload)?),
            command::FDISC => Els::Fdisc(Login::parse(payload)?),
            command::PDISC => Els::Pdisc(Login::parse(payload)?),
            command::LOGO => Els::Logo(Logo::parse(payload)?),
            command::RTV => Els::Rtv,
            command::RLS => Els::Rls { port_id: id_at(fixed::<8>("RLS", payload)?, 5) },
            command::ECHO => Els::Echo(payload[head.len()..].into()),
            command::TEST => Els::Test(payload[head.len()..].into()),
            command::RRQ => Els::Rrq(ExchangeRef::parse(payload)?),
            command::REC => Els::Rec(ExchangeRef::parse(payload)?),
            command::PRLI => Els::Prli(Prli::parse(payload)?),
            command::PRLO => Els::Prlo(Prlo::parse(payload)?),
            command::ADISC => Els::Adisc(Adisc::parse(payload)?),
            command::FAN => Els::Fan(Fan::parse(payload)?),
            command::RSCN => Els::Rscn(Rscn::parse(payload)?),
            command::SCR => Els::Scr { function: fixed::<8>("SCR", payload)?[7] },
            command::LIRR => {
                let b = fixed::<8>("LIRR", payload)?;
                Els::Lirr { function: b[4], format: b[5] }
            }
            command::RLIR => Els::Rlir(LinkIncident::parse(payload)?),
            command::RNID => Els::Rnid { format: fixed::<8>("RNID", payload)?[4] },
            command::RPSC => Els::Rpsc,
            command => Els::Other { command, body: payload[1..].into() },
        })
    }

    /// Appends the payload.
    pub fn emit(&self, out: &mut dyn Put) {
        let command = self.command();
        match self {
            Els::LsRjt(reject) => reject.emit(out),
            Els::LsAcc(accept) => accept.emit(out),
            Els::Plogi(login) | Els::Flogi(login) | Els::Fdisc(login) | Els::Pdisc(login) => login.emit(command, out),
            Els::Logo(logo) => logo.emit(out),
            Els::Rtv | Els::Rpsc => out.put_word(command, FcId::ZERO),
            Els::Rls { port_id } => {
                out.put_word(command, FcId::ZERO);
                out.put_word(0, *port_id);
            }
            Els::Echo(data) | Els::Test(data) => {
                out.put_word(command, FcId::ZERO);
                out.put_slice(data);
            }
            Els::Rrq(exchange) | Els::Rec(exchange) => exchange.emit(command, out),
            Els::Prli(prli) => prli.emit(command, out),
            Els::Prlo(prlo) => prlo.emit(command, out),
            Els::Adisc(adisc) => adisc.emit(command, out),
            Els::Fan(fan) => fan.emit(out),
            Els::Rscn(rscn) => rscn.emit(out),
            Els::Scr { function } => {
                out.put_word(command, FcId::ZERO);
                out.put_word(0, FcId::new((*function).into()));
            }
            Els::Lirr { function, format } => {
                out.put_word(command, FcId::ZERO);
                out.put_slice(&[*function, *format, 0, 0]);
            }
            Els::Rlir(incident) => incident.emit(out),
            Els::Rnid { format } => {
                out.put_word(command, FcId::ZERO);
                out.put_slice(&[*format, 0, 0, 0]);
            }
            Els::Other { body, .. } => {
                out.put_u8(command);
                out.put_slice(body);
            }
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        counted(|_, out| self.emit(out))
    }

    /// The command code (see [`command`]).
    pub const fn command(&self) -> u8 {
        match self {
            Els::LsRjt(_) => command::LS_RJT,
            Els::LsAcc(_) => command::LS_ACC,
            Els::Plogi(_) => command::PLOGI,
            Els::Flogi(_) => command::FLOGI,
            Els::Fdisc(_) => command::FDISC,
            Els::Pdisc(_) => command::PDISC,
            Els::Logo(_) => command::LOGO,
            Els::Rtv => command::RTV,
            Els::Rls { .. } => command::RLS,
            Els::Echo(_) => command::ECHO,
            Els::Test(_) => command::TEST,
            Els::Rrq(_) => command::RRQ,
            Els::Rec(_) => command::REC,
            Els::Prli(_) => command::PRLI,
            Els::Prlo(_) => command::PRLO,
            Els::Adisc(_) => command::ADISC,
            Els::Fan(_) => command::FAN,
            Els::Rscn(_) => command::RSCN,
            Els::Scr { .. } => command::SCR,
            Els::Lirr { .. } => command::LIRR,
            Els::Rlir(_) => command::RLIR,
            Els::Rnid { .. } => command::RNID,
            Els::Rpsc => command::RPSC,
            Els::Other { command, .. } => *command,
        }
    }

    /// True for LS_ACC and LS_RJT.
    pub const fn is_reply(&self) -> bool {
        matches!(self, Els::LsAcc(_) | Els::LsRjt(_))
    }
}

impl fmt::Display for Els {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, command::name(self.command())) {
            (Els::LsRjt(reject), _) => reject.fmt(f),
            (_, Some(name)) => f.pad(name),
            (_, None) => write!(f, "ELS {:02x}", self.command()),
        }
    }
}
