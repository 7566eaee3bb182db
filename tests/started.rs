//! Processes of ours that say when they are ready.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// It is ready after this time, or never.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a process, which logs into a file, and waits until it says that it is ready.
pub fn started(mut command: Command, log: &Path) -> Child {
    let file = File::options().create(true).append(true).open(log).unwrap();
    command.args(["--ready-fd", "1"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (said, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = output.read_line(&mut line);
        let _ = said.send(line);
    });
    let line = heard.recv_timeout(PATIENCE);
    if line.as_deref() != Ok("ready\n") {
        let _ = child.kill();
        let _ = child.wait();
        panic!("not ready, but {line:?}: {command:?}\n{}", fs::read_to_string(log).unwrap_or_default());
    }
    child
}
