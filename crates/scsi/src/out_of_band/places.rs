//! Places of extents in the order of their use: [`Places`].

use super::Extent;
use crate::map::LunBlock;
use std::collections::BTreeMap;

/// Number of no node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    extent: Extent,
    place: LunBlock,
    /// Nodes that were used before and after this one.
    older: u32,
    newer: u32,
}

/// Places of extents, as a list in the order of their use. The memory of removed ones is reused.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Nodes by extent. A use of a place does not change the map, so it allocates nothing.
    at: BTreeMap<Extent, u32>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Places {
    /// Returns no places.
    pub fn new() -> Places {
        Places { at: BTreeMap::new(), nodes: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// Returns the number of places.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Uses the place of an extent; `None` if there is none.
    pub fn get(&mut self, extent: Extent) -> Option<LunBlock> {
        let number = *self.at.get(&extent)?;
        self.unlink(number);
        self.append(number);
        Some(self.nodes[number as usize].place)
    }

    /// Adds or replaces the place of an extent, as the newest one.
    pub fn insert(&mut self, extent: Extent, place: LunBlock) {
        self.remove(extent);
        let node = Node { extent, place, older: NONE, newer: NONE };
        let number = match self.free.pop() {
            Some(number) => {
                self.nodes[number as usize] = node;
                number
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.at.insert(extent, number);
        self.append(number);
    }

    /// Removes the place of an extent.
    pub fn remove(&mut self, extent: Extent) {
        if let Some(number) = self.at.remove(&extent) {
            self.unlink(number);
            self.free.push(number);
        }
    }

    /// Removes the place that was used least recently.
    pub fn remove_oldest(&mut self) {
        if let Some(node) = self.nodes.get(self.oldest as usize) {
            self.remove(node.extent);
        }
    }

    /// Removes all places.
    pub fn clear(&mut self) {
        self.at.clear();
        self.nodes.clear();
        self.free.clear();
        (self.oldest, self.newest) = (NONE, NONE);
    }

    /// Removes a node from the list.
    fn unlink(&mut self, number: u32) {
        let Node { older, newer, .. } = self.nodes[number as usize];
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
    }

    /// Appends a node to the list as the newest one.
    fn append(&mut self, number: u32) {
        let older = std::mem::replace(&mut self.newest, number);
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = number,
            None => self.oldest = number,
        }
        let node = &mut self.nodes[number as usize];
        (node.older, node.newer) = (older, NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::LunId;
    use crate::random::SplitMix64;

    #[test]
    fn the_list_is_that_of_a_plain_one() {
        let mut chance = SplitMix64(5);
        let (mut places, mut plain) = (Places::new(), Vec::<(Extent, LunBlock)>::new());
        for step in 0..20_000 {
            let extent = Extent(chance.below(12) as u32);
            let known = plain.iter().position(|(own, _)| *own == extent).map(|at| plain.remove(at));
            match chance.below(16) {
                0..8 => {
                    assert_eq!(places.get(extent), known.map(|(_, place)| place));
                    plain.extend(known);
                }
                8..13 => {
                    let place = LunBlock { lun: LunId(0), lba: step };
                    places.insert(extent, place);
                    plain.push((extent, place));
                }
                13 => places.remove(extent),
                14 => {
                    // The extent goes back to its place in the list.
                    if let Some(known) = known {
                        places.get(extent);
                        plain.push(known);
                    }
                    places.remove_oldest();
                    if !plain.is_empty() {
                        plain.remove(0);
                    }
                }
                _ if chance.below(32) == 0 => {
                    places.clear();
                    plain.clear();
                }
                _ => {
                    places.get(extent);
                    plain.extend(known);
                }
            }
            assert_eq!(places.len(), plain.len());
        }
        assert!(places.nodes.len() <= 12, "removed nodes are reused");
    }
}
