//! The limit on data frames in flight.

use std::collections::VecDeque;

/// Data frames that are on their way to or from an HBA, and how many may be (our reading of document 001's
/// "32 frame buffers" of a controller).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameWindow {
    limit: Option<u32>,
    in_flight: u32,
    frame_bytes: u32,
    waiting: VecDeque<u16>,
}

impl FrameWindow {
    /// At most `limit` frames (`None`: no limit), each with up to `frame_bytes` of data.
    pub fn new(limit: Option<u32>, frame_bytes: u32) -> FrameWindow {
        FrameWindow { limit, in_flight: 0, frame_bytes: frame_bytes.max(1), waiting: VecDeque::new() }
    }

    /// Frames that the data of a command needs.
    pub fn frames_of(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.frame_bytes)
    }

    /// Whether a command of `bytes` may start. One that alone is larger than the limit may start when nothing else is
    /// in flight, as it could never start otherwise.
    pub fn fits(&self, bytes: u32) -> bool {
        let Some(limit) = self.limit else {
            return true;
        };
        self.in_flight == 0 || self.in_flight.saturating_add(self.frames_of(bytes)) <= limit
    }

    /// A command of `bytes` starts.
    pub fn take(&mut self, bytes: u32) {
        self.in_flight = self.in_flight.saturating_add(self.frames_of(bytes));
    }

    /// A command of `bytes` ended.
    pub fn give_back(&mut self, bytes: u32) {
        debug_assert!(self.in_flight >= self.frames_of(bytes));
        self.in_flight = self.in_flight.saturating_sub(self.frames_of(bytes));
    }

    /// A host has a command for which there is no room, and others use the HBA too: it gets its turn behind those who wait.
    pub fn wait(&mut self, host: u16) {
        if !self.waiting.contains(&host) {
            self.waiting.push_back(host);
        }
    }

    /// The host whose turn it is; it waits no more.
    pub fn next_waiting(&mut self) -> Option<u16> {
        self.waiting.pop_front()
    }

    /// The host, if it waits again, keeps its turn: it got nothing.
    pub fn keep_turn(&mut self, host: u16) -> bool {
        let waits_again = self.waiting.back() == Some(&host);
        if waits_again {
            self.waiting.rotate_right(1);
        }
        waits_again
    }

    /// Somebody waits.
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Frames in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
}
