//! Decisions of the user, and those that had no effect.

use super::facts::Facts;
use super::nodes::Node;
use super::note;
use super::plan::Plan;
use super::report::{Note, NoteKind};
use sanloom_wire::Wwpn;
use std::collections::{BTreeMap, BTreeSet};

/// Decisions of the user, which replace those of the importer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    /// Ports that belong to storage.
    pub storage: BTreeSet<Wwpn>,
    /// Ports that belong to hosts.
    pub hosts: BTreeSet<Wwpn>,
    /// Nodes by name with all their ports.
    pub nodes: Vec<(String, Vec<Wwpn>)>,
}

impl Choices {
    /// Returns a sentence for each pair of choices that exclude each other.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found: Vec<String> = self
            .storage
            .intersection(&self.hosts)
            .map(|port| format!("{port} is chosen for a host and for storage; keep --host or --storage"))
            .collect();
        let mut node_of: BTreeMap<Wwpn, &str> = BTreeMap::new();
        for (name, ports) in &self.nodes {
            for port in ports {
                match node_of.insert(*port, name) {
                    Some(other) if other != name => found
                        .push(format!("{port} is chosen for the nodes {other} and {name}; name it with --node once")),
                    _ => {}
                }
            }
            let hosts = ports.iter().find(|port| self.hosts.contains(port));
            let storage = ports.iter().find(|port| self.storage.contains(port));
            if let (Some(host), Some(storage)) = (hosts, storage) {
                found.push(format!(
                    "the node {name} has {host}, chosen for a host, and {storage}, chosen for storage; the ports of a \
                     node have one role"
                ));
            }
        }
        found
    }
}

/// Reports choices for ports that no input has, and nodes whose ports are not together in the lab.
pub(super) fn report(facts: &Facts, plan: &Plan, choices: &Choices, notes: &mut Vec<Note>) {
    let known: BTreeSet<Wwpn> = plan.devices.iter().map(|device| Wwpn(device.wwpn)).collect();
    let roles = choices.storage.iter().map(|port| (*port, "--storage".to_owned()));
    let roles = roles.chain(choices.hosts.iter().map(|port| (*port, "--host".to_owned())));
    let named = choices.nodes.iter().flat_map(|(name, ports)| ports.iter().map(move |port| (*port, node(name))));
    for (port, option) in roles.chain(named).filter(|(port, _)| !known.contains(port)) {
        let reason = format!("of {option} is logged in at no switch of the inputs");
        let remedy = "correct the name, or add the output that has it";
        note(facts, notes, NoteKind::Unplaced, &[], port.to_string(), reason, remedy);
    }
    for (name, ports) in &choices.nodes {
        let is_part = |node: &&Node| node.ports.iter().any(|port| ports.contains(&Wwpn(plan.devices[*port].wwpn)));
        let parts: Vec<&str> = plan.nodes.iter().filter(is_part).map(|node| node.name.as_str()).collect();
        if parts.len() > 1 {
            let reason =
                format!("has ports of both roles, virtual ports, or too many; the lab has {}", parts.join(", "));
            let remedy = "choose roles with --host and --storage, or name ports of one node";
            note(facts, notes, NoteKind::Conflict, &[], node(name), reason, remedy);
        }
    }
}

fn node(name: &str) -> String {
    format!("--node {name}")
}
