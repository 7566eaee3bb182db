//! What a whole switch is told at its beginning: [`FabricSwitchConfig`].

use super::FabricSwitch;
use crate::config::{Lab, Node};
use crate::domain::DomainConfig;
use crate::eport::EPortConfig;
use crate::fabric::ZoneSet;
use crate::fspf::FspfConfig;
use crate::fspf::cost::CostRule;
use crate::names::NamesConfig;
use crate::switch::{HardZoning, SwitchConfig, port_name};
use crate::time::Span;
use crate::zoning::Zones;
use crate::zoning::server::ZoneServerConfig;
use sanloom_wire::sw_ils::FlowControl;
use std::sync::Arc;

/// What a switch is told at its beginning.
#[derive(Clone, Debug)]
pub struct FabricSwitchConfig {
    /// The services. Their domain is nothing: the domain manager brings it.
    pub services: SwitchConfig,
    /// Principal selection and domain.
    pub domain: DomainConfig,
    /// How zones merge and change.
    pub zones: ZoneServerConfig,
    /// Zones at the beginning; `services.zoning` is what is in force of them.
    pub database: Zones,
    /// Path selection.
    pub fspf: FspfConfig,
    /// How links cost.
    pub cost_rule: CostRule,
    /// Names across switches.
    pub names: NamesConfig,
    /// Flow control modes of the E_Ports, the preferred one first.
    pub flow_control: Vec<FlowControl>,
    /// What an E_Port of each port would be; ports beyond the list are [`IslConfig::default`].
    pub isls: Vec<IslConfig>,
}

/// What the link of a port to another switch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IslConfig {
    /// Data rate in bytes per second; 0: not known, the dearest link there is.
    pub bytes_per_s: u64,
    /// Receive buffers of this end, in frames.
    pub bb_credit: u16,
    /// Number of the bundle (trunk) that the link belongs to.
    pub bundle: Option<u16>,
}

impl FabricSwitchConfig {
    /// The machines of a switch of a lab, as a real one has them.
    pub fn of_lab(lab: &Lab, switch: u16, zoning: Arc<ZoneSet>, database: Zones) -> FabricSwitchConfig {
        let timers = &lab.timers;
        let config = &lab.switches[usize::from(switch)];
        let mut isls = vec![IslConfig::default(); usize::from(config.ports)];
        for link in &lab.links {
            for end in link.ends.iter().filter(|end| end.node == Node::Switch(switch)) {
                if let Some(slot) = isls.get_mut(usize::from(end.port)) {
                    let bytes_per_s = link.rate.bytes_per_s();
                    *slot = IslConfig { bytes_per_s, bb_credit: end.bb_credit, bundle: link.bundle };
                }
            }
        }
        let name = config.wwn;
        let joining = &config.joining;
        FabricSwitchConfig {
            services: SwitchConfig {
                domain: None,
                name,
                fabric_name: name,
                ports: config.ports,
                e_d_tov: timers.e_d_tov.to_span(),
                r_a_tov: timers.r_a_tov.to_span(),
                rscn_delay: timers.rscn_delay.to_span(),
                bb_credit: isls.iter().map(|isl| isl.bb_credit).collect(),
                receive_size_bytes: 2048,
                zoning,
                policy: config.policy.clone(),
            },
            domain: DomainConfig {
                switch_name: name,
                priority: joining.priority,
                preferred: Some(config.domain),
                insistent: joining.insistent,
                allow_rcf: joining.reconfigure,
                auto_reconfigure: joining.reconfigure,
                f_s_tov: timers.f_s_tov.to_span(),
            },
            zones: ZoneServerConfig {
                supported: joining.zoning,
                merge_control: lab.zone_policy.merge_control,
                rules: lab.zone_policy.merge_rules,
                hard: config.policy.hard_zoning != HardZoning::Off,
                limits: lab.zone_policy.limits,
                ..ZoneServerConfig::default()
            },
            database,
            fspf: FspfConfig {
                hello: timers.hello.to_span(),
                dead: timers.dead.to_span(),
                retransmit: timers.e_d_tov.to_span().max(Span::from_ms(10)).min(FspfConfig::default().retransmit),
                ..FspfConfig::default()
            },
            cost_rule: joining.cost_rule,
            names: NamesConfig::default(),
            flow_control: joining.flow_control.modes(),
            isls,
        }
    }

    pub(super) fn isl(&self, port: u16) -> IslConfig {
        self.isls.get(usize::from(port)).copied().unwrap_or_default()
    }

    /// The port whose number stands for the link of a port: the lowest of its bundle.
    pub(super) fn leader(&self, port: u16) -> u16 {
        match self.isl(port).bundle {
            None => port,
            bundle => self.isls.iter().position(|isl| isl.bundle == bundle).map_or(port, |lowest| lowest as u16),
        }
    }

    pub(super) fn eport(&self, port: u16) -> EPortConfig {
        let services = &self.services;
        EPortConfig {
            port,
            port_name: port_name(services.name, port),
            switch_name: services.name,
            r_a_tov: services.r_a_tov,
            e_d_tov: services.e_d_tov,
            bb_credit: self.isl(port).bb_credit.into(),
            receive_size_bytes: services.receive_size_bytes,
            classes: [false, false, true],
            flow_control: self.flow_control.clone(),
            retry: services.e_d_tov,
            vendor: *b"sanloom\0",
        }
    }
}

impl FabricSwitch {
    /// Cost of a link, by the rates of its ports that have light.
    pub(super) fn cost(&self, leader: u16) -> u32 {
        let members = self.isls.get(&leader).into_iter().flat_map(|isl| &isl.members);
        let rates: Vec<u64> = members.map(|port| self.config.isl(*port).bytes_per_s).collect();
        self.config.cost_rule.cost(&rates)
    }
}
