//! Timelines and captures of links of arbitrated loops.

use crate::labs::{check, lab, link, run, watched};
use sanloom_fc::san::Lab;
use sanloom_sim::capture::Capture;
use sanloom_sim::trace::Trace;
use sanloom_test_support::{needs, tshark};
use std::sync::Arc;

/// A host that reads 512 bytes at a time from a disk on a loop at 2 Gb/s, with 10 m of cable for
/// each port.
fn reads(more: &str) -> Arc<Lab> {
    lab(&format!(
        "[run]\nduration = \"40us\"\nwarmup = \"0s\"\n[loop.ring]\n{more}\n[host.server]\n[storage.disk]\n\
         rate = \"1G/s\"\n[[link]]\nfrom = \"{{server,disk}}\"\nto = \"ring\"\nrate = \"2GFC\"\nlength = \"5m\"\n\
         [workload.io]\nhosts = \"server\"\ntargets = \"disk\"\nsize = \"512B\"\ndepth = 1\n"
    ))
}

/// A public loop of two disks behind a switch. One of them is pulled and plugged in again.
const PUBLIC: &str = r#"
[run]
duration = "200ms"
warmup = "0s"
[switch.edge]
[loop.ring]
[host.server]
[storage."disk{1..2}"]
rate = "1k/s"
[[link]]
from = "server"
to = "edge"
rate = "2GFC"
[[link]]
from = "{edge,disk1,disk2}"
to = "ring"
rate = "2GFC"
[workload.io]
hosts = "server"
targets = "disk{1..2}"
size = "4KiB"
depth = 1
[[fault]]
at = "50ms"
until = "100ms"
kind = "link-down"
link = "disk2-ring"
"#;

fn trace(lab: &Arc<Lab>, name: &str) -> String {
    let mut out = String::new();
    let mut trace = Trace::new(lab, link(lab, name), &mut out);
    watched(lab, &mut |world, observed| trace.add(world, observed, &mut out));
    trace.finish(&mut out);
    out
}

fn capture(lab: &Arc<Lab>) -> Vec<u8> {
    let mut out = Vec::new();
    let links: Vec<u16> = (0..lab.links.len() as u16).collect();
    let mut capture = Capture::new(lab, &links, &mut out);
    check(&watched(lab, &mut |world, observed| capture.add(world, observed, &mut out)));
    capture.finish(&mut out);
    out
}

#[test]
fn the_timeline_of_a_loop_shows_that_a_tenancy_costs_three_rounds_and_four_words() {
    let text = trace(&reads(""), "server-ring");
    // By hand: L = 6 words of delay and 20 m of cable, 100 ns or 5.3125 words of 18.8235 ns.
    let header = "# w = a word = 18.82 ns; L = a round without the delay of the owner = 11.31 w 212.94 ns\n\
                  # a tenancy without its frames = 3 L + 4 w = 37.94 w 714.12 ns\n";
    assert!(text.contains(header), "{text}");
    // ARB takes L + w, OPN up to the first frame L + 2 w, CLS L + w. The command has 17 words, and
    // 6 fill words follow it.
    let command = "tenancy of server:0 with disk:0: ARB 12.31 w, OPN 13.31 w, frames 23.00 w, CLS 12.31 w; \
                   without frames 37.94 w 714.12 ns";
    assert!(text.contains(command), "{text}");
    assert!(!text.contains("IDLE x") && !text.contains("credits"), "{text}");
    let from = text.find("FCP_CMND").expect("a command");
    let from = text[..from].rfind("ARB(01)").expect("the arbitration");
    let first_read: Vec<&str> = text[text[..from].rfind('\n').unwrap_or(0) + 1..].lines().take(24).collect();
    insta::assert_snapshot!(first_read.join("\n"));
}

#[test]
fn with_login_credit_the_first_frame_follows_opn_at_once() {
    let text = trace(&reads("login_credit = 2"), "server-ring");
    assert!(text.contains("# a tenancy without its frames = 2 L + 3 w = 25.62 w"), "{text}");
    assert!(text.contains(": ARB 12.31 w, OPN 1.00 w, frames 23.00 w, CLS 12.31 w; without frames 25.6"), "{text}");
}

#[test]
fn the_timeline_of_the_other_end_shows_its_words_and_the_same_times() {
    let text = trace(&reads(""), "disk-ring");
    // Data of 143 words and a response of 21, both with their fill words.
    assert!(text.contains("frames 164.00 w"), "{text}");
    let received = text.lines().find(|line| line.contains("FCP_CMND")).expect("a command");
    assert!(received.contains("< ring:1"), "{received}");
}

#[test]
fn lines_of_a_loop_are_in_the_order_of_time() {
    for name in ["edge-ring", "disk1-ring", "disk2-ring"] {
        let text = trace(&lab(PUBLIC), name);
        let mut last = 0.0;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let time: f64 = line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a time");
            assert!(time >= last, "{name}: {line}");
            last = time;
        }
        assert!(text.contains(" OPN(") && text.contains(" LIP(") && text.contains(" LILP "), "{name}");
    }
}

#[test]
fn watching_a_loop_changes_no_result() {
    let lab = lab(PUBLIC);
    let seen = watched(&lab, &mut |_, _| {}).results;
    assert_eq!(run(&lab).reproducible_json(), seen.reproducible_json());
}

#[test]
fn a_capture_has_the_frames_of_the_initialisation_byte_by_byte() {
    let lab = reads("");
    let bytes = capture(&lab);
    let name = lab.hosts[0].hbas[0].wwpn.0.to_be_bytes();
    let count = |wanted: &[u8]| bytes.windows(wanted.len()).filter(|window| *window == wanted).count();
    // SOFi3; R_CTL, D_ID, CS_CTL, S_ID, TYPE, F_CTL, SEQ_ID to RX_ID, parameter (FC-AL-2).
    let begin = [
        &[0xbc, 0xb5, 0x56, 0x56][..],
        &[0x22, 0, 0, 0xef, 0, 0, 0, 0xef, 0x01, 0x38, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
    ]
    .concat();
    // Each of two ports sends each frame once, and both ends of the loop see it.
    assert_eq!(count(&begin), 7 * 2 * 2);
    let with = |payload: &[u8]| count(&[&begin[..], payload].concat());
    assert_eq!(with(&[&[0x11, 1, 0, 0][..], &name].concat()), 4, "LISM of the lower name");
    // AL_PA 01 and 02 are the third and the fourth bit of the map. The second port takes its own.
    let map = |bits: u8| [&[0x11, 5, 1, 0, bits][..], &[0; 15]].concat();
    assert_eq!((with(&map(0x20)), with(&map(0x30))), (2, 2), "LISA");
    let positions = |code: u8, count: u8, second: u8| [0x11, code, 0, 0, count, 0x01, second, 0xff];
    assert_eq!((with(&positions(6, 1, 0xff)), with(&positions(6, 2, 2)), with(&positions(7, 2, 2))), (2, 2, 4));
}

#[needs("tshark")]
#[test]
fn wireshark_reads_a_capture_of_a_public_loop_without_a_malformed_frame() {
    let bytes = capture(&lab(PUBLIC));
    // Several links have the same frames, which Wireshark would put together twice.
    let fields =
        ["_ws.malformed", "fc.crc.status", "fc.r_ctl", "fc.type", "fc.s_id", "frame.len", "frame.time_relative"];
    let mut arguments = vec!["-o", "fc.reassemble:FALSE", "-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", *field]));
    let text = tshark::read_bytes(&bytes, &arguments);
    let (mut lengths, mut last) = (Vec::new(), 0.0);
    for row in text.lines() {
        let columns: Vec<&str> = row.split('\t').collect();
        assert_eq!((columns[0], columns[1]), ("", "1"), "{row}");
        let time: f64 = columns[6].parse().expect("a time");
        assert!(time >= last, "{row}");
        last = time;
        if (columns[2], columns[4]) == ("0x22", "00.00.00") && columns[5] != "152" {
            lengths.push(columns[5].parse::<u32>().expect("a length"));
        }
    }
    // Header, CRC and delimiters are 36 bytes. Three ports initialise the loop, then two, then
    // three.
    let of = |len: u32| lengths.iter().filter(|other| **other == 36 + len).count();
    let all = 2 * (3 + 2 + 3);
    assert_eq!((of(12), of(20), of(132)), (all, 4 * all, 2 * all));
}
