//! The own objects, and how the others hear of them.

use super::told::{Sending, notification};
use super::*;

impl NameExchange {
    pub(super) fn local(&mut self, now: Instant, entry: &Arc<NsEntry>, supersedes: Option<FcId>) {
        let (Some(own), id) = (self.domain, entry.port_id) else { return };
        if id.domain() != own {
            return;
        }
        let entry = published(entry);
        let old = self.own.get(id).map(|own| (own.entry.clone(), own.login));
        let state = match &old {
            Some((old, _)) if *old == entry && supersedes.is_none() => return,
            Some((old, _)) if (old.port_name, old.node_name) == (entry.port_name, entry.node_name) => port_event::NONE,
            _ => port_event::ONLINE,
        };
        let login = old.filter(|_| state == port_event::NONE).map_or(self.log.next(), |(_, login)| login);
        self.own.insert(entry.clone(), login);
        // Under another name it has taken nothing over from those who had the first one.
        self.takeovers.retain(|_, takeover| takeover.by != id || takeover.old.port_name == entry.port_name);
        if let Some(old) = supersedes.filter(|old| old.domain() != own) {
            let known = self.remotes.get(&old.domain()).and_then(|remote| remote.get(old));
            if let Some(known) = known.filter(|known| known.port_name == entry.port_name) {
                let (port_name, node_name) = (known.port_name, known.node_name);
                let port = SwRscnEntry { state: port_event::OFFLINE, port_id: old, port_name, node_name };
                self.takeovers.insert(old, Takeover { by: id, old: port, untold: true });
            }
        }
        self.changed(now, state, id, entry.port_name, entry.node_name);
    }

    pub(super) fn local_gone(&mut self, now: Instant, id: FcId, port_name: Wwpn, node_name: Wwnn) {
        if self.own.remove(id).is_some() {
            self.takeovers.retain(|_, takeover| takeover.by != id);
            self.changed(now, port_event::OFFLINE, id, port_name, node_name);
        }
    }

    fn changed(&mut self, now: Instant, state: u8, port_id: FcId, port_name: Wwpn, node_name: Wwnn) {
        self.snapshot = None;
        self.log.push(SwRscnEntry { state, port_id, port_name, node_name });
        self.alarms.set_earlier(Alarm::Tell, now + self.config.delay);
    }

    /// The delay is over: everybody hears of all changes.
    pub(super) fn tell_all(&mut self) {
        self.released = self.log.next();
        let domains: Vec<u8> = self.remotes.keys().copied().collect();
        domains.into_iter().for_each(|domain| self.tell(domain));
    }

    pub(super) fn retell(&mut self, domain: u8) {
        let of_domain = self.takeovers.iter_mut().filter(|(old, _)| old.domain() == domain);
        of_domain.for_each(|(_, takeover)| takeover.untold = true);
        self.tell(domain);
    }

    /// A domain that is reachable for a while has not asked: if it believes to know us, it does not any more.
    pub(super) fn silent(&mut self, domain: u8) {
        let next = self.log.next();
        let told = self.told.entry(domain).or_default();
        if told.upto.is_none() {
            told.upto = Some(next);
            told.anew = true;
            self.tell(domain);
        }
    }

    /// Sends a domain the next notification, if there is something to tell and none is on its way.
    pub(super) fn tell(&mut self, domain: u8) {
        let (Some(own), Some(remote)) = (self.domain, self.remotes.get(&domain)) else { return };
        let tag = Tag::Notification(domain).pack(remote.epoch);
        let told = self.told.entry(domain).or_default();
        if told.sending.is_some() {
            return;
        }
        let of_domain = FcId::from_parts(domain, 0, 0)..=FcId::from_parts(domain, 0xff, 0xff);
        let untold = self.takeovers.range_mut(of_domain).filter(|(_, takeover)| takeover.untold);
        let mut entries: Vec<SwRscnEntry> = Vec::new();
        for (_, takeover) in untold {
            takeover.untold = false;
            entries.push(takeover.old);
        }
        let mut upto = told.upto.unwrap_or(0);
        if told.upto.is_some_and(|known| known < self.released) {
            match self.log.read(upto) {
                Some((changes, read)) if !told.anew => {
                    entries.extend(changes);
                    upto = read;
                }
                _ => told.anew = true,
            }
        }
        let anew = told.anew && entries.is_empty();
        if anew {
            // It asks when it has this, so what it gets holds all changes so far.
            upto = self.log.next();
        } else if entries.is_empty() {
            return;
        }
        told.sending = Some(Sending { upto, anew });
        self.counters.notifications_sent += 1;
        self.counters.ports_notified += entries.len() as u64;
        let message = SwIls::SwRscn(notification(own, entries)).into();
        self.outputs.push_back(Output::Send(Send::Request { to: Peer::Domain(domain), message, tag }));
    }

    pub(super) fn notification_ended(&mut self, now: Instant, domain: u8, outcome: &Outcome) {
        let told = self.told.entry(domain).or_default();
        let Some(Sending { upto, anew }) = told.sending.take() else { return };
        let accepted = matches!(outcome, Outcome::Answered(Message::SwIls(ils)) if matches!(**ils, SwIls::SwAcc(_)));
        if !accepted {
            // Copies of it may still come: what it says is not to be believed then.
            told.anew |= told.upto.is_some();
            self.alarms.set_earlier(Alarm::Retell(domain), now + self.config.retry);
            return;
        }
        told.anew &= !anew;
        told.upto = told.upto.map(|known| known.max(upto));
        if self.takeovers.keys().any(|old| old.domain() == domain) {
            // Later than a copy could be, so that it is believed.
            self.alarms.set(Alarm::Retell(domain), now + self.config.memory + self.config.retry);
        }
        self.tell(domain);
    }
}
