//! Instruction count of the frame path. Unlike time, the count has no noise.
//!
//! The program runs twice under callgrind with different simulated lengths; the difference is the
//! cost of the run loop alone. The count of one binary is the same on every run. It changes with
//! the compiler, so the ceiling has a margin of a few per cent.

use std::process::Command;

/// A lab and the maximum number of instructions per frame-hop.
struct Bound {
    lab: &'static str,
    name: &'static str,
    ceiling: f64,
}

/// The fabric of document 001, and one with virtual output queues and virtual channels.
const BOUNDS: [Bound; 2] = [
    Bound { lab: "examples/core-edge.toml", name: "at 16 nodes", ceiling: 1120.0 },
    Bound { lab: "examples/leaf-spine.toml", name: "with virtual channels", ceiling: 1850.0 },
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
    BOUNDS.iter().try_for_each(check_one)
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
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let program = format!("{target}/release/sanloom");
    let json = format!("{target}/instructions-{duration}.json");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &program])
        .args(["sim", lab, "--quiet", "--no-report", "--json", &json])
        .args(["--duration", duration, "--set", "run.warmup=0ms"])
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let number = |text: &str, after: &str| -> Option<f64> {
        let rest = &text[text.find(after)? + after.len()..];
        let rest = rest.trim_start_matches([' ', ':', '"']);
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit()).collect();
        digits.parse().ok()
    };
    let instructions = number(&log, "Collected").ok_or_else(|| format!("callgrind printed no count:\n{log}"))?;
    let results = std::fs::read_to_string(&json).map_err(|e| format!("{json}: {e}"))?;
    let frame_hops = number(&results, "\"frame_hops\"").ok_or_else(|| format!("{json} has no frame_hops"))?;
    Ok(Count { instructions, frame_hops })
}
