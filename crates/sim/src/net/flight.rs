//! The frames on the line of a lane.

use super::frame_ref::FrameRef;
use super::queue::NEVER;
use std::collections::VecDeque;

/// Places that the queue of a longer line begins with.
const PLACES: usize = 8;

/// A frame on the line.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// When the receiver may deal with it.
    pub at_ps: u64,
    /// The frame.
    pub frame: FrameRef,
    /// From then until its last bit is there: the rest of a frame that is forwarded before its end.
    pub tail_after_ps: u32,
}

impl InFlight {
    /// A frame that may be dealt with at `at_ps` and whose last bit is there at `tail_ps`. No line is so slow that a frame
    /// takes the four milliseconds that fit.
    #[inline]
    pub fn new(frame: FrameRef, at_ps: u64, tail_ps: u64) -> InFlight {
        let tail_after_ps = tail_ps.saturating_sub(at_ps).min(u64::from(u32::MAX)) as u32;
        InFlight { at_ps, frame, tail_after_ps }
    }

    /// When its last bit is there, or when it may be dealt with if that is later.
    #[inline]
    pub fn tail_ps(&self) -> u64 {
        self.at_ps + u64::from(self.tail_after_ps)
    }
}

/// Frames on a line, in the order of their arrivals.
///
/// A short line holds one frame or the end of one and the beginning of the next. They stand here, in a cache line of their
/// own; only a line that holds more has a queue.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Flight {
    /// Due at [`NEVER`] if there is none; the second only behind a first.
    at_ps: [u64; NEAR],
    frames: [FrameRef; NEAR],
    tail_after_ps: [u32; NEAR],
    /// The frames behind the second.
    behind: Option<Box<Behind>>,
}

/// Frames of a line that need no queue.
const NEAR: usize = 2;

const _: () = assert!(size_of::<Flight>() == 64);

#[derive(Clone, Debug)]
struct Behind(VecDeque<InFlight>);

impl Default for Flight {
    fn default() -> Flight {
        Flight { at_ps: [NEVER; NEAR], frames: [FrameRef::NONE; NEAR], tail_after_ps: [0; NEAR], behind: None }
    }
}

impl Flight {
    /// No frame is on the line.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next_ps() == NEVER
    }

    /// When the first frame arrives, [`NEVER`] if there is none.
    #[inline]
    pub fn next_ps(&self) -> u64 {
        self.at_ps[0]
    }

    /// Frames on the line.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// The frames, the first to arrive in front.
    pub fn iter(&self) -> impl Iterator<Item = InFlight> {
        let near = (0..NEAR).map(|place| self.get(place)).filter(|on_line| on_line.at_ps != NEVER);
        near.chain(self.behind.iter().flat_map(|behind| behind.0.iter().copied()))
    }

    /// A frame that arrives behind all others. True: it is the only one.
    #[inline]
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

    /// Takes the first frame. Also tells when the next one arrives, [`NEVER`] if there is none.
    #[inline]
    pub fn pop(&mut self) -> (InFlight, u64) {
        let (first, second) = (self.get(0), self.get(1));
        self.put(0, second);
        self.at_ps[1] = NEVER;
        if self.behind.is_some() {
            self.advance();
        }
        (first, second.at_ps)
    }

    #[inline]
    fn get(&self, place: usize) -> InFlight {
        InFlight { at_ps: self.at_ps[place], frame: self.frames[place], tail_after_ps: self.tail_after_ps[place] }
    }

    #[inline]
    fn put(&mut self, place: usize, frame: InFlight) {
        self.at_ps[place] = frame.at_ps;
        self.frames[place] = frame.frame;
        self.tail_after_ps[place] = frame.tail_after_ps;
    }

    #[cold]
    fn queue(&mut self, frame: InFlight) {
        self.behind.get_or_insert_with(|| Box::new(Behind(VecDeque::with_capacity(PLACES)))).0.push_back(frame);
    }

    #[cold]
    fn advance(&mut self) {
        if let Some(next) = self.behind.as_mut().and_then(|behind| behind.0.pop_front()) {
            self.put(1, next);
        }
    }

    /// Takes all frames, the first to arrive in front.
    pub fn take(&mut self) -> Vec<FrameRef> {
        let frames = self.iter().map(|on_line| on_line.frame).collect();
        *self = Flight::default();
        frames
    }
}
