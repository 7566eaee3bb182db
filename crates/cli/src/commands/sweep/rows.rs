//! The file of rows. Rows are appended as points finish, and read again to resume.

use super::grid::Grid;
use sanloom_api::results::SweepRow;
use sanloom_console::exit::Failure;
use sanloom_console::report::file;
use sanloom_console::report::json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// One line: the row and the hash of its sweep, so that files of shards can be joined but files of
/// different sweeps are not mixed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// [`Grid::id`].
    pub sweep: String,
    /// The row.
    #[serde(flatten)]
    pub row: SweepRow,
}

/// Finished rows and their file.
pub struct RowFile {
    rows: BTreeMap<u64, Line>,
    file: Option<(PathBuf, File)>,
    /// Points, in the order of the file.
    order: Vec<u64>,
}

impl RowFile {
    /// Opens or creates the file. To resume, its rows are read, and a torn last line, which an
    /// interrupted write leaves, is removed. Without a path, rows are only kept in memory.
    ///
    /// # Errors
    /// The file exists and may not be resumed, belongs to another sweep, or cannot be used.
    pub fn open(path: Option<&Path>, resume: bool, id: &str, grid: &Grid) -> Result<RowFile, Failure> {
        if let Some(size) = grid.too_large() {
            return Err(Failure::usage(format_args!(
                "the grid has {size} points; give fewer values, or several sweeps"
            )));
        }
        let mut rows = RowFile { rows: BTreeMap::new(), file: None, order: Vec::new() };
        let Some(path) = path else {
            return Ok(rows);
        };
        let failed = |doing: &str, error: io::Error| {
            Failure::environment(format_args!("cannot {doing} {}: {error}", path.display()))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| failed("open", error))?;
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if regular {
            let mut text = Vec::new();
            file.read_to_end(&mut text).map_err(|error| failed("read", error))?;
            if !text.is_empty() && !resume {
                return Err(Failure::usage(format_args!(
                    "{} exists; continue it with --resume, or choose another name for --out",
                    path.display()
                )));
            }
            let whole = rows.read(&text, path, id, grid)?;
            file.set_len(whole).and_then(|()| file.seek(SeekFrom::End(0))).map_err(|error| failed("write", error))?;
        }
        rows.file = Some((path.to_owned(), file));
        Ok(rows)
    }

    /// Reads the rows of a file; returns the length of its whole lines in bytes.
    fn read(&mut self, text: &[u8], path: &Path, id: &str, grid: &Grid) -> Result<u64, Failure> {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for (number, line) in text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            let number = number + 1;
            let line: Line = sanloom_api::json::from_slice(line).map_err(|error| {
                Failure::usage(format_args!(
                    "line {number} of {} is not a row of a sweep: {error}; choose another name for --out",
                    path.display()
                ))
            })?;
            let point = line.row.point;
            if line.sweep != id || !grid.contains(point) || line.row.settings != grid.settings(point) {
                return Err(Failure::usage(format_args!(
                    "{} belongs to another sweep (line {number}): another lab, grid, list of metrics or version of \
                     sanloom; choose another name for --out, or give the arguments of that sweep",
                    path.display()
                )));
            }
            self.order.push(point);
            self.rows.insert(point, line);
        }
        Ok(whole as u64)
    }

    /// Returns whether the row of a point exists.
    pub fn has(&self, point: u64) -> bool {
        self.rows.contains_key(&point)
    }

    /// Adds the row of a finished point; it is in the file when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, line: Line) -> Result<(), Failure> {
        if let Some((path, file)) = &mut self.file {
            let mut text = Vec::new();
            // One write per line: an interruption can tear only the last one.
            json::write_line(&mut text, &line)
                .and_then(|()| file.write_all(&text))
                .map_err(|error| Failure::environment(format_args!("cannot write {}: {error}", path.display())))?;
        }
        self.order.push(line.row.point);
        self.rows.insert(line.row.point, line);
        Ok(())
    }

    /// Sorts the lines of the file by point, so that they depend neither on the number of threads
    /// nor on interruptions, and returns the rows in that order.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<Vec<SweepRow>, Failure> {
        if let Some((path, file)) = self.file
            && !self.order.is_sorted_by(|a, b| a < b)
            && file.metadata().is_ok_and(|metadata| metadata.is_file())
        {
            drop(file);
            file::write(&path, |out| self.rows.values().try_for_each(|line| json::write_line(out, line)))?;
        }
        Ok(self.rows.into_values().map(|line| line.row).collect())
    }
}
