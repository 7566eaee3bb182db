//! Findings about fabrics that differ from their labs: isolated links, rejected logins, hosts
//! without paths.

use crate::labs::{lab, lab_with, run};
use sanloom_api::results::{EventKind, Finding, FindingKind, Results};
use sanloom_api::view::Table;
use sanloom_sim::run::{Blind, world_at};
use sanloom_sim::view::{self, Which};

fn find(results: &Results, kind: FindingKind) -> Option<&Finding> {
    results.findings.iter().find(|finding| finding.kind == kind)
}

/// Returns a lab with a host at one switch and its storage at the other. `keys` are lines of the
/// second switch.
fn two_switches(keys: &str) -> String {
    format!(
        "[run]\nduration = \"300ms\"\n[switch.a]\n[switch.b]\n{keys}\n[host.h]\n[storage.d]\n\
         [[link]]\nfrom = \"h\"\nto = \"a\"\n[[link]]\nfrom = \"d\"\nto = \"b\"\n\
         [[isl]]\nname = \"bridge\"\nfrom = \"a\"\nto = \"b\"\n\
         [workload.w]\nhosts = \"h\"\ntargets = \"d\"\narrivals = \"constant 100/s\"\n"
    )
}

#[test]
fn an_isolated_link_and_the_hosts_behind_it_are_findings() {
    let results = run(&lab(&two_switches("fabric = { flow_control = \"vendor\" }")));
    let isolated = find(&results, FindingKind::IsolatedLink).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert!(isolated.title.contains("bridge") && isolated.title.contains("flow-control"), "{isolated:?}");
    assert!(isolated.detail.contains("no common flow control mode") && !isolated.remedy.is_empty(), "{isolated:?}");
    let pathless = find(&results, FindingKind::NoPath).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(pathless.victims.iter().map(|victim| victim.name.as_str()).collect::<Vec<_>>(), ["h"]);
    // The isolated link explains the stall, so there is no finding about an unexplained stall.
    assert!(find(&results, FindingKind::Stall).is_none(), "{:?}", results.findings);
    let event = results.events.iter().find(|event| event.kind == EventKind::Isolated);
    assert_eq!(event.map(|event| event.at_s), Some(0.0), "{:?}", results.events);
    assert!(results.switches.iter().any(|switch| switch.isolated_ports == 1));
}

#[test]
fn a_joined_fabric_has_no_finding_about_links_logins_or_paths() {
    let results = run(&lab(&two_switches("")));
    for kind in [FindingKind::IsolatedLink, FindingKind::LoginsRejected, FindingKind::NoPath] {
        assert!(find(&results, kind).is_none(), "{:?}", results.findings);
    }
    assert!(results.switches.iter().all(|switch| switch.logins_rejected.is_empty()));
}

/// The port name of a machine that moves is still in use at its old login.
#[test]
fn a_port_that_brings_a_used_name_is_blocked_and_shown() {
    let path = format!("{}/../../examples/npiv-migration.toml", env!("CARGO_MANIFEST_DIR"));
    let lab = lab_with(&std::fs::read_to_string(path).unwrap(), "", &["switch.*.duplicate_names=block"]);
    let shown = |at_ms: u64| {
        let world = world_at(&lab, Some(at_ms * 1_000_000_000), &mut Blind);
        let Table::Ports(ports) = view::of(&world, Which::Ports, None).table else { panic!("ports") };
        ports.ports.into_iter().filter(|row| row.blocked).map(|row| row.attached).collect::<Vec<_>>()
    };
    assert_eq!(shown(1_000), [""; 0]);
    assert_eq!(shown(1_200), ["hypervisor2:0"]);
    let results = run(&lab);
    assert_eq!(results.switches[1].logins_rejected.keys().collect::<Vec<_>>(), ["name"]);
    let moved = results.hosts.iter().find(|host| host.name == "vm2").unwrap();
    assert!(moved.longest_stall_s > 0.9, "it cannot log in any more: {moved:?}");
}

#[test]
fn rejected_logins_are_counted_by_reason() {
    let machines = |more: &str, keys: &str| {
        let text = format!(
            "[run]\nduration = \"200ms\"\n[switch.sw]\n{keys}\n[host.hypervisor]\n[host.\"vm{{1..5}}\"]\non = \"hypervisor\"\n\
             {more}\n[storage.d]\n[[link]]\nfrom = \"hypervisor\"\nto = \"sw\"\n[[link]]\nfrom = \"d\"\nto = \"sw\"\n\
             [workload.w]\nhosts = \"vm{{1..5}}\"\ntargets = \"d\"\narrivals = \"constant 100/s\"\n"
        );
        run(&lab(&text))
    };
    for (keys, reason, key) in [
        ("logins_per_port = 3", "port_limit", "logins_per_port"),
        ("logins_per_switch = 4", "switch_limit", "logins_per_switch"),
    ] {
        let results = machines("", keys);
        let counts: Vec<&str> = results.switches[0].logins_rejected.keys().map(String::as_str).collect();
        assert_eq!(counts, [reason], "{:?}", results.switches[0].logins_rejected);
        assert!(results.switches[0].logins_rejected[reason] >= 3);
        let finding = find(&results, FindingKind::LoginsRejected).unwrap_or_else(|| panic!("{:?}", results.findings));
        assert_eq!(finding.culprit.as_deref(), Some("sw"));
        // Untried advice is not printed: the cause names the limit.
        assert!(finding.detail.contains(key) && finding.remedy.is_empty(), "{finding:?}");
        // Two or three of the machines are logged in; the finding names the others.
        let pathless = find(&results, FindingKind::NoPath).unwrap_or_else(|| panic!("{:?}", results.findings));
        let lacking = 5 - results.hosts.iter().filter(|host| host.io.ios_completed > 0).count();
        assert_eq!(pathless.victims.len(), lacking);
    }
}
