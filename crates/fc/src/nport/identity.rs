//! Names, address and service parameters of this port, as other ports receive them.

use super::{Adapter, NPortConfig};
use crate::exchange::usable_frame_size;
use sanloom_scsi::time::Span;
use sanloom_wire::els::{Adisc, Els, Logo, PrliPage, Rtv, prli};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login, feature};
use sanloom_wire::{FcId, FcType};

/// FC-PH version that current ports announce as highest and lowest.
const FC_PH_3: u8 = 0x20;
/// PLOGI word: 255 total concurrent sequences, relative offset for all information categories.
const SEQUENCES_AND_OFFSETS: u32 = 0x00ff_001f;
/// Smallest legal receive data field size of a login, in bytes.
const MIN_RECEIVE_SIZE_BYTES: u16 = 256;
/// Byte of an address that holds the AL_PA of an NL_Port.
const AL_PA: u32 = 0xff;

/// Configuration of this port, and the values that the fabric login adds to it.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) config: NPortConfig,
    /// Own address; zero without a fabric login.
    pub(super) port_id: FcId,
    /// Largest data field that the fabric accepts, in bytes.
    pub(super) fabric_receive_size_bytes: u16,
    /// Address 0000xx of the loop initialisation; `None` if the port is not on a loop.
    pub(super) loop_id: Option<FcId>,
    /// Adapter that the port registers.
    pub(super) adapter: Option<Box<Adapter>>,
}

impl Identity {
    pub(super) fn new(config: NPortConfig) -> Identity {
        let fabric_receive_size_bytes = config.receive_size_bytes;
        Identity { port_id: FcId::ZERO, fabric_receive_size_bytes, loop_id: None, adapter: None, config }
    }

    /// Adopts an address and the service parameters of the fabric. Returns false if they are
    /// invalid.
    pub(super) fn adopt_fabric(&mut self, port_id: FcId, login: &Login) -> bool {
        let common = &login.common;
        let valid = common.features & feature::F_PORT != 0
            && common.receive_size_bytes >= MIN_RECEIVE_SIZE_BYTES
            && port_id != FcId::ZERO
            && !port_id.is_well_known()
            && self.loop_id.is_none_or(|loop_id| loop_id.to_u32() & AL_PA == port_id.to_u32() & AL_PA);
        if !valid {
            return false;
        }
        self.port_id = port_id;
        self.adopt_link(login);
        true
    }

    /// Adopts the receive size and the timeouts of an accept of FLOGI.
    pub(super) fn adopt_link(&mut self, login: &Login) {
        let common = &login.common;
        self.fabric_receive_size_bytes = common.receive_size_bytes;
        self.raise_e_d_tov(common);
        self.config.r_a_tov = self.config.r_a_tov.max(Span::from_ms(u64::from(common.word_8)));
    }

    /// Raises E_D_TOV to the value in the parameters of another port.
    pub(super) fn raise_e_d_tov(&mut self, common: &CommonParameters) {
        let e_d_tov = match common.features & feature::E_D_TOV_NS {
            0 => Span::from_ms(u64::from(common.e_d_tov)),
            _ => Span::from_ns(u64::from(common.e_d_tov)),
        };
        self.config.e_d_tov = self.config.e_d_tov.max(e_d_tov);
    }

    /// Address from which the port sends: its own one, or 0000xx before the fabric login on a loop.
    pub(super) fn source(&self) -> FcId {
        match self.loop_id {
            Some(loop_id) if self.port_id == FcId::ZERO => loop_id,
            _ => self.port_id,
        }
    }

    /// Returns true for an address 0000xx, which has no domain and thus no fabric.
    pub(super) fn is_private(&self) -> bool {
        self.port_id != FcId::ZERO && self.port_id.to_u32() <= AL_PA
    }

    /// Feature bits for the medium: ports of a loop use the alternative BB_Credit model (FC-AL-2,
    /// clause on login).
    fn medium_features(&self) -> u16 {
        self.loop_id.map_or(0, |_| feature::ALTERNATE_BB_CREDIT)
    }

    /// Timeout of a reply (FC-LS, timeouts of extended link services).
    pub(super) fn reply_timeout(&self) -> Span {
        self.config.r_a_tov.times(2)
    }

    /// Service parameters of this port for the fabric, in FLOGI and FDISC.
    pub(super) fn flogi_parameters(&self) -> Login {
        Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: self.config.bb_credit,
                features: self.medium_features(),
                bb_sc_n: self.config.bb_sc_n,
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

    /// Service parameters of this port in its accept of a FLOGI. The bit that would make it an
    /// F_Port is clear, and the timeouts are valid (FC-LS, FLOGI in a point-to-point topology).
    pub(super) fn flogi_accept_parameters(&self) -> Login {
        let Rtv { r_a_tov_ms, e_d_tov, .. } = self.timeout_values();
        let mut login = self.flogi_parameters();
        login.common.word_8 = r_a_tov_ms;
        login.common.e_d_tov = e_d_tov;
        login
    }

    /// Service parameters of this port for other N_Ports, in PLOGI and its accept.
    pub(super) fn plogi_parameters(&self) -> Login {
        let receive_size_bytes = self.config.receive_size_bytes;
        Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: self.config.bb_credit,
                features: feature::CONTINUOUS_OFFSET | self.medium_features(),
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

    /// Largest data field in either direction between this port and the sender of `login`; `None`
    /// if its parameters are invalid.
    pub(super) fn common_frame_size(&self, login: &Login) -> Option<u16> {
        let sizes = [login.common.receive_size_bytes, login.class_3.receive_size_bytes];
        let theirs = sizes.into_iter().filter(|&size| size != 0).min()?;
        let has_names = login.port_name.0 != 0 && login.node_name.0 != 0;
        let size = theirs.min(self.config.receive_size_bytes).min(self.fabric_receive_size_bytes);
        (has_names && theirs >= MIN_RECEIVE_SIZE_BYTES).then_some(usable_frame_size(size))
    }

    /// FCP page of this port, without flags.
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

    /// Address and names of this port.
    pub(super) fn adisc(&self) -> Adisc {
        Adisc {
            hard_address: FcId::ZERO,
            port_name: self.config.wwpn,
            node_name: self.config.wwnn,
            port_id: self.port_id,
        }
    }

    /// LOGO of this port.
    pub(super) fn logo(&self) -> Els {
        Els::Logo(Logo { port_id: self.port_id, port_name: self.config.wwpn })
    }

    /// Timeout values in force.
    pub(super) fn timeout_values(&self) -> Rtv {
        let ms = |span: Span| u32::try_from(span.as_ms()).unwrap_or(u32::MAX);
        Rtv { r_a_tov_ms: ms(self.config.r_a_tov), e_d_tov: ms(self.config.e_d_tov), qualifier: 0 }
    }
}
