//! Gateways between iSCSI and Fibre Channel, and both paths of virtualization switches.

use crate::labs;
use sanloom_api::results::Results;

fn run(text: &str) -> Results {
    labs::run(&labs::lab(text))
}

/// One host on 1GbE that reads or writes 512 KiB at a time, behind a gateway to 2GFC.
fn one_host(gateway: &str, read_share: &str) -> String {
    format!(
        r#"
[run]
duration = "300ms"
warmup = "50ms"
[switch.sw]
[ethernet_switch.lan]
[host.server]
iscsi = {{ max_segment = "8KiB" }}
[host.port]
[storage.array]
rate = "100k/s"
max_burst = "1MiB"
[storage.router]
iscsi = {{ max_segment = "8KiB" }}
gateway = {{ host = "port", target_port = "array", {gateway} }}
[[link]]
from = "{{port,array}}"
to = "sw"
rate = "2GFC"
[[link]]
from = "{{server,router}}"
to = "lan"
rate = "1GbE"
[workload.w]
hosts = "server"
targets = "router"
location = "sequential"
depth = 1
size = "512KiB"
read_share = {read_share}
"#
    )
}

/// Payload of 1GbE with time stamps and PDUs of 8 KiB, and of 2GFC, in MB/s.
const LINES: [f64; 2] = [117.0, 206.4];

#[test]
fn by_command_the_times_of_both_networks_add_up() {
    let sum = 1.0 / (1.0 / LINES[0] + 1.0 / LINES[1]);
    for share in ["1.0", "0.0"] {
        let found = labs::mb_per_s(&run(&one_host("forwarding = \"command\"", share)));
        assert!((found / sum - 1.0).abs() < 0.04, "{found} MB/s of {sum}, reads {share}");
    }
}

#[test]
fn by_pdu_and_by_frame_the_slower_network_decides() {
    for grain in ["pdu", "frame"] {
        for share in ["1.0", "0.0"] {
            let found = labs::mb_per_s(&run(&one_host(&format!("forwarding = \"{grain}\""), share)));
            assert!(found > 0.93 * LINES[0] && found < LINES[0] * 1.01, "{grain}: {found} MB/s, reads {share}");
        }
    }
}

/// The array waits for the first PDU of each write by PDU, and for the first frame by frame: 64 KiB
/// take 0.56 ms of 4.5 ms for 512 KiB.
#[test]
fn write_data_pass_a_gateway_by_frame_before_their_pdu_is_complete() {
    let of = |grain: &str, digest: &str| {
        let text = one_host(&format!("forwarding = \"{grain}\""), "0.0").replace(
            "iscsi = { max_segment = \"8KiB\" }",
            &format!("iscsi = {{ max_segment = \"64KiB\", data_digest = \"{digest}\", unasked_data = false }}"),
        );
        labs::mb_per_s(&run(&text))
    };
    let [pdu, frame] = ["pdu", "frame"].map(|grain| of(grain, "never"));
    assert!(frame > 1.03 * pdu && frame < LINES[0] * 1.01, "{pdu} and {frame} MB/s");
    // A digest judges the whole segment, so nothing may pass before.
    let [pdu, frame] = ["pdu", "frame"].map(|grain| of(grain, "always"));
    assert!((frame / pdu - 1.0).abs() < 0.01, "{pdu} and {frame} MB/s with digests");
}

#[test]
fn write_data_wait_at_the_gateway_until_they_have_arrived() {
    let text = one_host("forwarding = \"frame\"", "0.0");
    let host = "[host.server]\niscsi = { max_segment = \"8KiB\"";
    let labs = [
        // Block I/O begins before the first byte.
        text.replace(host, &format!("{host}, unasked_data = false")),
        text.replace("[host.port]\n", "[host.port]\nbus = { bits = 64, clock = \"133MHz\" }\n"),
    ];
    for lab in labs {
        assert_ne!(lab, text);
        let found = labs::mb_per_s(&run(&lab));
        assert!(found > 0.8 * LINES[0] && found < LINES[0] * 1.01, "{found} MB/s\n{lab}");
    }
}

#[test]
fn a_command_that_is_aborted_in_the_gateway_does_not_reach_the_array() {
    let text = one_host("per_command = \"150ms\"", "1.0");
    let text = text.replace("duration = \"300ms\"", "duration = \"2s\"").replace(
        "[host.server]\n",
        "[host.server]\ncommand_timeout = \"50ms\"\nabort_timeout = \"50ms\"\nmultipath = { no_path_retry = 10 }\n",
    );
    let results = run(&text);
    let of = |name: &str| results.storage.iter().find(|storage| storage.name == name).expect("it is in the lab");
    assert!(of("router").gateway.as_ref().is_some_and(|gateway| gateway.recalled > 1), "{:?}", of("router").gateway);
    assert_eq!(of("array").ios_completed, 0);
}

#[test]
fn the_processor_of_a_gateway_bounds_its_commands() {
    let results = run(&one_host("per_command = \"1ms\", per_kib = \"10us\"", "1.0"));
    let gateway = results.storage.iter().find_map(|storage| storage.gateway.clone()).expect("there is a gateway");
    // 1 ms + 512 x 10 us = 6.12 ms for each command, beside the 7 ms of both networks.
    assert!((gateway.cpu_utilisation - 6.12 / (6.12 + 7.1)).abs() < 0.03, "{gateway:?}");
}

#[test]
fn zones_apply_to_the_virtual_n_port_of_each_host() {
    let text = one_host("mode = \"transparent\", hosts = \"server\"", "1.0");
    let zone = |member: &str| format!("{text}[[zone]]\nname = \"z\"\nmembers = [\"{member}\", \"array\"]\n");
    let open = run(&zone("router-server"));
    assert!(open.totals.io.ios_completed > 20 && open.totals.io.ios_failed == 0, "{:?}", open.totals);
    // The N_Port of the gateway itself carries no commands, so `check` refuses its zone.
    let refused = sanloom_lab::load("x.toml", &zone("port"), &[]).err().map(|mistakes| mistakes.render(false));
    let refused = refused.unwrap_or_default();
    assert!(refused.contains("no zone joins `router-server` and storage `array`"), "{refused}");
}

/// Three hosts behind one gateway, with faults.
///
/// The gateway repeats a lost ABTS after `abort_timeout`. Until it is answered, writes of a host to
/// the blocks of its aborted write end with BUSY. With the default of 10 s, they would still be in
/// flight at the end of a run of 14 s.
fn with_faults(grain: &str, mode: &str, faults: &str) -> String {
    format!(
        r#"
[run]
duration = "14s"
warmup = "0s"
stop_issuing = "3s"
[switch.sw]
[ethernet_switch.lan]
[host."server{{1..3}}"]
command_timeout = "300ms"
abort_timeout = "300ms"
multipath = {{ no_path_retry = 10 }}
[host.port]
abort_timeout = "1s"
[storage.array]
rate = "5k/s"
max_queued = 20
[storage.router]
iscsi = {{}}
gateway = {{ host = "port", target_port = "array", forwarding = "{grain}", {mode} }}
[[link]]
name = "behind"
from = "port"
to = "sw"
rate = "4GFC"
[[link]]
name = "array"
from = "array"
to = "sw"
rate = "4GFC"
[[link]]
name = "lan{{1..4}}"
from = "{{server1,server2,server3,router}}"
to = "lan"
rate = "10GbE"
[workload.w]
hosts = "server{{1..3}}"
targets = "router"
depth = 8
size = "32KiB"
read_share = 0.5
{faults}
"#
    )
}

#[test]
fn every_request_ends_whatever_fails_around_a_gateway() {
    let faults = [
        "[[fault]]\nkind = \"link-down\"\nlink = \"behind\"\nat = \"500ms\"\nfor = \"700ms\"\n",
        "[[fault]]\nkind = \"link-down\"\nlink = \"array\"\nat = \"500ms\"\nfor = \"700ms\"\n",
        "[[fault]]\nkind = \"frame-loss\"\nlink = \"behind\"\nprobability = 0.01\nat = \"500ms\"\nfor = \"500ms\"\n",
        "[[fault]]\nkind = \"frame-loss\"\nlink = \"lan4\"\nprobability = 0.01\nat = \"500ms\"\nfor = \"500ms\"\n",
        "[[fault]]\nkind = \"power-failure\"\nstorage = \"router\"\nat = \"500ms\"\nfor = \"500ms\"\n",
        "[[fault]]\nkind = \"switch-reset\"\nswitch = \"sw\"\nat = \"500ms\"\nfor = \"500ms\"\n",
    ];
    let modes = ["mode = \"proxy\"", "mode = \"transparent\", hosts = \"server{1..3}\""];
    for (number, fault) in faults.into_iter().enumerate() {
        let grain = ["command", "pdu", "frame"][number % 3];
        let results = run(&with_faults(grain, modes[number % 2], fault));
        let conservation = &results.conservation;
        assert!(conservation.holds(), "{fault}: {conservation:?}");
        assert_eq!(conservation.commands_in_flight, 0, "{fault}: {conservation:?}");
        assert_eq!(conservation.commands_failed, 0, "{fault}: {conservation:?}");
        assert!(
            results.hosts.iter().filter(|host| host.name.starts_with("server")).all(|host| host.io.ios_completed > 100)
        );
    }
}

#[test]
fn a_command_that_its_host_aborts_is_aborted_at_the_array() {
    let fault =
        "[[fault]]\nkind = \"frame-loss\"\nlink = \"behind\"\nprobability = 0.02\nat = \"500ms\"\nfor = \"1s\"\n";
    let results = run(&with_faults("command", "", fault));
    let gateway = results.storage.iter().find_map(|storage| storage.gateway.clone()).expect("there is a gateway");
    assert!(gateway.recalled > 0, "{gateway:?}");
    assert_eq!(results.conservation.commands_in_flight, 0);
}

#[test]
fn a_full_task_set_of_the_array_reaches_the_hosts() {
    let results = run(&with_faults("pdu", "", ""));
    let full: u64 = results.storage.iter().map(|storage| storage.task_set_full).sum();
    assert!(full > 10 && results.conservation.commands_failed == 0, "{full}: {:?}", results.conservation);
}

/// A virtual disk on two iSCSI targets; `forward` decides about the forwarding path.
fn switch(forward: bool, faults: &str) -> String {
    format!(
        r#"
[run]
duration = "12s"
warmup = "0s"
stop_issuing = "1s"
[ethernet_switch.lan]
[host.server]
command_timeout = "2s"
multipath = {{ no_path_retry = 10 }}
[storage."disk{{1..2}}"]
lun_size = "256MiB"
iscsi = {{ portals = "192.0.2.{{1..2}}:3260" }}
[storage.switch]
medium = "volumes"
iscsi = {{ portals = "192.0.2.3:3260", forward = {forward} }}
gateway = {{ per_command = "20us", per_kib = "1us", per_pdu = "4us", per_kib_forwarded = "250ns" }}
[pool.disks]
[back_end.one]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk1"
portals = "192.0.2.1:3260"
[back_end.two]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk2"
portals = "192.0.2.2:3260"
[volume.v]
pool = "disks"
size = "256MiB"
width = 2
storage = "switch"
lun = 0
[[link]]
name = "port{{1..4}}"
from = "{{server,switch,disk1,disk2}}"
to = "lan"
rate = "10GbE"
[workload.w]
hosts = "server"
targets = "switch:lun0"
depth = 4
size = "64KiB"
read_share = 0.6
{faults}
"#
    )
}

#[test]
fn a_forwarding_switch_moves_more_data_with_less_processor_time() {
    let [conventional, forwarding] = [false, true].map(|forward| run(&switch(forward, "")));
    let of = |results: &Results| {
        let gateway = results.storage.iter().find_map(|storage| storage.gateway.clone()).expect("there is a switch");
        (gateway, results.totals.io.ios_completed)
    };
    let ((slow, few), (fast, many)) = (of(&conventional), of(&forwarding));
    assert_eq!((slow.forwarded, slow.conventional), (0, few));
    assert!(fast.forwarded > fast.conventional && fast.forwarded + fast.conventional == many, "{fast:?} of {many}");
    assert!(many > few && fast.cpu_utilisation / many as f64 <= 0.7 * slow.cpu_utilisation / few as f64);
    for results in [&conventional, &forwarding] {
        assert_eq!(results.conservation.commands_in_flight, 0);
        assert_eq!(results.conservation.commands_failed, 0);
    }
}

#[test]
fn forwarded_commands_end_when_a_back_end_or_the_switch_is_lost() {
    let faults = [
        "[[fault]]\nkind = \"power-failure\"\nstorage = \"disk1\"\nat = \"300ms\"\nfor = \"500ms\"\n",
        "[[fault]]\nkind = \"power-failure\"\nstorage = \"switch\"\nat = \"300ms\"\nfor = \"500ms\"\n",
        "[[fault]]\nkind = \"frame-loss\"\nlink = \"port2\"\nprobability = 0.01\nat = \"300ms\"\nfor = \"300ms\"\n",
    ];
    for fault in faults {
        let results = run(&switch(true, fault));
        let conservation = &results.conservation;
        assert!(conservation.holds() && conservation.commands_in_flight == 0, "{fault}: {conservation:?}");
        assert!(results.totals.io.ios_completed > 1_000, "{fault}: {:?}", results.totals.io.ios_completed);
    }
}

#[test]
fn back_ends_of_iscsi_take_whole_writes_whatever_the_grain() {
    let of = |grain: &str| {
        let text = switch(false, "").replace("gateway = { ", &format!("gateway = {{ forwarding = \"{grain}\", "));
        run(&text.replace("read_share = 0.6", "read_share = 0.0")).totals.io
    };
    let (command, frame) = (of("command"), of("frame"));
    assert!(command.ios_completed > 100, "{command:?}");
    assert_eq!(command.ios_completed, frame.ios_completed);
}

#[test]
fn writes_lost_at_several_back_ends_release_their_blocks_with_the_next_logins() {
    let fault = "[[fault]]\nkind = \"power-failure\"\nstorage = \"switch\"\nat = \"300ms\"\nfor = \"100ms\"\n";
    let text = switch(true, fault).replace("read_share = 0.6", "read_share = 0.0\nspan = \"1MiB\"");
    let results = run(&text);
    let conservation = &results.conservation;
    assert!(conservation.holds() && conservation.commands_in_flight == 0, "{conservation:?}");
    assert_eq!(conservation.commands_failed, 0, "{conservation:?}");
}

/// Two hosts behind a gateway with a port in each of two fabrics, as the array has.
fn two_fabrics(policy: &str, gateway: &str, faults: &str) -> String {
    format!(
        r#"
[run]
duration = "2s"
warmup = "0s"
stop_issuing = "600ms"
[switch."sw{{1..2}}"]
[ethernet_switch.lan]
[host."server{{1..2}}"]
[host.port]
hbas = 2
multipath = {{ policy = "{policy}" }}
[storage.array]
ports = 2
rate = "20k/s"
[storage.router]
iscsi = {{}}
gateway = {{ host = "port", target_port = "array", {gateway} }}
[[link]]
name = "own{{1..2}}"
from = "port"
to = "sw{{1..2}}"
rate = "4GFC"
[[link]]
name = "far{{1..2}}"
from = "array"
to = "sw{{1..2}}"
rate = "4GFC"
[[link]]
name = "lan{{1..3}}"
from = "{{server1,server2,router}}"
to = "lan"
rate = "10GbE"
[workload.w]
hosts = "server{{1..2}}"
targets = "router"
depth = 8
size = "32KiB"
read_share = 0.5
{faults}
"#
    )
}

/// Bytes that the array has sent and received over each of its links.
fn of_fabrics(results: &Results) -> [f64; 2] {
    ["far1", "far2"].map(|name| {
        let link = results.links.iter().find(|link| link.name == name).expect(name);
        link.forward.throughput_bytes_per_s + link.backward.throughput_bytes_per_s
    })
}

const TRANSPARENT: &str = "mode = \"transparent\", hosts = \"server{1..2}\"";

#[test]
fn a_gateway_uses_its_paths_by_the_policy_of_its_host() {
    for mode in ["forwarding = \"command\"", TRANSPARENT] {
        for policy in ["round-robin", "least-queue", "service-time"] {
            let results = run(&two_fabrics(policy, mode, ""));
            let [one, two] = of_fabrics(&results);
            assert!((one / two - 1.0).abs() < 0.15, "{policy}, {mode}: {one} and {two}");
            assert!(
                results.totals.io.ios_completed > 2_500 && results.totals.io.ios_failed == 0,
                "{:?}",
                results.totals
            );
        }
        let [one, two] = of_fabrics(&run(&two_fabrics("failover", mode, "")));
        assert!(one > 5e7 && two < one / 1_000.0, "{mode}: {one} and {two}");
    }
}

#[test]
fn virtual_n_ports_are_at_the_port_that_a_gateway_names() {
    for port in [0, 1] {
        let text = two_fabrics("round-robin", TRANSPARENT, "");
        let text = text.replace("host = \"port\"", &format!("host = \"port:{port}\""));
        let results = run(&text);
        assert!(results.totals.io.ios_completed > 1_000 && results.totals.io.ios_failed == 0, "{:?}", results.totals);
        let found = of_fabrics(&results);
        assert!(found[port] > 5e7 && found[1 - port] < found[port] / 1_000.0, "{port}: {found:?}");
    }
}

/// The first fabric fails in three ways. Commands go on over the second one, and hosts see nothing
/// but a delay: without a retry of theirs, a command that was answered with BUSY would fail.
#[test]
fn commands_that_lose_their_path_go_on_over_another_one() {
    let faults = [
        "kind = \"link-down\"\nlink = \"own1\"",
        "kind = \"link-down\"\nlink = \"far1\"",
        "kind = \"switch-reset\"\nswitch = \"sw1\"",
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let fault = format!("[[fault]]\n{fault}\nat = \"100ms\"\nfor = \"150ms\"\n");
        let grain = ["command", "pdu", "frame"][number];
        let policies = ["failover", "round-robin"];
        for (mode, policy) in [("", policies[number % 2]), (TRANSPARENT, policies[(number + 1) % 2])] {
            let keys = format!("forwarding = \"{grain}\", {mode}");
            let text = two_fabrics(policy, &keys, &fault);
            let text = text.replace("[host.\"server{1..2}\"]\n", "[host.\"server{1..2}\"]\nretries = 0\n");
            let results = run(&text);
            let conservation = &results.conservation;
            assert!(conservation.holds() && conservation.commands_in_flight == 0, "{fault}: {conservation:?}");
            assert_eq!(conservation.commands_failed, 0, "{fault}, {policy}, {keys}: {conservation:?}");
            let gateway =
                results.storage.iter().find_map(|storage| storage.gateway.as_ref()).expect("it is in the lab");
            assert_eq!((gateway.aborted, gateway.unit_attentions), (0, 0), "{fault}, {policy}, {keys}");
            let [one, two] = of_fabrics(&results);
            assert!(one > 1e7 && two > 1e7, "{fault}, {policy}, {keys}: {one} and {two}");
            // After the failure, the first path of all is used again.
            assert!(policy != "failover" || one > two, "{fault}, {keys}: {one} and {two}");
        }
    }
}

#[test]
fn without_any_path_a_gateway_answers_busy_until_one_returns() {
    let fault = |fabric: u8| {
        format!("[[fault]]\nkind = \"switch-reset\"\nswitch = \"sw{fabric}\"\nat = \"300ms\"\nfor = \"{fabric}00ms\"\n")
    };
    let text = two_fabrics("round-robin", "", &format!("{}{}", fault(1), fault(2)));
    let results = run(&text.replace("[host.\"server{1..2}\"]\n", "[host.\"server{1..2}\"]\nretries = 255\n"));
    let conservation = &results.conservation;
    assert!(conservation.holds() && conservation.commands_in_flight == 0, "{conservation:?}");
    assert!(results.totals.io.ios_completed > 2_000, "{:?}", results.totals);
}

/// Masks at the gateway, by the iSCSI names of its hosts.
#[test]
fn a_gateway_shows_hosts_the_luns_of_their_masks() {
    let text = |second: u8| {
        let masks = format!(
            "[[mask]]\nhosts = \"server1\"\ntargets = \"router:lun{{0..1}}\"\n\
             [[mask]]\nhosts = \"server2\"\ntargets = \"router:lun{second}\"\n"
        );
        let text = two_fabrics("round-robin", "", &masks).replace("ports = 2\nrate", "ports = 2\nluns = 2\nrate");
        text.replace("targets = \"router\"", "targets = \"router:lun0\"")
    };
    let refused = sanloom_lab::load("x.toml", &text(1), &[]).err().map(|mistakes| mistakes.render(false));
    let reason = "masks hide `router:lun0` from host `server2`";
    assert!(refused.as_ref().is_some_and(|text| text.contains(reason)), "{refused:?}");
    let shown = run(&text(0));
    assert!(shown.totals.io.ios_completed > 2_000 && shown.totals.io.ios_failed == 0, "{:?}", shown.totals);
}

/// Gateways of the examples: those with back ends in Fibre Channel have logins without a session.
const GATEWAY_EXAMPLES: [&str; 10] = [
    "gateway-faults",
    "gateway-grain",
    "gateway-host-loss",
    "gateway-path-loss",
    "gateway-paths",
    "gateway-transparent",
    "gateway-volume-paths",
    "ipoib-gateway",
    "iscsi-fc-gateway",
    "srp-fc-gateway",
];

#[test]
fn gateways_run_without_workloads_and_with_a_workload_of_any_pair() {
    for name in GATEWAY_EXAMPLES {
        let text = example(name);
        let mut lab = sanloom_fc::san::Lab::clone(&labs::lab(&text));
        (lab.run.warmup, lab.run.duration) = Default::default();
        lab.run.duration = sanloom_fc::config::Picos::from_us(300);
        lab.run.stop_issuing = None;
        lab.faults.clear();
        lab.expectations.clear();
        let model = lab.workloads[0].clone();
        let run = |lab: &sanloom_fc::san::Lab| labs::run(&std::sync::Arc::new(lab.clone()));
        // The network that a simulation adds is for the workload of the example.
        if lab.ethernet_is_implied() {
            lab.ethernet_links.clear();
            lab.ethernet_switches.clear();
        }
        lab.workloads.clear();
        assert_eq!(lab.validate(), [], "{name}");
        assert_eq!(run(&lab).totals.io.ios_offered, 0, "{name}");
        let mut pairs = 0;
        for host in 0..lab.hosts.len() as u16 {
            for storage in 0..lab.storage.len() as u16 {
                let mut workload = model.clone();
                workload.hosts = vec![host];
                workload.targets = vec![sanloom_fc::config::Target { storage, lun: 0 }];
                lab.workloads = vec![workload];
                if lab.validate().is_empty() {
                    pairs += 1;
                    run(&lab);
                }
            }
        }
        assert!(pairs > 0, "{name}");
    }
}

fn example(name: &str) -> String {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the example exists")
}

/// A back end with two host ports and two target ports has a path in each fabric. The host does not
/// notice the loss of one, which takes 400 ms, but with one path it waits for its return.
#[test]
fn virtual_disks_fail_over_between_the_paths_to_their_back_end() {
    let text = example("gateway-volume-paths");
    let faults = [
        "kind = \"switch-reset\"\nswitch = \"fabric1\"",
        "kind = \"link-down\"\nlink = \"own1\"",
        "kind = \"link-down\"\nlink = \"far1\"",
    ];
    for fault in faults {
        let text = text.replace(faults[0], fault);
        for (host, stall_s) in [("ports", 0.0..0.05), ("ports:0", 0.4..0.6)] {
            let results = run(&text.replace("host = \"ports\"", &format!("host = \"{host}\"")));
            let conservation = &results.conservation;
            assert!(conservation.holds() && conservation.commands_in_flight == 0, "{fault}: {conservation:?}");
            assert_eq!(conservation.commands_failed, 0, "{fault}, {host}: {conservation:?}");
            let server = results.hosts.iter().find(|host| host.name == "server").expect("it is in the lab");
            assert!(stall_s.contains(&server.longest_stall_s), "{fault}, {host}: {} s", server.longest_stall_s);
            let [one, two] = of_fabrics(&results);
            assert!(one > 1e7 && (two > 1e7) == (host == "ports"), "{fault}, {host}: {one} and {two}");
        }
    }
}

#[test]
fn virtual_disks_that_only_fibre_channel_reaches_move_data() {
    let results = run(r#"
[run]
duration = "50ms"
warmup = "10ms"
[switch.sw]
[host.h]
[host.m]
[storage.a]
rate = "50k/s"
[storage.v]
medium = "volumes"
[pool.p]
[back_end.b]
pool = "p"
host = "m"
target_port = "a"
[volume.d]
pool = "p"
size = "16MiB"
storage = "v"
lun = 0
[[link]]
from = "{h,m,a,v}"
to = "sw"
rate = "8GFC"
[workload.w]
hosts = "h"
targets = "v:lun0"
"#);
    assert!(results.totals.io.ios_completed > 10, "{:?}", results.totals);
}
