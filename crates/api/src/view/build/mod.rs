//! Tables out of the machines of a fabric: [`Shown`]. The simulator and a running instance fill in the same ones.

mod fabric;
mod names;
mod zones;

use super::Table;
use sanloom_core::config::{Lab, LinkEnd, Node};
use sanloom_core::fabric::Fib;
use sanloom_core::fabric_switch::{FabricSwitch, IslState};
use sanloom_core::time::Instant;
use sanloom_wire::Wwpn;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A table of `sanloom show`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The switches.
    Switch,
    /// What is logged in.
    Flogi,
    /// The name server.
    Ns,
    /// The effective zones.
    Zone,
    /// Domains, principal switch and ISLs.
    Fabric,
    /// Paths between domains.
    Routes,
    /// The ports of the switches.
    Ports,
}

/// A table that only a running instance has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveWhich {
    /// Its LUNs.
    Luns,
    /// Target port groups.
    Groups,
    /// What it counts.
    Counters,
    /// The rules that it does to frames.
    Injections,
    /// Virtual disks.
    Volumes,
    /// Back ends and the ways to them.
    Paths,
    /// iSCSI sessions of hosts.
    Sessions,
    /// What was counted of virtual disks and back ends.
    Stats,
}

/// A switch as it is now.
#[derive(Clone, Copy, Debug)]
pub struct SwitchSeen<'s> {
    /// Index in the lab.
    pub number: u16,
    /// Its machines.
    pub machine: &'s FabricSwitch,
    /// Its forwarding table.
    pub fib: &'s Fib,
    /// It runs: not in the middle of a restart.
    pub up: bool,
}

/// A fabric with what every table needs.
pub struct Shown<'s> {
    /// What it is described by.
    pub lab: &'s Lab,
    /// Its switches, or those that run here.
    pub seen: Vec<SwitchSeen<'s>>,
    /// Host or storage system of each port name.
    owners: BTreeMap<Wwpn, String>,
    /// Show this switch only, by index in the lab.
    pub on: Option<u16>,
    /// Seconds from the start of the workloads, or of the instance, to a time.
    pub since_start_s: Box<dyn Fn(Instant) -> f64 + 's>,
}

impl<'s> Shown<'s> {
    /// What there is to show. `on` limits it to one switch of the lab, by index; the name server and the zones are those of
    /// that switch, or of the first that runs.
    pub fn new(
        lab: &'s Lab,
        seen: Vec<SwitchSeen<'s>>,
        on: Option<u16>,
        since_start_s: impl Fn(Instant) -> f64 + 's,
    ) -> Shown<'s> {
        Shown { lab, seen, owners: owners(lab), on, since_start_s: Box::new(since_start_s) }
    }

    /// A table. That of the ports is the driver's own: nothing for it.
    pub fn table(&self, which: Which) -> Option<Table> {
        Some(match which {
            Which::Switch => Table::Switch(fabric::switches(self)),
            Which::Fabric => Table::Fabric(fabric::fabric(self)),
            Which::Routes => Table::Routes(fabric::routes(self)),
            Which::Flogi => Table::Flogi(names::logins(self)),
            Which::Ns => Table::Ns(names::name_server(self)),
            Which::Zone => Table::Zone(zones::zones(self)),
            Which::Ports => return None,
        })
    }

    /// The switches to show.
    pub fn switches(&self) -> impl Iterator<Item = &SwitchSeen<'s>> + '_ {
        self.seen.iter().filter(|seen| self.on.is_none_or(|on| on == seen.number))
    }

    /// The switch whose databases are shown.
    fn database(&self) -> Option<&SwitchSeen<'s>> {
        match self.on {
            Some(on) => self.seen.iter().find(|seen| seen.number == on),
            None => self.seen.iter().find(|seen| seen.up),
        }
    }

    /// Host or storage system of a port name, empty for a stranger.
    pub fn owner(&self, port: Wwpn) -> String {
        self.owners.get(&port).cloned().unwrap_or_default()
    }

    /// A port as people type it, for example `edge1:3`.
    pub fn port(&self, end: &LinkEnd) -> String {
        let node = match end.node {
            Node::Switch(number) => &self.lab.switches[usize::from(number)].name,
            Node::Host(number) => &self.lab.hosts[usize::from(number)].name,
            Node::Storage(number) => &self.lab.storage[usize::from(number)].name,
        };
        format!("{node}:{}", end.port)
    }
}

/// Why a port is isolated from its neighbour, if it is.
pub fn isolated(machine: &FabricSwitch, port: u16) -> Option<String> {
    machine.isls().find(|isl| isl.members.contains(&port)).and_then(|isl| match isl.state {
        IslState::Isolated(reason) => Some(reason.to_string()),
        IslState::Up | IslState::Initialising => None,
    })
}

/// A login with a used port name has blocked the port.
pub fn blocked(machine: &FabricSwitch, port: u16) -> bool {
    machine.services().blocked_ports().any(|blocked| blocked == port)
}

fn owners(lab: &Lab) -> BTreeMap<Wwpn, String> {
    let mut owners = BTreeMap::new();
    for host in &lab.hosts {
        for (number, hba) in host.hbas.iter().enumerate() {
            owners.insert(hba.wwpn, numbered(&host.name, number, host.hbas.len()));
        }
    }
    for storage in &lab.storage {
        for (number, port) in storage.ports.iter().enumerate() {
            owners.insert(port.wwpn, numbered(&storage.name, number, storage.ports.len()));
        }
    }
    owners
}

/// `array1` if it has one port, else `array1:0`.
fn numbered(name: &str, number: usize, of: usize) -> String {
    if of == 1 { name.to_owned() } else { format!("{name}:{number}") }
}
