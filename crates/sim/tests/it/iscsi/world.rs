//! Labs whose hosts reach their storage over iSCSI.

use crate::labs;
use sanloom_api::results::Results;

/// Hosts and one storage system at a switch of its own.
fn lab(hosts: usize, rate: &str, mtu: u32, more: &str, workload: &str) -> String {
    format!(
        r#"
[run]
duration = "2100ms"
warmup = "100ms"
[ethernet_switch.tor]
[host."server{{1..{hosts}}}"]
queue_depth = 64
{more}
[storage.array]
rate = "1M/s"
iscsi = {{ portals = "192.0.2.1:3260", tcp = {{ window = "3MiB", send_buffer = "4MiB" }} }}
[[link]]
from = "server{{1..{hosts}}}"
to = "tor"
rate = "{rate}"
mtu = {mtu}
[[link]]
from = "array"
to = "tor"
rate = "{rate}"
mtu = {mtu}
[workload.load]
hosts = "server{{1..{hosts}}}"
targets = "array"
{workload}
"#
    )
}

const READS: &str = "size = \"512KiB\"\ndepth = 16\nread_share = 1.0";
const WRITES: &str = "size = \"512KiB\"\ndepth = 16\nread_share = 0.0";

fn rate(results: &Results) -> f64 {
    results.totals.io.throughput_bytes_per_s / 1e6
}

/// The shares of TCP with time stamps, and a header of 48 bytes for each PDU of 256 KiB.
#[test]
fn large_requests_reach_the_share_of_the_line() {
    for (line, mtu, share) in [("1GbE", 1_500, 117.69), ("10GbE", 1_500, 1_176.9), ("10GbE", 9_000, 1_237.6)] {
        for workload in [READS, WRITES] {
            let results = labs::run(&labs::lab(&lab(1, line, mtu, "", workload)));
            let expected = share * 262_144.0 / (262_144.0 + 48.0);
            let found = rate(&results);
            assert!(
                (found / expected - 1.0).abs() < 0.005,
                "{line}, MTU {mtu}, {workload}: {found:.2}, not {expected:.2}"
            );
            assert_eq!(results.totals.io.ios_failed, 0);
        }
    }
}
