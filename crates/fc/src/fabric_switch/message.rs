//! Messages from other switches: dispatch to the machines, and matching of replies to requests.

use super::FabricSwitch;
use super::outbox::Route;
use crate::domain;
use crate::eport;
use crate::fspf;
use crate::ils::{Outcome, Peer, Request};
use crate::names;
use crate::zoning::server;
use sanloom_scsi::time::Instant;
use sanloom_wire::sw_ils::{SwRjt, SwRjtExplanation, SwRjtReason, command};
use sanloom_wire::{FcId, FcType, Frame, Header, Message, ParseError, Payload, RCtl};

impl FabricSwitch {
    /// Handles a message to this switch.
    pub(super) fn frame(&mut self, now: Instant, port: u16, frame: Frame) {
        let leader = self.isls.leader(port);
        if self.isls.get(leader).is_none() {
            return self.service_frame(now, port, frame);
        }
        let header = frame.header;
        let port = leader;
        let Some(from) = sender(self.services.domain(), port, &header) else {
            return self.out.discard();
        };
        let is_reply = header.r_ctl == RCtl::SOLICITED_CONTROL;
        let message = match frame.payload {
            Payload::Typed(message) => Ok(message),
            Payload::Bytes(bytes) => {
                let request = self.out.request_of(from, header.ox_id).filter(|_| is_reply);
                Message::parse(&header, &bytes, request.and_then(Message::reply_key))
            }
            Payload::Pattern { .. } => return self.out.discard(),
        };
        let request = Request { from, port, ox_id: header.ox_id };
        match (message, is_reply) {
            (Ok(message), true) => match self.out.close(from, header.ox_id) {
                Some(request) => self.outcome(now, request, Outcome::Answered(message)),
                None => self.out.discard(),
            },
            (Ok(message), false) => self.request(now, request, message),
            (Err(error), false) if header.fc_type == FcType::SW_ILS => {
                let route = Route { domain: self.services.domain(), isls: &self.isls };
                self.out.reject(route, request, malformed(error));
            }
            (Err(_), _) => self.out.discard(),
        }
    }

    fn request(&mut self, now: Instant, request: Request, message: Message) {
        let port = request.port;
        match message {
            Message::SwIls(message) => match (message.command(), request.from) {
                (command::ELP | command::ESC, Peer::Link(_)) => {
                    if let Some(isl) = self.isls.get_mut(port) {
                        isl.machine.handle(now, eport::Input::Request { request, message: *message });
                    }
                }
                (command::EFP | command::DIA | command::RDI | command::BF | command::RCF, Peer::Link(_)) => {
                    self.domains.handle(now, domain::Input::Request { request, message: *message });
                }
                (command::HLO | command::LSU | command::LSA, Peer::Link(_)) => {
                    self.paths.handle(now, fspf::Input::Message { port, message: *message });
                }
                (command::ESS, _)
                | (command::MR | command::MRRA, Peer::Link(_))
                | (command::ACA | command::RCA | command::SFC | command::UFC, Peer::Domain(_)) => {
                    let message = Message::SwIls(message);
                    self.zones.handle(now, server::Input::Request { request, message });
                }
                (command::SW_RSCN, Peer::Domain(_)) => {
                    let message = Message::SwIls(message);
                    self.names.handle(now, names::Input::Request { request, message });
                }
                (command::HLO | command::LSU | command::LSA, _) => self.out.discard(),
                _ => {
                    let route = Route { domain: self.services.domain(), isls: &self.isls };
                    let reject = SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED);
                    self.out.reject(route, request, reject);
                }
            },
            Message::Ct(ct) if matches!(request.from, Peer::Domain(_)) => {
                if let Some((request, message)) = self.early.push(now, &self.isls, request, Message::Ct(ct)) {
                    self.names.handle(now, names::Input::Request { request, message });
                }
            }
            _ => self.out.discard(),
        }
    }
}

/// Sender of a message at an inter-switch port; `None` if it is not between controllers. `own` is
/// the domain of this switch.
fn sender(own: Option<u8>, port: u16, header: &Header) -> Option<Peer> {
    match (header.s_id, header.d_id) {
        (FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER) => Some(Peer::Link(port)),
        (from, to) if from.is_domain_controller() && to.is_domain_controller() => {
            (own == Some(to.port()) && from != to).then_some(Peer::Domain(from.port()))
        }
        _ => None,
    }
}

/// Reject for a payload that cannot be parsed (FC-SW, SW_RJT).
fn malformed(error: ParseError) -> SwRjt {
    match error {
        ParseError::Truncated { .. } | ParseError::Length { .. } => {
            SwRjt::new(SwRjtReason::INVALID_SIZE, SwRjtExplanation::NONE)
        }
        ParseError::Value { .. } => SwRjt::new(SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE),
        ParseError::Unsupported { .. } => SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED),
    }
}
