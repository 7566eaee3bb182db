//! Comparison of measured rates with those of the fluid model.

use super::fill::Filled;
use super::network::{Flow, Network};

/// Relative difference between a rate and its prediction that is accepted.
pub const TOLERANCE: f64 = 0.03;
/// Throughput of saturated inputs with one FIFO queue each, 2 - √2, as the number of ports grows
/// (Karol, Hluchyj, Morgan 1987).
pub const HEAD_OF_LINE: f64 = 0.586;
/// Excess over a capacity that is accepted, because a measurement begins and ends within a request.
const EXCESS: f64 = 0.03;
/// Part of its share in a queue that a flow may need at most if it is limited elsewhere.
const CLEARLY_LESS: f64 = 0.7;
/// Use of a station from which on requests may queue there for a considerable time.
const NEARLY_FULL: f64 = 0.9;
/// Difference between the parts of the requests of two flows that do not wait in a common queue, up
/// to which they share it in proportion to their requests in flight.
const UNEQUAL: f64 = 0.015;

/// Compares `measured` requests per second of each flow, over `seconds`, with the prediction.
///
/// Returns the number of flows whose rates were compared one by one.
///
/// # Errors
///
/// One line for each deviation.
pub fn judge(network: &Network, filled: &Filled, measured: &[f64], seconds: f64) -> Result<usize, String> {
    let mut wrong = Vec::new();
    let blocked = blocked(network);
    let spread = |flow: usize| {
        let ways = network.random_ways[flow];
        let in_flight: u32 = network.flows.iter().map(|flow| flow.depth).sum();
        (ways - 1) as f64 / f64::from(in_flight.max(1))
    };
    let widest = (0..measured.len()).map(spread).fold(0.0, f64::max);
    // Flows in a queue advance by all of their requests, which the measurement may cut.
    let cut = |flow: usize| f64::from(network.flows[flow].depth) / (filled.rates[flow] * seconds);
    // Data are counted on a line: that of the receiver, before its bus, or that of the sender if
    // several flows have the same receiver.
    let counted_early = |flow: usize| {
        let receiver = |flow: &Flow| if flow.write { (flow.storage, true) } else { (flow.host, false) };
        let ours = receiver(&network.flows[flow]);
        network.flows.iter().filter(|other| receiver(other) == ours).count() > 1
    };
    let early = |flow: usize, in_node: bool| if in_node || counted_early(flow) { cut(flow) } else { 0.0 };
    for station in &network.stations {
        let used = station.used(measured) / station.capacity;
        let early = station.uses.iter().map(|used| early(used.0, station.in_node)).fold(0.0, f64::max);
        if used > 1.0 + EXCESS + early && widest == 0.0 {
            wrong.push(format!("{} carries {:.1} % of its capacity", station.name, 100.0 * used));
        }
    }
    let mut compared = 0;
    for (flow, &rate) in measured.iter().enumerate() {
        let name = describe(network, flow);
        let used = |at: usize| network.stations[at].used(measured) / network.stations[at].capacity;
        let full = nearly_full(network, filled, flow);
        let most = full.iter().copied().max_by(|&a, &b| used(a).total_cmp(&used(b)));
        let most = most.map(|at| (network.stations[at].name.as_str(), used(at)));
        if let Some(group) = blocked.iter().find(|group| group.contains(&flow)) {
            let least = group.iter().map(|&other| filled.rates[other]).fold(f64::MAX, f64::min);
            let accepted = HEAD_OF_LINE * (1.0 - TOLERANCE - widest);
            if rate < accepted * least && most.is_none_or(|(_, used)| used < accepted) {
                wrong.push(format!(
                    "{name} gets {rate:.0}/s, less than {HEAD_OF_LINE} of {least:.0}/s behind FIFO queues"
                ));
            }
            continue;
        }
        if !blocked.is_empty() {
            continue;
        }
        if let Some((station, used)) = most
            && used < 1.0 - TOLERANCE - widest - early(flow, false) - idle(network, filled, flow)
        {
            wrong.push(format!("{name} is limited by {station}, which is used to {:.1} %", 100.0 * used));
        }
        if let Some(determined) = determined(network, filled, flow) {
            compared += 1;
            let expected = filled.rates[flow];
            let in_node = filled.bottlenecks[flow].iter().any(|&at| network.stations[at].in_node);
            let early = early(flow, in_node || determined.in_queue);
            let tolerance = TOLERANCE + widest + early;
            let off = rate / expected - 1.0;
            if off < -tolerance || (off > tolerance && !determined.at_least) {
                let limits: Vec<&str> =
                    filled.bottlenecks[flow].iter().map(|&at| network.stations[at].name.as_str()).collect();
                let off = 100.0 * off;
                wrong.push(format!("{name} gets {rate:.0}/s, expected {expected:.0}/s ({off:+.1} %) by {limits:?}"));
            }
        }
    }
    if wrong.is_empty() { Ok(compared) } else { Err(wrong.join("\n")) }
}

/// Returns the groups of flows that block each other behind FIFO queues, directly or through
/// others.
fn blocked(network: &Network) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for inputs in &network.blocking {
        let mut joined = inputs.clone();
        let (touching, apart) = groups.into_iter().partition(|group| group.iter().any(|flow| inputs.contains(flow)));
        groups = apart;
        joined.extend::<Vec<usize>>(touching.concat());
        joined.sort_unstable();
        joined.dedup();
        groups.push(joined);
    }
    groups
}

/// Returns the part of the time in which each of the nearly full stations of a flow may be empty: a
/// closed network of k equal queues with n requests leaves a queue empty for (k - 1) / (n + k - 1).
fn idle(network: &Network, filled: &Filled, flow: usize) -> f64 {
    let nearly_full = nearly_full(network, filled, flow);
    let requests = |&at: &usize| network.stations[at].uses.iter().map(|used| network.flows[used.0].depth).sum::<u32>();
    let requests = nearly_full.iter().map(requests).min().unwrap_or(1);
    let others = nearly_full.len().saturating_sub(1) as f64;
    others / (f64::from(requests) + others)
}

/// Returns the stations of a flow at which requests may queue.
fn nearly_full(network: &Network, filled: &Filled, flow: usize) -> Vec<usize> {
    let full = |at: &usize| {
        let station = &network.stations[*at];
        station.uses.iter().any(|used| used.0 == flow) && station.used(&filled.rates) >= NEARLY_FULL * station.capacity
    };
    (0..network.stations.len()).filter(full).collect()
}

/// Returns the part of the requests of a flow that do not wait at the station `at`, but are served
/// elsewhere.
fn away(network: &Network, filled: &Filled, flow: usize, at: usize) -> f64 {
    let others = network.stations.iter().enumerate().filter(|&(number, _)| number != at);
    let of_flow = others.flat_map(|(_, station)| station.uses.iter().map(move |used| (used, station.capacity)));
    let seconds: f64 = of_flow.filter(|(used, _)| used.0 == flow).map(|(used, capacity)| used.1 / capacity).sum();
    seconds * filled.rates[flow] / f64::from(network.flows[flow].depth)
}

/// A rate that theory fixes.
struct Determined {
    /// True if the flow shares a queue.
    in_queue: bool,
    /// True if other flows of the station may need less than the model expects.
    at_least: bool,
}

/// Returns whether theory fixes the rate of a flow, see [`super`].
fn determined(network: &Network, filled: &Filled, flow: usize) -> Option<Determined> {
    let is_incast = network.single_output && network.backlogged.iter().all(|backlogged| *backlogged);
    if !network.ample && !is_incast {
        return None;
    }
    let full = |flow: usize| nearly_full(network, filled, flow);
    filled.bottlenecks[flow].iter().find_map(|&at| {
        let station = &network.stations[at];
        if station.share.has_trunk_among_inputs() {
            return None;
        }
        let queue = station.share.queue_of(flow)?;
        let per_request = |other: usize| filled.rates[other] / f64::from(network.flows[other].depth);
        let share = per_request(flow);
        let only_here = |other: usize| full(other).into_iter().all(|full| full == at);
        let waits_only_here = |&other: &usize| match filled.bottlenecks[other].contains(&at) {
            true => only_here(other),
            false => per_request(other) < CLEARLY_LESS * share,
        };
        let waiting = queue.iter().filter(|other| filled.bottlenecks[**other].contains(&at));
        let away: Vec<f64> = waiting.map(|&other| away(network, filled, other, at)).collect();
        let unequal = away.iter().copied().fold(0.0, f64::max) - away.iter().copied().fold(1.0, f64::min);
        let alone = |full: Vec<usize>| full.iter().all(|&full| network.stations[full].uses.len() == 1);
        let fixed = match queue.len() {
            1 => only_here(flow) || alone(full(flow)),
            _ => unequal <= UNEQUAL && queue.iter().all(waits_only_here),
        };
        let at_least = station.uses.iter().any(|used| used.0 != flow && !only_here(used.0));
        fixed.then_some(Determined { in_queue: queue.len() > 1, at_least })
    })
}

fn describe(network: &Network, flow: usize) -> String {
    let it = &network.flows[flow];
    let verb = if it.write { "writes" } else { "reads" };
    format!("flow {flow} (host {}, storage {}, {verb} of {} B)", it.host, it.storage, it.bytes)
}
