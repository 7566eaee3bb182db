//! Parameters of a disk: plain values, with the unit in the name of each.
//!
//! All of them can be read from a file by `serde`. Unknown keys are errors.
//!
//! Blocks have 512 bytes. Times are in milliseconds, because data sheets state them so;
//! [`super::Disk::new`] converts them to picoseconds once.

use super::schedule::Scheduler;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Picoseconds in a millisecond.
pub(crate) const PS_PER_MS: f64 = 1e9;

/// Longest time that a parameter may have.
pub(crate) const MAX_MS: f64 = 1e6;

/// Converts a time of a data sheet. Negative times become 0, and long ones [`MAX_MS`].
pub(crate) fn ps(ms: f64) -> u64 {
    (ms.min(MAX_MS) * PS_PER_MS).round() as u64
}

/// Window without a limit.
fn all() -> usize {
    usize::MAX
}

fn is_all(window: &usize) -> bool {
    *window == usize::MAX
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Order of the tracks of a cylinder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mapping {
    /// Every cylinder starts at the first surface.
    #[default]
    Normal,
    /// Every second cylinder runs from the last surface to the first, so the head stays the same
    /// where the cylinder changes.
    Serpentine,
}

/// Adjacent cylinders with the same number of blocks in a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// First cylinder. Cylinders between two zones hold no data.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// Blocks of each track.
    pub blocks_per_track: u32,
    /// Offset of the first block of the zone from the index mark, in blocks.
    #[serde(default)]
    pub first_block_offset: u32,
    /// Offset between the starts of successive tracks of a cylinder, in blocks.
    pub track_skew: u32,
    /// Offset between the start of the last track of a cylinder and that of the first track of the
    /// next cylinder, in blocks.
    pub cylinder_skew: u32,
    /// Blocks without data at the start of the zone.
    #[serde(default)]
    pub empty_blocks: u64,
    /// Spare blocks at the end of the zone.
    #[serde(default)]
    pub spare_blocks: u64,
    /// Spare blocks at the end of each track.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_blocks_per_track: u32,
    /// Spare blocks at the end of each cylinder.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_blocks_per_cylinder: u32,
}

impl Zone {
    /// Blocks with data of a track.
    pub(crate) fn track_blocks(&self) -> u32 {
        self.blocks_per_track.saturating_sub(self.spare_blocks_per_track)
    }

    /// Blocks with data of a cylinder.
    pub(crate) fn cylinder_blocks(&self, surfaces: u32) -> u64 {
        let all = u64::from(self.track_blocks()) * u64::from(surfaces);
        all.saturating_sub(u64::from(self.spare_blocks_per_cylinder))
    }

    /// Blocks with data of the zone; `None` if all blocks are empty or spare, or the last cylinder
    /// is before the first.
    pub(crate) fn data_blocks(&self, surfaces: u32) -> Option<u64> {
        let cylinders = u64::from(self.last_cylinder.checked_sub(self.first_cylinder)?) + 1;
        let unused = self.empty_blocks.checked_add(self.spare_blocks)?;
        let held = (cylinders * self.cylinder_blocks(surfaces)).checked_sub(unused)?;
        Some(held).filter(|held| *held > 0)
    }
}

/// Seek time as a function of the distance in cylinders. No seek is needed for distance 0.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SeekCurve {
    /// Straight line from the time for one cylinder to the time for the full stroke.
    Linear {
        /// Time for one cylinder.
        single_ms: f64,
        /// Time from the first cylinder to the last.
        full_ms: f64,
    },
    /// Curve through three numbers of a data sheet: `a sqrt(x - 1) + b (x - 1) + single`, with
    /// a and b so that the mean over random seeks is `average_ms` (Lee; DiskSim 4.0 manual).
    ThreePoint {
        /// Time for one cylinder.
        single_ms: f64,
        /// Mean time of seeks between random cylinders.
        average_ms: f64,
        /// Time from the first cylinder to the last.
        full_ms: f64,
    },
    /// Square root for short seeks and a straight line for long ones (Ruemmler and Wilkes, 1994).
    SquareRootThenLinear {
        /// Smallest distance of the straight line, in cylinders.
        boundary_cylinders: u32,
        /// Constant of short seeks.
        short_constant_ms: f64,
        /// Factor of the square root of the distance.
        short_factor_ms: f64,
        /// Constant of long seeks.
        long_constant_ms: f64,
        /// Factor of the distance.
        long_factor_ms: f64,
        /// Explicit times for 1, 2, 3, … cylinders, which take precedence; may be empty.
        #[serde(default)]
        first_ms: Cow<'static, [f64]>,
    },
    /// Measured points, sorted by distance, with straight lines between them. The last two points
    /// are extended to longer seeks, and the first point is valid for shorter ones.
    Table {
        /// Distances in cylinders, and times in milliseconds.
        points: Cow<'static, [(u32, f64)]>,
    },
}

/// End of a read-ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReadAhead {
    /// The disk reads requested blocks only.
    None,
    /// Read-ahead ends with the track of the last requested block.
    ToEndOfTrack,
    /// Read-ahead ends with the cylinder of the last requested block.
    ToEndOfCylinder,
    /// Read-ahead ends when [`CacheConfig::max_read_ahead_blocks`] are read.
    UntilFull,
    /// Read-ahead ends with the track of the last requested block. After a sequential read it
    /// continues to the end of the following track.
    OneTrackAhead,
}

/// Treatment of written blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WritePolicy {
    /// A write ends when its blocks are on the medium.
    Through,
    /// A write ends when its blocks are in the cache. The disk writes them to the medium later.
    Back {
        /// Largest number of blocks that wait for the medium.
        dirty_blocks: u64,
        /// Largest number of separate extents that wait for the medium.
        dirty_extents: usize,
        /// Number of extents, oldest first, from which the queue rule selects the next write-back.
        #[serde(default = "all", skip_serializing_if = "is_all")]
        window: usize,
        /// True if only a write that continues the write before ends in the cache, and all others
        /// end on the medium.
        #[serde(default)]
        only_appending: bool,
    },
}

/// The on-board cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Number of segments; each one holds adjacent blocks. Without segments there are no hits.
    pub segments: usize,
    /// Blocks of a segment.
    pub segment_blocks: u64,
    /// Segments that hold written blocks for reads, at most.
    pub write_segments: usize,
    /// End of a read-ahead.
    pub read_ahead: ReadAhead,
    /// Largest number of blocks after the last requested one.
    pub max_read_ahead_blocks: u64,
    /// True if the disk reads ahead only after a read that continues the one before.
    #[serde(default)]
    pub read_ahead_only_if_sequential: bool,
    /// True if a segment keeps blocks that the host has read. Otherwise only blocks that the host
    /// has not read yet are hits.
    #[serde(default)]
    pub keeps_read_blocks: bool,
    /// Share of a read that must be in the cache before the bus transfer starts, in percent.
    /// With 0, the transfer starts when the first block is there.
    #[serde(default)]
    pub read_watermark_percent: u32,
    /// Treatment of written blocks.
    pub write: WritePolicy,
    /// True if a read of blocks on one track may start with any of them, whichever passes the head
    /// first. The bus transfer still starts with the first block.
    #[serde(default)]
    pub zero_latency_reads: bool,
    /// True if a write may start in the middle of its blocks, whichever passes the head first.
    #[serde(default)]
    pub zero_latency_writes: bool,
}

/// Time that a command needs besides mechanics and bus, by the kind of the command before.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overheads {
    /// Read from the cache after a read.
    pub read_hit_after_read_ms: f64,
    /// Read from the cache after a write.
    pub read_hit_after_write_ms: f64,
    /// Read from the medium after a read.
    pub read_miss_after_read_ms: f64,
    /// Read from the medium after a write.
    pub read_miss_after_write_ms: f64,
    /// Write after a read, before its seek.
    pub write_after_read_ms: f64,
    /// Write after a write, before its seek.
    pub write_after_write_ms: f64,
    /// Time between the start of the seek of a write and the start of its bus transfer.
    #[serde(default)]
    pub write_transfer_delay_ms: f64,
    /// Time after the last block of a read.
    #[serde(default)]
    pub read_completion_ms: f64,
    /// Time after the last block of a write to the medium.
    #[serde(default)]
    pub write_completion_ms: f64,
}

impl Overheads {
    /// Returns overheads that do not depend on the kind of command.
    pub const fn uniform(ms: f64) -> Overheads {
        Overheads {
            read_hit_after_read_ms: ms,
            read_hit_after_write_ms: ms,
            read_miss_after_read_ms: ms,
            read_miss_after_write_ms: ms,
            write_after_read_ms: ms,
            write_after_write_ms: ms,
            write_transfer_delay_ms: 0.0,
            read_completion_ms: 0.0,
            write_completion_ms: 0.0,
        }
    }
}

/// Time for a block on the bus between the disk and its host.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Block of a read.
    pub read_block_ms: f64,
    /// Block of a write.
    pub write_block_ms: f64,
}

/// Order of requests that wait for the medium.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Rule that selects the next request.
    pub scheduler: Scheduler,
    /// Number of requests, oldest first, from which the rule selects.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub window: usize,
    /// Time in the window after which the oldest request is next, whatever the rule. At most one in
    /// eight requests goes first for that reason, so that a disk with more requests than it can
    /// serve within the limit keeps its throughput. Write-back has no such limit.
    #[serde(default)]
    pub age_limit_ms: Option<f64>,
}

/// All parameters of a disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Name for messages and results.
    pub name: Cow<'static, str>,
    /// Addressable blocks of 512 bytes; 0 stands for all that the zones hold.
    #[serde(default)]
    pub blocks: u64,
    /// Number of surfaces with data, each with its head.
    pub surfaces: u32,
    /// Speed of rotation.
    pub rpm: f64,
    /// Order of tracks.
    #[serde(default)]
    pub mapping: Mapping,
    /// Zones from the first block to the last.
    pub zones: Cow<'static, [Zone]>,
    /// Seek time.
    pub seek: SeekCurve,
    /// Time to change the head. Seek and head switch overlap.
    pub head_switch_ms: f64,
    /// Additional time after a seek or head switch before a write.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// On-board cache.
    pub cache: CacheConfig,
    /// Command overheads.
    pub overheads: Overheads,
    /// Bus.
    pub bus: Bus,
    /// Queue for the medium.
    #[serde(default)]
    pub queue: QueueConfig,
}

impl DiskConfig {
    /// Returns the size of the disk in bytes; `None` if its parameters contradict each other.
    pub fn capacity_bytes(&self) -> Option<u64> {
        Some(super::Geometry::new(self).ok()?.blocks() * 512)
    }

    /// Returns the mean rate of the medium over the whole disk in bytes per second, if each track
    /// takes a revolution and a head switch; 0 if the parameters contradict each other.
    pub fn sequential_bytes_per_s(&self) -> f64 {
        let cylinders = |zone: &Zone| f64::from(zone.last_cylinder.saturating_sub(zone.first_cylinder)) + 1.0;
        let tracks = self.zones.iter().map(cylinders).sum::<f64>() * f64::from(self.surfaces);
        let track_s = 60.0 / self.rpm + self.head_switch_ms / 1e3;
        let bytes = self.capacity_bytes().unwrap_or(0) as f64;
        if tracks > 0.0 && track_s > 0.0 { bytes / (tracks * track_s) } else { 0.0 }
    }
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig { scheduler: Scheduler::Fcfs, window: usize::MAX, age_limit_ms: None }
    }
}
