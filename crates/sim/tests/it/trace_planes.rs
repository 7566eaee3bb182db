//! The text timelines of links of Ethernet and InfiniBand.

use crate::captured::{self, Plane, Written};
use crate::labs;
use crate::labs::planes::{FCOE, ISCSI, PFC, SRP};
use sanloom_api::results::Results;
use sanloom_fc::san::Lab;
use sanloom_sim::parallel::Threads;
use sanloom_test_support::{needs, tshark};
use std::collections::BTreeMap;
use std::sync::Arc;

fn run(lab: &Arc<Lab>, plane: &Plane, link: &str) -> Written {
    let number = match plane {
        Plane::Ethernet => lab.ethernet_links.iter().position(|own| own.name == link),
        Plane::Infiniband => lab.infiniband.links.iter().position(|own| own.name == link),
    };
    captured::written(lab, plane, number.expect(link) as u16, Threads::default())
}

fn ethernet(text: &str, link: &str) -> Written {
    run(&labs::lab(text), &Plane::Ethernet, link)
}

fn infiniband(text: &str, link: &str) -> Written {
    run(&labs::lab(text), &Plane::Infiniband, link)
}

/// The lines up to the first one that contains a text, with it and the answers behind it.
fn until<'t>(text: &'t str, what: &str, more: usize) -> String {
    let lines: Vec<&'t str> = text.lines().collect();
    let end = lines.iter().position(|line| line.contains(what)).unwrap_or_else(|| panic!("no {what} in\n{text}"));
    lines[..(end + 1 + more).min(lines.len())].join("\n")
}

#[test]
fn an_iscsi_login_and_the_first_read() {
    insta::assert_snapshot!(until(&ethernet(ISCSI, "server-tor").timeline, "SCSI Data-In", 3));
}

#[test]
fn fip_logins_and_the_first_read_of_fcoe() {
    insta::assert_snapshot!(until(&ethernet(FCOE, "server-tor").timeline, "FCP_RSP", 0));
}

#[test]
fn an_srp_login_and_the_first_read() {
    insta::assert_snapshot!(until(&infiniband(SRP, "server-ib").timeline, "SRP_RSP", 4));
}

/// A line of a timeline that begins at a time.
struct Line<'t> {
    at_ns: &'t str,
    forward: bool,
    text: &'t str,
}

fn lines(timeline: &str) -> Vec<Line<'_>> {
    let lines = timeline.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (at_ns, rest) = line.trim_start().split_once(' ').expect(line);
        let (arrow, rest) = rest.split_once(' ').expect(line);
        let (_, text) = rest.split_once(' ').expect(line);
        Line { at_ns, forward: arrow == ">", text: text.trim_start() }
    });
    parsed.collect()
}

impl Line<'_> {
    /// Lines of frames and packets have a length, and the time of the last bit.
    fn is_sent(&self) -> bool {
        self.text.contains(" B  ") && self.text.contains("  until ")
    }

    fn ns(text: &str) -> f64 {
        text.parse().unwrap_or_else(|_| panic!("{text} is a time"))
    }

    fn start_ns(&self) -> f64 {
        Line::ns(self.at_ns)
    }

    fn end_ns(&self) -> f64 {
        let end = self.text.split("  until ").nth(1).and_then(|rest| rest.split_whitespace().next());
        Line::ns(end.unwrap_or_else(|| panic!("{}", self.text)))
    }

    fn bytes(&self) -> u64 {
        let before = self.text.split(" B  ").next().unwrap_or_default();
        let number = before.split_whitespace().next_back().unwrap_or_default();
        number.parse().unwrap_or_else(|_| panic!("{}", self.text))
    }

    /// The word behind another word.
    fn after(&self, word: &str) -> Option<&str> {
        let mut words = self.text.split_whitespace();
        words.find(|other| *other == word)?;
        words.next()
    }
}

/// The pause at the first congestion, and what the sender does.
#[test]
fn a_pfc_pause_stops_the_sender_and_a_resume_starts_it() {
    let timeline = ethernet(PFC, "array-tor").timeline;
    let all: Vec<&str> = timeline.lines().collect();
    let from = all.iter().position(|line| line.contains("PFC pause")).expect("a pause");
    let to = from + all[from..].iter().position(|line| line.contains("resumed")).expect("the end of the pause");
    assert!(to - from < 200, "{} lines", to - from);
    insta::assert_snapshot!(all[from - 3..(to + 3).min(all.len())].join("\n"));
    // Between the reaction to a pause and its end, no frame of the priority begins.
    let (mut stopped, mut pauses) = ([None; 2], 0);
    for line in lines(&timeline) {
        let stop = &mut stopped[usize::from(line.forward)];
        if line.text.starts_with("priority 3 stopped") {
            *stop = Some((Line::ns(line.after("from").unwrap()), line.end_of_pause()));
            pauses += 1;
        } else if line.text == "priority 3 resumed" {
            *stop = None;
        } else if line.is_sent()
            && line.text.contains("priority 3 VLAN")
            && let Some((from, until)) = *stop
        {
            let at = line.start_ns();
            assert!(at < from || at >= until, "{}: stopped from {from} until {until}", line.text);
        }
    }
    assert!(pauses > 1, "{pauses}");
}

impl Line<'_> {
    fn end_of_pause(&self) -> f64 {
        Line::ns(self.after("until").unwrap())
    }
}

/// Frames of both directions neither overlap nor come closer than the gap of 12 bytes.
#[test]
fn frames_of_one_direction_do_not_overlap() {
    for (timeline, gap_ns) in
        [(ethernet(PFC, "server-tor").timeline, 96.0), (infiniband(SRP, "array-ib").timeline, 0.0)]
    {
        let mut ended = [0.0_f64; 2];
        let mut sent = 0;
        for line in lines(&timeline).iter().filter(|line| line.text.contains("  until ")) {
            let end = &mut ended[usize::from(line.forward)];
            assert!(line.start_ns() >= *end - 0.01, "{} begins before {end}", line.text);
            assert!(line.end_ns() > line.start_ns(), "{}", line.text);
            *end = line.end_ns() + gap_ns;
            sent += 1;
        }
        assert!(sent > 20, "{sent}");
    }
}

fn fields(file: &[u8], options: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = options.to_vec();
    arguments.extend(["-T", "fields"]);
    fields.iter().for_each(|field| arguments.extend(["-e", *field]));
    let text = tshark::read_bytes(file, &arguments);
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Whole nanoseconds of a time of tshark in seconds with nine decimals.
fn whole_ns(seconds: &str) -> u64 {
    let (whole, nanos) = seconds.split_once('.').expect(seconds);
    whole.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap()
}

/// Holds the lines of frames against the frames of the capture of the same run, as tshark reads it:
/// number, order, times, directions and lengths. `more` are the bytes that a capture omits.
/// Returns the lines with the chosen fields of tshark.
fn compare<'w>(written: &'w Written, options: &[&str], chosen: &[&str], more: u64) -> Vec<(Line<'w>, Vec<String>)> {
    let first = ["frame.time_epoch", "frame.len", "frame.packet_flags_direction"];
    let rows = fields(&written.capture, options, &[&first[..], chosen].concat());
    let sent: Vec<Line<'_>> = lines(&written.timeline).into_iter().filter(Line::is_sent).collect();
    assert_eq!(sent.len(), rows.len());
    assert!(sent.len() > 50, "{}", sent.len());
    let pairs = sent.into_iter().zip(rows);
    let compared = pairs.map(|(line, row)| {
        let (whole, _) = line.at_ns.split_once('.').expect(line.at_ns);
        assert_eq!(whole.parse::<u64>().unwrap(), whole_ns(&row[0]), "{}", line.text);
        assert_eq!(line.bytes(), row[1].parse::<u64>().unwrap() + more, "{}", line.text);
        let direction = row[2].trim_start_matches("0x").trim_start_matches('0');
        assert_eq!(line.forward, direction == "2", "{}: {}", line.text, row[2]);
        (line, row[3..].to_vec())
    });
    compared.collect()
}

/// Frames that are lost and damaged, with a switch that marks.
const FAULTS: &str = r#"
[[fault]]
kind = "frame-loss"
link = "server-tor"
probability = 0.004
[[fault]]
kind = "crc-errors"
link = "server-tor"
probability = 0.004
"#;

/// Numbers of TCP, tags, pauses and PDUs of each line are those that tshark reads.
#[needs("tshark")]
#[test]
fn every_line_of_an_ethernet_link_is_a_frame_of_the_capture() {
    let text = PFC.replace("512KiB", "16KiB");
    let written = ethernet(&format!("{text}{FAULTS}"), "server-tor");
    let chosen = [
        "tcp.seq",
        "tcp.ack",
        "tcp.window_size_value",
        "tcp.len",
        "vlan.id",
        "vlan.priority",
        "eth.type",
        "iscsi.opcode",
        "tcp.flags.syn",
    ];
    let (mut pdus, mut again) = (0, 0);
    // Without reassembly in the dissector, the numbers alone count.
    let options = ["-o", "tcp.analyze_sequence_numbers:TRUE", "-o", "tcp.reassemble_out_of_order:TRUE"];
    for (line, row) in compare(&written, &options, &chosen, 4) {
        let text = line.text;
        if row[6] == "0x8808" {
            assert!(text.starts_with("PFC "), "{text}");
            continue;
        }
        if row[6] == "0x88cc" {
            assert!(text.starts_with("LLDP DCBX PFC ") && text.contains("untagged"), "{text}");
            continue;
        }
        let own = ["seq", "ack", "win", "len"].map(|word| numbers(text, word));
        assert_eq!(own, [0, 1, 2, 3].map(|at| row[at].clone()), "{text}");
        assert!(text.contains(&format!("  priority {} VLAN {}  ", row[5], row[4])), "{text}");
        again += u64::from(text.contains("  retransmission"));
        pdus += u64::from(text.contains("SCSI ") || text.contains("Login ") || text.contains("R2T"));
    }
    assert!(pdus > 50 && again > 3, "{pdus} frames with PDUs, {again} retransmissions");
}

/// The number behind a word of the numbers of TCP, which stand behind the addresses.
fn numbers(text: &str, word: &str) -> String {
    let numbers = text.split(" > ").nth(1).unwrap_or_else(|| panic!("{text}"));
    let mut words = numbers.split_whitespace();
    words.find(|other| *other == word).unwrap_or_else(|| panic!("{text}"));
    words.next().unwrap_or_default().to_owned()
}

/// Each PDU that tshark finds whole in the stream begins in a line.
#[needs("tshark")]
#[test]
fn pdus_begin_in_the_lines_as_tshark_finds_them() {
    let written = ethernet(ISCSI, "array-tor");
    let mut own = BTreeMap::<&str, u64>::new();
    let all = lines(&written.timeline);
    for pdu in
        all.iter().filter(|line| line.is_sent()).flat_map(|line| line.text.split("  ").next().unwrap().split(" + "))
    {
        let names = ["Login Request", "Login Response", "SCSI Command", "SCSI Data-In", "SCSI Response"];
        if let Some(name) = names.into_iter().find(|name| pdu.starts_with(name)) {
            *own.entry(name).or_default() += 1;
        }
    }
    let mut found = BTreeMap::<&str, u64>::new();
    for opcode in fields(&written.capture, &[], &["iscsi.opcode"]).iter().flat_map(|row| row[0].split(',')) {
        let name = match opcode {
            "0x03" => "Login Request",
            "0x23" => "Login Response",
            "0x01" => "SCSI Command",
            "0x25" => "SCSI Data-In",
            "0x21" => "SCSI Response",
            _ => continue,
        };
        *found.entry(name).or_default() += 1;
    }
    assert!(found.len() >= 4 && own.keys().eq(found.keys()), "{own:?}, {found:?}");
    for (name, count) in &own {
        // The last PDU may not be whole.
        assert!(count - found[name] <= 1, "{name}: {own:?}, {found:?}");
    }
}

/// Addresses and OX_IDs of FCoE are those that tshark reads.
#[needs("tshark")]
#[test]
fn every_line_of_fcoe_is_a_frame_of_the_capture() {
    let written = ethernet(FCOE, "fcf-tor");
    let (mut logins, mut discovered) = (0, 0);
    for (line, row) in
        compare(&written, &[], &["vlan.etype", "fc.s_id", "fc.d_id", "fc.ox_id", "vlan.id", "eth.type"], 4)
    {
        if row[5] == "0x8808" {
            assert!(line.text.starts_with("PFC "), "{}", line.text);
            continue;
        }
        if row[5] == "0x88cc" {
            assert!(line.text.starts_with("LLDP DCBX PFC ") && line.text.contains("untagged"), "{}", line.text);
            continue;
        }
        if row[1].is_empty() {
            // Discovery and keep-alives; that of the VLAN has no tag.
            let is_tagged = row[0] == "0x8914";
            assert!(is_tagged || row[5] == "0x8914", "{}: {row:?}", line.text);
            assert!(line.text.starts_with("FIP ") && line.text.contains("untagged") != is_tagged, "{}", line.text);
            discovered += 1;
            continue;
        }
        let ids: Vec<String> = [1, 2, 3].map(|at| row[at].trim_start_matches("0x").replace('.', "")).to_vec();
        let is_fip = row[0] == "0x8914";
        assert!(line.text.starts_with(if is_fip { "FIP " } else { "FCoE " }), "{}: {}", line.text, row[0]);
        assert!(line.text.contains(&ids.join(" ")), "{}: {ids:?}", line.text);
        assert!(line.text.contains(&format!(" VLAN {}  ", row[4])), "{}", line.text);
        logins += u64::from(is_fip);
    }
    assert!(logins >= 2 && discovered >= 6, "{logins}, {discovered}");
}

/// Frames of Fibre Channel in an FCIP link are named where they begin.
#[needs("tshark")]
#[test]
fn every_line_of_an_fcip_link_is_a_frame_of_the_capture() {
    let run = "duration = \"20ms\"\nwarmup = \"0s\"";
    let text = crate::fcip::text(10, "", run, "size = \"4KiB\"\ndepth = 1\nread_share = 0.5");
    let written = ethernet(&text, "wan");
    let compared = compare(&written, &[], &["tcp.seq", "tcp.len"], 4);
    let begun = |what: &str| compared.iter().filter(|(line, _)| line.text.contains(what)).count();
    assert!(begun("FCIP special frame") == 2 && begun("FCIP FCP_CMND READ") > 0 && begun("FCP_RSP GOOD") > 0);
    for (line, row) in &compared {
        assert_eq!([numbers(line.text, "seq"), numbers(line.text, "len")], [row[0].clone(), row[1].clone()]);
    }
}

/// LIDs, lanes, levels, queue pairs, numbers and syndromes are those that tshark reads.
#[needs("tshark")]
#[test]
fn every_line_of_an_infiniband_link_is_a_packet_of_the_capture() {
    let fault = "[[fault]]\nat = \"0s\"\nkind = \"frame-loss\"\nlink = \"array-ib\"\nprobability = 0.02\n";
    let text = SRP.replace("100us", "2ms").replace("depth = 1", "depth = 4").replace("4KiB", "16KiB");
    let text = format!("{}{fault}", text.replace("read_share = 1.0", "read_share = 0.5"));
    let written = infiniband(&text, "server-ib");
    let chosen = [
        "infiniband.lrh.slid",
        "infiniband.lrh.dlid",
        "infiniband.bth.destqp",
        "infiniband.bth.psn",
        "infiniband.lrh.sl",
        "infiniband.lrh.vl",
        "infiniband.aeth.syndrome",
        "infiniband.bth.opcode",
    ];
    let (mut naks, mut units) = (0, 0);
    for (line, row) in compare(&written, &["--disable-protocol", "rpcordma"], &chosen, 0) {
        let pair = u32::from_str_radix(row[2].trim_start_matches("0x"), 16).expect(&row[2]);
        let ids = format!("LID {} > {} QP {pair:06x} PSN {}", row[0], row[1], row[3]);
        assert!(line.text.contains(&ids), "{}: {ids}", line.text);
        let hex =
            |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text}"));
        assert!(line.text.contains(&format!(" SL {} VL {} ", hex(&row[4]), hex(&row[5]))), "{}: {row:?}", line.text);
        if row[7] == "17" {
            let syndrome = row[6].parse::<u8>().unwrap_or_else(|_| hex(&row[6]) as u8);
            assert!(line.text.contains(&format!(" syndrome {syndrome:02x} ")), "{}: {row:?}", line.text);
            naks += u64::from(line.text.starts_with("NAK PSN sequence error"));
        }
        units += u64::from(line.text.starts_with("SRP_"));
    }
    assert!(units > 10 && naks > 0, "{units} information units, {naks} NAKs");
}

/// Segments of IPoIB stand beside the packets that begin them.
#[needs("tshark")]
#[test]
fn every_line_of_ipoib_is_a_packet_of_the_capture() {
    for mode in ["datagram", "connected"] {
        let text = crate::ipoib::lab("4xSDR", &format!("{{ mode = \"{mode}\" }}"), "", "size = \"4KiB\"\ndepth = 1");
        let text = text.replace("200ms", "1ms").replace("50ms", "0s");
        let written = infiniband(&text, "server-ib");
        let compared = compare(&written, &[], &["infiniband.bth.opcode"], 0);
        let with = |what: &str| compared.iter().filter(|(line, _)| line.text.contains(what)).count();
        assert!(with("IPoIB TCP SYN") >= 2 && with("IPoIB Login Request") > 0 && with("IPoIB SCSI Command READ") > 0);
        let datagrams = compared.iter().filter(|(_, row)| row[0] == "100").count();
        assert_eq!(datagrams > 0, mode == "datagram", "{mode}");
    }
}

/// FCTBS is the number of blocks of 64 bytes that the sender of a lane has sent, modulo 4,096.
#[test]
fn flow_control_packets_have_the_total_of_the_packets_before() {
    let text = SRP.replace("100us", "2ms").replace("depth = 1", "depth = 4");
    let written = infiniband(&text, "server-ib");
    let (mut sent, mut checked) = (BTreeMap::<(bool, String), u64>::new(), 0);
    for line in lines(&written.timeline) {
        let Some(lane) = line.after("VL").map(str::to_owned) else { continue };
        let total = sent.entry((line.forward, lane)).or_default();
        if let Some(fctbs) = line.after("FCTBS") {
            assert_eq!(fctbs.parse::<u64>().unwrap(), *total % 4096, "{}", line.text);
            checked += 1;
        } else if line.is_sent() {
            *total += line.bytes().div_ceil(64);
        }
    }
    assert!(checked > 100, "{checked}");
}

/// Frames with a mark (CE) are those that the switch has marked when they entered the queue of the
/// link, apart from those that still wait at the end.
#[test]
fn marked_frames_are_those_of_the_results() {
    let text = PFC.replace("pfc = 3\n", "ecn = { from = \"30KB\" }\n");
    let text = text.replace("vlan = 100 }", "vlan = 100, tcp = { ecn = true } }");
    let text =
        text.replace("3260\"] }", "3260\"], tcp = { ecn = true } }").replace("read_share = 0.5", "read_share = 1.0");
    let Written { timeline, results, .. } = ethernet(&text, "server-tor");
    let link = results.ethernet_links.iter().find(|link| link.name == "server-tor").unwrap();
    let is_marked = |line: &&Line<'_>| line.is_sent() && line.text.ends_with("  CE");
    let shown = lines(&timeline).iter().filter(is_marked).filter(|line| !line.forward).count() as u64;
    let marked = link.backward.marked_frames;
    assert!(shown > 20 && shown <= marked && marked - shown < 200, "{shown} of {marked}");
    assert!(timeline.contains("  ECT") && timeline.contains("ECE"));
}

/// Losses of a link are those of the results, with their reasons.
#[test]
fn losses_are_those_of_the_results() {
    let text = PFC.replace("pfc = 3\n", "").replace("1GbE", "10GbE");
    let Written { timeline, results, .. } = ethernet(&format!("{text}{FAULTS}"), "server-tor");
    let link = results.ethernet_links.iter().find(|link| link.name == "server-tor").unwrap();
    let mut expected = BTreeMap::new();
    for (reason, frames) in link.forward.drops.iter().chain(&link.backward.drops) {
        *expected.entry(reason.clone()).or_insert(0) += frames;
    }
    let mut own = BTreeMap::new();
    for line in lines(&timeline) {
        if let Some(reason) = line.text.strip_prefix("LOST ") {
            *own.entry(reason.split_whitespace().next().unwrap().to_owned()).or_insert(0) += 1;
        }
    }
    assert!(own.len() >= 2, "{own:?}");
    assert_eq!(own, expected);
    assert!(timeline.contains("  BAD FCS"));
}

/// A link that goes down and comes up again has a line for both in each direction, and none between
/// except those of losses.
#[test]
fn nothing_is_sent_while_a_link_is_down() {
    let fault = |link| format!("[[fault]]\nat = \"300us\"\nfor = \"200us\"\nkind = \"link-down\"\nlink = \"{link}\"\n");
    let srp = SRP.replace("100us", "1ms");
    let all = [
        ethernet(&format!("{ISCSI}{}", fault("server-tor")), "server-tor"),
        infiniband(&format!("{srp}{}", fault("server-ib")), "server-ib"),
    ];
    for written in all {
        let all = lines(&written.timeline);
        for forward in [true, false] {
            let of: Vec<&Line<'_>> = all.iter().filter(|line| line.forward == forward).collect();
            let at = |what: &str| of.iter().position(|line| line.text == what).unwrap_or_else(|| panic!("no {what}"));
            let (down, up) = (at("link down"), at("link up"));
            assert!((of[up].start_ns() - of[down].start_ns() - 200_000.0).abs() < 1.0);
            assert!(of[down + 1..up].iter().all(|line| line.text.starts_with("LOST ")));
        }
    }
}

fn text_of(results: &Results) -> String {
    let mut results = results.clone();
    results.engine = Default::default();
    serde_json::to_string(&results).expect("JSON")
}

/// A timeline changes no result, and the number of threads changes no timeline.
#[test]
fn timelines_change_no_result_and_do_not_depend_on_threads() {
    let ipoib = crate::ipoib::lab("4xSDR", "{ mode = \"connected\" }", "", "size = \"4KiB\"\ndepth = 4");
    let ipoib = ipoib.replace("200ms", "2ms").replace("50ms", "0s");
    for (text, plane) in [
        (ISCSI, Plane::Ethernet),
        (PFC, Plane::Ethernet),
        (FCOE, Plane::Ethernet),
        (SRP, Plane::Infiniband),
        (&*ipoib, Plane::Infiniband),
    ] {
        let lab = labs::lab(text);
        let plain = text_of(&labs::run(&lab));
        let run = |count| {
            let threads = Threads { count, always: true, in_turn: true, clock: None };
            captured::written(&lab, &plane, 0, threads)
        };
        let [one, four] = [run(1), run(4)];
        assert!(text_of(&one.results) == plain, "{text}");
        assert!(one.timeline.lines().count() > 20 && one.timeline == four.timeline, "{text}");
        assert!(one.capture == four.capture, "{text}");
    }
}
