//! Instruction counts of the frame path and of the storage models. Unlike time, a count has no
//! noise.
//!
//! The program runs twice under callgrind with different lengths; the difference is the cost of the
//! loop alone. The count of one binary is the same on every run. It changes with
//! the compiler, so the ceiling has a margin of a few per cent.

use std::process::{Command, Output};

/// A lab and the maximum number of instructions per frame-hop.
struct Bound {
    lab: &'static str,
    name: &'static str,
    ceiling: f64,
}

/// The fabric of the SANSim paper, and one with virtual output queues and virtual channels.
const BOUNDS: [Bound; 2] = [
    Bound { lab: "examples/core-edge.toml", name: "at 16 nodes", ceiling: 1120.0 },
    Bound { lab: "examples/leaf-spine.toml", name: "with virtual channels", ceiling: 1850.0 },
];

/// A storage model of `sanloom bench storage`, and the maximum number of instructions of one
/// operation.
struct Model {
    option: &'static str,
    operation: &'static str,
    ceiling: f64,
}

/// Each ceiling is 3 % above the count.
const MODELS: [Model; 4] = [
    Model { option: "disk", operation: "disk request with SPTF at depth 64", ceiling: 3202.0 },
    Model { option: "cache", operation: "lookup in an LRU cache with 90 % hits", ceiling: 192.5 },
    Model { option: "raid", operation: "small write to RAID 5", ceiling: 1222.0 },
    Model { option: "flash", operation: "programmed flash page", ceiling: 176.6 },
];

/// Counts the instructions and compares them with the ceiling.
///
/// # Errors
///
/// A count is above its ceiling, or the measurement failed.
pub fn check() -> Result<(), String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        let missing = "valgrind is not installed";
        if crate::required::peers_are_required() {
            return Err(missing.to_owned());
        }
        println!("skipped: {missing}");
        return Ok(());
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo).args(["build", "--release", "--quiet", "-p", "sanloom"]).status();
    if !built.map_err(|e| format!("cargo: {e}"))?.success() {
        return Err("the release build failed".to_owned());
    }
    BOUNDS.iter().try_for_each(check_one)?;
    MODELS.iter().try_for_each(check_model)
}

/// Prints the count beside the rate of the same loop on this machine, which is not judged here.
fn check_model(model: &Model) -> Result<(), String> {
    let Model { option, operation, ceiling } = model;
    let loops = |program: &mut Command, operations: u32| {
        let count = operations.to_string();
        let output = program.args(["bench", "storage", "--model", option, "--requests", &count, "--json"]).output();
        output.map_err(|e| format!("{program:?}: {e}"))
    };
    let counted = |operations| collected(&loops(&mut callgrind(), operations)?);
    let (short, long) = (100_000, 300_000);
    let per_operation = (counted(long)? - counted(short)?) / f64::from(long - short);
    let results = loops(&mut Command::new(program()), 3_000_000)?;
    let results = String::from_utf8_lossy(&results.stdout);
    let rate = number(&results, "s_per_cpu_s\"").ok_or_else(|| format!("bench storage has no rate:\n{results}"))?;
    println!(
        "{per_operation:.1} instructions per {operation} (ceiling {ceiling:.1}), at {:.1} M/s of processor time here",
        rate / 1e6
    );
    if per_operation > *ceiling {
        return Err(format!("a {operation} needs {per_operation:.1} instructions, above the ceiling of {ceiling:.1}"));
    }
    Ok(())
}

fn target() -> String {
    std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned())
}

fn program() -> String {
    format!("{}/release/sanloom", target())
}

/// The program under callgrind.
fn callgrind() -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &program()]);
    command
}

/// Returns the whole number behind a text.
fn number(text: &str, after: &str) -> Option<f64> {
    let rest = &text[text.find(after)? + after.len()..];
    let rest = rest.trim_start_matches([' ', ':', '"']);
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit()).collect();
    digits.parse().ok()
}

/// Returns the number of instructions that callgrind reports.
fn collected(output: &Output) -> Result<f64, String> {
    let log = String::from_utf8_lossy(&output.stderr);
    number(&log, "Collected").ok_or_else(|| format!("callgrind printed no count:\n{log}"))
}

fn check_one(bound: &Bound) -> Result<(), String> {
    let Bound { lab, name, ceiling } = bound;
    let (short, long) = (count(lab, "20ms")?, count(lab, "60ms")?);
    let per_hop = (long.instructions - short.instructions) / (long.frame_hops - short.frame_hops);
    println!("{per_hop:.0} instructions per frame-hop {name} (ceiling {ceiling:.0})");
    if per_hop > *ceiling {
        return Err(format!(
            "the frame path needs {per_hop:.0} instructions per frame-hop {name}, above the ceiling of {ceiling:.0}"
        ));
    }
    Ok(())
}

struct Count {
    instructions: f64,
    frame_hops: f64,
}

fn count(lab: &str, duration: &str) -> Result<Count, String> {
    let json = format!("{}/instructions-{duration}.json", target());
    let output = callgrind()
        .args(["sim", lab, "--quiet", "--no-report", "--json", &json])
        .args(["--duration", duration, "--set", "run.warmup=0ms"])
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    let instructions = collected(&output)?;
    let results = std::fs::read_to_string(&json).map_err(|e| format!("{json}: {e}"))?;
    let frame_hops = number(&results, "\"frame_hops\"").ok_or_else(|| format!("{json} has no frame_hops"))?;
    Ok(Count { instructions, frame_hops })
}
