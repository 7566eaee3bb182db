//! Pauses that wait for each other in a circle.

use super::packet::PRIORITIES;
use super::{EthernetPlane, PauseDeadlock, Station};
use std::collections::BTreeSet;

/// Looks for a deadlock and notes a new one.
#[cold]
pub(super) fn note(plane: &mut EthernetPlane, at_ps: u64) {
    let waits = find(plane, at_ps);
    let is_known = plane.deadlocks.iter().any(|known| known.waits == waits);
    if !waits.is_empty() && !is_known {
        plane.deadlocks.push(PauseDeadlock { at_ps, waits });
    }
}

/// Returns the paused priorities of lines that can never go on: all frames that their receivers
/// hold for them wait for such priorities again. The answer is the largest set with this property.
fn find(plane: &EthernetPlane, now: u64) -> Vec<(u32, u8)> {
    let mut stuck: BTreeSet<(u32, u8)> = BTreeSet::new();
    for (number, line) in (0..).zip(&plane.lines) {
        let waits =
            |&priority: &usize| line.pauses.may_begin_ps(priority, now) > now && line.egress.bytes(priority) > 0;
        stuck.extend((0..PRIORITIES).filter(waits).map(|priority| (number, priority as u8)));
    }
    loop {
        let goes_on: Vec<(u32, u8)> = stuck.iter().copied().filter(|wait| !is_held(plane, *wait, &stuck)).collect();
        if goes_on.is_empty() {
            return stuck.into_iter().collect();
        }
        stuck.retain(|wait| !goes_on.contains(wait));
    }
}

/// Returns whether the receiver of a line holds frames of the priority, and all of them are in
/// queues of `stuck`. A switch that pauses whole links waits for frames of any priority.
fn is_held(plane: &EthernetPlane, (number, priority): (u32, u8), stuck: &BTreeSet<(u32, u8)>) -> bool {
    let Station::Switch { switch, port } = plane.lines[number as usize].to else { return false };
    let state = &plane.switches[usize::from(switch)];
    let of_group = if state.memory.pauses_links() { 0..PRIORITIES as u8 } else { priority..priority + 1 };
    let mut holds = false;
    for &tx in state.tx.iter().filter(|&&tx| tx != u32::MAX) {
        for priority in of_group.clone() {
            let mut frames = plane.lines[tx as usize].egress.frames_of(usize::from(priority));
            if frames.any(|queued| queued.ingress == port) {
                if !stuck.contains(&(tx, priority)) {
                    return false;
                }
                holds = true;
            }
        }
    }
    holds
}
