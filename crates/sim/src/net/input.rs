//! The receive buffers of one port of a switch, and what is counted there.

use super::crossbar::{InputCount, WAIT_BUCKETS, WaitCount};
use super::flight::InFlight;
use super::frame_ref::FrameRef;
use std::collections::VecDeque;

/// Frames that have a place in the input itself.
const NEAR: usize = 4;

/// Bits of an output, and a one in each.
const BITS: usize = 16;
const ONES: u64 = 0x0001_0001_0001_0001;

/// No output.
const NONE: u64 = 0xffff;

/// Bits of a place, and all places in their order.
const PLACE_BITS: usize = 2;
const IN_ORDER: u8 = 0b11_10_01_00;

/// An input buffer. A buffer holds few frames, so looking through it is cheaper than a queue for each output.
///
/// What every frame changes is in the first cache line. The frames are in the next two and stay where they were put; a list
/// of places says in which order they came. Those of an input with more than four are behind them; the waiting times by
/// length follow.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Input {
    /// Outputs of the frames, from the lowest bits on; [`NONE`] where there is none.
    outputs: u64,
    /// Places of `near` in the order of `outputs`, those without a frame last: two bits each, from the lowest on.
    places: u8,
    /// Frames in `near`.
    used: u8,
    /// There are frames in `behind`; then all places of `near` are used.
    overflows: bool,
    max_frames: u32,
    bytes: u64,
    held_ps: i64,
    wait_sum_ps: u64,
    wait_max_ps: u64,
    behind: Option<Box<Behind>>,
    /// It sends one frame at a time until then, if it does.
    pub(super) busy_until_ps: u64,
    near: [Slot; NEAR],
    wait_buckets: [u32; WAIT_BUCKETS],
}

const _: () = assert!(size_of::<Input>() == 3 * 64 + 4 * WAIT_BUCKETS);

/// The frames for which there is no place in the input itself.
///
/// A switch that answers hundreds of others has hundreds of frames in the input for its own: what is looked through are
/// the outputs alone, and a frame that leaves from the middle leaves a hole.
#[derive(Clone, Debug, Default)]
struct Behind {
    /// Output of each frame, [`HOLE`] where there is none; neither the first nor most are holes.
    outputs: VecDeque<u16>,
    slots: VecDeque<Slot>,
    holes: usize,
    /// The frame that was taken last.
    taken: Slot,
}

/// No output: a frame was here.
const HOLE: u16 = NONE as u16;

impl Behind {
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

    /// The oldest frame for an output.
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

/// A frame in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The frame.
    pub frame: FrameRef,
    /// Since when it might leave.
    pub at_ps: u64,
    tail_after_ps: u32,
    /// Lane over which it came, [`super::NO_LANE`] if the switch has made it.
    pub lane: u32,
}

impl Slot {
    /// Stands where there is no frame.
    const EMPTY: Slot = Slot { frame: FrameRef::NONE, at_ps: 0, tail_after_ps: 0, lane: super::NO_LANE };

    #[inline]
    pub(super) fn new(on_line: InFlight, lane: u32) -> Slot {
        let InFlight { frame, at_ps, tail_after_ps } = on_line;
        Slot { frame, at_ps, tail_after_ps, lane }
    }

    /// The frame as it came.
    pub(super) fn on_line(&self) -> InFlight {
        let &Slot { frame, at_ps, tail_after_ps, .. } = self;
        InFlight { frame, at_ps, tail_after_ps }
    }

    /// When its last bit has arrived, or since when it might leave if that is later.
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
            outputs: ONES * NONE,
            places: IN_ORDER,
            used: 0,
            overflows: false,
            max_frames: 0,
            bytes: 0,
            held_ps: 0,
            wait_sum_ps: 0,
            wait_max_ps: 0,
            behind: None,
            busy_until_ps: 0,
            near: [Slot::EMPTY; NEAR],
            wait_buckets: [0; WAIT_BUCKETS],
        }
    }
}

impl Input {
    /// Number of frames.
    #[inline]
    pub(super) fn frames(&self) -> u32 {
        u32::from(self.used) + if self.overflows { self.frames_behind() } else { 0 }
    }

    #[cold]
    fn frames_behind(&self) -> u32 {
        self.behind.as_ref().map_or(0, |behind| behind.frames() as u32)
    }

    /// Where the frame is that came as the one of this number.
    #[inline]
    fn place(&self, number: usize) -> usize {
        usize::from(self.places >> (PLACE_BITS * number)) % NEAR
    }

    /// The frames and their outputs, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Slot)> {
        let near = (0..usize::from(self.used))
            .map(|number| ((self.outputs >> (BITS * number)) as u16, &self.near[self.place(number)]));
        near.chain(self.behind.iter().flat_map(|behind| behind.iter()))
    }

    /// The oldest frame and its output.
    pub(super) fn oldest(&self) -> Option<(u16, &Slot)> {
        self.iter().next()
    }

    /// A frame that came behind all others.
    #[inline]
    pub(super) fn push(&mut self, output: u16, slot: Slot) {
        let number = usize::from(self.used);
        if number < NEAR {
            self.put(number, output, slot);
            self.used += 1;
        } else {
            let Slot { frame, at_ps, tail_after_ps, lane } = slot;
            self.push_behind(output, frame, at_ps, tail_after_ps, lane);
        }
        self.max_frames = self.max_frames.max(self.frames());
    }

    /// A slot that is handed on in parts stays in registers where it is not: that path is the frequent one.
    #[cold]
    fn push_behind(&mut self, output: u16, frame: FrameRef, at_ps: u64, tail_after_ps: u32, lane: u32) {
        self.behind.get_or_insert_default().push(output, Slot { frame, at_ps, tail_after_ps, lane });
        self.overflows = true;
    }

    /// Takes the oldest frame for an output: where it was, to be read with [`Input::taken`] before anything else happens, and
    /// whether there is another one for the output.
    #[inline]
    pub(super) fn take(&mut self, output: u16) -> Option<(usize, bool)> {
        let Some(number) = self.find(output) else { return self.take_behind(output) };
        let place = self.place(number);
        let before = (1 << (BITS * number)) - 1;
        self.outputs = self.outputs & before | self.outputs >> BITS & !before | NONE << (BITS * (NEAR - 1));
        let before = (1 << (PLACE_BITS * number)) - 1;
        let last = (place as u8) << (PLACE_BITS * (NEAR - 1));
        self.places = self.places & before | self.places >> PLACE_BITS & !before | last;
        self.used -= 1;
        let place = if self.overflows { self.advance(place) } else { place };
        Some((place, self.has(output)))
    }

    /// The frame that was taken.
    #[inline]
    pub(super) fn taken(&self, place: usize) -> &Slot {
        match self.near.get(place) {
            Some(slot) => slot,
            None => self.taken_behind(),
        }
    }

    #[cold]
    fn taken_behind(&self) -> &Slot {
        self.behind.as_ref().map_or(&Slot::EMPTY, |behind| &behind.taken)
    }

    #[cold]
    fn take_behind(&mut self, output: u16) -> Option<(usize, bool)> {
        let behind = self.behind.as_mut()?;
        behind.taken = behind.take(output)?;
        self.overflows = !behind.is_empty();
        Some((NEAR, self.has(output)))
    }

    /// A frame of this place was taken: the first one behind takes the place. Tells where the taken one is now.
    #[cold]
    fn advance(&mut self, place: usize) -> usize {
        let Some(behind) = &mut self.behind else { return place };
        behind.taken = self.near[place];
        let next = behind.pop();
        self.overflows = !behind.is_empty();
        if let Some((output, slot)) = next {
            self.put(NEAR - 1, output, slot);
            self.used += 1;
        }
        NEAR
    }

    #[inline]
    fn put(&mut self, number: usize, output: u16, slot: Slot) {
        self.outputs = self.outputs & !(NONE << (BITS * number)) | u64::from(output) << (BITS * number);
        self.near[self.place(number)] = slot;
    }

    /// The first frame whose output is this one.
    #[inline]
    fn find(&self, output: u16) -> Option<usize> {
        // The lowest one without a difference is the lowest at which the subtraction borrows.
        let differences = self.outputs ^ (ONES * u64::from(output));
        let equal = differences.wrapping_sub(ONES) & !differences & (ONES << (BITS - 1));
        (equal != 0).then(|| equal.trailing_zeros() as usize / BITS)
    }

    #[inline(always)]
    fn has(&self, output: u16) -> bool {
        self.find(output).is_some() || (self.overflows && self.has_behind(output))
    }

    #[cold]
    fn has_behind(&self, output: u16) -> bool {
        self.behind.as_ref().is_some_and(|behind| behind.has(output))
    }

    /// Takes all frames, oldest first.
    pub(super) fn take_all(&mut self) -> Vec<(u16, Slot)> {
        let all = self.iter().map(|(output, slot)| (output, *slot)).collect();
        (self.outputs, self.places, self.used, self.overflows) = (ONES * NONE, IN_ORDER, 0, false);
        self.behind = None;
        all
    }

    /// Counts a frame that leaves from `start` to `end`.
    #[inline]
    pub(super) fn count(&mut self, slot: &Slot, start: u64, end: u64) {
        let wait_ps = start.saturating_sub(slot.at_ps);
        self.wait_sum_ps += wait_ps;
        self.wait_max_ps = self.wait_max_ps.max(wait_ps);
        self.wait_buckets[WaitCount::bucket(wait_ps)] += 1;
        self.bytes += slot.frame.wire_bytes();
        self.held_ps += end as i64 - slot.at_ps as i64;
    }

    /// Gives back memory that no frame needs now.
    pub(super) fn trim(&mut self) {
        self.behind.take_if(|behind| behind.is_empty());
    }

    /// The counters.
    pub(super) fn counted(&self) -> InputCount {
        let wait = WaitCount { sum_ps: self.wait_sum_ps, max_ps: self.wait_max_ps, buckets: self.wait_buckets };
        InputCount { bytes: self.bytes, max_frames: self.max_frames, wait }
    }

    /// Occupied buffers times picoseconds since the restart of the counters.
    pub(super) fn held_area_ps(&self, now: u64) -> u64 {
        (self.held_ps + self.present_ps(now)).max(0) as u64
    }

    /// Restarts the counters.
    pub(super) fn restart_counts(&mut self, now: u64) {
        (self.bytes, self.max_frames, self.held_ps) = (0, self.frames(), -self.present_ps(now));
        (self.wait_sum_ps, self.wait_max_ps, self.wait_buckets) = (0, 0, [0; WAIT_BUCKETS]);
    }

    /// Times for which the frames that are here have been here, summed.
    fn present_ps(&self, now: u64) -> i64 {
        self.iter().map(|(_, slot)| now.saturating_sub(slot.at_ps) as i64).sum()
    }
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
                if kind > 0 && input.frames() < 30 {
                    input.push(output, Slot::new(on_line, 0));
                    model.push((output, number as u64));
                } else {
                    let at = model.iter().position(|&(other, _)| other == output);
                    let expected = at.map(|at| model.remove(at).1);
                    let more = model.iter().any(|&(other, _)| other == output);
                    let taken = input.take(output).map(|(place, again)| (input.taken(place).at_ps, again));
                    prop_assert_eq!(taken, expected.map(|at_ps| (at_ps, more)));
                }
                let here: Vec<_> = input.iter().map(|(output, slot)| (output, slot.at_ps)).collect();
                prop_assert_eq!((&here, input.frames()), (&model, model.len() as u32));
            }
        }
    }
}
