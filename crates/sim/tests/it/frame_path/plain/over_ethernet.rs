//! Lanes of virtual links: the frames cross an Ethernet, which is not a part of this engine.
//!
//! 1. A credit is a place in the Ethernet port of the sender. It returns when the frame has begun
//!    to leave there, or is lost before.
//! 2. A frame arrives when Ethernet delivers it, and the switch acts on it after its latency.
//! 3. The receiver reports each frame that leaves its buffer. There are no R_RDYs, no link resets
//!    and no faults of the line.

use super::{End, Engine, Frame, Lane};

/// An event of a lane for the Ethernet below.
#[derive(Clone, Copy, Debug)]
pub enum Seam {
    /// A frame leaves on the lane; its first bit does so at `start` at the earliest.
    Frame { lane: usize, start: u64, frame: Frame },
    /// A frame has left the receive buffer.
    Freed { lane: usize },
    /// The link is down, so its frames on Ethernet are lost.
    Cut { lane: usize },
}

impl Lane {
    /// Makes the lane one of a virtual link, at a rate of Ethernet.
    pub fn carried(mut self, ps_per_byte: u64) -> Lane {
        (self.over_ethernet, self.byte) = (true, (ps_per_byte, 1));
        self
    }

    /// Bytes of all frames sent.
    pub fn sent_bytes(&self) -> u64 {
        self.bytes
    }

    /// Credits of the sender at `now`.
    pub fn credits_at(&self, now: u64) -> usize {
        self.credits + self.returns.iter().filter(|&&at| at <= now).count()
    }
}

impl Engine {
    pub(super) fn hand_over(&mut self, lane: usize, start: u64, frame: Frame) {
        self.on_ethernet += 1;
        self.seam.push(Seam::Frame { lane, start, frame });
    }

    /// A frame has arrived from Ethernet.
    pub fn land(&mut self, lane: usize, frame: Frame) {
        let now = self.now;
        let latency = match self.lanes[lane].to {
            End::Switch(switch, _) => self.switches[switch].latency,
            End::NPort(_) => 0,
        };
        self.on_ethernet -= 1;
        self.lanes[lane].flying.push((now + latency, now, frame));
    }

    /// A frame has left the Ethernet port of its sender.
    pub fn place_is_free(&mut self, lane: usize) {
        let now = self.now;
        if !self.lanes[lane].up {
            return;
        }
        self.lanes[lane].returns.push(now);
        if self.lanes[lane].credit_wait_since.is_some() {
            self.schedule_try(now, lane);
        }
    }
}
