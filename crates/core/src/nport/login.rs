//! Logins with other ports that we start, and what their replies do.

use super::flight::Flight;
use super::remote::{RemotePort, RemoteState, flag};
use super::{NPort, Output, Remote};
use crate::time::Instant;
use sanloom_wire::els::{Adisc, Els, Prli, PrliPage, prli};
use sanloom_wire::login::Login;
use sanloom_wire::ns::NsRequest;
use sanloom_wire::{FcId, FcType, Wwpn};

/// Low nibble of the flags in an accepted PRLI page.
const RESPONSE_CODE: u8 = 0x0f;

impl NPort {
    /// The time of a remote port has come: a login, a check, or nothing any more.
    pub(super) fn attend_to(&mut self, now: Instant, port_id: FcId) {
        let Some(remote) = self.remotes.get(port_id) else {
            return;
        };
        match remote.state {
            RemoteState::Waiting => self.enter_plogi(now, port_id),
            RemoteState::LoggedIn if remote.has(flag::DISCOVERED) => self.enter_prli(now, port_id),
            RemoteState::Up if remote.has(flag::AFFECTED) => self.enter_checking(now, port_id),
            RemoteState::Up
            | RemoteState::LoggedIn
            | RemoteState::Plogi
            | RemoteState::Prli
            | RemoteState::Checking => {}
        }
    }

    fn enter_plogi(&mut self, now: Instant, port_id: FcId) {
        self.set_state(port_id, RemoteState::Plogi);
        let plogi = Els::Plogi(self.plogi_parameters());
        self.request(now, port_id, self.request_timeout(), Flight::Plogi(port_id), plogi);
    }

    fn enter_prli(&mut self, now: Instant, port_id: FcId) {
        self.set_state(port_id, RemoteState::Prli);
        let page = PrliPage { flags: prli::ESTABLISH_IMAGE_PAIR, ..self.prli_page() };
        let prli = Els::Prli(Prli { pages: vec![page] });
        self.request(now, port_id, self.request_timeout(), Flight::Prli(port_id), prli);
    }

    /// A target of ours is asked itself; an initiator that logged in to us is looked up, because a port that is gone would
    /// cost a timeout.
    fn enter_checking(&mut self, now: Instant, port_id: FcId) {
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        remote.state = RemoteState::Checking;
        remote.clear(flag::AFFECTED);
        if remote.has(flag::DISCOVERED) {
            let adisc = Els::Adisc(self.adisc());
            self.request(now, port_id, self.request_timeout(), Flight::Adisc(port_id), adisc);
        } else {
            self.ask_name_server(now, Flight::Verify(port_id), NsRequest::GpnId { port_id });
        }
    }

    fn set_state(&mut self, port_id: FcId, state: RemoteState) {
        if let Some(remote) = self.remotes.get_mut(port_id) {
            remote.state = state;
        }
    }

    /// PLOGI was accepted. False if the accept makes no sense.
    pub(super) fn on_plogi_accept(&mut self, now: Instant, port_id: FcId, login: &Login) -> bool {
        let Some(frame_size_bytes) = self.common_frame_size(login) else {
            return false;
        };
        self.note_names(port_id, login, frame_size_bytes);
        self.enter_prli(now, port_id);
        true
    }

    /// Enters what a login says into the record, and forgets the same port at another address.
    pub(super) fn note_names(&mut self, port_id: FcId, login: &Login, frame_size_bytes: u16) {
        self.work += self.remotes.len() as u64;
        if let Some(old) = self.remotes.elsewhere(login.port_name, port_id) {
            self.forget(old);
        }
        if let Some(remote) = self.remotes.get_mut(port_id) {
            remote.wwpn = login.port_name;
            remote.wwnn = login.node_name;
            remote.receive_size_bytes = frame_size_bytes;
        }
    }

    /// PRLI was answered with these pages. False if FCP is not among those that were executed.
    pub(super) fn on_prli_accept(&mut self, port_id: FcId, accept: &Prli) -> bool {
        let executed = accept
            .pages
            .iter()
            .find(|page| page.fc4_type == FcType::FCP.0 && page.flags & RESPONSE_CODE == prli::RESPONSE_EXECUTED);
        let Some(page) = executed else { return false };
        self.establish(port_id, page.parameters, 0);
        true
    }

    /// A process login with the functions in `parameters`. Nothing is reported for a port that can be no partner of ours.
    pub(super) fn establish(&mut self, port_id: FcId, parameters: u32, flags: u8) {
        let (initiator, target) = (self.config.initiator, self.config.target);
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        let was_up = remote.state.is_up();
        let before = remote.flags & (flag::INITIATOR | flag::TARGET);
        let mut functions = 0;
        if parameters & prli::INITIATOR != 0 {
            functions |= flag::INITIATOR;
        }
        if parameters & prli::TARGET != 0 {
            functions |= flag::TARGET;
        }
        let again = flags != 0 && remote.has(flags);
        remote.clear(flag::INITIATOR | flag::TARGET);
        remote.set(functions | flags);
        remote.tries = 0;
        let partner = initiator && functions & flag::TARGET != 0 || target && functions & flag::INITIATOR != 0;
        // Crossing PRLIs of two ports confirm each other; a repeated one starts the process login afresh.
        if was_up && partner && before == functions && !again {
            return;
        }
        let up = report(remote);
        let (wwpn, state) = (remote.wwpn, if partner { RemoteState::Up } else { RemoteState::LoggedIn });
        remote.state = state;
        if was_up {
            self.outputs.push_back(Output::RemoteDown { port_id, wwpn });
        }
        if partner {
            self.counters.process_logins += 1;
            self.outputs.push_back(Output::RemoteUp(up));
        }
    }

    /// ADISC was accepted: is it still the same port? False if not.
    pub(super) fn on_adisc_accept(&mut self, now: Instant, port_id: FcId, accept: &Adisc) -> bool {
        accept.port_id == port_id && self.confirm(now, port_id, accept.port_name)
    }

    /// Somebody says which port has the address: if it is the one we know, the check is over. False if not.
    pub(super) fn confirm(&mut self, now: Instant, port_id: FcId, wwpn: Wwpn) -> bool {
        match self.remotes.get_mut(port_id) {
            Some(remote) if remote.wwpn == wwpn => {
                remote.tries = 0;
                remote.state = RemoteState::Up;
                // Another RSCN came while the question was open.
                if remote.has(flag::AFFECTED) {
                    self.due.insert((now, port_id));
                }
                true
            }
            _ => false,
        }
    }

    /// The login is gone or failed. A target that the name server shows is tried again after a back-off; anything else is
    /// forgotten.
    pub(super) fn lose(&mut self, now: Instant, port_id: FcId) {
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        if !remote.has(flag::DISCOVERED) {
            return self.forget(port_id);
        }
        let (was_up, wwpn) = (remote.state.is_up(), remote.wwpn);
        remote.state = RemoteState::Waiting;
        remote.clear(flag::THEIR_PRLI | flag::AFFECTED);
        remote.tries = remote.tries.saturating_add(1);
        let tries = remote.tries;
        if was_up {
            self.outputs.push_back(Output::RemoteDown { port_id, wwpn });
        }
        self.flights.forget_remote(port_id);
        let at = now + self.back_off(tries);
        self.due.insert((at, port_id));
    }

    /// The port is gone, or has another address.
    pub(super) fn forget(&mut self, port_id: FcId) {
        self.flights.forget_remote(port_id);
        if let Some(remote) = self.remotes.remove(port_id)
            && remote.state.is_up()
        {
            self.outputs.push_back(Output::RemoteDown { port_id, wwpn: remote.wwpn });
        }
    }

    /// Our FCP page, without flags.
    pub(super) fn prli_page(&self) -> PrliPage {
        let initiator = if self.config.initiator { prli::INITIATOR } else { 0 };
        let target = if self.config.target { prli::TARGET } else { 0 };
        PrliPage {
            fc4_type: FcType::FCP.0,
            type_extension: 0,
            flags: 0,
            originator_pa: 0,
            responder_pa: 0,
            parameters: initiator | target | prli::READ_XFER_RDY_DISABLED,
        }
    }

    /// Our address and names.
    pub(super) fn adisc(&self) -> Adisc {
        Adisc {
            hard_address: FcId::ZERO,
            port_name: self.config.wwpn,
            node_name: self.config.wwnn,
            port_id: self.port_id,
        }
    }
}

fn report(remote: &RemotePort) -> Remote {
    Remote {
        port_id: remote.port_id,
        wwpn: remote.wwpn,
        wwnn: remote.wwnn,
        receive_size_bytes: remote.receive_size_bytes,
        initiator: remote.has(flag::INITIATOR),
        target: remote.has(flag::TARGET),
    }
}
