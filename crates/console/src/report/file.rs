//! Atomic writing of files.
//!
//! A reader never sees an incomplete file: the text goes to a temporary file in the same folder,
//! which is then renamed. Failures (full disk, closed pipe, missing folder) are reported as
//! [`WriteError`], never as a panic.

use crate::outputs::is_stdout;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why a file could not be written.
#[derive(Debug, Error)]
#[error("cannot {doing} {}: {source}", .path.display())]
pub struct WriteError {
    /// Requested file; `standard output` for `-`.
    pub path: PathBuf,
    /// The operation that failed.
    pub doing: &'static str,
    /// Error of the system.
    pub source: io::Error,
}

impl WriteError {
    /// Returns whether the reader closed the pipe, as in `sanloom … | head`; this is not an error
    /// of the user.
    pub fn is_closed_pipe(&self) -> bool {
        self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Writes a complete file, or nothing. `-` is standard output; devices and named pipes are written
/// in place, because a new file must not replace them.
///
/// # Errors
/// When a step fails. The temporary file is removed, and an existing file of the name remains
/// unchanged.
pub fn write(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    let failed = |doing| move |source| WriteError { path: path.to_owned(), doing, source };
    if is_stdout(Some(path)) {
        return stdout(content);
    }
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let file = OpenOptions::new().write(true).open(path).map_err(failed("open"))?;
        return fill(file, content).map(drop).map_err(failed("write"));
    }
    // The file behind a symbolic link is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = beside(&target).ok_or_else(|| {
        failed("write")(io::Error::new(io::ErrorKind::InvalidInput, "this is not the name of a file"))
    })?;
    let written = File::create_new(&temporary)
        .map_err(failed("create"))
        .and_then(|file| fill(file, content).map_err(failed("write")))
        .and_then(|file| file.sync_all().map_err(failed("write")))
        .and_then(|()| fs::rename(&temporary, &target).map_err(failed("replace")));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes a text; see [`write()`].
///
/// # Errors
/// As [`write()`].
pub fn write_text(path: &Path, text: &str) -> Result<(), WriteError> {
    write(path, |out| out.write_all(text.as_bytes()))
}

/// Writes to standard output and flushes it.
///
/// # Errors
/// When the output is closed or full.
pub fn stdout(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    let mut out = BufWriter::new(io::stdout().lock());
    content(&mut out).and_then(|()| out.flush()).map_err(|source| WriteError {
        path: "standard output".into(),
        doing: "write to",
        source,
    })
}

/// Creates a folder and its missing parents.
///
/// # Errors
/// When the system rejects it.
pub fn make_folder(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(|source| WriteError { path: path.to_owned(), doing: "create the folder", source })
}

fn fill(file: File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A name in the same folder, because a rename does not cross file systems. The process number
/// keeps two runs apart, the counter two threads.
fn beside(target: &Path) -> Option<PathBuf> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name()?);
    name.push(format!(".{}.{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    Some(target.with_file_name(name))
}
