//! The servers of one controller.

use super::storage::Job;
use crate::net::NEVER;
use sanloom_fc::config;
use sanloom_scsi::scsi::IoTag;
use std::collections::VecDeque;

/// Servers that process commands in the order of their arrival, each taking the next one when it
/// is free.
#[derive(Clone, Debug)]
pub(super) struct Station {
    /// Times at which the servers become free, earliest first.
    servers: VecDeque<u64>,
    /// Commands that have not left, in the order in which they end.
    in_flight: VecDeque<Job>,
    /// Start times of the commands that no server has started yet.
    start_times: VecDeque<u64>,
    /// Work assigned to the servers, in ps; see [`Station::busy_ps`].
    assigned_ps: u128,
}

impl Station {
    pub fn new(config: &config::Service) -> Station {
        Station {
            servers: vec![0; config.servers.max(1) as usize].into(),
            in_flight: VecDeque::new(),
            start_times: VecDeque::new(),
            assigned_ps: 0,
        }
    }

    /// Updates [`Station::waiting`].
    #[inline]
    pub fn forget_started(&mut self, now_ps: u64) {
        while self.start_times.front().is_some_and(|&start| start <= now_ps) {
            self.start_times.pop_front();
        }
    }

    /// Returns the number of commands that wait for a server.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.start_times.len()
    }

    /// Assigns a command that arrives at `at_ps` to the server that becomes free first. Afterwards
    /// it waits for `latency_ps`. Returns the start of its service.
    #[inline]
    pub fn assign(&mut self, at_ps: u64, mut job: Job, latency_ps: u64) -> u64 {
        self.assigned_ps += u128::from(job.service_ps);
        let free_ps = self.servers.pop_front().unwrap_or(0);
        let begin_ps = free_ps.max(at_ps);
        let served_ps = begin_ps + job.service_ps;
        insert_sorted(&mut self.servers, served_ps, |&free| free);
        if begin_ps > at_ps {
            self.start_times.push_back(begin_ps);
        }
        job.end_ps = served_ps + latency_ps;
        insert_sorted(&mut self.in_flight, job, |job| job.end_ps);
        begin_ps
    }

    /// Removes a command that waits for a server, so that the commands behind it start earlier.
    /// Returns false, without effect, if there is none.
    pub fn cancel(&mut self, now_ps: u64, nport: u16, tag: IoTag, latency_ps: u64) -> bool {
        let waits = |job: &Job| job.end_ps - latency_ps - job.service_ps > now_ps;
        let Some(at) = self.in_flight.iter().position(|job| job.nport == nport && job.tag == tag && waits(job)) else {
            return false;
        };
        let cancelled = self.in_flight.remove(at);
        self.assigned_ps -= cancelled.map_or(0, |job| u128::from(job.service_ps));
        let (mut queued, started): (Vec<Job>, Vec<Job>) = self.in_flight.drain(..).partition(waits);
        // Servers start commands in the order of their arrival.
        queued.sort_by_key(|job| job.end_ps - latency_ps - job.service_ps);
        self.start_times.clear();
        let busy = started.iter().map(|job| job.end_ps - latency_ps).filter(|&served_ps| served_ps > now_ps);
        let busy: Vec<u64> = busy.collect();
        let servers = self.servers.len();
        self.servers.clear();
        self.servers.resize(servers - busy.len(), 0);
        self.servers.extend(busy);
        self.in_flight.extend(started);
        for job in queued {
            self.assigned_ps -= u128::from(job.service_ps);
            self.assign(now_ps, job, latency_ps);
        }
        true
    }

    /// Removes and returns all commands.
    pub fn stop(&mut self, now_ps: u64) -> VecDeque<Job> {
        self.assigned_ps = self.busy_ps(now_ps);
        self.servers.iter_mut().for_each(|free| *free = now_ps.min(*free));
        self.start_times.clear();
        std::mem::take(&mut self.in_flight)
    }

    /// Returns the time at which the next command ends, or [`NEVER`].
    #[inline]
    pub fn next_ps(&self) -> u64 {
        self.in_flight.front().map_or(NEVER, |job| job.end_ps)
    }

    /// Removes and returns the command that ends first.
    #[inline]
    pub fn pop(&mut self) -> Option<Job> {
        self.in_flight.pop_front()
    }

    /// Returns the busy time of all servers from the start of the measurement to `now_ps`, in ps.
    pub fn busy_ps(&self, now_ps: u64) -> u128 {
        self.assigned_ps.saturating_sub(self.unfinished_ps(now_ps))
    }

    fn unfinished_ps(&self, now_ps: u64) -> u128 {
        self.servers.iter().map(|&free| u128::from(free.saturating_sub(now_ps))).sum()
    }

    /// Restarts the measurement.
    pub fn restart(&mut self, now_ps: u64) {
        self.assigned_ps = self.unfinished_ps(now_ps);
    }
}

/// Inserts an item behind all that are not later. Constant times are always last.
fn insert_sorted<T>(items: &mut VecDeque<T>, item: T, time_of: impl Fn(&T) -> u64) {
    let time = time_of(&item);
    match items.back() {
        Some(last) if time_of(last) > time => {
            let at = items.partition_point(|other| time_of(other) <= time);
            items.insert(at, item);
        }
        _ => items.push_back(item),
    }
}
