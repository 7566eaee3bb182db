//! `sanloom sweep`: one simulation for every combination of several values, on all cores, with a
//! row for each finished point.

mod grid;
mod rows;
mod table;

use grid::{Axis, Grid, Shard};
use rows::{Line, RowFile};
use sanloom_api::results::{Interval, SweepRow, is_metric_path};
use sanloom_console::exit::Failure;
use sanloom_console::gate::Gate;
use sanloom_console::input::{LabFile, Threads};
use sanloom_console::output::{self, shell_word};
use sanloom_console::outputs::{Outputs, is_stdout};
use sanloom_console::pool;
use sanloom_console::quantity;
use sanloom_console::report::{file, format, html, json};
use sanloom_console::sweep;
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use table::Sweep;

/// Options of `sanloom sweep`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Key of the lab with its values, for example `workload.reads.depth=1,2,4,8`. Each further key
    /// multiplies the grid; the last key changes fastest. Commas in quotes or brackets belong to a
    /// value
    #[arg(long, value_name = "KEY=A,B,…", value_parser = grid::parse_axis, required = true)]
    set: Vec<Axis>,
    /// Number to record, as a path into the JSON results, for example `hosts.server1.iops` or
    /// `max(links.*.*.utilisation)` [default: throughput, IOPS, mean and p99 response time, failed
    /// requests, requests in flight at the end, and dropped frames of all hosts together]
    #[arg(long, value_name = "PATH", value_parser = parse_metric)]
    metric: Vec<String>,
    // The folder of `--out` gets rows.jsonl (a row as soon as its point is finished), sweep.json,
    // sweep.csv, sweep.html and lab.toml.
    #[command(flatten)]
    outputs: Outputs,
    /// Run only every n-th point, starting with the i-th: 1/4 to 4/4 on four machines. The rows of
    /// all machines together are those of the whole sweep
    #[arg(long, value_name = "I/N", value_parser = grid::parse_shard)]
    shard: Option<Shard>,
    #[command(flatten)]
    threads: Threads,
    /// Continue the sweep in the folder of `--out`: finished points are not simulated again. Lab,
    /// grid, metrics and replications must be the same
    #[arg(long, requires = "out")]
    resume: bool,
    /// Simulate each point with this many seeds, all derived from the first, and give means with 95
    /// % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::count::<u32>(1..=10_000))]
    replications: u32,
    /// Bound that every point must keep, for example `totals.latency.p99_us <= 5000`; otherwise the
    /// exit code is 1
    #[arg(long, value_name = "PATH >= VALUE", value_parser = parse_gate)]
    expect: Vec<Gate>,
    /// Print no table
    #[arg(long, short)]
    quiet: bool,
}

/// Destination of the rows while points finish.
enum Destination<'a> {
    /// Only the outputs at the end.
    None,
    /// Standard output, as JSON Lines.
    Stdout,
    /// One file of JSON Lines.
    File(&'a Path),
    /// `rows.jsonl` in this folder, and all other files at the end.
    Folder(&'a Path),
}

/// Runs a sweep.
///
/// # Errors
/// The lab is wrong at some point, a file does not belong to this sweep or cannot be written, a
/// bound of `--expect` fails, or Ctrl-C came before the last point.
pub fn run(args: &Args) -> Result<(), Failure> {
    let destination = args.destination();
    let rows_on_stdout = matches!(destination, Destination::Stdout).then_some(Path::new("-"));
    args.outputs.check(&[("--out", rows_on_stdout)])?;
    let text = args.file.text()?;
    let metrics = args.metrics();
    let grid = Grid::new(args.set.clone(), args.shard);
    let id = grid.id(&text, &metrics, args.replications);
    let rows_path = match destination {
        Destination::File(path) => Some(path.to_owned()),
        Destination::Folder(folder) => {
            file::make_folder(folder)?;
            Some(folder.join("rows.jsonl"))
        }
        Destination::None | Destination::Stdout => None,
    };
    let mut rows = RowFile::open(rows_path.as_deref(), args.resume, &id, &grid)?;
    let todo: Vec<u64> = grid.points().filter(|point| !rows.has(*point)).collect();
    let same_names = check_all(args, &text, &grid, &todo)?;

    // Standard output cannot be sorted afterwards, so each row waits for those before it.
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
                // A number that other points may have is searched in all of them.
                match absent.iter().find(|absent| same_names && !absent.comes_and_goes()) {
                    Some(never) => return Err(never.failure()),
                    None => missing = absent,
                }
            }
            let line = Line { sweep: id.clone(), row };
            if rows_on_stdout.is_some() {
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
    let sweep = Sweep { name: lab_name(args, &text, &grid), text, rows, metrics, total: grid.points().count() as u64 };
    args.write(&sweep, &destination)?;
    if (sweep.rows.len() as u64) < sweep.total {
        let remedy = match rows_path {
            Some(path) => format!("{} has them; --resume runs the others", path.display()),
            None => "with --out DIR a sweep can be resumed".into(),
        };
        let (finished, total) = (sweep.rows.len(), sweep.total);
        return Err(Failure::interrupted(format_args!("{finished} of {total} points are finished; {remedy}")));
    }
    let never = |absent: &&Absent| sweep.rows.iter().all(|row| !row.metrics.contains_key(&absent.path));
    if let Some(never) = missing.iter().filter(|absent| !absent.comes_and_goes()).find(never) {
        return Err(never.failure());
    }
    judge(&args.expect, &sweep.rows)
}

/// Prints the bounds that do not hold.
fn judge(gates: &[Gate], rows: &[SweepRow]) -> Result<(), Failure> {
    let mut failed = false;
    for gate in gates {
        for row in rows {
            let value = row.metrics.get(&gate.metric).copied();
            if !gate.holds(value) {
                failed = true;
                let settings: Vec<String> =
                    row.settings.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
                output::note(&gate.failure(&format!("point {} ({})", row.point, settings.join(", ")), value));
            }
        }
    }
    if failed { Err(Failure::expectation()) } else { Ok(()) }
}

/// Checks the lab at all points before the first simulation, and prints each warning once. Returns
/// whether all elements have the same names at each point.
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
            let others = match count - 1 {
                0 => String::new(),
                1 => "; 1 more point has errors".to_owned(),
                more => format!("; {more} more points have errors"),
            };
            let note = format!("\nat point {point}: {}{others}", grid.describe(point));
            failure.message.push_str(&note);
            if let Some(coloured) = &mut failure.coloured {
                coloured.push_str(&note);
            }
            Err(failure)
        }
    }
}

/// Hash of the names of all elements with numbers in the results.
fn names(lab: &Lab) -> u64 {
    let mut hasher = DefaultHasher::new();
    let nodes = (lab.hosts.iter().map(|host| &host.name)).chain(lab.storage.iter().map(|storage| &storage.name));
    let fabric = (lab.switches.iter().map(|switch| &switch.name)).chain(lab.links.iter().map(|link| &link.name));
    let all = nodes.chain(fabric).chain(lab.workloads.iter().map(|workload| &workload.name));
    all.for_each(|name| name.hash(&mut hasher));
    hasher.finish()
}

/// A requested number that the results of a point do not have.
struct Absent {
    path: String,
    /// The option that requests it.
    option: &'static str,
    remedy: String,
}

impl Absent {
    /// True for a number that exists only if something happened, such as a drop.
    fn comes_and_goes(&self) -> bool {
        sweep::comes_and_goes(&self.path)
    }

    fn failure(&self) -> Failure {
        let path = format::clean(&self.path);
        Failure::usage(format_args!("{} {path}: the results have no such single number; {}", self.option, self.remedy))
    }
}

/// Simulates a point with all seeds. Returns `None` after Ctrl-C.
fn simulate(args: &Args, text: &str, grid: &Grid, metrics: &[String], point: u64) -> Option<(SweepRow, Vec<Absent>)> {
    let lab = sanloom_lab::load(&args.file.label(), text, &grid.overrides(point)).ok()?.lab;
    let measured = sweep::measure(&lab, args.replications, metrics, None)?;
    let absent = measured.absent.into_iter().map(|(path, remedy)| {
        let option = if args.metric.contains(&path) { "--metric" } else { "--expect" };
        Absent { path, option, remedy }
    });
    let mut row = SweepRow { point, settings: grid.settings(point), ..SweepRow::default() };
    for (path, values) in measured.values {
        let interval = Interval::of(&values);
        row.metrics.insert(path.clone(), if values.len() > 1 { interval.mean } else { values[0] });
        if args.replications > 1 {
            row.intervals.insert(path.clone(), interval);
        }
    }
    Some((row, absent.collect()))
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

impl Args {
    /// Columns: the metrics of the command line or the default ones, then those of bounds.
    fn metrics(&self) -> Vec<String> {
        let mut metrics = if self.metric.is_empty() {
            sweep::DEFAULT_METRICS.map(str::to_owned).to_vec()
        } else {
            self.metric.clone()
        };
        for gate in &self.expect {
            if !metrics.contains(&gate.metric) {
                metrics.push(gate.metric.clone());
            }
        }
        metrics
    }

    /// Destination of `--out`. Earlier versions took a file of rows, which still works.
    fn destination(&self) -> Destination<'_> {
        let is_rows = |path: &Path| path.extension().is_some_and(|ending| ending == "jsonl" || ending == "json");
        match self.outputs.out.out.as_deref() {
            None => Destination::None,
            Some(path) if is_stdout(Some(path)) => Destination::Stdout,
            Some(path) if !path.is_dir() && (path.exists() || is_rows(path)) => Destination::File(path),
            Some(path) => Destination::Folder(path),
        }
    }

    fn write(&self, sweep: &Sweep, destination: &Destination<'_>) -> Result<(), Failure> {
        let page = || html::sweep(&sweep.name, &sweep.rows, sweep.total, &self.command());
        let Outputs { json, html, csv, .. } = &self.outputs;
        json.write(&sweep.rows)?;
        html.write(page)?;
        csv.write(|out| match csv.is_json_lines() {
            true => sweep.rows.iter().try_for_each(|row| json::write_line(out, row)),
            false => table::write_csv(out, sweep),
        })?;
        if let Destination::Folder(folder) = destination {
            file::write(&folder.join("sweep.json"), |out| json::write_value(out, &sweep.rows))?;
            file::write(&folder.join("sweep.csv"), |out| table::write_csv(out, sweep))?;
            file::write_text(&folder.join("sweep.html"), &page())?;
            file::write_text(&folder.join("lab.toml"), &sweep.text)?;
        }
        if self.quiet || matches!(destination, Destination::Stdout) || self.outputs.is_stdout() {
            return Ok(());
        }
        output::print(&table::text(sweep, output::width()))
    }

    /// The command that repeats the sweep.
    fn command(&self) -> String {
        let mut command = format!("sanloom sweep {}", shell_word(&self.file.path.display().to_string()));
        for axis in &self.set {
            command.push_str(&format!(" --set {}", shell_word(&axis.argument())));
        }
        for metric in &self.metric {
            command.push_str(&format!(" --metric {}", shell_word(metric)));
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

fn parse_gate(text: &str) -> Result<Gate, String> {
    let gate = Gate::parse(text)?;
    parse_metric(&gate.metric).map(|_| gate)
}

fn parse_metric(path: &str) -> Result<String, String> {
    if is_metric_path(path) {
        Ok(path.trim().to_owned())
    } else {
        Err("a path into the JSON results looks like totals.iops or max(hosts.*.latency.p99_us)".into())
    }
}
