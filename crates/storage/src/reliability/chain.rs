//! Mean time to absorption of a Markov chain.
//!
//! States are eliminated as Grassmann, Taksar and Heyman (1985) do: without a subtraction. Each
//! result is a sum of products of positive numbers, so rates that differ by many orders of
//! magnitude cost no digits.

use super::{Component, Reliability, ReliabilityError};
use std::collections::HashMap;

/// Most states of one chain.
const MAX_STATES: usize = 1_000;

/// Mean time to data loss of the Markov chain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// Mean time in hours, from the start with all parts in order.
    pub hours: f64,
    /// States of the chain.
    pub states: usize,
    /// The chain has all groups and components. Otherwise it would have more than 1,000 states, and
    /// the rates of its parts are added up. The error is then about the share of time in repair.
    pub is_exact: bool,
}

/// A transition of a part: its rate, and its next state unless data are lost.
type Transition = (f64, Option<Part>);

/// State of a part: members that are missing, and failed disks that have not been replaced.
type Part = (u32, u32);

/// A group or a component, as a part.
#[derive(Clone, Copy, Debug)]
struct Rules {
    members: u32,
    tolerated: u32,
    failure: f64,
    repair: f64,
    /// `None`: replacements take no time.
    replacement: Option<f64>,
    spares: u32,
    /// Probability that the repair of the last tolerated failure loses data.
    error: f64,
}

impl Rules {
    fn group(of: &Reliability) -> Rules {
        Rules {
            members: of.organisation.members,
            tolerated: of.organisation.tolerated,
            failure: 1.0 / of.mttf_h,
            repair: 1.0 / of.mttr_h,
            replacement: (of.replacement_h > 0.0).then(|| 1.0 / of.replacement_h),
            spares: of.spares,
            error: of.rebuild_error(),
        }
    }

    fn component(of: &Component) -> Rules {
        Rules {
            members: of.copies,
            tolerated: of.copies - 1,
            failure: 1.0 / of.mttf_h,
            repair: 1.0 / of.mttr_h,
            replacement: None,
            spares: 0,
            error: 0.0,
        }
    }

    fn transitions(&self, (missing, unreplaced): Part, all: &mut Vec<Transition>) {
        all.clear();
        let failed = (missing + 1, unreplaced + u32::from(self.replacement.is_some()));
        let next = (missing < self.tolerated).then_some(failed);
        all.push((f64::from(self.members - missing) * self.failure, next));
        // Disks that are neither members nor failed.
        let usable = self.spares + missing - unreplaced;
        if missing > 0 && usable > 0 {
            let error = if missing == self.tolerated { self.error } else { 0.0 };
            all.push((self.repair * (1.0 - error), Some((missing - 1, unreplaced))));
            all.push((self.repair * error, None));
        }
        if let (Some(replacement), 1..) = (self.replacement, unreplaced) {
            all.push((replacement, Some((missing, unreplaced - 1))));
        }
        all.retain(|(rate, _)| *rate > 0.0);
    }
}

/// Returns the mean time of a chain of equal groups and of components, and its number of states;
/// `None` if there are too many. Equal groups are sorted, because only their numbers matter.
fn mean(groups: Option<(Rules, usize)>, components: &[Rules]) -> Option<(f64, usize)> {
    let count = groups.map_or(0, |(_, count)| count);
    let rules =
        |at: usize| if at < count { groups.map(|(rules, _)| rules) } else { components.get(at - count).copied() };
    let start: Vec<Part> = vec![(0, 0); count + components.len()];
    let mut numbers = HashMap::from([(start.clone(), 0_usize)]);
    let mut states = vec![start];
    let mut edges: Vec<Vec<(f64, Option<usize>)>> = Vec::new();
    let mut found = Vec::new();
    while let Some(state) = states.get(edges.len()).cloned() {
        let mut own: Vec<(f64, Option<usize>)> = Vec::new();
        let mut at = 0;
        while let (Some(&part), Some(rules)) = (state.get(at), rules(at)) {
            // Equal groups beside each other have equal transitions.
            let limit = if at < count { count } else { at + 1 };
            let same = state[at..limit].iter().take_while(|other| **other == part).count();
            rules.transitions(part, &mut found);
            for &(rate, next) in &found {
                let target = next.map(|next| {
                    let mut other = state.clone();
                    other[at] = next;
                    other[..count].sort_unstable();
                    let number = numbers.len();
                    *numbers.entry(other).or_insert_with_key(|other| {
                        states.push(other.clone());
                        number
                    })
                });
                own.push((rate * same as f64, target));
            }
            at += same;
        }
        edges.push(own);
        if states.len() > MAX_STATES {
            return None;
        }
    }
    Some((absorption(&edges), states.len()))
}

/// Mean time from state 0 until a transition without a target.
fn absorption(edges: &[Vec<(f64, Option<usize>)>]) -> f64 {
    let count = edges.len();
    let mut rates = vec![vec![0.0; count]; count];
    let mut exits = vec![0.0; count];
    let mut costs = vec![1.0; count];
    for (from, own) in edges.iter().enumerate() {
        for &(rate, target) in own {
            match target {
                Some(to) => rates[from][to] += rate,
                None => exits[from] += rate,
            }
        }
    }
    for gone in (1..count).rev() {
        let row = std::mem::take(&mut rates[gone]);
        let out = exits[gone] + row[..gone].iter().sum::<f64>();
        for from in 0..gone {
            let share = rates[from][gone] / out;
            if share == 0.0 {
                continue;
            }
            for to in (0..gone).filter(|to| *to != from) {
                rates[from][to] += share * row[to];
            }
            exits[from] += share * exits[gone];
            costs[from] += share * costs[gone];
        }
    }
    costs[0] / exits[0]
}

impl Reliability {
    /// Returns the mean time to data loss by a Markov chain.
    ///
    /// # Errors
    ///
    /// Parameters outside their ranges; see [`Reliability::check`].
    pub fn markov(&self) -> Result<Mean, ReliabilityError> {
        self.check()?;
        let group = Rules::group(self);
        let count = self.organisation.groups as usize;
        let components: Vec<Rules> = self.components.iter().map(Rules::component).collect();
        // A chain of so many groups has at least so many states.
        let whole = (count < MAX_STATES).then(|| mean(Some((group, count)), &components)).flatten();
        if let Some((hours, states)) = whole {
            return Ok(Mean { hours, states, is_exact: true });
        }
        let one = mean(Some((group, 1)), &[]).map(|(hours, states)| (count as f64 / hours, states));
        let others = components.iter().filter_map(|rules| mean(None, &[*rules]));
        let parts = one.into_iter().chain(others.map(|(hours, states)| (1.0 / hours, states)));
        let (rate, states) = parts.fold((0.0, 0), |(rate, states), part| (rate + part.0, states + part.1));
        Ok(Mean { hours: 1.0 / rate, states, is_exact: false })
    }
}
