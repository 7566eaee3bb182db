//! RAID and cache in front of the disks of a storage system.

use super::workloads::CONFLICT;
use crate::check::MISSING_KEY;
use crate::diagnostic::Sink;
use crate::element::Element;
use crate::schema::{self, ConsistencyPolicy, RaidLevel};
use sanloom_fc::arbitrated_loop::{self, LoopPort, LoopRate};
use sanloom_fc::config::{ControllerAccess, Controllers, DeviceFailures};
use sanloom_storage::backstore::{BackstoreConfig, CacheConfig, LoopConfig, Protection, RaidConfig};
use sanloom_storage::cache::{DestageOrder, DestageSettings, Policy, ReadAheadSettings, Settings, WriteMode};
use sanloom_storage::raid::{Consistency, Level, ParityLayout, Pass, SyncLimits};
use sanloom_wire::arbitrated_loop::AlPa;

/// Size of a block of a disk in bytes.
const DISK_BLOCK_BYTES: u64 = 512;

/// Streams that read-ahead follows, and reads that make one.
const STREAMS: usize = 64;
const STREAM_TRIGGER: u32 = 2;

/// Returns RAID and cache of a storage system.
pub(super) fn backstore(element: &Element<'_>, sink: &mut Sink) -> BackstoreConfig {
    for (table, marker) in [("raid", "raid.level"), ("controller_cache", "controller_cache.size")] {
        if element.is_given(marker) && !element.is_given("disk") && !element.is_given("ssd") {
            let remedy = "add disk = \"cheetah-9lp\" or ssd = \"pm883\"";
            sink.error(MISSING_KEY, &element.origin(marker), "it needs `disk` or `ssd` too", remedy);
        }
        no_part_without(element, table, marker, sink);
    }
    BackstoreConfig { raid: raid(element, sink), cache: cache(element), loops: loops(element, sink) }
}

/// Returns the loops of the disks of a storage system.
fn loops(element: &Element<'_>, sink: &mut Sink) -> Option<LoopConfig> {
    no_part_without(element, "disk_loops", "disk_loops.rate", sink);
    let rate = element.line_rate("disk_loops.rate")?;
    let origin = element.origin("disk_loops.rate");
    if !element.is_given("disk") && !element.is_given("ssd") {
        let remedy = "add disk = \"cheetah-9lp\" or ssd = \"pm883\"";
        sink.error(MISSING_KEY, &origin, "it needs `disk` or `ssd` too", remedy);
    }
    let Some(loop_rate) = LoopRate::of(rate) else {
        sink.error(CONFLICT, &origin, format!("there are no arbitrated loops with {rate}"), "choose 8GFC or less");
        return None;
    };
    let devices: u32 = element.integer("disk_loops.disks").unwrap_or(1);
    let ports = vec![LoopPort::new(AlPa::FL_PORT); devices as usize + 1];
    let tenancy = arbitrated_loop::LoopConfig { rate: loop_rate, ports }.tenancy_cost(0, 1)?;
    Some(LoopConfig { word_ps: loop_rate.word().ps(), tenancy_ps: tenancy.ps(), devices })
}

/// Reports the keys of a table that have no effect because its first key is missing.
fn no_part_without(element: &Element<'_>, table: &str, marker: &'static str, sink: &mut Sink) {
    let is_part = |path: &str| path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
    let parts = element.def.keys.iter().map(|key| key.path).filter(|path| is_part(path) && *path != marker);
    for path in parts.filter(|path| element.is_given(path) && !element.is_given(marker)) {
        let reason = format!("`{path}` has no effect without `{marker}`");
        sink.error(CONFLICT, &element.origin(path), reason, format!("add {marker}, or remove it"));
    }
}

/// Returns the controllers of a storage system with `ports` ports.
pub(super) fn controllers(element: &Element<'_>, ports: u64, sink: &mut Sink) -> Controllers {
    no_part_without(element, "controllers", "controllers.count", sink);
    let count: u8 = element.integer("controllers.count").unwrap_or(1);
    if count < 2 {
        return Controllers::default();
    }
    if ports < u64::from(count) {
        let reason = format!("{count} controllers cannot share {ports} port{}", if ports == 1 { "" } else { "s" });
        let remedy = format!("give the storage system {count} ports or more, or fewer controllers");
        sink.error(CONFLICT, &element.origin("controllers.count"), reason, remedy);
    }
    let access = element.choice("controllers.access", schema::CONTROLLER_ACCESSES);
    let access = access.unwrap_or(ControllerAccess::Asymmetric);
    if access == ControllerAccess::Symmetric {
        for key in ["controllers.failback", "controllers.forward"].into_iter().filter(|key| element.is_given(key)) {
            let reason = "symmetric controllers have no LUNs of their own";
            sink.error(CONFLICT, &element.origin(key), reason, "remove it, or write access = \"alua\"");
        }
    }
    Controllers {
        count,
        access,
        takeover: element.time("controllers.takeover").unwrap_or_default(),
        failback: element.time("controllers.failback"),
        forward: element.time("controllers.forward").unwrap_or_default(),
    }
}

/// Returns the assumptions on failures of devices.
pub(super) fn failures(element: &Element<'_>) -> DeviceFailures {
    let defaults = DeviceFailures::default();
    DeviceFailures {
        mttf_h: element.number("failures.mttf_hours").unwrap_or(defaults.mttf_h),
        replacement: element.time("failures.replacement").unwrap_or(defaults.replacement),
        errors_per_bit: element.number("failures.errors_per_bit").unwrap_or(defaults.errors_per_bit),
    }
}

/// Returns the faults of the media, and the protection of the groups.
pub(super) fn protection(element: &Element<'_>, sink: &mut Sink) -> Protection {
    let latent_errors_per_hour = element.number("latent_errors_per_hour").unwrap_or(0.0);
    if latent_errors_per_hour > 0.0 && !element.is_given("disk") && !element.is_given("ssd") {
        let remedy = "add disk = \"cheetah-9lp\" or ssd = \"pm883\"";
        sink.error(MISSING_KEY, &element.origin("latent_errors_per_hour"), "it needs `disk` or `ssd` too", remedy);
    }
    let policy = element.choice("raid.consistency", schema::CONSISTENCIES).unwrap_or(ConsistencyPolicy::Resync);
    let without = |path: &str, reason: &str, remedy: &str, sink: &mut Sink| {
        if element.is_given(path) {
            sink.error(CONFLICT, &element.origin(path), reason, remedy);
        }
    };
    if policy != ConsistencyPolicy::Bitmap {
        let reason = "`raid.bitmap_region` has an effect with raid.consistency = \"bitmap\" only";
        without("raid.bitmap_region", reason, "remove it, or choose `bitmap`", sink);
    }
    if !element.is_given("raid.scrub") {
        let reason = "`raid.scrub_action` has no effect without `raid.scrub`";
        without("raid.scrub_action", reason, "add raid.scrub, or remove it", sink);
    }
    let chunk_bytes = element.size("raid.chunk").unwrap_or(DISK_BLOCK_BYTES).max(1);
    let region_stripes = (element.size("raid.bitmap_region").unwrap_or(0) / chunk_bytes).max(1);
    Protection {
        consistency: match policy {
            ConsistencyPolicy::Resync => Consistency::None,
            ConsistencyPolicy::Bitmap => Consistency::Bitmap { region_stripes },
            ConsistencyPolicy::Journal => Consistency::Journal,
            ConsistencyPolicy::PartialParityLog => Consistency::PartialParityLog,
        },
        scrub_interval_ps: element.time("raid.scrub").map(|interval| interval.0),
        scrub: element.choice("raid.scrub_action", schema::SCRUBS).unwrap_or(Pass::Check),
        latent_errors_per_hour,
    }
}

fn blocks(element: &Element<'_>, path: &str) -> u32 {
    u32::try_from(element.size(path).unwrap_or(0) / DISK_BLOCK_BYTES).unwrap_or(u32::MAX)
}

/// Blocks per second of a rate.
fn blocks_per_s(element: &Element<'_>, path: &str) -> u64 {
    element.bit_rate(path).unwrap_or(0) / 8 / DISK_BLOCK_BYTES
}

fn raid(element: &Element<'_>, sink: &mut Sink) -> Option<RaidConfig> {
    let level = element.choice("raid.level", schema::RAID_LEVELS)?;
    let members: u32 = element.integer("raid.disks")?;
    let is_grouped = matches!(level, RaidLevel::Raid50 | RaidLevel::Raid60);
    if element.is_given("raid.groups") && !is_grouped {
        let reason = "`raid.groups` has an effect with `raid50` and `raid60` only";
        sink.error(CONFLICT, &element.origin("raid.groups"), reason, "remove it, or choose another level");
    }
    let parity = |has_q, groups| Level::Parity { layout: ParityLayout::LeftSymmetric, has_q, groups };
    let groups = element.integer("raid.groups").unwrap_or(2);
    let level = match level {
        RaidLevel::Raid0 => Level::RAID0,
        RaidLevel::Raid1 => Level::raid1(members),
        RaidLevel::Raid4 => Level::RAID4,
        RaidLevel::Raid5 => Level::RAID5,
        RaidLevel::Raid6 => Level::RAID6,
        RaidLevel::Raid10 => Level::RAID10,
        RaidLevel::Raid50 => parity(false, groups),
        RaidLevel::Raid60 => parity(true, groups),
    };
    let chunk_blocks = blocks(element, "raid.chunk").max(1);
    Some(RaidConfig {
        level,
        members,
        chunk_blocks,
        spares: element.integer("raid.spares").unwrap_or(0),
        limits: SyncLimits {
            minimum: blocks_per_s(element, "raid.rebuild_min"),
            maximum: blocks_per_s(element, "raid.rebuild_max"),
            window_chunks: u64::from(blocks(element, "raid.rebuild_window") / chunk_blocks).max(1),
        },
    })
}

fn cache(element: &Element<'_>) -> Option<CacheConfig> {
    let bytes = element.size("controller_cache.size").filter(|_| element.is_given("controller_cache.size"))?;
    let line_blocks = blocks(element, "controller_cache.line").max(1);
    let percent = |path: &str| (element.number(path).unwrap_or(0.0) * 100.0).round() as u8;
    let ahead = element.size("controller_cache.read_ahead").filter(|_| element.is_given("controller_cache.read_ahead"));
    let settings = Settings {
        policy: element.choice("controller_cache.policy", schema::CACHE_POLICIES).unwrap_or(Policy::Lru),
        lines: u32::try_from(bytes / (u64::from(line_blocks) * DISK_BLOCK_BYTES)).unwrap_or(u32::MAX),
        line_blocks,
        sector_blocks: blocks(element, "controller_cache.sector").max(1),
        volume_blocks: 0,
        fills_lines: false,
        write: element
            .choice("controller_cache.write", schema::CACHE_WRITES)
            .unwrap_or(WriteMode::Back { is_mirrored: false }),
        destage: DestageSettings {
            order: element.choice("controller_cache.destage", schema::DESTAGES).unwrap_or(DestageOrder::Address),
            high_percent: percent("controller_cache.high"),
            low_percent: percent("controller_cache.low"),
            max_blocks: blocks(element, "controller_cache.destage_size"),
            idle_ps: element.time("controller_cache.idle").map(|idle| idle.0).filter(|idle| *idle > 0),
            max_age_ps: None,
        },
        read_ahead: ahead.map(|bytes| ReadAheadSettings {
            streams: STREAMS,
            trigger: STREAM_TRIGGER,
            blocks: u32::try_from(bytes / DISK_BLOCK_BYTES).unwrap_or(u32::MAX),
        }),
    };
    Some(CacheConfig {
        settings,
        mirror_latency_ps: element.time("controller_cache.mirror_latency").unwrap_or_default().0,
        mirror_bytes_per_s: element.bit_rate("controller_cache.mirror_rate").unwrap_or(0) / 8,
        most_destages: element.integer("controller_cache.destages").unwrap_or(1),
    })
}
