//! JSON with the line of each value, and which values were used. `serde_json` reads it; the place
//! of a value is that of its text in the file.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::fmt;

/// A value with its place.
#[derive(Debug)]
pub(super) struct Value {
    pub line: u32,
    pub kind: Kind,
    /// Set when the importer reads the value.
    pub used: Cell<bool>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Object(Vec<(String, Value)>),
    Array(Vec<Value>),
    /// Text, number, boolean or null, as text.
    Leaf(String),
}

/// A text that is no JSON, with the line of the error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BadJson {
    pub line: u32,
    pub reason: String,
}

/// Greatest depth of nested values.
const MAX_DEPTH: u32 = 64;

/// True if a text that begins with a brace or bracket is JSON and not the output of a command.
pub(super) fn looks_like(text: &str) -> bool {
    let inner = text[1..].trim_start();
    inner.starts_with(['"', '{', '[', '}', ']'])
}

impl Value {
    pub fn get(&self, key: &str) -> Option<&Value> {
        match &self.kind {
            Kind::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the elements of an array, or the value itself: some clients write a list of one as a
    /// plain object. An object without members is an empty list.
    pub fn items(&self) -> Box<dyn Iterator<Item = &Value> + '_> {
        match &self.kind {
            Kind::Array(items) => Box::new(items.iter()),
            Kind::Object(members) if members.is_empty() => Box::new(std::iter::empty()),
            _ => Box::new(std::iter::once(self)),
        }
    }

    /// True for an object or array without any leaf.
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Object(members) => members.iter().all(|(_, value)| value.is_empty()),
            Kind::Array(items) => items.iter().all(Value::is_empty),
            Kind::Leaf(_) => false,
        }
    }

    /// Returns a leaf as text, and marks it as used.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.leaf()
    }

    pub fn leaf(&self) -> Option<&str> {
        match &self.kind {
            Kind::Leaf(text) => {
                self.used.set(true);
                Some(text)
            }
            _ => None,
        }
    }

    /// Marks all values inside as not used.
    pub fn unused(&self) {
        match &self.kind {
            Kind::Object(members) => members.iter().for_each(|(_, value)| value.unused()),
            Kind::Array(items) => items.iter().for_each(Value::unused),
            Kind::Leaf(_) => self.used.set(false),
        }
    }

    /// Returns a leaf as a number, and marks it as used.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }
}

/// Reads all documents of a text.
pub(super) fn read(text: &str) -> (Vec<Value>, Option<BadJson>) {
    let text = text.trim_start_matches('\u{feff}');
    let lines = Lines { start: text.as_ptr() as usize, ends: text.match_indices('\n').map(|(at, _)| at).collect() };
    let mut documents = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let value = match document {
            Ok(raw) => lines.value(raw.get(), 0),
            Err(error) => Err(BadJson { line: error.line() as u32, reason: format!("is no JSON: {error}") }),
        };
        match value {
            Ok(value) => documents.push(value),
            Err(error) => return (documents, Some(error)),
        }
    }
    (documents, None)
}

/// The file: the address of its first byte, and the offsets at which its lines end.
struct Lines {
    start: usize,
    ends: Vec<usize>,
}

impl Lines {
    /// Returns the line of a part of the file.
    fn line(&self, part: &str) -> u32 {
        let at = (part.as_ptr() as usize).saturating_sub(self.start);
        self.ends.partition_point(|end| *end < at) as u32 + 1
    }

    fn value(&self, raw: &str, depth: u32) -> Result<Value, BadJson> {
        let line = self.line(raw);
        let bad = |reason: String| BadJson { line, reason };
        if depth > MAX_DEPTH {
            return Err(bad("nests too deeply".to_owned()));
        }
        let parts = |is_object| Parts { is_object }.deserialize(&mut serde_json::Deserializer::from_str(raw));
        let parts = |is_object| parts(is_object).map_err(|error| bad(format!("is no JSON: {error}")));
        let kind = match raw.as_bytes().first() {
            Some(b'{') => {
                let member = |(name, raw): (String, &RawValue)| Ok((name, self.value(raw.get(), depth + 1)?));
                Kind::Object(parts(true)?.into_iter().map(member).collect::<Result<_, _>>()?)
            }
            Some(b'[') => {
                let item = |(_, raw): (String, &RawValue)| self.value(raw.get(), depth + 1);
                Kind::Array(parts(false)?.into_iter().map(item).collect::<Result<_, _>>()?)
            }
            Some(b'"') => Kind::Leaf(serde_json::from_str(raw).map_err(|error| bad(format!("is no JSON: {error}")))?),
            _ => Kind::Leaf(raw.to_owned()),
        };
        Ok(Value { line, kind, used: Cell::new(false) })
    }
}

/// The members of an object, or the items of an array with empty names, in their order.
struct Parts {
    is_object: bool,
}

impl<'de> DeserializeSeed<'de> for Parts {
    type Value = Vec<(String, &'de RawValue)>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.is_object {
            true => deserializer.deserialize_map(self),
            false => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Parts {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(member) = map.next_entry()? {
            parts.push(member);
        }
        Ok(parts)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(item) = seq.next_element()? {
            parts.push((String::new(), item));
        }
        Ok(parts)
    }
}
