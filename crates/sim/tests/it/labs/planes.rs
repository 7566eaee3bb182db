//! Small labs of Ethernet and InfiniBand.

/// One read at a time by iSCSI, with a tag.
pub const ISCSI: &str = r#"
[run]
duration = "1ms"
warmup = "0s"
[ethernet_switch.tor]
[host.server]
iscsi = { priority = 3, vlan = 100 }
[storage.array]
rate = "20k/s"
iscsi = { portals = ["192.0.2.1:3260"] }
[[link]]
name = "server-tor"
from = "server"
to = "tor"
rate = "10GbE"
vlans = [100]
[[link]]
name = "array-tor"
from = "array"
to = "tor"
rate = "10GbE"
vlans = [100]
[workload.load]
hosts = "server"
targets = "array"
size = "4KiB"
depth = 1
read_share = 1.0
"#;

/// A fast array behind a switch whose lossless priority pauses it, because the host's link is slow.
pub const PFC: &str = r#"
[run]
duration = "30ms"
warmup = "0s"
[ethernet_switch.tor]
pfc = 3
memory = "200KB"
[host.server]
iscsi = { priority = 3, vlan = 100 }
[storage.array]
rate = "20k/s"
iscsi = { portals = ["192.0.2.1:3260"] }
[[link]]
name = "server-tor"
from = "server"
to = "tor"
rate = "1GbE"
vlans = [100]
[[link]]
name = "array-tor"
from = "array"
to = "tor"
rate = "10GbE"
vlans = [100]
[workload.load]
hosts = "server"
targets = "array"
size = "512KiB"
depth = 4
read_share = 0.5
"#;

/// One read at a time by FCoE.
pub const FCOE: &str = r#"
[run]
duration = "1ms"
warmup = "0s"
[ethernet_switch.tor]
pfc = 3
[switch.fcf]
fcoe = {}
[host.server]
[storage.disk]
rate = "10k/s"
[[link]]
name = "server-tor"
from = "server"
to = "tor"
rate = "10GbE"
mtu = 2500
[[link]]
name = "fcf-tor"
from = "fcf"
to = "tor"
rate = "10GbE"
mtu = 2500
[[link]]
name = "virtual"
from = "server"
to = "fcf"
ethernet = { vlan = 100 }
[[link]]
name = "fibre"
from = "disk"
to = "fcf"
rate = "16GFC"
[workload.load]
hosts = "server"
targets = "disk"
size = "4KiB"
depth = 1
read_share = 1.0
"#;

/// One read at a time by SRP.
pub const SRP: &str = r#"
[run]
duration = "100us"
warmup = "0s"
[subnet]
mtu = 1024
lanes = 2
[infiniband_switch.ib]
[host.server]
srp = { level = 1 }
[storage.array]
rate = "20k/s"
srp = {}
[[link]]
name = "server-ib"
from = "server"
to = "ib"
rate = "4xSDR"
[[link]]
name = "array-ib"
from = "array"
to = "ib"
rate = "4xSDR"
[workload.load]
hosts = "server"
targets = "array"
size = "4KiB"
depth = 1
read_share = 1.0
"#;
