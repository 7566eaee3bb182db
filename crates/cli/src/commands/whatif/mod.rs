//! `sanloom whatif`: one run for each single failure of a link, switch or HBA, and one for none. The
//! lab's own faults are left out of all of them.

mod failure;
mod outcome;

use crate::exit::Failure;
use crate::input::{self, LabFile, Threads};
use crate::output::{self, shell_word};
use crate::pool;
use crate::report::terminal::grid::{Column, Grid};
use crate::report::{file, format, html, json};
use crate::run::{self, View};
use outcome::Case;
use sanloom_api::results::{Results, WhatIfRow};
use sanloom_lab::Override;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `sanloom whatif`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Set a value of the lab from outside, for example `run.duration=3s`
    #[arg(long, value_name = "KEY=VALUE", value_parser = input::parse_set)]
    set: Vec<Override>,
    /// Write the ranking as JSON into this file; `-` for standard output, which then has no table. `lab_faults_left_out`
    /// is the number of faults of the lab that no run had
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the ranking into this HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    /// Print no table
    #[arg(long, short)]
    quiet: bool,
}

/// Rows of the table; the files have all.
const TABLE_ROWS: usize = 60;

/// Tries every single failure.
///
/// # Errors
/// When the lab is wrong, something cannot be written, or Ctrl-C came before the last run.
pub fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&[("--json", args.json.as_deref()), ("--html", args.html.as_deref())])?;
    let loaded = input::load(&args.file, &args.set)?;
    let mut lab = loaded.lab;
    let cleared = failure::clear(&mut lab);
    let at = failure::time(&lab);
    let failures = failure::all(&lab);
    let jobs: Vec<Option<&failure::Single>> = std::iter::once(None).chain(failures.iter().map(Some)).collect();
    let finished = pool::all(args.threads, "failures", &jobs, |_, single| {
        let mut lab = lab.clone();
        if let Some(single) = single {
            failure::inject(&mut lab, at, single.kind);
        }
        let results = run::run(&Arc::new(lab), View::default()).results;
        (!results.lab.interrupted).then(|| outcome::essence(&results))
    })?;
    let mut finished = finished.into_iter();
    let Some(healthy) = finished.next().flatten() else {
        return Err(Failure::interrupted("not even the run without a failure was complete"));
    };
    let mut cases: Vec<Case> = failures
        .iter()
        .zip(finished)
        .filter_map(|(single, results)| Some(Case::new(single, at, cleared, &healthy, &results?)))
        .collect();
    Case::rank(&mut cases);
    if cases.len() < failures.len() {
        output::note(&format!("{} of {} failures were tried", cases.len(), failures.len()));
    }
    let study = Study { name: &lab.name, at_s: at.as_secs_f64(), cleared, healthy: &healthy, cases: &cases };
    args.write(&study)?;
    if cases.len() < failures.len() {
        return Err(Failure::interrupted("the ranking is not complete"));
    }
    Ok(())
}

/// All runs together.
struct Study<'a> {
    name: &'a str,
    at_s: f64,
    /// Faults of the lab that were left out.
    cleared: usize,
    healthy: &'a Results,
    cases: &'a [Case],
}

impl Args {
    fn write(&self, study: &Study<'_>) -> Result<(), Failure> {
        let cases = study.cases;
        if let Some(path) = &self.json {
            output::written(file::write(path, |out| json::write_value(out, &cases)))?;
        }
        if let Some(path) = &self.html {
            let rows: Vec<WhatIfRow> = cases.iter().map(|case| case.row.clone()).collect();
            let page = html::whatif(study.name, &rows, &self.command());
            output::written(file::write_text(path, &page))?;
        }
        let stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if self.quiet || stdout(&self.json) || stdout(&self.html) {
            return Ok(());
        }
        output::print(&table(study, output::width()))
    }

    fn command(&self) -> String {
        let mut command = format!("sanloom whatif {}", shell_word(&self.file.path.display().to_string()));
        for set in &self.set {
            command.push_str(&format!(" --set {}", shell_word(&format!("{}={}", set.key, set.value))));
        }
        command
    }
}

fn table(study: &Study<'_>, width: usize) -> String {
    let &Study { name, at_s, healthy, cases, .. } = study;
    let mut grid = Grid::new(vec![
        Column::left("What fails"),
        Column::left("Kind").rank(7),
        Column::right("Left"),
        Column::right("Worst step, MB/s").rank(4),
        Column::left("Worst host").rank(6),
        Column::right("its MB/s").rank(5),
        Column::right("Longest stall"),
        Column::left("of").rank(3),
        Column::right("Longest request").rank(2),
        Column::right("Paths lost").rank(1),
        Column::right("Cut off"),
        Column::right("Failed I/O"),
    ]);
    for case in cases.iter().take(TABLE_ROWS) {
        let row = &case.row;
        let worst = case.worst_host();
        grid.row(vec![
            format::clean(&row.name),
            row.kind.clone(),
            format::percent(row.left()),
            format::plain(row.worst_bytes_per_s / 1e6),
            worst.map_or(String::new(), |host| format::clean(&host.name)),
            worst.map_or(String::new(), |host| format::plain(host.throughput_bytes_per_s / 1e6)),
            format::seconds(row.longest_stall_s),
            format::clean(&row.stalled_host),
            format::us(row.longest_request_us),
            row.paths_lost.to_string(),
            row.pairs_cut_off.to_string(),
            row.ios_failed.to_string(),
        ]);
    }
    grid.more(cases.len().saturating_sub(TABLE_ROWS));
    let left_out = match study.cleared {
        0 => String::new(),
        1 => "The lab's own fault is left out of every run.\n".to_owned(),
        count => format!("The lab's own {count} faults are left out of every run.\n"),
    };
    format!(
        "What if: {}\n{left_out}One thing fails at {} and stays broken. With nothing broken all hosts together do {}; the longest \
         stall is then {}.\n\n{}",
        format::clean(name),
        format::seconds(at_s),
        format::mb_per_s(outcome::throughput_from(&healthy.series, at_s)),
        format::seconds(outcome::longest_stall(healthy).0),
        grid.render(width)
    )
}
