//! Virtualization switches of document 003 with the conventional path: storage systems whose LUNs
//! are virtual disks on LUNs of other storage systems.
//!
//! ```text
//!   host -> target::Session -> controller -> volume::Volumes -> sessions to back ends
//! ```
//!
//! The processor of the switch is its controller: each command of a host takes its service time. A
//! back end that is lost has `retry` to return; requests to it wait.

use super::World;
use super::storage::Ended;
use crate::iscsi::{Event, Order};
use crate::net::Net;
use sanloom_fc::config::{BackEndTarget, EthernetNode, MediumKind, VolumeSpec};
use sanloom_fc::fcp::initiator::Outcome;
use sanloom_fc::san::Lab;
use sanloom_scsi::disk::{Done, Error, ErrorKind, Op, Request};
use sanloom_scsi::iscsi::initiator::Command;
use sanloom_scsi::map::{LunConfig, LunId, Map, PoolConfig, PoolId, VolumeId};
use sanloom_scsi::scsi::{DataDirection, Io, IoStatus, IoTag};
use sanloom_scsi::volume::{Output, VolumeIo, Volumes};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bit of a tag that may be used again in the same session.
const AGAIN: u64 = 1 << 63;
/// Delay before a request that a back end refused is sent again, in ps.
const RETRY_PS: u64 = 10_000_000_000;

/// A session of a virtualization switch with a back-end target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct BackSession {
    /// Index of the switch among the storage systems.
    pub switch: u16,
    /// Index of the storage system with the back-end LUNs.
    pub storage: u16,
    /// Number of the portal.
    pub portal: u16,
}

/// Returns the sessions of all virtualization switches with their back ends.
pub(super) fn sessions(lab: &Lab) -> Vec<BackSession> {
    let mut sessions = BTreeSet::new();
    let switches: Vec<u16> = (0..lab.storage.len() as u16).filter(|storage| is_switch(lab, *storage)).collect();
    if switches.is_empty() || lab.ethernet_links.is_empty() {
        return Vec::new();
    }
    let paths = lab.iscsi_paths();
    let is_linked = |switch: &u16| !paths.interfaces_of(EthernetNode::Storage(*switch)).is_empty();
    for switch in switches.into_iter().filter(is_linked) {
        for back_end in &lab.live.back_ends {
            if let Some((storage, portal)) = target_of(lab, &back_end.target)
                && !paths.portals(storage).is_empty()
            {
                sessions.insert(BackSession { switch, storage, portal });
            }
        }
    }
    sessions.into_iter().collect()
}

/// Returns whether the LUNs of a storage system are virtual disks.
pub(crate) fn is_switch(lab: &Lab, storage: u16) -> bool {
    lab.live.medium(storage).kind == MediumKind::Volumes
}

/// Returns the storage system of a back end and the number of its first portal there.
fn target_of(lab: &Lab, target: &BackEndTarget) -> Option<(u16, u16)> {
    let BackEndTarget::Iscsi(target) = target else { return None };
    let (&storage, config) = lab.live.iscsi.iter().find(|(_, config)| config.name == target.name)?;
    let portal = config.portals.iter().position(|portal| target.portals.contains(portal)).unwrap_or(0);
    Some((storage, portal as u16))
}

/// A request to a back end.
#[derive(Clone, Copy, Debug)]
struct Pending {
    lun: LunId,
    request: Request,
    /// Time at which it fails if its session is lost, in ps.
    until_ps: Option<u64>,
}

/// A LUN of a back end.
struct BackLun {
    /// Number of the session among all sessions of the lab.
    session: u32,
    lun: u16,
    block_bytes: u32,
    /// Time for which requests wait for a lost session, in ps.
    retry_ps: u64,
}

/// A virtualization switch.
struct Switch {
    volumes: Volumes,
    /// Volumes by LUN.
    units: BTreeMap<u16, VolumeId>,
    luns: Vec<BackLun>,
    /// Commands at the controller, by session and tag.
    arrived: BTreeMap<(u16, IoTag), Io>,
    /// Jobs with the session and tag of their command.
    jobs: BTreeMap<u64, (u16, IoTag)>,
    next_job: u64,
    requests: BTreeMap<u64, Pending>,
    /// Requests that are sent again, or fail, at a time in ps.
    due: BTreeSet<(u64, u64)>,
}

/// A virtualization switch at the current time.
pub(crate) struct SwitchSeen<'a> {
    /// Index among the storage systems.
    pub storage: u16,
    pub volumes: &'a Volumes,
    /// Volumes by LUN.
    pub units: &'a BTreeMap<u16, VolumeId>,
    /// LUNs of back ends in the order of the map: number of the session, LUN and block size.
    pub back_ends: Vec<(u32, u16, u32)>,
    /// Requests that wait to be sent again.
    pub waiting: u64,
}

/// Returns the virtualization switches of a world, in the order of the storage systems.
pub(crate) fn virtualization(world: &World) -> impl Iterator<Item = SwitchSeen<'_>> {
    let switches = world.switches.iter().flat_map(|switches| &switches.switches);
    switches.map(|(&storage, switch)| SwitchSeen {
        storage,
        volumes: &switch.volumes,
        units: &switch.units,
        back_ends: switch.luns.iter().map(|lun| (lun.session, lun.lun, lun.block_bytes)).collect(),
        waiting: switch.due.len() as u64,
    })
}

/// All virtualization switches of a lab.
#[derive(Default)]
pub(super) struct Switches {
    switches: BTreeMap<u16, Switch>,
    /// Number of the first session with a back end; those of hosts have lower numbers.
    first: u32,
    /// Switch of each session from `first` on.
    owners: Vec<u16>,
    pub orders: VecDeque<(u32, Order)>,
    /// Commands that have ended: switch, session, tag and status.
    pub ended: VecDeque<(u16, u16, IoTag, IoStatus)>,
    /// Timer of the network for requests that wait.
    timer: u32,
}

impl Switches {
    /// Returns the switches of a lab. Their sessions are numbered from `first` on.
    pub fn new(lab: &Lab, first: u32, timer: u32) -> Switches {
        let sessions = sessions(lab);
        let owners: Vec<u16> = sessions.iter().map(|session| session.switch).collect();
        let number = |switch: u16, storage: u16| {
            let at = sessions.iter().position(|session| (session.switch, session.storage) == (switch, storage));
            at.map(|at| first + at as u32)
        };
        let build = |switch: u16| (switch, Switch::new(lab, switch, |storage| number(switch, storage)));
        let switches = owners.iter().copied().collect::<BTreeSet<u16>>().into_iter().map(build).collect();
        Switches { switches, first, owners, timer, ..Switches::default() }
    }

    /// Returns whether a session leads to a back end.
    pub fn owns(&self, session: u32) -> bool {
        session >= self.first && ((session - self.first) as usize) < self.owners.len()
    }

    /// Takes note of a command that has reached the controller of a switch.
    pub fn arrive(&mut self, storage: u16, owner: u16, io: &Io) {
        if let Some(switch) = self.switches.get_mut(&storage) {
            switch.arrived.insert((owner, io.tag), *io);
        }
    }

    /// Forgets a command that has left the controller of a switch without a result.
    pub fn cancel(&mut self, storage: u16, owner: u16, tag: IoTag) {
        if let Some(switch) = self.switches.get_mut(&storage) {
            switch.arrived.remove(&(owner, tag));
        }
    }

    /// Starts the work of a command that the controller of a switch has processed. Returns false if
    /// the storage system is no switch, or the command has failed there.
    pub fn begin(&mut self, net: &mut Net, storage: u16, ended: &Ended) -> bool {
        let Some(switch) = self.switches.get_mut(&storage) else { return false };
        let Some(io) = switch.arrived.remove(&(ended.nport, ended.tag)) else { return false };
        let volume = switch.units.get(&io.unit).copied().filter(|_| ended.status == IoStatus::Good);
        let Some(volume) = volume else { return false };
        switch.next_job += 1;
        switch.jobs.insert(switch.next_job, (ended.nport, ended.tag));
        let Io { op, lba, blocks, bytes, fua, .. } = io;
        switch.volumes.submit(switch.next_job, VolumeIo { volume, op, lba, blocks, bytes, fua });
        self.drain(net, storage);
        true
    }

    /// Executes the outputs of the volumes of a switch.
    fn drain(&mut self, net: &mut Net, storage: u16) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        while let Some(output) = switch.volumes.poll_output() {
            match output {
                Output::Request { lun, request, .. } => {
                    switch.requests.insert(request.tag, Pending { lun, request, until_ps: None });
                    self.orders.extend(switch.order(request.tag));
                    net.set_timer_earlier(self.timer, net.now());
                }
                // Payload does not exist, so nothing differs.
                Output::Repeat { .. } => {}
                Output::Compare { job, .. } => switch.volumes.compared(job, None),
                Output::Done { job, status } => {
                    let command = switch.jobs.remove(&job);
                    self.ended.extend(command.map(|(owner, tag)| (storage, owner, tag, status)));
                }
            }
        }
    }

    /// Handles a change of a session with a back end.
    pub fn event(&mut self, net: &mut Net, event: Event) {
        let (Event::Up(session) | Event::Down(session) | Event::Done { session, .. }) = event;
        let storage = self.owners[(session - self.first) as usize];
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        match event {
            Event::Down(_) => {}
            Event::Up(_) => {
                let waits = |pending: &Pending| switch.luns[usize::from(pending.lun.0)].session == session;
                let again: Vec<u64> = switch.due.iter().map(|(_, tag)| *tag).collect();
                for tag in again.into_iter().filter(|tag| switch.requests.get(tag).is_some_and(waits)) {
                    switch.due.retain(|(_, other)| *other != tag);
                    self.orders.extend(switch.order(tag));
                }
            }
            Event::Done { tag, outcome, .. } => self.answered(net, storage, tag & !AGAIN, outcome),
        }
    }

    /// Handles the result of a request.
    fn answered(&mut self, net: &mut Net, storage: u16, tag: u64, outcome: Outcome) {
        let now = net.now();
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let Some(pending) = switch.requests.get_mut(&tag) else { return };
        let retry_ps = switch.luns[usize::from(pending.lun.0)].retry_ps;
        let result = match outcome {
            Outcome::Completed { status: status::GOOD, .. } => Ok(Done::All),
            Outcome::Completed { status, .. } if !matches!(status, status::BUSY | status::TASK_SET_FULL) => {
                Err(Error { kind: ErrorKind::Medium, sense: None })
            }
            _ if pending.until_ps.is_some_and(|until_ps| until_ps <= now) => {
                Err(Error { kind: ErrorKind::PathLost, sense: None })
            }
            Outcome::Completed { .. } | Outcome::Aborted(_) | Outcome::PortGone => {
                let until_ps = *pending.until_ps.get_or_insert(now.saturating_add(retry_ps));
                let at_ps = if outcome == Outcome::PortGone { until_ps } else { now + RETRY_PS };
                switch.due.insert((at_ps, tag));
                return net.set_timer_earlier(self.timer, at_ps);
            }
        };
        switch.requests.remove(&tag);
        switch.volumes.ended(tag, result);
        self.drain(net, storage);
    }

    /// Sends requests again that are due, or fails them.
    pub fn timer_expired(&mut self, net: &mut Net) {
        let now = net.now();
        for switch in self.switches.values_mut() {
            while let Some(&(at_ps, tag)) = switch.due.first().filter(|(at_ps, _)| *at_ps <= now) {
                switch.due.remove(&(at_ps, tag));
                self.orders.extend(switch.order(tag));
            }
            if let Some(&(at_ps, _)) = switch.due.first() {
                net.set_timer_earlier(self.timer, at_ps);
            }
        }
    }
}

impl Switch {
    fn new(lab: &Lab, number: u16, session: impl Fn(u16) -> Option<u32>) -> Switch {
        let pool = |pool: &sanloom_fc::config::Pool| PoolConfig {
            name: pool.name.as_str().into(),
            block_bytes: pool.block_bytes,
            extent_blocks: pool.extent_bytes / u64::from(pool.block_bytes),
        };
        let mut luns = Vec::new();
        let mut configs = Vec::new();
        let mut sizes = Vec::new();
        for back_end in &lab.live.back_ends {
            let Some((storage, _)) = target_of(lab, &back_end.target) else { continue };
            let (Some(session), Some(lun)) = (session(storage), lab.lun(storage, back_end.lun)) else { continue };
            let (block_bytes, retry_ps) = (lun.block_bytes, back_end.retry_for.0);
            luns.push(BackLun { session, lun: back_end.lun, block_bytes, retry_ps });
            configs.push(LunConfig { name: back_end.name.as_str().into(), pool: PoolId(back_end.pool) });
            sizes.push(lun.blocks);
        }
        let mut map = Map::new(lab.live.pools.iter().map(pool).collect(), configs);
        for (lun, blocks) in (0..).zip(sizes) {
            map.reached(LunId(lun), blocks);
        }
        let mut units = BTreeMap::new();
        // A running instance creates them in the order of the lab, which decides their extents.
        let mut ordered: Vec<(u16, &VolumeSpec)> = lab.volumes_of(number).into_iter().collect();
        ordered.sort_by_key(|(_, volume)| lab.live.volumes.iter().position(|one| one.name == volume.name));
        for (lun, volume) in ordered {
            let blocks = lab.lun(number, lun).map_or(0, |lun| lun.blocks);
            if let Ok(change) = map.plan_create(&volume.name, PoolId(volume.pool), volume.shape, blocks) {
                map.apply(change);
                units.extend(map.find(&volume.name).map(|id| (lun, id)));
            }
        }
        Switch {
            volumes: Volumes::new(map),
            units,
            luns,
            arrived: BTreeMap::new(),
            jobs: BTreeMap::new(),
            next_job: 0,
            requests: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Returns the order that sends a request.
    fn order(&self, tag: u64) -> Option<(u32, Order)> {
        let Pending { lun, request, .. } = self.requests.get(&tag)?;
        let back = &self.luns[usize::from(lun.0)];
        let &Request { op, lba, blocks, fua, .. } = request;
        let bytes = blocks * back.block_bytes;
        let (cdb, direction, bytes) = match op {
            Op::Read => (Cdb::Read { lba, blocks, fua }, DataDirection::Read, bytes),
            Op::Write | Op::WriteZeroes { .. } => (Cdb::Write { lba, blocks, fua }, DataDirection::Write, bytes),
            Op::Flush => (Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false }, DataDirection::None, 0),
            Op::Unmap | Op::Status => (Cdb::TestUnitReady, DataDirection::None, 0),
        };
        let lun = lun::to_bytes(back.lun).unwrap_or_default();
        let command = Command { id: AGAIN | tag, lun, cdb: cdb.to_bytes(), direction, bytes };
        Some((back.session, Order::Submit(command)))
    }
}
