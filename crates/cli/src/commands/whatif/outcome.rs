//! What a failure did, held against the run in which nothing failed.

use super::failure::Single;
use sanloom_api::results::{HostResult, Results, Series, WhatIfRow};
use sanloom_core::config::Picos;
use serde::Serialize;
use std::collections::BTreeMap;

/// One failure; an element of the JSON list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Case {
    /// What holds for all hosts together.
    #[serde(flatten)]
    pub row: WhatIfRow,
    /// Faults of the lab itself that no run had, so that each failure is a single one.
    pub lab_faults_left_out: usize,
    /// Each host.
    pub hosts: Vec<HostCase>,
}

/// One host under one failure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostCase {
    /// Name of the host.
    pub name: String,
    /// Lowest throughput of a step after the failure.
    pub worst_bytes_per_s: f64,
    /// Throughput from the failure to the end.
    pub throughput_bytes_per_s: f64,
    /// Throughput in the same time with nothing broken.
    pub healthy_bytes_per_s: f64,
    /// Longest time in which no request ended although one was under way, in seconds.
    pub longest_stall_s: f64,
    /// Requests that failed for good.
    pub ios_failed: u64,
}

/// The part of results that is compared; the rest would fill the memory in labs with many links.
pub fn essence(results: &Results) -> Results {
    let mut essence = Results {
        totals: results.totals.clone(),
        hosts: results.hosts.clone(),
        series: Series { links: Vec::new(), storage: Vec::new(), ..results.series.clone() },
        ..Results::default()
    };
    for host in &mut essence.hosts {
        host.latency_histogram.clear();
    }
    essence
}

impl Case {
    /// Holds the run with a failure against the healthy one.
    pub fn new(single: &Single, at: Picos, left_out: usize, healthy: &Results, broken: &Results) -> Case {
        let at_s = at.as_secs_f64();
        let (longest_stall_s, stalled_host) = longest_stall(broken);
        let hosts: Vec<HostCase> =
            broken.hosts.iter().map(|host| host_case(host, at_s, &healthy.series, &broken.series)).collect();
        let lost = |results: &Results| results.totals.paths_lost;
        Case {
            row: WhatIfRow {
                name: single.name.clone(),
                kind: single.word.to_owned(),
                worst_bytes_per_s: worst(&broken.series.total.throughput_bytes_per_s, &broken.series, at_s),
                throughput_bytes_per_s: throughput_from(&broken.series, at_s),
                healthy_bytes_per_s: throughput_from(&healthy.series, at_s),
                longest_stall_s,
                stalled_host,
                longest_request_us: broken.totals.io.latency.max_us,
                paths_lost: lost(broken).saturating_sub(lost(healthy)),
                pairs_cut_off: pairs_cut_off(broken).saturating_sub(pairs_cut_off(healthy)),
                ios_failed: broken.totals.io.ios_failed,
            },
            lab_faults_left_out: left_out,
            hosts,
        }
    }

    /// Worst first, as [`WhatIfRow::rank`] orders.
    pub fn rank(cases: &mut [Case]) {
        let mut rows: Vec<WhatIfRow> = cases.iter().map(|case| case.row.clone()).collect();
        WhatIfRow::rank(&mut rows);
        let place = |case: &Case| rows.iter().position(|row| *row == case.row);
        cases.sort_by_cached_key(place);
    }

    /// The host that keeps the least of its healthy throughput; the first of equals.
    pub fn worst_host(&self) -> Option<&HostCase> {
        let left = |host: &HostCase| host.throughput_bytes_per_s / host.healthy_bytes_per_s.max(1.0);
        self.hosts.iter().filter(|host| host.healthy_bytes_per_s > 0.0).min_by(|a, b| left(a).total_cmp(&left(b)))
    }
}

fn host_case(host: &HostResult, at_s: f64, healthy: &Series, broken: &Series) -> HostCase {
    let values = |series: &Series| {
        let found = series.hosts.iter().find(|series| series.name == host.name);
        found.map_or(Vec::new(), |series| series.throughput_bytes_per_s.clone())
    };
    HostCase {
        name: host.name.clone(),
        worst_bytes_per_s: worst(&values(broken), broken, at_s),
        throughput_bytes_per_s: mean(&values(broken), broken, at_s),
        healthy_bytes_per_s: mean(&values(healthy), healthy, at_s),
        longest_stall_s: host.longest_stall_s,
        ios_failed: host.io.ios_failed,
    }
}

/// Throughput of all hosts together from a time to the end of the run.
pub fn throughput_from(series: &Series, at_s: f64) -> f64 {
    mean(&series.total.throughput_bytes_per_s, series, at_s)
}

/// The longest stall of any host, and whose it was; the first of equals.
pub fn longest_stall(results: &Results) -> (f64, String) {
    let mut longest = (0.0, String::new());
    for host in &results.hosts {
        if host.longest_stall_s > longest.0 {
            longest = (host.longest_stall_s, host.name.clone());
        }
    }
    longest
}

/// The steps that begin when the failure is there.
fn steps_from<'a>(values: &'a [f64], series: &Series, at_s: f64) -> &'a [f64] {
    // A thousandth of a step is below what the division can be wrong by.
    let first = (at_s / series.interval_s - 1e-3).ceil().max(0.0) as usize;
    values.get(first..).unwrap_or(&[])
}

fn mean(values: &[f64], series: &Series, at_s: f64) -> f64 {
    let steps = steps_from(values, series, at_s);
    steps.iter().sum::<f64>() / steps.len().max(1) as f64
}

fn worst(values: &[f64], series: &Series, at_s: f64) -> f64 {
    let steps = steps_from(values, series, at_s);
    steps.iter().copied().reduce(f64::min).unwrap_or(0.0)
}

/// Pairs of host and storage system of which no path works at the end.
fn pairs_cut_off(results: &Results) -> u64 {
    let mut pairs: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for host in &results.hosts {
        for path in &host.paths {
            // `hba1>array1:2`
            let port = path.name.split_once('>').map_or(path.name.as_str(), |(_, port)| port);
            let storage = port.rsplit_once(':').map_or(port, |(storage, _)| storage);
            *pairs.entry((&host.name, storage)).or_default() |= path.state == "active";
        }
    }
    pairs.values().filter(|works| !**works).count() as u64
}
