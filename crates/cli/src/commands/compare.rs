//! `sanloom compare`: the numbers of two runs side by side.

use sanloom_api::results::{Metrics, Results, SCHEMA_VERSION, is_metric_path};
use sanloom_console::exit::Failure;
use sanloom_console::metric;
use sanloom_console::output::{self, shell_word};
use sanloom_console::outputs::Outputs;
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_console::report::{csv, file, format, html, json};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Options of `sanloom compare`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Results of the first run: the JSON file of `sanloom sim --json=FILE`, or its report folder
    #[arg(value_name = "RUN1")]
    first: PathBuf,
    /// Results of the second run
    #[arg(value_name = "RUN2")]
    second: PathBuf,
    /// Number to compare, as a path into the JSON results, for example `hosts.server1.iops`; may be
    /// repeated [default: the totals, and the numbers of elements that differ most]
    #[arg(long, value_name = "PATH", value_parser = parse_metric)]
    metric: Vec<String>,
    /// Smallest difference of an element that is shown, in percent of the first run
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = parse_percent)]
    min_change: f64,
    #[command(flatten)]
    outputs: Outputs,
}

/// Rows of elements on the terminal; the files have all.
const ELEMENTS: usize = 20;
/// Numbers of elements that describe performance. Counters and settings follow from them.
const MEASURES: [&str; 9] = [
    "throughput_bytes_per_s",
    "iops",
    "latency.mean_us",
    "latency.p99_us",
    "ios_failed",
    "utilisation",
    "credit_wait_fraction",
    "longest_stall_s",
    "down_s",
];

/// A number of both runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Row {
    metric: String,
    /// Absent if the run does not have the number.
    first: Option<f64>,
    second: Option<f64>,
    /// Difference as a share of the first; absent if the first is 0 or a run does not have the
    /// number.
    change: Option<f64>,
}

impl Row {
    fn new(metric: &str, first: Option<f64>, second: Option<f64>) -> Row {
        let change = match (first, second) {
            (Some(first), Some(second)) if first == second => Some(0.0),
            (Some(first), Some(second)) if first != 0.0 => Some((second - first) / first.abs()),
            _ => None,
        };
        Row { metric: metric.to_owned(), first, second, change }
    }

    /// Weight for the order of the rows: a number that only one run has, or that was 0, comes
    /// first.
    fn weight(&self) -> f64 {
        self.change.map_or(f64::INFINITY, f64::abs)
    }

    fn change_text(&self) -> String {
        match self.change {
            Some(0.0) => "=".to_owned(),
            Some(change) => format!("{:+.1} %", change * 100.0),
            None => format::changed(self.first, self.second).to_owned(),
        }
    }
}

/// Both runs with their differences.
#[derive(Serialize)]
struct Comparison {
    schema_version: u32,
    first: String,
    second: String,
    /// Differences of the labs that explain the numbers: seed, duration, text.
    notes: Vec<String>,
    rows: Vec<Row>,
}

fn parse_metric(path: &str) -> Result<String, String> {
    match is_metric_path(path) {
        true => Ok(path.to_owned()),
        false => Err("write a path such as totals.iops or max(links.*.*.utilisation)".to_owned()),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("write a number of percent, for example 5".to_owned()),
    }
}

/// Compares two runs.
///
/// # Errors
/// If a file is not the results of a run, a number does not exist, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.check(&[])?;
    let (first, second) = (read_results(&args.first)?, read_results(&args.second)?);
    let comparison = Comparison {
        schema_version: 1,
        first: args.first.display().to_string(),
        second: args.second.display().to_string(),
        notes: notes(&first, &second),
        rows: rows(args, &first, &second)?,
    };
    let command = format!("sanloom compare {} {}", shell_word(&comparison.first), shell_word(&comparison.second));
    let page = || page(&comparison, &command);
    let rows = |out: &mut dyn std::io::Write| csv_rows(out, &comparison);
    let outputs = &args.outputs;
    if let Some(folder) = &outputs.out.out {
        file::make_folder(folder)?;
        file::write(&folder.join("compare.json"), |out| json::write_value(out, &comparison))?;
        file::write(&folder.join("compare.csv"), rows)?;
        file::write_text(&folder.join("compare.html"), &page())?;
    }
    outputs.json.write(&comparison)?;
    outputs.html.write(page)?;
    outputs.csv.write(rows)?;
    match outputs.is_stdout() {
        true => Ok(()),
        false => output::print(&text(&comparison, output::width())),
    }
}

/// Members of the results in every version. Other JSON has neither.
#[derive(serde::Deserialize, Default)]
struct Head {
    totals: Option<serde::de::IgnoredAny>,
    schema_version: Option<serde_json::Value>,
}

/// Reads the results of a run, from a JSON file or from the report folder with `results.json`.
///
/// # Errors
/// The file cannot be read, or holds no results of this version.
pub(super) fn read_results(path: &Path) -> Result<Results, Failure> {
    let file = if path.is_dir() { path.join("results.json") } else { path.to_owned() };
    let shown = file.display();
    let bytes = std::fs::read(&file).map_err(|error| {
        let message = format!("cannot read the results {shown}: {error}");
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::IsADirectory => Failure::usage(message),
            _ => Failure::environment(message),
        }
    })?;
    let head = match sanloom_api::json::from_slice(&bytes) {
        Ok(head) => head,
        Err(error) if error.is_data() && std::str::from_utf8(&bytes).is_ok() => Head::default(),
        Err(error) => {
            let remedy = "write results with `sanloom sim LAB --json=FILE`";
            return Err(Failure::usage(format_args!("{shown} is not JSON: {error}; {remedy}")));
        }
    };
    if head.totals.is_none() {
        let remedy = "write results with `sanloom sim LAB --json=FILE`";
        return Err(Failure::usage(format_args!("{shown} is not the results of a run: it has no `totals`; {remedy}")));
    }
    let version = head.schema_version.as_ref().and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(SCHEMA_VERSION)) {
        let version =
            version.map_or_else(|| "no schema_version".to_owned(), |version| format!("schema_version {version}"));
        return Err(Failure::usage(format_args!(
            "{shown} has {version}, and this program reads {SCHEMA_VERSION}; repeat the run with this program"
        )));
    }
    sanloom_api::json::from_slice(&bytes)
        .map_err(|error| Failure::usage(format_args!("{shown} is not the results of a run: {error}")))
}

fn notes(first: &Results, second: &Results) -> Vec<String> {
    let (a, b) = (&first.lab, &second.lab);
    let runs = |results: &Results| results.replications.as_ref().map_or(1, |several| several.seeds.len());
    let mut notes = Vec::new();
    let mut differ = |what: &str, one: &str, other: &str| {
        if one != other {
            notes.push(format!("{what}: {one} and {other}"));
        }
    };
    differ("labs", &a.name, &b.name);
    differ("values of --set", &sets(first), &sets(second));
    differ("seeds", &a.seed.to_string(), &b.seed.to_string());
    differ("replications", &runs(first).to_string(), &runs(second).to_string());
    differ("durations", &format::seconds(a.duration_s), &format::seconds(b.duration_s));
    differ("warm-ups", &format::seconds(a.warmup_s), &format::seconds(b.warmup_s));
    differ("versions of sanloom", &a.sanloom_version, &b.sanloom_version);
    if a.source != b.source {
        notes.push("the texts of the lab files differ".to_owned());
    }
    if runs(first).max(runs(second)) > 1 {
        notes.push("the numbers are those of the first seed of each run, not means of its replications".to_owned());
    }
    for (name, lab) in [("first", a), ("second", b)] {
        if lab.interrupted {
            notes.push(format!("the {name} run was interrupted"));
        }
    }
    notes
}

/// The `--set` options of the command that repeats a run.
fn sets(results: &Results) -> String {
    let command = results.lab.command.as_deref().unwrap_or_default();
    let value = |part: &str| {
        let end = [" --seed ", " --duration ", " --replications "].iter().filter_map(|next| part.find(next)).min();
        part[..end.unwrap_or(part.len())].trim().to_owned()
    };
    let sets: Vec<String> = command.split(" --set ").skip(1).map(value).collect();
    if sets.is_empty() { "none".to_owned() } else { sets.join(" ") }
}

fn rows(args: &Args, first: &Results, second: &Results) -> Result<Vec<Row>, Failure> {
    let (a, b) = (Metrics::new(first), Metrics::new(second));
    if !args.metric.is_empty() {
        let row = |path: &String| match (a.get(path), b.get(path)) {
            (None, None) => Err(Failure::usage(format_args!(
                "neither run has a single number `{path}`; {}",
                metric::remedy(&a, path)
            ))),
            (first, second) => Ok(Row::new(path, first, second)),
        };
        return args.metric.iter().map(row).collect();
    }
    let values = |metrics: &Metrics| -> BTreeMap<String, f64> {
        metrics.all().into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    };
    let (a, b) = (values(&a), values(&b));
    let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    let all: Vec<Row> = names.map(|name| Row::new(name, a.get(name).copied(), b.get(name).copied())).collect();
    let is_total = |row: &Row| row.metric.starts_with("totals.");
    let is_element = |row: &Row| {
        ["hosts.", "storage.", "links.", "switches."].iter().any(|part| row.metric.starts_with(part))
            && MEASURES.iter().any(|measure| row.metric.ends_with(&format!(".{measure}")))
            && row.first != row.second
            && row.weight() * 100.0 >= args.min_change
    };
    let totals = all.iter().filter(|row| is_total(row) && (row.first, row.second) != (Some(0.0), Some(0.0)));
    let mut elements: Vec<&Row> = all.iter().filter(|row| is_element(row)).collect();
    elements.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    Ok(totals.chain(elements).cloned().collect())
}

/// A number with its unit, or a dash.
fn shown(metric: &str, value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format::measured(metric, value))
}

fn text(comparison: &Comparison, width: usize) -> String {
    let mut out = format!("{} and {}\n", comparison.first, comparison.second);
    for note in &comparison.notes {
        out += &format!("  {note}\n");
    }
    out.push('\n');
    let mut grid = Grid::new(vec![
        Column::left("number"),
        Column::right("first"),
        Column::right("second"),
        Column::right("change"),
    ]);
    let mut elements = 0;
    for row in &comparison.rows {
        elements += usize::from(!row.metric.starts_with("totals."));
        if elements > ELEMENTS {
            continue;
        }
        grid.row(vec![
            row.metric.clone(),
            shown(&row.metric, row.first),
            shown(&row.metric, row.second),
            row.change_text(),
        ]);
    }
    if elements > ELEMENTS {
        grid.more(elements - ELEMENTS);
    }
    out + &grid.render(width)
}

fn page(comparison: &Comparison, command: &str) -> String {
    let rows: Vec<html::ComparedRow<'_>> = (comparison.rows.iter())
        .map(|row| html::ComparedRow { metric: &row.metric, first: row.first, second: row.second, change: row.change })
        .collect();
    html::compare([&comparison.first, &comparison.second], &comparison.notes, &rows, command)
}

fn csv_rows(out: &mut dyn std::io::Write, comparison: &Comparison) -> std::io::Result<()> {
    writeln!(out, "metric,first,second,change")?;
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for row in &comparison.rows {
        let numbers = [row.first, row.second, row.change].map(number);
        writeln!(out, "{},{}", csv::quoted(&row.metric), numbers.join(","))?;
    }
    Ok(())
}
