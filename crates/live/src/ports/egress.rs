//! Egress queue of a port: [`Egress`].

use crate::frame::{FrameBuf, Pool};
use sanloom_scsi::time::{Instant, Span};
use std::collections::VecDeque;

/// Queue length, in frames, from which ingress ports that feed this port are paused.
pub const FULL: usize = 256;
/// Queue length, in frames, below which paused ingress ports resume.
const ROOM: usize = 128;

/// A frame and the time at which it was queued.
#[derive(Debug)]
pub struct Queued {
    /// The frame, with its tag in place.
    pub frame: FrameBuf,
    /// Time at which the frame was queued.
    since: Instant,
}

/// Frames queued for a port, in order.
///
/// A full queue rejects nothing. The switch driver stops reading the ports that feed it, so at most
/// one batch of each is added.
#[derive(Debug, Default)]
pub struct Egress {
    /// Queued frames, oldest first.
    pub queue: VecDeque<Queued>,
    /// The peer accepted no frame at the last attempt.
    pub blocked: bool,
}

impl Egress {
    /// Appends a frame.
    #[inline]
    pub fn push(&mut self, now: Instant, mut frame: FrameBuf) {
        frame.put_tag();
        self.queue.push_back(Queued { frame, since: now });
    }

    /// Returns whether the ports that feed this queue must pause.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.queue.len() >= FULL
    }

    /// Returns whether paused ports may resume.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.queue.len() < ROOM
    }

    /// Removes the first `sent` frames, which have been sent.
    pub fn pop(&mut self, sent: usize, pool: &mut Pool) {
        for queued in self.queue.drain(..sent.min(self.queue.len())) {
            pool.give(queued.frame);
        }
    }

    /// Time at which the hold time of the first frame ends; `None` if the peer accepts frames.
    pub fn expires(&self, hold_time: Span) -> Option<Instant> {
        self.queue.front().filter(|_| self.blocked).map(|first| first.since + hold_time)
    }

    /// Discards frames whose hold time is over while the peer is blocked. Returns their number.
    pub fn expire(&mut self, now: Instant, hold_time: Span, pool: &mut Pool) -> u64 {
        let before = self.queue.len();
        while self.expires(hold_time).is_some_and(|at| at <= now) {
            self.pop(1, pool);
        }
        (before - self.queue.len()) as u64
    }

    /// Discards all frames and returns their number.
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
    fn a_full_queue_accepts_frames_after_half_of_it_is_sent() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        (0..FULL).for_each(|_| egress.push(Instant::ZERO, pool.take()));
        assert!(egress.is_full());
        egress.pop(FULL - ROOM, &mut pool);
        assert!(!egress.is_full() && !egress.has_room());
        egress.pop(1, &mut pool);
        assert!(egress.has_room());
    }
}
