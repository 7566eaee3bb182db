//! Zones in force that differ from the definition of their configuration.

use super::effective_differs;
use sanloom_fc::zoning::{DefinedZones, EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The zones of switches, by their names there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchZones {
    pub database: ZoneDatabase,
    /// The configuration in force has no definition on the switches.
    pub is_undefined: bool,
}

impl SwitchZones {
    /// True if enabling the configuration in force would fail, or change the zones in force.
    fn has_drifted(&self) -> bool {
        let Some(effective) = &self.database.effective else { return false };
        let name = &effective.name;
        if !self.database.defined.configs.contains_key(name) {
            return self.is_undefined;
        }
        let Ok(zones) = self.database.resolve(name) else { return true };
        let defined = Arc::new(EffectiveZones { name: name.clone(), zones });
        effective_differs(&self.database, &ZoneDatabase { effective: Some(defined), ..self.database.clone() })
    }
}

/// The state that commands make of another one.
pub(super) struct Reached {
    pub zones: SwitchZones,
    /// The commands leave the zones in force as they are, instead of enabling a configuration.
    pub keeps_in_force: bool,
    /// The zones in force are defined under names of their own.
    pub has_copies: bool,
}

/// Returns the state that commands can make of `from`. That is `to`, unless its zones in force have
/// drifted from their definitions and differ from those of `from`: commands can only enable what is
/// defined, so the state has definitions of the zones in force under names of their own.
pub(super) fn reachable(from: &SwitchZones, to: &SwitchZones, what: &str, notes: &mut Vec<String>) -> Reached {
    let same = |keeps_in_force| Reached { zones: to.clone(), keeps_in_force, has_copies: false };
    if !to.has_drifted() {
        return same(false);
    }
    let (from, to) = (&from.database, &to.database);
    let Some(effective) = &to.effective else { return same(false) };
    let name = &effective.name;
    // A configuration in force cannot be deleted.
    let is_deleted = from.defined.configs.contains_key(name) && !to.defined.configs.contains_key(name);
    if !effective_differs(from, to) && !is_deleted {
        if from.defined != to.defined {
            notes.push(format!(
                "`{name}` is in force with other zones than it is defined with; {what} saves the definitions and \
                 leaves the zones in force as they are"
            ));
        }
        return same(true);
    }
    let mut defined = (*to.defined).clone();
    let mut taken = names(&defined);
    taken.extend(names(&from.defined));
    let mut zones = Vec::new();
    for zone in &effective.zones {
        let plain = |list: &[_]| list.iter().copied().map(MemberRef::Member).collect();
        let definition = ZoneDefinition { members: plain(&zone.members), principals: plain(&zone.principals) };
        let own = match resolved(&defined, &zone.name) {
            Some(known) if known == (set(&zone.members), set(&zone.principals)) => zone.name.clone(),
            _ => free(&zone.name, &mut taken),
        };
        defined.zones.entry(own.clone()).or_insert(definition);
        zones.push(own);
    }
    let config = free(name, &mut taken);
    notes.push(format!(
        "`{name}` is not defined with the zones that are to be in force; {what} defines them as `{config}` and \
         enables that"
    ));
    defined.configs.insert(config.clone(), zones.clone());
    let renamed = effective.zones.iter().zip(zones).map(|(zone, name)| {
        let mut zone = zone.clone();
        zone.name = name;
        zone
    });
    let effective = EffectiveZones { name: config, zones: renamed.collect() };
    let effective = Some(Arc::new(effective));
    let database = ZoneDatabase { defined: Arc::new(defined), effective, default_zone: to.default_zone };
    Reached { zones: SwitchZones { database, is_undefined: false }, keeps_in_force: false, has_copies: true }
}

fn set<T: Ord + Clone>(list: &[T]) -> BTreeSet<T> {
    list.iter().cloned().collect()
}

type Members = BTreeSet<sanloom_fc::config::ZoneMember>;

/// The members and principals of a zone, with aliases replaced by their members.
fn resolved(defined: &DefinedZones, name: &str) -> Option<(Members, Members)> {
    let zone = defined.zones.get(name)?;
    let members = |list: &[MemberRef]| -> Members {
        let of = |member: &MemberRef| match member {
            MemberRef::Member(member) => vec![*member],
            MemberRef::Alias(alias) => defined.aliases.get(alias).cloned().unwrap_or_default(),
        };
        list.iter().flat_map(of).collect()
    };
    Some((members(&zone.members), members(&zone.principals)))
}

fn names(defined: &DefinedZones) -> BTreeSet<String> {
    let all = defined.aliases.keys().chain(defined.zones.keys()).chain(defined.configs.keys());
    all.cloned().collect()
}

/// A name of at most 64 characters that nothing has.
fn free(base: &str, taken: &mut BTreeSet<String>) -> String {
    let base: String = base.chars().take(48).collect();
    let mut name = format!("{base}_effective");
    for number in 2_u32.. {
        if taken.insert(name.clone()) {
            break;
        }
        name = format!("{base}_effective{number}");
    }
    name
}
