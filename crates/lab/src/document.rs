//! The lab file as sections of checked tables, before names are resolved: [`Document`]. The tables
//! describe elements with their layers: [`Element`].

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::check::{self, Checked};
use crate::diagnostic::{Origin, Sink};
use crate::element::Element;
use crate::overrides::SetEntry;
use crate::pattern;
use crate::presets;
use crate::schema::{self, Form, SECTIONS, SectionDef};
use crate::syntax;
use crate::value::{self, Places};
use sanloom_fc::zoning::ZoneProblem;
use std::collections::BTreeMap;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Code of a section that does not exist.
pub(crate) const UNKNOWN_SECTION: &str = "unknown-section";
/// Code of a name with characters that names cannot have.
pub(crate) const BAD_NAME: &str = "bad-name";
/// Code of a name that two ranges or two tables define.
pub(crate) const DEFINED_TWICE: &str = "defined-twice";

/// Limit on the names in all ranges of a file together.
const NAME_BUDGET: usize = 4_000_000;

/// Limit on the elements of one section.
const MAX_ELEMENTS: usize = 80_000;

/// Sections that define nodes, links and zones.
const TOPOLOGY: [&str; 10] = [
    "switch",
    "ethernet_switch",
    "infiniband_switch",
    "host",
    "storage",
    "link",
    "isl",
    "alias",
    "zone",
    "zone_config",
];

/// A lab file, checked table by table.
pub(crate) struct Document {
    sections: Vec<Section>,
    sets: Vec<SetEntry>,
    /// Tables of the presets of switches and hosts, each with the name of its section.
    element_presets: Vec<(&'static str, Table)>,
}

/// One section with all its tables.
struct Section {
    def: &'static SectionDef,
    tables: Vec<Table>,
    /// The table for all elements, `[switch."*"]`.
    all: Option<Checked>,
    preset: Checked,
    defaults: Checked,
}

struct Table {
    /// Name in the file; empty in lists.
    name: String,
    /// Location of the name or, in lists, of the brackets.
    header: Origin,
    checked: Checked,
}

/// Remaining number of names that ranges may expand to.
pub(crate) struct Budget {
    left: usize,
    /// Cache of expanded patterns. In a section with a range as name, each pattern is expanded once
    /// for each element.
    known: BTreeMap<String, Rc<Vec<String>>>,
}

impl Budget {
    pub fn new() -> Budget {
        Budget { left: NAME_BUDGET, known: BTreeMap::new() }
    }

    /// Returns the names of a pattern. Reports an error and returns `None` if the pattern is
    /// invalid or too large.
    pub fn expand(&mut self, text: &str, origin: &Origin, sink: &mut Sink) -> Option<Rc<Vec<String>>> {
        if let Some(names) = self.known.get(text) {
            return Some(names.clone());
        }
        match pattern::expand(text) {
            Ok(names) => {
                self.spend(names.len(), origin, sink)?;
                let names = Rc::new(names);
                self.known.insert(text.to_owned(), names.clone());
                Some(names)
            }
            Err(bad) => {
                sink.error(bad.code, origin, bad.reason, bad.remedy);
                None
            }
        }
    }

    /// Takes names out of the budget. Reports an error and returns `None` if too few are left.
    pub fn spend(&mut self, names: usize, origin: &Origin, sink: &mut Sink) -> Option<()> {
        let left = self.left.checked_sub(names);
        if left.is_none() {
            sink.error(
                pattern::TOO_MANY,
                origin,
                format!("the ranges of this file stand for more than {NAME_BUDGET} names"),
                "use fewer or smaller ranges",
            );
        }
        self.left = left?;
        Some(())
    }
}

impl Document {
    /// Checks every table of `text` and reports errors to `sink`.
    pub fn read(text: &str, sets: Vec<SetEntry>, sink: &mut Sink) -> Document {
        let root = syntax::parse(text, sink);
        let mut document = Document::empty(sets);
        document.take(&root, Places::File, sink);
        let preset = document
            .element(schema::section("lab"))
            .and_then(|lab| lab.text("preset").map(str::to_owned))
            .and_then(|name| presets::text(&name))
            .unwrap_or("");
        if let Ok(root) = DeTable::parse(preset) {
            let mut layer = Document::empty(Vec::new());
            // A test checks that presets have no errors.
            layer.take(root.get_ref(), Places::BuiltIn, &mut Sink::default());
            for (section, from) in document.sections.iter_mut().zip(layer.sections) {
                let only = from.tables.into_iter().next().map(|t| t.checked);
                section.preset = from.all.or(only).unwrap_or_default();
            }
        }
        for text in [presets::SWITCHES, presets::HOSTS] {
            let Ok(root) = DeTable::parse(text) else { continue };
            let mut layer = Document::empty(Vec::new());
            layer.take(root.get_ref(), Places::BuiltIn, &mut Sink::default());
            for section in layer.sections {
                let tables = section.tables.into_iter().map(|table| (section.def.name, table));
                document.element_presets.extend(tables);
            }
        }
        document
    }

    fn empty(sets: Vec<SetEntry>) -> Document {
        let sections = SECTIONS.iter().map(|def| Section {
            def,
            tables: Vec::new(),
            all: None,
            preset: Checked::default(),
            defaults: check::defaults(def),
        });
        Document { sections: sections.collect(), sets, element_presets: Vec::new() }
    }

    fn take(&mut self, root: &DeTable<'_>, places: Places, sink: &mut Sink) {
        for (name, value) in root {
            let origin = places.origin(name.span());
            match self.sections.iter_mut().find(|s| s.def.name == name.get_ref()) {
                Some(section) => section.take(&origin, value, places, sink),
                None => unknown_section(name.get_ref(), value.get_ref(), &origin, sink),
            }
        }
        for section in &mut self.sections {
            // TOML tables are sorted by name, but elements of a lab keep the order of its file.
            section.tables.sort_by(|a, b| a.header.cmp(&b.header));
        }
    }

    /// Returns the only element of a section such as `[run]`, even if the file does not have the
    /// section.
    pub fn element(&self, def: Option<&'static SectionDef>) -> Option<Element<'_>> {
        let section = self.section(def?.name)?;
        let table = section.tables.first();
        let header = table.map_or(Origin::BuiltIn, |t| t.header.clone());
        Some(self.build(section, table.into_iter().collect(), String::new(), (0, 1), header))
    }

    /// Returns the elements of a list, numbered from 1.
    pub fn list(&self, name: &str) -> Vec<Element<'_>> {
        let Some(section) = self.section(name) else {
            return Vec::new();
        };
        section
            .tables
            .iter()
            .enumerate()
            .map(|(i, t)| self.build(section, vec![t], (i + 1).to_string(), (0, 1), t.header.clone()))
            .collect()
    }

    /// Returns the elements of a section of named tables in the order of the file, with ranges
    /// expanded.
    pub fn named(&self, name: &str, budget: &mut Budget, sink: &mut Sink) -> Vec<Element<'_>> {
        let Some(section) = self.section(name) else {
            return Vec::new();
        };
        // Ranges are processed first, so that a table for one name extends the range that contains
        // it, in any order.
        let (ranges, singles): (Vec<&Table>, Vec<&Table>) =
            section.tables.iter().partition(|t| pattern::is_range(&t.name));
        let mut found: BTreeMap<String, (u64, u64, Vec<&Table>)> = BTreeMap::new();
        let mut order: Vec<(&Origin, String)> = Vec::new();
        for table in ranges.into_iter().chain(singles) {
            let Some(names) = budget.expand(&table.name, &table.header, sink) else {
                continue;
            };
            let is_range = pattern::is_range(&table.name);
            let count = names.len() as u64;
            for (offset, name) in names.iter().enumerate() {
                if found.len() >= MAX_ELEMENTS {
                    sink.error(
                        pattern::TOO_MANY,
                        &table.header,
                        format!("[{}.…] stands for more than {MAX_ELEMENTS} elements", section.def.name),
                        "use fewer or smaller ranges",
                    );
                    break;
                }
                if !good_name(name) {
                    bad_name(name, &table.header, sink);
                    break;
                }
                match found.get_mut(name) {
                    Some((.., tables)) if !is_range => tables.insert(0, table),
                    Some(_) => sink.error(
                        DEFINED_TWICE,
                        &table.header,
                        format!("`{name}` is already defined by another range"),
                        "let ranges not overlap; a table for a single name may add to a range",
                    ),
                    None => {
                        order.push((&table.header, name.clone()));
                        found.insert(name.clone(), (offset as u64, count, vec![table]));
                    }
                }
            }
        }
        order.sort_by(|a, b| a.0.cmp(b.0));
        order
            .into_iter()
            .filter_map(|(header, name)| {
                let (offset, count, tables) = found.remove(&name)?;
                // Diagnostics point to the most specific table, because users look there first.
                let header = tables.first().map_or(header, |t| &t.header).clone();
                Some(self.build(section, tables, name, (offset, count), header))
            })
            .collect()
    }

    /// Returns `element` with the additional overrides for one of its parts, such as one link of
    /// several.
    pub fn refine<'d>(&'d self, element: &Element<'d>, name: &str) -> Element<'d> {
        let mut refined = element.clone();
        let own = self.sets.iter().rev().filter(|s| s.applies(element.def, name));
        refined.sets = own.chain(element.sets.iter().copied()).collect();
        refined
    }

    /// Returns the number of tables of a section, with ranges not expanded.
    pub fn tables(&self, name: &str) -> usize {
        self.section(name).map_or(0, |section| section.tables.len())
    }

    /// Returns the overrides, which record whether they were used.
    pub fn sets(&self) -> &[SetEntry] {
        &self.sets
    }

    fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.def.name == name)
    }

    fn build<'d>(
        &'d self,
        section: &'d Section,
        tables: Vec<&'d Table>,
        name: String,
        (offset, count): (u64, u64),
        header: Origin,
    ) -> Element<'d> {
        let sets = self.sets.iter().rev().filter(|s| s.applies(section.def, &name)).collect();
        let written: Vec<&Checked> = tables.into_iter().map(|t| &t.checked).chain(&section.all).collect();
        let built_in = [&section.preset, &section.defaults];
        let mut element = Element { def: section.def, name, offset, count, header, layers: written, sets };
        if self.element_presets.iter().any(|(of, _)| *of == section.def.name)
            && let Some(name) = element.text("preset")
        {
            let is_meant = |(of, preset): &&(&str, Table)| *of == section.def.name && preset.name == name;
            element.layers.extend(self.element_presets.iter().find(is_meant).map(|(_, preset)| &preset.checked));
        }
        element.layers.extend(built_in);
        element
    }
}

impl Section {
    fn take(&mut self, origin: &Origin, value: &Spanned<DeValue<'_>>, places: Places, sink: &mut Sink) {
        let def = self.def;
        let is_table = |value: &Spanned<DeValue<'_>>| value.get_ref().is_table();
        let has_shape = match (def.form, value.get_ref()) {
            (Form::Single, DeValue::Table(_)) => true,
            (Form::Named, DeValue::Table(named)) => named.values().all(is_table),
            (Form::List, DeValue::Array(items)) => items.iter().all(is_table),
            _ => false,
        };
        if !has_shape && TOPOLOGY.contains(&def.name) {
            sink.miss_section();
        }
        match (def.form, value.get_ref()) {
            (Form::Single, DeValue::Table(table)) => self.add(String::new(), origin, table, places, sink),
            (Form::Named, DeValue::Table(table)) => {
                for (name, inner) in table {
                    let origin = places.origin(name.span());
                    match inner.get_ref() {
                        DeValue::Table(inner) if name.get_ref() == "*" => {
                            self.all = Some(check::table(def, inner, places, sink));
                        }
                        DeValue::Table(inner) => {
                            self.add(name.get_ref().to_string(), &origin, inner, places, sink);
                        }
                        other => value::wrong_type(
                            other,
                            "a table of keys",
                            &format!("[{}.{}]", def.name, example_name(def)),
                            &origin,
                            sink,
                        ),
                    }
                }
            }
            (Form::List, DeValue::Array(items)) => {
                for item in items.iter() {
                    let origin = places.origin(item.span());
                    match item.get_ref() {
                        DeValue::Table(table) => self.add(String::new(), &origin, table, places, sink),
                        other => value::wrong_type(other, "a table", &def.heading(), &origin, sink),
                    }
                }
            }
            (Form::List, DeValue::Table(_)) => sink.error(
                value::WRONG_TYPE,
                origin,
                format!("there may be several of `{}`, so it is a list of tables", def.name),
                format!("write [[{}]] with two brackets on each side", def.name),
            ),
            (form, DeValue::Array(_)) => sink.error(
                value::WRONG_TYPE,
                origin,
                format!("`{}` is not a list", def.name),
                format!(
                    "write {} with one bracket on each side",
                    if form == Form::Named { format!("[{}.{}]", def.name, example_name(def)) } else { def.heading() }
                ),
            ),
            (_, other) => value::wrong_type(other, "a section", &def.heading(), origin, sink),
        }
    }

    fn add(&mut self, name: String, header: &Origin, table: &DeTable<'_>, places: Places, sink: &mut Sink) {
        let checked = check::table(self.def, table, places, sink);
        self.tables.push(Table { name, header: header.clone(), checked });
    }
}

/// Returns whether a name is valid: at most 64 letters, digits, `-` and `_`, beginning with a
/// letter or digit.
pub(crate) fn good_name(name: &str) -> bool {
    name.len() <= 64
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Reports a name that [`good_name`] rejects.
pub(crate) fn bad_name(name: &str, origin: &Origin, sink: &mut Sink) {
    sink.error(
        BAD_NAME,
        origin,
        format!("`{}` cannot be a name", value::cut(name)),
        "use up to 64 letters, digits, `-` and `_`, beginning with a letter or digit",
    );
}

/// Reports a name that is invalid for zone objects.
pub(crate) fn bad_zone_name(problem: &ZoneProblem, origin: &Origin, sink: &mut Sink) {
    let (reason, remedy) = match problem {
        ZoneProblem::NameTooLong { name, chars, max, .. } => {
            (format!("the name `{}` has {chars} characters", value::cut(name)), format!("use at most {max}"))
        }
        ZoneProblem::BadName { name, .. } => (
            format!("`{}` cannot be a name", value::cut(name)),
            "use up to 64 letters, digits, `-`, `_`, `$` and `^`, beginning with a letter or `_`".to_owned(),
        ),
        other => (other.to_string(), "choose another name".to_owned()),
    };
    sink.error(BAD_NAME, origin, reason, remedy);
}

fn example_name(def: &SectionDef) -> &'static str {
    match def.name {
        "switch" => "edge1",
        "ethernet_switch" => "tor1",
        "infiniband_switch" => "ib1",
        "host" => "server1",
        "storage" => "disk1",
        _ => "reads",
    }
}

fn unknown_section(name: &str, value: &DeValue<'_>, origin: &Origin, sink: &mut Sink) {
    let lower = name.to_lowercase();
    let near = SECTIONS.iter().find(|s| s.also.contains(&lower.as_str())).or_else(|| {
        let near = crate::suggest::closest(name, SECTIONS.iter().map(|s| s.name))?;
        schema::section(near)
    });
    let list: Vec<String> = SECTIONS.iter().map(SectionDef::heading).collect();
    let is_table = matches!(value, DeValue::Table(_) | DeValue::Array(_));
    if !is_table && let Some(home) = SECTIONS.iter().find(|s| s.key(name).is_some()) {
        sink.error(
            check::UNKNOWN_KEY,
            origin,
            format!("the key `{}` stands outside of every section", value::cut(name)),
            format!("put it below {}", home.heading()),
        );
        return;
    }
    if near.is_none_or(|near| TOPOLOGY.contains(&near.name)) {
        sink.miss_section();
    }
    sink.error(
        UNKNOWN_SECTION,
        origin,
        format!("there is no section `{}`", value::cut(name)),
        match near {
            Some(near) => format!("did you mean {}?", near.heading()),
            None => format!("the sections are {}", list.join(", ")),
        },
    );
}
