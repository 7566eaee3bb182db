//! What limits the throughput: a controller, a link, or a host.

use super::super::view::View;
use super::{list, percent};
use sanloom_api::results::measure::ratio;
use sanloom_api::results::{Finding, FindingKind, Results};

/// Busy for this share of the time counts as all it can do.
const FULL: f64 = 0.95;

/// Storage systems whose controller, or whose ports with their pause before each sequence, are busy all the time.
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
                1 => format!("The controller of {name} does all it can"),
                n => format!("The controllers of {n} storage systems do all they can"),
            },
            detail: format!(
                "{}: busy {} of the time with {queue:.1} commands in the queue, {iops:.0} commands per second in all",
                list(&names),
                percent(share)
            ),
            remedy: "More or faster controllers, or larger requests for the same data".to_owned(),
            culprit: Some(name.to_owned()),
            ..Finding::default()
        });
    }
    found.extend(ports(view, results));
    found
}

/// Storage systems whose ports are busy with their lines and the pauses between sequences, but whose lines are not full.
fn ports(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    for (storage, config) in results.storage.iter().zip(&view.world.lab.storage) {
        let overhead_ps: u64 = config.ports.iter().map(|port| port.sequence_overhead.0).max().unwrap_or(0);
        let ports = config.ports.len().max(1) as u64;
        let paused_ps = storage.reads.saturating_mul(overhead_ps) / ports;
        let lines = view.world.net.lanes().iter().zip(0u32..);
        let sent: Vec<u64> = lines
            .filter(|&(_, lane)| view.names.node(view.names.from(lane).node) == storage.name)
            .map(|(_, lane)| view.busy_ps(lane))
            .collect();
        let line_ps = sent.iter().sum::<u64>() / ports;
        let (share, line) = (ratio(line_ps + paused_ps, view.measured_ps), ratio(line_ps, view.measured_ps));
        if overhead_ps > 0 && share >= FULL && line < FULL {
            found.push(Finding {
                kind: FindingKind::StorageBound,
                title: format!("The ports of {} do all they can", storage.name),
                detail: format!(
                    "their lines are busy {} of the time and the pauses before {} read sequences take {}",
                    percent(line),
                    storage.reads,
                    percent(share - line)
                ),
                remedy: "More ports, or larger requests for the same data".to_owned(),
                culprit: Some(storage.name.clone()),
                ..Finding::default()
            });
        }
    }
    found
}

/// Links of which a direction is full.
pub(super) fn links(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let full = |lane: &u32| ratio(view.busy_ps(*lane), view.measured_ps) >= FULL;
    let lanes: Vec<u32> = (0..view.lanes.len() as u32).filter(full).collect();
    let Some(&worst) = lanes.iter().max_by_key(|&&lane| view.busy_ps(lane)) else { return Vec::new() };
    let mut names: Vec<String> = lanes.iter().map(|&lane| view.names.link(lane).to_owned()).collect();
    names.dedup();
    let busy: Vec<f64> = lanes.iter().map(|&lane| ratio(view.busy_ps(lane), view.measured_ps)).collect();
    let data = |lane: u32| {
        let link = &results.links[lane as usize / 2];
        let way = if lane.is_multiple_of(2) { &link.forward } else { &link.backward };
        way.throughput_bytes_per_s / 1e6
    };
    // What crosses several full links is the same data: only the hosts tell how much it is.
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
            1 => format!("Link {} carries all it can", names[0]),
            n => format!("{n} links carry all they can"),
        },
        detail: format!("{}: {detail}", list(&names)),
        remedy: "A second link, a faster one, or storage nearer to its hosts".to_owned(),
        culprit: Some(view.names.link(worst).to_owned()),
        ..Finding::default()
    }]
}

/// Hosts whose processor or bus is busy all the time.
pub(super) fn hosts(results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    for (what, share) in [
        ("processor", (|host| host.cpu_utilisation) as fn(&sanloom_api::results::HostResult) -> f64),
        ("system bus", |host| host.bus_utilisation),
    ] {
        let full: Vec<_> = results.hosts.iter().filter(|host| share(host) >= FULL).collect();
        let Some(worst) = full.iter().max_by(|a, b| share(a).total_cmp(&share(b))) else { continue };
        let names: Vec<String> = full.iter().map(|host| host.name.clone()).collect();
        found.push(Finding {
            kind: FindingKind::Bottleneck,
            title: match names.len() {
                1 => format!("The {what} of {} does all it can", worst.name),
                n => format!("The {what} of {n} hosts does all it can"),
            },
            detail: format!("{}: busy {} of the time", list(&names), percent(share(worst))),
            remedy: match what {
                "processor" => "Larger requests, or an interrupt for more completions at once".to_owned(),
                _ => "A wider or faster bus, or fewer HBAs on one".to_owned(),
            },
            culprit: Some(worst.name.clone()),
            ..Finding::default()
        });
    }
    found
}
