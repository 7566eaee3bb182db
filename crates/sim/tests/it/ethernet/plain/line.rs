//! A line of the plain engine: its queues, and the choice of the next frame.

use super::Content;
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::net::ethernet::{LineErrors, Packet, Station};

pub(super) struct Flying {
    pub(super) acts_ps: u64,
    pub(super) tail_ps: u64,
    pub(super) content: Content,
}

/// A frame that waits at a port, in the order of arrival.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) packet: Packet,
    pub(super) is_bad: bool,
    pub(super) ready_ps: u64,
    /// Port that it came from; `None` in an interface.
    pub(super) ingress: Option<u16>,
}

pub struct PlainLine {
    pub(super) from: Station,
    pub(super) to: Station,
    pub(super) ps_per_byte: u64,
    pub(super) cable_ps: u64,
    pub(super) reaction_ps: u64,
    pub(super) shares: [u64; 8],
    pub(super) longest: u64,
    pub(super) enters_early: bool,
    pub(super) up: bool,
    pub(super) free_ps: u64,
    pub(super) waiting: Vec<Waiting>,
    pub(super) flying: Vec<Flying>,
    pub(super) to_name: u8,
    /// For each priority, the times between which no frame begins.
    pub(super) pauses: [(u64, u64); 8],
    pub(super) deficits: [u64; 8],
    pub(super) turn: usize,
    pub(super) granted: bool,
    pub errors: LineErrors,
    pub(super) dice: SplitMix64,
    pub(super) refresh_ps: u64,
    /// The sender sends and obeys pauses of the whole link only.
    pub whole: bool,
    /// Priorities whose pauses the sender obeys.
    pub obeys: u8,
    pub frames: u64,
    pub bytes: u64,
    pub pause_frames: u64,
}

impl PlainLine {
    pub(super) fn first(&self, priority: usize) -> Option<Waiting> {
        self.waiting.iter().find(|waiting| usize::from(waiting.packet.priority()) == priority).copied()
    }

    /// Takes a frame. A queue that becomes empty keeps no deficit and no turn.
    pub(super) fn take(&mut self, at: usize) -> Waiting {
        let waiting = self.waiting.remove(at);
        let priority = usize::from(waiting.packet.priority());
        if self.first(priority).is_none() {
            self.deficits[priority] = 0;
            if self.turn == priority {
                (self.turn, self.granted) = ((priority + 1) % 8, false);
            }
        }
        waiting
    }

    /// Strict priorities first, then deficit round robin.
    pub(super) fn choose(&mut self, ready: &[usize], first: &[Option<Waiting>]) -> Option<usize> {
        if let Some(&strict) = ready.iter().rev().find(|&&priority| self.shares[priority] == 0) {
            return Some(strict);
        }
        let least = *self.shares.iter().filter(|&&share| share > 0).min()?;
        while !ready.is_empty() {
            let priority = self.turn;
            if ready.contains(&priority) {
                if !self.granted {
                    self.deficits[priority] += self.shares[priority] * self.longest / least;
                    self.granted = true;
                }
                let bytes = first[priority].map_or(0, |waiting| u64::from(waiting.packet.bytes));
                if bytes <= self.deficits[priority] {
                    self.deficits[priority] -= bytes;
                    return Some(priority);
                }
            }
            (self.turn, self.granted) = ((priority + 1) % 8, false);
        }
        None
    }
}
