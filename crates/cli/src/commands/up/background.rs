//! `sanloom up --detach`: the instance as a process in the background.

use super::Args;
use sanloom_console::exit::{self, Failure};
use sanloom_console::interrupt;
use sanloom_console::output::{self, shell_word};
use sanloom_fc::san::Lab;
use sanloom_live::runtime::plan::LabPaths;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Interval between checks for Ctrl-C.
const STEP: Duration = Duration::from_millis(50);
/// Lines of the log that are shown if the instance does not start.
const LOG_LINES: usize = 20;

/// Starts this command again in the background, and waits until hosts can log in. `text` is the
/// text of the lab.
///
/// # Errors
/// If the process cannot be started, or ends before it is ready. The exit code is that of the
/// process.
pub(super) fn start(args: &Args, lab: &Lab, text: &str) -> Result<(), Failure> {
    let lab_paths = LabPaths::of(lab);
    lab_paths.make().map_err(Failure::environment)?;
    let log = lab_paths.control(args.switch.as_deref()).with_extension("log");
    // The log of a running instance must not be touched.
    super::check_not_running(lab, args.switch.as_deref()).map_err(super::failure)?;
    let new_log = log.with_extension(format!("{}.log", std::process::id()));
    let mut child = spawn(args, &log, &new_log)?;
    let pid = child.id();
    if let Some(mut input) = child.stdin.take() {
        // A process that ends before it has read the lab has logged the reason.
        let _ = input.write_all(text.as_bytes());
    }
    let is_ready = wait(&mut child);
    if !matches!(is_ready, Ok(true)) {
        let outcome = is_ready.and_then(|_| failure(child, &new_log));
        let _ = fs::remove_file(&new_log);
        return outcome;
    }
    fs::rename(&new_log, &log).map_err(Failure::environment)?;
    let again = if is_stdin(args) { lab.name.clone() } else { args.file.path.display().to_string() };
    output::print(&format!(
        "{} is up as process {pid}; its log is {}; end it with `sanloom down {}`\n",
        lab.name,
        log.display(),
        shell_word(&again)
    ))
}

fn is_stdin(args: &Args) -> bool {
    args.file.path == Path::new("-")
}

/// Returns the failure of a process that has ended before it was ready, with the end of its log.
fn failure(mut child: Child, log: &Path) -> Result<(), Failure> {
    let status = child.wait().map_err(Failure::environment)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::ENVIRONMENT);
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let message = match lines[lines.len().saturating_sub(LOG_LINES)..].join("\n") {
        empty if empty.is_empty() => format!("error: the instance ended before it was ready: {status}"),
        lines => lines,
    };
    Err(Failure { code: if code == exit::OK { exit::ENVIRONMENT } else { code }, message, coloured: None })
}

/// Starts a new session, so that the end of the terminal does not end the process.
pub(super) fn leave_terminal() {
    // The only error is that the process leads a session already.
    let _ = rustix::process::setsid();
}

/// Runs the same arguments without `--detach`. The log goes to a new file, which gets the name
/// `log` when the instance is ready.
fn spawn(args: &Args, log: &Path, new_log: &Path) -> Result<Child, Failure> {
    let failed = |what: &str, error: std::io::Error| Failure::environment(format_args!("cannot {what}: {error}"));
    let program = std::env::current_exe().map_err(|error| failed("find this program", error))?;
    let absolute: PathBuf = std::path::absolute(log).unwrap_or_else(|_| log.to_owned());
    let file = File::create(new_log);
    let file = file.map_err(|error| failed(&format!("create the log {}", new_log.display()), error))?;
    let same = std::env::args_os().skip(1).filter(|word| word != "--detach");
    let stdin = if is_stdin(args) { Stdio::piped() } else { Stdio::null() };
    Command::new(program)
        .args(same)
        .args(["--ready-fd", "1", "--background"])
        .arg(&absolute)
        .env("NO_COLOR", "1")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(file)
        .spawn()
        .map_err(|error| failed("start the instance", error))
}

/// Waits until the instance is ready; false if it has ended before.
fn wait(child: &mut Child) -> Result<bool, Failure> {
    let Some(stdout) = child.stdout.take() else { return Ok(false) };
    let (sender, ready) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        // The receiver is gone after Ctrl-C.
        let _ = sender.send(read.is_ok() && line == "ready\n");
    });
    loop {
        match ready.recv_timeout(STEP) {
            Ok(is_ready) => return Ok(is_ready),
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
            Err(RecvTimeoutError::Timeout) if interrupt::requested() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::interrupted("the instance was not ready yet, and was ended"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
