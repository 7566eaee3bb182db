//! Findings: the most important observations about a run, worst first. Every finding cites the
//! numbers from which it follows.

mod blocks;
mod command_windows;
mod credits;
mod fabric;
mod fcoe_drops;
mod forwarder;
mod lanes;
mod limits;
mod pause_spreading;
mod pauses;
mod servers;
mod slow_drain;
mod stalls;
mod tail_drops;
mod windows;

use super::view::View;
use crate::world::HostNode;
use sanloom_api::results::{Finding, FindingKind, HostResult, Results, Victim};
use sanloom_api::words::plural;

/// Shortest stall, in ps.
const SHORTEST_STALL_PS: u64 = 50_000_000_000;
/// Length from which on a pause between completions is a stall although the mean response time is
/// long, in ps.
const LONG_STALL_PS: u64 = 1_000_000_000_000;

/// Returns all findings, worst first.
pub(super) fn findings(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    if view.measured_ps == 0 {
        return found;
    }
    found.extend(credits::deadlocks(view));
    found.extend(pauses::deadlocks(view));
    found.extend(blocks::deadlocks(view));
    found.extend(blocks::stalls(results));
    found.extend(blocks::early_repetitions(view, results));
    found.extend(blocks::too_few(view, results));
    found.extend(blocks::saturated(results));
    found.extend(lanes::spreading(view, results));
    found.extend(pauses::mismatches(view));
    found.extend(pauses::headroom(results));
    found.extend(pause_spreading::spreading(view, results));
    found.extend(tail_drops::find(view, results));
    found.extend(tail_drops::of_tunnels(view, results));
    found.extend(fcoe_drops::find(view, results));
    found.extend(fcoe_drops::of_receivers(view, results));
    found.extend(pauses::saturated(results));
    found.extend(slow_drain::find(view, results));
    found.extend(credits::lost(view));
    found.extend(broken_traces(results));
    found.extend(data_losses(results));
    found.extend(stalls::failures(view, results));
    found.extend(fabric::isolated(view));
    found.extend(fabric::rejected_logins(view));
    found.extend(fabric::unchanged(view));
    found.extend(fabric::pathless(view, results));
    let stalls = stalls::find(view, results, &found);
    found.extend(stalls);
    found.extend(credits::too_few(view, results));
    found.extend(limits::storage(view, results));
    found.extend(limits::links(view, results));
    found.extend(limits::hosts(view, results));
    found.extend(servers::find(view, results));
    found.extend(command_windows::find(view, results));
    found.extend(windows::find(view, results));
    found.sort_by_key(|finding| rank(finding.kind));
    found
}

/// Traces whose replay an error ended.
fn broken_traces(results: &Results) -> impl Iterator<Item = Finding> {
    results.streams.iter().filter_map(|stream| {
        let trace = stream.trace.as_ref()?;
        Some(Finding {
            kind: FindingKind::BrokenTrace,
            title: format!("the trace of `{}` ended after {}", stream.name, plural(trace.requests, "request")),
            detail: trace.error.clone()?,
            ..Finding::default()
        })
    })
}

/// Storage systems that have lost data, or returned wrong data.
fn data_losses(results: &Results) -> impl Iterator<Item = Finding> {
    results.storage.iter().filter_map(|storage| {
        let loss = storage.data_loss.as_ref()?;
        let mut parts = Vec::new();
        if loss.wrong_reads > 0 {
            let reads = plural(loss.wrong_reads, "read");
            parts.push(format!("{reads} returned wrong data with good status, which no host can notice"));
        }
        if loss.lost_requests > 0 {
            parts.push(format!("{} ended with MEDIUM ERROR", plural(loss.lost_requests, "request")));
        }
        if loss.lost_blocks > 0 {
            let blocks = plural(loss.lost_blocks, "block");
            parts.push(format!("{blocks} of 512 bytes were lost in caches after their writes had been acknowledged"));
        }
        if loss.damaged_stripes > 0 {
            let stripes = plural(loss.damaged_stripes, "stripe");
            parts.push(format!("a power failure may have changed data in {stripes} that nobody wrote (write hole)"));
        }
        let first = loss.first_requests.first().map(|first| {
            let last = first.block + u64::from(first.blocks) - 1;
            let kind = if first.write { "write" } else { "read" };
            format!("; first a {kind} of blocks {} to {last} of lun{} at {:.6} s", first.block, first.lun, first.at_s)
        });
        (!parts.is_empty()).then(|| Finding {
            kind: FindingKind::DataLoss,
            title: format!("{} lost data", storage.name),
            detail: format!("{}{}", parts.join("; "), first.unwrap_or_default()),
            ..Finding::default()
        })
    })
}

fn rank(kind: FindingKind) -> u8 {
    match kind {
        FindingKind::Deadlock => 0,
        FindingKind::DataLoss | FindingKind::HeadroomLoss | FindingKind::IoFailures | FindingKind::BrokenTrace => 1,
        FindingKind::IsolatedLink => 2,
        FindingKind::LoginsRejected => 3,
        FindingKind::NoPath | FindingKind::ZonesUnchanged => 4,
        FindingKind::SlowDrain | FindingKind::CongestionSpreading | FindingKind::CongestionLoss => 5,
        FindingKind::CreditLoss | FindingKind::DcbMismatch => 6,
        FindingKind::Stall => 7,
        FindingKind::Bottleneck => 8,
        FindingKind::StorageBound => 9,
    }
}

/// Returns the minimum duration of a stall: 50 ms and at least twenty times the mean response time.
/// The requests of a long stall raise the mean themselves. Therefore a second without a completed
/// request is a stall, too, if it is twenty times the response time of the fastest tenth.
pub(super) fn stall_threshold_ps(host: &HostNode) -> u64 {
    let latency = &host.measured.latency;
    let exact = latency.exact();
    let mean_ps = if exact.count() == 0 { 0 } else { (exact.sum() / u128::from(exact.count())) as u64 };
    let of_mean_ps = mean_ps.saturating_mul(20).max(SHORTEST_STALL_PS);
    if of_mean_ps <= LONG_STALL_PS {
        return of_mean_ps;
    }
    let fast_ps = latency.quantile_ns(0.1).unwrap_or(0).saturating_mul(1_000);
    of_mean_ps.min(fast_ps.saturating_mul(20).max(LONG_STALL_PS))
}

/// Returns hosts as victims, with their throughput.
fn with_rates(hosts: &[&HostResult]) -> Vec<Victim> {
    let victim = |host: &&HostResult| Victim {
        name: host.name.clone(),
        during_bytes_per_s: host.io.throughput_bytes_per_s,
        ..Victim::default()
    };
    hosts.iter().map(victim).collect()
}

/// Formats a share as a whole percentage.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a list of names and shortens a long one: `a, b, c and 4 more`.
pub(super) fn list(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
