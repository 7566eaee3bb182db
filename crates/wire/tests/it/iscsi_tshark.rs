//! Independent check of iSCSI: Wireshark's dissector reads every kind of PDU, with digests.

use crate::iscsi_samples;
use sanloom_test_support::{needs, tshark};
use sanloom_wire::iscsi::code::{flag, stage};
use sanloom_wire::iscsi::*;
use sanloom_wire::pcapng::{Interface, LINKTYPE_ETHERNET, Packet, Resolution, Section};

/// Encodes a whole PDU: header, digest, data, padding, digest.
fn pdu(head: &Head, ahs: &[u8], data: &[u8], digests: bool) -> Vec<u8> {
    let head = Head { data_bytes: data.len() as u32, ahs_words: (ahs.len() / 4) as u8, ..*head };
    let mut bytes = head.to_bytes().to_vec();
    bytes.extend_from_slice(ahs);
    if digests {
        bytes.extend(digest::of(&bytes));
    }
    if !data.is_empty() {
        let padded = [data, &[0; 3][..padding(head.data_bytes) as usize]].concat();
        bytes.extend_from_slice(&padded);
        if digests {
            bytes.extend(digest::of(&padded));
        }
    }
    bytes
}

/// TCP segments of one connection as a capture.
struct Stream {
    file: Vec<u8>,
    /// Next TCP sequence numbers: of the initiator, of the target.
    sequence: [u32; 2],
    count: u64,
}

impl Stream {
    fn new() -> Stream {
        let mut file = Vec::new();
        Section { application: "sanloom test", comment: None }.emit(&mut file);
        let resolution = Resolution::Nanoseconds;
        Interface { name: "lo", description: None, link_type: LINKTYPE_ETHERNET, resolution }.emit(&mut file);
        Stream { file, sequence: [1, 1], count: 0 }
    }

    fn push(&mut self, from_target: bool, payload: &[u8]) {
        let (from, to) = (usize::from(from_target), usize::from(!from_target));
        let ports = [[0xc0, 0x00], PORT.to_be_bytes()];
        let mut tcp = [ports[from], ports[to]].concat();
        tcp.extend(self.sequence[from].to_be_bytes());
        tcp.extend(self.sequence[to].to_be_bytes());
        tcp.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend_from_slice(payload);
        self.sequence[from] += payload.len() as u32;
        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        let frame = [&[0; 12], &[8, 0][..], &ip, &tcp].concat();
        self.count += 1;
        Packet {
            interface: 0,
            time: self.count * 1000,
            direction: None,
            crc_error: false,
            comment: None,
            data: &frame,
        }
        .emit(&mut self.file);
    }
}

fn text(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    pairs.iter().for_each(|(key, value)| text::emit(key, value, &mut out));
    out
}

/// A login that negotiates digests, then every other kind of PDU.
fn session(digests: bool) -> Vec<u8> {
    let mut stream = Stream::new();
    let word = if digests { "CRC32C" } else { "None" };
    let keys = text(&[("InitiatorName", "iqn.2026-11.net.example:host"), ("HeaderDigest", word), ("DataDigest", word)]);
    let answer = text(&[("HeaderDigest", word), ("DataDigest", word), ("TargetPortalGroupTag", "1")]);
    let flags = flag::TRANSIT | stage::OPERATIONAL << 2 | stage::FULL_FEATURE;
    for (_, head) in iscsi_samples::all() {
        match head.header {
            Header::LoginRequest(_) => stream.push(false, &pdu(&head, &[], &keys, false)),
            Header::LoginResponse(response) => {
                let response = LoginResponse { status: LoginStatus::SUCCESS, flags, ..response };
                stream.push(true, &pdu(&Head::new(response), &[], &answer, false));
            }
            _ => {}
        }
    }
    for (_, head) in iscsi_samples::all() {
        let opcode = head.header.opcode();
        let from_target = opcode.0 & 0x20 != 0;
        let mut ahs = Vec::new();
        if head.ahs_words > 0 {
            Ahs::BidirectionalRead { expected_bytes: 512 }.emit(&mut ahs);
        }
        let data = match head.header {
            Header::LoginRequest(_) | Header::LoginResponse(_) => continue,
            Header::TextRequest(_) => text(&[("SendTargets", "All")]),
            Header::TextResponse(_) => text(&[("TargetName", "iqn.2026-11.net.example:disk")]),
            Header::ScsiResponse(_) => {
                let mut segment = Vec::new();
                emit_sense(&[0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0, 0, 0, 0, 0], &mut segment);
                segment
            }
            Header::Reject(_) => iscsi_samples::all()[5].1.to_bytes().to_vec(),
            _ => (0..head.data_bytes).map(|n| n as u8).collect(),
        };
        stream.push(from_target, &pdu(&head, &ahs, &data, digests));
    }
    stream.file
}

#[needs("tshark")]
#[test]
fn no_kind_of_pdu_is_malformed() {
    for digests in [false, true] {
        let text = tshark::read_bytes(&session(digests), &["-V"]);
        for bad in ["Malformed", "[incorrect", "Dissector bug", "Error: "] {
            assert!(!text.contains(bad), "{bad:?} in\n{text}");
        }
        for (_, head) in iscsi_samples::all() {
            let opcode = format!("(0x{:02x})", head.header.opcode().0);
            assert!(
                text.lines().any(|line| line.contains("Opcode:") && line.contains(&opcode)),
                "no {opcode} in\n{text}"
            );
        }
        for expected in [
            "KeyValue: SendTargets=All",
            "KeyValue: TargetName=iqn.2026-11.net.example:disk",
            "DesiredDataLength: 65536",
            "BufferOffset: 1536",
            "Time2Wait: 0x0002",
            "AsyncEvent: Target requests logout",
            "Reason: Protocol error",
            "Read(10)",
            "Unit Attention",
        ] {
            assert!(text.contains(expected), "no {expected:?} in\n{text}");
        }
        let good = text.matches("(Good CRC32)").count();
        assert_eq!(good > 20, digests, "{good} digests in\n{text}");
    }
}
