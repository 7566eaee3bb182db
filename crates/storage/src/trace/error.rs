//! Errors of trace readers.

use super::format::Format;
use std::fmt;
use std::io;

/// Position in a trace, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Line of a text format.
    Line(u64),
    /// Record of a binary format.
    Record(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(number) => write!(f, "line {number}"),
            Place::Record(number) => write!(f, "record {number}"),
        }
    }
}

/// Error of a trace, with place, reason and remedy.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The input could not be read, or its compression is damaged.
    #[error(
        "{place} cannot be read: {source}; if the file is compressed, it may be damaged or incomplete, so fetch it again"
    )]
    Read {
        /// First line or record that was not read.
        place: Place,
        /// Cause.
        source: io::Error,
    },
    /// The line has too few or too many columns.
    #[error(
        "{place} has {found} columns, but the format {format} has {expected}: {columns}; correct the line, or name another format"
    )]
    Columns {
        /// The line.
        place: Place,
        /// Name of the format.
        format: &'static str,
        /// Columns of the line.
        found: usize,
        /// Columns of the format.
        expected: usize,
        /// Names of the columns.
        columns: &'static str,
    },
    /// A column has a value that the format does not permit.
    #[error("{place}: the {column} is `{value}`; write {remedy}")]
    Value {
        /// The line or record.
        place: Place,
        /// Name of the column.
        column: &'static str,
        /// The value, shortened to [`MAX_SHOWN`] characters.
        value: String,
        /// Permitted values.
        remedy: &'static str,
    },
    /// The line is longer than the bound.
    #[error("{place} is longer than {limit} bytes; shorten it, or check that the file is a trace in a text format")]
    LongLine {
        /// The line.
        place: Place,
        /// Longest permitted line, in bytes.
        limit: usize,
    },
    /// The input ends inside of a record.
    #[error(
        "{place} ends after {found} of {expected} bytes; the file is incomplete, so fetch it again or cut it before this record"
    )]
    Truncated {
        /// The record.
        place: Place,
        /// Bytes of the record that are present.
        found: usize,
        /// Bytes of a whole record.
        expected: usize,
    },
    /// A request arrived before one that was already returned.
    #[error(
        "{place} is {} s earlier than a request before it, and the reader sorts only {window} requests; sort the file by time, or enlarge the reorder window",
        *.behind_ps as f64 / 1e12
    )]
    Order {
        /// The line or record.
        place: Place,
        /// Distance to the last returned arrival.
        behind_ps: u64,
        /// Number of requests that the reader sorts.
        window: usize,
    },
    /// The trace is longer than an arrival can express.
    #[error(
        "{place} is more than {days} days after the first request; cut the trace into parts, or correct the unit of time"
    )]
    TooLong {
        /// The line or record.
        place: Place,
        /// Longest trace, in days.
        days: u64,
    },
    /// The trace names more devices than the reader stores.
    #[error("{place} names a device beyond the first {limit}; select the lines of fewer devices before reading")]
    Devices {
        /// The line or record.
        place: Place,
        /// Largest number of devices.
        limit: usize,
    },
    /// The beginning of the file fits no format, or several.
    #[error(
        "the format cannot be recognised from line {line}: {reason}; name it with `--format`, one of {}",
        Format::words()
    )]
    Unknown {
        /// Line from 1 that decides.
        line: u64,
        /// Reason.
        reason: String,
    },
    /// The format needs settings that are missing, or the settings contradict each other.
    #[error("{reason}; {remedy}")]
    Settings {
        /// Reason.
        reason: String,
        /// Remedy.
        remedy: &'static str,
    },
    /// The trace has records, and none of them is a request.
    #[error("none of the {records} records is a request with the event `{event}`; choose another event with `--event`")]
    NoEvent {
        /// Number of records read.
        records: u64,
        /// Name of the event.
        event: &'static str,
    },
    /// A replayed request does not fit onto its destination.
    #[error(
        "request {request} ends at byte {end}, but the capacity is {capacity} bytes; map the addresses with `wrap` or `linear`"
    )]
    Capacity {
        /// Number of the request, from 1.
        request: u64,
        /// First byte behind the request.
        end: u64,
        /// Capacity of the destination in bytes.
        capacity: u64,
    },
}

/// Characters of a value that an error shows.
pub const MAX_SHOWN: usize = 40;

impl TraceError {
    /// True if the environment is the cause, and not the content of the trace.
    pub fn is_io(&self) -> bool {
        let content = [io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput, io::ErrorKind::UnexpectedEof];
        matches!(self, TraceError::Read { source, .. } if !content.contains(&source.kind()) && source.get_ref().is_none())
    }

    /// Error of a column.
    pub(super) fn value(place: Place, column: &'static str, value: &[u8], remedy: &'static str) -> TraceError {
        let text = String::from_utf8_lossy(&value[..value.len().min(4 * MAX_SHOWN)]);
        let value = text.chars().take(MAX_SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        TraceError::Value { place, column, value, remedy }
    }
}
