//! Export of zones: the commands that turn one zone database into another on real switches.
//!
//! [`zone_commands`] compares two databases and writes a script for Fabric OS or NX-OS, and one
//! that undoes it. Scripts add before they remove, so that no object is empty in between; objects
//! that change their kind are removed first, and so are device aliases of NX-OS whose port changes.

mod drift;
mod fos;
mod names;
mod nxos;
mod part;
#[cfg(test)]
mod part_tests;

pub use drift::SwitchZones;
pub(crate) use names::is_name_on_switches;
pub use names::{ExportNames, on_switches};
pub use part::{in_force, of_virtual_fabric, only_config, with_shared};

use drift::Reached;
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{AliasMembers, DefinedZones, MemberRef, ZoneDatabase, ZoneDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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

/// The commands of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    /// Commands that make the change, one a line. Empty if nothing changes.
    pub commands: String,
    /// Commands that undo it.
    pub undo: String,
    /// Remarks on both for the user.
    pub notes: Vec<String>,
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

/// Returns the commands that turn the database `before` into `after`.
///
/// # Errors
/// Everything that the dialect cannot express.
pub fn zone_commands(
    dialect: Dialect,
    before: &ZoneDatabase,
    after: &ZoneDatabase,
) -> Result<Script, Vec<Inexpressible>> {
    let zones = |database: &ZoneDatabase| SwitchZones { database: database.clone(), is_undefined: false };
    script(dialect, &zones(before), &zones(after))
}

/// Returns the commands that turn the zones of switches `old` into `new`.
///
/// # Errors
/// Everything that the dialect cannot express.
pub fn script(dialect: Dialect, old: &SwitchZones, new: &SwitchZones) -> Result<Script, Vec<Inexpressible>> {
    let (mut old, mut new) = (old.clone(), new.clone());
    let mut notes = Vec::new();
    if let Dialect::NxOs { .. } = dialect {
        notes.extend(nxos::one_alias_per_port(&mut old.database, None));
        let new_notes = nxos::one_alias_per_port(&mut new.database, Some(&old.database));
        notes.extend(new_notes.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
    }
    let (old, new) = (&old, &new);
    let (before, after) = (&old.database, &new.database);
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
    let commands = |from: &ZoneDatabase, to: &Reached| match dialect {
        Dialect::FabricOs => fos::commands(from, &to.zones.database, to.keeps_in_force),
        Dialect::NxOs { vsan, is_enhanced } => {
            nxos::commands(from, &to.zones.database, vsan, is_enhanced, to.keeps_in_force)
        }
    };
    let there = drift::reachable(old, new, "the change", &mut notes);
    if let Some(name) = enabled(after).filter(|_| there.has_copies) {
        return Err(vec![Inexpressible {
            object: format!("configuration {name}"),
            reason: "is to be in force with other zones than it is defined with, which no command can do".to_owned(),
            remedy: "enable its definition: set `effective` in [zoning] to the configuration without `only_in_force`"
                .to_owned(),
        }]);
    }
    let back = drift::reachable(&there.zones, old, "the undo", &mut notes);
    Ok(Script { commands: commands(before, &there), undo: commands(&there.zones.database, &back), notes })
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
    let sorted = |list: &[ZoneMember]| list.iter().copied().collect::<BTreeSet<_>>();
    let set = |database: &ZoneDatabase| -> BTreeSet<_> {
        let zones = database.effective.iter().flat_map(|effective| &effective.zones);
        zones.map(|zone| (zone.name.clone(), sorted(&zone.members), sorted(&zone.principals))).collect()
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
