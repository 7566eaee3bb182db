//! Zone databases in the JSON of the REST interface of Fabric OS.

use super::facts::{Object, Objects, ZoneBase};
use super::json::Value;
use super::report::cut;
use super::rest::Reader;
use sanloom_fc::config::ZoneDefault;
use std::collections::{BTreeMap, BTreeSet};

/// The zone database of a switch.
#[derive(Default)]
pub(super) struct Base {
    number: usize,
    /// Lines of the first `defined-configuration` and the first `effective-configuration`.
    defined: Option<u32>,
    effective: Option<u32>,
}

impl Reader<'_> {
    /// The zone database of the present switch.
    fn base(&mut self, value: &Value) -> &mut Base {
        let (at, seen, zones) = (self.at(value), self.seen, &mut self.facts.zones);
        self.bases.entry(seen).or_insert_with(|| {
            zones.push(ZoneBase { at, seen, ..ZoneBase::default() });
            Base { number: zones.len() - 1, ..Base::default() }
        })
    }

    fn object(&self, value: &Value, container: &str, leaf: &str, principal: &str) -> Object {
        let list = |key: &str| -> Vec<String> {
            let members = value.get(container).and_then(|container| container.get(key));
            members.map(|m| m.items().filter_map(|m| m.leaf().map(str::to_owned)).collect()).unwrap_or_default()
        };
        Object { at: self.at(value), members: list(leaf), principals: list(principal), ..Object::default() }
    }

    /// Reads the objects of a list by name. Of two with one name, the first is kept.
    fn list(&mut self, value: &Value, list: &str, noun: &str, key: &str, members: [&str; 3]) -> Map {
        let mut objects = Map::new();
        for item in value.get(list).iter().flat_map(|list| list.items()) {
            item.text("zone-type");
            item.text("zone-type-string");
            let [container, leaf, principal] = members;
            let Some(name) = item.text(key).filter(|name| !name.is_empty()) else {
                self.refuse(item, format!("is {noun} without a name"), "repeat the request");
                continue;
            };
            let object = self.object(item, container, leaf, principal);
            match objects.get(name) {
                None => _ = objects.insert(name.to_owned(), object),
                Some(first) if is_same(first, &object) => {}
                Some(first) => {
                    let reason = format!("defines {noun} `{}` again with other members; the first is kept", cut(name));
                    self.conflict(item.line, first.at.line, reason, "remove one of the two definitions");
                }
            }
        }
        objects
    }

    fn objects(&mut self, value: &Value) -> Objects {
        let members = ["member-entry", "entry-name", "principal-entry-name"];
        let mut zones = self.list(value, "zone", "a zone", "zone-name", members);
        zones.extend(self.list(value, "enabled-zone", "a zone", "zone-name", members));
        let of_alias = ["member-entry", "alias-entry-name", ""];
        Objects {
            aliases: self.list(value, "alias", "an alias", "alias-name", of_alias),
            zones,
            configs: self.list(value, "cfg", "a configuration", "cfg-name", ["member-zone", "zone-name", ""]),
        }
    }

    pub fn defined(&mut self, value: &Value) {
        let (at, seen) = (self.at(value), self.seen);
        let objects = self.objects(value);
        let base = self.base(value);
        let number = base.number;
        let Some(first) = base.defined else {
            base.defined = Some(at.line);
            self.facts.zones[number].defined = objects;
            return;
        };
        if !has_same(&self.facts.zones[number].defined, &objects) {
            let reason = "defines other zones than an answer of the same switch before; objects of both are in the lab";
            let remedy = "import outputs of one point in time, each behind the fibrechannel-switch of its switch";
            self.conflict(at.line, first, reason.to_owned(), remedy);
            // The merger compares its objects with those of the first answer.
            self.facts.zones.push(ZoneBase { at, seen, defined: objects, ..ZoneBase::default() });
        }
    }

    pub fn effective(&mut self, value: &Value) {
        let at = self.at(value);
        let mut active = self.objects(value);
        let name = value.text("cfg-name").map(str::to_owned).filter(|name| !name.is_empty());
        let access = |text: &str| match text {
            "0" => Some(ZoneDefault::Closed),
            "1" => Some(ZoneDefault::OpenWithoutZones),
            _ => None,
        };
        let default = self.read(value, "default-zone-access", "access of the default zone (0 or 1)", access);
        if let Some(name) = &name {
            let members = active.zones.keys().cloned().collect();
            active.configs.insert(name.clone(), Object { at, members, ..Object::default() });
        }
        let base = self.base(value);
        let number = base.number;
        let first = base.effective;
        base.effective = first.or(Some(at.line));
        let base = &mut self.facts.zones[number];
        let Some(first) = first else {
            base.is_disabled = name.is_none();
            base.enabled = name.map(|name| (name, at));
            base.active = active;
            base.default = default.map(|default| (default, at));
            return;
        };
        let is_same = base.enabled.as_ref().map(|(name, _)| name) == name.as_ref()
            && has_same(&base.active, &active)
            && base.default.map(|(default, _)| default) == default;
        if !is_same {
            value.unused();
            let reason = "differs from the zones in force in an answer of the same switch before; the first is kept";
            let remedy = "import outputs of one point in time, each behind the fibrechannel-switch of its switch";
            self.conflict(at.line, first, reason.to_owned(), remedy);
        }
    }
}

/// Objects by name.
type Map = BTreeMap<String, Object>;

fn is_same(a: &Object, b: &Object) -> bool {
    let sets = |object: &Object| [&object.members, &object.principals].map(|list| BTreeSet::from_iter(list.clone()));
    sets(a) == sets(b)
}

/// True if two databases have the same objects.
fn has_same(a: &Objects, b: &Objects) -> bool {
    [(&a.aliases, &b.aliases), (&a.zones, &b.zones), (&a.configs, &b.configs)].into_iter().all(|(a, b)| {
        a.len() == b.len() && a.iter().zip(b).all(|((name, a), (other, b))| name == other && is_same(a, b))
    })
}
