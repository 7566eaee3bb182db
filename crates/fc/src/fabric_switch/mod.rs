//! A whole switch of a fabric. [`FabricSwitch`] contains the services of [`Switch`] and the
//! machines that join it with other switches, and passes the outputs of each machine to the others.
//!
//! ```text
//!   link up ──▶ EPort (ELP)
//!                 │ Up
//!                 ▼
//!               DomainManager (EFP, DIA, RDI) ─── Domain ──▶ ┌─────────────────────┐
//!                 │ LinkReady                                │ Switch:             │
//!                 ▼                                          │ login, name server, │
//!               ZoneServer (MR, SFC …) ────────── Changed ─▶ │ zoning,             │
//!                 │ LinkMerged                               │ fabric controller,  │
//!                 ▼                                          │ management server   │
//!               Fspf (HLO, LSU) ───────────────── Routes ──▶ │                     │
//!                 │ Routes                                   │                     │
//!                 ▼                                          │                     │
//!               NameExchange (SW_RSCN, GE_PT) ─── Object ──▶ └─────────────────────┘
//! ```
//!
//! It follows the contract of a control machine (see the crate), and both drivers run it; a chassis
//! with several virtual fabrics runs one per fabric. An E_Port carries other traffic only after all
//! five machines have accepted its link. Until then it is [`PortKind::Isolated`], and only the
//! fabric controllers at its ends communicate.
//!
//! For the machines, all links of a bundle (trunk) are one link with the number of its lowest port.
//! It is up while one of its links is, and messages of the fabric controllers use any of them.
//!
//! Exchanges with other switches are managed here, see [`crate::ils`].

mod config;
mod deferred;
mod early;
mod isls;
mod message;
mod outbox;
mod status;
mod topology;
mod trial;
mod wiring;
mod zone_requests;

pub use config::{FabricSwitchConfig, IslConfig};
pub use status::{IslState, IslStatus};
pub use trial::{Cable, Trial};

use crate::domain::{self, DomainManager};
use crate::eport;
use crate::fabric::FibDelta;
use crate::fspf::{self, Fspf};
use crate::ils::{Outcome, Peer};
use crate::isolation::Isolation;
use crate::names::{self, NameExchange};
use crate::switch::{self, PortKind, Switch};
use crate::zoning::ZoneDatabase;
use crate::zoning::server::{self, ChangeFailure, ZoneChange, ZoneServer};
use deferred::{DeferredQueries, is_query};
use early::EarlyQueries;
use isls::Isls;
use outbox::{Outbox, Owner, Route};
use sanloom_scsi::time::Instant;
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::{FcId, Frame, Wwnn, Wwpn};
use std::sync::Arc;
use topology::Topology;
use zone_requests::{Requester, ZoneRequests};

/// Event for a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link of a port came up. A port that was already up goes down first.
    PortUp {
        /// Port number.
        port: u16,
        /// Kind of device at the other end.
        kind: PortKind,
    },
    /// The link of a port went down.
    PortDown {
        /// Port number.
        port: u16,
    },
    /// The loop at a port is initialised, and the port is its FL_Port; see
    /// [`switch::Input::LoopUp`].
    LoopUp {
        /// Port number.
        port: u16,
        /// AL_PAs of the position map. AL_PA 00 is ignored.
        al_pas: Vec<AlPa>,
    },
    /// A message to a service or a controller of this switch.
    Frame {
        /// Port on which the message was received.
        port: u16,
        /// Whole message.
        frame: Frame,
    },
    /// Link incident on a port, to be reported to the ports registered for link incidents. If it
    /// takes the link down, pass it before the [`PortDown`](Input::PortDown), while the attached
    /// ports are still known.
    Incident {
        /// Port number.
        port: u16,
        /// Incident code (see [`link_incident::code`](sanloom_wire::els::link_incident::code)).
        code: u8,
    },
    /// Change of the zones of the fabric, requested by the operator.
    ChangeZones {
        /// Tag returned with [`Event::ZonesChanged`].
        tag: u32,
        /// Requested change.
        change: ZoneChange,
    },
    /// Retry of an isolated port, requested by the operator.
    Retry {
        /// Port number.
        port: u16,
    },
    /// Rebuild of the fabric with a new selection of the principal switch, requested by the
    /// operator.
    Rebuild {
        /// True to reassign all domains as well; all ports then log in again.
        disruptive: bool,
    },
    /// The deadline of [`FabricSwitch::poll_timeout`] was reached. An early call is harmless.
    Timeout,
}

/// Action or event for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message.
    Send {
        /// Port through which to send.
        port: u16,
        /// Whole message.
        frame: Frame,
    },
    /// Apply the change to the forwarding table before processing later outputs.
    Fib(FibDelta),
    /// Store a newly persistent address.
    Persist {
        /// Port name that owns the address.
        port_name: Wwpn,
        /// Persistent address.
        port_id: FcId,
    },
    /// Store the new zone database before processing later outputs, because these report it to
    /// other switches.
    Zones {
        /// The new database.
        database: ZoneDatabase,
        /// True if the enforced zoning changes as well: the effective zones or the default zone.
        effective: bool,
    },
    /// Report the event to the administrator.
    Event(Event),
}

/// Event for the administrator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A link to another switch carries traffic.
    IslUp {
        /// Port number.
        port: u16,
        /// Name of the switch at the other end.
        neighbour: Wwnn,
    },
    /// A link to another switch no longer carries traffic.
    IslDown {
        /// Port number.
        port: u16,
    },
    /// Path selection no longer uses a link that is up, because HLOs are lost.
    AdjacencyLost {
        /// Port number.
        port: u16,
    },
    /// Path selection can use the link again after [`Event::AdjacencyLost`].
    AdjacencyRestored {
        /// Port number.
        port: u16,
    },
    /// A port was isolated from its neighbour.
    Isolated {
        /// Port number.
        port: u16,
        /// Reason for the isolation.
        reason: Isolation,
    },
    /// The domain of the switch changed; `None` if it was lost.
    Domain(Option<u8>),
    /// The principal switch of the fabric changed.
    Principal(Wwnn),
    /// A zone change requested by the operator has ended. A failed change has changed nothing
    /// anywhere.
    ZonesChanged {
        /// Tag from [`Input::ChangeZones`].
        tag: u32,
        /// Success, or every reason for the failure.
        result: Result<(), Vec<ChangeFailure>>,
    },
}

/// Machines of one switch. See the [module](self).
#[derive(Debug)]
pub struct FabricSwitch {
    services: Switch,
    isls: Isls,
    domains: DomainManager,
    zones: ZoneServer,
    paths: Fspf,
    names: NameExchange,
    topology: Topology,
    /// Queries of N_Ports that are not yet registered in the other switches.
    deferred: DeferredQueries,
    /// Queries of switches to which there is no path yet.
    early: EarlyQueries,
    /// Zone changes in progress.
    changes: ZoneRequests,
    /// Remote port with the same name as the next own object, which supersedes it.
    supersedes: Option<FcId>,
    out: Outbox,
}

impl FabricSwitch {
    /// Returns a switch with all ports down.
    pub fn new(now: Instant, config: FabricSwitchConfig) -> FabricSwitch {
        let e_d_tov = config.services.e_d_tov;
        let mut switch = FabricSwitch {
            isls: Isls::new(&config),
            services: Switch::new(config.services),
            domains: DomainManager::new(now, config.domain),
            zones: ZoneServer::new(config.zones, config.database),
            paths: Fspf::new(config.fspf),
            names: NameExchange::new(config.names),
            topology: Topology::new(),
            deferred: DeferredQueries::new(e_d_tov),
            early: EarlyQueries::new(e_d_tov),
            changes: ZoneRequests::default(),
            supersedes: None,
            out: Outbox::new(e_d_tov),
        };
        let database = config.zones.supported.then(|| switch.zones.database().clone());
        if database.is_some() {
            switch.names.handle(now, names::Input::Zones(switch.zones.zones().clone()));
        }
        switch.services.handle(now, switch::Input::ZoneDatabase(database));
        switch.drain_machines(now);
        switch
    }

    /// Processes one input at `now`, which never decreases. It never panics and never blocks, for
    /// any data of a peer.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::PortUp { port, kind: PortKind::F } => {
                self.isl_down(now, port);
                self.services.handle(now, switch::Input::PortUp { port, kind: PortKind::F });
            }
            Input::PortUp { port, .. } => self.isl_up(now, port),
            Input::LoopUp { port, al_pas } => {
                self.isl_down(now, port);
                self.services.handle(now, switch::Input::LoopUp { port, al_pas });
            }
            Input::PortDown { port } => {
                self.isl_down(now, port);
                self.deferred.drop_port(port);
                self.services.handle(now, switch::Input::PortDown { port });
            }
            Input::Frame { port, frame } => self.frame(now, port, frame),
            Input::Incident { port, code } => self.services.handle(now, switch::Input::Incident { port, code }),
            Input::ChangeZones { tag, change } => self.change_zones(now, Requester::Operator(tag), change),
            Input::Retry { port } => {
                let leader = self.isls.leader(port);
                if let Some(isl) = self.isls.get_mut(leader) {
                    isl.machine.handle(now, eport::Input::Retry);
                }
            }
            Input::Rebuild { disruptive } => self.domains.handle(now, domain::Input::Rebuild { disruptive }),
            Input::Timeout => self.timeout(now),
        }
        self.drain_machines(now);
    }

    /// Returns the next output. Drain until `None` after [`new`](FabricSwitch::new) and after every
    /// [`handle`](FabricSwitch::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop()
    }

    /// Time at which to pass [`Input::Timeout`] if no other input comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let machines = [
            self.services.poll_timeout(),
            self.domains.poll_timeout(),
            self.zones.poll_timeout(),
            self.paths.poll_timeout(),
            self.names.poll_timeout(),
            self.out.next_deadline(),
            self.deferred.next_deadline(),
            self.early.next_deadline(),
            self.isls.poll_timeout(),
        ];
        machines.into_iter().flatten().min()
    }

    fn timeout(&mut self, now: Instant) {
        loop {
            let route = Route { domain: self.services.domain(), isls: &self.isls };
            let Some(request) = self.out.repeat_due(now, route) else { break };
            self.outcome(now, request, Outcome::Unanswered);
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.services.poll_timeout()) {
            self.services.handle(now, switch::Input::Timeout);
        }
        for port in self.isls.due(now) {
            if let Some(isl) = self.isls.get_mut(port) {
                isl.machine.handle(now, eport::Input::Timeout);
            }
        }
        if is_due(self.domains.poll_timeout()) {
            self.domains.handle(now, domain::Input::Timeout);
        }
        if is_due(self.zones.poll_timeout()) {
            self.zones.handle(now, server::Input::Timeout);
        }
        if is_due(self.paths.poll_timeout()) {
            self.paths.handle(now, fspf::Input::Timeout);
        }
        if is_due(self.names.poll_timeout()) {
            self.names.handle(now, names::Input::Timeout);
        }
    }

    /// Passes the outcome of a request to the requesting machine.
    fn outcome(&mut self, now: Instant, (owner, tag): (Owner, u32), outcome: Outcome) {
        match owner {
            Owner::EPort(port) => {
                if let Some(isl) = self.isls.get_mut(port) {
                    isl.machine.handle(now, eport::Input::Outcome { tag, outcome });
                }
            }
            Owner::Domain => self.domains.handle(now, domain::Input::Outcome { tag, outcome }),
            Owner::Zones => self.zones.handle(now, server::Input::Outcome { tag, outcome }),
            Owner::Paths => {}
            Owner::Names => self.names.handle(now, names::Input::Outcome { tag, outcome }),
        }
    }

    fn change_zones(&mut self, now: Instant, requester: Requester, change: ZoneChange) {
        let tag = self.changes.open(requester);
        self.zones.handle(now, server::Input::Change { tag, change });
    }

    /// Passes the result of a zone change to its requester.
    fn zones_changed(&mut self, now: Instant, tag: u32, result: Result<(), Vec<ChangeFailure>>) {
        match self.changes.close(tag) {
            Some(Requester::Operator(tag)) => self.out.event(Event::ZonesChanged { tag, result }),
            Some(Requester::NPort(tag)) => self.services.handle(now, switch::Input::ZonesChanged { tag, result }),
            None => {}
        }
    }

    /// Handles a frame for the services from an F_Port. A query waits while its reply may reveal
    /// ports that the other switches would not let the sender reach yet.
    fn service_frame(&mut self, now: Instant, port: u16, frame: Frame) {
        if let Some(info) = self.topology.update_for(&frame, &self.services, &self.isls, &self.paths) {
            self.services.handle(now, switch::Input::FabricInfo(Arc::new(info)));
        }
        let reveals = !self.deferred.is_full() && self.services.enforces_zones() && is_query(&frame);
        let login = if reveals { self.names.unannounced_login(frame.header.s_id) } else { None };
        if login.is_some() || (reveals && self.zones.others_may_differ()) {
            return self.deferred.push(now, login, port, frame);
        }
        self.services.handle(now, switch::Input::Frame { port, frame });
    }

    fn isl_up(&mut self, now: Instant, port: u16) {
        self.isl_down(now, port);
        let leader = self.isls.leader(port);
        let kind = if self.isls.is_open(leader) { PortKind::E } else { PortKind::Isolated };
        self.services.handle(now, switch::Input::PortUp { port, kind });
        if let Some(isl) = self.isls.get_mut(leader) {
            isl.members.insert(port);
            return self.update_cost(now, leader);
        }
        let mut machine = self.isls.machine(leader);
        machine.handle(now, eport::Input::LinkUp);
        self.isls.insert(leader, port, machine);
    }

    /// Handles the loss of light at a port to another switch, if it was one.
    fn isl_down(&mut self, now: Instant, port: u16) {
        let leader = self.isls.leader(port);
        let Some(isl) = self.isls.get_mut(leader) else { return };
        if !isl.members.remove(&port) || !isl.members.is_empty() {
            return self.update_cost(now, leader);
        }
        let Some(mut isl) = self.isls.remove(leader) else { return };
        self.out.drop_requests(Peer::Link(leader));
        isl.machine.handle(now, eport::Input::LinkDown);
        while isl.machine.poll_output().is_some() {}
        self.close(now, leader, isl.open);
        self.zones.handle(now, server::Input::LinkDown { port: leader });
        self.domains.handle(now, domain::Input::LinkDown { port: leader });
    }

    /// Updates the cost of a link after a bundle gained or lost a link.
    fn update_cost(&mut self, now: Instant, leader: u16) {
        if self.isls.is_open(leader) {
            let cost = self.isls.cost(leader);
            self.paths.handle(now, fspf::Input::Cost { port: leader, cost });
        }
    }

    /// Sets the kind of all ports of a link.
    fn set_port_kind(&mut self, now: Instant, leader: u16, kind: PortKind) {
        for port in self.isls.members(leader) {
            self.services.handle(now, switch::Input::PortUp { port, kind });
        }
    }

    /// Ends traffic over a link. The machine that isolated the port continues to communicate with
    /// the neighbour.
    fn close(&mut self, now: Instant, port: u16, was_open: bool) {
        if was_open {
            self.out.event(Event::IslDown { port });
        }
        self.paths.handle(now, fspf::Input::LinkDown { port });
        if !self.isls.get(port).is_some_and(|isl| isl.zones_differ) {
            self.zones.handle(now, server::Input::LinkDown { port });
        }
        if self.domains.isolated(port).is_none() {
            self.domains.handle(now, domain::Input::LinkDown { port });
        }
    }
}
