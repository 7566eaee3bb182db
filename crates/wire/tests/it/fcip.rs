//! FCIP: golden bytes, truncations, damaged headers, round trips, and Wireshark's dissector.

use proptest::prelude::*;
use sanloom_test_support::samples::{HOST, STORAGE};
use sanloom_test_support::{needs, tshark};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::crc::crc_bytes;
use sanloom_wire::ether::{ETHER_BYTES, MacAddr};
use sanloom_wire::fcip::{self, Encapsulated, Head, KeepAlive, SPECIAL_BYTES, Special, Stamp};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::fcp::FcpCmnd;
use sanloom_wire::header::FcType;
use sanloom_wire::pcapng::{Interface, LINKTYPE_ETHERNET, Packet, Resolution, Section};
use sanloom_wire::{FcId, Frame, Message, ParseError, Wwnn};

const SPECIAL: Special = Special {
    changed: false,
    stamp: Stamp(0xe8d6_a5b0_8000_0000),
    source: Wwnn(0x1000_0000_c900_0001),
    entity: 7,
    nonce: 0x0123_4567_89ab_cdef,
    usage_flags: 0,
    usage_code: 0,
    destination: Wwnn(0x1000_0000_c900_0002),
    k_a_tov_ms: 10_000,
};

fn special(special: Special) -> Vec<u8> {
    let mut bytes = Vec::new();
    special.emit(&mut bytes);
    bytes
}

fn frame(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    fcip::encapsulate(SPECIAL.stamp, frame, &mut bytes);
    bytes
}

fn read() -> Frame {
    let cdb = Cdb::Read { lba: 0, blocks: 8, fua: false };
    let message = Message::FcpCmnd(FcpCmnd {
        lun: [0; 8],
        crn: 0,
        attribute: 0,
        task_management: 0,
        flags: FcpCmnd::READ,
        cdb: cdb.to_bytes(),
        data_len: 4_096,
    });
    Frame { header: message.header(HOST, STORAGE, 1, 0xffff), payload: message.into() }
}

/// One unit of each kind.
pub fn units() -> Vec<Vec<u8>> {
    let echo = Special { changed: true, ..SPECIAL };
    let frames = [read(), KeepAlive::Request.frame(9), KeepAlive::Accept.frame(9)];
    [special(SPECIAL), special(echo)].into_iter().chain(frames.iter().map(frame)).collect()
}

#[test]
fn frames_between_switches_have_class_f_in_fcip_and_in_fcoe() {
    let keep_alive = KeepAlive::Request.frame(9);
    let between = |s_id, d_id, fc_type| {
        let mut frame = keep_alive.clone();
        (frame.header.s_id, frame.header.d_id, frame.header.fc_type) = (s_id, d_id, fc_type);
        frame
    };
    let (controller, domains) = (FcId::FABRIC_CONTROLLER, [1, 2].map(FcId::domain_controller));
    let host = FcId::from_parts(1, 2, 3);
    for (frame, sof) in [
        (between(controller, controller, FcType::ELS), 0x28),
        (between(domains[0], domains[1], FcType::CT), 0x28),
        (between(domains[0], controller, FcType::SW_ILS), 0x28),
        // A switch notifies a host of a change.
        (between(controller, host, FcType::ELS), 0x2e),
        (between(domains[0], host, FcType::CT), 0x2e),
        (read(), 0x2e),
    ] {
        let mut over_ethernet = Vec::new();
        fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &frame, &mut over_ethernet);
        let over_ethernet = Fcoe::parse(&over_ethernet[ETHER_BYTES..]).unwrap();
        let over_tcp = self::frame(&frame);
        let over_tcp = Encapsulated::parse(&over_tcp).unwrap();
        assert_eq!((over_ethernet.sof_code, over_tcp.sof_code), (sof, sof), "{frame:?}");
        assert_eq!(over_ethernet.eof_code, over_tcp.eof_code, "{frame:?}");
    }
}

#[test]
fn an_fcoe_pdu_is_written_only_if_it_fits() {
    let frame = [7; 28];
    let pdu = Fcoe { sof_code: 0x2e, frame: &frame, crc: [1, 2, 3, 4], eof_code: 0x42 };
    let mut room = [0xff; 60];
    assert_eq!(pdu.put(&mut room[..49]), None);
    assert_eq!(room, [0xff; 60]);
    assert_eq!(pdu.put(&mut room), Some(50));
    assert_eq!(Fcoe::parse(&room[..50]), Ok(pdu));
    assert_eq!((&room[..13], &room[47..51]), (&[0; 13][..], &[0, 0, 0, 0xff][..]));
}

#[test]
fn a_special_frame_has_the_bytes_of_rfc_3821() {
    let words: [u32; 19] = [
        0x0101_fefe,
        0x0101_fefe,
        0x0100_feff,
        0x0013_ffec,
        0xe8d6_a5b0,
        0x8000_0000,
        0,
        0x0000_ffff,
        0x1000_0000,
        0xc900_0001,
        0,
        7,
        0x0123_4567,
        0x89ab_cdef,
        0,
        0x1000_0000,
        0xc900_0002,
        10_000,
        0x0000_ffff,
    ];
    let golden: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    assert_eq!(special(SPECIAL), golden);
    assert_eq!(Special::parse(&golden), Ok(SPECIAL));
    let changed = special(Special { changed: true, ..SPECIAL });
    assert_eq!(changed[8..12], [0x81, 0, 0x7e, 0xff]);
}

#[test]
fn a_frame_is_encapsulated_with_the_bytes_of_rfc_3643() {
    let bytes = frame(&KeepAlive::Request.frame(0x0102));
    // 28 bytes of header, delimiters of 4 bytes each, 24 bytes of frame header, 4 of payload, CRC.
    assert_eq!(bytes.len(), 68);
    assert_eq!(bytes[8..16], [0, 0, 0xff, 0xff, 0, 17, 0xff, 0xee]);
    assert_eq!(bytes[24..28], [0; 4]);
    assert_eq!(bytes[28..32], [0x28, 0x28, 0xd7, 0xd7], "SOFf");
    assert_eq!(bytes[32..40], [0x22, 0xff, 0xff, 0xfd, 0, 0xff, 0xff, 0xfd]);
    assert_eq!(bytes[40..44], [0x01, 0x29, 0, 0]);
    assert_eq!(bytes[56..60], [0x80, 0, 0, 0], "LKA");
    assert_eq!(bytes[60..64], crc_bytes(&bytes[32..60]));
    assert_eq!(bytes[64..], [0x42, 0x42, 0xbd, 0xbd], "EOFt");
    assert_eq!(frame(&read())[28..32], [0x2e, 0x2e, 0xd1, 0xd1], "SOFi3");
}

#[test]
fn the_longest_payload_takes_544_words() {
    let header = Message::FcpConf.header(HOST, STORAGE, 1, 2);
    let longest = Frame { header, payload: sanloom_wire::Payload::Pattern { seed: 1, offset: 0, len: 2_112 } };
    let bytes = frame(&longest);
    assert_eq!((bytes.len(), Head::parse(&bytes).map(|head| head.words)), (2_176, Ok(544)));
    assert_eq!(Encapsulated::parse(&bytes).map(|frame| frame.crc_is_right()), Ok(true));
}

#[test]
fn every_truncation_of_every_unit_is_rejected() {
    for unit in units() {
        for len in 0..unit.len() {
            for result in [Encapsulated::parse(&unit[..len]).map(drop), Special::parse(&unit[..len]).map(drop)] {
                match result {
                    Err(ParseError::Truncated { needed_bytes, got_bytes, .. }) => assert!(got_bytes < needed_bytes),
                    Err(ParseError::Unsupported { .. }) => assert!(len >= fcip::HEADER_BYTES, "of the other kind"),
                    other => panic!("{len} bytes: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_words_0_to_3_and_of_the_delimiters_is_found() {
    let whole = frame(&read());
    let ends = (28..32).chain(whole.len() - 4..whole.len());
    for byte in (0..16).chain(ends) {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1 << bit;
            assert!(Encapsulated::parse(&damaged).is_err(), "bit {bit} of byte {byte}");
        }
    }
}

#[test]
fn time_stamps_are_those_of_sntp() {
    let second = Stamp::from_unix_ns(1_500_000_000);
    assert_eq!(second, Stamp((2_208_988_801 << 32) | 0x8000_0000));
    assert_eq!(Stamp::from_unix_ns(4_000_000_000).ns_since(second), 2_500_000_000);
    assert_eq!(second.ns_since(Stamp::from_unix_ns(4_000_000_000)), 0);
    // The seconds wrap in 2036.
    assert_eq!(Stamp(1 << 32).ns_since(Stamp(0xffff_ffff << 32)), 2_000_000_000);
}

#[test]
fn only_lka_and_its_accept_between_fabric_controllers_belong_to_the_keep_alive() {
    for kind in [KeepAlive::Request, KeepAlive::Accept] {
        let mut bytes = Vec::new();
        kind.frame(1).emit(&mut bytes);
        assert_eq!(KeepAlive::of(&bytes), Some(kind));
        bytes[7] = 0xfc;
        assert_eq!(KeepAlive::of(&bytes), None);
    }
    let mut bytes = Vec::new();
    read().emit(&mut bytes);
    assert_eq!(KeepAlive::of(&bytes), None);
}

proptest! {
    #[test]
    fn a_special_frame_survives_a_round_trip(
        (changed, stamp, source, entity, nonce) in any::<(bool, u64, u64, u64, u64)>(),
        (usage_flags, usage_code, destination, k_a_tov_ms) in any::<(u8, u16, u64, u32)>(),
    ) {
        let (source, destination) = (Wwnn(source), Wwnn(destination));
        let value = Special {
            changed, stamp: Stamp(stamp), source, entity, nonce, usage_flags, usage_code, destination, k_a_tov_ms,
        };
        let bytes = special(value);
        prop_assert_eq!(bytes.len(), SPECIAL_BYTES);
        prop_assert_eq!(Special::parse(&bytes), Ok(value));
    }

    #[test]
    fn a_frame_survives_a_round_trip(
        words in prop::collection::vec(any::<[u8; 4]>(), 6..=534),
        (stamp, crc, sof_code, eof_code) in any::<(u64, [u8; 4], u8, u8)>(),
    ) {
        let content = words.concat();
        let value = Encapsulated { flags: 0, stamp: Stamp(stamp), sof_code, frame: &content, crc, eof_code };
        let mut bytes = Vec::new();
        value.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), value.encoded_len());
        prop_assert_eq!(Encapsulated::parse(&bytes), Ok(value));
    }
}

/// A capture of one direction of a TCP connection.
fn capture<'a>(segments: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut file = Vec::new();
    Section { application: "sanloom test", comment: None }.emit(&mut file);
    let resolution = Resolution::Nanoseconds;
    Interface { name: "lo", description: None, link_type: LINKTYPE_ETHERNET, resolution }.emit(&mut file);
    let mut sequence = 1_u32;
    for (time, payload) in (0..).zip(segments) {
        let mut tcp = [[0xc0, 0x00], fcip::PORT.to_be_bytes()].concat();
        tcp.extend(sequence.to_be_bytes());
        tcp.extend([0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend_from_slice(payload);
        sequence += payload.len() as u32;
        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        let data = [&[0; 12], &[8, 0][..], &ip, &tcp].concat();
        Packet { interface: 0, time, direction: None, crc_error: false, comment: None, data: &data }.emit(&mut file);
    }
    file
}

/// Wireshark does not dissect FCIP by its port.
const AS_FCIP: &str = "tcp.port==3225,fcip";

/// Wireshark 4.0 searches the EOF of a frame at four times its distance, so a segment that holds
/// several frames may remain undissected. Here a segment has one frame at most.
#[needs("tshark")]
#[test]
fn tshark_reads_special_frames_and_frames_in_whole_and_cut_segments() {
    for segment in [1_460, 50] {
        let units = units();
        let file = capture(units.iter().flat_map(|unit| unit.chunks(segment)));
        let text = tshark::read_bytes(&file, &["-V", "-d", AS_FCIP]);
        for expected in ["SOFf/EOFt", "SOFi3/EOFt", "FC ELS", "Read(10)"] {
            assert!(text.contains(expected), "no {expected} in\n{text}");
        }
        assert!(!text.contains("Malformed"), "{text}");
        let fields = ["framelen", "pflags.sf", "pflags.ch", "srcwwn", "srcid", "nonce", "conncode"];
        let fields: Vec<String> = fields.iter().map(|field| format!("fcip.{field}")).collect();
        let mut arguments = vec!["-d", AS_FCIP, "-T", "fields", "-Y", "fcip.pflags.sf == 1"];
        fields.iter().for_each(|field| arguments.extend(["-e", field]));
        let text = tshark::read_bytes(&file, &arguments);
        let line = |changed| {
            format!("19\t1\t{changed}\t10:00:00:00:c9:00:00:01\t0000000000000007\t0123456789abcdef\t0x0000\n")
        };
        assert_eq!(text, line(0) + &line(1));
    }
}
