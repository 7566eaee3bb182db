//! `sanloom bench storage`: operations per second of processor time of the storage models.

use super::bound::{self, Bound};
use clap::ValueEnum;
use sanloom_bare::storage::{Disks, FlashPages, Lookups, SmallWrites};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::machine::thread_cpu;
use sanloom_console::outputs::Outputs;
use sanloom_console::quantity;
use sanloom_console::report::format;
use sanloom_storage::disk::Scheduler;
use serde::Serialize;
use std::fmt::Write as _;

/// Options of `sanloom bench storage`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Requests in the disk at any time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = quantity::count::<u32>(1..=65_536))]
    depth: u32,
    /// Operations of each measurement
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = quantity::count::<u32>(1..=u32::MAX.into()))]
    requests: u32,
    /// Measure this model alone; of the disk, its queue with SPTF alone
    #[arg(long, value_name = "MODEL")]
    model: Option<Model>,
    #[command(flatten)]
    outputs: Outputs,
    /// End with exit code 1 if a bound is missed
    #[arg(long)]
    judge: bool,
}

/// A storage model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Random reads of 4 KiB from a disk.
    Disk,
    /// Lookups in an LRU directory of 65,536 lines, of which 90 % hit.
    Cache,
    /// Plans and stripe states of random writes of 4 KiB to RAID 5 of five members.
    Raid,
    /// Pages that a flash translation layer programs for random writes.
    Flash,
}

/// Results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Storage {
    /// Requests in the disk at any time.
    pub depth: u32,
    /// Operations of each measurement. An operation of the disk is a random read of 4 KiB.
    pub requests: u32,
    /// One element for each rule of the queue of the disk.
    pub rules: Vec<Rule>,
    /// One element for each of the other models.
    pub models: Vec<Speed>,
}

/// Speed of the disk with a rule of its queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rule {
    /// Rule of the queue.
    pub scheduler: Scheduler,
    /// Requests per second of processor time.
    pub requests_per_cpu_s: f64,
    /// Requests per second of the modelled disk.
    pub requests_per_s: f64,
}

/// Speed of a model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Speed {
    /// Model.
    pub model: Model,
    /// Operations per second of processor time.
    pub operations_per_cpu_s: f64,
    /// Share of hits of a cache, I/Os of members for each write of RAID, or write amplification of
    /// flash memory.
    pub ratio: f64,
}

/// Depth for which the bound of the disk is valid.
const JUDGED: u32 = 64;

/// Operations between two checks for Ctrl-C.
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
        let sptf = sptf
            .map(|rule| Bound::at_least("SPTF at depth 64", rule.requests_per_cpu_s, 2e6, "requests per CPU second"));
        let others = self.models.iter().filter_map(|speed| {
            let (wanted, unit) = match speed.model {
                Model::Disk => return None,
                Model::Cache => (30e6, "lookups per CPU second"),
                Model::Raid => (1e6, "writes per CPU second"),
                Model::Flash => (10e6, "pages per CPU second"),
            };
            Some(Bound::at_least(speed.model.title(), speed.operations_per_cpu_s, wanted, unit))
        });
        sptf.into_iter().chain(others).collect()
    }
}

impl Model {
    fn title(self) -> &'static str {
        match self {
            Model::Disk => "disk",
            Model::Cache => "cache, LRU",
            Model::Raid => "RAID 5, small writes",
            Model::Flash => "flash, page map",
        }
    }
}

/// Measures the models, and prints the results.
///
/// # Errors
/// If an output cannot be written, or Ctrl-C was pressed.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.outputs.prepare(&[])?;
    let rules = match args.model {
        None => &RULES[..],
        Some(Model::Disk) => &[Scheduler::Sptf],
        Some(_) => &[],
    };
    let rules = rules.iter().map(|scheduler| disk(args, *scheduler)).collect::<Result<_, _>>()?;
    let models = [Model::Cache, Model::Raid, Model::Flash];
    let chosen = models.into_iter().filter(|model| args.model.is_none_or(|only| only == *model));
    let models = chosen.map(|model| speed(args, model)).collect::<Result<_, _>>()?;
    let storage = Storage { depth: args.depth, requests: args.requests, rules, models };
    let bounds = storage.bounds();
    args.outputs.write_or_print("storage", &storage, || text(&storage) + &bound::text(&bounds))?;
    if args.judge { bound::judge(&bounds) } else { Ok(()) }
}

/// Calls `run` in slices, and returns the operations per second of processor time. `run` returns
/// the number of operations that it has done.
fn rate(args: &Args, mut run: impl FnMut(u32) -> u32) -> Result<f64, Failure> {
    let mut done: u64 = 0;
    let wanted = u64::from(args.requests);
    let start = thread_cpu();
    while done < wanted {
        let slice = (wanted - done).min(SLICE.into()) as u32;
        match run(slice) {
            0 => return Err(Failure::bug("the model lost its operations")),
            more => done += u64::from(more),
        }
        if interrupt::requested() {
            return Err(Failure::interrupted("the measurement was not complete"));
        }
    }
    Ok(done as f64 / (thread_cpu() - start).as_secs_f64().max(1e-9))
}

fn disk(args: &Args, scheduler: Scheduler) -> Result<Rule, Failure> {
    let mut disks = Disks::new(scheduler, args.depth).map_err(Failure::bug)?;
    let mut ended: u64 = 0;
    let requests_per_cpu_s = rate(args, |slice| {
        let more = disks.run(slice);
        ended += u64::from(more);
        more
    })?;
    Ok(Rule { scheduler, requests_per_cpu_s, requests_per_s: ended as f64 / (disks.last_ps as f64 / 1e12) })
}

fn speed(args: &Args, model: Model) -> Result<Speed, Failure> {
    let (operations_per_cpu_s, ratio) = match model {
        Model::Disk => return Err(Failure::bug("the disk has a speed for each rule")),
        Model::Cache => {
            let (mut lookups, mut hits, mut all) = (Lookups::new(), 0, 0);
            let speed = rate(args, |slice| {
                hits += u64::from(lookups.run(slice));
                all += u64::from(slice);
                slice
            })?;
            (speed, hits as f64 / all as f64)
        }
        Model::Raid => {
            let (mut writes, mut ios, mut all) = (SmallWrites::new().map_err(Failure::bug)?, 0, 0);
            let speed = rate(args, |slice| {
                ios += writes.run(slice);
                all += u64::from(slice);
                slice
            })?;
            (speed, ios as f64 / all as f64)
        }
        Model::Flash => {
            let mut pages = FlashPages::new().map_err(Failure::bug)?;
            (rate(args, |slice| pages.run(slice))?, pages.write_amplification())
        }
    };
    Ok(Speed { model, operations_per_cpu_s, ratio })
}

fn text(storage: &Storage) -> String {
    let mut text = String::new();
    if !storage.rules.is_empty() {
        let _ = writeln!(
            text,
            "Random reads of 4 KiB from a Cheetah 9LP, {} at any time, {} for each rule",
            storage.depth,
            format::grouped(storage.requests.into()),
        );
    }
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
    for speed in &storage.models {
        let rate = format::grouped(speed.operations_per_cpu_s as u64);
        let line = match speed.model {
            Model::Disk => continue,
            Model::Cache => format!(
                "LRU directory of {} lines, {:.1} % hits: {rate} lookups per CPU s",
                format::grouped(Lookups::LINES.into()),
                speed.ratio * 100.0
            ),
            Model::Raid => format!(
                "RAID 5 of 5 members, random writes of 4 KiB, {:.2} I/Os each: {rate} writes per CPU s",
                speed.ratio
            ),
            Model::Flash => format!(
                "Page map of {} pages, random writes, write amplification {:.2}: {rate} programmed pages per CPU s",
                format::grouped(FlashPages::PAGES.into()),
                speed.ratio
            ),
        };
        let _ = writeln!(text, "{line}");
    }
    text
}
