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
        let is_update = self.update_window(segment);
        self.retries = 0;
        if progress > 0 {
            self.measure(now, segment);
        }
        let (in_flight_before, is_limited) = (self.in_flight(), self.is_window_limited());
        let mut delivered = progress;
        self.send.advance(ack);
        if let Some(board) = self.send.board.as_mut() {
            delivered -= board.advance(ack);
        }
        if self.agreed.sack && !segment.sack.is_empty() {
            delivered += self.take_blocks(segment);
        }
        if progress > 0 {
            self.progress();
        } else if segment.span() == 0 && !is_update && self.send.nxt > una {
            self.send.duplicates = self.send.duplicates.saturating_add(1);
        }
        let is_echo = self.agreed.ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN);
        self.congestion.count_marks(progress, is_echo, ack, self.send.nxt);
        self.recover(now, progress, delivered, in_flight_before, is_limited);
        if is_echo {
            self.react_to_mark();
        }
        if progress > 0 {
            let is_done = self.send.una == self.send.nxt;
            self.retransmit_at = if is_done { Instant::NEVER } else { now + self.rtt.timeout(&self.config) };
        }
        true
    }

    /// Moves the right edge of the peer's window. Returns true if it moved. An edge that moves back
    /// is ignored, because a correct peer does not shrink its window.
    fn update_window(&mut self, segment: &Segment) -> bool {
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.send.scale };
        let window = u32::from(segment.window) << scale;
        self.send.max_window = self.send.max_window.max(window);
        let edge = segment.ack + u64::from(window);
        if edge <= self.send.edge() {
            return false;
        }
        if self.send.una == self.send.nxt && self.send.edge() <= self.send.nxt {
            // The window was closed: its probes end.
            self.retransmit_at = Instant::NEVER;
            self.rtt.forget_doublings();
        }
        self.send.edge.set(self.send.una, edge);
        true
    }

    /// Takes a sample of the round-trip time: of the timed segment (Karn), or from the echoed stamp.
    fn measure(&mut self, now: Instant, segment: &Segment) {
        if self.send.timed.is_ahead() {
            if segment.ack >= self.send.timed.position(self.send.una) {
                self.send.timed = Ahead::default();
                self.rtt.sample(now.since(self.send.timed_at));
            }
        } else if let Some(stamps) = segment.stamps.filter(|_| self.agreed.stamps) {
            let age = super::transmit::stamp(now).wrapping_sub(stamps.echo);
            if stamps.echo != 0 && age < 1 << 31 {
                self.rtt.sample(Span::from_us(u64::from(age)));
            }
        }
    }

    /// Returns true if the congestion window, and not the application, limits the data in flight.
    fn is_window_limited(&self) -> bool {
        self.send.limited.is_ahead()
    }

    #[inline(never)]
    fn take_blocks(&mut self, segment: &Segment) -> u64 {
        let board = self.send.board.get_or_insert_default();
        if !board.has_sacked() && self.send.phase == Phase::Open {
            board.end(self.send.una);
        }
        let (bytes, ignored) = board.update(segment.sack.blocks(), self.send.una, self.send.nxt);
        self.ignored = self.ignored.saturating_add(ignored);
        bytes
    }

    /// Gives room to the application after progress.
    fn progress(&mut self) {
        if self.send.buffer < self.config.send_buffer.max {
            // Twice the congestion window, as in Linux.
            let wanted = self.congestion.window().saturating_mul(2).min(self.config.send_buffer.max.min(1 << 30));
            self.send.buffer = self.send.buffer.max(wanted);
        }
        if self.send.short && self.send_space() >= u64::from(self.send.buffer / 3) {
            self.send.short = false;
            self.events.add(Events::WRITABLE);
        }
    }

    /// Advances loss recovery, and enlarges the congestion window outside of fast recovery.
    fn recover(&mut self, now: Instant, progress: u64, delivered: u64, in_flight: u64, is_limited: bool) {
        let unit = self.segment_size();
        match self.send.phase {
            Phase::Open => {
                if progress > 0 {
                    self.send.duplicates = 0;
                }
                if self.is_loss_known(unit) {
                    self.begin_fast_recovery(unit);
                    return;
                }
                let half_used = self.congestion.in_slow_start() && in_flight * 2 >= u64::from(self.congestion.window());
                if progress > 0 && (is_limited || half_used) {
                    self.grow(now, delivered, unit);
                }
            }
            Phase::Fast => self.continue_fast_recovery(progress, unit),
            Phase::Loss => {
                let Some(board) = self.send.board.as_mut() else { return };
                if self.send.una >= board.recover {
                    board.end(self.send.una);
                    self.send.phase = Phase::Open;
                    self.send.duplicates = 0;
                } else if self.agreed.sack {
                    board.find_lost(unit);
                }
                if delivered > 0 {
                    self.grow(now, delivered, unit);
                }
            }
        }
    }

    fn grow(&mut self, now: Instant, bytes: u64, unit: u32) {
        let rtt = self.rtt.smoothed().unwrap_or(Span::ZERO);
        let bytes = if self.config.byte_counting { bytes } else { bytes.min(u64::from(unit)) };
        self.congestion.grow(Acked { now, bytes, rtt, unit });
    }

    /// Returns true if the oldest segment is lost.
    fn is_loss_known(&mut self, unit: u32) -> bool {
        let Some(board) = self.send.board.as_mut().filter(|_| self.agreed.sack) else {
            // RFC 6582, section 3.2, step 2: not for repetitions after an earlier recovery.
            let recovered = self.send.board.as_ref().map_or(0, |board| board.recover);
            return self.send.duplicates >= DUPLICATES && self.send.una > recovered;
        };
        if !board.has_sacked() {
            return false;
        }
        board.find_lost(unit);
        board.lost_edge > self.send.una || self.send.duplicates >= DUPLICATES
    }

    #[inline(never)]
    fn begin_fast_recovery(&mut self, unit: u32) {
        let (una, nxt) = (self.send.una, self.send.nxt);
        // Limited transmit does not count as flight (RFC 5681, equation 4).
        self.congestion.lose(nxt - una, unit);
        let board = self.send.board.get_or_insert_default();
        board.begin(una, nxt);
        board.lost_edge = board.lost_edge.max((una + u64::from(unit)).min(nxt));
        board.recoveries += 1;
        self.send.phase = Phase::Fast;
        self.send.forced = true;
        self.send.reduced.set(una, nxt + 1);
    }

    #[inline(never)]
    fn continue_fast_recovery(&mut self, progress: u64, unit: u32) {
        let Some(board) = self.send.board.as_mut() else { return };
        if self.send.una >= board.recover {
            board.end(self.send.una);
            self.send.phase = Phase::Open;
            self.send.duplicates = 0;
            self.send.forced = false;
        } else if self.agreed.sack {
            board.find_lost(unit);
        } else if progress > 0 {
            // Partial acknowledgement: the next segment is lost, too (RFC 6582, section 3.2).
            let segments = u16::try_from(progress / u64::from(unit)).unwrap_or(u16::MAX);
            self.send.duplicates = self.send.duplicates.saturating_sub(segments.saturating_sub(1));
            board.begin_next_hole(self.send.una, unit);
            self.send.forced = true;
        }
    }

    /// Reduces the window because the peer echoes a mark, once for each window of data.
    fn react_to_mark(&mut self) {
        if self.send.reduced.is_ahead() || self.send.phase != Phase::Open {
            return;
        }
        let flight = self.send.nxt - self.send.una;
        let unit = self.segment_size();
        self.congestion.mark(flight.max(u64::from(unit)), unit);
        self.send.board.get_or_insert_default().marks += 1;
        self.send.reduced.set(self.send.una, self.send.nxt + 1);
        self.send.cwr = true;
    }

    /// Bytes that are probably in the network (RFC 6675, pipe).
    pub(super) fn in_flight(&self) -> u64 {
        let (una, nxt) = (self.send.una, self.send.nxt);
        let Some(board) = self.send.board.as_ref() else {
            return (nxt - una).saturating_sub(self.departed());
        };
        board.in_flight(una, nxt).saturating_sub(self.departed())
    }

    /// Bytes that have left the network according to duplicate acknowledgements without SACK.
    fn departed(&self) -> u64 {
        if self.agreed.sack || self.send.phase == Phase::Loss {
            return 0;
        }
        u64::from(self.send.duplicates) * u64::from(self.segment_size())
    }
}
