//! Disks of an [`Initiator`] with several Ethernet ports: [`Multipath`].
//!
//! Logical units with the same designator (VPD page 83) and the same size are one disk, and a disk
//! is one NBD export. One path is used at a time; it changes when it cannot be used and another one
//! can. The disk machine of a lost path returns its requests after [`FAST_IO_FAIL`]; they are then
//! repeated on another path. By that time no frame of the lost path is in the fabric any more
//! (R_A_TOV). A target that has received all data of a write and waits longer than that may still
//! execute it after its repetition. Without a usable path, requests wait for [`NO_PATH`].

use super::Initiator;
use super::host::{DiskView, Host, lun_name};
use crate::exports::export_of;
use sanloom_api::fcoe::{DiskPath, MultipathDisk, PathState};
use sanloom_scsi::disk::{Designator, Done, Error, ErrorKind, Properties, Request};
use sanloom_scsi::nbd::Export;
use sanloom_scsi::time::{Instant, Span};
use std::collections::BTreeMap;

/// Time after which requests of a lost path are repeated on another one, as `fast_io_fail_tmo` of
/// multipath.conf(5): the default of R_A_TOV, the lifetime of a frame (FC-FS-3).
pub const FAST_IO_FAIL: Span = Span::from_secs(10);
/// Time after which a request fails if no path can be used.
const NO_PATH: Span = Span::from_secs(60);
/// Maximum number of paths that a request is sent on.
const MAX_ATTEMPTS: u8 = 16;
/// Bit of export numbers of disks with paths; the index of the disk is below it.
const BY_DESIGNATOR: u64 = 1 << 63;

/// A logical unit at a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Path {
    /// Number of the host, over all Ethernet ports.
    host: usize,
    /// Number of the disk at this host.
    disk: u64,
}

#[derive(Debug)]
struct Disk {
    designator: Designator,
    blocks: u64,
    block_bytes: u32,
    paths: Vec<Path>,
    /// Path in use; it may be unusable.
    active: Option<Path>,
}

/// A request for a disk, which may change its path.
#[derive(Debug)]
struct Moving {
    disk: usize,
    request: Request,
    /// Path of the last attempt.
    path: Option<Path>,
    attempts: u8,
    /// Time at which it fails; `None` while it has a path.
    until: Option<Instant>,
}

/// Disks with their paths, and their requests.
#[derive(Debug, Default)]
pub(super) struct Multipath {
    disks: Vec<Disk>,
    /// Requests by tag.
    requests: BTreeMap<u64, Moving>,
    /// Buffers of requests without a usable path, by tag.
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl Multipath {
    /// Updates the disks from the logical units of all hosts, and returns their exports.
    fn update<'h>(&mut self, units: impl Iterator<Item = (usize, DiskView<'h>)>) -> Vec<Export> {
        let mut found: BTreeMap<usize, Export> = BTreeMap::new();
        self.disks.iter_mut().for_each(|disk| disk.paths.clear());
        for (host, unit) in units {
            let Some(properties) = unit.properties else { continue };
            let Some(designator) = &properties.designator else {
                let lun = lun_name(unit.lun);
                tracing::debug!(target_port = %unit.target, lun, "no designator, so the unit is no path to a disk");
                continue;
            };
            let index = self.index_of(designator, properties);
            self.disks[index].paths.push(Path { host, disk: unit.number });
            let number = BY_DESIGNATOR | index as u64;
            found.entry(index).or_insert_with(|| export_of(number, &designator.to_string(), properties));
        }
        found.into_values().collect()
    }

    fn index_of(&mut self, designator: &Designator, found: &Properties) -> usize {
        let is_same = |disk: &Disk| {
            (&disk.designator, disk.blocks, disk.block_bytes) == (designator, found.blocks, found.block_bytes)
        };
        self.disks.iter().position(is_same).unwrap_or_else(|| {
            self.disks.push(Disk {
                designator: designator.clone(),
                blocks: found.blocks,
                block_bytes: found.block_bytes,
                paths: Vec::new(),
                active: None,
            });
            self.disks.len() - 1
        })
    }

    /// Returns the path for the next request of a disk: the one in use if it is usable, and
    /// otherwise another one, `than` last of all. `None` without a usable path.
    fn choose(&mut self, disk: usize, than: Option<Path>, is_ready: impl Fn(Path) -> bool) -> Option<Path> {
        let disk = self.disks.get_mut(disk)?;
        let usable = |path: &Path| is_ready(*path) && disk.paths.contains(path);
        let in_use = disk.active.filter(|path| usable(path) && Some(*path) != than);
        let path = in_use
            .or_else(|| disk.paths.iter().copied().find(|path| usable(path) && Some(*path) != than))
            .or_else(|| than.filter(|path| usable(path)))?;
        if disk.active.replace(path) != Some(path) {
            tracing::info!(disk = %disk.designator, host = path.host, unit = path.disk, "path in use");
        }
        Some(path)
    }
}

/// Returns whether another path may succeed after this error.
fn is_of_path(error: &Error) -> bool {
    use ErrorKind::{NotADisk, NotReady, OtherDisk, PathLost, TimedOut, Transport};
    matches!(error.kind, PathLost | TimedOut | Transport | OtherDisk | NotADisk | NotReady)
}

impl Initiator {
    /// Returns whether disks are offered by designator, because there are several Ethernet ports.
    pub(super) fn has_paths(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns the exports of all disks with their paths.
    pub(super) fn exports_by_designator(&mut self) -> Vec<Export> {
        let hosts = self.adapter.hosts.iter().chain(self.others.iter().flat_map(|adapter| &adapter.hosts));
        self.multipath.update(hosts.enumerate().flat_map(|(number, host)| host.disks().map(move |disk| (number, disk))))
    }

    /// Starts a request for an export of a disk with paths. Returns the buffer if the export is of
    /// another kind.
    pub(super) fn submit_by_designator(
        &mut self,
        now: Instant,
        export: u64,
        request: Request,
        data: Vec<u8>,
    ) -> Option<Vec<u8>> {
        if export & BY_DESIGNATOR == 0 {
            return Some(data);
        }
        let disk = (export & !BY_DESIGNATOR) as usize;
        let moving = Moving { disk, request, path: None, attempts: 0, until: None };
        self.multipath.requests.insert(request.tag, moving);
        self.attempt(now, request.tag, data);
        None
    }

    /// Sends a request on the best path, or lets it wait for one.
    fn attempt(&mut self, now: Instant, tag: u64, data: Vec<u8>) {
        let Some(moving) = self.multipath.requests.get(&tag) else { return };
        let (disk, than) = (moving.disk, moving.path);
        let hosts: Vec<&Host> =
            self.adapter.hosts.iter().chain(self.others.iter().flat_map(|adapter| &adapter.hosts)).collect();
        let is_ready = |path: Path| hosts.get(path.host).is_some_and(|host| host.is_ready(path.disk));
        let Some(path) = self.multipath.choose(disk, than, is_ready) else {
            self.multipath.waiting.insert(tag, data);
            if let Some(moving) = self.multipath.requests.get_mut(&tag) {
                moving.until.get_or_insert(now + NO_PATH);
            }
            return;
        };
        let Some(moving) = self.multipath.requests.get_mut(&tag) else { return };
        (moving.path, moving.attempts, moving.until) = (Some(path), moving.attempts.saturating_add(1), None);
        let request = moving.request;
        if let Some(host) = self.host_mut(path.host) {
            host.submit(now, path.disk, request, data);
        }
    }

    /// Receives the end of a request. Returns the result and the buffer if the request has ended,
    /// and `None` if it goes on with another path.
    pub(super) fn ended(
        &mut self,
        now: Instant,
        tag: u64,
        result: Result<Done, Error>,
        data: Vec<u8>,
    ) -> Option<(Result<Done, Error>, Vec<u8>)> {
        let Some(moving) = self.multipath.requests.get(&tag) else { return Some((result, data)) };
        let may_move = moving.attempts < MAX_ATTEMPTS;
        if may_move && result.as_ref().is_err_and(is_of_path) {
            self.attempt(now, tag, data);
            return None;
        }
        self.multipath.requests.remove(&tag);
        Some((result, data))
    }

    /// Sends the requests that wait for a path, if one is usable. Returns those that have waited
    /// too long, with their buffers.
    pub(super) fn retry_waiting(&mut self, now: Instant) -> Vec<(u64, Vec<u8>)> {
        let mut failed = Vec::new();
        for (tag, data) in std::mem::take(&mut self.multipath.waiting) {
            let moving = self.multipath.requests.get(&tag);
            if moving.is_none_or(|moving| moving.until.is_some_and(|until| until <= now)) {
                self.multipath.requests.remove(&tag);
                failed.push((tag, data));
            } else {
                self.attempt(now, tag, data);
            }
        }
        failed
    }

    /// Describes the disks with their paths for tools.
    pub(super) fn describe_disks(&self) -> Vec<MultipathDisk> {
        let hosts: Vec<&Host> =
            self.adapter.hosts.iter().chain(self.others.iter().flat_map(|adapter| &adapter.hosts)).collect();
        let path = |disk: &Disk, path: &Path| {
            let host = hosts.get(path.host)?;
            let unit = host.disks().find(|unit| unit.number == path.disk)?;
            let state = match (unit.ready, disk.active == Some(*path)) {
                (false, _) => PathState::Failed,
                (true, true) => PathState::Active,
                (true, false) => PathState::Enabled,
            };
            let (host_port, target_port) = (host.login.wwpn().0, unit.target.0);
            Some(DiskPath { host_port, target_port, lun: lun_name(unit.lun), state })
        };
        let with_paths = self.multipath.disks.iter().filter(|disk| !disk.paths.is_empty());
        let describe = |disk: &Disk| MultipathDisk {
            device: disk.designator.to_string(),
            paths: disk.paths.iter().filter_map(|one| path(disk, one)).collect(),
        };
        with_paths.map(describe).collect()
    }

    fn host_mut(&mut self, number: usize) -> Option<&mut Host> {
        let others = self.others.iter_mut().flat_map(|adapter| &mut adapter.hosts);
        self.adapter.hosts.iter_mut().chain(others).nth(number)
    }
}
