//! InfiniBand and SRP: golden bytes, truncation, round trips, and tshark.

use crate::entry_points;
use proptest::prelude::*;
use sanloom_test_support::{needs, tshark};
use sanloom_wire::ParseError;
use sanloom_wire::infiniband::mad::{
    CM_BYTES, CmKind, CmMessage, MadHeader, QP1_KEY, RepFields, ReqFields, Smp, class,
};
use sanloom_wire::infiniband::{Bth, Extended, Grh, Lrh, Packet, icrc, opcode, vcrc};
use sanloom_wire::pcapng::{self, Interface, LINKTYPE_ERF, Resolution, Section};
use sanloom_wire::srp::{Buffer, Cmd, DIRECT, Descriptor, INDIRECT, Iu, LoginReq, Rsp, TskMgmt, reject, response};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("hex");
    digits.chunks(2).map(byte).collect()
}

fn port(last: u8) -> [u8; 16] {
    std::array::from_fn(|at| if at == 15 { last } else { at as u8 })
}

const MEMORY: Descriptor = Descriptor { address: 0x1122_3344_5566_7788, key: 0xa1a2_a3a4, length: 0x1_0000 };

fn login() -> LoginReq {
    LoginReq {
        tag: 0x0102_0304_0506_0708,
        request_bytes: 260,
        formats: DIRECT | INDIRECT,
        flags: 1,
        immediate_offset: 80,
        initiator: port(0xa0),
        target: port(0xb0),
    }
}

/// Each kind of information unit with its bytes, from the tables of the standard.
pub fn units() -> Vec<(Iu, Vec<u8>)> {
    let tag = "0102030405060708";
    let lun = [0, 5, 0, 0, 0, 0, 0, 0];
    let cdb = [0x28, 0, 0, 0, 1, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
    let memory = "1122334455667788 a1a2a3a4 00010000";
    let tag_value = 0x0102_0304_0506_0708;
    let cmd = Cmd { tag: tag_value, lun, attribute: 2, cdb, ..Cmd::default() };
    let lun_text = "0005000000000000";
    let cdb_text = "28000000010000008000000000000000";
    let ids = "000102030405060708090a0b0c0d0ea0 000102030405060708090a0b0c0d0eb0";
    let case = |iu: Iu, text: String| (iu, hex(&text));
    let rsp = Rsp {
        delta: 1,
        tag: tag_value,
        status: 2,
        out_residual: -3,
        in_residual: 512,
        response: Some(response::NOT_SUPPORTED),
        sense: vec![0x70, 0, 5],
    };
    vec![
        case(Iu::LoginReq(login()), format!("00000000 00000000 {tag} 00000104 00000000 0006 01 00 0050 0000 {ids}")),
        case(
            Iu::LoginRsp { tag: tag_value, delta: 64, to_target: 260, to_initiator: 256, formats: 6, flags: 1 },
            format!("c0000000 00000040 {tag} 00000104 00000100 0006 01 {}", "00".repeat(25)),
        ),
        case(
            Iu::LoginRej { tag: tag_value, reason: reject::TOO_LARGE, formats: 6 },
            format!("c2000000 00010002 {tag} 0000000000000000 0006 000000000000"),
        ),
        case(
            Iu::Cmd(Cmd { solicited: true, input: Buffer::Direct(MEMORY), ..cmd.clone() }),
            format!("02010000 00 01 00 00 {tag} 00000000 {lun_text} 00 02 00 00 {cdb_text} {memory}"),
        ),
        case(
            Iu::Cmd(Cmd {
                out: Buffer::Indirect { table: MEMORY, total: 0x2_0000, list: vec![MEMORY, MEMORY] },
                additional_cdb: vec![9; 8],
                ..cmd.clone()
            }),
            format!(
                "02000000 00 20 02 00 {tag} 00000000 {lun_text} 00 02 00 08 {cdb_text} 0909090909090909 \
                 {memory} 00020000 {memory} {memory}"
            ),
        ),
        case(
            Iu::Cmd(Cmd { out: Buffer::Immediate(512), input: Buffer::Direct(MEMORY), ..cmd }),
            format!("02000000 00 31 00 00 {tag} 00000000 {lun_text} 00 02 00 00 {cdb_text} 00000200 {memory}"),
        ),
        case(
            Iu::Rsp(rsp),
            format!("c1000000 00000001 {tag} 0000 27 02 00000003 00000200 00000003 00000004 00000004 700005"),
        ),
        case(
            Iu::Rsp(Rsp { delta: 2, tag: tag_value, out_residual: 7, ..Rsp::default() }),
            format!("c1000000 00000002 {tag} 0000 08 00 00000007 00000000 00000000 00000000"),
        ),
        case(
            Iu::TskMgmt(TskMgmt { tag: tag_value, lun, function: 1, task_tag: 0x99 }),
            format!("01000000 00000000 {tag} 00000000 {lun_text} 0000 01 00 0000000000000099 0000000000000000"),
        ),
        case(Iu::InitiatorLogout { tag: tag_value }, format!("03000000 00000000 {tag}")),
        case(Iu::TargetLogout { tag: tag_value, reason: 4 }, format!("80000000 00000004 {tag}")),
        case(Iu::CredReq { tag: tag_value, delta: 9 }, format!("81000000 00000009 {tag}")),
        case(Iu::CredRsp { tag: tag_value }, format!("41000000 00000000 {tag}")),
        case(
            Iu::AerReq { tag: tag_value, delta: -1, lun, sense: vec![0x70, 0, 6] },
            format!("82000000 ffffffff {tag} 00000000 {lun_text} 00000003 00000000 700006"),
        ),
        case(Iu::AerRsp { tag: tag_value }, format!("42000000 00000000 {tag}")),
    ]
}

#[test]
fn each_information_unit_has_the_bytes_of_the_standard() {
    for (unit, expected) in units() {
        let mut bytes = Vec::new();
        unit.emit(&mut bytes);
        assert_eq!(bytes, expected, "{unit:?}");
        assert_eq!(Iu::parse(&bytes), Ok(unit));
    }
    let sizes: Vec<usize> = units().iter().map(|unit| unit.1.len()).collect();
    assert_eq!(sizes, [64, 52, 32, 64, 108, 68, 43, 36, 48, 16, 16, 16, 16, 39, 16]);
}

#[test]
fn the_login_in_private_data_has_56_bytes() {
    let mut bytes = Vec::new();
    login().emit_cm(&mut bytes);
    let ids = "000102030405060708090a0b0c0d0ea0 000102030405060708090a0b0c0d0eb0";
    assert_eq!(bytes, hex(&format!("0102030405060708 0006 01 00 00000104 {ids} 0050 000000000000")));
    assert_eq!(LoginReq::parse_cm(&bytes), Ok(login()));
    for length in 0..bytes.len() {
        assert!(LoginReq::parse_cm(&bytes[..length]).is_err(), "{length}");
    }
    bytes[11] = 2;
    assert!(matches!(LoginReq::parse_cm(&bytes), Err(ParseError::Value { .. })));
}

#[test]
fn each_truncated_unit_and_each_unknown_code_is_rejected() {
    for (unit, bytes) in units() {
        for length in 0..bytes.len() {
            assert!(Iu::parse(&bytes[..length]).is_err(), "{unit:?} with {length} bytes");
        }
    }
    let mut bytes = vec![0; 64];
    bytes[0] = 0x77;
    assert!(matches!(Iu::parse(&bytes), Err(ParseError::Unsupported { got: 0x77, .. })));
    bytes[0] = 2;
    bytes[5] = 0x40;
    assert!(matches!(Iu::parse(&bytes), Err(ParseError::Unsupported { got: 4, .. })));
}

const LOCAL: Lrh = Lrh { lane: 3, level: 5, to: 0x0021, from: 0x0012 };

fn transport(code: u8) -> Bth {
    Bth { opcode: code, key: 0xffff, pair: 0x12_3456, psn: 0xab_cdef, ..Bth::default() }
}

#[test]
fn headers_have_the_bytes_of_the_standard() {
    let packet = Packet {
        lrh: LOCAL,
        grh: None,
        bth: Bth { ack: true, solicited: true, pad: 3, ..transport(opcode::WRITE_ONLY) },
        extended: Extended { reth: Some((0x1122_3344_5566_7788, 0xa1a2_a3a4, 5)), ..Extended::default() },
        payload: b"abcde",
    };
    let mut bytes = Vec::new();
    packet.emit(&mut bytes);
    // 12 words from the LRH to the ICRC: 8 + 12 + 16 + 5 + 3 + 4 bytes.
    let body = hex("30 52 0021 000c 0012  0a b0 ffff 00123456 80abcdef  1122334455667788 a1a2a3a4 00000005 \
         6162636465 000000");
    assert_eq!(bytes[..body.len()], body);
    assert_eq!(bytes.len(), body.len() + 6);
    assert_eq!(Packet::parse(&bytes), Ok(packet));
}

/// Remainder of polynomial division, bit by bit: the definition of a CRC, with bits reversed.
fn remainder(data: &[u8], polynomial: u64, bits: u32) -> u64 {
    let top = 1u64 << bits;
    let message = data.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    let zeros = std::iter::repeat_n(0, bits as usize);
    let mut rest = 0u64;
    // The first bits of the message are complemented: a start of ones.
    for (at, bit) in message.chain(zeros).enumerate() {
        rest = rest << 1 | u64::from(bit) ^ u64::from(at < bits as usize);
        if rest & top != 0 {
            rest ^= top | polynomial;
        }
    }
    let mut reversed = 0;
    for bit in 0..bits {
        reversed |= (!rest >> bit & 1) << (bits - 1 - bit);
    }
    reversed
}

#[test]
fn checksums_equal_a_division_by_their_polynomials() {
    for (length, grh) in [(0usize, false), (5, false), (300, true)] {
        let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let pad = (4 - length as u8 % 4) % 4;
        let packet = Packet {
            lrh: LOCAL,
            grh: grh.then_some(Grh { class: 7, flow: 0x1_2345, hops: 9, from: port(1), to: port(2) }),
            bth: Bth { congestion: [true, false], pad, ..transport(opcode::SEND_ONLY) },
            extended: Extended::default(),
            payload: &payload,
        };
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        assert_eq!(Packet::parse(&bytes), Ok(packet));
        let (body, sum) = bytes.split_at(bytes.len() - 2);
        let expected = remainder(body, 0x100b, 16) as u16;
        assert_eq!((sum, vcrc(body)), (&expected.to_le_bytes()[..], expected.to_le_bytes()));
        let (body, sum) = body.split_at(body.len() - 4);
        // Fields that change on the way are ones.
        let mut masked = body.to_vec();
        masked[0] |= 0xf0;
        if grh {
            [8, 9, 10, 11, 15].iter().for_each(|&at| masked[at] |= if at == 8 { 0x0f } else { 0xff });
        }
        masked[if grh { 52 } else { 12 }] = 0xff;
        let expected = remainder(&masked, 0x04c1_1db7, 32) as u32;
        assert_eq!((sum, icrc(body, grh)), (&expected.to_le_bytes()[..], expected.to_le_bytes()));
    }
}

#[test]
fn the_invariant_checksum_ignores_what_changes_on_the_way() {
    let mut bytes = Vec::new();
    let bth = transport(opcode::SEND_ONLY);
    let packet = Packet { lrh: LOCAL, grh: None, bth, extended: Extended::default(), payload: b"data" };
    packet.emit(&mut bytes);
    let body = &bytes[..bytes.len() - 6];
    let sum = icrc(body, false);
    for (at, mask, changes) in [(0, 0xf0, false), (12, 0xff, false), (1, 0xf0, true), (3, 1, true), (19, 1, true)] {
        let mut other = body.to_vec();
        other[at] ^= mask;
        assert_eq!(icrc(&other, false) != sum, changes, "byte {at}");
    }
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert!(Packet::parse(&bad).is_err(), "byte {at}");
        assert!(Packet::parse(&bytes[..at]).is_err(), "{at} bytes");
    }
}

fn req() -> CmMessage {
    let mut message = CmMessage::new(CmKind::Req, 0x77);
    message.set_req(&ReqFields {
        local_id: 0x1111_1111,
        service: 0x0000_0000_0106_0cbc,
        guid: 0x2222_2222_2222_2222,
        pair: 0x33_3333,
        depths: [4, 5],
        psn: 0x66_6666,
        key: 0xffff,
    });
    assert!(message.set_private(&[0xee; 92]));
    assert!(!message.set_private(&[0xee; 93]), "REQ has 92 bytes of private data");
    assert!(message.set_private(&[0xee; 92]));
    message
}

#[test]
fn messages_of_the_connection_manager_have_their_fields_at_the_offsets_of_the_standard() {
    let mut bytes = Vec::new();
    let message = req();
    message.emit(&mut bytes);
    assert_eq!(bytes[..24], hex("01 07 02 03 0000 0000 0000000000000077 0010 0000 00000000"));
    let data = &bytes[24..];
    for (at, text) in [
        (0, "11111111 00000000 0000000001060cbc 2222222222222222"),
        (32, "333333 04 000000 05"),
        (44, "666666 00 ffff"),
        (140, "eeee"),
    ] {
        let expected = hex(text);
        assert_eq!(data[at..at + expected.len()], expected, "offset {at}");
    }
    let sizes = CmKind::ALL.map(|kind| CM_BYTES - kind.private_offset());
    assert_eq!(sizes, [92, 222, 148, 196, 224, 220, 224]);
    assert_eq!(CmMessage::parse(&bytes), Ok(message));
    let mut reply = CmMessage::new(CmKind::Rep, 0x77);
    let fields = RepFields { ids: [1, 2], pair: 3, psn: 4, depths: [5, 6], guid: 7 };
    reply.set_rep(&fields);
    assert_eq!(reply.rep(), fields);
    let expected = hex("00000001 00000002 00000000 000003 00 00000000 000004 00 05 06 0000 0000000000000007");
    assert_eq!(reply.data[..36], expected);
    for length in 0..bytes.len() {
        assert!(CmMessage::parse(&bytes[..length]).is_err(), "{length}");
    }
}

fn smp() -> Smp {
    let header = MadHeader {
        class: class::SUBNET_DIRECTED,
        version: 1,
        method: 1,
        specific: 0x0002,
        transaction: 0x1234,
        attribute: 0x11,
        ..MadHeader::default()
    };
    let mut path = [0; 64];
    path[1..3].copy_from_slice(&[1, 7]);
    Smp { header, key: 0x99, lids: [0xffff; 2], data: [0; 64], initial_path: path, return_path: [0; 64] }
}

#[test]
fn subnet_management_packets_have_256_bytes() {
    let mut bytes = Vec::new();
    smp().emit(&mut bytes);
    assert_eq!(bytes.len(), 256);
    let head = "01 81 01 01 0000 0002 0000000000001234 0011 0000 00000000 0000000000000099 ffff ffff";
    assert_eq!(bytes[..36], hex(head));
    assert_eq!(bytes[128..132], [0, 1, 7, 0]);
    assert_eq!(Smp::parse(&bytes), Ok(smp()));
    for length in 0..bytes.len() {
        assert!(Smp::parse(&bytes[..length]).is_err(), "{length}");
    }
}

/// Packets of a login and a read, as an SRP initiator and target send them.
pub fn conversation() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut add = |bth: Bth, extended: Extended, payload: &[u8]| {
        let mut bytes = Vec::new();
        Packet { lrh: Lrh { lane: 0, level: 0, ..LOCAL }, grh: None, bth, extended, payload }.emit(&mut bytes);
        packets.push(bytes);
    };
    let datagram = Extended { deth: Some((QP1_KEY, 1)), ..Extended::default() };
    let mut message = Vec::new();
    req().emit(&mut message);
    add(Bth { pair: 1, ..transport(opcode::DATAGRAM) }, datagram, &message);
    message.clear();
    smp().emit(&mut message);
    let subnet = Extended { deth: Some((0, 0)), ..Extended::default() };
    add(Bth { pair: 0, ..transport(opcode::DATAGRAM) }, subnet, &message);
    for (_, unit) in units() {
        add(transport(opcode::SEND_ONLY), Extended::default(), &unit);
    }
    let memory = Extended { reth: Some((MEMORY.address, MEMORY.key, 4_096)), ..Extended::default() };
    add(transport(opcode::WRITE_FIRST), memory, &[1; 2_048]);
    add(transport(opcode::WRITE_FIRST + 2), Extended::default(), &[2; 2_048]);
    add(transport(opcode::READ), memory, &[]);
    let ack = Extended { aeth: Some((0x1f, 7)), ..Extended::default() };
    add(transport(opcode::DATA_FIRST), ack, &[3; 2_048]);
    add(transport(opcode::DATA_MIDDLE), Extended::default(), &[3; 2_048]);
    add(transport(opcode::ACK), ack, &[]);
    let immediate = Extended { immediate: Some(5), ..Extended::default() };
    add(transport(opcode::SEND_ONLY_IMMEDIATE), immediate, b"x");
    let invalidate = Extended { invalidate: Some(6), ..Extended::default() };
    add(transport(opcode::SEND_ONLY_INVALIDATE), invalidate, b"xyz");
    packets
}

fn capture(packets: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    Section { application: "sanloom", comment: None }.emit(&mut file);
    let interface =
        Interface { name: "ib0", description: None, link_type: LINKTYPE_ERF, resolution: Resolution::Nanoseconds };
    interface.emit(&mut file);
    for (time, packet) in (0..).zip(packets) {
        let data = pcapng::erf_infiniband(time, &packet);
        let packet =
            pcapng::Packet { interface: 0, time, direction: None, crc_error: false, comment: None, data: &data };
        packet.emit(&mut file);
    }
    file
}

#[needs("tshark")]
#[test]
fn tshark_reads_each_packet_and_finds_none_malformed() {
    // tshark takes the first bytes of CRED_REQ, 8100, for the EtherType of a VLAN tag.
    let is_clear = |packet: &Vec<u8>| packet[20..22] != [0x81, 0];
    let file = capture(conversation().into_iter().filter(is_clear));
    // The heuristics of RPC over RDMA take other messages for theirs.
    let text = tshark::read_bytes(&file, &["-V", "--disable-protocol", "rpcordma"]);
    assert!(!text.contains("Malformed") && text.contains("Invariant CRC"), "{text}");
    let names = ["lrh.dlid", "lrh.slid", "bth.opcode", "bth.destqp", "bth.psn", "deth.srcqp", "reth.dmalen"];
    let names = names.iter().map(|name| format!("infiniband.{name}")).collect::<Vec<String>>();
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    arguments.extend(names.iter().flat_map(|name| ["-e", name.as_str()]));
    arguments.extend(["-e", "infiniband.mad.attributeid", "-e", "infiniband.cm.req.serviceid"]);
    let fields = tshark::read_bytes(&capture(conversation().into_iter()), &arguments);
    assert_eq!(fields.lines().count(), conversation().len());
    insta::assert_snapshot!("tshark_infiniband", fields);
}

fn buffers() -> impl Strategy<Value = Buffer> {
    let descriptor = || {
        (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(address, key, length)| Descriptor {
            address,
            key,
            length,
        })
    };
    prop_oneof![
        Just(Buffer::None),
        descriptor().prop_map(Buffer::Direct),
        (descriptor(), any::<u32>(), prop::collection::vec(descriptor(), 0..20))
            .prop_map(|(table, total, list)| Buffer::Indirect { table, total, list }),
        any::<u32>().prop_map(Buffer::Immediate),
    ]
}

proptest! {
    #[test]
    fn each_command_survives(
        solicited: bool, tag: u64, lun: [u8; 8], attribute in 0u8..8, cdb: [u8; 16], words in 0usize..64,
        out in buffers(), input in buffers(),
    ) {
        let cmd = Cmd { solicited, tag, lun, attribute, cdb, additional_cdb: vec![7; 4 * words], out, input };
        let unit = Iu::Cmd(cmd);
        let mut bytes = Vec::new();
        unit.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), unit.encoded_len());
        prop_assert_eq!(Iu::parse(&bytes), Ok(unit));
    }

    #[test]
    fn each_packet_survives(
        code in prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 22, 23, 100, 101]),
        payload in prop::collection::vec(any::<u8>(), 0..200), lane in 0u8..16, level in 0u8..16, to: u16, from: u16,
        solicited: bool, migrated: bool, ack: bool, congestion: [bool; 2], key: u16, pair in 0u32..1 << 24,
        psn in 0u32..1 << 24, words: [u32; 4], is_global: bool,
    ) {
        let pad = (4 - payload.len() as u8 % 4) % 4;
        let bth = Bth { opcode: code, solicited, migrated, pad, key, congestion, pair, ack, psn };
        let low = |word: u32| word & 0xff_ffff;
        let has = |codes: &[u8]| codes.contains(&code);
        let extended = Extended {
            deth: has(&[100, 101]).then_some((words[0], low(words[1]))),
            reth: has(&[6, 10, 11, 12]).then_some((u64::from(words[0]) << 32 | u64::from(words[1]), words[2], words[3])),
            aeth: has(&[13, 15, 16, 17]).then_some((words[0] as u8, low(words[1]))),
            immediate: has(&[3, 5, 9, 11, 101]).then_some(words[2]),
            invalidate: has(&[22, 23]).then_some(words[3]),
        };
        let grh = is_global.then_some(Grh { class: 1, flow: words[0] & 0xf_ffff, hops: 3, from: port(1), to: port(2) });
        let packet = Packet { lrh: Lrh { lane, level, to, from }, grh, bth, extended, payload: &payload };
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
    }

    #[test]
    fn no_bytes_make_a_parser_panic(data in prop::collection::vec(any::<u8>(), 0..300)) {
        entry_points::srp(&data);
        entry_points::infiniband(&data);
    }
}
