//! The text of the lab.

use super::facts::Os;
use super::plan::Plan;
use super::report::{Note, NoteKind};
use super::roles::Role;
use super::zones::{Output, Zones};
use crate::diagnostic::Severity;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::san::Lab;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Returns the text of the lab file, and the switches of the plan that it has.
pub(super) fn lab(sources: &[&str], plan: &Plan, zones: &Zones, notes: &mut Vec<Note>) -> (String, BTreeSet<usize>) {
    let mut writer = Writer { plan, text: String::new(), taken: BTreeMap::new(), open: BTreeMap::new() };
    writer.reserve();
    writer.head(sources);
    let links = writer.links();
    let isls = writer.isls(notes);
    let shared = same_ethernet(plan, notes);
    let written = writer.switches(&shared);
    writer.nodes();
    writer.text.push_str(&links);
    writer.text.push_str(&isls);
    writer.zones(zones);
    (writer.text, written)
}

/// Adds workloads, if the lab is valid, and reports what is wrong with it otherwise. Returns the
/// lab, and true if it is valid.
pub(super) fn finish(text: &str, notes: &mut Vec<Note>) -> (String, bool) {
    // Only the whole lab is checked, because a check of a large lab takes seconds.
    if let Some(full) = crate::extended(text, workloads) {
        return (formatted(full), true);
    }
    let mut is_valid = true;
    // The workloads, or the lab without them, are not valid.
    if let Err(diagnostics) = crate::load("lab.toml", text, &[]) {
        is_valid = false;
        for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error) {
            notes.push(Note {
                kind: NoteKind::Conflict,
                places: Vec::new(),
                text: format!("the lab, line {}", diagnostic.line),
                reason: format!("is not valid: {}", diagnostic.reason),
                remedy: diagnostic.remedy.clone(),
            });
        }
    }
    (formatted(text.to_owned()), is_valid)
}

/// Most workloads that an imported lab gets.
const MAX_WORKLOADS: usize = 256;

/// A workload for each group of hosts with access to the same storage.
fn workloads(lab: &Lab) -> String {
    let pairs = lab.pairs_permitted_at_some_time();
    // Most hosts have the sets of partners of another one, so the storage is found once for each.
    let mut by_sets: BTreeMap<BTreeSet<u32>, Vec<u16>> = BTreeMap::new();
    for host in 0..lab.hosts.len() as u16 {
        let sets = pairs.ports_of_host(host).map(|port| pairs.set_of(port)).collect();
        by_sets.entry(sets).or_default().push(host);
    }
    let mut groups: BTreeMap<Vec<u16>, BTreeSet<u16>> = BTreeMap::new();
    for hosts in by_sets.into_values() {
        let storage: Vec<u16> = pairs.storage_of_host(hosts[0]).into_iter().collect();
        if !storage.is_empty() {
            groups.entry(storage).or_default().extend(hosts);
        }
    }
    if groups.len() > MAX_WORKLOADS {
        return "\n# No workload: too many groups of hosts have access to different storage.\n".to_owned();
    }
    let mut text = String::new();
    for (index, (storage, hosts)) in groups.into_iter().enumerate() {
        if index == 0 {
            text.push_str("\n# A light load, so that failures have an effect. Replace it with yours.\n");
        }
        let targets: Vec<String> = storage.iter().map(|index| lab.storage[usize::from(*index)].name.clone()).collect();
        let hosts: Vec<String> = hosts.iter().map(|index| lab.hosts[usize::from(*index)].name.clone()).collect();
        let (hosts, targets, number) = (list(&hosts), list(&targets), index + 1);
        let load = "arrivals = \"poisson 100/s\"\nsize = \"8KiB\"\nread_share = 0.7";
        text.push_str(&format!("[workload.imported{number}]\nhosts = {hosts}\ntargets = {targets}\n{load}\n\n"));
    }
    text
}

fn formatted(text: String) -> String {
    crate::format("lab.toml", &text).unwrap_or(text)
}

fn quote(text: &str) -> String {
    toml::Value::String(text.replace(char::is_control, " ")).to_string()
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
    format!("[{}]", quoted.join(", "))
}

struct Writer<'w> {
    plan: &'w Plan,
    text: String,
    /// Ports of chassis in use, with the switch of the lab.
    taken: BTreeMap<(usize, u16), usize>,
    /// Links at each switch that take the next free port.
    open: BTreeMap<usize, u16>,
}

impl Writer<'_> {
    fn line(&mut self, line: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn head(&mut self, sources: &[&str]) {
        self.line(crate::SCHEMA_LINE);
        self.line("# Imported from the configuration of switches:");
        for source in sources {
            self.line(format!("# - {}", source.replace(char::is_control, " ")));
        }
        self.line("\n[lab]\nname = \"imported\"\ndescription = \"Imported from the configuration of switches\"\n");
        self.line("[run]\nduration = \"1s\"\n");
    }

    /// Reserves the ports that devices use, so that links between switches evade them.
    fn reserve(&mut self) {
        for device in &self.plan.devices {
            if let Some(port) = device.port {
                let chassis = self.plan.switches[device.switch].chassis;
                self.taken.entry((chassis, port)).or_insert(device.switch);
            }
        }
    }

    /// Writes the switches that have ports or an output of their own, and returns them.
    fn switches(&mut self, nameless: &BTreeSet<usize>) -> BTreeSet<usize> {
        let plan = self.plan;
        let mut written = BTreeSet::new();
        let linked: BTreeSet<usize> = self.taken.values().chain(self.open.keys()).copied().collect();
        for (index, switch) in plan.switches.iter().enumerate() {
            let chassis = &plan.chassis[switch.chassis];
            // A switch that others only list has no place in the lab; `listed` reports it.
            if !linked.contains(&index) && !chassis.is_seen {
                continue;
            }
            written.insert(index);
            self.line(format!("[switch.{}]", switch.name));
            if let Some(domain) = plan.domain(index) {
                self.line(format!("domain = {domain}"));
            }
            if let Some(wwn) =
                chassis.wwn.filter(|_| switch.virtual_fabric.is_none() && !nameless.contains(&switch.chassis))
            {
                self.line(format!("wwn = \"{}\"", Wwnn(wwn)));
            }
            let of_chassis = || self.taken.range((switch.chassis, 0)..=(switch.chassis, u16::MAX));
            let own: BTreeSet<u16> = of_chassis().filter(|(_, by)| **by == index).map(|((_, port), _)| *port).collect();
            let open = self.open.get(&index).copied().unwrap_or(0);
            if let Some((name, id)) = &switch.virtual_fabric {
                let mut ports = own;
                ports.extend(&chassis.listed);
                let next = of_chassis().next_back().map(|((_, port), _)| port + 1);
                let next = next.max(ports.last().map(|port| port + 1));
                // Ports without a number follow all others; each VSAN has its own.
                let base = next.unwrap_or(0).saturating_add(1024 * (1 + index as u16 % 32));
                ports.extend((0..open).map(|i| base.saturating_add(i)));
                if ports.is_empty() {
                    ports.insert(base);
                }
                let ports: Vec<String> = ports.into_iter().map(|port| port.to_string()).collect();
                let ports = list(&ports);
                self.line(format!("virtual_fabric = {{ chassis = \"{name}\", id = {id}, ports = {ports} }}"));
            } else if let Some(ports) = chassis.ports {
                let needed = own.last().map_or(0, |last| last.saturating_add(1));
                self.line(format!("ports = {}", ports.max(needed).saturating_add(open).max(1)));
            }
            let cost = chassis.os.map(|os| if os == Os::NxOs { "cost = \"cisco\"" } else { "cost = \"brocade\"" });
            let priority = chassis.priorities.get(&switch.vsan).map(|priority| format!("priority = {priority}"));
            let fabric: Vec<String> = cost.map(str::to_owned).into_iter().chain(priority).collect();
            if !fabric.is_empty() {
                self.line(format!("fabric = {{ {} }}", fabric.join(", ")));
            }
            self.line("");
        }
        written
    }

    fn nodes(&mut self) {
        let plan = self.plan;
        let mut used: BTreeSet<u64> = plan.devices.iter().map(|device| device.wwpn).collect();
        for node in &plan.nodes {
            let devices: Vec<_> = node.ports.iter().map(|port| &plan.devices[*port]).collect();
            let (section, count) = match node.role {
                Role::Host => ("host", "hbas"),
                Role::Storage => ("storage", "ports"),
            };
            let evidence: BTreeSet<&str> = devices.iter().map(|device| device.how).collect();
            let evidence: Vec<&str> = evidence.into_iter().collect();
            self.line(format!("[{section}.{}] # {}", node.name, evidence.join("; ")));
            if devices.len() > 1 {
                self.line(format!("{count} = {}", devices.len()));
            }
            let node_name = devices.iter().find_map(|device| device.wwnn).filter(|name| *name != 0);
            if let Some(name) = node_name.filter(|name| used.insert(*name)) {
                self.line(format!("wwnn = \"{}\"", Wwnn(name)));
            }
            let names: Vec<String> = devices.iter().map(|device| Wwpn(device.wwpn).to_string()).collect();
            self.line(format!("wwpns = {}", list(&names)));
            if let Some(on) = node.on {
                self.line(format!("on = \"{}\"", plan.nodes[on].name));
            }
            self.line("");
        }
    }

    fn links(&mut self) -> String {
        let plan = self.plan;
        let mut text = String::new();
        for node in plan.nodes.iter().filter(|node| node.on.is_none()) {
            for (index, port) in node.ports.iter().enumerate() {
                let device = &plan.devices[*port];
                let switch = &plan.switches[device.switch];
                let to = match device.port {
                    Some(number) => format!("{}:{number}", switch.name),
                    None => {
                        *self.open.entry(device.switch).or_default() += 1;
                        switch.name.clone()
                    }
                };
                let comment = self.interface(device.switch, device.port);
                text.push_str(&format!("[[link]]{comment}\nfrom = \"{}:{index}\"\nto = \"{to}\"\n", node.name));
                rate(&mut text, device.gfc);
                text.push('\n');
            }
        }
        text
    }

    /// The name of an interface as a comment, if it has one.
    fn interface(&self, switch: usize, port: Option<u16>) -> String {
        let numbers = &self.plan.chassis[self.plan.switches[switch].chassis].numbers;
        let name = port.and_then(|port| numbers.iter().find(|(_, number)| **number == port));
        name.map(|(name, _)| format!(" # {name}")).unwrap_or_default()
    }

    fn isls(&mut self, notes: &mut Vec<Note>) -> String {
        let plan = self.plan;
        let mut text = String::new();
        for isl in &plan.isls {
            let comment = self.interface(isl.switches[0], isl.lines[0][0]);
            let ends = [0, 1].map(|side| {
                let ports: Vec<Option<u16>> = isl.lines.iter().map(|line| line[side]).collect();
                self.ends(isl.switches[side], ports, notes)
            });
            let texts = ends.clone().map(|(text, _)| text);
            text.push_str(&format!("[[isl]]{comment}\nfrom = \"{}\"\nto = \"{}\"\n", texts[0], texts[1]));
            rate(&mut text, isl.gfc);
            if isl.lines.len() > 1 {
                if ends.iter().all(|(_, has_ports)| !has_ports) {
                    text.push_str(&format!("count = {}\n", isl.lines.len()));
                }
                text.push_str("bundle = true\n");
            }
            text.push('\n');
        }
        text
    }

    /// One end of all lines of a link, and whether it names ports. A port that is in use leads to
    /// the next free ones.
    fn ends(&mut self, switch: usize, ports: Vec<Option<u16>>, notes: &mut Vec<Note>) -> (String, bool) {
        let own = &self.plan.switches[switch];
        let name = &own.name;
        let used = ports.iter().flatten().find_map(|port| Some((*port, *self.taken.get(&(own.chassis, *port))?)));
        let free = if used.is_some() { ports.len() } else { ports.iter().filter(|port| port.is_none()).count() };
        if free > 0 {
            *self.open.entry(switch).or_default() += free as u16;
        }
        if let Some((port, other)) = used {
            let reason = match other == switch {
                true => "has a device and a link to another switch; the link takes another port",
                false => "is in several VSANs; each has a link of its own in the lab, at the full rate",
            };
            notes.push(Note {
                kind: if other == switch { NoteKind::Conflict } else { NoteKind::Decision },
                places: Vec::new(),
                text: format!("{name}:{port}"),
                reason: reason.to_owned(),
                remedy: "correct the [[isl]] by hand if that matters".to_owned(),
            });
            return (name.clone(), false);
        }
        let known: Vec<u16> = ports.iter().copied().flatten().collect();
        known.iter().for_each(|port| _ = self.taken.insert((own.chassis, *port), switch));
        let list = |ports: &[String]| ports.join(",");
        match known[..] {
            [] => (name.clone(), false),
            [port] if ports.len() == 1 => (format!("{name}:{port}"), true),
            [first, .., last] if free == 0 && known.windows(2).all(|pair| pair[1] == pair[0].saturating_add(1)) => {
                (format!("{name}:{{{first}..{last}}}"), true)
            }
            _ if free == 0 => {
                (format!("{name}:{{{}}}", list(&known.iter().map(u16::to_string).collect::<Vec<_>>())), true)
            }
            _ => {
                let end = |port: &Option<u16>| port.map_or_else(|| name.clone(), |port| format!("{name}:{port}"));
                (format!("{{{}}}", list(&ports.iter().map(end).collect::<Vec<_>>())), true)
            }
        }
    }

    fn zones(&mut self, zones: &Zones) {
        let mut zoning = String::new();
        if let Some(default) = zones.default {
            let word = match default {
                ZoneDefault::OpenWithoutZones => "auto",
                ZoneDefault::Open => "open",
                ZoneDefault::Closed => "closed",
            };
            zoning.push_str(&format!("default = \"{word}\"\n"));
        }
        if let Some(name) = &zones.effective {
            zoning.push_str(&format!("effective = {}\n", quote(name)));
        }
        if zones.is_enhanced {
            zoning.push_str("merge = \"enhanced\"\n");
        }
        if !zoning.is_empty() {
            self.line(format!("[zoning]\n{zoning}"));
        }
        let object = |section: &str, key: &str, name: &str, output: &Output| {
            let mut text = format!("[[{section}]]\nname = {}\n{key} = {}\n", quote(name), list(&output.members));
            if !output.principals.is_empty() {
                text.push_str(&format!("principals = {}\n", list(&output.principals)));
            }
            if let Some(vsan) = output.vsan {
                text.push_str(&format!("virtual_fabric = {vsan}\n"));
            }
            if let Some(name) = &output.export_name {
                text.push_str(&format!("export_name = {}\n", quote(name)));
            }
            if output.only_in_force {
                text.push_str("only_in_force = true\n");
            }
            if section == "zone" && name.starts_with("QOSH") {
                text.push_str("priority = \"high\"\n");
            }
            if section == "zone" && name.starts_with("QOSL") {
                text.push_str("priority = \"low\"\n");
            }
            text
        };
        zones.aliases.iter().for_each(|(name, output)| self.line(object("alias", "members", name, output)));
        zones.zones.iter().for_each(|(name, output)| self.line(object("zone", "members", name, output)));
        zones.configs.iter().for_each(|(name, output)| self.line(object("zone_config", "zones", name, output)));
    }
}

/// Chassis whose world-wide names a lab cannot have together: it derives Ethernet addresses from
/// the vendor part and the last byte, and real names often end in 00.
fn same_ethernet(plan: &Plan, notes: &mut Vec<Note>) -> BTreeSet<usize> {
    let mut by_address: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
    for (index, chassis) in plan.chassis.iter().enumerate() {
        if let Some(wwn) = chassis.wwn {
            by_address.entry((wwn >> 24 & 0xff_ffff, wwn & 0xff)).or_default().push(index);
        }
    }
    let shared: BTreeSet<usize> = by_address.into_values().filter(|same| same.len() > 1).flatten().collect();
    if !shared.is_empty() {
        let names: Vec<&str> = shared.iter().map(|index| plan.chassis[*index].name.as_str()).collect();
        notes.push(Note {
            kind: NoteKind::Decision,
            places: Vec::new(),
            text: names.join(", "),
            reason: "have world-wide names with the same vendor and last byte, so the lab leaves them out".to_owned(),
            remedy: "give `fabric.priority` to the switch that is to be principal".to_owned(),
        });
    }
    shared
}

fn rate(text: &mut String, gfc: Option<u32>) {
    if let Some(gfc) = gfc {
        text.push_str(&format!("rate = \"{gfc}GFC\"\n"));
    }
}
