//! SRP of hosts and storage systems over reliable connections of the InfiniBand plane.
//!
//! The machines are those of `sanloom_scsi::srp`. Information units travel as values beside the
//! SENDs that carry them; payload does not exist:
//!
//! ```text
//!   Hosts -- orders --> Initiator -- SEND --> Pairs --> packets of the plane
//!   Hosts <-- events -- Initiator <-- SEND -- Pairs <-- packets of the plane
//!                                               ^  RDMA WRITE and READ of the data
//!   Storage <-- Io ---- Target <----------------+       the same on the other side
//! ```
//!
//! A reliable connection delivers messages in order, so the next information unit in the queue of a
//! direction belongs to the next SEND that arrives.
//!
//! | file | job |
//! |---|---|
//! | `plan` | channels and targets of a lab |
//! | `connection` | connections: open, events, end |
//! | `initiator` | the host's machines, time limits |
//! | `target` | the storage system's machines |
//! | `storage_adapter` | its bus and its interrupts |
//! | `count` | counters |
//!
//! # Simplifications
//!
//! - Connections are there at once: neither the connection manager nor the device manager of a
//!   target is simulated, and path records are known.
//! - Each command has one direct descriptor, and no immediate data.
//! - Each response has a completion of its own at the host; completions are not moderated.

mod connection;
mod count;
mod initiator;
mod plan;
mod storage_adapter;
mod target;

pub use count::ChannelCount;
pub use plan::{ChannelPlan, SrpPlan, TargetPlan};

use crate::agenda::Agenda;
use crate::host::Direction;
use crate::infiniband::{Pairs, Seen};
use crate::iscsi::{self, Event, Order, SESSION, Slots};
use crate::net::Net;
use crate::net::infiniband::Packet;
use connection::Connection;
use sanloom_fc::fcp::initiator::Outcome;
use sanloom_scsi::iscsi::initiator::Command;
use sanloom_scsi::ordered::{OrderedMap, OrderedSet};
use sanloom_scsi::scsi::{IoStatus, IoTag, Notice};
use sanloom_scsi::srp::initiator::Initiator;
use sanloom_scsi::time::Instant;
use sanloom_wire::srp::Iu;
use std::collections::{BTreeMap, VecDeque};

/// Bit of the number of an `Io` owner that is a session and a channel of SRP.
pub const CHANNEL: u16 = SESSION | 0x4000;

/// The parts of a lab that SRP uses, beside those of iSCSI.
pub trait Around: iscsi::Around {
    /// Moves the bytes of a command over the bus of a host, and gives the completion of its
    /// response to the processor. Returns the time of the end of both in ps.
    fn complete(&mut self, host: u16, hba: u16, data: (Direction, u32), now_ps: u64) -> u64;
    /// Moves bytes of a command over the bus of a storage system. Returns the time of the end in
    /// ps; without a bus, now.
    fn transfer(&mut self, storage: u16, port: u16, data: (Direction, u32), now_ps: u64) -> u64;
}

/// Work that is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Job {
    /// Open the connection of a channel.
    Connect(u32),
    /// A time limit of a channel is over.
    Deadline(u32),
    /// The processor of a host has handled a response: the number in `finished`.
    Complete(u64),
    /// Information units at a port of a storage system have waited long enough.
    Interrupt(u16, u16),
    /// The processor of a storage system has handled information units at one of its ports.
    Units(u16, u16, u32),
    /// The bus of a storage system has moved the next data of a connection that leave.
    Leave(u32),
    /// The bus of a storage system has moved the next data of a connection that have arrived.
    Pulled(u32),
}

/// Phase of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Waits for the next connection.
    Idle,
    /// The login is in progress.
    Opening,
    /// Logged in.
    Up,
}

/// Kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A command with data of this direction and length in bytes.
    Command(Direction, u32),
    /// LOGICAL UNIT RESET.
    Reset,
    /// ABORT TASK of the command with this name.
    Abort(u64),
}

/// A request without a result.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: Kind,
    /// Tag of the host.
    tag: u64,
    /// Time limit.
    until: Instant,
}

/// A configured channel.
struct Channel {
    plan: ChannelPlan,
    stage: Stage,
    machine: Option<Initiator>,
    /// Number of the current or last connection.
    connection: u32,
    /// True once a login has succeeded or failed.
    tried: bool,
    requests: OrderedMap<u64, Request>,
    /// Time limits of the requests, and of the login with the name 0.
    limits: OrderedSet<(Instant, u64)>,
    /// Time limit in the agenda, [`Instant::NEVER`] if there is none.
    listed: Instant,
    last_name: u64,
    /// Commands in flight.
    in_flight: u32,
    /// Commands that wait for others to end.
    waiting: VecDeque<Command>,
    count: ChannelCount,
    /// Counters at the end of the warm-up.
    before: ChannelCount,
}

/// A storage system with SRP.
struct System {
    plan: TargetPlan,
    /// Connections by their number among those of the system.
    slots: Slots,
    /// Information units that have arrived at each port, and whose interrupt was not handled.
    arrived: BTreeMap<u16, VecDeque<(u32, Iu)>>,
}

/// All channels of a lab.
pub struct Srp {
    pairs: Pairs,
    connections: Vec<Connection>,
    channels: Vec<Channel>,
    systems: Vec<Option<System>>,
    agenda: Agenda<Job>,
    /// Results that the processors of hosts handle.
    finished: OrderedMap<u64, (u32, u64, Outcome)>,
    last_finished: u64,
    events: VecDeque<Event>,
    /// Number of the timer of the connections; that of the agenda follows.
    timer: u32,
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

impl Srp {
    /// Number of timers of the network that channels use. The last one is free for the driver as
    /// well.
    pub const TIMERS: u32 = 2;

    /// Returns channels that are not logged in. `timer` is the first of [`Srp::TIMERS`] timers of
    /// the network.
    pub fn new(plan: SrpPlan, timer: u32) -> Srp {
        let channel = |plan| Channel {
            plan,
            stage: Stage::Idle,
            machine: None,
            connection: u32::MAX,
            tried: false,
            requests: OrderedMap::new(),
            limits: OrderedSet::new(),
            listed: Instant::NEVER,
            last_name: 0,
            in_flight: 0,
            waiting: VecDeque::new(),
            count: ChannelCount::default(),
            before: ChannelCount::default(),
        };
        let system = |plan| System { plan, slots: Slots::default(), arrived: BTreeMap::new() };
        Srp {
            pairs: Pairs::new(timer),
            connections: Vec::new(),
            channels: plan.channels.into_iter().map(channel).collect(),
            systems: plan.targets.into_iter().map(|plan| plan.map(system)).collect(),
            agenda: Agenda::new(timer + 1),
            finished: OrderedMap::new(),
            last_finished: 0,
            events: VecDeque::new(),
            timer,
        }
    }

    /// Opens the connections of all channels.
    pub fn start(&mut self, net: &mut Net) {
        for channel in 0..self.channels.len() as u32 {
            self.agenda.plan(net, net.now(), Job::Connect(channel));
        }
    }

    /// Takes a packet that has arrived at an interface.
    pub fn packet(&mut self, net: &mut Net, around: &mut dyn Around, packet: &Packet) {
        self.pairs.receive(net, packet);
        connection::drain(self, &mut Cx { net, around });
    }

    /// Handles a timer of the network that belongs to the channels.
    pub fn timer_expired(&mut self, net: &mut Net, around: &mut dyn Around, timer: u32) {
        let cx = &mut Cx { net, around };
        if timer == self.timer {
            self.pairs.timer_expired(cx.net);
            return connection::drain(self, cx);
        }
        while let Some(job) = self.agenda.pop_due(cx.net.now()) {
            match job {
                Job::Connect(channel) => connection::open(self, cx, channel),
                Job::Deadline(channel) => initiator::deadline(self, cx, channel),
                Job::Complete(number) => {
                    if let Some((session, tag, outcome)) = self.finished.remove(&number) {
                        self.events.push_back(Event::Done { session, tag, outcome });
                    }
                }
                Job::Interrupt(storage, port) => storage_adapter::interrupt(self, cx, storage, port),
                Job::Units(storage, port, count) => storage_adapter::units(self, cx, storage, port, count),
                Job::Leave(connection) => storage_adapter::leave(self, cx, connection),
                Job::Pulled(connection) => storage_adapter::pulled(self, cx, connection),
            }
            connection::drain(self, cx);
        }
        self.agenda.arm(cx.net);
    }

    /// Carries out an order of a host.
    pub fn order(&mut self, net: &mut Net, around: &mut dyn Around, channel: u32, order: Order) {
        let cx = &mut Cx { net, around };
        initiator::order(self, cx, channel, order);
        connection::drain(self, cx);
    }

    /// Reports the end of block I/O of a channel.
    pub fn io_done(
        &mut self,
        net: &mut Net,
        around: &mut dyn Around,
        (storage, owner): (u16, u16),
        tag: IoTag,
        status: IoStatus,
    ) {
        let cx = &mut Cx { net, around };
        target::io_done(self, cx, (storage, owner), tag, status);
        connection::drain(self, cx);
    }

    /// Passes on the first `bytes` bytes of a read whose block I/O continues.
    pub fn io_data(&mut self, net: &mut Net, around: &mut dyn Around, at: (u16, u16), (tag, bytes): (IoTag, u32)) {
        target::io_data(self, &mut Cx { net, around }, at, tag, bytes);
    }

    /// Returns the index of the host with block I/O of a storage system.
    pub fn host_of(&self, at: (u16, u16)) -> Option<u16> {
        target::host_of(self, at)
    }

    /// Passes a notice of a device to the channels at one of its ports.
    pub fn notify(&mut self, net: &mut Net, around: &mut dyn Around, storage: u16, port: u16, notice: &Notice) {
        let cx = &mut Cx { net, around };
        target::notify(self, cx, (storage, port), None, notice);
        connection::drain(self, cx);
    }

    /// Returns the key of the partition of a packet.
    pub fn key_of(&self, packet: &Packet) -> Option<u16> {
        let connection = self.connections.get((packet.pair() / 2) as usize)?;
        Some(self.channels[connection.channel as usize].plan.keys[0].0)
    }

    /// Keeps what is sent from now on, for [`Srp::seen`]. Call it before [`Srp::start`].
    pub fn watch(&mut self) {
        self.pairs.keep_messages();
    }

    /// Returns a packet with its message.
    pub fn seen(&self, packet: &Packet) -> Option<Seen> {
        self.pairs.seen(packet)
    }

    /// Ends the connections of a storage system without power. Their peers notice it by the missing
    /// acknowledgements.
    pub fn power_off(&mut self, net: &mut Net, around: &mut dyn Around, storage: u16) {
        let cx = &mut Cx { net, around };
        target::end_all(self, cx, storage);
        connection::drain(self, cx);
    }

    /// Logs out of the channels of a host with a storage system; `None`: of those of all hosts.
    pub fn end_channels(&mut self, net: &mut Net, around: &mut dyn Around, storage: u16, host: Option<u16>) {
        let cx = &mut Cx { net, around };
        target::log_out(self, cx, storage, host);
        connection::drain(self, cx);
    }

    /// Returns the next change for the hosts.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the channels of the lab.
    pub fn plans(&self) -> impl ExactSizeIterator<Item = &ChannelPlan> {
        self.channels.iter().map(|channel| &channel.plan)
    }

    /// Returns whether a channel has neither logged in nor failed to.
    pub fn is_logging_in(&self) -> bool {
        self.channels.iter().any(|channel| !channel.tried)
    }

    /// Returns whether a channel is logged in.
    pub fn is_up(&self, channel: u32) -> bool {
        self.channels[channel as usize].stage == Stage::Up
    }

    /// Returns the counters of a channel.
    pub fn count(&self, channel: u32) -> ChannelCount {
        let state = &self.channels[channel as usize];
        connection::total(self, channel).since(state.before)
    }

    /// Restarts the counters at the end of the warm-up.
    pub fn restart(&mut self) {
        for channel in 0..self.channels.len() as u32 {
            self.channels[channel as usize].before = connection::total(self, channel);
        }
    }
}
