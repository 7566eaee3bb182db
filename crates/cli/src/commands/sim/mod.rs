//! `sanloom sim`: one lab, simulated frame by frame.

mod recorder;
mod replications;

use recorder::Recorder;
use sanloom_api::results::Results;
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile, Threads};
use sanloom_console::interrupt;
use sanloom_console::output;
use sanloom_console::outputs::{Outputs, Sets, is_stdout};
#[cfg(feature = "surface")]
use sanloom_console::paced::{Clients, Pace, Pacer};
use sanloom_console::quantity;
use sanloom_console::remedy;
use sanloom_console::report::{self, csv, file, folder};
use sanloom_console::run::{self, View};
use sanloom_console::simulation::{Simulation, coloured_topology, redundancy};
use sanloom_console::threads;
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_lab::{LoadedLab, topology};
#[cfg(feature = "surface")]
use sanloom_live::control::Control;
use sanloom_sim::capture::Window;
#[cfg(feature = "surface")]
use sanloom_sim::run::Finished;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `sanloom sim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    #[command(flatten)]
    sets: Sets,
    /// Seed of every random number [default: `run.seed` of the lab]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Simulated time with its unit, warm-up included, for example 500ms [default: `run.duration`
    /// of the lab]
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    #[command(flatten)]
    outputs: Outputs,
    /// Write no folder. Without it and without --out, the folder is NAME.sanloom-report in the
    /// current folder, where NAME is the name of the lab
    #[arg(long, conflicts_with = "out")]
    no_report: bool,
    /// Write the frames of the links of `--capture` into this pcapng file, with real bytes and CRC;
    /// `-` for standard output
    #[arg(long, value_name = "FILE", requires = "capture")]
    pcap: Option<PathBuf>,
    /// Links to capture by name, or `all`; the file contains every byte that the links carry
    #[arg(long, value_name = "LINK,…", value_delimiter = ',', requires = "pcap")]
    capture: Vec<String>,
    /// Start of the capture, as the time since the workloads began, for example 500ms [default: at
    /// the first login]
    #[arg(long, value_name = "TIME", requires = "pcap", value_parser = sanloom_lab::parse_time)]
    capture_from: Option<Picos>,
    /// Length of the capture from `--capture-from` on. Without that option, the capture starts at
    /// the first login and ends this long after the workloads began
    #[arg(long, value_name = "TIME", requires = "pcap", value_parser = sanloom_lab::parse_time)]
    capture_for: Option<Picos>,
    /// Write every frame, packet and signal of this link of any plane as a text timeline, with
    /// credits or pauses, and losses
    #[arg(long, value_name = "LINK")]
    trace: Option<String>,
    /// File for the timeline; `-` for standard output [default: trace.txt in the report folder, or
    /// standard output if there is none]
    #[arg(long, value_name = "FILE", requires = "trace")]
    trace_file: Option<PathBuf>,
    /// Run the lab with this many seeds, all derived from the first, and give means with 95 %
    /// confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::count::<u32>(1..=100_000))]
    replications: u32,
    /// Number of cores for one run of a large lab, and for the replications and remedies that run
    /// at the same time; results do not depend on it [default: one core for a run, and all cores
    /// for replications and remedies]
    #[arg(long, value_name = "N", value_parser = quantity::count::<usize>(1..=255))]
    threads: Option<usize>,
    /// Do not try remedies for findings
    #[arg(long)]
    no_remedies: bool,
    /// Show neither progress nor tables; failed expectations are still reported
    #[arg(long, short)]
    quiet: bool,
    #[cfg(feature = "surface")]
    #[command(flatten)]
    web: crate::web::WebArgs,
    /// With --web: virtual seconds per second, for example 0.1 or 10, or `max`. The page shows the
    /// run while it goes on, and then its results [default: the page shows the results]
    #[cfg(feature = "surface")]
    #[arg(long, value_name = "RATIO", requires = "web", conflicts_with = "threads")]
    pace: Option<Pace>,
}

/// Simulates a lab.
///
/// # Errors
/// When the lab is invalid, an expectation fails, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.check(&args.recordings())?;
    let simulation = args.simulation();
    let loaded = input::load(&args.file, &simulation.overrides())?;
    let lab = Arc::new(loaded.lab.clone());
    let report_folder = args.report_folder(&lab);
    if let Some(folder) = &report_folder {
        // Fail before the simulation, which may take long.
        file::make_folder(folder)?;
    }
    let mut recorder = args.recorder(&lab, report_folder.as_deref())?;
    let at_once = Threads { threads: args.threads.and_then(NonZeroUsize::new) };
    #[cfg(feature = "surface")]
    let (page, finished) = match args.pace {
        Some(pace) => paced(args, pace, &loaded, &lab, &mut recorder)?,
        None => (None, run::run(&lab, view(args, &mut recorder))),
    };
    #[cfg(not(feature = "surface"))]
    let finished = run::run(&lab, view(args, &mut recorder));
    if !args.quiet {
        let text = threads::undivided(&finished.threads).unwrap_or_default() + &threads::text(&finished.threads);
        text.lines().for_each(output::note);
    }
    let mut results = finished.results;
    if !recorder.finish()? {
        return Ok(());
    }
    if args.replications > 1 && !results.lab.interrupted {
        results.replications = replications::run(&lab, args.replications, at_once, args.quiet);
    }
    simulation.describe(&mut results, &loaded.text);
    if !args.no_remedies {
        let (label, sets) = (args.file.label(), simulation.overrides());
        let source = remedy::Source { label: &label, text: &loaded.text, sets: &sets };
        remedy::try_all(&source, &lab, &mut results, at_once, &interrupt::requested)?;
    }
    sanloom_console::run::judge(&lab, &mut results);
    let written = args.write(&loaded, &results, report_folder.as_deref());
    #[cfg(feature = "surface")]
    if args.web.is_requested() && !results.lab.interrupted {
        // The verdict follows when the page is closed.
        let documents = vec![super::view::document(&results)?];
        match &page {
            Some(page) => page.serve_results(documents),
            None => {
                let drawing = crate::web::Drawing::new(lab.clone(), loaded.isolated.clone());
                crate::web::serve_results(&args.web, drawing, documents)?;
            }
        }
    }
    written?;
    let finished = results.replications.as_ref().map_or(1, |replications| replications.seeds.len());
    match finished < args.replications as usize {
        true => Err(Failure::interrupted(format_args!("{finished} of {} replications finished", args.replications))),
        false => Ok(()),
    }
}

fn view<'r>(args: &Args, recorder: &'r mut Recorder) -> View<'r> {
    let (bar, threads) = (!args.quiet, args.threads.unwrap_or(1));
    View { bar, tap: Some((recorder.watch(), recorder)), threads, ..View::default() }
}

/// Runs the lab at a pace, while a page shows it. Returns the page, to show the results.
#[cfg(feature = "surface")]
fn paced(
    args: &Args,
    pace: Pace,
    loaded: &LoadedLab,
    lab: &Arc<Lab>,
    recorder: &mut Recorder,
) -> Result<(Option<crate::web::Page>, Finished), Failure> {
    let control = Control::without_socket().map_err(Failure::environment)?;
    let drawing = crate::web::Drawing::new(lab.clone(), loaded.isolated.clone());
    let page = crate::web::serve_run(&args.web, drawing, &control)?;
    let mut pacer = Pacer::new(&control, pace, Clients::Watch, || {});
    let mut limit = |world: &mut _| pacer.limit_ps(world);
    let finished = run::run(lab, View { limit: Some(&mut limit), ..view(args, recorder) });
    Ok((page, finished))
}

impl Args {
    /// The simulation that the arguments request.
    fn simulation(&self) -> Simulation {
        Simulation {
            path: self.file.path.display().to_string(),
            sets: self.sets.clone(),
            seed: self.seed,
            duration: self.duration.clone(),
            replications: self.replications,
        }
    }

    fn report_folder(&self, lab: &Lab) -> Option<PathBuf> {
        if self.no_report {
            return None;
        }
        let default = || PathBuf::from(format!("{}.sanloom-report", file_name(&lab.name)));
        Some(self.outputs.out.out.clone().unwrap_or_else(default))
    }

    fn recorder(&self, lab: &Lab, report_folder: Option<&Path>) -> Result<Recorder, Failure> {
        let mut recorder = Recorder::default();
        if let Some(path) = &self.pcap {
            let from_ps = self.capture_from.map(|from| from.0);
            let until_ps = self.capture_for.map(|length| from_ps.unwrap_or(0).saturating_add(length.0));
            recorder.capture(lab, &recorder::links(lab, &self.capture)?, Window { from_ps, until_ps }, path)?;
        }
        if let Some(name) = &self.trace {
            let path = self.trace_path(report_folder);
            recorder.trace(lab, recorder::link(lab, name)?, &path)?;
        }
        Ok(recorder)
    }

    fn trace_path(&self, report_folder: Option<&Path>) -> PathBuf {
        match (&self.trace_file, report_folder) {
            (Some(path), _) => path.clone(),
            (None, Some(folder)) => folder.join("trace.txt"),
            (None, None) => "-".into(),
        }
    }

    /// Writes the requested outputs. The verdict comes last, so that a failed expectation loses no
    /// file.
    fn write(&self, loaded: &LoadedLab, results: &Results, report_folder: Option<&Path>) -> Result<(), Failure> {
        let drawing = || coloured_topology(&loaded.lab, &loaded.isolated, results);
        let graph = || topology::graph(&loaded.lab, &loaded.isolated);
        let redundancy = || redundancy(loaded);
        let report = report_folder
            .map(|folder| folder::write(folder, results, &drawing(), Some(&graph()), &redundancy()))
            .transpose()?;
        let Outputs { json, html, csv, .. } = &self.outputs;
        csv.write(|out| match csv.is_json_lines() {
            true => csv::write_json_lines(out, results),
            false => csv::write_csv(out, results),
        })?;
        html.write(|| report::html::report(results, Some(&graph()), &redundancy()))?;
        json.write(results)?;
        let table = !self.quiet && !self.uses_stdout();
        if table {
            let mut text = report::terminal::render(results, output::width());
            if let Some(report) = report {
                text.push_str(&format!("Report: {}\n", report.display()));
            }
            output::print(&text)?;
        }
        if results.lab.interrupted {
            return Err(Failure::interrupted("the results cover what was simulated; expectations were not judged"));
        }
        if let Some(error) = results.streams.iter().find_map(|stream| stream.trace.as_ref()?.error.as_deref()) {
            return Err(Failure::usage(format_args!("the results end with the trace: {error}")));
        }
        let lossy: Vec<_> = results.ethernet_switches.iter().filter(|switch| switch.headroom_drops > 0).collect();
        if let [first, ..] = lossy[..] {
            let frames: u64 = lossy.iter().map(|switch| switch.headroom_drops).sum();
            output::note(&format!(
                "`{}` lost {} of lossless priorities, because its headroom is too small: leave `headroom` out, or set \
                 it to the bytes that `sanloom check` computes",
                first.name,
                sanloom_api::words::plural(frames, "frame")
            ));
        } else if results.expectations.iter().all(|verdict| verdict.ok) {
            return Ok(());
        }
        if !table {
            let mut text = String::new();
            report::terminal::expectations(&mut text, results, output::width());
            output::note(text.trim_matches('\n'));
        }
        Err(Failure::expectation())
    }

    /// The verb's own outputs that may be standard output.
    fn recordings(&self) -> [(&'static str, Option<&Path>); 2] {
        let trace = match (&self.trace, &self.trace_file) {
            (Some(_), None) if self.no_report => Some(Path::new("-")),
            (_, file) => file.as_deref(),
        };
        [("--pcap", self.pcap.as_deref()), ("--trace-file", trace)]
    }

    fn uses_stdout(&self) -> bool {
        self.outputs.is_stdout() || self.recordings().iter().any(|(_, path)| is_stdout(*path))
    }
}

/// The name of a lab as the name of a folder.
fn file_name(name: &str) -> String {
    let safe: String = name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    match safe.trim_start_matches('.') {
        "" => "lab".into(),
        rest => rest.chars().take(100).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_cannot_choose_a_folder_elsewhere() {
        assert_eq!(file_name("core-edge"), "core-edge");
        assert_eq!(file_name("../../etc/x"), "-..-etc-x");
        assert_eq!(file_name("..."), "lab");
    }
}
