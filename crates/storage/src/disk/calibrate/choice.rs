//! The choices of the cache, which are words and whole numbers.

use super::Changed;
use crate::disk::config::{DiskConfig, ReadAhead, WritePolicy};

/// Name, and text of the value.
type Choice = (&'static str, fn(&DiskConfig) -> String);

const CHOICES: [Choice; 8] = [
    ("read_ahead", |config| format!("{:?}", config.cache.read_ahead)),
    ("max_read_ahead_blocks", |config| config.cache.max_read_ahead_blocks.to_string()),
    ("read_ahead_only_if_sequential", |config| config.cache.read_ahead_only_if_sequential.to_string()),
    ("keeps_read_blocks", |config| config.cache.keeps_read_blocks.to_string()),
    ("read_watermark_percent", |config| config.cache.read_watermark_percent.to_string()),
    ("write", |config| match config.cache.write {
        WritePolicy::Through => "through".to_owned(),
        WritePolicy::Back { only_appending: true, .. } => "back, only appending".to_owned(),
        WritePolicy::Back { .. } => "back".to_owned(),
    }),
    ("zero_latency_reads", |config| config.cache.zero_latency_reads.to_string()),
    ("zero_latency_writes", |config| config.cache.zero_latency_writes.to_string()),
];

/// Returns the choices that differ.
pub(super) fn changed(before: &DiskConfig, after: &DiskConfig) -> Vec<Changed> {
    let rows = CHOICES.iter().map(|(name, text)| Changed { name, before: text(before), after: text(after) });
    rows.filter(|row| row.before != row.after).collect()
}

/// Returns the disks that differ from this one by one choice.
pub(super) fn others(config: &DiskConfig) -> Vec<DiskConfig> {
    let cache = config.cache;
    let mut others = Vec::new();
    let mut add = |change: &dyn Fn(&mut DiskConfig)| {
        let mut other = config.clone();
        change(&mut other);
        if other != *config {
            others.push(other);
        }
    };
    for read_ahead in [
        ReadAhead::None,
        ReadAhead::ToEndOfTrack,
        ReadAhead::ToEndOfCylinder,
        ReadAhead::UntilFull,
        ReadAhead::OneTrackAhead,
    ] {
        add(&|other| other.cache.read_ahead = read_ahead);
    }
    for blocks in [cache.max_read_ahead_blocks / 2, cache.max_read_ahead_blocks.saturating_mul(2), cache.segment_blocks]
    {
        add(&|other| other.cache.max_read_ahead_blocks = blocks.min(1 << 50));
    }
    for percent in [0, 50, 75, 100] {
        add(&|other| other.cache.read_watermark_percent = percent);
    }
    add(&|other| other.cache.read_ahead_only_if_sequential ^= true);
    add(&|other| other.cache.keeps_read_blocks ^= true);
    add(&|other| other.cache.zero_latency_reads ^= true);
    add(&|other| other.cache.zero_latency_writes ^= true);
    let extents = cache.write_segments.max(1);
    let back = |appending| WritePolicy::Back {
        dirty_blocks: (extents as u64).saturating_mul(cache.segment_blocks).min(1 << 50),
        dirty_extents: extents,
        window: usize::MAX,
        only_appending: appending,
    };
    match cache.write {
        WritePolicy::Through => {
            add(&|other| other.cache.write = back(false));
            add(&|other| other.cache.write = back(true));
        }
        WritePolicy::Back { dirty_blocks, dirty_extents, window, only_appending } => {
            add(&|other| other.cache.write = WritePolicy::Through);
            let only_appending = !only_appending;
            add(&|other| {
                other.cache.write = WritePolicy::Back { dirty_blocks, dirty_extents, window, only_appending };
            });
        }
    }
    others
}
