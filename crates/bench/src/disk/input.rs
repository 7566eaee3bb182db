//! Disks and measured traces that the user names.

use flate2::read::GzDecoder;
use sanloom_console::exit::Failure;
use sanloom_storage::disk::import::{self, Imported};
use sanloom_storage::disk::{DiskConfig, file, preset};
use sanloom_storage::trace::validate::{Record, Records};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Largest number of requests of a trace that is held in memory.
const MAX_REQUESTS: usize = 4_000_000;

/// Returns a disk: a preset, a TOML file of parameters, or a file of DiskSim.
///
/// # Errors
/// If there is no such preset or file, or with all mistakes of the file.
pub fn disk(name: &str) -> Result<DiskConfig, Failure> {
    if let Some(config) = preset::find(name) {
        return Ok(config);
    }
    if import::is_disksim(name) {
        return imported(name).map(|imported| imported.config);
    }
    let text = text(Path::new(name), file::MAX_BYTES as u64)
        .map_err(|error| Failure::usage(format!("{name} is no preset and {error}; presets: {}", names())))?;
    file::read(&text).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(|mistake| format!("{name}: {mistake}")).collect();
        Failure::usage(lines.join("\n"))
    })
}

/// Imports a file of DiskSim. Files that it names are read from its folder.
///
/// # Errors
/// If a file cannot be read, or the disk cannot be imported.
pub fn imported(name: &str) -> Result<Imported, Failure> {
    let path = Path::new(name);
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    let files = |named: &str| {
        let is_plain = Path::new(named).components().count() == 1 && Path::new(named).file_name().is_some();
        match is_plain {
            true => text(&folder.join(named), import::MAX_BYTES as u64),
            false => Err("only files in the folder of the first one are read".to_owned()),
        }
    };
    import::disksim(&file, &files).map_err(Failure::usage)
}

/// Returns the text of a file, of which at most one byte more than `limit` is read.
fn text(path: &Path, limit: u64) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names of all presets.
pub fn names() -> String {
    preset::all().iter().map(|config| config.name.as_ref()).collect::<Vec<_>>().join(", ")
}

/// Returns a reader of a file; the name of a compressed one ends in `.gz`.
///
/// # Errors
/// If the file cannot be opened.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    let file =
        File::open(path).map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
    Ok(if is_compressed { Box::new(BufReader::new(GzDecoder::new(file))) } else { Box::new(BufReader::new(file)) })
}

/// Returns the requests of a trace in the format `validate`.
///
/// # Errors
/// If the file cannot be read, a line is wrong, or the trace is too long.
pub fn records(path: &Path) -> Result<Vec<Record>, Failure> {
    let name = path.display();
    let mut records = Vec::new();
    for record in Records::new(open(path)?) {
        records.push(record.map_err(|error| Failure::usage(format!("{name}: {error}")))?);
        if records.len() > MAX_REQUESTS {
            return Err(Failure::usage(format!("{name} has more than {MAX_REQUESTS} requests; cut it")));
        }
    }
    Ok(records)
}
