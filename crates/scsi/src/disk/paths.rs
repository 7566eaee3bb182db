//! Choice among several paths to a target: [`Paths`].
//!
//! Only one path is used at a time, so that commands keep one order. The ranking, best first:
//! active/optimized and preferred, active/optimized, active/non-optimized, transitioning, standby,
//! all others. Among equal paths the next one in the list is used. A path whose group is unknown
//! counts as the best group that the target has reported.
//!
//! ```text
//!   idle -> opening -> logging in -> using -- a better path exists --> opening it meanwhile
//!    ^ all have failed                 ^                                         | open
//!    |                                 +---- logging in <---- draining <---------+
//!    +-- lost: the next best path at once, each once
//! ```
//!
//! A better path is opened before the current one is left. The current one is left only when no
//! command is in flight there, so that no old command can take effect after its repetition. While
//! another path serves, a path that fails or stays up only briefly is retried after a delay that
//! doubles. A path whose login is permanently refused always has such a delay. The duration of a
//! transition is bounded; after that the path counts as unavailable. If no path is active and the
//! device permits setting states, the group of the path in use is set to active.

use super::access::{Access, AccessGroup};
use crate::scsi::AccessState;
use crate::time::{Instant, Span};
use sanloom_wire::lun::LunBytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Event for the paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The requested connection is open.
    Opened,
    /// The connection could not be opened, or the login failed.
    Failed,
    /// The login was refused, and will be refused until the configuration changes.
    Refused,
    /// A session was established on the path.
    LoggedIn,
    /// The session was lost.
    Lost,
    /// No command is in flight on the path being left, and its session has ended.
    Drained,
    /// Access states of a unit, probed through the path in use.
    Probed {
        /// LUN of the unit.
        lun: LunBytes,
        /// Reported access states.
        access: Access,
    },
    /// The unit is no longer in use.
    Forget(LunBytes),
    /// A target has reported that states have changed, or that the path is not active.
    Changed,
    /// The deadline of [`Paths::poll_timeout`] has passed.
    Timeout,
}

/// Action that the driver has to execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Open a connection to this path while the current session continues. Then pass
    /// [`Input::Opened`] or [`Input::Failed`].
    Open(usize),
    /// Close the opened connection, which is no longer needed.
    Abandon,
    /// Start no further commands, end the session when none is in flight, then pass
    /// [`Input::Drained`], or [`Input::Lost`] if that takes too long.
    Drain,
    /// Log in on the opened connection. Then pass [`Input::LoggedIn`], [`Input::Failed`] or
    /// [`Input::Refused`].
    LogIn(usize),
    /// Probe the access states of all units.
    Probe,
    /// Set a group of a unit to active/optimized.
    Set {
        /// LUN of the unit.
        lun: LunBytes,
        /// Number of the group.
        group: u16,
    },
}

/// Rank of a path for a unit: first its state, then whether it is preferred.
type Rank = (u8, bool);

/// State of one path to a target.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// True if the path was tried after the last session that completed a command.
    tried: bool,
    /// Earliest time of the next attempt while another path serves, and the delay after the next
    /// failure.
    not_before: Instant,
    wait: Span,
    /// As `not_before` and `wait`, after the path was left for a better one.
    left_until: Instant,
    left_wait: Span,
    /// As `not_before` and `wait`, after a refused login. This delay applies even if no path
    /// serves.
    refused_until: Instant,
    refused_wait: Span,
}

/// Known access states of a unit.
#[derive(Clone, Debug, Default)]
struct View {
    access: Access,
    /// Group of the unit for each probed path.
    places: BTreeMap<usize, u16>,
    /// Groups whose transition has exceeded its bound.
    overdue: BTreeSet<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle(Instant),
    Opening(usize),
    LoggingIn(usize),
    Using { path: usize, opening: Option<usize> },
    Draining { from: usize, to: usize },
}

/// Delay between the failure of all paths and the next round.
const ROUND: Span = Span::from_ms(500);
/// First and longest delay before a failed path is retried.
const FIRST_WAIT: Span = Span::from_ms(500);
const LONGEST_WAIT: Span = Span::from_secs(60);
/// Longest delay after a refused login.
const LONGEST_REFUSAL: Span = Span::from_secs(30);
/// Time after which a path that serves counts as good again.
const GOOD_AFTER: Span = Span::from_secs(10);
/// Intervals between probes of the access states: minimum, then during a transition, without an
/// active path, with an active path, and with only one path.
const MIN_PROBE_INTERVAL: Span = Span::from_ms(100);
const PROBE_TRANSITIONING: Span = Span::from_ms(500);
const PROBE_INACTIVE: Span = Span::from_secs(1);
const PROBE_ACTIVE: Span = Span::from_secs(10);
const PROBE_SINGLE: Span = Span::from_secs(60);
/// Bounds of a transition: default if the device reports none, and upper limit.
const TRANSITION: Span = Span::from_secs(10);
const LONGEST_TRANSITION: Span = Span::from_secs(60);
/// Minimum interval between two attempts to set a state.
const SET_AGAIN: Span = Span::from_secs(5);

/// Paths to one target, one of which is in use. See the module for the rules and [`crate`] for the
/// driver's duties.
#[derive(Debug)]
pub struct Paths {
    paths: Vec<Path>,
    views: BTreeMap<LunBytes, View>,
    state: State,
    /// Path that was used or tried last.
    last: usize,
    /// Time at which the current path came into use.
    since: Instant,
    /// Times of the next and of the last probe.
    probe_at: Option<Instant>,
    last_probe: Instant,
    /// Time at which a state was last set.
    set: Option<Instant>,
    /// Time after which an ongoing transition counts as unavailable.
    transition_ends: Option<Instant>,
    /// Number of times that a path was left for a better one.
    moves: u64,
    outputs: VecDeque<Output>,
}

impl Paths {
    /// Creates `count` paths, at least one, none of them in use.
    pub fn new(count: usize) -> Paths {
        let path = Path {
            tried: false,
            not_before: Instant::ZERO,
            wait: FIRST_WAIT,
            left_until: Instant::ZERO,
            left_wait: FIRST_WAIT,
            refused_until: Instant::ZERO,
            refused_wait: FIRST_WAIT,
        };
        Paths {
            paths: vec![path; count.max(1)],
            views: BTreeMap::new(),
            state: State::Idle(Instant::ZERO),
            last: count.max(1) - 1,
            since: Instant::ZERO,
            probe_at: None,
            last_probe: Instant::ZERO,
            set: None,
            transition_ends: None,
            moves: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Processes one event at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Opened => self.on_opened(now),
            Input::Failed => self.on_failed(now),
            Input::Refused => self.on_refused(now),
            Input::LoggedIn => {
                if let State::LoggingIn(path) = self.state {
                    self.state = State::Using { path, opening: None };
                    (self.since, self.last) = (now, path);
                    self.paths[path].refused_wait = FIRST_WAIT;
                    (self.transition_ends, self.set) = (None, None);
                    self.plan(now);
                }
            }
            Input::Lost => self.on_lost(now),
            Input::Drained => {
                if let State::Draining { from, to } = self.state {
                    self.left(now, from);
                    self.log_in(to);
                }
            }
            Input::Probed { lun, access } => self.on_probed(now, lun, access),
            Input::Forget(lun) => _ = self.views.remove(&lun),
            Input::Changed => {
                if matches!(self.state, State::Using { .. }) {
                    let at = now.max(self.last_probe + MIN_PROBE_INTERVAL);
                    self.probe_at = Some(self.probe_at.map_or(at, |before| before.min(at)));
                }
            }
            Input::Timeout => {}
        }
        self.on_time(now);
    }

    /// Returns the next action.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which the driver must pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle(at) => Some(at),
            State::Opening(_) | State::LoggingIn(_) | State::Draining { .. } => None,
            State::Using { path, opening } => {
                let here = self.rank(path);
                let better = |other: &usize| opening.is_none() && *other != path && self.rank(*other) > here;
                let paths = (0..self.paths.len()).filter(better).map(|other| self.eligible_at(other, here));
                paths.chain(self.probe_at).chain(self.transition_ends).min()
            }
        }
    }

    /// Records that a command was completed, so that all paths may be tried again after the next
    /// loss.
    pub fn served(&mut self) {
        if let State::Using { .. } | State::Draining { .. } = self.state {
            self.paths.iter_mut().for_each(|path| path.tried = false);
        }
    }

    /// Index of the path in use.
    pub fn used(&self) -> Option<usize> {
        match self.state {
            State::Using { path, .. } | State::Draining { from: path, .. } => Some(path),
            _ => None,
        }
    }

    /// Index of the path being tried while none is in use.
    pub fn tried(&self) -> Option<usize> {
        match self.state {
            State::Opening(path) | State::LoggingIn(path) => Some(path),
            _ => None,
        }
    }

    /// Index of the path that is in use, being tried, or was used last.
    pub fn last(&self) -> usize {
        self.last
    }

    /// Number of times that a path was left for a better one.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Returns the target port group through which a path reaches a unit, if the group is known.
    pub fn group(&self, path: usize, lun: LunBytes) -> Option<&AccessGroup> {
        let view = self.views.get(&lun)?;
        view.access.of_group(*view.places.get(&path)?)
    }

    fn on_time(&mut self, now: Instant) {
        match self.state {
            State::Idle(at) if at <= now => self.next(now),
            State::Using { .. } => {
                if self.probe_at.is_some_and(|at| at <= now) {
                    self.last_probe = now;
                    self.outputs.push_back(Output::Probe);
                    self.plan(now);
                }
                if self.transition_ends.is_some_and(|at| at <= now) {
                    self.transition_is_over();
                }
                self.improve(now);
            }
            _ => {}
        }
    }

    /// Opens the best path that was neither tried in this round nor refused recently.
    fn next(&mut self, now: Instant) {
        let count = self.paths.len();
        let order = (1..=count).map(|step| (self.last + step) % count);
        let untried = order.filter(|path| !self.paths[*path].tried && self.paths[*path].refused_until <= now);
        // The first of equal paths wins.
        let best = untried.reduce(|best, path| if self.rank(path) > self.rank(best) { path } else { best });
        match best {
            Some(path) => {
                self.last = path;
                self.state = State::Opening(path);
                self.outputs.push_back(Output::Open(path));
            }
            None => {
                self.paths.iter_mut().for_each(|path| path.tried = false);
                let next = self.paths.iter().map(|path| path.refused_until.max(now + ROUND)).min();
                self.state = State::Idle(next.unwrap_or(now + ROUND));
            }
        }
    }

    fn log_in(&mut self, path: usize) {
        self.last = path;
        self.state = State::LoggingIn(path);
        self.outputs.push_back(Output::LogIn(path));
    }

    fn on_opened(&mut self, now: Instant) {
        match self.state {
            State::Opening(path) => self.log_in(path),
            State::Using { path: from, opening: Some(to) } if self.rank(to) > self.rank(from) => {
                self.state = State::Draining { from, to };
                self.moves += 1;
                self.outputs.push_back(Output::Drain);
            }
            State::Using { path, opening: Some(_) } => {
                self.state = State::Using { path, opening: None };
                self.outputs.push_back(Output::Abandon);
                self.plan(now);
            }
            _ => self.outputs.push_back(Output::Abandon),
        }
    }

    fn on_failed(&mut self, now: Instant) {
        match self.state {
            State::Opening(path) | State::LoggingIn(path) => {
                self.failed(now, path);
                self.next(now);
            }
            State::Using { path, opening: Some(other) } => {
                self.failed(now, other);
                self.state = State::Using { path, opening: None };
            }
            _ => {}
        }
    }

    fn on_refused(&mut self, now: Instant) {
        if let State::LoggingIn(number) = self.state {
            let path = &mut self.paths[number];
            path.refused_until = now + path.refused_wait;
            path.refused_wait = (path.refused_wait + path.refused_wait).min(LONGEST_REFUSAL);
        }
        self.on_failed(now);
    }

    fn on_lost(&mut self, now: Instant) {
        match self.state {
            State::Using { path, opening } => {
                self.lost(now, path);
                match opening {
                    Some(other) => self.state = State::Opening(other),
                    None => self.next(now),
                }
            }
            State::Draining { from, to } => {
                self.lost(now, from);
                self.log_in(to);
            }
            // The path being tried was lost.
            _ => self.on_failed(now),
        }
    }

    fn failed(&mut self, now: Instant, number: usize) {
        let path = &mut self.paths[number];
        path.tried = true;
        path.not_before = now + path.wait;
        path.wait = (path.wait + path.wait).min(LONGEST_WAIT);
    }

    fn lost(&mut self, now: Instant, number: usize) {
        if now.since(self.since) >= GOOD_AFTER {
            self.paths[number].wait = FIRST_WAIT;
        }
        self.failed(now, number);
    }

    /// Records that a path was left for a better one. The delay prevents permanent switching
    /// between two paths that each report the other as better.
    fn left(&mut self, now: Instant, number: usize) {
        // A session longer than every delay shows that the paths do not alternate.
        let stayed = now.since(self.since) >= LONGEST_WAIT + GOOD_AFTER;
        let path = &mut self.paths[number];
        if stayed {
            path.left_wait = FIRST_WAIT;
        }
        path.left_until = now + path.left_wait;
        path.left_wait = (path.left_wait + path.left_wait).min(LONGEST_WAIT);
    }

    fn on_probed(&mut self, now: Instant, lun: LunBytes, access: Access) {
        let State::Using { path, .. } = self.state else { return };
        let view = self.views.entry(lun).or_default();
        match access.group {
            Some(group) => _ = view.places.insert(path, group),
            None => _ = view.places.remove(&path),
        }
        let bound = access.transition.unwrap_or(TRANSITION).min(LONGEST_TRANSITION);
        let changing =
            |number: &u16| access.of_group(*number).is_some_and(|one| one.state == AccessState::Transitioning);
        view.overdue.retain(changing);
        view.access = access;
        match self.rank(path).0 == rank_of(AccessState::Transitioning) {
            true => _ = self.transition_ends.get_or_insert(now + bound),
            false => self.transition_ends = None,
        }
        self.plan(now);
    }

    /// Ends a transition that exceeds its bound: its groups count as unavailable until they report
    /// another state.
    fn transition_is_over(&mut self) {
        self.transition_ends = None;
        for view in self.views.values_mut() {
            let changing = view.access.groups.iter().filter(|group| group.state == AccessState::Transitioning);
            view.overdue.extend(changing.map(|group| group.number));
        }
    }

    /// Schedules the next probe.
    fn plan(&mut self, now: Instant) {
        let State::Using { path, .. } = self.state else { return };
        let has_states = self.views.values().any(|view| view.access.implicit || view.access.explicit);
        let every = match self.rank(path).0 {
            _ if !has_states => None,
            rank if rank == rank_of(AccessState::Transitioning) => Some(PROBE_TRANSITIONING),
            rank if rank < rank_of(AccessState::NonOptimized) => Some(PROBE_INACTIVE),
            _ if self.paths.len() == 1 => Some(PROBE_SINGLE),
            _ => Some(PROBE_ACTIVE),
        };
        self.probe_at = every.map(|every| now + every);
    }

    /// Moves to a better path, or sets the state of the current one.
    fn improve(&mut self, now: Instant) {
        let State::Using { path, opening: None } = self.state else { return };
        let here = self.rank(path);
        let count = self.paths.len();
        let others = (1..count).map(|step| (path + step) % count);
        let better = others.filter(|other| self.rank(*other) > here && self.eligible_at(*other, here) <= now);
        let best = better.reduce(|best, other| if self.rank(other) > self.rank(best) { other } else { best });
        if let Some(other) = best {
            self.state = State::Using { path, opening: Some(other) };
            return self.outputs.push_back(Output::Open(other));
        }
        if here.0 > rank_of(AccessState::Standby) || self.set.is_some_and(|at| now.since(at) < SET_AGAIN) {
            return;
        }
        for (lun, view) in &self.views {
            let group = view.places.get(&path).and_then(|group| view.access.of_group(*group));
            if let Some(group) = group.filter(|group| view.access.explicit && !group.state.is_active()) {
                self.set = Some(now);
                self.outputs.push_back(Output::Set { lun: *lun, group: group.number });
            }
        }
    }

    /// Earliest time at which a better path may be tried. `here` is the rank of the path in use.
    fn eligible_at(&self, number: usize, here: Rank) -> Instant {
        let path = &self.paths[number];
        match here.0 >= rank_of(AccessState::NonOptimized) {
            true => path.not_before.max(path.left_until),
            // The current path serves nothing, so its session need not be preserved.
            false => path.not_before,
        }
    }

    /// Rank of a path: that of the unit for which it is worst.
    fn rank(&self, path: usize) -> Rank {
        self.views.values().map(|view| view.rank(path)).min().unwrap_or((rank_of(AccessState::Optimized), false))
    }
}

impl View {
    fn rank(&self, path: usize) -> Rank {
        let of = |group: &AccessGroup| match self.overdue.contains(&group.number) {
            true => (rank_of(AccessState::Unavailable), false),
            false => (rank_of(group.state), group.preferred),
        };
        match self.places.get(&path) {
            _ if self.access.groups.is_empty() => (rank_of(AccessState::Optimized), false),
            Some(group) => self.access.of_group(*group).map_or((0, false), of),
            // The group is unknown, so assume the best one reported.
            None => self.access.groups.iter().map(of).max().unwrap_or((0, false)),
        }
    }
}

fn rank_of(state: AccessState) -> u8 {
    match state {
        AccessState::Optimized => 5,
        AccessState::NonOptimized => 4,
        AccessState::Transitioning => 3,
        AccessState::Standby => 2,
        AccessState::Unavailable => 1,
        AccessState::Offline => 0,
    }
}
