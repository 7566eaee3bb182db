//! The paths of a host to its storage systems.

use crate::host::{Multipath, PathState};
use crate::net::NEVER;
use sanloom_fc::config;
use sanloom_fc::san::LunGroup;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// All paths of a host. A path is a pair of HBA and storage port; its number is HBA * ports + port.
pub struct Paths {
    systems: Vec<System>,
    /// Pairs of storage system and index into `systems`, sorted.
    numbers: Vec<(u16, u16)>,
}

/// The paths to one storage system, or to the LUNs of it that masks show to the same HBAs.
pub struct System {
    /// Index of the storage system.
    pub storage: u16,
    /// Number of ports of the storage system.
    pub ports: u16,
    /// The LUNs and the HBAs that see them; `None` without masks.
    shown: Option<Box<LunGroup>>,
    /// Path selection and failover.
    pub multipath: Multipath,
    paths: Vec<Path>,
    timeout_ps: u64,
    /// Present if the controllers of the system serve different LUNs.
    served: Option<Box<Served>>,
}

/// LUNs with the same own controller, to one host.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Own controller of the LUNs.
    pub home: u8,
    /// Controller that serves them.
    pub owner: u8,
    /// Rules by which ports belong to controllers.
    pub controllers: config::Controllers,
}

/// Paths to a storage system, or to some of its LUNs, for [`Paths::new`].
pub struct SystemPlan {
    /// Index of the storage system.
    pub storage: u16,
    /// Number of its ports.
    pub ports: u16,
    pub group: LunGroup,
    pub served: Option<Served>,
}

/// One path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Address of the remote port.
    pub port_id: FcId,
    /// Largest data field, in bytes.
    pub frame_bytes: u16,
    /// True if the path has ever been active.
    pub was_up: bool,
    /// Commands that completed with good status.
    pub commands: u64,
    /// Data bytes of these commands.
    pub bytes: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Requests of [`super::World::try_path`] that were answered, and those that failed.
    pub tried: [u32; 2],
    failed_in_a_row: u32,
}

impl Paths {
    /// Returns the paths from `hbas` HBAs to storage systems.
    pub fn new(config: &config::Multipath, hbas: u16, storage: Vec<SystemPlan>) -> Paths {
        let mut numbers: Vec<(u16, u16)> = storage.iter().zip(0..).map(|(plan, i)| (plan.storage, i)).collect();
        numbers.sort_unstable();
        let config = Arc::new(*config);
        let systems = storage.into_iter().map(|SystemPlan { storage, ports, group, served }| {
            let mut system = System {
                storage,
                ports,
                shown: group.luns.is_some().then(|| Box::new(group)),
                multipath: Multipath::new(config.clone(), hbas * ports),
                paths: vec![Path::default(); usize::from(hbas * ports)],
                timeout_ps: NEVER,
                served: served.map(Box::new),
            };
            system.check_preference();
            system
        });
        Paths { systems: systems.collect(), numbers }
    }

    /// Returns the index of the paths to a LUN in `systems`.
    #[inline]
    pub fn system_of(&self, storage: u16, lun: u16) -> Option<u16> {
        let first = self.numbers.partition_point(|&(s, _)| s < storage);
        let of_storage = self.numbers[first..].iter().take_while(|&&(s, _)| s == storage);
        of_storage.map(|&(_, number)| number).find(|&number| self.systems[usize::from(number)].has(lun))
    }

    /// Returns the range of the entries of a storage system, for [`Paths::number`].
    pub fn of_storage(&self, storage: u16) -> Range<usize> {
        let bound = |limit: u32| self.numbers.partition_point(|&(s, _)| u32::from(s) < limit);
        bound(storage.into())..bound(u32::from(storage) + 1)
    }

    /// Returns the index in `systems` of an entry of [`Paths::of_storage`].
    pub fn number(&self, entry: usize) -> u16 {
        self.numbers[entry].1
    }

    /// Returns whether no earlier entry of the same storage system has this path. Masks can give
    /// one path to several groups of LUNs, and it is reported once.
    pub fn is_reported(&self, number: u16, path: u16) -> bool {
        let of = |number: u16| &self.systems[usize::from(number)];
        let earlier = self.of_storage(of(number).storage).map(|entry| self.number(entry)).find(|n| of(*n).sees(path));
        earlier == Some(number)
    }

    /// Returns the paths to a storage system.
    #[inline]
    pub fn system(&mut self, number: u16) -> &mut System {
        &mut self.systems[usize::from(number)]
    }

    /// Returns all storage systems that the host uses.
    pub fn systems(&self) -> &[System] {
        &self.systems
    }

    /// Resets the counters of the paths at the end of the warm-up.
    pub fn restart(&mut self) {
        for path in self.systems.iter_mut().flat_map(|system| &mut system.paths) {
            (path.commands, path.bytes, path.failed) = (0, 0, 0);
        }
    }

    /// Records the time of the scheduled timeout of a storage system; [`NEVER`] means that it has
    /// expired.
    pub fn armed(&mut self, number: u16, at: u64) {
        self.systems[usize::from(number)].timeout_ps = at;
    }

    /// Returns true, and records `at`, if a timeout must be scheduled at `at` because no earlier
    /// one is.
    pub fn arm_earlier(&mut self, number: u16, at: u64) -> bool {
        let timeout_ps = &mut self.systems[usize::from(number)].timeout_ps;
        let is_earlier = at < *timeout_ps;
        if is_earlier {
            *timeout_ps = at;
        }
        is_earlier
    }
}

impl System {
    fn has(&self, lun: u16) -> bool {
        let luns = self.shown.as_ref().and_then(|shown| shown.luns.as_ref());
        luns.is_none_or(|luns| luns.contains(&lun))
    }

    /// Takes note of the controller that serves the LUNs of another one. Returns false if these are
    /// not the LUNs.
    pub fn set_owner(&mut self, home: u8, owner: u8) -> bool {
        match &mut self.served {
            Some(served) if served.home == home => {
                served.owner = owner;
                true
            }
            _ => false,
        }
    }

    /// The host learns through which ports the LUNs are active/optimized.
    pub fn check_preference(&mut self) {
        let Some(served) = &self.served else { return };
        for path in 0..self.paths.len() as u16 {
            let of_port = served.controllers.of_port(path % self.ports.max(1), self.ports.into());
            self.multipath.prefer(path, of_port == served.owner);
        }
    }

    /// Returns whether masks show the LUNs to the HBA of a path.
    pub fn sees(&self, path: u16) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.hbas.contains(&(path / self.ports.max(1))))
    }

    /// Returns a LUN for test commands.
    pub fn any_lun(&self) -> u16 {
        let luns = self.shown.as_ref().and_then(|shown| shown.luns.as_ref());
        luns.and_then(|luns| luns.first().copied()).unwrap_or(0)
    }

    /// Returns address and counters of a path.
    #[inline]
    pub fn address(&self, path: u16) -> Path {
        self.paths[usize::from(path)]
    }

    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Sets the current address and frame size of the remote port of a path.
    pub fn set_address(&mut self, path: u16, port_id: FcId, frame_bytes: u16) {
        let path = &mut self.paths[usize::from(path)];
        (path.port_id, path.frame_bytes, path.was_up) = (port_id, frame_bytes, true);
    }

    /// Counts a command that completed with good status. Returns true if the previous command on
    /// the path failed.
    #[inline]
    pub fn done(&mut self, path: u16, bytes: u32) -> bool {
        let path = &mut self.paths[usize::from(path)];
        path.commands += 1;
        path.bytes += u64::from(bytes);
        std::mem::take(&mut path.failed_in_a_row) > 0
    }

    /// Counts a failed command on the path.
    pub fn failed(&mut self, path: u16) {
        let path = &mut self.paths[usize::from(path)];
        path.failed += 1;
        path.failed_in_a_row += 1;
    }

    /// Counts a completed request of [`super::World::try_path`].
    pub(super) fn tried(&mut self, path: u16, answered: bool) {
        self.paths[usize::from(path)].tried[usize::from(!answered)] += 1;
    }

    pub fn state(&self, path: u16) -> PathState {
        self.multipath.state(path)
    }
}

/// Map from port names to storage ports.
#[derive(Default)]
pub struct PathTable {
    ports: BTreeMap<Wwpn, (u16, u16)>,
}

impl PathTable {
    /// Returns the table of the ports of all storage systems.
    pub fn new(storage: &[config::Storage]) -> PathTable {
        let ports = storage.iter().enumerate().flat_map(|(s, system)| {
            system.ports.iter().enumerate().map(move |(p, port)| (port.wwpn, (s as u16, p as u16)))
        });
        PathTable { ports: ports.collect() }
    }

    /// Returns the storage system and port with this port name.
    pub fn storage_port(&self, wwpn: Wwpn) -> Option<(u16, u16)> {
        self.ports.get(&wwpn).copied()
    }
}
