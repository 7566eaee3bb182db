//! Links to other switches, with the paths that lead over them: [`Isls`].

use super::config::{FabricSwitchConfig, IslConfig};
use super::status::{IslState, IslStatus};
use crate::alarms::Alarms;
use crate::config::CostRule;
use crate::eport::{EPort, EPortConfig, Neighbour, Output, State};
use crate::fabric::Leg;
use crate::ils::Peer;
use crate::switch::port_name;
use sanloom_scsi::time::Instant;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet};

/// Links of a switch by port. A bundle is one link with the number of its lowest port (*leader*).
#[derive(Debug)]
pub(super) struct Isls {
    configs: Vec<IslConfig>,
    cost_rule: CostRule,
    /// Parameters of all E_Ports; port number, port name and credit differ.
    template: EPortConfig,
    isls: BTreeMap<u16, Isl>,
    /// Leaders of the links whose machine may have outputs or another deadline than in `deadlines`.
    /// A large switch has hundreds of links, and most messages concern at most one.
    changed: BTreeSet<u16>,
    /// Deadlines of the machines of all other links.
    deadlines: Alarms<u16>,
    /// Legs to each reachable domain.
    legs: BTreeMap<u8, Vec<Leg>>,
}

/// Link to another switch, or a bundle of links.
#[derive(Debug)]
pub(super) struct Isl {
    /// Its ports with light.
    pub(super) members: BTreeSet<u16>,
    pub(super) machine: EPort,
    pub(super) neighbour: Option<Neighbour>,
    /// The link may carry other traffic.
    pub(super) open: bool,
    /// The zone server isolated the link and continues to exchange the reason with the neighbour.
    pub(super) zones_differ: bool,
}

impl Isls {
    /// Returns a table without links.
    pub(super) fn new(config: &FabricSwitchConfig) -> Isls {
        Isls {
            configs: config.isls.clone(),
            cost_rule: config.cost_rule,
            template: config.eport(0),
            isls: BTreeMap::new(),
            changed: BTreeSet::new(),
            deadlines: Alarms::new(),
            legs: BTreeMap::new(),
        }
    }

    /// Parameters of the configured ports, from port 0 on.
    pub(super) fn configs(&self) -> &[IslConfig] {
        &self.configs
    }

    /// Port number that represents the link of a port: the lowest of its bundle.
    pub(super) fn leader(&self, port: u16) -> u16 {
        match self.config(port).bundle {
            None => port,
            bundle => self.configs.iter().position(|isl| isl.bundle == bundle).map_or(port, |lowest| lowest as u16),
        }
    }

    /// Bundle of a port, if it is in one.
    pub(super) fn bundle(&self, port: u16) -> Option<u16> {
        self.config(port).bundle
    }

    /// Cost of a link, computed from the rates of its ports with light.
    pub(super) fn cost(&self, leader: u16) -> u32 {
        let rates: Vec<u64> = self.members(leader).map(|port| self.config(port).bytes_per_s).collect();
        self.cost_rule.cost(&rates)
    }

    /// Returns the machine of a new link.
    pub(super) fn machine(&self, leader: u16) -> EPort {
        EPort::new(EPortConfig {
            port: leader,
            port_name: port_name(self.template.switch_name, leader),
            bb_credit: self.config(leader).bb_credit.into(),
            bb_sc_n: self.config(leader).bb_sc_n,
            ..self.template.clone()
        })
    }

    /// Adds a link with one port.
    pub(super) fn insert(&mut self, leader: u16, port: u16, machine: EPort) {
        let members = BTreeSet::from([port]);
        self.changed.insert(leader);
        self.isls.insert(leader, Isl { machine, members, neighbour: None, open: false, zones_differ: false });
    }

    pub(super) fn remove(&mut self, leader: u16) -> Option<Isl> {
        self.changed.remove(&leader);
        self.deadlines.clear(leader);
        self.isls.remove(&leader)
    }

    pub(super) fn get(&self, leader: u16) -> Option<&Isl> {
        self.isls.get(&leader)
    }

    pub(super) fn get_mut(&mut self, leader: u16) -> Option<&mut Isl> {
        let isl = self.isls.get_mut(&leader)?;
        self.changed.insert(leader);
        Some(isl)
    }

    /// Returns the next output of the machines of the links from `from` on, with its link.
    pub(super) fn poll_output(&mut self, from: u16) -> Option<(u16, Output)> {
        while let Some(&leader) = self.changed.range(from..).next() {
            let machine = self.isls.get_mut(&leader).map(|isl| &mut isl.machine);
            if let Some(output) = machine.and_then(EPort::poll_output) {
                return Some((leader, output));
            }
            self.changed.remove(&leader);
            self.deadlines.clear(leader);
            let deadline = self.get(leader).and_then(|isl| isl.machine.poll_timeout());
            deadline.into_iter().for_each(|at| self.deadlines.set(leader, at));
        }
        None
    }

    /// Earliest deadline of the machines of all links.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let changed = self.changed.iter().filter_map(|leader| self.get(*leader)?.machine.poll_timeout());
        changed.chain(self.deadlines.next()).min()
    }

    /// Leaders of the links whose deadline has passed, sorted.
    pub(super) fn due(&mut self, now: Instant) -> BTreeSet<u16> {
        let mut due: BTreeSet<u16> = std::iter::from_fn(|| self.deadlines.due(now)).collect();
        for &leader in &self.changed {
            let deadline = self.get(leader).and_then(|isl| isl.machine.poll_timeout());
            match deadline.is_some_and(|at| at <= now) {
                true => due.insert(leader),
                false => due.remove(&leader),
            };
        }
        due
    }

    /// Ports of a link with light, sorted.
    pub(super) fn members(&self, leader: u16) -> impl Iterator<Item = u16> + '_ {
        self.get(leader).into_iter().flat_map(|isl| isl.members.iter().copied())
    }

    /// Returns true if the link carries traffic.
    pub(super) fn is_open(&self, leader: u16) -> bool {
        self.get(leader).is_some_and(|isl| isl.open)
    }

    /// Name of the switch at the other end of a link, after the exchange of link parameters.
    pub(super) fn neighbour_name(&self, leader: u16) -> Option<Wwnn> {
        self.get(leader)?.neighbour.map(|neighbour| neighbour.switch_name)
    }

    /// Name of the port at the other end of a link. For a bundle, it is the one received on the
    /// lowest port.
    pub(super) fn neighbour_port(&self, leader: u16) -> Option<Wwpn> {
        self.get(leader)?.neighbour.map(|neighbour| neighbour.port_name)
    }

    /// Stores the legs to domains. Returns each domain that became reachable (true) or unreachable
    /// (false).
    pub(super) fn set_legs(&mut self, routes: &[(u8, Vec<Leg>)]) -> Vec<(u8, bool)> {
        let mut changed = Vec::new();
        for (domain, legs) in routes {
            let before = match legs.is_empty() {
                true => self.legs.remove(domain),
                false => self.legs.insert(*domain, legs.clone()),
            };
            if before.is_some() == legs.is_empty() {
                changed.push((*domain, !legs.is_empty()));
            }
        }
        changed
    }

    /// Returns true if there is a path to the domain.
    pub(super) fn is_reachable(&self, domain: u8) -> bool {
        self.legs.contains_key(&domain)
    }

    /// Port towards another switch: that of the link, or of the first cheapest path. A message
    /// without a path is lost, and its sender repeats it.
    pub(super) fn egress(&self, to: Peer) -> Option<u16> {
        let leader = match to {
            Peer::Link(leader) => leader,
            Peer::Domain(domain) => match self.legs.get(&domain)?.first()? {
                Leg::Port(port) => *port,
                Leg::Bundle(bundle) => *self.isls.keys().find(|leader| self.bundle(**leader) == Some(*bundle))?,
            },
        };
        self.members(leader).next()
    }

    /// State of all links, sorted by port.
    pub(super) fn status(&self) -> impl Iterator<Item = IslStatus> + '_ {
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

    fn config(&self, port: u16) -> IslConfig {
        self.configs.get(usize::from(port)).copied().unwrap_or_default()
    }
}
