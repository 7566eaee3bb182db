//! `sanloom reproduce disks`: measured response times of disks beside those of the model.

mod figures;
mod queues;
mod row;
mod traces;

use super::ResultArgs;
use super::verdict::{self, Verdict};
use row::Row;
use sanloom_console::exit::Failure;
use sanloom_console::input::Threads;
use sanloom_console::output;
use sanloom_console::pool;
use sanloom_console::report::html::{escape, plain_page};
use sanloom_console::report::plot::{self, Plot};
use sanloom_console::report::terminal::grid::wrap;
use sanloom_console::report::{file, json};
use serde::Serialize;
use std::path::{Path, PathBuf};
use traces::Compared;

/// Notice that must accompany the traces and the parameters made from DiskSim's files.
const NOTICE: &str = include_str!("../../../data/disk-traces/LICENCE-DiskSim-4.0.txt");

/// Origin of the parameters of the disks that are part of the program.
const INPUTS: &str = "Inputs: layout, seek points, rotation, overheads, bus and cache of each disk, from the parameter \
                      files of DiskSim 4.0; block, size and think time of each request, from its traces. Fits: no \
                      number. Where the parameters leave the behaviour open, the reading that agrees with the traces was \
                      taken: a write without cache seeks beside its overhead, the Cheetah 9LP discards blocks that the \
                      host has read, and blocks behind a write stay in the cache.";

/// Origin of the parameters of `--disk`.
const OWN_INPUTS: &str = "Inputs: the parameters of the disk, and block, size and think time of each request.";

/// Origin of our numbers.
const PREDICTIONS: &str = "Predictions: the response time of each request, and so both distributions, the mean and the \
                           demerit figure. A request arrives its think time after the end of the one before in the model. \
                           The demerit figure is the root mean square of the horizontal distance between the two \
                           cumulative distributions (Ruemmler and Wilkes 1994), in percent of the measured mean.";

/// Options of `sanloom reproduce disks`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    results: ResultArgs,
    /// Compare this disk with `--trace` instead: the name of a preset, a TOML file of
    /// parameters, or a .parv or .diskspecs file of DiskSim
    #[arg(long, value_name = "DISK", requires = "trace")]
    disk: Option<String>,
    /// Trace with measured times in the format `validate` of DiskSim; .gz is decompressed
    #[arg(long, value_name = "FILE", requires = "disk")]
    trace: Option<PathBuf>,
    /// Print the parameters of a preset as a TOML file, and measure nothing
    #[arg(long, value_name = "PRESET", conflicts_with_all = ["disk", "trace"])]
    print: Option<String>,
    #[command(flatten)]
    threads: Threads,
}

/// The whole result; the JSON of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    traces: Vec<&'a Row>,
    queues: &'a [Verdict],
    figures: &'a [Plot],
}

/// Runs the reproduction.
///
/// # Errors
/// If a prediction misses, a file cannot be read, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(name) = &args.print {
        return output::print(&traces::parameters(name)?);
    }
    let folder = args.results.prepare("disks")?;
    let cases = match (&args.disk, &args.trace) {
        (Some(disk), Some(trace)) => vec![traces::own_case(disk, trace)?],
        _ => traces::cases(),
    };
    let interrupted = || Failure::interrupted("not all disks are finished; nothing was written");
    let finished = pool::all(args.threads, "traces", &cases, |_, case| Some(traces::compare(case)))?;
    let compared = finished.into_iter().collect::<Option<Result<Vec<_>, _>>>().ok_or_else(interrupted)??;
    let queues = match args.disk {
        Some(_) => Vec::new(),
        None => {
            let finished = pool::all(args.threads, "queues", &queues::jobs()?, |_, job| Some(job()))?;
            let verdicts = finished.into_iter().collect::<Option<Result<Vec<_>, _>>>().ok_or_else(interrupted)??;
            verdicts.into_iter().flatten().collect()
        }
    };
    write(args, folder.as_deref(), &compared, &queues)?;
    if compared.iter().any(|compared| !compared.row.is_ok()) {
        return Err(Failure::expectation());
    }
    verdict::outcome(&queues)
}

/// Tells inputs, fits and predictions apart.
fn kinds(args: &Args) -> String {
    format!("{} {PREDICTIONS}", if args.disk.is_some() { OWN_INPUTS } else { INPUTS })
}

fn write(args: &Args, folder: Option<&Path>, compared: &[Compared], queues: &[Verdict]) -> Result<(), Failure> {
    let figures = figures::plots(compared);
    if let Some(folder) = folder {
        output::written(file::write(&folder.join("figures.json"), |out| json::write_value(out, &figures)))?;
    }
    let rows: Vec<&Row> = compared.iter().map(|compared| &compared.row).collect();
    let report = Report { traces: rows.clone(), queues, figures: &figures };
    args.results.write(folder, &report, &rows, || page(args, compared, queues, &figures))?;
    if args.results.outputs.is_stdout() {
        return Ok(());
    }
    let width = output::width();
    let mut text = format!(
        "Measured response times of disks beside the model\n\n{}\n{}{}\n{}\n",
        row::table(&rows, width),
        figures::percentiles(compared, width),
        wrap(&kinds(args), width, 0),
        row::summary(&rows),
    );
    if !queues.is_empty() {
        text.push_str(&format!("\n{}\n\n{}\n", queues::TITLE, verdict::table(queues, width)));
        text.push_str(&format!("{}\n", verdict::summary(queues)));
    }
    if let Some(folder) = folder {
        text.push_str(&format!("Report: {}\n", folder.join("report.html").display()));
    }
    output::print(&text)
}

fn page(args: &Args, compared: &[Compared], queues: &[Verdict], figures: &[Plot]) -> String {
    let rows: Vec<&Row> = compared.iter().map(|compared| &compared.row).collect();
    let stats: String = compared
        .iter()
        .map(|compared| {
            format!("<p><b>{}</b></p>\n<pre>{}</pre>\n", escape(&compared.row.disk), escape(&compared.stats))
        })
        .collect();
    let command = match (&args.disk, &args.trace) {
        (Some(disk), Some(trace)) => format!("sanloom reproduce disks --disk {disk} --trace {}", trace.display()),
        _ => "sanloom reproduce disks".to_owned(),
    };
    let mut sections = vec![
        ("disks", "Measured and modelled response times", row::html_table(&rows)),
        ("figures", "Distributions", plot::drawings(figures)),
        ("kinds", "Inputs, fits and predictions", format!("<p>{}</p>\n", escape(&kinds(args)))),
        ("parts", "Parts of the modelled response times", stats),
    ];
    if !queues.is_empty() {
        sections.push(("queues", queues::TITLE, verdict::html_table("queues", queues)));
    }
    sections.push(("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(&command))));
    sections.push(("notice", "Notice of the traces", format!("<pre>{}</pre>\n", escape(NOTICE))));
    let mut facts = vec![row::summary(&rows)];
    facts.extend((!queues.is_empty()).then(|| verdict::summary(queues)));
    plain_page(
        "Disks, measured and modelled",
        "Requests with think times were sent to real disks, one at a time. The model serves the same requests.",
        &facts,
        sections,
    )
}
