//! Links between switches, from the statements of both ends.

use super::trunks::{End, Trunks};
use super::{At, Facts, Isl, Note, NoteKind, Plan, PortRef, chassis, logical, note};
use crate::import::facts::{Os, Trunk};
use std::collections::{BTreeMap, BTreeSet};

/// Ends of links, with the place of the statement and the other end.
type Taken = BTreeMap<End, (At, End)>;

/// Ports that are no part of the trunk of another one, by chassis.
type Masters<'f> = BTreeSet<(Option<usize>, &'f PortRef)>;

/// One statement, resolved.
#[derive(Clone, Debug)]
struct Half {
    at: At,
    local: End,
    peer: usize,
    peer_port: Option<u16>,
    gfc: Option<u32>,
    /// Least number of lines.
    width: u32,
    /// Which of the ends are port-channels.
    channels: [bool; 2],
}

/// Fills `plan.isls`, and the fabrics of switches.
pub(super) fn build(facts: &Facts, plan: &mut Plan, notes: &mut Vec<Note>) {
    let trunks = Trunks::of(facts, plan);
    let masters = facts.trunks.iter().filter(|trunk| trunk.master.is_none());
    let masters: Masters<'_> = masters.map(|trunk| (plan.chassis_of[trunk.seen], &trunk.port)).collect();
    let halves = facts.trunks.iter().flat_map(|trunk| resolve(facts, plan, trunk, &masters, notes));
    let halves: Vec<Half> = halves.collect();
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
        let isl = isl(facts, plan, &trunks, &half, (half.peer, Some(port)), half.width, notes);
        let ends = isl.lines.iter().filter_map(|line| Some(((half.local.0, line[0]?), (half.peer, line[1]?))));
        for (near, far) in ends.chain([(half.local, remote)]) {
            taken.entry(near).or_insert((half.at, far));
            taken.entry(far).or_insert((half.at, near));
        }
        plan.isls.push(isl);
    }
    pair(facts, plan, &trunks, open, &taken, notes);
    logical::build(facts, plan, notes);
    fabrics(facts, plan);
    logical::spread(plan);
}

/// A link with all its lines.
fn isl(
    facts: &Facts,
    plan: &Plan,
    trunks: &Trunks,
    half: &Half,
    far: (usize, Option<u16>),
    width: u32,
    notes: &mut Vec<Note>,
) -> Isl {
    let (lines, is_guess) = trunks.lines(half.local, far, half.channels, width);
    let switches = [half.local.0, far.0];
    if is_guess {
        let [near, far] = switches.map(|switch| plan.switches[switch].name.as_str());
        let text = format!("{near} and {far}");
        let reason = "have a trunk, whose ports are paired in the order of their numbers";
        let remedy = match plan.chassis[plan.switches[half.local.0].chassis].os {
            Some(Os::NxOs) => "correct the [[isl]] by hand if that matters",
            _ => "add the output of trunkshow",
        };
        note(facts, notes, NoteKind::Decision, &[half.at], text, reason, remedy);
    }
    let gfc = half.gfc.or_else(|| trunks.speed(switches, &lines));
    Isl { switches, lines, gfc }
}

/// Resolves the two switches of a statement. The ports of a trunk are those of its master, and a
/// port-channel stands for its members.
fn resolve(facts: &Facts, plan: &Plan, trunk: &Trunk, masters: &Masters<'_>, notes: &mut Vec<Note>) -> Vec<Half> {
    if let Some(master) = trunk.master {
        // The row of the master states the neighbour; see `trunks`.
        if !masters.contains(&(plan.chassis_of[trunk.seen], &PortRef::Number(master))) {
            let text = match &trunk.port {
                PortRef::Number(port) => format!("port {port}"),
                PortRef::Name(name) => name.clone(),
            };
            let reason = "is a trunk port whose master no input lists";
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
    let speed = channel_speed(facts, plan, switch, &trunk.port);
    let speed = speed.or_else(|| channel_speed(facts, plan, peer, trunk.peer_port.as_ref()?));
    let is_channel = |port: &PortRef| matches!(port, PortRef::Name(name) if name.contains("port-channel"));
    let peer_port = trunk.peer_port.as_ref().and_then(|port| plan.number(peer, port));
    vec![Half {
        at: trunk.at,
        local: (switch, number),
        peer,
        peer_port,
        gfc: trunk.gfc.or(speed),
        width: trunk.width,
        channels: [is_channel(&trunk.port), trunk.peer_port.as_ref().is_some_and(is_channel)],
    }]
}

/// Speed of the slowest member of a port-channel, or of an interface.
fn channel_speed(facts: &Facts, plan: &Plan, switch: usize, port: &PortRef) -> Option<u32> {
    let PortRef::Name(name) = port else { return None };
    let chassis = plan.switches[switch].chassis;
    let sightings = facts.sightings.iter().enumerate().filter(|(seen, _)| plan.chassis_of[*seen] == Some(chassis));
    // Of different speeds, the plan has the one that is kept.
    let kept = |name: &String, gfc: u32| {
        let number = plan.chassis[chassis].numbers.get(name);
        number.and_then(|number| plan.speeds.get(&(switch, *number)).copied()).unwrap_or(gfc)
    };
    let mut speeds = sightings.filter_map(|(_, sighting)| {
        let channel = name.strip_prefix("san-").unwrap_or(name);
        let members = sighting.interfaces.iter().filter(|(_, other)| other.channel.as_deref() == Some(channel));
        let own = sighting.interfaces.get(name);
        // `show interface brief` has the sum of the members of a port-channel.
        let speed = own.and_then(|own| if name.starts_with("fc") { own.gfc } else { own.set_gfc });
        let speed = speed.map(|gfc| kept(name, gfc));
        members.filter_map(|(member, own)| Some(kept(member, own.gfc?))).min().or(speed)
    });
    speeds.next()
}

/// Pairs the ends of links whose remote ports no input tells: in the order of their port numbers.
fn pair(facts: &Facts, plan: &mut Plan, trunks: &Trunks, open: Vec<Half>, taken: &Taken, notes: &mut Vec<Note>) {
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
            let isl = match (l, r) {
                (Some(half), other) => {
                    let far = (b, other.map(|other| other.local.1));
                    isl(facts, plan, trunks, half, far, width, notes)
                }
                (None, Some(half)) => {
                    let mut isl = isl(facts, plan, trunks, half, (a, None), width, notes);
                    isl.switches.reverse();
                    isl.lines.iter_mut().for_each(|line| line.reverse());
                    isl
                }
                (None, None) => continue,
            };
            plan.isls.push(Isl { gfc: gfc.or(isl.gfc), ..isl });
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
        let (a, b) = (root(&mut fabric, isl.switches[0]), root(&mut fabric, isl.switches[1]));
        fabric[a.max(b)] = a.min(b);
    }
    for member in &facts.members {
        let Some(own) = plan.switch(member.seen, member.vsan) else { continue };
        let listed =
            plan.chassis_with(member.wwn).and_then(|chassis| plan.by_vsan.get(&(chassis, plan.switches[own].vsan)));
        if let Some(&listed) = listed {
            let (a, b) = (root(&mut fabric, own), root(&mut fabric, listed));
            fabric[a.max(b)] = a.min(b);
        }
    }
    for i in 0..plan.switches.len() {
        plan.switches[i].fabric = root(&mut fabric, i);
    }
}
