//! I/O that stood still, and requests that failed.

use super::super::events::fault_text;
use super::super::hosts::longest_stall;
use super::super::view::View;
use super::{list, stall_threshold_ps};
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{Finding, FindingKind, Results, Victim};
use std::collections::BTreeMap;

struct Stall {
    host: usize,
    began_ps: u64,
    length_ps: u64,
}

/// One finding for all stalls that the same fault explains, and one for all that none does.
pub(super) fn find(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut by_fault: BTreeMap<Option<usize>, Vec<Stall>> = BTreeMap::new();
    for (host, node) in view.world.hosts.iter().enumerate() {
        let (length_ps, began_ps) = longest_stall(node, view.now_ps);
        if super::fabric::is_pathless(node) {
            // That is a finding of its own.
            continue;
        }
        if length_ps >= stall_threshold_ps(node) {
            let stall = Stall { host, began_ps, length_ps };
            by_fault.entry(explanation(view, &stall)).or_default().push(stall);
        }
    }
    by_fault.into_iter().map(|(fault, stalls)| finding(view, results, fault, &stalls)).collect()
}

/// The last fault that was active when the stall began or began while the first tenth of it passed.
fn explanation(view: &View<'_>, stall: &Stall) -> Option<usize> {
    let start_ps = view.world.start_ps;
    let soon_ps = stall.began_ps + stall.length_ps / 10;
    let faults = view.world.lab.faults.iter().enumerate();
    let explains = faults.filter(|(_, fault)| {
        let (at, until) = (start_ps + fault.at.0, fault.until.map(|until| start_ps + until.0));
        at <= soon_ps && until.is_none_or(|until| until + stall.length_ps / 10 >= stall.began_ps)
    });
    explains.map(|(number, _)| number).next_back()
}

fn finding(view: &View<'_>, results: &Results, fault: Option<usize>, stalls: &[Stall]) -> Finding {
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
            [one] => format!("I/O of {one} stood still for {:.3} s", s_of_ps(longest_ps)),
            _ => format!("I/O of {} hosts stood still for up to {:.3} s", names.len(), s_of_ps(longest_ps)),
        },
        detail: match &text {
            Some(text) => format!("{} after \"{}\"", list(&names), text.what),
            None => format!("{}; no fault of the lab explains it", list(&names)),
        },
        remedy: match &text {
            Some(_) => {
                "A second path, a shorter fast_io_fail or a shorter command timeout ends the wait earlier".to_owned()
            }
            None => String::new(),
        },
        culprit: text.and_then(|text| text.subject()),
        victims: stalls.iter().map(|stall| Victim { name: name(stall), ..Victim::default() }).collect(),
        from_s: Some(since_start(began_ps)),
        until_s: (ended_ps < view.now_ps).then(|| since_start(ended_ps)),
        ..Finding::default()
    }
}

/// Requests that failed for good.
pub(super) fn failures(results: &Results) -> Option<Finding> {
    let failed: Vec<_> = results.hosts.iter().filter(|host| host.io.ios_failed > 0).collect();
    let worst = failed.iter().max_by_key(|host| host.io.ios_failed)?;
    let names: Vec<String> = failed.iter().map(|host| host.name.clone()).collect();
    let refused: u64 = failed.iter().map(|host| host.ios_refused).sum();
    let total = results.totals.io.ios_failed;
    Some(Finding {
        kind: FindingKind::IoFailures,
        title: format!("{total} requests failed for good"),
        detail: format!(
            "{}; {refused} of them because the waiting queue was full; {} of {}",
            list(&names),
            worst.io.ios_failed,
            worst.name
        ),
        remedy: if refused == total {
            "A longer waiting queue, or less load".to_owned()
        } else {
            "More paths, more retries, or a longer no_path_timeout".to_owned()
        },
        victims: failed
            .iter()
            .map(|host| Victim {
                name: host.name.clone(),
                during_bytes_per_s: host.io.throughput_bytes_per_s,
                ..Victim::default()
            })
            .collect(),
        ..Finding::default()
    })
}
