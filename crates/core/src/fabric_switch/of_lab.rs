//! The switch that a lab describes: [`FabricSwitchConfig::of_lab`].

use super::{FabricSwitchConfig, IslConfig};
use crate::config::{Lab, Node};
use crate::domain::DomainConfig;
use crate::fabric::ZoneSet;
use crate::fspf::FspfConfig;
use crate::names::NamesConfig;
use crate::switch::SwitchConfig;
use crate::time::Span;
use crate::zoning::Zones;
use crate::zoning::server::ZoneServerConfig;
use sanloom_wire::Wwnn;
use std::sync::Arc;

impl FabricSwitchConfig {
    /// A switch of a lab by its index, with the zones of the lab; `zones` is what is in force of `database`.
    pub fn of_lab(lab: &Lab, switch: u16, zones: Arc<ZoneSet>, database: Zones) -> FabricSwitchConfig {
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
        let name = switch_name(switch);
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
                zoning: zones,
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
                limits: lab.zone_policy.limits,
                retry: Span::from_ms(20),
                ..ZoneServerConfig::default()
            },
            database,
            fspf: FspfConfig {
                hello: timers.hello.to_span(),
                dead: timers.dead.to_span(),
                min_ls_interval: Span::ZERO,
                retransmit: timers.e_d_tov.to_span().max(Span::from_ms(10)).min(FspfConfig::default().retransmit),
                ..FspfConfig::default()
            },
            cost_rule: joining.cost_rule,
            // At once: a host of a simulation is quick, and must not reach a port before hard zoning knows it there.
            names: NamesConfig { delay: Span::ZERO, ..NamesConfig::default() },
            flow_control: joining.flow_control.modes(),
            isls,
        }
    }
}

/// Name of a switch of a lab: IEEE format 1 of a locally administered address.
pub fn switch_name(switch: u16) -> Wwnn {
    Wwnn(0x1000_0253_4c00_0000 + u64::from(switch) + 1)
}
