//! What a simulated fabric looks like at the present moment: the tables of `sanloom show`.

mod fabric;
mod ports;
mod zones;

use crate::results::Names;
use crate::world::World;
use sanloom_api::view::{Table, View};
use sanloom_core::config::Lab;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;

/// A table of `sanloom show`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// A table of a world as it is now. `on` limits it to one switch of the lab, by index; the name server and the zones are
/// those of that switch, or of the first that runs.
pub fn of(world: &World, which: Which, on: Option<u16>) -> View {
    let shown = Shown::new(world, on);
    let table = match which {
        Which::Switch => Table::Switch(fabric::switches(&shown)),
        Which::Fabric => Table::Fabric(fabric::fabric(&shown)),
        Which::Routes => Table::Routes(fabric::routes(&shown)),
        Which::Flogi => Table::Flogi(ports::logins(&shown)),
        Which::Ns => Table::Ns(ports::name_server(&shown)),
        Which::Ports => Table::Ports(ports::ports(&shown)),
        Which::Zone => Table::Zone(zones::zones(&shown)),
    };
    View::new(&world.lab.name, shown.since_start(world.net.now()), table)
}

/// A world with what every table needs.
struct Shown<'w> {
    world: &'w World,
    names: Names<'w>,
    /// Host or storage system of each port name.
    owners: BTreeMap<Wwpn, String>,
    on: Option<u16>,
}

impl Shown<'_> {
    fn new(world: &World, on: Option<u16>) -> Shown<'_> {
        Shown { world, names: Names::new(&world.lab), owners: owners(&world.lab), on }
    }

    /// Numbers of the switches to show.
    fn switches(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.world.switches.len() as u16).filter(|switch| self.on.is_none_or(|on| on == *switch))
    }

    /// The switch whose databases are shown.
    fn database(&self) -> Option<u16> {
        let first_up = || (0u16..).zip(&self.world.switches).find(|(_, node)| node.up).map(|(number, _)| number);
        self.on.or_else(first_up)
    }

    fn owner(&self, port: Wwpn) -> String {
        self.owners.get(&port).cloned().unwrap_or_default()
    }

    /// Seconds since the workloads began.
    fn since_start(&self, at_ps: u64) -> f64 {
        let start_ps = if self.world.start_ps == 0 { self.world.net.now() } else { self.world.start_ps };
        (at_ps as i128 - i128::from(start_ps)) as f64 / 1e12
    }
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
