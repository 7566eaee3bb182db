//! A storage system: controllers with a transaction rate in front of a RAM disk (the SANSim paper,
//! sections 2.4 and 4) or of disks.

use super::disks::Disks;
use super::partners::Partners;
use super::station::Station;
use crate::net::NEVER;
use crate::rng::StreamRng;
use crate::stats::{LatencyHistogram, TimeWeighted};
use crate::workload::sample_ps;
use sanloom_fc::config;
use sanloom_scsi::scsi::{Io, IoOp, IoStatus, IoTag};
use sanloom_storage::backstore::Outcome;

/// The controllers of a storage system. Each has one or more servers with the same distribution of
/// service times, which process commands in order of arrival. The medium adds its latency without
/// occupying a server. Behind them, a command may need the disk of its LUN.
#[derive(Clone, Debug)]
pub struct Controller {
    config: config::Service,
    rng: StreamRng,
    /// Servers and commands, indexed by controller.
    stations: Vec<Station>,
    /// Present if there are several controllers.
    partners: Option<Box<Partners>>,
    disks: Option<Box<Disks>>,
    /// Number of in-flight commands over time.
    pub depth: TimeWeighted,
    /// Times from the arrival of a command at its first controller until its completion.
    pub latency: LatencyHistogram,
    /// Times that commands wait for a server, as expected on their arrival: an abort of another
    /// command may shorten the wait.
    pub waiting: LatencyHistogram,
    /// Integral of in-flight commands over time before the last restart, in commands × ps.
    depth_before: u128,
    /// Commands rejected because the queue was full.
    pub refused: u64,
}

/// A command in a storage system.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Time at which the controller ends it.
    pub(super) end_ps: u64,
    arrival_ps: u64,
    /// Time that it occupies a server.
    pub(super) service_ps: u64,
    /// N_Port through which it arrived.
    pub nport: u16,
    pub tag: IoTag,
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
    /// Returns one idle controller. Its histograms keep `digits` significant digits; use fewer if
    /// there are thousands of controllers. `rng` gives the service times.
    pub fn new(config: &config::Service, digits: u8, rng: StreamRng) -> Controller {
        Controller {
            config: *config,
            rng,
            stations: vec![Station::new(config)],
            partners: None,
            disks: None,
            depth: TimeWeighted::new(0),
            latency: LatencyHistogram::with_digits(digits),
            waiting: LatencyHistogram::with_digits(digits),
            depth_before: 0,
            refused: 0,
        }
    }

    /// Replaces the controller by several ones with these rules.
    pub fn with_partners(mut self, partners: Partners) -> Controller {
        self.stations = vec![Station::new(&self.config); partners.count()];
        self.partners = Some(Box::new(partners));
        self
    }

    /// Returns the cooperation of several controllers.
    pub fn partners(&self) -> Option<&Partners> {
        self.partners.as_deref()
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
        let mut jobs: Vec<Job> = Vec::new();
        self.stations.iter_mut().for_each(|station| jobs.extend(station.stop(now_ps)));
        jobs.extend(self.partners.iter_mut().flat_map(|partners| partners.take_held(|_| true)));
        jobs.extend(self.disks.iter_mut().flat_map(|disks| disks.power_off(now_ps)));
        self.lose(now_ps, jobs, ended);
    }

    /// Ends commands that are lost with their controller.
    fn lose(&mut self, now_ps: u64, jobs: Vec<Job>, ended: &mut Vec<Ended>) {
        self.depth.lower(now_ps, jobs.len() as u64);
        ended.extend(jobs.iter().map(|job| Ended {
            nport: job.nport,
            tag: job.tag,
            status: IoStatus::Busy,
            write: job.write,
            bytes: job.bytes,
        }));
    }

    /// A controller fails. Commands that arrived through its ports do not end well and are appended
    /// to `ended`; those that others forwarded to it wait for its successor.
    pub fn controller_down(&mut self, now_ps: u64, number: u8, ended: &mut Vec<Ended>) {
        let Some(partners) = &mut self.partners else { return };
        let units: Vec<u16> = partners.units_at(number).collect();
        if !partners.down(now_ps, number) {
            return;
        }
        let mut lost = partners.take_held(|via| via == number);
        for job in self.stations[usize::from(number)].stop(now_ps) {
            if partners.of_port(job.nport) == number { lost.push(job) } else { partners.hold(job) }
        }
        if let Some(disks) = &mut self.disks {
            disks.controller_down(now_ps, units);
            disks.set_partner(now_ps, !partners.is_alone());
        }
        self.lose(now_ps, lost, ended);
    }

    /// A controller returns. Returns false if another fault keeps it down, or it was not down.
    pub fn controller_up(&mut self, now_ps: u64, number: u8) -> bool {
        let Some(partners) = &mut self.partners else { return false };
        if !partners.up(now_ps, number) {
            return false;
        }
        if let Some(disks) = &mut self.disks {
            disks.set_partner(now_ps, !partners.is_alone());
        }
        true
    }

    /// The LUNs of a controller begin to move back to it.
    pub fn fail_back(&mut self, now_ps: u64, number: u8) -> bool {
        self.partners.as_mut().is_some_and(|partners| partners.fail_back(now_ps, number))
    }

    /// Ends the moves of LUNs that are due by `until_ps`, with the commands that wait for them.
    /// Returns the controllers whose LUNs have moved.
    pub fn end_moves(&mut self, now_ps: u64, until_ps: u64) -> Vec<u8> {
        let Some(partners) = &mut self.partners else { return Vec::new() };
        let moved = partners.end_moves(until_ps);
        // Commands for LUNs that have not moved are held again.
        for job in partners.take_held(|_| true) {
            self.continue_at(now_ps, job);
        }
        moved
    }

    /// Assigns a command to the controller that serves its LUN, or holds it until there is one.
    fn continue_at(&mut self, at_ps: u64, job: Job) {
        let Some(partners) = &mut self.partners else { return };
        match partners.owner_of(job.unit) {
            Some(owner) => {
                self.stations[usize::from(owner)].assign(at_ps, job, self.config.media_latency.0);
            }
            None => partners.hold(job),
        }
    }

    /// Accepts a command. Returns the result at once if it is rejected.
    pub fn submit(&mut self, now_ps: u64, nport: u16, io: &Io) -> Option<Ended> {
        let number = self.partners.as_mut().map_or(0, |partners| partners.arrive(nport));
        let station = &mut self.stations[usize::from(number)];
        station.forget_started(now_ps);
        // A flush counts as a write, as at the host.
        let write = io.op.changes_medium() || io.op == IoOp::Flush;
        let &Io { tag, bytes, blocks, lba, unit, op, fua, .. } = io;
        if is_full(station.waiting(), &self.config, self.disks.as_deref()) {
            self.refused += 1;
            return Some(Ended { nport, tag, status: IoStatus::TaskSetFull, write, bytes });
        }
        let service_ps = sample_ps(&self.config.time, &mut self.rng);
        let (end_ps, arrival_ps) = (0, now_ps);
        let job = Job { end_ps, arrival_ps, service_ps, nport, tag, bytes, blocks, lba, unit, op, write, fua };
        let begin_ps = station.assign(now_ps, job, self.config.media_latency.0);
        self.waiting.record_ps(begin_ps - now_ps);
        self.depth.raise(now_ps, 1);
        None
    }

    /// Removes an aborted command that waits for a server, so that the commands behind it start
    /// earlier. A command that a server has started continues, and so does one that waits for a
    /// disk. Returns whether it was removed.
    pub fn cancel(&mut self, now_ps: u64, nport: u16, tag: IoTag) -> bool {
        let latency_ps = self.config.media_latency.0;
        let in_station = self.stations.iter_mut().any(|station| station.cancel(now_ps, nport, tag, latency_ps));
        let cancelled = in_station || self.partners.as_mut().is_some_and(|partners| partners.cancel(nport, tag));
        if cancelled {
            self.depth.lower(now_ps, 1);
        }
        cancelled
    }

    /// Returns the time of the next event: a command completes or moves on.
    #[inline]
    pub fn next_ps(&mut self) -> Option<u64> {
        let own = match &self.stations[..] {
            [one] => one.next_ps(),
            several => several.iter().map(Station::next_ps).min().unwrap_or(NEVER),
        };
        let next_ps = self.disks.as_mut().map_or(own, |disks| disks.next_ps().min(own));
        (next_ps != NEVER).then_some(next_ps)
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
        loop {
            let job = match &mut self.stations[..] {
                [one] if one.next_ps() > now_ps => break,
                [one] => one.pop(),
                _ => self.pop_processed(now_ps),
            };
            let Some(job) = job else { break };
            match &mut self.disks {
                Some(disks) if job.needs_disk() => disks.submit(now_ps, job),
                _ => return Some((job, Outcome::Good)),
            }
        }
        self.disks.as_mut()?.pop_ended(now_ps)
    }

    /// Removes and returns the command that one of several controllers has processed first, unless
    /// it goes on to another controller.
    #[inline(never)]
    fn pop_processed(&mut self, now_ps: u64) -> Option<Job> {
        loop {
            let next = self.stations.iter().map(Station::next_ps).zip(0..).min();
            let (_, number) = next.filter(|(at_ps, _)| *at_ps <= now_ps)?;
            let job = self.stations[number].pop()?;
            if !self.is_forwarded(now_ps, number, job) {
                return Some(job);
            }
        }
    }

    /// Sends a command that a controller has processed to the one that serves its LUN. Returns
    /// false if this is the same one.
    fn is_forwarded(&mut self, now_ps: u64, number: usize, mut job: Job) -> bool {
        let Some(partners) = &mut self.partners else { return false };
        let Some(forward_ps) = partners.forward(number, job.unit) else { return false };
        job.service_ps = sample_ps(&self.config.time, &mut self.rng);
        self.continue_at(now_ps + forward_ps, job);
        true
    }

    /// Returns the total busy time of all servers from the start of the measurement to `now_ps`, in
    /// ps.
    pub fn busy_ps(&self, now_ps: u64) -> u128 {
        self.stations.iter().map(|station| station.busy_ps(now_ps)).sum()
    }

    /// Returns the busy time of the servers of each controller, in ps.
    pub fn busy_of_each_ps(&self, now_ps: u64) -> impl Iterator<Item = u128> {
        self.stations.iter().map(move |station| station.busy_ps(now_ps))
    }

    /// Returns the integral of in-flight commands over time, in commands × ps, across restarts.
    pub fn depth_area(&self, now_ps: u64) -> u128 {
        self.depth_before + self.depth.area_at(now_ps)
    }

    /// Restarts the measurement.
    pub fn restart(&mut self, now_ps: u64) {
        self.depth_before = self.depth_area(now_ps);
        self.depth.restart(now_ps);
        self.latency.clear();
        self.waiting.clear();
        self.stations.iter_mut().for_each(|station| station.restart(now_ps));
        self.refused = 0;
        if let Some(partners) = &mut self.partners {
            partners.restart();
        }
        if let Some(disks) = &mut self.disks {
            disks.restart(now_ps);
        }
    }
}

/// Returns whether as many commands wait as may, of which `own` wait for a server of the
/// controller.
#[inline]
fn is_full(own: usize, config: &config::Service, disks: Option<&Disks>) -> bool {
    let most = config.max_queued as usize;
    let in_disks = |disks: &Disks| own + disks.commands() >= most && own + disks.waiting() >= most;
    own >= most || disks.is_some_and(in_disks)
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
