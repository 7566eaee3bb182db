//! The control side of a switch: fabric login, name server, fabric controller and management server.
//!
//! # How to drive it
//!
//! [`Switch`] keeps the contract of a control machine (see the crate): [`handle`](Switch::handle) one input, drain
//! [`poll_output`](Switch::poll_output) until `None`, come back at [`poll_timeout`](Switch::poll_timeout). Drain once
//! after [`new`](Switch::new), too: it may switch hard zoning on.
//!
//! - Frames that [`Fib::decide`](crate::fabric::Fib::decide) calls `Local` go in as [`Input::Frame`], each a whole
//!   message: the driver reassembles what comes in several frames and cuts what is longer than one.
//! - [`Output::Fib`] is applied to the forwarding table before later outputs are acted on. Permissions come before the
//!   accept or RSCN that reveals them, and go before the accept of a LOGO.
//! - [`Output::Peer`] is delivered to the other switches as [`PeerUpdate`] says.
//! - [`Input::Routes`] brings what [`routes`](crate::fabric::routes::routes) found for this switch. A domain that loses
//!   its last leg takes its objects with it; one that gains its first is sent ours.
//! - A switch that restarts is made anew. Its ports come up again one by one, so the neighbours see them go down first.
//!
//! # Addresses and domain
//!
//! [`Policy`] says which addresses a port gets. A switch that has no domain yet holds the latest FLOGI of each port, and
//! answers it when [`Input::Domain`] brings one. A switch that loses its domain takes all its logins away and tells the
//! N_Ports with a LOGO from the F_Port, so that they begin anew.
//!
//! # What is absent
//!
//! Switch-to-switch protocols (see [`PeerUpdate`]), and a LOGO to a port whose name logged in
//! elsewhere: two ports with one name that both log in again when told so would never come to rest.

mod addresses;
mod controller;
mod counters;
mod database;
mod domain;
mod entry;
mod login;
mod management;
mod name_index;
mod name_server;
mod peer;
mod policy;
mod query;
mod rscn;
mod services;
mod sorted;
mod zone_change;
mod zone_compare;
mod zoning;

pub use counters::{Counters, LoginRejects, Work};
pub use entry::{MAX_DESCRIPTORS, NsEntry, NsExtra, NsRare};
pub use login::port_name;
pub use management::{ElementInfo, FabricInfo, PortInfo};
pub use peer::PeerUpdate;
pub use policy::{Addressing, DuplicateNames, HardZoning, LoginLimits, NameLookup, Policy};

use crate::fabric::{FibDelta, Leg, PortMode, ZoneSet};
use crate::time::{Instant, Span};
use crate::zoning::ZoneDatabase;
use crate::zoning::server::{ChangeFailure, ZoneChange};
use addresses::AddressPool;
use database::Database;
use domain::Held;
use management::Management;
use rscn::RscnQueue;
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use zone_compare::Comparisons;

/// What a switch is told at its beginning.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Domain, 1 to 239; nothing until [`Input::Domain`] brings one.
    pub domain: Option<u8>,
    /// Name of the switch.
    pub name: Wwnn,
    /// Name of the fabric, the same in all its switches, until [`Input::FabricName`] brings another.
    pub fabric_name: Wwnn,
    /// Number of ports.
    pub ports: u16,
    /// Error detect timeout, announced at login; also how long the answer to an RSCN may take.
    pub e_d_tov: Span,
    /// Resource allocation timeout, announced at login.
    pub r_a_tov: Span,
    /// State changes within this time share one RSCN.
    pub rscn_delay: Span,
    /// Receive buffers of each port, announced at login; ports beyond the list announce none.
    pub bb_credit: Vec<u16>,
    /// Largest data field that the services take, in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// The effective zones, shared by the switches of the fabric.
    pub zoning: Arc<ZoneSet>,
    /// What its administrator decided.
    pub policy: Policy,
}

/// What a port is connected to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortKind {
    /// N_Ports.
    F,
    /// Another switch.
    E,
    /// Another switch that is not part of the fabric, or not yet.
    Isolated,
}

/// Something that happened to a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link of a port came up. A port that was up loses its logins first.
    PortUp {
        /// The port.
        port: u16,
        /// What is at the other end.
        kind: PortKind,
    },
    /// The link of a port went down: everything that logged in there is gone.
    PortDown {
        /// The port.
        port: u16,
    },
    /// A message to a service of this switch.
    Frame {
        /// The port that it came in through.
        port: u16,
        /// The message.
        frame: Frame,
    },
    /// The ways to these domains are these from now on; no legs: unreachable. Domains not named stay as they are.
    Routes(Vec<(u8, Vec<Leg>)>),
    /// A message of another switch's [`Output::Peer`].
    Peer(PeerUpdate),
    /// Something happened to the link of a port. One that takes the link down comes before its [`PortDown`](Input::PortDown),
    /// while the switch knows who was there.
    Incident {
        /// The port.
        port: u16,
        /// What happened (see [`link_incident::code`](sanloom_wire::els::link_incident::code)).
        code: u8,
    },
    /// What the fabric configuration server knows from now on.
    FabricInfo(Arc<FabricInfo>),
    /// The fabric has this name from now on; whoever logs in from now on hears it.
    FabricName(Wwnn),
    /// The switch has this domain from now on, 1 to 239, or none. Everybody who has an address of the old one is logged
    /// out.
    Domain(Option<u8>),
    /// These are the effective zones from now on.
    Zoning(Arc<ZoneSet>),
    /// What the zone server answers queries from, from now on; nothing: the switch knows no zoning. [`Zoning`](Input::Zoning)
    /// says what of it is enforced.
    ZoneDatabase(Option<ZoneDatabase>),
    /// How a change ended that [`Output::ChangeZones`] asked for.
    ZonesChanged {
        /// From the output.
        tag: u32,
        /// In force everywhere, or everything that was in the way.
        result: Result<(), Vec<ChangeFailure>>,
    },
    /// The time that [`Switch::poll_timeout`] named has come; too early is harmless.
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
    /// Change the forwarding table.
    Fib(FibDelta),
    /// Tell every other switch that can be reached.
    Peer(PeerUpdate),
    /// The address is the persistent one of the name from now on: to be kept for [`Policy::persistent`] of a later start.
    Persist {
        /// The port name.
        port_name: Wwpn,
        /// Its address.
        port_id: FcId,
    },
    /// An N_Port wants the zones of the fabric changed: answered with [`Input::ZonesChanged`], exactly once.
    ChangeZones {
        /// Comes back with the answer.
        tag: u32,
        /// The change.
        change: ZoneChange,
    },
}

/// The control machine of one switch.
#[derive(Debug)]
pub struct Switch {
    config: SwitchConfig,
    domain: Option<u8>,
    ports: Vec<Port>,
    addresses: AddressPool,
    /// Everything that is logged in here.
    logins: BTreeMap<FcId, Login>,
    database: Database,
    comparisons: Comparisons,
    rscn: RscnQueue,
    management: Management,
    reachable: DomainSet,
    outputs: VecDeque<Output>,
    counters: Counters,
    work: Work,
}

#[derive(Clone, Debug)]
struct Port {
    mode: PortMode,
    /// Port name and address of the last FLOGI, for the clean address bit.
    last_login: Option<(Wwpn, FcId)>,
    /// Address of the FLOGI while it is logged in.
    base: Option<FcId>,
    /// Every address that is logged in here.
    ids: BTreeSet<FcId>,
    /// FLOGI that waits for a domain.
    held: Option<Box<Held>>,
    /// Takes no logins until its link has been down.
    blocked: bool,
}

impl Port {
    const DOWN: Port =
        Port { mode: PortMode::Down, last_login: None, base: None, ids: BTreeSet::new(), held: None, blocked: false };
}

/// An N_Port_ID that is logged in here.
#[derive(Clone, Copy, Debug, Default)]
struct Login {
    port: u16,
    /// Logged in with these services, by bit.
    services: u8,
    /// The other switches hear of every change from now on.
    announced: bool,
}

/// Domains, by bit.
#[derive(Clone, Copy, Debug, Default)]
struct DomainSet([u64; 4]);

impl DomainSet {
    fn has(&self, domain: u8) -> bool {
        self.0[usize::from(domain) / 64] >> (domain % 64) & 1 != 0
    }

    /// Puts a domain in or takes it out; true if that changed something.
    fn set(&mut self, domain: u8, member: bool) -> bool {
        let changed = self.has(domain) != member;
        self.0[usize::from(domain) / 64] ^= u64::from(changed) << (domain % 64);
        changed
    }
}

impl Switch {
    /// A switch with all ports down and no routes.
    pub fn new(config: SwitchConfig) -> Switch {
        let mut switch = Switch {
            domain: None,
            ports: vec![Port::DOWN; usize::from(config.ports)],
            addresses: AddressPool::new(&config.policy),
            logins: BTreeMap::new(),
            database: Database::default(),
            comparisons: Comparisons::default(),
            rscn: RscnQueue::new(config.rscn_delay, config.e_d_tov, config.r_a_tov),
            management: Management::new(config.e_d_tov),
            reachable: DomainSet::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            work: Work::default(),
            config,
        };
        switch.database.index_ports(switch.config.zoning.uses_switch_ports());
        match switch.config.domain {
            Some(_) => switch.set_domain(Instant::ZERO, switch.config.domain),
            None => switch.fib(FibDelta::Domain { domain: None }),
        }
        if switch.zones_hard() {
            switch.fib(FibDelta::ZoningOn);
        }
        switch
    }

    /// It has so many ports from now on, if that is more than before; the new ones are down.
    pub(crate) fn grow(&mut self, ports: u16) {
        self.config.ports = self.config.ports.max(ports);
        self.ports.resize(usize::from(self.config.ports), Port::DOWN);
    }

    /// One thing happened at `now`, which never decreases. Never panics and never blocks, whatever a peer sent.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::PortUp { port, kind } => {
                let mode = match kind {
                    PortKind::F => PortMode::F,
                    PortKind::E => PortMode::E,
                    PortKind::Isolated => PortMode::Isolated,
                };
                self.set_port(now, port, mode);
            }
            Input::PortDown { port } => self.set_port(now, port, PortMode::Down),
            Input::Frame { port, frame } => self.frame(now, port, frame),
            Input::Routes(routes) => self.routes(now, routes),
            Input::Peer(update) => self.peer(now, update),
            Input::Domain(domain) => self.set_domain(now, domain),
            Input::FabricName(name) => self.config.fabric_name = name,
            Input::Zoning(zones) => self.set_zoning(now, zones),
            Input::ZoneDatabase(database) => self.set_zone_database(database),
            Input::ZonesChanged { tag, result } => self.zones_changed(tag, &result),
            Input::Incident { port, code } => self.link_incident(now, port, code),
            Input::FabricInfo(info) => self.management.set_fabric_info(info),
            Input::Timeout => {
                self.notifications_due(now);
                self.reports_due(now);
            }
        }
        self.rscn.tidy();
        self.management.tidy();
    }

    /// What is to be done next; drained until `None` after every [`handle`](Switch::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`] if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.rscn.next_deadline().into_iter().chain(self.management.next_deadline()).min()
    }

    /// Events since the beginning.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Work since the beginning: the difference over one [`handle`](Switch::handle) is what it cost.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Everything that is logged in at this switch: id and port, sorted by id.
    pub fn logins(&self) -> impl Iterator<Item = (FcId, u16)> + '_ {
        self.logins.iter().map(|(id, login)| (*id, login.port))
    }

    /// Every object of the name server, of this switch and of the others, sorted by id.
    pub fn name_server(&self) -> impl Iterator<Item = &NsEntry> + '_ {
        self.database.range(database::scope(0, 0)).map(|(_, known)| &*known.entry)
    }

    /// Number of objects of the name server.
    pub fn name_server_len(&self) -> usize {
        self.database.len()
    }

    /// The N_Port_ID was given by an FDISC.
    pub fn is_virtual(&self, id: FcId) -> bool {
        let port = self.logins.get(&id).and_then(|login| self.ports.get(usize::from(login.port)));
        port.is_some_and(|port| port.base != Some(id))
    }

    /// What a port is used for; `Down` for one that the switch does not have.
    pub fn port_mode(&self, port: u16) -> PortMode {
        self.ports.get(usize::from(port)).map_or(PortMode::Down, |state| state.mode)
    }

    /// Name of the switch.
    pub fn name(&self) -> Wwnn {
        self.config.name
    }

    /// Name of the fabric, as logins hear it.
    pub fn fabric_name(&self) -> Wwnn {
        self.config.fabric_name
    }

    /// The domain of the switch, if it has one.
    pub fn domain(&self) -> Option<u8> {
        self.domain
    }

    /// Ports that take no logins until their link has been down, because of a port name that was in use
    /// ([`DuplicateNames::Block`]).
    pub fn blocked_ports(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&self.ports).filter(|(_, port)| port.blocked).map(|(number, _)| number)
    }

    /// Zone comparisons so far with N_Port_IDs of this port, by events at other ports; see [`Work::comparisons`], of which
    /// they are a part.
    pub fn comparisons_with(&self, port: u16) -> u64 {
        self.comparisons.with(port)
    }

    /// Persistent addresses, those learned among them.
    pub fn persistent_addresses(&self) -> &BTreeMap<Wwpn, FcId> {
        self.addresses.persistent()
    }

    fn set_port(&mut self, now: Instant, port: u16, mode: PortMode) {
        let Some(state) = self.ports.get_mut(usize::from(port)) else {
            return;
        };
        state.mode = mode;
        state.held = None;
        state.blocked = false;
        self.log_out_port(now, port);
        self.fib(FibDelta::PortMode { port, mode });
    }

    fn routes(&mut self, now: Instant, routes: Vec<(u8, Vec<Leg>)>) {
        let mut reached = false;
        for (domain, legs) in routes {
            if Some(domain) == self.domain {
                continue;
            }
            let reachable = !legs.is_empty();
            self.fib(FibDelta::Routes { domain, legs });
            if self.reachable.set(domain, reachable) {
                reached |= reachable;
                if !reachable {
                    self.remove_domain(now, domain);
                }
            }
        }
        if reached {
            self.publish_all();
        }
    }

    fn frame(&mut self, now: Instant, port: u16, frame: Frame) {
        let header = frame.header;
        let at_f_port = self.ports.get(usize::from(port)).is_some_and(|p| p.mode == PortMode::F);
        if !at_f_port {
            self.counters.frames_discarded += 1;
            return;
        }
        let message = match frame.payload {
            Payload::Typed(message) => message,
            Payload::Bytes(bytes) => match Message::parse(&header, &bytes, None) {
                Ok(message) => message,
                Err(error) => return self.malformed(port, &header, &bytes, error),
            },
            Payload::Pattern { .. } => {
                self.counters.frames_discarded += 1;
                return;
            }
        };
        match message {
            Message::Els(els) => self.link_service(now, port, &header, *els),
            Message::Ct(ct) => self.common_transport(now, port, &header, *ct),
            Message::Bls(bls) => self.basic_link_service(port, &header, bls),
            _ => self.counters.frames_discarded += 1,
        }
    }

    /// The sender of a frame is logged in at the port that it came in through.
    fn knows(&self, port: u16, s_id: FcId) -> bool {
        self.logins.get(&s_id).is_some_and(|login| login.port == port)
    }

    fn fib(&mut self, delta: FibDelta) {
        self.outputs.push_back(Output::Fib(delta));
    }

    /// Answers a request in one sequence that ends its exchange. RX_ID stays unassigned: no exchange lasts.
    fn reply(&mut self, port: u16, request: &Header, d_id: FcId, r_ctl: RCtl, message: Message) {
        let header = Header {
            r_ctl,
            d_id,
            s_id: request.d_id,
            f_ctl: FCtl::REPLY,
            seq_id: 0,
            seq_cnt: 0,
            parameter: 0,
            df_ctl: 0,
            cs_ctl: 0,
            ..*request
        };
        let frame = Frame { header, payload: Payload::Typed(message) };
        self.outputs.push_back(Output::Send { port, frame });
    }

    /// Sends the first sequence of an exchange of this switch.
    fn request(&mut self, port: u16, s_id: FcId, d_id: FcId, ox_id: u16, message: Message) {
        let header = Header {
            r_ctl: RCtl::ELS_REQUEST,
            d_id,
            cs_ctl: 0,
            s_id,
            fc_type: FcType::ELS,
            f_ctl: FCtl::REQUEST,
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id,
            rx_id: sanloom_wire::header::RX_ID_UNASSIGNED,
            parameter: 0,
        };
        let frame = Frame { header, payload: Payload::Typed(message) };
        self.outputs.push_back(Output::Send { port, frame });
    }
}
