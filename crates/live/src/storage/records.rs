//! Persistent reservations that survive the process (APTPL), in a file next to that of each LUN.

use sanloom_scsi::scsi::Device;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Paths of the records of units. A unit in memory has none, because it ends with the process.
#[derive(Debug, Default)]
pub struct Records {
    paths: BTreeMap<u16, PathBuf>,
}

impl Records {
    /// Sets the path of a unit's record and passes the stored record to the device. A record that
    /// cannot be read is reported and left unchanged.
    pub fn restore(&mut self, unit: u16, path: PathBuf, device: &mut Device) {
        match fs::read(&path) {
            Ok(record) => {
                if let Err(error) = device.restore(unit, &record) {
                    tracing::error!(path = %path.display(), %error, "the persistent reservations of a LUN cannot be read; it starts without any");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "the persistent reservations of a LUN cannot be read; it starts without any")
            }
        }
        self.paths.insert(unit, path);
    }

    /// Replaces a record atomically.
    ///
    /// # Errors
    /// The record is not stored; the command that depends on it must be rejected.
    pub fn keep(&self, unit: u16, record: &[u8]) -> io::Result<()> {
        let Some(path) = self.paths.get(&unit) else { return Ok(()) };
        replace(path, record).inspect_err(|error| {
            tracing::error!(path = %path.display(), %error, "persistent reservations cannot be stored; the command is rejected");
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
        // An incomplete record is useless, and the file system may be full.
        let _ = fs::remove_file(&new);
    }
    written?;
    // The name is durable once its folder is flushed.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
