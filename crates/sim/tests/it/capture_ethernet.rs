//! Captures of Ethernet links, checked independently by Wireshark's dissectors.

use crate::captured::{self, Plane};
use crate::labs::{self, planes};
use sanloom_api::results::Results;
use sanloom_sim::capture::Window;
use sanloom_test_support::{needs, tshark};

/// Wireshark 4.0 knows header digests only.
const LAB: &str = planes::DIGESTS;

fn capture(text: &str, link: u16, window: Window) -> (Vec<u8>, Results) {
    captured::capture(&labs::lab(text), &Plane::Ethernet, link, window)
}

/// Returns the chosen fields of each frame. Checksums are judged.
fn fields(file: &[u8], fields: &[&str]) -> Vec<Vec<String>> {
    let checks = ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE", "tcp.reassemble_out_of_order:TRUE"];
    let mut arguments: Vec<&str> = checks.into_iter().flat_map(|check| ["-o", check]).collect();
    arguments.extend(["-T", "fields"]);
    fields.iter().for_each(|field| arguments.extend(["-e", *field]));
    let text = tshark::read_bytes(file, &arguments);
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Every frame is dissected, its checksums are right, and no segment comes out of turn.
#[needs("tshark")]
#[test]
fn every_frame_is_well_formed_and_its_checksums_are_right() {
    let (file, _) = capture(LAB, 0, Window::default());
    let rows = fields(&file, &["_ws.malformed", "ip.checksum.status", "tcp.checksum.status", "tcp.analysis.flags"]);
    assert!(rows.len() > 1_000, "{}", rows.len());
    for (number, row) in rows.iter().enumerate() {
        let is_pause = row[1].is_empty();
        let right = if is_pause { ["", "", "", ""] } else { ["", "1", "1", ""] };
        assert!(*row == right || row[3].starts_with("1"), "frame {}: {row:?}", number + 1);
        assert_eq!(row[..3], right[..3], "frame {}", number + 1);
    }
}

/// Frames and bytes of the link, its pauses, and PDUs of the session are those of the results.
#[needs("tshark")]
#[test]
fn frames_and_pdus_are_those_of_the_results() {
    let (file, results) = capture(LAB, 1, Window { from_ps: Some(0), until_ps: None });
    let link = &results.ethernet_links[1];
    let rows = fields(&file, &["eth.type", "frame.len", "vlan.id", "vlan.priority"]);
    let is_pause = |row: &&Vec<String>| row[0] == "0x8808";
    let pauses = rows.iter().filter(is_pause).count() as u64;
    assert_eq!(pauses, link.forward.pauses + link.backward.pauses);
    assert!(pauses > 0, "{link:?}");
    let frames: Vec<_> = rows.iter().filter(|row| !is_pause(row)).collect();
    assert_eq!(frames.len() as u64, link.forward.frames + link.backward.frames);
    let bytes: u64 = frames.iter().map(|row| row[1].parse::<u64>().unwrap() + 4).sum();
    assert_eq!(bytes, link.forward.bytes + link.backward.bytes);
    assert!(frames.iter().all(|row| row[2] == "100" && row[3] == "3"), "{:?}", frames.first());
}

/// The login, commands, data and responses of a whole session.
#[needs("tshark")]
#[test]
fn the_pdus_of_a_session_are_those_that_were_sent() {
    let (file, results) = capture(LAB, 0, Window::default());
    let rows = fields(&file, &["iscsi.opcode"]);
    let opcodes: Vec<u8> = (rows.iter().flat_map(|row| row[0].split(',')))
        .filter(|text| !text.is_empty())
        .map(|text| u8::from_str_radix(text.trim_start_matches("0x"), 16).unwrap())
        .collect();
    let count = |opcode: u8| opcodes.iter().filter(|other| **other == opcode).count() as u64;
    assert!(count(0x03) > 0 && count(0x03) == count(0x23), "logins: {opcodes:?}");
    let session = &results.iscsi_sessions[0];
    assert!(session.r2ts > 0 && count(0x31).abs_diff(session.r2ts) <= 4, "{} of {session:?}", count(0x31));
    // PDUs in flight at the end are complete in one place only.
    let from_host = count(0x01) + count(0x05) + count(0x03);
    assert!(from_host.abs_diff(session.pdus_sent + count(0x03)) <= 8, "{from_host}: {session:?}");
    assert!(count(0x25) > 0 && count(0x21) > 0, "{opcodes:?}");
}

/// A lost segment is seen again.
#[needs("tshark")]
#[test]
fn a_retransmission_is_seen_as_one() {
    let fault = "[[fault]]\nkind = \"frame-loss\"\nlink = \"array-tor\"\nprobability = 0.002\n";
    let (file, results) = capture(&format!("{LAB}{fault}"), 0, Window::default());
    let again = fields(&file, &["tcp.analysis.retransmission", "tcp.analysis.out_of_order"]);
    let again = again.iter().filter(|row| row.iter().any(|field| !field.is_empty())).count();
    let session = &results.iscsi_sessions[0];
    assert!(session.segments_retransmitted > 3 && again > 3, "{again}: {session:?}");
    let malformed = fields(&file, &["_ws.malformed", "tcp.checksum.status"]);
    let wrong = malformed.iter().position(|row| !row[0].is_empty() || !["", "1"].contains(&&*row[1]));
    assert!(wrong.is_none(), "{wrong:?} {:?}", wrong.map(|number| &malformed[number]));
}

#[test]
fn a_capture_changes_no_result() {
    let (_, watched) = capture(LAB, 0, Window::default());
    let plain = labs::run(&labs::lab(LAB));
    let text = |results: &Results| {
        let mut results = results.clone();
        results.engine = Default::default();
        serde_json::to_string(&results).expect("JSON")
    };
    assert!(text(&watched) == text(&plain));
}

/// A pause of a whole link has its own opcode and one time, and goes to the address of MAC control.
#[needs("tshark")]
#[test]
fn pauses_of_a_link_are_dissected_as_such() {
    let text = planes::PFC.replace("pfc = 3\n", "pause = true\n");
    let (file, results) = capture(&text, 1, Window { from_ps: Some(0), until_ps: None });
    let link = &results.ethernet_links[1];
    let rows = fields(&file, &["eth.dst", "eth.type", "macc.opcode", "macc.pause_time", "_ws.malformed"]);
    let pauses: Vec<&Vec<String>> = rows.iter().filter(|row| row[1] == "0x8808").collect();
    assert_eq!(pauses.len() as u64, link.forward.pauses + link.backward.pauses);
    let of = |time: &str| {
        let row = ["01:80:c2:00:00:01", "0x8808", "0x0001", time, ""];
        pauses.iter().filter(|pause| ***pause == row).count()
    };
    let (stops, resumes) = (of("65535"), of("0"));
    assert!(stops > 0 && resumes > 0 && stops + resumes == pauses.len(), "{stops} {resumes} {pauses:?}");
    // The array has stopped, whatever its priority; the host never sends as much.
    assert!(link.forward.paused_s.keys().eq(["link"]) && link.forward.paused_s["link"] > 0.001, "{link:?}");
    assert!(results.ethernet_switches[0].frames_dropped == 0 && link.backward.headroom_max_bytes == 0, "{results:?}");
}
