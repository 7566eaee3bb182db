//! Tests that change what all threads of a process share, and therefore run in one of their own.

use std::env;
use std::process::Command;

/// Set in the process of one test.
const ALONE: &str = "SANLOOM_TEST_ALONE";

/// Runs a test in a process of its own. `name` is its path in the test program. Returns true in
/// that process; in the other one the test has succeeded.
///
/// # Panics
/// The test has failed in its process.
#[track_caller]
pub fn in_process(name: &str) -> bool {
    run(name, &[])
}

/// Runs a test in a process with a network namespace of its own, as [`in_process`] does. Root is
/// required.
///
/// # Panics
/// The test has failed in its process.
#[track_caller]
pub fn in_network(name: &str) -> bool {
    run(name, &["unshare", "--net"])
}

#[track_caller]
fn run(name: &str, launcher: &[&str]) -> bool {
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let program = env::current_exe().unwrap();
    let program = program.to_str().expect("a path in UTF-8");
    let words = [launcher, &[program, name, "--exact", "--nocapture"]].concat();
    let ended = Command::new(words[0]).args(&words[1..]).env(ALONE, "1").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&ended.stdout);
    let is_good = ended.status.success() && printed.contains("1 passed");
    assert!(is_good, "{printed}{}", text(&ended.stderr));
    false
}
