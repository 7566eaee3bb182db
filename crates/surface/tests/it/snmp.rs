//! The SNMP agent without a fabric behind it: operations, sizes, hostile packets.

use crate::client::{Alone, Fake};
use crate::fos_bodies::logical;
use proptest::prelude::*;
use sanloom_surface::fos::Shared;
use sanloom_surface::server::{Now, Peer};
use sanloom_surface::snmp::{Agent, Listen, MAX_RESPONSE, Message, Operation, Server, Tree, Value, respond};
use std::net::UdpSocket;
use std::time::Duration;

const COMMUNITY: &str = "secret-word";

/// A request as snmpget sends it: version 2c, community, kind, number 1, and one variable.
fn packet(version: u8, community: &str, kind: u8, numbers: [u8; 2], oid: &[u8]) -> Vec<u8> {
    let wrap = |tag: u8, content: Vec<u8>| [vec![tag, u8::try_from(content.len()).unwrap()], content].concat();
    let variable = wrap(0x30, [wrap(6, oid.to_vec()), vec![5, 0]].concat());
    let body = [vec![2, 1, 1, 2, 1, numbers[0], 2, 1, numbers[1]], wrap(0x30, variable)].concat();
    let head = [vec![2, 1, version], wrap(4, community.as_bytes().to_vec())].concat();
    wrap(0x30, [head, wrap(kind, body)].concat())
}

const SYS_NAME: &[u8] = &[0x2b, 6, 1, 2, 1, 1, 5, 0];

fn request(operation: Operation, names: &[&[u32]]) -> Message {
    let names = names.iter().map(|name| name.to_vec()).collect();
    Message { community: COMMUNITY.into(), id: 1, operation, names }
}

fn tree() -> Tree {
    let mut values = vec![(vec![1, 3, 6, 1, 2, 1, 1, 5, 0], Value::text("sw1"))];
    values.extend((1..=500).map(|port| (vec![1, 3, 6, 1, 2, 1, 2, 2, 1, 10, port], Value::Counter32(port))));
    values.push((vec![1, 3, 6, 1, 9], Value::Octets(vec![b'x'; 1_460])));
    Tree::new(values)
}

#[test]
fn only_the_community_and_version_2c_are_answered() {
    let agent = Agent::new("sw1", COMMUNITY, Shared::default());
    assert!(agent.request(&packet(1, COMMUNITY, 0xa0, [0, 0], SYS_NAME)).is_some());
    for community in ["public", "", "secret-wor", "secret-word2"] {
        assert_eq!(agent.request(&packet(1, community, 0xa0, [0, 0], SYS_NAME)), None, "{community}");
    }
    for version in [0, 3] {
        assert_eq!(agent.request(&packet(version, COMMUNITY, 0xa0, [0, 0], SYS_NAME)), None);
    }
    // Responses and traps are no requests, so two agents never answer each other.
    for kind in [0xa2, 0xa4, 0xa6, 0xa7, 0xa8] {
        assert_eq!(agent.request(&packet(1, COMMUNITY, kind, [0, 0], SYS_NAME)), None);
    }
}

#[test]
fn a_response_has_the_bytes_of_the_standard() {
    let agent = Agent::new("sw1", COMMUNITY, Shared::default());
    let get = agent.request(&packet(1, COMMUNITY, 0xa0, [0, 0], SYS_NAME)).unwrap();
    let expected = [
        &[0x30, 46, 2, 1, 1, 4, 11][..],
        COMMUNITY.as_bytes(),
        &[0xa2, 28, 2, 1, 1, 2, 1, 0, 2, 1, 0, 0x30, 17, 0x30, 15, 6, 8],
        SYS_NAME,
        &[4, 3, b's', b'w', b'1'],
    ];
    assert_eq!(respond(&get, &tree()), expected.concat());
}

#[test]
fn a_change_is_refused() {
    let response = respond(&request(Operation::Set, &[&[1, 3, 6, 1, 2, 1, 1, 5, 0]]), &tree());
    // notWritable(17), at the first variable.
    assert!(response.windows(6).any(|bytes| bytes == [2, 1, 17, 2, 1, 1]), "{response:?}");
}

/// The end of the answer to a request for one object of a logical switch: type, length, value.
fn value_of(name: &[u32], length: usize) -> Vec<u8> {
    let agent = Agent::new("sw1", COMMUNITY, Shared::default());
    let address = "127.0.0.1:1000".parse().unwrap();
    let peer = Peer { address, local: address, tls: false };
    let answer = agent.answer(Now::default(), &request(Operation::Get, &[name]), &peer, &mut Fake(logical));
    answer[answer.len() - length..].to_vec()
}

#[test]
fn ports_without_a_link_and_the_chassis_have_the_objects_that_monitoring_reads() {
    const IF: [u32; 9] = [1, 3, 6, 1, 2, 1, 2, 2, 1];
    const BROCADE: [u32; 11] = [1, 3, 6, 1, 4, 1, 1588, 2, 1, 1, 1];
    const FCM_PORT: [u32; 11] = [1, 3, 6, 1, 2, 1, 10, 56, 1, 3, 1];
    const ENTITY: [u32; 11] = [1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1];
    let integer = |value: u8| vec![2, 1, value];
    let cases = [
        // The port 0/10 is disabled, and 0/9 is not.
        ([&IF[..], &[7, 11]].concat(), integer(2)),
        ([&IF[..], &[7, 10]].concat(), integer(1)),
        ([&IF[..], &[6, 11]].concat(), vec![4, 8, 0x20, 0x0a, 0, 0, 0, 0, 0, 1]),
        ([&IF[..], &[12, 11]].concat(), vec![0x41, 1, 0]),
        // No transceiver; in synchronisation.
        ([&BROCADE[..], &[6, 2, 1, 3, 11]].concat(), integer(2)),
        ([&BROCADE[..], &[6, 2, 1, 3, 9]].concat(), integer(6)),
        ([&FCM_PORT[..], &[5, 11]].concat(), vec![0x42, 1, 1]),
        ([&FCM_PORT[..], &[12, 11]].concat(), integer(1)),
        // The chassis contains the port.
        ([&ENTITY[..], &[5, 1]].concat(), integer(3)),
        ([&ENTITY[..], &[5, 12]].concat(), integer(10)),
        ([&ENTITY[..], &[4, 12]].concat(), integer(1)),
        ([&ENTITY[..], &[7, 1]].concat(), [&[4, 5][..], b"frame"].concat()),
        // The version of the firmware is that of REST and SSH.
        ([&BROCADE[..], &[1, 6, 0]].concat(), [&[4, 6][..], b"v9.1.1"].concat()),
        ([&ENTITY[..], &[10, 1]].concat(), [&[4, 6][..], b"v9.1.1"].concat()),
    ];
    for (name, expected) in cases {
        assert_eq!(value_of(&name, expected.len()), expected, "{name:?}");
    }
    for object in [1, 6] {
        let usage = value_of(&[&BROCADE[..], &[26, object, 0]].concat(), 3);
        assert_eq!(usage[..2], [2, 1], "an integer of percent: {usage:?}");
    }
}

#[test]
fn bulk_requests_fill_one_packet_at_most_and_end_with_the_tree() {
    let column: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10];
    for repetitions in [0, 1, 10, 1_000_000, usize::MAX] {
        let bulk = request(Operation::GetBulk { once: 0, repetitions }, &[column; 3]);
        assert!(respond(&bulk, &tree()).len() <= MAX_RESPONSE);
    }
    let filled = respond(&request(Operation::GetBulk { once: 0, repetitions: 1_000 }, &[column]), &tree());
    assert!(filled.len() > MAX_RESPONSE / 2, "{}", filled.len());
    let end = respond(&request(Operation::GetBulk { once: 1, repetitions: 9 }, &[&[2], &[2]]), &tree());
    assert_eq!(end.windows(2).filter(|bytes| *bytes == [0x82, 0]).count(), 2);
    // One variable that fits no packet.
    let big = respond(&request(Operation::Get, &[&[1, 3, 6, 1, 9]]), &tree());
    assert!(big.windows(6).any(|bytes| bytes == [2, 1, 1, 2, 1, 0]) && big.len() < 60, "tooBig: {big:?}");
}

#[test]
fn a_walk_visits_every_object_once_in_the_order_of_the_names() {
    let tree = tree();
    let mut name = vec![0];
    let mut visited = Vec::new();
    while let Some((next, _)) = tree.next(&name) {
        assert!(*next > name);
        name.clone_from(next);
        visited.push(name.clone());
    }
    assert_eq!(visited, tree.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    assert_eq!(tree.get(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 501]), Value::NoSuchInstance);
    assert_eq!(tree.get(&[1, 3, 6, 1, 5, 1]), Value::NoSuchObject);
    assert_eq!(tree.get(&[]), Value::NoSuchObject);
}

proptest! {
    #[test]
    fn no_packet_ends_the_agent(bytes in any::<Vec<u8>>(), at in any::<usize>(), change in any::<u8>(), kind in 0xa0..0xa9_u8) {
        let agent = Agent::new("sw1", COMMUNITY, Shared::default());
        let address = "127.0.0.1:1000".parse().unwrap();
        let peer = Peer { address, local: address, tls: false };
        let mut near = packet(1, COMMUNITY, kind, [change, bytes.len() as u8], SYS_NAME);
        let place = at % near.len();
        near[place] = change;
        for packet in [&bytes, &near] {
            if let Some(request) = agent.request(packet) {
                let answer = agent.answer(Now::default(), &request, &peer, &mut Alone);
                prop_assert!(!answer.is_empty() && answer.len() <= MAX_RESPONSE);
            }
        }
    }
}

#[test]
fn the_agent_answers_behind_a_flood_of_garbage_and_wrong_communities() {
    let agent = Agent::new("sw1", COMMUNITY, Shared::default());
    let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), agent };
    let server = Server::start(vec![listen], || Box::new(Alone)).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server.addresses()[0]).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let wrong = packet(1, "public", 0xa0, [0, 0], SYS_NAME);
    let garbage = vec![0x30; 60_000];
    for _ in 0..2_000 {
        // The socket of the agent drops what it cannot hold.
        let _ = client.send(&wrong);
        let _ = client.send(&garbage);
    }
    let right = packet(1, COMMUNITY, 0xa0, [0, 0], SYS_NAME);
    let mut answer = [0; 2_000];
    let answered = (0..100).any(|_| {
        let _ = client.send(&right);
        client.recv(&mut answer).is_ok()
    });
    assert!(answered);
    // The fabric of this test has no ports, so the answer is genErr; it has the community.
    assert!(answer.windows(COMMUNITY.len()).any(|bytes| bytes == COMMUNITY.as_bytes()));
}
