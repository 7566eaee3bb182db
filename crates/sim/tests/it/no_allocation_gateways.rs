//! Commands of gateways allocate nothing once a run is warm.

use crate::labs;

/// A host that reaches an array of Fibre Channel through a gateway.
fn lab(transport: &str, grain: &str, read_share: &str) -> String {
    let (plane, storage, rate) = match transport {
        "srp" => ("[infiniband_switch.net]", "srp = {}", "4xSDR"),
        _ => ("[ethernet_switch.net]", "iscsi = { portals = \"192.0.2.1:3260\" }", "10GbE"),
    };
    format!(
        r#"
[run]
duration = "2s"
sample_interval = "2s"
{plane}
[switch.sw]
[host.server]
[host.card]
[storage.array]
rate = "100k/s"
max_burst = "1MiB"
[storage.bridge]
{storage}
gateway = {{ host = "card", target_port = "array", forwarding = "{grain}" }}
[[link]]
from = "{{server,bridge}}"
to = "net"
rate = "{rate}"
[[link]]
from = "{{card,array}}"
to = "sw"
rate = "8GFC"
[workload.load]
hosts = "server"
targets = "bridge"
depth = 32
size = "64KiB"
read_share = {read_share}
"#
    )
}

#[test]
fn a_request_through_a_gateway_needs_no_allocation() {
    let mut found = Vec::new();
    for transport in ["iscsi", "srp"] {
        for grain in ["command", "pdu", "frame"] {
            for read_share in ["1.0", "0.0"] {
                let text = lab(transport, grain, read_share);
                let (ios, allocations) = labs::allocations(&text, [200, 400]);
                assert!(ios > 500, "{transport} by {grain}, reads {read_share}: {ios} requests");
                found.push((transport, grain, read_share, allocations));
            }
        }
    }
    assert!(found.iter().all(|case| case.3 == 0), "{found:#?}");
}
