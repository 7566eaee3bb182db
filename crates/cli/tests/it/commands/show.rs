//! `sanloom show`, as a user meets it.

use crate::commands::tool::Bench;
use insta::assert_snapshot;
use sanloom_api::view::{Attachment, FORMAT, Table, VERSION, View};

const EXAMPLES: [(&str, &str); 8] = [
    ("flow-control.toml", include_str!("../../../../../examples/vendor-flow-control.toml")),
    ("no-zoning.toml", include_str!("../../../../../examples/vendor-no-zoning.toml")),
    ("joins.toml", include_str!("../../../../../examples/vendor-joins.toml")),
    ("merge.toml", include_str!("../../../../../examples/merge-under-load.toml")),
    ("direct.toml", include_str!("../../../../../examples/direct-attached.toml")),
    ("private-loop.toml", include_str!("../../../../../examples/private-loop.toml")),
    ("public-loop.toml", include_str!("../../../../../examples/public-loop.toml")),
    ("private-ports.toml", include_str!("../../../../../examples/private-ports.toml")),
];

const TABLES: [&str; 8] = ["switch", "flogi", "ns", "zone", "fabric", "routes", "ports", "nodes"];

fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    for (file, text) in EXAMPLES {
        bench.write(file, text);
    }
    bench
}

fn view(bench: &Bench, words: &str) -> View {
    let ran = bench.run(&format!("show {words} --json"));
    assert_eq!(ran.code, 0, "{words}: {}", ran.stderr);
    let view: View = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((view.format.as_str(), view.version), (FORMAT, VERSION), "{words}");
    view
}

/// State and reason of each end of an ISL.
fn isls(view: View) -> Vec<(String, String)> {
    let Table::Fabric(fabric) = view.table else { panic!("another table: {view:?}") };
    let isls = fabric.switches.into_iter().flat_map(|switch| switch.isls);
    isls.map(|isl| (isl.state, isl.reason.unwrap_or_default())).collect()
}

#[test]
fn a_lab_without_a_switch_shows_that_it_has_none() {
    let bench = bench("show-empty");
    bench.write("empty.toml", "");
    for table in ["switch", "fabric"] {
        let ran = bench.run(&format!("show {table} empty.toml"));
        assert!(ran.code == 0 && ran.stdout.ends_with("there is no switch\n"), "{table}: {}{}", ran.stdout, ran.stderr);
    }
    let topology = bench.run("check empty.toml").stdout;
    assert!(topology.contains("Fabrics  none\n"), "{topology}");
}

#[test]
fn explains_times_below_zero() {
    let text = bench("show-since").run("show flogi tiny.toml").stdout;
    assert!(text.contains(" logged in\nTimes below zero are before the workloads began.\n"), "{text}");
}

#[test]
fn shows_the_reason_why_switches_of_two_vendors_do_not_join() {
    let bench = bench("show-vendors");
    assert_snapshot!("fabric_flow_control", bench.run("show fabric flow-control.toml").snapshot());
    assert_snapshot!("fabric_no_zoning", bench.run("show fabric no-zoning.toml").snapshot());
    assert_snapshot!("fabric_joins", bench.run("show fabric joins.toml").snapshot());
    let joined = "fabric flow-control.toml --set switch.silkworm3800.fabric.flow_control=vendor-first";
    assert_eq!(isls(view(&bench, joined)), [("up".to_owned(), String::new()), ("up".to_owned(), String::new())]);
}

#[test]
fn shows_each_table_for_people_and_for_programs() {
    let bench = bench("show-tables");
    for table in TABLES {
        assert_snapshot!(format!("show_{table}"), bench.run(&format!("show {table} joins.toml")).snapshot());
        let json = bench.run(&format!("show {table} joins.toml --json")).stdout;
        let named: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&named["view"], &named["of"]), (&table.into(), &"vendor-joins".into()));
        view(&bench, &format!("{table} joins.toml"));
    }
}

#[test]
fn shows_the_requested_time_and_switch() {
    let bench = bench("show-moments");
    for (at, principals) in [("800ms", 2), ("2s", 1)] {
        let view = view(&bench, &format!("switch merge.toml --at {at}"));
        let Table::Switch(table) = view.table else { panic!("another table: {view:?}") };
        assert_eq!(table.switches.iter().filter(|row| row.principal).count(), principals, "at {at}");
    }
    let one = view(&bench, "ns merge.toml --at 6s --switch b2");
    let Table::Ns(names) = one.table else { panic!("another table: {one:?}") };
    assert_eq!((names.switch.as_str(), names.objects.len()), ("b2", 4), "those of the other fabric, too");
    let unknown = bench.run("show switch merge.toml --switch b3");
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("the lab has no switch `b3`; it has a1, a2, b1, b2"), "{}", unknown.stderr);
}

#[test]
fn shows_how_ports_of_hosts_and_storage_are_attached() {
    let bench = bench("show-nodes");
    // A cable of the direct link and a disk of the public loop are pulled at these times.
    for (name, at) in
        [("direct", " --at 600ms"), ("private-loop", ""), ("public-loop", ""), ("public-loop", " --at 500ms")]
    {
        let text = bench.run(&format!("show nodes {name}.toml{at}")).snapshot();
        assert_snapshot!(format!("nodes_{name}{}", at.replace(" --", "_").replace(' ', "_")), text);
    }
}

#[test]
fn devices_of_a_public_loop_are_in_the_name_server_and_in_zones() {
    let bench = bench("show-loop");
    let Table::Nodes(nodes) = view(&bench, "nodes public-loop.toml").table else { panic!("nodes") };
    let on_loop: Vec<_> = nodes.nodes.iter().filter(|row| row.attachment == Some(Attachment::Loop)).collect();
    assert_eq!(on_loop.len(), 3);
    let Table::Ns(names) = view(&bench, "ns public-loop.toml").table else { panic!("ns") };
    let Table::Zone(zones) = view(&bench, "zone public-loop.toml").table else { panic!("zone") };
    let online: Vec<_> = zones.zones[0].members.iter().flat_map(|member| &member.online).collect();
    for row in on_loop {
        let (id, al_pa) = (row.port_id.as_deref().expect("logged in"), row.al_pa.as_deref().expect("on the loop"));
        assert!(id.ends_with(al_pa), "{id} has the AL_PA {al_pa}");
        assert!(names.objects.iter().any(|object| object.port_id == id && object.port_name == row.port_name), "{id}");
        assert!(online.iter().any(|port| port.port_id == id), "{id}");
    }
}

#[test]
fn private_ports_of_a_public_loop_have_an_al_pa_and_no_name_server_entry() {
    let bench = bench("show-private-ports");
    let Table::Nodes(nodes) = view(&bench, "nodes private-ports.toml").table else { panic!("nodes") };
    let Table::Ns(names) = view(&bench, "ns private-ports.toml").table else { panic!("ns") };
    for row in nodes.nodes.iter().filter(|row| row.attachment == Some(Attachment::Loop)) {
        let is_private = ["recorder", "scratch"].contains(&row.node.as_str());
        let (id, al_pa) = (row.port_id.as_deref().expect("an address"), row.al_pa.as_deref().expect("on the loop"));
        assert_eq!(id == format!("0000{al_pa}"), is_private, "{row:?}");
        let is_registered = names.objects.iter().any(|object| object.port_name == row.port_name);
        assert_eq!(is_registered, !is_private, "{row:?}");
    }
    let Table::Nodes(of_edge) = view(&bench, "nodes private-ports.toml --switch edge").table else { panic!("nodes") };
    let of_edge: Vec<&str> = of_edge.nodes.iter().map(|row| row.node.as_str()).collect();
    assert_eq!(of_edge, ["server", "disk1", "disk2"]);
}

#[test]
fn nodes_of_a_switch_are_those_that_reach_it_directly_or_by_a_loop() {
    let bench = bench("show-nodes-of");
    let rows = |words: &str| {
        let Table::Nodes(nodes) = view(&bench, words).table else { panic!("{words}") };
        nodes.nodes.into_iter().map(|row| row.port).collect::<Vec<_>>()
    };
    assert_eq!(rows("nodes public-loop.toml --switch edge"), rows("nodes public-loop.toml"));
    let (of_b2, all) = (rows("nodes merge.toml --switch b2"), rows("nodes merge.toml"));
    assert!(!of_b2.is_empty() && of_b2.len() < all.len(), "{of_b2:?} of {all:?}");
}

/// Tables of the planes at a time of a run, as text and as JSON.
#[test]
fn planes_of_a_simulation_are_shown_at_a_time() {
    let bench = Bench::new("show-planes");
    for (table, name, parts) in [
        ("links", "iscsi-ethernet", ["server2-tor1", "25GbE", " up"]),
        ("ethernet", "iscsi-ethernet", ["tor2", "server1:eth1", "array:eth0"]),
        ("connections", "iscsi-ethernet", ["server2:eth1", "array:eth1", "ESTABLISHED"]),
        ("infiniband", "infiniband-srp", ["server1:ib1", "array:ib0", "ib2:0"]),
        ("channels", "infiniband-srp", ["server2:ib0", "array:ib1", "logged in"]),
    ] {
        let lab = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = bench.run(&format!("show {table} {lab} --at 2ms"));
        assert_eq!(text.code, 0, "{}", text.stderr);
        for part in parts {
            assert!(text.stdout.contains(part), "{table}: no {part} in\n{}", text.stdout);
        }
        let json = bench.run(&format!("show {table} {lab} --at 2ms --json")).stdout;
        let view: View = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{table}: {error} in {json}"));
        let again = serde_json::to_value(&view).expect("JSON");
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(&json).expect("JSON"), "{table}");
    }
}
