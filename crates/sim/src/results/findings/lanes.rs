//! Congestion that spreads on InfiniBand: packets for one port fill the buffers of a switch, and
//! packets for other ports wait behind them.

use super::blocks::{SATURATED, WAITS, is_too_long};
use super::{list, percent};
use crate::net::infiniband::{Line, Station};
use crate::results::view::View;
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{Finding, FindingKind, InfinibandDirection, Results, Victim};
use sanloom_api::words::plural;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the bytes of a line from which on the traffic for another port is a victim. Less are
/// acknowledgements and requests.
const CARRIES: f64 = 0.01;

/// Lines of a run with their results.
struct Lines<'v> {
    lines: &'v [Line],
    results: &'v Results,
    now_ps: u64,
}

/// Congestion of one port.
#[derive(Default)]
struct Congestion {
    /// Lines that wait for credit because of it.
    upstream: BTreeSet<u32>,
    /// Lines whose packets wait in the same buffers.
    victims: BTreeSet<u32>,
}

impl<'v> Lines<'v> {
    fn way(&self, line: u32) -> &'v InfinibandDirection {
        let link = &self.results.infiniband_links[line as usize / 2];
        if line.is_multiple_of(2) { &link.forward } else { &link.backward }
    }

    fn is_starved(&self, line: u32) -> bool {
        self.way(line).credit_wait_fraction >= WAITS
    }

    /// Returns the lane that waits longest for credit.
    fn waiting_lane(&self, line: u32) -> u8 {
        let state = &self.lines[line as usize];
        (0..state.data_lanes()).max_by_key(|lane| (state.lane_wait_ps(*lane, self.now_ps), 15 - lane)).unwrap_or(0)
    }

    /// Returns the ports that packets of a lane of a line leave by, as lines with their bytes.
    fn onward(&self, line: u32, lane: u8) -> Vec<(u32, u64)> {
        let state = &self.lines[line as usize];
        let Station::Switch { switch, .. } = state.to else { return Vec::new() };
        let mut found = Vec::new();
        for (number, other) in (0..).zip(self.lines) {
            if let Station::Switch { switch: own, port } = other.from
                && own == switch
            {
                let bytes = state.onward_bytes(port, lane);
                found.extend((bytes > 0).then_some((number, bytes)));
            }
        }
        found
    }

    /// Returns the port whose packets fill the buffer of a line: one that waits for credit itself,
    /// or the busiest one.
    fn next(&self, line: u32, lane: u8) -> Option<u32> {
        let load = |line: u32| {
            let way = self.way(line);
            if self.is_starved(line) { 1.0 + way.credit_wait_fraction } else { way.utilisation }
        };
        let onward = self.onward(line, lane).into_iter().map(|(number, _)| number);
        onward.max_by(|a, b| load(*a).total_cmp(&load(*b)).then(b.cmp(a)))
    }

    /// Follows the waits from a line that has no credit to the port that causes them. Returns that
    /// port, and the lines that wait.
    fn cause(&self, start: u32) -> Option<(u32, Vec<u32>)> {
        let mut waits = vec![start];
        loop {
            let at = *waits.last()?;
            let Some(next) = self.next(at, self.waiting_lane(at)) else {
                // The interface at the end keeps its buffers.
                return matches!(self.lines[at as usize].to, Station::Interface(_)).then_some((at, waits));
            };
            if !self.is_starved(next) {
                return (self.way(next).utilisation >= SATURATED).then_some((next, waits));
            }
            if waits.contains(&next) {
                // That is a deadlock, which has its own finding.
                return None;
            }
            waits.push(next);
        }
    }
}

/// Ports that hold back packets for others: each with the lines that wait, and its victims.
pub(super) fn spreading(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let lab = &view.world.lab;
    let lines = Lines { lines: view.world.net.infiniband.lines(), results, now_ps: view.now_ps };
    let mut roots: BTreeMap<u32, Congestion> = BTreeMap::new();
    for line in (0..lines.lines.len() as u32).filter(|line| lines.is_starved(*line)) {
        let config = &lab.infiniband.links[line as usize / 2];
        if is_too_long(lab.infiniband.blocks_needed(config, 1 - line as usize % 2), lines.way(line)) {
            continue;
        }
        let Some((root, waits)) = lines.cause(line) else { continue };
        let congestion = roots.entry(root).or_default();
        for (&at, next) in waits.iter().zip(waits.iter().skip(1).chain([&root])) {
            let onward = lines.onward(at, lines.waiting_lane(at));
            let all: u64 = onward.iter().map(|(_, bytes)| bytes).sum();
            let is_victim = |&(number, bytes): &(u32, u64)| {
                let carries = bytes as f64 >= CARRIES * all as f64;
                number != *next && carries && !lines.is_starved(number) && lines.way(number).utilisation < SATURATED
            };
            congestion.victims.extend(onward.iter().filter(|other| is_victim(other)).map(|(number, _)| number));
            congestion.upstream.extend((at != root).then_some(at));
        }
    }
    roots.retain(|_, congestion| !congestion.victims.is_empty());
    roots.into_iter().map(|(root, congestion)| finding(view, &lines, root, &congestion)).collect()
}

fn finding(view: &View<'_>, lines: &Lines<'_>, root: u32, congestion: &Congestion) -> Finding {
    let own = lines.way(root);
    let link = &lines.results.infiniband_links[root as usize / 2].name;
    let keeps = lines.is_starved(root);
    let culprit = if keeps { &own.to } else { &own.from };
    let cause = match keeps {
        true => format!(
            "{} frees its buffers late: {link} waited for credit {} of the time",
            own.to,
            percent(own.credit_wait_fraction)
        ),
        false => format!("{link} is busy for {} of the time", percent(own.utilisation)),
    };
    let waiting: Vec<String> = congestion.upstream.iter().map(|line| lines.way(*line).from.clone()).collect();
    let worst = congestion.upstream.iter().map(|line| lines.way(*line).credit_wait_fraction).fold(0.0, f64::max);
    // The waits of the measured time.
    let credit_wait_s = worst * s_of_ps(view.measured_ps);
    let victims = congestion.victims.iter().map(|line| {
        let way = lines.way(*line);
        Victim {
            name: way.to.clone(),
            during_bytes_per_s: way.throughput_bytes_per_s,
            credit_wait_s,
            ..Victim::default()
        }
    });
    let lane_remedy = match view.world.lab.infiniband.subnet.lanes {
        1 => "set `lanes` of [subnet] to 2 or more, and give this traffic a service level of its own (`srp.level`)",
        _ => "give this traffic a service level with a lane of its own (`srp.level`, `levels` of [subnet])",
    };
    Finding {
        kind: FindingKind::CongestionSpreading,
        title: format!(
            "congestion at {culprit} holds back packets for {}",
            plural(congestion.victims.len() as u64, "other port")
        ),
        detail: format!(
            "{cause}; its packets fill the buffers of the switches, so that {} waited for credit up to {} of the time",
            list(&waiting),
            percent(worst)
        ),
        remedy: format!("Make {link} faster, let hosts send less over it, or {lane_remedy}"),
        culprit: Some(culprit.clone()),
        victims: victims.collect(),
        ..Finding::default()
    }
}
