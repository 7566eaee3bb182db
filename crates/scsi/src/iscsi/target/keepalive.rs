//! Timers of a session: [`Keepalive`].

use crate::time::{Instant, Span};

/// Time that an initiator has to log out after the target has requested it.
const LOGOUT_TIME: Span = Span::from_secs(LOGOUT_SECONDS as u64);
/// The same time, in seconds, as sent in the logout request to the initiator.
pub(super) const LOGOUT_SECONDS: u16 = 5;

/// Event of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expired {
    /// The initiator has not logged out in time.
    Logout,
    /// The initiator has not answered a ping in time.
    Silent,
    /// The initiator has been idle, so it is pinged.
    Idle,
}

/// Idle timer of the initiator, and the deadline for its logout.
#[derive(Debug)]
pub(super) struct Keepalive {
    /// Idle time before a ping, and time allowed for the reply; `None` turns pings off.
    interval: Option<Span>,
    last_received: Instant,
    /// Time of the unanswered ping.
    pinged: Option<Instant>,
    /// Deadline for the initiator's logout during a shutdown.
    logout_deadline: Option<Instant>,
}

impl Keepalive {
    pub(super) fn new(now: Instant, interval: Option<Span>) -> Keepalive {
        Keepalive { interval, last_received: now, pinged: None, logout_deadline: None }
    }

    /// Records that the initiator has sent a PDU.
    #[inline]
    pub(super) fn received(&mut self, now: Instant) {
        self.last_received = now;
        self.pinged = None;
    }

    /// Starts the time for the logout. Returns false if it has started before.
    pub(super) fn start_logout(&mut self, now: Instant) -> bool {
        let first = self.logout_deadline.is_none();
        self.logout_deadline.get_or_insert(now + LOGOUT_TIME);
        first
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let ping = self.interval.map(|interval| self.pinged.unwrap_or(self.last_received) + interval);
        Instant::earliest(&[ping, self.logout_deadline])
    }

    /// Returns the timer that has expired, if any. [`Expired::Idle`] starts the time for the reply.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Expired> {
        if self.logout_deadline.is_some_and(|until| until <= now) {
            return Some(Expired::Logout);
        }
        let interval = self.interval?;
        match self.pinged {
            Some(pinged) if pinged + interval <= now => Some(Expired::Silent),
            None if self.last_received + interval <= now => {
                self.pinged = Some(now);
                Some(Expired::Idle)
            }
            _ => None,
        }
    }
}
