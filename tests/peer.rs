//! Programs of somebody else, and whether they are there.

use std::path::Path;
use std::process::{Command, Output};

/// A program, or nothing where it is not installed: then the test says so and ends. In CI that is a failure.
pub fn find(program: &str) -> Option<&str> {
    // Not every program knows what a version is.
    if Command::new(program).arg("--version").output().is_ok() {
        return Some(program);
    }
    let required = std::env::var("SANLOOM_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "{program} is not installed, but SANLOOM_REQUIRE_PEERS=1");
    println!("skipped: {program} is not installed");
    None
}

/// Runs a program, and gives back what it wrote.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect(program);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {:?}\n{out}{err}", output.status);
    out
}

/// Runs a program that fails, and gives back what it wrote on both outputs.
pub fn fail(program: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = Command::new(program).args(arguments).output().expect(program);
    let said = text(&stdout) + &text(&stderr);
    assert!(!status.success(), "{program} {arguments:?} worked:\n{said}");
    said
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The address of an export for libnbd and QEMU.
pub fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}
