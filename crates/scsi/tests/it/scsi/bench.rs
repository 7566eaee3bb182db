//! Device with disks in memory: commands as input; status, sense and data as output.

use sanloom_scsi::scsi::{
    Attribute, BlockIo, Command, Device, DeviceConfig, IoOp, IoStatus, IoTag, NexusId, Notice, Output, PortConfig,
    PortName, Response, Step, TaskId, UnitConfig,
};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::{Sense, SenseCode};
use sanloom_wire::{Wwnn, Wwpn, lun};

pub const BLOCK: usize = 512;
pub const BLOCKS: u64 = 64;

/// Medium of a unit.
pub struct Disk {
    pub bytes: Vec<u8>,
    pub mapped: Vec<bool>,
    pub flushes: u32,
}

pub struct Bench {
    pub device: Device,
    pub disks: Vec<Disk>,
    /// Last reservation record of each unit.
    pub records: Vec<Box<[u8]>>,
    /// Notices of the device that belong to no command in progress.
    pub notices: Vec<(u16, Notice)>,
    /// Block I/O of the last command.
    pub ios: Vec<BlockIo>,
    next_tag: u32,
}

pub fn host(number: u64) -> TransportId {
    TransportId::Fcp(Wwpn(0x2000_0000_0000_0000 + number))
}

/// Two ports and two units: unit 0 is thin with a write cache, unit 1 has no options.
pub fn config() -> DeviceConfig {
    let port = |number: u64| PortConfig { name: PortName::Fcp(Wwpn(0x5000_0000_0000_0000 + number)), group: 1 };
    let cached = UnitConfig { thin: true, write_back: true, ..UnitConfig::new(BLOCKS, BLOCK as u32) };
    DeviceConfig {
        wwnn: Wwnn(0x5000_0000_0000_00ff),
        ports: vec![port(1), port(2)],
        units: vec![cached, UnitConfig::new(BLOCKS, BLOCK as u32)],
        attentions: true,
        ..DeviceConfig::default()
    }
}

impl Bench {
    pub fn new(config: DeviceConfig) -> Bench {
        let disk = |unit: &UnitConfig| Disk {
            bytes: vec![0; unit.blocks as usize * unit.block_bytes as usize],
            mapped: vec![!unit.thin; unit.blocks as usize],
            flushes: 0,
        };
        let disks: Vec<Disk> = config.units.iter().map(disk).collect();
        let records = disks.iter().map(|_| Box::default()).collect();
        let device = Device::new(config);
        Bench { device, disks, records, notices: Vec::new(), ios: Vec::new(), next_tag: 0 }
    }

    /// Connects a host and clears its power-on unit attentions.
    pub fn host(&mut self, number: u64, port: u16) -> NexusId {
        let nexus = self.device.connect(port, host(number));
        for unit in 0..self.disks.len() as u16 {
            self.run(nexus, unit, Cdb::RequestSense { descriptor: false, allocation_len: 18 }, &[]);
        }
        nexus
    }

    pub fn command(&mut self, nexus: NexusId, number: u16, cdb: [u8; 16], attribute: Attribute) -> Command {
        let unit = lun::to_bytes(number).and_then(|bytes| self.device.unit(nexus, bytes));
        self.next_tag += 1;
        Command { nexus, tag: IoTag(self.next_tag), unit, cdb, attribute }
    }

    pub fn run(&mut self, nexus: NexusId, number: u16, cdb: Cdb, out: &[u8]) -> Response {
        self.run_bytes(nexus, number, cdb.to_bytes(), out)
    }

    pub fn run_bytes(&mut self, nexus: NexusId, number: u16, cdb: [u8; 16], out: &[u8]) -> Response {
        let command = self.command(nexus, number, cdb, Attribute::Simple);
        let step = self.device.begin(&command);
        let task = TaskId { nexus, tag: command.tag, unit: command.unit.unwrap_or_default() };
        self.ios.clear();
        self.drive(task, step, out)
    }

    /// Executes the steps of a task as transport and driver do, until it ends.
    pub fn drive(&mut self, task: TaskId, mut step: Step, out: &[u8]) -> Response {
        let mut read = Vec::new();
        loop {
            step = match step {
                Step::Done(response) if response.status == status::GOOD && response.data.is_empty() => {
                    return Response { data: read, ..response };
                }
                Step::Done(response) => return response,
                Step::Io(io) => {
                    self.ios.push(io);
                    let (status, data) = self.disks[usize::from(io.unit)].perform(&io, out);
                    read = data;
                    self.device.io_done(task, io.op, status)
                }
                Step::Parameters { bytes } => {
                    let list = &out[..out.len().min(bytes as usize)];
                    self.device.parameters(task, list)
                }
                Step::Wait => self.next_step(task),
            };
        }
    }

    /// Executes outputs of the device until there is a step for the task.
    fn next_step(&mut self, wanted: TaskId) -> Step {
        loop {
            match self.device.poll_output().expect("a waiting task continues") {
                Output::Persist { seq, unit, record } => {
                    self.records[usize::from(unit)] = record;
                    self.device.persisted(seq);
                }
                Output::Port { notice: Notice::Step { task, step }, .. } if task == wanted => {
                    self.device.confirm(task, &step);
                    return step;
                }
                Output::Port { port, notice } => self.notices.push((port, notice)),
            }
        }
    }

    /// Collects the notices of the device.
    pub fn listen(&mut self) -> Vec<(u16, Notice)> {
        while let Some(output) = self.device.poll_output() {
            match output {
                Output::Port { port, notice } => self.notices.push((port, notice)),
                Output::Persist { .. } => unreachable!("nothing is registered"),
            }
        }
        std::mem::take(&mut self.notices)
    }

    pub fn good(&mut self, nexus: NexusId, number: u16, cdb: Cdb, out: &[u8]) -> Vec<u8> {
        let response = self.run(nexus, number, cdb, out);
        assert_eq!((response.status, response.sense), (status::GOOD, None), "{cdb}");
        response.data
    }

    pub fn sense(&mut self, nexus: NexusId, number: u16, cdb: Cdb, out: &[u8]) -> Sense {
        let response = self.run(nexus, number, cdb, out);
        assert_eq!(response.status, status::CHECK_CONDITION, "{cdb}");
        response.sense.expect("a check condition has sense data")
    }

    pub fn code(&mut self, nexus: NexusId, number: u16, cdb: Cdb, out: &[u8]) -> SenseCode {
        self.sense(nexus, number, cdb, out).code
    }
}

impl Disk {
    fn perform(&mut self, io: &BlockIo, out: &[u8]) -> (IoStatus, Vec<u8>) {
        let (from, to) = (io.lba as usize, (io.lba + u64::from(io.blocks)) as usize);
        assert!(to <= self.mapped.len(), "{io:?} lies within the unit");
        let at = from * BLOCK..to * BLOCK;
        if io.op.direction() == sanloom_scsi::scsi::DataDirection::Write {
            assert!(out.len() >= io.bytes as usize, "{io:?} has its data");
        }
        let differs = |medium: &[u8], data: &[u8]| medium.iter().zip(data).position(|(one, other)| one != other);
        let miscompare = |at: Option<usize>| match at {
            Some(offset) => IoStatus::Miscompare { offset: offset as u32 },
            None => IoStatus::Good,
        };
        if io.op.changes_medium() && io.op != IoOp::CompareAndWrite {
            self.mapped[from..to].fill(io.op != IoOp::Unmap);
        }
        let status = match io.op {
            IoOp::Read => return (IoStatus::Good, self.bytes[at].to_vec()),
            IoOp::Write | IoOp::WriteVerify => {
                self.bytes[at.clone()].copy_from_slice(&out[..at.len()]);
                IoStatus::Good
            }
            IoOp::WriteSame => {
                self.bytes[at].as_chunks_mut::<BLOCK>().0.iter_mut().for_each(|to| to.copy_from_slice(&out[..BLOCK]));
                IoStatus::Good
            }
            IoOp::WriteZeroes | IoOp::Unmap => {
                self.bytes[at].fill(0);
                IoStatus::Good
            }
            IoOp::Verify => IoStatus::Good,
            IoOp::Flush => {
                self.flushes += 1;
                IoStatus::Good
            }
            IoOp::Compare => miscompare(differs(&self.bytes[at], out)),
            IoOp::CompareSame => miscompare(differs(&self.bytes[at.clone()], &out[..BLOCK].repeat(at.len() / BLOCK))),
            IoOp::CompareAndWrite => {
                let status = miscompare(differs(&self.bytes[at.clone()], &out[..at.len()]));
                if status == IoStatus::Good {
                    self.bytes[at.clone()].copy_from_slice(&out[at.len()..2 * at.len()]);
                }
                status
            }
            IoOp::Mapping => {
                let mapped = self.mapped[from];
                let same = self.mapped[from..].iter().take_while(|&&other| other == mapped).count();
                IoStatus::Mapping { mapped, blocks: same as u64 }
            }
        };
        (status, Vec::new())
    }
}
