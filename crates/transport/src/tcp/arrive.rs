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
            State::Listen => arrive_listen(self, segment),
            State::SynSent => arrive_syn_sent(self, now, segment),
            _ => arrive_synchronised(self, now, segment),
        }
    }

    /// Returns true if this end offers ECN in its SYN.
    pub(super) fn offers_ecn(&self) -> bool {
        self.config.ecn || self.is_dctcp()
    }
}

fn ignore(connection: &mut Connection) -> Option<Segment> {
    connection.ignored = connection.ignored.saturating_add(1);
    None
}

fn arrive_listen(connection: &mut Connection, segment: &Segment) -> Option<Segment> {
    if segment.flags.has(Flags::RST) {
        return ignore(connection);
    }
    if segment.flags.has(Flags::ACK) {
        ignore(connection);
        return refuse(segment);
    }
    if !is_good_syn(segment) {
        return ignore(connection);
    }
    agree(connection, segment, segment.flags.has(Flags::ECE.with(Flags::CWR)));
    connection.enter(State::SynReceived);
    None
}

fn arrive_syn_sent(connection: &mut Connection, now: Instant, segment: &Segment) -> Option<Segment> {
    let has_ack = segment.flags.has(Flags::ACK);
    if has_ack && (segment.ack != 1 || connection.send.nxt != 1) {
        ignore(connection);
        return refuse(segment);
    }
    if segment.flags.has(Flags::RST) {
        if has_ack {
            connection.fail(Events::RESET);
        } else {
            ignore(connection);
        }
        return None;
    }
    if !is_good_syn(segment) {
        return ignore(connection);
    }
    let is_ecn = segment.flags.has(Flags::ECE) && (!has_ack || !segment.flags.has(Flags::CWR));
    agree(connection, segment, is_ecn);
    if has_ack {
        connection.enter(State::Established);
        connection.acknowledge(now, segment);
        begin(connection);
        connection.receive.ack_now = true;
    } else {
        // Simultaneous open: the SYN is sent again, with an acknowledgement.
        connection.send.nxt = 0;
        connection.enter(State::SynReceived);
    }
    None
}

fn is_good_syn(segment: &Segment) -> bool {
    segment.flags.has(Flags::SYN) && segment.position == 0 && segment.length == 0
}

/// Takes the options of the peer's SYN.
fn agree(connection: &mut Connection, syn: &Segment, is_ecn: bool) {
    let none = SynOptions { mss: DEFAULT_MSS, scale: None, sack: false };
    let options = syn.options.unwrap_or(none);
    connection.send.mss = options.mss.max(LEAST_MSS).min(connection.config.mss);
    connection.agreed.sack = connection.config.sack && options.sack;
    connection.agreed.stamps = connection.config.timestamps && syn.stamps.is_some();
    connection.agreed.ecn = connection.offers_ecn() && is_ecn;
    connection.agreed.scaling = connection.config.window_scaling && options.scale.is_some();
    connection.send.scale = if connection.agreed.scaling { options.scale.unwrap_or(0).min(14) } else { 0 };
    if !connection.agreed.scaling {
        connection.receive.scale = 0;
    }
    connection.receive.nxt = 1;
    connection.receive.recent_stamp = syn.stamps.map_or(0, |stamps| stamps.value);
    connection.send.edge.set(connection.send.una, 1 + u64::from(syn.window));
    connection.send.max_window = u32::from(syn.window);
}

/// Begins to send data after the handshake.
fn begin(connection: &mut Connection) {
    let unit = connection.segment_size();
    connection.congestion.begin(&connection.config, unit, connection.agreed.syn_lost);
    connection.events.add(Events::CONNECTED);
    if connection.send.fin {
        connection.enter(State::FinWait1);
    }
}

fn arrive_synchronised(connection: &mut Connection, now: Instant, segment: &Segment) -> Option<Segment> {
    if !connection.receive.is_acceptable(segment) {
        if !segment.flags.has(Flags::RST) {
            repeat(connection, now, segment);
        }
        return None;
    }
    if segment.flags.has(Flags::RST) {
        // RFC 5961, section 3.2: only the exact position resets.
        if segment.position == connection.receive.nxt {
            connection.fail(Events::RESET);
        } else {
            connection.receive.ack_now = true;
        }
        return None;
    }
    if segment.flags.has(Flags::SYN) {
        connection.receive.ack_now = true;
        return ignore(connection);
    }
    if !segment.flags.has(Flags::ACK) {
        return ignore(connection);
    }
    if connection.state == State::SynReceived {
        if segment.ack != 1 || connection.send.nxt != 1 {
            ignore(connection);
            return refuse(segment);
        }
        connection.enter(State::Established);
        connection.acknowledge(now, segment);
        begin(connection);
    } else if !connection.acknowledge(now, segment) {
        connection.receive.ack_now = true;
        return ignore(connection);
    }
    if connection.send.fin && connection.send.una == connection.send.end + 1 {
        own_fin_acknowledged(connection, now);
    }
    take_payload(connection, now, segment)
}

/// Answers a segment outside of the window: late, repeated, or nonsense.
fn repeat(connection: &mut Connection, now: Instant, segment: &Segment) {
    let has_ack = segment.flags.has(Flags::ACK);
    if connection.state != State::SynReceived || !segment.flags.has(Flags::SYN) {
        connection.receive.ack_now = true;
    } else if !has_ack {
        // The SYN-ACK was lost.
        connection.send.nxt = 0;
    } else if segment.ack == 1 && connection.send.timed_at > Instant::ZERO {
        // Both ends have opened (RFC 9293, figure 8), and the peer has the SYN.
        connection.send.nxt = 1;
        connection.enter(State::Established);
        connection.acknowledge(now, segment);
        begin(connection);
        connection.receive.ack_now = true;
    }
    if connection.state == State::TimeWait {
        connection.retransmit_at = now + connection.config.time_wait;
    }
    let is_far = segment.position > connection.receive.nxt + u64::from(connection.receive.window);
    connection.ignored = connection.ignored.saturating_add(u32::from(is_far));
}

fn own_fin_acknowledged(connection: &mut Connection, now: Instant) {
    let next = connection.state.fin_acknowledged();
    if next != connection.state {
        connection.enter(next);
        if next == State::TimeWait {
            connection.retransmit_at = now + connection.config.time_wait;
        }
    }
}

fn take_payload(connection: &mut Connection, now: Instant, segment: &Segment) -> Option<Segment> {
    if segment.length == 0 && !segment.flags.has(Flags::FIN) {
        if connection.agreed.stamps {
            remember_stamp(connection, segment);
        }
        return None;
    }
    if !connection.state.receives() {
        // Nothing may follow a FIN.
        return ignore(connection);
    }
    let early = if connection.agreed.ecn && connection.receive.see_mark(segment, connection.is_dctcp()) {
        early_ack(connection, now, segment)
    } else {
        None
    };
    if connection.agreed.stamps {
        remember_stamp(connection, segment);
    }
    let unread = connection.receive.unread;
    let is_end = connection.receive.take(segment, &connection.config);
    if connection.receive.unread > unread {
        connection.events.add(Events::READABLE);
    }
    if is_end {
        let next = connection.state.fin_received();
        connection.enter(next);
        connection.events.add(Events::PEER_CLOSED);
        if next == State::TimeWait {
            connection.retransmit_at = now + connection.config.time_wait;
        }
    }
    if connection.receive.pending > 0 && !connection.receive.ack_now && connection.ack_at == Instant::NEVER {
        connection.ack_at = now + connection.config.delayed_ack;
    }
    early
}

/// Acknowledges the segments before a change of the mark, with the old echo.
fn early_ack(connection: &mut Connection, now: Instant, segment: &Segment) -> Option<Segment> {
    let ack = connection.acknowledgement(now);
    connection.receive.see_mark(segment, true);
    Some(ack)
}

/// Updates TS.Recent (RFC 7323, section 4.3): the segment begins at or below the last
/// acknowledged position.
fn remember_stamp(connection: &mut Connection, segment: &Segment) {
    if let Some(stamps) = segment.stamps {
        let acknowledged = connection.receive.nxt - u64::from(connection.receive.pending).min(connection.receive.nxt);
        if segment.position <= acknowledged {
            connection.receive.recent_stamp = stamps.value;
        }
    }
}
