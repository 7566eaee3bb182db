//! The file of rows: appended while points finish, read again to resume.

use super::grid::Grid;
use crate::exit::Failure;
use crate::report::file;
use crate::report::json;
use sanloom_api::results::SweepRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// One line: the row, and which sweep it belongs to, so that files of shards can be joined and are not mixed up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// [`Grid::id`].
    pub sweep: String,
    /// The row.
    #[serde(flatten)]
    pub row: SweepRow,
}

/// The rows so far, and the file that has them.
pub struct RowFile {
    rows: BTreeMap<u64, Line>,
    file: Option<(PathBuf, File)>,
    /// Points in the order of the file.
    order: Vec<u64>,
}

impl RowFile {
    /// Opens or makes the file. To resume, its rows are read, and a torn line at its end, which an interrupted write
    /// leaves, is cut off. Without a path rows are only kept.
    ///
    /// # Errors
    /// When the file exists and nobody said to resume it, belongs to another sweep, or cannot be used.
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
                    "{} exists; --resume goes on with it, or choose another name for --out",
                    path.display()
                )));
            }
            let whole = rows.read(&text, path, id, grid)?;
            file.set_len(whole).and_then(|()| file.seek(SeekFrom::End(0))).map_err(|error| failed("write", error))?;
        }
        rows.file = Some((path.to_owned(), file));
        Ok(rows)
    }

    /// Takes the rows of a file; returns how many bytes of it are whole lines.
    fn read(&mut self, text: &[u8], path: &Path, id: &str, grid: &Grid) -> Result<u64, Failure> {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for (number, line) in text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            let number = number + 1;
            let line: Line = serde_json::from_slice(line).map_err(|error| {
                Failure::usage(format_args!(
                    "line {number} of {} is no row of a sweep: {error}; choose another name for --out",
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

    /// Whether the row of this point is there.
    pub fn has(&self, point: u64) -> bool {
        self.rows.contains_key(&point)
    }

    /// Takes the row of a point that has just finished; it is in the file when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, line: Line) -> Result<(), Failure> {
        if let Some((path, file)) = &mut self.file {
            let mut text = Vec::new();
            // One write for each line: an interruption can tear the last line only.
            json::write_line(&mut text, &line)
                .and_then(|()| file.write_all(&text))
                .map_err(|error| Failure::environment(format_args!("cannot write {}: {error}", path.display())))?;
        }
        self.order.push(line.row.point);
        self.rows.insert(line.row.point, line);
        Ok(())
    }

    /// Brings the lines of the file into the order of the grid, so that neither the number of threads nor an
    /// interruption shows in it, and returns the rows in that order.
    ///
    /// # Errors
    /// When the file cannot be written.
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
