//! Requests of the others, and answers to ours.

use super::*;
use crate::config::{Zone, ZoneMember};
use crate::zoning::member_of;
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{Entries, Fc4Types};
use sanloom_wire::sw_ils::ZoneMemberId;
use std::collections::BTreeSet;

/// More ports than these are asked for with one GE_PT.
const SINGLE: usize = 8;

impl NameExchange {
    pub(super) fn request(&mut self, now: Instant, request: Request, message: &Message) {
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
                self.counters.questions_answered += 1;
                let reply = match &ct.body {
                    CtBody::Ns(question) => self.answer(now, request.from, question),
                    _ => Err(CtReject::new(CtReason::NOT_SUPPORTED, 0)),
                };
                ct.reply(reply.map_or_else(CtBody::Reject, CtBody::NsAccept)).into()
            }
            _ => return,
        };
        self.outputs.push_back(Output::Send(Send::Answer { request, message: answer }));
    }

    /// GE_*: what of the own objects matches.
    fn answer(&mut self, now: Instant, from: Peer, question: &NsRequest) -> Result<NsAccept, CtReject> {
        let all = |accept: Arc<Snapshot>| Ok(NsAccept::Entries(Entries::new(accept)));
        let some = |found: Vec<Arc<NsEntry>>, why: u8| match found.is_empty() {
            true => Err(CtReject::unable(why)),
            false => all(Arc::new(Snapshot(found))),
        };
        let chosen = |choose: &dyn Fn(&NsEntry) -> bool, why: u8| {
            some(self.own.entries().filter(|entry| choose(entry)).cloned().collect(), why)
        };
        let any = |types: &Fc4Types, of: &Fc4Types| types.iter().zip(of).any(|(a, b)| a & b != 0);
        match question {
            NsRequest::GePt { port_type: port_type::NX_PORT | port_type::N_PORT } => {
                if let Peer::Domain(domain) = from {
                    let next = self.log.next();
                    let told = self.told.entry(domain).or_default();
                    // A domain that asks later on has accepted all notifications: it knows the ports.
                    if told.upto.is_none() || self.alarms.is_set(Alarm::Heard(domain)) {
                        self.alarms.set(Alarm::Heard(domain), now + CROSSING.times(4));
                    }
                    told.upto.get_or_insert(next);
                    self.heard_from(now, domain);
                }
                let own = &self.own;
                let snapshot =
                    self.snapshot.get_or_insert_with(|| Arc::new(Snapshot(own.entries().cloned().collect())));
                all(snapshot.clone())
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
                let has = |entry: &NsEntry| entry.feature_map().iter().zip(features.iter()).any(|(a, b)| a & b != 0);
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

    /// The own objects that zone members stand for, each once, sorted by address.
    fn ports_of<'m>(&mut self, members: impl Iterator<Item = &'m ZoneMember>) -> Vec<Arc<NsEntry>> {
        let mut found = BTreeSet::new();
        for member in members {
            self.own.collect(member, &mut found);
            self.counters.looked_at_for_zones += 1;
        }
        self.counters.looked_at_for_zones += found.len() as u64;
        found.iter().filter_map(|id| self.own.get(*id)).map(|own| own.entry.clone()).collect()
    }

    fn notified(&mut self, now: Instant, domain: u8, notification: &SwRscn) {
        self.counters.notifications_received += 1;
        let memory = self.config.memory;
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        if remote.repeated(now, notification, memory) || notification.entries.is_empty() {
            self.counters.repeated += u64::from(!notification.entries.is_empty());
            remote.want_all = true;
            self.ask_soon(now, domain);
            return;
        }
        remote.doubtful |= self.alarms.is_set(Alarm::Settled(domain));
        for port in &notification.entries {
            let id = port.port_id;
            if id.domain() == domain {
                self.port_notified(now, port);
            } else if Some(id.domain()) == self.domain {
                let own = self.own.get(id).filter(|own| own.entry.port_name == port.port_name);
                // Each took over the name of the other: the lower stays.
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
        if let Some(since) = &mut remote.asked_all {
            since.insert(id);
        }
        if let Some(changed) = remote.asked.get_mut(&id) {
            *changed = true;
        }
        match (port.state, &old) {
            (port_event::OFFLINE, _) => {
                remote.wanted.remove(&id);
                remote.set(id, None);
                self.takeovers.remove(&id);
                self.learned(now, old.as_ref(), None, false);
                return;
            }
            (port_event::NONE, Some(_)) => _ = remote.wanted.insert(id),
            _ => {
                remote.wanted.insert(id);
                let entry = Arc::new(named(port));
                remote.set(id, Some(entry.clone()));
                self.learned(now, old.as_ref(), None, false);
                self.learned(now, None, Some(&entry), false);
            }
        }
        self.ask_soon(now, domain);
    }

    /// From now on notifications are as new as they look. What came before is checked.
    pub(super) fn settled(&mut self, now: Instant, domain: u8) {
        if let Some(remote) = self.remotes.get_mut(&domain)
            && std::mem::take(&mut remote.doubtful)
        {
            remote.want_all = true;
            self.ask(now, domain);
        }
    }

    /// A domain asks for everything: there is a path now, and there may have been none when we asked.
    fn heard_from(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let first = !std::mem::replace(&mut remote.heard, true);
        if remote.asked_all.is_some() {
            if first {
                remote.repeats = 0;
                self.alarms.set_earlier(Alarm::Repeat(domain), now + CROSSING);
            }
        } else if remote.want_all {
            self.ask_soon(now, domain);
        }
    }

    fn ask_soon(&mut self, now: Instant, domain: u8) {
        self.alarms.set_earlier(Alarm::Ask(domain), now + self.config.delay);
    }

    /// Asks for what is wanted, unless everything is asked for already.
    pub(super) fn ask(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        if remote.asked_all.is_some() {
            return;
        }
        let (to, epoch) = (Peer::Domain(domain), remote.epoch);
        if remote.want_all || remote.wanted.len() > SINGLE {
            remote.want_all = false;
            remote.wanted.clear();
            remote.asked_all = Some(Default::default());
            remote.repeats = 0;
            return self.ask_for_all(now, domain);
        }
        for port_id in std::mem::take(&mut remote.wanted) {
            if let Some(changed) = remote.asked.get_mut(&port_id) {
                *changed = true;
                continue;
            }
            remote.asked.insert(port_id, false);
            self.counters.ports_asked += 1;
            let message = Ct::ns_request(NsRequest::GeId { port_id }).into();
            self.outputs.push_back(Output::Send(Send::Request { to, message, tag: Tag::Port(port_id).pack(epoch) }));
        }
    }

    /// Asks for everything, once more if that was done.
    pub(super) fn ask_for_all(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let again_in = CROSSING.times(1 << remote.repeats.min(16));
        if again_in < self.config.retry {
            self.alarms.set(Alarm::Repeat(domain), now + again_in);
        }
        remote.repeats = remote.repeats.saturating_add(1);
        self.counters.domains_asked += 1;
        let (to, tag) = (Peer::Domain(domain), Tag::Domain(domain).pack(remote.epoch));
        let message = Ct::ns_request(NsRequest::GePt { port_type: port_type::NX_PORT }).into();
        self.outputs.push_back(Output::Send(Send::Request { to, message, tag }));
    }

    pub(super) fn outcome(&mut self, now: Instant, tag: u32, outcome: &Outcome) {
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
        if *outcome == Outcome::Unanswered && self.alarms.is_set(Alarm::Repeat(domain)) {
            return;
        }
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let Some(since) = remote.asked_all.take() else { return };
        self.alarms.clear(Alarm::Repeat(domain));
        let (to, tag) = (Peer::Domain(domain), Tag::Domain(domain).pack(remote.epoch));
        self.outputs.push_back(Output::Send(Send::Withdraw { to, tag }));
        let snapshot = match answered(outcome) {
            Answer::Entries(entries) => Snapshot::of(entries, domain),
            Answer::Nothing => Arc::default(),
            Answer::Unknown => {
                remote.want_all = true;
                self.alarms.set_earlier(Alarm::Ask(domain), now + self.config.retry);
                return;
            }
        };
        let differences = remote.replace(snapshot, &since);
        // A port that went while its domain was away need not go any more. Were it still on the list, a port that takes its
        // name back later would be taken for it.
        let to_go = |old: &FcId, takeover: &mut Takeover| {
            let there = || remote.get(*old).is_some_and(|entry| entry.port_name == takeover.old.port_name);
            old.domain() != domain || since.contains(old) || there()
        };
        self.takeovers.retain(to_go);
        // Neither the answer nor the notification is known to be the later one.
        remote.wanted.extend(since);
        let (wanted, want_all) = (!remote.wanted.is_empty(), remote.want_all);
        for (_, old, new) in &differences {
            self.learned(now, old.as_ref(), new.as_ref(), false);
        }
        self.settle_names(now, domain);
        if wanted || want_all {
            self.ask_soon(now, domain);
        }
    }

    /// Of the own names, those that the answer confirms at the other domain.
    fn settle_names(&mut self, now: Instant, domain: u8) {
        let Some(remote) = self.remotes.get(&domain) else { return };
        let same = |entry: &&Arc<NsEntry>| {
            self.own.named(entry.port_name).is_some() && !remote.wanted.contains(&entry.port_id)
        };
        let shared: Vec<Arc<NsEntry>> = remote.iter().filter(same).cloned().collect();
        shared.iter().for_each(|entry| self.learned(now, Some(entry), Some(entry), true));
    }

    fn port_answered(&mut self, now: Instant, id: FcId, outcome: &Outcome) {
        let domain = id.domain();
        let Some(remote) = self.remotes.get_mut(&domain) else { return };
        let Some(changed) = remote.asked.remove(&id) else { return };
        if changed {
            remote.wanted.insert(id);
            return self.ask_soon(now, domain);
        }
        let new = match answered(outcome) {
            Answer::Entries(entries) => Snapshot::of(entries, domain).get(id).cloned(),
            Answer::Nothing => None,
            Answer::Unknown => {
                remote.want_all = true;
                return self.ask_soon(now, domain);
            }
        };
        let old = remote.get(id).cloned();
        remote.set(id, new.clone());
        if new.is_none() {
            self.takeovers.remove(&id);
        }
        self.learned(now, old.as_ref(), new.as_ref(), true);
    }
}

/// What an outcome says of the objects that were asked for.
enum Answer<'a> {
    Entries(&'a Entries),
    /// There is no such object.
    Nothing,
    /// No answer, or none that says it.
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

/// All that a notification says of a port.
fn named(port: &SwRscnEntry) -> NsEntry {
    NsEntry {
        port_id: port.port_id,
        port_type: port_type::N_PORT,
        fcp_features: 0,
        listed: true,
        classes: 0,
        port_name: port.port_name,
        node_name: port.node_name,
        fabric_port_name: Wwpn(0),
        types: [0; 8],
        logged_in_at: Instant::ZERO,
        extra: None,
    }
}
