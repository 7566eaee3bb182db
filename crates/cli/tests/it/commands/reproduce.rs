//! `sanloom reproduce`, as a user meets it.

use crate::commands::tool::Bench;
use sanloom_test_support::needs;
use std::collections::BTreeSet;

#[test]
fn gives_every_number_of_the_paper_as_json() {
    let bench = Bench::new("reproduce-json");
    let ran = bench.run("reproduce sansim --duration 40ms --no-report --json");
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let numbers = list.as_array().expect("a list");
    let fields = [
        "bound",
        "deviation",
        "id",
        "kind",
        "known_miss",
        "note",
        "ok",
        "ours",
        "paper",
        "statement",
        "tolerance",
        "tolerance_reason",
        "unit",
        "verdict",
        "what",
    ];
    let mut ids = BTreeSet::new();
    for number in numbers {
        let number = number.as_object().expect("an object");
        assert_eq!(
            number.keys().collect::<BTreeSet<_>>(),
            fields.iter().map(|f| f.to_string()).collect::<Vec<_>>().iter().collect()
        );
        assert!(ids.insert(number["id"].as_str().expect("an id").to_owned()), "{number:?} stands there twice");
        assert!(number["paper"].is_number());
        // Only predictions are judged.
        let judged = number["kind"] == "prediction";
        assert_eq!((number["ok"].is_boolean(), number["tolerance"].is_number()), (judged, judged), "{number:?}");
        assert_eq!(number["tolerance_reason"].is_string(), judged, "{number:?}");
        assert_eq!(number["verdict"] == "not-judged", !judged, "{number:?}");
        assert!(!number["note"].as_str().unwrap_or("").is_empty(), "{number:?}");
    }
    for id in [
        "case-i-32k-s1-4",
        "case-ii-32k-s5-8",
        "case-iii-32k-s5-8",
        "case-iv-32k-s1-4",
        "case-iv-2k-mean",
        "case-iv-2k-s1-4",
        "case-iv-2k-s5-8",
        "case-iv-2k-response",
        "device-32k",
        "device-transactions",
        "case-i-32k-s1-4-default",
        "case-i-32k-s1-4-fifo",
        "case-iv-2k-s5-8-ingress",
        "case-iii-32k-s1-4-exchange",
        "case-ii-32k-s5-8-unlimited",
    ] {
        assert!(ids.contains(id), "{id}");
    }
    let kind = |id: &str| {
        let found = numbers.iter().find(|number| number["id"] == id).unwrap_or_else(|| panic!("{id}"));
        found["kind"].as_str().unwrap_or_default().to_owned()
    };
    for (id, expected) in [
        ("case-i-2k-s1-4", "input"),
        ("device-transactions", "input"),
        ("device-32k", "fit"),
        ("case-i-32k-isl", "derived"),
        ("case-iv-2k-mean", "derived"),
        ("case-i-32k-s1-4", "prediction"),
        ("case-i-32k-s1-4-fifo", "comparison"),
    ] {
        assert_eq!(kind(id), expected, "{id}");
    }
    // Known misses do not fail; a miss that is not known does, and so does a known miss that is
    // hit.
    let unexpected =
        |number: &&serde_json::Value| ["missed", "unexpected-hit"].iter().any(|word| number["verdict"] == *word);
    assert_eq!(ran.code, i32::from(numbers.iter().any(|number| unexpected(&number))));
}

#[test]
fn no_number_of_a_small_sample_contradicts_its_formula() {
    let bench = Bench::new("reproduce-theory");
    let ran = bench.run("reproduce theory --quick --out out --json");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let rows = list.as_array().expect("a list");
    let mut ids = BTreeSet::new();
    for row in rows {
        assert!(ids.insert(row["id"].as_str().expect("an id")), "{row:?} stands there twice");
        for number in ["theory", "ours", "difference", "tolerance"] {
            assert!(row[number].is_number(), "{row:?}");
        }
        for text in ["quantity", "source", "tolerance_reason"] {
            assert!(!row[text].as_str().unwrap_or("").is_empty(), "{row:?}");
        }
        assert!(["input", "prediction"].contains(&row["kind"].as_str().unwrap_or("")), "{row:?}");
        // Only a number with an interval can be undecided.
        let verdict = row["verdict"].as_str().unwrap_or("");
        assert!(verdict == "ok" || verdict == "undecided" && row["half_width"].is_number(), "{row:?}");
    }
    for id in [
        "line-128GFC",
        "saturated-1GFC",
        "latency-8",
        "credits-4-100km-2048",
        "mdc-16-0.9",
        "mg1-two-0.8",
        "mva-4-16",
        "closed-constant-16",
        "coverage-replications",
        "coverage-batches",
        "karol-8",
        "karol-places-2",
        "parking-lot-5",
        "slow-drain-voq-1",
        "hash-64-pair",
        "hash-behind-plain",
        "timer-e-d-tov",
        "timer-r-a-tov",
        "timer-hold-time",
        "timer-f-s-tov",
        "timer-fspf-hello",
        "timer-fspf-dead",
        "timer-rscn-delay",
        "timer-command",
        "timer-fast-io-fail",
        "timer-dev-loss",
        "timer-no-path-retry",
    ] {
        assert!(ids.contains(id), "{id}");
    }
    let page = bench.read("out/report.html");
    for text in ["Saturation of FIFO inputs", "Pollaczek", "0 missed", "sanloom reproduce theory --quick"] {
        assert!(page.contains(text), "{text}");
    }
    for text in [&page, &ran.stderr] {
        assert!(text.contains("24 numbers left out: misses of LRU, FIFO and CLOCK on a public trace"), "{text}");
        assert!(text.contains("tests/traces/fetch.sh target/traces"), "{text}");
    }
}

#[needs("cache-trace")]
#[test]
fn lru_fifo_and_clock_miss_exactly_as_published_on_the_public_trace() {
    let published = [
        ("lru", [93374, 89783, 83572, 81722, 72494, 72104, 71972, 71704]),
        ("fifo", [93403, 89386, 84387, 84025, 72498, 72228, 72182, 72140]),
        ("clock", [93313, 89775, 83411, 81328, 74815, 72283, 71927, 64456]),
    ];
    let bench = Bench::new("reproduce-public-trace");
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/traces");
    let folder = std::env::var("SANLOOM_TRACES").unwrap_or_else(|_| fetched.into());
    let ran = bench.run(&format!("reproduce theory --quick --traces {folder} --out out --json"));
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("left out"), "{}", ran.stderr);
    let rows: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let rows = rows.as_array().expect("a list");
    for (policy, misses) in published {
        for (at, misses) in misses.into_iter().enumerate() {
            let id = format!("misses-{policy}-{}", (at + 1) * 128);
            let row = rows.iter().find(|row| row["id"] == id.as_str()).unwrap_or_else(|| panic!("{id}"));
            for number in ["theory", "ours"] {
                assert_eq!(row[number].as_f64(), Some(f64::from(misses)), "{row:?}");
            }
            assert!(row["tolerance"] == 0.0 && row["verdict"] == "ok", "{row:?}");
        }
    }
    let page = bench.read("out/report.html");
    assert!(page.contains("Caches on the public trace") && page.contains(">exact<"), "{page}");
}

#[test]
fn a_folder_without_the_public_trace_is_refused_with_the_command_that_fetches_it() {
    let bench = Bench::new("reproduce-no-trace");
    let ran = bench.run("reproduce theory --quick --traces nowhere --no-report");
    assert!(ran.code == 2 && ran.stderr.contains("`tests/traces/fetch.sh nowhere`"), "{}{}", ran.stdout, ran.stderr);
    bench.write("cloudPhysicsIO.oracleGeneral.bin", "short");
    let ran = bench.run("reproduce theory --quick --traces . --no-report");
    assert!(ran.code == 2 && ran.stderr.contains("has 5 bytes instead of 2732928"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn draws_figure_9_with_four_panels() {
    let bench = Bench::new("reproduce-figure");
    let ran = bench.run("reproduce sansim --duration 20ms --figure9 figure.json --html=page.html");
    assert!(ran.code <= 1, "{}", ran.stderr);
    let figure: serde_json::Value = serde_json::from_str(&bench.read("figure.json")).expect("JSON");
    let panels = figure["panels"].as_array().expect("panels");
    assert_eq!(panels.len(), 4);
    for panel in panels {
        let curves = panel["curves"].as_array().expect("curves");
        assert_eq!(curves.len(), 4);
        for curve in curves {
            assert_eq!(curve["offered"].as_array().map(Vec::len), curve["throughput"].as_array().map(Vec::len));
        }
    }
    let page = bench.read("page.html");
    for text in ["Case IV: ISL1 and ISL8 failure", "FIFO queues", "unlimited in flight", "16 predictions: "] {
        assert!(page.contains(text), "{text}");
    }
    for file in ["report.html", "numbers.json", "figure9.svg", "figure9.json"] {
        assert!(!bench.read(&format!("sansim.sanloom-report/{file}")).is_empty(), "{file}");
    }
}

#[test]
fn reproduces_the_npiv_paper_with_its_figures() {
    let bench = Bench::new("reproduce-npiv");
    let ran = bench.run("reproduce npiv --out out --json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let ours = |id: &str| {
        let found = list.as_array().expect("a list").iter().find(|number| number["id"] == id);
        found.unwrap_or_else(|| panic!("{id}"))["ours"].as_f64().expect("a number")
    };
    for (id, comparisons) in [
        // The comparisons of the document, plus one for each address behind the port. Nothing is
        // subtracted.
        ("comparisons-port2-1", 512.0 + 2.0),
        ("comparisons-port2-2", 768.0 + 3.0),
        ("comparisons-port2-255", 65_536.0 + 256.0),
        ("comparisons-port3-255", 131_072.0 + 256.0),
        ("comparisons-port2-modified", 256.0 + 1.0),
        ("comparisons-port3-modified", 512.0 + 1.0),
    ] {
        assert_eq!(ours(id), comparisons, "{id}");
    }
    let figures: serde_json::Value = serde_json::from_str(&bench.read("out/figures.json")).expect("JSON");
    let curves: Vec<usize> =
        figures.as_array().expect("plots").iter().map(|plot| plot["curves"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(curves, [8, 5, 2, 4]);
    let page = bench.read("out/report.html");
    for text in
        ["Figure 11", "Figure 8, means over port 1: FDISC to", "npiv-migration.toml", "4 of 4 expectations hold"]
    {
        assert!(page.contains(text), "{text}");
    }
    // For the moved machine only the last login remains; for the storm only logins that were not
    // repeated.
    let logins = |lab: &str| {
        let sentence = page.split(&format!("examples/{lab}.toml (")).nth(1).unwrap_or_else(|| panic!("{lab}"));
        let number = |before: &str| {
            let text = sentence.split(before).next().and_then(|text| text.rsplit(' ').next());
            text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_else(|| panic!("{lab}: {before}"))
        };
        (number(" logins accepted"), number(" of them stand at the end"))
    };
    bench.write("migration.toml", include_str!("../../../../../examples/npiv-migration.toml"));
    let shown = bench.run("show flogi migration.toml --at 2s --json");
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let standing = shown["table"]["logins"].as_array().or(shown["logins"].as_array()).expect("a table").len() as u64;
    assert_eq!(logins("npiv-migration").1, standing);
    for lab in ["npiv-migration", "npiv-login-storm"] {
        let (accepted, standing) = logins(lab);
        assert!(0 < standing && standing < accepted, "{lab}: {standing} of {accepted}");
    }
    // The limit of the document's switch; and beyond it the first login that takes longer than
    // E_D_TOV, its repetition, and what follows.
    for text in [
        "1000 are accepted; the longest FDISC is that of virtual port 235 on port 4",
        "within E_D_TOV",
        "Virtual port 236 on port 4 is rejected",
        "Beyond the document&#39;s switch, without the limit of 1,000",
        "62 of 400 new machines have logged in",
        "the FDISC of virtual port 204 on port 5 is the first that takes longer than E_D_TOV",
        "a logout and a login, each with all comparisons",
        "never gets done: after a minute",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let of = |id: &str, field: &str| {
        let found = list.as_array().expect("a list").iter().find(|number| number["id"] == id);
        found.and_then(|number| number[field].as_str()).unwrap_or_else(|| panic!("{id}: {field}")).to_owned()
    };
    assert!(of("latency-port3-modified", "note").contains("were chosen for the new firmware alone"));
    assert!(of("latency-port3-modified-alone", "known_miss").contains("does not explain the other"));
    assert!(of("comparisons-port2-255", "note").contains("does not count the storage port"));
    // Nothing is subtracted from the growth at port 1, and the cards in step differ between the
    // repetitions.
    assert!((7.3..7.5).contains(&ours("latency-port1-growth")), "{}", ours("latency-port1-growth"));
    let deviation = |id: &str| {
        let found = list.as_array().expect("a list").iter().find(|number| number["id"] == id);
        found.and_then(|number| number["deviation"].as_f64()).unwrap_or_else(|| panic!("{id}"))
    };
    assert!(deviation("latency-in-step-1") > 0.5 && deviation("latency-port3-255") < 0.001);
}

#[test]
fn measured_disks_and_computed_queues_are_within_their_bars() {
    let bench = Bench::new("reproduce-disks");
    let ran = bench.run("reproduce disks --out out --json");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let traces = report["traces"].as_array().expect("traces");
    let ids: Vec<&str> = traces.iter().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, ["cheetah-9lp", "atlas-10k", "hp-c2247a"]);
    for row in traces {
        let number = |name: &str| row[name].as_f64().expect("a number");
        assert!(number("demerit_percent") <= number("demerit_bar_percent"), "{row:?}");
        assert!(number("mean_difference_percent").abs() <= number("mean_tolerance_percent"), "{row:?}");
        assert_eq!((&row["verdict"], &row["kind"]), (&"ok".into(), &"prediction".into()), "{row:?}");
    }
    let queues = report["queues"].as_array().expect("queues");
    assert_eq!(queues.len(), 52);
    assert!(queues.iter().all(|number| number["verdict"] == "ok"), "{queues:?}");
    assert_eq!(report["figures"].as_array().map(Vec::len), Some(3));
    let page = bench.read("out/report.html");
    for text in ["Distributions", "Fits: no number", "Carnegie Mellon University", "sanloom reproduce disks"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_disk_and_a_trace_of_the_user_are_compared() {
    let bench = Bench::new("reproduce-own-disk");
    let printed = bench.run("reproduce disks --print cheetah-9lp");
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    bench.write("disk.toml", &printed.stdout);
    bench.write("own.trace", "R Hit 1000 4 9000.0 50000.0\nR Hit 1004 4 500.0 50000.0\n");
    let ran = bench.run("reproduce disks --disk disk.toml --trace own.trace --no-report --json");
    assert!(ran.code <= 1, "{}", ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["traces"][0]["requests"], 2);
    assert_eq!(report["traces"][0]["demerit_bar_percent"], 8.0);

    bench.write("own.trace", "R Hit 1000 4 9000.0 50000.0\nR Hit 1004\n");
    let wrong = bench.run("reproduce disks --disk disk.toml --trace own.trace --no-report");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("own.trace: line 2 has 3 columns"), "{}", wrong.stderr);
    bench.write("disk.toml", &printed.stdout.replace("rpm = 10045.0", "rpm = 0").replace("[bus]", "[buss]"));
    let mistakes = bench.run("reproduce disks --disk disk.toml --trace own.trace --no-report");
    assert_eq!(mistakes.code, 2);
    for part in ["`rpm` is 0; set a number", "`buss` is not a parameter", "the table `bus` is missing; add [bus]"] {
        assert!(mistakes.stderr.contains(part), "{}", mistakes.stderr);
    }
    let unknown = bench.run("reproduce disks --disk floppy --trace own.trace --no-report");
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("presets: hp-c2247a, cheetah-9lp"), "{}", unknown.stderr);
}

/// Copies the files of a DiskSim disk into the folder of the test.
fn disksim(bench: &Bench, name: &str) {
    for end in ["parv", "diskspecs", "model", "seek"] {
        let path = format!("{}/../storage/tests/data/disksim/{name}.{end}", env!("CARGO_MANIFEST_DIR"));
        bench.write(&format!("{name}.{end}"), &std::fs::read_to_string(path).expect("the file is there"));
    }
}

#[test]
fn a_disk_of_disksim_is_imported_with_a_list_of_ignored_parameters() {
    let bench = Bench::new("disk-import");
    disksim(&bench, "cheetah9LP");
    let printed = bench.run("disk import cheetah9LP.parv");
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    assert!(printed.stdout.contains("# - Calc sector by sector = 1: times are exact"), "{}", printed.stdout);
    let written = bench.run("disk import cheetah9LP.parv -o cheetah.toml");
    assert_eq!((written.code, bench.read("cheetah.toml")), (0, printed.stdout));
    bench.write("own.trace", "R Hit 1000 4 9000.0 50000.0\nR Hit 1004 4 500.0 50000.0\n");
    let report = |disk: &str| {
        let ran = bench.run(&format!("reproduce disks --disk {disk} --trace own.trace --no-report --json"));
        assert!(ran.code <= 1, "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(report("cheetah9LP.parv"), report("cheetah.toml"));
    bench.write("cheetah9LP.seek", "Seek distances measured: 1\nfar, 3.0\n");
    let wrong = bench.run("disk import cheetah9LP.parv");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("cheetah9LP.seek:2: `far, 3.0` is not a distance"), "{}", wrong.stderr);
}

#[test]
fn a_disk_is_fitted_to_a_trace_and_judged_on_the_half_that_the_fit_has_not_seen() {
    let bench = Bench::new("calibrate-disk");
    let printed = bench.run("reproduce disks --print cheetah-9lp").stdout;
    bench.write("wrong.toml", &printed.replace("read_block_ms = 0.105", "read_block_ms = 0.2"));
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/data/disk-traces/cheetah-9lp.trace.gz");
    let ran = bench.run(&format!("calibrate-disk wrong.toml {trace} --replays 400 -o fitted.toml --json"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let demerit = |index: usize| report["prediction"][index]["demerit_percent"].as_f64().expect("a number");
    assert!(demerit(0) > 6.0 && demerit(1) <= 6.0, "{} before, {} after", demerit(0), demerit(1));
    assert_eq!(report["percentiles"].as_array().map(Vec::len), Some(9));
    let written = bench.read("fitted.toml");
    assert!(written.starts_with("# Fitted by `sanloom calibrate-disk` from wrong.toml"), "{written}");
    let again = bench.run(&format!("reproduce disks --disk fitted.toml --trace {trace} --no-report"));
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    bench.write("short.trace", "R Hit 1000 4 9000.0 50000.0\n");
    let short = bench.run("calibrate-disk wrong.toml short.trace");
    assert_eq!(short.code, 2);
    assert!(short.stderr.contains("short.trace has 1 requests; a fit needs at least 200"), "{}", short.stderr);
}

/// Every fabric and size has a row. Long reads move more than short ones, and no fabric exceeds its
/// line.
#[test]
fn the_comparison_of_today_has_every_fabric_and_size() {
    let bench = Bench::new("reproduce-today");
    let ran = bench.run("reproduce today --out out --json");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let rows = list.as_array().expect("a list");
    let sizes = [4, 16, 64, 256, 1_024];
    let of = |fabric: &str, size: u64| {
        let row = rows.iter().find(|row| row["fabric"] == fabric && row["size_kib"] == size);
        row.unwrap_or_else(|| panic!("{fabric}, {size} KiB"))
    };
    let rate = |fabric: &str, size: u64| of(fabric, size)["throughput_bytes_per_s"].as_f64().expect("a rate");
    let fabrics = ["FC, 32GFC", "iSCSI, 25GbE", "iSCSI, 100GbE", "FCoE, 100GbE", "SRP, 4xNDR"];
    assert_eq!(rows.len(), sizes.len() * fabrics.len());
    for fabric in fabrics {
        assert!(rate(fabric, 4) < rate(fabric, 64) && rate(fabric, 64) < 1.05 * rate(fabric, 1_024), "{fabric}");
        for size in sizes {
            let row = of(fabric, size);
            let share = row["share_of_line"].as_f64().expect("a share");
            assert!(share > 0.0 && share <= 1.0, "{row}");
            assert!(row["p50_us"].as_f64() <= row["p99_us"].as_f64(), "{row}");
        }
    }
    // The lines decide for long reads, the bus of the host for SRP (31.5 GB/s), and the processor
    // of iSCSI has the most work.
    let long = |fabric: &str| rate(fabric, 1_024);
    assert!((31.0e9..31.6e9).contains(&long("SRP, 4xNDR")), "{}", long("SRP, 4xNDR"));
    assert!(long("SRP, 4xNDR") > 2.5 * long("FCoE, 100GbE") && long("FCoE, 100GbE") > 3.0 * long("FC, 32GFC"));
    let cpu = |fabric: &str| of(fabric, 1_024)["cpu_s_per_gb"].as_f64().expect("a time");
    assert!(cpu("iSCSI, 100GbE") > 3.0 * cpu("FC, 32GFC"));
    let page = bench.read("out/report.html");
    for text in ["Throughput, 32 reads in flight", "Most throughput of reads of 1024 KiB", "reproduce today --seed 1"] {
        assert!(page.contains(text), "{text}");
    }
}

/// The page of the GUPFS report has figures that say that the originals are lost, and the
/// statements that are not checked.
#[test]
fn the_page_of_gupfs_names_lost_figures_and_what_is_not_checked() {
    let bench = Bench::new("reproduce-gupfs");
    let ran = bench.run("reproduce gupfs --out out --json");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let ids: BTreeSet<&str> = list.as_array().expect("a list").iter().filter_map(|row| row["id"].as_str()).collect();
    for id in ["G12", "G13", "G14", "G16-cards", "G16-bus", "G18", "G19", "G20", "G21", "G22", "G23"] {
        assert!(ids.contains(id), "{id} is not among {ids:?}");
    }
    // The document names the order at each of the eight sizes.
    for row in list.as_array().expect("a list").iter().filter(|row| row["id"] == "G12" || row["id"] == "G14") {
        assert_eq!((row["paper"].as_f64(), row["ours"].as_f64()), (Some(8.0), Some(8.0)), "{row}");
    }
    let page = bench.read("out/report.html");
    for text in ["Figure 10: storage fabrics (ours; the original is lost)", "G24 (prices)"] {
        assert!(page.contains(text), "{text}");
    }
}
