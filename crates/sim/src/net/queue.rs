//! The event queue: a calendar of time slots.
//!
//! A *source* has at most one pending event: a lane's next arrival, a lane's next attempt to send,
//! or a timer. Events leave in the order of (time, source number). This order does not depend on
//! the order of insertion, so runs are repeatable.
//!
//! Slots with a width of a power of two cover a window that starts at the present. A bitmap finds
//! the next used slot. At about one event per slot, most events are stored in the slot itself;
//! further events of a slot form a linked list. Slots are used in sequence, so the next ones are in
//! the cache, for ten sources as for ten thousand. The current slot is a sorted list. Events beyond
//! the window wait in a binary heap.
//!
//! A source is *free* if its lane stores the time of its event. The queue stores the times of all
//! other sources.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time value for no event.
pub const NEVER: u64 = u64::MAX;

/// Number of slots, 256 KiB. The number is a constant, so that an access checks no bounds.
const SLOTS: usize = 1 << 14;
const MASK: u64 = SLOTS as u64 - 1;
const NIL: u32 = u32::MAX;

/// An event in a slot, with the index of the next one.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    source: u32,
    next: u32,
}

const NO_EVENT: Entry = Entry { time: NEVER, source: NIL, next: NIL };

/// Pending events, ordered by (time, source).
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// The first event of each slot; valid only while the slot's bit is set.
    slots: Box<[Entry; SLOTS]>,
    bits: Box<[u64; SLOTS / 64]>,
    summary: [u64; SLOTS / 64 / 64],
    shift: u32,
    /// Number of the current slot. Its events are in `current`.
    slot: u64,
    /// Events of the current slot in reverse order: the next one is last.
    current: Vec<(u64, u32)>,
    /// Storage for the further events of a slot, and the index of the first unused entry.
    others: Vec<Entry>,
    unused: u32,
    /// Events beyond the window.
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// Cancelled events that are still in `far`, sorted.
    cancelled: Vec<(u64, u32)>,
    /// Slot from which on the first event of `far` is within the window.
    far_from: u64,
    popped: u64,
    /// Number of free sources. All smaller source numbers are free.
    free_sources: u32,
    /// Event times of the sources that are not free, [`NEVER`] if a source has no event.
    times: Vec<u64>,
}

impl EventQueue {
    /// Returns a queue for `sources` sources, of which the first `free_sources` are free.
    /// `spacing_ps` is the expected time between two events.
    pub fn new(sources: usize, free_sources: usize, spacing_ps: u64) -> EventQueue {
        EventQueue::with_window(sources, free_sources, spacing_ps, 0)
    }

    /// Returns a queue for events of which most are due within `window_ps` from the present.
    pub fn with_window(sources: usize, free_sources: usize, spacing_ps: u64, window_ps: u64) -> EventQueue {
        EventQueue {
            slots: boxed(NO_EVENT),
            bits: boxed(0),
            summary: [0; SLOTS / 64 / 64],
            shift: shift_for(spacing_ps, window_ps),
            slot: 0,
            current: Vec::with_capacity(64),
            others: Vec::with_capacity(64),
            unused: NIL,
            far: BinaryHeap::new(),
            cancelled: Vec::new(),
            far_from: NEVER,
            popped: 0,
            free_sources: free_sources as u32,
            times: vec![NEVER; sources - free_sources],
        }
    }

    /// Returns the event time of a source that is not free, or [`NEVER`] if it has no event.
    #[inline]
    pub fn time_of(&self, source: u32) -> u64 {
        self.times[(source - self.free_sources) as usize]
    }

    /// Returns the time of the next event, or [`NEVER`] if there is none.
    pub fn next_time(&mut self) -> u64 {
        if let Some(&(time, _)) = self.current.last() {
            return time;
        }
        let near = self.next_slot_in_use();
        let mut first = NEVER;
        if let Some(slot) = near {
            let mut entry = Some(&self.slots[(slot & MASK) as usize]);
            while let Some(&Entry { time, next, .. }) = entry {
                first = first.min(time);
                entry = self.others.get(next as usize);
            }
        }
        if near.is_none_or(|slot| slot >= self.far_from) {
            first = first.min(self.first_far().unwrap_or(NEVER));
        }
        first
    }

    /// Removes all events and starts at `now`. The event times of the sources remain, and the
    /// caller adds the events again.
    pub fn restart(&mut self, now: u64) {
        self.bits.fill(0);
        self.summary.fill(0);
        self.slot = now >> self.shift;
        self.current.clear();
        self.others.clear();
        self.unused = NIL;
        self.far.clear();
        self.cancelled.clear();
        self.far_from = NEVER;
    }

    /// Adds the events of the sources that are not free and have one.
    pub fn add_timed(&mut self) {
        for at in 0..self.times.len() {
            let time = self.times[at];
            if time != NEVER {
                self.add(self.free_sources + at as u32, time);
            }
        }
    }

    /// Returns the event time of a source that is not free, without its event.
    pub fn time_mut(&mut self, source: u32) -> &mut u64 {
        &mut self.times[(source - self.free_sources) as usize]
    }

    /// Counts events that another queue has processed.
    pub fn count_popped(&mut self, events: u64) {
        self.popped += events;
    }

    /// Returns the number of events that have left the queue, and restarts it.
    pub fn take_popped(&mut self) -> u64 {
        std::mem::take(&mut self.popped)
    }

    /// Returns the number of events that have left the queue.
    pub fn popped(&self) -> u64 {
        self.popped
    }

    /// Sets the event of a source that is not free to `time`; [`NEVER`] cancels it. `time` must not
    /// be earlier than the last event that left the queue.
    #[inline]
    pub fn schedule(&mut self, source: u32, time: u64) {
        let old = std::mem::replace(&mut self.times[(source - self.free_sources) as usize], time);
        self.move_event(source, old, time);
    }

    /// Sets the event of a source that is not free to `time`, unless it is earlier.
    #[inline]
    pub fn schedule_earlier(&mut self, source: u32, time: u64) {
        if time < self.time_of(source) {
            self.schedule(source, time);
        }
    }

    /// Moves the event of a source from `old` to `time`; [`NEVER`] means no event.
    #[inline]
    pub fn move_event(&mut self, source: u32, old: u64, time: u64) {
        if old == time {
            return;
        }
        if old != NEVER {
            self.remove(source, old);
        }
        if time != NEVER {
            self.add(source, time);
        }
    }

    /// Adds an event for a source that has none.
    #[inline]
    pub fn add(&mut self, source: u32, time: u64) {
        let slot = time >> self.shift;
        let ahead = slot.wrapping_sub(self.slot);
        if ahead.wrapping_sub(1) < MASK {
            let index = (slot & MASK) as usize;
            let bit = 1 << (index % 64);
            let word = &mut self.bits[index / 64];
            if *word & bit == 0 {
                *word |= bit;
                self.summary[index / 4096] |= 1 << (index / 64 % 64);
                self.slots[index] = Entry { time, source, next: NIL };
            } else {
                self.add_behind(index, time, source);
            }
        } else {
            self.add_elsewhere(time, source);
        }
    }

    /// Adds an event to a slot that is already used.
    fn add_behind(&mut self, index: usize, time: u64, source: u32) {
        let first = &mut self.slots[index];
        let entry = Entry { time, source, next: first.next };
        if let Some(unused) = self.others.get_mut(self.unused as usize) {
            first.next = self.unused;
            self.unused = unused.next;
            *unused = entry;
        } else {
            first.next = self.others.len() as u32;
            self.others.push(entry);
        }
    }

    /// Adds an event of the current slot, or one beyond the window.
    fn add_elsewhere(&mut self, time: u64, source: u32) {
        let slot = time >> self.shift;
        if slot <= self.slot {
            // The current slot has few events, so a linear search is fast enough.
            let at = self.current.iter().rposition(|&other| other > (time, source)).map_or(0, |i| i + 1);
            self.current.insert(at, (time, source));
            return;
        }
        match self.cancelled.binary_search(&(time, source)) {
            Ok(at) => drop(self.cancelled.remove(at)),
            Err(_) => self.far.push(Reverse((time, source))),
        }
        self.far_from = self.far_from.min(slot - MASK);
    }

    /// Removes the event of a source that is due at `time`.
    pub fn remove(&mut self, source: u32, time: u64) {
        let slot = time >> self.shift;
        if slot <= self.slot {
            if let Some(at) = self.current.iter().rposition(|event| event.1 == source) {
                self.current.remove(at);
            }
        } else if slot - self.slot > MASK || !self.remove_from_slot((slot & MASK) as usize, source) {
            let at = self.cancelled.partition_point(|&event| event < (time, source));
            self.cancelled.insert(at, (time, source));
        }
    }

    fn remove_from_slot(&mut self, index: usize, source: u32) -> bool {
        if self.bits[index / 64] & 1 << (index % 64) == 0 {
            return false;
        }
        let mut at = self.slots[index].next;
        if self.slots[index].source == source {
            match self.others.get(at as usize) {
                None => self.clear_bit(index),
                Some(&next) => {
                    self.slots[index] = next;
                    self.free_entry(at);
                }
            }
            return true;
        }
        let mut before = NIL;
        while let Some(&Entry { source: found, next, .. }) = self.others.get(at as usize) {
            if found == source {
                let link = self.others.get_mut(before as usize).unwrap_or(&mut self.slots[index]);
                link.next = next;
                self.free_entry(at);
                return true;
            }
            (before, at) = (at, next);
        }
        false
    }

    /// Returns an entry of `others` to the free list.
    fn free_entry(&mut self, at: u32) {
        self.others[at as usize].next = self.unused;
        self.unused = at;
    }

    /// Removes and returns the next event, if it is due at `limit` or earlier.
    #[inline]
    pub fn pop_until(&mut self, limit: u64) -> Option<(u64, u32)> {
        let (time, source) = match self.current.last() {
            Some(&(time, source)) => {
                if time > limit {
                    return None;
                }
                self.current.pop();
                (time, source)
            }
            None => self.pop_slot(limit)?,
        };
        if source >= self.free_sources {
            self.times[(source - self.free_sources) as usize] = NEVER;
        }
        self.popped += 1;
        Some((time, source))
    }

    /// Advances to the next used slot and takes its first event, if it is due at `limit` or
    /// earlier.
    #[inline]
    fn pop_slot(&mut self, limit: u64) -> Option<(u64, u32)> {
        if let Some(slot) = self.next_slot_in_use()
            && slot < self.far_from
        {
            let index = (slot & MASK) as usize;
            let Entry { time, source, next } = self.slots[index];
            if next == NIL {
                if time > limit {
                    return None;
                }
                self.clear_bit(index);
                self.slot = slot;
                return Some((time, source));
            }
            if let Some(&Entry { time: other_time, source: other, next: NIL }) = self.others.get(next as usize) {
                let events = ((time, source), (other_time, other));
                let (first, second) = if events.0 < events.1 { events } else { (events.1, events.0) };
                if first.0 > limit {
                    return None;
                }
                self.clear_bit(index);
                self.free_entry(next);
                self.slot = slot;
                self.current.push(second);
                return Some(first);
            }
        }
        self.open_slot(limit);
        let &(time, _) = self.current.last()?;
        if time > limit {
            return None;
        }
        self.current.pop()
    }

    #[inline]
    fn clear_bit(&mut self, index: usize) {
        let word = &mut self.bits[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.summary[index / 4096] &= !(1 << (index / 64 % 64));
        }
    }

    /// Makes the next used slot the current one, if it begins at `limit` or earlier.
    fn open_slot(&mut self, limit: u64) {
        let mut near = self.next_slot_in_use();
        if near.is_none_or(|slot| slot >= self.far_from) {
            near = near.into_iter().chain(self.first_far().map(|time| time >> self.shift)).min();
        }
        let Some(slot) = near.filter(|slot| slot << self.shift <= limit) else { return };
        self.slot = slot;
        let index = (slot & MASK) as usize;
        if self.bits[index / 64] & 1 << (index % 64) != 0 {
            self.clear_bit(index);
            let first = self.slots[index];
            self.current.push((first.time, first.source));
            let mut at = first.next;
            while let Some(&Entry { time, source, next }) = self.others.get(at as usize) {
                self.current.push((time, source));
                self.free_entry(at);
                at = next;
            }
        }
        if slot >= self.far_from {
            self.take_far();
        }
        match self.current[..] {
            [] | [_] => {}
            _ => self.current.sort_unstable_by(|a, b| b.cmp(a)),
        }
    }

    /// Moves events that are now within the window out of the heap.
    #[cold]
    fn take_far(&mut self) {
        self.far_from = NEVER;
        while let Some(time) = self.first_far() {
            let slot = time >> self.shift;
            if slot - self.slot > MASK {
                self.far_from = slot - MASK;
                break;
            }
            if let Some(Reverse((time, source))) = self.far.pop() {
                if slot == self.slot {
                    self.current.push((time, source));
                } else {
                    self.add(source, time);
                }
            }
        }
    }

    /// Returns the time of the first valid event of the heap, after removing cancelled ones.
    #[cold]
    fn first_far(&mut self) -> Option<u64> {
        while let Some(&Reverse(event)) = self.far.peek() {
            let Ok(at) = self.cancelled.binary_search(&event) else { return Some(event.0) };
            self.cancelled.remove(at);
            self.far.pop();
        }
        None
    }

    #[inline]
    fn next_slot_in_use(&self) -> Option<u64> {
        let start = ((self.slot + 1) & MASK) as usize;
        let ahead = self.find_from(start).or_else(|| self.find_from(0))?;
        let distance = (ahead as u64).wrapping_sub(self.slot) & MASK;
        Some(self.slot + distance)
    }

    /// Returns the first used index at or after `start`, without wrapping around.
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

/// Returns the binary logarithm of the slot width. A slot should hold few events, so that sorting
/// is cheap. If events are dense, the slots must still cover the window.
fn shift_for(spacing_ps: u64, window_ps: u64) -> u32 {
    let spacing = spacing_ps.max(1).ilog2();
    let covers = (window_ps / SLOTS as u64).checked_ilog2().map_or(0, |width| width + 1);
    spacing.saturating_sub(3).max(spacing.min(12)).max(covers).clamp(8, 30)
}

fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    let Ok(array) = vec![value; N].into_boxed_slice().try_into() else { unreachable!("the length is N") };
    array
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
            window in 0u64..100_000_000,
        ) {
            let mut queue = EventQueue::with_window(40, 20, spacing, window);
            let mut model = BTreeSet::new();
            let mut times = [NEVER; 40];
            let mut now = 0;
            let set = |queue: &mut EventQueue, times: &[u64; 40], source: u32, time: u64| match source {
                0..20 => queue.move_event(source, times[source as usize], time),
                _ => queue.schedule(source, time),
            };
            for (source, delay, kind) in steps {
                let clear = |model: &mut BTreeSet<(u64, u32)>, times: &mut [u64; 40]| {
                    model.remove(&(times[source as usize], source));
                    times[source as usize] = NEVER;
                };
                match kind {
                    0 => {
                        set(&mut queue, &times, source, NEVER);
                        clear(&mut model, &mut times);
                    }
                    1..=4 => {
                        let time = now + if kind == 4 { delay * 100_000 } else { delay };
                        set(&mut queue, &times, source, time);
                        clear(&mut model, &mut times);
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
