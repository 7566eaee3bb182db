//! Acknowledgements: progress, SACK blocks, marks, and loss recovery (RFC 5681, 6582, 6675).

use super::congestion::Acked;
use super::connection::{Ahead, Connection, Phase};
use super::scoreboard::DUPLICATES;
use super::segment::{Flags, Segment};
use super::state::Events;
use sanloom_scsi::time::{Instant, Span};

impl Connection {
    /// Takes the ACK position, window and SACK blocks of a segment. Returns false if the position
    /// was never sent.
    pub(super) fn acknowledge(&mut self, now: Instant, segment: &Segment) -> bool {
        let (una, ack) = (self.send.una, segment.ack);
        if ack > self.send.nxt {
            return false;
        }
        if ack < una {
            return true;
        }
        let progress = ack - una;
        let is_update = update_window(self, segment);
        self.retries = 0;
        if progress > 0 {
            measure(self, now, segment);
        }
        let (in_flight_before, is_limited) = (self.in_flight(), is_window_limited(self));
        let mut delivered = progress;
        self.send.advance(ack);
        if let Some(board) = self.send.board.as_mut() {
            delivered -= board.advance(ack);
        }
        if self.agreed.sack && !segment.sack.is_empty() {
            delivered += take_blocks(self, segment);
        }
        if progress > 0 {
            make_room(self);
        } else if segment.span() == 0 && !is_update && self.send.nxt > una {
            self.send.duplicates = self.send.duplicates.saturating_add(1);
        }
        let is_echo = self.agreed.ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN);
        self.congestion.count_marks(progress, is_echo, ack, self.send.nxt);
        recover(self, now, progress, delivered, in_flight_before, is_limited);
        if is_echo {
            react_to_mark(self);
        }
        if progress > 0 {
            let is_done = self.send.una == self.send.nxt;
            self.retransmit_at = if is_done { Instant::NEVER } else { now + self.rtt.timeout(&self.config) };
        }
        true
    }

    /// Bytes that are probably in the network (RFC 6675, pipe).
    pub(super) fn in_flight(&self) -> u64 {
        let (una, nxt) = (self.send.una, self.send.nxt);
        let Some(board) = self.send.board.as_ref() else {
            return (nxt - una).saturating_sub(departed(self));
        };
        board.in_flight(una, nxt).saturating_sub(departed(self))
    }
}

/// Moves the right edge of the peer's window. Returns true if it moved. An edge that moves back
/// is ignored, because a correct peer does not shrink its window.
fn update_window(connection: &mut Connection, segment: &Segment) -> bool {
    let scale = if segment.flags.has(Flags::SYN) { 0 } else { connection.send.scale };
    let window = u32::from(segment.window) << scale;
    connection.send.max_window = connection.send.max_window.max(window);
    let edge = segment.ack + u64::from(window);
    if edge <= connection.send.edge() {
        return false;
    }
    if connection.send.una == connection.send.nxt && connection.send.edge() <= connection.send.nxt {
        // The window was closed: its probes end.
        connection.retransmit_at = Instant::NEVER;
        connection.rtt.forget_doublings();
    }
    connection.send.edge.set(connection.send.una, edge);
    true
}

/// Takes a sample of the round-trip time, from the timed segment (Karn) or the echoed stamp.
fn measure(connection: &mut Connection, now: Instant, segment: &Segment) {
    if connection.send.timed.is_ahead() {
        if segment.ack >= connection.send.timed.position(connection.send.una) {
            connection.send.timed = Ahead::default();
            connection.rtt.sample(now.since(connection.send.timed_at));
        }
    } else if let Some(stamps) = segment.stamps.filter(|_| connection.agreed.stamps) {
        let age = super::transmit::stamp(now).wrapping_sub(stamps.echo);
        if stamps.echo != 0 && age < 1 << 31 {
            connection.rtt.sample(Span::from_us(u64::from(age)));
        }
    }
}

/// Returns true if the congestion window, and not the application, limits the data in flight.
fn is_window_limited(connection: &Connection) -> bool {
    connection.send.limited.is_ahead()
}

#[inline(never)]
fn take_blocks(connection: &mut Connection, segment: &Segment) -> u64 {
    let board = connection.send.board.get_or_insert_default();
    if !board.has_sacked() && connection.send.phase == Phase::Open {
        board.end(connection.send.una);
    }
    let (bytes, ignored) = board.update(segment.sack.blocks(), connection.send.una, connection.send.nxt);
    connection.ignored = connection.ignored.saturating_add(ignored);
    bytes
}

/// Gives room to the application after progress.
fn make_room(connection: &mut Connection) {
    if connection.send.buffer < connection.config.send_buffer.max {
        // Twice the congestion window, as in Linux.
        let wanted =
            connection.congestion.window().saturating_mul(2).min(connection.config.send_buffer.max.min(1 << 30));
        connection.send.buffer = connection.send.buffer.max(wanted);
    }
    if connection.send.short && connection.send_space() >= u64::from(connection.send.buffer / 3) {
        connection.send.short = false;
        connection.events.add(Events::WRITABLE);
    }
}

/// Advances loss recovery, and enlarges the congestion window outside of fast recovery.
fn recover(connection: &mut Connection, now: Instant, progress: u64, delivered: u64, in_flight: u64, is_limited: bool) {
    let unit = connection.segment_size();
    match connection.send.phase {
        Phase::Open => {
            if progress > 0 {
                connection.send.duplicates = 0;
            }
            if is_loss_known(connection, unit) {
                begin_fast_recovery(connection, unit);
                return;
            }
            let half_used =
                connection.congestion.in_slow_start() && in_flight * 2 >= u64::from(connection.congestion.window());
            if progress > 0 && (is_limited || half_used) {
                grow(connection, now, delivered, unit);
            }
        }
        Phase::Fast => continue_fast_recovery(connection, progress, unit),
        Phase::Loss => {
            let Some(board) = connection.send.board.as_mut() else { return };
            if connection.send.una >= board.recover {
                board.end(connection.send.una);
                connection.send.phase = Phase::Open;
                connection.send.duplicates = 0;
            } else if connection.agreed.sack {
                board.find_lost(unit);
            }
            if delivered > 0 {
                grow(connection, now, delivered, unit);
            }
        }
    }
}

fn grow(connection: &mut Connection, now: Instant, bytes: u64, unit: u32) {
    let rtt = connection.rtt.smoothed().unwrap_or(Span::ZERO);
    let bytes = if connection.config.byte_counting { bytes } else { bytes.min(u64::from(unit)) };
    connection.congestion.grow(Acked { now, bytes, rtt, unit });
}

/// Returns true if the oldest segment is lost.
fn is_loss_known(connection: &mut Connection, unit: u32) -> bool {
    let Some(board) = connection.send.board.as_mut().filter(|_| connection.agreed.sack) else {
        // RFC 6582, section 3.2, step 2: not for repetitions after an earlier recovery.
        let recovered = connection.send.board.as_ref().map_or(0, |board| board.recover);
        return connection.send.duplicates >= DUPLICATES && connection.send.una > recovered;
    };
    if !board.has_sacked() {
        return false;
    }
    board.find_lost(unit);
    board.lost_edge > connection.send.una || connection.send.duplicates >= DUPLICATES
}

#[inline(never)]
fn begin_fast_recovery(connection: &mut Connection, unit: u32) {
    let (una, nxt) = (connection.send.una, connection.send.nxt);
    // Limited transmit does not count as flight (RFC 5681, equation 4).
    connection.congestion.lose(nxt - una, unit);
    let board = connection.send.board.get_or_insert_default();
    board.begin(una, nxt);
    board.lost_edge = board.lost_edge.max((una + u64::from(unit)).min(nxt));
    board.recoveries += 1;
    connection.send.phase = Phase::Fast;
    connection.send.forced = true;
    connection.send.reduced.set(una, nxt + 1);
}

#[inline(never)]
fn continue_fast_recovery(connection: &mut Connection, progress: u64, unit: u32) {
    let Some(board) = connection.send.board.as_mut() else { return };
    if connection.send.una >= board.recover {
        board.end(connection.send.una);
        connection.send.phase = Phase::Open;
        connection.send.duplicates = 0;
        connection.send.forced = false;
    } else if connection.agreed.sack {
        board.find_lost(unit);
    } else if progress > 0 {
        // Partial acknowledgement: the next segment is lost, too (RFC 6582, section 3.2).
        let segments = u16::try_from(progress / u64::from(unit)).unwrap_or(u16::MAX);
        connection.send.duplicates = connection.send.duplicates.saturating_sub(segments.saturating_sub(1));
        board.begin_next_hole(connection.send.una, unit);
        connection.send.forced = true;
    }
}

/// Reduces the window because the peer echoes a mark, once for each window of data.
fn react_to_mark(connection: &mut Connection) {
    if connection.send.reduced.is_ahead() || connection.send.phase != Phase::Open {
        return;
    }
    let flight = connection.send.nxt - connection.send.una;
    let unit = connection.segment_size();
    connection.congestion.mark(flight.max(u64::from(unit)), unit);
    connection.send.board.get_or_insert_default().marks += 1;
    connection.send.reduced.set(connection.send.una, connection.send.nxt + 1);
    connection.send.cwr = true;
}

/// Bytes that have left the network according to duplicate acknowledgements without SACK.
fn departed(connection: &Connection) -> u64 {
    if connection.agreed.sack || connection.send.phase == Phase::Loss {
        return 0;
    }
    u64::from(connection.send.duplicates) * u64::from(connection.segment_size())
}
