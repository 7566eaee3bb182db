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

/// Number of flows by the rules that apply to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    pub flows: usize,
    /// Flows whose rates were compared one by one.
    pub one_by_one: usize,
    /// Flows of writes whose rates would be determined if requests did not advance in windows.
    pub windows: usize,
    /// Flows behind FIFO queues with the bound of independent outputs.
    pub behind_fifo: usize,
    /// Flows behind FIFO queues with the bound of runs of frames.
    pub behind_runs: usize,
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Compared) {
        self.flows += other.flows;
        self.one_by_one += other.one_by_one;
        self.windows += other.windows;
        self.behind_fifo += other.behind_fifo;
        self.behind_runs += other.behind_runs;
    }
}

/// Compares `measured` requests per second of each flow, over `seconds`, with the prediction.
///
/// # Errors
///
/// One line for each deviation.
pub fn judge(network: &Network, filled: &Filled, measured: &[f64], seconds: f64) -> Result<Compared, String> {
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
    let mut compared = Compared { flows: measured.len(), ..Compared::default() };
    for (flow, &rate) in measured.iter().enumerate() {
        let name = describe(network, flow);
        let used = |at: usize| network.stations[at].used(measured) / network.stations[at].capacity;
        let full: Vec<usize> =
            delaying(network, filled, flow).into_iter().flat_map(|flow| nearly_full(network, filled, flow)).collect();
        let most = full.iter().copied().max_by(|&a, &b| used(a).total_cmp(&used(b)));
        let most = most.map(|at| (network.stations[at].name.as_str(), used(at)));
        if let Some(group) = blocked.iter().find(|group| group.contains(&flow)) {
            let least = group.iter().map(|&other| filled.rates[other]).fold(f64::MAX, f64::min);
            let has_runs = group.iter().any(|&other| network.fast_source[other]);
            *if has_runs { &mut compared.behind_runs } else { &mut compared.behind_fifo } += 1;
            let depth = |flow: usize| f64::from(network.flows[flow].depth);
            let part = match has_runs {
                true => depth(flow) / group.iter().map(|&other| depth(other)).sum::<f64>(),
                false => HEAD_OF_LINE,
            };
            let accepted = part * (1.0 - TOLERANCE - widest);
            if rate < accepted * least && most.is_none_or(|(_, used)| used < accepted) {
                wrong.push(format!("{name} gets {rate:.0}/s, less than {part:.3} of {least:.0}/s behind FIFO queues"));
            }
            continue;
        }
        if !blocked.is_empty() {
            continue;
        }
        if let Some((station, used)) = most
            && used
                < 1.0
                    - TOLERANCE
                    - widest
                    - early(flow, false)
                    - idle(network, filled, flow)
                    - pause(network, filled, flow)
        {
            wrong.push(format!("{name} is limited by {station}, which is used to {:.1} %", 100.0 * used));
        }
        if let Some(determined) = determined(network, filled, flow) {
            if determined.waits_in_windows {
                compared.windows += 1;
                continue;
            }
            compared.one_by_one += 1;
            let expected = filled.rates[flow];
            let in_node = filled.bottlenecks[flow].iter().any(|&at| network.stations[at].in_node);
            let early = early(flow, in_node || determined.in_queue);
            let tolerance = TOLERANCE + widest + early;
            let off = rate / expected - 1.0;
            if off < -tolerance - pause(network, filled, flow) || (off > tolerance && !determined.at_least) {
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

/// Returns the part of the time in which a flow of writes sends no data, because its commands have
/// waited behind the data of the previous window.
fn pause(network: &Network, filled: &Filled, flow: usize) -> f64 {
    network.turnaround_s[flow] * filled.rates[flow] / f64::from(network.flows[flow].depth)
}

/// Returns the flows whose windows of data delay a flow of writes at a station other than `at`.
/// A window that occupies the station for a negligible part of the time delays none.
fn companions(network: &Network, filled: &Filled, flow: usize, at: Option<usize>) -> Vec<usize> {
    if !network.flows[flow].write {
        return Vec::new();
    }
    let stations = network.stations.iter().enumerate().filter(|&(number, _)| Some(number) != at);
    let delays = stations.filter(|(_, station)| station.holds_bursts).flat_map(|(_, station)| {
        let part = |flow: usize| station.units(flow) * filled.rates[flow] / station.capacity;
        let flows = station.share.companions(flow).into_iter();
        flows.filter(move |&other| station.data.contains(&other) && part(other) > UNEQUAL)
    });
    delays.collect()
}

/// Returns a flow and the flows whose windows of data delay it, directly or through others.
fn delaying(network: &Network, filled: &Filled, flow: usize) -> Vec<usize> {
    let mut found = vec![flow];
    let mut next = 0;
    while next < found.len() {
        for other in companions(network, filled, found[next], None) {
            if !found.contains(&other) {
                found.push(other);
            }
        }
        next += 1;
    }
    found
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
/// elsewhere. A window of writes arrives there as a whole, so a request waits for half of it.
fn away(network: &Network, filled: &Filled, flow: usize, at: usize) -> f64 {
    let others = network.stations.iter().enumerate().filter(|&(number, _)| number != at);
    let of_flow = others.flat_map(|(_, station)| station.uses.iter().map(move |used| (used, station.capacity)));
    let seconds: f64 = of_flow.filter(|(used, _)| used.0 == flow).map(|(used, capacity)| used.1 / capacity).sum();
    let at_once = if network.flows[flow].write { f64::from(network.flows[flow].depth) / 2.0 } else { 1.0 };
    seconds * at_once * filled.rates[flow] / f64::from(network.flows[flow].depth)
}

/// A rate that theory fixes.
struct Determined {
    /// True if the flow shares a queue.
    in_queue: bool,
    /// True if other flows of the station may need less than the model expects.
    at_least: bool,
    /// True if windows of writes wait elsewhere, so that the rate is not fixed after all.
    waits_in_windows: bool,
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
        let most = away.iter().copied().fold(0.0, f64::max);
        let unequal = most - away.iter().copied().fold(1.0, f64::min);
        let alone = |full: Vec<usize>| full.iter().all(|&full| network.stations[full].uses.len() == 1);
        let is_write = network.flows[flow].write;
        let (fixed, apart) = match queue.len() {
            1 => (only_here(flow) || alone(full(flow)), false),
            _ if is_write => (queue.iter().all(waits_only_here), most > UNEQUAL),
            _ => (unequal <= UNEQUAL && queue.iter().all(waits_only_here), false),
        };
        let delayed = |other: usize| !companions(network, filled, other, Some(at)).is_empty();
        let at_least = |other: usize| !only_here(other) || delayed(other);
        fixed.then(|| Determined {
            in_queue: queue.len() > 1,
            at_least: station.uses.iter().any(|used| used.0 != flow && at_least(used.0)),
            waits_in_windows: apart || delayed(flow),
        })
    })
}

fn describe(network: &Network, flow: usize) -> String {
    let it = &network.flows[flow];
    let verb = if it.write { "writes" } else { "reads" };
    format!("flow {flow} (host {}, storage {}, {verb} of {} B)", it.host, it.storage, it.bytes)
}
