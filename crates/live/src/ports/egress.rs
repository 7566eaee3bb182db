//! Egress queues of a port: [`Egress`].
//!
//! There is a queue for each priority. A peer pauses the priorities that DCBX has made lossless
//! (IEEE 802.1Qbb), and ETS divides the port among the traffic classes that it has agreed on (IEEE
//! 802.1Qaz). Without such an agreement, frames leave in the order in which they came.

use crate::frame::{FrameBuf, Pool};
use sanloom_fc::dcbx::DcbSettings;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::lldp::dcbx::algorithm;
use sanloom_wire::pause::PriorityPause;
use std::collections::VecDeque;

/// Queue length, in frames, from which ingress ports that feed this port are paused.
pub const FULL: usize = 256;
/// Queue length, in frames, below which paused ingress ports resume.
const ROOM: usize = 128;
/// Number of priorities.
const PRIORITIES: usize = 8;
/// Queue of frames of MAC control, behind those of the priorities. No pause stops it.
const CONTROL: usize = PRIORITIES;
/// Lowest speed by which pauses count, in Mb/s: that of the first lines with priority-based flow
/// control. Virtual machines have no speed, and taps report 10 Mb/s.
const MIN_MBIT_PER_S: u32 = 10_000;
/// Longest pause, in quanta.
const LONGEST_QUANTA: u64 = 65_535;
/// Bytes that a class of one percent may send in a round of ETS: a batch of the drivers for a class
/// of half of the port.
const BYTES_PER_PERCENT: i64 = 1_500;

/// A frame and the time at which it was queued.
#[derive(Debug)]
pub struct Queued {
    /// The frame, with its tag in place.
    pub frame: FrameBuf,
    /// Time at which the frame was queued.
    since: Instant,
}

/// Shares of the traffic classes.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// Traffic class of each priority.
    classes: [u8; PRIORITIES],
    /// Percent of each class; `None`: the class has strict priority.
    percent: [Option<u8>; PRIORITIES],
    /// Bytes that each class may still send in this round.
    credit: [i64; PRIORITIES],
    /// Class in turn.
    turn: usize,
}

/// Frames queued for a port.
///
/// A full queue rejects nothing. The switch driver stops reading the ports that feed it, so at most
/// the batches that it has read from each at once are added.
#[derive(Debug, Default)]
pub struct Egress {
    /// Queues of the priorities, and of MAC control.
    queues: [VecDeque<Queued>; PRIORITIES + 1],
    /// Queues with frames, as a mask.
    used: u16,
    frames: usize,
    /// Queue of which the driver has sent a part of the first frame.
    begun: Option<usize>,
    /// ETS has chosen the queue among several classes, so its bytes count.
    counts: bool,
    /// The peer accepted no frame at the last attempt.
    pub blocked: bool,
    /// Priorities that the peer may pause, as a mask.
    lossless: u8,
    /// Paused priorities as a mask, and the ends of their pauses.
    paused: u8,
    until: [Instant; PRIORITIES],
    /// Speed of the line in Mb/s, if it is known.
    pub speed_mbit_per_s: Option<u32>,
    shares: Option<Shares>,
}

impl Egress {
    /// Time of pause quanta of 512 bit times each (IEEE 802.3, annex 31B).
    fn time_of(&self, quanta: u64) -> Span {
        // 512 bits take 512,000 / speed ns.
        let speed = self.speed_mbit_per_s.unwrap_or(0).max(MIN_MBIT_PER_S);
        Span::from_ns((quanta * 512_000).div_ceil(speed.into()))
    }

    /// Time after which a pause of the longest time is repeated: half of it.
    pub fn repeats_pause_after(&self) -> Span {
        self.time_of(LONGEST_QUANTA / 2)
    }

    /// Appends a frame.
    #[inline]
    pub fn push(&mut self, now: Instant, mut frame: FrameBuf) {
        let priority = frame.tag.map_or(0, |tag| usize::from(tag.priority & 7));
        frame.put_tag();
        self.add(priority, Queued { frame, since: now });
    }

    /// Appends a frame of MAC control, which precedes all others.
    pub fn push_control(&mut self, now: Instant, frame: FrameBuf) {
        self.add(CONTROL, Queued { frame, since: now });
    }

    #[inline]
    fn add(&mut self, queue: usize, queued: Queued) {
        self.queues[queue].push_back(queued);
        self.used |= 1 << queue;
        self.frames += 1;
    }

    /// Number of queued frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.frames
    }

    /// Returns whether no frame is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Returns whether the ports that feed this queue must pause.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.frames >= FULL
    }

    /// Returns whether paused ports may resume.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.frames < ROOM
    }

    /// Applies what DCBX has agreed on; `None` without a peer that supports it.
    pub fn configure(&mut self, settings: Option<&DcbSettings>) {
        self.lossless = settings.map_or(0, |settings| settings.lossless);
        self.paused &= self.lossless;
        self.shares = settings.map(|settings| {
            let traffic = &settings.traffic;
            let percent = |class: usize| {
                (traffic.algorithms[class] == algorithm::ETS).then_some(traffic.bandwidth_percent[class])
            };
            Shares {
                classes: traffic.classes.map(|class| class & 7),
                percent: std::array::from_fn(percent),
                credit: [0; PRIORITIES],
                turn: 0,
            }
        });
    }

    /// Priorities that the peer may pause, and that we may pause there, as a mask.
    pub fn lossless(&self) -> u8 {
        self.lossless
    }

    /// The peer pauses priorities, or ends their pauses. Returns whether one of them is lossless;
    /// others ignore it.
    pub fn pause(&mut self, now: Instant, pause: &PriorityPause) -> bool {
        let named = pause.named & self.lossless;
        for priority in (0..PRIORITIES).filter(|priority| named & 1 << priority != 0) {
            let quanta = u64::from(pause.quanta[priority]);
            self.until[priority] = now + self.time_of(quanta);
            match quanta {
                0 => self.paused &= !(1 << priority),
                _ => self.paused |= 1 << priority,
            }
        }
        named != 0
    }

    /// Ends the pauses whose time is over.
    pub fn resume(&mut self, now: Instant) {
        let mut paused = self.paused;
        while paused != 0 {
            let priority = paused.trailing_zeros() as usize;
            paused &= paused - 1;
            if self.until[priority] <= now {
                self.paused &= !(1 << priority);
            }
        }
    }

    /// Time at which the first pause of a priority with frames ends.
    pub fn resumes(&self) -> Option<Instant> {
        let waiting = self.used & u16::from(self.paused);
        (0..PRIORITIES).filter(|priority| waiting & 1 << priority != 0).map(|priority| self.until[priority]).min()
    }

    /// Returns the queue that sends next: one that has begun a frame, MAC control, then those that
    /// are not paused.
    #[inline]
    pub fn choose(&mut self) -> Option<usize> {
        if self.begun.is_some() {
            return self.begun;
        }
        let ready = self.used & !u16::from(self.paused);
        self.counts = false;
        if ready & (ready.wrapping_sub(1)) == 0 {
            return (ready != 0).then(|| ready.trailing_zeros() as usize);
        }
        if ready & 1 << CONTROL != 0 {
            return Some(CONTROL);
        }
        match &mut self.shares {
            None => self.oldest(ready),
            Some(shares) => {
                self.counts = true;
                let priorities = shares.choose(ready as u8);
                self.oldest(priorities.into())
            }
        }
    }

    /// The queue among some whose first frame waits longest.
    fn oldest(&self, ready: u16) -> Option<usize> {
        let queues = (0..PRIORITIES).filter(|queue| ready & 1 << queue != 0);
        queues.min_by_key(|queue| self.queues[*queue].front().map(|first| first.since))
    }

    /// The frames of a queue.
    pub fn queue(&mut self, queue: usize) -> &mut VecDeque<Queued> {
        &mut self.queues[queue]
    }

    /// Removes the first `sent` frames of a queue, which have been sent. `has_begun` tells whether
    /// the driver has sent a part of the next one.
    pub fn sent(&mut self, queue: usize, sent: usize, has_begun: bool, pool: &mut Pool) {
        let bytes = self.drop_first(queue, sent, pool);
        self.begun = has_begun.then_some(queue);
        if let Some(shares) = self.shares.as_mut().filter(|_| self.counts && queue < PRIORITIES) {
            shares.credit[usize::from(shares.classes[queue])] -= bytes as i64;
        }
    }

    /// Removes the first frames of a queue. Returns their bytes.
    fn drop_first(&mut self, queue: usize, count: usize, pool: &mut Pool) -> usize {
        let mut bytes = 0;
        let frames = &mut self.queues[queue];
        let count = count.min(frames.len());
        for queued in frames.drain(..count) {
            bytes += queued.frame.bytes().len();
            pool.give(queued.frame);
        }
        self.frames -= count;
        if frames.is_empty() {
            self.used &= !(1 << queue);
        }
        bytes
    }

    /// Queues whose frames the peer does not accept, as a mask.
    fn stopped(&self) -> u16 {
        if self.blocked { self.used } else { self.used & u16::from(self.paused) }
    }

    /// Time at which the hold time of the first frame ends that the peer does not accept; `None` if
    /// it accepts all of them.
    pub fn expires(&self, hold_time: Span) -> Option<Instant> {
        let stopped = self.stopped();
        if stopped == 0 {
            return None;
        }
        let queues = (0..=CONTROL).filter(|queue| stopped & 1 << queue != 0);
        let first = |queue: usize| self.queues[queue].get(self.kept(queue)).map(|first| first.since + hold_time);
        queues.filter_map(first).min()
    }

    /// Frames at the front of a queue that cannot be dropped, because the peer has a part of them.
    fn kept(&self, queue: usize) -> usize {
        usize::from(self.begun == Some(queue))
    }

    /// Discards frames whose hold time is over while the peer does not accept them. Returns their
    /// number.
    pub fn expire(&mut self, now: Instant, hold_time: Span, pool: &mut Pool) -> u64 {
        let before = self.frames;
        while self.expires(hold_time).is_some_and(|at| at <= now) {
            let stopped = self.stopped();
            for queue in (0..=CONTROL).filter(|queue| stopped & 1 << queue != 0) {
                let kept = self.kept(queue);
                while self.queues[queue].get(kept).is_some_and(|first| first.since + hold_time <= now) {
                    self.frames -= 1;
                    if let Some(queued) = self.queues[queue].remove(kept) {
                        pool.give(queued.frame);
                    }
                }
                if self.queues[queue].is_empty() {
                    self.used &= !(1 << queue);
                }
            }
        }
        (before - self.frames) as u64
    }

    /// Discards all frames and returns their number.
    pub fn clear(&mut self, pool: &mut Pool) -> u64 {
        let all = self.frames;
        (0..=CONTROL).for_each(|queue| _ = self.drop_first(queue, usize::MAX, pool));
        (self.blocked, self.begun, self.paused) = (false, None, 0);
        all as u64
    }
}

impl Shares {
    /// Returns the ready priorities of the class that sends next: the highest one with strict
    /// priority, then the classes of ETS in turn, each up to its share.
    fn choose(&mut self, ready: u8) -> u8 {
        let of = |class: usize| {
            let priorities = (0..PRIORITIES).filter(|priority| usize::from(self.classes[*priority]) == class);
            priorities.fold(0_u8, |mask, priority| mask | 1 << priority) & ready
        };
        let masks: [u8; PRIORITIES] = std::array::from_fn(of);
        let strict = (0..PRIORITIES).rev().find(|class| masks[*class] != 0 && self.percent[*class].is_none());
        if let Some(class) = strict {
            return masks[class];
        }
        // A class without frames keeps neither credit nor debt.
        for (class, mask) in masks.iter().enumerate() {
            if *mask == 0 {
                self.credit[class] = 0;
            }
        }
        for _ in 0..2 * PRIORITIES {
            if masks[self.turn] != 0 && self.credit[self.turn] > 0 {
                return masks[self.turn];
            }
            self.turn = (self.turn + 1) % PRIORITIES;
            if masks[self.turn] != 0 {
                let percent = i64::from(self.percent[self.turn].unwrap_or(0).max(1));
                self.credit[self.turn] += percent * BYTES_PER_PERCENT;
            }
        }
        // Deep in debt: the class that owes least.
        let least = (0..PRIORITIES).filter(|class| masks[*class] != 0).max_by_key(|class| self.credit[*class]);
        least.map_or(ready, |class| masks[class])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::ether::VlanTag;

    fn frame(pool: &mut Pool, priority: u8) -> FrameBuf {
        let mut frame = pool.take();
        frame.compose(&mut Vec::new(), |out| out.resize(2_000, 0));
        frame.tag = Some(VlanTag { priority, drop_eligible: false, vlan: 7 });
        frame
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn frames_behind_a_silent_peer_expire_and_others_do_not() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
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
    fn a_frame_of_which_the_peer_has_a_part_is_never_dropped() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        (0..3).for_each(|_| egress.push(at(0), pool.take()));
        egress.sent(0, 1, true, &mut pool);
        egress.blocked = true;
        assert_eq!(egress.expire(at(1_000), Span::from_ms(500), &mut pool), 1);
        assert_eq!((egress.len(), egress.choose()), (1, Some(0)));
    }

    #[test]
    fn a_full_queue_accepts_frames_after_half_of_it_is_sent() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        (0..FULL).for_each(|_| egress.push(Instant::ZERO, pool.take()));
        assert!(egress.is_full());
        egress.sent(0, FULL - ROOM, false, &mut pool);
        assert!(!egress.is_full() && !egress.has_room());
        egress.sent(0, 1, false, &mut pool);
        assert!(egress.has_room());
    }

    #[test]
    fn a_paused_priority_waits_until_its_time_is_over_or_the_peer_ends_it() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        let pause = PriorityPause::of(1 << 3 | 1 << 5, true);
        assert!(!egress.pause(at(0), &pause), "nothing is lossless before DCBX has agreed");
        egress.configure(Some(&DcbSettings::fcoe(3)));
        for priority in [3, 0] {
            egress.push(at(0), frame(&mut pool, priority));
        }
        assert!(egress.pause(at(0), &pause));
        assert_eq!(egress.choose(), Some(0), "other priorities go on");
        egress.sent(0, 1, false, &mut pool);
        // 65,535 quanta of 51.2 ns are 3.36 ms.
        assert_eq!((egress.choose(), egress.resumes()), (None, Some(Instant::ZERO + Span::from_ns(3_355_392))));
        egress.resume(at(3));
        assert_eq!(egress.choose(), None);
        egress.resume(at(4));
        assert_eq!(egress.choose(), Some(3));
        egress.pause(at(5), &pause);
        assert_eq!(egress.expire(at(400), Span::from_ms(500), &mut pool), 0, "its hold time is not over");
        egress.pause(at(5), &PriorityPause::of(1 << 3, false));
        assert_eq!((egress.choose(), egress.len()), (Some(3), 1));
    }

    #[test]
    fn a_pause_takes_less_time_on_a_faster_line() {
        let mut egress = Egress::default();
        assert_eq!(egress.time_of(LONGEST_QUANTA), Span::from_ns(3_355_392));
        egress.speed_mbit_per_s = Some(100_000);
        assert_eq!(egress.time_of(LONGEST_QUANTA), Span::from_ns(335_540));
        assert_eq!(egress.repeats_pause_after(), Span::from_ns(167_768));
    }

    #[test]
    fn a_frame_of_mac_control_precedes_all_others() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        egress.push(at(0), frame(&mut pool, 7));
        egress.push_control(at(1), pool.take());
        assert_eq!(egress.choose(), Some(CONTROL));
    }

    #[test]
    fn classes_of_ets_share_the_port_by_their_percent() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        let mut settings = DcbSettings::fcoe(3);
        settings.traffic.bandwidth_percent = [25, 75, 0, 0, 0, 0, 0, 0];
        egress.configure(Some(&settings));
        let mut sent = [0_u32; 8];
        for _ in 0..10_000 {
            for priority in [0, 3] {
                while egress.queue(priority.into()).len() < 32 {
                    egress.push(at(0), frame(&mut pool, priority));
                }
            }
            let queue = egress.choose().expect("frames are queued");
            sent[queue] += 8;
            egress.sent(queue, 8, false, &mut pool);
        }
        let share = f64::from(sent[3]) / f64::from(sent[0] + sent[3]);
        assert!((share - 0.75).abs() < 0.01, "{share}");
        // A class that was alone owes nothing when another one comes.
        egress.clear(&mut pool);
        for _ in 0..10_000 {
            egress.push(at(0), frame(&mut pool, 3));
            let queue = egress.choose().expect("a frame is queued");
            egress.sent(queue, 1, false, &mut pool);
        }
        let mut sent = [0_u32; 8];
        for _ in 0..100 {
            for priority in [0, 3] {
                while egress.queue(priority.into()).len() < 32 {
                    egress.push(at(0), frame(&mut pool, priority));
                }
            }
            let queue = egress.choose().expect("frames are queued");
            sent[queue] += 8;
            egress.sent(queue, 8, false, &mut pool);
        }
        assert!((70..=80).contains(&(100 * sent[3] / (sent[0] + sent[3]))), "{sent:?}");
        // A class alone has the whole port.
        egress.clear(&mut pool);
        egress.push(at(0), frame(&mut pool, 0));
        assert_eq!(egress.choose(), Some(0));
    }

    #[test]
    fn without_an_agreement_frames_leave_in_their_order() {
        let (mut egress, mut pool) = (Egress::default(), Pool::default());
        for (ms, priority) in [(0, 3), (1, 0), (2, 3)] {
            egress.push(at(ms), frame(&mut pool, priority));
        }
        let mut order = Vec::new();
        while let Some(queue) = egress.choose() {
            order.push(queue);
            egress.sent(queue, 1, false, &mut pool);
        }
        assert_eq!(order, [3, 0, 3]);
    }
}
