//! Zones: the databases of all fabrics as one, because a lab has one.

use super::facts::{At, Facts, Kind, Object, Objects, Os, wwn};
use super::nodes::Names;
use super::note;
use super::nxos_config::wwn_text;
use super::plan::{Plan, Switch};
use super::report::{Note, NoteKind};
use crate::export::is_name_on_switches;
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{ObjectKind, ZoneLimits};
use std::collections::{BTreeMap, BTreeSet};

mod collect;

use collect::Fabric;

/// A zone object of the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Output {
    pub members: Vec<String>,
    pub principals: Vec<String>,
    /// VSAN of a zone, if the lab has virtual fabrics.
    pub vsan: Option<u16>,
    /// Name on the switches, if the lab has another one.
    pub export_name: Option<String>,
    /// The switches have the object in force, and not in their definitions.
    pub only_in_force: bool,
}

/// The zones of the lab.
#[derive(Clone, Debug, Default)]
pub(super) struct Zones {
    pub aliases: BTreeMap<String, Output>,
    pub zones: BTreeMap<String, Output>,
    pub configs: BTreeMap<String, Output>,
    pub effective: Option<String>,
    pub default: Option<ZoneDefault>,
    pub is_enhanced: bool,
}

/// Name of the configuration that joins those of several fabrics.
pub const ALL_FABRICS: &str = "all-fabrics";

impl Zones {
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.aliases.keys().chain(self.zones.keys()).chain(self.configs.keys()).cloned()
    }

    /// Aliases of each port that has aliases of its own, the best name first: the one with most
    /// zones in force, then with most zones, then the shortest.
    pub fn aliases_of_ports(&self) -> BTreeMap<u64, Vec<String>> {
        let in_force = self.effective.as_ref().and_then(|name| self.configs.get(name));
        let in_force: BTreeSet<&String> = in_force.into_iter().flat_map(|config| &config.members).collect();
        let mut uses: BTreeMap<&String, [u32; 2]> = BTreeMap::new();
        for (name, zone) in &self.zones {
            for member in zone.members.iter().chain(&zone.principals) {
                let uses = uses.entry(member).or_default();
                uses[0] += u32::from(in_force.contains(name));
                uses[1] += 1;
            }
        }
        let mut found: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (alias, output) in &self.aliases {
            if let [member] = &output.members[..]
                && let Some(name) = wwn(member)
            {
                found.entry(name).or_default().push(alias.clone());
            }
        }
        for aliases in found.values_mut() {
            let uses = |alias: &String| uses.get(alias).copied().unwrap_or_default();
            aliases.sort_by_key(|alias| (std::cmp::Reverse(uses(alias)), alias.len()));
        }
        found
    }

    fn of_mut(&mut self, kind: Kind) -> &mut BTreeMap<String, Output> {
        match kind {
            Kind::Alias => &mut self.aliases,
            Kind::Zone => &mut self.zones,
            Kind::Config => &mut self.configs,
        }
    }
}

/// Merges all zone databases.
pub(super) fn merge(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) -> Zones {
    let fabrics = collect::collect(facts, plan, notes);
    let (zones, taken, names, used) = (Zones::default(), BTreeMap::new(), Names::default(), BTreeSet::new());
    let mut merger = Merger { facts, plan, notes, zones, taken, names, used, made: BTreeMap::new() };
    let nodes = plan.devices.iter().filter_map(|device| device.wwnn);
    let ports: BTreeSet<u64> = plan.devices.iter().map(|device| device.wwpn).collect();
    let node_names: BTreeSet<u64> = nodes.filter(|name| !ports.contains(name)).collect();
    merger.used = plan.switches.iter().map(|switch| switch.name.clone()).collect();
    let mut enabled: Vec<(String, At)> = Vec::new();
    for fabric in &fabrics {
        enabled.extend(merger.add(fabric, &node_names));
    }
    merger.enable(enabled);
    merger.defaults(&fabrics);
    let mut zones = merger.zones;
    zones.is_enhanced = fabrics.iter().any(|fabric| fabric.is_enhanced);
    zones
}

/// A zone with its aliases replaced by their members.
fn expanded(zone: &Object, aliases: &BTreeMap<String, Object>) -> [BTreeSet<String>; 2] {
    [&zone.members, &zone.principals].map(|list| {
        let expand = |member: &String| match aliases.get(member) {
            Some(alias) => alias.members.clone(),
            None => vec![member.clone()],
        };
        list.iter().flat_map(expand).collect()
    })
}

/// Objects that are only in force, with their names on the switches.
type Active = BTreeMap<(Kind, String), String>;

struct Merger<'m> {
    facts: &'m Facts,
    plan: &'m Plan,
    notes: &'m mut Vec<Note>,
    zones: Zones,
    /// Names in use, with the place and kind of their definition.
    taken: BTreeMap<String, (Kind, At)>,
    /// The same names, to find free ones.
    names: Names,
    /// Names of other things that an alias cannot have.
    used: BTreeSet<String>,
    /// Names in the lab of the objects with a name in the inputs and a name on the switches.
    made: BTreeMap<(Kind, String, String), Vec<String>>,
}

impl Merger<'_> {
    /// Adds the database of a fabric. Returns its configuration in force.
    fn add(&mut self, fabric: &Fabric, node_names: &BTreeSet<u64>) -> Option<(String, At)> {
        let mut defined = fabric.defined.clone();
        if fabric.os == Some(Os::NxOs) {
            self.device_aliases_of_aliases(&mut defined);
        }
        let mut active = Active::new();
        let enabled = self.in_force(fabric, &mut defined, &mut active);
        let ids = || self.plan.switches.iter().filter_map(|switch| Some((switch, switch.virtual_fabric.as_ref()?.1)));
        let shared = |vsan: u16| ids().any(|(_, id)| id == vsan);
        // The zones of a logical switch of Fabric OS have the fabric ID of its fabric.
        let logical = || ids().find(|(switch, _)| Some(switch.fabric) == fabric.number).map(|(_, id)| id);
        let vsan = match fabric.os {
            Some(Os::NxOs) => fabric.vsan.filter(|vsan| shared(*vsan)),
            _ => logical().or_else(|| fabric.fid.map(|(fid, _)| fid).filter(|fid| shared(*fid))),
        };
        self.unknown_fabric(fabric);
        let mut names: BTreeMap<(Kind, String), String> = BTreeMap::new();
        for kind in [Kind::Alias, Kind::Zone, Kind::Config] {
            for (name, object) in defined.of(kind) {
                let output = self.resolve(kind, name, object, &names, node_names, vsan);
                let Some(mut output) = output else { continue };
                let on_switches = active.get(&(kind, name.clone()));
                output.only_in_force = on_switches.is_some();
                let new = self.insert(kind, name, on_switches.unwrap_or(name), object.at, output);
                names.insert((kind, name.clone()), new);
            }
        }
        let (name, at) = enabled?;
        let new = names.get(&(Kind::Config, name.clone())).cloned();
        if new.is_none() {
            let reason = "is in force, but no input defines its zones";
            let remedy = match fabric.os {
                Some(Os::NxOs) => "add the output of show running-config or show zoneset",
                _ => "add the output of cfgshow",
            };
            note(self.facts, self.notes, NoteKind::Unplaced, &[at], name, reason, remedy);
        }
        Some((new?, at))
    }

    /// Reports zones of a fabric ID that no switch of the lab has.
    fn unknown_fabric(&mut self, fabric: &Fabric) {
        let (None, Some((fid, at))) = (fabric.number, fabric.fid) else { return };
        let has_zones = !fabric.defined.zones.is_empty() || !fabric.active.zones.is_empty();
        let logical = |switch: &Switch| self.plan.chassis[switch.chassis].logical.map(|logical| logical.fid);
        let id = |switch: &Switch| logical(switch).or(switch.virtual_fabric.as_ref().map(|(_, id)| *id));
        let known: BTreeSet<u16> = self.plan.switches.iter().filter_map(id).collect();
        if !has_zones || known.is_empty() || known.contains(&fid) {
            return;
        }
        let text = format!("zones of FID {fid}");
        let reason = "have the fabric ID of no switch of the lab, so they are in it without `virtual_fabric`";
        let remedy = "add the switchshow of that logical switch, or set `virtual_fabric` of the zones by hand";
        note(self.facts, self.notes, NoteKind::Unplaced, &[at], text, reason, remedy);
    }

    /// Replaces device aliases among the members of aliases, because those of a lab have none.
    fn device_aliases_of_aliases(&mut self, defined: &mut Objects) {
        let known = defined.aliases.clone();
        for (name, alias) in &mut defined.aliases {
            let is_name = |member: &String| member != name && known.contains_key(member);
            if !alias.members.iter().any(is_name) {
                continue;
            }
            let names: Vec<String> = alias.members.iter().filter(|member| is_name(member)).cloned().collect();
            let ports = |member: &String| match known.get(member).filter(|_| is_name(member)) {
                Some(device) => device.members.clone(),
                None => vec![member.clone()],
            };
            alias.members = alias.members.iter().flat_map(ports).collect();
            let mut seen = BTreeSet::new();
            alias.members.retain(|member| seen.insert(member.clone()));
            let reason = format!("has the device alias {}; the lab has its port name instead", names.join(", "));
            let (text, remedy) = (format!("alias {name}"), "an alias of a lab contains no other one");
            note(self.facts, self.notes, NoteKind::Decision, &[alias.at], text, reason, remedy);
        }
    }

    /// Compares the zones in force with their definitions. Where they differ, adds those in force
    /// under names of their own, which `own` lists. Returns the configuration in force.
    fn in_force(&mut self, fabric: &Fabric, defined: &mut Objects, own: &mut Active) -> Option<(String, At)> {
        let (name, at) = fabric.enabled.clone()?;
        if fabric.active.zones.is_empty() {
            return Some((name, at));
        }
        let members = defined.configs.get(&name).map(|config| config.members.clone());
        let mut list = Vec::new();
        let mut differs = members.is_none();
        // Without any configuration among the definitions, no input shows them.
        let is_shown = !defined.configs.is_empty();
        for (zone, active) in &fabric.active.zones {
            let known = defined.zones.get(zone).cloned();
            let is_same = known
                .as_ref()
                .is_some_and(|known| expanded(known, &defined.aliases) == expanded(active, &defined.aliases));
            match known {
                _ if is_same => list.push(zone.clone()),
                None => {
                    defined.zones.insert(zone.clone(), active.clone());
                    list.push(zone.clone());
                    if is_shown {
                        own.insert((Kind::Zone, zone.clone()), zone.clone());
                    }
                }
                Some(known) => {
                    let reason = "is in force with other members than it is defined with; both are in the lab";
                    let remedy = "enable the configuration again, or save the changes";
                    let places = [active.at, known.at];
                    note(self.facts, self.notes, NoteKind::Conflict, &places, zone.clone(), reason, remedy);
                    let new = free(&format!("{zone}_effective"), &defined.zones);
                    defined.zones.insert(new.clone(), active.clone());
                    own.insert((Kind::Zone, new.clone()), zone.clone());
                    list.push(new);
                    differs = true;
                }
            }
        }
        let set: BTreeSet<&String> = list.iter().collect();
        differs |= members.as_ref().is_some_and(|members| members.iter().collect::<BTreeSet<_>>() != set);
        if !differs {
            return Some((name, at));
        }
        let object = Object { at, members: list, ..Object::default() };
        let Some(known) = defined.configs.get(&name) else {
            defined.configs.insert(name.clone(), object);
            if is_shown {
                own.insert((Kind::Config, name.clone()), name.clone());
            }
            return Some((name, at));
        };
        let reason = "is in force with other zones than it is defined with; both are in the lab";
        let remedy = "enable the configuration again, or save the changes";
        note(self.facts, self.notes, NoteKind::Conflict, &[at, known.at], name.clone(), reason, remedy);
        let new = free(&format!("{name}_effective"), &defined.configs);
        defined.configs.insert(new.clone(), object);
        own.insert((Kind::Config, new.clone()), name);
        Some((new, at))
    }

    /// Converts the members of an object. `None` if none is left.
    fn resolve(
        &mut self,
        kind: Kind,
        name: &str,
        object: &Object,
        names: &BTreeMap<(Kind, String), String>,
        node_names: &BTreeSet<u64>,
        vsan: Option<u16>,
    ) -> Option<Output> {
        let mut output = Output { vsan: vsan.filter(|_| kind == Kind::Zone), ..Output::default() };
        for (list, into) in [(&object.members, &mut output.members), (&object.principals, &mut output.principals)] {
            for member in list {
                let refers_to = if kind == Kind::Config { Kind::Zone } else { Kind::Alias };
                let reference = names.get(&(refers_to, member.clone())).filter(|_| kind != Kind::Alias);
                let plain = || {
                    let parsed: ZoneMember = member.parse().ok()?;
                    let node = wwn(member).filter(|name| node_names.contains(name));
                    Some(node.map_or_else(|| parsed.to_string(), |name| format!("wwnn:{}", wwn_text(name))))
                };
                match reference.cloned().or_else(|| if kind == Kind::Config { None } else { plain() }) {
                    Some(text) => into.push(text),
                    None => {
                        let reason = format!("names `{member}`, which no input defines");
                        let text = format!("{} {name}", kind.noun());
                        let remedy = "add the output that defines it, or correct the name";
                        let line = self.facts.member_lines.get(&(object.at, member.clone())).copied();
                        let places: Vec<At> = [object.at].into_iter().chain(line).collect();
                        note(self.facts, self.notes, NoteKind::Unplaced, &places, text, reason, remedy);
                    }
                }
            }
        }
        if output.members.is_empty() {
            // Principals alone reach nothing, as does an object without members.
            let (text, reason) = (format!("{} {name}", kind.noun()), "has no member that the lab can express");
            let remedy = "complete it, or ignore it";
            note(self.facts, self.notes, NoteKind::Unplaced, &[object.at], text, reason, remedy);
            return None;
        }
        Some(output)
    }

    /// Adds an object under its name, or under another one if the name is taken. `real` is its name
    /// on the switches.
    fn insert(&mut self, kind: Kind, name: &str, real: &str, at: At, mut output: Output) -> String {
        let of = match kind {
            Kind::Alias => ObjectKind::Alias,
            Kind::Zone => ObjectKind::Zone,
            Kind::Config => ObjectKind::Config,
        };
        // The same object of another fabric.
        let key = (kind, name.to_owned(), real.to_owned());
        for made in self.made.get(&key).into_iter().flatten() {
            let Some(first) = self.zones.of_mut(kind).get(made) else { continue };
            if *first == (Output { export_name: first.export_name.clone(), ..output.clone() }) {
                return made.clone();
            }
        }
        let mut wanted = name.to_owned();
        if ZoneLimits::default().check_name(of, name).is_err() {
            let fit = |c: char| if c.is_ascii_alphanumeric() || "$-^_".contains(c) { c } else { '_' };
            wanted = name.chars().map(fit).take(56).collect();
            if !wanted.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                wanted.insert_str(0, "z_");
            }
        }
        if let Some((other, first)) = self.taken.get(&wanted).copied() {
            let new = self.names.unique(&wanted);
            let reason = format!("is a name that {} has already; it is `{new}` in the lab", other.with_article());
            let remedy = "a lab has one name space for all fabrics";
            note(self.facts, self.notes, NoteKind::Decision, &[at, first], name, reason, remedy);
            wanted = new;
        } else if wanted != name || kind == Kind::Alias && self.used.contains(&wanted) {
            let mut new = self.names.unique(&wanted);
            while self.used.contains(&new) {
                new = self.names.unique(&wanted);
            }
            let reason = format!("cannot be the name of {} here; it is `{new}` in the lab", kind.with_article());
            note(self.facts, self.notes, NoteKind::Decision, &[at], name, reason, "");
            wanted = new;
        }
        self.names.taken.insert(wanted.clone());
        self.taken.insert(wanted.clone(), (kind, at));
        if is_name_on_switches(real) {
            output.export_name = Some(real.to_owned()).filter(|name| *name != wanted);
        } else {
            let reason = format!("is no name that switches accept; `export zones` writes `{wanted}`");
            note(self.facts, self.notes, NoteKind::Decision, &[at], name, reason, "");
        }
        self.zones.of_mut(kind).insert(wanted.clone(), output);
        self.made.entry(key).or_default().push(wanted.clone());
        wanted
    }

    /// Sets the configuration in force: that of the only fabric, or one that joins those of all.
    fn enable(&mut self, mut enabled: Vec<(String, At)>) {
        enabled.dedup_by(|a, b| a.0 == b.0);
        match &enabled[..] {
            [] => {
                let any = !self.zones.zones.is_empty();
                self.zones.effective = any.then(|| "none".to_owned());
            }
            [(name, _)] => self.zones.effective = Some(name.clone()),
            all => {
                let zones = all.iter().filter_map(|(name, _)| self.zones.configs.get(name));
                let mut members: Vec<String> = zones.flat_map(|config| config.members.clone()).collect();
                let mut seen = BTreeSet::new();
                members.retain(|zone| seen.insert(zone.clone()));
                let name = self.names.unique(ALL_FABRICS);
                let places: Vec<At> = all.iter().map(|(_, at)| *at).collect();
                let reason = "joins the configurations in force of all fabrics, because a lab has one zone database";
                let remedy = "name one with `sanloom export zones --config` to write its commands";
                note(self.facts, self.notes, NoteKind::Decision, &places, name.clone(), reason, remedy);
                self.zones.configs.insert(name.clone(), Output { members, ..Output::default() });
                self.zones.effective = Some(name);
            }
        }
    }

    fn defaults(&mut self, fabrics: &[Fabric]) {
        // NX-OS denies unless told otherwise. Fabric OS permits all while nothing is in force.
        let of = |fabric: &Fabric| match (fabric.default, fabric.os) {
            (Some((default, _)), _) => default,
            (None, Some(Os::NxOs)) => ZoneDefault::Closed,
            (None, _) => ZoneDefault::OpenWithoutZones,
        };
        let Some(first) = fabrics.first() else { return };
        let mut chosen = of(first);
        for fabric in &fabrics[1..] {
            if of(fabric) != chosen {
                let places: Vec<At> = [first, fabric].iter().filter_map(|f| Some(f.default?.1)).collect();
                let reason = "differs between the fabrics; the lab has the closed one";
                let text = "default zone";
                note(self.facts, self.notes, NoteKind::Decision, &places, text, reason, "set `default` in [zoning]");
                chosen = ZoneDefault::Closed;
                break;
            }
        }
        self.zones.default = Some(chosen);
    }
}

/// A name that the objects do not have.
fn free(base: &str, objects: &BTreeMap<String, Object>) -> String {
    let mut name = base.to_owned();
    let mut number = 2_u32;
    while objects.contains_key(&name) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}
