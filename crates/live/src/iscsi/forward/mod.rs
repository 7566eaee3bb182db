//! The forwarding path on sockets: what a session of a host has beside its own connection ([`Forwarding`]).
//!
//! ```text
//!   host <-> Connection: conventional path, Egress
//!               ^  |  bytes as they come, headers changed in their place
//!               |  v
//!             Mover, Forward <-> BackLink of each target of back ends
//! ```
//!
//! What is read from one connection leaves through others with one call for each, out of the buffer into which it was read. What
//! a socket does not take keeps that buffer, and nothing more is read that could go there: a slow host stops its own back-end
//! sessions, a slow back end those hosts that write there. Nobody else has these connections.

mod drive;
mod link;

use super::buffers::Spare;
use super::{LINKS, Stores};
use crate::poll::Poller;
use crate::volumes::VolumeEngine;
use link::{BackLink, Up};
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::forward::mover::Output;
use sanloom_core::iscsi::forward::{self, Action, Conn, Forward, Mover, Settings};
use sanloom_core::iscsi::sequence::Statuses;
use sanloom_core::time::{Instant, Span};

/// Nothing more is read for a connection that has so many bytes to fetch.
const MAX_BACKLOG_BYTES: usize = 128 << 10;
/// And for one that takes nothing, and so would stop its host.
const MAX_STUCK_BYTES: usize = 16 << 20;
/// How often LUNs of back ends are looked at that may be new, or were not ready.
const LOOK: Span = Span::from_secs(1);
/// Targets of back ends of one session; what lies on others is not forwarded.
const MAX_LINKS: usize = 255;

/// What was counted of what is forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Of commands.
    pub forward: forward::Counters,
    /// Sessions with back ends that were begun.
    pub logins: u64,
    /// Sessions with back ends that were lost.
    pub lost: u64,
    /// Sessions with back ends that are there.
    pub up: u64,
}

impl Counters {
    /// What another session has counted comes on top.
    pub fn add(&mut self, other: &Counters) {
        self.forward.add(&other.forward);
        self.logins += other.logins;
        self.lost += other.lost;
        self.up += other.up;
    }
}

/// The forwarding path of a session.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// Of the connection.
    id: u64,
    front: Parameters,
    forward: Forward,
    mover: Mover,
    /// By the number of the target.
    links: Vec<BackLink>,
    /// What is to be done, in order.
    out: Output,
    actions: Vec<Action>,
    /// Back ends that are lost, and why.
    failed: Vec<(usize, String)>,
    /// The beginning of a header of the host.
    rest: Vec<u8>,
    /// The host's bytes come this way.
    began: bool,
    logins: u64,
    lost: u64,
    /// Its initiator port at all targets, once there is one.
    port: Option<u16>,
    /// When to look at LUNs, and what was known of them at the last look.
    next_look: Instant,
    looked: u64,
}

impl Forwarding {
    /// For a session that has begun.
    pub(super) fn new(id: u64, front: Parameters, engine: &VolumeEngine) -> Forwarding {
        let links = (0..engine.targets().min(MAX_LINKS)).map(|_| BackLink::new());
        let mut forward = Forward::new(Settings::default(), front);
        forward.keep_from(engine.elsewhere());
        Forwarding {
            id,
            front,
            forward,
            mover: Mover::new(&front, Statuses::new(0)),
            links: links.collect(),
            out: Output::default(),
            actions: Vec::new(),
            failed: Vec::new(),
            rest: Vec::new(),
            began: false,
            logins: 0,
            lost: 0,
            port: None,
            next_look: Instant::ZERO,
            looked: 0,
        }
    }

    /// What was counted so far.
    pub(super) fn counters(&self) -> Counters {
        let up = self.links.iter().filter(|link| link.is_up()).count() as u64;
        Counters { forward: *self.forward.counters(), logins: self.logins, lost: self.lost, up }
    }

    /// There is a session with a target.
    pub(super) fn is_up(&self, target: usize) -> bool {
        self.links.get(target).is_some_and(BackLink::is_up)
    }

    /// The host has one small request under way at a time.
    pub(super) fn is_light(&self) -> bool {
        self.forward.is_light()
    }

    /// When to come back with a timeout.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.forward.poll_timeout()
    }

    /// A connection to a back end has something to do.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.links.iter().any(|link| link.is_due(now))
    }

    /// The poller has seen something of a back end.
    pub(super) fn happened(&mut self, link: usize, readable: bool, writable: bool) {
        if let Some(link) = self.links.get_mut(link) {
            link.happened(readable, writable);
        }
    }

    /// The host's bytes come this way from the next PDU on; `between`: they stand between two.
    pub(super) fn begins(&mut self, between: bool) -> bool {
        self.began |= between;
        self.began
    }

    /// Back ends take more from the host.
    pub(super) fn has_room(&self) -> bool {
        let most = |link: &BackLink| if link.stuck { MAX_STUCK_BYTES } else { MAX_BACKLOG_BYTES };
        self.links.iter().all(|link| link.output.bytes < most(link))
    }

    /// There is nothing to do.
    fn is_silent(&self) -> bool {
        self.out.is_empty() && self.failed.is_empty()
    }

    /// Data of a back end may go to the host; `backlog`: bytes that it has to fetch. What is read leaves at once, or is the last that is
    /// read: it is to be warm when it leaves.
    fn may_read(&self, link: usize, backlog: usize) -> bool {
        let free = self.mover.is_open(Conn::Host).is_none_or(|from| from == Conn::Back(link as u8));
        free && backlog == 0
    }

    /// Waits for back ends.
    pub(super) fn watch(&self, poller: &mut Poller, backlog: usize) {
        for (number, link) in self.links.iter().enumerate() {
            let (socket, interest) = link.interest(self.may_read(number, backlog));
            if let Err(error) = poller.set(self.token(number), socket, interest) {
                tracing::warn!(connection = self.id, %error, "cannot wait for a back end");
            }
        }
    }

    /// Waits for no back end any more; all are closed.
    pub(super) fn forget(&self, poller: &mut Poller) {
        (0..self.links.len()).for_each(|number| poller.forget(self.token(number)));
    }

    fn token(&self, link: usize) -> u64 {
        LINKS + (self.id << 8) + link as u64
    }

    /// The host is gone: sessions with back ends log out, but for those that may still be writing. These are ended by a login in their place.
    pub(super) fn close(&mut self, now: Instant, stores: &mut Stores<'_>, spare: &mut Spare) {
        if let Some(engine) = stores.volumes.as_deref_mut() {
            self.forward.close(engine.volumes_mut());
        }
        for (number, link) in (0..).zip(&mut self.links).filter(|(_, link)| link.is_up()) {
            let whole = self.mover.is_open(Conn::Back(number)).is_none();
            let request = self.forward.log_out(number).filter(|_| whole && !self.forward.leaves_behind(number));
            match request {
                Some(request) => link.log_out(now, &request, self.mover.has_header_digest(number), spare),
                None => link.lose(now),
            }
        }
        self.links.iter_mut().filter(|link| !link.is_leaving()).for_each(|link| link.lose(now));
    }

    /// Goes on with logouts. True if one is under way.
    pub(super) fn leave(&mut self, now: Instant, spare: &mut Spare) -> bool {
        self.links.iter_mut().for_each(|link| link.leave(now, spare));
        self.links.iter().any(BackLink::is_leaving)
    }

    /// The initiator port for sessions with back ends. None: there is none yet.
    fn port(&mut self, engine: &mut VolumeEngine) -> Option<u16> {
        self.port = self.port.or_else(|| engine.ports_mut().take());
        self.port
    }

    /// Nobody logs in for it any more.
    pub(super) fn give_back_port(&mut self, engine: &mut VolumeEngine) {
        self.port.take().into_iter().for_each(|port| engine.ports_mut().give_back(port));
    }

    /// Looks whether back ends take anything, and whether they have other LUNs. True if something is to be done.
    pub(super) fn look(&mut self, now: Instant, engine: &mut VolumeEngine) -> bool {
        let mut any = false;
        self.links.resize_with(engine.targets().clamp(self.links.len(), MAX_LINKS), BackLink::new);
        for (number, link) in (0..).zip(&mut self.links).filter(|(_, link)| link.is_up()) {
            if link.look_whether_stuck(now, MAX_BACKLOG_BYTES) {
                self.forward.stuck(number, link.stuck);
                any = true;
            }
        }
        for number in self.forward.take_told() {
            engine.access_changed(now, number.into());
        }
        for (number, link) in (0..).zip(&self.links).filter(|(_, link)| link.is_up()) {
            // Where our own session is, no other portal is better.
            if engine.portal(number.into()).is_some_and(|portal| link.is_elsewhere(portal)) {
                self.forward.leave(number);
            }
            if self.mover.is_open(Conn::Host) != Some(Conn::Back(number)) {
                self.forward.close_left(number, &mut self.actions);
            }
        }
        any |= !self.actions.is_empty();
        self.mover.execute(&mut self.actions, &mut self.out);
        let Some(port) = self.port.filter(|_| self.next_look <= now) else { return any };
        self.next_look = now + LOOK;
        let fresh = std::mem::replace(&mut self.looked, engine.changes()) != engine.changes();
        for number in 0..self.links.len() {
            if !self.links[number].is_up() || !(fresh || self.forward.awaits_unit(number as u8)) {
                continue;
            }
            match engine.way_to(number, port) {
                Some(way) => self.forward.units(number as u8, &way.units, &mut self.actions),
                // It is looked at itself just now.
                None => self.looked = 0,
            }
        }
        any |= !self.actions.is_empty();
        self.mover.execute(&mut self.actions, &mut self.out);
        any
    }

    /// A back end that was left may still be writing.
    pub(super) fn leaves_behind(&self) -> bool {
        (0..self.links.len()).any(|link| self.forward.leaves_behind(link as u8))
    }

    /// Logs in once more where something may still be written, which ends that. True if there is such a back end.
    pub(super) fn tend_left_behind(&mut self, now: Instant, engine: &mut VolumeEngine, spare: &mut Spare) -> bool {
        let port = self.port(engine);
        for number in 0..self.links.len() {
            if !self.forward.leaves_behind(number as u8) {
                continue;
            }
            let way = port.and_then(|port| engine.way_to(number, port));
            let up = self.links[number].tend(now, &self.front, way);
            if let Some(Up { established, .. }) = up
                && self.may_settle(now, number, engine)
            {
                self.forward.ended_at(number as u8, engine.volumes_mut());
                let request = forward::logout(established.cmd_sn, established.exp_stat_sn);
                self.links[number].log_out(now, &request, established.parameters.header_digest, spare);
            }
        }
        self.give_up(now, engine);
        self.leaves_behind()
    }

    /// A login is complete, and nothing is done any more for the session before. If not, that is seen to, and the login has to be made again.
    fn may_settle(&mut self, now: Instant, number: usize, engine: &mut VolumeEngine) -> bool {
        let left = self.links[number].left_elsewhere().filter(|_| self.forward.leaves_behind(number as u8));
        if left.is_some_and(|since| !engine.fence(number, since)) {
            self.links[number].lose(now);
            return false;
        }
        self.links[number].settled();
        true
    }

    /// A back end that stays away for as long as commands wait for it keeps nobody from its blocks any more.
    fn give_up(&mut self, now: Instant, engine: &mut VolumeEngine) {
        for number in 0..self.links.len() {
            let patience = engine.target(number).map(|config| config.disk.patience);
            let (Some(since), Some(patience)) = (self.links[number].lost, patience) else { continue };
            if now >= since + patience && self.forward.leaves_behind(number as u8) {
                tracing::warn!(
                    connection = self.id,
                    "a back end stays away, and what was lost on its way there is forgotten"
                );
                self.forward.ended_at(number as u8, engine.volumes_mut());
            }
        }
    }
}
