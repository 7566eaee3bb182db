//! DCBX: LLDP frames on the Ethernet, the settings on which the ends of a link agree, and links
//! whose ends do not.

use super::{PFC, READS};
use crate::captured::{self, Plane};
use crate::labs;
use sanloom_api::results::FindingKind;
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_sim::capture::Window;
use sanloom_sim::net::Observed;
use sanloom_sim::net::ethernet::ObservedKind;
use sanloom_sim::run::{Blind, Observer, Options, simulate};
use sanloom_sim::world::World;
use sanloom_test_support::{needs, tshark};
use std::sync::Arc;

/// Settings in force at the sender of a line: lossless priorities, shares of the priorities, and
/// whether the peer runs DCBX.
fn in_force(world: &World, line: u32) -> Option<(u8, [u8; 8], bool)> {
    let (settings, peer) = world.lldp.as_ref()?.agent(line)?.in_force();
    let shares = settings.traffic.classes.map(|class| settings.traffic.bandwidth_percent[usize::from(class)]);
    Some((settings.lossless, shares, peer))
}

/// Returns the lab of this file for a short time, with other keys of the switch and of the virtual
/// link.
fn short(switch: &str, link: &str) -> Arc<Lab> {
    let mut lab = Lab::clone(&super::lab("10GbE", "16GFC", switch, link, READS));
    (lab.run.duration, lab.run.warmup) = (Picos::from_ms(2), Picos(1));
    Arc::new(lab)
}

/// Adapters are willing, unless their virtual link has no `pfc`. Switches keep their settings. A
/// switch without PFC and shares has no agent.
#[test]
fn willing_ends_take_over_the_settings_of_the_other_end() {
    let half = [50, 0, 0, 50, 0, 0, 0, 0];
    let strict = [0; 8];
    let both = "pfc = [3, 4]\nets = { 3 = 50, 0 = 50 }";
    for (switch, link, adapter, port) in [
        (PFC, "", Some((0b1000, strict, true)), Some((0b1000, strict, true))),
        (both, "", Some((0b1_1000, half, true)), Some((0b1_1000, half, true))),
        (both, ", pfc = false", Some((0b1_0000, half, true)), Some((0b1_1000, half, true))),
        ("ets = { 3 = 50, 0 = 50 }", "", Some((0, half, true)), Some((0, half, true))),
        ("", "", None, None),
    ] {
        let finished = simulate(&short(switch, link), &Options::default(), &mut Blind);
        labs::check(&finished);
        // Both Ethernet links go from an adapter to the switch.
        for line in [0, 2] {
            let found = [line, line + 1].map(|line| in_force(&finished.world, line));
            assert_eq!(found, [adapter, port], "{switch:?}, {link:?}, line {line}");
        }
    }
}

struct Times(Vec<u64>);

impl Observer for Times {
    fn observed(&mut self, world: &World, _: &[Observed]) {
        for item in world.net.ethernet.observed().iter().filter(|item| item.line == 0) {
            if let ObservedKind::Frame { packet, .. } = item.kind
                && packet.is_lldp()
            {
                self.0.push(item.at_ps / 1_000_000_000);
            }
        }
    }
}

/// An LLDPDU leaves at link-up. For a new peer four more follow at intervals of a second, and then
/// one every 30 s (IEEE 802.1AB, txFastInit, msgFastTx and msgTxInterval).
#[test]
fn lldp_leaves_at_link_up_and_every_30_s() {
    let fault = "[[fault]]\nkind = \"link-down\"\nlink = \"server-tor\"\nat = \"40s\"\nfor = \"1s\"";
    let text = super::text("10GbE", "16GFC", PFC, "", &format!("{READS}\n{fault}")).replace("400ms", "80s");
    let mut lab = Lab::clone(&labs::lab(&text));
    lab.workloads.iter_mut().for_each(|workload| workload.start = Picos::from_ms(79_999));
    let mut times = Times(Vec::new());
    let options = Options { watch_ethernet: vec![0], ..Options::default() };
    let finished = simulate(&Arc::new(lab), &options, &mut times);
    labs::check(&finished);
    let start_ms = finished.world.start_ps / 1_000_000_000;
    let up_ms = start_ms + 41_000;
    let after = |up: u64| [up, up, up + 1_000, up + 2_000, up + 3_000, up + 33_000];
    assert_eq!(times.0, [after(0), after(up_ms)].concat());
}

/// `check` warns of the same links as the results report, and once of each link.
#[test]
fn a_mismatch_between_switches_is_a_finding_and_a_warning() {
    let equal = "pfc = 3\nets = { 3 = 50, 0 = 50 }";
    for (other, expected) in [
        (equal, 0),
        ("pfc = 4\nets = { 3 = 50, 0 = 50 }", 1),
        // Shares are those of one direction, so they may differ.
        ("pfc = 3\nets = { 3 = 40, 0 = 60 }", 0),
        ("ets = { 3 = 40, 0 = 60 }", 1),
        ("pfc = 3", 0),
    ] {
        let more = format!(
            "{READS}\n[ethernet_switch.far]\n{other}\n[host.other]\n\
             [[link]]\nfrom = \"other\"\nto = \"far\"\nrate = \"10GbE\"\nmtu = 2500\n\
             [[link]]\nname = \"trunk\"\nfrom = \"far\"\nto = \"tor\"\nrate = \"10GbE\"\nmtu = 2500\n"
        );
        let text = super::text("10GbE", "16GFC", equal, "", &more);
        let loaded =
            sanloom_lab::load("test.toml", &text, &[]).unwrap_or_else(|error| panic!("{}", error.render(false)));
        let warned = loaded.warnings.iter().filter(|warning| warning.code == "pause-mismatch").count();
        let mut lab = loaded.lab;
        (lab.run.duration, lab.run.warmup) = (Picos::from_ms(2), Picos(1));
        let results = labs::run(&Arc::new(lab));
        let findings = results.findings.iter().filter(|finding| finding.kind == FindingKind::DcbMismatch);
        let culprits: Vec<&str> = findings.filter_map(|finding| finding.culprit.as_deref()).collect();
        assert_eq!((warned, culprits), (expected, vec!["trunk"; expected]), "{other}");
    }
}

/// Wireshark reads the LLDPDUs of both ends.
#[needs("tshark")]
#[test]
fn tshark_reads_the_tlvs_of_dcbx() {
    let (file, _) =
        captured::capture(&short("pfc = 3\nets = { 3 = 50, 0 = 50 }", ""), &Plane::Ethernet, 0, Window::default());
    let names = ["eth.dst", "vlan.id", "_ws.malformed", "lldp.time_to_live", "lldp.tlv.system.name"];
    let mut arguments = vec!["-Y", "lldp", "-T", "fields"];
    names.iter().for_each(|name| arguments.extend(["-e", *name]));
    let text = tshark::read_bytes(&file, &arguments);
    let mut rows: Vec<&str> = text.lines().collect();
    rows.sort_unstable();
    rows.dedup();
    let row = |system: &str| format!("01:80:c2:00:00:0e\t\t\t121\t{system}");
    assert_eq!(rows, [row("server"), row("tor")]);
    let details = tshark::read_bytes(&file, &["-Y", "lldp", "-V"]);
    for part in ["Priority Flow Control", "ETS Configuration", "ETS Recommendation", "Application Protocol"] {
        assert!(details.contains(part), "no {part} in\n{details}");
    }
}
