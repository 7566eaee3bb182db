//! The virtual machine of `tests/guest`: [`Guest`].

use crate::started::AS_SEVEN;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZero;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Number of tests with guests that run at the same time.
static RUNNING: Mutex<usize> = Mutex::new(0);
/// Signals that such a test has ended.
static ENDED: Condvar = Condvar::new();

/// Begin of every script.
///
/// It prints the counters of the network of the guest every second. If the test fails, they show
/// whether frames still arrived. Words that the test sends to the console become files;
/// `received WORD` tests for one, and `wait_for WORD` waits for it.
const PRELUDE: &str = r#"
stty -echo </dev/console
while sleep 1; do
    read -r up idle </proc/uptime
    while read -r line; do case $line in eth0:*) echo "net: $up $line" ;; esac; done </proc/net/dev
    while read -r line; do case $line in *virtio1-input*) echo "net: $up $line" ;; esac; done </proc/interrupts
done &
while read -r word; do : >"/tmp/received-$word"; done </dev/console &
received() { [ -e "/tmp/received-$1" ]; }
wait_for() { until received "$1"; do usleep 20000; done; }
"#;

/// Lines of the watch begin with this; [`Guest`] keeps them apart.
const WATCHED: &str = "net: ";

/// Number of lines of the watch that a failed test prints.
const WATCHED_LINES: usize = 40;

/// The permission of a test to run guests.
pub struct Emulator {
    image: &'static Path,
}

/// The network card of a guest, and the longest time that the guest runs.
pub struct Machine<'a> {
    pub mac: &'a str,
    /// As `-netdev` of QEMU, without `id=`.
    pub netdev: &'a str,
    /// Descriptor 7 of QEMU.
    pub seven: Stdio,
    pub seconds: u32,
}

/// A running guest. On drop it ends; if the test fails, its console and its network are printed.
pub struct Guest {
    process: Child,
    /// Lines of the console. A thread reads them, so the guest never waits for the test.
    lines: Receiver<String>,
    monitor: PathBuf,
    /// Named pipe with the input of the console.
    input: PathBuf,
    /// Console so far.
    console: String,
    /// Length of the part of `console` that [`Guest::wait_for_line`] has returned.
    returned: usize,
    /// Lines of the watch.
    watched: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder with the guest, which is built on the first call.
fn image() -> &'static Path {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::var_os("SANLOOM_GUEST").map_or_else(|| root().join("target/guest"), PathBuf::from);
        let built = Command::new(root().join("tests/guest/build.sh")).arg(&folder).output();
        let built = built.map_err(|error| error.to_string())?;
        if built.status.success() { Ok(folder) } else { Err(String::from_utf8_lossy(&built.stderr).into_owned()) }
    });
    folder.as_ref().unwrap_or_else(|reason| panic!("tests/guest/build.sh failed: {reason}"))
}

impl Emulator {
    /// Waits until fewer tests run guests than there are processors: more guests only slow each
    /// other down.
    pub fn new() -> Emulator {
        let image = image();
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running =
            ENDED.wait_while(running, |running| *running >= processors).unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        Emulator { image }
    }

    /// Starts a guest that runs `script`. Its files are in `folder` and begin with `name`.
    pub fn start(&self, folder: &Path, name: &str, machine: Machine<'_>, script: &str) -> Guest {
        let file = folder.join(format!("{name}.sh"));
        fs::write(&file, PRELUDE.to_owned() + script).unwrap();
        let monitor = folder.join(format!("{name}.monitor"));
        let input = folder.join(format!("{name}.input"));
        let _ = fs::remove_file(&input);
        mknodat(CWD, &input, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut command = Command::new("bash");
        command.args(AS_SEVEN).arg(root().join("tests/guest/run.sh")).arg(self.image).arg(file);
        command.args([machine.mac, machine.netdev, &machine.seconds.to_string()]).arg(&monitor).arg(&input);
        command.stdin(machine.seven).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Guest { process, lines, monitor, input, console: String::new(), returned: 0, watched: Vec::new() }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

impl Default for Emulator {
    fn default() -> Self {
        Self::new()
    }
}

impl Guest {
    /// Reads a line of the console; `None` after the end.
    fn read_line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.lines.recv().ok().map(|line| self.keep(line))? {
                return Some(line);
            }
        }
    }

    /// Appends a line to the console, or to the lines of the watch. Returns it in the first case.
    fn keep(&mut self, line: String) -> Option<String> {
        if line.starts_with(WATCHED) {
            self.watched.push(line);
            return None;
        }
        self.console.push_str(&line);
        Some(line)
    }

    /// Waits for a line that begins like this. Returns the console since the last call.
    #[track_caller]
    pub fn wait_for_line(&mut self, beginning: &str) -> String {
        while let Some(line) = self.read_line() {
            if line.starts_with(beginning) {
                return self.new_console();
            }
        }
        panic!("the guest ended before a line that begins with {beginning:?}");
    }

    /// Waits for this number of lines that begin like this and are printed from now on.
    #[track_caller]
    pub fn wait_for_new_lines(&mut self, beginning: &str, lines: u32) {
        while let Ok(line) = self.lines.try_recv() {
            self.keep(line);
        }
        for _ in 0..lines {
            self.wait_for_line(beginning);
        }
    }

    /// Sends a word to the script, which tests for it with `received` or `wait_for`.
    pub fn send(&self, word: &str) {
        writeln!(File::options().write(true).open(&self.input).unwrap(), "{word}").unwrap();
    }

    fn new_console(&mut self) -> String {
        let new = self.console[self.returned..].to_owned();
        self.returned = self.console.len();
        new
    }

    /// Waits for the end of the script, which must succeed. Returns the console since the last
    /// [`wait_for_line`](Guest::wait_for_line).
    pub fn end(mut self) -> String {
        while self.read_line().is_some() {}
        let status = self.process.wait().unwrap();
        assert!(status.success(), "the script of the guest failed: {status}");
        self.new_console()
    }

    /// Whole console so far.
    pub fn console(&self) -> &str {
        &self.console
    }

    /// Unplugs the cable of the network card, or plugs it in.
    pub fn link(&self, up: bool) {
        let mut monitor = self.monitor();
        writeln!(monitor, "set_link n0 {}", if up { "on" } else { "off" }).unwrap();
        // The monitor prints its prompt after the greeting and again after the command.
        let mut printed = String::new();
        let mut buffer = [0; 1024];
        while printed.matches("(qemu)").count() < 2 {
            let got = monitor.read(&mut buffer).unwrap();
            assert_ne!(got, 0, "the monitor closed the connection: {printed}");
            printed.push_str(&String::from_utf8_lossy(&buffer[..got]));
        }
    }

    /// Ends the guest at once.
    pub fn kill(mut self) {
        let mut monitor = self.monitor();
        writeln!(monitor, "quit").unwrap();
        // The monitor closes the connection after it has read the command.
        let _ = monitor.read_to_end(&mut Vec::new());
        let _ = self.process.wait();
    }

    fn monitor(&self) -> UnixStream {
        let monitor = UnixStream::connect(&self.monitor).unwrap();
        monitor.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        monitor
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.process), Signal::TERM);
            while self.read_line().is_some() {}
            let _ = self.process.wait();
        }
        if thread::panicking() {
            let from = self.watched.len().saturating_sub(WATCHED_LINES);
            eprintln!("console of the guest:\n{}\nits network:\n{}", self.console, self.watched[from..].concat());
        }
    }
}
