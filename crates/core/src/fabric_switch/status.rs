//! What an administrator can see of a switch.

use super::FabricSwitch;
use crate::eport::State;
use crate::fabric::PortMode;
use crate::fspf::Fspf;
use crate::isolation::Isolation;
use crate::names::NameExchange;
use crate::switch::{Counters, Switch, Work};
use crate::zoning::ZoneDatabase;
use crate::zoning::server::ZoneServer;
use sanloom_wire::{FcId, Wwnn};

/// Where a port to another switch stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IslState {
    /// Link parameters, domains or zones are being agreed on.
    Initialising,
    /// It carries traffic.
    Up,
    /// It carries none, for this reason.
    Isolated(Isolation),
}

/// A link to another switch, or a bundle of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IslStatus {
    /// The port; of a bundle, the lowest.
    pub port: u16,
    /// Its ports that have light, sorted.
    pub members: Vec<u16>,
    /// Where it stands.
    pub state: IslState,
    /// Name of the other switch, once link parameters are agreed on.
    pub neighbour: Option<Wwnn>,
    /// Cost for path selection.
    pub cost: u32,
}

impl FabricSwitch {
    /// It has so many ports from now on, if that is more than before: an operator has put in further ones. They are down, and for
    /// hosts; the forwarding table has to [grow](crate::fabric::Fib::grow) with it.
    pub fn grow(&mut self, ports: u16) {
        self.config.services.ports = self.config.services.ports.max(ports);
        self.services.grow(ports);
    }

    /// The services: logins, name server, counters.
    pub fn services(&self) -> &Switch {
        &self.services
    }

    /// Name of the switch.
    pub fn name(&self) -> Wwnn {
        self.services.name()
    }

    /// Its domain, if it has one.
    pub fn domain(&self) -> Option<u8> {
        self.services.domain()
    }

    /// The principal switch of its fabric, as far as it knows.
    pub fn principal(&self) -> Option<Wwnn> {
        self.principal
    }

    /// Domains of its fabric with their switches, sorted by domain.
    pub fn members(&self) -> &[(u8, Wwnn)] {
        &self.members
    }

    /// The zones of its fabric.
    pub fn zone_database(&self) -> &ZoneDatabase {
        self.zones.database()
    }

    /// Its zone server: changes under way.
    pub fn zone_server(&self) -> &ZoneServer {
        &self.zones
    }

    /// Its ports to other switches, sorted by port. Ports without light are not among them.
    pub fn isls(&self) -> impl Iterator<Item = IslStatus> + '_ {
        self.isls.iter().map(|(&port, isl)| IslStatus {
            port,
            members: isl.members.iter().copied().collect(),
            state: match isl.machine.state() {
                State::Isolated(reason) => IslState::Isolated(reason.clone()),
                _ if isl.open => IslState::Up,
                _ => IslState::Initialising,
            },
            neighbour: isl.neighbour.map(|neighbour| neighbour.switch_name),
            cost: self.cost(port),
        })
    }

    /// What a port is used for.
    pub fn port_mode(&self, port: u16) -> PortMode {
        self.services.port_mode(port)
    }

    /// The N_Port_IDs that are logged in here, with their ports, sorted.
    pub fn logins(&self) -> impl Iterator<Item = (FcId, u16)> + '_ {
        self.services.logins()
    }

    /// Events since the beginning.
    pub fn counters(&self) -> Counters {
        self.services.counters()
    }

    /// Work of the services since the beginning.
    pub fn work(&self) -> Work {
        self.services.work()
    }

    /// Path selection.
    pub fn paths(&self) -> &Fspf {
        &self.paths
    }

    /// The name server towards those of other switches.
    pub fn names(&self) -> &NameExchange {
        &self.names
    }

    /// Requests to other switches that wait for an answer.
    pub fn open_requests(&self) -> usize {
        self.exchanges.len()
    }

    /// Questions to the name server that are not answered before the other switches know who asks.
    pub fn waiting_questions(&self) -> usize {
        self.waiting.len()
    }

    /// Messages of other switches that nobody took: unknown, malformed, at the wrong time, or answers that came too late.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }
}
