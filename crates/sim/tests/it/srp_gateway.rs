//! Labs with gateways between SRP and Fibre Channel.

use crate::labs;
use sanloom_api::results::Results;
use std::sync::Arc;

/// A host on InfiniBand, a gateway, and an array on 2GFC.
fn lab(line: &str, gateway: &str, workload: &str) -> String {
    format!(
        r#"
[run]
duration = "600ms"
warmup = "100ms"
[infiniband_switch.ib]
[switch.sw]
[host.server]
queue_depth = 64
[host.card]
queue_depth = 64
[storage.array]
servers = 64
service_time = "100us"
max_burst = "1MiB"
[storage.bridge]
srp = {{}}
gateway = {{ host = "card", target_port = "array", {gateway} }}
[[link]]
name = "server-ib"
from = "server"
to = "ib"
rate = "{line}"
[[link]]
from = "bridge"
to = "ib"
rate = "4xSDR"
[[link]]
from = "card"
to = "sw"
rate = "2GFC"
[[link]]
name = "array-sw"
from = "array"
to = "sw"
rate = "2GFC"
[workload.load]
hosts = "server"
targets = "bridge"
{workload}
"#
    )
}

fn run(line: &str, gateway: &str, workload: &str) -> Results {
    let results = labs::run(&labs::lab(&lab(line, gateway, workload)));
    assert_eq!(results.totals.io.ios_failed, 0);
    results
}

const ONE: &str = "size = \"1MiB\"\ndepth = 1\nread_share = 1.0";

/// 246.6 and 206.4 MB/s in series give 112 MB/s less the time of the array; frame by frame, the
/// slower line decides.
#[test]
fn the_grain_of_a_gateway_decides_the_throughput_of_large_reads() {
    let stored = labs::mb_per_s(&run("1xSDR", "forwarding = \"command\"", ONE));
    assert!((107.0..112.5).contains(&stored), "{stored} MB/s by command");
    let piped = labs::mb_per_s(&run("1xSDR", "forwarding = \"frame\"", ONE));
    assert!((195.0..206.5).contains(&piped), "{piped} MB/s by frame");
    let burst = labs::mb_per_s(&run("1xSDR", "forwarding = \"pdu\"", ONE));
    assert!(stored < burst && burst < piped, "{stored}, {burst} and {piped} MB/s");
}

/// Write data are fetched from the host in parts, each of which goes on to the array at once: by
/// command, the lines add up, and by frame the slower one decides. A part is a READ of 64 KiB by
/// PDU.
#[test]
fn the_grain_of_a_gateway_decides_the_throughput_of_large_writes() {
    let write = ONE.replace("1.0", "0.0");
    let found = ["command", "pdu", "frame"].map(|grain| {
        let results = run("1xSDR", &format!("forwarding = \"{grain}\""), &write);
        let channel = &results.srp_channels[0];
        assert_eq!(channel.rdma_written_bytes, 0, "{grain}");
        labs::mb_per_s(&results)
    });
    let [stored, burst, piped] = found;
    assert!((107.0..112.5).contains(&stored), "{stored} MB/s by command");
    assert!((190.0..206.5).contains(&piped), "{piped} MB/s by frame");
    assert!(stored < burst && burst < piped, "{stored}, {burst} and {piped} MB/s");
}

/// The masks of a gateway show LUNs to the initiator ports of its SRP hosts: here nothing to the
/// host with the workload.
#[test]
fn masks_of_a_gateway_hide_luns_from_srp_hosts() {
    let text = |hosts: &str| {
        let other = "[host.other]\n[[link]]\nfrom = \"other\"\nto = \"ib\"\nrate = \"4xSDR\"\n";
        let mask = format!("[[mask]]\nhosts = \"{hosts}\"\ntargets = \"bridge\"\n");
        format!("{}{other}{mask}", lab("4xSDR", "forwarding = \"frame\"", ONE))
    };
    let seen = labs::run(&labs::lab(&text("server")));
    assert!(seen.totals.io.ios_failed == 0 && labs::mb_per_s(&seen) > 190.0);
    let refused = sanloom_lab::load("test.toml", &text("other"), &[]).expect_err("the LUN is hidden");
    let codes: Vec<&str> = refused.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, ["masked-lun"], "{refused:?}");
    // The same in a run, which `check` would refuse: only `other` sees the LUN.
    let both = text("server") + "[[mask]]\nhosts = \"other\"\ntargets = \"bridge\"\n";
    let mut lab = (*labs::lab(&both)).clone();
    lab.live.masks.remove(0);
    assert_eq!(labs::run(&Arc::new(lab)).totals.io.ios_completed, 0);
}

/// Virtual N_Ports of a gateway with a named port are all at this port.
#[test]
fn virtual_n_ports_are_at_the_port_that_the_gateway_names() {
    for (port, used) in [("card:0", "first"), ("card:1", "second")] {
        let gateway = "forwarding = \"frame\", mode = \"transparent\", hosts = [\"server\", \"idle\"]";
        let text = lab("4xSDR", gateway, ONE)
            .replace("host = \"card\"", &format!("host = \"{port}\""))
            .replace("[host.card]\n", "[host.idle]\n[host.card]\nhbas = 2\n")
            .replace(
                "[[link]]\nfrom = \"card\"\nto = \"sw\"\nrate = \"2GFC\"\n",
                "[[link]]\nname = \"first\"\nfrom = \"card:0\"\nto = \"sw\"\nrate = \"2GFC\"\n\
                 [[link]]\nname = \"second\"\nfrom = \"card:1\"\nto = \"sw\"\nrate = \"2GFC\"\n\
                 [[link]]\nfrom = \"idle\"\nto = \"ib\"\nrate = \"1xSDR\"\n",
            )
            .replace("hosts = \"server\"\ntargets", "hosts = [\"server\", \"idle\"]\ntargets");
        let results = labs::run(&labs::lab(&text));
        for link in results.links.iter().filter(|link| ["first", "second"].contains(&link.name.as_str())) {
            let busy = link.backward.utilisation;
            assert_eq!(busy > 0.1, link.name == used, "{port}: {} is busy for {busy}", link.name);
        }
    }
}

/// Many reads at once fill the line of Fibre Channel in every grain (the GUPFS report, Figure 9).
#[test]
fn many_reads_through_a_gateway_are_as_fast_as_its_fibre_channel_port() {
    for grain in ["command", "pdu", "frame"] {
        let found =
            labs::mb_per_s(&run("4xSDR", &format!("forwarding = \"{grain}\""), "size = \"128KiB\"\ndepth = 16"));
        assert!((found / 206.4 - 1.0).abs() < 0.02, "{grain}: {found} MB/s");
    }
}

/// Each byte of a read is written to the host once, in parts or whole.
#[test]
fn read_data_are_written_to_the_host_once() {
    for grain in ["command", "pdu", "frame"] {
        let workload = "size = \"100KiB\"\ndepth = 4\nread_share = 0.5";
        let text = lab("4xSDR", &format!("forwarding = \"{grain}\""), workload)
            .replace("warmup = \"100ms\"", "warmup = \"0s\"\nstop_issuing = \"400ms\"");
        let results = labs::run(&labs::lab(&text));
        let io = &results.totals.io;
        assert_eq!((io.ios_failed, io.ios_unfinished), (0, 0), "{grain}");
        let channel = &results.srp_channels[0];
        let data = channel.rdma_written_bytes + channel.rdma_read_bytes;
        assert_eq!(data, io.ios_completed * 102_400, "{grain}: {channel:?}");
    }
}

/// The time of a gateway for each command comes on top of the time without.
#[test]
fn a_command_takes_longer_by_the_time_of_the_gateway() {
    let one = "size = \"4KiB\"\ndepth = 1\nread_share = 1.0";
    let mean = |gateway: &str| run("4xSDR", gateway, one).totals.io.latency.mean_us;
    let (free, worked) = (mean("forwarding = \"frame\""), mean("forwarding = \"frame\", per_command = \"40us\""));
    assert!((39.0..41.0).contains(&(worked - free)), "{free} and {worked} us");
}

/// A host has a virtual N_Port of its own in transparent mode.
#[test]
fn a_host_has_a_virtual_n_port_in_transparent_mode() {
    let results = run("4xSDR", "forwarding = \"frame\", mode = \"transparent\", hosts = \"server\"", ONE);
    let port = results.hosts.iter().find(|host| host.name == "bridge-server").expect("the virtual port");
    assert_eq!(port.logins, 1);
    assert!(labs::mb_per_s(&results) > 190.0);
}

/// A link of the array that fails for a while ends no request for good: hosts repeat commands that
/// are answered with BUSY.
#[test]
fn requests_survive_the_loss_of_the_array() {
    let fault = "[[fault]]\nat = \"1s\"\nuntil = \"3s\"\nkind = \"link-down\"\nlink = \"array-sw\"\n";
    let text = format!(
        "{}{fault}",
        lab("4xSDR", "forwarding = \"frame\"", "size = \"16KiB\"\narrivals = \"constant 50/s\"\nread_share = 0.5")
    )
    .replace("duration = \"600ms\"\nwarmup = \"100ms\"", "duration = \"60s\"\nwarmup = \"0s\"\nstop_issuing = \"6s\"");
    let results = labs::run(&labs::lab(&text));
    assert_eq!(results.totals.io.ios_unfinished, 0);
    assert!(results.totals.io.ios_completed > 200, "{}", results.totals.io.ios_completed);
}

/// A host that is lost ends its exchanges at the array, and comes back.
#[test]
fn a_lost_host_ends_its_exchanges_and_logs_in_again() {
    let fault = "[[fault]]\nat = \"1s\"\nuntil = \"3s\"\nkind = \"link-down\"\nlink = \"server-ib\"\n";
    let text = format!("{}{fault}", lab("4xSDR", "forwarding = \"frame\"", "size = \"1MiB\"\ndepth = 8")).replace(
        "duration = \"600ms\"\nwarmup = \"100ms\"",
        "duration = \"60s\"\nwarmup = \"0s\"\nstop_issuing = \"8s\"",
    );
    let results = labs::run(&labs::lab(&text));
    assert_eq!(results.totals.io.ios_unfinished, 0);
    let channel = &results.srp_channels[0];
    // The first login was before the measurement.
    assert!(channel.connections == 1 && channel.is_up, "{channel:?}");
}

/// The same lab and seed give the same results to the last byte.
#[test]
fn two_runs_through_a_gateway_are_the_same() {
    let text = lab("4xSDR", "forwarding = \"frame\"", "size = \"16KiB\"\ndepth = 8\nread_share = 0.5");
    let run = || format!("{:?}", labs::run(&labs::lab(&text)));
    assert_eq!(run(), run());
}

/// The card of the gateway is an adapter of FCoE, at a link with `ethernet`.
#[test]
fn a_gateway_reaches_its_array_through_an_adapter_of_fcoe() {
    let text = r#"
[run]
duration = "200ms"
warmup = "50ms"
[infiniband_switch.ib]
[ethernet_switch.lan]
pfc = 3
[switch.fcf]
[host.server]
queue_depth = 64
[host.card]
queue_depth = 256
[storage.bridge]
srp = {}
gateway = { host = "card", target_port = "array", forwarding = "command" }
[storage.array]
rate = "100k/s"
[[link]]
from = "{server,bridge}"
to = "ib"
rate = "4xQDR"
[[link]]
from = "{card,fcf}"
to = "lan"
rate = "10GbE"
mtu = 2500
[[link]]
from = "card"
to = "fcf"
ethernet = { vlan = 100 }
[[link]]
from = "array"
to = "fcf"
rate = "16GFC"
[workload.load]
hosts = "server"
targets = "bridge"
depth = 16
size = "64KiB"
"#;
    let results = labs::run(&labs::lab(text));
    assert_eq!(results.totals.io.ios_failed, 0);
    // A frame of 2,112 bytes of data takes 2,200 on the line: 24 + 4 of FC, 14 + 4 of FCoE, 18 + 4
    // of tagged Ethernet, 20 of preamble and gap. 31 of them, and one of 64 bytes, carry a request.
    let line = 1_250.0 * 65_536.0 / (31.0 * 2_200.0 + 152.0);
    let rate = labs::mb_per_s(&results);
    assert!((0.95 * line..line).contains(&rate), "{rate} of {line} MB/s");
}
