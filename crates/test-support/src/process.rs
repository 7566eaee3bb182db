//! Inspection and resource limits of a process, for tests.

use std::fs;
use std::process::Command;

/// Numeric entries in a folder of `/proc/ID`, such as `fd` or `task`.
pub fn entries(id: u32, folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{id}/{folder}")).unwrap();
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).collect()
}

/// Processor time that a process has used, in units of 10 ms.
pub fn processor_ticks(id: u32) -> u64 {
    let fields = stat(id);
    // Of user and of system.
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Returns whether the main thread of a process waits for an event.
pub fn is_asleep(id: u32) -> bool {
    stat(id)[0] == "S"
}

/// Fields of `/proc/ID/stat` from the state on.
fn stat(id: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').map(str::to_owned).collect()
}

/// Number of times that the main thread of a process has given up its processor to wait. A thread
/// that polls in a loop never does.
pub fn voluntary_switches(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

/// A process that cannot open further descriptors.
pub struct Held {
    id: u32,
}

/// Limits the descriptors of a process to those that it has open.
pub fn hold_descriptors(id: u32) -> Held {
    let used = entries(id, "fd");
    let first_free = (0..).find(|number| !used.contains(number)).unwrap_or_default();
    limit(id, &format!("{first_free}:"));
    Held { id }
}

impl Held {
    /// Removes the limit.
    pub fn lift(self) {
        limit(self.id, "1024:");
    }
}

fn limit(id: u32, files: &str) {
    let set = Command::new("prlimit").args(["--pid", &id.to_string(), &format!("--nofile={files}")]).status();
    assert!(set.unwrap().success());
}
