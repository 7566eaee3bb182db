//! Errors of trace readers.

use std::io;

/// Error of a line of a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The line could not be read.
    #[error("line {line} cannot be read: {source}")]
    Read {
        /// Number of the line, from 1.
        line: u64,
        /// Cause.
        source: io::Error,
    },
    /// The line has too few or too many columns.
    #[error("line {line} has {found} columns, but the format {format} has {expected}: {columns}; correct the line")]
    Columns {
        /// Number of the line, from 1.
        line: u64,
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
    #[error("line {line}: the {column} is `{value}`; write {remedy}")]
    Value {
        /// Number of the line, from 1.
        line: u64,
        /// Name of the column.
        column: &'static str,
        /// The value.
        value: String,
        /// Permitted values.
        remedy: &'static str,
    },
}
