//! Programs of libiscsi, QEMU and others, and whether they are there.

use std::process::Command;

/// A program, or nothing where it is not installed: then the test says so and ends. In CI that is a failure. libiscsi's
/// programs know no `--version`, and end with an error after their help.
pub fn find(program: &'static str) -> Option<&'static str> {
    let argument = if program.starts_with("iscsi-") { "--help" } else { "--version" };
    let found = Command::new(program).arg(argument).output().is_ok();
    found.then_some(program).or_else(|| skip(&format!("{program} is not installed")))
}

/// Why a test ends early.
pub fn skip(why: &str) -> Option<&'static str> {
    let required = std::env::var("SANLOOM_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "{why}, but SANLOOM_REQUIRE_PEERS=1");
    println!("skipped: {why}");
    None
}

/// Runs a program that has to work, and gives back what it wrote.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let (good, said) = try_run(program, arguments);
    assert!(good, "{program} {arguments:?}\n{said}");
    said
}

/// Runs a program; whether it worked, and what it wrote on both outputs.
pub fn try_run(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output().expect(program);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}
