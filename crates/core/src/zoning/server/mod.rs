//! The zone server of one switch: merges databases over new links and distributes changes through the fabric.
//!
//! *Merge* (FC-SW, zone merge): both ends of a new link send MR. Each computes [`merge`](super::merge()) of its own database and the
//! other's; as this is symmetric and idempotent, both come to the same, and a switch whose database grew tells its other
//! neighbours, until all have the same. A conflict isolates the link, at both ends: whoever refuses an MR, or has no room for
//! it, knows that the other end isolates the link for it, and does so, too. A switch in enhanced mode asks with ESS first, whether
//! the neighbour is in that mode, and merges with no other.
//!
//! *Change* (FC-SW, zone change): the managing switch locks all others (ACA), stages the new database with them (SFC), and
//! when all have it, says that it holds (UFC) and unlocks them (RCA). Until all have staged it, nothing has changed anywhere;
//! from then on it is decided. A switch that misses the UFC hears of the decision from a neighbour: whoever takes over a
//! database sends MR to its neighbours, and an MR with exactly what was staged is as good as the UFC.
//!
//! Merges and changes exclude each other: a locked switch answers MR with "busy", and one with an open merge does not let
//! itself be locked. Of two managing switches the one with the lower domain goes first.

mod change;
mod failure;
mod link;
mod lock;
mod support;

pub use failure::{ChangeFailure, MergeFailure};

use super::database::{EffectiveZones, ZoneDatabase};
use super::limits::ZoneLimits;
use super::merge::{MergeControl, MergeRules};
use super::objects::Zones;
use super::problem::ZoneProblem;
use super::transaction::{Transaction, ZoneEdit};
use crate::ils::{Outcome, Peer, Request, Send};
use crate::time::{Instant, Span};
use change::Change;
use link::Link;
use lock::Lock;
use sanloom_wire::sw_ils::{SwIls, SwRjt, SwRjtExplanation, SwRjtReason, ZoneReply};
use sanloom_wire::{Message, Wwnn};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// The zone server of one switch.
#[derive(Debug)]
pub struct ZoneServer {
    config: ZoneServerConfig,
    zones: Zones,
    /// What was staged last here; it outlives the lock, because its manager may have decided before we lost it.
    staged: Option<Zones>,
    domain: Option<u8>,
    /// Domains that changes go to, and their switches.
    reachable: BTreeMap<u8, Wwnn>,
    links: BTreeMap<u16, Link>,
    lock: Option<Lock>,
    /// Changes of our own; the first is being made.
    changes: VecDeque<Change>,
    asked: BTreeMap<u32, Asked>,
    next_tag: u32,
    outputs: VecDeque<Output>,
}

/// What a zone server does and how patient it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneServerConfig {
    /// The switch knows zoning. One that does not rejects all requests, and its neighbours isolate their links to it.
    pub supported: bool,
    /// Which databases may join.
    pub merge_control: MergeControl,
    /// How they are joined.
    pub rules: MergeRules,
    /// The switch drops frames that no zone permits, and says so.
    pub hard: bool,
    /// The largest database.
    pub limits: ZoneLimits,
    /// A busy switch is asked again after this time.
    pub retry: Span,
    /// A change that has not locked the fabric after this time fails.
    pub change_patience: Span,
    /// A locked switch that hears nothing of its manager for this long is free again. Longer than `change_patience` and
    /// than a request takes that nobody answers.
    pub lock_patience: Span,
}

impl ZoneServerConfig {
    /// The switch is in enhanced mode.
    fn enhanced(&self) -> bool {
        self.supported && self.rules.enhanced
    }
}

impl Default for ZoneServerConfig {
    /// Basic zoning without limits.
    fn default() -> ZoneServerConfig {
        ZoneServerConfig {
            supported: true,
            merge_control: MergeControl::Allow,
            rules: MergeRules::STANDARD,
            hard: true,
            limits: ZoneLimits::default(),
            retry: Span::from_ms(500),
            change_patience: Span::from_secs(30),
            lock_patience: Span::from_secs(90),
        }
    }
}

/// What is to become of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZoneChange {
    /// These edits of what is committed when the fabric is locked.
    Edits(Vec<ZoneEdit>),
    /// A transaction; refused if another database was committed after it began.
    Commit(Box<Transaction>),
    /// Puts zones in force that no configuration defines.
    Activate(Arc<EffectiveZones>),
    /// This database: a rollback.
    Replace(ZoneDatabase),
}

/// What a zone server is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Our own domain; nothing: we have none.
    Domain(Option<u8>),
    /// All other domains that can be reached, and the names of their switches.
    Domains(Vec<(u8, Wwnn)>),
    /// A link to a switch of the same fabric is there: domains are settled.
    LinkUp {
        /// The port.
        port: u16,
        /// The switch at its other end.
        neighbour: Wwnn,
    },
    /// A link is gone.
    LinkDown {
        /// The port.
        port: u16,
    },
    /// A request for us: ESS, MR, MRRA, ACA, RCA, SFC, UFC.
    Request {
        /// Whose, for the answer.
        request: Request,
        /// The request.
        message: Message,
    },
    /// How a request of ours ended.
    Outcome {
        /// Its tag.
        tag: u32,
        /// Its end.
        outcome: Outcome,
    },
    /// The operator, or an N_Port through the management server, wants a change in the whole fabric.
    Change {
        /// Comes back with [`Output::ChangeDone`].
        tag: u32,
        /// The change.
        change: ZoneChange,
    },
    /// Time has come.
    Timeout,
}

/// What a zone server wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this to another switch.
    Send(Send),
    /// Another database holds from now on.
    Changed {
        /// What is committed now.
        zones: Zones,
        /// What is enforced changes with it: the effective zones or the default zone.
        effective: bool,
    },
    /// Both ends of the link have the same zones: it may carry traffic.
    LinkMerged {
        /// The port.
        port: u16,
    },
    /// The link must not carry traffic. May come again with more to say.
    Isolate {
        /// The port.
        port: u16,
        /// Why.
        failure: MergeFailure,
    },
    /// A change has ended. What failed has changed nothing anywhere.
    ChangeDone {
        /// Its tag.
        tag: u32,
        /// Done, or everything that was in the way.
        result: Result<(), Vec<ChangeFailure>>,
    },
}

/// How far the change is that a zone server has part in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TransactionState {
    /// No change is under way.
    Free,
    /// Our change waits for a merge or another change to end.
    Waiting,
    /// Our change is locking the other switches.
    Locking,
    /// Our change is being staged.
    Staging,
    /// Our change is decided; other switches take it over.
    Updating,
    /// Our change is over, or gave way; the other switches are being unlocked.
    Releasing,
    /// Another switch has locked us.
    Locked,
    /// Another switch has staged its change with us.
    Staged,
    /// We have taken over the change of another switch, which will unlock us.
    Updated,
}

impl fmt::Display for TransactionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TransactionState::Free => "free",
            TransactionState::Waiting => "waiting",
            TransactionState::Locking => "locking",
            TransactionState::Staging => "staging",
            TransactionState::Updating => "updating",
            TransactionState::Releasing => "releasing",
            TransactionState::Locked => "locked",
            TransactionState::Staged => "staged",
            TransactionState::Updated => "updated",
        })
    }
}

/// What a request of ours was about.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    /// ESS on a link.
    Support { port: u16 },
    /// MRRA on a link.
    Room { port: u16 },
    /// MR on a link, with the database that it carries.
    Merge { port: u16, zones: Zones },
    /// ACA, SFC, UFC or RCA to a domain.
    Domain { domain: u8 },
}

impl ZoneServer {
    /// A zone server with the database of the switch.
    pub fn new(config: ZoneServerConfig, zones: Zones) -> ZoneServer {
        ZoneServer {
            config,
            zones,
            staged: None,
            domain: None,
            reachable: BTreeMap::new(),
            links: BTreeMap::new(),
            lock: None,
            changes: VecDeque::new(),
            asked: BTreeMap::new(),
            next_tag: 0,
            outputs: VecDeque::new(),
        }
    }

    /// The committed database.
    pub fn database(&self) -> &ZoneDatabase {
        self.zones.database()
    }

    /// The committed database with its index, which all switches of a process share that took it over from one message.
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    /// The domain whose change the switch is locked for, our own included.
    pub fn locked_by(&self) -> Option<u8> {
        let own = self.changes.front().is_some_and(Change::holds_the_fabric);
        self.lock.as_ref().map(|lock| lock.manager).or(self.domain.filter(|_| own))
    }

    /// How far the change is that the switch has part in. Another switch's counts before ours, which waits for it.
    pub fn state(&self) -> TransactionState {
        match &self.lock {
            Some(lock) if lock.updated => TransactionState::Updated,
            Some(lock) if lock.staged => TransactionState::Staged,
            Some(_) => TransactionState::Locked,
            None => self.changes.front().map_or(TransactionState::Free, Change::state),
        }
    }

    /// Another switch of the fabric may still enforce what we have given up: not all have taken over a change that is decided, or a
    /// neighbour has not heard what a merge has made of our zones.
    pub fn others_may_differ(&self) -> bool {
        let deciding = matches!(self.state(), TransactionState::Updating | TransactionState::Updated);
        deciding || self.links.values().any(Link::is_behind)
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Domain(domain) => {
                if self.domain != domain {
                    self.domain = domain;
                    self.on_membership(now);
                }
            }
            Input::Domains(domains) => {
                self.reachable = domains.into_iter().collect();
                self.on_membership(now);
            }
            Input::LinkUp { port, neighbour } => self.on_link_up(port, neighbour),
            Input::LinkDown { port } => self.on_link_down(port),
            Input::Request { request, message } => self.on_request(now, request, message),
            Input::Outcome { tag, outcome } => match self.asked.remove(&tag) {
                Some(Asked::Support { port }) => self.on_support(now, port, outcome),
                Some(Asked::Room { port }) => self.on_room(now, port, outcome),
                Some(Asked::Merge { port, zones }) => self.on_merge_outcome(now, port, &zones, outcome),
                Some(Asked::Domain { domain }) => self.on_domain_outcome(now, domain, outcome),
                None => {}
            },
            Input::Change { tag, change } => self.changes.push_back(Change::new(tag, change, now)),
            Input::Timeout => {}
        }
        self.expire_lock(now);
        self.drive_changes(now);
        self.drive_links(now);
    }

    /// What is to be done.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let lock = self.lock.as_ref().map(|lock| lock.expires);
        let change = self.changes.front().and_then(|change| change.timeout(&self.config));
        Instant::earliest(&[lock, change, self.link_timeout()])
    }

    fn on_membership(&mut self, now: Instant) {
        let gone = |asked: &Asked| matches!(asked, Asked::Domain { domain } if !self.reachable.contains_key(domain));
        self.asked.retain(|_, asked| !gone(asked));
        if self.lock.as_ref().is_some_and(|lock| !self.reachable.contains_key(&lock.manager)) {
            self.lock = None;
        }
        self.on_participants_changed(now);
    }

    fn on_request(&mut self, now: Instant, request: Request, message: Message) {
        let Message::SwIls(ils) = message else {
            return self.reject(request, SwRjtReason::INVALID_COMMAND, SwRjtExplanation::NONE);
        };
        if let SwIls::Ess(theirs) = &*ils {
            return match request.from {
                Peer::Link(port) => self.on_support_request(request, port, theirs),
                Peer::Domain(_) => self.on_support_query(request),
            };
        }
        if !self.config.supported {
            return self.refuse(request, &ils);
        }
        match (*ils, request.from) {
            (SwIls::Mr(sets), Peer::Link(port)) => {
                let reply = self.on_merge_request(port, &sets);
                self.answer(request, reply);
            }
            (SwIls::Mrra(mrra), Peer::Link(port)) => self.on_room_request(port, request, mrra),
            (SwIls::Aca(domains), Peer::Domain(manager)) => {
                let reply = self.on_acquire(now, manager, &domains);
                self.answer(request, reply);
            }
            (SwIls::Sfc { zones, .. }, Peer::Domain(manager)) => {
                let reply = self.on_stage(now, manager, &zones);
                self.answer(request, reply);
            }
            (SwIls::Ufc, Peer::Domain(manager)) => {
                let reply = self.on_update(now, manager);
                self.answer(request, reply);
            }
            (SwIls::Rca, Peer::Domain(manager)) => {
                self.on_release(manager);
                self.answer(request, ZoneReply::DONE);
            }
            _ => self.reject(request, SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE),
        }
    }

    /// Without zoning. Whoever wants to merge isolates its end of the link for the reject, and says no more; so do we, and
    /// before our end is ready it is to wait.
    fn refuse(&mut self, request: Request, ils: &SwIls) {
        let merge = match (ils, request.from) {
            (SwIls::Mr(_), Peer::Link(port)) => Some(port),
            _ => None,
        };
        if merge.is_some_and(|port| !self.links.contains_key(&port)) {
            return self.reject(request, SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE);
        }
        self.reject(request, SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED);
        if let Some(port) = merge {
            self.isolate(port, MergeFailure::Unsupported);
        }
    }

    /// Takes over a database. The neighbour on `known_at` has it already.
    fn adopt(&mut self, zones: Zones, known_at: Option<u16>) {
        let before = std::mem::replace(&mut self.zones, zones);
        let (old, new) = (before.database(), self.zones.database());
        if old == new {
            return;
        }
        self.staged = None;
        for (port, link) in &mut self.links {
            link.synced = Some(*port) == known_at;
        }
        let effective = old.effective != new.effective || old.default_zone != new.default_zone;
        self.outputs.push_back(Output::Changed { zones: self.zones.clone(), effective });
    }

    fn ask(&mut self, to: Peer, ils: SwIls, asked: Asked) -> u32 {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.asked.insert(tag, asked);
        self.outputs.push_back(Output::Send(Send::Request { to, message: ils.into(), tag }));
        tag
    }

    fn answer(&mut self, request: Request, reply: impl Into<SwIls>) {
        let reply: SwIls = reply.into();
        self.outputs.push_back(Output::Send(Send::Answer { request, message: reply.into() }));
    }

    fn reject(&mut self, request: Request, reason: SwRjtReason, explanation: SwRjtExplanation) {
        self.answer(request, SwRjt::new(reason, explanation));
    }
}

impl ZoneChange {
    /// The database that the change makes of `current`.
    ///
    /// # Errors
    /// Every problem; [`ZoneProblem::Stale`] for a transaction that began on another database.
    pub fn outcome(&self, current: &ZoneDatabase, limits: &ZoneLimits) -> Result<ZoneDatabase, Vec<ZoneProblem>> {
        let checked = |database: ZoneDatabase| match database.problems(limits) {
            problems if problems.is_empty() => Ok(database),
            problems => Err(problems),
        };
        match self {
            ZoneChange::Edits(edits) => {
                let mut transaction = Transaction::begin(current, *limits);
                let problems: Vec<_> = edits.iter().filter_map(|edit| transaction.apply(edit.clone()).err()).collect();
                if problems.is_empty() { transaction.commit() } else { Err(problems) }
            }
            ZoneChange::Commit(transaction) if transaction.base() != current => Err(vec![ZoneProblem::Stale]),
            ZoneChange::Commit(transaction) => transaction.commit().and_then(checked),
            ZoneChange::Activate(zones) => checked(ZoneDatabase { effective: Some(zones.clone()), ..current.clone() }),
            ZoneChange::Replace(database) => checked(database.clone()),
        }
    }
}
