//! `sanloom reproduce npiv`: document 000, section V.

mod beds;
mod figures;
mod labs;
mod numbers;

use super::verdict::{self, Verdict};
use crate::exit::Failure;
use crate::input::Threads;
use crate::output;
use crate::pool;
use crate::report::html::{escape, plain_page};
use crate::report::plot::{self, Plot};
use crate::report::{file, json};
use beds::Runs;
use labs::Outcome;
use std::path::{Path, PathBuf};

/// Options of `sanloom reproduce npiv`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Write the numbers as a JSON list into this file; `-` for standard output, which then has no table. `ok` is true or
    /// false for the numbers that are judged; it and `tolerance` are null for the others
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder for report.html, numbers.json and figures.json
    #[arg(long, value_name = "DIR", default_value = "npiv.sanloom-report")]
    report: PathBuf,
    /// Write no report folder
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
    #[command(flatten)]
    threads: Threads,
}

/// Runs the reproduction.
///
/// # Errors
/// When a number misses its tolerance, or something cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    if !args.no_report {
        file::make_folder(&args.report)?;
    }
    let finished = pool::all(args.threads, "runs", &beds::beds(), |_, bed| Some(bed.run()))?;
    let runs: Option<Vec<_>> = finished.into_iter().collect();
    let Some(Ok([standard, in_step, modified, ours])) = runs.map(<[_; 4]>::try_from) else {
        return Err(Failure::interrupted("not all runs are finished; nothing was written"));
    };
    let runs = Runs { standard, in_step, modified, ours };
    let judged = numbers::judged(&runs);
    let further = pool::all(args.threads, "labs", &labs::LABS, |_, lab| labs::measure(*lab))?;
    let Some(further) = further.into_iter().collect::<Option<Result<Vec<_>, _>>>() else {
        return Err(Failure::interrupted("not all labs are finished; nothing was written"));
    };
    let further = further?;
    write(args, &runs, &judged, &further)?;
    let unexpected =
        further.iter().flat_map(|outcome| &outcome.results.expectations).any(|expectation| !expectation.ok);
    if unexpected || judged.iter().any(Verdict::missed) { Err(Failure::expectation()) } else { Ok(()) }
}

fn write(args: &Args, runs: &Runs, judged: &[Verdict], further: &[Outcome]) -> Result<(), Failure> {
    let write_json = |path: &Path| output::written(file::write(path, |out| json::write_value(out, &judged)));
    if !args.no_report {
        let plots = figures::plots(runs);
        write_json(&args.report.join("numbers.json"))?;
        output::written(file::write(&args.report.join("figures.json"), |out| json::write_value(out, &plots)))?;
        file::write_text(&args.report.join("report.html"), &page(runs, judged, further, &plots))?;
    }
    if let Some(path) = &args.json {
        write_json(path)?;
        if path == Path::new("-") {
            return Ok(());
        }
    }
    let missed = judged.iter().filter(|verdict| verdict.missed()).count();
    let open = judged.iter().filter(|verdict| verdict.ok.is_none()).count();
    let width = output::width();
    let mut text = format!(
        "Document 000 (NPIV), section V: 255 virtual ports on each port of a switch\n\n{}\n{}\n{}\n\n{}\n\n{} numbers: {} within \
         tolerance, {missed} missed, {open} open\n",
        verdict::table(judged, width),
        numbers::averages(runs),
        beside(runs),
        beyond(runs, further).join("\n"),
        judged.len(),
        judged.len() - missed - open,
    );
    if !args.no_report {
        text.push_str(&format!("Report: {}\n", args.report.join("report.html").display()));
    }
    output::print(&text)
}

/// Our algorithm beside the paper's modification.
fn beside(runs: &Runs) -> String {
    let of = |sequences, card| numbers::mean(sequences, card).unwrap_or(0.0);
    format!(
        "Zone-mates only (ours), port 3: no comparison, {:.1} ms on the average, {} ms of them the unexplained constant; modified: \
         {:.1} ms.",
        of(&runs.ours, 3),
        beds::UNEXPLAINED_MS,
        of(&runs.modified, 3),
    )
}

/// What follows where the paper stops.
fn beyond(runs: &Runs, further: &[Outcome]) -> Vec<String> {
    std::iter::once(numbers::beyond(runs)).chain(further.iter().map(labs::sentence)).collect()
}

fn page(runs: &Runs, judged: &[Verdict], further: &[Outcome], plots: &[Plot]) -> String {
    let missed = judged.iter().filter(|verdict| verdict.missed()).count();
    let figures = plot::drawings(plots);
    let said = [vec![beside(runs)], beyond(runs, further)].concat();
    let text: String = said.iter().map(|text| format!("<p>{}</p>\n", escape(text))).collect();
    let figures = format!("<p>{}</p>\n{figures}", escape(&numbers::averages(runs)));
    plain_page(
        "Virtual ports and hard zoning, reproduced",
        "Document 000, section V: three generator cards and a storage node at one switch, a zone for each virtual port, 255 \
         virtual ports on each card.",
        &[format!("{} numbers, {missed} missed", judged.len())],
        vec![
            ("numbers", "Numbers of the paper", verdict::html_table("numbers", judged)),
            ("figures", "Figures 8 to 11", figures),
            ("beyond", "Where the paper stops", text),
            ("command", "Command", "<pre class=\"command\">sanloom reproduce npiv</pre>\n".to_owned()),
        ],
    )
}
