//! The name server across switches (FC-SW, inter-switch name server and SW_RSCN): [`NameExchange`] tells the other domains
//! of the ports that log in here, and learns of theirs.
//!
//! # Telling
//!
//! Each change of an own object goes into a log, and after `delay` to every domain as SW_RSCN, up to a hundred ports in
//! one. A domain has one notification outstanding; the next goes when it answered. So it never hears of changes in the
//! wrong order, unless a notification is sent again and an old copy is late.
//!
//! # Learning
//!
//! The notification says id and names, enough for zones and permissions; the port is known from that moment. Details come
//! with one GE_ID for each port, or, if there are many, with one GE_PT for the whole domain, as for a domain that became
//! reachable. The owner answers GE_PT with the same snapshot as long as nothing changes; switches of one process share it,
//! and keep of a domain only what changed since.
//!
//! # Doubt
//!
//! A whole domain is asked for again when
//! - a notification is the same as one of the last ten seconds: it may be a late copy, so it is not believed;
//! - a notification names no port: the owner lost track of what we know, or its log does not reach back;
//! - a GE_ID was not answered;
//! - a notification came within ten seconds after the domain became reachable: it may be from before that. The question
//!   waits for the end of the ten seconds.
//!
//! A port that a notification names is asked for in any case, so a late "online" ends with the owner's reject. Ports that
//! were notified while an answer was on its way keep what the notification said, and are asked for once more.
//! A GE_PT that is not answered, and a notification that is not, is tried again while the domain is reachable.
//!
//! Paths through a fabric that forms are not there everywhere at once, so a GE_PT to a domain that became reachable, or its
//! answer, often gets lost. It is asked again long before the exchange is given up: [`CROSSING`] later, and then twice as
//! late each time; when the domain asks in its turn, there is a path, and that begins anew. The first answer counts.
//!
//! # One name, two ports
//!
//! A login that takes over a name that it knows at another switch says so: [`Input::Local`] with `supersedes`. The owner of
//! the old port gets it as "offline", from a domain that does not own it, and logs it out: [`Output::Superseded`]. That is
//! repeated until the old port is gone. Where neither login knew of the other, or each took over the other, the port with
//! the lower FC_ID stays: the switch of the other one logs it out when the name server there confirms the lower one, or
//! when the switch of the lower one says so in the same way. Until the owners have settled it, both ports are known to the
//! rest of the fabric, and the lower FC_ID counts.

mod answer;
mod own;
mod remote;
mod snapshot;
mod tell;
mod told;

use crate::alarms::Alarms;
use crate::ils::{Outcome, Peer, Request, Send};
use crate::switch::NsEntry;
use crate::time::{Instant, Span};
use crate::zoning::Zones;
use own::OwnPorts;
use remote::Remote;
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::ns::{NsAccept, NsRequest, explanation, port_type};
use sanloom_wire::sw_ils::{SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason, SwRscn, SwRscnEntry, port_event};
use sanloom_wire::{FcId, Message, Wwnn, Wwpn};
use snapshot::{Snapshot, published};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use told::{Log, Told};

/// Times of the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamesConfig {
    /// From a change to the notification, and from a notification to the question for details.
    pub delay: Span,
    /// From a request that nobody answered to the next attempt.
    pub retry: Span,
    /// So long a copy of a notification may be late: R_A_TOV.
    pub memory: Span,
}

/// An answer that comes at all is mostly here after this time.
pub const CROSSING: Span = Span::from_ms(10);

impl Default for NamesConfig {
    fn default() -> NamesConfig {
        NamesConfig { delay: Span::from_ms(5), retry: Span::from_secs(2), memory: Span::from_secs(10) }
    }
}

/// What happens to the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The domain of the switch, or that it has none any more. Another domain is a new beginning, without own objects.
    Domain(Option<u8>),
    /// Paths lead to a domain.
    Reachable {
        /// The domain.
        domain: u8,
    },
    /// No path leads to a domain any more.
    Unreachable {
        /// The domain.
        domain: u8,
    },
    /// A port logged in here, or its object changed.
    Local {
        /// The object.
        entry: Arc<NsEntry>,
        /// A port of another domain whose name the login knowingly took over.
        supersedes: Option<FcId>,
    },
    /// A port is logged in here no more.
    LocalGone {
        /// Its address.
        port_id: FcId,
        /// Its name.
        port_name: Wwpn,
        /// Name of its node.
        node_name: Wwnn,
    },
    /// These zones hold from now on: other domains may ask for ports by zone.
    Zones(Zones),
    /// SW_RSCN or GE_* of another domain.
    Request {
        /// What to answer.
        request: Request,
        /// The request.
        message: Message,
    },
    /// How a request of this machine ended.
    Outcome {
        /// As in [`Send::Request`].
        tag: u32,
        /// The outcome.
        outcome: Outcome,
    },
    /// The time of [`NameExchange::poll_timeout`] has come.
    Timeout,
}

/// What the machine wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// A request or an answer for another domain controller.
    Send(Send),
    /// An object of another domain is known or changed. Its `logged_in_at` is [`Instant::ZERO`]; without types it may be
    /// all that a notification said.
    Object(Arc<NsEntry>),
    /// An object of another domain is gone. A port that logged in anew is removed before it is an object again.
    Removed {
        /// Its address.
        port_id: FcId,
    },
    /// All objects of a domain are gone.
    DomainGone {
        /// The domain.
        domain: u8,
    },
    /// Another port has the name of this own one and stays: it is to be logged out.
    Superseded {
        /// Address of the own port.
        port_id: FcId,
    },
}

/// What the machine did since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamesCounters {
    /// SW_RSCNs sent, not counting what the holder of the exchanges repeats.
    pub notifications_sent: u64,
    /// Ports in them.
    pub ports_notified: u64,
    /// SW_RSCNs received.
    pub notifications_received: u64,
    /// Of these, the same as one a short while ago.
    pub repeated: u64,
    /// Ports in them that are none of the sender's and none of ours.
    pub foreign: u64,
    /// GE_ID sent.
    pub ports_asked: u64,
    /// GE_PT sent.
    pub domains_asked: u64,
    /// GE_* answered, rejects included.
    pub questions_answered: u64,
    /// Members of zones and own objects looked at to answer GE_ZM and GE_ZN.
    pub looked_at_for_zones: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Alarm {
    /// The log is to be read to the others.
    Tell,
    /// A domain is to be told again.
    Retell(u8),
    /// A domain did not ask for everything since it is reachable.
    Silent(u8),
    /// Details of a domain are wanted.
    Ask(u8),
    /// A domain has not answered: it is asked again.
    Repeat(u8),
    /// Nothing from before a domain became reachable can be on its way any more.
    Settled(u8),
    /// If our answer to a domain got lost, it may not have asked again yet.
    Heard(u8),
}

/// A port of another domain that is to go, because an own one has its name and stays.
#[derive(Debug)]
struct Takeover {
    by: FcId,
    old: SwRscnEntry,
    /// It is to be told to the owner.
    untold: bool,
}

/// The name server of one switch towards those of the others. See the [module](self).
#[derive(Debug)]
pub struct NameExchange {
    config: NamesConfig,
    domain: Option<u8>,
    /// Nothing: the switch knows no zones.
    zones: Option<Zones>,
    own: OwnPorts,
    /// All own objects, once somebody asked and until one changes.
    snapshot: Option<Arc<Snapshot>>,
    log: Log,
    /// The others may know the log up to here: what is younger waits for the delay.
    released: u64,
    told: BTreeMap<u8, Told>,
    /// By the old port.
    takeovers: BTreeMap<FcId, Takeover>,
    remotes: BTreeMap<u8, Remote>,
    /// What all reachable domains know of the log, if it was looked for since the last input.
    known_everywhere: Option<u64>,
    epoch: u8,
    alarms: Alarms<Alarm>,
    outputs: VecDeque<Output>,
    counters: NamesCounters,
}

impl NameExchange {
    /// A switch without a domain.
    pub fn new(config: NamesConfig) -> NameExchange {
        NameExchange {
            config,
            domain: None,
            zones: None,
            own: OwnPorts::default(),
            snapshot: None,
            log: Log::default(),
            released: 0,
            told: BTreeMap::new(),
            takeovers: BTreeMap::new(),
            remotes: BTreeMap::new(),
            known_everywhere: None,
            epoch: 0,
            alarms: Alarms::new(),
            outputs: VecDeque::new(),
            counters: NamesCounters::default(),
        }
    }

    /// Something happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.known_everywhere = None;
        match input {
            Input::Domain(domain) => self.set_domain(domain),
            Input::Reachable { domain } => self.reachable(now, domain),
            Input::Unreachable { domain } => self.unreachable(domain),
            Input::Local { entry, supersedes } => self.local(now, &entry, supersedes),
            Input::LocalGone { port_id, port_name, node_name } => self.local_gone(now, port_id, port_name, node_name),
            Input::Zones(zones) => self.zones = Some(zones),
            Input::Request { request, message } => self.request(now, request, &message),
            Input::Outcome { tag, outcome } => self.outcome(now, tag, &outcome),
            Input::Timeout => {}
        }
        while let Some(alarm) = self.alarms.due(now) {
            match alarm {
                Alarm::Tell => self.tell_all(),
                Alarm::Retell(domain) => self.retell(domain),
                Alarm::Silent(domain) => self.silent(domain),
                Alarm::Ask(domain) => self.ask(now, domain),
                Alarm::Repeat(domain) => self.ask_for_all(now, domain),
                Alarm::Settled(domain) => self.settled(now, domain),
                Alarm::Heard(_) => {}
            }
        }
    }

    /// What it wants, in order; drained after each [`handle`](Self::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// What it counted.
    pub fn counters(&self) -> &NamesCounters {
        &self.counters
    }

    /// A port that is logged in here.
    pub fn own(&self, port_id: FcId) -> Option<&NsEntry> {
        self.own.get(port_id).map(|own| &*own.entry)
    }

    /// The number of the login of an own port, if some reachable domain has not been told of it yet: what the port sends to
    /// it is stopped by its hard zoning.
    pub fn login_to_tell(&mut self, port_id: FcId) -> Option<u64> {
        let login = self.own.get(port_id)?.login;
        (login >= self.known_everywhere()).then_some(login)
    }

    /// All reachable domains have been told of the logins before this number. One that does not answer does not count.
    pub fn known_everywhere(&mut self) -> u64 {
        let known = |domain: &u8| match self.told.get(domain) {
            Some(told) if told.anew => u64::MAX,
            Some(told) if !self.alarms.is_set(Alarm::Heard(*domain)) => told.upto.unwrap_or(0),
            _ => 0,
        };
        let remotes = &self.remotes;
        *self.known_everywhere.get_or_insert_with(|| remotes.keys().map(known).min().unwrap_or(u64::MAX))
    }

    /// Nothing is missing of what the reachable domains have said of themselves, and nothing is untold of what is here.
    pub fn is_complete(&self) -> bool {
        let known = |(domain, remote): (&u8, &Remote)| {
            let all = Some(self.log.next());
            let told = self.told.get(domain);
            remote.is_complete() && told.is_some_and(|told| told.upto == all && told.sending.is_none() && !told.anew)
        };
        self.remotes.iter().all(known)
    }

    /// The objects of a domain as far as they are known here, sorted by id.
    pub fn objects(&self, domain: u8) -> impl Iterator<Item = &Arc<NsEntry>> {
        self.remotes.get(&domain).into_iter().flat_map(Remote::iter)
    }

    fn set_domain(&mut self, domain: Option<u8>) {
        if domain == self.domain {
            return;
        }
        let remotes: Vec<u8> = self.remotes.keys().copied().collect();
        remotes.into_iter().for_each(|remote| self.unreachable(remote));
        let (epoch, counters, zones) = (self.epoch, self.counters, self.zones.take());
        let outputs = std::mem::take(&mut self.outputs);
        *self = NameExchange { domain, zones, epoch, counters, outputs, ..NameExchange::new(self.config) };
    }

    fn reachable(&mut self, now: Instant, domain: u8) {
        if self.domain.is_none_or(|own| own == domain) || self.remotes.contains_key(&domain) {
            return;
        }
        self.epoch = (self.epoch + 1) % EPOCHS;
        let remote = Remote::new(self.epoch);
        self.remotes.insert(domain, remote);
        self.takeovers.iter_mut().filter(|(old, _)| old.domain() == domain).for_each(|(_, t)| t.untold = true);
        self.told.entry(domain).or_default().sending = None;
        self.alarms.set(Alarm::Silent(domain), now + self.config.retry);
        self.alarms.set(Alarm::Settled(domain), now + self.config.memory);
        self.alarms.set(Alarm::Heard(domain), now + CROSSING.times(4));
        self.ask(now, domain);
        self.tell(domain);
    }

    fn unreachable(&mut self, domain: u8) {
        if self.remotes.remove(&domain).is_some() {
            let alarms = [Alarm::Retell, Alarm::Silent, Alarm::Ask, Alarm::Repeat, Alarm::Settled, Alarm::Heard];
            alarms.iter().for_each(|alarm| self.alarms.clear(alarm(domain)));
            self.outputs.push_back(Output::DomainGone { domain });
        }
    }

    /// Tells the driver what became of an object, and settles who has its name. `confirmed`: by the owner's name server.
    fn learned(&mut self, now: Instant, old: Option<&Arc<NsEntry>>, new: Option<&Arc<NsEntry>>, confirmed: bool) {
        let renamed = |old: &&Arc<NsEntry>| new.is_none_or(|new| new.port_name != old.port_name);
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
            // Its owner has not heard, and will again.
            Some(true) => return,
            // The one that was to go is gone, and another port has its address.
            Some(false) => _ = self.takeovers.remove(&id),
            None => {}
        }
        let Some(own) = self.own.named(new.port_name).filter(|_| confirmed) else { return };
        if id < own {
            self.outputs.push_back(Output::Superseded { port_id: own });
            return;
        }
        // Its owner may know ours from before, and see no reason to look again. If that login knowingly took over the name,
        // we hear it before the retry.
        let (port_name, node_name) = (new.port_name, new.node_name);
        let old = SwRscnEntry { state: port_event::OFFLINE, port_id: id, port_name, node_name };
        self.takeovers.insert(id, Takeover { by: own, old, untold: false });
        self.alarms.set_earlier(Alarm::Retell(id.domain()), now + self.config.retry);
    }
}

/// Epochs in a tag.
const EPOCHS: u8 = 64;

/// What a request of ours was about, as a tag.
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
