//! Fabric shortest path first (FC-SW, FSPF): [`Fspf`] finds the neighbours of a switch, maintains
//! the same link-state records as all other switches, and computes the legs towards each domain.
//!
//! ```text
//!            HLO             HLO names us            all records here, ours acknowledged
//!   down ------------> init ---------------> database exchange ------> ... -------------> full
//!    ^   no HLO for long  ^  HLO does not name us, exchange takes too long  |
//!    +--------------------+------------------------------------------------+
//! ```
//!
//! The record of a switch contains its links to neighbours in state full. A link counts for a path
//! only if the records of both ends contain it.
//!
//! # Propagation speed of changes
//!
//! RFC 4626 defines MinLSInterval, 5 s, and MinLSArrival, 1 s. Applied literally, a link that fails
//! shortly after another one came up would lose frames for seconds. Therefore they are interpreted
//! as limits for repeated changes:
//!
//! - The loss of a link, a new cost, and a link that was not lost before are announced at once. A
//!   link that comes back is announced when `min_ls_interval` has passed since its loss.
//! - Records of a switch follow each other after `pace`, twelve in a row, then one every
//!   `min_ls_arrival`.
//! - A receiver accepts sixteen in a row, then one every `min_ls_arrival`. Records beyond that are
//!   not acknowledged and are therefore repeated.
//! - Records are forwarded to each neighbour at once if the previous ones were sent at least a
//!   `pace` ago; otherwise together at the end of the `pace`.
//! - Paths are computed at once; changes within the next `compute_delay` share one computation. All
//!   switches then change their paths within microseconds of each other, and few frames are
//!   misrouted meanwhile. The loss of an own link is never delayed, because frames would still be
//!   sent to a port without light.
//!
//! # Recovery
//!
//! - LSUs are repeated until acknowledged.
//! - A database exchange that takes longer than `dead` restarts: the switch sends an HLO that does
//!   not name the neighbour.
//! - Each repetition of an exchange starts with an HLO, because a lost HLO makes the neighbour
//!   ignore records. It contains all records, because a restarted neighbour has lost those that it
//!   acknowledged.
//! - A switch that waits for records reports after each `retransmit` that its own are complete. A
//!   neighbour that considers the exchange complete then sends all records again, at most once per
//!   `retransmit`.
//! - A switch that receives a record of its own domain that it did not write since its start
//!   supersedes it with a higher incarnation number. The record may stem from a former holder of
//!   the domain.
//! - After the last incarnation number comes the first, once the record with the last one is
//!   flushed.

mod announce;
mod database;
mod domain_set;
mod flooding;
mod neighbour;
mod paths;

pub use neighbour::NeighbourState;

use crate::alarms::Alarms;
use crate::fabric::Leg;
use crate::ils::{Peer, Send};
use database::{ANNOUNCEMENTS, Bucket, Database};
use domain_set::DomainSet;
use neighbour::{Event, Neighbour, announced_cost};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{FSPF_VERSION, FspfHeader, Hello, Incarnation, LinkStateRecord, SwIls};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Timers of FSPF. The defaults are those of RFC 4626, and 10 ms where it defines none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FspfConfig {
    /// Interval between HLOs; whole seconds. Both ends of a link must agree.
    pub hello: Span,
    /// Time without an HLO after which a neighbour is down; whole seconds. Both ends of a link must
    /// agree.
    pub dead: Span,
    /// Time without an acknowledgement after which an LSU is repeated.
    pub retransmit: Span,
    /// Mean minimum interval between accepted records of one switch.
    pub min_ls_arrival: Span,
    /// Minimum delay from the loss of a link to its next announcement.
    pub min_ls_interval: Span,
    /// Interval after which an unchanged record is rewritten.
    pub refresh: Span,
    /// Age at which a record is flushed; whole seconds, at most 65,535.
    pub max_age: Span,
    /// Minimum interval between two LSUs to a neighbour, and between two records of a switch.
    pub pace: Span,
    /// Minimum interval between two path computations.
    pub compute_delay: Span,
}

impl Default for FspfConfig {
    fn default() -> FspfConfig {
        FspfConfig {
            hello: Span::from_secs(20),
            dead: Span::from_secs(80),
            retransmit: Span::from_secs(5),
            min_ls_arrival: Span::from_secs(1),
            min_ls_interval: Span::from_secs(5),
            refresh: Span::from_secs(30 * 60),
            max_age: Span::from_secs(60 * 60),
            pace: Span::from_ms(10),
            compute_delay: Span::from_ms(10),
        }
    }
}

/// Event for the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Domain of the switch, or `None`. A different domain restarts FSPF.
    Domain(Option<u8>),
    /// A link to another switch may carry frames. For a link that is already up, cost and bundle
    /// change.
    LinkUp {
        /// Local port number.
        port: u16,
        /// Cost of sending over the link, see [`CostRule`](crate::config::CostRule). Records hold 1
        /// to 65,535.
        cost: u32,
        /// Number of its bundle, if any; all links of a bundle form one leg.
        bundle: Option<u16>,
    },
    /// The link must carry no more frames.
    LinkDown {
        /// Local port number.
        port: u16,
    },
    /// The cost of a link changed.
    Cost {
        /// Local port number.
        port: u16,
        /// New cost of sending over the link.
        cost: u32,
    },
    /// HLO, LSU or LSA of the neighbour.
    Message {
        /// Local port on which the message arrived.
        port: u16,
        /// Received message.
        message: SwIls,
    },
    /// The deadline of [`Fspf::poll_timeout`] was reached.
    Timeout,
}

/// Action or event for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// HLO, LSU or LSA for a neighbour, always a [`Send::Notice`].
    Send(Send),
    /// The state of a neighbour changed.
    Neighbour {
        /// Local port of the link.
        port: u16,
        /// New state of the neighbour.
        state: NeighbourState,
    },
    /// A link that is up lost its full neighbour: HLOs no longer arrive, or no longer name this
    /// switch.
    AdjacencyLost {
        /// Local port of the link.
        port: u16,
    },
    /// The neighbour is full again after [`Output::AdjacencyLost`].
    AdjacencyRestored {
        /// Local port of the link.
        port: u16,
    },
    /// Domains with changed legs, sorted. Each has all legs of its cheapest paths, sorted by port
    /// (a bundle by its lowest port). A domain without legs is unreachable.
    Routes(Vec<(u8, Vec<Leg>)>),
}

/// Event counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FspfCounters {
    /// HLOs sent.
    pub hellos_sent: u64,
    /// LSUs sent, repetitions included.
    pub updates_sent: u64,
    /// LSUs repeated; part of `updates_sent`.
    pub updates_repeated: u64,
    /// LSAs sent.
    pub acknowledgements_sent: u64,
    /// Records of this switch written.
    pub announcements: u64,
    /// Path computations.
    pub computations: u64,
    /// HLOs with different intervals, which are ignored.
    pub hellos_mismatched: u64,
    /// Messages and records discarded as invalid: wrong version, domain or checksum, or LSU before
    /// HLO.
    pub discarded: u64,
    /// Records that arrived sooner than the rate limit of their switch permits.
    pub too_early: u64,
}

/// Link, as shown to an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighbourView {
    /// Local port number.
    pub port: u16,
    /// State of the neighbour on the link.
    pub state: NeighbourState,
    /// Domain at the other end, after its first HLO.
    pub domain: Option<u8>,
    /// Announced cost of sending over the link.
    pub cost: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Alarm {
    Hello(u16),
    Dead(u16),
    Stuck(u16),
    Pace(u16),
    Retransmit(u16),
    Hold(u16),
    Announce,
    Refresh,
    Expire,
    Compute,
}

/// Path selection of one switch. See the [module](self).
#[derive(Debug)]
pub struct Fspf {
    config: FspfConfig,
    domain: Option<u8>,
    neighbours: BTreeMap<u16, Neighbour>,
    /// Time of the last loss of each link.
    lost: BTreeMap<u16, Instant>,
    database: Database,
    /// Domains whose records are being flushed.
    flushing: DomainSet,
    /// Ports with records to send and no running pace timer.
    ready: BTreeSet<u16>,
    /// Incarnation of the next record of this switch; `None` while the last one is flushed.
    incarnation: Option<Incarnation>,
    announcements: Bucket,
    announced_at: Option<Instant>,
    /// Time of the last path computation.
    computed_at: Option<Instant>,
    routes: BTreeMap<u8, Vec<Leg>>,
    alarms: Alarms<Alarm>,
    outputs: VecDeque<Output>,
    counters: FspfCounters,
}

impl Fspf {
    /// Returns a switch without a domain and links.
    pub fn new(config: FspfConfig) -> Fspf {
        Fspf {
            config,
            domain: None,
            neighbours: BTreeMap::new(),
            lost: BTreeMap::new(),
            database: Database::new(),
            flushing: DomainSet::default(),
            ready: BTreeSet::new(),
            incarnation: Some(Incarnation::FIRST),
            announcements: Bucket::full(ANNOUNCEMENTS),
            announced_at: None,
            computed_at: None,
            routes: BTreeMap::new(),
            alarms: Alarms::new(),
            outputs: VecDeque::new(),
            counters: FspfCounters::default(),
        }
    }

    /// Processes one input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Domain(domain) => self.set_domain(now, domain),
            Input::LinkUp { port, cost, bundle } => self.link_up(now, port, cost, bundle),
            Input::LinkDown { port } => self.link_down(now, port),
            Input::Cost { port, cost } => self.set_cost(now, port, cost),
            Input::Message { port, message } => self.message(now, port, message),
            Input::Timeout => {}
        }
        while let Some(alarm) = self.alarms.due(now) {
            self.alarm(now, alarm);
        }
        self.remove_flushed(now);
        self.flood(now);
    }

    /// Returns the next output. Drain after each [`handle`](Self::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// Event counts since the start.
    pub fn counters(&self) -> &FspfCounters {
        &self.counters
    }

    /// Links sorted by port.
    pub fn neighbours(&self) -> impl Iterator<Item = NeighbourView> {
        self.neighbours.iter().map(|(port, neighbour)| NeighbourView {
            port: *port,
            state: neighbour.state,
            domain: (neighbour.domain != 0).then_some(neighbour.domain),
            cost: neighbour.cost,
        })
    }

    /// Link-state records sorted by domain, except those being flushed.
    pub fn records(&self) -> impl Iterator<Item = &Arc<LinkStateRecord>> {
        self.database.iter().filter(|entry| !entry.flushed).map(|entry| &entry.record)
    }

    /// Reachable domains and their legs, sorted by domain: the accumulated [`Output::Routes`].
    pub fn routes(&self) -> impl Iterator<Item = (u8, &[Leg])> {
        self.routes.iter().map(|(domain, legs)| (*domain, &legs[..]))
    }

    fn set_domain(&mut self, now: Instant, domain: Option<u8>) {
        if domain == self.domain {
            return;
        }
        self.domain = None;
        let ports: Vec<u16> = self.neighbours.keys().copied().collect();
        for &port in &ports {
            self.neighbour_gone(now, port, Event::Gone);
            self.alarms.clear(Alarm::Hello(port));
        }
        for alarm in [Alarm::Announce, Alarm::Refresh, Alarm::Expire, Alarm::Compute] {
            self.alarms.clear(alarm);
        }
        self.lost.clear();
        self.database.clear();
        self.flushing = DomainSet::default();
        self.incarnation = Some(Incarnation::FIRST);
        self.announcements = Bucket::full(ANNOUNCEMENTS);
        (self.announced_at, self.computed_at) = (None, None);
        self.take_routes(vec![Vec::new(); usize::from(u8::MAX) + 1]);
        self.domain = domain;
        self.announce(now);
        ports.into_iter().for_each(|port| self.send_hello(now, port));
    }

    fn link_up(&mut self, now: Instant, port: u16, cost: u32, bundle: Option<u16>) {
        let Some(neighbour) = self.neighbours.get_mut(&port) else {
            self.neighbours.insert(port, Neighbour::new(cost, bundle));
            self.send_hello(now, port);
            return;
        };
        if neighbour.bundle != bundle {
            neighbour.bundle = bundle;
            self.compute_soon(now);
        }
        self.set_cost(now, port, cost);
    }

    fn link_down(&mut self, now: Instant, port: u16) {
        if self.domain.is_some() && self.neighbours.get(&port).is_some_and(Neighbour::counts) {
            self.alarms.set_earlier(Alarm::Compute, now);
        }
        self.neighbour_gone(now, port, Event::Gone);
        self.alarms.clear(Alarm::Hello(port));
        self.neighbours.remove(&port);
    }

    fn set_cost(&mut self, now: Instant, port: u16, cost: u32) {
        let Some(neighbour) = self.neighbours.get_mut(&port) else { return };
        let cost = announced_cost(cost);
        if std::mem::replace(&mut neighbour.cost, cost) != cost && neighbour.counts() {
            self.announce(now);
        }
    }

    fn message(&mut self, now: Instant, port: u16, message: SwIls) {
        let (Some(own), true) = (self.domain, self.neighbours.contains_key(&port)) else {
            self.counters.discarded += 1;
            return;
        };
        let header = match &message {
            SwIls::Hlo(hello) => hello.header,
            SwIls::Lsu(update) => update.header,
            SwIls::Lsa(acknowledgement) => acknowledgement.header,
            _ => FspfHeader::new(0),
        };
        // Backbone regions and authentication are not supported.
        let plain = (header.version, header.region, header.authentication_type) == (FSPF_VERSION, 0, 0);
        if !plain || header.domain == 0 || header.domain == own {
            self.counters.discarded += 1;
            return;
        }
        match message {
            SwIls::Hlo(hello) => self.hello(now, port, own, &hello),
            SwIls::Lsu(update) => self.update(now, port, update),
            SwIls::Lsa(acknowledgement) => self.acknowledged(now, port, &acknowledgement),
            _ => {}
        }
    }

    fn hello(&mut self, now: Instant, port: u16, own: u8, hello: &Hello) {
        if (hello.hello_s, hello.dead_s) != (seconds(self.config.hello), seconds(self.config.dead)) {
            self.counters.hellos_mismatched += 1;
            return;
        }
        let (domain, far_port) = (hello.header.domain, hello.port);
        let Some(known) = self.neighbours.get(&port).map(|neighbour| (neighbour.domain, neighbour.port)) else {
            return;
        };
        if known != (domain, far_port) {
            self.neighbour_gone(now, port, Event::Gone);
        }
        if let Some(neighbour) = self.neighbours.get_mut(&port) {
            (neighbour.domain, neighbour.port) = (domain, far_port);
        }
        self.alarms.set(Alarm::Dead(port), now + self.config.dead);
        let one_way = hello.recipient != own;
        if one_way || known != (domain, far_port) {
            self.send_hello(now, port);
        }
        self.transition(now, port, if one_way { Event::OneWay } else { Event::TwoWay });
    }

    /// Sends an HLO and schedules the next one.
    fn send_hello(&mut self, now: Instant, port: u16) {
        let (Some(domain), Some(neighbour)) = (self.domain, self.neighbours.get(&port)) else { return };
        let hello = Hello {
            header: FspfHeader::new(domain),
            options: 0,
            hello_s: seconds(self.config.hello),
            dead_s: seconds(self.config.dead),
            recipient: neighbour.domain,
            port: port.into(),
        };
        self.send(port, SwIls::Hlo(hello));
        self.counters.hellos_sent += 1;
        self.alarms.set(Alarm::Hello(port), now + self.config.hello);
    }

    fn send(&mut self, port: u16, message: SwIls) {
        self.outputs.push_back(Output::Send(Send::Notice { to: Peer::Link(port), message: message.into() }));
    }

    /// Resets a neighbour that is down or was replaced by another switch.
    fn neighbour_gone(&mut self, now: Instant, port: u16, event: Event) {
        self.transition(now, port, event);
        if let Some(neighbour) = self.neighbours.get_mut(&port) {
            (neighbour.domain, neighbour.port) = (0, 0);
        }
        self.alarms.clear(Alarm::Dead(port));
    }

    fn transition(&mut self, now: Instant, port: u16, event: Event) {
        let Some(neighbour) = self.neighbours.get_mut(&port) else { return };
        let (old, new) = (neighbour.state, neighbour.state.after(event));
        if old == new {
            return;
        }
        let counted = neighbour.counts();
        neighbour.state = new;
        self.outputs.push_back(Output::Neighbour { port, state: new });
        if old == NeighbourState::Full && matches!(event, Event::Dead | Event::OneWay) {
            neighbour.hellos_lost = true;
            self.outputs.push_back(Output::AdjacencyLost { port });
        } else if new == NeighbourState::Full && std::mem::take(&mut neighbour.hellos_lost) {
            self.outputs.push_back(Output::AdjacencyRestored { port });
        }
        if old.exchanges() && !new.exchanges() {
            neighbour.end_acknowledged = false;
            neighbour.database_sent = None;
            neighbour.held = false;
            (neighbour.queued, neighbour.unacknowledged) = Default::default();
            self.ready.remove(&port);
            for alarm in [Alarm::Stuck(port), Alarm::Pace(port), Alarm::Retransmit(port), Alarm::Hold(port)] {
                self.alarms.clear(alarm);
            }
        }
        if counted {
            self.lost.insert(port, now);
            self.announce(now);
            self.compute_soon(now);
        }
        match new {
            NeighbourState::DatabaseExchange => self.synchronise(now, port),
            NeighbourState::Full => self.neighbour_full(now, port),
            _ => {}
        }
    }

    fn neighbour_full(&mut self, now: Instant, port: u16) {
        self.alarms.clear(Alarm::Stuck(port));
        let again = self.lost.get(&port).map(|lost| *lost + self.config.min_ls_interval);
        match again.filter(|again| *again > now) {
            Some(again) => {
                if let Some(neighbour) = self.neighbours.get_mut(&port) {
                    neighbour.held = true;
                }
                self.alarms.set(Alarm::Hold(port), again);
            }
            None => self.announce(now),
        }
    }

    fn alarm(&mut self, now: Instant, alarm: Alarm) {
        match alarm {
            Alarm::Hello(port) => self.send_hello(now, port),
            Alarm::Dead(port) => {
                self.neighbour_gone(now, port, Event::Dead);
                self.send_hello(now, port);
            }
            Alarm::Stuck(port) => {
                self.transition(now, port, Event::Stuck);
                if let Some(neighbour) = self.neighbours.get_mut(&port) {
                    neighbour.domain = 0;
                }
                self.send_hello(now, port);
            }
            Alarm::Pace(port) => _ = self.ready.insert(port),
            Alarm::Retransmit(port) => self.retransmit(now, port),
            Alarm::Hold(port) => {
                if let Some(neighbour) = self.neighbours.get_mut(&port) {
                    neighbour.held = false;
                    self.announce(now);
                }
            }
            Alarm::Announce | Alarm::Refresh => self.announce(now),
            Alarm::Expire => self.expire(now),
            Alarm::Compute => self.compute(now),
        }
    }

    fn compute_soon(&mut self, now: Instant) {
        if self.domain.is_some() {
            let next = self.computed_at.map_or(now, |before| now.max(before + self.config.compute_delay));
            self.alarms.set_earlier(Alarm::Compute, next);
        }
    }

    fn compute(&mut self, now: Instant) {
        let Some(own) = self.domain else { return };
        self.computed_at = Some(now);
        self.counters.computations += 1;
        let routes = paths::paths(own, &self.own_links(), &self.database);
        self.take_routes(routes);
    }

    fn take_routes(&mut self, routes: Vec<Vec<Leg>>) {
        let before = |domain: &u8| self.routes.get(domain).map_or(&[][..], |legs| &legs[..]);
        let changed = (0..=u8::MAX).zip(routes).filter(|(domain, legs)| before(domain) != legs);
        let changed: Vec<(u8, Vec<Leg>)> = changed.collect();
        for (domain, legs) in &changed {
            match legs.is_empty() {
                true => self.routes.remove(domain),
                false => self.routes.insert(*domain, legs.clone()),
            };
        }
        if !changed.is_empty() {
            self.outputs.push_back(Output::Routes(changed));
        }
    }
}

/// Whole seconds, as encoded in an HLO.
fn seconds(span: Span) -> u32 {
    u32::try_from(span.as_ms() / 1000).unwrap_or(u32::MAX).max(1)
}
