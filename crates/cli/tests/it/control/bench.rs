//! Measurements of a running switch: the presence of results is tested, not their values.

use crate::control::instance::Instance;
use crate::sanloom::SANLOOM;
use sanloom_test_support::programs::run;

fn numbers(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&run(SANLOOM, &[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn forwarding_is_measured_beside_a_forwarder_that_looks_at_nothing() {
    let found = numbers(&["bench", "forward", "--rounds", "1"]);
    assert_eq!(found["frame_bytes"], 2172);
    for way in ["switch", "bare"] {
        assert!(found[way]["frames"].as_u64() > Some(1_000) && found[way]["frames_per_cpu_s"].as_f64() > Some(0.0));
    }
    let ratio =
        found["switch"]["frames_per_cpu_s"].as_f64().unwrap() / found["bare"]["frames_per_cpu_s"].as_f64().unwrap();
    assert!((found["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9, "{found}");
}

#[test]
fn forwarding_is_measured_alone_and_beside_clients_of_all_interfaces() {
    let clients = ["--pages", "3", "--idle", "40", "--busy", "4", "--logins", "4"];
    let found = numbers(&[&["bench", "forward", "--rounds", "2"][..], &clients].concat());
    for way in ["alone", "beside"] {
        assert!(found[way]["frames"].as_u64() > Some(1_000) && found[way]["frames_per_cpu_s"].as_f64() > Some(0.0));
    }
    // A new page receives the state, the rates and the log. The slices take longer than a login
    // without keep-alives.
    assert!(found["events"].as_u64() >= Some(2 * 3 * 3), "{found}");
    for kind in ["answers", "logins", "broken"] {
        assert!(found[kind].as_u64() > Some(4), "{kind} in {found}");
    }
    assert_eq!(found["kept"], 40, "{found}");
    assert!(found["max_rss_bytes"].as_u64() > Some(1 << 20), "{found}");
}

#[test]
fn logins_over_the_wire_are_measured() {
    let found = numbers(&["bench", "fdisc", "--logins", "2500", "--window", "7"]);
    assert_eq!((&found["logins"], &found["window"]), (&2500.into(), &7.into()));
    for part in ["median_us", "p99_us"] {
        let values = found[part].as_array().unwrap();
        assert!(values.len() == 3 && values.iter().all(|value| value.as_f64() > Some(0.0)), "{found}");
    }
}

#[test]
fn a_chain_is_measured_beside_one_of_bare_datagrams() {
    let found = numbers(&["bench", "chain", "--rounds", "1", "--size", "8"]);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["op"].as_str().unwrap()).collect::<Vec<_>>(), ["read", "write"]);
    for row in rows {
        let frames: f64 = row["frames"].as_array().unwrap().iter().filter_map(|frames| frames.as_f64()).sum();
        // A command, 8 KiB of data in four or five frames, and a response; for writes also a
        // transfer-ready.
        assert!((5.5..9.5).contains(&frames), "{row}");
        assert!(row["mb_per_cpu_s"].as_f64() > Some(0.0) && row["bare_mb_per_cpu_s"].as_f64() > Some(0.0), "{row}");
    }
}

#[test]
fn offloads_are_measured_one_by_one() {
    let found = numbers(&["bench", "offloads", "--megabytes", "2"]);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6, "{found}");
    for row in rows {
        for value in ["read_mb_per_s", "read_cpu_ns_per_kb", "write_mb_per_s", "write_cpu_ns_per_kb"] {
            assert!(row[value].as_f64() > Some(0.0), "{value} in {row}");
        }
        let [placed, staged] = ["placed_frames", "staged_frames"].map(|value| row[value].as_u64().unwrap());
        // Replies to other commands are short.
        match ["without placement", "none"].contains(&row["offloads"].as_str().unwrap()) {
            true => assert!(placed == 0 && staged > 500, "{row}"),
            false => assert!(placed > 500 && staged < 100, "{row}"),
        }
    }
}

const TWO_HOSTS: &str = r#"
[switch.sw1]
domain = 1
fcoe = { keep_alive = "500ms" }

[host.h1]
wwpn = "20:00:52:54:00:00:00:01"

[host.h2]
wwpn = "20:00:52:54:00:00:00:02"

[storage.ram]
wwpn = "50:00:00:00:00:00:00:01"
luns = 2
lun_size = "64MiB"

[[link]]
from = "{h1,h2}"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "ram"
to = "sw1"
"#;

#[test]
fn requests_over_fcoe_and_nbd_are_counted_and_a_path_that_waits_stays_logged_in() {
    let mut instance = Instance::start("bench-io", TWO_HOSTS);
    instance.start_initiator("h2");
    let ends = format!("dgram:{},{}", instance.path("h1-sw1.peer.sock"), instance.path("h1-sw1.sock"));
    let fcoe = format!("fcoe:50:00:00:00:00:00:00:01/1,wwpn=20:00:52:54:00:00:00:01@{ends}");
    let nbd = format!("nbd=nbd+unix:///fc-0x5000000000000001-lun-0?socket={}", instance.path("nbd.sock"));
    let pid = format!("--pid near={}", instance.id());
    let line = format!(
        "bench io near={fcoe} {nbd} --size 4K,256K --depth 1,8 --op read,write --overwrite --rounds 2 --seconds 0.1 \
         --sessions 2 --random {pid} --plot @plot.html --json"
    );
    let report: serde_json::Value = serde_json::from_str(&instance.run(&line).good()).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for row in cells.iter().flat_map(|cell| cell["paths"].as_array().unwrap()) {
        let number = |name: &str| row[name].as_f64().unwrap_or(0.0);
        assert!(number("mb_per_s") > 0.0 && number("iops") > 0.0 && number("own_cpu_ms_per_gb") > 0.0, "{row}");
        let latencies: Vec<f64> = row["latency_us"].as_array().unwrap().iter().filter_map(|us| us.as_f64()).collect();
        assert!(latencies.len() == 4 && latencies[0] > 0.0 && latencies.is_sorted(), "{row}");
        assert_eq!(row["process_cpu_ms_per_gb"].is_f64(), row["name"] == "near", "{row}");
    }
    let (near, far) = (&report["paths"][0], &report["paths"][1]);
    assert_eq!((&near["transport"], &near["receive_bytes"]), (&"fcoe".into(), &2048.into()), "{near}");
    assert_eq!((&far["transport"], &far["export_bytes"]), (&"nbd".into(), &(64 << 20).into()), "{far}");
    let plot = std::fs::read_to_string(instance.path("plot.html")).unwrap();
    assert_eq!(plot.matches("<svg").count(), 10);
    assert!(plot.contains("nbd, depth 8"), "no curve of a path");
    // The written data are on the disks: the pattern, with zeros in between.
    let head = instance.run(&format!("bench io {nbd} --size 512 --depth 1 --rounds 1 --seconds 0.05")).good();
    assert!(head.contains("64 MiB, requests from 512"), "{head}");

    // The host is silent for longer than the keep-alive limit, so the measurement must send
    // keep-alives for it.
    let gone = |log: &str| log.lines().filter(|line| line.contains("host gone")).count();
    let before = gone(&instance.log());
    let line = format!("bench io {nbd} late={fcoe} --size 4K --depth 1 --rounds 2 --seconds 2");
    assert!(instance.run(&line).good().contains("late to nbd, read:"));
    assert_eq!(gone(&instance.log()), before + 1);
    instance.stop();
}

#[test]
fn unusable_paths_over_fcoe_and_nbd_are_named_with_their_reason() {
    let mut instance = Instance::start("bench-io-refused", TWO_HOSTS);
    instance.start_initiator("h2");
    let ends = format!("dgram:{},{}", instance.path("h1-sw1.peer.sock"), instance.path("h1-sw1.sock"));
    let me = "wwpn=20:00:52:54:00:00:00:01";
    let socket = instance.path("nbd.sock");
    for (path, code, reason) in [
        (format!("fcoe:50:00:00:00:00:00:00:01/9,{me}@{ends}"), 3, "has no disk 9 for us"),
        (format!("fcoe:50:00:00:00:00:00:00:02/0,{me}@{ends}"), 3, "visible are 50:00:00:00:00:00:00:01"),
        (format!("nbd+unix:///other?socket={socket}"), 3, "rejects the export `other`"),
        (format!("nbd+unix:///?socket={socket}.not"), 3, "no connection"),
        (format!("fcoe:50:00:00:00:00:00:00:01/0,{me}@fd:99"), 4, "descriptor 99"),
        ("fcoe:x@eth0".to_owned(), 2, "write it as fcoe:"),
    ] {
        let ran = instance.run(&format!("bench io {path} --size 4K --depth 1 --rounds 1 --seconds 0.05"));
        assert!(ran.code == code && ran.stderr.contains(reason), "{path}: {ran:?}");
    }
    let nbd = format!("nbd+unix:///?socket={socket}");
    let ran = instance.run(&format!("bench io {nbd} --size 16M,512 --depth 1 --op write --rounds 1 --seconds 0.05"));
    ran.refused("--overwrite");
    instance.stop();
}
