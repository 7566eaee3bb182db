//! Can every workload's host get to its storage: over links, and through zones?
//!
//! Hosts (and targets) with the same keys are one group, so a thousand alike nodes cost as much as one. A *key* is a
//! pair of fabric and half of a zone: a zone lets its principals talk to its members, so the first half holds hosts that
//! are principals and storage that is a member, and the second half the others. Ports in no zone share one more zone per
//! fabric if the default zone is open. A host and a storage port may talk to each other exactly if they have a key in common.

use super::Problems;
use super::fabric::node_name;
use crate::config::{AttachedPort, Lab, Node, Place, ProblemKind, Section, Target, Workload, Zoning};
use crate::fabric::{ZoneRole, ZoneSet};
use std::collections::{BTreeMap, BTreeSet};

/// So many hosts and storage systems are named in one sentence.
const MAX_NAMED: usize = 8;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let keys = Keys::of(lab);
    for (index, workload) in lab.workloads.iter().enumerate() {
        check_workload(lab, &keys, workload, Place::of(Section::Workload, index), problems);
    }
}

/// What the ports of one node give access to.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    /// Fabrics that the node is linked to.
    fabrics: Vec<u16>,
    /// Pairs of fabric and half of a zone.
    keys: Vec<(u16, u32)>,
}

struct Keys {
    hosts: Vec<Access>,
    storage: Vec<Access>,
}

impl Keys {
    fn of(lab: &Lab) -> Keys {
        // What a scheduled change will allow counts, too.
        let zonings = [&lab.zoning].into_iter().chain(lab.changes.iter().map(|change| &change.expected));
        let mut first = 0;
        let zone_sets: Vec<(u32, &Zoning, ZoneSet)> = zonings
            .map(|zoning| {
                let begin = first;
                first += zoning.zones.len() as u32 + 1;
                (begin, zoning, ZoneSet::new(zoning))
            })
            .collect();
        let mut keys = Keys {
            hosts: vec![Access::default(); lab.hosts.len()],
            storage: vec![Access::default(); lab.storage.len()],
        };
        for AttachedPort { node, fabric, switch, identity, .. } in lab.attached_ports() {
            let (access, is_host) = match node {
                Node::Host(i) => (keys.hosts.get_mut(usize::from(i)), true),
                Node::Storage(i) => (keys.storage.get_mut(usize::from(i)), false),
                Node::Switch(_) => continue,
            };
            let Some(access) = access else { continue };
            access.fabrics.push(fabric);
            for (first, zoning, zones) in &zone_sets {
                let place = zones.place(&identity);
                let mut is_zoned = false;
                for ZoneRole { zone, principal, member } in zones.roles(&place) {
                    let name = zoning.zones.get(zone as usize).map_or("", |zone| &zone.name);
                    if !lab.zone_counts_at(name, switch) {
                        continue;
                    }
                    is_zoned = true;
                    let halves = if is_host { [principal, member] } else { [member, principal] };
                    let number = first + 1 + zone;
                    let halves = halves.into_iter().zip([2 * number, 2 * number + 1]);
                    access.keys.extend(halves.filter(|(inside, _)| *inside).map(|(_, half)| (fabric, half)));
                }
                if !is_zoned && zones.open_default() {
                    access.keys.push((fabric, 2 * first));
                }
            }
        }
        for access in keys.hosts.iter_mut().chain(&mut keys.storage) {
            access.fabrics.sort_unstable();
            access.fabrics.dedup();
            access.keys.sort_unstable();
            access.keys.dedup();
        }
        keys
    }
}

fn check_workload(lab: &Lab, keys: &Keys, workload: &Workload, place: Place, problems: &mut Problems) {
    // Groups of equal access.
    let mut hosts: BTreeMap<&Access, Vec<u16>> = BTreeMap::new();
    for &host in &workload.hosts {
        if let Some(access) = keys.hosts.get(usize::from(host)) {
            hosts.entry(access).or_default().push(host);
        }
    }
    let mut targets: BTreeMap<&Access, BTreeSet<u16>> = BTreeMap::new();
    for &Target { storage, .. } in &workload.targets {
        if let Some(access) = keys.storage.get(usize::from(storage)) {
            targets.entry(access).or_default().insert(storage);
        }
    }
    let targets: Vec<(&Access, BTreeSet<u16>)> = targets.into_iter().collect();
    let mut by_key: BTreeMap<(u16, u32), Vec<usize>> = BTreeMap::new();
    for (number, (access, _)) in targets.iter().enumerate() {
        for &key in &access.keys {
            by_key.entry(key).or_default().push(number);
        }
    }
    // Hosts that lack the same storage, for the two reasons there are.
    let mut unlinked: BTreeMap<BTreeSet<u16>, Vec<u16>> = BTreeMap::new();
    let mut unzoned: BTreeMap<BTreeSet<u16>, Vec<u16>> = BTreeMap::new();
    for (access, hosts) in hosts {
        let allowed: BTreeSet<usize> =
            (access.keys.iter()).filter_map(|key| by_key.get(key)).flatten().copied().collect();
        if allowed.len() == targets.len() {
            continue;
        }
        let refused =
            targets.iter().enumerate().filter(|(number, _)| !allowed.contains(number)).map(|(_, group)| group);
        let (linked, cut_off): (Vec<_>, Vec<_>) =
            refused.partition(|(other, _)| access.fabrics.iter().any(|f| other.fabrics.contains(f)));
        for (groups, lacking) in [(linked, &mut unzoned), (cut_off, &mut unlinked)] {
            if !groups.is_empty() {
                let storage = groups.iter().flat_map(|(_, storage)| storage).copied().collect();
                lacking.entry(storage).or_default().extend(&hosts);
            }
        }
    }
    let (name, place) = (&workload.name, place.key("targets"));
    if let Some(pairs) = pairs(lab, unzoned, "lets", "talk to") {
        problems.add(
            ProblemKind::NotZoned,
            place,
            format!("workload `{name}`: no zone {pairs}"),
            "put a port of the host and a port of the storage into one zone, or drop the target",
        );
    }
    if let Some(pairs) = pairs(lab, unlinked, "from", "to") {
        problems.add(
            ProblemKind::Unreachable,
            place,
            format!("workload `{name}`: no path of links leads {pairs}"),
            "link both to switches that are joined by ISLs, or drop the target",
        );
    }
}

/// "from hosts `a`, `b` to storage `c`, nor from host `d` to storage `e`"; nothing for no hosts.
fn pairs(lab: &Lab, lacking: BTreeMap<BTreeSet<u16>, Vec<u16>>, before: &str, between: &str) -> Option<String> {
    let mut groups: Vec<(Vec<u16>, BTreeSet<u16>)> = lacking.into_iter().map(|(s, hosts)| (hosts, s)).collect();
    for (hosts, _) in &mut groups {
        hosts.sort_unstable();
    }
    groups.sort();
    let mut text = String::new();
    for (number, (hosts, storage)) in groups.iter().enumerate() {
        if number == MAX_NAMED {
            let more: usize = groups[number..].iter().map(|(hosts, _)| hosts.len()).sum();
            text.push_str(&format!(", nor for {more} more"));
            break;
        }
        let plural = if hosts.len() == 1 { "" } else { "s" };
        let separator = if number == 0 { "" } else { ", nor " };
        let hosts = names(hosts.iter().map(|&i| node_name(lab, Node::Host(i))));
        let storage = names(storage.iter().map(|&i| node_name(lab, Node::Storage(i))));
        text.push_str(&format!("{separator}{before} host{plural} {hosts} {between} storage {storage}"));
    }
    (!text.is_empty()).then_some(text)
}

/// The first few names, and how many more there are.
fn names<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut text = names.take(MAX_NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
