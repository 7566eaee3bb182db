//! Zone server of one switch: merges databases over new links and distributes changes through the
//! fabric.
//!
//! # Merge (FC-SW, zone merge)
//!
//! Both ends of a new link send MR. Each computes [`merge`](super::merge()) of its own database and
//! the other's. The merge is symmetric and idempotent, so both get the same result. A switch whose
//! database grew sends MR to its other neighbours, until all have the same.
//!
//! A conflict isolates the link at both ends. A switch that rejects an MR, or has no room for it,
//! isolates its own end, because the other end isolates the link upon the reject. A switch in
//! enhanced mode first queries the neighbour's mode with ESS, and merges only with switches in the
//! same mode.
//!
//! # Change (FC-SW, zone change)
//!
//! The managing switch locks all others (ACA) and stages the new database with them (SFC). After
//! all have staged it, the managing switch makes it effective (UFC) and releases the locks (RCA).
//! Until all have staged it, nothing has changed anywhere; from then on it is decided.
//!
//! A switch that misses the UFC gets the decision from a neighbour: every switch that adopts a
//! database sends MR to its neighbours, and an MR with exactly the staged database has the effect
//! of the UFC.
//!
//! # Exclusion
//!
//! A locked switch replies "busy" to MR, and a switch with an unfinished merge cannot be locked. If
//! two switches manage changes at the same time, the one with the lower domain goes first.

mod change;
mod context;
mod failure;
mod links;
mod lock;
mod outbox;
mod store;
mod support;

pub use failure::{ChangeFailure, MergeFailure};

use super::database::{EffectiveZones, ZoneDatabase};
use super::objects::Zones;
use super::problem::ZoneProblem;
use super::transaction::{Transaction, ZoneEdit};
use crate::config::ZoneLimits;
use crate::config::{MergeControl, MergeRules};
use crate::ils::{Outcome, Peer, Request, Send};
use change::Changes;
use context::{Context, Members};
use links::{Gate, Links};
use lock::Lock;
use outbox::{Outbox, Pending};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{SwIls, SwRjtExplanation, SwRjtReason, ZoneReply};
use sanloom_wire::{Message, Wwnn};
use std::fmt;
use std::sync::Arc;
use store::Store;

/// Zone server of one switch.
#[derive(Debug)]
pub struct ZoneServer {
    config: ZoneServerConfig,
    members: Members,
    store: Store,
    links: Links,
    lock: Lock,
    changes: Changes,
    out: Outbox,
    /// Deadline of all machines after the last input.
    deadline: Option<Instant>,
}

/// Machines of a zone server, which process inputs with a [`Context`].
struct Parts<'s> {
    links: &'s mut Links,
    lock: &'s mut Lock,
    changes: &'s mut Changes,
}

/// Behaviour and timeouts of a zone server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneServerConfig {
    /// True if the switch supports zoning. Otherwise it rejects all requests, and its neighbours
    /// isolate their links to it.
    pub supported: bool,
    /// Databases that may be merged.
    pub merge_control: MergeControl,
    /// Merge rules of the switch family.
    pub rules: MergeRules,
    /// True if the switch drops frames that no zone permits; announced to other switches.
    pub hard: bool,
    /// Limits of the database.
    pub limits: ZoneLimits,
    /// Delay before a request to a busy switch is repeated.
    pub retry: Span,
    /// Time after which a change that has not locked the fabric fails.
    pub change_timeout: Span,
    /// Time without a request of the manager after which a lock expires. It must be longer than
    /// `change_timeout` and than the time-out of a request without a reply.
    pub lock_timeout: Span,
}

impl ZoneServerConfig {
    /// Returns true if the switch is in enhanced mode.
    fn enhanced(&self) -> bool {
        self.supported && self.rules.enhanced
    }
}

impl Default for ZoneServerConfig {
    /// Basic zoning, hard, without limits.
    fn default() -> ZoneServerConfig {
        ZoneServerConfig {
            supported: true,
            merge_control: MergeControl::Allow,
            rules: MergeRules::STANDARD,
            hard: true,
            limits: ZoneLimits::default(),
            retry: Span::from_ms(500),
            change_timeout: Span::from_secs(30),
            lock_timeout: Span::from_secs(90),
        }
    }
}

/// Change of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZoneChange {
    /// Edits, applied to the database that is committed when the fabric is locked.
    Edits(Vec<ZoneEdit>),
    /// Transaction; rejected if another database was committed after it began.
    Commit(Box<Transaction>),
    /// Activation of zones that no configuration defines.
    Activate(Arc<EffectiveZones>),
    /// Replacement by this database, for a rollback.
    Replace(ZoneDatabase),
}

/// Input of a zone server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Own domain; `None` if there is none.
    Domain(Option<u8>),
    /// All other reachable domains with the names of their switches.
    Domains(Vec<(u8, Wwnn)>),
    /// A link to a switch of the same fabric is available and domains are assigned.
    LinkUp {
        /// Port number.
        port: u16,
        /// Name of the switch at the other end.
        neighbour: Wwnn,
    },
    /// A link is gone.
    LinkDown {
        /// Port number.
        port: u16,
    },
    /// Request received: ESS, MR, MRRA, ACA, RCA, SFC or UFC.
    Request {
        /// Sender, needed for the reply.
        request: Request,
        /// Content of the request.
        message: Message,
    },
    /// Result of a request sent by this switch.
    Outcome {
        /// Tag of the request.
        tag: u32,
        /// Reply, or none.
        outcome: Outcome,
    },
    /// Change of the whole fabric, requested by the operator or by an N_Port through the management
    /// server.
    Change {
        /// Tag returned with [`Output::ChangeDone`].
        tag: u32,
        /// Requested change.
        change: ZoneChange,
    },
    /// The deadline of [`ZoneServer::poll_timeout`] was reached.
    Timeout,
}

/// Action for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message to another switch.
    Send(Send),
    /// Another database is committed.
    Changed {
        /// Newly committed database.
        zones: Zones,
        /// True if the enforced zoning changes as well: the effective zones or the default zone.
        effective: bool,
    },
    /// Both ends of the link have the same zones; the link may carry traffic.
    LinkMerged {
        /// Port number.
        port: u16,
    },
    /// The link must not carry traffic. It may be emitted again with more detail.
    Isolate {
        /// Port number.
        port: u16,
        /// Reason for the isolation.
        failure: MergeFailure,
    },
    /// A change has ended. A failed change has changed nothing anywhere.
    ChangeDone {
        /// Tag of the change.
        tag: u32,
        /// Success, or every reason for the failure.
        result: Result<(), Vec<ChangeFailure>>,
    },
}

/// Progress of the change that a zone server takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TransactionState {
    /// No change is in progress.
    Free,
    /// Own change, waiting for the end of a merge or of another change.
    Waiting,
    /// Own change, locking the other switches.
    Locking,
    /// Own change, being staged.
    Staging,
    /// Own change, decided and being adopted by the other switches.
    Updating,
    /// Own change, ended or yielded; the other switches are being released.
    Releasing,
    /// Locked by another switch.
    Locked,
    /// Another switch has staged its change here.
    Staged,
    /// The change of another switch is adopted; its release is pending.
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

impl ZoneServer {
    /// Returns a zone server with the database of the switch.
    pub fn new(config: ZoneServerConfig, zones: Zones) -> ZoneServer {
        ZoneServer {
            config,
            members: Members::default(),
            store: Store::new(zones),
            links: Links::default(),
            lock: Lock::default(),
            changes: Changes::default(),
            out: Outbox::default(),
            deadline: None,
        }
    }

    /// Committed database.
    pub fn database(&self) -> &ZoneDatabase {
        self.store.zones().database()
    }

    /// Committed database with its index. Switches of one process that adopted it from the same
    /// message share it.
    pub fn zones(&self) -> &Zones {
        self.store.zones()
    }

    /// Domain for whose change the switch is locked, including its own.
    pub fn locked_by(&self) -> Option<u8> {
        let own = self.members.domain.filter(|_| self.changes.holds_the_fabric());
        self.lock.manager().or(own)
    }

    /// Progress of the change in which the switch takes part. A change of another switch takes
    /// precedence over an own one, which waits for it.
    pub fn state(&self) -> TransactionState {
        self.lock.state().unwrap_or(self.changes.state())
    }

    /// Name of the neighbour on a port whose link takes part in merges.
    pub fn neighbour(&self, port: u16) -> Option<Wwnn> {
        self.links.neighbour(port)
    }

    /// Returns true if another switch may still enforce earlier zones: either a decided change is
    /// not adopted everywhere, or a neighbour has not received the result of a merge.
    pub fn others_may_differ(&self) -> bool {
        let deciding = matches!(self.state(), TransactionState::Updating | TransactionState::Updated);
        deciding || self.links.any_behind(&self.store)
    }

    /// Processes one input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Domain(domain) => {
                if self.members.domain != domain {
                    self.members.domain = domain;
                    self.members_changed(now);
                }
            }
            Input::Domains(domains) => {
                self.members.reachable = domains.into_iter().collect();
                self.members_changed(now);
            }
            Input::LinkUp { port, neighbour } => {
                let (mut cx, parts) = self.parts(now);
                parts.links.up(&mut cx, port, neighbour);
            }
            Input::LinkDown { port } => {
                let (mut cx, parts) = self.parts(now);
                parts.links.down(&mut cx, port);
            }
            Input::Request { request, message } => self.request(now, request, message),
            Input::Outcome { tag, outcome } => self.outcome(now, tag, outcome),
            Input::Change { tag, change } => self.changes.push(now, tag, change),
            Input::Timeout => {}
        }
        self.lock.expire(now);
        let (mut cx, parts) = self.parts(now);
        parts.changes.drive(&mut cx, parts.links, parts.lock);
        let gate = gate(parts.lock, parts.changes);
        parts.links.drive(&mut cx, gate);
        let change = self.changes.timeout(&self.config);
        let link = self.links.timeout(&self.store, gate);
        self.deadline = Instant::earliest(&[self.lock.expires(), change, link]);
    }

    /// Returns the next output, or `None` when all are drained.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop()
    }

    /// Time at which to pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Machines, and the context that they need to process an input.
    fn parts(&mut self, now: Instant) -> (Context<'_>, Parts<'_>) {
        let cx =
            Context { now, config: &self.config, members: &self.members, store: &mut self.store, out: &mut self.out };
        (cx, Parts { links: &mut self.links, lock: &mut self.lock, changes: &mut self.changes })
    }

    fn members_changed(&mut self, now: Instant) {
        let reachable = &self.members.reachable;
        self.out.retain(|pending| pending.domain().is_none_or(|domain| reachable.contains_key(&domain)));
        self.lock.release_unreachable(|domain| reachable.contains_key(&domain));
        let (mut cx, parts) = self.parts(now);
        parts.changes.members_changed(&mut cx);
    }

    /// Passes the outcome of a request to the machine that sent it.
    fn outcome(&mut self, now: Instant, tag: u32, outcome: Outcome) {
        let gate = gate(&self.lock, &self.changes);
        let pending = self.out.take(tag);
        let (mut cx, parts) = self.parts(now);
        match pending {
            Some(Pending::Support { port }) => parts.links.support_outcome(&mut cx, port, outcome),
            Some(Pending::Room { port }) => parts.links.room_outcome(&mut cx, gate, port, outcome),
            Some(Pending::Merge { port, zones }) => parts.links.merge_outcome(&mut cx, port, &zones, outcome),
            Some(Pending::Domain { domain }) => parts.changes.outcome(&mut cx, domain, outcome),
            None => {}
        }
    }

    fn request(&mut self, now: Instant, request: Request, message: Message) {
        let locked = self.locked_by().is_some();
        let (mut cx, parts) = self.parts(now);
        let Message::SwIls(ils) = message else {
            return cx.out.reject(request, SwRjtReason::INVALID_COMMAND, SwRjtExplanation::NONE);
        };
        if let SwIls::Ess(theirs) = &*ils {
            return match request.from {
                Peer::Link(port) => parts.links.support_request(&mut cx, request, port, theirs),
                Peer::Domain(_) => support::support_query(&mut cx, request),
            };
        }
        if !cx.config.supported {
            return parts.links.reject_unsupported(&mut cx, request, &ils);
        }
        let reply = match (*ils, request.from) {
            (SwIls::Mr(sets), Peer::Link(port)) => parts.links.merge_request(&mut cx, parts.lock, locked, port, &sets),
            (SwIls::Mrra(mrra), Peer::Link(port)) => return parts.links.room_request(&mut cx, port, request, mrra),
            (SwIls::Aca(domains), Peer::Domain(manager)) => self.acquire(now, manager, &domains),
            (SwIls::Sfc { zones, .. }, Peer::Domain(manager)) => parts.lock.stage(&mut cx, manager, &zones),
            (SwIls::Ufc, Peer::Domain(manager)) => parts.lock.update(&mut cx, manager),
            (SwIls::Rca, Peer::Domain(manager)) => {
                parts.lock.release(manager);
                ZoneReply::DONE
            }
            _ => return cx.out.reject(request, SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE),
        };
        self.out.answer(request, reply);
    }
}

/// Links on which requests of the merge may be sent. A change in progress delays joining links, and
/// a locked switch sends nothing until it has the new database.
fn gate(lock: &Lock, changes: &Changes) -> Gate {
    match lock.state() {
        Some(TransactionState::Updated) => Gate::Merged,
        Some(_) => Gate::Closed,
        None if !changes.holds_the_fabric() => Gate::Open,
        None if changes.is_decided() => Gate::Merged,
        None => Gate::Closed,
    }
}

impl ZoneChange {
    /// Computes the database that results from `current`.
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
