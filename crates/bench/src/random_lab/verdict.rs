//! Reports about a seed.

use super::{Outcome, Trial, generate, shrink};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a trial. A panic counts as a failure.
///
/// # Errors
///
/// A description of the violation.
pub fn judge(trial: &Trial) -> Result<Outcome, String> {
    caught(|| trial.run(false).map_err(|violation| violation.to_string()))
}

/// Calls `run`. A panic counts as a failure.
///
/// # Errors
///
/// The error of `run`, or the message of its panic.
pub fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("of an unknown kind")))
    })
}

/// Runs the lab of a seed.
///
/// # Errors
///
/// The seed, the violation, the command that repeats it, and the smallest failing lab that was
/// found.
pub fn judge_seed(seed: u64) -> Result<Outcome, String> {
    let trial = generate(seed);
    judge(&trial).map_err(|what| {
        announce_search(seed, &what);
        let small = shrink(&trial, |smaller| judge(smaller).is_err());
        let why = judge(&small).err().unwrap_or_default();
        let repeat = command(seed);
        format!("seed {seed}: {what}\nrepeat it with: {repeat}\nsmaller: {why}\n{}", text_of(&small))
    })
}

/// Reports a failed seed before the search for a smaller lab, which may take longer than the test.
/// libtest drops the output of `eprintln!` if the process exits.
pub fn announce_search(seed: u64, what: &str) {
    let _ = writeln!(std::io::stderr(), "seed {seed}: {what}; now looking for a smaller lab");
}

/// Returns the command that runs this one seed.
pub fn command(seed: u64) -> String {
    format!("SANLOOM_SEED={seed} cargo test -p {} --test it random_labs", env!("CARGO_PKG_NAME"))
}

/// Returns a readable description of a lab with one line for each element.
fn text_of(trial: &Trial) -> String {
    let lab = &trial.lab;
    let mut lines =
        vec![format!("heals at {}, {:?}, {:?}", trial.heal_at, lab.run, lab.timers), format!("{:?}", lab.zoning)];
    lines.extend(lab.switches.iter().map(|switch| format!("{switch:?}")));
    lines.extend(lab.hosts.iter().map(|host| format!("{host:?}")));
    lines.extend(lab.storage.iter().map(|storage| format!("{storage:?}")));
    lines.extend(lab.links.iter().enumerate().map(|(number, link)| format!("{number} {link:?}")));
    lines.extend(lab.workloads.iter().map(|workload| format!("{workload:?}")));
    lines.extend(lab.faults.iter().map(|fault| format!("{fault:?}")));
    lines.extend(lab.changes.iter().map(|change| format!("{change:?}")));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

#[test]
fn the_command_of_a_seed_runs_the_tests_of_random_labs() {
    let command = command(17);
    let tests = include_str!("../../tests/it/random_labs.rs");
    assert!(tests.contains(&command), "{command}");
}
