//! `sanloom sweep`: a lab for every combination of several values, on all cores, a row for each finished point.

mod grid;
mod rows;

use crate::exit::Failure;
use crate::input::{LabFile, Threads};
use crate::metric;
use crate::output::{self, shell_word};
use crate::report::terminal::grid::{Column, Grid as Table};
use crate::report::{file, format, html, json};
use crate::run::{self, View};
use crate::{interrupt, pool};
use grid::{Axis, Grid, Shard};
use rows::{Line, RowFile};
use sanloom_api::results::{Metrics, SweepRow, is_metric_path};
use sanloom_core::config::Lab;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Columns when none are named.
const DEFAULT_METRICS: [&str; 6] = [
    "totals.throughput_bytes_per_s",
    "totals.iops",
    "totals.latency.mean_us",
    "totals.latency.p99_us",
    "totals.ios_failed",
    "totals.frames_dropped",
];
/// Rows of the table; a file has all.
const TABLE_ROWS: usize = 60;

/// Options of `sanloom sweep`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// A key and its values, for example `workload.reads.depth=1,2,4,8`; each further one multiplies the grid, and the
    /// last one changes fastest. Commas within quotes or brackets belong to a value
    #[arg(long, value_name = "KEY=A,B,…", value_parser = grid::parse_axis, required = true)]
    set: Vec<Axis>,
    /// Number to record, as a path into the JSON results, for example `hosts.server1.iops` or `max(links.*.*.utilisation)`
    /// [default: throughput, IOPS, mean and p99 response time, failed requests and dropped frames of all hosts together]
    #[arg(long, value_name = "PATH", value_parser = parse_metric)]
    metric: Vec<String>,
    /// Write a JSON row for each finished point into this file at once; `-` for standard output, in the order of the
    /// grid [default: only the table]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Run only each n-th point, beginning with the i-th: 1/4 to 4/4 on four machines. The rows of all files together
    /// are those of the whole sweep
    #[arg(long, value_name = "I/N", value_parser = grid::parse_shard)]
    shard: Option<Shard>,
    #[command(flatten)]
    threads: Threads,
    /// Go on with the file of `--out`: points that it has are not run again
    #[arg(long, requires = "out")]
    resume: bool,
    /// Plot the points into this HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print no table
    #[arg(long, short)]
    quiet: bool,
}

/// Runs a sweep.
///
/// # Errors
/// When the lab is wrong at some point, a file does not belong to this sweep or cannot be written, or Ctrl-C came before
/// the last point.
pub fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&[("--out", args.out.as_deref()), ("--html", args.html.as_deref())])?;
    let text = args.file.text()?;
    let metrics = args.metrics();
    let grid = Grid::new(args.set.clone(), args.shard);
    let id = grid.id(&text, &metrics);
    let (rows_path, to_stdout) = match args.out.as_deref() {
        Some(path) if path == Path::new("-") => (None, true),
        path => (path, false),
    };
    let mut rows = RowFile::open(rows_path, args.resume, &id, &grid)?;
    let todo: Vec<u64> = grid.points().filter(|point| !rows.has(*point)).collect();
    let same_names = check_all(args, &text, &grid, &todo)?;

    // Standard output cannot be sorted afterwards, so its rows wait for those before them.
    let mut held = BTreeMap::new();
    let mut next = todo.iter();
    let mut expected = next.next();
    let mut missing = Vec::new();
    let mut begun = false;
    let outcome = pool::each(
        args.threads,
        "points",
        &todo,
        |_, point| simulate(args, &text, &grid, &metrics, *point),
        |_, (row, absent)| {
            if !std::mem::replace(&mut begun, true) {
                // A number that other points may have is looked for in all of them.
                match absent.iter().find(|absent| same_names && !absent.comes_and_goes()) {
                    Some(never) => return Err(never.failure()),
                    None => missing = absent,
                }
            }
            let line = Line { sweep: id.clone(), row };
            if to_stdout {
                held.insert(line.row.point, line.clone());
                while let Some(line) = expected.and_then(|point| held.remove(point)) {
                    print_row(&line)?;
                    expected = next.next();
                }
            }
            rows.add(line)
        },
    );
    let rows = rows.finish()?;
    outcome?;
    let name = lab_name(args, &text, &grid);
    let total = grid.points().count() as u64;
    if let Some(path) = &args.html {
        let page = html::sweep(&name, &rows, total, &args.command());
        output::written(file::write_text(path, &page))?;
    }
    if !args.quiet && !to_stdout && args.html.as_deref() != Some(Path::new("-")) {
        output::print(&table(&name, &rows, &metrics, total, output::width()))?;
    }
    if (rows.len() as u64) < total {
        let remedy = match rows_path {
            Some(path) => format!("{} has them; --resume runs the others", path.display()),
            None => "with --out FILE a sweep can be resumed".into(),
        };
        return Err(Failure::interrupted(format_args!("{} of {total} points are finished; {remedy}", rows.len())));
    }
    let never = |absent: &&Absent| rows.iter().all(|row| !row.metrics.contains_key(&absent.path));
    match missing.iter().filter(|absent| !absent.comes_and_goes()).find(never) {
        Some(never) => Err(never.failure()),
        None => Ok(()),
    }
}

/// Finds the mistakes of all points before hours go by. Returns whether hosts, links and all else have the same names at
/// each point.
fn check_all(args: &Args, text: &str, grid: &Grid, todo: &[u64]) -> Result<bool, Failure> {
    let checked = pool::all(args.threads, "points checked", todo, |_, point| {
        let loaded = sanloom_lab::load(&args.file.label(), text, &grid.overrides(*point));
        Some(loaded.map(|loaded| (loaded.warnings, names(&loaded.lab))))
    })?;
    let mut mistakes = Vec::new();
    let mut warned = BTreeSet::new();
    let mut all_names = BTreeSet::new();
    for (point, outcome) in todo.iter().zip(checked) {
        match outcome {
            Some(Err(diagnostics)) => mistakes.push((*point, diagnostics)),
            Some(Ok((warnings, names))) => {
                all_names.insert(names);
                for warning in warnings {
                    let text = warning.render(output::colours());
                    if warned.insert(text.clone()) {
                        output::note(&text);
                    }
                }
            }
            None => {}
        }
    }
    let count = mistakes.len();
    match mistakes.into_iter().next() {
        None => Ok(all_names.len() <= 1),
        Some((point, diagnostics)) => {
            let mut failure = Failure::from(diagnostics);
            let others =
                if count > 1 { format!("; and {} more points have mistakes", count - 1) } else { String::new() };
            let note = format!("\nat point {point}: {}{others}", grid.describe(point));
            failure.message.push_str(&note);
            if let Some(coloured) = &mut failure.coloured {
                coloured.push_str(&note);
            }
            Err(failure)
        }
    }
}

/// Stands for the names of everything that results have numbers of.
fn names(lab: &Lab) -> u64 {
    let mut hasher = DefaultHasher::new();
    let nodes = (lab.hosts.iter().map(|host| &host.name)).chain(lab.storage.iter().map(|storage| &storage.name));
    let fabric = (lab.switches.iter().map(|switch| &switch.name)).chain(lab.links.iter().map(|link| &link.name));
    let all = nodes.chain(fabric).chain(lab.workloads.iter().map(|workload| &workload.name));
    all.for_each(|name| name.hash(&mut hasher));
    hasher.finish()
}

/// A number that the results of a point do not have.
struct Absent {
    path: String,
    remedy: String,
}

impl Absent {
    /// Whether results have it only if something happened.
    fn comes_and_goes(&self) -> bool {
        let inner = self.path.split_once('(').map_or(self.path.as_str(), |(_, inner)| inner).trim_start();
        ["drops.", "findings.", "events."].iter().any(|list| inner.starts_with(list))
    }

    fn failure(&self) -> Failure {
        let path = format::clean(&self.path);
        Failure::usage(format_args!("--metric {path}: the results have no such single number; {}", self.remedy))
    }
}

fn simulate(args: &Args, text: &str, grid: &Grid, metrics: &[String], point: u64) -> Option<(SweepRow, Vec<Absent>)> {
    let loaded = sanloom_lab::load(&args.file.label(), text, &grid.overrides(point)).ok()?;
    let results = run::run(&Arc::new(loaded.lab), View::default()).results;
    if results.lab.interrupted || interrupt::requested() {
        return None;
    }
    let found = Metrics::new(&results);
    let mut row = SweepRow { point, settings: grid.settings(point), ..SweepRow::default() };
    let mut absent = Vec::new();
    for path in metrics {
        match found.get(path) {
            Some(value) => {
                row.metrics.insert(path.clone(), value);
            }
            None => absent.push(Absent { path: path.clone(), remedy: metric::remedy(&found, path) }),
        }
    }
    Some((row, absent))
}

fn print_row(line: &Line) -> Result<(), Failure> {
    output::written(file::stdout(|out| {
        json::write_line(out, line)?;
        out.flush()
    }))
}

fn lab_name(args: &Args, text: &str, grid: &Grid) -> String {
    sanloom_lab::load(&args.file.label(), text, &grid.overrides(0))
        .map_or_else(|_| args.file.label(), |loaded| loaded.lab.name)
}

fn table(name: &str, rows: &[SweepRow], metrics: &[String], total: u64, width: usize) -> String {
    let mut columns = vec![Column::right("Point")];
    let settings = rows.first().map_or(&[][..], |row| &row.settings);
    columns.extend(settings.iter().map(|setting| Column::left(&setting.key)));
    // Those named first stay longest when the terminal is narrow.
    columns.extend(metrics.iter().zip(1..=u8::MAX).map(|(path, rank)| Column::right(&head(path)).rank(rank)));
    let mut grid = Table::new(columns);
    for row in rows.iter().take(TABLE_ROWS) {
        let mut cells = vec![row.point.to_string()];
        cells.extend(row.settings.iter().map(|setting| setting.value.clone()));
        cells.extend(metrics.iter().take(usize::from(u8::MAX)).map(|path| match row.metrics.get(path) {
            Some(value) => format::plain(value * format::unit_of(path).1),
            None => "–".into(),
        }));
        grid.row(cells);
    }
    grid.more(rows.len().saturating_sub(TABLE_ROWS));
    let mut out =
        format!("Sweep of {}: {} of {total} points\n\n{}", format::clean(name), rows.len(), grid.render(width));
    for path in metrics.iter().filter(|path| rows.iter().all(|row| !row.metrics.contains_key(*path))) {
        out.push_str(&format!("\nNo results have a single number {}.\n", format::clean(path)));
    }
    out
}

/// `throughput, MB/s` for `totals.throughput_bytes_per_s`.
fn head(path: &str) -> String {
    let unit = format::unit_of(path).0;
    let short = path.strip_prefix("totals.").unwrap_or(path);
    let name = ["_bytes_per_s", "_us", "_s"]
        .iter()
        .find_map(|suffix| short.strip_suffix(suffix))
        .filter(|_| !unit.is_empty())
        .unwrap_or(short);
    if unit.is_empty() {
        name.to_owned()
    } else if name.eq_ignore_ascii_case(unit) {
        unit.to_owned()
    } else {
        format!("{name}, {unit}")
    }
}

impl Args {
    fn metrics(&self) -> Vec<String> {
        if self.metric.is_empty() { DEFAULT_METRICS.map(str::to_owned).to_vec() } else { self.metric.clone() }
    }

    /// The command that gives the same rows.
    fn command(&self) -> String {
        let mut command = format!("sanloom sweep {}", shell_word(&self.file.path.display().to_string()));
        for axis in &self.set {
            command.push_str(&format!(" --set {}", shell_word(&axis.argument())));
        }
        for metric in &self.metric {
            command.push_str(&format!(" --metric {}", shell_word(metric)));
        }
        command
    }
}

fn parse_metric(path: &str) -> Result<String, String> {
    if is_metric_path(path) {
        Ok(path.trim().to_owned())
    } else {
        Err("a path into the JSON results looks like totals.iops or max(hosts.*.latency.p99_us)".into())
    }
}
