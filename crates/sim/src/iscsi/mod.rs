//! iSCSI of hosts and storage systems over TCP of the Ethernet plane.
//!
//! The session machines are those of a live run (`sanloom_scsi::iscsi`). PDUs travel as headers at
//! positions of the TCP stream; payload does not exist:
//!
//! ```text
//!   Hosts -- orders --> initiator::Session --> Stream --> Stacks --> frames of the plane
//!   Hosts <-- events -- initiator::Session <-- Stream <-- Stacks <-- frames of the plane
//!                                                ^
//!   Storage <-- Io ---- target::Session <--------+     the same on the other side
//! ```
//!
//! When TCP has delivered all bytes up to a position, the machine of that end receives the PDUs
//! that end there or before.
//!
//! | file | job |
//! |---|---|
//! | `plan` | sessions, targets and adapters of a lab |
//! | `stream` | PDUs at their positions |
//! | `connection` | TCP: open, arrive, send, lose |
//! | `adapter` | interrupts of interfaces, and the work of processors |
//! | `initiator` | the host's machines |
//! | `router` | routers between Ethernet and InfiniBand |
//! | `target` | the storage system's machines |
//! | `seen` | sessions for tables |
//! | `forward` | PDUs between hosts and back ends |
//!
//! # Simplifications
//!
//! - Addresses are known: there is no ARP and no discovery session.
//! - A login does not wait for writes of the session that it replaces.

mod adapter;
mod connection;
mod count;
mod forward;
mod initiator;
mod plan;
mod render;
mod router;
mod seen;
mod stream;
mod target;

pub use crate::host::Direction;
pub use adapter::Load;
pub use count::SessionCount;
pub use forward::{Front, Shared};
pub use plan::{AdapterPlan, IscsiPlan, Machine, RouterPlan, SessionPlan, TargetPlan};
pub use router::RouterCount;
pub use seen::SessionSeen;
pub use stream::Pdu;
pub(crate) use target::Slots;

use crate::agenda::Agenda;
use crate::host::{Arrival, Interface, RaisedInterrupt};
use crate::net::Net;
use crate::net::ethernet::Packet;
use crate::net::infiniband;
use crate::tcp::{OnInfiniband, Stacks};
use adapter::Adapter;
use connection::{End, Stage};
use router::Router;
use sanloom_fc::fcp::initiator::Outcome;
use sanloom_scsi::iscsi::forward::Forward;
use sanloom_scsi::iscsi::initiator::Command;
use sanloom_scsi::iscsi::target::Directory;
use sanloom_scsi::scsi::{Device, Io, IoStatus, IoTag, NexusId, Notice};
use sanloom_scsi::time::Instant;
use sanloom_transport::tcp::{Connection, Segment};
use sanloom_wire::iscsi::Bhs;
use sanloom_wire::lun::LunBytes;
use std::collections::VecDeque;

/// Bit of the number of an [`Io`] owner that is a session; other numbers are N_Ports.
pub const SESSION: u16 = 0x8000;

/// The parts of a lab that iSCSI uses.
pub trait Around {
    /// Returns the SCSI device of a storage system.
    fn device(&mut self, storage: u16) -> &mut Device;
    /// Starts block I/O of a session. Returns the result at once if the I/O is rejected;
    /// [`Iscsi::io_done`] reports it otherwise.
    fn submit(&mut self, net: &mut Net, storage: u16, owner: u16, io: &Io) -> Option<IoStatus>;
    /// Removes block I/O that waits and whose task has ended. Returns false if it continues.
    fn cancel(&mut self, net: &mut Net, storage: u16, owner: u16, tag: IoTag) -> bool;
    /// Ends block I/O early whose task has ended.
    fn recall(&mut self, _net: &mut Net, _storage: u16, _owner: u16, _tag: IoTag) {}
    /// Takes note of a new session or channel of a host.
    fn session_began(&mut self, _net: &mut Net, _storage: u16, _host: u16, _nexus: NexusId) {}
    /// Takes note of the end of a session or channel of a host, before its nexus ends.
    fn session_ended(&mut self, _net: &mut Net, _storage: u16, _host: u16, _nexus: NexusId) {}
    /// Returns whether a host may log in to a storage system now.
    fn admits(&mut self, _net: &mut Net, _storage: u16, _host: u16) -> bool {
        true
    }
    /// Gives the adapter of a host a PDU from a storage system. Returns the time in ps at which it
    /// passes the PDU on; without such an adapter, now.
    fn handle(&mut self, _host: u16, now_ps: u64, _interface: u16, _storage: u16, _bytes: u64) -> u64 {
        now_ps
    }
    /// Returns the parts of a switch that its two paths share; `None` for other storage systems.
    fn shared(&mut self, _storage: u16) -> Option<Shared<'_>> {
        None
    }
    /// Gives the processor of a switch the work of forwarded PDUs, and continues its commands.
    fn forwarded(&mut self, _net: &mut Net, _storage: u16, _pdus: u64, _bytes: u64) {}
    /// Takes note that the first `bytes` bytes of the data of a write have arrived.
    fn arrived(&mut self, _net: &mut Net, _storage: u16, _owner: u16, _tag: IoTag, _bytes: u32) {}
    /// Passes a notice of the device to one of its Fibre Channel ports.
    fn notify(&mut self, net: &mut Net, storage: u16, port: u16, notice: Notice);
    /// Gives work to the bus and the processor behind an interface. Returns the time of its end in
    /// ps. Frames that arrive at a storage system use its bus only.
    fn work(&mut self, owner: Machine, now_ps: u64, interface: u16, load: Load) -> u64;
    /// Gives the interrupts of a storage system a frame or an information unit that has arrived.
    /// `None` without interrupts.
    fn arrive(&mut self, _storage: u16, _interface: Interface, _now_ps: u64) -> Option<Arrival> {
        None
    }
    /// Returns the interrupt of arrivals at an interface of a storage system that have waited long
    /// enough.
    fn time_out(&mut self, _storage: u16, _interface: Interface, _now_ps: u64) -> Option<RaisedInterrupt> {
        None
    }
}

/// An order of a host to one of its sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Send a command. [`Command::id`] is the tag of the host.
    Submit(Command),
    /// Send LOGICAL UNIT RESET.
    Reset {
        /// Tag of the host.
        tag: u64,
        /// Logical unit to reset.
        lun: LunBytes,
    },
    /// Drop the connection and log in again.
    Restart,
}

/// A change for the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A session has logged in.
    Up(u32),
    /// A session was lost. Its commands end with [`Outcome::PortGone`].
    Down(u32),
    /// A command or reset has ended.
    Done {
        /// Number of the session.
        session: u32,
        /// Tag of the host.
        tag: u64,
        /// Result.
        outcome: Outcome,
    },
}

/// The host of a session, for its storage system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Index of the host.
    pub host: u16,
    /// Longest data segment that it accepts, in bytes.
    pub segment_bytes: u32,
}

/// Work that is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Job {
    /// Open the connection of a session.
    Connect(u32),
    /// A machine at this end of a connection may have a deadline.
    Machine(u32),
    /// The processor has handled this many frames that arrived at an interface.
    Received(u16, u32),
    /// The moderation of the interrupt of an interface is over.
    Interrupt(u16),
    /// The adapter of a host has handled a PDU that has arrived at an end.
    Handled(u32),
    /// The processor has prepared data of an end up to a position.
    Prepared(u32, u64),
    /// A router has finished with a packet.
    Forward(u16),
}

/// A configured session.
struct Session {
    plan: SessionPlan,
    stage: Stage,
    /// End of the current or last connection.
    end: u32,
    /// True once a login has succeeded or failed.
    tried: bool,
    /// Identity of commands whose tags the host uses more than once, with their tags.
    renamed: Vec<(u64, u64)>,
    next_name: u64,
    /// Commands in flight.
    in_flight: u32,
    /// Commands that wait for others to end.
    waiting: VecDeque<Command>,
    /// Forwarding paths of earlier connections with lost writes.
    lost: Vec<Forward>,
    /// Commands that earlier connections forwarded.
    forwarded: u64,
    count: SessionCount,
    /// Counters at the end of the warm-up.
    before: SessionCount,
}

/// A storage system with iSCSI.
struct System {
    plan: TargetPlan,
    directory: Directory,
    slots: Slots,
    /// Ends whose task management waits for tasks of other sessions.
    ending: Vec<u32>,
}

/// All sessions of a lab.
pub struct Iscsi {
    stacks: Stacks,
    /// Ends of connections, by their number in `stacks`.
    ends: Vec<End>,
    sessions: Vec<Session>,
    systems: Vec<Option<System>>,
    adapters: Vec<Adapter>,
    routers: Vec<Router>,
    agenda: Agenda<Job>,
    events: VecDeque<Event>,
    /// Number of the timer of TCP; those of the agenda and of InfiniBand follow.
    timer: u32,
    /// A capture reads what is sent.
    is_watched: bool,
}

/// A segment of a connection, for a capture.
pub struct Seen<'a> {
    /// Session of the connection.
    pub plan: &'a SessionPlan,
    /// Number of the connection among all that were opened.
    pub connection: u32,
    /// The host has sent it.
    pub from_host: bool,
    /// Head of the segment.
    pub segment: &'a Segment,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Basic header segments of the PDUs that begin in the payload.
    pub begun: Vec<Bhs>,
}

/// The parts of a lab during one call.
struct Cx<'a> {
    net: &'a mut Net,
    around: &'a mut dyn Around,
}

impl Cx<'_> {
    /// Returns the time of the machines, in whole nanoseconds.
    fn now(&self) -> Instant {
        Instant::from_ns(self.net.now() / 1_000)
    }
}

impl Iscsi {
    /// Number of timers of the network that sessions use. The last one is free for the driver.
    pub const TIMERS: u32 = 4;

    /// Returns sessions that are not logged in. `timer` is the first of [`Iscsi::TIMERS`] timers of
    /// the network.
    pub fn new(plan: IscsiPlan, timer: u32) -> Iscsi {
        let system = |plan: TargetPlan| System {
            plan,
            directory: Directory::default(),
            slots: Slots::default(),
            ending: Vec::new(),
        };
        let session = |plan: SessionPlan| Session {
            stage: Stage::Idle,
            end: u32::MAX,
            tried: plan.front.is_some(),
            lost: Vec::new(),
            forwarded: 0,
            plan,
            renamed: Vec::new(),
            next_name: 0,
            in_flight: 0,
            waiting: VecDeque::new(),
            count: SessionCount::default(),
            before: SessionCount::default(),
        };
        Iscsi {
            stacks: Stacks::new(timer).with_ipoib(plan.ipoib, timer + 2),
            ends: Vec::new(),
            sessions: plan.sessions.into_iter().map(session).collect(),
            systems: plan.targets.into_iter().map(|plan| plan.map(system)).collect(),
            adapters: plan.adapters.into_iter().map(Adapter::new).collect(),
            routers: plan.routers.into_iter().map(Router::new).collect(),
            agenda: Agenda::new(timer + 1),
            events: VecDeque::new(),
            timer,
            is_watched: false,
        }
    }

    /// Opens the connections of all sessions.
    pub fn start(&mut self, net: &mut Net) {
        for session in 0..self.sessions.len() as u32 {
            self.agenda.plan(net, net.now(), Job::Connect(session));
        }
    }

    /// Takes a frame that has arrived at an interface.
    pub fn packet(&mut self, net: &mut Net, around: &mut dyn Around, packet: &Packet) {
        adapter::arrive(self, &mut Cx { net, around }, packet);
    }

    /// Takes a packet of IPoIB that has arrived at an interface of InfiniBand.
    pub fn infiniband_packet(&mut self, net: &mut Net, around: &mut dyn Around, packet: &infiniband::Packet) {
        let cx = &mut Cx { net, around };
        self.stacks.receive_infiniband(cx.net, packet);
        self.drain_infiniband(cx);
    }

    fn drain_infiniband(&mut self, cx: &mut Cx<'_>) {
        while let Some(packet) = self.stacks.take_arrived() {
            adapter::arrive(self, cx, &packet);
        }
    }

    /// Returns the packet of IP of a packet of InfiniBand, if packets are kept.
    pub fn on_infiniband(&self, packet: &infiniband::Packet) -> Option<OnInfiniband> {
        self.stacks.on_infiniband(packet)
    }

    /// Returns the routers with their counters since the end of the warm-up.
    pub fn routers(&self) -> impl Iterator<Item = (&RouterPlan, RouterCount)> {
        self.routers.iter().map(|router| (&router.plan, router.count()))
    }

    /// Handles a timer of the network that belongs to the sessions.
    pub fn timer_expired(&mut self, net: &mut Net, around: &mut dyn Around, timer: u32) {
        let cx = &mut Cx { net, around };
        if timer == self.timer {
            self.stacks.timer_expired(cx.net);
            while let Some(end) = self.stacks.take_changed() {
                connection::changed(self, cx, end);
            }
            return;
        }
        if timer == self.timer + 2 {
            self.stacks.infiniband_timer_expired(cx.net);
            return self.drain_infiniband(cx);
        }
        if timer > self.timer + 1 {
            return;
        }
        while let Some(job) = self.agenda.pop_due(cx.net.now()) {
            match job {
                Job::Connect(session) => connection::open(self, cx, session),
                Job::Machine(end) => connection::machine_timeout(self, cx, end),
                Job::Received(interface, frames) => adapter::received(self, cx, interface, frames),
                Job::Interrupt(interface) => adapter::interrupt(self, cx, interface),
                Job::Handled(end) => connection::handled(self, cx, end),
                Job::Prepared(end, position) => connection::prepared(self, cx, end, position),
                Job::Forward(router) => router::forward(self, cx, router),
            }
        }
        self.agenda.arm(cx.net);
    }

    /// Carries out an order of a host.
    pub fn order(&mut self, net: &mut Net, around: &mut dyn Around, session: u32, order: Order) {
        initiator::order(self, &mut Cx { net, around }, session, order);
    }

    /// Reports the end of block I/O of a session.
    pub fn io_done(
        &mut self,
        net: &mut Net,
        around: &mut dyn Around,
        storage: u16,
        owner: u16,
        tag: IoTag,
        status: IoStatus,
    ) {
        target::io_done(self, &mut Cx { net, around }, (storage, owner), tag, status);
    }

    /// Passes on the first `bytes` bytes of a read whose block I/O continues.
    pub fn io_data(
        &mut self,
        net: &mut Net,
        around: &mut dyn Around,
        storage: u16,
        owner: u16,
        (tag, bytes): (IoTag, u32),
    ) {
        target::io_data(self, &mut Cx { net, around }, (storage, owner), tag, bytes);
    }

    /// Returns the host of a session of a storage system, by the number with which its block I/O
    /// is submitted.
    pub fn peer(&self, storage: u16, owner: u16) -> Option<Peer> {
        target::peer(self, storage, owner)
    }

    /// Returns the commands that the sessions of a switch have forwarded since the first login.
    pub fn forwarded(&self, storage: u16) -> u64 {
        forward::count(self, storage)
    }

    /// Ends the sessions of a host with a storage system, and closes their connections; `None`:
    /// those of all hosts.
    pub fn end_sessions(&mut self, net: &mut Net, around: &mut dyn Around, storage: u16, host: Option<u16>) {
        target::end_sessions(self, &mut Cx { net, around }, storage, host);
    }

    /// Passes a notice of a device to the sessions at one of its portals.
    pub fn notify(&mut self, net: &mut Net, around: &mut dyn Around, storage: u16, port: u16, notice: &Notice) {
        target::notify(self, &mut Cx { net, around }, storage, Some(port), None, notice);
    }

    /// A storage system has lost its power: its ends of connections are gone, and its peers learn
    /// of it from their timers.
    pub fn power_off(&mut self, net: &mut Net, around: &mut dyn Around, storage: u16) {
        let cx = &mut Cx { net, around };
        for end in (1..self.ends.len() as u32).step_by(2) {
            if self.sessions[self.ends[end as usize].session as usize].plan.storage == storage {
                connection::cut(self, cx, end);
            }
        }
    }

    /// Keeps what is sent from now on, for [`Iscsi::seen`].
    pub fn watch(&mut self) {
        if std::mem::replace(&mut self.is_watched, true) {
            return;
        }
        self.ends.iter_mut().for_each(|end| end.sent.keep(end.layout));
        self.stacks.keep_segments();
    }

    /// Ends what [`Iscsi::watch`] began.
    pub fn unwatch(&mut self) {
        self.is_watched = false;
        self.ends.iter_mut().for_each(|end| end.sent.keep_none());
        self.stacks.keep_none();
    }

    /// Returns the segment of a frame. Valid for frames since the last call of [`Iscsi::forget`].
    pub fn seen(&self, packet: &Packet) -> Option<Seen<'_>> {
        self.seen_with(packet, self.stacks.segment(packet)?)
    }

    /// As [`Iscsi::seen`], for a packet with this segment.
    pub fn seen_with<'a>(&'a self, packet: &Packet, segment: &'a Segment) -> Option<Seen<'a>> {
        let end = packet.flow;
        let state = self.ends.get(end as usize)?;
        // The SYN has position 0.
        let payload = state.sent.bytes(segment.position, segment.length)?;
        let plan = &self.sessions[state.session as usize].plan;
        let begun = state.sent.begun(segment.position, segment.length);
        Some(Seen { plan, connection: end / 2, from_host: connection::is_host(end), segment, payload, begun })
    }

    /// Forgets segments that have arrived or were lost.
    pub fn forget(&mut self) {
        self.stacks.forget_kept();
    }

    /// Returns the next change for the hosts.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the sessions of the lab.
    pub fn plans(&self) -> impl ExactSizeIterator<Item = &SessionPlan> {
        self.sessions.iter().map(|session| &session.plan)
    }

    /// Returns whether a session has neither logged in nor failed to.
    pub fn is_logging_in(&self) -> bool {
        self.sessions.iter().any(|session| !session.tried)
    }

    /// Returns whether a session is logged in.
    pub fn is_up(&self, session: u32) -> bool {
        self.sessions[session as usize].stage == Stage::Up
    }

    /// Returns an end of the current or last connection of a session: 0 is that of the host, 1
    /// that of the storage system.
    pub fn connection(&self, session: u32, side: u32) -> Option<&Connection> {
        let end = self.sessions[session as usize].end;
        (end != u32::MAX).then(|| self.stacks.connection(end + side))
    }

    /// Returns the counters of a session.
    pub fn count(&self, session: u32) -> SessionCount {
        count::of(self, session)
    }

    /// Restarts the counters at the end of the warm-up.
    pub fn restart(&mut self) {
        count::restart(self);
        self.routers.iter_mut().for_each(Router::restart);
    }
}
