//! `sanloom bench ns3`: ns-3 on the same fabric and the same reads.
//!
//! ns-3 does less: no credits, no arbitration, no logins, output queues without a limit. The ratio is therefore a lower
//! bound of the difference.

use super::bound::{self, Bound};
use super::rate::{self, Rate};
use super::report;
use super::work::Nodes;
use crate::exit::Failure;
use crate::output;
use crate::report::file;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("../../../../../bench/ns3/f8_hops.cc");
const LIBRARIES: [&str; 3] = ["-lns3-core", "-lns3-network", "-lns3-point-to-point"];
/// Simulated time of a run of ns-3, in seconds.
const DURATION_S: &str = "0.5";
/// What that run must give; another result means that it does other work.
const CHECK: (u64, u64) = (12_383, 898_547);

/// Options of `sanloom bench ns3`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Runs of each, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Compiler
    #[arg(long, value_name = "PROGRAM", default_value = "g++")]
    cxx: String,
    /// Write the numbers as JSON into this file; `-` for standard output, which then has no table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// End with exit code 1 where the ratio is less than it should be
    #[arg(long)]
    judge: bool,
}

/// What ns-3 says about a run.
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
}

/// Measures both and prints the ratio; one line says why if that cannot be done here.
///
/// # Errors
/// When something cannot be compiled, run or written, or ns-3 does not do the work that it is meant to do.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Err(reason) = available(&args.cxx) {
        return output::print(&format!("skipped: {reason}\n"));
    }
    let ns3 = measure(args)?;
    if (ns3.ios, ns3.frame_hops) != CHECK {
        return Err(Failure::environment(format_args!(
            "this ns-3 gives {} reads and {} frame-hops where 3.37 gives {} and {}: the work is not the same",
            ns3.ios, ns3.frame_hops, CHECK.0, CHECK.1
        )));
    }
    let sanloom = rate::measure(Nodes::N16, false, None, None, args.runs)?;
    let ratio = sanloom.frame_hops_per_cpu_s / ns3.frame_hops_per_cpu_s;
    let comparison = Comparison { ns3, sanloom, ratio };
    let bounds = [Bound::at_least("ratio", ratio, 5.0, "times")];
    report(args.json.as_deref(), &comparison, &(text(&comparison, args.runs) + &bound::text(&bounds)))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

fn text(comparison: &Comparison, runs: u32) -> String {
    format!(
        "frame-hops per CPU second, 16 nodes, saturated 32 KB reads, best of {}\n\
         ns-3      {:>6.2} M   without credits and arbitration\n\
         sanloom   {:>6.2} M   with credits and arbitration\n\
         ratio     {:>6.2}\n",
        runs,
        comparison.ns3.frame_hops_per_cpu_s / 1e6,
        comparison.sanloom.frame_hops_per_cpu_s / 1e6,
        comparison.ratio,
    )
}

/// Asks the compiler, which knows best where headers are.
fn available(cxx: &str) -> Result<(), String> {
    let preprocessor = Command::new(cxx)
        .args(["-std=c++17", "-E", "-x", "c++", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut preprocessor) = preprocessor else {
        return Err(format!("the compiler {cxx} is not installed"));
    };
    if let Some(mut input) = preprocessor.stdin.take() {
        // A compiler that reads nothing has failed, and its status says so.
        let _ = input.write_all(b"#include <ns3/point-to-point-module.h>\n");
    }
    match preprocessor.wait() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("libns3-dev is not installed".into()),
    }
}

fn measure(args: &Args) -> Result<Ns3, Failure> {
    let folder = std::env::temp_dir().join(format!("sanloom-ns3-{}", std::process::id()));
    file::make_folder(&folder)?;
    let measured = compile(args, &folder).and_then(|program| best(args.runs, &program));
    // What is left behind does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    measured
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

fn best(runs: u32, program: &Path) -> Result<Ns3, Failure> {
    let mut best: Option<Ns3> = None;
    for _ in 0..runs {
        let run = Command::new(program)
            .args(["2", DURATION_S])
            .output()
            .map_err(|error| Failure::environment(format_args!("cannot run {}: {error}", program.display())))?;
        let one: Ns3 = serde_json::from_slice(&run.stdout).map_err(|error| {
            Failure::environment(format_args!(
                "the ns-3 program ended with {} and said nothing that can be read: {error}",
                run.status
            ))
        })?;
        if best.is_none_or(|best| one.frame_hops_per_cpu_s > best.frame_hops_per_cpu_s) {
            best = Some(one);
        }
    }
    best.ok_or_else(|| Failure::bug("no run of ns-3 was made"))
}
