//! `sanloom reproduce npiv`: the NPIV paper, section V.

mod beds;
mod figures;
mod labs;
mod numbers;

use super::ResultArgs;
use super::verdict::{self, Verdict};
use crate::npiv_bed::Sequence;
use beds::Runs;
use labs::Outcome;
use sanloom_console::exit::Failure;
use sanloom_console::input::Threads;
use sanloom_console::output;
use sanloom_console::pool;
use sanloom_console::report::html::{escape, plain_page};
use sanloom_console::report::plot::{self, Plot};
use sanloom_console::report::terminal::grid::wrap;
use sanloom_console::report::{file, json};
use std::path::Path;

/// Options of `sanloom reproduce npiv`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    threads: Threads,
}

/// Runs the reproduction.
///
/// # Errors
/// If a prediction misses unexpectedly, an expectation of a lab fails, or an output cannot be
/// written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let folder = args.results.prepare("npiv")?;
    let finished = pool::all(args.threads, "runs", &beds::beds(), |_, bed| Some(bed.run()))?;
    let runs: Option<Vec<_>> = finished.into_iter().collect();
    let Some(runs) = runs.and_then(Runs::of) else {
        return Err(Failure::interrupted("not all runs are finished; nothing was written"));
    };
    let judged = numbers::judged(&runs);
    let further = pool::all(args.threads, "labs", &labs::LABS, |_, lab| labs::measure(lab))?;
    let Some(further) = further.into_iter().collect::<Option<Result<Vec<_>, _>>>() else {
        return Err(Failure::interrupted("not all labs are finished; nothing was written"));
    };
    let further = further?;
    write(args, folder.as_deref(), &runs, &judged, &further)?;
    let failed = further.iter().flat_map(|outcome| &outcome.results.expectations).any(|expectation| !expectation.ok);
    if failed { Err(Failure::expectation()) } else { verdict::outcome(&judged) }
}

fn write(
    args: &Args,
    folder: Option<&Path>,
    runs: &Runs,
    judged: &[Verdict],
    further: &[Outcome],
) -> Result<(), Failure> {
    let plots = figures::plots(runs);
    if let Some(folder) = folder {
        output::written(file::write(&folder.join("figures.json"), |out| json::write_value(out, &plots)))?;
    }
    args.results.write(folder, &judged, &judged, || page(runs, judged, further, &plots))?;
    if args.results.outputs.is_stdout() {
        return Ok(());
    }
    let width = output::width();
    let paragraphs: String = paragraphs(runs, further).iter().map(|text| wrap(text, width, 0) + "\n").collect();
    let mut text = format!(
        "Muknahallipatna and others, NPIV (2009), section V: 255 virtual ports on each port of a switch\n{}\n\n{}\n{paragraphs}{}\n",
        repeated(),
        verdict::table(judged, width),
        verdict::summary(judged),
    );
    if let Some(folder) = folder {
        text.push_str(&format!("Report: {}\n", folder.join("report.html").display()));
    }
    output::print(&text)
}

/// Describes the repetitions.
fn repeated() -> String {
    format!(
        "Mean ± standard deviation of {} repetitions with ports in step; ports one after the other do not differ in {} \
         repetitions",
        beds::REPETITIONS,
        beds::ALONE
    )
}

/// Compares our algorithm with the paper's modification.
fn beside(runs: &Runs) -> String {
    let of = |sequences: &[Sequence]| numbers::mean(sequences, 3).unwrap_or(0.0);
    format!(
        "Zone-mates only (ours), port 3: no comparison, mean {:.1} ms, {} ms of them the unexplained constant; modified: \
         {:.1} ms.",
        of(&runs.ours),
        beds::UNEXPLAINED_MS,
        of(runs.modified.first().map_or(&[], Vec::as_slice)),
    )
}

/// Returns the results that are not numbers of the document.
fn paragraphs(runs: &Runs, further: &[Outcome]) -> Vec<String> {
    let own = [numbers::averages(runs), beside(runs), numbers::at_the_limit(runs), numbers::beyond(runs)];
    own.into_iter().chain(further.iter().map(labs::sentence)).collect()
}

fn page(runs: &Runs, judged: &[Verdict], further: &[Outcome], plots: &[Plot]) -> String {
    let text: String = paragraphs(runs, further).iter().map(|text| format!("<p>{}</p>\n", escape(text))).collect();
    plain_page(
        "Virtual ports and hard zoning, reproduced",
        "Muknahallipatna and others, NPIV (2009), section V: three generator cards and a storage node at one switch, a zone for each virtual port, 255 \
         virtual ports on each card.",
        &[verdict::summary(judged), repeated()],
        vec![
            ("numbers", "Numbers of the paper", verdict::html_table("numbers", judged)),
            ("figures", "Figures 8 to 11", plot::drawings(plots)),
            ("beyond", "Limits of the switch, and further labs", text),
            ("command", "Command", "<pre class=\"command\">sanloom reproduce npiv</pre>\n".to_owned()),
        ],
    )
}
