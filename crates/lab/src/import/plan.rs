//! The fabric that all observations describe together: switches and the links between them.

use super::facts::{At, Facts, Logical, Os, PortRef, tail};
use super::nodes::Node;
use super::report::{Note, NoteKind};
use super::roles::{self, Device};
use super::{Choices, note};
use std::collections::{BTreeMap, BTreeSet};

mod chassis;
mod interfaces;
mod isls;
pub(super) mod logical;
mod trunks;

pub(super) use logical::place;

/// VSAN number of switches that have none.
pub(super) const NO_VSAN: u16 = 0;

/// A physical switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Chassis {
    pub name: String,
    /// Names in the inputs.
    pub called: BTreeSet<String>,
    /// IP addresses of its management interfaces.
    pub addresses: BTreeSet<String>,
    pub os: Option<Os>,
    pub wwn: Option<u64>,
    /// Numbers of interfaces by name (NX-OS).
    pub numbers: BTreeMap<String, u16>,
    /// Domains by VSAN.
    pub domains: BTreeMap<u16, (u8, At)>,
    /// Priorities in the selection of the principal switch by VSAN.
    pub priorities: BTreeMap<u16, u8>,
    /// An output of the switch itself is among the inputs.
    pub is_seen: bool,
    /// Number of ports, if an input lists all.
    pub ports: Option<u16>,
    /// The chassis is a logical switch of Fabric OS: its own name, world-wide name and ports.
    pub logical: Option<Logical>,
    /// Ports that an input lists.
    pub listed: BTreeSet<u16>,
}

/// A switch of the lab: a physical one, or one of its VSANs.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub name: String,
    pub chassis: usize,
    pub vsan: u16,
    /// Chassis and ID of the virtual fabric that the switch is written as, if some chassis has
    /// several.
    pub virtual_fabric: Option<(String, u16)>,
    /// Number of the fabric.
    pub fabric: usize,
}

/// A link between switches, or a trunk.
#[derive(Clone, Debug)]
pub(super) struct Isl {
    pub switches: [usize; 2],
    /// Ports of each line at both ends, where an input tells them. Several lines are a trunk.
    pub lines: Vec<[Option<u16>; 2]>,
    pub gfc: Option<u32>,
}

/// Everything but the zones.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub chassis: Vec<Chassis>,
    pub switches: Vec<Switch>,
    pub isls: Vec<Isl>,
    pub devices: Vec<Device>,
    pub nodes: Vec<Node>,
    /// Chassis of each sighting.
    pub chassis_of: Vec<Option<usize>>,
    pub by_vsan: BTreeMap<(usize, u16), usize>,
    /// Chassis by the last six bytes of their world-wide names.
    pub by_tail: BTreeMap<u64, usize>,
    /// Chassis without a world-wide name, by name. Some may have got one since.
    pub nameless: BTreeMap<String, Vec<usize>>,
    /// Switches of the lab and ports at which an arbitrated loop is, with the row that tells it.
    pub loops: BTreeMap<(usize, u16), At>,
    /// Speeds of ports by switch of the lab and number.
    pub speeds: BTreeMap<(usize, u16), u32>,
    /// Switches that list a port, by name of the chassis and number (logical switches).
    pub owners: BTreeMap<(String, u16), usize>,
}

impl Plan {
    /// The switch of the lab that a sighting shows.
    pub fn switch(&self, seen: usize, vsan: Option<u16>) -> Option<usize> {
        let chassis = (*self.chassis_of.get(seen)?)?;
        let vsan = match self.chassis[chassis].os {
            Some(Os::NxOs) => vsan.unwrap_or(1),
            _ => NO_VSAN,
        };
        self.by_vsan.get(&(chassis, vsan)).copied()
    }

    /// The number of a port in the lab.
    pub fn number(&self, switch: usize, port: &PortRef) -> Option<u16> {
        match port {
            PortRef::Number(number) => Some(*number),
            PortRef::Name(name) => self.chassis[self.switches[switch].chassis].numbers.get(name).copied(),
        }
    }

    /// The logical switch that has a port of the chassis of `switch`.
    pub fn owner(&self, switch: usize, port: u16) -> usize {
        let chassis = self.switches[switch].virtual_fabric.as_ref().map(|(chassis, _)| chassis.clone());
        chassis.and_then(|chassis| self.owners.get(&(chassis, port)).copied()).unwrap_or(switch)
    }

    /// The chassis with a world-wide name.
    pub fn chassis_with(&self, wwn: u64) -> Option<usize> {
        self.by_tail.get(&tail(wwn)).copied()
    }

    pub fn domain(&self, switch: usize) -> Option<u8> {
        let switch = &self.switches[switch];
        self.chassis[switch.chassis].domains.get(&switch.vsan).map(|(domain, _)| *domain)
    }

    /// The switch of a fabric that has a domain.
    pub fn with_domain(&self, fabric: usize, domain: u8) -> Option<usize> {
        let mut found =
            (0..self.switches.len()).filter(|&i| self.switches[i].fabric == fabric && self.domain(i) == Some(domain));
        found.next()
    }
}

/// Merges the observations, except those of zones.
pub(super) fn plan(facts: &Facts, choices: &Choices, notes: &mut Vec<Note>) -> Plan {
    let mut plan = Plan::default();
    chassis::build(facts, &mut plan, notes);
    split(facts, &mut plan);
    ports(facts, &mut plan, notes);
    isls::build(facts, &mut plan, notes);
    plan.devices = roles::devices(facts, &plan, choices, notes);
    occupied(facts, &plan, notes);
    interfaces::report(facts, &plan, notes);
    plan
}

/// Makes a switch of the lab for each chassis and VSAN.
fn split(facts: &Facts, plan: &mut Plan) {
    let mut vsans: Vec<BTreeSet<u16>> = vec![BTreeSet::new(); plan.chassis.len()];
    let mut add = |seen: usize, vsan: Option<u16>| {
        if let Some(chassis) = plan.chassis_of[seen] {
            vsans[chassis].insert(vsan.unwrap_or(1));
        }
    };
    facts.logins.iter().for_each(|login| add(login.seen, login.vsan));
    facts.trunks.iter().for_each(|trunk| add(trunk.seen, trunk.vsan));
    facts.vsans.iter().for_each(|(seen, vsan)| add(*seen, Some(*vsan)));
    facts.zones.iter().filter(|base| base.vsan.is_some()).for_each(|base| add(base.seen, base.vsan));
    for (chassis, vsans) in plan.chassis.iter().zip(&mut vsans) {
        match chassis.os {
            Some(Os::NxOs) => {
                vsans.extend(chassis.domains.keys().copied().filter(|vsan| *vsan != NO_VSAN));
                if vsans.is_empty() {
                    vsans.insert(1);
                }
            }
            _ => *vsans = BTreeSet::from([NO_VSAN]),
        }
    }
    // A neighbour has at least the VSANs of the links to it.
    for trunk in &facts.trunks {
        if let Some(peer) = chassis::peer(facts, plan, trunk)
            && plan.chassis[peer].os == Some(Os::NxOs)
        {
            vsans[peer].insert(trunk.vsan.unwrap_or(1));
        }
    }
    let any_shared = vsans.iter().any(|vsans| vsans.len() > 1);
    for (chassis, vsans) in vsans.into_iter().enumerate() {
        let has_several = vsans.len() > 1;
        let is_shared = any_shared && plan.chassis[chassis].os == Some(Os::NxOs);
        for vsan in vsans {
            plan.by_vsan.insert((chassis, vsan), plan.switches.len());
            let name = plan.chassis[chassis].name.clone();
            let virtual_fabric = is_shared.then(|| (name.clone(), vsan));
            let name = if has_several { format!("{name}-v{vsan}") } else { name };
            plan.switches.push(Switch { name, chassis, vsan, virtual_fabric, fabric: 0 });
        }
    }
}

/// Finds the speeds of ports, and those at which a loop is. The speed of a port without light is
/// that of its optics, or any, so one with light replaces it.
fn ports(facts: &Facts, plan: &mut Plan, notes: &mut Vec<Note>) {
    let mut lit: BTreeMap<(usize, u16), (u32, At)> = BTreeMap::new();
    let mut reported = BTreeSet::new();
    for port in &facts.ports {
        let Some(switch) = plan.switch(port.seen, None) else { continue };
        let end = (switch, port.number);
        if port.is_loop {
            plan.loops.entry(end).or_insert(port.at);
        }
        let Some(gfc) = port.gfc else { continue };
        match lit.get(&end) {
            Some((first, at)) if port.is_online && *first != gfc && reported.insert((end, gfc)) => {
                let text = format!("{}:{}", plan.switches[switch].name, port.number);
                two_speeds(facts, notes, text, [(*first, *at), (gfc, port.at)]);
            }
            Some(_) => {}
            None => {
                plan.speeds.insert(end, gfc);
                if port.is_online {
                    lit.insert(end, (gfc, port.at));
                }
            }
        }
    }
    let mut stated: BTreeMap<(usize, &str), Vec<(u32, At)>> = BTreeMap::new();
    for (seen, sighting) in facts.sightings.iter().enumerate() {
        let Some(chassis) = plan.chassis_of[seen] else { continue };
        for (name, interface) in &sighting.interfaces {
            let Some(&number) = plan.chassis[chassis].numbers.get(name) else { continue };
            let all = stated.entry((chassis, name.as_str())).or_default();
            for &(gfc, at) in &interface.stated {
                if all.iter().all(|(other, _)| *other != gfc) {
                    all.push((gfc, at));
                    if let [first, _, ..] = all[..] {
                        let text = format!("{}:{name}", plan.chassis[chassis].name);
                        two_speeds(facts, notes, text, [first, (gfc, at)]);
                    }
                }
            }
            let Some(gfc) = all.first().map(|(gfc, _)| *gfc).or(interface.gfc) else { continue };
            for (switch, _) in plan.switches.iter().enumerate().filter(|(_, switch)| switch.chassis == chassis) {
                plan.speeds.insert((switch, number), gfc);
            }
        }
    }
}

/// Reports a port with two speeds.
fn two_speeds(facts: &Facts, notes: &mut Vec<Note>, text: String, [(first, at), (other, again)]: [(u32, At); 2]) {
    let reason = format!("has {first} Gbit/s in one input and {other} Gbit/s in another; the first is kept");
    let remedy = "import outputs of one point in time";
    note(facts, notes, NoteKind::Conflict, &[at, again], text, reason, remedy);
}

/// Reports ports at which a device is logged in whose name no input tells.
fn occupied(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) {
    let known: BTreeSet<(usize, u16)> = plan.devices.iter().filter_map(|d| Some((d.switch, d.port?))).collect();
    let mut reported = BTreeSet::new();
    for port in facts.ports.iter().filter(|port| port.is_occupied) {
        let Some(switch) = plan.switch(port.seen, None) else { continue };
        if !known.contains(&(switch, port.number)) && reported.insert((switch, port.number)) {
            let text = format!("{}:{}", plan.switches[switch].name, port.number);
            let reason = "has devices whose port names no input tells";
            note(facts, notes, NoteKind::Unplaced, &[port.at], text, reason, "add the output of nsshow or portshow");
        }
    }
}
