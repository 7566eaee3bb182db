//! The keys of a parameter file, their ranges, and the relations between them.

use super::reader::{Reader, Table, Variant, number};
use crate::disk::check::{MAX_CYLINDER, MAX_SKEW, SLACK_MS};
use crate::disk::config::{
    Bus, CacheConfig, DiskConfig, MAX_MS, Mapping, Overheads, QueueConfig, ReadAhead, SeekCurve, WritePolicy, Zone,
};
use crate::disk::schedule::Scheduler;
use crate::disk::seek;
use std::ops::RangeInclusive;

/// Largest number of zones.
const MAX_ZONES: usize = 10_000;

/// Largest number of points of a seek table.
const MAX_POINTS: usize = 100_000;

const MS: RangeInclusive<f64> = 0.0..=MAX_MS;
const TERM: RangeInclusive<f64> = -MAX_MS..=MAX_MS;
const COUNT: RangeInclusive<u64> = 0..=1_000_000;
const BLOCKS: RangeInclusive<u64> = 0..=1 << 50;
const ANY: RangeInclusive<u64> = 1..=i64::MAX as u64;

const ROOT: [&str; 13] = [
    "name",
    "blocks",
    "surfaces",
    "rpm",
    "mapping",
    "zones",
    "seek",
    "head_switch_ms",
    "write_settle_ms",
    "cache",
    "overheads",
    "bus",
    "queue",
];

const ZONE: [&str; 10] = [
    "first_cylinder",
    "last_cylinder",
    "blocks_per_track",
    "first_block_offset",
    "track_skew",
    "cylinder_skew",
    "empty_blocks",
    "spare_blocks",
    "spare_blocks_per_track",
    "spare_blocks_per_cylinder",
];

const CACHE: [&str; 11] = [
    "segments",
    "segment_blocks",
    "write_segments",
    "read_ahead",
    "max_read_ahead_blocks",
    "read_ahead_only_if_sequential",
    "keeps_read_blocks",
    "read_watermark_percent",
    "write",
    "zero_latency_reads",
    "zero_latency_writes",
];

const OVERHEADS: [&str; 9] = [
    "read_hit_after_read_ms",
    "read_hit_after_write_ms",
    "read_miss_after_read_ms",
    "read_miss_after_write_ms",
    "write_after_read_ms",
    "write_after_write_ms",
    "write_transfer_delay_ms",
    "read_completion_ms",
    "write_completion_ms",
];

/// Reads the whole file. `None` only if a part is missing that has no neutral value.
pub(super) fn disk(reader: &mut Reader<'_>) -> Option<DiskConfig> {
    let parsed = reader.parse();
    if !reader.found.is_empty() {
        // After an error of the syntax the rest of the file is missing.
        return None;
    }
    let root = reader.root(&parsed);
    reader.keys(&root, &ROOT);
    let name = reader.text(&root, "name");
    let surfaces = reader.integer(&root, "surfaces", 1..=1024, None) as u32;
    let zones = zones(reader, &root, surfaces);
    let blocks = reader.integer(&root, "blocks", BLOCKS, Some(0));
    if let Some((zones, held)) = &zones
        && !zones.is_empty()
        && blocks > *held
    {
        let reason = format!("the disk has {blocks} blocks, but its zones hold {held}");
        reader.mistake(root.at_key("blocks"), reason, "reduce `blocks` or the spare blocks of the zones");
    }
    let rpm = reader.number(&root, "rpm", 60.0..=1e6, None);
    let mapping = match reader.variant(&root, "mapping", &["normal", "serpentine"], false) {
        Some(Variant::Word("serpentine")) => Mapping::Serpentine,
        _ => Mapping::Normal,
    };
    let full = zones.as_ref().and_then(|zones| zones.0.last().map(|zone| zone.last_cylinder));
    let seek = seek_curve(reader, &root, full);
    let head_switch_ms = reader.number(&root, "head_switch_ms", MS, None);
    let write_settle_ms = reader.number(&root, "write_settle_ms", MS, Some(0.0));
    let cache = cache(reader, &root);
    let overheads = overheads(reader, &root);
    let bus = bus(reader, &root);
    let queue = queue(reader, &root);
    Some(DiskConfig {
        name: name.into(),
        blocks,
        surfaces,
        rpm,
        mapping,
        zones: zones?.0.into(),
        seek: seek?,
        head_switch_ms,
        write_settle_ms,
        cache: cache?,
        overheads: overheads?,
        bus: bus?,
        queue,
    })
}

/// Returns the zones and the blocks that they hold. `None` if a zone is impossible.
fn zones(reader: &mut Reader<'_>, root: &Table<'_, '_>, surfaces: u32) -> Option<(Vec<Zone>, u64)> {
    let mistakes = reader.found.len();
    let tables = reader.tables(root, "zones", MAX_ZONES);
    let (mut zones, mut held, mut next_cylinder) = (Vec::with_capacity(tables.len()), 0, 0);
    for table in &tables {
        reader.keys(table, &ZONE);
        let before = reader.found.len();
        let small =
            |reader: &mut Reader<'_>, key, most: f64, fallback| reader.integer(table, key, 0..=most as u64, fallback);
        let zone = Zone {
            first_cylinder: small(reader, "first_cylinder", MAX_CYLINDER, None) as u32,
            last_cylinder: small(reader, "last_cylinder", MAX_CYLINDER, None) as u32,
            blocks_per_track: reader.integer(table, "blocks_per_track", 1..=1_000_000, None) as u32,
            first_block_offset: small(reader, "first_block_offset", MAX_SKEW, Some(0)) as u32,
            track_skew: small(reader, "track_skew", MAX_SKEW, None) as u32,
            cylinder_skew: small(reader, "cylinder_skew", MAX_SKEW, None) as u32,
            empty_blocks: reader.integer(table, "empty_blocks", BLOCKS, Some(0)),
            spare_blocks: reader.integer(table, "spare_blocks", BLOCKS, Some(0)),
            spare_blocks_per_track: reader.integer(table, "spare_blocks_per_track", COUNT, Some(0)) as u32,
            spare_blocks_per_cylinder: reader.integer(table, "spare_blocks_per_cylinder", COUNT, Some(0)) as u32,
        };
        zones.push(zone);
        if reader.found.len() > before {
            continue;
        }
        if zone.first_cylinder < next_cylinder {
            let reason = format!("the zone starts at cylinder {}, inside or before another zone", zone.first_cylinder);
            let remedy = format!("list the zones by first cylinder; the next free cylinder is {next_cylinder}");
            reader.mistake(table.at_key("first_cylinder"), reason, remedy);
        }
        if zone.last_cylinder < zone.first_cylinder {
            let reason = format!("the zone ends at cylinder {} before it starts", zone.last_cylinder);
            let remedy = format!("set a last cylinder of at least {}", zone.first_cylinder);
            reader.mistake(table.at_key("last_cylinder"), reason, remedy);
            continue;
        }
        next_cylinder = next_cylinder.max(zone.last_cylinder + 1);
        match zone.data_blocks(surfaces) {
            Some(blocks) => held += blocks,
            None => {
                let tracks = u64::from(zone.last_cylinder - zone.first_cylinder + 1) * u64::from(surfaces);
                let all = tracks * u64::from(zone.blocks_per_track);
                let reason = format!("the zone has {all} blocks, and all of them are empty or spare");
                reader.mistake(table.at, reason, "reduce `empty_blocks` or the spare blocks");
            }
        }
    }
    if tables.is_empty() {
        if reader.found.len() == mistakes {
            reader.mistake(root.at_key("zones"), "the disk has no zone", "add a table [[zones]] for each zone");
        }
        return None;
    }
    (reader.found.len() == mistakes).then_some((zones, held))
}

/// Returns the seek curve; `full` is the last cylinder.
fn seek_curve(reader: &mut Reader<'_>, root: &Table<'_, '_>, full: Option<u32>) -> Option<SeekCurve> {
    const FORMS: [&str; 4] = ["linear", "three_point", "square_root_then_linear", "table"];
    let at = root.at_key("seek");
    let mistakes = reader.found.len();
    let curve = match reader.variant(root, "seek", &FORMS, true)? {
        Variant::Word(word) => {
            reader.mistake(at, format!("`seek` is the word {word}"), format!("add a table [seek.{word}]"));
            return None;
        }
        Variant::Table("linear", table) => {
            reader.keys(&table, &["single_ms", "full_ms"]);
            SeekCurve::Linear {
                single_ms: reader.number(&table, "single_ms", MS, None),
                full_ms: reader.number(&table, "full_ms", MS, None),
            }
        }
        Variant::Table("three_point", table) => {
            reader.keys(&table, &["single_ms", "average_ms", "full_ms"]);
            SeekCurve::ThreePoint {
                single_ms: reader.number(&table, "single_ms", MS, None),
                average_ms: reader.number(&table, "average_ms", MS, None),
                full_ms: reader.number(&table, "full_ms", MS, None),
            }
        }
        Variant::Table("square_root_then_linear", table) => square_root(reader, &table),
        Variant::Table(_, table) => {
            reader.keys(&table, &["points"]);
            SeekCurve::Table { points: points(reader, &table)?.into() }
        }
    };
    if reader.found.len() > mistakes {
        return None;
    }
    let shortest_ms = seek::shortest_ms(&curve, full.unwrap_or(1));
    if full.is_some() && shortest_ms < -SLACK_MS {
        let reason = format!("the numbers of the seek curve yield a seek of {shortest_ms:.3} ms");
        reader.mistake(at, reason, "change the numbers so that no seek takes a negative time");
    }
    Some(curve)
}

fn square_root(reader: &mut Reader<'_>, table: &Table<'_, '_>) -> SeekCurve {
    reader.keys(
        table,
        &[
            "boundary_cylinders",
            "short_constant_ms",
            "short_factor_ms",
            "long_constant_ms",
            "long_factor_ms",
            "first_ms",
        ],
    );
    let mut first_ms = Vec::new();
    for (index, value) in reader.items(table, "first_ms", MAX_POINTS, "").iter().enumerate() {
        match number(value.get_ref()).filter(|ms| MS.contains(ms)) {
            Some(ms) => first_ms.push(ms),
            None => {
                let remedy = format!("write a number from 0 to {MAX_MS}");
                reader.mistake(value.span().start, format!("item {index} of `first_ms` is not a time"), remedy);
            }
        }
    }
    SeekCurve::SquareRootThenLinear {
        boundary_cylinders: reader.integer(table, "boundary_cylinders", 0..=MAX_CYLINDER as u64, None) as u32,
        short_constant_ms: reader.number(table, "short_constant_ms", TERM, None),
        short_factor_ms: reader.number(table, "short_factor_ms", TERM, None),
        long_constant_ms: reader.number(table, "long_constant_ms", TERM, None),
        long_factor_ms: reader.number(table, "long_factor_ms", TERM, None),
        first_ms: first_ms.into(),
    }
}

/// Returns the points of a seek table. `None` if there is a mistake.
fn points(reader: &mut Reader<'_>, table: &Table<'_, '_>) -> Option<Vec<(u32, f64)>> {
    let items = reader.items(table, "points", MAX_POINTS, "points = [[1, 0.8], [1000, 4.0]]");
    let mistakes = reader.found.len();
    let mut points: Vec<(u32, f64)> = Vec::with_capacity(items.len());
    for item in items {
        let at = item.span().start;
        let pair = match item.get_ref().as_array().map(|pair| &pair[..]) {
            Some([distance, ms]) => number(distance.get_ref()).zip(number(ms.get_ref())),
            _ => None,
        };
        let valid = pair.filter(|(distance, ms)| {
            distance.fract() == 0.0 && (0.0..=MAX_CYLINDER).contains(distance) && MS.contains(ms)
        });
        let Some((distance, ms)) = valid else {
            reader.mistake(at, "a seek point is not a pair of cylinders and ms", "write it as [1000, 4.118]");
            continue;
        };
        if points.last().is_some_and(|last| f64::from(last.0) >= distance) {
            let reason = format!("the seek point of {distance} cylinders does not follow a shorter one");
            reader.mistake(at, reason, "list the points by increasing distance, each distance once");
        }
        points.push((distance as u32, ms));
    }
    if points.is_empty() && reader.found.is_empty() {
        reader.mistake(table.at_key("points"), "the seek table has no points", "add points such as [1, 0.8]");
    }
    (reader.found.len() == mistakes && !points.is_empty()).then_some(points)
}

fn cache(reader: &mut Reader<'_>, root: &Table<'_, '_>) -> Option<CacheConfig> {
    const AHEAD: [(&str, ReadAhead); 5] = [
        ("none", ReadAhead::None),
        ("to_end_of_track", ReadAhead::ToEndOfTrack),
        ("to_end_of_cylinder", ReadAhead::ToEndOfCylinder),
        ("until_full", ReadAhead::UntilFull),
        ("one_track_ahead", ReadAhead::OneTrackAhead),
    ];
    let table = reader.table(root, "cache", true)?;
    reader.keys(&table, &CACHE);
    let read_ahead = match reader.variant(&table, "read_ahead", &AHEAD.map(|ahead| ahead.0), true) {
        Some(Variant::Word(word)) => AHEAD.iter().find(|ahead| ahead.0 == word).map(|ahead| ahead.1),
        Some(Variant::Table(word, inner)) => {
            reader.mistake(inner.at, format!("`cache.read_ahead.{word}` has no keys"), "write it as a word in quotes");
            None
        }
        None => None,
    };
    let write = match reader.variant(&table, "write", &["through", "back"], true) {
        Some(Variant::Word("through")) => Some(WritePolicy::Through),
        Some(Variant::Table("back", back)) => {
            reader.keys(&back, &["dirty_blocks", "dirty_extents", "window", "only_appending"]);
            Some(WritePolicy::Back {
                dirty_blocks: reader.integer(&back, "dirty_blocks", BLOCKS, None),
                dirty_extents: reader.integer(&back, "dirty_extents", ANY, None) as usize,
                window: reader.integer(&back, "window", ANY, Some(u64::MAX)) as usize,
                only_appending: reader.flag(&back, "only_appending"),
            })
        }
        Some(_) => {
            let remedy = "write = \"through\", or a table [cache.write.back] with dirty_blocks and dirty_extents";
            reader.mistake(table.at_key("write"), "`cache.write` has the wrong form", remedy);
            None
        }
        None => None,
    };
    Some(CacheConfig {
        segments: reader.integer(&table, "segments", COUNT, None) as usize,
        segment_blocks: reader.integer(&table, "segment_blocks", BLOCKS, None),
        write_segments: reader.integer(&table, "write_segments", COUNT, None) as usize,
        read_ahead: read_ahead.unwrap_or(ReadAhead::None),
        max_read_ahead_blocks: reader.integer(&table, "max_read_ahead_blocks", BLOCKS, None),
        read_ahead_only_if_sequential: reader.flag(&table, "read_ahead_only_if_sequential"),
        keeps_read_blocks: reader.flag(&table, "keeps_read_blocks"),
        read_watermark_percent: reader.integer(&table, "read_watermark_percent", 0..=100, Some(0)) as u32,
        write: write.unwrap_or(WritePolicy::Through),
        zero_latency_reads: reader.flag(&table, "zero_latency_reads"),
        zero_latency_writes: reader.flag(&table, "zero_latency_writes"),
    })
}

fn overheads(reader: &mut Reader<'_>, root: &Table<'_, '_>) -> Option<Overheads> {
    let table = reader.table(root, "overheads", true)?;
    reader.keys(&table, &OVERHEADS);
    let mut ms = |key, fallback| reader.number(&table, key, MS, fallback);
    Some(Overheads {
        read_hit_after_read_ms: ms("read_hit_after_read_ms", None),
        read_hit_after_write_ms: ms("read_hit_after_write_ms", None),
        read_miss_after_read_ms: ms("read_miss_after_read_ms", None),
        read_miss_after_write_ms: ms("read_miss_after_write_ms", None),
        write_after_read_ms: ms("write_after_read_ms", None),
        write_after_write_ms: ms("write_after_write_ms", None),
        write_transfer_delay_ms: ms("write_transfer_delay_ms", Some(0.0)),
        read_completion_ms: ms("read_completion_ms", Some(0.0)),
        write_completion_ms: ms("write_completion_ms", Some(0.0)),
    })
}

fn bus(reader: &mut Reader<'_>, root: &Table<'_, '_>) -> Option<Bus> {
    let table = reader.table(root, "bus", true)?;
    reader.keys(&table, &["read_block_ms", "write_block_ms"]);
    Some(Bus {
        read_block_ms: reader.number(&table, "read_block_ms", MS, None),
        write_block_ms: reader.number(&table, "write_block_ms", MS, None),
    })
}

fn queue(reader: &mut Reader<'_>, root: &Table<'_, '_>) -> QueueConfig {
    const RULES: [(&str, Scheduler); 6] = [
        ("fcfs", Scheduler::Fcfs),
        ("sstf", Scheduler::Sstf),
        ("look", Scheduler::Look),
        ("c_look", Scheduler::CLook),
        ("sptf", Scheduler::Sptf),
        ("aged_sptf", Scheduler::AgedSptf { weight_permille: 10 }),
    ];
    let Some(table) = reader.table(root, "queue", false) else { return QueueConfig::default() };
    reader.keys(&table, &["scheduler", "window", "age_limit_ms"]);
    let scheduler = match reader.variant(&table, "scheduler", &RULES.map(|rule| rule.0), true) {
        Some(Variant::Table("aged_sptf", aged)) => {
            reader.keys(&aged, &["weight_permille"]);
            Scheduler::AgedSptf { weight_permille: reader.integer(&aged, "weight_permille", COUNT, None) as u32 }
        }
        Some(Variant::Word(word)) if word != "aged_sptf" => {
            RULES.iter().find(|rule| rule.0 == word).map_or(Scheduler::Fcfs, |rule| rule.1)
        }
        Some(_) => {
            let remedy = "write a word in quotes, or scheduler = { aged_sptf = { weight_permille = 10 } }";
            reader.mistake(table.at_key("scheduler"), "`queue.scheduler` has the wrong form", remedy);
            Scheduler::Fcfs
        }
        None => Scheduler::Fcfs,
    };
    let has_limit = table.at_key("age_limit_ms") != table.at;
    let age_limit_ms = reader.number(&table, "age_limit_ms", MS, Some(0.0));
    QueueConfig {
        scheduler,
        window: reader.integer(&table, "window", ANY, Some(u64::MAX)) as usize,
        age_limit_ms: has_limit.then_some(age_limit_ms),
    }
}
