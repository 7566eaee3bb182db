//! A storage system: a controller with a transaction rate in front of a RAM disk (document 001,
//! sections 2.4 and 4) or of disks.

use super::disks::Disks;
use crate::net::NEVER;
use crate::rng::StreamRng;
use crate::stats::{LatencyHistogram, TimeWeighted};
use crate::workload::sample_ps;
use sanloom_fc::config;
use sanloom_scsi::scsi::{Io, IoOp, IoStatus, IoTag};
use sanloom_storage::backstore::Outcome;
use std::collections::VecDeque;

/// The controller of a storage system. One or more servers with the same distribution of service
/// times process commands in order of arrival. The medium adds its latency without occupying a
/// server. Behind it, a command may need the disk of its LUN.
#[derive(Clone, Debug)]
pub struct Controller {
    config: config::Service,
    rng: StreamRng,
    /// Times at which the servers become free, earliest first.
    servers: VecDeque<u64>,
    /// Commands that have not left the controller, in the order in which it ends them.
    in_flight: VecDeque<Job>,
    disks: Option<Box<Disks>>,
    /// Start times of the commands that no server has started yet.
    start_times: VecDeque<u64>,
    /// Number of in-flight commands over time.
    pub depth: TimeWeighted,
    /// Times from the arrival of a command at the controller until its completion.
    pub latency: LatencyHistogram,
    /// Times that commands wait for a server, as expected on their arrival: an abort of another
    /// command may shorten the wait.
    pub waiting: LatencyHistogram,
    /// Work assigned to the servers, in ps; see [`Controller::busy_ps`].
    assigned_ps: u128,
    /// Integral of in-flight commands over time before the last restart, in commands × ps.
    depth_before: u128,
    /// Commands rejected because the queue was full.
    pub refused: u64,
}

/// A command in a storage system.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Time at which the controller ends it.
    end_ps: u64,
    arrival_ps: u64,
    /// Time that it occupies a server.
    service_ps: u64,
    nport: u16,
    tag: IoTag,
    bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// First block.
    pub lba: u64,
    /// Index of the LUN.
    pub unit: u16,
    pub op: IoOp,
    pub write: bool,
    /// True if the data must be on the medium.
    pub fua: bool,
}

impl Job {
    /// Returns whether the command needs the disk of its LUN.
    fn needs_disk(&self) -> bool {
        !matches!(self.op, IoOp::Unmap | IoOp::Mapping)
    }
}

/// A command that the controller has completed or rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// N_Port through which the command arrived.
    pub nport: u16,
    pub tag: IoTag,
    pub status: IoStatus,
    /// True for a write, false for a read.
    pub write: bool,
    pub bytes: u32,
}

impl Controller {
    /// Returns an idle controller. Its histograms keep `digits` significant digits; use fewer if
    /// there are thousands of controllers. `rng` gives the service times.
    pub fn new(config: &config::Service, digits: u8, rng: StreamRng) -> Controller {
        Controller {
            config: *config,
            rng,
            servers: vec![0; config.servers.max(1) as usize].into(),
            in_flight: VecDeque::new(),
            disks: None,
            start_times: VecDeque::new(),
            depth: TimeWeighted::new(0),
            latency: LatencyHistogram::with_digits(digits),
            waiting: LatencyHistogram::with_digits(digits),
            assigned_ps: 0,
            depth_before: 0,
            refused: 0,
        }
    }

    /// Puts disks behind the controller.
    pub fn with_disks(mut self, disks: Disks) -> Controller {
        self.disks = Some(Box::new(disks));
        self
    }

    /// Returns the disks behind the controller.
    pub fn disks(&self) -> Option<&Disks> {
        self.disks.as_deref()
    }

    /// Returns the disks behind the controller, to let them fail.
    pub fn disks_mut(&mut self) -> Option<&mut Disks> {
        self.disks.as_deref_mut()
    }

    /// The power fails: no command in flight ends well. Appends them to `ended`.
    pub fn power_off(&mut self, now_ps: u64, ended: &mut Vec<Ended>) {
        let mut jobs: Vec<Job> = self.in_flight.drain(..).collect();
        jobs.extend(self.disks.iter_mut().flat_map(|disks| disks.power_off(now_ps)));
        self.assigned_ps = self.assigned_ps.saturating_sub(self.unfinished_ps(now_ps));
        self.servers.iter_mut().for_each(|free| *free = now_ps.min(*free));
        self.start_times.clear();
        self.depth.lower(now_ps, jobs.len() as u64);
        ended.extend(jobs.iter().map(|job| Ended {
            nport: job.nport,
            tag: job.tag,
            status: IoStatus::Busy,
            write: job.write,
            bytes: job.bytes,
        }));
    }

    /// Accepts a command. Returns the result at once if it is rejected.
    pub fn submit(&mut self, now_ps: u64, nport: u16, io: &Io) -> Option<Ended> {
        while self.start_times.front().is_some_and(|&start| start <= now_ps) {
            self.start_times.pop_front();
        }
        // A flush counts as a write, as at the host.
        let write = io.op.changes_medium() || io.op == IoOp::Flush;
        let &Io { tag, bytes, blocks, lba, unit, op, fua, .. } = io;
        if self.is_full() {
            self.refused += 1;
            return Some(Ended { nport, tag, status: IoStatus::TaskSetFull, write, bytes });
        }
        let service_ps = sample_ps(&self.config.time, &mut self.rng);
        self.assigned_ps += u128::from(service_ps);
        let (end_ps, arrival_ps) = (0, now_ps);
        let job = Job { end_ps, arrival_ps, service_ps, nport, tag, bytes, blocks, lba, unit, op, write, fua };
        let begin_ps = self.assign(now_ps, job);
        self.waiting.record_ps(begin_ps - now_ps);
        self.depth.raise(now_ps, 1);
        None
    }

    /// Assigns a command to the server that becomes free first. Returns the start of its service.
    #[inline]
    fn assign(&mut self, now_ps: u64, mut job: Job) -> u64 {
        let free_ps = self.servers.pop_front().unwrap_or(0);
        let begin_ps = free_ps.max(now_ps);
        let served_ps = begin_ps + job.service_ps;
        insert_sorted(&mut self.servers, served_ps, |&free| free);
        if begin_ps > now_ps {
            self.start_times.push_back(begin_ps);
        }
        job.end_ps = served_ps + self.config.media_latency.0;
        insert_sorted(&mut self.in_flight, job, |job| job.end_ps);
        begin_ps
    }

    /// Removes an aborted command that waits for a server, so that the commands behind it start
    /// earlier. A command that a server has started continues, and so does one that waits for a
    /// disk.
    pub fn cancel(&mut self, now_ps: u64, nport: u16, tag: IoTag) {
        let latency_ps = self.config.media_latency.0;
        let waits = |job: &Job| job.end_ps - latency_ps - job.service_ps > now_ps;
        let Some(at) = self.in_flight.iter().position(|job| job.nport == nport && job.tag == tag && waits(job)) else {
            return;
        };
        let cancelled = self.in_flight.remove(at);
        self.assigned_ps -= cancelled.map_or(0, |job| u128::from(job.service_ps));
        self.depth.lower(now_ps, 1);
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
            self.assign(now_ps, job);
        }
    }

    /// Returns whether as many commands wait as may.
    #[inline]
    fn is_full(&self) -> bool {
        let (own, most) = (self.start_times.len(), self.config.max_queued as usize);
        let in_disks = |disks: &Disks| own + disks.commands() >= most && own + disks.waiting() >= most;
        own >= most || self.disks.as_deref().is_some_and(in_disks)
    }

    /// Returns the time of the next event: a command completes or moves on.
    #[inline]
    pub fn next_ps(&mut self) -> Option<u64> {
        let own = self.in_flight.front().map(|job| job.end_ps);
        match &mut self.disks {
            None => own,
            Some(disks) => Some(disks.next_ps().min(own.unwrap_or(NEVER))).filter(|&at| at != NEVER),
        }
    }

    /// Removes and returns the next command, if it has completed by `now_ps`.
    #[inline]
    pub fn pop_ended(&mut self, now_ps: u64) -> Option<Ended> {
        let (job, outcome) = self.pop_job(now_ps)?;
        self.depth.lower(now_ps, 1);
        self.latency.record_ps(now_ps - job.arrival_ps);
        let Job { nport, tag, write, bytes, .. } = job;
        let status = match outcome {
            // The storage system does not notice wrong data.
            Outcome::Good | Outcome::Wrong => IoStatus::Good,
            Outcome::Lost => IoStatus::MediumError,
        };
        Some(Ended { nport, tag, status, write, bytes })
    }

    fn pop_job(&mut self, now_ps: u64) -> Option<(Job, Outcome)> {
        while let Some(&job) = self.in_flight.front().filter(|job| job.end_ps <= now_ps) {
            self.in_flight.pop_front();
            match &mut self.disks {
                Some(disks) if job.needs_disk() => disks.submit(now_ps, job),
                _ => return Some((job, Outcome::Good)),
            }
        }
        self.disks.as_mut()?.pop_ended(now_ps)
    }

    /// Returns the total busy time of all servers from the start of the measurement to `now_ps`, in
    /// ps.
    pub fn busy_ps(&self, now_ps: u64) -> u128 {
        self.assigned_ps.saturating_sub(self.unfinished_ps(now_ps))
    }

    /// Returns the integral of in-flight commands over time, in commands × ps, across restarts.
    pub fn depth_area(&self, now_ps: u64) -> u128 {
        self.depth_before + self.depth.area_at(now_ps)
    }

    fn unfinished_ps(&self, now_ps: u64) -> u128 {
        self.servers.iter().map(|&free| u128::from(free.saturating_sub(now_ps))).sum()
    }

    /// Restarts the measurement.
    pub fn restart(&mut self, now_ps: u64) {
        self.depth_before = self.depth_area(now_ps);
        self.depth.restart(now_ps);
        self.latency.clear();
        self.waiting.clear();
        self.assigned_ps = self.unfinished_ps(now_ps);
        self.refused = 0;
        if let Some(disks) = &mut self.disks {
            disks.restart(now_ps);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, exponential, stream_rng};
    use sanloom_fc::config::{Lun, Picos, Service, TimeDistribution};
    use sanloom_scsi::scsi::NexusId;
    use sanloom_storage::backstore::BackstoreConfig;
    use sanloom_storage::disk::{Disk, preset};

    /// A read of one block.
    fn read(tag: u32) -> Io {
        let nexus = NexusId(0);
        Io { tag: IoTag(tag), nexus, unit: 0, op: IoOp::Read, lba: 0, blocks: 1, bytes: 512, fua: false }
    }

    fn controller(servers: u32, max_queued: u32) -> Controller {
        let time = Picos::from_us(40);
        let service = Service { time: time.into(), servers, max_queued, media_latency: Picos::from_us(5) };
        Controller::new(&service, 3, stream_rng(1, Purpose::Service, &[]))
    }

    fn ends(controller: &mut Controller) -> Vec<u64> {
        let mut ends = Vec::new();
        while let Some(at) = controller.next_ps() {
            assert!(controller.pop_ended(at).is_some());
            ends.push(at / 1_000_000);
        }
        ends
    }

    #[test]
    fn commands_follow_each_other_at_the_transaction_rate() {
        let mut controller = controller(1, 100);
        for tag in 0..3 {
            assert_eq!(controller.submit(0, 0, &read(tag)), None);
        }
        assert_eq!(ends(&mut controller), [45, 85, 125]);
    }

    #[test]
    fn two_servers_work_side_by_side() {
        let mut controller = controller(2, 100);
        for tag in 0..4 {
            assert_eq!(controller.submit(0, 0, &read(tag)), None);
        }
        assert_eq!(ends(&mut controller), [45, 45, 85, 85]);
    }

    #[test]
    fn random_service_times_give_the_wait_of_theory() {
        const COMMANDS: u32 = 400_000;
        let mean = Picos::from_us(40);
        let time = TimeDistribution::Exponential { mean };
        for servers in [1, 2] {
            let service = Service { time, servers, max_queued: u32::MAX, media_latency: Picos::ZERO };
            let mut controller = Controller::new(&service, 3, stream_rng(1, Purpose::Service, &[]));
            let mut rng = stream_rng(1, Purpose::Arrival { process: 0 }, &[]);
            let mut now = 0;
            let mut last = 0;
            for tag in 0..COMMANDS {
                // Half of the capacity.
                now += (2.0 / f64::from(servers) * mean.0 as f64 * exponential(&mut rng)) as u64;
                while let Some(at) = controller.next_ps().filter(|&at| at <= now) {
                    assert!(at >= last && controller.pop_ended(at).is_some());
                    last = at;
                }
                controller.submit(now, 0, &read(tag));
            }
            // Erlang: half of the commands wait at one server and a third at two, each for a mean
            // of 2 / servers service times.
            let wait = [1.0, 1.0 / 3.0][servers as usize - 1];
            let ours = controller.waiting.exact().mean().unwrap() / mean.0 as f64;
            assert!((ours / wait - 1.0).abs() < 0.04, "{servers} servers: {ours}, theory {wait}");
        }
    }

    #[test]
    fn an_aborted_command_that_waits_gives_its_time_to_the_next_one() {
        for (servers, expected) in [(1, vec![45, 85, 125]), (2, vec![45, 45, 85, 85])] {
            let mut controller = controller(servers, 100);
            let commands = 2 + servers;
            for tag in 0..commands + 1 {
                assert_eq!(controller.submit(0, 0, &read(tag)), None);
            }
            let now_ps = 10_000_000;
            // The first command is in service, and the other N_Port has no command with this tag.
            controller.cancel(now_ps, 0, IoTag(0));
            controller.cancel(now_ps, 1, IoTag(servers));
            controller.cancel(now_ps, 0, IoTag(servers));
            controller.cancel(now_ps, 0, IoTag(servers));
            assert_eq!(controller.depth.level(), u64::from(commands));
            assert_eq!(ends(&mut controller), expected, "{servers} servers");
            assert_eq!(controller.busy_ps(1_000_000_000), u128::from(commands) * 40_000_000);
        }
    }

    #[test]
    fn a_full_queue_refuses_with_task_set_full() {
        let mut controller = controller(1, 1);
        assert_eq!(controller.submit(0, 0, &read(0)), None);
        assert_eq!(controller.submit(0, 0, &read(1)), None);
        let refused = controller.submit(0, 7, &read(2));
        assert_eq!(
            refused,
            Some(Ended { nport: 7, tag: IoTag(2), status: IoStatus::TaskSetFull, write: false, bytes: 512 })
        );
        assert_eq!(controller.submit(40_000_000, 0, &read(3)), None);
        assert_eq!(controller.refused, 1);
    }

    #[test]
    fn a_server_is_busy_no_longer_than_the_time_that_has_passed() {
        let mut controller = controller(1, 100);
        for tag in 0..10 {
            assert_eq!(controller.submit(0, 0, &read(tag)), None);
        }
        assert_eq!(controller.busy_ps(100_000_000), 100_000_000);
        controller.restart(100_000_000);
        assert_eq!(controller.busy_ps(100_000_000), 0);
        assert_eq!(controller.busy_ps(500_000_000), 300_000_000);
        assert_eq!(controller.busy_ps(400_000_000), 300_000_000);
    }

    #[test]
    fn a_compare_and_write_waits_for_the_medium_despite_a_write_cache() {
        let time = Picos::ZERO.into();
        let service = Service { time, servers: 1, max_queued: 10, media_latency: Picos::ZERO };
        let end_ps = |op| {
            let disk = Disk::new(&preset::cheetah_9lp()).expect("the preset is valid");
            let luns = [Lun { blocks: 10_000_000, block_bytes: 512 }];
            let disks = Disks::new(&BackstoreConfig::default(), &disk, &luns).expect("the parameters fit");
            let mut controller = Controller::new(&service, 3, stream_rng(1, Purpose::Service, &[])).with_disks(disks);
            assert_eq!(controller.submit(0, 0, &Io { op, lba: 5_000_000, ..read(0) }), None);
            while let Some(at) = controller.next_ps() {
                if controller.pop_ended(at).is_some() {
                    return at;
                }
            }
            0
        };
        let [write, compare] = [end_ps(IoOp::Write), end_ps(IoOp::CompareAndWrite)];
        assert!(0 < write && write < 1_000_000_000 && compare > 3_000_000_000, "{write} and {compare}");
    }
}
