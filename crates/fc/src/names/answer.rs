//! Requests from other switches, and the replies to requests of this switch.

use super::*;
use crate::config::{Zone, ZoneMember};
use crate::zoning::member_of;
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{Entries, Fc4Types};
use sanloom_wire::sw_ils::ZoneMemberId;
use std::collections::BTreeSet;

/// Up to this many ports are queried individually with GE_ID; for more, one GE_PT queries the whole
/// domain.
const SINGLE: usize = 8;

impl NameExchange {
    pub(super) fn on_request(&mut self, now: Instant, request: Request, message: &Message) {
        let answer = match message {
            Message::SwIls(ils) => match (&**ils, request.from) {
                (SwIls::SwRscn(notification), Peer::Domain(domain)) => {
                    self.notified(now, domain, notification);
                    SwIls::SwAcc(SwAcc::Empty).into()
                }
                _ => {
                    let (reason, explanation) = (SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED);
                    SwIls::from(SwRjt::new(reason, explanation)).into()
                }
            },
            Message::Ct(ct) => {
                self.counters.queries_answered += 1;
                let reply = match &ct.body {
                    CtBody::Ns(query) => self.answer(now, request.from, query),
                    _ => Err(CtReject::new(CtReason::NOT_SUPPORTED, 0)),
                };
                ct.reply(reply.map_or_else(CtBody::Reject, CtBody::NsAccept)).into()
            }
            _ => return,
        };
        self.outputs.push_back(Output::Send(Send::Answer { request, message: answer }));
    }

    /// Answers a GE_* query with the matching own objects.
    fn answer(&mut self, now: Instant, from: Peer, query: &NsRequest) -> Result<NsAccept, CtReject> {
        let some = |found: Vec<Arc<NsRecord>>, why: u8| match found.is_empty() {
            true => Err(CtReject::unable(why)),
            false => Ok(NsAccept::Entries(Snapshot::new(found).entries())),
        };
        let chosen = |choose: &dyn Fn(&NsRecord) -> bool, why: u8| {
            some(self.own.entries().filter(|entry| choose(entry)).cloned().collect(), why)
        };
        let any = |types: &Fc4Types, of: &Fc4Types| types.iter().zip(of).any(|(a, b)| a & b != 0);
        match query {
            NsRequest::GePt { port_type: port_type::NX_PORT | port_type::N_PORT } => {
                if let Peer::Domain(domain) = from {
                    let next = self.log.next();
                    let progress = self.progress.entry(domain).or_default();
                    // A domain that queries later than this has accepted all notifications, so it
                    // has the ports.
                    if progress.up_to.is_none() || self.alarms.is_set(Alarm::AwaitRepeat(domain)) {
                        self.alarms.set(Alarm::AwaitRepeat(domain), now + CROSSING.times(4));
                    }
                    progress.up_to.get_or_insert(next);
                    self.on_domain_query(now, domain);
                }
                let own = &self.own;
                let snapshot = self.snapshot.get_or_insert_with(|| Snapshot::new(own.entries().cloned()));
                Ok(NsAccept::Entries(snapshot.entries()))
            }
            NsRequest::GePt { .. } => Err(CtReject::unable(explanation::PORT_TYPE_NOT_REGISTERED)),
            NsRequest::GeId { port_id } => {
                let own = self.own.get(*port_id).map(|own| own.entry.clone());
                some(own.into_iter().collect(), explanation::PORT_ID_NOT_REGISTERED)
            }
            NsRequest::GePn { port_name } => {
                chosen(&|entry| entry.port_name == *port_name, explanation::PORT_NAME_NOT_REGISTERED)
            }
            NsRequest::GeNn { node_name } => {
                chosen(&|entry| entry.node_name == *node_name, explanation::NODE_NAME_NOT_REGISTERED)
            }
            NsRequest::GeFt { types } => {
                chosen(&|entry| any(&entry.types, types), explanation::FC4_TYPES_NOT_REGISTERED)
            }
            NsRequest::GeFf { features } => {
                let has = |entry: &NsRecord| entry.feature_map().iter().zip(features.iter()).any(|(a, b)| a & b != 0);
                chosen(&has, explanation::FC4_FEATURES_NOT_REGISTERED)
            }
            NsRequest::GeZm { kind, id, .. } => {
                let member = member_of(&ZoneMemberId::parse(*kind, id));
                let found = self.ports_of(member.iter());
                some(found, explanation::NO_OBJECT_IN_SCOPE)
            }
            NsRequest::GeZn { name } => {
                let zones = self.zones.clone();
                let zone = zones.as_ref().and_then(|zones| zones.effective_zone(&name.0));
                let found = self.ports_of(zone.into_iter().flat_map(Zone::all_members));
                some(found, explanation::NO_OBJECT_IN_SCOPE)
            }
            NsRequest::GeIp { ip } => chosen(&|entry| entry.rare().node_ip == *ip, explanation::NODE_IP_NOT_REGISTERED),
            NsRequest::GeIpp { ip } => {
                chosen(&|entry| entry.rare().port_ip == *ip, explanation::PORT_IP_NOT_REGISTERED)
            }
            _ => Err(CtReject::new(CtReason::NOT_SUPPORTED, explanation::NONE)),
        }
    }

    /// Own objects that match zone members, without duplicates, sorted by address.
    fn ports_of<'m>(&mut self, members: impl Iterator<Item = &'m ZoneMember>) -> Vec<Arc<NsRecord>> {
        let mut found = BTreeSet::new();
        for member in members {
            self.own.collect(member, &mut found);
            self.counters.examined_for_zones += 1;
        }
        self.counters.examined_for_zones += found.len() as u64;
        found.iter().filter_map(|id| self.own.get(*id)).map(|own| own.entry.clone()).collect()
    }

    fn notified(&mut self, now: Instant, domain: u8, notification: &SwRscn) {
        self.counters.notifications_received += 1;
        let memory = self.config.memory;
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        if remote.repeated(now, notification, memory) || notification.entries.is_empty() {
            self.counters.repeated += u64::from(!notification.entries.is_empty());
            remote.query_all = true;
            self.schedule_query(now, domain);
            return;
        }
        remote.doubtful |= self.alarms.is_set(Alarm::LateOver(domain));
        for port in &notification.entries {
            let id = port.port_id;
            if id.domain() == domain {
                self.port_notified(now, port);
            } else if Some(id.domain()) == self.domain {
                let own = self.own.get(id).filter(|own| own.entry.port_name == port.port_name);
                // Both logins took over the name of the other; the one with the lower FC_ID stays.
                let same = |old: &FcId, t: &Takeover| {
                    t.by == id && t.old.port_name == port.port_name && old.domain() == domain && id < *old
                };
                let stays = self.takeovers.iter().any(|(old, takeover)| same(old, takeover));
                if own.is_some() && port.state == port_event::OFFLINE && !stays {
                    self.outputs.push_back(Output::Superseded { port_id: id });
                }
            } else {
                self.counters.foreign += 1;
            }
        }
    }

    fn port_notified(&mut self, now: Instant, port: &SwRscnEntry) {
        let (id, domain) = (port.port_id, port.port_id.domain());
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let old = remote.get(id).cloned();
        if let Some(since) = &mut remote.all_in_flight {
            since.insert(id);
        }
        if let Some(changed) = remote.in_flight.get_mut(&id) {
            *changed = true;
        }
        match (port.state, &old) {
            (port_event::OFFLINE, _) => {
                remote.to_query.remove(&id);
                remote.set(id, None);
                self.takeovers.remove(&id);
                self.apply(now, old.as_ref(), None, false);
                return;
            }
            (port_event::NONE, Some(_)) => _ = remote.to_query.insert(id),
            _ => {
                remote.to_query.insert(id);
                let entry = Arc::new(named(port));
                remote.set(id, Some(entry.clone()));
                self.apply(now, old.as_ref(), None, false);
                self.apply(now, None, Some(&entry), false);
            }
        }
        self.schedule_query(now, domain);
    }

    /// Handles the end of the time in which late notifications are possible. If any arrived before,
    /// the whole domain is queried again.
    pub(super) fn on_late_over(&mut self, now: Instant, domain: u8) {
        if let Some(remote) = self.remotes.get_mut(&domain)
            && std::mem::take(&mut remote.doubtful)
        {
            remote.query_all = true;
            self.send_queries(now, domain);
        }
    }

    /// Handles a query of a domain for everything. It proves that a path exists, which may not have
    /// been the case when this switch queried that domain.
    fn on_domain_query(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let first = !std::mem::replace(&mut remote.has_queried, true);
        if remote.all_in_flight.is_some() {
            if first {
                remote.repeats = 0;
                self.alarms.set_earlier(Alarm::RepeatQuery(domain), now + CROSSING);
            }
        } else if remote.query_all {
            self.schedule_query(now, domain);
        }
    }

    fn schedule_query(&mut self, now: Instant, domain: u8) {
        self.alarms.set_earlier(Alarm::Query(domain), now + self.config.delay);
    }

    /// Sends the outstanding queries to a domain, unless a query for the whole domain is pending.
    pub(super) fn send_queries(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        if remote.all_in_flight.is_some() {
            return;
        }
        let (to, epoch) = (Peer::Domain(domain), remote.epoch);
        if remote.query_all || remote.to_query.len() > SINGLE {
            remote.query_all = false;
            remote.to_query.clear();
            remote.all_in_flight = Some(Default::default());
            remote.repeats = 0;
            return self.query_domain(now, domain);
        }
        for port_id in std::mem::take(&mut remote.to_query) {
            if let Some(changed) = remote.in_flight.get_mut(&port_id) {
                *changed = true;
                continue;
            }
            remote.in_flight.insert(port_id, false);
            self.counters.ports_queried += 1;
            let message = Ct::ns_request(NsRequest::GeId { port_id }).into();
            self.outputs.push_back(Output::Send(Send::Request { to, message, tag: Tag::Port(port_id).pack(epoch) }));
        }
    }

    /// Sends the query for the whole domain and schedules its repetition.
    pub(super) fn query_domain(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let again_in = CROSSING.times(1 << remote.repeats.min(16));
        if again_in < self.config.retry {
            self.alarms.set(Alarm::RepeatQuery(domain), now + again_in);
        }
        remote.repeats = remote.repeats.saturating_add(1);
        self.counters.domains_queried += 1;
        let (to, tag) = (Peer::Domain(domain), Tag::Domain(domain).pack(remote.epoch));
        let message = Ct::ns_request(NsRequest::GePt { port_type: port_type::NX_PORT }).into();
        self.outputs.push_back(Output::Send(Send::Request { to, message, tag }));
    }

    pub(super) fn on_outcome(&mut self, now: Instant, tag: u32, outcome: &Outcome) {
        let (tag, epoch) = Tag::unpack(tag);
        if self.remotes.get(&tag.domain()).is_none_or(|remote| remote.epoch != epoch) {
            return;
        }
        match tag {
            Tag::Notification(domain) => self.notification_ended(now, domain, outcome),
            Tag::Domain(domain) => self.domain_answered(now, domain, outcome),
            Tag::Port(id) => self.port_answered(now, id, outcome),
        }
    }

    fn domain_answered(&mut self, now: Instant, domain: u8, outcome: &Outcome) {
        if *outcome == Outcome::Unanswered && self.alarms.is_set(Alarm::RepeatQuery(domain)) {
            return;
        }
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let Some(since) = remote.all_in_flight.take() else { return };
        self.alarms.clear(Alarm::RepeatQuery(domain));
        let (to, tag) = (Peer::Domain(domain), Tag::Domain(domain).pack(remote.epoch));
        self.outputs.push_back(Output::Send(Send::Withdraw { to, tag }));
        let snapshot = match answered(outcome) {
            Answer::Entries(entries) => Snapshot::of(entries, domain),
            Answer::Nothing => Snapshot::default(),
            Answer::Unknown => {
                remote.query_all = true;
                self.alarms.set_earlier(Alarm::Query(domain), now + self.config.retry);
                return;
            }
        };
        let differences = remote.replace(snapshot, &since);
        // A takeover is obsolete if the old port logged out while its domain was unreachable. A
        // stale entry would also affect a port that takes the name back later.
        let to_go = |old: &FcId, takeover: &mut Takeover| {
            let there = || remote.get(*old).is_some_and(|entry| entry.port_name == takeover.old.port_name);
            old.domain() != domain || since.contains(old) || there()
        };
        self.takeovers.retain(to_go);
        // The order of the reply and these notifications is unknown.
        remote.to_query.extend(since);
        let (to_query, query_all) = (!remote.to_query.is_empty(), remote.query_all);
        for (_, old, new) in &differences {
            self.apply(now, old.as_ref(), new.as_ref(), false);
        }
        self.resolve_names(now, domain);
        if to_query || query_all {
            self.schedule_query(now, domain);
        }
    }

    /// Resolves name conflicts for the own port names that the reply confirms at the other domain.
    fn resolve_names(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get(&domain) else { return };
        let same = |entry: &&Arc<NsRecord>| {
            self.own.named(entry.port_name).is_some() && !remote.to_query.contains(&entry.port_id)
        };
        let shared: Vec<Arc<NsRecord>> = remote.iter().filter(same).cloned().collect();
        shared.iter().for_each(|entry| self.apply(now, Some(entry), Some(entry), true));
    }

    fn port_answered(&mut self, now: Instant, id: FcId, outcome: &Outcome) {
        let domain = id.domain();
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let Some(changed) = remote.in_flight.remove(&id) else { return };
        if changed {
            remote.to_query.insert(id);
            return self.schedule_query(now, domain);
        }
        let new = match answered(outcome) {
            Answer::Entries(entries) => Snapshot::of(entries, domain).get(id).cloned(),
            Answer::Nothing => None,
            Answer::Unknown => {
                remote.query_all = true;
                return self.schedule_query(now, domain);
            }
        };
        let old = remote.get(id).cloned();
        remote.set(id, new.clone());
        if new.is_none() {
            self.takeovers.remove(&id);
        }
        self.apply(now, old.as_ref(), new.as_ref(), true);
    }
}

/// Result of a query for objects.
enum Answer<'a> {
    Entries(&'a Entries),
    /// The object does not exist.
    Nothing,
    /// No reply, or an inconclusive one.
    Unknown,
}

fn answered(outcome: &Outcome) -> Answer<'_> {
    let Outcome::Answered(Message::Ct(ct)) = outcome else { return Answer::Unknown };
    match &ct.body {
        CtBody::NsAccept(NsAccept::Entries(entries)) => Answer::Entries(entries),
        CtBody::Reject(reject) if reject.reason == CtReason::UNABLE => Answer::Nothing,
        _ => Answer::Unknown,
    }
}

/// Object with the attributes that a notification contains.
fn named(port: &SwRscnEntry) -> NsRecord {
    NsRecord {
        port_id: port.port_id,
        port_type: port_type::N_PORT,
        fcp_features: 0,
        listed: true,
        classes: 0,
        port_name: port.port_name,
        node_name: port.node_name,
        fabric_port_name: Wwpn(0),
        types: [0; 8],
        extra: None,
    }
}
