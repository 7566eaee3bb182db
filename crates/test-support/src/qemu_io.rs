//! Data verification of a disk with QEMU: [`write_and_verify`], and under failures [`QemuIo`] and
//! [`Writer`].

use crate::programs::run;
use crate::started::Process;
use crate::wait;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Writes to an export of at least 64 MiB with every kind of request, and reads the data back.
pub fn write_and_verify(uri: &str) {
    let commands = [
        "write -P 0xab 0 4k",
        "write -f -P 0xcd 1M 1M",
        "aio_write -P 0x22 16M 4M",
        "aio_write -P 0x33 24M 64k",
        "aio_write -P 0x44 32M 512",
        "aio_flush",
        "write -z 1M 64k",
        "discard 1088k 64k",
        "flush",
        "read -P 0xab 0 4k",
        // The discarded range is not read, because its contents are undefined.
        "read -P 0 1M 64k",
        "read -P 0xcd 1152k 896k",
        "read -P 0x22 16M 4M",
        "read -P 0x33 24M 64k",
        "read -P 0x44 32M 512",
    ];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
    arguments.push(uri);
    let output = run("qemu-io", &arguments);
    assert!(!output.contains("failed") && !output.contains("rror"), "{output}");
}

/// Prompt after which qemu-io reads a command.
const PROMPT: &[u8] = b"qemu-io> ";

/// A running qemu-io, which executes one command after the other. It ends on drop.
pub struct QemuIo {
    process: Process,
    commands: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl QemuIo {
    /// Opens a disk and waits until qemu-io reads commands.
    ///
    /// # Panics
    /// If the disk cannot be opened.
    pub fn open(uri: &str) -> QemuIo {
        QemuIo::open_with(uri, &[])
    }

    /// The same with further arguments.
    pub fn open_with(uri: &str, more: &[&str]) -> QemuIo {
        let mut command = Command::new("qemu-io");
        command.args(["-f", "raw"]).args(more).arg(uri).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process(command.spawn().unwrap());
        let (commands, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut opened = QemuIo { process, commands, output: BufReader::new(output) };
        opened.result();
        opened
    }

    /// Starts a command; [`result`](QemuIo::result) waits for its end. An asynchronous command
    /// (`aio_write`) ends when its request has been queued.
    pub fn start(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
    }

    /// Waits until the command has ended, and returns its output.
    ///
    /// # Panics
    /// If qemu-io has ended.
    pub fn result(&mut self) -> String {
        let mut printed = Vec::new();
        while !printed.ends_with(PROMPT) {
            let more = self.output.fill_buf().unwrap();
            assert!(!more.is_empty(), "qemu-io has ended: {}", String::from_utf8_lossy(&printed));
            let bytes = more.len();
            printed.extend_from_slice(more);
            self.output.consume(bytes);
        }
        String::from_utf8_lossy(&printed[..printed.len() - PROMPT.len()]).into_owned()
    }

    /// Executes a command, which must succeed, and returns its output.
    pub fn run(&mut self, command: &str) -> String {
        self.start(command);
        let printed = self.result();
        assert!(!printed.contains("failed") && !printed.contains("rror"), "{command}: {printed}");
        printed
    }

    /// Closes the disk and waits for the end of qemu-io.
    pub fn close(mut self) {
        self.start("quit");
        assert!(self.process.wait().unwrap().success());
    }

    /// Ends qemu-io without closing the disk.
    pub fn kill(mut self) {
        self.process.kill();
    }
}

/// A thread that writes to a disk and verifies what it reads, one command after the other, round
/// after round, until it is stopped.
pub struct Writer {
    finished: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Writer {
    /// Starts rounds of qemu-io on a disk, each with a login of its own. `commands` returns the
    /// commands of a round, by its number. At least `rounds` rounds are completed.
    pub fn start(uri: &str, rounds: u32, commands: impl Fn(u32) -> Vec<String> + Send + 'static) -> Writer {
        let uri = uri.to_owned();
        let open = move |last: Option<QemuIo>| {
            last.into_iter().for_each(QemuIo::close);
            QemuIo::open(&uri)
        };
        Writer::start_with(open, rounds, commands)
    }

    /// The same with the one login of this disk, which is closed after the last round.
    pub fn start_on(disk: QemuIo, rounds: u32, commands: impl Fn(u32) -> Vec<String> + Send + 'static) -> Writer {
        let mut first = Some(disk);
        let keep = move |last: Option<QemuIo>| last.or(first.take()).expect("each round returns the disk");
        Writer::start_with(keep, rounds, commands)
    }

    /// Starts rounds; `open` returns the disk of a round, from that of the round before.
    fn start_with(
        mut open: impl FnMut(Option<QemuIo>) -> QemuIo + Send + 'static,
        rounds: u32,
        commands: impl Fn(u32) -> Vec<String> + Send + 'static,
    ) -> Writer {
        let (finished, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stopped) = (finished.clone(), stop.clone());
        let thread = thread::spawn(move || {
            let (mut round, mut last) = (0, None);
            while !stopped.load(Ordering::Relaxed) || round < rounds {
                let mut disk = open(last);
                for command in commands(round) {
                    disk.run(&command);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                last = Some(disk);
                round += 1;
            }
            last.into_iter().for_each(QemuIo::close);
            round
        });
        Writer { finished, stop, thread }
    }

    /// Number of finished commands.
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Waits until this number of further commands have finished.
    ///
    /// # Panics
    /// If a command has failed.
    #[track_caller]
    pub fn wait_for(&self, commands: u64) {
        let end = self.finished() + commands;
        wait::until(
            || format!("{commands} further commands: {} of {end}", self.finished()),
            || {
                assert!(!self.thread.is_finished(), "a command of the writer has failed");
                self.finished() >= end
            },
        );
    }

    /// Waits for the end of the current round. Returns the number of rounds.
    pub fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
