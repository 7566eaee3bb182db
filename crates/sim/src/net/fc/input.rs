//! The receive buffers of one switch port, and their counters.

use super::crossbar::{Buffered, InputCount, WAIT_BUCKETS, WaitCount};
use super::flight::InFlight;
use super::frame_ref::FrameRef;
use std::collections::VecDeque;

/// Frames stored inline.
const INLINE: usize = 16;

/// Bits of one output number in `outputs`, numbers in a word, and a word with a one in each field.
const BITS: usize = 16;
const FIELDS: usize = 4;
const ONES: u64 = 0x0001_0001_0001_0001;

/// Marks an empty field in `outputs`.
const NONE: u64 = 0xffff;

/// The value of `outputs` of an empty buffer.
const EMPTY: [u64; INLINE / FIELDS] = [ONES * NONE; INLINE / FIELDS];

/// Bits of one slot index in `slot_order`, and the indices in ascending order.
const SLOT_BITS: usize = 4;
const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;

/// An input buffer. It holds few frames, so a linear search is cheaper than one queue for each
/// output.
///
/// The first cache line has the fields that every frame reads or changes, and the next two the
/// counters and the frame that waits for the input. The inline frames do not move; `slot_order`
/// records their order of arrival, and a free slot is used again at once, so that few lines are in
/// use. Any further frames are in `overflow`. The histogram of waiting times comes last.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Input {
    /// Outputs of the inline frames, oldest in the lowest bits of the first word; [`NONE`] for an
    /// empty field.
    outputs: [u64; INLINE / FIELDS],
    /// Indices into `inline` in the order of `outputs`, then the indices of the empty slots. Four
    /// bits each, from the lowest bit.
    slot_order: u64,
    /// Number of frames in `inline`.
    used: u8,
    /// True if `overflow` holds frames. If it does, all slots of `inline` are used.
    has_more: bool,
    /// Number of frames in `granted` and `more_granted`.
    grants: u16,
    max_frames: u32,
    /// Time until which a frame crosses from this input.
    pub(super) busy_until_ps: u64,
    overflow: Option<Box<Overflow>>,
    bytes: u64,
    held_ps: i64,
    wait_sum_ps: u64,
    wait_max_ps: u64,
    /// The first frame that has a place in front of its line and waits for the input, with its
    /// output; valid while `grants` is not 0.
    granted: (u16, Slot),
    /// The others.
    more_granted: VecDeque<(u16, Slot)>,
    inline: [Slot; INLINE],
    wait_buckets: [u32; WAIT_BUCKETS],
}

const _: () = assert!(size_of::<Input>() == (3 + INLINE / 2) * 64 + 4 * WAIT_BUCKETS);

/// Frames that do not fit into the inline slots.
///
/// The processor input of a switch that answers hundreds of others holds hundreds of frames.
/// Searches therefore read only the outputs, and a frame removed from the middle leaves a hole.
#[derive(Clone, Debug, Default)]
struct Overflow {
    /// Output of each frame, or [`HOLE`]. The first entry is never a hole, and at most half of the
    /// entries are.
    outputs: VecDeque<u16>,
    slots: VecDeque<Slot>,
    holes: usize,
    /// The most recently removed frame.
    taken: Slot,
}

/// Output number of a removed frame.
const HOLE: u16 = NONE as u16;

impl Overflow {
    fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    fn frames(&self) -> usize {
        self.outputs.len() - self.holes
    }

    fn iter(&self) -> impl Iterator<Item = (u16, &Slot)> {
        self.outputs.iter().copied().zip(&self.slots).filter(|(output, _)| *output != HOLE)
    }

    fn push(&mut self, output: u16, slot: Slot) {
        self.outputs.push_back(output);
        self.slots.push_back(slot);
    }

    fn pop(&mut self) -> Option<(u16, Slot)> {
        let first = self.outputs.pop_front().zip(self.slots.pop_front());
        self.trim();
        first
    }

    /// Removes the oldest frame for an output.
    fn take(&mut self, output: u16) -> Option<Slot> {
        let at = self.outputs.iter().position(|other| *other == output)?;
        let slot = self.slots[at];
        self.outputs[at] = HOLE;
        self.holes += 1;
        self.trim();
        Some(slot)
    }

    fn has(&self, output: u16) -> bool {
        self.outputs.contains(&output)
    }

    fn trim(&mut self) {
        while self.outputs.front() == Some(&HOLE) {
            self.outputs.pop_front();
            self.slots.pop_front();
            self.holes -= 1;
        }
        if self.holes > self.outputs.len() / 2 {
            let mut kept = self.outputs.iter().map(|output| *output != HOLE);
            self.slots.retain(|_| kept.next() == Some(true));
            self.outputs.retain(|output| *output != HOLE);
            self.holes = 0;
        }
    }
}

/// A frame in an input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub frame: FrameRef,
    /// Time from which the frame is eligible.
    pub at_ps: u64,
    tail_after_ps: u32,
    /// Lane on which the frame arrived, or [`super::NO_LANE`] if the switch generated it.
    pub lane: u32,
}

impl Slot {
    /// Value of an empty slot.
    const EMPTY: Slot = Slot { frame: FrameRef::NONE, at_ps: 0, tail_after_ps: 0, lane: super::NO_LANE };

    #[inline]
    pub(super) fn new(on_line: InFlight, lane: u32) -> Slot {
        let InFlight { frame, at_ps, tail_after_ps } = on_line;
        Slot { frame, at_ps, tail_after_ps, lane }
    }

    /// Returns the frame with its place in the switch.
    pub(super) fn buffered(&self, input: u16, output: u16, crossed: bool) -> Buffered {
        let &Slot { frame, at_ps, tail_after_ps, lane } = self;
        Buffered { on_line: InFlight { frame, at_ps, tail_after_ps }, input, output, lane, crossed }
    }

    /// Returns the arrival time of the last bit, or `at_ps` if that is later.
    #[inline]
    pub fn tail_ps(&self) -> u64 {
        self.at_ps + u64::from(self.tail_after_ps)
    }
}

impl Default for Slot {
    fn default() -> Slot {
        Slot::EMPTY
    }
}

impl Default for Input {
    fn default() -> Input {
        Input {
            outputs: EMPTY,
            slot_order: IN_ORDER,
            used: 0,
            has_more: false,
            grants: 0,
            max_frames: 0,
            busy_until_ps: 0,
            overflow: None,
            bytes: 0,
            held_ps: 0,
            wait_sum_ps: 0,
            wait_max_ps: 0,
            granted: (HOLE, Slot::EMPTY),
            more_granted: VecDeque::new(),
            inline: [Slot::EMPTY; INLINE],
            wait_buckets: [0; WAIT_BUCKETS],
        }
    }
}

impl Input {
    /// Returns the number of frames.
    #[inline]
    pub(super) fn frames(&self) -> u32 {
        u32::from(self.used) + u32::from(self.grants) + if self.has_more { self.further_frames() } else { 0 }
    }

    #[cold]
    fn further_frames(&self) -> u32 {
        self.overflow.as_ref().map_or(0, |overflow| overflow.frames() as u32)
    }

    /// Returns the index into `inline` of the frame with this arrival position.
    #[inline]
    fn slot_of(&self, number: usize) -> usize {
        (self.slot_order >> (SLOT_BITS * number)) as usize % INLINE
    }

    /// Iterates over all frames and their outputs: those with a place in front of their line, then
    /// the others, oldest first.
    pub(super) fn held(&self) -> impl Iterator<Item = (u16, &Slot)> {
        let first = (self.grants > 0).then_some(&self.granted);
        let granted = first.into_iter().chain(&self.more_granted);
        granted.map(|(output, slot)| (*output, slot)).chain(self.iter())
    }

    /// Iterates over the frames without a place in front of their line and their outputs, oldest
    /// first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Slot)> {
        let inline =
            (0..usize::from(self.used)).map(|number| (self.output_of(number), &self.inline[self.slot_of(number)]));
        inline.chain(self.overflow.iter().flat_map(|overflow| overflow.iter()))
    }

    /// Returns the output of the oldest frame, unless a frame has a place in front of its line.
    pub(super) fn head(&self) -> Option<u16> {
        if self.grants > 0 { None } else { self.iter().next().map(|(output, _)| output) }
    }

    /// Returns whether a frame with a place in front of its line waits for the input.
    #[inline]
    pub(super) fn has_grants(&self) -> bool {
        self.grants > 0
    }

    /// Returns the number of frames that have a place in front of their line.
    #[inline]
    pub(super) fn grants(&self) -> usize {
        self.grants.into()
    }

    /// Moves the oldest frame for an output behind the frames that have a place in front of their
    /// line. Returns whether another frame for this output is left.
    #[inline]
    pub(super) fn grant(&mut self, output: u16) -> Option<bool> {
        let (index, another) = self.take(output)?;
        let slot = *self.taken(index);
        if self.grants == 0 {
            self.granted = (output, slot);
        } else {
            self.more_granted.push_back((output, slot));
        }
        self.grants += 1;
        Some(another)
    }

    /// Removes the first frame that has a place in front of its line.
    #[inline]
    pub(super) fn take_granted(&mut self) -> Option<(u16, Slot)> {
        self.grants = self.grants.checked_sub(1)?;
        let first = self.granted;
        if self.grants > 0
            && let Some(next) = self.more_granted.pop_front()
        {
            self.granted = next;
        }
        Some(first)
    }

    /// Appends a frame.
    #[inline]
    pub(super) fn push(&mut self, output: u16, slot: Slot) {
        let number = usize::from(self.used);
        if number < INLINE {
            self.put(number, output, slot);
            self.used += 1;
        } else {
            let Slot { frame, at_ps, tail_after_ps, lane } = slot;
            self.push_overflow(output, frame, at_ps, tail_after_ps, lane);
        }
        self.max_frames = self.max_frames.max(self.frames());
    }

    /// The slot is passed in parts so that it stays in registers on the frequent path, which does
    /// not call this.
    #[cold]
    fn push_overflow(&mut self, output: u16, frame: FrameRef, at_ps: u64, tail_after_ps: u32, lane: u32) {
        self.overflow.get_or_insert_default().push(output, Slot { frame, at_ps, tail_after_ps, lane });
        self.has_more = true;
    }

    /// Removes the oldest frame for an output. Returns the index of the frame and whether another
    /// one for this output is left. Read the frame with [`Input::taken`] before the next change.
    #[inline(always)]
    pub(super) fn take(&mut self, output: u16) -> Option<(usize, bool)> {
        if usize::from(self.used) > FIELDS {
            return self.take_of_many(output);
        }
        // All frames are in the first word, and no other frame is behind them.
        let number = field_of(self.outputs[0], output)?;
        self.outputs[0] = shifted(self.outputs[0], number, NONE);
        let index = self.release_slot(number);
        Some((index, field_of(self.outputs[0], output).is_some()))
    }

    /// Variant of `take` for more frames than one word of `outputs` has.
    fn take_of_many(&mut self, output: u16) -> Option<(usize, bool)> {
        let Some(number) = self.find(output) else { return self.take_overflow(output) };
        self.remove_output(number);
        let index = self.release_slot(number);
        let index = if self.has_more { self.advance(index) } else { index };
        Some((index, self.has(output)))
    }

    /// Returns the index into `inline` of the frame with this arrival position, which becomes an
    /// empty slot.
    #[inline]
    fn release_slot(&mut self, number: usize) -> usize {
        let index = self.slot_of(number);
        let before = (1 << (SLOT_BITS * number)) - 1;
        let last = (index as u64) << (SLOT_BITS * (INLINE - 1));
        self.slot_order = self.slot_order & before | self.slot_order >> SLOT_BITS & !before | last;
        self.used -= 1;
        index
    }

    /// Removes the output of the inline frame with this arrival position.
    fn remove_output(&mut self, number: usize) {
        let last_word = (usize::from(self.used) - 1) / FIELDS % self.outputs.len();
        let mut field = number % FIELDS;
        for word in number / FIELDS..=last_word {
            let next = self.outputs.get(word + 1).map_or(NONE, |next| next & NONE);
            self.outputs[word] = shifted(self.outputs[word], field, next);
            field = 0;
        }
    }

    /// Returns the frame that [`Input::take`] removed.
    #[inline]
    pub(super) fn taken(&self, index: usize) -> &Slot {
        match self.inline.get(index) {
            Some(slot) => slot,
            None => self.taken_overflow(),
        }
    }

    #[cold]
    fn taken_overflow(&self) -> &Slot {
        self.overflow.as_ref().map_or(&Slot::EMPTY, |overflow| &overflow.taken)
    }

    #[cold]
    fn take_overflow(&mut self, output: u16) -> Option<(usize, bool)> {
        let overflow = self.overflow.as_mut()?;
        overflow.taken = overflow.take(output)?;
        self.has_more = !overflow.is_empty();
        Some((INLINE, self.has(output)))
    }

    /// Moves the first frame of `overflow` into the freed inline slot. Returns the index under
    /// which the removed frame can be read.
    #[cold]
    fn advance(&mut self, index: usize) -> usize {
        let Some(overflow) = &mut self.overflow else { return index };
        overflow.taken = self.inline[index];
        let next = overflow.pop();
        self.has_more = !overflow.is_empty();
        if let Some((output, slot)) = next {
            self.put(INLINE - 1, output, slot);
            self.used += 1;
        }
        INLINE
    }

    #[inline]
    fn put(&mut self, number: usize, output: u16, slot: Slot) {
        let word = &mut self.outputs[number / FIELDS];
        let shift = BITS * (number % FIELDS);
        *word = *word & !(NONE << shift) | u64::from(output) << shift;
        self.inline[self.slot_of(number)] = slot;
    }

    /// Returns the output of the inline frame with this arrival position.
    fn output_of(&self, number: usize) -> u16 {
        (self.outputs[number / FIELDS] >> (BITS * (number % FIELDS))) as u16
    }

    /// Returns the position of the first inline frame for this output.
    fn find(&self, output: u16) -> Option<usize> {
        let words = usize::from(self.used).div_ceil(FIELDS);
        let mut words = self.outputs.iter().enumerate().take(words);
        words.find_map(|(word, outputs)| Some(word * FIELDS + field_of(*outputs, output)?))
    }

    fn has(&self, output: u16) -> bool {
        self.find(output).is_some() || (self.has_more && self.has_overflow(output))
    }

    #[cold]
    fn has_overflow(&self, output: u16) -> bool {
        self.overflow.as_ref().is_some_and(|overflow| overflow.has(output))
    }

    /// Removes and returns all frames, oldest first.
    pub(super) fn take_all(&mut self) -> Vec<(u16, Slot)> {
        let all = self.held().map(|(output, slot)| (output, *slot)).collect();
        self.more_granted.clear();
        self.grants = 0;
        (self.outputs, self.slot_order, self.used, self.has_more) = (EMPTY, IN_ORDER, 0, false);
        self.overflow = None;
        all
    }

    /// Passes each frame to `change`, in any order.
    pub(super) fn change_frames(&mut self, change: &mut impl FnMut(&mut FrameRef)) {
        for number in 0..usize::from(self.used) {
            let index = self.slot_of(number);
            change(&mut self.inline[index].frame);
        }
        let further = self.overflow.iter_mut().flat_map(|overflow| {
            let held = overflow.outputs.iter().zip(&mut overflow.slots);
            held.filter(|(output, _)| **output != HOLE).map(|(_, slot)| slot)
        });
        let first = (self.grants > 0).then_some(&mut self.granted);
        let granted = first.into_iter().chain(&mut self.more_granted).map(|(_, slot)| slot);
        further.chain(granted).for_each(|slot| change(&mut slot.frame));
    }

    /// Counts a frame that arrives at `at` in the empty buffer and has crossed at `end`.
    #[inline]
    pub(super) fn pass(&mut self, at: u64, end: u64) {
        self.busy_until_ps = end;
        self.max_frames = self.max_frames.max(1);
        self.held_ps += end as i64 - at as i64;
    }

    /// Counts a frame that leaves between `start` and `end`.
    #[inline]
    pub(super) fn count(&mut self, slot: &Slot, start: u64, end: u64) {
        self.count_sent(slot, start);
        self.count_held(slot, end);
    }

    /// Counts a frame whose first bit leaves the switch at `start`.
    #[inline]
    pub(super) fn count_sent(&mut self, slot: &Slot, start: u64) {
        let wait_ps = start.saturating_sub(slot.at_ps);
        self.wait_sum_ps += wait_ps;
        self.wait_max_ps = self.wait_max_ps.max(wait_ps);
        self.wait_buckets[WaitCount::bucket(wait_ps)] += 1;
        self.bytes += slot.frame.wire_bytes();
    }

    /// Counts a frame that frees its buffer at `end`.
    #[inline]
    pub(super) fn count_held(&mut self, slot: &Slot, end: u64) {
        self.held_ps += end as i64 - slot.at_ps as i64;
    }

    /// Frees memory that no frame uses now.
    pub(super) fn trim(&mut self) {
        self.overflow.take_if(|overflow| overflow.is_empty());
    }

    pub(super) fn counted(&self) -> InputCount {
        let wait = WaitCount { sum_ps: self.wait_sum_ps, max_ps: self.wait_max_ps, buckets: self.wait_buckets };
        InputCount { bytes: self.bytes, max_frames: self.max_frames, wait }
    }

    /// Returns the integral of the occupied buffers over time, in buffers × ps, since the counters
    /// were reset.
    pub(super) fn held_area_ps(&self, now: u64) -> u64 {
        (self.held_ps + self.present_ps(now)).max(0) as u64
    }

    /// Resets the counters.
    pub(super) fn restart_counts(&mut self, now: u64) {
        (self.bytes, self.max_frames, self.held_ps) = (0, self.frames(), -self.present_ps(now));
        (self.wait_sum_ps, self.wait_max_ps, self.wait_buckets) = (0, 0, [0; WAIT_BUCKETS]);
    }

    /// Returns the sum of the ages of the frames in the buffer, in ps.
    fn present_ps(&self, now: u64) -> i64 {
        self.held().map(|(_, slot)| now.saturating_sub(slot.at_ps) as i64).sum()
    }
}

/// Returns the first field of a word of `outputs` that has this output.
#[inline]
fn field_of(outputs: u64, output: u16) -> Option<usize> {
    // The lowest field without a difference is the lowest one at which the subtraction borrows.
    let differences = outputs ^ (ONES * u64::from(output));
    let equal = differences.wrapping_sub(ONES) & !differences & (ONES << (BITS - 1));
    (equal != 0).then(|| equal.trailing_zeros() as usize / BITS)
}

/// Returns a word of `outputs` without a field. `last` enters the last field.
#[inline]
fn shifted(outputs: u64, field: usize, last: u64) -> u64 {
    let before = (1 << (BITS * field)) - 1;
    outputs & before | outputs >> BITS & !before | last << (BITS * (FIELDS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_leave_by_output_in_the_order_they_came(steps in prop::collection::vec((0u8..3, 0u16..6), 1..300)) {
            let (mut input, mut model) = (Input::default(), Vec::new());
            for (number, (kind, output)) in steps.into_iter().enumerate() {
                let on_line = InFlight::new(FrameRef::NONE, number as u64, 0);
                if kind > 0 && input.frames() < 40 {
                    input.push(output, Slot::new(on_line, 0));
                    model.push((output, number as u64));
                } else {
                    let at = model.iter().position(|&(other, _)| other == output);
                    let expected = at.map(|at| model.remove(at).1);
                    let more = model.iter().any(|&(other, _)| other == output);
                    let taken = input.take(output).map(|(index, again)| (input.taken(index).at_ps, again));
                    prop_assert_eq!(taken, expected.map(|at_ps| (at_ps, more)));
                }
                let here: Vec<_> = input.iter().map(|(output, slot)| (output, slot.at_ps)).collect();
                prop_assert_eq!((&here, input.frames()), (&model, model.len() as u32));
            }
        }
    }
}
