//! `sanloom whatif` as a command.

use crate::commands::tool::Bench;
use insta::assert_snapshot;

#[test]
fn ranks_the_failures_of_a_dual_fabric() {
    assert_snapshot!(Bench::new("whatif-table").run("whatif dual.toml").snapshot());
}

#[test]
fn the_files_do_not_depend_on_the_number_of_threads() {
    let bench = Bench::new("whatif-files");
    for threads in [1, 2] {
        let words = format!(
            "whatif dual.toml --json={threads}.json --html={threads}.html --csv={threads}.csv --quiet --threads {threads}"
        );
        assert_eq!(bench.run(&words).code, 0);
    }
    assert_eq!(bench.read("1.json"), bench.read("2.json"));
    assert_eq!(bench.read("1.html"), bench.read("2.html"));
    assert_eq!(bench.read("1.csv"), bench.read("2.csv"));
    assert_eq!(bench.read("1.csv").lines().count(), 13);
    let ranking: serde_json::Value = serde_json::from_str(&bench.read("1.json")).expect("JSON");
    let rows = ranking.as_array().expect("a list");
    // Five links, two switches, three HBAs, two ports of the array.
    assert_eq!(rows.len(), 12);
    assert_eq!(rows[0]["pairs_cut_off"], 1);
    assert_eq!(rows[0]["cut_off"][0]["host"], "single");
    assert_eq!(rows[0]["cut_off"][0]["luns"][0], "array:lun0");
    // After the failure of one side, requests take at least the time of the commands' failover to
    // the other side.
    let longest = |row: &serde_json::Value| row["longest_request_us"].as_f64().expect("a number");
    assert!(rows.iter().map(longest).fold(0.0, f64::max) > 3.0 * rows.iter().map(longest).fold(f64::MAX, f64::min));
    let hosts: Vec<_> = rows[0]["hosts"].as_array().expect("hosts").iter().map(|host| &host["name"]).collect();
    assert_eq!(hosts, ["both", "single"]);
}

#[test]
fn faults_of_the_lab_make_no_double_failures() {
    let bench = Bench::new("whatif-faults");
    let dual = bench.read("dual.toml");
    let fault = "\n[[fault]]\nat = \"10ms\"\nkind = \"switch-reset\"\nswitch = \"fabricA\"\nfor = \"5ms\"\n";
    bench.write("faulty.toml", &format!("{dual}{fault}"));
    let run = |lab: &str| {
        let ran = bench.run(&format!("whatif {lab} --json"));
        let ranking: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        ranking.as_array().expect("a list").clone()
    };
    let (mut with, without) = (run("faulty.toml"), run("dual.toml"));
    for row in &mut with {
        assert_eq!(row["lab_faults_left_out"], 1);
        row["lab_faults_left_out"] = 0.into();
    }
    assert_eq!(with, without);
    let text = bench.run("whatif faulty.toml").stdout;
    assert!(text.contains("\nThe lab's own fault is left out of every run.\n"), "{text}");
    assert!(!bench.run("whatif dual.toml").stdout.contains("left out"));
}

/// A row of the JSON ranking.
fn row<'r>(rows: &'r [serde_json::Value], name: &str) -> &'r serde_json::Value {
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row for {name}"))
}

fn rows(json: &str) -> Vec<serde_json::Value> {
    let ranking: serde_json::Value = serde_json::from_str(json).expect("JSON");
    ranking.as_array().expect("a list").clone()
}

#[test]
fn a_run_lasts_until_the_multipath_layer_has_given_the_commands_back() {
    let bench = Bench::new("whatif-horizon");
    let rows = rows(&bench.run("whatif port.toml --json").stdout);
    let port = row(&rows, "array:0-fabricA");
    assert_eq!(port["recovered"], true, "{port}");
    let number = |name: &str| port[name].as_f64().expect("a number");
    // fast_io_fail is 5 s; the run of the lab ends after 0.3 s.
    assert!((4.9..5.5).contains(&number("longest_stall_s")), "{port}");
    assert!((4.9..5.5).contains(&number("recovery_s")), "{port}");
    assert!(number("throughput_bytes_per_s") > 0.8 * number("healthy_bytes_per_s"), "{port}");
    assert_eq!(
        (&port["ios_failed"], &port["ios_unfinished"], &port["pairs_cut_off"]),
        (&0.into(), &0.into(), &0.into())
    );
}

#[test]
fn a_host_without_a_path_fails_its_requests_and_leaves_none_unfinished() {
    let bench = Bench::new("whatif-cut-off");
    let rows = rows(&bench.run("whatif dual.toml --only hba,switch --json").stdout);
    assert!(rows.iter().all(|row| row["kind"] == "hba" || row["kind"] == "switch"), "{rows:?}");
    let alone = row(&rows, "single:0");
    assert_eq!(alone["stall_ended"], false, "{alone}");
    // Its queue depth is 4, and no_path_retry ends the requests.
    assert_eq!((&alone["ios_failed"], &alone["ios_unfinished"]), (&4.into(), &0.into()));
}

#[test]
fn a_bound_of_the_command_line_applies_to_every_failure() {
    let bench = Bench::new("whatif-expect");
    let good =
        bench.command("whatif dual.toml --only switch --quiet").args(["--expect", "pairs_cut_off <= 1"]).output();
    assert_eq!(bench.ran(good.expect("it runs")).code, 0);
    let bad = bench.command("whatif dual.toml --only switch --quiet").args(["--expect", "pairs_cut_off <= 0"]).output();
    let bad = bench.ran(bad.expect("it runs"));
    assert_eq!((bad.code, bad.stdout.as_str()), (1, ""));
    assert_eq!(bad.stderr, "FAILED pairs_cut_off <= 0 at fabricA (switch): it is 1\n");
    let unknown = bench.command("whatif dual.toml --quiet").args(["--expect", "latency <= 0"]).output();
    let unknown = bench.ran(unknown.expect("it runs"));
    assert!(unknown.code == 2 && unknown.stderr.contains("longest_stall_s"), "{}", unknown.stderr);
}

#[test]
fn a_bound_judges_the_mean_of_several_seeds() {
    let bench = Bench::new("whatif-mean");
    let sizes = "size = { \"4KiB\" = 0.5, \"16KiB\" = 0.5 }";
    bench.write("sizes.toml", &bench.read("dual.toml").replace("size = \"8KiB\"", sizes));
    let least = |words: &str, of: fn(&serde_json::Value) -> &serde_json::Value| {
        let json = bench.run(&format!("whatif sizes.toml --only switch {words} --json")).stdout;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&json).expect("rows");
        rows.iter().map(|row| of(row).as_f64().expect("a number")).fold(f64::MAX, f64::min)
    };
    let first = least("", |row| &row["throughput_bytes_per_s"]);
    let mean = least("--replications 2", |row| &row["intervals"]["throughput_bytes_per_s"]["mean"]);
    assert_ne!(first, mean);
    let words = format!(
        "whatif sizes.toml --only switch --replications 2 --quiet --expect throughput_bytes_per_s>={}",
        f64::midpoint(first, mean)
    );
    let ran = bench.run(&words);
    assert_eq!(ran.code, i32::from(mean < first), "{first} {mean} {}", ran.stderr);
}

#[test]
fn a_resumed_study_repeats_no_trial_and_ends_with_the_same_files() {
    let bench = Bench::new("whatif-resume");
    let words = "whatif dual.toml --only switch,hba --replications 2 --quiet --out";
    assert_eq!(bench.run(&format!("{words} whole")).code, 0);
    let trials = bench.read("whole/trials.jsonl");
    // Two switches and three links of hosts, each with two seeds.
    assert_eq!(trials.lines().count(), 10);
    std::fs::create_dir(bench.path("part")).expect("a folder");
    let some: String = trials.split_inclusive('\n').take(4).collect();
    bench.write("part/trials.jsonl", &format!("{some}{{\"torn"));
    let again = bench.run(&format!("{words} part"));
    assert!(again.code == 2 && again.stderr.contains("--resume"), "{}", again.stderr);
    assert_eq!(bench.run(&format!("{words} part --resume")).code, 0);
    for name in ["whatif.json", "whatif.csv", "whatif.html", "lab.toml"] {
        assert_eq!(bench.read(&format!("part/{name}")), bench.read(&format!("whole/{name}")), "{name}");
    }
    assert!(bench.read("whole/whatif.json").contains("half_width"));
    let other = bench.run(&format!("{words} part --resume --set run.seed=9"));
    assert!(other.code == 2 && other.stderr.contains("belongs to another study"), "{}", other.stderr);
}

/// Two fabrics, and a host with an HBA in each.
const TWO_FABRICS: &str = "[switch.A]\n[switch.B]\n[host.h]\nhbas = 2\n[storage.d]\nports = 2\n\
    [[link]]\nfrom = \"h:0\"\nto = \"A\"\n[[link]]\nfrom = \"h:1\"\nto = \"B\"\n\
    [[link]]\nfrom = \"d:0\"\nto = \"A\"\n[[link]]\nfrom = \"d:1\"\nto = \"B\"\n";

#[test]
fn a_chassis_with_several_switches_fails_as_a_whole() {
    let bench = Bench::new("whatif-chassis");
    let fabric =
        |id: u32, ports: &str| format!("virtual_fabric = {{ chassis = \"box\", id = {id}, ports = \"{ports}\" }}\n");
    let shared = format!("[switch.A]\n{}[switch.B]\n{}", fabric(1, "{0..7}"), fabric(2, "{8..15}"));
    let separate = TWO_FABRICS.split_once("[host.h]").expect("hosts follow the switches").1;
    let work = "multipath = { fast_io_fail = \"50ms\", polling_interval = \"100ms\", no_path_retry = 1 }\n";
    let run = "[run]\nduration = \"60ms\"\n[workload.w]\nhosts = \"h\"\ntargets = \"d\"\ndepth = 2\n";
    bench.write("box.toml", &format!("{run}{shared}[host.h]\n{work}{}", separate.trim_start()));
    let checked = bench.run("check box.toml").stdout;
    assert!(checked.contains("  1 chassis (1 host): box\n") && !checked.contains("1 switch ("), "{checked}");
    let rows = rows(&bench.run("whatif box.toml --only switch,chassis --json").stdout);
    let cut_off: Vec<_> = rows.iter().map(|row| (&row["name"], &row["kind"], &row["pairs_cut_off"])).collect();
    let (one, none) = (1.into(), 0.into());
    let [chassis, switch] = ["chassis", "switch"].map(serde_json::Value::from);
    let [a, b, both] = ["A", "B", "box"].map(serde_json::Value::from);
    assert_eq!(cut_off[0], (&both, &chassis, &one));
    assert!(cut_off.contains(&(&a, &switch, &none)) && cut_off.contains(&(&b, &switch, &none)), "{cut_off:?}");
    let only = bench.run("whatif box.toml --only chassis --csv").stdout;
    assert_eq!(only.lines().count(), 2, "{only}");
    assert_eq!(bench.run("whatif dual.toml --only chassis --csv").stdout.lines().count(), 1);
    let gate = bench.run("whatif dual.toml --only chassis --expect ios_failed<=0");
    assert_eq!((gate.code, gate.stderr.contains("no failure was simulated")), (1, true), "{}", gate.stderr);
    let none = bench.run("whatif dual.toml --only chassis").stdout;
    assert!(none.ends_with("The lab has no element of these kinds, so no failure was simulated.\n"), "{none}");
}

#[test]
fn throughput_that_was_not_measured_keeps_no_bound() {
    let bench = Bench::new("whatif-unmeasured");
    let zone = "[[zone]]\nname = \"z\"\nmembers = [\"h:0\", \"d:0\"]\n";
    let rare = "[workload.w]\nhosts = \"h\"\ntargets = \"d\"\narrivals = \"constant 4/s\"\n";
    bench.write("rare.toml", &format!("[run]\nduration = \"300ms\"\n{TWO_FABRICS}{zone}{rare}"));
    let words = "whatif rare.toml --only switch";
    let text = bench.run(words).stdout;
    assert!(text.contains("not measured") && !text.contains("100.0 %"), "{text}");
    let gate = bench.command(words).args(["--quiet", "--expect", "left >= 0.9"]).output();
    let gate = bench.ran(gate.expect("it runs"));
    assert_eq!(gate.code, 1, "{}", gate.stderr);
    assert!(gate.stderr.contains("at A (switch): it is missing"), "{}", gate.stderr);
}

#[test]
fn nothing_recovers_if_all_storage_is_cut_off() {
    let bench = Bench::new("whatif-no-recovery");
    let single = "[run]\nduration = \"100ms\"\n[switch.A]\n[host.h]\n\
        multipath = { fast_io_fail = \"50ms\", polling_interval = \"1s\", no_path_retry = 1 }\n[storage.d]\n\
        [[link]]\nfrom = \"h\"\nto = \"A\"\n[[link]]\nfrom = \"d\"\nto = \"A\"\n\
        [workload.w]\nhosts = \"h\"\ntargets = \"d\"\ndepth = 2\n";
    bench.write("single.toml", single);
    let rows = rows(&bench.run("whatif single.toml --only switch --json").stdout);
    let switch = row(&rows, "A");
    assert_eq!((&switch["recovered"], switch.get("recovery_s")), (&false.into(), None), "{switch}");
    assert_eq!(switch["pairs_cut_off"], 1);
}

#[test]
fn the_failure_comes_after_the_start_of_the_last_workload() {
    let bench = Bench::new("whatif-late");
    let late = "[workload.w]\nhosts = \"h\"\ntargets = \"d\"\ndepth = 2\nstart = \"2s\"\n";
    bench.write("late.toml", &format!("[run]\nduration = \"3s\"\n{TWO_FABRICS}{late}"));
    let rows = rows(&bench.run("whatif late.toml --only array --json").stdout);
    let port = row(&rows, "d:0");
    assert!(port["from_s"].as_f64() > Some(2.3), "{port}");
    assert!(port["recovery_s"].as_f64() > Some(1.0), "the paths of a port wait for fast_io_fail: {port}");
}

#[test]
fn requests_that_fail_without_the_failure_are_not_charged_to_it() {
    let bench = Bench::new("whatif-start-state");
    let dark = "[run]\nduration = \"60ms\"\n[switch.A]\n[switch.B]\n[host.\"{near,far}\"]\n\
        command_timeout = \"200ms\"\nmultipath = { fast_io_fail = \"50ms\", polling_interval = \"200ms\", no_path_retry = 1 }\n\
        [storage.\"{d,gone}\"]\n[[link]]\nfrom = \"{near,far,d}\"\nto = \"A\"\n\
        [[link]]\nname = \"cut\"\nfrom = \"gone\"\nto = \"A\"\n\
        [[fault]]\nat = \"0s\"\nkind = \"link-down\"\nlink = \"cut\"\n\
        [workload.w]\nhosts = \"near\"\ntargets = \"d\"\ndepth = 1\nthink_time = \"2ms\"\n\
        [workload.lost]\nhosts = \"far\"\ntargets = \"gone\"\ndepth = 1\nthink_time = \"2ms\"\n";
    bench.write("dark.toml", dark);
    let rows = rows(&bench.run("whatif dark.toml --only switch --json").stdout);
    // No host uses this switch.
    let unused = row(&rows, "B");
    assert_eq!((&unused["ios_failed"], &unused["pairs_cut_off"]), (&0.into(), &0.into()), "{unused}");
    assert_eq!((&unused["stall_ended"], &unused["stalled_host"]), (&true.into(), &"near".into()), "{unused}");
    assert!(row(&rows, "A")["ios_failed"].as_u64() > Some(0), "{rows:?}");
}

#[test]
fn a_disk_without_redundancy_costs_data_and_one_of_a_mirror_does_not() {
    let bench = Bench::new("whatif-disks");
    let storage = |name: &str, lines: &str| {
        format!(
            "[storage.{name}]\ndisk = \"cheetah-9lp\"\n{lines}\n[workload.{name}]\nhosts = \"h\"\ntargets = \"{name}\"\n"
        )
    };
    let raid = "raid = { level = \"raid1\", disks = 2 }\ncontroller_cache = { size = \"1MiB\", write = \"mirrored\" }";
    let lab = format!(
        "[run]\nduration = \"2s\"\nwarmup = \"0s\"\n[switch.sw]\n[host.h]\n{}{}[[link]]\nfrom = \"{{h,jbod,mirror}}\"\n\
         to = \"sw\"\n",
        storage("jbod", ""),
        storage("mirror", raid)
    );
    bench.write("lab.toml", &lab);
    let ran = bench.run("whatif lab.toml --only disk,battery --json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ranking: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let row = |name: &str, kind: &str| {
        let rows = ranking.as_array().expect("a list").iter();
        rows.clone().find(|row| row["name"] == name && row["kind"] == kind).cloned().expect("a row")
    };
    let numbers = |row: serde_json::Value| (row["pairs_cut_off"].as_u64(), row["ios_failed"].as_u64() > Some(0));
    assert_eq!(ranking.as_array().map(Vec::len), Some(3));
    assert_eq!(numbers(row("jbod:lun0", "disk")), (Some(1), true));
    assert_eq!(numbers(row("mirror:lun0", "disk")), (Some(0), false));
    assert_eq!(numbers(row("mirror", "battery")), (Some(0), false));
    let checked = bench.run("check lab.toml").stdout;
    assert!(checked.contains("1 unprotected LUN (1 host): jbod:lun0"), "{checked}");
}

#[test]
fn a_controller_whose_cache_has_the_only_copy_costs_data() {
    let bench = Bench::new("whatif-controllers");
    let array = |name: &str, write: &str| {
        format!(
            "[storage.{name}]\nports = 2\nlun_size = \"1GiB\"\ndisk = \"savvio-10k4\"\n\
             controllers = {{ count = 2, takeover = \"10ms\" }}\n\
             controller_cache = {{ size = \"64MiB\", write = \"{write}\" }}\n[workload.{name}]\nhosts = \"h\"\n\
             targets = \"{name}\"\n"
        )
    };
    let lab = format!(
        "[run]\nduration = \"2s\"\nwarmup = \"0s\"\n[switch.sw]\n[host.h]\nmultipath = {{ fast_io_fail = \"10ms\" }}\n{}{}\
         [[link]]\nfrom = \"{{h,copied:0,copied:1,single:0,single:1}}\"\nto = \"sw\"\n",
        array("copied", "mirrored"),
        array("single", "back")
    );
    bench.write("lab.toml", &lab);
    let ran = bench.run("whatif lab.toml --only controller --json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ranking: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let cut_off = |name: &str| {
        let rows = ranking.as_array().expect("a list").iter();
        let row = rows.clone().find(|row| row["name"] == name).expect("a row");
        (row["pairs_cut_off"].as_u64(), row["recovered"].as_bool())
    };
    assert_eq!(ranking.as_array().map(Vec::len), Some(4));
    assert_eq!([cut_off("copied:controller0"), cut_off("copied:controller1")], [(Some(0), Some(true)); 2]);
    // The only LUN belongs to the first controller.
    assert_eq!((cut_off("single:controller0").0, cut_off("single:controller1").0), (Some(1), Some(0)));
    let checked = bench.run("check lab.toml").stdout;
    assert!(checked.contains("1 controller (1 host): single:controller0"), "{checked}");
}

#[test]
fn loops_and_direct_links_fail_as_check_says() {
    let bench = Bench::new("whatif-loops");
    // One way to the disks leads over a loop, and another one directly to one of them.
    bench.write(
        "lab.toml",
        "[run]\nduration = \"50ms\"\nwarmup = \"0s\"\n[loop.ring]\n[host.h]\nhbas = 2\n[storage.one]\n[storage.two]\n\
         ports = 2\n[[link]]\nfrom = \"{h,one,two}\"\nto = \"ring\"\nrate = \"2GFC\"\n[[link]]\nfrom = \"h\"\nto = \
         \"two\"\n[workload.reads]\nhosts = \"h\"\ntargets = \"{one,two}\"\ndepth = 1\nthink_time = \"100us\"\n",
    );
    let ran = bench.run("whatif lab.toml --only loop,link --json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ranking: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let cut_off = |name: &str| {
        let rows = ranking.as_array().expect("a list").iter();
        rows.clone().find(|row| row["name"] == name).map(|row| row["pairs_cut_off"].as_u64().expect("a number"))
    };
    assert_eq!(cut_off("ring"), Some(1));
    assert_eq!(cut_off("one-ring"), Some(1));
    assert_eq!(cut_off("two:0-ring"), Some(0));
    assert_eq!(cut_off("h:1-two:1"), Some(0));
    let checked = bench.run("check lab.toml").stdout;
    for text in ["1 loop (1 host): ring", "2 links (1 host each): h:0-ring, one-ring", "Arbitrated loops"] {
        assert!(checked.contains(text), "{text}: {checked}");
    }
}
