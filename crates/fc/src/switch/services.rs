//! Dispatch of link services and CT requests to the services of the switch.

use super::Switch;
use super::login::check;
use super::management::block_length;
use super::name_server::{answer_query, is_query};
use sanloom_scsi::time::Instant;
use sanloom_wire::bls::{BaAcc, Bls};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, PREAMBLE_BYTES, Service};
use sanloom_wire::els::node_id::{self, SpecificData, TopologyData};
use sanloom_wire::els::{Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Rnid, command};
use sanloom_wire::ns::{NsAccept, NsRequest, explanation};
use sanloom_wire::{FcId, FcType, Header, Message, ParseError, RCtl};

/// Outcome of a request: accept, reject, or no reply.
type Answer = Option<Result<LsAcc, LsRjt>>;

impl Switch {
    pub(super) fn link_service(&mut self, now: Instant, port: u16, header: &Header, els: Els) {
        match (header.r_ctl, els.is_reply()) {
            (RCtl::ELS_REQUEST, false) => {}
            (RCtl::ELS_REPLY, true) => {
                let (mut cx, directory, management) = self.services(now);
                return match header.d_id {
                    FcId::MANAGEMENT_SERVER => management.incidents.reply(&mut cx, header, &els),
                    _ => directory.controller.reply(&mut cx, header, &els),
                };
            }
            _ => return self.out.discard(),
        }
        let (answer, to) = match (&els, header.d_id) {
            (Els::Flogi(request), FcId::F_PORT) => {
                let Some((answer, to)) = self.fabric_login(now, port, header, request) else { return };
                self.count_login(&answer);
                (Some(answer), to)
            }
            (Els::Fdisc(request), FcId::F_PORT) => {
                let (answer, to) = self.virtual_login(now, port, header.s_id, request);
                self.count_login(&answer);
                (Some(answer), to)
            }
            _ if !self.logins.is_at(port, header.s_id) => return self.out.discard(),
            (Els::Logo(logo), FcId::F_PORT) => (Some(self.fabric_logout(now, port, logo)), header.s_id),
            _ => {
                let answer = self.service(now, header, &els);
                match answer {
                    Some(Ok(_)) => self.out.counters.els_accepted += 1,
                    Some(Err(_)) => self.out.counters.els_rejected += 1,
                    None => {}
                }
                (answer, header.s_id)
            }
        };
        if let Some(answer) = answer {
            let els = answer.map_or_else(Els::LsRjt, Els::LsAcc);
            self.out.reply(port, header, to, RCtl::ELS_REPLY, Message::Els(Box::new(els)));
        }
    }

    pub(super) fn common_transport(&mut self, now: Instant, port: u16, header: &Header, ct: Ct) {
        let request = header.r_ctl == RCtl::UNSOLICITED_CONTROL && !ct.is_reply();
        if !request || !self.logins.is_at(port, header.s_id) {
            return self.out.discard();
        }
        let logged_in = self.logins.has_session(header.s_id, header.d_id);
        let answer = match (header.d_id, ct.service, &ct.body) {
            (FcId::NAME_SERVER, Service::NAME_SERVER, _) if !logged_in => {
                Err(CtReject::unable(explanation::ACCESS_DENIED))
            }
            (FcId::NAME_SERVER, Service::NAME_SERVER, CtBody::Ns(request)) => {
                let answer = self.name_server_request(now, header.s_id, request, ct.max_or_residual_words);
                answer.map(|(accept, residual_words)| (CtBody::NsAccept(accept), residual_words))
            }
            (FcId::MANAGEMENT_SERVER, _, _) if !logged_in => Err(LOGIN_REQUIRED),
            (FcId::MANAGEMENT_SERVER, _, _) => {
                let (mut cx, directory, management) = self.services(now);
                let enforced = directory.enforces_zones();
                let answer = management.request(&mut cx, &directory.objects, enforced, port, header, &ct);
                let Some(answer) = answer else { return };
                answer.and_then(|accept| fits(&ct, accept)).map(|accept| (accept, 0))
            }
            _ => Err(UNSUPPORTED),
        };
        self.out.ct_reply(port, header, &ct, answer);
    }

    /// Answers a request to the name server. The second value of an accept is the number of words
    /// that did not fit into `max_words`.
    fn name_server_request(
        &mut self,
        now: Instant,
        id: FcId,
        request: &NsRequest,
        max_words: u16,
    ) -> Result<(NsAccept, u16), CtReject> {
        if is_query(request) {
            return answer_query(&self.directory.objects, id, request, max_words, &mut self.out.work);
        }
        if let Some(change) = self.directory.objects.register(id, request)? {
            let announce = self.logins.announce(id, change.affects_discovery);
            let (mut cx, directory, _) = self.services(now);
            directory.registered(&mut cx, change, announce);
        }
        Ok((NsAccept::Empty, 0))
    }

    /// Accepts an ABTS for the whole exchange. Only a request to the zone server can still be
    /// pending; every other request is answered at once, so its exchange is over.
    pub(super) fn basic_link_service(&mut self, port: u16, header: &Header, bls: Bls) {
        if bls != Bls::Abts || !self.logins.is_at(port, header.s_id) {
            return self.out.discard();
        }
        self.management.zones.abort(header.s_id, header.ox_id);
        let accept =
            BaAcc { seq_id: None, ox_id: header.ox_id, rx_id: header.rx_id, low_seq_cnt: 0, high_seq_cnt: u16::MAX };
        let message = Message::Bls(Bls::BaAcc(accept));
        self.out.reply(port, header, header.s_id, RCtl::BLS_BA_ACC, message);
    }

    /// Handles a payload that cannot be parsed. A request gets a reject with the reason; any other
    /// frame is discarded.
    pub(super) fn malformed(&mut self, port: u16, header: &Header, bytes: &[u8], error: ParseError) {
        let is_known = self.logins.is_at(port, header.s_id)
            || (self.logins.may_log_in(port, header.s_id) && header.d_id == FcId::F_PORT);
        match (header.fc_type, header.r_ctl) {
            (FcType::ELS, RCtl::ELS_REQUEST) if is_known => {
                self.out.counters.els_rejected += 1;
                let els = Message::Els(Box::new(Els::LsRjt(match error {
                    ParseError::Truncated { .. } | ParseError::Length { .. } => {
                        LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PAYLOAD_LENGTH)
                    }
                    ParseError::Value { .. } => LsRjt::new(LsRjtReason::PROTOCOL_ERROR, LsRjtExplanation::NONE),
                    ParseError::Unsupported { .. } => NOT_SUPPORTED,
                })));
                self.out.reply(port, header, header.s_id, RCtl::ELS_REPLY, els);
            }
            (FcType::CT, RCtl::UNSOLICITED_CONTROL) if is_known => {
                self.out.counters.ct_rejected += 1;
                let reason = match error {
                    ParseError::Truncated { .. } | ParseError::Length { .. } => CtReason::INVALID_SIZE,
                    ParseError::Value { .. } => CtReason::PROTOCOL_ERROR,
                    ParseError::Unsupported { .. } => CtReason::INVALID_VERSION,
                };
                let reject = CtReject::new(reason, explanation::NONE);
                let addressed = match header.d_id {
                    FcId::NAME_SERVER => Service::NAME_SERVER,
                    other => Service::new(other.port(), 0),
                };
                let request = Ct::preamble(bytes).unwrap_or(Ct::request(addressed, CtBody::Reject(reject)));
                let block = matches!(error, ParseError::Length { .. });
                let block = block.then(|| block_length(request.service, request.command())).flatten();
                let reject = block.unwrap_or(reject);
                let ct = Message::Ct(Box::new(request.reply(CtBody::Reject(reject))));
                self.out.reply(port, header, header.s_id, RCtl::SOLICITED_CONTROL, ct);
            }
            _ => self.out.discard(),
        }
    }

    /// Answers a link service from a port that is logged in with the fabric.
    fn service(&mut self, now: Instant, header: &Header, els: &Els) -> Answer {
        let (id, to) = (header.s_id, header.d_id);
        let with_login = matches!(to, FcId::NAME_SERVER | FcId::MANAGEMENT_SERVER | FcId::FABRIC_CONTROLLER);
        Some(match els {
            Els::Test(_) => return None,
            Els::Echo(data) => Ok(LsAcc::Echo(data.clone())),
            Els::Rtv => Ok(self.identity.timeouts()),
            Els::Rrq(_) => Ok(LsAcc::Empty),
            Els::Rec(_) => Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_OX_RX_ID)),
            Els::Lirr { .. } if to == FcId::MANAGEMENT_SERVER && !self.logins.has_session(id, to) => {
                Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED))
            }
            Els::Lirr { function, format } if to == FcId::MANAGEMENT_SERVER => {
                self.management.incidents.registration(id, *function, *format)
            }
            Els::Rnid { format } => self.node_data(id, to, *format),
            Els::Rpsc if matches!(to, FcId::F_PORT | FcId::FABRIC_CONTROLLER) => {
                let port = self.port_of(id);
                let (cx, directory, management) = self.services(now);
                Ok(LsAcc::Rpsc(vec![management.port_speed(&cx, &directory.objects, port)]))
            }
            // No port is a loop port.
            Els::Other { command: command::SRL, .. } => Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::NONE)),
            // The link counters belong to the driver.
            Els::Rls { .. } => Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::CANNOT_SUPPLY_DATA)),
            Els::Scr { function } if to == FcId::FABRIC_CONTROLLER => self.directory.controller.register(id, *function),
            Els::Rscn(rscn) if to == FcId::FABRIC_CONTROLLER => {
                let (mut cx, directory, _) = self.services(now);
                directory.controller.reported_change(&mut cx, &directory.objects, id, rscn);
                Ok(LsAcc::Empty)
            }
            Els::Plogi(request) if with_login => check(request).map(|()| {
                self.end_session(id, to);
                self.logins.set_session(id, to, true);
                self.identity.service_parameters(to)
            }),
            Els::Logo(_) if with_login => {
                self.end_session(id, to);
                Ok(LsAcc::Empty)
            }
            Els::Pdisc(_) | Els::Adisc(_) if with_login && !self.logins.has_session(id, to) => {
                Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED))
            }
            Els::Pdisc(_) if with_login => Ok(self.identity.service_parameters(to)),
            Els::Adisc(_) if with_login => Ok(self.identity.service_address(to)),
            _ => Err(NOT_SUPPORTED),
        })
    }

    /// Answers RNID: the switch as the node of all its services, and the port to which the
    /// requester is attached.
    fn node_data(&self, id: FcId, to: FcId, format: u8) -> Result<LsAcc, LsRjt> {
        let specific = match format {
            node_id::COMMON_FORMAT => SpecificData::Other(Box::default()),
            node_id::TOPOLOGY_FORMAT => SpecificData::Topology(TopologyData {
                associated_type: node_id::associated_type::SWITCH,
                physical_port: self.port_of(id).into(),
                attached_nodes: 1,
                ..TopologyData::default()
            }),
            _ => return Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::NOT_SUPPORTED)),
        };
        let port_name = match to {
            FcId::F_PORT => self.identity.f_port_name(self.port_of(id)),
            _ => self.identity.service_name(to),
        };
        Ok(LsAcc::Rnid(Rnid { format, common: Some((port_name, self.identity.name)), specific }))
    }

    /// Port at which an N_Port_ID is logged in.
    fn port_of(&self, id: FcId) -> u16 {
        self.logins.port_of(id).unwrap_or(0)
    }

    /// Ends the login of a port with a service, and all state that depends on it.
    fn end_session(&mut self, id: FcId, service: FcId) {
        self.logins.set_session(id, service, false);
        if service == FcId::MANAGEMENT_SERVER {
            self.management.end_session(id);
        }
    }
}

const NOT_SUPPORTED: LsRjt =
    LsRjt { reason: LsRjtReason::NOT_SUPPORTED, explanation: LsRjtExplanation::NOT_SUPPORTED, vendor: 0 };
const UNSUPPORTED: CtReject = CtReject::new(CtReason::NOT_SUPPORTED, explanation::NONE);

const LOGIN_REQUIRED: CtReject = CtReject::unable(explanation::NONE);

/// Returns an accept that cannot be shortened, or a reject if it exceeds the requester's size
/// limit.
fn fits(request: &Ct, accept: CtBody) -> Result<CtBody, CtReject> {
    let max = usize::from(request.max_or_residual_words);
    let reply = request.reply(accept);
    match reply.encoded_len().div_ceil(4) - PREAMBLE_BYTES / 4 {
        words if max != 0 && words > max => Err(CtReject::new(CtReason::INVALID_SIZE, explanation::NONE)),
        _ => Ok(reply.body),
    }
}
