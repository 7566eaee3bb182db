//! Small labs of Ethernet and InfiniBand.

/// A host and an array on a switch, with a tagged session.
macro_rules! tagged {
    ($duration:literal, $switch:literal, $digest:literal, $rate:literal, $load:literal) => {
        concat!(
            "[run]\nduration = \"",
            $duration,
            "\"\nwarmup = \"0s\"\n[ethernet_switch.tor]\n",
            $switch,
            "[host.server]\niscsi = { priority = 3, vlan = 100",
            $digest,
            " }\n",
            "[storage.array]\nrate = \"20k/s\"\niscsi = { portals = [\"192.0.2.1:3260\"]",
            $digest,
            " }\n",
            "[[link]]\nname = \"server-tor\"\nfrom = \"server\"\nto = \"tor\"\nrate = \"",
            $rate,
            "\"\nvlans = [100]\n",
            "[[link]]\nname = \"array-tor\"\nfrom = \"array\"\nto = \"tor\"\nrate = \"10GbE\"\nvlans = [100]\n",
            "[workload.load]\nhosts = \"server\"\ntargets = \"array\"\n",
            $load
        )
    };
}

/// One read at a time by iSCSI, with a tag.
pub const ISCSI: &str = tagged!("1ms", "", "", "10GbE", "size = \"4KiB\"\ndepth = 1\nread_share = 1.0\n");

/// A fast array behind a switch whose lossless priority pauses it, because the host's link is slow.
pub const PFC: &str =
    tagged!("30ms", "pfc = 3\nmemory = \"200KB\"\n", "", "1GbE", "size = \"512KiB\"\ndepth = 4\nread_share = 0.5\n");

/// The same with header digests.
pub const DIGESTS: &str = tagged!(
    "40ms",
    "pfc = 3\nmemory = \"200KB\"\n",
    ", header_digest = \"always\"",
    "1GbE",
    "size = \"512KiB\"\ndepth = 4\nread_share = 0.5\n"
);

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

/// A host and an array on an InfiniBand switch.
macro_rules! srp {
    ($duration:literal, $rate:literal, $load:literal) => {
        concat!(
            "[run]\nduration = \"",
            $duration,
            "\"\nwarmup = \"0s\"\n[subnet]\nmtu = 1024\nlanes = 2\n",
            "[infiniband_switch.ib]\n[host.server]\nsrp = { level = 1 }\n",
            "[storage.array]\nrate = \"20k/s\"\nsrp = {}\n",
            "[[link]]\nname = \"server-ib\"\nfrom = \"server\"\nto = \"ib\"\nrate = \"",
            $rate,
            "\"\n",
            "[[link]]\nname = \"array-ib\"\nfrom = \"array\"\nto = \"ib\"\nrate = \"4xSDR\"\n",
            "[workload.load]\nhosts = \"server\"\ntargets = \"array\"\n",
            $load
        )
    };
}

/// One read at a time by SRP.
pub const SRP: &str = srp!("100us", "4xSDR", "size = \"4KiB\"\ndepth = 1\nread_share = 1.0\n");

/// Reads and writes by SRP: commands of 80 bytes, data in several packets.
pub const SRP_MIXED: &str = srp!("4ms", "1xSDR", "size = \"10KiB\"\ndepth = 4\nread_share = 0.5\n");
