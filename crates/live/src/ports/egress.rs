//! What waits to leave through a port: [`Egress`].

use crate::frame::{FrameBuf, Pool};
use sanloom_core::time::{Instant, Span};
use std::collections::VecDeque;

/// From this length on, whoever feeds the port is held back.
pub const FULL: usize = 256;
/// Below this length they may go on.
const ROOM: usize = 128;

/// A frame and when it came into the queue.
#[derive(Debug)]
pub struct Queued {
    /// The frame, tag inside.
    pub frame: FrameBuf,
    /// When it came.
    since: Instant,
}

/// Frames that wait for a port, in order.
///
/// A queue that is full refuses nothing: the driver of the switch stops to read the ports that feed it, so at most one batch
/// of each comes on top.
#[derive(Debug, Default)]
pub struct Egress {
    /// The frames.
    pub queue: VecDeque<Queued>,
    /// The peer took nothing at the last try.
    pub blocked: bool,
}

impl Egress {
    /// Puts a frame at the end.
    #[inline]
    pub fn push(&mut self, now: Instant, mut frame: FrameBuf) {
        frame.put_tag();
        self.queue.push_back(Queued { frame, since: now });
    }

    /// Whoever feeds the port has to wait.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.queue.len() >= FULL
    }

    /// Whoever waited may go on.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.queue.len() < ROOM
    }

    /// The first `sent` frames have left.
    pub fn pop(&mut self, sent: usize, pool: &mut Pool) {
        for queued in self.queue.drain(..sent.min(self.queue.len())) {
            pool.give(queued.frame);
        }
    }

    /// When the frame at the front has waited for too long, if the peer takes none.
    pub fn expires(&self, hold_time: Span) -> Option<Instant> {
        self.queue.front().filter(|_| self.blocked).map(|first| first.since + hold_time)
    }

    /// Discards what has waited for too long behind a peer that takes none, and says how many frames.
    pub fn expire(&mut self, now: Instant, hold_time: Span, pool: &mut Pool) -> u64 {
        let before = self.queue.len();
        while self.expires(hold_time).is_some_and(|at| at <= now) {
            self.pop(1, pool);
        }
        (before - self.queue.len()) as u64
    }

    /// Discards everything, and says how many frames.
    pub fn clear(&mut self, pool: &mut Pool) -> u64 {
        let all = self.queue.len();
        self.pop(all, pool);
        self.blocked = false;
        all as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_behind_a_silent_peer_expire_and_others_do_not() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        for ms in [0, 100, 400] {
            egress.push(at(ms), pool.take());
        }
        let hold_time = Span::from_ms(500);
        assert_eq!(egress.expire(at(900), hold_time, &mut pool), 0);
        egress.blocked = true;
        assert_eq!(egress.expires(hold_time), Some(at(500)));
        assert_eq!(egress.expire(at(600), hold_time, &mut pool), 2);
        assert_eq!(egress.expires(hold_time), Some(at(900)));
    }

    #[test]
    fn a_full_queue_has_room_only_when_half_of_it_is_gone() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        (0..FULL).for_each(|_| egress.push(Instant::ZERO, pool.take()));
        assert!(egress.is_full());
        egress.pop(FULL - ROOM, &mut pool);
        assert!(!egress.is_full() && !egress.has_room());
        egress.pop(1, &mut pool);
        assert!(egress.has_room());
    }
}
