//! Lints about rates: slow ports, fan-in, oversubscribed ISLs.

use super::zones::node;
use super::{Design, FAN_IN, ISL_RATIO, Limits, SLOW_PORT, SUBJECTS};
use crate::topology::verdict::decimals;
use sanloom_fc::san::{AttachedPort, Place, Section, rate_names};
use std::collections::BTreeMap;

/// Rates of two generations are not exact multiples of each other.
const TOLERANCE: f64 = 1.02;

/// Host ports and storage ports whose fastest partner is much faster.
pub(super) fn slow_ports(design: &mut Design<'_>) {
    let (permitted, bytes_per_s) = (&design.network.permitted, &design.network.bytes_per_s);
    let rate = |port: &AttachedPort| (bytes_per_s[port.link], port.link);
    // By set of partners, so that equal hosts cost nothing.
    let of_set: Vec<Option<(u64, usize)>> = (permitted.sets().iter())
        .map(|set| set.iter().map(|port| rate(&permitted.storage[*port as usize])).max())
        .collect();
    let mut of_host_set: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
    for (index, port) in permitted.hosts.iter().enumerate() {
        let entry = of_host_set.entry(permitted.set_of(index)).or_insert_with(|| rate(port));
        *entry = rate(port).max(*entry);
    }
    let mut of_storage: Vec<Option<(u64, usize)>> = vec![None; permitted.storage.len()];
    for (set, best) in &of_host_set {
        for port in &permitted.sets()[*set as usize] {
            let entry = &mut of_storage[*port as usize];
            *entry = (*entry).max(Some(*best));
        }
    }
    let hosts = permitted.hosts.iter().enumerate().filter(|(_, port)| !port.is_virtual);
    let hosts = hosts.map(|(index, port)| (port, of_set[permitted.set_of(index) as usize], "storage", "reads"));
    let storage = permitted.storage.iter().zip(of_storage).map(|(port, best)| (port, best, "hosts", "writes"));
    let (mut found, rates) = (Vec::new(), rate_names(design.lab));
    for (port, best, partners, requests) in hosts.chain(storage) {
        let Some((fastest, of)) = best else { continue };
        let ratio = fastest as f64 / bytes_per_s[port.link] as f64;
        if ratio * TOLERANCE < design.limits.slow_port {
            continue;
        }
        let (own, best) = (&rates[port.link], &rates[of]);
        let reason = format!(
            "{SUBJECTS} at {own} is much slower than its {partners} at {best}: large {requests} fill the buffers on the way and \
             slow others down"
        );
        found.push((Place::of(Section::Link, port.link).key("rate"), name(design, port), reason));
    }
    for (place, name, reason) in found {
        let remedy = "use a faster port, let slow ports have storage of their own, or raise `slow_port` in [check]";
        design.add(SLOW_PORT, place, name, reason, remedy);
    }
}

/// Storage ports with more hosts behind them than the limits allow. A host port counts with an
/// equal share of its rate at each storage port that it uses.
pub(super) fn fan_in(design: &mut Design<'_>) {
    let (lab, classes, permitted) = (design.lab, design.classes, &design.network.permitted);
    let mut used: Vec<(usize, usize, u64)> = Vec::new();
    // Ports that each port of a class of hosts uses, over all classes of storage.
    let mut partners: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for &(h, s) in &classes.pairs {
        let systems = classes.storage[s].members.len() as u64;
        for (i, _) in classes.port_pairs(permitted, (h, s)) {
            *partners.entry((h, i)).or_default() += systems;
        }
    }
    // Virtual ports on one HBA share its rate.
    let ports_of = |h: usize, i: usize| {
        let member = move |host: &u16| &permitted.hosts[permitted.ports_of_host(*host)][i];
        classes.hosts[h].members.iter().map(member)
    };
    let mut sharers: BTreeMap<usize, u64> = BTreeMap::new();
    for &(h, i) in partners.keys() {
        ports_of(h, i).for_each(|port| *sharers.entry(port.link).or_default() += 1);
    }
    let rate = |port: &AttachedPort| design.network.bytes_per_s[port.link] as f64 / sharers[&port.link] as f64;
    let of_class = |&(h, i): &(usize, usize)| ((h, i), ports_of(h, i).map(rate).sum::<f64>());
    let bytes_per_s: BTreeMap<(usize, usize), f64> = partners.keys().map(of_class).collect();
    let mut loads: BTreeMap<(usize, usize), (f64, u64)> = BTreeMap::new();
    for &(h, s) in &classes.pairs {
        for (i, j) in classes.port_pairs(permitted, (h, s)) {
            let load = loads.entry((s, j)).or_default();
            load.0 += bytes_per_s[&(h, i)] / partners[&(h, i)] as f64;
            load.1 += classes.hosts[h].members.len() as u64;
        }
    }
    for ((s, j), (bytes_per_s, count)) in loads {
        let class = &classes.storage[s];
        let ratio = bytes_per_s / class.ports[j].bytes_per_s as f64;
        for member in &class.members {
            let index = permitted.ports_of_storage(*member).start + j;
            used.push((index, (ratio * 100.0).round() as usize, count));
        }
    }
    used.sort_unstable();
    let mut found = Vec::new();
    for (index, hundredths, count) in used {
        let port = &permitted.storage[index];
        let (place, _) = node(lab, port.node);
        let ratio = hundredths as f64 / 100.0;
        let Some((reason, remedy)) = overload(design.limits, ratio, count) else { continue };
        found.push((place, name(design, port), reason, remedy));
    }
    for (place, name, reason, remedy) in found {
        design.add(FAN_IN, place, name, reason, &remedy);
    }
}

/// Returns the reason and the remedy if host ports have more than the permitted multiple of the
/// bandwidth of a storage port, or if there are more of them than the limit.
pub(super) fn overload(limits: Limits, ratio: f64, count: u64) -> Option<(String, String)> {
    let bandwidth = || {
        let (ratio, limit) = (decimals(ratio), decimals(limits.fan_in));
        format!("host ports have {ratio} times the bandwidth of {SUBJECTS}, the limit is {limit}")
    };
    let ports = || format!("{count} host ports use {SUBJECTS}, the limit is {}", limits.host_ports);
    let (reason, keys) = match (ratio > limits.fan_in, count > limits.host_ports) {
        (true, true) => (format!("{}; {}", bandwidth(), ports()), "`fan_in` and `host_ports`"),
        (true, false) => (bandwidth(), "`fan_in`"),
        (false, true) => (ports(), "`host_ports`"),
        (false, false) => return None,
    };
    let remedy = format!("use more or faster storage ports, spread the hosts over them, or raise {keys} in [check]");
    Some((reason, remedy))
}

/// Groups of ISLs, and of links between switches of Ethernet or InfiniBand, that are oversubscribed
/// beyond the limit.
pub(super) fn isls(design: &mut Design<'_>) {
    let (report, limit) = (design.report, design.limits.isl);
    let networks = [
        (&report.isl_groups, "ISLs", Section::Link),
        (&report.ethernet_trunks, "Ethernet links", Section::EthernetLink),
        (&report.infiniband_trunks, "InfiniBand links", Section::InfinibandLink),
    ];
    for (groups, links, section) in networks {
        for group in groups.iter().filter(|group| group.oversubscription > limit) {
            let reason = format!(
                "{links} are oversubscribed {}:1 between {SUBJECTS}, the limit is {}:1",
                decimals(group.oversubscription),
                decimals(limit)
            );
            let more = if section == Section::Link { "ISLs" } else { "links" };
            let remedy = format!(
                "add {more}, move storage to the switch of its hosts, or raise `isl_oversubscription` in [check]"
            );
            let place = Place::of(section, group.links[0]);
            design.add(ISL_RATIO, place, group.label.clone(), reason, &remedy);
        }
    }
}

fn name(design: &Design<'_>, port: &AttachedPort) -> String {
    format!("{}:{}", node(design.lab, port.node).1, port.port)
}
