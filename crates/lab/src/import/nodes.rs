//! Hosts and storage: ports that belong together, and their names.

use super::facts::Facts;
use super::plan::Plan;
use super::report::{Note, NoteKind};
use super::roles::{Device, Role};
use super::zones::Zones;
use super::{Choices, note};
use sanloom_wire::Wwpn;
use std::collections::{BTreeMap, BTreeSet};

/// A host or storage system of the lab.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub name: String,
    pub role: Role,
    /// Indices of its devices, one for each port.
    pub ports: Vec<usize>,
    /// The host whose port a virtual machine uses.
    pub on: Option<usize>,
}

/// Most ports of a node.
const MAX_PORTS: usize = 256;

/// Key by which ports are joined to a node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Group {
    /// Chosen by the user.
    Chosen(usize),
    /// Name of a computer in the symbolic name (`HN:`).
    HostName(String),
    /// Common part of the aliases.
    Alias(Role, String),
    /// World-wide name of the node.
    NodeName(Role, u64),
    Single(u64),
}

/// Fills `plan.nodes`.
pub(super) fn name(facts: &Facts, plan: &mut Plan, zones: &Zones, choices: &Choices, notes: &mut Vec<Note>) {
    let virtual_on = carriers(facts, plan, notes);
    let of_ports = zones.aliases_of_ports();
    let aliases: BTreeMap<u64, String> =
        of_ports.iter().filter_map(|(port, aliases)| Some((*port, aliases.first()?.clone()))).collect();
    several(facts, plan, &of_ports, notes);
    let on = |carried: &Carried| if let Carried::On(carrier) = carried { Some(*carrier) } else { None };
    let carriers: BTreeSet<usize> = virtual_on.values().filter_map(on).collect();
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (index, device) in plan.devices.iter().enumerate() {
        match virtual_on.get(&index) {
            Some(Carried::Dropped) => continue,
            Some(Carried::On(_)) => groups.entry(Group::Single(device.wwpn)).or_default().push(index),
            None => {
                let group = if carriers.contains(&index) {
                    Group::Single(device.wwpn)
                } else {
                    group(device, choices, &aliases)
                };
                groups.entry(group).or_default().push(index);
            }
        }
    }
    let mut taken = Names::of(plan.switches.iter().map(|switch| switch.name.clone()).chain(zones.names()));
    let mut node_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut order: Vec<(Group, Vec<usize>)> = groups.into_iter().collect();
    order.sort_by_key(|(_, ports)| ports.iter().min().copied());
    for (group, ports) in order {
        // All ports of a node have one role.
        for role in [Role::Host, Role::Storage] {
            let ports: Vec<usize> = ports.iter().copied().filter(|port| plan.devices[*port].role == role).collect();
            for ports in ports.chunks(MAX_PORTS) {
                let wanted = wanted(&group, &plan.devices[ports[0]], &aliases, choices);
                let fallback = if role == Role::Host { "host" } else { "storage" };
                let name = taken.unique(&sanitise(&wanted, fallback));
                if let Group::Chosen(index) = &group
                    && choices.nodes[*index].0 != name
                {
                    let places: Vec<_> = ports.iter().map(|port| plan.devices[*port].at).collect();
                    let reason = format!("is no free name of a node here; the node is `{name}` in the lab");
                    let remedy = "choose a name that no alias, zone, switch or other node has";
                    let chosen = choices.nodes[*index].0.clone();
                    note(facts, notes, NoteKind::Decision, &places, chosen, reason, remedy);
                }
                for port in ports {
                    node_of.insert(*port, plan.nodes.len());
                }
                if let (Group::Alias(_, stem), true) = (&group, ports.len() > 1) {
                    let places: Vec<_> = ports.iter().map(|port| plan.devices[*port].at).collect();
                    let reason = format!("has the ports whose aliases begin with `{stem}`");
                    let remedy = "choose others with --node NAME=WWPN,WWPN";
                    note(facts, notes, NoteKind::Decision, &places, name.clone(), reason, remedy);
                }
                plan.nodes.push(Node { name, role, ports: ports.to_vec(), on: None });
            }
        }
    }
    for (index, carried) in &virtual_on {
        if let (Carried::On(carrier), Some(node)) = (carried, node_of.get(index)) {
            plan.nodes[*node].on = node_of.get(carrier).copied();
        }
    }
    weak(facts, plan, notes);
}

/// Reports ports with several aliases, of which one names the node.
fn several(facts: &Facts, plan: &Plan, aliases: &BTreeMap<u64, Vec<String>>, notes: &mut Vec<Note>) {
    for device in &plan.devices {
        let Some([first, others @ ..]) = aliases.get(&device.wwpn).map(Vec::as_slice) else { continue };
        if !others.is_empty() {
            let text = Wwpn(device.wwpn).to_string();
            let reason = format!("has the aliases {first}, {}; its node is named after {first}", others.join(", "));
            let remedy = "choose another name with --node NAME=WWPN";
            note(facts, notes, NoteKind::Decision, &[device.at], text, reason, remedy);
        }
    }
}

/// Reports roles that were decided by weak signs.
fn weak(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) {
    for node in &plan.nodes {
        for device in node.ports.iter().map(|port| &plan.devices[*port]).filter(|d| d.how.ends_with("sign")) {
            let noun = if node.role == Role::Host { "a host" } else { "storage" };
            let reason = format!("is taken for {noun} by the {}", device.how);
            let remedy = "choose with --host WWPN or --storage WWPN";
            note(facts, notes, NoteKind::Decision, &[device.at], Wwpn(device.wwpn).to_string(), reason, remedy);
        }
    }
}

/// Relation of a port name to the physical port that it shares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carried {
    On(usize),
    /// A lab cannot express it.
    Dropped,
}

/// Finds the physical port of each virtual one. A storage port of a lab has one name: the others
/// are reported.
fn carriers(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) -> BTreeMap<usize, Carried> {
    let mut shared: BTreeMap<(usize, u16), Vec<usize>> = BTreeMap::new();
    for (index, device) in plan.devices.iter().enumerate() {
        if let Some(port) = device.port {
            shared.entry((device.switch, port)).or_default().push(index);
        }
    }
    let mut carried = BTreeMap::new();
    for indices in shared.into_values().filter(|indices| indices.len() > 1) {
        let device = |index: &usize| &plan.devices[*index];
        let permanent = indices.iter().find_map(|index| device(index).permanent);
        let physical = |index: &&usize| Some(device(index).wwpn) == permanent;
        let targets: Vec<usize> = indices.iter().copied().filter(|i| device(i).role == Role::Storage).collect();
        let first = indices
            .iter()
            .find(physical)
            .or_else(|| indices.iter().find(|i| !device(i).is_virtual))
            .or_else(|| indices.iter().min_by_key(|i| (device(i).address, device(i).at)));
        let Some(&first) = first else { continue };
        let keep = match targets[..] {
            [] => first,
            [target, ..] => targets.iter().copied().find(|t| *t == first).unwrap_or(target),
        };
        for index in indices.iter().copied().filter(|index| *index != keep) {
            if targets.is_empty() {
                carried.insert(index, Carried::On(keep));
                continue;
            }
            carried.insert(index, Carried::Dropped);
            let places = [device(&index).at, device(&keep).at];
            let reason = "shares its switch port with a storage port, and a storage port of a lab has one name";
            let remedy = "replace the name in `wwpns` of the storage if this one is in use";
            let text = Wwpn(device(&index).wwpn).to_string();
            note(facts, notes, NoteKind::Unplaced, &places, text, reason, remedy);
        }
    }
    carried
}

fn group(device: &Device, choices: &Choices, aliases: &BTreeMap<u64, String>) -> Group {
    let chosen = choices.nodes.iter().position(|(_, ports)| ports.contains(&Wwpn(device.wwpn)));
    if let Some(chosen) = chosen {
        return Group::Chosen(chosen);
    }
    let host_name = device.symbols.iter().find_map(|symbol| {
        let name = symbol.split_once("HN:")?.1.split([' ', ',', ';']).next()?;
        Some(name.split('.').next().unwrap_or(name).to_owned()).filter(|name| !name.is_empty())
    });
    if let (Some(name), Role::Host) = (host_name, device.role) {
        return Group::HostName(name);
    }
    if let Some(stem) = aliases.get(&device.wwpn).and_then(|alias| stem(alias)) {
        return Group::Alias(device.role, stem);
    }
    match device.wwnn {
        Some(wwnn) if wwnn != 0 => Group::NodeName(device.role, wwnn),
        _ => Group::Single(device.wwpn),
    }
}

/// Returns the name of the node in an alias such as `esx01_hba0`: the part before the word for a
/// port with its number.
fn stem(alias: &str) -> Option<String> {
    let lower = alias.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    let (word, has_number) = (digits, digits.len() < lower.len());
    let words = ["vmhba", "vhba", "hba", "fcp", "fc", "port", "p"];
    let ending = words.iter().find(|ending| word.ends_with(**ending))?;
    let rest = &word[..word.len() - ending.len()];
    let is_word = has_number && rest.ends_with(['_', '-']);
    let stem = alias.get(..rest.trim_end_matches(['_', '-']).len())?;
    (is_word && !stem.is_empty()).then(|| stem.to_owned())
}

/// The best name for a node.
fn wanted(group: &Group, first: &Device, aliases: &BTreeMap<u64, String>, choices: &Choices) -> String {
    let suffix = if first.role == Role::Host { "host" } else { "storage" };
    match group {
        Group::Chosen(index) => choices.nodes[*index].0.clone(),
        Group::HostName(name) | Group::Alias(_, name) => name.clone(),
        // A node cannot have the name of an alias, because a zone could mean either.
        Group::NodeName(..) | Group::Single(_) => match aliases.get(&first.wwpn) {
            Some(alias) => format!("{alias}-{suffix}"),
            None => format!("{suffix}-{:06x}", first.wwpn & 0xff_ffff),
        },
    }
}

/// Returns a name that a lab accepts.
pub(super) fn sanitise(name: &str, fallback: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().map(fit).take(48).collect();
    let name = name.trim_matches(['-', '_']);
    if name.is_empty() { fallback.to_owned() } else { name.to_owned() }
}

/// Names that are taken.
#[derive(Default)]
pub(super) struct Names {
    pub taken: BTreeSet<String>,
    /// The number to try next behind a name that was taken.
    next: BTreeMap<String, u32>,
}

impl Names {
    pub fn of(taken: impl IntoIterator<Item = String>) -> Names {
        Names { taken: taken.into_iter().collect(), next: BTreeMap::new() }
    }

    /// Takes the name, with a number behind it if it is taken.
    pub fn unique(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        while !self.taken.insert(name.clone()) {
            let number = self.next.entry(base.to_owned()).or_insert(2);
            name = format!("{base}-{number}");
            *number += 1;
        }
        name
    }
}
