//! Who is principal switch, and which switch has which domain: [`DomainManager`].
//!
//! ```text
//!  no link       Alone ──────────────── quiet, or a preferred domain ───────────────┐
//!    │ link up                                                                      │
//!    ▼                                                                              ▼
//!  Selecting ── EFP of a configured neighbour, or DIA of the best ──▶ Joined ◀── principal
//!    ▲   ▲  └── 2 × F_S_TOV quiet, and nobody is better ─────────────────────▶     │
//!    │   └ F_S_TOV                                                                  │ Build Fabric, Reconfigure Fabric,
//!   Hold ◀──────────────────────────────────────────────────────────────────────────┘ a link of the tree lost
//! ```
//!
//! **Selecting.** Every switch floods the best (priority, name) that it has heard of, in EFP without domains. After twice
//! F_S_TOV of quiet the one that knows nobody better than itself is the principal. It tells its neighbours with DIA, they
//! theirs: so a tree grows whose every switch knows the way *up*. Up this tree goes RDI, from switch to switch, and the
//! principal grants domains: the wanted one if it is free, else the lowest that is.
//!
//! **Joined.** From now on EFP carries the domains; a list only grows until the fabric is built anew. A switch without a
//! domain that hears such an EFP joins at once, without any selection. Two fabrics that meet compare their domains. If no
//! domain has two owners, the switches of the one with the worse principal adopt the better, link by link, and ask it to
//! confirm the domains that they have: no timer runs and no address changes. If one has, both ends isolate the link
//! ([`Isolation::DomainOverlap`]), or send Reconfigure Fabric, if both are told to.
//!
//! **Hold.** Whoever loses a link of the tree builds the fabric anew (BF), and so does everybody who hears of it. For
//! F_S_TOV all then know nothing but themselves, so that what was known of a principal that is gone dies out; a neighbour
//! that has not answered BF is not listened to. Domains stay: the switches ask for those that they have, before any switch
//! that has none may ask. Reconfigure Fabric (RCF) is the same, but takes the domains away first. A second link to the same
//! neighbour takes the place of a lost one, and nothing else happens.
//!
//! A principal that builds its fabric anew has priority 2 ("was principal") unless its own is better, so it normally stays
//! what it was. A switch with priority 255 is never principal, not even alone.
//!
//! Floods wait 20 ms for each other, so that switches that join together cost one flood and not one each. Each link has one
//! EFP under way at a time; what changes meanwhile goes with the next. Whatever is not answered or comes too early is
//! said again.
//!
//! Sources: FC-SW (fabric configuration: EFP, DIA, RDI, BF, RCF); RFC 4439 for what an administrator may set.

mod assign;
mod hear;
mod link;
mod rebuild;

use crate::ils::{Outcome, Request, Send};
use crate::isolation::Isolation;
use crate::time::{Instant, Span};
use link::{Asked, Link};
use rebuild::Kind;
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::{SwIls, SwRjt, SwRjtExplanation, SwRjtReason};
use std::collections::{BTreeMap, VecDeque};

/// Domains are 1 to 239.
pub const MAX_DOMAIN: u8 = 239;
/// The priority of a switch that may not be principal.
pub const NEVER_PRINCIPAL: u8 = 255;
/// The priority of a switch that nobody configured.
pub const DEFAULT_PRIORITY: u8 = 128;
/// The priority of a switch that was principal before its fabric was built anew.
const WAS_PRINCIPAL: u8 = 2;
/// Changes within this time share one flood.
const FLOOD_DELAY: Span = Span::from_ms(20);

/// What a switch is told about domains at its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainConfig {
    /// Name of the switch.
    pub switch_name: Wwnn,
    /// 1 to 255, the lowest becomes principal; 255 never.
    pub priority: u8,
    /// The domain to ask for. A switch with one has it from its start, until it meets others.
    pub preferred: Option<u8>,
    /// Rather be isolated than have another domain than the preferred one.
    pub insistent: bool,
    /// Take part in a disruptive reconfiguration.
    pub allow_rcf: bool,
    /// Reconfigure disruptively when a domain has two owners, instead of isolating the link. Both ends must want it.
    pub auto_reconfigure: bool,
    /// Fabric stability timeout. It must be longer than the answer to a request may take, repetitions counted, for a lost
    /// principal to be forgotten at the first attempt.
    pub f_s_tov: Span,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// An E_Port came up. One that was up goes down first.
    LinkUp {
        /// The port.
        port: u16,
        /// The switch at the other end.
        neighbour: Wwnn,
    },
    /// An E_Port went down, or was isolated by somebody else.
    LinkDown {
        /// The port.
        port: u16,
    },
    /// EFP, DIA, RDI, BF or RCF of a neighbour. Those of an isolated port belong here, too: they are answered with the
    /// reason.
    Request {
        /// The exchange.
        request: Request,
        /// The request.
        message: SwIls,
    },
    /// How a request of this machine ended.
    Outcome {
        /// From [`Send::Request`].
        tag: u32,
        /// The end.
        outcome: Outcome,
    },
    /// The time that [`DomainManager::poll_timeout`] named has come; too early is harmless.
    Timeout,
    /// Build the fabric anew.
    Rebuild {
        /// Take all domains away first.
        disruptive: bool,
    },
}

/// Something that is to be done or known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message, over an isolated port, too.
    Send(Send),
    /// The domain of this switch; nothing: it is lost, and everything that logged in is to be logged out.
    Domain(Option<u8>),
    /// The principal switch of the fabric.
    Principal {
        /// Its name.
        name: Wwnn,
        /// Its priority.
        priority: u8,
        /// It is this switch.
        ours: bool,
    },
    /// All domains of the fabric and their owners, by domain.
    Domains(Vec<(u8, Wwnn)>),
    /// The neighbour belongs to our fabric: zones may be merged and paths be found there. Once for each time that a link
    /// comes up or the domains are taken away.
    LinkReady {
        /// The port.
        port: u16,
    },
    /// The port is to be isolated. It counts as down from now on.
    Isolate {
        /// The port.
        port: u16,
        /// Why.
        reason: Isolation,
    },
    /// The name of the fabric: that of the principal switch.
    FabricName(Wwnn),
}

/// A principal switch, real or proposed. The smaller one is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Claim {
    /// Nobody of its fabric has a domain yet.
    proposed: bool,
    priority: u8,
    name: Wwnn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No domain and no link. It becomes principal then, if nothing happens.
    Alone(Instant),
    /// The fabric is built anew; what others say does not count yet.
    Hold(Instant, Kind),
    /// The best principal is sought until then; `late`: the best one is known, but has not been heard of since.
    Selecting { until: Instant, late: bool },
    /// There is a principal, and a way to it.
    Joined,
}

/// What was said last.
#[derive(Default, Debug)]
struct Told {
    principal: Option<(Wwnn, u8)>,
    domains: BTreeMap<u8, Wwnn>,
}

/// Principal selection and domain identifiers of one switch. See the [module](self).
#[derive(Debug)]
pub struct DomainManager {
    config: DomainConfig,
    phase: Phase,
    /// The best principal that we know of.
    claim: Claim,
    /// Our own priority: it is better after a time as principal.
    priority: u8,
    /// The way to the principal; none if that is us.
    upstream: Option<u16>,
    /// Our domain, kept while a fabric is built anew.
    domain: Option<u8>,
    /// The principal of now has granted it.
    confirmed: bool,
    /// Domains that the principal of now has granted, as far as we know.
    granted: BTreeMap<u8, Wwnn>,
    /// Those of before, until `settle_at`: reserved for their owners.
    previous: BTreeMap<u8, Wwnn>,
    settle_at: Option<Instant>,
    links: BTreeMap<u16, Link>,
    isolated: BTreeMap<u16, Isolation>,
    /// Isolated ports whose neighbours are still to be told, and when.
    farewells: BTreeMap<u16, Instant>,
    asked: BTreeMap<u32, Asked>,
    next_tag: u32,
    /// When links are to be looked at for something to send.
    flood_at: Option<Instant>,
    /// When to ask for a domain, or, as principal, to take one.
    request_at: Option<Instant>,
    /// The RDI of ours that counts.
    requesting: Option<u32>,
    /// When to stop waiting for a domain.
    give_up_at: Option<Instant>,
    /// Requests for domains that we passed upwards, by the switch that wants one.
    relays: BTreeMap<Wwnn, assign::Relay>,
    told: Told,
    outputs: VecDeque<Output>,
    rejected: u64,
}

impl DomainManager {
    /// A switch without links. One with a preferred domain has it at once, so drain its outputs.
    pub fn new(now: Instant, config: DomainConfig) -> DomainManager {
        let priority = config.priority.max(1);
        let name = config.switch_name;
        let mut manager = DomainManager {
            config,
            phase: Phase::Alone(Instant::NEVER),
            claim: Claim { proposed: true, priority, name },
            priority,
            upstream: None,
            domain: None,
            confirmed: false,
            granted: BTreeMap::new(),
            previous: BTreeMap::new(),
            settle_at: None,
            links: BTreeMap::new(),
            isolated: BTreeMap::new(),
            farewells: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_tag: 0,
            flood_at: None,
            request_at: None,
            requesting: None,
            give_up_at: None,
            relays: BTreeMap::new(),
            told: Told::default(),
            outputs: VecDeque::new(),
            rejected: 0,
        };
        manager.settle_alone(now);
        manager.flood(now);
        manager
    }

    /// One thing happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp { port, neighbour } => self.link_up(now, port, neighbour),
            Input::LinkDown { port } => self.link_down(now, port),
            Input::Request { request, message } => self.request(now, request, message),
            Input::Outcome { tag, outcome } => self.outcome(now, tag, outcome),
            Input::Timeout => self.timeout(now),
            Input::Rebuild { disruptive } => {
                let kind = if disruptive { Kind::Disruptive } else { Kind::Gentle };
                self.begin(now, kind, None);
            }
        }
        if self.flood_at.is_some_and(|at| at <= now) {
            self.flood(now);
        }
    }

    /// What is to be done, in this order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Alone(at) | Phase::Hold(at, _) | Phase::Selecting { until: at, .. } => Some(at),
            Phase::Joined => None,
        };
        let times = [phase, self.flood_at, self.request_at, self.give_up_at, self.settle_at];
        times.into_iter().flatten().filter(|at| *at != Instant::NEVER).min()
    }

    /// The domain of this switch, kept while a fabric is built anew.
    pub fn domain(&self) -> Option<u8> {
        self.domain
    }

    /// The principal switch, while there is one and it has granted our domain.
    pub fn principal(&self) -> Option<Wwnn> {
        (self.phase == Phase::Joined && self.confirmed).then_some(self.claim.name)
    }

    /// All domains of the fabric and their owners, as last said in [`Output::Domains`].
    pub fn domains(&self) -> &BTreeMap<u8, Wwnn> {
        &self.told.domains
    }

    /// The way to the principal switch; nothing if it is this one, or unknown.
    pub fn upstream(&self) -> Option<u16> {
        self.upstream
    }

    /// Why this machine had a port isolated.
    pub fn isolated(&self, port: u16) -> Option<&Isolation> {
        self.isolated.get(&port)
    }

    /// Requests of neighbours that make no sense or come from an isolated port.
    pub fn requests_rejected(&self) -> u64 {
        self.rejected
    }

    fn timeout(&mut self, now: Instant) {
        let due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if due(&mut self.settle_at) {
            self.previous.clear();
            self.soon(now);
        }
        if due(&mut self.give_up_at) {
            self.begin(now, Kind::Gentle, None);
        }
        self.phase_timeout(now);
        if due(&mut self.request_at) {
            self.want_domain(now);
        }
    }

    fn is_principal(&self) -> bool {
        self.phase == Phase::Joined && self.claim.name == self.config.switch_name
    }

    /// Our own proposal for a principal.
    fn own_claim(&self) -> Claim {
        Claim { proposed: true, priority: self.priority, name: self.config.switch_name }
    }

    /// Something changed that others should know before long.
    fn soon(&mut self, now: Instant) {
        self.look_at(now + FLOOD_DELAY);
    }

    fn look_at(&mut self, at: Instant) {
        self.flood_at = Some(self.flood_at.map_or(at, |before| before.min(at)));
    }

    /// How long to wait before something is said again.
    fn patience(&self) -> Span {
        Span::from_ns(self.config.f_s_tov.as_ns() / 5)
    }

    fn answer(&mut self, request: Request, answer: SwIls) {
        self.outputs.push_back(Output::Send(Send::Answer { request, message: answer.into() }));
    }

    fn reject(&mut self, request: Request, reject: SwRjt) {
        self.rejected += 1;
        self.answer(request, reject.into());
    }

    /// Not now.
    fn busy(&mut self, request: Request) {
        self.answer(request, SwRjt::new(SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE).into());
    }
}
