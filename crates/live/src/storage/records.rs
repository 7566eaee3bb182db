//! Persistent reservations that outlive the process (APTPL): a file beside the file of each LUN.

use sanloom_core::scsi::Device;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the records of units are kept. A unit in memory has none: it is gone with the process itself.
#[derive(Debug, Default)]
pub struct Records {
    paths: BTreeMap<u16, PathBuf>,
}

impl Records {
    /// Keeps the record of a unit at a path from now on, and gives the device what stands there. A record that cannot be read
    /// is reported and left where it is.
    pub fn restore(&mut self, unit: u16, path: PathBuf, device: &mut Device) {
        match fs::read(&path) {
            Ok(record) => {
                if let Err(error) = device.restore(unit, &record) {
                    tracing::error!(path = %path.display(), %error, "no reservations");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::error!(path = %path.display(), %error, "no reservations"),
        }
        self.paths.insert(unit, path);
    }

    /// Keeps a record in place of the one before; whole, or the one before stays.
    ///
    /// # Errors
    /// The record is not kept: what depends on it must not be accepted.
    pub fn keep(&self, unit: u16, record: &[u8]) -> io::Result<()> {
        let Some(path) = self.paths.get(&unit) else { return Ok(()) };
        replace(path, record).inspect_err(|error| {
            tracing::error!(path = %path.display(), %error, "reservations are not kept, the command is refused");
        })
    }
}

fn replace(path: &Path, record: &[u8]) -> io::Result<()> {
    if record.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let new = path.with_extension("reservations.new");
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(record)?;
        file.sync_all()?;
        fs::rename(&new, path)
    });
    if written.is_err() {
        // What is half of it is of no use to anybody; the folder may be full.
        let _ = fs::remove_file(&new);
    }
    written?;
    // The name is durable when its folder is.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
