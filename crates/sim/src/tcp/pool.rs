//! Segments on their way.

use sanloom_transport::tcp::Segment;

/// Segments of frames in the plane, by number.
#[derive(Default)]
pub(super) struct Pool {
    segments: Vec<Segment>,
    free: Vec<u32>,
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

    /// Frees the place of a segment.
    pub fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Returns the number of stored segments.
    pub fn used(&self) -> usize {
        self.segments.len() - self.free.len()
    }
}
