//! Disks whose parameters were measured: the validation set of DiskSim 4.0.
//!
//! Layouts, seek times, overheads, bus times and cache sizes are those of the parameter files in
//! the folder `valid/` of DiskSim 4.0, with the seek tables thinned to about two dozen points. The
//! notice of these files must accompany the numbers:
//!
//! ```text
//! DiskSim Storage Subsystem Simulation Environment (Version 4.0)
//! Revision Authors: John Bucy, Greg Ganger
//! Contributors: John Griffin, Jiri Schindler, Steve Schlosser
//!
//! Copyright (c) of Carnegie Mellon University, 2001-2008.
//!
//! This software is being provided by the copyright holders under the
//! following license. By obtaining, using and/or copying this software,
//! you agree that you have read, understood, and will comply with the
//! following terms and conditions:
//!
//! Permission to reproduce, use, and prepare derivative works of this
//! software is granted provided the copyright and "No Warranty" statements
//! are included with all reproductions and derivative works and associated
//! documentation. This software may also be redistributed without charge
//! provided that the copyright and "No Warranty" statements are included
//! in all redistributions.
//!
//! NO WARRANTY. THIS SOFTWARE IS FURNISHED ON AN "AS IS" BASIS.
//! CARNEGIE MELLON UNIVERSITY MAKES NO WARRANTIES OF ANY KIND, EITHER
//! EXPRESSED OR IMPLIED AS TO THE MATTER INCLUDING, BUT NOT LIMITED
//! TO: WARRANTY OF FITNESS FOR PURPOSE OR MERCHANTABILITY, EXCLUSIVITY
//! OF RESULTS OR RESULTS OBTAINED FROM USE OF THIS SOFTWARE. CARNEGIE
//! MELLON UNIVERSITY DOES NOT MAKE ANY WARRANTY OF ANY KIND WITH RESPECT
//! TO FREEDOM FROM PATENT, TRADEMARK, OR COPYRIGHT INFRINGEMENT.
//! COPYRIGHT HOLDERS WILL BEAR NO LIABILITY FOR ANY USE OF THIS SOFTWARE
//! OR DOCUMENTATION.
//! ```
//!
//! Not from that source:
//!
//! - The spare blocks of the Cheetah 9LP and the Atlas 10K are distributed over the zones in
//!   proportion to their size, so that the capacity is that of the disk (assumption).
//! - The write-back cache holds as many extents as the disk has segments (assumption).
//! - The queue rule is FCFS (assumption: the traces have one request at a time).

use crate::disk::config::{
    Bus, CacheConfig, DiskConfig, Mapping, Overheads, QueueConfig, ReadAhead, SeekCurve, WritePolicy, Zone,
};
use crate::disk::schedule::Scheduler;
use std::borrow::Cow;

/// Creates a zone: first and last cylinder, blocks of a track, track and cylinder skew, offset of
/// the first block, blocks without data in front and spare blocks at the end.
const fn zone(cylinders: [u32; 2], blocks: u32, skew: [u32; 2], offset: u32, unused: [u64; 2]) -> Zone {
    Zone {
        first_cylinder: cylinders[0],
        last_cylinder: cylinders[1],
        blocks_per_track: blocks,
        first_block_offset: offset,
        track_skew: skew[0],
        cylinder_skew: skew[1],
        empty_blocks: unused[0],
        spare_blocks: unused[1],
        spare_blocks_per_track: 0,
        spare_blocks_per_cylinder: 0,
    }
}

const FCFS: QueueConfig = QueueConfig { scheduler: Scheduler::Fcfs, window: usize::MAX, age_limit_ms: None };

const CHEETAH_9LP_ZONES: [Zone; 11] = [
    zone([0, 846], 254, [97, 133], 0, [0, 21212]),
    zone([848, 1643], 245, [97, 133], 0, [0, 19229]),
    zone([1645, 2392], 238, [97, 117], 0, [0, 17553]),
    zone([2394, 3096], 227, [97, 116], 0, [0, 15734]),
    zone([3098, 3757], 217, [97, 108], 0, [0, 14122]),
    zone([3759, 4379], 209, [97, 108], 0, [0, 12797]),
    zone([4381, 4964], 201, [97, 108], 0, [0, 11574]),
    zone([4966, 5515], 189, [88, 94], 0, [0, 10249]),
    zone([5516, 6031], 181, [88, 93], 0, [0, 9209]),
    zone([6032, 6517], 174, [88, 93], 0, [0, 8338]),
    zone([6518, 6961], 167, [88, 80], 0, [0, 7311]),
];

const CHEETAH_9LP_SEEK: [(u32, f64); 21] = [
    (1, 0.831),
    (2, 1.003),
    (4, 1.092),
    (8, 1.439),
    (16, 1.453),
    (25, 1.625),
    (50, 1.804),
    (100, 2.145),
    (200, 2.517),
    (300, 2.699),
    (400, 3.051),
    (500, 3.23),
    (700, 3.638),
    (1000, 4.118),
    (1500, 4.757),
    (2000, 5.282),
    (3000, 6.345),
    (4000, 7.419),
    (5000, 8.492),
    (6000, 9.698),
    (6894, 10.627),
];

/// Seagate ST39102 (Cheetah 9LP), about 1998: 9.1 GB, 10,045 rpm, Ultra2 SCSI.
pub fn cheetah_9lp() -> DiskConfig {
    DiskConfig {
        name: Cow::Borrowed("cheetah-9lp"),
        blocks: 17_783_240,
        surfaces: 12,
        rpm: 10_045.0,
        mapping: Mapping::Normal,
        zones: Cow::Borrowed(&CHEETAH_9LP_ZONES),
        seek: SeekCurve::Table { points: Cow::Borrowed(&CHEETAH_9LP_SEEK) },
        head_switch_ms: 0.030,
        write_settle_ms: 0.461,
        cache: CacheConfig {
            segments: 3,
            segment_blocks: 561,
            write_segments: 3,
            read_ahead: ReadAhead::OneTrackAhead,
            max_read_ahead_blocks: 561,
            keeps_read_blocks: false,
            read_ahead_only_if_sequential: false,
            read_watermark_percent: 0,
            write: WritePolicy::Back {
                dirty_blocks: 3 * 561,
                dirty_extents: 3,
                window: usize::MAX,
                only_appending: false,
            },
            zero_latency_reads: false,
            zero_latency_writes: false,
        },
        overheads: Overheads {
            read_hit_after_read_ms: 0.066,
            read_hit_after_write_ms: 0.273,
            read_miss_after_read_ms: 0.284,
            read_miss_after_write_ms: 0.087,
            write_after_read_ms: 0.748,
            write_after_write_ms: 0.500,
            ..Overheads::uniform(0.0)
        },
        bus: Bus { read_block_ms: 0.105, write_block_ms: 0.105 },
        queue: FCFS,
    }
}

const ATLAS_10K_ZONES: [Zone; 16] = [
    zone([0, 1264], 334, [63, 113], 0, [0, 4235]),
    zone([1265, 2520], 324, [63, 101], 0, [0, 4080]),
    zone([2521, 2936], 324, [62, 101], 0, [0, 1351]),
    zone([2937, 4608], 324, [61, 98], 0, [0, 5431]),
    zone([4609, 5448], 306, [58, 98], 0, [0, 2577]),
    zone([5449, 5864], 302, [57, 92], 0, [0, 1260]),
    zone([5865, 6280], 293, [56, 91], 0, [0, 1222]),
    zone([6281, 6704], 288, [55, 91], 0, [0, 1224]),
    zone([6705, 7120], 288, [55, 88], 0, [0, 1201]),
    zone([7121, 7536], 280, [54, 88], 0, [0, 1168]),
    zone([7537, 7952], 270, [51, 87], 0, [0, 1126]),
    zone([7953, 8376], 262, [51, 83], 0, [0, 1113]),
    zone([8377, 8792], 255, [48, 83], 0, [0, 1064]),
    zone([8793, 9208], 246, [47, 75], 0, [0, 1026]),
    zone([9209, 9624], 237, [45, 75], 0, [0, 988]),
    zone([9625, 10041], 229, [44, 75], 0, [0, 958]),
];

const ATLAS_10K_SEEK: [(u32, f64); 24] = [
    (1, 1.245),
    (2, 1.157),
    (4, 1.378),
    (8, 1.645),
    (16, 1.547),
    (25, 1.628),
    (50, 1.863),
    (100, 2.011),
    (200, 2.651),
    (300, 2.93),
    (400, 3.146),
    (500, 3.208),
    (700, 3.263),
    (1000, 3.82),
    (1500, 4.198),
    (2000, 4.842),
    (3000, 5.643),
    (4000, 6.226),
    (5000, 6.814),
    (6000, 7.525),
    (7000, 8.205),
    (8000, 8.951),
    (9000, 10.114),
    (10021, 10.828),
];

/// Quantum Atlas 10K, about 1999: 9.1 GB, 10,025 rpm, Ultra2 SCSI.
pub fn atlas_10k() -> DiskConfig {
    DiskConfig {
        name: Cow::Borrowed("atlas-10k"),
        blocks: 17_938_986,
        surfaces: 6,
        rpm: 10_025.0,
        mapping: Mapping::Serpentine,
        zones: Cow::Borrowed(&ATLAS_10K_ZONES),
        seek: SeekCurve::Table { points: Cow::Borrowed(&ATLAS_10K_SEEK) },
        head_switch_ms: 0.176,
        write_settle_ms: 0.487,
        cache: CacheConfig {
            segments: 10,
            segment_blocks: 374,
            write_segments: 10,
            read_ahead: ReadAhead::OneTrackAhead,
            max_read_ahead_blocks: 354,
            keeps_read_blocks: true,
            read_ahead_only_if_sequential: false,
            read_watermark_percent: 0,
            write: WritePolicy::Back {
                dirty_blocks: 10 * 374,
                dirty_extents: 10,
                window: usize::MAX,
                only_appending: false,
            },
            zero_latency_reads: false,
            zero_latency_writes: true,
        },
        overheads: Overheads {
            read_hit_after_read_ms: 0.184,
            read_hit_after_write_ms: 0.184,
            write_after_read_ms: 0.186,
            write_after_write_ms: 0.189,
            ..Overheads::uniform(0.0)
        },
        bus: Bus { read_block_ms: 0.099, write_block_ms: 0.099 },
        queue: FCFS,
    }
}

const C2247A_ZONES: [Zone; 8] = [
    zone([0, 558], 96, [14, 32], 0, [1632, 31200]),
    zone([559, 760], 92, [13, 30], 14, [0, 11960]),
    zone([761, 901], 88, [13, 29], 73, [0, 5720]),
    zone([902, 1051], 84, [12, 28], 80, [0, 6552]),
    zone([1052, 1193], 80, [12, 27], 52, [0, 4160]),
    zone([1194, 1519], 72, [11, 24], 0, [0, 7488]),
    zone([1520, 1793], 64, [10, 22], 32, [0, 4992]),
    zone([1794, 2050], 56, [9, 19], 30, [0, 3640]),
];

const C2247A_FIRST_SEEKS_MS: [f64; 10] = [2.89, 3.68, 3.81, 3.98, 4.27, 4.65, 4.52, 4.65, 4.82, 4.99];

/// HP C2247A, about 1993: 1.05 GB, 5,400 rpm, SCSI-2.
pub fn c2247a() -> DiskConfig {
    DiskConfig {
        name: Cow::Borrowed("hp-c2247a"),
        blocks: 2_054_864,
        surfaces: 13,
        rpm: 5_400.0,
        mapping: Mapping::Normal,
        zones: Cow::Borrowed(&C2247A_ZONES),
        seek: SeekCurve::SquareRootThenLinear {
            boundary_cylinders: 300,
            short_constant_ms: 3.81,
            short_factor_ms: 0.33,
            long_constant_ms: 7.75,
            long_factor_ms: 0.0059,
            first_ms: Cow::Borrowed(&C2247A_FIRST_SEEKS_MS),
        },
        head_switch_ms: 0.89,
        write_settle_ms: 0.65,
        cache: CacheConfig {
            segments: 2,
            segment_blocks: 256,
            write_segments: 1,
            read_ahead: ReadAhead::UntilFull,
            max_read_ahead_blocks: 128,
            keeps_read_blocks: false,
            read_ahead_only_if_sequential: false,
            read_watermark_percent: 75,
            write: WritePolicy::Through,
            zero_latency_reads: false,
            zero_latency_writes: false,
        },
        overheads: Overheads {
            read_hit_after_read_ms: 0.953,
            read_hit_after_write_ms: 0.953,
            read_miss_after_read_ms: 0.558,
            read_miss_after_write_ms: 0.558,
            // The seek of a write starts at once, beside the overheads of 0.642 and 0.25 ms.
            write_after_read_ms: 0.0,
            write_after_write_ms: 0.0,
            write_transfer_delay_ms: 0.642 + 0.25,
            read_completion_ms: 0.057,
            write_completion_ms: 0.05 + 0.162,
        },
        bus: Bus { read_block_ms: 0.1701, write_block_ms: 0.18686 },
        queue: FCFS,
    }
}
