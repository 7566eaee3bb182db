//! A map and a set in order that keep their memory: [`OrderedMap`] and [`OrderedSet`].

use std::collections::VecDeque;
use std::ops::Index;

/// A map in the order of its keys, in one buffer that never shrinks.
///
/// A map of the standard library allocates and frees nodes while entries come and go. Here a map
/// that has had its largest size allocates nothing more. Entries at both ends cost no move; one in
/// between moves those on its nearer side. So the map is for requests in flight, whose numbers
/// ascend, and not for large tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderedMap<K, V> {
    entries: VecDeque<(K, V)>,
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> OrderedMap<K, V> {
        OrderedMap { entries: VecDeque::new() }
    }
}

impl<K: Ord, V> OrderedMap<K, V> {
    /// Returns an empty map.
    pub fn new() -> OrderedMap<K, V> {
        OrderedMap::default()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the index of a key, or as an error the index at which it belongs.
    fn find(&self, key: &K) -> Result<usize, usize> {
        match self.entries.back() {
            Some((last, _)) if last >= key => self.entries.binary_search_by(|(own, _)| own.cmp(key)),
            _ => Err(self.entries.len()),
        }
    }

    /// Adds or replaces an entry; returns the replaced value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }

    /// Removes an entry; returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key).ok()?;
        self.entries.remove(at).map(|(_, value)| value)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.find(key).ok().map(|at| &self.entries[at].1)
    }

    /// Returns the value of a key, to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.find(key).ok().map(|at| &mut self.entries[at].1)
    }

    /// Returns whether the map has a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Returns the entry with the smallest key.
    pub fn first(&self) -> Option<(&K, &V)> {
        self.entries.front().map(|(key, value)| (key, value))
    }

    /// Removes and returns the entry with the smallest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.entries.pop_front()
    }

    /// Removes the entries for which `keeps` returns false.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &V) -> bool) {
        self.entries.retain(|(key, value)| keeps(key, value));
    }

    /// The same, and `keeps` may change the values.
    pub fn retain_mut(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keeps(key, value));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Iterates over the entries in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// Iterates over the keys in their order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Iterates over the values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Removes all entries, and returns them in the order of their keys.
    pub fn drain(&mut self) -> impl Iterator<Item = (K, V)> {
        self.entries.drain(..)
    }
}

/// # Panics
/// If the map does not have the key.
impl<K: Ord, V> Index<&K> for OrderedMap<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the map has the key")
    }
}

/// A set in order, in one buffer that never shrinks: see [`OrderedMap`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderedSet<T> {
    entries: OrderedMap<T, ()>,
}

impl<T> Default for OrderedSet<T> {
    fn default() -> OrderedSet<T> {
        OrderedSet { entries: OrderedMap::default() }
    }
}

impl<T: Ord> OrderedSet<T> {
    /// Returns an empty set.
    pub fn new() -> OrderedSet<T> {
        OrderedSet::default()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry; returns false if the set has it already.
    pub fn insert(&mut self, entry: T) -> bool {
        self.entries.insert(entry, ()).is_none()
    }

    /// Removes an entry; returns false if the set does not have it.
    pub fn remove(&mut self, entry: &T) -> bool {
        self.entries.remove(entry).is_some()
    }

    /// Returns the smallest entry.
    pub fn first(&self) -> Option<&T> {
        self.entries.first().map(|(entry, ())| entry)
    }

    /// Removes the entries for which `keeps` returns false.
    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.entries.retain(|entry, ()| keeps(entry));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Iterates over the entries in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.entries.keys()
    }

    /// Removes all entries, and returns them in their order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.entries.drain().map(|(entry, ())| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use std::collections::BTreeMap;

    #[test]
    fn a_map_does_the_same_as_that_of_the_standard_library() {
        let mut chance = SplitMix64(11);
        let (mut map, mut plain) = (OrderedMap::new(), BTreeMap::new());
        for step in 0..20_000_u64 {
            // Few keys, so that both kinds of entries are met often.
            let key = chance.below(24);
            match chance.below(8) {
                0..4 => assert_eq!(map.insert(key, step), plain.insert(key, step)),
                4 | 5 => assert_eq!(map.remove(&key), plain.remove(&key)),
                6 if chance.below(4) == 0 => assert_eq!(map.pop_first(), plain.pop_first()),
                7 if chance.below(64) == 0 => {
                    map.retain(|key, value| (key + value) % 3 == 0);
                    plain.retain(|key, value| (*key + *value).is_multiple_of(3));
                }
                7 if chance.below(256) == 0 => {
                    let drained: Vec<(u64, u64)> = map.drain().collect();
                    assert_eq!(drained, std::mem::take(&mut plain).into_iter().collect::<Vec<_>>());
                }
                _ => {
                    if let Some(value) = map.get_mut(&key) {
                        *value += 1;
                    }
                    plain.entry(key).and_modify(|value| *value += 1);
                }
            }
            assert_eq!((map.get(&key), map.contains_key(&key)), (plain.get(&key), plain.contains_key(&key)));
            assert_eq!((map.first(), map.len()), (plain.first_key_value(), plain.len()));
            assert!(map.iter().eq(plain.iter()) && map.keys().eq(plain.keys()) && map.values().eq(plain.values()));
            assert_eq!(map.is_empty(), plain.is_empty());
        }
        map.insert(1, 2);
        assert_eq!(map[&1], 2);
        map.clear();
        assert!(map.is_empty());
    }

    #[test]
    fn a_set_has_each_entry_once_in_order() {
        let mut set = OrderedSet::new();
        assert!([3, 1, 2].into_iter().all(|entry| set.insert(entry)) && !set.insert(1));
        assert!(set.iter().eq(&[1, 2, 3]) && set.first() == Some(&1) && set.len() == 3);
        assert!(set.remove(&2) && !set.remove(&2));
        set.retain(|entry| *entry != 1);
        assert_eq!(set.drain().collect::<Vec<i32>>(), [3]);
        set.clear();
        assert!(set.is_empty());
    }

    #[test]
    fn entries_that_come_and_go_do_not_let_the_memory_grow() {
        let mut map = OrderedMap::new();
        (0..64_u64).for_each(|key| assert_eq!(map.insert(key, ()), None));
        let capacity = map.entries.capacity();
        for key in 64..10_000 {
            assert_eq!(map.remove(&(key - 64)), Some(()));
            assert_eq!(map.insert(key, ()), None);
        }
        assert_eq!(map.entries.capacity(), capacity);
    }
}
