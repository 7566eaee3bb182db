//! Virtual disks on the LUNs of other targets: [`VolumeEngine`], which the loop of a running lab
//! drives.
//!
//! ```text
//!   StorageSystem -- VolumeJob --> scsi::volume::Volumes -- Request --> Remote of its back end <-> target
//!                 <-- Done ------      map, order        <-- result --
//! ```
//!
//! A back end is a LUN of an iSCSI target (`Remote`), or a LUN that a host port of this instance
//! reaches in a Fibre Channel fabric ([`HostPort`]).
//!
//! A job uses the buffer of the host's task. Data of a read come from the socket of an iSCSI target
//! into it, and data of a write leave from it, without a copy. A host port has a buffer for each
//! request, because frames are copied anyway.

mod adding;
mod back_end;
mod buffers;
mod host_port;
mod ports;
mod wiper;

use crate::initiator::host;
use crate::iscsi_initiator::{Context, Event, Remote, RemoteConfig};
use crate::poll::Poller;
use crate::ready::{ReadyList, Tracked};
use crate::storage::VolumeJob;
use crate::storage::medium::BlockWork;
use crate::storage::workers::{Done, Owner};
pub use adding::NewBackEnd;
use back_end::{BackEnd, refusal};
pub use back_end::{BackEndSeen, LunPlan, PortSeen, Through, identity};
use buffers::Buffers;
pub use host_port::{HostPort, Wire};
pub use ports::InitiatorPorts;
use sanloom_scsi::disk::{self, Error, ErrorKind, Op, Properties, Request};
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::BackUnit;
use sanloom_scsi::map::{Freed, LunId, Map};
use sanloom_scsi::scsi::{IoOp, IoStatus, IoTag};
use sanloom_scsi::time::Instant;
use sanloom_scsi::volume::{self, VolumeIo, Volumes};
use sanloom_wire::FcId;
use sanloom_wire::lun;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use wiper::Wiper;

/// First poller token of back ends.
pub const BACK_ENDS: u64 = 1 << 60;
/// First poller token of host ports; each has two.
const HOST_PORTS: u64 = BACK_ENDS + (1 << 32);

/// Address and configuration for a further session with a target.
#[derive(Debug)]
pub struct TargetRoute<'e> {
    /// Configuration of the target.
    pub config: &'e RemoteConfig,
    /// Address of the portal.
    pub portal: SocketAddr,
    /// Units of the target that are LUNs of the map.
    pub units: Vec<BackUnit>,
    /// Initiator session identifier for the login.
    pub isid: [u8; 6],
}

/// A job of a host in progress.
#[derive(Clone, Copy, Debug)]
struct JobOrigin {
    owner: Owner,
    tag: IoTag,
}

/// The virtual disks of an instance.
#[derive(Debug)]
pub struct VolumeEngine {
    volumes: Volumes,
    /// Targets over iSCSI.
    remotes: Vec<Remote>,
    /// Host ports in fabrics.
    hosts: Tracked<HostPort>,
    /// Host ports whose descriptors or interests may have changed.
    unwatched: ReadyList,
    /// For each target, the number of earlier targets that are the same one over another path.
    twins: Vec<usize>,
    ports: InitiatorPorts,
    back_ends: Vec<BackEnd>,
    buffers: Buffers,
    wiper: Wiper,
    in_flight: BTreeMap<u64, JobOrigin>,
    next_job: u64,
    done: Vec<Done>,
    /// Back ends whose state has changed.
    found: Vec<LunId>,
    /// Number of such changes.
    changes: u64,
}

impl VolumeEngine {
    /// Returns the virtual disks of a map. `luns` has the order of the LUNs of the map and refers
    /// to targets and host ports by index.
    pub fn new(
        now: Instant,
        map: Map,
        targets: Vec<RemoteConfig>,
        hosts: Vec<HostPort>,
        luns: Vec<LunPlan>,
        ports: InitiatorPorts,
    ) -> VolumeEngine {
        let mut engine = VolumeEngine {
            volumes: Volumes::new(map),
            remotes: Vec::new(),
            unwatched: ReadyList::up_to(hosts.len()),
            hosts: hosts.into(),
            twins: Vec::new(),
            ports,
            back_ends: Vec::new(),
            buffers: Buffers::default(),
            wiper: Wiper::new(),
            in_flight: BTreeMap::new(),
            next_job: 0,
            done: Vec::new(),
            found: Vec::new(),
            changes: 1,
        };
        for target in targets {
            engine.join(target);
        }
        for (plan, number) in luns.into_iter().zip(0..) {
            let at = lun::to_bytes(plan.lun).unwrap_or_default();
            // A disk that replaced the one with the extents must not be written.
            let in_use = engine.map().lun_use(LunId(number)).is_some_and(|lun| lun.is_taken());
            let name = plan.identity.as_deref().filter(|_| in_use);
            let disk = match plan.through {
                Through::Session(remote) => engine.remotes[remote].expect(now, at, name),
                Through::Port(port, target) => engine.hosts[port].host_mut().expect(now, target, at, plan.disk, name),
            };
            engine.back_ends.push(BackEnd { plan, disk, found: None, refused: None });
        }
        engine
    }

    /// Returns a number that increases with every change of back ends; never 0.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The initiator ports of the instance.
    pub fn ports_mut(&mut self) -> &mut InitiatorPorts {
        &mut self.ports
    }

    /// The initiator ports, read-only.
    pub fn ports(&self) -> &InitiatorPorts {
        &self.ports
    }

    /// Returns the map.
    pub fn map(&self) -> &Map {
        self.volumes.map()
    }

    /// Mutable [`map`](Self::map).
    pub fn map_mut(&mut self) -> &mut Map {
        self.volumes.map_mut()
    }

    /// Returns the counters of jobs.
    pub fn counters(&self) -> &volume::Counters {
        self.volumes.counters()
    }

    /// Returns the volumes, for operations without a job.
    pub fn volumes_mut(&mut self) -> &mut Volumes {
        &mut self.volumes
    }

    /// The volumes, read-only.
    pub fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    /// Number of targets of back ends.
    pub fn targets(&self) -> usize {
        self.remotes.len()
    }

    /// Configuration of a target.
    pub fn target(&self, target: usize) -> Option<&RemoteConfig> {
        self.remotes.get(target).map(Remote::config)
    }

    /// Agreed parameters of each target with a session.
    pub fn parameters(&self) -> impl Iterator<Item = Parameters> {
        self.remotes.iter().filter_map(Remote::parameters)
    }

    /// Returns address and LUNs of a target for a session that forwards through initiator port
    /// `port`. `None` without a session of the engine, or if a LUN with extents of volumes is
    /// refused: only the engine's session can identify the disk.
    pub fn route_to(&self, target: usize, port: u16) -> Option<TargetRoute<'_>> {
        let remote = self.remotes.get(target).filter(|remote| remote.is_certain())?;
        let portal = remote.path().ok()?;
        let ready: Vec<u64> = remote.disks().filter(|(.., ready)| *ready).map(|(disk, ..)| disk).collect();
        let mut units = Vec::new();
        for (back_end, id) in self.of_target(target) {
            let usable = back_end.refused.is_none() && ready.contains(&back_end.disk);
            if let Some(found) = back_end.found.as_deref().filter(|_| usable) {
                units.push(BackUnit { id, lun: lun::to_bytes(back_end.plan.lun)?, cache: found.cache() });
            } else if self.map().lun_use(id).is_some_and(|lun| lun.is_taken()) {
                return None;
            }
        }
        Some(TargetRoute { config: remote.config(), portal, units, isid: self.ports.isid(self.twins[target], port) })
    }

    /// Rechecks a target after a forwarding session was lost or, with `changed`, was notified that
    /// a LUN may be another disk.
    pub fn doubt(&mut self, now: Instant, target: usize, changed: bool) {
        if let Some(remote) = self.remotes.get_mut(target) {
            remote.doubt(now, changed);
        }
    }

    /// Portal of the engine's session with a target.
    pub fn portal(&self, target: usize) -> Option<SocketAddr> {
        self.remotes.get(target)?.path().ok()
    }

    /// Handles a notice to a forwarding session that access states of a target have changed.
    pub fn access_changed(&mut self, now: Instant, target: usize) {
        if let Some(remote) = self.remotes.get_mut(target) {
            remote.access_changed(now);
        }
    }

    /// Returns whether no command can be in progress at a target of a forwarding session that was
    /// lost at `since`, in a portal group other than the current one. If not, a login that ends
    /// such commands is started.
    pub fn fence(&mut self, target: usize, since: Instant) -> bool {
        self.remotes.get_mut(target).is_none_or(|remote| remote.fence(since))
    }

    /// Returns whether a LUN of a target with extents of volumes is not used.
    pub fn is_refused(&self, target: usize) -> bool {
        let used = |id| self.map().lun_use(id).is_some_and(|lun| lun.is_taken());
        self.of_target(target).filter(|(one, _)| one.refused.is_some()).any(|(_, id)| used(id))
    }

    /// The back ends of an iSCSI target.
    fn of_target(&self, target: usize) -> impl Iterator<Item = (&BackEnd, LunId)> {
        let all = self.back_ends.iter().zip((0..).map(LunId));
        all.filter(move |(one, _)| one.plan.through == Through::Session(target))
    }

    /// LUNs that are not behind an iSCSI target.
    pub fn elsewhere(&self) -> impl Iterator<Item = LunId> {
        let all = self.back_ends.iter().zip((0..).map(LunId));
        all.filter(|(one, _)| matches!(one.plan.through, Through::Port(..))).map(|(_, lun)| lun)
    }

    /// Host ports of the instance in fabrics.
    pub fn hosts(&self) -> &Tracked<HostPort> {
        &self.hosts
    }

    /// Mutable [`hosts`](Self::hosts).
    pub fn hosts_mut(&mut self) -> &mut Tracked<HostPort> {
        &mut self.hosts
    }

    /// Records that a step has visited a host port, so that [`watch`](Self::watch) updates its
    /// registrations.
    pub fn visited(&mut self, host: usize) {
        self.unwatched.enter(host);
    }

    /// Number of jobs in progress.
    pub fn open_jobs(&self) -> usize {
        self.volumes.open_jobs()
    }

    /// Returns the states of all back ends.
    pub fn back_ends(&self) -> impl Iterator<Item = BackEndSeen<'_>> {
        self.back_ends.iter().map(|back_end| match back_end.plan.through {
            Through::Session(remote) => BackEndSeen::of_session(back_end, &self.remotes[remote]),
            Through::Port(port, target) => BackEndSeen::of_port(back_end, &self.hosts[port], target),
        })
    }

    /// Properties of a back-end LUN, once it was reached.
    pub fn found(&self, lun: LunId) -> Option<&Properties> {
        self.back_ends.get(usize::from(lun.0))?.found.as_deref()
    }

    /// Submits a job of a host.
    pub fn submit(&mut self, job: VolumeJob) {
        let VolumeJob { owner, tag, volume, work, data } = job;
        let BlockWork { op, lba, blocks, bytes, fua } = work;
        let id = self.next_job;
        self.next_job += 1;
        let other = self.in_flight.insert(id, JobOrigin { owner, tag });
        debug_assert!(other.is_none(), "two jobs have the number {id}");
        // A read returns data; a write covers only the bytes received.
        let has_come = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let brought = if op == IoOp::Read { bytes } else { bytes.min(has_come) };
        self.buffers.begin(id, data);
        self.volumes.submit(id, VolumeIo { volume, op, lba, blocks, bytes: brought, fua });
    }

    /// Returns the jobs that have ended since the last call.
    pub fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// Returns back ends whose state has changed since the last call.
    pub fn take_found(&mut self) -> Vec<LunId> {
        std::mem::take(&mut self.found)
    }

    /// Registers the descriptors of back ends.
    ///
    /// # Errors
    /// A descriptor that cannot be polled.
    pub fn watch(&mut self, poller: &mut Poller) -> io::Result<()> {
        self.remotes.iter().try_for_each(|remote| remote.watch(poller))?;
        let hosts = self.unwatched.take();
        hosts.iter().try_for_each(|number| self.hosts[*number].watch(poller, token_of(*number)))?;
        self.unwatched.reuse(hosts);
        Ok(())
    }

    /// Handles an event of the poller.
    pub fn happened(&mut self, token: u64, readable: bool, writable: bool) {
        if let Some(number) = token.checked_sub(HOST_PORTS) {
            let adapter = self.hosts.get_mut((number / 2) as usize).and_then(HostPort::adapter_mut);
            adapter.into_iter().for_each(|adapter| adapter.happened(number % 2 == 1, readable, writable));
        } else if let Some(remote) = self.remotes.get_mut((token - BACK_ENDS) as usize) {
            remote.set_ready(readable, writable);
        }
    }

    /// Time of the next call of [`process_events`](Self::process_events) if no event occurs before.
    /// Host ports have their own deadlines.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let wiper = self.wiper.poll_timeout(self.map(), |lun| self.can_wipe(lun));
        self.remotes.iter().filter_map(Remote::poll_timeout).chain(wiper).min()
    }

    /// Returns whether a back end is available and is the disk with the extents.
    fn can_wipe(&self, lun: LunId) -> bool {
        self.back_ends.get(usize::from(lun.0)).is_some_and(BackEnd::is_there)
    }

    /// Returns blocks that were wiped since the last call. Store that, then update the map.
    pub fn take_wiped(&mut self) -> Option<Freed> {
        self.wiper.take_finished()
    }

    /// Retries a wipe whose completion could not be stored.
    pub fn wipe_later(&mut self, now: Instant) {
        self.wiper.later(now);
    }

    /// Processes events and timers. Returns whether more work may be pending.
    pub fn process_events(&mut self, now: Instant, poller: &mut Poller) -> bool {
        let mut more = false;
        for remote in &mut self.remotes {
            more |= remote.run(&mut Context { now, poller, memory: &mut self.buffers });
        }
        for at in 0..self.hosts.ready().len() {
            let number = self.hosts.ready()[at];
            self.hosts.visit(number).process_events(now, poller, token_of(number));
        }
        self.serve(now, poller);
        more
    }

    /// Exchanges outputs between volumes and back ends until there are none.
    pub fn serve(&mut self, now: Instant, poller: &mut Poller) {
        loop {
            let mut silent = true;
            while let Some(output) = self.volumes.poll_output() {
                silent = false;
                self.carry(now, output);
            }
            let back_ends = &self.back_ends;
            let is_there = |lun: LunId| back_ends.get(usize::from(lun.0)).is_some_and(BackEnd::is_there);
            if let Some((lun, request)) = self.wiper.next_request(now, self.volumes.map(), is_there) {
                self.request(now, lun, request);
            }
            for number in 0..self.remotes.len() {
                let remote = &mut self.remotes[number];
                remote.execute_requests(&mut Context { now, poller, memory: &mut self.buffers });
                while let Some(event) = self.remotes[number].next_event() {
                    silent = false;
                    match event {
                        Event::Changed => self.update_back_ends(|through| through == Through::Session(number)),
                        Event::Done { tag, result } => self.ended(now, tag, result),
                    }
                }
            }
            for at in 0..self.hosts.ready().len() {
                let number = self.hosts.ready()[at];
                while let Some(event) = self.hosts.visit(number).host_mut().poll_event() {
                    silent = false;
                    match event {
                        host::Event::Disks => {
                            self.update_back_ends(
                                |through| matches!(through, Through::Port(port, _) if port == number),
                            );
                        }
                        host::Event::Done { tag, result, data } => {
                            if result.is_ok() {
                                self.buffers.copy_in(tag, &data);
                            }
                            self.ended(now, tag, result);
                        }
                        // Host ports send no name server queries for other users.
                        host::Event::Answer { .. } => {}
                    }
                }
            }
            if silent {
                break;
            }
        }
        debug_assert!(
            !self.hosts.iter().any(|port| port.host().has_events()),
            "a host port has an event, and the step does not visit it"
        );
    }

    /// Passes a request to the carrier of its back end.
    fn request(&mut self, now: Instant, lun: LunId, request: Request) {
        let BackEnd { ref plan, disk, .. } = self.back_ends[usize::from(lun.0)];
        match plan.through {
            Through::Session(remote) => self.remotes[remote].submit(now, disk, request),
            Through::Port(port, _) => {
                let of_lun = |map: &Map| {
                    let (_, lun) = map.luns().find(|(id, _)| *id == lun)?;
                    map.pool(lun.config.pool).map(|pool| pool.block_bytes)
                };
                let bytes = request.blocks as usize * of_lun(self.volumes.map()).unwrap_or(0) as usize;
                let data = match request.op {
                    Op::Read => vec![0; bytes],
                    Op::Write => self.buffers.copy_out(request.tag, bytes).unwrap_or_default(),
                    Op::Flush | Op::WriteZeroes { .. } | Op::Unmap | Op::Status => Vec::new(),
                };
                self.hosts[port].host_mut().submit(now, disk, request, data);
            }
        }
    }

    /// Handles the end of a request to a back end.
    fn ended(&mut self, now: Instant, tag: u64, result: Result<disk::Done, Error>) {
        if self.wiper.ended(now, tag, result.is_ok()) {
            if let Err(error) = result {
                tracing::warn!(%error, "blocks of a deleted volume could not be wiped; the wipe is retried");
            }
        } else {
            self.buffers.forget(tag);
            self.volumes.ended(tag, result);
        }
    }

    fn carry(&mut self, now: Instant, output: volume::Output) {
        match output {
            volume::Output::Request { job, lun, request, buffer, at } => {
                let back_end = &self.back_ends[usize::from(lun.0)];
                if back_end.refused.is_some() {
                    let error = Error { kind: ErrorKind::OtherDisk, sense: None };
                    return self.volumes.ended(request.tag, Err(error));
                }
                self.buffers.lend(request.tag, job, buffer, at);
                self.request(now, lun, request);
            }
            volume::Output::Repeat { job, block_bytes, bytes } => self.buffers.repeat(job, block_bytes, bytes),
            volume::Output::Compare { job, bytes, at, block_bytes } => {
                let difference = self.buffers.difference(job, bytes, at, block_bytes);
                self.volumes.compared(job, difference);
            }
            volume::Output::Done { job, status } => {
                let data = self.buffers.end(job);
                let Some(JobOrigin { owner, tag }) = self.in_flight.remove(&job) else { return };
                if let IoStatus::Failed { key, code } = status {
                    tracing::warn!(%key, %code, "a host's request to a volume failed");
                }
                self.done.push(Done { owner, tag, data, status });
            }
        }
    }

    /// Updates the back ends with carriers that match `of`.
    fn update_back_ends(&mut self, of: impl Fn(Through) -> bool) {
        self.changes += 1;
        let known =
            |back_end: &BackEnd| back_end.found.as_deref().filter(|_| back_end.refused.is_none()).and_then(identity);
        let mut taken: Vec<(String, Option<String>)> =
            self.back_ends.iter().map(|back_end| (back_end.plan.name.clone(), known(back_end))).collect();
        for (number, back_end) in self.back_ends.iter_mut().enumerate() {
            if !of(back_end.plan.through) {
                continue;
            }
            let found = match back_end.plan.through {
                Through::Session(remote) => self.remotes[remote].ready(back_end.disk),
                Through::Port(port, _) => self.hosts[port].host().ready(back_end.disk),
            };
            let Some(found) = found.filter(|found| back_end.found.as_deref() != Some(*found)) else { continue };
            let id = LunId(number as u16);
            let name = identity(found);
            let twin = (0..taken.len()).find(|other| *other != number && name.is_some() && taken[*other].1 == name);
            let refused = match twin {
                // Two sets of extents on one disk would destroy each other.
                Some(other) => Some(format!("it is the same disk as `{}`: name each disk once", taken[other].0)),
                None => refusal(self.volumes.map_mut(), id, &back_end.plan, found),
            };
            if refused.is_none() {
                taken[number].1 = name;
            }
            match &refused {
                Some(why) => tracing::error!(back_end = back_end.plan.name, why, "a back end cannot be used"),
                None => {
                    back_end.plan.identity = identity(found);
                    tracing::info!(back_end = back_end.plan.name, blocks = found.blocks, "a back end is available");
                }
            }
            (back_end.found, back_end.refused) = (Some(Box::new(found.clone())), refused);
            self.found.push(id);
        }
    }

    /// Returns whether a host port is logged in to a fabric.
    pub fn is_in_fabric(&self) -> bool {
        self.hosts.iter().any(|port| port.host().port_id() != FcId::ZERO)
    }

    /// Starts logging out of fabrics; the answers arrive later.
    pub fn leave_fabrics(&mut self, now: Instant) {
        self.hosts.iter_mut().for_each(|port| port.host_mut().log_out(now));
    }

    /// Starts logging out of targets.
    pub fn shut_down(&mut self, now: Instant) {
        for remote in &mut self.remotes {
            remote.log_out(now, &mut self.buffers);
        }
    }
}

/// First poller token of a host port.
fn token_of(host: usize) -> u64 {
    HOST_PORTS + 2 * host as u64
}
