//! Findings about stalled I/O and failed requests.

use super::super::events::fault_text;
use super::super::hosts::longest_stall;
use super::super::view::View;
use super::{list, stall_threshold_ps};
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{Candidate, Finding, FindingKind, Measure, Results, Victim};
use sanloom_api::words::plural;
use sanloom_fc::config::{Fault, FaultKind, Host, Picos};
use std::collections::BTreeMap;

/// Shortest timer that a remedy proposes.
const SHORTEST_TIMER: Picos = Picos::from_ms(100);

struct Stall {
    host: usize,
    began_ps: u64,
    length_ps: u64,
}

/// Returns one finding per fault that explains stalls, and one for all other stalls, for which a
/// deadlock among the findings `before` may be the reason.
pub(super) fn find(view: &View<'_>, results: &Results, before: &[Finding]) -> Vec<Finding> {
    let mut by_fault: BTreeMap<Option<usize>, Vec<Stall>> = BTreeMap::new();
    for (host, node) in view.world.hosts.nodes.iter().enumerate() {
        let (length_ps, began_ps) = longest_stall(node, view.now_ps);
        if super::fabric::is_pathless(node) {
            // Hosts without a path have a finding of their own.
            continue;
        }
        if length_ps >= stall_threshold_ps(node) {
            let stall = Stall { host, began_ps, length_ps };
            by_fault.entry(explanation(view, &stall)).or_default().push(stall);
        }
    }
    by_fault.into_iter().map(|(fault, stalls)| finding(view, results, before, fault, &stalls)).collect()
}

/// Returns the last fault that explains a stall. It must begin before a tenth of the stall has
/// passed. If it ends, its end lies at most a tenth of the stall's length before the stall. The
/// measurement cuts off the begin of a stall in the warm-up, so any fault of the warm-up explains a
/// stall from the end of the warm-up on.
fn explanation(view: &View<'_>, stall: &Stall) -> Option<usize> {
    let start_ps = view.world.start_ps;
    let soon_ps = stall.began_ps + stall.length_ps / 10;
    let is_cut = stall.began_ps <= view.from_ps;
    let faults = view.world.lab.faults.iter().enumerate();
    let explains = faults.filter(|(_, fault)| {
        let (at, until) = (start_ps + fault.at.0, fault.until.map(|until| start_ps + until.0 + after_ps(view, fault)));
        at <= soon_ps && (is_cut || until.is_none_or(|until| until + stall.length_ps / 10 >= stall.began_ps))
    });
    explains.map(|(number, _)| number).next_back()
}

/// Returns the time after the end of a fault in which its consequences end: LUNs move back to a
/// controller that has returned.
fn after_ps(view: &View<'_>, fault: &Fault) -> u64 {
    let FaultKind::ControllerFailure { storage, .. } = fault.kind else { return 0 };
    let controllers = &view.world.lab.storage[usize::from(storage)].controllers;
    controllers.failback.map_or(0, |failback| failback.0) + controllers.takeover.0
}

/// Returns a deadlock among findings that was found before the end of a stall.
fn deadlock_until(findings: &[Finding], end_s: f64) -> Option<&Finding> {
    let mut deadlocks = findings.iter().filter(|finding| finding.kind == FindingKind::Deadlock);
    deadlocks.find(|deadlock| deadlock.from_s.is_some_and(|from_s| from_s < end_s))
}

fn finding(view: &View<'_>, results: &Results, before: &[Finding], fault: Option<usize>, stalls: &[Stall]) -> Finding {
    let name = |stall: &Stall| results.hosts[stall.host].name.clone();
    let names: Vec<String> = stalls.iter().map(name).collect();
    let longest_ps = stalls.iter().map(|stall| stall.length_ps).max().unwrap_or(0);
    let began_ps = stalls.iter().map(|stall| stall.began_ps).min().unwrap_or(0);
    let ended_ps = stalls.iter().map(|stall| stall.began_ps + stall.length_ps).max().unwrap_or(0);
    let text = fault.map(|number| fault_text(view, &view.world.lab.faults[number]));
    let since_start = |ps: u64| s_of_ps(ps.saturating_sub(view.world.start_ps));
    Finding {
        kind: FindingKind::Stall,
        title: match &names[..] {
            [one] => format!("I/O of {one} stalled for {:.3} s", s_of_ps(longest_ps)),
            _ => format!("I/O of {} hosts stalled for up to {:.3} s", names.len(), s_of_ps(longest_ps)),
        },
        detail: match &text {
            Some(text) => format!("{} after \"{}\"", list(&names), text.what),
            None if lossless_frames_were_lost(results) => {
                format!("{}; frames of lossless priorities were lost, because a headroom is too small", list(&names))
            }
            None => match deadlock_until(before, since_start(ended_ps)) {
                Some(deadlock) => format!("{}; a deadlock was found meanwhile: {}", list(&names), deadlock.title),
                None => format!("{}; no fault of the lab explains it", list(&names)),
            },
        },
        candidates: if text.is_some() { shorter_timers(view, stalls) } else { Vec::new() },
        measure: Measure::Stall,
        culprit: text.and_then(|text| text.subject()),
        victims: stalls.iter().map(|stall| Victim { name: name(stall), ..Victim::default() }).collect(),
        from_s: Some(since_start(began_ps)),
        until_s: (ended_ps < view.now_ps).then(|| since_start(ended_ps)),
        ..Finding::default()
    }
}

/// Returns whether a headroom of Ethernet was too small.
fn lossless_frames_were_lost(results: &Results) -> bool {
    results.ethernet_switches.iter().any(|switch| switch.headroom_drops > 0)
}

/// Returns changes that may end the wait for a lost path earlier.
fn shorter_timers(view: &View<'_>, stalls: &[Stall]) -> Vec<Candidate> {
    let longest = |timer: fn(&Host) -> Picos| {
        stalls.iter().map(|stall| timer(&view.world.lab.hosts[stall.host])).max().unwrap_or_default()
    };
    let timers = [
        ("multipath.fast_io_fail", longest(|host| host.multipath.fast_io_fail)),
        ("command_timeout", longest(|host| host.command_timeout)),
        ("abort_timeout", longest(|host| host.recovery.abort_timeout)),
    ];
    let set = |(key, now): (&str, Picos)| {
        let shorter = Picos(now.0 / 10).max(SHORTEST_TIMER);
        (shorter < now).then(|| (format!("host.*.{key}"), shorter.to_string()))
    };
    let name = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let mut sets: Vec<(String, String)> = timers.into_iter().filter_map(set).collect();
    let one = |set: &(String, String)| Candidate {
        what: format!("{} of {} for every host", name(&set.0), set.1),
        set: vec![set.clone()],
    };
    let mut found: Vec<Candidate> = sets.iter().map(one).collect();
    if found.len() > 1 {
        let what = sets.iter().map(|set| format!("{} of {}", name(&set.0), set.1)).collect::<Vec<_>>().join(" and ");
        found.push(Candidate { what: format!("{what} for every host"), set: std::mem::take(&mut sets) });
    }
    found
}

/// Returns a finding for requests that failed permanently.
pub(super) fn failures(view: &View<'_>, results: &Results) -> Option<Finding> {
    let failed: Vec<_> = results.hosts.iter().filter(|host| host.io.ios_failed > 0).collect();
    let worst = failed.iter().max_by_key(|host| host.io.ios_failed)?;
    let names: Vec<String> = failed.iter().map(|host| host.name.clone()).collect();
    let refused: u64 = failed.iter().map(|host| host.ios_refused).sum();
    let total = results.totals.io.ios_failed;
    Some(Finding {
        kind: FindingKind::IoFailures,
        title: format!("{} failed permanently", plural(total, "request")),
        detail: format!(
            "{}; {refused} of them because the waiting queue was full; {} of {}",
            list(&names),
            worst.io.ios_failed,
            worst.name
        ),
        candidates: fewer_failures(view, refused == total),
        measure: Measure::Failures,
        victims: super::with_rates(&failed),
        ..Finding::default()
    })
}

/// Returns changes that may avoid failed requests. `refused`: all failed because the waiting queue
/// was full.
fn fewer_failures(view: &View<'_>, refused: bool) -> Vec<Candidate> {
    let hosts = &view.world.lab.hosts;
    let candidate = |what: String, key: &str, value: String| Candidate {
        what: format!("{what} for every host"),
        set: vec![(format!("host.*.{key}"), value)],
    };
    if refused {
        let most = hosts.iter().filter_map(|host| host.queue.max_waiting).max().unwrap_or(0);
        let waiting = most.saturating_mul(4).max(16);
        return vec![candidate(format!("room for {waiting} waiting requests"), "max_waiting", waiting.to_string())];
    }
    let retries = hosts.iter().map(|host| host.retries).max().unwrap_or(0).saturating_mul(2).saturating_add(4);
    let most = 1_200;
    let intervals = hosts.iter().filter_map(|host| host.multipath.no_path_retry).max();
    let intervals = intervals.map(|intervals| intervals.saturating_mul(10).max(1));
    let mut found = vec![candidate(format!("{retries} retries"), "retries", retries.to_string())];
    if let Some(intervals) = intervals.filter(|&intervals| intervals <= most) {
        let what = format!("no_path_retry of {intervals}");
        found.push(candidate(what, "multipath.no_path_retry", intervals.to_string()));
    }
    found
}
