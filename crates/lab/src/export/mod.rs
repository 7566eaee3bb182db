//! Export of zones: the commands that turn one zone database into another on real switches.
//!
//! [`zone_commands`] compares two databases and writes a script for Fabric OS or NX-OS, and one
//! that undoes it. Scripts add before they remove, so that no object is empty in between; objects
//! that change their kind are removed first.

mod fos;
mod nxos;

use sanloom_fc::config::ZoneDefault;
use sanloom_fc::zoning::{AliasMembers, DefinedZones, EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Operating system of the switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Fabric OS.
    FabricOs,
    /// NX-OS.
    NxOs {
        /// VSAN that has the zones.
        vsan: u16,
        /// Zoning is in enhanced mode, which needs a commit.
        is_enhanced: bool,
    },
}

impl Dialect {
    /// The default zone that the switches cannot have.
    fn lacks(self) -> ZoneDefault {
        match self {
            Dialect::FabricOs => ZoneDefault::Open,
            Dialect::NxOs { .. } => ZoneDefault::OpenWithoutZones,
        }
    }

    /// The default zone that gives access.
    fn permits(self) -> ZoneDefault {
        match self {
            Dialect::FabricOs => ZoneDefault::OpenWithoutZones,
            Dialect::NxOs { .. } => ZoneDefault::Open,
        }
    }

    /// The database of switches without any zone, from which the commands build `after`. A default
    /// zone that the switches lack is left as it is.
    pub fn fresh(self, after: &ZoneDatabase) -> ZoneDatabase {
        let default_zone = match self {
            _ if after.default_zone == self.lacks() => after.default_zone,
            Dialect::FabricOs => ZoneDefault::OpenWithoutZones,
            Dialect::NxOs { .. } => ZoneDefault::Closed,
        };
        ZoneDatabase { default_zone, ..ZoneDatabase::default() }
    }
}

/// Returns the part of a database that one virtual fabric has. `fabrics` are the virtual fabrics of
/// zones; a zone without one is in all.
pub fn of_virtual_fabric(database: &ZoneDatabase, fabrics: &BTreeMap<String, u16>, vsan: u16) -> ZoneDatabase {
    let is_in = |zone: &String| fabrics.get(zone).is_none_or(|id| *id == vsan);
    let mut defined = (*database.defined).clone();
    defined.zones.retain(|name, _| is_in(name));
    defined.configs.values_mut().for_each(|zones| zones.retain(is_in));
    defined.configs.retain(|_, zones| !zones.is_empty());
    let effective = database.effective.as_ref().map(|effective| {
        let zones = effective.zones.iter().filter(|zone| is_in(&zone.name)).cloned().collect();
        Arc::new(EffectiveZones { name: effective.name.clone(), zones })
    });
    let effective = effective.filter(|effective| defined.configs.contains_key(&effective.name));
    ZoneDatabase { defined: Arc::new(defined), effective, default_zone: database.default_zone }
}

/// The commands of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    /// Commands that make the change, one a line. Empty if nothing changes.
    pub commands: String,
    /// Commands that undo it.
    pub undo: String,
}

/// Something that the commands of a dialect cannot express.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inexpressible {
    /// Kind and name of the object.
    pub object: String,
    pub reason: String,
    pub remedy: String,
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; {}", self.object, self.reason, self.remedy)
    }
}

/// Returns the part of a database that one configuration needs: the configuration, its zones, and
/// their aliases. The configuration is in force if it is, or if `enable` says so.
pub fn only_config(database: &ZoneDatabase, config: &str, enable: bool) -> ZoneDatabase {
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
    let effective = database.effective.clone().filter(|effective| effective.name == config);
    let mut part = ZoneDatabase { defined: Arc::new(defined), effective, default_zone: database.default_zone };
    if enable
        && part.effective.is_none()
        && let Ok(zones) = part.resolve(config)
    {
        let name = config.to_owned();
        part.effective = Some(Arc::new(EffectiveZones { name, zones }));
    }
    part
}

/// Returns the commands that turn the database `before` into `after`.
///
/// # Errors
/// Everything that the dialect cannot express.
pub fn zone_commands(
    dialect: Dialect,
    before: &ZoneDatabase,
    after: &ZoneDatabase,
) -> Result<Script, Vec<Inexpressible>> {
    let mut problems: Vec<Inexpressible> = Vec::new();
    for database in [before, after] {
        let found = match dialect {
            Dialect::FabricOs => fos::check(database),
            Dialect::NxOs { .. } => Vec::new(),
        };
        problems.extend(found.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>());
    }
    let inexpressible = dialect.lacks();
    if before.default_zone != after.default_zone && [before, after].iter().any(|d| d.default_zone == inexpressible) {
        problems.push(Inexpressible {
            object: "the default zone".to_owned(),
            reason: format!("is `{}` in one of the labs, which the switches lack", word(inexpressible)),
            remedy: format!("set `default` in [zoning] to \"{}\" or \"closed\"", word(dialect.permits())),
        });
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let commands = |from: &ZoneDatabase, to: &ZoneDatabase| match dialect {
        Dialect::FabricOs => fos::commands(from, to),
        Dialect::NxOs { vsan, is_enhanced } => nxos::commands(from, to, vsan, is_enhanced),
    };
    Ok(Script { commands: commands(before, after), undo: commands(after, before) })
}

/// Objects of a database as lists of texts, in the notation of a dialect.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Lists {
    aliases: BTreeMap<String, Vec<String>>,
    zones: BTreeMap<String, Members>,
    configs: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Members {
    members: Vec<String>,
    principals: Vec<String>,
}

impl Lists {
    fn of(
        defined: &DefinedZones,
        alias: impl Fn(&AliasMembers) -> Vec<String>,
        list: impl Fn(&[MemberRef]) -> Vec<String>,
    ) -> Lists {
        let zone = |zone: &ZoneDefinition| Members { members: list(&zone.members), principals: list(&zone.principals) };
        Lists {
            aliases: defined.aliases.iter().map(|(name, members)| (name.clone(), alias(members))).collect(),
            zones: defined.zones.iter().map(|(name, definition)| (name.clone(), zone(definition))).collect(),
            configs: defined.configs.clone(),
        }
    }
}

/// Texts of `a` that `b` does not have.
fn missing<'t>(a: &'t [String], b: &[String]) -> Vec<&'t str> {
    let b: BTreeSet<&String> = b.iter().collect();
    a.iter().filter(|text| !b.contains(text)).map(String::as_str).collect()
}

/// The configuration in force, if any.
fn enabled(database: &ZoneDatabase) -> Option<&str> {
    database.effective.as_ref().map(|effective| effective.name.as_str())
}

/// True if the zones in force differ, although the configuration has the same name.
fn effective_differs(before: &ZoneDatabase, after: &ZoneDatabase) -> bool {
    let set = |database: &ZoneDatabase| {
        let zones = database.effective.as_ref().map(|effective| effective.zones.clone()).unwrap_or_default();
        zones.into_iter().map(|zone| format!("{zone:?}")).collect::<BTreeSet<_>>()
    };
    enabled(before) != enabled(after) || set(before) != set(after)
}

fn word(default: ZoneDefault) -> &'static str {
    match default {
        ZoneDefault::OpenWithoutZones => "auto",
        ZoneDefault::Open => "open",
        ZoneDefault::Closed => "closed",
    }
}
