//! Arriving segments: the checks of each state (RFC 9293, section 3.10.7).

use super::connection::Connection;
use super::segment::{Flags, Segment, SynOptions};
use super::state::{Events, State};
use sanloom_scsi::time::Instant;

/// Smallest MSS that is taken from a peer, as in Linux.
const LEAST_MSS: u16 = 88;
/// MSS of a peer that sends no option (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;

/// Returns the RST that answers a segment without a connection (RFC 9293, section 3.10.7.1).
pub fn refuse(segment: &Segment) -> Option<Segment> {
    if segment.flags.has(Flags::RST) {
        return None;
    }
    Some(if segment.flags.has(Flags::ACK) {
        Segment { position: segment.ack, flags: Flags::RST, ..Segment::default() }
    } else {
        Segment { ack: segment.end(), flags: Flags::RST.with(Flags::ACK), ..Segment::default() }
    })
}

impl Connection {
    /// Takes a segment from the network. A batch (GRO) counts as its segments, which have equal
    /// ECN fields, and is acknowledged once.
    ///
    /// Returns a segment that must leave before the next [`Connection::poll_transmit`]: a RST, or
    /// the early acknowledgement of DCTCP. A segment that no correct peer sends is counted and
    /// otherwise ignored.
    pub fn arrive(&mut self, now: Instant, segment: &Segment) -> Option<Segment> {
        match self.state {
            State::Closed => {
                self.ignored = self.ignored.saturating_add(1);
                refuse(segment)
            }
            State::Listen => self.arrive_listen(segment),
            State::SynSent => self.arrive_syn_sent(now, segment),
            _ => self.arrive_synchronised(now, segment),
        }
    }

    fn ignore(&mut self) -> Option<Segment> {
        self.ignored = self.ignored.saturating_add(1);
        None
    }

    fn arrive_listen(&mut self, segment: &Segment) -> Option<Segment> {
        if segment.flags.has(Flags::RST) {
            return self.ignore();
        }
        if segment.flags.has(Flags::ACK) {
            self.ignore();
            return refuse(segment);
        }
        if !self.is_good_syn(segment) {
            return self.ignore();
        }
        self.agree(segment, segment.flags.has(Flags::ECE.with(Flags::CWR)));
        self.enter(State::SynReceived);
        None
    }

    fn arrive_syn_sent(&mut self, now: Instant, segment: &Segment) -> Option<Segment> {
        let has_ack = segment.flags.has(Flags::ACK);
        if has_ack && (segment.ack != 1 || self.send.nxt != 1) {
            self.ignore();
            return refuse(segment);
        }
        if segment.flags.has(Flags::RST) {
            if has_ack {
                self.fail(Events::RESET);
            } else {
                self.ignore();
            }
            return None;
        }
        if !self.is_good_syn(segment) {
            return self.ignore();
        }
        let is_ecn = segment.flags.has(Flags::ECE) && (!has_ack || !segment.flags.has(Flags::CWR));
        self.agree(segment, is_ecn);
        if has_ack {
            self.enter(State::Established);
            self.acknowledge(now, segment);
            self.begin();
            self.receive.ack_now = true;
        } else {
            // Simultaneous open: the SYN is sent again, with an acknowledgement.
            self.send.nxt = 0;
            self.enter(State::SynReceived);
        }
        None
    }

    fn is_good_syn(&self, segment: &Segment) -> bool {
        segment.flags.has(Flags::SYN) && segment.position == 0 && segment.length == 0
    }

    /// Takes the options of the peer's SYN.
    fn agree(&mut self, syn: &Segment, is_ecn: bool) {
        let none = SynOptions { mss: DEFAULT_MSS, scale: None, sack: false };
        let options = syn.options.unwrap_or(none);
        self.send.mss = options.mss.max(LEAST_MSS).min(self.config.mss);
        self.agreed.sack = self.config.sack && options.sack;
        self.agreed.stamps = self.config.timestamps && syn.stamps.is_some();
        self.agreed.ecn = self.offers_ecn() && is_ecn;
        self.agreed.scaling = self.config.window_scaling && options.scale.is_some();
        self.send.scale = if self.agreed.scaling { options.scale.unwrap_or(0).min(14) } else { 0 };
        if !self.agreed.scaling {
            self.receive.scale = 0;
        }
        self.receive.nxt = 1;
        self.receive.recent_stamp = syn.stamps.map_or(0, |stamps| stamps.value);
        self.send.edge.set(self.send.una, 1 + u64::from(syn.window));
        self.send.max_window = u32::from(syn.window);
    }

    /// Returns true if this end offers ECN in its SYN.
    pub(super) fn offers_ecn(&self) -> bool {
        self.config.ecn || self.is_dctcp()
    }

    /// Begins to send data after the handshake.
    fn begin(&mut self) {
        let unit = self.segment_size();
        self.congestion.begin(&self.config, unit, self.agreed.syn_lost);
        self.events.add(Events::CONNECTED);
        if self.send.fin {
            self.enter(State::FinWait1);
        }
    }

    fn arrive_synchronised(&mut self, now: Instant, segment: &Segment) -> Option<Segment> {
        if !self.receive.is_acceptable(segment) {
            if !segment.flags.has(Flags::RST) {
                self.repeat(now, segment);
            }
            return None;
        }
        if segment.flags.has(Flags::RST) {
            // RFC 5961, section 3.2: only the exact position resets.
            if segment.position == self.receive.nxt {
                self.fail(Events::RESET);
            } else {
                self.receive.ack_now = true;
            }
            return None;
        }
        if segment.flags.has(Flags::SYN) {
            self.receive.ack_now = true;
            return self.ignore();
        }
        if !segment.flags.has(Flags::ACK) {
            return self.ignore();
        }
        if self.state == State::SynReceived {
            if segment.ack != 1 || self.send.nxt != 1 {
                self.ignore();
                return refuse(segment);
            }
            self.enter(State::Established);
            self.acknowledge(now, segment);
            self.begin();
        } else if !self.acknowledge(now, segment) {
            self.receive.ack_now = true;
            return self.ignore();
        }
        if self.send.fin && self.send.una == self.send.end + 1 {
            self.own_fin_acknowledged(now);
        }
        self.take_payload(now, segment)
    }

    /// Answers a segment outside of the window: late, repeated, or nonsense.
    fn repeat(&mut self, now: Instant, segment: &Segment) {
        let has_ack = segment.flags.has(Flags::ACK);
        if self.state != State::SynReceived || !segment.flags.has(Flags::SYN) {
            self.receive.ack_now = true;
        } else if !has_ack {
            // The SYN-ACK was lost.
            self.send.nxt = 0;
        } else if segment.ack == 1 && self.send.timed_at > Instant::ZERO {
            // Both ends have opened (RFC 9293, figure 8), and the peer has the SYN.
            self.send.nxt = 1;
            self.enter(State::Established);
            self.acknowledge(now, segment);
            self.begin();
            self.receive.ack_now = true;
        }
        if self.state == State::TimeWait {
            self.retransmit_at = now + self.config.time_wait;
        }
        let is_far = segment.position > self.receive.nxt + u64::from(self.receive.window);
        self.ignored = self.ignored.saturating_add(u32::from(is_far));
    }

    fn own_fin_acknowledged(&mut self, now: Instant) {
        let next = self.state.fin_acknowledged();
        if next != self.state {
            self.enter(next);
            if next == State::TimeWait {
                self.retransmit_at = now + self.config.time_wait;
            }
        }
    }

    fn take_payload(&mut self, now: Instant, segment: &Segment) -> Option<Segment> {
        if segment.length == 0 && !segment.flags.has(Flags::FIN) {
            if self.agreed.stamps {
                self.remember_stamp(segment);
            }
            return None;
        }
        if !self.state.receives() {
            // Nothing may follow a FIN.
            return self.ignore();
        }
        let early = if self.agreed.ecn && self.receive.see_mark(segment, self.is_dctcp()) {
            self.early_ack(now, segment)
        } else {
            None
        };
        if self.agreed.stamps {
            self.remember_stamp(segment);
        }
        let unread = self.receive.unread;
        let is_end = self.receive.take(segment, &self.config);
        if self.receive.unread > unread {
            self.events.add(Events::READABLE);
        }
        if is_end {
            let next = self.state.fin_received();
            self.enter(next);
            self.events.add(Events::PEER_CLOSED);
            if next == State::TimeWait {
                self.retransmit_at = now + self.config.time_wait;
            }
        }
        if self.receive.pending > 0 && !self.receive.ack_now && self.ack_at == Instant::NEVER {
            self.ack_at = now + self.config.delayed_ack;
        }
        early
    }

    /// Acknowledges the segments before a change of the mark, with the old echo.
    fn early_ack(&mut self, now: Instant, segment: &Segment) -> Option<Segment> {
        let ack = self.acknowledgement(now);
        self.receive.see_mark(segment, true);
        Some(ack)
    }

    /// Updates TS.Recent (RFC 7323, section 4.3): the segment begins at or below the last
    /// acknowledged position.
    fn remember_stamp(&mut self, segment: &Segment) {
        if let Some(stamps) = segment.stamps {
            let acknowledged = self.receive.nxt - u64::from(self.receive.pending).min(self.receive.nxt);
            if segment.position <= acknowledged {
                self.receive.recent_stamp = stamps.value;
            }
        }
    }
}
