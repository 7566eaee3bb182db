//! The next segment to send: lost data, new data, FIN, probe, or acknowledgement.

use super::connection::{Ahead, Connection, Phase};
use super::segment::{Block, Ecn, Flags, Sack, Segment, Stamps, SynOptions};
use super::state::State;
use sanloom_scsi::time::{Instant, Span};

/// Returns the value of a time stamp: microseconds, never zero.
pub(super) fn stamp(now: Instant) -> u32 {
    let micros = (now.as_ns() / 1_000 + 1) & u64::from(u32::MAX);
    u32::try_from(micros).unwrap_or(0).max(1)
}

impl Connection {
    /// Returns the next segment to send now, or `None`. A segment with more than `unit` bytes is a
    /// batch (TSO); [`Segment::parts`] divides it.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        match self.state {
            State::Closed => return self.reset(),
            State::Listen => return None,
            State::SynSent | State::SynReceived => return self.syn(now),
            _ => {}
        }
        self.is_paced = false;
        if self.state.sends() {
            let data = if self.send.phase == Phase::Open { self.new_data(now) } else { self.recovery_data(now) };
            if data.is_some() {
                return data;
            }
        }
        if self.send.probe {
            return Some(self.window_probe(now));
        }
        self.receive.ack_now.then(|| self.acknowledgement(now))
    }

    fn reset(&mut self) -> Option<Segment> {
        std::mem::take(&mut self.resets).then(|| Segment {
            position: self.send.nxt,
            ack: self.receive.nxt,
            flags: Flags::RST.with(Flags::ACK),
            ..Segment::default()
        })
    }

    /// Returns the SYN or SYN-ACK, if it is to be sent.
    fn syn(&mut self, now: Instant) -> Option<Segment> {
        let is_answer = self.state == State::SynReceived;
        if self.send.nxt > 0 {
            return (is_answer && self.receive.ack_now).then(|| self.acknowledgement(now));
        }
        let mut flags = Flags::SYN;
        if is_answer {
            flags = flags.with(Flags::ACK);
        }
        if is_answer && self.agreed.ecn {
            flags = flags.with(Flags::ECE);
        } else if !is_answer && self.offers_ecn() {
            flags = flags.with(Flags::ECE).with(Flags::CWR);
        }
        let may = |offered: bool, agreed: bool| if is_answer { agreed } else { offered };
        let options = SynOptions {
            mss: self.config.mss,
            scale: may(self.config.window_scaling, self.agreed.scaling).then_some(self.receive.scale),
            sack: may(self.config.sack, self.agreed.sack),
        };
        let stamps = may(self.config.timestamps, self.agreed.stamps)
            .then(|| Stamps { value: stamp(now), echo: self.receive.recent_stamp });
        let window = self.receive.offer(true);
        // A SYN that is sent again is not timed (Karn).
        let is_first = !self.agreed.syn_lost && self.send.timed_at == Instant::ZERO;
        self.send.timed.set(0, u64::from(is_first));
        self.send.timed_at = now.max(Instant::from_ns(1));
        self.send.nxt = 1;
        self.ack_at = Instant::NEVER;
        if self.retransmit_at == Instant::NEVER {
            self.retransmit_at = now + self.rtt.timeout(&self.config);
        }
        let ack = self.receive.nxt;
        Some(Segment { position: 0, ack, window, flags, stamps, options: Some(options), ..Segment::default() })
    }

    /// Largest payload of the next data segment: SACK blocks take room.
    fn payload_limit(&self) -> u32 {
        let unit = self.segment_size();
        if self.receive.has_gap() { unit.saturating_sub(self.sack_bytes()).max(1) } else { unit }
    }

    fn sack_bytes(&self) -> u32 {
        let count = self.receive.sack(self.sack_room()).blocks().len();
        u32::try_from(count).map_or(0, |count| if count == 0 { 0 } else { 4 + 8 * count })
    }

    fn sack_room(&self) -> usize {
        match (self.agreed.sack, self.agreed.stamps) {
            (false, _) => 0,
            (true, true) => Sack::MAX - 1,
            (true, false) => Sack::MAX,
        }
    }

    /// Bytes of the congestion window that are free.
    fn window_room(&self) -> u64 {
        u64::from(self.congestion.window()).saturating_sub(self.in_flight())
    }

    /// Cuts a number of bytes to one batch.
    fn batch(&self, bytes: u64, unit: u32) -> u64 {
        let most = u64::from(self.config.batch / unit * unit).max(u64::from(unit));
        bytes.min(most)
    }

    /// Returns true if pacing delays data, and remembers to come back.
    fn waits_for_pace(&mut self, now: Instant) -> bool {
        self.is_paced = self.config.pacing.is_some() && now < self.pace_at;
        self.is_paced
    }

    /// Returns lost data, then new data, then what RFC 6675 allows at the end of a window.
    #[inline(never)]
    fn recovery_data(&mut self, now: Instant) -> Option<Segment> {
        let unit = self.payload_limit();
        let una = self.send.una;
        if let Some(lost) = self.send.board.as_ref().and_then(|board| board.next_lost(una)) {
            return self.again(now, lost, unit);
        }
        let new = self.new_data(now);
        if new.is_some() || self.send.phase != Phase::Fast || !self.agreed.sack || self.may_send_new() {
            return new;
        }
        let nxt = self.send.nxt;
        let board = self.send.board.as_mut()?;
        if let Some(doubtful) = board.next_doubtful(una) {
            return self.again(now, doubtful, unit);
        }
        // One rescue for each recovery: the last segment may be lost without a sign.
        let tail = if board.rescued { None } else { board.tail(una, nxt, unit) }?;
        if self.window_room() < u64::from(unit) || self.waits_for_pace(now) {
            return None;
        }
        let board = self.send.board.as_mut()?;
        (board.rescued, board.retransmissions) = (true, board.retransmissions + 1);
        self.send.timed = Ahead::default();
        Some(self.data(now, tail, unit, false))
    }

    /// Returns true if new data could leave as far as the application and the peer allow.
    fn may_send_new(&self) -> bool {
        let unsent = self.send.nxt < self.send.end || self.send.fin && self.send.nxt == self.send.end;
        unsent && self.send.nxt < self.send.edge()
    }

    /// Sends lost data again, as far as the congestion window allows.
    fn again(&mut self, now: Instant, lost: Block, unit: u32) -> Option<Segment> {
        let (una, room) = (self.send.una, self.window_room());
        let length = lost.end - lost.start;
        let one = length.min(u64::from(unit));
        let is_forced = std::mem::take(&mut self.send.forced);
        if !is_forced && (room < one || self.waits_for_pace(now)) {
            self.send.limited.set(una, self.send.nxt);
            return None;
        }
        let whole = room / u64::from(unit) * u64::from(unit);
        let allowed = if is_forced { one } else { self.batch(length.min(whole.max(one)), unit) };
        let block = Block { start: lost.start, end: lost.start + allowed };
        let board = self.send.board.as_mut()?;
        board.sent_again(block);
        board.retransmissions += allowed.div_ceil(u64::from(unit));
        self.send.timed = Ahead::default();
        Some(self.data(now, block, unit, false))
    }

    /// Returns new data, as far as the windows, Nagle's rule and pacing allow.
    fn new_data(&mut self, now: Instant) -> Option<Segment> {
        let (nxt, end) = (self.send.nxt, self.send.end);
        let waiting = end.saturating_sub(nxt);
        if waiting == 0 {
            return self.fin(now);
        }
        let unit = self.payload_limit();
        if self.send.una == nxt {
            self.wake(now);
        }
        let offered = self.send.edge().saturating_sub(nxt);
        let room = self.window_room();
        let usable = waiting.min(offered).min(room);
        let whole = usable / u64::from(unit) * u64::from(unit);
        let bytes = if usable == waiting && self.may_send_tail(waiting, whole) { waiting } else { whole };
        let bytes = if bytes == 0 { self.window_part(waiting, offered, room) } else { self.batch(bytes, unit) };
        if bytes == 0 {
            if room < waiting.min(offered).min(u64::from(unit)) {
                self.send.limited.set(self.send.una, nxt);
            }
            return self.wait_for_window(now);
        }
        if self.waits_for_pace(now) {
            return None;
        }
        if !self.send.timed.is_ahead() {
            self.send.timed.set(self.send.una, nxt + bytes);
            self.send.timed_at = now;
        }
        self.send.forced = false;
        // Bytes that leave behind a full window still count as limited by it.
        let fin = u64::from(self.send.fin && nxt + bytes == end && self.send.edge() > end);
        Some(self.data(now, Block { start: nxt, end: nxt + bytes + fin }, unit, true))
    }

    /// Returns true if the short segment at the end of the queue may leave (RFC 9293, section
    /// 3.7.4): Nagle's rule is off, nothing is unacknowledged, or a FIN follows.
    fn may_send_tail(&self, waiting: u64, whole: u64) -> bool {
        whole == waiting || !self.config.nagle || self.send.una == self.send.nxt && whole == 0 || self.send.fin
    }

    /// Returns the bytes of a short segment that fills at least half of the largest window that the
    /// peer has offered (RFC 9293, section 3.8.6.2.1). It leaves only if nothing is in flight.
    fn window_part(&self, waiting: u64, offered: u64, room: u64) -> u64 {
        let is_idle = self.send.una == self.send.nxt;
        let is_enough = offered > 0 && offered < waiting && offered >= u64::from(self.send.max_window / 2);
        // The persist timer overrides the rule.
        if is_idle && (is_enough || self.send.forced) { offered.min(waiting).min(room) } else { 0 }
    }

    /// Runs the persist timer if only the peer's window stops new data.
    fn wait_for_window(&mut self, now: Instant) -> Option<Segment> {
        let is_idle = self.send.una == self.send.nxt;
        if is_idle && self.retransmit_at == Instant::NEVER {
            self.retransmit_at = now + self.rtt.timeout(&self.config);
        }
        None
    }

    /// Returns a FIN without data.
    fn fin(&mut self, now: Instant) -> Option<Segment> {
        let (nxt, end) = (self.send.nxt, self.send.end);
        if !self.send.fin || nxt != end {
            return None;
        }
        if self.send.edge() <= end {
            return self.wait_for_window(now);
        }
        Some(self.data(now, Block { start: end, end: end + 1 }, 1, true))
    }

    /// Applies the rules for a connection that was idle.
    fn wake(&mut self, now: Instant) {
        if self.send.sent_at == Instant::NEVER {
            return;
        }
        let silence = now.since(self.send.sent_at);
        let is_restart = self.config.idle_restart && silence > self.rtt.timeout(&self.config);
        let unit = self.segment_size();
        self.congestion.wake(silence, is_restart, &self.config, unit);
        // The rule applies once for each silence.
        self.send.sent_at = now;
    }

    /// Builds a segment with the data of `block`, and advances SND.NXT, timers and pacing.
    fn data(&mut self, now: Instant, block: Block, unit: u32, is_new: bool) -> Segment {
        let data_end = block.end.min(self.send.end);
        let length = data_end.saturating_sub(block.start);
        let mut segment = self.acknowledgement(now);
        segment.position = block.start;
        segment.length = u32::try_from(length).unwrap_or(u32::MAX);
        segment.unit = u16::try_from(unit).unwrap_or(u16::MAX);
        if block.end > self.send.end {
            segment.flags = segment.flags.with(Flags::FIN);
        }
        let record = self.send.record.position(self.send.una);
        let has_record_end = block.start < record && record <= data_end;
        if has_record_end || length > 0 && data_end == self.send.end {
            segment.flags = segment.flags.with(Flags::PSH);
        }
        if self.agreed.ecn && length > 0 && (is_new || self.is_dctcp()) {
            segment.ecn = Ecn::Ect;
        }
        if is_new {
            if std::mem::take(&mut self.send.cwr) && length > 0 {
                segment.flags = segment.flags.with(Flags::CWR);
            }
            self.send.nxt = block.end;
        }
        if self.retransmit_at == Instant::NEVER {
            self.retransmit_at = now + self.rtt.timeout(&self.config);
        }
        self.send.sent_at = now;
        self.pace(now, length);
        segment
    }

    /// Moves the time of the next data segment by the time of `bytes` at the pacing rate.
    fn pace(&mut self, now: Instant, bytes: u64) {
        let (Some(pacing), Some(rtt)) = (self.config.pacing, self.rtt.smoothed()) else { return };
        let percent = if self.congestion.in_slow_start() { pacing.slow_start } else { pacing.avoidance };
        let rate = u128::from(self.congestion.window()) * u128::from(percent.max(1));
        let gap = u128::from(bytes) * u128::from(rtt.as_ns()) * 100 / rate.max(1);
        self.pace_at = self.pace_at.max(now) + Span::from_ns(u64::try_from(gap).unwrap_or(u64::MAX));
    }

    /// Returns a probe of a closed window: an empty segment below the window, which the peer
    /// answers, as Linux sends it.
    fn window_probe(&mut self, now: Instant) -> Segment {
        self.send.probe = false;
        let mut probe = self.acknowledgement(now);
        probe.position = self.send.una - 1;
        probe
    }

    /// Returns an acknowledgement, and stops the timer of the delayed one.
    pub(super) fn acknowledgement(&mut self, now: Instant) -> Segment {
        let sack = if self.receive.has_gap() { self.receive.sack(self.sack_room()) } else { Sack::default() };
        let mut flags = Flags::ACK;
        if self.agreed.ecn && self.receive.echo {
            flags = flags.with(Flags::ECE);
        }
        let window = self.receive.offer(false);
        self.ack_at = Instant::NEVER;
        let stamps = self.agreed.stamps.then(|| Stamps { value: stamp(now), echo: self.receive.recent_stamp });
        Segment { position: self.send.nxt, ack: self.receive.nxt, sack, window, flags, stamps, ..Segment::default() }
    }
}
