//! Requests over the planes allocate nothing once a run is warm.

use crate::labs;

/// Reads and writes, more in flight than a node of a tree of the standard library holds.
const LOAD: &str = "depth = 32\nread_share = 0.5\nsize = \"64KiB\"\n";

/// A host and an array on one switch.
fn one_switch(plane: &str, host: &str, array: &str, rate: &str) -> String {
    format!(
        r#"
[run]
duration = "2s"
sample_interval = "2s"
{plane}
[host.server]
{host}
[storage.array]
rate = "20k/s"
{array}
[[link]]
from = "{{server,array}}"
to = "net"
rate = "{rate}"
[workload.load]
hosts = "server"
targets = "array"
{LOAD}
"#
    )
}

/// A host that reads from and writes to virtual disks, whose table a metadata server has.
fn out_of_band() -> String {
    format!(
        r#"
[run]
duration = "2s"
sample_interval = "2s"
[switch.sw]
[host.server]
[host.mover]
[storage."array{{1..2}}"]
rate = "20k/s"
lun_size = "64MiB"
[[link]]
from = "{{server,mover,array1,array2}}"
to = "sw"
rate = "8GFC"
[storage.meta]
medium = "volumes"
out_of_band = {{ round_trip = "300us", service = "50us" }}
[pool.disks]
extent = "1MiB"
[back_end.first]
pool = "disks"
host = "mover"
target_port = "array1"
[back_end.second]
pool = "disks"
host = "mover"
target_port = "array2"
[volume.data]
pool = "disks"
size = "96MiB"
storage = "meta"
[workload.load]
hosts = "server"
targets = "meta:lun0"
{LOAD}
"#
    )
}

/// A host at a virtualization switch with two back ends. A stripe that is shorter than the requests
/// sends each of them to both.
fn switch(forwards: bool, stripe: &str) -> String {
    format!(
        r#"
[run]
duration = "2s"
sample_interval = "2s"
[ethernet_switch.net]
[host.server]
[storage."disk{{1..2}}"]
lun_size = "256MiB"
rate = "20k/s"
[storage.disk1]
iscsi = {{ portals = "192.0.2.1:3260" }}
[storage.disk2]
iscsi = {{ portals = "192.0.2.2:3260" }}
[storage.front]
medium = "volumes"
iscsi = {{ portals = "192.0.2.3:3260", forward = {forwards} }}
[pool.disks]
extent = "4MiB"
[back_end.first]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk1"
portals = "192.0.2.1:3260"
[back_end.second]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk2"
portals = "192.0.2.2:3260"
[volume.striped]
pool = "disks"
size = "256MiB"
width = 2
stripe = "{stripe}"
storage = "front"
lun = 0
[[link]]
from = "{{server,disk1,disk2,front}}"
to = "net"
rate = "10GbE"
[workload.load]
hosts = "server"
targets = "front:lun0"
{LOAD}
"#
    )
}

/// Allocations of a case: a queue that exceeds its previous maximum may double once.
const MOST: u64 = 1;

#[test]
fn a_warm_run_of_each_plane_allocates_nothing() {
    let cases = [
        ("iSCSI", one_switch("[ethernet_switch.net]", "", "iscsi = { portals = \"192.0.2.1:3260\" }", "10GbE")),
        ("SRP", one_switch("[infiniband_switch.net]", "", "srp = {}", "4xSDR")),
        ("out of band", out_of_band()),
        ("switch, forwarding", switch(true, "64KiB")),
        ("switch, forwarding pieces", switch(true, "16KiB")),
        ("switch, conventional", switch(false, "16KiB")),
    ];
    let mut found = Vec::new();
    for (name, text) in cases {
        let (ios, allocations) = labs::allocations(&text, [600, 1_000]);
        assert!(ios > 2_000, "{name}: {ios} requests");
        found.push((name, ios, allocations));
    }
    assert!(found.iter().all(|case| case.2 <= MOST), "{found:#?}");
}
