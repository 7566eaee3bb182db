//! `sanloom sim`, as a user meets it.

use crate::commands::tool::{Bench, without_engine};
use insta::assert_snapshot;

#[test]
fn shows_a_table_and_leaves_a_folder() {
    let bench = Bench::new("sim-table");
    assert_snapshot!(bench.run("sim tiny.toml").snapshot());
    for file in ["report.html", "results.json", "series.csv", "series.jsonl", "topology.svg", "lab.toml"] {
        assert!(!bench.read(&format!("tiny.sanloom-report/{file}")).is_empty(), "{file}");
    }
    assert_eq!(bench.read("tiny.sanloom-report/lab.toml"), bench.read("tiny.toml"));
}

#[test]
fn a_failing_expectation_ends_with_code_1_and_loses_no_file() {
    let bench = Bench::new("sim-failing");
    assert_snapshot!(bench.run("sim failing.toml --json results.json --series series.csv").snapshot());
    assert_eq!(without_engine(&bench.read("results.json"))["expectations"][1]["ok"], false);
    assert!(bench.read("series.csv").starts_with("at_s,"));
    assert!(bench.path("failing.sanloom-report/report.html").exists());
}

#[test]
fn quiet_prints_only_failures() {
    let bench = Bench::new("sim-quiet");
    let good = bench.run("sim tiny.toml --quiet --no-report");
    assert_eq!((good.code, good.stdout.as_str(), good.stderr.as_str()), (0, "", ""));
    assert_snapshot!(bench.run("sim failing.toml --quiet --no-report").snapshot());
}

#[test]
fn the_same_lab_and_seed_give_the_same_bytes() {
    let bench = Bench::new("sim-same");
    let mut bytes = Vec::new();
    for run in ["a", "b"] {
        let words = format!(
            "sim tiny.toml --seed 7 --no-report --json {run}.json --pcap {run}.pcapng --capture all --trace h1-hub \
             --trace-file {run}.txt --quiet"
        );
        assert_eq!(bench.run(&words).code, 0);
        let capture = std::fs::read(bench.path(&format!("{run}.pcapng"))).expect("a capture");
        assert!(capture.len() > 100_000, "all frames are in it");
        let json = without_engine(&bench.read(&format!("{run}.json"))).to_string();
        bytes.push((json, capture, bench.read(&format!("{run}.txt"))));
    }
    assert!(bytes[0] == bytes[1]);
    assert_eq!(bench.run("sim tiny.toml --seed 8 --no-report --json c.json --quiet").code, 0);
    assert_ne!(without_engine(&bench.read("c.json"))["totals"], without_engine(&bench.read("a.json"))["totals"]);
}

#[test]
fn replications_do_not_depend_on_the_number_of_threads() {
    let bench = Bench::new("sim-replications");
    for threads in [1, 2] {
        let words =
            format!("sim tiny.toml --replications 5 --threads {threads} --no-report --quiet --json {threads}.json");
        assert_eq!(bench.run(&words).code, 0);
    }
    let results = without_engine(&bench.read("1.json"));
    assert_eq!(results, without_engine(&bench.read("2.json")));
    assert_eq!(results["replications"]["seeds"].as_array().map(Vec::len), Some(5));
    let interval = &results["replications"]["metrics"]["totals.iops"];
    assert_eq!(interval["count"], 5);
    assert!(interval["half_width"].as_f64() > Some(0.0), "{interval}");
}

#[test]
fn seed_duration_and_set_reach_the_results() {
    let bench = Bench::new("sim-set");
    let ran = bench.run("sim tiny.toml --seed 9 --duration 10ms --set workload.reads.depth=1 --no-report --json -");
    assert_eq!(ran.code, 0);
    let results = without_engine(&ran.stdout);
    assert_eq!(results["lab"]["seed"], 9);
    assert_eq!(results["lab"]["duration_s"], 0.01);
    assert_eq!(results["hosts"][0]["outstanding"]["max"], 1);
    assert_eq!(
        results["lab"]["command"],
        "sanloom sim tiny.toml --set workload.reads.depth=1 --seed 9 --duration 10ms"
    );
}

#[test]
fn real_time_is_in_the_engine_part_only() {
    let bench = Bench::new("sim-engine");
    let ran = bench.run("sim tiny.toml --no-report --json -");
    let value: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let engine = &value["engine"];
    for number in ["frame_hops", "events", "cpu_s", "wall_s", "frame_hops_per_cpu_s", "rss_bytes"] {
        assert!(engine[number].as_f64() > Some(0.0), "{number}");
    }
}

#[test]
fn a_timeline_goes_into_the_report_folder() {
    let bench = Bench::new("sim-trace");
    assert_eq!(bench.run("sim tiny.toml --trace d1-hub").code, 0);
    let trace = bench.read("tiny.sanloom-report/trace.txt");
    for what in ["IDLE x", "R_RDY", "FCP_CMND", "FCP_DATA", "FCP_RSP", "credits"] {
        assert!(trace.contains(what), "{what}");
    }
}

/// `--trace` accepts the names of `--capture`, on every plane.
#[test]
fn links_of_every_plane_have_a_timeline() {
    let bench = Bench::new("sim-trace-planes");
    let lab = |keys: &str, switch: &str, rate: &str| {
        let link = |from: &str| {
            format!("[[link]]\nname = \"{from}-mid\"\nfrom = \"{from}\"\nto = \"mid\"\nrate = \"{rate}\"\n")
        };
        format!(
            "[run]\nduration = \"1ms\"\nwarmup = \"0s\"\n[{switch}.mid]\n[host.h1]\n{keys}\n[storage.d1]\nrate = \
             \"20k/s\"\n{keys}\n{}{}[workload.load]\nhosts = \"h1\"\ntargets = \"d1\"\nsize = \"4KiB\"\nread_share = 1.0\n",
            link("h1"),
            link("d1")
        )
    };
    bench.write("ethernet.toml", &lab("iscsi = {}", "ethernet_switch", "10GbE"));
    bench.write("infiniband.toml", &lab("srp = {}", "infiniband_switch", "4xSDR"));
    for (name, texts) in [
        ("ethernet", ["Login Request", "SCSI Command READ", "SCSI Data-In"]),
        ("infiniband", ["SRP_LOGIN_REQ", "SRP_CMD READ", "flow control FCTBS"]),
    ] {
        let ran = bench.run(&format!("sim {name}.toml --no-report --quiet --trace h1-mid"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for text in texts {
            assert!(ran.stdout.contains(text), "no {text} in\n{}", ran.stdout);
        }
        for unknown in ["h2-mid", "all"] {
            let ran = bench.run(&format!("sim {name}.toml --no-report --trace {unknown}"));
            assert_eq!(ran.code, 2);
            let error = format!("the lab has no link `{unknown}`; its links are h1-mid, d1-mid");
            assert!(ran.stderr.contains(&error), "{}", ran.stderr);
        }
    }
}

#[test]
fn replications_show_the_totals_before_the_hosts() {
    let text = Bench::new("sim-replications-table").run("sim tiny.toml --replications 3 --no-report").stdout;
    let table = text.split("\n3 seeds").nth(1).unwrap_or_else(|| panic!("{text}"));
    let rows: Vec<&str> = table.lines().skip(2).map_while(|line| line.split_whitespace().next()).take(9).collect();
    assert_eq!(
        rows,
        [
            "totals.throughput_bytes_per_s",
            "totals.iops",
            "totals.latency.mean_us",
            "totals.latency.p50_us",
            "totals.latency.p99_us",
            "totals.ios_failed",
            "hosts.h1.throughput_bytes_per_s",
            "hosts.h1.latency.mean_us",
            "hosts.h1.latency.p99_us",
        ]
    );
}

/// Names of the interfaces of a capture, and how many packets each has.
fn interfaces(pcapng: &[u8]) -> Vec<(String, usize)> {
    let word = |at: usize| u32::from_le_bytes(pcapng[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut at, mut found) = (0, Vec::new());
    while at < pcapng.len() {
        let (kind, length) = (word(at), word(at + 4));
        match kind {
            // Interface Description: link type and snap length, then options; if_name is 2.
            1 => {
                let mut option = at + 16;
                while word(option) & 0xffff != 2 {
                    option += 4 + (word(option) >> 16).next_multiple_of(4);
                }
                let name = &pcapng[option + 4..][..word(option) >> 16];
                found.push((String::from_utf8(name.to_vec()).expect("a name"), 0));
            }
            6 => found[word(at + 8)].1 += 1,
            _ => {}
        }
        at += length;
    }
    found
}

#[test]
fn a_capture_has_the_links_that_were_named_and_no_others() {
    let bench = Bench::new("sim-capture");
    let ran = bench.run("sim tiny.toml --no-report --quiet --pcap two.pcapng --capture d2-hub,h1-hub");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let found = interfaces(&std::fs::read(bench.path("two.pcapng")).expect("a capture"));
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["d2-hub", "h1-hub"]);
    assert!(found.iter().all(|(_, packets)| *packets > 100), "{found:?}");
}

#[test]
fn a_capture_can_cover_a_part_of_the_run() {
    let bench = Bench::new("sim-capture-part");
    let packets = |options: &str| {
        let ran = bench.run(&format!("sim tiny.toml --no-report --quiet --pcap part.pcapng --capture all {options}"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{options}");
        let found = interfaces(&std::fs::read(bench.path("part.pcapng")).expect("a capture"));
        found.iter().map(|(_, packets)| packets).sum::<usize>()
    };
    let login = packets("--capture-for 0s");
    let (begin, middle) = (packets("--capture-for 2ms"), packets("--capture-from 2ms --capture-for 1ms"));
    assert!(0 < login && login < begin && middle > 0, "{login}, {begin}, {middle}");
    assert_eq!(begin + middle + packets("--capture-from 3ms"), packets(""));
    let ran = bench.run("sim tiny.toml --pcap part.pcapng --capture all --capture-for 1");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("for example 1ms;"), "{}", ran.stderr);
}

#[test]
fn the_topology_of_a_report_says_how_busy_each_link_was() {
    let bench = Bench::new("sim-topology");
    assert_eq!(bench.run("sim tiny.toml --quiet --json results.json --set workload.reads.hosts=h1").code, 0);
    let drawing = bench.read("tiny.sanloom-report/topology.svg");
    let results = without_engine(&bench.read("results.json"));
    let links = results["links"].as_array().expect("links");
    let mut colours = std::collections::BTreeSet::new();
    for link in links {
        let busy = |direction: &str| link[direction]["utilisation"].as_f64().expect("a utilisation");
        let busy = format!(", {:.0} % busy</title>", busy("forward").max(busy("backward")) * 100.0);
        let name = format!("<title>{}, ", link["name"].as_str().expect("a name"));
        let line = drawing.lines().find(|line| line.contains(&name)).unwrap_or_else(|| panic!("{name} {drawing}"));
        assert!(line.ends_with(&format!("{busy}</path>")) && line.contains("style=\"stroke: "), "{busy} in {line}");
        colours.extend(line.split("stroke: ").nth(1).and_then(|style| style.split(';').next()));
    }
    assert!(colours.len() > 1, "one host works and the other does not: {colours:?}");
    // The report has the layout and the numbers, and draws them itself.
    let report = bench.read("tiny.sanloom-report/report.html");
    let data = report.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("data");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let map = &data["map"];
    assert_eq!(map["graph"]["links"].as_array().map(Vec::len), Some(links.len()));
    for link in links {
        let busy = |direction: &str| link[direction]["utilisation"].as_f64().expect("a utilisation");
        let shown = map["busy"][link["name"].as_str().expect("a name")].as_f64().expect("a number");
        assert!((shown - busy("forward").max(busy("backward"))).abs() < 0.001, "{shown} of {link}");
    }
}

#[test]
fn a_remedy_is_printed_only_with_the_gain_that_it_has_in_this_lab() {
    let bench = Bench::new("sim-remedies");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slow-drain.toml");
    bench.write("slow.toml", &std::fs::read_to_string(example).expect("the example"));
    let words = "sim slow.toml --no-report --set run.duration=1s --set switch.*.queueing=any --set \
                 switch.*.virtual_channels.medium=0";
    let ran = bench.run(words);
    // Queues alone and buffers alone do not free the victims.
    assert_eq!(ran.stdout.matches("Tried: ").count(), 2, "{}", ran.stdout);
    for part in [
        "Tried: one request in flight for server1, and virtual output queues in every switch",
        "3 victims become 0 Repeat it: sanloom sim slow.toml --set run.duration=1s --set 'switch.*.queueing=any' --set 'switch.*.virtual_channels.medium=0' --set host.server1.queue_depth=1 --set 'switch.*.queueing=voq'",
        "Tried: one request in flight for server1 (--set host.server1.queue_depth=1)",
        "but the finding remains: 3 hosts still lose up to",
    ] {
        assert!(ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}: {}", ran.stdout);
    }
    let json = |words: &str| {
        let ran = bench.run(&format!("{words} --quiet --json=results.json"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        without_engine(&bench.read("results.json"))
    };
    let (one, two) = (json(&format!("{words} --threads 1")), json(&format!("{words} --threads 2")));
    assert_eq!(one, two);
    let remedies = &one["findings"][0]["remedies"];
    for (remedy, victims) in [(&remedies[0], 0), (&remedies[1], 3)] {
        assert!(remedy["gain"].as_f64() > Some(0.5) && remedy["victims_after"] == victims, "{remedy}");
    }
    let without = json(&format!("{words} --no-remedies"));
    assert_eq!(without["findings"][0]["remedies"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_remedy_counts_the_victims_that_the_repeated_run_still_has() {
    let bench = Bench::new("sim-remedy-repeated");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slow-drain.toml");
    bench.write("slow.toml", &std::fs::read_to_string(example).expect("the example"));
    let finding = |sets: &[String]| {
        let mut command = bench.command("sim slow.toml --no-report --json --set run.duration=1s");
        command.args(sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        let results = without_engine(&bench.ran(command.output().expect("it runs")).stdout);
        let findings = results["findings"].as_array().expect("findings").clone();
        findings.into_iter().find(|finding| finding["kind"] == "slow_drain").unwrap_or_default()
    };
    let remedy = finding(&[])["remedies"][0].clone();
    let sets: Vec<String> = serde_json::from_value(remedy["set"].clone()).expect("arguments");
    let again = finding(&sets);
    let victims = again["victims"].as_array().into_iter().flatten();
    let hosts = victims.filter(|victim| victim["name"].as_str().is_some_and(|name| name.starts_with("server"))).count();
    assert_eq!(remedy["victims_after"], hosts, "{remedy} {again}");
    let text = bench
        .run("sim slow.toml --no-report --set run.duration=1s")
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(text.contains("but the finding remains: 3 hosts still lose up to"), hosts == 3, "{text}");
}
