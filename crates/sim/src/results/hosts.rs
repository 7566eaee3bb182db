//! Results of hosts and streams, and totals.

use super::MAX_HOST_HISTOGRAMS;
use super::view::{View, buckets, latency};
use crate::host::{PathState, Work};
use crate::stats::LatencyHistogram;
use crate::world::{HostNode, Path, WorkloadMeasure, unfinished_requests};
use sanloom_api::results::measure::{mean_us, per_s, s_of_ps};
use sanloom_api::results::{
    CpuWork, HostResult, IoStats, PathResult, StreamHostResult, StreamResult, Totals, TraceResult,
};
use sanloom_fc::config::{Load, Workload};
use sanloom_fc::nport;

/// Sums that form an [`IoStats`].
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Number of requests issued, and their bytes.
    offered: [u64; 2],
    ios: [u64; 2],
    bytes: [u64; 2],
    failed: u64,
    unfinished: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        for i in 0..2 {
            self.offered[i] += other.offered[i];
            self.ios[i] += other.ios[i];
            self.bytes[i] += other.bytes[i];
        }
        self.failed += other.failed;
        self.unfinished += other.unfinished;
    }

    fn io(&self, time_ps: u64, response: &LatencyHistogram, command: &LatencyHistogram) -> IoStats {
        let [reads, writes] = self.ios;
        let [read_bytes, written_bytes] = self.bytes;
        let [ios_offered, offered_bytes] = self.offered;
        IoStats {
            ios_offered,
            ios_completed: reads + writes,
            ios_failed: self.failed,
            ios_unfinished: self.unfinished,
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

fn sums_of(view: &View<'_>, number: u16, host: &HostNode) -> Sums {
    let measured = &host.measured;
    let unfinished = unfinished_requests(view.world, number);
    Sums { offered: measured.offered, ios: measured.ios, bytes: measured.bytes, failed: measured.failed, unfinished }
}

/// Returns the longest stall, including one in progress, and its start in ps since the first login.
/// A stall is a time in which no request ended although one was in flight.
pub(super) fn longest_stall(host: &HostNode, now_ps: u64) -> (u64, u64) {
    let measured = &host.measured;
    let present = if host.is_busy() { now_ps.saturating_sub(measured.last_end_ps) } else { 0 };
    if present > measured.longest_stall_ps {
        (present, measured.last_end_ps)
    } else {
        (measured.longest_stall_ps, measured.stall_began_ps)
    }
}

pub(super) fn hosts(view: &View<'_>) -> Vec<HostResult> {
    let with_histogram = view.world.hosts.nodes.len() <= MAX_HOST_HISTOGRAMS;
    let pairs = view.world.hosts.nodes.iter().zip(&view.world.lab.hosts);
    (0..)
        .zip(pairs)
        .map(|(number, (host, config))| {
            let (measured, counters) = (&host.measured, host.queue.counters());
            let now = view.now_ps;
            HostResult {
                name: config.name.clone(),
                io: sums_of(view, number, host).io(view.measured_ps, &measured.latency, &measured.command_latency),
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
                cpu_s: s_of_ps_wide(host.cpu.busy_ps(now)),
                cpu_s_per_gb: cpu_s_per_gb(host, now),
                cpu_work: cpu_work(host),
                hba_utilisation: host
                    .hba_processors
                    .iter()
                    .chain(host.iscsi_hbas.values())
                    .map(|hba| hba.utilisation(now))
                    .fold(0.0, f64::max)
                    .min(1.0),
                bus_utilisation: host.buses.iter().map(|bus| bus.utilisation(now)).fold(0.0, f64::max).min(1.0),
                interrupts: host.interrupts.iter().map(|interrupts| interrupts.raised()).sum(),
                logins: login_count(view, host, |counters| counters.fabric_logins),
                requests_unanswered: login_count(view, host, |counters| counters.timeouts),
                paths: paths(view, number, host),
                ip_router: super::iscsi::router(view, number),
            }
        })
        .collect()
}

/// Returns a time in seconds.
fn s_of_ps_wide(ps: u128) -> f64 {
    ps as f64 / 1e12
}

fn cpu_s_per_gb(host: &HostNode, now_ps: u64) -> f64 {
    let bytes = host.measured.bytes[0] + host.measured.bytes[1];
    if bytes == 0 { 0.0 } else { s_of_ps_wide(host.cpu.busy_ps(now_ps)) / (bytes as f64 / 1e9) }
}

fn cpu_work(host: &HostNode) -> Vec<CpuWork> {
    let given = Work::ALL.into_iter().map(|work| (work, host.cpu.given_ps(work))).filter(|(_, ps)| *ps > 0);
    given.map(|(work, ps)| CpuWork { name: work.name().to_owned(), cpu_s: s_of_ps_wide(ps) }).collect()
}

/// Returns the sum of one counter over the login machines of a host.
fn login_count(view: &View<'_>, host: &HostNode, count: fn(&nport::Counters) -> u64) -> u64 {
    let ports = host.nports.iter().map(|&nport| &view.world.nports.nodes[usize::from(nport)]);
    ports.map(|node| count(node.login.counters())).sum()
}

fn paths(view: &View<'_>, of_host: u16, host: &HostNode) -> Vec<PathResult> {
    let mut found: Vec<PathResult> = Vec::new();
    for (index, system) in (0..).zip(host.paths.systems()) {
        for (number, path) in (0..).zip(system.paths()).filter(|(_, path)| path.was_up) {
            let name = view.names.path(of_host, system.storage, number);
            let (commands, bytes, commands_failed) = (path.commands + path.failed, path.bytes, path.failed);
            if host.paths.is_reported(index, number) {
                let state = state_name(system.state(number)).to_owned();
                found.push(PathResult { name, state, commands, bytes, commands_failed });
            } else if let Some(row) = found.iter_mut().find(|row| row.name == name) {
                row.commands += commands;
                row.bytes += bytes;
                row.commands_failed += commands_failed;
            }
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
    let systems = (0..).zip(host.paths.systems());
    systems
        .map(|(index, system)| {
            let is_lost = |(number, path): &(u16, &Path)| {
                path.was_up && lost(system.state(*number)) && host.paths.is_reported(index, *number)
            };
            (0..).zip(system.paths()).filter(is_lost).count() as u64
        })
        .sum()
}

pub(super) fn totals(view: &View<'_>) -> Totals {
    let world = view.world;
    let mut sums = Sums::default();
    let (mut response, mut command) = (LatencyHistogram::new(), LatencyHistogram::new());
    let mut by_direction = [LatencyHistogram::new(), LatencyHistogram::new()];
    for (number, host) in (0..).zip(&world.hosts.nodes) {
        sums.add(&sums_of(view, number, host));
    }
    // Totals are merged from the workloads, because their histograms are more precise than those of
    // hosts in large labs.
    for workload in &world.hosts.workloads {
        for (all, one) in by_direction.iter_mut().zip(&workload.by_direction) {
            response.merge(one);
            all.merge(one);
        }
        command.merge(&workload.command_latency);
    }
    let sum = |count: fn(&HostNode) -> u64| world.hosts.nodes.iter().map(count).sum();
    Totals {
        io: sums.io(view.measured_ps, &response, &command),
        read_latency: latency(&by_direction[0]),
        write_latency: latency(&by_direction[1]),
        latency_histogram: buckets(&response),
        longest_stall_s: s_of_ps(world.hosts.nodes.iter().map(|h| longest_stall(h, view.now_ps).0).max().unwrap_or(0)),
        frames_dropped: world.measured().lost().iter().sum(),
        commands_aborted: sum(|host| host.measured.aborted),
        commands_retried: sum(|host| host.measured.retried),
        path_failovers: sum(|host| host.measured.failovers),
        paths_lost: sum(paths_lost),
        link_resets: view.lanes.iter().map(|count| count.resets).sum(),
        deadlocks: super::events::deadlocks(view).len() as u64
            + super::ethernet::deadlocks(view)
            + super::infiniband::deadlocks(view),
    }
}

pub(super) fn streams(view: &View<'_>) -> Vec<StreamResult> {
    let pairs = (0..).zip(view.world.hosts.workloads.iter().zip(&view.world.lab.workloads));
    pairs.map(|(number, (measure, config))| stream(view, number, measure, config)).collect()
}

fn stream(view: &View<'_>, number: u16, measure: &WorkloadMeasure, config: &Workload) -> StreamResult {
    let mut trace = match &config.load {
        Load::Trace(load) => Some(TraceResult { file: load.file.display().to_string(), ..TraceResult::default() }),
        Load::Closed { .. } | Load::Open(_) => None,
    };
    let mut sums = Sums::default();
    let mut hosts = Vec::with_capacity(measure.hosts.len());
    for entry in &measure.hosts {
        let host = &view.world.hosts.nodes[usize::from(entry.host)];
        let is_of = |stream: u32| host.streams.get(stream as usize).is_some_and(|(workload, _)| *workload == number);
        let unfinished =
            host.queue.requests_of_streams(is_of) + crate::world::virtual_requests(view.world, entry.host, is_of);
        let own = host.streams.iter().filter(|(workload, _)| *workload == number);
        for (counts, error) in own.filter_map(|(_, stream)| stream.replayed()) {
            if let Some(trace) = &mut trace {
                trace.requests += counts.requests;
                trace.split += counts.split;
                trace.trims += counts.trims;
                trace.passes = trace.passes.max(counts.passes);
                trace.error = trace.error.take().or(error.map(str::to_owned));
            }
        }
        let (offered, ios, bytes, failed) = (entry.offered, entry.ios, entry.bytes, entry.failed);
        sums.add(&Sums { offered, ios, bytes, failed, unfinished });
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
        name: config.name.clone(),
        io: sums.io(view.measured_ps, &response, &measure.command_latency),
        read_latency: latency(&measure.by_direction[0]),
        write_latency: latency(&measure.by_direction[1]),
        latency_histogram: buckets(&response),
        hosts,
        trace,
    }
}
