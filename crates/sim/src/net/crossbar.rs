//! The inside of a switch: input buffers, output queues and the arbiter between them.

use super::flight::InFlight;
use super::frame_ref::FrameRef;
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
    /// Each input sends one frame at a time until then ([`Queueing::Fifo`], [`Queueing::Voq`]).
    busy_until_ps: Vec<u64>,
    out: Vec<Output>,
    /// `words` words for each output.
    masks: Vec<u64>,
    /// The inputs at which the other links of a trunk end, by input; empty without trunks.
    trunks: Vec<Vec<u16>>,
}

/// An input buffer. Frames stand in the order they came; a buffer holds few of them, so looking through it is cheaper than
/// a queue for each output. What every frame changes is in the first cache line, the waiting times by length behind it.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct Input {
    slots: Vec<Slot>,
    count: InputCount,
}

const _: () = assert!(size_of::<Input>() == 64 + 4 * WAIT_BUCKETS);

/// A frame in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The frame.
    pub frame: FrameRef,
    /// Since when it might leave.
    pub at_ps: u64,
    tail_after_ps: u32,
    output: u16,
}

impl Slot {
    #[inline]
    fn new(buffered: &Buffered) -> Slot {
        let &Buffered { on_line: InFlight { frame, at_ps, tail_after_ps }, output, .. } = buffered;
        Slot { frame, at_ps, tail_after_ps, output }
    }

    /// When its last bit has arrived, or since when it might leave if that is later.
    #[inline]
    pub fn tail_ps(&self) -> u64 {
        self.at_ps + u64::from(self.tail_after_ps)
    }

    fn buffered(&self, input: u16) -> Buffered {
        let &Slot { frame, at_ps, tail_after_ps, output } = self;
        Buffered { on_line: InFlight { frame, at_ps, tail_after_ps }, input, output }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Output {
    /// Frames for this output, whether they may leave now or not.
    frames: u32,
    /// Input that was served last.
    last: u16,
}

/// Number of buckets of [`WaitCount`].
pub const WAIT_BUCKETS: usize = 32;

/// Waiting times, from the moment a frame might leave to the start of its departure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct WaitCount {
    /// Sum in ps.
    pub sum_ps: u64,
    /// Longest in ps.
    pub max_ps: u64,
    /// Frames by time: bucket 0 below 2^10 ps, bucket n below 2^(10 + n) ps, the last one all others.
    pub buckets: [u32; WAIT_BUCKETS],
}

impl WaitCount {
    #[inline]
    fn add(&mut self, wait_ps: u64) {
        self.sum_ps += wait_ps;
        self.max_ps = self.max_ps.max(wait_ps);
        let bucket = 64 - (wait_ps >> 10).leading_zeros();
        self.buckets[(bucket as usize).min(WAIT_BUCKETS - 1)] += 1;
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
#[repr(C)]
pub struct InputCount {
    /// Bytes of the frames that left, SOF to EOF.
    pub bytes: u64,
    /// Sum of the times that frames held a buffer, in ps; frames that were there at a restart count from then on.
    held_ps: i64,
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
            busy_until_ps: vec![0; inputs],
            out: vec![Output { frames: 0, last: inputs as u16 - 1 }; outputs],
            masks: vec![0; outputs * words],
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
    #[inline]
    pub fn enqueue(&mut self, now: u64, buffered: Buffered) {
        let Buffered { input, output, .. } = buffered;
        let waits_its_turn = self.queueing == Queueing::Fifo && input != self.processor();
        let buffer = &mut self.inputs[usize::from(input)];
        let hidden = waits_its_turn && (!buffer.slots.is_empty() || self.busy_until_ps[usize::from(input)] > now);
        buffer.slots.push(Slot::new(&buffered));
        buffer.count.max_frames = buffer.count.max_frames.max(buffer.slots.len() as u32);
        self.out[usize::from(output)].frames += 1;
        if !hidden {
            self.set(output, input);
        }
    }

    /// Until when an input sends the frame that it has shown; frames that come meanwhile wait for that.
    #[inline]
    pub fn input_busy_until(&self, input: u16) -> u64 {
        self.busy_until_ps[usize::from(input)]
    }

    /// Some frame waits for the output, whether it may leave now or not.
    #[inline]
    pub fn waits(&self, output: u16) -> bool {
        self.out[usize::from(output)].frames > 0
    }

    /// The frame that leaves through `output` next, if any may leave now. It stays in its buffer until
    /// [`Crossbar::take`].
    #[inline]
    pub fn choose(&self, now: u64, output: u16) -> Option<u16> {
        let masks = &self.masks[usize::from(output) * self.words..][..self.words];
        let last = usize::from(self.out[usize::from(output)].last);
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
        let masks = &self.masks[usize::from(output) * self.words..][..self.words];
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

    /// Takes the frame that was chosen out of its buffer.
    #[inline]
    pub fn take(&mut self, input: u16, output: u16) -> Slot {
        let buffer = &mut self.inputs[usize::from(input)];
        let at = buffer.slots.iter().position(|slot| slot.output == output).unwrap_or(0);
        let slot = buffer.slots[at];
        buffer.slots.copy_within(at + 1.., at);
        buffer.slots.truncate(buffer.slots.len() - 1);
        let again = self.queueing != Queueing::Fifo || input == self.processor();
        let buffer = &self.inputs[usize::from(input)];
        if !(again && buffer.slots[at..].iter().any(|slot| slot.output == output)) {
            self.clear(output, input);
        }
        let out = &mut self.out[usize::from(output)];
        out.frames -= 1;
        out.last = input;
        slot
    }

    /// The frame that was taken leaves from `start` to `end`. Returns true if the input has more frames, which must wait
    /// for `end`.
    #[inline]
    pub fn leaves(&mut self, input: u16, slot: &Slot, start: u64, end: u64) -> bool {
        let serial = self.queueing != Queueing::Any && input != self.processor();
        let buffer = &mut self.inputs[usize::from(input)];
        buffer.count.wait.add(start.saturating_sub(slot.at_ps));
        buffer.count.bytes += slot.frame.wire_bytes();
        buffer.count.held_ps += end as i64 - slot.at_ps as i64;
        if serial {
            self.busy_until_ps[usize::from(input)] = end;
        }
        serial && !buffer.slots.is_empty()
    }

    /// The input has sent its frame: its next one may leave. Calls `wake` with each output that it may want.
    pub fn input_ready(&mut self, input: u16, mut wake: impl FnMut(u16)) {
        match self.queueing {
            Queueing::Any => {}
            Queueing::Fifo => {
                if let Some(slot) = self.inputs[usize::from(input)].slots.first() {
                    let output = slot.output;
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
        let slots = self.inputs[usize::from(input)].slots.iter();
        slots.map(|slot| slot.buffered(input)).collect()
    }

    /// Number of frames in the buffer of an input.
    pub fn occupancy(&self, input: u16) -> u32 {
        self.inputs[usize::from(input)].slots.len() as u32
    }

    /// Since when the oldest frame of an input has been there.
    pub fn oldest(&self, input: u16) -> Option<u64> {
        self.inputs[usize::from(input)].slots.first().map(|slot| slot.at_ps)
    }

    /// Counters of an input.
    pub fn input_count(&self, input: u16) -> &InputCount {
        &self.inputs[usize::from(input)].count
    }

    /// Occupied buffers of an input times picoseconds since the restart of the counters.
    pub fn held_area_ps(&self, input: u16, now: u64) -> u64 {
        let held = self.inputs[usize::from(input)].count.held_ps;
        let present: i64 = self.frames_of(input).iter().map(|b| now.saturating_sub(b.on_line.at_ps) as i64).sum();
        (held + present).max(0) as u64
    }

    /// Restarts the counters of all inputs and outputs.
    pub fn restart_counts(&mut self, now: u64) {
        for input in 0..self.inputs.len() as u16 {
            let present: i64 = self.frames_of(input).iter().map(|b| now.saturating_sub(b.on_line.at_ps) as i64).sum();
            let max_frames = self.occupancy(input);
            self.inputs[usize::from(input)].count =
                InputCount { held_ps: -present, max_frames, ..InputCount::default() };
        }
    }

    /// Frames in all buffers.
    pub fn frames(&self) -> u64 {
        self.out.iter().map(|out| u64::from(out.frames)).sum()
    }

    fn empty_input(&mut self, input: u16) {
        for slot in std::mem::take(&mut self.inputs[usize::from(input)].slots) {
            self.out[usize::from(slot.output)].frames -= 1;
            self.clear(slot.output, input);
        }
    }

    /// Since when the oldest frame that an input has for an output has been there; the end of time if it has none.
    fn since(&self, input: usize, output: u16) -> u64 {
        let mut slots = self.inputs[input].slots.iter();
        slots.find(|slot| slot.output == output).map_or(u64::MAX, |slot| slot.at_ps)
    }

    #[inline]
    fn may_send(&self, input: usize, now: u64) -> bool {
        self.queueing == Queueing::Any || self.busy_until_ps[input] <= now
    }

    #[inline]
    fn set(&mut self, output: u16, input: u16) {
        self.masks[usize::from(output) * self.words + usize::from(input) / 64] |= 1 << (input % 64);
    }

    fn is_set(&self, output: u16, input: u16) -> bool {
        self.masks[usize::from(output) * self.words + usize::from(input) / 64] & (1 << (input % 64)) != 0
    }

    #[inline]
    fn clear(&mut self, output: u16, input: u16) {
        self.masks[usize::from(output) * self.words + usize::from(input) / 64] &= !(1 << (input % 64));
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
