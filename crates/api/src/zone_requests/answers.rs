//! Answers to zone requests: the status of a switch, and the effect of edits on pairs of ports.

use super::ZoneFabric;
use crate::control::{Answer, RequestError};
use crate::zone_database::Database;
use crate::zoning::{PortPair, SCHEMA_VERSION, ZonePort, ZonePreview, ZoneStatus};
use sanloom_fc::config::Node;
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::{Preview, Transaction, ZoneDatabase};
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;

/// Status of the zones of a switch.
pub fn status(fabric: &dyn ZoneFabric, switch: usize, now: Instant) -> Answer {
    let (machine, zones) = (fabric.machine(switch), fabric.zones(switch));
    let database = machine.zone_database();
    let server = machine.zone_server();
    let (working, transaction, problems) = match &zones.open {
        None => (None, None, Vec::new()),
        Some(open) => {
            let (outcome, problems) = open.transaction.outcome();
            let shown = open.shown(now, outcome.size().database_bytes as u64);
            (Some(Database::from(&outcome)), Some(shown), problems.iter().map(ToString::to_string).collect())
        }
    };
    Answer::Zones(Box::new(ZoneStatus {
        schema_version: SCHEMA_VERSION,
        switch: fabric.name(switch).to_owned(),
        state: database.into(),
        committed: database.into(),
        working,
        checksum: format!("{:032x}", database.checksum()),
        database_max_bytes: fabric.lab().zone_policy.limits.database_bytes as u64,
        transaction,
        lost: None,
        problems,
        change: server.state().to_string(),
        locked_by: server.locked_by(),
        can_roll_back: zones.previous.is_some(),
        volatile: fabric.store().is_none(),
        kept: fabric.store().is_some() && zones.is_kept(),
        ports: ports_of(fabric, switch).into_iter().map(|(port, _)| port).collect(),
    }))
}

pub(super) fn preview(
    fabric: &dyn ZoneFabric,
    switch: usize,
    transaction: &Transaction,
) -> Result<Answer, RequestError> {
    let outcome = transaction.commit().map_err(|problems| sentences(&problems))?;
    let before = fabric.machine(switch).zone_database();
    Ok(Answer::ZonePreview(Box::new(difference(fabric, switch, before, &outcome))))
}

/// Pairs of logged-in ports that another database would permit or forbid.
pub fn difference(fabric: &dyn ZoneFabric, switch: usize, before: &ZoneDatabase, after: &ZoneDatabase) -> ZonePreview {
    let ports = ports_of(fabric, switch);
    let identities: Vec<PortIdentity> = ports.iter().map(|(_, identity)| *identity).collect();
    let preview = Preview::between(&before.zoning(), &after.zoning(), &identities);
    let name = |index: u32| ports[index as usize].0.name.clone();
    let pairs = |list: &[(u32, u32)]| list.iter().map(|(a, b)| PortPair(name(*a), name(*b))).collect();
    ZonePreview {
        schema_version: SCHEMA_VERSION,
        lab: fabric.lab().name.clone(),
        before: before.into(),
        after: after.into(),
        gains: pairs(&preview.gains),
        loses: pairs(&preview.loses),
        unchanged_pairs: preview.unchanged,
        unaffected_ports: preview.unaffected_ports as u64,
    }
}

/// Ports of the whole fabric, from the name server of a switch.
fn ports_of(fabric: &dyn ZoneFabric, switch: usize) -> Vec<(ZonePort, PortIdentity)> {
    let machine = fabric.machine(switch);
    let names = port_names(fabric.lab());
    let domains: BTreeMap<u8, &str> = (machine.members().iter())
        .filter_map(|(domain, name)| {
            let switch = fabric.lab().switches.iter().find(|switch| switch.wwn == *name);
            switch.map(|switch| (*domain, &*switch.name))
        })
        .collect();
    let port = |identity: PortIdentity| {
        let port_name = identity.port_name.to_string();
        let own = Some(identity.domain) == machine.domain();
        let name = if own { fabric.name(switch) } else { domains.get(&identity.domain).unwrap_or(&"") };
        let view = ZonePort {
            name: names.get(&identity.port_name).cloned().unwrap_or_else(|| port_name.clone()),
            port_name,
            node_name: identity.node_name.to_string(),
            port_id: identity.port_id.to_string(),
            switch: name.to_owned(),
            domain: identity.domain,
            switch_port: identity.port,
        };
        (view, identity)
    };
    machine.services().name_server().map(|entry| port(entry.identity())).collect()
}

/// Ports of a lab, as `server1:0`, by their names.
fn port_names(lab: &Lab) -> BTreeMap<Wwpn, String> {
    let name = |port: &sanloom_fc::san::AttachedPort| match port.node {
        Node::Switch(n) => &lab.switches[usize::from(n)].name,
        Node::Host(n) => &lab.hosts[usize::from(n)].name,
        Node::Storage(n) => &lab.storage[usize::from(n)].name,
        Node::Loop(n) => &lab.loops[usize::from(n)].name,
    };
    let ports = lab.attached_ports();
    ports.iter().map(|port| (port.identity.port_name, format!("{}:{}", name(port), port.port))).collect()
}

pub(super) fn sentences<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(T::to_string).collect::<Vec<_>>().join("; ")
}
