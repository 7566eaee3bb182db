//! Long campaigns, before a release or before an issue is called resolved.

use crate::fuzz;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: cargo xtask soak [MINUTES] [SEED]";
const MINUTES: u64 = 10;

/// Fabrics of each kind for each minute, see `core/tests/whole_switches.rs` and `core/tests/domain_random.rs`: seeds that
/// take about as long.
const FABRICS_PER_MINUTE: u64 = 2_000;
/// Guests for each minute that work beside a host whose frames are mutated, see `cli/tests/live/hostile.rs`.
const GUESTS_PER_MINUTE: u64 = 2;
/// Seeds of hosts for each minute that send nonsense over iSCSI, see `cli/tests/iscsi_switch/hostile.rs`.
const HOSTS_PER_MINUTE: u64 = 6;
/// Scripts for each minute on both paths of an iSCSI switch and a plain disk, see `core/tests/forward/script.rs`.
const SCRIPTS_PER_MINUTE: u64 = 20_000;

/// Runs each campaign for MINUTES (10), or about as long, from SEED on; without SEED they begin where no campaign has begun
/// before. Assertions and overflow checks are on, optimisation too.
///
/// # Errors
///
/// A campaign found something, or the arguments are wrong.
pub fn soak(args: &[String]) -> Result<(), String> {
    let number = |at: usize| match args.get(at) {
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| format!("`{text}` is no number; {USAGE}")),
        None => Ok(None),
    };
    let (minutes, seed) = (number(0)?.unwrap_or(MINUTES), number(1)?);
    if args.len() > 2 || minutes == 0 {
        return Err(USAGE.to_owned());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = seed.unwrap_or(now << 20);
    eprintln!("soak: {minutes} min, random labs and fabrics from seed {seed}");
    let (cases, fabrics) = ((minutes * 20_000).to_string(), (minutes * FABRICS_PER_MINUTE).to_string());
    campaign("sanloom-sim", "frame_path", &[("PROPTEST_CASES", &cases)])?;
    let (first, scripts) = (seed, minutes * SCRIPTS_PER_MINUTE);
    let (guests, hosts) = ((minutes * GUESTS_PER_MINUTE).to_string(), (minutes * HOSTS_PER_MINUTE).to_string());
    let (minutes, seed) = (minutes.to_string(), seed.to_string());
    for test in ["domain_random", "whole_switches"] {
        campaign("sanloom-core", test, &[("SANLOOM_SEEDS", &fabrics), ("SANLOOM_FIRST_SEED", &seed)])?;
    }
    campaign("sanloom-sim", "random_labs", &[("SANLOOM_MINUTES", &minutes), ("SANLOOM_FIRST_SEED", &seed)])?;
    let one = "ten_thousand_mutated_frames_do_not_disturb_another_host";
    run("sanloom", "live", &[one], &[("SANLOOM_SEEDS", &guests), ("SANLOOM_FIRST_SEED", &seed)])?;
    let one = "hosts_that_send_nonsense_disturb_no_other_and_cost_little";
    run("sanloom", "iscsi_switch", &[one], &[("SANLOOM_SEEDS", &hosts), ("SANLOOM_FIRST_SEED", &seed)])?;
    let scripts = format!("{first}..{}", first + scripts);
    run("sanloom-core", "forward", &["all_ways_give"], &[("SANLOOM_FORWARD_SEEDS", &scripts)])?;
    // Both paths, at the same time.
    let one = "a_host_verifies_at_depth_while_everything_around_it_fails";
    run("sanloom", "iscsi_switch", &[one], &[("SANLOOM_MINUTES", &minutes)])?;
    fuzz::fuzz(&minutes)
}

fn campaign(package: &str, test: &str, environment: &[(&str, &str)]) -> Result<(), String> {
    run(package, test, &[], environment)
}

/// Runs these tests of a test program, or all.
fn run(package: &str, test: &str, names: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    eprintln!("soak: {test}");
    let profile = ["inherits=\"release\"", "debug-assertions=true", "overflow-checks=true"];
    let mut command = Command::new(cargo);
    command.args(["test", "--package", package, "--test", test, "--profile", "soak"]);
    for setting in profile {
        command.args(["--config", &format!("profile.soak.{setting}")]);
    }
    command.args(["--", "--nocapture"]).args(names).envs(environment.iter().copied());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{test} found something")) }
}
