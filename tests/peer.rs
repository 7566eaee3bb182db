//! Programs of somebody else, and whether they are there.

use std::path::Path;
use std::process::{Command, Output};

/// A program, or nothing where it is not installed: then the test says so and ends. In CI that is a failure.
pub fn find(program: &str) -> Option<&str> {
    // libiscsi's programs know no `--version`, and end with an error after their help; not every other one knows what a version is.
    let argument = if program.starts_with("iscsi-") { "--help" } else { "--version" };
    let found = Command::new(program).arg(argument).output().is_ok();
    found.then_some(program).or_else(|| skip(&format!("{program} is not installed")))
}

/// Why a test ends early.
pub fn skip<T>(why: &str) -> Option<T> {
    let required = std::env::var("SANLOOM_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "{why}, but SANLOOM_REQUIRE_PEERS=1");
    println!("skipped: {why}");
    None
}

/// Runs a program, and gives back what it wrote.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let (good, out, err) = try_run(program, arguments);
    assert!(good, "{program} {arguments:?} failed:\n{out}{err}");
    out
}

/// Runs a program that fails, and gives back what it wrote on both outputs.
pub fn fail(program: &str, arguments: &[&str]) -> String {
    let (good, out, err) = try_run(program, arguments);
    assert!(!good, "{program} {arguments:?} worked:\n{out}{err}");
    out + &err
}

/// Runs a program; whether it worked, and what it wrote on each output.
pub fn try_run(program: &str, arguments: &[&str]) -> (bool, String, String) {
    let Output { status, stdout, stderr } = Command::new(program).args(arguments).output().expect(program);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

/// The address of an export for libnbd and QEMU.
pub fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}
