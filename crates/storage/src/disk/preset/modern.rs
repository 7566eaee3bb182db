//! Disks from 2002 on, derived from data sheets and published measurements.
//!
//! Each preset lists its sources. A value without a source is called an assumption. For all of
//! these disks, unless stated otherwise, the following values are assumptions: the number of
//! surfaces, the rates of the medium, the overhead, the share of the cache for writes, the window
//! of the queue (32 requests) and the age limit (500 ms).

use super::data_sheet::DataSheet;
use crate::disk::config::DiskConfig;

/// Blocks of 512 bytes in a MiB.
const MIB: u64 = 2048;

/// Assumptions that most of these disks share.
const COMMON: DataSheet = DataSheet {
    name: "",
    blocks: 0,
    surfaces: 1,
    rpm: 7_200.0,
    seek_ms: [0.0; 3],
    write_settle_ms: 0.0,
    medium_mb_s: [0.0; 2],
    bus_mb_s: 600.0,
    overhead_ms: 0.03,
    write_cache_blocks: 8 * MIB,
    write_back_window: usize::MAX,
    queue_window: 32,
    age_limit_ms: Some(500.0),
};

/// IBM Ultrastar 146Z10 (IC35L146), 2002: 146 GB, 10,000 rpm.
///
/// - Mean seek 4.7 ms for reads and 5.9 ms for writes, full stroke 10.5 ms: IBM, "Hard disk drive
///   specifications Ultrastar 146Z10", revision 2.2, section 4.5.2.
/// - Assumptions: 0.6 ms for one cylinder, 12 surfaces, 66 to 38 MB/s, bus of 320 MB/s.
pub fn ultrastar_146z10() -> DiskConfig {
    let sheet = DataSheet {
        name: "ultrastar-146z10",
        blocks: 146_000_000_000 / 512,
        surfaces: 12,
        rpm: 10_000.0,
        seek_ms: [0.6, 4.7, 10.5],
        write_settle_ms: 5.9 - 4.7,
        medium_mb_s: [66.0, 38.0],
        bus_mb_s: 320.0,
        write_cache_blocks: 2 * MIB,
        ..COMMON
    };
    sheet.config()
}

/// Hitachi Ultrastar 15K450 (HUS154545), 2008: 450 GB, 15,000 rpm.
///
/// - Mean seek 3.3 ms for reads and 3.8 ms for writes: Hitachi, "Hard Disk Drive Specification
///   Ultrastar 15K450", version 1.2, section 4.5.1.
/// - Assumptions: 0.5 ms for one cylinder, 7.0 ms for the full stroke, 8 surfaces, 160 to 100 MB/s,
///   bus of 400 MB/s (4 Gb/s FC).
pub fn ultrastar_15k450() -> DiskConfig {
    let sheet = DataSheet {
        name: "ultrastar-15k450",
        blocks: 450_000_000_000 / 512,
        surfaces: 8,
        rpm: 15_000.0,
        seek_ms: [0.5, 3.3, 7.0],
        write_settle_ms: 3.8 - 3.3,
        medium_mb_s: [160.0, 100.0],
        bus_mb_s: 400.0,
        ..COMMON
    };
    sheet.config()
}

/// Hitachi Travelstar 5K320 (HTS543232), 2008: 320 GB, 5,400 rpm, 2.5 inches.
///
/// - Seeks of 1.0, 12 and 20.0 ms for one cylinder, the mean and the full stroke, and 1 ms more for
///   writes; 5,400 rpm: Hitachi, "5K320 SATA OEM Specification", section 4.4.2.
/// - Assumptions: 4 surfaces, 70 to 36 MB/s, bus of 300 MB/s, write cache of 4 MiB.
pub fn travelstar_5k320() -> DiskConfig {
    let sheet = DataSheet {
        name: "travelstar-5k320",
        blocks: 320_000_000_000 / 512,
        surfaces: 4,
        rpm: 5_400.0,
        seek_ms: [1.0, 12.0, 20.0],
        write_settle_ms: 1.0,
        medium_mb_s: [70.0, 36.0],
        bus_mb_s: 300.0,
        write_cache_blocks: 4 * MIB,
        ..COMMON
    };
    sheet.config()
}

/// Hitachi Travelstar 7K320, 2008: 320 GB, 7,200 rpm, 2.5 inches.
///
/// - Seeks of 1.0, 12 and 20.0 ms for one cylinder, the mean and the full stroke; the full stroke
///   takes 2 ms more before a write; 7,200 rpm: Hitachi, "7K320 SATA OEM Specification", section
///   4.4.2.
/// - Assumptions: 0.1 ms more before writes (the difference for one cylinder), 4 surfaces, 87 to 45
///   MB/s, bus of 300 MB/s, write cache of 8 MiB.
pub fn travelstar_7k320() -> DiskConfig {
    let sheet = DataSheet {
        name: "travelstar-7k320",
        blocks: 320_000_000_000 / 512,
        surfaces: 4,
        seek_ms: [1.0, 12.0, 20.0],
        write_settle_ms: 0.1,
        medium_mb_s: [87.0, 45.0],
        bus_mb_s: 300.0,
        ..COMMON
    };
    sheet.config()
}

/// Seagate Savvio 10K.4 (ST9600204SS), 2009: 600 GB, 10,000 rpm, 2.5 inches.
///
/// - Seeks of 0.30, 3.8 and 7.81 ms for one track, the mean and the full stroke, mean of 4.4 ms for
///   writes, 6 heads, 135 to 72 MB/s, SAS of 6 Gb/s: Seagate, "Savvio 10K.4 SAS Product Manual",
///   2009, section 4.
pub fn savvio_10k4() -> DiskConfig {
    let sheet = DataSheet {
        name: "savvio-10k4",
        blocks: 600_000_000_000 / 512,
        surfaces: 6,
        rpm: 10_000.0,
        seek_ms: [0.3, 3.8, 7.81],
        write_settle_ms: 4.4 - 3.8,
        medium_mb_s: [135.0, 72.0],
        bus_mb_s: 600.0,
        ..COMMON
    };
    sheet.config()
}

/// HGST Ultrastar C15K600, 2014: 600 GB, 15,000 rpm, 2.5 inches.
///
/// - Mean seek 2.9 ms for reads and 3.1 ms for writes: HGST, "Ultrastar C15K600 Hard Disk Drive
///   Specification", section 4.4.1.
/// - Assumptions: 0.3 ms for one cylinder, 6.5 ms for the full stroke, 6 surfaces, 250 to 170 MB/s,
///   bus of 1,200 MB/s (12 Gb/s SAS).
pub fn ultrastar_c15k600() -> DiskConfig {
    let sheet = DataSheet {
        name: "ultrastar-c15k600",
        blocks: 600_000_000_000 / 512,
        surfaces: 6,
        rpm: 15_000.0,
        seek_ms: [0.3, 2.9, 6.5],
        write_settle_ms: 3.1 - 2.9,
        medium_mb_s: [250.0, 170.0],
        bus_mb_s: 1_200.0,
        ..COMMON
    };
    sheet.config()
}

/// Seagate BarraCuda ST2000DM006, 2016: 2 TB, 7,200 rpm, as measured through a file system.
///
/// - Seeks of 1.0 and 13.0 ms for one cylinder and the mean, 150 MB/s, a write cache of 1 MiB with
///   a window of 8, a queue window of 4 and an age limit of 500 ms: fitted to measurements by the
///   authors of ublk-disksim (profile `barracuda-2t`).
/// - Assumptions: 23.5 ms for the full stroke, so that the curve is near a square root, as theirs;
///   4 surfaces; 180 to 120 MB/s, whose mean is their rate.
pub fn st2000dm006() -> DiskConfig {
    let sheet = DataSheet {
        name: "st2000dm006",
        blocks: 2_000_000_000_000 / 512,
        surfaces: 4,
        seek_ms: [1.0, 13.0, 23.5],
        medium_mb_s: [180.0, 120.0],
        write_cache_blocks: MIB,
        write_back_window: 8,
        queue_window: 4,
        ..COMMON
    };
    sheet.config()
}

/// HGST Ultrastar 7K8 (HUS728T8TALE6L4), 2018: 8 TB, 7,200 rpm.
///
/// - Mean seek 8.0 ms, 255 MB/s in the first zone, SATA of 6 Gb/s: data sheet, as ublk-disksim
///   quotes it (profile `hgst-7k8`).
/// - Seek of 0.6 ms for one cylinder, a mean rate of 205 MB/s, a write cache of 64 MiB, a window of
///   32 and an age limit of 500 ms: the same profile.
/// - Assumptions: 14.5 ms for the full stroke, so that the curve is near a square root, as theirs;
///   10 surfaces; 155 MB/s in the last zone, which yields the mean rate.
pub fn ultrastar_7k8() -> DiskConfig {
    let sheet = DataSheet {
        name: "ultrastar-7k8",
        blocks: 8_000_000_000_000 / 512,
        surfaces: 10,
        seek_ms: [0.6, 8.0, 14.5],
        medium_mb_s: [255.0, 155.0],
        write_cache_blocks: 64 * MIB,
        ..COMMON
    };
    sheet.config()
}

/// Western Digital Ultrastar DC HC310 (7K6), 2018: 6 TB, 7,200 rpm.
///
/// - Seeks of 0.23 and 7.4 ms for one cylinder and the mean of reads, 8.2 ms for writes, 7,200 rpm:
///   Western Digital, "Hard Disk Drive OEM Specification" of the Ultrastar DC HC310, section 4.5.1.
/// - Assumptions: 14.0 ms for the full stroke, 8 surfaces, 255 to 155 MB/s, write cache of 64 MiB.
pub fn ultrastar_dc_hc310() -> DiskConfig {
    let sheet = DataSheet {
        name: "ultrastar-dc-hc310",
        blocks: 6_000_000_000_000 / 512,
        surfaces: 8,
        seek_ms: [0.23, 7.4, 14.0],
        write_settle_ms: 8.2 - 7.4,
        medium_mb_s: [255.0, 155.0],
        write_cache_blocks: 64 * MIB,
        ..COMMON
    };
    sheet.config()
}
