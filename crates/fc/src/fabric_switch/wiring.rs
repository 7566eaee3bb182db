//! Connections between the machines of a switch.

use super::outbox::{Owner, Route};
use super::zone_requests::Requester;
use super::{Event, FabricSwitch, Output};
use crate::domain;
use crate::eport;
use crate::fabric::Leg;
use crate::fspf;
use crate::ils::{Outcome, Peer, Send};
use crate::isolation::Isolation;
use crate::names;
use crate::switch::{self, NsEntry, PeerUpdate, PortKind};
use crate::zoning::server;
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwnn;

impl FabricSwitch {
    /// Passes outputs between the machines until no machine has any.
    pub(super) fn drain_machines(&mut self, now: Instant) {
        loop {
            let others =
                self.drain_ports(now) | self.drain_domains(now) | self.drain_paths(now) | self.drain_names(now);
            if others {
                self.topology.changed();
            }
            let own =
                self.drain_zones(now) | self.drain_services(now) | self.answer_deferred(now) | self.answer_early(now);
            if !others && !own {
                return;
            }
        }
    }

    fn drain_ports(&mut self, now: Instant) -> bool {
        let mut moved = false;
        let mut from = 0;
        while let Some((port, output)) = self.isls.poll_output(from) {
            (moved, from) = (true, port);
            self.port_output(now, port, output);
        }
        moved
    }

    fn port_output(&mut self, now: Instant, port: u16, output: eport::Output) {
        match output {
            eport::Output::Send(send) => self.send(now, Owner::EPort(port), send),
            eport::Output::Up(neighbour) => {
                if let Some(isl) = self.isls.get_mut(port) {
                    isl.neighbour = Some(neighbour);
                    if std::mem::take(&mut isl.zones_differ) {
                        // Earlier messages of the zone servers no longer apply, whichever end is up
                        // first.
                        self.zones.handle(now, server::Input::LinkDown { port });
                    }
                }
                let neighbour = neighbour.switch_name;
                self.domains.handle(now, domain::Input::LinkUp { port, neighbour });
            }
            eport::Output::Down => {
                let open = self.isls.get_mut(port).is_some_and(|isl| {
                    isl.neighbour = None;
                    std::mem::take(&mut isl.open)
                });
                self.set_port_kind(now, port, PortKind::Isolated);
                self.close(now, port, open);
            }
            eport::Output::Isolated(reason) => self.out.event(Event::Isolated { port, reason }),
        }
    }

    fn drain_domains(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.domains.poll_output() {
            moved = true;
            match output {
                domain::Output::Send(send) => self.send(now, Owner::Domain, send),
                domain::Output::Domain(domain) => {
                    self.services.handle(now, switch::Input::Domain(domain));
                    self.names.handle(now, names::Input::Domain(domain));
                    self.zones.handle(now, server::Input::Domain(domain));
                    self.paths.handle(now, fspf::Input::Domain(domain));
                    self.out.event(Event::Domain(domain));
                }
                domain::Output::Principal { name, .. } => {
                    self.topology.set_principal(name);
                    self.out.event(Event::Principal(name));
                }
                domain::Output::Domains(members) => {
                    self.topology.set_members(members);
                    self.update_zone_members(now);
                }
                domain::Output::LinkReady { port } => {
                    if let Some(neighbour) = self.isls.neighbour_name(port) {
                        self.zones.handle(now, server::Input::LinkUp { port, neighbour });
                    }
                }
                domain::Output::Isolate { port, reason } => self.isolate(now, port, reason),
                domain::Output::FabricName(name) => self.services.handle(now, switch::Input::FabricName(name)),
            }
        }
        moved
    }

    fn drain_zones(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.zones.poll_output() {
            moved = true;
            match output {
                server::Output::Send(send) => self.send(now, Owner::Zones, send),
                server::Output::Changed { zones, effective } => {
                    let database = zones.database();
                    self.out.push(Output::Zones { database: database.clone(), effective });
                    self.services.handle(now, switch::Input::ZoneDatabase(Some(database.clone())));
                    self.names.handle(now, names::Input::Zones(zones.clone()));
                    if effective {
                        self.services.handle(now, switch::Input::Zoning(zones.index()));
                    }
                }
                server::Output::LinkMerged { port } => self.open(now, port),
                server::Output::Isolate { port, failure } => {
                    if let Some(isl) = self.isls.get_mut(port) {
                        isl.zones_differ = true;
                    }
                    self.isolate(now, port, Isolation::ZoneMerge { conflict: failure.to_string() });
                }
                server::Output::ChangeDone { tag, result } => self.zones_changed(now, tag, result),
            }
        }
        moved
    }

    /// Opens a link for traffic and adds it to path selection.
    fn open(&mut self, now: Instant, port: u16) {
        let Some(neighbour) = self.isls.neighbour_name(port) else { return };
        let first = self.isls.get_mut(port).is_some_and(|isl| !std::mem::replace(&mut isl.open, true));
        if first {
            self.set_port_kind(now, port, PortKind::E);
            self.out.event(Event::IslUp { port, neighbour });
        }
        let (cost, bundle) = (self.isls.cost(port), self.isls.bundle(port));
        self.paths.handle(now, fspf::Input::LinkUp { port, cost, bundle });
    }

    fn drain_paths(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.paths.poll_output() {
            moved = true;
            match output {
                fspf::Output::Send(send) => self.send(now, Owner::Paths, send),
                fspf::Output::Neighbour { .. } => {}
                fspf::Output::AdjacencyLost { port } => self.out.event(Event::AdjacencyLost { port }),
                fspf::Output::AdjacencyRestored { port } => self.out.event(Event::AdjacencyRestored { port }),
                fspf::Output::Routes(routes) => self.routes(now, routes),
            }
        }
        moved
    }

    fn routes(&mut self, now: Instant, routes: Vec<(u8, Vec<Leg>)>) {
        let changed = self.isls.set_legs(&routes);
        // The forwarding table is updated first, because the following messages use the new paths.
        self.services.handle(now, switch::Input::Routes(routes));
        for &(domain, reachable) in &changed {
            if !reachable {
                self.out.drop_requests(Peer::Domain(domain));
            }
            let input = match reachable {
                true => names::Input::Reachable { domain },
                false => names::Input::Unreachable { domain },
            };
            self.names.handle(now, input);
        }
        if !changed.is_empty() {
            self.update_zone_members(now);
        }
    }

    /// Updates the zone server's list of participants: all domains with a path and a name.
    fn update_zone_members(&mut self, now: Instant) {
        let reachable = self.topology.members().iter().filter(|(domain, _)| self.isls.is_reachable(*domain));
        let reachable: Vec<(u8, Wwnn)> = reachable.copied().collect();
        self.zones.handle(now, server::Input::Domains(reachable));
    }

    fn drain_names(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.names.poll_output() {
            moved = true;
            let update = match output {
                names::Output::Send(send) => {
                    self.send(now, Owner::Names, send);
                    continue;
                }
                names::Output::Object(record) => PeerUpdate::Object(NsEntry::remote(record)),
                names::Output::Removed { port_id } => PeerUpdate::Removed { port_id },
                names::Output::DomainGone { domain } => PeerUpdate::DomainGone { domain },
                names::Output::Superseded { port_id } => PeerUpdate::Superseded { port_id },
            };
            self.services.handle(now, switch::Input::Peer(update));
        }
        moved
    }

    fn drain_services(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.services.poll_output() {
            moved = true;
            match output {
                switch::Output::Send { port, frame } => self.out.push(Output::Send { port, frame }),
                switch::Output::Fib(delta) => self.out.push(Output::Fib(delta)),
                switch::Output::Persist { port_name, port_id } => {
                    self.out.push(Output::Persist { port_name, port_id });
                }
                switch::Output::Peer(update) => self.local_change(now, update),
                switch::Output::ChangeZones { tag, change } => {
                    self.change_zones(now, Requester::NPort(tag), change);
                }
            }
        }
        moved
    }

    /// Passes a change of an own port to the name exchange.
    fn local_change(&mut self, now: Instant, update: PeerUpdate) {
        match update {
            PeerUpdate::Object(entry) => {
                let supersedes = self.supersedes.take();
                self.names.handle(now, names::Input::Local { entry: entry.record, supersedes });
            }
            PeerUpdate::Removed { port_id } => {
                if let Some((port_name, node_name)) = self.names.own(port_id).map(|own| (own.port_name, own.node_name))
                {
                    self.names.handle(now, names::Input::LocalGone { port_id, port_name, node_name });
                }
            }
            PeerUpdate::Supersedes { port_id } => self.supersedes = Some(port_id),
            PeerUpdate::Superseded { .. } | PeerUpdate::DomainGone { .. } => {}
        }
    }

    /// Sends a message of a machine to another switch.
    fn send(&mut self, now: Instant, owner: Owner, send: Send) {
        let route = Route { domain: self.services.domain(), isls: &self.isls };
        if let Some(request) = self.out.send(now, route, owner, send) {
            self.outcome(now, request, Outcome::Unanswered);
        }
    }

    /// Answers one query that no longer has to wait for its login. Returns true if there was one.
    fn answer_deferred(&mut self, now: Instant) -> bool {
        if self.deferred.len() == 0 {
            return false;
        }
        let known = if self.zones.others_may_differ() { None } else { Some(self.names.known_everywhere()) };
        let query = self.deferred.pop(now, known);
        let moved = query.is_some();
        if let Some((port, frame)) = query {
            self.services.handle(now, switch::Input::Frame { port, frame });
        }
        moved
    }

    /// Answers one query that no longer has to wait for a path. Returns true if there was one.
    fn answer_early(&mut self, now: Instant) -> bool {
        let query = self.early.pop(now, &self.isls);
        let moved = query.is_some();
        if let Some((request, message)) = query {
            self.names.handle(now, names::Input::Request { request, message });
        }
        moved
    }

    fn isolate(&mut self, now: Instant, port: u16, reason: Isolation) {
        if let Some(isl) = self.isls.get_mut(port) {
            isl.machine.handle(now, eport::Input::Isolate(reason));
        }
    }
}
