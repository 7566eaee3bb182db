//! The format `validate` of DiskSim: requests to a disk with measured times, one at a time.
//!
//! Each line has six columns: `R` or `W`, a tag, first block, number of blocks, measured response
//! time in microseconds, and think time in microseconds. The think time passes between the end of
//! the request and the next one. Empty lines are skipped.

use super::error::{Place, TraceError};
use std::io::{BufRead, Read};

/// Picoseconds in a microsecond.
const PS_PER_US: f64 = 1e6;

/// Longest time that a column may have, in microseconds: one hour.
const MAX_US: f64 = 3.6e9;

/// Longest line in bytes, with its end. A record has less than 150.
const MAX_LINE: usize = 4_096;

/// Line of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// True for a write.
    pub is_write: bool,
    /// First block of 512 bytes.
    pub lbn: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Measured response time.
    pub response_ps: u64,
    /// Time between the end of the request and the next request.
    pub think_ps: u64,
}

/// Parses a line; `line` is its number from 1.
///
/// # Errors
/// If a column is missing, or has a value that the format does not permit.
pub fn parse(line: u64, text: &str) -> Result<Record, TraceError> {
    let place = Place::Line(line);
    let mut columns = text.split_ascii_whitespace();
    let mut values = [""; 6];
    let mut found = 0;
    for value in columns.by_ref() {
        if let Some(slot) = values.get_mut(found) {
            *slot = value;
        }
        found += 1;
    }
    if found != values.len() {
        let columns = "R or W, tag, block, blocks, response time in us, think time in us";
        return Err(TraceError::Columns { place, format: "validate", found, expected: values.len(), columns });
    }
    let error = |column, value: &str, remedy| TraceError::value(place, column, value.as_bytes(), remedy);
    let [op, _tag, lbn, blocks, response, think] = values;
    let is_write = match op {
        "R" => false,
        "W" => true,
        _ => return Err(error("operation", op, "R or W")),
    };
    let time = |column, value: &str| match value.parse::<f64>() {
        Ok(us) if (0.0..=MAX_US).contains(&us) => Ok((us * PS_PER_US).round() as u64),
        _ => Err(error(column, value, "microseconds from 0 to one hour")),
    };
    let block = lbn.parse().map_err(|_| error("block", lbn, "the number of the first block"))?;
    let count = blocks.parse().ok().filter(|count| *count > 0);
    Ok(Record {
        is_write,
        lbn: block,
        blocks: count.ok_or_else(|| error("number of blocks", blocks, "a number of at least 1"))?,
        response_ps: time("response time", response)?,
        think_ps: time("think time", think)?,
    })
}

/// Records of a trace, read line by line.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    line: u64,
    text: Vec<u8>,
    has_failed: bool,
}

impl<R: BufRead> Records<R> {
    /// Creates a reader. A line of more than 4,096 bytes is an error, and nothing follows it.
    pub fn new(input: R) -> Records<R> {
        Records { input, line: 0, text: Vec::new(), has_failed: false }
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Result<Record, TraceError>> {
        while !self.has_failed {
            self.text.clear();
            self.line += 1;
            let place = Place::Line(self.line);
            let mut part = self.input.by_ref().take(MAX_LINE as u64 + 1);
            match part.read_until(b'\n', &mut self.text) {
                Ok(0) => return None,
                Ok(bytes) if bytes > MAX_LINE => {
                    self.has_failed = true;
                    return Some(Err(TraceError::LongLine { place, limit: MAX_LINE }));
                }
                Ok(_) => {}
                Err(source) => {
                    self.has_failed = true;
                    return Some(Err(TraceError::Read { place, source }));
                }
            }
            let text = match std::str::from_utf8(&self.text) {
                Ok(text) => text,
                Err(error) => {
                    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
                    return Some(Err(TraceError::Read { place, source }));
                }
            };
            if !text.trim().is_empty() {
                return Some(parse(self.line, text));
            }
        }
        None
    }
}
