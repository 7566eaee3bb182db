//! Initiator against target: both machines of this crate, without a network.

use crate::iscsi::bed::{BLOCK, Bed, INITIATOR};
use proptest::prelude::*;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::chap::Credentials;
use sanloom_scsi::iscsi::initiator::{
    Broken, Command, Destination, Established, Input, Login, LoginConfig, LoginError, Outcome, Output, Session,
    SessionConfig, login,
};
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use sanloom_scsi::iscsi::target::{self, Authentication, ConnectionId, Directory, Node, Portal, Redirect, Target};
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Initiator with its target.
struct Pair {
    session: Session,
    bed: Bed,
    buffers: BTreeMap<u64, Vec<u8>>,
    done: Vec<(u64, Outcome)>,
    broken: Option<Broken>,
}

impl Pair {
    fn new(agreed: Parameters) -> Pair {
        let established =
            Established { tsih: 1, parameters: agreed, cmd_sn: 1, max_cmd_sn: 1, exp_stat_sn: 1, portal_group: None };
        let session = Session::new(Instant::ZERO, established, SessionConfig::default());
        Pair { session, bed: Bed::new(agreed), buffers: BTreeMap::new(), done: Vec::new(), broken: None }
    }

    fn input(&mut self, input: Input) {
        let now = self.bed.now;
        self.session.handle(now, input);
        self.run_until_idle();
    }

    /// Carries PDUs between the two sides until nothing is left to do.
    fn run_until_idle(&mut self) {
        while let Some(output) = self.session.poll_output() {
            let (head, data) = match output {
                Output::Send { head, data } => (head, data.to_vec()),
                Output::Data { id, head, at } => {
                    let data = self
                        .buffers
                        .get(&id)
                        .map(|buffer| buffer[at as usize..(at + head.data_bytes) as usize].to_vec());
                    (head, data.unwrap_or_default())
                }
                Output::Done { id, outcome } => {
                    self.done.push((id, outcome));
                    continue;
                }
                Output::Broken(why) => {
                    self.broken = Some(why);
                    continue;
                }
            };
            for answer in self.bed.pdu(head, &data) {
                if let target::Output::Send { head, data } = answer {
                    self.receive(head, &data, true);
                }
            }
        }
    }

    fn receive(&mut self, head: Head, data: &[u8], intact: bool) {
        let now = self.bed.now;
        self.session.handle(now, Input::Header(head));
        if data.is_empty() {
            return;
        }
        match self.session.destination() {
            Destination::Text => self.session.handle(now, Input::Text { data: data.into(), intact }),
            Destination::Skip => self.session.handle(now, Input::Segment { intact }),
            Destination::Buffer { id, at } => {
                let buffer = self.buffers.get_mut(&id).expect("a buffer");
                buffer[at as usize..at as usize + data.len()].copy_from_slice(data);
                self.session.handle(now, Input::Segment { intact });
            }
        }
    }

    fn submit(&mut self, id: u64, cdb: Cdb, direction: DataDirection, buffer: Vec<u8>) {
        let bytes = buffer.len() as u32;
        self.buffers.insert(id, buffer);
        self.input(Input::Submit(Command { id, lun: [0; 8], cdb: cdb.to_bytes(), direction, bytes }));
    }

    fn write(&mut self, id: u64, lba: u64, data: &[u8]) {
        let blocks = data.len() as u32 / BLOCK;
        self.submit(id, Cdb::Write { lba, blocks, fua: false }, DataDirection::Write, data.to_vec());
    }

    fn read(&mut self, id: u64, lba: u64, blocks: u32) {
        let room = vec![0; (blocks * BLOCK) as usize];
        self.submit(id, Cdb::Read { lba, blocks, fua: false }, DataDirection::Read, room);
    }
}

fn good(bytes: u32) -> Outcome {
    Outcome::Completed { status: 0, sense: Box::default(), transferred: bytes }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With any parameters, reads return the written data.
    #[test]
    fn the_two_sides_move_the_same_data(
        (initial_r2t, immediate_data) in (any::<bool>(), any::<bool>()),
        (send, burst, first) in (512_u32..70_000, 512_u32..70_000, 512_u32..70_000),
        r2t in 1_u16..6,
        blocks in 1_u32..300,
        lba in 0_u64..3000,
    ) {
        let mut pair = Pair::new(Parameters {
            initial_r2t,
            immediate_data,
            send_bytes: send,
            receive_bytes: send,
            max_burst_bytes: burst,
            first_burst_bytes: first.min(burst),
            max_outstanding_r2t: r2t,
            ..Parameters::default()
        });
        let data: Vec<u8> = (0..blocks * BLOCK).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        pair.write(1, lba, &data);
        pair.read(2, lba, blocks);
        prop_assert_eq!(&pair.done, &[(1, good(blocks * BLOCK)), (2, good(blocks * BLOCK))]);
        prop_assert!(pair.buffers[&2] == data);
        prop_assert_eq!((pair.broken, pair.session.commands(), pair.bed.session.tasks()), (None, 0, 0));
    }

    /// No PDU of a target causes a panic.
    #[test]
    fn random_pdus_are_survived(pdus in proptest::collection::vec((proptest::array::uniform16(any::<u8>()), 0_u8..6, 0_u32..4, any::<bool>()), 1..60)) {
        let mut pair = Pair::new(Parameters::default());
        pair.bed.prompt = false;
        pair.read(1, 0, 4);
        pair.write(2, 0, &[1; 2048]);
        for (noise, kind, tag, intact) in pdus {
            let (stat_sn, exp_cmd_sn, max_cmd_sn) = (1 + tag, 1, 40);
            let header = match kind {
                0 => Header::DataIn(DataIn {
                    flags: noise[0], status: 0, lun: [0; 8], initiator_tag: tag, target_tag: NO_TAG, stat_sn, exp_cmd_sn,
                    max_cmd_sn, data_sn: 0, offset: u32::from(noise[1]) * 16, residual: 0,
                }),
                1 => Header::R2t(R2t {
                    lun: [0; 8], initiator_tag: tag, target_tag: 1, stat_sn, exp_cmd_sn, max_cmd_sn, r2t_sn: 0,
                    offset: u32::from(noise[1]) * 16, desired_bytes: u32::from(noise[2]) * 16,
                }),
                2 => Header::TaskResponse(TaskResponse { response: noise[0], initiator_tag: tag, stat_sn, exp_cmd_sn, max_cmd_sn }),
                _ => {
                    let bytes: Vec<u8> = noise.iter().cycle().take(48).copied().collect();
                    Head::parse(bytes.first_chunk().expect("48 bytes")).header
                }
            };
            let data = vec![3; usize::from(noise[3] & 31)];
            pair.session.handle(pair.bed.now, Input::Header(Head::with_data(header, data.len() as u32)));
            match pair.session.destination() {
                _ if data.is_empty() => {}
                Destination::Text => pair.session.handle(pair.bed.now, Input::Text { data: data.into(), intact }),
                Destination::Buffer { id, at } => {
                    prop_assert!(at as usize + data.len() <= pair.buffers[&id].len());
                    pair.session.handle(pair.bed.now, Input::Segment { intact });
                }
                Destination::Skip => pair.session.handle(pair.bed.now, Input::Segment { intact }),
            }
            while let Some(output) = pair.session.poll_output() {
                if let Output::Data { id, head, at } = output {
                    prop_assert!((at + head.data_bytes) as usize <= pair.buffers[&id].len());
                }
            }
        }
    }
}

#[test]
fn commands_wait_for_the_window() {
    let mut pair = Pair::new(Parameters::default());
    pair.bed.prompt = false;
    for id in 0..200 {
        pair.read(id, id, 1);
    }
    // The login permitted one command; its response opens the window.
    assert_eq!(pair.bed.ios.len(), 1);
    for _ in 0..200 {
        for answer in pair.bed.work() {
            if let target::Output::Send { head, data } = answer {
                pair.receive(head, &data, true);
            }
        }
        pair.run_until_idle();
        assert!(pair.bed.session.tasks() <= 128);
    }
    assert_eq!(pair.done.len(), 200);
    assert!(pair.done.iter().all(|(_, outcome)| *outcome == good(BLOCK)));
}

#[test]
fn a_command_that_takes_too_long_is_aborted() {
    let mut pair = Pair::new(Parameters::default());
    pair.bed.prompt = false;
    pair.read(1, 0, 1);
    assert_eq!(pair.session.poll_timeout(), Some(Instant::ZERO + Span::from_secs(10)));
    // The target is alive, because it answers a NOP-Out.
    for _ in 0..3 {
        pair.bed.now += Span::from_secs(10);
        pair.input(Input::Timeout);
    }
    assert_eq!(pair.done, [(1, Outcome::TimedOut)]);
    assert_eq!((pair.session.counters().aborted, pair.bed.session.tasks(), pair.broken), (1, 0, None));
    // Data of the aborted read arrive late and are dropped.
    pair.bed.work();
    pair.bed.prompt = true;
    pair.read(2, 0, 1);
    assert_eq!(pair.done.last(), Some(&(2, good(BLOCK))));
}

#[test]
fn an_abort_that_is_refused_ends_the_session() {
    let mut pair = Pair::new(Parameters::default());
    pair.bed.prompt = false;
    pair.write(1, 0, &[1; 512]);
    pair.session.handle(Instant::ZERO + Span::from_secs(30), Input::Timeout);
    let abort = std::iter::from_fn(|| pair.session.poll_output()).find_map(|output| match output {
        Output::Send { head: Head { header: Header::TaskRequest(request), .. }, .. } => Some(request.initiator_tag),
        _ => None,
    });
    let initiator_tag = abort.expect("an abort");
    let response = code::task_response::NOT_SUPPORTED;
    let refusal = TaskResponse { response, initiator_tag, stat_sn: 1, exp_cmd_sn: 2, max_cmd_sn: 9 };
    pair.receive(Head::new(refusal), &[], true);
    pair.run_until_idle();
    // The write may still be active, so it is not reported as aborted.
    assert_eq!((pair.broken, &pair.done[..]), (Some(Broken::Unaborted), &[][..]));
}

#[test]
fn repeated_data_and_repeated_r2ts_end_the_session() {
    let data_in = |offset| DataIn {
        flags: 0,
        status: 0,
        lun: [0; 8],
        initiator_tag: 1,
        target_tag: NO_TAG,
        stat_sn: 0,
        exp_cmd_sn: 2,
        max_cmd_sn: 9,
        data_sn: 0,
        offset,
        residual: 0,
    };
    for (second, broken) in [(512, None), (0, Some(Broken::Protocol)), (1024, Some(Broken::Protocol))] {
        let mut pair = Pair::new(Parameters::default());
        pair.bed.prompt = false;
        pair.read(1, 0, 4);
        for offset in [0, second] {
            pair.receive(Head::with_data(data_in(offset), 512), &[1; 512], true);
        }
        pair.run_until_idle();
        assert_eq!(pair.broken, broken, "{second}");
    }
    let r2t = |offset| R2t {
        lun: [0; 8],
        initiator_tag: 1,
        target_tag: 1,
        stat_sn: 1,
        exp_cmd_sn: 2,
        max_cmd_sn: 9,
        r2t_sn: 0,
        offset,
        desired_bytes: 512,
    };
    for (offsets, broken) in [([512, 1024], None), ([512, 512], Some(Broken::Protocol))] {
        let mut pair = Pair::new(Parameters { immediate_data: true, first_burst_bytes: 512, ..Parameters::default() });
        let data = Command {
            id: 1,
            lun: [0; 8],
            cdb: Cdb::Write { lba: 0, blocks: 4, fua: false }.to_bytes(),
            direction: DataDirection::Write,
            bytes: 2048,
        };
        pair.session.handle(Instant::ZERO, Input::Submit(data));
        for offset in offsets {
            pair.session.handle(Instant::ZERO, Input::Header(Head::new(r2t(offset))));
        }
        let ended = std::iter::from_fn(|| pair.session.poll_output()).find_map(|output| match output {
            Output::Broken(why) => Some(why),
            _ => None,
        });
        assert_eq!(ended, broken, "{offsets:?}");
    }
}

/// A command that has ended leaves no deadline.
#[test]
fn ended_commands_leave_no_deadline() {
    let mut pair = Pair::new(Parameters::default());
    pair.bed.now += Span::from_secs(9);
    for id in 0..100 {
        pair.read(id, 0, 1);
    }
    assert_eq!(pair.done.len(), 100);
    assert_eq!(pair.session.poll_timeout(), Some(pair.bed.now + SessionConfig::default().ping));
}

#[test]
fn a_silent_target_ends_the_session() {
    let mut pair = Pair::new(Parameters::default());
    let mut pings = 0;
    for _ in 0..2 {
        pair.bed.now += Span::from_secs(10);
        pair.session.handle(pair.bed.now, Input::Timeout);
        pings += std::iter::from_fn(|| pair.session.poll_output())
            .filter(|output| matches!(output, Output::Send { .. }))
            .count();
    }
    assert_eq!((pings, pair.session.poll_timeout()), (1, None));
}

#[test]
fn a_reset_and_a_logout_are_answered() {
    let mut pair = Pair::new(Parameters::default());
    pair.input(Input::Reset { id: 7, lun: [0; 8] });
    pair.input(Input::Reset { id: 8, lun: [0, 99, 0, 0, 0, 0, 0, 0] });
    // A reset of a missing unit counts as successful.
    assert_eq!(pair.done, [(7, Outcome::Reset { success: true }), (8, Outcome::Reset { success: true })]);
    pair.input(Input::LogOut);
    assert_eq!(pair.broken, Some(Broken::LoggedOut));
}

#[test]
fn damaged_data_fail_their_command() {
    let mut pair = Pair::new(Parameters::default());
    pair.bed.prompt = false;
    pair.read(1, 0, 1);
    for answer in pair.bed.work() {
        if let target::Output::Send { head, data } = answer {
            pair.receive(head, &data, false);
        }
    }
    pair.run_until_idle();
    assert_eq!(pair.done, [(1, Outcome::Failed)]);
}

#[test]
fn a_target_that_requests_a_logout_or_negotiation_gets_a_logout() {
    for event in [AsyncEvent::LOGOUT, AsyncEvent::NEGOTIATION] {
        let outputs = outputs_after_event(event);
        let [
            Output::Send { head: Head { header: Header::LogoutRequest(_), .. }, .. },
            Output::Broken(Broken::LogoutRequested),
        ] = outputs[..]
        else {
            panic!("{outputs:?}")
        };
    }
}

#[test]
fn a_dropped_connection_gets_no_more_pdus_and_other_events_end_nothing() {
    for event in [AsyncEvent::CONNECTION_DROP, AsyncEvent::SESSION_DROP] {
        assert_eq!(outputs_after_event(event), [Output::Broken(Broken::LogoutRequested)], "{event}");
    }
    for event in [AsyncEvent::SCSI, AsyncEvent(0xf8)] {
        assert_eq!(outputs_after_event(event), [], "{event}");
    }
}

/// Outputs of an initiator after an asynchronous message with this event.
fn outputs_after_event(event: AsyncEvent) -> Vec<Output> {
    let mut pair = Pair::new(Parameters::default());
    let message = AsyncMessage {
        lun: [0; 8],
        initiator_tag: NO_TAG,
        stat_sn: 1,
        exp_cmd_sn: 1,
        max_cmd_sn: 9,
        event,
        vendor_code: 0,
        parameter1: 0,
        parameter2: 0,
        parameter3: 5,
    };
    pair.receive(Head::new(message), &[], true);
    std::iter::from_fn(|| pair.session.poll_output()).collect()
}

/// Logs this initiator in to this target and returns the results of both sides.
fn log_in(
    target: Target,
    own: Option<Credentials>,
    proof: Option<Credentials>,
    offers: Offers,
) -> (Result<Established, LoginError>, Option<target::Established>) {
    const PORTAL: &str = "192.0.2.1:3260";
    let name = target.name.clone();
    let target = Target { portals: vec![Portal { address: PORTAL.into(), group: 1 }], ..target };
    let config = target::login::LoginConfig {
        node: Arc::new(Node { targets: vec![target], ..Node::default() }),
        address: PORTAL.into(),
        group: 1,
        connection: ConnectionId(1),
        challenge: [7; 16],
        timeout: Span::from_secs(15),
    };
    let mut target_login = target::Login::new(Instant::ZERO, config);
    let mut initiator_login = Login::new(
        Instant::ZERO,
        LoginConfig {
            initiator: INITIATOR.into(),
            target: Some(name),
            isid: [0x80, 0, 0, 0, 0, 1],
            offers,
            own,
            target_proof: proof,
            challenge: [9; 16],
            timeout: Span::from_secs(15),
        },
    );
    let mut directory = Directory::default();
    let mut established = None;
    for _ in 0..20 {
        while let Some(output) = initiator_login.poll_output() {
            match output {
                login::Output::Send { head, text } => {
                    target_login.handle(Instant::ZERO, target::login::Input::Pdu { head, text }, &mut directory);
                }
                login::Output::Done(done) => return (Ok(done), established),
                login::Output::Failed(error) => return (Err(error), established),
            }
        }
        while let Some(output) = target_login.poll_output() {
            match output {
                target::login::Output::Send { head, text } => {
                    initiator_login.handle(Instant::ZERO, login::Input::Pdu { head, text })
                }
                target::login::Output::Done(done) => established = Some(*done),
                target::login::Output::Close => {}
            }
        }
    }
    panic!("a login without end");
}

fn disk() -> Target {
    Target::new("iqn.2026-11.net.example:disk")
}

fn credentials(name: &str, secret: &str) -> Credentials {
    Credentials { name: name.into(), secret: secret.into() }
}

#[test]
fn both_sides_of_a_login_agree() {
    let offers =
        Offers { data_digest: Digests::Always, receive_bytes: 4096, max_outstanding_r2t: 3, ..Offers::default() };
    let (initiator, target) = log_in(disk(), None, None, offers);
    let (initiator, target) = (initiator.expect("a session"), target.expect("a session"));
    let (a, b) = (initiator.parameters, target.parameters);
    assert_eq!(
        (initiator.tsih, initiator.cmd_sn, initiator.exp_stat_sn),
        (target.tsih, target.exp_cmd_sn, target.stat_sn)
    );
    assert_eq!((a.receive_bytes, a.send_bytes), (b.send_bytes, b.receive_bytes));
    assert_eq!(a, Parameters { receive_bytes: a.receive_bytes, send_bytes: a.send_bytes, ..b });
    assert!(a.data_digest && !a.header_digest && a.max_outstanding_r2t == 3 && !a.initial_r2t);
}

#[test]
fn a_side_that_requires_digests_has_no_session_without() {
    let all = [Digests::Never, Digests::Either, Digests::Always];
    for (initiator, target) in all.iter().flat_map(|initiator| all.iter().map(move |target| (*initiator, *target))) {
        for data in [false, true] {
            let of = |digests| match data {
                false => Offers { header_digest: digests, ..Offers::default() },
                true => Offers { data_digest: digests, ..Offers::default() },
            };
            let (outcome, there) = log_in(Target { offers: of(target), ..disk() }, None, None, of(initiator));
            let outcome = outcome.map(|done| (done.parameters.header_digest, done.parameters.data_digest));
            let agreed = initiator == Digests::Always || target == Digests::Always;
            let expected = match (initiator, target) {
                (Digests::Never, Digests::Always) => Err(LoginError::Refused(LoginStatus::INITIATOR_ERROR)),
                (Digests::Always, Digests::Never) => Err(LoginError::NoDigests),
                _ => Ok((agreed && !data, agreed && data)),
            };
            assert_eq!(outcome, expected, "{initiator:?} {target:?}");
            // A target that accepts sessions without digests has started the session, which ends
            // with the connection.
            assert_eq!(there.is_some(), !matches!(expected, Err(LoginError::Refused(_))));
        }
    }
}

#[test]
fn both_sides_authenticate() {
    let secret = || Target {
        authentication: Authentication {
            initiators: vec![credentials("host", "a secret of the host")],
            own: Some(credentials("array", "a secret of the array")),
        },
        ..disk()
    };
    let host = || Some(credentials("host", "a secret of the host"));
    let try_with = |own, proof| log_in(secret(), own, proof, Offers::default()).0.map(|_| ());
    assert_eq!(try_with(host(), None), Ok(()));
    assert_eq!(try_with(host(), Some(credentials("array", "a secret of the array"))), Ok(()));
    assert_eq!(try_with(host(), Some(credentials("array", "something else"))), Err(LoginError::Unproved));
    assert_eq!(try_with(host(), Some(credentials("other", "a secret of the array"))), Err(LoginError::Unproved));
    let refused = Err(LoginError::Refused(LoginStatus::AUTHENTICATION_FAILURE));
    assert_eq!(try_with(Some(credentials("host", "wrong")), None), refused);
    assert_eq!(try_with(None, None), refused);
    // A target that requires no authentication gives no proof either.
    assert_eq!(log_in(disk(), host(), None, Offers::default()).0.map(|_| ()), refused);
    assert_eq!(
        log_in(disk(), None, Some(credentials("array", "x")), Offers::default()).0.map(|_| ()),
        Err(LoginError::Unproved)
    );
}

#[test]
fn refusals_and_redirections_are_reported() {
    let moved =
        |permanent| Target { redirect: Some(Redirect { address: "192.0.2.9:3260".into(), permanent }), ..disk() };
    for permanent in [false, true] {
        let outcome = log_in(moved(permanent), None, None, Offers::default()).0;
        assert_eq!(outcome, Err(LoginError::Moved { address: "192.0.2.9:3260".into(), permanent }));
    }
    let nobody = Target { access: target::Access::Listed(Default::default()), ..disk() };
    let outcome = log_in(nobody, None, None, Offers::default()).0;
    assert_eq!(outcome, Err(LoginError::Refused(LoginStatus::AUTHORIZATION_FAILURE)));
}

/// The operator sees the code of the response and its name in RFC 7143, section 11.13.5.
#[test]
fn a_refused_login_names_the_status() {
    let target = Target {
        authentication: Authentication { initiators: vec![credentials("host", "right")], own: None },
        ..disk()
    };
    let outcome = log_in(target, Some(credentials("host", "wrong")), None, Offers::default()).0;
    let error = outcome.expect_err("a wrong secret").to_string();
    assert_eq!(error, "the target refuses the login: 0x0201 authentication failure");
    let text = |code| LoginError::Refused(LoginStatus(code)).to_string();
    assert_eq!(text(0x0206), "the target refuses the login: 0x0206 too many connections");
    assert_eq!(text(0x0301), "the target refuses the login: 0x0301 service unavailable");
    assert_eq!(text(0x03ff), "the target refuses the login: 0x03ff, an unknown target error");
}
