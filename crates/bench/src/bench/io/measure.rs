//! Measurement of all paths in alternating slices.

use super::super::statistics::{Estimate, geometric_mean, median, order, percentile};
use super::path_spec::PathSpec;
use super::session::{Opening, Session};
use super::{Agreed, Args, Cell, Mean, Op, Report, Row};
use crate::load::{LoadError, Work};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_live::sys::processor;
use std::thread;
use std::time::Duration;

/// A path with its sessions.
pub(super) struct Path {
    agreed: Agreed,
    sessions: Vec<Session>,
    pids: Vec<u32>,
}

/// Results of one slice on one path.
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
    /// `number`: index of the path on the command line.
    pub(super) fn open(args: &Args, path_spec: &PathSpec, number: usize) -> Result<Path, Failure> {
        let (sessions, terms) = Session::open(args, path_spec, number).map_err(|why| match why {
            Opening::Load(error) => failure(&path_spec.name, &error),
            Opening::Other(failure) => failure,
        })?;
        let pids = args.pids.iter().filter(|(name, _)| *name == path_spec.name).map(|(_, pid)| *pid).collect();
        let agreed = Agreed { name: path_spec.name.clone(), target: path_spec.at.to_string(), terms };
        Ok(Path { agreed, sessions, pids })
    }

    /// Runs all sessions at the same time.
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
            let outcome = outcome.map_err(|_| Failure::bug("a load generator has panicked"))?;
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

    /// Returns the processor time of the named processes; `None` if there are none.
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
        LoadError::TooSmall { .. } => Failure::usage(format_args!("path {name}: {error}; choose smaller requests")),
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
        let of_op: Vec<&Cell> = cells.iter().filter(|cell| cell.op == *op).collect();
        for (number, path) in paths.iter().enumerate() {
            let estimate = over_cells(&of_op, |cell| cell.ratios(number, 0, Quantity::Throughput));
            let (ratio, ratio_interval) = flat(estimate);
            means.push(Mean { name: path.agreed.name.clone(), op: *op, ratio, ratio_interval });
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

/// Measures one combination on all paths, slice by slice.
fn cell(args: &Args, work: Work, paths: &mut [Path]) -> Result<Vec<Row>, Failure> {
    let mut rounds: Vec<Vec<Round>> = paths.iter().map(|_| Vec::new()).collect();
    for number in 0..args.rounds {
        for path in order(paths.len(), number as usize) {
            if interrupt::requested() {
                return Err(Failure::interrupted("the measurement was not complete"));
            }
            rounds[path].push(paths[path].round(work, args.time(), u64::from(number) << 16)?);
        }
    }
    let first: Vec<f64> = rounds.first().map_or(Vec::new(), |first| first.iter().map(Round::mb_per_s).collect());
    Ok(paths.iter().zip(rounds).map(|(path, rounds)| row(path, rounds, &first)).collect())
}

/// Summarises the slices of a path; `first`: throughput of the slices of the first path.
fn row(path: &Path, rounds: Vec<Round>, first: &[f64]) -> Row {
    let of = |value: &dyn Fn(&Round) -> f64| rounds.iter().map(value).collect::<Vec<f64>>();
    let rounds_mb_per_s = of(&Round::mb_per_s);
    let (ratio, ratio_interval) = flat(Estimate::of_ratios(&rounds_mb_per_s, first));
    let process: Option<Vec<f64>> = rounds.iter().map(|round| Some(round.per_gb(round.process_cpu?))).collect();
    let mut latencies: Vec<u64> = Vec::new();
    let mut rounds_p50_us = Vec::new();
    let (own, iops) = (of(&|round| round.per_gb(round.own_cpu)), of(&Round::iops));
    for mut round in rounds {
        round.latencies_ns.sort_unstable();
        rounds_p50_us.push(percentile(&round.latencies_ns, 0.5) as f64 / 1e3);
        latencies.append(&mut round.latencies_ns);
    }
    latencies.sort_unstable();
    Row {
        name: path.agreed.name.clone(),
        mb_per_s: median(rounds_mb_per_s.iter().copied()),
        rounds_mb_per_s,
        ratio,
        ratio_interval,
        iops: median(iops),
        latency_us: [0.5, 0.95, 0.99, 0.999].map(|share| percentile(&latencies, share) as f64 / 1e3),
        rounds_p50_us,
        own_cpu_ms_per_gb: median(own),
        process_cpu_ms_per_gb: process.clone().map(median),
        rounds_process_cpu_ms_per_gb: process,
    }
}

fn flat(estimate: Option<Estimate>) -> (f64, [f64; 2]) {
    estimate.map_or((0.0, [0.0; 2]), |estimate| (estimate.median, [estimate.low, estimate.high]))
}

impl Round {
    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64().max(1e-9)
    }

    fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds()
    }

    fn iops(&self) -> f64 {
        self.requests as f64 / self.seconds()
    }

    /// Converts a time into milliseconds per 10^9 bytes of this slice.
    fn per_gb(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e3 / (self.bytes.max(1) as f64 / 1e9)
    }
}

/// A quantity of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Megabytes per second.
    Throughput,
    /// Processor time of the named processes, in milliseconds per 10^9 bytes.
    ProcessorTime,
    /// Share of a processor that the named processes take, in percent.
    ProcessorShare,
    /// Median latency, in microseconds.
    Latency,
}

impl Cell {
    /// Returns a quantity of each slice of a path; nothing if the path was not measured.
    pub fn slices(&self, path: usize, quantity: Quantity) -> Vec<f64> {
        let Some(row) = self.paths.get(path) else { return Vec::new() };
        let cpu = || row.rounds_process_cpu_ms_per_gb.clone().unwrap_or_default();
        match quantity {
            Quantity::Throughput => row.rounds_mb_per_s.clone(),
            Quantity::ProcessorTime => cpu(),
            // Milliseconds per GB times MB per second: 10^-6 of a processor; in percent 10^-4.
            Quantity::ProcessorShare => cpu().iter().zip(&row.rounds_mb_per_s).map(|(a, b)| a * b / 1e4).collect(),
            Quantity::Latency => row.rounds_p50_us.clone(),
        }
    }

    /// Returns the ratios of path `a` to path `b`, slice by slice.
    pub fn ratios(&self, a: usize, b: usize, quantity: Quantity) -> Vec<f64> {
        self.slices(a, quantity).iter().zip(self.slices(b, quantity)).map(|(a, b)| a / b).collect()
    }

    /// Returns the differences of path `a` and path `b`, slice by slice.
    pub fn differences(&self, a: usize, b: usize, quantity: Quantity) -> Vec<f64> {
        self.slices(a, quantity).iter().zip(self.slices(b, quantity)).map(|(a, b)| a - b).collect()
    }
}

/// Estimates the geometric mean over cells of ratios: each round of slices gives one sample.
pub fn over_cells(cells: &[&Cell], ratios: impl Fn(&Cell) -> Vec<f64>) -> Option<Estimate> {
    combined(cells, ratios, geometric_mean)
}

/// Estimates the arithmetic mean over cells of differences: each round of slices gives one sample.
pub fn mean_over_cells(cells: &[&Cell], differences: impl Fn(&Cell) -> Vec<f64>) -> Option<Estimate> {
    combined(cells, differences, |values| values.iter().sum::<f64>() / values.len() as f64)
}

fn combined(cells: &[&Cell], samples: impl Fn(&Cell) -> Vec<f64>, mean: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
    let cells: Vec<Vec<f64>> = cells.iter().map(|cell| samples(cell)).collect();
    let rounds = cells.iter().map(Vec::len).min()?;
    Estimate::of((0..rounds).map(|round| mean(&cells.iter().map(|cell| cell[round]).collect::<Vec<f64>>())))
}

#[cfg(test)]
mod tests {
    use super::super::Op;
    use super::*;

    fn row(mb_per_s: &[f64], cpu: Option<&[f64]>) -> Row {
        Row {
            name: String::new(),
            mb_per_s: 0.0,
            rounds_mb_per_s: mb_per_s.to_vec(),
            ratio: 0.0,
            ratio_interval: [0.0; 2],
            iops: 0.0,
            latency_us: [0.0; 4],
            rounds_p50_us: vec![5.0; mb_per_s.len()],
            own_cpu_ms_per_gb: 0.0,
            process_cpu_ms_per_gb: None,
            rounds_process_cpu_ms_per_gb: cpu.map(<[f64]>::to_vec),
        }
    }

    fn cell(paths: Vec<Row>) -> Cell {
        Cell { op: Op::Read, size_bytes: 4096, depth: 1, paths }
    }

    #[test]
    fn slices_are_paired_with_the_slices_of_the_same_round() {
        let cell = cell(vec![row(&[100.0, 10.0], Some(&[50.0, 50.0])), row(&[150.0, 15.0], None)]);
        assert_eq!(cell.ratios(1, 0, Quantity::Throughput), [1.5, 1.5]);
        assert_eq!(cell.differences(1, 0, Quantity::Throughput), [50.0, 5.0]);
        assert_eq!(cell.slices(0, Quantity::ProcessorShare), [0.5, 0.05]);
        assert!(cell.ratios(1, 0, Quantity::ProcessorTime).is_empty(), "no process was named");
        assert!(cell.ratios(2, 0, Quantity::Throughput).is_empty(), "a path that was not measured");
    }

    #[test]
    fn each_round_gives_one_sample_over_all_cells() {
        let cells = [
            cell(vec![row(&[1.0; 6], None), row(&[2.0; 6], None)]),
            cell(vec![row(&[1.0; 6], None), row(&[8.0; 6], None)]),
        ];
        let cells: Vec<&Cell> = cells.iter().collect();
        let ratios = over_cells(&cells, |cell| cell.ratios(1, 0, Quantity::Throughput)).unwrap();
        assert!((ratios.median - 4.0).abs() < 1e-9 && ratios.samples == 6);
        let mean = mean_over_cells(&cells, |cell| cell.differences(1, 0, Quantity::Throughput)).unwrap();
        assert!((mean.median - 4.0).abs() < 1e-9);
        assert_eq!(over_cells(&cells, |cell| cell.ratios(4, 0, Quantity::Throughput)), None);
        assert_eq!(over_cells(&[], |cell| cell.ratios(1, 0, Quantity::Throughput)), None);
    }
}
