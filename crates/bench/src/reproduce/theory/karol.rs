//! Saturation of FIFO inputs: Karol, Hluchyj and Morgan 1987.

use super::bed::{Sample, parse};
use super::row::{Basis, Row};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_console::exit::Failure;
use sanloom_fc::exchange::{SeqIds, SeqTx};
use sanloom_sim::net::NetEvent;
use sanloom_sim::stats::ConfidenceInterval;
use sanloom_sim::world::World;
use sanloom_wire::FcId;
use std::collections::BTreeMap;

const BASIS: Basis = Basis {
    section: "Saturation of FIFO inputs",
    source: "M. Karol, M. Hluchyj, S. Morgan, Input versus output queueing on a space-division packet switch, IEEE Trans. \
             Comm. 35 (1987), table I: stationary throughput of the Markov chain of the heads of N saturated inputs, \
             uniform destinations. Frames without responses: each input has one receive buffer, its FIFO is the send queue \
             of its port, and its line is so fast that the next head is there before the slot ends",
    tolerance_reason: "1 %, and the 95 % confidence interval over batches must lie within it",
};

const PLACES: Basis = Basis {
    section: "Saturation of FIFO inputs",
    source: "The same chain for `queueing = \"fifo\"` with a crossbar of speed-up 1 and one frame in front of each line: a head \
             may cross one slot before its line is free, so fewer inputs are blocked",
    tolerance_reason: "1 %, and the 95 % confidence interval over batches must lie within it",
};

/// Largest accepted deviation, as a share of the theory.
const TOLERANCE: f64 = 0.01;
/// Inputs and outputs of the switches.
pub const SIZES: [usize; 6] = [1, 2, 3, 4, 6, 8];
/// The same with places in front of the lines.
pub const WITH_PLACES: [usize; 4] = [1, 2, 3, 4];
/// Data field of the frames, in bytes.
const FRAME: u16 = 2048;
/// Frames of each sender in its send queue, the switch and the line; more than an input buffers.
const QUEUED: usize = 24;
/// Batches of the confidence interval.
const BATCHES: usize = 20;

/// State of an output: heads that want it, and frames in front of its line.
type Output = (u8, u8);

/// Returns the saturation throughput per output of an N × N switch with FIFO inputs.
///
/// The state has the outputs in descending order. In a slot, each output serves one head, and each
/// served input gets a head for a random output. The order of service does not change the state.
///
/// With a place in front of each line, the line takes the frame from there, or a head if the place
/// is empty. Then another head may cross into the free place within the same slot.
pub fn saturation(inputs: usize, has_places: bool) -> f64 {
    let mut start: Vec<Output> = vec![(0, 0); inputs];
    start[0].0 = inputs as u8;
    let mut shares: BTreeMap<Vec<Output>, f64> = BTreeMap::from([(start, 1.0)]);
    let mut throughput = 0.0;
    for _ in 0..200 {
        let mut next: BTreeMap<Vec<Output>, f64> = BTreeMap::new();
        let mut busy = 0.0;
        for (state, share) in &shares {
            busy += share * state.iter().filter(|output| output.0 + output.1 > 0).count() as f64;
            let mut after: Vec<Output> = state.iter().map(|output| served(*output, has_places)).collect();
            after.sort_unstable_by(|a, b| b.cmp(a));
            let heads = |state: &[Output]| state.iter().map(|output| u32::from(output.0)).sum::<u32>();
            let new = inputs as u32 - heads(&after);
            let mut arrivals = BTreeMap::from([(after, *share)]);
            (0..new).for_each(|_| arrivals = one_more(&arrivals));
            for (state, share) in arrivals {
                *next.entry(state).or_default() += share;
            }
        }
        throughput = busy / inputs as f64;
        shares = next;
    }
    throughput
}

/// Returns the state of an output after a slot, before new heads.
fn served((heads, placed): Output, has_places: bool) -> Output {
    let behind = (heads + placed).saturating_sub(1);
    let waits = u8::from(has_places && behind > 0);
    (behind - waits, waits)
}

/// Adds a head for a random output. Equal outputs are one case.
fn one_more(states: &BTreeMap<Vec<Output>, f64>) -> BTreeMap<Vec<Output>, f64> {
    let mut next = BTreeMap::new();
    for (state, share) in states {
        let mut first = 0;
        while first < state.len() {
            let equal = state[first..].iter().take_while(|output| **output == state[first]).count();
            let mut more = state.clone();
            more[first].0 += 1;
            more.sort_unstable_by(|a, b| b.cmp(a));
            *next.entry(more).or_insert(0.0) += share * equal as f64 / state.len() as f64;
            first += equal;
        }
    }
    next
}

/// Senders and receivers at one switch. Without places, each input has one receive buffer and a
/// fast line.
fn lab(inputs: usize, has_places: bool) -> String {
    let (queueing, rate, credits) = if has_places { ("fifo", "1GFC", 16) } else { ("any", "128GFC", 1) };
    format!(
        r#"
        [run]
        duration = "1ms"
        [timers]
        hold_time = "30min"
        e_d_tov = "50min"
        r_a_tov = "60min"
        [switch.sw]
        domain = 1
        forwarding = "store-and-forward"
        queueing = "{queueing}"
        crossbar = {{ speedup = 1.0, egress_buffers = 1 }}
        latency = "0s"
        [host."in{{1..{inputs}}}"]
        discovery = false
        [host."out{{1..{inputs}}}"]
        discovery = false
        [[link]]
        from = "in{{1..{inputs}}}"
        to = "sw"
        rate = "{rate}"
        length = "1mm"
        credits = {credits}
        [[link]]
        from = "out{{1..{inputs}}}"
        to = "sw"
        rate = "1GFC"
        length = "1mm"
        "#
    )
}

/// Returns the row of a switch.
pub fn rows(inputs: usize, has_places: bool, sample: Sample) -> Result<Vec<Row>, Failure> {
    let mut world = World::new(parse("karol", &lab(inputs, has_places))?);
    world.log_in();
    let slot_ps = (u64::from(FRAME) + 60) * 160_000 / 17;
    let ids: Vec<FcId> = world.nports.nodes.iter().map(|node| node.port_id).collect();
    let mut bed = Bed { world, ids, inputs, rng: Xoshiro256PlusPlus::seed_from_u64(inputs as u64), frames: 0 };
    let slots = sample.of(3_000.0, 20_000.0) as u64;
    for input in 0..inputs {
        (0..QUEUED).for_each(|_| bed.send(input));
    }
    let start_ps = bed.world.net.now();
    let mut delivered = [0_u64; BATCHES + 1];
    for (batch, count) in delivered.iter_mut().enumerate() {
        *count = bed.run(start_ps + (batch as u64 + 1) * slots * slot_ps);
    }
    // The first batch is warm-up.
    let shares: Vec<f64> = delivered[1..].iter().map(|count| *count as f64 / (slots * inputs as u64) as f64).collect();
    let ours = ConfidenceInterval::of_samples(&shares);
    let theory = saturation(inputs, has_places);
    let (basis, id, words) = match has_places {
        false => (BASIS, "karol", ""),
        true => (PLACES, "karol-places", ", a place at each line"),
    };
    let row = basis.row(
        format!("{id}-{inputs}"),
        format!("{inputs} × {inputs}{words}: frames per slot and output"),
        "of the line",
        theory,
        ours.map(|ours| ours.mean),
        TOLERANCE * theory,
    );
    Ok(vec![row.interval(ours.map_or(f64::INFINITY, |ours| ours.half_width))])
}

/// A switch with saturated inputs.
struct Bed {
    world: World,
    /// Addresses of the senders, then of the receivers.
    ids: Vec<FcId>,
    inputs: usize,
    rng: Xoshiro256PlusPlus,
    frames: u16,
}

impl Bed {
    /// Queues a frame for a random output.
    fn send(&mut self, input: usize) {
        let output = self.inputs + self.rng.random_range(0..self.inputs);
        self.frames = self.frames.wrapping_add(1);
        let ids = SeqIds {
            s_id: self.ids[input],
            d_id: self.ids[output],
            ox_id: self.frames,
            rx_id: input as u16,
            seq_id: 0,
            from_responder: true,
        };
        self.world.net.send_data(input as u16, SeqTx::new(ids, FRAME, 0, 0, FRAME.into()));
    }

    /// Runs until a time, and returns the number of frames delivered meanwhile. Each is replaced by
    /// another one of its sender.
    fn run(&mut self, until_ps: u64) -> u64 {
        let mut delivered = 0;
        while let Some(event) = self.world.net.step(until_ps) {
            let NetEvent::Deliver { nport, frame } = event else { continue };
            let now = self.world.net.now();
            self.world.net.release(nport, now);
            if frame.is_data() {
                delivered += 1;
                self.send(frame.rx_id().into());
            } else if let Some(message) = frame.message() {
                self.world.net.fc.messages.deliver(message);
            }
        }
        delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table I of the paper.
    #[test]
    fn the_chain_gives_the_published_table() {
        let published = [1.0, 0.75, 0.6825, 0.6553, 0.6399, 0.6302, 0.6234, 0.6184];
        for (inputs, published) in (1..).zip(published) {
            assert!((saturation(inputs, false) - published).abs() < 6e-5, "{inputs}: {}", saturation(inputs, false));
        }
    }
}
