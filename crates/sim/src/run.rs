//! One run from login to results: [`simulate`].

use crate::net::Observed;
use crate::results;
use crate::world::World;
use sanloom_api::results::Results;
use sanloom_core::config::Lab;
use std::sync::Arc;

/// What the caller of a run wants to see while it goes on.
pub trait Observer {
    /// Called at the beginning, at least two hundred times on the way (every 10 ms of simulated time in longer runs, so that
    /// they can be stopped soon), and at the end. `Stop` ends the run early; its results
    /// then cover what was simulated.
    fn progress(&mut self, progress: &Progress) -> Control {
        let _ = progress;
        Control::Continue
    }

    /// What passed on the watched links since the last call, in the order in which it was sent; see
    /// [`crate::capture`] and [`crate::trace`] for what to make of it.
    fn observed(&mut self, world: &World, observed: &[Observed]) {
        let _ = (world, observed);
    }
}

/// Sees nothing.
pub struct Blind;

impl Observer for Blind {}

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Simulated time since the start of the workloads, in ps; 0 during login.
    pub run_ps: u64,
    /// Where it will end, in ps.
    pub duration_ps: u64,
    /// Frame-hops so far.
    pub frame_hops: u64,
    /// The ports are still logging in.
    pub logging_in: bool,
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Go on.
    Continue,
    /// End the run here.
    Stop,
}

/// How a run is watched.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Links whose frames and R_RDYs go to [`Observer::observed`], by index.
    pub watch: Vec<u16>,
}

/// The world of a lab, which must have passed `Lab::validate`, at a time after the workloads began; without a time when
/// every port has logged in and no workload has begun. An observer may stop it before.
pub fn world_at(lab: &Arc<Lab>, at_ps: Option<u64>, observer: &mut dyn Observer) -> World {
    let mut world = World::new(lab.clone());
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

/// The longest simulated time between two calls of [`Observer::progress`]: 10 ms.
const MAX_STEP_PS: u64 = 10_000_000_000;

/// A finished run.
pub struct Finished {
    /// What it measured. `engine` is left at zero but for its counts: only the caller has a clock.
    pub results: Results,
    /// The world at the end, for checks and views.
    pub world: World,
}

/// Simulates a lab, which must have passed `Lab::validate`, from the first login to the end.
///
/// # Panics
/// When frames or credits are not conserved: then no number of the run can be trusted.
pub fn simulate(lab: &Arc<Lab>, options: &Options, observer: &mut dyn Observer) -> Finished {
    let mut world = World::new(lab.clone());
    for &link in &options.watch {
        world.watch(link);
    }
    let duration_ps = lab.run.duration.0;
    let mut stopped = report(&mut world, observer, true);
    if !stopped {
        world.log_in();
    }
    world.start();
    let start_hops = world.net.fate.frame_hops;
    let start_events = world.net.events();
    let step = (duration_ps / 200).clamp(1, MAX_STEP_PS);
    let warmup_ps = lab.run.warmup.0.min(duration_ps);
    let mut measuring = warmup_ps == 0;
    while !stopped && world.run_ps() < duration_ps {
        stopped = report(&mut world, observer, false);
        if stopped {
            break;
        }
        let mut until = world.run_ps().saturating_add(step).min(duration_ps);
        if !measuring {
            until = until.min(warmup_ps);
        }
        world.run_until(world.start_ps + until);
        if !measuring && until == warmup_ps {
            world.begin_measurement();
            measuring = true;
        }
        if lab.run.stop_issuing.is_some_and(|stop| until > stop.0) && measuring && !world.busy() {
            break;
        }
    }
    report(&mut world, observer, false);
    if let Err(broken) = world.check() {
        panic!("the books of the simulation do not balance: {broken}");
    }
    let mut results = results::of(&world, stopped);
    results.engine.frame_hops = world.net.fate.frame_hops - start_hops;
    results.engine.events = world.net.events() - start_events;
    Finished { results, world }
}

fn report(world: &mut World, observer: &mut dyn Observer, logging_in: bool) -> bool {
    let observed = world.net.take_observed();
    if !observed.is_empty() {
        observer.observed(world, &observed);
    }
    let progress = Progress {
        run_ps: if logging_in { 0 } else { world.run_ps() },
        duration_ps: world.lab.run.duration.0,
        frame_hops: world.net.fate.frame_hops,
        logging_in,
    };
    observer.progress(&progress) == Control::Stop
}
