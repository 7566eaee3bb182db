//! Findings about InfiniBand: deadlocks, drained lanes, links without enough blocks for their
//! length, and links at their capacity.

use super::percent;
use crate::results::view::View;
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{
    Candidate, Finding, FindingKind, InfinibandDirection, InfinibandLinkResult, Measure, Results,
};
use sanloom_api::words::plural;
use sanloom_fc::config::{Fault, FaultKind, InfinibandLink, InfinibandNode, MAX_BLOCKS, Subnet};
use sanloom_fc::san::Lab;

/// Share of the time without credit from which on a link is worth a finding, as for Fibre Channel.
pub(super) const WAITS: f64 = 0.1;
/// Largest exponent of the time limit of an acknowledgement (IBA volume 1, 9.7.6.1.3: 5 bits).
const MAX_ACK_TIMEOUT: u8 = 31;
/// Utilisation of a saturated link.
pub(super) const SATURATED: f64 = 0.95;

fn directions(results: &Results) -> impl Iterator<Item = (usize, usize, &InfinibandLinkResult, &InfinibandDirection)> {
    let links = results.infiniband_links.iter().enumerate();
    links.flat_map(|(number, link)| [(number, 0, link, &link.forward), (number, 1, link, &link.backward)])
}

/// Lanes of links that wait for each other in a circle.
pub(super) fn deadlocks(view: &View<'_>) -> Vec<Finding> {
    let lab = &view.world.lab;
    let Some(first) = crate::results::infiniband::deadlock(view) else { return Vec::new() };
    let name = |&(line, lane): &(u32, u8)| {
        let link = &lab.infiniband.links[line as usize / 2];
        format!("{} lane {lane}", link.ends[line as usize % 2].name(lab))
    };
    let cycle: Vec<String> = first.waits.iter().map(name).collect();
    let at_s = s_of_ps(first.at_ps.saturating_sub(view.world.start_ps));
    vec![Finding {
        kind: FindingKind::Deadlock,
        title: format!("{} wait for each other's credit in a cycle", plural(cycle.len() as u64, "port")),
        detail: format!(
            "{}: the packets in the buffers that each port waits for are those of the next port",
            match first.stands {
                true => format!("since {at_s:.6} s, when the last of the ports began to wait"),
                false => format!("found at {at_s:.6} s, when the lifetime of a packet ended"),
            }
        ),
        candidates: without_cycles(lab, &first.waits),
        measure: Measure::Total,
        cycle,
        from_s: Some(at_s),
        ..Finding::default()
    }]
}

/// Returns the change to `updn`, whose paths form no cycle. Its root is a switch of the cycle,
/// unless the lab names roots: a ring has no switch that stands out.
fn without_cycles(lab: &Lab, waits: &[(u32, u8)]) -> Vec<Candidate> {
    let mut set = vec![("subnet.routing".to_owned(), "updn".to_owned())];
    let mut what = "`routing = \"updn\"` in [subnet]".to_owned();
    if lab.infiniband.subnet.roots.is_empty() {
        let mut nodes = waits.iter().filter_map(|(line, _)| {
            match lab.infiniband.links[*line as usize / 2].ends[*line as usize % 2].node {
                InfinibandNode::Switch(switch) => Some(&lab.infiniband.switches[usize::from(switch)].name),
                InfinibandNode::Host(_) | InfinibandNode::Storage(_) => None,
            }
        });
        let Some(root) = nodes.next() else { return Vec::new() };
        set.push(("subnet.roots".to_owned(), root.clone()));
        what = format!("`routing = \"updn\"` in [subnet] with the root `{root}`");
    }
    vec![Candidate { what, set }]
}

/// Returns the change to the default time limit of an acknowledgement, or beyond it to four times
/// the present one.
fn longer(exponent: u8) -> Candidate {
    let longer = if exponent < Subnet::default().ack_timeout { Subnet::default().ack_timeout } else { exponent + 2 };
    let longer = longer.min(MAX_ACK_TIMEOUT);
    Candidate {
        what: format!("`ack_timeout = {longer}` in [subnet]"),
        set: vec![("subnet.ack_timeout".to_owned(), longer.to_string())],
    }
}

/// Queue pairs that repeat packets although none was lost: the time limit of an acknowledgement is
/// shorter than packets wait in queues.
pub(super) fn early_repetitions(view: &View<'_>, results: &Results) -> Option<Finding> {
    let lost: u64 = directions(results).map(|(.., way)| way.packets_lost).sum();
    // Counters of links begin after the warm-up, but a loss in it may be repaired afterwards.
    let explains = |fault: &Fault| matches!(fault.kind, FaultKind::Infiniband(_) | FaultKind::PowerFailure { .. });
    let was_down =
        results.infiniband_links.iter().any(|link| link.downtime_s > 0.0) || view.world.lab.faults.iter().any(explains);
    let repeating = results.srp_channels.iter().filter(|channel| channel.repetitions > 0);
    let most = repeating.clone().max_by_key(|channel| channel.repetitions).filter(|_| lost == 0 && !was_down)?;
    let (channels, repetitions, connections) =
        repeating.fold((0, 0, 0), |(channels, repetitions, connections), channel| {
            (channels + 1, repetitions + channel.repetitions, connections + channel.connections)
        });
    let exponent = view.world.lab.infiniband.subnet.ack_timeout;
    let limit_ms = 4.096e-3 * f64::from(1_u32 << exponent.min(31));
    Some(Finding {
        kind: FindingKind::Stall,
        title: format!("{} repeated packets although none was lost", plural(channels, "SRP channel")),
        detail: format!(
            "{}, most at {}, and {} opened during the measurement: an acknowledgement may take {limit_ms:.3} ms \
             (`ack_timeout = {exponent}`), but packets wait longer in queues",
            plural(repetitions, "repetition"),
            most.name,
            plural(connections, "connection")
        ),
        candidates: vec![longer(exponent)],
        measure: Measure::Total,
        ..Finding::default()
    })
}

/// Lanes that were drained.
pub(super) fn stalls(results: &Results) -> Vec<Finding> {
    let stalled = directions(results).filter(|(.., way)| way.lane_stalls > 0);
    let finding = |(_, _, link, way): (usize, usize, &InfinibandLinkResult, &InfinibandDirection)| Finding {
        kind: FindingKind::Stall,
        title: format!("{} drained its queue {}", way.from, plural(way.lane_stalls, "time")),
        detail: format!(
            "packets for {} over {} waited longer than their lifetime, seven in a row; {} dropped there",
            way.to,
            link.name,
            plural(way.lifetime_drops, "packet")
        ),
        culprit: Some(way.to.clone()),
        ..Finding::default()
    };
    stalled.map(finding).collect()
}

/// Links that wait for credit because of their length.
pub(super) fn too_few(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let lab = &view.world.lab;
    let waiting = directions(results).filter(|(.., way)| way.credit_wait_fraction >= WAITS);
    let finding = |(number, from, link, way): (usize, usize, &InfinibandLinkResult, &InfinibandDirection)| {
        let config = &lab.infiniband.links[number];
        let needed = lab.infiniband.blocks_needed(config, 1 - from);
        is_too_long(needed, way).then(|| Finding {
            kind: FindingKind::Bottleneck,
            title: format!("{} has too few blocks for its length and its switch", link.name),
            detail: format!(
                "{needed} blocks of 64 bytes keep the line busy over {} m; {} has {} and {} waited for credit {} of the \
                 time, with the line {} busy",
                config.propagation.0 / 5_000,
                way.to,
                way.blocks,
                way.from,
                percent(way.credit_wait_fraction),
                percent(way.utilisation)
            ),
            // `check` gives the same advice if a receiver has all blocks of a lane.
            remedy: match way.blocks >= MOST_BLOCKS {
                true => format!("A lane has at most {MOST_BLOCKS} blocks: make the link shorter or slower"),
                false => String::new(),
            },
            candidates: more_blocks(config, way.blocks, needed.min(MOST_BLOCKS)),
            measure: Measure::Total,
            culprit: Some(link.name.clone()),
            ..Finding::default()
        })
    };
    waiting.filter_map(finding).collect()
}

/// Most blocks that the lab accepts for a lane.
const MOST_BLOCKS: u64 = MAX_BLOCKS as u64;

/// Returns the change that gives both ends of a link these blocks, unless it has them.
fn more_blocks(link: &InfinibandLink, now: u64, blocks: u64) -> Vec<Candidate> {
    let is_isl = link.ends.iter().all(|end| matches!(end.node, InfinibandNode::Switch(_)));
    let key = format!("{}.{}.blocks", if is_isl { "isl" } else { "link" }, link.name);
    let candidate =
        || Candidate { what: format!("{blocks} blocks for {}", link.name), set: vec![(key, blocks.to_string())] };
    (now < blocks).then(candidate).into_iter().collect()
}

/// Returns whether missing blocks of a link that needs this many explain its waits for credit. The
/// length explains at most the share of the blocks that are missing.
pub(super) fn is_too_long(needed: u64, way: &InfinibandDirection) -> bool {
    2.0 * (1.0 - way.blocks as f64 / needed as f64) >= way.credit_wait_fraction
}

/// Links at their capacity.
pub(super) fn saturated(results: &Results) -> Vec<Finding> {
    let busy = directions(results).filter(|(.., way)| way.utilisation >= SATURATED);
    let finding = |(_, _, link, way): (usize, usize, &InfinibandLinkResult, &InfinibandDirection)| Finding {
        kind: FindingKind::Bottleneck,
        title: format!("{} runs at its capacity", link.name),
        detail: format!("{} > {} is busy for {} of the time", way.from, way.to, percent(way.utilisation)),
        culprit: Some(link.name.clone()),
        ..Finding::default()
    };
    busy.map(finding).collect()
}
