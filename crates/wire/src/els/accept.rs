//! LS_ACC (FC-LS). Its layout depends on the request, so the parser needs the command code of the
//! request.

use crate::bytes::{Put, fixed};
use crate::els::{Adisc, LinkErrorStatus, PortSpeed, Prli, Prlo, RecAcc, Rnid, Rtv, command, speed};
use crate::error::ParseError;
use crate::id::FcId;
use crate::login::Login;

/// Body of LS_ACC. Each variant lists the requests that it answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LsAcc {
    /// LOGO, SCR, RSCN, RRQ and others: the command word only.
    Empty,
    /// FLOGI, FDISC, PLOGI, PDISC.
    Login(Login),
    /// PRLI.
    Prli(Prli),
    /// PRLO.
    Prlo(Prlo),
    /// ADISC.
    Adisc(Adisc),
    /// RTV.
    Rtv(Rtv),
    /// RLS.
    Rls(LinkErrorStatus),
    /// ECHO.
    Echo(Box<[u8]>),
    /// REC.
    Rec(RecAcc),
    /// RNID.
    Rnid(Rnid),
    /// RPSC: one entry for each port.
    Rpsc(Vec<PortSpeed>),
    /// Any other accept: the payload after the first byte of the command word, at least three
    /// bytes.
    Other(Box<[u8]>),
}

impl LsAcc {
    /// Reads an accept of the request with command code `request`. Without a code, and for an
    /// unsupported request, the result is [`LsAcc::Other`].
    pub fn parse(request: Option<u8>, payload: &[u8]) -> Result<LsAcc, ParseError> {
        let head = fixed::<4>("LS_ACC", payload)?;
        Ok(match request {
            Some(command::PLOGI | command::FLOGI | command::FDISC | command::PDISC) => {
                LsAcc::Login(Login::parse(payload)?)
            }
            Some(command::PRLI) => LsAcc::Prli(Prli::parse(payload)?),
            Some(command::PRLO) => LsAcc::Prlo(Prlo::parse(payload)?),
            Some(command::ADISC) => LsAcc::Adisc(Adisc::parse(payload)?),
            Some(command::RTV) => LsAcc::Rtv(Rtv::parse(payload)?),
            Some(command::RLS) => LsAcc::Rls(LinkErrorStatus::parse(payload)?),
            Some(command::REC) => LsAcc::Rec(RecAcc::parse(payload)?),
            Some(command::ECHO) => LsAcc::Echo(payload[head.len()..].into()),
            Some(command::RNID) => LsAcc::Rnid(Rnid::parse(payload)?),
            Some(command::RPSC) => LsAcc::Rpsc(speed::parse(payload)?),
            Some(command::LOGO | command::RRQ | command::RSCN | command::SCR | command::LIRR | command::RLIR) => {
                LsAcc::Empty
            }
            _ => LsAcc::Other(payload[1..].into()),
        })
    }

    /// Appends the payload, the command word included.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            LsAcc::Empty => out.put_word(command::LS_ACC, FcId::ZERO),
            LsAcc::Login(login) => login.emit(command::LS_ACC, out),
            LsAcc::Prli(prli) => prli.emit(command::LS_ACC, out),
            LsAcc::Prlo(prlo) => prlo.emit(command::LS_ACC, out),
            LsAcc::Adisc(adisc) => adisc.emit(command::LS_ACC, out),
            LsAcc::Rtv(rtv) => rtv.emit(out),
            LsAcc::Rls(counters) => counters.emit(out),
            LsAcc::Echo(data) => {
                out.put_word(command::LS_ACC, FcId::ZERO);
                out.put_slice(data);
            }
            LsAcc::Rec(rec) => rec.emit(out),
            LsAcc::Rnid(data) => data.emit(out),
            LsAcc::Rpsc(speeds) => speed::emit(speeds, out),
            LsAcc::Other(body) => {
                out.put_u8(command::LS_ACC);
                out.put_slice(body);
            }
        }
    }
}
