//! Hosts, streams and totals.

use super::MAX_HOST_HISTOGRAMS;
use super::view::{View, buckets, latency};
use crate::host::PathState;
use crate::stats::LatencyHistogram;
use crate::world::{HostNode, WorkloadMeasure};
use sanloom_api::results::measure::{mean_us, per_s, s_of_ps};
use sanloom_api::results::{HostResult, IoStats, PathResult, StreamHostResult, StreamResult, Totals};
use sanloom_core::nport;

/// Sums that make an [`IoStats`].
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Requests and their bytes.
    offered: [u64; 2],
    ios: [u64; 2],
    bytes: [u64; 2],
    failed: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        for i in 0..2 {
            self.offered[i] += other.offered[i];
            self.ios[i] += other.ios[i];
            self.bytes[i] += other.bytes[i];
        }
        self.failed += other.failed;
    }

    fn io(&self, time_ps: u64, response: &LatencyHistogram, command: &LatencyHistogram) -> IoStats {
        let [reads, writes] = self.ios;
        let [read_bytes, written_bytes] = self.bytes;
        let [ios_offered, offered_bytes] = self.offered;
        IoStats {
            ios_offered,
            ios_completed: reads + writes,
            ios_failed: self.failed,
            reads,
            writes,
            offered_bytes,
            read_bytes,
            written_bytes,
            offered_bytes_per_s: per_s(offered_bytes, time_ps),
            offered_iops: per_s(ios_offered, time_ps),
            throughput_bytes_per_s: per_s(read_bytes + written_bytes, time_ps),
            iops: per_s(reads + writes, time_ps),
            latency: latency(response),
            command_latency: latency(command),
        }
    }
}

fn sums_of(host: &HostNode) -> Sums {
    let measured = &host.measured;
    Sums { offered: measured.offered, ios: measured.ios, bytes: measured.bytes, failed: measured.failed }
}

/// Longest time without an end, one in progress included, and when it began, in ps since the first login.
pub(super) fn longest_stall(host: &HostNode, now_ps: u64) -> (u64, u64) {
    let measured = &host.measured;
    let present = if host.busy() { now_ps.saturating_sub(measured.last_end_ps) } else { 0 };
    if present > measured.longest_stall_ps {
        (present, measured.last_end_ps)
    } else {
        (measured.longest_stall_ps, measured.stall_began_ps)
    }
}

pub(super) fn hosts(view: &View<'_>) -> Vec<HostResult> {
    let with_histogram = view.world.hosts.len() <= MAX_HOST_HISTOGRAMS;
    let pairs = view.world.hosts.iter().zip(&view.world.lab.hosts);
    pairs
        .map(|(host, config)| {
            let (measured, counters) = (&host.measured, host.queue.counters());
            let now = view.now_ps;
            HostResult {
                name: config.name.clone(),
                io: sums_of(host).io(view.measured_ps, &measured.latency, &measured.command_latency),
                latency_histogram: if with_histogram { buckets(&measured.latency) } else { Vec::new() },
                waiting: view.depth(host.queue.waiting()),
                outstanding: view.depth(host.queue.outstanding()),
                ios_refused: counters.refused,
                ios_merged: counters.merged,
                commands_aborted: measured.aborted,
                commands_retried: measured.retried,
                path_failovers: measured.failovers,
                longest_stall_s: s_of_ps(longest_stall(host, now).0),
                cpu_utilisation: host.cpu.utilisation(now).clamp(0.0, 1.0),
                bus_utilisation: host.buses.iter().map(|bus| bus.utilisation(now)).fold(0.0, f64::max).min(1.0),
                interrupts: host.interrupts.iter().map(|interrupts| interrupts.raised()).sum(),
                logins: login_count(view, host, |counters| counters.fabric_logins),
                requests_unanswered: login_count(view, host, |counters| counters.timeouts),
                paths: paths(view, host),
            }
        })
        .collect()
}

/// A count of the login machines of a host.
fn login_count(view: &View<'_>, host: &HostNode, count: fn(&nport::Counters) -> u64) -> u64 {
    let ports = host.nports.iter().map(|&nport| &view.world.nodes[usize::from(nport)]);
    ports.map(|node| count(node.login.counters())).sum()
}

fn paths(view: &View<'_>, host: &HostNode) -> Vec<PathResult> {
    let mut found = Vec::new();
    for system in host.paths.systems() {
        for (number, path) in system.paths().iter().enumerate().filter(|(_, path)| path.was_up) {
            found.push(PathResult {
                name: view.names.path(system.storage, number as u16),
                state: state_name(system.state(number as u16)).to_owned(),
                commands: path.commands + path.failed,
                bytes: path.bytes,
                commands_failed: path.failed,
            });
        }
    }
    found
}

fn state_name(state: PathState) -> &'static str {
    match state {
        PathState::Active => "active",
        PathState::Suspect => "suspect",
        PathState::Blocked => "blocked",
        PathState::Failed => "failed",
        PathState::Gone => "gone",
    }
}

fn paths_lost(host: &HostNode) -> u64 {
    let lost = |state| matches!(state, PathState::Blocked | PathState::Failed | PathState::Gone);
    let systems = host.paths.systems().iter();
    systems
        .map(|system| {
            let paths = system.paths().iter().zip(0..);
            paths.filter(|(path, number)| path.was_up && lost(system.state(*number))).count() as u64
        })
        .sum()
}

pub(super) fn totals(view: &View<'_>) -> Totals {
    let world = view.world;
    let mut sums = Sums::default();
    let (mut response, mut command) = (LatencyHistogram::new(), LatencyHistogram::new());
    let mut by_direction = [LatencyHistogram::new(), LatencyHistogram::new()];
    for host in &world.hosts {
        sums.add(&sums_of(host));
    }
    // Workloads keep three digits in every lab, hosts do not.
    for workload in &world.workloads {
        for (all, one) in by_direction.iter_mut().zip(&workload.by_direction) {
            response.merge(one);
            all.merge(one);
        }
        command.merge(&workload.command_latency);
    }
    let sum = |count: fn(&HostNode) -> u64| world.hosts.iter().map(count).sum();
    Totals {
        io: sums.io(view.measured_ps, &response, &command),
        read_latency: latency(&by_direction[0]),
        write_latency: latency(&by_direction[1]),
        latency_histogram: buckets(&response),
        longest_stall_s: s_of_ps(world.hosts.iter().map(|h| longest_stall(h, view.now_ps).0).max().unwrap_or(0)),
        frames_dropped: world.lost().iter().sum(),
        commands_aborted: sum(|host| host.measured.aborted),
        commands_retried: sum(|host| host.measured.retried),
        path_failovers: sum(|host| host.measured.failovers),
        paths_lost: sum(paths_lost),
        link_resets: view.lanes.iter().map(|count| count.resets).sum(),
        deadlocks: super::events::deadlocks(view).count() as u64,
    }
}

pub(super) fn streams(view: &View<'_>) -> Vec<StreamResult> {
    let pairs = view.world.workloads.iter().zip(&view.world.lab.workloads);
    pairs.map(|(measure, config)| stream(view, measure, &config.name)).collect()
}

fn stream(view: &View<'_>, measure: &WorkloadMeasure, name: &str) -> StreamResult {
    let mut sums = Sums::default();
    let mut hosts = Vec::with_capacity(measure.hosts.len());
    for entry in &measure.hosts {
        sums.add(&Sums { offered: entry.offered, ios: entry.ios, bytes: entry.bytes, failed: entry.failed });
        let completed = entry.ios[0] + entry.ios[1];
        hosts.push(StreamHostResult {
            name: view.world.lab.hosts[usize::from(entry.host)].name.clone(),
            ios_completed: completed,
            ios_failed: entry.failed,
            throughput_bytes_per_s: per_s(entry.bytes[0] + entry.bytes[1], view.measured_ps),
            iops: per_s(completed, view.measured_ps),
            latency_mean_us: mean_us(entry.latency.sum(), entry.latency.count()),
        });
    }
    let response = measure.latency();
    StreamResult {
        name: name.to_owned(),
        io: sums.io(view.measured_ps, &response, &measure.command_latency),
        read_latency: latency(&measure.by_direction[0]),
        write_latency: latency(&measure.by_direction[1]),
        latency_histogram: buckets(&response),
        hosts,
    }
}
