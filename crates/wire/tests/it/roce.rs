//! RoCEv2 and the connection manager over it: datagrams that Linux soft RoCE has sent, truncation,
//! and damage.

use sanloom_wire::ParseError;
use sanloom_wire::infiniband::cm::{RDMA_CM_BYTES, RdmaCm, RejFields, ReqPath, TCP_SERVICE, reason};
use sanloom_wire::infiniband::mad::{CmKind, CmMessage, QP1_KEY, ReqFields};
use sanloom_wire::infiniband::opcode::{DATAGRAM, READ, SEND_ONLY};
use sanloom_wire::infiniband::roce::{Path, RocePacket, UDP_PORT};
use sanloom_wire::infiniband::{Bth, Extended};
use sanloom_wire::srp::{DIRECT, INDIRECT, Iu, LoginReq, reject};
use std::net::{Ipv4Addr, SocketAddrV4};

/// UDP payload of a REQ of `ib_srp` over `rdma_rxe` of Linux 6.1. Its IPv4 header had the
/// identification 93F0 and the flag "do not fragment".
const REQ: &str = "6400ffff000000018000000080010000000000010107020300000000000000029f064d7800100000 \
     00000000784d069f0000000000000000010615b3505400fffe000002000000000000000000001104 \
     00000000000000a13f0e7aa7ffff37f0ffffffff00000000000000000000ffff0a09000200000000 \
     000000000000ffff0a09000198a7b000004000980000000000000000000000000000000000000000 \
     0000000000000000000000000000000000000000000000000040d238000000000000000000000000 \
     0a0900020000000000000000000000000a0900010000000000000000000680000000204400000000 \
     00000000505400fffe000002505400fffe000001505400fffe00000100440000000000003ed9613a";
/// UDP payload of the REJ of `ib_srpt`, which has no access for the host; identification 81F8.
const REJ: &str = "6400ffff000000018000000080010000000000010107020300000000000000029f064d7800120000 \
     0000000000000000784d069f0000001c000000000000000000000000000000000000000000000000 \
     00000000000000000000000000000000000000000000000000000000000000000000000000000000 \
     0000000000000000c200000000010006000000000000000000000000000000000006000000000000 \
     00000000000000000000000000000000000000000000000000000000000000000000000000000000 \
     00000000000000000000000000000000000000000000000000000000000000000000000000000000 \
     000000000000000000000000000000000000000000000000000000000000000000000000959405a5";

/// UDP port that both peers had chosen as source.
const SOURCE_PORT: u16 = 0xd872;
const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const TARGET: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn path(from: Ipv4Addr, to: Ipv4Addr) -> Path {
    Path { from: SocketAddrV4::new(from, SOURCE_PORT), to: SocketAddrV4::new(to, UDP_PORT) }
}

/// Port identifier of the adapter with this last byte of its Ethernet address.
fn guid(last: u8) -> [u8; 8] {
    [0x50, 0x54, 0, 0xff, 0xfe, 0, 0, last]
}

#[test]
fn the_request_of_the_kernel_is_read() {
    let bytes = hex(REQ);
    let packet = RocePacket::parse(&path(HOST, TARGET), &bytes).unwrap();
    let bth = Bth { opcode: DATAGRAM, key: 0xffff, pair: 1, ack: true, ..Bth::default() };
    assert_eq!(packet.bth, bth);
    assert_eq!(packet.extended, Extended { deth: Some((QP1_KEY, 1)), ..Extended::default() });
    let message = CmMessage::parse(packet.payload).unwrap();
    assert_eq!((message.kind, message.transaction), (CmKind::Req, 0x2_9f06_4d78));
    let fields = ReqFields {
        local_id: 0x784d_069f,
        service: TCP_SERVICE | 5_555,
        guid: u64::from_be_bytes(guid(2)),
        pair: 0x11,
        depths: [4, 0],
        psn: 0x3f_0e7a,
        key: 0xffff,
    };
    assert_eq!(message.req(), fields);
    let path = ReqPath { transport: 0, response_timeout: 20, retries: 7, mtu: 3, rnr_retries: 7, ack_timeout: 19 };
    assert_eq!(message.req_path(), path);
    let (header, login) = RdmaCm::parse(message.private()).unwrap();
    assert_eq!(header, RdmaCm { port: 0xd238, addresses: [HOST, TARGET] });
    let mut initiator = [0; 16];
    initiator[8..].copy_from_slice(&guid(2));
    let expected = LoginReq {
        tag: 0,
        request_bytes: 8_260,
        formats: DIRECT | INDIRECT,
        flags: 0x80,
        immediate_offset: 68,
        initiator,
        target: [guid(1), guid(1)].concat().try_into().unwrap(),
    };
    // The tag is that of the kernel's request.
    assert_eq!(LoginReq::parse_cm(login).map(|login| LoginReq { tag: 0, ..login }), Ok(expected));
}

#[test]
fn the_reject_of_the_kernel_is_read_and_composed() {
    let bytes = hex(REJ);
    let packet = RocePacket::parse(&path(TARGET, HOST), &bytes).unwrap();
    let message = CmMessage::parse(packet.payload).unwrap();
    let fields = RejFields { ids: [0, 0x784d_069f], message: 0, reason: reason::CONSUMER };
    assert_eq!((message.kind, message.rej()), (CmKind::Rej, fields));
    let reject = Iu::parse(message.private()).unwrap();
    assert_eq!(reject, Iu::LoginRej { tag: 0, reason: reject::LIMIT, formats: DIRECT | INDIRECT });
    let mut composed = CmMessage::new(CmKind::Rej, 0x2_9f06_4d78);
    composed.set_rej(&fields);
    let mut private = Vec::new();
    reject.emit(&mut private);
    assert!(composed.set_private(&private));
    assert_eq!(composed, message);
    let mut datagram = Vec::new();
    let mut payload = Vec::new();
    composed.emit(&mut payload);
    RocePacket { payload: &payload, ..packet }.emit(&path(TARGET, HOST), &mut datagram);
    // The ICRC covers the identification, which is zero in datagrams of ours.
    assert_eq!(datagram[..datagram.len() - 4], bytes[..bytes.len() - 4]);
    assert_eq!(RocePacket::parse(&path(TARGET, HOST), &datagram).map(|packet| packet.payload), Ok(&payload[..]));
}

#[test]
fn every_truncation_is_rejected() {
    for (text, path) in [(REQ, path(HOST, TARGET)), (REJ, path(TARGET, HOST))] {
        let bytes = hex(text);
        for end in 0..bytes.len() {
            assert!(RocePacket::parse(&path, &bytes[..end]).is_err(), "{end} bytes");
        }
    }
    let header = RdmaCm { port: 1, addresses: [HOST, TARGET] }.to_bytes();
    for end in 0..RDMA_CM_BYTES {
        assert!(RdmaCm::parse(&header[..end]).is_err(), "{end} bytes");
    }
    assert_eq!(RdmaCm::parse(&header), Ok((RdmaCm { port: 1, addresses: [HOST, TARGET] }, &[][..])));
}

#[test]
fn damage_is_found_except_in_the_notices_of_congestion() {
    let path = path(HOST, TARGET);
    let mut bytes = hex(REQ);
    let mut unnoticed = 0;
    for bit in 0..8 * bytes.len() {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let is_found = RocePacket::parse(&path, &bytes).is_err();
        match bit / 8 {
            4 => assert!(!is_found, "bit {bit}"),
            _ => unnoticed += usize::from(!is_found),
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    // 2^17 identifications and flags fit 2^32 checksums, so one error in 2^15 passes.
    assert!(unnoticed * 1_000 <= 8 * bytes.len(), "{unnoticed} of {} bits", 8 * bytes.len());
}

#[test]
fn addresses_and_ports_are_covered() {
    let bytes = hex(REQ);
    let right = path(HOST, TARGET);
    let other = SocketAddrV4::new(HOST, 1);
    for wrong in [path(TARGET, HOST), Path { from: other, ..right }, Path { to: other, ..right }] {
        let outcome = RocePacket::parse(&wrong, &bytes);
        assert!(matches!(outcome, Err(ParseError::Value { field: "ICRC", .. })), "{wrong:?}: {outcome:?}");
    }
}

#[test]
fn packets_of_each_length_round_trip_with_their_padding() {
    let path = path(HOST, TARGET);
    for length in 0..70 {
        let payload: Vec<u8> = (0..length).collect();
        let bth = Bth { opcode: SEND_ONLY, key: 0xffff, pair: 0x12_3456, ack: true, psn: 0xff_ffff, ..Bth::default() };
        let packet = RocePacket { bth, extended: Extended::default(), payload: &payload };
        let mut bytes = Vec::new();
        packet.emit(&path, &mut bytes);
        assert_eq!(bytes.len() % 4, 0);
        let read = RocePacket::parse(&path, &bytes).unwrap();
        assert_eq!((read.payload, read.bth.psn), (&payload[..], 0xff_ffff));
    }
    let extended = Extended { reth: Some((0x1122_3344_5566_7788, 0xa1a2_a3a4, 65_536)), ..Extended::default() };
    let request = RocePacket { bth: Bth { opcode: READ, ..Bth::default() }, extended, payload: &[] };
    let mut bytes = Vec::new();
    request.emit(&path, &mut bytes);
    assert_eq!(RocePacket::parse(&path, &bytes), Ok(request));
}

#[test]
fn fields_of_messages_are_set_and_read_alone() {
    let mut message = CmMessage::new(CmKind::Req, 1);
    message.data = [0x5a; 232];
    let before = message;
    message.set_req_path(&before.req_path());
    assert_eq!(message, before);
    let path = ReqPath { transport: 1, response_timeout: 31, retries: 2, mtu: 5, rnr_retries: 1, ack_timeout: 17 };
    message.set_req_path(&path);
    assert_eq!(message.req_path(), path);
    assert_eq!(message.req(), before.req());
    let mut dreq = CmMessage::new(CmKind::Dreq, 1);
    dreq.set_ids([7, 8]);
    dreq.set_dreq_pair(0xab_cdef);
    assert_eq!((dreq.ids(), dreq.dreq_pair()), ([7, 8], 0xab_cdef));
    assert_eq!(dreq.data[..12], [0, 0, 0, 7, 0, 0, 0, 8, 0xab, 0xcd, 0xef, 0]);
}
