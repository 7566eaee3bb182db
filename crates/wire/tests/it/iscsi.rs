//! iSCSI headers: the bytes follow the standard, no truncated input parses as a header, and every
//! value survives a round trip.

use crate::entry_points;
use crate::iscsi_samples;
use proptest::prelude::*;
use sanloom_wire::ParseError;
use sanloom_wire::iscsi::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn headers_have_the_bytes_of_the_standard() {
    for (text, head) in iscsi_samples::all() {
        assert_eq!(head.to_bytes()[..], hex(text), "{head}");
        assert_eq!(Head::parse(hex(text).first_chunk().expect("48 bytes")), head);
    }
}

#[test]
fn there_is_a_sample_of_every_opcode() {
    let mut seen: Vec<Opcode> = iscsi_samples::all().iter().map(|(_, head)| head.header.opcode()).collect();
    seen.sort_unstable();
    let known: Vec<Opcode> = (0..64).map(Opcode).filter(|opcode| opcode.name().is_some()).collect();
    assert_eq!(seen, known);
}

#[test]
fn an_unknown_opcode_survives() {
    let mut bytes = [0x5a; BHS_BYTES];
    bytes[0] = 0x1c;
    let head = Head::parse(&bytes);
    assert!(matches!(head.header, Header::Other { opcode: Opcode(0x1c), .. }));
    assert_eq!(head.to_bytes(), bytes);
    assert_eq!(head.to_string(), "opcode 1c with 5921370 bytes");
}

#[test]
fn a_view_reads_the_fields_of_the_value() {
    for (text, head) in iscsi_samples::all() {
        let bhs = Bhs(*hex(text).first_chunk().expect("48 bytes"));
        assert_eq!(bhs.opcode(), head.header.opcode());
        assert_eq!((bhs.is_immediate(), bhs.data_bytes()), (head.immediate, head.data_bytes));
        assert_eq!(bhs.ahs_bytes(), usize::from(head.ahs_words) * 4);
        match head.header {
            Header::ScsiCommand(command) => {
                assert_eq!((bhs.lun(), bhs.initiator_tag()), (command.lun, command.initiator_tag));
                assert_eq!((bhs.flags(), bhs.word(at::TARGET_TAG)), (command.flags, command.expected_bytes));
                assert_eq!((bhs.word(at::CMD_SN), bhs.word(at::EXP_SN)), (command.cmd_sn, command.exp_stat_sn));
            }
            Header::DataIn(data) => {
                assert_eq!((bhs.word(at::DATA_SN), bhs.word(at::OFFSET)), (data.data_sn, data.offset));
                assert_eq!((bhs.word(at::MAX_CMD_SN), bhs.word(at::LENGTH)), (data.max_cmd_sn, data.residual));
            }
            _ => {}
        }
    }
}

#[test]
fn a_view_rewrites_in_place() {
    let (text, _) = &iscsi_samples::all()[5];
    let mut bhs = Bhs(*hex(text).first_chunk().expect("48 bytes"));
    bhs.set_word(at::OFFSET, 77);
    bhs.set_word(at::TARGET_TAG, 78);
    bhs.set_data_bytes(0x0001_0203);
    assert_eq!(bhs.padding(), 1);
    let head = Head::parse(&bhs.0);
    assert_eq!(head.data_bytes, 0x0001_0203);
    assert!(matches!(head.header, Header::DataOut(DataOut { offset: 77, target_tag: 78, data_sn: 1, .. })));
}

#[test]
fn additional_headers_have_the_bytes_of_the_standard() {
    let all = [
        ("0011 01 00 000102030405060708090a0b0c0d0e0f", Ahs::ExtendedCdb((0..16).collect())),
        ("0005 02 00 00001000", Ahs::BidirectionalRead { expected_bytes: 4096 }),
        ("0002 30 0102 000000", Ahs::Other { kind: 0x30, data: Box::new([1, 2]) }),
    ];
    let mut bytes = Vec::new();
    for (text, ahs) in &all {
        let start = bytes.len();
        ahs.emit(&mut bytes);
        assert_eq!(bytes[start..], hex(text), "{ahs:?}");
    }
    let all: Vec<Ahs> = all.into_iter().map(|(_, ahs)| ahs).collect();
    assert_eq!(Ahs::parse_all(&bytes), Ok(all.clone()));
    // The removed bytes may be padding only.
    for len in 0..bytes.len() - 3 {
        match Ahs::parse_all(&bytes[..len]) {
            Ok(fewer) => assert_eq!(fewer[..], all[..fewer.len()]),
            Err(error) => assert!(matches!(error, ParseError::Truncated { .. }), "{error}"),
        }
    }
}

#[test]
fn sense_data_follow_their_length() {
    let mut segment = Vec::new();
    emit_sense(&[0x70, 0, 6], &mut segment);
    segment.push(9);
    assert_eq!(segment, [0, 3, 0x70, 0, 6, 9]);
    assert_eq!(SenseSegment::parse(&segment), Ok(SenseSegment { sense: &[0x70, 0, 6], response: &[9] }));
    assert_eq!(SenseSegment::parse(&[]), Ok(SenseSegment { sense: &[], response: &[] }));
    for len in 1..5 {
        assert!(matches!(SenseSegment::parse(&segment[..len]), Err(ParseError::Truncated { .. })));
    }
}

#[test]
fn statuses_and_stages_are_decoded() {
    assert!(LoginStatus::SUCCESS.is_success());
    assert!(LoginStatus::MOVED_PERMANENTLY.is_redirection() && !LoginStatus::NOT_FOUND.is_redirection());
    assert_eq!(LoginStatus(0x0207).to_string(), "missing parameter");
    assert_eq!(code::stage::name(3), Some("Full feature phase"));
    let heads = iscsi_samples::all();
    let request = heads.iter().find_map(|(_, head)| match head.header {
        Header::LoginRequest(request) => Some((request.stage(), request.next_stage())),
        _ => None,
    });
    assert_eq!(request, Some((code::stage::OPERATIONAL, code::stage::FULL_FEATURE)));
}

proptest! {
    /// Any 48 bytes parse to a value that encodes to the same bytes, except for reserved bits.
    #[test]
    fn any_header_survives(bytes in proptest::array::uniform32(any::<u8>()), rest in proptest::array::uniform16(any::<u8>())) {
        let all = [&bytes[..], &rest].concat();
        let head = Head::parse(all.first_chunk().expect("48 bytes"));
        prop_assert_eq!(Head::parse(&head.to_bytes()), head);
        entry_points::iscsi(&all);
    }

    /// Text survives a round trip.
    #[test]
    fn any_text_survives(pairs in proptest::collection::vec(("[A-Z][A-Za-z0-9.+@_-]{0,30}", "[ -~äß→]{0,40}"), 0..8)) {
        let mut bytes = Vec::new();
        pairs.iter().for_each(|(key, value)| text::emit(key, value, &mut bytes));
        let read: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        prop_assert_eq!(text::parse(&bytes), Ok(read));
        for len in 0..bytes.len() {
            if bytes[..len].last().is_some_and(|last| *last != 0) {
                prop_assert_eq!(text::parse(&bytes[..len]).ok(), None);
            }
        }
    }

    /// Binary values survive a round trip in both notations.
    #[test]
    fn any_binary_value_survives(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(text::binary(&text::to_binary(&bytes)), Some(bytes));
    }
}
