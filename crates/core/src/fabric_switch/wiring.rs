//! What each machine of a switch says, carried to the next one.

use super::{Asker, Event, FabricSwitch, Output, Requester};
use crate::domain;
use crate::eport;
use crate::fabric::Leg;
use crate::fspf;
use crate::isolation::Isolation;
use crate::names;
use crate::switch::{self, PeerUpdate, PortKind};
use crate::time::Instant;
use crate::zoning::server;
use sanloom_wire::Wwnn;

impl FabricSwitch {
    /// Carries outputs until no machine has any.
    pub(super) fn settle(&mut self, now: Instant) {
        loop {
            let others =
                self.settle_ports(now) | self.settle_domains(now) | self.settle_paths(now) | self.settle_names(now);
            self.info_is_old |= others;
            let own =
                self.settle_zones(now) | self.settle_services(now) | self.answer_waiting(now) | self.answer_early(now);
            if !others && !own {
                return;
            }
        }
    }

    fn settle_ports(&mut self, now: Instant) -> bool {
        let mut moved = false;
        let ports: Vec<u16> = self.isls.keys().copied().collect();
        for port in ports {
            while let Some(output) = self.isls.get_mut(&port).and_then(|isl| isl.machine.poll_output()) {
                moved = true;
                self.port_output(now, port, output);
            }
        }
        moved
    }

    fn port_output(&mut self, now: Instant, port: u16, output: eport::Output) {
        match output {
            eport::Output::Send(send) => self.send(now, Asker::EPort(port), send),
            eport::Output::Up(neighbour) => {
                if let Some(isl) = self.isls.get_mut(&port) {
                    isl.neighbour = Some(neighbour);
                    if std::mem::take(&mut isl.zones_differ) {
                        // What the zone servers said before does not count any more, whichever end is ready first.
                        self.zones.handle(now, server::Input::LinkDown { port });
                    }
                }
                let neighbour = neighbour.switch_name;
                self.domains.handle(now, domain::Input::LinkUp { port, neighbour });
            }
            eport::Output::Down => {
                let open = self.isls.get_mut(&port).is_some_and(|isl| {
                    isl.neighbour = None;
                    std::mem::take(&mut isl.open)
                });
                self.use_ports(now, port, PortKind::Isolated);
                self.close(now, port, open);
            }
            eport::Output::Isolated(reason) => self.event(Event::Isolated { port, reason }),
        }
    }

    fn settle_domains(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.domains.poll_output() {
            moved = true;
            match output {
                domain::Output::Send(send) => self.send(now, Asker::Domain, send),
                domain::Output::Domain(domain) => {
                    self.services.handle(now, switch::Input::Domain(domain));
                    self.names.handle(now, names::Input::Domain(domain));
                    self.zones.handle(now, server::Input::Domain(domain));
                    self.paths.handle(now, fspf::Input::Domain(domain));
                    self.event(Event::Domain(domain));
                }
                domain::Output::Principal { name, .. } => {
                    self.principal = Some(name);
                    self.event(Event::Principal(name));
                }
                domain::Output::Domains(members) => {
                    self.members = members;
                    self.tell_zones(now);
                }
                domain::Output::LinkReady { port } => {
                    if let Some(neighbour) = self.neighbour_name(port) {
                        self.zones.handle(now, server::Input::LinkUp { port, neighbour });
                    }
                }
                domain::Output::Isolate { port, reason } => self.isolate(now, port, reason),
                domain::Output::FabricName(name) => self.services.handle(now, switch::Input::FabricName(name)),
            }
        }
        moved
    }

    fn neighbour_name(&self, port: u16) -> Option<Wwnn> {
        self.isls.get(&port)?.neighbour.map(|neighbour| neighbour.switch_name)
    }

    fn settle_zones(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.zones.poll_output() {
            moved = true;
            match output {
                server::Output::Send(send) => self.send(now, Asker::Zones, send),
                server::Output::Changed { zones, effective } => {
                    let database = zones.database();
                    self.outputs.push_back(Output::Zones(database.clone()));
                    self.services.handle(now, switch::Input::ZoneDatabase(Some(database.clone())));
                    self.names.handle(now, names::Input::Zones(zones.clone()));
                    if effective {
                        self.services.handle(now, switch::Input::Zoning(zones.index()));
                    }
                }
                server::Output::LinkMerged { port } => self.open(now, port),
                server::Output::Isolate { port, failure } => {
                    if let Some(isl) = self.isls.get_mut(&port) {
                        isl.zones_differ = true;
                    }
                    self.isolate(now, port, Isolation::ZoneMerge { conflict: failure.to_string() });
                }
                server::Output::ChangeDone { tag, result } => self.zones_changed(now, tag, result),
            }
        }
        moved
    }

    /// The link may carry traffic: paths over it are looked for.
    fn open(&mut self, now: Instant, port: u16) {
        let Some(isl) = self.isls.get_mut(&port) else { return };
        let Some(neighbour) = isl.neighbour.map(|neighbour| neighbour.switch_name) else { return };
        let first = !std::mem::replace(&mut isl.open, true);
        if first {
            self.use_ports(now, port, PortKind::E);
            self.event(Event::IslUp { port, neighbour });
        }
        let (cost, bundle) = (self.cost(port), self.config.isl(port).bundle);
        self.paths.handle(now, fspf::Input::LinkUp { port, cost, bundle });
    }

    fn settle_paths(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.paths.poll_output() {
            moved = true;
            match output {
                fspf::Output::Send(send) => self.send(now, Asker::Paths, send),
                fspf::Output::Neighbour { .. } => {}
                fspf::Output::Routes(routes) => self.routes(now, routes),
            }
        }
        moved
    }

    fn routes(&mut self, now: Instant, routes: Vec<(u8, Vec<Leg>)>) {
        let mut changed = Vec::new();
        for (domain, legs) in &routes {
            let before = match legs.is_empty() {
                true => self.legs.remove(domain),
                false => self.legs.insert(*domain, legs.clone()),
            };
            if before.is_some() == legs.is_empty() {
                changed.push((*domain, !legs.is_empty()));
            }
        }
        // The forwarding table first: what follows is sent over the new paths.
        self.services.handle(now, switch::Input::Routes(routes));
        for &(domain, reachable) in &changed {
            if !reachable {
                self.exchanges.forget(|peer| peer == crate::ils::Peer::Domain(domain));
            }
            let input = match reachable {
                true => names::Input::Reachable { domain },
                false => names::Input::Unreachable { domain },
            };
            self.names.handle(now, input);
        }
        if !changed.is_empty() {
            self.tell_zones(now);
        }
    }

    /// The zone server changes zones with every domain that has a path and a name.
    fn tell_zones(&mut self, now: Instant) {
        let reachable = self.members.iter().filter(|(domain, _)| self.legs.contains_key(domain));
        let reachable: Vec<(u8, Wwnn)> = reachable.copied().collect();
        self.zones.handle(now, server::Input::Domains(reachable));
    }

    fn settle_names(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.names.poll_output() {
            moved = true;
            let update = match output {
                names::Output::Send(send) => {
                    self.send(now, Asker::Names, send);
                    continue;
                }
                names::Output::Object(entry) => PeerUpdate::Object(entry),
                names::Output::Removed { port_id } => PeerUpdate::Removed { port_id },
                names::Output::DomainGone { domain } => PeerUpdate::DomainGone { domain },
                names::Output::Superseded { port_id } => PeerUpdate::Superseded { port_id },
            };
            self.services.handle(now, switch::Input::Peer(update));
        }
        moved
    }

    fn settle_services(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.services.poll_output() {
            moved = true;
            match output {
                switch::Output::Send { port, frame } => self.outputs.push_back(Output::Send { port, frame }),
                switch::Output::Fib(delta) => self.outputs.push_back(Output::Fib(delta)),
                switch::Output::Persist { port_name, port_id } => {
                    self.outputs.push_back(Output::Persist { port_name, port_id });
                }
                switch::Output::Peer(update) => self.tell_names(now, update),
                switch::Output::ChangeZones { tag, change } => {
                    self.change_zones(now, Requester::NPort(tag), change);
                }
            }
        }
        moved
    }

    /// What happened to an own port is for the other switches.
    fn tell_names(&mut self, now: Instant, update: PeerUpdate) {
        match update {
            PeerUpdate::Object(entry) => {
                let supersedes = self.superseded.take();
                self.names.handle(now, names::Input::Local { entry, supersedes });
            }
            PeerUpdate::Removed { port_id } => {
                if let Some((port_name, node_name)) = self.names.own(port_id).map(|own| (own.port_name, own.node_name))
                {
                    self.names.handle(now, names::Input::LocalGone { port_id, port_name, node_name });
                }
            }
            PeerUpdate::Supersedes { port_id } => self.superseded = Some(port_id),
            PeerUpdate::Superseded { .. } | PeerUpdate::DomainGone { .. } => {}
        }
    }

    fn isolate(&mut self, now: Instant, port: u16, reason: Isolation) {
        if let Some(isl) = self.isls.get_mut(&port) {
            isl.machine.handle(now, eport::Input::Isolate(reason));
        }
    }
}
