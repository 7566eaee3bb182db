//! Repeatability: the same lab and seed give the same results, however they are computed. No
//! example loses frames or requests.

use crate::labs;
use crate::labs::{FABRIC, check, lab, lab_with, run};
use sanloom_lab::Override;
use sanloom_sim::replicate::{replicate, seed_of};
use sanloom_sim::run::{Blind, Control, Options, simulate};
use std::sync::Arc;

const OPEN: &[&str] = &["workload.mixed.arrivals=\"poisson 1500/s\"", "run.duration=40ms", "run.warmup=5ms"];

#[test]
fn the_same_lab_gives_the_same_json() {
    let lab = lab_with(&FABRIC.replace("depth = 4", ""), "", OPEN);
    let json = |lab| run(lab).reproducible_json().to_string();
    assert_eq!(json(&lab), json(&lab));
    assert_ne!(json(&lab), json(&lab_with(&FABRIC.replace("depth = 4", ""), "", &[OPEN, &["run.seed=2"]].concat())));
}

#[test]
fn watching_changes_nothing() {
    let lab = lab(FABRIC);
    let watched = labs::watched(&lab, &mut |_, _| {});
    assert_eq!(run(&lab).reproducible_json(), watched.results.reproducible_json());
}

#[test]
fn replications_do_not_depend_on_the_number_of_workers() {
    let lab = lab_with(&FABRIC.replace("depth = 4", ""), "", OPEN);
    let json = |workers| replicate(&lab, 5, workers, &|_| Control::Continue).reproducible_json().to_string();
    let one = json(1);
    assert_eq!(one, json(2));
    assert_eq!(one, json(8));
}

#[test]
fn intervals_hold_the_values_of_all_seeds() {
    let lab = lab_with(&FABRIC.replace("depth = 4", ""), "", OPEN);
    let all = replicate(&lab, 4, 2, &|_| Control::Continue);
    let replications = all.replications.clone().unwrap();
    assert_eq!(replications.seeds[0], lab.run.seed);
    assert_eq!(replications.seeds, (0..4).map(|n| seed_of(lab.run.seed, n)).collect::<Vec<_>>());
    for path in ["links.ISL.forward.utilisation", "ports.edge1:4.waiting.p99_us", "switches.edge1.buffers_used_mean"] {
        assert_eq!(replications.metrics.get(path).map(|interval| interval.count), Some(4), "{path}");
    }
    let latency = replications.metrics["totals.latency.mean_us"];
    assert_eq!(latency.count, 4);
    assert!(latency.min < latency.max && latency.half_width > 0.0);
    assert!(latency.min <= all.totals.io.latency.mean_us && all.totals.io.latency.mean_us <= latency.max);
    let values = &replications.values["totals.latency.mean_us"];
    assert_eq!((values.len(), values[0]), (4, all.totals.io.latency.mean_us));
    assert_eq!(replications.values.len(), replications.metrics.len());
    let mut single = run(&lab);
    single.replications = all.replications.clone();
    assert_eq!(single.reproducible_json(), all.reproducible_json());
}

/// TOML has signed integers, and many programs read JSON numbers as floats of 53 bits.
#[test]
fn each_seed_of_a_replication_is_accepted_and_repeats_it() {
    let lab = lab_with(&FABRIC.replace("depth = 4", ""), "", OPEN);
    let replications = replicate(&lab, 10, 2, &|_| Control::Continue).replications.unwrap();
    let path = "totals.latency.mean_us";
    assert_eq!((replications.values.len(), replications.values[path].len()), (replications.metrics.len(), 10));
    for (seed, value) in replications.seeds.iter().zip(&replications.values[path]) {
        assert!(*seed < 1 << 53, "{seed}");
        let set = format!("run.seed={seed}");
        let single = run(&lab_with(&FABRIC.replace("depth = 4", ""), "", &[OPEN, &[&set]].concat()));
        assert_eq!(single.totals.io.latency.mean_us, *value, "seed {seed}");
    }
}

#[test]
fn a_run_ends_when_its_number_is_known_precisely_enough() {
    const QUEUE: &str = r#"
        [run]
        duration = "60s"
        warmup = "100ms"
        [switch.edge]
        [host.server]
        [storage.disk]
        service_time = { distribution = "exponential", mean = "1ms" }
        [[link]]
        from = "server"
        to = "edge"
        [[link]]
        from = "disk"
        to = "edge"
        [workload.reads]
        hosts = "server"
        targets = "disk"
        arrivals = "poisson 500/s"
    "#;
    // The mean time in the queue and at the server is 2 ms (M/M/1 at half of its capacity); links
    // and switch add 0.03 ms.
    let mut inside = 0;
    for seed in 1..=10 {
        let sets = ["run.until=ci 5% of totals.latency.mean_us".to_owned(), format!("run.seed={seed}")];
        let results = run(&lab_with(QUEUE, "", &sets.each_ref().map(String::as_str)));
        let precision = results.lab.precision.unwrap();
        assert!(precision.met && precision.reached.is_some_and(|reached| reached <= 0.05), "{precision:?}");
        assert!(results.lab.duration_s < 60.0 && !results.lab.interrupted);
        inside += u32::from((results.totals.io.latency.mean_us / 2_030.0 - 1.0).abs() < 0.05);
    }
    assert!(inside >= 8, "{inside} of 10 intervals hold the true mean");
    let short = run(&lab_with(QUEUE, "", &["run.until=ci 5% of totals.latency.mean_us", "run.duration=1s"]));
    assert!(!short.lab.precision.unwrap().met && short.lab.duration_s == 1.0);
}

#[test]
fn a_stopped_replication_leaves_whole_runs_only() {
    let lab = lab_with(FABRIC, "", &["run.duration=20ms", "run.warmup=2ms"]);
    let stop_after_two = |done| if done >= 2 { Control::Stop } else { Control::Continue };
    let results = replicate(&lab, 50, 1, &stop_after_two);
    assert_eq!(results.replications.unwrap().seeds.len(), 2);
    assert!(!results.lab.interrupted);
    let results = replicate(&lab, 3, 1, &|_| Control::Stop);
    assert!(results.lab.interrupted && results.replications.unwrap().metrics.is_empty());
}

/// Runs every example for its first 60 ms.
#[test]
fn nothing_is_lost_in_any_example() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        let text = std::fs::read_to_string(&path).unwrap();
        let label = path.display().to_string();
        let loaded = sanloom_lab::load(&label, &text, &[] as &[Override]);
        let lab = Arc::new(loaded.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false))).lab);
        // Large fabrics run for only 2 ms, because the totals must be right at any time.
        let limit_ps = if lab.hosts.len() > 100 { 2_000_000_000 } else { 60_000_000_000 };
        let mut world = sanloom_sim::world::World::new(lab.clone());
        world.log_in();
        world.start();
        let end = world.start_ps + lab.run.duration.0.min(limit_ps);
        world.run_until(end);
        assert_eq!(world.check(), Ok(()), "{label}");
        let results = sanloom_sim::results::of(&world, true);
        assert!(results.conservation.holds(), "{label}: {:?}", results.conservation);
        let begun = results.conservation.commands_issued > 0;
        // In some labs, virtual machines are created only after this time.
        let later = lab.hosts.iter().any(|host| host.virtual_machine.is_some_and(|vm| vm.start.is_some()));
        // Some labs are for a live run and have no workload.
        assert!(begun || later || lab.workloads.is_empty(), "{label}");
    }
}

#[test]
fn an_interrupted_run_is_marked_in_its_results() {
    struct Stop;
    impl sanloom_sim::run::Observer for Stop {
        fn progress(&mut self, progress: &sanloom_sim::run::Progress) -> Control {
            if progress.run_ps > 30_000_000_000 { Control::Stop } else { Control::Continue }
        }
    }
    let lab = lab(FABRIC);
    let finished = simulate(&lab, &Options::default(), &mut Stop);
    check(&finished);
    let results = finished.results;
    assert!(results.lab.interrupted && results.lab.duration_s < 0.06 && results.lab.duration_s > 0.03);
    let whole = simulate(&lab, &Options::default(), &mut Blind).results;
    assert!(!whole.lab.interrupted && whole.lab.duration_s == 0.06);
}

#[test]
fn a_host_that_does_nothing_changes_no_arrival_wherever_it_stands_in_the_file() {
    let size = "size = { distribution = \"exponential\", mean = \"8KiB\", max = \"64KiB\" }";
    let text = FABRIC.replace("depth = 4", "").replace("size = \"32KiB\"", size);
    let idle = "[host.idle]\n[[link]]\nfrom = \"idle\"\nto = \"edge1\"\n";
    let offered = |text: &str, more: &str| {
        let results = run(&lab_with(text, more, OPEN));
        let of = |name: &str| results.hosts.iter().find(|host| host.name == name).unwrap().io.clone();
        ["server1", "server2", "server3", "server4"].map(|name| (of(name).ios_offered, of(name).offered_bytes))
    };
    let alone = offered(&text, "");
    assert_eq!(alone, offered(&text, idle));
    assert_eq!(alone, offered(&text.replace("[host.", &format!("{idle}[host.")), ""));
}
