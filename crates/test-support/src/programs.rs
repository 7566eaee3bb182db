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

/// Names of the exports of an NBD server, in its order. `uri` is that of any export.
pub fn exports(uri: &str) -> Vec<String> {
    let listed = run("nbdinfo", &["--list", "--json", uri]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap_or_else(|error| panic!("{error}: {listed}"));
    let names = listed["exports"].as_array().into_iter().flatten().map(|export| &export["export-name"]);
    names.map(|name| name.as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()).collect()
}

/// URI of the first export of an NBD server.
pub fn first_export(socket: &Path) -> String {
    let names = exports(&uri(socket, ""));
    uri(socket, names.first().unwrap_or_else(|| panic!("no export at {}", socket.display())))
}

/// URI of an NBD export for libnbd and QEMU.
pub fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}
