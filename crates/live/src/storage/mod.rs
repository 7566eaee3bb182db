//! Storage inside the process: a SCSI device, its ports, and the media of its LUNs.

pub mod direct;
pub mod medium;
pub mod port;
pub mod records;
pub mod store;
pub mod workers;

use crate::ready::ReadyList;
use medium::{BlockWork, Medium};
use port::StoragePort;
use records::Records;
use sanloom_fc::exchange::{Route, route};
use sanloom_fc::fcp::target;
use sanloom_fc::nport;
use sanloom_scsi::map::VolumeId;
use sanloom_scsi::scsi::{self, Device, Io, IoStatus, IoTag, UnitConfig};
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, FcType, Frame, Header, RCtl};
use std::path::PathBuf;
use std::sync::Arc;
use workers::{Done, Job, Owner};

/// Backing of a logical unit.
#[derive(Clone, Debug)]
pub enum Backing {
    /// No such unit.
    Absent,
    /// A medium of this process.
    Local(Arc<Medium>),
    /// A virtual disk.
    Volume(VolumeId),
}

/// I/O on a virtual disk, with its buffer.
#[derive(Debug)]
pub struct VolumeJob {
    /// Receiver of the result.
    pub owner: Owner,
    /// Tag of the I/O at its owner.
    pub tag: IoTag,
    /// The operation, in blocks of the volume.
    pub work: BlockWork,
    /// The virtual disk.
    pub volume: VolumeId,
    /// Data of a write, or space for those of a read.
    pub data: Vec<u8>,
}

/// A storage system.
#[derive(Debug)]
pub struct StorageSystem {
    /// Name in the lab.
    pub name: String,
    /// Units, masking, reservations.
    pub device: Device,
    /// Its ports; the index is the port number at the device.
    pub ports: Vec<StoragePort>,
    /// Backing of each unit.
    pub media: Vec<Backing>,
    /// Volume of each unit, if it is one.
    pub disks: Vec<Option<VolumeId>>,
    /// I/O for the worker threads.
    pub jobs: Vec<Job>,
    /// I/O on virtual disks.
    pub volume_jobs: Vec<VolumeJob>,
    /// Notices of the device for ports that are not in `ports`: iSCSI targets.
    pub notices: Vec<(u16, scsi::Notice)>,
    /// State that survives a restart.
    records: Records,
    /// Index among the systems.
    number: usize,
    /// Ports whose machines must be drained.
    touched: Vec<u16>,
    /// Ports whose machines were called since [`take_changed`](Self::take_changed).
    changed: ReadyList,
}

impl StorageSystem {
    /// Returns a system without links.
    pub fn new(
        number: usize,
        name: &str,
        device: Device,
        ports: Vec<StoragePort>,
        media: Vec<Arc<Medium>>,
        records: Records,
    ) -> StorageSystem {
        StorageSystem {
            name: name.to_owned(),
            device,
            changed: ReadyList::up_to(ports.len()),
            ports,
            media: media.into_iter().map(Backing::Local).collect(),
            disks: Vec::new(),
            jobs: Vec::new(),
            volume_jobs: Vec::new(),
            notices: Vec::new(),
            records,
            number,
            touched: Vec::new(),
        }
    }

    /// Adds a unit; its persistent reservations are stored at `reservations`.
    pub fn add_unit(&mut self, unit: UnitConfig, medium: Medium, reservations: Option<PathBuf>) {
        let number = self.device.add_unit(unit);
        self.media.push(Backing::Local(Arc::new(medium)));
        if let Some(path) = reservations {
            self.records.restore(number, path, &mut self.device);
        }
    }

    /// Adds a volume as unit `number`; its persistent reservations are stored at `reservations`.
    /// Returns false if the unit exists.
    pub fn put_volume(&mut self, number: u16, unit: UnitConfig, volume: VolumeId, reservations: PathBuf) -> bool {
        if !self.device.put_unit(number, unit) {
            return false;
        }
        self.records.restore(number, reservations, &mut self.device);
        let at = usize::from(number);
        self.media.resize(self.media.len().max(at + 1), Backing::Absent);
        self.media[at] = Backing::Volume(volume);
        self.disks.resize(self.disks.len().max(at + 1), None);
        self.disks[at] = Some(volume);
        true
    }

    /// Returns whether every unit is a virtual disk.
    pub fn has_only_volumes(&self) -> bool {
        !self.media.iter().any(|backing| matches!(backing, Backing::Local(_)))
    }

    /// Drains the machines of all ports, after a change of the device.
    pub fn drain_all(&mut self, now: Instant) {
        for port in 0..self.ports.len() as u16 {
            self.drain(now, port);
        }
    }

    /// Reports that the link of a port went up or down.
    pub fn link(&mut self, now: Instant, port: u16, up: bool) {
        self.login_input(now, port, if up { nport::Input::LinkUp } else { nport::Input::LinkDown });
    }

    /// Passes an input to the login machine of a port.
    pub fn login_input(&mut self, now: Instant, port: u16, input: nport::Input) {
        self.ports[usize::from(port)].login.handle(now, input);
        self.drain(now, port);
    }

    /// Receives a frame with correct CRC: header and data field.
    pub fn frame_in(&mut self, now: Instant, port: u16, header: Header, field: &[u8]) {
        let node = &mut self.ports[usize::from(port)];
        if header.fc_type == FcType::FCP && header.r_ctl == RCtl::SOLICITED_DATA {
            if let Some(accepted) = node.data_in(&header, field) {
                self.target_input(now, port, target::Input::Data { rx_id: header.rx_id, accepted });
                self.drain(now, port);
            }
            return;
        }
        if let Some(frame) = node.reassembly.accept(now, header, field) {
            self.message_in(now, port, frame);
        }
    }

    /// Receives a whole message.
    pub fn message_in(&mut self, now: Instant, port: u16, frame: Frame) {
        let node = &mut self.ports[usize::from(port)];
        let frame = node.read(frame);
        match route(&frame.header) {
            Some(Route::NPort) => node.login.handle(now, nport::Input::Frame(frame)),
            Some(Route::Target) => self.target_input(now, port, target::Input::Frame(frame)),
            // This system sends no request that is answered with FCP.
            Some(Route::Initiator) | None => node.unexpected += 1,
        }
        self.drain(now, port);
    }

    /// Takes the ports whose machines were called since the last call: deadline and output queue
    /// may have changed. Return the memory with [`reuse`](Self::reuse).
    pub fn take_changed(&mut self) -> Vec<usize> {
        self.changed.take()
    }

    /// Keeps the memory of a list for the next call of [`take_changed`](Self::take_changed).
    pub fn reuse(&mut self, list: Vec<usize>) {
        self.changed.reuse(list);
    }

    /// Enters a port for [`take_changed`](Self::take_changed), because it has more to send.
    pub fn enter(&mut self, port: u16) {
        debug_assert!(usize::from(port) < self.ports.len(), "{} has no port {port}", self.name);
        self.changed.enter(usize::from(port));
    }

    /// Returns whether [`take_changed`](Self::take_changed) has ports.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Passes the time to the machines of a port whose deadline is over.
    pub fn timeout(&mut self, now: Instant, number: u16) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let port = &mut self.ports[usize::from(number)];
        let (login, target) = (due(port.login.poll_timeout()), due(port.target.poll_timeout()));
        if login {
            port.login.handle(now, nport::Input::Timeout);
        }
        if target {
            self.target_input(now, number, target::Input::Timeout);
        }
        self.drain(now, number);
    }

    /// Reports the result of a job.
    pub fn done(&mut self, now: Instant, done: Done) {
        let Done { owner, tag, data, status } = done;
        let Owner::Port { port, .. } = owner else { return };
        self.ports[usize::from(port)].put_buffer(tag, data);
        self.target_input(now, port, target::Input::IoDone { tag, status });
        self.drain(now, port);
    }

    fn target_input(&mut self, now: Instant, port: u16, input: target::Input) {
        self.ports[usize::from(port)].target.handle(now, input, &mut self.device);
    }

    /// Drains the machines of a port, and the outputs of the device for other ports.
    fn drain(&mut self, now: Instant, port: u16) {
        self.touched.push(port);
        self.drain_touched(now);
    }

    fn drain_touched(&mut self, now: Instant) {
        while let Some(port) = self.touched.pop() {
            self.changed.enter(usize::from(port));
            self.drain_login(now, port);
            while let Some(output) = self.ports[usize::from(port)].target.poll_output() {
                self.target_output(now, port, output);
            }
            self.drain_device(now);
        }
    }

    /// Drains the device, after a call by an iSCSI session or an operation.
    pub fn drain_outside(&mut self, now: Instant) {
        self.drain_device(now);
        self.drain_touched(now);
    }

    fn drain_device(&mut self, now: Instant) {
        while let Some(output) = self.device.poll_output() {
            match output {
                scsi::Output::Port { port, notice } if usize::from(port) < self.ports.len() => {
                    self.target_input(now, port, target::Input::Notice(notice));
                    self.touched.push(port);
                }
                scsi::Output::Port { port, notice } => self.notices.push((port, notice)),
                scsi::Output::Persist { seq, unit, record } => match self.records.keep(unit, &record) {
                    Ok(()) => self.device.persisted(seq),
                    Err(_) => self.device.not_persisted(seq),
                },
            }
        }
    }

    fn drain_login(&mut self, now: Instant, port: u16) {
        while let Some(output) = self.ports[usize::from(port)].login.poll_output() {
            match output {
                nport::Output::Send(frame) => self.ports[usize::from(port)].push_message(frame),
                nport::Output::FabricUp { port_id } => self.local_id(now, port, port_id),
                nport::Output::FabricDown => self.local_id(now, port, FcId::ZERO),
                nport::Output::RemoteUp(remote) if remote.initiator => {
                    let (port_id, port_name) = (remote.port_id, remote.wwpn);
                    tracing::info!(port = self.ports[usize::from(port)].name, initiator = %port_name, "initiator logged in");
                    let frame_size_bytes = remote.receive_size_bytes;
                    self.target_input(now, port, target::Input::LoginUp { port_id, port_name, frame_size_bytes });
                }
                nport::Output::RemoteUp(_) => {}
                nport::Output::RemoteDown { port_id, wwpn } => {
                    tracing::info!(port = self.ports[usize::from(port)].name, initiator = %wwpn, "initiator logged out");
                    self.target_input(now, port, target::Input::LoginDown { port_id });
                }
            }
        }
    }

    fn local_id(&mut self, now: Instant, port: u16, port_id: FcId) {
        self.ports[usize::from(port)].port_id = port_id;
        self.target_input(now, port, target::Input::LocalId(port_id));
    }

    fn target_output(&mut self, now: Instant, port: u16, output: target::Output) {
        let node = &mut self.ports[usize::from(port)];
        match output {
            target::Output::Send(frame) => node.push_message(frame),
            target::Output::Transmit(sequence) => node.push_data(sequence),
            target::Output::Io(io) => self.io(now, port, io),
            target::Output::Fetch { tag, bytes } => {
                let mut buffer = node.take_buffer(tag);
                buffer.truncate(bytes as usize);
                self.target_input(now, port, target::Input::Parameters { tag, bytes: buffer });
            }
            target::Output::Cancel(tag) => node.forget(tag.rx_id()),
        }
    }

    fn io(&mut self, now: Instant, port: u16, io: Io) {
        let Io { tag, unit, op, lba, blocks, bytes, fua, .. } = io;
        let data = self.ports[usize::from(port)].take_buffer(tag);
        let work = BlockWork { op, lba, blocks, bytes, fua };
        let owner = Owner::Port { system: self.number, port };
        if let Some((data, status)) = self.perform(unit, owner, tag, work, data) {
            self.ports[usize::from(port)].put_buffer(tag, data);
            self.target_input(now, port, target::Input::IoDone { tag, status });
        }
    }

    /// Carries out quick I/O and returns its result. Slow I/O is queued and returns `None`.
    pub fn perform(
        &mut self,
        unit: u16,
        owner: Owner,
        tag: IoTag,
        work: BlockWork,
        mut data: Vec<u8>,
    ) -> Option<(Vec<u8>, IoStatus)> {
        match self.media.get(usize::from(unit)).unwrap_or(&Backing::Absent) {
            Backing::Absent => Some((data, IoStatus::MediumError)),
            Backing::Local(medium) if medium.is_slow() => {
                self.jobs.push(Job { owner, tag, work, medium: medium.clone(), data });
                None
            }
            Backing::Local(medium) => {
                let status = medium.perform(work, &mut data);
                Some((data, status))
            }
            Backing::Volume(volume) => {
                self.volume_jobs.push(VolumeJob { owner, tag, work, volume: *volume, data });
                None
            }
        }
    }
}
