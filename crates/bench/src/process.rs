//! Child processes of beds: [`Process`]. A failure quotes the standard error of the child.

use crate::quote::quote;
use sanloom_console::exit::Failure;
use std::fmt::Display;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for the start of every part of the bed.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(20);

/// A process that is killed when the value is dropped.
pub(crate) struct Process {
    pub(crate) child: Child,
    name: String,
    /// File with the standard error.
    errors: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates the failure of a step.
pub(crate) fn failed(what: &str, error: impl Display) -> Failure {
    Failure::environment(format_args!("{what}: {error}"))
}

/// Creates a command for this program.
pub(crate) fn program() -> Result<Command, Failure> {
    Ok(Command::new(std::env::current_exe().map_err(|error| failed("cannot find this program", error))?))
}

impl Process {
    /// Starts a process; `name` is for messages and for the file of its standard error.
    pub(crate) fn start(mut command: Command, name: &str, folder: &Path) -> Result<Process, String> {
        let errors = folder.join(format!("{}.err", name.replace('/', "_")));
        let file = File::create(&errors).map_err(|error| format!("cannot create {}: {error}", errors.display()))?;
        command.stdin(Stdio::null()).stderr(file);
        let child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
        Ok(Process { child, name: name.to_owned(), errors })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the condition holds; `what` is a clause that describes it, in the past tense.
    ///
    /// # Errors
    /// If the process ends before, or the time limit passes; with the end of its standard error.
    pub(crate) fn wait_until(&mut self, what: &str, mut holds: impl FnMut() -> bool) -> Result<(), String> {
        self.wait_for(what, || Ok(holds()))
    }

    /// Like [`Process::wait_until`], but an error of the condition ends the wait.
    ///
    /// # Errors
    /// As [`Process::wait_until`], and the error of the condition.
    pub(crate) fn wait_for(
        &mut self,
        what: &str,
        mut holds: impl FnMut() -> Result<bool, String>,
    ) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            if holds()? {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.ended(what, status));
            }
            if begun.elapsed() > TIME_LIMIT {
                return Err(self.too_slow(what));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn too_slow(&self, what: &str) -> String {
        format!("{} runs, but {} s passed before {what}{}", self.name, TIME_LIMIT.as_secs(), self.quoted())
    }

    fn ended(&self, what: &str, status: ExitStatus) -> String {
        format!("{} ended before {what} ({status}){}", self.name, self.quoted())
    }

    /// Returns the end of the standard error as part of a sentence.
    pub(crate) fn quoted(&self) -> String {
        quote("it", &fs::read(&self.errors).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (PathBuf, Process) {
        let folder = std::env::temp_dir().join(format!("sanloom-process-{}-{}", std::process::id(), script.len()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let process = Process::start(command, "the child", &folder).unwrap();
        (folder, process)
    }

    #[test]
    fn the_end_of_a_child_is_reported_at_once_with_its_output() {
        let begun = Instant::now();
        let (folder, mut child) = shell("echo 'Unknown protocol' >&2; echo >&2; exit 3");
        let error = child.wait_until("the file appeared", || false).unwrap_err();
        assert!(begun.elapsed() < TIME_LIMIT / 2);
        let expected = "the child ended before the file appeared (exit status: 3); it printed: Unknown protocol";
        assert_eq!(error, expected);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_child_that_cannot_be_started_is_named() {
        let Err(error) = Process::start(Command::new("/nonexistent/program"), "tgtd", &std::env::temp_dir()) else {
            panic!("it started");
        };
        assert!(error.starts_with("tgtd cannot be started: "), "{error}");
    }

    #[test]
    fn a_step_that_fails_for_good_is_not_repeated() {
        let begun = Instant::now();
        let (folder, mut child) = shell("sleep 60; exit 0");
        let error = child.wait_for("the target existed", || Err("tgtadm failed".to_owned())).unwrap_err();
        assert_eq!(error, "tgtadm failed");
        assert!(begun.elapsed() < TIME_LIMIT / 2);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_child_that_is_too_slow_is_reported_in_a_whole_sentence() {
        let (folder, child) = shell("echo 'no permission' >&2; exec sleep 61");
        while fs::read(&child.errors).unwrap().is_empty() {
            thread::yield_now();
        }
        let expected = "the child runs, but 20 s passed before the file appeared; it printed: no permission";
        assert_eq!(child.too_slow("the file appeared"), expected);
        drop(child);
        fs::remove_dir_all(folder).unwrap();
    }
}
