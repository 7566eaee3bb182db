//! The node port: fabric login, registration, discovery, logins with other ports.
//!
//! ```text
//!   offline --LinkUp--> flogi --> plogi --> rnn_id --> rsnn_nn --> rspn_id --> rft_id --> rff_id --> scr --> ready
//!      ^                  ^       (FFFFFC: name server)                               (FFFFFD)        |
//!      | LinkDown         +---- three requests in a row without an answer, LOGO from the fabric ------+
//! ```
//!
//! A virtual port (N_Port_ID virtualisation) lives on a physical one: its "link" is the fabric login of that port, and it
//! sends FDISC where the physical port sends FLOGI. With [`LoginScript::Npiv`] it takes the steps of document 000,
//! figure 6:
//!
//! ```text
//!   offline --LinkUp--> flogi --> scr --> management_plogi --> lirr --> management_logo      (FDISC, FFFFFD, FFFFFA)
//!      ^                                                                      |
//!      |                  ready <-- discovery_plogi <-- name_server_logo <-- rft_id <-- plogi         (FFFFFC)
//!      +--- logo <---------+ LogOut           (an initiator only)
//! ```
//!
//! The order of the registrations is the one of libfc. When ready, an initiator asks the name server for the targets it
//! may see (GID_FF; GPN_FT where that is not supported) and logs in to each, a bounded number at a time. A target waits
//! to be logged in to. Changes come as RSCN: an initiator asks again, one question at a time, and verifies the ports in
//! question with ADISC; a target asks the name server whether an initiator of its own is still there (GPN_ID).
//!
//! Every request has one deadline and one place that decides what its failure means: `on_error` in `errors.rs`.
//! Nothing is retried faster than its timeout or a back-off that doubles, with a jitter drawn from the given seed, so that
//! a fabric that says no to everybody is not flooded.
//!
//! Only ELS and CT frames belong here; see [`crate::exchange::route`]. Messages are whole: the driver cuts and
//! reassembles what is longer than a frame.

mod answer;
mod discovery;
mod errors;
mod fabric;
mod flight;
mod login;
mod mesh;
mod remote;
mod rscn;

pub use fabric::{FabricState, LoginScript, VirtualPort};
pub use remote::RemoteState;

use crate::random::SplitMix64;
use crate::time::{Instant, Span};
use discovery::Discovery;
use flight::{Flight, Flights};
use remote::Remotes;
use sanloom_wire::ct::{Ct, CtBody, Service};
use sanloom_wire::els::Els;
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::ns::NsRequest;
use sanloom_wire::{FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwnn, Wwpn};
use std::collections::{BTreeSet, VecDeque};

/// What a node port is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NPortConfig {
    /// Port name.
    pub wwpn: Wwpn,
    /// Node name.
    pub wwnn: Wwnn,
    /// Receive data field size in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// Buffer-to-buffer credit that the logins announce.
    pub bb_credit: u16,
    /// Looks for targets and logs in to them.
    pub initiator: bool,
    /// Answers the logins of initiators.
    pub target: bool,
    /// Symbolic port and node name; cut to 255 bytes.
    pub symbolic_name: String,
    /// Error detect timeout; the fabric may raise it.
    pub e_d_tov: Span,
    /// Resource allocation timeout; the fabric may raise it.
    pub r_a_tov: Span,
    /// Seed of the jitter in back-offs.
    pub seed: u64,
    /// Set for a virtual port.
    pub virtual_port: Option<VirtualPort>,
}

/// What happens to a node port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link is up, or for a virtual port: the physical port has its fabric login. Nothing if it was so before.
    LinkUp,
    /// The link is down, or the fabric login of the physical port is gone: all logins are gone, without a word to anybody.
    LinkDown,
    /// Log out: LOGO to every remote port and to the F_Port; offline when the fabric has answered or has been asked three
    /// times. [`Input::LinkUp`] starts again.
    LogOut,
    /// The segment has no fabric, and this is our address ([`crate::fip::vn2vn`]); in place of `LinkUp`.
    Joined {
        /// Our address.
        port_id: FcId,
    },
    /// Another port of a segment without a fabric.
    Neighbour {
        /// Its address.
        port_id: FcId,
        /// Its name.
        wwpn: Wwpn,
    },
    /// It is gone.
    NeighbourGone {
        /// Its address.
        port_id: FcId,
    },
    /// An ELS or CT message for us.
    Frame(Frame),
    /// Time has passed.
    Timeout,
}

/// What a node port does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a frame.
    Send(Frame),
    /// The fabric login is done.
    FabricUp {
        /// Our address.
        port_id: FcId,
    },
    /// The fabric login is gone. A [`Output::RemoteDown`] for every remote port that was up came before.
    FabricDown,
    /// A process login with another port is established.
    RemoteUp(Remote),
    /// The process login with another port is gone.
    RemoteDown {
        /// Its address.
        port_id: FcId,
        /// Its name.
        wwpn: Wwpn,
    },
}

/// A port that we have a process login with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remote {
    /// Its address.
    pub port_id: FcId,
    /// Its name.
    pub wwpn: Wwpn,
    /// Name of its node.
    pub wwnn: Wwnn,
    /// Largest data field between the two ports, both ways: the smallest of both receive sizes and the fabric's.
    pub receive_size_bytes: u16,
    /// It has the initiator function.
    pub initiator: bool,
    /// It has the target function.
    pub target: bool,
}

/// What a node port has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Fabric logins accepted.
    pub fabric_logins: u64,
    /// Process logins established, from either side.
    pub process_logins: u64,
    /// Questions to the name server for the targets.
    pub discoveries: u64,
    /// RSCN received.
    pub rscns: u64,
    /// RLIR received: reports of incidents on links.
    pub incident_reports: u64,
    /// Requests that nobody answered in time.
    pub timeouts: u64,
    /// Requests of ours that were rejected.
    pub rejected: u64,
    /// Registrations that the name server rejected for good; the node goes on without them.
    pub registrations_refused: u64,
    /// Replies that make no sense.
    pub strange_replies: u64,
    /// Replies to nothing that is open.
    pub stale_replies: u64,
    /// Requests of others that we rejected.
    pub rejects_sent: u64,
    /// Frames that are for another address, or no ELS or CT.
    pub misdirected: u64,
}

/// A node port. See the module for its states and [`crate`] for how to drive it.
#[derive(Debug)]
pub struct NPort {
    config: NPortConfig,
    state: FabricState,
    port_id: FcId,
    /// The segment has no fabric.
    mesh: bool,
    /// Largest data field that the fabric takes.
    fabric_receive_size_bytes: u16,
    /// The step of `state` is tried again then; nothing while its request is open.
    fabric_retry_at: Option<Instant>,
    fabric_tries: u8,
    /// FDISCs sent so far.
    fdiscs: u16,
    discovery: Discovery,
    remotes: Remotes,
    /// Remote ports that something is to be done about, and when.
    due: BTreeSet<(Instant, FcId)>,
    flights: Flights,
    random: SplitMix64,
    outputs: VecDeque<Output>,
    counters: Counters,
    work: u64,
}

impl NPort {
    /// A node port without a link.
    pub fn new(config: NPortConfig) -> NPort {
        NPort {
            state: FabricState::Offline,
            port_id: FcId::ZERO,
            mesh: false,
            fabric_receive_size_bytes: config.receive_size_bytes,
            fabric_retry_at: None,
            fabric_tries: 0,
            fdiscs: 0,
            discovery: Discovery::default(),
            remotes: Remotes::default(),
            due: BTreeSet::new(),
            flights: Flights::default(),
            random: SplitMix64(config.seed),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            work: 0,
            config,
        }
    }

    /// One thing happened at `now`.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.work += 1;
        match input {
            Input::LinkUp if self.state == FabricState::Offline => self.enter(now, FabricState::Flogi),
            Input::LinkUp => {}
            Input::LinkDown => self.go_offline(),
            Input::LogOut => self.log_out_of_fabric(now),
            Input::Joined { port_id } => self.join(port_id),
            Input::Neighbour { port_id, wwpn } => self.meet(now, port_id, wwpn),
            Input::NeighbourGone { port_id } => self.forget(port_id),
            Input::Frame(frame) => self.on_frame(now, frame),
            Input::Timeout => self.on_timeout(now),
        }
        self.start_what_is_due(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.outputs.pop_front();
        // A port with hundreds of logins loses them all at once; the room for that is not kept.
        if output.is_none() && self.outputs.capacity() > 64 {
            self.outputs.shrink_to(16);
        }
        output
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut next = self.flights.next_deadline();
        let mut consider = |at: Option<Instant>| next = next.into_iter().chain(at).min();
        consider(self.fabric_retry_at);
        if self.state == FabricState::Ready {
            consider(self.discovery.due_at());
            if self.flights.may_start_login() {
                consider(self.due.first().map(|&(at, _)| at));
            }
        }
        next
    }

    /// Our port name.
    pub fn wwpn(&self) -> Wwpn {
        self.config.wwpn
    }

    /// Our node name.
    pub fn wwnn(&self) -> Wwnn {
        self.config.wwnn
    }

    /// Where the fabric login stands.
    pub fn state(&self) -> FabricState {
        self.state
    }

    /// Our address; [`FcId::ZERO`] without a fabric login.
    pub fn port_id(&self) -> FcId {
        self.port_id
    }

    /// The frame answers a login of ours that asks for an address: its D_ID is new or zero, so the driver of a physical
    /// port with virtual ports cannot know by it whom the frame is for.
    pub fn expects(&self, reply: &Header) -> bool {
        self.port_id == FcId::ZERO && self.flights.is_open(reply)
    }

    /// E_D_TOV in force.
    pub fn e_d_tov(&self) -> Span {
        self.config.e_d_tov
    }

    /// R_A_TOV in force.
    pub fn r_a_tov(&self) -> Span {
        self.config.r_a_tov
    }

    /// The remote ports that are known, by address, and where the login with each stands.
    pub fn remotes(&self) -> impl Iterator<Item = (FcId, RemoteState)> + '_ {
        self.remotes.iter().map(|remote| (remote.port_id, remote.state))
    }

    /// Memory that grows with the logins, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.remotes.table_bytes()
            + self.due.len() * size_of::<(Instant, FcId)>()
            + self.outputs.capacity() * size_of::<Output>()
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Inputs handled and records searched so far.
    pub fn work(&self) -> u64 {
        self.work
    }

    fn on_frame(&mut self, now: Instant, frame: Frame) {
        let Frame { header, payload } = frame;
        // The accept of FLOGI is the one frame whose D_ID we do not know yet.
        if self.state == FabricState::Offline || header.d_id != self.port_id && self.state != FabricState::Flogi {
            self.counters.misdirected += 1;
            return;
        }
        match (header.fc_type, header.r_ctl) {
            (FcType::ELS, RCtl::ELS_REQUEST) => self.on_request(now, &header, payload),
            (FcType::ELS, RCtl::ELS_REPLY) | (FcType::CT, RCtl::SOLICITED_CONTROL) => {
                self.on_reply(now, &header, payload);
            }
            (FcType::CT, RCtl::UNSOLICITED_CONTROL) => self.refuse_ct(&header, payload),
            _ => self.counters.misdirected += 1,
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        while let Some(flight) = self.flights.take_expired(now) {
            self.counters.timeouts += 1;
            self.on_error(now, flight, errors::Failure::Timeout);
        }
        if self.fabric_retry_at.is_some_and(|at| at <= now) {
            self.enter(now, self.state);
        }
    }

    /// Questions and logins whose time has come, as far as the number of open requests allows.
    fn start_what_is_due(&mut self, now: Instant) {
        if self.state != FabricState::Ready {
            return;
        }
        if self.discovery.due_at().is_some_and(|at| at <= now) {
            self.discover(now);
        }
        while self.flights.may_start_login()
            && let Some(&(at, port_id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.attend_to(now, port_id);
        }
    }

    /// The link is gone.
    fn go_offline(&mut self) {
        self.lose_fabric();
        self.state = FabricState::Offline;
    }

    /// Every login is gone, without a word to anybody.
    fn lose_fabric(&mut self) {
        self.lose_remotes();
        self.mesh = false;
        if self.port_id != FcId::ZERO {
            self.port_id = FcId::ZERO;
            self.outputs.push_back(Output::FabricDown);
        }
    }

    /// Every login with another port is gone, and everything that was under way; what was known of the ports is returned.
    fn lose_remotes(&mut self) -> Remotes {
        self.flights.clear();
        self.due.clear();
        self.discovery = Discovery::default();
        self.fabric_retry_at = None;
        self.fabric_tries = 0;
        let remotes = std::mem::take(&mut self.remotes);
        for remote in remotes.iter().filter(|remote| remote.state.is_up()) {
            self.outputs.push_back(Output::RemoteDown { port_id: remote.port_id, wwpn: remote.wwpn });
        }
        remotes
    }

    /// Sends an ELS request and opens its exchange.
    fn request(&mut self, now: Instant, d_id: FcId, timeout: Span, flight: Flight, els: Els) {
        let ox_id = self.flights.open(now + timeout, d_id, flight);
        self.send(d_id, ox_id, Message::from(els));
    }

    /// Sends a request to the name server and opens its exchange.
    fn ask_name_server(&mut self, now: Instant, flight: Flight, request: NsRequest) {
        let d_id = FcId::NAME_SERVER;
        let ox_id = self.flights.open(now + self.request_timeout(), d_id, flight);
        let ct = Ct {
            in_id: 0,
            service: Service::NAME_SERVER,
            options: 0,
            max_or_residual_words: 0,
            body: CtBody::Ns(request),
        };
        self.send(d_id, ox_id, Message::from(ct));
    }

    /// How long an answer may take (FC-LS, timeouts of extended link services).
    fn request_timeout(&self) -> Span {
        self.config.r_a_tov.times(2)
    }

    /// Sends a request of ours.
    fn send(&mut self, d_id: FcId, ox_id: u16, message: Message) {
        let header = message.header(self.port_id, d_id, ox_id, RX_ID_UNASSIGNED);
        self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Typed(message) }));
    }

    /// Sends the answer to a request, which ends its exchange.
    fn reply(&mut self, request: &Header, message: Message) {
        let header = message.header(request.d_id, request.s_id, request.ox_id, RX_ID_UNASSIGNED);
        self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Typed(message) }));
    }

    /// How long to wait before try number `tries` after the first: E_D_TOV, doubled each time up to 32-fold, and up to an
    /// eighth more, so that ports that failed together do not come back together.
    fn back_off(&mut self, tries: u8) -> Span {
        let span = self.config.e_d_tov.times(1 << tries.saturating_sub(1).min(5));
        span + Span::from_ns(self.random.below(span.as_ns() / 8 + 1))
    }
}
