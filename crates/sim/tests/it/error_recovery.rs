//! Error recovery of hosts as in Linux, in whole labs.

use crate::labs::{lab_with, run, watched};
use sanloom_api::results::Results;
use sanloom_sim::net::ObservedKind;
use sanloom_wire::Message;
use std::sync::Arc;

/// A host with two paths. From 100 ms on, the link of one storage port loses all frames although it
/// has light.
const SILENT: &str = r#"
[run]
duration = "2s"
warmup = "0s"
stop_issuing = "1.2s"
[switch."sw{A,B}"]
[host.server]
hbas = 2
command_timeout = "200ms"
abort_timeout = "100ms"
reset_timeout = "100ms"
multipath = { fast_io_fail = "50ms", dev_loss = "10s", polling_interval = "1s" }
[storage.array]
ports = 2
[[link]]
from = "server:{0..1}"
to = "sw{A,B}"
[[link]]
from = "array:{0..1}"
to = "sw{A,B}"
[workload.reads]
hosts = "server"
targets = "array"
depth = 2
size = "4KiB"
"#;

const LOST: &str = "[[fault]]\nat = \"100ms\"\nkind = \"frame-loss\"\nlink = \"array:0-swA\"\nprobability = 1.0";

fn silent(sets: &[&str]) -> Results {
    run(&lab_with(SILENT, LOST, sets))
}

/// Asserts that the longest stall is `expected_ms`, plus the time of a login.
fn assert_stall(results: &Results, expected_ms: f64) {
    let stall_ms = results.hosts[0].longest_stall_s * 1e3;
    assert!((expected_ms..expected_ms + 20.0).contains(&stall_ms), "{stall_ms} ms instead of {expected_ms} ms");
    assert_eq!(results.totals.io.ios_failed, 0);
}

#[test]
fn a_second_path_takes_over_after_command_timeout_abort_resets_and_fast_io_fail() {
    // 200 ms timeout, 100 ms abort, 100 ms LUN reset, 100 ms target reset; then the HBA is reset,
    // and fast_io_fail runs from the loss of the login: 50 ms.
    assert_stall(&silent(&[]), 550.0);
}

#[test]
fn eh_deadline_skips_the_resets_of_luns_and_targets() {
    // The deadline passes during the abort.
    assert_stall(&silent(&["host.server.eh_deadline=50ms"]), 350.0);
    // The deadline passes during the LUN reset, which continues; the target reset is skipped.
    assert_stall(&silent(&["host.server.eh_deadline=150ms"]), 450.0);
}

#[test]
fn with_the_limits_of_linux_the_second_path_takes_over_after_65_s() {
    // 30 s timeout, 10 s abort, 2 × 10 s resets, 5 s fast_io_fail. The deadline skips the resets.
    let linux = |deadline: &str| {
        let timers = ["command_timeout=30s", "abort_timeout=10s", "reset_timeout=10s", "multipath.fast_io_fail=5s"];
        let deadline = format!("eh_deadline={deadline}");
        let host = timers.into_iter().chain([deadline.as_str()]).map(|set| format!("host.server.{set}"));
        let run = [
            "run.duration=80s",
            "run.stop_issuing=66s",
            "storage.array.rate=200/s",
            "host.server.multipath.dev_loss=60s",
        ];
        let sets: Vec<String> = host.chain(run.map(str::to_owned)).collect();
        silent(&sets.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_stall(&linux("off"), 65_000.0);
    assert_stall(&linux("5s"), 45_000.0);
}

/// Task management functions on a link, with the times at which their frames leave, in ms.
fn functions(lab: &Arc<sanloom_fc::san::Lab>) -> (Vec<(u64, u8)>, Results) {
    let mut found = Vec::new();
    let finished = watched(lab, &mut |world, observed| {
        for record in observed {
            let ObservedKind::Frame { start_ps, message: Some(message), .. } = &record.kind else { continue };
            let (header, bytes, _) = &**message;
            if let Ok(Message::FcpCmnd(command)) = Message::parse(header, bytes, None)
                && command.task_management != 0
            {
                found.push(((start_ps - world.start_ps) / 1_000_000_000, command.task_management));
            }
        }
    });
    (found, finished.results)
}

#[test]
fn an_answered_lun_reset_ends_the_escalation() {
    // The link works again before the ABTS times out, so the LUN reset is answered.
    let fault = LOST.replace("at =", "until = \"350ms\"\nat =");
    let (found, results) = functions(&lab_with(SILENT, &fault, &[]));
    // Once over the link of the host, and once over that of the array.
    assert_eq!(found, [(400, 0x10), (400, 0x10)]);
    assert_stall(&results, 300.0);
}

#[test]
fn resets_leave_in_the_order_lun_then_target() {
    let (found, _) = functions(&lab_with(SILENT, LOST, &[]));
    assert_eq!(found, [(400, 0x10), (500, 0x20)], "the lost frames do not leave the switch");
}

#[test]
fn a_timeout_is_retried_on_its_path_until_retries_are_used_up() {
    // One path. The link works again before the ABTS leaves, so the abort is answered.
    let fault = LOST.replace("at =", "until = \"250ms\"\nat =").replace("array:0", "array");
    let failed = |retries: &str| {
        let text = SILENT.replace("sw{A,B}", "swA").replace(":{0..1}", "");
        let retries = format!("host.server.retries={retries}");
        // Without a path a request fails at once.
        let sets = ["host.server.hbas=1", "storage.array.ports=1", "host.server.multipath.no_path_retry=0", &retries];
        run(&lab_with(&text, &fault, &sets)).totals.io.ios_failed
    };
    assert_eq!(failed("5"), 0);
    // Both commands in flight fail with their first timeout, and later ones until the path checker
    // has found that the path works.
    assert!(failed("0") > 2);
}

#[test]
fn the_path_checker_fails_a_silent_path_and_brings_it_back() {
    // The error handler waits for its first reset during the whole run, so only the path checker
    // changes the state of the path.
    let sets = ["host.server.multipath.polling_interval=50ms", "host.server.reset_timeout=10s"];
    let state = |fault: &str| run(&lab_with(SILENT, fault, &sets)).hosts[0].paths[0].state.clone();
    assert_eq!(state(LOST), "suspect");
    assert_eq!(state(&LOST.replace("at =", "until = \"1s\"\nat =")), "active");
}

/// Sixteen hosts with a depth of 64 each, and a storage system that queues 32 commands.
const STORM: &str = r#"
[run]
duration = "500ms"
warmup = "0s"
stop_issuing = "450ms"
[switch.core]
[host."server{1..16}"]
queue_depth = 64
[storage.array]
rate = "20k/s"
max_queued = 32
[[link]]
from = "server{1..16}"
to = "core"
[[link]]
from = "array"
to = "core"
rate = "16GFC"
[workload.reads]
hosts = "server{1..16}"
targets = "array"
depth = 64
size = "4KiB"
"#;

#[test]
fn hosts_back_off_after_task_set_full() {
    let results = run(&lab_with(STORM, "", &[]));
    let (storage, io) = (&results.storage[0], &results.totals.io);
    assert_eq!(io.ios_failed, 0);
    // The controller is always busy.
    assert!(io.ios_completed >= 8_900, "{}", io.ios_completed);
    println!("{} refusals, {} completed", storage.task_set_full, io.ios_completed);
    // A refused command waits for the end of another one. With a fixed pause of 1 ms there would be
    // 16 × 62 refusals in each millisecond, 49 for each completed command.
    assert!(storage.task_set_full < 5 * io.ios_completed, "{}", storage.task_set_full);
}

#[test]
fn task_set_full_is_repeated_for_retries_plus_one_command_timeouts() {
    let failed = |retries: u8| {
        let sets = [
            "storage.array.rate=5/s",
            "storage.array.max_queued=1",
            "run.duration=4s",
            "run.stop_issuing=3s",
            "host.*.command_timeout=1s",
            "host.*.multipath.no_path_retry=0",
            &format!("host.*.retries={retries}"),
        ];
        let results = run(&lab_with(STORM, "", &sets));
        (results.totals.io.ios_failed, results.storage[0].task_set_full)
    };
    let (without, with) = (failed(0), failed(20));
    assert!(without.0 > 900, "{without:?}: commands fail after 1 s");
    assert_eq!(with.0, 0, "{with:?}: commands wait for up to 21 s");
}
