//! TCP of hosts and storage systems over the Ethernet plane, and over InfiniBand (IPoIB).
//!
//! The machines of `sanloom_transport::tcp` count positions. A [`Stacks`] gives their segments to
//! the planes as frames, and sets one timer for the deadlines of all of them.

mod ipoib;
mod joined;
mod pool;
mod repairs;

pub use ipoib::{IpoibInterface, IpoibPlan, subnet_mtu};
pub use joined::Joined;
pub use repairs::Repairs;

use crate::infiniband::Seen;
use crate::net::Net;
use crate::net::ethernet::Packet;
use crate::net::infiniband;
use ipoib::Ipoib;
use pool::Pool;
use sanloom_scsi::time::Instant;
use sanloom_transport::tcp::{Config, Connection, Ecn, Events, Segment, State};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Bytes of a frame beside the payload and the options of TCP: Ethernet 14, FCS 4, IPv4 20, TCP 20.
pub const HEADER_BYTES: u32 = 58;
/// Bytes of a packet of IP beside the payload and the options of TCP: IPv4 20, TCP 20.
const IP_BYTES: u32 = 40;
/// Bytes of a VLAN tag, which carries the priority (IEEE 802.1Q).
pub const TAG_BYTES: u32 = 4;

/// First number of the flows of FCIP links; those of sessions are lower.
pub const TUNNEL_FLOWS: u32 = 1 << 30;

/// One end of a connection.
struct End {
    connection: Connection,
    /// Own interface, and that of the peer or of the router on the way to it.
    interfaces: [u16; 2],
    /// Interfaces of the router that sends and of the peer that receives, if there is a router.
    beyond: Option<[u16; 2]>,
    /// Priority and VLAN of the frames; `None` for frames without a tag.
    tag: Option<(u8, u8)>,
    /// Time for which the end is in the list of deadlines, [`Instant::NEVER`] if it is not.
    listed: Instant,
    /// True if its machine has stopped, so that it neither sends nor receives.
    is_silent: bool,
}

/// Settings of one end of a connection.
pub struct Endpoint {
    /// Settings of TCP.
    pub config: Arc<Config>,
    /// Interface of IP: one of the Ethernet plane, or behind these one of InfiniBand.
    pub interface: u16,
}

/// Packet of IP on InfiniBand, for a capture.
pub struct OnInfiniband {
    /// The packet as a frame of Ethernet would carry it.
    pub frame: Packet,
    pub segment: Segment,
    /// Queue pairs of the sender and of the receiver.
    pub pairs: [u32; 2],
    /// Key of their partition.
    pub key: u16,
    /// Packet of a connection, and the first byte of it within the message; `None` for a datagram.
    pub part: Option<(Seen, u32)>,
}

/// All TCP connections of a network. Connection n has the ends 2n, which opens it, and 2n + 1.
pub struct Stacks {
    ends: Vec<End>,
    pool: Pool,
    /// Deadlines with their ends. Only the entry with the time in [`End::listed`] counts; its
    /// deadline may have moved away since.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Ends at which an expired deadline has caused an event.
    changed: VecDeque<u32>,
    /// Number of the timer of the network.
    timer: u32,
    /// Flow of the frames of the first end.
    first_flow: u32,
    ipoib: Option<Box<Ipoib>>,
    /// First interface of IP on InfiniBand.
    first_infiniband: u16,
}

impl Stacks {
    /// Returns stacks without connections, which use a timer of the network.
    pub fn new(timer: u32) -> Stacks {
        Stacks {
            ends: Vec::new(),
            pool: Pool::default(),
            due: BinaryHeap::new(),
            changed: VecDeque::new(),
            timer,
            first_flow: 0,
            ipoib: None,
            first_infiniband: u16::MAX,
        }
    }

    /// Makes the stacks those of FCIP links.
    pub fn of_tunnels(self) -> Stacks {
        Stacks { first_flow: TUNNEL_FLOWS, ..self }
    }

    /// Returns the end that has sent a frame.
    pub fn end_of(&self, packet: &Packet) -> u32 {
        packet.flow - self.first_flow
    }

    /// Adds interfaces of InfiniBand, which use a timer of the network of their own.
    #[must_use]
    pub fn with_ipoib(mut self, plan: Option<IpoibPlan>, timer: u32) -> Stacks {
        self.ipoib = plan.map(|plan| Box::new(Ipoib::new(plan, timer)));
        self.first_infiniband = self.ipoib.as_ref().map_or(u16::MAX, |ipoib| ipoib.first());
        self
    }

    /// Returns whether an interface of IP is one of InfiniBand.
    pub fn is_infiniband(&self, interface: u16) -> bool {
        interface >= self.first_infiniband
    }

    /// Opens a connection. Its frames carry a tag with this priority and VLAN, if there is one.
    /// `via` are the interfaces of a router towards the first and towards the second end. Returns
    /// the number of the end that opens it.
    pub fn connect(&mut self, net: &mut Net, ends: [Endpoint; 2], tag: Option<(u8, u8)>, via: Option<[u16; 2]>) -> u32 {
        net.ethernet.report_losses();
        if self.ipoib.is_some() {
            net.infiniband.report_losses();
        }
        let first = self.ends.len() as u32;
        let [opens, waits] = ends;
        let interfaces = [opens.interface, waits.interface];
        let end = |connection, own: usize| {
            let (from, to) = (interfaces[own], interfaces[1 - own]);
            let hops = [from, via.map_or(to, |via| via[own])];
            let beyond = via.map(|via| [via[1 - own], to]);
            End { connection, interfaces: hops, beyond, tag, listed: Instant::NEVER, is_silent: false }
        };
        self.ends.push(end(Connection::connect(opens.config), 0));
        self.ends.push(end(Connection::listen(waits.config), 1));
        self.transmit(net, first);
        first
    }

    /// Returns an end of a connection.
    pub fn connection(&self, end: u32) -> &Connection {
        &self.ends[end as usize].connection
    }

    /// Returns the events of an end since the last call.
    pub fn take_events(&mut self, end: u32) -> Events {
        self.ends[end as usize].connection.take_events()
    }

    /// Returns an end that an expired deadline has closed.
    pub fn take_changed(&mut self) -> Option<u32> {
        self.changed.pop_front()
    }

    /// Calls the application's side of a connection, and sends what follows.
    pub fn with<T>(&mut self, net: &mut Net, end: u32, call: impl FnOnce(&mut Connection, Instant) -> T) -> T {
        let answer = call(&mut self.ends[end as usize].connection, now(net));
        self.transmit(net, end);
        answer
    }

    /// Stops the machine of an end: it sends nothing more, and ignores what arrives.
    pub fn silence(&mut self, end: u32) {
        self.ends[end as usize].is_silent = true;
    }

    /// Takes a frame that has arrived at its interface. Returns the end that it was for.
    pub fn receive(&mut self, net: &mut Net, packet: &Packet) -> u32 {
        let joined = self.unpack(packet);
        self.arrive(net, &joined)
    }

    /// Takes the segment out of a frame that has arrived at its interface.
    pub fn unpack(&mut self, packet: &Packet) -> Joined {
        let mut segment = self.pool.take(packet.position);
        if packet.has_congestion() {
            segment.ecn = Ecn::Ce;
        }
        Joined { end: self.end_of(packet) ^ 1, segment }
    }

    /// Passes segments that have arrived to their connection. Returns the end that they were for.
    pub fn arrive(&mut self, net: &mut Net, joined: &Joined) -> u32 {
        let end = joined.end;
        if self.ends[end as usize].is_silent {
            return end;
        }
        let answer = self.ends[end as usize].connection.arrive(now(net), &joined.segment);
        if let Some(answer) = answer {
            self.send(net, end, &answer);
        }
        self.transmit(net, end);
        end
    }

    /// Returns the bytes of payload of a frame that has not been taken.
    pub fn payload_of(&self, packet: &Packet) -> u32 {
        self.pool.get(packet.position).map_or(0, |segment| segment.length)
    }

    /// Returns whether a frame has arrived at a router and not at its end of the connection.
    pub fn is_for_router(&self, packet: &Packet) -> bool {
        self.ends[packet.flow as usize].beyond.is_some_and(|[_, peer]| peer != packet.to)
    }

    /// Sends a frame of which [`Stacks::is_for_router`] is true on to its end.
    pub fn forward(&mut self, net: &mut Net, packet: &Packet) {
        let Some([out, peer]) = self.ends[packet.flow as usize].beyond else { return };
        if packet.has_congestion() {
            self.pool.mark(packet.position);
        }
        self.put(net, [out, peer], packet.flow, packet.position);
    }

    /// Frees the segment of a frame that a router drops.
    pub fn discard(&mut self, packet: &Packet) {
        self.pool.free(packet.position);
    }

    /// Takes a packet of IPoIB from the InfiniBand plane. [`Stacks::take_arrived`] has the packets
    /// of IP that have arrived whole.
    pub fn receive_infiniband(&mut self, net: &mut Net, packet: &infiniband::Packet) {
        self.ipoib.iter_mut().for_each(|ipoib| ipoib.receive(net, packet));
    }

    /// Handles the deadlines of InfiniBand.
    pub fn infiniband_timer_expired(&mut self, net: &mut Net) {
        self.ipoib.iter_mut().for_each(|ipoib| ipoib.timer_expired(net));
    }

    /// Returns a packet of IP that has arrived at an interface of InfiniBand.
    pub fn take_arrived(&mut self) -> Option<Packet> {
        self.ipoib.as_mut()?.take_arrived()
    }

    /// Returns the packet of IP of a packet of InfiniBand, if packets are kept.
    pub fn on_infiniband(&self, packet: &infiniband::Packet) -> Option<OnInfiniband> {
        let ipoib = self.ipoib.as_ref()?;
        if let Some(seen) = ipoib.seen(packet) {
            let (frame, segment, start) = seen.ip.unwrap_or_default();
            return Some(OnInfiniband {
                frame,
                segment,
                pairs: seen.pairs,
                key: ipoib.key_of(packet),
                part: Some((seen, start)),
            });
        }
        let frame = ipoib.of_datagram(packet)?;
        let segment = *self.segment(&frame)?;
        Some(OnInfiniband {
            frame,
            segment,
            pairs: ipoib.datagram_pairs(&frame)?,
            key: ipoib.key_of(packet),
            part: None,
        })
    }

    /// Handles the deadlines that are due. Call it when the timer has expired.
    pub fn timer_expired(&mut self, net: &mut Net) {
        let now = now(net);
        while let Some(&Reverse((at, end))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            if self.ends[end as usize].listed != at {
                // Another entry holds the deadline of this end.
                continue;
            }
            self.ends[end as usize].listed = Instant::NEVER;
            let connection = &mut self.ends[end as usize].connection;
            connection.timeout(now);
            if connection.state() == State::Closed {
                self.changed.push_back(end);
            }
            self.transmit(net, end);
        }
        self.set_timer(net);
    }

    /// Frees the segments of frames that the plane has lost. Call it now and then.
    pub fn forget_lost(&mut self, net: &mut Net) {
        let first = self.first_flow;
        net.ethernet.take_lost(|packet| {
            let is_own = packet.flow & TUNNEL_FLOWS == first;
            if is_own {
                self.pool.free(packet.position);
            }
            is_own
        });
        if let Some(ipoib) = &mut self.ipoib {
            ipoib.take_lost(net, |segment| self.pool.free(segment));
        }
    }

    /// Keeps segments that have arrived or were lost, until [`Stacks::forget_kept`].
    pub fn keep_segments(&mut self) {
        self.pool.keep();
        self.ipoib.iter_mut().for_each(|ipoib| ipoib.watch());
    }

    /// Forgets the segments that were kept.
    pub fn forget_kept(&mut self) {
        self.pool.forget();
    }

    /// Ends what [`Stacks::keep_segments`] began, for segments of the Ethernet plane.
    pub fn keep_none(&mut self) {
        self.pool.keep_none();
    }

    /// Returns the segment of a frame that is on its way or kept.
    pub fn segment(&self, packet: &Packet) -> Option<&Segment> {
        self.pool.get(packet.position)
    }

    /// Returns the number of segments on their way.
    pub fn segments(&self) -> usize {
        self.pool.used()
    }

    fn transmit(&mut self, net: &mut Net, end: u32) {
        while let Some(segment) = self.ends[end as usize].connection.poll_transmit(now(net)) {
            if !self.ends[end as usize].is_silent {
                self.send(net, end, &segment);
            }
        }
        let state = &mut self.ends[end as usize];
        if let Some(at) = state.connection.poll_timeout()
            && at < state.listed
        {
            state.listed = at;
            self.due.push(Reverse((at, end)));
            self.set_timer(net);
        }
    }

    fn set_timer(&mut self, net: &mut Net) {
        if let Some(Reverse((at, _))) = self.due.peek() {
            net.set_timer_earlier(self.timer, at.as_ns().saturating_mul(1_000));
        }
    }

    /// Sends the frames of a segment or batch.
    fn send(&mut self, net: &mut Net, end: u32, segment: &Segment) {
        let state = &self.ends[end as usize];
        let (hops, tag) = (state.interfaces, state.tag);
        if hops[0] >= self.first_infiniband {
            for part in segment.parts() {
                let number = self.pool.add(part);
                self.put(net, hops, end, number);
            }
            return;
        }
        for part in segment.parts() {
            let number = self.pool.add(part);
            net.send_packet(frame(hops, tag, self.first_flow + end, number, &part));
        }
    }

    /// Sends the packet of a stored segment from one interface to another.
    #[inline(never)]
    fn put(&mut self, net: &mut Net, hops: [u16; 2], end: u32, number: u32) {
        let Some(segment) = self.pool.get(number).copied() else { return };
        let frame = frame(hops, self.ends[end as usize].tag, self.first_flow + end, number, &segment);
        match &mut self.ipoib {
            Some(ipoib) if hops[0] >= self.first_infiniband => {
                ipoib.send(net, frame, &segment, IP_BYTES + segment.option_bytes() + segment.length);
            }
            _ => net.send_packet(frame),
        }
    }
}

/// Returns the frame of a segment.
fn frame([own, peer]: [u16; 2], tag: Option<(u8, u8)>, end: u32, number: u32, part: &Segment) -> Packet {
    let tag_bytes = if tag.is_some() { TAG_BYTES } else { 0 };
    let bytes = HEADER_BYTES + tag_bytes + part.option_bytes() + part.length;
    // Only a packet of IPoIB is longer than a frame of Ethernet, and has its own length.
    let mut packet = Packet::new(own, peer, end, number, bytes.min(u16::MAX.into()) as u16);
    if let Some((priority, vlan)) = tag {
        packet = packet.with_priority(priority).with_vlan(vlan);
    }
    if part.ecn != Ecn::NotEct {
        packet = packet.with_ecn();
    }
    packet
}

/// Returns the time of the machines, in whole nanoseconds.
fn now(net: &Net) -> Instant {
    Instant::from_ns(net.now() / 1_000)
}
