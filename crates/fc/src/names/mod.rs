//! The name server across switches (FC-SW, inter-switch name server and SW_RSCN): [`NameExchange`]
//! notifies the other domains of local logins and obtains their objects.
//!
//! # Sending
//!
//! Each change of an own object is appended to a log. After `delay` it is sent to every domain as
//! SW_RSCN, with up to a hundred ports in one. A domain has at most one notification in flight; the
//! next follows after its reply. Therefore it receives changes in order, unless a notification is
//! retransmitted and an old copy arrives late.
//!
//! # Receiving
//!
//! The notification contains N_Port_ID and names, which suffices for zones and permissions, so the
//! port is known at once. Details are queried with one GE_ID per port. If there are many, or if a
//! domain became reachable, one GE_PT queries the whole domain. The owner answers GE_PT with the
//! same snapshot while nothing changes. Switches of one process share it, and store only later
//! changes per domain.
//!
//! # Consistency
//!
//! The whole domain is queried again in these cases:
//! - A notification equals one of the last ten seconds. It may be a late copy, so it is ignored.
//! - A notification contains no port: the owner has no record of the changes that this switch has,
//!   or its log does not reach back far enough.
//! - A GE_ID got no reply.
//! - A notification arrived within ten seconds after the domain became reachable. It may have been
//!   sent before that. The query is delayed until the ten seconds are over.
//!
//! A port in a notification is always queried, so a late "online" ends with the reject of the
//! owner. Ports notified while a query is in flight keep the state of the notification and are
//! queried once more. A GE_PT or a notification without a reply is repeated while the domain is
//! reachable.
//!
//! The paths of a new fabric do not appear everywhere at the same time, so a GE_PT to a domain that
//! became reachable, or its reply, is often lost. It is repeated long before the exchange times
//! out: [`CROSSING`] later, then with doubled delays. If the domain itself sends a query, a path
//! exists and the delays restart. The first reply counts.
//!
//! # Duplicate names
//!
//! A login that takes over the name of a known port at another switch reports that port:
//! [`Input::Local`] with `supersedes`. The owner of the old port receives it as "offline" from a
//! domain that does not own it, and logs it out: [`Output::Superseded`]. The notification is
//! repeated until the old port is gone.
//!
//! If neither login was aware of the other, or each took over the other, the port with the lower
//! FC_ID stays. The switch of the other port logs it out in one of two cases: its query confirms
//! the lower one, or the switch of the lower one sends such a notification. Until the owners have
//! resolved the conflict, the rest of the fabric has both ports, and the lower FC_ID counts.

mod answer;
mod log;
mod notify;
mod own;
mod remote;
mod snapshot;

use crate::alarms::Alarms;
use crate::ils::{Outcome, Peer, Request, Send};
use crate::zoning::Zones;
use log::{Log, Progress};
use own::OwnPorts;
use remote::Remote;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::ns::{NsAccept, NsRecord, NsRequest, explanation, port_type};
use sanloom_wire::sw_ils::{SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason, SwRscn, SwRscnEntry, port_event};
use sanloom_wire::{FcId, Message, Wwnn, Wwpn};
use snapshot::Snapshot;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Timers of the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamesConfig {
    /// Delay from a change to its notification, and from a notification to the query for details.
    pub delay: Span,
    /// Delay from a request without a reply to the next attempt.
    pub retry: Span,
    /// Maximum lateness of a copy of a notification: R_A_TOV.
    pub memory: Span,
}

/// Time within which a reply normally arrives if it arrives at all.
pub const CROSSING: Span = Span::from_ms(10);

impl Default for NamesConfig {
    fn default() -> NamesConfig {
        NamesConfig { delay: Span::from_ms(5), retry: Span::from_secs(2), memory: Span::from_secs(10) }
    }
}

/// Event for the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Domain of the switch, or `None`. A different domain restarts the exchange without own
    /// objects.
    Domain(Option<u8>),
    /// A domain became reachable.
    Reachable {
        /// Reachable domain.
        domain: u8,
    },
    /// A domain became unreachable.
    Unreachable {
        /// Unreachable domain.
        domain: u8,
    },
    /// A local port logged in, or its object changed.
    Local {
        /// Object of the port.
        entry: Arc<NsRecord>,
        /// Port of another domain with the same name, if the login deliberately took over the name.
        supersedes: Option<FcId>,
    },
    /// A local port logged out.
    LocalGone {
        /// Address of the port.
        port_id: FcId,
        /// Name of the port.
        port_name: Wwpn,
        /// Name of its node.
        node_name: Wwnn,
    },
    /// New effective zones, needed for queries by zone from other domains.
    Zones(Zones),
    /// SW_RSCN or GE_* received from another domain.
    Request {
        /// Sender, needed for the reply.
        request: Request,
        /// Content of the request.
        message: Message,
    },
    /// Result of a request sent by this machine.
    Outcome {
        /// Tag from [`Send::Request`].
        tag: u32,
        /// Reply, or none.
        outcome: Outcome,
    },
    /// The deadline of [`NameExchange::poll_timeout`] was reached.
    Timeout,
}

/// Action or event for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Request or reply to another domain controller.
    Send(Send),
    /// An object of another domain is new or changed. Without types it may contain only the
    /// attributes from a notification.
    Object(Arc<NsRecord>),
    /// An object of another domain is gone. After a new login of the same port, this output
    /// precedes the new object.
    Removed {
        /// Address of the removed object.
        port_id: FcId,
    },
    /// All objects of a domain are gone.
    DomainGone {
        /// Domain that is gone.
        domain: u8,
    },
    /// Log out a local port, because another port has its name and takes precedence.
    Superseded {
        /// Address of the local port.
        port_id: FcId,
    },
}

/// Event counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamesCounters {
    /// SW_RSCNs sent, without retransmissions by the exchange layer.
    pub notifications_sent: u64,
    /// Ports in the SW_RSCNs sent.
    pub ports_notified: u64,
    /// SW_RSCNs received.
    pub notifications_received: u64,
    /// SW_RSCNs received that repeat a recent one; part of `notifications_received`.
    pub repeated: u64,
    /// Ports in received SW_RSCNs that belong neither to the sender nor to this switch.
    pub foreign: u64,
    /// GE_ID sent.
    pub ports_queried: u64,
    /// GE_PT sent.
    pub domains_queried: u64,
    /// GE_* answered, rejects included.
    pub queries_answered: u64,
    /// Zone members and own objects examined to answer GE_ZM and GE_ZN.
    pub examined_for_zones: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Alarm {
    /// Send new log entries to all domains.
    Notify,
    /// Repeat a notification to a domain.
    NotifyAgain(u8),
    /// A domain has sent no query for everything since it became reachable.
    NoQuery(u8),
    /// Query a domain for details.
    Query(u8),
    /// Repeat the query to a domain that has not replied.
    RepeatQuery(u8),
    /// Late notifications from before a domain became reachable are no longer possible.
    LateOver(u8),
    /// Time in which a domain may not yet have repeated its query after our reply was lost.
    AwaitRepeat(u8),
}

/// Port of another domain that must log out, because a local port has its name and takes
/// precedence.
#[derive(Debug)]
struct Takeover {
    by: FcId,
    old: SwRscnEntry,
    /// A notification to the owner is due.
    due: bool,
}

/// Exchange of one switch's name server with those of the other switches. See the [module](self).
#[derive(Debug)]
pub struct NameExchange {
    config: NamesConfig,
    domain: Option<u8>,
    /// `None`: the switch does not support zoning.
    zones: Option<Zones>,
    own: OwnPorts,
    /// All own objects, cached from a query until one of them changes.
    snapshot: Option<Snapshot>,
    log: Log,
    /// Log position up to which changes may be sent; later ones wait for the delay.
    released: u64,
    progress: BTreeMap<u8, Progress>,
    /// Takeovers by the address of the old port.
    takeovers: BTreeMap<FcId, Takeover>,
    remotes: BTreeMap<u8, Remote>,
    /// Log position that all reachable domains have received, cached until the next input.
    known_everywhere: Option<u64>,
    epoch: u8,
    alarms: Alarms<Alarm>,
    outputs: VecDeque<Output>,
    counters: NamesCounters,
}

impl NameExchange {
    /// Returns an exchange without a domain.
    pub fn new(config: NamesConfig) -> NameExchange {
        NameExchange {
            config,
            domain: None,
            zones: None,
            own: OwnPorts::default(),
            snapshot: None,
            log: Log::default(),
            released: 0,
            progress: BTreeMap::new(),
            takeovers: BTreeMap::new(),
            remotes: BTreeMap::new(),
            known_everywhere: None,
            epoch: 0,
            alarms: Alarms::new(),
            outputs: VecDeque::new(),
            counters: NamesCounters::default(),
        }
    }

    /// Processes one input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.known_everywhere = None;
        match input {
            Input::Domain(domain) => self.set_domain(domain),
            Input::Reachable { domain } => self.on_reachable(now, domain),
            Input::Unreachable { domain } => self.on_unreachable(domain),
            Input::Local { entry, supersedes } => self.on_local(now, &entry, supersedes),
            Input::LocalGone { port_id, port_name, node_name } => {
                self.on_local_gone(now, port_id, port_name, node_name)
            }
            Input::Zones(zones) => self.zones = Some(zones),
            Input::Request { request, message } => self.on_request(now, request, &message),
            Input::Outcome { tag, outcome } => self.on_outcome(now, tag, &outcome),
            Input::Timeout => {}
        }
        while let Some(alarm) = self.alarms.due(now) {
            match alarm {
                Alarm::Notify => self.notify_all(),
                Alarm::NotifyAgain(domain) => self.notify_again(domain),
                Alarm::NoQuery(domain) => self.on_no_query(domain),
                Alarm::Query(domain) => self.send_queries(now, domain),
                Alarm::RepeatQuery(domain) => self.query_domain(now, domain),
                Alarm::LateOver(domain) => self.on_late_over(now, domain),
                Alarm::AwaitRepeat(_) => {}
            }
        }
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
    pub fn counters(&self) -> &NamesCounters {
        &self.counters
    }

    /// Object of a local port.
    pub fn own(&self, port_id: FcId) -> Option<&NsRecord> {
        self.own.get(port_id).map(|own| &*own.entry)
    }

    /// Login number of a local port, unless all reachable domains have been notified of it. A
    /// domain without the notification blocks frames from the port by hard zoning.
    pub fn unannounced_login(&mut self, port_id: FcId) -> Option<u64> {
        let login = self.own.get(port_id)?.login;
        (login >= self.known_everywhere()).then_some(login)
    }

    /// Login number up to which all reachable domains have been notified. Domains that do not reply
    /// are ignored.
    pub fn known_everywhere(&mut self) -> u64 {
        let known = |domain: &u8| match self.progress.get(domain) {
            Some(progress) if progress.query_again => u64::MAX,
            Some(progress) if !self.alarms.is_set(Alarm::AwaitRepeat(*domain)) => progress.up_to.unwrap_or(0),
            _ => 0,
        };
        let remotes = &self.remotes;
        *self.known_everywhere.get_or_insert_with(|| remotes.keys().map(known).min().unwrap_or(u64::MAX))
    }

    /// Returns true if nothing is outstanding: all objects of the reachable domains are known here,
    /// and all local changes have been sent.
    pub fn is_complete(&self) -> bool {
        let known = |(domain, remote): (&u8, &Remote)| {
            let all = Some(self.log.next());
            let progress = self.progress.get(domain);
            remote.is_complete()
                && progress.is_some_and(|progress| {
                    progress.up_to == all && progress.sending.is_none() && !progress.query_again
                })
        };
        self.remotes.iter().all(known)
    }

    /// Known objects of a domain, sorted by N_Port_ID.
    pub fn objects(&self, domain: u8) -> impl Iterator<Item = &Arc<NsRecord>> {
        self.remotes.get(&domain).into_iter().flat_map(Remote::iter)
    }

    fn set_domain(&mut self, domain: Option<u8>) {
        if domain == self.domain {
            return;
        }
        let remotes: Vec<u8> = self.remotes.keys().copied().collect();
        remotes.into_iter().for_each(|remote| self.on_unreachable(remote));
        let (epoch, counters, zones) = (self.epoch, self.counters, self.zones.take());
        let outputs = std::mem::take(&mut self.outputs);
        *self = NameExchange { domain, zones, epoch, counters, outputs, ..NameExchange::new(self.config) };
    }

    fn on_reachable(&mut self, now: Instant, domain: u8) {
        if self.domain.is_none_or(|own| own == domain) || self.remotes.contains_key(&domain) {
            return;
        }
        self.epoch = (self.epoch + 1) % EPOCHS;
        let remote = Remote::new(self.epoch);
        self.remotes.insert(domain, remote);
        self.takeovers.iter_mut().filter(|(old, _)| old.domain() == domain).for_each(|(_, t)| t.due = true);
        self.progress.entry(domain).or_default().sending = None;
        self.alarms.set(Alarm::NoQuery(domain), now + self.config.retry);
        self.alarms.set(Alarm::LateOver(domain), now + self.config.memory);
        self.alarms.set(Alarm::AwaitRepeat(domain), now + CROSSING.times(4));
        self.send_queries(now, domain);
        self.notify(domain);
    }

    fn on_unreachable(&mut self, domain: u8) {
        if self.remotes.remove(&domain).is_some() {
            let alarms = [
                Alarm::NotifyAgain,
                Alarm::NoQuery,
                Alarm::Query,
                Alarm::RepeatQuery,
                Alarm::LateOver,
                Alarm::AwaitRepeat,
            ];
            alarms.iter().for_each(|alarm| self.alarms.clear(alarm(domain)));
            self.outputs.push_back(Output::DomainGone { domain });
        }
    }

    /// Emits the change of an object and resolves a conflict over its name. `confirmed`: the data
    /// is from the owner's name server.
    fn apply(&mut self, now: Instant, old: Option<&Arc<NsRecord>>, new: Option<&Arc<NsRecord>>, confirmed: bool) {
        let renamed = |old: &&Arc<NsRecord>| new.is_none_or(|new| new.port_name != old.port_name);
        if let Some(old) = old.filter(renamed) {
            self.outputs.push_back(Output::Removed { port_id: old.port_id });
            self.takeovers.remove(&old.port_id);
        }
        let Some(new) = new else { return };
        if old != Some(new) {
            self.outputs.push_back(Output::Object(new.clone()));
        }
        let id = new.port_id;
        match self.takeovers.get(&id).map(|takeover| takeover.old.port_name == new.port_name) {
            // A notification to its owner is pending and will be repeated.
            Some(true) => return,
            // The port to be logged out is gone, and another port has its address.
            Some(false) => _ = self.takeovers.remove(&id),
            None => {}
        }
        let Some(own) = self.own.named(new.port_name).filter(|_| confirmed) else { return };
        if id < own {
            self.outputs.push_back(Output::Superseded { port_id: own });
            return;
        }
        // The owner may have the local port from an earlier notification and then does not query
        // again. If that login took over the name of a known port, its notification arrives before
        // the retry.
        let (port_name, node_name) = (new.port_name, new.node_name);
        let old = SwRscnEntry { state: port_event::OFFLINE, port_id: id, port_name, node_name };
        self.takeovers.insert(id, Takeover { by: own, old, due: false });
        self.alarms.set_earlier(Alarm::NotifyAgain(id.domain()), now + self.config.retry);
    }
}

/// Number of epochs that a tag can distinguish.
const EPOCHS: u8 = 64;

/// Purpose of a request, encoded in its tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tag {
    /// SW_RSCN to a domain.
    Notification(u8),
    /// GE_PT to a domain.
    Domain(u8),
    /// GE_ID for a port.
    Port(FcId),
}

impl Tag {
    fn pack(self, epoch: u8) -> u32 {
        let (kind, id) = match self {
            Tag::Notification(domain) => (0, FcId::from_parts(domain, 0, 0)),
            Tag::Domain(domain) => (1, FcId::from_parts(domain, 0, 0)),
            Tag::Port(id) => (2, id),
        };
        kind << 30 | u32::from(epoch) << 24 | id.to_u32()
    }

    fn unpack(tag: u32) -> (Tag, u8) {
        let id = FcId::new(tag);
        let tag_of = match tag >> 30 {
            0 => Tag::Notification(id.domain()),
            1 => Tag::Domain(id.domain()),
            _ => Tag::Port(id),
        };
        (tag_of, (tag >> 24) as u8 % EPOCHS)
    }

    fn domain(self) -> u8 {
        match self {
            Tag::Notification(domain) | Tag::Domain(domain) => domain,
            Tag::Port(id) => id.domain(),
        }
    }
}
