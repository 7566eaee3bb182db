//! The frames in front of the lines of an output.

use super::crossbar::Buffered;
use super::frame_ref::FrameRef;
use super::input::Slot;
use crate::net::queue::NEVER;
use std::collections::VecDeque;

/// Number that no trunk has.
pub(super) const NO_TRUNK: u16 = u16::MAX;

/// The buffer in front of the lines of one output. A place is occupied from the grant to an input
/// until the first bit of its frame is on a line.
#[derive(Clone, Debug)]
pub(super) struct Egress {
    /// Occupied places in the order of their grants.
    places: VecDeque<Place>,
    /// Number of places.
    capacity: u16,
    /// Number of places with a frame that has begun to cross.
    crossed: u16,
    /// True once a frame of a trunk has occupied a place.
    has_trunks: bool,
}

/// An occupied place.
#[derive(Clone, Copy, Debug)]
struct Place {
    input: u16,
    /// Trunk through which the frame arrived, or [`NO_TRUNK`].
    trunk: u16,
    /// Time at which the last bit has crossed, or [`NEVER`] while the frame is in its input buffer.
    ready_ps: u64,
    /// The frame, once it crosses.
    slot: Slot,
}

/// A frame that leaves the buffer for a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossed {
    pub slot: Slot,
    pub input: u16,
    /// Time at which the last bit has crossed.
    pub ready_ps: u64,
}

impl Egress {
    /// Returns an empty buffer with `frames` places for each of `lines` lines.
    pub fn new(frames: u16, lines: usize) -> Egress {
        let capacity = (usize::from(frames) * lines).min(usize::from(u16::MAX));
        Egress { places: VecDeque::with_capacity(capacity), capacity: capacity as u16, crossed: 0, has_trunks: false }
    }

    /// Returns whether a place is free.
    #[inline]
    pub fn has_place(&self) -> bool {
        self.places.len() < usize::from(self.capacity)
    }

    /// Reserves a place for the next frame of an input.
    #[inline]
    pub fn reserve(&mut self, input: u16, trunk: u16) {
        debug_assert!(self.has_place(), "no place of {} is free", self.capacity);
        self.has_trunks |= trunk != NO_TRUNK;
        self.places.push_back(Place { input, trunk, ready_ps: NEVER, slot: Slot::default() });
    }

    /// Occupies a place with a frame that has crossed.
    pub fn put(&mut self, crossed: Crossed, trunk: u16) {
        let Crossed { slot, input, ready_ps } = crossed;
        self.has_trunks |= trunk != NO_TRUNK;
        self.crossed += 1;
        self.places.push_back(Place { input, trunk, ready_ps, slot });
    }

    /// Fills the first reserved place of an input.
    #[inline]
    pub fn fill(&mut self, input: u16, slot: Slot, ready_ps: u64) {
        let place = self.places.iter_mut().find(|place| place.input == input && place.ready_ps == NEVER);
        debug_assert!(place.is_some(), "input {input} has no reserved place");
        if let Some(place) = place {
            (place.slot, place.ready_ps) = (slot, ready_ps);
            self.crossed += 1;
        }
    }

    /// Cancels the reserved places of an input.
    pub fn cancel(&mut self, input: u16) {
        self.places.retain(|place| place.input != input || place.ready_ps != NEVER);
    }

    /// Returns the position of the frame that leaves next. No frame overtakes an earlier one of its
    /// trunk.
    #[inline]
    fn next(&self) -> Option<usize> {
        let may_leave = |at: usize| {
            let place = &self.places[at];
            let waits_for = |other: &Place| other.trunk == place.trunk && other.ready_ps == NEVER;
            place.ready_ps != NEVER && (place.trunk == NO_TRUNK || !self.places.iter().take(at).any(waits_for))
        };
        (0..self.places.len()).find(|&at| may_leave(at))
    }

    /// Returns whether a frame may leave.
    #[inline]
    pub fn has_frame(&self) -> bool {
        self.crossed > 0 && (!self.has_trunks || self.next().is_some())
    }

    /// Removes the frame that leaves next.
    #[inline]
    pub fn take(&mut self) -> Option<Crossed> {
        self.take_at(self.next()?)
    }

    /// Returns the position of the frame that leaves a line that is free now, if a frame may start
    /// only when its last bits will be there in time. `start` returns this time for a frame and the
    /// time at which its last bit has crossed.
    ///
    /// # Errors
    ///
    /// The time at which the first frame may start; [`NEVER`] if none has begun to cross.
    pub fn next_to_start(&self, now: u64, start: impl Fn(&Slot, u64) -> u64) -> Result<usize, u64> {
        let mut first = NEVER;
        for (at, place) in self.places.iter().enumerate() {
            let is_before =
                |other: &Place| other.input == place.input || (place.trunk != NO_TRUNK && other.trunk == place.trunk);
            if place.ready_ps == NEVER || self.places.iter().take(at).any(is_before) {
                continue;
            }
            let start_ps = start(&place.slot, place.ready_ps);
            if start_ps <= now {
                return Ok(at);
            }
            first = first.min(start_ps);
        }
        Err(first)
    }

    /// Removes the frame at a position.
    pub fn take_at(&mut self, at: usize) -> Option<Crossed> {
        let place = self.places.remove(at)?;
        self.crossed -= 1;
        Some(Crossed { slot: place.slot, input: place.input, ready_ps: place.ready_ps })
    }

    /// Returns the arrival times at the switch of the frames from an input.
    pub fn arrivals(&self, input: u16) -> impl Iterator<Item = u64> + '_ {
        let crossed = self.places.iter().filter(move |place| place.input == input && place.ready_ps != NEVER);
        crossed.map(|place| place.slot.at_ps)
    }

    /// Passes each frame that has crossed to `change`.
    pub fn change_frames(&mut self, change: &mut impl FnMut(&mut FrameRef)) {
        let crossed = self.places.iter_mut().filter(|place| place.ready_ps != NEVER);
        crossed.for_each(|place| change(&mut place.slot.frame));
    }

    /// Iterates over the crossed frames.
    pub fn crossed(&self) -> impl Iterator<Item = &Slot> {
        self.places.iter().filter(|place| place.ready_ps != NEVER).map(|place| &place.slot)
    }

    /// Removes the crossed frames for which `which` returns true.
    pub fn discard(&mut self, output: u16, which: &mut impl FnMut(&Buffered) -> bool) -> Vec<Buffered> {
        let mut lost = Vec::new();
        self.places.retain(|place| {
            let buffered = place.slot.buffered(place.input, output, true);
            let goes = place.ready_ps != NEVER && which(&buffered);
            if goes {
                lost.push(buffered);
            }
            !goes
        });
        self.crossed -= lost.len() as u16;
        lost
    }
}
