//! `--set key=value`: values with a higher priority than those of the file.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::check;
use crate::diagnostic::{Origin, Sink};
use crate::pattern;
use crate::schema::{self, Form, Key, Kind, SECTIONS, SectionDef};
use crate::suggest;
use crate::value::{self, Places, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Code of an override whose key does not exist.
pub(crate) const BAD_SET: &str = "bad-set";

/// Sections with the same keys, which users often confuse.
const RELATED: [(&str, &str); 2] = [("link", "isl"), ("isl", "link")];

/// One `--set key=value`. The key is a path into the file: `run.seed`, `workload.reads.depth`,
/// `switch.*.queueing`, `host.server1.queue_depth`, `link.2.rate` (the second `[[link]]`) or
/// `isl.ISL1.length` (one link by its name). Names may be `*` or ranges. The value is TOML, or text
/// without quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    /// Path into the file.
    pub key: String,
    /// Value as typed.
    pub value: String,
}

impl Override {
    /// Splits `key=value` at the first equals sign; returns `None` if there is none.
    pub fn parse(argument: &str) -> Option<Override> {
        let (key, value) = argument.split_once('=')?;
        Some(Override { key: key.trim().to_owned(), value: value.trim().to_owned() })
    }

    /// Returns the argument as text, to which diagnostics refer.
    pub(crate) fn argument(&self) -> String {
        format!("{}={}", self.key, self.value)
    }
}

/// An override with checked key and value.
pub(crate) struct SetEntry {
    section: &'static SectionDef,
    names: Names,
    pub key: &'static Key,
    pub value: Value,
    pub origin: Origin,
    /// Location of the key in the argument.
    key_origin: Origin,
    /// Name as typed.
    typed: String,
    used: Cell<bool>,
    /// Names that have not matched an element yet, if there are several.
    missed: RefCell<BTreeSet<String>>,
}

enum Names {
    All,
    Some(BTreeSet<String>),
}

impl SetEntry {
    /// Returns whether the override applies to the element `name` of `section`, and records the
    /// match.
    pub fn applies(&self, section: &SectionDef, name: &str) -> bool {
        let applies = self.section.name == section.name
            && match &self.names {
                Names::All => true,
                Names::Some(names) => names.contains(name),
            };
        if applies {
            self.used.set(true);
            self.missed.borrow_mut().remove(name);
        }
        applies
    }

    /// Returns whether the override sets `key` of a section.
    pub fn is_for(&self, section: &str, key: &str) -> bool {
        self.section.name == section && self.key.path == key
    }

    /// Reports an override that matched no element. `names` returns the names in a section,
    /// `tables` the number of its elements in the file.
    pub fn report_if_unused<'n>(
        &self,
        names: impl Fn(&str) -> Vec<&'n str>,
        tables: impl Fn(&str) -> usize,
        sink: &mut Sink,
    ) {
        if self.used.get() {
            self.report_missed(sink);
            return;
        }
        let known = names(self.section.name);
        let heading = self.section.heading();
        let elsewhere = RELATED
            .iter()
            .find(|(section, other)| *section == self.section.name && names(other).contains(&self.typed.as_str()));
        let remedy = match (suggest::closest(&self.typed, known.iter().copied()), elsewhere) {
            (_, Some((_, other))) => {
                format!("that name is in [[{other}]]: write {other}.{}.{}", self.typed, self.key.path)
            }
            (Some(near), None) => format!("did you mean `{near}`?"),
            (None, None) if !known.is_empty() => format!("use `*` for all, or one of {}", few(&known)),
            (None, None) => match tables(self.section.name) {
                0 => format!("the lab has no {heading}"),
                1 if self.section.form == Form::List => format!("the lab has one {heading}, which is number 1"),
                count if self.section.form == Form::List => {
                    format!("each {heading} has the number of its place in the file: use 1 to {count}, or `*` for all")
                }
                _ => format!("use a name of {heading}, or `*` for all"),
            },
        };
        sink.error(
            BAD_SET,
            &self.key_origin,
            format!("there is no {} `{}` to set", self.section.name, value::cut(&self.typed)),
            remedy,
        );
    }

    /// Reports the names of a range that matched no element, if others did.
    fn report_missed(&self, sink: &mut Sink) {
        let missed = self.missed.borrow();
        let mut names: Vec<&str> = missed.iter().map(String::as_str).collect();
        if names.is_empty() {
            return;
        }
        names.sort_by_key(|name| (name.len(), *name));
        let list: Vec<String> = names.iter().map(|name| format!("`{}`", value::cut(name))).collect();
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        sink.error(
            BAD_SET,
            &self.key_origin,
            match list[..] {
                [only] => format!("there is no {} {only} to set", self.section.name),
                _ => format!("{} names match no {}: {}", list.len(), self.section.name, few(&list)),
            },
            "name only what the lab has, or use `*` for all",
        );
    }
}

/// Formats the first few of many names.
pub(crate) fn few(names: &[&str]) -> String {
    let mut text = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 8 {
        text.push_str(", …");
    }
    text
}

/// Checks the overrides and reports errors to `sink`.
pub(crate) fn read(overrides: &[Override], sink: &mut Sink) -> Vec<SetEntry> {
    (0..).zip(overrides).filter_map(|(number, o)| entry(o, number, sink)).collect()
}

fn entry(o: &Override, number: u32, sink: &mut Sink) -> Option<SetEntry> {
    let key_origin = Origin::Set(number, 0, o.key.len());
    let parts = split(&o.key);
    let bad = |reason: String, remedy: String, sink: &mut Sink| {
        sink.error(BAD_SET, &key_origin, reason, remedy);
    };
    let name = parts.first().map_or("", String::as_str);
    let Some(section) = schema::section(name) else {
        let remedy = suggest::remedy(
            name,
            SECTIONS.iter().map(|s| s.name),
            "keys look like run.seed, workload.reads.depth or switch.*.queueing",
        );
        bad(format!("there is no section `{}`", value::cut(name)), remedy, sink);
        return None;
    };
    let skip = if section.form == Form::Single { 1 } else { 2 };
    if parts.len() <= skip {
        let example = section.keys.first().map_or("", |k| k.path);
        let form = if skip == 1 { format!("{name}.{example}") } else { format!("{name}.*.{example}") };
        bad(format!("`{}` names no key", value::cut(&o.key)), format!("write it as {form}"), sink);
        return None;
    }
    let path = parts[skip..].join(".");
    let Some(key) = section.key(&path).filter(|k| !matches!(k.kind, Kind::Table)) else {
        let paths = section.keys.iter().filter(|k| !matches!(k.kind, Kind::Table)).map(|k| k.path);
        let list = paths.clone().collect::<Vec<_>>().join(", ");
        let remedy = suggest::remedy(&path, paths, &format!("its keys are {list}"));
        bad(format!("{} has no key `{}` to set", section.heading(), value::cut(&path)), remedy, sink);
        return None;
    };
    if key.path == "name" && section.form == Form::List {
        // A link is found by its name, so the name cannot be overridden; all other keys can.
        bad("names cannot be set from outside".to_owned(), "change the file".to_owned(), sink);
        return None;
    }
    let typed = if skip == 1 { String::new() } else { parts[1].clone() };
    let names = if skip == 1 || typed == "*" {
        Names::All
    } else {
        match pattern::expand(&typed) {
            Ok(names) => Names::Some(names.into_iter().collect()),
            Err(error) => {
                sink.error(error.code, &key_origin, error.reason, error.remedy);
                return None;
            }
        }
    };
    let missed = match &names {
        Names::All => BTreeSet::new(),
        Names::Some(names) => names.clone(),
    };
    let offset = o.key.len() + 1;
    let value = check::loose(key, &o.value, Places::Set(number, offset), sink);
    Some(SetEntry {
        section,
        names,
        key,
        value,
        origin: Origin::Set(number, offset, offset + o.value.len()),
        key_origin,
        typed,
        used: Cell::new(false),
        missed: RefCell::new(missed),
    })
}

/// Splits at dots outside braces and quotes, and removes the quotes.
fn split(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut braces, mut quote) = (0_u32, None);
    for c in key.chars() {
        match c {
            '"' | '\'' if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '.' if braces == 0 && quote.is_none() => parts.push(String::new()),
            _ => {
                match c {
                    '{' => braces += 1,
                    '}' => braces = braces.saturating_sub(1),
                    _ => {}
                }
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
    }
    parts
}
