//! Small labs for tests.
#![allow(dead_code)] // every test file uses some of them

pub mod planes;

use sanloom_api::results::Results;
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use sanloom_sim::net::Observed;
use sanloom_sim::run::{Finished, Observer, Options, simulate};
use sanloom_sim::world::World;
use std::sync::Arc;

/// One host, one switch and one disk; store-and-forward, one read at a time.
pub const TINY: &str = r#"
[run]
duration = "10ms"
warmup = "0s"
[switch.edge]
forwarding = "store-and-forward"
[host.server]
[storage.disk]
rate = "10k/s"
[[link]]
from = "server"
to = "edge"
rate = "2GFC"
length = "50m"
[[link]]
from = "disk"
to = "edge"
rate = "2GFC"
length = "100m"
[workload.reads]
hosts = "server"
targets = "disk"
size = "4KiB"
depth = 1
"#;

/// Four hosts that read from two disks at the far end of an ISL; all links are 4GFC.
pub const FABRIC: &str = r#"
[run]
duration = "60ms"
warmup = "10ms"
[switch."edge{1..2}"]
[host."server{1..4}"]
[storage."disk{1..2}"]
[[link]]
from = "server{1..4}"
to = "edge1"
rate = "4GFC"
[[link]]
from = "disk{1..2}"
to = "edge2"
rate = "4GFC"
[[isl]]
from = "edge1"
to = "edge2"
name = "ISL"
rate = "4GFC"
[workload.mixed]
hosts = "server{1..4}"
targets = "disk{1..2}"
size = "32KiB"
read_share = 0.6
depth = 4
"#;

/// Returns a lab from its text, with additional text at the end and overrides.
pub fn lab_with(text: &str, more: &str, sets: &[&str]) -> Arc<Lab> {
    let sets: Vec<Override> = sets.iter().filter_map(|set| Override::parse(set)).collect();
    let loaded = sanloom_lab::load("test.toml", &format!("{text}\n{more}"), &sets);
    Arc::new(loaded.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false))).lab)
}

/// Returns the ring of five InfiniBand switches of the examples under full load, for 20 ms. Packets
/// expire after 4.096 us × 2^`lifetime`, and no queue pair repeats them earlier.
pub fn credit_ring(routing: &str, lifetime: u8, sets: &[&str]) -> Arc<Lab> {
    const RING: &str = include_str!("../../../../../examples/infiniband-deadlock.toml");
    let text = RING.replace("stop_issuing = \"500ms\"\n", "").replace("arrivals = \"poisson 10k/s\"", "depth = 16");
    let lifetimes = ["lifetime", "last_lifetime"].map(|key| format!("infiniband_switch.*.{key}={lifetime}"));
    let routing = format!("subnet.routing={routing}");
    let own =
        ["run.duration=20ms", "subnet.ack_timeout=14", "subnet.roots=ring1", &routing, &lifetimes[0], &lifetimes[1]];
    lab_with(&text, "", &own.iter().chain(sets).copied().collect::<Vec<_>>())
}

/// Returns a lab from its text.
pub fn lab(text: &str) -> Arc<Lab> {
    lab_with(text, "", &[])
}

/// Returns the index of a link.
pub fn link(lab: &Lab, name: &str) -> u16 {
    lab.links.iter().position(|link| link.name == name).unwrap_or_else(|| panic!("no link {name}")) as u16
}

struct Collect<'c>(&'c mut dyn FnMut(&World, &[Observed]));

impl Observer for Collect<'_> {
    fn observed(&mut self, world: &World, observed: &[Observed]) {
        (self.0)(world, observed);
    }
}

/// Runs a lab and watches all its links.
pub fn watched(lab: &Arc<Lab>, each: &mut dyn FnMut(&World, &[Observed])) -> Finished {
    let options = Options { watch: (0..lab.links.len() as u16).collect(), ..Options::default() };
    simulate(lab, &options, &mut Collect(each))
}

/// Runs a lab and checks the invariants of every lab.
pub fn run(lab: &Arc<Lab>) -> Results {
    let finished = simulate(lab, &Options::default(), &mut sanloom_sim::run::Blind);
    check(&finished);
    finished.results
}

/// Checks the invariants of every lab.
pub fn check(finished: &Finished) {
    assert!(finished.results.conservation.holds(), "{:?}", finished.results.conservation);
}

/// Data of all workloads per second, in 10^6 bytes.
pub fn mb_per_s(results: &Results) -> f64 {
    results.totals.io.throughput_bytes_per_s / 1e6
}

/// Runs a lab. Returns the requests of its first host and the allocations of this thread between
/// two times after the start, in milliseconds.
pub fn allocations(text: &str, [from_ms, until_ms]: [u64; 2]) -> (u64, u64) {
    const MS: u64 = 1_000_000_000;
    let mut world = World::new(lab(text));
    world.log_in();
    world.start();
    let done = |world: &World| world.hosts.nodes[0].measured.ios.iter().sum::<u64>();
    world.run_until(world.start_ps + from_ms * MS);
    let before = done(&world);
    // Counts this thread alone: other tests run beside it.
    let counted = allocation_counter::measure(|| world.run_until(world.start_ps + until_ms * MS));
    (done(&world) - before, counted.count_total)
}
