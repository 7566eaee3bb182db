//! Errors of parameters, and the ranges that keep all times and addresses within 64 bits.

use super::config::{DiskConfig, MAX_MS, SeekCurve};

/// Range of a value that is not a time.
struct Range {
    value: &'static str,
    number: f64,
    from: f64,
    to: f64,
}

/// Checks the numbers of a disk, but not the order of its zones.
///
/// # Errors
/// If a number is out of its range, or the seek table is empty or not sorted.
pub(super) fn check(config: &DiskConfig) -> Result<(), ConfigError> {
    let disk = || config.name.clone().into_owned();
    let ranges = [
        Range { value: "rpm", number: config.rpm, from: 60.0, to: 1e6 },
        Range { value: "surfaces", number: f64::from(config.surfaces), from: 1.0, to: 1024.0 },
        Range {
            value: "blocks_per_track",
            number: config.zones.iter().map(|zone| zone.blocks_per_track).max().map_or(1.0, f64::from),
            from: 1.0,
            to: 1e6,
        },
        Range {
            value: "last_cylinder",
            number: config.zones.iter().map(|zone| zone.last_cylinder).max().map_or(0.0, f64::from),
            from: 0.0,
            to: 16e6,
        },
        Range { value: "segments", number: config.cache.segments as f64, from: 0.0, to: 1e6 },
    ];
    let times = times(config).into_iter().map(|(value, number)| Range { value, number, from: 0.0, to: MAX_MS });
    for Range { value, number, from, to } in ranges.into_iter().chain(times) {
        if !(from..=to).contains(&number) {
            return Err(ConfigError::Range { disk: disk(), value, number, from, to });
        }
    }
    match &config.seek {
        SeekCurve::Table { points } if points.is_empty() || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) => {
            Err(ConfigError::SeekTable { disk: disk() })
        }
        _ => Ok(()),
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
    /// A seek table has no points, or its distances do not increase.
    #[error("disk {disk}: the seek points are empty or not sorted; list them by increasing distance")]
    SeekTable {
        /// Name of the disk.
        disk: String,
    },
}
