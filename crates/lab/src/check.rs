//! A TOML table checked key by key against the definitions of its section.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::diagnostic::{Origin, Sink};
use crate::schema::{Fallback, Form, Key, Kind, SECTIONS, SectionDef};
use crate::suggest;
use crate::value::{self, Places, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Code of a key that is not defined in its section.
pub(crate) const UNKNOWN_KEY: &str = "unknown-key";
/// Code of a required key that is missing.
pub(crate) const MISSING_KEY: &str = "missing-key";

/// The values of one table, with their locations.
#[derive(Clone, Default, Debug)]
pub(crate) struct Checked {
    /// In the order of their paths: a large lab asks for millions of keys, most of which are
    /// absent.
    entries: Vec<Entry>,
    /// All values are the defaults of the section.
    pub is_built_in: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    path: &'static str,
    origin: Origin,
    value: Value,
}

impl Checked {
    /// Returns the value of a key and its location. An invalid value is returned as [`Value::Bad`];
    /// readers then use the next layer.
    pub fn get(&self, path: &str) -> Option<(&Value, &Origin)> {
        let entry = &self.entries[self.place(path).ok()?];
        Some((&entry.value, &entry.origin))
    }

    /// Sets a key that has no value yet.
    pub fn set(&mut self, path: &'static str, origin: Origin, value: Value) {
        if let Err(place) = self.place(path) {
            self.entries.insert(place, Entry { path, origin, value });
        }
    }

    fn place(&self, path: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.path.cmp(path))
    }

    /// Iterates over the keys below `table`, with their locations.
    pub fn below<'c>(&'c self, table: &'c str) -> impl Iterator<Item = (&'static str, &'c Origin)> {
        let start = self.entries.partition_point(|entry| entry.path <= table);
        let same = self.entries[start..].iter().take_while(move |entry| entry.path.starts_with(table));
        same.filter(move |entry| is_below(entry.path, table)).map(|entry| (entry.path, &entry.origin))
    }

    /// Iterates over the paths of all given keys.
    #[cfg(test)]
    pub fn paths(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.entries.iter().map(|e| e.path)
    }
}

/// Returns whether `path` is a key of `table`, or of a table in it.
pub(crate) fn is_below(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

/// Checks a table against the definitions of `section`.
pub(crate) fn table(section: &'static SectionDef, table: &DeTable<'_>, places: Places, sink: &mut Sink) -> Checked {
    let mut checked = Checked::default();
    nested(section, "", table, places, sink, &mut checked);
    checked
}

fn nested(
    section: &'static SectionDef,
    prefix: &str,
    table: &DeTable<'_>,
    places: Places,
    sink: &mut Sink,
    checked: &mut Checked,
) {
    for (name, value) in table {
        let path = format!("{prefix}{}", name.get_ref());
        let Some(key) = section.key(&path).filter(|_| !name.get_ref().contains('.')) else {
            let inside = match prefix.strip_suffix('.') {
                Some(table) => format!("`{table}` of {}", section.heading()),
                None => section.heading(),
            };
            unknown_key(
                name.get_ref(),
                &inside,
                siblings(section, prefix),
                &synonyms(section, prefix),
                &places.origin(name.span()),
                sink,
            );
            continue;
        };
        let found = value::check(&key.kind, key.example, value, places, sink);
        checked.set(key.path, places.origin(value.span()), found);
        if let (Kind::Table, DeValue::Table(inner)) = (key.kind, value.get_ref()) {
            nested(section, &format!("{path}."), inner, places, sink, checked);
        }
    }
}

/// Iterates over the names of the keys directly below `prefix`.
pub(crate) fn siblings<'p>(section: &'static SectionDef, prefix: &'p str) -> impl Iterator<Item = &'static str> + 'p {
    section.keys.iter().filter_map(move |k| k.path.strip_prefix(prefix)).filter(|name| !name.contains('.'))
}

fn synonyms(section: &'static SectionDef, prefix: &str) -> Vec<(&'static str, &'static str)> {
    let below = |key: &&'static Key| key.path.strip_prefix(prefix).filter(|name| !name.contains('.'));
    section
        .keys
        .iter()
        .filter_map(|key| below(&key).map(|name| (key, name)))
        .flat_map(|(key, name)| key.also.iter().map(move |also| (*also, name)))
        .collect()
}

/// Reports an unknown key and suggests the key that was probably meant.
pub(crate) fn unknown_key(
    name: &str,
    inside: &str,
    known: impl Iterator<Item = &'static str>,
    synonyms: &[(&'static str, &'static str)],
    origin: &Origin,
    sink: &mut Sink,
) {
    let known: Vec<&str> = known.collect();
    let lower = name.to_lowercase();
    let meant = synonyms.iter().find(|(also, _)| *also == lower).map(|(_, key)| *key);
    let near = || suggest::closest(name, known.iter().copied());
    let remedy = match (meant, of_another(name, |key| key == name)) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, Some((section, key))) => format!("`{key}` belongs in {}", section.heading()),
        (None, None) => match (near(), of_another(name, |_| true)) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some((section, near))) => format!("did you mean `{near}` in {}?", section.heading()),
            (None, None) => format!("its keys are {}", known.join(", ")),
        },
    };
    let reason = format!("{inside} has no key `{}`", value::cut(name));
    sink.error(UNKNOWN_KEY, origin, reason, remedy);
}

/// Returns the key most similar to `name` in the sections that exist only once, with its section.
/// Only keys for which `fits` returns true are considered.
fn of_another(name: &str, fits: impl Fn(&str) -> bool) -> Option<(&'static SectionDef, &'static str)> {
    // `name` and `description` exist in most sections, so they do not identify one.
    let unique = |key: &&'static Key| !["name", "description"].contains(&key.path) && fits(key.path);
    let single = || SECTIONS.iter().filter(|section| section.form == Form::Single);
    let near = suggest::closest(name, single().flat_map(|section| section.keys).filter(unique).map(|key| key.path))?;
    single().find(|section| section.key(near).is_some()).map(|section| (section, near))
}

/// Returns the defaults of a section, checked as if they stood in a file.
pub(crate) fn defaults(section: &'static SectionDef) -> Checked {
    let mut checked = Checked { is_built_in: true, ..Checked::default() };
    let mut sink = Sink::default();
    for key in section.keys {
        if let Fallback::Value(text) = key.fallback
            && let Ok(value) = DeValue::parse(text)
        {
            let found = value::check(&key.kind, key.example, &value, Places::BuiltIn, &mut sink);
            checked.set(key.path, Origin::BuiltIn, found);
        }
    }
    checked
}

/// Checks one value of a `--set` argument: first as TOML, then as text without quotes, because a
/// shell removes quotes.
pub(crate) fn loose(key: &'static Key, text: &str, places: Places, sink: &mut Sink) -> Value {
    let mut strict = Sink::default();
    if let Ok(value) = DeValue::parse(text) {
        let found = value::check(&key.kind, key.example, &value, places, &mut strict);
        if !strict.has_errors() {
            return found;
        }
    }
    let quoted = Spanned::new(0..text.len(), DeValue::String(text.into()));
    let mut plain = Sink::default();
    let found = value::check(&key.kind, key.example, &quoted, places, &mut plain);
    if plain.has_errors() {
        // Remedies show values without quotes, as typed on the command line.
        let first = if strict.has_errors() { strict } else { plain };
        first.pour_into(sink, |remedy| remedy.replace('"', ""));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_and_example_of_the_table_is_valid() {
        for section in SECTIONS {
            let defaults = defaults(section);
            for key in section.keys {
                if matches!(key.fallback, Fallback::Value(_)) {
                    let (value, _) = defaults.get(key.path).expect("a default that parses");
                    assert_ne!(*value, Value::Bad, "default of {}", key.path);
                }
                let mut sink = Sink::default();
                let value = DeValue::parse(key.example).expect(key.example);
                let found = value::check(&key.kind, "", &value, Places::File, &mut sink);
                assert!(!sink.has_errors() && found != Value::Bad, "example of {}", key.path);
                if let DeValue::Table(inner) = value.get_ref()
                    && matches!(key.kind, Kind::Table)
                {
                    let mut checked = Checked::default();
                    let prefix = format!("{}.", key.path);
                    nested(section, &prefix, inner, Places::File, &mut sink, &mut checked);
                    assert!(!sink.has_errors(), "example of {}", key.path);
                    assert!(checked.paths().count() > 0);
                }
            }
        }
    }
}
