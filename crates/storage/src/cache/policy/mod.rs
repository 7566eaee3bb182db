//! Replacement policies: the order in which a full directory gives up its objects.

mod adaptive;
mod frequency;
mod queue;
mod s3_fifo;
mod segmented;
mod two_queue;

use super::slots::Slots;
use adaptive::Adaptive;
use frequency::Frequency;
use queue::Queue;
use s3_fifo::S3Fifo;
use segmented::Segmented;
use two_queue::TwoQueue;

/// Replacement policy of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    /// The object that was inserted first leaves first.
    Fifo,
    /// The object that was used least recently leaves first.
    Lru,
    /// FIFO in which a hit sets a reference bit; an object with the bit gets a second chance.
    Clock,
    /// Segmented LRU: a hit moves an object up one segment, and overflow falls down one.
    Slru {
        /// Number of segments of equal capacity, from 1 to 16.
        segments: u8,
    },
    /// Full version of 2Q: a FIFO of 25 % for first uses, ghosts for 50 %, and an LRU list.
    TwoQ,
    /// Adaptive replacement cache: two LRU lists, and ghosts of both that move their boundary.
    Arc,
    /// Small FIFO of 10 %, main FIFO with a 2-bit counter, and ghosts of the size of the main one.
    S3Fifo,
    /// The object with the fewest hits since its insertion leaves first. Among equals, the least
    /// recently used leaves first.
    Lfu,
}

impl Policy {
    /// Every policy, with the usual parameters.
    pub const ALL: [Policy; 8] = [
        Policy::Fifo,
        Policy::Lru,
        Policy::Clock,
        Policy::Slru { segments: 4 },
        Policy::TwoQ,
        Policy::Arc,
        Policy::S3Fifo,
        Policy::Lfu,
    ];

    /// Capacity of the ghosts in percent of the cache, for sizing the index.
    pub(crate) fn ghost_percent(self) -> u64 {
        match self {
            Policy::TwoQ => two_queue::GHOST_PERCENT,
            Policy::Arc => 100,
            Policy::S3Fifo => s3_fifo::MAIN_PERCENT,
            Policy::Fifo | Policy::Lru | Policy::Clock | Policy::Slru { .. } | Policy::Lfu => 0,
        }
    }
}

/// Previous state of a key that is being inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Nothing is known about the key.
    New,
    /// Ghost of an object that was used once.
    Recent,
    /// Ghost of an object that was used again.
    Frequent,
}

/// Orders the slots of a directory. The directory owns the index and the total capacity.
pub(crate) trait Replacement {
    /// Records a hit on a resident slot.
    fn hit(&mut self, slots: &mut Slots, slot: u32);

    /// Returns whether a slot is a ghost, and of which kind.
    fn ghost(&self, _slots: &Slots, _slot: u32) -> Option<Origin> {
        None
    }

    /// Starts the insertion of a key, before the first victim is chosen.
    fn begin(&mut self, _origin: Origin, _size: u32) {}

    /// Returns the slot to evict next; `None` if every resident slot is pinned. Reference bits may
    /// change, membership in the cache does not.
    fn victim(&mut self, slots: &mut Slots, origin: Origin) -> Option<u32>;

    /// Evicts a slot. Returns whether the slot stays as a ghost.
    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool;

    /// Inserts a slot that is in no list.
    fn insert(&mut self, slots: &mut Slots, slot: u32, origin: Origin);

    /// Removes a slot, resident or ghost, from its list.
    fn remove(&mut self, slots: &mut Slots, slot: u32);

    /// Takes out one ghost above the capacity of ghosts.
    fn excess_ghost(&mut self, _slots: &mut Slots) -> Option<u32> {
        None
    }
}

/// State of one of the policies.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Queue(Queue),
    Segmented(Segmented),
    TwoQueue(TwoQueue),
    Adaptive(Adaptive),
    S3Fifo(S3Fifo),
    Frequency(Frequency),
}

macro_rules! dispatch {
    ($order:expr, $state:ident => $call:expr) => {
        match $order {
            Order::Queue($state) => $call,
            Order::Segmented($state) => $call,
            Order::TwoQueue($state) => $call,
            Order::Adaptive($state) => $call,
            Order::S3Fifo($state) => $call,
            Order::Frequency($state) => $call,
        }
    };
}

impl Order {
    pub(crate) fn new(policy: Policy, capacity: u64) -> Order {
        match policy {
            Policy::Fifo => Order::Queue(Queue::fifo()),
            Policy::Lru => Order::Queue(Queue::lru()),
            Policy::Clock => Order::Queue(Queue::clock()),
            Policy::Slru { segments } => Order::Segmented(Segmented::new(capacity, segments)),
            Policy::TwoQ => Order::TwoQueue(TwoQueue::new(capacity)),
            Policy::Arc => Order::Adaptive(Adaptive::new(capacity)),
            Policy::S3Fifo => Order::S3Fifo(S3Fifo::new(capacity)),
            Policy::Lfu => Order::Frequency(Frequency::new()),
        }
    }
}

impl Replacement for Order {
    #[inline]
    fn hit(&mut self, slots: &mut Slots, slot: u32) {
        dispatch!(self, state => state.hit(slots, slot));
    }

    #[inline]
    fn ghost(&self, slots: &Slots, slot: u32) -> Option<Origin> {
        dispatch!(self, state => state.ghost(slots, slot))
    }

    fn begin(&mut self, origin: Origin, size: u32) {
        dispatch!(self, state => state.begin(origin, size));
    }

    fn victim(&mut self, slots: &mut Slots, origin: Origin) -> Option<u32> {
        dispatch!(self, state => state.victim(slots, origin))
    }

    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool {
        dispatch!(self, state => state.evict(slots, slot))
    }

    fn insert(&mut self, slots: &mut Slots, slot: u32, origin: Origin) {
        dispatch!(self, state => state.insert(slots, slot, origin));
    }

    fn remove(&mut self, slots: &mut Slots, slot: u32) {
        dispatch!(self, state => state.remove(slots, slot));
    }

    fn excess_ghost(&mut self, slots: &mut Slots) -> Option<u32> {
        dispatch!(self, state => state.excess_ghost(slots))
    }
}
