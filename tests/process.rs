//! What a test sees of a process, and takes from it.

use std::fs;
use std::process::Command;
use std::time::Duration;

/// Numbers in a folder of the process: `fd`, `task`.
pub fn entries(id: u32, folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{id}/{folder}")).unwrap();
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).collect()
}

/// Processor time that a process takes while `time` passes.
pub fn busy(id: u32, time: Duration) -> Duration {
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        // User and system time, in hundredths of a second.
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(time);
    Duration::from_millis((ticks() - before) * 10)
}

/// A process that gets no descriptor more.
pub struct Held {
    id: u32,
}

/// Lets a process have no descriptor more than it has.
pub fn hold_descriptors(id: u32) -> Held {
    let used = entries(id, "fd");
    let first_free = (0..).find(|number| !used.contains(number)).unwrap_or_default();
    limit(id, &format!("{first_free}:"));
    Held { id }
}

impl Held {
    /// It may have some again.
    pub fn lift(self) {
        limit(self.id, "1024:");
    }
}

fn limit(id: u32, files: &str) {
    let set = Command::new("prlimit").args(["--pid", &id.to_string(), &format!("--nofile={files}")]).status();
    assert!(set.unwrap().success());
}
