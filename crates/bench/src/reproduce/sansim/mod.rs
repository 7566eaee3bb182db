//! `sanloom reproduce sansim`: the SANSim paper, sections 3 and 4.

mod cases;
mod figure;
mod numbers;
mod validation;

use super::ResultArgs;
use super::verdict::{self, Verdict};
use cases::{Measured, Setup};
use sanloom_console::exit::Failure;
use sanloom_console::input::Threads;
use sanloom_console::output;
use sanloom_console::pool;
use sanloom_console::report::html::plain_page;
use sanloom_console::report::{figure9, file, json};
use std::path::{Path, PathBuf};

/// Unit of every throughput. The paper calls 22.5 k requests of 2 KB per second 45 MB/s, so its MB
/// has 1000 * 1024 bytes.
const UNIT: &str = "MB/s";
/// The unit in words.
const UNIT_IN_WORDS: &str = "MB/s of 1000 × 1024 bytes";

/// Options of `sanloom reproduce sansim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    results: ResultArgs,
    /// Write Figure 9 into this file: .svg, .html, or .json for its data
    #[arg(long, value_name = "FILE", value_parser = parse_figure)]
    figure9: Option<PathBuf>,
    /// Simulated time of each saturated run, with its unit; a tenth of it is warm-up. Runs under an
    /// offered load take half of it, runs of other models a fifth
    #[arg(long, value_name = "TIME", default_value = "2s")]
    duration: String,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
}

/// Runs the reproduction.
///
/// # Errors
/// If a prediction misses unexpectedly, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let folder = args.results.prepare("sansim")?;
    let wants_figure = folder.is_some() || args.results.outputs.html.html.is_some() || args.figure9.is_some();
    let mut setups = numbers::setups();
    let saturated = setups.len();
    setups.extend(if wants_figure { figure::setups() } else { figure::response_setups() });
    let labs = setups.iter().map(|setup| setup.lab(&args.duration, args.seed)).collect::<Result<Vec<_>, _>>()?;
    let finished = pool::all(args.threads, "runs", &labs, |_, lab| cases::measure(lab))?;
    let measured = whole(setups, finished)?;
    let (saturated, loaded) = measured.split_at(saturated);
    let points = validation::points();
    let labs = points.iter().map(|point| point.lab(args.seed)).collect::<Result<Vec<_>, _>>()?;
    let finished = pool::all(args.threads, "runs", &labs, |_, lab| validation::measure(lab))?;
    let on_loop = whole(points, finished)?;
    let judged = [validation::judged(&on_loop), numbers::judged(saturated, loaded)].concat();
    let panels = wants_figure.then(|| figure::panels(loaded));
    let runs = Runs { saturated, on_loop: &on_loop };
    write(args, folder.as_deref(), &judged, &runs, panels.as_deref())?;
    verdict::outcome(&judged)
}

/// Returns each run with its results.
///
/// # Errors
/// If a run was interrupted.
fn whole<R, M>(runs: Vec<R>, finished: Vec<Option<M>>) -> Result<Vec<(R, M)>, Failure> {
    let pairs = runs.into_iter().zip(finished).map(|(run, measured)| Some((run, measured?)));
    pairs.collect::<Option<_>>().ok_or_else(|| Failure::interrupted("not all runs are finished; nothing was written"))
}

/// The runs whose numbers are shown beside the judged ones.
struct Runs<'r> {
    saturated: &'r [(Setup, Measured)],
    /// Runs of section 3.
    on_loop: &'r [(validation::Point, validation::Measured)],
}

fn write(
    args: &Args,
    folder: Option<&Path>,
    judged: &[Verdict],
    runs: &Runs<'_>,
    panels: Option<&[figure9::Panel]>,
) -> Result<(), Failure> {
    let Runs { saturated, on_loop } = *runs;
    let all = [judged, &numbers::others(saturated)].concat();
    // Only a run without a page has no panels.
    let panels = panels.unwrap_or_default();
    if let Some(folder) = folder {
        for name in ["figure9.svg", "figure9.json"] {
            write_figure(args, &folder.join(name), panels)?;
        }
    }
    if let Some(path) = &args.figure9 {
        write_figure(args, path, panels)?;
    }
    args.results.write(folder, &all, &all, || page(args, judged, runs, panels))?;
    if args.results.outputs.is_stdout() {
        return Ok(());
    }
    let width = output::width();
    let mut text = format!(
        "Zhu and others, SANSim (2004), section 3: an initiator and a RAM disk on an arbitrated loop; section 4: core/edge fabric \
         with failing inter-switch links\n{UNIT} of 1000 × 1024 bytes, per server unless stated otherwise\n\n{}\n{}\
         The same cases of section 4 with other models\n\n{}\n{}\n",
        verdict::table(judged, width),
        validation::tables(on_loop, width),
        numbers::model_table(saturated, width),
        verdict::summary(judged),
    );
    if let Some(folder) = folder {
        text.push_str(&format!("Report: {}\n", folder.join("report.html").display()));
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

fn page(args: &Args, judged: &[Verdict], runs: &Runs<'_>, panels: &[figure9::Panel]) -> String {
    let figure = format!("<div class=\"drawing figure\">{}</div>\n", figure9::svg(panels, UNIT_IN_WORDS));
    let mut sections = vec![("numbers", "Numbers of the paper", verdict::html_table("numbers", judged))];
    sections.extend(validation::sections(runs.on_loop));
    sections.extend([
        ("figure9", "Figure 9: throughput against offered load", figure),
        ("models", "The same cases of section 4 with other models", numbers::model_html(runs.saturated)),
        ("command", "Command", format!("<pre class=\"command\">{}</pre>\n", args.command())),
    ]);
    plain_page(
        "SANSim's loop and core/edge fabric, reproduced",
        "Zhu and others, SANSim (2004), section 3: an initiator and a RAM disk on an arbitrated loop. Section 4: eight servers, eight \
         storage devices, four edge switches, one core, two inter-switch links per edge; none, one or two of them fail.",
        &[verdict::summary(judged), format!("{UNIT_IN_WORDS}, per server unless stated otherwise")],
        sections,
    )
}

impl Args {
    fn command(&self) -> String {
        format!(
            "sanloom reproduce sansim --duration {} --seed {}",
            sanloom_console::report::html::escape(&output::shell_word(&self.duration)),
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
