//! The node port: fabric login, registration, discovery, logins with other ports.
//!
//! ```text
//!   offline --LinkUp--> flogi --> plogi --> rnn_id --> rsnn_nn --> rspn_id --> rft_id --> rff_id
//!      ^                  ^       (FFFFFC: name server)                                     |
//!      | LinkDown         |                                    ready <-- scr (FFFFFD) <-----+
//!                         +--------------------------------------+
//!                           three requests in a row without a reply, or LOGO from the fabric
//! ```
//!
//! A virtual port (N_Port_ID virtualisation) depends on a physical one: its "link" is the fabric
//! login of that port, and it sends FDISC instead of FLOGI. With [`LoginScript::Npiv`] it takes the
//! steps of the NPIV paper, figure 6:
//!
//! ```text
//!   offline --LinkUp--> flogi --> scr --> management_plogi --> lirr --> management_logo
//!      ^                (FDISC, FFFFFD, FFFFFA)                                |
//!      |                                                                       v
//!      |     ready <-- discovery_plogi <-- name_server_logo <-- rft_id <-- plogi (FFFFFC)
//!      |       | LogOut   (initiator only)
//!      +--- logo
//! ```
//!
//! Three media have no fabric, and therefore no registrations. The state after FLOGI or without it
//! is `ready`:
//!
//! ```text
//!   offline --LinkUp--> flogi -------------> peer_login --------------> ready    other N_Port on
//!                         ^   (LS_ACC of an      |    (PLOGI assigns           the link
//!                         |    N_Port)           |     the addresses)
//!                         +----------------------+
//!                            no PLOGI in time
//!   offline --LoopUp without an FL_Port--> ready                                private loop
//!   offline --Joined--> ready                                                   VN2VN segment
//! ```
//!
//! `point_to_point.rs` has the rules of the first medium, `loop_port.rs` of the second and of a
//! public loop, whose ports take the same steps as on a link to a fabric. On a link
//! without a switch the driver passes to the physical port all frames that no other port expects:
//! the FLOGI of the other end has D_ID FFFFFE, and the D_ID of its PLOGI is the new address.
//!
//! The order of the registrations is that of libfc. In the ready state an initiator queries the
//! name server for its visible targets (GID_FF; GPN_FT if that is not supported). It logs in to
//! each, a bounded number at a time. A target waits for logins.
//!
//! Changes arrive as RSCNs. An initiator repeats the query, one at a time, and verifies the
//! affected ports with ADISC. A target queries the name server whether an affected initiator still
//! exists (GPN_ID).
//!
//! Every request has one deadline, and one function passes its failure to the owner of the request:
//! `on_failure` in `dispatch.rs`. No retry comes sooner than the timeout or a doubling back-off
//! with seeded jitter, so that a fabric that rejects all ports is not flooded.
//!
//! Each job has one owner: `fabric::FabricLogin` (login and registrations), `discovery::Discovery`
//! (the query for targets) and `logins::RemoteLogins` (other ports). Owners send through
//! `exchanges::Exchanges` and do not refer to each other; [`NPort`] applies their results.
//!
//! Only ELS and CT frames belong here; see [`crate::exchange::route`]. Messages are whole: the
//! driver segments and reassembles messages longer than a frame.

mod adapter;
mod discovery;
mod dispatch;
mod exchanges;
mod fabric;
mod identity;
mod logins;
mod loop_port;
mod pending;
mod point_to_point;
mod remote;
mod responder;

pub use crate::config::LoginScript;
pub use adapter::Adapter;
pub use fabric::{FabricState, VirtualPort};
pub use remote::RemoteState;

use adapter::AdapterStep;
use discovery::Discovery;
use dispatch::Failure;
use exchanges::Exchanges;
use fabric::{Consequence, FabricLogin, Topology};
use logins::RemoteLogins;
use pending::Purpose;
use remote::Remotes;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::{FcId, Frame, Header, Wwnn, Wwpn};

/// Configuration of a node port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NPortConfig {
    /// World-wide port name.
    pub wwpn: Wwpn,
    /// World-wide node name.
    pub wwnn: Wwnn,
    /// Receive data field size in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// Buffer-to-buffer credit announced in logins.
    pub bb_credit: u16,
    /// BB_SC_N announced in FLOGI, 0 to 15; 0: no credit recovery.
    pub bb_sc_n: u8,
    /// True if the port searches for targets and logs in to them.
    pub initiator: bool,
    /// True if the port accepts logins of initiators.
    pub target: bool,
    /// Symbolic port and node name; truncated to 255 bytes.
    pub symbolic_name: String,
    /// Error detect timeout; the fabric may raise it.
    pub e_d_tov: Span,
    /// Resource allocation timeout; the fabric may raise it.
    pub r_a_tov: Span,
    /// Seed of the back-off jitter.
    pub seed: u64,
    /// `Some` for a virtual port.
    pub virtual_port: Option<VirtualPort>,
}

/// Event for a node port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link is up; for a virtual port, the physical port has its fabric login. Ignored if the
    /// port is not offline.
    LinkUp,
    /// The link is down, or the fabric login of the physical port is lost. All logins end without a
    /// LOGO.
    LinkDown,
    /// Log out: LOGO to every remote port and to the F_Port. The port goes offline when the fabric
    /// has replied, or after three attempts. [`Input::LinkUp`] starts again.
    LogOut,
    /// The segment has no fabric, and the station established this address ([`crate::fip::vn2vn`]).
    /// It replaces `LinkUp`.
    Joined {
        /// Own address.
        port_id: FcId,
    },
    /// The loop is initialised ([`crate::arbitrated_loop::initialise`]). It replaces `LinkUp`, and
    /// is ignored by a virtual port.
    ///
    /// Without an FL_Port, `port_id` is the address of this port. After an initialisation that did
    /// not change it, known remote ports among `others` are verified with ADISC, and the rest end.
    ///
    /// With an FL_Port, the port sends FLOGI. If it was logged in with the same AL_PA, it first
    /// waits for FAN. If the initialisation had the L_bit set, pass `LinkDown` before, because the
    /// fabric has then ended all logins.
    LoopUp {
        /// Address 0000xx with the own AL_PA.
        port_id: FcId,
        /// True if an FL_Port participates.
        public: bool,
        /// Other addresses 0000xx of the position map in loop order, without AL_PA 00.
        others: Vec<FcId>,
    },
    /// A loop initialisation (LIP) has begun. Remote ports stay known. Requests without a reply are
    /// repeated after the next `LoopUp`; their late replies count as stale. A pending logout ends
    /// without its replies.
    LoopInterrupted,
    /// Another port is present on a segment without a fabric.
    Neighbour {
        /// Address of the other port.
        port_id: FcId,
        /// Name of the other port.
        wwpn: Wwpn,
    },
    /// The other port is gone.
    NeighbourGone {
        /// Address of the other port.
        port_id: FcId,
    },
    /// An ELS or CT message for this port arrived.
    Frame(Frame),
    /// The deadline of [`NPort::poll_timeout`] was reached.
    Timeout,
}

/// Action or event for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a frame.
    Send(Frame),
    /// The port has an address: from the fabric login, from the other N_Port of a link without a
    /// switch, from the initialisation of a private loop, or from the station of a segment without
    /// a fabric.
    FabricUp {
        /// Own address.
        port_id: FcId,
    },
    /// The address is lost, and with it the fabric login if there was one. A
    /// [`Output::RemoteDown`] for every remote port that was up precedes it.
    FabricDown,
    /// A process login with another port is established.
    RemoteUp(Remote),
    /// The process login with another port ended.
    RemoteDown {
        /// Address of the other port.
        port_id: FcId,
        /// Name of the other port.
        wwpn: Wwpn,
    },
}

/// Remote port with a process login.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remote {
    /// Address of the remote port.
    pub port_id: FcId,
    /// Port name of the remote port.
    pub wwpn: Wwpn,
    /// Node name of the remote port.
    pub wwnn: Wwnn,
    /// Largest data field in either direction, in bytes: the minimum of both receive sizes and the
    /// fabric's.
    pub receive_size_bytes: u16,
    /// True if it has the initiator function.
    pub initiator: bool,
    /// True if it has the target function.
    pub target: bool,
}

/// Counters of a node port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Fabric logins accepted, and addresses adopted on a medium without a fabric.
    pub fabric_logins: u64,
    /// Process logins established, from either side.
    pub process_logins: u64,
    /// Queries to the name server for targets.
    pub discoveries: u64,
    /// RSCNs received.
    pub rscns: u64,
    /// RLIRs received, which report link incidents.
    pub incident_reports: u64,
    /// Requests without a reply before their deadline.
    pub timeouts: u64,
    /// Requests of this port that were rejected.
    pub rejected: u64,
    /// Registrations that the name server rejected permanently; the port continues without them.
    pub registrations_refused: u64,
    /// Replies that do not match their request.
    pub strange_replies: u64,
    /// Replies without a pending exchange.
    pub stale_replies: u64,
    /// Requests of other ports that this port rejected.
    pub rejects_sent: u64,
    /// Frames for another address, or neither ELS nor CT.
    pub misdirected: u64,
}

/// Node port. The module describes its states, [`crate`] how to drive it.
#[derive(Debug)]
pub struct NPort {
    exchanges: Exchanges,
    fabric: FabricLogin,
    discovery: Discovery,
    logins: RemoteLogins,
    /// Number of inputs handled.
    inputs: u64,
}

impl NPort {
    /// Returns a node port without a link.
    pub fn new(config: NPortConfig) -> NPort {
        NPort {
            exchanges: Exchanges::new(config),
            fabric: FabricLogin::new(),
            discovery: Discovery::default(),
            logins: RemoteLogins::default(),
            inputs: 0,
        }
    }

    /// Returns a node port without a link that has these names, and otherwise the configuration and
    /// the counters of this one.
    pub fn with_names(&self, wwnn: Wwnn, wwpn: Wwpn) -> NPort {
        let mut port = NPort::new(NPortConfig { wwnn, wwpn, ..self.exchanges.identity.config.clone() });
        port.exchanges.counters = self.exchanges.counters;
        port.exchanges.identity.adapter.clone_from(&self.exchanges.identity.adapter);
        port
    }

    /// Lets the port register its adapter after each registration with the fabric. A virtual port
    /// has no adapter of its own, so it registers none.
    pub fn describe(&mut self, adapter: Adapter) {
        let identity = &mut self.exchanges.identity;
        identity.adapter = Some(Box::new(adapter)).filter(|_| identity.config.virtual_port.is_none());
    }

    /// Sets the current speed of the port, one bit of [`sanloom_wire::fdmi::port_speed`] or 0, for
    /// the next registration of its adapter.
    pub fn set_speed(&mut self, speed: u32) {
        if let Some(adapter) = &mut self.exchanges.identity.adapter {
            (adapter.speeds, adapter.speed) = (speed, speed);
        }
    }

    /// Processes one input at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.inputs += 1;
        match input {
            Input::LinkUp if self.fabric.state() == FabricState::Offline => self.start_on_link(now),
            Input::LinkUp => {}
            Input::LinkDown => self.apply(now, Consequence::Offline),
            Input::LogOut => self.log_out(now),
            Input::Joined { port_id } => {
                self.apply(now, Consequence::Offline);
                self.fabric.join(Topology::Segment, port_id, &mut self.exchanges);
            }
            Input::LoopUp { port_id, public, others } => self.on_loop_up(now, port_id, public, &others),
            Input::LoopInterrupted => self.on_loop_interrupted(now),
            Input::Neighbour { port_id, wwpn } => {
                if self.fabric.topology() == Topology::Segment && port_id != self.port_id() {
                    self.logins.add_neighbour(now, port_id, wwpn, &mut self.exchanges);
                }
            }
            Input::NeighbourGone { port_id } => self.logins.remove(port_id, &mut self.exchanges),
            Input::Frame(frame) => self.on_frame(now, frame),
            Input::Timeout => self.on_timeout(now),
        }
        if self.fabric.state() == FabricState::Ready && !self.is_suspended() {
            self.discovery.start_due(now, &mut self.exchanges);
            self.logins.start_due(now, &mut self.exchanges);
        }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.exchanges.poll_output()
    }

    /// Time at which to pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pending = &self.exchanges.pending;
        let mut next = pending.next_deadline();
        let mut consider = |at: Option<Instant>| next = next.into_iter().chain(at).min();
        if !self.is_suspended() {
            consider(self.fabric.retry_at());
        }
        consider(self.fabric.on_loop.fan_limit);
        if self.fabric.state() == FabricState::Ready && !self.is_suspended() {
            consider(self.discovery.due_at());
            if pending.may_start_login() {
                consider(self.logins.next_due());
            }
        }
        next
    }

    /// World-wide port name of this port.
    pub fn wwpn(&self) -> Wwpn {
        self.exchanges.identity.config.wwpn
    }

    /// World-wide node name of this port.
    pub fn wwnn(&self) -> Wwnn {
        self.exchanges.identity.config.wwnn
    }

    /// Progress of the fabric login.
    pub fn state(&self) -> FabricState {
        self.fabric.state()
    }

    /// Own address; [`FcId::ZERO`] before [`Output::FabricUp`].
    pub fn port_id(&self) -> FcId {
        self.exchanges.identity.port_id
    }

    /// Returns true if the frame is a reply to a pending login that requests an address. Its D_ID
    /// is new or zero, so the driver of a physical port with virtual ports cannot select the
    /// recipient by D_ID.
    pub fn expects(&self, reply: &Header) -> bool {
        self.port_id() == FcId::ZERO && self.exchanges.pending.is_open(reply)
    }

    /// Returns true if this port is the source of a frame with this header. All FDISCs of a
    /// physical port have S_ID 0 and are recognised by their OX_ID.
    pub fn is_source(&self, header: &Header) -> bool {
        match header.s_id {
            FcId::ZERO => {
                let virtual_port = self.exchanges.identity.config.virtual_port;
                virtual_port.is_some_and(|port| port.owns_fdisc(header.ox_id))
            }
            s_id => s_id == self.port_id(),
        }
    }

    /// Error detect timeout in force.
    pub fn e_d_tov(&self) -> Span {
        self.exchanges.identity.config.e_d_tov
    }

    /// Resource allocation timeout in force.
    pub fn r_a_tov(&self) -> Span {
        self.exchanges.identity.config.r_a_tov
    }

    /// Known remote ports, sorted by address, with the state of each login.
    pub fn remotes(&self) -> impl Iterator<Item = (FcId, RemoteState)> + '_ {
        self.logins.remotes.iter().map(|remote| (remote.port_id, remote.state))
    }

    /// Memory that grows with the number of logins, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.logins.table_bytes() + self.exchanges.queue_bytes()
    }

    /// Event counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.exchanges.counters
    }

    /// Inputs handled and records searched since the start.
    pub fn work(&self) -> u64 {
        self.inputs + self.logins.searched()
    }

    fn on_timeout(&mut self, now: Instant) {
        while let Some(purpose) = self.exchanges.pending.take_expired(now) {
            self.exchanges.counters.timeouts += 1;
            self.on_failure(now, purpose, Failure::Timeout);
        }
        self.on_fan_timeout(now);
        if !self.is_suspended() {
            let consequence = self.fabric.on_timeout(now, &mut self.exchanges);
            self.apply(now, consequence);
        }
    }

    /// Applies the consequence of a step of the fabric login to the other parts.
    fn apply(&mut self, now: Instant, consequence: Consequence) {
        match consequence {
            Consequence::Pending => {}
            Consequence::AssignAddresses => {
                self.fabric.take_greater_address(&mut self.exchanges);
                self.logins.log_in_to_peer(now, &mut self.exchanges);
            }
            Consequence::Ready => {
                // Changes during an initialisation, or before SCR, were not notified.
                if self.fabric.topology() == Topology::PublicLoop {
                    self.logins.verify_all(now);
                }
                if self.exchanges.identity.config.initiator {
                    self.discovery.schedule_at(now);
                }
                if self.fabric.topology().has_fabric() {
                    adapter::begin(now, AdapterStep::Login, &mut self.exchanges);
                }
            }
            Consequence::Offline | Consequence::Restart => {
                let loop_id = self.exchanges.identity.loop_id;
                self.end_remote_logins();
                self.fabric.end(&mut self.exchanges);
                if consequence == Consequence::Restart {
                    self.fabric.restart(now, loop_id, &mut self.exchanges);
                }
            }
        }
    }

    /// Ends all logins with other ports and all pending requests. Returns the records of the remote
    /// ports.
    fn end_remote_logins(&mut self) -> Remotes {
        self.exchanges.pending.clear();
        self.discovery = Discovery::default();
        self.fabric.cancel_retry();
        self.logins.end_all(&mut self.exchanges)
    }

    /// Sends LOGO to every port with a login, then to the fabric.
    fn log_out(&mut self, now: Instant) {
        if self.port_id() == FcId::ZERO {
            return self.apply(now, Consequence::Offline);
        }
        if self.fabric.state() == FabricState::Logo {
            return;
        }
        if self.is_suspended() {
            return self.apply(now, Consequence::Offline);
        }
        for remote in self.end_remote_logins().iter().filter(|remote| remote.state.is_logged_in()) {
            let (logo, e_d_tov) = (self.exchanges.identity.logo(), self.e_d_tov());
            self.exchanges.request(now, remote.port_id, e_d_tov, Purpose::Logout, logo);
        }
        let consequence = self.fabric.log_out(now, &mut self.exchanges);
        self.apply(now, consequence);
    }
}
