//! Comparison of a run with a failure and the run without.

use sanloom_api::results::measure::{per_s, s_of_ps};
use sanloom_api::results::{CutOff, Interval, WhatIfRow};
use sanloom_console::whatif::failure::{LeftOut, Single};
use sanloom_console::whatif::trial::{Healthy, Trial};
use sanloom_fc::san::Lab;
use sanloom_lab::topology::Reach;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One failure; an element of the JSON list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Case {
    #[serde(flatten)]
    pub row: WhatIfRow,
    /// Number of faults of the lab that no run had.
    pub lab_faults_left_out: usize,
    /// Number of scheduled zone changes of the lab that no run had.
    pub lab_changes_left_out: usize,
    pub hosts: Vec<HostCase>,
}

/// One host in a run with a failure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostCase {
    pub name: String,
    /// Lowest throughput of a step after the failure.
    pub worst_bytes_per_s: f64,
    /// Throughput after the recovery.
    pub throughput_bytes_per_s: f64,
    /// Throughput in the same interval without a failure.
    pub healthy_bytes_per_s: f64,
    /// Longest time without a completed request while one was in flight, in seconds.
    pub longest_stall_s: f64,
    /// A completed request ended the longest stall.
    pub stall_ended: bool,
    pub ios_failed: u64,
    pub ios_unfinished: u64,
    /// Storage that the host cannot reach, as `array1`, or as `array1:lun0` if it uses only some
    /// LUNs.
    pub cut_off: Vec<String>,
}

/// Values that all cases share.
pub struct Context<'a> {
    pub lab: &'a Lab,
    pub reach: Reach<'a>,
    /// Time of the failure, in ps.
    pub at_ps: u64,
    pub left_out: LeftOut,
}

impl Case {
    /// Compares the trials of one failure, one for each seed, with the runs without a failure.
    pub fn new(context: &Context<'_>, single: &Single, trials: &[(&Trial, &Healthy)]) -> Option<Case> {
        let mut cases = trials.iter().map(|(trial, healthy)| Case::of_seed(context, single, trial, healthy));
        let mut first = cases.next()?;
        let rows: Vec<WhatIfRow> = cases.map(|case| case.row).collect();
        if !rows.is_empty() {
            let rows: Vec<&WhatIfRow> = std::iter::once(&first.row).chain(&rows).collect();
            first.row.intervals = intervals(&rows);
        }
        Some(first)
    }

    fn of_seed(context: &Context<'_>, single: &Single, trial: &Trial, healthy: &Healthy) -> Case {
        let lab = context.lab;
        let time_ps = trial.until_ps.saturating_sub(trial.from_ps);
        let usual = healthy.bytes(trial.from_ps, trial.until_ps);
        let pairs = single.cause.part(lab).map(|part| context.reach.cut_off(part)).unwrap_or_default();
        // Requests that fail without the failure as well. After the window the run with the failure
        // waits until the requests without a path have failed.
        let anyway = healthy.failed(trial.until_ps, trial.recovered_ps.is_some());
        let mut hosts = Vec::with_capacity(trial.hosts.len());
        for (number, (host, config)) in (0..).zip(trial.hosts.iter().zip(&lab.hosts)) {
            let of_host = pairs.iter().filter(|((host, _), _)| *host == number);
            hosts.push(HostCase {
                name: config.name.clone(),
                worst_bytes_per_s: host.worst_bytes_per_s,
                throughput_bytes_per_s: per_s(host.bytes, time_ps),
                healthy_bytes_per_s: per_s(usual.get(usize::from(number)).copied().unwrap_or(0), time_ps),
                longest_stall_s: s_of_ps(host.stall_ps),
                stall_ended: host.stall_ended,
                ios_failed: host.failed.saturating_sub(anyway.get(usize::from(number)).copied().unwrap_or(0)),
                ios_unfinished: host.unfinished,
                cut_off: of_host.flat_map(|(pair, luns)| shown(lab, *pair, luns)).collect(),
            });
        }
        let stalled = (hosts.iter().zip(&healthy.is_idle))
            .filter(|(host, is_idle)| host.longest_stall_s > 0.0 && !**is_idle)
            .map(|(host, _)| host)
            .reduce(|longest, host| if host.longest_stall_s > longest.longest_stall_s { host } else { longest });
        let throughput_bytes_per_s = per_s(trial.hosts.iter().map(|host| host.bytes).sum(), time_ps);
        // Nothing has recovered if all that is left is cut off.
        let recovered_ps = trial.recovered_ps.filter(|_| pairs.is_empty() || throughput_bytes_per_s > 0.0);
        let row = WhatIfRow {
            name: single.name.clone(),
            kind: single.kind.word().to_owned(),
            recovered: recovered_ps.is_some(),
            recovery_s: recovered_ps.map(|at_ps| s_of_ps(at_ps.saturating_sub(context.at_ps))),
            throughput_bytes_per_s,
            healthy_bytes_per_s: per_s(usual.iter().sum(), time_ps),
            from_s: s_of_ps(trial.from_ps),
            until_s: s_of_ps(trial.until_ps),
            worst_bytes_per_s: trial.worst_bytes_per_s,
            longest_stall_s: stalled.map_or(0.0, |host| host.longest_stall_s),
            stalled_host: stalled.map_or_else(String::new, |host| host.name.clone()),
            stall_ended: stalled.is_none_or(|host| host.stall_ended),
            longest_request_us: trial.longest_request_us,
            paths_lost: trial.paths_lost.saturating_sub(healthy.paths_lost),
            pairs_cut_off: pairs.len() as u64,
            cut_off: pairs.iter().map(|(pair, luns)| cut(lab, *pair, luns)).collect(),
            ios_failed: hosts.iter().map(|host| host.ios_failed).sum(),
            ios_unfinished: trial.hosts.iter().map(|host| host.unfinished).sum(),
            intervals: BTreeMap::new(),
        };
        let LeftOut { faults, changes } = context.left_out;
        Case { row, lab_faults_left_out: faults, lab_changes_left_out: changes, hosts }
    }

    /// Sorts cases from worst to best, as [`WhatIfRow::rank`] does.
    pub fn rank(cases: &mut [Case]) {
        let mut rows: Vec<WhatIfRow> = cases.iter().map(|case| case.row.clone()).collect();
        WhatIfRow::rank(&mut rows);
        let place = |case: &Case| rows.iter().position(|row| *row == case.row);
        cases.sort_by_cached_key(place);
    }

    /// The host that keeps the smallest share of its healthy throughput; the first of equals.
    pub fn worst_host(&self) -> Option<&HostCase> {
        let left = |host: &HostCase| host.throughput_bytes_per_s / host.healthy_bytes_per_s.max(1.0);
        self.hosts.iter().filter(|host| host.healthy_bytes_per_s > 0.0).min_by(|a, b| left(a).total_cmp(&left(b)))
    }
}

/// Numbers of a row that gates and intervals can name.
pub const NUMBERS: [&str; 12] = [
    "left",
    "throughput_bytes_per_s",
    "healthy_bytes_per_s",
    "worst_bytes_per_s",
    "recovered",
    "recovery_s",
    "longest_stall_s",
    "longest_request_us",
    "paths_lost",
    "pairs_cut_off",
    "ios_failed",
    "ios_unfinished",
];

/// A number of a row by its name in [`NUMBERS`]; `None` if the row does not have it.
pub fn number(row: &WhatIfRow, name: &str) -> Option<f64> {
    Some(match name {
        "left" => row.left()?,
        "throughput_bytes_per_s" => row.throughput_bytes_per_s,
        "healthy_bytes_per_s" => row.healthy_bytes_per_s,
        "worst_bytes_per_s" => row.worst_bytes_per_s,
        "recovered" => f64::from(u8::from(row.recovered)),
        "recovery_s" => row.recovery_s?,
        "longest_stall_s" => row.longest_stall_s,
        "longest_request_us" => row.longest_request_us,
        "paths_lost" => row.paths_lost as f64,
        "pairs_cut_off" => row.pairs_cut_off as f64,
        "ios_failed" => row.ios_failed as f64,
        "ios_unfinished" => row.ios_unfinished as f64,
        _ => return None,
    })
}

fn intervals(rows: &[&WhatIfRow]) -> BTreeMap<String, Interval> {
    let of = |name: &&str| {
        let values: Vec<f64> = rows.iter().filter_map(|row| number(row, name)).collect();
        (!values.is_empty()).then(|| ((*name).to_owned(), Interval::of(&values)))
    };
    NUMBERS.iter().filter_map(of).collect()
}

fn cut(lab: &Lab, (host, storage): (u16, u16), luns: &BTreeSet<u16>) -> CutOff {
    let system = &lab.storage[usize::from(storage)].name;
    CutOff {
        host: lab.hosts[usize::from(host)].name.clone(),
        storage: system.clone(),
        luns: luns.iter().map(|lun| format!("{system}:lun{lun}")).collect(),
    }
}

/// `array1` if all its LUNs are cut off, or the LUNs.
fn shown(lab: &Lab, pair: (u16, u16), luns: &BTreeSet<u16>) -> Vec<String> {
    let cut = cut(lab, pair, luns);
    let all = lab.storage.get(usize::from(pair.1)).is_some_and(|system| system.luns.len() == cut.luns.len());
    if all { vec![cut.storage] } else { cut.luns }
}
