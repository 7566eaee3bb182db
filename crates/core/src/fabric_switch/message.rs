//! Messages between switches: which machine takes what, and how an answer finds its request.

use super::{Asker, FabricSwitch, Isl, Output};
use crate::domain;
use crate::eport;
use crate::fabric::Leg;
use crate::fspf;
use crate::ils::{Outcome, Peer, Request, Send};
use crate::names;
use crate::time::Instant;
use crate::zoning::server;
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::sw_ils::{SwIls, SwRjt, SwRjtExplanation, SwRjtReason, command};
use sanloom_wire::{FcId, FcType, Frame, Header, Message, ParseError, Payload, RCtl};

impl FabricSwitch {
    /// A message to this switch.
    pub(super) fn frame(&mut self, now: Instant, port: u16, frame: Frame) {
        let leader = self.config.leader(port);
        if !self.isls.contains_key(&leader) {
            self.refresh_fabric_info(now, &frame);
            return self.serve(now, port, frame);
        }
        let header = frame.header;
        let port = leader;
        let Some(from) = self.sender(port, &header) else {
            self.discarded += 1;
            return;
        };
        let reply = header.r_ctl == RCtl::SOLICITED_CONTROL;
        let message = match frame.payload {
            Payload::Typed(message) => Ok(message),
            Payload::Bytes(bytes) => {
                let asked = self.exchanges.request(from, header.ox_id).filter(|_| reply);
                Message::parse(&header, &bytes, asked.and_then(Message::reply_key))
            }
            Payload::Pattern { .. } => {
                self.discarded += 1;
                return;
            }
        };
        match (message, reply) {
            (Ok(message), true) => match self.exchanges.close(from, header.ox_id) {
                Some((asker, tag)) => self.ended(now, asker, tag, Outcome::Answered(message)),
                None => self.discarded += 1,
            },
            (Ok(message), false) => {
                let request = Request { from, port, ox_id: header.ox_id };
                self.request(now, request, message);
            }
            (Err(error), false) if header.fc_type == FcType::SW_ILS => {
                let request = Request { from, port, ox_id: header.ox_id };
                self.reject(request, malformed(error));
            }
            (Err(_), _) => self.discarded += 1,
        }
    }

    /// Who a message at an inter-switch port is from; nothing if it is not between controllers.
    fn sender(&self, port: u16, header: &Header) -> Option<Peer> {
        match (header.s_id, header.d_id) {
            (FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER) => Some(Peer::Link(port)),
            (from, to) if from.is_domain_controller() && to.is_domain_controller() => {
                let ours = self.services.domain() == Some(to.port()) && from != to;
                ours.then_some(Peer::Domain(from.port()))
            }
            _ => None,
        }
    }

    fn request(&mut self, now: Instant, request: Request, message: Message) {
        let port = request.port;
        match message {
            Message::SwIls(message) => match (message.command(), request.from) {
                (command::ELP | command::ESC, Peer::Link(_)) => {
                    if let Some(isl) = self.isls.get_mut(&port) {
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
                _ => self.reject_if_asked(
                    request,
                    &message,
                    SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED),
                ),
            },
            Message::Ct(ct) if matches!(request.from, Peer::Domain(_)) => {
                self.ask_names(now, request, Message::Ct(ct));
            }
            _ => self.discarded += 1,
        }
    }

    /// Rejects a request; a message that nobody answers is only counted.
    fn reject_if_asked(&mut self, request: Request, message: &SwIls, reject: SwRjt) {
        match message.command() {
            command::HLO | command::LSU | command::LSA => self.discarded += 1,
            _ => self.reject(request, reject),
        }
    }

    fn reject(&mut self, request: Request, reject: SwRjt) {
        self.discarded += 1;
        self.answer(request, SwIls::from(reject).into());
    }

    /// What a machine wants sent.
    pub(super) fn send(&mut self, now: Instant, asker: Asker, send: Send) {
        match send {
            Send::Request { to, message, tag } => match self.exchanges.open(now, to, message.clone(), (asker, tag)) {
                Some(ox_id) => self.transmit(to, ox_id, message),
                None => self.ended(now, asker, tag, Outcome::Unanswered),
            },
            Send::Withdraw { to, tag } => self.exchanges.withdraw(to, &(asker, tag)),
            Send::Answer { request, message } => self.answer(request, message),
            Send::Notice { to, message } => {
                self.next_notice = self.next_notice.wrapping_add(1) | NOTICES;
                self.transmit(to, self.next_notice, message);
            }
        }
    }

    /// Sends a message of an exchange that begins here.
    pub(super) fn transmit(&mut self, to: Peer, ox_id: u16, message: Message) {
        let (s_id, d_id) = to.addresses(self.services.domain().unwrap_or(0));
        let header = message.header(s_id, d_id, ox_id, RX_ID_UNASSIGNED);
        let frame = Frame { header, payload: Payload::Typed(message) };
        if let Some(port) = self.way(to) {
            self.outputs.push_back(Output::Send { port, frame });
        }
    }

    fn answer(&mut self, request: Request, message: Message) {
        let (s_id, d_id) = request.from.addresses(self.services.domain().unwrap_or(0));
        let header = message.header(s_id, d_id, request.ox_id, RX_ID_UNASSIGNED);
        // Who asks may know a path before we do: back the way it came.
        let port = self.way(request.from).or_else(|| self.way(Peer::Link(request.port)));
        if let Some(port) = port {
            let frame = Frame { header, payload: Payload::Typed(message) };
            self.outputs.push_back(Output::Send { port, frame });
        }
    }

    /// The port towards another switch: that of the link, or of the first of the cheapest paths. A message that has no way
    /// is lost, and whoever asked asks again.
    fn way(&self, to: Peer) -> Option<u16> {
        let isl = match to {
            Peer::Link(leader) => self.isls.get(&leader)?,
            Peer::Domain(domain) => match self.legs.get(&domain)?.first()? {
                Leg::Port(port) => self.isls.get(port)?,
                Leg::Bundle(bundle) => {
                    let of_bundle = |(leader, _): &(&u16, &Isl)| self.config.isl(**leader).bundle == Some(*bundle);
                    self.isls.iter().find(of_bundle)?.1
                }
            },
        };
        isl.members.first().copied()
    }
}

/// OX_IDs of messages that nobody answers: apart from those of [`crate::ils::Exchanges`].
const NOTICES: u16 = 0x8000;

/// The reject of bytes that are no value (FC-SW, SW_RJT).
fn malformed(error: ParseError) -> SwRjt {
    match error {
        ParseError::Truncated { .. } | ParseError::Length { .. } => {
            SwRjt::new(SwRjtReason::INVALID_SIZE, SwRjtExplanation::NONE)
        }
        ParseError::Value { .. } => SwRjt::new(SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE),
        ParseError::Unsupported { .. } => SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED),
    }
}
