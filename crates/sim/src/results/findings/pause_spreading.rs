//! Congestion that spreads on lossless Ethernet: frames for one port fill the memory of a switch,
//! which pauses senders, and their frames for other ports wait as well.

use super::pauses::SATURATED;
use super::{list, percent};
use crate::net::ethernet::{Line, Onward, Station};
use crate::results::view::View;
use sanloom_api::results::{EthernetDirection, Finding, FindingKind, Results, Victim};
use sanloom_api::words::plural;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the time for which a sender is paused, from which on congestion spreads.
const SPREADS: f64 = 0.05;
/// Share of the bytes of a paused line from which on the traffic for another port is a victim. Less
/// are acknowledgements and requests.
const CARRIES: f64 = 0.01;

/// Lines of a run with their results.
struct Lines<'v> {
    lines: &'v [Line],
    results: &'v Results,
}

/// Congestion of one port.
#[derive(Default)]
struct Congestion {
    /// Lines whose senders are paused because of it.
    paused: BTreeSet<usize>,
    /// Lines for which frames of these senders wait, too.
    victims: BTreeSet<usize>,
}

impl<'v> Lines<'v> {
    fn way(&self, line: usize) -> &'v EthernetDirection {
        let link = &self.results.ethernet_links[line / 2];
        if line.is_multiple_of(2) { &link.forward } else { &link.backward }
    }

    fn is_paused(&self, line: usize) -> bool {
        self.way(line).paused_fraction > SPREADS
    }

    /// Returns the lines by which frames of a line leave the switch at its end.
    fn onward(&self, line: usize) -> Vec<(usize, Onward)> {
        let Station::Switch { switch, .. } = self.lines[line].to else { return Vec::new() };
        let onward = |(number, other): (usize, &Line)| match other.from {
            Station::Switch { switch: own, port } if own == switch => Some((number, self.lines[line].onward(port))),
            Station::Switch { .. } | Station::Interface(_) => None,
        };
        let all = self.lines.iter().enumerate().filter_map(onward);
        all.filter(|(_, onward)| onward.bytes > 0).collect()
    }

    /// Follows the pauses from a paused line to the port that causes them: the one that holds most
    /// of the frames of the line, and so on while that port is paused itself. Returns its line, and
    /// the paused lines on the way.
    fn cause(&self, start: usize) -> Option<(usize, Vec<usize>)> {
        let mut paused = vec![start];
        loop {
            let at = *paused.last()?;
            let held = self.onward(at);
            let Some((next, _)) = held.iter().max_by(|a, b| a.1.behind.cmp(&b.1.behind).then(b.0.cmp(&a.0))) else {
                // The interface at the end pauses its switch.
                return matches!(self.lines[at].to, Station::Interface(_)).then_some((at, paused));
            };
            if !self.is_paused(*next) {
                return Some((*next, paused));
            }
            if paused.contains(next) {
                // A circle of pauses has a finding of its own.
                return None;
            }
            paused.push(*next);
        }
    }
}

/// Ports that hold back frames for others: each with the senders that are paused, and its victims.
pub(super) fn spreading(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let lines = Lines { lines: view.world.net.ethernet.lines(), results };
    let mut roots: BTreeMap<usize, Congestion> = BTreeMap::new();
    for line in (0..lines.lines.len()).filter(|line| lines.is_paused(*line)) {
        let Some((root, paused)) = lines.cause(line) else { continue };
        let congestion = roots.entry(root).or_default();
        for (&at, next) in paused.iter().zip(paused.iter().skip(1).chain([&root])) {
            let onward = lines.onward(at);
            let all: u64 = onward.iter().map(|(_, onward)| onward.bytes).sum();
            let is_victim = |&(number, onward): &(usize, Onward)| {
                let carries = onward.bytes as f64 >= CARRIES * all as f64;
                number != *next && carries && !lines.is_paused(number) && lines.way(number).utilisation < SATURATED
            };
            congestion.victims.extend(onward.iter().filter(|other| is_victim(other)).map(|(number, _)| number));
            congestion.paused.extend((at != root).then_some(at));
        }
    }
    // An interface that pauses its switch is worth a finding even if it holds back nobody yet.
    roots.retain(|root, congestion| !congestion.victims.is_empty() || lines.is_paused(*root));
    roots.into_iter().map(|(root, congestion)| finding(&lines, root, &congestion)).collect()
}

fn finding(lines: &Lines<'_>, root: usize, congestion: &Congestion) -> Finding {
    let own = lines.way(root);
    let link = &lines.results.ethernet_links[root / 2].name;
    let pauses = lines.is_paused(root);
    let culprit = if pauses { &own.to } else { &own.from };
    let cause = match pauses {
        true => format!("{} pauses its switch for {} of the time", own.to, percent(own.paused_fraction)),
        false => format!("{link} is busy for {} of the time", percent(own.utilisation)),
    };
    let senders: Vec<String> = congestion.paused.iter().map(|line| lines.way(*line).from.clone()).collect();
    let worst = congestion.paused.iter().map(|line| lines.way(*line).paused_fraction).fold(0.0, f64::max);
    let fills = match senders.is_empty() {
        true => String::new(),
        false => format!(
            "; its frames fill the memory of the switches, which pause {} for up to {} of the time",
            list(&senders),
            percent(worst)
        ),
    };
    let victims = congestion.victims.iter().map(|line| {
        let way = lines.way(*line);
        Victim { name: way.to.clone(), during_bytes_per_s: way.throughput_bytes_per_s, ..Victim::default() }
    });
    let remedy = match congestion.victims.is_empty() {
        true => {
            "Let the receiver take its frames faster, or use ECN with DCTCP, so that senders slow down before they are paused"
        }
        false => {
            "Use ECN with DCTCP, so that senders slow down before they are paused, or give the traffic of other receivers another priority, with PFC"
        }
    };
    Finding {
        kind: FindingKind::CongestionSpreading,
        title: format!(
            "congestion at {culprit} holds back frames for {}",
            plural(congestion.victims.len() as u64, "other port")
        ),
        detail: format!("{cause}{fills}"),
        remedy: remedy.to_owned(),
        culprit: Some(culprit.clone()),
        victims: victims.collect(),
        ..Finding::default()
    }
}
