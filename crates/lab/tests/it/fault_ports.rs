//! Ports of faults, and the planes that they are on.

use sanloom_fc::config::FaultKind;

/// A host and a storage system with links of Fibre Channel, Ethernet and InfiniBand.
const NODES: &str = r#"
[switch.san]
[ethernet_switch.tor]
[infiniband_switch.ib1]
[host.server]
srp = {}
[storage.array]
srp = {}
[[link]]
from = "{server,array}"
to = "san"
rate = "16GFC"
[[link]]
from = "{server,array}"
to = "tor"
rate = "10GbE"
[[link]]
from = "{server,array}"
to = "tor"
rate = "10GbE"
name = "second-{server,array}"
[[link]]
from = "{server,array}"
to = "ib1"
rate = "4xEDR"
"#;

/// Returns the kinds of the faults that `place` gives for ports that go down.
fn faults(place: &str) -> Vec<FaultKind> {
    let text = format!("{NODES}[[fault]]\nkind = \"port-down\"\nat = \"100ms\"\nfor = \"100ms\"\n{place}\n");
    let loaded = sanloom_lab::load("x.toml", &text, &[]).unwrap_or_else(|error| panic!("{}", error.render(false)));
    loaded.lab.faults.iter().map(|fault| fault.kind).collect()
}

#[test]
fn the_port_of_a_fault_is_an_interface_as_reports_name_it() {
    for (port, link) in [("server:eth1", "second-server"), ("server:ib0", "server-ib1"), ("server:0", "server-san")] {
        let found = faults(&format!("port = \"{port}\""));
        assert!(!found.is_empty(), "{port}");
        assert_eq!(found, faults(&format!("link = \"{link}\"\nend = \"server\"")), "{port}");
    }
}

#[test]
fn a_range_of_interfaces_is_a_fault_of_each() {
    let each = [faults("port = \"server:eth1\""), faults("port = \"array:eth1\"")].concat();
    assert_eq!(faults("port = \"{server,array}:eth1\""), each);
}
