//! Windows and send buffers of TCP that are smaller than the bytes on the way: the lines have room,
//! but senders wait for acknowledgements. `check` warns of the same limits.

use super::list;
use crate::results::view::View;
use sanloom_api::results::measure::per_s;
use sanloom_api::results::{Candidate, Finding, FindingKind, Measure, Results};
use sanloom_api::words::plural;
use sanloom_fc::san::{LimitedEnds, WindowLimit, window_limits};
use std::collections::BTreeSet;

/// Share of the rate of a window from which on the window is full.
const FULL: f64 = 0.85;
/// Most limits that are considered.
const MOST_LIMITS: usize = 256;
/// Largest number of nodes that one candidate changes.
const MOST_CHANGED: usize = 16;
/// Largest window or send buffer that the lab accepts, in bytes.
const LARGEST_BYTES: u64 = 1 << 30;

/// A limit that a run reaches.
struct Reached {
    limit: WindowLimit,
    /// Rate in the busier direction, in MB/s.
    mb_per_s: f64,
}

/// Returns a finding for the sessions whose windows are full, and one for the FCIP links.
pub(super) fn find(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let lab = &view.world.lab;
    if view.world.iscsi.is_none() && view.world.fcip.is_none() {
        return Vec::new();
    }
    let reached = |limit: WindowLimit| {
        let mb_per_s = match limit.ends {
            LimitedEnds::Sessions { host, storage } => sessions_mb_per_s(view, results, host, storage),
            LimitedEnds::Link(link) => link_mb_per_s(results, link),
        };
        (mb_per_s >= FULL * limit.mb_per_s).then_some(Reached { limit, mb_per_s })
    };
    let mut all: Vec<Reached> = window_limits(lab, MOST_LIMITS).into_iter().filter_map(reached).collect();
    all.sort_by(|a, b| a.limit.mb_per_s.total_cmp(&b.limit.mb_per_s));
    let (links, sessions): (Vec<Reached>, Vec<Reached>) =
        all.into_iter().partition(|reached| matches!(reached.limit.ends, LimitedEnds::Link(_)));
    [sessions, links].iter().filter_map(|reached| finding(view, reached)).collect()
}

/// Returns the rate of the sessions of a host with a storage system in the busier direction.
fn sessions_mb_per_s(view: &View<'_>, results: &Results, host: u16, storage: u16) -> f64 {
    let host = usize::from(host);
    let (Some(node), Some(result)) = (view.world.hosts.nodes.get(host), results.hosts.get(host)) else { return 0.0 };
    let systems = node.paths.systems().iter().filter(|system| system.storage == storage);
    let bytes: u64 = systems.flat_map(|system| system.paths()).map(|path| path.bytes).sum();
    let (read, written) = (result.io.read_bytes, result.io.written_bytes);
    let busier = read.max(written) as f64 / (read + written).max(1) as f64;
    per_s(bytes, view.measured_ps) * busier / 1e6
}

/// Returns the rate of the frames of an FCIP link in the busier direction.
fn link_mb_per_s(results: &Results, link: u16) -> f64 {
    let Some(link) = results.links.get(usize::from(link)) else { return 0.0 };
    let bytes = link.forward.bytes.max(link.backward.bytes) as f64;
    bytes / results.measured_s().max(1e-12) / 1e6
}

/// Returns one finding for limits of the same type, the tightest first.
fn finding(view: &View<'_>, reached: &[Reached]) -> Option<Finding> {
    let lab = &view.world.lab;
    let worst = reached.first()?;
    let name = |reached: &Reached| match reached.limit.ends {
        LimitedEnds::Sessions { host, storage } => {
            format!("{} > {}", lab.hosts[usize::from(host)].name, lab.storage[usize::from(storage)].name)
        }
        LimitedEnds::Link(link) => lab.links[usize::from(link)].name.clone(),
    };
    let names: Vec<String> = reached.iter().map(name).collect();
    let WindowLimit { what, bytes, connections, round_trip, mb_per_s, .. } = worst.limit;
    Some(Finding {
        kind: FindingKind::Bottleneck,
        title: match names.len() {
            1 => format!("The {what} of TCP limits {}", names[0]),
            all => format!("The {what} of TCP limits {} connections", all),
        },
        detail: format!(
            "{}: {} of {bytes} bytes and a round trip of {round_trip} allow {mb_per_s:.1} MB/s in each direction; \
             {} moved {:.1} MB/s",
            list(&names),
            plural(connections, what),
            names[0],
            worst.mb_per_s
        ),
        candidates: larger(view, reached),
        measure: Measure::Total,
        culprit: Some(names[0].clone()),
        culprits: names,
        ..Finding::default()
    })
}

/// Returns the change to windows and send buffers that keep the paths full: the next power of two.
fn larger(view: &View<'_>, reached: &[Reached]) -> Vec<Candidate> {
    let lab = &view.world.lab;
    let of_all = |index: usize| reached.iter().map(|reached| reached.limit.needed[index]).max().unwrap_or(0);
    let [window, buffer] = [0, 1].map(|index| of_all(index).next_power_of_two().min(LARGEST_BYTES));
    let mut tables = BTreeSet::new();
    let mut unscaled = BTreeSet::new();
    for reached in reached {
        match reached.limit.ends {
            LimitedEnds::Link(link) => {
                tables.insert(format!("isl.{}.fcip", lab.links[usize::from(link)].name));
            }
            LimitedEnds::Sessions { host, storage } => {
                let own = &lab.hosts[usize::from(host)];
                let ends = [
                    (format!("host.{}.iscsi.tcp", own.name), Some(&own.iscsi.tcp)),
                    (
                        format!("storage.{}.iscsi.tcp", lab.storage[usize::from(storage)].name),
                        lab.live.iscsi.get(&storage).map(|iscsi| &iscsi.tcp),
                    ),
                ];
                for (table, tcp) in ends {
                    if tcp.is_some_and(|tcp| !tcp.window_scaling) {
                        unscaled.insert(table.clone());
                    }
                    tables.insert(table);
                }
            }
        }
    }
    if tables.len() > MOST_CHANGED {
        return Vec::new();
    }
    let of_table = |table: &String| {
        [("window", window), ("send_buffer", buffer)]
            .map(|(key, bytes)| (format!("{table}.{key}"), format!("{bytes}B")))
    };
    let mut set: Vec<(String, String)> = tables.iter().flat_map(of_table).collect();
    set.extend(unscaled.iter().map(|table| (format!("{table}.window_scaling"), "true".to_owned())));
    vec![Candidate { what: format!("windows of {window} bytes and send buffers of {buffer} bytes"), set }]
}
