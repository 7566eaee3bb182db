//! Reliable connections over a network that loses, repeats and reorders packets.

use proptest::prelude::*;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::infiniband::packet::Mtu;
use sanloom_transport::infiniband::rc::Config;
use sanloom_transport::infiniband::rc::packet::{Fatal, Operation, Part, Psn, Request, Response, ResponseKind};
use sanloom_transport::infiniband::rc::requester::{self, Failure, Requester, Work};
use sanloom_transport::infiniband::rc::responder::{self, Responder};
use sanloom_transport::infiniband::ud;
use std::collections::BTreeMap;

/// Packet in flight, or receives that are posted.
#[derive(Clone, Copy)]
enum Event {
    Request(Request),
    Response(Response),
    Receives(u32),
}

/// Mistakes of the network, in percent, and the greatest delay of a packet.
#[derive(Clone, Copy, Debug)]
struct Network {
    loss: u64,
    repeat: u64,
    delay_us: u64,
}

/// Run of a connection.
struct Run {
    completed: Vec<u64>,
    flushed: Vec<u64>,
    failure: Option<Failure>,
    /// Messages at the responder.
    messages: Vec<(Operation, u32)>,
    /// Requests, responses and acknowledgements that were sent.
    requests: u32,
    acks: u32,
    ended: Instant,
}

/// Runs a connection until nothing is left to do. `receives` are posted at their times, in us.
fn run(config: Config, work: &[Work], receives: &[(u64, u32)], network: Network, seed: u64) -> Run {
    let mut random = SplitMix64(seed);
    let (mut requester, mut responder) = (Requester::new(config), Responder::new(config));
    let mut queue: BTreeMap<(Instant, u64), Event> = BTreeMap::new();
    let mut number = 0;
    let mut now = Instant::ZERO;
    let mut run = Run {
        completed: Vec::new(),
        flushed: Vec::new(),
        failure: None,
        messages: Vec::new(),
        requests: 0,
        acks: 0,
        ended: now,
    };
    for (at, count) in receives {
        number += 1;
        queue.insert((Instant::ZERO + Span::from_us(*at), number), Event::Receives(*count));
    }
    for work in work {
        requester.handle(now, requester::Input::Post(*work));
    }
    for _ in 0..2_000_000 {
        let mut leaving = Vec::new();
        while let Some(output) = requester.poll_output() {
            match output {
                requester::Output::Send(request) => {
                    run.requests += 1;
                    leaving.push(Event::Request(request));
                }
                requester::Output::Completed(id) => run.completed.push(id),
                requester::Output::Flushed(id) => run.flushed.push(id),
                requester::Output::Failed(failure) => run.failure = Some(failure),
            }
        }
        while let Some(output) = responder.poll_output() {
            match output {
                responder::Output::Send(response) => {
                    run.acks += u32::from(response.kind == ResponseKind::Ack);
                    leaving.push(Event::Response(response));
                }
                responder::Output::Message(operation, length) => run.messages.push((operation, length)),
                responder::Output::Failed(reason) => panic!("{reason:?}"),
            }
        }
        for event in leaving {
            if random.chance(network.loss) {
                continue;
            }
            for _ in 0..1 + u32::from(random.chance(network.repeat)) {
                number += 1;
                let delay = Span::from_ns(1_000 + random.below(network.delay_us * 1_000 + 1));
                queue.insert((now + delay, number), event);
            }
        }
        let packet = queue.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = Instant::earliest(&[packet, requester.poll_timeout()]) else {
            run.ended = now;
            return run;
        };
        now = now.max(next);
        if packet == Some(next) {
            match queue.pop_first().unwrap().1 {
                Event::Request(request) => responder.handle(responder::Input::Packet(request)),
                Event::Response(response) => requester.handle(now, requester::Input::Packet(response)),
                Event::Receives(count) => responder.handle(responder::Input::Receives(count)),
            }
        } else {
            requester.handle(now, requester::Input::Timeout);
        }
    }
    panic!("the connection never ends");
}

const GOOD: Network = Network { loss: 0, repeat: 0, delay_us: 0 };

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![Just(Operation::Send), Just(Operation::Write), Just(Operation::Read)]
}

proptest! {
    #[test]
    fn every_message_completes_once_in_order_or_the_queue_pair_fails(
        work in prop::collection::vec((operation(), 0u32..20_000), 1..40),
        first_psn in prop_oneof![Just(0), Just(0xFF_FFF0), 0u32..1 << 24],
        loss in 0u64..25, repeat in 0u64..20, delay_us in 0u64..100,
        window in 1u32..64, ack_every in 1u32..80, reads in 1u32..6,
        late in any::<bool>(), seed in any::<u64>(),
    ) {
        let config = Config { first_psn, timeout: 6, window, ack_every, reads, mtu: Mtu::B256, ..Config::SOFT_ROCE };
        let ids = 0u64..;
        let work: Vec<Work> =
            work.into_iter().zip(ids).map(|((operation, length), id)| Work { id, operation, length }).collect();
        let sends = work.iter().filter(|work| work.operation == Operation::Send).count() as u32;
        let receives = if late { vec![(0, sends / 2), (3_000, sends - sends / 2)] } else { vec![(0, sends)] };
        let run = run(config, &work, &receives, Network { loss, repeat, delay_us }, seed);
        let posted: Vec<(Operation, u32)> = work.iter().map(|work| (work.operation, work.length)).collect();
        // Completions, then flushed requests, are exactly the posted ones in order.
        let ids: Vec<u64> = run.completed.iter().chain(&run.flushed).copied().collect();
        prop_assert_eq!(ids, (0..work.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(run.failure.is_some(), !run.flushed.is_empty());
        // The responder sees each message once, in order, and at least the complete ones.
        prop_assert!(run.messages.len() >= run.completed.len());
        prop_assert_eq!(&run.messages[..], &posted[..run.messages.len()]);
        if loss == 0 && delay_us == 0 {
            prop_assert_eq!(run.failure, None);
        }
    }

    #[test]
    fn random_packets_cause_no_panic(seed in any::<u64>()) {
        let mut random = SplitMix64(seed);
        let config = Config { mtu: Mtu::B256, ..Config::SOFT_ROCE };
        let (mut requester, mut responder) = (Requester::new(config), Responder::new(config));
        responder.handle(responder::Input::Receives(5));
        let operations = [Operation::Send, Operation::Write, Operation::Read];
        let parts = [Part::First, Part::Middle, Part::Last, Part::Only];
        let mut completed = 0;
        for id in 0..60 {
            let operation = operations[random.index(3)];
            let length = random.below(3_000) as u32;
            requester.handle(Instant::from_ns(id), requester::Input::Post(Work { id, operation, length }));
            let psn = Psn::of(if random.chance(70) { random.below(8) } else { random.bits() });
            let length = if random.chance(50) { 256 } else { random.bits() as u32 };
            let part = parts[random.index(4)];
            let kind = match random.below(6) {
                0 => ResponseKind::NakSequence,
                1 => ResponseKind::NotReady(Span::from_us(10)),
                2 if random.chance(5) => ResponseKind::Nak(Fatal::Access),
                3 => ResponseKind::Data { part, length },
                _ => ResponseKind::Ack,
            };
            requester.handle(Instant::from_ns(id), requester::Input::Packet(Response { psn, kind }));
            let request = Request { psn, operation, part, length, ack: random.chance(50) };
            responder.handle(responder::Input::Packet(request));
            for _ in 0..200 {
                completed += u64::from(matches!(requester.poll_output(), Some(requester::Output::Completed(_))));
                responder.poll_output();
            }
        }
        prop_assert!(completed <= 60);
    }
}

fn writes(count: u64, length: u32) -> Vec<Work> {
    (0..count).map(|id| Work { id, operation: Operation::Write, length }).collect()
}

#[test]
fn acknowledgements_are_coalesced() {
    // 200 packets of one message: one acknowledgement per 64, and the last.
    let run = run(Config::SOFT_ROCE, &writes(1, 200 * 1024), &[], GOOD, 1);
    assert_eq!((run.completed.len(), run.requests, run.acks), (1, 200, 4));
}

#[test]
fn without_any_answer_the_queue_pair_fails_after_seven_repetitions() {
    let run = run(Config::SOFT_ROCE, &writes(1, 0), &[], Network { loss: 100, ..GOOD }, 1);
    assert_eq!(run.failure, Some(Failure::RetriesExceeded));
    assert_eq!((run.requests, run.flushed.len()), (8, 1));
    // 8 times 4.096 us * 2^14.
    assert_eq!(run.ended, Instant::from_ns(8 * 4_096 * 16_384));
}

#[test]
fn a_gap_is_repeated_after_one_negative_acknowledgement() {
    let config = Config { first_psn: 5, ..Config::SOFT_ROCE };
    let mut responder = Responder::new(config);
    let packet =
        |psn| Request { psn: Psn::of(psn), operation: Operation::Write, part: Part::Only, length: 0, ack: true };
    for psn in [6, 7, 8] {
        responder.handle(responder::Input::Packet(packet(psn)));
    }
    let nak = Response { psn: Psn::of(5), kind: ResponseKind::NakSequence };
    assert_eq!(responder.poll_output(), Some(responder::Output::Send(nak)));
    assert_eq!(responder.poll_output(), None);
    let mut requester = Requester::new(config);
    for work in writes(4, 0) {
        requester.handle(Instant::ZERO, requester::Input::Post(work));
    }
    let sent = |requester: &mut Requester| -> Vec<u32> {
        let outputs = std::iter::from_fn(|| requester.poll_output());
        let sent = outputs.filter_map(|output| match output {
            requester::Output::Send(request) => Some(request.psn.get()),
            _ => None,
        });
        sent.collect()
    };
    assert_eq!(sent(&mut requester), [5, 6, 7, 8]);
    requester.handle(Instant::ZERO, requester::Input::Packet(nak));
    assert_eq!(sent(&mut requester), [5, 6, 7, 8]);
}

#[test]
fn a_send_waits_for_a_receive() {
    let send = [Work { id: 0, operation: Operation::Send, length: 10 }];
    let late = run(Config::SOFT_ROCE, &send, &[(5_000, 1)], GOOD, 1);
    assert_eq!((late.completed, late.failure), (vec![0], None));
    let never = run(Config { rnr_retries: 3, ..Config::SOFT_ROCE }, &send, &[], GOOD, 1);
    assert_eq!((never.failure, never.requests), (Some(Failure::NotReadyExceeded), 4));
}

#[test]
fn reads_are_bounded_by_the_responder_resources() {
    let config = Config { reads: 4, ..Config::SOFT_ROCE };
    let mut requester = Requester::new(config);
    for id in 0..10 {
        let read = Work { id, operation: Operation::Read, length: 1024 };
        requester.handle(Instant::ZERO, requester::Input::Post(read));
    }
    let sent = std::iter::from_fn(|| requester.poll_output()).count();
    assert_eq!(sent, 4);
    // More than the resources from a peer that ignores them: invalid request.
    let mut responder = Responder::new(config);
    for psn in 0..5 {
        let read = Request { psn: Psn::of(psn), operation: Operation::Read, part: Part::Only, length: 8, ack: true };
        responder.handle(responder::Input::Packet(read));
    }
    let outputs: Vec<_> = std::iter::from_fn(|| responder.poll_output()).collect();
    assert!(outputs.contains(&responder::Output::Failed(Fatal::InvalidRequest)), "{outputs:?}");
}

#[test]
fn datagrams_are_one_packet_each_and_need_a_receive() {
    let mut end = ud::Endpoint::new(Mtu::B2048);
    for input in [ud::Input::Post(1, 2048), ud::Input::Post(2, 2049), ud::Input::Packet(7), ud::Input::Receives(1)] {
        end.handle(input);
    }
    end.handle(ud::Input::Packet(8));
    end.handle(ud::Input::Packet(9));
    let outputs: Vec<_> = std::iter::from_fn(|| end.poll_output()).collect();
    let expected = [ud::Output::Send(2048), ud::Output::Completed(1), ud::Output::TooLong(2), ud::Output::Received(8)];
    assert_eq!(outputs, expected);
    assert_eq!(end.dropped(), 2);
}
