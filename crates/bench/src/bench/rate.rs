//! `sanloom bench sim`: frame-hops per second of processor time, and memory, beside the bare credit
//! program on request.

use super::bound::{self, Bound};
use super::plane::{self, Plane};
use super::statistics::{Estimate, median};
use super::work::{Enforced, Fabric, Nodes};
use sanloom_api::results::Engine;
use sanloom_bare::Program;
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::{Stopwatch, rss_bytes, thread_cpu};
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_console::run::measured_threads;
use sanloom_console::threads;
use sanloom_fc::san::Lab;
use sanloom_sim::parallel::Report;
use sanloom_sim::run::{Control, Observer, Options, Progress, simulate};
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Options of `sanloom bench sim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Number of nodes, half of them hosts and half storage devices
    #[arg(long, value_enum, default_value = "16")]
    pub(super) nodes: Nodes,
    /// Plane; Ethernet and InfiniBand have one fabric, and always alternate with the bare credit
    /// program; Ethernet with 16 nodes also alternates with ns-3 and its TCP, if it is installed
    #[arg(long, value_enum, default_value = "fc")]
    pub(super) plane: Plane,
    /// Fabric
    #[arg(long, value_enum, default_value = "sansim")]
    fabric: Fabric,
    /// Alternate with the bare credit program: lines, credits and arbiters of the same cabling and
    /// the same reads, without protocols, logins, faults and results
    #[arg(long)]
    bare: bool,
    /// Let every host log in to every device, instead of to 16 of them
    #[arg(long)]
    unzoned: bool,
    /// Give each host a zone with its devices, even with all devices, and enforce the zones in this
    /// way
    #[arg(long, value_enum, conflicts_with = "unzoned")]
    zoning: Option<Enforced>,
    /// Simulated time of a run with its unit [default: 3s with 16 nodes, less with more]
    #[arg(long, value_name = "TIME")]
    pub(super) duration: Option<String>,
    /// Runs; the fastest counts, and the memory is that of the first [default: 3; 6 with another
    /// plane than `fc`, because an interval of 95 % requires six]
    #[arg(long, value_name = "N", value_parser = quantity::count::<u32>(1..=1000))]
    pub(super) runs: Option<u32>,
    /// Compiler for the program of ns-3
    #[arg(long, value_name = "PROGRAM", default_value = "g++")]
    pub(super) cxx: String,
    /// Number of threads of a run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::count::<usize>(1..=255))]
    threads: usize,
    #[command(flatten)]
    pub(super) outputs: Outputs,
    /// End with exit code 1 if a bound is missed
    #[arg(long)]
    pub(super) judge: bool,
}

/// Runs without `--runs`.
const RUNS: u32 = 3;

/// Results of all runs.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Rate {
    /// Number of nodes.
    pub nodes: u32,
    /// Name of the fabric.
    pub fabric: &'static str,
    /// True if zones limit each host to 16 devices.
    pub zoned: bool,
    /// Simulated time of a run, in seconds.
    pub duration_s: f64,
    /// Completed requests of a run.
    pub ios: u64,
    /// Frame-hops of a run, without logins.
    pub frame_hops: u64,
    /// Events of a run, without logins.
    pub events: u64,
    /// Processor time of the run loop of the fastest run, in seconds.
    pub cpu_s: f64,
    /// Real time of the same, in seconds.
    pub wall_s: f64,
    /// Frame-hops per second of processor time of the fastest run.
    pub frame_hops_per_cpu_s: f64,
    /// The same for each run.
    pub runs: Vec<f64>,
    /// Use of the threads by the fastest run.
    pub threads: String,
    /// Resident memory of the process at the end of the first run loop, in bytes.
    pub rss_bytes: u64,
    /// Pairs of host port and storage port that are logged in.
    pub login_pairs: u64,
    /// Growth of the resident memory while the ports log in, per pair.
    pub bytes_per_login_pair: f64,
    /// Processor time of the logins of the first run, in seconds.
    pub login_s: f64,
    /// Comparison with the bare credit program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bare: Option<Bare>,
}

/// Comparison with the bare credit program, run by run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Bare {
    /// Frame-hops of a run of the program.
    pub frame_hops: u64,
    /// Events of the same.
    pub events: u64,
    /// Frame-hops per second of processor time of the program, for each run.
    pub runs: Vec<f64>,
    /// Rate of the simulator to that of the program: median of the paired runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
}

/// Measures the simulator, and prints the results.
///
/// # Errors
/// If an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.plane != Plane::Fc {
        if args.fabric != Fabric::Sansim || args.bare || args.unzoned || args.zoning.is_some() || args.threads > 1 {
            let options = "--fabric, --bare, --unzoned, --zoning and --threads";
            return Err(Failure::usage(format!("{options} are for the plane `fc`; leave them out with another plane")));
        }
        return plane::run(args);
    }
    args.outputs.prepare(&[])?;
    let rate = measure(&Work::of(args), args.runs.unwrap_or(RUNS))?;
    let bounds = rate.bounds();
    args.outputs.write_or_print("sim", &rate, || text(&rate) + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

/// Work to measure.
pub struct Work<'a> {
    pub nodes: Nodes,
    pub fabric: Fabric,
    pub unzoned: bool,
    pub zoning: Option<Enforced>,
    pub duration: Option<&'a str>,
    pub bare: bool,
    /// Number of threads of a run.
    pub threads: usize,
}

impl Work<'_> {
    fn of(args: &Args) -> Work<'_> {
        let &Args { nodes, fabric, unzoned, zoning, ref duration, bare, threads, .. } = args;
        Work { nodes, fabric, unzoned, zoning, duration: duration.as_deref(), bare, threads }
    }

    /// Returns the work of the smallest fabric.
    pub fn smallest() -> Work<'static> {
        let (nodes, fabric) = (Nodes::N16, Fabric::Sansim);
        Work { nodes, fabric, unzoned: false, zoning: None, duration: None, bare: false, threads: 1 }
    }
}

/// Simulates the fabric several times.
///
/// # Errors
/// If the duration is invalid, or Ctrl-C was pressed.
pub fn measure(work: &Work<'_>, runs: u32) -> Result<Rate, Failure> {
    let &Work { nodes, fabric, unzoned, zoning, duration, bare, .. } = work;
    let text = fabric.lab(nodes, unzoned, zoning, duration.unwrap_or(nodes.duration(fabric)));
    let lab = Arc::new(sanloom_lab::load("bench", &text, &[])?.lab);
    drop(text);
    let mut rate = Rate {
        nodes: nodes.shape(fabric).nodes(),
        fabric: if fabric == Fabric::Voq { "voq" } else { "sansim" },
        zoned: !unzoned,
        duration_s: lab.run.duration.as_secs_f64(),
        bare: bare.then(Bare::default),
        ..Rate::default()
    };
    for number in 0..runs {
        if let Some(bare) = rate.bare.as_mut().filter(|_| number % 2 == 1) {
            bare.once(work, lab.run.duration.0);
        }
        let (engine, first, report) = once(&lab, work.threads)?;
        if let Some(bare) = rate.bare.as_mut().filter(|_| number % 2 == 0) {
            bare.once(work, lab.run.duration.0);
        }
        if number == 0 {
            rate.rss_bytes = engine.rss_bytes;
            rate.ios = first.ios;
            rate.login_pairs = first.pairs;
            rate.login_s = first.login_s;
            rate.bytes_per_login_pair = first.login_bytes as f64 / first.pairs.max(1) as f64;
        }
        rate.frame_hops = engine.frame_hops;
        rate.events = engine.events;
        rate.runs.push(engine.frame_hops_per_cpu_s);
        if engine.frame_hops_per_cpu_s > rate.frame_hops_per_cpu_s {
            rate.frame_hops_per_cpu_s = engine.frame_hops_per_cpu_s;
            (rate.cpu_s, rate.wall_s) = (engine.cpu_s, engine.wall_s);
            rate.threads = threads::text(&report);
        }
    }
    if let Some(bare) = &mut rate.bare {
        bare.ratio = Estimate::of_ratios(&rate.runs, &bare.runs);
    }
    Ok(rate)
}

impl Bare {
    /// Runs the program once.
    fn once(&mut self, work: &Work<'_>, duration_ps: u64) {
        let mut program = Program::new(work.nodes.shape(work.fabric), work.fabric.rules());
        let start = thread_cpu();
        let done = program.run(duration_ps);
        let cpu_s = (thread_cpu() - start).as_secs_f64();
        (self.frame_hops, self.events) = (done.frame_hops, done.events);
        self.runs.push(done.frame_hops as f64 / cpu_s.max(1e-9));
    }
}

const MIB: f64 = 1024.0 * 1024.0;

impl Rate {
    fn bounds(&self) -> Vec<Bound> {
        let (rate, memory) = (self.frame_hops_per_cpu_s / 1e6, self.rss_bytes as f64 / MIB);
        let hops = |wanted| Bound::at_least("frame-hops per CPU second", rate, wanted, "M");
        let resident = |wanted| Bound::at_most("resident", memory, wanted, "MiB");
        if self.fabric != "sansim" {
            return Vec::new();
        }
        match (self.nodes, self.zoned) {
            (16, _) => vec![hops(8.0)],
            (1024, true) => vec![hops(6.0), resident(64.0)],
            (1024, false) => vec![resident(160.0)],
            _ => Vec::new(),
        }
    }
}

struct Sums {
    ios: u64,
    pairs: u64,
    login_bytes: u64,
    login_s: f64,
}

fn once(lab: &Arc<Lab>, threads: usize) -> Result<(Engine, Sums, Report), Failure> {
    let mut gauge = Gauge::default();
    let options = Options { threads: measured_threads(threads), ..Options::default() };
    let finished = simulate(lab, &options, &mut gauge);
    let results = finished.results;
    if results.lab.interrupted {
        return Err(Failure::interrupted("a run was not complete"));
    }
    let mut engine = gauge.engine;
    engine.cpu_s += finished.threads.worked_ns.iter().skip(1).sum::<u64>() as f64 / 1e9;
    engine.frame_hops = results.engine.frame_hops;
    engine.events = results.engine.events;
    engine.frame_hops_per_cpu_s = engine.frame_hops as f64 / engine.cpu_s.max(1e-9);
    let paths = results.hosts.iter().flat_map(|host| &host.paths);
    let sums = Sums {
        ios: results.totals.io.ios_completed,
        pairs: paths.filter(|path| path.state == "active").count() as u64,
        login_s: gauge.login.map_or(0.0, |(from, to)| (to - from).as_secs_f64()),
        login_bytes: gauge.logged_in_bytes.saturating_sub(gauge.built_bytes),
    };
    Ok((engine, sums, finished.threads))
}

/// Measures the login phase and the run loop, without the extraction of the results.
#[derive(Default)]
struct Gauge {
    built_bytes: u64,
    logged_in_bytes: u64,
    /// Processor time of the thread at the beginning and at the end of the logins.
    login: Option<(Duration, Duration)>,
    stopwatch: Option<Stopwatch>,
    engine: Engine,
}

impl Observer for Gauge {
    fn progress(&mut self, progress: &Progress) -> Control {
        if progress.logging_in {
            self.built_bytes = rss_bytes();
            self.login = Some((thread_cpu(), thread_cpu()));
        } else if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.lap();
            if progress.run_ps >= progress.duration_ps {
                stopwatch.fill(&mut self.engine, Duration::ZERO);
            }
        } else {
            self.logged_in_bytes = rss_bytes();
            self.login = self.login.map(|(from, _)| (from, thread_cpu()));
            self.stopwatch = Some(Stopwatch::start());
        }
        if interrupt::requested() { Control::Stop } else { Control::Continue }
    }
}

fn text(rate: &Rate) -> String {
    let millions =
        |runs: &[f64]| runs.iter().map(|run| format!("{:.2}", run / 1e6)).collect::<Vec<String>>().join(", ");
    let mut text = format!(
        "{} nodes, {}, saturated {} reads, {} simulated\n\
         logins                 {:.3} s of CPU time\n\
         frame-hops             {}\n\
         CPU time               {:.3} s, real time {:.3} s\n\
         frame-hops per CPU s   {:.2} M (runs: {})\n\
         resident               {}\n\
         per login pair         {:.0} bytes of {} pairs\n",
        rate.nodes,
        if rate.zoned { "16 targets zoned to each host" } else { "no zones" },
        if rate.fabric == "voq" { "16 KiB" } else { "32 KB" },
        format::seconds(rate.duration_s),
        rate.login_s,
        format::grouped(rate.frame_hops),
        rate.cpu_s,
        rate.wall_s,
        rate.frame_hops_per_cpu_s / 1e6,
        millions(&rate.runs),
        format::bytes(rate.rss_bytes),
        rate.bytes_per_login_pair,
        format::grouped(rate.login_pairs),
    );
    if let Some(bare) = &rate.bare {
        let ratio = bare.ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string());
        let _ = write!(
            text,
            "bare credit program    {:.2} M (runs: {}), {} hops\n\
             ratio to it            {ratio}\n",
            median(bare.runs.iter().copied()) / 1e6,
            millions(&bare.runs),
            format::grouped(bare.frame_hops),
        );
    }
    text.push_str(&rate.threads);
    text
}
