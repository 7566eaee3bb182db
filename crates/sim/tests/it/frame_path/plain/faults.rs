//! Faults of the plain engine: lost and corrupted frames; slow, withheld and lost R_RDYs; hold
//! time; link resets; links that go down; and switches that restart.

use super::channels::Channel;
use super::switch::Buffered;
use super::{End, Engine, Lane, Place, Seam};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// Fault state of a lane.
#[derive(Default)]
pub struct Fault {
    chances: Option<(Chances, Xoshiro256PlusPlus)>,
    /// Delay of each R_RDY by the receiver, in ps. Delays of successive R_RDYs add up.
    slow: u64,
    /// Departure time of the last delayed R_RDY.
    slow_until: u64,
    /// True if the receiver withholds R_RDYs.
    withholds: bool,
    withheld: usize,
}

/// Fault probabilities of a lane.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chances {
    pub frame_loss: f64,
    pub crc_errors: f64,
    pub r_rdy_loss: f64,
}

/// Frames and R_RDYs of a lane since the last state change of credit recovery.
#[derive(Default)]
pub struct Counted {
    frames: u64,
    r_rdys: u64,
    /// Lost frames and R_RDYs, by channel.
    frames_lost: BTreeMap<u8, u64>,
    r_rdys_lost: BTreeMap<u8, u64>,
}

impl Fault {
    fn hits(&mut self, which: fn(&Chances) -> f64) -> bool {
        let Some((chances, rng)) = &mut self.chances else { return false };
        let probability = which(chances);
        // No random number is drawn if the probability is 0.
        probability > 0.0 && ((rng.next_u64() >> 11) as f64) < probability * 9_007_199_254_740_992.0
    }
}

impl Lane {
    /// Returns the channel of a frame; 0 on a lane without channels.
    fn channel_or_none(&self, channel: u8) -> u8 {
        if self.channels.is_some() { channel } else { 0 }
    }

    /// Counts a lost frame whose credit has not returned.
    pub fn count_lost_frame(&mut self, channel: u8) {
        let channel = self.channel_or_none(channel);
        *self.counted.frames_lost.entry(channel).or_default() += 1;
    }

    /// Start of the longest present wait for a credit.
    fn starves_since(&self) -> Option<u64> {
        if self.over_ethernet {
            return None;
        }
        match &self.channels {
            Some(channels) => channels.list.values().filter_map(|channel| channel.waits_since).min(),
            None => self.credit_wait_since,
        }
    }
}

impl Engine {
    /// Sets the probabilities of a lane. The seed takes effect only the first time.
    pub fn set_chances(&mut self, lane: usize, chances: Chances, seed: u64) {
        let old = self.lanes[lane].fault.chances.take();
        let rng = old.map_or_else(|| Xoshiro256PlusPlus::seed_from_u64(seed), |(_, rng)| rng);
        self.lanes[lane].fault.chances = Some((chances, rng));
    }

    pub fn slow_receiver(&mut self, lane: usize, time: u64) {
        self.lanes[lane].fault.slow = time;
    }

    pub fn withhold_r_rdys(&mut self, lane: usize, withhold: bool) {
        self.lanes[lane].fault.withholds = withhold;
        if !withhold {
            let mut withheld = vec![(0, std::mem::take(&mut self.lanes[lane].fault.withheld))];
            if let Some(channels) = &mut self.lanes[lane].channels {
                let list = channels.list.iter_mut();
                withheld = list.map(|(&number, channel)| (number, std::mem::take(&mut channel.withheld))).collect();
            }
            for (channel, withheld) in withheld {
                (0..withheld).for_each(|_| self.credit_back(lane, self.now, channel));
            }
        }
    }

    pub(super) fn loses(&mut self, lane: usize) -> bool {
        self.lanes[lane].fault.hits(|chances| chances.frame_loss)
    }

    pub(super) fn damages(&mut self, lane: usize) -> bool {
        self.lanes[lane].fault.hits(|chances| chances.crc_errors)
    }

    /// Returns the time at which the R_RDY of a buffer freed at `at` leaves, if it leaves.
    pub(super) fn r_rdy_leaves(&mut self, lane: usize, at: u64, channel: u8) -> Option<u64> {
        let Lane { channels, fault, .. } = &mut self.lanes[lane];
        if fault.withholds {
            fault.withheld += 1;
            channels.iter_mut().for_each(|all| all.list.get_mut(&channel).unwrap().withheld += 1);
            self.count("r_rdy_withheld");
            return None;
        }
        if fault.hits(|chances| chances.r_rdy_loss) {
            self.count("r_rdy_lost");
            let channel = self.lanes[lane].channel_or_none(channel);
            *self.lanes[lane].counted.r_rdys_lost.entry(channel).or_default() += 1;
            self.count_r_rdy(lane, at);
            return None;
        }
        let mut leaves = at;
        if fault.slow > 0 {
            leaves = at.max(fault.slow_until) + fault.slow;
            fault.slow_until = leaves;
            self.count("r_rdy_slow");
        }
        self.count_r_rdy(lane, leaves);
        Some(leaves)
    }

    /// Counts a frame that arrives, or would have arrived, at `arrived`. The receiver returns the
    /// credits of lost frames after every 2^n frames.
    pub(super) fn count_frame(&mut self, number: usize, arrived: u64) {
        let lane = &mut self.lanes[number];
        let all = 1 << lane.state_changes;
        lane.counted.frames += 1;
        if lane.state_changes == 0 || lane.counted.frames < all {
            return;
        }
        lane.counted.frames = 0;
        let at = arrived + lane.time(4);
        for (channel, lost) in std::mem::take(&mut lane.counted.frames_lost) {
            let on_channel = self.lanes[number].channels.is_some();
            for _ in 0..lost % all {
                self.count("frame_credit_recovered");
                if on_channel {
                    self.count("frame_credit_recovered_on_channel");
                }
                self.credit_back(number, at, channel);
            }
        }
    }

    /// Counts an R_RDY that leaves at `leaves`, or was lost. The sender restores the credits of
    /// lost ones after every 2^n.
    fn count_r_rdy(&mut self, number: usize, leaves: u64) {
        let lane = &mut self.lanes[number];
        let all = 1 << lane.state_changes;
        lane.counted.r_rdys += 1;
        if lane.state_changes == 0 || lane.counted.r_rdys < all {
            return;
        }
        lane.counted.r_rdys = 0;
        if lane.counted.r_rdys_lost.is_empty() || lane.fault.hits(|chances| chances.r_rdy_loss) {
            return;
        }
        let at = leaves + 2 * lane.time(4) + lane.propagation;
        for (channel, lost) in std::mem::take(&mut lane.counted.r_rdys_lost) {
            let lane = &mut self.lanes[number];
            let restored = lost % all;
            let (returns, waits) = match &mut lane.channels {
                Some(channels) => {
                    let channel = channels.list.get_mut(&channel).unwrap();
                    (&mut channel.returns, channel.waits_since.is_some())
                }
                None => (&mut lane.returns, lane.credit_wait_since.is_some()),
            };
            returns.extend((0..restored).map(|_| at));
            let first = returns.iter().min().copied();
            if let Some(first) = first.filter(|_| waits) {
                self.schedule_try(first.max(self.now), number);
            }
            let on_channel = self.lanes[number].channels.is_some();
            for _ in 0..restored {
                self.count("r_rdy_credit_recovered");
                if on_channel {
                    self.count("r_rdy_credit_recovered_on_channel");
                }
            }
        }
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.occurred.entry(what).or_default() += 1;
    }

    pub fn lose(&mut self, place: Place, why: &'static str) {
        *self.lost.entry((place, why)).or_default() += 1;
    }

    /// Returns the time of the next hold-time or credit-timeout check of the lane.
    pub(super) fn watchdog_ps(&self, number: usize) -> Option<u64> {
        let lane = &self.lanes[number];
        let oldest = match lane.to {
            End::Switch(switch, port) => self.switches[switch].arrivals(port).min(),
            End::NPort(_) => None,
        };
        let held = oldest.map(|since| since + self.hold_time);
        held.into_iter().chain(lane.starves_since().map(|since| since + self.e_d_tov)).min()
    }

    pub(super) fn run_watchdog(&mut self, number: usize) {
        let (now, hold_time) = (self.now, self.hold_time);
        if let End::Switch(switch, port) = self.lanes[number].to {
            let gone = self.discard(switch, "hold_time", |input, b| input == port && b.since + hold_time <= now);
            if gone > 0 {
                self.held.push((now, switch, port, gone));
            }
        }
        if self.lanes[number].starves_since().is_some_and(|since| since + self.e_d_tov <= now) {
            self.reset_link(number);
        }
    }

    /// Resets a link: the frames in the receiver's buffers are lost. After LR and LRR, the sender
    /// has all credits except those of frames still on the line.
    fn reset_link(&mut self, number: usize) {
        self.resets.push((self.now, number));
        if let End::Switch(switch, port) = self.lanes[number].to {
            let held = self.held_by_receiver(number);
            if held > 0 {
                self.switches[switch].take_back(self.now, port);
            }
            let gone = std::mem::take(&mut self.switches[switch].inputs[port]);
            gone.iter().for_each(|_| self.lose(Place::Receiver(number), "link_reset"));
            if !gone.is_empty() {
                self.try_all(switch);
            }
        }
        let used = self.lanes[number].flying.len() + self.held_by_receiver(number);
        if used > 0 {
            self.count("reset_with_frames_in_flight");
        }
        self.clear_credits(number);
        let lane = &mut self.lanes[number];
        let restart = self.now + 2 * lane.propagation + lane.time(8);
        lane.returns = vec![restart; lane.buffers - used];
        self.restart_channels(number, Some(restart));
        self.schedule_try(restart, number);
    }

    pub fn held_by_receiver(&self, number: usize) -> usize {
        match self.lanes[number].to {
            End::Switch(switch, port) => {
                let switch = &self.switches[switch];
                switch.inputs[port].len() + switch.granted[port].len()
            }
            End::NPort(nport) => self.nports[nport].holds_until.len(),
        }
    }

    /// Removes all credits of a lane's sender and ends its wait for credit.
    fn clear_credits(&mut self, number: usize) {
        let lane = &mut self.lanes[number];
        (lane.credits, lane.credit_wait_since) = (0, None);
        lane.returns.clear();
        lane.counted = Counted::default();
        lane.fault.withheld = 0;
        lane.fault.slow_until = 0;
        for channel in lane.channels.iter_mut().flat_map(|channels| channels.list.values_mut()) {
            *channel = Channel { buffers: channel.buffers, ..Channel::default() };
        }
        self.attempts.retain(|t| t.1 != number);
    }

    /// Takes a link down, one direction after the other. Frames on the line are lost, and so are
    /// frames queued for it, unless another line of its bundle is up.
    pub fn link_down(&mut self, link: usize) {
        for number in [2 * link, 2 * link + 1] {
            self.lanes[number].up = false;
            self.clear_credits(number);
            for _ in std::mem::take(&mut self.lanes[number].flying) {
                self.count("lost_on_line");
                self.lose(Place::Line(number), "link_down");
                if self.lanes[number].over_ethernet {
                    self.seam.push(Seam::Freed { lane: number });
                }
            }
            if self.lanes[number].over_ethernet {
                self.seam.push(Seam::Cut { lane: number });
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
                        let machine = &self.switches[switch];
                        let outputs: Vec<usize> =
                            (0..machine.seats.len()).filter(|&other| machine.port_of(other) == output).collect();
                        self.discard(switch, "link_down", |_, b| outputs.contains(&b.output));
                    }
                }
            }
        }
    }

    /// Brings a link up. Both senders get one credit for each free buffer.
    pub fn link_up(&mut self, link: usize) {
        for number in [2 * link, 2 * link + 1] {
            self.lanes[number].up = true;
            let held = if self.lanes[number].over_ethernet { 0 } else { self.held_by_receiver(number) };
            self.lanes[number].credits = self.lanes[number].buffers - held;
            self.restart_channels(number, None);
        }
        self.try_lane(2 * link);
        self.try_lane(2 * link + 1);
    }

    /// Discards everything in a switch. Its links go down after that.
    pub fn reset_switch(&mut self, switch: usize) {
        let inputs = self.switches[switch].inputs.len();
        for input in 0..inputs {
            let place = self.place(switch, input);
            self.switches[switch].take_back(self.now, input);
            for _ in std::mem::take(&mut self.switches[switch].inputs[input]) {
                self.lose(place, "switch_reset");
                if let Place::Receiver(lane) = place
                    && self.lanes[lane].over_ethernet
                {
                    self.seam.push(Seam::Freed { lane });
                }
            }
        }
        for input in self.switches[switch].remove_crossed(|_, _| true) {
            let place = self.place(switch, input);
            self.lose(place, "switch_reset");
        }
    }

    /// Discards frames from the buffers of a switch and returns their credits; other frames may
    /// leave then.
    fn discard(&mut self, switch: usize, why: &'static str, which: impl Fn(usize, &Buffered) -> bool) -> usize {
        let mut gone: BTreeMap<usize, Vec<Buffered>> = BTreeMap::new();
        let crossed = self.switches[switch].remove_crossed(&which);
        let now = self.now;
        let machine = &mut self.switches[switch];
        for input in 0..machine.inputs.len() {
            if machine.inputs[input].iter().chain(&machine.granted[input]).any(|b| which(input, b)) {
                machine.take_back(now, input);
            }
            let (out, stay) = machine.inputs[input].iter().partition(|b| which(input, b));
            gone.insert(input, out);
            machine.inputs[input] = stay;
        }
        let mut count = crossed.len();
        for input in crossed {
            let place = self.place(switch, input);
            self.lose(place, why);
        }
        for (input, buffered) in gone {
            let place = self.place(switch, input);
            for b in buffered {
                count += 1;
                self.lose(place, why);
                if let Place::Receiver(lane) = place {
                    self.credit_back(lane, self.now.max(b.tail), b.frame.channel);
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
            // A switch without links still has one port.
            None => Place::Processor(switch),
        }
    }
}
