//! The queues of a port and their scheduler.

use super::ets::Ets;
use super::packet::{PRIORITIES, Packet};
use super::pause::Pauses;
use crate::net::queue::NEVER;
use std::collections::VecDeque;

/// Ingress of a frame that the owner of the port has sent itself.
pub(super) const OWN: u16 = u16::MAX;

/// A frame that waits for its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub packet: Packet,
    /// Earliest start, in ps.
    pub ready_ps: u64,
    /// Port of the switch that the frame came from, or [`OWN`].
    pub ingress: u16,
}

/// The queues of a port, one for each priority.
#[derive(Clone, Debug)]
pub(super) struct Egress {
    queues: [VecDeque<Queued>; PRIORITIES],
    bytes: [u64; PRIORITIES],
    /// Most bytes that have waited in one queue.
    max_bytes: u64,
    /// Priorities with a frame.
    used: u8,
    ets: Ets,
    /// Priorities that the next pause frame names.
    pause: u8,
}

/// Answer of [`Egress::next`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The first frame of this priority begins now.
    Send(usize),
    /// A frame may begin at this time, in ps; [`NEVER`] if there is none.
    Wait(u64),
}

impl Egress {
    pub fn new(ets: Ets) -> Egress {
        Egress {
            queues: std::array::from_fn(|_| VecDeque::new()),
            bytes: [0; PRIORITIES],
            max_bytes: 0,
            used: 0,
            ets,
            pause: 0,
        }
    }

    /// Returns the bytes that wait in a queue.
    #[inline]
    pub fn bytes(&self, priority: usize) -> u64 {
        self.bytes[priority]
    }

    /// Returns the most bytes that have waited in one queue.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the number of frames that wait.
    pub fn frames(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Returns whether something waits for the line, a pause frame included.
    #[inline]
    pub fn has_frames(&self) -> bool {
        self.used != 0 || self.pause != 0
    }

    /// Iterates over the frames of a priority.
    pub fn frames_of(&self, priority: usize) -> impl Iterator<Item = &Queued> {
        self.queues[priority].iter()
    }

    #[inline]
    pub fn push(&mut self, queued: Queued) {
        let priority = usize::from(queued.packet.priority());
        self.bytes[priority] += u64::from(queued.packet.bytes);
        self.max_bytes = self.max_bytes.max(self.bytes[priority]);
        self.used |= 1 << priority;
        self.queues[priority].push_back(queued);
    }

    /// Names priorities in the next pause frame. One that waits names all of them.
    pub fn name_in_pause(&mut self, priorities: u8) {
        self.pause |= priorities;
    }

    /// Takes the priorities for a pause frame; 0 if none is due. Pause frames come before all
    /// others and are never paused.
    #[inline]
    pub fn take_pause(&mut self) -> u8 {
        std::mem::take(&mut self.pause)
    }

    /// Chooses the next frame at `now`.
    #[inline]
    pub fn next(&mut self, now: u64, pauses: &Pauses) -> Next {
        let (mut ready, mut wait_ps, mut left) = (0u8, NEVER, self.used);
        while left != 0 {
            let priority = left.trailing_zeros() as usize;
            left &= left - 1;
            let ready_ps = self.queues[priority].front().map_or(NEVER, |queued| queued.ready_ps);
            let at_ps = ready_ps.max(pauses.may_begin_ps(priority, now));
            if at_ps <= now {
                ready |= 1 << priority;
            } else {
                wait_ps = wait_ps.min(at_ps);
            }
        }
        let queues = &self.queues;
        let first_bytes = |priority: usize| queues[priority].front().map_or(0, |queued| queued.packet.bytes.into());
        self.ets.choose(ready, first_bytes).map_or(Next::Wait(wait_ps), Next::Send)
    }

    /// Takes the first frame of a priority.
    #[inline]
    pub fn pop(&mut self, priority: usize) -> Option<Queued> {
        let queued = self.queues[priority].pop_front()?;
        self.bytes[priority] -= u64::from(queued.packet.bytes);
        if self.queues[priority].is_empty() {
            self.used &= !(1 << priority);
            self.ets.is_empty(priority);
        }
        Some(queued)
    }
}
