//! Frames do not allocate memory once a run is warm.

use sanloom_sim::world::World;
use std::sync::Arc;

const LAB: &str = include_str!("../../../../examples/core-edge.toml");

#[test]
fn a_warm_run_allocates_nothing_per_frame() {
    for (size, read_share, queueing) in [("32KiB", "1.0", "any"), ("2KiB", "0.5", "fifo"), ("8KiB", "0.0", "voq")] {
        let sets = [
            ("workload.reads.size", size),
            ("workload.reads.read_share", read_share),
            ("switch.*.queueing", queueing),
            // Each sample of the time series allocates, so a long interval keeps samples out of the
            // measurement.
            ("run.sample_interval", "2s"),
        ];
        let overrides: Vec<sanloom_lab::Override> =
            sets.iter().map(|&(key, value)| sanloom_lab::Override { key: key.into(), value: value.into() }).collect();
        let loaded = sanloom_lab::load("core-edge.toml", LAB, &overrides).expect("the example is a good lab");
        let mut world = World::new(Arc::new(loaded.lab));
        world.log_in();
        world.start();
        world.run_until(world.start_ps + 400_000_000_000);
        let hops = world.net.fc.fate.frame_hops;
        // Counts this thread alone: other tests run beside it.
        let counted = allocation_counter::measure(|| world.run_until(world.start_ps + 600_000_000_000));
        let blocks = counted.count_total;
        let hops = world.net.fc.fate.frame_hops - hops;
        assert!(hops > 100_000, "{size}: the run moved only {hops} frames");
        // A queue that exceeds its previous maximum may still grow, with one allocation per
        // doubling.
        assert!(blocks <= 16, "{size} reads {read_share} {queueing}: {blocks} allocations in {hops} frame-hops");
    }
}
