//! SSDs: write amplification against published numbers, contents, times and TRIM.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::flash::{FlashError, FlashGeometry, FlashOperation, FlashSettings, FlashTiming, Ftl, Ssd, Victim};

const US: u64 = 1_000_000;

const TIMING: FlashTiming = FlashTiming {
    read_ps: 75 * US,
    program_ps: 750 * US,
    erase_ps: 3_800 * US,
    channel_bytes_per_second: 333_000_000,
    has_copy_back: false,
};

/// One plane with an over-provisioning in per mille.
fn one_plane(blocks: u32, pages: u32, per_mille: u32, victim: Victim) -> FlashSettings {
    let geometry = FlashGeometry { channels: 1, dies: 1, planes: 1, blocks, pages, page_bytes: 4096 };
    let logical_pages = FlashSettings::logical_pages(&geometry, per_mille);
    FlashSettings { geometry, timing: TIMING, logical_pages, reserved_blocks: 2, victim }
}

/// Write amplification of uniform random writes in the steady state.
fn amplification(settings: &FlashSettings) -> f64 {
    let mut ftl = Ftl::new(settings).expect("the settings are consistent");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    ftl.precondition(4, &mut random);
    for _ in 0..6 * settings.logical_pages {
        ftl.write(random.random_range(0..settings.logical_pages), |_, _| {});
    }
    ftl.statistics().write_amplification()
}

/// Write amplification in the order of filling, from physical over logical pages (Desnoyers 2012).
fn formula(alpha: f64) -> f64 {
    let mut x = 0.5;
    for _ in 0..10_000 {
        x = libm::exp(-alpha * (1.0 - x));
    }
    1.0 / (1.0 - x)
}

#[test]
fn greedy_write_amplification_is_that_of_the_table() {
    let table = [
        (70, [6.43, 7.21, 8.06]),
        (110, [4.58, 4.95, 5.33]),
        (150, [3.63, 3.85, 4.07]),
        (200, [2.95, 3.09, 3.22]),
        (280, [2.34, 2.42, 2.50]),
        (500, [1.65, 1.69, 1.72]),
        (1_000, [1.22, 1.24, 1.26]),
    ];
    for (per_mille, expected) in table {
        for ((blocks, pages), expected) in [(1024, 32), (512, 64), (256, 256)].into_iter().zip(expected) {
            let found = amplification(&one_plane(blocks, pages, per_mille, Victim::Greedy));
            println!("{per_mille} {pages}: {found:.3}, table {expected}");
            assert!((found / expected - 1.0).abs() < 0.03, "{per_mille} {pages}: {found}, table {expected}");
        }
    }
}

#[test]
fn write_amplification_in_the_order_of_filling_is_that_of_the_formula() {
    for per_mille in [70, 110, 150, 200, 280, 500, 1_000] {
        let settings = one_plane(512, 64, per_mille, Victim::Fifo);
        // The reserve holds no data.
        let usable = settings.geometry.physical_pages() - 2 * 64;
        let expected = formula(usable as f64 / f64::from(settings.logical_pages));
        let found = amplification(&settings);
        println!("{per_mille}: {found:.3}, formula {expected:.3}");
        assert!((found / expected - 1.0).abs() < 0.03, "{per_mille}: {found}, formula {expected}");
    }
}

#[test]
fn planes_behave_like_one_large_plane() {
    let geometry = FlashGeometry { channels: 4, dies: 2, planes: 2, blocks: 256, pages: 64, page_bytes: 4096 };
    let logical_pages = FlashSettings::logical_pages(&geometry, 280);
    let victim = Victim::Greedy;
    let many = FlashSettings { geometry, timing: TIMING, logical_pages, reserved_blocks: 2, victim };
    let (many, one) = (amplification(&many), amplification(&one_plane(256, 64, 280, victim)));
    assert!((many / one - 1.0).abs() < 0.03, "{many} {one}");
}

#[test]
fn trimmed_space_counts_as_over_provisioning() {
    let settings = one_plane(512, 64, 70, Victim::Greedy);
    let mut ftl = Ftl::new(&settings).expect("the settings are consistent");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    ftl.precondition(3, &mut random);
    let used = settings.logical_pages * 4 / 5;
    for page in used..settings.logical_pages {
        ftl.trim(page);
    }
    assert_eq!(ftl.statistics().trimmed_pages, u64::from(settings.logical_pages - used));
    let mut warm = |ftl: &mut Ftl, turns: u32| {
        for _ in 0..turns * used {
            ftl.write(random.random_range(0..used), |_, _| {});
        }
        *ftl.statistics()
    };
    let before = warm(&mut ftl, 4);
    let after = warm(&mut ftl, 4);
    let found = 1.0 + (after.copied_pages - before.copied_pages) as f64 / (after.host_pages - before.host_pages) as f64;
    let expected = amplification(&FlashSettings { logical_pages: used, ..settings });
    assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
}

#[test]
fn peak_rates_are_those_of_dies_and_channels() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let pages: Vec<u32> = (0..2_000).map(|_| random.random_range(0..2_000)).collect();
    let peak = |channels, dies, bytes_per_second| {
        let geometry = FlashGeometry { channels, dies, planes: 1, blocks: 64, pages: 32, page_bytes: 8192 };
        let timing = FlashTiming { channel_bytes_per_second: bytes_per_second, ..TIMING };
        let (reserved_blocks, victim) = (2, Victim::Greedy);
        let mut ssd =
            Ssd::new(FlashSettings { geometry, timing, logical_pages: 2_000, reserved_blocks, victim }).expect("valid");
        let filled_ps = (0..2_000).map(|page| ssd.write(0, page)).max().unwrap_or(0);
        let sequential_ps = (0..2_000).map(|page| ssd.read(filled_ps, page)).max().unwrap_or(0);
        let random_ps = pages.iter().map(|page| ssd.read(sequential_ps, *page)).max().unwrap_or(0);
        let times = [filled_ps, sequential_ps - filled_ps, random_ps - sequential_ps];
        times.map(|time_ps| 2_000.0 / (time_ps as f64 / 1e12))
    };
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    // Channels with an unlimited rate: the dies decide.
    let [writes, reads, random_reads] = peak(2, 4, u64::MAX);
    near(writes, 8.0 / 750e-6);
    near(reads, 8.0 / 75e-6);
    // Pages are on the dies in turn, and the die with most of the random pages ends last.
    let loads = (0..8).map(|die| pages.iter().filter(|page| **page % 8 == die).count());
    let most = loads.max().expect("dies exist");
    near(random_reads, 2_000.0 / (most as f64 * 75e-6));
    // 16 dies behind one channel: 24.6 us per page on the channel.
    let [_, reads, random_reads] = peak(1, 16, 333_000_000);
    near(reads, 333e6 / 8192.0);
    near(random_reads, 333e6 / 8192.0);
}

#[test]
fn an_idle_die_does_not_wait_for_the_queue_of_a_busy_one() {
    let geometry = FlashGeometry { channels: 1, dies: 2, planes: 1, blocks: 64, pages: 32, page_bytes: 4096 };
    for (rate, transfer) in [(u64::MAX, 0), (4_096_000_000, US)] {
        let timing = FlashTiming { channel_bytes_per_second: rate, ..TIMING };
        let (reserved_blocks, victim) = (2, Victim::Greedy);
        let settings = FlashSettings { geometry, timing, logical_pages: 100, reserved_blocks, victim };
        let mut ssd = Ssd::new(settings).expect("valid");
        let start = (0..6).map(|page| ssd.write(0, page)).max().unwrap_or(0);
        let ends = [0, 2, 4, 1].map(|page| ssd.read(start, page) - start);
        let read = 75 * US + transfer;
        assert_eq!(ends, [read, 2 * read, 3 * read, read + transfer]);
    }
}

#[test]
fn a_uniform_load_wears_all_blocks_alike() {
    for victim in [Victim::Fifo, Victim::Greedy] {
        let settings = one_plane(256, 64, 280, victim);
        let mut ftl = Ftl::new(&settings).expect("the settings are consistent");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        ftl.precondition(1, &mut random);
        for _ in 0..50 * settings.logical_pages {
            ftl.write(random.random_range(0..settings.logical_pages), |_, _| {});
        }
        let (least, most) = ftl.wear();
        println!("{victim:?}: {least} to {most} erases");
        // Blocks take turns in the order of filling. The greedy victim is a matter of chance.
        let spread = if victim == Victim::Fifo { 1 } else { most / 5 };
        assert!(least > 0 && most - least <= spread, "{victim:?}: {least} to {most} erases");
    }
}

#[test]
fn a_page_waits_for_its_die_and_a_page_without_data_does_not() {
    let mut ssd = Ssd::new(one_plane(64, 32, 280, Victim::Greedy)).expect("valid");
    let transfer = 4096 * 1_000_000 / 333;
    assert_eq!(ssd.read(5, 3), 5);
    assert_eq!(ssd.write(0, 3), transfer + 750 * US);
    assert_eq!(ssd.read(0, 3), transfer + 750 * US + 75 * US + transfer);
    ssd.trim(3);
    assert_eq!(ssd.read(9, 3), 9);
}

#[test]
fn a_warm_ssd_allocates_nothing() {
    let mut ssd = Ssd::new(one_plane(256, 64, 70, Victim::Greedy)).expect("valid");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    ssd.precondition(1, &mut random);
    let pages = ssd.ftl().logical_pages();
    let counted = allocation_counter::measure(|| {
        for _ in 0..20_000 {
            ssd.write(0, random.random_range(0..pages));
        }
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn settings_without_room_for_garbage_collection_are_rejected() {
    let good = one_plane(64, 32, 280, Victim::Fifo);
    let new = |settings: FlashSettings| Ftl::new(&settings).map(|_| ());
    assert_eq!(new(FlashSettings { logical_pages: 61 * 32, ..good }), Ok(()));
    assert_eq!(new(FlashSettings { logical_pages: 61 * 32 + 1, ..good }), Err(FlashError::OverProvisioning));
    assert_eq!(new(FlashSettings { reserved_blocks: 1, ..good }), Err(FlashError::Reserve));
    assert_eq!(new(FlashSettings { logical_pages: 0, ..good }), Err(FlashError::Zero));
    let geometry = FlashGeometry { blocks: 1 << 20, pages: 1 << 13, ..good.geometry };
    assert_eq!(new(FlashSettings { geometry, ..good }), Err(FlashError::TooLarge));
    let geometry = FlashGeometry { channels: u32::MAX, dies: u32::MAX, planes: u32::MAX, ..good.geometry };
    assert_eq!(new(FlashSettings { geometry, ..good }), Err(FlashError::TooLarge));
    assert_eq!(new(FlashSettings { reserved_blocks: u32::MAX, ..good }), Err(FlashError::OverProvisioning));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn flash_rules_hold_and_every_page_keeps_its_content(
        shape in (1u32..3, 1u32..3, 1u32..3, 5u32..12, 1u32..6),
        share in 1u32..=100,
        fifo: bool,
        steps in prop::collection::vec((any::<u16>(), 0u8..8), 1..600),
    ) {
        let (channels, dies, planes, blocks, pages) = shape;
        let geometry = FlashGeometry { channels, dies, planes, blocks, pages, page_bytes: 4096 };
        let most = geometry.units() * (blocks - 3) * pages;
        let logical_pages = (most * share / 100).max(1);
        let victim = if fifo { Victim::Fifo } else { Victim::Greedy };
        let settings = FlashSettings { geometry, timing: TIMING, logical_pages, reserved_blocks: 2, victim };
        let mut ftl = Ftl::new(&settings).expect("the settings are consistent");
        let mut truth = vec![None; logical_pages as usize];
        let mut cells = vec![None; geometry.physical_pages() as usize];
        let steps = steps.iter().cycle().take(2_000);
        for (version, &(page, kind)) in steps.enumerate() {
            let page = u32::from(page) % logical_pages;
            if kind == 0 {
                ftl.trim(page);
                truth[page as usize] = None;
                continue;
            }
            let mut is_written = false;
            ftl.write(page, |unit, operation| match operation {
                FlashOperation::Program { page } => {
                    assert!(cells[page as usize].replace(version).is_none(), "page {page} is not erased");
                    is_written = true;
                }
                FlashOperation::Copy { from, to } => {
                    assert_eq!((geometry.unit(from), geometry.unit(to)), (unit, unit));
                    let content = cells[from as usize];
                    assert!(content.is_some() && cells[to as usize].is_none());
                    cells[to as usize] = content;
                }
                FlashOperation::Erase { page } => {
                    assert_eq!(page % pages, 0);
                    cells[page as usize..(page + pages) as usize].fill(None);
                }
            });
            prop_assert!(is_written);
            truth[page as usize] = Some(version);
            let found = ftl.physical(page).and_then(|page| cells[page as usize]);
            prop_assert_eq!(found, Some(version));
        }
        for (page, content) in truth.into_iter().enumerate() {
            let found = ftl.physical(page as u32).map(|page| cells[page as usize]);
            prop_assert_eq!(found, content.map(Some), "page {}", page);
        }
    }
}
