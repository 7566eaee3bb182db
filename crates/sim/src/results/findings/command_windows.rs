//! Sessions of iSCSI whose queue depths make commands wait although nothing behind them is full.

use super::limits::FULL;
use super::percent;
use crate::iscsi::Machine;
use crate::net::ethernet::Station;
use crate::results::view::View;
use sanloom_api::results::{Candidate, Finding, FindingKind, Measure, Results, StorageResult};
use sanloom_api::words::plural;
use sanloom_fc::config::EthernetNode;
use std::collections::BTreeSet;

/// Share of the commands that wait, from which on it is worth a finding.
const WAITS: f64 = 0.5;
/// Largest queue depth of a session that the lab accepts.
const LARGEST_DEPTH: u16 = 1_024;
/// Largest number of hosts that one candidate changes.
const MOST_CHANGED: usize = 16;

/// Sessions of a storage system.
#[derive(Default)]
struct Sessions<'v> {
    /// Sessions in which commands waited.
    number: usize,
    commands: u64,
    waits: u64,
    hosts: BTreeSet<u16>,
    /// Name of the session in which most commands waited, and their number.
    worst: Option<(&'v str, u64)>,
}

/// Returns a finding for each storage system with such sessions.
pub(super) fn find(view: &View<'_>, results: &Results) -> Vec<Finding> {
    if view.world.iscsi.is_none() {
        return Vec::new();
    }
    let full = FullLines::of(view, results);
    let systems = results.storage.iter().zip(0u16..).filter(|(storage, _)| storage.utilisation < FULL);
    systems.filter_map(|(storage, number)| finding(view, results, &full, storage, number)).collect()
}

/// Full lines, behind which commands wait, too.
#[derive(Default)]
struct FullLines {
    hosts: BTreeSet<u16>,
    storage: BTreeSet<u16>,
    /// True with a full line between switches, or of InfiniBand, which may belong to any router.
    is_shared: bool,
}

impl FullLines {
    fn of(view: &View<'_>, results: &Results) -> FullLines {
        let lines = view.world.net.ethernet.lines();
        let interfaces = view.world.lab.ethernet_interfaces();
        let infiniband = results.infiniband_links.iter().map(|link| (&link.forward, &link.backward));
        let is_full = |one: f64, other: f64| one.max(other) >= FULL;
        let mut full = FullLines {
            is_shared: infiniband.into_iter().any(|(one, other)| is_full(one.utilisation, other.utilisation)),
            ..FullLines::default()
        };
        for (link, both) in lines.chunks(2).zip(&results.ethernet_links) {
            if !is_full(both.forward.utilisation, both.backward.utilisation) {
                continue;
            }
            let ends = link.iter().filter_map(|line| match line.to {
                Station::Interface(interface) => Some(interfaces.get(usize::from(interface))?.end.node),
                Station::Switch { .. } => None,
            });
            let ends: Vec<EthernetNode> = ends.collect();
            full.is_shared |= ends.is_empty();
            for node in ends {
                match node {
                    EthernetNode::Host(host) => full.hosts.insert(host),
                    EthernetNode::Storage(storage) => full.storage.insert(storage),
                    // No session of iSCSI leads to a forwarder of FCoE.
                    EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => false,
                };
            }
        }
        full
    }

    /// Returns whether sessions from these hosts may wait behind one.
    fn concerns(&self, hosts: &BTreeSet<u16>, storage: u16) -> bool {
        self.is_shared || self.storage.contains(&storage) || !self.hosts.is_disjoint(hosts)
    }
}

fn finding(
    view: &View<'_>,
    results: &Results,
    full: &FullLines,
    storage: &StorageResult,
    number: u16,
) -> Option<Finding> {
    let lab = &view.world.lab;
    let iscsi = view.world.iscsi.as_ref()?;
    let target = lab.live.iscsi.get(&number)?;
    let of_hosts = iscsi.plans().filter(|plan| matches!(plan.initiator, Machine::Host(_)));
    let mut sessions = Sessions::default();
    for (plan, result) in of_hosts.zip(&results.iscsi_sessions).filter(|(plan, _)| plan.storage == number) {
        sessions.commands += result.commands;
        if result.command_waits > 0 {
            sessions.number += 1;
            sessions.waits += result.command_waits;
            sessions.hosts.insert(plan.host);
            if sessions.worst.is_none_or(|(_, most)| result.command_waits > most) {
                sessions.worst = Some((&result.name, result.command_waits));
            }
        }
    }
    let (worst, _) = sessions.worst.filter(|_| sessions.waits as f64 >= WAITS * sessions.commands as f64)?;
    if full.concerns(&sessions.hosts, number) {
        return None;
    }
    let depth_of = |host: &u16| lab.hosts[usize::from(*host)].iscsi.queue_depth;
    let least = sessions.hosts.iter().map(depth_of).chain([target.queue_depth]).min()?;
    let depth = least.saturating_mul(4).clamp(64, LARGEST_DEPTH);
    if depth <= least {
        return None;
    }
    let shallow = |host: &&u16| depth_of(host) < depth;
    let hosts = sessions.hosts.iter().filter(shallow).map(|host| &lab.hosts[usize::from(*host)].name);
    let mut tables: Vec<String> = hosts.map(|name| format!("host.{name}")).collect();
    let is_changed = tables.len() <= MOST_CHANGED;
    tables.extend((target.queue_depth < depth).then(|| format!("storage.{}", storage.name)));
    let set = tables.into_iter().map(|table| (format!("{table}.iscsi.queue_depth"), depth.to_string())).collect();
    let what = format!("a queue depth of {depth} in the sessions of {}", storage.name);
    Some(Finding {
        kind: FindingKind::Bottleneck,
        title: format!("The queue depth of iSCSI makes commands for {} wait", storage.name),
        detail: format!(
            "{} of {} waited in {}, most in {worst}, because a session may have {} in flight; the controller is busy \
             {} of the time and no line of theirs is full",
            sessions.waits,
            plural(sessions.commands, "command"),
            plural(sessions.number, "session"),
            plural(least, "command"),
            percent(storage.utilisation)
        ),
        candidates: if is_changed { vec![Candidate { what, set }] } else { Vec::new() },
        measure: Measure::Total,
        culprit: Some(storage.name.clone()),
        ..Finding::default()
    })
}
