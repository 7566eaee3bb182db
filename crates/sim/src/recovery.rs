//! End of a run that shows a failure: the time at which I/O has recovered from it.
//!
//! A run with a failure must last until the timers have passed that delay the recovery, for example
//! `fast_io_fail`. [`horizon`] adds all of them. [`Recovery`] ends the run earlier, as soon as the
//! recovered throughput has been measured.

use crate::host::{HBA_RESET_PS, PathState};
use crate::run::Control;
use crate::world::{HostNode, World};
use sanloom_api::results::measure::per_s;
use sanloom_fc::config::{Host, Picos};
use sanloom_fc::san::Lab;
use std::collections::BTreeMap;

/// Largest difference between the two halves of a steady window, as a share of the larger half.
const STEADY: f64 = 0.1;
/// Number of windows without steady throughput after which the last one is accepted. Bursts and
/// phases of a workload are never steady.
const MOST_WINDOWS: u32 = 6;

/// Returns the time from which on nothing changes after a failure at `at`: every timer that delays
/// the recovery has passed once, and a window of `window` has been measured.
pub fn horizon(lab: &Lab, at: Picos, window: Picos) -> Picos {
    let timers = &lab.timers;
    let of_host = |host: &Host| {
        let path = host.multipath.fast_io_fail.min(host.multipath.dev_loss).0;
        let recovery = &host.recovery;
        let resets = recovery.abort_timeout.0.saturating_add(recovery.reset_timeout.0.saturating_mul(2));
        let attempt = host.command_timeout.0.saturating_add(resets);
        let commands = attempt.saturating_mul(u64::from(host.retries) + 1).saturating_add(HBA_RESET_PS);
        let no_path = host.multipath.no_path_time().map_or(0, |time| time.0);
        path.saturating_add(commands).saturating_add(no_path)
    };
    let of_hosts = lab.hosts.iter().map(of_host).max().unwrap_or(0);
    let of_fabric = [
        timers.rscn_delay,
        timers.hold_time,
        timers.e_d_tov,
        timers.r_a_tov,
        timers.r_a_tov,
        timers.f_s_tov,
        timers.hello,
        timers.dead,
    ];
    let timers = of_fabric.iter().fold(of_hosts, |sum, timer| sum.saturating_add(timer.0));
    let timers = timers.saturating_add(session_ps(lab));
    let windows = window.0.saturating_mul(u64::from(MOST_WINDOWS));
    Picos(at.0.saturating_add(timers).saturating_add(windows).max(lab.run.duration.0))
}

/// Returns the time after which hosts with sessions of iSCSI have noticed a dead one and have tried
/// to log in again, in ps; 0 without Ethernet.
fn session_ps(lab: &Lab) -> u64 {
    if lab.ethernet_links.is_empty() { 0 } else { crate::world::iscsi_recovery().as_ns() * 1_000 }
}

/// Returns the time between two inspections for a window, in ps. Runs with the same window are
/// inspected at the same times.
pub fn step_ps(window: Picos) -> u64 {
    (window.0 / 40).clamp(1, crate::run::MAX_STEP_PS)
}

/// Observer of a run with a failure. It waits for the recovery, measures a window of steady
/// throughput, stops the workloads, and ends the run when the last request has ended.
///
/// I/O has recovered if
/// - no command waits for a timer of its path or for an error handler,
/// - every command in flight that has a path was sent after the recovery,
/// - the throughput of the two halves of the window is the same within 10 %.
///
/// Commands without a path do not delay the window, because nothing brings the path back. Such
/// commands fail after `no_path_retry` polling intervals; the run lasts until then.
#[derive(Clone, Debug)]
pub struct Recovery {
    at_ps: u64,
    window_ps: u64,
    /// Time between two inspections.
    step_ps: u64,
    /// Earliest start of the window: by then the fabric has reported the failure.
    earliest_ps: u64,
    /// Longest command before the failure.
    usual_ps: u64,
    /// Last inspection at which a command waited for a timer, or took unusually long.
    disturbed_ps: Option<u64>,
    window: Option<Window>,
    windows: u32,
    measured: Option<Measured>,
    steps: Steps,
}

/// Window of steady throughput after a failure, in ps since the start of the workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// First inspection after which no command waited for a timer or took unusually long.
    pub recovered_ps: u64,
    /// Start of the window.
    pub from_ps: u64,
    pub until_ps: u64,
    /// Bytes that each host completed in the window.
    pub bytes: Vec<u64>,
}

/// A window that is being measured.
#[derive(Clone, Debug)]
struct Window {
    from_ps: u64,
    /// Bytes of each host until the start of the window.
    start: Vec<u64>,
    /// Bytes of all hosts until the middle of the window.
    middle: u64,
}

/// Lowest throughput of any step of the time series after the failure.
#[derive(Clone, Debug, Default)]
struct Steps {
    length_ps: u64,
    began_ps: u64,
    began: Vec<u64>,
    /// Lowest bytes per second of each host.
    lowest: Vec<f64>,
    lowest_total: Option<f64>,
}

impl Recovery {
    /// Returns the observer of a failure at `at`. The warm-up of the lab must end at that time.
    pub fn new(lab: &Lab, at: Picos, window: Picos) -> Recovery {
        Recovery {
            at_ps: at.0,
            window_ps: window.0,
            step_ps: step_ps(window),
            earliest_ps: at.0.saturating_add(4 * lab.timers.rscn_delay.0),
            usual_ps: 0,
            disturbed_ps: None,
            window: None,
            windows: 0,
            measured: None,
            steps: Steps { length_ps: lab.run.sample_interval.0.max(1), ..Steps::default() },
        }
    }

    /// Returns the window in which the recovered throughput was measured; `None` if I/O did not
    /// recover.
    pub fn measured(&self) -> Option<&Measured> {
        self.measured.as_ref()
    }

    /// Returns the lowest throughput in bytes per second of any step of the time series between the
    /// failure and the end of the window: of all hosts together, and of each host.
    pub fn lowest(&self) -> (f64, &[f64]) {
        (self.steps.lowest_total.unwrap_or(0.0), &self.steps.lowest)
    }

    /// Call it as [`crate::run::Observer::inspect`].
    pub fn inspect(&mut self, world: &mut World) -> Control {
        let now_ps = world.run_ps();
        if now_ps < self.at_ps {
            let longest = world.hosts.nodes.iter().filter_map(|host| host.measured.command_latency.exact().max()).max();
            self.usual_ps = self.usual_ps.max(longest.unwrap_or(0));
            return Control::Continue;
        }
        if self.measured.is_some() {
            return if world.hosts.is_busy() { Control::Continue } else { Control::Stop };
        }
        let bytes = completed(world);
        self.steps.add(now_ps, &bytes);
        if self.is_disturbed(world) {
            self.disturbed_ps = Some(now_ps);
        }
        if now_ps < self.earliest_ps {
            return Control::Continue;
        }
        if self.is_settled(world) {
            self.measure(world, now_ps, bytes);
        } else {
            self.window = None;
        }
        Control::Continue
    }

    /// Starts, continues or ends the window.
    fn measure(&mut self, world: &mut World, now_ps: u64, bytes: Vec<u64>) {
        let all: u64 = bytes.iter().sum();
        let Some(window) = &mut self.window else {
            self.window = Some(Window { from_ps: now_ps, start: bytes, middle: all });
            return;
        };
        if now_ps <= window.from_ps + self.window_ps / 2 {
            window.middle = all;
        }
        if now_ps < window.from_ps + self.window_ps {
            return;
        }
        let halves = [window.middle - window.start.iter().sum::<u64>(), all - window.middle];
        self.windows += 1;
        let change = halves[0].abs_diff(halves[1]) as f64;
        if change > STEADY * halves[0].max(halves[1]) as f64 && self.windows < MOST_WINDOWS {
            self.window = Some(Window { from_ps: now_ps, start: bytes, middle: all });
            return;
        }
        let bytes = bytes.iter().zip(&window.start).map(|(now, start)| now - start).collect();
        let recovered_ps = self.disturbed_ps.map_or(self.at_ps, |at_ps| at_ps + self.step_ps).min(window.from_ps);
        self.measured = Some(Measured { recovered_ps, from_ps: window.from_ps, until_ps: now_ps, bytes });
        world.hosts.nodes.iter_mut().for_each(HostNode::pause);
    }

    /// Returns whether no command waits for a timer of its path, and none is left from before the
    /// window.
    fn is_settled(&self, world: &World) -> bool {
        let now_ps = world.net.now();
        let began_ps = self.window.as_ref().map_or(now_ps, |window| world.start_ps + window.from_ps);
        let limit_ps = (self.window_ps / 2).max(2 * self.usual_ps);
        let is_old = |sent_ps: u64| sent_ps < began_ps && now_ps - sent_ps > limit_ps;
        world.hosts.nodes.iter().all(|host| paths_settled(host) && !host.oldest_command_ps().is_some_and(is_old))
    }

    /// Returns whether a command waits for a timer of its path, or takes unusually long.
    fn is_disturbed(&self, world: &World) -> bool {
        let now_ps = world.net.now();
        let limit_ps = if self.usual_ps > 0 { 2 * self.usual_ps } else { self.window_ps / 2 };
        let is_long = |sent_ps: u64| now_ps - sent_ps > limit_ps;
        world.hosts.nodes.iter().any(|host| !paths_settled(host) || host.oldest_command_ps().is_some_and(is_long))
    }
}

/// Returns whether no command of a host waits for a timer of a path. A path that is lost or fails
/// repeatedly holds nothing up if it has no commands and another path is active.
fn paths_settled(host: &HostNode) -> bool {
    !host.is_recovering()
        && host.paths.systems().iter().all(|system| {
            let used = || (0..).zip(system.paths()).filter(|(_, path)| path.was_up).map(|(number, _)| number);
            let has_active = used().any(|number| system.state(number) == PathState::Active);
            used().all(|number| match system.state(number) {
                PathState::Active | PathState::Failed | PathState::Gone => true,
                PathState::Blocked | PathState::Suspect => has_active && system.multipath.outstanding(number) == 0,
            })
        })
}

impl Steps {
    fn add(&mut self, now_ps: u64, bytes: &[u64]) {
        let elapsed_ps = now_ps - self.began_ps;
        if self.began.is_empty() {
            self.lowest = vec![f64::INFINITY; bytes.len()];
        } else if elapsed_ps < self.length_ps {
            return;
        } else {
            let moved = |(now, before): (&u64, &u64)| per_s(now - before, elapsed_ps);
            for (lowest, rate) in self.lowest.iter_mut().zip(bytes.iter().zip(&self.began).map(moved)) {
                *lowest = lowest.min(rate);
            }
            let total = per_s(bytes.iter().sum::<u64>() - self.began.iter().sum::<u64>(), elapsed_ps);
            self.lowest_total = Some(self.lowest_total.map_or(total, |lowest| lowest.min(total)));
        }
        (self.began_ps, self.began) = (now_ps, bytes.to_vec());
    }
}

/// Observer of the run without a failure: it records the bytes that each host has completed, and
/// the requests that failed, at given times, and ends the run at the last one.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// By time in ps since the start of the workloads.
    at: BTreeMap<u64, Sample>,
}

/// Counts of each host at one time, since the end of the warm-up.
#[derive(Clone, Debug, Default)]
struct Sample {
    bytes: Vec<u64>,
    failed: Vec<u64>,
    /// Requests that wait for a path at that time.
    parked: Vec<u64>,
}

impl Samples {
    /// Returns the observer for these times, which must be those of inspections.
    pub fn new(times_ps: impl IntoIterator<Item = u64>) -> Samples {
        Samples { at: times_ps.into_iter().map(|at_ps| (at_ps, Sample::default())).collect() }
    }

    /// Returns the bytes that each host completed between two of the times; empty if the run did
    /// not reach them.
    pub fn between(&self, from_ps: u64, until_ps: u64) -> Vec<u64> {
        match (self.at.get(&from_ps), self.at.get(&until_ps)) {
            (Some(from), Some(until)) => {
                until.bytes.iter().zip(&from.bytes).map(|(until, from)| until - from).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the requests of each host that failed until one of the times; empty if the run did
    /// not reach it. `with_parked` adds those that wait for a path then.
    pub fn failed(&self, until_ps: u64, with_parked: bool) -> Vec<u64> {
        let Some(sample) = self.at.get(&until_ps) else { return Vec::new() };
        let count = |(failed, parked): (&u64, &u64)| failed + if with_parked { *parked } else { 0 };
        sample.failed.iter().zip(&sample.parked).map(count).collect()
    }

    /// Call it as [`crate::run::Observer::inspect`].
    pub fn inspect(&mut self, world: &mut World) -> Control {
        let now_ps = world.run_ps();
        if let Some(sample) = self.at.get_mut(&now_ps) {
            let nodes = &world.hosts.nodes;
            *sample = Sample {
                bytes: completed(world),
                failed: nodes.iter().map(|host| host.measured.failed).collect(),
                parked: nodes.iter().map(HostNode::parked).collect(),
            };
        }
        match self.at.last_key_value() {
            Some((last_ps, _)) if now_ps < *last_ps => Control::Continue,
            _ => Control::Stop,
        }
    }
}

/// Returns the bytes that each host has completed since the end of the warm-up.
pub fn completed(world: &World) -> Vec<u64> {
    world.hosts.nodes.iter().map(|host| host.measured.bytes.iter().sum()).collect()
}
