//! Two FCP target ports of one device: masking by port name, reservations, resets and order across
//! ports.

use sanloom_fc::exchange::Accepted;
use sanloom_fc::fcp::target::{FcpTarget, FcpTargetConfig, Input, Output};
use sanloom_scsi::scsi::{
    self, Device, DeviceConfig, InitiatorName, Io, IoStatus, LunMap, Masking, PortConfig, PortName, UnitConfig,
};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::bls::Bls;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, Residual, attribute, response, task_management};
use sanloom_wire::scsi::reservation::{OutParameters, kind, out_action};
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};
use sanloom_wire::sense::{Sense, SenseCode};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn, lun};

const PORTS: [FcId; 2] = [FcId::new(0x010100), FcId::new(0x010200)];
const HOSTS: [FcId; 2] = [FcId::new(0x020100), FcId::new(0x020200)];
const NOW: Instant = Instant::ZERO;

fn host_name(host: usize) -> Wwpn {
    Wwpn(0x2000_0000_0000_0000 + host as u64)
}

/// Driver: outputs of the device and its ports, and the buffers of the exchanges.
struct System {
    device: Device,
    ports: Vec<FcpTarget>,
    ios: Vec<(usize, Io)>,
    cancelled: usize,
    records: usize,
    /// Responses by port, host and OX_ID.
    responses: Vec<(usize, FcId, u16, FcpRsp)>,
    read: Vec<u8>,
    /// Data-out of the only write exchange.
    data_out: Vec<u8>,
}

impl System {
    fn new(masking: Masking, attentions: bool) -> System {
        let name = |port: u16| Wwpn(0x5000_0000_0000_0000 + u64::from(port));
        let target = |port| {
            FcpTarget::new(FcpTargetConfig {
                e_d_tov: Span::from_secs(2),
                r_a_tov: Span::from_secs(10),
                max_burst_bytes: 8192,
                max_exchanges: 32,
                in_order: true,
                port,
                port_name: name(port),
            })
        };
        let device = Device::new(DeviceConfig {
            wwnn: Wwnn(0x5000_0000_0000_00ff),
            ports: (0..2).map(|port| PortConfig { name: PortName::Fcp(name(port)), group: 1 }).collect(),
            units: vec![UnitConfig { thin: true, ..UnitConfig::new(1000, 512) }; 2],
            masking,
            attentions,
        });
        let mut system = System {
            device,
            ports: (0..2).map(target).collect(),
            ios: Vec::new(),
            cancelled: 0,
            records: 0,
            responses: Vec::new(),
            read: Vec::new(),
            data_out: Vec::new(),
        };
        for (port, &address) in PORTS.iter().enumerate() {
            system.input(port, Input::LocalId(address));
            for (host, &port_id) in HOSTS.iter().enumerate() {
                let port_name = host_name(host);
                system.input(port, Input::LoginUp { port_id, port_name, frame_size_bytes: 2048 });
            }
        }
        system
    }

    fn input(&mut self, port: usize, input: Input) {
        self.ports[port].handle(NOW, input, &mut self.device);
        while let Some(output) = self.ports[port].poll_output() {
            self.on_output(port, output);
        }
        while let Some(output) = self.device.poll_output() {
            match output {
                scsi::Output::Port { port, notice } => self.input(port.into(), Input::Notice(notice)),
                scsi::Output::Persist { seq, .. } => {
                    self.records += 1;
                    self.device.persisted(seq);
                }
            }
        }
    }

    fn on_output(&mut self, port: usize, output: Output) {
        match output {
            Output::Io(io) => self.ios.push((port, io)),
            Output::Cancel(_) => self.cancelled += 1,
            Output::Transmit(sequence) => self.read.resize(sequence.remaining_bytes() as usize, 0xaa),
            Output::Fetch { tag, bytes } => {
                let bytes = self.data_out[..bytes as usize].to_vec();
                self.input(port, Input::Parameters { tag, bytes });
            }
            Output::Send(Frame { header, payload }) => match payload {
                Payload::Typed(Message::FcpRsp(response)) => {
                    self.responses.push((port, header.d_id, header.ox_id, response));
                }
                Payload::Typed(Message::FcpXferRdy(ready)) => {
                    assert_eq!(self.ports[port].expected_bytes(header.rx_id), Some(self.data_out.len() as u32));
                    let mut accepted = Accepted::Stale;
                    let rx = self.ports[port].data(header.rx_id).expect("takes data");
                    for at in (ready.offset..ready.offset + ready.burst_len).step_by(2048) {
                        let len = (ready.offset + ready.burst_len - at).min(2048);
                        accepted = rx.accept((at / 2048) as u16, len as u16);
                    }
                    assert_eq!(accepted, Accepted::Complete);
                    self.input(port, Input::Data { rx_id: header.rx_id, accepted });
                }
                Payload::Bytes(bytes) => self.read.extend_from_slice(&bytes),
                other => unreachable!("{other:?}"),
            },
        }
    }

    fn send(&mut self, port: usize, host: usize, ox_id: u16, command: FcpCmnd) {
        self.read.clear();
        let message = Message::FcpCmnd(command);
        let header = message.header(HOSTS[host], PORTS[port], ox_id, 0xffff);
        self.input(port, Input::Frame(Frame { header, payload: Payload::Typed(message) }));
    }

    /// Runs a command to its end; all I/O succeeds.
    fn run(&mut self, port: usize, host: usize, number: u16, cdb: Cdb, out: &[u8]) -> FcpRsp {
        self.data_out = out.to_vec();
        let flags = if out.is_empty() { FcpCmnd::READ } else { FcpCmnd::WRITE };
        let data_len = if out.is_empty() { 4096 } else { out.len() as u32 };
        self.send(port, host, 0x77, FcpCmnd { lun: lun::to_bytes(number).unwrap(), ..command(cdb, flags, data_len) });
        while let Some((port, io)) = self.ios.pop() {
            self.input(port, Input::IoDone { tag: io.tag, status: IoStatus::Good });
        }
        let (_, to, ox_id, response) = self.responses.pop().expect("a response");
        assert_eq!((to, ox_id), (HOSTS[host], 0x77));
        response
    }
}

fn command(cdb: Cdb, flags: u8, data_len: u32) -> FcpCmnd {
    FcpCmnd { lun: [0; 8], crn: 0, attribute: 0, task_management: 0, flags, cdb: cdb.to_bytes(), data_len }
}

fn read(attribute: u8) -> FcpCmnd {
    FcpCmnd { attribute, ..command(Cdb::Read { lba: 0, blocks: 1, fua: false }, FcpCmnd::READ, 512) }
}

fn code(response: &FcpRsp) -> SenseCode {
    assert_eq!(response.status, status::CHECK_CONDITION);
    Sense::parse(response.sense.as_ref().expect("sense data")).expect("fixed format").code
}

fn reserve(action: u8, parameters: &OutParameters) -> (Cdb, Vec<u8>) {
    let mut list = Vec::new();
    parameters.emit(&mut list);
    let kind = kind::WRITE_EXCLUSIVE_REGISTRANTS_ONLY;
    (Cdb::PersistentReserveOut { action, scope: 0, kind, list_len: list.len() as u32 }, list)
}

#[test]
fn every_host_sees_its_own_units_under_its_own_numbers() {
    let maps =
        [(0, vec![LunMap { lun: 0, unit: 1 }]), (1, vec![LunMap { lun: 0, unit: 0 }, LunMap { lun: 3, unit: 1 }])];
    let maps = maps.map(|(host, map)| (InitiatorName::Fcp(host_name(host)), map));
    let mut system = System::new(Masking::Listed(maps.into()), false);
    for (host, number, unit) in [(0, 0, 1), (1, 0, 0), (1, 3, 1)] {
        for port in 0..2 {
            let lun = lun::to_bytes(number).unwrap();
            system.send(port, host, 1, FcpCmnd { lun, ..read(0) });
            let (at, io) = system.ios.pop().expect("block I/O");
            assert_eq!((at, io.unit), (port, unit));
        }
    }
    let hidden = system.run(0, 0, 3, Cdb::TestUnitReady, &[]);
    assert_eq!(code(&hidden), SenseCode::LUN_NOT_SUPPORTED);
    system.run(0, 1, 0, Cdb::ReportLuns { allocation_len: 4096 }, &[]);
    assert_eq!(system.read, [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_registration_is_made_through_a_parameter_list_and_kept() {
    let mut system = System::new(Masking::Open, true);
    assert_eq!(code(&system.run(0, 0, 0, Cdb::TestUnitReady, &[])), SenseCode::POWER_ON_OR_RESET);
    let parameters = OutParameters { key: 0, action_key: 5, keep: true, all_ports: false, initiators: None };
    let (cdb, list) = reserve(out_action::REGISTER, &parameters);
    let answer = system.run(0, 0, 0, cdb, &list);
    assert_eq!((answer.status, answer.residual), (status::GOOD, Residual::None));
    let (cdb, list) = reserve(out_action::RESERVE, &OutParameters { key: 5, ..parameters });
    assert_eq!(system.run(0, 0, 0, cdb, &list).status, status::GOOD);
    assert_eq!(system.records, 2);
    let write = Cdb::Write { lba: 0, blocks: 20, fua: false };
    assert_eq!(system.run(0, 0, 0, write, &[1; 20 * 512]).status, status::GOOD);
    // The same host through the other port is another nexus.
    system.run(1, 0, 0, Cdb::TestUnitReady, &[]);
    assert_eq!(system.run(1, 0, 0, write, &[1; 20 * 512]).status, status::RESERVATION_CONFLICT);
    system.run(0, 0, 0, Cdb::PersistentReserveIn { action: 0, allocation_len: 255 }, &[]);
    assert_eq!(system.read, [0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5]);
}

#[test]
fn a_list_of_ranges_is_several_ios_and_one_response() {
    let mut system = System::new(Masking::Open, false);
    let mut list = Vec::new();
    unmap::emit(&[BlockDescriptor { lba: 0, blocks: 4 }, BlockDescriptor { lba: 100, blocks: 9 }], &mut list);
    system.data_out = list.clone();
    let cdb = Cdb::Unmap { anchor: false, list_len: list.len() as u16 };
    system.send(0, 0, 9, command(cdb, FcpCmnd::WRITE, list.len() as u32));
    for (lba, blocks) in [(0, 4), (100, 9)] {
        let (port, io) = system.ios.pop().expect("block I/O");
        assert_eq!((io.lba, io.blocks, io.bytes), (lba, blocks, 0));
        system.input(port, Input::IoDone { tag: io.tag, status: IoStatus::Good });
    }
    assert_eq!(system.responses.pop().map(|(_, _, _, response)| response.status), Some(status::GOOD));
    assert_eq!((system.ports[0].exchanges_in_use(), system.device.active(0)), (0, 0));
}

#[test]
fn a_reset_through_one_port_ends_tasks_at_the_other() {
    let mut system = System::new(Masking::Open, true);
    for (port, host) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for number in 0..2 {
            system.run(port, host, number, Cdb::RequestSense { descriptor: false, allocation_len: 18 }, &[]);
        }
    }
    system.send(0, 0, 1, read(0));
    system.send(1, 1, 2, read(0));
    system.send(1, 1, 3, FcpCmnd { lun: lun::to_bytes(1).unwrap(), ..read(0) });
    let reset = FcpCmnd { task_management: task_management::LUN_RESET, ..command(Cdb::TestUnitReady, 0, 0) };
    system.send(0, 0, 4, reset);
    let reported: Vec<_> =
        system.responses.drain(..).map(|(port, _, ox_id, rsp)| (port, ox_id, rsp.status, rsp.response_code)).collect();
    assert_eq!(reported, [(0, 4, status::GOOD, Some(response::COMPLETE)), (1, 2, status::TASK_ABORTED, None)]);
    assert_eq!((system.cancelled, system.device.active(0), system.device.active(1)), (2, 0, 1));
    system.ios.clear();
    assert_eq!(code(&system.run(1, 1, 0, Cdb::TestUnitReady, &[])), SenseCode::LUN_RESET);
}

#[test]
fn an_ordered_task_waits_for_a_task_at_the_other_port() {
    let mut system = System::new(Masking::Open, false);
    system.send(0, 0, 1, read(attribute::SIMPLE));
    system.send(1, 1, 2, read(attribute::ORDERED));
    system.send(0, 1, 3, read(attribute::SIMPLE));
    assert_eq!(system.ios.len(), 1, "one task runs, two wait");
    let (port, io) = system.ios.pop().expect("block I/O");
    system.input(port, Input::IoDone { tag: io.tag, status: IoStatus::Good });
    let [(1, ordered)] = system.ios[..] else { unreachable!("{:?}", system.ios) };
    // An aborted task also lets later tasks begin.
    let abts = Message::Bls(Bls::Abts);
    let header = abts.header(HOSTS[1], PORTS[1], 2, ordered.tag.rx_id());
    system.responses.clear();
    system.ports[1].handle(NOW, Input::Frame(Frame { header, payload: Payload::Typed(abts) }), &mut system.device);
    assert!(system.ports[1].poll_output().is_some());
    while system.ports[1].poll_output().is_some() {}
    system.ios.clear();
    system.input(1, Input::Timeout);
    assert!(matches!(system.ios[..], [(0, _)]), "{:?}", system.ios);
}

#[test]
fn the_logout_of_a_host_ends_its_tasks() {
    let mut system = System::new(Masking::Open, false);
    system.send(0, 0, 1, read(attribute::ORDERED));
    system.send(0, 0, 2, read(attribute::ORDERED));
    system.send(0, 1, 3, read(attribute::SIMPLE));
    assert_eq!((system.ios.len(), system.device.active(0)), (1, 1));
    system.input(0, Input::LoginDown { port_id: HOSTS[0] });
    assert_eq!((system.cancelled, system.device.active(0)), (1, 1));
    assert_eq!(system.ios.len(), 2, "the other host's task begins");
}
