//! Convergence checks of a fabric: [`Disagreement`].

use super::{FabricBed, Node};
use rand::{RngExt, SeedableRng};
use sanloom_fc::config::ZoneMember;
use sanloom_fc::fabric::{Decision, Egress, Leg, PortIdentity};
use sanloom_fc::switch::NsEntry;
use sanloom_sim::rng::StreamRng;
use sanloom_wire::{FcType, Wwpn};
use std::fmt;

/// A difference between the switches of a fabric, possibly temporary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disagreement {
    /// The switch has no domain, or its list of domains or its principal differs from that of the
    /// first switch.
    Domains(usize),
    /// The switch has no route to a domain, or a route that does not lead there.
    Routes(usize, u8),
    /// The name server of the switch differs from the registrations of the N_Ports.
    Names(usize),
    /// The zones of the switch differ from those of the first one.
    Zones(usize),
    /// A frame between two N_Ports passes although it must not, or does not although it must.
    Permission(usize, usize),
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::Domains(switch) => write!(f, "switch {switch} knows other domains"),
            Disagreement::Routes(switch, domain) => write!(f, "switch {switch} has no way to domain {domain}"),
            Disagreement::Names(switch) => write!(f, "switch {switch} knows other names"),
            Disagreement::Zones(switch) => write!(f, "switch {switch} has other zones"),
            Disagreement::Permission(from, to) => write!(f, "frames of N_Port {from} to {to} do not obey the zones"),
        }
    }
}

/// Limit on the switches that a frame passes.
const HOPS: usize = 16;

impl FabricBed {
    /// Checks domains, paths and the number of names. This check is fast.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn seems_converged(&self) -> Result<(), Disagreement> {
        let first = &self.nodes[0].machine;
        let logged_in = self.n_ports.iter().filter(|n_port| n_port.id.is_some()).count();
        for (number, node) in self.nodes.iter().enumerate() {
            let machine = &node.machine;
            let members = machine.members();
            if members.len() != self.nodes.len()
                || members != first.members()
                || machine.principal() != first.principal()
            {
                return Err(Disagreement::Domains(number));
            }
            for (domain, _) in members.iter().filter(|(domain, _)| machine.domain() != Some(*domain)) {
                if node.fib.legs(*domain).is_empty() {
                    return Err(Disagreement::Routes(number, *domain));
                }
            }
            if logged_in < self.plan.ports() || machine.services().name_server_len() != logged_in {
                return Err(Disagreement::Names(number));
            }
        }
        Ok(())
    }

    /// Checks the fabric completely:
    ///
    /// - Every switch has the same domains, principal and zones.
    /// - Every switch has routes that lead to all domains.
    /// - Every switch lists every N_Port as it registered itself.
    /// - Frames pass between N_Ports exactly if the zones permit it. This is checked for `pairs`
    ///   pairs; every second one shares a zone.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self, pairs: usize) -> Result<(), Disagreement> {
        self.seems_converged()?;
        for (number, node) in self.nodes.iter().enumerate() {
            self.check_paths(number)?;
            if node.machine.zone_database() != self.plan.database() {
                return Err(Disagreement::Zones(number));
            }
            let known = node.machine.services().name_server();
            if known.filter(|entry| self.is_right(entry)).count() != node.machine.services().name_server_len() {
                return Err(Disagreement::Names(number));
            }
        }
        self.check_permissions(pairs)
    }

    /// Returns whether the entry equals the registration of its N_Port.
    fn is_right(&self, entry: &NsEntry) -> bool {
        let number = (entry.port_name.0 - super::plan::port_name(0).0) as usize;
        let n_port = self.n_ports.get(number).filter(|n_port| n_port.id == Some(entry.port_id));
        n_port.is_some() && entry.has_type(FcType::FCP.0) && entry.is_target() == self.plan.is_principal(number)
    }

    /// Checks that following the first leg to each domain leads there.
    fn check_paths(&self, from: usize) -> Result<(), Disagreement> {
        for &(domain, _) in self.nodes[from].machine.members() {
            let next = |at: usize| {
                let Some(Leg::Port(port)) = self.nodes[at].fib.legs(domain).first() else { return None };
                Some(self.other_end(at, *port)?.0)
            };
            let mut path = std::iter::successors(Some(from), |at| next(*at)).take(HOPS);
            if !path.any(|at| self.nodes[at].machine.domain() == Some(domain)) {
                return Err(Disagreement::Routes(from, domain));
            }
        }
        Ok(())
    }

    fn check_permissions(&self, pairs: usize) -> Result<(), Disagreement> {
        let mut dice = StreamRng::seed_from_u64(1);
        let zones = &self.plan.zoning().zones;
        let number_of = |member: ZoneMember| match member {
            ZoneMember::PortName(Wwpn(name)) => (name - super::plan::port_name(0).0) as usize,
            _ => 0,
        };
        for pair in 0..pairs {
            let (a, b) = if pair % 2 == 0 {
                (dice.random_range(0..self.n_ports.len()), dice.random_range(0..self.n_ports.len()))
            } else {
                let zone = &zones[dice.random_range(0..zones.len())];
                (number_of(zone.principals[0]), number_of(zone.members[dice.random_range(0..zone.members.len())]))
            };
            if a == b {
                continue;
            }
            let (Some(at_a), Some(at_b)) = (self.identity(a), self.identity(b)) else { continue };
            let permitted = self.plan.zones().permits(&at_a, &at_b);
            for (from, to) in [(a, b), (b, a)] {
                if self.passes(from, to) != permitted {
                    return Err(Disagreement::Permission(from, to));
                }
            }
        }
        Ok(())
    }

    fn identity(&self, number: usize) -> Option<PortIdentity> {
        let n_port = &self.n_ports[number];
        let port_id = n_port.id?;
        let port_name = super::plan::port_name(number);
        let node_name = super::n_ports::node_name(number);
        Some(PortIdentity { port_id, port_name, node_name, domain: port_id.domain(), port: n_port.port })
    }

    /// Returns whether a frame between two N_Ports arrives.
    fn passes(&self, from: usize, to: usize) -> bool {
        let (from, to) = (&self.n_ports[from], &self.n_ports[to]);
        let (Some(s_id), Some(d_id)) = (from.id, to.id) else { return false };
        let (mut at, mut port) = (from.node, from.port);
        for _ in 0..HOPS {
            match self.nodes[at].fib.decide(port, s_id, d_id, 1) {
                Decision::Forward(Egress::Port(out)) => match self.other_end(at, out) {
                    Some(next) => (at, port) = next,
                    None => return (at, out) == (to.node, to.port),
                },
                _ => return false,
            }
        }
        false
    }

    fn other_end(&self, node: usize, port: u16) -> Option<(usize, u16)> {
        let Node { cables, .. } = &self.nodes[node];
        cables.get(usize::from(port.checked_sub(self.plan.n_port_ports())?)).copied()
    }
}
