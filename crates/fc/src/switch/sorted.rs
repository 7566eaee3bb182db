//! Sorted map with a small memory footprint: [`SortedMap`].

use std::ops::RangeInclusive;

/// Entries sorted by key, stored in chunks.
///
/// A search is two binary searches in arrays of keys. An entry takes little more than its own size,
/// and an insertion moves at most one chunk.
///
/// The name server of a large fabric has one of these per switch and index. A standard-library
/// B-tree filled in ascending order, as addresses are, stays half empty.
#[derive(Clone, Debug)]
pub(super) struct SortedMap<K, V> {
    /// First key of each chunk.
    firsts: Vec<K>,
    /// Chunks; none is empty.
    chunks: Vec<Chunk<K, V>>,
}

#[derive(Clone, Debug)]
struct Chunk<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
}

/// Maximum number of entries in a chunk.
const FULL: usize = 128;

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> SortedMap<K, V> {
        SortedMap { firsts: Vec::new(), chunks: Vec::new() }
    }
}

impl<K: Copy + Ord, V> SortedMap<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let chunk = &self.chunks[self.chunk_of(key)?];
        chunk.keys.binary_search(key).ok().map(|at| &chunk.values[at])
    }

    /// Adds an entry. Returns the previous value of the key.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        // A key before all others goes into the first chunk.
        let mut number = self.chunk_of(&key).unwrap_or(0);
        if self.chunks.is_empty() {
            self.put_chunk(0, Chunk { keys: vec![key], values: vec![value] });
            return None;
        }
        let mut at = match self.chunks[number].keys.binary_search(&key) {
            Ok(at) => return Some(std::mem::replace(&mut self.chunks[number].values[at], value)),
            Err(at) => at,
        };
        if at == FULL {
            // Insertion in ascending order fills chunks completely.
            self.put_chunk(number + 1, Chunk { keys: vec![key], values: vec![value] });
            return None;
        }
        if self.chunks[number].keys.len() == FULL {
            let chunk = &mut self.chunks[number];
            let (keys, values) = (chunk.keys.split_off(FULL / 2), chunk.values.split_off(FULL / 2));
            self.put_chunk(number + 1, Chunk { keys, values });
            if at > FULL / 2 {
                (number, at) = (number + 1, at - FULL / 2);
            }
        }
        let chunk = &mut self.chunks[number];
        chunk.keys.insert(at, key);
        chunk.values.insert(at, value);
        self.firsts[number] = chunk.keys[0];
        None
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let number = self.chunk_of(key)?;
        let chunk = &mut self.chunks[number];
        let at = chunk.keys.binary_search(key).ok()?;
        chunk.keys.remove(at);
        let value = chunk.values.remove(at);
        match chunk.keys.first() {
            Some(first) => {
                self.firsts[number] = *first;
                if self.chunks[number].keys.len() < FULL / 4 {
                    self.join(number);
                    self.join(number.wrapping_sub(1));
                }
            }
            None => {
                self.firsts.remove(number);
                self.chunks.remove(number);
            }
        }
        Some(value)
    }

    /// Entries in a range of keys, sorted.
    pub(super) fn range(&self, keys: RangeInclusive<K>) -> impl Iterator<Item = (K, &V)> {
        let first = self.chunk_of(keys.start()).unwrap_or(0);
        let skip = self.chunks.get(first).map_or(0, |chunk| chunk.keys.partition_point(|key| key < keys.start()));
        let last = *keys.end();
        let chunks = self.chunks[first..].iter().zip([skip].into_iter().chain(std::iter::repeat(0)));
        let entries = chunks.flat_map(|(chunk, skip)| chunk.keys[skip..].iter().copied().zip(&chunk.values[skip..]));
        entries.take_while(move |(key, _)| *key <= last)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.chunks.iter_mut().flat_map(|chunk| &mut chunk.values)
    }

    /// Chunk that contains the key if it exists; `None` if the key is before all others.
    fn chunk_of(&self, key: &K) -> Option<usize> {
        self.firsts.partition_point(|first| first <= key).checked_sub(1)
    }

    fn put_chunk(&mut self, number: usize, chunk: Chunk<K, V>) {
        self.firsts.insert(number, chunk.keys[0]);
        self.chunks.insert(number, chunk);
    }

    /// Merges a chunk with the next one if the result leaves room to grow.
    fn join(&mut self, number: usize) {
        let both = self.chunks.get(number..).and_then(|chunks| chunks.get(..2));
        if both.is_some_and(|both| both[0].keys.len() + both[1].keys.len() <= FULL * 3 / 4) {
            self.firsts.remove(number + 1);
            let next = self.chunks.remove(number + 1);
            self.chunks[number].keys.extend(next.keys);
            self.chunks[number].values.extend(next.values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_content_is_that_of_an_ordered_map(
            ops in prop::collection::vec((0u8..3, 0u16..900, any::<u8>()), 0..1500),
            in_order in any::<bool>(),
            from in 0u16..900,
            length in 0u16..900,
        ) {
            let (mut map, mut model) = (SortedMap::default(), BTreeMap::new());
            for key in (0..600u16).filter(|_| in_order) {
                prop_assert_eq!(map.insert(key, 0), model.insert(key, 0));
            }
            for (op, key, value) in ops {
                if op < 2 {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                } else {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
            }
            let range = from..=from.saturating_add(length);
            let found: Vec<_> = map.range(range.clone()).map(|(key, value)| (key, *value)).collect();
            prop_assert_eq!(found, model.range(range).map(|(key, value)| (*key, *value)).collect::<Vec<_>>());
            for (key, value) in model {
                prop_assert_eq!(map.remove(&key), Some(value));
            }
            prop_assert_eq!(map.chunks.len(), 0);
        }
    }

    #[test]
    fn entries_added_in_order_fill_their_chunks() {
        let mut map = SortedMap::default();
        (0..100_000u32).for_each(|key| _ = map.insert(key, ()));
        let capacity: usize = map.chunks.iter().map(|chunk| chunk.keys.capacity()).sum();
        assert!(capacity <= 100_000 + FULL, "{capacity}");
    }
}
