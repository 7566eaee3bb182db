//! Zones: the databases of all fabrics as one, because a lab has one.

use super::facts::{At, Facts, Kind, Object, Objects, Os, ZoneBase, wwn};
use super::fos_zones::split_peers;
use super::nodes::Names;
use super::note;
use super::nxos_config::wwn_text;
use super::plan::Plan;
use super::report::{Note, NoteKind};
use crate::export::is_name_on_switches;
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{ObjectKind, ZoneLimits};
use std::collections::{BTreeMap, BTreeSet};

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

/// The database of one fabric and VSAN.
#[derive(Clone, Debug, Default)]
struct Fabric {
    /// Number of the fabric in the plan, if the database is of a switch that the plan has.
    number: Option<usize>,
    vsan: Option<u16>,
    os: Option<Os>,
    defined: Objects,
    active: Objects,
    enabled: Option<(String, At)>,
    /// An output that shows no configuration in force.
    disabled: Option<At>,
    default: Option<(ZoneDefault, At)>,
    is_enhanced: bool,
}

/// Merges all zone databases.
pub(super) fn merge(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) -> Zones {
    let fabrics = collect(facts, plan, notes);
    let (zones, taken, names, used) = (Zones::default(), BTreeMap::new(), Names::default(), BTreeSet::new());
    let mut merger = Merger { facts, plan, notes, zones, taken, names, used };
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

/// Joins the databases of each fabric.
fn collect(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) -> Vec<Fabric> {
    let all: BTreeSet<usize> = plan.switches.iter().map(|switch| switch.fabric).collect();
    let only = if all.len() == 1 { all.first().copied() } else { None };
    let key = |base: &ZoneBase| {
        let fabric = plan.switch(base.seen, base.vsan).map(|switch| plan.switches[switch].fabric).or(only);
        (fabric.unwrap_or(usize::MAX), base.vsan.unwrap_or(0))
    };
    let mut fabrics: BTreeMap<(usize, u16), Fabric> = BTreeMap::new();
    for base in &facts.zones {
        let fabric = fabrics.entry(key(base)).or_default();
        fabric.vsan = base.vsan;
        fabric.number = Some(key(base).0).filter(|number| *number < plan.switches.len());
        fabric.os = fabric.os.or(facts.sightings[base.seen].os);
        fabric.is_enhanced |= base.is_enhanced;
        if base.is_disabled {
            fabric.disabled = fabric.disabled.or(Some(base.at));
        }
        let smart = base.is_smart;
        for kind in [Kind::Alias, Kind::Zone, Kind::Config] {
            let names_of = |name: &str| {
                let own = base.defined.aliases.get(name).or_else(|| fabric.defined.aliases.get(name));
                own.map_or(1, |alias| alias.members.len())
            };
            let split = |objects: &Objects| {
                let mut all = objects.of(kind).clone();
                if kind == Kind::Zone {
                    all.values_mut().for_each(|zone| split_peers(zone, names_of));
                }
                all
            };
            let defined = split(&base.defined);
            let mut active = split(&base.active);
            if kind == Kind::Zone {
                active.values_mut().for_each(|zone| expand(zone, &base.active.aliases));
            }
            join(facts, fabric.defined.of_mut(kind), &defined, kind, smart, notes);
            join(facts, fabric.active.of_mut(kind), &active, kind, smart, notes);
        }
        match (&fabric.enabled, &base.enabled) {
            (Some((first, at)), Some((second, other))) if first != second => {
                let reason = format!("and `{second}` are both in force in one fabric; the first is kept");
                let remedy = "import outputs of one point in time";
                note(facts, notes, NoteKind::Conflict, &[*at, *other], first.clone(), reason, remedy);
            }
            (None, Some(enabled)) => fabric.enabled = Some(enabled.clone()),
            _ => {}
        }
        fabric.default = fabric.default.or(base.default);
    }
    for fabric in fabrics.values() {
        if let (Some((name, at)), Some(other)) = (&fabric.enabled, fabric.disabled) {
            let reason = "is in force in one output, and no configuration in another one; it is kept";
            let remedy = "import outputs of one point in time";
            note(facts, notes, NoteKind::Conflict, &[*at, other], name.clone(), reason, remedy);
        }
    }
    device_aliases(facts, plan, &mut fabrics, key, notes);
    fabrics.into_values().collect()
}

/// Adds the device aliases of each switch to the databases of its fabrics.
fn device_aliases(
    facts: &Facts,
    plan: &Plan,
    fabrics: &mut BTreeMap<(usize, u16), Fabric>,
    key: impl Fn(&ZoneBase) -> (usize, u16),
    notes: &mut Vec<Note>,
) {
    // A device alias holds in every VSAN of its chassis, also in one that only has zones.
    let mut of_bases: BTreeMap<usize, BTreeSet<(usize, u16)>> = BTreeMap::new();
    for base in &facts.zones {
        if let Some(chassis) = plan.chassis_of[base.seen] {
            of_bases.entry(chassis).or_default().insert(key(base));
        }
    }
    let mut own: BTreeMap<(usize, u16), BTreeMap<String, Object>> = BTreeMap::new();
    for (seen, name, object) in &facts.device_aliases {
        let chassis = plan.chassis_of[*seen];
        let switches = plan.switches.iter().filter(|switch| Some(switch.chassis) == chassis);
        let mut keys: BTreeSet<(usize, u16)> = switches.map(|switch| (switch.fabric, switch.vsan)).collect();
        keys.extend(chassis.and_then(|chassis| of_bases.get(&chassis)).into_iter().flatten());
        if keys.is_empty() {
            keys.extend(fabrics.keys().copied().filter(|(_, vsan)| *vsan > 0));
        }
        if keys.is_empty() {
            keys.insert((usize::MAX, 1));
        }
        for key in keys {
            let map = own.entry(key).or_default();
            let single = BTreeMap::from([(name.clone(), object.clone())]);
            join(facts, map, &single, Kind::Alias, None, notes);
        }
    }
    for (key, aliases) in own {
        let fabric = fabrics.entry(key).or_insert_with(|| Fabric { vsan: Some(key.1), ..Fabric::default() });
        fabric.os = Some(Os::NxOs);
        join(facts, &mut fabric.defined.aliases, &aliases, Kind::Alias, None, notes);
    }
}

/// Adds objects of another output, and reports those that differ.
fn join(
    facts: &Facts,
    into: &mut BTreeMap<String, Object>,
    from: &BTreeMap<String, Object>,
    kind: Kind,
    smart: Option<bool>,
    notes: &mut Vec<Note>,
) {
    for (name, object) in from {
        let object = normal(object.clone(), kind, smart);
        match into.get(name) {
            None => _ = into.insert(name.clone(), object),
            Some(first) if same(first, &object) => {}
            Some(first) => {
                let reason =
                    format!("is {} with other members in another output; the first is kept", kind.with_article());
                let remedy = "import outputs of one point in time";
                note(facts, notes, NoteKind::Conflict, &[first.at, object.at], name.clone(), reason, remedy);
            }
        }
    }
}

/// Resolves the notations of peer zones and smart zones, and writes names in lower case.
fn normal(mut object: Object, kind: Kind, smart: Option<bool>) -> Object {
    let both = std::mem::take(&mut object.both);
    if kind != Kind::Zone || object.principals.is_empty() || smart == Some(false) {
        let principals = std::mem::take(&mut object.principals);
        object.members.extend(principals.into_iter().chain(both));
    } else {
        object.members.extend(both.iter().cloned());
        object.principals.extend(both);
    }
    for list in [&mut object.members, &mut object.principals] {
        for member in list.iter_mut() {
            *member = wwn(member).map_or_else(|| member.trim().to_owned(), wwn_text);
        }
        let mut seen = BTreeSet::new();
        list.retain(|member| seen.insert(member.clone()));
    }
    object
}

fn same(a: &Object, b: &Object) -> bool {
    let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    set(&a.members) == set(&b.members) && set(&a.principals) == set(&b.principals)
}

/// Replaces members of a zone in force that name aliases of the same output.
fn expand(zone: &mut Object, aliases: &BTreeMap<String, Object>) {
    for list in [&mut zone.members, &mut zone.principals, &mut zone.both] {
        let ports = |member: String| match aliases.get(&member) {
            Some(alias) => alias.both.iter().chain(&alias.members).cloned().collect(),
            None => vec![member],
        };
        *list = std::mem::take(list).into_iter().flat_map(ports).collect();
    }
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
            _ => logical(),
        };
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
        let mut wanted = name.to_owned();
        if ZoneLimits::default().check_name(of, name).is_err() {
            let fit = |c: char| if c.is_ascii_alphanumeric() || "$-^_".contains(c) { c } else { '_' };
            wanted = name.chars().map(fit).take(56).collect();
            if !wanted.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                wanted.insert_str(0, "z_");
            }
        }
        if let Some((other, first)) = self.taken.get(&wanted).copied() {
            if wanted == name && other == kind && self.zones.of_mut(kind).get(&wanted) == Some(&output) {
                return wanted;
            }
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
