//! Slow drain: an N_Port gives its credits back late, frames for it fill the buffers of the fabric, and frames of others
//! wait behind them.

use super::super::view::View;
use super::percent;
use crate::net::End;
use crate::world::Owner;
use sanloom_api::results::measure::{ratio, s_of_ps};
use sanloom_api::results::{Finding, FindingKind, Results, Victim};
use sanloom_core::config::Node;
use std::collections::BTreeSet;

/// Share of the measured time that the sender to a slow receiver waits for credit, at least.
const WAIT_SHARE: f64 = 0.05;
/// Share of the waiting time that a credit is kept by the receiver, at least; the rest is the way.
const KEPT_SHARE: f64 = 0.25;
/// A lane upstream belongs to the back-pressure if it waits for this share of the culprit's wait.
const UPSTREAM_SHARE: f64 = 0.1;
/// A host is a victim if it loses this share of its throughput.
const LOSS: f64 = 0.1;

pub(super) fn find(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let culprits = (0..view.lanes.len() as u32).filter(|&lane| is_slow(view, lane));
    culprits.map(|lane| finding(view, results, lane)).collect()
}

/// Mean number of credits of a lane that its receiver keeps although it could give them back.
fn kept_credits(view: &View<'_>, lane: u32) -> f64 {
    let held_ps = match view.world.net.lanes()[lane as usize].to {
        End::NPort(nport) => view.world.net.nport_buffers(nport).area_ps,
        End::Switch { .. } => 0,
    };
    ratio(held_ps + view.lanes[lane as usize].late_ps, view.measured_ps)
}

/// The lane ends at an N_Port that keeps credits while the sender waits for them.
fn is_slow(view: &View<'_>, lane: u32) -> bool {
    let ends_at = &view.world.net.lanes()[lane as usize];
    let wait = wait_share(view, lane);
    let credits = f64::from(ends_at.bb_credit);
    matches!(ends_at.to, End::NPort(_)) && wait >= WAIT_SHARE && kept_credits(view, lane) >= KEPT_SHARE * wait * credits
}

fn wait_share(view: &View<'_>, lane: u32) -> f64 {
    ratio(view.lanes[lane as usize].credit_wait_ps.min(view.measured_ps), view.measured_ps)
}

fn finding(view: &View<'_>, results: &Results, culprit: u32) -> Finding {
    let upstream = upstream(view, culprit);
    let window = window(results, culprit);
    let port = view.names.port(view.names.to(culprit));
    let mut victims = links(view, results, &upstream);
    let hosts = hosts(view, results, culprit, &upstream, window);
    let number_of_hosts = hosts.len();
    victims.splice(0..0, hosts);
    let count = &view.lanes[culprit as usize];
    let kept = kept_credits(view, culprit);
    let interval_s = results.series.interval_s;
    let whole = window.is_some_and(|(_, until)| until as u64 >= results.series.steps);
    Finding {
        kind: FindingKind::SlowDrain,
        title: match (number_of_hosts, upstream.len()) {
            (0, 0) => format!("{port} gives credits back late"),
            (0, n) => format!("{port} gives credits back late and holds up {n} lines"),
            (n, _) => format!("{port} gives credits back late and starves {n} others"),
        },
        detail: format!(
            "{} waited for credit {} of the time ({:.3} s); {port} kept {kept:.1} of its {} credits on average{}",
            view.names.port(view.names.from(culprit)),
            percent(wait_share(view, culprit)),
            s_of_ps(count.credit_wait_ps),
            view.world.net.lanes()[culprit as usize].bb_credit,
            if upstream.is_empty() {
                String::new()
            } else {
                format!("; behind it {} lines waited for credit", upstream.len())
            }
        ),
        remedy: format!(
            "Find what slows {port}, or keep its frames from blocking others: virtual output queues (queueing = \"voq\"), \
             more buffers, or a zone of its own"
        ),
        culprit: Some(port),
        victims,
        from_s: window.map(|(from, _)| from as f64 * interval_s),
        until_s: window.filter(|_| !whole).map(|(_, until)| until as f64 * interval_s),
        ..Finding::default()
    }
}

/// The lanes that wait because their receiver's buffers are full of frames that wait themselves: against the traffic,
/// from switch to switch, as long as there is a wait.
fn upstream(view: &View<'_>, culprit: u32) -> BTreeSet<u32> {
    let threshold = UPSTREAM_SHARE * wait_share(view, culprit);
    let lanes = view.world.net.lanes();
    let mut found = BTreeSet::new();
    let mut agenda = vec![culprit];
    while let Some(lane) = agenda.pop() {
        let End::Switch { switch, .. } = lanes[lane as usize].from else { continue };
        for (other, number) in lanes.iter().zip(0u32..) {
            let arrives = matches!(other.to, End::Switch { switch: s, .. } if s == switch);
            if arrives && number != culprit && wait_share(view, number) >= threshold && found.insert(number) {
                agenda.push(number);
            }
        }
    }
    found
}

/// First step, and the one after the last, in which the sender waits for credit noticeably.
fn window(results: &Results, culprit: u32) -> Option<(usize, usize)> {
    let series = &results.series.links.get(culprit as usize)?.credit_wait_fraction;
    let most = series.iter().copied().fold(0.0, f64::max);
    let waits = |share: &f64| *share > 0.0 && *share >= 0.25 * most;
    let first = series.iter().position(waits)?;
    Some((first, series.iter().rposition(waits)? + 1))
}

/// Hosts that lose throughput while the culprit is slow, and whose frames go through the lanes that wait.
fn hosts(
    view: &View<'_>,
    results: &Results,
    culprit: u32,
    upstream: &BTreeSet<u32>,
    window: Option<(usize, usize)>,
) -> Vec<Victim> {
    let culprit_node = view.names.to(culprit).node;
    let mut victims = Vec::new();
    for (host, node) in view.world.hosts.iter().enumerate() {
        if culprit_node == Node::Host(host as u16) {
            continue;
        }
        let systems: BTreeSet<u16> = node.paths.systems().iter().map(|system| system.storage).collect();
        let concerns = |lane: &u32| match view.world.net.lanes()[*lane as usize].from {
            End::NPort(nport) => match view.world.nodes[usize::from(nport)].owner {
                Owner::Host { host: owner, .. } => usize::from(owner) == host,
                Owner::Storage { storage, .. } => systems.contains(&storage),
            },
            End::Switch { .. } => false,
        };
        let wait_ps = upstream.iter().filter(|lane| concerns(lane));
        let wait_ps = wait_ps.map(|&lane| view.lanes[lane as usize].credit_wait_ps).max();
        let Some(wait_ps) = wait_ps else { continue };
        let series = &results.series.hosts[host].throughput_bytes_per_s;
        let (before, during) = window.map_or((None, None), |(from, until)| {
            let warmed = (view.from_ps - view.world.start_ps) as f64 / 1e12 / results.series.interval_s.max(1e-12);
            let warmed = (warmed.ceil() as usize).min(from);
            let until = until.min(series.len());
            let outside = series[warmed..from].iter().chain(&series[until..]).copied();
            (mean(outside), mean(series[from..until].iter().copied()))
        });
        let victim = Victim {
            name: results.hosts[host].name.clone(),
            before_bytes_per_s: before.unwrap_or(0.0),
            during_bytes_per_s: during.unwrap_or(results.hosts[host].io.throughput_bytes_per_s),
            credit_wait_s: s_of_ps(wait_ps),
        };
        if before.is_none() || victim.loss() >= LOSS {
            victims.push(victim);
        }
    }
    victims
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The links that wait upstream.
fn links(view: &View<'_>, results: &Results, upstream: &BTreeSet<u32>) -> Vec<Victim> {
    let of = |&lane: &u32| {
        let link = &results.links[lane as usize / 2];
        let way = if lane.is_multiple_of(2) { &link.forward } else { &link.backward };
        Victim {
            name: link.name.clone(),
            before_bytes_per_s: 0.0,
            during_bytes_per_s: way.throughput_bytes_per_s,
            credit_wait_s: s_of_ps(view.lanes[lane as usize].credit_wait_ps),
        }
    };
    upstream.iter().map(of).collect()
}
