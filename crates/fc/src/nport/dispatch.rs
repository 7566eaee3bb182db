//! Dispatch of frames and failures to the part of the port that owns them.

use super::NPort;
use super::adapter::{self, AdapterStep};
use super::discovery::AfterFailure;
use super::fabric::{Consequence, FabricState, Topology};
use super::pending::Purpose;
use super::responder::{Answer, reject};
use sanloom_scsi::time::Instant;
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject};
use sanloom_wire::els::{Els, LinkErrorStatus, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Rscn};
use sanloom_wire::fdmi::FdmiAccept;
use sanloom_wire::ns::NsAccept;
use sanloom_wire::{FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwpn};

/// Consecutive failures of requests to fabric services before the port restarts with FLOGI.
pub(super) const MAX_TRIES: u8 = 3;

/// Reason why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// No reply before the deadline.
    Timeout,
    /// Rejected with LS_RJT.
    LsRjt(LsRjt),
    /// Rejected with FS_RJT, the CT reject.
    CtReject(CtReject),
    /// A reply of a kind that does not match the request.
    Strange,
}

impl Failure {
    /// Returns true for a reject that another attempt would meet as well.
    fn is_refusal(self) -> bool {
        let passing = [LsRjtReason::LOGICAL_BUSY, LsRjtReason::UNABLE, LsRjtReason::IN_PROGRESS];
        matches!(self, Failure::LsRjt(reject) if !passing.contains(&reject.reason))
    }
}

impl NPort {
    pub(super) fn on_frame(&mut self, now: Instant, frame: Frame) {
        let Frame { header, payload } = frame;
        let state = self.fabric.state();
        if self.is_for_link_end(&header) {
            return self.on_link_end_request(now, &header, payload);
        }
        if self.is_fan(&header, &payload) {
            return self.on_fan_frame(now, payload);
        }
        // The D_ID of two frames is not known yet: the accept of FLOGI, and the PLOGI of an N_Port
        // that assigns addresses.
        let has_no_address = matches!(state, FabricState::Flogi | FabricState::PeerLogin);
        if state == FabricState::Offline || header.d_id != self.port_id() && !has_no_address {
            self.exchanges.counters.misdirected += 1;
            return;
        }
        match (header.fc_type, header.r_ctl) {
            (FcType::ELS, RCtl::ELS_REQUEST) => self.on_request(now, &header, payload),
            (FcType::ELS, RCtl::ELS_REPLY) | (FcType::CT, RCtl::SOLICITED_CONTROL) => {
                self.on_reply(now, &header, payload);
            }
            (FcType::CT, RCtl::UNSOLICITED_CONTROL) => self.reject_ct(&header, payload),
            _ => self.exchanges.counters.misdirected += 1,
        }
    }

    fn on_reply(&mut self, now: Instant, header: &Header, payload: Payload) {
        let Some(purpose) = self.exchanges.pending.close(header) else {
            self.exchanges.counters.stale_replies += 1;
            return;
        };
        let failure = match payload {
            Payload::Typed(Message::Els(els)) => match *els {
                Els::LsAcc(accept) if self.on_els_accept(now, header, purpose, &accept) => return,
                Els::LsRjt(reject) => Failure::LsRjt(reject),
                _ => Failure::Strange,
            },
            Payload::Typed(Message::Ct(ct)) => match ct.body {
                CtBody::NsAccept(accept) if self.on_ns_accept(now, purpose, &accept) => return,
                CtBody::FdmiAccept(FdmiAccept::Empty) if self.on_adapter_accept(now, purpose) => return,
                CtBody::Reject(reject) => Failure::CtReject(reject),
                _ => Failure::Strange,
            },
            _ => Failure::Strange,
        };
        match failure {
            Failure::Strange => self.exchanges.counters.strange_replies += 1,
            _ => self.exchanges.counters.rejected += 1,
        }
        self.on_failure(now, purpose, failure);
    }

    /// Handles an accept of an ELS request. Returns false if it does not match the request.
    fn on_els_accept(&mut self, now: Instant, header: &Header, purpose: Purpose, accept: &LsAcc) -> bool {
        let exchanges = &mut self.exchanges;
        match (purpose, accept) {
            (Purpose::Fabric, accept) => {
                let consequence = self.fabric.on_accept(now, header, accept, exchanges);
                consequence.map(|consequence| self.apply(now, consequence)).is_some()
            }
            (Purpose::Logout, _) => {
                let consequence = self.fabric.on_logout(now, exchanges);
                self.apply(now, consequence);
                true
            }
            (Purpose::Plogi(port_id), LsAcc::Login(login)) => {
                self.logins.on_plogi_accept(now, port_id, login, exchanges)
            }
            (Purpose::Prli(port_id), LsAcc::Prli(prli)) => self.logins.on_prli_accept(port_id, prli, exchanges),
            (Purpose::Adapter(AdapterStep::Login), LsAcc::Login(_)) => self.on_adapter_accept(now, purpose),
            (Purpose::Adisc(port_id), LsAcc::Adisc(adisc)) => self.logins.on_adisc_accept(now, port_id, adisc),
            _ => false,
        }
    }

    /// Continues the registration of the adapter. Returns false for other requests.
    fn on_adapter_accept(&mut self, now: Instant, purpose: Purpose) -> bool {
        let Purpose::Adapter(step) = purpose else { return false };
        if let Some(next) = step.next() {
            adapter::begin(now, next, &mut self.exchanges);
        }
        true
    }

    /// Handles an accept of the name server. Returns false if it does not match the request.
    fn on_ns_accept(&mut self, now: Instant, purpose: Purpose, accept: &NsAccept) -> bool {
        match (purpose, accept) {
            (Purpose::Fabric, NsAccept::Empty) => {
                let consequence = self.fabric.on_registered(now, &mut self.exchanges);
                return consequence.map(|consequence| self.apply(now, consequence)).is_some();
            }
            (Purpose::Discovery, NsAccept::PortIds(ids)) => {
                self.on_targets(now, ids.iter().map(|&port_id| (port_id, None)));
            }
            (Purpose::Discovery, NsAccept::PortNames(ports)) => {
                self.on_targets(now, ports.iter().map(|&(port_id, name)| (port_id, Some(name))));
            }
            (Purpose::Verify(port_id), NsAccept::PortName(name)) => {
                if !self.logins.confirm(now, port_id, *name) {
                    self.logins.remove(port_id, &mut self.exchanges);
                }
            }
            _ => return false,
        }
        true
    }

    /// Handles a reply of the name server that lists the targets.
    fn on_targets(&mut self, now: Instant, ports: impl Iterator<Item = (FcId, Option<Wwpn>)>) {
        self.discovery.on_reply(now, self.r_a_tov());
        self.logins.replace_targets(now, ports, &mut self.exchanges);
    }

    /// Passes a failed request to its owner.
    pub(super) fn on_failure(&mut self, now: Instant, purpose: Purpose, failure: Failure) {
        let exchanges = &mut self.exchanges;
        let consequence = match purpose {
            Purpose::Fabric => self.fabric.on_failure(now, failure, exchanges),
            Purpose::Logout => self.fabric.on_logout(now, exchanges),
            Purpose::Adapter(_) => {
                exchanges.counters.registrations_refused += 1;
                return;
            }
            Purpose::Discovery => match self.discovery.on_failure(now, failure, exchanges) {
                AfterFailure::Scheduled => return,
                AfterFailure::NoTargets => return self.on_targets(now, std::iter::empty()),
                AfterFailure::GiveUp => Consequence::Restart,
            },
            Purpose::Adisc(port_id) => return self.logins.on_adisc_failure(now, port_id, failure, exchanges),
            Purpose::Plogi(port_id) | Purpose::Prli(port_id)
                if self.fabric.topology() == Topology::PrivateLoop && failure.is_refusal() =>
            {
                return self.logins.leave_alone(port_id, exchanges);
            }
            Purpose::Plogi(port_id) | Purpose::Prli(port_id) => return self.logins.on_failure(now, port_id, exchanges),
            Purpose::Verify(port_id) => return self.logins.on_verify_failure(now, port_id, failure, exchanges),
        };
        self.apply(now, consequence);
    }

    fn on_request(&mut self, now: Instant, header: &Header, payload: Payload) {
        let assigned = match &payload {
            Payload::Typed(Message::Els(els)) => match &**els {
                Els::Plogi(login) => self.adopt_assigned_address(header, login),
                _ => false,
            },
            _ => false,
        };
        if !assigned && self.port_id() == FcId::ZERO {
            self.exchanges.counters.misdirected += 1;
            return;
        }
        let answer = match payload {
            Payload::Typed(Message::Els(els)) => match *els {
                Els::Test(_) => return,
                els => self.answer_els(now, header, els),
            },
            _ => Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PAYLOAD_LENGTH)),
        };
        self.reply_els(header, answer);
    }

    /// Sends the reply to an ELS request.
    pub(super) fn reply_els(&mut self, header: &Header, answer: Answer) {
        let els = match answer {
            Ok(accept) => Els::LsAcc(accept),
            Err(reject) => {
                self.exchanges.counters.rejects_sent += 1;
                Els::LsRjt(reject)
            }
        };
        self.exchanges.reply(header, Message::from(els));
    }

    /// Computes the reply to an ELS request. Outputs that grant or revoke a login are queued before
    /// the reply that reveals it.
    fn answer_els(&mut self, now: Instant, header: &Header, els: Els) -> Answer {
        let (port_id, exchanges) = (header.s_id, &mut self.exchanges);
        match els {
            Els::Plogi(login) => self.answer_plogi(now, port_id, &login),
            Els::Rtv => Ok(LsAcc::Rtv(exchanges.identity.timeout_values())),
            Els::Rls { .. } => Ok(LsAcc::Rls(LinkErrorStatus::default())),
            Els::Echo(bytes) => Ok(LsAcc::Echo(bytes)),
            Els::Rscn(rscn) => {
                self.on_rscn(now, &rscn);
                Ok(LsAcc::Empty)
            }
            Els::Rlir(_) if port_id == FcId::MANAGEMENT_SERVER => {
                exchanges.counters.incident_reports += 1;
                Ok(LsAcc::Empty)
            }
            Els::Logo(_) => {
                self.on_logo(now, port_id);
                Ok(LsAcc::Empty)
            }
            Els::Prli(prli) => {
                self.logins.require_login(port_id)?;
                self.logins.answer_prli(port_id, &prli, exchanges)
            }
            Els::Prlo(prlo) => {
                self.logins.require_login(port_id)?;
                Ok(LsAcc::Prlo(self.logins.answer_prlo(now, port_id, prlo, exchanges)))
            }
            Els::Pdisc(_) => {
                self.logins.require_login(port_id)?;
                Ok(LsAcc::Login(exchanges.identity.plogi_parameters()))
            }
            Els::Adisc(adisc) => {
                self.logins.require_login(port_id)?;
                self.logins.answer_adisc(port_id, &adisc, exchanges)
            }
            // The FCP target frees the exchange numbers of aborted exchanges by its own timer.
            Els::Rrq(_) => {
                self.logins.require_login(port_id)?;
                Ok(LsAcc::Empty)
            }
            // REC is rejected as well: the initiator then recovers by ABTS alone.
            _ => Err(reject(LsRjtReason::NOT_SUPPORTED, LsRjtExplanation::NOT_SUPPORTED)),
        }
    }

    /// Handles an RSCN. An initiator queries the targets again.
    fn on_rscn(&mut self, now: Instant, rscn: &Rscn) {
        self.exchanges.counters.rscns += 1;
        if !self.fabric.topology().has_fabric() {
            // Without a fabric there is no service to query.
            return;
        }
        self.logins.mark_affected(now, rscn);
        if self.exchanges.identity.config.initiator {
            self.discovery.schedule();
        }
    }

    fn on_logo(&mut self, now: Instant, port_id: FcId) {
        let logging_out = self.fabric.state() == FabricState::Logo;
        match port_id {
            _ if !self.fabric.topology().has_fabric() && port_id.is_well_known() => {}
            _ if logging_out && port_id != FcId::F_PORT => {}
            FcId::F_PORT if logging_out => self.apply(now, Consequence::Offline),
            FcId::F_PORT => self.apply(now, Consequence::Restart),
            // Logins with other ports stay, and discovery runs again after the registrations.
            FcId::NAME_SERVER => {
                if self.fabric.register_again(now, &mut self.exchanges) {
                    self.discovery.cancel();
                }
            }
            _ => self.logins.lose(now, port_id, &mut self.exchanges),
        }
    }

    /// Rejects a CT request, because a node port offers no generic service.
    fn reject_ct(&mut self, header: &Header, payload: Payload) {
        let Payload::Typed(Message::Ct(request)) = payload else {
            self.exchanges.counters.misdirected += 1;
            return;
        };
        self.exchanges.counters.rejects_sent += 1;
        let reject = CtReject::new(CtReason::NOT_SUPPORTED, 0);
        let ct = Ct { max_or_residual_words: 0, body: CtBody::Reject(reject), ..*request };
        self.exchanges.reply(header, Message::from(ct));
    }
}
