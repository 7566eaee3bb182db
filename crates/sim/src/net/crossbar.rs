//! The inside of a switch: input buffers, output queues and the arbiter between them.

use super::NO_LANE;
use super::flight::InFlight;
use super::input::{Input, Slot};
use super::lane::Sent;
use sanloom_fc::config::{Arbitration, Queueing};

/// A crossbar with input buffers. Input and output numbers are port numbers. The last input belongs
/// to the switch's own processor; its buffer has no limit.
///
/// A frame is *eligible* if the queueing rule lets it leave: with [`Queueing::Fifo`], only the
/// first frame of an input that has finished sending the previous one. Each output has a bit mask
/// of the inputs that hold an eligible frame for it. The arbiter reads only this mask.
#[derive(Clone, Debug)]
pub struct Crossbar {
    queueing: Queueing,
    arbitration: Arbitration,
    words: usize,
    inputs: Vec<Input>,
    out: Vec<Output>,
    /// `words` words for each output; empty if one word is enough.
    masks: Vec<u64>,
    /// For each input, the inputs of the other links of its trunk. Empty if the switch has no
    /// trunks.
    trunks: Vec<Vec<u16>>,
}

#[derive(Clone, Copy, Debug)]
struct Output {
    /// Inputs with an eligible frame for this output, if all inputs fit into one word.
    mask: u64,
    /// Number of queued frames for this output, eligible or not.
    frames: u32,
    /// Lane served by this output, if it serves exactly one.
    lane: u32,
    /// Most recently served input.
    last: u16,
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
}

/// A frame that leaves a switch.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub slot: Slot,
    pub sent: Sent,
    /// True if the input holds more frames, which must wait until this one has left.
    pub more_at_input: bool,
    /// True if other frames are queued for the output.
    pub more_at_output: bool,
}

impl Crossbar {
    /// Returns an empty crossbar for a switch with `ports` ports.
    pub fn new(ports: u16, queueing: Queueing, arbitration: Arbitration) -> Crossbar {
        let inputs = usize::from(ports) + 1;
        let outputs = usize::from(ports);
        let words = inputs.div_ceil(64);
        Crossbar {
            queueing,
            arbitration,
            words,
            inputs: vec![Input::default(); inputs],
            out: vec![Output { mask: 0, frames: 0, lane: NO_LANE, last: inputs as u16 - 1 }; outputs],
            masks: vec![0; if words > 1 { outputs * words } else { 0 }],
            trunks: Vec::new(),
        }
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

    /// Returns whether an input sends only one frame at a time. If it does, the end of one frame
    /// decides when the next one becomes eligible.
    #[inline]
    pub fn serial_inputs(&self) -> bool {
        self.queueing != Queueing::Any
    }

    /// Adds a frame to the buffer of its input.
    #[inline(always)]
    pub fn enqueue(&mut self, now: u64, buffered: Buffered) {
        let Buffered { on_line, input, output, lane } = buffered;
        let is_fifo_input = self.queueing == Queueing::Fifo && input != self.processor();
        let buffer = &mut self.inputs[usize::from(input)];
        let is_behind = is_fifo_input && (buffer.frames() > 0 || buffer.busy_until_ps > now);
        buffer.push(output, Slot::new(on_line, lane));
        self.out[usize::from(output)].frames += 1;
        if !is_behind {
            self.set(output, input);
        }
    }

    /// Returns the time until which the input is sending a frame. Frames that arrive before that
    /// time wait for it.
    #[inline]
    pub fn input_busy_until(&self, input: u16) -> u64 {
        self.inputs[usize::from(input)].busy_until_ps
    }

    /// Returns whether a frame is queued for the output, eligible or not.
    #[inline]
    pub fn waits(&self, output: u16) -> bool {
        self.out[usize::from(output)].frames > 0
    }

    /// Returns the input whose frame leaves through `output` next, if one is eligible.
    #[inline]
    fn choose(&self, now: u64, output: u16) -> Option<u16> {
        let out = &self.out[usize::from(output)];
        let last = usize::from(out.last);
        let masks = self.mask(out, output);
        if !self.trunks.is_empty() {
            return self.choose_in_order(now, output);
        }
        match self.arbitration {
            Arbitration::RoundRobin if self.queueing != Queueing::Voq => next_bit(masks, last + 1).map(|i| i as u16),
            Arbitration::RoundRobin => {
                let first = next_bit(masks, last + 1)?;
                let mut input = first;
                while !self.may_send(input, now) {
                    input = next_bit(masks, input + 1)?;
                    if input == first {
                        return None;
                    }
                }
                Some(input as u16)
            }
            Arbitration::OldestFirst => {
                let oldest = |i: usize| (self.since(i, output), i);
                bits(masks).filter(|&i| self.may_send(i, now)).min_by_key(|&i| oldest(i)).map(|i| i as u16)
            }
        }
    }

    /// Variant of `choose` for a switch with trunks. A frame is eligible only after every earlier
    /// frame of its trunk for the same output has left.
    fn choose_in_order(&self, now: u64, output: u16) -> Option<u16> {
        let masks = self.mask(&self.out[usize::from(output)], output);
        let ready = bits(masks).filter(|&i| self.may_send(i, now) && self.is_next_of_trunk(i, output));
        let inputs = self.inputs.len();
        let distance = |i: usize| (i + inputs - 1 - usize::from(self.out[usize::from(output)].last)) % inputs;
        let chosen = match self.arbitration {
            Arbitration::RoundRobin => ready.min_by_key(|&i| distance(i)),
            Arbitration::OldestFirst => ready.min_by_key(|&i| (self.since(i, output), i)),
        };
        chosen.map(|i| i as u16)
    }

    fn is_next_of_trunk(&self, input: usize, output: u16) -> bool {
        let others = &self.trunks[input];
        others.is_empty() || {
            let own_since = self.since(input, output);
            others.iter().all(|&other| self.since(usize::from(other), output) > own_since)
        }
    }

    /// Removes the next eligible frame for `output` from its buffer. `send` computes its departure
    /// times.
    #[inline]
    pub fn depart(&mut self, now: u64, output: u16, send: impl FnOnce(&Slot) -> Sent) -> Option<Departure> {
        let input = self.choose(now, output)?;
        let (queueing, is_processor) = (self.queueing, input == self.processor());
        let buffer = &mut self.inputs[usize::from(input)];
        let (place, another) = buffer.take(output)?;
        let slot = *buffer.taken(place);
        let sent = send(&slot);
        buffer.count(&slot, sent.start_ps, sent.end_ps);
        let mut more_at_input = false;
        if queueing != Queueing::Any && !is_processor {
            buffer.busy_until_ps = sent.end_ps;
            more_at_input = buffer.frames() > 0;
        }
        if !another || (queueing == Queueing::Fifo && !is_processor) {
            self.clear(output, input);
        }
        let out = &mut self.out[usize::from(output)];
        out.frames -= 1;
        out.last = input;
        Some(Departure { slot, sent, more_at_input, more_at_output: out.frames > 0 })
    }

    /// Makes the next frame of an input eligible after the previous one has been sent. Calls `wake`
    /// with each output for which the input has a frame.
    pub fn input_ready(&mut self, input: u16, mut wake: impl FnMut(u16)) {
        match self.queueing {
            Queueing::Any => {}
            Queueing::Fifo => {
                let oldest = self.inputs[usize::from(input)].oldest().map(|(output, _)| output);
                if let Some(output) = oldest {
                    self.set(output, input);
                    wake(output);
                }
            }
            Queueing::Voq => (0..self.out.len() as u16).filter(|&output| self.is_set(output, input)).for_each(wake),
        }
    }

    /// Removes the frames for which `which` returns true and passes each to `gone`, ordered by
    /// input and then by arrival.
    pub fn discard(&mut self, now: u64, mut which: impl FnMut(&Buffered) -> bool, mut gone: impl FnMut(Buffered)) {
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
        let slots = self.inputs[usize::from(input)].iter();
        slots.map(|(output, slot)| Buffered { on_line: slot.on_line(), input, output, lane: slot.lane }).collect()
    }

    /// Returns the number of frames in the buffer of an input.
    pub fn occupancy(&self, input: u16) -> u32 {
        self.inputs[usize::from(input)].frames()
    }

    /// Returns the time since which the oldest frame of an input has been eligible.
    pub fn oldest(&self, input: u16) -> Option<u64> {
        self.inputs[usize::from(input)].oldest().map(|(_, slot)| slot.at_ps)
    }

    pub fn input_count(&self, input: u16) -> InputCount {
        self.inputs[usize::from(input)].counted()
    }

    /// Returns the integral of the occupied buffers of an input over time, in buffers × ps, since
    /// the counters were reset.
    pub fn held_area_ps(&self, input: u16, now: u64) -> u64 {
        self.inputs[usize::from(input)].held_area_ps(now)
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
        }
    }

    /// Returns the time since which the oldest frame of `input` for `output` has been eligible, or
    /// `u64::MAX` if there is none.
    fn since(&self, input: usize, output: u16) -> u64 {
        let mut slots = self.inputs[input].iter();
        slots.find(|&(other, _)| other == output).map_or(u64::MAX, |(_, slot)| slot.at_ps)
    }

    #[inline]
    fn may_send(&self, input: usize, now: u64) -> bool {
        self.queueing == Queueing::Any || self.inputs[input].busy_until_ps <= now
    }

    #[inline]
    fn mask<'a>(&'a self, out: &'a Output, output: u16) -> &'a [u64] {
        match self.words {
            1 => std::slice::from_ref(&out.mask),
            words => &self.masks[usize::from(output) * words..][..words],
        }
    }

    #[inline]
    fn word_mut(&mut self, output: u16, input: u16) -> &mut u64 {
        match self.words {
            1 => &mut self.out[usize::from(output)].mask,
            words => &mut self.masks[usize::from(output) * words + usize::from(input) / 64],
        }
    }

    #[inline]
    fn set(&mut self, output: u16, input: u16) {
        *self.word_mut(output, input) |= 1 << (input % 64);
    }

    fn is_set(&self, output: u16, input: u16) -> bool {
        self.mask(&self.out[usize::from(output)], output)[usize::from(input) / 64] & 1 << (input % 64) != 0
    }

    #[inline]
    fn clear(&mut self, output: u16, input: u16) {
        *self.word_mut(output, input) &= !(1 << (input % 64));
    }
}

/// Iterates over the set bits, lowest first.
#[inline]
fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(number, &word)| {
        let mut word = word;
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| number * 64 + word.trailing_zeros() as usize);
            word &= word.wrapping_sub(1);
            bit
        })
    })
}

/// Returns the first set bit at or after `from`, wrapping around to bit 0.
#[inline]
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    if let [word] = *words {
        let high = if from < 64 { word & (!0 << from) } else { 0 };
        let word = if high != 0 { high } else { word };
        return (word != 0).then(|| word.trailing_zeros() as usize);
    }
    let total = words.len() * 64;
    let from = if from >= total { 0 } else { from };
    let start = from / 64;
    let high = words[start] & (!0 << (from % 64));
    if high != 0 {
        return Some(start * 64 + high.trailing_zeros() as usize);
    }
    for step in 1..=words.len() {
        let mut at = start + step;
        if at >= words.len() {
            at -= words.len();
        }
        if words[at] != 0 {
            return Some(at * 64 + words[at].trailing_zeros() as usize);
        }
    }
    None
}
