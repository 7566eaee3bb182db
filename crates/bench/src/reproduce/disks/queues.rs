//! Random 4 KiB reads without read-ahead: service times, queues with one server, and closed queues
//! with a scheduler, beside numbers of a separate program.

use super::super::verdict::{Kind, Verdict};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_console::exit::Failure;
use sanloom_storage::disk::{
    Bus, CacheConfig, Disk, DiskConfig, Ended, Op, Overheads, QueueConfig, ReadAhead, Request, Scheduler, preset,
};

/// Title of the section.
pub const TITLE: &str = "Random 4 KiB reads without read-ahead, beside computed numbers";

const BLOCKS: u64 = 8;

/// Overhead of the computed numbers.
const OVERHEAD_MS: f64 = 0.28;

const COMPUTED: &str = "The number was computed by a separate program from layout, seek points and rotation. That program \
                        leaves out switches within a request, so the requests stay on one track";

/// A disk with its computed numbers.
struct Disks {
    config: fn() -> DiskConfig,
    /// Mean and standard deviation of the service time.
    service_ms: [f64; 2],
    /// Load, and mean response time.
    open: [(f64, f64); 4],
    /// Rule, and requests per second at the depths of [`DEPTHS`].
    closed: [(Scheduler, [f64; 4]); 5],
}

const DEPTHS: [u64; 4] = [1, 4, 16, 64];

const DISKS: [Disks; 2] = [
    Disks {
        config: preset::cheetah_9lp,
        service_ms: [8.91, 2.61],
        open: [(0.3, 10.99), (0.5, 13.75), (0.7, 20.2), (0.9, 52.5)],
        closed: [
            (Scheduler::Fcfs, [113.0; 4]),
            (Scheduler::Sstf, [113.0, 139.0, 166.0, 189.0]),
            (Scheduler::Look, [113.0, 138.0, 168.0, 190.0]),
            (Scheduler::CLook, [113.0, 131.0, 164.0, 188.0]),
            (Scheduler::Sptf, [113.0, 154.0, 201.0, 270.0]),
        ],
    },
    Disks {
        config: preset::atlas_10k,
        service_ms: [8.98, 2.56],
        open: [(0.3, 11.06), (0.5, 13.8), (0.7, 20.3), (0.9, 52.7)],
        closed: [
            (Scheduler::Fcfs, [112.0; 4]),
            (Scheduler::Sstf, [112.0, 137.0, 161.0, 183.0]),
            (Scheduler::Look, [112.0, 136.0, 163.0, 184.0]),
            (Scheduler::CLook, [112.0, 129.0, 158.0, 184.0]),
            (Scheduler::Sptf, [112.0, 152.0, 196.0, 252.0]),
        ],
    },
];

type Job = Box<dyn Fn() -> Result<Vec<Verdict>, Failure> + Sync + Send>;

/// Returns the jobs in the order of the report.
pub fn jobs() -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for disks in &DISKS {
        jobs.push(Box::new(|| service(disks)));
        jobs.extend(disks.open.iter().map(|row| Box::new(|| open(disks, *row)) as Job));
        jobs.extend(disks.closed.iter().map(|row| Box::new(|| closed(disks, row)) as Job));
    }
    jobs
}

fn number(id: String, what: String, computed: f64, ours: f64, unit: &'static str) -> Verdict {
    Verdict::shown(Kind::Prediction, id, what, computed, Some(ours), unit).note(format!("{COMPUTED}."))
}

fn service(disks: &Disks) -> Result<Vec<Verdict>, Failure> {
    let mut load = Load::new((disks.config)(), Scheduler::Fcfs, 1)?;
    let (mut sum, mut squares) = (0.0, 0.0);
    let requests = 200_000;
    load.closed(1, requests, |ended| {
        let ms = ended.response_ps() as f64 / 1e9;
        sum += ms;
        squares += ms * ms;
    });
    let mean = sum / requests as f64;
    let deviation = (squares / requests as f64 - mean * mean).sqrt();
    let [expected_mean, expected_deviation] = disks.service_ms;
    let name = &load.name;
    let reason = "the samples of both programs differ";
    Ok(vec![
        number(format!("{name}-service"), format!("{name}: mean service time"), expected_mean, mean, "ms")
            .predicted(0.01)
            .tolerance_reason(reason),
        number(
            format!("{name}-deviation"),
            format!("{name}: standard deviation of the service time"),
            expected_deviation,
            deviation,
            "ms",
        )
        .predicted(0.02)
        .tolerance_reason(reason),
    ])
}

fn open(disks: &Disks, (utilisation, response_ms): (f64, f64)) -> Result<Vec<Verdict>, Failure> {
    let mut load = Load::new((disks.config)(), Scheduler::Fcfs, 3)?;
    let requests = if utilisation > 0.8 { 4_000_000 } else { 400_000 };
    let ours = load.open(disks.service_ms[0] / utilisation, requests);
    let name = &load.name;
    let id = format!("{name}-open-{utilisation}");
    let what = format!("{name}: mean response at load {utilisation}, M/G/1");
    let verdict = number(id, what, response_ms, ours, "ms").predicted(0.02);
    Ok(vec![verdict.tolerance_reason("the mean of a busy queue varies from sample to sample")])
}

fn closed(disks: &Disks, (scheduler, rates): &(Scheduler, [f64; 4])) -> Result<Vec<Verdict>, Failure> {
    let mut verdicts = Vec::new();
    for (depth, expected) in DEPTHS.into_iter().zip(rates) {
        let mut load = Load::new((disks.config)(), *scheduler, 4)?;
        let ours = load.closed(depth, 60_000, |_| {});
        let name = &load.name;
        let rule = format!("{scheduler:?}").to_uppercase();
        let id = format!("{name}-closed-{}-{depth}", rule.to_lowercase());
        let what = format!("{name}: reads per second, {rule}, depth {depth}");
        let verdict = number(id, what, *expected, ours, "1/s").predicted(0.03);
        verdicts.push(verdict.tolerance_reason("the computed rates have an error of 2 %"));
    }
    Ok(verdicts)
}

/// A disk under random reads.
struct Load {
    disk: Disk,
    name: String,
    random: Xoshiro256PlusPlus,
    slots: u64,
}

impl Load {
    fn new(config: DiskConfig, scheduler: Scheduler, seed: u64) -> Result<Load, Failure> {
        let config = DiskConfig {
            cache: CacheConfig { segments: 0, read_ahead: ReadAhead::None, ..config.cache },
            overheads: Overheads::uniform(OVERHEAD_MS),
            bus: Bus { read_block_ms: 0.0, write_block_ms: 0.0 },
            queue: QueueConfig { scheduler, window: usize::MAX, age_limit_ms: None },
            ..config
        };
        let disk = Disk::new(&config).map_err(Failure::bug)?;
        let slots = disk.mechanism().geometry.blocks() / BLOCKS;
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Ok(Load { disk, name: config.name.into_owned(), random, slots })
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
    fn closed(&mut self, depth: u64, requests: u64, mut each: impl FnMut(&Ended)) -> f64 {
        for id in 0..depth {
            self.submit(0, id);
        }
        let mut ended = 0;
        let mut last_ps = 0;
        while let Some(now_ps) = self.disk.next_ps() {
            while let Some(end) = self.disk.pop_ended(now_ps) {
                each(&end);
                ended += 1;
                last_ps = end.ended_ps;
                if ended == requests {
                    return ended as f64 / (last_ps as f64 / 1e12);
                }
                self.submit(now_ps, end.id);
            }
        }
        ended as f64 / (last_ps as f64 / 1e12)
    }

    /// Submits requests at random times, and returns their mean response time in milliseconds.
    fn open(&mut self, interval_ms: f64, requests: u64) -> f64 {
        let (mut arrival_ps, mut sum_ps) = (0, 0);
        for id in 0..requests {
            let share: f64 = self.random.random();
            arrival_ps += (-(1.0 - share).ln() * interval_ms * 1e9) as u64;
            sum_ps += self.collect(arrival_ps);
            self.submit(arrival_ps, id);
        }
        sum_ps += self.collect(u64::MAX);
        sum_ps as f64 / requests as f64 / 1e9
    }

    /// Returns the sum of the response times of requests that end before `until_ps`.
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
