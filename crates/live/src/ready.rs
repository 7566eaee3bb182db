//! Parts of an instance that need attention: [`Tracked`], a list that remembers the parts to which
//! something happened, so that a step of the loop visits no others.

use std::ops::{Index, IndexMut};

/// Indices with pending work, each at most once, in the order of entry.
#[derive(Debug, Default)]
pub struct ReadyList {
    list: Vec<usize>,
    /// For each index, whether it is in the list.
    is_in: Vec<bool>,
    /// Memory for the next list.
    spare: Vec<usize>,
}

impl ReadyList {
    /// A list of the indices below `len`.
    pub fn up_to(len: usize) -> ReadyList {
        ReadyList { list: (0..len).collect(), is_in: vec![true; len], spare: Vec::new() }
    }

    /// Appends an index that is not in the list yet.
    #[inline]
    pub fn enter(&mut self, index: usize) {
        if self.is_in.len() <= index {
            self.is_in.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.is_in[index], true) {
            self.list.push(index);
        }
    }

    /// Returns whether no index has work.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The indices in order.
    pub fn list(&self) -> &[usize] {
        &self.list
    }

    /// Empties the list and returns its indices in order. Indices that enter from now on are in
    /// the next list. Return the memory with [`reuse`](Self::reuse).
    pub fn take(&mut self) -> Vec<usize> {
        let list = std::mem::replace(&mut self.list, std::mem::take(&mut self.spare));
        for index in &list {
            debug_assert!(self.is_in[*index], "index {index} is in the list, and its flag is clear");
            self.is_in[*index] = false;
        }
        list
    }

    /// Keeps the memory of a list for the next call of [`take`](Self::take).
    pub fn reuse(&mut self, mut list: Vec<usize>) {
        list.clear();
        self.spare = list;
    }
}

/// Parts by index. A part is ready after a mutable access, except by [`visit`](Self::visit).
#[derive(Debug)]
pub struct Tracked<T> {
    parts: Vec<T>,
    ready: ReadyList,
}

impl<T> Default for Tracked<T> {
    fn default() -> Tracked<T> {
        Tracked { parts: Vec::new(), ready: ReadyList::default() }
    }
}

impl<T> Index<usize> for Tracked<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        &self.parts[number]
    }
}

impl<T> IndexMut<usize> for Tracked<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.ready.enter(number);
        &mut self.parts[number]
    }
}

impl<T> From<Vec<T>> for Tracked<T> {
    fn from(parts: Vec<T>) -> Tracked<T> {
        Tracked { ready: ReadyList::up_to(parts.len()), parts }
    }
}

impl<T> Tracked<T> {
    /// Appends a part, which is ready.
    pub fn push(&mut self, part: T) {
        self.ready.enter(self.parts.len());
        self.parts.push(part);
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// All parts in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.parts.iter()
    }

    /// A part, which becomes ready.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let part = self.parts.get_mut(number)?;
        self.ready.enter(number);
        Some(part)
    }

    /// The first part that fulfils a condition, which becomes ready.
    pub fn find_mut(&mut self, is_wanted: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let number = self.parts.iter().position(is_wanted)?;
        self.get_mut(number)
    }

    /// All parts in order. Each becomes ready.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        (0..self.parts.len()).for_each(|number| self.ready.enter(number));
        self.parts.iter_mut()
    }

    /// A part in its visit: the access does not make it ready again.
    #[inline]
    pub fn visit(&mut self, number: usize) -> &mut T {
        &mut self.parts[number]
    }

    /// Makes a part ready.
    pub fn enter(&mut self, number: usize) {
        debug_assert!(number < self.parts.len(), "part {number} of {} is ready", self.parts.len());
        self.ready.enter(number);
    }

    /// Indices of the parts that are ready, in the order in which they became so.
    pub fn ready(&self) -> &[usize] {
        self.ready.list()
    }

    /// Takes the indices of the parts that are ready, for a visit of each. Return the memory with
    /// [`reuse`](Self::reuse).
    pub fn take_ready(&mut self) -> Vec<usize> {
        self.ready.take()
    }

    /// Keeps the memory of a list for the next call of [`take_ready`](Self::take_ready).
    pub fn reuse(&mut self, list: Vec<usize>) {
        self.ready.reuse(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_listed_once_in_the_order_of_entry() {
        let mut ready = ReadyList::default();
        for index in [7, 3, 7, 0, 3] {
            ready.enter(index);
        }
        let list = ready.take();
        assert_eq!(list, [7, 3, 0]);
        assert!(ready.is_empty());
        // An index that enters during a visit is in the next list.
        ready.enter(3);
        ready.reuse(list);
        assert_eq!(ready.take(), [3]);
        assert!(ready.take().is_empty());
    }

    #[test]
    fn a_mutable_access_makes_a_part_ready_and_a_visit_does_not() {
        let mut parts = Tracked::from(vec!['a', 'b', 'c', 'd']);
        assert_eq!(parts.take_ready(), [0, 1, 2, 3], "each part is visited once after the start");
        parts[2] = 'x';
        *parts.visit(1) = 'y';
        assert_eq!(parts.get_mut(0), Some(&mut 'a'));
        assert_eq!(parts.get_mut(9), None);
        assert_eq!(parts.find_mut(|part| *part == 'd'), Some(&mut 'd'));
        assert_eq!(parts.take_ready(), [2, 0, 3]);
        assert_eq!(parts.iter().collect::<String>(), "ayxd");
        parts.push('e');
        assert_eq!(parts.ready(), [4]);
    }
}
