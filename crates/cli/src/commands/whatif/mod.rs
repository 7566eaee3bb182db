//! `sanloom whatif`: one simulation for each single failure, and one without a failure. All start
//! from the state that `sanloom check` judges; faults and zone changes of the lab are left out.

mod outcome;
mod store;
mod table;

use outcome::{Case, Context};
use sanloom_api::results::WhatIfRow;
use sanloom_api::results::measure::s_of_ps;
use sanloom_console::exit::Failure;
use sanloom_console::gate::Gate;
use sanloom_console::hash::Fnv;
use sanloom_console::input::{self, LabFile, Threads};
use sanloom_console::output::{self, shell_word};
use sanloom_console::outputs::{Outputs, Sets};
use sanloom_console::quantity;
use sanloom_console::report::{file, format, html, json};
use sanloom_console::whatif::failure::{self, Cause, Kind, Single};
use sanloom_console::whatif::trial::{Healthy, Plan};
use sanloom_console::{interrupt, pool};
use sanloom_lab::LoadedLab;
use sanloom_lab::topology::Reach;
use std::collections::BTreeSet;
use std::path::Path;
use store::{Key, Store};

/// Options of `sanloom whatif`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    #[command(flatten)]
    sets: Sets,
    /// Try only failures of these kinds
    #[arg(long, value_name = "KIND,…", value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    #[command(flatten)]
    outputs: Outputs,
    /// Continue the study in the folder of `--out`: finished trials are not simulated again. Lab
    /// and settings must be the same
    #[arg(long, requires = "out")]
    resume: bool,
    /// Simulate each failure with this many seeds, all derived from the first, and add means with
    /// 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::count::<u32>(1..=10_000))]
    replications: u32,
    /// Bound that every failure must keep, for example `left >= 0.5` or `longest_stall_s <= 10`;
    /// otherwise the exit code is 1. The names are those of the columns of the CSV
    #[arg(long, value_name = "METRIC >= VALUE", value_parser = Gate::parse)]
    expect: Vec<Gate>,
    #[command(flatten)]
    threads: Threads,
    /// Print no table
    #[arg(long, short)]
    quiet: bool,
}

/// Tries every single failure.
///
/// # Errors
/// The lab is wrong, an output cannot be written, a bound of `--expect` fails, or Ctrl-C came
/// before the last run.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.check(&[])?;
    args.check_gates()?;
    let loaded = input::load(&args.file, &args.sets.set)?;
    let mut lab = loaded.lab.clone();
    let left_out = failure::clear(&mut lab);
    let failures = failure::all(&lab, &args.only);
    let mut store = Store::open(args.folder(), args.resume, args.study(&loaded))?;
    let plan = Plan::new(lab.clone());
    simulate(args, &plan, &failures, &mut store)?;
    let healthy = simulate_healthy(args, &plan, &failures, &store)?;
    let context = Context { lab: &lab, reach: Reach::of(&lab, &loaded.isolated), at_ps: plan.at.0, left_out };
    let mut cases: Vec<Case> = failures
        .iter()
        .filter_map(|single| {
            let trial = |(replication, healthy)| Some((store.get(&(single.cause, replication))?, healthy));
            let trials: Option<Vec<_>> = (0..).zip(&healthy).map(trial).collect();
            Case::new(&context, single, &trials?)
        })
        .collect();
    if cases.is_empty() && !failures.is_empty() {
        return Err(Failure::interrupted("no failure was simulated to the end"));
    }
    Case::rank(&mut cases);
    if cases.len() < failures.len() {
        output::note(&format!("{} of {} failures were tried", cases.len(), failures.len()));
    }
    let healthy_stall_s = s_of_ps(healthy.iter().map(|healthy| healthy.longest_stall_ps).max().unwrap_or(0));
    let heading = table::Heading { lab: &lab.name, at_s: plan.at.as_secs_f64(), left_out, healthy_stall_s };
    args.write(&loaded, &heading, &cases)?;
    if cases.len() < failures.len() {
        let remedy = if args.folder().is_some() { "; --resume tries the others" } else { "" };
        return Err(Failure::interrupted(format_args!("the ranking is not complete{remedy}")));
    }
    judge(&args.expect, &cases)
}

/// Simulates all failures that are not in the store.
fn simulate(args: &Args, plan: &Plan, failures: &[Single], store: &mut Store) -> Result<(), Failure> {
    let causes: BTreeSet<Cause> = failures.iter().map(|single| single.cause).collect();
    let keys = causes.iter().flat_map(|cause| (0..args.replications).map(|replication| (*cause, replication)));
    let todo: Vec<Key> = keys.filter(|key| store.get(key).is_none()).collect();
    pool::each(
        args.threads,
        "failures",
        &todo,
        |_, (cause, replication)| plan.fail(*cause, *replication),
        |index, trial| store.add(todo[index], trial),
    )
}

/// Simulates the lab without a failure, once for each seed, as long as any finished trial needs.
fn simulate_healthy(args: &Args, plan: &Plan, failures: &[Single], store: &Store) -> Result<Vec<Healthy>, Failure> {
    let seeds: Vec<u32> = (0..args.replications).collect();
    let times = |replication: u32| -> BTreeSet<u64> {
        let trials = failures.iter().filter_map(|single| store.get(&(single.cause, replication)));
        trials.flat_map(|trial| [trial.from_ps, trial.until_ps]).collect()
    };
    if interrupt::requested() {
        if seeds.iter().all(|seed| times(*seed).is_empty()) {
            return Err(Failure::interrupted("no failure was simulated to the end"));
        }
        output::note("interrupted; the run without a failure follows, a second Ctrl-C ends it");
    }
    let work = |_, replication: &u32| Some(plan.healthy(&times(*replication), *replication));
    let healthy = pool::finish(args.threads, "runs without a failure", &seeds, work)?;
    Ok(healthy.into_iter().flatten().collect())
}

/// Prints the bounds that do not hold.
fn judge(gates: &[Gate], cases: &[Case]) -> Result<(), Failure> {
    let mut failed = false;
    for gate in gates {
        if cases.is_empty() {
            failed = true;
            output::note(&format!("FAILED {gate}: no failure was simulated"));
        }
        for row in cases.iter().map(|case| &case.row) {
            let mean = row.intervals.get(&gate.metric).map(|interval| interval.mean);
            let value = mean.or_else(|| outcome::number(row, &gate.metric));
            if !gate.holds(value) {
                failed = true;
                output::note(&gate.failure(&format!("{} ({})", row.name, row.kind), value));
            }
        }
    }
    if failed { Err(Failure::expectation()) } else { Ok(()) }
}

impl Args {
    fn folder(&self) -> Option<&Path> {
        self.outputs.out.out.as_deref()
    }

    fn check_gates(&self) -> Result<(), Failure> {
        let unknown = self.expect.iter().find(|gate| !outcome::NUMBERS.contains(&gate.metric.as_str()));
        unknown.map_or(Ok(()), |gate| {
            Err(Failure::usage(format_args!(
                "--expect: no failure has the number {}; there are {}",
                format::clean(&gate.metric),
                outcome::NUMBERS.join(", ")
            )))
        })
    }

    /// Hash of everything that decides the trials.
    fn study(&self, loaded: &LoadedLab) -> String {
        let mut hash = Fnv::new();
        hash.add(env!("CARGO_PKG_VERSION"));
        hash.add(&loaded.text);
        for set in &self.sets.set {
            hash.add(&set.key);
            hash.add(&set.value);
        }
        hash.text()
    }

    fn write(&self, loaded: &LoadedLab, heading: &table::Heading<'_>, cases: &[Case]) -> Result<(), Failure> {
        let page = || {
            let rows: Vec<WhatIfRow> = cases.iter().map(|case| case.row.clone()).collect();
            html::whatif(heading.lab, &rows, &self.command())
        };
        self.outputs.json.write(&cases)?;
        self.outputs.html.write(page)?;
        self.outputs.csv.write(|out| table::write_csv(out, cases))?;
        if let Some(folder) = self.folder() {
            file::write(&folder.join("whatif.json"), |out| json::write_value(out, &cases))?;
            file::write(&folder.join("whatif.csv"), |out| table::write_csv(out, cases))?;
            file::write_text(&folder.join("whatif.html"), &page())?;
            file::write_text(&folder.join("lab.toml"), &loaded.text)?;
        }
        if self.quiet || self.outputs.is_stdout() {
            return Ok(());
        }
        output::print(&table::text(heading, cases, output::width()))
    }

    /// The command that repeats the study.
    fn command(&self) -> String {
        let mut command = format!("sanloom whatif {}", shell_word(&self.file.path.display().to_string()));
        command.push_str(&self.sets.arguments());
        if !self.only.is_empty() {
            let kinds: Vec<&str> = self.only.iter().map(|kind| kind.word()).collect();
            command.push_str(&format!(" --only {}", kinds.join(",")));
        }
        if self.replications > 1 {
            command.push_str(&format!(" --replications {}", self.replications));
        }
        for gate in &self.expect {
            command.push_str(&format!(" --expect {}", shell_word(&gate.to_string())));
        }
        command
    }
}
