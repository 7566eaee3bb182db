//! Configuration of the machines of each switch of a [`Lab`].

use super::Lab;
use crate::config::{LinkEnd, Node};
use crate::domain::DomainConfig;
use crate::fabric::ZoneSet;
use crate::fabric_switch::{Cable, FabricSwitchConfig, IslConfig};
use crate::fspf::FspfConfig;
use crate::names::NamesConfig;
use crate::switch::{HardZoning, SwitchConfig};
use crate::zoning::server::ZoneServerConfig;
use crate::zoning::{ZoneCatalogue, Zones};
use sanloom_scsi::time::Span;
use sanloom_wire::header::MAX_DATA_FIELD_BYTES;
use std::sync::Arc;

impl FabricSwitchConfig {
    /// Configuration of a switch of a lab.
    pub fn of_lab(lab: &Lab, switch: u16, zoning: Arc<ZoneSet>, database: Zones) -> FabricSwitchConfig {
        let timers = &lab.timers;
        let config = &lab.switches[usize::from(switch)];
        let mut isls = vec![IslConfig::default(); usize::from(config.ports)];
        for link in &lab.links {
            for end in link.ends.iter().filter(|end| end.node == Node::Switch(switch)) {
                if let Some(slot) = isls.get_mut(usize::from(end.port)) {
                    let bytes_per_s = link.rate.bytes_per_s();
                    let LinkEnd { bb_credit, bb_sc_n, .. } = *end;
                    *slot = IslConfig { bytes_per_s, bb_credit, bb_sc_n, bundle: link.bundle };
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
                bb_sc_n: isls.iter().map(|isl| isl.bb_sc_n).collect(),
                receive_size_bytes: MAX_DATA_FIELD_BYTES as u16,
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
}

/// Initial configurations of all switches of a lab.
pub fn lab_configs(lab: &Lab) -> Vec<FabricSwitchConfig> {
    let catalogue = ZoneCatalogue::default();
    let config = |switch| {
        let zones = Zones::in_catalogue(catalogue.clone(), lab.zone_database_at(switch));
        FabricSwitchConfig::of_lab(lab, switch, zones.index(), zones)
    };
    (0..lab.switches.len() as u16).map(config).collect()
}

/// Links between switches that have light from the start. The lab's first switch has the number
/// `first`.
pub(super) fn lab_cables(lab: &Lab, first: usize) -> Vec<Cable> {
    let dark = lab.dark_links();
    let lit = (0..).zip(&lab.links).filter(|(number, _)| !dark.contains(number));
    lit.filter_map(|(_, link)| Cable::of(link)).map(|cable| cable.behind(first)).collect()
}
