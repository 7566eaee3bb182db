//! The inside of a switch: input buffers, output queues and the arbiter between them.

use super::NO_LANE;
use super::flight::InFlight;
use super::input::{Input, Slot};
use super::lane::Sent;
use sanloom_core::config::{Arbitration, Queueing};

/// A crossbar with buffers at its inputs. Input and output numbers are port numbers; the last input is the switch's own
/// processor, whose buffer has no limit.
///
/// For each output a bit mask names the inputs that have a frame for it which may leave; an arbiter looks only at that.
#[derive(Clone, Debug)]
pub struct Crossbar {
    queueing: Queueing,
    arbitration: Arbitration,
    words: usize,
    inputs: Vec<Input>,
    out: Vec<Output>,
    /// `words` words for each output, if one is not enough.
    masks: Vec<u64>,
    /// The inputs at which the other links of a trunk end, by input; empty without trunks.
    trunks: Vec<Vec<u16>>,
}

#[derive(Clone, Copy, Debug)]
struct Output {
    /// Inputs that have a frame for it which may leave, while they fit.
    mask: u64,
    /// Frames for this output, whether they may leave now or not.
    frames: u32,
    /// The lane that it serves, if it is one.
    lane: u32,
    /// Input that was served last.
    last: u16,
}

/// Number of buckets of [`WaitCount`].
pub const WAIT_BUCKETS: usize = 32;

/// Waiting times, from the moment a frame might leave to the start of its departure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitCount {
    /// Sum in ps.
    pub sum_ps: u64,
    /// Longest in ps.
    pub max_ps: u64,
    /// Frames by time: bucket 0 below 2^10 ps, bucket n below 2^(10 + n) ps, the last one all others.
    pub buckets: [u32; WAIT_BUCKETS],
}

impl WaitCount {
    /// The bucket of a time.
    #[inline]
    pub(super) fn bucket(wait_ps: u64) -> usize {
        let bucket = 64 - (wait_ps >> 10).leading_zeros();
        (bucket as usize).min(WAIT_BUCKETS - 1)
    }

    /// Frames that left.
    pub fn frames(&self) -> u64 {
        self.buckets.iter().copied().map(u64::from).sum()
    }

    /// Takes what another has counted.
    pub fn merge(&mut self, other: &WaitCount) {
        self.sum_ps += other.sum_ps;
        self.max_ps = self.max_ps.max(other.max_ps);
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
    }

    /// The time that the share `quantile` of all frames does not exceed, up to the end of its bucket: right within a
    /// factor of two, and never more than the longest. 0 without frames.
    pub fn quantile_ps(&self, quantile: f64) -> u64 {
        let wanted = (quantile * self.frames() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted {
                return (1 << (10 + bucket)).min(self.max_ps);
            }
        }
        self.max_ps
    }
}

/// Counters of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InputCount {
    /// Bytes of the frames that left, SOF to EOF.
    pub bytes: u64,
    /// Most frames at once.
    pub max_frames: u32,
    /// Frames that left, and how long they waited.
    pub wait: WaitCount,
}

/// A frame in an input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    /// The frame as it came: since when it might leave, and its tail.
    pub on_line: InFlight,
    /// Input.
    pub input: u16,
    /// Output.
    pub output: u16,
    /// Lane over which it came, [`super::NO_LANE`] if the switch has made it.
    pub lane: u32,
}

/// A frame that leaves a switch.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The frame.
    pub slot: Slot,
    /// Its times.
    pub sent: Sent,
    /// Its input has more frames, and they must wait until it has left.
    pub more_at_input: bool,
    /// Other frames wait for its output.
    pub more_at_output: bool,
}

impl Crossbar {
    /// For a switch with `ports` ports.
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

    /// Frames that came over the links of one trunk leave through an output in the order in which they came, whichever
    /// of the trunk's inputs they are in. `groups`: the ports that belong together.
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

    /// An output serves one lane and no other.
    pub fn serve(&mut self, output: u16, lane: u32) {
        self.out[usize::from(output)].lane = lane;
    }

    /// The lane that an output serves, if it is one.
    #[inline]
    pub fn served(&self, output: u16) -> Option<u32> {
        Some(self.out[usize::from(output)].lane).filter(|&lane| lane != NO_LANE)
    }

    /// The input of the switch's own processor.
    pub fn processor(&self) -> u16 {
        self.inputs.len() as u16 - 1
    }

    /// Inputs and outputs wait for each other one frame at a time, so the end of a frame matters to the next.
    #[inline]
    pub fn serial_inputs(&self) -> bool {
        self.queueing != Queueing::Any
    }

    /// A frame is in the buffer of an input.
    #[inline(always)]
    pub fn enqueue(&mut self, now: u64, buffered: Buffered) {
        let Buffered { on_line, input, output, lane } = buffered;
        let waits_its_turn = self.queueing == Queueing::Fifo && input != self.processor();
        let buffer = &mut self.inputs[usize::from(input)];
        let hidden = waits_its_turn && (buffer.frames() > 0 || buffer.busy_until_ps > now);
        buffer.push(output, Slot::new(on_line, lane));
        self.out[usize::from(output)].frames += 1;
        if !hidden {
            self.set(output, input);
        }
    }

    /// Until when an input sends the frame that it has shown; frames that come meanwhile wait for that.
    #[inline]
    pub fn input_busy_until(&self, input: u16) -> u64 {
        self.inputs[usize::from(input)].busy_until_ps
    }

    /// Some frame waits for the output, whether it may leave now or not.
    #[inline]
    pub fn waits(&self, output: u16) -> bool {
        self.out[usize::from(output)].frames > 0
    }

    /// The input of the frame that leaves through `output` next, if any may leave now.
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

    /// The same for a switch with trunks: a frame waits until those that came before it over its trunk, and are for the
    /// same output, have left.
    fn choose_in_order(&self, now: u64, output: u16) -> Option<u16> {
        let masks = self.mask(&self.out[usize::from(output)], output);
        let ready = bits(masks).filter(|&i| self.may_send(i, now) && self.is_next_of_trunk(i, output));
        let inputs = self.inputs.len();
        let turn = |i: usize| (i + inputs - 1 - usize::from(self.out[usize::from(output)].last)) % inputs;
        let chosen = match self.arbitration {
            Arbitration::RoundRobin => ready.min_by_key(|&i| turn(i)),
            Arbitration::OldestFirst => ready.min_by_key(|&i| (self.since(i, output), i)),
        };
        chosen.map(|i| i as u16)
    }

    fn is_next_of_trunk(&self, input: usize, output: u16) -> bool {
        let others = &self.trunks[input];
        others.is_empty() || {
            let mine = self.since(input, output);
            others.iter().all(|&other| self.since(usize::from(other), output) > mine)
        }
    }

    /// Takes the next frame for `output` out of its buffer, if any may leave now; `send` says when it leaves.
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

    /// The input has sent its frame: its next one may leave. Calls `wake` with each output that it may want.
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

    /// Removes the frames that `which` picks and calls `gone` with each, in the order of their inputs and arrivals.
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

    /// The frames in the buffer of an input, oldest first.
    pub fn frames_of(&self, input: u16) -> Vec<Buffered> {
        let slots = self.inputs[usize::from(input)].iter();
        slots.map(|(output, slot)| Buffered { on_line: slot.on_line(), input, output, lane: slot.lane }).collect()
    }

    /// Number of frames in the buffer of an input.
    pub fn occupancy(&self, input: u16) -> u32 {
        self.inputs[usize::from(input)].frames()
    }

    /// Since when the oldest frame of an input has been there.
    pub fn oldest(&self, input: u16) -> Option<u64> {
        self.inputs[usize::from(input)].oldest().map(|(_, slot)| slot.at_ps)
    }

    /// Counters of an input.
    pub fn input_count(&self, input: u16) -> InputCount {
        self.inputs[usize::from(input)].counted()
    }

    /// Occupied buffers of an input times picoseconds since the restart of the counters.
    pub fn held_area_ps(&self, input: u16, now: u64) -> u64 {
        self.inputs[usize::from(input)].held_area_ps(now)
    }

    /// Restarts the counters of all inputs and outputs.
    pub fn restart_counts(&mut self, now: u64) {
        self.inputs.iter_mut().for_each(|input| input.restart_counts(now));
    }

    /// Gives back memory that no frame needs now.
    pub fn trim(&mut self) {
        self.inputs.iter_mut().for_each(Input::trim);
    }

    /// Frames in all buffers.
    pub fn frames(&self) -> u64 {
        self.out.iter().map(|out| u64::from(out.frames)).sum()
    }

    fn empty_input(&mut self, input: u16) {
        for (output, _) in self.inputs[usize::from(input)].take_all() {
            self.out[usize::from(output)].frames -= 1;
            self.clear(output, input);
        }
    }

    /// Since when the oldest frame that an input has for an output has been there; the end of time if it has none.
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

/// The set bits, lowest first.
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

/// The first bit at or after `from`, going round.
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
