//! The tools of Open-FCoE under their own names, as they are called on a host.

use crate::initiator::bed::Bed;
use crate::sanloom::SANLOOM;
use sanloom_test_support::programs::{fail, run, try_run};
use sanloom_test_support::wait;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

#[test]
fn every_tool_is_one_by_its_name() {
    let bed = Bed::not_started("by-name", "dgram", &[]);
    for tool in ["esxcli", "fcnsq", "fcoeadm", "fcoemon", "fcping", "fipvlan"] {
        let link = bed.path(tool);
        symlink(SANLOOM, &link).unwrap();
        let (own, other) = (run(&link, &["--help"]), run(SANLOOM, &[tool, "--help"]));
        assert_eq!(own, other.replace(&format!("sanloom {tool}"), tool), "{tool}");
        // An option that the tool does not have.
        let (good, _, output) = try_run(&link, &["--nothing"]);
        assert!(!good && output.contains("--nothing"), "{tool}: {output}");
    }
}

/// Without `-f` the command returns when the monitor answers, and the monitor continues.
#[test]
fn fcoemon_goes_into_the_background() {
    let bed = Bed::not_started("background", "dgram", &[]);
    let (link, etc, folder) = (bed.path("fcoemon"), bed.path("etc"), bed.path("run"));
    symlink(SANLOOM, &link).unwrap();
    fs::create_dir_all(&etc).unwrap();
    // The monitor logs to the command's log and keeps it open.
    let output = bed.path("said");
    let mut command = Command::new(&link);
    command.args(["--config-folder", &etc, "--run-folder", &folder]).stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.stderr(File::create(&output).unwrap()).status().unwrap().success());
    let text = fs::read_to_string(&output).unwrap();
    let number = text.split("fcoemon runs as process ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let number = number.unwrap_or_else(|| panic!("{text}"));
    assert!(fail(SANLOOM, &["fcoeadm", "--run-folder", &folder, "-i"]).contains("no FCoE interfaces created"));
    assert!(fail(SANLOOM, &["fcoeadm", "--run-folder", &folder, "-d", "eth0"]).contains("no connection created"));
    // Exactly one monitor runs.
    let mut second = Command::new(&link);
    second.args(["--config-folder", &etc, "--run-folder", &folder]).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(!second.status().unwrap().success());
    run("kill", &["-TERM", number]);
    wait::until(
        || "it does not end".to_owned(),
        || fail(SANLOOM, &["fcoeadm", "--run-folder", &folder, "-d", "eth0"]).contains("could not connect to fcoemon"),
    );
}
