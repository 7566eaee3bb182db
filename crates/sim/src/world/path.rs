//! The paths of a host to the storage systems that it uses.

use crate::host::{Multipath, PathState};
use crate::net::NEVER;
use sanloom_core::config;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All paths of a host. A path is an HBA and a port of a storage system; its number is HBA * ports + port.
pub struct Paths {
    systems: Vec<System>,
    /// Storage system, index into `systems`; sorted.
    numbers: Vec<(u16, u16)>,
}

/// The paths to one storage system.
pub struct System {
    /// Index of the storage system.
    pub storage: u16,
    /// Number of its ports.
    pub ports: u16,
    /// Chooses among the paths.
    pub multipath: Multipath,
    paths: Vec<Path>,
    alarm_ps: u64,
}

/// One path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Address of the remote port.
    pub port_id: FcId,
    /// Largest data field.
    pub frame_bytes: u16,
    /// It has been up.
    pub was_up: bool,
    /// Commands that ended well.
    pub commands: u64,
    /// Their data in bytes.
    pub bytes: u64,
    /// Commands that did not.
    pub failed: u64,
    /// Requests of [`super::World::try_path`] that were answered, and those that were not.
    pub tried: [u32; 2],
    failed_in_a_row: u32,
}

impl Paths {
    /// Paths from `hbas` HBAs to storage systems, given as index and number of ports.
    pub fn new(config: &config::Multipath, hbas: u16, storage: &[(u16, u16)]) -> Paths {
        let mut numbers: Vec<(u16, u16)> = storage.iter().zip(0..).map(|(s, i)| (s.0, i)).collect();
        numbers.sort_unstable();
        let config = Arc::new(*config);
        let systems = storage.iter().map(|&(storage, ports)| System {
            storage,
            ports,
            multipath: Multipath::new(config.clone(), hbas * ports),
            paths: vec![Path::default(); usize::from(hbas * ports)],
            alarm_ps: NEVER,
        });
        Paths { systems: systems.collect(), numbers }
    }

    /// Number of a storage system among those that the host uses.
    #[inline]
    pub fn system_of(&self, storage: u16) -> Option<u16> {
        let at = self.numbers.binary_search_by_key(&storage, |&(s, _)| s).ok()?;
        Some(self.numbers[at].1)
    }

    /// The paths to a storage system.
    #[inline]
    pub fn system(&mut self, number: u16) -> &mut System {
        &mut self.systems[usize::from(number)]
    }

    /// All storage systems that the host uses.
    pub fn systems(&self) -> &[System] {
        &self.systems
    }

    /// Forgets what the paths have carried: the end of the warm-up.
    pub fn restart(&mut self) {
        for path in self.systems.iter_mut().flat_map(|system| &mut system.paths) {
            (path.commands, path.bytes, path.failed) = (0, 0, 0);
        }
    }

    /// Notes that an alarm for a storage system is set for `at`; [`NEVER`]: it has rung.
    pub fn armed(&mut self, number: u16, at: u64) {
        self.systems[usize::from(number)].alarm_ps = at;
    }

    /// Whether an alarm at `at` must be set, because none rings earlier; notes it.
    pub fn wants_alarm(&mut self, number: u16, at: u64) -> bool {
        let alarm = &mut self.systems[usize::from(number)].alarm_ps;
        let wants = at < *alarm;
        if wants {
            *alarm = at;
        }
        wants
    }
}

impl System {
    /// Where a path leads.
    #[inline]
    pub fn address(&self, path: u16) -> Path {
        self.paths[usize::from(path)]
    }

    /// The paths.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The remote port of a path has this address now.
    pub fn set_address(&mut self, path: u16, port_id: FcId, frame_bytes: u16) {
        let path = &mut self.paths[usize::from(path)];
        (path.port_id, path.frame_bytes, path.was_up) = (port_id, frame_bytes, true);
    }

    /// A command on the path ended well. True if the one before did not.
    #[inline]
    pub fn done(&mut self, path: u16, bytes: u32) -> bool {
        let path = &mut self.paths[usize::from(path)];
        path.commands += 1;
        path.bytes += u64::from(bytes);
        std::mem::take(&mut path.failed_in_a_row) > 0
    }

    /// A command on the path did not end well.
    pub fn failed(&mut self, path: u16) {
        let path = &mut self.paths[usize::from(path)];
        path.failed += 1;
        path.failed_in_a_row += 1;
    }

    /// A request of [`super::World::try_path`] has ended.
    pub(super) fn tried(&mut self, path: u16, answered: bool) {
        self.paths[usize::from(path)].tried[usize::from(!answered)] += 1;
    }

    /// State of a path.
    pub fn state(&self, path: u16) -> PathState {
        self.multipath.state(path)
    }
}

/// Which storage port has a port name.
#[derive(Default)]
pub struct PathTable {
    ports: BTreeMap<Wwpn, (u16, u16)>,
}

impl PathTable {
    /// The ports of all storage systems.
    pub fn new(storage: &[config::Storage]) -> PathTable {
        let ports = storage.iter().enumerate().flat_map(|(s, system)| {
            system.ports.iter().enumerate().map(move |(p, port)| (port.wwpn, (s as u16, p as u16)))
        });
        PathTable { ports: ports.collect() }
    }

    /// Storage system and port of a port name.
    pub fn storage_port(&self, wwpn: Wwpn) -> Option<(u16, u16)> {
        self.ports.get(&wwpn).copied()
    }
}
