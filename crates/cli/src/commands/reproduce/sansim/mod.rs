//! `sanloom reproduce sansim`: document 001, section 4.

mod cases;
mod figure;
mod numbers;

use super::verdict::{self, Verdict};
use crate::exit::Failure;
use crate::input::Threads;
use crate::output;
use crate::pool;
use crate::report::html::plain_page;
use crate::report::{figure9, file, json};
use cases::{Measured, Setup};
use std::path::{Path, PathBuf};

/// Unit of every throughput here. 22.5 k requests of 2 KB per second are called 45 MB/s in the paper, so its MB has
/// 1000 * 1024 bytes.
const UNIT: &str = "MB/s";
/// The same in words.
const UNIT_IN_WORDS: &str = "MB/s of 1000 × 1024 bytes";

/// Options of `sanloom reproduce sansim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Write the numbers as a JSON list into this file; `-` for standard output, which then has no table. `ok` is true or
    /// false for the numbers that are judged; it and `tolerance` are null for the others
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the numbers and Figure 9 into this HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Figure 9 into this file: .svg, .html, or .json for its data
    #[arg(long, value_name = "FILE", value_parser = parse_figure)]
    figure9: Option<PathBuf>,
    /// Folder for report.html, numbers.json, figure9.svg and figure9.json
    #[arg(long, value_name = "DIR", default_value = "sansim.sanloom-report")]
    report: PathBuf,
    /// Write no report folder, and simulate Figure 9 only if `--html` or `--figure9` asks for it
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
    /// Simulated time of each saturated run with its unit; a tenth of it is warm-up
    #[arg(long, value_name = "TIME", default_value = "2s")]
    duration: String,
    /// Seed of every random number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
}

/// Runs the reproduction.
///
/// # Errors
/// When a number misses its tolerance, or something cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&[("--json", args.json.as_deref()), ("--html", args.html.as_deref())])?;
    let wants_figure = !args.no_report || args.html.is_some() || args.figure9.is_some();
    if !args.no_report {
        file::make_folder(&args.report)?;
    }
    let mut setups = numbers::setups();
    let saturated = setups.len();
    setups.extend(if wants_figure { figure::setups() } else { figure::response_setups() });
    let labs = setups.iter().map(|setup| setup.lab(&args.duration, args.seed)).collect::<Result<Vec<_>, _>>()?;
    let finished = pool::all(args.threads, "runs", &labs, |_, lab| cases::measure(lab))?;
    let measured: Vec<(Setup, Measured)> = setups
        .into_iter()
        .zip(finished)
        .map(|(setup, measured)| Some((setup, measured?)))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::interrupted("not all runs are finished; nothing was written"))?;
    let (saturated, loaded) = measured.split_at(saturated);
    let judged = numbers::judged(saturated, loaded);
    let shown = numbers::realistic(saturated);
    write(args, &judged, &shown, wants_figure.then(|| figure::panels(loaded)))?;
    if judged.iter().any(Verdict::missed) { Err(Failure::expectation()) } else { Ok(()) }
}

fn write(
    args: &Args,
    judged: &[Verdict],
    shown: &[Verdict],
    panels: Option<Vec<figure9::Panel>>,
) -> Result<(), Failure> {
    let all: Vec<&Verdict> = judged.iter().chain(shown).collect();
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    let write_json = |path: &Path| output::written(file::write(path, |out| json::write_value(out, &all)));
    if let Some(panels) = &panels {
        let page = page(args, judged, shown, panels);
        if !args.no_report {
            write_json(&args.report.join("numbers.json"))?;
            file::write_text(&args.report.join("report.html"), &page)?;
            for name in ["figure9.svg", "figure9.json"] {
                write_figure(args, &args.report.join(name), panels)?;
            }
        }
        if let Some(path) = &args.html {
            output::written(file::write_text(path, &page))?;
        }
        if let Some(path) = &args.figure9 {
            write_figure(args, path, panels)?;
        }
    }
    if let Some(path) = &args.json {
        write_json(path)?;
    }
    if is_stdout(&args.json) || is_stdout(&args.html) {
        return Ok(());
    }
    let width = output::width();
    let missed = judged.iter().filter(|verdict| verdict.missed()).count();
    let open = judged.iter().filter(|verdict| verdict.ok.is_none()).count();
    let mut text = format!(
        "Document 001 (SANSim), section 4: core/edge fabric with failing inter-switch links\n{UNIT} of 1000 × 1024 bytes, \
         per server unless said otherwise\n\n{}\nThe same fabric with the realistic default preset, to show the \
         difference\n\n{}\n{} numbers: {} within tolerance, {missed} missed, {open} open\n",
        verdict::table(judged, width),
        verdict::table(shown, width),
        judged.len(),
        judged.len() - missed - open,
    );
    if !args.no_report {
        text.push_str(&format!("Report: {}\n", args.report.join("report.html").display()));
    }
    output::print(&text)
}

fn write_figure(args: &Args, path: &Path, panels: &[figure9::Panel]) -> Result<(), Failure> {
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => {
            return output::written(file::write(path, |out| json::write_value(out, &figure::data(panels))));
        }
        Some("html") => figure9::html(panels, UNIT_IN_WORDS, &args.command()),
        _ => figure9::svg(panels, UNIT_IN_WORDS),
    };
    output::written(file::write_text(path, &text))
}

fn page(args: &Args, judged: &[Verdict], shown: &[Verdict], panels: &[figure9::Panel]) -> String {
    let missed = judged.iter().filter(|verdict| verdict.missed()).count();
    let figure = format!("<div class=\"drawing figure\">{}</div>\n", figure9::svg(panels, UNIT_IN_WORDS));
    plain_page(
        "SANSim's core/edge fabric, reproduced",
        "Document 001, section 4: eight servers, eight storage devices, four edge switches, one core, two inter-switch \
         links per edge; none, one or two of them fail.",
        &[
            format!("{} numbers, {missed} missed", judged.len()),
            format!("{UNIT_IN_WORDS}, per server unless said otherwise"),
        ],
        vec![
            ("numbers", "Numbers of the paper", verdict::html_table("numbers", judged)),
            ("figure9", "Figure 9: throughput against offered load", figure),
            ("default", "The same fabric with the realistic default preset", verdict::html_table("realistic", shown)),
            ("command", "Command", format!("<pre class=\"command\">{}</pre>\n", args.command())),
        ],
    )
}

impl Args {
    fn command(&self) -> String {
        format!(
            "sanloom reproduce sansim --duration {} --seed {}",
            crate::report::html::escape(&output::shell_word(&self.duration)),
            self.seed
        )
    }
}

fn parse_figure(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg" | "html" | "json") => Ok(path),
        _ => Err("the name must end in .svg, .html or .json".into()),
    }
}
