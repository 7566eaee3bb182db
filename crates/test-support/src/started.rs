//! Resources that a test starts: a [`Folder`], and in it instances of sanloom and of other
//! programs. Each is a [`Process`] that ends with the test.

use crate::wait::{self, TIMEOUT};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Arguments of `bash` that run a command with the standard input of `bash` as descriptor 7.
pub const AS_SEVEN: [&str; 3] = ["-c", "exec \"$@\" 7<&0 </dev/null", "bash"];

/// Maximum number of lines of the log that a failed test prints.
const LOG_LINES: usize = 300;

/// A folder that is removed on drop, unless the test fails. Its file `log` contains the log of all
/// processes.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder. Several tests may use the same name.
    pub fn new(name: &str) -> Folder {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("sanloom-{}-{number}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// Path of a file in the folder.
    pub fn path(&self, name: &str) -> String {
        self.join(name).display().to_string()
    }

    /// Log of all processes so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.join("log")).unwrap_or_default()
    }

    /// Number of lines of the log that contain a text.
    pub fn logged(&self, text: &str) -> usize {
        self.log().lines().filter(|line| line.contains(text)).count()
    }

    /// Times of the lines of the log that contain a text, since the start of the day.
    pub fn logged_at(&self, text: &str) -> Vec<Duration> {
        let log = self.log();
        let lines = log.lines().filter(|line| line.contains(text));
        let time = |line: &str| {
            let (_, time) = line.split_once('T')?;
            let units: Vec<f64> = time.split_once('Z')?.0.split(':').filter_map(|unit| unit.parse().ok()).collect();
            Some(Duration::from_secs_f64((units.first()? * 60.0 + units.get(1)?) * 60.0 + units.get(2)?))
        };
        lines.map(|line| time(line).unwrap_or_else(|| panic!("no time in {line}"))).collect()
    }

    /// Waits until this number of lines of the log contain a text.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str, lines: usize) {
        wait::until(|| format!("{lines} log lines with {text:?}"), || self.logged(text) >= lines);
    }

    /// Requires that no process has logged an error or a panic.
    #[track_caller]
    pub fn assert_no_errors(&self) {
        let log = self.log();
        let errors: Vec<&str> =
            log.lines().filter(|line| line.contains("ERROR") || line.contains("panicked")).take(10).collect();
        assert!(errors.is_empty(), "errors in the log:\n{}", errors.join("\n"));
    }

    /// Starts a command that runs sanloom, and waits until sanloom reports that it is ready.
    pub fn start(&self, mut command: Command) -> Process {
        command.stdin(Stdio::null());
        self.ready(command)
    }

    /// Starts sanloom with `descriptor` as descriptor 7 and waits until it reports that it is
    /// ready.
    pub fn start_with_descriptor(&self, sanloom: &str, descriptor: OwnedFd, arguments: &[&str]) -> Process {
        let mut command = Command::new("bash");
        command.args(AS_SEVEN).arg(sanloom).args(arguments).stdin(descriptor);
        self.ready(command)
    }

    fn ready(&self, mut command: Command) -> Process {
        let log = File::options().create(true).append(true).open(self.join("log")).unwrap();
        command.args(["--ready-fd", "1"]).stdout(Stdio::piped()).stderr(log);
        let mut process = Process(command.spawn().unwrap());
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = output.read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(TIMEOUT);
        assert!(line.as_deref() == Ok("ready\n"), "not ready, but {line:?}: {command:?}\n{}", self.log());
        process
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The message of the panic is printed before this, so the reason precedes the log.
        if thread::panicking() {
            let log = self.log();
            let lines = log.lines().count();
            let skipped = lines.saturating_sub(LOG_LINES);
            let last: Vec<&str> = log.lines().skip(skipped).collect();
            eprintln!("kept: {}\nlog, last {} of {lines} lines:\n{}", self.display(), last.len(), last.join("\n"));
        } else {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A process that ends on drop.
pub struct Process(pub Child);

impl Process {
    /// Kills the process without a shutdown, as in a crash.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.wait().unwrap();
    }

    /// Stops the process with SIGTERM and requires exit code 0.
    pub fn stop(&mut self) {
        assert_eq!(self.try_wait().unwrap(), None, "it has ended by itself");
        let id = Pid::from_child(self);
        kill_process(id, Signal::TERM).unwrap();
        let end = pidfd_open(id, PidfdFlags::empty()).unwrap();
        let timeout = Timespec { tv_sec: TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timeout)).unwrap();
        assert_eq!(ended, 1, "it does not end");
        assert_eq!(self.wait().unwrap().code(), Some(0));
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.wait();
    }
}
