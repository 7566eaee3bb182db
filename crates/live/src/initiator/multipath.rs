//! Disks of an [`Initiator`] with several Ethernet ports: [`Multipath`].
//!
//! Logical units with the same designator (VPD page 83) are one disk, and a disk is one NBD export.
//! One path is used at a time; it changes when it cannot be used and another one can. The disk
//! machine of a lost path returns its requests after [`FAST_IO_FAIL`]; they are then repeated on
//! another path. By that time no frame of the lost path is in the fabric any more (R_A_TOV). A
//! target that has received all data of a write and waits longer than that may still execute it
//! after its repetition. Without a usable path, requests wait for [`NO_PATH`].

use super::host::{DiskView, Host, lun_name};
use super::{Adapter, Initiator};
use crate::exports::export_of;
use sanloom_api::fcoe::{DiskPath, MultipathDisk, PathState};
use sanloom_scsi::disk::{Designator, Done, Error, ErrorKind, Request};
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
/// A logical unit at a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Path {
    /// Number of the Ethernet port, and of the host there.
    adapter: usize,
    host: usize,
    /// Number of the disk at this host.
    disk: u64,
}

#[derive(Debug)]
struct Disk {
    designator: Designator,
    block_bytes: u32,
    /// Largest size that a path has reported, in blocks.
    blocks: u64,
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
}

/// Disks with their paths, and their requests.
#[derive(Debug, Default)]
pub(super) struct Multipath {
    disks: Vec<Disk>,
    /// Requests by tag.
    requests: BTreeMap<u64, Moving>,
    /// Requests without a usable path, by tag: the time at which they fail, and their buffers.
    waiting: BTreeMap<u64, (Instant, Vec<u8>)>,
}

impl Multipath {
    /// Updates the disks from the logical units of all hosts. Returns their exports, and the paths
    /// that report a smaller size than another path has begun to report.
    fn update<'h>(&mut self, units: impl Iterator<Item = (Path, DiskView<'h>)>) -> (Vec<Export>, Vec<Path>) {
        let mut found: BTreeMap<usize, Export> = BTreeMap::new();
        let mut sizes: BTreeMap<usize, Vec<(Path, u64)>> = BTreeMap::new();
        self.disks.iter_mut().for_each(|disk| disk.paths.clear());
        for (path, unit) in units {
            let Some(properties) = unit.properties else { continue };
            let Some(designator) = &properties.designator else {
                let lun = lun_name(unit.lun);
                tracing::debug!(target_port = %unit.target, lun, "no designator, so the unit is no path to a disk");
                continue;
            };
            let index = self.index_of(designator, properties.block_bytes);
            self.disks[index].paths.push(path);
            sizes.entry(index).or_default().push((path, properties.blocks));
            // A disk has the size that all paths know.
            let export = export_of(index as u64, &designator.to_string(), properties);
            let known = found.entry(index).or_insert_with(|| export.clone());
            known.size_bytes = known.size_bytes.min(export.size_bytes);
        }
        let mut behind = Vec::new();
        for (index, paths) in sizes {
            let largest = paths.iter().map(|(_, blocks)| *blocks).max().unwrap_or(0);
            if std::mem::replace(&mut self.disks[index].blocks, largest) < largest {
                behind.extend(paths.into_iter().filter(|(_, blocks)| *blocks < largest).map(|(path, _)| path));
            }
        }
        (found.into_values().collect(), behind)
    }

    fn index_of(&mut self, designator: &Designator, block_bytes: u32) -> usize {
        let is_same = |disk: &Disk| (&disk.designator, disk.block_bytes) == (designator, block_bytes);
        self.disks.iter().position(is_same).unwrap_or_else(|| {
            let (designator, paths) = (designator.clone(), Vec::new());
            self.disks.push(Disk { designator, block_bytes, blocks: 0, paths, active: None });
            self.disks.len() - 1
        })
    }
}

/// Returns the path for the next request of a disk: the one in use if it is usable, and otherwise
/// another one, `than` last of all. `None` without a usable path.
fn choose(disk: &mut Disk, than: Option<Path>, is_usable: impl Fn(Path) -> bool) -> Option<Path> {
    let usable = |path: &Path| disk.paths.contains(path) && is_usable(*path);
    let in_use = disk.active.filter(|path| usable(path) && Some(*path) != than);
    let path = in_use
        .or_else(|| disk.paths.iter().copied().find(|path| usable(path) && Some(*path) != than))
        .or_else(|| than.filter(|path| usable(path)))?;
    if disk.active.replace(path) != Some(path) {
        tracing::info!(disk = %disk.designator, port = path.adapter, unit = path.disk, "path in use");
    }
    Some(path)
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

    fn adapter(&self, number: usize) -> Option<&Adapter> {
        match number.checked_sub(1) {
            None => Some(&self.adapter),
            Some(other) => self.others.get(other),
        }
    }

    fn host_mut(&mut self, path: Path) -> Option<&mut Host> {
        let adapter = match path.adapter.checked_sub(1) {
            None => &mut self.adapter,
            Some(other) => self.others.get_mut(other)?,
        };
        adapter.hosts.get_mut(path.host)
    }

    fn is_usable(&self, path: Path) -> bool {
        let host = self.adapter(path.adapter).and_then(|adapter| adapter.hosts.get(path.host));
        host.is_some_and(|host| host.ready(path.disk).is_some())
    }

    /// Returns the exports of all disks with their paths. Paths that do not know the new size of a
    /// disk ask for it.
    pub(super) fn exports_by_designator(&mut self, now: Instant) -> Vec<Export> {
        let Initiator { adapter, others, multipath, .. } = self;
        let hosts = std::iter::once(&*adapter).chain(&*others).enumerate().flat_map(|(adapter, own)| {
            own.hosts.iter().enumerate().map(move |(number, host)| ((adapter, number), host))
        });
        let units = hosts.flat_map(|((adapter, host), own)| {
            own.disks().map(move |unit| (Path { adapter, host, disk: unit.number }, unit))
        });
        let (exports, behind) = multipath.update(units);
        for path in behind {
            if let Some(host) = self.host_mut(path) {
                host.revalidate(now, path.disk);
            }
        }
        exports
    }

    /// Starts a request for a disk with paths.
    pub(super) fn submit_by_designator(&mut self, now: Instant, disk: usize, request: Request, data: Vec<u8>) {
        self.multipath.requests.insert(request.tag, Moving { disk, request, path: None, attempts: 0 });
        self.attempt(now, request.tag, data, now + NO_PATH);
    }

    /// Sends a request on the best path, or lets it wait for one until a time.
    fn attempt(&mut self, now: Instant, tag: u64, data: Vec<u8>, until: Instant) {
        let mut multipath = std::mem::take(&mut self.multipath);
        let chosen = multipath.requests.get_mut(&tag).and_then(|moving| {
            let path = choose(multipath.disks.get_mut(moving.disk)?, moving.path, |path| self.is_usable(path))?;
            (moving.path, moving.attempts) = (Some(path), moving.attempts.saturating_add(1));
            Some((path, moving.request))
        });
        match chosen {
            None => _ = multipath.waiting.insert(tag, (until, data)),
            Some((path, request)) => {
                if let Some(host) = self.host_mut(path) {
                    host.submit(now, path.disk, request, data);
                }
            }
        }
        self.multipath = multipath;
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
            self.attempt(now, tag, data, now + NO_PATH);
            return None;
        }
        self.multipath.requests.remove(&tag);
        Some((result, data))
    }

    /// Sends the requests that wait for a path, if one is usable. Returns those that have waited
    /// too long, with their buffers.
    pub(super) fn retry_waiting(&mut self, now: Instant) -> Vec<(u64, Vec<u8>)> {
        let mut failed = Vec::new();
        for (tag, (until, data)) in std::mem::take(&mut self.multipath.waiting) {
            if until <= now {
                self.multipath.requests.remove(&tag);
                failed.push((tag, data));
            } else {
                self.attempt(now, tag, data, until);
            }
        }
        failed
    }

    /// Describes the disks with their paths for tools.
    pub(super) fn describe_disks(&self) -> Vec<MultipathDisk> {
        let path = |disk: &Disk, path: &Path| {
            let host = self.adapter(path.adapter)?.hosts.get(path.host)?;
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
}
