//! The zone database of each fabric, from the outputs of all its switches.

use super::{expanded, note};
use crate::import::facts::{At, Facts, Kind, Object, Objects, Os, ZoneBase, wwn};
use crate::import::fos_zones::split_peers;
use crate::import::nxos_config::wwn_text;
use crate::import::plan::Plan;
use crate::import::report::{Note, NoteKind};
use sanloom_fc::config::ZoneDefault;
use std::collections::{BTreeMap, BTreeSet};

/// The database of one fabric and VSAN.
#[derive(Clone, Debug, Default)]
pub(super) struct Fabric {
    /// Number of the fabric in the plan, if the database is of a switch that the plan has.
    pub number: Option<usize>,
    pub vsan: Option<u16>,
    /// Fabric ID of the output, with its place (Fabric OS).
    pub fid: Option<(u16, At)>,
    pub os: Option<Os>,
    pub defined: Objects,
    pub active: Objects,
    pub enabled: Option<(String, At)>,
    /// An output that shows no configuration in force.
    disabled: Option<At>,
    pub default: Option<(ZoneDefault, At)>,
    pub is_enhanced: bool,
}

/// Fabric that a database is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Home {
    /// Number in the plan.
    Fabric(usize),
    /// Fabric ID of a switch that the plan does not have.
    Fid(u16),
    Unknown,
}

/// Fabric and VSAN of a database. The VSAN is 0 on Fabric OS.
type Key = (Home, u16);

/// Finds the fabric of a database.
struct Homes<'p> {
    plan: &'p Plan,
    /// The only fabric of the plan.
    only: Option<usize>,
    /// Fabrics by the fabric IDs of their switches.
    of_fid: BTreeMap<u16, BTreeSet<usize>>,
}

impl Homes<'_> {
    fn of(plan: &Plan) -> Homes<'_> {
        let all: BTreeSet<usize> = plan.switches.iter().map(|switch| switch.fabric).collect();
        let only = if all.len() == 1 { all.first().copied() } else { None };
        let mut of_fid: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
        for switch in plan.switches.iter().filter(|switch| plan.chassis[switch.chassis].os != Some(Os::NxOs)) {
            let logical = plan.chassis[switch.chassis].logical.map(|logical| logical.fid);
            if let Some(fid) = logical.or(switch.virtual_fabric.as_ref().map(|(_, id)| *id)) {
                of_fid.entry(fid).or_default().insert(switch.fabric);
            }
        }
        Homes { plan, only, of_fid }
    }

    fn key(&self, facts: &Facts, base: &ZoneBase) -> Key {
        let vsan = base.vsan.unwrap_or(0);
        if let Some(switch) = self.plan.switch(base.seen, base.vsan) {
            return (Home::Fabric(self.plan.switches[switch].fabric), vsan);
        }
        // The fabric ID of a prompt tells the fabric of a switch that no other input shows.
        let fid = facts.sightings[base.seen].logical.map(|logical| logical.fid);
        let home = match fid.filter(|_| !self.of_fid.is_empty()) {
            Some(fid) => match self.of_fid.get(&fid).filter(|fabrics| fabrics.len() == 1).and_then(BTreeSet::first) {
                Some(fabric) => Home::Fabric(*fabric),
                None => Home::Fid(fid),
            },
            None => self.only.map(Home::Fabric).or(fid.map(Home::Fid)).unwrap_or(Home::Unknown),
        };
        (home, vsan)
    }
}

/// Joins the databases of each fabric.
pub(super) fn collect(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) -> Vec<Fabric> {
    let homes = Homes::of(plan);
    let keys: Vec<Key> = facts.zones.iter().map(|base| homes.key(facts, base)).collect();
    let device_aliases = device_aliases(facts, plan, &keys, notes);
    let known = aliases(facts, &keys, &device_aliases);
    let mut fabrics: BTreeMap<Key, Fabric> = BTreeMap::new();
    for (base, key) in facts.zones.iter().zip(&keys) {
        let fabric = fabrics.entry(*key).or_default();
        fabric.vsan = base.vsan;
        fabric.number = match key.0 {
            Home::Fabric(number) => Some(number),
            Home::Fid(_) | Home::Unknown => None,
        };
        let fid = facts.sightings[base.seen].logical.map(|logical| (logical.fid, base.at));
        fabric.fid = fabric.fid.or(fid);
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
            let aliases = known.get(key).filter(|_| kind == Kind::Zone);
            join(facts, fabric.defined.of_mut(kind), &defined, kind, smart, None, notes);
            // Outputs name the members of a zone in force by their aliases or by their ports.
            join(facts, fabric.active.of_mut(kind), &active, kind, smart, aliases, notes);
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
    for (key, aliases) in device_aliases {
        let fabric = fabrics.entry(key).or_insert_with(|| Fabric { vsan: Some(key.1), ..Fabric::default() });
        fabric.os = Some(Os::NxOs);
        join(facts, &mut fabric.defined.aliases, &aliases, Kind::Alias, None, None, notes);
    }
    fabrics.into_values().collect()
}

type Aliases = BTreeMap<String, Object>;

/// The device aliases of each switch, by the databases of its fabrics. `keys` are those of
/// `facts.zones`.
fn device_aliases(facts: &Facts, plan: &Plan, keys: &[Key], notes: &mut Vec<Note>) -> BTreeMap<Key, Aliases> {
    // A device alias holds in every VSAN of its chassis, also in one that only has zones.
    let mut of_bases: BTreeMap<usize, BTreeSet<Key>> = BTreeMap::new();
    for (base, key) in facts.zones.iter().zip(keys) {
        if let Some(chassis) = plan.chassis_of[base.seen] {
            of_bases.entry(chassis).or_default().insert(*key);
        }
    }
    let all: BTreeSet<Key> = keys.iter().copied().filter(|(_, vsan)| *vsan > 0).collect();
    let mut own: BTreeMap<Key, Aliases> = BTreeMap::new();
    for (seen, name, object) in &facts.device_aliases {
        let chassis = plan.chassis_of[*seen];
        let switches = plan.switches.iter().filter(|switch| Some(switch.chassis) == chassis);
        let mut keys: BTreeSet<Key> = switches.map(|switch| (Home::Fabric(switch.fabric), switch.vsan)).collect();
        keys.extend(chassis.and_then(|chassis| of_bases.get(&chassis)).into_iter().flatten());
        if keys.is_empty() {
            keys.extend(&all);
        }
        if keys.is_empty() {
            keys.insert((Home::Unknown, 1));
        }
        for key in keys {
            let map = own.entry(key).or_default();
            let single = BTreeMap::from([(name.clone(), object.clone())]);
            join(facts, map, &single, Kind::Alias, None, None, notes);
        }
    }
    own
}

/// All aliases of each database.
fn aliases(facts: &Facts, keys: &[Key], device_aliases: &BTreeMap<Key, Aliases>) -> BTreeMap<Key, Aliases> {
    let mut known: BTreeMap<Key, Aliases> = BTreeMap::new();
    for (base, key) in facts.zones.iter().zip(keys) {
        let known = known.entry(*key).or_default();
        for (name, object) in base.defined.aliases.iter().chain(device_aliases.get(key).into_iter().flatten()) {
            if !known.contains_key(name) {
                known.insert(name.clone(), normal(object.clone(), Kind::Alias, None));
            }
        }
    }
    for known in known.values_mut() {
        // An alias of NX-OS can have device aliases.
        let plain = known.clone();
        for (name, alias) in known {
            let ports = |member: &String| match plain.get(member).filter(|_| member != name) {
                Some(device) => device.members.clone(),
                None => vec![member.clone()],
            };
            alias.members = alias.members.iter().flat_map(ports).collect();
        }
    }
    known
}

/// Adds objects of another output, and reports those that differ, also if `aliases` are replaced by
/// their members.
fn join(
    facts: &Facts,
    into: &mut BTreeMap<String, Object>,
    from: &BTreeMap<String, Object>,
    kind: Kind,
    smart: Option<bool>,
    aliases: Option<&Aliases>,
    notes: &mut Vec<Note>,
) {
    let is_same = |first: &Object, object: &Object| {
        same(first, object) || aliases.is_some_and(|aliases| expanded(first, aliases) == expanded(object, aliases))
    };
    for (name, object) in from {
        let object = normal(object.clone(), kind, smart);
        match into.get(name) {
            None => _ = into.insert(name.clone(), object),
            Some(first) if is_same(first, &object) => {}
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
