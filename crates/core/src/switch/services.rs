//! Link services and CT units addressed to the services of the switch: who answers what.

use super::Switch;
use super::login::{CLASS_3, FC_PH_3, check, extended_name, milliseconds, reject};
use super::management::block_length;
use crate::time::Instant;
use sanloom_wire::bls::{BaAcc, Bls};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, PREAMBLE_BYTES, Service};
use sanloom_wire::els::node_id::{self, SpecificData, TopologyData};
use sanloom_wire::els::{Adisc, Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Rnid, Rtv, command};
use sanloom_wire::login::{ClassParameters, CommonParameters, feature};
use sanloom_wire::ns::explanation;
use sanloom_wire::{FcId, FcType, Header, Message, ParseError, RCtl, login};

/// How a request ends: an accept, a reject, or silence.
type Answer = Option<Result<LsAcc, LsRjt>>;

impl Switch {
    pub(super) fn link_service(&mut self, now: Instant, port: u16, header: &Header, els: Els) {
        match (header.r_ctl, els.is_reply()) {
            (RCtl::ELS_REQUEST, false) => {}
            (RCtl::ELS_REPLY, true) if header.d_id == FcId::MANAGEMENT_SERVER => {
                return self.report_answered(now, header, &els);
            }
            (RCtl::ELS_REPLY, true) => return self.notification_answered(now, header, &els),
            _ => {
                self.counters.frames_discarded += 1;
                return;
            }
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
            _ if !self.knows(port, header.s_id) => {
                self.counters.frames_discarded += 1;
                return;
            }
            (Els::Logo(logo), FcId::F_PORT) => (Some(self.fabric_logout(now, port, logo)), header.s_id),
            _ => {
                let answer = self.service(now, header, &els);
                match answer {
                    Some(Ok(_)) => self.counters.els_accepted += 1,
                    Some(Err(_)) => self.counters.els_rejected += 1,
                    None => {}
                }
                (answer, header.s_id)
            }
        };
        if let Some(answer) = answer {
            let els = answer.map_or_else(Els::LsRjt, Els::LsAcc);
            self.reply(port, header, to, RCtl::ELS_REPLY, Message::Els(Box::new(els)));
        }
    }

    pub(super) fn common_transport(&mut self, now: Instant, port: u16, header: &Header, ct: Ct) {
        let request = header.r_ctl == RCtl::UNSOLICITED_CONTROL && !ct.is_reply();
        if !request || !self.knows(port, header.s_id) {
            self.counters.frames_discarded += 1;
            return;
        }
        let logged_in = self.has_service(header.s_id, header.d_id);
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
                let Some(answer) = self.management_request(port, header, &ct) else { return };
                answer.and_then(|accept| fits(&ct, accept)).map(|accept| (accept, 0))
            }
            _ => Err(UNSUPPORTED),
        };
        self.answer_transport(port, header, &ct, answer);
    }

    /// Answers a CT request with an accept and the words of it that there was no room for, or a reject.
    pub(super) fn answer_transport(
        &mut self,
        port: u16,
        header: &Header,
        ct: &Ct,
        answer: Result<(CtBody, u16), CtReject>,
    ) {
        let reply = match answer {
            Ok((accept, residual_words)) => {
                self.counters.ct_accepted += 1;
                Ct { max_or_residual_words: residual_words, ..ct.reply(accept) }
            }
            Err(reject) => {
                self.counters.ct_rejected += 1;
                ct.reply(CtBody::Reject(reject))
            }
        };
        let message = Message::Ct(Box::new(reply));
        self.reply(port, header, header.s_id, RCtl::SOLICITED_CONTROL, message);
    }

    /// A request to the zone server may wait for the fabric; every other is answered at once. So the exchange that an ABTS
    /// names is over: the whole of it is accepted as aborted.
    pub(super) fn basic_link_service(&mut self, port: u16, header: &Header, bls: Bls) {
        if bls != Bls::Abts || !self.knows(port, header.s_id) {
            self.counters.frames_discarded += 1;
            return;
        }
        self.zone_request_aborted(header.s_id, header.ox_id);
        let accept =
            BaAcc { seq_id: None, ox_id: header.ox_id, rx_id: header.rx_id, low_seq_cnt: 0, high_seq_cnt: u16::MAX };
        let message = Message::Bls(Bls::BaAcc(accept));
        self.reply(port, header, header.s_id, RCtl::BLS_BA_ACC, message);
    }

    /// Bytes that are no value: a request gets the reject that says what is wrong with it, anything else is discarded.
    pub(super) fn malformed(&mut self, port: u16, header: &Header, bytes: &[u8], error: ParseError) {
        let may_ask = self.knows(port, header.s_id) || (header.s_id == FcId::ZERO && header.d_id == FcId::F_PORT);
        match (header.fc_type, header.r_ctl) {
            (FcType::ELS, RCtl::ELS_REQUEST) if may_ask => {
                self.counters.els_rejected += 1;
                let els = Message::Els(Box::new(Els::LsRjt(match error {
                    ParseError::Truncated { .. } | ParseError::Length { .. } => {
                        reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PAYLOAD_LENGTH)
                    }
                    ParseError::Value { .. } => reject(LsRjtReason::PROTOCOL_ERROR, LsRjtExplanation::NONE),
                    ParseError::Unsupported { .. } => NOT_SUPPORTED,
                })));
                self.reply(port, header, header.s_id, RCtl::ELS_REPLY, els);
            }
            (FcType::CT, RCtl::UNSOLICITED_CONTROL) if may_ask => {
                self.counters.ct_rejected += 1;
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
                self.reply(port, header, header.s_id, RCtl::SOLICITED_CONTROL, ct);
            }
            _ => self.counters.frames_discarded += 1,
        }
    }

    /// A link service, from a port that is logged in with the fabric.
    fn service(&mut self, now: Instant, header: &Header, els: &Els) -> Answer {
        let (id, to) = (header.s_id, header.d_id);
        let with_login = matches!(to, FcId::NAME_SERVER | FcId::MANAGEMENT_SERVER | FcId::FABRIC_CONTROLLER);
        Some(match els {
            Els::Test(_) => return None,
            Els::Echo(data) => Ok(LsAcc::Echo(data.clone())),
            Els::Rtv => Ok(LsAcc::Rtv(Rtv {
                r_a_tov_ms: milliseconds(self.config.r_a_tov),
                e_d_tov: milliseconds(self.config.e_d_tov),
                qualifier: 0,
            })),
            Els::Rrq(_) => Ok(LsAcc::Empty),
            Els::Rec(_) => Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_OX_RX_ID)),
            Els::Lirr { .. } if to == FcId::MANAGEMENT_SERVER && !self.has_service(id, to) => {
                Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED))
            }
            Els::Lirr { function, format } if to == FcId::MANAGEMENT_SERVER => {
                self.register_for_incidents(id, *function, *format)
            }
            Els::Rnid { format } => self.node_data(id, to, *format),
            Els::Rpsc if matches!(to, FcId::F_PORT | FcId::FABRIC_CONTROLLER) => {
                Ok(LsAcc::Rpsc(vec![self.port_speed(self.port_of(id))]))
            }
            // There is no loop behind any port.
            Els::Other { command: command::SRL, .. } => Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::NONE)),
            // The counters of the link are the driver's.
            Els::Rls { .. } => Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::CANNOT_SUPPLY_DATA)),
            Els::Scr { function } if to == FcId::FABRIC_CONTROLLER => self.register_for_changes(id, *function),
            Els::Rscn(rscn) if to == FcId::FABRIC_CONTROLLER => self.reported_change(now, id, rscn),
            Els::Plogi(request) if with_login => check(request).map(|()| {
                self.end_session(id, to);
                self.set_service(id, to, true);
                self.service_parameters(to)
            }),
            Els::Logo(_) if with_login => {
                self.end_session(id, to);
                Ok(LsAcc::Empty)
            }
            Els::Pdisc(_) | Els::Adisc(_) if with_login && !self.has_service(id, to) => {
                Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED))
            }
            Els::Pdisc(_) if with_login => Ok(self.service_parameters(to)),
            Els::Adisc(_) if with_login => Ok(LsAcc::Adisc(Adisc {
                hard_address: FcId::ZERO,
                port_name: extended_name(self.config.name.0, service_number(to)),
                node_name: self.config.name,
                port_id: to,
            })),
            _ => Err(NOT_SUPPORTED),
        })
    }

    /// RNID: the switch, as the node of all its services, and the port that the requester is attached to.
    fn node_data(&self, id: FcId, to: FcId, format: u8) -> Result<LsAcc, LsRjt> {
        let specific = match format {
            node_id::COMMON_FORMAT => SpecificData::Other(Box::default()),
            node_id::TOPOLOGY_FORMAT => SpecificData::Topology(TopologyData {
                associated_type: node_id::associated_type::SWITCH,
                physical_port: self.port_of(id).into(),
                attached_nodes: 1,
                ..TopologyData::default()
            }),
            _ => return Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::NOT_SUPPORTED)),
        };
        let port_name = match to {
            FcId::F_PORT => self.f_port_name(self.port_of(id)),
            _ => extended_name(self.config.name.0, service_number(to)),
        };
        Ok(LsAcc::Rnid(Rnid { format, common: Some((port_name, self.config.name)), specific }))
    }

    /// The port that a login came in through.
    fn port_of(&self, id: FcId) -> u16 {
        self.logins.get(&id).map_or(0, |login| login.port)
    }

    /// Ends the login of a port with a service, and what lasts as long as it.
    fn end_session(&mut self, id: FcId, service: FcId) {
        self.set_service(id, service, false);
        if service == FcId::MANAGEMENT_SERVER {
            self.management.end_session(id);
        }
    }

    /// Service parameters of a service (FC-LS, PLOGI accept).
    fn service_parameters(&self, of: FcId) -> LsAcc {
        LsAcc::Login(login::Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: SERVICE_CREDIT,
                features: feature::CONTINUOUS_OFFSET,
                bb_sc_n: 0,
                receive_size_bytes: self.config.receive_size_bytes,
                word_8: u32::from(SERVICE_SEQUENCES) << 16 | RELATIVE_OFFSETS,
                e_d_tov: milliseconds(self.config.e_d_tov),
            },
            port_name: extended_name(self.config.name.0, service_number(of)),
            node_name: self.config.name,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters {
                flags: CLASS_3,
                receive_size_bytes: self.config.receive_size_bytes,
                concurrent_sequences: SERVICE_SEQUENCES,
                open_sequences: 1,
                ..ClassParameters::default()
            },
        })
    }

    /// The port is logged in with the service.
    fn has_service(&self, id: FcId, service: FcId) -> bool {
        self.logins.get(&id).is_some_and(|login| login.services & service_bit(service) != 0)
    }

    fn set_service(&mut self, id: FcId, service: FcId, logged_in: bool) {
        if let Some(login) = self.logins.get_mut(&id) {
            login.services &= !service_bit(service);
            login.services |= if logged_in { service_bit(service) } else { 0 };
        }
    }
}

/// Buffer-to-buffer credit in a service's parameters: without meaning, but never zero (FC-LS, common parameters).
const SERVICE_CREDIT: u16 = 10;
/// Sequences that a service takes at once from one port.
const SERVICE_SEQUENCES: u16 = 255;
/// Information categories that may use relative offsets: all.
const RELATIVE_OFFSETS: u32 = 0x1f;

const NOT_SUPPORTED: LsRjt =
    LsRjt { reason: LsRjtReason::NOT_SUPPORTED, explanation: LsRjtExplanation::NOT_SUPPORTED, vendor: 0 };
const UNSUPPORTED: CtReject = CtReject::new(CtReason::NOT_SUPPORTED, explanation::NONE);

const LOGIN_REQUIRED: CtReject = CtReject::unable(explanation::NONE);

/// An accept that cannot be shortened, if the requester takes one of its size.
fn fits(request: &Ct, accept: CtBody) -> Result<CtBody, CtReject> {
    let max = usize::from(request.max_or_residual_words);
    let reply = request.reply(accept);
    match reply.encoded_len().div_ceil(4) - PREAMBLE_BYTES / 4 {
        words if max != 0 && words > max => Err(CtReject::new(CtReason::INVALID_SIZE, explanation::NONE)),
        _ => Ok(reply.body),
    }
}

/// A bit for each service that takes a PLOGI.
fn service_bit(service: FcId) -> u8 {
    match service {
        FcId::FABRIC_CONTROLLER => 1,
        FcId::NAME_SERVER => 2,
        FcId::MANAGEMENT_SERVER => 4,
        _ => 0,
    }
}

/// The twelve low bits of a well-known address, for its name.
fn service_number(service: FcId) -> u16 {
    (service.to_u32() & 0xfff) as u16
}
