//! Several LIDs of a port, and partitions.

use crate::labs;
use sanloom_api::results::Results;

/// Four hosts write to one array, over two spines whose links are slower than that of the array.
fn lab(lmc: u8) -> String {
    format!(
        r#"
[run]
duration = "40ms"
warmup = "10ms"
[subnet]
lmc = {lmc}
[infiniband_switch."leaf{{1..2}}"]
blocks = 512
[infiniband_switch."spine{{1..4}}"]
blocks = 512
[host."server{{1..4}}"]
[storage.array]
rate = "10M/s"
srp = {{ blocks = 512 }}
[[link]]
from = "server{{1..4}}"
to = "leaf1"
rate = "4xQDR"
[[link]]
from = "array"
to = "leaf2"
rate = "4xHDR"
[[isl]]
from = "leaf1"
to = "spine{{1..4}}"
rate = "4xQDR"
[[isl]]
from = "leaf2"
to = "spine{{1..4}}"
rate = "4xQDR"
[workload.writes]
hosts = "server{{1..4}}"
targets = "array"
size = "64KiB"
depth = 16
read_share = 0.0
"#
    )
}

/// All data for one LID take one path. With as many LIDs as spines, the channels of the four hosts
/// take a path each.
#[test]
fn several_lids_spread_the_channels_of_one_port_over_several_paths() {
    let line = super::lanes::LINE;
    for (lmc, paths) in [(0, 1.0), (1, 2.0), (2, 4.0)] {
        let found = labs::mb_per_s(&labs::run(&labs::lab(&lab(lmc))));
        assert!((found / (paths * line) - 1.0).abs() < 0.01, "LMC {lmc}: {found:.0} MB/s, not {paths} x {line:.0}");
    }
}

/// A lab whose host reaches its storage over Fibre Channel, and over InfiniBand in a partition.
fn partitions(host: u16, target: &str) -> Results {
    let text = format!(
        r#"
[run]
duration = "5s"
warmup = "0s"
[switch.fabric]
[infiniband_switch.ib]
[host.server]
srp = {{ partition = {host} }}
[storage.array]
rate = "1k/s"
srp = {{ partitions = {target} }}
[[link]]
from = "{{server,array}}"
to = "fabric"
rate = "4GFC"
[[link]]
from = "{{server,array}}"
to = "ib"
rate = "1xSDR"
[workload.reads]
hosts = "server"
targets = "array"
size = "4KiB"
depth = 1
"#
    );
    labs::run(&labs::lab(&text))
}

#[test]
fn a_target_refuses_hosts_outside_its_partitions_and_no_packet_of_them_arrives() {
    let refused = partitions(3, "[1, 2]");
    let channel = &refused.srp_channels[0];
    assert!(!channel.is_up && channel.requests == 0, "{channel:?}");
    // A login each 2 s. The first one is before the measurement.
    assert_eq!((channel.connections, channel.partition_refusals), (0, 2));
    assert!(refused.infiniband_links.iter().all(|link| link.forward.packets + link.backward.packets == 0));
    assert!(
        refused.totals.io.ios_failed == 0 && refused.totals.io.ios_completed > 1_000,
        "Fibre Channel serves the host"
    );
    let accepted = partitions(2, "[1, 2]");
    let channel = &accepted.srp_channels[0];
    assert!(channel.is_up && channel.requests > 0 && channel.partition_refusals == 0, "{channel:?}");
}
