//! `sanloom reproduce theory`: numbers that have a formula, beside ours.
//!
//! Every expected value comes from a formula of this module, with its source. The formulas share no
//! code with the engine. Exact numbers have a tolerance. Random ones have a confidence interval,
//! which must lie within the tolerance; a wider interval is undecided.

mod bed;
mod closed;
mod coverage;
mod credits;
mod hashes;
mod karol;
mod latency;
mod lines;
mod public_trace;
mod queues;
mod row;
mod sharing;
mod storage;
mod timers;

use super::ResultArgs;
use bed::Sample;
use row::Row;
use sanloom_console::exit::Failure;
use sanloom_console::input::Threads;
use sanloom_console::output;
use sanloom_console::pool;
use sanloom_console::report::html::{escape, plain_page};
use std::path::{Path, PathBuf};

/// Options of `sanloom reproduce theory`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    results: ResultArgs,
    /// Use small samples: seconds instead of minutes. Intervals are wider, and more numbers are
    /// undecided
    #[arg(long)]
    quick: bool,
    /// Folder of the public trace of cache policies, which `tests/traces/fetch.sh FOLDER` fetches:
    /// adds the misses of LRU, FIFO and CLOCK, which must be exactly the published ones
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

/// Result of a job.
enum Outcome {
    Rows(Vec<Row>),
    /// True if an interval contains the true mean.
    Contains(bool),
}

type Job = Box<dyn Fn() -> Result<Outcome, Failure> + Sync + Send>;

/// Runs the reproduction.
///
/// # Errors
/// If a number misses, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let folder = args.results.prepare("theory")?;
    let trace = args.traces.as_deref().map(public_trace::read).transpose()?;
    let rows = measure(args, trace)?;
    write(args, folder.as_deref(), &rows)?;
    row::outcome(&rows)
}

fn measure(args: &Args, trace: Option<Vec<u8>>) -> Result<Vec<Row>, Failure> {
    let sample = if args.quick { Sample::Small } else { Sample::Full };
    let finished = pool::all(args.threads, "parts", &jobs(sample, trace), |_, job| Some(job()))?;
    let Some(outcomes) = finished.into_iter().collect::<Option<Result<Vec<Outcome>, Failure>>>() else {
        return Err(bed::interrupted());
    };
    let (mut rows, mut hits) = (Vec::new(), 0);
    for outcome in outcomes? {
        match outcome {
            Outcome::Rows(more) => rows.extend(more),
            Outcome::Contains(contains) => hits += u64::from(contains),
        }
    }
    let covered = coverage::replications_row(hits);
    let before = rows.iter().position(|row: &Row| row.section == covered.section).unwrap_or(rows.len());
    rows.insert(before, covered);
    Ok(rows)
}

fn job(rows: impl Fn() -> Result<Vec<Row>, Failure> + Sync + Send + 'static) -> Job {
    Box::new(move || rows().map(Outcome::Rows))
}

/// Returns the jobs in the order of the report. `trace` is the public trace.
fn jobs(sample: Sample, trace: Option<Vec<u8>>) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    jobs.extend(lines::GENERATIONS.iter().map(|generation| job(move || lines::rows(generation, sample))));
    jobs.extend(latency::CASES.iter().enumerate().map(|(number, case)| job(move || latency::rows(number, case))));
    jobs.extend(credits::cases().into_iter().map(|case| job(move || credits::rows(&case, sample))));
    jobs.extend(
        queues::CONTROLLERS
            .into_iter()
            .map(|(servers, load)| job(move || queues::controller_rows(servers, load, sample))),
    );
    jobs.extend(queues::LINES.into_iter().map(|(sizes, load)| job(move || queues::line_rows(sizes, load, sample))));
    jobs.extend(
        closed::NETWORKS
            .into_iter()
            .map(|(stations, customers)| job(move || closed::network_rows(stations, customers, sample))),
    );
    jobs.extend(closed::LOOPS.into_iter().map(|customers| job(move || closed::constant_rows(customers, sample))));
    jobs.extend(
        coverage::seeds().map(|seed| Box::new(move || coverage::contains(seed, sample).map(Outcome::Contains)) as Job),
    );
    jobs.push(job(move || Ok(vec![coverage::batches_row(sample)])));
    jobs.extend(karol::SIZES.into_iter().map(|inputs| job(move || karol::rows(inputs, false, sample))));
    jobs.extend(karol::WITH_PLACES.into_iter().map(|inputs| job(move || karol::rows(inputs, true, sample))));
    jobs.push(job(move || sharing::parking_lot(sample)));
    jobs.extend(["fifo", "voq"].map(|queueing| job(move || sharing::slow_drain(queueing, sample))));
    jobs.push(job(|| Ok(hashes::rows())));
    jobs.extend(storage::LOADS.into_iter().map(|load| job(move || storage::cache_rows(load, sample))));
    jobs.extend(trace.map(|trace| job(move || Ok(public_trace::rows(&trace)))));
    jobs.extend(storage::PROVISIONS.into_iter().map(|provision| job(move || storage::flash_rows(provision))));
    jobs.push(job(move || storage::raid_rows(sample)));
    let timers = [timers::credit, timers::lost_port, timers::command, timers::login, timers::selection, timers::hello];
    jobs.extend(timers.map(job));
    jobs
}

fn write(args: &Args, folder: Option<&Path>, rows: &[Row]) -> Result<(), Failure> {
    args.results.write(folder, &rows, &rows, || page(args, rows))?;
    if args.traces.is_none() {
        output::note(public_trace::LEFT_OUT);
    }
    if args.results.outputs.is_stdout() {
        return Ok(());
    }
    let mut text =
        format!("Numbers that have a formula\n\n{}{}\n", row::table(rows, output::width()), row::summary(rows));
    if let Some(folder) = folder {
        text.push_str(&format!("Report: {}\n", folder.join("report.html").display()));
    }
    output::print(&text)
}

fn page(args: &Args, rows: &[Row]) -> String {
    let mut command = String::from("sanloom reproduce theory");
    if args.quick {
        command.push_str(" --quick");
    }
    let mut summary = vec![row::summary(rows)];
    match &args.traces {
        Some(folder) => command.push_str(&format!(" --traces {}", folder.display())),
        None => summary.push(public_trace::LEFT_OUT.to_owned()),
    }
    plain_page(
        "Numbers that have a formula",
        "Lines, latencies, credits, queues, switches, hashes, caches, flash, RAID and timers: the value of a formula beside that of the simulator.",
        &summary,
        vec![
            ("numbers", "Theory and simulation", row::html_table(rows)),
            ("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(&command))),
        ],
    )
}
