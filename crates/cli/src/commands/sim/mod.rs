//! `sanloom sim`: one lab, simulated frame by frame.

mod recorder;
mod replications;

use crate::exit::Failure;
use crate::input::{self, LabFile, Threads};
use crate::output::{self, shell_word};
use crate::report::{self, csv, file, folder, json};
use crate::run::{self, View};
use recorder::Recorder;
use sanloom_api::results::{ExpectationResult, Metrics, Results};
use sanloom_core::config::{Lab, Picos};
use sanloom_lab::{LoadedLab, Override, topology};
use sanloom_sim::capture::Window;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `sanloom sim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Set a value of the lab from outside, for example `workload.reads.depth=8`
    #[arg(long, value_name = "KEY=VALUE", value_parser = input::parse_set)]
    set: Vec<Override>,
    /// Seed of every random number [default: `run.seed` of the lab]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Simulated time with its unit, warm-up included, for example 500ms [default: `run.duration` of the lab]
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Write the results as JSON into this file; `-` for standard output, which then has no table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the time series into this file: CSV, or JSON Lines if its name ends in .jsonl
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Folder for report.html, results.json, series.csv, series.jsonl, topology.svg and lab.toml [default: the lab's
    /// name with .sanloom-report, in this folder]
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write no report folder
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
    /// Write the frames of the links of `--capture` into this pcapng file, with real bytes and CRC; `-` for standard output
    #[arg(long, value_name = "FILE", requires = "capture")]
    pcap: Option<PathBuf>,
    /// Links to capture by name, or `all`; of a busy link the file grows by all the bytes that it carries
    #[arg(long, value_name = "LINK,…", value_delimiter = ',', requires = "pcap")]
    capture: Vec<String>,
    /// Capture only frames that begin so long after the workloads began, or later, for example 500ms [default: from the
    /// first login on]
    #[arg(long, value_name = "TIME", requires = "pcap", value_parser = sanloom_lab::parse_time)]
    capture_from: Option<Picos>,
    /// Capture for so long after `--capture-from`; without that, from the first login until so long after the workloads
    /// began
    #[arg(long, value_name = "TIME", requires = "pcap", value_parser = sanloom_lab::parse_time)]
    capture_for: Option<Picos>,
    /// Write every frame and primitive signal of this link, with credits, as a text timeline
    #[arg(long, value_name = "LINK")]
    trace: Option<String>,
    /// File for the timeline; `-` for standard output [default: trace.txt in the report folder, or standard output if
    /// there is none]
    #[arg(long, value_name = "FILE", requires = "trace")]
    trace_file: Option<PathBuf>,
    /// Run the lab with this many seeds, all of which follow from the first, and give means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: u32,
    #[command(flatten)]
    threads: Threads,
    /// Show neither progress nor tables; failed expectations are still said
    #[arg(long, short)]
    quiet: bool,
}

/// Simulates a lab.
///
/// # Errors
/// When the lab is wrong, an expectation fails, or something cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&args.outputs())?;
    let loaded = input::load(&args.file, &args.overrides())?;
    let lab = Arc::new(loaded.lab.clone());
    let report_folder = args.report_folder(&lab);
    if let Some(folder) = &report_folder {
        // Better now than after a long run.
        file::make_folder(folder)?;
    }
    let mut recorder = args.recorder(&lab, report_folder.as_deref())?;
    let view = View { bar: !args.quiet, tap: Some((recorder.links(), &mut recorder)) };
    let finished = run::run(&lab, view);
    let mut results = finished.results;
    if !recorder.finish()? {
        return Ok(());
    }
    if args.replications > 1 && !results.lab.interrupted {
        results.replications = replications::run(&lab, args.replications, args.threads, args.quiet);
    }
    args.describe(&mut results, &loaded);
    judge(&lab, &mut results);
    args.write(&lab, &results, report_folder.as_deref())?;
    let finished = results.replications.as_ref().map_or(1, |replications| replications.seeds.len());
    match finished < args.replications as usize {
        true => Err(Failure::interrupted(format_args!("{finished} of {} replications finished", args.replications))),
        false => Ok(()),
    }
}

/// Holds the results against the expectations of the lab. A run that was cut short is not judged: its bounds were meant
/// for a whole one.
pub fn judge(lab: &Lab, results: &mut Results) {
    results.expectations.clear();
    if results.lab.interrupted || lab.expectations.is_empty() {
        return;
    }
    let metrics = Metrics::new(results);
    results.expectations =
        lab.expectations.iter().map(|e| ExpectationResult::check(&metrics, &e.metric, e.min, e.max)).collect();
}

impl Args {
    fn overrides(&self) -> Vec<Override> {
        let set = |key: &str, value: String| Override { key: key.to_owned(), value };
        let seed = self.seed.map(|seed| set("run.seed", seed.to_string()));
        let duration = (self.duration.as_ref()).map(|duration| set("run.duration", duration.clone()));
        (self.set.iter().cloned()).chain(seed).chain(duration).collect()
    }

    fn report_folder(&self, lab: &Lab) -> Option<PathBuf> {
        if self.no_report {
            return None;
        }
        let default = || PathBuf::from(format!("{}.sanloom-report", file_name(&lab.name)));
        Some(self.report.clone().unwrap_or_else(default))
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
            for link in recorder::links(lab, std::slice::from_ref(name))?.into_iter().take(1) {
                recorder.trace(lab, link, &path)?;
            }
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

    /// What the simulation cannot know: program, lab file, and the command that gives the same numbers.
    fn describe(&self, results: &mut Results, loaded: &LoadedLab) {
        results.lab.sanloom_version = env!("CARGO_PKG_VERSION").into();
        results.lab.source = Some(loaded.text.clone());
        let mut command = format!("sanloom sim {}", shell_word(&self.file.path.display().to_string()));
        for set in &self.set {
            command.push_str(&format!(" --set {}", shell_word(&format!("{}={}", set.key, set.value))));
        }
        if let Some(seed) = self.seed {
            command.push_str(&format!(" --seed {seed}"));
        }
        if let Some(duration) = &self.duration {
            command.push_str(&format!(" --duration {}", shell_word(duration)));
        }
        if self.replications > 1 {
            command.push_str(&format!(" --replications {}", self.replications));
        }
        results.lab.command = Some(command);
    }

    /// Writes whatever was asked for; the verdict comes last, so that a failed expectation loses no file.
    fn write(&self, lab: &Lab, results: &Results, report_folder: Option<&Path>) -> Result<(), Failure> {
        let report =
            report_folder.map(|folder| folder::write(folder, results, &coloured_topology(lab, results))).transpose()?;
        if let Some(path) = &self.series {
            output::written(file::write(path, |out| series(path, out, results)))?;
        }
        if let Some(path) = &self.json {
            output::written(json::write(path, results))?;
        }
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
        if results.expectations.iter().all(|verdict| verdict.ok) {
            return Ok(());
        }
        if !table {
            let mut text = String::new();
            report::terminal::expectations(&mut text, results, output::width());
            output::note(text.trim_matches('\n'));
        }
        Err(Failure::expectation())
    }

    /// The outputs that may be standard output.
    fn outputs(&self) -> [(&'static str, Option<&Path>); 4] {
        let trace = match (&self.trace, &self.trace_file) {
            (Some(_), None) if self.no_report => Some(Path::new("-")),
            (_, file) => file.as_deref(),
        };
        [
            ("--json", self.json.as_deref()),
            ("--series", self.series.as_deref()),
            ("--pcap", self.pcap.as_deref()),
            ("--trace-file", trace),
        ]
    }

    fn uses_stdout(&self) -> bool {
        self.outputs().iter().any(|(_, path)| *path == Some(Path::new("-")))
    }
}

fn series(path: &Path, out: &mut dyn Write, results: &Results) -> io::Result<()> {
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        csv::write_json_lines(out, results)
    } else {
        csv::write_csv(out, results)
    }
}

/// The drawing of the topology, its links coloured by the utilisation of their busier direction.
fn coloured_topology(lab: &Lab, results: &Results) -> String {
    let utilisation = |link: usize| results.links.get(link).map_or(0.0, |link| link.utilisation());
    topology::svg(lab, Some(&utilisation))
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
