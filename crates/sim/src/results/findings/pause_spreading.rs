//! Congestion that spreads on lossless Ethernet: frames for one port fill the memory of a switch,
//! which pauses senders, and their frames for other ports wait as well.

use super::forwarder::{self, Behind};
use super::pauses::SATURATED;
use super::{list, percent};
use crate::net::ethernet::{Line, Onward, Station};
use crate::results::events::fault_text;
use crate::results::view::View;
use sanloom_api::results::{Candidate, EthernetDirection, Finding, FindingKind, Measure, Results, Victim};
use sanloom_api::words::plural;
use sanloom_fc::config::{EthernetFault, FaultKind};
use std::collections::{BTreeMap, BTreeSet};

/// Share of the time for which a sender is paused, from which on congestion spreads.
const SPREADS: f64 = 0.05;
/// Share of the bytes of a paused line from which on the traffic for another port is a victim. Less
/// are acknowledgements and requests.
const CARRIES: f64 = 0.01;
/// Busy share of a port and paused share of its senders together, from which on the port holds the
/// frames of the senders: while they are paused, the port runs out of frames.
const TOGETHER: f64 = 0.9;
/// Busy share of such a port at least.
const MOSTLY: f64 = 0.5;

/// Largest number of switches that one candidate changes.
const MOST_CHANGED: usize = 16;
/// Largest memory of a switch that the lab accepts, in bytes.
const LARGEST_MEMORY: u64 = 1 << 40;
/// Memory of a switch for which the lab sets none, in bytes.
const USUAL_MEMORY: u64 = 16 << 20;

/// Lines of a run with their results.
struct Lines<'v> {
    lines: &'v [Line],
    results: &'v Results,
    /// Lines that a pause storm pauses, and those whose frames wait behind them.
    stormy: BTreeSet<usize>,
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
    fn new(view: &'v View<'_>, results: &'v Results) -> Lines<'v> {
        let mut lines = Lines { lines: view.world.net.ethernet.lines(), results, stormy: BTreeSet::new() };
        let paused: Vec<usize> = (0..lines.lines.len()).filter(|line| lines.is_paused(*line)).collect();
        lines.stormy = paused.iter().copied().filter(|line| storm(view, *line).is_some()).collect();
        if lines.stormy.is_empty() {
            return lines;
        }
        let onward: Vec<(usize, Vec<usize>)> = paused
            .iter()
            .map(|line| (*line, lines.onward(*line).into_iter().map(|(next, _)| next).collect()))
            .collect();
        loop {
            let waits = |(line, onward): &&(usize, Vec<usize>)| {
                !lines.stormy.contains(line) && onward.iter().any(|next| lines.is_storm_of(*next, *line))
            };
            let more: Vec<usize> = onward.iter().filter(waits).map(|(line, _)| *line).collect();
            if more.is_empty() {
                return lines;
            }
            lines.stormy.extend(more);
        }
    }

    /// Returns whether the storm behind a line explains most of the pauses of one that leads to it.
    fn is_storm_of(&self, next: usize, line: usize) -> bool {
        self.stormy.contains(&next) && 2.0 * self.way(next).paused_fraction >= self.way(line).paused_fraction
    }

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
    /// of the frames of the line, and so on while that port is paused itself; a pause storm comes
    /// before ports that are merely busy. The port must be paused by
    /// the interface at its end, or be busy while it is not starved. In a circle of pauses, the
    /// port is beside the circle. Returns its line, and the paused lines on the way.
    fn cause(&self, start: usize, is_dead: bool) -> Option<(usize, Vec<usize>)> {
        let mut paused = vec![start];
        loop {
            let at = *paused.last()?;
            let mut held = self.onward(at);
            if paused[..paused.len() - 1].contains(&at) {
                if is_dead {
                    return None;
                }
                paused.pop();
                held = paused.iter().flat_map(|line| self.onward(*line)).collect();
                held.retain(|(line, _)| !self.is_paused(*line));
            }
            let storm = held.iter().find(|(line, _)| self.is_storm_of(*line, at) && !paused.contains(line));
            let most = || held.iter().max_by(|a, b| a.1.behind.cmp(&b.1.behind).then(b.0.cmp(&a.0)));
            let Some((next, _)) = storm.or_else(most) else {
                // The interface at the end pauses its switch.
                return matches!(self.lines[at].to, Station::Interface(_)).then_some((at, paused));
            };
            if self.is_paused(*next) {
                paused.push(*next);
                continue;
            }
            let unpaused = held.iter().map(|(line, _)| *line).filter(|line| !self.is_paused(*line));
            let busiest =
                unpaused.max_by(|a, b| self.way(*a).utilisation.total_cmp(&self.way(*b).utilisation).then(b.cmp(a)));
            let full = [Some(*next), busiest].into_iter().flatten().find(|line| self.is_full(*line, &paused, is_dead));
            return full.map(|line| (line, paused));
        }
    }

    /// Returns whether a port holds the frames of these paused lines. In a deadlock, other ports
    /// do.
    fn is_full(&self, port: usize, paused: &[usize], is_dead: bool) -> bool {
        let share = paused.iter().map(|line| self.way(*line).paused_fraction).fold(0.0, f64::max);
        let busy = self.way(port).utilisation;
        busy >= SATURATED || !is_dead && busy >= MOSTLY && busy + share >= TOGETHER
    }
}

/// Ports that hold back frames for others: each with the senders that are paused, and its victims.
pub(super) fn spreading(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let lines = Lines::new(view, results);
    let mut roots: BTreeMap<usize, Congestion> = BTreeMap::new();
    let paused_lines = (0..lines.lines.len()).filter(|line| lines.is_paused(*line));
    // A deadlock has a finding of its own.
    let is_dead = crate::results::ethernet::standing(view).next().is_some();
    let causes: BTreeMap<usize, (usize, Vec<usize>)> =
        paused_lines.filter_map(|line| Some((line, lines.cause(line, is_dead)?))).collect();
    for (root, paused) in causes.values() {
        let congestion = roots.entry(*root).or_default();
        for (&at, next) in paused.iter().zip(paused.iter().skip(1).chain([root])) {
            let onward = lines.onward(at);
            let all: u64 = onward.iter().map(|(_, onward)| onward.bytes).sum();
            let is_victim = |&(number, onward): &(usize, Onward)| {
                let carries = onward.bytes as f64 >= CARRIES * all as f64;
                number != *next && number != *root && carries && lines.way(number).utilisation < SATURATED
            };
            // A port that other congestion pauses has frames for the port of that congestion.
            let victim = |&(number, _): &(usize, Onward)| match lines.is_paused(number) {
                false => Some(number),
                true => causes.get(&number).map(|(other, _)| *other).filter(|other| {
                    other != root && !lines.is_paused(*other) && lines.way(*other).utilisation < SATURATED
                }),
            };
            congestion.victims.extend(onward.iter().filter(|other| is_victim(other)).filter_map(victim));
            congestion.paused.extend((at != *root).then_some(at));
        }
    }
    // An interface that pauses its switch is worth a finding even if it holds back nobody yet.
    roots.retain(|root, congestion| !congestion.victims.is_empty() || lines.is_paused(*root));
    roots.into_iter().map(|(root, congestion)| finding(view, &lines, root, &congestion)).collect()
}

fn finding(view: &View<'_>, lines: &Lines<'_>, root: usize, congestion: &Congestion) -> Finding {
    let own = lines.way(root);
    let link = &lines.results.ethernet_links[root / 2].name;
    let pauses = lines.is_paused(root);
    let behind = if pauses { forwarder::behind(view, lines.lines[root].to) } else { Behind::default() };
    let storm = if pauses { storm(view, root) } else { None };
    let culprit = match &behind.port {
        Some(port) => &port.name,
        None if pauses => &own.to,
        None => &own.from,
    };
    let mut cause = match pauses {
        true => format!("{} pauses its switch for {} of the time", own.to, percent(own.paused_fraction)),
        false => format!("{link} is busy for {} of the time", percent(own.utilisation)),
    };
    if let Some(storm) = &storm {
        cause = format!("{cause}, because of the fault \"{storm}\"");
    } else if let Some(port) = &behind.port {
        cause = format!("{cause}, because its frames wait for {}, {}", port.name, port.load);
    }
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
    let on_ethernet = congestion.victims.iter().map(|line| {
        let way = lines.way(*line);
        Victim { name: way.to.clone(), during_bytes_per_s: way.throughput_bytes_per_s, ..Victim::default() }
    });
    let victims: Vec<Victim> = on_ethernet.chain(behind.victims).collect();
    let starves = !pauses && own.utilisation < SATURATED;
    if starves {
        cause.push_str(", and idle while the senders of its frames are paused");
    }
    let advice = match (storm.is_some(), carries_tcp(view, lines, root, congestion), victims.is_empty()) {
        (true, ..) => "End the fault at its interface",
        (_, false, true) => {
            "Make the line behind the culprit faster, or let hosts have fewer requests in flight (`queue_depth`)"
        }
        (_, false, false) => {
            "Make the line behind the culprit faster, or let the hosts that send to it have fewer requests in flight \
             (`queue_depth`)"
        }
        (_, true, true) => {
            "Let the receiver take its frames faster, or use ECN with DCTCP, so that senders slow down before they are paused"
        }
        (_, true, false) => {
            "Use ECN with DCTCP, so that senders slow down before they are paused, or give the traffic of other receivers another priority, with PFC"
        }
    };
    let (kind, title) = match victims.len() as u64 {
        0 => (
            FindingKind::Bottleneck,
            format!("{} pauses {} for {} of the time", own.to, own.from, percent(own.paused_fraction)),
        ),
        others => (
            FindingKind::CongestionSpreading,
            format!("congestion at {culprit} holds back frames for {}", plural(others, "other port")),
        ),
    };
    Finding {
        kind,
        title,
        detail: format!("{cause}{fills}"),
        remedy: advice.to_owned(),
        candidates: if starves { more_memory(view, lines, congestion) } else { Vec::new() },
        measure: Measure::Total,
        culprit: Some(culprit.clone()),
        victims,
        ..Finding::default()
    }
}

/// Returns the change to eight times the memory, and at least the default, in the switches that
/// pause the senders.
fn more_memory(view: &View<'_>, lines: &Lines<'_>, congestion: &Congestion) -> Vec<Candidate> {
    let lab = &view.world.lab;
    let switch = |line: &usize| match lines.lines[*line].to {
        Station::Switch { switch, .. } => lab.ethernet_switches.get(usize::from(switch)),
        Station::Interface(_) => None,
    };
    let memory = |bytes: u64| bytes.saturating_mul(8).clamp(USUAL_MEMORY, LARGEST_MEMORY);
    let set: BTreeMap<String, String> = congestion
        .paused
        .iter()
        .filter_map(switch)
        .map(|switch| {
            let bytes = memory(switch.memory_bytes);
            (format!("ethernet_switch.{}.memory", switch.name), format!("{bytes}B"))
        })
        .collect();
    if set.is_empty() || set.len() > MOST_CHANGED {
        return Vec::new();
    }
    let names: BTreeSet<String> =
        congestion.paused.iter().filter_map(switch).map(|switch| switch.name.clone()).collect();
    let what = format!("more memory in {}", list(&names.into_iter().collect::<Vec<_>>()));
    vec![Candidate { what, set: set.into_iter().collect() }]
}

/// Returns the fault of a pause storm by which the interface at the end of a line pauses its switch
/// in the measured time.
fn storm(view: &View<'_>, line: usize) -> Option<String> {
    let start_ps = view.world.start_ps;
    let fault = view.world.lab.faults.iter().find(|fault| {
        let FaultKind::Ethernet(EthernetFault::PauseStorm { link, end, .. }) = fault.kind else { return false };
        // Line 2n goes from the first end of link n to the second one.
        let is_own = usize::from(link) == line / 2 && usize::from(end.min(1)) == 1 - line % 2;
        is_own && fault.until.is_none_or(|until| start_ps + until.0 >= view.from_ps)
    });
    fault.map(|fault| fault_text(view, fault).what)
}

/// Returns whether TCP has frames in a priority in which the lines of a congestion are paused.
fn carries_tcp(view: &View<'_>, lines: &Lines<'_>, root: usize, congestion: &Congestion) -> bool {
    let Some(iscsi) = &view.world.iscsi else { return false };
    let of_tcp: BTreeSet<String> =
        iscsi.plans().map(|plan| plan.tag.map_or(0, |(priority, _)| priority).to_string()).collect();
    let paused = congestion.paused.iter().chain([&root]).flat_map(|line| &lines.way(*line).paused_s);
    // A pause of the whole link has no number.
    let mut most: Vec<(&String, f64)> = paused.map(|(name, s)| (name, *s)).collect();
    most.sort_by(|a, b| b.1.total_cmp(&a.1));
    most.first().is_none_or(|(name, _)| *name == "link" || of_tcp.contains(*name))
}
