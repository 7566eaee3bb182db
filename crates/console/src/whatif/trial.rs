//! Simulation of one failure, and of none: [`Plan::fail`], [`Plan::healthy`].

use super::failure::{self, Cause};
use crate::run::{self, View};
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_sim::recovery::{self, Recovery, Samples};
use sanloom_sim::replicate::seed_of;
use sanloom_sim::world::World;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Time of the failure, and the parts of the lab that all runs share.
pub struct Plan {
    lab: Lab,
    pub at: Picos,
    window: Picos,
}

/// Measurements of one run with a failure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Time of the recovery, in ps since the start of the workloads. Without recovery the interval
    /// lasts from the failure to the end of the run.
    pub recovered_ps: Option<u64>,
    /// Interval in which `bytes` were counted, in ps since the start of the workloads.
    pub from_ps: u64,
    pub until_ps: u64,
    /// Lowest throughput of a step after the failure, of all hosts together.
    pub worst_bytes_per_s: f64,
    pub longest_request_us: f64,
    pub paths_lost: u64,
    /// In the order of the lab.
    pub hosts: Vec<HostTrial>,
}

/// Measurements of one host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HostTrial {
    /// Bytes completed in the interval.
    pub bytes: u64,
    pub worst_bytes_per_s: f64,
    /// Longest time without a completed request from the failure on, in ps.
    pub stall_ps: u64,
    /// A completed request ended the longest stall.
    pub stall_ended: bool,
    pub failed: u64,
    pub unfinished: u64,
}

impl Plan {
    /// Takes a lab in the state of [`failure::clear`].
    pub fn new(mut lab: Lab) -> Plan {
        let (at, window) = (failure::time(&lab), failure::window(&lab));
        // Results then cover the time from the failure on.
        lab.run.warmup = at;
        Plan { lab, at, window }
    }

    fn lab(&self, replication: u32, end_ps: u64) -> Lab {
        let mut lab = self.lab.clone();
        lab.run.seed = seed_of(lab.run.seed, replication);
        lab.run.duration = Picos(end_ps);
        lab
    }

    /// Simulates a failure; `None` after Ctrl-C.
    pub fn fail(&self, cause: Cause, replication: u32) -> Option<Trial> {
        self.fail_with_world(cause, replication).map(|(trial, _)| trial)
    }

    /// As [`Plan::fail`], with the world at the end of the run.
    pub fn fail_with_world(&self, cause: Cause, replication: u32) -> Option<(Trial, World)> {
        let step_ps = recovery::step_ps(self.window);
        let horizon = recovery::horizon(&self.lab, self.at, self.window);
        // A whole number of steps, so that the other run can be measured at the same times.
        let steps = (horizon.0 - self.at.0).div_ceil(step_ps);
        let mut lab = self.lab(replication, self.at.0 + steps * step_ps);
        failure::inject(&mut lab, self.at, cause);
        let mut recovery = Recovery::new(&lab, self.at, self.window);
        let mut inspect = |world: &mut World| recovery.inspect(world);
        let view = View { inspect: Some((step_ps, &mut inspect)), ..View::default() };
        let finished = run::run(&Arc::new(lab), view);
        if finished.results.lab.interrupted {
            return None;
        }
        let world = &finished.world;
        let now_ps = world.net.now();
        let (worst_bytes_per_s, lowest) = recovery.lowest();
        let (from_ps, until_ps, bytes) = match recovery.measured() {
            Some(measured) => (measured.from_ps, measured.until_ps, measured.bytes.clone()),
            None => (self.at.0, world.run_ps(), recovery::completed(world)),
        };
        let host = |(number, node): (usize, &sanloom_sim::world::HostNode)| {
            let (stall_ps, stall_ended) = node.longest_outage(now_ps);
            HostTrial {
                bytes: bytes.get(number).copied().unwrap_or(0),
                worst_bytes_per_s: lowest.get(number).copied().filter(|rate| rate.is_finite()).unwrap_or(0.0),
                stall_ps,
                stall_ended,
                failed: node.measured.failed,
                unfinished: node.queue.requests(),
            }
        };
        let trial = Trial {
            recovered_ps: recovery.measured().map(|measured| measured.recovered_ps),
            from_ps,
            until_ps,
            worst_bytes_per_s,
            longest_request_us: finished.results.totals.io.latency.max_us,
            paths_lost: finished.results.totals.paths_lost,
            hosts: world.hosts.nodes.iter().enumerate().map(host).collect(),
        };
        Some((trial, finished.world))
    }

    /// Simulates the lab without a failure to the last of these times, even after Ctrl-C.
    pub fn healthy(&self, times_ps: &BTreeSet<u64>, replication: u32) -> Healthy {
        let step_ps = recovery::step_ps(self.window);
        let end_ps = times_ps.last().copied().unwrap_or(self.at.0).max(self.at.0) + step_ps;
        let lab = self.lab(replication, end_ps);
        let mut samples = Samples::new(times_ps.iter().copied());
        let mut inspect = |world: &mut World| samples.inspect(world);
        let view = View { inspect: Some((step_ps, &mut inspect)), ignores_interrupt: true, ..View::default() };
        let finished = run::run(&Arc::new(lab), view);
        let now_ps = finished.world.net.now();
        let nodes = &finished.world.hosts.nodes;
        let longest_stall_ps = nodes.iter().map(|node| node.longest_outage(now_ps).0).max().unwrap_or(0);
        let is_idle = recovery::completed(&finished.world).into_iter().map(|bytes| bytes == 0).collect();
        Healthy { paths_lost: finished.results.totals.paths_lost, longest_stall_ps, is_idle, samples }
    }
}

/// Run without a failure.
pub struct Healthy {
    pub paths_lost: u64,
    /// Longest time without a completed request of any host, in ps.
    pub longest_stall_ps: u64,
    /// For each host, whether it completed no request.
    pub is_idle: Vec<bool>,
    samples: Samples,
}

impl Healthy {
    /// Bytes of each host in an interval.
    pub fn bytes(&self, from_ps: u64, until_ps: u64) -> Vec<u64> {
        self.samples.between(from_ps, until_ps)
    }

    /// Requests of each host that failed until this time. `with_parked` adds those that wait for a
    /// path then.
    pub fn failed(&self, until_ps: u64, with_parked: bool) -> Vec<u64> {
        self.samples.failed(until_ps, with_parked)
    }
}
