//! Connection manager that accepts connections: requests, repetitions, ends, and its limits.

use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::infiniband::cm::{Config, Input, Output, Passive};
use sanloom_wire::infiniband::cm::{ReqPath, reason};
use sanloom_wire::infiniband::mad::{CmKind, CmMessage, RepFields, ReqFields};
use std::net::Ipv4Addr;

const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const CONFIG: Config = Config { response_timeout: Span::from_secs(1), retries: 2, connections: 2, first_id: u32::MAX };
const REP: RepFields = RepFields { ids: [0; 2], pair: 0x12_3456, psn: 7, depths: [0, 4], guid: 1 };

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn req(local_id: u32) -> CmMessage {
    let mut message = CmMessage::new(CmKind::Req, 0x1_0000_0000 | u64::from(local_id));
    message.set_req(&ReqFields { local_id, pair: 0x11, ..ReqFields::default() });
    message.set_private(b"login");
    message
}

fn with_ids(kind: CmKind, ids: [u32; 2]) -> CmMessage {
    let mut message = CmMessage::new(kind, 5);
    message.set_ids(ids);
    message
}

fn pass(machine: &mut Passive, now: Instant, input: Input) -> Vec<Output> {
    machine.handle(now, input);
    std::iter::from_fn(|| machine.poll_output()).collect()
}

fn receive(machine: &mut Passive, now: Instant, message: CmMessage) -> Vec<Output> {
    pass(machine, now, Input::Message(PEER, Box::new(message)))
}

/// The only message that was sent.
fn sent(outputs: &[Output]) -> CmMessage {
    match outputs {
        [Output::Send(PEER, message)] => **message,
        other => panic!("{other:?}"),
    }
}

/// Requests a connection and accepts it. Returns its communication ID and the REP.
fn accepted(machine: &mut Passive, now: Instant, remote_id: u32) -> (u32, CmMessage) {
    let outputs = receive(machine, now, req(remote_id));
    let [Output::Requested { id, from, req, private, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((*from, req.pair, &private[..5]), (PEER, 0x11, &b"login"[..]));
    let rep = sent(&pass(machine, now, Input::Accept { id: *id, rep: REP, private: b"response".to_vec() }));
    assert_eq!((rep.kind, rep.transaction), (CmKind::Rep, 0x1_0000_0000 | u64::from(remote_id)));
    assert_eq!(rep.rep(), RepFields { ids: [*id, remote_id], ..REP });
    assert_eq!(&rep.private()[..8], b"response");
    (*id, rep)
}

#[test]
fn a_connection_is_accepted_used_and_ended_by_the_peer() {
    let mut machine = Passive::new(CONFIG);
    let (id, _) = accepted(&mut machine, at(0), 40);
    assert_eq!(receive(&mut machine, at(1), with_ids(CmKind::Rtu, [40, id])), [Output::Established(id)]);
    assert_eq!(machine.poll_timeout(), None);
    let outputs = receive(&mut machine, at(2), with_ids(CmKind::Dreq, [40, id]));
    let [Output::Send(PEER, drep), Output::Closed(closed)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((drep.kind, drep.ids(), *closed), (CmKind::Drep, [id, 40], id));
    // The DREP was lost.
    let again = sent(&receive(&mut machine, at(3), with_ids(CmKind::Dreq, [40, id])));
    assert_eq!((again.kind, again.ids()), (CmKind::Drep, [id, 40]));
    assert_eq!(machine.connections(), 0);
}

#[test]
fn a_request_that_comes_again_gets_the_same_reply() {
    let mut machine = Passive::new(CONFIG);
    let (id, rep) = accepted(&mut machine, at(0), 40);
    assert_eq!(sent(&receive(&mut machine, at(10), req(40))), rep);
    // Once the RTU has arrived, the peer has the reply.
    receive(&mut machine, at(20), with_ids(CmKind::Rtu, [40, id]));
    assert_eq!(receive(&mut machine, at(30), req(40)), []);
    assert_eq!(machine.counters.requests, 1);
}

#[test]
fn a_reply_without_an_answer_is_repeated_and_then_given_up() {
    let mut machine = Passive::new(CONFIG);
    let (id, rep) = accepted(&mut machine, at(0), 40);
    assert_eq!(pass(&mut machine, at(999), Input::Timeout), []);
    for repetition in 1..=2 {
        assert_eq!(machine.poll_timeout(), Some(at(1_000 * repetition)));
        assert_eq!(sent(&pass(&mut machine, at(1_000 * repetition), Input::Timeout)), rep);
    }
    assert_eq!(pass(&mut machine, at(3_000), Input::Timeout), [Output::Closed(id)]);
    assert_eq!((machine.connections(), machine.poll_timeout()), (0, None));
}

#[test]
fn data_of_the_peer_imply_that_it_is_ready() {
    let mut machine = Passive::new(CONFIG);
    let (id, _) = accepted(&mut machine, at(0), 40);
    assert_eq!(pass(&mut machine, at(1), Input::Communicating(id)), [Output::Established(id)]);
    assert_eq!(pass(&mut machine, at(2), Input::Communicating(id)), []);
}

#[test]
fn a_connection_is_closed_with_a_request_that_is_repeated() {
    let mut machine = Passive::new(CONFIG);
    let (id, _) = accepted(&mut machine, at(0), 40);
    receive(&mut machine, at(1), with_ids(CmKind::Rtu, [40, id]));
    let dreq = sent(&pass(&mut machine, at(10), Input::Close(id)));
    assert_eq!((dreq.kind, dreq.ids(), dreq.dreq_pair()), (CmKind::Dreq, [id, 40], 0x11));
    assert_eq!(pass(&mut machine, at(20), Input::Close(id)), []);
    assert_eq!(sent(&pass(&mut machine, at(1_010), Input::Timeout)), dreq);
    assert_eq!(receive(&mut machine, at(1_020), with_ids(CmKind::Drep, [40, id])), [Output::Closed(id)]);
}

#[test]
fn rejected_and_surplus_requests_are_answered_and_leave_nothing() {
    let mut machine = Passive::new(CONFIG);
    let outputs = receive(&mut machine, at(0), req(1));
    let [Output::Requested { id, .. }] = outputs[..] else { panic!("{outputs:?}") };
    let reject = Input::Reject { id, reason: reason::CONSUMER, private: b"no".to_vec() };
    let rej = sent(&pass(&mut machine, at(0), reject));
    assert_eq!((rej.kind, rej.rej().ids, rej.rej().reason), (CmKind::Rej, [id, 1], reason::CONSUMER));
    assert_eq!(&rej.private()[..2], b"no");
    assert_eq!(machine.connections(), 0);
    let ids: Vec<u32> = (10..12).map(|remote| accepted(&mut machine, at(1), remote).0).collect();
    assert!(!ids.contains(&0), "zero means that there is no ID");
    let rej = sent(&receive(&mut machine, at(2), req(12)));
    assert_eq!((rej.rej().ids, rej.rej().reason), ([0, 12], reason::NO_QUEUE_PAIR));
    let mut datagram = req(13);
    datagram.set_req_path(&ReqPath { transport: 2, ..ReqPath::default() });
    receive(&mut machine, at(3), with_ids(CmKind::Rej, [10, ids[0]]));
    let rej = sent(&receive(&mut machine, at(4), datagram));
    assert_eq!(rej.rej().reason, reason::INVALID_TRANSPORT);
    assert_eq!(machine.counters.rejects, 3);
}

#[test]
fn messages_of_strangers_change_nothing() {
    let mut machine = Passive::new(CONFIG);
    let (id, _) = accepted(&mut machine, at(0), 40);
    let stranger = Ipv4Addr::new(192, 0, 2, 3);
    for kind in [CmKind::Rtu, CmKind::Rej, CmKind::Drep, CmKind::Mra, CmKind::Rep] {
        let message = Box::new(with_ids(kind, [40, id]));
        assert_eq!(pass(&mut machine, at(1), Input::Message(stranger, message)), [], "{kind:?}");
        if kind != CmKind::Rtu && kind != CmKind::Rej {
            assert_eq!(receive(&mut machine, at(1), with_ids(kind, [41, id])), [], "{kind:?}");
        }
    }
    let dreq = Box::new(with_ids(CmKind::Dreq, [40, id]));
    let answer = pass(&mut machine, at(1), Input::Message(stranger, dreq));
    assert!(matches!(&answer[..], [Output::Send(to, _)] if *to == stranger), "{answer:?}");
    assert_eq!(machine.connections(), 1);
}

#[test]
fn a_peer_that_begins_anew_ends_its_connection_before() {
    let mut machine = Passive::new(CONFIG);
    let (id, _) = accepted(&mut machine, at(0), 40);
    receive(&mut machine, at(1), with_ids(CmKind::Rtu, [40, id]));
    let mut request = CmMessage::new(CmKind::Req, 0x2_0000_0028);
    request.set_req(&ReqFields { local_id: 40, pair: 0x12, ..ReqFields::default() });
    let outputs = receive(&mut machine, at(2), request);
    let [Output::Closed(closed), Output::Requested { id: new, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(*closed, id);
    assert_ne!(*new, id);
    assert_eq!(machine.connections(), 1);
}

#[test]
fn a_peer_that_asks_for_time_again_and_again_is_given_up() {
    let mut machine = Passive::new(CONFIG);
    let (id, _) = accepted(&mut machine, at(0), 40);
    for ms in 1..100 {
        receive(&mut machine, at(ms), with_ids(CmKind::Mra, [40, id]));
        receive(&mut machine, at(ms), req(40));
    }
    let deadline = machine.poll_timeout().expect("a deadline");
    assert!(deadline <= at(1_100), "{deadline:?}");
    let outputs = pass(&mut machine, deadline, Input::Timeout);
    assert_eq!(outputs, [Output::Closed(id)]);
}
