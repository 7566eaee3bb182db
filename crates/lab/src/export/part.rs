//! Parts of a zone database: those of one virtual fabric, and those of one configuration.

use super::Inexpressible;
use crate::import::ALL_FABRICS;
use sanloom_fc::config::{Node, ZoneMember};
use sanloom_fc::san::Lab;
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

/// Returns the configuration in force in the fabric of `config`, which has or gets `zones`; `None`
/// if none is. The configuration `all-fabrics` of an imported lab joins those of several fabrics.
/// The ports of its zones tell the fabric; without any, the zones that only one joined
/// configuration has do.
///
/// # Errors
/// The joined zones do not show which configuration is in force there.
pub fn in_force(
    lab: &Lab,
    database: &ZoneDatabase,
    config: &str,
    zones: &[String],
) -> Result<Option<String>, Inexpressible> {
    let Some(effective) = &database.effective else { return Ok(None) };
    if effective.name != ALL_FABRICS || config == ALL_FABRICS {
        return Ok(Some(effective.name.clone()));
    }
    let own: BTreeSet<&String> =
        zones.iter().chain(database.defined.configs.get(config).into_iter().flatten()).collect();
    let all = configs_in(database, effective);
    let mut joined = largest(&all);
    let homes = Homes::of(lab);
    let home: Vec<u16> = homes.of_zones(database, &own).into_iter().collect();
    if let [home] = home[..] {
        joined.retain(|(_, zones)| homes.of_zones(database, zones).contains(&home));
        // Each configuration that may be in force must be known to be that of another fabric.
        let is_elsewhere = |zones| {
            let of_zones = homes.of_zones(database, zones);
            !of_zones.is_empty() && !of_zones.contains(&home)
        };
        if joined.is_empty() && all.iter().all(|(_, zones)| is_elsewhere(zones)) {
            return Ok(None);
        }
    } else {
        let exclusive = |at: usize, zone: &String| {
            let mut others = joined.iter().enumerate().filter(|(other, _)| *other != at);
            own.contains(zone) && !others.any(|(_, (_, zones))| zones.contains(zone))
        };
        let mut same: Vec<bool> =
            (0..joined.len()).map(|at| joined[at].1.iter().any(|zone| exclusive(at, zone))).collect();
        if !same.contains(&true) {
            // All zones are common to several of them.
            same = joined.iter().map(|(_, zones)| zones.iter().any(|zone| own.contains(*zone))).collect();
        }
        let mut same = same.into_iter();
        joined.retain(|_| same.next().unwrap_or(false));
    }
    if joined.len() > 1 {
        joined.retain(|(name, _)| *name == config);
    }
    match &joined[..] {
        [(name, _)] => Ok(Some((*name).clone())),
        _ => Err(Inexpressible {
            object: format!("configuration {config}"),
            reason: format!("is not in force, and `{ALL_FABRICS}` does not show which one is in its fabric"),
            remedy: "set `effective` in [zoning] to the configuration in force there".to_owned(),
        }),
    }
}

/// A configuration with its zones.
type Config<'d> = (&'d String, BTreeSet<&'d String>);

/// Configurations all of whose zones are in force, so that `all-fabrics` may have joined them.
fn configs_in<'d>(database: &'d ZoneDatabase, effective: &EffectiveZones) -> Vec<Config<'d>> {
    let joined: BTreeSet<&String> = effective.zones.iter().map(|zone| &zone.name).collect();
    let all = database.defined.configs.iter().filter(|(name, zones)| *name != ALL_FABRICS && !zones.is_empty());
    let all = all.filter(|(_, zones)| zones.iter().all(|zone| joined.contains(zone)));
    all.map(|(name, zones)| (name, zones.iter().collect())).collect()
}

/// Configurations of a list whose zones are not all in a larger one.
fn largest<'d>(all: &[Config<'d>]) -> Vec<Config<'d>> {
    let is_largest =
        |zones: &BTreeSet<&String>| !all.iter().any(|(_, other)| other.len() > zones.len() && zones.is_subset(other));
    all.iter().filter(|(_, zones)| is_largest(zones)).cloned().collect()
}

/// Fabrics of the ports of a lab.
struct Homes(BTreeMap<ZoneMember, u16>);

impl Homes {
    fn of(lab: &Lab) -> Homes {
        let fabrics = lab.fabrics();
        let mut homes = BTreeMap::new();
        for link in &lab.links {
            for (near, far) in [(0, 1), (1, 0)] {
                let Node::Switch(switch) = link.ends[near].node else { continue };
                let port = usize::from(link.ends[far].port);
                let name = match link.ends[far].node {
                    Node::Host(host) => lab.hosts[usize::from(host)].hbas.get(port).map(|hba| hba.wwpn),
                    Node::Storage(storage) => lab.storage[usize::from(storage)].ports.get(port).map(|port| port.wwpn),
                    Node::Switch(_) | Node::Loop(_) => None,
                };
                if let Some(name) = name {
                    homes.insert(ZoneMember::PortName(name), fabrics[usize::from(switch)]);
                }
            }
        }
        Homes(homes)
    }

    /// Fabrics of the zones whose ports are in one fabric only. A zone with ports in several is one
    /// of the same name in each, and tells nothing.
    fn of_zones(&self, database: &ZoneDatabase, zones: &BTreeSet<&String>) -> BTreeSet<u16> {
        let of_zone = |zone: &String| -> BTreeSet<u16> {
            let Some(definition) = database.defined.zones.get(zone) else { return BTreeSet::new() };
            let members = definition.members.iter().chain(&definition.principals);
            let members = members.flat_map(|member| match member {
                MemberRef::Member(member) => std::slice::from_ref(member),
                MemberRef::Alias(alias) => database.defined.aliases.get(alias).map_or(&[][..], |alias| &alias[..]),
            });
            members.filter_map(|member| self.0.get(member)).copied().collect()
        };
        let sets: Vec<BTreeSet<u16>> = zones.iter().map(|zone| of_zone(zone)).collect();
        sets.into_iter().filter(|set| set.len() == 1).flatten().collect()
    }
}
