//! Time-outs: retransmission, closed window, delayed acknowledgement, TIME-WAIT.

use super::connection::{Ahead, Connection, Phase};
use super::state::{Events, State};
use sanloom_scsi::time::Instant;

impl Connection {
    /// Handles all timers that have expired. An early call does nothing.
    pub fn timeout(&mut self, now: Instant) {
        if self.ack_at <= now {
            self.ack_at = Instant::NEVER;
            self.receive.ack_now = true;
        }
        if self.retransmit_at > now {
            return;
        }
        self.retransmit_at = Instant::NEVER;
        match self.state {
            State::Closed | State::Listen | State::FinWait2 => {}
            State::TimeWait => self.enter(State::Closed),
            State::SynSent | State::SynReceived => self.syn_timeout(),
            _ if self.send.una < self.send.nxt => self.retransmission_timeout(),
            _ => self.persist_timeout(),
        }
    }

    /// Counts a time-out without progress. Returns false if the connection has ended.
    fn retry(&mut self, most: u8) -> bool {
        if self.retries >= most {
            self.fail(Events::TIMED_OUT);
            return false;
        }
        self.retries += 1;
        self.rtt.double();
        true
    }

    fn syn_timeout(&mut self) {
        if self.retry(self.config.syn_retries) {
            self.agreed.syn_lost = true;
            self.send.board.get_or_insert_default().timeouts += 1;
            self.send.nxt = 0;
        }
    }

    /// Sends everything that is not SACKed again, in slow start (RFC 5681, section 3.1; RFC 6675,
    /// section 5.1).
    fn retransmission_timeout(&mut self) {
        let is_first = self.retries == 0;
        if !self.retry(self.config.retries) {
            return;
        }
        let (una, nxt) = (self.send.una, self.send.nxt);
        let unit = self.segment_size();
        self.congestion.time_out(nxt - una, unit, is_first);
        let board = self.send.board.get_or_insert_default();
        board.lose_all(una, nxt);
        board.timeouts += 1;
        self.send.phase = Phase::Loss;
        self.send.duplicates = 0;
        self.send.timed = Ahead::default();
        self.send.forced = true;
        self.send.reduced.set(una, nxt + 1);
        self.pace_at = Instant::ZERO;
    }

    /// Probes a closed window (RFC 9293, section 3.8.6.1). Answers of the peer keep the connection
    /// alive, because they reset the number of retries.
    fn persist_timeout(&mut self) {
        let waits = self.send.nxt < self.send.end || self.send.fin && self.send.nxt == self.send.end;
        if waits && self.retry(self.config.retries) {
            self.send.probe = self.send.edge() <= self.send.nxt;
            self.send.forced = !self.send.probe;
        }
    }
}
