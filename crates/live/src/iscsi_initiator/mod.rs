//! A host over TCP: the disks of an iSCSI target, offered to programs through NBD
//! ([`IscsiInitiator`]).
//!
//! ```text
//!   target <-> Remote: a session, its disks <-> nbd::Connection <-> program
//! ```
//!
//! When the connection is lost, requests wait for the next one, as those of a Fibre Channel host
//! wait for their path.

mod config;
mod disks;
pub mod link;
mod remote;

pub use config::{RemoteConfig, RemoteCounters};
pub(crate) use remote::{Context, Event, Memory, PortalSeen, Remote};

use crate::clock::{Clock, until};
use crate::exports::{DiskWork, NbdRequest, disk_work, export_of};
use crate::nbd::{NbdServer, Work};
use crate::poll::{Interest, Poller};
use crate::ports::PortError;
use sanloom_scsi::disk::Op;
use sanloom_scsi::nbd::Limits;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::lun::LunBytes;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Token of the target's connection in the poller.
pub const TARGET: u64 = 0;
/// Token of the NBD server in the poller.
const NBD: u64 = 1;
/// Interval of the calls of `go_on`.
const CHECK_INTERVAL: Span = Span::from_ms(100);

/// Configuration of an initiator.
#[derive(Clone, Debug)]
pub struct IscsiInitiatorConfig {
    /// The target.
    pub remote: RemoteConfig,
    /// Socket of the NBD server.
    pub nbd: PathBuf,
    /// Limits of NBD clients.
    pub limits: Limits,
}

/// The buffer of a request.
#[derive(Debug)]
enum Buffer {
    In(Vec<u8>),
    Out(Arc<Vec<u8>>),
}

/// A request of an NBD client.
#[derive(Debug)]
struct Pending {
    origin: NbdRequest,
    buffer: Buffer,
}

/// Requests by number.
#[derive(Debug, Default)]
struct Requests(BTreeMap<u64, Pending>);

impl Memory for Requests {
    fn room(&mut self, tag: u64, at: usize, len: usize) -> Option<&mut [u8]> {
        let Buffer::In(buffer) = &mut self.0.get_mut(&tag)?.buffer else { return None };
        buffer.get_mut(at..)?.get_mut(..len)
    }

    fn data(&mut self, tag: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        match &self.0.get(&tag)?.buffer {
            Buffer::Out(buffer) => Some((buffer.clone(), 0)),
            Buffer::In(_) => None,
        }
    }
}

/// A running initiator.
#[derive(Debug)]
pub struct IscsiInitiator {
    remote: Remote,
    requests: Requests,
    /// Server of the disks.
    pub nbd: NbdServer,
    /// Time since the start.
    pub clock: Clock,
    poller: Poller,
    next_request: u64,
}

impl IscsiInitiator {
    /// Returns an initiator that is not connected.
    ///
    /// # Errors
    /// The NBD socket cannot be opened, or there are no descriptors.
    pub fn new(config: IscsiInitiatorConfig) -> Result<IscsiInitiator, PortError> {
        let failed = |error| PortError::Socket { path: config.nbd.clone(), error };
        let poller = Poller::new().map_err(failed)?;
        let nbd = NbdServer::listen(&config.nbd, Vec::new(), config.limits)?;
        let remote = Remote::new(config.remote.clone(), TARGET).map_err(failed)?;
        let (requests, clock) = (Requests::default(), Clock::start());
        Ok(IscsiInitiator { remote, requests, nbd, clock, poller, next_request: 0 })
    }

    /// Returns whether the target has listed at least one disk, and all listed disks can be used.
    pub fn is_ready(&self) -> bool {
        let mut disks = self.remote.disks().peekable();
        disks.peek().is_some() && disks.all(|(.., ready)| ready)
    }

    /// Runs until `go_on` returns false. `go_on` is called every 100 ms.
    ///
    /// # Errors
    /// Errors of waiting for sockets.
    pub fn run(&mut self, mut go_on: impl FnMut(&mut IscsiInitiator) -> bool) -> io::Result<()> {
        let mut busy = false;
        while go_on(self) {
            busy = self.step(busy)?;
        }
        Ok(())
    }

    /// Logs out, and closes each NBD connection when its requests are done.
    pub fn shut_down(&mut self) {
        let now = self.clock.now();
        self.nbd.shut_down(now);
        self.remote.log_out(now, &mut self.requests);
    }

    /// Waits for at most 100 ms and processes the events. Returns whether there is more work.
    ///
    /// # Errors
    /// Errors of waiting for sockets.
    pub fn step(&mut self, busy: bool) -> io::Result<bool> {
        self.remote.watch(&mut self.poller)?;
        let read = !self.remote.is_full();
        self.poller.set(NBD, Some(self.nbd.descriptor()), Interest { read, write: false })?;
        let now = self.clock.now();
        let timers = [self.remote.poll_timeout(), self.nbd.poll_timeout()];
        let next = timers.into_iter().flatten().fold(now + CHECK_INTERVAL, Instant::min);
        let wait = if busy { Duration::ZERO } else { until(now, next) };
        let mut clients = false;
        for event in self.poller.wait(wait)? {
            match event.token {
                TARGET => self.remote.set_ready(event.readable, event.writable),
                _ => clients = true,
            }
        }
        let now = self.clock.now();
        if clients || self.nbd.poll_timeout().is_some_and(|at| at <= now) {
            self.nbd.process_events(now, Duration::ZERO)?;
        }
        let IscsiInitiator { remote, poller, requests, .. } = self;
        let more = remote.run(&mut Context { now, poller, memory: requests });
        loop {
            let mut silent = true;
            while let Some(work) = self.nbd.next_work() {
                silent = false;
                self.work(now, work);
            }
            let IscsiInitiator { remote, poller, requests, .. } = self;
            remote.execute_requests(&mut Context { now, poller, memory: requests });
            while let Some(event) = self.remote.next_event() {
                silent = false;
                self.on_event(now, event);
            }
            if silent {
                break;
            }
        }
        Ok(more)
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Changed => {
                let target = &self.remote.config().target;
                let export = |(number, lun, found, _): (u64, LunBytes, Option<&_>, bool)| {
                    let lun = crate::initiator::host::lun_name(lun);
                    found.map(|found| export_of(number, &format!("{target}-lun-{lun}"), found))
                };
                let exports: Vec<_> = self.remote.disks().filter_map(export).collect();
                if exports != self.nbd.exports() {
                    self.nbd.set_exports(exports);
                }
            }
            Event::Done { tag, result } => {
                if let Some(Pending { origin, buffer }) = self.requests.0.remove(&tag) {
                    let data = match buffer {
                        Buffer::In(data) => data,
                        Buffer::Out(data) => Arc::try_unwrap(data).unwrap_or_default(),
                    };
                    origin.answer(now, &mut self.nbd, result, data);
                }
            }
        }
    }

    fn work(&mut self, now: Instant, work: Work) {
        let tag = self.next_request;
        self.next_request += 1;
        let Some(DiskWork { disk, origin, request, data }) = disk_work(now, &mut self.nbd, tag, work) else { return };
        let buffer = match request.op {
            Op::Write => Buffer::Out(Arc::new(data)),
            _ => Buffer::In(data),
        };
        self.requests.0.insert(tag, Pending { origin, buffer });
        self.remote.submit(now, disk, request);
    }
}
