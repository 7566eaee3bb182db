//! Segments on their way.

use sanloom_transport::tcp::{Ecn, Segment};

/// Segments of frames in the plane, by number.
#[derive(Default)]
pub(super) struct Pool {
    segments: Vec<Segment>,
    free: Vec<u32>,
    /// Places of segments that are gone but may still be read, if they are kept.
    kept: Option<Vec<u32>>,
}

impl Pool {
    /// Stores a segment and returns its number.
    pub fn add(&mut self, segment: Segment) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.segments[number as usize] = segment;
                number
            }
            None => {
                self.segments.push(segment);
                self.segments.len() as u32 - 1
            }
        }
    }

    /// Takes a segment.
    pub fn take(&mut self, number: u32) -> Segment {
        self.free(number);
        self.segments[number as usize]
    }

    /// Notes that a switch has marked the packet of a segment.
    pub fn mark(&mut self, number: u32) {
        self.segments[number as usize].ecn = Ecn::Ce;
    }

    /// Frees the place of a segment.
    pub fn free(&mut self, number: u32) {
        self.kept.as_mut().unwrap_or(&mut self.free).push(number);
    }

    /// Keeps segments that are freed from now on, until [`Pool::forget`].
    pub fn keep(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// Forgets the segments that were kept.
    pub fn forget(&mut self) {
        self.free.extend(self.kept.iter_mut().flat_map(|kept| kept.drain(..)));
    }

    /// Forgets the segments that were kept, and keeps no more.
    pub fn keep_none(&mut self) {
        self.forget();
        self.kept = None;
    }

    /// Returns a segment that is on its way or kept.
    pub fn get(&self, number: u32) -> Option<&Segment> {
        self.segments.get(number as usize)
    }

    /// Returns the number of stored segments.
    pub fn used(&self) -> usize {
        self.segments.len() - self.free.len() - self.kept.as_ref().map_or(0, Vec::len)
    }
}
