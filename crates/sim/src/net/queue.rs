//! The event queue: a calendar of time slots over sources.
//!
//! A *source* is something that has at most one event to come: a lane's next arrival, a lane's next chance to send, a
//! timer. The entry is therefore part of the source and needs no allocation; moving it is unlinking and linking. Events
//! leave in the order of (time, source number), which does not depend on the order of insertion: that makes a run
//! repeatable.
//!
//! Slots of a power-of-two width cover a window from the present on; a source is in the doubly linked list of its slot,
//! a bitmap finds the next slot in use, and the slot that is being emptied is a sorted list. Events behind the window wait in
//! a binary heap. With about one event for each slot every operation takes a few tens of instructions, for ten sources
//! and for ten thousand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No event.
pub const NEVER: u64 = u64::MAX;

const SLOTS: usize = 1 << 14;
const MASK: u64 = SLOTS as u64 - 1;
const NIL: u32 = u32::MAX;

/// In place of the previous source of a list: the event is in `current`, or in `far`.
const CURRENT: u32 = u32::MAX - 1;
const FAR: u32 = u32::MAX - 2;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// [`NEVER`] if the source has no event.
    time: u64,
    next: u32,
    /// The previous source in the list of the slot, [`NIL`] for the first; otherwise where the event is.
    prev: u32,
}

/// Events of sources, in the order of (time, source).
#[derive(Clone, Debug)]
pub struct EventQueue {
    entries: Vec<Entry>,
    heads: Vec<u32>,
    bits: Vec<u64>,
    summary: [u64; SLOTS / 64 / 64],
    shift: u32,
    /// Number of the slot that `current` holds.
    slot: u64,
    /// Events of the present slot, the next one last.
    current: Vec<(u64, u32)>,
    /// Events behind the window; one counts only while its source says the same time and [`FAR`].
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// From this slot on the first event of `far` is within the window.
    far_from: u64,
    popped: u64,
}

impl EventQueue {
    /// For `sources` sources and about `spacing_ps` between two events.
    pub fn new(sources: usize, spacing_ps: u64) -> EventQueue {
        EventQueue {
            entries: vec![Entry { time: NEVER, next: NIL, prev: NIL }; sources],
            heads: vec![NIL; SLOTS],
            bits: vec![0; SLOTS / 64],
            summary: [0; SLOTS / 64 / 64],
            shift: spacing_ps.max(1).ilog2().clamp(8, 30),
            slot: 0,
            current: Vec::with_capacity(64),
            far: BinaryHeap::new(),
            far_from: NEVER,
            popped: 0,
        }
    }

    /// When the source's event is due, [`NEVER`] if it has none.
    #[inline]
    pub fn time_of(&self, source: u32) -> u64 {
        self.entry(source).time
    }

    #[inline]
    fn entry(&self, source: u32) -> &Entry {
        &self.entries[source as usize]
    }

    #[inline]
    fn entry_mut(&mut self, source: u32) -> &mut Entry {
        &mut self.entries[source as usize]
    }

    /// Events that have left the queue.
    pub fn popped(&self) -> u64 {
        self.popped
    }

    /// Sets the source's event to `time`, which must not lie before the last event that left.
    #[inline]
    pub fn schedule(&mut self, source: u32, time: u64) {
        let old = self.entry(source).time;
        if old == time {
            return;
        }
        if old != NEVER {
            self.unlink(source);
        }
        if time != NEVER {
            self.link(source, time);
        }
    }

    /// Sets the event of a source that has none.
    #[inline]
    pub fn schedule_idle(&mut self, source: u32, time: u64) {
        debug_assert!(self.time_of(source) == NEVER && time != NEVER);
        self.link(source, time);
    }

    /// Sets the source's event to `time` unless it is due earlier.
    #[inline]
    pub fn schedule_earlier(&mut self, source: u32, time: u64) {
        if time < self.time_of(source) {
            self.schedule(source, time);
        }
    }

    /// Takes the source's event out.
    pub fn cancel(&mut self, source: u32) {
        self.schedule(source, NEVER);
    }

    /// The next event, if it is due at `limit` or before.
    #[inline]
    pub fn pop_until(&mut self, limit: u64) -> Option<(u64, u32)> {
        if self.current.is_empty() && !self.advance(limit) {
            return None;
        }
        let &(time, source) = self.current.last()?;
        if time > limit {
            return None;
        }
        self.current.pop();
        self.entry_mut(source).time = NEVER;
        self.popped += 1;
        Some((time, source))
    }

    #[inline]
    fn link(&mut self, source: u32, time: u64) {
        let slot = (time >> self.shift).max(self.slot);
        if slot == self.slot {
            *self.entry_mut(source) = Entry { time, next: NIL, prev: CURRENT };
            self.insert(time, source);
        } else if slot - self.slot < SLOTS as u64 {
            let index = (slot & MASK) as usize;
            let head = std::mem::replace(&mut self.heads[index], source);
            *self.entry_mut(source) = Entry { time, next: head, prev: NIL };
            if head != NIL {
                self.entry_mut(head).prev = source;
            } else {
                self.bits[index / 64] |= 1 << (index % 64);
                self.summary[index / 4096] |= 1 << (index / 64 % 64);
            }
        } else {
            *self.entry_mut(source) = Entry { time, next: NIL, prev: FAR };
            self.far.push(Reverse((time, source)));
            self.far_from = self.far_from.min(slot - (SLOTS as u64 - 1));
        }
    }

    /// Inserts into the events of the present slot. They are few.
    #[inline]
    fn insert(&mut self, time: u64, source: u32) {
        let at = self.current.iter().rposition(|&other| other > (time, source)).map_or(0, |i| i + 1);
        self.current.insert(at, (time, source));
    }

    fn unlink(&mut self, source: u32) {
        let Entry { time, next, prev } = *self.entry(source);
        self.entry_mut(source).time = NEVER;
        match prev {
            CURRENT => {
                if let Some(at) = self.current.iter().rposition(|event| event.1 == source) {
                    self.current.remove(at);
                }
            }
            FAR => {}
            _ => {
                if next != NIL {
                    self.entry_mut(next).prev = prev;
                }
                if prev != NIL {
                    self.entry_mut(prev).next = next;
                } else {
                    let index = ((time >> self.shift) & MASK) as usize;
                    self.heads[index] = next;
                    if next == NIL {
                        self.clear_bit(index);
                    }
                }
            }
        }
    }

    #[inline]
    fn clear_bit(&mut self, index: usize) {
        self.bits[index / 64] &= !(1 << (index % 64));
        if self.bits[index / 64] == 0 {
            self.summary[index / 4096] &= !(1 << (index / 64 % 64));
        }
    }

    /// Makes the next slot in use the present one, if it begins at `limit` or before.
    #[inline]
    fn advance(&mut self, limit: u64) -> bool {
        let near = self.next_slot_in_use();
        let slot = match near {
            Some(slot) if slot < self.far_from => slot,
            _ => match self.next_slot_with_far(near) {
                Some(slot) => slot,
                None => return false,
            },
        };
        if slot << self.shift > limit {
            return false;
        }
        self.slot = slot;
        let index = (slot & MASK) as usize;
        let mut source = std::mem::replace(&mut self.heads[index], NIL);
        if source != NIL {
            self.clear_bit(index);
        }
        while source != NIL {
            let entry = self.entry_mut(source);
            entry.prev = CURRENT;
            let Entry { time, next, .. } = *entry;
            self.current.push((time, source));
            source = next;
        }
        if slot >= self.far_from {
            self.take_far();
        }
        match self.current[..] {
            [] | [_] => {}
            [a, b] if a > b => {}
            [a, b] => self.current.copy_from_slice(&[b, a]),
            _ => self.current.sort_unstable_by(|a, b| b.cmp(a)),
        }
        true
    }

    /// The next slot in use, `near` or that of an event behind the window.
    #[cold]
    fn next_slot_with_far(&mut self, near: Option<u64>) -> Option<u64> {
        let far = self.first_far().map(|time| time >> self.shift);
        near.into_iter().chain(far).min()
    }

    /// Moves the events that are within the window now out of the heap.
    #[cold]
    fn take_far(&mut self) {
        self.far_from = NEVER;
        while let Some(time) = self.first_far() {
            let slot = time >> self.shift;
            if slot - self.slot >= SLOTS as u64 {
                self.far_from = slot - (SLOTS as u64 - 1);
                break;
            }
            if let Some(Reverse((time, source))) = self.far.pop() {
                if slot == self.slot {
                    self.entry_mut(source).prev = CURRENT;
                    self.current.push((time, source));
                } else {
                    self.link(source, time);
                }
            }
        }
    }

    /// Time of the first valid event of the heap; drops those that no longer count.
    fn first_far(&mut self) -> Option<u64> {
        while let Some(&Reverse((time, source))) = self.far.peek() {
            let entry = self.entry(source);
            if entry.prev == FAR && entry.time == time {
                return Some(time);
            }
            self.far.pop();
        }
        None
    }

    fn next_slot_in_use(&self) -> Option<u64> {
        let start = ((self.slot + 1) & MASK) as usize;
        let ahead = self.find_from(start).or_else(|| self.find_from(0))?;
        let distance = (ahead as u64).wrapping_sub(self.slot) & MASK;
        Some(self.slot + distance)
    }

    /// First index in use at or after `start`, without wrapping.
    #[inline]
    fn find_from(&self, start: usize) -> Option<usize> {
        let word = start / 64;
        let masked = self.bits[word] & (!0 << (start % 64));
        if masked != 0 {
            return Some(word * 64 + masked.trailing_zeros() as usize);
        }
        let mut group = (word + 1) / 64;
        let mut keep: u64 = if (word + 1).is_multiple_of(64) { !0 } else { !0 << ((word + 1) % 64) };
        while group < self.summary.len() {
            let words = self.summary[group] & keep;
            if words != 0 {
                let word = group * 64 + words.trailing_zeros() as usize;
                return Some(word * 64 + self.bits[word].trailing_zeros() as usize);
            }
            group += 1;
            keep = !0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn events_leave_in_the_order_of_time_and_source(
            steps in prop::collection::vec((0u32..40, 0u64..4_000_000, 0u8..8), 1..400),
            spacing in 1u64..100_000,
        ) {
            let mut queue = EventQueue::new(40, spacing);
            let mut model = BTreeSet::new();
            let mut times = [NEVER; 40];
            let mut now = 0;
            for (source, delay, kind) in steps {
                let forget = |model: &mut BTreeSet<(u64, u32)>, times: &mut [u64; 40]| {
                    model.remove(&(times[source as usize], source));
                    times[source as usize] = NEVER;
                };
                match kind {
                    0 => {
                        queue.cancel(source);
                        forget(&mut model, &mut times);
                    }
                    1..=4 => {
                        let time = now + if kind == 4 { delay * 100_000 } else { delay };
                        queue.schedule(source, time);
                        forget(&mut model, &mut times);
                        model.insert((time, source));
                        times[source as usize] = time;
                    }
                    _ => {
                        let limit = now + delay;
                        let expected = model.first().copied().filter(|e| e.0 <= limit);
                        let got = queue.pop_until(limit);
                        prop_assert_eq!(got, expected);
                        if let Some((time, source)) = got {
                            model.remove(&(time, source));
                            times[source as usize] = NEVER;
                            now = time;
                        }
                    }
                }
            }
            while let Some(event) = queue.pop_until(NEVER - 1) {
                prop_assert_eq!(Some(event), model.pop_first());
            }
            prop_assert!(model.is_empty());
        }
    }
}
