//! Logins with other ports: requests of this port, and their replies.

use super::dispatch::{Failure, MAX_TRIES};
use super::exchanges::Exchanges;
use super::pending::Purpose;
use super::remote::{RemotePort, RemoteState, Remotes, flag};
use super::{Output, Remote};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::CtReason;
use sanloom_wire::els::{AddressFormat, Adisc, Els, Prli, PrliPage, Rscn, prli};
use sanloom_wire::login::Login;
use sanloom_wire::ns::NsRequest;
use sanloom_wire::{FcId, FcType, Wwpn};
use std::collections::BTreeSet;

/// Response code in the flags of an accepted PRLI page.
const RESPONSE_CODE: u8 = 0x0f;

/// Remote ports and the state of each login.
#[derive(Debug, Default)]
pub(super) struct RemoteLogins {
    pub(super) remotes: Remotes,
    /// Remote ports with a scheduled action, by time.
    due: BTreeSet<(Instant, FcId)>,
    /// Number of records searched.
    searched: u64,
}

impl RemoteLogins {
    /// Time of the next scheduled action.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Number of records searched since the start.
    pub(super) fn searched(&self) -> u64 {
        self.searched
    }

    /// Memory that grows with the number of logins, in bytes.
    pub(super) fn table_bytes(&self) -> usize {
        self.remotes.table_bytes() + self.due.len() * size_of::<(Instant, FcId)>()
    }

    /// Schedules the action that the state of a remote port requires.
    pub(super) fn schedule(&mut self, at: Instant, port_id: FcId) {
        self.due.insert((at, port_id));
    }

    /// Cancels all scheduled actions.
    pub(super) fn cancel_scheduled(&mut self) {
        self.due.clear();
    }

    /// Starts the actions that are due, within the limit of pending requests.
    pub(super) fn start_due(&mut self, now: Instant, exchanges: &mut Exchanges) {
        while exchanges.pending.may_start_login()
            && let Some(&(at, port_id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.start_action(now, port_id, exchanges);
        }
    }

    /// Starts the action of a remote port: a login or a check. It may have become unnecessary.
    fn start_action(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        let Some(remote) = self.remotes.get(port_id) else {
            return;
        };
        match remote.state {
            RemoteState::Waiting => self.enter_plogi(now, port_id, exchanges),
            RemoteState::LoggedIn if remote.has(flag::DISCOVERED) && !remote.has(flag::NO_PRLI) => {
                self.enter_prli(now, port_id, exchanges);
            }
            RemoteState::Up if remote.has(flag::AFFECTED) => self.enter_checking(now, port_id, exchanges),
            RemoteState::Up
            | RemoteState::LoggedIn
            | RemoteState::Plogi
            | RemoteState::Prli
            | RemoteState::Checking => {}
        }
    }

    fn enter_plogi(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        self.set_state(port_id, RemoteState::Plogi);
        let plogi = Els::Plogi(exchanges.identity.plogi_parameters());
        let timeout = exchanges.identity.reply_timeout();
        exchanges.request(now, port_id, timeout, Purpose::Plogi(port_id), plogi);
    }

    fn enter_prli(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        self.set_state(port_id, RemoteState::Prli);
        let page = PrliPage { flags: prli::ESTABLISH_IMAGE_PAIR, ..exchanges.identity.prli_page() };
        let prli = Els::Prli(Prli { pages: vec![page] });
        let timeout = exchanges.identity.reply_timeout();
        exchanges.request(now, port_id, timeout, Purpose::Prli(port_id), prli);
    }

    /// Starts a check of a login. A discovered target gets an ADISC. For an initiator that logged
    /// in to this port the name server is queried, because an ADISC to a departed port would cost a
    /// timeout. A private loop has no name server, but its position map.
    fn enter_checking(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        remote.state = RemoteState::Checking;
        remote.clear(flag::AFFECTED);
        if remote.has(flag::DISCOVERED) || exchanges.identity.is_private() {
            let adisc = Els::Adisc(exchanges.identity.adisc());
            let timeout = exchanges.identity.reply_timeout();
            exchanges.request(now, port_id, timeout, Purpose::Adisc(port_id), adisc);
        } else {
            exchanges.request_name_server(now, Purpose::Verify(port_id), NsRequest::GpnId { port_id });
        }
    }

    fn set_state(&mut self, port_id: FcId, state: RemoteState) {
        if let Some(remote) = self.remotes.get_mut(port_id) {
            remote.state = state;
        }
    }

    /// Handles the accept of PLOGI. Returns false if the accept is invalid.
    pub(super) fn on_plogi_accept(
        &mut self,
        now: Instant,
        port_id: FcId,
        login: &Login,
        exchanges: &mut Exchanges,
    ) -> bool {
        let Some(frame_size_bytes) = exchanges.identity.common_frame_size(login) else {
            return false;
        };
        self.store_names(now, port_id, login, frame_size_bytes, exchanges);
        match self.remotes.get(port_id) {
            Some(remote) if remote.has(flag::NO_PRLI) => self.set_state(port_id, RemoteState::LoggedIn),
            _ => self.enter_prli(now, port_id, exchanges),
        }
        true
    }

    /// Stores the names and frame size of a login, and removes a record of the same port at another
    /// address. On a private loop another port has that address now, so a login with it follows.
    pub(super) fn store_names(
        &mut self,
        now: Instant,
        port_id: FcId,
        login: &Login,
        frame_size_bytes: u16,
        exchanges: &mut Exchanges,
    ) {
        self.searched += self.remotes.len() as u64;
        if let Some(old) = self.remotes.elsewhere(login.port_name, port_id) {
            match exchanges.identity.is_private() {
                true => self.log_in_to_successor(now, old, exchanges),
                false => self.remove(old, exchanges),
            }
        }
        if let Some(remote) = self.remotes.get_mut(port_id) {
            remote.wwpn = login.port_name;
            remote.wwnn = login.node_name;
            remote.receive_size_bytes = frame_size_bytes;
        }
    }

    /// Handles the accept of PRLI. Returns false if it contains no executed FCP page.
    pub(super) fn on_prli_accept(&mut self, port_id: FcId, accept: &Prli, exchanges: &mut Exchanges) -> bool {
        let executed = accept
            .pages
            .iter()
            .find(|page| page.fc4_type == FcType::FCP.0 && page.flags & RESPONSE_CODE == prli::RESPONSE_EXECUTED);
        let Some(page) = executed else { return false };
        self.establish(port_id, page.parameters, 0, exchanges);
        true
    }

    /// Establishes a process login with the functions in `parameters`. A port without a matching
    /// function is not reported.
    pub(super) fn establish(&mut self, port_id: FcId, parameters: u32, flags: u8, exchanges: &mut Exchanges) {
        let config = &exchanges.identity.config;
        let (initiator, target) = (config.initiator, config.target);
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
        // Crossing PRLIs of two ports confirm each other; a repeated PRLI restarts the process
        // login.
        if was_up && partner && before == functions && !again {
            return;
        }
        remote.state = if partner { RemoteState::Up } else { RemoteState::LoggedIn };
        if was_up {
            exchanges.report_down(port_id, remote.wwpn);
        }
        if partner {
            exchanges.counters.process_logins += 1;
            exchanges.report(Output::RemoteUp(published(remote)));
        }
    }

    /// Handles the accept of ADISC. Returns false if it is from another port.
    pub(super) fn on_adisc_accept(&mut self, now: Instant, port_id: FcId, accept: &Adisc) -> bool {
        accept.port_id == port_id && self.confirm(now, port_id, accept.port_name)
    }

    /// Completes a check with the port name at the address. Returns false if it is not the known
    /// port.
    pub(super) fn confirm(&mut self, now: Instant, port_id: FcId, wwpn: Wwpn) -> bool {
        match self.remotes.get_mut(port_id) {
            Some(remote) if remote.wwpn == wwpn => {
                remote.tries = 0;
                remote.state = RemoteState::Up;
                // Another RSCN arrived during the check.
                if remote.has(flag::AFFECTED) {
                    self.schedule(now, port_id);
                }
                true
            }
            _ => false,
        }
    }

    /// Handles a failed login, or a failed check with ADISC.
    pub(super) fn on_failure(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        // A rejecting N_Port is retried later, because the reason for the reject may pass without
        // an RSCN.
        self.lose(now, port_id, exchanges);
    }

    /// Handles a failed ADISC.
    pub(super) fn on_adisc_failure(
        &mut self,
        now: Instant,
        port_id: FcId,
        failure: Failure,
        exchanges: &mut Exchanges,
    ) {
        match failure {
            // The other side no longer has the login, so the check detected its loss.
            Failure::LsRjt(_) => {
                self.lose(now, port_id, exchanges);
                self.schedule(now, port_id);
            }
            // A lost check must not end a login.
            Failure::Timeout => self.on_check_timeout(now, port_id, exchanges),
            Failure::CtReject(_) | Failure::Strange => self.on_failure(now, port_id, exchanges),
        }
    }

    fn on_check_timeout(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        remote.tries = remote.tries.saturating_add(1);
        let logs_in_itself = !remote.has(flag::DISCOVERED);
        if remote.tries >= MAX_TRIES && !logs_in_itself {
            return self.lose(now, port_id, exchanges);
        }
        remote.state = RemoteState::Up;
        remote.set(flag::AFFECTED);
        // An initiator of a private loop keeps its login, because it would not notice the loss.
        let delay = if logs_in_itself { exchanges.back_off(remote.tries) } else { Span::ZERO };
        self.schedule(now + delay, port_id);
    }

    /// Handles a failed query of the name server for a port that logged in to this one.
    pub(super) fn on_verify_failure(
        &mut self,
        now: Instant,
        port_id: FcId,
        failure: Failure,
        exchanges: &mut Exchanges,
    ) {
        let unknown_port = matches!(failure, Failure::CtReject(reject) if reject.reason == CtReason::UNABLE);
        if unknown_port {
            return self.remove(port_id, exchanges);
        }
        // The name server gave no definite answer; the login stays until it does.
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        remote.state = RemoteState::Up;
        remote.set(flag::AFFECTED);
        remote.tries = remote.tries.saturating_add(1);
        let at = now + exchanges.back_off(remote.tries);
        self.schedule(at, port_id);
    }

    /// Handles the loss or failure of a login. A target that the name server lists is retried after
    /// a back-off; any other port is removed.
    pub(super) fn lose(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        if !remote.has(flag::DISCOVERED) {
            return self.remove(port_id, exchanges);
        }
        let was_up = remote.state.is_up();
        remote.state = RemoteState::Waiting;
        remote.clear(flag::THEIR_PRLI | flag::AFFECTED);
        remote.tries = remote.tries.saturating_add(1);
        if was_up {
            exchanges.report_down(port_id, remote.wwpn);
        }
        exchanges.pending.forget_remote(port_id);
        let at = now + exchanges.back_off(remote.tries);
        self.schedule(at, port_id);
    }

    /// Removes a port that is gone or has another address.
    pub(super) fn remove(&mut self, port_id: FcId, exchanges: &mut Exchanges) {
        exchanges.pending.forget_remote(port_id);
        if let Some(remote) = self.remotes.remove(port_id)
            && remote.state.is_up()
        {
            exchanges.report_down(port_id, remote.wwpn);
        }
    }

    /// Ends all logins without a LOGO and returns their records.
    pub(super) fn end_all(&mut self, exchanges: &mut Exchanges) -> Remotes {
        self.due.clear();
        let remotes = std::mem::take(&mut self.remotes);
        for remote in remotes.iter().filter(|remote| remote.state.is_up()) {
            exchanges.report_down(remote.port_id, remote.wwpn);
        }
        remotes
    }

    /// Adds a port of a segment without a fabric. The port with the greater name logs in at once;
    /// the other one does so only after a timeout.
    pub(super) fn add_neighbour(&mut self, now: Instant, port_id: FcId, wwpn: Wwpn, exchanges: &mut Exchanges) {
        self.remove(port_id, exchanges);
        let remote = self.remotes.get_or_insert(port_id, RemoteState::Waiting);
        remote.wwpn = wwpn;
        remote.set(flag::DISCOVERED);
        let identity = &exchanges.identity;
        let at = if identity.config.wwpn > wwpn { now } else { now + identity.reply_timeout() };
        self.schedule(at, port_id);
    }

    /// Replaces the set of discovered targets by those in the reply of the name server.
    pub(super) fn replace_targets(
        &mut self,
        now: Instant,
        ports: impl Iterator<Item = (FcId, Option<Wwpn>)>,
        exchanges: &mut Exchanges,
    ) {
        for (port_id, name) in ports {
            self.searched += 1;
            if port_id == exchanges.identity.port_id || port_id == FcId::ZERO || port_id.is_well_known() {
                continue;
            }
            self.add_target(now, port_id, name, exchanges);
        }
        let gone: Vec<FcId> = self
            .remotes
            .iter()
            .filter(|remote| remote.has(flag::DISCOVERED) && !remote.has(flag::SEEN))
            .map(|remote| remote.port_id)
            .collect();
        self.searched += self.remotes.len() as u64;
        for port_id in gone {
            self.remove(port_id, exchanges);
        }
        for remote in self.remotes.iter_mut() {
            remote.clear(flag::SEEN);
        }
    }

    fn add_target(&mut self, now: Instant, port_id: FcId, name: Option<Wwpn>, exchanges: &mut Exchanges) {
        let known = self.remotes.get(port_id).map(|remote| remote.wwpn);
        // Another port now has this address.
        if let (Some(known), Some(name)) = (known, name)
            && known.0 != 0
            && known != name
        {
            self.remove(port_id, exchanges);
        }
        let is_new = self.remotes.get(port_id).is_none();
        let remote = self.remotes.get_or_insert(port_id, RemoteState::Waiting);
        let newly_discovered = !remote.has(flag::DISCOVERED);
        remote.set(flag::DISCOVERED | flag::SEEN);
        let is_due = match remote.state {
            RemoteState::Waiting => is_new || remote.has(flag::AFFECTED),
            RemoteState::LoggedIn => newly_discovered || remote.has(flag::AFFECTED),
            RemoteState::Up => remote.has(flag::AFFECTED),
            RemoteState::Plogi | RemoteState::Prli | RemoteState::Checking => false,
        };
        if !remote.state.is_up() {
            remote.clear(flag::AFFECTED);
        }
        if is_due {
            self.schedule(now, port_id);
        }
    }

    /// Marks the remote ports that the pages of an RSCN cover. Marked targets are verified after
    /// the next reply of the name server. An initiator that logged in to this port is verified at
    /// once.
    pub(super) fn mark_affected(&mut self, now: Instant, rscn: &Rscn) {
        for page in &rscn.pages {
            let (first, last) = scope(page.format, page.address);
            for remote in self.remotes.range_mut(first, last) {
                self.searched += 1;
                if remote.has(flag::DISCOVERED) {
                    remote.set(flag::AFFECTED);
                } else if remote.state.is_up() && !remote.has(flag::AFFECTED) {
                    remote.set(flag::AFFECTED);
                    if remote.state == RemoteState::Up {
                        self.due.insert((now, remote.port_id));
                    }
                }
            }
        }
    }
}

/// Remote port as reported to the driver.
fn published(remote: &RemotePort) -> Remote {
    Remote {
        port_id: remote.port_id,
        wwpn: remote.wwpn,
        wwnn: remote.wwnn,
        receive_size_bytes: remote.receive_size_bytes,
        initiator: remote.has(flag::INITIATOR),
        target: remote.has(flag::TARGET),
    }
}

/// First and last address covered by a page of an RSCN.
fn scope(format: AddressFormat, address: FcId) -> (FcId, FcId) {
    let first = address.to_u32();
    let (first, low_bits) = match format {
        AddressFormat::Port => (first, 0),
        AddressFormat::Area => (first & 0xff_ff00, 0xff),
        AddressFormat::Domain => (first & 0xff_0000, 0xffff),
        AddressFormat::Fabric => (0, 0xff_ffff),
    };
    (FcId::new(first), FcId::new(first | low_bits))
}
