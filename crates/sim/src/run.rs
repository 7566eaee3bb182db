//! One run from login to results: [`simulate`].

use crate::net::Observed;
use crate::parallel::{self, Engine, Threads};
use crate::precision::StopRule;
use crate::results;
use crate::world::{World, operator, run_some};
use sanloom_api::results::Results;
use sanloom_fc::san::Lab;
use std::sync::Arc;

/// Callbacks of a run.
pub trait Observer {
    /// Reports progress at the beginning, about two hundred times during the run, and at the end.
    /// In longer runs it is called every 10 ms of simulated time, so that they can be stopped soon;
    /// with several threads it may be called less often, about once per second. `Stop` ends the run
    /// early; the results then cover the simulated part.
    fn progress(&mut self, progress: &Progress) -> Control {
        let _ = progress;
        Control::Continue
    }

    /// Receives the records of the watched links since the last call, in the order of sending.
    /// The world has those of Ethernet.
    /// [`crate::capture`] and [`crate::trace`] format them.
    fn observed(&mut self, world: &World, observed: &[Observed]) {
        let _ = (world, observed);
    }

    /// Returns the time up to which the run may go on now, in ps since the start of the workloads,
    /// or `None` to end the run early. A pacer waits here, and answers requests. It is called again
    /// when this time is reached, or after some thousand events. Results do not depend on the times
    /// unless the pacer changes the world.
    fn limit_ps(&mut self, world: &mut World) -> Option<u64> {
        let _ = world;
        Some(u64::MAX)
    }

    /// Receives the world whenever [`Observer::progress`] is called after the start of the
    /// workloads. `Stop` ends the run as planned: the results are complete.
    fn inspect(&mut self, world: &mut World) -> Control {
        let _ = world;
        Control::Continue
    }
}

/// Observer that ignores all records.
pub struct Blind;

impl Observer for Blind {}

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Simulated time since the start of the workloads, in ps; 0 during login.
    pub run_ps: u64,
    /// Simulated duration of the run, in ps.
    pub duration_ps: u64,
    /// Frame-hops so far.
    pub frame_hops: u64,
    /// True if ports are still logging in.
    pub logging_in: bool,
}

/// Decision of an observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Continue the run.
    Continue,
    /// End the run.
    Stop,
}

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Indices of the links whose frames and R_RDYs are passed to [`Observer::observed`].
    pub watch: Vec<u16>,
    /// Indices of the Ethernet links whose frames are recorded for [`Observer::observed`].
    pub watch_ethernet: Vec<u16>,
    /// The same of InfiniBand links.
    pub watch_infiniband: Vec<u16>,
    /// Longest simulated time between two calls of [`Observer::inspect`], in ps; at most 10 ms.
    /// `None`: a two-hundredth of the run.
    pub step_ps: Option<u64>,
    /// Threads of the run. Nothing but the speed depends on them.
    pub threads: Threads,
}

/// Returns the world of a lab, which must have passed `Lab::validate`, at a time after the start of
/// the workloads. Without a time, the world is returned when every port has logged in and no
/// workload has started. The observer may stop the run earlier.
pub fn world_at(lab: &Arc<Lab>, at_ps: Option<u64>, observer: &mut dyn Observer) -> World {
    let mut world = World::new(lab.clone());
    // The event log begins with the first login.
    operator::permit(&mut world);
    let mut stopped = report(&mut world, observer, true);
    if !stopped {
        world.log_in();
    }
    let Some(at_ps) = at_ps else { return world };
    world.start();
    while !stopped && world.run_ps() < at_ps {
        stopped = report(&mut world, observer, false);
        let until = world.run_ps().saturating_add(MAX_STEP_PS).min(at_ps);
        world.run_until(world.start_ps + until);
    }
    world
}

/// Longest simulated time between two calls of [`Observer::progress`]: 10 ms.
pub const MAX_STEP_PS: u64 = 10_000_000_000;

/// Number of events between two calls of [`Observer::limit_ps`].
const MAX_STEP_EVENTS: u64 = 5_000;

/// A completed run.
pub struct Finished {
    /// Results of the run. In `engine`, only the counts are set, because only the caller has a
    /// clock.
    pub results: Results,
    /// The world at the end of the run, for checks and views.
    pub world: World,
    /// How the run used its threads.
    pub threads: parallel::Report,
}

/// Simulates a lab, which must have passed `Lab::validate`, from the first login to the end.
///
/// # Panics
/// If frames or credits are not conserved, because then no number of the run can be trusted.
pub fn simulate(lab: &Arc<Lab>, options: &Options, observer: &mut dyn Observer) -> Finished {
    let mut world = World::new(lab.clone());
    for &link in &options.watch {
        world.watch(link);
    }
    for &link in &options.watch_ethernet {
        crate::world::ethernet::watch(&mut world, link);
    }
    for &link in &options.watch_infiniband {
        crate::world::infiniband::watch(&mut world, link);
    }
    let duration_ps = lab.run.duration.0;
    let mut stopped = report(&mut world, observer, true);
    if !stopped {
        world.log_in();
    }
    world.start();
    let mut engine = Engine::new(&mut world, options.threads);
    let start_hops = hops(&world);
    let start_events = world.net.events();
    let mut step = options.step_ps.unwrap_or(duration_ps / 200).clamp(1, MAX_STEP_PS);
    let warmup_ps = lab.run.warmup.0.min(duration_ps);
    let mut measuring = warmup_ps == 0;
    let mut rule = StopRule::new(lab);
    // Some runs end with a step. The records of watched links need memory.
    let fixed_step = options.step_ps.is_some()
        || rule.is_some()
        || lab.run.stop_issuing.is_some()
        || !options.watch.is_empty()
        || !options.watch_ethernet.is_empty()
        || !options.watch_infiniband.is_empty();
    while !stopped && world.run_ps() < duration_ps {
        stopped = report(&mut world, observer, false);
        if stopped || observer.inspect(&mut world) == Control::Stop {
            break;
        }
        let mut until = world.run_ps().saturating_add(step).min(duration_ps);
        if !measuring {
            until = until.min(warmup_ps);
        }
        stopped = !advance(&mut world, until, observer, |world, until_ps| engine.run_until(world, until_ps));
        if stopped {
            break;
        }
        if !fixed_step {
            step = engine.step_after(step).min(MAX_STEP_PS);
        }
        if !measuring && until == warmup_ps {
            world.begin_measurement();
            measuring = true;
        }
        if let Some(rule) = rule.as_mut().filter(|_| measuring) {
            rule.observe(&world);
            if rule.is_met() {
                break;
            }
        }
        if lab.run.stop_issuing.is_some_and(|stop| until > stop.0) && measuring && !world.hosts.is_busy() {
            break;
        }
    }
    report(&mut world, observer, false);
    if let Err(broken) = world.check() {
        panic!("the books of the simulation do not balance: {broken}");
    }
    let mut results = results::of(&world, stopped);
    results.lab.precision = rule.map(|rule| rule.result());
    results.engine.frame_hops = hops(&world) - start_hops;
    results.engine.events = world.net.events() - start_events;
    Finished { results, world, threads: engine.report().clone() }
}

/// Lets a world go on after its run, as the observer permits, until the observer ends it.
pub fn go_on(world: &mut World, observer: &mut dyn Observer) {
    while !report(world, observer, false) {
        let until = world.run_ps().saturating_add(MAX_STEP_PS);
        if !advance(world, until, observer, World::run_until) {
            return;
        }
    }
}

/// Simulates up to `until`, in ps since the start of the workloads, as the observer permits.
/// Returns false if the observer ends the run.
fn advance(
    world: &mut World,
    until: u64,
    observer: &mut dyn Observer,
    mut run_until: impl FnMut(&mut World, u64),
) -> bool {
    loop {
        let Some(limit) = observer.limit_ps(world) else { return false };
        let until_ps = world.start_ps.saturating_add(limit.min(until));
        let is_done = match limit {
            u64::MAX => {
                run_until(world, until_ps);
                true
            }
            _ => run_some(world, until_ps, MAX_STEP_EVENTS),
        };
        if is_done && world.run_ps() >= until {
            return true;
        }
    }
}

/// Returns the frames of all planes that have crossed a line.
fn hops(world: &World) -> u64 {
    let net = &world.net;
    net.fc.fate.frame_hops + net.ethernet.fate.packet_hops + net.infiniband.fate.packet_hops
}

fn report(world: &mut World, observer: &mut dyn Observer, logging_in: bool) -> bool {
    // Captures of an operator read the records more often.
    let is_captured = operator::state(world).is_some_and(|operator| operator.is_captured);
    let observed = if is_captured { Vec::new() } else { world.net.fc.recorder.take_observed() };
    let net = &world.net;
    let is_idle = observed.is_empty() && net.ethernet.observed().is_empty() && net.infiniband.observed().is_empty();
    if !is_captured && !is_idle {
        observer.observed(world, &observed);
        world.net.ethernet.forget_observed();
        world.net.infiniband.forget_observed();
        world.iscsi.iter_mut().for_each(|iscsi| iscsi.forget());
        world.fcip.iter_mut().for_each(|fcip| fcip.forget());
        world.net.fc.fcoe.forget();
    }
    let progress = Progress {
        run_ps: if logging_in { 0 } else { world.run_ps() },
        duration_ps: world.lab.run.duration.0,
        frame_hops: hops(world),
        logging_in,
    };
    observer.progress(&progress) == Control::Stop
}
