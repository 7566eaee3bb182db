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
    pub fn keep(&self, unit: u16, record: &[u8]) {
        let Some(path) = self.paths.get(&unit) else { return };
        if let Err(error) = replace(path, record) {
            tracing::error!(path = %path.display(), %error, "reservations are not kept");
        }
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
    let mut file = File::create(&new)?;
    file.write_all(record)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // The name is durable when its folder is.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
