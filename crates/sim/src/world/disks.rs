//! Cache, RAID groups and disks behind the controller of a storage system.

use super::losses::{Loss, Losses, Reason};
use super::storage::Job;
use sanloom_api::results::measure::mean_level;
use sanloom_api::results::{CacheResult, DataLossResult, DiskResult, RaidResult, SsdResult};
use sanloom_fc::config::Lun;
use sanloom_scsi::scsi::IoOp;
use sanloom_storage::backstore::{
    Backstore, BackstoreConfig, BackstoreError, Command, Device, GroupView, Outcome, Protection,
};
use sanloom_storage::disk::{Disk, DiskConfig, DiskStats, Op, Phases};
use sanloom_storage::flash::{DriveCount, DriveStats};
use sanloom_storage::raid::{Condition, Pass};

/// Size of a block of a disk.
const DISK_BLOCK_BYTES: u32 = 512;

/// A backstore, and the commands in it.
#[derive(Clone, Debug)]
pub struct Disks {
    store: Backstore,
    /// Blocks of a disk in a block of a LUN.
    blocks_per_block: u64,
    /// Commands, by their identifiers in the backstore.
    jobs: Vec<Job>,
    free: Vec<u32>,
    scrubs: Option<Scrubs>,
    /// Number of faults because of which there is no power, and nothing happens.
    outages: u32,
    losses: Losses,
}

/// Regular scrubs of all groups.
#[derive(Clone, Copy, Debug)]
struct Scrubs {
    interval_ps: u64,
    pass: Pass,
    next_ps: u64,
}

impl Disks {
    /// Returns the disks of these LUNs. `idle` is an idle disk or SSD, whose tables all of them
    /// share.
    ///
    /// # Errors
    ///
    /// Parameters that contradict each other.
    pub fn new(config: &BackstoreConfig, idle: impl Into<Device>, luns: &[Lun]) -> Result<Disks, BackstoreError> {
        let block_bytes = luns.first().map_or(DISK_BLOCK_BYTES, |lun| lun.block_bytes);
        let blocks_per_block = u64::from(block_bytes / DISK_BLOCK_BYTES);
        let units: Vec<u64> = luns.iter().map(|lun| lun.blocks * blocks_per_block).collect();
        let store = Backstore::new(config, idle, &units)?;
        Ok(Disks {
            store,
            blocks_per_block,
            jobs: Vec::new(),
            free: Vec::new(),
            scrubs: None,
            outages: 0,
            losses: Losses::default(),
        })
    }

    /// Sets the faults of the media and the protection of the groups. `seed` decides which blocks
    /// become unreadable.
    ///
    /// # Errors
    ///
    /// A RAID level without this protection, or too many errors.
    pub fn protect(mut self, protection: &Protection, seed: u64) -> Result<Disks, BackstoreError> {
        self.store.protect(protection, seed)?;
        let next_ps = u64::MAX;
        self.scrubs =
            (protection.scrub_interval_ps).map(|interval_ps| Scrubs { interval_ps, pass: protection.scrub, next_ps });
        Ok(self)
    }

    /// Sets the time from which the intervals of scrubs count.
    pub fn start(&mut self, now_ps: u64) {
        if let Some(scrubs) = &mut self.scrubs {
            scrubs.next_ps = now_ps.saturating_add(scrubs.interval_ps);
        }
    }

    /// Passes on a command that the controller has processed.
    ///
    /// COMPARE AND WRITE is a write to the medium. Its read, before the write, is not modelled.
    pub fn submit(&mut self, now_ps: u64, job: Job) {
        let id = match self.free.pop() {
            Some(id) => {
                self.jobs[id as usize] = job;
                id
            }
            None => {
                self.jobs.push(job);
                self.jobs.len() as u32 - 1
            }
        };
        let op = match job.op {
            IoOp::Flush => Op::Flush,
            IoOp::CompareAndWrite => Op::WriteThrough,
            _ if job.write && job.fua => Op::WriteThrough,
            _ if job.write => Op::Write,
            _ => Op::Read,
        };
        let blocks = u64::from(job.blocks) * self.blocks_per_block;
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX).max(1);
        self.store.submit(now_ps, Command { id, unit: job.unit, lba: job.lba * self.blocks_per_block, blocks, op });
    }

    /// Returns the next time at which anything happens, or `u64::MAX`.
    pub fn next_ps(&mut self) -> u64 {
        if self.outages > 0 {
            return u64::MAX;
        }
        self.store.next_ps().min(self.scrubs.map_or(u64::MAX, |scrubs| scrubs.next_ps))
    }

    /// Removes and returns the next command that has ended by `now_ps`.
    pub fn pop_ended(&mut self, now_ps: u64) -> Option<(Job, Outcome)> {
        if self.outages > 0 {
            return None;
        }
        if let Some(scrubs) = self.scrubs.as_mut().filter(|scrubs| scrubs.next_ps <= now_ps) {
            // One that came while there was no power is left out.
            scrubs.next_ps += (now_ps - scrubs.next_ps).next_multiple_of(scrubs.interval_ps).max(scrubs.interval_ps);
            self.store.start_scrubs(now_ps, scrubs.pass);
        }
        let ended = self.store.pop_ended(now_ps)?;
        self.free.push(ended.id);
        let job = *self.jobs.get(ended.id as usize)?;
        if ended.outcome != Outcome::Good {
            self.add_loss(now_ps, &job, ended.outcome);
        }
        Some((job, ended.outcome))
    }

    fn add_loss(&mut self, at_ps: u64, job: &Job, outcome: Outcome) {
        let has_failed = matches!(self.store.condition(job.unit), Condition::Failed { .. });
        let reason = match outcome {
            Outcome::Wrong => Reason::Parity,
            _ if has_failed => Reason::Disks,
            _ => Reason::Block,
        };
        let &Job { unit: lun, lba, blocks, write, .. } = job;
        self.losses.add(Loss { at_ps, lun, lba, blocks, write, reason });
    }

    /// Returns what the disks have lost.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the results on lost data. `start_ps`: start of the workloads.
    pub fn data_loss(&self, start_ps: u64) -> DataLossResult {
        self.losses.result(start_ps, self.store.lost_blocks())
    }

    /// Returns the number of commands in cache, groups and disks.
    pub fn commands(&self) -> usize {
        self.store.commands()
    }

    /// Returns the number of commands that wait for a disk.
    pub fn waiting(&self) -> usize {
        self.store.waiting()
    }

    /// A disk fails, or a new one takes its place.
    pub fn set_failed(&mut self, now_ps: u64, lun: u16, member: u32, is_failed: bool) {
        if is_failed {
            self.store.fail_disk(now_ps, lun, member);
        } else {
            self.store.add_disk(lun);
        }
    }

    /// A block of a disk becomes unreadable.
    pub fn add_latent_error(&mut self, lun: u16, member: u32, block: u64) {
        self.store.add_latent_error(lun, member, block);
    }

    /// The power fails. Returns the commands in flight, which never end otherwise.
    pub fn power_off(&mut self, now_ps: u64) -> Vec<Job> {
        self.outages += 1;
        if self.outages > 1 {
            return Vec::new();
        }
        let loss = self.store.power_loss(now_ps);
        self.free.extend(&loss.aborted);
        let jobs: Vec<Job> = loss.aborted.iter().filter_map(|id| self.jobs.get(*id as usize).copied()).collect();
        self.losses.add_outage(now_ps, jobs.len() as u64, &loss);
        jobs
    }

    /// The power returns.
    pub fn power_on(&mut self) {
        self.outages = self.outages.saturating_sub(1);
    }

    /// Sets the state of the battery of the cache.
    pub fn set_battery(&mut self, now_ps: u64, is_charged: bool) {
        self.store.set_battery(now_ps, is_charged);
    }

    /// A controller with the written data of these LUNs fails.
    pub fn controller_down(&mut self, now_ps: u64, units: Vec<u16>) {
        let lost_blocks = self.store.controller_loss(now_ps, units.into_iter());
        if lost_blocks > 0 {
            self.losses.add_controller(now_ps, lost_blocks);
        }
    }

    /// Sets whether each controller has a partner for copies of written data.
    pub fn set_partner(&mut self, now_ps: u64, is_up: bool) {
        self.store.set_partner(now_ps, is_up);
    }

    /// Restarts the measurement at `now_ps`. Write-backs before this time do not count.
    pub fn restart(&mut self, now_ps: u64) {
        self.store.restart(now_ps);
    }

    /// Returns the results of the disks at `now_ps` of a measurement over `measured_ps`.
    pub fn results(&self, config: &DiskConfig, now_ps: u64, measured_ps: u64) -> Vec<DiskResult> {
        let disks = self.store.disks();
        disks
            .map(|(lun, member, disk)| {
                let mut disk = disk.clone();
                disk.advance(now_ps);
                DiskResult { member, ..result(&disk, lun, config, measured_ps) }
            })
            .collect()
    }

    /// Returns the results of the SSDs at `now_ps` of a measurement over `measured_ps`.
    pub fn ssds(&self, now_ps: u64, measured_ps: u64) -> Vec<SsdResult> {
        let ssds = self.store.ssds().map(|(lun, member, drive)| {
            let mut drive = drive.clone();
            drive.advance(now_ps);
            let stats = drive.stats();
            let geometry = &drive.config().flash.geometry;
            let dies = geometry.channels * geometry.dies;
            let mean_us = |count: &DriveCount| count.response_ps as f64 / 1e6 / count.requests.max(1) as f64;
            let collecting = DriveStats { read_ps: 0, program_ps: 0, ..stats };
            SsdResult {
                lun,
                member,
                model: drive.config().name.to_string(),
                reads: stats.reads.requests,
                writes: stats.writes.requests,
                flushes: stats.flushes.requests,
                read_response_us: mean_us(&stats.reads),
                write_response_us: mean_us(&stats.writes),
                utilisation: stats.utilisation(dies, measured_ps).min(1.0),
                collection: collecting.utilisation(dies, measured_ps).min(1.0),
                write_amplification: stats.write_amplification(),
                erases: stats.flash.erases,
                stalls: stats.stalls,
                most_erases: stats.wear.1,
                dirty_blocks: drive.dirty_blocks(),
            }
        });
        ssds.collect()
    }

    /// Returns the results of the RAID groups.
    pub fn raid(&self) -> Vec<RaidResult> {
        self.store.groups().map(|group| raid_result(&group)).collect()
    }

    /// Returns the fraction of the time in which the busiest loop of disks was occupied, 0 to 1;
    /// `None` without loops.
    pub fn loop_utilisation(&self, now_ps: u64, measured_ps: u64) -> Option<f64> {
        let busy_ps = self.store.busiest_loop_ps(now_ps)?;
        Some(mean_level(busy_ps.into(), measured_ps).min(1.0))
    }

    /// Returns the results of the cache.
    pub fn cache(&self) -> Option<CacheResult> {
        let stats = self.store.cache()?;
        Some(CacheResult {
            reads: stats.read_requests,
            writes: stats.write_requests,
            read_hit_share: stats.read_hit_ratio(),
            read_ahead_used_share: stats.read_ahead_accuracy(),
            coalesced_share: stats.coalesced_ratio(),
            destages: stats.destages.iter().sum(),
            blocks_per_destage: stats.blocks_per_destage(),
            stalls: stats.stalls,
            dirty_blocks: stats.dirty,
            lost_blocks: self.store.lost_dirty_blocks(),
        })
    }
}

fn raid_result(group: &GroupView<'_>) -> RaidResult {
    let (condition, lost_blocks) = match group.condition {
        Condition::Optimal => ("optimal", 0),
        Condition::Degraded { .. } => ("degraded", 0),
        Condition::Failed { blocks } => ("failed", blocks),
    };
    let stats = group.stats;
    RaidResult {
        lun: group.unit,
        condition: condition.to_owned(),
        lost_blocks,
        spares: group.spares,
        rebuilt: group.rebuilt,
        rebuilt_blocks: stats.rebuilt_blocks,
        requests: stats.requests,
        lost_requests: stats.lost_requests,
        wrong_requests: stats.wrong_requests,
        unreadable_blocks: group.unreadable_blocks,
        inconsistent_stripes: group.inconsistent_stripes,
        scrubbed: group.scrubbed,
        scrubbed_blocks: stats.scrubbed_blocks,
        media_errors: stats.media_errors,
        repaired_blocks: stats.repaired_blocks,
        corrected_stripes: stats.corrected_stripes,
        unrebuilt_chunks: stats.unrebuilt_chunks,
        log_blocks: stats.log_blocks,
        repeated: stats.repeated,
        waited: stats.waited,
        full_stripes: stats.full_stripes,
        read_modify_writes: stats.read_modify_writes,
        reconstruct_writes: stats.reconstruct_writes,
        degraded: stats.degraded,
        disk_reads: stats.disk_reads,
        disk_writes: stats.disk_writes,
    }
}

fn result(disk: &Disk, lun: u32, config: &DiskConfig, measured_ps: u64) -> DiskResult {
    let stats: &DiskStats = disk.stats();
    let mut phases = Phases::default();
    let mut commands = 0;
    for (_, count) in stats.kinds() {
        phases.add(&count.phases);
        commands += count.requests;
    }
    let ms = |ps: u64| if commands == 0 { 0.0 } else { ps as f64 / 1e9 / commands as f64 };
    DiskResult {
        lun,
        member: 0,
        model: config.name.to_string(),
        commands,
        read_hits: stats.read_hits.requests + stats.read_ahead_hits.requests,
        read_misses: stats.read_misses.requests,
        cached_writes: stats.cached_writes.requests,
        medium_writes: stats.medium_writes.requests,
        utilisation: mean_level(u128::from(stats.busy_ps + stats.write_back_ps), measured_ps).min(1.0),
        response_ms: ms(phases.total_ps()),
        queue_ms: ms(phases.queue_ps),
        overhead_ms: ms(phases.overhead_ps),
        seek_ms: ms(phases.seek_ps),
        rotation_ms: ms(phases.rotation_ps),
        medium_ms: ms(phases.medium_ps),
        bus_ms: ms(phases.bus_ps),
        seek_cylinders: stats.mean_seek_cylinders(),
        dirty_blocks: disk.dirty_blocks(),
    }
}
