//! The chores of the house. `cargo xtask` lists them.

mod fuzz;
mod instructions;
mod soak;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask CHORE

  soak [MINUTES] [SEED]   long campaigns: random labs with faults, random fabrics, the fast engine against the plain one,
                          mutated frames at a running switch beside a guest, mutated PDUs at an iSCSI switch beside a host,
                          a host that verifies at depth on both paths of it while everything around fails, fuzz targets
  fuzz [MINUTES]          every fuzz target for so long (1), where there is a nightly toolchain with cargo-fuzz
  instructions            counted instructions per frame-hop against the pinned ceiling (needs valgrind)
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some("soak") => soak::soak(&args[1..]),
        Some("fuzz") => fuzz::fuzz(args.get(1).map_or("1", String::as_str)),
        Some("instructions") => instructions::check(),
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
