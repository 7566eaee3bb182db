//! Edits that take effect together: [`Transaction`].

use super::database::{
    AliasMembers, DefinedZones, EffectiveZones, MemberRef, ObjectKind, ZoneDatabase, ZoneDefinition,
};
use super::limits::ZoneLimits;
use super::preview::Preview;
use super::problem::ZoneProblem;
use crate::config::ZoneDefault;
use crate::fabric::PortIdentity;
use std::fmt;
use std::sync::Arc;

/// One edit of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZoneEdit {
    /// A new alias.
    CreateAlias {
        /// Its name.
        name: String,
        /// Its members.
        members: AliasMembers,
    },
    /// A new zone.
    CreateZone {
        /// Its name.
        name: String,
        /// Its members and principals.
        zone: ZoneDefinition,
    },
    /// A new configuration.
    CreateConfig {
        /// Its name.
        name: String,
        /// Names of its zones.
        zones: Vec<String>,
    },
    /// Removes an object. What names it goes on naming it, which a commit refuses.
    Delete {
        /// What it is.
        kind: ObjectKind,
        /// Its name.
        name: String,
    },
    /// Renames an object wherever a definition names it. What is in force keeps the old name until the next `Enable`.
    Rename {
        /// What it is.
        kind: ObjectKind,
        /// Its name.
        from: String,
        /// Its new name.
        to: String,
    },
    /// Adds to an alias what is not in it yet.
    AddToAlias {
        /// Its name.
        name: String,
        /// New members.
        members: AliasMembers,
    },
    /// Takes members out of an alias.
    RemoveFromAlias {
        /// Its name.
        name: String,
        /// Members to go.
        members: AliasMembers,
    },
    /// Adds to a zone what is not in it yet. Principals make it a peer zone.
    AddToZone {
        /// Its name.
        name: String,
        /// New members and principals.
        zone: ZoneDefinition,
    },
    /// Takes members out of a zone.
    RemoveFromZone {
        /// Its name.
        name: String,
        /// Members and principals to go.
        zone: ZoneDefinition,
    },
    /// Adds to a configuration what is not in it yet.
    AddToConfig {
        /// Its name.
        name: String,
        /// Names of zones.
        zones: Vec<String>,
    },
    /// Takes zones out of a configuration.
    RemoveFromConfig {
        /// Its name.
        name: String,
        /// Names of zones.
        zones: Vec<String>,
    },
    /// What holds for ports in no effective zone.
    SetDefault(ZoneDefault),
    /// Puts a configuration in force, as it is defined when the transaction is committed.
    Enable(String),
    /// Nothing is in force any more.
    Disable,
}

/// A working copy of a database and what is to become of it. Dropping it aborts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    base: ZoneDatabase,
    limits: ZoneLimits,
    work: ZoneDatabase,
    /// Configuration to put in force at the commit.
    enable: Option<String>,
}

impl Transaction {
    /// Begins on a committed database. Copies nothing before the first edit.
    pub fn begin(base: &ZoneDatabase, limits: ZoneLimits) -> Transaction {
        Transaction { base: base.clone(), limits, work: base.clone(), enable: None }
    }

    /// The database that the transaction began on.
    pub fn base(&self) -> &ZoneDatabase {
        &self.base
    }

    /// The definitions as edited so far.
    pub fn defined(&self) -> &DefinedZones {
        &self.work.defined
    }

    /// Something would change.
    pub fn is_changed(&self) -> bool {
        self.enable.is_some() || self.work != self.base
    }

    /// Does one edit; a refused one changes nothing.
    ///
    /// # Errors
    /// A name that is bad, in use, or not there; a member that is not there. What depends on other edits, such as a zone
    /// that is not defined yet, is checked at the commit.
    pub fn apply(&mut self, edit: ZoneEdit) -> Result<(), ZoneProblem> {
        self.check(&edit)?;
        match edit {
            ZoneEdit::SetDefault(default) => self.work.default_zone = default,
            ZoneEdit::Enable(name) => self.enable = Some(name),
            ZoneEdit::Disable => {
                self.enable = None;
                self.work.effective = None;
            }
            edit => Arc::make_mut(&mut self.work.defined).apply(edit),
        }
        Ok(())
    }

    /// What a commit would make of the database, problems or not, and the problems.
    pub fn outcome(&self) -> (ZoneDatabase, Vec<ZoneProblem>) {
        let mut outcome = self.work.clone();
        let mut unresolved = Vec::new();
        if let Some(name) = &self.enable {
            match outcome.resolve(name) {
                Ok(zones) => outcome.effective = Some(Arc::new(EffectiveZones { name: name.clone(), zones })),
                Err(problems) => unresolved = problems,
            }
        }
        let mut problems = outcome.problems(&self.limits);
        unresolved.retain(|problem| !problems.contains(problem));
        problems.extend(unresolved);
        (outcome, problems)
    }

    /// Who of these ports would gain and lose sight of whom.
    ///
    /// # Errors
    /// Every problem that a commit would refuse.
    pub fn preview(&self, ports: &[PortIdentity]) -> Result<Preview, Vec<ZoneProblem>> {
        let outcome = self.commit()?;
        Ok(Preview::between(&self.base.zoning(), &outcome.zoning(), ports))
    }

    /// The new database. The transaction stays as it is, so it can be mended and tried again.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn commit(&self) -> Result<ZoneDatabase, Vec<ZoneProblem>> {
        let (outcome, problems) = self.outcome();
        if problems.is_empty() { Ok(outcome) } else { Err(problems) }
    }

    /// Back to the database that the transaction began on.
    pub fn abort(&mut self) {
        *self = Transaction::begin(&self.base, self.limits);
    }

    fn check(&self, edit: &ZoneEdit) -> Result<(), ZoneProblem> {
        use ObjectKind::{Alias, Config, Zone};
        let defined = &self.work.defined;
        let free = |kind: ObjectKind, name: &str| {
            self.limits.check_name(kind, name)?;
            match defined.kind_of(name) {
                Some(by) => Err(ZoneProblem::NameTaken { name: name.to_owned(), by }),
                None => Ok(()),
            }
        };
        let there = |kind: ObjectKind, name: &str| match defined.has(kind, name) {
            true => Ok(()),
            false => Err(ZoneProblem::NotFound { kind, name: name.to_owned() }),
        };
        match edit {
            ZoneEdit::CreateAlias { name, .. } => free(Alias, name),
            ZoneEdit::CreateZone { name, .. } => free(Zone, name),
            ZoneEdit::CreateConfig { name, .. } => free(Config, name),
            ZoneEdit::Delete { kind, name } => there(*kind, name),
            ZoneEdit::Rename { kind, from, to } => there(*kind, from).and_then(|()| free(*kind, to)),
            ZoneEdit::AddToAlias { name, .. } => there(Alias, name),
            ZoneEdit::AddToZone { name, .. } => there(Zone, name),
            ZoneEdit::AddToConfig { name, .. } => there(Config, name),
            ZoneEdit::RemoveFromAlias { name, members } => {
                there(Alias, name)?;
                all_in(Alias, name, members, &defined.aliases[name])
            }
            ZoneEdit::RemoveFromZone { name, zone } => {
                there(Zone, name)?;
                let known = &defined.zones[name];
                all_in(Zone, name, &zone.members, &known.members)?;
                all_in(Zone, name, &zone.principals, &known.principals)
            }
            ZoneEdit::RemoveFromConfig { name, zones } => {
                there(Config, name)?;
                all_in(Config, name, zones, &defined.configs[name])
            }
            ZoneEdit::SetDefault(_) | ZoneEdit::Disable => Ok(()),
            // It may be created later in the same transaction.
            ZoneEdit::Enable(_) => Ok(()),
        }
    }
}

/// Everything that is to be removed is there.
fn all_in<T: PartialEq + fmt::Display>(
    kind: ObjectKind,
    name: &str,
    gone: &[T],
    list: &[T],
) -> Result<(), ZoneProblem> {
    match gone.iter().find(|item| !list.contains(item)) {
        Some(item) => Err(ZoneProblem::NotAMember { kind, name: name.to_owned(), member: item.to_string() }),
        None => Ok(()),
    }
}

impl DefinedZones {
    /// An edit of the definitions that has been checked.
    fn apply(&mut self, edit: ZoneEdit) {
        match edit {
            ZoneEdit::CreateAlias { name, members } => _ = self.aliases.insert(name, members),
            ZoneEdit::CreateZone { name, zone } => _ = self.zones.insert(name, zone),
            ZoneEdit::CreateConfig { name, zones } => _ = self.configs.insert(name, zones),
            ZoneEdit::Delete { kind, name } => match kind {
                ObjectKind::Alias => _ = self.aliases.remove(&name),
                ObjectKind::Zone => _ = self.zones.remove(&name),
                ObjectKind::Config => _ = self.configs.remove(&name),
            },
            ZoneEdit::Rename { kind, from, to } => self.rename(kind, &from, to),
            ZoneEdit::AddToAlias { name, members } => add(self.aliases.entry(name).or_default(), members),
            ZoneEdit::AddToZone { name, zone } => {
                let known = self.zones.entry(name).or_default();
                add(&mut known.members, zone.members);
                add(&mut known.principals, zone.principals);
            }
            ZoneEdit::AddToConfig { name, zones } => add(self.configs.entry(name).or_default(), zones),
            ZoneEdit::RemoveFromAlias { name, members } => remove(self.aliases.entry(name).or_default(), &members),
            ZoneEdit::RemoveFromZone { name, zone } => {
                let known = self.zones.entry(name).or_default();
                remove(&mut known.members, &zone.members);
                remove(&mut known.principals, &zone.principals);
            }
            ZoneEdit::RemoveFromConfig { name, zones } => remove(self.configs.entry(name).or_default(), &zones),
            ZoneEdit::SetDefault(_) | ZoneEdit::Enable(_) | ZoneEdit::Disable => {}
        }
    }

    fn rename(&mut self, kind: ObjectKind, from: &str, to: String) {
        match kind {
            ObjectKind::Alias => {
                let lists = self.zones.values_mut().flat_map(|zone| [&mut zone.members, &mut zone.principals]);
                for member in lists.flatten() {
                    if matches!(member, MemberRef::Alias(name) if name == from) {
                        *member = MemberRef::Alias(to.clone());
                    }
                }
                let members = self.aliases.remove(from).unwrap_or_default();
                self.aliases.insert(to, members);
            }
            ObjectKind::Zone => {
                for zone in self.configs.values_mut().flatten().filter(|zone| *zone == from) {
                    zone.clone_from(&to);
                }
                let zone = self.zones.remove(from).unwrap_or_default();
                self.zones.insert(to, zone);
            }
            ObjectKind::Config => {
                let zones = self.configs.remove(from).unwrap_or_default();
                self.configs.insert(to, zones);
            }
        }
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

fn remove<T: PartialEq>(list: &mut Vec<T>, gone: &[T]) {
    list.retain(|item| !gone.contains(item));
}
