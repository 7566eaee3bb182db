//! Labs whose sessions of iSCSI cross InfiniBand, and routers between it and Ethernet.

use crate::captured::{self, Plane, packets};
use crate::labs;
use sanloom_api::results::{Finding, FindingKind};
use sanloom_sim::capture::Window;
use sanloom_test_support::{needs, tshark};
use sanloom_wire::infiniband::{Packet, opcode};
use std::collections::BTreeSet;

/// A host and an array at a switch of InfiniBand.
pub(crate) fn lab(rate: &str, ipoib: &str, more: &str, workload: &str) -> String {
    format!(
        r#"
[run]
duration = "200ms"
warmup = "50ms"
[infiniband_switch.ib]
[host.server]
queue_depth = 32
ipoib = {ipoib}
{more}
[storage.array]
rate = "1M/s"
iscsi = {{ portals = "192.0.2.1:3260" }}
ipoib = {ipoib}
[[link]]
name = "server-ib"
from = "server"
to = "ib"
rate = "{rate}"
[[link]]
name = "array-ib"
from = "array"
to = "ib"
rate = "{rate}"
[workload.load]
hosts = "server"
targets = "array"
{workload}
"#
    )
}

const READS: &str = "size = \"256KiB\"\ndepth = 8\nread_share = 1.0";
const DATAGRAM: &str = "{ mode = \"datagram\" }";
const CONNECTED: &str = "{ mode = \"connected\" }";

/// An iSCSI adapter is a card of Ethernet.
#[test]
fn an_iscsi_adapter_takes_no_part_in_sessions_over_infiniband() {
    let run = |more: &str| format!("{:?}", labs::run(&labs::lab(&lab("4xSDR", CONNECTED, more, READS))).totals);
    let adapter = "iscsi_hba = { per_command = \"80us\", per_pdu = \"25us\", driver_per_command = \"30us\" }";
    assert_eq!(run(adapter), run(""));
}

/// Other partitions of IPoIB do not matter to a host that reaches the storage over SRP.
#[test]
fn a_host_in_another_partition_uses_srp() {
    let text = lab("4xSDR", "{}", "", READS)
        .replacen("ipoib = {}", "ipoib = { partition = 2 }", 1)
        .replace("[storage.array]\n", "[storage.array]\nsrp = {}\n");
    let results = labs::run(&labs::lab(&text));
    assert!(results.totals.io.ios_completed > 100, "{:?}", results.totals.io);
}

/// A datagram of 2,044 bytes of IP takes 2,084 byte times: 1,992 bytes of data with time stamps,
/// 240.4 MB/s on 1x SDR without them (IBA volume 1, 5.2; RFC 4391, section 6).
#[test]
fn datagrams_of_2044_bytes_reach_their_share_of_the_line() {
    for (line, bytes_per_s) in [("1xSDR", 250e6), ("4xSDR", 1e9)] {
        for (stamps, data) in [(true, 1_992.0), (false, 2_004.0)] {
            let more = format!("iscsi = {{ tcp = {{ timestamps = {stamps} }} }}");
            let results = labs::run(&labs::lab(&lab(line, DATAGRAM, &more, READS)));
            // A PDU of 256 KiB has a header of 48 bytes, which is nothing here.
            let expected = bytes_per_s / 1e6 * data / 2_084.0;
            let found = labs::mb_per_s(&results);
            assert!((found / expected - 1.0).abs() < 0.01, "{line}, {stamps}: {found:.2}, not {expected:.2}");
            assert_eq!(results.totals.io.ios_failed, 0);
        }
    }
}

/// A packet of 65,520 bytes is a message of 32 packets with 28 bytes of headers each.
#[test]
fn packets_of_the_connected_mode_reach_the_share_of_messages() {
    let results = labs::run(&labs::lab(&lab("4xSDR", CONNECTED, "", READS)));
    let found = labs::mb_per_s(&results);
    let share = 65_468.0 / (65_524.0 + 32.0 * 28.0);
    assert!((found / (1e3 * share) - 1.0).abs() < 0.02, "{found:.2}, not {:.2}", 1e3 * share);
    assert_eq!(results.totals.io.ios_failed, 0);
}

/// A host with datagrams and one with a connection use datagrams.
#[test]
fn one_end_with_datagrams_is_enough_for_datagrams() {
    let mixed = lab("1xSDR", CONNECTED, "", READS).replacen("connected", "datagram", 1);
    let found = labs::mb_per_s(&labs::run(&labs::lab(&mixed)));
    let same = labs::mb_per_s(&labs::run(&labs::lab(&lab("1xSDR", DATAGRAM, "", READS))));
    assert_eq!(found, same);
}

/// The processor has work for each packet, so large packets cost less.
#[test]
fn each_packet_costs_time_of_the_processor() {
    let costs = "ipoib_cost = { per_packet_received = \"20us\", per_packet_sent = \"1us\" }";
    let datagrams = labs::run(&labs::lab(&lab("4xSDR", DATAGRAM, costs, READS)));
    // 20 us for 1,992 bytes.
    let limit = 1_992.0 / 20.0;
    assert!(
        (0.9 * limit..=1.001 * limit).contains(&labs::mb_per_s(&datagrams)),
        "{} of {limit}",
        labs::mb_per_s(&datagrams)
    );
    let connected = labs::run(&labs::lab(&lab("4xSDR", CONNECTED, costs, READS)));
    assert!(connected.hosts[0].cpu_s_per_gb < datagrams.hosts[0].cpu_s_per_gb / 10.0);
}

/// TCP repeats a lost datagram. A connection repeats its packets below TCP.
#[test]
fn a_lost_packet_is_repeated_by_tcp_or_by_the_connection() {
    let fault = "[[fault]]\nat = \"0s\"\nkind = \"frame-loss\"\nlink = \"server-ib\"\nprobability = 0.002\n";
    for (mode, repeats) in [(DATAGRAM, true), (CONNECTED, false)] {
        let text = format!("{}{fault}", lab("4xSDR", mode, "", "size = \"64KiB\"\ndepth = 4\nread_share = 0.5"))
            .replace("duration = \"200ms\"", "duration = \"5s\"\nstop_issuing = \"3s\"");
        let results = labs::run(&labs::lab(&text));
        assert_eq!((results.totals.io.ios_failed, results.totals.io.ios_unfinished), (0, 0), "{mode}");
        let lost: u64 = results.infiniband_links.iter().map(|link| link.forward.packets_lost).sum();
        assert!(lost > 10, "{mode}: {lost}");
        let repeated = results.iscsi_sessions[0].segments_retransmitted;
        assert_eq!(repeated > 0, repeats, "{mode}: {repeated} segments repeated");
    }
}

/// A link that is down ends the session, and the next login follows when it is up again.
#[test]
fn a_session_returns_when_its_link_does() {
    let fault = "[[fault]]\nat = \"1s\"\nuntil = \"20s\"\nkind = \"link-down\"\nlink = \"array-ib\"\n";
    for mode in [DATAGRAM, CONNECTED] {
        let text = format!("{}{fault}", lab("4xSDR", mode, "", "size = \"4KiB\"\narrivals = \"constant 100/s\""))
            .replace("duration = \"200ms\"", "duration = \"90s\"\nstop_issuing = \"40s\"");
        let results = labs::run(&labs::lab(&text));
        assert_eq!(results.totals.io.ios_unfinished, 0, "{mode}");
        let session = &results.iscsi_sessions[0];
        assert!(session.state == "up" && session.connections >= 1, "{mode}: {session:?}");
        assert!(results.totals.io.ios_completed > 2_000, "{mode}: {}", results.totals.io.ios_completed);
    }
}

/// The same lab and seed give the same results to the last byte.
#[test]
fn two_runs_over_ipoib_are_the_same() {
    for mode in [DATAGRAM, CONNECTED] {
        let text = lab("4xSDR", mode, "", "size = \"16KiB\"\ndepth = 8\nread_share = 0.5");
        let run = || format!("{:?}", labs::run(&labs::lab(&text)));
        assert_eq!(run(), run());
    }
}

/// A host on InfiniBand and an array on Ethernet, with a router between them.
fn routed(router: &str, rates: [&str; 2], workload: &str) -> String {
    format!(
        r#"
[run]
duration = "600ms"
warmup = "300ms"
[infiniband_switch.ib]
[ethernet_switch.lan]
memory = "16MiB"
[host.server]
queue_depth = 32
ipoib = {{}}
[host.gateway]
ipoib = {{}}
ip_router = {router}
[storage.disk]
rate = "1M/s"
iscsi = {{ portals = "192.0.2.1:3260" }}
[[link]]
from = "{{server,gateway}}"
to = "ib"
rate = "{}"
[[link]]
name = "gateway-lan"
from = "gateway"
to = "lan"
rate = "{}"
[[link]]
from = "disk"
to = "lan"
rate = "10GbE"
[workload.load]
hosts = "server"
targets = "disk"
{workload}
"#,
        rates[0], rates[1]
    )
}

/// The MTU of Ethernet holds on both planes: a segment has 1,448 bytes, and its packet on
/// InfiniBand 1,500 bytes of IP, 4 of IPoIB and 36 of headers and symbols. So 1x SDR carries 235.1
/// MB/s of TCP.
#[test]
fn segments_through_a_router_have_the_mtu_of_ethernet() {
    let results = labs::run(&labs::lab(&routed("{ per_packet = \"100ns\" }", ["1xSDR", "10GbE"], READS)));
    let expected = 250.0 * 1_448.0 / 1_540.0;
    let found = labs::mb_per_s(&results);
    assert!((found / expected - 1.0).abs() < 0.02, "{found:.2}, not {expected:.2}");
    let results = labs::run(&labs::lab(&routed("{ per_packet = \"100ns\" }", ["4xSDR", "1GbE"], READS)));
    let expected = 125.0 * 1_448.0 / 1_538.0;
    let found = labs::mb_per_s(&results);
    assert!((found / expected - 1.0).abs() < 0.02, "{found:.2}, not {expected:.2}");
}

/// A router that needs 20 us for a packet passes at most 50,000 of them in a second, ACKs included.
#[test]
fn the_time_of_a_packet_limits_a_router() {
    let results = labs::run(&labs::lab(&routed("{ per_packet = \"20us\" }", ["4xSDR", "10GbE"], READS)));
    let most = 1_448.0 / 20.0;
    let found = labs::mb_per_s(&results);
    assert!((0.5 * most..most).contains(&found), "{found:.2} of {most:.2} MB/s");
    assert_eq!(results.totals.io.ios_failed, 0);
}

/// A full queue drops packets, which TCP sends again. No request fails.
#[test]
fn a_full_queue_of_a_router_drops_packets_that_tcp_repeats() {
    let drops = |queue: u32| {
        let router = format!("{{ per_packet = \"5us\", queue = {queue} }}");
        let results = labs::run(&labs::lab(&routed(&router, ["4xSDR", "10GbE"], READS)));
        assert_eq!(results.totals.io.ios_failed, 0);
        let gateway = results.hosts.iter().find(|host| host.name == "gateway").expect("the router");
        let router = gateway.ip_router.clone().expect("its work");
        assert!(router.forwarded > 1_000 && router.utilisation > 0.0, "{router:?}");
        (router.dropped, results.iscsi_sessions[0].segments_retransmitted)
    };
    let found = |queue: u32| {
        let router = format!("{{ per_packet = \"5us\", queue = {queue} }}");
        let results = labs::run(&labs::lab(&routed(&router, ["4xSDR", "10GbE"], READS)));
        let of_router = |finding: &&Finding| finding.culprit.as_deref() == Some("gateway");
        let finding = results.findings.iter().find(of_router)?;
        let victims: Vec<&str> = finding.victims.iter().map(|victim| victim.name.as_str()).collect();
        assert_eq!(victims, ["server"]);
        Some((finding.kind, finding.candidates.clone()))
    };
    let (kind, candidates) = found(16).expect("a finding");
    assert_eq!(kind, FindingKind::CongestionLoss);
    assert_eq!(candidates[0].set, [("host.gateway.ip_router.queue".to_owned(), "256".to_owned())]);
    assert!(found(100_000).is_none_or(|(kind, _)| kind == FindingKind::Bottleneck));
    let (dropped, repeated) = drops(16);
    assert!(dropped > 0 && repeated > 0, "{dropped} dropped, {repeated} repeated");
    assert_eq!(drops(100_000), (0, 0));
}

/// RC SEND last (IBA volume 1, 9.2).
const SEND_LAST: u8 = 0x02;

/// Every packet has right checksums. Wireshark finds the sessions of iSCSI in the datagrams, and
/// nothing malformed.
#[needs("tshark")]
#[test]
fn wireshark_reads_iscsi_in_datagrams_of_ipoib() {
    let text = lab("4xSDR", DATAGRAM, "", "size = \"1KiB\"\ndepth = 2\nread_share = 0.5")
        .replace("duration = \"200ms\"", "duration = \"4ms\"")
        .replace("warmup = \"50ms\"", "warmup = \"0s\"");
    let (file, _) = captured::capture(&labs::lab(&text), &Plane::Infiniband, 0, Window::default());
    let all = packets(&file);
    assert!(all.len() > 100, "{}", all.len());
    for (number, bytes) in all.iter().enumerate() {
        let packet = Packet::parse(bytes).unwrap_or_else(|error| panic!("packet {number}: {error}"));
        assert_eq!(packet.payload[..4], [8, 0, 0, 0], "packet {number}");
    }
    let fields = ["-o", "tcp.check_checksum:TRUE", "-T", "fields", "-e", "_ws.malformed", "-e", "tcp.checksum.status"];
    let more = ["-e", "ip.proto", "-e", "iscsi.opcode", "-e", "tcp.analysis.lost_segment"];
    let text = tshark::read_bytes(&file, &[&fields[..], &more[..]].concat());
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), all.len());
    let mut opcodes = BTreeSet::new();
    for (number, row) in rows.iter().enumerate() {
        assert_eq!((row[0], row[1], row[2], row[4]), ("", "1", "6", ""), "packet {number}");
        opcodes.extend(row[3].split(',').filter(|code| !code.is_empty()).map(str::to_owned));
    }
    // Login, command, data to the host, and responses.
    for wanted in ["0x03", "0x23", "0x01", "0x25"] {
        assert!(opcodes.contains(wanted), "{wanted} is not among {opcodes:?}");
    }
}

/// The first packet of each message of a connection begins with the header of IPoIB, and its parts
/// have the length of the packet of IP.
#[test]
fn messages_of_a_connection_hold_whole_packets_of_ip() {
    let text = lab("4xSDR", CONNECTED, "", "size = \"64KiB\"\ndepth = 2\nread_share = 0.5")
        .replace("duration = \"200ms\"", "duration = \"4ms\"")
        .replace("warmup = \"50ms\"", "warmup = \"0s\"");
    let (file, _) = captured::capture(&labs::lab(&text), &Plane::Infiniband, 0, Window::default());
    let (mut whole, mut open) = (0, [None::<usize>; 2]);
    for bytes in packets(&file) {
        let packet = Packet::parse(bytes).expect("a packet");
        let side = (packet.bth.pair & 1) as usize;
        let begins = [opcode::SEND_FIRST, opcode::SEND_ONLY].contains(&packet.bth.opcode);
        let ends = [SEND_LAST, opcode::SEND_ONLY].contains(&packet.bth.opcode);
        if begins {
            assert_eq!(packet.payload[..4], [8, 0, 0, 0]);
            open[side] = Some(4 + usize::from(u16::from_be_bytes([packet.payload[6], packet.payload[7]])));
        }
        if packet.bth.opcode <= opcode::SEND_ONLY {
            let left = open[side].expect("a message").checked_sub(packet.payload.len()).expect("its rest");
            open[side] = Some(left);
            assert_eq!(left == 0, ends);
            whole += usize::from(ends);
        }
    }
    assert!(whole > 50, "{whole}");
}

/// A capture changes no result.
#[test]
fn a_capture_of_ipoib_changes_nothing() {
    for mode in [DATAGRAM, CONNECTED] {
        let text = lab("4xSDR", mode, "", "size = \"16KiB\"\ndepth = 4\nread_share = 0.5")
            .replace("duration = \"200ms\"", "duration = \"20ms\"")
            .replace("warmup = \"50ms\"", "warmup = \"5ms\"");
        let lab = labs::lab(&text);
        let (_, watched) = captured::capture(&lab, &Plane::Infiniband, 0, Window::default());
        let mut plain = labs::run(&lab);
        plain.engine = watched.engine;
        assert_eq!(format!("{plain:?}"), format!("{watched:?}"));
    }
}
