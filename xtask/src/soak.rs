//! Long test campaigns, for use before a release or before an issue is closed.

use crate::{dist, fuzz};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: cargo xtask soak [MINUTES] [SEED]";
const MINUTES: u64 = 10;

/// Number of fabrics of each kind per minute, see `fc/tests/it/whole_switches.rs` and
/// `fc/tests/it/domain_random.rs`. The campaign runs this number of seeds instead of measuring
/// time.
const FABRICS_PER_MINUTE: u64 = 2_000;
/// Number of guests per minute that run beside a host with mutated frames, see
/// `cli/tests/it/live/hostile.rs`.
const GUESTS_PER_MINUTE: u64 = 2;
/// Number of seeds per minute for hosts that send invalid iSCSI PDUs, see
/// `cli/tests/it/iscsi_switch/hostile.rs`.
const HOSTS_PER_MINUTE: u64 = 6;
/// Number of scripts per minute, run on both paths of an iSCSI switch and on a plain disk, see
/// `scsi/tests/it/forward/script.rs`.
const SCRIPTS_PER_MINUTE: u64 = 20_000;
/// Number of storage systems per minute that fail, see `sim/tests/it/data_loss_random.rs`.
const SYSTEMS_PER_MINUTE: u64 = 200;
/// Number of Ethernet networks, and of InfiniBand networks, per minute that are compared with a
/// plain engine, see `sim/tests/it/ethernet/random.rs` and `sim/tests/it/infiniband/random.rs`.
const NETWORKS_PER_MINUTE: u64 = 3_000;
/// Number of networks of virtual links per minute that are compared with a plain engine, see
/// `sim/tests/it/fcoe/random.rs`. A twentieth of it is the number of labs of
/// `sim/tests/it/fcoe/links.rs`.
const FCOE_NETWORKS_PER_MINUTE: u64 = 1_000;
/// Number of labs per minute that are compared with the fluid model, see `bench/tests/it/fluid.rs`.
const FLUID_LABS_PER_MINUTE: u64 = 1_000;

/// Length of the trace that comes through a pipe, see `cli/tests/it/commands/long_trace.rs`.
const TRACE_MB: &str = "10000";

/// Runs each campaign for about MINUTES (default 10), starting at SEED. The default seed follows
/// from the current time, so that each campaign uses new seeds. Assertions, overflow checks and
/// optimisation are enabled. A campaign that fails does not end the others.
///
/// # Errors
///
/// Campaigns found failures, the published program cannot be built or is too large, or the
/// arguments are wrong.
pub fn soak(args: &[String]) -> Result<(), String> {
    let number = |at: usize| match args.get(at) {
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| format!("`{text}` is not a number; {USAGE}")),
        None => Ok(None),
    };
    let (minutes, seed) = (number(0)?.unwrap_or(MINUTES), number(1)?);
    if args.len() > 2 || minutes == 0 {
        return Err(USAGE.to_owned());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = seed.unwrap_or(now << 20);
    eprintln!("soak: {minutes} min, random labs and fabrics from seed {seed}");
    let mut failed = Vec::new();
    let mut attempt = |result: Result<(), String>| failed.extend(result.err());
    let (cases, fabrics) = ((minutes * 20_000).to_string(), (minutes * FABRICS_PER_MINUTE).to_string());
    attempt(run("sanloom-sim", &["frame_path::"], &[("PROPTEST_CASES", &cases)]));
    let (first, scripts) = (seed, minutes * SCRIPTS_PER_MINUTE);
    let fluid = (minutes * FLUID_LABS_PER_MINUTE).to_string();
    let (guests, hosts) = ((minutes * GUESTS_PER_MINUTE).to_string(), (minutes * HOSTS_PER_MINUTE).to_string());
    let systems = (minutes * SYSTEMS_PER_MINUTE).to_string();
    let networks = (minutes * NETWORKS_PER_MINUTE).to_string();
    let over_ethernet = (minutes * FCOE_NETWORKS_PER_MINUTE).to_string();
    let (minutes, seed) = (minutes.to_string(), seed.to_string());
    attempt(run("sanloom-sim", &["data_loss_random::"], &[("SANLOOM_SEEDS", &systems), ("SANLOOM_FIRST_SEED", &seed)]));
    attempt(run("sanloom-surface", &["page::a_lab_of_10000_nodes"], &[("SANLOOM_TIMED", "1")]));
    attempt(run("sanloom", &["answers_over_1000_ports"], &[("SANLOOM_TIMED", "1")]));
    attempt(run("sanloom-surface", &["page::the_heap_does_not_grow"], &[("SANLOOM_MINUTES", &minutes.to_string())]));
    for (tests, networks) in
        [("ethernet::random", &networks), ("infiniband::random", &networks), ("random_virtual_links", &over_ethernet)]
    {
        attempt(run("sanloom-sim", &[tests], &[("SANLOOM_SEEDS", networks), ("SANLOOM_FIRST_SEED", &seed)]));
    }
    for tests in [&["domain_random::"][..], &["whole::", "whole_switches::"]] {
        attempt(run("sanloom-fc", tests, &[("SANLOOM_SEEDS", &fabrics), ("SANLOOM_FIRST_SEED", &seed)]));
    }
    for tests in ["random_labs::", "mixed_labs::"] {
        attempt(run("sanloom-bench", &[tests], &[("SANLOOM_MINUTES", &minutes), ("SANLOOM_FIRST_SEED", &seed)]));
    }
    let random = ["fluid::random_labs_reach_the_rates_of_the_fluid_model"];
    attempt(run("sanloom-bench", &random, &[("SANLOOM_FLUID_LABS", &fluid), ("SANLOOM_FIRST_SEED", &seed)]));
    let one = "ten_thousand_mutated_frames_do_not_disturb_another_host";
    attempt(run("sanloom", &[one], &[("SANLOOM_SEEDS", &guests), ("SANLOOM_FIRST_SEED", &seed)]));
    let one = "hosts_that_send_invalid_pdus_disturb_no_other_and_cost_little";
    attempt(run("sanloom", &[one], &[("SANLOOM_SEEDS", &hosts), ("SANLOOM_FIRST_SEED", &seed)]));
    let scripts = format!("{first}..{}", first + scripts);
    attempt(run("sanloom-scsi", &["all_paths_give"], &[("SANLOOM_FORWARD_SEEDS", &scripts)]));
    let one = "a_trace_of_any_length_is_inspected_in_64_mib";
    attempt(run("sanloom", &[one], &[("SANLOOM_TRACE_MB", TRACE_MB)]));
    attempt(python());
    // This test uses both paths at the same time.
    let one = "a_host_verifies_at_depth_while_everything_around_it_fails";
    attempt(run("sanloom", &[one], &[("SANLOOM_MINUTES", &minutes)]));
    attempt(fuzz::fuzz(&minutes));
    // The program is built last, so that all campaigns have run if its size is over the limit.
    attempt(dist::dist(&["binary".to_owned()]).map_err(|reason| format!("the published program: {reason}")));
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Measures the Python package. Its environment is that of the tests, with the installed wheel.
fn python() -> Result<(), String> {
    let root = crate::root();
    let python = root.join("target/python/bin/python");
    if !python.exists() {
        eprintln!("soak: the Python package is skipped; `tests/python/install.sh && tests/python/run.sh` installs it");
        return Ok(());
    }
    eprintln!("soak: tests/python/bench.py");
    let status = Command::new(&python).current_dir(&root).arg("tests/python/bench.py").status();
    match status.map_err(|error| format!("{}: {error}", python.display()))?.success() {
        true => Ok(()),
        false => Err("the Python package misses a limit, see above".to_owned()),
    }
}

/// Runs the integration tests of a package whose names contain one of `tests`.
fn run(package: &str, tests: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let names = tests.join(" ");
    eprintln!("soak: {package} {names}");
    let profile = ["inherits=\"release\"", "debug-assertions=true", "overflow-checks=true"];
    let mut command = Command::new(cargo);
    command.args(["test", "--package", package, "--test", "it", "--profile", "soak"]);
    for setting in profile {
        command.args(["--config", &format!("profile.soak.{setting}")]);
    }
    command.args(["--", "--nocapture"]).args(tests).envs(environment.iter().copied());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{names} failed; the seed and the command that repeats it are above"))
    }
}
