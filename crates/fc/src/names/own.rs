//! Local ports, indexed by every key that queries of other switches use: [`OwnPorts`].

use crate::config::ZoneMember;
use crate::fabric::PortIdentity;
use crate::switch::identity;
use sanloom_wire::ns::NsRecord;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Object of a local port.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) entry: Arc<NsRecord>,
    /// Log number of its login.
    pub(super) login: u64,
}

/// Own objects with an index for each kind of zone member, so that the time to resolve a member
/// does not depend on the number of ports.
#[derive(Debug, Default)]
pub(super) struct OwnPorts {
    by_id: BTreeMap<FcId, Own>,
    by_name: BTreeMap<Wwpn, FcId>,
    by_node: BTreeSet<(Wwnn, FcId)>,
    /// Switch port number and N_Port_ID.
    by_port: BTreeSet<(u16, FcId)>,
}

impl OwnPorts {
    pub(super) fn get(&self, id: FcId) -> Option<&Own> {
        self.by_id.get(&id)
    }

    /// Address of the port with this name.
    pub(super) fn named(&self, name: Wwpn) -> Option<FcId> {
        self.by_name.get(&name).copied()
    }

    /// Objects sorted by address.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<NsRecord>> {
        self.by_id.values().map(|own| &own.entry)
    }

    /// Adds an object and returns the one with the same address that it replaces.
    pub(super) fn insert(&mut self, entry: Arc<NsRecord>, login: u64) -> Option<Own> {
        let old = self.remove(entry.port_id);
        let PortIdentity { port_id: id, port_name, node_name, port, .. } = identity(&entry);
        self.by_name.insert(port_name, id);
        self.by_node.insert((node_name, id));
        self.by_port.insert((port, id));
        self.by_id.insert(id, Own { entry, login });
        old
    }

    pub(super) fn remove(&mut self, id: FcId) -> Option<Own> {
        let own = self.by_id.remove(&id)?;
        let PortIdentity { port_name, node_name, port, .. } = identity(&own.entry);
        if self.named(port_name) == Some(id) {
            self.by_name.remove(&port_name);
        }
        self.by_node.remove(&(node_name, id));
        self.by_port.remove(&(port, id));
        Some(own)
    }

    /// Adds the addresses of all ports that match a zone member.
    pub(super) fn collect(&self, member: &ZoneMember, found: &mut BTreeSet<FcId>) {
        let all = FcId::ZERO..=FcId::new(0x00ff_ffff);
        match *member {
            ZoneMember::PortName(name) => found.extend(self.named(name)),
            ZoneMember::PortId(id) => found.extend(self.get(id).map(|_| id)),
            ZoneMember::NodeName(name) => {
                let of_node = self.by_node.range((name, *all.start())..=(name, *all.end()));
                found.extend(of_node.map(|(_, id)| *id));
            }
            ZoneMember::DomainPort { domain, port } => {
                let of_port = self.by_port.range((port, *all.start())..=(port, *all.end()));
                found.extend(of_port.map(|(_, id)| *id).filter(|id| id.domain() == domain));
            }
        }
    }
}
