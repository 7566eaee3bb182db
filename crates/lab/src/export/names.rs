//! Names of zone objects on the switches, where the lab has other ones.

use super::{Dialect, Inexpressible, SwitchZones};
use sanloom_fc::zoning::ZoneDefinition;
use sanloom_fc::zoning::{AliasMembers, DefinedZones, EffectiveZones, MemberRef, ObjectKind, ZoneDatabase};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns whether zone objects of switches can have the name. The command line of Fabric OS takes
/// a name that begins with `-` for an option.
pub(crate) fn is_name_on_switches(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "$-^_".contains(c);
    (1..=64).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_part)
}

/// Objects that are on the switches in another way than in the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExportNames {
    /// Names on the switches, by kind and name in the lab (`export_name`).
    pub names: BTreeMap<(ObjectKind, String), String>,
    /// Zones and configurations that are in force on the switches, but not defined there
    /// (`only_in_force`).
    pub only_in_force: BTreeSet<(ObjectKind, String)>,
}

/// Definitions without those of objects that are only in force.
fn with_definitions(defined: &DefinedZones, export: &ExportNames) -> Result<DefinedZones, Vec<Inexpressible>> {
    let is_defined = |kind: ObjectKind, name: &String| !export.only_in_force.contains(&(kind, name.clone()));
    let mut own = defined.clone();
    own.configs.retain(|name, _| is_defined(ObjectKind::Config, name));
    own.zones.retain(|name, _| is_defined(ObjectKind::Zone, name));
    let users = own.configs.iter().flat_map(|(config, zones)| zones.iter().map(move |zone| (config, zone)));
    let wrong = users.filter(|(_, zone)| defined.zones.contains_key(*zone) && !own.zones.contains_key(*zone));
    let problems: Vec<Inexpressible> = wrong
        .map(|(config, zone)| Inexpressible {
            object: format!("configuration {config}"),
            reason: format!("has the zone `{zone}`, which is in force on the switches, but not defined there"),
            remedy: "remove `only_in_force` and `export_name` from the zone, so that the commands create it".to_owned(),
        })
        .collect();
    if problems.is_empty() { Ok(own) } else { Err(problems) }
}

/// Returns the database with the names that its objects have on the switches, and without the
/// definitions that the switches do not have. The zones in force may then differ from the
/// definition of their configuration.
///
/// # Errors
/// Two objects of the database have the same name there. Fabric OS has one name space for aliases,
/// zones and configurations; NX-OS has one for each kind. Or a configuration has a zone that is
/// only in force.
pub fn on_switches(
    dialect: Dialect,
    database: &ZoneDatabase,
    export: &ExportNames,
) -> Result<SwitchZones, Vec<Inexpressible>> {
    let names = &export.names;
    let defined = &with_definitions(&database.defined, export)?;
    let mut taken: BTreeMap<(Option<ObjectKind>, String), String> = BTreeMap::new();
    let mut problems = Vec::new();
    let mut own = |kind: ObjectKind, name: &String| -> String {
        let new = names.get(&(kind, name.clone())).unwrap_or(name).clone();
        let space = Some(kind).filter(|_| dialect != Dialect::FabricOs);
        let object = format!("{kind} {name}");
        match taken.get(&(space, new.clone())) {
            Some(other) => problems.push(Inexpressible {
                object,
                reason: format!("and {other} of the lab both have the name `{new}` on the switches"),
                remedy: "export the configuration of one fabric with --config, or change an `export_name`".to_owned(),
            }),
            None => _ = taken.insert((space, new.clone()), object),
        }
        new
    };
    let mut map = |kind: ObjectKind, all: Vec<&String>| -> BTreeMap<String, String> {
        all.into_iter().map(|name| (name.clone(), own(kind, name))).collect()
    };
    let aliases = map(ObjectKind::Alias, defined.aliases.keys().collect());
    let zones = map(ObjectKind::Zone, defined.zones.keys().collect());
    let configs = map(ObjectKind::Config, defined.configs.keys().collect());
    if !problems.is_empty() {
        return Err(problems);
    }
    let of = |map: &BTreeMap<String, String>, kind: ObjectKind, name: &String| -> String {
        map.get(name).or_else(|| names.get(&(kind, name.clone()))).unwrap_or(name).clone()
    };
    let member = |member: &MemberRef| match member {
        MemberRef::Alias(name) => MemberRef::Alias(of(&aliases, ObjectKind::Alias, name)),
        MemberRef::Member(member) => MemberRef::Member(*member),
    };
    let zone = |zone: &ZoneDefinition| ZoneDefinition {
        members: zone.members.iter().map(member).collect(),
        principals: zone.principals.iter().map(member).collect(),
    };
    let alias = |(name, members): (&String, &AliasMembers)| (of(&aliases, ObjectKind::Alias, name), members.clone());
    let renamed = DefinedZones {
        aliases: defined.aliases.iter().map(alias).collect(),
        zones: defined.zones.iter().map(|(name, own)| (of(&zones, ObjectKind::Zone, name), zone(own))).collect(),
        configs: defined
            .configs
            .iter()
            .map(|(name, list)| {
                let list = list.iter().map(|name| of(&zones, ObjectKind::Zone, name)).collect();
                (of(&configs, ObjectKind::Config, name), list)
            })
            .collect(),
    };
    let effective = database.effective.as_ref().map(|effective| {
        let mut own: EffectiveZones = (**effective).clone();
        own.name = of(&configs, ObjectKind::Config, &own.name);
        own.zones.iter_mut().for_each(|zone| zone.name = of(&zones, ObjectKind::Zone, &zone.name));
        Arc::new(own)
    });
    let is_marked = |name: &String| export.only_in_force.contains(&(ObjectKind::Config, name.clone()));
    let is_marked = database.effective.as_ref().is_some_and(|effective| is_marked(&effective.name));
    let is_undefined = is_marked && effective.as_ref().is_some_and(|own| !renamed.configs.contains_key(&own.name));
    let database = ZoneDatabase { defined: Arc::new(renamed), effective, default_zone: database.default_zone };
    Ok(SwitchZones { database, is_undefined })
}
