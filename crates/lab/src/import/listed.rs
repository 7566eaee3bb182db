//! Switches that inputs list without a port or a link to them.

use super::facts::{At, Facts, Os};
use super::note;
use super::plan::Plan;
use super::report::{Note, NoteKind};
use std::collections::{BTreeMap, BTreeSet};

/// Reports the switches that are not in the lab, and the parts of a fabric that no link joins.
/// `written` has the switches of the lab.
pub(super) fn report(facts: &Facts, plan: &Plan, written: &BTreeSet<usize>, notes: &mut Vec<Note>) {
    for index in (0..plan.switches.len()).filter(|index| !written.contains(index)) {
        let reason = "is in a list of switches, but no input has its ports, so it is not in the lab";
        let remedy = match os(plan, index) {
            Some(Os::NxOs) => "add its own show running-config, show topology and show flogi database",
            _ => "add its own switchshow and islshow, or the islshow of a neighbour",
        };
        note(facts, notes, NoteKind::Unplaced, &place(plan, index), &plan.switches[index].name, reason, remedy);
    }
    for index in apart(plan, written) {
        let reason = "has no link to other switches of its fabric, because no input tells its ISLs";
        let remedy = match os(plan, index) {
            Some(Os::NxOs) => "add the output of show topology, or write the [[isl]] by hand",
            _ => "add the output of islshow, or write the [[isl]] by hand",
        };
        note(facts, notes, NoteKind::Decision, &place(plan, index), &plan.switches[index].name, reason, remedy);
    }
}

fn os(plan: &Plan, switch: usize) -> Option<Os> {
    plan.chassis[plan.switches[switch].chassis].os
}

/// The line that lists a switch with its domain.
fn place(plan: &Plan, switch: usize) -> Vec<At> {
    let switch = &plan.switches[switch];
    let domains = &plan.chassis[switch.chassis].domains;
    domains.get(&switch.vsan).map(|(_, at)| *at).into_iter().collect()
}

/// Switches of the lab that links do not join with the largest part of their fabric. If no part has
/// a link, all of them.
fn apart(plan: &Plan, written: &BTreeSet<usize>) -> Vec<usize> {
    let mut neighbours: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for [a, b] in plan.isls.iter().map(|isl| isl.switches) {
        neighbours.entry(a).or_default().push(b);
        neighbours.entry(b).or_default().push(a);
    }
    let mut seen = BTreeSet::new();
    let mut parts: BTreeMap<usize, Vec<Vec<usize>>> = BTreeMap::new();
    for &first in written {
        let (mut part, mut open) = (Vec::new(), vec![first]);
        while let Some(switch) = open.pop() {
            if seen.insert(switch) {
                part.push(switch);
                open.extend(neighbours.get(&switch).into_iter().flatten());
            }
        }
        if !part.is_empty() {
            parts.entry(plan.switches[first].fabric).or_default().push(part);
        }
    }
    let mut apart = Vec::new();
    for mut parts in parts.into_values().filter(|parts| parts.len() > 1) {
        // The first of the largest parts comes last.
        parts.sort_by_key(|part| (part.len(), std::cmp::Reverse(part.iter().min().copied())));
        let kept = usize::from(parts.last().is_some_and(|part| part.len() > 1));
        parts.truncate(parts.len() - kept);
        apart.extend(parts.into_iter().flatten());
    }
    apart.sort_unstable();
    apart
}
