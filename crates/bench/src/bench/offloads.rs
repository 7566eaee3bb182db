//! `sanloom bench offloads`: gain of each offload of the Open-FCoE slides in software.
//!
//! A host and a storage port exchange the frames of reads or writes without a wire (VN2VN). Both do
//! the same as over Ethernet except for the system calls, so that the work of the offloads remains.
//! Each offload is switched off alone, then all of them.

use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::thread_cpu;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_fc::fcp::initiator::FcpInitiatorConfig;
use sanloom_fc::fcp::target::{FcpTarget, FcpTargetConfig};
use sanloom_fc::nport::{Input, NPort, NPortConfig};
use sanloom_live::frame::{FrameBuf, Pool};
use sanloom_live::initiator::host::{self, Event, Host};
use sanloom_live::offload::{Checksum, Offloads, Placement, Segmenter};
use sanloom_live::sequence::cut;
use sanloom_live::storage::StorageSystem;
use sanloom_live::storage::medium::Medium;
use sanloom_live::storage::port::{At, Leaving, StoragePort};
use sanloom_live::storage::records::Records;
use sanloom_scsi::disk::{DiskConfig, Op, Request};
use sanloom_scsi::scsi::{Device, DeviceConfig, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::{ETHER_BYTES, MacAddr};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Options of `sanloom bench offloads`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Size of a request, a multiple of 512 bytes; a number without a unit counts bytes
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = quantity::size::<u32>(512..=1 << 20, quantity::BYTES))]
    size: u32,
    /// Requests in flight
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = quantity::count::<u32>(1..=32))]
    depth: u32,
    /// Data of each measurement; a number without a unit counts megabytes
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = quantity::size::<u64>(1..=1 << 52, quantity::MEGABYTES))]
    megabytes: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// Results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// Bytes of a request.
    pub size_bytes: u32,
    /// Requests in flight.
    pub depth: u32,
    /// One element for each combination of offloads.
    pub rows: Vec<Row>,
}

/// Results of one combination of offloads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Name of the combination.
    pub offloads: String,
    /// Megabytes read per second.
    pub read_mb_per_s: f64,
    /// Processor time of the thread that runs the machines, in nanoseconds per kilobyte read.
    pub read_cpu_ns_per_kb: f64,
    /// Frames of the reads that were placed directly.
    pub placed_frames: u64,
    /// Frames of the reads that were reassembled first.
    pub staged_frames: u64,
    /// As for reads.
    pub write_mb_per_s: f64,
    /// As for reads.
    pub write_cpu_ns_per_kb: f64,
}

/// Measures all combinations, and prints the results.
///
/// # Errors
/// If an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let all = Offloads::default();
    let without = |checksum, placement, segmentation| Offloads { checksum, placement, segmentation };
    let (simd, table, unlimited) = (Checksum::Simd, Checksum::Table, Placement::Unlimited);
    let combinations = [
        ("all", all),
        ("without CRC instructions", without(table, unlimited, true)),
        ("placement in 512 contexts from 4 KiB", without(simd, Placement::DOCUMENT, true)),
        ("without placement", without(simd, Placement::Off, true)),
        ("without segmentation", without(simd, unlimited, false)),
        ("none", without(table, Placement::Off, false)),
    ];
    let mut rows = Vec::new();
    for (name, offloads) in combinations {
        let mut bed = Bed::new(&offloads)?;
        let read = bed.measure(args, Op::Read)?;
        let (placed_frames, staged_frames) = (bed.host.placed_frames, bed.host.staged_frames);
        let write = bed.measure(args, Op::Write)?;
        rows.push(Row {
            offloads: name.to_owned(),
            read_mb_per_s: read.0,
            read_cpu_ns_per_kb: read.1,
            placed_frames,
            staged_frames,
            write_mb_per_s: write.0,
            write_cpu_ns_per_kb: write.1,
        });
    }
    let measured = Measured { size_bytes: args.size, depth: args.depth, rows };
    args.outputs.write_or_print("offloads", &measured, || text(&measured))
}

const HOST: (FcId, MacAddr) = (FcId::new(1), MacAddr([0x0e, 0xfd, 0, 0, 0, 1]));
const STORAGE: (FcId, MacAddr) = (FcId::new(2), MacAddr([0x0e, 0xfd, 0, 0, 0, 2]));
const HOST_NAME: Wwpn = Wwpn(0x2000_0000_0000_0002);
const STORAGE_NAME: Wwpn = Wwpn(0x2000_0000_0000_0001);
const BLOCK_BYTES: u32 = 512;
const UNIT_BYTES: u64 = 64 << 20;

/// A host and a storage port that exchange frames directly.
struct Bed {
    host: Host,
    system: StorageSystem,
    pool: Pool,
    scratch: Vec<u8>,
    segmenter: Segmenter,
    checksum: Checksum,
    now: Instant,
}

impl Bed {
    fn new(offloads: &Offloads) -> Result<Bed, Failure> {
        let (e_d_tov, r_a_tov) = (Span::from_secs(2), Span::from_secs(10));
        let login = |wwpn: Wwpn, initiator: bool| NPortConfig {
            wwpn,
            wwnn: Wwnn(wwpn.0),
            receive_size_bytes: 2_112,
            bb_credit: 16,
            bb_sc_n: 0,
            initiator,
            target: !initiator,
            symbolic_name: String::new(),
            e_d_tov,
            r_a_tov,
            seed: wwpn.0,
            virtual_port: None,
        };
        let command_timeout = Span::from_secs(30);
        let fcp = FcpInitiatorConfig {
            e_d_tov,
            r_a_tov,
            command_timeout,
            recovery: None,
            max_exchanges: u16::MAX,
            in_order: true,
        };
        let mut host = Host::new(login(HOST_NAME, true), fcp, DiskConfig::default());
        host.place(offloads.placement);
        let (max_burst_bytes, max_exchanges) = (1 << 20, 256);
        let target = FcpTarget::new(FcpTargetConfig {
            e_d_tov,
            r_a_tov,
            max_burst_bytes,
            max_exchanges,
            in_order: true,
            port: 0,
            port_name: STORAGE_NAME,
        });
        let port =
            StoragePort::new("storage".to_owned(), At::Station(0), NPort::new(login(STORAGE_NAME, false)), target);
        let device = Device::new(DeviceConfig {
            wwnn: Wwnn(STORAGE_NAME.0),
            ports: vec![PortConfig { name: PortName::Fcp(STORAGE_NAME), group: 1 }],
            units: vec![UnitConfig::new(UNIT_BYTES / u64::from(BLOCK_BYTES), BLOCK_BYTES)],
            ..DeviceConfig::default()
        });
        let media = vec![Arc::new(Medium::nowhere(BLOCK_BYTES).map_err(Failure::environment)?)];
        let system = StorageSystem::new(0, "storage", device, vec![port], media, Records::default());
        let (pool, scratch, now) = (Pool::default(), Vec::new(), Instant::ZERO);
        let mut bed =
            Bed { host, system, pool, scratch, segmenter: Segmenter::new(offloads), checksum: offloads.checksum, now };
        bed.join();
        Ok(bed)
    }

    /// Gives both their addresses, makes them neighbours, and runs until the disk of the host is
    /// ready.
    fn join(&mut self) {
        self.host.login_input(self.now, Input::Joined { port_id: HOST.0 });
        self.system.login_input(self.now, 0, Input::Joined { port_id: STORAGE.0 });
        self.system.login_input(self.now, 0, Input::Neighbour { port_id: HOST.0, wwpn: HOST_NAME });
        self.host.login_input(self.now, Input::Neighbour { port_id: STORAGE.0, wwpn: STORAGE_NAME });
        while !self.host.disks().any(|disk| disk.ready) {
            if !self.carry() {
                // Both are idle, so a timer must be pending.
                self.now += Span::from_ms(100);
                self.host.timeout(self.now);
                self.system.timeout(self.now, 0);
            }
        }
        while self.host.poll_event().is_some() {}
    }

    /// Exchanges the frames of both; returns false if there were none.
    fn carry(&mut self) -> bool {
        let mut frames = Vec::new();
        while frames.len() < 32 {
            match self.host.next_leaving() {
                None => break,
                Some(host::Leaving::Message(frame)) => {
                    compose(&mut self.pool, &mut self.scratch, (STORAGE.1, HOST.1), frame, &mut frames);
                }
                Some(host::Leaving::Data(header, data)) => {
                    let mut buffer = self.pool.take();
                    self.segmenter.fill(&mut buffer, &header, (STORAGE.1, HOST.1), data);
                    frames.push(buffer);
                }
            }
        }
        let mut carried = !frames.is_empty();
        for frame in frames.drain(..) {
            if let Some((header, field)) = open(&frame).filter(|_| self.checksum.accepts(&frame)) {
                self.system.frame_in(self.now, 0, header, field);
            }
            self.pool.give(frame);
        }
        while frames.len() < 32 {
            match self.system.ports[0].next_leaving() {
                None => break,
                Some(Leaving::Message(frame)) => {
                    compose(&mut self.pool, &mut self.scratch, (HOST.1, STORAGE.1), frame, &mut frames);
                }
                Some(Leaving::Data(header, data)) => {
                    let mut buffer = self.pool.take();
                    self.segmenter.fill(&mut buffer, &header, (HOST.1, STORAGE.1), data);
                    frames.push(buffer);
                }
            }
        }
        carried |= !frames.is_empty();
        for frame in frames {
            if let Some((header, field)) = open(&frame).filter(|_| self.checksum.accepts(&frame)) {
                self.host.frame_in(self.now, header, field);
            }
            self.pool.give(frame);
        }
        carried
    }

    /// Returns megabytes per second, and nanoseconds of processor time per kilobyte.
    fn measure(&mut self, args: &Args, op: Op) -> Result<(f64, f64), Failure> {
        let size = args.size.next_multiple_of(BLOCK_BYTES);
        let requests = (args.megabytes / u64::from(size)).max(1);
        let blocks = size / BLOCK_BYTES;
        let places = UNIT_BYTES / u64::from(size);
        let (mut submitted, mut done) = (0, 0);
        let mut buffers = vec![vec![0_u8; size as usize]; args.depth as usize];
        let (begun, cpu) = (std::time::Instant::now(), thread_cpu());
        while done < requests {
            while submitted < requests
                && let Some(buffer) = buffers.pop()
            {
                let lba = submitted % places * u64::from(blocks);
                let request = Request { tag: submitted, op, lba, blocks, fua: false };
                self.host.submit(self.now, 0, request, buffer);
                submitted += 1;
            }
            self.carry();
            while let Some(event) = self.host.poll_event() {
                if let Event::Done { result, data, .. } = event {
                    result.map_err(|error| Failure::bug(format_args!("a request failed: {error}")))?;
                    done += 1;
                    buffers.push(data);
                }
            }
            if done % 64 == 0 && interrupt::requested() {
                return Err(Failure::interrupted("interrupted"));
            }
        }
        let (wall, cpu) = (begun.elapsed(), thread_cpu().saturating_sub(cpu));
        let bytes = (requests * u64::from(size)) as f64;
        let per_kb = |time: Duration| time.as_nanos() as f64 / (bytes / 1e3);
        Ok((bytes / 1e6 / wall.as_secs_f64(), per_kb(cpu)))
    }
}

fn compose(
    pool: &mut Pool,
    scratch: &mut Vec<u8>,
    (to, from): (MacAddr, MacAddr),
    frame: sanloom_wire::Frame,
    frames: &mut Vec<FrameBuf>,
) {
    for piece in cut(frame, 2_048) {
        let mut buffer = pool.take();
        buffer.compose(scratch, |out| fcoe::encapsulate(to, from, None, &piece, out));
        frames.push(buffer);
    }
}

fn open(frame: &FrameBuf) -> Option<(sanloom_wire::Header, &[u8])> {
    let pdu = Fcoe::parse(frame.bytes().get(ETHER_BYTES..)?).ok()?;
    Some((pdu.header().ok()?, &pdu.frame[HEADER_BYTES..]))
}

fn text(measured: &Measured) -> String {
    let mut text = String::new();
    let (size, depth) = (measured.size_bytes, measured.depth);
    let _ = writeln!(text, "Requests of {size} bytes, {depth} in flight, between a host and storage without a wire");
    let _ = writeln!(text, "{:<38} {:>10} {:>10} {:>10} {:>10}", "", "read", "CPU", "write", "CPU");
    let _ = writeln!(text, "{:<38} {:>10} {:>10} {:>10} {:>10}", "Offloads", "MB/s", "ns/kB", "MB/s", "ns/kB");
    for row in &measured.rows {
        let _ = writeln!(
            text,
            "{:<38} {:>10} {:>10} {:>10} {:>10}",
            row.offloads,
            format::trimmed(row.read_mb_per_s, 0),
            format::trimmed(row.read_cpu_ns_per_kb, 1),
            format::trimmed(row.write_mb_per_s, 0),
            format::trimmed(row.write_cpu_ns_per_kb, 1)
        );
    }
    text
}
