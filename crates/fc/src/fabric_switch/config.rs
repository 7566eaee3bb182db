//! Initial configuration of a whole switch: [`FabricSwitchConfig`].

use crate::config::CostRule;
use crate::domain::DomainConfig;
use crate::eport::EPortConfig;
use crate::fspf::FspfConfig;
use crate::names::NamesConfig;
use crate::switch::{SwitchConfig, port_name};
use crate::zoning::Zones;
use crate::zoning::server::ZoneServerConfig;
use sanloom_wire::sw_ils::FlowControl;

/// Initial configuration of a switch.
#[derive(Clone, Debug)]
pub struct FabricSwitchConfig {
    /// Services of the switch. Their domain is `None`, because the domain manager assigns it.
    pub services: SwitchConfig,
    /// Principal selection and domain.
    pub domain: DomainConfig,
    /// Merge and change of zones.
    pub zones: ZoneServerConfig,
    /// Initial zone database; `services.zoning` has its effective zones.
    pub database: Zones,
    /// Path selection.
    pub fspf: FspfConfig,
    /// Rule for link costs.
    pub cost_rule: CostRule,
    /// Name exchange with other switches.
    pub names: NamesConfig,
    /// Flow control modes of the E_Ports, the preferred one first.
    pub flow_control: Vec<FlowControl>,
    /// Parameters of each port as an E_Port; ports beyond the list have [`IslConfig::default`].
    pub isls: Vec<IslConfig>,
}

/// Parameters of the link of a port to another switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IslConfig {
    /// Data rate in bytes per second; 0 if unknown, which gives the highest cost.
    pub bytes_per_s: u64,
    /// Receive buffers of this end, in frames.
    pub bb_credit: u16,
    /// BB_SC_N of this end; 0: no credit recovery.
    pub bb_sc_n: u8,
    /// Number of the bundle (trunk) that contains the link, if any.
    pub bundle: Option<u16>,
}

impl FabricSwitchConfig {
    /// Parameters of an E_Port without receive buffers.
    pub(super) fn eport(&self, port: u16) -> EPortConfig {
        let services = &self.services;
        EPortConfig {
            port,
            port_name: port_name(services.name, port),
            switch_name: services.name,
            r_a_tov: services.r_a_tov,
            e_d_tov: services.e_d_tov,
            bb_credit: 0,
            bb_sc_n: 0,
            receive_size_bytes: services.receive_size_bytes,
            classes: [false, false, true],
            flow_control: self.flow_control.clone(),
            retry: services.e_d_tov,
            vendor: *b"sanloom\0",
        }
    }
}
