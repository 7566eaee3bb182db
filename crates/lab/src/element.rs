//! One thing that a lab file describes, and the layers its values come from.

use crate::check::{Checked, MISSING_KEY};
use crate::diagnostic::{Origin, Sink};
use crate::overrides::SetEntry;
use crate::schema::{Fallback, Key, SectionDef};
use crate::value::Value;

/// One node, link table, zone table, … with the layers its values come from.
#[derive(Clone)]
pub(crate) struct Element<'d> {
    /// Which section.
    pub def: &'static SectionDef,
    /// Its name; for lists the number in the file, from 1.
    pub name: String,
    /// Position within the range it comes from.
    pub offset: u64,
    /// Length of that range.
    pub count: u64,
    /// Where it is written.
    pub header: Origin,
    /// Most important first.
    pub layers: Vec<&'d Checked>,
    pub sets: Vec<&'d SetEntry>,
}

impl<'d> Element<'d> {
    /// The value of a key from the most important layer that has a good one, with its place.
    pub fn get(&self, path: &str) -> Option<(&'d Value, &'d Origin)> {
        let set = self.sets.iter().find(|s| s.key.path == path && s.value != Value::Bad);
        if let Some(set) = set {
            return Some((&set.value, &set.origin));
        }
        if self.is_replaced(path) {
            return None;
        }
        self.layers.iter().filter_map(|layer| layer.get(path)).find(|(value, _)| **value != Value::Bad)
    }

    /// True if an override of another key says instead what this one does, as `arrivals` instead of `depth`.
    fn is_replaced(&self, path: &str) -> bool {
        let own = self.sets.iter().any(|s| s.key.path == path);
        !own && self.sets.iter().any(|s| self.def.are_alternatives(s.key.path, path))
    }

    /// The place to point at for a key: where its value stands, or the header of the element.
    pub fn origin(&self, path: &str) -> Origin {
        let set = self.sets.iter().find(|s| s.key.path == path).map(|s| &s.origin);
        let written = self.layers.iter().filter_map(|l| l.get(path)).map(|(_, origin)| origin);
        set.into_iter().chain(written).find(|origin| **origin != Origin::BuiltIn).unwrap_or(&self.header).clone()
    }

    /// True if the user gave the key, here or for all elements of the section, well or badly.
    pub fn is_given(&self, path: &str) -> bool {
        self.sets.iter().any(|s| s.key.path == path)
            || !self.is_replaced(path)
                && self.layers.iter().filter_map(|l| l.get(path)).any(|(_, o)| *o != Origin::BuiltIn)
    }

    /// Reports every key that must be given and is not.
    pub fn require_keys(&self, sink: &mut Sink) {
        for key in self.def.keys {
            if key.fallback == Fallback::Required && !self.is_given(key.path) {
                self.require(key, sink);
            }
        }
    }

    /// Reports that `key` is needed here.
    pub fn require(&self, key: &Key, sink: &mut Sink) {
        sink.error(
            MISSING_KEY,
            &self.header,
            format!("`{}` is missing", key.path),
            format!("add it, for example {} = {}", key.path, key.example),
        );
    }

    pub fn text(&self, path: &str) -> Option<&'d str> {
        match self.get(path)? {
            (Value::Text(text), _) => Some(text),
            _ => None,
        }
    }

    /// A number that its kind limits to the range of `T`.
    pub fn integer<T: TryFrom<u64>>(&self, path: &str) -> Option<T> {
        match self.get(path)? {
            (Value::Integer(number), _) => T::try_from(*number).ok(),
            _ => None,
        }
    }

    pub fn number(&self, path: &str) -> Option<f64> {
        match self.get(path)? {
            (Value::Number(number), _) => Some(*number),
            _ => None,
        }
    }

    pub fn flag(&self, path: &str) -> bool {
        matches!(self.get(path), Some((Value::Flag(true), _)))
    }

    pub fn time(&self, path: &str) -> Option<sanloom_core::config::Picos> {
        match self.get(path)? {
            (Value::Time(time), _) => Some(*time),
            _ => None,
        }
    }

    pub fn size(&self, path: &str) -> Option<u64> {
        match self.get(path)? {
            (Value::Size(bytes), _) => Some(*bytes),
            _ => None,
        }
    }

    pub fn wwn(&self, path: &str) -> Option<u64> {
        match self.get(path)? {
            (Value::Wwn(name), _) => Some(*name),
            _ => None,
        }
    }

    /// The value that the chosen word stands for.
    pub fn choice<T: Copy>(&self, path: &str, values: &[T]) -> Option<T> {
        match self.get(path)? {
            (Value::Choice(index), _) => values.get(*index).copied(),
            _ => None,
        }
    }

    /// Names and ranges as they are written.
    pub fn patterns(&self, path: &str) -> &'d [(String, Origin)] {
        match self.get(path) {
            Some((Value::Patterns(list), _)) => list,
            _ => &[],
        }
    }
}
