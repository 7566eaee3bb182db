//! Processes that inherit a socket: [`with_descriptor`].

use crate::started::{Folder, Process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// What makes a command of its arguments that has its standard input as descriptor 7.
pub const AS_SEVEN: [&str; 3] = ["-c", "exec \"$@\" 7<&0 </dev/null", "bash"];

/// Starts sanloom with this socket as descriptor 7, and waits until it is ready.
pub fn with_descriptor(folder: &Folder, end: OwnedFd, arguments: &[&str]) -> Process {
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let mut command = Command::new("bash");
    command.args(AS_SEVEN).arg(env!("CARGO_BIN_EXE_sanloom")).args(arguments);
    command.args(["--ready-fd", "1"]).stdin(end).stdout(Stdio::piped()).stderr(log);
    let mut process = Process(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{}", folder.log());
    process
}
