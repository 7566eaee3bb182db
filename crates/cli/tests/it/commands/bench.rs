//! `sanloom bench` through its command line, with small sizes: only the presence of results is
//! tested, not their values.

use crate::commands::tool::Bench;
use sanloom_test_support::needs;
use serde_json::Value;

fn numbers(words: &str) -> Value {
    let ran = Bench::new(&words.replace(' ', "-")).run(words);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words}");
    serde_json::from_str(&ran.stdout).expect("JSON")
}

fn positive(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value[name].as_f64().is_some_and(|number| number > 0.0), "{name} in {value}");
    }
}

#[test]
fn sim_gives_rate_and_memory() {
    let rate = numbers("bench sim --duration 5ms --runs 2 --json");
    positive(&rate, &["frame_hops", "cpu_s", "frame_hops_per_cpu_s", "rss_bytes", "bytes_per_login_pair"]);
    assert_eq!(rate["runs"].as_array().map(Vec::len), Some(2));
    // Hard zoning checks each frame and must not change the results.
    let [soft, hard] =
        ["soft", "hard"].map(|way| numbers(&format!("bench sim --duration 5ms --runs 1 --zoning {way} --json")));
    assert_eq!((&soft["frame_hops"], &soft["ios"]), (&hard["frame_hops"], &hard["ios"]));
}

#[test]
fn login_gives_the_mean_of_each_thousand_and_the_contrast() {
    let ours = numbers("bench login --logins 2000 --json");
    positive(&ours, &["rss_bytes", "bytes_per_login", "permissions"]);
    assert_eq!(ours["mean_us"].as_array().map(Vec::len), Some(2));
    let contrast = &ours["contrast"];
    assert_eq!((&contrast["zoning"], &contrast["permissions"]), (&"standard".into(), &ours["permissions"]));
    assert!(contrast["comparisons"].as_u64() > ours["zone_members_compared"].as_u64());
    let modified = numbers("bench login --logins 300 --zoning modified --json");
    assert!(modified.get("contrast").is_none() && modified["zoning"] == "modified");
}

#[test]
fn names_and_fabric_give_their_numbers() {
    let names = numbers("bench names --logins 500 --questions 1000 --json");
    positive(&names, &["answers_per_cpu_s", "all_seeing_ms", "all_seeing_answer_bytes", "rss_bytes"]);
    let fabric = numbers("bench fabric --switches 5 --ports 200 --later 10 --json");
    positive(&fabric, &["converged_after_s", "cpu_s", "messages", "rss_bytes"]);
    // Initially one switch has the zones; the others receive them over their links.
    assert!(fabric["traffic"]["zones"].as_u64() > Some(8), "{fabric}");
    positive(&fabric["later"], &["cpu_s", "messages"]);
}

#[test]
fn bounds_are_printed_and_judged_on_request() {
    let bench = Bench::new("bench-judge");
    let small = bench.run("bench login --logins 100 --judge");
    assert_eq!(small.code, 2, "{}", small.stderr);
    assert!(small.stderr.contains("other sizes have no bounds"), "{}", small.stderr);
    // The test checks that verdict and exit code agree, not that the machine is fast enough.
    let judged = bench.run("bench sim --duration 5ms --runs 1 --judge");
    let missed = judged.stdout.contains("wanted at least 8 M: missed");
    assert!(missed || judged.stdout.contains("wanted at least 8 M: holds"), "{}", judged.stdout);
    assert_eq!((judged.code, judged.stderr.contains("missed")), (i32::from(missed), missed), "{}", judged.stderr);
}

#[test]
fn a_skipped_measurement_is_json_if_json_was_requested() {
    let skipped = numbers("bench ns3 --cxx ./no-such-compiler --json");
    assert!(
        skipped["skipped"].as_str().is_some_and(|why| why.contains("./no-such-compiler cannot be run")),
        "{skipped}"
    );
}

#[test]
fn sizes_durations_and_counts_take_units_and_rows_are_csv() {
    let bench = Bench::new("bench-units");
    let ran = bench.run("bench offloads --size 64K --megabytes 2MB --csv --out out");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with("size_bytes,depth,offloads,read_mb_per_s,"), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().filter(|line| line.starts_with("65536,8,")).count(), 6, "{}", ran.stdout);
    assert_eq!(bench.read("out/offloads.csv"), ran.stdout);
    assert!(bench.read("out/offloads.html").contains("without placement"));
    let login = numbers("bench login --logins 1k --json");
    assert_eq!(login["logins"], 1_000);
    for words in ["bench chain --size 4MiB", "bench forward --seconds 5MB", "bench login --logins 1ms"] {
        assert_eq!(bench.run(words).code, 2, "{words}");
    }
}

#[needs("ns-3")]
#[test]
fn ns3_does_the_same_work_and_is_compared() {
    let ran = Bench::new("bench-ns3").run("bench ns3 --runs 1 --json");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let compared: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let (ns3, ours) = (&compared["ns3"], &compared["sanloom"]);
    let rates = ["ios", "frame_hops", "events", "cpu_s", "frame_hops_per_cpu_s"];
    positive(ns3, &rates);
    positive(ours, &rates);
    // In both, a read is 18 frames over four links, except for frames in flight at the ends of the
    // run.
    for engine in [ns3, ours] {
        let hops = engine["frame_hops"].as_f64().zip(engine["ios"].as_f64()).map(|(hops, ios)| hops / ios);
        assert!(hops.is_some_and(|hops| (71.0..=73.5).contains(&hops)), "{hops:?} frame-hops a read in {compared}");
    }
    let rate = |engine: &Value| engine["frame_hops_per_cpu_s"].as_f64().expect("a rate");
    let ratio = compared["ratio"].as_f64().expect("a ratio");
    assert!((ratio - rate(ours) / rate(ns3)).abs() < 1e-9, "{compared}");
}

#[needs("ns-3")]
#[test]
fn ns3_with_its_tcp_simulates_the_same_lab_as_the_plane_of_ethernet() {
    let ran = Bench::new("bench-ns3-tcp").run("bench sim --plane ethernet --duration 10ms --runs 1 --json");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let rate: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let compared = &rate["ns3"];
    let count = |engine: &str, name: &str| compared[engine][name].as_f64().expect("a count");
    for engine in ["ns3", "sanloom"] {
        positive(&compared[engine], &["ios", "packet_hops", "sent", "delivered", "events"]);
        // Four lines from a host to a device; a packet on its way has crossed at most three.
        let hops = count(engine, "packet_hops") - 4.0 * count(engine, "delivered");
        let on_the_way = count(engine, "sent") - count(engine, "delivered");
        assert!((0.0..=3.0 * on_the_way).contains(&hops), "{hops} packet-hops of {on_the_way} packets in {compared}");
        // A read of 32 KiB needs 23 segments of 1,448 bytes, its request, and acknowledgements.
        let packets = count(engine, "delivered") / count(engine, "ios");
        assert!((24.0..=24.0 + 24.0).contains(&packets), "{packets} packets a read in {compared}");
    }
    for name in ["ios", "delivered", "packet_hops"] {
        let [ours, theirs] = ["sanloom", "ns3"].map(|engine| count(engine, name));
        assert!((ours / theirs - 1.0).abs() < 0.05, "{name}: {ours} and {theirs}");
    }
    // Four lines of 10 Gb/s lead to the edges of the hosts, and carry 1,448 of 1,538 bytes as data.
    let goodput = count("ns3", "ios") * 32_768.0 / compared["duration_s"].as_f64().expect("a time");
    let most = 4.0 * 1.25e9 * 1448.0 / 1538.0;
    assert!((0.9 * most..=most).contains(&goodput), "{goodput} of {most} bytes/s");
    let [ours, theirs] = ["own_runs", "runs"].map(|of| compared[of][0].as_f64().expect("a rate"));
    let ratio = compared["ratio"]["median"].as_f64().expect("a ratio");
    assert!((ratio - ours / theirs).abs() < 1e-9, "{rate}");
    // One run decides nothing.
    let ran = Bench::new("bench-ns3-tcp").run("bench sim --plane ethernet --duration 10ms --runs 1");
    assert!(ran.stdout.contains("times, wanted at least 20 times: undecided"), "{}", ran.stdout);
}

#[test]
fn the_plane_of_ethernet_is_measured_without_ns3_and_gives_the_reason() {
    let without = "bench sim --plane ethernet --duration 10ms --runs 1 --cxx ./no-such-compiler";
    let rate = numbers(&format!("{without} --json"));
    positive(&rate, &["ios", "packet_hops"]);
    let reason = rate["ns3"]["skipped"].as_str().expect("a reason");
    assert!(reason.contains("./no-such-compiler cannot be run"), "{reason}");
    let ran = Bench::new("bench-no-ns3").run(without);
    assert!(ran.stdout.contains("ns-3                   skipped: the compiler ./no-such-compiler"), "{}", ran.stdout);
}
