//! Ordered set of line numbers over slots: a treap that does not allocate once it is warm.

use super::super::slots::NONE;

/// Node of a line. Children have smaller (left) or larger (right) line numbers.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    left: u32,
    right: u32,
}

/// Set of line numbers; each line number comes with the slot that is its node.
///
/// Priorities are hashes of line numbers, so the shape depends on the content alone, and the depth
/// is logarithmic for any order of insertion.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    nodes: Vec<Node>,
    root: u32,
}

/// Mixes a line number (finaliser of SplitMix64).
fn priority(key: u64) -> u64 {
    let mixed = (key ^ (key >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Ordered {
    pub(super) fn new() -> Ordered {
        Ordered { nodes: Vec::new(), root: NONE }
    }

    fn node(&self, at: u32) -> Node {
        self.nodes[at as usize]
    }

    /// Inserts a line number that is absent.
    pub(super) fn insert(&mut self, slot: u32, key: u64) {
        if self.nodes.len() <= slot as usize {
            self.nodes.resize(slot as usize + 1, Node { key: 0, left: NONE, right: NONE });
        }
        let (left, right) = self.split(self.root, key);
        self.nodes[slot as usize] = Node { key, left: NONE, right: NONE };
        let left = self.merge(left, slot);
        self.root = self.merge(left, right);
    }

    /// Removes a line number that is present.
    pub(super) fn remove(&mut self, slot: u32) {
        let Node { key, left, right } = self.node(slot);
        let merged = self.merge(left, right);
        let mut at = self.root;
        if at == slot {
            self.root = merged;
            return;
        }
        while at != NONE {
            let parent = &mut self.nodes[at as usize];
            let child = if key < parent.key { &mut parent.left } else { &mut parent.right };
            if *child == slot {
                *child = merged;
                return;
            }
            at = *child;
        }
    }

    /// Slot of the smallest line number from `key` on, or else of the smallest one.
    pub(super) fn next(&self, key: u64) -> Option<u32> {
        let (mut at, mut found) = (self.root, NONE);
        while at != NONE {
            let node = self.node(at);
            if node.key >= key {
                found = at;
                at = node.left;
            } else {
                at = node.right;
            }
        }
        if found == NONE {
            at = self.root;
            while at != NONE {
                found = at;
                at = self.node(at).left;
            }
        }
        (found != NONE).then_some(found)
    }

    /// Divides a tree into line numbers below `key` and from `key` on.
    fn split(&mut self, at: u32, key: u64) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let node = self.node(at);
        if node.key < key {
            let (middle, right) = self.split(node.right, key);
            self.nodes[at as usize].right = middle;
            (at, right)
        } else {
            let (left, middle) = self.split(node.left, key);
            self.nodes[at as usize].left = middle;
            (left, at)
        }
    }

    /// Joins two trees; all line numbers of the first are below those of the second.
    fn merge(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE || right == NONE {
            return if left == NONE { right } else { left };
        }
        if priority(self.node(left).key) >= priority(self.node(right).key) {
            let merged = self.merge(self.node(left).right, right);
            self.nodes[left as usize].right = merged;
            left
        } else {
            let merged = self.merge(left, self.node(right).left);
            self.nodes[right as usize].left = merged;
            right
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ordered;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_set_equals_a_sorted_map(steps in prop::collection::vec((0u64..40, 0u64..45), 1..200)) {
            let (mut fast, mut plain) = (Ordered::new(), BTreeMap::new());
            for (key, from) in steps {
                // The slot is another number than the line.
                let slot = (key * 7 % 41) as u32;
                if plain.remove(&key).is_some() {
                    fast.remove(slot);
                } else {
                    plain.insert(key, slot);
                    fast.insert(slot, key);
                }
                let expected = plain.range(from..).next().or_else(|| plain.first_key_value()).map(|entry| *entry.1);
                prop_assert_eq!(fast.next(from), expected);
            }
        }
    }
}
