//! Services of an instance: [`Services`] with its storage systems, iSCSI targets, virtual disks and
//! the threads of slow media.

use crate::initiator::Adapter;
use crate::iscsi::{IscsiServer, ServerContext, Stores};
use crate::poll::{Interest, Poller};
use crate::ready::Tracked;
use crate::runtime::UpError;
use crate::runtime::work::Source;
use crate::srp::SrpServer;
use crate::storage::port::StoragePort;
use crate::storage::workers::{Done, Owner, Workers};
use crate::storage::{Backing, StorageSystem};
use crate::volumes::{HostPort, VolumeEngine, Wire};
use sanloom_api::volume::Served;
use sanloom_fc::config::VolumeSpec;
use sanloom_scsi::map::VolumeId;
use sanloom_scsi::time::Instant;

/// Poller token of worker completions.
pub const WORKERS: u64 = u64::MAX;

/// Storage systems, iSCSI targets and virtual disks.
#[derive(Debug, Default)]
pub struct Services {
    /// Storage inside the process.
    pub systems: Tracked<StorageSystem>,
    /// Storage over TCP.
    pub iscsi: Option<IscsiServer>,
    /// Storage over RoCEv2.
    pub srp: Option<SrpServer>,
    /// Virtual disks.
    pub volumes: Option<VolumeEngine>,
    /// Volumes of the lab that are not created yet.
    pub wanted_volumes: Vec<VolumeSpec>,
    /// Threads for media that may block.
    workers: Option<Workers>,
    /// Workers have completions.
    completed: bool,
}

impl Services {
    /// Starts the workers, if a medium may block.
    ///
    /// # Errors
    /// The limit of threads or descriptors is reached.
    pub fn start_workers(&mut self, poller: &mut Poller) -> Result<(), UpError> {
        let is_slow = |backing: &Backing| matches!(backing, Backing::Local(medium) if medium.is_slow());
        if !self.systems.iter().flat_map(|system| &system.media).any(is_slow) {
            return Ok(());
        }
        let workers = Workers::start().map_err(|error| UpError::System { what: "threads", error })?;
        let set = poller.set(WORKERS, Some(workers.bell()), Interest { read: true, write: false });
        set.map_err(|error| UpError::System { what: "epoll", error })?;
        self.workers = Some(workers);
        Ok(())
    }

    /// Records that workers have completions, for [`take_completions`](Self::take_completions).
    pub fn set_completed(&mut self) {
        self.completed = true;
    }

    /// Takes the completions of workers.
    pub fn take_completions(&mut self) -> Vec<Done> {
        let workers = self.workers.as_ref().filter(|_| std::mem::take(&mut self.completed));
        workers.map(Workers::take_done).unwrap_or_default()
    }

    /// Passes the jobs of a storage system to workers and virtual disks.
    pub fn submit_jobs(&mut self, system: usize) {
        let system = self.systems.visit(system);
        if let Some(workers) = &self.workers {
            system.jobs.drain(..).for_each(|job| workers.submit(job));
        }
        if let Some(engine) = &mut self.volumes {
            system.volume_jobs.drain(..).for_each(|job| engine.submit(job));
        }
    }

    /// Passes on the jobs of the storage systems that were called.
    fn submit_all_jobs(&mut self) {
        for at in 0..self.systems.ready().len() {
            self.submit_jobs(self.systems.ready()[at]);
        }
    }

    /// Passes completed jobs to their ports and sessions.
    pub fn complete(&mut self, now: Instant, all: Vec<Done>, poller: &mut Poller) {
        let (mut of_sessions, mut of_channels) = (Vec::new(), Vec::new());
        for done in all {
            match done.owner {
                Owner::Port { system, .. } => {
                    self.systems[system].done(now, done);
                    self.submit_jobs(system);
                }
                Owner::Session { .. } => of_sessions.push(done),
                Owner::Channel { .. } => of_channels.push(done),
            }
        }
        if !of_sessions.is_empty() {
            self.with_iscsi(|server, stores| {
                server.complete_io(&mut ServerContext { now, poller, stores }, of_sessions)
            });
        }
        if !of_channels.is_empty() {
            self.with_srp(|server, systems| server.complete_io(now, systems, of_channels));
        }
    }

    /// Calls the iSCSI targets, if there are any, with their storage, and passes on their jobs.
    pub fn with_iscsi<T>(&mut self, call: impl FnOnce(&mut IscsiServer, &mut Stores<'_>) -> T) -> Option<T> {
        let server = self.iscsi.as_mut()?;
        let stores = &mut Stores { systems: &mut self.systems, volumes: self.volumes.as_mut() };
        let outcome = call(server, stores);
        self.submit_all_jobs();
        Some(outcome)
    }

    /// Calls the SRP targets, if there are any, with their storage, and passes on their jobs.
    pub fn with_srp<T>(&mut self, call: impl FnOnce(&mut SrpServer, &mut Tracked<StorageSystem>) -> T) -> Option<T> {
        let outcome = call(self.srp.as_mut()?, &mut self.systems);
        self.submit_all_jobs();
        Some(outcome)
    }

    /// A host port of the instance, by index. The step visits it.
    pub fn host_mut(&mut self, number: usize) -> Option<&mut HostPort> {
        self.volumes.as_mut()?.hosts_mut().get_mut(number)
    }

    /// Brings up the links of host ports at inner ports of switches.
    pub fn start_hosts(&mut self, now: Instant) {
        for port in self.volumes.iter_mut().flat_map(|engine| engine.hosts_mut().iter_mut()) {
            if let Wire::Inside { host, .. } = &mut port.wire {
                host.link(now, true);
            }
        }
    }

    /// Sends the remaining frames of host ports on Ethernet.
    pub fn end_hosts(&mut self, now: Instant) {
        self.adapters_mut().for_each(|adapter| adapter.end(now));
    }

    /// Host ports with their own Ethernet port.
    pub fn adapters(&self) -> impl Iterator<Item = &Adapter> {
        self.volumes.iter().flat_map(|engine| engine.hosts().iter()).filter_map(HostPort::adapter)
    }

    /// Mutable [`adapters`](Self::adapters).
    pub fn adapters_mut(&mut self) -> impl Iterator<Item = &mut Adapter> {
        let ports = self.volumes.iter_mut().flat_map(|engine| engine.hosts_mut().iter_mut());
        ports.filter_map(HostPort::adapter_mut)
    }

    /// Returns whether the next step has to visit a storage port or a host port.
    pub fn has_ready(&self) -> bool {
        let waits = |system: &StorageSystem| system.has_changed() || !system.notices.is_empty();
        let storage = self.systems.ready().iter().any(|system| waits(&self.systems[*system]));
        storage || self.volumes.as_ref().is_some_and(|engine| !engine.hosts().ready().is_empty())
    }

    /// Returns whether all ports with frames to send are visited by the next step.
    pub fn nothing_is_left(&self) -> bool {
        let hosts = || self.volumes.iter().flat_map(|engine| engine.hosts().iter());
        let ports = || self.systems.iter().flat_map(|system| &system.ports);
        self.has_ready() || !hosts().any(HostPort::may_send) && !ports().any(StoragePort::may_send)
    }

    /// Changes the number of full egress queues that hold a storage port or host port back. A port
    /// that is no longer held back is visited by the next step.
    pub fn change_held(&mut self, source: Source, by: i16) {
        let change = |held: &mut u16| {
            debug_assert!(held.checked_add_signed(by).is_some(), "{source:?} is released more often than held back");
            *held = held.saturating_add_signed(by);
            *held == 0
        };
        match source {
            Source::Storage(number, port) => {
                let system = self.systems.visit(number);
                if change(&mut system.ports[usize::from(port)].held) {
                    system.enter(port);
                    self.systems.enter(number);
                }
            }
            Source::Host(number) => {
                let Some(engine) = &mut self.volumes else { return };
                if change(&mut engine.hosts_mut().visit(number).held) {
                    engine.hosts_mut().enter(number);
                }
            }
            Source::Ethernet(_) | Source::Machine => {}
        }
    }

    /// The storage system and LUN that serve a volume.
    pub fn served_by(&self, id: VolumeId) -> Option<Served> {
        self.systems.iter().find_map(|system| {
            let here = |(lun, backing): (u16, &Backing)| {
                let is = matches!(backing, Backing::Volume(volume) if *volume == id);
                (is && system.device.unit_config(lun).is_some()).then_some(lun)
            };
            let lun = (0..).zip(&system.media).find_map(here)?;
            Some(Served { storage: system.name.clone(), lun: Some(lun) })
        })
    }
}
