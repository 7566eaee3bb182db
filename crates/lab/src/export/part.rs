//! Parts of a zone database: those of one virtual fabric, and those of one configuration.

use super::Inexpressible;
use crate::import::ALL_FABRICS;
use sanloom_fc::zoning::{DefinedZones, EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the part of a database that one virtual fabric has. `fabrics` are the virtual fabrics of
/// zones; a zone without one is in all.
pub fn of_virtual_fabric(database: &ZoneDatabase, fabrics: &BTreeMap<String, u16>, vsan: u16) -> ZoneDatabase {
    let is_in = |zone: &String| fabrics.get(zone).is_none_or(|id| *id == vsan);
    let mut defined = (*database.defined).clone();
    defined.zones.retain(|name, _| is_in(name));
    // An alias that only zones of other fabrics use is there, not here.
    let (here, all) = (aliases_of(defined.zones.values()), aliases_of(database.defined.zones.values()));
    defined.aliases.retain(|name, _| here.contains(name) || !all.contains(name));
    defined.configs.values_mut().for_each(|zones| zones.retain(is_in));
    defined.configs.retain(|_, zones| !zones.is_empty());
    let effective = database.effective.as_ref().map(|effective| {
        let zones = effective.zones.iter().filter(|zone| is_in(&zone.name)).cloned().collect();
        Arc::new(EffectiveZones { name: effective.name.clone(), zones })
    });
    let effective = effective.filter(|effective| defined.configs.contains_key(&effective.name));
    ZoneDatabase { defined: Arc::new(defined), effective, default_zone: database.default_zone }
}

/// Returns the aliases that zones name.
fn aliases_of<'z>(zones: impl Iterator<Item = &'z ZoneDefinition>) -> BTreeSet<String> {
    let members = zones.flat_map(|zone| zone.members.iter().chain(&zone.principals));
    let names = members.filter_map(|member| match member {
        MemberRef::Alias(name) => Some(name.clone()),
        MemberRef::Member(_) => None,
    });
    names.collect()
}

/// Adds to the part of a database its own zones and aliases that another part has, for example
/// because both share a zone with a configuration that is not in the part. Otherwise commands would
/// create what is there, or delete what others use.
pub fn with_shared(part: &ZoneDatabase, whole: &ZoneDatabase, other: &ZoneDatabase) -> ZoneDatabase {
    let mut defined = (*part.defined).clone();
    for name in other.defined.zones.keys() {
        if let Some(zone) = whole.defined.zones.get(name) {
            defined.zones.entry(name.clone()).or_insert_with(|| zone.clone());
        }
    }
    let used = aliases_of(defined.zones.values());
    for name in used.iter().chain(other.defined.aliases.keys()) {
        if let Some(members) = whole.defined.aliases.get(name) {
            defined.aliases.entry(name.clone()).or_insert_with(|| members.clone());
        }
    }
    ZoneDatabase { defined: Arc::new(defined), ..part.clone() }
}

/// Returns the part of a database that one configuration needs: the configuration, its zones, and
/// their aliases. `enabled` is the configuration in force in its fabric, which may be another one.
pub fn only_config(database: &ZoneDatabase, config: &str, enabled: Option<&str>) -> ZoneDatabase {
    let all = &database.defined;
    let mut defined = DefinedZones::default();
    if let Some(zones) = all.configs.get(config) {
        defined.configs.insert(config.to_owned(), zones.clone());
        for zone in zones {
            let Some(definition) = all.zones.get(zone) else { continue };
            defined.zones.insert(zone.clone(), definition.clone());
            for member in definition.members.iter().chain(&definition.principals) {
                if let MemberRef::Alias(alias) = member
                    && let Some(members) = all.aliases.get(alias)
                {
                    defined.aliases.insert(alias.clone(), members.clone());
                }
            }
        }
    }
    let known = |name: &str| database.effective.clone().filter(|effective| effective.name == name);
    let resolved = |name: &str| {
        let zones = database.resolve(name).ok()?;
        Some(Arc::new(EffectiveZones { name: name.to_owned(), zones }))
    };
    let effective = enabled.and_then(|name| known(name).or_else(|| resolved(name)));
    ZoneDatabase { defined: Arc::new(defined), effective, default_zone: database.default_zone }
}

/// Returns the configuration in force in the fabric of `config`, which has or gets `zones`. The
/// configuration `all-fabrics` of an imported lab joins those of several fabrics; zones in common
/// tell which of them is in the same fabric.
///
/// # Errors
/// The joined zones do not show which configuration is in force there.
pub fn in_force(database: &ZoneDatabase, config: &str, zones: &[String]) -> Result<Option<String>, Inexpressible> {
    let Some(effective) = &database.effective else { return Ok(None) };
    if effective.name != ALL_FABRICS || config == ALL_FABRICS {
        return Ok(Some(effective.name.clone()));
    }
    let all = &database.defined.configs;
    let own: BTreeSet<&String> = zones.iter().chain(all.get(config).into_iter().flatten()).collect();
    let joined: BTreeSet<&String> = effective.zones.iter().map(|zone| &zone.name).collect();
    let is_joined = |zones: &[String]| !zones.is_empty() && zones.iter().all(|zone| joined.contains(zone));
    // Among the joined configurations that share a zone, the largest one is that of the fabric.
    let mut same_fabric: Vec<(&String, usize)> = Vec::new();
    for (name, zones) in all {
        if name != ALL_FABRICS && is_joined(zones) && zones.iter().any(|zone| own.contains(zone)) {
            same_fabric.push((name, zones.len()));
        }
    }
    let most = same_fabric.iter().map(|(_, zones)| *zones).max();
    same_fabric.retain(|(_, zones)| Some(*zones) == most);
    if same_fabric.len() > 1 {
        same_fabric.retain(|(name, _)| *name == config);
    }
    match same_fabric[..] {
        [(name, _)] => Ok(Some(name.clone())),
        _ => Err(Inexpressible {
            object: format!("configuration {config}"),
            reason: format!("is not in force, and `{ALL_FABRICS}` does not show which one is in its fabric"),
            remedy: "set `effective` in [zoning] to the configuration in force there".to_owned(),
        }),
    }
}
