//! Findings about lossless Ethernet: deadlocks, lost frames, and links at their capacity.

use super::percent;
use crate::results::ethernet;
use crate::results::view::View;
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{EthernetDirection, Finding, FindingKind, Results, Victim};
use sanloom_api::words::plural;
use sanloom_fc::san::dcb_mismatches;
use std::collections::BTreeSet;

/// Utilisation of a saturated link.
pub(super) const SATURATED: f64 = 0.95;

/// Priorities of links that wait for each other in a circle.
pub(super) fn deadlocks(view: &View<'_>) -> Vec<Finding> {
    let lab = &view.world.lab;
    let Some(last) = ethernet::standing(view).next_back() else { return Vec::new() };
    let port = |line: u32| lab.ethernet_links[line as usize / 2].ends[line as usize % 2].name(lab);
    let in_circle: BTreeSet<&(u32, u8)> = last.cycles.iter().flatten().collect();
    let mut others: Vec<String> =
        last.waits.iter().filter(|wait| !in_circle.contains(wait)).map(|(line, _)| port(*line)).collect();
    others.dedup();
    let finding = |(number, circle): (usize, &Vec<(u32, u8)>)| {
        let had_it = ethernet::standing(view).filter(|deadlock| deadlock.cycles.contains(circle));
        let at_ps = had_it.map(|deadlock| deadlock.at_ps).min().unwrap_or(last.at_ps);
        let at_s = s_of_ps(at_ps.saturating_sub(view.world.start_ps));
        // A port may wait for several circles; the first one has them all.
        let victims = if number == 0 { &others[..] } else { &[] };
        let behind = match victims.is_empty() {
            true => String::new(),
            false => format!("; behind them wait {}", plural(victims.len() as u64, "more port")),
        };
        Finding {
            kind: FindingKind::Deadlock,
            title: format!("{} wait for each other's pause to end", plural(circle.len() as u64, "port")),
            detail: format!(
                "Deadlock of pauses, found at {at_s:.6} s: every frame that a paused port waits for is behind \
                 another paused port{behind}"
            ),
            remedy: "Remove the cycle: let no path go up again after it went down, or use another priority for part of the traffic, with PFC".to_owned(),
            cycle: circle.iter().map(|(line, priority)| format!("{} priority {priority}", port(*line))).collect(),
            victims: victims.iter().map(|name| Victim { name: name.clone(), ..Victim::default() }).collect(),
            from_s: Some(at_s),
            ..Finding::default()
        }
    };
    last.cycles.iter().enumerate().map(finding).collect()
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

/// Links at their capacity that pause nobody.
pub(super) fn saturated(results: &Results) -> Vec<Finding> {
    let directions =
        results.ethernet_links.iter().flat_map(|link| [&link.forward, &link.backward].map(|way| (link, way)));
    let busy = directions.filter(|(_, way)| way.utilisation >= SATURATED);
    let finding = |(link, way): (&sanloom_api::results::EthernetLinkResult, &EthernetDirection)| Finding {
        kind: FindingKind::Bottleneck,
        title: format!("{} runs at its capacity", link.name),
        detail: format!(
            "{} > {} is busy for {} of the time; {} for it dropped, {} marked",
            way.from,
            way.to,
            percent(way.utilisation),
            plural(way.queue_drops, "frame"),
            way.marked_frames
        ),
        culprit: Some(link.name.clone()),
        ..Finding::default()
    };
    busy.map(finding).collect()
}
