//! Workloads whose hosts use a gateway that cannot reach the storage behind it.

use super::Problems;
use super::fabric::node_name;
use super::reach::names;
use crate::config::{GatewayMode, InfinibandNode, Node, Workload};
use crate::san::{AttachedPort, Behind, IpPaths, Lab, PermittedPairs, Place, ProblemKind, behind, is_gateway};
use sanloom_wire::Wwpn;
use std::collections::BTreeSet;

/// Reports hosts without a virtual N_Port at their gateway, and gateways that have no path to the
/// storage behind them, over Fibre Channel or Ethernet. `pairs` are without masks.
pub(super) fn check_gateways(
    lab: &Lab,
    pairs: &PermittedPairs,
    workload: &Workload,
    place: Place,
    problems: &mut Problems,
) {
    let used: BTreeSet<(u16, u16)> = workload.targets.iter().map(|target| (target.storage, target.lun)).collect();
    let gateways: BTreeSet<u16> =
        used.iter().map(|(storage, _)| *storage).filter(|storage| is_gateway(lab, *storage)).collect();
    for storage in gateways {
        let gateway = node_name(lab, Node::Storage(storage));
        let without = without_port(lab, storage, workload);
        if !without.is_empty() {
            let hosts: Vec<&str> = without.iter().map(|host| node_name(lab, Node::Host(*host))).collect();
            problems.add(
                ProblemKind::Unreachable,
                place,
                format!(
                    "workload `{}`: the gateway `{gateway}` has no virtual N_Port for {}",
                    workload.name,
                    names(hosts.into_iter())
                ),
                "add the host to `gateway.hosts` of the gateway, or use mode = \"proxy\"",
            );
        }
        let mut needed = BTreeSet::new();
        let luns: Vec<u16> = used.iter().filter(|(of, _)| *of == storage).map(|(_, lun)| *lun).collect();
        for host in hosts_with_own_paths(lab, storage, workload).into_iter().filter(|host| !without.contains(host)) {
            needed.extend(luns.iter().flat_map(|lun| behind(lab, (host, storage), *lun)));
        }
        // In a simulation, commands over Fibre Channel end at the controller of the switch.
        let has_sessions = workload.hosts.iter().any(|host| !pairs.storage_of_host(*host).contains(&storage));
        for ports in needed {
            let lack = match ports {
                // The first path stands for all of them.
                Behind::Fcp(paths) => {
                    let mut lacks = paths.into_iter().map(|ports| missing(lab, pairs, ports));
                    lacks.next().flatten().filter(|_| lacks.all(|lack| lack.is_some()))
                }
                Behind::Iscsi(system) if has_sessions => missing_ethernet(lab, storage, system),
                Behind::Iscsi(_) => None,
            };
            if let Some((kind, path, remedy)) = lack {
                let reason = format!("workload `{}`: the gateway `{gateway}` needs a path, but {path}", workload.name);
                problems.add(kind, place, reason, remedy);
            }
        }
    }
}

/// Returns the reason and the remedy if Ethernet does not join a virtualization switch and the
/// iSCSI target of a storage system.
fn missing_ethernet(lab: &Lab, switch: u16, system: u16) -> Option<(ProblemKind, String, &'static str)> {
    if lab.iscsi_paths().reaches_back_end(switch, system) {
        return None;
    }
    let nodes = [switch, system].map(InfinibandNode::Storage);
    let target = node_name(lab, Node::Storage(system));
    let reason = match IpPaths::of(lab).share_subnet(nodes[0], nodes[1]) {
        true => format!(
            "only IPoIB leads to the iSCSI target `{target}`, and the simulator connects back ends of virtual disks \
             over Ethernet"
        ),
        false => format!("no path of Ethernet links leads to the iSCSI target `{target}`"),
    };
    let remedy = "link the gateway and the target to Ethernet switches that are joined by links";
    Some((ProblemKind::Unreachable, reason, remedy))
}

/// Returns the hosts of a workload without a virtual N_Port at a gateway in transparent mode.
fn without_port(lab: &Lab, storage: u16, workload: &Workload) -> BTreeSet<u16> {
    let gateway = lab.live.gateways.get(&storage);
    let Some(gateway) = gateway.filter(|own| own.mode == GatewayMode::Transparent && own.through.is_some()) else {
        return BTreeSet::new();
    };
    let with: BTreeSet<u16> = gateway.hosts.iter().map(|own| own.host).collect();
    workload.hosts.iter().copied().filter(|host| !with.contains(host)).collect()
}

/// Returns the hosts of a workload that may have different paths behind a gateway: all of them in
/// transparent mode, one in proxy mode.
fn hosts_with_own_paths(lab: &Lab, storage: u16, workload: &Workload) -> Vec<u16> {
    let is_transparent =
        lab.live.gateways.get(&storage).is_some_and(|gateway| gateway.mode == GatewayMode::Transparent);
    workload.hosts.iter().copied().take(if is_transparent { usize::MAX } else { 1 }).collect()
}

/// Returns the reason and the remedy if no path leads from one port to another. Ports without a
/// link are reported where they are named.
fn missing(
    lab: &Lab,
    pairs: &PermittedPairs,
    [initiator, target]: [Wwpn; 2],
) -> Option<(ProblemKind, String, &'static str)> {
    let find = |ports: &[AttachedPort], name| ports.iter().position(|port| port.identity.port_name == name);
    let name = |port: &AttachedPort| names([node_name(lab, port.node)].into_iter());
    let own = find(&pairs.hosts, initiator)?;
    let Some(far) = find(&pairs.storage, target) else {
        let has_name = |(_, system): &(u16, &crate::config::Storage)| system.ports.iter().any(|p| p.wwpn == target);
        let (number, _) = (0..).zip(&lab.storage).find(has_name)?;
        return Some((
            ProblemKind::Unreachable,
            format!("no link ends at its target port of `{}`", node_name(lab, Node::Storage(number))),
            "link the port to the fabric of the gateway",
        ));
    };
    if pairs.partners(own).contains(&(far as u32)) {
        return None;
    }
    let (own, far) = (&pairs.hosts[own], &pairs.storage[far]);
    Some(match own.fabric == far.fabric {
        true => (
            ProblemKind::NotZoned,
            format!("no zone joins {} and storage {}", name(own), name(far)),
            "put both ports into one zone",
        ),
        false => (
            ProblemKind::Unreachable,
            format!("no path of links leads from {} to storage {}", name(own), name(far)),
            "link both to switches that are joined by ISLs",
        ),
    })
}
