//! The inside of a switch: input buffers, output queues and the arbiter between them.

use super::frame_ref::FrameRef;
use sanloom_core::config::{Arbitration, Queueing};

/// No slot, no frame.
const NIL: u32 = u32::MAX;

/// A crossbar with buffers at its inputs. Input and output numbers are port numbers; the last input is the switch's own
/// processor, whose buffer has no limit.
///
/// For each output a bit mask names the inputs that have a frame for it which may leave; an arbiter looks only at that.
#[derive(Clone, Debug)]
pub struct Crossbar {
    queueing: Queueing,
    arbitration: Arbitration,
    outputs: usize,
    words: usize,
    /// Queues by input and output; with [`Queueing::Fifo`] only the first of each input is used.
    queues: Vec<Queue>,
    inputs: Vec<Input>,
    out: Vec<Output>,
    /// `words` words for each output.
    masks: Vec<u64>,
    /// The inputs at which the other links of a trunk end, by input; empty without trunks.
    trunks: Vec<Vec<u16>>,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

const EMPTY: Queue = Queue { head: NIL, tail: NIL };

#[derive(Clone, Debug, Default)]
struct Input {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The input sends one frame at a time until then ([`Queueing::Fifo`], [`Queueing::Voq`]).
    busy_until_ps: u64,
    count: InputCount,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    frame: FrameRef,
    at_ps: u64,
    tail_ps: u64,
    output: u16,
    next: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Output {
    /// Frames for this output, whether they may leave now or not.
    frames: u32,
    /// Input that was served last.
    last: u16,
    /// Frames that have left, and how long they waited.
    count: OutputCount,
}

/// Counters of an output.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutputCount {
    /// Frames that left.
    pub frames: u64,
    /// Sum of their waiting times in ps.
    pub wait_ps: u64,
    /// Longest waiting time in ps.
    pub max_wait_ps: u64,
    /// Most frames that waited at once.
    pub max_frames: u32,
}

/// Number of buckets of [`WaitCount`].
pub const WAIT_BUCKETS: usize = 32;

/// Waiting times, from the moment a frame might leave to the start of its departure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitCount {
    /// Frames that left.
    pub frames: u64,
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
        self.frames += 1;
        self.sum_ps += wait_ps;
        self.max_ps = self.max_ps.max(wait_ps);
        let bucket = 64 - (wait_ps >> 10).leading_zeros();
        self.buckets[(bucket as usize).min(WAIT_BUCKETS - 1)] += 1;
    }

    /// Takes what another has counted.
    pub fn merge(&mut self, other: &WaitCount) {
        self.frames += other.frames;
        self.sum_ps += other.sum_ps;
        self.max_ps = self.max_ps.max(other.max_ps);
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
    }

    /// The time that the share `quantile` of all frames does not exceed, up to the end of its bucket: right within a
    /// factor of two, and never more than the longest. 0 without frames.
    pub fn quantile_ps(&self, quantile: f64) -> u64 {
        let wanted = (quantile * self.frames as f64).ceil().max(1.0) as u64;
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
    /// Frames that left, and how long they waited.
    pub wait: WaitCount,
    /// Their bytes, SOF to EOF.
    pub bytes: u64,
    /// Sum of the times that frames held a buffer, in ps; frames that were there at a restart count from then on.
    held_ps: i64,
    /// Most frames at once.
    pub max_frames: u32,
}

/// A frame in an input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    /// The frame.
    pub frame: FrameRef,
    /// Since when it might leave.
    pub at_ps: u64,
    /// When its last bit has arrived.
    pub tail_ps: u64,
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
            outputs,
            words,
            queues: vec![EMPTY; inputs * outputs],
            inputs: vec![Input::default(); inputs],
            out: vec![Output { last: inputs as u16 - 1, ..Output::default() }; outputs],
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
        let Buffered { frame, at_ps, tail_ps, input, output } = buffered;
        let slot = Slot { frame, at_ps, tail_ps, output, next: NIL };
        let buffer = &mut self.inputs[usize::from(input)];
        let index = match buffer.free.pop() {
            Some(index) => {
                buffer.slots[index as usize] = slot;
                index
            }
            None => {
                buffer.slots.push(slot);
                buffer.slots.len() as u32 - 1
            }
        };
        let occupied = (buffer.slots.len() - buffer.free.len()) as u32;
        buffer.count.max_frames = buffer.count.max_frames.max(occupied);
        let free = buffer.busy_until_ps <= now;
        let queue = &mut self.queues[Self::queue_index(self.queueing, self.outputs, self.inputs.len(), input, output)];
        let first = queue.head == NIL;
        if first {
            queue.head = index;
        } else {
            self.inputs[usize::from(input)].slots[queue.tail as usize].next = index;
        }
        queue.tail = index;
        let out = &mut self.out[usize::from(output)];
        out.frames += 1;
        out.count.max_frames = out.count.max_frames.max(out.frames);
        if first && (self.queueing != Queueing::Fifo || free || input == self.processor()) {
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
                let waited = |i: usize| (self.head(i as u16, output).at_ps, i);
                bits(masks).filter(|&i| self.may_send(i, now)).min_by_key(|&i| waited(i)).map(|i| i as u16)
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
            Arbitration::OldestFirst => ready.min_by_key(|&i| (self.head(i as u16, output).at_ps, i)),
        };
        chosen.map(|i| i as u16)
    }

    fn is_next_of_trunk(&self, input: usize, output: u16) -> bool {
        let others = &self.trunks[input];
        let came = |input: u16| self.first_for(input, output).map(|slot| slot.at_ps);
        others.is_empty() || {
            let mine = came(input as u16);
            others.iter().all(|&other| came(other).is_none_or(|at_ps| Some(at_ps) > mine))
        }
    }

    /// The oldest frame of an input for an output, wherever it stands in its queue.
    fn first_for(&self, input: u16, output: u16) -> Option<&Slot> {
        let index = Self::queue_index(self.queueing, self.outputs, self.inputs.len(), input, output);
        let slots = &self.inputs[usize::from(input)].slots;
        let mut slot = slots.get(self.queues[index].head as usize)?;
        while slot.output != output {
            slot = slots.get(slot.next as usize)?;
        }
        Some(slot)
    }

    /// Time until which the last bit of the frame at the head is not there.
    #[inline]
    pub fn peek(&self, input: u16, output: u16) -> (FrameRef, u64) {
        let slot = self.head(input, output);
        (slot.frame, slot.tail_ps)
    }

    /// Takes the frame that was chosen out of its buffer; the output sends it from `start` to `end`. Returns true if
    /// the input has more frames that must wait for `end`.
    #[inline]
    pub fn take(&mut self, input: u16, output: u16, start: u64, end: u64) -> bool {
        let index = Self::queue_index(self.queueing, self.outputs, self.inputs.len(), input, output);
        let queue = &mut self.queues[index];
        let at = queue.head;
        let buffer = &mut self.inputs[usize::from(input)];
        let slot = buffer.slots[at as usize];
        queue.head = slot.next;
        let empty = slot.next == NIL;
        if empty {
            queue.tail = NIL;
        }
        buffer.free.push(at);
        let wait = start.saturating_sub(slot.at_ps);
        buffer.count.wait.add(wait);
        buffer.count.bytes += slot.frame.wire_bytes();
        buffer.count.held_ps += end as i64 - slot.at_ps as i64;
        let out = &mut self.out[usize::from(output)];
        out.frames -= 1;
        out.last = input;
        out.count.frames += 1;
        out.count.wait_ps += wait;
        out.count.max_wait_ps = out.count.max_wait_ps.max(wait);
        if self.queueing == Queueing::Any || input == self.processor() {
            if empty {
                self.clear(output, input);
            }
            return false;
        }
        let buffer = &mut self.inputs[usize::from(input)];
        buffer.busy_until_ps = end;
        let more = buffer.free.len() < buffer.slots.len();
        if self.queueing == Queueing::Fifo || empty {
            self.clear(output, input);
        }
        more
    }

    /// The input has sent its frame: its next one may leave. Calls `wake` with each output that it may want.
    pub fn input_ready(&mut self, input: u16, mut wake: impl FnMut(u16)) {
        match self.queueing {
            Queueing::Any => {}
            Queueing::Fifo => {
                let queue = self.queues[usize::from(input) * self.outputs];
                if queue.head != NIL {
                    let output = self.inputs[usize::from(input)].slots[queue.head as usize].output;
                    self.set(output, input);
                    wake(output);
                }
            }
            Queueing::Voq => {
                for output in 0..self.outputs {
                    if self.queues[usize::from(input) * self.outputs + output].head != NIL {
                        wake(output as u16);
                    }
                }
            }
        }
    }

    /// Removes the frames that `which` picks and calls `gone` with each, in the order of their inputs and arrivals.
    pub fn discard(
        &mut self,
        now: u64,
        mut which: impl FnMut(&Buffered) -> bool,
        mut gone: impl FnMut(Buffered),
    ) {
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
        let mut held = Vec::new();
        for output in 0..self.outputs {
            let index = usize::from(input) * self.outputs + output;
            let mut at = self.queues[index].head;
            while at != NIL {
                let slot = self.inputs[usize::from(input)].slots[at as usize];
                let Slot { frame, at_ps, tail_ps, output, next } = slot;
                held.push(Buffered { frame, at_ps, tail_ps, input, output });
                at = next;
            }
        }
        held.sort_by_key(|buffered| buffered.at_ps);
        held
    }

    /// Number of frames in the buffer of an input.
    pub fn occupancy(&self, input: u16) -> u32 {
        let buffer = &self.inputs[usize::from(input)];
        (buffer.slots.len() - buffer.free.len()) as u32
    }

    /// Since when the oldest frame of an input has been there.
    pub fn oldest(&self, input: u16) -> Option<u64> {
        if self.occupancy(input) == 0 {
            return None;
        }
        self.frames_of(input).first().map(|buffered| buffered.at_ps)
    }

    /// Counters of an output.
    pub fn count(&self, output: u16) -> OutputCount {
        self.out[usize::from(output)].count
    }

    /// Counters of an input.
    pub fn input_count(&self, input: u16) -> &InputCount {
        &self.inputs[usize::from(input)].count
    }

    /// Occupied buffers of an input times picoseconds since the restart of the counters.
    pub fn held_area_ps(&self, input: u16, now: u64) -> u64 {
        let held = self.inputs[usize::from(input)].count.held_ps;
        let present: i64 = self.frames_of(input).iter().map(|b| now.saturating_sub(b.at_ps) as i64).sum();
        (held + present).max(0) as u64
    }

    /// Restarts the counters of all inputs and outputs.
    pub fn restart_counts(&mut self, now: u64) {
        for input in 0..self.inputs.len() as u16 {
            let present: i64 = self.frames_of(input).iter().map(|b| now.saturating_sub(b.at_ps) as i64).sum();
            let max_frames = self.occupancy(input);
            self.inputs[usize::from(input)].count =
                InputCount { held_ps: -present, max_frames, ..InputCount::default() };
        }
        for out in &mut self.out {
            out.count = OutputCount { max_frames: out.frames, ..OutputCount::default() };
        }
    }

    /// Frames in all buffers.
    pub fn frames(&self) -> u64 {
        self.out.iter().map(|out| u64::from(out.frames)).sum()
    }

    fn empty_input(&mut self, input: u16) {
        for output in 0..self.outputs {
            let index = usize::from(input) * self.outputs + output;
            let mut at = self.queues[index].head;
            while at != NIL {
                let slot = self.inputs[usize::from(input)].slots[at as usize];
                self.out[usize::from(slot.output)].frames -= 1;
                self.clear(slot.output, input);
                at = slot.next;
            }
            self.queues[index] = EMPTY;
        }
        let buffer = &mut self.inputs[usize::from(input)];
        buffer.free.clear();
        buffer.slots.clear();
    }

    #[inline]
    fn queue_index(queueing: Queueing, outputs: usize, inputs: usize, input: u16, output: u16) -> usize {
        let input = usize::from(input);
        if queueing == Queueing::Fifo && input + 1 != inputs {
            input * outputs
        } else {
            input * outputs + usize::from(output)
        }
    }

    #[inline]
    fn head(&self, input: u16, output: u16) -> &Slot {
        let index = Self::queue_index(self.queueing, self.outputs, self.inputs.len(), input, output);
        &self.inputs[usize::from(input)].slots[self.queues[index].head as usize]
    }

    #[inline]
    fn may_send(&self, input: usize, now: u64) -> bool {
        self.queueing == Queueing::Any || self.inputs[input].busy_until_ps <= now
    }

    #[inline]
    fn set(&mut self, output: u16, input: u16) {
        self.masks[usize::from(output) * self.words + usize::from(input) / 64] |= 1 << (input % 64);
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
