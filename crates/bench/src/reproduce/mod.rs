//! `sanloom reproduce`: numbers of papers and of formulas beside ours.

mod disks;
mod gupfs;
mod iscsi_switch;
mod npiv;
mod open_fcoe;
mod sansim;
mod theory;
mod today;
mod verdict;

use clap::Subcommand;
use sanloom_console::exit::Failure;
use sanloom_console::input::Threads;
use sanloom_console::output;
use sanloom_console::outputs::Outputs;
use sanloom_console::report::html::{escape, plain_page};
use sanloom_console::report::rows::Rows;
use sanloom_console::report::terminal::grid::wrap;
use sanloom_console::report::{file, json};
use serde::Serialize;
use std::path::{Path, PathBuf};
use verdict::Verdict;

/// Options of `sanloom reproduce`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A row is an input (the paper states it), a fit (a parameter was chosen to reach it), a prediction, or \
                  derived from another row. Only predictions are judged. The exit code is 1 if a prediction misses that is \
                  not listed as a known miss, or if a known miss is hit\n\nExample:\n  sanloom reproduce sansim"
)]
pub struct Args {
    /// Paper or theory to reproduce.
    #[command(subcommand)]
    pub paper: Paper,
}

/// The papers, and the theory.
#[derive(Subcommand, Debug)]
pub enum Paper {
    /// SANSim's core/edge fabric with failing inter-switch links (the SANSim paper, section 4), and
    /// its Figure 9
    #[command(after_help = "Example:\n  sanloom reproduce sansim")]
    Sansim(sansim::Args),
    /// Virtual ports at a switch that compares addresses for hard zoning (the NPIV paper, section
    /// V), and Figures 8 to 11
    #[command(after_help = "Example:\n  sanloom reproduce npiv")]
    Npiv(npiv::Args),
    /// The iSCSI virtualization switch, measured on this machine: conventional path against
    /// forwarding path (the iSCSI switch paper, Figures 9 to 11)
    #[command(after_help = "Example:\n  sanloom reproduce iscsi-switch")]
    IscsiSwitch(iscsi_switch::Args),
    /// An array of 150 disks over two paths of 8GFC (the Open-FCoE slides, report of EMC and Yahoo)
    #[command(after_help = "Example:\n  sanloom reproduce open-fcoe --no-report")]
    OpenFcoe(SeededArgs),
    /// Fibre Channel, iSCSI, SRP and IPoIB, with switches of three makers and gateways (the GUPFS
    /// report)
    #[command(after_help = "Example:\n  sanloom reproduce gupfs --no-report")]
    Gupfs(SeededArgs),
    /// The comparison of the GUPFS report with the rates of today: 32GFC, iSCSI over 25 and 100
    /// GbE, FCoE over 100 GbE, and SRP over NDR
    #[command(after_help = "Example:\n  sanloom reproduce today --no-report")]
    Today(SeededArgs),
    /// Measured response times of three disks beside those of the disk model, with the demerit
    /// figure and both distributions, and queues of random reads
    #[command(
        after_help = "A TOML file of parameters has the keys that --print shows; --disk and --trace compare another \
                      disk\n\nExample:\n  sanloom reproduce disks --print cheetah-9lp"
    )]
    Disks(disks::Args),
    /// Numbers that have a formula: line rates, latencies, credits over distance, queues, closed
    /// networks, confidence intervals, FIFO inputs, shares of a line, hashes, caches, flash, RAID,
    /// timers
    #[command(
        after_help = "A number with a confidence interval is undecided if its interval reaches over an end of the \
                      tolerance. The exit code is 1 if a number is out of its tolerance\n\nExample:\n  sanloom reproduce \
                      theory --quick"
    )]
    Theory(theory::Args),
}

/// Options of the results, the same for each paper.
#[derive(clap::Args, Debug)]
struct ResultArgs {
    #[command(flatten)]
    outputs: Outputs,
    /// Write no report folder; without this option and `--out`, it is PAPER.sanloom-report
    #[arg(long, conflicts_with = "out")]
    no_report: bool,
}

/// Options of papers whose runs have a seed.
#[derive(clap::Args, Debug)]
pub struct SeededArgs {
    #[command(flatten)]
    results: ResultArgs,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
}

impl ResultArgs {
    /// Checks the options and creates the folder of the report, which is returned unless there is
    /// none.
    fn prepare(&self, paper: &str) -> Result<Option<PathBuf>, Failure> {
        self.outputs.check(&[])?;
        let named = self.outputs.out.out.clone().unwrap_or_else(|| format!("{paper}.sanloom-report").into());
        let folder = (!self.no_report).then_some(named);
        if let Some(folder) = &folder {
            output::written(file::make_folder(folder))?;
        }
        Ok(folder)
    }

    /// Writes the results into the folder, and in the forms that the options request. The rows are
    /// those of the CSV.
    fn write(
        &self,
        folder: Option<&Path>,
        value: &impl Serialize,
        rows: &impl Serialize,
        page: impl Fn() -> String,
    ) -> Result<(), Failure> {
        if let Some(folder) = folder {
            let numbers = |extension| folder.join(format!("numbers.{extension}"));
            output::written(file::write(&numbers("json"), |out| json::write_value(out, value)))?;
            output::written(file::write(&numbers("csv"), |out| Rows::of(rows)?.write_csv(out)))?;
            output::written(file::write_text(&folder.join("report.html"), &page()))?;
        }
        self.outputs.write_options(value, rows, &page)
    }

    /// Writes verdicts as [`ResultArgs::write`] does, prints their table, and judges them. Each of
    /// the further sections of the page has a name, a title and its content.
    fn publish(
        &self,
        folder: Option<&Path>,
        about: &About<'_>,
        verdicts: &[Verdict],
        more: &[(&'static str, &'static str, String)],
    ) -> Result<(), Failure> {
        let summary = verdict::summary(verdicts);
        let page = || {
            let command = format!("<pre class=\"command\">{}</pre>\n", escape(&about.command));
            let mut sections = vec![("numbers", "Numbers of the paper", verdict::html_table("numbers", verdicts))];
            sections.extend(more.iter().cloned());
            sections.push(("command", "Command", command));
            let head: Vec<String> = std::iter::once(summary.clone()).chain(about.note.map(str::to_owned)).collect();
            plain_page(about.heading, about.title, &head, sections)
        };
        self.write(folder, &verdicts, &verdicts, page)?;
        if !self.outputs.is_stdout() {
            let note = about.note.map_or(String::new(), |note| wrap(note, output::width(), 0));
            let table = verdict::table(verdicts, output::width());
            let mut text = format!("{}\n\n{table}\n{note}{summary}\n", about.title);
            if let Some(folder) = folder {
                text.push_str(&format!("Report: {}\n", folder.join("report.html").display()));
            }
            output::print(&text)?;
        }
        verdict::outcome(verdicts)
    }
}

/// Text around the verdicts on the numbers of a paper.
struct About<'a> {
    /// Heading of the page.
    heading: &'a str,
    /// Title of the table.
    title: &'a str,
    /// Remark for the reader.
    note: Option<&'a str>,
    /// Command that repeats the runs.
    command: String,
}

/// Reproduces a paper, or the theory.
///
/// # Errors
/// If a prediction misses unexpectedly, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.paper {
        Paper::Sansim(args) => sansim::run(args),
        Paper::Npiv(args) => npiv::run(args),
        Paper::IscsiSwitch(args) => iscsi_switch::run(args),
        Paper::OpenFcoe(args) => open_fcoe::run(args),
        Paper::Gupfs(args) => gupfs::run(args),
        Paper::Today(args) => today::run(args),
        Paper::Disks(args) => disks::run(args),
        Paper::Theory(args) => theory::run(args),
    }
}
