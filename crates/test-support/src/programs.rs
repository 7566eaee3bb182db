//! Runs programs of others.

use std::path::Path;
use std::process::{Command, Output};

/// Runs a program that must succeed, and returns its standard output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let (good, out, err) = try_run(program, arguments);
    assert!(good, "{program} {arguments:?} failed:\n{out}{err}");
    out
}

/// Runs a program that must fail, and returns both of its outputs.
pub fn fail(program: &str, arguments: &[&str]) -> String {
    let (good, out, err) = try_run(program, arguments);
    assert!(!good, "{program} {arguments:?} worked:\n{out}{err}");
    out + &err
}

/// Runs a program. Returns whether it succeeded, its standard output and its standard error.
pub fn try_run(program: &str, arguments: &[&str]) -> (bool, String, String) {
    let Output { status, stdout, stderr } = Command::new(program).args(arguments).output().expect(program);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

/// URI of an NBD export for libnbd and QEMU.
pub fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}
