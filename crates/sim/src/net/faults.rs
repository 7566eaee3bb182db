//! Faults of a lane: frames lost and damaged, R_RDYs delayed, withheld and lost.

use super::frame_ref::FrameRef;
use super::{Loss, Net, Place};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What is wrong with a lane.
#[derive(Clone, Debug)]
pub struct LaneFault {
    /// Probability that a frame disappears, 0 to 1.
    pub frame_loss: f64,
    /// Probability that a frame's CRC is broken, 0 to 1.
    pub crc_errors: f64,
    /// Probability that the R_RDY for a frame gets lost, 0 to 1.
    pub r_rdy_loss: f64,
    /// Credits that are gone until the link is reset.
    pub credits_missing: u32,
    rng: Xoshiro256PlusPlus,
}

impl LaneFault {
    /// No fault yet; `rng` decides which frames are hit.
    pub fn new(rng: Xoshiro256PlusPlus) -> LaneFault {
        LaneFault { frame_loss: 0.0, crc_errors: 0.0, r_rdy_loss: 0.0, credits_missing: 0, rng }
    }

    fn hits(&mut self, probability: f64) -> bool {
        // 53 random bits against the probability, so that 0 never and 1 always hits.
        probability > 0.0 && ((self.rng.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

impl Net {
    /// The fault state of a lane, made with `rng` when it has none yet. The lane counts as faulty from then on.
    pub fn fault_mut(&mut self, lane: u32, rng: impl FnOnce() -> Xoshiro256PlusPlus) -> &mut LaneFault {
        self.lanes[lane as usize].faulty = true;
        self.lanes[lane as usize].special = true;
        self.faults[lane as usize].get_or_insert_with(|| Box::new(LaneFault::new(rng())))
    }

    /// The receiver of a lane becomes slow by `delay_ps` for each frame; 0: it is fast again.
    pub fn slow_receiver(&mut self, lane: u32, delay_ps: u64) {
        let lane = &mut self.lanes[lane as usize];
        lane.receiver.delay_ps = delay_ps;
        lane.faulty = true;
        lane.special = true;
    }

    /// The receiver of a lane keeps its R_RDYs back, or gives those back that it has kept.
    pub fn withhold_credits(&mut self, number: u32, withhold: bool) {
        let lane = &mut self.lanes[number as usize];
        lane.receiver.withholds = withhold;
        lane.faulty = true;
        lane.special = true;
        if !withhold {
            let kept = lane.receiver.withheld;
            lane.receiver.keep(self.now, 0);
            for _ in 0..kept {
                self.return_credit(number, self.now);
            }
        }
    }

    /// Damages or loses a frame that has been put on the line and whose last bit leaves at `sent_at_ps`. True: it is gone; its receive buffer was never used.
    pub(super) fn disturb(&mut self, number: u32, frame: &mut FrameRef, sent_at_ps: u64) -> bool {
        let Some(fault) = &mut self.faults[number as usize] else { return false };
        let (loss, damage) = (fault.frame_loss, fault.crc_errors);
        if fault.hits(loss) {
            let frame = *frame;
            let arrival_ps = sent_at_ps + self.lanes[number as usize].propagation_ps;
            self.lose(&frame, Loss::FrameLoss, Place::Line(number));
            self.return_credit(number, arrival_ps);
            return true;
        }
        if fault.hits(damage) {
            frame.corrupt();
        }
        false
    }

    /// When the R_RDY for a buffer that is free at `at_ps` leaves, `None` if it does not.
    pub(super) fn delay_credit(&mut self, number: u32, at_ps: u64) -> Option<u64> {
        // What is kept back can get lost when it leaves, and not before.
        let lane = &mut self.lanes[number as usize];
        if lane.receiver.withholds {
            let withheld = lane.receiver.withheld + 1;
            lane.receiver.keep(self.now, withheld);
            return None;
        }
        if let Some(fault) = &mut self.faults[number as usize] {
            let loss = fault.r_rdy_loss;
            if fault.hits(loss) {
                fault.credits_missing += 1;
                lane.credits_lost += 1;
                return None;
            }
        }
        let mut ready = at_ps;
        if lane.receiver.delay_ps > 0 {
            ready = at_ps.max(lane.receiver.last_ps) + lane.receiver.delay_ps;
            lane.receiver.last_ps = ready;
            lane.late_ps += ready - at_ps;
        }
        if lane.watched {
            self.observe_r_rdy(number, ready);
        }
        Some(ready)
    }
}
