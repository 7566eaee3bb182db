//! Session functions other than data and task management.

use crate::iscsi::bed::*;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::target::{CloseReason, Limits, Portal};
use sanloom_scsi::iscsi::target::{Input, Node, Output, Session, Target};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{flag, logout, logout_response};
use sanloom_wire::iscsi::*;
use std::sync::Arc;

fn nop(initiator_tag: u32, cmd_sn: u32) -> Head {
    Head::new(NopOut { lun: [0; 8], initiator_tag, target_tag: NO_TAG, cmd_sn, exp_stat_sn: 1 })
}

fn sent(outputs: &[Output]) -> Vec<(Header, Vec<u8>)> {
    let pdu = |output: &Output| match output {
        Output::Send { head, data } => Some((head.header, data.to_vec())),
        _ => None,
    };
    outputs.iter().filter_map(pdu).collect()
}

#[test]
fn a_nop_is_echoed_in_command_order() {
    let mut bed = Bed::new(parameters());
    let outputs = bed.pdu(nop(3, 1), b"ping");
    let [(Header::NopIn(answer), data)] = &sent(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((answer.initiator_tag, answer.target_tag, answer.exp_cmd_sn, &data[..]), (3, NO_TAG, 2, &b"ping"[..]));
    // An early PDU waits; a late one or one beyond the window is ignored.
    assert_eq!(bed.pdu(nop(5, 3), &[]), []);
    assert_eq!(bed.pdu(nop(6, 1), &[]), []);
    assert_eq!(bed.pdu(nop(6, 1000), &[]), []);
    let outputs = bed.pdu(nop(4, 2), &[]);
    let tags: Vec<u32> = sent(&outputs)
        .iter()
        .filter_map(|(header, _)| match header {
            Header::NopIn(nop) => Some(nop.initiator_tag),
            _ => None,
        })
        .collect();
    assert_eq!(tags, [4, 5]);
    assert_eq!(bed.session.counters().outside_window, 2);
}

#[test]
fn commands_begin_in_the_order_of_their_numbers() {
    let mut bed = Bed { prompt: false, ..Bed::new(parameters()) };
    for (tag, cmd_sn) in [(30, 3), (20, 2), (40, 4)] {
        let head = command(tag, cmd_sn, READ, Cdb::Read { lba: u64::from(tag), blocks: 1, fua: false }, BLOCK);
        assert_eq!(bed.pdu(head, &[]), []);
    }
    let head = command(10, 1, READ, Cdb::Read { lba: 10, blocks: 1, fua: false }, BLOCK);
    bed.pdu(head, &[]);
    assert_eq!(bed.ios.iter().map(|io| io.lba).collect::<Vec<_>>(), [10, 20, 30, 40]);
}

#[test]
fn a_closed_window_admits_no_command_until_one_has_ended() {
    let mut bed = Bed { prompt: false, ..Bed::with_limits(parameters(), Limits { depth: 2, ..Limits::default() }) };
    bed.read(1, 0, 1);
    bed.read(2, 1, 1);
    let third = command(3, 3, READ, Cdb::Read { lba: 2, blocks: 1, fua: false }, BLOCK);
    assert_eq!(bed.pdu(third, &[]), []);
    assert_eq!((bed.ios.len(), bed.session.counters().outside_window), (2, 1));
    bed.work();
    bed.pdu(third, &[]);
    assert_eq!(bed.ios.len(), 1);
}

#[test]
fn a_logout_ends_the_session_if_it_names_this_connection() {
    for (reason, cid, expected, ends) in [
        (logout::CLOSE_SESSION, 9, logout_response::CLOSED, true),
        (logout::CLOSE_CONNECTION, 0, logout_response::CLOSED, true),
        (logout::CLOSE_CONNECTION, 9, logout_response::NO_CONNECTION, false),
        (logout::REMOVE_FOR_RECOVERY, 0, logout_response::NO_RECOVERY, false),
    ] {
        let mut bed = Bed::new(parameters());
        let request = LogoutRequest { reason, initiator_tag: 2, cid, cmd_sn: 1, exp_stat_sn: 1 };
        let outputs = bed.pdu(Head::new(request), &[]);
        let [(Header::LogoutResponse(answer), _), ..] = &sent(&outputs)[..] else { panic!("{outputs:?}") };
        assert_eq!(answer.response, expected, "{reason}");
        assert_eq!(outputs.last() == Some(&Output::Close(CloseReason::Logout)), ends, "{reason}");
    }
}

#[test]
fn unsupported_pdus_are_rejected_with_their_header() {
    let mut bed = Bed::new(parameters());
    let snack =
        Snack { kind: 1, lun: [0; 8], initiator_tag: NO_TAG, target_tag: NO_TAG, exp_stat_sn: 1, begin: 1, run: 1 };
    let unknown = Head::new(Header::Other { opcode: Opcode(0x1c), rest: [0; 43] });
    let answer =
        Head::new(NopIn { lun: [0; 8], initiator_tag: 1, target_tag: 1, stat_sn: 1, exp_cmd_sn: 1, max_cmd_sn: 1 });
    let wrong_write = bed.command(5, READ, Cdb::Read { lba: 0, blocks: 1, fua: false }, BLOCK);
    for (head, data, reason) in [
        (Head::new(snack), &[][..], RejectReason::SNACK_REJECT),
        (unknown, &[], RejectReason::NOT_SUPPORTED),
        (answer, &[], RejectReason::NOT_SUPPORTED),
        (wrong_write, &[1; 512], RejectReason::PROTOCOL_ERROR),
    ] {
        let outputs = bed.pdu(head, data);
        let [(Header::Reject(reject), bytes)] = &sent(&outputs)[..] else { panic!("{outputs:?}") };
        assert_eq!(reject.reason, reason);
        assert_eq!(bytes[..], Head { data_bytes: data.len() as u32, ..head }.to_bytes());
    }
    // The number of a rejected command is still missing (section 7.3), so later commands wait.
    assert_eq!(status(&bed.read(6, 0, 1)), None);
    let gap = command(7, bed.cmd_sn - 2, READ, Cdb::Read { lba: 0, blocks: 1, fua: false }, BLOCK);
    assert_eq!(status(&bed.pdu(gap, &[])), Some((6, 0)));
    let outputs = bed.pdu(
        Head::new(LoginRequest {
            flags: 0,
            version_max: 0,
            version_min: 0,
            isid: [0; 6],
            tsih: 0,
            initiator_tag: 1,
            cid: 0,
            cmd_sn: 3,
            exp_stat_sn: 1,
        }),
        &[],
    );
    assert_eq!(outputs, [Output::Close(CloseReason::Protocol)]);
}

#[test]
fn immediate_commands_do_not_count_but_are_limited() {
    let mut bed = Bed { prompt: false, ..Bed::new(parameters()) };
    for tag in 0..8 {
        let head = command(tag, 1, READ, Cdb::Read { lba: 0, blocks: 1, fua: false }, BLOCK);
        bed.pdu(Head { immediate: true, ..head }, &[]);
    }
    assert_eq!(bed.ios.len(), 8);
    let head = command(99, 1, READ, Cdb::Read { lba: 0, blocks: 1, fua: false }, BLOCK);
    let outputs = bed.pdu(Head { immediate: true, ..head }, &[]);
    assert_eq!(lines(&outputs), "      Reject: too many immediate commands\n");
    bed.read(100, 0, 1);
    assert_eq!(bed.ios.len(), 9);
    let again = command(100, 2, READ, Cdb::Read { lba: 0, blocks: 1, fua: false }, BLOCK);
    assert_eq!(lines(&bed.pdu(again, &[])), "      Reject: task in progress\n");
}

#[test]
fn a_silent_initiator_is_pinged_and_then_closed() {
    let mut bed = Bed::new(parameters());
    let ping = Span::from_secs(30);
    assert_eq!(bed.session.poll_timeout(), Some(Instant::ZERO + ping));
    bed.now = Instant::ZERO + ping;
    let outputs = bed.input(Input::Timeout);
    let [(Header::NopIn(nop), _)] = &sent(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((nop.initiator_tag, nop.target_tag), (NO_TAG, 0));
    // Any PDU counts as an answer.
    bed.now += Span::from_secs(1);
    let answer = NopOut { lun: [0; 8], initiator_tag: NO_TAG, target_tag: 0, cmd_sn: 1, exp_stat_sn: 1 };
    assert_eq!(bed.pdu(Head { immediate: true, ..Head::new(answer) }, &[]), []);
    bed.now += ping;
    assert_eq!(bed.input(Input::Timeout).len(), 1);
    bed.now += ping;
    assert_eq!(bed.input(Input::Timeout), [Output::Close(CloseReason::Silent)]);
}

#[test]
fn a_target_that_shuts_down_requests_a_logout() {
    let mut bed = Bed::new(parameters());
    let outputs = bed.input(Input::Shutdown);
    let [(Header::AsyncMessage(message), _)] = &sent(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((message.event, message.parameter3), (AsyncEvent::LOGOUT, 5));
    bed.now = Instant::ZERO + Span::from_secs(5);
    assert_eq!(bed.input(Input::Timeout), [Output::Close(CloseReason::Shutdown)]);
}

/// Session without a device: for discovery, or with a target of its own.
fn discovery(targets: usize, initiator: &str, own: Option<u16>, send_bytes: u32) -> Session {
    let target = |number: usize| {
        let mut target = Target::new(&format!("iqn.2026-11.net.example:disk{number}"));
        target.portals.push(Portal { address: "192.0.2.1:3260".into(), group: 1 });
        if number == 1 {
            target.access = sanloom_scsi::iscsi::target::Access::Listed(["iqn.2026-11.net.example:only".into()].into());
        }
        target
    };
    let node = Arc::new(Node { targets: (0..targets).map(target).collect(), ..Node::default() });
    let mut established = established(1, Parameters { send_bytes, ..Parameters::default() });
    established.key.target = own;
    established.key.initiator = initiator.into();
    Session::new(Instant::ZERO, established, node, Limits::default(), None)
}

/// Answer of a node with this many targets to one SendTargets request.
fn discover(targets: usize, initiator: &str, own: Option<u16>, value: &str, send_bytes: u32) -> Vec<u8> {
    text_answer(discovery(targets, initiator, own, send_bytes), &[("SendTargets", value)], send_bytes)
}

/// Answer of a session to one text request.
fn text_answer(mut session: Session, pairs: &[(&str, &str)], send_bytes: u32) -> Vec<u8> {
    let mut text = Vec::new();
    pairs.iter().for_each(|(key, value)| text::emit(key, value, &mut text));
    let (mut all, mut target_tag) = (Vec::new(), NO_TAG);
    for cmd_sn in 1.. {
        let request =
            TextRequest { flags: flag::FINAL, lun: [0; 8], initiator_tag: 1, target_tag, cmd_sn, exp_stat_sn: 1 };
        session.handle(Instant::ZERO, Input::Header(Head::with_data(request, text.len() as u32)), None);
        if !text.is_empty() {
            let data = std::mem::take(&mut text).into();
            session.handle(Instant::ZERO, Input::Text { data, intact: true }, None);
        }
        let Some(Output::Send { head: Head { header: Header::TextResponse(response), .. }, data }) =
            session.poll_output()
        else {
            panic!("no text")
        };
        assert!(data.len() <= send_bytes as usize);
        all.extend_from_slice(&data);
        target_tag = response.target_tag;
        if response.flags & flag::FINAL != 0 {
            return all;
        }
    }
    all
}

#[test]
fn a_repeated_key_in_a_text_request_is_rejected() {
    let mut session = discovery(3, INITIATOR, None, 8192);
    let mut text = Vec::new();
    text::emit("SendTargets", "All", &mut text);
    text::emit("SendTargets", "All", &mut text);
    let (initiator_tag, target_tag, cmd_sn, exp_stat_sn) = (1, NO_TAG, 1, 1);
    let request = TextRequest { flags: flag::FINAL, lun: [0; 8], initiator_tag, target_tag, cmd_sn, exp_stat_sn };
    session.handle(Instant::ZERO, Input::Header(Head::with_data(request, text.len() as u32)), None);
    session.handle(Instant::ZERO, Input::Text { data: text.into(), intact: true }, None);
    let outputs: Vec<Output> = std::iter::from_fn(|| session.poll_output()).collect();
    let [(Header::Reject(reject), _)] = &sent(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(reject.reason, RejectReason::PROTOCOL_ERROR);
}

#[test]
fn login_keys_are_rejected_after_the_login() {
    let pairs = [("MaxBurstLength", "512"), ("X-net.example.key", "1"), ("MaxRecvDataSegmentLength", "4096")];
    let more = [("HeaderDigest", "CRC32C"), ("AuthMethod", "None"), ("InitiatorAlias", "a"), ("MaxConnections", "2")];
    let answer = text_answer(discovery(1, INITIATOR, Some(0), 8192), &[&pairs[..], &more[..]].concat(), 8192);
    let expected = "MaxBurstLength=Reject|X-net.example.key=NotUnderstood|HeaderDigest=Reject|AuthMethod=Reject|MaxConnections=Reject|";
    assert_eq!(String::from_utf8(answer).expect("text").replace('\0', "|"), expected);
}

#[test]
fn a_silent_discovery_session_is_closed() {
    let mut session = discovery(1, INITIATOR, None, 8192);
    for seconds in [30, 60] {
        assert_eq!(session.poll_timeout(), Some(Instant::ZERO + Span::from_secs(seconds)));
        session.handle(Instant::ZERO + Span::from_secs(seconds), Input::Timeout, None);
    }
    let last = std::iter::from_fn(|| session.poll_output()).last();
    assert_eq!(last, Some(Output::Close(CloseReason::Silent)));
}

#[test]
fn targets_are_reported_to_permitted_initiators() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").replace('\0', "|");
    let one = |number| format!("TargetName=iqn.2026-11.net.example:disk{number}|TargetAddress=192.0.2.1:3260,1|");
    assert_eq!(text(discover(3, INITIATOR, None, "All", 8192)), one(0) + &one(2));
    assert_eq!(text(discover(3, "iqn.2026-11.net.example:only", None, "All", 8192)), one(0) + &one(1) + &one(2));
    assert_eq!(text(discover(3, INITIATOR, None, "iqn.2026-11.net.example:disk2", 8192)), one(2));
    assert_eq!(text(discover(3, INITIATOR, None, "iqn.2026-11.net.example:disk1", 8192)), "");
    assert_eq!(text(discover(3, INITIATOR, Some(0), "", 8192)), one(0));
    assert_eq!(text(discover(3, INITIATOR, Some(0), "All", 8192)), "SendTargets=Reject|");
    // An answer longer than a PDU is sent in several.
    let many = text(discover(200, INITIATOR, None, "All", 512));
    assert_eq!(many.matches("TargetName").count(), 199);
    assert_eq!(many, text(discover(200, INITIATOR, None, "All", 1 << 20)));
}
