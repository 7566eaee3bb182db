//! Replay of a recording's inputs on newly created machines: [`replay()`].

use super::{AgentHead, Head, Line, Machine, VERSION, seconds};
use crate::runtime::plan::{Kept, plan_switch, station_config};
use sanloom_fc::dcbx::{Dcbx, DcbxConfig};
use sanloom_fc::fabric_switch::FabricSwitch;
use sanloom_fc::fip::fcf::Fcf;
use sanloom_fc::fip::vn2vn::Vn2vn;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// Maximum line length in bytes; sufficient for a zone database in hexadecimal.
const MAX_LINE_BYTES: usize = 64 << 20;
/// End of the times of a recording, about 292 years after the start, because timers of machines
/// could overflow after it.
const LAST_NS: u64 = 1 << 63;

/// Result of a replay.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Replayed {
    /// Number of inputs replayed.
    pub inputs: u64,
    /// Number of matching outputs.
    pub outputs: u64,
    /// Time of the last input, in seconds since the start.
    pub seconds: f64,
    /// The recording ends in the middle of a line, as after a crash.
    pub cut: bool,
    /// First difference between recorded and replayed outputs, if any.
    pub divergence: Option<Divergence>,
}

/// First difference between recorded and replayed outputs.
#[derive(Clone, PartialEq, Debug)]
pub struct Divergence {
    /// Line of the recording, from 1.
    pub line: u64,
    /// Time of the last input, in seconds since the start.
    pub seconds: f64,
    /// Name of the machine.
    pub machine: String,
    /// Last input before the difference.
    pub input: String,
    /// Recorded output; `None` if the machine had none.
    pub recorded: Option<String>,
    /// Replayed output; `None` if the machine has none.
    pub replayed: Option<String>,
}

/// Reason why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("cannot read the recording: {0}")]
    Read(#[from] io::Error),
    /// The line is not part of a recording.
    #[error("line {line} is not part of a recording: {reason}")]
    Line {
        /// Line number, from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// The recording was written by a newer sanloom.
    #[error("the recording was written by a newer sanloom (version {0} of the format)")]
    Newer(u32),
    /// The recorded switch is not in the lab.
    #[error("the lab of the recording has no switch `{0}`")]
    Switch(String),
    /// An input could not be encoded when the recording was made.
    #[error("line {line}: a recording cannot hold this input, so the replay cannot continue: {input}")]
    Lost {
        /// Line number, from 1.
        line: u64,
        /// `Debug` text of the input.
        input: String,
    },
}

/// Returns a time of a recording, or the reason why it is none.
fn instant(ns: u64) -> Result<Instant, String> {
    match ns {
        LAST_NS.. => Err(format!("the time {ns} ns is out of range")),
        _ => Ok(Instant::from_ns(ns)),
    }
}

/// Reads the first line of a recording.
///
/// # Errors
/// When the line is not a recording's head, or has a newer version.
pub fn head(input: &mut impl BufRead) -> Result<Head, ReplayError> {
    let mut line = Vec::new();
    io::Read::take(input, MAX_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
    let wrong = |error: serde_json::Error| ReplayError::Line { line: 1, reason: error.to_string() };
    let head: Head = sanloom_api::json::from_slice(&line).map_err(wrong)?;
    match head.sanloom_recording {
        version if version > VERSION => Err(ReplayError::Newer(version)),
        _ => Ok(head),
    }
}

/// Creates the machines of a recording from its lab, replays their inputs, and compares their
/// outputs. `input` is positioned after the first line. The replay ends at the first difference.
///
/// # Errors
/// When a line is invalid.
pub fn replay(lab: &Lab, head: &Head, input: &mut impl BufRead) -> Result<Replayed, ReplayError> {
    let mut bench = Bench::new(lab, head)?;
    let mut replayed = Replayed::default();
    let mut text = Vec::new();
    let mut last_input = String::new();
    for line in 2.. {
        text.clear();
        if io::Read::take(&mut *input, MAX_LINE_BYTES as u64).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        let wrong = |reason: String| ReplayError::Line { line, reason };
        let parsed: Line = match sanloom_api::json::from_slice(&text) {
            Ok(parsed) => parsed,
            Err(_) if text.len() == MAX_LINE_BYTES => return Err(wrong("it is longer than 64 MiB".to_owned())),
            Err(_) if text.last() != Some(&b'\n') => {
                replayed.cut = true;
                break;
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        let (machine, recorded) = match parsed {
            Line::Lost { i: input, .. } => return Err(ReplayError::Lost { line, input }),
            Line::In { t, m, i } => {
                let now = instant(t).map_err(wrong)?;
                replayed.inputs += 1;
                replayed.seconds = seconds(t);
                last_input = format!("{i:?}");
                let done = bench.handle(m, now, &i);
                done.ok_or_else(|| wrong("it is not an input of this machine".to_owned()))?;
                continue;
            }
            Line::Out { m, o } => (m, Some(o)),
            Line::End { m } => (m, None),
        };
        let output = bench.poll_output(machine).ok_or_else(|| wrong("there is no such machine".to_owned()))?;
        if output != recorded {
            let (machine, seconds) = (bench.name(machine), replayed.seconds);
            replayed.divergence =
                Some(Divergence { line, seconds, machine, input: last_input, recorded, replayed: output });
            break;
        }
        replayed.outputs += u64::from(output.is_some());
    }
    Ok(replayed)
}

/// Machines under replay.
struct Bench<'l> {
    lab: &'l Lab,
    switches: Vec<(String, FabricSwitch)>,
    fcfs: Vec<(String, Fcf)>,
    stations: Vec<(String, Vn2vn)>,
    agents: BTreeMap<usize, (String, Dcbx)>,
}

impl<'l> Bench<'l> {
    fn new(lab: &'l Lab, head: &Head) -> Result<Bench<'l>, ReplayError> {
        let (stations, agents) = (Vec::new(), BTreeMap::new());
        let mut bench = Bench { lab, switches: Vec::new(), fcfs: Vec::new(), stations, agents };
        let number = |name: &str| lab.switches.iter().position(|switch| switch.name == name).map(|n| n as u16);
        let wrong = |reason: String| ReplayError::Line { line: 1, reason };
        let numbers: Option<Vec<u16>> = head.switches.iter().map(|switch| number(&switch.name)).collect();
        let missing = || head.switches.iter().find(|switch| number(&switch.name).is_none());
        let numbers =
            numbers.ok_or_else(|| ReplayError::Switch(missing().map(|s| s.name.clone()).unwrap_or_default()))?;
        for (number, begun) in numbers.iter().zip(&head.switches) {
            let database = ZoneDatabase::try_from(&begun.zones).map_err(|error| wrong(error.to_string()))?;
            let address = |(name, id): (&String, &String)| {
                Some((name.parse::<Wwpn>().ok()?, FcId::new(u32::from_str_radix(id, 16).ok()? & 0xff_ffff)))
            };
            let addresses: Option<_> = begun.addresses.iter().map(address).collect();
            let addresses = addresses.ok_or_else(|| wrong("an address is invalid".to_owned()))?;
            let plan =
                plan_switch(lab, &numbers, *number, Kept { database, previous: None, addresses }, bench.fcfs.len());
            for segment in plan.segments {
                let port = format!("the FCF at {}:{}", begun.name, segment.config.ports.first().copied().unwrap_or(0));
                bench.fcfs.push((port, Fcf::new(segment.config)));
            }
            let made = instant(begun.made_ns).map_err(wrong)?;
            bench.switches.push((begun.name.clone(), FabricSwitch::new(made, plan.machine)));
        }
        for name in &head.stations {
            let storage = lab.storage.iter().find(|storage| storage.name == *name);
            let storage = storage.ok_or_else(|| wrong(format!("the lab has no storage `{name}`")))?;
            bench.stations.push((format!("the station {name}"), Vn2vn::new(station_config(lab, storage))));
        }
        for (port, AgentHead { mac, interface, system }) in &head.agents {
            let mac = mac.parse().map_err(|_| wrong(format!("`{mac}` is not an Ethernet address")))?;
            let machine = Dcbx::new(DcbxConfig::new(mac, interface, system, false));
            bench.agents.insert(*port, (format!("the LLDP agent at {interface}"), machine));
        }
        Ok(bench)
    }

    fn handle(&mut self, machine: Machine, now: Instant, input: &super::InputValue) -> Option<()> {
        match machine {
            Machine::Switch(number) => {
                let input = input.to_switch(self.lab.zone_policy.limits)?;
                self.switches.get_mut(number)?.1.handle(now, input);
            }
            Machine::Fcf(number) => {
                let input = input.to_fcf()?;
                self.fcfs.get_mut(number)?.1.handle(now, input);
            }
            Machine::Station(number) => {
                let input = input.to_station()?;
                self.stations.get_mut(number)?.1.handle(now, input);
            }
            Machine::Agent(port) => {
                let input = input.to_agent()?;
                self.agents.get_mut(&port)?.1.handle(now, input);
            }
        }
        Some(())
    }

    /// Polls the next output of a machine; `None` if there is no such machine.
    fn poll_output(&mut self, machine: Machine) -> Option<Option<String>> {
        Some(match machine {
            Machine::Switch(number) => {
                self.switches.get_mut(number)?.1.poll_output().map(|output| format!("{output:?}"))
            }
            Machine::Fcf(number) => self.fcfs.get_mut(number)?.1.poll_output().map(|output| format!("{output:?}")),
            Machine::Station(number) => {
                self.stations.get_mut(number)?.1.poll_output().map(|output| format!("{output:?}"))
            }
            Machine::Agent(port) => self.agents.get_mut(&port)?.1.poll_output().map(|output| format!("{output:?}")),
        })
    }

    fn name(&self, machine: Machine) -> String {
        let name = match machine {
            Machine::Switch(number) => self.switches.get(number).map(|(name, _)| name),
            Machine::Fcf(number) => self.fcfs.get(number).map(|(name, _)| name),
            Machine::Station(number) => self.stations.get(number).map(|(name, _)| name),
            Machine::Agent(port) => self.agents.get(&port).map(|(name, _)| name),
        };
        name.cloned().unwrap_or_default()
    }
}
