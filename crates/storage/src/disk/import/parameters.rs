//! Cache, overheads, bus and queue: the block `disksim_disk`, and the buses of a `.parv` file.

use super::layout::{Keys, Layout};
use super::syntax::{Block, Value};
use super::{ImportError, Note};
use crate::disk::config::{Bus, CacheConfig, DiskConfig, MAX_MS, Overheads, QueueConfig, ReadAhead, WritePolicy};
use crate::disk::schedule::Scheduler;

/// Returns the slowest bus between host and disk.
pub(super) fn buses(buses: &[&Block], controllers: &[&Block]) -> Bus {
    let largest = |blocks: &[&Block], key: &str| {
        let entries = blocks.iter().flat_map(|block| &block.entries).filter(|entry| entry.key == key);
        entries.filter_map(|entry| entry.value.number()).filter(|ms| (0.0..=MAX_MS).contains(ms)).fold(0.0, f64::max)
    };
    let controller = largest(controllers, "Bulk sector transfer time");
    Bus {
        read_block_ms: largest(buses, "Read block transfer time").max(controller),
        write_block_ms: largest(buses, "Write block transfer time").max(controller),
    }
}

/// Reads the disk.
pub(super) fn config(
    disk: &Block,
    layout: Layout,
    buses: Bus,
    notes: &mut Vec<Note>,
) -> Result<DiskConfig, ImportError> {
    let mut keys = Keys::new(disk);
    for key in ["Model", "Print stats", "Avg sectors per cylinder"] {
        keys.get(key);
    }
    let bulk_ms = keys.number("Bulk sector transfer time", 0.0, MAX_MS, Some(0.0))?;
    let bus =
        Bus { read_block_ms: buses.read_block_ms.max(bulk_ms), write_block_ms: buses.write_block_ms.max(bulk_ms) };
    if bus.read_block_ms == 0.0 {
        notes.push(Note {
            parameter: "Read block transfer time".to_owned(),
            value: "0".to_owned(),
            reason: "no bus has a transfer time; import the .parv file, which describes the buses".to_owned(),
        });
    }
    let cache = cache(&mut keys, notes)?;
    let overheads = overheads(&mut keys, &cache)?;
    let queue = queue(&mut keys, notes)?;
    keys.note_unused(&REASONS, notes);
    Ok(DiskConfig {
        name: disk.name.to_ascii_lowercase().replace([' ', '_'], "-").into(),
        blocks: layout.blocks,
        surfaces: layout.surfaces,
        rpm: layout.rpm,
        mapping: layout.mapping,
        zones: layout.zones.into(),
        seek: layout.seek,
        head_switch_ms: layout.head_switch_ms,
        write_settle_ms: layout.write_settle_ms,
        cache,
        overheads,
        bus,
        queue,
    })
}

/// Reasons for parameters without a counterpart.
const REASONS: [(&str, &str); 21] = [
    ("Hold bus entire read xfer", "a request has the bus only while its blocks are transferred"),
    ("Hold bus entire write xfer", "a request has the bus only while its blocks are transferred"),
    ("Never disconnect", "the bus carries one request at a time in any case"),
    ("Low (write) water mark", "the medium may write as soon as all blocks are in the cache"),
    ("Set watermark by reqsize", "the watermark is always a share of the request"),
    ("Calc sector by sector", "times are exact for each block"),
    ("Minimum read-ahead (blks)", "only the maximum limits a read-ahead"),
    ("Read-ahead on idle hit", "a hit always continues its read-ahead"),
    ("Read any free blocks", "blocks that pass before the requested ones are not cached"),
    ("Combine seq writes", "sequential cached writes are always combined"),
    ("Stop prefetch in sector", "a read-ahead ends as soon as the arm must move"),
    ("Disconnect write if seek", "disconnects take no time of their own"),
    ("Write hit stop prefetch", "a write to the medium always ends the read-ahead"),
    ("Read directly to buffer", "reads always pass through the cache"),
    ("Immed transfer partial hit", "the bus waits for the first block of a read"),
    ("Other reselect overhead", "only the first reselection takes time"),
    ("Read disconnect afterread", "disconnects overlap with the mechanics"),
    ("Read disconnect afterwrite", "disconnects overlap with the mechanics"),
    ("Write disconnect overhead", "disconnects overlap with the mechanics"),
    ("Minimum seek delay", "a seek takes the time of its distance"),
    ("Extradisc inter-disconnect delay", "disconnects overlap with the mechanics"),
];

fn cache(keys: &mut Keys<'_>, notes: &mut Vec<Note>) -> Result<CacheConfig, ImportError> {
    let segments = keys.number("Number of buffer segments", 0.0, 1e6, None)? as usize;
    let segment_blocks = keys.number("Segment size (in blks)", 0.0, 1e12, None)? as u64;
    let is_separate = keys.number("Use separate write segment", 0.0, 1.0, Some(0.0))? > 0.0;
    let most = keys.number("Maximum number of write segments", 0.0, 1e6, Some(1.0))? as usize;
    let holds_writes = keys.number("Allow read hits on write data", 0.0, 1.0, Some(1.0))? > 0.0;
    let writing = if is_separate { most.clamp(1, segments.max(1)) } else { segments.max(1) };
    let read_ahead = match keys.number("Buffer continuous read", 0.0, 4.0, Some(0.0))? as u32 {
        0 => ReadAhead::None,
        1 => ReadAhead::ToEndOfTrack,
        2 => ReadAhead::ToEndOfCylinder,
        3 => ReadAhead::UntilFull,
        _ => ReadAhead::OneTrackAhead,
    };
    let back = |only_appending| WritePolicy::Back {
        dirty_blocks: writing as u64 * segment_blocks,
        dirty_extents: writing,
        window: usize::MAX,
        only_appending,
    };
    let write = match keys.number("Fast write level", 0.0, 2.0, Some(0.0))? as u32 {
        0 => WritePolicy::Through,
        1 => back(true),
        _ => back(false),
    };
    let enabled = keys.number("Enable caching in buffer", 0.0, 2.0, Some(1.0))?;
    if enabled == 2.0 {
        notes.push(Note {
            parameter: "Enable caching in buffer".to_owned(),
            value: "2".to_owned(),
            reason: "all cached blocks can be hits, not only those of a sequential read".to_owned(),
        });
    }
    Ok(CacheConfig {
        segments: if enabled == 0.0 { 0 } else { segments },
        segment_blocks,
        write_segments: if holds_writes { writing.min(segments) } else { 0 },
        read_ahead,
        max_read_ahead_blocks: keys.number("Maximum read-ahead (blks)", 0.0, 1e12, Some(segment_blocks as f64))? as u64,
        read_ahead_only_if_sequential: false,
        // Read-ahead that may not replace requested blocks keeps them.
        keeps_read_blocks: keys.number("Read-ahead over requested", 0.0, 1.0, Some(0.0))? == 0.0,
        read_watermark_percent: (keys.number("High (read) water mark", 0.0, 1.0, Some(0.0))? * 100.0).round() as u32,
        write,
        zero_latency_reads: keys.number("Immediate buffer read", 0.0, 2.0, Some(0.0))? > 0.0,
        zero_latency_writes: keys.number("Immediate buffer write", 0.0, 2.0, Some(0.0))? > 0.0,
    })
}

fn overheads(keys: &mut Keys<'_>, cache: &CacheConfig) -> Result<Overheads, ImportError> {
    let scale = keys.number("Time scale for overheads", 0.0, 1e6, Some(1.0))?;
    let request_ms = keys.number("Per-request overhead time", 0.0, MAX_MS, Some(0.0))?;
    let mut plain_ms = |key| keys.number(key, 0.0, MAX_MS, Some(0.0)).map(|ms| ms * scale);
    let hits_ms = [plain_ms("Write hit over. after read")?, plain_ms("Write hit over. after write")?];
    let misses_ms = [plain_ms("Write miss over. after read")?, plain_ms("Write miss over. after write")?];
    let has_extra = plain_ms("Extra write disconnect")? > 0.0;
    let command_ms = plain_ms("Extradisc command overhead")?;
    let delta_ms = plain_ms("Extradisc seek delta")?;
    let preparation_ms = plain_ms("Data preparation overhead")?;
    let reselect_ms = plain_ms("First reselect overhead")?;
    let completion_ms = plain_ms("Write completion overhead")?;
    let ends_in_cache = matches!(cache.write, WritePolicy::Back { only_appending: false, .. });
    // A write to the medium seeks beside its overhead, and its blocks follow behind the overhead.
    let (after_ms, transfer_delay_ms) = if ends_in_cache {
        (hits_ms, 0.0)
    } else if has_extra {
        ([0.0; 2], command_ms + delta_ms)
    } else {
        let least_ms = misses_ms[0].min(misses_ms[1]);
        (misses_ms.map(|ms| ms - least_ms), least_ms + preparation_ms)
    };
    Ok(Overheads {
        read_hit_after_read_ms: request_ms + plain_ms("Read hit over. after read")?,
        read_hit_after_write_ms: request_ms + plain_ms("Read hit over. after write")?,
        read_miss_after_read_ms: request_ms + plain_ms("Read miss over. after read")?,
        read_miss_after_write_ms: request_ms + plain_ms("Read miss over. after write")?,
        write_after_read_ms: request_ms + after_ms[0],
        write_after_write_ms: request_ms + after_ms[1],
        write_transfer_delay_ms: transfer_delay_ms,
        read_completion_ms: plain_ms("Read completion overhead")?,
        write_completion_ms: completion_ms + reselect_ms,
    })
}

fn queue(keys: &mut Keys<'_>, notes: &mut Vec<Note>) -> Result<QueueConfig, ImportError> {
    let window = keys.number("Max queue length", 0.0, 1e9, Some(1.0))?.max(1.0) as usize;
    let policy = match keys.get("Scheduler").map(|entry| &entry.value) {
        Some(Value::Block(block)) => Keys::new(block).number("Scheduling policy", 0.0, 1e3, Some(1.0))? as u32,
        _ => 1,
    };
    let scheduler = match policy {
        1 => Scheduler::Fcfs,
        2 | 5 => Scheduler::Look,
        3 | 6 => Scheduler::CLook,
        4 | 7 => Scheduler::Sstf,
        8..=13 => Scheduler::Sptf,
        _ => Scheduler::Fcfs,
    };
    if policy > 8 {
        notes.push(Note {
            parameter: "Scheduling policy".to_owned(),
            value: policy.to_string(),
            reason: format!("the nearest rule of the model was taken: {scheduler:?}"),
        });
    }
    Ok(QueueConfig { scheduler, window, age_limit_ms: None })
}
