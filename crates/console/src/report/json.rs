//! Results as JSON; `docs/src/reference/results.md` is the schema.

use super::file::{self, WriteError};
use sanloom_api::results::Results;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Writes results as one JSON object with an end of line; `-` is standard output.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, results: &Results) -> Result<(), WriteError> {
    file::write(path, |out| write_value(out, results))
}

/// Writes any value of the schema (also a list of verdicts, or rows) as indented JSON with an end
/// of line.
///
/// # Errors
/// Errors of the writer.
pub fn write_value(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Writes a value as one line, as in JSON Lines.
///
/// # Errors
/// Errors of the writer.
pub fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
