//! An index of waiting commands by their first block and by the block after their last.

use sanloom_fc::config::Target;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// The first block of a command, or the block after its last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Edge {
    pub(super) lun: Target,
    pub(super) write: bool,
    pub(super) lba: u64,
}

/// An index of commands by one of their edges. Several commands may share an edge; a search finds
/// the one added last.
///
/// The map is never iterated, so its order cannot affect a result. It holds the newest command of
/// each edge. The others follow in a doubly linked list through `links`, which is indexed by
/// command.
#[derive(Clone, Debug, Default)]
pub(super) struct EdgeIndex {
    newest: HashMap<Edge, u32, BuildHasherDefault<DefaultHasher>>,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    newer: Option<u32>,
    older: Option<u32>,
}

impl EdgeIndex {
    pub(super) fn newest(&self, edge: &Edge) -> Option<u32> {
        self.newest.get(edge).copied()
    }

    /// Adds `command`, which must not be in the index.
    pub(super) fn add(&mut self, edge: Edge, command: u32) {
        let index = command as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, Link::default());
        }
        let older = self.newest.insert(edge, command);
        self.links[index] = Link { newer: None, older };
        if let Some(older) = older {
            self.links[older as usize].newer = Some(command);
        }
    }

    /// Removes `command`, which must be in the index at `edge`.
    pub(super) fn remove(&mut self, edge: &Edge, command: u32) {
        let link = std::mem::take(&mut self.links[command as usize]);
        if let Some(older) = link.older {
            self.links[older as usize].newer = link.newer;
        }
        match (link.newer, link.older) {
            (Some(newer), older) => self.links[newer as usize].older = older,
            (None, Some(older)) => {
                self.newest.insert(*edge, older);
            }
            (None, None) => {
                self.newest.remove(edge);
            }
        }
    }
}
