//! The control side of a switch: fabric login, name server, fabric controller and management
//! server.
//!
//! # How to drive it
//!
//! [`Switch`] follows the contract of a control machine (see the crate): [`handle`](Switch::handle)
//! one input, drain [`poll_output`](Switch::poll_output) until `None`, return at
//! [`poll_timeout`](Switch::poll_timeout). Drain once after [`new`](Switch::new) as well, because
//! it may enable hard zoning.
//!
//! - Frames for which [`Fib::decide`](crate::fabric::Fib::decide) returns `Local` are passed as
//!   [`Input::Frame`]. Each is a whole message: the driver reassembles incoming messages of several
//!   frames and segments outgoing ones longer than a frame.
//! - [`Output::Fib`] must be applied to the forwarding table before later outputs are processed.
//!   Permissions are granted before the accept or RSCN that reveals them, and are revoked before
//!   the accept of a LOGO.
//! - [`Output::Peer`] is delivered to the other switches as described at [`PeerUpdate`].
//! - [`Input::Routes`] carries the result of [`routes`](crate::fabric::routes::routes) for this
//!   switch. If a domain loses its last leg, its objects are removed; if it gains its first leg,
//!   the local objects are sent to it.
//! - A restarted switch is a new instance. Its ports come up again one by one, so its neighbours
//!   first see them go down.
//!
//! # Addresses and domain
//!
//! [`Policy`] determines the address of a port. A switch without a domain holds the latest FLOGI of
//! each port and answers it when [`Input::Domain`] assigns a domain. A switch that loses its domain
//! removes all its logins and sends the N_Ports a LOGO from the F_Port, so that they log in again.
//!
//! # Not implemented
//!
//! - Switch-to-switch protocols (see [`PeerUpdate`]).
//! - A LOGO to a port whose name logged in elsewhere: two ports with the same name that both log in
//!   again after each LOGO would never stop.

mod addresses;
mod context;
mod controller;
mod counters;
mod database;
mod directory;
mod domain;
mod entry;
mod fl_port;
mod identity;
mod login;
mod login_table;
mod management;
mod name_index;
mod name_server;
mod names;
mod outbox;
mod peer;
mod query;
mod registration;
mod rscn;
mod services;
mod sorted;
mod zone_change;
mod zone_compare;
mod zoning;

pub use crate::config::{Addressing, DuplicateNames, HardZoning, LoginLimits, NameLookup, Policy};
pub use counters::{Counters, LoginRejects, Work};
pub(crate) use entry::identity;
pub use entry::{MAX_DESCRIPTORS, NsEntry};
pub use management::{ElementInfo, FabricInfo, PortInfo, RegisteredAdapter};
pub use names::port_name;
pub use peer::PeerUpdate;

use crate::fabric::{FibDelta, Leg, PortMode, ZoneSet};
use crate::zoning::ZoneDatabase;
use crate::zoning::server::{ChangeFailure, ZoneChange};
use addresses::AddressPool;
use context::Context;
use directory::Directory;
use identity::Identity;
use login_table::LoginTable;
use management::Management;
use outbox::Outbox;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Initial configuration of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Domain, 1 to 239; `None` until [`Input::Domain`] assigns one.
    pub domain: Option<u8>,
    /// World-wide name of the switch.
    pub name: Wwnn,
    /// Name of the fabric, equal in all its switches, until [`Input::FabricName`] changes it.
    pub fabric_name: Wwnn,
    /// Number of ports; valid port numbers are below it.
    pub ports: u16,
    /// Error detect timeout, announced at login. It also limits the time for a reply to an RSCN.
    pub e_d_tov: Span,
    /// Resource allocation timeout, announced at login.
    pub r_a_tov: Span,
    /// Length of the window in which state changes are collected into one RSCN.
    pub rscn_delay: Span,
    /// Receive buffers by port, announced at login; ports beyond the list announce none.
    pub bb_credit: Vec<u16>,
    /// BB_SC_N by port, announced at login; ports beyond the list announce 0, no credit recovery.
    pub bb_sc_n: Vec<u8>,
    /// Largest data field that the services accept, in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// Effective zones, shared by the switches of the fabric.
    pub zoning: Arc<ZoneSet>,
    /// Choices of the administrator.
    pub policy: Policy,
}

/// Kind of device that a port is connected to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortKind {
    /// One or more N_Ports.
    F,
    /// Another switch.
    E,
    /// Another switch that is not, or not yet, part of the fabric.
    Isolated,
}

/// Event for [`Switch::handle`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link of a port came up. A port that was already up loses its logins first.
    PortUp {
        /// Port number.
        port: u16,
        /// Kind of device at the other end.
        kind: PortKind,
    },
    /// The link of a port went down; all its logins are removed.
    PortDown {
        /// Port number.
        port: u16,
    },
    /// The loop at a port is initialised, and the port is its FL_Port. A port that was down, or was
    /// no FL_Port, comes up for N_Ports first.
    ///
    /// The logins of other AL_PAs end, and the remaining ones get FAN. If the initialisation had
    /// the L_bit set, pass [`PortDown`](Input::PortDown) before, so that all logins end. The begin
    /// of an initialisation needs no input.
    LoopUp {
        /// Port number.
        port: u16,
        /// AL_PAs of the position map. AL_PA 00 is ignored.
        al_pas: Vec<AlPa>,
    },
    /// A message to a service of this switch.
    Frame {
        /// Port on which the message was received.
        port: u16,
        /// Whole message.
        frame: Frame,
    },
    /// New routes to the listed domains; a domain without legs is unreachable. Other domains are
    /// unchanged.
    Routes(Vec<(u8, Vec<Leg>)>),
    /// Update from another switch's [`Output::Peer`].
    Peer(PeerUpdate),
    /// Incident on the link of a port. If it takes the link down, pass it before the
    /// [`PortDown`](Input::PortDown), while the attached ports are still known.
    Incident {
        /// Port number.
        port: u16,
        /// Incident code (see [`link_incident::code`](sanloom_wire::els::link_incident::code)).
        code: u8,
    },
    /// New data for the fabric configuration server.
    FabricInfo(Arc<FabricInfo>),
    /// New name of the fabric; later logins announce it.
    FabricName(Wwnn),
    /// New domain of the switch, 1 to 239, or none. All ports with an address of the old domain are
    /// logged out.
    Domain(Option<u8>),
    /// New effective zones.
    Zoning(Arc<ZoneSet>),
    /// New database for queries to the zone server; `None` if the switch does not support zoning.
    /// [`Zoning`](Input::Zoning) determines which zones are enforced.
    ZoneDatabase(Option<ZoneDatabase>),
    /// Result of the change requested with [`Output::ChangeZones`].
    ZonesChanged {
        /// Tag of the output.
        tag: u32,
        /// Success in the whole fabric, or every reason for the failure.
        result: Result<(), Vec<ChangeFailure>>,
    },
    /// The deadline of [`Switch::poll_timeout`] was reached. An early call is harmless.
    Timeout,
}

/// Action for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message.
    Send {
        /// Port through which to send.
        port: u16,
        /// Whole message.
        frame: Frame,
    },
    /// Apply a change to the forwarding table.
    Fib(FibDelta),
    /// Deliver the update to all reachable switches.
    Peer(PeerUpdate),
    /// Store a newly persistent address for [`Policy::persistent`] of the next start.
    Persist {
        /// Port name that owns the address.
        port_name: Wwpn,
        /// Persistent address.
        port_id: FcId,
    },
    /// Change the zones of the fabric for an N_Port. The driver answers with
    /// [`Input::ZonesChanged`] exactly once.
    ChangeZones {
        /// Tag to return with the answer.
        tag: u32,
        /// Requested change.
        change: ZoneChange,
    },
}

/// Control machine of one switch.
#[derive(Debug)]
pub struct Switch {
    identity: Identity,
    policy: Policy,
    addresses: AddressPool,
    logins: LoginTable,
    directory: Directory,
    management: Management,
    out: Outbox,
}

impl Switch {
    /// Returns a switch with all ports down and no routes.
    pub fn new(config: SwitchConfig) -> Switch {
        let mut switch = Switch {
            identity: Identity::new(&config),
            addresses: AddressPool::new(&config.policy),
            logins: LoginTable::new(config.ports),
            directory: Directory::new(&config),
            management: Management::new(config.e_d_tov),
            out: Outbox::default(),
            policy: config.policy,
        };
        match config.domain {
            Some(_) => switch.set_domain(Instant::ZERO, config.domain),
            None => switch.out.fib(FibDelta::Domain { domain: None }),
        }
        if switch.enforces_zones() {
            switch.out.fib(FibDelta::ZoningOn);
        }
        switch
    }

    /// Raises the number of ports to `ports`, never lowers it; the new ports are down.
    pub(crate) fn grow(&mut self, ports: u16) {
        self.logins.grow(ports);
    }

    /// Number of ports; valid port numbers are below it.
    pub(crate) fn port_count(&self) -> u16 {
        self.logins.port_count()
    }

    /// Returns true if the forwarding table enforces zones.
    pub(crate) fn enforces_zones(&self) -> bool {
        self.directory.enforces_zones()
    }

    /// Processes one input at `now`, which never decreases. It never panics and never blocks, for
    /// any data of a peer.
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
            Input::LoopUp { port, al_pas } => self.loop_up(now, port, &al_pas),
            Input::Frame { port, frame } => self.frame(now, port, frame),
            Input::Routes(routes) => self.routes(now, routes),
            Input::Peer(update) => self.peer(now, update),
            Input::Domain(domain) => self.set_domain(now, domain),
            Input::FabricName(name) => self.identity.fabric_name = name,
            Input::Zoning(zones) => {
                let (mut cx, directory, _) = self.services(now);
                directory.set_zones(&mut cx, zones);
            }
            Input::ZoneDatabase(database) => self.management.zones.set_database(database),
            Input::ZonesChanged { tag, result } => self.management.zones.changed(&mut self.out, tag, &result),
            Input::Incident { port, code } => {
                let (mut cx, directory, management) = self.services(now);
                if port < cx.logins.port_count() {
                    management.incidents.incident(&mut cx, &directory.objects, port, code);
                }
            }
            Input::FabricInfo(info) => self.management.set_fabric_info(info),
            Input::Timeout => {
                let (mut cx, directory, management) = self.services(now);
                directory.controller.send_due(&mut cx);
                management.incidents.send_due(&mut cx);
            }
        }
        self.directory.controller.queue.drop_expired();
        self.management.incidents.drop_expired();
    }

    /// Returns the next output. Drain until `None` after every [`handle`](Switch::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop()
    }

    /// Time at which to pass [`Input::Timeout`] if no other input comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let notifications = self.directory.controller.queue.next_deadline();
        Instant::earliest(&[notifications, self.management.incidents.next_deadline()])
    }

    /// Event counts since the start.
    pub fn counters(&self) -> Counters {
        self.out.counters
    }

    /// Work since the start. The difference across one [`handle`](Switch::handle) is the cost of
    /// that call.
    pub fn work(&self) -> Work {
        self.out.work
    }

    /// N_Port_IDs logged in at this switch with their ports, sorted by N_Port_ID.
    pub fn logins(&self) -> impl Iterator<Item = (FcId, u16)> + '_ {
        self.logins.iter()
    }

    /// Name-server objects of this and the other switches, sorted by N_Port_ID.
    pub fn name_server(&self) -> impl Iterator<Item = &NsEntry> + '_ {
        self.directory.objects.range(database::scope(0, 0)).map(|(_, known)| &known.entry)
    }

    /// Adapters that have registered at this switch (FDMI), sorted by name.
    pub fn adapters(&self) -> impl Iterator<Item = RegisteredAdapter<'_>> {
        self.management.adapters()
    }

    /// Number of name-server objects, local and remote.
    pub fn name_server_len(&self) -> usize {
        self.directory.objects.len()
    }

    /// Returns true if the port is the FL_Port of a loop.
    pub fn is_loop(&self, port: u16) -> bool {
        self.logins.is_loop(port)
    }

    /// Returns true if the N_Port_ID was allocated by an FDISC.
    pub fn is_virtual(&self, id: FcId) -> bool {
        self.logins.is_virtual(id)
    }

    /// Port name of an N_Port_ID in the name server.
    pub fn port_name_of(&self, id: FcId) -> Option<Wwpn> {
        self.directory.objects.name_of(id)
    }

    /// Mode of a port; `Down` for a port number that does not exist.
    pub fn port_mode(&self, port: u16) -> PortMode {
        self.logins.mode(port)
    }

    /// World-wide name of the switch.
    pub fn name(&self) -> Wwnn {
        self.identity.name
    }

    /// Name of the fabric, as announced at login.
    pub fn fabric_name(&self) -> Wwnn {
        self.identity.fabric_name
    }

    /// Domain of the switch, or `None` before one is assigned.
    pub fn domain(&self) -> Option<u8> {
        self.identity.domain
    }

    /// Ports that reject logins until their link has been down, because a login used a name in use
    /// ([`DuplicateNames::Block`]).
    pub fn blocked_ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.logins.blocked_ports()
    }

    /// Zone comparisons so far with N_Port_IDs of this port, caused by events at other ports.
    /// [`Work::comparisons`] includes them.
    pub fn comparisons_with(&self, port: u16) -> u64 {
        self.directory.enforcement.comparisons.with(port)
    }

    /// Persistent addresses by port name, configured and learned.
    pub fn persistent_addresses(&self) -> &BTreeMap<Wwpn, FcId> {
        self.addresses.persistent()
    }

    /// Services, and the context that they need to process an input.
    fn services(&mut self, now: Instant) -> (Context<'_>, &mut Directory, &mut Management) {
        let cx = Context { now, identity: &self.identity, logins: &self.logins, out: &mut self.out };
        (cx, &mut self.directory, &mut self.management)
    }

    fn set_port(&mut self, now: Instant, port: u16, mode: PortMode) {
        let was_loop = self.logins.is_loop(port);
        if self.logins.reset(port, mode) {
            self.log_out_port(now, port);
            if was_loop {
                self.out.fib(FibDelta::LoopPort { port, is_loop: false });
            }
            self.out.fib(FibDelta::PortMode { port, mode });
        }
    }

    fn routes(&mut self, now: Instant, routes: Vec<(u8, Vec<Leg>)>) {
        let (mut cx, directory, _) = self.services(now);
        let mut reached = false;
        for (domain, legs) in routes {
            if Some(domain) != cx.identity.domain {
                reached |= directory.set_route(&mut cx, domain, legs);
            }
        }
        if reached {
            let local = directory.local_objects(cx.logins);
            local.into_iter().for_each(|entry| cx.out.peer(PeerUpdate::Object(entry)));
        }
    }

    fn frame(&mut self, now: Instant, port: u16, frame: Frame) {
        let header = frame.header;
        if self.logins.mode(port) != PortMode::F {
            return self.out.discard();
        }
        let message = match frame.payload {
            Payload::Typed(message) => message,
            Payload::Bytes(bytes) => match Message::parse(&header, &bytes, None) {
                Ok(message) => message,
                Err(error) => return self.malformed(port, &header, &bytes, error),
            },
            Payload::Pattern { .. } => return self.out.discard(),
        };
        match message {
            Message::Els(els) => self.link_service(now, port, &header, *els),
            Message::Ct(ct) => self.common_transport(now, port, &header, *ct),
            Message::Bls(bls) => self.basic_link_service(port, &header, bls),
            _ => self.out.discard(),
        }
    }
}
