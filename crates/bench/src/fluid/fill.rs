//! Water filling: max-min fair rates of flows over stations with nested shares.

use std::collections::BTreeSet;

/// Number of times that all limits are computed before the filling gives up.
const ROUNDS: usize = 400;
/// Factor of the step of a flow whose rate moves in the same direction as in the round before.
/// Flows between two stations of nearly equal capacity move by the difference in each round.
const LONGER: f64 = 1.05;
/// Factor of the step of a flow whose rate moves in the other direction.
const SHORTER: f64 = 0.5;
/// Longest step of a flow, in steps to its limit.
const LONGEST_STEP: f64 = 100.0;
/// Relative change of a rate that counts as none.
const STILL: f64 = 1e-9;
/// Relative distance from its capacity at which a station counts as saturated.
const FULL: f64 = 1e-6;
/// Rate of a flow without any limit, in requests per second.
const UNLIMITED: f64 = 1e15;

/// A resource that all of its flows share: a line, a trunk, a crossbar, a bus, a processor.
#[derive(Clone, Debug)]
pub struct Station {
    /// Name for reports.
    pub name: String,
    /// Units per second: bytes, or 1 for a resource whose unit is its time.
    pub capacity: f64,
    /// The order of service.
    pub share: Share,
    /// Units of one request of each flow.
    pub uses: Vec<(usize, f64)>,
    /// True for a resource of a node, which serves data before or after the line on which they are
    /// counted.
    pub in_node: bool,
    /// Flows whose data pass.
    pub data: BTreeSet<usize>,
    /// True if frames can arrive faster than the station serves them, so that they queue for a time
    /// even if the station is not full.
    pub holds_bursts: bool,
}

/// The order of service of a station, as a tree. Siblings get equal numbers of frames for each unit
/// of weight, and a sibling that needs less leaves the rest to the others.
#[derive(Clone, PartialEq, Debug)]
pub enum Share {
    /// A flow, or the part of a flow that takes this way.
    Flow {
        flow: usize,
        /// Frames of one request.
        frames: f64,
        weight: f64,
    },
    /// Inputs of an arbiter, or flows in one queue.
    Group {
        weight: f64,
        /// True if the members share one queue, so that the requests that wait here decide; false
        /// if an arbiter serves them in turn.
        queue: bool,
        members: Vec<Share>,
    },
}

/// Rates of flows.
#[derive(Clone, Debug)]
pub struct Filled {
    /// Requests per second of each flow.
    pub rates: Vec<f64>,
    /// Stations without spare capacity.
    pub saturated: Vec<bool>,
    /// For each flow, the stations that limit it.
    pub bottlenecks: Vec<Vec<usize>>,
    /// True if the last round changed no rate.
    pub converged: bool,
}

impl Share {
    fn weight(&self) -> f64 {
        match self {
            Share::Flow { weight, .. } | Share::Group { weight, .. } => *weight,
        }
    }

    /// Returns the frames per second of the demands.
    fn demand(&self, demands: &[f64]) -> f64 {
        match self {
            Share::Flow { flow, frames, .. } => demands[*flow] * frames,
            Share::Group { members, .. } => members.iter().map(|member| member.demand(demands)).sum(),
        }
    }

    /// Distributes `budget` frames per second. Adds the requests per second of each flow to
    /// `rates`.
    fn distribute(&self, budget: f64, demands: &[f64], rates: &mut [f64]) {
        match self {
            Share::Flow { flow, frames, .. } => rates[*flow] += (budget / frames).min(demands[*flow]),
            Share::Group { members, .. } => {
                let wanted: Vec<f64> = members.iter().map(|member| member.demand(demands)).collect();
                let level = level(&wanted, members, budget);
                for (member, wanted) in members.iter().zip(wanted) {
                    member.distribute((level * member.weight()).min(wanted), demands, rates);
                }
            }
        }
    }

    /// Returns the innermost queue that contains a flow, as the flows in it.
    pub fn queue_of(&self, wanted: usize) -> Option<Vec<usize>> {
        let Share::Group { queue, members, .. } = self else { return None };
        let inner = members.iter().find_map(|member| member.queue_of(wanted));
        let flows = self.flows();
        inner.or_else(|| (*queue && flows.contains(&wanted)).then_some(flows))
    }

    /// Returns the flows that share a queue with a flow.
    pub fn companions(&self, wanted: usize) -> Vec<usize> {
        match self {
            Share::Flow { .. } => Vec::new(),
            Share::Group { queue: true, .. } => {
                let flows = self.flows();
                if flows.contains(&wanted) {
                    flows.into_iter().filter(|&other| other != wanted).collect()
                } else {
                    vec![]
                }
            }
            Share::Group { members, .. } => members.iter().flat_map(|member| member.companions(wanted)).collect(),
        }
    }

    /// Returns whether an arbiter serves a trunk in turn with other inputs. Its lines have a turn
    /// each, as long as frames wait at them, so its share is between that of one input and that of
    /// all lines.
    pub fn has_trunk_among_inputs(&self) -> bool {
        let Share::Group { queue: false, members, .. } = self else { return false };
        let several = members.len() > 1;
        members.iter().any(|member| (several && member.weight() != 1.0) || member.has_trunk_among_inputs())
    }

    /// Returns the flows of the tree.
    pub fn flows(&self) -> Vec<usize> {
        let mut flows = match self {
            Share::Flow { flow, .. } => vec![*flow],
            Share::Group { members, .. } => members.iter().flat_map(Share::flows).collect(),
        };
        flows.sort_unstable();
        flows.dedup();
        flows
    }
}

/// Returns the water level at which the members get `budget` together.
fn level(wanted: &[f64], members: &[Share], budget: f64) -> f64 {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let full_at = |at: usize| wanted[at] / members[at].weight();
    order.sort_by(|&a, &b| full_at(a).total_cmp(&full_at(b)));
    let mut left = budget;
    let mut weight: f64 = members.iter().map(Share::weight).sum();
    for at in order {
        if full_at(at) * weight > left {
            return left / weight;
        }
        left -= wanted[at];
        weight -= members[at].weight();
    }
    f64::MAX
}

impl Station {
    /// Returns the units of one request of a flow.
    pub fn units(&self, flow: usize) -> f64 {
        self.uses.iter().find(|used| used.0 == flow).map_or(0.0, |used| used.1)
    }

    /// Returns the units per second at the given rates.
    pub fn used(&self, rates: &[f64]) -> f64 {
        self.uses.iter().map(|&(flow, units)| rates[flow] * units).sum()
    }

    /// Returns the rates that the station alone would give to flows with these demands.
    fn serve(&self, demands: &[f64]) -> Vec<f64> {
        let give = |budget: f64| {
            let mut rates = vec![0.0; demands.len()];
            self.share.distribute(budget, demands, &mut rates);
            rates
        };
        let all = self.share.demand(demands);
        let whole = give(all);
        if self.used(&whole) <= self.capacity {
            return whole;
        }
        // The frames that fit depend on the bytes of a frame, and these on the flows that send. The
        // units grow with the frames, so halving an interval finds them.
        let (mut fits, mut exceeds) = (0.0, all);
        while exceeds - fits > exceeds * STILL / 10.0 {
            let budget = (fits + exceeds) / 2.0;
            if self.used(&give(budget)) <= self.capacity {
                fits = budget;
            } else {
                exceeds = budget;
            }
        }
        give(fits)
    }
}

/// Computes the rates of `flows` flows.
///
/// Each round computes for one flow after the other what each station would give to it if it took
/// everything, while the other flows take their present rates. The rate of the flow moves towards
/// the least of these limits. At the fixed point each flow has a station that is full and at which
/// no other flow takes more than its share permits: the rates are max-min fair.
pub fn fill(stations: &[Station], flows: usize) -> Filled {
    let at: Vec<Vec<usize>> = (0..flows)
        .map(|flow| (0..stations.len()).filter(|&s| stations[s].uses.iter().any(|u| u.0 == flow)).collect())
        .collect();
    let mut limits = vec![vec![UNLIMITED; flows]; stations.len()];
    let mut rates = vec![UNLIMITED; flows];
    let mut steps = vec![1.0_f64; flows];
    let mut moves = vec![0.0_f64; flows];
    let mut converged = false;
    for _ in 0..ROUNDS {
        let mut change = 0.0_f64;
        for flow in 0..flows {
            let mut demands = rates.clone();
            demands[flow] = UNLIMITED;
            for &station in &at[flow] {
                limits[station][flow] = stations[station].serve(&demands)[flow];
            }
            let limit = at[flow].iter().map(|&station| limits[station][flow]).fold(UNLIMITED, f64::min);
            let rate = rates[flow];
            let distance = limit - rate;
            change = change.max((distance / rate).abs());
            if rate == UNLIMITED {
                rates[flow] = limit;
                continue;
            }
            let same_way = moves[flow] * distance;
            let factor = if same_way < 0.0 { SHORTER } else { LONGER };
            steps[flow] = (steps[flow] * factor).min(LONGEST_STEP);
            moves[flow] = distance;
            rates[flow] = (rate + steps[flow] * distance).max(rate / 2.0);
        }
        if change < STILL {
            converged = true;
            break;
        }
    }
    let saturated = stations.iter().map(|station| station.used(&rates) >= station.capacity * (1.0 - FULL)).collect();
    let limiting = |flow: usize| {
        let limits = &limits;
        let rate = rates[flow];
        at[flow].iter().copied().filter(move |&s| limits[s][flow] <= rate * (1.0 + FULL)).collect()
    };
    let bottlenecks = (0..flows).map(limiting).collect();
    Filled { rates, saturated, bottlenecks, converged }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(flow: usize) -> Share {
        Share::Flow { flow, frames: 1.0, weight: 1.0 }
    }

    fn turn(members: Vec<Share>) -> Share {
        Share::Group { weight: 1.0, queue: false, members }
    }

    fn station(capacity: f64, share: Share) -> Station {
        let uses = share.flows().into_iter().map(|flow| (flow, 1.0)).collect();
        let data = share.flows().into_iter().collect();
        Station { name: String::new(), capacity, share, uses, in_node: false, data, holds_bursts: true }
    }

    fn rates(stations: &[Station], flows: usize) -> Vec<f64> {
        let filled = fill(stations, flows);
        assert!(filled.converged);
        filled.rates.iter().map(|rate| (rate * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn flows_of_one_link_get_equal_rates_and_leave_what_they_do_not_need() {
        let shared = station(9.0, turn(vec![flow(0), flow(1), flow(2)]));
        assert_eq!(rates(std::slice::from_ref(&shared), 3), [3.0, 3.0, 3.0]);
        assert_eq!(rates(&[shared, station(1.0, flow(0))], 3), [1.0, 4.0, 4.0]);
    }

    #[test]
    fn a_link_with_fewer_flows_gives_more_to_those_that_need_it() {
        let links = [station(1.0, turn(vec![flow(0), flow(1), flow(2)])), station(1.0, turn(vec![flow(2), flow(3)]))];
        assert_eq!(rates(&links, 4), [0.333333, 0.333333, 0.333333, 0.666667]);
    }

    #[test]
    fn a_parking_lot_gives_half_to_the_last_input() {
        let first = turn(vec![flow(0), flow(1)]);
        let second = turn(vec![first.clone(), flow(2)]);
        let last = station(8.0, turn(vec![second, flow(3)]));
        assert_eq!(rates(&[last], 4), [1.0, 1.0, 2.0, 4.0]);
    }

    #[test]
    fn an_input_that_is_limited_elsewhere_leaves_its_share_to_the_other_inputs() {
        let group = turn(vec![flow(0), flow(1), flow(2)]);
        let shared = station(1.2, turn(vec![group, flow(3)]));
        assert_eq!(rates(&[shared, station(0.3, flow(3))], 4), [0.3, 0.3, 0.3, 0.3]);
    }

    #[test]
    fn frames_are_served_in_turn_whatever_their_length() {
        let share = turn(vec![flow(0), flow(1)]);
        let shared = Station { uses: vec![(0, 3.0), (1, 1.0)], ..station(4.0, share) };
        assert_eq!(rates(&[shared], 2), [1.0, 1.0]);
    }

    #[test]
    fn long_and_short_frames_fill_a_station_exactly() {
        // Data of two flows in different channels, and short frames of a third one behind the data
        // of the first: one more frame needs 78 bytes, but the average frame needs 1,371.
        let flow = |flow, frames, weight| Share::Flow { flow, frames, weight };
        let queue = |members| Share::Group { weight: 1.0, queue: true, members };
        let share = turn(vec![queue(vec![flow(0, 5.0, 320.0), flow(1, 2.0, 128.0)]), queue(vec![flow(2, 5.0, 320.0)])]);
        let line = Station { uses: vec![(0, 8524.0), (1, 156.0), (2, 8524.0)], capacity: 850e6, ..station(0.0, share) };
        let filled = fill(std::slice::from_ref(&line), 3);
        assert!(filled.converged);
        assert!((line.used(&filled.rates) / line.capacity - 1.0).abs() < 1e-8);
        assert!((filled.rates[1] / filled.rates[0] - 1.0).abs() < 1e-8, "{:?}", filled.rates);
    }

    #[test]
    fn two_stations_of_nearly_equal_capacity_have_a_solution() {
        // Each round moves the rates by the difference of the capacities.
        let heavy = Share::Group { weight: 4.0, queue: true, members: vec![flow(1)] };
        let line = station(6292.0, turn(vec![flow(0), heavy]));
        let processor = station(6296.0, turn(vec![flow(0), flow(1)]));
        assert_eq!(rates(&[line, processor], 2), [1258.4, 5033.6]);
    }
}
