//! Campaigns of the fuzz targets. They need a nightly toolchain with cargo-fuzz; where that is not, this says so and ends well.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs every target for so many minutes, one after the other.
///
/// # Errors
///
/// A target found something.
pub fn fuzz(minutes: &str) -> Result<(), String> {
    let mut there = Command::new("cargo");
    there.args(["+nightly", "fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !there.status().is_ok_and(|status| status.success()) {
        eprintln!("fuzz: skipped, there is no nightly toolchain with cargo-fuzz (cargo +nightly install cargo-fuzz)");
        return Ok(());
    }
    let seconds = minutes.parse::<u64>().map_err(|_| format!("`{minutes}` is no number of minutes"))? * 60;
    for target in targets()? {
        eprintln!("fuzz: {target}");
        let time = format!("-max_total_time={seconds}");
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz", "run", &target, "--", &time, "-print_final_stats=1"]);
        let status = command.status().map_err(|error| format!("cargo fuzz: {error}"))?;
        if !status.success() {
            return Err(format!("the fuzz target {target} found something: fuzz/artifacts/{target}"));
        }
    }
    Ok(())
}

/// The targets, by the names of their files.
fn targets() -> Result<Vec<String>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let name = |entry: fs::DirEntry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut all: Vec<String> = entries.flatten().filter_map(name).collect();
    all.sort();
    Ok(all)
}
