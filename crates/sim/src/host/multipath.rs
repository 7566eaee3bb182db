//! Path selection and failover for one LUN of one host.

mod choice;

use choice::Load;
use sanloom_fc::config;
use std::collections::VecDeque;
use std::sync::Arc;

/// The paths of a host to one LUN: their states, and the selection of a path for each command.
///
/// ```text
///              RemoteUp            RemoteDown          fast_io_fail        dev_loss
///   Gone ------------------> Active ---------> Blocked ------------> Failed -------> Gone
///                            |    ^             ^   |                  |
///                    Failed  v    | Done        |   +--- RemoteUp -----+---> Active
///                           Suspect ------------+
///                                    RemoteDown
/// ```
///
/// New commands use an active path, and a secondary one only while no other is active. Without
/// one, commands wait here: without limit while a path is blocked, because it will soon be active
/// or failed, and for at most `no_path_retry` polling intervals once all paths are suspect, failed
/// or gone.
///
/// A path on which a command timed out is checked after a polling interval. A suspect path is
/// checked in each polling interval and used again when the check succeeds (multipath.conf(5)).
/// Paths without errors are not checked, because the test commands of a healthy path change
/// nothing.
///
/// Call it like every control machine: [`Multipath::handle`], then [`Multipath::poll_output`] until
/// `None`, then [`Multipath::poll_timeout`]. Paths are numbered from 0 in the caller's order.
#[derive(Clone, Debug)]
pub struct Multipath {
    /// Shared by all paths of a host.
    config: Arc<config::Multipath>,
    paths: Vec<Path>,
    /// Time since which no path is active or blocked.
    no_path_since_ps: Option<u64>,
    /// Outputs and waiting commands; usually `None`. A path rarely changes, and a large lab has
    /// hundreds of thousands of these.
    pending: Option<Box<Pending>>,
    /// The path selected last; round robin continues after it.
    last: u16,
    /// True if a path is secondary.
    has_secondary: bool,
}

#[derive(Clone, Debug, Default)]
struct Pending {
    /// Commands without a path, in the order in which they started to wait.
    waiting: VecDeque<Waiting>,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    state: PathState,
    /// Start of the current state. For a blocked or failed path, the time at which its remote port
    /// was lost.
    since_ps: u64,
    /// Time of the next test command; `u64::MAX` if none is due.
    next_probe_ps: u64,
    /// True while a test command is in flight.
    probing: bool,
    /// True if the storage port is active/non-optimized for these LUNs.
    is_secondary: bool,
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
    /// The remote port is logged in, but a command failed after all retries, or a test command
    /// failed. Used again when a test command succeeds.
    Suspect,
    /// The remote port was lost recently. No new commands are sent, and outstanding ones are not
    /// given up yet.
    Blocked,
    /// The remote port has been lost for `fast_io_fail`; its commands were returned.
    Failed,
    /// The remote port is not known yet, or no longer after `dev_loss`.
    Gone,
}

/// Inputs of [`Multipath::handle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The path's remote port is logged in.
    RemoteUp(u16),
    /// The path's remote port was lost: RSCN, logout or own link down.
    RemoteDown(u16),
    /// A command or a probe completed after a failure.
    Done(u16),
    /// A command on the path timed out or was aborted and will be retried on it.
    Aborted(u16),
    /// A command failed on the path after all its retries, or a probe failed.
    Failed(u16),
    /// A probe ended without having been sent.
    Untested(u16),
    /// The caller's command `.0` has no path and waits for one.
    Wait(u32),
    /// The time of [`Multipath::poll_timeout`] has been reached.
    Timeout,
}

/// Outputs of [`Multipath::poll_output`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// A path changed its state; for logs and counters.
    Changed { path: u16, from: PathState, to: PathState },
    /// Withdraw every command that is outstanding on this path and send it on another.
    Withdraw(u16),
    /// Send a test command on this path and report [`Input::Done`] or [`Input::Failed`].
    Probe(u16),
    /// A waiting command may be sent: select its path again.
    Retry(u32),
    /// A waiting command has exceeded `no_path_retry`: its requests fail.
    Fail(u32),
}

/// Result of a path selection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Use this path; the command counts as outstanding on it.
    Path(u16),
    /// Usable paths exist, but the caller's filter rejects all of them at the moment.
    Busy,
    /// No usable path exists: report [`Input::Wait`].
    NoPath,
}

/// Outcome of a command on its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The command completed.
    Done {
        /// Time of submission.
        sent_ps: u64,
        /// Time of completion.
        now_ps: u64,
    },
    /// The command timed out, was aborted or was withdrawn.
    NotDone,
}

impl Multipath {
    /// Returns `paths` paths, all [`PathState::Gone`].
    pub fn new(config: Arc<config::Multipath>, paths: u16) -> Multipath {
        let path = Path {
            state: PathState::Gone,
            since_ps: 0,
            next_probe_ps: u64::MAX,
            probing: false,
            is_secondary: false,
            load: Load::default(),
        };
        Multipath {
            config,
            paths: vec![path; usize::from(paths)],
            no_path_since_ps: Some(0),
            pending: None,
            last: paths.saturating_sub(1),
            has_secondary: false,
        }
    }

    /// Selects a usable path for which `admits` returns true, for example because its HBA has
    /// space. The command of `bytes` counts as outstanding on the path until
    /// [`Multipath::release`].
    pub fn choose(&mut self, bytes: u32, admits: impl Fn(u16) -> bool) -> Choice {
        if !self.has_usable() {
            return Choice::NoPath;
        }
        match choice::choose(self, PathState::Active, bytes, admits) {
            Some(index) => {
                self.last = index as u16;
                self.paths[index].load.send(bytes);
                Choice::Path(self.last)
            }
            None => Choice::Busy,
        }
    }

    /// Sets whether the storage port of a path is active/optimized for these LUNs. Others are used
    /// only while no such path is active (path groups by `prio alua` of multipath.conf(5), with
    /// `failback immediate`).
    pub fn prefer(&mut self, path: u16, is_optimized: bool) {
        if let Some(path) = self.paths.get_mut(usize::from(path)) {
            path.is_secondary = !is_optimized;
        }
        self.has_secondary = self.paths.iter().any(|path| path.is_secondary);
    }

    /// Returns the time of the next check of all paths after `now_ps`, which also learns which
    /// paths are preferred.
    pub fn next_check_ps(&self, now_ps: u64) -> u64 {
        let interval_ps = self.config.polling_interval.0.max(1);
        now_ps.saturating_add(interval_ps - now_ps % interval_ps)
    }

    /// Returns whether secondary paths are used: no other one is active.
    fn uses_secondary(&self) -> bool {
        !self.has_secondary || !self.paths.iter().any(|path| path.state == PathState::Active && !path.is_secondary)
    }

    /// Iterates over the paths from which [`Multipath::choose`] selects.
    pub fn candidates(&self) -> impl Iterator<Item = u16> + '_ {
        let most = if self.config.policy == config::PathPolicy::Failover { 1 } else { usize::MAX };
        let with_secondary = self.uses_secondary();
        let is_usable = move |path: &Path| path.state == PathState::Active && (with_secondary || !path.is_secondary);
        (0..).zip(&self.paths).filter(move |(_, path)| is_usable(path)).map(|(number, _)| number).take(most)
    }

    /// Ends the accounting of a command of `bytes` on `path`. Also report the outcome with
    /// [`Multipath::handle`], unless the command was withdrawn.
    pub fn release(&mut self, path: u16, bytes: u32, end: End) {
        if let Some(path) = self.paths.get_mut(usize::from(path)) {
            path.load.release(bytes, end);
        }
    }

    /// Processes one input at `now_ps`, which must not decrease. Paths that do not exist are
    /// ignored.
    pub fn handle(&mut self, now_ps: u64, input: Input) {
        match input {
            Input::RemoteUp(path) => self.remote_up(now_ps, path),
            Input::RemoteDown(path) => self.remote_down(now_ps, path),
            Input::Done(path) => self.done(now_ps, path),
            Input::Aborted(path) => self.aborted(now_ps, path),
            Input::Failed(path) => self.failed(now_ps, path),
            Input::Untested(path) => self.probe_ended(path),
            Input::Wait(command) if self.has_usable() => self.output(Output::Retry(command)),
            Input::Wait(command) => {
                let waiting = Waiting { command, since_ps: now_ps };
                self.pending.get_or_insert_default().waiting.push_back(waiting);
            }
            Input::Timeout => {}
        }
        self.expire(now_ps);
    }

    /// Returns the next output; drain it after each [`Multipath::handle`].
    pub fn poll_output(&mut self) -> Option<Output> {
        let pending = self.pending.as_mut()?;
        let output = pending.outputs.pop_front();
        if output.is_none() && pending.waiting.is_empty() {
            self.pending = None;
        }
        output
    }

    /// Returns the time at which [`Input::Timeout`] is due, unless another input comes first.
    pub fn poll_timeout(&self) -> Option<u64> {
        let path = self.next_deadline().map(|(deadline_ps, _)| deadline_ps);
        let no_path = self.first_waiting().and_then(|waiting| self.no_path_deadline_ps(waiting));
        path.into_iter().chain(no_path).min()
    }

    /// Returns the state of `path`; [`PathState::Gone`] for one that does not exist.
    pub fn state(&self, path: u16) -> PathState {
        self.paths.get(usize::from(path)).map_or(PathState::Gone, |path| path.state)
    }

    /// Returns the number of commands outstanding on `path`.
    pub fn outstanding(&self, path: u16) -> u32 {
        self.paths.get(usize::from(path)).map_or(0, |path| path.load.commands())
    }

    /// Returns the number of commands that wait for a path.
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

    /// Returns whether a path other than `path` is active.
    pub fn has_other_active(&self, path: u16) -> bool {
        (0..).zip(&self.paths).any(|(number, other)| number != path && other.state == PathState::Active)
    }

    fn probe_ended(&mut self, path: u16) {
        if let Some(path) = self.paths.get_mut(usize::from(path)) {
            path.probing = false;
        }
    }

    fn done(&mut self, now_ps: u64, path: u16) {
        self.probe_ended(path);
        match self.state(path) {
            PathState::Active => self.paths[usize::from(path)].next_probe_ps = u64::MAX,
            PathState::Suspect => self.enter(now_ps, path, PathState::Active),
            // A late completion is no evidence that the remote port has returned.
            PathState::Blocked | PathState::Failed | PathState::Gone => {}
        }
    }

    fn aborted(&mut self, now_ps: u64, path: u16) {
        if self.state(path) == PathState::Active {
            let at_ps = now_ps.saturating_add(self.config.polling_interval.0);
            let next_probe_ps = &mut self.paths[usize::from(path)].next_probe_ps;
            *next_probe_ps = at_ps.min(*next_probe_ps);
        }
    }

    fn failed(&mut self, now_ps: u64, path: u16) {
        self.probe_ended(path);
        if self.state(path) == PathState::Active {
            self.enter(now_ps, path, PathState::Suspect);
        }
    }

    /// Changes the state of a path; all state changes pass through here. A path that does not exist
    /// is ignored.
    fn enter(&mut self, now_ps: u64, index: u16, to: PathState) {
        let Some(path) = self.paths.get_mut(usize::from(index)) else {
            return;
        };
        let from = std::mem::replace(&mut path.state, to);
        let outputs = &mut self.pending.get_or_insert_default().outputs;
        outputs.push_back(Output::Changed { path: index, from, to });
        match to {
            PathState::Active => {
                path.next_probe_ps = u64::MAX;
                path.load.reset_speed();
            }
            PathState::Suspect => path.next_probe_ps = now_ps.saturating_add(self.config.polling_interval.0),
            PathState::Blocked => path.since_ps = now_ps,
            PathState::Failed => outputs.push_back(Output::Withdraw(index)),
            PathState::Gone if from == PathState::Blocked => {
                outputs.push_back(Output::Withdraw(index));
            }
            PathState::Gone => {}
        }
        self.retry_waiting(now_ps);
    }

    /// Retries waiting commands after a change of state, or starts their timeout.
    fn retry_waiting(&mut self, now_ps: u64) {
        if self.has_usable()
            && let Some(pending) = &mut self.pending
        {
            pending.outputs.extend(pending.waiting.drain(..).map(|waiting| Output::Retry(waiting.command)));
        }
        let is_lost = |path: &Path| matches!(path.state, PathState::Suspect | PathState::Failed | PathState::Gone);
        if !self.paths.iter().all(is_lost) {
            self.no_path_since_ps = None;
        } else if self.no_path_since_ps.is_none() {
            self.no_path_since_ps = Some(now_ps);
        }
    }

    fn has_usable(&self) -> bool {
        self.paths.iter().any(|path| path.state == PathState::Active)
    }

    /// Returns the next time at which a timer changes the state of `path`.
    fn deadline_ps(&self, path: &Path) -> Option<u64> {
        let after = |time: config::Picos| path.since_ps.saturating_add(time.0);
        match path.state {
            PathState::Active | PathState::Suspect => Some(path.next_probe_ps).filter(|&at_ps| at_ps < u64::MAX),
            PathState::Gone => None,
            PathState::Blocked => Some(after(self.config.fast_io_fail.min(self.config.dev_loss))),
            PathState::Failed => Some(after(self.config.dev_loss)),
        }
    }

    fn no_path_deadline_ps(&self, waiting: Waiting) -> Option<u64> {
        let since_ps = self.no_path_since_ps?.max(waiting.since_ps);
        Some(since_ps.saturating_add(self.config.no_path_time()?.0))
    }

    /// Processes all expired timers in the order of their times.
    fn expire(&mut self, now_ps: u64) {
        while let Some((deadline_ps, index)) = self.next_deadline()
            && deadline_ps <= now_ps
        {
            let path = &mut self.paths[usize::from(index)];
            let dev_loss_ps = path.since_ps.saturating_add(self.config.dev_loss.0);
            match path.state {
                PathState::Active | PathState::Suspect => {
                    path.next_probe_ps = now_ps.saturating_add(self.config.polling_interval.0);
                    if !std::mem::replace(&mut path.probing, true) {
                        self.output(Output::Probe(index));
                    }
                }
                PathState::Blocked if deadline_ps < dev_loss_ps => {
                    self.enter(deadline_ps, index, PathState::Failed);
                }
                _ => self.enter(deadline_ps, index, PathState::Gone),
            }
        }
        while let Some(waiting) = self.first_waiting()
            && self.no_path_deadline_ps(waiting).is_some_and(|at_ps| at_ps <= now_ps)
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
