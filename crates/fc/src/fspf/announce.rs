//! Link-state record of this switch, and expiry of all records.

use super::database::Entry;
use super::neighbour::Neighbour;
use super::paths::OwnLink;
use super::{Alarm, Fspf};
use sanloom_scsi::time::Instant;
use sanloom_wire::sw_ils::{AgedRecord, Incarnation, LinkDescriptor, LinkStateRecord};
use std::sync::Arc;

impl Fspf {
    /// Writes a new record: at once, or as soon as the pace limit permits.
    pub(super) fn announce(&mut self, now: Instant) {
        let (Some(own), Some(incarnation)) = (self.domain, self.incarnation) else { return };
        let paced = self.announced_at.map_or(now, |at| at + self.config.pace);
        let at = paced.max(self.announcements.next(now, self.config.min_ls_arrival));
        if at > now {
            self.alarms.set_earlier(Alarm::Announce, at);
            return;
        }
        self.announcements.take();
        self.announced_at = Some(now);
        self.counters.announcements += 1;
        self.alarms.clear(Alarm::Announce);
        self.alarms.set(Alarm::Refresh, now + self.config.refresh);
        let links = self.own_links().into_iter().map(|own| own.link).collect();
        let record = Arc::new(LinkStateRecord::of_switch(own, incarnation, links));
        self.install(now, None, AgedRecord { age_s: 0, record });
        self.incarnation = incarnation.next();
        if self.incarnation.is_none() {
            // No record can be newer than one with the last incarnation number. After it is flushed
            // everywhere, numbering restarts with the first one.
            self.flush(now, own);
        }
    }

    /// Links that count for paths, sorted by port.
    pub(super) fn own_links(&self) -> Vec<OwnLink> {
        let counting = self.neighbours.iter().filter(|(_, neighbour)| neighbour.counts());
        counting
            .map(|(&port, neighbour)| OwnLink {
                port,
                bundle: neighbour.bundle,
                link: LinkDescriptor {
                    neighbour: neighbour.domain,
                    port: port.into(),
                    neighbour_port: neighbour.port,
                    kind: LinkDescriptor::POINT_TO_POINT,
                    cost: neighbour.cost,
                },
            })
            .collect()
    }

    /// Handles a record of the own domain that this switch did not write, or wrote before a
    /// restart. The own record must become newer.
    pub(super) fn outdo(&mut self, now: Instant, foreign: AgedRecord) {
        let (domain, incarnation) = (foreign.record.domain, foreign.record.incarnation);
        match incarnation.next() {
            Some(next) => {
                if self.incarnation.is_some_and(|own| next.is_newer_than(own)) {
                    self.incarnation = Some(next);
                }
                self.announce(now);
            }
            None => {
                self.install(now, None, foreign);
                self.incarnation = None;
                self.flush(now, domain);
            }
        }
    }

    /// Inserts a record into the database and queues it for all neighbours except the one that sent
    /// it.
    pub(super) fn install(&mut self, now: Instant, from: Option<u16>, aged: AgedRecord) {
        let domain = aged.record.domain;
        let entry = Entry::new(now, aged, self.config.max_age);
        self.alarms.set_earlier(Alarm::Expire, entry.expires(self.config.max_age));
        let (links, flushed) = (entry.record.clone(), entry.flushed);
        let old = self.database.insert(entry);
        if flushed {
            self.flushing.insert(domain);
        } else {
            self.flushing.remove(domain);
        }
        let same = old.is_some_and(|old| old.flushed == flushed && old.record.links() == links.links());
        if !same {
            self.compute_soon(now);
        }
        self.queue(domain, from);
    }

    /// Starts to flush a record from all databases.
    fn flush(&mut self, now: Instant, domain: u8) {
        if let Some(entry) = self.database.get_mut(domain) {
            entry.flush(now, self.config.max_age);
            self.flushing.insert(domain);
            self.compute_soon(now);
            self.queue(domain, None);
        }
    }

    /// Flushes records that have reached the maximum age.
    pub(super) fn expire(&mut self, now: Instant) {
        let max_age = self.config.max_age;
        let alive = |entry: &&Entry| !entry.flushed;
        let too_old = |entry: &&Entry| entry.expires(max_age) <= now;
        let old: Vec<u8> = self.database.iter().filter(alive).filter(too_old).map(|e| e.record.domain).collect();
        old.into_iter().for_each(|domain| self.flush(now, domain));
        if let Some(next) = self.database.iter().filter(alive).map(|entry| entry.expires(max_age)).min() {
            self.alarms.set(Alarm::Expire, next);
        }
    }

    /// Removes flushed records that every neighbour acknowledged. After a flush of the own record,
    /// numbering restarts with the first incarnation.
    pub(super) fn remove_flushed(&mut self, now: Instant) {
        if self.flushing.is_empty() || !self.neighbours.values().all(Neighbour::is_at_rest) {
            return;
        }
        for domain in self.flushing.iter() {
            if self.neighbours.values().any(|n| n.queued.has(domain) || n.unacknowledged.has(domain)) {
                continue;
            }
            self.flushing.remove(domain);
            self.database.remove(domain);
            if Some(domain) == self.domain {
                self.incarnation = Some(Incarnation::FIRST);
                self.announce(now);
            }
        }
    }
}
