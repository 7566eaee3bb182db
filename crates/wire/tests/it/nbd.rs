//! NBD messages: the bytes follow the protocol document, no truncated input parses as a message,
//! and every value survives a round trip.

use crate::entry_points;
use crate::nbd_samples;
use crate::nbd_samples::Unit;
use proptest::prelude::*;
use sanloom_wire::ParseError;
use sanloom_wire::nbd::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Parses bytes as the same kind of unit as `like`.
fn parse_as(like: &Unit, bytes: &[u8]) -> Result<Unit, ParseError> {
    Ok(match like {
        Unit::Greeting(_) => Unit::Greeting(Greeting::parse(bytes)?),
        Unit::Option(_) => {
            let header = OptionHeader::parse(bytes)?;
            let end = OptionHeader::BYTES + header.data_bytes as usize;
            let data = bytes.get(OptionHeader::BYTES..end).ok_or(ParseError::Truncated {
                field: "option data",
                needed_bytes: end,
                got_bytes: bytes.len(),
            })?;
            Unit::Option(ClientOption::parse(header.option, data)?)
        }
        Unit::OptionReply(_) => {
            let (reply, used) = OptionReply::parse(bytes)?;
            assert_eq!(used, bytes.len());
            Unit::OptionReply(reply)
        }
        Unit::Request(_) => Unit::Request(Request::parse(bytes)?),
        Unit::SimpleReply(_) => Unit::SimpleReply(SimpleReply::parse(bytes)?),
        Unit::Chunk(_) => {
            let (chunk, used) = Chunk::parse(bytes)?;
            assert_eq!(used, bytes.len());
            Unit::Chunk(chunk)
        }
    })
}

#[test]
fn messages_have_the_bytes_of_the_protocol_document() {
    for (text, unit) in nbd_samples::all() {
        assert_eq!(unit.bytes(), hex(text), "{unit:?}");
        assert_eq!(parse_as(&unit, &hex(text)).as_ref(), Ok(&unit));
    }
}

#[test]
fn every_truncation_is_rejected() {
    for (_, unit) in nbd_samples::all() {
        let bytes = unit.bytes();
        for len in 0..bytes.len() {
            let parsed = parse_as(&unit, &bytes[..len]);
            assert!(matches!(parsed, Err(ParseError::Truncated { .. })), "{unit:?} of {len} bytes: {parsed:?}");
        }
    }
}

#[test]
fn data_that_end_within_a_part_are_rejected() {
    for (_, unit) in nbd_samples::all() {
        let Unit::Option(option) = unit else { continue };
        let mut bytes = Vec::new();
        option.emit(&mut bytes);
        let data = &bytes[OptionHeader::BYTES..];
        for len in 0..data.len() {
            match ClientOption::parse(option.code(), &data[..len]) {
                Ok(ClientOption::ExportName(name)) => assert_eq!(name.len(), len),
                Ok(ClientOption::Other { data, .. }) => assert_eq!(data.len(), len),
                Ok(other) => panic!("{option:?} with {len} bytes of data became {other:?}"),
                Err(_) => {}
            }
        }
        let longer = [data, &[0]].concat();
        match ClientOption::parse(option.code(), &longer) {
            Ok(ClientOption::ExportName(_) | ClientOption::Other { .. }) => {}
            Ok(other) => panic!("{option:?} with a byte too much became {other:?}"),
            Err(error) => assert!(matches!(error, ParseError::Length { .. }), "{error}"),
        }
    }
}

#[test]
fn wrong_magic_numbers_and_text_other_than_utf_8_are_rejected() {
    for (_, unit) in nbd_samples::all() {
        let mut bytes = unit.bytes();
        bytes[3] ^= 1;
        assert!(matches!(parse_as(&unit, &bytes), Err(ParseError::Value { .. })), "{unit:?}");
    }
    let not_text = ClientOption::parse(OptionCode::EXPORT_NAME, b"lun\xff");
    assert!(matches!(not_text, Err(ParseError::Value { got: 0xff, rule: "UTF-8", .. })));
    let too_long = ClientOption::parse(OptionCode::EXPORT_NAME, &[b'x'; MAX_STRING_BYTES + 1]);
    assert!(matches!(too_long, Err(ParseError::Length { got_bytes: 4097, .. })));
}

#[test]
fn the_head_of_read_data_is_the_chunk_without_them() {
    let chunk = Chunk {
        flags: chunk_flag::DONE,
        cookie: 0x1122_3344_5566_7788,
        body: ChunkBody::OffsetData { offset_bytes: 1 << 40, data: Box::new([9; 5]) },
    };
    let mut bytes = Vec::new();
    chunk.emit(&mut bytes);
    let head = ChunkHeader::offset_data(chunk.cookie, 1 << 40, 5);
    assert_eq!(bytes[..head.len()], head);
    assert_eq!(bytes[head.len()..], [9; 5]);
}

#[test]
fn the_answer_to_an_export_name_has_its_zeros_or_not() {
    let answer = ExportAnswer { size_bytes: 1 << 33, flags: 0x0b };
    let mut bytes = vec![0xa5; 3];
    answer.emit(true, &mut bytes);
    assert_eq!(bytes[3..13], hex("0000000200000000 000b"));
    assert_eq!(bytes[13..], [0; 124]);
    let mut short = Vec::new();
    answer.emit(false, &mut short);
    assert_eq!(short, bytes[3..13]);
    assert_eq!(ExportAnswer::parse(&short), Ok(answer));
    for len in 0..short.len() {
        assert!(matches!(ExportAnswer::parse(&short[..len]), Err(ParseError::Truncated { .. })));
    }
}

#[test]
fn requests_and_codes_are_printed_by_their_names() {
    let request =
        Request { flags: 0x11, command: Command::WRITE_ZEROES, cookie: 0, offset_bytes: 4096, len_bytes: 512 };
    assert_eq!(request.to_string(), "WRITE_ZEROES 512 bytes at 4096 FUA FAST_ZERO");
    assert_eq!(request.data_bytes(), 0);
    assert_eq!(Request { command: Command::WRITE, ..request }.data_bytes(), 512);
    assert_eq!(ErrorNumber(77).to_string(), "error 0000004d");
    assert_eq!(Command(0x1234).to_string(), "command 1234");
}

fn text() -> impl Strategy<Value = Box<str>> + Clone {
    "[ -~äß→]{0,40}".prop_map(Box::from)
}

fn data() -> impl Strategy<Value = Box<[u8]>> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(Box::from)
}

fn option() -> impl Strategy<Value = ClientOption> {
    let info = (text(), proptest::collection::vec(any::<u16>(), 0..5))
        .prop_map(|(export, wanted)| InfoRequest { export, wanted: wanted.into_iter().map(InfoType).collect() });
    let query =
        (text(), proptest::collection::vec(text(), 0..4)).prop_map(|(export, queries)| MetaQuery { export, queries });
    prop_oneof![
        text().prop_map(ClientOption::ExportName),
        info.clone().prop_map(ClientOption::Info),
        info.prop_map(ClientOption::Go),
        query.clone().prop_map(ClientOption::ListMetaContext),
        query.prop_map(ClientOption::SetMetaContext),
        (12_u32.., data()).prop_map(|(option, data)| ClientOption::Other { option: OptionCode(option), data }),
    ]
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let extent = any::<(u32, u32)>().prop_map(|(len_bytes, flags)| StatusExtent { len_bytes, flags });
    let body = prop_oneof![
        Just(ChunkBody::None),
        (any::<u64>(), any::<u8>(), data()).prop_map(|(offset_bytes, first, rest)| {
            ChunkBody::OffsetData { offset_bytes, data: [&[first], &rest[..]].concat().into() }
        }),
        any::<(u64, u32)>().prop_map(|(offset_bytes, len_bytes)| ChunkBody::OffsetHole { offset_bytes, len_bytes }),
        (any::<u32>(), proptest::collection::vec(extent, 1..6))
            .prop_map(|(context, extents)| ChunkBody::BlockStatus { context, extents }),
        (any::<u32>(), text()).prop_map(|(error, message)| ChunkBody::Error { error: ErrorNumber(error), message }),
        (any::<u32>(), text(), any::<u64>()).prop_map(|(error, message, offset_bytes)| ChunkBody::ErrorOffset {
            error: ErrorNumber(error),
            message,
            offset_bytes
        }),
        (9..0x7fff_u16, data()).prop_map(|(chunk, payload)| ChunkBody::Other { chunk: ChunkType(chunk), payload }),
    ];
    (any::<u16>(), any::<u64>(), body).prop_map(|(flags, cookie, body)| Chunk { flags, cookie, body })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn options_survive(option in option()) {
        let unit = Unit::Option(option);
        prop_assert_eq!(parse_as(&unit, &unit.bytes()), Ok(unit));
    }

    #[test]
    fn chunks_survive(chunk in chunk()) {
        let unit = Unit::Chunk(chunk);
        prop_assert_eq!(parse_as(&unit, &unit.bytes()), Ok(unit));
    }

    #[test]
    fn requests_and_simple_replies_survive(
        (flags, command, cookie, offset_bytes, len_bytes, error) in any::<(u16, u16, u64, u64, u32, u32)>(),
    ) {
        let request = Request { flags, command: Command(command), cookie, offset_bytes, len_bytes };
        prop_assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
        let reply = SimpleReply { error: ErrorNumber(error), cookie };
        prop_assert_eq!(SimpleReply::parse(&reply.to_bytes()), Ok(reply));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        data in proptest::collection::vec(any::<u8>(), 0..200),
        sample in any::<prop::sample::Index>(),
        damage in proptest::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4),
    ) {
        entry_points::nbd(&data);
        let samples = nbd_samples::all();
        let mut bytes = samples[sample.index(samples.len())].1.bytes();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        entry_points::nbd(&bytes);
    }
}
