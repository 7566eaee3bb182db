//! Writer of traces.

use super::error::TraceError;
use super::fio;
use super::format::{Format, MS, NS, S, US};
use super::request::{TraceOp, TraceRequest};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Formats that can be written.
pub const WRITABLE: [Format; 5] = [Format::Disksim, Format::Spc, Format::Msr, Format::Fio3, Format::Blkparse];

/// Properties of requests that the written format cannot express.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// Trims and flushes that were left out.
    pub left_out: u64,
    /// Requests that were enlarged to whole blocks of 512 bytes.
    pub enlarged: u64,
    /// Requests whose arrival was cut to the unit of the format.
    pub cut: u64,
    /// Response or think times that were left out.
    pub times: u64,
}

/// Writer of requests in one format.
///
/// | format | unit of arrivals | devices | trims and flushes |
/// |---|---|---|---|
/// | `disksim` | 1 ps | numbers in the order of the first requests | left out |
/// | `spc` | 1 ps | numbers in the order of the first requests | left out |
/// | `msr` | 100 ns | name and number | left out |
/// | `fio-3` | 1 us | names without blanks | kept |
/// | `blkparse` | 1 ns | `major,minor`, or 8 and the number | kept |
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    format: Format,
    number: u64,
    lost: Lost,
    /// Names of files of fio that were opened.
    open: BTreeSet<String>,
    last_us: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Creates a writer. Buffer `out`, because each request is written on its own.
    ///
    /// # Errors
    /// If the format is none of [`WRITABLE`].
    pub fn new(out: W, format: Format) -> Result<TraceWriter<W>, TraceError> {
        if !WRITABLE.contains(&format) {
            let reason = format!("traces cannot be written in the format `{}`", format.word());
            return Err(TraceError::Settings { reason, remedy: "choose disksim, spc, msr, fio-3 or blkparse" });
        }
        Ok(TraceWriter { out, format, number: 0, lost: Lost::default(), open: BTreeSet::new(), last_us: 0 })
    }

    /// Writes a request to a device with a name.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write(&mut self, request: &TraceRequest, device: &str) -> io::Result<()> {
        let is_data = matches!(request.op, TraceOp::Read | TraceOp::Write);
        if !is_data && !matches!(self.format, Format::Fio3 | Format::Blkparse) {
            self.lost.left_out += 1;
            return Ok(());
        }
        if self.number == 0 && self.format == Format::Fio3 {
            self.out.write_all(fio::header(3))?;
            writeln!(self.out)?;
        }
        self.number += 1;
        let response = if self.format == Format::Msr { None } else { request.response_ps };
        self.lost.times += u64::from(response.is_some() || request.think_ps.is_some());
        match self.format {
            Format::Disksim => {
                let (block, blocks) = self.blocks(request);
                let flags = u8::from(request.op == TraceOp::Read);
                let arrival = decimal(request.arrival_ps, MS);
                writeln!(self.out, "{arrival} {} {block} {blocks} {flags}", request.device)
            }
            Format::Spc => {
                let block = request.offset_bytes / 512;
                let bytes = request.length_bytes + request.offset_bytes % 512;
                self.lost.enlarged += u64::from(bytes != request.length_bytes);
                let letter = if request.op == TraceOp::Read { 'R' } else { 'W' };
                writeln!(self.out, "{},{block},{bytes},{letter},{}", request.device, decimal(request.arrival_ps, S))
            }
            Format::Msr => {
                let tick = 100 * NS;
                self.lost.cut += u64::from(!request.arrival_ps.is_multiple_of(tick));
                let name: String =
                    device.chars().map(|c| if c == ',' || c.is_whitespace() { '-' } else { c }).collect();
                let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
                let (host, disk) = match name.rsplit_once('_') {
                    Some((host, disk)) if is_number(disk) => (host, disk),
                    _ => (name.as_str(), "0"),
                };
                let op = if request.op == TraceOp::Read { "Read" } else { "Write" };
                let (offset, length) = (request.offset_bytes, request.length_bytes);
                let response = request.response_ps.unwrap_or(0) / tick;
                writeln!(self.out, "{},{host},{disk},{op},{offset},{length},{response}", request.arrival_ps / tick)
            }
            Format::Blkparse => self.blkparse(request, device),
            _ => self.fio(request, device),
        }
    }

    /// Writes buffered bytes to the output.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the end of the trace. Returns what the format did not keep.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(mut self) -> io::Result<Lost> {
        for name in std::mem::take(&mut self.open) {
            writeln!(self.out, "{} {name} close", self.last_us)?;
        }
        self.out.flush()?;
        Ok(self.lost)
    }

    /// First block of 512 bytes, and number of blocks.
    fn blocks(&mut self, request: &TraceRequest) -> (u64, u64) {
        let (start, end) = (request.offset_bytes / 512, request.end_bytes().div_ceil(512));
        self.lost.enlarged += u64::from((end - start) * 512 != request.length_bytes);
        (start, end - start)
    }

    fn fio(&mut self, request: &TraceRequest, device: &str) -> io::Result<()> {
        let name: String = device.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        let us = request.arrival_ps / US;
        self.lost.cut += u64::from(!request.arrival_ps.is_multiple_of(US));
        self.last_us = us;
        if !self.open.contains(&name) {
            writeln!(self.out, "{us} {name} add\n{us} {name} open")?;
            self.open.insert(name.clone());
        }
        let action = match request.op {
            TraceOp::Read => "read",
            TraceOp::Write => "write",
            TraceOp::Trim => "trim",
            TraceOp::Flush => "sync",
        };
        writeln!(self.out, "{us} {name} {action} {} {}", request.offset_bytes, request.length_bytes)
    }

    fn blkparse(&mut self, request: &TraceRequest, device: &str) -> io::Result<()> {
        let own = format!("8,{}", request.device);
        let device = if super::block::is_device(device.as_bytes()) { device } else { &own };
        self.lost.cut += u64::from(!request.arrival_ps.is_multiple_of(NS));
        let (seconds, ns) = (request.arrival_ps / S, request.arrival_ps % S / NS);
        let letters = match request.op {
            TraceOp::Read => "R",
            TraceOp::Write => "W",
            TraceOp::Trim => "D",
            TraceOp::Flush => "FN",
        };
        write!(self.out, "{device:>6} 0 {:>8} {seconds:>5}.{ns:09} 0  Q {letters:>3}", self.number)?;
        if request.op != TraceOp::Flush {
            let (block, blocks) = self.blocks(request);
            write!(self.out, " {block} + {blocks}")?;
        }
        writeln!(self.out, " [sanloom]")
    }
}

/// Formats a time as an exact decimal number of units, which are powers of ten.
fn decimal(ps: u64, unit_ps: u64) -> String {
    let width = unit_ps.ilog10() as usize;
    let text = format!("{}.{:0width$}", ps / unit_ps, ps % unit_ps);
    let kept = text.trim_end_matches('0').len();
    // At least six decimals, as in the published traces.
    let least = text.len() - width + 6;
    text[..kept.max(least)].to_owned()
}
