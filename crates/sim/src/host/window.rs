//! The limit on data frames in flight.

use std::collections::VecDeque;

/// The number of data frames in flight to and from an HBA, and its limit. This is our
/// interpretation of the "32 frame buffers" of a controller in the SANSim paper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameWindow {
    limit: Option<u32>,
    in_flight: u32,
    frame_bytes: u32,
    waiting: VecDeque<u16>,
}

impl FrameWindow {
    /// Returns a window of at most `limit` frames (`None`: no limit), each with up to `frame_bytes`
    /// of data.
    pub fn new(limit: Option<u32>, frame_bytes: u32) -> FrameWindow {
        FrameWindow { limit, in_flight: 0, frame_bytes: frame_bytes.max(1), waiting: VecDeque::new() }
    }

    /// Returns the number of frames for the data of a command.
    pub fn frames_of(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.frame_bytes)
    }

    /// Returns whether a command of `bytes` may start. A command larger than the limit may start if
    /// nothing else is in flight, because otherwise it could never start.
    pub fn fits(&self, bytes: u32) -> bool {
        let Some(limit) = self.limit else {
            return true;
        };
        self.in_flight == 0 || self.in_flight.saturating_add(self.frames_of(bytes)) <= limit
    }

    /// Reserves the frames of a command of `bytes` that starts.
    pub fn reserve(&mut self, bytes: u32) {
        self.in_flight = self.in_flight.saturating_add(self.frames_of(bytes));
    }

    /// Frees the frames of a command of `bytes` that has ended.
    pub fn release(&mut self, bytes: u32) {
        debug_assert!(self.in_flight >= self.frames_of(bytes), "the frames were reserved");
        self.in_flight = self.in_flight.saturating_sub(self.frames_of(bytes));
    }

    /// Queues a host whose command does not fit, behind the hosts that already wait. Used if
    /// several hosts share the HBA.
    pub fn wait(&mut self, host: u16) {
        if !self.waiting.contains(&host) {
            self.waiting.push_back(host);
        }
    }

    /// Removes and returns the first waiting host.
    pub fn next_waiting(&mut self) -> Option<u16> {
        self.waiting.pop_front()
    }

    /// Moves a host that got no space and waits again back to the front. Returns whether it waits
    /// again.
    pub fn requeue_first(&mut self, host: u16) -> bool {
        let waits_again = self.waiting.back() == Some(&host);
        if waits_again {
            self.waiting.rotate_right(1);
        }
        waits_again
    }

    /// Returns whether a host waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the number of frames in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
}
