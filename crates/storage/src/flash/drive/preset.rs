//! Three classes of SSDs, each with its sources.
//!
//! The maps need 8 bytes for each page of 4 KiB, so a preset receives the capacity that a
//! simulation needs. Channels, dies and times are those of the drive; blocks per die follow from
//! the capacity.
//!
//! A page is the unit of the map, 4 KiB, and a block has 64 of them. Real cells program 16 KiB or
//! more on several planes at once, and erase thousands of pages. Program and erase times are the
//! shares of one page and of 64 pages, so rates are right. The time of a single program is too
//! short, which the write buffer hides.
//!
//! Measured values come from the validation of ublk-disksim (`docs/VALIDATION.md`): response times
//! of 4 KiB at depth 1, random reads per second at depth 32, and steady random writes per second
//! with their write amplification. Over-provisioning and program time are fitted to the last two.
//! Numbers of channels and dies, read and erase times, and rates of channels are assumptions.

use super::config::DriveConfig;
use crate::flash::{FlashGeometry, FlashSettings, FlashTiming, Victim};
use std::borrow::Cow;

const US: u64 = 1_000_000;
const PAGE_BYTES: u32 = 4_096;
const PAGES_PER_BLOCK: u32 = 64;
const RESERVED_BLOCKS: u32 = 2;
/// 6 Gb/s SATA, as measured with sequential requests.
const SATA_BYTES_PER_SECOND: u64 = 550_000_000;

/// Numbers of a drive that do not depend on its capacity.
struct Class {
    name: &'static str,
    channels: u32,
    dies: u32,
    over_provisioning_per_mille: u64,
    timing: FlashTiming,
}

/// Returns flash memory for a capacity. The blocks of the reserve come on top of the
/// over-provisioning, so write amplification hardly depends on the capacity.
fn flash(class: &Class, bytes: u64) -> FlashSettings {
    let dies = u64::from(class.channels * class.dies);
    let most_pages = u64::from(u32::MAX) / 4;
    let pages = bytes.div_ceil(u64::from(PAGE_BYTES)).clamp(1, most_pages);
    let physical = pages * (1_000 + class.over_provisioning_per_mille) / 1_000;
    let blocks = physical.div_ceil(dies * u64::from(PAGES_PER_BLOCK)) + u64::from(RESERVED_BLOCKS);
    // One block of each die is being filled, even if the capacity is tiny.
    let blocks = blocks.max(pages.div_ceil(dies * u64::from(PAGES_PER_BLOCK)) + u64::from(RESERVED_BLOCKS) + 1);
    let geometry = FlashGeometry {
        channels: class.channels,
        dies: class.dies,
        planes: 1,
        blocks: blocks as u32,
        pages: PAGES_PER_BLOCK,
        page_bytes: PAGE_BYTES,
    };
    FlashSettings {
        geometry,
        timing: class.timing,
        logical_pages: pages as u32,
        reserved_blocks: RESERVED_BLOCKS,
        victim: Victim::Greedy,
    }
}

/// Samsung PM883, 2018: SATA drive for data centres, with power-loss protection.
///
/// - Measured: read 120 us, write 40 us, 98,000 reads/s at depth 32, 25,000 steady random writes/s
///   with a write amplification of 7.3.
pub fn pm883(bytes: u64) -> DriveConfig {
    let timing = FlashTiming {
        read_ps: 75 * US,
        program_ps: 106 * US,
        erase_ps: 200 * US,
        channel_bytes_per_second: 400_000_000,
        has_copy_back: true,
    };
    let class = Class { name: "pm883", channels: 8, dies: 4, over_provisioning_per_mille: 65, timing };
    DriveConfig {
        name: Cow::Borrowed(class.name),
        flash: flash(&class, bytes),
        command_ps: 10_200_000,
        read_latency_ps: 17_100_000,
        write_latency_ps: 22_400_000,
        flush_ps: 0,
        link_bytes_per_second: SATA_BYTES_PER_SECOND,
        queue_slots: 32,
        buffer_pages: 4_096,
        has_power_loss_protection: true,
    }
}

/// Samsung PM9A3, 2020: NVMe drive for data centres, with power-loss protection.
///
/// - Measured: read 80 us, write 30 us, 130,000 steady random writes/s with a write amplification
///   of 4.9.
/// - Assumptions: 1 us of the controller for each command, 6.5 GB/s (PCIe 4.0, four lanes).
pub fn pm9a3(bytes: u64) -> DriveConfig {
    let timing = FlashTiming {
        read_ps: 60 * US,
        program_ps: 49 * US,
        erase_ps: 200 * US,
        channel_bytes_per_second: 1_200_000_000,
        has_copy_back: true,
    };
    let class = Class { name: "pm9a3", channels: 8, dies: 8, over_provisioning_per_mille: 109, timing };
    DriveConfig {
        name: Cow::Borrowed(class.name),
        flash: flash(&class, bytes),
        command_ps: US,
        read_latency_ps: 15 * US,
        write_latency_ps: 28_400_000,
        flush_ps: 0,
        link_bytes_per_second: 6_500_000_000,
        queue_slots: 1_024,
        buffer_pages: 8_192,
        has_power_loss_protection: true,
    }
}

/// Samsung 870 EVO, 2021: SATA drive for desktops, without power-loss protection.
///
/// - Measured: read 77 us, about 12,000 steady random writes/s, flush 3.2 ms.
/// - Assumptions: write 40 us and 98,000 reads/s at depth 32 as the PM883; over-provisioning of
///   1 TiB of flash for 1 TB.
pub fn evo_870(bytes: u64) -> DriveConfig {
    let timing = FlashTiming {
        read_ps: 45 * US,
        program_ps: 206 * US,
        erase_ps: 200 * US,
        channel_bytes_per_second: 800_000_000,
        has_copy_back: true,
    };
    let class = Class { name: "870-evo", channels: 8, dies: 2, over_provisioning_per_mille: 100, timing };
    DriveConfig {
        name: Cow::Borrowed(class.name),
        flash: flash(&class, bytes),
        command_ps: 10_200_000,
        read_latency_ps: 9_300_000,
        write_latency_ps: 22_400_000,
        flush_ps: 3_200 * US,
        link_bytes_per_second: SATA_BYTES_PER_SECOND,
        queue_slots: 32,
        buffer_pages: 4_096,
        has_power_loss_protection: false,
    }
}

/// Returns all presets with a capacity of at least so many bytes, up to 4 TiB.
pub fn all(bytes: u64) -> Vec<DriveConfig> {
    vec![pm883(bytes), pm9a3(bytes), evo_870(bytes)]
}

/// Returns the preset with a name and a capacity of at least so many bytes.
pub fn find(name: &str, bytes: u64) -> Option<DriveConfig> {
    all(bytes).into_iter().find(|config| config.name == name)
}
