//! The parallelism that a lab offers, computed from the recorded events of a part of the run.

use super::plan::{Nodes, Plan, ends};
use crate::net::{NEVER, parts};
use crate::world::World;
use sanloom_fc::san::Lab;

/// The parallelism of a lab with some number of parts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Offer {
    /// Number of parts; less than asked for if the lab has fewer independent nodes.
    pub parts: usize,
    /// Shortest time between an event of one part and its effect on another, in ps.
    pub lookahead_ps: u64,
    /// Mean number of events of the whole lab within the lookahead.
    pub events_in_lookahead: f64,
    /// Events of all parts per event of the longest chain of events that wait for each other.
    /// This is the speed-up on that many cores if each event takes the same time and
    /// synchronisation none.
    pub parallelism: f64,
    /// Events of all parts per event of the busiest part: the speed-up if no part ever waits.
    pub balance: f64,
}

/// Recorded events in their order.
pub(super) struct Profile {
    /// Time in ps and node of each event.
    events: Vec<(u64, usize)>,
    nodes: Nodes,
}

impl Profile {
    /// Ends the recording of the events of a world.
    pub fn take(world: &mut World) -> Profile {
        let (lab, nodes) = (world.lab.clone(), Nodes::of(&world.lab));
        let recorded = parts::end_profile(&mut world.net);
        let node = |place: Result<(u32, bool), u32>| match place {
            Ok((lane, by_sender)) => Some(ends(&lab, lane)[usize::from(!by_sender)]),
            Err(timer) => world.node_of_timer(timer),
        };
        let events = recorded.into_iter().filter_map(|(at_ps, place)| Some((at_ps, nodes.index(node(place)?))));
        Profile { events: events.collect(), nodes }
    }

    /// Returns the number of events of each node.
    pub fn load(&self) -> Vec<u64> {
        let mut load = vec![0; self.nodes.count()];
        self.events.iter().for_each(|&(_, node)| load[node] += 1);
        load
    }

    /// Returns the parallelism with at most `parts` parts, or `None` if the lab cannot be divided.
    pub fn offer(&self, lab: &Lab, world: &World, parts: usize) -> Option<Offer> {
        Some(self.offer_of(&Plan::new(lab, &world.net, &self.load(), parts)?))
    }

    /// Returns the parallelism of a division.
    pub fn offer_of(&self, plan: &Plan) -> Offer {
        // The end of each event in units of one event, by part.
        let mut ends: Vec<Vec<(u64, u64)>> = vec![Vec::new(); plan.parts];
        // For each part, the number of events of each other part that precede its next event.
        let mut before = vec![vec![0; plan.parts]; plan.parts];
        for &(at_ps, node) in &self.events {
            let part = usize::from(plan.part_of[node]);
            let mut begin = ends[part].last().map_or(0, |&(_, end)| end);
            for other in (0..plan.parts).filter(|&other| plan.lookahead_ps[other][part] != NEVER) {
                let count = &mut before[part][other];
                let affects = |&(time, _): &(u64, u64)| time + plan.lookahead_ps[other][part] <= at_ps;
                while ends[other].get(*count).is_some_and(affects) {
                    *count += 1;
                }
                if let Some(&(_, end)) = count.checked_sub(1).and_then(|last| ends[other].get(last)) {
                    begin = begin.max(end);
                }
            }
            ends[part].push((at_ps, begin + 1));
        }
        let all = self.events.len() as f64;
        let longest = ends.iter().filter_map(|ends| ends.last()).map(|&(_, end)| end).max().unwrap_or(1);
        let busiest = ends.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let length_ps = match (self.events.first(), self.events.last()) {
            (Some(&(first, _)), Some(&(last, _))) => (last - first).max(1),
            _ => 1,
        };
        let lookahead_ps = plan.lookahead_ps.iter().flatten().copied().min().unwrap_or(NEVER);
        Offer {
            parts: plan.parts,
            lookahead_ps,
            events_in_lookahead: all * lookahead_ps.min(length_ps) as f64 / length_ps as f64,
            parallelism: all / longest as f64,
            balance: all / busiest as f64,
        }
    }
}
