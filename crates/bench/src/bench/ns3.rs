//! `sanloom bench ns3`: ns-3 on the same fabric and the same reads.
//!
//! ns-3 does less: no credits, no arbitration, no logins, output queues without a limit. The ratio
//! is therefore a lower bound of the difference. Both alternate run by run ([`super::statistics`]).

use super::bound::{self, Bound};
use super::rate::{self, Rate};
use super::statistics::{Estimate, Limit, median, order};
use super::work::Nodes;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::outputs::Json;
use sanloom_console::report::file;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("../../ns3/f8_hops.cc");
const LIBRARIES: [&str; 3] = ["-lns3-core", "-lns3-network", "-lns3-point-to-point"];
/// Simulated time of a run of ns-3, in seconds.
const DURATION_S: &str = "0.5";
/// Reads and frame-hops of that run; another result means that it does other work.
const CHECK: (u64, u64) = (12_383, 898_547);

/// Options of `sanloom bench ns3`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Runs of each simulator, which alternate; the median counts, and an interval of 95 % requires
    /// six
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Compiler
    #[arg(long, value_name = "PROGRAM", default_value = "g++")]
    cxx: String,
    #[command(flatten)]
    json: Json,
    /// End with exit code 1 if the ratio is below its bound; an interval that crosses the bound is
    /// undecided
    #[arg(long)]
    judge: bool,
}

/// Output of a run of ns-3.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Ns3 {
    ios: u64,
    frame_hops: u64,
    events: u64,
    cpu_s: f64,
    frame_hops_per_cpu_s: f64,
}

#[derive(Serialize)]
struct Comparison {
    ns3: Ns3,
    sanloom: Rate,
    ratio: f64,
    estimate: Estimate,
}

/// Measures both simulators, and prints the ratio; prints one line with the reason if ns-3 is
/// missing.
///
/// # Errors
/// If the program cannot be compiled or run, an output cannot be written, or ns-3 does other work.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Err(reason) = available(&args.cxx) {
        return output::print(&format!("skipped: {reason}\n"));
    }
    let comparison = measure(args)?;
    let bounds = [Bound::of_estimate("ratio", comparison.estimate, Limit::AtLeast(5.0), "times")];
    args.json.write_or_print(&comparison, || text(&comparison, args.runs) + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

fn text(comparison: &Comparison, runs: u32) -> String {
    format!(
        "frame-hops per CPU second, 16 nodes, saturated 32 KB reads, medians of {} runs\n\
         ns-3      {:>6.2} M   without credits and arbitration\n\
         sanloom   {:>6.2} M   with credits and arbitration\n\
         ratio     {}\n",
        runs,
        comparison.ns3.frame_hops_per_cpu_s / 1e6,
        comparison.sanloom.frame_hops_per_cpu_s / 1e6,
        comparison.estimate,
    )
}

/// Returns the reason if the compiler or the headers of ns-3 are missing.
fn available(cxx: &str) -> Result<(), String> {
    let preprocessor = Command::new(cxx)
        .args(["-std=c++17", "-E", "-x", "c++", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut preprocessor = match preprocessor {
        Ok(preprocessor) => preprocessor,
        Err(error) => return Err(format!("the compiler {cxx} cannot be run: {error}")),
    };
    if let Some(mut input) = preprocessor.stdin.take() {
        // If the compiler does not read its input, its exit status reports the failure.
        let _ = input.write_all(b"#include <ns3/point-to-point-module.h>\n");
    }
    match preprocessor.wait() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("the headers of ns-3 (Debian package libns3-dev) are not installed".into()),
    }
}

fn measure(args: &Args) -> Result<Comparison, Failure> {
    let folder = std::env::temp_dir().join(format!("sanloom-ns3-{}", std::process::id()));
    file::make_folder(&folder)?;
    let measured = compile(args, &folder).and_then(|program| alternate(args.runs as usize, &program));
    // A folder that stays behind does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

/// Runs both simulators in alternating order.
fn alternate(runs: usize, program: &Path) -> Result<Comparison, Failure> {
    let (mut ns3, mut sanloom) = (Vec::new(), Vec::new());
    for round in 0..runs {
        for simulator in order(2, round) {
            match simulator {
                0 => ns3.push(once(program)?),
                _ => sanloom.push(rate::measure(Nodes::N16, false, None, None, 1)?),
            }
        }
    }
    let of_ns3: Vec<f64> = ns3.iter().map(|run| run.frame_hops_per_cpu_s).collect();
    let of_sanloom: Vec<f64> = sanloom.iter().map(|run| run.frame_hops_per_cpu_s).collect();
    let estimate = Estimate::of_ratios(&of_sanloom, &of_ns3);
    let (Some(estimate), Some(ns3), Some(sanloom)) = (estimate, ns3.pop(), sanloom.pop()) else {
        return Err(Failure::environment("the runs took no processor time that could be measured"));
    };
    let ns3 = Ns3 { frame_hops_per_cpu_s: median(of_ns3), ..ns3 };
    let sanloom = Rate { frame_hops_per_cpu_s: median(of_sanloom.iter().copied()), runs: of_sanloom, ..sanloom };
    Ok(Comparison { ns3, sanloom, ratio: estimate.median, estimate })
}

fn compile(args: &Args, folder: &Path) -> Result<PathBuf, Failure> {
    let source = folder.join("f8_hops.cc");
    let program = folder.join("f8_hops");
    file::write_text(&source, PROGRAM)?;
    let compiled = Command::new(&args.cxx)
        .args(["-std=c++17", "-O3", "-march=native", "-DNDEBUG"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(LIBRARIES)
        .output()
        .map_err(|error| Failure::environment(format_args!("cannot run {}: {error}", args.cxx)))?;
    if compiled.status.success() {
        Ok(program)
    } else {
        Err(Failure::environment(format_args!(
            "{} cannot compile the ns-3 program:\n{}",
            args.cxx,
            String::from_utf8_lossy(&compiled.stderr).trim_end()
        )))
    }
}

fn once(program: &Path) -> Result<Ns3, Failure> {
    let run = Command::new(program)
        .args(["2", DURATION_S])
        .output()
        .map_err(|error| Failure::environment(format_args!("cannot run {}: {error}", program.display())))?;
    let ns3: Ns3 = serde_json::from_slice(&run.stdout).map_err(|error| {
        Failure::environment(format_args!(
            "the ns-3 program ended with {}, and its output cannot be read: {error}\n{}",
            run.status,
            String::from_utf8_lossy(&run.stderr).trim_end()
        ))
    })?;
    match (ns3.ios, ns3.frame_hops) == CHECK {
        true => Ok(ns3),
        false => Err(Failure::environment(format_args!(
            "this ns-3 gives {} reads and {} frame-hops; version 3.37 gives {} and {}, so the work differs",
            ns3.ios, ns3.frame_hops, CHECK.0, CHECK.1
        ))),
    }
}
