//! Queues of Ethernet that overflow while their lines have room: TCP waits for its retransmission
//! time-out, as in an incast.

use super::{list, percent};
use crate::iscsi::{Iscsi, Machine, SessionPlan};
use crate::net::ethernet::{Line, Station};
use crate::results::view::View;
use sanloom_api::results::measure::ratio;
use sanloom_api::results::{
    Candidate, EthernetDirection, FcipLinkResult, Finding, FindingKind, Measure, Results, Victim,
};
use sanloom_api::words::plural;
use sanloom_fc::config::{Congestion, EthernetNode, Picos, Tcp};
use std::collections::{BTreeMap, BTreeSet};

/// Utilisation of a line above which drops are the normal sign of a full line.
const BUSY: f64 = 0.9;
/// Share of the time of its sessions that time-outs take at least.
const WAITS: f64 = 0.02;
/// Largest number of elements that one candidate names.
const MOST_CHANGED: usize = 64;
/// Memory of a switch for which the lab sets none, in bytes.
const USUAL_MEMORY: u64 = 16 << 20;
/// Shortest retransmission time-out that a remedy proposes.
const SHORT_RTO: Picos = Picos::from_ms(1);
/// Lossless priority that a remedy proposes.
const LOSSLESS: u8 = 3;
/// Bytes in a queue from which on frames are marked at 10 Gb/s and less (RFC 8257, section 4.1).
const MARKS_BYTES: u64 = 30_000;
const MARKS_RATE_BYTES_PER_S: u64 = 1_250_000_000;

/// A line whose queue drops frames although the line has room, with its sessions.
struct Drops<'v> {
    line: usize,
    way: &'v EthernetDirection,
    sessions: Vec<&'v SessionPlan>,
    timeouts: u64,
    /// Shortest time that one time-out takes.
    rto_min: Picos,
}

/// Returns one finding for all lines whose queues overflow while they are mostly idle.
pub(super) fn find(view: &View<'_>, results: &Results) -> Option<Finding> {
    let iscsi = view.world.iscsi.as_ref()?;
    let lines = view.world.net.ethernet.lines().iter().enumerate();
    let mut found: Vec<Drops<'_>> =
        lines.filter_map(|(number, line)| drops(view, results, iscsi, number, line)).collect();
    found.sort_by_key(|drops| (std::cmp::Reverse(drops.way.queue_drops), drops.line));
    let worst = found.first()?;
    let frames = worst.way.frames + worst.way.queue_drops;
    let more = match found.len() {
        1 => String::new(),
        all => format!("; the queues of {} drop frames in the same way", plural(all as u64 - 1, "other port")),
    };
    let hosts: BTreeSet<u16> = found.iter().flat_map(|drops| &drops.sessions).map(|plan| plan.host).collect();
    let victims = hosts.iter().filter_map(|host| results.hosts.get(usize::from(*host))).map(|host| Victim {
        name: host.name.clone(),
        during_bytes_per_s: host.io.throughput_bytes_per_s,
        ..Victim::default()
    });
    Some(Finding {
        kind: FindingKind::CongestionLoss,
        title: format!(
            "the queue of {} drops frames, but its line is busy for only {} of the time",
            worst.way.from,
            percent(worst.way.utilisation)
        ),
        detail: format!(
            "{} of {frames} frames for {} found no memory; TCP lost so much of its windows that it waited for {} of \
             at least {} in {}{more}",
            worst.way.queue_drops,
            worst.way.to,
            plural(worst.timeouts, "retransmission time-out"),
            worst.rto_min,
            plural(worst.sessions.len() as u64, "session"),
        ),
        candidates: candidates(view, &found),
        measure: Measure::Victims,
        culprit: Some(worst.way.from.clone()),
        victims: victims.collect(),
        ..Finding::default()
    })
}

fn drops<'v>(view: &View<'_>, results: &'v Results, iscsi: &'v Iscsi, number: usize, line: &Line) -> Option<Drops<'v>> {
    let lab = &view.world.lab;
    let link = results.ethernet_links.get(number / 2)?;
    let way = if number.is_multiple_of(2) { &link.forward } else { &link.backward };
    if way.queue_drops == 0 || way.utilisation >= BUSY {
        return None;
    }
    let node = match line.to {
        Station::Interface(interface) => Some(lab.ethernet_interfaces().get(usize::from(interface))?.end.node),
        Station::Switch { .. } => None,
    };
    let is_here = |plan: &SessionPlan| match node {
        Some(EthernetNode::Host(host)) => plan.host == host,
        Some(EthernetNode::Storage(storage)) => plan.storage == storage,
        Some(EthernetNode::Switch(_) | EthernetNode::Forwarder(_)) => false,
        None => true,
    };
    let sessions = (0..).zip(iscsi.plans()).filter_map(|(number, plan)| {
        let is_own = matches!(plan.initiator, Machine::Host(_)) && is_here(plan);
        is_own.then(|| (plan, iscsi.count(number).repairs.timeouts))
    });
    let sessions: Vec<(&SessionPlan, u64)> = sessions.collect();
    let timeouts = sessions.iter().map(|(_, timeouts)| timeouts).sum();
    let tcp = sessions.iter().flat_map(|(plan, _)| of_session(view, plan)).flatten();
    let rto_min = tcp.map(|tcp| tcp.rto_min).min()?;
    let waited_ps = rto_min.0.saturating_mul(timeouts);
    let all_ps = view.measured_ps.saturating_mul(sessions.len() as u64);
    (ratio(waited_ps, all_ps) >= WAITS).then(|| Drops {
        line: number,
        way,
        sessions: sessions.iter().map(|(plan, _)| *plan).collect(),
        timeouts,
        rto_min,
    })
}

/// Returns a finding for FCIP links that repeat segments because queues overflow while their lines
/// are mostly idle.
pub(super) fn of_tunnels(view: &View<'_>, results: &Results) -> Option<Finding> {
    let lab = &view.world.lab;
    let ways = results.ethernet_links.iter().flat_map(|link| [&link.forward, &link.backward]);
    let mut drops: Vec<(usize, &EthernetDirection)> =
        ways.enumerate().filter(|(_, way)| way.queue_drops > 0 && way.utilisation < BUSY).collect();
    drops.sort_by_key(|(line, way)| (std::cmp::Reverse(way.queue_drops), *line));
    let (_, worst) = drops.first()?;
    let losses = |link: &FcipLinkResult| link.retransmission_timeouts + link.fast_recoveries;
    let link = results.fcip_links.iter().max_by_key(|link| losses(link)).filter(|link| losses(link) > 0)?;
    let lines = view.world.net.ethernet.lines();
    let switches: BTreeSet<u16> = drops
        .iter()
        .filter_map(|(line, _)| match lines[*line].from {
            Station::Switch { switch, .. } => Some(switch),
            Station::Interface(_) => None,
        })
        .collect();
    let names: Vec<String> =
        switches.iter().map(|switch| lab.ethernet_switches[usize::from(*switch)].name.clone()).collect();
    let set = switches.iter().zip(&names).map(|(switch, name)| {
        let memory = lab.ethernet_switches[usize::from(*switch)].memory_bytes.saturating_mul(8).max(USUAL_MEMORY);
        (format!("ethernet_switch.{name}.memory"), format!("{memory}B"))
    });
    Some(Finding {
        kind: FindingKind::CongestionLoss,
        title: format!("{} repeats segments, because the queue of {} drops frames", link.name, worst.from),
        detail: format!(
            "{} of {} for {} found no memory, and the line is busy for only {} of the time; TCP of the FCIP link \
             reduced its window {} and repeated {}",
            plural(worst.queue_drops, "frame"),
            worst.frames + worst.queue_drops,
            worst.to,
            percent(worst.utilisation),
            plural(losses(link), "time"),
            plural(link.segments_retransmitted, "segment")
        ),
        candidates: vec![Candidate { what: format!("more memory in {}", list(&names)), set: set.collect() }],
        measure: Measure::Total,
        culprit: Some(worst.from.clone()),
        ..Finding::default()
    })
}

/// Returns the settings of TCP of the host and of the storage system of a session.
fn of_session<'v>(view: &'v View<'_>, plan: &SessionPlan) -> [Option<&'v Tcp>; 2] {
    let lab = &view.world.lab;
    let host = lab.hosts.get(usize::from(plan.host)).map(|host| &host.iscsi.tcp);
    [host, lab.live.iscsi.get(&plan.storage).map(|iscsi| &iscsi.tcp)]
}

/// Returns changes that may keep the queues from overflowing, or that end the waits earlier.
fn candidates(view: &View<'_>, found: &[Drops<'_>]) -> Vec<Candidate> {
    let lab = &view.world.lab;
    let sessions = || found.iter().flat_map(|drops| &drops.sessions);
    let hosts: BTreeSet<u16> = sessions().map(|plan| plan.host).collect();
    let storage: BTreeSet<u16> = sessions().map(|plan| plan.storage).collect();
    if hosts.len() + storage.len() > MOST_CHANGED {
        return Vec::new();
    }
    let names = || {
        let hosts = hosts.iter().map(|host| format!("host.{}", lab.hosts[usize::from(*host)].name));
        let storage = storage.iter().map(|storage| format!("storage.{}", lab.storage[usize::from(*storage)].name));
        hosts.chain(storage)
    };
    let of_all = |keys: &[(&str, &str)]| -> Vec<(String, String)> {
        let one =
            |name: String| keys.iter().map(move |(key, value)| (format!("{name}.iscsi.{key}"), (*value).to_owned()));
        names().flat_map(one).collect()
    };
    // Switches whose queues overflow, each with the threshold of marks.
    let mut switches: BTreeMap<u16, u64> = BTreeMap::new();
    for drops in found {
        let Station::Switch { switch, .. } = view.world.net.ethernet.lines()[drops.line].from else { continue };
        let rate = lab.ethernet_links[drops.line / 2].rate.bytes_per_s();
        let marks =
            MARKS_BYTES.saturating_mul(rate.div_ceil(MARKS_RATE_BYTES_PER_S)).min(drops.way.queue_max_bytes / 2);
        let entry = switches.entry(switch).or_insert(marks);
        *entry = marks.min(*entry);
    }
    let of_switch = |switch: u16, key: &str, value: String| {
        (format!("ethernet_switch.{}.{key}", lab.ethernet_switches[usize::from(switch)].name), value)
    };
    let switch_names: Vec<String> =
        switches.keys().map(|switch| lab.ethernet_switches[usize::from(*switch)].name.clone()).collect();
    let memory = |switch: u16| lab.ethernet_switches[usize::from(switch)].memory_bytes.saturating_mul(8);
    let mut candidates = vec![Candidate {
        what: format!("eight times the memory in {}", list(&switch_names)),
        set: switches.keys().map(|switch| of_switch(*switch, "memory", format!("{}B", memory(*switch)))).collect(),
    }];
    let tcp = || sessions().flat_map(|plan| of_session(view, plan)).flatten();
    if tcp().any(|tcp| tcp.rto_min > SHORT_RTO) {
        candidates.push(Candidate {
            what: "a shortest retransmission time-out of 1 ms".to_owned(),
            set: of_all(&[("tcp.rto_min", "1ms"), ("tcp.delayed_ack", "200us")]),
        });
    }
    if tcp().any(|tcp| tcp.congestion != Congestion::Dctcp) {
        let mut set = of_all(&[("tcp.congestion", "dctcp")]);
        let unmarked = switches.iter().filter(|(switch, _)| lab.ethernet_switches[usize::from(**switch)].ecn.is_none());
        set.extend(unmarked.map(|(switch, marks)| of_switch(*switch, "ecn.from", format!("{marks}B"))));
        candidates.push(Candidate { what: "DCTCP with marks (ECN)".to_owned(), set });
    }
    let is_lossy = |switch: &u16| lab.ethernet_switches[usize::from(*switch)].lossless_priorities() == 0;
    if switches.keys().all(is_lossy) {
        let names = hosts.iter().map(|host| format!("host.{}.iscsi.priority", lab.hosts[usize::from(*host)].name));
        let mut set: Vec<(String, String)> = names.map(|key| (key, LOSSLESS.to_string())).collect();
        let all = (0..).zip(&lab.ethernet_switches).filter(|(_, switch)| switch.lossless_priorities() == 0);
        set.extend(all.map(|(switch, _)| of_switch(switch, "pfc", LOSSLESS.to_string())));
        candidates.push(Candidate { what: format!("PFC for priority {LOSSLESS}, which iSCSI then uses"), set });
    }
    candidates
}
