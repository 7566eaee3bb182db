//! Values of a TOML table, and the mistakes in them.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Text of a file, and its mistakes so far: byte offset, reason, remedy.
pub(super) struct Reader<'t> {
    text: &'t str,
    pub found: Vec<(usize, String, String)>,
}

/// A table of the file.
pub(super) struct Table<'a, 't> {
    entries: &'a DeTable<'t>,
    /// Byte offset of the table.
    pub at: usize,
    /// Path of the table with a dot at the end; empty for the root.
    path: String,
}

/// One of several words or tables with the name of the word.
pub(super) enum Variant<'a, 't> {
    Word(&'static str),
    Table(&'static str, Table<'a, 't>),
}

impl<'a, 't> Table<'a, 't> {
    /// Returns a value, or none if the key is missing.
    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.entries.iter().find(|entry| entry.0.get_ref() == key).map(|entry| entry.1)
    }

    /// Byte offset of a value, or of the table if the key is missing.
    pub fn at_key(&self, key: &str) -> usize {
        self.get(key).map_or(self.at, |value| value.span().start)
    }
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Reader<'t> {
        Reader { text, found: Vec::new() }
    }

    /// Parses the text, and reports errors of the syntax.
    pub fn parse(&mut self) -> Spanned<DeTable<'t>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let at = error.span().map_or(0, |span: Range<usize>| span.start);
            let reason = error.message().replace('\n', " ");
            self.mistake(at, reason, "write key = value, and tables as [cache] or [[zones]]");
        }
        table
    }

    pub fn root<'a>(&self, table: &'a Spanned<DeTable<'t>>) -> Table<'a, 't> {
        Table { entries: table.get_ref(), at: 0, path: String::new() }
    }

    pub fn mistake(&mut self, at: usize, reason: impl Into<String>, remedy: impl Into<String>) {
        self.found.push((at, reason.into(), remedy.into()));
    }

    /// Reports keys that are not among `keys`.
    pub fn keys(&mut self, table: &Table<'_, '_>, keys: &[&str]) {
        for (key, _) in table.entries.iter() {
            if !keys.contains(&key.get_ref().as_ref()) {
                let name = short(key.get_ref());
                let reason = format!("`{}{name}` is not a parameter", table.path);
                self.mistake(key.span().start, reason, format!("the keys here are {}", keys.join(", ")));
            }
        }
    }

    fn missing(&mut self, table: &Table<'_, '_>, key: &str, example: impl Display) {
        self.mistake(table.at, format!("`{}{key}` is missing", table.path), format!("add {key} = {example}"));
    }

    fn wrong(&mut self, table: &Table<'_, '_>, key: &str, wanted: &str) {
        let reason = format!("`{}{key}` is not {wanted}", table.path);
        self.mistake(table.at_key(key), reason, format!("write {wanted}"));
    }

    /// Returns a number of a range. A missing key has the value `fallback`.
    pub fn number(
        &mut self,
        table: &Table<'_, '_>,
        key: &str,
        range: RangeInclusive<f64>,
        fallback: Option<f64>,
    ) -> f64 {
        match table.get(key) {
            None => {
                if fallback.is_none() {
                    self.missing(table, key, range.start().max(1.0).min(*range.end()));
                }
            }
            Some(value) => match number(value.get_ref()) {
                Some(number) if range.contains(&number) => return number,
                Some(number) => {
                    let reason = format!("`{}{key}` is {number}", table.path);
                    let remedy = format!("set a number from {} to {}", range.start(), range.end());
                    self.mistake(value.span().start, reason, remedy);
                }
                None => self.wrong(table, key, "a number"),
            },
        }
        fallback.unwrap_or(*range.start())
    }

    /// Returns a whole number of a range. A missing key has the value `fallback`.
    pub fn integer(
        &mut self,
        table: &Table<'_, '_>,
        key: &str,
        range: RangeInclusive<u64>,
        fallback: Option<u64>,
    ) -> u64 {
        match table.get(key) {
            None => {
                if fallback.is_none() {
                    self.missing(table, key, (*range.start()).max(1));
                }
            }
            Some(value) => match value.get_ref() {
                DeValue::Integer(digits) => {
                    let number = u64::from_str_radix(&digits.as_str().replace('_', ""), digits.radix());
                    match number {
                        Ok(number) if range.contains(&number) => return number,
                        _ => {
                            let reason = format!("`{}{key}` is {}", table.path, short(digits.as_str()));
                            let remedy = format!("set a whole number from {} to {}", range.start(), range.end());
                            self.mistake(value.span().start, reason, remedy);
                        }
                    }
                }
                _ => self.wrong(table, key, "a whole number"),
            },
        }
        fallback.unwrap_or(*range.start())
    }

    /// Returns true or false; a missing key is false.
    pub fn flag(&mut self, table: &Table<'_, '_>, key: &str) -> bool {
        match table.get(key).map(Spanned::get_ref) {
            None => false,
            Some(DeValue::Boolean(flag)) => *flag,
            Some(_) => {
                self.wrong(table, key, "true or false");
                false
            }
        }
    }

    /// Returns a text that is not empty.
    pub fn text(&mut self, table: &Table<'_, '_>, key: &str) -> String {
        match table.get(key).map(Spanned::get_ref) {
            None => self.missing(table, key, "\"my-disk\""),
            Some(DeValue::String(text)) if (1..=200).contains(&text.len()) => return text.to_string(),
            Some(_) => self.wrong(table, key, "a text in quotes of 1 to 200 characters"),
        }
        String::new()
    }

    /// Returns a table. `None` if it is missing or has another type.
    pub fn table<'a, 'v>(&mut self, table: &Table<'a, 'v>, key: &str, is_required: bool) -> Option<Table<'a, 'v>> {
        match table.get(key) {
            None if is_required => {
                let reason = format!("the table `{}{key}` is missing", table.path);
                self.mistake(table.at, reason, format!("add [{}{key}]", table.path));
            }
            None => {}
            Some(value) => match value.get_ref() {
                DeValue::Table(entries) => {
                    return Some(Table { entries, at: value.span().start, path: format!("{}{key}.", table.path) });
                }
                _ => self.wrong(table, key, "a table"),
            },
        }
        None
    }

    /// Returns the tables of a list.
    pub fn tables<'a, 'v>(&mut self, table: &Table<'a, 'v>, key: &str, most: usize) -> Vec<Table<'a, 'v>> {
        let items = self.items(table, key, most, &format!("a table [[{key}]] for each of them"));
        let mut tables = Vec::with_capacity(items.len());
        for (number, value) in items.iter().enumerate() {
            match value.get_ref() {
                DeValue::Table(entries) => {
                    let path = format!("{}{key}[{number}].", table.path);
                    tables.push(Table { entries, at: value.span().start, path });
                }
                _ => self.mistake(value.span().start, format!("`{key}[{number}]` is not a table"), "write a table"),
            }
        }
        tables
    }

    /// Returns the items of a list with at most `most` of them. A missing list is empty, which is a
    /// mistake unless the example is empty.
    pub fn items<'a, 'v>(
        &mut self,
        table: &Table<'a, 'v>,
        key: &str,
        most: usize,
        example: &str,
    ) -> &'a [Spanned<DeValue<'v>>] {
        match table.get(key).map(Spanned::get_ref) {
            None if example.is_empty() => {}
            None => {
                let reason = format!("`{}{key}` is missing", table.path);
                self.mistake(table.at, reason, format!("add {example}"));
            }
            Some(DeValue::Array(items)) if items.len() <= most => return &items[..],
            Some(DeValue::Array(items)) => {
                let reason = format!("`{}{key}` has {} items", table.path, items.len());
                self.mistake(table.at_key(key), reason, format!("give at most {most}"));
            }
            Some(_) => self.wrong(table, key, "a list"),
        }
        &[]
    }

    /// Returns one of `words`, or a table with one of these names and nothing else.
    pub fn variant<'a, 'v>(
        &mut self,
        table: &Table<'a, 'v>,
        key: &str,
        words: &[&'static str],
        is_required: bool,
    ) -> Option<Variant<'a, 'v>> {
        let list = words.join(", ");
        let Some(value) = table.get(key) else {
            if is_required {
                self.mistake(table.at, format!("`{}{key}` is missing", table.path), format!("give one of {list}"));
            }
            return None;
        };
        let at = value.span().start;
        let (name, inner) = match value.get_ref() {
            DeValue::String(text) => (text.as_ref(), None),
            DeValue::Table(entries) => {
                let mut all = entries.iter();
                match (all.next(), all.next()) {
                    (Some((name, inner)), None) => (name.get_ref().as_ref(), Some(inner)),
                    _ => {
                        let reason = format!("`{}{key}` does not have exactly one key", table.path);
                        self.mistake(at, reason, format!("give one of {list}"));
                        return None;
                    }
                }
            }
            _ => {
                self.wrong(table, key, &format!("one of {list}"));
                return None;
            }
        };
        let Some(word) = words.iter().copied().find(|word| *word == name) else {
            let reason = format!("`{}{key}` is `{}`", table.path, short(name));
            self.mistake(at, reason, format!("choose one of {list}"));
            return None;
        };
        match inner.map(|inner| (inner.span().start, inner.get_ref())) {
            None => Some(Variant::Word(word)),
            Some((at, DeValue::Table(entries))) => {
                Some(Variant::Table(word, Table { entries, at, path: format!("{}{key}.{word}.", table.path) }))
            }
            Some((at, _)) => {
                self.mistake(at, format!("`{}{key}.{word}` is not a table", table.path), "write a table");
                None
            }
        }
    }
}

/// Returns the value of a finite number.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    let digits: &str = match value {
        DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str(),
        DeValue::Float(digits) => digits.as_str(),
        _ => return None,
    };
    digits.replace('_', "").parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a text that is short enough for a message.
fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        None => Cow::Borrowed(text),
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
    }
}
