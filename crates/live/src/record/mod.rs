//! Recordings of the machines of a running fabric: [`Recorder`] writes every input with its time,
//! and every output. [`replay()`] repeats the inputs and compares the outputs.
//!
//! A recording has one JSON object per line. The first line holds the lab and the initial state of
//! the switches ([`Head`]). Each further line is an input or an output of a machine, in order of
//! occurrence. Outputs are stored as their `Debug` texts: two outputs are equal if their texts are.

mod codec;
mod replay;

pub use codec::InputValue;
pub use replay::{Divergence, ReplayError, Replayed, head, replay};

use sanloom_api::zone_database::Database;
use sanloom_scsi::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Version of the format.
pub const VERSION: u32 = 2;

/// Source of the lab in a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    /// Name of the file in messages.
    pub label: String,
    /// Text of the lab file.
    pub text: String,
    /// Parameters set from outside, as `key=value`.
    pub set: Vec<String>,
}

/// The first line of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// [`VERSION`] of the writer.
    pub sanloom_recording: u32,
    /// Source of the lab.
    pub source: Source,
    /// Switches that ran, by index.
    pub switches: Vec<SwitchHead>,
    /// Names of the storage systems that were stations of a segment without a switch, by index;
    /// since version 2.
    #[serde(default)]
    pub stations: Vec<String>,
    /// LLDP agents, by index of their Ethernet port; since version 2.
    #[serde(default)]
    pub agents: BTreeMap<usize, AgentHead>,
}

/// Initial state of an LLDP agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentHead {
    /// MAC address of the agent's port.
    pub mac: String,
    /// Interface name of the agent's port.
    pub interface: String,
    /// System name that it advertises.
    pub system: String,
}

/// Initial state of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchHead {
    /// Name in the lab.
    pub name: String,
    /// Time of creation, in nanoseconds since the start.
    pub made_ns: u64,
    /// Zone database.
    pub zones: Database,
    /// Learned addresses: port name, and six hexadecimal digits.
    pub addresses: BTreeMap<String, String>,
}

/// A machine of a recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// A switch, by index into [`Head::switches`].
    Switch(usize),
    /// An FCF, numbered in the order of the switches' ports.
    Fcf(usize),
    /// A station of a segment without a switch (VN2VN), numbered in the order of the storage
    /// systems.
    Station(usize),
    /// An LLDP agent with DCBX, by index of its Ethernet port.
    Agent(usize),
}

/// A line after the first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Input of a machine.
    In {
        /// Time in nanoseconds since the start.
        t: u64,
        m: Machine,
        /// The input.
        i: InputValue,
    },
    /// An input that cannot be encoded; a replay ends before it.
    Lost {
        /// Time in nanoseconds since the start.
        t: u64,
        m: Machine,
        /// `Debug` text of the input.
        i: String,
    },
    /// Output of a machine.
    Out {
        m: Machine,
        /// `Debug` text of the output.
        o: String,
    },
    /// End of a machine's outputs: its poll returned `None`.
    End { m: Machine },
}

/// Writes a recording.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: BufWriter<File>,
    /// Error of the first write that failed; the recording ends there.
    error: Option<io::Error>,
}

impl Recorder {
    /// Creates a recording and writes its head.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, head: &Head) -> io::Result<Recorder> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer(&mut file, head)?;
        file.write_all(b"\n")?;
        file.flush()?;
        Ok(Recorder { path: path.to_owned(), file, error: None })
    }

    /// Writes an input of a machine. `value` is its form in a recording; without one, a replay ends
    /// before it.
    pub fn input(&mut self, now: Instant, m: Machine, value: Option<InputValue>, input: &dyn Debug) {
        let t = now.as_ns();
        match value {
            Some(i) => self.line(&Line::In { t, m, i }),
            None => self.line(&Line::Lost { t, m, i: format!("{input:?}") }),
        }
    }

    /// Writes an output of a machine; `None` if it was polled and had none.
    pub fn output(&mut self, m: Machine, output: Option<&impl Debug>) {
        match output {
            Some(output) => self.line(&Line::Out { m, o: format!("{output:?}") }),
            None => self.line(&Line::End { m }),
        }
    }

    fn line(&mut self, line: &Line) {
        if self.error.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.file, line).map_err(io::Error::from);
        self.check(written);
        let ended = self.file.write_all(b"\n");
        self.check(ended);
    }

    /// File of the recording.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Error of the first write that failed.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Flushes buffered lines to the file.
    pub fn flush(&mut self) {
        let flushed = self.file.flush();
        self.check(flushed);
    }

    fn check(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && self.error.is_none()
        {
            tracing::error!(%error, "the recording cannot be written and ends here");
            self.error = Some(error);
        }
    }
}

/// Converts nanoseconds to seconds for messages.
fn seconds(t: u64) -> f64 {
    t as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_found_at_the_start_of_a_recording() {
        let head = Head {
            sanloom_recording: VERSION,
            source: Source::default(),
            switches: Vec::new(),
            stations: Vec::new(),
            agents: BTreeMap::new(),
        };
        let error = Recorder::create(Path::new("/dev/full"), &head).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_recording_that_ended_early_keeps_its_error() {
        let file = BufWriter::new(File::create("/dev/full").unwrap());
        let mut recorder = Recorder { path: "/dev/full".into(), file, error: None };
        recorder.output(Machine::Switch(0), None::<&()>);
        assert!(recorder.error().is_none(), "the line is buffered");
        recorder.flush();
        assert_eq!(recorder.error().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }
}
