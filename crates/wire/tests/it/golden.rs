//! Frames of a real host, captured on the wire: they decode to the expected values and encode to
//! the same bytes.

use sanloom_wire::crc::strip_crc;
use sanloom_wire::ct::Service;
use sanloom_wire::delimiter::{Eof, Sof};
use sanloom_wire::els::command as els;
use sanloom_wire::ns::command as ns;
use sanloom_wire::{Frame, Header, ReplyTo};

struct Golden {
    label: &'static str,
    frame: Vec<u8>,
}

#[test]
fn real_frames_decode_to_their_meaning() {
    let mut text = String::new();
    for golden in golden_frames() {
        let frame = Frame::parse(&golden.frame, reply_to(golden.label)).expect(golden.label);
        text += &format!("{}\n{}\n{:#?}\n\n", golden.label, frame.header, frame.payload);
    }
    insta::assert_snapshot!("meaning", text);
}

#[test]
fn real_frames_encode_to_identical_bytes() {
    for golden in golden_frames() {
        for reply_to in [reply_to(golden.label), None] {
            let frame = Frame::parse(&golden.frame, reply_to).expect(golden.label);
            let mut again = vec![0xa5; 3];
            frame.emit(&mut again);
            assert_eq!(again[..3], [0xa5; 3], "{}", golden.label);
            assert_eq!(hex(&again[3..]), hex(&golden.frame), "{}", golden.label);
            assert_eq!(frame.encoded_len(), golden.frame.len(), "{}", golden.label);
        }
    }
}

#[test]
fn real_headers_survive_a_dirty_buffer() {
    for golden in golden_frames() {
        let header = Header::parse(&golden.frame).expect(golden.label);
        let mut dirty = [0xa5; 24];
        header.emit(&mut dirty);
        assert_eq!(dirty, golden.frame[..24], "{}", golden.label);
    }
}

#[test]
fn headers_of_messages_are_those_of_real_frames() {
    for golden in golden_frames() {
        let frame = Frame::parse(&golden.frame, reply_to(golden.label)).expect(golden.label);
        let sanloom_wire::Payload::Typed(message) = &frame.payload else {
            continue;
        };
        let Header { s_id, d_id, ox_id, rx_id, seq_id, .. } = frame.header;
        let ours = Header { seq_id, ..message.header(s_id, d_id, ox_id, rx_id) };
        assert_eq!(ours, frame.header, "{}", golden.label);
    }
}

fn golden_frames() -> Vec<Golden> {
    const ETHERNET: usize = 14;
    const FIP_HEAD: usize = 10 + 4;
    const FCOE_HEAD: usize = 14;
    const FLOGI: usize = 24 + 116;
    let mut found = Vec::new();
    for line in include_str!("golden/frames.txt").lines().filter(|line| !line.starts_with('#')) {
        let (label, digits) = line.split_once(' ').expect("label and bytes");
        let bytes = unhex(digits);
        let frame = if label.starts_with("FIP") {
            bytes[ETHERNET + FIP_HEAD..][..FLOGI].to_vec()
        } else {
            let (head, rest) = bytes[ETHERNET..].split_at(FCOE_HEAD);
            let (frame_and_crc, tail) = rest.split_at(rest.len() - 4);
            assert_eq!(Sof::from_code(head[FCOE_HEAD - 1]), Some(Sof::I3), "{label}");
            assert_eq!(Eof::from_code(tail[0]), Some(Eof::T), "{label}");
            strip_crc(frame_and_crc).unwrap_or_else(|| panic!("{label}: CRC")).to_vec()
        };
        found.push(Golden { label, frame });
    }
    assert_eq!(found.len(), 22);
    found
}

fn reply_to(label: &str) -> Option<ReplyTo> {
    match label {
        "FIP_FLOGI_LS_ACC" => Some(ReplyTo::Els(els::FLOGI)),
        "ELS_r23_LS_ACC_d01" => Some(ReplyTo::Els(els::PLOGI)),
        "ELS_r23_LS_ACC_dff" => Some(ReplyTo::Els(els::RSCN)),
        "CT_r03_CT_ACC" => Some(ReplyTo::Ct(Service::NAME_SERVER, ns::RNN_ID)),
        _ => None,
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
