//! Errors of parameters, and the ranges that keep all times and addresses within 64 bits.

use super::config::{DiskConfig, MAX_MS, SeekCurve, Zone};
use super::schedule::Scheduler;
use super::seek;

/// Largest skew of a track, in blocks.
pub(super) const MAX_SKEW: f64 = 1e6;

/// Largest number of a cylinder. The table of seek times has an entry for each cylinder.
pub(super) const MAX_CYLINDER: f64 = 4e6;

/// Rounding error that a seek time of 0 may have.
pub(super) const SLACK_MS: f64 = 1e-9;

/// Range of a value.
struct Range {
    value: &'static str,
    number: f64,
    from: f64,
    to: f64,
}

/// Checks the numbers of a disk, but not the order of its zones.
///
/// # Errors
/// If a number is out of its range, or the seek table is empty or not sorted, or a seek time is
/// negative.
pub(super) fn check(config: &DiskConfig) -> Result<(), ConfigError> {
    let disk = || config.name.clone().into_owned();
    let largest = |of: fn(&Zone) -> u32| config.zones.iter().map(of).max().map(f64::from);
    let weight = match config.queue.scheduler {
        Scheduler::AgedSptf { weight_permille } => weight_permille,
        _ => 0,
    };
    let full = config.zones.iter().map(|zone| zone.last_cylinder).max().unwrap_or(0);
    let ranges = [
        Range { value: "rpm", number: config.rpm, from: 60.0, to: 1e6 },
        Range { value: "surfaces", number: f64::from(config.surfaces), from: 1.0, to: 1024.0 },
        Range {
            value: "blocks_per_track",
            number: largest(|zone| zone.blocks_per_track).unwrap_or(1.0),
            from: 1.0,
            to: 1e6,
        },
        Range { value: "last_cylinder", number: f64::from(full), from: 0.0, to: MAX_CYLINDER },
        Range {
            value: "first_block_offset",
            number: largest(|zone| zone.first_block_offset).unwrap_or(0.0),
            from: 0.0,
            to: MAX_SKEW,
        },
        Range { value: "track_skew", number: largest(|zone| zone.track_skew).unwrap_or(0.0), from: 0.0, to: MAX_SKEW },
        Range {
            value: "cylinder_skew",
            number: largest(|zone| zone.cylinder_skew).unwrap_or(0.0),
            from: 0.0,
            to: MAX_SKEW,
        },
        Range { value: "segments", number: config.cache.segments as f64, from: 0.0, to: 1e6 },
        Range {
            value: "read_watermark_percent",
            number: f64::from(config.cache.read_watermark_percent),
            from: 0.0,
            to: 100.0,
        },
        Range { value: "weight_permille", number: f64::from(weight), from: 0.0, to: 1e6 },
    ];
    let times = times(config).into_iter().map(|(value, number)| Range { value, number, from: 0.0, to: MAX_MS });
    for Range { value, number, from, to } in ranges.into_iter().chain(times).chain(seek_ranges(&config.seek)) {
        if !(from..=to).contains(&number) {
            return Err(ConfigError::Range { disk: disk(), value, number, from, to });
        }
    }
    match &config.seek {
        SeekCurve::Table { points } if points.is_empty() || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) => {
            Err(ConfigError::SeekTable { disk: disk() })
        }
        curve if seek::shortest_ms(curve, full) < -SLACK_MS => {
            Err(ConfigError::SeekTime { disk: disk(), ms: seek::shortest_ms(curve, full) })
        }
        _ => Ok(()),
    }
}

/// Ranges of the numbers of a seek curve. The terms of a sum may be negative.
fn seek_ranges(curve: &SeekCurve) -> Vec<Range> {
    let time = |value, number| Range { value, number, from: 0.0, to: MAX_MS };
    let term = |value, number| Range { value, number, from: -MAX_MS, to: MAX_MS };
    match curve {
        SeekCurve::Linear { single_ms, full_ms } => vec![time("single_ms", *single_ms), time("full_ms", *full_ms)],
        SeekCurve::ThreePoint { single_ms, average_ms, full_ms } => {
            vec![time("single_ms", *single_ms), time("average_ms", *average_ms), time("full_ms", *full_ms)]
        }
        SeekCurve::SquareRootThenLinear {
            boundary_cylinders: _,
            short_constant_ms,
            short_factor_ms,
            long_constant_ms,
            long_factor_ms,
            first_ms,
        } => {
            let terms = [
                term("short_constant_ms", *short_constant_ms),
                term("short_factor_ms", *short_factor_ms),
                term("long_constant_ms", *long_constant_ms),
                term("long_factor_ms", *long_factor_ms),
            ];
            terms.into_iter().chain(first_ms.iter().map(|ms| time("first_ms", *ms))).collect()
        }
        SeekCurve::Table { points } => points.iter().map(|point| time("points", point.1)).collect(),
    }
}

fn times(config: &DiskConfig) -> [(&'static str, f64); 14] {
    let o = &config.overheads;
    [
        ("head_switch_ms", config.head_switch_ms),
        ("write_settle_ms", config.write_settle_ms),
        ("read_hit_after_read_ms", o.read_hit_after_read_ms),
        ("read_hit_after_write_ms", o.read_hit_after_write_ms),
        ("read_miss_after_read_ms", o.read_miss_after_read_ms),
        ("read_miss_after_write_ms", o.read_miss_after_write_ms),
        ("write_after_read_ms", o.write_after_read_ms),
        ("write_after_write_ms", o.write_after_write_ms),
        ("write_transfer_delay_ms", o.write_transfer_delay_ms),
        ("read_completion_ms", o.read_completion_ms),
        ("write_completion_ms", o.write_completion_ms),
        ("read_block_ms", config.bus.read_block_ms),
        ("write_block_ms", config.bus.write_block_ms),
        ("age_limit_ms", config.queue.age_limit_ms.unwrap_or(0.0)),
    ]
}

/// Error of a [`DiskConfig`]. Each message names the value and the remedy.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// A number is out of its range.
    #[error("disk {disk}: {value} is {number}; set a number from {from} to {to}")]
    Range {
        /// Name of the disk.
        disk: String,
        /// Name of the value.
        value: &'static str,
        /// The value.
        number: f64,
        /// Smallest permitted value.
        from: f64,
        /// Largest permitted value.
        to: f64,
    },
    /// A zone is empty, or does not follow the zone before.
    #[error(
        "disk {disk}: zone {zone} is empty or does not follow zone {zone} - 1; list zones by first cylinder, with \
         at least one track and more blocks than spare ones"
    )]
    Zone {
        /// Name of the disk.
        disk: String,
        /// Index of the zone, from 0.
        zone: usize,
    },
    /// The zones hold fewer blocks than the disk has.
    #[error("disk {disk}: {blocks} blocks, but its zones hold {held}; reduce the blocks or the spare blocks")]
    Capacity {
        /// Name of the disk.
        disk: String,
        /// Blocks of the disk.
        blocks: u64,
        /// Blocks of the zones.
        held: u64,
    },
    /// The numbers of a seek curve yield a negative time.
    #[error("disk {disk}: a seek takes {ms} ms; change the numbers of the seek curve so that no time is negative")]
    SeekTime {
        /// Name of the disk.
        disk: String,
        /// Shortest time.
        ms: f64,
    },
    /// A seek table has no points, or its distances do not increase.
    #[error("disk {disk}: the seek points are empty or not sorted; list them by increasing distance")]
    SeekTable {
        /// Name of the disk.
        disk: String,
    },
}
