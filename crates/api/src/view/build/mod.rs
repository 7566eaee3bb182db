//! Builder of tables from the machines of a fabric: [`Shown`]. The simulator and a running instance
//! use it.

mod adapters;
mod fabric;
mod names;
mod nodes;
pub mod storage;
mod zones;

pub use nodes::{NodePort, NodeState};

use super::Table;
use sanloom_fc::config::{LinkEnd, Node};
use sanloom_fc::fabric::Fib;
use sanloom_fc::fabric_switch::{FabricSwitch, IslState};
use sanloom_fc::san::{Lab, rate_names};
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwpn;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// A table of `sanloom show`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The switches.
    Switch,
    /// Fabric logins.
    Flogi,
    /// The name server.
    Ns,
    /// Adapters that have registered with the management service (FDMI).
    Fdmi,
    /// The effective zones.
    Zone,
    /// Domains, principal switch and ISLs.
    Fabric,
    /// Paths between domains.
    Routes,
    /// The ports of the switches.
    Ports,
    /// The ports of hosts and storage systems.
    Nodes,
    /// The event log.
    Events,
}

/// A table of a running instance, live or simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveWhich {
    /// The LUNs of the instance.
    Luns,
    /// Target port groups.
    Groups,
    /// Counters of the instance.
    Counters,
    /// Fault injection rules.
    Injections,
    /// Captures, also those that have failed.
    Captures,
    /// Virtual disks.
    Volumes,
    /// Back ends and the paths to them.
    Paths,
    /// iSCSI sessions.
    Sessions,
    /// Counters of virtual disks and back ends.
    Stats,
}

/// A switch in its current state.
#[derive(Clone, Copy, Debug)]
pub struct SwitchSeen<'s> {
    /// Index of the switch in the lab.
    pub number: u16,
    /// Protocol machines of the switch.
    pub machine: &'s FabricSwitch,
    /// Forwarding table of the switch.
    pub fib: &'s Fib,
    /// True if the switch runs; false during a restart.
    pub up: bool,
    /// True if an operator has disabled the switch.
    pub disabled: bool,
}

/// A fabric with the data that every table needs.
pub struct Shown<'s> {
    /// Description of the fabric.
    pub lab: &'s Lab,
    /// The switches, or those that run in this process.
    pub seen: Vec<SwitchSeen<'s>>,
    /// Host or storage system by port name.
    owners: BTreeMap<Wwpn, String>,
    /// Index in the lab of the only switch to show; `None` for all.
    pub on: Option<u16>,
    /// Ports that an operator has disabled: index of the switch in the lab, and number.
    pub disabled: BTreeSet<(u16, u16)>,
    /// Name of the rate of each link, see [`rate_names`].
    rates: OnceCell<Vec<String>>,
    /// Converts a time to seconds since the start of the workloads or of the instance.
    pub since_start_s: Box<dyn Fn(Instant) -> f64 + 's>,
}

impl<'s> Shown<'s> {
    /// Creates the builder. `on` limits it to one switch, by index in the lab. Name server and
    /// zones are those of that switch, or of the first running switch.
    pub fn new(
        lab: &'s Lab,
        seen: Vec<SwitchSeen<'s>>,
        on: Option<u16>,
        since_start_s: impl Fn(Instant) -> f64 + 's,
    ) -> Shown<'s> {
        let since_start_s = Box::new(since_start_s);
        let rates = OnceCell::new();
        Shown { lab, seen, owners: owners(lab), on, disabled: BTreeSet::new(), rates, since_start_s }
    }

    /// Name of the rate of a link, by index in the lab; of a virtual link, that of the Ethernet
    /// below it.
    pub fn rate(&self, link: usize) -> &str {
        &self.rates.get_or_init(|| rate_names(self.lab))[link]
    }

    /// Builds a table. Returns `None` for the tables of ports, nodes and events, which the driver
    /// builds.
    pub fn table(&self, which: Which) -> Option<Table> {
        Some(match which {
            Which::Switch => Table::Switch(fabric::switches(self)),
            Which::Fabric => Table::Fabric(fabric::fabric(self)),
            Which::Routes => Table::Routes(fabric::routes(self)),
            Which::Flogi => Table::Flogi(names::logins(self)),
            Which::Ns => Table::Ns(names::name_server(self)),
            Which::Fdmi => Table::Fdmi(adapters::adapters(self)),
            Which::Zone => Table::Zone(zones::zones(self)),
            Which::Ports | Which::Nodes | Which::Events => return None,
        })
    }

    /// The switches to show.
    pub fn switches(&self) -> impl Iterator<Item = &SwitchSeen<'s>> + '_ {
        self.seen.iter().filter(|seen| self.on.is_none_or(|on| on == seen.number))
    }

    /// The switch whose name server and zones are shown.
    fn database(&self) -> Option<&SwitchSeen<'s>> {
        match self.on {
            Some(on) => self.seen.iter().find(|seen| seen.number == on),
            None => self.seen.iter().find(|seen| seen.up),
        }
    }

    /// Host or storage system with the port name; empty for a port that is not in the lab.
    pub fn owner(&self, port: Wwpn) -> String {
        self.owners.get(&port).cloned().unwrap_or_default()
    }

    /// A port in user notation, for example `edge1:3`.
    pub fn port(&self, end: &LinkEnd) -> String {
        let node = match end.node {
            Node::Switch(number) => &self.lab.switches[usize::from(number)].name,
            Node::Host(number) => &self.lab.hosts[usize::from(number)].name,
            Node::Storage(number) => &self.lab.storage[usize::from(number)].name,
            Node::Loop(number) => &self.lab.loops[usize::from(number)].name,
        };
        format!("{node}:{}", end.port)
    }
}

/// Reason why a port is isolated from its neighbour; `None` if it is not isolated.
pub fn isolated(machine: &FabricSwitch, port: u16) -> Option<String> {
    machine.isls().find(|isl| isl.members.contains(&port)).and_then(|isl| match isl.state {
        IslState::Isolated(reason) => Some(reason.to_string()),
        IslState::Up | IslState::Initialising => None,
    })
}

/// World-wide name of a port of a switch.
pub fn port_name(machine: &FabricSwitch, port: u16) -> String {
    sanloom_fc::switch::port_name(machine.name(), port).to_string()
}

/// World-wide name of a port of the switch with this name; `None` if the name is none.
pub fn port_name_of(switch_name: &str, port: u16) -> Option<String> {
    let name = switch_name.parse().ok()?;
    Some(sanloom_fc::switch::port_name(name, port).to_string())
}

/// True if a login with a duplicate port name has blocked the port.
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

/// Name of a port: `array1` if the node has one port, otherwise `array1:0`.
fn numbered(name: &str, number: usize, of: usize) -> String {
    if of == 1 { name.to_owned() } else { format!("{name}:{number}") }
}
