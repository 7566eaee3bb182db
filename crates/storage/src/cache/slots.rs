//! Slots of a directory and intrusive lists over them.

/// Index that stands for no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// One entry of a directory: a resident object, or a ghost that only remembers its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) key: u64,
    /// Capacity units: 1 for lines, bytes for objects of different sizes.
    pub(crate) size: u32,
    prev: u32,
    next: u32,
    /// Used by the policy: reference bit, hit counter or bucket.
    pub(crate) count: u32,
    /// Identifier of the list that holds the node; 0 is none.
    pub(crate) list: u8,
    /// A pinned node is never a victim, because its data are in flight.
    pub(crate) is_pinned: bool,
}

/// Arena of nodes. Freed slots are reused, last freed first, so a warm arena does not allocate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Slots {
    pub(crate) fn with_capacity(nodes: usize) -> Slots {
        Slots { nodes: Vec::with_capacity(nodes), free: Vec::with_capacity(nodes) }
    }

    pub(crate) fn allocate(&mut self, key: u64, size: u32) -> u32 {
        let node = Node { key, size, prev: NONE, next: NONE, count: 0, list: 0, is_pinned: false };
        if let Some(slot) = self.free.pop() {
            self.nodes[slot as usize] = node;
            return slot;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    pub(crate) fn release(&mut self, slot: u32) {
        self.nodes[slot as usize].list = 0;
        self.free.push(slot);
    }

    /// Number of slots ever in use at once.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

impl std::ops::Index<u32> for Slots {
    type Output = Node;

    #[inline]
    fn index(&self, slot: u32) -> &Node {
        &self.nodes[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Slots {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.nodes[slot as usize]
    }
}

/// Doubly linked list of slots. The front is the newest end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    id: u8,
    front: u32,
    back: u32,
    /// Sum of the sizes of all members, in capacity units.
    pub(crate) units: u64,
}

impl List {
    /// Creates an empty list; `id` is unique within its policy and not 0.
    pub(crate) fn new(id: u8) -> List {
        List { id, front: NONE, back: NONE, units: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.front == NONE
    }

    /// Oldest member.
    pub(crate) fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }

    /// Oldest member that is not pinned. The cost grows with the number of older, pinned members.
    pub(crate) fn back_unpinned(&self, slots: &Slots) -> Option<u32> {
        let mut slot = self.back;
        while slot != NONE && slots[slot].is_pinned {
            slot = slots[slot].prev;
        }
        (slot != NONE).then_some(slot)
    }

    #[inline]
    pub(crate) fn push_front(&mut self, slots: &mut Slots, slot: u32) {
        let node = &mut slots[slot];
        (node.prev, node.next, node.list) = (NONE, self.front, self.id);
        self.units += u64::from(node.size);
        if self.front == NONE {
            self.back = slot;
        } else {
            slots[self.front].prev = slot;
        }
        self.front = slot;
    }

    #[inline]
    pub(crate) fn remove(&mut self, slots: &mut Slots, slot: u32) {
        let Node { prev, next, size, .. } = slots[slot];
        if prev == NONE {
            self.front = next;
        } else {
            slots[prev].next = next;
        }
        if next == NONE {
            self.back = prev;
        } else {
            slots[next].prev = prev;
        }
        slots[slot].list = 0;
        self.units -= u64::from(size);
    }

    #[inline]
    pub(crate) fn move_to_front(&mut self, slots: &mut Slots, slot: u32) {
        if self.front != slot {
            self.remove(slots, slot);
            self.push_front(slots, slot);
        }
    }
}
