//! Path choice and failover for one LUN of one host.

mod choice;

use choice::Load;
use sanloom_core::config;
use std::collections::VecDeque;
use std::sync::Arc;

/// So many commands in a row must fail on a path before it is demoted.
pub const FAILURES_TO_DEMOTE: u32 = 3;

/// A demoted path is probed this often, in picoseconds.
pub const PROBE_INTERVAL_PS: u64 = 5_000_000_000_000;

/// The paths of a host to one LUN: which of them are usable, and which one a command takes.
///
/// ```text
///              RemoteUp            RemoteDown          fast_io_fail        dev_loss
///   Gone ------------------> Active ---------> Blocked ------------> Failed -------> Gone
///                            |    ^             ^   |                  |
///         3 Failed in a row  v    | Done        |   +--- RemoteUp -----+---> Active
///                           Suspect ------------+
///                                    RemoteDown
/// ```
///
/// New commands take an active path. If there is none they take a suspect one: its remote port is there, and a command
/// that may fail is better than one that surely waits. If there is none either, commands wait here: while a path is
/// blocked, without limit (it will soon be active or failed); from when all paths have failed, `no_path_timeout`.
///
/// Drive it like every control machine: [`Multipath::handle`], then [`Multipath::poll_output`] until `None`, then
/// [`Multipath::poll_timeout`]. Paths are numbered from 0 in the caller's order.
#[derive(Clone, Debug)]
pub struct Multipath {
    /// Shared by all of a host's.
    config: Arc<config::Multipath>,
    paths: Vec<Path>,
    /// Since when no path is active, suspect or blocked.
    no_path_since_ps: Option<u64>,
    /// Nothing most of the time: a path seldom changes, and a large lab has hundreds of thousands of these.
    pending: Option<Box<Pending>>,
    /// The path taken last: the turn goes on behind it.
    last: u16,
}

#[derive(Clone, Debug, Default)]
struct Pending {
    /// Commands without a path, in the order they began to wait.
    waiting: VecDeque<Waiting>,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    state: PathState,
    /// When the state began, for a blocked or failed path: when its remote port went away.
    since_ps: u64,
    failures_in_a_row: u32,
    next_probe_ps: u64,
    load: Load,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: u32,
    since_ps: u64,
}

/// State of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PathState {
    /// In use.
    Active,
    /// The remote port is there but commands fail one after the other: used only if no path is active, and probed.
    Suspect,
    /// The remote port went away a moment ago: nothing new is sent, and nothing is given up yet.
    Blocked,
    /// The remote port has been away for `fast_io_fail`: its commands were given back.
    Failed,
    /// The remote port is not known, not yet or (after `dev_loss`) no longer.
    Gone,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The path's remote port is logged in.
    RemoteUp(u16),
    /// The path's remote port went away: RSCN, logout or own link down.
    RemoteDown(u16),
    /// A command, or a probe, ended well.
    Done(u16),
    /// A command, or a probe, ran into its timeout or was aborted.
    Failed(u16),
    /// The caller's command `.0` has no path and waits for one.
    Wait(u32),
    /// The time of [`Multipath::poll_timeout`] has come.
    Timeout,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// For logs and counters: a path changed its state.
    Changed {
        /// The path.
        path: u16,
        /// Its state before.
        from: PathState,
        /// Its state now.
        to: PathState,
    },
    /// Take back every command that is outstanding on this path and send it on another.
    TakeBack(u16),
    /// Send a test command on this path and report [`Input::Done`] or [`Input::Failed`].
    Probe(u16),
    /// A waiting command may be sent: choose its path again.
    Retry(u32),
    /// A waiting command has waited long enough: its requests fail.
    Fail(u32),
}

/// Answer to the question for a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Take this path; the command counts as outstanding on it.
    Path(u16),
    /// There is a usable path, but the caller admits none of them now.
    Busy,
    /// There is no usable path: report [`Input::Wait`].
    NoPath,
}

/// How a command left its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It ended well.
    Done {
        /// When it was sent.
        sent_ps: u64,
        /// When it ended.
        now_ps: u64,
    },
    /// It ran into its timeout, was aborted or taken back.
    NotDone,
}

impl Multipath {
    /// `paths` paths, all [`PathState::Gone`].
    pub fn new(config: Arc<config::Multipath>, paths: u16) -> Multipath {
        let path = Path {
            state: PathState::Gone,
            since_ps: 0,
            failures_in_a_row: 0,
            next_probe_ps: u64::MAX,
            load: Load::default(),
        };
        Multipath {
            config,
            paths: vec![path; usize::from(paths)],
            no_path_since_ps: Some(0),
            pending: None,
            last: paths.saturating_sub(1),
        }
    }

    /// Chooses a path for a command of `bytes` among the usable ones that `admits` (for example: whose HBA has room).
    /// The command counts as outstanding on it until [`Multipath::release`].
    pub fn choose(&mut self, bytes: u32, admits: impl Fn(u16) -> bool) -> Choice {
        let Some(state) = self.best_state() else {
            return Choice::NoPath;
        };
        match choice::choose(self, state, bytes, admits) {
            Some(index) => {
                self.last = index as u16;
                self.paths[index].load.send(bytes);
                Choice::Path(self.last)
            }
            None => Choice::Busy,
        }
    }

    /// The paths that [`Multipath::choose`] chooses from.
    pub fn candidates(&self) -> impl Iterator<Item = u16> + '_ {
        let state = self.best_state();
        let most = if self.config.policy == config::PathPolicy::Failover { 1 } else { usize::MAX };
        (0..).zip(&self.paths).filter(move |(_, path)| Some(path.state) == state).map(|(number, _)| number).take(most)
    }

    /// Suspect paths are used where there is no other.
    fn best_state(&self) -> Option<PathState> {
        let states = [PathState::Active, PathState::Suspect];
        states.into_iter().find(|&state| self.paths.iter().any(|path| path.state == state))
    }

    /// A command of `bytes` is no longer outstanding on `path`. Report its outcome with [`Multipath::handle`] as well,
    /// except for one that was taken back.
    pub fn release(&mut self, path: u16, bytes: u32, end: End) {
        if let Some(path) = self.paths.get_mut(usize::from(path)) {
            path.load.release(bytes, end);
        }
    }

    /// One thing happened at `now_ps`, which must not decrease. Paths that do not exist are ignored.
    pub fn handle(&mut self, now_ps: u64, input: Input) {
        match input {
            Input::RemoteUp(path) => self.remote_up(now_ps, path),
            Input::RemoteDown(path) => self.remote_down(now_ps, path),
            Input::Done(path) => self.done(now_ps, path),
            Input::Failed(path) => self.failed(now_ps, path),
            Input::Wait(command) if self.has_usable() => self.output(Output::Retry(command)),
            Input::Wait(command) => {
                let waiting = Waiting { command, since_ps: now_ps };
                self.pending.get_or_insert_default().waiting.push_back(waiting);
            }
            Input::Timeout => {}
        }
        self.expire(now_ps);
    }

    /// The next thing to do; drain it after each [`Multipath::handle`].
    pub fn poll_output(&mut self) -> Option<Output> {
        let pending = self.pending.as_mut()?;
        let output = pending.outputs.pop_front();
        if output.is_none() && pending.waiting.is_empty() {
            self.pending = None;
        }
        output
    }

    /// When to come back with [`Input::Timeout`], if nothing happens before.
    pub fn poll_timeout(&self) -> Option<u64> {
        let path = self.next_deadline().map(|(deadline_ps, _)| deadline_ps);
        let give_up = self.first_waiting().and_then(|waiting| self.give_up_ps(waiting));
        path.into_iter().chain(give_up).min()
    }

    /// State of `path`; [`PathState::Gone`] for one that does not exist.
    pub fn state(&self, path: u16) -> PathState {
        self.paths.get(usize::from(path)).map_or(PathState::Gone, |path| path.state)
    }

    /// Commands outstanding on `path`.
    pub fn outstanding(&self, path: u16) -> u32 {
        self.paths.get(usize::from(path)).map_or(0, |path| path.load.commands())
    }

    /// Commands that wait for a path.
    pub fn waiting(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.waiting.len())
    }

    fn first_waiting(&self) -> Option<Waiting> {
        self.pending.as_ref()?.waiting.front().copied()
    }

    fn output(&mut self, output: Output) {
        self.pending.get_or_insert_default().outputs.push_back(output);
    }

    fn remote_up(&mut self, now_ps: u64, path: u16) {
        match self.state(path) {
            PathState::Active | PathState::Suspect => {}
            PathState::Blocked | PathState::Failed | PathState::Gone => {
                self.enter(now_ps, path, PathState::Active);
            }
        }
    }

    fn remote_down(&mut self, now_ps: u64, path: u16) {
        match self.state(path) {
            PathState::Active | PathState::Suspect => self.enter(now_ps, path, PathState::Blocked),
            PathState::Blocked | PathState::Failed | PathState::Gone => {}
        }
    }

    fn done(&mut self, now_ps: u64, path: u16) {
        match self.state(path) {
            PathState::Active => self.paths[usize::from(path)].failures_in_a_row = 0,
            PathState::Suspect => self.enter(now_ps, path, PathState::Active),
            // A late answer says nothing about a remote port that went away since.
            PathState::Blocked | PathState::Failed | PathState::Gone => {}
        }
    }

    fn failed(&mut self, now_ps: u64, path: u16) {
        if self.state(path) != PathState::Active {
            return;
        }
        let failures = &mut self.paths[usize::from(path)].failures_in_a_row;
        *failures += 1;
        if *failures >= FAILURES_TO_DEMOTE {
            self.enter(now_ps, path, PathState::Suspect);
        }
    }

    /// The only place where a state changes. A path that does not exist has no state to change.
    fn enter(&mut self, now_ps: u64, index: u16, to: PathState) {
        let Some(path) = self.paths.get_mut(usize::from(index)) else {
            return;
        };
        let from = std::mem::replace(&mut path.state, to);
        let outputs = &mut self.pending.get_or_insert_default().outputs;
        outputs.push_back(Output::Changed { path: index, from, to });
        match to {
            PathState::Active => {
                path.failures_in_a_row = 0;
                path.load.forget_speed();
            }
            PathState::Suspect => path.next_probe_ps = now_ps.saturating_add(PROBE_INTERVAL_PS),
            PathState::Blocked => path.since_ps = now_ps,
            PathState::Failed => outputs.push_back(Output::TakeBack(index)),
            PathState::Gone if from == PathState::Blocked => {
                outputs.push_back(Output::TakeBack(index));
            }
            PathState::Gone => {}
        }
        self.look_for_paths(now_ps);
    }

    /// After a change of state: are waiting commands served, or does their time run?
    fn look_for_paths(&mut self, now_ps: u64) {
        if self.has_usable()
            && let Some(pending) = &mut self.pending
        {
            pending.outputs.extend(pending.waiting.drain(..).map(|waiting| Output::Retry(waiting.command)));
        }
        let hopeless = |path: &Path| matches!(path.state, PathState::Failed | PathState::Gone);
        if !self.paths.iter().all(hopeless) {
            self.no_path_since_ps = None;
        } else if self.no_path_since_ps.is_none() {
            self.no_path_since_ps = Some(now_ps);
        }
    }

    fn has_usable(&self) -> bool {
        self.best_state().is_some()
    }

    /// When time alone changes something about `path`.
    fn deadline_ps(&self, path: &Path) -> Option<u64> {
        let after = |time: config::Picos| path.since_ps.saturating_add(time.0);
        match path.state {
            PathState::Active | PathState::Gone => None,
            PathState::Suspect => Some(path.next_probe_ps),
            PathState::Blocked => Some(after(self.config.fast_io_fail.min(self.config.dev_loss))),
            PathState::Failed => Some(after(self.config.dev_loss)),
        }
    }

    fn give_up_ps(&self, waiting: Waiting) -> Option<u64> {
        let since_ps = self.no_path_since_ps?.max(waiting.since_ps);
        Some(since_ps.saturating_add(self.config.no_path_timeout.0))
    }

    /// Does everything whose time has come, in the order of the times.
    fn expire(&mut self, now_ps: u64) {
        while let Some((deadline_ps, index)) = self.next_deadline()
            && deadline_ps <= now_ps
        {
            let path = &mut self.paths[usize::from(index)];
            let dev_loss_ps = path.since_ps.saturating_add(self.config.dev_loss.0);
            match path.state {
                PathState::Suspect => {
                    path.next_probe_ps = now_ps.saturating_add(PROBE_INTERVAL_PS);
                    self.output(Output::Probe(index));
                }
                PathState::Blocked if deadline_ps < dev_loss_ps => {
                    self.enter(deadline_ps, index, PathState::Failed);
                }
                _ => self.enter(deadline_ps, index, PathState::Gone),
            }
        }
        while let Some(waiting) = self.first_waiting()
            && self.give_up_ps(waiting).is_some_and(|at_ps| at_ps <= now_ps)
            && let Some(pending) = &mut self.pending
        {
            pending.waiting.pop_front();
            pending.outputs.push_back(Output::Fail(waiting.command));
        }
    }

    fn next_deadline(&self) -> Option<(u64, u16)> {
        let deadline = |(path, index)| Some((self.deadline_ps(path)?, index));
        self.paths.iter().zip(0..).filter_map(deadline).min()
    }
}
