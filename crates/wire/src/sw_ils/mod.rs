//! Switch fabric internal link services (FC-SW): control messages between switches, TYPE 22, class
//! F.
//!
//! R_CTL 02 carries requests, 03 carries [`SwIls::SwAcc`] and [`SwIls::SwRjt`]. Link services
//! between neighbours have source and destination FFFFFD and cross one link. Link services of the
//! whole fabric run between domain controllers, FFFCdd.

pub mod command;
mod domain;
mod efp;
mod elp;
mod esc;
mod ess;
mod fspf;
mod link_state;
mod link_state_update;
mod reject;
mod state_change;
mod zone_member;
mod zone_object;
mod zoning;

pub use domain::Rdi;
pub use efp::{Efp, EfpRecord};
pub use elp::{ClassF, Elp, ElpClass, FlowControl};
pub use esc::{Esc, EscAcc, EscProtocol};
pub use ess::{Ess, EssCapability};
pub use fspf::{FSPF_VERSION, FspfHeader, Hello};
pub use link_state::{AgedRecord, Incarnation, LinkDescriptor, LinkStateRecord, LsrBody, LsrHeader};
pub use link_state_update::{LinkStateAck, LinkStateUpdate, lsu_flag};
pub use reject::{SW_RJT_BYTES, SwRjt, SwRjtExplanation, SwRjtReason};
pub use state_change::{SwRscn, SwRscnEntry, port_event};
pub use zone_member::{ZoneMember, ZoneMemberId};
pub use zone_object::{ActiveZoneSet, MemberList, ZoneObject, ZoneObjectType, ZoneSets};
pub use zoning::{Mrra, MrraAcc, MrraResponse, SfcOperation, ZoneReason, ZoneReply, ZoneStatus};

use crate::bytes::{Put, counted, fixed};
use crate::error::ParseError;
use crate::id::Wwnn;
use domain::{emit_dia, parse_dia};
use std::fmt;
use std::sync::Arc;

/// A switch fabric internal link service, request or reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SwIls {
    /// Reject.
    SwRjt(SwRjt),
    /// Accept; its layout depends on the request.
    SwAcc(SwAcc),
    /// Exchange Link Parameters.
    Elp(Box<Elp>),
    /// Exchange Fabric Parameters.
    Efp(Efp),
    /// Domain Identifier Assigned: the sender has a domain, so a receiver without a domain may
    /// request one.
    Dia {
        /// Name of the sender.
        switch_name: Wwnn,
    },
    /// Request Domain Identifier.
    Rdi(Rdi),
    /// Build Fabric: select the principal switch again and keep the domain identifiers.
    Bf,
    /// Reconfigure Fabric: select the principal switch again and reassign all domain identifiers.
    Rcf,
    /// Hello on a link to a neighbour.
    Hlo(Hello),
    /// Link state update.
    Lsu(LinkStateUpdate),
    /// Link state acknowledgement.
    Lsa(LinkStateAck),
    /// Notification of changed ports in another domain.
    SwRscn(SwRscn),
    /// Exchange Switch Capabilities: selects the routing protocol of a link.
    Esc(Esc),
    /// Exchange Switch Support: lists the supported fabric services of a switch.
    Ess(Ess),
    /// Merge Request: zones of the sender, which the neighbour merges with its own.
    Mr(Arc<ZoneSets>),
    /// Merge Request Resource Allocation.
    Mrra(Mrra),
    /// Acquire Change Authorization: locks the zones of a switch. Contains the domains known to the
    /// sender, at most 16,383.
    Aca(Vec<u8>),
    /// Release Change Authorization.
    Rca,
    /// Stage Fabric Configuration: the new zones.
    Sfc {
        /// Requested operation on the zones.
        operation: SfcOperation,
        /// The new zones.
        zones: Arc<ZoneSets>,
    },
    /// Update Fabric Configuration: puts the staged zones into force.
    Ufc,
    /// Any other request.
    Other {
        /// Command code; never one of the variants above.
        command: u8,
        /// The payload after the command byte: at least three bytes, because the command word has
        /// four.
        body: Box<[u8]>,
    },
}

/// SW_ACC, by the request that it accepts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SwAcc {
    /// The command word alone: BF, RCF, SW_RSCN.
    Empty,
    /// ELP.
    Elp(Box<Elp>),
    /// EFP.
    Efp(Efp),
    /// DIA.
    Dia {
        /// Name of the replying switch.
        switch_name: Wwnn,
    },
    /// RDI: the granted domains.
    Rdi(Rdi),
    /// ESC.
    Esc(EscAcc),
    /// ESS.
    Ess(Ess),
    /// MR, ACA, RCA, SFC, UFC.
    Zone(ZoneReply),
    /// MRRA.
    Mrra(MrraAcc),
    /// Accept of another request: the payload after the command byte.
    Other(Box<[u8]>),
}

impl SwIls {
    /// Reads a payload of TYPE 22. If it is an SW_ACC, `reply_to` is the command code of its
    /// request. Bytes beyond the end of a fixed layout are ignored.
    pub fn parse(payload: &[u8], reply_to: Option<u8>) -> Result<SwIls, ParseError> {
        let head = fixed::<4>("SW_ILS command word", payload)?;
        Ok(match head[0] {
            command::SW_RJT => SwIls::SwRjt(SwRjt::parse(payload)?),
            command::SW_ACC => SwIls::SwAcc(SwAcc::parse(reply_to, payload)?),
            command::ELP => SwIls::Elp(Box::new(Elp::parse(payload)?)),
            command::EFP => SwIls::Efp(Efp::parse(payload)?),
            command::DIA => SwIls::Dia { switch_name: parse_dia(payload)? },
            command::RDI => SwIls::Rdi(Rdi::parse(payload)?),
            command::BF => SwIls::Bf,
            command::RCF => SwIls::Rcf,
            command::HLO => SwIls::Hlo(Hello::parse(payload)?),
            command::LSU => SwIls::Lsu(LinkStateUpdate::parse(payload)?),
            command::LSA => SwIls::Lsa(LinkStateAck::parse(payload)?),
            command::SW_RSCN => SwIls::SwRscn(SwRscn::parse(payload)?),
            command::ESC => SwIls::Esc(Esc::parse(payload)?),
            command::ESS => SwIls::Ess(Ess::parse(payload)?),
            command::MR => SwIls::Mr(Arc::new(ZoneSets::parse(payload)?)),
            command::MRRA => SwIls::Mrra(Mrra::parse(payload)?),
            command::ACA => SwIls::Aca(zoning::parse_domains(payload)?),
            command::RCA => SwIls::Rca,
            command::SFC => SwIls::Sfc { operation: SfcOperation(head[1]), zones: Arc::new(ZoneSets::parse(payload)?) },
            command::UFC => SwIls::Ufc,
            command => SwIls::Other { command, body: payload[1..].into() },
        })
    }

    /// Appends the payload.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            SwIls::SwRjt(reject) => reject.emit(out),
            SwIls::SwAcc(accept) => accept.emit(out),
            SwIls::Hlo(hello) => hello.emit(out),
            SwIls::Lsu(update) => update.emit(out),
            SwIls::Lsa(acknowledgement) => acknowledgement.emit(out),
            SwIls::SwRscn(notification) => notification.emit(out),
            SwIls::Elp(elp) => elp.emit(command::ELP, out),
            SwIls::Efp(efp) => efp.emit(command::EFP, out),
            SwIls::Dia { switch_name } => emit_dia(command::DIA, *switch_name, out),
            SwIls::Rdi(rdi) => rdi.emit(command::RDI, out),
            SwIls::Esc(esc) => esc.emit(command::ESC, out),
            SwIls::Ess(ess) => ess.emit(command::ESS, out),
            SwIls::Mr(zones) => zones.emit(command::MR, 0, out),
            SwIls::Mrra(mrra) => mrra.emit(out),
            SwIls::Aca(domains) => zoning::emit_domains(domains, out),
            SwIls::Sfc { operation, zones } => zones.emit(command::SFC, operation.0, out),
            SwIls::Bf | SwIls::Rcf | SwIls::Rca | SwIls::Ufc => out.put_slice(&[self.command(), 0, 0, 0]),
            SwIls::Other { command, body } => {
                out.put_u8(*command);
                out.put_slice(body);
            }
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        match self {
            SwIls::Mr(zones) | SwIls::Sfc { zones, .. } => zones.encoded_len(),
            _ => counted(|_, out| self.emit(out)),
        }
    }

    /// Command code (see [`command`]).
    pub fn command(&self) -> u8 {
        match self {
            SwIls::SwRjt(_) => command::SW_RJT,
            SwIls::SwAcc(_) => command::SW_ACC,
            SwIls::Elp(_) => command::ELP,
            SwIls::Efp(_) => command::EFP,
            SwIls::Dia { .. } => command::DIA,
            SwIls::Rdi(_) => command::RDI,
            SwIls::Bf => command::BF,
            SwIls::Rcf => command::RCF,
            SwIls::Hlo(_) => command::HLO,
            SwIls::Lsu(_) => command::LSU,
            SwIls::Lsa(_) => command::LSA,
            SwIls::SwRscn(_) => command::SW_RSCN,
            SwIls::Esc(_) => command::ESC,
            SwIls::Ess(_) => command::ESS,
            SwIls::Mr(_) => command::MR,
            SwIls::Mrra(_) => command::MRRA,
            SwIls::Aca(_) => command::ACA,
            SwIls::Rca => command::RCA,
            SwIls::Sfc { .. } => command::SFC,
            SwIls::Ufc => command::UFC,
            SwIls::Other { command, .. } => *command,
        }
    }

    /// True for accept and reject.
    pub fn is_reply(&self) -> bool {
        matches!(self, SwIls::SwAcc(_) | SwIls::SwRjt(_))
    }
}

impl SwAcc {
    fn parse(reply_to: Option<u8>, payload: &[u8]) -> Result<SwAcc, ParseError> {
        Ok(match reply_to {
            Some(command::BF | command::RCF | command::SW_RSCN) => SwAcc::Empty,
            Some(command::ELP) => SwAcc::Elp(Box::new(Elp::parse(payload)?)),
            Some(command::EFP) => SwAcc::Efp(Efp::parse(payload)?),
            Some(command::DIA) => SwAcc::Dia { switch_name: parse_dia(payload)? },
            Some(command::RDI) => SwAcc::Rdi(Rdi::parse(payload)?),
            Some(command::ESC) => SwAcc::Esc(EscAcc::parse(payload)?),
            Some(command::ESS) => SwAcc::Ess(Ess::parse(payload)?),
            Some(command::MR | command::ACA | command::RCA | command::SFC | command::UFC) => {
                SwAcc::Zone(ZoneReply::parse(payload)?)
            }
            Some(command::MRRA) => SwAcc::Mrra(MrraAcc::parse(payload)?),
            _ => SwAcc::Other(payload[1..].into()),
        })
    }

    fn emit(&self, out: &mut dyn Put) {
        match self {
            SwAcc::Empty => out.put_slice(&[command::SW_ACC, 0, 0, 0]),
            SwAcc::Elp(elp) => elp.emit(command::SW_ACC, out),
            SwAcc::Efp(efp) => efp.emit(command::SW_ACC, out),
            SwAcc::Dia { switch_name } => emit_dia(command::SW_ACC, *switch_name, out),
            SwAcc::Rdi(rdi) => rdi.emit(command::SW_ACC, out),
            SwAcc::Esc(esc) => esc.emit(command::SW_ACC, out),
            SwAcc::Ess(ess) => ess.emit(command::SW_ACC, out),
            SwAcc::Zone(reply) => reply.emit(out),
            SwAcc::Mrra(accept) => accept.emit(out),
            SwAcc::Other(body) => {
                out.put_u8(command::SW_ACC);
                out.put_slice(body);
            }
        }
    }
}

impl From<ZoneReply> for SwIls {
    fn from(reply: ZoneReply) -> SwIls {
        SwIls::SwAcc(SwAcc::Zone(reply))
    }
}

impl From<SwRjt> for SwIls {
    fn from(reject: SwRjt) -> SwIls {
        SwIls::SwRjt(reject)
    }
}

impl fmt::Display for SwIls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, command::name(self.command())) {
            (SwIls::SwRjt(reject), _) => reject.fmt(f),
            (SwIls::SwAcc(SwAcc::Zone(reply)), _) => write!(f, "SW_ACC: {reply}"),
            (_, Some(name)) => f.pad(name),
            (_, None) => write!(f, "SW_ILS {:02x}", self.command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_reject_of_a_switch_reads_as_command_in_progress() {
        let bytes = [1, 0, 0, 0, 0, 0x09, 0x19, 0];
        let reject = SwRjt::new(SwRjtReason::UNABLE, SwRjtExplanation::COMMAND_IN_PROGRESS);
        assert_eq!(SwIls::parse(&bytes, None), Ok(reject.into()));
        let mut out = Vec::new();
        SwIls::from(reject).emit(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn an_unknown_command_survives() {
        let bytes = [0x7a, 1, 2, 3, 4];
        let parsed = SwIls::parse(&bytes, None).unwrap();
        let mut out = Vec::new();
        parsed.emit(&mut out);
        assert_eq!((out, parsed.encoded_len()), (bytes.to_vec(), 5));
        assert_eq!(parsed.to_string(), "SW_ILS 7a");
    }

    #[test]
    fn a_truncated_command_word_is_an_error() {
        for len in 0..4 {
            assert!(SwIls::parse(&[0x17, 0, 0, 0][..len], None).is_err());
        }
    }
}
