//! Links between switches on the ways of VLANs, and behind gateways.

use sanloom_lab::topology::{IslGroup, Report};

/// Returns the report of a lab, and its warnings of oversubscription.
fn check(text: &str) -> (Report, usize) {
    let checked = sanloom_lab::check("x.toml", text, &[]);
    let (loaded, report) = checked.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let warnings = loaded.warnings.iter().filter(|warning| warning.code == "isl-oversubscription").count();
    (report, warnings)
}

/// Returns the switches of each group of links with the ratio of its ports to it.
fn ratios(groups: &[IslGroup]) -> Vec<(String, f64)> {
    groups.iter().map(|group| (group.switches.join("-"), group.oversubscription)).collect()
}

fn expect(groups: &[IslGroup], expected: &[(&str, f64)]) {
    let expected: Vec<(String, f64)> = expected.iter().map(|(name, ratio)| ((*name).to_owned(), *ratio)).collect();
    assert_eq!(ratios(groups), expected);
}

/// Three switches in a ring, with a host at `a` and storage at `b`. The direct cable or cables
/// accept the given VLANs.
fn ring(cables: &[&str]) -> String {
    let isl = |ends: [&str; 2], more: &str| {
        format!("[[isl]]\nfrom = \"{}\"\nto = \"{}\"\nrate = \"10GbE\"\n{more}\n", ends[0], ends[1])
    };
    let direct: String = cables.iter().map(|vlans| isl(["a", "b"], &format!("vlans = [{vlans}]"))).collect();
    let around = isl(["a", "c"], "") + &isl(["c", "b"], "");
    format!(
        "[ethernet_switch.\"{{a,b,c}}\"]\npfc = 3\n{direct}{around}\
        [[link]]\nfrom = \"h\"\nto = \"a\"\nrate = \"10GbE\"\nmtu = 2500\n\
        [[link]]\nfrom = \"s\"\nto = \"b\"\nrate = \"10GbE\"\nmtu = 2500\n[workload.w]\nhosts = \"h\"\ntargets = \"s\"\n"
    )
}

#[test]
fn a_session_loads_the_links_that_its_vlan_may_use() {
    let nodes = "[host.h]\niscsi = { vlan = 20 }\n[storage.s]\niscsi = {}\n";
    let groups = |cables: &[&str]| check(&format!("{}{nodes}", ring(cables))).0.ethernet_trunks;
    expect(&groups(&["10"]), &[("a-b", 0.0), ("a-c", 1.0), ("b-c", 1.0)]);
    expect(&groups(&["10", "20"]), &[("a-b", 0.0), ("a-b", 1.0), ("a-c", 0.0), ("b-c", 0.0)]);
    // Half of the frames take each of the cables that accept VLAN 20, whatever else they accept.
    expect(&groups(&["10,20", "20"]), &[("a-b", 0.5), ("a-b", 0.5), ("a-c", 0.0), ("b-c", 0.0)]);
}

#[test]
fn a_virtual_link_loads_the_links_that_its_vlan_may_use() {
    let nodes = "[switch.fcf]\n[host.h]\n[storage.s]\n\
        [[link]]\nfrom = \"fcf\"\nto = \"b\"\nrate = \"10GbE\"\nmtu = 2500\n\
        [[link]]\nfrom = \"{h,s}\"\nto = \"fcf\"\nethernet = { vlan = 100 }\n";
    let (report, _) = check(&format!("{}{nodes}", ring(&["10"])));
    expect(&report.ethernet_trunks, &[("a-b", 0.0), ("a-c", 1.0), ("b-c", 1.0)]);
}

#[test]
fn windows_and_lossless_priorities_are_judged_on_the_way_of_the_vlan() {
    let reasons = |text: &str, code: &str| -> Vec<String> {
        let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap_or_else(|error| panic!("{}", error.render(false)));
        loaded.warnings.into_iter().filter(|warning| warning.code == code).map(|warning| warning.reason).collect()
    };
    // The way around is long, and VLAN 10 alone may use the short one.
    let session = |vlan: u32| {
        let long = ring(&["10"]).replacen("to = \"c\"\n", "to = \"c\"\nlength = \"2000km\"\n", 1);
        let far = long.replace("pfc = 3\n", "");
        reasons(&format!("{far}[host.h]\niscsi = {{ vlan = {vlan} }}\n[storage.s]\niscsi = {{}}\n"), "small-window")
    };
    assert_eq!([session(10).len(), session(20).len()], [0, 1]);
    // A switch without PFC is on the way around.
    let virtual_links = |vlan: u32| {
        let lossy = "[ethernet_switch.c]\n[ethernet_switch.\"{a,b}\"]\n";
        let lossy = ring(&["10"]).replace("[ethernet_switch.\"{a,b,c}\"]\n", lossy);
        let fcf = "[switch.fcf]\n[host.h]\n[storage.s]\n\
            [[link]]\nfrom = \"fcf\"\nto = \"b\"\nrate = \"10GbE\"\nmtu = 2500\n";
        let below = format!("[[link]]\nfrom = \"{{h,s}}\"\nto = \"fcf\"\nethernet = {{ vlan = {vlan} }}\n");
        reasons(&format!("{lossy}{fcf}{below}"), "lossy-fcoe")
    };
    assert_eq!(virtual_links(10), [""; 0]);
    assert!(virtual_links(20).iter().any(|reason| reason.contains("at `c`")), "{:?}", virtual_links(20));
}

#[test]
fn a_port_of_storage_counts_once_for_hosts_in_several_vlans() {
    let nodes = "[host.h]\niscsi = { vlan = 10 }\n[host.other]\niscsi = { vlan = 20 }\n[storage.s]\niscsi = {}\n\
        [[link]]\nfrom = \"other\"\nto = \"a\"\nrate = \"10GbE\"\nmtu = 2500\n\
        [workload.other]\nhosts = \"other\"\ntargets = \"s\"\n";
    let (report, _) = check(&format!("{}{nodes}", ring(&["10,20"])));
    // Two hosts on one side, one port of storage on the other.
    assert_eq!(report.ethernet_trunks[0].behind_bytes_per_s, [2.5e9, 1.25e9]);
}

/// A gateway between iSCSI and Fibre Channel, and its storage behind an ISL. In transparent mode
/// the host has a virtual port at the gateway.
fn gateway(isl: &str, mode: &str) -> String {
    format!(
        "[ethernet_switch.lan]\n[switch.\"{{a,b}}\"]\n[host.\"{{h,card}}\"]\n[storage.far]\n\
        [storage.gw]\niscsi = {{ portals = \"192.0.2.9:3260\" }}\n\
        gateway = {{ host = \"card\", target_port = \"far\", {mode} }}\n\
        [[link]]\nfrom = \"{{h,gw}}\"\nto = \"lan\"\nrate = \"10GbE\"\n\
        [[link]]\nfrom = \"card\"\nto = \"a\"\nrate = \"16GFC\"\n[[link]]\nfrom = \"far\"\nto = \"b\"\nrate = \"16GFC\"\n\
        [[isl]]\nfrom = \"a\"\nto = \"b\"\nrate = \"{isl}\"\n[workload.gw]\nhosts = \"h\"\ntargets = \"gw\"\n"
    )
}

#[test]
fn the_ports_of_a_gateway_and_of_the_storage_behind_it_load_the_isls_between_them() {
    let modes = ["mode = \"proxy\"", "mode = \"transparent\", forwarding = \"frame\", hosts = \"h\""];
    for mode in modes {
        for (isl, ratio, warned) in [("1GFC", 16.0, 1), ("16GFC", 1.0, 0)] {
            let (report, warnings) = check(&gateway(isl, mode));
            expect(&report.isl_groups, &[("a-b", ratio)]);
            assert_eq!(warnings, warned, "{isl}, {mode}");
        }
    }
    // Without a workload, no data cross the gateway.
    let idle = gateway("1GFC", modes[0]).replace("targets = \"gw\"", "targets = \"other\"");
    let other = "[storage.other]\niscsi = { portals = \"192.0.2.8:3260\" }\n\
        [[link]]\nfrom = \"other\"\nto = \"lan\"\nrate = \"10GbE\"\n";
    let (report, warnings) = check(&format!("{idle}{other}"));
    expect(&report.isl_groups, &[("a-b", 0.0)]);
    assert_eq!(warnings, 0);
}

#[test]
fn a_virtualization_switch_and_the_back_ends_in_use_load_the_links_between_them() {
    let volumes = "[ethernet_switch.\"{a,b}\"]\n[host.\"h{1..4}\"]\n[storage.sw]\nmedium = \"volumes\"\n\
        iscsi = { portals = \"192.0.2.1:3260\" }\n[pool.p]\n[pool.unused]\n\
        [volume.v]\npool = \"p\"\nsize = \"1GiB\"\nwidth = 2\nstorage = \"sw\"\nlun = 0\n\
        [[link]]\nfrom = \"h{1..4}\"\nto = \"a\"\nrate = \"25GbE\"\n\
        [[link]]\nfrom = \"sw\"\nto = \"a\"\nrate = \"25GbE\"\n[[isl]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1GbE\"\n\
        [workload.w]\nhosts = \"h{1..4}\"\ntargets = \"sw\"\n";
    let disk = |number: u32, pool: &str| {
        format!(
            "[storage.d{number}]\nlun_size = \"10GiB\"\niscsi = {{ portals = \"192.0.2.1{number}:3260\" }}\n\
            [[link]]\nfrom = \"d{number}\"\nto = \"b\"\nrate = \"25GbE\"\n[back_end.b{number}]\npool = \"{pool}\"\n\
            target = \"iqn.2026-11.example.sanloom:d{number}\"\nportals = \"192.0.2.1{number}:3260\"\n"
        )
    };
    let (report, warnings) = check(&format!("{volumes}{}{}{}", disk(1, "p"), disk(2, "p"), disk(3, "unused")));
    assert_eq!(report.ethernet_trunks[0].behind_bytes_per_s, [3.125e9, 6.25e9]);
    expect(&report.ethernet_trunks, &[("a-b", 25.0)]);
    assert_eq!(warnings, 1);
}
