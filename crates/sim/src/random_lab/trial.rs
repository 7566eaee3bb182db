//! One trial: break, check, heal, demand.

use super::{Trial, first_unrest};
use crate::net::{Fate, LaneCount};
use crate::results;
use crate::world::{Books, World};
use sanloom_core::config::Picos;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Checks while the workloads run, by the length of the run.
const CHECKS: u64 = 24;
/// Blocks that each path must carry in the end, each way.
const LAST_BLOCKS: u16 = 1;
/// Requests on a path of which one must end well.
const TRIES: usize = 3;

/// What a trial has seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Of everything that was counted, and of the results.
    pub digest: u64,
    /// Of each frame and R_RDY with its times, if the links were watched.
    pub passed: u64,
    /// Requests.
    pub books: Books,
    /// Frames.
    pub fate: Fate,
    /// Commands that were aborted.
    pub aborted: u64,
    /// Requests that found the waiting queue full.
    pub refused: u64,
    /// Longest time from a request to its good end, in ps.
    pub longest_ps: u64,
    /// From healing until everything was at rest, in ps.
    pub recovery_ps: u64,
}

/// Something that must hold and did not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// When, counted from the start of the workloads, in ps.
    pub at_ps: u64,
    /// What was going on.
    pub phase: &'static str,
    /// What did not hold.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after the start, {}: {}", Picos(self.at_ps), self.phase, self.what)
    }
}

impl Trial {
    /// Runs the lab: faults happen while safety is checked, then everything heals, and then all requests must end, all
    /// frames and credits come back, all paths be usable again and carry a read and a write. With `watched`, every link is
    /// observed, which must change nothing.
    ///
    /// # Errors
    ///
    /// The first thing that did not hold.
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

    /// Longest time from the end of all trouble until everything must have ended: every try of a command, every login
    /// retried from its longest back-off (32 times E_D_TOV), the audit of a lost notification, and the queues in front.
    fn patience_ps(&self) -> u64 {
        let timers = &self.lab.timers;
        let one_try = |host: &sanloom_core::config::Host| {
            let tries = u64::from(host.retries) + 1;
            tries * (host.command_timeout.0 + 3 * timers.r_a_tov.0) + host.multipath.no_path_timeout.0
        };
        let commands = self.lab.hosts.iter().map(one_try).max().unwrap_or(0);
        20 * Picos::SECOND.0 + 100 * timers.e_d_tov.0 + 40 * timers.r_a_tov.0 + 8 * commands
    }
}

/// A world with its checks.
struct Run<'a> {
    trial: &'a Trial,
    world: World,
    before: Counts,
    observed: DefaultHasher,
}

/// Counts that only grow.
#[derive(Default)]
struct Counts {
    books: Books,
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

    /// Runs until `until_ps` after the start and checks on the way.
    fn go_on(&mut self, phase: &'static str, until_ps: u64, step_ps: u64) -> Result<(), Violation> {
        while self.world.run_ps() < until_ps {
            let next = (self.world.run_ps() + step_ps).min(until_ps);
            self.world.run_until(self.world.start_ps + next);
            self.check(phase)?;
        }
        Ok(())
    }

    /// Runs until everything is at rest; frames of control come and go, so a moment of rest is enough. As long as requests
    /// end, it may take longer.
    fn rest(&mut self, phase: &'static str) -> Result<(), Violation> {
        let patience_ps = self.trial.patience_ps();
        let mut step_ps = Picos::from_us(500).0;
        let (mut ended, mut end) = (0, 0);
        loop {
            let Some(what) = first_unrest(&self.world) else { return Ok(()) };
            let books = self.world.books;
            if books.completed + books.failed > ended || end == 0 {
                (ended, end) = (books.completed + books.failed, self.world.net.now() + patience_ps);
            } else if self.world.net.now() >= end {
                return Err(self.violation(phase, format!("no rest: {what}")));
            }
            self.world.run_until(self.world.net.now() + step_ps);
            self.check(phase)?;
            step_ps = (step_ps + step_ps / 8).min(Picos::from_ms(200).0);
        }
    }

    /// Each path that must work carries a request.
    fn try_paths(&mut self, write: bool) -> Result<(), Violation> {
        let phase = if write { "with a write on each path" } else { "with a read on each path" };
        for (host, storage, path, usable) in super::expected_paths(&self.world) {
            if usable && let Some(system) = self.world.hosts[usize::from(host)].paths.system_of(storage) {
                self.try_path(phase, (host, system, path), write)?;
            }
        }
        self.rest(phase)
    }

    /// A path carries a request. When the notification of a lost login was lost itself, the first request is what finds
    /// that out, and the next one must end well.
    fn try_path(&mut self, phase: &'static str, path: (u16, u16, u16), write: bool) -> Result<(), Violation> {
        for _ in 0..TRIES {
            let before = self.tried(path);
            self.world.try_path(path.0, path.1, path.2, write, LAST_BLOCKS);
            let end = self.world.net.now() + self.trial.patience_ps();
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

    /// Requests of [`World::try_path`] that ended well and that did not.
    fn tried(&self, (host, system, path): (u16, u16, u16)) -> [u32; 2] {
        self.world.hosts[usize::from(host)].paths.systems()[usize::from(system)].paths()[usize::from(path)].tried
    }

    /// What must hold at any time.
    fn check(&mut self, phase: &'static str) -> Result<(), Violation> {
        for observed in self.world.net.take_observed() {
            format!("{observed:?}").hash(&mut self.observed);
        }
        let world = &self.world;
        world.check().map_err(|what| self.violation(phase, what))?;
        let (books, fate) = (world.books, world.net.fate);
        let open = world.requests_under_way();
        if books.issued != books.completed + books.failed + open {
            return Err(self.violation(phase, format!("requests: {books:?}, {open} under way")));
        }
        let lanes: Vec<LaneCount> = world.net.lanes().iter().map(|lane| lane.count()).collect();
        for (number, lane) in world.net.lanes().iter().enumerate() {
            let held = world.net.held_by_receiver(number as u32);
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
        let hosts = world.hosts.iter().map(|host| &host.measured);
        let longest = hosts.clone().filter_map(|measured| measured.latency.exact().max()).max();
        let refused = world.hosts.iter().map(|host| host.queue.counters().refused).sum();
        Outcome {
            digest: self.digest(),
            passed: self.observed.finish(),
            books: world.books,
            fate: world.net.fate,
            aborted: hosts.map(|measured| measured.aborted).sum(),
            refused,
            longest_ps: longest.unwrap_or(0),
            recovery_ps,
        }
    }

    /// Everything that was counted, in one number.
    fn digest(&self) -> u64 {
        let world = &self.world;
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&results::of(world, false)).unwrap_or_default().hash(&mut hasher);
        world.net.now().hash(&mut hasher);
        format!("{:?} {:?} {:?}", world.books, world.net.fate, world.net.losses()).hash(&mut hasher);
        format!("{:?} {:?}", world.ledger.notes, world.net.incidents()).hash(&mut hasher);
        for lane in world.net.lanes() {
            format!("{:?}", lane.count()).hash(&mut hasher);
        }
        for host in &world.hosts {
            let measured = &host.measured;
            let (latency, commands) = (measured.latency.exact(), measured.command_latency.exact());
            format!("{latency:?} {commands:?} {:?} {:?}", measured.ios, host.queue.counters()).hash(&mut hasher);
            measured.latency.non_empty().for_each(|bucket| format!("{bucket:?}").hash(&mut hasher));
            let systems = host.paths.systems().iter();
            systems.for_each(|system| format!("{:?}", system.paths()).hash(&mut hasher));
        }
        for storage in &world.storage {
            format!("{:?} {:?}", storage.ios, storage.controller.latency.exact()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Counts {
    /// What has become less than it was.
    fn shrunk(&self, before: &Counts) -> Option<String> {
        let books = |b: &Books| [b.issued, b.completed, b.failed];
        let fate = |f: &Fate| [f.sent, f.delivered, f.lost_frames(), f.frame_hops];
        let lane =
            |l: &LaneCount| [l.frames, l.bytes, l.data_bytes, l.r_rdys, l.credits_lost, l.credit_wait_ps, l.resets];
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
