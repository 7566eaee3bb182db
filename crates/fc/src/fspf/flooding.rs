//! Flooding with LSU and LSA: records go to every switch and are repeated until acknowledged.

use super::database::{Entry, is_end_of_life};
use super::domain_set::DomainSet;
use super::neighbour::{Event, NeighbourState};
use super::{Alarm, Fspf};
use sanloom_scsi::time::Instant;
use sanloom_wire::sw_ils::{
    AgedRecord, FspfHeader, LinkStateAck, LinkStateUpdate, LsrBody, LsrHeader, SwIls, lsu_flag,
};
use std::cmp::Ordering;

/// Maximum number of records in an LSU. With the port counts of real switches, its sequence stays
/// at a few dozen frames.
const RECORDS_PER_UPDATE: usize = 64;

impl Fspf {
    pub(super) fn update(&mut self, now: Instant, port: u16, update: LinkStateUpdate) {
        if !self.is_exchanging(port, update.header.domain) {
            self.counters.discarded += 1;
            return;
        }
        let LinkStateUpdate { flags, records, .. } = update;
        let headers: Vec<LsrHeader> = records.into_iter().filter_map(|aged| self.record(now, port, aged)).collect();
        if !headers.is_empty() || flags != lsu_flag::UPDATE {
            self.acknowledge(port, flags, headers);
        }
        let full = |fspf: &Fspf| fspf.neighbours.get(&port).is_some_and(|n| n.state == NeighbourState::Full);
        if flags != lsu_flag::UPDATE && full(self) {
            self.answer_exchange(now, port);
        }
        if matches!(flags, lsu_flag::COMPLETE | lsu_flag::LAST) {
            self.transition(now, port, Event::Complete);
        }
        self.check_acknowledged(now, port);
    }

    /// Handles a database exchange of a neighbour that is in state full here. The neighbour
    /// restarted, or our acknowledgement was lost.
    ///
    /// It gets our database again, but not within `retransmit` after the last time, because the
    /// message may be the reply to that one.
    fn answer_exchange(&mut self, now: Instant, port: u16) {
        let Some(neighbour) = self.neighbours.get_mut(&port) else { return };
        if neighbour.database_sent.is_none_or(|at| at + self.config.retransmit <= now) {
            neighbour.end_acknowledged = false;
            self.send_database(now, port);
        }
    }

    /// Processes one record of a neighbour. Returns its acknowledgement, if any.
    fn record(&mut self, now: Instant, port: u16, aged: AgedRecord) -> Option<LsrHeader> {
        let AgedRecord { age_s, record } = &aged;
        let (domain, header) = (record.domain, record.header(*age_s));
        if matches!(record.body, LsrBody::Other { .. }) {
            // Backbone regions are not supported. The acknowledgement prevents retransmission.
            return Some(header);
        }
        let flushed = is_end_of_life(*age_s, self.config.max_age);
        let known = self.database.get(domain);
        match known.map_or(Ordering::Less, |known| known.compare(record, flushed)) {
            Ordering::Equal => {
                self.neighbours.get_mut(&port)?.clear_queued(domain);
                return Some(header);
            }
            // The numbering of this domain restarts, but its last record is not flushed everywhere
            // yet. The new record is accepted after retransmission.
            Ordering::Greater if known.is_some_and(Entry::is_last) => return None,
            Ordering::Greater => {
                // The neighbour's record is older, so ours is sent as the reply.
                let neighbour = self.neighbours.get_mut(&port)?;
                neighbour.unacknowledged.remove(domain);
                neighbour.queued.insert(domain);
                self.queue_ready(port);
                return None;
            }
            Ordering::Less => {}
        }
        if domain == 0 || record.advertiser != domain || !record.is_intact() {
            self.counters.discarded += 1;
            return None;
        }
        if Some(domain) == self.domain {
            self.outdo(now, aged);
            return Some(header);
        }
        if flushed && self.database.get(domain).is_none() {
            return Some(header);
        }
        if !self.database.may_arrive(now, domain, self.config.min_ls_arrival) {
            self.counters.too_early += 1;
            return None;
        }
        self.install(now, Some(port), aged);
        Some(header)
    }

    pub(super) fn acknowledged(&mut self, now: Instant, port: u16, acknowledgement: &LinkStateAck) {
        if !self.is_exchanging(port, acknowledgement.header.domain) {
            self.counters.discarded += 1;
            return;
        }
        let Some(neighbour) = self.neighbours.get_mut(&port) else { return };
        for header in &acknowledgement.records {
            let flushed = is_end_of_life(header.age_s, self.config.max_age);
            let same = |entry: &Entry| {
                entry.record.incarnation == header.incarnation
                    && entry.record.checksum == header.checksum
                    && entry.flushed == flushed
            };
            if self.database.get(header.domain).is_some_and(same) {
                neighbour.unacknowledged.remove(header.domain);
            }
        }
        neighbour.end_acknowledged |= matches!(acknowledgement.flags, lsu_flag::COMPLETE | lsu_flag::LAST);
        self.check_acknowledged(now, port);
    }

    /// Completes the acknowledgement phase if the neighbour has no record left to acknowledge.
    /// Receiving the same or a newer record also counts as acknowledgement.
    fn check_acknowledged(&mut self, now: Instant, port: u16) {
        let Some(neighbour) = self.neighbours.get(&port).filter(|neighbour| neighbour.state.exchanges()) else {
            return;
        };
        if !neighbour.end_acknowledged || !neighbour.unacknowledged.is_empty() {
            return;
        }
        let waits = neighbour.state == NeighbourState::DatabaseWait;
        self.transition(now, port, Event::Acknowledged);
        let state = self.neighbours.get(&port).map(|neighbour| neighbour.state);
        if state != Some(NeighbourState::DatabaseWait) {
            self.alarms.clear(Alarm::Retransmit(port));
        } else if !waits {
            self.alarms.set(Alarm::Retransmit(port), now + self.config.retransmit);
        }
    }

    /// Starts the database exchange with a neighbour.
    pub(super) fn synchronise(&mut self, now: Instant, port: u16) {
        self.alarms.set(Alarm::Stuck(port), now + self.config.dead);
        self.send_database(now, port);
    }

    /// Sends all records. The last LSU is marked and must be acknowledged, even if there are no
    /// records. Records that the neighbour acknowledged before are included, because it may have
    /// restarted and lost them.
    fn send_database(&mut self, now: Instant, port: u16) {
        let mut all = DomainSet::default();
        self.database.iter().for_each(|entry| all.insert(entry.record.domain));
        self.send_records(now, port, all, lsu_flag::SYNCHRONISING, lsu_flag::LAST);
        if all.is_empty() {
            self.send_update(port, lsu_flag::COMPLETE, Vec::new());
        }
        if let Some(neighbour) = self.neighbours.get_mut(&port) {
            neighbour.database_sent = Some(now);
        }
        self.alarms.set(Alarm::Retransmit(port), now + self.config.retransmit);
    }

    /// Repeats unacknowledged records, and requests the missing ones from the neighbour.
    pub(super) fn retransmit(&mut self, now: Instant, port: u16) {
        let Some(neighbour) = self.neighbours.get(&port).filter(|neighbour| neighbour.state.exchanges()) else {
            return;
        };
        let domains = neighbour.unacknowledged;
        let waits = neighbour.state == NeighbourState::DatabaseWait;
        let before = self.counters.updates_sent;
        if !neighbour.end_acknowledged {
            self.send_hello(now, port);
            self.send_database(now, port);
        } else if waits || !domains.is_empty() {
            self.send_records(now, port, domains, lsu_flag::UPDATE, lsu_flag::UPDATE);
            if waits {
                // If the neighbour considers the exchange complete, this makes it send its records
                // again.
                self.send_hello(now, port);
                self.send_update(port, lsu_flag::COMPLETE, Vec::new());
            }
            self.alarms.set(Alarm::Retransmit(port), now + self.config.retransmit);
        }
        self.counters.updates_repeated += self.counters.updates_sent - before;
    }

    /// Queues a changed record for all neighbours except the one that sent it.
    pub(super) fn queue(&mut self, domain: u8, from: Option<u16>) {
        for (&port, neighbour) in &mut self.neighbours {
            neighbour.clear_queued(domain);
            if neighbour.state.exchanges() && from != Some(port) {
                neighbour.queued.insert(domain);
                if !self.alarms.is_set(Alarm::Pace(port)) {
                    self.ready.insert(port);
                }
            }
        }
    }

    /// Marks a neighbour as ready to send, unless its pace timer runs.
    fn queue_ready(&mut self, port: u16) {
        if !self.alarms.is_set(Alarm::Pace(port)) {
            self.ready.insert(port);
        }
    }

    /// Sends queued records to all neighbours without a running pace timer.
    pub(super) fn flood(&mut self, now: Instant) {
        while let Some(port) = self.ready.pop_first() {
            let Some(neighbour) = self.neighbours.get_mut(&port) else { continue };
            let domains = std::mem::take(&mut neighbour.queued);
            if domains.is_empty() {
                continue;
            }
            self.send_records(now, port, domains, lsu_flag::UPDATE, lsu_flag::UPDATE);
            self.alarms.set(Alarm::Pace(port), now + self.config.pace);
            self.alarms.set_earlier(Alarm::Retransmit(port), now + self.config.retransmit);
        }
    }

    fn send_records(&mut self, now: Instant, port: u16, domains: DomainSet, flags: u8, last_flags: u8) {
        let entries = domains.iter().filter_map(|domain| self.database.get(domain));
        let mut records: Vec<AgedRecord> = entries.map(|entry| entry.aged(now, self.config.max_age)).collect();
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(RECORDS_PER_UPDATE));
            self.send_update(port, if rest.is_empty() { last_flags } else { flags }, records);
            records = rest;
        }
        if let Some(neighbour) = self.neighbours.get_mut(&port) {
            neighbour.unacknowledged.add(domains);
        }
    }

    fn send_update(&mut self, port: u16, flags: u8, records: Vec<AgedRecord>) {
        let Some(domain) = self.domain else { return };
        self.counters.updates_sent += 1;
        self.send(port, SwIls::Lsu(LinkStateUpdate { header: FspfHeader::new(domain), flags, records }));
    }

    fn acknowledge(&mut self, port: u16, flags: u8, records: Vec<LsrHeader>) {
        let Some(domain) = self.domain else { return };
        self.counters.acknowledgements_sent += 1;
        self.send(port, SwIls::Lsa(LinkStateAck { header: FspfHeader::new(domain), flags, records }));
    }

    /// Returns true if records are exchanged with this domain over this link.
    fn is_exchanging(&self, port: u16, domain: u8) -> bool {
        let neighbour = self.neighbours.get(&port);
        neighbour.is_some_and(|neighbour| neighbour.state.exchanges() && neighbour.domain == domain)
    }
}
