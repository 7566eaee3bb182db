//! The forwarding path on sockets: state of a host's session beside its own connection
//! ([`Forwarding`]).
//!
//! ```text
//!   host <-> Connection: conventional path, Egress
//!               ^  |  received bytes, headers changed in place
//!               |  v
//!             Mover, Forward <-> BackLink of each target of back ends
//! ```
//!
//! Bytes that are read from one connection are sent to others from the input buffer, with one
//! system call each. Bytes that a socket does not accept keep that buffer, and reads that could add
//! more for the socket stop. So a slow host stops its own back-end sessions, and a slow back end
//! stops the hosts that write to it. No other host shares these connections.

mod drive;
mod link;

use super::{LINKS, Stores};
use crate::poll::Poller;
use crate::session::Unread;
use crate::session::buffers::Spare;
use crate::volumes::VolumeEngine;
use link::{BackLink, Up};
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::mover::{Outlet, Output};
use sanloom_scsi::iscsi::forward::{self, Action, Conn, Forward, Mover, Settings};
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_scsi::time::{Instant, Span};

/// Unsent bytes of a connection at which reads that could add more stop.
const MAX_BACKLOG_BYTES: usize = 128 << 10;
/// The same for a connection that accepts no data, so that it does not stop its host at once.
const MAX_STUCK_BYTES: usize = 16 << 20;
/// Interval of checks for new LUNs of back ends, and for LUNs that were not ready.
const REFRESH: Span = Span::from_secs(1);
/// Maximum number of back-end targets of one session; reads and writes to others are not forwarded.
/// Links are counted in `u8`, and the count ends one above the last link.
const MAX_LINKS: usize = 254;

/// Counters of forwarding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Counters of commands.
    pub forward: forward::Counters,
    /// Sessions with back ends that were begun.
    pub logins: u64,
    /// Sessions with back ends that were lost.
    pub lost: u64,
    /// Current sessions with back ends.
    pub up: u64,
    /// The ones whose units have answered, so that commands are forwarded.
    pub ready: u64,
}

impl Counters {
    /// Adds the counters of another session.
    pub fn add(&mut self, other: &Counters) {
        self.forward.add(&other.forward);
        self.logins += other.logins;
        self.lost += other.lost;
        self.up += other.up;
        self.ready += other.ready;
    }
}

/// The forwarding path of a session.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// Number of the connection.
    id: u64,
    front: Parameters,
    forward: Forward,
    mover: Mover,
    /// Connections by the number of their target.
    links: Vec<BackLink>,
    /// Actions of the mover, in order.
    out: Output,
    actions: Vec<Action>,
    /// Lost back ends, and the reasons.
    failed: Vec<(usize, String)>,
    /// Start of a header from the host.
    rest: Unread,
    /// The mover processes the host's input.
    began: bool,
    logins: u64,
    lost: u64,
    /// Initiator port at all targets, once one is assigned.
    port: Option<u16>,
    /// Time of the next check of LUNs; then [`VolumeEngine::changes`] at the last check.
    next_refresh: Instant,
    seen_changes: u64,
}

impl Forwarding {
    /// Returns the forwarding path of a session that has begun.
    pub(super) fn new(id: u64, front: Parameters, engine: &VolumeEngine) -> Forwarding {
        let links = (0..engine.targets().min(MAX_LINKS)).map(|_| BackLink::new());
        let mut forward = Forward::new(Settings::default(), front);
        forward.exclude(engine.elsewhere());
        Forwarding {
            id,
            front,
            forward,
            mover: Mover::new(&front),
            links: links.collect(),
            out: Output::default(),
            actions: Vec::new(),
            failed: Vec::new(),
            rest: Unread::default(),
            began: false,
            logins: 0,
            lost: 0,
            port: None,
            next_refresh: Instant::ZERO,
            seen_changes: 0,
        }
    }

    /// Returns the counters.
    pub(super) fn counters(&self) -> Counters {
        let up = || (0..).zip(&self.links).filter(|(_, link)| link.is_up());
        let ready = up().filter(|(number, _)| !self.forward.is_probing(*number));
        Counters {
            forward: *self.forward.counters(),
            logins: self.logins,
            lost: self.lost,
            up: up().count() as u64,
            ready: ready.count() as u64,
        }
    }

    /// Returns whether there is a session with a target.
    pub(super) fn is_up(&self, target: usize) -> bool {
        self.links.get(target).is_some_and(BackLink::is_up)
    }

    /// Returns whether the host has one small request in flight at a time.
    pub(super) fn is_light(&self) -> bool {
        self.forward.is_light()
    }

    /// Time of the next timeout.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.forward.poll_timeout()
    }

    /// Returns whether a connection to a back end has work.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.links.iter().any(|link| link.is_due(now))
    }

    /// Handles an event of the poller for a back end.
    pub(super) fn set_ready(&mut self, link: usize, readable: bool, writable: bool) {
        if let Some(link) = self.links.get_mut(link) {
            link.set_ready(readable, writable);
        }
    }

    /// Starts processing the host's input with the mover from the next PDU on. `between`: the input
    /// is at the start of a PDU.
    pub(super) fn begins(&mut self, between: bool) -> bool {
        self.began |= between;
        self.began
    }

    /// Returns whether back ends accept more data from the host.
    pub(super) fn has_room(&self) -> bool {
        let most = |link: &BackLink| if link.stuck { MAX_STUCK_BYTES } else { MAX_BACKLOG_BYTES };
        self.links.iter().all(|link| link.output.bytes < most(link))
    }

    /// Returns whether there is no work.
    fn is_idle(&self) -> bool {
        self.out.is_empty() && self.failed.is_empty()
    }

    /// Returns whether to read from a back end; `backlog`: unsent bytes for the host. Read data are
    /// sent at once, while they are in the processor's cache, or are the last ones that are read.
    fn may_read(&self, link: usize, backlog: usize) -> bool {
        let free = self.mover.is_open(Conn::Host).is_none_or(|from| from == Conn::Back(link as u8));
        free && backlog == 0
    }

    /// Registers the sockets of back ends.
    pub(super) fn watch(&self, poller: &mut Poller, backlog: usize) {
        for (number, link) in self.links.iter().enumerate() {
            let (socket, interest) = link.interest(self.may_read(number, backlog));
            if let Err(error) = poller.set(self.token(number), socket, interest) {
                tracing::warn!(connection = self.id, %error, "events of a back end's socket cannot be polled");
            }
        }
    }

    /// Removes all back ends, which are closed, from the poller.
    pub(super) fn forget(&self, poller: &mut Poller) {
        (0..self.links.len()).for_each(|number| poller.forget(self.token(number)));
    }

    fn token(&self, link: usize) -> u64 {
        LINKS + (self.id << 8) + link as u64
    }

    /// Ends the path after the loss of the host. Sessions with back ends log out, except those that
    /// may still be writing: a new login ends them.
    pub(super) fn close(&mut self, now: Instant, stores: &mut Stores<'_>, spare: &mut Spare) {
        if let Some(engine) = stores.volumes.as_deref_mut() {
            self.forward.close(engine.volumes_mut());
        }
        for (number, link) in (0..).zip(&mut self.links).filter(|(_, link)| link.is_up()) {
            let whole = self.mover.is_open(Conn::Back(number)).is_none();
            let request = self.forward.log_out(number).filter(|_| whole && !self.forward.has_lost_writes(number));
            match request {
                Some(request) => link.log_out(now, &request, self.mover.has_header_digest(number), spare),
                None => link.lose(now),
            }
        }
        self.links.iter_mut().filter(|link| !link.is_leaving()).for_each(|link| link.lose(now));
    }

    /// Continues logouts. Returns whether one is in progress.
    pub(super) fn leave(&mut self, now: Instant, spare: &mut Spare) -> bool {
        self.links.iter_mut().for_each(|link| link.leave(now, spare));
        self.links.iter().any(BackLink::is_leaving)
    }

    /// Initiator port for sessions with back ends. `None` if none is free.
    fn port(&mut self, engine: &mut VolumeEngine) -> Option<u16> {
        self.port = self.port.or_else(|| engine.ports_mut().take());
        self.port
    }

    /// Releases the initiator port, which is no longer used.
    pub(super) fn give_back_port(&mut self, engine: &mut VolumeEngine) {
        self.port.take().into_iter().for_each(|port| engine.ports_mut().give_back(port));
    }

    /// Checks whether back ends accept data, and whether their LUNs have changed. Returns whether
    /// actions are queued.
    pub(super) fn refresh(&mut self, now: Instant, engine: &mut VolumeEngine, statuses: &mut Statuses) -> bool {
        let mut any = false;
        self.links.resize_with(engine.targets().clamp(self.links.len(), MAX_LINKS), BackLink::new);
        for (number, link) in (0..).zip(&mut self.links).filter(|(_, link)| link.is_up()) {
            if link.update_stuck(now, MAX_BACKLOG_BYTES) {
                self.forward.set_stalled(number, link.stuck);
                any = true;
            }
        }
        for number in self.forward.take_access_changes() {
            engine.access_changed(now, number.into());
        }
        for (number, link) in (0..).zip(&self.links).filter(|(_, link)| link.is_up()) {
            // The engine chooses the best portal for its own session.
            if engine.portal(number.into()).is_some_and(|portal| link.is_elsewhere(portal)) {
                self.forward.retire(number);
            }
            if self.mover.is_open(Conn::Host) != Some(Conn::Back(number)) {
                self.forward.close_retired(number, &mut self.actions);
            }
        }
        any |= !self.actions.is_empty();
        self.mover.execute(&mut self.actions, &mut Outlet { output: &mut self.out, statuses });
        let Some(port) = self.port.filter(|_| self.next_refresh <= now) else { return any };
        self.next_refresh = now + REFRESH;
        let fresh = std::mem::replace(&mut self.seen_changes, engine.changes()) != engine.changes();
        for number in 0..self.links.len() {
            if !self.links[number].is_up() || !(fresh || self.forward.awaits_unit(number as u8)) {
                continue;
            }
            match engine.route_to(number, port) {
                Some(route) => self.forward.update_units(number as u8, &route.units, &mut self.actions),
                // The engine is rechecking the target; try again later.
                None => self.seen_changes = 0,
            }
        }
        any |= !self.actions.is_empty();
        self.mover.execute(&mut self.actions, &mut Outlet { output: &mut self.out, statuses });
        any
    }

    /// Returns whether a lost back end may still be writing.
    pub(super) fn leaves_behind(&self) -> bool {
        (0..self.links.len()).any(|link| self.forward.has_lost_writes(link as u8))
    }

    /// Logs in again to lost back ends that may still be writing, which ends their tasks. Returns
    /// whether there is such a back end.
    pub(super) fn end_left_behind(&mut self, now: Instant, engine: &mut VolumeEngine, spare: &mut Spare) -> bool {
        let port = self.port(engine);
        for number in 0..self.links.len() {
            if !self.forward.has_lost_writes(number as u8) {
                continue;
            }
            let route = port.and_then(|port| engine.route_to(number, port));
            let up = self.links[number].advance(now, &self.front, route);
            if let Some(Up { established, .. }) = up
                && self.confirm_end_of_previous(now, number, engine)
            {
                self.forward.end_lost_writes(number as u8, engine.volumes_mut());
                let request = forward::logout(established.cmd_sn, established.exp_stat_sn);
                self.links[number].log_out(now, &request, established.parameters.header_digest, spare);
            }
        }
        self.give_up(now, engine);
        self.leaves_behind()
    }

    /// Returns whether no task of an earlier session is in progress after a login. If not, the
    /// engine ends the tasks, and the login has to be repeated.
    fn confirm_end_of_previous(&mut self, now: Instant, number: usize, engine: &mut VolumeEngine) -> bool {
        let left = self.links[number].left_elsewhere().filter(|_| self.forward.has_lost_writes(number as u8));
        if left.is_some_and(|since| !engine.fence(number, since)) {
            self.links[number].lose(now);
            return false;
        }
        self.links[number].forget_previous();
        true
    }

    /// Unlocks the blocks of a back end that is lost for longer than commands wait for it.
    fn give_up(&mut self, now: Instant, engine: &mut VolumeEngine) {
        for number in 0..self.links.len() {
            let busy_timeout = engine.target(number).map(|config| config.disk.busy_timeout);
            let (Some(since), Some(busy_timeout)) = (self.links[number].lost, busy_timeout) else { continue };
            if now >= since + busy_timeout && self.forward.has_lost_writes(number as u8) {
                tracing::warn!(
                    connection = self.id,
                    "a back end did not return within its time-out; its lost commands no longer lock blocks"
                );
                self.forward.end_lost_writes(number as u8, engine.volumes_mut());
            }
        }
    }
}
