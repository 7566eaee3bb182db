//! What goes wrong in the plain engine: lost and damaged frames, slow, kept and lost R_RDYs, hold time, resets of links,
//! links that go down and switches that restart.

use super::switch::Buffered;
use super::{End, Engine, Place};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// What is wrong with a lane.
#[derive(Default)]
pub struct Trouble {
    chances: Option<(Chances, Xoshiro256PlusPlus)>,
    /// The receiver takes so long for each R_RDY, one after the other.
    slow: u64,
    /// When the last of those left.
    slow_until: u64,
    /// The receiver keeps R_RDYs.
    keeps: bool,
    kept: usize,
}

/// Probabilities.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chances {
    pub frame_loss: f64,
    pub crc_errors: f64,
    pub r_rdy_loss: f64,
}

impl Trouble {
    fn hits(&mut self, which: fn(&Chances) -> f64) -> bool {
        let Some((chances, rng)) = &mut self.chances else { return false };
        let probability = which(chances);
        // No number is drawn for what cannot happen.
        probability > 0.0 && ((rng.next_u64() >> 11) as f64) < probability * 9_007_199_254_740_992.0
    }
}

impl Engine {
    /// From now on these are the chances on a lane; the seed counts once.
    pub fn set_chances(&mut self, lane: usize, chances: Chances, seed: u64) {
        let old = self.lanes[lane].trouble.chances.take();
        let rng = old.map_or_else(|| Xoshiro256PlusPlus::seed_from_u64(seed), |(_, rng)| rng);
        self.lanes[lane].trouble.chances = Some((chances, rng));
    }

    pub fn slow_receiver(&mut self, lane: usize, time: u64) {
        self.lanes[lane].trouble.slow = time;
    }

    pub fn keep_r_rdys(&mut self, lane: usize, keep: bool) {
        self.lanes[lane].trouble.keeps = keep;
        if !keep {
            for _ in 0..std::mem::take(&mut self.lanes[lane].trouble.kept) {
                self.credit_back(lane, self.now);
            }
        }
    }

    pub(super) fn loses(&mut self, lane: usize) -> bool {
        self.lanes[lane].trouble.hits(|chances| chances.frame_loss)
    }

    pub(super) fn damages(&mut self, lane: usize) -> bool {
        self.lanes[lane].trouble.hits(|chances| chances.crc_errors)
    }

    /// When the R_RDY of a buffer that is free at `at` leaves, if it does.
    pub(super) fn r_rdy_leaves(&mut self, lane: usize, at: u64) -> Option<u64> {
        let trouble = &mut self.lanes[lane].trouble;
        if trouble.keeps {
            trouble.kept += 1;
            self.count("r_rdy_kept");
            return None;
        }
        if trouble.hits(|chances| chances.r_rdy_loss) {
            self.count("r_rdy_lost");
            return None;
        }
        if trouble.slow == 0 {
            return Some(at);
        }
        let leaves = at.max(trouble.slow_until) + trouble.slow;
        trouble.slow_until = leaves;
        self.count("r_rdy_slow");
        Some(leaves)
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    pub(super) fn lose(&mut self, place: Place, why: &'static str) {
        *self.lost.entry((place, why)).or_default() += 1;
    }

    /// When the lane has to be looked after.
    pub(super) fn look_at(&self, number: usize) -> Option<u64> {
        let lane = &self.lanes[number];
        let oldest = match lane.to {
            End::Switch(switch, port) => self.switches[switch].inputs[port].iter().map(|b| b.since).min(),
            End::NPort(_) => None,
        };
        let held = oldest.map(|since| since + self.hold_time);
        held.into_iter().chain(lane.starving.map(|since| since + self.e_d_tov)).min()
    }

    pub(super) fn look_after(&mut self, number: usize) {
        let (now, hold_time) = (self.now, self.hold_time);
        if let End::Switch(switch, port) = self.lanes[number].to {
            let gone = self.discard(switch, "hold_time", |input, b| input == port && b.since + hold_time <= now);
            if gone > 0 {
                self.held.push((now, switch, port, gone));
            }
        }
        if self.lanes[number].starving.is_some_and(|since| since + self.e_d_tov <= now) {
            self.reset_link(number);
        }
    }

    /// What the receiver holds is gone, and when LR is there and LRR is back the sender has all credits but those of
    /// frames that are still on the line.
    fn reset_link(&mut self, number: usize) {
        self.resets.push((self.now, number));
        if let End::Switch(switch, port) = self.lanes[number].to {
            let gone = std::mem::take(&mut self.switches[switch].inputs[port]);
            gone.iter().for_each(|_| self.lose(Place::Receiver(number), "link_reset"));
            if !gone.is_empty() {
                self.try_all(switch);
            }
        }
        let used = self.lanes[number].flying.len() + self.held_by_receiver(number);
        if used > 0 {
            self.count("reset_with_frames_under_way");
        }
        self.forget_credits(number);
        let lane = &mut self.lanes[number];
        let restart = self.now + 2 * lane.propagation + lane.time(8);
        lane.returns = vec![restart; lane.buffers - used];
        self.try_later(restart, number);
    }

    fn held_by_receiver(&self, number: usize) -> usize {
        match self.lanes[number].to {
            End::Switch(switch, port) => self.switches[switch].inputs[port].len(),
            End::NPort(nport) => self.nports[nport].holds_until.len(),
        }
    }

    /// The sender of a lane has no credits, expects none and waits for none.
    fn forget_credits(&mut self, number: usize) {
        let lane = &mut self.lanes[number];
        (lane.credits, lane.starving) = (0, None);
        lane.returns.clear();
        lane.trouble.kept = 0;
        lane.trouble.slow_until = 0;
        self.tries.retain(|t| t.1 != number);
    }

    /// One direction after the other: what is on the line is lost, and what waits for it unless another line of its bundle
    /// is up.
    pub fn link_down(&mut self, link: usize) {
        for number in [2 * link, 2 * link + 1] {
            self.lanes[number].up = false;
            self.forget_credits(number);
            for _ in std::mem::take(&mut self.lanes[number].flying) {
                self.count("lost_on_line");
                self.lose(Place::Line(number), "link_down");
            }
            match self.lanes[number].from {
                End::NPort(nport) => self.nports[nport].waiting.clear(),
                End::Switch(switch, port) => {
                    let output = self.output_of(switch, port);
                    let members = self.switches[switch].together[output].clone();
                    let lanes = members.into_iter().flat_map(|member| self.lane_from(End::Switch(switch, member)));
                    if lanes.into_iter().any(|lane| self.lanes[lane].up) {
                        self.try_output(switch, output);
                    } else {
                        self.discard(switch, "link_down", |_, b| b.output == output);
                    }
                }
            }
        }
    }

    /// Both senders have a credit for each buffer that is free.
    pub fn link_up(&mut self, link: usize) {
        for number in [2 * link, 2 * link + 1] {
            self.lanes[number].up = true;
            self.lanes[number].credits = self.lanes[number].buffers - self.held_by_receiver(number);
        }
        self.try_lane(2 * link);
        self.try_lane(2 * link + 1);
    }

    /// Everything in a switch is lost; its links go down after that.
    pub fn reset_switch(&mut self, switch: usize) {
        let inputs = self.switches[switch].inputs.len();
        for input in 0..inputs {
            let place = self.place(switch, input);
            for _ in std::mem::take(&mut self.switches[switch].inputs[input]) {
                self.lose(place, "switch_reset");
            }
        }
    }

    /// Discards frames out of the buffers of a switch; their credits go back, and then others may leave.
    fn discard(&mut self, switch: usize, why: &'static str, which: impl Fn(usize, &Buffered) -> bool) -> usize {
        let mut gone: BTreeMap<usize, Vec<Buffered>> = BTreeMap::new();
        for (input, buffer) in self.switches[switch].inputs.iter_mut().enumerate() {
            let (out, stay) = buffer.iter().partition(|b| which(input, b));
            gone.insert(input, out);
            *buffer = stay;
        }
        let mut count = 0;
        for (input, buffered) in gone {
            let place = self.place(switch, input);
            for b in buffered {
                count += 1;
                self.lose(place, why);
                if let Place::Receiver(lane) = place {
                    self.credit_back(lane, self.now.max(b.tail));
                }
            }
        }
        if count > 0 {
            self.try_all(switch);
        }
        count
    }

    fn place(&self, switch: usize, input: usize) -> Place {
        if input == self.switches[switch].processor() {
            return Place::Processor(switch);
        }
        match self.lanes.iter().position(|lane| lane.to == End::Switch(switch, input)) {
            Some(lane) => Place::Receiver(lane),
            // A switch without any link has one port all the same.
            None => Place::Processor(switch),
        }
    }
}
