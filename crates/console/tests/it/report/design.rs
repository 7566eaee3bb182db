//! The topology report on the terminal.

use sanloom_console::report::terminal::design;
use sanloom_lab::topology::Report;

const EXAMPLES: [(&str, &str); 5] = [
    ("core-edge", include_str!("../../../../../examples/core-edge.toml")),
    ("dual-fabric", include_str!("../../../../../examples/dual-fabric.toml")),
    ("fabric-1024", include_str!("../../../../../examples/fabric-1024.toml")),
    ("switch-reset", include_str!("../../../../../examples/switch-reset.toml")),
    ("trunk-vs-spray", include_str!("../../../../../examples/trunk-vs-spray.toml")),
];

fn report(text: &str) -> Report {
    let loaded = sanloom_lab::load("lab.toml", text, &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    Report::of(&loaded.lab, &loaded.isolated)
}

/// The lines of each report, and the rows of the table of paths: hosts, storage, pairs, port pairs,
/// paths without a common link, shortest routes, and links of a route.
#[test]
fn topology_reports_have_the_expected_layout() {
    for (name, text) in EXAMPLES {
        let shown = design::render(&report(text), 400);
        let has = |line: &str| shown.lines().any(|shown| shown == line);
        let has_row = |row: &str| shown.lines().any(|shown| shown.split_whitespace().eq(row.split_whitespace()));
        let (_, lines, rows) = SHOWN.iter().find(|(of, ..)| *of == name).expect(name);
        for line in *lines {
            assert!(has(line), "{name}: {line}\n{shown}");
        }
        for row in *rows {
            assert!(has_row(row), "{name}: {row}\n{shown}");
        }
    }
}

#[test]
fn isolated_links_are_named() {
    let text = "[switch.a]\ndomain = 1\n[switch.b]\ndomain = 2\nfabric = { flow_control = \"vendor\" }\n\
        [[isl]]\nfrom = \"a\"\nto = \"b\"\nname = \"refused\"\n[host.h]\n[storage.d]\n\
        [[link]]\nfrom = \"h\"\nto = \"a\"\n[[link]]\nfrom = \"d\"\nto = \"a\"\n\
        [workload.w]\nhosts = \"h\"\ntargets = \"d\"\n";
    let shown = design::render(&report(text), 100);
    assert!(shown.contains("\n         isolated: refused\n"), "{shown}");
}

/// Two cables from `a` to `b`, each for other VLANs, and a way around. The host and the storage use
/// VLAN 20.
#[test]
fn links_between_the_same_switches_are_told_apart_by_their_vlans() {
    let lab = |cables: &[&str]| {
        let isl = |from: &str, to: &str, more: &str| {
            format!("[[isl]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10GbE\"\n{more}\n")
        };
        let direct: String = cables.iter().map(|vlans| isl("a", "b", &format!("vlans = [{vlans}]"))).collect();
        format!(
            "[ethernet_switch.\"{{a,b,c}}\"]\n{direct}{}{}[host.h]\niscsi = {{ vlan = 20 }}\n\
            [storage.s]\niscsi = {{}}\n[[link]]\nfrom = \"h\"\nto = \"a\"\nrate = \"25GbE\"\n\
            [[link]]\nfrom = \"s\"\nto = \"b\"\nrate = \"25GbE\"\n\
            [workload.w]\nhosts = \"h\"\ntargets = \"s\"\n",
            isl("a", "c", ""),
            isl("c", "b", "")
        )
    };
    let rows = |cables: &[&str]| -> Vec<String> {
        let shown = design::render(&report(&lab(cables)), 200);
        shown.lines().filter(|line| line.contains(" MB/s each: ")).map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(
        rows(&["10", "20,30,31,32"]),
        [
            "2.5:1  1 × 1 link, 1250 MB/s each: a-b (VLANs 20/30..32)",
            "unused  3 × 1 link, 1250 MB/s each: a-b (VLAN 10), a-c, b-c",
        ]
    );
    // Without others between the same switches, and as one group, links need no VLANs.
    assert_eq!(
        rows(&["20", "20"]),
        ["1.25:1  1 × 2 links, 2500 MB/s each: a-b", "unused  2 × 1 link, 1250 MB/s each: a-c, b-c"]
    );
}

type Shown = (&'static str, &'static [&'static str], &'static [&'static str]);

const SHOWN: [Shown; 5] = [
    (
        "core-edge",
        &[
            "Nodes    5 switches, 8 hosts with 8 HBAs, 8 storage systems with 8 ports and 8 LUNs",
            "Links    24: 16 to nodes, 8 ISLs",
            "Fabrics  1: core, edge{1..4}",
            "Zones    none in force: every port may access every other port",
            "Oversubscription of ISLs: bandwidth of the ports whose workloads cross them (smaller side) to their own",
            "        2:1  4 × 2 links, 425 MB/s each: edge{1..4}-core",
            "8 hosts without two paths that share no link: server{1..8}",
            "  3 switches (8 hosts each): core, edge3, edge4",
            "  2 switches (4 hosts each): edge1, edge2",
            "  8 links (8 hosts each): disk{1..4}-edge4, disk{5..8}-edge3",
            "  8 links (1 host each): server{1..4}-edge1, server{5..8}-edge2",
            "  8 HBAs (1 host each): server{1..8}:0",
            "  8 storage ports (8 hosts each): disk{1..8}:0",
        ],
        &["server{1..8} disk{1..8} 64 1 1 4 4"],
    ),
    (
        "dual-fabric",
        &[
            "Nodes    6 switches, 4 hosts with 8 HBAs, 4 storage systems with 8 ports and 4 LUNs",
            "Links    24: 16 to nodes, 8 ISLs",
            "Fabrics  2: coreA, edgeA1, edgeA2 | coreB, edgeB1, edgeB2",
            "Zones    none in force: every port may access every other port",
            "Oversubscription of ISLs: bandwidth of the ports whose workloads cross them (smaller side) to their own",
            "        1:1  4 × 2 links, 3400 MB/s each: coreA-edgeA1, coreA-edgeA2, coreB-edgeB1, coreB-edgeB2",
            "Every host has two paths without a common link to all its storage.",
            "No single point of failure.",
        ],
        &["server{1..4} disk{1..4} 16 2 2 8 4"],
    ),
    (
        "fabric-1024",
        &[
            "Nodes    65 switches, 512 hosts with 512 HBAs, 512 storage systems with 512 ports and 512 LUNs",
            "Links    1536: 1024 to nodes, 512 ISLs",
            "Fabrics  1: core, edge{1..64}",
            "Zones    32 zones in force, every port is in one",
            "Oversubscription of ISLs: bandwidth of the ports whose workloads cross them (smaller side) to their own",
            "        2:1  64 × 8 links, 1700 MB/s each: edge{1..64}-core",
            "512 hosts without two paths that share no link: server{1..512}",
            "  1 switch (512 hosts): core",
            "  32 switches (256 hosts each): edge{33..64}",
            "  32 switches (16 hosts each): edge{1..32}",
            "  512 HBAs (1 host each): server{1..512}:0",
            "  512 storage ports (16 hosts each): disk{1..512}:0",
        ],
        &["server{1..512} disk{1..512} 8192 1 1 64 4"],
    ),
    (
        "switch-reset",
        &[
            "Nodes    4 switches, 4 hosts with 8 HBAs, 4 storage systems with 8 ports and 4 LUNs",
            "Links    20: 16 to nodes, 4 ISLs",
            "Fabrics  1: core1, core2, edge1, edge2",
            "Zones    none in force: every port may access every other port",
            "Oversubscription of ISLs: bandwidth of the ports whose workloads cross them (smaller side) to their own",
            "        4:1  4 × 1 link, 1700 MB/s each: edge1-core1, edge1-core2, edge2-core1, edge2-core2",
            "Every host has two paths without a common link to all its storage.",
            "  2 switches (4 hosts each): edge1, edge2",
        ],
        &["server{1..4} disk{1..4} 16 4 2 8 4"],
    ),
    (
        "trunk-vs-spray",
        &[
            "Nodes    4 switches, 8 hosts with 8 HBAs, 8 storage systems with 8 ports and 8 LUNs",
            "Links    24: 16 to nodes, 8 ISLs",
            "Fabrics  2: trunk1, trunk2 | spray1, spray2",
            "Zones    none in force: every port may access every other port",
            "Oversubscription of ISLs: bandwidth of the ports whose workloads cross them (smaller side) to their own",
            "        2:1  2 × 4 links, 1700 MB/s each: spray1-spray2, trunk1-trunk2",
            "8 hosts without two paths that share no link: server{1..8}",
            "  4 switches (4 hosts each): spray1, spray2, trunk1, trunk2",
            "  8 links (4 hosts each): disk{1..4}-trunk2, disk{5..8}-spray2",
            "  8 links (1 host each): server{1..4}-trunk1, server{5..8}-spray1",
            "  8 HBAs (1 host each): server{1..8}:0",
            "  8 storage ports (4 hosts each): disk{1..8}:0",
        ],
        &["server{1..4} disk{1..4} 16 1 1 1 3", "server{5..8} disk{5..8} 16 1 1 4 3"],
    ),
];

/// Hosts with names that make no ranges, each with two links.
fn scattered(hosts: usize) -> String {
    let mut text = String::from("[switch.\"sw{a,b}\"]\n[storage.\"array{1..4}\"]\nports = 2\n");
    for host in 0..hosts {
        text += &format!("[host.esx{:03}x]\nhbas = 2\n", host * 2);
    }
    for (port, switch) in [(0, "swa"), (1, "swb")] {
        let hosts = (0..hosts).map(|host| format!("esx{:03}x", host * 2));
        for node in hosts.chain(["array{1..4}".to_owned()]) {
            text += &format!("[[link]]\nfrom = \"{node}:{port}\"\nto = \"{switch}\"\n");
        }
    }
    text
}

#[test]
fn a_wide_terminal_shows_more_names_and_a_narrow_one_fits() {
    let report = report(&scattered(30));
    let [narrow, wide] = [80, 300].map(|width| design::render(&report, width));
    for (text, width) in [(&narrow, 80), (&wide, 300)] {
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest <= width, "{longest} columns of {width}:\n{text}");
    }
    let names = |text: &str| text.matches("esx").count();
    assert!(names(&wide) > names(&narrow), "{wide}\n{narrow}");
    // Without a limit, no list of a usual lab is cut.
    let whole = design::render(&report, usize::MAX);
    assert!(whole.contains("esx058x") && !whole.contains(" more"), "{whole}");
}

#[test]
fn a_wide_terminal_shows_every_port_of_a_zone() {
    let hosts: Vec<String> = (0..30).map(|host| format!("esx{:03}x", host * 2)).collect();
    let members = |hosts: &[String]| hosts.iter().map(|host| format!("\"{host}:0\", ")).collect::<String>();
    let zones = format!("[[zone]]\nname = \"z{{1..2}}\"\nmembers = [{}\"array{{1..2}}:0\"]\n", members(&hosts));
    let (_, report) = sanloom_lab::check("lab.toml", &(scattered(30) + &zones), &[]).unwrap();
    let line = |width: usize| {
        let shown = design::render(&report, width);
        shown.lines().find(|line| line.starts_with("    z1: ")).unwrap_or_default().to_owned()
    };
    assert!(hosts.iter().all(|host| line(400).contains(host.as_str())), "{}", line(400));
    assert_eq!(line(80).matches(" more").count(), 1, "{}", line(80));
}

#[test]
fn ports_in_no_zone_of_a_virtual_fabric_without_zones_are_open() {
    let text = include_str!("../../../../../examples/virtual-fabrics.toml");
    let with = text.replace("[zoning]\ndefault = \"open\"\n", "");
    assert_ne!(with, text);
    let shown = design::render(&report(&with), 100);
    assert!(shown.contains("\nZones    1 zone in force, 3 ports in none: open to each other\n"), "{shown}");
    let closed = text.replace("default = \"open\"", "default = \"closed\"");
    let lab = sanloom_lab::load("lab.toml", &closed, &[]);
    assert!(lab.is_err(), "servers of the closed fabric without zones reach no storage");
}
