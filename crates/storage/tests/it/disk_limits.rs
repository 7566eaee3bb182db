//! Random parameters are rejected, or make a disk that ends every request.

use proptest::prelude::*;
use sanloom_storage::disk::{Disk, DiskConfig, Mapping, Op, Request, Scheduler, SeekCurve, WritePolicy, Zone, preset};
use std::borrow::Cow;

fn zone() -> impl Strategy<Value = Zone> {
    (0u32..60, 0u32..20, 0u32..300, [0u32..400, 0u32..400, 0u32..400], [0u64..500, 0u64..500]).prop_map(
        |(first_cylinder, more, blocks_per_track, offsets, unused)| Zone {
            first_cylinder,
            last_cylinder: first_cylinder + more,
            blocks_per_track,
            first_block_offset: offsets[0],
            track_skew: offsets[1],
            cylinder_skew: offsets[2],
            empty_blocks: unused[0],
            spare_blocks: unused[1],
            spare_blocks_per_track: offsets[0] % 3,
            spare_blocks_per_cylinder: offsets[1] % 5,
        },
    )
}

proptest! {
    #[test]
    fn no_parameters_lose_a_request(
        zones in prop::collection::vec(zone(), 1..4),
        surfaces in 1u32..5,
        rpm in 50.0f64..20_000.0,
        serpentine: bool,
        segments in 0usize..4,
        segment_blocks in 0u64..300,
        write in 0u64..3,
        scheduler in 0usize..6,
        lengths in prop::collection::vec((0u64..100_000, 1u64..400, 0u8..4), 1..40),
    ) {
        let schedulers = [
            Scheduler::Fcfs,
            Scheduler::Sstf,
            Scheduler::Look,
            Scheduler::CLook,
            Scheduler::Sptf,
            Scheduler::AgedSptf { weight_permille: 100 },
        ];
        let base = preset::atlas_10k();
        let mut config = DiskConfig {
            blocks: 0,
            surfaces,
            rpm,
            mapping: if serpentine { Mapping::Serpentine } else { Mapping::Normal },
            zones: Cow::Owned(zones),
            seek: SeekCurve::ThreePoint { single_ms: 1.0, average_ms: 4.0, full_ms: 6.0 },
            ..base
        };
        config.cache.segments = segments;
        config.cache.segment_blocks = segment_blocks;
        config.queue.scheduler = schedulers[scheduler];
        if write > 0 {
            config.cache.write = WritePolicy::Back { dirty_blocks: write * 64, dirty_extents: 2, window: 4, only_appending: write == 2 };
        }
        let Ok(mut disk) = Disk::new(&config) else { return Ok(()) };
        for (id, (lbn, blocks, op)) in lengths.iter().enumerate() {
            let op = [Op::Read, Op::Write, Op::WriteThrough, Op::Flush][usize::from(*op)];
            disk.submit(id as u64 * 1_000_000_000, Request { id: id as u64, lbn: *lbn, blocks: *blocks, op });
        }
        let mut ended = 0;
        while let Some(now_ps) = disk.next_ps() {
            while disk.pop_ended(now_ps).is_some() {
                ended += 1;
            }
        }
        prop_assert_eq!(ended, lengths.len());
        prop_assert_eq!(disk.waiting(), 0);
    }
}

#[test]
fn wrong_numbers_of_a_parameter_file_are_errors_that_name_the_value() {
    let error = |change: &dyn Fn(&mut DiskConfig)| {
        let mut config = preset::cheetah_9lp();
        change(&mut config);
        Disk::new(&config).expect_err("the disk is invalid").to_string()
    };
    let of_seek = |seek: SeekCurve| error(&move |config| config.seek = seek.clone());
    let three = |single_ms, average_ms, full_ms| of_seek(SeekCurve::ThreePoint { single_ms, average_ms, full_ms });
    let roots = |short_constant_ms, first_ms: f64| {
        of_seek(SeekCurve::SquareRootThenLinear {
            boundary_cylinders: 100,
            short_constant_ms,
            short_factor_ms: 0.3,
            long_constant_ms: 7.0,
            long_factor_ms: 0.01,
            first_ms: vec![first_ms].into(),
        })
    };
    let table = |points: [(u32, f64); 2]| of_seek(SeekCurve::Table { points: points.to_vec().into() });
    let cases = [
        (of_seek(SeekCurve::Linear { single_ms: f64::NAN, full_ms: 7.0 }), "single_ms is NaN"),
        (of_seek(SeekCurve::Linear { single_ms: 1.0, full_ms: -7.0 }), "full_ms is -7"),
        (three(1.0, f64::INFINITY, 6.0), "average_ms is inf"),
        // The curve falls below 0 between its ends.
        (three(1.0, 0.1, 6.0), "a seek takes -"),
        (roots(f64::NAN, 1.0), "short_constant_ms is NaN"),
        (roots(1.0, -1.0), "first_ms is -1"),
        (roots(-2.0, 1.0), "a seek takes -"),
        (table([(1, f64::NAN), (2, 1.0)]), "points is NaN"),
        // The last two points are extended to longer seeks.
        (table([(1, 2.0), (2, 1.0)]), "a seek takes -"),
        (error(&|config| config.cache.read_watermark_percent = 101), "read_watermark_percent is 101"),
        (
            error(&|config| config.queue.scheduler = Scheduler::AgedSptf { weight_permille: u32::MAX }),
            "weight_permille is 4294967295",
        ),
        (error(&|config| config.zones.to_mut()[0].track_skew = u32::MAX), "track_skew is 4294967295"),
        (error(&|config| config.zones.to_mut()[0].cylinder_skew = u32::MAX), "cylinder_skew is 4294967295"),
        (error(&|config| config.zones.to_mut()[0].first_block_offset = u32::MAX), "first_block_offset is"),
        (
            error(&|config| {
                let zone = &mut config.zones.to_mut()[0];
                (zone.empty_blocks, zone.spare_blocks) = (u64::MAX, 2);
            }),
            "zone 0 is empty",
        ),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}, expected {part}");
    }
}

#[test]
fn the_largest_weight_of_the_waiting_time_overflows_nothing() {
    let mut config = preset::cheetah_9lp();
    config.queue.scheduler = Scheduler::AgedSptf { weight_permille: 1_000_000 };
    config.cache.max_read_ahead_blocks = u64::MAX;
    let mut disk = Disk::new(&config).expect("the weight is valid");
    for id in 0..20 {
        disk.submit(id / 10 * u64::MAX / 4, Request { id, lbn: id * 500_000, blocks: 8, op: Op::Read });
    }
    let mut ended = 0;
    while let Some(now_ps) = disk.next_ps() {
        while disk.pop_ended(now_ps).is_some() {
            ended += 1;
        }
    }
    assert_eq!(ended, 20);
}
