//! What a test starts: a [`Folder`], and in it instances of sanloom and of others, each a [`Process`] that ends with the test.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A process is ready after this time, or never.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that goes with its owner, unless the test fails. Its file `log` has what was logged in it.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one. No other test may use its name.
    pub fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("sanloom-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> String {
        self.join(name).display().to_string()
    }

    /// What processes have logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.join("log")).unwrap_or_default()
    }

    /// Starts sanloom, and waits until it says that it is ready.
    pub fn sanloom(&self, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sanloom"));
        command.args(arguments);
        self.start(command)
    }

    /// Starts a command that ends in sanloom, and waits until that says that it is ready.
    pub fn start(&self, mut command: Command) -> Process {
        let log = File::options().create(true).append(true).open(self.join("log")).unwrap();
        command.args(["--ready-fd", "1"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = Process(command.spawn().unwrap());
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (said, heard) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = output.read_line(&mut line);
            let _ = said.send(line);
        });
        let line = heard.recv_timeout(PATIENCE);
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
        if thread::panicking() {
            eprintln!("{}\nkept: {}", self.log(), self.display());
        } else {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A process that ends with its owner.
pub struct Process(pub Child);

impl Process {
    /// Ends as in a crash.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.wait().unwrap();
    }

    /// Ends as an administrator ends it, and well.
    pub fn stop(&mut self) {
        assert_eq!(self.try_wait().unwrap(), None, "it has ended by itself");
        assert!(Command::new("kill").args(["-TERM", &self.id().to_string()]).status().unwrap().success());
        let begun = Instant::now();
        while self.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
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
