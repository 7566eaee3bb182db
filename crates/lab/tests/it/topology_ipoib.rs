//! Sessions of iSCSI that cross InfiniBand in the topology report.

use sanloom_lab::topology::Report;
use std::collections::BTreeSet;

const GATEWAY: &str = include_str!("../../../../examples/ipoib-gateway.toml");

/// Returns the names of the single points of failure.
fn points(text: &str) -> BTreeSet<String> {
    let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    Report::of(&loaded.lab, &loaded.isolated).single_points.into_iter().map(|point| point.name).collect()
}

/// Both planes of a session through a router cut its host off.
#[test]
fn every_part_on_the_way_through_a_router_is_a_single_point_of_failure() {
    let points = points(GATEWAY);
    for name in ["ib1", "lan", "server-ib1", "gateway-ib1", "gateway-lan", "disk-lan", "gateway:ib0", "gateway:eth0"] {
        assert!(points.contains(name), "{name} is not among {points:?}");
    }
}

/// A host that reaches its storage over both planes loses it by no part of either.
#[test]
fn a_session_over_ipoib_is_a_second_path_beside_one_over_ethernet() {
    let text = "[ethernet_switch.lan]\n[infiniband_switch.ib]\n[host.h]\nipoib = {}\n\
        [storage.d]\niscsi = {}\nipoib = {}\n\
        [[link]]\nfrom = \"{h,d}\"\nto = \"lan\"\nrate = \"10GbE\"\n\
        [[link]]\nfrom = \"{h,d}\"\nto = \"ib\"\nrate = \"4xEDR\"\n[workload.w]\nhosts = \"h\"\ntargets = \"d\"\n";
    assert_eq!(points(text), BTreeSet::new());
    let apart = text.replace("[host.h]\nipoib = {}", "[host.h]\nipoib = { partition = 2 }");
    let left = points(&apart);
    assert!(left.contains("lan") && !left.contains("ib"), "{left:?}");
}
