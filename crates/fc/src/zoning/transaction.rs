//! Edits that take effect together: [`Transaction`].

use super::database::{
    AliasMembers, DefinedZones, EffectiveZones, MemberRef, ObjectKind, ZoneDatabase, ZoneDefinition,
};
use super::preview::Preview;
use super::problem::ZoneProblem;
use crate::config::ZoneDefault;
use crate::config::ZoneLimits;
use crate::fabric::PortIdentity;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Single edit of a database. Members that a list of an edit repeats are stored once; only
/// [`ReplaceAll`](ZoneEdit::ReplaceAll) keeps them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZoneEdit {
    /// Creates an alias.
    CreateAlias {
        /// Name of the alias.
        name: String,
        /// Members of the alias.
        members: AliasMembers,
    },
    /// Creates a zone.
    CreateZone {
        /// Name of the zone.
        name: String,
        /// Members and principals.
        zone: ZoneDefinition,
    },
    /// Creates a configuration.
    CreateConfig {
        /// Name of the configuration.
        name: String,
        /// Names of its zones.
        zones: Vec<String>,
    },
    /// Deletes an object. References to it remain, and a commit rejects them.
    Delete {
        /// Kind of the object.
        kind: ObjectKind,
        /// Name of the object.
        name: String,
    },
    /// Renames an object and all references to it in definitions. The effective zones keep the old
    /// name until the next `Enable`.
    Rename {
        /// Kind of the object.
        kind: ObjectKind,
        /// Current name.
        from: String,
        /// New name.
        to: String,
    },
    /// Adds members to an alias; those already present are ignored.
    AddToAlias {
        /// Name of the alias.
        name: String,
        /// Members to add.
        members: AliasMembers,
    },
    /// Removes members from an alias.
    RemoveFromAlias {
        /// Name of the alias.
        name: String,
        /// Members to remove.
        members: AliasMembers,
    },
    /// Adds members to a zone; those already present are ignored. Principals make it a peer zone.
    AddToZone {
        /// Name of the zone.
        name: String,
        /// Members and principals to add.
        zone: ZoneDefinition,
    },
    /// Removes members from a zone.
    RemoveFromZone {
        /// Name of the zone.
        name: String,
        /// Members and principals to remove.
        zone: ZoneDefinition,
    },
    /// Adds zones to a configuration; those already present are ignored.
    AddToConfig {
        /// Name of the configuration.
        name: String,
        /// Names of the zones to add.
        zones: Vec<String>,
    },
    /// Removes zones from a configuration.
    RemoveFromConfig {
        /// Name of the configuration.
        name: String,
        /// Names of the zones to remove.
        zones: Vec<String>,
    },
    /// Replaces the members of an alias.
    ReplaceAlias {
        /// Name of the alias.
        name: String,
        /// The new members.
        members: AliasMembers,
    },
    /// Replaces members and principals of a zone.
    ReplaceZone {
        /// Name of the zone.
        name: String,
        /// The new members and principals.
        zone: ZoneDefinition,
    },
    /// Replaces the zones of a configuration.
    ReplaceConfig {
        /// Name of the configuration.
        name: String,
        /// The new zones.
        zones: Vec<String>,
    },
    /// Replaces all definitions. The effective configuration stays in force.
    ReplaceAll(Arc<DefinedZones>),
    /// Deletes an object and removes it from all lists of other objects.
    Expunge {
        /// Kind of the object.
        kind: ObjectKind,
        /// Name of the object.
        name: String,
    },
    /// Deletes all definitions. The effective configuration stays in force.
    Clear,
    /// Sets the access between ports in no effective zone.
    SetDefault(ZoneDefault),
    /// Enables a configuration as it is defined at the commit.
    Enable(String),
    /// Disables the effective configuration.
    Disable,
}

/// Working copy of a database with pending edits. Dropping it discards the edits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    base: ZoneDatabase,
    limits: ZoneLimits,
    work: ZoneDatabase,
    /// Configuration to enable at the commit.
    enable: Option<String>,
}

impl Transaction {
    /// Begins a transaction on a committed database. Nothing is copied before the first edit.
    pub fn begin(base: &ZoneDatabase, limits: ZoneLimits) -> Transaction {
        Transaction { base: base.clone(), limits, work: base.clone(), enable: None }
    }

    /// Database that the transaction began on.
    pub fn base(&self) -> &ZoneDatabase {
        &self.base
    }

    /// Definitions with the edits so far.
    pub fn defined(&self) -> &DefinedZones {
        &self.work.defined
    }

    /// Returns true if a commit would change something.
    pub fn is_changed(&self) -> bool {
        self.enable.is_some() || self.work != self.base
    }

    /// Applies one edit. A rejected edit changes nothing.
    ///
    /// # Errors
    /// An invalid name, a name in use or undefined, or a member that is not in the list. Conditions
    /// that later edits can still fulfil, such as an undefined zone in a configuration, are checked
    /// at the commit.
    pub fn apply(&mut self, edit: ZoneEdit) -> Result<(), ZoneProblem> {
        self.check(&edit)?;
        match edit {
            ZoneEdit::SetDefault(default) => self.work.default_zone = default,
            ZoneEdit::Enable(name) => self.enable = Some(name),
            ZoneEdit::Disable => {
                self.enable = None;
                self.work.effective = None;
            }
            ZoneEdit::ReplaceAll(defined) => self.work.defined = defined,
            ZoneEdit::Clear => self.work.defined = Arc::default(),
            edit => Arc::make_mut(&mut self.work.defined).apply(edit),
        }
        Ok(())
    }

    /// Database that a commit would produce, with its problems. The database is returned even if
    /// there are problems.
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

    /// Computes which of these ports would gain or lose access to each other.
    ///
    /// # Errors
    /// Every problem that a commit would reject.
    pub fn preview(&self, ports: &[PortIdentity]) -> Result<Preview, Vec<ZoneProblem>> {
        let outcome = self.commit()?;
        Ok(Preview::between(&self.base.zoning(), &outcome.zoning(), ports))
    }

    /// Returns the new database. The transaction is unchanged, so it can be corrected and committed
    /// again.
    ///
    /// # Errors
    /// All problems of the result.
    pub fn commit(&self) -> Result<ZoneDatabase, Vec<ZoneProblem>> {
        let (outcome, problems) = self.outcome();
        if problems.is_empty() { Ok(outcome) } else { Err(problems) }
    }

    /// Discards all edits.
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
            ZoneEdit::Delete { kind, name } | ZoneEdit::Expunge { kind, name } => there(*kind, name),
            ZoneEdit::ReplaceAlias { name, .. } => there(Alias, name),
            ZoneEdit::ReplaceZone { name, .. } => there(Zone, name),
            ZoneEdit::ReplaceConfig { name, .. } => there(Config, name),
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
            // The commit checks the names and the sizes of all definitions.
            ZoneEdit::ReplaceAll(_) | ZoneEdit::Clear => Ok(()),
            ZoneEdit::SetDefault(_) | ZoneEdit::Disable => Ok(()),
            // A later edit of the same transaction may create the configuration.
            ZoneEdit::Enable(_) => Ok(()),
        }
    }
}

/// Checks that all items to be removed are in the list.
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
    /// Applies a checked edit of the definitions.
    fn apply(&mut self, edit: ZoneEdit) {
        match edit {
            ZoneEdit::CreateAlias { name, members } | ZoneEdit::ReplaceAlias { name, members } => {
                self.aliases.insert(name, once(members));
            }
            ZoneEdit::CreateZone { name, zone } | ZoneEdit::ReplaceZone { name, zone } => {
                let zone = ZoneDefinition { members: once(zone.members), principals: once(zone.principals) };
                self.zones.insert(name, zone);
            }
            ZoneEdit::CreateConfig { name, zones } | ZoneEdit::ReplaceConfig { name, zones } => {
                self.configs.insert(name, once(zones));
            }
            ZoneEdit::Delete { kind, name } => self.delete(kind, &name),
            ZoneEdit::Expunge { kind, name } => {
                self.delete(kind, &name);
                self.remove_references(kind, &name);
            }
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
            // Applied by the caller.
            ZoneEdit::ReplaceAll(_) | ZoneEdit::Clear => {}
            ZoneEdit::SetDefault(_) | ZoneEdit::Enable(_) | ZoneEdit::Disable => {}
        }
    }

    fn delete(&mut self, kind: ObjectKind, name: &str) {
        match kind {
            ObjectKind::Alias => _ = self.aliases.remove(name),
            ObjectKind::Zone => _ = self.zones.remove(name),
            ObjectKind::Config => _ = self.configs.remove(name),
        }
    }

    /// Removes an object from the lists of all others.
    fn remove_references(&mut self, kind: ObjectKind, name: &str) {
        match kind {
            ObjectKind::Alias => {
                let lists = self.zones.values_mut().flat_map(|zone| [&mut zone.members, &mut zone.principals]);
                lists
                    .for_each(|list| list.retain(|member| !matches!(member, MemberRef::Alias(alias) if alias == name)));
            }
            ObjectKind::Zone => self.configs.values_mut().for_each(|zones| zones.retain(|zone| zone != name)),
            ObjectKind::Config => {}
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

/// Removes items that stand earlier in the list.
fn once<T: Ord + Clone>(mut list: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    list.retain(|item| seen.insert(item.clone()));
    list
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
