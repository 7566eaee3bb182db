//! FCoE: virtual links over lossless and lossy Ethernet.

mod dcbx;
mod fip;
mod links;
mod plain;
mod random;

use crate::captured::{self, Plane};
use crate::labs;
use sanloom_api::results::{Finding, FindingKind, LinkResult, Results};
use sanloom_fc::config::{Picos, VirtualFabric};
use sanloom_fc::san::Lab;
use sanloom_sim::capture::Window;
use sanloom_test_support::{needs, tshark};
use std::sync::Arc;

/// A host and a disk at a forwarder. `fibre` is the rate of the disk's link, `host` and `link` are
/// further keys of the host and of its virtual link.
fn lab(rate: &str, fibre: &str, pfc: &str, link: &str, more: &str) -> Arc<Lab> {
    labs::lab(&text(rate, fibre, pfc, link, more))
}

fn text(rate: &str, fibre: &str, pfc: &str, link: &str, more: &str) -> String {
    format!(
        r#"
[run]
duration = "400ms"
warmup = "100ms"
[ethernet_switch.tor]
memory = "300KB"
{pfc}
[switch.fcf]
fcoe = {{ keep_alive = "250ms" }}
[host.server]
queue_depth = 64
command_timeout = "100ms"
retries = 100
[storage.disk]
rate = "500k/s"
[[link]]
name = "server-tor"
from = "server"
to = "tor"
rate = "{rate}"
mtu = 2500
[[link]]
name = "fcf-tor"
from = "fcf"
to = "tor"
rate = "{rate}"
mtu = 2500
[[link]]
name = "virtual"
from = "server"
to = "fcf"
ethernet = {{ vlan = 100 {link} }}
[[link]]
name = "fibre"
from = "disk"
to = "fcf"
rate = "{fibre}"
[workload.load]
hosts = "server"
targets = "disk"
{more}
"#
    )
}

const READS: &str = "size = \"256KiB\"\ndepth = 32\nread_share = 1.0";
const WRITES: &str = "size = \"256KiB\"\ndepth = 32\nread_share = 0.0";
/// Writes whose data exceed the buffer of a forwarder now and then.
const FEW_WRITES: &str = "size = \"64KiB\"\ndepth = 4\nread_share = 0.0";
const PFC: &str = "pfc = 3";

fn link<'r>(results: &'r Results, name: &str) -> &'r LinkResult {
    results.links.iter().find(|link| link.name == name).expect(name)
}

fn lost(results: &Results, reason: &str) -> u64 {
    results.drops.get(reason).copied().unwrap_or(0)
}

fn all_lost(results: &Results) -> u64 {
    results.drops.values().sum()
}

/// 2,048 bytes of data in 2,136 bytes of the line.
#[test]
fn large_requests_reach_the_share_of_the_line() {
    for (line, fibre, expected) in [("10GbE", "32GFC", 1_198.5), ("25GbE", "64GFC", 2_996.3)] {
        for workload in [READS, WRITES] {
            let results = labs::run(&lab(line, fibre, PFC, "", workload));
            let found = labs::mb_per_s(&results);
            assert!((found / expected - 1.0).abs() < 0.005, "{line}, {workload}: {found:.2}, not {expected}");
            assert_eq!((results.totals.io.ios_failed, all_lost(&results)), (0, 0));
        }
    }
}

/// Writes over 25GbE to a disk at 8GFC: the forwarder pauses the switch, and the switch the host.
#[test]
fn congestion_behind_a_forwarder_pauses_the_ethernet_and_loses_nothing() {
    let results = labs::run(&lab("25GbE", "8GFC", PFC, "", WRITES));
    assert!((labs::mb_per_s(&results) / 825.8 - 1.0).abs() < 0.01, "{:.1} MB/s", labs::mb_per_s(&results));
    assert_eq!((results.totals.io.ios_failed, all_lost(&results)), (0, 0));
    let pauses = |name: &str, backward: bool| {
        let link = results.ethernet_links.iter().find(|link| link.name == name).expect(name);
        if backward { link.backward.pauses } else { link.forward.pauses }
    };
    assert!(pauses("fcf-tor", false) > 100, "the forwarder: {}", pauses("fcf-tor", false));
    assert!(pauses("server-tor", true) > 100, "the switch: {}", pauses("server-tor", true));
}

/// The same without PFC in the adapters: the forwarder cannot hold the frames back.
#[test]
fn adapters_without_pfc_lose_frames_and_commands_recover() {
    let results = labs::run(&lab("25GbE", "8GFC", PFC, ", pfc = false", FEW_WRITES));
    let frames = lost(&results, "fcoe_buffer") + lost(&results, "ethernet");
    assert!(frames > 100, "{frames} frames lost: {:?}", results.drops);
    assert!(labs::mb_per_s(&results) < 0.95 * 825.8, "{:.1} MB/s", labs::mb_per_s(&results));
    assert_eq!(results.totals.io.ios_failed, 0);
    assert!(results.totals.io.latency.max_us > 100_000.0, "no command waited for its time-out");
}

fn losses(results: &Results) -> Vec<Finding> {
    let is_loss = |finding: &&Finding| finding.kind == FindingKind::CongestionLoss;
    results.findings.iter().filter(is_loss).cloned().collect()
}

/// The forwarder pauses a switch that has PFC for no priority.
#[test]
fn a_port_whose_pauses_are_not_obeyed_is_named_and_pfc_at_the_switch_is_the_cure() {
    let run = |pfc: &str| labs::run(&lab("25GbE", "8GFC", pfc, "", FEW_WRITES));
    let results = run("");
    let [finding] = &losses(&results)[..] else { panic!("{:#?}", results.findings) };
    let dropped = lost(&results, "fcoe_buffer");
    assert!(dropped > 0 && dropped == all_lost(&results), "{:?}", results.drops);
    assert_eq!(finding.culprit.as_deref(), Some("fcf:eth0"));
    let title = format!(
        "the receive buffer of fcf:eth0 dropped {dropped} frames of FCoE, although it pauses its sender, which does \
         not obey or is too far away"
    );
    assert_eq!(finding.title, title);
    let [pfc] = &finding.candidates[..] else { panic!("{:?}", finding.candidates) };
    assert_eq!(pfc.set, [("ethernet_switch.tor.pfc".to_owned(), "3".to_owned())]);
    let changed = run(PFC);
    assert!(losses(&changed).is_empty() && all_lost(&changed) == 0, "{:?}", changed.drops);
    assert!(changed.totals.io.throughput_bytes_per_s > 1.05 * results.totals.io.throughput_bytes_per_s);
}

/// The forwarder sends no pauses to a switch that would obey them.
#[test]
fn a_port_without_pfc_is_named_with_the_frames_that_it_drops_and_pfc_as_a_cure() {
    let run = |pfc: bool| labs::run(&lab("25GbE", "8GFC", PFC, &format!(", pfc = {pfc}"), FEW_WRITES));
    let results = run(false);
    let [finding] = &losses(&results)[..] else { panic!("{:#?}", results.findings) };
    let dropped = lost(&results, "fcoe_buffer");
    assert!(dropped > 0 && dropped == all_lost(&results), "{:?}", results.drops);
    assert_eq!(finding.culprit.as_deref(), Some("fcf:eth0"));
    let title = format!(
        "the receive buffer of fcf:eth0 dropped {dropped} frames of FCoE, because virtual has `pfc = false`, so it \
         sends no pauses"
    );
    assert_eq!(finding.title, title);
    let aborted = format!("{} commands of server were aborted", results.hosts[0].commands_aborted);
    assert!(finding.detail.contains(&aborted), "{finding:?}");
    assert!(finding.remedy.is_empty(), "advice is printed after a trial only: {finding:?}");
    let [pfc] = &finding.candidates[..] else { panic!("{:?}", finding.candidates) };
    assert_eq!(pfc.set, [("link.virtual.ethernet.pfc".to_owned(), "true".to_owned())]);
    let changed = run(true);
    assert!(losses(&changed).is_empty() && all_lost(&changed) == 0, "{:?}", changed.drops);
    assert!(changed.totals.io.throughput_bytes_per_s > 1.05 * results.totals.io.throughput_bytes_per_s);
}

/// Two forwarders send to one host through a switch that has PFC for no priority.
#[test]
fn a_switch_without_pfc_drops_frames_of_fcoe() {
    let both = |pfc: &str| {
        let text = format!(
            r#"
[run]
duration = "400ms"
warmup = "100ms"
[ethernet_switch.tor]
memory = "300KB"
{pfc}
[switch."fcf{{1..2}}"]
[host.server]
hbas = 2
queue_depth = 64
command_timeout = "100ms"
retries = 100
[storage."disk{{1..2}}"]
rate = "500k/s"
[[link]]
from = "{{server,fcf1,fcf2}}"
to = "tor"
rate = "10GbE"
mtu = 2500
[[link]]
from = "server"
to = "fcf{{1..2}}"
ethernet = {{ vlan = 100 }}
[[link]]
from = "disk{{1..2}}"
to = "fcf{{1..2}}"
rate = "16GFC"
[workload.load]
hosts = "server"
targets = "disk{{1..2}}"
size = "256KiB"
depth = 16
read_share = 1.0
"#
        );
        labs::run(&labs::lab(&text))
    };
    let (with, without) = (both(PFC), both(""));
    assert_eq!(all_lost(&with), 0);
    assert!((labs::mb_per_s(&with) / 1_198.5 - 1.0).abs() < 0.005, "{:.1} MB/s", labs::mb_per_s(&with));
    assert!(lost(&without, "ethernet") > 50, "{:?}", without.drops);
    assert!(
        labs::mb_per_s(&without) < 0.8 * labs::mb_per_s(&with),
        "{:.1} of {:.1} MB/s",
        labs::mb_per_s(&without),
        labs::mb_per_s(&with)
    );
}

/// The link of the host breaks for 100 ms, and its virtual link with it. The link of the forwarder
/// breaks as well: both are ends of the virtual link. Discovery after the break takes a few
/// crossings of the Ethernet.
#[test]
fn a_virtual_link_ends_with_its_ethernet_and_returns() {
    for broken in ["server-tor", "fcf-tor"] {
        let fault =
            format!("{READS}\n[[fault]]\nkind = \"link-down\"\nlink = \"{broken}\"\nat = \"200ms\"\nuntil = \"300ms\"");
        let results = labs::run(&lab("10GbE", "16GFC", PFC, "", &fault));
        let down_s = link(&results, "virtual").down_s;
        assert!((0.1..0.100_03).contains(&down_s), "{broken}: {down_s} s");
        assert!(labs::mb_per_s(&results) > 300.0, "{broken}: {:.1} MB/s", labs::mb_per_s(&results));
    }
}

/// A trunk that carries nothing takes no light from the ends of a virtual link, which ends when 2.5
/// periods have passed since the last keep-alive: 1.5 to 2.5 periods after the break. The link
/// returns with the first advertisement after the break. A trunk that loses most of its frames ends
/// it as well.
#[test]
fn a_break_between_switches_ends_a_virtual_link_after_the_keep_alives() {
    let trunk = r#"
[ethernet_switch.far]
pfc = 3
[host.other]
[[link]]
name = "other-far"
from = "other"
to = "far"
rate = "10GbE"
mtu = 2500
[[link]]
name = "trunk"
from = "far"
to = "tor"
rate = "10GbE"
mtu = 2500
[[link]]
name = "beyond"
from = "other"
to = "fcf"
ethernet = { vlan = 100 }
[[fault]]
link = "trunk"
at = "150ms"
"#;
    let down = "kind = \"link-down\"";
    let lost = "kind = \"frame-loss\"\nprobability = 1.0";
    let damaged = "kind = \"crc-errors\"\nprobability = 1.0\ndirection = \"forward\"";
    let often = "kind = \"frame-loss\"\nprobability = 0.9";
    const NONE: std::ops::RangeInclusive<f64> = 0.0..=0.0;
    // The delay of advertisements is up to a quarter of a millisecond.
    let whole = || 0.05..=0.07 + 0.0204;
    for (fault, length, expected) in [
        (down, "20ms", NONE),
        (down, "100ms", whole()),
        (lost, "20ms", NONE),
        (lost, "100ms", whole()),
        (damaged, "100ms", whole()),
        (often, "100ms", 0.01..=whole().end() + 0.02),
    ] {
        let text = format!("{READS}\n{trunk}{fault}\nfor = \"{length}\"\n");
        let mut lab = (*lab("10GbE", "16GFC", PFC, "", &text)).clone();
        let fcoe = lab.live.fcoe.first_mut().expect("the forwarder");
        fcoe.keep_alive = Picos::from_ms(20);
        let down_s = link(&labs::run(&Arc::new(lab)), "beyond").down_s;
        assert!(expected.contains(&down_s), "{fault}, {length}: {down_s} s");
    }
}

#[test]
fn a_slow_interface_beside_the_adapter_does_not_slow_its_virtual_link() {
    let slow = "[[link]]\nname = \"slow\"\nfrom = \"server\"\nto = \"tor\"\nrate = \"1GbE\"\nvlans = [200]\n";
    let results = labs::run(&lab("10GbE", "16GFC", PFC, "", &format!("{READS}\n{slow}")));
    assert!((labs::mb_per_s(&results) / 1_198.5 - 1.0).abs() < 0.005, "{:.1} MB/s", labs::mb_per_s(&results));
    assert_eq!(link(&results, "virtual").rate, "10GbE");
}

/// A request of two frames fails if the second frame arrives first. Its port discards both: the
/// second one because of the gap, and the first one because the exchange has ended.
#[test]
fn ports_count_the_frames_that_they_discard_because_the_ethernet_changed_their_order() {
    let late = "[[fault]]\nkind = \"reordering\"\nlink = \"server-tor\"\nprobability = 0.05\ndelay = \"50us\"\n\
                at = \"150ms\"\nfor = \"50ms\"";
    for (read_share, receiver, other) in [("1.0", "server:0", "disk:0"), ("0.0", "disk:0", "server:0")] {
        let load = format!("size = \"4KiB\"\ndepth = 32\nread_share = {read_share}\n{late}");
        let results = labs::run(&lab("10GbE", "16GFC", PFC, "", &load));
        let discarded = |name: &str| results.ports.iter().find(|port| port.name == name).expect(name).sequence_discards;
        let aborted = results.hosts[0].commands_aborted;
        assert!(aborted > 10, "{receiver}: {aborted} commands aborted");
        assert_eq!(discarded(receiver), Some(2 * aborted), "{receiver}");
        assert_eq!((discarded(other), discarded("fcf:0")), (Some(0), None), "{receiver}");
        // All frames have arrived, and all commands succeed when they are sent again.
        assert_eq!((all_lost(&results), results.totals.io.ios_failed), (0, 0), "{receiver}: {:?}", results.drops);
    }
}

/// Fibre Channel keeps the order, so its results have no such counter, also if a frame is lost.
#[test]
fn ports_without_fcoe_count_no_frames_out_of_order() {
    let results = labs::run(&labs::lab(
        "[run]\nduration = \"20ms\"\n[switch.sw]\n[host.h]\n[storage.s]\n[[link]]\nfrom = \"{h,s}\"\nto = \"sw\"\n\
         [workload.w]\nhosts = \"h\"\ntargets = \"s\"\n\
         [[fault]]\nkind = \"frame-loss\"\nlink = \"h-sw\"\nprobability = 0.01\nat = \"0s\"\n",
    ));
    assert!(all_lost(&results) > 0);
    let text = serde_json::to_string(&results.ports).expect("JSON");
    assert!(!text.contains("sequence_discards"), "{text}");
}

#[test]
fn the_same_lab_and_seed_give_the_same_results() {
    let run = || serde_json::to_string(&labs::run(&lab("25GbE", "8GFC", "", "", WRITES)).totals).expect("JSON");
    assert_eq!(run(), run());
}

/// Wireshark finds no malformed frame and no bad CRC. Discovery and the fabric login travel in FIP,
/// the rest in FCoE, all of them but the discovery of the VLAN in the VLAN.
#[needs("tshark")]
#[test]
fn a_capture_has_fip_discovery_and_logins_and_fcoe_frames_that_are_well_formed() {
    let mut lab = Lab::clone(&lab("10GbE", "16GFC", PFC, "", READS));
    (lab.run.duration, lab.run.warmup) = (Picos::from_ms(3), Picos(1));
    let lab = Arc::new(lab);
    let (file, _) = captured::capture(&lab, &Plane::Ethernet, 0, Window::default());
    let names = ["eth.type", "vlan.id", "_ws.malformed", "fcoe.crc.status", "fip.opcode", "_ws.col.Info"];
    let mut arguments = vec!["-T", "fields"];
    names.iter().for_each(|name| arguments.extend(["-e", *name]));
    let text = tshark::read_bytes(&file, &arguments);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let fip: Vec<(&str, &str)> = rows.iter().filter(|row| !row[4].is_empty()).map(|row| (row[4], row[5])).collect();
    let of_vlan = fip.iter().filter(|row| row.0 == "0x0004").count();
    insta::assert_debug_snapshot!(fip);
    assert_eq!(of_vlan, 2);
    let fcoe = rows.iter().filter(|row| !row[3].is_empty()).count();
    assert!(fcoe > 1_000, "{fcoe} frames of FCoE in {}", rows.len());
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| row[0] != "0x8808") {
        if row[4] == "0x0004" || row[0] == "0x88cc" {
            assert_eq!((row[1], row[2]), ("", ""), "frame {}: {row:?}", number + 1);
            continue;
        }
        assert_eq!((row[1], row[2]), ("100", ""), "frame {}: {row:?}", number + 1);
        assert!(row[3].is_empty() || row[3] == "1" || row[3] == "Good", "frame {}: {row:?}", number + 1);
    }
}

/// FC-BB-6: an FCF discards solicitations and advertisements of another FC-MAP or virtual fabric,
/// so that no virtual link comes up between their VE_Ports.
#[test]
fn forwarders_of_different_fabrics_do_not_join() {
    let path = format!("{}/../../examples/fcoe-ve-ports.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the example exists");
    let completed = |lab: &Arc<Lab>| labs::run(lab).totals.io.ios_completed;
    let same = text.replace("domain = ", "fcoe = { fc_map = 7 }\ndomain = ");
    let found = completed(&labs::lab(&same));
    assert!(found > 500, "{found}");
    assert_eq!(completed(&labs::lab(&text.replace("domain = 2", "fcoe = { fc_map = 7 }\ndomain = 2"))), 0);
    let mut lab = Lab::clone(&labs::lab(&text));
    lab.switches[1].virtual_fabric = Some(VirtualFabric { chassis: "box".to_owned(), id: 10, ports: vec![0, 1, 2] });
    assert_eq!(completed(&Arc::new(lab)), 0);
}
