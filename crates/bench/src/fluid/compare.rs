//! Comparison of measured rates with those of the fluid model.

use super::fill::Filled;
use super::network::Network;

/// Relative difference between a rate and its prediction that is accepted.
pub const TOLERANCE: f64 = 0.03;
/// Throughput of saturated inputs with one FIFO queue each, 2 - √2, as the number of ports grows
/// (Karol, Hluchyj, Morgan 1987).
pub const HEAD_OF_LINE: f64 = 0.586;
/// Excess over a capacity that is accepted, because a measurement begins and ends within a request.
const EXCESS: f64 = 0.01;
/// Part of its share in a queue that a flow may need at most if it is limited elsewhere.
const CLEARLY_LESS: f64 = 0.7;

/// Compares `measured` requests per second of each flow with the prediction.
///
/// Returns the number of flows whose rates were compared one by one.
///
/// # Errors
///
/// One line for each deviation.
pub fn judge(network: &Network, filled: &Filled, measured: &[f64]) -> Result<usize, String> {
    let mut wrong = Vec::new();
    let blocked = blocked(network);
    let spread = |flow: usize| {
        let ways = network.random_ways[flow];
        let in_flight: u32 = network.flows.iter().map(|flow| flow.depth).sum();
        (ways - 1) as f64 / f64::from(in_flight.max(1))
    };
    let widest = (0..measured.len()).map(spread).fold(0.0, f64::max);
    for station in &network.stations {
        let used = station.used(measured) / station.capacity;
        if used > 1.0 + EXCESS {
            wrong.push(format!("{} carries {:.1} % of its capacity", station.name, 100.0 * used));
        }
    }
    let mut compared = 0;
    for (flow, &rate) in measured.iter().enumerate() {
        let name = describe(network, flow);
        if let Some(group) = blocked.iter().find(|group| group.contains(&flow)) {
            let least = group.iter().map(|&other| filled.rates[other]).fold(f64::MAX, f64::min);
            if rate < HEAD_OF_LINE * least * (1.0 - widest) {
                wrong.push(format!("{name} gets {rate:.0}/s, less than {HEAD_OF_LINE} of {least:.0}/s behind FIFO queues"));
            }
            continue;
        }
        if !blocked.is_empty() || !filled.converged {
            continue;
        }
        let limits = filled.bottlenecks[flow].iter().map(|&station| &network.stations[station]);
        let used = |station: &super::fill::Station| station.used(measured) / station.capacity;
        let most = limits.clone().max_by(|a, b| used(a).total_cmp(&used(b)));
        if let Some(most) = most
            && used(most) < 1.0 - TOLERANCE - widest
        {
            wrong.push(format!("{name} is limited by {}, which is used to {:.1} %", most.name, 100.0 * used(most)));
        }
        if is_determined(network, filled, flow) {
            compared += 1;
            let expected = filled.rates[flow];
            if (rate / expected - 1.0).abs() > TOLERANCE + widest {
                let limits: Vec<&str> = limits.map(|station| station.name.as_str()).collect();
                let off = 100.0 * (rate / expected - 1.0);
                wrong.push(format!("{name} gets {rate:.0}/s, expected {expected:.0}/s ({off:+.1} %) by {limits:?}"));
            }
        }
    }
    if wrong.is_empty() { Ok(compared) } else { Err(wrong.join("\n")) }
}

/// Returns the groups of flows that block each other behind FIFO queues, directly or through others.
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

/// Returns whether theory fixes the rate of a flow, see [`super`].
fn is_determined(network: &Network, filled: &Filled, flow: usize) -> bool {
    if !network.ample && !network.single_output {
        return false;
    }
    filled.bottlenecks[flow].iter().any(|&at| {
        let station = &network.stations[at];
        let Some(queue) = station.share.queue_of(flow) else { return false };
        let per_request = |other: usize| filled.rates[other] / f64::from(network.flows[other].depth);
        let share = per_request(flow);
        let waits_only_here = |&other: &usize| {
            let full = |&s: &usize| filled.saturated[s] && s != at;
            let uses = |&s: &usize| network.stations[s].uses.iter().any(|used| used.0 == other);
            let elsewhere = (0..network.stations.len()).filter(full).filter(uses).count() > 0;
            if filled.bottlenecks[other].contains(&at) { !elsewhere } else { per_request(other) < CLEARLY_LESS * share }
        };
        queue.len() == 1 || queue.iter().all(waits_only_here)
    })
}

fn describe(network: &Network, flow: usize) -> String {
    let it = &network.flows[flow];
    let verb = if it.write { "writes" } else { "reads" };
    format!("flow {flow} (host {}, storage {}, {verb} of {} B)", it.host, it.storage, it.bytes)
}
