//! The initiator's disk against the SCSI device of this crate.

use crate::disk::target::BLOCK;
use sanloom_scsi::disk::{
    Command, Data, Disk, DiskConfig, Done, End, Input, Op, Output, Reply, Request, Run, Scan, ScanInput, ScanOutput,
};
use sanloom_scsi::scsi::{
    self, Attribute, BlockIo, Device, DeviceConfig, IoOp, IoStatus, IoTag, Masking, NexusId, PortConfig, PortName,
    Step, TaskId, UnitConfig,
};
use sanloom_scsi::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::lun::LunBytes;
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

const BLOCKS: u64 = 4096;

/// Device with units, their media, and one nexus.
struct Bench {
    device: Device,
    nexus: NexusId,
    media: Vec<Vec<u8>>,
    tags: u32,
}

impl Bench {
    fn new(units: Vec<UnitConfig>) -> Bench {
        let media = units.iter().map(|unit| vec![0; unit.blocks as usize * BLOCK]).collect();
        let port = PortConfig { name: PortName::Fcp(Wwpn(0x5000_0000_0000_0001)), group: 1 };
        let mut device = Device::new(DeviceConfig {
            wwnn: Wwnn(0x5000_0000_0000_0000),
            ports: vec![port],
            units,
            masking: Masking::Open,
            attentions: true,
        });
        let nexus = device.connect(0, TransportId::Fcp(Wwpn(0x2000_0000_0000_0001)));
        Bench { device, nexus, media, tags: 0 }
    }

    /// Carries out a command from beginning to end.
    fn execute(&mut self, lun: LunBytes, command: &Command, buffers: &mut BTreeMap<u64, Vec<u8>>) -> End {
        self.tags += 1;
        let (nexus, tag) = (self.nexus, IoTag(self.tags));
        let unit = self.device.unit(nexus, lun);
        let attribute = Attribute::Simple;
        let mut step = self.device.begin(&scsi::Command { nexus, tag, unit, cdb: command.cdb, attribute });
        let task = TaskId { nexus, tag, unit: unit.unwrap_or_default() };
        let sent = match &command.data {
            Data::Out(bytes) => bytes.to_vec(),
            Data::Zeroes { bytes } => vec![0; *bytes as usize],
            Data::Buffer { tag, at, bytes, write: true } => buffers[tag][*at as usize..][..*bytes as usize].to_vec(),
            Data::None | Data::In { .. } | Data::Buffer { .. } => Vec::new(),
        };
        let mut moved = 0;
        loop {
            while let Some(output) = self.device.poll_output() {
                assert!(!matches!(output, scsi::Output::Persist { .. }), "nothing here is persistent");
            }
            step = match step {
                Step::Io(io) => {
                    moved = io.bytes;
                    let status = self.perform(&io, &sent, &command.data, buffers);
                    self.device.io_done(task, io.op, status)
                }
                Step::Parameters { bytes } => {
                    moved = bytes;
                    self.device.parameters(task, &sent[..bytes as usize])
                }
                Step::Wait => panic!("no other task blocks this command: {command:?}"),
                Step::Done(response) => {
                    let sense = response.sense.map(|sense| sense.to_bytes()).unwrap_or_default();
                    let mut data = response.data;
                    data.truncate(command.data.bytes() as usize);
                    let transferred = match response.status {
                        status::GOOD if !data.is_empty() => data.len() as u32,
                        status::GOOD => moved,
                        _ => 0,
                    };
                    return End::Status { status: response.status, sense, transferred, data: data.into() };
                }
            };
        }
    }

    fn perform(&mut self, io: &BlockIo, sent: &[u8], data: &Data, buffers: &mut BTreeMap<u64, Vec<u8>>) -> IoStatus {
        let medium = &mut self.media[usize::from(io.unit)];
        let (from, len) = (io.lba as usize * BLOCK, io.blocks as usize * BLOCK);
        match io.op {
            IoOp::Read => {
                let Data::Buffer { tag, at, bytes, write: false } = data else { panic!("{data:?}") };
                assert_eq!(*bytes as usize, len);
                buffers.get_mut(tag).unwrap()[*at as usize..][..len].copy_from_slice(&medium[from..from + len]);
            }
            IoOp::Write => medium[from..from + len].copy_from_slice(sent),
            IoOp::WriteSame => medium[from..from + len].chunks_mut(BLOCK).for_each(|block| block.copy_from_slice(sent)),
            IoOp::WriteZeroes | IoOp::Unmap => medium[from..from + len].fill(0),
            IoOp::Flush => {}
            IoOp::Mapping => {
                let zero = |block: &[u8]| block.iter().all(|byte| *byte == 0);
                let blocks: Vec<bool> = medium[from..].chunks(BLOCK).map(zero).collect();
                let same = blocks.iter().take_while(|block| **block == blocks[0]).count() as u64;
                return IoStatus::Mapping { mapped: !blocks[0], blocks: same };
            }
            other => panic!("{other:?} was not requested"),
        }
        IoStatus::Good
    }
}

/// Disk of the initiator at one of the units.
struct Host {
    bench: Bench,
    disk: Disk,
    lun: LunBytes,
    buffers: BTreeMap<u64, Vec<u8>>,
    done: BTreeMap<u64, Result<Done, sanloom_scsi::disk::Error>>,
}

impl Host {
    fn ready(units: Vec<UnitConfig>, lun: u8) -> Host {
        let disk = Disk::new(Instant::ZERO, DiskConfig::default());
        let (buffers, done) = (BTreeMap::new(), BTreeMap::new());
        let lun = [0, lun, 0, 0, 0, 0, 0, 0];
        let mut host = Host { bench: Bench::new(units), disk, lun, buffers, done };
        host.handle(Input::PathUp);
        assert!(host.disk.is_ready());
        host
    }

    fn handle(&mut self, input: Input) {
        self.disk.handle(Instant::ZERO, input);
        while let Some(output) = self.disk.poll_output() {
            match output {
                Output::Command(command) => {
                    let end = self.bench.execute(self.lun, &command, &mut self.buffers);
                    self.disk.handle(Instant::ZERO, Input::Reply(Reply { id: command.id, end }));
                }
                Output::Done { tag, result } => {
                    self.done.insert(tag, result);
                }
                Output::Ready(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn submit(&mut self, op: Op, lba: u64, blocks: u32, fua: bool, data: Vec<u8>) -> Done {
        self.buffers.insert(1, data);
        self.handle(Input::Submit(Request { tag: 1, op, lba, blocks, fua }));
        self.done.remove(&1).expect("it ended").expect("it succeeded")
    }
}

fn unit() -> UnitConfig {
    UnitConfig::new(BLOCKS, BLOCK as u32)
}

#[test]
fn a_disk_probes_the_device_and_executes_requests_on_it() {
    for (write_back, thin) in [(false, false), (true, false), (false, true), (true, true)] {
        let config = UnitConfig { write_back, thin, max_transfer_blocks: 100, ..unit() };
        let mut host = Host::ready(vec![unit(), config], 1);
        let found = host.disk.properties().expect("it is ready").clone();
        assert_eq!((found.blocks, found.block_bytes, found.max_transfer_blocks), (BLOCKS, BLOCK as u32, 100));
        assert_eq!((found.write_cache, found.provisioning.enabled), (write_back, thin));
        assert!(found.designator.is_some() && found.serial.is_some() && !found.rotational && !found.write_protected);
        assert!(found.has_port_groups);

        let data: Vec<u8> = (0..300 * BLOCK).map(|n| (n / 7) as u8).collect();
        assert_eq!(host.submit(Op::Write, 50, 300, true, data.clone()), Done::All);
        assert_eq!(host.submit(Op::Flush, 0, 0, false, vec![]), Done::All);
        assert_eq!(host.submit(Op::WriteZeroes { unmap: true }, 60, 200, false, vec![]), Done::All);
        assert_eq!(host.submit(Op::Unmap, 300, 20, false, vec![]), Done::All);
        let mut expected = data;
        expected[10 * BLOCK..210 * BLOCK].fill(0);
        if thin {
            expected[250 * BLOCK..270 * BLOCK].fill(0);
        }
        host.submit(Op::Read, 50, 300, false, vec![0xee; 300 * BLOCK]);
        assert!(host.buffers[&1] == expected, "write_back {write_back}, thin {thin}");
        let Done::Runs(runs) = host.submit(Op::Status, 50, 30, false, vec![]) else { panic!() };
        let first = Run { blocks: if thin { 10 } else { 30 }, mapped: true, zero: false };
        assert_eq!(runs[0], first, "write_back {write_back}, thin {thin}");
    }
}

#[test]
fn a_read_only_unit_is_recognized() {
    let host = Host::ready(vec![UnitConfig { read_only: true, ..unit() }], 0);
    assert!(host.disk.properties().is_some_and(|found| found.write_protected));
}

#[test]
fn the_units_of_the_device_are_found() {
    let mut bench = Bench::new(vec![unit(), unit(), unit()]);
    let mut scan = Scan::new();
    scan.handle(Instant::ZERO, ScanInput::PathUp);
    let mut found = Vec::new();
    while let Some(output) = scan.poll_output() {
        match output {
            ScanOutput::Command(command) => {
                let end = bench.execute([0; 8], &command, &mut BTreeMap::new());
                scan.handle(Instant::ZERO, ScanInput::Reply(Reply { id: command.id, end }));
            }
            ScanOutput::Units(units) => found = units,
        }
    }
    let expected: Vec<LunBytes> = (0..3).filter_map(sanloom_wire::lun::to_bytes).collect();
    assert_eq!(found, expected);
}
