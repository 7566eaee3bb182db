//! The frames on the line of a lane.

use super::frame_ref::FrameRef;
use crate::net::queue::NEVER;
use std::collections::VecDeque;

/// Initial capacity of the queue of a long line.
const INITIAL_CAPACITY: usize = 8;

/// A frame on the line.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Time at which the receiver may process the frame.
    pub at_ps: u64,
    pub frame: FrameRef,
    /// Time from `at_ps` until the last bit arrives. Not zero if the frame is forwarded by
    /// cut-through.
    pub tail_after_ps: u32,
}

impl InFlight {
    /// Returns a frame that may be processed at `at_ps` and whose last bit arrives at `tail_ps`.
    /// The difference fits into 32 bits, which is 4 ms: even on the slowest line a frame is
    /// shorter.
    #[inline]
    pub fn new(frame: FrameRef, at_ps: u64, tail_ps: u64) -> InFlight {
        let tail_after_ps = tail_ps.saturating_sub(at_ps).min(u64::from(u32::MAX)) as u32;
        InFlight { at_ps, frame, tail_after_ps }
    }

    /// Returns the arrival time of the last bit, or `at_ps` if that is later.
    #[inline]
    pub fn tail_ps(&self) -> u64 {
        self.at_ps + u64::from(self.tail_after_ps)
    }
}

/// Time at which a receiver processes a frame on the line. Its latency follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Entry {
    /// The last bit has arrived.
    Whole,
    /// The header has arrived.
    Header,
    /// The header has arrived. If the frame leaves through a faster line, enough has arrived for
    /// that line to send it without a pause.
    ForOutput,
    /// Enough has arrived for the fastest line of the switch to send the frame without a pause.
    ForFastest,
}

/// Frames on a line, in the order of their arrival times.
///
/// A short line holds one frame, or the end of one and the beginning of the next. Two frames are
/// therefore stored inline, in a cache line of their own. Only a line that holds more frames has a
/// queue.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Flight {
    /// Arrival times of the two inline frames, [`NEVER`] for an empty slot. The second slot is used
    /// only if the first is.
    at_ps: [u64; INLINE],
    frames: [FrameRef; INLINE],
    tail_after_ps: [u32; INLINE],
    /// Frames after the second.
    overflow: Option<Box<Overflow>>,
}

/// Number of frames stored inline.
const INLINE: usize = 2;

const _: () = assert!(size_of::<Flight>() == 64);

#[derive(Clone, Debug)]
struct Overflow(VecDeque<InFlight>);

impl Default for Flight {
    fn default() -> Flight {
        Flight { at_ps: [NEVER; INLINE], frames: [FrameRef::NONE; INLINE], tail_after_ps: [0; INLINE], overflow: None }
    }
}

impl Flight {
    /// Returns whether the line is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next_ps() == NEVER
    }

    /// Returns the arrival time of the first frame, or [`NEVER`] if the line is empty.
    #[inline]
    pub fn next_ps(&self) -> u64 {
        self.at_ps[0]
    }

    /// Returns the number of frames on the line.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Iterates over the frames in the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = InFlight> {
        let inline = (0..INLINE).map(|slot| self.get(slot)).filter(|on_line| on_line.at_ps != NEVER);
        inline.chain(self.overflow.iter().flat_map(|overflow| overflow.0.iter().copied()))
    }

    /// Appends a frame that arrives after all others. Returns true if the line was empty.
    #[inline(always)]
    pub fn push(&mut self, frame: InFlight) -> bool {
        if self.is_empty() {
            self.put(0, frame);
            return true;
        }
        if self.at_ps[1] == NEVER {
            self.put(1, frame);
        } else {
            self.queue(frame);
        }
        false
    }

    /// Returns the first frame. The line is not empty.
    #[inline]
    pub(super) fn first(&self) -> InFlight {
        self.get(0)
    }

    /// Replaces the first frame. Its arrival time is before that of the next one.
    #[inline]
    pub(super) fn set_first(&mut self, frame: InFlight) {
        debug_assert!(frame.at_ps < self.at_ps[1], "a frame overtakes the next one on its line");
        self.put(0, frame);
    }

    /// Removes the first frame. Returns it with the arrival time of the next one, which is
    /// [`NEVER`] if there is none.
    #[inline]
    pub fn pop(&mut self) -> (InFlight, u64) {
        let (first, second) = (self.get(0), self.get(1));
        self.put(0, second);
        self.at_ps[1] = NEVER;
        // With an empty slot there is no overflow, and its memory need not be read.
        if second.at_ps != NEVER && self.overflow.is_some() {
            self.advance();
        }
        (first, second.at_ps)
    }

    #[inline]
    fn get(&self, slot: usize) -> InFlight {
        InFlight { at_ps: self.at_ps[slot], frame: self.frames[slot], tail_after_ps: self.tail_after_ps[slot] }
    }

    #[inline]
    fn put(&mut self, slot: usize, frame: InFlight) {
        self.at_ps[slot] = frame.at_ps;
        self.frames[slot] = frame.frame;
        self.tail_after_ps[slot] = frame.tail_after_ps;
    }

    #[cold]
    fn queue(&mut self, frame: InFlight) {
        self.overflow
            .get_or_insert_with(|| Box::new(Overflow(VecDeque::with_capacity(INITIAL_CAPACITY))))
            .0
            .push_back(frame);
    }

    #[cold]
    fn advance(&mut self) {
        if let Some(next) = self.overflow.as_mut().and_then(|overflow| overflow.0.pop_front()) {
            self.put(1, next);
        }
    }

    /// Passes each frame to `change`.
    pub(super) fn change_frames(&mut self, mut change: impl FnMut(&mut FrameRef)) {
        let used = self.at_ps.iter().filter(|&&at_ps| at_ps != NEVER).count();
        self.frames[..used].iter_mut().for_each(&mut change);
        let overflow = self.overflow.iter_mut().flat_map(|overflow| &mut overflow.0);
        overflow.for_each(|on_line| change(&mut on_line.frame));
    }

    /// Removes and returns all frames, in the order of arrival.
    pub fn take(&mut self) -> Vec<FrameRef> {
        let frames = self.iter().map(|on_line| on_line.frame).collect();
        *self = Flight::default();
        frames
    }
}
