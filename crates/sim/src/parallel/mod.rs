//! One run on several cores.
//!
//! The first events of a run are recorded. From the number of events of each node, the nodes are
//! assigned to parts with equal work. Each part is a [`World`] with the state of its nodes, and
//! runs in a thread of its own. Frames and R_RDYs between parts need time on their line, so a
//! part may run ahead of the others by this time (`sync.rs`).
//!
//! Everything that needs the whole world happens between two such stretches: steps of the schedule,
//! samples, link resets and the hold time, and everything that the caller of [`Engine::run_until`]
//! does. The parts are then united in one world. Results, captures and traces do not depend on the
//! number of threads.

mod offer;
mod plan;
mod sync;

pub use offer::Offer;
pub use sync::ThreadClock;

use crate::net::{NEVER, parts};
use crate::world::{World, WorldShare};
use offer::Profile;
use plan::Plan;
use std::panic::resume_unwind;
use sync::{Part, Sync};

/// Events that are recorded before the world is divided.
const PROFILED_EVENTS: usize = 200_000;

/// Fewest events of the whole lab within the lookahead that are worth a division. Each of them
/// needs about 0.5 µs, and an exchange between two cores about 0.2 µs.
const FEWEST_EVENTS: f64 = 16.0;

/// Greatest share of the time of a run that divisions may take before the run is united less often.
const DIVIDING_SHARE: f64 = 0.02;

/// Shortest stretch that is worth a division, in lookaheads. Steps of the hold time or of faults
/// can follow each other at any distance.
const SHORTEST_STRETCH: u64 = 100;

/// Longest real time between two calls of [`Engine::run_until`] that the engine asks for, in ns.
const LONGEST_STEP_NS: u64 = 1_000_000_000;

/// Greatest processor time of a part, in percent of the mean, before the world is divided anew. The
/// first division rests on the start of a run, in which the load may differ from the later one.
const UNBALANCED_PERCENT: u64 = 115;

/// Processor time of the busiest part before the first new division, in ns. It doubles each time.
const BEFORE_NEW_PLAN_NS: u64 = 200_000_000;

/// Divisions before a new one in tests.
const TESTED_DIVISIONS: u64 = 16;

/// Numbers of parts for which the parallelism is reported.
const REPORTED_PARTS: [usize; 4] = [2, 4, 16, 64];

/// Threads of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads {
    /// Number of threads; 0 and 1 mean the thread of the caller.
    pub count: usize,
    /// Divides every lab that can be divided, soon and however small it is.
    pub always: bool,
    /// Runs the parts in turn in the thread of the caller.
    pub in_turn: bool,
    /// Clock for [`Report::worked_ns`].
    pub clock: Option<ThreadClock>,
}

/// How a run used its threads.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Number of parts, each with a thread; 1 if the lab was not divided.
    pub parts: usize,
    /// Reason why the lab was not divided.
    pub undivided: Option<String>,
    /// Parallelism with various numbers of parts. Empty if too few events were recorded.
    pub offers: Vec<Offer>,
    /// Processor time that each part worked, in ns; empty without a clock.
    pub worked_ns: Vec<u64>,
    /// Processor time in which the world was undivided after the first division, or was divided and
    /// united, in ns.
    pub alone_ns: u64,
    /// Number of divisions.
    pub divisions: u64,
    /// Number of rounds in which each unfinished part advanced once; 0 if each part has a thread.
    pub rounds: u64,
}

/// Runs a world with several threads.
pub struct Engine {
    threads: Threads,
    stage: Stage,
    report: Report,
    /// Time of the first part and of divisions at the last call of [`Engine::step_after`], in ns.
    counted_ns: u64,
    /// Number of plans so far, and use of the threads when the last one was made.
    plans: u32,
    planned: Report,
    /// Worlds without state, for the next division.
    unused: Vec<World>,
}

enum Stage {
    Undivided,
    Recording,
    Divided(Box<Divided>),
}

struct Divided {
    plan: Plan,
    shares: Vec<WorldShare>,
    /// All parts but the first, which is the world itself.
    others: Vec<World>,
}

impl Engine {
    /// Returns an engine for a world whose workloads are about to start.
    pub fn new(world: &mut World, threads: Threads) -> Engine {
        let mut report = Report { parts: 1, ..Report::default() };
        let stage = if threads.count < 2 {
            Stage::Undivided
        } else if let Some(reason) = world.is_indivisible() {
            report.undivided = Some(reason.into());
            Stage::Undivided
        } else {
            parts::begin_profile(&mut world.net);
            report.undivided = Some("the run was too short".into());
            Stage::Recording
        };
        Engine { threads, stage, report, counted_ns: 0, plans: 0, planned: Report::default(), unused: Vec::new() }
    }

    /// Returns how the run used its threads so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the simulated time up to the next call of [`Engine::run_until`] after a time of
    /// `step_ps`: twice as long if divisions take much of the time and a call takes little.
    pub fn step_after(&mut self, step_ps: u64) -> u64 {
        let alone_ns = self.report.alone_ns;
        let all_ns = alone_ns + self.report.worked_ns.first().copied().unwrap_or(0);
        let step_ns = all_ns - std::mem::replace(&mut self.counted_ns, all_ns);
        let is_costly = alone_ns as f64 > all_ns as f64 * DIVIDING_SHARE;
        if is_costly && 2 * step_ns < LONGEST_STEP_NS { step_ps.saturating_mul(2) } else { step_ps }
    }

    /// Processes all events up to `until_ps`, in ps of simulated time since the first login.
    pub fn run_until(&mut self, world: &mut World, until_ps: u64) {
        if self.is_unbalanced()
            && let Stage::Divided(divided) = std::mem::replace(&mut self.stage, Stage::Recording)
        {
            self.unused = divided.others;
            parts::begin_profile(&mut world.net);
        }
        if let Stage::Recording = self.stage {
            let begin = self.threads.now_ns();
            self.record(world, until_ps);
            if self.plans > 1 {
                self.report.alone_ns += self.threads.now_ns() - begin;
            }
        }
        match &mut self.stage {
            Stage::Undivided | Stage::Recording => world.run_until(until_ps),
            Stage::Divided(divided) => divided.run_until(world, until_ps, &self.threads, &mut self.report),
        }
    }

    /// Returns whether the parts of the present division had different amounts of work.
    fn is_unbalanced(&self) -> bool {
        if !matches!(self.stage, Stage::Divided(_)) {
            return false;
        }
        if self.threads.always {
            return self.report.divisions - self.planned.divisions >= TESTED_DIVISIONS;
        }
        let before = self.planned.worked_ns.iter();
        let worked = self.report.worked_ns.iter().zip(before).map(|(now, before)| now - before);
        let (all, longest) = worked.fold((0, 0), |(all, longest), ns| (all + ns, ns.max(longest)));
        let enough_ns = BEFORE_NEW_PLAN_NS.saturating_mul(1 << self.plans.min(32)) / 2;
        longest > enough_ns && longest * self.report.parts as u64 * 100 > all * UNBALANCED_PERCENT
    }

    fn record(&mut self, world: &mut World, until_ps: u64) {
        let wanted = if self.threads.always { PROFILED_EVENTS / 200 } else { PROFILED_EVENTS };
        let mut step_ps = 1_000_000;
        while parts::profiled(&world.net) < wanted {
            if world.net.now() >= until_ps {
                return;
            }
            world.run_until(until_ps.min(world.net.now() + step_ps));
            step_ps *= 2;
        }
        let profile = Profile::take(world);
        self.stage = match self.divide(world, &profile) {
            Ok(divided) => Stage::Divided(Box::new(divided)),
            // A lull after the first division; the load may come back.
            Err(_) if self.plans > 0 => {
                parts::begin_profile(&mut world.net);
                Stage::Recording
            }
            Err(reason) => {
                self.report.undivided = Some(reason);
                Stage::Undivided
            }
        };
    }

    fn divide(&mut self, world: &World, profile: &Profile) -> Result<Divided, String> {
        let lab = world.lab.clone();
        if !self.threads.always {
            let offers = REPORTED_PARTS.iter().filter_map(|&parts| profile.offer(&lab, world, parts));
            self.report.offers = offers.collect();
        }
        let parts = self.threads.count.min(usize::from(u8::MAX));
        let plan = Plan::new(&lab, &world.net, &profile.load(), parts)
            .ok_or("its nodes share state, or their links are too short")?;
        let offer = profile.offer_of(&plan);
        if !self.threads.always && offer.events_in_lookahead < FEWEST_EVENTS {
            return Err(format!(
                "there are only {:.1} events within {} ns, the time that parts can run apart",
                offer.events_in_lookahead,
                offer.lookahead_ps / 1_000
            ));
        }
        self.report.parts = plan.parts;
        self.report.undivided = None;
        self.report.worked_ns.resize(plan.parts.max(self.report.worked_ns.len()), 0);
        (self.plans, self.planned) = (self.plans + 1, self.report.clone());
        let mut others = std::mem::take(&mut self.unused);
        others.resize_with(plan.parts - 1, || World::new(lab.clone()));
        Ok(Divided { shares: plan.shares(&lab, world), plan, others })
    }
}

impl Divided {
    fn run_until(&mut self, world: &mut World, until_ps: u64, threads: &Threads, report: &mut Report) {
        while world.net.now() < until_ps {
            let stop_ps = world.next_common_ps().min(until_ps + 1).max(world.net.now() + 1);
            let lookahead_ps = self.plan.lookahead_ps.iter().flatten().min().copied().unwrap_or(NEVER);
            let shortest_ps = if threads.always { 1 } else { lookahead_ps.saturating_mul(SHORTEST_STRETCH) };
            if stop_ps - world.net.now() > shortest_ps {
                self.run_divided(world, stop_ps, threads, report);
            }
            let begin = threads.now_ns();
            world.run_until(stop_ps.min(until_ps));
            report.alone_ns += threads.now_ns() - begin;
        }
    }

    /// Runs all parts up to `end_ps`, excluded.
    fn run_divided(&mut self, world: &mut World, end_ps: u64, threads: &Threads, report: &mut Report) {
        let begin = threads.now_ns();
        let base = world.hosts.totals;
        let sync = Sync::new(&self.plan, world.net.now(), end_ps);
        world.divide(&mut self.others, &self.shares);
        let worlds = std::iter::once(&mut *world).chain(&mut self.others);
        let mut parts: Vec<Part<'_>> =
            worlds.enumerate().map(|(number, world)| Part::new(&sync, number, world)).collect();
        report.alone_ns += threads.now_ns() - begin;
        if threads.in_turn {
            while !parts.iter().all(|part| part.is_done(&sync)) {
                let unfinished = parts.iter_mut().filter(|part| !part.is_done(&sync));
                unfinished.for_each(|part| _ = part.advance(&sync));
                report.rounds += 1;
            }
        } else {
            let worked = run_parts(&mut parts, &sync, threads.clock);
            report.worked_ns.iter_mut().zip(worked).for_each(|(sum, worked)| *sum += worked);
        }
        let begin = threads.now_ns();
        parts.iter_mut().for_each(|part| part.finish(&sync));
        drop(parts);
        world.unite(&mut self.others, &self.shares, base);
        report.divisions += 1;
        report.alone_ns += threads.now_ns() - begin;
    }
}

impl Threads {
    fn now_ns(&self) -> u64 {
        self.clock.map_or(0, |clock| clock())
    }
}

/// Runs each part in a thread, the first in that of the caller. Returns the processor time that
/// each worked.
fn run_parts(parts: &mut [Part<'_>], sync: &Sync<'_>, clock: Option<ThreadClock>) -> Vec<u64> {
    std::thread::scope(|scope| {
        let (first, others) = parts.split_at_mut(1);
        let running: Vec<_> = others.iter_mut().map(|part| scope.spawn(|| part.run(sync, clock))).collect();
        let mut worked = vec![first[0].run(sync, clock)];
        for thread in running {
            worked.push(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        worked
    })
}
