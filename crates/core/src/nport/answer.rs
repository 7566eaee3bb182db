//! Requests of other ports, and our answers.

use super::fabric::FabricState;
use super::remote::{RemoteState, flag};
use super::{NPort, Output};
use crate::time::Instant;
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject};
use sanloom_wire::els::{
    Adisc, Els, LinkErrorStatus, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Prli, PrliPage, Prlo, Rtv, prli,
};
use sanloom_wire::login::Login;
use sanloom_wire::{FcId, FcType, Header, Message, Payload};

/// PRLI response codes (FC-LS): a page that makes no sense here, and one that our configuration rules out.
const RESPONSE_INVALID_PAGE: u8 = 8;
const RESPONSE_CONFIGURATION_PRECLUDES: u8 = 5;
/// Process associators and the image flag: what an accept repeats.
const PRLI_REQUEST_FLAGS: u8 = 0xf0;
/// Remote ports that one port knows at most; more logins are refused for want of resources.
const MAX_REMOTES: usize = 65_536;

type Answer = Result<LsAcc, LsRjt>;

impl NPort {
    pub(super) fn on_request(&mut self, now: Instant, header: &Header, payload: Payload) {
        if self.port_id == FcId::ZERO {
            self.counters.misdirected += 1;
            return;
        }
        let answer = match payload {
            Payload::Typed(Message::Els(els)) => match *els {
                Els::Test(_) => return,
                els => self.answer_els(now, header, els),
            },
            _ => Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PAYLOAD_LENGTH)),
        };
        let els = match answer {
            Ok(accept) => Els::LsAcc(accept),
            Err(reject) => {
                self.counters.rejects_sent += 1;
                Els::LsRjt(reject)
            }
        };
        self.reply(header, Message::from(els));
    }

    /// What is granted or revoked is put out before the answer that reveals it.
    fn answer_els(&mut self, now: Instant, header: &Header, els: Els) -> Answer {
        let port_id = header.s_id;
        match els {
            Els::Plogi(login) => self.answer_plogi(now, port_id, &login),
            Els::Rtv => Ok(LsAcc::Rtv(self.timeout_values())),
            Els::Rls { .. } => Ok(LsAcc::Rls(LinkErrorStatus::default())),
            Els::Echo(bytes) => Ok(LsAcc::Echo(bytes)),
            Els::Rscn(rscn) => {
                self.on_rscn(now, &rscn);
                Ok(LsAcc::Empty)
            }
            Els::Rlir(_) if port_id == FcId::MANAGEMENT_SERVER => {
                self.counters.incident_reports += 1;
                Ok(LsAcc::Empty)
            }
            Els::Logo(_) => {
                self.on_logo(now, port_id);
                Ok(LsAcc::Empty)
            }
            Els::Prli(prli) => {
                self.need_login(port_id)?;
                self.answer_prli(port_id, &prli)
            }
            Els::Prlo(prlo) => {
                self.need_login(port_id)?;
                Ok(LsAcc::Prlo(self.answer_prlo(now, port_id, prlo)))
            }
            Els::Pdisc(_) => {
                self.need_login(port_id)?;
                Ok(LsAcc::Login(self.plogi_parameters()))
            }
            Els::Adisc(adisc) => {
                self.need_login(port_id)?;
                self.answer_adisc(port_id, &adisc)
            }
            // The FCP target frees aborted exchange numbers by its own clock.
            Els::Rrq(_) => {
                self.need_login(port_id)?;
                Ok(LsAcc::Empty)
            }
            // REC among them: an initiator that is told so recovers by ABTS alone.
            _ => Err(reject(LsRjtReason::NOT_SUPPORTED, LsRjtExplanation::NOT_SUPPORTED)),
        }
    }

    fn need_login(&self, port_id: FcId) -> Result<(), LsRjt> {
        match self.remotes.get(port_id) {
            Some(remote) if remote.state.is_logged_in() => Ok(()),
            _ => Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED)),
        }
    }

    fn answer_plogi(&mut self, now: Instant, port_id: FcId, login: &Login) -> Answer {
        let Some(frame_size_bytes) = self.common_frame_size(login) else {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, self.what_is_wrong(login)));
        };
        if login.port_name == self.config.wwpn {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PORT_NAME));
        }
        let accept = Ok(LsAcc::Login(self.plogi_parameters()));
        // A service of the fabric that logs in is no remote port.
        if port_id.is_well_known() {
            return accept;
        }
        let state = self.remotes.get(port_id).map(|remote| remote.state);
        if state.is_none() && self.remotes.len() >= MAX_REMOTES {
            return Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES));
        }
        // Both sides log in at once: the lower name gives way.
        if state == Some(RemoteState::Plogi) && login.port_name < self.config.wwpn {
            return Err(reject(LsRjtReason::IN_PROGRESS, LsRjtExplanation::REQUEST_IN_PROGRESS));
        }
        self.log_out(port_id);
        let remote = self.remotes.get_or_insert(port_id, RemoteState::LoggedIn);
        remote.state = RemoteState::LoggedIn;
        remote.clear(flag::THEIR_PRLI | flag::AFFECTED | flag::INITIATOR | flag::TARGET);
        if remote.has(flag::DISCOVERED) {
            // It will most likely send PRLI; if not, we do.
            self.due.insert((now + self.config.e_d_tov, port_id));
        }
        self.note_names(port_id, login, frame_size_bytes);
        accept
    }

    fn what_is_wrong(&self, login: &Login) -> LsRjtExplanation {
        if login.port_name.0 == 0 {
            LsRjtExplanation::INVALID_PORT_NAME
        } else if login.node_name.0 == 0 {
            LsRjtExplanation::INVALID_NODE_NAME
        } else {
            LsRjtExplanation::RECEIVE_SIZE
        }
    }

    /// Ends a login that is replaced by a new one; open requests to the port have lost their meaning.
    fn log_out(&mut self, port_id: FcId) {
        self.flights.forget_remote(port_id);
        if let Some(remote) = self.remotes.get_mut(port_id)
            && remote.state.is_up()
        {
            remote.state = RemoteState::LoggedIn;
            self.outputs.push_back(Output::RemoteDown { port_id, wwpn: remote.wwpn });
        }
    }

    fn answer_prli(&mut self, port_id: FcId, request: &Prli) -> Answer {
        if request.pages.is_empty() {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PAYLOAD_LENGTH));
        }
        let pages = request.pages.iter().map(|page| self.answer_prli_page(port_id, page)).collect();
        Ok(LsAcc::Prli(Prli { pages }))
    }

    fn answer_prli_page(&mut self, port_id: FcId, page: &PrliPage) -> PrliPage {
        let establishes = page.flags & prli::ESTABLISH_IMAGE_PAIR != 0;
        if page.fc4_type != FcType::FCP.0 {
            let code = if establishes { RESPONSE_CONFIGURATION_PRECLUDES } else { RESPONSE_INVALID_PAGE };
            return PrliPage { flags: page.flags & PRLI_REQUEST_FLAGS & !prli::ESTABLISH_IMAGE_PAIR | code, ..*page };
        }
        if establishes {
            self.establish(port_id, page.parameters, flag::THEIR_PRLI);
        }
        let flags = page.flags & prli::ESTABLISH_IMAGE_PAIR | prli::RESPONSE_EXECUTED;
        PrliPage { flags, ..self.prli_page() }
    }

    fn answer_prlo(&mut self, now: Instant, port_id: FcId, mut prlo: Prlo) -> Prlo {
        if prlo.pages.iter().any(|page| page.fc4_type == FcType::FCP.0) {
            self.log_out(port_id);
            if let Some(remote) = self.remotes.get_mut(port_id)
                && remote.has(flag::DISCOVERED)
            {
                remote.state = RemoteState::LoggedIn;
                remote.clear(flag::THEIR_PRLI);
                remote.tries = remote.tries.saturating_add(1);
                let tries = remote.tries;
                let at = now + self.back_off(tries);
                self.due.insert((at, port_id));
            }
        }
        for page in &mut prlo.pages {
            page.flags = page.flags & PRLI_REQUEST_FLAGS & !prli::ESTABLISH_IMAGE_PAIR | prli::RESPONSE_EXECUTED;
        }
        prlo
    }

    fn answer_adisc(&self, port_id: FcId, adisc: &Adisc) -> Answer {
        match self.remotes.get(port_id) {
            Some(remote) if remote.wwpn == adisc.port_name => Ok(LsAcc::Adisc(self.adisc())),
            _ => Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED)),
        }
    }

    fn on_logo(&mut self, now: Instant, port_id: FcId) {
        match port_id {
            _ if self.mesh && port_id.is_well_known() => {}
            _ if self.state == FabricState::Logo && port_id != FcId::F_PORT => {}
            FcId::F_PORT if self.state == FabricState::Logo => self.go_offline(),
            FcId::F_PORT => self.start_over(now),
            FcId::NAME_SERVER => self.register_again(now),
            _ => self.lose(now, port_id),
        }
    }

    fn timeout_values(&self) -> Rtv {
        let ms = |span: crate::time::Span| u32::try_from(span.as_ms()).unwrap_or(u32::MAX);
        Rtv { r_a_tov_ms: ms(self.config.r_a_tov), e_d_tov: ms(self.config.e_d_tov), qualifier: 0 }
    }

    /// We offer no generic service.
    pub(super) fn refuse_ct(&mut self, header: &Header, payload: Payload) {
        let Payload::Typed(Message::Ct(request)) = payload else {
            self.counters.misdirected += 1;
            return;
        };
        self.counters.rejects_sent += 1;
        let reject = CtReject::new(CtReason::NOT_SUPPORTED, 0);
        let ct = Ct { max_or_residual_words: 0, body: CtBody::Reject(reject), ..*request };
        self.reply(header, Message::from(ct));
    }
}

fn reject(reason: LsRjtReason, explanation: LsRjtExplanation) -> LsRjt {
    LsRjt { reason, explanation, vendor: 0 }
}
