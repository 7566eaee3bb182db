//! The subnet of a lab as its manager sees it: the graph of the fabric, and the paths that the
//! routing engine gives to pairs of interfaces.

use super::Lab;
use crate::config::{InfinibandEnd, InfinibandNode, SubnetRouting};
use sanloom_transport::infiniband::fabric::{Fabric, Guid, PortId};
use sanloom_transport::infiniband::lids::Lids;
use sanloom_transport::infiniband::manager::{self, Config, Subnet};
use sanloom_transport::infiniband::routing::{Engine, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// First GUIDs of switches and of adapters.
const SWITCH_GUID: u64 = 0x0002_c902_0000_0000;
const ADAPTER_GUID: u64 = 0x0002_c903_0000_0000;
/// GUIDs of a node: its own and those of its ports.
const GUIDS: u64 = 16;

/// Node GUID of an InfiniBand switch.
pub const fn infiniband_switch_guid(number: u16) -> u64 {
    SWITCH_GUID + GUIDS * number as u64
}

/// Node GUID of the adapter with this number among [`Lab::infiniband_interfaces`].
pub const fn infiniband_adapter_guid(interface: u16) -> u64 {
    ADAPTER_GUID + GUIDS * interface as u64
}

/// SRP port identifier of the adapter with this number among [`Lab::infiniband_interfaces`]: an
/// identifier extension of zero, and the GUID, as Linux has it.
pub const fn srp_port(interface: u16) -> [u8; 16] {
    (infiniband_adapter_guid(interface) as u128).to_be_bytes()
}

/// Settings of the subnet manager of a lab.
pub fn subnet_config(lab: &Lab) -> Config {
    let subnet = &lab.infiniband.subnet;
    Config {
        engine: match subnet.routing {
            SubnetRouting::MinHop => Engine::MinHop,
            SubnetRouting::UpDown => Engine::UpDown,
            SubnetRouting::FatTree => Engine::FatTree,
        },
        roots: subnet.roots.iter().map(|switch| Guid(infiniband_switch_guid(*switch))).collect(),
        lmc: subnet.lmc,
    }
}

/// The subnet of a lab with its LIDs, to be routed without some links.
#[derive(Clone, Debug)]
pub struct SubnetGraph<'l> {
    lab: &'l Lab,
    config: Config,
    /// LIDs of the whole subnet, which stay when links fail.
    lids: Lids,
}

impl<'l> SubnetGraph<'l> {
    /// Returns the subnet of a lab that [`Lab::validate`] accepts.
    pub fn of(lab: &'l Lab) -> SubnetGraph<'l> {
        let (whole, config) = (graph(lab, &BTreeSet::new()), subnet_config(lab));
        let first = managers(lab, &whole).next();
        let lids = first.and_then(|first| manager::assign(&whole, first, &config).ok()).unwrap_or_default();
        SubnetGraph { lab, config, lids }
    }

    /// Routes the subnet without the links in `broken`, as a simulation does.
    pub fn routes(&self, broken: &BTreeSet<u16>) -> SubnetRoutes {
        let fabric = graph(self.lab, broken);
        let subnet = manager::sweep_parts(&fabric, managers(self.lab, &fabric), &self.config, &self.lids);
        SubnetRoutes { fabric, switches: self.lab.infiniband.switches.len(), subnet }
    }
}

/// Ports of the adapters, whose managers are in standby; the first one is the manager.
fn managers(lab: &Lab, fabric: &Fabric) -> impl Iterator<Item = PortId> {
    (lab.infiniband.switches.len()..fabric.nodes().len()).map(|node| PortId { node, port: 1 })
}

/// Forwarding tables of a subnet: [`SubnetGraph::routes`].
pub struct SubnetRoutes {
    fabric: Fabric,
    switches: usize,
    subnet: Option<Subnet>,
}

impl SubnetRoutes {
    /// Reason for which the configured routing engine was replaced by `minhop`.
    pub fn refusal(&self) -> Option<Refusal> {
        self.subnet.as_ref()?.refusal
    }

    /// The reason of [`SubnetRoutes::refusal`] with the names of the switches.
    pub fn refusal_text(lab: &Lab, refusal: Refusal) -> String {
        let name = |node: usize| lab.infiniband.switches.get(node).map_or("?", |switch| &switch.name);
        match refusal {
            Refusal::Level(a, b) => {
                format!("a link joins the switches `{}` and `{}`, whose levels are not neighbours", name(a), name(b))
            }
            Refusal::Uneven(switch) => {
                format!("the switch `{}` differs from other switches of its level in its groups of links", name(switch))
            }
            Refusal::NoRoots | Refusal::Lmc | Refusal::Shape { .. } => refusal.to_string(),
        }
    }

    /// Returns whether packets travel between two interfaces, in both directions. Interfaces have
    /// their numbers among [`Lab::infiniband_interfaces`].
    pub fn joins(&self, a: u16, b: u16) -> bool {
        let Some(subnet) = &self.subnet else { return false };
        let [a, b] = [a, b].map(|interface| PortId { node: self.switches + usize::from(interface), port: 1 });
        let leads = |from: PortId, to: PortId| {
            let range = subnet.lids.of(to);
            range.is_some_and(|range| range.lids().all(|lid| subnet.path(&self.fabric, from, lid).is_ok()))
        };
        leads(a, b) && leads(b, a)
    }
}

/// Returns the switches and interfaces of a lab with their links, without those in `broken`.
fn graph(lab: &Lab, broken: &BTreeSet<u16>) -> Fabric {
    let mut fabric = Fabric::default();
    let links = &lab.infiniband.links;
    let mut ports = vec![1_u16; lab.infiniband.switches.len()];
    for end in links.iter().flat_map(|link| link.ends) {
        if let InfinibandNode::Switch(switch) = end.node {
            let ports = &mut ports[usize::from(switch)];
            *ports = (*ports).max(end.port + 1);
        }
    }
    for (number, ports) in (0..).zip(ports) {
        _ = fabric.switch(Guid(infiniband_switch_guid(number)), ports.into());
    }
    let interfaces = lab.infiniband_interfaces();
    let mut nodes: BTreeMap<InfinibandEnd, usize> = BTreeMap::new();
    for (number, interface) in (0..).zip(&interfaces) {
        nodes.insert(interface.end, lab.infiniband.switches.len() + usize::from(number));
        _ = fabric.adapter(Guid(infiniband_adapter_guid(number)), 1);
    }
    let port = |end: InfinibandEnd| match end.node {
        InfinibandNode::Switch(switch) => PortId { node: switch.into(), port: (end.port as u8).saturating_add(1) },
        InfinibandNode::Host(_) | InfinibandNode::Storage(_) => PortId { node: nodes[&end], port: 1 },
    };
    for (_, link) in (0..).zip(links).filter(|(number, _)| !broken.contains(number)) {
        _ = fabric.connect(port(link.ends[0]), port(link.ends[1]));
    }
    fabric
}
