//! One element of a lab file, and the layers of its values.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::check::{Checked, MISSING_KEY, is_below};
use crate::diagnostic::{Origin, Sink};
use crate::overrides::SetEntry;
use crate::schema::{Fallback, Key, SectionDef};
use crate::value::Value;
use sanloom_fc::config::{EthernetRate, InfinibandRate, LineRate};

/// One node, link table, zone table or similar, with the layers of its values.
#[derive(Clone)]
pub(crate) struct Element<'d> {
    /// Definition of the section.
    pub def: &'static SectionDef,
    /// Name; for lists, the number in the file, from 1.
    pub name: String,
    /// Index within the range that defines the element.
    pub offset: u64,
    /// Length of that range.
    pub count: u64,
    /// Location of the table header.
    pub header: Origin,
    /// Layers, highest priority first.
    pub layers: Vec<&'d Checked>,
    pub sets: Vec<&'d SetEntry>,
}

impl<'d> Element<'d> {
    /// Returns the value of a key, with its location, from the layer of highest priority that has a
    /// valid one.
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

    /// Returns whether an override of an alternative key replaces this one, for example `arrivals`
    /// instead of `depth`.
    fn is_replaced(&self, path: &str) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        let own = self.sets.iter().any(|s| s.key.path == path);
        !own && self.sets.iter().any(|s| self.def.are_alternatives(s.key.path, path))
    }

    /// Returns the location for diagnostics about a key: that of its value, or the header of the
    /// element.
    pub fn origin(&self, path: &str) -> Origin {
        let set = self.sets.iter().find(|s| s.key.path == path).map(|s| &s.origin);
        let written = self.written().filter_map(|l| l.get(path)).map(|(_, origin)| origin);
        set.into_iter().chain(written).find(|origin| **origin != Origin::BuiltIn).unwrap_or(&self.header).clone()
    }

    /// Returns whether the user gave the key, here or for all elements of the section, valid or
    /// not.
    pub fn is_given(&self, path: &str) -> bool {
        self.sets.iter().any(|s| s.key.path == path)
            || !self.is_replaced(path) && self.written().filter_map(|l| l.get(path)).any(|(_, o)| *o != Origin::BuiltIn)
    }

    /// Returns the layers that may have values of the user.
    fn written(&self) -> impl Iterator<Item = &'d Checked> {
        self.layers.iter().copied().filter(|layer| !layer.is_built_in)
    }

    /// Returns whether any layer has `table`, or the user gave one of its keys.
    pub fn has_table(&self, table: &str) -> bool {
        self.get(table).is_some() || self.gives_table(table)
    }

    /// Returns whether the user gave `table` or one of its keys, valid or not.
    pub fn gives_table(&self, table: &str) -> bool {
        let mut below = self.written().flat_map(|layer| layer.below(table));
        self.is_given(table)
            || self.sets.iter().any(|set| is_below(set.key.path, table))
            || below.any(|(path, origin)| *origin != Origin::BuiltIn && !self.is_replaced(path))
    }

    /// Reports every required key that is missing.
    pub fn require_keys(&self, sink: &mut Sink) {
        for key in self.def.keys {
            if key.fallback == Fallback::Required && !self.is_given(key.path) {
                self.require(key, sink);
            }
        }
    }

    /// Reports that `key` is missing.
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

    /// Returns a number, whose kind limits it to the range of `T`.
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

    pub fn time(&self, path: &str) -> Option<sanloom_fc::config::Picos> {
        match self.get(path)? {
            (Value::Time(time), _) => Some(*time),
            _ => None,
        }
    }

    pub fn times(&self, path: &str) -> Option<sanloom_fc::config::TimeDistribution> {
        match self.get(path)? {
            (Value::Times(times), _) => Some(*times),
            _ => None,
        }
    }

    pub fn size(&self, path: &str) -> Option<u64> {
        match self.get(path)? {
            (Value::Size(bytes), _) => Some(*bytes),
            _ => None,
        }
    }

    /// Returns a data rate in bit/s.
    pub fn bit_rate(&self, path: &str) -> Option<u64> {
        match self.get(path)? {
            (Value::BitRate(rate), _) => Some(*rate),
            _ => None,
        }
    }

    pub fn line_rate(&self, path: &str) -> Option<LineRate> {
        match self.get(path)? {
            (Value::LineRate(rate), _) => Some(*rate),
            _ => None,
        }
    }

    pub fn ethernet_rate(&self, path: &str) -> Option<EthernetRate> {
        match self.get(path)? {
            (Value::EthernetRate(rate), _) => Some(*rate),
            _ => None,
        }
    }

    pub fn infiniband_rate(&self, path: &str) -> Option<InfinibandRate> {
        match self.get(path)? {
            (Value::InfinibandRate(rate), _) => Some(*rate),
            _ => None,
        }
    }

    /// Returns a list of numbers, in ascending order.
    pub fn numbers(&self, path: &str) -> &'d [u64] {
        match self.get(path) {
            Some((Value::Numbers(numbers), _)) => numbers,
            _ => &[],
        }
    }

    pub fn wwn(&self, path: &str) -> Option<u64> {
        match self.get(path)? {
            (Value::Wwn(name), _) => Some(*name),
            _ => None,
        }
    }

    /// Returns the value in `values` of the chosen word.
    pub fn choice<T: Copy>(&self, path: &str, values: &[T]) -> Option<T> {
        match self.get(path)? {
            (Value::Choice(index), _) => values.get(*index).copied(),
            _ => None,
        }
    }

    /// Returns names and ranges as written in the file.
    pub fn patterns(&self, path: &str) -> &'d [(String, Origin)] {
        match self.get(path) {
            Some((Value::Patterns(list), _)) => list,
            _ => &[],
        }
    }
}
