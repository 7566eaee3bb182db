//! The disks behind a controller.

use super::storage::Job;
use crate::net::NEVER;
use sanloom_api::results::DiskResult;
use sanloom_api::results::measure::mean_level;
use sanloom_fc::config::Lun;
use sanloom_scsi::scsi::IoOp;
use sanloom_storage::disk::{Disk, DiskConfig, DiskStats, Op, Phases, Request};

/// Size of a block of a disk.
const DISK_BLOCK_BYTES: u32 = 512;

/// Disks behind a controller, one for each LUN, and the commands in them.
#[derive(Clone, Debug)]
pub struct Disks {
    disks: Vec<Disk>,
    /// Next time of each disk, [`NEVER`] if it has no command.
    due_ps: Vec<u64>,
    /// Disks whose next time must be asked for. A disk is asked after all commands that arrive at
    /// one time, so that it compares them with each other.
    touched: Vec<u16>,
    /// Blocks of a disk in a block of a LUN.
    blocks_per_block: u64,
    /// Commands in the disks, by the identifier of their request.
    jobs: Vec<Job>,
    free: Vec<u32>,
}

impl Disks {
    /// Returns a disk for each LUN. `idle` is an idle disk, whose tables all of them share.
    pub fn new(idle: &Disk, luns: &[Lun]) -> Disks {
        let block_bytes = luns.first().map_or(DISK_BLOCK_BYTES, |lun| lun.block_bytes);
        Disks {
            disks: vec![idle.clone(); luns.len()],
            due_ps: vec![NEVER; luns.len()],
            touched: Vec::new(),
            blocks_per_block: u64::from(block_bytes / DISK_BLOCK_BYTES),
            jobs: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Passes a command that the controller has processed to the disk of its LUN.
    ///
    /// COMPARE AND WRITE is a write to the medium. Its read, before the write, is not modelled.
    pub fn submit(&mut self, now_ps: u64, job: Job) {
        let Some(disk) = self.disks.get_mut(usize::from(job.unit)) else { return };
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
        let (lbn, blocks) = (job.lba * self.blocks_per_block, u64::from(job.blocks) * self.blocks_per_block);
        disk.submit(now_ps, Request { id: id.into(), lbn, blocks: blocks.max(1), op });
        self.touched.push(job.unit);
    }

    /// Returns the next time at which a command ends or a disk chooses another one, or [`NEVER`].
    pub fn next_ps(&mut self) -> u64 {
        for unit in self.touched.drain(..).map(usize::from) {
            self.due_ps[unit] = self.disks[unit].next_ps().unwrap_or(NEVER);
        }
        self.due_ps.iter().copied().min().unwrap_or(NEVER)
    }

    /// Removes and returns the next command that a disk has ended by `now_ps`.
    pub fn pop_ended(&mut self, now_ps: u64) -> Option<Job> {
        while let Some(unit) = self.due_ps.iter().position(|&due_ps| due_ps <= now_ps) {
            if let Some(ended) = self.disks[unit].pop_ended(now_ps) {
                self.free.push(ended.id as u32);
                return self.jobs.get(ended.id as usize).copied();
            }
            self.due_ps[unit] = NEVER;
            self.touched.push(unit as u16);
        }
        None
    }

    /// Returns the number of commands in the disks.
    pub fn commands(&self) -> usize {
        self.jobs.len() - self.free.len()
    }

    /// Returns the number of commands that wait for a disk.
    pub fn waiting(&self) -> usize {
        self.disks.iter().map(Disk::waiting).sum()
    }

    /// Restarts the measurement at `now_ps`. Write-backs before this time do not count.
    pub fn restart(&mut self, now_ps: u64) {
        for disk in &mut self.disks {
            disk.advance(now_ps);
            disk.restart_stats();
        }
    }

    /// Returns the results at `now_ps` of a measurement over `measured_ps`.
    pub fn results(&self, config: &DiskConfig, now_ps: u64, measured_ps: u64) -> Vec<DiskResult> {
        let disks = self.disks.iter().zip(0..);
        disks
            .map(|(disk, lun)| {
                let mut disk = disk.clone();
                disk.advance(now_ps);
                result(&disk, lun, config, measured_ps)
            })
            .collect()
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
