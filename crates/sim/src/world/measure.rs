//! Request measurements: totals of the run, and the numbers of each workload.

use crate::stats::{LatencyHistogram, Summary};

/// Request totals of the whole run, including login and warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequestTotals {
    /// Requests issued by streams.
    pub issued: u64,
    /// Requests that completed with good status.
    pub completed: u64,
    /// Requests that failed permanently.
    pub failed: u64,
}

/// Measurements of a workload since the end of the warm-up.
#[derive(Clone, Debug)]
pub struct WorkloadMeasure {
    /// Response times of reads and of writes.
    pub by_direction: [LatencyHistogram; 2],
    /// Times from the submission of a request's command to its completion.
    pub command_latency: LatencyHistogram,
    /// Measurements of each host on which the workload runs.
    pub hosts: Vec<WorkloadHost>,
    /// Index into `hosts` of each host of the lab; `u16::MAX` if the workload does not run there.
    entry_of_host: Vec<u16>,
}

/// Measurements of a workload on one host.
#[derive(Clone, Debug, Default)]
pub struct WorkloadHost {
    /// Index of the host.
    pub host: u16,
    /// Number of requests issued, and their bytes.
    pub offered: [u64; 2],
    /// Reads and writes that completed with good status.
    pub ios: [u64; 2],
    /// Bytes of these reads and writes.
    pub bytes: [u64; 2],
    pub failed: u64,
    pub latency: Summary,
}

impl WorkloadMeasure {
    /// Returns empty measurements for a workload that runs on `hosts`, out of `all` hosts.
    /// Histograms keep `digits` significant digits.
    pub fn new(hosts: &[u16], all: usize, digits: u8) -> WorkloadMeasure {
        let mut entry_of_host = vec![u16::MAX; all];
        for (at, &host) in hosts.iter().enumerate() {
            entry_of_host[usize::from(host)] = at as u16;
        }
        let hosts = hosts.iter().map(|&host| WorkloadHost { host, ..WorkloadHost::default() }).collect();
        WorkloadMeasure {
            by_direction: [(); 2].map(|()| LatencyHistogram::with_digits(digits)),
            command_latency: LatencyHistogram::with_digits(digits),
            hosts,
            entry_of_host,
        }
    }

    /// Returns the response times of reads and writes together.
    pub fn latency(&self) -> LatencyHistogram {
        let [mut all, writes] = self.by_direction.clone();
        all.merge(&writes);
        all
    }

    /// Exchanges the measurements of one host with another part of the world.
    pub(super) fn swap_host(&mut self, other: &mut WorkloadMeasure, host: u16) {
        let entry = usize::from(self.entry_of_host[usize::from(host)]);
        if let (Some(own), Some(other)) = (self.hosts.get_mut(entry), other.hosts.get_mut(entry)) {
            std::mem::swap(own, other);
        }
    }

    /// Moves the measurements of all hosts together from another part of the world.
    pub(super) fn add_sums(&mut self, part: &mut WorkloadMeasure) {
        let own = self.by_direction.iter_mut().chain([&mut self.command_latency]);
        for (own, part) in own.zip(part.by_direction.iter_mut().chain([&mut part.command_latency])) {
            own.merge(part);
            part.clear();
        }
    }

    pub(super) fn offer(&mut self, host: u16, bytes: u32) {
        let entry = self.entry(host);
        entry.offered[0] += 1;
        entry.offered[1] += u64::from(bytes);
    }

    /// Records a completed request, with the latency of the request and of its command.
    pub(super) fn complete(&mut self, host: u16, bytes: u64, (latency_ps, command_ps): (u64, u64), write: bool) {
        self.command_latency.record_ps(command_ps);
        self.by_direction[usize::from(write)].record_ps(latency_ps);
        let entry = self.entry(host);
        entry.ios[usize::from(write)] += 1;
        entry.bytes[usize::from(write)] += bytes;
        entry.latency.add(latency_ps);
    }

    pub(super) fn fail(&mut self, host: u16) {
        self.entry(host).failed += 1;
    }

    pub(super) fn restart(&mut self) {
        self.by_direction.iter_mut().for_each(LatencyHistogram::clear);
        self.command_latency.clear();
        for entry in &mut self.hosts {
            *entry = WorkloadHost { host: entry.host, ..WorkloadHost::default() };
        }
    }

    fn entry(&mut self, host: u16) -> &mut WorkloadHost {
        let entry = usize::from(self.entry_of_host[usize::from(host)]);
        debug_assert!(entry < self.hosts.len(), "host {host} has no stream of this workload");
        &mut self.hosts[entry]
    }
}

/// Returns the significant digits of the histograms for this number of nodes. Percentiles are right
/// to 0.1 %, 0.8 % or 6 %, and the histograms of a thousand nodes still fit into a few megabytes.
pub(super) fn digits(nodes: usize) -> u8 {
    match nodes {
        0..=64 => 3,
        65..=256 => 2,
        _ => 1,
    }
}
