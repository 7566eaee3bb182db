//! Queue pairs over the InfiniBand plane.

use super::fabric::{SDR4, network, star};
use sanloom_scsi::time::Span;
use sanloom_sim::infiniband::{Endpoint, Event, Form, Pairs};
use sanloom_sim::net::infiniband::{self, InfinibandPlan};
use sanloom_sim::net::{Net, NetEvent};
use sanloom_transport::infiniband::packet::Mtu;
use sanloom_transport::infiniband::partition::{Membership, PKey};
use sanloom_transport::infiniband::rc::Config;
use sanloom_transport::infiniband::rc::packet::{Fatal, Operation, Part, Psn, Request, Response, ResponseKind};
use sanloom_transport::infiniband::rc::requester::{Failure, Work};

const CONFIG: Config = Config { mtu: Mtu::B2048, ..Config::SOFT_ROCE };

struct Hosts {
    net: Net,
    pairs: Pairs,
    events: Vec<(u32, Event)>,
}

fn at(interface: u16) -> Endpoint {
    Endpoint { interface, key: PKey::DEFAULT, level: 0 }
}

impl Hosts {
    fn new(plan: InfinibandPlan) -> Hosts {
        Hosts { net: network(plan, 1), pairs: Pairs::new(0), events: Vec::new() }
    }

    fn connect(&mut self, ends: [u16; 2], config: Config) -> u32 {
        self.pairs.connect(&self.net, ends.map(at), 0, config).expect("one partition")
    }

    fn post(&mut self, end: u32, id: u64, operation: Operation, length: u32) {
        self.pairs.post(&mut self.net, end, Work { id, operation, length });
    }

    fn run_to(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            match event {
                NetEvent::Infiniband { packet, .. } => self.pairs.receive(&mut self.net, &packet),
                NetEvent::Timer(0) => self.pairs.timer_expired(&mut self.net),
                other => panic!("{other:?}"),
            }
            self.events.extend(std::iter::from_fn(|| self.pairs.poll_event()));
        }
        self.net.infiniband.check().expect("conserved");
    }

    fn of(&self, end: u32) -> Vec<Event> {
        self.events.iter().filter(|event| event.0 == end).map(|event| event.1).collect()
    }
}

#[test]
fn each_form_survives_the_reference() {
    let psn = Psn::of(0xab_cdef);
    let mut forms = vec![Form::Datagram(2_048)];
    for part in [Part::First, Part::Middle, Part::Last, Part::Only] {
        for operation in [Operation::Send, Operation::Write] {
            for ack in [false, true] {
                forms.push(Form::Request(Request { psn, operation, part, length: 2_047, ack }));
            }
        }
        forms.push(Form::Response(Response { psn, kind: ResponseKind::Data { part, length: 5 } }));
    }
    let read = Request { psn, operation: Operation::Read, part: Part::Only, length: 1 << 30, ack: true };
    forms.push(Form::Request(read));
    for kind in [
        ResponseKind::Ack,
        ResponseKind::NakSequence,
        ResponseKind::NotReady(Span::from_us(640)),
        ResponseKind::Nak(Fatal::InvalidRequest),
        ResponseKind::Nak(Fatal::Access),
        ResponseKind::Nak(Fatal::Operation),
    ] {
        forms.push(Form::Response(Response { psn, kind }));
    }
    for form in forms {
        assert_eq!(Form::of(&form.packet([1, 2], 3)), Some(form));
    }
    // LRH 8, BTH 12, RETH 16, ICRC 4, VCRC 2.
    assert_eq!(Form::Request(read).packet([1, 2], 3).bytes, 42);
}

/// Returns MB/s of messages of 64 KiB from one host to another.
fn rate(operation: Operation) -> f64 {
    let mut hosts = Hosts::new(star(2, SDR4));
    let end = hosts.connect([0, 1], CONFIG);
    hosts.pairs.post_receives(end + 1, 1 << 20);
    for id in 0..200 {
        hosts.post(end, id, operation, 65_536);
    }
    let completed = |hosts: &Hosts| {
        let done = |event: &&Event| matches!(event, Event::Completed(_));
        hosts.of(end).iter().filter(done).count() as f64
    };
    hosts.run_to(1_000_000_000);
    let before = completed(&hosts);
    hosts.run_to(11_000_000_000);
    (completed(&hosts) - before) * 65_536.0 / 10_000.0
}

#[test]
fn reliable_messages_reach_the_share_of_the_line() {
    // Section 6.2 of the facts: 986.5 MB/s at 4x SDR with an MTU of 2,048.
    for operation in [Operation::Send, Operation::Write, Operation::Read] {
        let rate = rate(operation);
        assert!((rate / 986.5 - 1.0).abs() < 0.01, "{operation:?}: {rate:.1} MB/s");
    }
}

#[test]
fn lost_packets_and_lost_credit_cost_time_and_no_message() {
    for seed in 0..8 {
        let mut plan = star(2, SDR4);
        plan.seed = seed;
        let mut hosts = Hosts::new(plan);
        for line in 0..4 {
            *hosts.net.infiniband.errors_mut(line) = [u32::MAX / 200, u32::MAX / 200, u32::MAX / 20];
        }
        let end = hosts.connect([0, 1], CONFIG);
        hosts.pairs.post_receives(end + 1, 1_000);
        let operations = [Operation::Send, Operation::Write, Operation::Read];
        for id in 0..60 {
            hosts.post(end, id, operations[id as usize % 3], 9_000 + id as u32);
        }
        hosts.run_to(10_000_000_000_000);
        let completed: Vec<Event> = (0..60).map(Event::Completed).collect();
        assert_eq!(hosts.of(end), completed, "seed {seed}");
        let message = |id: u64| Event::Message(operations[id as usize % 3], 9_000 + id as u32);
        let messages: Vec<Event> = (0..60).map(message).collect();
        assert_eq!(hosts.of(end + 1), messages, "seed {seed}: once and in order");
        assert!(hosts.net.infiniband.fate.lost > 0);
    }
}

#[test]
fn a_receiver_that_is_not_ready_is_asked_again_until_it_is() {
    let mut hosts = Hosts::new(star(2, SDR4));
    let end = hosts.connect([0, 1], CONFIG);
    hosts.post(end, 1, Operation::Send, 100);
    hosts.run_to(1_000_000_000);
    assert_eq!(hosts.events, []);
    hosts.pairs.post_receives(end + 1, 1);
    hosts.run_to(2_000_000_000);
    assert_eq!(hosts.events, [(end + 1, Event::Message(Operation::Send, 100)), (end, Event::Completed(1))]);
    // With a bound on the repetitions, the queue pair fails.
    let end = hosts.connect([0, 1], Config { rnr_retries: 2, ..CONFIG });
    hosts.post(end, 2, Operation::Send, 100);
    hosts.run_to(10_000_000_000);
    assert_eq!(hosts.of(end), [Event::Failed(Failure::NotReadyExceeded), Event::Flushed(2)]);
}

#[test]
fn a_path_that_stays_down_fails_the_queue_pair_after_all_repetitions() {
    let mut hosts = Hosts::new(star(2, SDR4));
    let end = hosts.connect([0, 1], CONFIG);
    infiniband::set_link(&mut hosts.net, 1, false);
    hosts.post(end, 1, Operation::Write, 100);
    // 8 times 67 ms.
    hosts.run_to(500_000_000_000);
    assert_eq!(hosts.events, []);
    hosts.run_to(1_000_000_000_000);
    assert_eq!(hosts.of(end), [Event::Failed(Failure::RetriesExceeded), Event::Flushed(1)]);
}

#[test]
fn a_message_of_many_packets_costs_few_acknowledgements() {
    let mut hosts = Hosts::new(star(2, SDR4));
    let end = hosts.connect([0, 1], CONFIG);
    hosts.post(end, 1, Operation::Write, 1 << 20);
    hosts.run_to(10_000_000_000);
    assert_eq!(hosts.of(end), [Event::Completed(1)]);
    // 512 packets, one acknowledgement each 64.
    let acks = hosts.net.infiniband.lines()[2].count().packets;
    assert!((8..=9).contains(&acks), "{acks}");
}

#[test]
fn datagrams_have_one_packet_and_need_a_receive_and_a_partition() {
    let mut hosts = Hosts::new(star(3, SDR4));
    let ends = [0, 1].map(|interface| hosts.pairs.datagrams(&hosts.net, at(interface), Mtu::B2048).expect("a LID"));
    let limited = Endpoint { key: PKey::new(5, Membership::Limited), ..at(2) };
    let other = hosts.pairs.datagrams(&hosts.net, limited, Mtu::B2048).expect("a LID");
    hosts.pairs.post_receives(ends[1], 2);
    hosts.pairs.post_receives(other, 2);
    for id in 0..3 {
        hosts.pairs.send_datagram(&mut hosts.net, ends[0], ends[1], id, 2_048);
    }
    hosts.pairs.send_datagram(&mut hosts.net, ends[0], ends[1], 3, 2_049);
    hosts.pairs.send_datagram(&mut hosts.net, ends[0], other, 4, 100);
    hosts.run_to(1_000_000_000);
    assert_eq!(hosts.of(ends[1]), [Event::Datagram(0, 2_048), Event::Datagram(1, 2_048)]);
    assert_eq!(hosts.pairs.dropped_datagrams(ends[1]), 1);
    assert_eq!(hosts.of(ends[0])[3..], [Event::TooLong(3), Event::Completed(4)]);
    assert_eq!(hosts.of(other), []);
    assert_eq!(hosts.pairs.connect(&hosts.net, [at(0), limited], 0, CONFIG), None);
}
