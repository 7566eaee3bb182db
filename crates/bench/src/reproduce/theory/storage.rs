//! Caches, flash and RAID: hit ratios, write amplification, and small writes. Disks have rows of
//! their own in `reproduce disks`.

use super::bed::Sample;
use super::row::{Basis, Row};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_console::exit::Failure;
use sanloom_storage::cache::{Access, Directory, Policy};
use sanloom_storage::flash::{FlashGeometry, FlashSettings, FlashTiming, Ftl, Victim};
use sanloom_storage::raid::{Geometry, Level, Member, Phase, Plan};

const CACHES: Basis = Basis {
    section: "Caches",
    source: "Hit ratio of independent references to 10,000 items with a Zipf law, from the characteristic time: LRU (Che, Tung \
             and Wang 2002), FIFO (Fagin 1977)",
    tolerance_reason: "0.005, the accuracy of the formula and of the sample",
};

const FLASH_FIFO: Basis = Basis {
    section: "Flash",
    source: "Write amplification of uniform random writes with garbage collection in the order of filling (Desnoyers 2012); the \
             reserved blocks do not count as over-provisioning",
    tolerance_reason: "3 %: the formula holds for blocks without number",
};

const FLASH_GREEDY: Basis = Basis {
    section: "Flash",
    source: "Write amplification of uniform random writes with greedy garbage collection, blocks of 64 pages: a table computed \
             by a separate program",
    tolerance_reason: "3 %, with the sample of the table",
};

const RAID: Basis = Basis {
    section: "RAID",
    source: "Small writes of read-modify-write: each member access reads in a mean access time and writes a revolution later \
             (Chen, Lee, Gibson, Katz and Patterson 1994); mean access 8.91 ms, 10,045 rpm",
    tolerance_reason: "2 %: the busiest member decides, and addresses are random",
};

/// Items of the Zipf popularities.
const ITEMS: usize = 10_000;
/// Exponents, and items in the cache.
pub const LOADS: [(f64, u32); 4] = [(0.8, 100), (0.8, 1_000), (1.0, 1_000), (1.2, 1_000)];

fn zipf(exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=ITEMS).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Probability of a hit, from p T.
type Hit = fn(f64) -> f64;

/// Returns the hit ratio of a formula, `hit` being the probability of a hit from p T. The
/// characteristic time T fills the cache.
fn formula(popularity: &[f64], capacity: f64, hit: Hit) -> f64 {
    let resident = |time: f64| popularity.iter().map(|p| hit(p * time)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e12);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if resident(middle) < capacity { low = middle } else { high = middle }
    }
    popularity.iter().map(|p| p * hit(p * low)).sum()
}

fn hits(policy: Policy, popularity: &[f64], capacity: u32, accesses: u32) -> f64 {
    let mut sum = 0.0;
    let bounds: Vec<f64> = popularity
        .iter()
        .map(|p| {
            sum += p;
            sum
        })
        .collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(20);
    let mut directory = Directory::new(policy, capacity.into(), 1);
    let (warm, mut hits) = (accesses / 5, 0_u32);
    for access in 0..warm + accesses {
        let draw: f64 = random.random();
        let key = bounds.partition_point(|bound| *bound < draw).min(ITEMS - 1) as u64;
        let is_hit = matches!(directory.access(key, 1, |_, _| {}), Access::Hit(_));
        hits += u32::from(is_hit && access >= warm);
    }
    f64::from(hits) / f64::from(accesses)
}

/// Returns the rows of a popularity and a size of the cache.
pub fn cache_rows((exponent, capacity): (f64, u32), sample: Sample) -> Result<Vec<Row>, Failure> {
    let popularity = zipf(exponent);
    let accesses = sample.of(200_000.0, 4_000_000.0) as u32;
    let of = |(policy, name, hit): (Policy, &str, Hit)| {
        let theory = formula(&popularity, capacity.into(), hit);
        let ours = hits(policy, &popularity, capacity, accesses);
        let what = format!("{name}, exponent {exponent}, {capacity} of {ITEMS} items");
        let id = format!("hits-{}-{exponent}-{capacity}", name.to_lowercase());
        CACHES.row(id, what, "hits per access", theory, Some(ours), 0.005)
    };
    let (lru, fifo): (Hit, Hit) = (|x| 1.0 - (-x).exp(), |x| x / (1.0 + x));
    let policies = [(Policy::Lru, "LRU", lru), (Policy::Fifo, "FIFO", fifo)];
    Ok(policies.map(of).into())
}

/// Over-provisioning in per mille, and the write amplification of the table for greedy collection.
pub const PROVISIONS: [(u32, f64); 7] =
    [(70, 7.21), (110, 4.95), (150, 3.85), (200, 3.09), (280, 2.42), (500, 1.69), (1_000, 1.24)];

/// Blocks of the flash, and their pages.
const BLOCKS: u32 = 512;
const PAGES: u32 = 64;
const RESERVED_BLOCKS: u32 = 2;

fn amplification(per_mille: u32, victim: Victim) -> Result<(f64, FlashSettings), Failure> {
    let geometry = FlashGeometry { channels: 1, dies: 1, planes: 1, blocks: BLOCKS, pages: PAGES, page_bytes: 4096 };
    let timing = FlashTiming {
        read_ps: 0,
        program_ps: 0,
        erase_ps: 0,
        channel_bytes_per_second: 1_000_000_000,
        has_copy_back: false,
    };
    let logical_pages = FlashSettings::logical_pages(&geometry, per_mille);
    let settings = FlashSettings { geometry, timing, logical_pages, reserved_blocks: RESERVED_BLOCKS, victim };
    let mut ftl = Ftl::new(&settings).map_err(Failure::bug)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    ftl.precondition(4, &mut random);
    for _ in 0..6 * logical_pages {
        ftl.write(random.random_range(0..logical_pages), |_, _| {});
    }
    Ok((ftl.statistics().write_amplification(), settings))
}

/// Returns the rows of an over-provisioning, with the number of the table.
pub fn flash_rows((per_mille, table): (u32, f64)) -> Result<Vec<Row>, Failure> {
    let percent = f64::from(per_mille) / 10.0;
    let what = |order: &str| format!("{order}, over-provisioning {percent} %");
    let unit = "pages written per page";
    let (fifo, settings) = amplification(per_mille, Victim::Fifo)?;
    let (greedy, _) = amplification(per_mille, Victim::Greedy)?;
    // Physical over logical pages; the reserve holds no data.
    let usable = settings.geometry.physical_pages() - u64::from(RESERVED_BLOCKS * PAGES);
    let alpha = usable as f64 / f64::from(settings.logical_pages);
    let moved = (0..10_000).fold(0.5_f64, |share, _| (-alpha * (1.0 - share)).exp());
    let theory = 1.0 / (1.0 - moved);
    let id = |order: &str| format!("amplification-{order}-{per_mille}");
    Ok(vec![
        FLASH_FIFO.row(id("fifo"), what("order of filling"), unit, theory, Some(fifo), 0.03 * theory),
        FLASH_GREEDY.row(id("greedy"), what("greedy"), unit, table, Some(greedy), 0.03 * table),
    ])
}

/// Returns the rows of small writes.
pub fn raid_rows(sample: Sample) -> Result<Vec<Row>, Failure> {
    let (access_ms, revolution_ms) = (8.91, 60_000.0 / 10_045.0);
    let writes = sample.of(100_000.0, 1_000_000.0) as u32;
    let mut rows = Vec::new();
    for (level, name, members, chunks) in [(Level::RAID5, "RAID 5", 8, 2.0), (Level::RAID6, "RAID 6", 10, 3.0)] {
        let geometry = Geometry::new(level, members, 128, 128 * 1_000).map_err(Failure::bug)?;
        let states = vec![Member::Online; members as usize];
        let (mut plan, mut busy_ms) = (Plan::new(), vec![0.0; members as usize]);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        for _ in 0..writes {
            plan.write(&geometry, &states, random.random_range(0..geometry.blocks() / 8) * 8, 8);
            for io in &plan.ios {
                busy_ms[io.member as usize] += if io.phase == Phase::Read { access_ms } else { revolution_ms };
            }
        }
        let busiest_ms = busy_ms.into_iter().fold(0.0, f64::max);
        let ours = f64::from(writes) * 1e3 / busiest_ms / f64::from(members);
        let theory = 1e3 / (chunks * (access_ms + revolution_ms));
        let what = format!("{name} of {members}: small writes of each member");
        let id = format!("small-writes-{members}");
        rows.push(RAID.row(id, what, "writes per second", theory, Some(ours), 0.02 * theory));
    }
    Ok(rows)
}
