//! Records of the running instances of this user, for `sanloom ps` and `sanloom down`.
//!
//! `sanloom up` writes one JSON file per process into the user's runtime folder. A process that is
//! killed leaves its file behind; readers remove such files.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use sanloom_live::control::Control;
use sanloom_live::runtime::plan::LabPaths;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Folder of the records, in a folder of instances.
const INSTANCES: &str = "instances";

/// A running instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Running {
    /// Name of the lab.
    pub lab: String,
    /// The switch that the process runs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Number of the process.
    pub pid: u32,
    /// Time of the start in seconds since 1970.
    pub since_unix_s: u64,
    /// Absolute path of the lab file; `standard input` if it was read from there.
    pub file: String,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Path of the log of an instance in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// True if the lab runs in virtual time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// The record of this process, removed on drop.
#[derive(Debug)]
pub struct Record(PathBuf);

impl Drop for Record {
    fn drop(&mut self) {
        // A record that stays is removed by the next reader.
        let _ = fs::remove_file(&self.0);
    }
}

impl Running {
    /// Time since the start.
    pub fn age(&self) -> Duration {
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(self.since_unix_s));
        since.and_then(|since| SystemTime::now().duration_since(since).ok()).unwrap_or_default()
    }

    /// True if the process exists and has not ended.
    pub fn is_alive(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // A process of another user, such as a service, exists although it may not be signalled.
        let exists = |pid| matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM));
        pid.is_some_and(exists) && !self.is_zombie()
    }

    /// True if the process has ended and its parent has not waited for it.
    fn is_zombie(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // The state follows the name of the program, which may contain anything.
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    }

    /// Writes the record of this process.
    ///
    /// # Errors
    /// If the runtime folder or the file cannot be written.
    pub fn record(&self) -> io::Result<Record> {
        let folder = LabPaths::base().join(INSTANCES);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.json", self.pid));
        fs::write(&path, serde_json::to_vec(self)?)?;
        Ok(Record(path))
    }
}

/// Seconds since 1970.
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The running instances of this user and those of services, in the order of their start. Removes
/// records of processes that have ended.
pub fn all() -> Vec<Running> {
    let folders = LabPaths::bases().into_iter().map(|base| base.join(INSTANCES));
    let files = folders.flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<Running> = files.filter_map(|path| read(&path)).collect();
    found.sort_by_key(|running| (running.since_unix_s, running.pid));
    found
}

fn read(path: &Path) -> Option<Running> {
    let running: Running = sanloom_api::json::from_slice(&fs::read(path).ok()?).ok()?;
    if running.is_alive() && Control::answers(&running.control) {
        return Some(running);
    }
    if !running.is_alive() {
        let _ = fs::remove_file(path);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_test_support::wait;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_has_ended_is_not_alive_although_its_parent_has_not_waited_for_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let running = Running {
            lab: "lab".to_owned(),
            switch: None,
            pid: child.id(),
            since_unix_s: 0,
            file: "lab.toml".to_owned(),
            control: PathBuf::new(),
            log: None,
            simulated: false,
        };
        assert!(running.is_alive());
        drop(child.stdin.take());
        wait::until(|| "the process is alive".to_owned(), || !running.is_alive());
        assert!(Path::new(&format!("/proc/{}", child.id())).exists(), "its parent has not waited for it");
        child.wait().unwrap();
    }
}
