//! A plain network for TCP: FIFO links with rate, delay, buffer, marks and losses.
//!
//! The departure of a packet is known when it arrives at a FIFO link, so each hop is one event.

use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::tcp::{Config, Connection, Ecn, Segment};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Ethernet, IP and TCP headers, preamble and gap of a segment without options, in bytes.
pub const OVERHEAD: u64 = 78;

/// Rate of an endless link.
pub const ENDLESS: u64 = 0;
/// 1 Gb/s in picoseconds per byte.
pub const GBIT_1: u64 = 8_000;
/// 10 Gb/s in picoseconds per byte.
pub const GBIT_10: u64 = 800;

/// Which data segments a link loses.
#[derive(Clone, Debug)]
pub enum Loss {
    Never,
    /// Each one with this probability.
    Random(f64),
    /// Each n-th one, and the first one at the given number.
    Periodic {
        first: u64,
        period: u64,
    },
    /// All that the predicate selects, by number of the data segment.
    When(fn(u64) -> bool),
    /// Each segment, also without data, with this probability.
    Any(f64),
}

/// A one-way FIFO link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Picoseconds per byte.
    pub rate: u64,
    pub delay: Span,
    /// Bytes that may wait, besides the packet on the line.
    pub buffer: u64,
    /// A packet is marked if more than this number of packets wait or are on the line.
    pub mark_above: usize,
    pub loss: Loss,
    /// Largest random additional delay.
    pub jitter: Span,
    /// The additional delay may change the order of packets.
    pub reorders: bool,
    /// Each packet is delivered twice with this probability.
    pub repeat: f64,
    busy_until: u64,
    /// Departure and bytes of packets that wait or are on the line.
    queue: VecDeque<(u64, u64)>,
    queued: u64,
    line: VecDeque<(u64, Packet)>,
    pub data: u64,
    pub dropped: u64,
    pub bytes: u64,
    pub marked: u64,
    /// Packets that wait or are on the line: largest and smallest number since the last reset.
    pub high: usize,
    pub low: usize,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    segment: Segment,
    end: u32,
    hop: u32,
}

/// One end of a connection, with the links to its peer.
pub struct End {
    pub connection: Connection,
    pub peer: usize,
    route: Vec<usize>,
    timer: Instant,
    /// Bytes that the application still wants to send.
    pub to_send: u64,
    /// Bytes that the application has consumed.
    pub consumed: u64,
    /// The application consumes at once.
    pub is_sink: bool,
    /// Mark of the application for requests and answers.
    pub answered: u64,
    /// Data segments that were sent.
    pub sent: u64,
}

pub struct Network {
    pub now_ps: u64,
    pub links: Vec<Link>,
    pub ends: Vec<End>,
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    random: u64,
    pub hops: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Link(usize),
    Timer(usize),
}

impl Link {
    pub fn new(rate: u64, delay: Span) -> Link {
        Link {
            rate,
            delay,
            buffer: u64::MAX,
            mark_above: usize::MAX,
            loss: Loss::Never,
            jitter: Span::ZERO,
            reorders: false,
            repeat: 0.0,
            busy_until: 0,
            queue: VecDeque::new(),
            queued: 0,
            line: VecDeque::new(),
            data: 0,
            dropped: 0,
            bytes: 0,
            marked: 0,
            high: 0,
            low: 0,
        }
    }
    pub fn buffer(mut self, bytes: u64) -> Link {
        self.buffer = bytes;
        self
    }
    pub fn mark_above(mut self, packets: usize) -> Link {
        self.mark_above = packets;
        self
    }
    pub fn loss(mut self, loss: Loss) -> Link {
        self.loss = loss;
        self
    }
    pub fn reset_marks(&mut self) {
        (self.high, self.low) = (0, usize::MAX);
    }
}

/// Bytes of a segment on the wire.
pub fn wire_bytes(segment: &Segment) -> u64 {
    (OVERHEAD + u64::from(segment.length) + u64::from(segment.option_bytes())).max(84)
}

impl Network {
    pub fn new(seed: u64, links: Vec<Link>) -> Network {
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Network { now_ps: 0, links, ends: Vec::new(), heap: BinaryHeap::new(), sequence: 0, random, hops: 0 }
    }

    /// Two ends that are joined by these links. Returns the active end; the passive one follows.
    pub fn connect(&mut self, active: &Config, passive: &Config, there: &[usize], back: &[usize]) -> usize {
        let first = self.ends.len();
        let connections = [
            (Connection::connect(Arc::new(active.clone())), first + 1, there),
            (Connection::listen(Arc::new(passive.clone())), first, back),
        ];
        for (connection, peer, route) in connections {
            self.ends.push(End {
                connection,
                peer,
                route: route.to_vec(),
                timer: Instant::NEVER,
                to_send: 0,
                consumed: 0,
                is_sink: true,
                answered: 0,
                sent: 0,
            });
        }
        self.flush(first);
        first
    }

    pub fn now(&self) -> Instant {
        Instant::from_ns(self.now_ps / 1_000)
    }

    /// Random number in 0..1.
    pub fn chance(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Queues bytes of the application, now and when room becomes free.
    pub fn write(&mut self, end: usize, bytes: u64) {
        self.ends[end].to_send = self.ends[end].to_send.saturating_add(bytes);
        self.flush(end);
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, event)));
    }

    /// Lets the application of an end work, sends its segments, and sets its timer.
    pub fn flush(&mut self, end: usize) {
        let now = self.now();
        let here = &mut self.ends[end];
        if here.is_sink {
            here.consumed += here.connection.consume(now, u64::MAX);
        }
        if here.to_send > 0 {
            let accepted = here.connection.send(here.to_send);
            if here.to_send != u64::MAX {
                here.to_send -= accepted;
            }
        }
        while let Some(segment) = self.ends[end].connection.poll_transmit(now) {
            self.emit(end, segment);
        }
        let here = &mut self.ends[end];
        if let Some(at) = here.connection.poll_timeout().filter(|at| *at < here.timer) {
            here.timer = at;
            let at = at.as_ns().saturating_mul(1_000).max(self.now_ps);
            self.schedule(at, Event::Timer(end));
        }
    }

    fn emit(&mut self, end: usize, segment: Segment) {
        for part in segment.parts() {
            self.ends[end].sent += u64::from(part.length > 0);
            let packet = Packet { segment: part, end: u32::try_from(self.ends[end].peer).unwrap(), hop: 0 };
            let link = self.ends[end].route[0];
            self.enter(link, packet);
        }
    }

    /// Puts a packet into the queue of a link.
    fn enter(&mut self, index: usize, mut packet: Packet) {
        let link = &self.links[index];
        let is_random =
            matches!(link.loss, Loss::Random(_) | Loss::Any(_)) || link.jitter > Span::ZERO || link.repeat > 0.0;
        let chances = if is_random { [self.chance(), self.chance(), self.chance()] } else { [0.0; 3] };
        let now = self.now_ps;
        let link = &mut self.links[index];
        while link.queue.front().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = link.queue.pop_front().unwrap();
            link.queued -= bytes;
        }
        let is_any_lost = matches!(link.loss, Loss::Any(p) if chances[0] < p);
        if packet.segment.length > 0 || is_any_lost {
            link.data += 1;
            let is_lost = match link.loss {
                Loss::Never => false,
                Loss::Any(_) => is_any_lost,
                Loss::Random(p) => chances[0] < p,
                Loss::Periodic { first, period } => link.data >= first && (link.data - first).is_multiple_of(period),
                Loss::When(selects) => selects(link.data),
            };
            if is_lost {
                link.dropped += 1;
                return;
            }
        }
        let bytes = wire_bytes(&packet.segment);
        let on_line = link.queue.front().map_or(0, |(_, bytes)| *bytes);
        if !link.queue.is_empty() && link.queued - on_line + bytes > link.buffer {
            link.dropped += 1;
            return;
        }
        if link.queue.len() >= link.mark_above && packet.segment.ecn == Ecn::Ect {
            packet.segment.ecn = Ecn::Ce;
            link.marked += 1;
        }
        let leaves = link.busy_until.max(now) + bytes * link.rate;
        link.low = link.low.min(link.queue.len());
        if link.rate > 0 {
            link.busy_until = leaves;
            link.queue.push_back((leaves, bytes));
            link.queued += bytes;
        }
        link.high = link.high.max(link.queue.len());
        link.bytes += bytes;
        let jitter = (link.jitter.as_ns() as f64 * chances[1]) as u64 * 1_000;
        let mut arrives = leaves + link.delay.as_ns() * 1_000 + jitter;
        if !link.reorders {
            arrives = arrives.max(link.line.back().map_or(0, |(time, _)| *time));
        }
        let copies = if chances[2] < link.repeat { 2 } else { 1 };
        // A jitter that is longer than the gap reorders, so the line is kept sorted.
        let is_sorted = link.line.back().is_none_or(|(time, _)| *time <= arrives);
        let at = if is_sorted { link.line.len() } else { link.line.partition_point(|(time, _)| *time <= arrives) };
        let is_first = at == 0;
        for _ in 0..copies {
            link.line.insert(at, (arrives, packet));
        }
        if is_first {
            self.schedule(arrives, Event::Link(index));
        }
    }

    /// Handles the next event. Returns the end that was called, if there was one.
    pub fn step(&mut self) -> Option<usize> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        self.now_ps = at;
        match event {
            Event::Link(index) => {
                let link = &mut self.links[index];
                // A packet that overtook the first one has an event of its own.
                if link.line.front().is_none_or(|(time, _)| *time > at) {
                    return Some(usize::MAX);
                }
                let (_, mut packet) = link.line.pop_front()?;
                if let Some((next, _)) = link.line.front() {
                    let next = *next;
                    self.schedule(next, Event::Link(index));
                }
                self.hops += 1;
                let end = packet.end as usize;
                packet.hop += 1;
                let route = &self.ends[self.ends[end].peer].route;
                if let Some(next) = route.get(packet.hop as usize) {
                    let next = *next;
                    self.enter(next, packet);
                    return Some(usize::MAX);
                }
                let now = self.now();
                if let Some(reply) = self.ends[end].connection.arrive(now, &packet.segment) {
                    self.emit(end, reply);
                }
                self.flush(end);
                Some(end)
            }
            Event::Timer(end) => {
                let now = self.now();
                // A timer that was superseded by an earlier one is harmless.
                if self.ends[end].timer <= now {
                    self.ends[end].timer = Instant::NEVER;
                }
                self.ends[end].connection.timeout(now);
                self.flush(end);
                Some(end)
            }
        }
    }

    /// Runs until the given time, or until nothing is left to do.
    pub fn run(&mut self, until: Instant) {
        let until = until.as_ns().saturating_mul(1_000);
        while self.heap.peek().is_some_and(|Reverse((at, _, _))| *at <= until) {
            self.step();
        }
        self.now_ps = self.now_ps.max(until);
    }

    /// Bytes of payload in order per second at an end, between two times.
    pub fn goodput(&mut self, end: usize, from: Instant, until: Instant) -> f64 {
        self.run(from);
        let before = self.ends[end].connection.received();
        self.run(until);
        let bytes = self.ends[end].connection.received() - before;
        bytes as f64 / (until.since(from).as_ns() as f64 / 1e9)
    }
}

/// Settings for the laws: an acknowledgement for each second segment, buffers that never limit.
pub fn plain(mss: u16) -> Config {
    let mut config = Config::linux(1_500);
    config.mss = mss;
    config.timestamps = false;
    config.batch = 0;
    config.send_buffer = sanloom_transport::tcp::Buffer::fixed(1 << 29);
    config.receive_buffer = sanloom_transport::tcp::Buffer::fixed(1 << 29);
    config
}

/// A time in milliseconds since the start.
pub fn ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}
