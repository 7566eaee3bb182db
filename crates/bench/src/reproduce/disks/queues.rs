//! Random 4 KiB reads without read-ahead: service times, queues with one server, and closed queues
//! with a scheduler, beside numbers of a separate program.

use super::super::verdict::{Kind, Verdict};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_console::exit::Failure;
use sanloom_storage::disk::{
    Bus, CacheConfig, Disk, DiskConfig, Ended, Op, Overheads, QueueConfig, ReadAhead, Request, Scheduler, preset,
};
use serde::Deserialize;

/// Title of the section.
pub const TITLE: &str = "Random 4 KiB reads without read-ahead, beside computed numbers";

const BLOCKS: u64 = 8;

/// Overhead of the computed numbers.
const OVERHEAD_MS: f64 = 0.28;

const COMPUTED: &str = "The number was computed by a separate program from layout, seek points and rotation. That program \
                        leaves out switches within a request, so the requests stay on one track";

/// The computed numbers; the tests of the disk model read the same file.
const NUMBERS: &str = include_str!("../../../data/disk-queues.toml");

#[derive(Deserialize)]
struct Numbers {
    disks: Vec<Numbered>,
}

/// A disk with its computed numbers.
#[derive(Clone, Deserialize)]
struct Numbered {
    preset: String,
    /// Mean and standard deviation of the service time.
    service_ms: [f64; 2],
    /// Load, and mean response time.
    open: Vec<(f64, f64)>,
    /// Rule, and requests per second at the depths of [`DEPTHS`].
    closed: Vec<(Scheduler, [f64; 4])>,
}

const DEPTHS: [u64; 4] = [1, 4, 16, 64];

type Job = Box<dyn Fn() -> Result<Vec<Verdict>, Failure> + Sync + Send>;

/// Returns the jobs in the order of the report.
///
/// # Errors
/// If the file of numbers is wrong.
pub fn jobs() -> Result<Vec<Job>, Failure> {
    let numbers: Numbers = toml::from_str(NUMBERS).map_err(Failure::bug)?;
    let mut jobs: Vec<Job> = Vec::new();
    for disks in numbers.disks {
        let config = preset::find(&disks.preset).ok_or_else(|| Failure::bug("a disk of the numbers is no preset"))?;
        let (of_service, shared) = (disks.clone(), config.clone());
        jobs.push(Box::new(move || service(&shared, &of_service)));
        for row in disks.open {
            let (config, mean_ms) = (config.clone(), disks.service_ms[0]);
            jobs.push(Box::new(move || open(&config, mean_ms, row)));
        }
        for row in disks.closed {
            let config = config.clone();
            jobs.push(Box::new(move || closed(&config, &row)));
        }
    }
    Ok(jobs)
}

fn number(id: String, what: String, computed: f64, ours: f64, unit: &'static str) -> Verdict {
    Verdict::shown(Kind::Prediction, id, what, computed, Some(ours), unit).note(format!("{COMPUTED}."))
}

fn service(config: &DiskConfig, disks: &Numbered) -> Result<Vec<Verdict>, Failure> {
    let mut load = Load::new(config.clone(), Scheduler::Fcfs, 1)?;
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

fn open(config: &DiskConfig, mean_ms: f64, (utilisation, response_ms): (f64, f64)) -> Result<Vec<Verdict>, Failure> {
    let mut load = Load::new(config.clone(), Scheduler::Fcfs, 3)?;
    let requests = if utilisation > 0.8 { 4_000_000 } else { 400_000 };
    let ours = load.open(mean_ms / utilisation, requests);
    let name = &load.name;
    let id = format!("{name}-open-{utilisation}");
    let what = format!("{name}: mean response at load {utilisation}, M/G/1");
    let verdict = number(id, what, response_ms, ours, "ms").predicted(0.02);
    Ok(vec![verdict.tolerance_reason("the mean of a busy queue varies from sample to sample")])
}

fn closed(config: &DiskConfig, (scheduler, rates): &(Scheduler, [f64; 4])) -> Result<Vec<Verdict>, Failure> {
    let mut verdicts = Vec::new();
    for (depth, expected) in DEPTHS.into_iter().zip(rates) {
        let mut load = Load::new(config.clone(), *scheduler, 4)?;
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
