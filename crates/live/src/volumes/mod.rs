//! Virtual disks on the LUNs of other targets: [`VolumeEngine`], a part of the loop of a running lab.
//!
//! ```text
//!   StorageSystem -- VolumeJob --> core::volume::Volumes -- Request --> Remote of its back end <-> target
//!                 <-- Done ------      map, order        <-- result --
//! ```
//!
//! A back end is a LUN of an iSCSI target (`Remote`), or one that a host port of ours reaches in a Fibre Channel fabric ([`HostPort`]).
//!
//! The buffer of a job is that of the task of the host in front: data of a read come from the socket of an iSCSI target into it, those
//! of a write leave from it. Nobody copies them in between. A host port has a buffer for each request: frames are copied anyway.

mod adding;
mod back_end;
mod buffers;
mod host_port;
mod ports;
mod wiper;

use crate::initiator::host;
use crate::iscsi::initiator::{Event, Remote, RemoteConfig};
use crate::poll::Poller;
use crate::storage::VolumeJob;
use crate::storage::medium::BlockWork;
use crate::storage::workers::{Done, Owner};
pub use adding::NewBackEnd;
use back_end::{BackEnd, refusal};
pub use back_end::{BackEndSeen, LunPlan, PortSeen, Through, identity};
use buffers::Buffers;
pub use host_port::{HostPort, Wire};
pub use ports::InitiatorPorts;
use sanloom_core::disk::{self, Error, ErrorKind, Op, Properties, Request};
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::forward::BackUnit;
use sanloom_core::map::{Freed, LunId, Map};
use sanloom_core::scsi::{IoOp, IoStatus, IoTag};
use sanloom_core::time::Instant;
use sanloom_core::volume::{self, VolumeIo, Volumes};
use sanloom_wire::FcId;
use sanloom_wire::lun;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use wiper::Wiper;

/// The poller's tokens of back ends begin here.
pub const BACK_ENDS: u64 = 1 << 60;
/// Those of host ports begin here; each has two.
const HOST_PORTS: u64 = BACK_ENDS + (1 << 32);

/// How to get to a target of back ends.
#[derive(Debug)]
pub struct Way<'e> {
    /// Its name, and how it is used.
    pub config: &'e RemoteConfig,
    /// Where it is.
    pub portal: SocketAddr,
    /// Its units that are LUNs of the map.
    pub units: Vec<BackUnit>,
    /// The initiator session identifier to log in with.
    pub isid: [u8; 6],
}

/// A job of a host.
#[derive(Clone, Copy, Debug)]
struct Asked {
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
    hosts: Vec<HostPort>,
    /// Of each target, how many before it are the same one in another way.
    twins: Vec<usize>,
    ports: InitiatorPorts,
    back_ends: Vec<BackEnd>,
    buffers: Buffers,
    wiper: Wiper,
    asked: BTreeMap<u64, Asked>,
    next_job: u64,
    done: Vec<Done>,
    /// Back ends of which something new is known.
    found: Vec<LunId>,
    /// How often something new was known.
    changes: u64,
}

impl VolumeEngine {
    /// Virtual disks of a map. `luns` are those of the map, in its order; they name targets and host ports by index.
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
            hosts,
            twins: Vec::new(),
            ports,
            back_ends: Vec::new(),
            buffers: Buffers::default(),
            wiper: Wiper::new(),
            asked: BTreeMap::new(),
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
            // Nothing is written to a disk that took the place of the one with our extents.
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

    /// Increases whenever something about back ends changes; never 0.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The initiator ports of the instance.
    pub fn ports_mut(&mut self) -> &mut InitiatorPorts {
        &mut self.ports
    }

    /// The same, to look at.
    pub fn ports(&self) -> &InitiatorPorts {
        &self.ports
    }

    /// Where everything is.
    pub fn map(&self) -> &Map {
        self.volumes.map()
    }

    /// The same, to change it.
    pub fn map_mut(&mut self) -> &mut Map {
        self.volumes.map_mut()
    }

    /// What was counted of jobs.
    pub fn counters(&self) -> &volume::Counters {
        self.volumes.counters()
    }

    /// The volumes, for what goes there without a job.
    pub fn volumes_mut(&mut self) -> &mut Volumes {
        &mut self.volumes
    }

    /// The same.
    pub fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    /// Targets of back ends.
    pub fn targets(&self) -> usize {
        self.remotes.len()
    }

    /// A target, and how it is used.
    pub fn target(&self, target: usize) -> Option<&RemoteConfig> {
        self.remotes.get(target).map(Remote::config)
    }

    /// What was agreed with each target that there is a session with.
    pub fn parameters(&self) -> impl Iterator<Item = Parameters> {
        self.remotes.iter().filter_map(Remote::parameters)
    }

    /// A target of back ends, for a session beside our own: where it is now, and those of its LUNs that can be used. None while there is no
    /// session, or something is wrong with a LUN that volumes have extents of: only ours finds out what it is. `port`: the initiator port of
    /// that session.
    pub fn way_to(&self, target: usize, port: u16) -> Option<Way<'_>> {
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
        Some(Way { config: remote.config(), portal, units, isid: self.ports.isid(self.twins[target], port) })
    }

    /// A session beside our own was lost, or, with `changed`, was told that a LUN may be another disk than it was.
    pub fn doubt(&mut self, now: Instant, target: usize, changed: bool) {
        if let Some(remote) = self.remotes.get_mut(target) {
            remote.doubt(now, changed);
        }
    }

    /// The portal of our session with a target.
    pub fn portal(&self, target: usize) -> Option<SocketAddr> {
        self.remotes.get(target)?.path().ok()
    }

    /// A session beside our own was told that portals of a target serve otherwise than before.
    pub fn access_changed(&mut self, now: Instant, target: usize) {
        if let Some(remote) = self.remotes.get_mut(target) {
            remote.access_changed(now);
        }
    }

    /// Nothing is under way any more at a target of what a session beside our own has lost there by then, at a port of another portal
    /// group than that where it logs in now. If not, that is seen to.
    pub fn fence(&mut self, target: usize, since: Instant) -> bool {
        self.remotes.get_mut(target).is_none_or(|remote| remote.fence(since))
    }

    /// A LUN of a target, of which volumes have extents, is not used.
    pub fn is_refused(&self, target: usize) -> bool {
        let used = |id| self.map().lun_use(id).is_some_and(|lun| lun.is_taken());
        self.of_target(target).filter(|(one, _)| one.refused.is_some()).any(|(_, id)| used(id))
    }

    /// The back ends of an iSCSI target.
    fn of_target(&self, target: usize) -> impl Iterator<Item = (&BackEnd, LunId)> {
        let all = self.back_ends.iter().zip((0..).map(LunId));
        all.filter(move |(one, _)| one.plan.through == Through::Session(target))
    }

    /// LUNs that are behind no iSCSI target.
    pub fn elsewhere(&self) -> impl Iterator<Item = LunId> {
        let all = self.back_ends.iter().zip((0..).map(LunId));
        all.filter(|(one, _)| matches!(one.plan.through, Through::Port(..))).map(|(_, lun)| lun)
    }

    /// Host ports of the instance in fabrics.
    pub fn hosts(&self) -> &[HostPort] {
        &self.hosts
    }

    /// The same, to carry what they say.
    pub fn hosts_mut(&mut self) -> &mut [HostPort] {
        &mut self.hosts
    }

    /// Jobs that have not ended.
    pub fn open_jobs(&self) -> usize {
        self.volumes.open_jobs()
    }

    /// The back ends as they are now.
    pub fn back_ends(&self) -> impl Iterator<Item = BackEndSeen<'_>> {
        self.back_ends.iter().map(|back_end| match back_end.plan.through {
            Through::Session(remote) => BackEndSeen::of_session(back_end, &self.remotes[remote]),
            Through::Port(port, target) => BackEndSeen::of_port(back_end, &self.hosts[port], target),
        })
    }

    /// What a back-end LUN is, once it was reached.
    pub fn found(&self, lun: LunId) -> Option<&Properties> {
        self.back_ends.get(usize::from(lun.0))?.found.as_deref()
    }

    /// A job of a host.
    pub fn submit(&mut self, job: VolumeJob) {
        let VolumeJob { owner, tag, volume, work, data } = job;
        let BlockWork { op, lba, blocks, bytes, fua } = work;
        let id = self.next_job;
        self.next_job += 1;
        self.asked.insert(id, Asked { owner, tag });
        // A read brings its data; of a write so many bytes count as have come.
        let has_come = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let brought = if op == IoOp::Read { bytes } else { bytes.min(has_come) };
        self.buffers.begin(id, data);
        self.volumes.submit(id, VolumeIo { volume, op, lba, blocks, bytes: brought, fua });
    }

    /// What has ended since the last call.
    pub fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// Back ends that were reached, or are others than before, since the last call.
    pub fn take_found(&mut self) -> Vec<LunId> {
        std::mem::take(&mut self.found)
    }

    /// Waits for back ends.
    ///
    /// # Errors
    /// When a descriptor cannot be waited for.
    pub fn watch(&self, poller: &mut Poller) -> io::Result<()> {
        self.remotes.iter().try_for_each(|remote| remote.watch(poller))?;
        (HOST_PORTS..).step_by(2).zip(&self.hosts).try_for_each(|(token, port)| port.watch(poller, token))
    }

    /// The poller has seen something of a back end.
    pub fn happened(&mut self, token: u64, readable: bool, writable: bool) {
        if let Some(number) = token.checked_sub(HOST_PORTS) {
            let adapter = self.hosts.get_mut((number / 2) as usize).and_then(HostPort::adapter_mut);
            adapter.into_iter().for_each(|adapter| adapter.happened(number % 2 == 1, readable, writable));
        } else if let Some(remote) = self.remotes.get_mut((token - BACK_ENDS) as usize) {
            remote.happened(readable, writable);
        }
    }

    /// When to take a turn at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let wiper = self.wiper.poll_timeout(self.map(), |lun| self.can_wipe(lun));
        let hosts = self.hosts.iter().filter_map(HostPort::poll_timeout);
        self.remotes.iter().filter_map(Remote::poll_timeout).chain(hosts).chain(wiper).min()
    }

    /// A back end is there, and the one whose extents volumes have or had.
    fn can_wipe(&self, lun: LunId) -> bool {
        self.back_ends.get(usize::from(lun.0)).is_some_and(BackEnd::is_there)
    }

    /// What was wiped since the last call: when that is kept, the map is to be told.
    pub fn take_wiped(&mut self) -> Option<Freed> {
        self.wiper.take_finished()
    }

    /// It is not kept that something was wiped.
    pub fn wipe_later(&mut self, now: Instant) {
        self.wiper.later(now);
    }

    /// Does what there is to do. True if there may be more.
    pub fn turn(&mut self, now: Instant, poller: &mut Poller) -> bool {
        let mut more = false;
        for remote in &mut self.remotes {
            more |= remote.turn(now, poller, &mut self.buffers);
        }
        for (token, port) in (HOST_PORTS..).step_by(2).zip(&mut self.hosts) {
            port.turn(now, poller, token);
        }
        self.serve(now, poller);
        more
    }

    /// Carries what volumes and back ends say to each other, until all are silent.
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
                self.remotes[number].serve(now, poller, &mut self.buffers);
                while let Some(event) = self.remotes[number].next_event() {
                    silent = false;
                    match event {
                        Event::Changed => self.look(|through| through == Through::Session(number)),
                        Event::Done { tag, result } => self.ended(now, tag, result),
                    }
                }
            }
            for number in 0..self.hosts.len() {
                while let Some(event) = self.hosts[number].host_mut().poll_event() {
                    silent = false;
                    match event {
                        host::Event::Disks => {
                            self.look(|through| matches!(through, Through::Port(port, _) if port == number));
                        }
                        host::Event::Done { tag, result, data } => {
                            if result.is_ok() {
                                self.buffers.copy_in(tag, &data);
                            }
                            self.ended(now, tag, result);
                        }
                        // Nobody has asked the fabric anything.
                        host::Event::Answer { .. } => {}
                    }
                }
            }
            if silent {
                return;
            }
        }
    }

    /// Hands a request to who carries it there.
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

    /// A request to a back end has ended.
    fn ended(&mut self, now: Instant, tag: u64, result: Result<disk::Done, Error>) {
        if self.wiper.ended(now, tag, result.is_ok()) {
            if let Err(error) = result {
                tracing::warn!(%error, "what a deleted volume had is not wiped");
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
                let Some(Asked { owner, tag }) = self.asked.remove(&job) else { return };
                if let IoStatus::Failed { key, code } = status {
                    tracing::warn!(%key, %code, "a host's request for a volume failed");
                }
                self.done.push(Done { owner, tag, data, status });
            }
        }
    }

    /// Something about the disks is new that these carry.
    fn look(&mut self, of: impl Fn(Through) -> bool) {
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
                Some(why) => tracing::error!(back_end = back_end.plan.name, why, "a back end is not used"),
                None => {
                    back_end.plan.identity = identity(found);
                    tracing::info!(back_end = back_end.plan.name, blocks = found.blocks, "a back end is there");
                }
            }
            (back_end.found, back_end.refused) = (Some(Box::new(found.clone())), refused);
            self.found.push(id);
        }
    }

    /// A host port is logged in to a fabric.
    pub fn is_in_fabric(&self) -> bool {
        self.hosts.iter().any(|port| port.host().port_id() != FcId::ZERO)
    }

    /// Logs out of fabrics, which take a moment to answer.
    pub fn leave_fabrics(&mut self, now: Instant) {
        self.hosts.iter_mut().for_each(|port| port.host_mut().log_out(now));
    }

    /// Logs out of targets.
    pub fn shut_down(&mut self, now: Instant) {
        for remote in &mut self.remotes {
            remote.log_out(now, &mut self.buffers);
        }
    }
}
