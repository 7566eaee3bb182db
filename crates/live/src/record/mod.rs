//! Recordings of the machines of a running fabric: every input with its time, every output ([`Recorder`]), and whether the same
//! machines say the same when they are told the same again ([`replay()`]).
//!
//! A recording is one JSON object in each line. The first holds the lab and what the switches began with ([`Head`]); each
//! further one is something that a machine was told, or what it said, in the order in which it happened. Outputs are kept as
//! their `Debug` texts: two outputs are equal if their texts are.

mod codec;
mod replay;

pub use codec::InputValue;
pub use replay::{Divergence, ReplayError, Replayed, head, replay};

use sanloom_api::zone_database::Database;
use sanloom_core::dcbx;
use sanloom_core::fabric_switch;
use sanloom_core::fip::{fcf, vn2vn};
use sanloom_core::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Version of the format.
pub const VERSION: u32 = 2;

/// The lab of a recording, as it was read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    /// What messages call the file.
    pub label: String,
    /// Its text.
    pub text: String,
    /// Values that were set from outside, as `key=value`.
    pub set: Vec<String>,
}

/// The first line of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// [`VERSION`] of the writer.
    pub sanloom_recording: u32,
    /// The lab.
    pub source: Source,
    /// The switches that ran, in their order.
    pub switches: Vec<SwitchHead>,
    /// The storage systems that were stations of a segment without a switch, by name, in their order; since version 2.
    #[serde(default)]
    pub stations: Vec<String>,
    /// The LLDP agents, by the number of their Ethernet port; since version 2.
    #[serde(default)]
    pub agents: BTreeMap<usize, AgentHead>,
}

/// What an LLDP agent began with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentHead {
    /// Address of its port.
    pub mac: String,
    /// Name of its port.
    pub interface: String,
    /// What it calls the system.
    pub system: String,
}

/// What a switch began with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchHead {
    /// Its name in the lab.
    pub name: String,
    /// When it was made.
    pub made_ns: u64,
    /// Its zones.
    pub zones: Database,
    /// Addresses that it had learned: port names and six hexadecimal digits.
    pub addresses: BTreeMap<String, String>,
}

/// A machine of a recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// A switch, by its place among those that ran.
    Switch(usize),
    /// An FCF, in the order of the ports of the switches.
    Fcf(usize),
    /// A station of a segment without a switch (VN2VN), in the order of the storage systems.
    Station(usize),
    /// An LLDP agent with DCBX, by the number of its Ethernet port.
    Agent(usize),
}

/// A line behind the first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A machine is told something.
    In {
        /// When, in nanoseconds since the start.
        t: u64,
        /// The machine.
        m: Machine,
        /// What.
        i: InputValue,
    },
    /// A machine was told something that has no form here: a replay ends before it.
    Lost {
        /// When, in nanoseconds since the start.
        t: u64,
        /// The machine.
        m: Machine,
        /// What.
        i: String,
    },
    /// A machine says something.
    Out {
        /// The machine.
        m: Machine,
        /// What.
        o: String,
    },
    /// A machine has nothing more to say.
    End {
        /// The machine.
        m: Machine,
    },
}

/// Writes a recording.
#[derive(Debug)]
pub struct Recorder {
    file: BufWriter<File>,
    /// The file could not be written: the recording ends there.
    broken: bool,
}

impl Recorder {
    /// Begins a recording.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, head: &Head) -> io::Result<Recorder> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer(&mut file, head)?;
        file.write_all(b"\n")?;
        Ok(Recorder { file, broken: false })
    }

    /// A switch is told something.
    pub fn switch_input(&mut self, now: Instant, switch: usize, input: &fabric_switch::Input) {
        self.input(now, Machine::Switch(switch), InputValue::of_switch(input), input);
    }

    /// An FCF is told something.
    pub fn fcf_input(&mut self, now: Instant, fcf: usize, input: &fcf::Input) {
        self.input(now, Machine::Fcf(fcf), InputValue::of_fcf(input), input);
    }

    /// A station is told something.
    pub fn station_input(&mut self, now: Instant, station: usize, input: &vn2vn::Input) {
        self.input(now, Machine::Station(station), InputValue::of_station(input), input);
    }

    /// An LLDP agent is told something.
    pub fn agent_input(&mut self, now: Instant, port: usize, input: &dcbx::Input) {
        self.input(now, Machine::Agent(port), InputValue::of_agent(input), input);
    }

    fn input(&mut self, now: Instant, m: Machine, value: Option<InputValue>, input: &dyn Debug) {
        let t = now.as_ns();
        match value {
            Some(i) => self.line(&Line::In { t, m, i }),
            None => self.line(&Line::Lost { t, m, i: format!("{input:?}") }),
        }
    }

    /// What a machine said when it was asked; nothing: it has nothing more to say.
    pub fn output(&mut self, m: Machine, output: Option<&impl Debug>) {
        match output {
            Some(output) => self.line(&Line::Out { m, o: format!("{output:?}") }),
            None => self.line(&Line::End { m }),
        }
    }

    fn line(&mut self, line: &Line) {
        if self.broken {
            return;
        }
        let written = serde_json::to_writer(&mut self.file, line).map_err(io::Error::from);
        self.check(written);
        let ended = self.file.write_all(b"\n");
        self.check(ended);
    }

    /// Puts into the file what is on its way there.
    pub fn flush(&mut self) {
        let flushed = self.file.flush();
        self.check(flushed);
    }

    fn check(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.broken, true)
        {
            tracing::error!(%error, "the recording ends here");
        }
    }
}

/// Times in messages.
fn seconds(t: u64) -> f64 {
    t as f64 / 1e9
}
