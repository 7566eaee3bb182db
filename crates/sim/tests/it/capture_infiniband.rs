//! Captures of InfiniBand links, checked independently by Wireshark's dissectors.

use crate::captured::{self, Plane, packets};
use crate::labs::{self, planes};
use sanloom_api::results::Results;
use sanloom_sim::capture::Window;
use sanloom_test_support::{needs, tshark};
use sanloom_wire::infiniband::{Packet, opcode};
use sanloom_wire::srp::Iu;

const LAB: &str = planes::SRP_MIXED;

fn capture(text: &str, link: u16, window: Window) -> (Vec<u8>, Results) {
    captured::capture(&labs::lab(text), &Plane::Infiniband, link, window)
}

/// Every packet has right checksums, and Wireshark finds none malformed.
#[needs("tshark")]
#[test]
fn every_packet_is_well_formed_and_its_checksums_are_right() {
    let (file, _) = capture(LAB, 0, Window::default());
    let all = packets(&file);
    assert!(all.len() > 1_000, "{}", all.len());
    for (number, bytes) in all.iter().enumerate() {
        let packet = Packet::parse(bytes).unwrap_or_else(|error| panic!("packet {number}: {error}"));
        assert_eq!((packet.lrh.level, packet.lrh.lane), (1, 1), "packet {number}");
    }
    // The heuristics of RPC over RDMA take other messages for theirs.
    let plain = ["--disable-protocol", "rpcordma"];
    let fields = ["-T", "fields", "-e", "_ws.malformed", "-e", "infiniband.bth.opcode", "-e", "infiniband.lrh.dlid"];
    let text = tshark::read_bytes(&file, &[&plain[..], &fields[..]].concat());
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), all.len());
    for (number, (row, bytes)) in rows.iter().zip(&all).enumerate() {
        let packet = Packet::parse(bytes).unwrap();
        assert_eq!(row[..2], ["", &packet.bth.opcode.to_string()], "packet {number}");
        assert_eq!(row[2], packet.lrh.to.to_string(), "packet {number}");
    }
}

/// Packets and bytes of the link are those of the results, also of a window of the run.
#[test]
fn packets_and_bytes_are_those_of_the_results() {
    let (file, results) = capture(LAB, 1, Window { from_ps: Some(0), until_ps: None });
    let link = &results.infiniband_links[1];
    let all = packets(&file);
    assert_eq!(all.len() as u64, link.forward.packets + link.backward.packets);
    let bytes: u64 = all.iter().map(|packet| packet.len() as u64).sum();
    assert_eq!(bytes, link.forward.bytes + link.backward.bytes);
}

/// The login, each command, its data by RDMA and its response, with the numbers of the results.
#[test]
fn the_messages_of_a_channel_are_those_that_were_sent() {
    let (file, results) = capture(LAB, 0, Window::default());
    let (mut commands, mut responses, mut logins, mut written, mut read) = (0, 0, 0, 0, 0);
    let mut last = [None; 2];
    for bytes in packets(&file) {
        let packet = Packet::parse(bytes).unwrap();
        let side = (packet.bth.pair & 1) as usize;
        match packet.bth.opcode {
            opcode::SEND_ONLY => match Iu::parse(packet.payload).expect("an information unit") {
                Iu::LoginReq(_) | Iu::LoginRsp { .. } => logins += 1,
                Iu::Cmd(_) => commands += 1,
                Iu::Rsp(_) => responses += 1,
                other => panic!("{other:?}"),
            },
            opcode::WRITE_FIRST => assert_eq!(packet.extended.reth.map(|reth| reth.2), Some(10_240)),
            opcode::READ => read += packet.extended.reth.map_or(0, |reth| u64::from(reth.2)),
            _ => {}
        }
        if (opcode::WRITE_FIRST..=opcode::WRITE_ONLY).contains(&packet.bth.opcode) {
            written += packet.payload.len() as u64;
        }
        // Numbers of requests have no gap.
        if packet.bth.opcode <= opcode::WRITE_ONLY {
            let before = last[side].replace(packet.bth.psn);
            assert!(before.is_none_or(|before| packet.bth.psn > before), "{before:?}, then {}", packet.bth.psn);
        }
    }
    let channel = &results.srp_channels[0];
    assert_eq!((logins, commands), (2, channel.requests));
    // Responses in flight at the end have left the array and have not arrived at the host.
    assert!(responses >= channel.responses && responses - channel.responses < 5, "{responses}: {channel:?}");
    assert!(written <= channel.rdma_written_bytes && written > 0, "{written}: {channel:?}");
    assert_eq!(read, channel.rdma_read_bytes, "{channel:?}");
}

/// Damaged packets have a wrong checksum, and repeated ones come again.
#[test]
fn damaged_packets_do_not_pass_the_check_of_their_bytes() {
    let fault = r#"
[[fault]]
at = "0s"
kind = "crc-errors"
link = "server-ib"
probability = 0.01
"#;
    let (file, results) = capture(&format!("{LAB}{fault}"), 0, Window { from_ps: Some(0), until_ps: None });
    let bad = packets(&file).into_iter().filter(|bytes| Packet::parse(bytes).is_err()).count() as u64;
    // The switch forwards by cut-through, so the other end of the path discards them.
    let ways = results.infiniband_links.iter().flat_map(|link| [&link.forward, &link.backward]);
    let lost: u64 = ways.map(|way| way.packets_lost).sum();
    assert!(bad > 0 && bad.abs_diff(lost) <= 1, "{bad} are damaged, {lost} were lost");
}

/// A capture changes no result.
#[test]
fn a_capture_changes_nothing() {
    let (_, watched) = capture(LAB, 0, Window::default());
    let mut plain = labs::run(&labs::lab(LAB));
    plain.engine = watched.engine;
    assert_eq!(format!("{plain:?}"), format!("{watched:?}"));
}
