//! Every kind of message: emitted bytes parse back, have the announced length, and no prefix of
//! them parses as the message.

use sanloom_test_support::samples;
use sanloom_wire::ct::CtBody;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::ns::NsAccept;
use sanloom_wire::sw_ils::{SwAcc, SwIls};
use sanloom_wire::{Frame, Header, Message, ParseError, Payload};

const OX_ID: u16 = 0x0123;
const RX_ID: u16 = 0x8123;

#[test]
fn every_message_parses_from_its_bytes_and_has_the_announced_length() {
    for (message, reply_to) in samples::messages() {
        let header = message.header(samples::HOST, samples::STORAGE, OX_ID, RX_ID);
        let mut bytes = vec![0xa5; 5];
        message.emit(&mut bytes);
        assert_eq!(bytes[..5], [0xa5; 5], "{message}");
        assert_eq!(bytes.len() - 5, message.encoded_len(), "{message}");
        assert_eq!(Message::parse(&header, &bytes[5..], reply_to).as_ref(), Ok(&message));

        let frame = Frame { header, payload: Payload::Typed(message) };
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(bytes.len(), frame.encoded_len());
        assert_eq!(Frame::parse(&bytes, reply_to), Ok(frame));
    }
}

#[test]
fn every_truncation_of_every_message_is_rejected() {
    for (message, reply_to) in samples::messages() {
        let header = message.header(samples::HOST, samples::STORAGE, OX_ID, RX_ID);
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        for len in 0..bytes.len() {
            match Message::parse(&header, &bytes[..len], reply_to) {
                Err(ParseError::Truncated { needed_bytes, got_bytes, .. }) => {
                    assert!(got_bytes < needed_bytes, "{message} of {len} bytes");
                }
                Err(other) => panic!("{message} of {len} bytes: {other}"),
                // Messages of this kind have no length field that marks their end.
                Ok(shorter) => {
                    assert!(is_open_ended(&message), "{message} of {len} bytes");
                    assert_eq!(shorter.encoded_len(), len);
                }
            }
        }
    }
}

#[test]
fn every_truncation_of_a_header_is_rejected() {
    let bytes = Message::FcpConf.header(samples::HOST, samples::STORAGE, OX_ID, RX_ID).to_bytes();
    for len in 0..bytes.len() {
        let error = ParseError::Truncated { field: "frame header", needed_bytes: 24, got_bytes: len };
        assert_eq!(Header::parse(&bytes[..len]), Err(error));
        assert_eq!(Frame::parse(&bytes[..len], None), Err(error));
    }
}

#[test]
fn unknown_codes_become_bytes_and_come_back_unchanged() {
    let header = Message::FcpConf.header(samples::HOST, samples::STORAGE, OX_ID, RX_ID).to_bytes();
    for r_ctl in 0..=255_u8 {
        for fc_type in 0..=255_u8 {
            let mut bytes = header.to_vec();
            bytes[0] = r_ctl;
            bytes[8] = fc_type;
            // Long enough for every fixed layout, but not valid as any of them.
            bytes.resize(24 + 256, 0xee);
            match Frame::parse(&bytes, None) {
                Ok(frame) => {
                    let mut again = Vec::new();
                    frame.emit(&mut again);
                    assert_eq!(Header::parse(&again), Header::parse(&bytes), "{r_ctl:02x} {fc_type:02x}");
                    if let Payload::Bytes(_) = frame.payload {
                        assert_eq!(again, bytes, "{r_ctl:02x} {fc_type:02x}");
                    }
                }
                // An FCP_RSP with lengths out of range is a malformed message, not an unknown one.
                Err(error) => assert_eq!((r_ctl, fc_type), (7, 8), "{error}"),
            }
        }
    }
}

#[test]
fn a_frame_within_a_sequence_stays_bytes() {
    let (message, _) = samples::messages().swap_remove(0);
    let mut header = message.header(samples::HOST, samples::STORAGE, OX_ID, RX_ID);
    header.seq_cnt = 1;
    let mut bytes = Vec::new();
    Frame { header, payload: message.into() }.emit(&mut bytes);
    assert!(matches!(Frame::parse(&bytes, None), Ok(Frame { payload: Payload::Bytes(_), .. })));
}

#[test]
fn fill_bytes_are_added_counted_and_removed() {
    for len in 0..9 {
        let mut header = Message::FcpConf.header(samples::HOST, samples::STORAGE, OX_ID, RX_ID);
        header.r_ctl = sanloom_wire::RCtl::SOLICITED_DATA;
        let payload = Payload::Pattern { seed: 1, offset: 3, len };
        let mut bytes = Vec::new();
        payload.write_to(&mut bytes);
        assert_eq!(bytes.len(), payload.len());
        let mut frame = Vec::new();
        Frame { header, payload }.emit(&mut frame);
        let parsed = Frame::parse(&frame, None).expect("a data frame");
        assert_eq!(parsed.header.f_ctl.fill_bytes(), frame.len() - 24 - usize::from(len));
        assert_eq!(parsed.payload, Payload::Bytes(bytes.into()));
    }
}

fn is_open_ended(message: &Message) -> bool {
    match message {
        Message::Els(els) => matches!(
            **els,
            Els::Echo(_) | Els::Test(_) | Els::Other { .. } | Els::LsAcc(LsAcc::Echo(_) | LsAcc::Other(_))
        ),
        Message::Ct(ct) => matches!(ct.body, CtBody::Other { .. } | CtBody::NsAccept(NsAccept::Descriptors(_))),
        Message::SwIls(ils) => matches!(**ils, SwIls::Other { .. } | SwIls::SwAcc(SwAcc::Other(_))),
        _ => false,
    }
}
