//! A JSON Schema of the lab file for editors, generated from the definitions that the parser uses.
//!
//! The schema describes sections, keys, required keys, types, units and words. It cannot describe
//! names and their relations, so a file may satisfy the schema and still have errors for
//! [`crate::load`].

use crate::forms::{self, Variant};
use crate::presets;
use crate::schema::{Fallback, Form, Key, Kind, NEEDS, Need, SECTIONS, SectionDef, When};
use crate::units::{self, Dimension};
use sanloom_fc::config::{EthernetRate, InfinibandRate, LineRate};
use std::fmt::Write;

/// First line of a lab by which editors find its schema, the output of [`json_schema`] in a file
/// beside the lab. Taplo, Tombi and "Even Better TOML" read it.
pub const SCHEMA_LINE: &str = "#:schema sanloom.schema.json";

/// Returns a JSON Schema (draft-07) of the lab file.
pub fn json_schema() -> String {
    let sections: Vec<(String, Json)> = SECTIONS.iter().map(|def| (def.name.to_owned(), section(def))).collect();
    let root = object(vec![
        ("$schema", text("http://json-schema.org/draft-07/schema#")),
        ("title", text("sanloom lab file")),
        ("type", text("object")),
        ("properties", Json::Object(sections)),
        ("additionalProperties", Json::Flag(false)),
    ]);
    let mut out = String::new();
    root.write(0, &mut out);
    out.push('\n');
    out
}

/// A JSON value, with the members of an object in their order.
#[derive(Clone)]
enum Json {
    Text(String),
    Number(String),
    Flag(bool),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn write(&self, indent: usize, out: &mut String) {
        let line = |out: &mut String, indent: usize| {
            out.push('\n');
            out.push_str(&"  ".repeat(indent));
        };
        match self {
            Json::Text(text) => write_text(text, out),
            Json::Number(number) => out.push_str(number),
            Json::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Json::List(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    line(out, indent + 1);
                    element.write(indent + 1, out);
                }
                line(out, indent);
                out.push(']');
            }
            Json::Object(members) if members.is_empty() => out.push_str("{}"),
            Json::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    line(out, indent + 1);
                    write_text(name, out);
                    out.push_str(": ");
                    value.write(indent + 1, out);
                }
                line(out, indent);
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn text(value: &str) -> Json {
    Json::Text(value.to_owned())
}

fn object(members: Vec<(&str, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn any_of(choices: Vec<Json>) -> Json {
    object(vec![("anyOf", Json::List(choices))])
}

fn pattern(pattern: String) -> Json {
    object(vec![("type", text("string")), ("pattern", Json::Text(pattern))])
}

fn section(def: &SectionDef) -> Json {
    let table = table(def, "");
    let needs = needs(def);
    let shape = match def.form {
        Form::Single => vec![("description", text(def.meaning)), ("allOf", Json::List(vec![table]))],
        Form::Named => {
            let mut shape =
                vec![("description", text(def.meaning)), ("type", text("object")), ("additionalProperties", table)];
            if !needs.is_empty() {
                // A table for a range or for all names may give what the table of a name lacks.
                let shares = pattern("[{*]".to_owned());
                shape.push(("if", object(vec![("propertyNames", object(vec![("not", shares)]))])));
                shape.push(("then", object(vec![("additionalProperties", all_of(needs))])));
            }
            shape
        }
        // `[link]` with one bracket is one element.
        Form::List => {
            let items = if needs.is_empty() { table } else { all_of([vec![table], needs].concat()) };
            vec![("description", text(def.meaning)), ("type", text("array")), ("items", items)]
        }
    };
    object(shape)
}

/// The keys that an element of the section must have, always or under a condition.
fn needs(def: &SectionDef) -> Vec<Json> {
    let required = def.keys.iter().filter(|key| key.fallback == Fallback::Required);
    let required: Vec<&str> = required.map(|key| key.path).collect();
    let always = (!required.is_empty()).then(|| requires(&required));
    let conditional = NEEDS.iter().filter(|need| need.section == def.name).map(need);
    always.into_iter().chain(conditional).collect()
}

fn need(need: &Need) -> Json {
    let one_of = || any_of(need.one_of.iter().map(|keys| requires(keys)).collect());
    let when = |condition: Json| object(vec![("if", condition), ("then", one_of())]);
    match need.when {
        When::Always => one_of(),
        When::Table(table) => object(vec![("properties", object(vec![(table, one_of())]))]),
        When::Is(key, values) => when(object(vec![
            ("properties", object(vec![(key, words(values.iter().copied()))])),
            ("required", Json::List(vec![text(key)])),
        ])),
        When::Has(key) => when(requires(&[key])),
    }
}

fn requires(keys: &[&str]) -> Json {
    object(vec![("required", Json::List(keys.iter().map(|key| text(key)).collect()))])
}

fn all_of(parts: Vec<Json>) -> Json {
    object(vec![("allOf", Json::List(parts))])
}

/// The keys below `prefix`, which is empty or the name of a table with a dot.
fn table(def: &SectionDef, prefix: &str) -> Json {
    let below = |key: &&Key| key.path.strip_prefix(prefix).is_some_and(|rest| !rest.contains('.'));
    let members = def.keys.iter().filter(below).map(|key| (key.path[prefix.len()..].to_owned(), member(def, key)));
    object(vec![
        ("type", text("object")),
        ("properties", Json::Object(members.collect())),
        ("additionalProperties", Json::Flag(false)),
    ])
}

fn member(def: &SectionDef, key: &Key) -> Json {
    let value = match key.kind {
        Kind::Table => table(def, &format!("{}.", key.path)),
        ref kind => value(kind),
    };
    match value {
        Json::Object(mut members) => {
            members.insert(0, ("description".to_owned(), text(key.meaning)));
            Json::Object(members)
        }
        other => other,
    }
}

fn value(kind: &Kind) -> Json {
    match *kind {
        Kind::Text | Kind::Pattern => object(vec![("type", text("string"))]),
        Kind::Integer { min, max } => integer(min, max),
        Kind::IntegerOr { word, min, max } => any_of(vec![integer(min, max), words([word].into_iter())]),
        Kind::Share => object(vec![
            ("type", text("number")),
            ("minimum", Json::Number("0".to_owned())),
            ("maximum", Json::Number("1".to_owned())),
        ]),
        Kind::Number => object(vec![("type", text("number"))]),
        Kind::NumberFrom { min } => object(vec![("type", text("number")), ("minimum", Json::Number(min.to_string()))]),
        Kind::Bound => object(vec![("type", Json::List(vec![text("number"), text("string")]))]),
        Kind::Flag => object(vec![("type", text("boolean"))]),
        Kind::Time => quantity(&units::TIME),
        Kind::TimeOr { word } => any_of(vec![quantity(&units::TIME), words([word].into_iter())]),
        Kind::Length => quantity(&units::LENGTH),
        Kind::Size { .. } => quantity(&units::SIZE),
        Kind::PerSecond => quantity(&units::PER_SECOND),
        Kind::Clock => quantity(&units::CLOCK),
        Kind::BitRate => quantity(&units::BIT_RATE),
        Kind::LineRate => {
            let names: Vec<&str> = LineRate::ALL.iter().map(|rate| rate.name()).collect();
            pattern(format!("^\\s*{}\\s*$", any_case(&names)))
        }
        Kind::LinkRate => {
            let names = LineRate::ALL.iter().map(|rate| rate.name());
            let names = names.chain(EthernetRate::ALL.iter().map(|rate| rate.name()));
            let names: Vec<&str> = names.chain(InfinibandRate::ALL.iter().map(|rate| rate.name())).collect();
            pattern(format!("^\\s*{}\\s*$", any_case(&names)))
        }
        Kind::Numbers { min, max } => {
            any_of(vec![integer(min, max), object(vec![("type", text("array")), ("items", integer(min, max))])])
        }
        Kind::ChoiceOrFile(all) => {
            any_of(vec![words(all.iter().map(|word| word.word)), pattern("\\.toml$".to_owned())])
        }
        Kind::Choice(all) => words(all.iter().map(|word| word.word)),
        Kind::Preset => words(presets::NAMES.iter().map(|(name, _)| *name)),
        Kind::HostPreset => words(presets::HOST_NAMES.iter().map(|(name, _)| *name)),
        Kind::SwitchPreset => words(presets::SWITCH_NAMES.iter().map(|(name, _)| *name)),
        Kind::Wwn => pattern("^([0-9A-Fa-f]{16}|[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){7})$".to_owned()),
        Kind::Patterns => any_of(vec![
            object(vec![("type", text("string"))]),
            object(vec![("type", text("array")), ("items", object(vec![("type", text("string"))]))]),
        ]),
        Kind::Arrivals => any_of(vec![arrival(), object(vec![("type", text("array")), ("items", arrival())])]),
        Kind::Sizes => {
            let weighted = object(vec![
                ("type", text("object")),
                ("propertyNames", quantity(&units::SIZE)),
                ("additionalProperties", object(vec![("type", text("number"))])),
            ]);
            let mut forms = vec![quantity(&units::SIZE), weighted];
            forms.extend(forms::SIZES.iter().map(|variant| variant_table(forms::DISTRIBUTION, variant)));
            any_of(forms)
        }
        Kind::StopRule => pattern("^\\s*ci [0-9.]+ *% *of .+$".to_owned()),
        Kind::Times => {
            let mut forms = vec![quantity(&units::TIME)];
            forms.extend(forms::TIMES.iter().map(|variant| variant_table(forms::DISTRIBUTION, variant)));
            any_of(forms)
        }
        Kind::Table => object(vec![("type", text("object"))]),
    }
}

fn arrival() -> Json {
    let mut forms = vec![pattern(format!("^\\s*(poisson|constant) {}$", quantity_pattern(&units::PER_SECOND)))];
    forms.extend(forms::ARRIVALS.iter().map(|variant| variant_table(forms::PROCESS, variant)));
    any_of(forms)
}

/// One form of a value written as a table.
fn variant_table(selector: &str, variant: &Variant) -> Json {
    let mut members = vec![(selector.to_owned(), words([variant.word].into_iter()))];
    members.extend(variant.keys.iter().map(|(name, kind, _)| ((*name).to_owned(), value(kind))));
    let required = members.iter().map(|(name, _)| text(name)).collect();
    object(vec![
        ("type", text("object")),
        ("properties", Json::Object(members)),
        ("required", Json::List(required)),
        ("additionalProperties", Json::Flag(false)),
    ])
}

fn integer(min: u64, max: u64) -> Json {
    object(vec![
        ("type", text("integer")),
        ("minimum", Json::Number(min.to_string())),
        ("maximum", Json::Number(max.to_string())),
    ])
}

fn words<'w>(words: impl Iterator<Item = &'w str>) -> Json {
    object(vec![("enum", Json::List(words.map(text).collect()))])
}

fn quantity(dimension: &Dimension) -> Json {
    pattern(format!("^{}$", quantity_pattern(dimension)))
}

fn quantity_pattern(dimension: &Dimension) -> String {
    let units: Vec<&str> = dimension.units.iter().map(|(name, _)| *name).collect();
    format!("\\s*[0-9][0-9_]*(\\.[0-9_]+)?\\s*({})\\s*", units.join("|"))
}

/// A pattern of words whose letters may have either case.
fn any_case(words: &[&str]) -> String {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase()),
        false => c.to_string(),
    };
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("({})", words.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_and_key_is_in_the_schema() {
        let schema = json_schema();
        for section in SECTIONS {
            assert!(schema.contains(&format!("\"{}\": {{", section.name)), "{}", section.name);
            for key in section.keys {
                let name = key.path.rsplit('.').next().unwrap_or_default();
                assert!(schema.contains(&format!("\"{name}\": {{")), "{}.{}", section.name, key.path);
            }
        }
    }
}
