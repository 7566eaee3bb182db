//! Links between switches, from the statements of both ends.

use super::{At, Facts, Isl, Note, NoteKind, Plan, PortRef, chassis, note, tail};
use crate::import::facts::Trunk;
use std::collections::{BTreeMap, BTreeSet};

/// A switch and a port.
type End = (usize, u16);

/// Ends of links, with the place of the statement and the other end.
type Taken = BTreeMap<End, (At, End)>;

/// One statement, resolved.
#[derive(Clone, Debug)]
struct Half {
    at: At,
    local: (usize, u16),
    peer: usize,
    peer_port: Option<u16>,
    gfc: Option<u32>,
    width: u32,
}

/// Fills `plan.isls`, and the fabrics of switches.
pub(super) fn build(facts: &Facts, plan: &mut Plan, notes: &mut Vec<Note>) {
    let halves: Vec<Half> = facts.trunks.iter().flat_map(|trunk| resolve(facts, plan, trunk, notes)).collect();
    let mut taken = Taken::new();
    let (known, open): (Vec<Half>, Vec<Half>) = halves.into_iter().partition(|half| half.peer_port.is_some());
    for half in known {
        let Some(port) = half.peer_port else { continue };
        let remote = (half.peer, port);
        let clash = [(half.local, remote), (remote, half.local)].into_iter().find_map(|(own, other)| {
            let (first, linked) = taken.get(&own)?;
            Some((*first, *linked == other, own))
        });
        match clash {
            Some((_, true, _)) => continue,
            Some((first, false, (switch, port))) => {
                let text = format!("{}:{port}", plan.switches[switch].name);
                let reason = "is an end of two different links; the first one is kept";
                let remedy = "import outputs of one point in time";
                note(facts, notes, NoteKind::Conflict, &[first, half.at], text, reason, remedy);
                continue;
            }
            None => {}
        }
        taken.insert(half.local, (half.at, remote));
        taken.insert(remote, (half.at, half.local));
        let ends = [(half.local.0, Some(half.local.1)), (half.peer, Some(port))];
        plan.isls.push(Isl { ends, gfc: half.gfc, width: half.width });
    }
    pair(facts, plan, open, &taken, notes);
    fabrics(facts, plan);
}

/// Resolves the two switches of a statement. A trunk port takes the neighbour of its master, and a
/// port-channel stands for its members.
fn resolve(facts: &Facts, plan: &Plan, trunk: &Trunk, notes: &mut Vec<Note>) -> Vec<Half> {
    let master = trunk.master.and_then(|master| {
        let of = |other: &&Trunk| {
            other.seen == trunk.seen && other.port == PortRef::Number(master) && other.master.is_none()
        };
        facts.trunks.iter().find(of)
    });
    if trunk.master.is_some() {
        // The row of the master states the width; see `pair`.
        if master.is_none() {
            let (text, reason) = (format!("{:?}", trunk.port), "is a trunk port whose master no input lists");
            note(facts, notes, NoteKind::Unplaced, &[trunk.at], text, reason, "add the whole port table");
        }
        return Vec::new();
    }
    let peer = chassis::peer(facts, plan, trunk);
    let vsan = plan.switch(trunk.seen, trunk.vsan).map(|switch| plan.switches[switch].vsan);
    let peer = peer.zip(vsan).and_then(|key| plan.by_vsan.get(&key).copied());
    let (Some(switch), Some(peer)) = (plan.switch(trunk.seen, trunk.vsan), peer) else {
        let text = trunk.peer_name.clone().unwrap_or_else(|| "a link".to_owned());
        let reason = "is a neighbour that no input describes";
        note(facts, notes, NoteKind::Unplaced, &[trunk.at], text, reason, "add the outputs of that switch");
        return Vec::new();
    };
    let Some(number) = plan.number(switch, &trunk.port) else { return Vec::new() };
    let (own, own_speed) = members(facts, plan, switch, &trunk.port);
    let (others, others_speed) = trunk.peer_port.as_ref().map_or((1, None), |port| members(facts, plan, peer, port));
    let slaves = facts.trunks.iter().filter(|other| other.seen == trunk.seen && other.master == Some(number)).count();
    let width = trunk.width.max(own).max(others).max(slaves as u32 + 1);
    let gfc = trunk.gfc.or(own_speed).or(others_speed);
    let peer_port = trunk.peer_port.as_ref().and_then(|port| plan.number(peer, port));
    vec![Half { at: trunk.at, local: (switch, number), peer, peer_port, gfc, width }]
}

/// Number of interfaces in a port-channel, at least 1, and the speed of the slowest.
fn members(facts: &Facts, plan: &Plan, switch: usize, port: &PortRef) -> (u32, Option<u32>) {
    let PortRef::Name(name) = port else { return (1, None) };
    let chassis = plan.switches[switch].chassis;
    let sightings = facts.sightings.iter().enumerate().filter(|(seen, _)| plan.chassis_of[*seen] == Some(chassis));
    let of_channel = sightings.map(|(_, sighting)| {
        let members = sighting.interfaces.values().filter(|interface| interface.channel.as_deref() == Some(name));
        let speed = sighting.interfaces.get(name).and_then(|own| own.gfc).filter(|_| name.starts_with("fc"));
        let slowest = members.clone().filter_map(|interface| interface.gfc).min();
        (members.count().max(1) as u32, slowest.or(speed))
    });
    of_channel.fold((1, None), |a, b| (a.0.max(b.0), a.1.or(b.1)))
}

/// Pairs the ends of links whose remote ports no input tells: in the order of their port numbers.
fn pair(facts: &Facts, plan: &mut Plan, open: Vec<Half>, taken: &Taken, notes: &mut Vec<Note>) {
    let mut sides: BTreeMap<(usize, usize), [Vec<Half>; 2]> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for half in open {
        if taken.contains_key(&half.local) || !seen.insert(half.local) {
            continue;
        }
        let (a, b) = (half.local.0.min(half.peer), half.local.0.max(half.peer));
        let side = usize::from(half.local.0 != a);
        sides.entry((a, b)).or_default()[side].push(half);
    }
    for ((a, b), mut sides) in sides {
        sides.iter_mut().for_each(|side| side.sort_by_key(|half| half.local.1));
        let [left, right] = &sides;
        if left.len() > 1 && !right.is_empty() {
            let text = format!("{} and {}", plan.switches[a].name, plan.switches[b].name);
            let reason = "have several links, which are paired in the order of their port numbers";
            note(facts, notes, NoteKind::Decision, &[left[0].at], text, reason, "add the output of islshow");
        }
        for i in 0..left.len().max(right.len()) {
            let (l, r) = (left.get(i), right.get(i));
            let gfc = match (l.and_then(|half| half.gfc), r.and_then(|half| half.gfc)) {
                (Some(x), Some(y)) => Some(x.min(y)),
                (x, y) => x.or(y),
            };
            let width = l.map_or(1, |half| half.width).max(r.map_or(1, |half| half.width));
            let port = |half: Option<&Half>| half.map(|half| half.local.1);
            plan.isls.push(Isl { ends: [(a, port(l)), (b, port(r))], gfc, width });
        }
    }
}

/// Numbers the fabrics: switches that links connect, or that one of them lists.
fn fabrics(facts: &Facts, plan: &mut Plan) {
    let mut fabric: Vec<usize> = (0..plan.switches.len()).collect();
    fn root(fabric: &mut [usize], mut i: usize) -> usize {
        while fabric[i] != i {
            fabric[i] = fabric[fabric[i]];
            i = fabric[i];
        }
        i
    }
    for isl in &plan.isls {
        let (a, b) = (root(&mut fabric, isl.ends[0].0), root(&mut fabric, isl.ends[1].0));
        fabric[a.max(b)] = a.min(b);
    }
    for member in &facts.members {
        let Some(own) = plan.switch(member.seen, member.vsan) else { continue };
        let is_it = |chassis: &super::Chassis| chassis.wwn.is_some_and(|wwn| tail(wwn) == tail(member.wwn));
        let chassis = plan.chassis.iter().position(is_it);
        let listed = chassis.and_then(|chassis| plan.by_vsan.get(&(chassis, plan.switches[own].vsan)));
        if let Some(&listed) = listed {
            let (a, b) = (root(&mut fabric, own), root(&mut fabric, listed));
            fabric[a.max(b)] = a.min(b);
        }
    }
    for i in 0..plan.switches.len() {
        plan.switches[i].fabric = root(&mut fabric, i);
    }
}
