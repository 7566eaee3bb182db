//! Own objects and the notifications about them.

use super::log::{Sending, notification};
use super::*;

impl NameExchange {
    pub(super) fn on_local(&mut self, now: Instant, entry: &Arc<NsRecord>, supersedes: Option<FcId>) {
        let (Some(own), id) = (self.domain, entry.port_id) else { return };
        if id.domain() != own {
            return;
        }
        let old = self.own.get(id).map(|own| (own.entry.clone(), own.login));
        let state = match &old {
            Some((old, _)) if old == entry && supersedes.is_none() => return,
            Some((old, _)) if (old.port_name, old.node_name) == (entry.port_name, entry.node_name) => port_event::NONE,
            _ => port_event::ONLINE,
        };
        let login = old.filter(|_| state == port_event::NONE).map_or(self.log.next(), |(_, login)| login);
        self.own.insert(entry.clone(), login);
        // After a change of its name, the port no longer supersedes ports with the former name.
        self.takeovers.retain(|_, takeover| takeover.by != id || takeover.old.port_name == entry.port_name);
        if let Some(old) = supersedes.filter(|old| old.domain() != own) {
            let known = self.remotes.get(&old.domain()).and_then(|remote| remote.get(old));
            if let Some(known) = known.filter(|known| known.port_name == entry.port_name) {
                let (port_name, node_name) = (known.port_name, known.node_name);
                let port = SwRscnEntry { state: port_event::OFFLINE, port_id: old, port_name, node_name };
                self.takeovers.insert(old, Takeover { by: id, old: port, due: true });
            }
        }
        self.changed(now, state, id, entry.port_name, entry.node_name);
    }

    pub(super) fn on_local_gone(&mut self, now: Instant, id: FcId, port_name: Wwpn, node_name: Wwnn) {
        if self.own.remove(id).is_some() {
            self.takeovers.retain(|_, takeover| takeover.by != id);
            self.changed(now, port_event::OFFLINE, id, port_name, node_name);
        }
    }

    fn changed(&mut self, now: Instant, state: u8, port_id: FcId, port_name: Wwpn, node_name: Wwnn) {
        self.snapshot = None;
        self.log.push(SwRscnEntry { state, port_id, port_name, node_name });
        self.alarms.set_earlier(Alarm::Notify, now + self.config.delay);
    }

    /// Sends all changes to all domains after the delay.
    pub(super) fn notify_all(&mut self) {
        self.released = self.log.next();
        let domains: Vec<u8> = self.remotes.keys().copied().collect();
        domains.into_iter().for_each(|domain| self.notify(domain));
    }

    pub(super) fn notify_again(&mut self, domain: u8) {
        let of_domain = self.takeovers.iter_mut().filter(|(old, _)| old.domain() == domain);
        of_domain.for_each(|(_, takeover)| takeover.due = true);
        self.notify(domain);
    }

    /// Handles a domain that has sent no query for some time after it became reachable. It may
    /// consider its data valid although it is outdated, so it is requested to query again.
    pub(super) fn on_no_query(&mut self, domain: u8) {
        let next = self.log.next();
        let progress = self.progress.entry(domain).or_default();
        if progress.up_to.is_none() {
            progress.up_to = Some(next);
            progress.query_again = true;
            self.notify(domain);
        }
    }

    /// Sends the next notification to a domain, unless there is none or one is in flight.
    pub(super) fn notify(&mut self, domain: u8) {
        let (Some(own), Some(remote)) = (self.domain, self.remotes.get(&domain)) else { return };
        let tag = Tag::Notification(domain).pack(remote.epoch);
        let progress = self.progress.entry(domain).or_default();
        if progress.sending.is_some() {
            return;
        }
        let of_domain = FcId::from_parts(domain, 0, 0)..=FcId::from_parts(domain, 0xff, 0xff);
        let due = self.takeovers.range_mut(of_domain).filter(|(_, takeover)| takeover.due);
        let mut entries: Vec<SwRscnEntry> = Vec::new();
        for (_, takeover) in due {
            takeover.due = false;
            entries.push(takeover.old);
        }
        let mut up_to = progress.up_to.unwrap_or(0);
        if progress.up_to.is_some_and(|known| known < self.released) {
            match self.log.read(up_to) {
                Some((changes, read)) if !progress.query_again => {
                    entries.extend(changes);
                    up_to = read;
                }
                _ => progress.query_again = true,
            }
        }
        let query_again = progress.query_again && entries.is_empty();
        if query_again {
            // The domain queries after it receives this, so the reply will contain all changes so
            // far.
            up_to = self.log.next();
        } else if entries.is_empty() {
            return;
        }
        progress.sending = Some(Sending { up_to, query_again });
        self.counters.notifications_sent += 1;
        self.counters.ports_notified += entries.len() as u64;
        let message = SwIls::SwRscn(notification(own, entries)).into();
        self.outputs.push_back(Output::Send(Send::Request { to: Peer::Domain(domain), message, tag }));
    }

    pub(super) fn notification_ended(&mut self, now: Instant, domain: u8, outcome: &Outcome) {
        let progress = self.progress.entry(domain).or_default();
        let Some(Sending { up_to, query_again }) = progress.sending.take() else { return };
        let accepted = matches!(outcome, Outcome::Answered(Message::SwIls(ils)) if matches!(**ils, SwIls::SwAcc(_)));
        if !accepted {
            // The notification may have arrived as a late copy, which the receiver ignores, so the
            // domain must query everything again.
            progress.query_again |= progress.up_to.is_some();
            self.alarms.set_earlier(Alarm::NotifyAgain(domain), now + self.config.retry);
            return;
        }
        progress.query_again &= !query_again;
        progress.up_to = progress.up_to.map(|known| known.max(up_to));
        if self.takeovers.keys().any(|old| old.domain() == domain) {
            // The delay exceeds the lateness of any copy, so the repetition is not classified as a
            // late copy.
            self.alarms.set(Alarm::NotifyAgain(domain), now + self.config.memory + self.config.retry);
        }
        self.notify(domain);
    }
}
