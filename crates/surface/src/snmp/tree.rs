//! Objects of the agent as they are at one time: [`Tree`].

use super::ber::Oid;
use super::message::Value;

/// Values by name, in the order of the names.
#[derive(Clone, Debug, Default)]
pub struct Tree(Vec<(Oid, Value)>);

impl Tree {
    /// Sorts the values. Of two with one name, the first counts.
    pub fn new(mut values: Vec<(Oid, Value)>) -> Tree {
        values.sort_by(|a, b| a.0.cmp(&b.0));
        values.dedup_by(|next, own| next.0 == own.0);
        Tree(values)
    }

    /// The value of a name.
    pub fn get(&self, name: &[u32]) -> Value {
        match self.0.binary_search_by(|(own, _)| own.as_slice().cmp(name)) {
            Ok(at) => self.0[at].1.clone(),
            // The object exists, if it has another instance. The instances of an object differ in
            // the last part of the name.
            Err(at) => {
                let object = &name[..name.len().saturating_sub(1)];
                let is_other = |own: &Oid| own.len() == name.len() && own.starts_with(object);
                let near = [at.checked_sub(1), Some(at)].into_iter().flatten();
                let is_known = near.filter_map(|at| self.0.get(at)).any(|(own, _)| is_other(own));
                if is_known { Value::NoSuchInstance } else { Value::NoSuchObject }
            }
        }
    }

    /// The first value behind a name.
    pub fn next(&self, name: &[u32]) -> Option<&(Oid, Value)> {
        let at = self.0.partition_point(|(own, _)| own.as_slice() <= name);
        self.0.get(at)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = &(Oid, Value)> {
        self.0.iter()
    }
}
