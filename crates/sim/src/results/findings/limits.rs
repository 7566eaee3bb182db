//! Findings about the bottleneck: a controller, a link, or a host.

use super::super::view::View;
use super::{list, percent};
use sanloom_api::results::measure::ratio;
use sanloom_api::results::{Candidate, Finding, FindingKind, HostResult, Measure, Results};
use sanloom_fc::config::{LineRate, Node, StoragePort};

/// Busy share from which on a resource counts as saturated.
pub(super) const FULL: f64 = 0.95;

/// Largest number of elements that one candidate changes.
const MOST_CHANGED: usize = 16;

/// Finds saturated storage systems: the controller is busy, or the ports including their pauses
/// between sequences are.
pub(super) fn storage(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut busy: Vec<(&str, f64)> = Vec::new();
    for storage in &results.storage {
        if storage.utilisation >= FULL {
            busy.push((&storage.name, storage.utilisation));
        }
    }
    if let Some(&(name, share)) = busy.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        let names: Vec<String> = busy.iter().map(|(name, _)| (*name).to_owned()).collect();
        let queue = results.storage.iter().find(|s| s.name == name).map_or(0.0, |s| s.queue.mean);
        let iops: f64 = results.storage.iter().filter(|s| s.utilisation >= FULL).map(|s| s.iops).sum();
        found.push(Finding {
            kind: FindingKind::StorageBound,
            title: match names.len() {
                1 => format!("The controller of {name} is saturated"),
                n => format!("The controllers of {n} storage systems are saturated"),
            },
            detail: format!(
                "{}: busy {} of the time with {queue:.1} commands in the queue, {iops:.0} commands per second in all",
                list(&names),
                percent(share)
            ),
            candidates: more_servers(view, &names),
            measure: Measure::Total,
            culprit: Some(name.to_owned()),
            culprits: names,
            ..Finding::default()
        });
    }
    found.extend(ports(view, results));
    found.extend(adapters(view, results));
    found
}

/// Finds storage systems with a saturated bus, or a processor that only handles interrupts.
fn adapters(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    for (storage, config) in results.storage.iter().zip(&view.world.lab.storage) {
        let Some(of) = &storage.adapters else { continue };
        let set = |key: &str, value: String| vec![(format!("storage.{}.{key}", storage.name), value)];
        let clock = config.bus.map(|bus| format!("{}Hz", bus.clock_hz.saturating_mul(2)));
        let frames = config.interrupt.map(|interrupt| interrupt.max_frames.saturating_mul(2).min(65_535));
        let faster = clock.map(|clock| ("twice the clock of the bus".to_owned(), set("bus.clock", clock)));
        let fewer = frames.map(|frames| {
            (format!("one interrupt for {frames} commands"), set("interrupt.max_frames", frames.to_string()))
        });
        for (what, share, candidate) in
            [("bus", of.bus_utilisation, faster), ("interrupt processor", of.cpu_utilisation, fewer)]
        {
            if share < FULL {
                continue;
            }
            found.push(Finding {
                kind: FindingKind::StorageBound,
                title: format!("The {what} of {} is saturated", storage.name),
                detail: format!("{}: busy {} of the time", storage.name, percent(share)),
                candidates: candidate.into_iter().map(|(what, set)| Candidate { what, set }).collect(),
                measure: Measure::Total,
                culprit: Some(storage.name.clone()),
                ..Finding::default()
            });
        }
    }
    found
}

/// Returns the change that doubles the servers of saturated controllers.
fn more_servers(view: &View<'_>, names: &[String]) -> Vec<Candidate> {
    let of = |name: &String| view.world.lab.storage.iter().find(|storage| storage.name == *name);
    let set = |name: &String| {
        let servers = of(name).map_or(1, |storage| storage.service.servers);
        (format!("storage.{name}.servers"), servers.saturating_mul(2).to_string())
    };
    if names.len() > MOST_CHANGED {
        return Vec::new();
    }
    let what = format!("twice the servers in the controller of {}", list(names));
    vec![Candidate { what, set: names.iter().map(set).collect() }]
}

/// Finds storage systems whose ports are saturated by their lines and the pauses between sequences,
/// while the lines alone are not.
fn ports(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    for (storage, config) in results.storage.iter().zip(&view.world.lab.storage) {
        let most = |of: fn(&StoragePort) -> u64| config.ports.iter().map(of).max().unwrap_or(0);
        let frame_bytes = most(|port| port.receive_size_bytes.into()).max(1);
        let frame_overhead_ps = most(|port| port.frame_overhead.0);
        let overhead_ps = most(|port| port.sequence_overhead.0);
        let ports = config.ports.len().max(1) as u64;
        let of_frames_ps = storage.read_bytes.div_ceil(frame_bytes).saturating_mul(frame_overhead_ps);
        let paused_ps = storage.reads.saturating_mul(overhead_ps).saturating_add(of_frames_ps) / ports;
        let lines = view.world.net.fc.lanes().iter().zip(0u32..);
        let sent: Vec<u64> = lines
            .filter(|&(_, lane)| view.names.node(view.names.from(lane).node) == storage.name)
            .map(|(_, lane)| view.busy_ps(lane))
            .collect();
        let line_ps = sent.iter().sum::<u64>() / ports;
        let (share, line) = (ratio(line_ps + paused_ps, view.measured_ps), ratio(line_ps, view.measured_ps));
        if overhead_ps + frame_overhead_ps > 0 && share >= FULL && line < FULL {
            found.push(Finding {
                kind: FindingKind::StorageBound,
                title: format!("The ports of {} are saturated", storage.name),
                detail: format!(
                    "their lines are busy {} of the time and the pauses before {} read sequences take {}",
                    percent(line),
                    storage.reads,
                    percent(share - line)
                ),
                culprit: Some(storage.name.clone()),
                ..Finding::default()
            });
        }
    }
    found
}

/// Finds links with a saturated direction.
pub(super) fn links(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let full = |lane: &u32| ratio(view.busy_ps(*lane), view.measured_ps) >= FULL;
    let lanes: Vec<u32> = (0..view.lanes.len() as u32).filter(full).collect();
    let Some(&worst) = lanes.iter().max_by_key(|&&lane| view.busy_ps(lane)) else { return Vec::new() };
    let mut names: Vec<String> = lanes.iter().map(|&lane| view.names.link(lane).to_owned()).collect();
    names.dedup();
    let busy: Vec<f64> = lanes.iter().map(|&lane| ratio(view.busy_ps(lane), view.measured_ps)).collect();
    let data = |lane: u32| {
        let link = &results.links[lane as usize / 2];
        let direction = if lane.is_multiple_of(2) { &link.forward } else { &link.backward };
        direction.throughput_bytes_per_s / 1e6
    };
    // Several saturated links may carry the same data, so the total is taken from the hosts.
    let hosts = results.totals.io.throughput_bytes_per_s / 1e6;
    let detail = match (&lanes[..], &names[..]) {
        (&[lane], _) => format!(
            "the line is busy {} of the time towards {}, with {:.1} MB/s of data",
            percent(busy[0]),
            view.names.port(view.names.to(lane)),
            data(lane)
        ),
        (_, [_]) => format!(
            "the line is busy {} of the time or more both ways; the hosts move {hosts:.1} MB/s in all",
            percent(busy.iter().copied().fold(1.0, f64::min))
        ),
        _ => format!(
            "each line is busy {} of the time or more; the hosts move {hosts:.1} MB/s in all",
            percent(busy.iter().copied().fold(1.0, f64::min))
        ),
    };
    vec![Finding {
        kind: FindingKind::Bottleneck,
        title: match names.len() {
            1 => format!("Link {} is saturated", names[0]),
            n => format!("{n} links are saturated"),
        },
        detail: format!("{}: {detail}", list(&names)),
        candidates: faster_links(view, &lanes),
        measure: Measure::Total,
        culprit: Some(view.names.link(worst).to_owned()),
        culprits: names,
        ..Finding::default()
    }]
}

/// Returns the change that gives the saturated links the next higher rate that is noticeably
/// faster.
fn faster_links(view: &View<'_>, lanes: &[u32]) -> Vec<Candidate> {
    let lab = &view.world.lab;
    let mut numbers: Vec<usize> = lanes.iter().map(|&lane| lane as usize / 2).collect();
    numbers.dedup();
    let set = |number: &usize| {
        let link = &lab.links[*number];
        let is_isl = link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
        let enough = link.rate.bytes_per_s() + link.rate.bytes_per_s() / 2;
        let faster = LineRate::ALL.into_iter().find(|rate| rate.bytes_per_s() >= enough)?;
        let section = if is_isl { "isl" } else { "link" };
        Some((format!("{section}.{}.rate", link.name), faster.name().to_owned()))
    };
    let sets: Option<Vec<(String, String)>> = numbers.iter().map(set).collect();
    let Some(set) = sets.filter(|sets| sets.len() <= MOST_CHANGED) else { return Vec::new() };
    let names: Vec<String> = numbers.iter().map(|number| lab.links[*number].name.clone()).collect();
    let mut rates: Vec<&str> = set.iter().map(|(_, rate)| rate.as_str()).collect();
    rates.dedup();
    vec![Candidate { what: format!("{} for {}", rates.join(" or "), list(&names)), set }]
}

/// Returns the change that raises fewer interrupts on hosts with a saturated processor.
fn fewer_interrupts(view: &View<'_>, hosts: &[&HostResult]) -> Vec<Candidate> {
    let of = |name: &str| view.world.lab.hosts.iter().find(|host| host.name == name);
    let most = hosts.iter().filter_map(|host| of(&host.name)?.interrupt).map(|interrupt| interrupt.max_frames).max();
    let Some(frames) = most.map(|most| most.saturating_mul(4)) else { return Vec::new() };
    let with = hosts.iter().filter(|host| of(&host.name).is_some_and(|host| host.interrupt.is_some()));
    let set = with.map(|host| (format!("host.{}.interrupt.max_frames", host.name), frames.to_string()));
    let set: Vec<(String, String)> = set.collect();
    if set.len() > MOST_CHANGED {
        return Vec::new();
    }
    vec![Candidate { what: format!("one interrupt for {frames} completions"), set }]
}

/// Returns the change that doubles the cores of saturated processors.
fn more_cores(view: &View<'_>, hosts: &[&HostResult]) -> Vec<Candidate> {
    let of = |name: &str| view.world.lab.hosts.iter().find(|host| host.name == name);
    let cores = |name: &str| of(name).map_or(1, |host| u32::from(host.processor.cores)) * 2;
    let set = hosts.iter().map(|host| (format!("host.{}.processor.cores", host.name), cores(&host.name).to_string()));
    let set: Vec<(String, String)> = set.collect();
    if set.len() > MOST_CHANGED || hosts.iter().any(|host| cores(&host.name) > 1_024) {
        return Vec::new();
    }
    vec![Candidate { what: "twice the cores".to_owned(), set }]
}

/// Returns the change that doubles the clock of saturated buses.
fn faster_bus(view: &View<'_>, hosts: &[&HostResult]) -> Vec<Candidate> {
    let of = |name: &str| view.world.lab.hosts.iter().find(|host| host.name == name);
    let clocks = hosts.iter().filter_map(|host| Some((host, of(&host.name)?.bus?.clock_hz.saturating_mul(2))));
    let set = clocks.map(|(host, clock)| (format!("host.{}.bus.clock", host.name), format!("{clock}Hz")));
    let set: Vec<(String, String)> = set.collect();
    if set.len() > MOST_CHANGED {
        return Vec::new();
    }
    vec![Candidate { what: "twice the clock of the bus".to_owned(), set }]
}

/// Finds hosts with a saturated processor or bus.
pub(super) fn hosts(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    for (what, share) in [
        ("processor", (|host| host.cpu_utilisation) as fn(&sanloom_api::results::HostResult) -> f64),
        ("system bus", |host| host.bus_utilisation),
        ("processor of an HBA", |host| host.hba_utilisation),
    ] {
        let full: Vec<_> = results.hosts.iter().filter(|host| share(host) >= FULL).collect();
        let Some(worst) = full.iter().max_by(|a, b| share(a).total_cmp(&share(b))) else { continue };
        let names: Vec<String> = full.iter().map(|host| host.name.clone()).collect();
        found.push(Finding {
            kind: FindingKind::Bottleneck,
            title: match names.len() {
                1 => format!("The {what} of {} is saturated", worst.name),
                n => format!("The {what} of {n} hosts is saturated"),
            },
            detail: format!("{}: busy {} of the time", list(&names), percent(share(worst))),
            candidates: match what {
                "processor" => fewer_interrupts(view, &full).into_iter().chain(more_cores(view, &full)).collect(),
                "system bus" => faster_bus(view, &full),
                _ => Vec::new(),
            },
            measure: Measure::Total,
            culprit: Some(worst.name.clone()),
            culprits: names,
            ..Finding::default()
        });
    }
    found
}
