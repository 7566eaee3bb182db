//! The way to [`FabricState::Ready`]: fabric login, name server login, registrations, SCR.

use super::flight::Flight;
use super::{NPort, Output};
use crate::exchange::{CONTROL_OX_IDS, usable_frame_size};
use crate::time::{Instant, Span};
use sanloom_wire::els::{Els, Logo};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login, feature};
use sanloom_wire::ns::{Fc4Types, NsRequest, fcp_feature};
use sanloom_wire::{FcId, FcType, Header, Message};

/// Where the fabric login of a node port stands. In every state but `Offline` and `Ready` one request is open, or is going
/// to be repeated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FabricState {
    /// No link, or for a virtual port: the physical port is not logged in.
    Offline,
    /// Fabric login at FFFFFE: FLOGI, or FDISC of a virtual port.
    Flogi,
    /// N_Port login at the management server FFFFFA.
    ManagementPlogi,
    /// Registering for link incident records at the management server.
    Lirr,
    /// Logout from the management server.
    ManagementLogo,
    /// N_Port login at the name server FFFFFC.
    Plogi,
    /// Registering the node name.
    RnnId,
    /// Registering the symbolic node name.
    RsnnNn,
    /// Registering the symbolic port name.
    RspnId,
    /// Registering the FC-4 types.
    RftId,
    /// Registering the FC-4 features.
    RffId,
    /// Registering for RSCN at the fabric controller FFFFFD.
    Scr,
    /// Logout from the name server.
    NameServerLogo,
    /// N_Port login at the name server again, to ask it for targets.
    DiscoveryPlogi,
    /// Registered; discovery and logins go on from here.
    Ready,
    /// Logout from the fabric.
    Logo,
}

impl FabricState {
    /// A registration with the name server.
    pub(super) fn is_registration(self) -> bool {
        (FabricState::RnnId..=FabricState::RffId).contains(&self)
    }

    /// A login with a service of the fabric.
    pub(super) fn is_service_login(self) -> bool {
        matches!(self, FabricState::ManagementPlogi | FabricState::Plogi | FabricState::DiscoveryPlogi)
    }

    /// A link service whose accept has no parameters.
    pub(super) fn has_empty_accept(self) -> bool {
        matches!(self, FabricState::Scr | FabricState::Lirr | FabricState::ManagementLogo | FabricState::NameServerLogo)
    }

    /// A step of [`LoginScript::Npiv`] that the port can do without.
    pub(super) fn is_dispensable(self) -> bool {
        matches!(
            self,
            FabricState::ManagementPlogi
                | FabricState::Lirr
                | FabricState::ManagementLogo
                | FabricState::NameServerLogo
        )
    }
}

/// The steps between the fabric login and [`FabricState::Ready`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LoginScript {
    /// Those of Linux (libfc). An FDISC waits 2 × R_A_TOV for its answer.
    #[default]
    Standard,
    /// Those of document 000, figure 6: FDISC, SCR, a session with the management server for LIRR, one with the name server
    /// for RFT_ID. An FDISC waits E_D_TOV, which that document says a hypervisor must not exceed. An initiator goes on with
    /// a session at the name server, to find its targets.
    Npiv,
}

impl LoginScript {
    const fn steps(self) -> &'static [FabricState] {
        match self {
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
}

/// What makes a node port a virtual one (FC-LS, N_Port_ID virtualisation).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VirtualPort {
    /// Its number among the virtual ports of its physical port, 1 to 4094. All FDISCs of a physical port have S_ID 0, so it
    /// keeps their exchange numbers apart.
    pub number: u16,
    /// How it logs in.
    pub script: LoginScript,
}

/// Exchange numbers that the FDISCs of a virtual port take turns with, so that a late answer meets no younger exchange.
const FDISC_OX_IDS: u16 = 8;
/// So many virtual ports of a physical port have such numbers of their own.
const VIRTUAL_PORTS: u16 = (*CONTROL_OX_IDS.end() - *CONTROL_OX_IDS.start() + 1) / FDISC_OX_IDS;

impl VirtualPort {
    /// Exchange number of FDISC number `attempt`.
    fn fdisc_ox_id(self, attempt: u16) -> u16 {
        *CONTROL_OX_IDS.start() + (self.number % VIRTUAL_PORTS) * FDISC_OX_IDS + attempt % FDISC_OX_IDS
    }
}

/// SCR: changes that the fabric and that N_Ports detect.
const SCR_FULL: u8 = 3;
/// LIRR: all link incident records, in the common format.
const LIRR_UNCONDITIONAL: u8 = 2;
const LIRR_COMMON_FORMAT: u8 = 0;
/// FC-PH version that today's ports give as highest and lowest.
const FC_PH_3: u8 = 0x20;
/// PLOGI: 255 concurrent sequences in all, relative offset for all information categories.
const SEQUENCES_AND_OFFSETS: u32 = 0x00ff_001f;

impl NPort {
    /// The port is the source of a frame with this header. All FDISCs of a physical port have S_ID 0.
    pub fn is_source(&self, header: &Header) -> bool {
        match header.s_id {
            FcId::ZERO => {
                let is_fdisc =
                    |port: VirtualPort| (0..FDISC_OX_IDS).any(|attempt| port.fdisc_ox_id(attempt) == header.ox_id);
                self.config.virtual_port.is_some_and(is_fdisc)
            }
            s_id => s_id == self.port_id,
        }
    }

    /// The one way into a state: sends its request.
    pub(super) fn enter(&mut self, now: Instant, state: FabricState) {
        self.state = state;
        self.fabric_retry_at = None;
        let port_id = self.port_id;
        let symbolic_name = || {
            let name = self.config.symbolic_name.as_bytes();
            name[..name.len().min(255)].into()
        };
        let registration = match state {
            FabricState::Offline => return,
            FabricState::Flogi => return self.enter_flogi(now),
            FabricState::Plogi | FabricState::DiscoveryPlogi => {
                return self.ask_service(now, FcId::NAME_SERVER, Els::Plogi(self.plogi_parameters()));
            }
            FabricState::ManagementPlogi => {
                return self.ask_service(now, FcId::MANAGEMENT_SERVER, Els::Plogi(self.plogi_parameters()));
            }
            FabricState::Lirr => {
                let lirr = Els::Lirr { function: LIRR_UNCONDITIONAL, format: LIRR_COMMON_FORMAT };
                return self.ask_service(now, FcId::MANAGEMENT_SERVER, lirr);
            }
            FabricState::ManagementLogo => return self.ask_service(now, FcId::MANAGEMENT_SERVER, self.logo()),
            FabricState::NameServerLogo => return self.ask_service(now, FcId::NAME_SERVER, self.logo()),
            FabricState::Logo => return self.ask_service(now, FcId::F_PORT, self.logo()),
            FabricState::Scr => {
                return self.ask_service(now, FcId::FABRIC_CONTROLLER, Els::Scr { function: SCR_FULL });
            }
            FabricState::Ready => {
                if self.config.initiator {
                    self.discovery.ask_at(now);
                }
                return;
            }
            FabricState::RnnId => NsRequest::RnnId { port_id, node_name: self.config.wwnn },
            FabricState::RsnnNn => NsRequest::RsnnNn { node_name: self.config.wwnn, symbolic_name: symbolic_name() },
            FabricState::RspnId => NsRequest::RspnId { port_id, symbolic_name: symbolic_name() },
            FabricState::RftId => NsRequest::RftId { port_id, types: fc4_types() },
            FabricState::RffId => {
                let target = if self.config.target { fcp_feature::TARGET } else { 0 };
                let initiator = if self.config.initiator { fcp_feature::INITIATOR } else { 0 };
                NsRequest::RffId { port_id, features: target | initiator, fc4_type: FcType::FCP.0 }
            }
        };
        self.ask_name_server(now, Flight::Fabric, registration);
    }

    fn enter_flogi(&mut self, now: Instant) {
        let parameters = self.flogi_parameters();
        let Some(virtual_port) = self.config.virtual_port else {
            return self.request(now, FcId::F_PORT, self.config.e_d_tov, Flight::Fabric, Els::Flogi(parameters));
        };
        let timeout = match virtual_port.script {
            LoginScript::Standard => self.request_timeout(),
            LoginScript::Npiv => self.config.e_d_tov,
        };
        let ox_id = virtual_port.fdisc_ox_id(self.fdiscs);
        self.fdiscs = self.fdiscs.wrapping_add(1);
        self.flights.open_as(ox_id, now + timeout, FcId::F_PORT, Flight::Fabric);
        self.send(FcId::F_PORT, ox_id, Message::from(Els::Fdisc(parameters)));
    }

    fn ask_service(&mut self, now: Instant, service: FcId, els: Els) {
        self.request(now, service, self.request_timeout(), Flight::Fabric, els);
    }

    fn logo(&self) -> Els {
        Els::Logo(Logo { port_id: self.port_id, port_name: self.config.wwpn })
    }

    /// The request of the present state was answered, or can be done without.
    pub(super) fn advance(&mut self, now: Instant) {
        self.fabric_tries = 0;
        let script = self.config.virtual_port.map_or(LoginScript::Standard, |port| port.script);
        let mut after = script.steps().iter().skip_while(|step| **step != self.state).skip(1);
        let wanted = |step: &&FabricState| **step != FabricState::DiscoveryPlogi || self.config.initiator;
        let next = after.find(wanted).copied().unwrap_or(FabricState::Ready);
        self.enter(now, next);
    }

    /// Says goodbye to every port that we are logged in with, then to the fabric.
    pub(super) fn log_out_of_fabric(&mut self, now: Instant) {
        if self.port_id == FcId::ZERO {
            return self.go_offline();
        }
        if self.state == FabricState::Logo {
            return;
        }
        for remote in self.lose_remotes().iter().filter(|remote| remote.state.is_logged_in()) {
            self.request(now, remote.port_id, self.config.e_d_tov, Flight::Farewell, self.logo());
        }
        self.state = FabricState::Logo;
        self.farewell_over(now);
    }

    /// A port that we said goodbye to has answered, or will not: after the last, the fabric's turn has come. Were it before,
    /// the answers could not reach us any more.
    pub(super) fn farewell_over(&mut self, now: Instant) {
        if self.state != FabricState::Logo || !self.flights.is_empty() {
            return;
        }
        match self.mesh {
            true => self.go_offline(),
            false => self.enter(now, FabricState::Logo),
        }
    }

    /// FLOGI was accepted; the D_ID of the accept is our address. False if the accept makes no sense.
    pub(super) fn on_flogi_accept(&mut self, header: &Header, login: &Login) -> bool {
        let common = &login.common;
        let sound = common.features & feature::F_PORT != 0
            && common.receive_size_bytes >= 256
            && header.d_id != FcId::ZERO
            && !header.d_id.is_well_known();
        if !sound {
            return false;
        }
        self.counters.fabric_logins += 1;
        self.port_id = header.d_id;
        self.fabric_receive_size_bytes = common.receive_size_bytes;
        let e_d_tov = match common.features & feature::E_D_TOV_NS {
            0 => Span::from_ms(u64::from(common.e_d_tov)),
            _ => Span::from_ns(u64::from(common.e_d_tov)),
        };
        self.config.e_d_tov = self.config.e_d_tov.max(e_d_tov);
        self.config.r_a_tov = self.config.r_a_tov.max(Span::from_ms(u64::from(common.word_8)));
        self.outputs.push_back(Output::FabricUp { port_id: self.port_id });
        true
    }

    /// Everything is lost; starts again with FLOGI after a back-off.
    pub(super) fn start_over(&mut self, now: Instant) {
        self.lose_fabric();
        self.state = FabricState::Flogi;
        self.fabric_tries = 1;
        self.fabric_retry_at = Some(now + self.back_off(1));
    }

    /// The name server has logged us out: the logins with other ports stand, but they are looked up again after the
    /// registrations.
    pub(super) fn register_again(&mut self, now: Instant) {
        let npiv = self.config.virtual_port.is_some_and(|port| port.script == LoginScript::Npiv);
        let resume = match self.state {
            _ if !npiv => FabricState::Plogi,
            FabricState::Ready if self.config.initiator => FabricState::DiscoveryPlogi,
            FabricState::Plogi | FabricState::RftId | FabricState::DiscoveryPlogi => FabricState::Plogi,
            // There is no session that could end.
            _ => return,
        };
        self.flights.forget_services();
        self.discovery.open = false;
        self.state = resume;
        self.fabric_tries = 1;
        self.fabric_retry_at = Some(now + self.back_off(1));
    }

    fn flogi_parameters(&self) -> Login {
        Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: self.config.bb_credit,
                receive_size_bytes: self.config.receive_size_bytes,
                ..CommonParameters::default()
            },
            port_name: self.config.wwpn,
            node_name: self.config.wwnn,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters {
                flags: ClassParameters::VALID | ClassParameters::SEQUENTIAL_DELIVERY,
                ..ClassParameters::default()
            },
        }
    }

    /// Our service parameters towards other N_Ports, in PLOGI and in its accept.
    pub(super) fn plogi_parameters(&self) -> Login {
        let receive_size_bytes = self.config.receive_size_bytes;
        Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: self.config.bb_credit,
                features: feature::CONTINUOUS_OFFSET,
                bb_sc_n: 0,
                receive_size_bytes,
                word_8: SEQUENCES_AND_OFFSETS,
                e_d_tov: u32::try_from(self.config.e_d_tov.as_ms()).unwrap_or(u32::MAX),
            },
            port_name: self.config.wwpn,
            node_name: self.config.wwnn,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters {
                flags: ClassParameters::VALID | ClassParameters::SEQUENTIAL_DELIVERY,
                receive_size_bytes,
                concurrent_sequences: 255,
                open_sequences: 1,
                ..ClassParameters::default()
            },
        }
    }

    /// The largest data field between us and the sender of `login`, both ways; nothing if its parameters make no sense.
    pub(super) fn common_frame_size(&self, login: &Login) -> Option<u16> {
        let sizes = [login.common.receive_size_bytes, login.class_3.receive_size_bytes];
        let theirs = sizes.into_iter().filter(|&size| size != 0).min()?;
        let named = login.port_name.0 != 0 && login.node_name.0 != 0;
        let size = theirs.min(self.config.receive_size_bytes).min(self.fabric_receive_size_bytes);
        (named && theirs >= 256).then_some(usable_frame_size(size))
    }
}

/// FCP and FC-CT.
fn fc4_types() -> Fc4Types {
    let mut types = Fc4Types::default();
    for fc_type in [FcType::FCP, FcType::CT] {
        types[usize::from(fc_type.0 / 32)] |= 1 << (fc_type.0 % 32);
    }
    types
}
