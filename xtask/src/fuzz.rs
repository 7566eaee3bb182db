//! Campaigns of the fuzz targets. Without cargo-fuzz, the campaigns are skipped with a message. The
//! stable toolchain suffices, because `RUSTC_BOOTSTRAP` permits it the options of sanitizers.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs every target for `minutes`, one after the other.
///
/// # Errors
///
/// A target found a failure.
pub fn fuzz(minutes: &str) -> Result<(), String> {
    let mut there = Command::new("cargo");
    there.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !there.status().is_ok_and(|status| status.success()) {
        eprintln!("fuzz: skipped, because cargo-fuzz is not installed; install it with `cargo install cargo-fuzz`");
        return Ok(());
    }
    let seconds = minutes.parse::<u64>().map_err(|_| format!("`{minutes}` is not a number of minutes"))? * 60;
    for target in targets()? {
        eprintln!("fuzz: {target}");
        let time = format!("-max_total_time={seconds}");
        let mut command = Command::new("cargo");
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args(["fuzz", "run", &target, "--", &time, "-print_final_stats=1"]);
        let status = command.status().map_err(|error| format!("cargo fuzz: {error}"))?;
        if !status.success() {
            return Err(format!("the fuzz target {target} failed; its input is in fuzz/artifacts/{target}"));
        }
    }
    Ok(())
}

/// Names of the targets, from the names of their files.
fn targets() -> Result<Vec<String>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let name = |entry: fs::DirEntry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut all: Vec<String> = entries.flatten().filter_map(name).collect();
    all.sort();
    Ok(all)
}
