//! Maintenance tasks of the project. `cargo xtask` lists them.

#[cfg(test)]
mod book;
mod dist;
mod fuzz;
mod instructions;
#[cfg(test)]
mod prose;
#[path = "../../crates/test-support/macros/required.rs"]
mod required;
mod soak;
#[cfg(test)]
mod structure;
#[cfg(test)]
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  soak [MINUTES] [SEED]   run the long campaigns with random input, MINUTES each (10), from SEED (the time of day):
                          labs, fabrics, mutated frames and PDUs, scripts on both paths of the iSCSI switch,
                          the frame path against a simple engine, rates against a fluid model, a trace of 10 GB in
                          64 MiB, a host that verifies, the heap of the page, answers over 1,000 ports, the Python
                          package; then all fuzz targets, and the size of the published program
  fuzz [MINUTES]          run every fuzz target, MINUTES each (1); needs cargo-fuzz, and no nightly toolchain
  instructions            count the instructions per frame-hop and per operation of the storage models, and
                          compare them with their ceilings; needs valgrind
  dist [--profile NAME] [PART]...
                          build packages into target/packages, optimised like the profile NAME (dist):
                          binary, deb, container, wheel, crates; all, or the named PARTs

Example:
  cargo xtask soak 1 17
";

/// Root folder of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some("soak") => soak::soak(&args[1..]),
        Some("fuzz") => fuzz::fuzz(args.get(1).map_or("1", String::as_str)),
        Some("instructions") => instructions::check(),
        Some("dist") => dist::dist(&args[1..]),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
