//! Pauses that wait for each other in a circle.

use super::packet::PRIORITIES;
use super::{EthernetPlane, PauseDeadlock, Station};
use std::collections::BTreeSet;

/// A line with a priority.
type Wait = (u32, u8);

/// Looks for a deadlock and notes a new one.
#[cold]
pub(super) fn note(plane: &mut EthernetPlane, at_ps: u64) {
    let waits = find(plane, at_ps);
    if waits.is_empty() {
        return;
    }
    match plane.deadlocks.iter_mut().find(|known| known.waits == waits) {
        Some(known) => known.until_ps = at_ps,
        None => {
            let cycles = cycles(plane, &waits);
            plane.deadlocks.push(PauseDeadlock { at_ps, until_ps: at_ps, waits, cycles });
        }
    }
}

/// Notes that known deadlocks still hold.
#[cold]
pub(super) fn confirm(plane: &mut EthernetPlane, at_ps: u64) {
    if plane.deadlocks.is_empty() {
        return;
    }
    let waits: BTreeSet<Wait> = find(plane, at_ps).into_iter().collect();
    for known in &mut plane.deadlocks {
        if known.waits.iter().all(|wait| waits.contains(wait)) {
            known.until_ps = at_ps;
        }
    }
}

/// Returns the paused priorities of lines that can never go on: all frames that their receivers
/// hold for them wait for such priorities again. The answer is the largest set with this property.
fn find(plane: &EthernetPlane, now: u64) -> Vec<Wait> {
    let mut stuck: BTreeSet<Wait> = BTreeSet::new();
    for (number, line) in (0..).zip(&plane.lines) {
        let waits =
            |&priority: &usize| line.pauses.may_begin_ps(priority, now) > now && line.egress.bytes(priority) > 0;
        stuck.extend((0..PRIORITIES).filter(waits).map(|priority| (number, priority as u8)));
    }
    loop {
        let is_held = |wait: &Wait| {
            let holders = holders(plane, *wait);
            !holders.is_empty() && holders.iter().all(|holder| stuck.contains(holder))
        };
        let goes_on: Vec<Wait> = stuck.iter().copied().filter(|wait| !is_held(wait)).collect();
        if goes_on.is_empty() {
            return stuck.into_iter().collect();
        }
        stuck.retain(|wait| !goes_on.contains(wait));
    }
}

/// Returns the lines and priorities whose queues hold the frames that the receiver of a line has
/// for a priority. A switch that pauses whole links waits for frames of any priority.
fn holders(plane: &EthernetPlane, (number, priority): Wait) -> Vec<Wait> {
    let Station::Switch { switch, port } = plane.lines[number as usize].to else { return Vec::new() };
    let state = &plane.switches[usize::from(switch)];
    let of_group = if state.memory.pauses_links() { 0..PRIORITIES as u8 } else { priority..priority + 1 };
    let mut found = Vec::new();
    for &tx in state.tx.iter().filter(|&&tx| tx != u32::MAX) {
        let egress = &plane.lines[tx as usize].egress;
        let holds = |&priority: &u8| egress.frames_of(usize::from(priority)).any(|queued| queued.ingress == port);
        found.extend(of_group.clone().filter(holds).map(|priority| (tx, priority)));
    }
    found
}

/// Returns the circles among lines and priorities that wait for each other: each waits for the next
/// one, and the last for the first. The rest waits for one of the circles.
fn cycles(plane: &EthernetPlane, waits: &[Wait]) -> Vec<Vec<Wait>> {
    let mut seen: BTreeSet<Wait> = BTreeSet::new();
    let mut found = Vec::new();
    for &start in waits {
        let mut way: Vec<Wait> = Vec::new();
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            way.push(at);
            next = holders(plane, at).first().copied();
        }
        if let Some(begin) = next.and_then(|at| way.iter().position(|other| *other == at)) {
            found.push(way.split_off(begin));
        }
    }
    found
}
