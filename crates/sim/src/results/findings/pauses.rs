//! Findings about lossless Ethernet: deadlocks, lost frames, and congestion that spreads.

use super::percent;
use crate::net::ethernet::Station;
use crate::results::view::View;
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{EthernetDirection, Finding, FindingKind, Results, Victim};
use sanloom_api::words::plural;
use sanloom_fc::san::dcb_mismatches;
use std::collections::BTreeMap;

/// Share of the time for which a sender is paused, from which on congestion spreads.
const SPREADS: f64 = 0.05;
/// Utilisation of a saturated link.
const SATURATED: f64 = 0.95;

/// Priorities of links that wait for each other in a circle.
pub(super) fn deadlocks(view: &View<'_>) -> Vec<Finding> {
    let lab = &view.world.lab;
    let mut found = view.world.net.ethernet.deadlocks().iter().filter(|deadlock| deadlock.at_ps >= view.from_ps);
    // A deadlock that grows is found again; the last time has all of its links.
    let Some(last) = found.next_back() else { return Vec::new() };
    let name = |&(line, priority): &(u32, u8)| {
        let link = &lab.ethernet_links[line as usize / 2];
        format!("{} priority {priority}", link.ends[line as usize % 2].name(lab))
    };
    let cycle: Vec<String> = last.waits.iter().map(name).collect();
    let at_s = s_of_ps(last.at_ps.saturating_sub(view.world.start_ps));
    vec![Finding {
        kind: FindingKind::Deadlock,
        title: format!("{} wait for each other's pause to end", plural(cycle.len() as u64, "port")),
        detail: format!(
            "Deadlock of pauses, found at {at_s:.6} s: every frame that a paused port waits for is behind another paused port"
        ),
        remedy: "Remove the cycle: let no path go up again after it went down, or use another priority for part of the traffic, with PFC".to_owned(),
        cycle,
        from_s: Some(at_s),
        ..Finding::default()
    }]
}

/// Links whose ends keep different settings. `check` warns of the same links.
pub(super) fn mismatches(view: &View<'_>) -> impl Iterator<Item = Finding> {
    let lab = &view.world.lab;
    dcb_mismatches(lab).into_iter().map(|mismatch| Finding {
        kind: FindingKind::DcbMismatch,
        title: format!("the ends of {} do not agree by DCBX", lab.ethernet_links[mismatch.link].name),
        detail: mismatch.reason,
        remedy: format!("To agree, {}", mismatch.remedy),
        culprit: Some(lab.ethernet_links[mismatch.link].name.clone()),
        ..Finding::default()
    })
}

/// Lossless priorities that lost frames because of their headroom.
pub(super) fn headroom(results: &Results) -> Vec<Finding> {
    let directions =
        results.ethernet_links.iter().flat_map(|link| [&link.forward, &link.backward].map(|way| (link, way)));
    let losing = directions.filter(|(_, way)| way.headroom_drops > 0);
    let finding = |(link, way): (&sanloom_api::results::EthernetLinkResult, &EthernetDirection)| Finding {
        kind: FindingKind::HeadroomLoss,
        title: format!("{} lost {} of lossless priorities", way.to, plural(way.headroom_drops, "frame")),
        detail: format!(
            "its headroom of {} bytes was full: more frames arrived over {} after a pause was sent. The lab is \
             at fault, because a lossless priority must lose no frame; the count covers the warm-up, too",
            way.headroom_bytes, link.name
        ),
        remedy: "Leave `headroom` of the switch out, or set it to the bytes that `sanloom check` computes".to_owned(),
        culprit: Some(way.to.clone()),
        ..Finding::default()
    };
    losing.map(finding).collect()
}

/// Congestion that pauses other traffic: the port where it begins, and the senders that it pauses.
pub(super) fn spreading(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let way = |line: usize| {
        let link = &results.ethernet_links[line / 2];
        if line.is_multiple_of(2) { &link.forward } else { &link.backward }
    };
    let lines = view.world.net.ethernet.lines();
    let is_paused = |line: usize| way(line).paused_fraction > SPREADS;
    let mut roots: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for line in (0..lines.len()).filter(|line| is_paused(*line)) {
        let (mut at, mut visited) = (line, vec![line]);
        // Follow pauses down to the port that is not paused itself, or that an interface pauses.
        while let Station::Switch { switch, .. } = lines[at].to {
            let from_here =
                |other: &usize| matches!(lines[*other].from, Station::Switch { switch: own, .. } if own == switch);
            let waits =
                |other: &usize| way(*other).queue_max_bytes > 0 && (*other ^ 1) != at && !visited.contains(other);
            let next = (0..lines.len()).filter(from_here).filter(waits);
            let load = |other: &usize| {
                if is_paused(*other) { 1.0 + way(*other).paused_fraction } else { way(*other).utilisation }
            };
            let Some(worst) = next.max_by(|a, b| load(a).total_cmp(&load(b)).then(b.cmp(a))) else { break };
            at = worst;
            visited.push(worst);
            if !is_paused(worst) {
                break;
            }
        }
        if at != line {
            roots.entry(at).or_default().push(line);
        } else if matches!(lines[line].to, Station::Interface(_)) {
            roots.entry(line).or_default();
        }
    }
    let finding = |(root, paused): (usize, Vec<usize>)| {
        let (link, own) = (&results.ethernet_links[root / 2], way(root));
        let pauses_itself = matches!(lines[root].to, Station::Interface(_)) && is_paused(root);
        let worst = paused.iter().map(|line| way(*line).paused_fraction).fold(own.paused_fraction, f64::max);
        let cause = if pauses_itself {
            format!("{} pauses its switch for {} of the time", own.to, percent(own.paused_fraction))
        } else {
            format!("{} is busy for {} of the time", link.name, percent(own.utilisation))
        };
        let victims = paused.iter().map(|line| Victim { name: way(*line).from.clone(), ..Victim::default() });
        Finding {
            kind: FindingKind::CongestionSpreading,
            title: format!("congestion at {} pauses {}", own.from, plural(paused.len() as u64, "other port")),
            detail: format!("{cause}; a priority of the paused ports stood still for up to {} of the time", percent(worst)),
            remedy: "Use ECN with DCTCP, so that senders slow down before they are paused, or give the traffic of other receivers another priority, with PFC".to_owned(),
            culprit: Some(own.from.clone()),
            victims: victims.collect(),
            ..Finding::default()
        }
    };
    roots.into_iter().map(finding).collect()
}

/// Links at their capacity that pause nobody.
pub(super) fn saturated(results: &Results) -> Vec<Finding> {
    let directions =
        results.ethernet_links.iter().flat_map(|link| [&link.forward, &link.backward].map(|way| (link, way)));
    let busy = directions.filter(|(_, way)| way.utilisation >= SATURATED);
    let finding = |(link, way): (&sanloom_api::results::EthernetLinkResult, &EthernetDirection)| Finding {
        kind: FindingKind::Bottleneck,
        title: format!("{} runs at its capacity", link.name),
        detail: format!(
            "{} > {} is busy for {} of the time; {} dropped at its ends, {} marked",
            way.from,
            way.to,
            percent(way.utilisation),
            plural(way.frames_lost, "frame"),
            way.marked_frames
        ),
        culprit: Some(link.name.clone()),
        ..Finding::default()
    };
    busy.map(finding).collect()
}
