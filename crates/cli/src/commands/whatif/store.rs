//! Trials in the output folder, for `--resume`.

use sanloom_console::exit::Failure;
use sanloom_console::report::{file, json};
use sanloom_console::whatif::failure::Cause;
use sanloom_console::whatif::trial::Trial;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Name of the file in the output folder.
const NAME: &str = "trials.jsonl";

/// Identity of a trial: the broken element, and the index of the seed.
pub type Key = (Cause, u32);

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Hash of the lab, its settings and the version of sanloom.
    study: String,
    /// `link`, `switch`, `chassis`, `loop`, `disk`, `battery` or `controller`.
    kind: String,
    index: u16,
    /// LUN of the broken disk, or number of the controller.
    #[serde(default)]
    lun: u16,
    replication: u32,
    trial: Trial,
}

/// Finished trials, and the file that has them.
pub struct Store {
    study: String,
    file: Option<(PathBuf, File)>,
    trials: BTreeMap<Key, Trial>,
}

impl Store {
    /// Opens the file in a folder. To resume, its trials are read; a torn last line, which an
    /// interrupted write leaves, is removed. Without a folder, trials are only kept in memory.
    ///
    /// # Errors
    /// The file has trials and may not be resumed, belongs to another study, or cannot be used.
    pub fn open(folder: Option<&Path>, resume: bool, study: String) -> Result<Store, Failure> {
        let mut store = Store { study, file: None, trials: BTreeMap::new() };
        let Some(folder) = folder else { return Ok(store) };
        file::make_folder(folder)?;
        let path = folder.join(NAME);
        let failed = |doing: &str, error: io::Error| {
            Failure::environment(format_args!("cannot {doing} {}: {error}", path.display()))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| failed("open", error))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| failed("read", error))?;
        if !text.is_empty() && !resume {
            return Err(Failure::usage(format_args!(
                "{} has the trials of an earlier study; continue it with --resume, or choose another folder for --out",
                path.display()
            )));
        }
        let whole = store.read(&text, &path)?;
        file.set_len(whole).and_then(|()| file.seek(SeekFrom::End(0))).map_err(|error| failed("write", error))?;
        store.file = Some((path, file));
        Ok(store)
    }

    /// Reads the trials of a file; returns the length of its whole lines.
    fn read(&mut self, text: &[u8], path: &Path) -> Result<u64, Failure> {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for (number, line) in (1..).zip(text[..whole].split_inclusive(|byte| *byte == b'\n')) {
            let line: Line = sanloom_api::json::from_slice(line).map_err(|error| {
                Failure::usage(format_args!(
                    "line {number} of {} is not a trial: {error}; choose another folder for --out",
                    path.display()
                ))
            })?;
            let cause = match line.kind.as_str() {
                "link" => Cause::Link(line.index),
                "chassis" => Cause::Chassis(line.index),
                "loop" => Cause::Loop(line.index),
                "ethernet-link" => Cause::EthernetLink(line.index),
                "ethernet-switch" => Cause::EthernetSwitch(line.index),
                "infiniband-link" => Cause::InfinibandLink(line.index),
                "infiniband-switch" => Cause::InfinibandSwitch(line.index),
                "disk" => Cause::Disk(line.index, line.lun),
                "battery" => Cause::Battery(line.index),
                "gateway" => Cause::Gateway(line.index),
                "server" => Cause::Server(line.index),
                "controller" => Cause::Controller(line.index, line.lun as u8),
                _ => Cause::Switch(line.index),
            };
            if line.study != self.study {
                return Err(Failure::usage(format_args!(
                    "{} belongs to another study (line {number}): another lab, other settings or another version of \
                     sanloom; choose another folder for --out",
                    path.display()
                )));
            }
            self.trials.insert((cause, line.replication), line.trial);
        }
        Ok(whole as u64)
    }

    pub fn get(&self, key: &Key) -> Option<&Trial> {
        self.trials.get(key)
    }

    /// Adds a finished trial; it is in the file when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, key: Key, trial: Trial) -> Result<(), Failure> {
        if let Some((path, file)) = &mut self.file {
            let (kind, index, lun) = match key.0 {
                Cause::Link(index) => ("link", index, 0),
                Cause::Switch(index) => ("switch", index, 0),
                Cause::Chassis(index) => ("chassis", index, 0),
                Cause::Loop(index) => ("loop", index, 0),
                Cause::EthernetLink(index) => ("ethernet-link", index, 0),
                Cause::EthernetSwitch(index) => ("ethernet-switch", index, 0),
                Cause::InfinibandLink(index) => ("infiniband-link", index, 0),
                Cause::InfinibandSwitch(index) => ("infiniband-switch", index, 0),
                Cause::Disk(index, lun) => ("disk", index, lun),
                Cause::Battery(index) => ("battery", index, 0),
                Cause::Gateway(index) => ("gateway", index, 0),
                Cause::Server(index) => ("server", index, 0),
                Cause::Controller(index, number) => ("controller", index, number.into()),
            };
            let (study, kind, replication) = (self.study.clone(), kind.to_owned(), key.1);
            let line = Line { study, kind, index, lun, replication, trial: trial.clone() };
            let mut text = Vec::new();
            // One write per line: an interruption can tear only the last one.
            json::write_line(&mut text, &line)
                .and_then(|()| file.write_all(&text))
                .map_err(|error| Failure::environment(format_args!("cannot write {}: {error}", path.display())))?;
        }
        self.trials.insert(key, trial);
        Ok(())
    }
}
