//! A lab file and a store that do not say the same: what differs, and how both become one.

use sanloom_core::config::ZoneDefault;
use sanloom_core::zoning::{DefinedZones, EffectiveZones, ObjectKind, ZoneDatabase};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

/// What is to become of a lab file that differs from the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Agreement {
    /// Nothing is to become of it: the user decides.
    #[default]
    Ask,
    /// What was changed in the file since both were the same is done in the store, too.
    Apply,
    /// The file counts, and what the store has beyond it is gone.
    Reset,
}

/// What is in the first and not in the second, and the other way round, in sentences; empty if they are the same.
/// `names` are what people call the two.
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
        let word = |default| if default == ZoneDefault::Open { "open" } else { "closed" };
        let (one, other) = (word(first.default_zone), word(second.default_zone));
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

/// Does in `kept` what was changed from `before` to `file`: objects that are new, other or gone there; what is in force and the
/// default zone, where the file says something else than before. What both have changed is as the file says. Zones that are in
/// force are resolved anew if the file changed them.
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
            // Something in the store has taken away what it needs; the file's own is complete.
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
