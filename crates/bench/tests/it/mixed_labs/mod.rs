//! Random labs that mix all planes, with faults of all planes: nothing is lost without a reason,
//! everything ends, and after the last fault everything works again.
//!
//! ```text
//! cargo test -p sanloom-bench --test it mixed_labs                    200 seeds
//! SANLOOM_SEED=17 cargo test -p sanloom-bench --test it mixed_labs    one seed; reduced if it fails
//! SANLOOM_FIRST_SEED=5000 SANLOOM_SEEDS=400 cargo test …             other seeds
//! ```
//!
//! Without these variables, the first seed follows from `PROPTEST_RNG_SEED`, which CI sets to
//! another number for each change.

mod draw;
mod faults;
mod trial;

use draw::{Drawn, Feature};
use sanloom_fc::san::Lab;
use sanloom_sim::parallel::Threads;
use sanloom_sim::run::{Blind, Options, simulate};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use trial::Outcome;

const SEEDS: u64 = 200;
const THREADS: usize = 2;
/// Seeds of a run that are simulated several times.
const REPEATED: u64 = 20;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Returns the first seed and the number of seeds.
fn seeds() -> (u64, u64) {
    if let Some(seed) = number("SANLOOM_SEED") {
        return (seed, 1);
    }
    let first = number("SANLOOM_FIRST_SEED").or(number("PROPTEST_RNG_SEED")).unwrap_or(0);
    (first, number("SANLOOM_SEEDS").unwrap_or(SEEDS))
}

fn load(drawn: &Drawn) -> Arc<Lab> {
    let loaded = sanloom_lab::load("random.toml", &drawn.text, &[]);
    Arc::new(loaded.unwrap_or_else(|mistakes| panic!("{}\n{}", mistakes.render(false), drawn.text)).lab)
}

/// Runs a lab; a panic counts as a failure.
fn judge(drawn: &Drawn) -> Result<Outcome, String> {
    let result = catch_unwind(AssertUnwindSafe(|| trial::run(&load(drawn), drawn)));
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("of an unknown kind")))
    })
}

/// Removes faults and workloads of a failing lab as long as it fails.
fn shrink(drawn: &Drawn) -> Drawn {
    let mut best = drawn.clone();
    loop {
        let sections: Vec<usize> = best.text.match_indices("\n[").map(|(at, _)| at + 1).collect();
        let smaller = sections.iter().zip(1..).find_map(|(&from, next)| {
            let is_optional = ["[[fault]]", "[workload."].iter().any(|name| best.text[from..].starts_with(name));
            let mut end = sections.get(next).copied().unwrap_or(best.text.len());
            if best.text[end..].starts_with("[workload.after") {
                end = sections.get(next + 1).copied().unwrap_or(best.text.len());
            }
            let text = format!("{}{}", &best.text[..from], &best.text[end..]);
            let candidate = Drawn { text, ..best.clone() };
            let loads = is_optional && sanloom_lab::load("random.toml", &candidate.text, &[]).is_ok();
            (loads && judge(&candidate).is_err()).then_some(candidate)
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

fn judge_seed(seed: u64) -> Result<(Vec<Feature>, Outcome), String> {
    let drawn = draw::draw(seed);
    judge(&drawn).map(|outcome| (drawn.features.clone(), outcome)).map_err(|what| {
        let repeat = format!("SANLOOM_SEED={seed} cargo test -p {} --test it mixed_labs", env!("CARGO_PKG_NAME"));
        if number("SANLOOM_SEED").is_none() {
            return format!("seed {seed}: {what}\nrepeat it with: {repeat}");
        }
        let small = shrink(&drawn);
        let why = judge(&small).err().unwrap_or_default();
        format!("seed {seed}: {what}\nsmaller: {why}\n{}", small.text)
    })
}

#[test]
fn nothing_is_lost_silently_and_everything_ends_heals_and_finishes() {
    let (first, many) = seeds();
    let next = AtomicU64::new(0);
    let all = Mutex::new((Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= many {
                        return;
                    }
                    let result = judge_seed(first.wrapping_add(turn));
                    let mut all = all.lock().expect("no panic holds it");
                    match result {
                        Ok(outcome) => all.0.push(outcome),
                        Err(failure) => all.1.push(failure),
                    }
                }
            });
        }
    });
    let (outcomes, failures) = all.into_inner().expect("no panic holds it");
    assert!(failures.is_empty(), "{} of {many} seeds:\n{}", failures.len(), failures.join("\n"));
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for (features, _) in &outcomes {
        features.iter().for_each(|feature| *seen.entry(format!("{feature:?}")).or_default() += 1);
    }
    let sum = |what: fn(&Outcome) -> u64| outcomes.iter().map(|(_, outcome)| what(outcome)).sum::<u64>();
    let (done, failed) = (sum(|outcome| outcome.books.completed), sum(|outcome| outcome.books.failed));
    let lost = [sum(|outcome| outcome.lost[0]), sum(|outcome| outcome.lost[1]), sum(|outcome| outcome.lost[2])];
    let longest = outcomes.iter().map(|(_, outcome)| outcome.recovery).max().unwrap_or_default();
    println!(
        "{many} labs: {done} requests done, {failed} failed, {lost:?} frames lost, rest after {longest}: {seen:?}"
    );
    // Events that never occur are not tested, so each kind must occur often enough.
    let enough = done > 10_000 && failed > 50 && lost.iter().all(|frames| *frames > 1_000);
    let all_seen = seen.len() == Feature::ALL.len() && seen.values().all(|labs| *labs > 50);
    assert!((enough && all_seen) || many < SEEDS, "too little happens in these labs");
}

#[test]
fn the_same_seed_gives_the_same_run_on_any_number_of_threads() {
    let (first, many) = seeds();
    for seed in (first..).take(many.min(REPEATED) as usize) {
        let drawn = draw::draw(seed);
        let (one, two) = (judge(&drawn), judge(&drawn));
        assert_eq!(one, two, "seed {seed}: two runs");
        let mut lab = Lab::clone(&load(&drawn));
        lab.run.stop_issuing = Some(sanloom_fc::config::Picos::from_ms(drawn.stop_ms));
        let lab = Arc::new(lab);
        let run = |count: usize| {
            let threads = Threads { count, always: true, ..Threads::default() };
            simulate(&lab, &Options { threads, ..Options::default() }, &mut Blind).results.reproducible_json()
        };
        let alone = run(1);
        assert!(alone == run(2) && alone == run(1), "seed {seed}: results differ");
    }
}
