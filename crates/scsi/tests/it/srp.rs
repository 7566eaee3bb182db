//! SRP: an initiator and a target on a device, with random delays, aborts and ends of the channel.

use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::scsi::{self, Device, DeviceConfig, IoStatus, IoTag, PortConfig, PortName, UnitConfig};
use sanloom_scsi::srp::initiator::{Initiator, Input, Lost, Output};
use sanloom_scsi::srp::target::{self, Config, Target};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::srp::{Buffer, Cmd, DIRECT, Descriptor, Iu, LoginReq, Rsp, TskMgmt, reject, response};
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::VecDeque;

const CONFIG: Config = Config { request_limit: 8, unit_bytes: [260, 256], streams: false };

struct Bed {
    initiator: Initiator,
    target: Target,
    device: Device,
    /// Information units under way, in order.
    to_target: VecDeque<Iu>,
    to_initiator: VecDeque<Iu>,
    /// Block I/O and RDMA that are not complete.
    work: Vec<(IoTag, bool)>,
    outputs: Vec<Output>,
    pushed: u64,
}

fn login() -> LoginReq {
    LoginReq { request_bytes: 260, formats: DIRECT, ..LoginReq::default() }
}

/// A READ or WRITE of blocks of 512 bytes.
fn command(code: u8, blocks: u8, bytes: u32) -> Cmd {
    let mut cdb = [0; 16];
    (cdb[0], cdb[8]) = (code, blocks);
    let buffer = Buffer::Direct(Descriptor { length: bytes, ..Descriptor::default() });
    let (out, input) = if code == 0x2a { (buffer, Buffer::None) } else { (Buffer::None, buffer) };
    Cmd { cdb, out, input, ..Cmd::default() }
}

impl Bed {
    fn new() -> Bed {
        let port = PortConfig { name: PortName::Fcp(Wwpn(2)), group: 0 };
        let mut device = Device::new(DeviceConfig {
            wwnn: Wwnn(1),
            ports: vec![port],
            units: vec![UnitConfig::new(10_000, 512)],
            ..DeviceConfig::default()
        });
        let nexus = device.connect(0, TransportId::Fcp(Wwpn(3)));
        Bed {
            initiator: Initiator::default(),
            target: Target::new(CONFIG, nexus),
            device,
            to_target: VecDeque::new(),
            to_initiator: VecDeque::new(),
            work: Vec::new(),
            outputs: Vec::new(),
            pushed: 0,
        }
    }

    fn initiator(&mut self, input: Input) {
        self.initiator.handle(input);
        while let Some(output) = self.initiator.poll_output() {
            match output {
                Output::Send(unit) => self.to_target.push_back(unit),
                output => self.outputs.push(output),
            }
        }
        let [sent, _] = self.initiator.pending();
        assert!(sent as u32 + self.initiator.credit() <= 8, "{sent} requests over the limit");
    }

    fn target(&mut self, input: target::Input) {
        self.target.handle(input, &mut self.device);
        self.drain();
        while let Some(output) = self.device.poll_output() {
            if let scsi::Output::Port { notice, .. } = output {
                self.target.handle(target::Input::Notice(notice), &mut self.device);
                self.drain();
            }
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.target.poll_output() {
            match output {
                target::Output::Send(unit) => self.to_initiator.push_back(unit),
                target::Output::Pull { tag, .. } => self.work.push((tag, true)),
                target::Output::Io(io) => self.work.push((io.tag, false)),
                target::Output::Push { bytes, .. } => self.pushed += u64::from(bytes),
                target::Output::Cancel(tag) => self.work.retain(|work| work.0 != tag),
                target::Output::Ends(_) | target::Output::Closed => {}
            }
        }
    }

    /// Does one thing that is possible. Returns false if there is nothing.
    fn step(&mut self, dice: &mut SplitMix64) -> bool {
        let kinds = [!self.to_target.is_empty(), !self.to_initiator.is_empty(), !self.work.is_empty()];
        let possible: Vec<usize> = (0..3).filter(|&kind| kinds[kind]).collect();
        if possible.is_empty() {
            return false;
        }
        match possible[dice.index(possible.len())] {
            0 => {
                let unit = self.to_target.pop_front().expect("a unit");
                self.target(target::Input::Receive(unit));
            }
            1 => {
                let unit = self.to_initiator.pop_front().expect("a unit");
                self.initiator(Input::Receive(unit));
            }
            _ => {
                let (tag, is_pull) = self.work.swap_remove(dice.index(self.work.len()));
                let done = target::Input::IoDone { tag, status: IoStatus::Good };
                self.target(if is_pull { target::Input::Pulled { tag, bytes: Vec::new() } } else { done });
            }
        }
        true
    }

    fn log_in(&mut self) {
        let mut dice = SplitMix64(1);
        self.initiator(Input::Login(login()));
        while self.step(&mut dice) {}
        assert_eq!(self.outputs, [Output::LoggedIn]);
        self.outputs.clear();
    }
}

#[test]
fn a_read_pushes_its_bytes_before_the_response_and_a_write_pulls_them() {
    let mut bed = Bed::new();
    bed.log_in();
    let mut dice = SplitMix64(2);
    bed.initiator(Input::Command { id: 1, command: command(0x28, 4, 2_048) });
    while bed.step(&mut dice) {}
    assert_eq!(bed.pushed, 2_048);
    bed.initiator(Input::Command { id: 2, command: command(0x2a, 4, 2_048) });
    bed.initiator(Input::Command { id: 3, command: command(0x28, 4, 4_096) });
    bed.initiator(Input::Command { id: 4, command: command(0x28, 4, 1_024) });
    bed.initiator(Input::Command { id: 5, command: command(0x2a, 4, 512) });
    while bed.step(&mut dice) {}
    bed.outputs.sort_by_key(|output| if let Output::Completed { id, .. } = output { *id } else { 0 });
    let got: Vec<(u64, u8, i64, i64)> = bed
        .outputs
        .iter()
        .map(|output| match output {
            Output::Completed { id, response: Rsp { status, in_residual, out_residual, .. } } => {
                (*id, *status, *in_residual, *out_residual)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    // Residuals: 2 KiB fewer than the buffer, 1 KiB more; a short write is refused with its bytes.
    assert_eq!(got, [(1, 0, 0, 0), (2, 0, 0, 0), (3, 0, 2_048, 0), (4, 0, -1_024, 0), (5, 2, 0, 512)]);
}

#[test]
fn a_login_is_rejected_with_the_reason_of_the_standard() {
    for (login, expected) in [
        (LoginReq { request_bytes: 261, ..login() }, reject::TOO_LARGE),
        (LoginReq { formats: 0, ..login() }, reject::FORMAT),
    ] {
        let mut bed = Bed::new();
        bed.initiator(Input::Login(login));
        bed.initiator(Input::Command { id: 1, command: command(0x28, 1, 512) });
        while bed.step(&mut SplitMix64(1)) {}
        let why = Lost::Rejected(expected);
        assert_eq!(bed.outputs, [Output::Failed { id: 1, why }, Output::Closed(why)]);
    }
}

#[test]
fn the_last_credit_is_kept_for_task_management_and_an_abort_returns_both_credits() {
    let mut bed = Bed::new();
    bed.log_in();
    for id in 0..20 {
        bed.initiator(Input::Command { id, command: command(0x28, 1, 512) });
    }
    assert_eq!((bed.to_target.len(), bed.initiator.credit()), (7, 1));
    let request = TskMgmt { function: 1, task_tag: 3, ..TskMgmt::default() };
    bed.initiator(Input::Manage { id: 100, request });
    assert_eq!((bed.to_target.len(), bed.initiator.credit()), (8, 0));
    let mut dice = SplitMix64(3);
    while bed.to_target.pop_front().map(|unit| bed.target(target::Input::Receive(unit))).is_some() {}
    while bed.step(&mut dice) {}
    assert!(bed.outputs.contains(&Output::Failed { id: 3, why: Lost::Aborted }));
    let is_complete = |output: &Output| matches!(output, Output::Completed { id: 100, response } if response.response == Some(response::COMPLETE));
    assert!(bed.outputs.iter().any(is_complete));
    assert_eq!((bed.outputs.len(), bed.initiator.credit()), (21, 8));
}

#[test]
fn credit_and_events_without_a_command_are_answered() {
    let mut bed = Bed::new();
    bed.log_in();
    bed.initiator(Input::Receive(Iu::CredReq { tag: 7, delta: -3 }));
    bed.initiator(Input::Receive(Iu::AerReq { tag: 8, delta: 0, lun: [0; 8], sense: vec![0x70] }));
    assert_eq!(bed.initiator.credit(), 5);
    assert_eq!(bed.to_target, [Iu::CredRsp { tag: 7 }, Iu::AerRsp { tag: 8 }]);
    assert_eq!(bed.outputs, [Output::Event(vec![0x70])]);
    // A limit never falls below zero.
    bed.initiator(Input::Receive(Iu::CredReq { tag: 9, delta: i32::MIN }));
    assert_eq!(bed.initiator.credit(), 0);
}

#[test]
fn every_request_ends_once_and_all_credit_returns() {
    let (mut aborted, mut closed) = (0, 0);
    for seed in 0..2_000 {
        let mut bed = Bed::new();
        bed.log_in();
        let mut dice = SplitMix64(seed);
        let mut requests = 0;
        let ends = dice.chance(20);
        for _ in 0..dice.below(200) {
            if dice.chance(30) {
                if dice.chance(85) {
                    let code = if dice.chance(50) { 0x28 } else { 0x2a };
                    let mut command = command(code, 1 + dice.below(8) as u8, 512 * dice.below(10) as u32);
                    command.attribute = [0, 0, 0, 1, 2][dice.index(5)];
                    bed.initiator(Input::Command { id: requests, command });
                } else {
                    let task_tag = dice.below(requests + 1);
                    let function = [1, 1, 2, 4, 8, 0x40, 0x77][dice.index(7)];
                    let request = TskMgmt { function, task_tag, ..TskMgmt::default() };
                    bed.initiator(Input::Manage { id: requests, request });
                }
                requests += 1;
            } else if ends && dice.chance(2) {
                match dice.below(3) {
                    0 => bed.initiator(Input::Logout),
                    1 => bed.target(target::Input::Logout(1)),
                    _ => {
                        (bed.to_target, bed.to_initiator) = Default::default();
                        bed.target(target::Input::ChannelDown);
                        bed.initiator(Input::ChannelDown);
                    }
                }
            } else {
                bed.step(&mut dice);
            }
        }
        while bed.step(&mut dice) {}
        let mut ids: Vec<u64> = bed
            .outputs
            .iter()
            .filter_map(|output| match output {
                Output::Completed { id, .. } | Output::Failed { id, .. } => Some(*id),
                _ => None,
            })
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..requests).collect::<Vec<u64>>(), "seed {seed}: {:?}", bed.outputs);
        assert_eq!((bed.target.tasks(), bed.initiator.pending()), (0, [0, 0]), "seed {seed}");
        let is_closed = bed.outputs.iter().any(|output| matches!(output, Output::Closed(_)));
        assert!(is_closed || bed.initiator.credit() == 8, "seed {seed}: credit {}", bed.initiator.credit());
        assert_eq!(bed.target.violations, 0, "seed {seed}: the limit was exceeded");
        assert_eq!(bed.device.active(0), 0, "seed {seed}: the device has tasks");
        let abort = Lost::Aborted;
        aborted +=
            bed.outputs.iter().filter(|output| matches!(output, Output::Failed { why, .. } if *why == abort)).count();
        closed += usize::from(is_closed);
    }
    assert!(aborted > 500 && closed > 100, "{aborted} aborted, {closed} channels closed");
}

#[test]
fn a_login_after_a_logout_begins_no_task() {
    let mut bed = Bed::new();
    bed.target(target::Input::Receive(Iu::LoginReq(login())));
    bed.target(target::Input::Receive(Iu::InitiatorLogout { tag: 1 }));
    bed.to_initiator.clear();
    bed.target(target::Input::Receive(Iu::LoginReq(login())));
    assert!(
        matches!(bed.to_initiator.pop_front(), Some(Iu::LoginRej { reason: reject::CHANNEL, .. })),
        "the channel has ended"
    );
    bed.target(target::Input::Receive(Iu::Cmd(command(0x2a, 1, 512))));
    assert_eq!((bed.target.tasks(), bed.work.len()), (0, 0));
}

#[test]
fn a_target_without_its_medium_rejects_logins_for_want_of_resources() {
    let mut bed = Bed::new();
    bed.target.set_unavailable();
    bed.target(target::Input::Receive(Iu::LoginReq(login())));
    assert!(matches!(bed.to_initiator.pop_front(), Some(Iu::LoginRej { reason: reject::RESOURCES, .. })));
}
