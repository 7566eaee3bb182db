//! Stations without an FCF: frames captured from Linux hosts, the rules for addresses, and many
//! stations together.

use crate::fip::fcf::unhex;
use crate::fip::net::{Net, SegmentFaults};
use sanloom_fc::fip::Discard;
use sanloom_fc::fip::vlan::VlanResponder;
use sanloom_fc::fip::vn2vn::{Input, Output, State, Vn2vn, Vn2vnConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::Els;
use sanloom_wire::ether::{EtherHeader, FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation, flag};
use sanloom_wire::{FcId, Message, Payload, Wwnn, Wwpn};
use std::collections::BTreeSet;

const CAPTURE: &str = include_str!("../../../../wire/tests/it/golden/fip.txt");
const ONE: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
/// Address of a third station.
const OTHER: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 3]);
const TWO: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 2]);

/// Bytes of a captured frame.
fn captured(label: &str) -> Vec<u8> {
    let line = CAPTURE.lines().find(|line| line.split(' ').next() == Some(label)).expect(label);
    unhex(line.split_once(' ').expect("bytes").1)
}

/// Single station; the tests act as its peers.
struct Bed {
    station: Vn2vn,
    now: Instant,
}

impl Bed {
    /// Creates the initiator or the target of the captured hosts. Both announce both functions.
    fn new(number: u8) -> Bed {
        let mac = MacAddr([0x52, 0x54, 0, 0, 0, number]);
        let (port, node) = (0x2000_5254_0000_0000, 0x1000_5254_0000_0000);
        let names = (Wwpn(port + u64::from(number)), Wwnn(node + u64::from(number)));
        let config = Vn2vnConfig::new(mac, names.0, names.1, true, true);
        let mut bed = Bed { station: Vn2vn::new(config), now: Instant::ZERO };
        assert_eq!(bed.input(Input::LinkUp), []);
        bed
    }

    fn at(number: u8, state: State) -> Bed {
        let mut bed = Bed::new(number);
        while bed.station.state() < state {
            bed.ms(1);
        }
        bed
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.station.handle(self.now, input);
        std::iter::from_fn(|| self.station.poll_output()).collect()
    }

    fn ms(&mut self, ms: u64) -> Vec<Output> {
        let end = self.now + Span::from_ms(ms);
        let mut outputs = Vec::new();
        while let Some(at) = self.station.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            outputs.extend(self.input(Input::Timeout));
        }
        self.now = end;
        outputs
    }

    fn receive(&mut self, frame: &[u8]) -> Vec<Output> {
        let (header, pdu) = EtherHeader::parse(frame).expect("a header");
        self.input(Input::Fip { to: header.to, from: header.from, pdu: pdu.into() })
    }

    fn send(&mut self, operation: Operation, id: u32, name: u64, flags: u16) -> Vec<Output> {
        let port_id = FcId::new(id);
        let mac = MacAddr::fpma(FcMap::VN2VN, port_id);
        let mut descriptors = vec![
            Descriptor::Mac(OTHER),
            Descriptor::Name(Wwnn(name)),
            Descriptor::VxPort { mac, port_id, port_name: Wwpn(name) },
        ];
        if matches!(operation, Operation::CLAIM_NOTIFICATION | Operation::CLAIM_RESPONSE) {
            descriptors.push(Descriptor::Fc4Attributes { types: [0; 8], features: Box::new([0; 32]) });
            descriptors.push(Descriptor::MaxFcoeBytes(1498));
        }
        let packet = Fip { operation, flags, descriptors };
        let mut bytes = Vec::new();
        FipFrame { to: MacAddr::ALL_VN2VN_ENODES, from: OTHER, padded_bytes: 0, packet }.emit(None, &mut bytes);
        self.receive(&bytes)
    }
}

fn fip(outputs: &[Output]) -> Vec<&FipFrame> {
    let mut frames = Vec::new();
    for output in outputs {
        if let Output::Fip(frame) = output {
            frames.push(frame);
        }
    }
    frames
}

fn operations(outputs: &[Output]) -> Vec<Operation> {
    fip(outputs).iter().map(|frame| frame.packet.operation).collect()
}

/// Returns the bytes up to the end of the descriptors, and the length with padding.
fn bytes(frame: &FipFrame) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    frame.emit(None, &mut bytes);
    let padded = bytes.len();
    bytes.truncate(14 + frame.packet.encoded_len());
    (bytes, padded)
}

#[test]
fn pdus_equal_those_of_linux_byte_by_byte() {
    let mut bed = Bed::new(1);
    let outputs = bed.ms(200);
    let probes = fip(&outputs);
    assert_eq!(probes.len(), 2);
    for probe in probes {
        assert_eq!(bytes(probe).0, captured("VN2VN_PROBE"));
    }
    let outputs = bed.ms(500);
    let [claim] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(bytes(claim).0, captured("VN2VN_CLAIM"));
    // The other station claims its own address.
    let mut claim = captured("VN2VN_CLAIM");
    let to_other = |bytes: &mut Vec<u8>| {
        for at in 0..bytes.len() - 4 {
            if bytes[at..at + 4] == [0x54, 0, 0, 0] && bytes[at + 4] == 1 {
                bytes[at + 4] = 2;
            }
        }
        for at in 0..bytes.len() - 5 {
            if bytes[at..at + 5] == [0xfd, 0, 0, 0, 1] {
                bytes[at + 4] = 2;
            }
            if bytes[at..at + 5] == [0, 0, 0, 1, 0x20] {
                bytes[at + 3] = 2;
            }
        }
    };
    to_other(&mut claim);
    let outputs = bed.receive(&claim);
    let [response] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(bytes(response), (captured("VN2VN_CLAIM_RESPONSE"), 2172));
    let outputs = bed.ms(400);
    assert_eq!(outputs[0], Output::Up { port_id: FcId::new(1) });
    let [beacon] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(bytes(beacon).0, captured("VN2VN_BEACON"));
    // Its beacon triggers a login, and its captured FLOGI is accepted as by Linux.
    let mut beacon = captured("VN2VN_BEACON");
    to_other(&mut beacon);
    let outputs = bed.receive(&beacon);
    let [flogi] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((flogi.to, flogi.from, flogi.packet.operation), (TWO, ONE, Operation::LINK_SERVICE_REQUEST));
    let outputs = bed.receive(&captured("VN2VN_FLOGI"));
    let [accept] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(bytes(accept).0, captured("VN2VN_FLOGI_LS_ACC"));
    let up = Output::NeighbourUp { port_id: FcId::new(2), port_name: Wwpn(0x2000_5254_0000_0002) };
    assert_eq!(outputs[1..], [up]);
}

#[test]
fn the_target_of_the_capture_sends_the_flogi_of_the_capture() {
    let mut bed = Bed::at(2, State::Claim);
    assert_eq!(operations(&bed.receive(&captured("VN2VN_CLAIM_RESPONSE"))), []);
    bed.ms(400);
    let outputs = bed.receive(&captured("VN2VN_BEACON"));
    let [flogi] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(bytes(flogi).0, captured("VN2VN_FLOGI"));
    let outputs = bed.receive(&captured("VN2VN_FLOGI_LS_ACC"));
    let up = Output::NeighbourUp { port_id: FcId::new(1), port_name: Wwpn(0x2000_5254_0000_0001) };
    assert_eq!(outputs, [up]);
    let own = MacAddr::fpma(FcMap::VN2VN, FcId::new(2));
    let other = MacAddr::fpma(FcMap::VN2VN, FcId::new(1));
    assert_eq!(bed.station.path(FcId::new(1)), Some((other, own)));
    assert_eq!(bed.station.ingress(own, other, FcId::new(1), FcId::new(2)), Ok(()));
    assert_eq!(bed.station.ingress(own, TWO, FcId::new(1), FcId::new(2)), Err(Discard::Spoofed));
    assert_eq!(bed.station.ingress(own, other, FcId::new(3), FcId::new(2)), Err(Discard::NotLoggedIn));
}

/// Name of a station that is smaller, or greater, than that of the second host of the capture.
const SMALLER: u64 = 0x1000_0000_0000_0002;
const GREATER: u64 = 0x3000_0000_0000_0002;

/// Decision of a station whose address another one claims, for each state and received packet.
#[test]
fn an_address_claimed_twice_belongs_to_the_station_that_the_rules_name() {
    let mut table = String::new();
    let events = [
        ("probe request", Operation::PROBE_REQUEST, 0),
        ("probe request, recorded", Operation::PROBE_REQUEST, flag::RECORDED),
        ("probe reply", Operation::PROBE_REPLY, 0),
        ("claim", Operation::CLAIM_NOTIFICATION, 0),
        ("claim, recorded", Operation::CLAIM_NOTIFICATION, flag::RECORDED),
        ("claim response", Operation::CLAIM_RESPONSE, 0),
        ("beacon", Operation::BEACON, 0),
    ];
    for (event, operation, flags) in events {
        for (whose, id) in [("our", 2), ("another", 9)] {
            for (than, name) in [("smaller", SMALLER), ("greater", GREATER)] {
                table += &format!("{event} for {whose} address, from a {than} name\n");
                for state in [State::Start, State::Probe1, State::Probe2, State::Claim, State::Up] {
                    let mut bed = Bed::at(2, state);
                    bed.ms(if state == State::Up { 500 } else { 1 });
                    let outputs = bed.send(operation, id, name, flags);
                    let kept = if bed.station.port_id() == FcId::new(2) { "keeps" } else { "gives way" };
                    let sends: Vec<String> = outputs
                        .iter()
                        .map(|output| match output {
                            Output::Fip(frame) => format!("{} to {}", frame.packet.operation, frame.to),
                            other => format!("{other:?}"),
                        })
                        .collect();
                    let known = bed.station.neighbours().count();
                    table += &format!("  {state:?} -> {:?}: {kept}, knows {known}, {sends:?}\n", bed.station.state());
                }
            }
        }
    }
    insta::assert_snapshot!("vn2vn_rules", table);
}

#[test]
fn invalid_addresses_are_not_tried() {
    for (name, id) in [(0x2000_5254_0000_0000, 1), (0x2000_5254_0000_ffff, 1), (0x2000_5254_0001_0007, 7)] {
        let mut station = Vn2vn::new(Vn2vnConfig::new(ONE, Wwpn(name), Wwnn(1), true, false));
        station.handle(Instant::ZERO, Input::LinkUp);
        assert_eq!(station.port_id(), FcId::new(id));
    }
}

#[test]
fn probes_are_slowed_down_after_ten_conflicts() {
    let mut bed = Bed::new(2);
    for conflict in 1..30 {
        let before = bed.now;
        while bed.station.state() < State::Probe1 {
            bed.ms(1);
        }
        let waited = bed.now.since(before);
        assert_eq!(waited > Span::from_ms(101), conflict > 10, "conflict {conflict}: {waited:?}");
        let own = bed.station.port_id();
        bed.send(Operation::PROBE_REPLY, own.to_u32(), GREATER, 0);
        assert_ne!(bed.station.port_id(), own);
    }
    assert_eq!(bed.station.conflicts(), 29);
}

#[test]
fn a_neighbour_without_a_beacon_for_two_and_a_half_intervals_is_removed() {
    let mut bed = Bed::at(2, State::Up);
    bed.receive(&captured("VN2VN_CLAIM"));
    bed.receive(&captured("VN2VN_BEACON"));
    bed.receive(&captured("VN2VN_FLOGI_LS_ACC"));
    assert_eq!(bed.station.neighbours().filter(|(.., up)| *up).count(), 1);
    bed.ms(15_000);
    bed.receive(&captured("VN2VN_BEACON"));
    assert!(!bed.ms(19_999).iter().any(|output| matches!(output, Output::NeighbourDown { .. })));
    assert!(bed.ms(1).contains(&Output::NeighbourDown { port_id: FcId::new(1) }));
}

#[test]
fn a_login_to_a_station_without_a_reply_is_sent_three_times() {
    let mut bed = Bed::at(2, State::Up);
    bed.receive(&captured("VN2VN_CLAIM"));
    let mut requested = operations(&bed.receive(&captured("VN2VN_BEACON")));
    for _ in 0..5 {
        requested.extend(operations(&bed.ms(2_000)));
    }
    requested.retain(|operation| *operation == Operation::LINK_SERVICE_REQUEST);
    assert_eq!((requested.len(), bed.station.neighbours().count()), (3, 0));
}

#[test]
fn a_station_that_logs_out_may_come_back() {
    let mut bed = Bed::at(2, State::Up);
    bed.receive(&captured("VN2VN_CLAIM"));
    bed.receive(&captured("VN2VN_BEACON"));
    bed.receive(&captured("VN2VN_FLOGI_LS_ACC"));
    let outputs = bed.receive(&captured("VN2VN_LOGO"));
    let [accept] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    let (service, _) = accept.packet.link_service().expect("a reply");
    assert_eq!((service, accept.to), (LinkService::Logo, ONE));
    assert_eq!(outputs[1..], [Output::NeighbourDown { port_id: FcId::new(1) }]);
    assert_eq!(operations(&bed.receive(&captured("VN2VN_BEACON"))), [Operation::LINK_SERVICE_REQUEST]);
    assert_eq!(bed.receive(&captured("VN2VN_LOGO")).len(), 1, "there is no login, but an answer");
}

#[test]
fn a_login_of_an_unknown_station_is_rejected() {
    let mut bed = Bed::at(1, State::Up);
    let outputs = bed.receive(&captured("VN2VN_FLOGI"));
    let [reject] = fip(&outputs)[..] else { panic!("{outputs:?}") };
    let (_, frame) = reject.packet.link_service().expect("a reply");
    let Payload::Typed(Message::Els(els)) = &frame.payload else { panic!("{frame:?}") };
    assert!(matches!(**els, Els::LsRjt(_)), "{els:?}");
    assert_eq!(bed.station.discards().of(Discard::NotLoggedIn), 1);
}

#[test]
fn vlans_of_vn2vn_are_listed_in_the_reply() {
    let responder = VlanResponder::vn2vn(ONE, vec![7]);
    let descriptors = vec![Descriptor::Mac(TWO), Descriptor::Name(Wwnn(2))];
    let requested = Fip { operation: Operation::VLAN_REQUEST, flags: 0, descriptors };
    let answer = responder.answer(MacAddr::ALL_VN2VN_ENODES, &requested).expect("an answer");
    assert_eq!((answer.to, answer.packet.operation), (TWO, Operation::VN2VN_VLAN_NOTIFICATION));
    assert_eq!(responder.answer(MacAddr::ALL_FCFS, &requested), None);
}

/// Asserts that every station has an address of its own and a login with every other one, and that
/// initiators and targets have found each other.
#[track_caller]
fn all_agree(net: &Net, peers: &[usize], context: &str) {
    let ids: BTreeSet<FcId> = peers.iter().map(|peer| net.peer(*peer).vn2vn.port_id()).collect();
    assert_eq!(ids.len(), peers.len(), "{context}");
    for peer in peers.iter().map(|peer| net.peer(*peer)) {
        assert_eq!(peer.vn2vn.state(), State::Up, "{context}");
        let up: BTreeSet<FcId> = peer.vn2vn.neighbours().filter(|(.., up)| *up).map(|(id, ..)| id).collect();
        assert_eq!(up.len() + 1, ids.len(), "{context}");
        assert!(up.is_subset(&ids), "{context}");
        assert_eq!(peer.nport.port_id(), peer.vn2vn.port_id(), "{context}");
    }
}

#[test]
fn an_initiator_and_a_target_find_each_other_in_either_order_of_names() {
    for names in [(1, 2), (2, 1)] {
        let mut net = Net::new(1);
        let peers = [net.add_peer(names.0, 1, false), net.add_peer(names.1, 2, true)];
        net.run(Span::from_secs(5));
        all_agree(&net, &peers, "two");
        for (peer, other) in [(0, 1), (1, 0)] {
            let remotes: Vec<_> = net.peer(peers[peer]).remotes.keys().copied().collect();
            assert_eq!(remotes, [net.peer(peers[other]).vn2vn.port_id()]);
        }
        assert_eq!(net.peer(peers[0]).vn2vn.discards().total(), 0);
        // The logins persist, and end when a station disappears.
        net.run(Span::from_secs(200));
        assert_eq!(net.peer(peers[0]).nport.counters().process_logins, 1);
        net.unplugged = vec![peers[1]];
        net.run(Span::from_secs(21));
        assert_eq!(net.peer(peers[0]).remotes.len(), 0);
        net.unplugged.clear();
        net.run(Span::from_secs(60));
        all_agree(&net, &peers, "back again");
        assert_eq!(net.peer(peers[0]).remotes.len(), 1);
    }
}

#[test]
fn many_stations_with_the_same_low_bits_get_addresses_of_their_own() {
    for seed in 0..5 {
        let mut net = Net::new(seed);
        net.faults = SegmentFaults { lost: 5, repeated: 5, late: 20 };
        let peers: Vec<usize> = (0..8).map(|number| net.add_peer(number, 0x77, number % 2 == 0)).collect();
        net.run(Span::from_secs(100));
        net.faults = SegmentFaults::default();
        net.run(Span::from_secs(200));
        all_agree(&net, &peers, &format!("seed {seed}"));
        for peer in &peers {
            assert_eq!(net.peer(*peer).remotes.len(), 4, "seed {seed}");
        }
    }
}
