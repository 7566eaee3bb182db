//! One direction of a link: the line, the credits of its sender and the frames on it.

use super::flight::Flight;
use super::frame_ref::{FrameRef, GAP_BYTES, HEADER_WIRE_BYTES};
use super::queue::{EventQueue, NEVER};
use super::returning::Returning;
use sanloom_core::config::LineRate;

/// After so many bytes a new run begins, whether the line pauses or not.
const LONGEST_RUN_BYTES: u32 = 1 << 24;

/// Bytes of an R_RDY on the line.
const R_RDY_BYTES: u64 = 4;

/// Where a lane begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A port of a switch.
    Switch {
        /// Switch.
        switch: u16,
        /// Port.
        port: u16,
    },
    /// An N_Port.
    NPort(u16),
}

const _: () = assert!(size_of::<Lane>() == 6 * 64);

/// One direction of a link, from a sender to a receiver.
///
/// The sender may have as many frames on the way or in the receiver's buffers as it was given credits; each R_RDY gives
/// one back. R_RDYs are words between frames: they take four bytes of time and the way, and do not wait for a frame
/// that is being sent the other way (a real one waits for at most that one frame).
///
/// The fields stand in the order of their use, by cache lines: the first decides whether a frame may be sent, the second
/// holds the frames on the line, the third is what a frame needs and changes, the fourth what a returning credit does. The
/// rest is for faults and reports.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Lane {
    /// When the next frame may start.
    pub free_at_ps: u64,
    /// When the sender tries again, [`NEVER`] if that is not planned.
    wake_ps: u64,
    /// Has a frame to send and no credit since; [`NEVER`]: has not.
    pub starving_since_ps: u64,
    /// When the first R_RDY on its way will be here, [`NEVER`] if none is.
    next_credit_ps: u64,
    /// Frames that may be sent now. R_RDYs that have come and were not needed yet are not among them.
    pub credits: u32,
    /// Fewest credits left after a frame since the counters were last looked at; see [`Lane::restart_minimum`].
    pub credits_min: u32,
    /// Bytes of the present run of frames without a pause, gaps included.
    run_bytes: u32,
    /// `free_at_ps` is rounded down; this is the rest, in parts of a picosecond of which `bytes_per_ps` are a whole one.
    free_at_rest: u8,
    /// Sender.
    pub from: End,
    /// Receiver.
    pub to: End,
    /// Output of the sending switch that the lane serves.
    pub output: u16,
    /// Carries light.
    pub up: bool,
    /// Something about the lane is not ordinary: it is watched, faulty or part of a bundle.
    pub special: bool,
    /// The receiver forwards before the last bit is there.
    pub cut_through: bool,
    /// The watchdog looks after the receiver's buffers in time for any frame that comes from now on.
    pub guarded: bool,

    /// Frames on the line.
    pub flight: Flight,

    /// A byte takes `ps_per_bytes / bytes_per_ps`.
    ps_per_bytes: u32,
    bytes_per_ps: u32,
    /// 2^64 / `bytes_per_ps`, rounded up: a multiplication is faster than a division.
    reciprocal: u64,
    /// Time of light.
    pub propagation_ps: u64,
    /// From the arrival at the receiver until it may be forwarded there.
    pub latency_ps: u64,
    frames: u64,
    bytes: u64,
    data_bytes: u64,
    credit_wait_ps: u64,

    /// When the R_RDYs behind the first will be here.
    returning: Returning,
    /// From a receive buffer that is free to the credit at the sender: an R_RDY and the way back.
    pub r_rdy_ps: u64,
    r_rdys: u64,
    zero_credit_ps: u64,
    /// When the last credit was used, if there is none.
    zero_since_ps: u64,

    /// Receive buffers at the other end.
    pub bb_credit: u32,
    /// Number of the bundle direction, if the lane belongs to one.
    pub bundle: Option<u16>,
    /// Somebody watches: frames and R_RDYs are recorded.
    pub watched: bool,
    /// Frames get lost or damaged here.
    pub faulty: bool,
    /// The receiver's slowness, if a fault makes it slow.
    pub receiver: Receiver,
    /// Credits lost with their R_RDY.
    pub credits_lost: u64,
    /// Link resets for want of credit.
    pub resets: u64,
    /// Time for which the receiver kept R_RDYs back that it might have sent, summed over those that it sent, in ps.
    pub late_ps: u64,
}

/// Faults of a receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Receiver {
    /// Added time before each R_RDY, one after the other.
    pub delay_ps: u64,
    /// When the last R_RDY was ready.
    pub last_ps: u64,
    /// R_RDYs are kept back.
    pub withholds: bool,
    /// How many are kept back.
    pub withheld: u32,
    /// Kept-back R_RDYs times ps up to `changed_ps`.
    withheld_area_ps: u64,
    changed_ps: u64,
}

impl Receiver {
    /// So many R_RDYs are kept back from now on.
    pub fn keep(&mut self, now: u64, withheld: u32) {
        self.withheld_area_ps = self.withheld_area_ps(now);
        self.changed_ps = now;
        self.withheld = withheld;
    }

    /// Kept-back R_RDYs times ps up to `now`.
    pub fn withheld_area_ps(&self, now: u64) -> u64 {
        self.withheld_area_ps + u64::from(self.withheld) * now.saturating_sub(self.changed_ps)
    }
}

/// Counters of a lane; all of them only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneCount {
    /// Frames sent.
    pub frames: u64,
    /// Bytes between SOF and EOF, both included.
    pub bytes: u64,
    /// Bytes of FCP data.
    pub data_bytes: u64,
    /// R_RDYs that came back for this lane's frames.
    pub r_rdys: u64,
    /// Time without a credit, whether a frame waited or not, in ps.
    pub zero_credit_ps: u64,
    /// Time with a frame to send and no credit, in ps.
    pub credit_wait_ps: u64,
    /// Credits lost with their R_RDY.
    pub credits_lost: u64,
    /// Link resets for want of credit.
    pub resets: u64,
    /// Time for which the receiver kept R_RDYs back that it might have sent, summed over them, in ps.
    pub late_ps: u64,
}

/// The times of a frame that has been put on a lane.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First bit leaves.
    pub start_ps: u64,
    /// Last bit leaves.
    pub end_ps: u64,
    /// The receiver may deal with it.
    pub at_ps: u64,
    /// Its last bit has arrived.
    pub tail_ps: u64,
}

impl Lane {
    /// An idle lane with all credits.
    pub fn new(from: End, to: End, rate: LineRate, propagation_ps: u64, bb_credit: u32) -> Lane {
        let (ps_per_bytes, bytes_per_ps) = rate.ps_per_byte();
        Lane {
            from,
            to,
            ps_per_bytes: ps_per_bytes as u32,
            bytes_per_ps: bytes_per_ps as u32,
            reciprocal: u64::MAX / bytes_per_ps + 1,
            // The other direction of the link is as fast and as long.
            r_rdy_ps: R_RDY_BYTES * ps_per_bytes / bytes_per_ps + propagation_ps,
            output: 0,
            special: false,
            guarded: false,
            propagation_ps,
            latency_ps: 0,
            cut_through: false,
            up: true,
            free_at_ps: 0,
            run_bytes: 0,
            free_at_rest: 0,
            bb_credit,
            credits: bb_credit,
            next_credit_ps: NEVER,
            returning: Returning::default(),
            wake_ps: NEVER,
            starving_since_ps: NEVER,
            flight: Flight::default(),
            receiver: Receiver {
                delay_ps: 0,
                last_ps: 0,
                withholds: false,
                withheld: 0,
                withheld_area_ps: 0,
                changed_ps: 0,
            },
            bundle: None,
            watched: false,
            faulty: false,
            frames: 0,
            bytes: 0,
            data_bytes: 0,
            credit_wait_ps: 0,
            r_rdys: 0,
            zero_credit_ps: 0,
            credits_lost: 0,
            resets: 0,
            late_ps: 0,
            credits_min: bb_credit,
            zero_since_ps: 0,
        }
    }

    /// Time on the line of `bytes`, in ps, rounded down.
    #[inline]
    pub fn time_of(&self, bytes: u64) -> u64 {
        bytes * u64::from(self.ps_per_bytes) / u64::from(self.bytes_per_ps)
    }

    /// `parts / bytes_per_ps`, rounded down.
    #[inline]
    fn whole(&self, parts: u64) -> u64 {
        ((u128::from(parts) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// Puts a frame on the line at `now` or, behind a slower line, as late as its last bit needs.
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
        // The same as to divide the bytes of the run once: what one division leaves goes into the next.
        let end_parts = u64::from(self.free_at_rest) + wire_bytes * u64::from(self.ps_per_bytes);
        let end_ps = start + self.whole(end_parts);
        let free_parts = end_parts + GAP_BYTES * u64::from(self.ps_per_bytes);
        let busy_ps = self.whole(free_parts);
        self.free_at_ps = start + busy_ps;
        self.free_at_rest = (free_parts - busy_ps * u64::from(self.bytes_per_ps)) as u8;
        // A new minimum counts only with what has come by now; otherwise it is taken when it is needed.
        if self.credits <= self.credits_min && self.next_credit_ps <= start {
            self.take_credits(start);
        }
        self.credits -= 1;
        self.credits_min = self.credits_min.min(self.credits);
        if self.credits == 0 {
            self.zero_since_ps = start;
        }
        self.frames += 1;
        self.bytes += wire_bytes;
        if frame.is_data() {
            self.data_bytes += u64::from(frame.len_bytes());
        }
        let tail_ps = end_ps + self.propagation_ps;
        let at_ps = if self.cut_through {
            start + self.time_of(HEADER_WIRE_BYTES) + self.propagation_ps + self.latency_ps
        } else {
            tail_ps + self.latency_ps
        };
        Sent { start_ps: start, end_ps, at_ps, tail_ps }
    }

    /// Takes the R_RDYs that have come by `now`; true if a frame may be sent.
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
        self.credits > 0
    }

    /// When the next R_RDY will be here, [`NEVER`] if none is on its way.
    #[inline]
    pub fn next_credit(&self) -> u64 {
        self.next_credit_ps
    }

    /// The R_RDY of a buffer that is free at `free_ps` is on its way. They need not be announced in order: a short frame can
    /// leave an input buffer before a long one that came earlier.
    #[inline]
    pub fn credit_returns(&mut self, free_ps: u64) {
        let time = free_ps + self.r_rdy_ps;
        self.r_rdys += 1;
        self.expect_credit(time);
    }

    #[inline]
    fn expect_credit(&mut self, time: u64) {
        let first = self.next_credit_ps;
        self.next_credit_ps = first.min(time);
        if first != NEVER {
            self.returning.add(first.max(time));
        }
    }

    /// When the R_RDYs on their way will be here, in order.
    fn expected(&self) -> impl Iterator<Item = u64> {
        Some(self.next_credit_ps).filter(|&time| time != NEVER).into_iter().chain(self.returning.iter())
    }

    /// R_RDYs on their way.
    pub fn credits_returning(&self) -> u32 {
        self.expected().count() as u32
    }

    /// Credits that the sender has at `now`, those included whose R_RDYs are there and were not needed yet.
    pub fn credits_at(&self, now: u64) -> u32 {
        self.credits + self.expected().filter(|&time| time <= now).count() as u32
    }

    /// Forgets the credits on their way and starts over with `credits`, at once or at `time`.
    pub fn restart_credits(&mut self, credits: u32, time: Option<u64>) {
        self.returning = Returning::default();
        self.next_credit_ps = NEVER;
        self.credits = 0;
        match time {
            None => self.credits = credits,
            Some(time) => (0..credits).for_each(|_| self.expect_credit(time)),
        }
    }

    /// The sender tries again at `time`, [`NEVER`]: not before something happens. `source` is the lane's chance to send.
    #[inline]
    pub fn wake_at(&mut self, queue: &mut EventQueue, source: u32, time: u64) {
        let old = std::mem::replace(&mut self.wake_ps, time);
        queue.move_event(source, old, time);
    }

    /// The sender tries again at `time` or before.
    #[inline]
    pub fn wake_by(&mut self, queue: &mut EventQueue, source: u32, time: u64) {
        if time < self.wake_ps {
            self.wake_at(queue, source, time);
        }
    }

    /// The time to try again has come.
    #[inline]
    pub fn woken(&mut self) {
        self.wake_ps = NEVER;
    }

    /// Ends a wait for credit and accounts for it.
    #[inline]
    pub fn fed(&mut self, now: u64) {
        if self.starving_since_ps != NEVER {
            self.credit_wait_ps += now - self.starving_since_ps;
            self.starving_since_ps = NEVER;
        }
    }

    /// Time without a credit up to `now`. R_RDYs that are there but were not needed yet end it when they came.
    pub fn zero_credit_ps(&self, now: u64) -> u64 {
        let present = if self.up && self.credits == 0 {
            let until = self.next_credit_ps.min(now);
            until.saturating_sub(self.zero_since_ps)
        } else {
            0
        };
        self.zero_credit_ps + present
    }

    /// The link is up again: a time without credit begins now at the earliest.
    pub fn restart_zero_credit(&mut self, now: u64) {
        self.zero_since_ps = now;
    }

    /// Looks for the fewest credits anew.
    pub fn restart_minimum(&mut self) {
        self.credits_min = self.credits.saturating_add(self.credits_returning()).min(self.bb_credit);
    }

    /// Bytes on the line so far, gaps included.
    pub fn line_bytes(&self) -> u64 {
        self.bytes + self.frames * GAP_BYTES
    }

    /// The counters, without what is in progress.
    pub fn count(&self) -> LaneCount {
        LaneCount {
            frames: self.frames,
            bytes: self.bytes,
            data_bytes: self.data_bytes,
            r_rdys: self.r_rdys,
            zero_credit_ps: self.zero_credit_ps,
            credit_wait_ps: self.credit_wait_ps,
            credits_lost: self.credits_lost,
            resets: self.resets,
            late_ps: self.late_ps,
        }
    }

    /// Time with a frame to send and no credit up to `now`, a wait in progress included.
    pub fn credit_wait_ps(&self, now: u64) -> u64 {
        let present = if self.starving_since_ps == NEVER { 0 } else { now.saturating_sub(self.starving_since_ps) };
        self.credit_wait_ps + present
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_core::exchange::{SeqIds, SeqTx};
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

    /// Sends a frame whose buffer is free as soon as it is there; says when its credit is back.
    fn send_one(lane: &mut Lane, now: u64) -> u64 {
        assert!(lane.has_credit(now));
        let sent = lane.send(now, 0, &frame());
        lane.credit_returns(sent.tail_ps);
        sent.tail_ps + lane.r_rdy_ps
    }

    #[test]
    fn the_fewest_credits_count_those_that_came_and_were_not_needed() {
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
    fn time_without_credit_ends_when_the_credit_comes() {
        let mut lane = lane(1);
        let mut without_ps = 0;
        for turn in 0..10 {
            let now = turn * 1_000_000_000;
            without_ps += send_one(&mut lane, now) - now;
        }
        assert_eq!((lane.credits_min, lane.zero_credit_ps(u64::MAX)), (0, without_ps));
    }
}
