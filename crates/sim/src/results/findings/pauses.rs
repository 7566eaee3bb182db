//! Findings about lossless Ethernet: deadlocks, lost frames, and links at their capacity.

use super::percent;
use crate::results::view::View;
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{EthernetDirection, Finding, FindingKind, Results};
use sanloom_api::words::plural;
use sanloom_fc::san::dcb_mismatches;

/// Utilisation of a saturated link.
pub(super) const SATURATED: f64 = 0.95;

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
