//! Measuring: paths in alternating order, and what each round gave.

use super::super::statistics::{geometric_mean, median, percentile};
use super::place::Place;
use super::session::{Opening, Session};
use super::{Agreed, Args, Cell, Mean, Op, Report, Row};
use crate::exit::Failure;
use crate::interrupt;
use sanloom_live::load::{LoadError, Work};
use sanloom_live::sys::processor;
use std::thread;
use std::time::Duration;

/// A path with its sessions.
pub(super) struct Path {
    agreed: Agreed,
    sessions: Vec<Session>,
    pids: Vec<u32>,
}

/// What one round on one path gave.
#[derive(Default)]
struct Round {
    requests: u64,
    bytes: u64,
    elapsed: Duration,
    latencies_ns: Vec<u64>,
    own_cpu: Duration,
    process_cpu: Option<Duration>,
}

impl Path {
    /// `number`: which path of the command line it is.
    pub(super) fn open(args: &Args, place: &Place, number: usize) -> Result<Path, Failure> {
        let (sessions, terms) = Session::open(args, &place.name, &place.at, number).map_err(|why| match why {
            Opening::Load(error) => failure(&place.name, &error),
            Opening::Other(failure) => failure,
        })?;
        let pids = args.pids.iter().filter(|(name, _)| *name == place.name).map(|(_, pid)| *pid).collect();
        let agreed = Agreed { name: place.name.clone(), target: place.at.to_string(), terms };
        Ok(Path { agreed, sessions, pids })
    }

    /// All sessions at once.
    fn round(&mut self, work: Work, time: Duration, seed: u64) -> Result<Round, Failure> {
        let before = self.process_cpu()?;
        let each = thread::scope(|scope| {
            let start = |(session, number): (_, u64)| {
                scope.spawn(move || {
                    let session: &mut Session = session;
                    session.run(work, time, seed + number)
                })
            };
            let threads: Vec<_> = self.sessions.iter_mut().zip(0..).map(start).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let mut round = Round::default();
        for outcome in each {
            let outcome = outcome.map_err(|_| Failure::bug("a thread that made load has panicked"))?;
            let (served, cpu) = outcome.map_err(|error| failure(&self.agreed.name, &error))?;
            round.requests += served.latencies_ns.len() as u64;
            round.elapsed = round.elapsed.max(served.elapsed);
            round.latencies_ns.extend(served.latencies_ns);
            round.own_cpu += cpu;
        }
        round.bytes = round.requests * u64::from(work.bytes);
        round.process_cpu = before.zip(self.process_cpu()?).map(|(before, after)| after.saturating_sub(before));
        Ok(round)
    }

    /// Processor time of the processes that were named; none: none were.
    fn process_cpu(&self) -> Result<Option<Duration>, Failure> {
        if self.pids.is_empty() {
            return Ok(None);
        }
        let mut all = Duration::ZERO;
        for pid in &self.pids {
            all += processor::time_of(*pid).map_err(|error| {
                Failure::environment(format_args!("process {pid} of path {}: {error}", self.agreed.name))
            })?;
        }
        Ok(Some(all))
    }
}

fn failure(name: &str, error: &LoadError) -> Failure {
    match error {
        LoadError::TooSmall { .. } => Failure::usage(format_args!("path {name}: {error}; ask for smaller ones")),
        _ => Failure::protocol(format_args!("path {name}: {error}")),
    }
}

pub(super) fn measure(args: &Args, paths: &mut [Path]) -> Result<Report, Failure> {
    let mut cells = Vec::new();
    for op in &args.op {
        for size in &args.size {
            for depth in &args.depth {
                let work = Work { bytes: *size, depth: *depth, write: *op == Op::Write, random: args.random };
                let paths = cell(args, work, paths)?;
                cells.push(Cell { op: *op, size_bytes: *size, depth: *depth, paths });
            }
        }
    }
    let mut means = Vec::new();
    for op in &args.op {
        for (number, path) in paths.iter().enumerate() {
            let of_op = cells.iter().filter(|cell| cell.op == *op);
            let ratios: Vec<f64> = of_op.map(|cell| cell.paths[number].ratio).collect();
            means.push(Mean { name: path.agreed.name.clone(), op: *op, ratio: geometric_mean(&ratios) });
        }
    }
    Ok(Report {
        sessions: args.sessions,
        random: args.random,
        seconds: args.seconds,
        rounds: args.rounds,
        paths: paths.iter().map(|path| path.agreed.clone()).collect(),
        cells,
        means,
    })
}

/// One combination on all paths: forwards and backwards in turn, so that what drifts touches all alike.
fn cell(args: &Args, work: Work, paths: &mut [Path]) -> Result<Vec<Row>, Failure> {
    let mut rounds: Vec<Vec<Round>> = paths.iter().map(|_| Vec::new()).collect();
    for number in 0..args.rounds {
        let mut order: Vec<usize> = (0..paths.len()).collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for path in order {
            if interrupt::requested() {
                return Err(Failure::interrupted("interrupted"));
            }
            rounds[path].push(paths[path].round(work, args.time(), u64::from(number) << 16)?);
        }
    }
    let speed = |round: &Round| round.bytes as f64 / 1e6 / round.elapsed.as_secs_f64().max(1e-9);
    let first: Vec<f64> = rounds[0].iter().map(speed).collect();
    let row = |(path, rounds): (&Path, Vec<Round>)| {
        let all: Vec<f64> = rounds.iter().map(speed).collect();
        let ratios: Vec<f64> = all.iter().zip(&first).map(|(a, b)| a / b.max(1e-9)).collect();
        let per_gb = |time: Duration, bytes: u64| time.as_secs_f64() * 1e3 / (bytes.max(1) as f64 / 1e9);
        let own: Vec<f64> = rounds.iter().map(|round| per_gb(round.own_cpu, round.bytes)).collect();
        let process: Option<Vec<f64>> =
            rounds.iter().map(|round| round.process_cpu.map(|cpu| per_gb(cpu, round.bytes))).collect();
        let iops: Vec<f64> =
            rounds.iter().map(|round| round.requests as f64 / round.elapsed.as_secs_f64().max(1e-9)).collect();
        let mut latencies: Vec<u64> = rounds.into_iter().flat_map(|round| round.latencies_ns).collect();
        latencies.sort_unstable();
        Row {
            name: path.agreed.name.clone(),
            mb_per_s: median(all.iter().copied()),
            rounds_mb_per_s: all,
            ratio: median(ratios),
            iops: median(iops),
            latency_us: [0.5, 0.95, 0.99, 0.999].map(|share| percentile(&latencies, share) as f64 / 1e3),
            own_cpu_ms_per_gb: median(own),
            process_cpu_ms_per_gb: process.map(median),
        }
    };
    Ok(paths.iter().zip(rounds).map(row).collect())
}
