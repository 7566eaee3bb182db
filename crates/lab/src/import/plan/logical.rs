//! Logical switches of Fabric OS: which of them share a chassis, and the virtual fabrics that they
//! become.
//!
//! A fabric ID is unique within a chassis, and a port is in one logical switch (Brocade, *Fabric OS
//! Administrator's Guide* 6.4.0, "Logical switch overview"). Only the REST interface lists the
//! logical switches of a chassis with their world-wide names. Without it, logical switches with
//! names close to each other count as one chassis. No standard says so, so a note reports it.

use super::{Chassis, Facts, Note, NoteKind, Os, Plan, note, tail};
use crate::import::facts::{Logical, PortRef};
use std::collections::{BTreeMap, BTreeSet};

/// World-wide names of one chassis are closer than this. An assumption.
const MOST: u64 = 16;

/// True if the last six bytes of two world-wide names may be of one chassis.
pub(in crate::import) fn is_near(a: u64, b: u64) -> bool {
    a.abs_diff(b) < MOST
}

/// Gives each port of a list of logical switches to the switch that has it. Other resources tell
/// ports only by names that the whole chassis shares.
pub(in crate::import) fn place(facts: &mut Facts) {
    let mut of_wwn: BTreeMap<u64, usize> = BTreeMap::new();
    for (seen, sighting) in facts.sightings.iter().enumerate() {
        if let Some(wwn) = sighting.wwn {
            of_wwn.entry(tail(wwn)).or_insert(seen);
        }
    }
    let list_of: BTreeMap<u64, usize> =
        facts.logical.iter().filter_map(|row| Some((tail(row.wwn?), row.list))).collect();
    // Owner of each port, by list of logical switches and `slot/port`.
    let mut owners: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for row in &facts.logical {
        let Some(&seen) = row.wwn.and_then(|wwn| of_wwn.get(&tail(wwn))) else { continue };
        facts.sightings[seen].logical = Some(row.logical);
        owners.extend(row.ports.iter().map(|port| ((row.list, port.as_str()), seen)));
    }
    let mut moved: BTreeMap<(usize, u16), usize> = BTreeMap::new();
    for ((seen, name), number) in &facts.slots {
        let list = facts.sightings[*seen].wwn.and_then(|wwn| list_of.get(&tail(wwn)));
        if let Some(owner) = list.and_then(|list| owners.get(&(*list, name.as_str()))) {
            moved.insert((*seen, *number), *owner);
        }
    }
    let to = |seen: &mut usize, port: &PortRef| {
        if let PortRef::Number(number) = port
            && let Some(owner) = moved.get(&(*seen, *number))
        {
            *seen = *owner;
        }
    };
    facts.ports.iter_mut().for_each(|port| to(&mut port.seen, &PortRef::Number(port.number)));
    facts.logins.iter_mut().for_each(|login| to(&mut login.seen, &login.port));
    facts.trunks.iter_mut().for_each(|trunk| to(&mut trunk.seen, &trunk.port));
}

/// Logical switches that share a chassis.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Chassis of the plan, each a logical switch.
    members: Vec<usize>,
    /// The lists of the REST interface name one chassis.
    is_told: bool,
}

/// Makes virtual fabrics of logical switches, if any is more than the default switch of its
/// chassis. Removes links between different fabric IDs, which Fabric OS segments.
pub(super) fn build(facts: &Facts, plan: &mut Plan, notes: &mut Vec<Note>) {
    let is_made = |chassis: &Chassis| chassis.logical.is_some_and(|logical| !logical.is_default);
    if plan.chassis.iter().any(is_made) {
        let groups = groups(facts, plan);
        for group in &groups {
            name(facts, plan, group, notes);
        }
        links(facts, plan, notes);
    }
    missing(facts, plan, notes);
}

/// Gives switches without Virtual Fabrics the ID of the logical switches in their fabric, so that
/// the zones of that fabric hold for them.
pub(super) fn spread(plan: &mut Plan) {
    let mut ids: BTreeMap<usize, u16> = BTreeMap::new();
    for switch in plan.switches.iter().filter(|switch| plan.chassis[switch.chassis].logical.is_some()) {
        if let Some((_, id)) = &switch.virtual_fabric {
            ids.entry(switch.fabric).or_insert(*id);
        }
    }
    for switch in &mut plan.switches {
        let chassis = &plan.chassis[switch.chassis];
        if let (None, Some(id)) = (&switch.virtual_fabric, ids.get(&switch.fabric))
            && chassis.os != Some(Os::NxOs)
        {
            switch.virtual_fabric = Some((chassis.name.clone(), *id));
        }
    }
}

/// Joins logical switches by lists of the REST interface, by their world-wide names, and by their
/// file where a world-wide name is missing. A chassis has each fabric ID and each port once, and no
/// link to itself.
fn groups(facts: &Facts, plan: &Plan) -> Vec<Group> {
    let mut lists: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for row in &facts.logical {
        let Some(wwn) = row.wwn else { continue };
        let is_it = |chassis: &Chassis| chassis.wwn.is_some_and(|own| tail(own) == tail(wwn));
        if let Some(chassis) = plan.chassis.iter().position(is_it) {
            lists.entry(chassis).or_default().insert(row.list);
        }
    }
    let mut files: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    for (seen, chassis) in plan.chassis_of.iter().enumerate() {
        if let Some(chassis) = chassis {
            files.entry(*chassis).or_default().insert(facts.sightings[seen].at.file);
        }
    }
    let linked: BTreeSet<[usize; 2]> = plan
        .isls
        .iter()
        .map(|isl| isl.switches.map(|switch| plan.switches[switch].chassis))
        .flat_map(|[a, b]| [[a, b], [b, a]])
        .collect();
    let share = |sets: &BTreeMap<usize, BTreeSet<usize>>, a: usize, b: usize| {
        sets.get(&a).zip(sets.get(&b)).is_some_and(|(a, b)| !a.is_disjoint(b))
    };
    let fid = |chassis: usize| plan.chassis[chassis].logical.map(|logical| logical.fid);
    let can_join = |a: usize, b: usize| {
        fid(a) != fid(b) && !linked.contains(&[a, b]) && plan.chassis[a].listed.is_disjoint(&plan.chassis[b].listed)
    };
    let is_near = |a: usize, b: usize| match (plan.chassis[a].wwn, plan.chassis[b].wwn) {
        (Some(a), Some(b)) => self::is_near(tail(a), tail(b)),
        _ => files.get(&a).zip(files.get(&b)).is_some_and(|(a, b)| !a.is_disjoint(b)),
    };
    let mut groups: Vec<Group> = Vec::new();
    for chassis in (0..plan.chassis.len()).filter(|chassis| plan.chassis[*chassis].logical.is_some()) {
        let is_told = |group: &Group| group.members.iter().any(|other| share(&lists, chassis, *other));
        let fits =
            |group: &Group| group.members.iter().all(|other| can_join(chassis, *other) && is_near(chassis, *other));
        let told = groups.iter().position(is_told);
        // A chassis whose lists are known has no other logical switches.
        let found = told.or_else(|| match lists.contains_key(&chassis) {
            true => None,
            false => groups.iter().rposition(|group| !group.is_told && fits(group)),
        });
        let group = found.unwrap_or_else(|| {
            groups.push(Group { members: Vec::new(), is_told: lists.contains_key(&chassis) });
            groups.len() - 1
        });
        groups[group].members.push(chassis);
    }
    groups
}

/// Names the chassis after its default switch, or else after that with the lowest fabric ID.
fn name(facts: &Facts, plan: &mut Plan, group: &Group, notes: &mut Vec<Note>) {
    let logical = |chassis: usize| plan.chassis[chassis].logical;
    let key = |chassis: &&usize| logical(**chassis).map(|own| (!own.is_default, own.fid));
    let Some(&first) = group.members.iter().min_by_key(key) else { return };
    let name = plan.chassis[first].name.clone();
    if group.members.len() > 1 && !group.is_told {
        let names: Vec<&str> = group.members.iter().map(|chassis| plan.chassis[*chassis].name.as_str()).collect();
        let at: Vec<_> = group.members.iter().filter_map(|chassis| Some(logical(*chassis)?.at)).collect();
        let reason = format!("are logical switches of one chassis, `{name}`, by their world-wide names or their file");
        let remedy = "correct `virtual_fabric.chassis` by hand if they are in several";
        note(facts, notes, NoteKind::Decision, &at, names.join(", "), reason, remedy);
    }
    for (index, switch) in plan.switches.iter_mut().enumerate() {
        if !group.members.contains(&switch.chassis) {
            continue;
        }
        let chassis = &plan.chassis[switch.chassis];
        let Some(Logical { at, fid, is_base, .. }) = chassis.logical else { continue };
        switch.virtual_fabric = Some((name.clone(), fid));
        plan.owners.extend(chassis.listed.iter().map(|port| ((name.clone(), *port), index)));
        if is_base {
            let reason = "is a base switch; its links (XISL) also carry those of other logical switches, which a lab \
                          has as links of their own at the full rate";
            let remedy = "lower the rates of the [[isl]] by hand if the links are shared";
            note(facts, notes, NoteKind::Unplaced, &[at], switch.name.clone(), reason, remedy);
        }
    }
}

/// Removes the links between logical switches of different fabric IDs.
fn links(facts: &Facts, plan: &mut Plan, notes: &mut Vec<Note>) {
    let switches = &plan.switches;
    plan.isls.retain(|isl| {
        let [a, b] = isl.switches.map(|switch| &switches[switch]);
        let (Some((_, own)), Some((_, other))) = (&a.virtual_fabric, &b.virtual_fabric) else { return true };
        if own != other {
            let places: Vec<_> =
                [a, b].iter().filter_map(|switch| Some(plan.chassis[switch.chassis].logical?.at)).collect();
            let reason = format!("have a link between fabric IDs {own} and {other}, which Fabric OS segments");
            let remedy = "give both ends one fabric ID, or add the [[isl]] by hand";
            let text = format!("{} and {}", a.name, b.name);
            note(facts, notes, NoteKind::Conflict, &places, text, reason, remedy);
        }
        own == other
    });
}

/// Reports logical switches that a list has and no other input shows.
fn missing(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) {
    let remedy = "add the outputs of that switch, such as those of `fosexec --fid N -cmd switchshow`";
    for (at, seen, fids) in &facts.created {
        let file = facts.sightings[*seen].at.file;
        let group = plan.chassis_of[*seen].and_then(|own| chassis_name(plan, own));
        let known = |fid: u16| {
            let in_file = facts.sightings.iter().filter(|other| other.at.file == file);
            let in_file = in_file.filter_map(|other| other.logical).any(|logical| logical.fid == fid);
            let is_it = |own: &(String, u16)| Some(&own.0) == group.as_ref() && own.1 == fid;
            in_file || plan.switches.iter().filter_map(|switch| switch.virtual_fabric.as_ref()).any(is_it)
        };
        // The only switch of a chassis without others may be seen without its fabric ID.
        if fids.len() < 2 {
            continue;
        }
        for fid in fids.iter().filter(|fid| !known(**fid)) {
            let reason = "is in a list of logical switches, but no input has its ports, so it is not in the lab";
            note(facts, notes, NoteKind::Unplaced, &[*at], format!("FID {fid}"), reason, remedy);
        }
    }
    for row in &facts.logical {
        let is_it =
            |chassis: &Chassis| row.wwn.is_some_and(|wwn| chassis.wwn.is_some_and(|own| tail(own) == tail(wwn)));
        if !plan.chassis.iter().any(is_it) {
            let reason = "is in a list of logical switches, but no input has it, so it is not in the lab";
            let remedy = "add the answers of fibrechannel-switch and fibrechannel with its `vf-id`";
            note(
                facts,
                notes,
                NoteKind::Unplaced,
                &[row.logical.at],
                format!("FID {}", row.logical.fid),
                reason,
                remedy,
            );
        }
    }
}

/// Name of the chassis that a logical switch of the plan is in.
fn chassis_name(plan: &Plan, own: usize) -> Option<String> {
    let switch = plan.switches.iter().find(|switch| switch.chassis == own)?;
    switch.virtual_fabric.as_ref().map(|(chassis, _)| chassis.clone())
}
