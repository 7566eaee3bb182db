//! Memory of `sanloom trace inspect` for a trace of any length, which comes through a pipe.

use crate::sanloom::SANLOOM;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// Limit of the peak memory, in KiB.
const LIMIT_KIB: u64 = 64 * 1024;

/// Requests of a block of text.
const LINES: usize = 4_096;

/// First digits of the address in a line, and digits of its seconds.
const ADDRESS: std::ops::Range<usize> = 3..11;
const SECONDS: std::ops::Range<usize> = 23..34;

/// A second of requests in the format SPC. All lines have the same length, so that a block becomes
/// the next one by new digits.
struct Block {
    text: Vec<u8>,
    line: usize,
}

impl Block {
    fn new() -> Block {
        let mut text = String::new();
        for at in 0..LINES {
            let (device, low, size) = (at * 7 % 61, at * 2_741 % 10_000, [512, 4_096, 8_192][at % 3]);
            let (op, us) = (if at % 4 == 0 { 'w' } else { 'r' }, at * 200);
            text.push_str(&format!("{device:02},00000000{low:04},{size:04},{op},{:011}.{us:06}\n", 0));
        }
        Block { line: text.len() / LINES, text: text.into() }
    }

    /// Moves the block to a second of the trace, and to other addresses.
    fn set(&mut self, second: u64) {
        let (address, seconds) = (format!("{:08}", second * 79_190_003 % 100_000_000), format!("{second:011}"));
        for line in self.text.chunks_mut(self.line) {
            line[ADDRESS].copy_from_slice(address.as_bytes());
            line[SECONDS].copy_from_slice(seconds.as_bytes());
        }
    }
}

/// Peak memory of a process in KiB; `None` after its end.
fn peak_kib(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find(|line| line.starts_with("VmHWM:"))?.split_whitespace().nth(1)?.parse().ok()
}

/// `SANLOOM_TRACE_MB` sets the length of the trace; `cargo xtask soak` sends 10 GB.
#[test]
fn a_trace_of_any_length_is_inspected_in_64_mib() {
    let mb = std::env::var("SANLOOM_TRACE_MB").map_or(30, |mb| mb.parse().expect("a number of MB"));
    let mut block = Block::new();
    let blocks = (mb * 1_000_000_u64).div_ceil(block.text.len() as u64);
    let mut command = Command::new(SANLOOM);
    let command = command.args(["trace", "inspect", "-", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let (id, mut input) = (process.id(), process.stdin.take().unwrap());
    for second in 0..blocks {
        block.set(second);
        input.write_all(&block.text).unwrap();
    }
    drop(input);
    let mut peak = None;
    // The statistics are printed after the last request.
    while let Some(kib) = peak_kib(id) {
        peak = Some(kib);
        if process.try_wait().unwrap().is_some() {
            break;
        }
    }
    let output = process.wait_with_output().unwrap();
    let of: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success());
    assert_eq!((&of["format"], of["requests"].as_u64()), (&Value::from("spc"), Some(blocks * LINES as u64)));
    let peak = peak.expect("the process was there");
    println!("{blocks} blocks of {} bytes, {peak} KiB", block.text.len());
    assert!(peak < LIMIT_KIB, "{peak} KiB for {mb} MB");
}
