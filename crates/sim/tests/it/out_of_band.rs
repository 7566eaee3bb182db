//! Out-of-band virtualization: hits and misses, a boot storm, moves of virtual disks, fences, and
//! the failure of each box.

use crate::labs;
use sanloom_api::results::{ExpectationResult, MetadataResult, Metrics, Results, StorageResult};
use sanloom_fc::san::Expectation;

fn run(text: &str) -> Results {
    labs::run(&labs::lab(text))
}

fn storage<'r>(results: &'r Results, name: &str) -> &'r StorageResult {
    results.storage.iter().find(|storage| storage.name == name).expect("the storage system has results")
}

fn metadata(results: &Results) -> &MetadataResult {
    storage(results, "meta").metadata.as_ref().expect("`meta` is a metadata server")
}

/// `hosts` hosts in a fabric with two arrays, and a virtual disk of 64 extents on the first one.
fn lab(hosts: u16, duration: &str, out_of_band: &str, rest: &str) -> String {
    let rest = rest.replace("server*", &format!("server{{1..{hosts}}}"));
    format!(
        r#"
[run]
duration = "{duration}"
warmup = "0s"
[switch.sw]
[host."server{{1..{hosts}}}"]
multipath = {{ no_path_retry = 60 }}
[host.mover]
[storage."array{{1..2}}"]
rate = "1M/s"
lun_size = "64MiB"
[[link]]
from = "server{{1..{hosts}}}"
to = "sw"
rate = "8GFC"
[[link]]
from = "{{mover,array1,array2}}"
to = "sw"
rate = "8GFC"
[storage.meta]
medium = "volumes"
out_of_band = {{ {out_of_band} }}
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
size = "64MiB"
storage = "meta"
{rest}
"#
    )
}

fn workload(settings: &str) -> String {
    format!("[workload.load]\nhosts = \"server*\"\ntargets = \"meta:lun0\"\n{settings}\n")
}

fn nothing_lost(results: &Results) {
    let books = &results.conservation;
    assert_eq!(books.commands_issued, books.commands_completed + books.commands_failed + books.commands_in_flight);
}

#[test]
fn a_hit_costs_nothing_and_a_miss_the_round_trip_and_the_service() {
    // One read of each extent in turn: first misses only, then hits only.
    let strided = workload("depth = 1\nlocation = \"strided\"\nstride = \"1MiB\"\nsize = \"4KiB\"");
    let through = run(&lab(1, "60ms", "round_trip = \"300us\", service = \"50us\"", &strided));
    let direct = strided.replace("meta:lun0", "array1:lun0");
    let direct = run(&lab(1, "60ms", "round_trip = \"300us\", service = \"50us\"", &direct));
    let found = metadata(&through);
    assert_eq!(found.misses, 64);
    assert!(found.hits > 500, "{found:?}");
    assert_eq!((found.miss_latency.mean_us, found.miss_latency.max_us), (350.0, 350.0));
    let [through, direct] = [&through, &direct].map(|results| &results.totals.io.latency);
    // A hit is as fast as a command without a map; the slowest request is a miss.
    assert!((through.p50_us / direct.p50_us - 1.0).abs() < 0.01, "{} and {}", through.p50_us, direct.p50_us);
    let added = through.max_us - direct.max_us;
    assert!((349.0..351.0).contains(&added), "a miss added {added} us");
}

#[test]
fn in_a_boot_storm_the_last_host_waits_for_all_others() {
    let hosts = 12;
    let load = workload("depth = 1\nsize = \"4KiB\"\nlocation = \"sequential\"");
    let results = run(&lab(hosts, "20ms", "round_trip = \"200us\", service = \"40us\"", &load));
    let found = metadata(&results);
    // All of them begin at once with the first extent.
    assert_eq!(found.queue.max, u64::from(hosts));
    assert_eq!(found.miss_latency.max_us, 200.0 + 40.0 * f64::from(hosts));
    // Some messages are on the way at the end.
    assert!(found.messages <= found.misses && found.misses <= found.messages + u64::from(hosts), "{found:?}");
    nothing_lost(&results);
}

#[test]
fn a_small_map_misses_as_often_as_its_share_of_the_extents_says() {
    let load = workload("depth = 1\nsize = \"4KiB\"");
    let results = run(&lab(1, "400ms", "entries = 16, round_trip = \"100us\", service = \"10us\"", &load));
    let share = metadata(&results).hit_share;
    assert!((share - 16.0 / 64.0).abs() < 0.03, "{share}");
}

#[test]
fn a_virtual_disk_moves_to_another_array_while_it_is_in_use() {
    let load = workload("depth = 8\nsize = \"16KiB\"\nread_share = 0.5");
    let rest = format!("{load}[[fault]]\nat = \"50ms\"\nkind = \"volume-move\"\nvolume = \"data\"\nto = \"second\"\n");
    let text = lab(3, "400ms", "round_trip = \"200us\", service = \"20us\", copy_rate = \"8Gb/s\"", &rest);
    let results = run(&text);
    let found = metadata(&results);
    assert_eq!((found.changes, found.epoch, found.useless_moves, found.fenced), (64, 64, 0, 0));
    // 1 MiB at 1 GB/s, and at least a round trip and a service time for the acknowledgements.
    let least_us = 1048.576 + 200.0 + 20.0;
    assert!(found.change_mean_us >= least_us && found.change_max_us < 3.0 * least_us, "{found:?}");
    assert!(found.stalled > 0);
    assert_eq!(results.totals.io.ios_failed, 0);
    nothing_lost(&results);
    // After the move, the first array has nothing to do.
    let still = format!("{load}[[fault]]\nat = \"1ms\"\nkind = \"volume-move\"\nvolume = \"data\"\nto = \"second\"\n");
    let late = lab(3, "400ms", "round_trip = \"200us\", service = \"20us\", copy_rate = \"8Gb/s\"", &still)
        .replace("warmup = \"0s\"", "warmup = \"200ms\"");
    let results = run(&late);
    assert_eq!(storage(&results, "array1").ios_completed, 0);
    assert!(storage(&results, "array2").ios_completed > 1_000);
}

#[test]
fn a_host_that_misses_a_change_is_fenced_and_comes_back() {
    let load = workload("depth = 4\nsize = \"4KiB\"\nread_share = 0.5");
    let faults = r#"
[[fault]]
at = "50ms"
for = "200ms"
kind = "metadata-cut"
host = "server2"
[[fault]]
at = "60ms"
kind = "volume-move"
volume = "data"
to = "second"
"#;
    let settings =
        "round_trip = \"200us\", service = \"20us\", fence_after = \"20ms\", retry = \"5ms\", copy_rate = \"80Gb/s\"";
    let text = lab(2, "500ms", settings, &format!("{load}{faults}"));
    let late = run(&text.replace("warmup = \"0s\"", "warmup = \"300ms\""));
    let back = late.hosts[1].io.ios_completed;
    assert!(back > 1_000, "{back} after the cut");
    let results = run(&text);
    let found = metadata(&results);
    assert_eq!((found.fenced, found.changes), (1, 64));
    assert!(found.refused > 0, "{found:?}");
    assert_eq!(results.totals.io.ios_failed, 0);
    nothing_lost(&results);
    // The first change waits for the fence, the others need only the host that is left.
    assert!(found.change_max_us >= 20_000.0 && found.change_mean_us < 2_000.0, "{found:?}");
    let completed: Vec<u64> = results.hosts.iter().take(2).map(|host| host.io.ios_completed).collect();
    assert!(completed.iter().all(|ios| *ios > 1_000), "{completed:?}");
}

#[test]
fn without_the_server_hits_continue_and_misses_wait_or_fail() {
    // The second workload needs an extent that no host knows.
    let load = r#"
[workload.known]
hosts = "server1"
targets = "meta:lun0"
depth = 1
size = "4KiB"
span = "1MiB"
[workload.unknown]
hosts = "server2"
targets = "meta:lun0"
depth = 1
size = "4KiB"
location = "sequential"
start = "50ms"
[[fault]]
at = "20ms"
for = "100ms"
kind = "power-failure"
storage = "meta"
"#;
    let settings = "round_trip = \"200us\", service = \"20us\", retry = \"10ms\"";
    let results = run(&lab(2, "200ms", settings, load));
    let found = metadata(&results);
    assert_eq!((results.totals.io.ios_failed, found.unanswered), (0, 0));
    // The host asks at 50 ms and then every 10 ms. The first message after the fault is that of
    // 120 ms.
    assert!((found.miss_latency.max_us - 70_220.0).abs() < 0.01, "{found:?}");
    let known = &results.hosts[0];
    assert!(known.longest_stall_s < 0.001, "{} s", known.longest_stall_s);

    let results = run(&lab(2, "200ms", &format!("{settings}, give_up = \"30ms\""), load));
    let found = metadata(&results);
    assert!(found.unanswered > 0 && results.totals.io.ios_failed == found.unanswered, "{found:?}");
    nothing_lost(&results);
}

/// `check` calls the server a single point of failure for this reason.
#[test]
fn hosts_that_start_without_the_server_move_no_data() {
    let fault = "[[fault]]\nat = \"0s\"\nkind = \"power-failure\"\nstorage = \"meta\"\n";
    let load = workload("depth = 4\nsize = \"4KiB\"");
    let settings = "retry = \"10ms\", give_up = \"30ms\"";
    let results = run(&lab(2, "200ms", settings, &format!("{load}{fault}")));
    let io = &results.totals.io;
    assert!((io.ios_completed, io.ios_failed > 0) == (0, true), "{io:?}");
    let report = sanloom_lab::topology::Report::of(&labs::lab(&lab(2, "200ms", settings, &load)), &[]);
    assert!(report.single_points.iter().any(|point| (point.name.as_str(), point.hosts) == ("meta", 2)));
}

#[test]
fn requests_to_an_array_without_power_wait_for_it() {
    let load = workload("depth = 4\nsize = \"4KiB\"\nstart = \"0s\"");
    let text = lab(1, "300ms", "service = \"20us\"", &load)
        .replace("size = \"64MiB\"\nstorage", "size = \"128MiB\"\nstorage")
        + "[[fault]]\nat = \"100ms\"\nfor = \"50ms\"\nkind = \"power-failure\"\nstorage = \"array1\"\n";
    let results = run(&text);
    assert_eq!(results.totals.io.ios_failed, 0);
    nothing_lost(&results);
    assert!(results.hosts[0].longest_stall_s >= 0.05, "{} s", results.hosts[0].longest_stall_s);
    let [one, two] = ["array1", "array2"].map(|name| storage(&results, name).ios_completed);
    assert!(one > 500 && two > 500, "{one} and {two}");
}

#[test]
fn a_request_across_extents_ends_with_its_last_piece() {
    let load = workload("depth = 1\nsize = \"3MiB\"\nlocation = \"sequential\"");
    let text = lab(1, "100ms", "round_trip = \"200us\", service = \"20us\"", &load);
    for (text, pieces) in [
        (text.clone(), 3),
        // Stripes of 512 KiB over both arrays.
        (text.replace("storage = \"meta\"", "width = 2\nstripe = \"512KiB\"\nstorage = \"meta\""), 6),
    ] {
        let results = run(&text);
        let found = metadata(&results);
        let requests = results.conservation.commands_issued;
        assert!(requests > 10);
        assert_eq!(found.hits + found.misses, pieces * requests);
        assert_eq!(results.totals.io.ios_failed, 0);
        nothing_lost(&results);
        assert_eq!(results.totals.io.read_bytes, results.totals.io.ios_completed * 3 * 1024 * 1024);
    }
}

#[test]
fn a_fence_of_one_server_leaves_the_disks_of_another_alone() {
    let load = workload("depth = 4\nsize = \"4KiB\"\nread_share = 0.5");
    // `other` has its own pool, on second LUNs of the arrays.
    let other = r#"
[storage.other]
medium = "volumes"
out_of_band = {}
[pool.rest]
extent = "1MiB"
[back_end.third]
pool = "rest"
host = "mover"
target_port = "array1"
lun = 1
[volume.more]
pool = "rest"
size = "64MiB"
storage = "other"
[workload.more]
hosts = "server*"
targets = "other:lun0"
depth = 4
size = "4KiB"
[[fault]]
at = "20ms"
kind = "metadata-cut"
host = "server2"
[[fault]]
at = "25ms"
kind = "volume-move"
volume = "data"
to = "second"
"#;
    let settings = "fence_after = \"20ms\", retry = \"5ms\", copy_rate = \"80Gb/s\"";
    let text = lab(2, "100ms", settings, &format!("{load}{other}"));
    let results = run(&text.replace("lun_size = \"64MiB\"", "luns = 2\nlun_size = \"64MiB\""));
    assert_eq!(metadata(&results).fenced, 1);
    assert_eq!(results.totals.io.ios_failed, 0);
    nothing_lost(&results);
}

#[test]
fn requests_that_wait_for_the_server_are_within_max_waiting_and_unfinished() {
    let load = r#"
[workload.open]
hosts = "server1"
targets = "meta:lun0"
arrivals = "constant 20k/s"
size = "4KiB"
start = "20ms"
[[fault]]
at = "10ms"
kind = "power-failure"
storage = "meta"
"#;
    let text = lab(1, "80ms", "retry = \"5ms\"", load)
        .replace("no_path_retry = 60 }", "no_path_retry = 60 }\nmax_waiting = 50");
    let results = run(&text);
    let host = &results.hosts[0];
    assert_eq!((host.io.ios_completed, host.io.ios_unfinished), (0, 50));
    assert_eq!(host.io.ios_offered, host.io.ios_failed + 50);
    assert_eq!(host.ios_refused, host.io.ios_failed);
}

#[test]
fn the_same_lab_gives_the_same_results() {
    let load = workload("depth = 8\nsize = \"16KiB\"\nread_share = 0.5");
    let rest = format!("{load}[[fault]]\nat = \"5ms\"\nkind = \"volume-move\"\nvolume = \"data\"\nto = \"second\"\n");
    let text = lab(4, "40ms", "entries = 20, copy_rate = \"8Gb/s\"", &rest);
    assert_eq!(run(&text), run(&text));
}

#[test]
fn the_examples_keep_what_they_promise_and_out_of_band_is_faster() {
    let mut rates = Vec::new();
    for name in ["out-of-band", "in-band", "out-of-band-failures"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
        let lab = labs::lab(&std::fs::read_to_string(path).expect("the example is there"));
        let results = labs::run(&lab);
        nothing_lost(&results);
        rates.push(results.totals.io.throughput_bytes_per_s);
        let metrics = Metrics::new(&results);
        let check = |one: &Expectation| ExpectationResult::check(&metrics, &one.metric, one.min, one.max);
        let verdicts: Vec<ExpectationResult> = lab.expectations.iter().map(check).collect();
        let broken: Vec<_> = verdicts.iter().filter(|verdict| !verdict.ok).collect();
        let found = results.storage.iter().filter_map(|own| own.metadata.as_ref()).collect::<Vec<_>>();
        assert!(!verdicts.is_empty() && broken.is_empty(), "{name}: {broken:#?}\n{found:#?}");
    }
    assert!(rates[0] > 1.8 * rates[1], "{rates:?}");
}
