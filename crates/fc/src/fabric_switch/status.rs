//! State of a switch for an administrator.

use super::FabricSwitch;
use crate::fabric::PortMode;
use crate::fspf::Fspf;
use crate::isolation::Isolation;
use crate::names::NameExchange;
use crate::switch::{Counters, Switch, Work};
use crate::zoning::ZoneDatabase;
use crate::zoning::server::ZoneServer;
use sanloom_wire::{FcId, Wwnn};

/// State of a port to another switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IslState {
    /// Link parameters, domains or zones are being negotiated.
    Initialising,
    /// The link carries traffic.
    Up,
    /// The link carries no traffic, for this reason.
    Isolated(Isolation),
}

/// Link to another switch, or a bundle of links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IslStatus {
    /// Port number; for a bundle, the lowest one.
    pub port: u16,
    /// Ports with light, sorted.
    pub members: Vec<u16>,
    /// State of the link.
    pub state: IslState,
    /// Name of the other switch, after the exchange of link parameters.
    pub neighbour: Option<Wwnn>,
    /// Cost for path selection.
    pub cost: u32,
}

impl FabricSwitch {
    /// Raises the number of ports to `ports`, never lowers it. The new ports are down and are
    /// F_Ports. The forwarding table must [grow](crate::fabric::Fib::grow) as well.
    pub fn grow(&mut self, ports: u16) {
        self.services.grow(ports);
    }

    /// Services of the switch: logins, name server, counters.
    pub fn services(&self) -> &Switch {
        &self.services
    }

    /// World-wide name of the switch.
    pub fn name(&self) -> Wwnn {
        self.services.name()
    }

    /// Domain of the switch, if it has one.
    pub fn domain(&self) -> Option<u8> {
        self.services.domain()
    }

    /// Principal switch of the fabric, if known.
    pub fn principal(&self) -> Option<Wwnn> {
        self.topology.principal()
    }

    /// Domains of the fabric with their switches, sorted by domain.
    pub fn members(&self) -> &[(u8, Wwnn)] {
        self.topology.members()
    }

    /// Zone database of the fabric.
    pub fn zone_database(&self) -> &ZoneDatabase {
        self.zones.database()
    }

    /// Zone server, for the state of changes.
    pub fn zone_server(&self) -> &ZoneServer {
        &self.zones
    }

    /// Ports to other switches, sorted by port, without those that have no light.
    pub fn isls(&self) -> impl Iterator<Item = IslStatus> + '_ {
        self.isls.status()
    }

    /// Mode of a port; `Down` for a port number that does not exist.
    pub fn port_mode(&self, port: u16) -> PortMode {
        self.services.port_mode(port)
    }

    /// N_Port_IDs logged in at this switch with their ports, sorted.
    pub fn logins(&self) -> impl Iterator<Item = (FcId, u16)> + '_ {
        self.services.logins()
    }

    /// Event counts since the start.
    pub fn counters(&self) -> Counters {
        self.services.counters()
    }

    /// Work of the services since the start.
    pub fn work(&self) -> Work {
        self.services.work()
    }

    /// Path selection machine.
    pub fn paths(&self) -> &Fspf {
        &self.paths
    }

    /// Name exchange with other switches.
    pub fn names(&self) -> &NameExchange {
        &self.names
    }

    /// Number of requests to other switches in flight.
    pub fn open_requests(&self) -> usize {
        self.out.open_requests()
    }

    /// Number of name-server queries that wait until all switches have registered their sender.
    pub fn deferred_queries(&self) -> usize {
        self.deferred.len()
    }

    /// Number of discarded messages from other switches: unknown, malformed, at the wrong time, or
    /// late replies.
    pub fn discarded(&self) -> u64 {
        self.out.discarded()
    }
}
