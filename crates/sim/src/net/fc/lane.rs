//! One direction of a link: the line, the sender's credits and the frames on the line.

use super::flight::{Entry, Flight};
use super::frame_ref::{FrameRef, GAP_BYTES, HEADER_WIRE_BYTES, OVERHEAD_BYTES};
use super::receiver::Receiver;
use super::recovery::StateChanges;
use super::returning::Returning;
use crate::net::line::{ByteTime, Occupied};
use crate::net::queue::{EventQueue, NEVER};
use sanloom_fc::config::LineRate;

/// Length at which a new run begins even if the line does not pause.
const LONGEST_RUN_BYTES: u32 = 1 << 24;

/// Bytes of an R_RDY on the line.
const R_RDY_BYTES: u64 = 4;

/// One end of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A port of a switch.
    Switch { switch: u16, port: u16 },
    /// An N_Port.
    NPort(u16),
    /// A port of an arbitrated loop.
    Loop { number: u16, port: u16 },
}

const _: () = assert!(size_of::<Lane>() == 6 * 64);

/// One direction of a link, from a sender to a receiver.
///
/// Each credit allows one frame on the line or in the receiver's buffers, and each R_RDY returns
/// one credit. R_RDYs are words between frames: they need four byte times plus the propagation
/// delay. An R_RDY does not wait for a frame in the other direction; a real one waits for at most
/// that one frame.
///
/// The line is that of all planes, [`ByteTime`]. The fields are grouped by cache line in the order
/// of use. The first line decides whether a frame may be sent. The second holds the frames on the
/// line. The third has the fields that sending a frame reads and changes, the fourth those of a
/// returning credit. The rest is for faults and reports.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Lane {
    /// Earliest start of the next frame.
    pub free_at_ps: u64,
    /// Time of the sender's next attempt, [`NEVER`] if none is scheduled.
    wake_ps: u64,
    /// Time since which a frame has waited for a credit, [`NEVER`] if none waits.
    pub credit_wait_since_ps: u64,
    /// Arrival time of the first returning R_RDY, [`NEVER`] if there is none.
    next_credit_ps: u64,
    /// Available credits, without R_RDYs that have arrived but are not applied yet.
    pub credits: u32,
    /// Fewest credits left after a frame since the last [`Lane::restart_minimum`].
    pub credits_min: u32,
    /// Bytes of the current run of back-to-back frames, gaps included.
    run_bytes: u32,
    /// Remainder of `free_at_ps`, see [`Occupied::rest`].
    free_at_rest: u8,
    pub from: End,
    pub to: End,
    /// Output of the sending switch that serves this lane.
    pub output: u16,
    /// True if the line carries light.
    pub up: bool,
    /// True if the lane is watched, faulty, part of a bundle, has virtual channels, or ends in
    /// another part of the network.
    pub special: bool,
    /// Time at which the receiver processes a frame.
    pub(super) entry: Entry,
    /// True if a watchdog run is scheduled early enough for any frame that arrives from now on.
    pub watchdog_armed: bool,

    /// Frames on the line.
    pub flight: Flight,

    byte: ByteTime,
    /// Propagation delay of the cable.
    pub propagation_ps: u64,
    /// Time from the arrival at the receiver until the frame may be forwarded.
    pub latency_ps: u64,
    frames: u64,
    bytes: u64,
    data_bytes: u64,
    /// Bytes of the last frame, from SOF to EOF.
    last_bytes: u16,
    /// Times that the last credit was used.
    credit_zeros: u32,

    /// Arrival times of the R_RDYs after the first.
    returning: Returning,
    /// Time from a freed receive buffer to the credit at the sender: one R_RDY plus the propagation
    /// delay.
    pub r_rdy_ps: u64,
    r_rdys: u64,
    zero_credit_ps: u64,
    /// Time at which the last credit was used; valid while `credits` is 0.
    zero_since_ps: u64,

    credit_wait_ps: u64,
    /// Number of receive buffers at the other end.
    pub bb_credit: u32,
    /// Number of the bundle direction, if the lane belongs to a bundle.
    pub bundle: Option<u16>,
    /// True if frames and R_RDYs are recorded.
    pub watched: bool,
    /// True if the lane has a fault.
    pub faulty: bool,
    /// True if the lane has virtual channels.
    pub has_channels: bool,
    /// True if the lane joins an N_Port and an arbitrated loop, which has no credits of a lane.
    pub on_loop: bool,
    /// Time of a byte on the fastest line of the receiver, if that is faster than this line, as ps
    /// and the bytes they belong to.
    pub faster: Option<(u32, u16)>,
    /// Faults of the receiver.
    pub receiver: Receiver,
    /// Credits lost with their R_RDY or with their frame.
    pub credits_lost: u64,
    /// Link resets after a credit timeout.
    pub resets: u64,
    /// Total delay of the R_RDYs that the receiver sent late, in ps.
    pub late_ps: u64,
    /// Credit recovery.
    pub state_changes: StateChanges,
}

/// Counters of a lane, which never decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneCount {
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent, from SOF to EOF.
    pub bytes: u64,
    /// Bytes of FCP data sent.
    pub data_bytes: u64,
    /// R_RDYs returned for frames of this lane.
    pub r_rdys: u64,
    /// Time without a credit, in ps, whether or not a frame waited.
    pub zero_credit_ps: u64,
    /// Times that the last credit was used, modulo 2³².
    pub credit_zeros: u32,
    /// Time during which a frame waited for a credit, in ps.
    pub credit_wait_ps: u64,
    /// Time that frames occupied the line, each with the gap after it, in ps.
    pub busy_ps: u64,
    /// Credits lost with their R_RDY or with their frame.
    pub credits_lost: u64,
    /// Lost credits that state changes (BB_SC) restored.
    pub credits_recovered: u64,
    /// Link resets after a credit timeout.
    pub resets: u64,
    /// Total delay of the R_RDYs that the receiver sent late, in ps.
    pub late_ps: u64,
}

/// The times of a frame on a lane.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The first bit leaves.
    pub start_ps: u64,
    /// The last bit leaves.
    pub end_ps: u64,
    /// The receiver may process the frame.
    pub at_ps: u64,
    /// The last bit arrives; plus the latency, if the receiver waits for the output of the frame.
    pub tail_ps: u64,
}

impl Lane {
    /// Returns an idle lane with all credits.
    pub fn new(from: End, to: End, rate: LineRate, propagation_ps: u64, bb_credit: u32) -> Lane {
        let (ps_per_bytes, bytes_per_ps) = rate.ps_per_byte();
        Lane {
            from,
            to,
            byte: ByteTime::new(ps_per_bytes as u32, bytes_per_ps as u16),
            last_bytes: 0,
            credit_zeros: 0,
            // The other direction has the same rate and length.
            r_rdy_ps: R_RDY_BYTES * ps_per_bytes / bytes_per_ps + propagation_ps,
            output: 0,
            special: false,
            watchdog_armed: false,
            propagation_ps,
            latency_ps: 0,
            entry: Entry::Whole,
            faster: None,
            up: true,
            free_at_ps: 0,
            run_bytes: 0,
            free_at_rest: 0,
            bb_credit,
            credits: bb_credit,
            next_credit_ps: NEVER,
            returning: Returning::default(),
            wake_ps: NEVER,
            credit_wait_since_ps: NEVER,
            flight: Flight::default(),
            receiver: Receiver::default(),
            bundle: None,
            watched: false,
            faulty: false,
            has_channels: false,
            on_loop: false,
            frames: 0,
            bytes: 0,
            data_bytes: 0,
            credit_wait_ps: 0,
            r_rdys: 0,
            zero_credit_ps: 0,
            credits_lost: 0,
            resets: 0,
            late_ps: 0,
            state_changes: StateChanges::default(),
            credits_min: bb_credit,
            zero_since_ps: 0,
        }
    }

    /// Returns the time of a byte as a fraction: ps and the bytes they belong to.
    pub fn ps_per_byte(&self) -> (u64, u64) {
        let (ps, bytes) = self.byte.fraction();
        (ps.into(), bytes.into())
    }

    /// Returns the time on the line of `bytes`, in ps, rounded down.
    #[inline]
    pub fn time_of(&self, bytes: u64) -> u64 {
        self.byte.time_of(bytes)
    }

    /// Returns the earliest start of a frame whose last bit is there at `tail_ps`.
    #[inline]
    pub fn start_of(&self, tail_ps: u64, frame: &FrameRef) -> u64 {
        tail_ps.saturating_sub(self.time_of(frame.wire_bytes()))
    }

    /// Puts a frame on the line at `now`. If the frame is still arriving over a slower line, its
    /// start is delayed so that its last bit is there in time.
    #[inline(always)]
    pub fn send(&mut self, now: u64, tail_ps: u64, frame: &FrameRef) -> Sent {
        let wire_bytes = frame.wire_bytes();
        let mut start = now;
        if tail_ps > now {
            start = now.max(tail_ps.saturating_sub(self.time_of(wire_bytes)));
        }
        if start != self.free_at_ps || self.run_bytes > LONGEST_RUN_BYTES {
            (self.run_bytes, self.free_at_rest) = (0, 0);
        }
        self.run_bytes += (wire_bytes + GAP_BYTES) as u32;
        let Occupied { end_ps, free_ps, rest } = self.byte.occupy(start, self.free_at_rest, wire_bytes, GAP_BYTES);
        (self.free_at_ps, self.free_at_rest) = (free_ps, rest);
        // A new minimum must include the R_RDYs that have arrived by now. Later ones may not be
        // known yet, even if they arrive before the frame starts. Otherwise it does not matter
        // when R_RDYs are applied, but more of them would need memory of their own. The records of
        // a watched lane show the credits that are applied when they are needed.
        if self.next_credit_ps <= now
            && (self.credits <= self.credits_min || (self.returning.is_full() && !self.special))
        {
            self.take_credits(now);
        }
        self.credits -= 1;
        self.credits_min = self.credits_min.min(self.credits);
        if self.credits == 0 {
            self.zero_since_ps = start;
            // An R_RDY that has arrived is a credit, also if it is not applied yet.
            self.credit_zeros = self.credit_zeros.wrapping_add(u32::from(self.next_credit_ps > now));
        }
        self.frames += 1;
        self.bytes += wire_bytes;
        self.last_bytes = wire_bytes as u16;
        if frame.is_data() {
            self.data_bytes += u64::from(frame.len_bytes());
        }
        let tail_ps = end_ps + self.propagation_ps;
        if self.entry == Entry::Whole {
            return Sent { start_ps: start, end_ps, at_ps: tail_ps + self.latency_ps, tail_ps };
        }
        let header_ps = start + self.time_of(HEADER_WIRE_BYTES) + self.propagation_ps;
        let mut sent = Sent { start_ps: start, end_ps, at_ps: header_ps + self.latency_ps, tail_ps };
        if self.entry == Entry::ForOutput {
            sent.tail_ps += self.latency_ps;
        } else if let Some((ps, bytes)) = self.faster {
            let enough_ps = tail_ps - wire_bytes * u64::from(ps) / u64::from(bytes);
            sent.at_ps = header_ps.max(enough_ps) + self.latency_ps;
        }
        sent
    }

    /// Sets the time of a byte.
    pub(super) fn set_byte_time(&mut self, byte: ByteTime) {
        self.byte = byte;
    }

    /// Counts a frame that an arbitrated loop carries over the lane.
    pub(super) fn count_frame(&mut self, frame: &FrameRef) {
        self.frames += 1;
        self.bytes += frame.wire_bytes();
        if frame.is_data() {
            self.data_bytes += u64::from(frame.len_bytes());
        }
    }

    /// Applies the R_RDYs that arrived by `now` if no credit is left. Returns whether a frame may
    /// be sent.
    #[inline]
    pub fn has_credit(&mut self, now: u64) -> bool {
        self.credits > 0 || (self.next_credit_ps <= now && self.take_credits(now))
    }

    #[inline]
    fn take_credits(&mut self, now: u64) -> bool {
        while self.next_credit_ps <= now {
            if self.credits == 0 {
                self.zero_credit_ps += self.next_credit_ps.saturating_sub(self.zero_since_ps);
            }
            self.credits += 1;
            self.next_credit_ps = self.returning.take();
        }
        // A credit ends the wait for it, even if the frame cannot start yet. On a lane with virtual
        // channels, each channel waits.
        if !self.has_channels {
            self.end_credit_wait(now);
        }
        self.credits > 0
    }

    /// Returns the arrival time of the next R_RDY, or [`NEVER`] if none is returning.
    #[inline]
    pub fn next_credit(&self) -> u64 {
        self.next_credit_ps
    }

    /// Returns the frames sent and the R_RDYs received, which never decrease.
    pub(super) fn sent_and_returned(&self) -> (u64, u64) {
        (self.frames, self.r_rdys)
    }

    /// Sends the R_RDY of a buffer that becomes free at `free_ps`. Calls may come out of order,
    /// because a short frame can leave an input buffer before a long one that arrived earlier.
    #[inline]
    pub fn credit_returns(&mut self, free_ps: u64) {
        let time = free_ps + self.r_rdy_ps;
        self.r_rdys += 1;
        self.expect_credit(time);
    }

    /// Counts the R_RDY of a buffer that becomes free at `free_ps`. Returns its arrival time at the
    /// sender, which belongs to another part of the network.
    pub(super) fn credit_leaves(&mut self, free_ps: u64) -> u64 {
        self.r_rdys += 1;
        free_ps + self.r_rdy_ps
    }

    /// Returns the time of the sender's next attempt, [`NEVER`] if none is scheduled.
    pub(super) fn wake_ps(&self) -> u64 {
        self.wake_ps
    }

    /// Returns the shortest time in ps from an event at one end of the lane to its first effect at
    /// the other end: of a frame without data from the sender, and of an R_RDY from the receiver.
    pub fn lookahead_ps(&self) -> [u64; 2] {
        let frame_bytes = if self.entry == Entry::Whole { OVERHEAD_BYTES } else { HEADER_WIRE_BYTES };
        [self.time_of(frame_bytes) + self.propagation_ps + self.latency_ps, self.r_rdy_ps]
    }

    /// Exchanges the state of the receiver with another copy of the lane.
    pub(super) fn swap_receiver(&mut self, other: &mut Lane) {
        std::mem::swap(&mut self.flight, &mut other.flight);
        std::mem::swap(&mut self.watchdog_armed, &mut other.watchdog_armed);
        std::mem::swap(&mut self.r_rdys, &mut other.r_rdys);
        std::mem::swap(&mut self.receiver, &mut other.receiver);
        std::mem::swap(&mut self.credits_lost, &mut other.credits_lost);
        std::mem::swap(&mut self.late_ps, &mut other.late_ps);
    }

    #[inline]
    pub(super) fn expect_credit(&mut self, time: u64) {
        let first = self.next_credit_ps;
        self.next_credit_ps = first.min(time);
        if first != NEVER {
            self.returning.add(first.max(time));
        }
    }

    /// Iterates over the arrival times of the returning R_RDYs, earliest first.
    fn expected(&self) -> impl Iterator<Item = u64> {
        Some(self.next_credit_ps).filter(|&time| time != NEVER).into_iter().chain(self.returning.iter())
    }

    /// Returns the number of returning R_RDYs, including those that have arrived but are not
    /// applied yet.
    pub fn credits_returning(&self) -> u32 {
        self.expected().count() as u32
    }

    /// Returns the sender's credits at `now`, including R_RDYs that have arrived but are not
    /// applied yet.
    pub fn credits_at(&self, now: u64) -> u32 {
        self.credits + self.expected().filter(|&time| time <= now).count() as u32
    }

    /// Discards the returning credits and restarts with `credits`, at once or at `time`.
    pub fn restart_credits(&mut self, credits: u32, time: Option<u64>) {
        self.returning = Returning::default();
        self.next_credit_ps = NEVER;
        self.credits = 0;
        match time {
            None => self.credits = credits,
            Some(time) => (0..credits).for_each(|_| self.expect_credit(time)),
        }
    }

    /// Schedules the sender's next attempt at `time`; [`NEVER`] cancels it. `source` is the event
    /// source of the lane's attempts.
    #[inline(always)]
    pub fn wake_at(&mut self, queue: &mut EventQueue, source: u32, time: u64) {
        let old = std::mem::replace(&mut self.wake_ps, time);
        queue.move_event(source, old, time);
    }

    /// Schedules the sender's next attempt at `time`, unless an earlier one is scheduled.
    #[inline]
    pub fn wake_by(&mut self, queue: &mut EventQueue, source: u32, time: u64) {
        if time < self.wake_ps {
            self.wake_at(queue, source, time);
        }
    }

    /// Clears the scheduled attempt after its event has left the queue.
    #[inline]
    pub fn clear_wake(&mut self) {
        self.wake_ps = NEVER;
    }

    /// Ends a wait for credit and adds its duration to the counter.
    #[inline]
    pub fn end_credit_wait(&mut self, now: u64) {
        if self.credit_wait_since_ps != NEVER {
            self.credit_wait_ps += now - self.credit_wait_since_ps;
            self.credit_wait_since_ps = NEVER;
        }
    }

    /// Returns the time without a credit up to `now`, in ps. An R_RDY that has arrived but is not
    /// applied yet ends the interval at its arrival.
    pub fn zero_credit_ps(&self, now: u64) -> u64 {
        let present = if self.up && self.credits == 0 {
            let until = self.next_credit_ps.min(now);
            until.saturating_sub(self.zero_since_ps)
        } else {
            0
        };
        self.zero_credit_ps + present
    }

    /// Restarts the interval without a credit at `now`, after the link has come up.
    pub fn restart_zero_credit(&mut self, now: u64) {
        self.zero_since_ps = now;
    }

    /// Restarts the minimum in `credits_min`.
    pub fn restart_minimum(&mut self) {
        self.credits_min = self.credits.saturating_add(self.credits_returning()).min(self.bb_credit);
    }

    /// Returns the time that frames have occupied the line up to `now`, each with the gap after it,
    /// in ps. The part of the last frame that is not sent yet is excluded.
    pub fn busy_ps(&self, now: u64) -> u64 {
        let bytes = u128::from(self.bytes + self.frames * GAP_BYTES);
        let (ps, per_bytes) = self.byte.fraction();
        let all_ps = (bytes * u128::from(ps) / u128::from(per_bytes)) as u64;
        let last_ps = self.time_of(u64::from(self.last_bytes) + GAP_BYTES);
        all_ps - self.free_at_ps.saturating_sub(now).min(last_ps)
    }

    /// Returns the bytes of all frames sent so far, from SOF to EOF.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the counters, without intervals that are still open. A frame counts as busy time
    /// when it starts.
    pub fn count(&self) -> LaneCount {
        LaneCount {
            frames: self.frames,
            bytes: self.bytes,
            data_bytes: self.data_bytes,
            r_rdys: self.r_rdys,
            zero_credit_ps: self.zero_credit_ps,
            credit_zeros: self.credit_zeros,
            credit_wait_ps: self.credit_wait_ps,
            busy_ps: self.busy_ps(u64::MAX),
            credits_lost: self.credits_lost,
            credits_recovered: self.state_changes.recovered,
            resets: self.resets,
            late_ps: self.late_ps,
        }
    }

    /// Returns the time during which a frame waited for a credit up to `now`, in ps, including an
    /// open wait.
    pub fn credit_wait_ps(&self, now: u64) -> u64 {
        let present =
            if self.credit_wait_since_ps == NEVER { 0 } else { now.saturating_sub(self.credit_wait_since_ps) };
        self.credit_wait_ps + present
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_fc::exchange::{SeqIds, SeqTx};
    use sanloom_wire::FcId;

    fn lane(bb_credit: u32) -> Lane {
        Lane::new(End::NPort(0), End::NPort(1), LineRate::Fc2, 1_000_000, bb_credit)
    }

    fn frame() -> FrameRef {
        let (s_id, d_id) = (FcId::new(1), FcId::new(2));
        let ids = SeqIds { s_id, d_id, ox_id: 0, rx_id: 0, seq_id: 0, from_responder: false };
        let mut seq = SeqTx::new(ids, 1024, 0, 0, 1024);
        let frame = seq.next_frame().expect("a frame");
        FrameRef::data(&seq, &frame)
    }

    /// Sends a frame whose buffer becomes free on arrival. Returns the time at which its credit is
    /// back.
    fn send_one(lane: &mut Lane, now: u64) -> u64 {
        assert!(lane.has_credit(now));
        let sent = lane.send(now, 0, &frame());
        lane.credit_returns(sent.tail_ps);
        sent.tail_ps + lane.r_rdy_ps
    }

    #[test]
    fn the_credit_minimum_includes_r_rdys_that_are_not_applied_yet() {
        let mut lane = lane(8);
        let mut now = 0;
        for _ in 0..100 {
            now = send_one(&mut lane, now);
        }
        assert_eq!((lane.credits_min, lane.zero_credit_ps(now)), (7, 0));
        for _ in 0..3 {
            send_one(&mut lane, now);
        }
        assert_eq!(lane.credits_min, 5);
    }

    #[test]
    fn a_frame_counts_as_busy_time_while_it_is_sent() {
        let mut lane = lane(1);
        let sent = lane.send(1_000_000, 0, &frame());
        let length_ps = lane.free_at_ps - sent.start_ps;
        for part in 0..=10 {
            let sent_ps = length_ps * part / 10;
            assert_eq!(lane.busy_ps(sent.start_ps + sent_ps), sent_ps);
        }
        assert_eq!((lane.busy_ps(0), lane.busy_ps(u64::MAX)), (0, length_ps));
    }

    #[test]
    fn time_without_credit_ends_when_the_r_rdy_arrives() {
        let mut lane = lane(1);
        let mut without_ps = 0;
        for round in 0..10 {
            let now = round * 1_000_000_000;
            without_ps += send_one(&mut lane, now) - now;
        }
        assert_eq!((lane.credits_min, lane.zero_credit_ps(u64::MAX)), (0, without_ps));
        assert_eq!(lane.count().credit_zeros, 10, "each frame uses the only credit");
    }
}
