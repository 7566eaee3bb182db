//! Disks from the numbers of a data sheet.
//!
//! A data sheet states capacity, speed, seek times and transfer rates, but neither zones nor skews.
//! [`DataSheet::config`] derives them, so its results are estimates: response times of random
//! requests follow the seek times and the rotation, while cache and skews are assumptions.

use crate::disk::config::{
    Bus, CacheConfig, DiskConfig, Mapping, Overheads, QueueConfig, ReadAhead, SeekCurve, WritePolicy, Zone,
};
use crate::disk::schedule::Scheduler;
use std::borrow::Cow;

/// Zones of a derived layout (assumption).
const ZONES: u32 = 16;

/// Numbers of a data sheet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DataSheet {
    /// Name for messages and results.
    pub name: &'static str,
    /// Capacity in blocks of 512 bytes.
    pub blocks: u64,
    /// Number of surfaces with data.
    pub surfaces: u32,
    /// Speed of rotation.
    pub rpm: f64,
    /// Time for one cylinder, mean over random seeks, and full stroke.
    pub seek_ms: [f64; 3],
    /// Additional time of a seek before a write.
    pub write_settle_ms: f64,
    /// Rate of the medium in the first and in the last zone, in MB of 10^6 bytes per second.
    pub medium_mb_s: [f64; 2],
    /// Rate of the bus, in MB of 10^6 bytes per second.
    pub bus_mb_s: f64,
    /// Command overhead.
    pub overhead_ms: f64,
    /// Blocks of the cache for writes; 0 stands for no write cache.
    pub write_cache_blocks: u64,
    /// Extents from which write-back selects the next one.
    pub write_back_window: usize,
    /// Requests from which the queue selects the next one.
    pub queue_window: usize,
    /// Waiting time after which the oldest request is next.
    pub age_limit_ms: Option<f64>,
}

impl DataSheet {
    /// Derives the parameters of a disk.
    ///
    /// - The blocks of a track decrease from zone to zone in equal steps, and each zone has as many
    ///   cylinders.
    /// - A head switch takes as long as a seek of one cylinder. The skews hide both.
    /// - The rule of the queue is SPTF.
    /// - Read-ahead starts at the second sequential read, and reads up to 1 MiB.
    pub fn config(&self) -> DiskConfig {
        let turn_s = 60.0 / self.rpm;
        let track = |mb_s: f64| mb_s * 1e6 * turn_s / 512.0;
        let [outer, inner] = self.medium_mb_s.map(track);
        let share = |zone: u32| f64::from(zone) / f64::from(ZONES - 1);
        let blocks_of = |zone: u32| (outer + (inner - outer) * share(zone)).round() as u32;
        let per_cylinder: u64 = (0..ZONES).map(|zone| u64::from(blocks_of(zone)) * u64::from(self.surfaces)).sum();
        let cylinders = self.blocks.div_ceil(per_cylinder).max(1) as u32;
        let skew_share = self.seek_ms[0] / (turn_s * 1e3) + 0.01;
        let zones = (0..ZONES).map(|zone| {
            let blocks_per_track = blocks_of(zone);
            let skew = (f64::from(blocks_per_track) * skew_share).ceil() as u32;
            Zone {
                first_cylinder: zone * cylinders,
                last_cylinder: (zone + 1) * cylinders - 1,
                blocks_per_track,
                first_block_offset: 0,
                track_skew: skew,
                cylinder_skew: skew,
                empty_blocks: 0,
                spare_blocks: 0,
                spare_blocks_per_track: 0,
                spare_blocks_per_cylinder: 0,
            }
        });
        let [single_ms, average_ms, full_ms] = self.seek_ms;
        let bus_block_ms = 512.0 / (self.bus_mb_s * 1e3);
        DiskConfig {
            name: Cow::Borrowed(self.name),
            blocks: self.blocks,
            surfaces: self.surfaces,
            rpm: self.rpm,
            mapping: Mapping::Serpentine,
            zones: zones.collect(),
            seek: SeekCurve::ThreePoint { single_ms, average_ms, full_ms },
            head_switch_ms: single_ms,
            write_settle_ms: self.write_settle_ms,
            cache: CacheConfig {
                segments: 16,
                segment_blocks: 4096,
                write_segments: 8,
                read_ahead: ReadAhead::UntilFull,
                max_read_ahead_blocks: 2048,
                read_ahead_only_if_sequential: true,
                keeps_read_blocks: true,
                read_watermark_percent: 0,
                write: match self.write_cache_blocks {
                    0 => WritePolicy::Through,
                    // An extent of a random write has at least 4 KiB.
                    dirty_blocks => WritePolicy::Back {
                        dirty_blocks,
                        dirty_extents: (dirty_blocks / 8).max(1) as usize,
                        window: self.write_back_window,
                        only_appending: false,
                    },
                },
                zero_latency_reads: false,
                zero_latency_writes: true,
            },
            overheads: Overheads::uniform(self.overhead_ms),
            bus: Bus { read_block_ms: bus_block_ms, write_block_ms: bus_block_ms },
            queue: QueueConfig {
                scheduler: Scheduler::Sptf,
                window: self.queue_window,
                age_limit_ms: self.age_limit_ms,
            },
        }
    }
}
