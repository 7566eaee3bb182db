//! Logins with other ports: replies to their PLOGI, PRLI, PRLO and ADISC.

use super::exchanges::Exchanges;
use super::logins::RemoteLogins;
use super::remote::{RemoteState, flag};
use sanloom_scsi::time::Instant;
use sanloom_wire::els::{Adisc, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Prli, PrliPage, Prlo, prli};
use sanloom_wire::login::Login;
use sanloom_wire::{FcId, FcType};

/// PRLI response codes (FC-LS): an invalid page, and a page that the configuration precludes.
const RESPONSE_INVALID_PAGE: u8 = 8;
const RESPONSE_CONFIGURATION_PRECLUDES: u8 = 5;
/// Bits of the PRLI flags that an accept repeats: process-associator validity and the image-pair
/// flag.
const PRLI_REQUEST_FLAGS: u8 = 0xf0;
/// Maximum number of remote ports; further logins are rejected with insufficient resources.
const MAX_REMOTES: usize = 65_536;

/// Reply to an ELS request.
pub(super) type Answer = Result<LsAcc, LsRjt>;

impl RemoteLogins {
    /// Returns the reject of a request that requires an N_Port login, unless there is one.
    pub(super) fn require_login(&self, port_id: FcId) -> Result<(), LsRjt> {
        match self.remotes.get(port_id) {
            Some(remote) if remote.state.is_logged_in() => Ok(()),
            _ => Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED)),
        }
    }

    pub(super) fn answer_plogi(
        &mut self,
        now: Instant,
        port_id: FcId,
        login: &Login,
        exchanges: &mut Exchanges,
    ) -> Answer {
        let identity = &exchanges.identity;
        let (own_name, e_d_tov) = (identity.config.wwpn, identity.config.e_d_tov);
        let Some(frame_size_bytes) = identity.common_frame_size(login) else {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, defect(login)));
        };
        if login.port_name == own_name {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PORT_NAME));
        }
        let accept = Ok(LsAcc::Login(identity.plogi_parameters()));
        // A fabric service that logs in does not become a remote port.
        if port_id.is_well_known() {
            return accept;
        }
        let state = self.remotes.get(port_id).map(|remote| remote.state);
        if state.is_none() && self.remotes.len() >= MAX_REMOTES {
            return Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES));
        }
        // When both sides send PLOGI, the port with the lower name yields.
        if state == Some(RemoteState::Plogi) && login.port_name < own_name {
            return Err(reject(LsRjtReason::IN_PROGRESS, LsRjtExplanation::REQUEST_IN_PROGRESS));
        }
        self.end_process_login(port_id, exchanges);
        let remote = self.remotes.get_or_insert(port_id, RemoteState::LoggedIn);
        remote.state = RemoteState::LoggedIn;
        remote.clear(flag::THEIR_PRLI | flag::AFFECTED | flag::INITIATOR | flag::TARGET);
        if remote.has(flag::DISCOVERED) {
            // The remote port will most likely send PRLI; otherwise this port sends it after
            // E_D_TOV.
            self.schedule(now + e_d_tov, port_id);
        }
        self.store_names(now, port_id, login, frame_size_bytes, exchanges);
        accept
    }

    /// Ends a process login without removing the port. Pending requests to the port are dropped.
    fn end_process_login(&mut self, port_id: FcId, exchanges: &mut Exchanges) {
        exchanges.pending.forget_remote(port_id);
        if let Some(remote) = self.remotes.get_mut(port_id)
            && remote.state.is_up()
        {
            remote.state = RemoteState::LoggedIn;
            exchanges.report_down(port_id, remote.wwpn);
        }
    }

    pub(super) fn answer_prli(&mut self, port_id: FcId, request: &Prli, exchanges: &mut Exchanges) -> Answer {
        if request.pages.is_empty() {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PAYLOAD_LENGTH));
        }
        let pages = request.pages.iter().map(|page| self.answer_prli_page(port_id, page, exchanges)).collect();
        Ok(LsAcc::Prli(Prli { pages }))
    }

    fn answer_prli_page(&mut self, port_id: FcId, page: &PrliPage, exchanges: &mut Exchanges) -> PrliPage {
        let establishes = page.flags & prli::ESTABLISH_IMAGE_PAIR != 0;
        if page.fc4_type != FcType::FCP.0 {
            let code = if establishes { RESPONSE_CONFIGURATION_PRECLUDES } else { RESPONSE_INVALID_PAGE };
            return PrliPage { flags: page.flags & PRLI_REQUEST_FLAGS & !prli::ESTABLISH_IMAGE_PAIR | code, ..*page };
        }
        if establishes {
            self.establish(port_id, page.parameters, flag::THEIR_PRLI, exchanges);
        }
        let flags = page.flags & prli::ESTABLISH_IMAGE_PAIR | prli::RESPONSE_EXECUTED;
        PrliPage { flags, ..exchanges.identity.prli_page() }
    }

    pub(super) fn answer_prlo(
        &mut self,
        now: Instant,
        port_id: FcId,
        mut prlo: Prlo,
        exchanges: &mut Exchanges,
    ) -> Prlo {
        if prlo.pages.iter().any(|page| page.fc4_type == FcType::FCP.0) {
            self.end_process_login(port_id, exchanges);
            if let Some(remote) = self.remotes.get_mut(port_id)
                && remote.has(flag::DISCOVERED)
            {
                remote.state = RemoteState::LoggedIn;
                remote.clear(flag::THEIR_PRLI);
                remote.tries = remote.tries.saturating_add(1);
                let at = now + exchanges.back_off(remote.tries);
                self.schedule(at, port_id);
            }
        }
        for page in &mut prlo.pages {
            page.flags = page.flags & PRLI_REQUEST_FLAGS & !prli::ESTABLISH_IMAGE_PAIR | prli::RESPONSE_EXECUTED;
        }
        prlo
    }

    pub(super) fn answer_adisc(&self, port_id: FcId, adisc: &Adisc, exchanges: &Exchanges) -> Answer {
        match self.remotes.get(port_id) {
            Some(remote) if remote.wwpn == adisc.port_name => Ok(LsAcc::Adisc(exchanges.identity.adisc())),
            _ => Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED)),
        }
    }
}

/// Reason why the parameters of a PLOGI are invalid.
pub(super) fn defect(login: &Login) -> LsRjtExplanation {
    if login.port_name.0 == 0 {
        LsRjtExplanation::INVALID_PORT_NAME
    } else if login.node_name.0 == 0 {
        LsRjtExplanation::INVALID_NODE_NAME
    } else {
        LsRjtExplanation::RECEIVE_SIZE
    }
}

pub(super) fn reject(reason: LsRjtReason, explanation: LsRjtExplanation) -> LsRjt {
    LsRjt { reason, explanation, vendor: 0 }
}
