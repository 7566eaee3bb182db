//! One trial of a mixed lab: faults with checks, healing, rest, and requests after it.

use super::draw::{AFTER_FOR_MS, AFTER_MS, Drawn};
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_sim::host::PathState;
use sanloom_sim::results;
use sanloom_sim::world::{RequestTotals, World};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Events of a whole trial, of which more count as an endless loop.
const MAX_EVENTS: u64 = 30_000_000;

/// Measurements of a trial.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Outcome {
    /// Hash of the results and of all counters.
    pub digest: u64,
    pub books: RequestTotals,
    /// Frames of Fibre Channel, frames of Ethernet and packets of InfiniBand that were lost.
    pub lost: [u64; 3],
    /// Time from the end of all faults until everything was at rest.
    pub recovery: Picos,
}

/// A path: host, number of the storage system at the host, and number of the path.
type PathId = (usize, usize, usize);

struct Trial {
    world: World,
    /// Paths that were active before the faults.
    paths: Vec<PathId>,
    before: Counts,
}

/// Counters that must never decrease: requests, and sent, delivered and lost frames of each plane.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Counts([u64; 12]);

/// Runs a lab.
///
/// # Errors
///
/// A description of the first violation.
pub(super) fn run(lab: &Arc<Lab>, drawn: &Drawn) -> Result<Outcome, String> {
    let mut trial = Trial { world: World::new(lab.clone()), paths: Vec::new(), before: Counts::default() };
    trial.world.log_in();
    trial.check()?;
    trial.paths = active_paths(&trial.world);
    trial.world.start();
    trial.go_on(Picos::from_ms(drawn.stop_ms), Picos::from_ms(drawn.stop_ms / 20))?;
    trial.world.heal();
    trial.check()?;
    let recovery = trial.rest()?;
    let rested = trial.world.hosts.totals;
    if drawn.is_patient && rested.failed > 0 {
        return Err(format!("hosts that wait for their paths have failed requests: {rested:?}"));
    }
    trial.explain_failures()?;
    trial.go_on(Picos::from_ms(AFTER_MS + AFTER_FOR_MS), Picos::from_secs(10))?;
    trial.world.heal();
    trial.rest()?;
    let books = trial.world.hosts.totals;
    let after = books.completed - rested.completed;
    if books.failed > rested.failed || after == 0 {
        return Err(format!("requests after all faults: {rested:?}, then {books:?}"));
    }
    trial.try_paths()?;
    Ok(trial.outcome(recovery))
}

/// Returns the paths that are active.
fn active_paths(world: &World) -> Vec<PathId> {
    let mut paths = Vec::new();
    for (host, node) in world.hosts.nodes.iter().enumerate() {
        for (system, entry) in node.paths.systems().iter().enumerate() {
            for path in 0..entry.paths().len() {
                if entry.state(path as u16) == PathState::Active {
                    paths.push((host, system, path));
                }
            }
        }
    }
    paths
}

impl Trial {
    /// Runs until a time after the start, with a check after each step.
    fn go_on(&mut self, until: Picos, step: Picos) -> Result<(), String> {
        while self.world.run_ps() < until.0 {
            let next = (self.world.run_ps() + step.0).min(until.0);
            self.world.run_until(self.world.start_ps + next);
            self.check()?;
        }
        Ok(())
    }

    /// Runs until everything is at rest, and returns the time that it took.
    fn rest(&mut self) -> Result<Picos, String> {
        let begin_ps = self.world.net.now();
        let mut step_ps = Picos::from_ms(1).0;
        while let Some(what) = self.unrest() {
            let took = Picos(self.world.net.now() - begin_ps);
            if took >= Picos::from_ms(AFTER_MS - 5_000) {
                return Err(format!("no rest in {took}: {what}"));
            }
            self.world.run_until(self.world.net.now() + step_ps);
            self.check()?;
            step_ps = (step_ps + step_ps / 4).min(Picos::from_ms(500).0);
        }
        Ok(Picos(self.world.net.now() - begin_ps))
    }

    /// Returns a description of the first sign that the world is not at rest.
    fn unrest(&self) -> Option<String> {
        let world = &self.world;
        let books = world.hosts.totals;
        if let Some(host) = world.hosts.nodes.iter().position(|node| node.is_busy()) {
            return Some(format!("host `{}` is busy: {books:?}", world.lab.hosts[host].name));
        }
        if books.issued != books.completed + books.failed {
            return Some(format!("requests have not ended: {books:?}"));
        }
        let systems = &world.storage.systems;
        if let Some(storage) = systems.iter().position(|storage| storage.controller.depth.level() > 0) {
            return Some(format!("storage `{}` is at work", world.lab.storage[storage].name));
        }
        let state = |&(host, system, path): &PathId| world.hosts.nodes[host].paths.systems()[system].state(path as u16);
        if let Some(path) = self.paths.iter().find(|path| state(path) != PathState::Active) {
            return Some(format!("path {} is {:?}", self.name(path), state(path)));
        }
        for nport in 0..world.nports.nodes.len() as u16 {
            let open = world.hosts.initiator(nport).map_or(0, |initiator| initiator.in_flight());
            let served = world.storage.target(nport).map_or(0, |target| target.exchanges_in_use());
            if open + served > 0 {
                return Some(format!("N_Port {nport} has {open} and {served} exchanges"));
            }
        }
        None
    }

    fn name(&self, &(host, system, path): &PathId) -> String {
        let lab = &self.world.lab;
        let storage = self.world.hosts.nodes[host].paths.systems()[system].storage;
        format!("{path} of `{}` to `{}`", lab.hosts[host].name, lab.storage[usize::from(storage)].name)
    }

    /// Checks that requests are conserved, that each plane accounts for each frame, and that each
    /// lost frame has a reason.
    fn check(&mut self) -> Result<(), String> {
        let world = &self.world;
        world.check()?;
        let (books, open) = (world.hosts.totals, world.hosts.requests_in_flight());
        if books.issued != books.completed + books.failed + open {
            return Err(format!("requests: {books:?}, {open} in flight"));
        }
        let net = &world.net;
        let (fibre, ethernet, infiniband) = (net.fc.fate, net.ethernet.fate, net.infiniband.fate);
        let reasons = [
            (fibre.lost_frames(), net.fc.recorder.losses().values().map(|lost| lost.frames).sum::<u64>(), "fibre"),
            (ethernet.lost, net.ethernet.losses().map(|(_, _, frames)| frames).sum(), "ethernet"),
            (infiniband.lost, net.infiniband.losses().map(|(_, _, packets)| packets).sum(), "infiniband"),
        ];
        if let Some((lost, with_reason, plane)) = reasons.iter().find(|(lost, with_reason, _)| lost != with_reason) {
            return Err(format!("{plane}: {lost} lost, {with_reason} with a reason"));
        }
        let now = Counts([
            books.issued,
            books.completed,
            books.failed,
            fibre.sent,
            fibre.delivered,
            fibre.lost_frames(),
            ethernet.sent,
            ethernet.delivered,
            ethernet.lost,
            infiniband.sent,
            infiniband.delivered,
            infiniband.lost,
        ]);
        if now.0.iter().zip(&self.before.0).any(|(now, before)| now < before) {
            return Err(format!("a counter decreases: {:?}, then {now:?}", self.before));
        }
        self.before = now;
        match net.events() {
            events if events > MAX_EVENTS => Err(format!("{events} events: an endless loop")),
            _ => Ok(()),
        }
    }

    /// Checks that hosts report each failed request: as refused by a full queue or in the events.
    fn explain_failures(&self) -> Result<(), String> {
        let world = &self.world;
        for (number, node) in world.hosts.nodes.iter().enumerate() {
            let refused = node.queue.counters().refused;
            let failed = node.measured.failed;
            let is_noted = world.notes.list().iter().any(|note| {
                matches!(note.kind, sanloom_sim::world::NoteKind::Failed { host } if usize::from(host) == number)
            });
            if failed > refused && !is_noted && world.notes.omitted() == 0 {
                return Err(format!("{failed} requests of host {number} failed without an event"));
            }
        }
        Ok(())
    }

    /// Reads and writes on each path.
    fn try_paths(&mut self) -> Result<(), String> {
        for path in self.paths.clone() {
            for write in [false, true] {
                let before = self.tried(path);
                self.world.try_path(path.0 as u16, path.1 as u16, path.2 as u16, write, 1);
                let end_ps = self.world.net.now() + Picos::from_secs(10).0;
                while self.tried(path) == before && self.world.net.now() < end_ps {
                    self.world.run_until(self.world.net.now() + Picos::from_us(200).0);
                }
                let after = self.tried(path);
                if after != [before[0] + 1, before[1]] {
                    let name = self.name(&path);
                    return Err(format!("path {name}, write {write}: {before:?} have ended, then {after:?}"));
                }
            }
        }
        self.check()
    }

    /// Returns the requests of [`World::try_path`] that completed, and those that failed.
    fn tried(&self, (host, system, path): PathId) -> [u32; 2] {
        self.world.hosts.nodes[host].paths.systems()[system].paths()[path].tried
    }

    fn outcome(&self, recovery: Picos) -> Outcome {
        let (world, net) = (&self.world, &self.world.net);
        let mut hasher = DefaultHasher::new();
        let mut results = results::of(world, false);
        results.engine = Default::default();
        serde_json::to_string(&results).unwrap_or_default().hash(&mut hasher);
        format!("{:?} {:?}", self.before, world.notes.list()).hash(&mut hasher);
        (net.now(), net.events()).hash(&mut hasher);
        let lost = [net.fc.fate.lost_frames(), net.ethernet.fate.lost, net.infiniband.fate.lost];
        Outcome { digest: hasher.finish(), books: world.hosts.totals, lost, recovery }
    }
}
