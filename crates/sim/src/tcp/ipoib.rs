//! Packets of IP over the InfiniBand plane: datagrams, or one reliable connection for each pair of
//! interfaces (RFC 4391, RFC 4755).
//!
//! Addresses are known: ARP, multicast and path records cost nothing. The queue of an interface has
//! no limit of its own, because the windows of TCP bound it.

use crate::infiniband::{Content, Endpoint, Event, Form, OF_IPOIB, Pairs, Seen};
use crate::net::Net;
use crate::net::ethernet::Packet as Frame;
use crate::net::infiniband::Packet;
use sanloom_transport::infiniband::packet::Mtu;
use sanloom_transport::infiniband::partition::PKey;
use sanloom_transport::infiniband::rc::Config;
use sanloom_transport::infiniband::rc::packet::Operation;
use sanloom_transport::infiniband::rc::requester::Work;
use sanloom_transport::tcp::Segment;
use std::collections::{BTreeMap, VecDeque};

/// Receives that each queue pair posts (`recv_queue_size` of the driver of Linux).
const RECEIVES: u32 = 512;

/// An interface of InfiniBand with IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpoibInterface {
    /// Place and partition.
    pub at: Endpoint,
    /// True for the connected mode.
    pub is_connected: bool,
}

/// IPoIB of a lab.
#[derive(Clone, Debug)]
pub struct IpoibPlan {
    /// Interface of IP that is the first one of InfiniBand.
    pub first: u16,
    /// By interface of InfiniBand; `None` without IP.
    pub interfaces: Vec<Option<IpoibInterface>>,
    /// Settings of connections.
    pub connection: Config,
}

/// A reliable connection between two interfaces.
struct Channel {
    interfaces: [u16; 2],
    /// Packets of each end that have not arrived.
    in_flight: [VecDeque<Frame>; 2],
}

/// Packets of IP on InfiniBand. Segments are known by their number in the pool of the stacks.
pub(super) struct Ipoib {
    plan: IpoibPlan,
    pairs: Pairs,
    /// Queue pair of datagrams of each interface, from its first packet on.
    datagrams: Vec<Option<u32>>,
    /// First end of the connection of two interfaces, the lower one first.
    open: BTreeMap<[u16; 2], u32>,
    /// All connections, by half the number of their first end.
    channels: Vec<Channel>,
    /// The packet that carries each segment as a datagram.
    carried: Vec<Frame>,
    arrived: VecDeque<Frame>,
    lost: Vec<u32>,
    is_watched: bool,
}

impl Ipoib {
    /// Returns interfaces without connections. `timer` is one of the network.
    pub fn new(plan: IpoibPlan, timer: u32) -> Ipoib {
        Ipoib {
            datagrams: vec![None; plan.interfaces.len()],
            plan,
            pairs: Pairs::new(timer).marked(OF_IPOIB),
            open: BTreeMap::new(),
            channels: Vec::new(),
            carried: Vec::new(),
            arrived: VecDeque::new(),
            lost: Vec::new(),
            is_watched: false,
        }
    }

    /// Returns the number of the first interface of IP on InfiniBand.
    pub fn first(&self) -> u16 {
        self.plan.first
    }

    /// Keeps the packets that are sent from now on, for a capture.
    pub fn watch(&mut self) {
        self.is_watched = true;
        self.pairs.keep_messages();
    }

    /// Sends a packet of IP with a segment, `bytes` long behind the header of IPoIB.
    pub fn send(&mut self, net: &mut Net, frame: Frame, segment: &Segment, bytes: u32) {
        let ends = [frame.from, frame.to].map(|interface| interface - self.plan.first);
        let [Some(from), Some(to)] = ends.map(|end| self.plan.interfaces[usize::from(end)]) else {
            return self.lost.push(frame.position);
        };
        let length = bytes + u32::from(sanloom_fc::config::IPOIB_HEADER_BYTES);
        if from.is_connected && to.is_connected {
            return self.send_message(net, ends, frame, segment, length);
        }
        let [Some(own), Some(far)] = ends.map(|end| self.datagram_pair(net, end)) else {
            return self.lost.push(frame.position);
        };
        let number = frame.position as usize;
        if self.carried.len() <= number {
            self.carried.resize(number + 1, Frame::default());
        }
        self.carried[number] = frame;
        self.pairs.send_datagram(net, own, far, frame.position.into(), length);
        self.drain();
    }

    fn datagram_pair(&mut self, net: &Net, interface: u16) -> Option<u32> {
        let slot = usize::from(interface);
        if self.datagrams[slot].is_none() {
            let pair = self.pairs.datagrams(net, self.plan.interfaces[slot]?.at, self.plan.connection.mtu)?;
            self.pairs.post_receives(pair, RECEIVES);
            self.datagrams[slot] = Some(pair);
        }
        self.datagrams[slot]
    }

    fn send_message(&mut self, net: &mut Net, ends: [u16; 2], frame: Frame, segment: &Segment, length: u32) {
        let sorted = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        let first = match self.open.get(&sorted) {
            Some(&first) => first,
            None => {
                let at = sorted.map(|end| self.plan.interfaces[usize::from(end)].map(|interface| interface.at));
                let [Some(a), Some(b)] = at else { return self.lost.push(frame.position) };
                let flow = u32::from(sorted[0]) + u32::from(sorted[1]);
                let Some(first) = self.pairs.connect(net, [a, b], flow, self.plan.connection) else {
                    return self.lost.push(frame.position);
                };
                [first, first + 1].into_iter().for_each(|end| self.pairs.post_receives(end, RECEIVES));
                self.channels.push(Channel { interfaces: sorted, in_flight: Default::default() });
                self.open.insert(sorted, first);
                first
            }
        };
        let side = u32::from(ends[0] != sorted[0]);
        self.channels[(first / 2) as usize].in_flight[side as usize].push_back(frame);
        let work = Work { id: 0, operation: Operation::Send, length };
        match self.is_watched {
            true => self.pairs.post_with(net, first + side, work, || Content::Ip(frame, *segment)),
            false => self.pairs.post(net, first + side, work),
        }
        self.drain();
    }

    /// Takes a packet of InfiniBand.
    pub fn receive(&mut self, net: &mut Net, packet: &Packet) {
        self.pairs.receive(net, packet);
        self.drain();
    }

    /// Handles the deadlines that are due.
    pub fn timer_expired(&mut self, net: &mut Net) {
        self.pairs.timer_expired(net);
        self.drain();
    }

    /// Returns a packet of IP that has arrived at its interface.
    pub fn take_arrived(&mut self) -> Option<Frame> {
        self.arrived.pop_front()
    }

    /// Passes on the segments that are lost.
    pub fn take_lost(&mut self, net: &mut Net, mut take: impl FnMut(u32)) {
        net.infiniband.take_lost(|packet| {
            if packet.pair() & OF_IPOIB != 0 && matches!(Form::of(&packet), Some(Form::Datagram(_))) {
                take(Form::name(&packet));
            }
        });
        self.lost.drain(..).for_each(take);
    }

    /// Returns the packet of IP that a datagram carries.
    pub fn of_datagram(&self, packet: &Packet) -> Option<Frame> {
        self.carried.get(Form::name(packet) as usize).copied()
    }

    /// Returns a packet of a connection with its message, if packets are kept.
    pub fn seen(&self, packet: &Packet) -> Option<Seen> {
        self.pairs.seen(packet)
    }

    /// Returns the key of the partition of a packet on InfiniBand.
    pub fn key_of(&self, packet: &Packet) -> u16 {
        let pair = packet.pair() & !OF_IPOIB;
        let interface = match self.datagrams.iter().position(|own| *own == Some(pair)) {
            Some(interface) => Some(interface),
            None => self.channels.get((pair / 2) as usize).map(|channel| usize::from(channel.interfaces[0])),
        };
        let interface = interface.and_then(|interface| self.plan.interfaces[interface]);
        interface.map_or(PKey::DEFAULT.0, |interface| interface.at.key.0)
    }

    /// Numbers of the queue pairs of datagrams of the sender and of the receiver of a packet.
    pub fn datagram_pairs(&self, frame: &Frame) -> Option<[u32; 2]> {
        let [from, to] =
            [frame.from, frame.to].map(|interface| self.datagrams[usize::from(interface - self.plan.first)]);
        Some([from? | OF_IPOIB, to? | OF_IPOIB])
    }

    fn drain(&mut self) {
        while let Some((pair, event)) = self.pairs.poll_event() {
            match event {
                Event::Datagram(number, _) => {
                    self.pairs.post_receives(pair, 1);
                    self.arrived.extend(self.carried.get(number as usize).copied());
                }
                Event::TooLong(number) => self.lost.push(number as u32),
                Event::Message(Operation::Send, _) => {
                    self.pairs.post_receives(pair, 1);
                    let from = (pair ^ 1) % 2;
                    self.arrived.extend(self.channels[(pair / 2) as usize].in_flight[from as usize].pop_front());
                }
                Event::Failed(_) | Event::Rejected(_) => self.close(pair / 2),
                Event::Message(..) | Event::Completed(_) | Event::Flushed(_) => {}
            }
        }
    }

    /// Ends a connection that has failed. The next packet opens another one.
    fn close(&mut self, channel: u32) {
        let first = 2 * channel;
        [first, first + 1].into_iter().for_each(|end| self.pairs.close(end));
        let Channel { interfaces, in_flight } = &mut self.channels[channel as usize];
        if self.open.get(interfaces) == Some(&first) {
            self.open.remove(interfaces);
        }
        self.lost.extend(in_flight.iter_mut().flat_map(|queue| queue.drain(..)).map(|frame| frame.position));
    }
}

/// Returns the MTU of a subnet whose packets have up to this many bytes of payload.
pub fn subnet_mtu(bytes: u16) -> Mtu {
    Mtu::ALL.into_iter().find(|mtu| mtu.bytes() == u32::from(bytes)).unwrap_or(Mtu::B2048)
}
