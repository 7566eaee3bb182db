//! Slow drain: an N_Port returns its credits late, frames for it fill the buffers of the fabric,
//! and frames for other ports wait behind them.

use super::super::view::View;
use super::percent;
use crate::net::End;
use crate::world::Owner;
use sanloom_api::results::measure::{ratio, s_of_ps};
use sanloom_api::results::{Candidate, Finding, FindingKind, Results, Victim};
use sanloom_api::words::plural;
use sanloom_fc::config::{Link, Node, Queueing, SlowDrain, Switch};
use std::collections::BTreeSet;

/// Minimum share of the measured time that the sender to a slow receiver waits for credit.
const WAIT_SHARE: f64 = 0.05;
/// Minimum share of the waiting time that the receiver holds a credit; the rest is propagation.
const KEPT_SHARE: f64 = 0.25;
/// Minimum wait of an upstream lane, as a share of the culprit's wait, to count as back-pressure.
const UPSTREAM_SHARE: f64 = 0.1;
/// Minimum share of its throughput that a host loses to count as a victim.
const LOSS: f64 = 0.1;

pub(super) fn find(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let culprits = (0..view.lanes.len() as u32).filter(|&lane| is_slow(view, lane));
    culprits.map(|lane| finding(view, results, lane)).collect()
}

/// Returns the mean number of credits of a lane that its receiver holds although it could return
/// them.
fn kept_credits(view: &View<'_>, lane: u32) -> f64 {
    let held_ps = match view.world.net.fc.lanes()[lane as usize].to {
        End::NPort(nport) => view.world.net.fc.nport(nport).buffers(view.now_ps).area_ps,
        End::Switch { .. } | End::Loop { .. } => 0,
    };
    // Delays of R_RDYs count whole, even if they end after the run.
    let credits = f64::from(view.world.net.fc.lanes()[lane as usize].bb_credit);
    ratio(held_ps + view.lanes[lane as usize].late_ps, view.measured_ps).min(credits)
}

/// Returns whether the lane ends at an N_Port that holds credits while the sender waits for them.
fn is_slow(view: &View<'_>, lane: u32) -> bool {
    let ends_at = &view.world.net.fc.lanes()[lane as usize];
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
            (0, 0) => format!("{port} returns credits late"),
            (0, n) => format!("{port} returns credits late and blocks {}", plural(n, "line")),
            (1, _) => format!("{port} returns credits late and starves one host"),
            (n, _) => format!("{port} returns credits late and starves {n} hosts"),
        },
        detail: format!(
            "{} waited for credit {} of the time ({:.3} s); {port} kept {kept:.1} of its {} credits on average{}",
            view.names.port(view.names.from(culprit)),
            percent(wait_share(view, culprit)),
            s_of_ps(count.credit_wait_ps),
            view.world.net.fc.lanes()[culprit as usize].bb_credit,
            if upstream.is_empty() {
                String::new()
            } else {
                format!("; behind it {} waited for credit", plural(upstream.len(), "line"))
            }
        ),
        candidates: if number_of_hosts > 0 { candidates(view, culprit) } else { Vec::new() },
        culprit: Some(port),
        victims,
        from_s: window.map(|(from, _)| from as f64 * interval_s),
        until_s: window.filter(|_| !whole).map(|(_, until)| until as f64 * interval_s),
        ..Finding::default()
    }
}

/// Returns changes that may keep the frames for the culprit from blocking others.
fn candidates(view: &View<'_>, culprit: u32) -> Vec<Candidate> {
    let lab = &view.world.lab;
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut found = Vec::new();
    let queues = set("switch.*.queueing", "voq");
    let has_voq = lab.switches.iter().all(|switch| switch.queueing == Queueing::Voq);
    if !has_voq {
        let what = "virtual output queues in every switch".to_owned();
        found.push(Candidate { what, set: vec![queues.clone()] });
    }
    let joins_switches = |link: &Link| link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
    let is_watched = |switch: &Switch| switch.quarantine.is_some();
    if has_voq && lab.links.iter().any(joins_switches) && !lab.switches.iter().any(is_watched) {
        // A short run needs short windows.
        let window_us = (lab.run.duration.0 / 50_000_000).clamp(100, 1_000_000);
        found.push(Candidate {
            what: "a quarantine of slow devices".to_owned(),
            set: vec![
                set("switch.*.quarantine", "true"),
                set("switch.*.slow_drain.window", &format!("{window_us}us")),
                set("switch.*.slow_drain.share", &share_of_quarantine(view, culprit)),
            ],
        });
    }
    if let Node::Host(host) = view.names.to(culprit).node {
        // A slow host that has one request in flight occupies few buffers of the fabric.
        let name = &lab.hosts[usize::from(host)].name;
        let limit = set(&format!("host.{name}.queue_depth"), "1");
        let what = format!("one request in flight for {name}");
        found.push(Candidate { what: what.clone(), set: vec![limit.clone()] });
        if !has_voq {
            let what = format!("{what}, and virtual output queues in every switch");
            found.push(Candidate { what, set: vec![limit, queues] });
        }
    }
    let buffers = lab.links.iter().flat_map(|link| &link.ends).filter(|end| matches!(end.node, Node::Switch(_)));
    let most = buffers.map(|end| u32::from(end.bb_credit)).max().unwrap_or(1);
    let more = (4 * most).min(u16::MAX.into()).to_string();
    let what = format!("{more} buffers in every port of a switch");
    found.push(Candidate { what, set: vec![set("switch.*.buffers", &more)] });
    found
}

/// Returns a share of a window by which the culprit is detected: half of its share over the run, at
/// most that of Fabric OS.
fn share_of_quarantine(view: &View<'_>, culprit: u32) -> String {
    let usual = f64::from(SlowDrain::default().share_permille) / 1_000.0;
    format!("{:.3}", (wait_share(view, culprit) / 2.0).min(usual))
}

/// Returns the lanes upstream that wait for credit because of the back-pressure. The search goes
/// against the traffic, from switch to switch, as long as lanes wait.
fn upstream(view: &View<'_>, culprit: u32) -> BTreeSet<u32> {
    let threshold = UPSTREAM_SHARE * wait_share(view, culprit);
    let lanes = view.world.net.fc.lanes();
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

/// Returns the range of steps, end excluded, in which the sender noticeably waits for credit.
fn window(results: &Results, culprit: u32) -> Option<(usize, usize)> {
    let series = &results.series.links.get(culprit as usize)?.credit_wait_fraction;
    let most = series.iter().copied().fold(0.0, f64::max);
    let waits = |share: &f64| *share > 0.0 && *share >= 0.25 * most;
    let first = series.iter().position(waits)?;
    Some((first, series.iter().rposition(waits)? + 1))
}

/// Returns the hosts that lose throughput while the culprit is slow, and whose frames use the
/// waiting lanes.
fn hosts(
    view: &View<'_>,
    results: &Results,
    culprit: u32,
    upstream: &BTreeSet<u32>,
    window: Option<(usize, usize)>,
) -> Vec<Victim> {
    let culprit_node = view.names.to(culprit).node;
    let mut victims = Vec::new();
    for (host, node) in view.world.hosts.nodes.iter().enumerate() {
        if culprit_node == Node::Host(host as u16) {
            continue;
        }
        let systems: BTreeSet<u16> = node.paths.systems().iter().map(|system| system.storage).collect();
        let concerns = |lane: &u32| match view.world.net.fc.lanes()[*lane as usize].from {
            End::NPort(nport) => match view.world.nports.nodes[usize::from(nport)].owner {
                Owner::Host { host: owner, .. } => usize::from(owner) == host,
                Owner::Storage { storage, .. } => systems.contains(&storage),
            },
            End::Switch { .. } | End::Loop { .. } => false,
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

/// Returns the upstream links that wait for credit.
fn links(view: &View<'_>, results: &Results, upstream: &BTreeSet<u32>) -> Vec<Victim> {
    let of = |&lane: &u32| {
        let link = &results.links[lane as usize / 2];
        let direction = if lane.is_multiple_of(2) { &link.forward } else { &link.backward };
        Victim {
            name: link.name.clone(),
            before_bytes_per_s: 0.0,
            during_bytes_per_s: direction.throughput_bytes_per_s,
            credit_wait_s: s_of_ps(view.lanes[lane as usize].credit_wait_ps),
        }
    };
    upstream.iter().map(of).collect()
}
