//! Faults of a lane: lost and corrupted frames; delayed, withheld and lost R_RDYs.

use super::channels::Channel;
use super::frame_ref::FrameRef;
use super::injection::{self, Damage, Rule};
use super::messages::Messages;
use super::recovery::{self, Losses};
use super::{FcPlane, Loss, LossSite};
use crate::net::events::Events;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Fault state of a lane.
#[derive(Clone, Debug)]
pub struct LaneFault {
    /// Probability that a frame is lost, 0 to 1.
    pub frame_loss: f64,
    /// Probability that a frame arrives with a bad CRC, 0 to 1.
    pub crc_errors: f64,
    /// Probability that the R_RDY for a frame is lost, 0 to 1.
    pub r_rdy_loss: f64,
    /// Credits lost with their R_RDY or frame; a state change or a link reset restores them.
    pub credits_missing: u32,
    /// Faults that an operator injects into single frames.
    pub rules: Vec<Rule>,
    /// Losses that the next state change repairs.
    pub(super) losses: Losses,
    rng: Xoshiro256PlusPlus,
}

impl LaneFault {
    /// Returns a lane without faults. `rng` selects the affected frames once probabilities are set.
    pub fn new(rng: Xoshiro256PlusPlus) -> LaneFault {
        LaneFault {
            frame_loss: 0.0,
            crc_errors: 0.0,
            r_rdy_loss: 0.0,
            credits_missing: 0,
            rules: Vec::new(),
            losses: Losses::default(),
            rng,
        }
    }

    /// Corrupts or loses a frame. Returns true if the frame is lost.
    fn disturb(&mut self, messages: &Messages, frame: &mut FrameRef) -> bool {
        let is_lost = self.hits(self.frame_loss);
        if !is_lost && self.hits(self.crc_errors) {
            frame.corrupt();
        }
        if is_lost || self.rules.is_empty() {
            return is_lost;
        }
        let damage = injection::judge(&self.rules, messages, frame);
        if damage == Some(Damage::Corrupt) {
            frame.corrupt();
        }
        damage == Some(Damage::Lost)
    }

    /// Returns whether an R_RDY, or another primitive on its way back, is lost.
    pub(super) fn loses_r_rdy(&mut self) -> bool {
        self.hits(self.r_rdy_loss)
    }

    fn hits(&mut self, probability: f64) -> bool {
        // The comparison uses 53 random bits, so that probability 0 never hits and 1 always does.
        probability > 0.0 && ((self.rng.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

impl FcPlane {
    /// Returns the fault state of a lane, and creates it with `rng` if there is none. Marks the
    /// lane as faulty.
    pub fn fault_mut(&mut self, lane: u32, rng: impl FnOnce() -> Xoshiro256PlusPlus) -> &mut LaneFault {
        self.lanes[lane as usize].faulty = true;
        self.lanes[lane as usize].special = true;
        self.faults[lane as usize].get_or_insert_with(|| Box::new(LaneFault::new(rng())))
    }

    /// Delays each R_RDY of the lane's receiver by `delay_ps`; 0 ends the fault.
    pub fn slow_receiver(&mut self, lane: u32, delay_ps: u64) {
        let lane = &mut self.lanes[lane as usize];
        lane.receiver.delay_ps = delay_ps;
        lane.faulty = true;
        lane.special = true;
    }

    /// Starts or stops withholding the R_RDYs of the lane's receiver. When it stops, all withheld
    /// R_RDYs are sent.
    pub(in crate::net) fn withhold_credits(&mut self, events: &mut Events, number: u32, withhold: bool) {
        let lane = &mut self.lanes[number as usize];
        lane.receiver.withholds = withhold;
        lane.faulty = true;
        lane.special = true;
        if !withhold {
            let withheld = lane.receiver.withheld;
            lane.receiver.set_withheld(events.now, 0);
            let mut by_channel = vec![(0, withheld)];
            if let Some(channels) = &mut self.channels[number as usize] {
                let taken = |channel: &mut Channel| (channel.number, std::mem::take(&mut channel.withheld));
                by_channel = channels.list_mut().iter_mut().map(taken).collect();
            }
            for (channel, withheld) in by_channel {
                for _ in 0..withheld {
                    super::channels::return_credit(self, events, number, events.now, channel);
                }
            }
        }
    }

    /// Applies the faults of a lane to a frame whose last bit leaves at `sent_at_ps`. Returns true
    /// if the frame is lost on the line; its receive buffer was then never used.
    pub(super) fn apply_frame_faults(
        &mut self,
        events: &mut Events,
        number: u32,
        frame: &mut FrameRef,
        sent_at_ps: u64,
    ) -> bool {
        let Some(fault) = &mut self.faults[number as usize] else { return false };
        let is_lost = fault.disturb(&self.messages, frame);
        if is_lost {
            let arrival_ps = sent_at_ps + self.lanes[number as usize].propagation_ps;
            self.count_loss(frame, Loss::FrameLoss, LossSite::Line(number));
            recovery::lose_frame(self, events, number, arrival_ps, frame.channel());
        }
        if self.lanes[number as usize].state_changes.n > 0 {
            recovery::after_frame(self, events, number, sent_at_ps);
        }
        is_lost
    }

    /// Returns the time at which the R_RDY for a buffer freed at `at_ps` leaves, or `None` if it is
    /// withheld or lost.
    pub(super) fn apply_r_rdy_faults(
        &mut self,
        events: &mut Events,
        number: u32,
        at_ps: u64,
        channel: u8,
    ) -> Option<u64> {
        // A withheld R_RDY can be lost only when it is finally sent.
        let channel = self.channels[number as usize].as_mut().and_then(|channels| channels.get_mut(channel));
        let lane = &mut self.lanes[number as usize];
        if lane.receiver.withholds {
            let withheld = lane.receiver.withheld + 1;
            debug_assert!(withheld <= lane.bb_credit, "lane {number} withholds {withheld} R_RDYs");
            lane.receiver.set_withheld(events.now, withheld);
            channel.into_iter().for_each(|channel| channel.withheld += 1);
            return None;
        }
        if let Some(fault) = &mut self.faults[number as usize]
            && fault.loses_r_rdy()
        {
            fault.credits_missing += 1;
            lane.credits_lost += 1;
            let channel = channel.map_or(0, |channel| {
                channel.missing += 1;
                channel.number
            });
            fault.losses.r_rdy(channel);
            recovery::after_r_rdy(self, events, number, at_ps, false);
            return None;
        }
        let mut ready = at_ps;
        if lane.receiver.delay_ps > 0 {
            ready = at_ps.max(lane.receiver.last_ps) + lane.receiver.delay_ps;
            lane.receiver.last_ps = ready;
            lane.late_ps += ready - at_ps;
        }
        if lane.watched {
            self.recorder.r_rdy(number, lane, ready);
            self.recorder.stamp(self.parts.turn(events.now));
        }
        if lane.state_changes.n > 0 {
            recovery::after_r_rdy(self, events, number, ready, true);
        }
        Some(ready)
    }
}
