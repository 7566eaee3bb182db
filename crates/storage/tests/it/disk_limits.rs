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
