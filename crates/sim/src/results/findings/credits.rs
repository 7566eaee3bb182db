//! Credit findings: deadlocks, lost credits, and too few credits for a distance.

use super::super::events;
use super::super::view::View;
use super::{list, percent};
use crate::net::GAP_BYTES;
use sanloom_api::results::measure::{ratio, s_of_ps};
use sanloom_api::results::{Candidate, Finding, FindingKind, Measure, Results};
use sanloom_api::words::plural;
use sanloom_fc::config::{Link, Node, buffers_with_data};

/// Minimum share of the time that a sender waits for credit to be reported.
const WAIT_SHARE: f64 = 0.1;

pub(super) fn deadlocks(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for deadlock in events::deadlocks(view) {
        let lanes = deadlock.cycle.iter();
        let ports: Vec<String> = lanes.clone().map(|&lane| view.names.port(view.names.from(lane))).collect();
        let links: Vec<String> = lanes.clone().map(|&lane| view.names.link(lane).to_owned()).collect();
        let waited_ps = lanes.map(|&lane| view.lanes[lane as usize].credit_wait_ps).max().unwrap_or(0);
        let at_s = s_of_ps(deadlock.at_ps.saturating_sub(view.world.start_ps));
        let end = match deadlock.stands {
            true => "and only discards and link resets will end it",
            false => "and only discards and link resets ended it",
        };
        found.push(Finding {
            kind: FindingKind::Deadlock,
            title: format!("{} ports wait for each other's credit in a circle", ports.len()),
            detail: format!(
                "every buffer behind {} is full of frames for the next link of the circle; the longest wait for credit \
                 was {:.3} s, {end}; a tree of shortest paths has no such circle",
                list(&links),
                s_of_ps(waited_ps)
            ),
            culprit: links.first().cloned(),
            culprits: links,
            cycle: ports,
            from_s: Some(at_s),
            ..Finding::default()
        });
    }
    found
}

pub(super) fn lost(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (count, lane) in view.lanes.iter().zip(0u32..).filter(|(count, _)| count.credits_lost > 0) {
        let share = ratio(count.credit_wait_ps.min(view.measured_ps), view.measured_ps);
        let sender = view.names.port(view.names.from(lane));
        let n = view.world.net.fc.lanes()[lane as usize].state_changes.n;
        let what = if n == 0 { "R_RDYs from" } else { "R_RDYs or frames at" };
        let recovery = match n {
            0 => "without credit recovery (`bb_sc`)".to_owned(),
            _ => format!("while state changes (BB_SC) restored {}", plural(count.credits_recovered, "credit")),
        };
        found.push(Finding {
            kind: FindingKind::CreditLoss,
            title: format!("{sender} lost {}", plural(count.credits_lost, "credit")),
            detail: format!(
                "{what} {} were lost on {}, which points to its cable or optics; {sender} waited for credit {} of the \
                 time and reset the link {}, {recovery}",
                view.names.port(view.names.to(lane)),
                view.names.link(lane),
                percent(share),
                plural(count.resets, "time")
            ),
            candidates: if n == 0 { recovery_by_state_changes(view, lane) } else { Vec::new() },
            measure: Measure::Link,
            culprit: Some(view.names.link(lane).to_owned()),
            ..Finding::default()
        });
    }
    found
}

/// Finds links that are too long for their credits: the sender waits for credit although the
/// receiver returns each one at once. A link that waits for another reason, such as a deadlock,
/// sends fewer frames than its credits permit and is left out.
pub(super) fn too_few(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    for (lane, number) in view.world.net.fc.lanes().iter().zip(0u32..) {
        let count = &view.lanes[number as usize];
        let share = ratio(count.credit_wait_ps.min(view.measured_ps), view.measured_ps);
        if share < WAIT_SHARE || count.frames == 0 {
            continue;
        }
        // A credit is unavailable while its frame is on the line and its R_RDY returns.
        let frame_ps = lane.time_of(count.bytes / count.frames + GAP_BYTES).max(1);
        let round_ps = frame_ps + 2 * lane.propagation_ps + lane.time_of(4);
        let needed = round_ps.div_ceil(frame_ps);
        // Of the virtual channels, one is for frames between switches.
        let channels = view.world.net.fc.channels(number).map(|channels| channels.data_credits());
        let credits = channels.unwrap_or(lane.bb_credit);
        // If the receiver's buffers are occupied for long, the distance is not the cause.
        let to = view.names.port(view.names.to(number));
        let held = results.ports.iter().find(|port| port.name == to).map_or(0.0, |port| port.buffers_used_mean);
        if needed <= u64::from(credits) || held > 0.5 * f64::from(credits) {
            continue;
        }
        // One round for as many frames as there are credits is the most that the distance causes.
        let idle_ps = round_ps.saturating_sub(u64::from(credits) * frame_ps);
        let explained_ps = u128::from(count.frames) * u128::from(idle_ps) / u128::from(credits.max(1));
        if 2 * explained_ps < u128::from(count.credit_wait_ps) {
            continue;
        }
        let from = view.names.port(view.names.from(number));
        let busy = ratio(view.busy_ps(number), view.measured_ps);
        found.push(Finding {
            kind: FindingKind::Bottleneck,
            title: format!("{} has too few credits for its length", view.names.link(number)),
            detail: format!(
                "a credit is away for {:.1} us and a frame takes {:.2} us, so {needed} credits keep the line busy; {from} \
                 was given {credits} and waited for credit {} of the time, with the line {} busy",
                round_ps as f64 / 1e6,
                frame_ps as f64 / 1e6,
                percent(share),
                percent(busy)
            ),
            candidates: more_credits(view, number, channels.map_or(needed, |_| buffers_with_data(needed))),
            measure: Measure::Link,
            culprit: Some(view.names.link(number).to_owned()),
            ..Finding::default()
        });
    }
    found
}

/// Returns the change that gives the link of a lane enough credits.
fn more_credits(view: &View<'_>, lane: u32, needed: u64) -> Vec<Candidate> {
    let link = &view.world.lab.links[lane as usize / 2];
    let what = format!("{needed} receive buffers at both ends of {}", link.name);
    vec![Candidate { what, set: vec![(key_of(link, "credits"), needed.to_string())] }]
}

/// Returns the change that turns on credit recovery on the link of a lane, with state changes at
/// least as often as all buffers of the lane, or of its smallest data channel, are used twice.
fn recovery_by_state_changes(view: &View<'_>, lane: u32) -> Vec<Candidate> {
    let link = &view.world.lab.links[lane as usize / 2];
    let smallest = view.world.net.fc.channels(lane).and_then(|channels| channels.fewest_data_credits());
    let buffers = smallest.unwrap_or(view.world.net.fc.lanes()[lane as usize].bb_credit).max(1);
    let what = format!("credit recovery (BB_SC) on {}", link.name);
    vec![Candidate { what, set: vec![(key_of(link, "bb_sc"), (buffers.ilog2() + 1).min(15).to_string())] }]
}

/// Returns the name of a key of a link for an override.
fn key_of(link: &Link, key: &str) -> String {
    let is_isl = link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
    format!("{}.{}.{key}", if is_isl { "isl" } else { "link" }, link.name)
}
