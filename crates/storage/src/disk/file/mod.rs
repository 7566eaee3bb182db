//! The parameter file of a disk: TOML with the fields of [`DiskConfig`].
//!
//! [`read`] reports all mistakes of a file at once, each with line, column, reason and remedy.
//! `serde` reads the same form, but stops at the first mistake.

mod keys;
mod reader;

use super::config::DiskConfig;
use super::geometry::Geometry;
use reader::Reader;
use std::fmt;

/// Longest file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Largest number of mistakes that are reported.
const MAX_MISTAKES: usize = 100;

/// Mistake in a parameter file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the mistake, without a full stop.
    pub reason: String,
    /// Advice on how to correct it.
    pub remedy: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}; {}", self.line, self.column, self.reason, self.remedy)
    }
}

/// All mistakes of a file, sorted by location; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Creates the list of mistakes from byte offset, reason and remedy.
    pub(super) fn new(text: &str, found: Vec<(usize, String, String)>) -> Mistakes {
        let mut list: Vec<Mistake> = found
            .into_iter()
            .map(|(at, reason, remedy)| {
                let before = text.get(..at).unwrap_or(text);
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
                Mistake { line, column, reason, remedy }
            })
            .collect();
        list.sort();
        list.truncate(MAX_MISTAKES);
        Mistakes(list)
    }

    /// Mistakes in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.0.iter()
    }
}

impl fmt::Display for Mistakes {
    /// One mistake on each line, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.0.iter().enumerate() {
            write!(f, "{}{mistake}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Reads the parameters of a disk. The work is bounded by [`MAX_BYTES`].
///
/// # Errors
/// All mistakes of the text: syntax, unknown and missing keys, values of a wrong type or out of
/// range, and values that contradict each other.
pub fn read(text: &str) -> Result<DiskConfig, Mistakes> {
    if text.len() > MAX_BYTES {
        let reason = format!("the file has {} bytes", text.len());
        let remedy = format!("give a parameter file of at most {MAX_BYTES} bytes");
        return Err(Mistakes::new(text, vec![(0, reason, remedy)]));
    }
    let mut reader = Reader::new(text);
    let config = keys::disk(&mut reader);
    if reader.found.is_empty()
        && let Some(config) = &config
        && let Err(error) = Geometry::new(config)
    {
        reader.mistake(0, error.to_string(), "change the value that the message names");
    }
    match config {
        Some(config) if reader.found.is_empty() => Ok(config),
        _ => Err(Mistakes::new(text, reader.found)),
    }
}
