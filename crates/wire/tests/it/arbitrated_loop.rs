//! Ordered sets, addresses and initialisation frames of the arbitrated loop, with bytes written by
//! hand.

use proptest::prelude::*;
use sanloom_test_support::{needs, tshark};
use sanloom_wire::arbitrated_loop::{
    AcceptsMap, AddressMap, AlPa, FL_PORT_ID, LoopInit, NL_PORT_ID, PositionMap, Primitive, Step,
};
use sanloom_wire::delimiter::{Eof, Sof};
use sanloom_wire::pcapng::{
    Interface, LINKTYPE_FC_2_WITH_FRAME_DELIMS, Packet, Resolution, Section, fc_with_delimiters,
};
use sanloom_wire::{Frame, ParseError, Payload, Wwpn};

fn pa(value: u8) -> AlPa {
    AlPa::new(value).expect("an AL_PA")
}

fn primitives() -> Vec<(Primitive, [u8; 4])> {
    let (x, y) = (pa(0x01), pa(0xe8));
    vec![
        (Primitive::Idle, [0xbc, 0x95, 0xb5, 0xb5]),
        (Primitive::RRdy, [0xbc, 0x95, 0x4a, 0x4a]),
        (Primitive::Arb { x }, [0xbc, 0x94, 0x01, 0x01]),
        (Primitive::ArbF0, [0xbc, 0x94, 0xf0, 0xf0]),
        (Primitive::ArbFf, [0xbc, 0x94, 0xff, 0xff]),
        (Primitive::OpenFull { y, x }, [0xbc, 0x91, 0xe8, 0x01]),
        (Primitive::OpenHalf { y }, [0xbc, 0x91, 0xe8, 0xe8]),
        (Primitive::OpenBroadcast, [0xbc, 0x91, 0xff, 0xff]),
        (Primitive::OpenReplicate { y }, [0xbc, 0x91, 0xe8, 0xff]),
        (Primitive::Close, [0xbc, 0x85, 0xb5, 0xb5]),
        (Primitive::DynamicHalfDuplex, [0xbc, 0x8a, 0xb5, 0xb5]),
        (Primitive::Mark { mark_type: 3, x }, [0xbc, 0x5f, 0x03, 0x01]),
        (Primitive::LipInit { x: None }, [0xbc, 0x15, 0xf7, 0xf7]),
        (Primitive::LipInit { x: Some(x) }, [0xbc, 0x15, 0xf7, 0x01]),
        (Primitive::LipFailure { x: None }, [0xbc, 0x15, 0xf8, 0xf7]),
        (Primitive::LipFailure { x: Some(x) }, [0xbc, 0x15, 0xf8, 0x01]),
        (Primitive::LipReset { y, x }, [0xbc, 0x15, 0xe8, 0x01]),
        (Primitive::LipResetAll { x }, [0xbc, 0x15, 0xff, 0x01]),
        (Primitive::Bypass { y: Some(y), x }, [0xbc, 0x09, 0xe8, 0x01]),
        (Primitive::Bypass { y: None, x }, [0xbc, 0x09, 0xff, 0x01]),
        (Primitive::Enable { y: Some(y), x }, [0xbc, 0x05, 0xe8, 0x01]),
        (Primitive::Enable { y: None, x }, [0xbc, 0x05, 0xff, 0x01]),
    ]
}

#[test]
fn ordered_sets_are_those_of_the_standard() {
    for (primitive, bytes) in primitives() {
        assert_eq!(primitive.ordered_set(), bytes, "{primitive}");
        assert_eq!(Primitive::from_ordered_set(bytes), Some(primitive));
    }
}

#[test]
fn a_decoded_ordered_set_encodes_to_the_same_bytes() {
    for second in 0..=255 {
        for third in 0..=255 {
            for fourth in 0..=255 {
                let set = [0xbc, second, third, fourth];
                if let Some(primitive) = Primitive::from_ordered_set(set) {
                    assert_eq!(primitive.ordered_set(), set, "{primitive}");
                }
            }
        }
    }
    assert_eq!(Primitive::from_ordered_set([0x00, 0x95, 0xb5, 0xb5]), None);
}

#[test]
fn every_address_keeps_the_running_disparity() {
    // Disparity of the 6-bit and 4-bit blocks of 8b/10b: a block is balanced unless listed.
    let unbalanced_6 = |low: u8| [0, 1, 2, 4, 8, 15, 16, 23, 24, 27, 29, 30, 31].contains(&low);
    let unbalanced_4 = |high: u8| [0, 4, 7].contains(&high);
    let neutral = |byte: u8| unbalanced_6(byte & 0x1f) == unbalanced_4(byte >> 5);
    let expected: Vec<u8> = (0..=0xef).filter(|byte| neutral(*byte)).collect();
    let values: Vec<u8> = AlPa::all().map(AlPa::value).collect();
    assert_eq!(values, expected);
    assert_eq!(values.len(), 127);
}

#[test]
fn priorities_and_map_bits_follow_the_order_of_the_addresses() {
    assert_eq!(AlPa::FL_PORT.map_bit(), (0, 0x40));
    assert_eq!(pa(0x01).map_bit(), (0, 0x20));
    assert_eq!(pa(0x17).map_bit(), (1, 0x80));
    assert_eq!(pa(0xef).map_bit(), (15, 0x01));
    for (rank, address) in AlPa::all().enumerate() {
        assert_eq!(usize::from(address.priority()), rank);
        assert_eq!(AlPa::from_priority(address.priority()), Some(address));
    }
    assert_eq!(AlPa::from_priority(127), None);
}

#[test]
fn an_nl_port_takes_the_lowest_free_address_above_zero() {
    let mut map = AddressMap::default();
    assert_eq!(map.lowest_free(), Some(pa(0x01)));
    for address in AlPa::all().skip(1) {
        assert_eq!(map.lowest_free(), Some(address));
        assert!(map.take(address));
        assert!(!map.take(address));
    }
    assert_eq!(map.lowest_free(), None);
    assert!(!map.login_required());
    map.require_login();
    assert_eq!(map.0[0], 0b1011_1111);
}

fn frames() -> Vec<(LoopInit, String)> {
    let mut map = AddressMap::default();
    map.require_login();
    map.take(AlPa::FL_PORT);
    map.take(pa(0xef));
    let mut positions = PositionMap::default();
    assert!(positions.append(AlPa::FL_PORT) && positions.append(pa(0xef)) && !positions.append(pa(0xef)));
    let taken = format!("c0{}01", "00".repeat(14));
    let order = format!("02 00ef {}", "ff".repeat(125));
    vec![
        (LoopInit::Master { port_name: Wwpn(0x2100_0004_cf00_0001) }, "11010000 21000004cf000001".into()),
        (LoopInit::Addresses { step: Step::Fabric, map }, format!("11020000 {taken}")),
        (LoopInit::Addresses { step: Step::Previous, map }, format!("11030000 {taken}")),
        (LoopInit::Addresses { step: Step::Hard, map }, format!("11040000 {taken}")),
        (LoopInit::Addresses { step: Step::Soft(AcceptsMap::No), map }, format!("11050000 {taken}")),
        (LoopInit::Addresses { step: Step::Soft(AcceptsMap::Yes), map }, format!("11050100 {taken}")),
        (LoopInit::ReportPosition(positions.clone()), format!("11060000 {order}")),
        (LoopInit::LoopPosition(positions), format!("11070000 {order}")),
    ]
}

fn bytes(init: &LoopInit) -> Vec<u8> {
    let mut out = Vec::new();
    init.emit(&mut out);
    out
}

#[test]
fn initialisation_frames_have_the_layout_of_the_standard() {
    for (init, expected) in frames() {
        let hex: String = bytes(&init).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.replace(' ', ""), "{}", init.name());
        assert_eq!(init.encoded_len(), bytes(&init).len());
        assert_eq!(LoopInit::parse(&bytes(&init)), Ok(init));
    }
    let header = LoopInit::header(NL_PORT_ID).to_bytes();
    assert_eq!(header[..12], [0x22, 0, 0, 0xef, 0, 0, 0, 0xef, 0x01, 0x38, 0, 0]);
    assert_eq!(header[12..], [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(LoopInit::header(FL_PORT_ID).to_bytes()[..8], [0x22, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn every_truncation_of_an_initialisation_frame_is_rejected() {
    for (init, _) in frames() {
        let whole = bytes(&init);
        for len in 0..whole.len() {
            let result = LoopInit::parse(&whole[..len]);
            assert!(matches!(result, Err(ParseError::Truncated { got_bytes, .. }) if got_bytes == len), "{result:?}");
        }
    }
}

#[test]
fn a_position_map_with_a_wrong_count_or_address_is_rejected() {
    let (init, _) = frames().pop().expect("LILP");
    for (at, value) in [(4, 128), (5, 0x03), (5, 0xef)] {
        let mut wrong = bytes(&init);
        wrong[at] = value;
        assert!(matches!(LoopInit::parse(&wrong), Err(ParseError::Value { .. })), "byte {at}");
    }
    let error = ParseError::Unsupported { field: "loop initialisation identifier", got: 0x1108_0000 };
    assert_eq!(LoopInit::parse(&[0x11, 0x08, 0, 0]), Err(error));
}

proptest! {
    #[test]
    fn any_bytes_parse_to_a_value_that_comes_back(mut data in proptest::collection::vec(any::<u8>(), 4..140), step in 1..8_u8) {
        data[..4].copy_from_slice(&[0x11, step, 0, 0]);
        if let Ok(init) = LoopInit::parse(&data) {
            prop_assert_eq!(LoopInit::parse(&bytes(&init)), Ok(init));
        }
    }
}

#[needs("tshark")]
#[test]
fn tshark_reads_a_capture_of_loop_initialisation() {
    let mut file = Vec::new();
    Section { application: "sanloom test", comment: None }.emit(&mut file);
    let link_type = LINKTYPE_FC_2_WITH_FRAME_DELIMS;
    Interface { name: "loop", description: None, link_type, resolution: Resolution::Picoseconds }.emit(&mut file);
    for (number, (init, _)) in frames().iter().enumerate() {
        let payload = Payload::Bytes(bytes(init).into());
        let mut frame = Vec::new();
        Frame { header: LoopInit::header(NL_PORT_ID), payload }.emit(&mut frame);
        let data = &fc_with_delimiters(&frame, Sof::I3, Eof::T);
        Packet { interface: 0, time: number as u64, direction: None, crc_error: false, comment: None, data }
            .emit(&mut file);
    }
    let text = tshark::read_bytes(&file, &["-V"]);
    assert!(!text.contains("Malformed"), "{text}");
    let fields = ["fc.crc.status", "fc.s_id", "fc.d_id", "fc.type", "fc.ox_id", "fc.f_ctl"];
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let lines = tshark::read_bytes(&file, &arguments);
    assert_eq!(lines.lines().collect::<Vec<_>>(), vec!["1|00.00.ef|00.00.ef|0x01|0xffff|0x380000"; frames().len()]);
}
