//! Link between two N_Ports without a switch (FC-FS and FC-LS, point-to-point topology).
//!
//! Both ports send FLOGI. An N_Port accepts FLOGI with the F_Port bit of the common features clear.
//! The port with the greater name takes address 000001. Its PLOGI from 000001 to 000002 gives the
//! other port its address, whether the sender is an initiator or not. Then each initiator sends
//! PRLI.
//!
//! Two rules are assumptions. The port with the greater name sends PLOGI after the FLOGI of the
//! other port, or after E_D_TOV without it, so that both ports learn the timeouts of the other one
//! from an accept. The port with the lower name waits for PLOGI for 2 E_D_TOV, and then sends FLOGI
//! again.
//!
//! A FLOGI of a port that has logged in means that the port has started again, so its logins end.
//! Two ports with the same name reject each other. FDISC is rejected, so no virtual port comes up.

use super::NPort;
use super::exchanges::Exchanges;
use super::fabric::{Consequence, FabricLogin, FabricState, Topology};
use super::logins::RemoteLogins;
use super::remote::{RemoteState, flag};
use super::responder::{Answer, defect, reject};
use sanloom_scsi::time::Instant;
use sanloom_wire::els::{Els, LsAcc, LsRjtExplanation, LsRjtReason};
use sanloom_wire::login::{Login, feature};
use sanloom_wire::{FcId, FcType, Header, Message, Payload, RCtl, Wwpn};

/// Address of the port with the greater name.
const GREATER: FcId = FcId::new(0x00_0001);
/// Address of the port with the lower name.
const LOWER: FcId = FcId::new(0x00_0002);
/// Time limit of the port with the lower name for PLOGI, in units of E_D_TOV.
const PLOGI_LIMIT_E_D_TOVS: u64 = 2;

/// N_Port at the other end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    name: Wwpn,
    /// Its FLOGI was accepted.
    accepted: bool,
}

/// FLOGI that arrived before this port was started.
#[derive(Debug)]
pub(super) struct EarlyFlogi {
    at: Instant,
    header: Header,
    login: Login,
}

impl FabricLogin {
    /// Returns true if the accept of FLOGI is from an N_Port.
    pub(super) fn is_from_peer(&self, accept: &Login, exchanges: &Exchanges) -> bool {
        self.state == FabricState::Flogi
            && self.topology == Topology::Fabric
            && exchanges.identity.config.virtual_port.is_none()
            && accept.common.features & feature::F_PORT == 0
    }

    /// Handles the accept of FLOGI by an N_Port. Returns `None` if its parameters are invalid.
    pub(super) fn on_peer_accept(
        &mut self,
        now: Instant,
        accept: &Login,
        exchanges: &mut Exchanges,
    ) -> Option<Consequence> {
        let identity = &mut exchanges.identity;
        if accept.port_name == identity.config.wwpn || identity.common_frame_size(accept).is_none() {
            return None;
        }
        identity.adopt_link(accept);
        let accepted = self.peer.is_some_and(|peer| peer.name == accept.port_name && peer.accepted);
        self.peer = Some(Peer { name: accept.port_name, accepted });
        self.tries = 0;
        self.state = FabricState::PeerLogin;
        let greater = identity.config.wwpn > accept.port_name;
        if greater && accepted {
            return Some(Consequence::AssignAddresses);
        }
        let limit = if greater { 1 } else { PLOGI_LIMIT_E_D_TOVS };
        self.retry_at = Some(now + identity.config.e_d_tov.times(limit));
        Some(Consequence::Pending)
    }

    /// Ends the wait for a message of the other N_Port.
    pub(super) fn on_peer_silent(&mut self, now: Instant, exchanges: &mut Exchanges) -> Consequence {
        let own_name = exchanges.identity.config.wwpn;
        match self.peer {
            Some(peer) if own_name > peer.name => Consequence::AssignAddresses,
            // The limit itself serves as back-off.
            _ => self.enter(now, FabricState::Flogi, exchanges),
        }
    }

    /// Takes the address of the port with the greater name.
    pub(super) fn take_greater_address(&mut self, exchanges: &mut Exchanges) {
        self.adopt_address(Topology::PointToPoint, GREATER, exchanges);
    }

    /// Returns true if a PLOGI from this port to this address assigns the address.
    fn assigns(&self, header: &Header, login: &Login, exchanges: &Exchanges) -> bool {
        let is_address = |id: FcId| id != FcId::ZERO && !id.is_well_known();
        matches!(self.state, FabricState::Flogi | FabricState::PeerLogin)
            && self.peer.is_some_and(|peer| peer.name == login.port_name)
            && login.port_name > exchanges.identity.config.wwpn
            && is_address(header.d_id)
            && is_address(header.s_id)
            && header.d_id != header.s_id
            && exchanges.identity.common_frame_size(login).is_some()
    }

    /// Stores a FLOGI that arrives before this port is started.
    fn store_early(&mut self, at: Instant, header: Header, login: Login) {
        self.early_flogi = Some(Box::new(EarlyFlogi { at, header, login }));
    }
}

impl RemoteLogins {
    /// Logs in to the other N_Port of the link at once. Only an initiator then sends PRLI.
    pub(super) fn log_in_to_peer(&mut self, now: Instant, exchanges: &mut Exchanges) {
        exchanges.pending.forget_remote(LOWER);
        let remote = self.remotes.get_or_insert(LOWER, RemoteState::Waiting);
        remote.state = RemoteState::Waiting;
        remote.set(flag::DISCOVERED);
        if !exchanges.identity.config.initiator {
            remote.set(flag::NO_PRLI);
        }
        self.schedule(now, LOWER);
    }

    /// Schedules the PRLI of an initiator to a port that has just logged in.
    fn schedule_prli(&mut self, now: Instant, port_id: FcId, exchanges: &Exchanges) {
        if exchanges.identity.config.initiator
            && let Some(remote) = self.remotes.get_mut(port_id)
        {
            remote.set(flag::DISCOVERED);
            self.schedule(now, port_id);
        }
    }

    /// Returns true if there is an N_Port login with the port with the lower name.
    fn has_logged_in_to_lower(&self) -> bool {
        self.remotes.get(LOWER).is_some_and(|remote| remote.state.is_logged_in())
    }
}

impl NPort {
    /// Starts on a link. A FLOGI that arrived shortly before is answered.
    pub(super) fn start_on_link(&mut self, now: Instant) {
        let early = self.fabric.early_flogi.take();
        let consequence = self.fabric.start(now, &mut self.exchanges);
        self.apply(now, consequence);
        if let Some(early) = early
            && now.since(early.at) < self.e_d_tov()
        {
            self.on_peer_flogi(now, &early.header, early.login);
        }
    }

    /// Returns true if the frame is a request for the other end of the link, whose sender does not
    /// know yet that it is an N_Port.
    pub(super) fn is_for_link_end(&self, header: &Header) -> bool {
        let could_be_alone = match self.fabric.topology() {
            Topology::Fabric => {
                matches!(self.fabric.state(), FabricState::Offline | FabricState::Flogi | FabricState::PeerLogin)
            }
            topology => topology == Topology::PointToPoint,
        };
        header.d_id == FcId::F_PORT
            && (header.fc_type, header.r_ctl) == (FcType::ELS, RCtl::ELS_REQUEST)
            && self.exchanges.identity.config.virtual_port.is_none()
            && could_be_alone
    }

    /// Handles a request for the other end of the link: FLOGI or FDISC.
    pub(super) fn on_link_end_request(&mut self, now: Instant, header: &Header, payload: Payload) {
        let Payload::Typed(Message::Els(els)) = payload else {
            self.exchanges.counters.misdirected += 1;
            return;
        };
        match *els {
            Els::Flogi(login) if self.fabric.state() == FabricState::Offline => {
                self.fabric.store_early(now, *header, login);
            }
            Els::Flogi(login) => self.on_peer_flogi(now, header, login),
            Els::Fdisc(_) if self.fabric.topology() == Topology::PointToPoint => {
                let answer = Err(reject(LsRjtReason::NOT_SUPPORTED, LsRjtExplanation::NOT_SUPPORTED));
                self.reply_els(header, answer);
            }
            _ => self.exchanges.counters.misdirected += 1,
        }
    }

    /// Handles the FLOGI of the N_Port at the other end of the link.
    fn on_peer_flogi(&mut self, now: Instant, header: &Header, login: Login) {
        let identity = &self.exchanges.identity;
        let own_name = identity.config.wwpn;
        if login.port_name == own_name {
            let answer = Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PORT_NAME));
            return self.reply_els(header, answer);
        }
        if identity.common_frame_size(&login).is_none() {
            return self.reply_els(header, Err(reject(LsRjtReason::LOGICAL_ERROR, defect(&login))));
        }
        let is_greater = own_name > login.port_name;
        let is_same = self.fabric.peer.is_some_and(|peer| peer.name == login.port_name);
        let restarted = match self.fabric.state() {
            FabricState::Ready => !(is_greater && is_same) || self.logins.has_logged_in_to_lower(),
            FabricState::PeerLogin => !is_same,
            _ => false,
        };
        if restarted {
            self.apply(now, Consequence::Offline);
        }
        let accept = Ok(LsAcc::Login(self.exchanges.identity.flogi_accept_parameters()));
        self.reply_els(header, accept);
        self.fabric.peer = Some(Peer { name: login.port_name, accepted: true });
        match self.fabric.state() {
            FabricState::Offline => self.start_on_link(now),
            FabricState::Flogi => {
                self.exchanges.identity.fabric_receive_size_bytes = login.common.receive_size_bytes;
            }
            FabricState::PeerLogin if is_greater => self.apply(now, Consequence::AssignAddresses),
            // The other port has not received the PLOGI.
            FabricState::Ready => self.logins.log_in_to_peer(now, &mut self.exchanges),
            _ => {}
        }
    }

    /// Adopts the address that the PLOGI of the port with the greater name assigns. Returns false
    /// if it assigns none.
    pub(super) fn adopt_assigned_address(&mut self, header: &Header, login: &Login) -> bool {
        if !self.fabric.assigns(header, login, &self.exchanges) {
            return false;
        }
        self.exchanges.pending.forget_services();
        self.exchanges.identity.raise_e_d_tov(&login.common);
        self.fabric.adopt_address(Topology::PointToPoint, header.d_id, &mut self.exchanges);
        true
    }

    /// Answers a PLOGI. On a link to another N_Port, an initiator sends PRLI after it.
    pub(super) fn answer_plogi(&mut self, now: Instant, port_id: FcId, login: &Login) -> Answer {
        let answer = self.logins.answer_plogi(now, port_id, login, &mut self.exchanges);
        if answer.is_ok() && self.fabric.topology() == Topology::PointToPoint {
            self.logins.schedule_prli(now, port_id, &self.exchanges);
        }
        answer
    }
}
