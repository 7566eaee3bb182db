//! The path to [`FabricState::Ready`]: fabric login, name-server login, registrations, SCR.

use super::Output;
use super::dispatch::{Failure, MAX_TRIES};
use super::exchanges::Exchanges;
use super::identity::Identity;
use super::loop_port::{Attachment, LoopState};
use super::pending::Purpose;
use super::point_to_point::{EarlyFlogi, Peer};
use crate::config::LoginScript;
use crate::exchange::CONTROL_OX_IDS;
use sanloom_scsi::time::Instant;
use sanloom_wire::ct::CtReason;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::ns::{Fc4Types, NsRequest, fcp_feature};
use sanloom_wire::{FcId, FcType, Header};

/// Progress of the fabric login of a node port. In every state except `Offline` and `Ready`, one
/// request is pending or scheduled for another attempt, or a time limit runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FabricState {
    /// No link; for a virtual port, no fabric login of the physical port.
    Offline,
    /// Fabric login at FFFFFE: FLOGI, or FDISC of a virtual port.
    Flogi,
    /// The other end of the link is an N_Port. The port with the greater name waits for the FLOGI
    /// of the other one, the port with the lower name for PLOGI, which gives it its address.
    PeerLogin,
    /// N_Port login with the management server FFFFFA.
    ManagementPlogi,
    /// Registration for link incident records at the management server.
    Lirr,
    /// Logout from the management server.
    ManagementLogo,
    /// N_Port login with the name server FFFFFC.
    Plogi,
    /// Registration of the node name.
    RnnId,
    /// Registration of the symbolic node name.
    RsnnNn,
    /// Registration of the symbolic port name.
    RspnId,
    /// Registration of the FC-4 types.
    RftId,
    /// Registration of the FC-4 features.
    RffId,
    /// Registration for RSCNs at the fabric controller FFFFFD.
    Scr,
    /// Logout from the name server.
    NameServerLogo,
    /// Another N_Port login with the name server, for target discovery.
    DiscoveryPlogi,
    /// Registered, or on a medium without a fabric. Discovery and logins with other ports are
    /// active.
    Ready,
    /// Logout from the fabric.
    Logo,
}

impl FabricState {
    /// Returns true for a registration with the name server.
    fn is_registration(self) -> bool {
        (FabricState::RnnId..=FabricState::RffId).contains(&self)
    }

    /// Returns true for a login with a fabric service.
    fn is_service_login(self) -> bool {
        matches!(self, FabricState::ManagementPlogi | FabricState::Plogi | FabricState::DiscoveryPlogi)
    }

    /// Returns true for a link service whose accept has no parameters.
    fn has_empty_accept(self) -> bool {
        matches!(self, FabricState::Scr | FabricState::Lirr | FabricState::ManagementLogo | FabricState::NameServerLogo)
    }

    /// Returns true for an optional step of [`LoginScript::Npiv`].
    fn is_optional(self) -> bool {
        matches!(
            self,
            FabricState::ManagementPlogi
                | FabricState::Lirr
                | FabricState::ManagementLogo
                | FabricState::NameServerLogo
        )
    }
}

/// States between the fabric login and [`FabricState::Ready`], in order.
const fn steps(script: LoginScript) -> &'static [FabricState] {
    match script {
        LoginScript::Standard => &[
            FabricState::Flogi,
            FabricState::Plogi,
            FabricState::RnnId,
            FabricState::RsnnNn,
            FabricState::RspnId,
            FabricState::RftId,
            FabricState::RffId,
            FabricState::Scr,
        ],
        LoginScript::Npiv => &[
            FabricState::Flogi,
            FabricState::Scr,
            FabricState::ManagementPlogi,
            FabricState::Lirr,
            FabricState::ManagementLogo,
            FabricState::Plogi,
            FabricState::RftId,
            FabricState::NameServerLogo,
            FabricState::DiscoveryPlogi,
        ],
    }
}

/// Additional configuration of a virtual node port (FC-LS, N_Port_ID virtualisation).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VirtualPort {
    /// Number among the virtual ports of the physical port, 1 to 4094. All FDISCs of a physical
    /// port have S_ID 0, so this number separates their exchange numbers.
    pub number: u16,
    /// Steps of its login.
    pub script: LoginScript,
}

/// Exchange numbers that the FDISCs of a virtual port use in turn, so that a late reply does not
/// match a newer exchange.
const FDISC_OX_IDS: u16 = 8;
/// Number of virtual ports of a physical port with separate exchange numbers.
const VIRTUAL_PORTS: u16 = (*CONTROL_OX_IDS.end() - *CONTROL_OX_IDS.start() + 1) / FDISC_OX_IDS;

impl VirtualPort {
    /// OX_ID of the FDISC number `attempt`.
    fn fdisc_ox_id(self, attempt: u16) -> u16 {
        *CONTROL_OX_IDS.start() + (self.number % VIRTUAL_PORTS) * FDISC_OX_IDS + attempt % FDISC_OX_IDS
    }

    /// Returns true for the OX_ID of an FDISC of this port.
    pub(super) fn owns_fdisc(self, ox_id: u16) -> bool {
        (0..FDISC_OX_IDS).any(|attempt| self.fdisc_ox_id(attempt) == ox_id)
    }
}

/// SCR function: fabric-detected and N_Port-detected changes.
const SCR_FULL: u8 = 3;
/// LIRR function and format: all link incident records, in the common format.
const LIRR_UNCONDITIONAL: u8 = 2;
const LIRR_COMMON_FORMAT: u8 = 0;

/// Consequence of a step of the fabric login for the other parts of the port.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consequence {
    /// None; a request is pending or scheduled.
    Pending,
    /// The port is registered, so that discovery may start.
    Ready,
    /// The fabric login is over. All other logins end, and the port is offline.
    Offline,
    /// The fabric login is lost. All other logins end, and FLOGI follows after a back-off.
    Restart,
    /// The other end of the link is an N_Port with a lower name, to which this port gives an
    /// address.
    AssignAddresses,
}

/// Medium below the logins, as far as the port knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Topology {
    /// Link to a fabric, or to an unknown port.
    Fabric,
    /// Segment without a fabric (FC-BB-6, VN2VN).
    Segment,
    /// Link to another N_Port.
    PointToPoint,
    /// Arbitrated loop without an FL_Port.
    PrivateLoop,
    /// Arbitrated loop with an FL_Port.
    PublicLoop,
}

impl Topology {
    /// Returns true if there are services to log in to and to query.
    pub(super) fn has_fabric(self) -> bool {
        matches!(self, Topology::Fabric | Topology::PublicLoop)
    }

    /// Returns true for an arbitrated loop.
    pub(super) fn is_loop(self) -> bool {
        matches!(self, Topology::PrivateLoop | Topology::PublicLoop)
    }
}

/// Login of this port with the fabric and registration at its services.
#[derive(Debug)]
pub(super) struct FabricLogin {
    pub(super) state: FabricState,
    pub(super) topology: Topology,
    /// Time of the next attempt of `state`; `None` while its request is pending.
    pub(super) retry_at: Option<Instant>,
    pub(super) tries: u8,
    /// Number of FDISCs sent.
    fdiscs: u16,
    /// N_Port at the other end of the link.
    pub(super) peer: Option<Peer>,
    /// FLOGI that arrived before this port was started.
    pub(super) early_flogi: Option<Box<EarlyFlogi>>,
    /// State that only a port on a loop has.
    pub(super) on_loop: LoopState,
}

impl FabricLogin {
    pub(super) fn new() -> FabricLogin {
        FabricLogin {
            state: FabricState::Offline,
            topology: Topology::Fabric,
            retry_at: None,
            tries: 0,
            fdiscs: 0,
            peer: None,
            early_flogi: None,
            on_loop: LoopState::default(),
        }
    }

    pub(super) fn state(&self) -> FabricState {
        self.state
    }

    pub(super) fn topology(&self) -> Topology {
        self.topology
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Starts with FLOGI or FDISC.
    pub(super) fn start(&mut self, now: Instant, exchanges: &mut Exchanges) -> Consequence {
        self.enter(now, FabricState::Flogi, exchanges)
    }

    /// Adopts an address on a medium without a fabric whose ports limit the frame size by their
    /// logins alone. The port must be offline.
    pub(super) fn join(&mut self, topology: Topology, port_id: FcId, exchanges: &mut Exchanges) {
        exchanges.identity.fabric_receive_size_bytes = exchanges.identity.config.receive_size_bytes;
        self.adopt_address(topology, port_id, exchanges);
    }

    /// Adopts an address on a medium without a fabric.
    pub(super) fn adopt_address(&mut self, topology: Topology, port_id: FcId, exchanges: &mut Exchanges) {
        self.cancel_retry();
        self.topology = topology;
        self.state = FabricState::Ready;
        exchanges.identity.port_id = port_id;
        exchanges.counters.fabric_logins += 1;
        exchanges.report(Output::FabricUp { port_id });
    }

    /// Repeats the request of the current state if its next attempt is due.
    pub(super) fn on_timeout(&mut self, now: Instant, exchanges: &mut Exchanges) -> Consequence {
        match self.retry_at {
            Some(at) if at <= now && self.state == FabricState::PeerLogin => self.on_peer_silent(now, exchanges),
            Some(at) if at <= now => self.enter(now, self.state, exchanges),
            _ => Consequence::Pending,
        }
    }

    /// Enters a state and sends its request.
    pub(super) fn enter(&mut self, now: Instant, state: FabricState, exchanges: &mut Exchanges) -> Consequence {
        self.state = state;
        self.retry_at = None;
        let identity = &exchanges.identity;
        match state {
            FabricState::Offline | FabricState::PeerLogin => {}
            FabricState::Ready => return Consequence::Ready,
            FabricState::Flogi => self.enter_flogi(now, exchanges),
            FabricState::Plogi | FabricState::DiscoveryPlogi => {
                let plogi = Els::Plogi(identity.plogi_parameters());
                exchanges.request_service(now, FcId::NAME_SERVER, plogi);
            }
            FabricState::ManagementPlogi => {
                let plogi = Els::Plogi(identity.plogi_parameters());
                exchanges.request_service(now, FcId::MANAGEMENT_SERVER, plogi);
            }
            FabricState::Lirr => {
                let lirr = Els::Lirr { function: LIRR_UNCONDITIONAL, format: LIRR_COMMON_FORMAT };
                exchanges.request_service(now, FcId::MANAGEMENT_SERVER, lirr);
            }
            FabricState::ManagementLogo => exchanges.request_service(now, FcId::MANAGEMENT_SERVER, identity.logo()),
            FabricState::NameServerLogo => exchanges.request_service(now, FcId::NAME_SERVER, identity.logo()),
            FabricState::Logo => exchanges.request_service(now, FcId::F_PORT, identity.logo()),
            FabricState::Scr => {
                exchanges.request_service(now, FcId::FABRIC_CONTROLLER, Els::Scr { function: SCR_FULL });
            }
            FabricState::RnnId
            | FabricState::RsnnNn
            | FabricState::RspnId
            | FabricState::RftId
            | FabricState::RffId => {
                if let Some(request) = registration(state, identity) {
                    exchanges.request_name_server(now, Purpose::Fabric, request);
                }
            }
        }
        Consequence::Pending
    }

    fn enter_flogi(&mut self, now: Instant, exchanges: &mut Exchanges) {
        let identity = &exchanges.identity;
        let (parameters, e_d_tov) = (identity.flogi_parameters(), identity.config.e_d_tov);
        let Some(virtual_port) = identity.config.virtual_port else {
            return exchanges.request(now, FcId::F_PORT, e_d_tov, Purpose::Fabric, Els::Flogi(parameters));
        };
        let timeout = match virtual_port.script {
            LoginScript::Standard => identity.reply_timeout(),
            LoginScript::Npiv => e_d_tov,
        };
        let ox_id = virtual_port.fdisc_ox_id(self.fdiscs);
        self.fdiscs = self.fdiscs.wrapping_add(1);
        exchanges.request_as(ox_id, now + timeout, FcId::F_PORT, Purpose::Fabric, Els::Fdisc(parameters));
    }

    /// Enters the next state after the request of the current one succeeded or proved optional.
    fn advance(&mut self, now: Instant, exchanges: &mut Exchanges) -> Consequence {
        self.tries = 0;
        let config = &exchanges.identity.config;
        let script = config.virtual_port.map_or(LoginScript::Standard, |port| port.script);
        let mut after = steps(script).iter().skip_while(|step| **step != self.state).skip(1);
        let applies = |step: &&FabricState| **step != FabricState::DiscoveryPlogi || config.initiator;
        let next = after.find(applies).copied().unwrap_or(FabricState::Ready);
        self.enter(now, next, exchanges)
    }

    /// Handles an accept of a link service. Returns `None` if it does not match the request.
    pub(super) fn on_accept(
        &mut self,
        now: Instant,
        header: &Header,
        accept: &LsAcc,
        exchanges: &mut Exchanges,
    ) -> Option<Consequence> {
        match accept {
            LsAcc::Login(login) if self.is_from_peer(login, exchanges) => self.on_peer_accept(now, login, exchanges),
            // The D_ID of the accept is the new address.
            LsAcc::Login(login) if self.state == FabricState::Flogi => {
                if !exchanges.identity.adopt_fabric(header.d_id, login) {
                    return None;
                }
                if self.topology == Topology::PublicLoop {
                    self.on_loop.attachment = Some(Attachment::of(header.d_id, login));
                }
                exchanges.counters.fabric_logins += 1;
                exchanges.report(Output::FabricUp { port_id: header.d_id });
                Some(self.advance(now, exchanges))
            }
            LsAcc::Login(_) if self.state.is_service_login() => Some(self.advance(now, exchanges)),
            LsAcc::Empty if self.state == FabricState::Logo => Some(Consequence::Offline),
            LsAcc::Empty if self.state.has_empty_accept() => Some(self.advance(now, exchanges)),
            _ => None,
        }
    }

    /// Handles an empty accept of the name server. Returns `None` if no registration is pending.
    pub(super) fn on_registered(&mut self, now: Instant, exchanges: &mut Exchanges) -> Option<Consequence> {
        self.state.is_registration().then(|| self.advance(now, exchanges))
    }

    /// Determines the consequence of a failed request.
    pub(super) fn on_failure(&mut self, now: Instant, failure: Failure, exchanges: &mut Exchanges) -> Consequence {
        let refused = match failure {
            // The name server does not store this object; the port continues without it.
            Failure::CtReject(reject) => self.state.is_registration() && reject.reason != CtReason::LOGICAL_BUSY,
            Failure::LsRjt(_) => self.state.is_optional(),
            Failure::Timeout | Failure::Strange => false,
        };
        if refused {
            exchanges.counters.registrations_refused += 1;
            return self.advance(now, exchanges);
        }
        self.tries = self.tries.saturating_add(1);
        match (self.state, failure) {
            // A fabric that rejects the LOGO, or does not reply, no longer has the login.
            (FabricState::Logo, failure) if failure != Failure::Timeout || self.tries >= MAX_TRIES => {
                Consequence::Offline
            }
            // The timeout itself serves as back-off until it happens repeatedly.
            (_, Failure::Timeout) if self.tries <= MAX_TRIES => self.enter(now, self.state, exchanges),
            (FabricState::Flogi, _) => self.retry_later(now, exchanges),
            (_, Failure::LsRjt(_) | Failure::CtReject(_) | Failure::Strange) if self.tries <= MAX_TRIES => {
                self.retry_later(now, exchanges)
            }
            _ => Consequence::Restart,
        }
    }

    fn retry_later(&mut self, now: Instant, exchanges: &mut Exchanges) -> Consequence {
        self.retry_at = Some(now + exchanges.back_off(self.tries));
        Consequence::Pending
    }

    /// Logs out from the fabric, after the LOGOs to other ports were answered.
    pub(super) fn log_out(&mut self, now: Instant, exchanges: &mut Exchanges) -> Consequence {
        self.state = FabricState::Logo;
        self.on_logout(now, exchanges)
    }

    /// Continues the logout when a LOGO to a port was answered or failed. The LOGO to the fabric
    /// follows after the last one; otherwise the replies could no longer reach this port.
    pub(super) fn on_logout(&mut self, now: Instant, exchanges: &mut Exchanges) -> Consequence {
        if self.state != FabricState::Logo || !exchanges.pending.is_empty() {
            return Consequence::Pending;
        }
        match self.topology.has_fabric() {
            true => self.enter(now, FabricState::Logo, exchanges),
            false => Consequence::Offline,
        }
    }

    /// Handles a LOGO of the name server: the registrations start again after a back-off. Returns
    /// false if there is no session that could end.
    pub(super) fn register_again(&mut self, now: Instant, exchanges: &mut Exchanges) -> bool {
        let config = &exchanges.identity.config;
        let npiv = config.virtual_port.is_some_and(|port| port.script == LoginScript::Npiv);
        self.state = match self.state {
            _ if !npiv => FabricState::Plogi,
            FabricState::Ready if config.initiator => FabricState::DiscoveryPlogi,
            FabricState::Plogi | FabricState::RftId | FabricState::DiscoveryPlogi => FabricState::Plogi,
            _ => return false,
        };
        exchanges.pending.forget_services();
        self.back_off(now, exchanges);
        true
    }

    /// Clears the scheduled attempt and the count of failures.
    pub(super) fn cancel_retry(&mut self) {
        self.retry_at = None;
        self.tries = 0;
    }

    /// Ends the login without a LOGO.
    pub(super) fn end(&mut self, exchanges: &mut Exchanges) {
        self.cancel_retry();
        self.topology = Topology::Fabric;
        self.peer = None;
        self.early_flogi = None;
        self.on_loop = LoopState::default();
        exchanges.identity.loop_id = None;
        self.state = FabricState::Offline;
        if exchanges.identity.port_id != FcId::ZERO {
            exchanges.identity.port_id = FcId::ZERO;
            exchanges.report(Output::FabricDown);
        }
    }

    /// Starts again with FLOGI after a back-off. The port stays on its loop.
    pub(super) fn restart(&mut self, now: Instant, loop_id: Option<FcId>, exchanges: &mut Exchanges) {
        if loop_id.is_some() {
            self.topology = Topology::PublicLoop;
            exchanges.identity.loop_id = loop_id;
        }
        self.state = FabricState::Flogi;
        self.back_off(now, exchanges);
    }

    fn back_off(&mut self, now: Instant, exchanges: &mut Exchanges) {
        self.tries = 1;
        self.retry_at = Some(now + exchanges.back_off(1));
    }
}

/// Request of a registration state; `None` for other states.
fn registration(state: FabricState, identity: &Identity) -> Option<NsRequest> {
    let (config, port_id) = (&identity.config, identity.port_id);
    let symbolic_name = || {
        let name = config.symbolic_name.as_bytes();
        name[..name.len().min(255)].into()
    };
    Some(match state {
        FabricState::RnnId => NsRequest::RnnId { port_id, node_name: config.wwnn },
        FabricState::RsnnNn => NsRequest::RsnnNn { node_name: config.wwnn, symbolic_name: symbolic_name() },
        FabricState::RspnId => NsRequest::RspnId { port_id, symbolic_name: symbolic_name() },
        FabricState::RftId => NsRequest::RftId { port_id, types: fc4_types() },
        FabricState::RffId => {
            let target = if config.target { fcp_feature::TARGET } else { 0 };
            let initiator = if config.initiator { fcp_feature::INITIATOR } else { 0 };
            NsRequest::RffId { port_id, features: target | initiator, fc4_type: FcType::FCP.0 }
        }
        _ => return None,
    })
}

/// FC-4 types to register: FCP and FC-CT.
fn fc4_types() -> Fc4Types {
    let mut types = Fc4Types::default();
    for fc_type in [FcType::FCP, FcType::CT] {
        types[usize::from(fc_type.0 / 32)] |= 1 << (fc_type.0 % 32);
    }
    types
}
