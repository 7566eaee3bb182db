//! The forwarding path on sockets: what a session of a host has beside its own connection ([`Forwarding`]).
//!
//! ```text
//!   host <-> Connection: conventional path, Egress
//!               ^  |  bytes as they come, headers changed in their place
//!               |  v
//!             Mover, Forward <-> BackLink of each target of back ends
//! ```
//!
//! What is read from one connection leaves through others with one call for each, out of the buffer into which it was read. Only
//! what a socket does not take is copied, and then nothing more is read that could go there: a slow host stops its own back-end
//! sessions, a slow back end those hosts that write there. Nobody else has these connections.

mod drive;
mod link;

use super::{LINKS, Stores};
use crate::poll::Poller;
use crate::volumes::VolumeEngine;
use link::{BackLink, Up};
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::forward::mover::Output;
use sanloom_core::iscsi::forward::{self, Action, Conn, Forward, Mover, Settings};
use sanloom_core::iscsi::sequence::Statuses;
use sanloom_core::time::Instant;
use std::io;

/// Nothing more is read for a connection that has so many bytes to fetch.
const MAX_BACKLOG_BYTES: usize = 1 << 20;
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
}

impl Forwarding {
    /// For a session that has begun.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(super) fn new(id: u64, front: Parameters, engine: &VolumeEngine) -> io::Result<Forwarding> {
        let links = (0..engine.targets().min(MAX_LINKS)).map(|_| BackLink::new());
        Ok(Forwarding {
            id,
            front,
            forward: Forward::new(Settings::default(), front),
            mover: Mover::new(&front, Statuses::new(0)),
            links: links.collect::<io::Result<Vec<_>>>()?,
            out: Output::default(),
            actions: Vec::new(),
            failed: Vec::new(),
            rest: Vec::new(),
            began: false,
            logins: 0,
            lost: 0,
        })
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
        self.links.iter().all(|link| link.output.bytes < MAX_BACKLOG_BYTES)
    }

    /// There is nothing to do.
    fn is_silent(&self) -> bool {
        self.out.pieces.is_empty() && self.out.closes.is_empty() && self.failed.is_empty()
    }

    /// Data of a back end may go to the host; `backlog`: bytes that it has to fetch.
    fn may_read(&self, link: usize, backlog: usize) -> bool {
        let free = self.mover.is_open(Conn::Host).is_none_or(|from| from == Conn::Back(link as u8));
        free && backlog < MAX_BACKLOG_BYTES
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

    /// The host is gone: back ends are left.
    pub(super) fn close(&mut self, now: Instant, stores: &mut Stores<'_>) {
        if let Some(engine) = stores.volumes.as_deref_mut() {
            self.forward.close(engine.volumes_mut());
        }
        self.links.iter_mut().for_each(|link| link.lose(now));
    }

    /// A back end that was left may still be writing.
    pub(super) fn leaves_behind(&self) -> bool {
        (0..self.links.len()).any(|link| self.forward.leaves_behind(link as u8))
    }

    /// Logs in once more where something may still be written, which ends that. True if there is such a back end.
    pub(super) fn tend_left_behind(&mut self, now: Instant, engine: &mut VolumeEngine) -> bool {
        for number in 0..self.links.len() {
            if !self.forward.leaves_behind(number as u8) {
                continue;
            }
            let up = self.links[number].tend(now, &self.front, engine.way_to(number));
            if let Some(Up { .. }) = up {
                self.forward.ended_at(number as u8, engine.volumes_mut());
                self.links[number].lose(now);
            }
        }
        self.give_up(now, engine);
        self.leaves_behind()
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
