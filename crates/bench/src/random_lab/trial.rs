//! One trial: faults, checks, healing, and the check of the final state.

use super::{Trial, first_unrest};
use sanloom_fc::config::Picos;
use sanloom_sim::net::{Fate, LaneCount};
use sanloom_sim::results;
use sanloom_sim::world::{RequestTotals, World};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Number of checks while the workloads run.
const CHECKS: u64 = 24;
/// Blocks that each path must transfer at the end, in each direction.
const LAST_BLOCKS: u16 = 1;
/// Requests on a path, of which at least one must complete.
const TRIES: usize = 3;

/// Measurements of a trial.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Hash of all counters and of the results.
    pub digest: u64,
    /// Hash of each frame and R_RDY with its times, if the links were watched.
    pub passed: u64,
    /// Request totals.
    pub books: RequestTotals,
    /// Frame counters.
    pub fate: Fate,
    pub aborted: u64,
    /// Requests rejected because the waiting queue was full.
    pub refused: u64,
    /// Longest latency of a completed request, in ps.
    pub longest_ps: u64,
    /// Time from healing until everything was at rest, in ps.
    pub recovery_ps: u64,
}

/// A violated requirement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Time of detection, in ps since the start of the workloads.
    pub at_ps: u64,
    /// Phase of the trial.
    pub phase: &'static str,
    /// Description of the violation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after the start, {}: {}", Picos(self.at_ps), self.phase, self.what)
    }
}

impl Trial {
    /// Runs the lab. Invariants are checked while faults occur, and then everything heals. After
    /// that, all requests must end and all frames and credits must return. All paths must become
    /// usable again and carry a read and a write. With `watched`, every link is observed, which
    /// must not change anything else.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn run(&self, watched: bool) -> Result<Outcome, Violation> {
        let mut run = Run::new(self, watched);
        run.log_in()?;
        let stop = self.lab.run.stop_issuing.unwrap_or(self.lab.run.duration);
        let step_ps = (self.lab.run.duration.0 / CHECKS).max(1);
        run.world.start();
        run.go_on("before the measurement", self.lab.run.warmup.0, step_ps)?;
        run.world.begin_measurement();
        run.go_on("while faults happen", self.heal_at.0, step_ps)?;
        run.world.heal();
        run.check("at the end of all faults")?;
        run.go_on("after all faults", stop.0.max(self.heal_at.0), step_ps)?;
        let healed_ps = run.world.net.now();
        run.rest("when all has healed")?;
        let recovery_ps = run.world.net.now() - healed_ps;
        for write in [false, true] {
            run.try_paths(write)?;
        }
        Ok(run.outcome(recovery_ps))
    }

    /// Returns the longest time from the end of all faults until everything must be at rest. It
    /// covers every attempt of a command, every login retried from its longest back-off (32 times
    /// E_D_TOV), the audit after a lost notification, and the queues ahead of them.
    fn time_limit_ps(&self) -> u64 {
        let timers = &self.lab.timers;
        let one_try = |host: &sanloom_fc::config::Host| {
            // A command is sent on each path, and each attempt may end with all resets.
            let ports = self.lab.storage.iter().map(|storage| storage.ports.len()).max().unwrap_or(0);
            let tries = (u64::from(host.retries) + 1) * (host.hbas.len() * ports) as u64;
            let (recovery, no_path) = (&host.recovery, host.multipath.no_path_time().map_or(0, |time| time.0));
            let resets = recovery.abort_timeout.0 + 2 * recovery.reset_timeout.0 + sanloom_sim::host::HBA_RESET_PS;
            tries * (host.command_timeout.0 + 3 * timers.r_a_tov.0 + resets) + no_path
        };
        let commands = self.lab.hosts.iter().map(one_try).max().unwrap_or(0);
        20 * Picos::SECOND.0 + 100 * timers.e_d_tov.0 + 40 * timers.r_a_tov.0 + 8 * commands
    }
}

/// A world with the state of its checks.
struct Run<'a> {
    trial: &'a Trial,
    world: World,
    before: Counts,
    observed: DefaultHasher,
}

/// Counters that must never decrease.
#[derive(Default)]
struct Counts {
    books: RequestTotals,
    fate: Fate,
    lanes: Vec<LaneCount>,
}

impl<'a> Run<'a> {
    fn new(trial: &'a Trial, watched: bool) -> Run<'a> {
        let mut world = World::new(Arc::new(trial.lab.clone()));
        if watched {
            (0..trial.lab.links.len() as u16).for_each(|link| world.watch(link));
        }
        Run { trial, world, before: Counts::default(), observed: DefaultHasher::new() }
    }

    fn violation(&self, phase: &'static str, what: String) -> Violation {
        Violation { at_ps: self.world.net.now() - self.world.start_ps, phase, what }
    }

    fn log_in(&mut self) -> Result<(), Violation> {
        self.world.log_in();
        self.check("after the first login")?;
        match first_unrest(&self.world) {
            Some(what) => Err(self.violation("after the first login", what)),
            None => Ok(()),
        }
    }

    /// Runs until `until_ps` after the start, with a check after each step.
    fn go_on(&mut self, phase: &'static str, until_ps: u64, step_ps: u64) -> Result<(), Violation> {
        while self.world.run_ps() < until_ps {
            let next = (self.world.run_ps() + step_ps).min(until_ps);
            self.world.run_until(self.world.start_ps + next);
            self.check(phase)?;
        }
        Ok(())
    }

    /// Runs until everything is at rest. Control frames are sent from time to time, so a moment of
    /// rest is sufficient. The time limit restarts whenever a request ends.
    fn rest(&mut self, phase: &'static str) -> Result<(), Violation> {
        let time_limit_ps = self.trial.time_limit_ps();
        let mut step_ps = Picos::from_us(500).0;
        let (mut ended, mut end) = (0, 0);
        loop {
            let Some(what) = first_unrest(&self.world) else { return Ok(()) };
            let books = self.world.hosts.totals;
            if books.completed + books.failed > ended || end == 0 {
                (ended, end) = (books.completed + books.failed, self.world.net.now() + time_limit_ps);
            } else if self.world.net.now() >= end {
                return Err(self.violation(phase, format!("no rest: {what}")));
            }
            self.world.run_until(self.world.net.now() + step_ps);
            self.check(phase)?;
            step_ps = (step_ps + step_ps / 8).min(Picos::from_ms(200).0);
        }
    }

    /// Sends a request on each path that must be usable.
    fn try_paths(&mut self, write: bool) -> Result<(), Violation> {
        let phase = if write { "with a write on each path" } else { "with a read on each path" };
        for (host, storage, path, usable) in super::expected_paths(&self.world) {
            if usable && let Some(system) = self.world.hosts.nodes[usize::from(host)].paths.system_of(storage, 0) {
                self.try_path(phase, (host, system, path), write)?;
            }
        }
        self.rest(phase)
    }

    /// Sends requests on a path until one completes. If the notification of a lost login was lost
    /// too, the first request detects the loss, and the next one must complete.
    fn try_path(&mut self, phase: &'static str, path: (u16, u16, u16), write: bool) -> Result<(), Violation> {
        for _ in 0..TRIES {
            let before = self.tried(path);
            self.world.try_path(path.0, path.1, path.2, write, LAST_BLOCKS);
            let end = self.world.net.now() + self.trial.time_limit_ps();
            while self.tried(path) == before && self.world.net.now() < end {
                self.world.run_until(self.world.net.now() + Picos::from_us(200).0);
            }
            match self.tried(path) {
                [good, bad] if [good, bad] == [before[0] + 1, before[1]] => return Ok(()),
                [good, bad] if [good, bad] == [before[0], before[1] + 1] => self.rest(phase)?,
                after => {
                    return Err(self.violation(phase, format!("{path:?}: {before:?} have ended, then {after:?}")));
                }
            }
        }
        Err(self.violation(phase, format!("host, storage and path {path:?}: {TRIES} requests failed")))
    }

    /// Returns the requests of [`World::try_path`] that completed, and those that failed.
    fn tried(&self, (host, system, path): (u16, u16, u16)) -> [u32; 2] {
        self.world.hosts.nodes[usize::from(host)].paths.systems()[usize::from(system)].paths()[usize::from(path)].tried
    }

    /// Checks the invariants.
    fn check(&mut self, phase: &'static str) -> Result<(), Violation> {
        for observed in self.world.net.fc.recorder.take_observed() {
            format!("{observed:?}").hash(&mut self.observed);
        }
        let world = &self.world;
        world.check().map_err(|what| self.violation(phase, what))?;
        let (books, fate) = (world.hosts.totals, world.net.fc.fate);
        let open = world.hosts.requests_in_flight();
        if books.issued != books.completed + books.failed + open {
            return Err(self.violation(phase, format!("requests: {books:?}, {open} in flight")));
        }
        let lanes: Vec<LaneCount> = world.net.fc.lanes().iter().map(|lane| lane.count()).collect();
        for (number, lane) in world.net.fc.lanes().iter().enumerate() {
            let held = world.net.fc.held_by_receiver(number as u32);
            if lane.credits > lane.bb_credit || held > lane.bb_credit {
                return Err(self.violation(phase, format!("lane {number} holds {held} frames: {lane:?}")));
            }
        }
        let now = Counts { books, fate, lanes };
        if let Some(what) = now.shrunk(&self.before) {
            return Err(self.violation(phase, what));
        }
        self.before = now;
        Ok(())
    }

    fn outcome(&self, recovery_ps: u64) -> Outcome {
        let world = &self.world;
        let hosts = world.hosts.nodes.iter().map(|host| &host.measured);
        let longest = hosts.clone().filter_map(|measured| measured.latency.exact().max()).max();
        let refused = world.hosts.nodes.iter().map(|host| host.queue.counters().refused).sum();
        Outcome {
            digest: self.digest(),
            passed: self.observed.finish(),
            books: world.hosts.totals,
            fate: world.net.fc.fate,
            aborted: hosts.map(|measured| measured.aborted).sum(),
            refused,
            longest_ps: longest.unwrap_or(0),
            recovery_ps,
        }
    }

    /// Returns a hash of all counters.
    fn digest(&self) -> u64 {
        let world = &self.world;
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&results::of(world, false)).unwrap_or_default().hash(&mut hasher);
        world.net.now().hash(&mut hasher);
        format!("{:?} {:?} {:?}", world.hosts.totals, world.net.fc.fate, world.net.fc.recorder.losses())
            .hash(&mut hasher);
        format!("{:?} {:?}", world.notes.list(), world.net.fc.recorder.incidents()).hash(&mut hasher);
        for lane in world.net.fc.lanes() {
            format!("{:?}", lane.count()).hash(&mut hasher);
        }
        for host in &world.hosts.nodes {
            let measured = &host.measured;
            let (latency, commands) = (measured.latency.exact(), measured.command_latency.exact());
            format!("{latency:?} {commands:?} {:?} {:?}", measured.ios, host.queue.counters()).hash(&mut hasher);
            measured.latency.non_empty().for_each(|bucket| format!("{bucket:?}").hash(&mut hasher));
            let systems = host.paths.systems().iter();
            systems.for_each(|system| format!("{:?}", system.paths()).hash(&mut hasher));
        }
        for storage in &world.storage.systems {
            format!("{:?} {:?}", storage.ios, storage.controller.latency.exact()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Counts {
    /// Returns the name of a counter that has decreased.
    fn shrunk(&self, before: &Counts) -> Option<String> {
        let books = |b: &RequestTotals| [b.issued, b.completed, b.failed];
        let fate = |f: &Fate| [f.sent, f.delivered, f.lost_frames(), f.frame_hops];
        let lane = |l: &LaneCount| {
            let credits = [l.r_rdys, l.credits_lost, l.credits_recovered, l.credit_wait_ps, l.resets];
            [[l.frames, l.bytes, l.data_bytes, 0, 0], credits].concat()
        };
        let less = |now: &[u64], before: &[u64]| now.iter().zip(before).any(|(now, before)| now < before);
        if less(&books(&self.books), &books(&before.books)) {
            return Some(format!("the books lost something: {:?}, then {:?}", before.books, self.books));
        }
        if less(&fate(&self.fate), &fate(&before.fate)) {
            return Some(format!("frames were forgotten: {:?}, then {:?}", before.fate, self.fate));
        }
        let lanes = self.lanes.iter().zip(&before.lanes).position(|(now, before)| less(&lane(now), &lane(before)));
        lanes.map(|number| format!("lane {number} counts backwards: {:?}", self.lanes[number]))
    }
}
