//! A target at real sockets, with hosts that speak packet by packet: aborts while a worker writes,
//! logins in their place, and hosts that ask for too much.

use super::server::SrpServer;
use super::{SOCKETS, TargetPlan};
use crate::ready::Tracked;
use crate::storage::StorageSystem;
use crate::storage::medium::Medium;
use crate::storage::records::Records;
use crate::storage::store::Store;
use crate::storage::workers::{Done, Job};
use sanloom_block::{FileSpec, Source};
use sanloom_scsi::scsi::{Device, DeviceConfig, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::infiniband::cm::{RdmaCm, ReqPath, TCP_SERVICE};
use sanloom_wire::infiniband::mad::{CmKind, CmMessage, MAD_BYTES, QP1_KEY, ReqFields};
use sanloom_wire::infiniband::roce::{Path, RocePacket, UDP_PORT};
use sanloom_wire::infiniband::{Bth, Extended, opcode};
use sanloom_wire::srp::{Buffer, Cmd, DIRECT, Descriptor, Iu, LoginReq, PortId, TskMgmt, reject, response};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const TARGET: PortId = [9; 16];
const PORT: u16 = 5_555;
const BLOCK: usize = 512;
const REQUESTS: u16 = 4;

/// A target with one LUN in a file, so that workers do its I/O.
struct Bed {
    server: SrpServer,
    systems: Tracked<StorageSystem>,
    now: Instant,
    address: Ipv4Addr,
}

/// A packet that a host has received.
#[derive(Debug)]
enum Seen {
    Unit(Iu),
    /// PSN of a request to read from its memory.
    Read(u32),
    Message(Box<CmMessage>),
    Ack,
}

/// A host with one queue pair.
struct Host {
    socket: UdpSocket,
    local: SocketAddrV4,
    target: SocketAddrV4,
    initiator: PortId,
    /// Queue pair of the target.
    pair: u32,
    /// PSN of its next request, as the target expects it.
    psn: u32,
}

/// A loopback address that no other test has.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let [_, _, third, _] = std::process::id().to_be_bytes();
    let [.., last] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    Ipv4Addr::new(127, 80 + (std::process::id() % 100) as u8, third, last)
}

impl Bed {
    fn new(name: &str) -> Bed {
        let path = std::env::temp_dir().join(format!("sanloom-srp-{}-{name}", std::process::id()));
        let spec = FileSpec { path: path.clone(), size_bytes: 1 << 20, sparse: true, direct: false };
        let store = Store::open(&Source::File(spec)).unwrap();
        std::fs::remove_file(path).unwrap();
        let device = Device::new(DeviceConfig {
            wwnn: Wwnn(1),
            ports: vec![PortConfig { name: PortName::Srp(TARGET), group: 1 }],
            units: vec![UnitConfig::new(2_048, BLOCK as u32)],
            ..DeviceConfig::default()
        });
        let media = vec![Arc::new(Medium::new(store, BLOCK as u32))];
        let system = StorageSystem::new(0, "disks", device, Vec::new(), media, Records::default());
        let address = own_address();
        let plan = TargetPlan {
            name: "disks".to_owned(),
            system: 0,
            port: 0,
            portals: vec![SocketAddrV4::new(address, PORT)],
            id: TARGET,
            initiators: Vec::new(),
            request_limit: REQUESTS,
        };
        let server = SrpServer::listen(vec![plan], 1).unwrap();
        Bed { server, systems: Tracked::from(vec![system]), now: Instant::ZERO, address }
    }

    /// Lets the target process what its socket has received.
    fn serve(&mut self) {
        self.now += Span::from_ms(1);
        self.server.happened(SOCKETS);
        self.server.serve(self.now, &mut self.systems);
    }

    /// The only job for the workers.
    fn job(&mut self) -> Job {
        let mut jobs = std::mem::take(&mut self.systems[0].jobs);
        assert_eq!(jobs.len(), 1);
        jobs.remove(0)
    }

    /// Ends a job.
    fn work(&mut self, job: Job) {
        let Job { owner, tag, work, medium, mut data } = job;
        let status = medium.perform(work, &mut data);
        self.server.complete_io(self.now, &mut self.systems, vec![Done { owner, tag, data, status }]);
    }

    /// Asks for a connection. Returns the answer of the connection manager.
    fn ask(&mut self, host: &mut Host, local_id: u32) -> CmMessage {
        let mut message = CmMessage::new(CmKind::Req, u64::from(local_id));
        message.set_req(&ReqFields {
            local_id,
            service: TCP_SERVICE | u64::from(PORT),
            pair: 0x11,
            depths: [4, 4],
            psn: 100,
            key: 0xffff,
            ..ReqFields::default()
        });
        message.set_req_path(&ReqPath { mtu: 3, rnr_retries: 7, ack_timeout: 19, retries: 7, ..message.req_path() });
        let mut private = RdmaCm { port: 1, addresses: [*host.local.ip(), self.address] }.to_bytes().to_vec();
        let login = LoginReq {
            tag: 7,
            request_bytes: 260,
            formats: DIRECT,
            initiator: host.initiator,
            target: TARGET,
            ..LoginReq::default()
        };
        login.emit_cm(&mut private);
        assert!(message.set_private(&private));
        host.send_message(&message);
        self.serve();
        let mut answers = host.receive().into_iter().filter_map(|seen| match seen {
            Seen::Message(message) if message.kind != CmKind::Dreq => Some(*message),
            _ => None,
        });
        answers.next_back().expect("an answer of the connection manager")
    }

    /// A host that has logged in.
    fn log_in(&mut self, initiator: u8) -> Host {
        let mut host = Host::new(own_address(), self.address, initiator);
        let rep = self.ask(&mut host, 40);
        host.use_connection(&rep);
        host
    }

    /// Lets a host write a block, up to the job for the workers.
    fn write(&mut self, host: &mut Host, tag: u64) -> Job {
        let mut cdb = [0; 16];
        (cdb[0], cdb[8]) = (0x2a, 1);
        let memory = Descriptor { address: 0x1000, key: 5, length: BLOCK as u32 };
        host.unit(&Iu::Cmd(Cmd { tag, cdb, out: Buffer::Direct(memory), ..Cmd::default() }));
        self.serve();
        let reads: Vec<u32> = host
            .receive()
            .iter()
            .filter_map(|seen| if let Seen::Read(psn) = seen { Some(*psn) } else { None })
            .collect();
        let [psn] = reads[..] else { panic!("{reads:?}") };
        host.data(psn, &[0xaa; BLOCK]);
        self.serve();
        self.job()
    }
}

impl Host {
    fn new(address: Ipv4Addr, target: Ipv4Addr, initiator: u8) -> Host {
        let local = SocketAddrV4::new(address, UDP_PORT);
        let socket = UdpSocket::bind(local).unwrap();
        socket.set_nonblocking(true).unwrap();
        let target = SocketAddrV4::new(target, UDP_PORT);
        Host { socket, local, target, initiator: [initiator; 16], pair: 0, psn: 0 }
    }

    fn send(&self, bth: Bth, extended: Extended, payload: &[u8]) {
        let mut bytes = Vec::new();
        let path = Path { from: self.local, to: self.target };
        RocePacket { bth, extended, payload }.emit(&path, &mut bytes);
        self.socket.send_to(&bytes, self.target).unwrap();
    }

    fn send_message(&self, message: &CmMessage) {
        let mut payload = Vec::with_capacity(MAD_BYTES);
        message.emit(&mut payload);
        let bth = Bth { opcode: opcode::DATAGRAM, key: 0xffff, pair: 1, ..Bth::default() };
        self.send(bth, Extended { deth: Some((QP1_KEY, 1)), ..Extended::default() }, &payload);
    }

    fn use_connection(&mut self, rep: &CmMessage) {
        assert_eq!(rep.kind, CmKind::Rep);
        // The starting PSN is the one that the target expects.
        (self.pair, self.psn) = (rep.rep().pair, rep.rep().psn);
        let mut rtu = CmMessage::new(CmKind::Rtu, rep.transaction);
        let [id, own] = rep.ids();
        rtu.set_ids([own, id]);
        self.send_message(&rtu);
    }

    fn unit(&mut self, unit: &Iu) {
        let mut bytes = Vec::new();
        unit.emit(&mut bytes);
        let bth =
            Bth { opcode: opcode::SEND_ONLY, key: 0xffff, pair: self.pair, psn: self.psn, ack: true, ..Bth::default() };
        self.send(bth, Extended::default(), &bytes);
        self.psn = (self.psn + 1) & 0xff_ffff;
    }

    /// Answers a request to read.
    fn data(&self, psn: u32, data: &[u8]) {
        let bth = Bth { opcode: opcode::DATA_ONLY, key: 0xffff, pair: self.pair, psn, ..Bth::default() };
        self.send(bth, Extended { aeth: Some((0x1f, 0)), ..Extended::default() }, data);
    }

    fn manage(&mut self, function: u8, task_tag: u64) {
        self.unit(&Iu::TskMgmt(TskMgmt { tag: 900, function, task_tag, lun: [0; 8] }));
    }

    /// Takes what has arrived.
    fn receive(&mut self) -> Vec<Seen> {
        let mut bytes = vec![0; 5_000];
        let mut all = Vec::new();
        while let Ok((count, from)) = self.socket.recv_from(&mut bytes) {
            let SocketAddr::V4(from) = from else { continue };
            let packet = RocePacket::parse(&Path { from, to: self.local }, &bytes[..count]).unwrap();
            all.push(match packet.bth.opcode {
                opcode::DATAGRAM => Seen::Message(Box::new(CmMessage::parse(packet.payload).unwrap())),
                opcode::SEND_ONLY => Seen::Unit(Iu::parse(packet.payload).unwrap()),
                opcode::READ => Seen::Read(packet.bth.psn),
                opcode::ACK => Seen::Ack,
                other => panic!("opcode {other:x}"),
            });
        }
        all
    }

    /// Codes of the responses to task management that have arrived.
    fn task_management(&mut self) -> Vec<Option<u8>> {
        let units = self.receive();
        let codes = units.into_iter().filter_map(|seen| match seen {
            Seen::Unit(Iu::Rsp(rsp)) => Some(rsp.response),
            _ => None,
        });
        codes.collect()
    }
}

#[test]
fn an_abort_is_answered_when_the_worker_has_ended_its_write() {
    let mut bed = Bed::new("abort");
    let mut host = bed.log_in(1);
    let job = bed.write(&mut host, 50);
    host.manage(0x01, 50);
    bed.serve();
    assert_eq!(host.task_management(), [], "the write may still reach the medium");
    bed.work(job);
    assert_eq!(host.task_management(), [Some(response::COMPLETE)]);
}

#[test]
fn a_reset_by_another_host_is_answered_when_all_writes_have_ended() {
    let mut bed = Bed::new("reset");
    let (mut writer, mut other) = (bed.log_in(1), bed.log_in(2));
    let job = bed.write(&mut writer, 50);
    other.manage(0x08, 0);
    bed.serve();
    assert_eq!((other.task_management(), writer.task_management()), (vec![], vec![]));
    bed.work(job);
    assert_eq!(other.task_management(), [Some(response::COMPLETE)]);
}

#[test]
fn data_that_the_host_still_sends_hold_back_the_answer_to_its_own_abort_only() {
    let mut bed = Bed::new("reading");
    let (mut reader, mut other) = (bed.log_in(1), bed.log_in(2));
    let mut cdb = [0; 16];
    (cdb[0], cdb[8]) = (0x2a, 1);
    let memory = Descriptor { address: 0x1000, key: 5, length: BLOCK as u32 };
    reader.unit(&Iu::Cmd(Cmd { tag: 50, cdb, out: Buffer::Direct(memory), ..Cmd::default() }));
    bed.serve();
    let read = reader.receive().into_iter().find_map(|seen| if let Seen::Read(psn) = seen { Some(psn) } else { None });
    reader.manage(0x01, 50);
    other.manage(0x02, 0);
    bed.serve();
    assert_eq!(reader.task_management(), []);
    assert_eq!(other.task_management(), [Some(response::COMPLETE)], "a silent host delays no other one");
    reader.data(read.expect("a request to read"), &[0xaa; BLOCK]);
    bed.serve();
    assert_eq!(reader.task_management(), [Some(response::COMPLETE)]);
    assert!(bed.systems[0].jobs.is_empty(), "the aborted command writes nothing");
}

#[test]
fn a_login_that_replaces_a_channel_waits_for_its_writes() {
    let mut bed = Bed::new("login");
    let mut host = bed.log_in(1);
    let job = bed.write(&mut host, 50);
    let mut again = Host::new(own_address(), bed.address, 1);
    let answer = bed.ask(&mut again, 41);
    assert_eq!(answer.kind, CmKind::Rej);
    let reason = match Iu::parse(&answer.private()[..32]) {
        Ok(Iu::LoginRej { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason, reject::RESOURCES);
    bed.work(job);
    assert_eq!(bed.ask(&mut again, 42).kind, CmKind::Rep);
}

#[test]
fn a_host_has_a_limited_number_of_channels() {
    let mut bed = Bed::new("channels");
    let mut host = Host::new(own_address(), bed.address, 0);
    let kinds: Vec<CmKind> = (1..=40)
        .map(|number| {
            host.initiator = [number; 16];
            bed.ask(&mut host, number.into()).kind
        })
        .collect();
    assert!(kinds[..32].iter().all(|kind| *kind == CmKind::Rep), "{kinds:?}");
    assert!(kinds[32..].iter().all(|kind| *kind == CmKind::Rej), "{kinds:?}");
    assert_eq!(bed.log_in(99).receive().len(), 0, "other hosts have channels of their own");
}

#[test]
fn units_that_wait_for_a_table_are_limited() {
    let mut bed = Bed::new("held");
    let mut host = bed.log_in(1);
    let mut cdb = [0; 16];
    (cdb[0], cdb[8]) = (0x2a, 1);
    let table = Descriptor { address: 0x1000, key: 5, length: 32 };
    let out = Buffer::Indirect { table, total: BLOCK as u32, list: Vec::new() };
    let mut ended = None;
    for tag in 0..100 {
        host.unit(&Iu::Cmd(Cmd { tag, cdb, out: out.clone(), ..Cmd::default() }));
        bed.serve();
        let is_end = |seen: &Seen| matches!(seen, Seen::Message(message) if message.kind == CmKind::Dreq);
        if host.receive().iter().any(is_end) {
            ended = Some(tag);
            break;
        }
    }
    assert_eq!(ended, Some(u64::from(REQUESTS) + 8), "the request limit, and 8 others");
    assert_eq!(bed.server.served().map(|own| own.channels).sum::<usize>(), 0);
}

#[test]
fn responses_without_an_acknowledgement_are_limited() {
    let mut bed = Bed::new("responses");
    let mut host = bed.log_in(1);
    let mut ended = false;
    for _ in 0..1_000 {
        // A function that no target has.
        host.manage(0x77, 0);
        bed.serve();
        let is_end = |seen: &Seen| matches!(seen, Seen::Message(message) if message.kind == CmKind::Dreq);
        ended |= host.receive().iter().any(is_end);
    }
    assert!(ended, "the channel of a host that acknowledges nothing ends");
}
