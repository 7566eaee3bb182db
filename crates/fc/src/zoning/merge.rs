//! Merge of two databases when an ISL joins their fabrics: [`merge`].

use super::database::{DefinedZones, EffectiveZones, ObjectKind, ZoneDatabase, ZoneDefinition};
use super::problem::ZoneProblem;
use crate::config::ZoneLimits;
use crate::config::{MergeControl, MergeRules, Zone, ZoneDefault};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Result of a merge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// Database of the joined fabric.
    pub database: ZoneDatabase,
    /// True if it differs from our database.
    pub changes_ours: bool,
    /// True if it differs from their database.
    pub changes_theirs: bool,
}

/// Reason why two databases cannot be merged. "Ours" and "theirs" are the arguments of [`merge`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MergeConflict {
    /// The effective configurations differ, and the rules do not join them.
    Configuration {
        /// Our effective configuration.
        ours: String,
        /// Their effective configuration.
        theirs: String,
    },
    /// The same name denotes objects of different kinds.
    Type {
        /// Name of both objects.
        name: String,
        /// Kind of our object.
        ours: ObjectKind,
        /// Kind of their object.
        theirs: ObjectKind,
    },
    /// Objects with the same kind and name have different members. If both lists are empty, only
    /// the order differs.
    Content {
        /// Kind of both objects.
        kind: ObjectKind,
        /// Name of both objects.
        name: String,
        /// Members of our object only.
        only_ours: Vec<String>,
        /// Members of their object only.
        only_theirs: Vec<String>,
    },
    /// The default zones differ, but must be equal.
    DefaultZone {
        /// Our default zone.
        ours: ZoneDefault,
        /// Their default zone.
        theirs: ZoneDefault,
    },
    /// An object exists on one side only, but merge control requires equal databases.
    Missing {
        /// Kind of the object.
        kind: ObjectKind,
        /// Name of the object.
        name: String,
        /// True if it exists on our side.
        with_us: bool,
    },
    /// A configuration is effective on one side only, but merge control requires equal databases.
    NotEffective {
        /// Name of the configuration.
        name: String,
        /// True if it is effective on our side.
        with_us: bool,
    },
    /// The merged database would exceed a limit.
    Limit(ZoneProblem),
}

impl MergeConflict {
    /// Conflict class in the terms of administrators.
    pub fn class(&self) -> &'static str {
        match self {
            MergeConflict::Configuration { .. } => "configuration mismatch",
            MergeConflict::Type { .. } => "type mismatch",
            MergeConflict::Content { .. } => "content mismatch",
            MergeConflict::DefaultZone { .. } => "default zone mismatch",
            MergeConflict::Missing { .. } | MergeConflict::NotEffective { .. } => "merge control restrict",
            MergeConflict::Limit(_) => "limit exceeded",
        }
    }

    /// Kind and name of the conflicting object, if the conflict concerns one object.
    pub fn object(&self) -> Option<(ObjectKind, &str)> {
        match self {
            MergeConflict::Configuration { ours: name, .. } | MergeConflict::NotEffective { name, .. } => {
                Some((ObjectKind::Config, name))
            }
            MergeConflict::Type { name, ours, .. } => Some((*ours, name)),
            MergeConflict::Content { kind, name, .. } | MergeConflict::Missing { kind, name, .. } => {
                Some((*kind, name))
            }
            MergeConflict::Limit(
                ZoneProblem::TooManyMembers { kind, name, .. } | ZoneProblem::NameTooLong { kind, name, .. },
            ) => Some((*kind, name)),
            MergeConflict::DefaultZone { .. } | MergeConflict::Limit(_) => None,
        }
    }
}

impl fmt::Display for MergeConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |with_us: &bool| if *with_us { "the first" } else { "the second" };
        match self {
            MergeConflict::Configuration { ours, theirs } if ours == theirs => {
                write!(f, "the effective configurations `{ours}` hold different zones")
            }
            MergeConflict::Configuration { ours, theirs } => {
                write!(f, "the effective configurations `{ours}` and `{theirs}` differ")
            }
            MergeConflict::Type { name, ours, theirs } => {
                let [ours, theirs] = [ours, theirs].map(|kind| kind.with_article());
                write!(f, "`{name}` is the name of {ours} in the first fabric and of {theirs} in the second")
            }
            MergeConflict::Content { kind, name, only_ours, only_theirs } => {
                write!(f, "{kind} `{name}` differs: ")?;
                let few = |list: &[String]| match list {
                    [] => "nothing".to_owned(),
                    [a, b, c, d, more @ ..] if !more.is_empty() => format!("{a} {b} {c} {d} and {} more", more.len()),
                    few => few.join(" "),
                };
                if only_ours.is_empty() && only_theirs.is_empty() {
                    return f.write_str("the same members in another order");
                }
                write!(f, "only the first has {}, only the second {}", few(only_ours), few(only_theirs))
            }
            MergeConflict::DefaultZone { ours, theirs } => {
                write!(f, "the default zone is {ours} in the first fabric and {theirs} in the second")
            }
            MergeConflict::Missing { kind, name, with_us } => {
                write!(f, "{kind} `{name}` is defined in {} fabric only", side(with_us))
            }
            MergeConflict::NotEffective { name, with_us } => {
                write!(f, "configuration `{name}` is in force in {} fabric only", side(with_us))
            }
            MergeConflict::Limit(problem) => problem.fmt(f),
        }
    }
}

/// Merges two databases, or returns all conflicts.
///
/// - The result contains the objects of both. Objects of one name must have the same kind and the
///   same members.
/// - If the rules join configurations, two effective configurations are joined zone by zone. The
///   result has the name that comes first in the alphabet.
/// - The order of the arguments affects only the side that a conflict calls the first.
/// - Merging a database with itself or with a part of itself does not change its content.
/// - The result permits no pair of ports that neither database permits.
///
/// # Errors
/// Every conflict, sorted.
pub fn merge(
    ours: &ZoneDatabase,
    theirs: &ZoneDatabase,
    control: MergeControl,
    limits: &ZoneLimits,
    rules: MergeRules,
) -> Result<Merged, Vec<MergeConflict>> {
    let done = |database: ZoneDatabase| Merged {
        changes_ours: database != *ours,
        changes_theirs: database != *theirs,
        database,
    };
    if ours == theirs {
        return Ok(done(ours.clone()));
    }
    let mut merger = Merger { rules, conflicts: BTreeSet::new() };
    let default_zone = joined_default_zone([ours.default_zone, theirs.default_zone], control, rules);
    if default_zone.is_none() {
        let [ours, theirs] = [ours, theirs].map(|side| side.default_zone);
        merger.conflicts.insert(MergeConflict::DefaultZone { ours, theirs });
    }
    let defined = merger.defined(&ours.defined, &theirs.defined);
    let effective = merger.effective(ours.effective.as_deref(), theirs.effective.as_deref());
    if control == MergeControl::Restrict {
        merger.missing(ours, theirs);
    }
    let shared = [ours, theirs].map(|side| &side.defined).into_iter().find(|side| ***side == defined);
    let defined = shared.cloned().unwrap_or_else(|| Arc::new(defined));
    let default_zone = default_zone.unwrap_or(ZoneDefault::Closed);
    let database = ZoneDatabase { defined, effective: effective.map(Arc::new), default_zone };
    let too_large = |problem: &ZoneProblem| {
        matches!(
            problem,
            ZoneProblem::TooLarge { .. } | ZoneProblem::TooManyMembers { .. } | ZoneProblem::NameTooLong { .. }
        )
    };
    merger.conflicts.extend(database.problems(limits).into_iter().filter(too_large).map(MergeConflict::Limit));
    match merger.conflicts.is_empty() {
        true => Ok(done(database)),
        false => Err(merger.conflicts.into_iter().collect()),
    }
}

/// Default zone of the joined fabric; `None` if the two prevent the merge.
fn joined_default_zone(of: [ZoneDefault; 2], control: MergeControl, rules: MergeRules) -> Option<ZoneDefault> {
    match of {
        [one, other] if one == other => Some(one),
        _ if rules.same_default_zone || control == MergeControl::Restrict => None,
        // The one that permits less.
        [one, other] => Some(one.min(other)),
    }
}

/// Returns true if [`merge`] of `all` and `nothing` yields `all`, without examining its content.
/// `all` must be [sorted](is_sorted) and sound.
pub(super) fn is_outcome(all: &ZoneDatabase, nothing: &ZoneDatabase, control: MergeControl, rules: MergeRules) -> bool {
    nothing.effective.is_none()
        && *nothing.defined == DefinedZones::default()
        && control == MergeControl::Allow
        && joined_default_zone([all.default_zone, nothing.default_zone], control, rules) == Some(all.default_zone)
}

/// Returns true if a merge has nothing to sort: no list has duplicates, and all are in the order of
/// [`Merger::list`].
pub(super) fn is_sorted(database: &ZoneDatabase) -> bool {
    fn ascending<T: Ord>(list: &[T]) -> bool {
        list.is_sorted_by(|one, next| one < next)
    }
    let ZoneDatabase { defined, effective, .. } = database;
    let effective: &[Zone] = effective.as_deref().map_or(&[], |effective| &effective.zones);
    defined.zones.values().all(|zone| ascending(&zone.members) && ascending(&zone.principals))
        && defined.aliases.values().all(|members| ascending(members))
        && defined.configs.values().all(|zones| ascending(zones))
        && effective.iter().all(|zone| ascending(&zone.members) && ascending(&zone.principals))
        && effective.is_sorted_by(|one, next| one.name < next.name)
}

struct Merger {
    rules: MergeRules,
    conflicts: BTreeSet<MergeConflict>,
}

impl Merger {
    fn defined(&mut self, ours: &DefinedZones, theirs: &DefinedZones) -> DefinedZones {
        let names = |side: &DefinedZones| -> BTreeMap<String, ObjectKind> {
            let all = side.aliases.keys().map(|name| (name, ObjectKind::Alias));
            let all = all.chain(side.zones.keys().map(|name| (name, ObjectKind::Zone)));
            all.chain(side.configs.keys().map(|name| (name, ObjectKind::Config))).map(|(n, k)| (n.clone(), k)).collect()
        };
        let theirs_by_name = names(theirs);
        for (name, ours) in names(ours) {
            if let Some(&theirs) = theirs_by_name.get(&name)
                && theirs != ours
            {
                self.conflicts.insert(MergeConflict::Type { name, ours, theirs });
            }
        }
        let mut joined = DefinedZones::default();
        for (name, ours, theirs) in pairs(&ours.aliases, &theirs.aliases) {
            let members = self.list(ObjectKind::Alias, name, ours, theirs);
            joined.aliases.insert(name.clone(), members);
        }
        for (name, ours, theirs) in pairs(&ours.zones, &theirs.zones) {
            let [members, principals] =
                [|zone: &ZoneDefinition| zone.members.clone(), |zone: &ZoneDefinition| zone.principals.clone()]
                    .map(|list| (ours.map(list), theirs.map(list)));
            let members = self.list(ObjectKind::Zone, name, members.0.as_ref(), members.1.as_ref());
            let principals = self.list(ObjectKind::Zone, name, principals.0.as_ref(), principals.1.as_ref());
            joined.zones.insert(name.clone(), ZoneDefinition { members, principals });
        }
        for (name, ours, theirs) in pairs(&ours.configs, &theirs.configs) {
            let zones = match (ours, theirs) {
                (Some(ours), Some(theirs)) if self.rules.join_configs => {
                    let all: BTreeSet<&String> = ours.iter().chain(theirs).collect();
                    all.into_iter().cloned().collect()
                }
                _ => self.list(ObjectKind::Config, name, ours, theirs),
            };
            joined.configs.insert(name.clone(), zones);
        }
        joined
    }

    /// Returns the common list, or the only one. It is sorted unless the order matters, so that
    /// both sides get the same result.
    fn list<T: Clone + Ord + fmt::Display>(
        &mut self,
        kind: ObjectKind,
        name: &str,
        ours: Option<&Vec<T>>,
        theirs: Option<&Vec<T>>,
    ) -> Vec<T> {
        let mut list = ours.or(theirs).cloned().unwrap_or_default();
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && !self.same(ours, theirs)
        {
            let only = |one: &[T], other: &[T]| {
                one.iter().filter(|item| !other.contains(item)).map(T::to_string).collect::<Vec<_>>()
            };
            let (only_ours, only_theirs) = (only(ours, theirs), only(theirs, ours));
            self.conflicts.insert(MergeConflict::Content { kind, name: name.to_owned(), only_ours, only_theirs });
        }
        if !self.rules.member_order_matters {
            list.sort();
            list.dedup();
        }
        list
    }

    fn same<T: Ord>(&self, ours: &[T], theirs: &[T]) -> bool {
        match self.rules.member_order_matters {
            true => ours == theirs,
            false => ours == theirs || BTreeSet::from_iter(ours) == BTreeSet::from_iter(theirs),
        }
    }

    fn effective(&mut self, ours: Option<&EffectiveZones>, theirs: Option<&EffectiveZones>) -> Option<EffectiveZones> {
        let by_name = |side: Option<&EffectiveZones>| -> BTreeMap<String, Zone> {
            let zones = side.into_iter().flat_map(|side| &side.zones);
            zones.map(|zone| (zone.name.clone(), zone.clone())).collect()
        };
        let (our_zones, their_zones) = (by_name(ours), by_name(theirs));
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && !self.rules.join_configs
            && (ours.name != theirs.name || !our_zones.keys().eq(their_zones.keys()))
        {
            let (ours, theirs) = (ours.name.clone(), theirs.name.clone());
            self.conflicts.insert(MergeConflict::Configuration { ours, theirs });
        }
        let mut zones = Vec::new();
        for (name, our_zone, their_zone) in pairs(&our_zones, &their_zones) {
            let [members, principals] = [|zone: &Zone| zone.members.clone(), |zone: &Zone| zone.principals.clone()]
                .map(|list| (our_zone.map(list), their_zone.map(list)));
            zones.push(Zone {
                name: name.clone(),
                members: self.list(ObjectKind::Zone, name, members.0.as_ref(), members.1.as_ref()),
                principals: self.list(ObjectKind::Zone, name, principals.0.as_ref(), principals.1.as_ref()),
            });
        }
        let name = [ours, theirs].into_iter().flatten().map(|side| &side.name).min()?.clone();
        Some(EffectiveZones { name, zones })
    }

    /// Records the objects that one side lacks, for merge control *restrict*.
    fn missing(&mut self, ours: &ZoneDatabase, theirs: &ZoneDatabase) {
        for (one, other, with_us) in [(ours, theirs, true), (theirs, ours, false)] {
            let defined = &one.defined;
            let names = [
                (ObjectKind::Alias, defined.aliases.keys().collect::<Vec<_>>()),
                (ObjectKind::Zone, defined.zones.keys().collect()),
                (ObjectKind::Config, defined.configs.keys().collect()),
            ];
            for (kind, names) in names {
                for name in names.into_iter().filter(|name| !other.defined.has(kind, name)) {
                    self.conflicts.insert(MergeConflict::Missing { kind, name: name.clone(), with_us });
                }
            }
            for (name, zones) in &defined.configs {
                if let Some(others) = other.defined.configs.get(name) {
                    self.list(ObjectKind::Config, name, Some(zones), Some(others).filter(|_| with_us));
                }
            }
            if let Some(effective) = &one.effective {
                let name = effective.name.clone();
                match &other.effective {
                    None => _ = self.conflicts.insert(MergeConflict::NotEffective { name, with_us }),
                    Some(theirs) if with_us => {
                        let names = |side: &EffectiveZones| -> BTreeSet<String> {
                            side.zones.iter().map(|zone| zone.name.clone()).collect()
                        };
                        if theirs.name != name || names(theirs) != names(effective) {
                            let theirs = theirs.name.clone();
                            self.conflicts.insert(MergeConflict::Configuration { ours: name, theirs });
                        }
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// All keys of either map, with both values.
fn pairs<'m, T>(
    ours: &'m BTreeMap<String, T>,
    theirs: &'m BTreeMap<String, T>,
) -> impl Iterator<Item = (&'m String, Option<&'m T>, Option<&'m T>)> {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    names.into_iter().map(|name| (name, ours.get(name), theirs.get(name)))
}
