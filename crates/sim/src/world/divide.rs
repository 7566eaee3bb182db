//! Division of a world into parts for several threads, and their reunion.
//!
//! Each part is a [`World`] of the same lab. Its own nodes have their state; all others are as new
//! and have no events. Between two divisions, the whole state is in one world.

use super::measure::RequestTotals;
use super::notes::Note;
use super::{NodePort, Owner, World, host};
use crate::net::divide::{self, CutLane};
use crate::net::{NEVER, Observed, Share, Turn, parts};
use sanloom_fc::config::Node;

/// The nodes of one part.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorldShare {
    pub net: Share,
    pub hosts: Vec<u16>,
    pub storage: Vec<u16>,
}

/// Everything that the parts record in the order of events.
#[derive(Default)]
pub(crate) struct Records {
    observed: Vec<(Turn, Observed)>,
    notes: Vec<(Turn, Note)>,
}

impl World {
    /// Returns the node that owns a timer, or `None` for the timers of the whole lab.
    pub(crate) fn node_of_timer(&self, timer: u32) -> Option<Node> {
        let timers = self.timers;
        Some(if timer < timers.switch {
            self.node_of_nport(timer as u16)
        } else if timer < timers.host {
            Node::Switch((timer - timers.switch) as u16)
        } else if timer < timers.storage {
            Node::Host((timer - timers.host) as u16)
        } else if timer < timers.processor {
            Node::Storage((timer - timers.storage) as u16)
        } else if timer < timers.fault {
            Node::Switch((timer - timers.processor) as u16)
        } else {
            return None;
        })
    }

    /// Returns the number of timers.
    pub(crate) fn timers(&self) -> u32 {
        self.timers.all
    }

    /// Returns the node that owns an N_Port.
    pub(crate) fn node_of_nport(&self, nport: u16) -> Node {
        match self.nports.node(nport).owner {
            Owner::Host { host, .. } => Node::Host(host),
            Owner::Storage { storage, .. } => Node::Storage(storage),
        }
    }

    /// Returns the next time at which an event may need the whole world: a step of the schedule, a
    /// sample after those that the parts take themselves, or an effect of a watchdog.
    pub(crate) fn next_common_ps(&self) -> u64 {
        let [fault, sample] = [self.timers.fault, self.timers.sample].map(|timer| parts::timer_ps(&self.net, timer));
        let deferred_ps = self.lane_series.deferrable().saturating_mul(self.sample_step_ps());
        divide::next_watchdog_effect_ps(&self.net).min(fault).min(sample.saturating_add(deferred_ps))
    }

    /// Returns the reason why the state of the world cannot be divided, if there is one. Test beds
    /// record the requests to switches in one log, and all switches know each priority and each
    /// quarantine at once.
    pub(crate) fn is_indivisible(&self) -> Option<&'static str> {
        if self.control.command_log.is_some() {
            Some("requests to switches are logged")
        } else if self.hosts.request_log.is_on() {
            Some("requests of hosts are logged")
        } else if self.quality.is_used() {
            Some("zones have priorities, or a switch has a quarantine")
        } else if !self.lab.ethernet_links.is_empty() {
            Some("Ethernet is simulated by one thread")
        } else if !self.lab.infiniband.links.is_empty() {
            Some("InfiniBand is simulated by one thread")
        } else if self.hosts.out_of_band.is_some() {
            Some("hosts share a metadata server")
        } else {
            None
        }
    }

    /// Moves the state of a share to another world of the same lab, which has none of it.
    fn hand_over(&mut self, to: &mut World, share: &WorldShare) {
        divide::hand_over(&mut self.net, &mut to.net, &share.net);
        let nports = &share.net.nports;
        host::divide::hand_over(&mut self.hosts, &mut to.hosts, &share.hosts, nports);
        self.storage.hand_over(&mut to.storage, &share.storage, nports);
        for &switch in &share.net.switches {
            let switch = usize::from(switch);
            std::mem::swap(&mut self.control.switches[switch], &mut to.control.switches[switch]);
        }
        let swap =
            |own: &mut [NodePort], other: &mut [NodePort], at: usize| std::mem::swap(&mut own[at], &mut other[at]);
        for &nport in nports {
            swap(&mut self.nports.nodes, &mut to.nports.nodes, usize::from(nport));
        }
    }

    /// Divides the world. `self` becomes the first part and `others` the other ones.
    pub(crate) fn divide(&mut self, others: &mut [World], shares: &[WorldShare]) {
        let now = self.net.now();
        let cut: Vec<Vec<CutLane>> = shares.iter().map(|share| divide::read_cut(&self.net, &share.net)).collect();
        shares.iter().for_each(|share| divide::clear_cut(&mut self.net, &share.net));
        for (other, share) in others.iter_mut().zip(&shares[1..]) {
            self.hand_over(other, share);
            other.start_ps = self.start_ps;
            other.hosts.totals = self.hosts.totals;
            other.nports.copy_foreign(&self.nports);
            other.lane_series.copy_length(&self.lane_series);
            other.net.set_timer(self.timers.sample, parts::timer_ps(&self.net, self.timers.sample));
        }
        for ((part, share), cut) in std::iter::once(self).chain(others).zip(shares).zip(&cut) {
            divide::put_cut(&mut part.net, cut);
            divide::begin_part(&mut part.net, &share.net, shares.len(), now);
            part.notes.begin_turns();
        }
    }

    /// Ends [`World::divide`] when all parts have reached the same time and nothing is between
    /// them.
    pub(crate) fn unite(&mut self, others: &mut [World], shares: &[WorldShare], base: RequestTotals) {
        let mut records = Records::default();
        let mut cut = Vec::new();
        for (part, share) in std::iter::once(&mut *self).chain(&mut *others).zip(shares) {
            records.observed.extend(divide::end_part(&mut part.net));
            records.notes.extend(part.notes.end_turns());
            cut.extend(divide::read_cut(&part.net, &share.net));
            divide::clear_cut(&mut part.net, &share.net);
        }
        for (other, share) in others.iter_mut().zip(&shares[1..]) {
            other.hand_over(self, share);
            divide::add_counts(&mut self.net, &mut other.net);
            self.notes.add_omitted(&mut other.notes);
            host::divide::add_counts(&mut self.hosts, &mut other.hosts, base);
            self.control_frames += std::mem::take(&mut other.control_frames);
            other.net.set_timer(self.timers.sample, NEVER);
        }
        divide::put_cut(&mut self.net, &cut);
        self.net.fc.recorder.append(records.observed);
        self.notes.append(records.notes);
        self.lane_series.unite(others.iter_mut().map(|other| &mut other.lane_series));
        divide::reschedule(&mut self.net);
    }
}
