//! Which of several paths to a target is used: [`Paths`].
//!
//! One path is used at a time, so that commands have one order. The rule, the best first: active/optimized and preferred,
//! active/optimized, active/non-optimized, one whose state changes, standby, all else; among equals the next one in the order of the
//! list. A path that nobody has looked at may be the best of what its target has told of.
//!
//! ```text
//!   idle -> opening -> logging in -> using -- a better one is there --> opening it meanwhile
//!    ^ all have failed                 ^                                         | open
//!    |                                 +---- logging in <---- draining <---------+
//!    +-- lost: the next best one at once, each once
//! ```
//!
//! A better path is opened before the other one is left, and that is left when nothing is under way there, so that nothing of
//! it can be done after its repetition. A path that fails, or does not do for long, is tried again after a while that doubles, while
//! another one serves; one whose login is refused for good, always. What a
//! transition may last is bounded; then the path counts as unavailable. Where no path is active and states can be set, that of the path
//! in use is.

use super::access::{Access, AccessGroup};
use crate::scsi::AccessState;
use crate::time::{Instant, Span};
use sanloom_wire::lun::LunBytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What happens to the paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The connection that was to be opened is open.
    Opened,
    /// It could not be opened, or the login failed.
    Failed,
    /// The login was refused, and will be until somebody changes that.
    Refused,
    /// There is a session on it.
    LoggedIn,
    /// The session is gone.
    Lost,
    /// Nothing is under way on the path that is left, and its session is over.
    Drained,
    /// How a unit is reached; the questions went through the path in use.
    Told {
        /// The unit.
        lun: LunBytes,
        /// What it says.
        access: Access,
    },
    /// A unit is not used any more.
    Forget(LunBytes),
    /// A command was told that states have changed, or that it is on a wrong path.
    Changed,
    /// Time has passed.
    Timeout,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Open a connection to this path; the session that is there goes on meanwhile. Then [`Input::Opened`] or [`Input::Failed`].
    Open(usize),
    /// Close the connection that was opened: it is not needed.
    Abandon,
    /// Begin no command any more, end the session when none is under way, then [`Input::Drained`]; [`Input::Lost`] if that takes too long.
    Drain,
    /// Log in on the connection that was opened. Then [`Input::LoggedIn`], [`Input::Failed`] or [`Input::Refused`].
    LogIn(usize),
    /// Ask all units how they are reached.
    Ask,
    /// Set a group of a unit to active/optimized.
    Set {
        /// The unit.
        lun: LunBytes,
        /// The group.
        group: u16,
    },
}

/// How good a path is for a unit: by state, then preferred.
type Rank = (u8, bool);

/// A path to a target.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// It was tried since a session was of use.
    tried: bool,
    /// No attempt while another path serves before then, and how long after the next failure.
    not_before: Instant,
    wait: Span,
    /// The same, after it was left for a better one.
    left_until: Instant,
    left_wait: Span,
    /// The same, whether another path serves or not, after a login was refused.
    refused_until: Instant,
    refused_wait: Span,
}

/// What is known of a unit.
#[derive(Clone, Debug, Default)]
struct View {
    access: Access,
    /// The group of each path, once asked.
    places: BTreeMap<usize, u16>,
    /// Groups whose state changes for too long.
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

/// From the failure of all paths to the next round.
const ROUND: Span = Span::from_ms(500);
/// The first wait for a path that has failed, and the longest.
const FIRST_WAIT: Span = Span::from_ms(500);
const LONGEST_WAIT: Span = Span::from_secs(60);
/// The longest wait for a path whose login is refused.
const LONGEST_REFUSAL: Span = Span::from_secs(30);
/// A path that serves for so long is good again.
const GOOD_AFTER: Span = Span::from_secs(10);
/// States are asked no more often than that, and so often: while they change, while none is active, otherwise, and where there is no
/// other path.
const ASK_AGAIN: Span = Span::from_ms(100);
const ASK_CHANGING: Span = Span::from_ms(500);
const ASK_INACTIVE: Span = Span::from_secs(1);
const ASK_ACTIVE: Span = Span::from_secs(10);
const ASK_ALONE: Span = Span::from_secs(60);
/// Bounds of a transition: of one that does not say, and of all.
const TRANSITION: Span = Span::from_secs(10);
const LONGEST_TRANSITION: Span = Span::from_secs(60);
/// From one attempt to set a state to the next.
const SET_AGAIN: Span = Span::from_secs(5);

/// Paths of which one is used. See the module, and [`crate`] for how to drive it.
#[derive(Debug)]
pub struct Paths {
    paths: Vec<Path>,
    views: BTreeMap<LunBytes, View>,
    state: State,
    /// The path that was used or tried last.
    last: usize,
    /// Since when the path is used.
    since: Instant,
    ask_at: Option<Instant>,
    asked: Instant,
    set: Option<Instant>,
    /// When a transition that goes on counts as none.
    transition_ends: Option<Instant>,
    /// Times that a path was left for a better one.
    moves: u64,
    outputs: VecDeque<Output>,
}

impl Paths {
    /// So many paths, at least one, of which none is used.
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
            ask_at: None,
            asked: Instant::ZERO,
            set: None,
            transition_ends: None,
            moves: 0,
            outputs: VecDeque::new(),
        }
    }

    /// One thing happened at `now`.
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
            Input::Told { lun, access } => self.on_told(now, lun, access),
            Input::Forget(lun) => _ = self.views.remove(&lun),
            Input::Changed => {
                if matches!(self.state, State::Using { .. }) {
                    let at = now.max(self.asked + ASK_AGAIN);
                    self.ask_at = Some(self.ask_at.map_or(at, |before| before.min(at)));
                }
            }
            Input::Timeout => {}
        }
        self.on_time(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle(at) => Some(at),
            State::Opening(_) | State::LoggingIn(_) | State::Draining { .. } => None,
            State::Using { path, opening } => {
                let here = self.rank(path);
                let better = |other: &usize| opening.is_none() && *other != path && self.rank(*other) > here;
                let paths = (0..self.paths.len()).filter(better).map(|other| self.eligible_at(other, here));
                paths.chain(self.ask_at).chain(self.transition_ends).min()
            }
        }
    }

    /// A command was carried out: the path in use is of use.
    pub fn served(&mut self) {
        if let State::Using { .. } | State::Draining { .. } = self.state {
            self.paths.iter_mut().for_each(|path| path.tried = false);
        }
    }

    /// The path in use.
    pub fn used(&self) -> Option<usize> {
        match self.state {
            State::Using { path, .. } | State::Draining { from: path, .. } => Some(path),
            _ => None,
        }
    }

    /// The path that is tried while none is used.
    pub fn tried(&self) -> Option<usize> {
        match self.state {
            State::Opening(path) | State::LoggingIn(path) => Some(path),
            _ => None,
        }
    }

    /// The path that is used, tried, or was last.
    pub fn last(&self) -> usize {
        self.last
    }

    /// Times that a path was left for a better one.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// The group of a unit that a path leads to, as far as it is known.
    pub fn group(&self, path: usize, lun: LunBytes) -> Option<&AccessGroup> {
        let view = self.views.get(&lun)?;
        view.access.of_group(*view.places.get(&path)?)
    }

    fn on_time(&mut self, now: Instant) {
        match self.state {
            State::Idle(at) if at <= now => self.next(now),
            State::Using { .. } => {
                if self.ask_at.is_some_and(|at| at <= now) {
                    self.asked = now;
                    self.outputs.push_back(Output::Ask);
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

    /// Opens the best path that was not tried in this round, and not refused lately.
    fn next(&mut self, now: Instant) {
        let count = self.paths.len();
        let order = (1..=count).map(|step| (self.last + step) % count);
        let untried = order.filter(|path| !self.paths[*path].tried && self.paths[*path].refused_until <= now);
        // The first of equals.
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
            // Of an attempt.
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

    /// A path was left for a better one: two that say that the other is better keep nobody busy.
    fn left(&mut self, now: Instant, number: usize) {
        // Longer than it could be for that reason alone.
        let stayed = now.since(self.since) >= LONGEST_WAIT + GOOD_AFTER;
        let path = &mut self.paths[number];
        if stayed {
            path.left_wait = FIRST_WAIT;
        }
        path.left_until = now + path.left_wait;
        path.left_wait = (path.left_wait + path.left_wait).min(LONGEST_WAIT);
    }

    fn on_told(&mut self, now: Instant, lun: LunBytes, access: Access) {
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

    /// It takes too long: the ports count as unavailable until they say something else than that.
    fn transition_is_over(&mut self) {
        self.transition_ends = None;
        for view in self.views.values_mut() {
            let changing = view.access.groups.iter().filter(|group| group.state == AccessState::Transitioning);
            view.overdue.extend(changing.map(|group| group.number));
        }
    }

    /// When to ask next.
    fn plan(&mut self, now: Instant) {
        let State::Using { path, .. } = self.state else { return };
        let has_states = self.views.values().any(|view| view.access.implicit || view.access.explicit);
        let every = match self.rank(path).0 {
            _ if !has_states => None,
            rank if rank == rank_of(AccessState::Transitioning) => Some(ASK_CHANGING),
            rank if rank < rank_of(AccessState::NonOptimized) => Some(ASK_INACTIVE),
            _ if self.paths.len() == 1 => Some(ASK_ALONE),
            _ => Some(ASK_ACTIVE),
        };
        self.ask_at = every.map(|every| now + every);
    }

    /// Goes to a better path, or makes this one better.
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

    /// When a better path may be tried; `here`: that of the one in use.
    fn eligible_at(&self, number: usize, here: Rank) -> Instant {
        let path = &self.paths[number];
        match here.0 >= rank_of(AccessState::NonOptimized) {
            true => path.not_before.max(path.left_until),
            // What serves nothing is no reason to stay.
            false => path.not_before,
        }
    }

    /// How good a path is: as good as for the unit that it is worst for.
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
            // It may be the best that there is.
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
