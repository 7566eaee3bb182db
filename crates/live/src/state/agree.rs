//! Differences between a lab file and a store, and their reconciliation.

use sanloom_fc::zoning::{DefinedZones, EffectiveZones, ObjectKind, ZoneDatabase};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

/// Treatment of a lab file that differs from the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Agreement {
    /// Report the differences; the user decides.
    #[default]
    Ask,
    /// Apply the file's changes since the last agreement to the store.
    Apply,
    /// Replace the store's content with the file's.
    Reset,
}

/// Describes the objects that exist in only one of two databases, one sentence each. Empty if the
/// databases are equal. `names` are the names of the two for the user.
pub fn differences(first: &ZoneDatabase, second: &ZoneDatabase, names: [&str; 2]) -> Vec<String> {
    let mut lines = Vec::new();
    let (a, b) = (&first.defined, &second.defined);
    objects(ObjectKind::Alias, &a.aliases, &b.aliases, names, &mut lines);
    objects(ObjectKind::Zone, &a.zones, &b.zones, names, &mut lines);
    objects(ObjectKind::Config, &a.configs, &b.configs, names, &mut lines);
    let in_force = |database: &ZoneDatabase| match &database.effective {
        Some(effective) => format!("`{}`", effective.name),
        None => "nothing".to_owned(),
    };
    match (in_force(first), in_force(second)) {
        (one, other) if one != other => {
            lines.push(format!("in force: {one} in {}, {other} in {}", names[0], names[1]));
        }
        (one, _) if first.effective != second.effective => {
            lines.push(format!("in force: {one} in both, with other zones or members"));
        }
        _ => {}
    }
    if first.default_zone != second.default_zone {
        let (one, other) = (first.default_zone, second.default_zone);
        lines.push(format!("default zone: {one} in {}, {other} in {}", names[0], names[1]));
    }
    lines
}

fn objects<T: PartialEq + Debug>(
    kind: ObjectKind,
    first: &BTreeMap<String, T>,
    second: &BTreeMap<String, T>,
    names: [&str; 2],
    lines: &mut Vec<String>,
) {
    for name in first.keys().chain(second.keys()).collect::<BTreeSet<_>>() {
        match (first.get(name), second.get(name)) {
            (Some(_), None) => lines.push(format!("{kind} `{name}`: only in {}", names[0])),
            (None, Some(_)) => lines.push(format!("{kind} `{name}`: only in {}", names[1])),
            (Some(one), Some(other)) if one != other => lines.push(format!("{kind} `{name}`: differs")),
            _ => {}
        }
    }
}

/// Applies the changes from `before` to `file` to `kept`: new, changed and removed objects, and
/// changes of the effective set and the default zone. If both sides changed an object, the file's
/// version is used. Effective zones that the file changed are resolved again.
pub fn merge(before: &ZoneDatabase, file: &ZoneDatabase, kept: &ZoneDatabase) -> ZoneDatabase {
    let (old, new, now) = (&before.defined, &file.defined, &kept.defined);
    let defined = DefinedZones {
        aliases: changed(&old.aliases, &new.aliases, &now.aliases),
        zones: changed(&old.zones, &new.zones, &now.zones),
        configs: changed(&old.configs, &new.configs, &now.configs),
    };
    let default_zone = if before.default_zone == file.default_zone { kept.default_zone } else { file.default_zone };
    let mut merged = ZoneDatabase { defined: Arc::new(defined), effective: kept.effective.clone(), default_zone };
    if before.effective != file.effective {
        merged.effective = file.effective.as_ref().map(|effective| match merged.resolve(&effective.name) {
            Ok(zones) => Arc::new(EffectiveZones { name: effective.name.clone(), zones }),
            // The store lacks an object that the set needs; the file's own set is complete.
            Err(_) => effective.clone(),
        });
    }
    merged
}

fn changed<T: Clone + PartialEq>(
    before: &BTreeMap<String, T>,
    file: &BTreeMap<String, T>,
    kept: &BTreeMap<String, T>,
) -> BTreeMap<String, T> {
    let mut merged = kept.clone();
    for name in before.keys().chain(file.keys()) {
        match (before.get(name), file.get(name)) {
            (old, Some(new)) if old != Some(new) => _ = merged.insert(name.clone(), new.clone()),
            (Some(_), None) => _ = merged.remove(name),
            _ => {}
        }
    }
    merged
}
