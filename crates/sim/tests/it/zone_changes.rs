//! Changes of zones during I/O, and fabrics with different zones that are joined by a link.

use crate::labs::{lab, lab_with, run};
use sanloom_api::results::{EventKind, FindingKind, Results};
use sanloom_sim::run::{Blind, world_at};
use std::sync::Arc;

fn example(name: &str, sets: &[&str]) -> Results {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    run(&lab_with(&std::fs::read_to_string(path).unwrap(), "", sets))
}

fn changes(results: &Results) -> Vec<(f64, &str)> {
    let events = results.events.iter().filter(|event| event.kind == EventKind::ZoneChange);
    events.map(|event| (event.at_s, event.what.as_str())).collect()
}

#[test]
fn a_zone_change_takes_effect_at_once_and_only_for_affected_hosts() {
    let results = example("zone-change", &[]);
    let [(first, created), (second, removed)] = changes(&results)[..] else { panic!("{:?}", results.events) };
    assert!((0.3..0.302).contains(&first) && (0.7..0.702).contains(&second), "{first} {second}");
    assert_eq!(
        (created, removed),
        ("zones changed: new zone second", "zones changed: members removed from zone third")
    );
    let done = |host: usize| results.hosts[host].io.ios_completed;
    assert!(done(0) >= 498 && done(1) >= 490 && (340..=360).contains(&done(2)), "{} {} {}", done(0), done(1), done(2));
    assert!(results.findings.iter().all(|finding| finding.kind != FindingKind::ZonesUnchanged));
}

#[test]
fn zones_that_contradict_each_other_isolate_the_link_and_are_named() {
    let results = example("merge-zone-conflict", &[]);
    assert_eq!(changes(&results).len(), 2);
    let isolated = results.findings.iter().find(|finding| finding.kind == FindingKind::IsolatedLink);
    let isolated = isolated.unwrap_or_else(|| panic!("{:?}", results.findings));
    assert!(isolated.title.contains("zone-merge-failure") && isolated.detail.contains("shared"), "{isolated:?}");
    assert_eq!(results.totals.io.ios_failed, 0);
}

const RACE: &str = r#"
[run]
duration = "200ms"
[switch."sw{1..2}"]
[host.h]
[storage.d]
[[link]]
from = "h"
to = "sw1"
[[link]]
from = "d"
to = "sw2"
[[isl]]
name = "isl"
from = "sw1"
to = "sw2"
[workload.w]
hosts = "h"
targets = "d"
arrivals = "constant 100/s"
[[change]]
at = "50ms"
switch = "sw1"
action = "create"
zone = "z"
members = ["h", "d"]
"#;

/// Without sharing, ten thousand zones in 239 switches would not fit into memory.
#[test]
fn a_zone_change_is_in_force_at_every_switch() {
    let lab = lab_with(RACE, "", &[]);
    let world = world_at(&lab, Some(lab.run.duration.0), &mut Blind);
    let [one, other] = &world.control.switches[..] else { panic!("two switches") };
    let [one, other] = [one, other].map(|switch| switch.machine.zone_server().zones());
    assert_eq!(one.database().defined.zones.len(), 1);
    assert!(Arc::ptr_eq(&one.database().defined, &other.database().defined));
    assert!(Arc::ptr_eq(&one.index(), &other.index()));
}

#[test]
fn a_zone_change_at_a_stopped_switch_fails_and_is_reported() {
    let more = "[[fault]]\nat = \"40ms\"\nuntil = \"90ms\"\nkind = \"switch-reset\"\nswitch = \"sw1\"\n";
    let results = run(&lab_with(RACE, more, &[]));
    let finding = results.findings.iter().find(|finding| finding.kind == FindingKind::ZonesUnchanged);
    assert_eq!(finding.and_then(|finding| finding.culprit.as_deref()), Some("sw1"), "{:?}", results.findings);
    assert_eq!((results.switches[0].zone_changes, results.switches[0].zone_changes_refused), (0, 1));
}

#[test]
fn a_switch_without_zoning_refuses_changes_and_is_isolated_from_its_neighbour() {
    let path = format!("{}/../../examples/vendor-no-zoning.toml", env!("CARGO_MANIFEST_DIR"));
    let change = |at: u32, switch: &str| {
        format!(
            "[[change]]\nat = \"{at}ms\"\nswitch = \"{switch}\"\naction = \"create\"\nzone = \"new-{switch}\"\n\
             members = [\"server1\", \"disk1\"]\n"
        )
    };
    let more = change(90, "silkworm3800") + &change(100, "silkworm2800");
    let results = run(&lab_with(&std::fs::read_to_string(path).unwrap(), &more, &[]));
    let counts: Vec<(u64, u64)> =
        results.switches.iter().map(|switch| (switch.zone_changes, switch.zone_changes_refused)).collect();
    assert_eq!(counts, [(0, 1), (1, 0)], "{:?}", results.events);
    assert!(results.switches.iter().all(|switch| switch.isolated_ports == 1));
    let changes = changes(&results);
    assert!(changes.iter().any(|(_, what)| what.contains("does not support zoning")), "{changes:?}");
}

#[test]
fn committed_zones_survive_a_restart_of_the_switch() {
    let more = "[[fault]]\nat = \"80ms\"\nuntil = \"90ms\"\nkind = \"switch-reset\"\nswitch = \"sw1\"\n\
                [[change]]\nat = \"60ms\"\naction = \"delete\"\nzone = \"z\"\n\
                [[change]]\nat = \"150ms\"\naction = \"create\"\nzone = \"z\"\nmembers = [\"d\"]\n";
    // If the deleted zone had come back, its name would be in use.
    let results = run(&lab_with(RACE, more, &[]));
    assert_eq!(changes(&results).len(), 3, "{:?}", results.events);
    assert_eq!(results.switches[0].zone_changes, 3, "{:?}", results.events);
}

#[test]
fn fabrics_with_one_domain_are_isolated_or_reconfigured_as_configured() {
    let apart = example("domain-overlap", &[]);
    let isolated = apart.findings.iter().find(|finding| finding.kind == FindingKind::IsolatedLink);
    assert!(isolated.is_some_and(|finding| finding.title.contains("domain-overlap")), "{:?}", apart.findings);
    assert_eq!((apart.switches[0].domain, apart.switches[1].domain), (5, 5));
    let joined = example("domain-reconfigure", &[]);
    assert!(joined.switches.iter().all(|switch| switch.isolated_ports == 0));
    assert!(joined.switches[0].domain != 5 && joined.switches[1].domain == 5, "{:?}", joined.switches);
    assert!(joined.hosts.iter().all(|host| host.io.ios_completed > 2_000), "{:?}", joined.totals);
    assert_eq!(joined.totals.io.ios_failed, 0);
}

#[test]
fn a_switch_whose_insistent_domain_is_refused_stays_isolated() {
    let both = example("domain-reconfigure", &["switch.a.fabric.insistent=true"]);
    let isolated = both.findings.iter().find(|finding| finding.kind == FindingKind::IsolatedLink);
    assert!(isolated.is_some_and(|finding| finding.title.contains("domain-unavailable")), "{:?}", both.findings);
    assert_eq!((both.switches[0].domain, both.switches[1].domain), (5, 5));
    assert!(both.switches.iter().all(|switch| switch.isolated_ports == 1), "{:?}", both.switches);
    assert!(both.hosts.iter().all(|host| host.io.ios_completed > 2_000), "I/O continues in both: {:?}", both.totals);
}

#[test]
fn persistent_addresses_are_assigned_and_shown() {
    let path = format!("{}/../../examples/persistent-addresses.toml", env!("CARGO_MANIFEST_DIR"));
    let lab = lab(&std::fs::read_to_string(path).unwrap());
    let world = world_at(&lab, Some(lab.run.duration.0), &mut Blind);
    let view = sanloom_sim::view::of(&world, sanloom_sim::view::Which::Flogi, None);
    let sanloom_api::view::Table::Flogi(table) = view.table else { panic!("{view:?}") };
    let found: Vec<(&str, &str, bool)> =
        table.logins.iter().map(|row| (row.owner.as_str(), row.port_id.as_str(), row.persistent)).collect();
    let vm1 = found.iter().find(|row| row.0 == "vm1").map(|row| row.2);
    assert!(found.contains(&("server1", "010007", true)), "{found:?}");
    assert!(found.contains(&("vm2", "0100f0", true)), "{found:?}");
    assert_eq!(vm1, Some(false), "{found:?}");
    assert!(found.iter().any(|row| row.0 == "disk1" && row.2), "{found:?}");
}
