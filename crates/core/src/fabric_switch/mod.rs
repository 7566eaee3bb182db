//! A whole switch of a fabric: [`FabricSwitch`] holds the services of [`Switch`] and the machines that join it with other
//! switches, and carries what one says to the next.
//!
//! ```text
//!   link up ──▶ EPort ──Up──▶ DomainManager ──LinkReady──▶ ZoneServer ──LinkMerged──▶ Fspf ──Routes──▶ NameExchange
//!               (ELP)         (EFP, DIA, RDI)              (MR, SFC …)               (HLO, LSU)        (SW_RSCN, GE_PT)
//!                                   │ Domain                    │ Effective               │ Routes           │ Object
//!                                   ▼                           ▼                         ▼                  ▼
//!                             ┌──────────────────────────── Switch ─────────────────────────────────────────────┐
//!                             │  login, name server, zoning, fabric controller, management server               │
//!                             └─────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It keeps the contract of a control machine (see the crate) and is what both drivers run; a chassis with several virtual
//! fabrics runs one for each. An E_Port takes frames of others only when all five machines have agreed to its link: until
//! then it is [`PortKind::Isolated`], and only the fabric controllers at its ends hear each other.
//!
//! All links of a bundle (trunk) are one link to the machines, under the number of its lowest port: it is up while one of
//! them is, and what the fabric controllers say goes over any of them.
//!
//! Exchanges with other switches are kept here, see [`crate::ils`].

mod config;
mod early;
mod join;
mod message;
mod status;
mod topology;
mod trial;
mod waiting;
mod wiring;

pub use config::{FabricSwitchConfig, IslConfig};
pub use join::{JoinEnd, Joined, Obstacle, join, lab_configs};
pub use status::{IslState, IslStatus};
pub use trial::{Cable, Trial};

use crate::domain::{self, DomainManager};
use crate::eport::{self, EPort, Neighbour};
use crate::fabric::{FibDelta, Leg};
use crate::fspf::{self, Fspf};
use crate::ils::{Due, Exchanges, Outcome, Peer};
use crate::isolation::Isolation;
use crate::names::{self, NameExchange};
use crate::switch::{self, PortKind, Switch};
use crate::time::Instant;
use crate::zoning::ZoneDatabase;
use crate::zoning::server::{self, ChangeFailure, ZoneChange, ZoneServer};
use early::Early;
use sanloom_wire::{FcId, Frame, Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use waiting::Waiting;

/// Something that happened to a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link of a port came up. A port that was up goes down first.
    PortUp {
        /// The port.
        port: u16,
        /// What is at the other end.
        kind: PortKind,
    },
    /// The link of a port went down.
    PortDown {
        /// The port.
        port: u16,
    },
    /// A message to a service or a controller of this switch.
    Frame {
        /// The port that it came in through.
        port: u16,
        /// The message, whole.
        frame: Frame,
    },
    /// Something happened to the link of a port that those who registered for link incidents are to hear of. One that takes the
    /// link down comes before its [`PortDown`](Input::PortDown), while the switch knows who was there.
    Incident {
        /// The port.
        port: u16,
        /// What happened (see [`link_incident::code`](sanloom_wire::els::link_incident::code)).
        code: u8,
    },
    /// The operator wants the zones of the fabric changed.
    ChangeZones {
        /// Comes back with [`Event::ZonesChanged`].
        tag: u32,
        /// The change.
        change: ZoneChange,
    },
    /// The operator wants an isolated port to try again.
    Retry {
        /// The port.
        port: u16,
    },
    /// The operator wants the principal switch selected anew; disruptive: the domains, too.
    Rebuild {
        /// Domains are given anew, and everybody logs in again.
        disruptive: bool,
    },
    /// The time that [`FabricSwitch::poll_timeout`] named has come; too early is harmless.
    Timeout,
}

/// Something that a switch wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message.
    Send {
        /// Through this port.
        port: u16,
        /// The message.
        frame: Frame,
    },
    /// Change the forwarding table, before later outputs are acted on.
    Fib(FibDelta),
    /// The address is the persistent one of the name from now on.
    Persist {
        /// The port name.
        port_name: Wwpn,
        /// Its address.
        port_id: FcId,
    },
    /// The zone database is another one from now on: to be kept before later outputs are acted on, which tell others of it.
    Zones(ZoneDatabase),
    /// Something that an administrator wants to know.
    Event(Event),
}

/// Something that an administrator wants to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A link to another switch carries traffic.
    IslUp {
        /// The port.
        port: u16,
        /// The switch at the other end.
        neighbour: Wwnn,
    },
    /// A link to another switch carries none any more.
    IslDown {
        /// The port.
        port: u16,
    },
    /// A port is isolated from its neighbour.
    Isolated {
        /// The port.
        port: u16,
        /// Why.
        reason: Isolation,
    },
    /// The switch has this domain, or none.
    Domain(Option<u8>),
    /// The fabric has this principal switch.
    Principal(Wwnn),
    /// A change of the zones that the operator asked for has ended. What failed has changed nothing anywhere.
    ZonesChanged {
        /// From [`Input::ChangeZones`].
        tag: u32,
        /// Done, or everything that was in the way.
        result: Result<(), Vec<ChangeFailure>>,
    },
}

/// Which machine asked another switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asker {
    EPort(u16),
    Domain,
    Zones,
    /// Never waits for an answer.
    Paths,
    Names,
}

/// Who asked for a change of zones, with the tag that it gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Requester {
    Operator(u32),
    NPort(u32),
}

/// The machines of one switch. See the [module](self).
#[derive(Debug)]
pub struct FabricSwitch {
    config: FabricSwitchConfig,
    services: Switch,
    isls: BTreeMap<u16, Isl>,
    domains: DomainManager,
    zones: ZoneServer,
    paths: Fspf,
    names: NameExchange,
    exchanges: Exchanges<(Asker, u32)>,
    /// Questions of N_Ports that the other switches do not know yet.
    waiting: Waiting,
    /// Questions of switches to which there is no path yet.
    early: Early,
    /// Legs to each domain that can be reached.
    legs: BTreeMap<u8, Vec<Leg>>,
    /// A port elsewhere whose name the next own object has.
    superseded: Option<FcId>,
    /// Changes of zones that have not ended, by the tag that the zone server knows.
    changes: BTreeMap<u32, Requester>,
    next_change: u32,
    principal: Option<Wwnn>,
    members: Vec<(u8, Wwnn)>,
    /// The fabric configuration server does not know the latest of the other switches.
    info_is_old: bool,
    outputs: VecDeque<Output>,
    /// Messages of other switches that nobody took.
    discarded: u64,
    next_notice: u16,
}

/// A link to another switch, or a bundle of them.
#[derive(Debug)]
struct Isl {
    /// Its ports that have light.
    members: BTreeSet<u16>,
    machine: EPort,
    neighbour: Option<Neighbour>,
    /// Frames of others may pass.
    open: bool,
    /// The zone server had it isolated, and still talks to the neighbour about the reason.
    zones_differ: bool,
}

impl FabricSwitch {
    /// A switch with all ports down.
    pub fn new(now: Instant, config: FabricSwitchConfig) -> FabricSwitch {
        let mut switch = FabricSwitch {
            services: Switch::new(config.services.clone()),
            isls: BTreeMap::new(),
            domains: DomainManager::new(now, config.domain.clone()),
            zones: ZoneServer::new(config.zones, config.database.clone()),
            paths: Fspf::new(config.fspf),
            names: NameExchange::new(config.names),
            exchanges: Exchanges::new(config.services.e_d_tov),
            waiting: Waiting::default(),
            early: Early::default(),
            legs: BTreeMap::new(),
            superseded: None,
            changes: BTreeMap::new(),
            next_change: 0,
            principal: None,
            members: Vec::new(),
            info_is_old: true,
            outputs: VecDeque::new(),
            discarded: 0,
            next_notice: 0,
            config,
        };
        let database = switch.config.zones.supported.then(|| switch.zones.database().clone());
        if database.is_some() {
            switch.names.handle(now, names::Input::Zones(switch.zones.zones().clone()));
        }
        switch.services.handle(now, switch::Input::ZoneDatabase(database));
        switch.settle(now);
        switch
    }

    /// One thing happened at `now`, which never decreases. Never panics and never blocks, whatever a peer sent.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::PortUp { port, kind: PortKind::F } => {
                self.isl_gone(now, port);
                self.services.handle(now, switch::Input::PortUp { port, kind: PortKind::F });
            }
            Input::PortUp { port, .. } => self.isl_up(now, port),
            Input::PortDown { port } => {
                self.isl_gone(now, port);
                self.waiting.forget(port);
                self.services.handle(now, switch::Input::PortDown { port });
            }
            Input::Frame { port, frame } => self.frame(now, port, frame),
            Input::Incident { port, code } => self.services.handle(now, switch::Input::Incident { port, code }),
            Input::ChangeZones { tag, change } => self.change_zones(now, Requester::Operator(tag), change),
            Input::Retry { port } => {
                let leader = self.config.leader(port);
                if let Some(isl) = self.isls.get_mut(&leader) {
                    isl.machine.handle(now, eport::Input::Retry);
                }
            }
            Input::Rebuild { disruptive } => self.domains.handle(now, domain::Input::Rebuild { disruptive }),
            Input::Timeout => self.timeout(now),
        }
        self.settle(now);
    }

    /// What is to be done next; drained until `None` after [`new`](FabricSwitch::new) and after every
    /// [`handle`](FabricSwitch::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`] if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let machines = [
            self.services.poll_timeout(),
            self.domains.poll_timeout(),
            self.zones.poll_timeout(),
            self.paths.poll_timeout(),
            self.names.poll_timeout(),
            self.exchanges.next_deadline(),
            self.waiting.next_deadline(),
            self.early.next_deadline(),
        ];
        let ports = self.isls.values().map(|isl| isl.machine.poll_timeout());
        machines.into_iter().chain(ports).flatten().min()
    }

    fn timeout(&mut self, now: Instant) {
        while let Some(due) = self.exchanges.due(now) {
            match due {
                Due::Again { to, message, ox_id } => self.transmit(to, ox_id, message),
                Due::GivenUp { owner: (asker, tag), .. } => self.ended(now, asker, tag, Outcome::Unanswered),
            }
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.services.poll_timeout()) {
            self.services.handle(now, switch::Input::Timeout);
        }
        for isl in self.isls.values_mut().filter(|isl| is_due(isl.machine.poll_timeout())) {
            isl.machine.handle(now, eport::Input::Timeout);
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

    /// How a request to another switch ended, told to who asked.
    fn ended(&mut self, now: Instant, asker: Asker, tag: u32, outcome: Outcome) {
        match asker {
            Asker::EPort(port) => {
                if let Some(isl) = self.isls.get_mut(&port) {
                    isl.machine.handle(now, eport::Input::Outcome { tag, outcome });
                }
            }
            Asker::Domain => self.domains.handle(now, domain::Input::Outcome { tag, outcome }),
            Asker::Zones => self.zones.handle(now, server::Input::Outcome { tag, outcome }),
            Asker::Paths => {}
            Asker::Names => self.names.handle(now, names::Input::Outcome { tag, outcome }),
        }
    }

    fn change_zones(&mut self, now: Instant, requester: Requester, change: ZoneChange) {
        let tag = self.next_change;
        self.next_change = tag.wrapping_add(1);
        self.changes.insert(tag, requester);
        self.zones.handle(now, server::Input::Change { tag, change });
    }

    /// A change of zones has ended: told to who asked.
    fn zones_changed(&mut self, now: Instant, tag: u32, result: Result<(), Vec<ChangeFailure>>) {
        match self.changes.remove(&tag) {
            Some(Requester::Operator(tag)) => self.event(Event::ZonesChanged { tag, result }),
            Some(Requester::NPort(tag)) => self.services.handle(now, switch::Input::ZonesChanged { tag, result }),
            None => {}
        }
    }

    fn isl_up(&mut self, now: Instant, port: u16) {
        self.isl_gone(now, port);
        let leader = self.config.leader(port);
        let kind = if self.isls.get(&leader).is_some_and(|isl| isl.open) { PortKind::E } else { PortKind::Isolated };
        self.services.handle(now, switch::Input::PortUp { port, kind });
        if let Some(isl) = self.isls.get_mut(&leader) {
            isl.members.insert(port);
            return self.tell_cost(now, leader);
        }
        let mut machine = EPort::new(self.config.eport(leader));
        machine.handle(now, eport::Input::LinkUp);
        let members = BTreeSet::from([port]);
        self.isls.insert(leader, Isl { machine, members, neighbour: None, open: false, zones_differ: false });
    }

    /// The light of a port to another switch is gone, if it was one.
    fn isl_gone(&mut self, now: Instant, port: u16) {
        let leader = self.config.leader(port);
        let Some(isl) = self.isls.get_mut(&leader) else { return };
        if !isl.members.remove(&port) || !isl.members.is_empty() {
            return self.tell_cost(now, leader);
        }
        let Some(mut isl) = self.isls.remove(&leader) else { return };
        self.exchanges.forget(|peer| peer == Peer::Link(leader));
        isl.machine.handle(now, eport::Input::LinkDown);
        while isl.machine.poll_output().is_some() {}
        self.close(now, leader, isl.open);
        self.zones.handle(now, server::Input::LinkDown { port: leader });
        self.domains.handle(now, domain::Input::LinkDown { port: leader });
    }

    /// A bundle has more or fewer links than before.
    fn tell_cost(&mut self, now: Instant, leader: u16) {
        if self.isls.get(&leader).is_some_and(|isl| isl.open) {
            let cost = self.cost(leader);
            self.paths.handle(now, fspf::Input::Cost { port: leader, cost });
        }
    }

    /// What the ports of a link are used for.
    fn use_ports(&mut self, now: Instant, leader: u16, kind: PortKind) {
        let ports: Vec<u16> = self.isls.get(&leader).into_iter().flat_map(|isl| isl.members.iter().copied()).collect();
        for port in ports {
            self.services.handle(now, switch::Input::PortUp { port, kind });
        }
    }

    /// No traffic over this link any more. Whoever had the port isolated still speaks with the neighbour.
    fn close(&mut self, now: Instant, port: u16, was_open: bool) {
        if was_open {
            self.event(Event::IslDown { port });
        }
        self.paths.handle(now, fspf::Input::LinkDown { port });
        if !self.isls.get(&port).is_some_and(|isl| isl.zones_differ) {
            self.zones.handle(now, server::Input::LinkDown { port });
        }
        if self.domains.isolated(port).is_none() {
            self.domains.handle(now, domain::Input::LinkDown { port });
        }
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}
