//! Captures checked independently by Wireshark's dissectors.

use crate::labs::{FABRIC, check, lab_with, link, watched};
use sanloom_fc::san::Lab;
use sanloom_sim::capture::{Capture, Window};
use sanloom_test_support::{needs, tshark};
use std::sync::Arc;

/// Writes of several bursts, and the login frames of the whole session.
const BURSTS: &[&str] = &[
    "run.duration=6ms",
    "run.warmup=0s",
    "workload.mixed.size=24KiB",
    "workload.mixed.depth=2",
    "storage.*.max_burst=8KiB",
    "host.server1.receive_size=1024B",
    "host.server2.receive_size=2112B",
];

const FAULTS: &str = r#"
[[fault]]
at = "1ms"
until = "4ms"
kind = "frame-loss"
link = "ISL"
probability = 0.01
[[fault]]
at = "1ms"
until = "4ms"
kind = "crc-errors"
link = "server1-edge1"
probability = 0.02
"#;

/// Returns a capture of the named links of a lab, or of all links if there are no names.
fn capture(lab: &Arc<Lab>, names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut links: Vec<u16> = names.iter().map(|name| link(lab, name)).collect();
    if names.is_empty() {
        links.extend(0..lab.links.len() as u16);
    }
    let mut capture = Capture::new(lab, &links, &mut out);
    let finished = watched(lab, &mut |world, observed| capture.add(world, observed, &mut out));
    check(&finished);
    capture.finish(&mut out);
    out
}

/// Checks a capture of one link with tshark's default options.
#[needs("tshark")]
#[test]
fn every_link_of_a_session_with_losses_is_well_formed_by_default() {
    let lab = lab_with(FABRIC, FAULTS, BURSTS);
    let tshark = Tshark { options: &[] };
    for name in ["server1-edge1", "server2-edge1", "ISL", "disk1-edge2"] {
        let file = capture(&lab, &[name]);
        let rows = tshark.fields(
            &file,
            &[
                "_ws.malformed",
                "fc.crc.status",
                "frame.packet_flags",
                "fc.reassembled",
                "frame.len",
                "fc.type",
                "fc.s_id",
            ],
        );
        assert!(rows.len() > 100);
        for row in &rows {
            let c: Vec<&str> = row.split('\t').collect();
            let flagged = c[2].ends_with("1000001") || c[2].ends_with("1000002");
            let excused = name == "ISL" && is_unreadable(c[5], c[6], c[4]);
            assert_eq!((excused || c[0].is_empty(), c[1] == "0"), (true, flagged), "{name}: {row}");
        }
        assert!(
            rows.iter().any(|row| row.split('\t').nth(3) == Some("1")),
            "{name}: tshark has put sequences together"
        );
        if name.starts_with("server") {
            assert_well_formed(&tshark, &file);
        }
    }
}

#[needs("tshark")]
#[test]
fn a_healthy_session_is_well_formed_and_every_crc_is_good() {
    let file = capture(&lab_with(FABRIC, "", BURSTS), &[]);
    let tshark = Tshark::of_several_links();
    assert_well_formed(&tshark, &file);
    let crcs = tshark.fields(&file, &["fc.crc.status"]);
    assert!(crcs.len() > 1_000);
    assert!(crcs.iter().all(|crc| crc == "1"), "{:?}", crcs.iter().position(|crc| crc != "1"));
}

#[needs("tshark")]
#[test]
fn a_session_with_losses_is_well_formed_and_only_the_broken_crcs_are_bad() {
    let file = capture(&lab_with(FABRIC, FAULTS, BURSTS), &[]);
    let tshark = Tshark::of_several_links();
    assert_well_formed(&tshark, &file);
    let rows = tshark.fields(&file, &["fc.crc.status", "frame.packet_flags", "frame.interface_name"]);
    let mut broken = 0;
    for row in &rows {
        let columns: Vec<&str> = row.split('\t').collect();
        let flagged = columns[1].ends_with("1000001") || columns[1].ends_with("1000002");
        assert_eq!(columns[0] == "0", flagged, "{row}");
        broken += u32::from(flagged);
        if flagged {
            // Only frames of server1 are broken. The ISL and the links of other servers carry them
            // only after cut-through forwarding.
            assert!(!columns[2].starts_with("server2"), "{row}");
        }
    }
    assert!(broken > 0);
}

/// Returns a lab whose ISL carries zones when it comes up, and again after a change.
fn zoned(config: &str, zone: &str, default: &str) -> String {
    format!(
        r#"
[zoning]
default = "{default}"
effective = "{config}"
[[zone_config]]
name = "{config}"
zones = ["{zone}"]
[[zone]]
name = "{zone}"
members = ["server{{1..4}}", "disk{{1..2}}"]
[[change]]
at = "1ms"
switch = "edge1"
action = "create"
zone = "{zone}{zone}"
members = ["server1", "disk1"]
"#
    )
}

/// MR and SFC carry zone names, which are padded to whole words.
#[needs("tshark")]
#[test]
fn zones_on_an_isl_are_well_formed_but_for_names_that_need_padding() {
    let tshark = Tshark::of_several_links();
    for (name, zones, readable) in [
        ("zones-whole", zoned("conf", "pair", "closed"), true),
        ("zones-padded", zoned("config", "first", "closed"), false),
        ("zones-open", zoned("conf", "pair", "open"), false),
    ] {
        let file = capture(&lab_with(FABRIC, &zones, BURSTS), &["ISL"]);
        let with_names = tshark.fields(&file, &["swils.opcode", "_ws.malformed"]);
        for opcode in ["0x22", "0x25"] {
            let found: Vec<&String> = with_names.iter().filter(|row| row.starts_with(opcode)).collect();
            assert!(!found.is_empty(), "{name}: no frame {opcode}");
            assert_eq!(found.iter().all(|row| !row.contains("Malformed")), readable, "{name}: {found:?}");
        }
        let filter = if readable { READABLE.to_owned() } else { format!("{READABLE} && {WITHOUT_NAMES}") };
        assert_none_bad(&tshark.read(&file, &["-V", "-Y", &filter]));
    }
}

/// Matches frames to commands by address and exchange. Wireshark 4.0 has fields for this
/// (`fcp.request_in`, `fcp.time`), but on native Fibre Channel they stay empty. It finds no command
/// for other frames, shows their LUN as FFFF, and starts `fc.time` at the first of them. The result
/// is the same with RX_ID FFFF or equal to OX_ID, with any LUN, without the logins, and even if all
/// frames of the exchange have the same S_ID.
#[needs("tshark")]
#[test]
fn every_response_ends_a_command_and_every_exchange_moves_its_data() {
    let file = capture(&lab_with(FABRIC, "", BURSTS), &["server3-edge1"]);
    let tshark = Tshark { options: &[] };
    let fields =
        ["fc.r_ctl", "fc.s_id", "fc.d_id", "fc.ox_id", "frame.len", "fcp.dl", "fcp.status", "fcp.burstlen", "fc.type"];
    let mut open = std::collections::BTreeMap::new();
    let mut responses = 0;
    for row in tshark.fields(&file, &fields) {
        let c: Vec<&str> = row.split('\t').collect();
        if c[8] != "0x08" {
            continue;
        }
        let (there, back) = ((c[1], c[2], c[3]), (c[2], c[1], c[3]));
        let key = |(a, b, x): (&str, &str, &str)| format!("{a} {b} {x}");
        match c[0] {
            "0x06" => {
                let expected: u64 = c[5].parse().unwrap();
                assert_eq!(open.insert(key(there), (expected, 0, 0)), None, "{row}");
            }
            "0x01" => {
                let name = if open.contains_key(&key(there)) { key(there) } else { key(back) };
                let entry = open.get_mut(&name).unwrap_or_else(|| panic!("data of no command: {row}"));
                entry.1 += c[4].parse::<u64>().unwrap() - 36;
            }
            "0x05" => {
                let entry = open.get_mut(&key(back)).unwrap_or_else(|| panic!("XFER_RDY of no command: {row}"));
                assert_eq!(entry.1, entry.2, "the burst before is complete: {row}");
                entry.2 += c[7].parse::<u64>().unwrap();
            }
            "0x07" => {
                let entry = open.remove(&key(back)).unwrap_or_else(|| panic!("response to no command: {row}"));
                assert_eq!((entry.0, c[6]), (entry.1, "0x00"), "{row}");
                responses += 1;
            }
            other => panic!("R_CTL {other}: {row}"),
        }
    }
    assert!(responses > 10);
}

/// The labs of the GUPFS report whose switches do not join: the offending message of one end, and
/// the reject by the other.
#[needs("tshark")]
#[test]
fn the_reason_of_an_isolated_link_is_on_the_wire() {
    let tshark = Tshark { options: &[] };
    // ELP starts at byte 28 of the frame, after SOF and header. Wireshark reads its fields four
    // bytes late.
    let elp_of_vendor = "frame[28:1] == 10 && frame.len == 140 && frame[108:2] == 00:01";
    let merge_request = "swils.opcode == 0x22 && swils.mr.activezonesetname == \"all-zones\"";
    for (example, request, answer) in [
        ("vendor-flow-control", elp_of_vendor, ("0x03", "0x04")),
        ("vendor-no-zoning", merge_request, ("0x0b", "0x2c")),
    ] {
        let path = format!("{}/../../examples/{example}.toml", env!("CARGO_MANIFEST_DIR"));
        let lab = lab_with(&std::fs::read_to_string(path).unwrap(), "", &["run.duration=60ms"]);
        let file = capture(&lab, &["ISL1"]);
        let read = |filter: &str, fields: &[&str]| {
            let fields = fields.iter().flat_map(|field| ["-e", *field]);
            let arguments: Vec<&str> = ["-Y", filter, "-T", "fields"].into_iter().chain(fields).collect();
            let text = tshark.read(&file, &arguments);
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let ox_ids = read(request, &["fc.ox_id"]);
        assert!(!ox_ids.is_empty(), "{example}: the request is missing");
        let rejects = read("swils.opcode == 0x01", &["fc.ox_id", "swils.rjt.reason", "swils.rjt.reasonexpl"]);
        let (reason, explanation) = answer;
        let expected: Vec<String> = ox_ids.iter().map(|ox_id| format!("{ox_id}\t{reason}\t{explanation}")).collect();
        assert!(rejects.iter().any(|row| expected.contains(row)), "{example}: {rejects:?}");
    }
}

#[needs("tshark")]
#[test]
fn frames_are_in_the_order_of_time() {
    let file = capture(&lab_with(FABRIC, FAULTS, BURSTS), &[]);
    let tshark = Tshark::of_several_links();
    let times = tshark.fields(&file, &["frame.time_delta"]);
    assert!(times.iter().all(|delta| !delta.starts_with('-')));
}

#[needs("tshark")]
#[test]
fn offsets_follow_each_other_over_all_bursts() {
    let file = capture(&lab_with(FABRIC, "", BURSTS), &[]);
    let tshark = Tshark::of_several_links();
    let filter = "fc.r_ctl == 0x01 && frame.interface_name matches \"^server\"";
    let rows = tshark.read(
        &file,
        &[
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "frame.interface_name",
            "-e",
            "frame.packet_flags",
            "-e",
            "fc.ox_id",
            "-e",
            "fc.rx_id",
            "-e",
            "fc.relative_offset",
            "-e",
            "frame.len",
            "-e",
            "fc.sof",
            "-e",
            "fc.eof",
            "-e",
            "fc.fctl.last_data_frame",
            "-e",
            "fc.seq_cnt",
        ],
    );
    let mut next = std::collections::BTreeMap::new();
    let mut bursts = 0;
    for row in rows.lines() {
        let c: Vec<&str> = row.split('\t').collect();
        let key = (c[0].to_owned(), c[1].to_owned(), c[2].to_owned());
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap_or(u64::MAX),
            None => text.parse().unwrap_or(u64::MAX),
        };
        let (offset, len) = (number(c[4]), number(c[5]) - 36);
        let expected = next.get(&key).copied().unwrap_or(0);
        assert!(offset == 0 || offset == expected, "{row}: expected {expected}");
        bursts += u32::from(offset > 0 && c[1].ends_with('2') && offset % 8192 == 0);
        next.insert(key, offset + len);
    }
    assert!(bursts > 4, "writes of several bursts are in the capture");
}

#[test]
fn the_same_lab_gives_the_same_bytes() {
    let lab = lab_with(FABRIC, FAULTS, BURSTS);
    let file = capture(&lab, &[]);
    assert!(file.len() > 1_000_000);
    assert!(file == capture(&lab, &[]), "two captures of the same lab differ");
    let other = lab_with(FABRIC, FAULTS, &[BURSTS, &["run.seed=2"]].concat());
    assert!(file != capture(&other, &[]), "the seed has no effect");
}

#[test]
fn parts_of_a_run_make_up_the_whole() {
    let lab = lab_with(FABRIC, "", BURSTS);
    let part = |from_ms: Option<u64>, until_ms: Option<u64>| {
        let [from_ps, until_ps] = [from_ms, until_ms].map(|ms| ms.map(|ms| ms * 1_000_000_000));
        let (mut head, mut out) = (Vec::new(), Vec::new());
        let mut capture = Capture::new(&lab, &[0, 1], &mut head).within(Window { from_ps, until_ps });
        watched(&lab, &mut |world, observed| capture.add(world, observed, &mut out));
        capture.finish(&mut out);
        out
    };
    let parts = [part(None, Some(0)), part(Some(0), Some(2)), part(Some(2), Some(3)), part(Some(3), None)];
    assert!(parts.iter().all(|part| part.len() > 1_000), "{:?}", parts.each_ref().map(Vec::len));
    assert!(parts.concat() == part(None, None));
    assert!(part(Some(7), None).is_empty(), "nothing comes after the end");
}

#[test]
fn repeated_and_unknown_links_are_ignored() {
    let lab = lab_with(FABRIC, "", BURSTS);
    let (mut once, mut often) = (Vec::new(), Vec::new());
    Capture::new(&lab, &[0], &mut once).finish(&mut once);
    Capture::new(&lab, &[0, 0, 999], &mut often).finish(&mut often);
    assert_eq!(once, often);
}

/// Excludes frames that Wireshark 4.0 misreads. It reads every field of ELP four bytes late and
/// past its end. It also does not reassemble the frames of a response between domain controllers
/// (class F).
const READABLE: &str = "!(fc.type == 0x22 && frame.len == 140) && !(fc.type == 0x20 && fc.s_id contains ff:fc)";

/// Excludes MR and SFC, because Wireshark does not skip the padding after the name of a zone or
/// configuration. If the length of a name is not a multiple of four bytes, it misreads the rest.
/// `$default_zone_open`, which means that the default zone is open, is such a name.
const WITHOUT_NAMES: &str = "!(swils.opcode == 0x22 || swils.opcode == 0x25)";

/// Returns whether [`READABLE`] excludes the frame.
fn is_unreadable(fc_type: &str, s_id: &str, bytes: &str) -> bool {
    (fc_type == "0x22" && bytes == "140") || (fc_type == "0x20" && s_id.starts_with("ff.fc."))
}

fn assert_well_formed(tshark: &Tshark, file: &[u8]) {
    let text = tshark.read(file, &["-V", "-Y", READABLE]);
    assert_none_bad(&text);
    for expected in ["FLOGI", "PLOGI", "PRLI", "GID_FF", "Read(10)", "Write(10)", "XFER_RDY"] {
        assert!(text.contains(expected), "no {expected}");
    }
}

fn assert_none_bad(text: &str) {
    for bad in ["Malformed", "Dissector bug", "[incorrect"] {
        let at = text.find(bad).unwrap_or(0);
        assert!(!text.contains(bad), "{bad:?} in\n{}", &text[at.saturating_sub(3000)..(at + 500).min(text.len())]);
    }
}

struct Tshark {
    options: &'static [&'static str],
}

impl Tshark {
    /// For captures of several links, which contain every frame several times. When Wireshark 4.0
    /// reassembles sequences, it treats the second copy as another frame of the same sequence, and
    /// assumes 1,024 bytes for all frames.
    fn of_several_links() -> Tshark {
        Tshark { options: &["-o", "fc.reassemble:FALSE"] }
    }

    fn fields(&self, file: &[u8], fields: &[&str]) -> Vec<String> {
        let mut arguments = vec!["-T", "fields"];
        for field in fields {
            arguments.extend(["-e", *field]);
        }
        self.read(file, &arguments).lines().map(str::to_owned).collect()
    }

    fn read(&self, file: &[u8], arguments: &[&str]) -> String {
        tshark::read_bytes(file, &[self.options, arguments].concat())
    }
}
