//! `sanloom bench ns3`: ns-3 on the same fabric and the same reads.
//!
//! ns-3 does less: no credits, no arbitration, no logins, output queues without a limit. The ratio
//! is therefore a lower bound of the difference. Both alternate run by run ([`super::statistics`]).

use super::bound::{self, Bound};
use super::rate::{self, Rate, Work};
use super::statistics::{Estimate, Limit, median, order};
use crate::quote::quote;
use sanloom_console::exit::Failure;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::file;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("../../ns3/f8_hops.cc");
const LIBRARIES: [&str; 3] = ["-lns3-core", "-lns3-network", "-lns3-point-to-point"];
/// Header that stands for ns-3.
const HEADER: &str = "ns3/point-to-point-module.h";
/// Simulated time of the run that shows that the program starts, in seconds.
const SHORT_S: &str = "0.001";
/// Simulated time of a run of ns-3, in seconds.
const DURATION_S: &str = "0.5";
/// Reads and frame-hops of that run; another result means that it does other work.
const CHECK: (u64, u64) = (12_383, 898_547);

/// Options of `sanloom bench ns3`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Runs of each simulator, which alternate; the median counts, and an interval of 95 % requires
    /// six
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = quantity::count::<u32>(1..=1000))]
    runs: u32,
    /// Compiler
    #[arg(long, value_name = "PROGRAM", default_value = "g++")]
    cxx: String,
    #[command(flatten)]
    outputs: Outputs,
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

/// Reason why nothing was measured.
#[derive(Serialize)]
struct Skipped {
    skipped: String,
}

/// Measures both simulators, and prints the ratio; prints the reason if the compiler or ns-3 is
/// missing or does not work.
///
/// # Errors
/// If a run fails, an output cannot be written, or ns-3 does other work.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let comparison = match measure(args)? {
        Ok(comparison) => comparison,
        Err(skipped) => {
            let skipped = Skipped { skipped };
            return args.outputs.write_or_print("ns3", &skipped, || format!("skipped: {}\n", skipped.skipped));
        }
    };
    let bounds = [Bound::of_estimate("ratio", comparison.estimate, Limit::AtLeast(5.0), "times")];
    args.outputs.write_or_print("ns3", &comparison, || text(&comparison, args.runs) + &bound::text(&bounds))?;
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

/// Returns the reason if the compiler does not run, or the headers of ns-3 are missing.
fn available(cxx: &str) -> Result<(), String> {
    let preprocessor = Command::new(cxx)
        .args(["-std=c++17", "-E", "-x", "c++", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut preprocessor = preprocessor.map_err(|error| format!("the compiler {cxx} cannot be run: {error}"))?;
    if let Some(mut input) = preprocessor.stdin.take() {
        // If the compiler does not read its input, its exit status reports the failure.
        let _ = input.write_all(format!("#include <{HEADER}>\n").as_bytes());
    }
    match preprocessor.wait_with_output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains(HEADER) => {
            Err("the headers of ns-3 (Debian package libns3-dev) are not installed".to_owned())
        }
        Ok(output) => Err(format!("the compiler {cxx} failed ({}){}", output.status, quote("it", &output.stderr))),
        Err(error) => Err(format!("the compiler {cxx} cannot be run: {error}")),
    }
}

/// Compiles the program and measures both simulators; `Ok(Err)` is the reason for a skip.
fn measure(args: &Args) -> Result<Result<Comparison, String>, Failure> {
    if let Err(reason) = available(&args.cxx) {
        return Ok(Err(reason));
    }
    let folder = std::env::temp_dir().join(format!("sanloom-ns3-{}", std::process::id()));
    file::make_folder(&folder)?;
    let compiled = compile(args, &folder);
    let measured =
        compiled.and_then(|compiled| match compiled.and_then(|program| starts(&program).map(|()| program)) {
            Ok(program) => alternate(args.runs as usize, &program).map(Ok),
            Err(reason) => Ok(Err(reason)),
        });
    // A folder that stays behind does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

/// Returns the reason if the program does not start, for example because a library is missing.
fn starts(program: &Path) -> Result<(), String> {
    let run = Command::new(program).args(["2", SHORT_S]).output();
    let run = run.map_err(|error| format!("the ns-3 program cannot be started: {error}"))?;
    match run.status.success() {
        true => Ok(()),
        false => Err(format!("the ns-3 program does not start ({}){}", run.status, quote("it", &run.stderr))),
    }
}

/// Runs both simulators in alternating order.
fn alternate(runs: usize, program: &Path) -> Result<Comparison, Failure> {
    let (mut ns3, mut sanloom) = (Vec::new(), Vec::new());
    for round in 0..runs {
        for simulator in order(2, round) {
            match simulator {
                0 => ns3.push(once(program)?),
                _ => sanloom.push(rate::measure(&Work::smallest(), 1)?),
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

fn compile(args: &Args, folder: &Path) -> Result<Result<PathBuf, String>, Failure> {
    let source = folder.join("f8_hops.cc");
    let program = folder.join("f8_hops");
    file::write_text(&source, PROGRAM)?;
    let compiled = Command::new(&args.cxx)
        .args(["-std=c++17", "-O3", "-march=native", "-DNDEBUG"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(LIBRARIES)
        .output();
    Ok(match compiled {
        Ok(compiled) if compiled.status.success() => Ok(program),
        Ok(compiled) => Err(format!(
            "{} cannot compile the ns-3 program ({}){}",
            args.cxx,
            compiled.status,
            quote("it", &compiled.stderr)
        )),
        Err(error) => Err(format!("the compiler {} cannot be run: {error}", args.cxx)),
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns the reason of a skip with a shell script in place of the compiler.
    fn skipped(name: &str, script: &str) -> String {
        let compiler = std::env::temp_dir().join(format!("sanloom-{name}-{}", std::process::id()));
        // A shell writes the file, because a file that this process has open cannot be run, and a
        // child of another test may hold it open.
        let mut write = Command::new("sh");
        write.args(["-c", "printf '%s\\n' '#!/bin/sh' \"$1\" > \"$0\" && chmod +x \"$0\""]).arg(&compiler).arg(script);
        assert!(write.status().unwrap().success());
        let cxx = compiler.display().to_string();
        let args = Args { runs: 1, cxx: cxx.clone(), outputs: Outputs::default(), judge: false };
        let measured = measure(&args);
        fs::remove_file(compiler).unwrap();
        match measured {
            Ok(Err(reason)) => reason.replace(&cxx, name),
            _ => panic!("{name} is no skip"),
        }
    }

    #[test]
    fn a_compiler_that_fails_is_a_skip_with_its_own_words() {
        let reason = skipped("badcxx", "cat > /dev/null; echo 'no licence' >&2; exit 3");
        assert_eq!(reason, "the compiler badcxx failed (exit status: 3); it printed: no licence");
    }

    #[test]
    fn missing_headers_are_a_skip_that_names_their_package() {
        let missing = "cat > /dev/null; echo 'fatal error: ns3/point-to-point-module.h: No such file' >&2; exit 1";
        assert!(skipped("barecxx", missing).contains("libns3-dev"));
    }

    #[test]
    fn a_program_that_does_not_start_is_a_skip_with_its_own_words() {
        let library = "libns3-core.so: cannot open shared object file";
        let compiler = format!(
            "case \"$*\" in *' -E '*) cat > /dev/null; exit 0;; esac\n\
             while [ \"$1\" != -o ]; do shift; done\n\
             printf '#!/bin/sh\\necho {library} >&2\\nexit 127\\n' > \"$2\"; chmod +x \"$2\""
        );
        let reason = skipped("loosecxx", &compiler);
        assert_eq!(reason, format!("the ns-3 program does not start (exit status: 127); it printed: {library}"));
    }
}
