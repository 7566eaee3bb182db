//! The way to [`FabricState::Ready`]: fabric login, name server login, registrations, SCR.

use super::flight::Flight;
use super::{NPort, Output};
use crate::exchange::usable_frame_size;
use crate::time::{Instant, Span};
use sanloom_wire::els::Els;
use sanloom_wire::login::{ClassParameters, CommonParameters, Login, feature};
use sanloom_wire::ns::{Fc4Types, NsRequest, fcp_feature};
use sanloom_wire::{FcId, FcType, Header};

/// Where the fabric login of a node port stands. In every state but `Offline` and `Ready` one request is open, or is going
/// to be repeated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FabricState {
    /// No link.
    Offline,
    /// Fabric login at FFFFFE.
    Flogi,
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
    /// Registered; discovery and logins go on from here.
    Ready,
}

impl FabricState {
    fn next(self) -> FabricState {
        match self {
            FabricState::Offline | FabricState::Flogi => FabricState::Plogi,
            FabricState::Plogi => FabricState::RnnId,
            FabricState::RnnId => FabricState::RsnnNn,
            FabricState::RsnnNn => FabricState::RspnId,
            FabricState::RspnId => FabricState::RftId,
            FabricState::RftId => FabricState::RffId,
            FabricState::RffId => FabricState::Scr,
            FabricState::Scr | FabricState::Ready => FabricState::Ready,
        }
    }

    /// A registration with the name server.
    pub(super) fn is_registration(self) -> bool {
        (FabricState::RnnId..=FabricState::RffId).contains(&self)
    }
}

/// SCR: changes that the fabric and that N_Ports detect.
const SCR_FULL: u8 = 3;
/// FC-PH version that today's ports give as highest and lowest.
const FC_PH_3: u8 = 0x20;
/// PLOGI: 255 concurrent sequences in all, relative offset for all information categories.
const SEQUENCES_AND_OFFSETS: u32 = 0x00ff_001f;

impl NPort {
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
            FabricState::Flogi => {
                let flogi = Els::Flogi(self.flogi_parameters());
                return self.request(now, FcId::F_PORT, self.config.e_d_tov, Flight::Fabric, flogi);
            }
            FabricState::Plogi => {
                let plogi = Els::Plogi(self.plogi_parameters());
                return self.request(now, FcId::NAME_SERVER, self.request_timeout(), Flight::Fabric, plogi);
            }
            FabricState::Scr => {
                let scr = Els::Scr { function: SCR_FULL };
                return self.request(now, FcId::FABRIC_CONTROLLER, self.request_timeout(), Flight::Fabric, scr);
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

    /// The request of the present state was answered, or can be done without.
    pub(super) fn advance(&mut self, now: Instant) {
        self.fabric_tries = 0;
        self.enter(now, self.state.next());
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
        self.flights.forget_services();
        self.discovery.open = false;
        self.state = FabricState::Plogi;
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
