//! Every initiator logs in to every target: messages and memory per login.

use sanloom_fc::fcp::target::{self, FcpTarget, FcpTargetConfig};
use sanloom_fc::nport::{Input, NPort, NPortConfig, Output};
use sanloom_scsi::scsi::{Device, DeviceConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::login::{CommonParameters, Login, feature};
use sanloom_wire::ns::{NsAccept, NsRequest};
use sanloom_wire::{FcId, Frame, Header, Message, Payload, Wwnn, Wwpn};
use std::collections::VecDeque;

/// Number of nodes of either kind; the tables are designed for 512.
const SIDE: usize = 128;
/// Limit for both ends together: all tables of the node ports, and the device of the target.
const MAX_BYTES_PER_LOGIN: usize = 96;

struct Fabric {
    ports: Vec<NPort>,
    targets: Vec<(FcpTarget, Device)>,
    /// Frames for a port, by the port's number.
    queue: VecDeque<(usize, Frame)>,
    logins: usize,
    most_plogis: usize,
}

#[test]
fn an_all_to_all_login_needs_little_memory_and_no_message_twice() {
    let mut fabric = Fabric {
        ports: (0..2 * SIDE).map(|at| NPort::new(config(at))).collect(),
        targets: (0..SIDE).map(|_| (FcpTarget::new(target_config()), Device::new(DeviceConfig::default()))).collect(),
        queue: VecDeque::new(),
        logins: 0,
        most_plogis: 0,
    };
    for at in (0..2 * SIDE).rev() {
        fabric.input(at, Input::LinkUp);
    }
    while let Some((at, frame)) = fabric.queue.pop_front() {
        fabric.input(at, Input::Frame(frame));
    }
    assert_eq!(fabric.logins, 2 * SIDE * SIDE);
    let of_ports: usize = fabric.ports.iter().map(NPort::table_bytes).sum();
    let of_targets: usize =
        fabric.targets.iter().map(|(target, device)| target.table_bytes() + device.table_bytes()).sum();
    let per_login = (of_ports + of_targets) / (SIDE * SIDE);
    assert!(per_login <= MAX_BYTES_PER_LOGIN, "{per_login} bytes per login");
    assert!(fabric.most_plogis <= 16, "{} logins at a time", fabric.most_plogis);
    for port in &fabric.ports {
        let counters = port.counters();
        assert_eq!((counters.rejected, counters.timeouts, counters.stale_replies, counters.rejects_sent), (0, 0, 0, 0));
    }
}

impl Fabric {
    fn input(&mut self, at: usize, input: Input) {
        self.ports[at].handle(Instant::ZERO, input);
        let mut plogis = 0;
        while let Some(output) = self.ports[at].poll_output() {
            match output {
                Output::Send(frame) => {
                    plogis += usize::from(is_plogi(&frame) && !frame.header.d_id.is_well_known());
                    self.deliver(at, frame);
                }
                Output::RemoteUp(remote) => {
                    self.logins += 1;
                    if at >= SIDE {
                        let (port_id, frame_size_bytes) = (remote.port_id, remote.receive_size_bytes);
                        let up = target::Input::LoginUp { port_id, port_name: remote.wwpn, frame_size_bytes };
                        let (target, device) = &mut self.targets[at - SIDE];
                        target.handle(Instant::ZERO, up, device);
                    }
                }
                Output::FabricUp { port_id } => {
                    if at >= SIDE {
                        let (target, device) = &mut self.targets[at - SIDE];
                        target.handle(Instant::ZERO, target::Input::LocalId(port_id), device);
                    }
                }
                Output::FabricDown | Output::RemoteDown { .. } => unreachable!("nothing goes down"),
            }
        }
        self.most_plogis = self.most_plogis.max(plogis);
    }

    fn deliver(&mut self, from: usize, frame: Frame) {
        if frame.header.d_id.is_well_known() {
            if let Some(reply) = service(from, &frame) {
                self.queue.push_back((from, reply));
            }
        } else {
            self.queue.push_back((number(frame.header.d_id), frame));
        }
    }
}

fn is_plogi(frame: &Frame) -> bool {
    matches!(&frame.payload, Payload::Typed(Message::Els(els)) if matches!(**els, Els::Plogi(_)))
}

/// Fabric that accepts everything and reports every target to every port.
fn service(from: usize, request: &Frame) -> Option<Frame> {
    let Payload::Typed(message) = &request.payload else { return None };
    let reply = match message {
        Message::Els(els) => Message::from(Els::LsAcc(match **els {
            Els::Flogi(_) | Els::Plogi(_) => LsAcc::Login(Login {
                common: CommonParameters {
                    features: feature::F_PORT,
                    receive_size_bytes: 2112,
                    ..CommonParameters::default()
                },
                ..login()
            }),
            _ => LsAcc::Empty,
        })),
        Message::Ct(ct) => {
            let accept = match ct.body {
                CtBody::Ns(NsRequest::GidFf { .. }) => NsAccept::PortIds((SIDE..2 * SIDE).map(address).collect()),
                _ => NsAccept::Empty,
            };
            Message::from(Ct { body: CtBody::NsAccept(accept), ..(**ct).clone() })
        }
        _ => return None,
    };
    let Header { d_id, ox_id, .. } = request.header;
    let header = reply.header(d_id, address(from), ox_id, 1);
    Some(Frame { header, payload: Payload::Typed(reply) })
}

fn login() -> Login {
    Login {
        common: CommonParameters::default(),
        port_name: Wwpn(1),
        node_name: Wwnn(1),
        class_1: Default::default(),
        class_2: Default::default(),
        class_3: Default::default(),
    }
}

fn address(at: usize) -> FcId {
    FcId::new(0x01_0000 + at as u32)
}

fn number(address: FcId) -> usize {
    address.to_u32() as usize - 0x01_0000
}

fn config(at: usize) -> NPortConfig {
    NPortConfig {
        wwpn: Wwpn(0x2100_0000_0000_0000 + at as u64),
        wwnn: Wwnn(0x2000_0000_0000_0000 + at as u64),
        receive_size_bytes: 2048,
        bb_credit: 8,
        bb_sc_n: 0,
        initiator: at < SIDE,
        target: at >= SIDE,
        symbolic_name: String::new(),
        e_d_tov: Span::from_secs(2),
        r_a_tov: Span::from_secs(10),
        seed: at as u64,
        virtual_port: None,
    }
}

fn target_config() -> FcpTargetConfig {
    FcpTargetConfig {
        e_d_tov: Span::from_secs(2),
        r_a_tov: Span::from_secs(10),
        max_burst_bytes: 65_536,
        max_exchanges: 1024,
        in_order: true,
        port: 0,
        port_name: Wwpn::default(),
    }
}
