//! Random 4 KiB reads: service times, queues with one server, closed queues with a scheduler.
//!
//! The expected numbers were computed by a separate program from layout, seek points and rotation,
//! with a constant overhead of 0.28 ms and without read-ahead. That program leaves out the switch
//! within a request that crosses the end of a track, so the requests here stay on one track.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::disk::{
    Bus, CacheConfig, Disk, DiskConfig, Op, Overheads, QueueConfig, ReadAhead, Request, Scheduler, preset,
};

/// The computed numbers of a disk, in the file that `reproduce disks` reads, too.
#[derive(serde::Deserialize)]
struct Numbered {
    preset: String,
    /// Mean and standard deviation of the service time.
    service_ms: [f64; 2],
    /// Load, and mean response time in milliseconds.
    open: Vec<(f64, f64)>,
    /// Rule, and requests per second at the depths 1, 4, 16 and 64.
    closed: Vec<(Scheduler, [f64; 4])>,
}

fn numbers() -> Vec<Numbered> {
    #[derive(serde::Deserialize)]
    struct Numbers {
        disks: Vec<Numbered>,
    }
    let text = include_str!("../../../bench/data/disk-queues.toml");
    toml::from_str::<Numbers>(text).expect("the file of numbers is valid").disks
}

/// Blocks of a request: 4 KiB.
const BLOCKS: u64 = 8;

/// Returns the disk without cache and bus, with the overhead of the expected numbers.
fn bare(config: DiskConfig, scheduler: Scheduler) -> DiskConfig {
    DiskConfig {
        cache: CacheConfig { segments: 0, read_ahead: ReadAhead::None, ..config.cache },
        overheads: Overheads::uniform(0.28),
        bus: Bus { read_block_ms: 0.0, write_block_ms: 0.0 },
        queue: QueueConfig { scheduler, window: usize::MAX, age_limit_ms: None },
        ..config
    }
}

struct Load {
    disk: Disk,
    random: Xoshiro256PlusPlus,
    slots: u64,
}

impl Load {
    fn new(config: &DiskConfig, seed: u64) -> Load {
        let disk = Disk::new(config).expect("the preset is valid");
        let slots = disk.mechanism().geometry.blocks() / BLOCKS;
        Load { disk, random: Xoshiro256PlusPlus::seed_from_u64(seed), slots }
    }

    fn submit(&mut self, now_ps: u64, id: u64) {
        let lbn = loop {
            let lbn = self.random.random_range(0..self.slots) * BLOCKS;
            if u64::from(self.disk.mechanism().geometry.place(lbn).left_on_track) >= BLOCKS {
                break lbn;
            }
        };
        self.disk.submit(now_ps, Request { id, lbn, blocks: BLOCKS, op: Op::Read });
    }

    /// Keeps `depth` requests in the disk, and returns requests per second.
    fn closed(&mut self, depth: u64, requests: u64) -> f64 {
        for id in 0..depth {
            self.submit(0, id);
        }
        let mut ended = 0;
        loop {
            let now_ps = self.disk.next_ps().expect("requests wait");
            while let Some(end) = self.disk.pop_ended(now_ps) {
                ended += 1;
                if ended == requests {
                    return ended as f64 / (end.ended_ps as f64 / 1e12);
                }
                self.submit(now_ps, end.id);
            }
        }
    }

    /// Submits requests at random times, and returns their mean response time in milliseconds.
    fn open(&mut self, interval_ms: f64, requests: u64) -> f64 {
        let (mut arrival_ps, mut sum_ps) = (0, 0);
        for id in 0..requests {
            let share: f64 = self.random.random();
            arrival_ps += (-libm::log(1.0 - share) * interval_ms * 1e9) as u64;
            sum_ps += self.collect(arrival_ps);
            self.submit(arrival_ps, id);
        }
        sum_ps += self.collect(u64::MAX);
        sum_ps as f64 / requests as f64 / 1e9
    }

    /// Returns the sum of the response times of requests that end by `until_ps`.
    fn collect(&mut self, until_ps: u64) -> u64 {
        let mut sum_ps = 0;
        while let Some(next_ps) = self.disk.next_ps().filter(|next_ps| *next_ps < until_ps) {
            while let Some(end) = self.disk.pop_ended(next_ps) {
                sum_ps += end.response_ps();
            }
        }
        sum_ps
    }
}

fn check(what: &str, expected: f64, ours: f64, tolerance: f64) {
    let ratio = ours / expected;
    println!("{what}: expected {expected}, ours {ours:.2}, ratio {ratio:.3}");
    assert!((ratio - 1.0).abs() <= tolerance, "{what}: expected {expected} ± {tolerance}, ours {ours:.3}");
}

#[test]
fn service_times_of_random_reads_have_the_computed_mean_and_deviation() {
    for Numbered { preset, service_ms: [mean_ms, deviation_ms], .. } in numbers() {
        let config = preset::find(&preset).expect("the disk is a preset");
        let config = bare(config, Scheduler::Fcfs);
        let mut load = Load::new(&config, 1);
        let (mut now_ps, mut sum, mut squares) = (0, 0.0, 0.0);
        let requests = 200_000;
        for id in 0..requests {
            load.submit(now_ps, id);
            now_ps = load.disk.next_ps().expect("the request is in the disk");
            let ms = loop {
                if let Some(end) = load.disk.pop_ended(now_ps) {
                    break end.response_ps() as f64 / 1e9;
                }
                now_ps = load.disk.next_ps().expect("the request is in the disk");
            };
            sum += ms;
            squares += ms * ms;
        }
        let mean = sum / requests as f64;
        check(&format!("{} mean", config.name), mean_ms, mean, 0.02);
        let deviation = (squares / requests as f64 - mean * mean).sqrt();
        check(&format!("{} deviation", config.name), deviation_ms, deviation, 0.02);
        let stats = load.disk.stats();
        assert_eq!(stats.read_misses.requests, requests, "{stats}");
        let rotation = stats.read_misses.phases.rotation_ps as f64 / requests as f64;
        let half_turn = load.disk.mechanism().geometry.revolution_ps() as f64 / 2.0;
        check("rotational wait is half a revolution", half_turn / 1e9, rotation / 1e9, 0.01);
    }
}

#[test]
fn random_seeks_cross_a_third_of_the_cylinders() {
    // One zone, so that blocks are uniform over cylinders.
    let mut config = bare(preset::cheetah_9lp(), Scheduler::Fcfs);
    config.blocks = 0;
    let zone = sanloom_storage::disk::Zone { last_cylinder: 6961, ..config.zones[0] };
    config.zones = std::borrow::Cow::Owned(vec![zone]);
    let mut load = Load::new(&config, 2);
    load.closed(4, 200_000);
    check("mean distance", 6962.0 / 3.0, load.disk.stats().mean_seek_cylinders(), 0.01);
}

#[test]
fn open_queues_have_the_response_times_of_m_g_1() {
    for Numbered { preset, service_ms: [mean_ms, deviation_ms], open, .. } in numbers() {
        let config = preset::find(&preset).expect("the disk is a preset");
        let config = bare(config, Scheduler::Fcfs);
        for (load, response_ms) in open {
            // Pollaczek and Khinchine: E[W] = λ E[S²] / (2 (1 - ρ)).
            let square: f64 = mean_ms * mean_ms + deviation_ms * deviation_ms;
            let formula_ms = mean_ms + load / mean_ms * square / (2.0 * (1.0 - load));
            check("table", formula_ms, response_ms, 0.01);
            let requests = if load > 0.8 { 4_000_000 } else { 400_000 };
            let ours = Load::new(&config, 3).open(mean_ms / load, requests);
            check(&format!("{} at {load}", config.name), response_ms, ours, 0.02);
        }
    }
}

#[test]
fn closed_queues_reach_the_throughput_of_the_scheduling_table() {
    for Numbered { preset, closed, .. } in numbers() {
        let config = preset::find(&preset).expect("the disk is a preset");
        let mut ours = [[0.0; 4]; 5];
        for (row, (scheduler, expected)) in closed.into_iter().enumerate() {
            for (column, depth) in [1, 4, 16, 64].into_iter().enumerate() {
                let config = bare(config.clone(), scheduler);
                ours[row][column] = Load::new(&config, 4).closed(depth, 60_000);
                let what = format!("{} {scheduler:?} at depth {depth}", config.name);
                check(&what, expected[column], ours[row][column], 0.03);
            }
        }
        for ((fcfs, look), sptf) in ours[0].iter().zip(&ours[2]).zip(&ours[4]) {
            assert!(sptf >= look && look >= fcfs, "SPTF {sptf}, LOOK {look}, FCFS {fcfs}");
        }
    }
}

#[test]
fn aged_sptf_lies_between_sptf_and_fcfs() {
    let worst = |scheduler| {
        let mut load = Load::new(&bare(preset::cheetah_9lp(), scheduler), 5);
        let rate = load.closed(32, 40_000);
        (rate, load)
    };
    let (sptf, _) = worst(Scheduler::Sptf);
    let (aged, _) = worst(Scheduler::AgedSptf { weight_permille: 20 });
    let (fcfs, _) = worst(Scheduler::Fcfs);
    assert!(sptf > aged && aged > fcfs, "SPTF {sptf}, aged {aged}, FCFS {fcfs}");
}

#[test]
fn an_age_limit_does_not_take_the_throughput_of_deep_queues() {
    let rates = |config: &DiskConfig| [32, 64, 256, 512].map(|depth| Load::new(config, 6).closed(depth, 12_000));
    let mut limited: Vec<DiskConfig> =
        preset::all().into_iter().filter(|config| config.queue.age_limit_ms.is_some()).collect();
    assert!(limited.len() >= 8, "{} presets have an age limit", limited.len());
    for config in [preset::cheetah_9lp(), preset::atlas_10k()] {
        let mut config = bare(config, Scheduler::Sptf);
        config.queue.age_limit_ms = Some(500.0);
        limited.push(config);
    }
    for config in limited {
        let [shallow, expected, deep, deeper] = rates(&config);
        println!("{}: {shallow:.1} at 32, {expected:.1} at 64, {deep:.1} at 256, {deeper:.1} at 512", config.name);
        assert!(deep >= expected && deeper >= expected, "{}", config.name);
        // The limit alone ends no gain of a deeper queue, either.
        assert!(expected >= 0.99 * shallow, "{}", config.name);
    }
}
