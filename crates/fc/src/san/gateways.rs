//! Gateways of a lab, and the storage behind them: [`behind`].

use super::{IscsiPaths, Lab, storage_of_iscsi, storage_of_port};
use crate::config::{BackEndTarget, EthernetNode, GatewayMode, Host, MediumKind};
use sanloom_wire::Wwpn;
use std::collections::BTreeSet;

/// Returns whether the data of a storage system are on others and pass through it: it is a gateway
/// or a virtualization switch.
pub fn is_gateway(lab: &Lab, storage: u16) -> bool {
    let through = lab.live.gateways.get(&storage).is_some_and(|gateway| gateway.through.is_some());
    through || is_virtualization_switch(lab, storage)
}

/// Returns whether the commands for virtual disks pass through a storage system, and not only
/// requests for maps.
fn is_virtualization_switch(lab: &Lab, storage: u16) -> bool {
    lab.live.medium(storage).kind == MediumKind::Volumes && !lab.live.out_of_band.contains_key(&storage)
}

/// Storage systems whose data are on others and pass through them: gateways and virtualization
/// switches.
pub fn gateways(lab: &Lab) -> impl Iterator<Item = u16> + '_ {
    (0..lab.storage.len() as u16).filter(|storage| is_gateway(lab, *storage))
}

/// Hosts with the ports of a gateway in Fibre Channel, without virtual ones.
pub fn hosts_of_gateway(lab: &Lab, storage: u16) -> BTreeSet<u16> {
    let through = lab.live.gateways.get(&storage).and_then(|gateway| gateway.through.as_ref());
    let of_volumes = is_virtualization_switch(lab, storage).then(|| lab.live.host_ports());
    let names: Vec<Wwpn> =
        through.iter().flat_map(|ports| &ports.initiators).copied().chain(of_volumes.into_iter().flatten()).collect();
    let has_name = |host: &Host| host.hbas.iter().any(|hba| names.contains(&hba.wwpn));
    (0..).zip(&lab.hosts).filter(|(_, host)| has_name(host)).map(|(number, _)| number).collect()
}

/// Connection between a gateway and storage behind it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Behind {
    /// Ports of the gateway and of the storage in Fibre Channel. One of these paths is enough.
    Fcp(Vec<[Wwpn; 2]>),
    /// Storage system with an iSCSI target.
    Iscsi(u16),
}

/// Returns the connections behind a gateway that a host needs for a LUN, all of them. Empty for
/// other storage. Targets outside of the lab are left out.
pub fn behind(lab: &Lab, (host, storage): (u16, u16), lun: u16) -> Vec<Behind> {
    let gateway = lab.live.gateways.get(&storage);
    if let Some((gateway, ports)) = gateway.and_then(|gateway| Some((gateway, gateway.through.as_ref()?))) {
        let own = gateway.hosts.iter().find(|own| own.host == host);
        let virtual_ports = own.and_then(|own| lab.hosts.get(usize::from(own.port))).map(|host| &host.hbas);
        let paths = match gateway.mode {
            GatewayMode::Proxy => ports.paths_from(&ports.initiators),
            GatewayMode::Transparent => {
                let names: Vec<Wwpn> = virtual_ports.into_iter().flatten().map(|hba| hba.wwpn).collect();
                ports.paths_from(&names)
            }
        };
        return vec![Behind::Fcp(paths)];
    }
    if !is_virtualization_switch(lab, storage) {
        return Vec::new();
    }
    let pool = lab.volumes_of(storage).get(&lun).map(|volume| volume.pool);
    let back_ends = lab.live.back_ends.iter().filter(|back_end| Some(back_end.pool) == pool);
    back_ends.filter_map(|back_end| path_of(lab, &back_end.target)).collect()
}

fn path_of(lab: &Lab, target: &BackEndTarget) -> Option<Behind> {
    match target {
        BackEndTarget::Fcp(target) => {
            storage_of_port(lab, target.target).map(|_| Behind::Fcp(target.paths().collect()))
        }
        BackEndTarget::Iscsi(_) => iscsi_back_end(lab, target).map(Behind::Iscsi),
    }
}

/// Returns the storage system of an iSCSI back end. `None` for another target, and for one outside
/// of the lab.
fn iscsi_back_end(lab: &Lab, target: &BackEndTarget) -> Option<u16> {
    let BackEndTarget::Iscsi(target) = target else { return None };
    storage_of_iscsi(&lab.live, &target.name).map(|(storage, _)| storage)
}

impl IscsiPaths<'_> {
    /// Sessions of virtualization switches with their back ends: switch, storage system with the
    /// back-end LUNs, and number of the portal. Of the portals that a back end names, in the order
    /// of the storage system, it is the first that an interface of the switch reaches, or else the
    /// first one.
    pub fn back_ends(&self) -> BTreeSet<(u16, u16, u16)> {
        let mut sessions = BTreeSet::new();
        let has_volumes = |storage: &u16| is_virtualization_switch(self.lab, *storage);
        let is_linked = |switch: &u16| !self.interfaces_of(EthernetNode::Storage(*switch)).is_empty();
        for switch in (0..self.lab.storage.len() as u16).filter(|storage| has_volumes(storage) && is_linked(storage)) {
            for back_end in &self.lab.live.back_ends {
                let BackEndTarget::Iscsi(target) = &back_end.target else { continue };
                let Some((storage, config)) = storage_of_iscsi(&self.lab.live, &target.name) else { continue };
                if self.portals(storage).is_empty() {
                    continue;
                }
                let portals = (0..).zip(&config.portals).filter(|(_, portal)| target.portals.contains(portal));
                let mut portals = portals.map(|(number, _)| number);
                let first = portals.clone().next().unwrap_or(0);
                let is_reached = |portal: &u16| self.is_joined_to_back_end((switch, storage, *portal));
                sessions.insert((switch, storage, portals.find(is_reached).unwrap_or(first)));
            }
        }
        sessions
    }

    /// Returns the first session of a virtualization switch with the iSCSI target of a storage
    /// system.
    pub fn back_end(&self, switch: u16, storage: u16) -> Option<(u16, u16, u16)> {
        self.back_ends().into_iter().find(|(own, far, _)| (*own, *far) == (switch, storage))
    }

    /// Returns whether Ethernet joins a virtualization switch and the iSCSI target of a storage
    /// system, over the interfaces of their first session.
    pub fn reaches_back_end(&self, switch: u16, storage: u16) -> bool {
        self.back_end(switch, storage).is_some_and(|session| self.is_joined_to_back_end(session))
    }

    fn is_joined_to_back_end(&self, session: (u16, u16, u16)) -> bool {
        let ends = self.ends_of_back_end(session);
        ends.is_some_and(|([own, far], _)| self.are_joined_in(None, own, far))
    }

    /// Interfaces of a session of [`IscsiPaths::back_ends`], and its portal: the last one of the
    /// storage system, if the number of the portal is beyond it. Of the interfaces of the switch it
    /// is the first that reaches the portal, or else the first one.
    pub fn ends_of_back_end(&self, (switch, storage, portal): (u16, u16, u16)) -> Option<([u16; 2], u16)> {
        let portals = self.portals(storage);
        let portal = portal.min(portals.len().checked_sub(1)? as u16);
        let far = *portals.get(usize::from(portal))?;
        let own = self.interfaces_of(EthernetNode::Storage(switch));
        // Virtualization switches log in without a VLAN.
        let joined = own.iter().find(|own| self.are_joined_in(None, **own, far));
        Some(([*joined.or(own.first())?, far], portal))
    }
}
