//! Once a run is warm, no frame allocates.

use sanloom_sim::world::World;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const LAB: &str = include_str!("../../../examples/core-edge.toml");

#[test]
fn a_warm_run_allocates_nothing_per_frame() {
    for (size, read_share, queueing) in [("32KiB", "1.0", "any"), ("2KiB", "0.5", "fifo"), ("8KiB", "0.0", "voq")] {
        let sets = [
            ("workload.reads.size", size),
            ("workload.reads.read_share", read_share),
            ("switch.*.queueing", queueing),
            // Samples of the time series allocate, one for each step and not for each frame.
            ("run.sample_interval", "2s"),
        ];
        let overrides: Vec<sanloom_lab::Override> =
            sets.iter().map(|&(key, value)| sanloom_lab::Override { key: key.into(), value: value.into() }).collect();
        let loaded = sanloom_lab::load("core-edge.toml", LAB, &overrides).expect("the example is a good lab");
        let mut world = World::new(Arc::new(loaded.lab));
        world.log_in();
        world.start();
        world.run_until(world.start_ps + 400_000_000_000);
        let _profiler = dhat::Profiler::builder().testing().build();
        let before = dhat::HeapStats::get().total_blocks;
        let hops = world.net.fate.frame_hops;
        world.run_until(world.start_ps + 600_000_000_000);
        let blocks = dhat::HeapStats::get().total_blocks - before;
        let hops = world.net.fate.frame_hops - hops;
        assert!(hops > 100_000, "{size}: the run moved only {hops} frames");
        // A queue that is longer than ever before may still grow, once for each doubling.
        assert!(blocks <= 16, "{size} reads {read_share} {queueing}: {blocks} allocations in {hops} frame-hops");
    }
}
