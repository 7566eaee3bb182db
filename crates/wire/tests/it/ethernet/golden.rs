//! Captured frames, which decode to the expected values and encode to the same bytes, and layouts
//! that were written by hand.

use super::samples;
use sanloom_wire::ether::{EtherHeader, EtherType, FcMap, MacAddr, VlanTag, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation, flag};
use sanloom_wire::lldp::Lldpdu;
use sanloom_wire::{FcId, Frame};

pub fn unhex(digits: &str) -> Vec<u8> {
    let digits: String = digits.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Label and bytes of each frame of a file.
fn frames(text: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("label and bytes")).map(|(label, digits)| (label, unhex(digits)))
}

const FIP: &str = include_str!("../golden/fip.txt");
const FCOE: &str = include_str!("../golden/frames.txt");

#[test]
fn captured_fip_frames_decode_to_their_meaning() {
    let mut text = String::new();
    for (label, bytes) in frames(FIP) {
        let (header, pdu) = EtherHeader::parse(&bytes).expect(label);
        assert_eq!(header.ether_type, EtherType::FIP);
        let packet = Fip::parse(pdu).expect(label);
        text += &format!("{label}: {} from {} to {}\n{packet:#?}\n\n", packet.operation, header.from, header.to);
    }
    insta::assert_snapshot!("fip", text);
}

#[test]
fn captured_fip_frames_encode_to_identical_bytes() {
    for (label, bytes) in frames(FIP) {
        let (header, pdu) = EtherHeader::parse(&bytes).expect(label);
        let packet = Fip::parse(pdu).expect(label);
        let mut again = Vec::new();
        header.emit(&mut again);
        packet.emit(&mut again);
        assert_eq!(hex(&again), hex(&bytes), "{label}");
        assert_eq!(packet.encoded_len(), pdu.len(), "{label}");
        let mut padded = Vec::new();
        FipFrame { to: header.to, from: header.from, padded_bytes: 2158, packet }.emit(None, &mut padded);
        assert_eq!((padded.len(), &padded[..bytes.len()]), (2172, &bytes[..]), "{label}");
        assert!(padded[bytes.len()..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn captured_fcoe_frames_are_read_in_place_and_rebuilt() {
    let mut seen = 0;
    for (label, bytes) in frames(FCOE).filter(|(label, _)| !label.starts_with("FIP")) {
        let (header, pdu) = EtherHeader::parse(&bytes).expect(label);
        let fcoe = Fcoe::parse(pdu).expect(label);
        assert!(fcoe.crc_is_right() && fcoe.sof().is_some() && fcoe.eof().is_some(), "{label}");
        assert_eq!(fcoe.frame.as_ptr(), pdu[14..].as_ptr(), "{label}: no copy");
        let fc = fcoe.header().expect(label);
        assert_eq!(fcoe::addresses(pdu), Some((fc.d_id, fc.s_id, fc.ox_id)), "{label}");
        let mut again = Vec::new();
        header.emit(&mut again);
        fcoe.emit(&mut again);
        assert_eq!(hex(&again), hex(&bytes), "{label}");
        let mut made = Vec::new();
        let frame = Frame::parse(fcoe.frame, None).expect(label);
        fcoe::encapsulate(header.to, header.from, None, &frame, &mut made);
        assert_eq!(hex(&made), hex(&bytes), "{label}");
        seen += 1;
    }
    assert_eq!(seen, 20);
}

#[test]
fn a_wrong_crc_passes_through_unchanged() {
    let (label, mut bytes) = frames(FCOE).find(|(label, _)| label.starts_with("ELS")).expect("a frame");
    let at = bytes.len() - 10;
    bytes[at] ^= 1;
    readdress(&mut bytes, samples::FCF, samples::HOST);
    let (header, pdu) = EtherHeader::parse(&bytes).expect(label);
    assert_eq!((header.to, header.from), (samples::FCF, samples::HOST));
    let fcoe = Fcoe::parse(pdu).expect(label);
    assert!(!fcoe.crc_is_right());
    let mut again = Vec::new();
    fcoe.emit(&mut again);
    assert_eq!(again, pdu);
}

#[test]
fn tags_are_read_and_written() {
    let tag = VlanTag { priority: 3, drop_eligible: true, vlan: 100 };
    let tagged = EtherHeader { to: samples::FCF, from: samples::HOST, tag: Some(tag), ether_type: EtherType::FCOE };
    let mut bytes = Vec::new();
    tagged.emit(&mut bytes);
    assert_eq!(hex(&bytes), "02fcf0000001525400000001810070648906");
    bytes.push(7);
    assert_eq!(EtherHeader::parse(&bytes), Ok((tagged, &[7][..])));
    assert_eq!((tagged.vlan(), tagged.encoded_len()), (Some(100), 18));
    let priority_only = EtherHeader { tag: Some(VlanTag { vlan: 0, ..tag }), ..tagged };
    assert_eq!(priority_only.vlan(), None);
}

#[test]
fn addresses_have_their_parts_and_their_texts() {
    let mac = MacAddr::fpma(FcMap::DEFAULT, FcId::new(0x010203));
    assert_eq!(mac.to_string(), "0e:fc:00:01:02:03");
    assert_eq!("0e:fc:00:01:02:03".parse(), Ok(mac));
    assert_eq!((mac.fc_map(), mac.fc_id()), (FcMap::DEFAULT, FcId::new(0x010203)));
    assert_eq!(MacAddr::from_u64(mac.to_u64()), mac);
    assert!(mac.is_station() && MacAddr::ALL_FCFS.is_group() && !MacAddr::ZERO.is_station());
    assert_eq!("0e:fd:00".parse(), Ok(FcMap::VN2VN));
    for bad in ["", "0e:fc:00:01:02", "0e:fc:00:01:02:03:04", "0e:fc:00:01:02:0", "0e:fc:00:01:02:+3", "0efc00010203"] {
        assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
    }
    for bad in [[0, 0, 0], [1, 0, 0], [0x0f, 0xfc, 0]] {
        assert!(!FcMap(bad).is_usable());
    }
}

#[test]
fn pdus_of_impossible_lengths_are_rejected() {
    let shortest = vec![0; fcoe::MIN_PDU_BYTES];
    assert!(Fcoe::parse(&shortest).is_ok());
    for len in [0, 45, 47, 48, 49, 2174 + 4] {
        assert!(Fcoe::parse(&vec![0; len]).is_err(), "{len}");
    }
    for len in [46, 50, 2158, 2174] {
        assert!(Fcoe::parse(&vec![0; len]).is_ok(), "{len}");
    }
    let mut version = shortest;
    version[0] = 0x10;
    assert!(Fcoe::parse(&version).is_err());
}

/// Layouts from the tables of the standard, byte by byte.
#[test]
fn descriptors_absent_from_the_captures_have_the_layout_of_the_standard() {
    let packet = Fip {
        operation: Operation::CLEAR_VIRTUAL_LINKS,
        flags: flag::FPMA | flag::FCF,
        descriptors: vec![
            Descriptor::FcMap(FcMap([0x0e, 0xfc, 0x07])),
            Descriptor::AdvertisementPeriod { no_keep_alives: true, period_ms: 0x01020304 },
            Descriptor::VendorId(*b"sanloom "),
            Descriptor::Vlan(0x0abc),
            Descriptor::Other { kind: 128, body: [1, 2, 3].into() },
        ],
    };
    let mut bytes = Vec::new();
    packet.emit(&mut bytes);
    let expected = "10 00 0003 00 02 000a 8001 0302 000000 0efc07 0c02 00 01 01020304 0d03 0000 73616e6c6f6f6d20 0e01 0abc \
                    8002 010203 000000";
    assert_eq!(hex(&bytes), expected.replace(' ', ""));
}

#[test]
fn tlvs_of_dcbx_have_the_layout_of_the_standard() {
    let mut bytes = Vec::new();
    samples::lldpdu().emit(&mut bytes);
    let expected = "0207 04 02fcf0000001  0405 05 65746830  0602 0078  0806 706f72742031  0a04 6c6f6f6d \
        0c07 73616e6c6f6f6d  0e04 0014 0004 \
        fe19 0080c2 09 83 00010002 28320a0000000000 02020000000000ff \
        fe19 0080c2 0a 00 00010002 28320a0000000000 02020000000000ff \
        fe06 0080c2 0b 88 08 \
        fe0b 0080c2 0c 00 618906 618914 \
        fe06 00120f 04 09dc  100c 05010a000001020000000100 0000";
    let expected: String = expected.split_whitespace().collect();
    assert_eq!(hex(&bytes), expected);
    assert_eq!(Lldpdu::parse(&bytes), Ok(samples::lldpdu()));
    assert_eq!(samples::lldpdu().time_to_live_s(), Some(120));
}
