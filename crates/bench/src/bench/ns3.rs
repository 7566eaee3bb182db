//! `sanloom bench ns3`: ns-3 on the same fabric and the same reads.
//!
//! ns-3 does less: no credits, no arbitration, no logins, output queues without a limit. The ratio
//! is therefore a lower bound of the difference. Both alternate run by run ([`super::statistics`]).

pub(super) mod program;

use super::bound::{self, Bound};
use super::rate::{self, Rate, Work};
use super::statistics::{Estimate, Limit, median, order};
use program::Source;
use sanloom_console::exit::Failure;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use serde::{Deserialize, Serialize};

pub(super) use program::Program;

const SOURCE: Source = Source {
    name: "f8_hops",
    text: include_str!("../../ns3/f8_hops.cc"),
    libraries: &["-lns3-core", "-lns3-network", "-lns3-point-to-point"],
    short: &["2", "0.001"],
};
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

/// Compiles the program and measures both simulators; `Ok(Err)` is the reason for a skip.
fn measure(args: &Args) -> Result<Result<Comparison, String>, Failure> {
    Ok(match Program::compile(&SOURCE, &args.cxx, "")? {
        Ok(program) => Ok(alternate(args.runs as usize, &program)?),
        Err(reason) => Err(reason),
    })
}

/// Runs both simulators in alternating order.
fn alternate(runs: usize, program: &Program) -> Result<Comparison, Failure> {
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

fn once(program: &Program) -> Result<Ns3, Failure> {
    let ns3: Ns3 = program.run(&["2", DURATION_S], "")?;
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
    use std::process::Command;

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
