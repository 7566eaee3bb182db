//! A storage system: a controller with a transaction rate in front of a RAM disk (document 001, sections 2.4 and 4).

use crate::stats::{LatencyHistogram, TimeWeighted};
use sanloom_core::config;
use sanloom_core::scsi::{IoStatus, IoTag};
use std::collections::VecDeque;

/// The controller of a storage system. Commands are served in the order they came, by one or more servers with the same
/// constant time; the medium adds its latency without keeping a server busy.
///
/// What a command does to the medium is the seam where caches, RAID and disks come in: they replace
/// [`Controller::submit`]'s constant time and nothing else.
#[derive(Clone, Debug)]
pub struct Controller {
    config: config::Service,
    /// When each server will be free.
    servers: VecDeque<u64>,
    /// Commands under way, the next to end in front.
    under_way: VecDeque<Job>,
    /// Commands that no server has begun, by the time one will.
    begins: VecDeque<u64>,
    /// Commands under way over time.
    pub depth: TimeWeighted,
    /// From a command's arrival at the controller until it is done.
    pub latency: LatencyHistogram,
    /// How long commands waited until a server began with them.
    pub waiting: LatencyHistogram,
    /// Work given to the servers, in ps; see [`Controller::busy_ps`].
    given_ps: u128,
    /// Commands under way times ps before the last restart.
    depth_before: u128,
    /// Commands refused because the queue was full.
    pub refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    end_ps: u64,
    arrival_ps: u64,
    nport: u16,
    tag: IoTag,
    write: bool,
    bytes: u32,
}

/// A command that the controller has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// N_Port that it came through.
    pub nport: u16,
    /// Its tag.
    pub tag: IoTag,
    /// How it ended.
    pub status: IoStatus,
    /// It was a write.
    pub write: bool,
    /// Its data in bytes.
    pub bytes: u32,
}

impl Controller {
    /// An idle controller. Its histograms keep `digits` significant digits: with thousands of controllers, fewer.
    pub fn new(config: &config::Service, digits: u8) -> Controller {
        Controller {
            config: *config,
            servers: vec![0; config.servers.max(1) as usize].into(),
            under_way: VecDeque::new(),
            begins: VecDeque::new(),
            depth: TimeWeighted::new(0),
            latency: LatencyHistogram::with_digits(digits),
            waiting: LatencyHistogram::with_digits(digits),
            given_ps: 0,
            depth_before: 0,
            refused: 0,
        }
    }

    /// A command comes. Refused at once: an answer; otherwise it ends when [`Controller::next_end`] says.
    pub fn submit(&mut self, now_ps: u64, nport: u16, tag: IoTag, write: bool, bytes: u32) -> Option<Ended> {
        while self.begins.front().is_some_and(|&begin| begin <= now_ps) {
            self.begins.pop_front();
        }
        if self.begins.len() >= self.config.max_queued as usize {
            self.refused += 1;
            return Some(Ended { nport, tag, status: IoStatus::TaskSetFull, write, bytes });
        }
        // All servers take equally long, so the one that was given work first is free first.
        let free_ps = self.servers.pop_front().unwrap_or(0);
        let begin_ps = free_ps.max(now_ps);
        let served_ps = begin_ps + self.config.time.0;
        self.servers.push_back(served_ps);
        self.given_ps += u128::from(self.config.time.0);
        self.waiting.record_ps(begin_ps - now_ps);
        if begin_ps > now_ps {
            self.begins.push_back(begin_ps);
        }
        let end_ps = served_ps + self.config.media_latency.0;
        self.under_way.push_back(Job { end_ps, arrival_ps: now_ps, nport, tag, write, bytes });
        self.depth.raise(now_ps, 1);
        None
    }

    /// When the next command ends.
    pub fn next_end(&self) -> Option<u64> {
        self.under_way.front().map(|job| job.end_ps)
    }

    /// The next command, if it has ended by now.
    pub fn pop_ended(&mut self, now_ps: u64) -> Option<Ended> {
        let job = *self.under_way.front().filter(|job| job.end_ps <= now_ps)?;
        self.under_way.pop_front();
        self.depth.lower(now_ps, 1);
        self.latency.record_ps(now_ps - job.arrival_ps);
        let Job { nport, tag, write, bytes, .. } = job;
        Some(Ended { nport, tag, status: IoStatus::Good, write, bytes })
    }

    /// Time that the servers were busy from the start of the measurement to `now_ps`, all servers together.
    pub fn busy_ps(&self, now_ps: u64) -> u128 {
        self.given_ps.saturating_sub(self.still_to_do_ps(now_ps))
    }

    /// Commands under way times picoseconds since the beginning, restarts or not.
    pub fn depth_area(&self, now_ps: u64) -> u128 {
        self.depth_before + self.depth.area_at(now_ps)
    }

    fn still_to_do_ps(&self, now_ps: u64) -> u128 {
        self.servers.iter().map(|&free| u128::from(free.saturating_sub(now_ps))).sum()
    }

    /// Starts the measurement anew.
    pub fn restart(&mut self, now_ps: u64) {
        self.depth_before = self.depth_area(now_ps);
        self.depth.restart(now_ps);
        self.latency.clear();
        self.waiting.clear();
        self.given_ps = self.still_to_do_ps(now_ps);
        self.refused = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_core::config::{Picos, Service};

    fn controller(servers: u32, max_queued: u32) -> Controller {
        let time = Picos::from_us(40);
        Controller::new(&Service { time, servers, max_queued, media_latency: Picos::from_us(5) }, 3)
    }

    fn ends(controller: &mut Controller) -> Vec<u64> {
        let mut ends = Vec::new();
        while let Some(at) = controller.next_end() {
            assert!(controller.pop_ended(at).is_some());
            ends.push(at / 1_000_000);
        }
        ends
    }

    #[test]
    fn commands_follow_each_other_at_the_transaction_rate() {
        let mut controller = controller(1, 100);
        for tag in 0..3 {
            assert_eq!(controller.submit(0, 0, IoTag(tag), false, 512), None);
        }
        assert_eq!(ends(&mut controller), [45, 85, 125]);
    }

    #[test]
    fn two_servers_work_side_by_side() {
        let mut controller = controller(2, 100);
        for tag in 0..4 {
            assert_eq!(controller.submit(0, 0, IoTag(tag), false, 512), None);
        }
        assert_eq!(ends(&mut controller), [45, 45, 85, 85]);
    }

    #[test]
    fn a_full_queue_refuses_with_task_set_full() {
        let mut controller = controller(1, 1);
        assert_eq!(controller.submit(0, 0, IoTag(0), false, 512), None);
        assert_eq!(controller.submit(0, 0, IoTag(1), false, 512), None);
        let refused = controller.submit(0, 7, IoTag(2), false, 512);
        assert_eq!(
            refused,
            Some(Ended { nport: 7, tag: IoTag(2), status: IoStatus::TaskSetFull, write: false, bytes: 512 })
        );
        assert_eq!(controller.submit(40_000_000, 0, IoTag(3), false, 512), None);
        assert_eq!(controller.refused, 1);
    }

    #[test]
    fn a_server_is_busy_no_longer_than_the_time_that_has_passed() {
        let mut controller = controller(1, 100);
        for tag in 0..10 {
            assert_eq!(controller.submit(0, 0, IoTag(tag), false, 512), None);
        }
        assert_eq!(controller.busy_ps(100_000_000), 100_000_000);
        controller.restart(100_000_000);
        assert_eq!(controller.busy_ps(100_000_000), 0);
        assert_eq!(controller.busy_ps(500_000_000), 300_000_000);
        assert_eq!(controller.busy_ps(400_000_000), 300_000_000);
    }
}
