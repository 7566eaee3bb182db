//! Queue pairs of hosts and storage systems over the InfiniBand plane.
//!
//! The machines of `sanloom_transport::infiniband` count packets. [`Pairs`] gives their packets to
//! the plane, and sets one timer for the deadlines of all of them.

mod form;
mod record;

pub use form::Form;
pub use record::{Content, Seen};

use crate::net::Net;
use crate::net::infiniband::{self, Packet};
use record::Record;
use sanloom_scsi::time::Instant;
use sanloom_transport::infiniband::lids::Range;
use sanloom_transport::infiniband::packet::Mtu;
use sanloom_transport::infiniband::partition::PKey;
use sanloom_transport::infiniband::rc::Config;
use sanloom_transport::infiniband::rc::packet::{Fatal, Operation};
use sanloom_transport::infiniband::rc::requester::{self, Failure, Requester, Work};
use sanloom_transport::infiniband::rc::responder::{self, Responder};
use sanloom_transport::infiniband::ud;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bit of the numbers of queue pairs of IPoIB.
pub const OF_IPOIB: u32 = 1 << 22;
/// First number of the queue pairs of datagrams.
const FIRST_DATAGRAM: u32 = 1 << 23;

/// Place and partition of one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Interface of the InfiniBand plane.
    pub interface: u16,
    /// Key of the partition.
    pub key: PKey,
    /// Service level of the packets.
    pub level: u8,
}

/// Event for the owner of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A work request or a datagram is complete.
    Completed(u64),
    /// A work request is not complete, because the queue pair has failed.
    Flushed(u64),
    /// The queue pair has failed.
    Failed(Failure),
    /// A SEND or WRITE of this length has arrived whole, or a READ was accepted.
    Message(Operation, u32),
    /// The peer sent an invalid request, and the queue pair has failed.
    Rejected(Fatal),
    /// A datagram with this name and this many bytes has arrived.
    Datagram(u32, u32),
    /// A datagram was longer than the MTU and was not sent.
    TooLong(u64),
}

/// One end of a reliable connection.
struct End {
    requester: Requester,
    responder: Responder,
    interface: u16,
    /// Own LID, and that of the peer.
    lids: [u16; 2],
    level: u8,
    /// True if the queue pair is closed: packets for it are discarded.
    is_closed: bool,
    /// Time for which the end is in the list of deadlines, [`Instant::NEVER`] if it is not.
    listed: Instant,
    /// Messages of the end, if they are kept.
    record: Option<Record>,
}

/// Queue pair of datagrams.
struct Datagrams {
    endpoint: ud::Endpoint,
    at: Endpoint,
    lids: Range,
}

/// All queue pairs of a network. Connection n has the ends 2n and 2n + 1, whose numbers are those
/// of their queue pairs.
pub struct Pairs {
    ends: Vec<End>,
    datagrams: Vec<Datagrams>,
    events: VecDeque<(u32, Event)>,
    /// Deadlines with their ends. Only the entry with the time in [`End::listed`] counts.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Number of the timer of the network.
    timer: u32,
    keeps_messages: bool,
    /// Bit of the numbers of all queue pairs in packets.
    mark: u32,
}

impl Pairs {
    /// Returns no queue pairs, with a timer of the network.
    pub fn new(timer: u32) -> Pairs {
        Pairs {
            ends: Vec::new(),
            datagrams: Vec::new(),
            events: VecDeque::new(),
            due: BinaryHeap::new(),
            timer,
            keeps_messages: false,
            mark: 0,
        }
    }

    /// Marks the numbers of all queue pairs in packets with a bit, so that packets of several
    /// [`Pairs`] can be told apart.
    #[must_use]
    pub fn marked(self, mark: u32) -> Pairs {
        Pairs { mark, ..self }
    }

    /// Opens a reliable connection. Returns the number of its first end; `None` if the partitions
    /// do not match, or if the subnet manager does not know an interface. The number of its flow
    /// chooses one of the LIDs of each interface, and so the paths of its packets.
    pub fn connect(&mut self, net: &Net, ends: [Endpoint; 2], flow: u32, config: Config) -> Option<u32> {
        if !ends[0].key.matches(ends[1].key) {
            return None;
        }
        let lids = |end: Endpoint| net.infiniband.lids_of(end.interface);
        let lids = [lids(ends[0])?, lids(ends[1])?].map(|lids| lids.of_flow(flow));
        let first = self.ends.len() as u32;
        for (end, lids) in ends.into_iter().zip([lids, [lids[1], lids[0]]]) {
            self.ends.push(End {
                requester: Requester::new(config),
                responder: Responder::new(config),
                interface: end.interface,
                lids,
                level: end.level,
                is_closed: false,
                listed: Instant::NEVER,
                record: self.keeps_messages.then(|| Record::new(config.mtu, config.first_psn)),
            });
        }
        Some(first)
    }

    /// Creates a queue pair of datagrams. Returns its number; `None` if the subnet manager does not
    /// know the interface.
    pub fn datagrams(&mut self, net: &Net, at: Endpoint, mtu: Mtu) -> Option<u32> {
        let lids = net.infiniband.lids_of(at.interface)?;
        self.datagrams.push(Datagrams { endpoint: ud::Endpoint::new(mtu), at, lids });
        Some(FIRST_DATAGRAM + self.datagrams.len() as u32 - 1)
    }

    /// Keeps the messages of connections that are opened from now on, for [`Pairs::seen`].
    pub fn keep_messages(&mut self) {
        self.keeps_messages = true;
    }

    /// Returns a packet of a reliable connection with its message, if messages are kept.
    pub fn seen(&self, packet: &Packet) -> Option<Seen> {
        let form = Form::of(packet)?;
        let (pairs, of) = record::ends(packet, form);
        let mut seen = self.ends.get((of & !self.mark) as usize)?.record.as_ref()?.seen(form, pairs)?;
        seen.pairs = pairs.map(|pair| pair | self.mark);
        Some(seen)
    }

    /// Posts a work request with its contents.
    pub fn post_with(&mut self, net: &mut Net, end: u32, work: Work, content: impl FnOnce() -> Content) {
        let state = &mut self.ends[end as usize];
        if let Some(record) = state.record.as_mut().filter(|_| !state.is_closed) {
            record.add(&work, content());
        }
        self.post(net, end, work);
    }

    /// Posts a work request.
    pub fn post(&mut self, net: &mut Net, end: u32, work: Work) {
        let now = now(net);
        if self.ends[end as usize].is_closed {
            return;
        }
        self.ends[end as usize].requester.handle(now, requester::Input::Post(work));
        self.transmit(net, end);
    }

    /// Closes an end: it sends nothing more, and discards packets that arrive. Work requests end
    /// without an event.
    pub fn close(&mut self, end: u32) {
        self.ends[end as usize].is_closed = true;
        self.events.retain(|(of, _)| *of != end);
    }

    /// Returns the times that the requester of an end has gone back to repeat packets.
    pub fn repetitions(&self, end: u32) -> u64 {
        self.ends[end as usize].requester.repetitions()
    }

    /// Posts receives for SENDs or datagrams.
    pub fn post_receives(&mut self, pair: u32, count: u32) {
        match pair.checked_sub(FIRST_DATAGRAM) {
            Some(pair) => self.datagrams[pair as usize].endpoint.handle(ud::Input::Receives(count)),
            None => self.ends[pair as usize].responder.handle(responder::Input::Receives(count)),
        }
    }

    /// Sends a datagram from one queue pair to another. It is discarded there if the partitions do
    /// not match. The low 24 bits of its name arrive with it.
    pub fn send_datagram(&mut self, net: &mut Net, from: u32, to: u32, id: u64, length: u32) {
        let ends = [from, to].map(|pair| &self.datagrams[(pair - FIRST_DATAGRAM) as usize]);
        let keys = ends.map(|end| end.at.key);
        // Both directions of a pair of interfaces are a flow.
        let flow = u32::from(ends[0].at.interface) + u32::from(ends[1].at.interface);
        let lids = ends.map(|end| end.lids.of_flow(flow));
        let state = &mut self.datagrams[(from - FIRST_DATAGRAM) as usize];
        state.endpoint.handle(ud::Input::Post(id, length));
        while let Some(output) = state.endpoint.poll_output() {
            match output {
                ud::Output::Send(length) if keys[0].matches(keys[1]) => {
                    let packet = Form::Datagram(length).packet(lids, to | self.mark);
                    let packet = packet.named(id as u32).with_level(state.at.level);
                    infiniband::send(net, state.at.interface, packet);
                }
                ud::Output::Send(_) => {}
                ud::Output::Completed(id) => self.events.push_back((from, Event::Completed(id))),
                ud::Output::TooLong(id) => self.events.push_back((from, Event::TooLong(id))),
                ud::Output::Received(length) => self.events.push_back((from, Event::Datagram(0, length))),
            }
        }
    }

    /// Returns the datagrams that a queue pair has dropped.
    pub fn dropped_datagrams(&self, pair: u32) -> u64 {
        self.datagrams[(pair - FIRST_DATAGRAM) as usize].endpoint.dropped()
    }

    /// Takes a packet that has arrived at its interface.
    pub fn receive(&mut self, net: &mut Net, packet: &Packet) {
        let pair = packet.pair() & !self.mark;
        match Form::of(packet) {
            Some(Form::Datagram(length)) => {
                let Some(state) = self.datagrams.get_mut(pair.wrapping_sub(FIRST_DATAGRAM) as usize) else { return };
                state.endpoint.handle(ud::Input::Packet(length));
                while let Some(output) = state.endpoint.poll_output() {
                    if let ud::Output::Received(length) = output {
                        self.events.push_back((pair, Event::Datagram(Form::name(packet), length)));
                    }
                }
            }
            Some(Form::Request(request)) => {
                let Some(end) = self.ends.get_mut(pair as usize).filter(|end| !end.is_closed) else { return };
                end.responder.handle(responder::Input::Packet(request));
                self.respond(net, pair);
            }
            Some(Form::Response(response)) => {
                let now = now(net);
                let Some(end) = self.ends.get_mut(pair as usize).filter(|end| !end.is_closed) else { return };
                end.requester.handle(now, requester::Input::Packet(response));
                self.transmit(net, pair);
            }
            None => {}
        }
    }

    /// Handles the deadlines that are due. Call it when the timer has expired.
    pub fn timer_expired(&mut self, net: &mut Net) {
        let now = now(net);
        while let Some(&Reverse((at, end))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            let state = &mut self.ends[end as usize];
            // Another entry may hold the deadline of this end.
            if state.listed == at && !state.is_closed {
                state.listed = Instant::NEVER;
                if state.requester.poll_timeout().is_some_and(|due| due <= now) {
                    state.requester.handle(now, requester::Input::Timeout);
                }
                self.transmit(net, end);
            }
        }
        self.set_timer(net);
    }

    /// Returns the next event with the queue pair that it belongs to.
    pub fn poll_event(&mut self) -> Option<(u32, Event)> {
        self.events.pop_front()
    }

    fn transmit(&mut self, net: &mut Net, end: u32) {
        let state = &mut self.ends[end as usize];
        while let Some(output) = state.requester.poll_output() {
            let event = match output {
                requester::Output::Send(request) => {
                    let packet =
                        Form::Request(request).packet(state.lids, (end ^ 1) | self.mark).with_level(state.level);
                    infiniband::send(net, state.interface, packet);
                    continue;
                }
                requester::Output::Completed(id) => Event::Completed(id),
                requester::Output::Failed(failure) => Event::Failed(failure),
                requester::Output::Flushed(id) => Event::Flushed(id),
            };
            self.events.push_back((end, event));
        }
        if let Some(at) = state.requester.poll_timeout()
            && at < state.listed
        {
            state.listed = at;
            self.due.push(Reverse((at, end)));
            self.set_timer(net);
        }
    }

    fn respond(&mut self, net: &mut Net, end: u32) {
        let state = &mut self.ends[end as usize];
        while let Some(output) = state.responder.poll_output() {
            let event = match output {
                responder::Output::Send(response) => {
                    let packet =
                        Form::Response(response).packet(state.lids, (end ^ 1) | self.mark).with_level(state.level);
                    infiniband::send(net, state.interface, packet);
                    continue;
                }
                responder::Output::Message(operation, length) => Event::Message(operation, length),
                responder::Output::Failed(fatal) => Event::Rejected(fatal),
            };
            self.events.push_back((end, event));
        }
    }

    fn set_timer(&mut self, net: &mut Net) {
        if let Some(Reverse((at, _))) = self.due.peek() {
            net.set_timer_earlier(self.timer, at.as_ns().saturating_mul(1_000));
        }
    }
}

/// Returns the time of the machines, in whole nanoseconds.
fn now(net: &Net) -> Instant {
    Instant::from_ns(net.now() / 1_000)
}
