//! `sanloom bench storage`: requests per second of processor time of the disk model.

use super::bound::{self, Bound};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::thread_cpu;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_storage::disk::{Disk, DiskConfig, Op, QueueConfig, Request, Scheduler, preset};
use serde::Serialize;
use std::fmt::Write as _;

/// Options of `sanloom bench storage`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Requests in the disk at any time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = quantity::count::<u32>(1..=65_536))]
    depth: u32,
    /// Requests of each measurement
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = quantity::count::<u32>(1..=u32::MAX.into()))]
    requests: u32,
    #[command(flatten)]
    outputs: Outputs,
    /// End with exit code 1 if a bound is missed
    #[arg(long)]
    judge: bool,
}

/// Results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Storage {
    /// Requests in the disk at any time.
    pub depth: u32,
    /// Requests of each measurement: random reads of 4 KiB.
    pub requests: u32,
    /// One element for each rule of the queue.
    pub rules: Vec<Rule>,
}

/// Speed of the model with a rule of the queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rule {
    /// Rule of the queue.
    pub scheduler: Scheduler,
    /// Requests per second of processor time.
    pub requests_per_cpu_s: f64,
    /// Requests per second of the modelled disk.
    pub requests_per_s: f64,
}

/// Depth for which the bound is valid.
const JUDGED: u32 = 64;

/// Requests between two checks for Ctrl-C.
const SLICE: u32 = 100_000;

const RULES: [Scheduler; 6] = [
    Scheduler::Fcfs,
    Scheduler::Sstf,
    Scheduler::Look,
    Scheduler::CLook,
    Scheduler::Sptf,
    Scheduler::AgedSptf { weight_permille: 20 },
];

impl Storage {
    fn bounds(&self) -> Vec<Bound> {
        let sptf = self.rules.iter().find(|rule| rule.scheduler == Scheduler::Sptf && self.depth == JUDGED);
        sptf.map(|rule| Bound::at_least("SPTF at depth 64", rule.requests_per_cpu_s, 2e6, "requests per CPU second"))
            .into_iter()
            .collect()
    }
}

/// Measures the disk model, and prints the results.
///
/// # Errors
/// If an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let rules = RULES.into_iter().map(|scheduler| measure(args, scheduler)).collect::<Result<_, _>>()?;
    let storage = Storage { depth: args.depth, requests: args.requests, rules };
    let bounds = storage.bounds();
    args.outputs.write_or_print("storage", &storage, || text(&storage) + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

fn measure(args: &Args, scheduler: Scheduler) -> Result<Rule, Failure> {
    let queue = QueueConfig { scheduler, window: usize::MAX, age_limit_ms: None };
    let config = DiskConfig { queue, ..preset::cheetah_9lp() };
    let mut disk = Disk::new(&config).map_err(Failure::bug)?;
    let slots = disk.mechanism().geometry.blocks() / 8;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut next = |id| Request { id, lbn: random.random_range(0..slots) * 8, blocks: 8, op: Op::Read };
    for id in 0..args.depth {
        disk.submit(0, next(id.into()));
    }
    let (mut ended, mut last_ps) = (0, 0);
    let start = thread_cpu();
    while ended < args.requests {
        let end = (ended + SLICE).min(args.requests);
        while ended < end {
            let now_ps = disk.next_ps().ok_or_else(|| Failure::bug("the disk lost its requests"))?;
            while let Some(request) = disk.pop_ended(now_ps) {
                (ended, last_ps) = (ended + 1, request.ended_ps);
                disk.submit(now_ps, next(request.id));
            }
        }
        if interrupt::requested() {
            return Err(Failure::interrupted("the measurement was not complete"));
        }
    }
    let seconds = (thread_cpu() - start).as_secs_f64().max(1e-9);
    Ok(Rule {
        scheduler,
        requests_per_cpu_s: f64::from(ended) / seconds,
        requests_per_s: f64::from(ended) / (last_ps as f64 / 1e12),
    })
}

fn text(storage: &Storage) -> String {
    let mut text = format!(
        "Random reads of 4 KiB from a Cheetah 9LP, {} at any time, {} for each rule\n",
        storage.depth,
        format::grouped(storage.requests.into()),
    );
    for rule in &storage.rules {
        let name = match rule.scheduler {
            Scheduler::AgedSptf { .. } => "AGED SPTF".to_owned(),
            other => format!("{other:?}").to_uppercase(),
        };
        let _ = writeln!(
            text,
            "{name:<10} {:>12} requests per CPU s   {:>6.1} requests/s of the disk",
            format::grouped(rule.requests_per_cpu_s as u64),
            rule.requests_per_s,
        );
    }
    text
}
