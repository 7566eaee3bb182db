//! The inside of a switch: input buffers, output queues and the arbiter between them.

use super::NO_LANE;
use super::egress::{Egress, NO_TRUNK};
use super::flight::InFlight;
use super::frame_ref::FrameRef;
use super::input::{Input, Slot};
use super::lane::Sent;
use super::mask::Masks;
use sanloom_fc::config::{Arbitration, Queueing};

/// A crossbar with input buffers. Input and output numbers are port numbers. The last input belongs
/// to the switch's own processor; its buffer has no limit.
///
/// With [`Queueing::Any`] a frame goes from its input buffer to the line of the output. With the
/// other orders it crosses into a small buffer in front of the line.
///
/// A frame is *eligible* if the queueing order lets it leave: with [`Queueing::Fifo`], only the
/// first frame of an input through which no frame crosses. Each output has a bit mask of the inputs
/// that hold an eligible frame for it. The arbiter reads only this mask.
#[derive(Clone, Debug)]
pub struct Crossbar {
    pub(super) queueing: Queueing,
    arbitration: Arbitration,
    pub(super) inputs: Vec<Input>,
    pub(super) out: Vec<Output>,
    /// Inputs with an eligible frame for each output, if not all inputs fit into one word.
    masks: Option<Masks>,
    /// For each input, the inputs of the other links of its trunk. Empty if the switch has no
    /// trunks.
    trunks: Vec<Vec<u16>>,
    /// Buffers in front of the lines of each output; empty with [`Queueing::Any`].
    pub(super) egress: Vec<Egress>,
    pub(super) pace: Pace,
    /// True if a line may be faster than frames cross to it.
    pub(super) has_fast_lines: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// Inputs with an eligible frame for this output, if all inputs fit into one word.
    mask: u64,
    /// Number of frames in the switch for this output.
    pub(super) frames: u32,
    /// Lane served by this output, if it serves exactly one.
    lane: u32,
    /// Most recently served input.
    pub(super) last: u16,
}

/// Rates at which frames cross a switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Time of a byte from an input to an output, in units of 2^-32 ps.
    pub byte: u64,
    /// Time of a byte at the total rate of the switch, in units of 2^-32 ps; 0 without a limit.
    pub byte_in_total: u64,
    /// Time until which the total rate is used up, in ps.
    pub(super) total_free_ps: u64,
}

/// Number of buckets of [`WaitCount`].
pub const WAIT_BUCKETS: usize = 32;

/// Histogram of waiting times. A waiting time runs from the moment a frame becomes eligible until
/// its first bit leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitCount {
    /// Sum of all waiting times, in ps.
    pub sum_ps: u64,
    /// Longest waiting time, in ps.
    pub max_ps: u64,
    /// Frames by waiting time: bucket 0 is below 2^10 ps, bucket n below 2^(10 + n) ps, the last
    /// bucket holds the rest.
    pub buckets: [u32; WAIT_BUCKETS],
}

impl WaitCount {
    /// Returns the bucket index of a waiting time.
    #[inline]
    pub(super) fn bucket(wait_ps: u64) -> usize {
        let bucket = 64 - (wait_ps >> 10).leading_zeros();
        (bucket as usize).min(WAIT_BUCKETS - 1)
    }

    /// Returns the number of frames that left.
    pub fn frames(&self) -> u64 {
        self.buckets.iter().copied().map(u64::from).sum()
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &WaitCount) {
        self.sum_ps += other.sum_ps;
        self.max_ps = self.max_ps.max(other.max_ps);
        for (count, added) in self.buckets.iter_mut().zip(other.buckets) {
            *count += added;
        }
    }

    /// Returns an upper bound for the `quantile` of the waiting times, in ps; 0 if no frame left.
    /// The bound is the end of the bucket, at most the longest waiting time, so it is right within
    /// a factor of two.
    pub fn quantile_ps(&self, quantile: f64) -> u64 {
        let rank = (quantile * self.frames() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return (1 << (10 + bucket)).min(self.max_ps);
            }
        }
        self.max_ps
    }
}

/// Counters of one input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InputCount {
    /// Bytes of the frames that left, from SOF to EOF.
    pub bytes: u64,
    /// Highest number of frames in the buffer.
    pub max_frames: u32,
    /// Number and waiting times of the frames that left.
    pub wait: WaitCount,
}

/// A frame in an input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    /// The frame with the time from which it is eligible and the arrival time of its last bit.
    pub on_line: InFlight,
    pub input: u16,
    pub output: u16,
    /// Lane on which the frame arrived, or [`super::NO_LANE`] if the switch generated it.
    pub lane: u32,
    /// True if the frame has left the input buffer and waits in front of its line.
    pub crossed: bool,
}

/// A frame that leaves a switch.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub slot: Slot,
    pub sent: Sent,
    /// True if other frames are queued for the output.
    pub more_at_output: bool,
}

impl Crossbar {
    /// Returns an empty crossbar for a switch with `ports` ports.
    pub fn new(ports: u16, queueing: Queueing, arbitration: Arbitration) -> Crossbar {
        let inputs = usize::from(ports) + 1;
        let outputs = usize::from(ports);
        Crossbar {
            queueing,
            arbitration,
            inputs: vec![Input::default(); inputs],
            out: vec![Output { mask: 0, frames: 0, lane: NO_LANE, last: inputs as u16 - 1 }; outputs],
            masks: (inputs > 64).then(|| Masks::new(outputs, inputs)),
            trunks: Vec::new(),
            egress: Vec::new(),
            pace: Pace::default(),
            has_fast_lines: false,
        }
    }

    /// Sets the rates of the crossbar and the number of frames that may wait in front of each line.
    /// `lines` is the number of lines of each output.
    pub fn with_egress(mut self, frames: u16, lines: impl Iterator<Item = usize>) -> Crossbar {
        if self.queueing != Queueing::Any {
            self.egress = lines.map(|lines| Egress::new(frames, lines)).collect();
        }
        self
    }

    /// Sets the rates at which frames cross.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Enables in-order delivery over trunks: frames that arrived on the links of one trunk leave
    /// through an output in arrival order, even if different inputs hold them. Each entry of
    /// `groups` lists the ports of one trunk.
    pub fn with_trunks(mut self, groups: &[Vec<u16>]) -> Crossbar {
        if groups.iter().any(|group| group.len() > 1) {
            self.trunks = vec![Vec::new(); self.inputs.len()];
            for group in groups {
                for &port in group {
                    self.trunks[usize::from(port)] = group.iter().copied().filter(|&other| other != port).collect();
                }
            }
        }
        self
    }

    /// Adds outputs for virtual channels, up to `outputs` in total.
    pub fn with_outputs(mut self, outputs: usize) -> Crossbar {
        let last = self.processor();
        self.out.resize(outputs, Output { mask: 0, frames: 0, lane: NO_LANE, last });
        let inputs = self.inputs.len();
        self.masks = (inputs > 64).then(|| Masks::new(outputs, inputs));
        self
    }

    /// Returns whether a frame for an output is in the switch that meets the condition.
    pub(super) fn holds(&self, output: u16, which: impl Fn(&FrameRef) -> bool) -> bool {
        if !self.waits(output) {
            return false;
        }
        let held = self.inputs.iter().flat_map(Input::held).filter(|&(other, _)| other == output);
        held.map(|(_, slot)| slot).chain(self.egress[usize::from(output)].crossed()).any(|slot| which(&slot.frame))
    }

    /// Dedicates an output to a single lane.
    pub fn serve(&mut self, output: u16, lane: u32) {
        self.out[usize::from(output)].lane = lane;
    }

    /// Returns the lane that the output serves, if it serves exactly one.
    #[inline]
    pub fn served(&self, output: u16) -> Option<u32> {
        Some(self.out[usize::from(output)].lane).filter(|&lane| lane != NO_LANE)
    }

    /// Returns the input number of the switch's own processor.
    pub fn processor(&self) -> u16 {
        self.inputs.len() as u16 - 1
    }

    /// Returns whether frames cross into a buffer in front of their line.
    #[inline]
    pub fn buffers_egress(&self) -> bool {
        self.queueing != Queueing::Any
    }

    /// Adds a frame to the buffer of its input.
    #[inline(always)]
    pub fn enqueue(&mut self, now: u64, buffered: Buffered) {
        let Buffered { on_line, input, output, lane, .. } = buffered;
        let is_fifo_input = self.queueing == Queueing::Fifo && input != self.processor();
        let buffer = &mut self.inputs[usize::from(input)];
        let is_behind = is_fifo_input && (buffer.frames() > 0 || buffer.busy_until_ps > now);
        buffer.push(output, Slot::new(on_line, lane));
        self.out[usize::from(output)].frames += 1;
        if !is_behind {
            self.set(output, input);
        }
    }

    /// Returns whether a frame is queued for the output, eligible or not.
    #[inline]
    pub fn waits(&self, output: u16) -> bool {
        self.out[usize::from(output)].frames > 0
    }

    /// Returns the number of frames for the output in the switch, eligible or not.
    #[inline]
    pub fn waiting(&self, output: u16) -> u32 {
        self.out[usize::from(output)].frames
    }

    /// Returns the time until which a frame crosses from the input.
    #[inline]
    pub fn input_busy_until(&self, input: u16) -> u64 {
        self.inputs[usize::from(input)].busy_until_ps
    }

    /// Returns the input whose turn it is at `output` and the input whose frame is the next one, if
    /// one is eligible. The two differ only within a trunk.
    #[inline(always)]
    pub(super) fn choose(&self, output: u16) -> Option<(u16, u16)> {
        if !self.trunks.is_empty() {
            return self.choose_in_order(output);
        }
        let input = match self.arbitration {
            Arbitration::RoundRobin => self.next_eligible(output, usize::from(self.out[usize::from(output)].last) + 1),
            Arbitration::OldestFirst => self.eligible(output).min_by_key(|&i| (self.since(i, output), i)),
        };
        input.map(|i| (i as u16, i as u16))
    }

    /// Variant of `choose` for a switch with trunks. The turn of an input goes to the input of its
    /// trunk with the oldest frame for the output, so that the frames of a trunk keep their order.
    fn choose_in_order(&self, output: u16) -> Option<(u16, u16)> {
        let with_first = |turn: usize| (turn as u16, self.first_of_trunk(turn, output));
        let is_ready = |&(_, first): &(u16, u16)| self.is_set(output, first);
        match self.arbitration {
            Arbitration::RoundRobin => {
                let last = usize::from(self.out[usize::from(output)].last);
                let first = self.next_eligible(output, last + 1)?;
                let mut turn = first;
                loop {
                    let chosen = with_first(turn);
                    if is_ready(&chosen) {
                        return Some(chosen);
                    }
                    turn = self.next_eligible(output, turn + 1).filter(|&next| next != first)?;
                }
            }
            Arbitration::OldestFirst => {
                let ready = self.eligible(output).map(with_first).filter(is_ready);
                ready.min_by_key(|&(turn, _)| (self.since(usize::from(turn), output), turn))
            }
        }
    }

    /// Returns the input of the trunk of `input` that holds the oldest frame for `output`.
    fn first_of_trunk(&self, input: usize, output: u16) -> u16 {
        let others = self.trunks[input].iter().copied();
        let first = others.chain([input as u16]).min_by_key(|&i| (self.since(usize::from(i), output), i));
        first.unwrap_or(input as u16)
    }

    /// Removes the next eligible frame for `output` from its buffer. `send` computes its departure
    /// times.
    #[inline]
    pub fn depart(&mut self, output: u16, send: impl FnOnce(&Slot) -> Sent) -> Option<Departure> {
        let (turn, input) = self.choose(output)?;
        let buffer = &mut self.inputs[usize::from(input)];
        let (place, another) = buffer.take(output)?;
        let slot = *buffer.taken(place);
        let sent = send(&slot);
        buffer.count(&slot, sent.start_ps, sent.end_ps);
        if !another {
            self.clear(output, input);
        }
        let out = &mut self.out[usize::from(output)];
        out.frames -= 1;
        out.last = turn;
        Some(Departure { slot, sent, more_at_output: out.frames > 0 })
    }

    /// Removes the frames for which `which` returns true and passes each to `gone`: those that have
    /// crossed, then the others, ordered by input and then by arrival.
    pub fn discard(&mut self, now: u64, mut which: impl FnMut(&Buffered) -> bool, mut gone: impl FnMut(Buffered)) {
        for output in 0..self.egress.len() as u16 {
            let lost = self.egress[usize::from(output)].discard(output, &mut which);
            self.out[usize::from(output)].frames -= lost.len() as u32;
            lost.into_iter().for_each(&mut gone);
        }
        for input in 0..self.inputs.len() as u16 {
            let held: Vec<Buffered> = self.frames_of(input);
            if !held.iter().any(&mut which) {
                continue;
            }
            self.empty_input(input);
            for buffered in held {
                if which(&buffered) {
                    gone(buffered);
                } else {
                    self.enqueue(now, buffered);
                }
            }
        }
    }

    /// Returns the frames in the buffer of an input, oldest first.
    pub fn frames_of(&self, input: u16) -> Vec<Buffered> {
        let slots = self.inputs[usize::from(input)].held();
        let buffered = |(output, slot): (u16, &Slot)| slot.buffered(input, output, false);
        slots.map(buffered).collect()
    }

    /// Returns the frames in the buffer of an input that its queueing order lets leave next: all,
    /// or those with a place in front of their line and the head of the queue.
    pub fn next_frames_of(&self, input: u16) -> Vec<Buffered> {
        let buffer = &self.inputs[usize::from(input)];
        let all = buffer.held().count();
        let next = if self.queueing == Queueing::Fifo { all - buffer.iter().count() + 1 } else { all };
        buffer.held().take(next).map(|(output, slot)| slot.buffered(input, output, false)).collect()
    }

    /// Returns the number of frames in the buffer of an input.
    pub fn occupancy(&self, input: u16) -> u32 {
        self.inputs[usize::from(input)].frames()
    }

    /// Returns the arrival time of the oldest frame that came through an input and is still in the
    /// switch.
    pub fn oldest(&self, input: u16) -> Option<u64> {
        let held = self.inputs[usize::from(input)].held().map(|(_, slot)| slot.at_ps);
        held.chain(self.egress.iter().flat_map(|egress| egress.arrivals(input))).min()
    }

    pub fn input_count(&self, input: u16) -> InputCount {
        self.inputs[usize::from(input)].counted()
    }

    /// Returns the integral of the occupied buffers of an input over time, in buffers × ps, since
    /// the counters were reset.
    pub fn held_area_ps(&self, input: u16, now: u64) -> u64 {
        self.inputs[usize::from(input)].held_area_ps(now)
    }

    /// Passes each frame in the switch to `change`, in any order.
    pub(super) fn change_frames(&mut self, mut change: impl FnMut(&mut FrameRef)) {
        self.inputs.iter_mut().for_each(|input| input.change_frames(&mut change));
        self.egress.iter_mut().for_each(|egress| egress.change_frames(&mut change));
    }

    /// Resets the counters of all inputs.
    pub fn restart_counts(&mut self, now: u64) {
        self.inputs.iter_mut().for_each(|input| input.restart_counts(now));
    }

    /// Frees memory that no frame uses now.
    pub fn trim(&mut self) {
        self.inputs.iter_mut().for_each(Input::trim);
    }

    /// Returns the number of frames in all buffers.
    pub fn frames(&self) -> u64 {
        self.out.iter().map(|out| u64::from(out.frames)).sum()
    }

    fn empty_input(&mut self, input: u16) {
        for (output, _) in self.inputs[usize::from(input)].take_all() {
            self.out[usize::from(output)].frames -= 1;
            self.clear(output, input);
            if let Some(egress) = self.egress.get_mut(usize::from(output)) {
                egress.cancel(input);
            }
        }
    }

    /// Returns the number of the trunk through which an input receives, or [`NO_TRUNK`].
    pub(super) fn trunk_of(&self, input: u16) -> u16 {
        let others = self.trunks.get(usize::from(input)).into_iter().flatten();
        others.copied().min().map_or(NO_TRUNK, |other| other.min(input))
    }

    /// Returns the time since which the oldest frame of `input` for `output` has been eligible, or
    /// `u64::MAX` if there is none.
    fn since(&self, input: usize, output: u16) -> u64 {
        let mut slots = self.inputs[input].iter();
        slots.find(|&(other, _)| other == output).map_or(u64::MAX, |(_, slot)| slot.at_ps)
    }

    /// Returns the first input at or after `from` with an eligible frame for `output`, wrapping
    /// around to input 0.
    #[inline(always)]
    fn next_eligible(&self, output: u16, from: usize) -> Option<usize> {
        if let Some(masks) = &self.masks {
            return masks.next(output, from);
        }
        let mask = self.out[usize::from(output)].mask;
        let high = if from < 64 { mask & (!0 << from) } else { 0 };
        let mask = if high != 0 { high } else { mask };
        (mask != 0).then(|| mask.trailing_zeros() as usize)
    }

    /// Iterates over the inputs with an eligible frame for `output`, from the lowest one.
    fn eligible(&self, output: u16) -> impl Iterator<Item = usize> + '_ {
        let mut mask = if self.masks.is_some() { 0 } else { self.out[usize::from(output)].mask };
        let of_word = std::iter::from_fn(move || {
            let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
            mask &= mask.wrapping_sub(1);
            bit
        });
        of_word.chain(self.masks.iter().flat_map(move |masks| masks.iter(output)))
    }

    #[inline(always)]
    pub(super) fn set(&mut self, output: u16, input: u16) {
        match &mut self.masks {
            None => self.out[usize::from(output)].mask |= 1 << (input % 64),
            Some(masks) => masks.set(output, input),
        }
    }

    fn is_set(&self, output: u16, input: u16) -> bool {
        match &self.masks {
            None => self.out[usize::from(output)].mask & 1 << (input % 64) != 0,
            Some(masks) => masks.is_set(output, input.into()),
        }
    }

    #[inline(always)]
    pub(super) fn clear(&mut self, output: u16, input: u16) {
        match &mut self.masks {
            None => self.out[usize::from(output)].mask &= !(1 << (input % 64)),
            Some(masks) => masks.clear(output, input),
        }
    }
}
