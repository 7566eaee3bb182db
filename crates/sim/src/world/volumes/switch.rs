//! The state of one gateway: its back ends, the commands of its hosts and their requests.

use super::hosts::{NexusLosses, OwnHost};
use super::paths::{ArrayPaths, Chosen, PathsOf};
use super::{AGAIN, BackSession};
use crate::host::FifoServer;
use sanloom_fc::config::{BackEndTarget, Gateway};
use sanloom_fc::fcp::initiator::Outcome;
use sanloom_fc::san::{Lab, LunOfLab, VirtualDisks, back_end_luns};
use sanloom_scsi::disk::{Op, Request, WriteCache};
use sanloom_scsi::iscsi::forward::BackUnit;
use sanloom_scsi::iscsi::initiator::Command;
use sanloom_scsi::map::{LunId, Map, VolumeId};
use sanloom_scsi::ordered::{OrderedMap, OrderedSet};
use sanloom_scsi::scsi::{DataDirection, Io, IoOp, IoTag};
use sanloom_scsi::volume::Volumes;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::{Wwpn, lun};
use std::collections::BTreeMap;

/// Number of lost paths after which a request to the array is answered with BUSY.
const MAX_LOST_PATHS: u8 = 8;

/// A request to a back end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) job: u64,
    pub(super) lun: LunId,
    pub(super) request: Request,
    /// Offset of its data in those of the job, in bytes; `None`: they are not those of the host.
    pub(super) at: Option<u32>,
    /// Time at which it fails if its session is lost, in ps.
    pub(super) until_ps: Option<u64>,
    /// Path in Fibre Channel on which it was sent, and the time in ps.
    pub(super) path: Option<(Chosen, u64)>,
    /// Number of paths that it has lost.
    pub(super) lost_paths: u8,
}

/// Way to a back end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// Session with this number among all sessions of the lab.
    Session(u32),
    /// One of the paths to the back end in Fibre Channel.
    Fabric,
    /// One of the paths to the array whose LUNs are those of the gateway.
    Array,
}

/// A LUN of a back end.
pub(super) struct BackLun {
    /// `None`: the gateway does not reach it, so that no virtual disk has an extent there.
    pub(super) route: Option<Route>,
    pub(super) lun: u16,
    pub(super) block_bytes: u32,
    /// Time for which requests wait for a lost path, in ps.
    pub(super) retry_ps: u64,
}

/// The part of a command's data that a request carries.
pub(super) struct Piece {
    /// Offset in the data of the command, and length, in bytes.
    pub(super) at: u32,
    pub(super) bytes: u32,
    /// Tag of the request.
    pub(super) tag: u64,
    /// Read data that have arrived, in bytes.
    pub(super) arrived: u32,
}

/// A command of a host after the controller.
pub(super) struct Job {
    pub(super) owner: u16,
    pub(super) io: Io,
    /// Host of its session; `None` if it is not known.
    pub(super) host: Option<u16>,
    /// Data that are passed on together, in bytes; `None`: all of them.
    pub(super) grain: Option<u32>,
    /// Requests with data of the host, in the order of their offsets.
    pub(super) pieces: Vec<Piece>,
    /// Read data that were passed to the host, in bytes.
    pub(super) passed: u32,
    /// True if its task was aborted or its host is lost.
    pub(super) is_recalled: bool,
}

/// A gateway.
pub(super) struct Switch {
    pub(super) gateway: Gateway,
    /// Frame size of the fabric in bytes.
    pub(super) frame_bytes: u32,
    pub(super) volumes: Volumes,
    /// Volume of each LUN.
    pub(super) units: Vec<Option<VolumeId>>,
    pub(super) luns: Vec<BackLun>,
    /// Paths to the array whose LUNs are those of the gateway, or to back ends.
    pub(super) paths: ArrayPaths,
    /// Commands at the controller, by session and tag, and whether they were recalled there.
    pub(super) arrived: OrderedMap<(u16, IoTag), (Io, bool)>,
    /// Write data that have arrived before their command is complete, by session and tag.
    pub(super) data: OrderedMap<(u16, IoTag), u32>,
    /// Empty lists of pieces, whose memory is used again.
    pub(super) spare: Vec<Vec<Piece>>,
    pub(super) jobs: OrderedMap<u64, Job>,
    pub(super) by_task: OrderedMap<(u16, IoTag), u64>,
    pub(super) next_job: u64,
    /// Tag of the next request of a LUN that is no virtual disk.
    pub(super) next_request: u64,
    pub(super) requests: OrderedMap<u64, Pending>,
    /// Requests that are sent again, or fail, at a time in ps.
    pub(super) due: OrderedSet<(u64, u64)>,
    /// Jobs that the processor has prepared at a time in ps.
    pub(super) prepared: OrderedSet<(u64, u64)>,
    pub(super) processor: FifoServer,
    /// Commands that took this path.
    pub(super) commands: u64,
    /// Commands that were ended early.
    pub(super) recalled: u64,
    /// Hosts that have had a session.
    pub(super) hosts: BTreeMap<u16, OwnHost>,
    pub(super) nexus_losses: NexusLosses,
    /// Jobs that were ended early and whose requests have not ended.
    pub(super) recalled_jobs: usize,
    /// Commands that ended with ABORTED COMMAND.
    pub(super) aborted: u64,
    /// Logouts of virtual N_Ports, because their host was lost.
    pub(super) logouts: u64,
    /// Sessions and channels that the gateway has ended.
    pub(super) ended_sessions: u64,
    /// Unit attentions at the end of the warm-up.
    pub(super) attentions_before: u64,
    /// Time of forwarded PDUs that the processor has not begun, in ps.
    pub(super) owed_ps: u64,
    /// Forwarded commands at the end of the warm-up.
    pub(super) forwarded_before: u64,
}

impl Job {
    /// Takes note that the first `bytes` bytes of the request at `at` have arrived.
    pub(super) fn arrived(&mut self, at: u32, bytes: u32) {
        if let Some(piece) = self.pieces.iter_mut().find(|piece| piece.at == at) {
            piece.arrived = bytes.min(piece.bytes);
        }
    }

    /// Returns the bytes to pass to the host, if there are more than before.
    pub(super) fn take_passable(&mut self) -> Option<u32> {
        let mut end = 0;
        for piece in &self.pieces {
            if piece.at > end {
                break;
            }
            end = piece.at + piece.arrived;
            if piece.arrived < piece.bytes {
                break;
            }
        }
        let grain = self.grain?;
        let bytes = end / grain * grain;
        (bytes > self.passed && self.io.op == IoOp::Read).then(|| {
            self.passed = bytes;
            bytes
        })
    }
}

impl Switch {
    pub(super) fn new(
        lab: &Lab,
        number: u16,
        session: impl Fn(u16) -> Option<u32>,
        nport: &dyn Fn(Wwpn) -> Option<u16>,
    ) -> Switch {
        let gateway = lab.live.gateways.get(&number).cloned().unwrap_or_default();
        let mut luns = Vec::new();
        if gateway.through.is_some() {
            let lun = |(number, lun): (u16, &sanloom_fc::config::Lun)| BackLun {
                route: Some(Route::Array),
                lun: number,
                block_bytes: lun.block_bytes,
                retry_ps: 0,
            };
            luns.extend((0..).zip(&lab.storage[usize::from(number)].luns).map(lun));
        }
        let route_to = |lun: &LunOfLab| match &lab.live.back_ends[usize::from(lun.back_end)].target {
            BackEndTarget::Iscsi(_) => session(lun.target.storage).map(Route::Session),
            BackEndTarget::Fcp(target) => target.paths().any(|[own, _]| nport(own).is_some()).then_some(Route::Fabric),
        };
        let mut paths = ArrayPaths::new(lab, &gateway, nport);
        let (mut map, mut units) = (Map::new(Vec::new(), Vec::new()), Vec::new());
        if gateway.through.is_none() {
            let disks = VirtualDisks::new(lab, &lab.live, number, |lun| route_to(lun).is_some());
            for (number, lun) in (0..).zip(&disks.luns) {
                if let BackEndTarget::Fcp(target) = &lab.live.back_ends[usize::from(lun.back_end)].target {
                    paths.add_back_end(lab, LunId(number), target, nport);
                }
            }
            luns.extend(disks.luns.iter().map(|lun| BackLun {
                route: route_to(lun),
                lun: lun.target.lun,
                block_bytes: lun.block_bytes,
                retry_ps: lab.live.back_ends[usize::from(lun.back_end)].retry_for.0,
            }));
            for (lun, volume) in disks.volumes {
                units.resize(units.len().max(usize::from(lun) + 1), None);
                units[usize::from(lun)] = Some(volume);
            }
            map = disks.map;
        }
        Switch {
            frame_bytes: frame_bytes(lab, &gateway),
            paths,
            gateway,
            volumes: Volumes::new(map),
            units,
            luns,
            arrived: OrderedMap::new(),
            data: OrderedMap::new(),
            spare: Vec::new(),
            jobs: OrderedMap::new(),
            by_task: OrderedMap::new(),
            next_job: 0,
            next_request: 0,
            requests: OrderedMap::new(),
            due: OrderedSet::new(),
            prepared: OrderedSet::new(),
            processor: FifoServer::default(),
            commands: 0,
            recalled: 0,
            hosts: BTreeMap::new(),
            nexus_losses: NexusLosses::default(),
            recalled_jobs: 0,
            aborted: 0,
            logouts: 0,
            ended_sessions: 0,
            attentions_before: 0,
            owed_ps: 0,
            forwarded_before: 0,
        }
    }

    /// Returns whether a unit has data behind it.
    pub(super) fn has_unit(&self, unit: u16) -> bool {
        match &self.gateway.through {
            Some(_) => usize::from(unit) < self.luns.len(),
            None => self.volume(unit).is_some(),
        }
    }

    /// Returns the volume of a unit.
    pub(super) fn volume(&self, unit: u16) -> Option<VolumeId> {
        *self.units.get(usize::from(unit))?
    }

    /// Returns the tags of the requests of a job.
    pub(super) fn requests_of(&self, job: u64) -> Vec<u64> {
        self.requests.iter().filter(|(_, pending)| pending.job == job).map(|(tag, _)| *tag).collect()
    }

    /// Returns the N_Port of a request; `None` for a session of iSCSI, and for a request without a
    /// path.
    pub(super) fn nport_of(&self, pending: &Pending) -> Option<u16> {
        match self.luns.get(usize::from(pending.lun.0))?.route? {
            Route::Session(_) => None,
            Route::Fabric | Route::Array => pending.path.map(|(chosen, _)| chosen.nport),
        }
    }

    /// Selects the path of a request in Fibre Channel.
    pub(super) fn choose_path(&mut self, now_ps: u64, tag: u64) {
        let Some(pending) = self.requests.get_mut(&tag) else { return };
        let back = &self.luns[usize::from(pending.lun.0)];
        let user = match back.route {
            Some(Route::Array) => self.paths.user(self.jobs.get(&pending.job).and_then(|job| job.host)),
            Some(Route::Fabric) => Some(PathsOf::BackEnd(pending.lun)),
            Some(Route::Session(_)) | None => None,
        };
        let bytes = pending.request.blocks.saturating_mul(back.block_bytes);
        pending.path = user.and_then(|user| self.paths.choose(user, bytes)).map(|chosen| (chosen, now_ps));
    }

    /// Takes note of the end of a request. Returns whether it is sent again, because
    /// its path is lost and another one is up.
    pub(super) fn fails_over(&mut self, now_ps: u64, tag: u64, outcome: Outcome) -> bool {
        let Some(pending) = self.requests.get_mut(&tag) else { return false };
        let Some((chosen, sent_ps)) = pending.path.take() else { return false };
        self.paths.release(&chosen, matches!(outcome, Outcome::Completed { .. }), [sent_ps, now_ps]);
        // A recalled command has a time at which it fails.
        let goes_on =
            outcome == Outcome::PortGone && pending.until_ps != Some(0) && pending.lost_paths < MAX_LOST_PATHS;
        if !goes_on || !self.paths.has_other(&chosen) {
            return false;
        }
        pending.lost_paths += 1;
        self.choose_path(now_ps, tag);
        true
    }

    /// Returns the command of a request.
    pub(super) fn command(&self, tag: u64) -> Option<(&Pending, Command)> {
        let pending = self.requests.get(&tag)?;
        let back = &self.luns[usize::from(pending.lun.0)];
        let Request { op, lba, blocks, fua, .. } = pending.request;
        let bytes = blocks * back.block_bytes;
        let (cdb, direction, bytes) = match op {
            Op::Read => (Cdb::Read { lba, blocks, fua }, DataDirection::Read, bytes),
            Op::Write | Op::WriteZeroes { .. } => (Cdb::Write { lba, blocks, fua }, DataDirection::Write, bytes),
            Op::Flush => (Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false }, DataDirection::None, 0),
            Op::Unmap | Op::Status => (Cdb::TestUnitReady, DataDirection::None, 0),
        };
        let lun = lun::to_bytes(back.lun).unwrap_or_default();
        Some((pending, Command { id: AGAIN | tag, lun, cdb: cdb.to_bytes(), direction, bytes }))
    }
}

/// Returns the largest frame of the N_Ports of a gateway, in bytes of payload.
pub(in crate::world) fn frame_bytes(lab: &Lab, gateway: &Gateway) -> u32 {
    let own = gateway.through.as_ref().map(|ports| &ports.initiators);
    let hbas = lab.hosts.iter().flat_map(|host| &host.hbas);
    let sizes = hbas.filter(|hba| own.is_none_or(|names| names.contains(&hba.wwpn))).map(|hba| hba.receive_size_bytes);
    sizes.min().unwrap_or(2048).into()
}

/// Returns the units of a back end of a switch, and the LUNs of the map that are not behind an
/// iSCSI target.
pub(in crate::world) fn units_of(lab: &Lab, back: BackSession) -> (Vec<BackUnit>, Vec<LunId>) {
    let (mut units, mut elsewhere) = (Vec::new(), Vec::new());
    for (id, (back_end, target, _)) in (0..).zip(back_end_luns(lab, &lab.live)) {
        match lab.live.back_ends[usize::from(back_end)].target {
            BackEndTarget::Fcp(_) => elsewhere.push(LunId(id)),
            BackEndTarget::Iscsi(_) if target.storage == back.storage => {
                let lun = lun::to_bytes(target.lun).unwrap_or_default();
                units.push(BackUnit { id: LunId(id), lun, cache: WriteCache::default() });
            }
            BackEndTarget::Iscsi(_) => {}
        }
    }
    (units, elsewhere)
}
