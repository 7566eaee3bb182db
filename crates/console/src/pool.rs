//! Parallel execution of several runs.

use crate::exit::Failure;
use crate::input::Threads;
use crate::interrupt;
use crate::run::{Stop, style};
use indicatif::{ProgressBar, ProgressDrawTarget};
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs `jobs` on several threads. Jobs begin in order; `done` receives each result as soon as it
/// is available, on one thread at a time. A job that returns `None`, and all jobs after Ctrl-C,
/// count as interrupted.
///
/// # Errors
/// The first error of `done`, which also ends the work, or a thread that cannot be started.
pub fn each<J: Sync, R: Send>(
    threads: Threads,
    what: &str,
    jobs: &[J],
    work: impl Fn(usize, &J) -> Option<R> + Sync,
    done: impl FnMut(usize, R) -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    each_until(threads, what, jobs, work, done, interrupt::requested)
}

/// Runs `jobs` on several threads even after the first Ctrl-C, and returns the results in the order
/// of the jobs.
///
/// # Errors
/// Threads cannot be started.
pub fn finish<J: Sync, R: Send>(
    threads: Threads,
    what: &str,
    jobs: &[J],
    work: impl Fn(usize, &J) -> Option<R> + Sync,
) -> Result<Vec<Option<R>>, Failure> {
    all_until(threads, what, jobs, work, &|| false)
}

fn each_until<J: Sync, R: Send>(
    threads: Threads,
    what: &str,
    jobs: &[J],
    work: impl Fn(usize, &J) -> Option<R> + Sync,
    done: impl FnMut(usize, R) -> Result<(), Failure> + Send,
    interrupted: impl Fn() -> bool + Sync,
) -> Result<(), Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.threads.map_or(0, |n| n.get().min(jobs.len().max(1))))
        .build()
        .map_err(|error| Failure::environment(format_args!("cannot start threads: {error}")))?;
    let bar = bar(jobs.len(), what);
    let failed = AtomicBool::new(false);
    let sink = Mutex::new((done, Ok(())));
    pool.install(|| {
        // A parallel bridge distributes jobs one by one. A parallel slice would be split into
        // halves, so late points would come first.
        jobs.iter().enumerate().par_bridge().for_each(|(index, job)| {
            if failed.load(Ordering::Relaxed) || interrupted() {
                return;
            }
            let Some(result) = work(index, job) else {
                return;
            };
            let mut sink = sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let (done, outcome) = &mut *sink;
            if outcome.is_ok() {
                *outcome = done(index, result);
                failed.store(outcome.is_err(), Ordering::Relaxed);
            }
            bar.inc(1);
        });
    });
    bar.finish_and_clear();
    sink.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).1
}

/// Runs `jobs` on several threads and returns the results in the order of the jobs; `None` for
/// interrupted jobs.
///
/// # Errors
/// When threads cannot be started.
pub fn all<J: Sync, R: Send>(
    threads: Threads,
    what: &str,
    jobs: &[J],
    work: impl Fn(usize, &J) -> Option<R> + Sync,
) -> Result<Vec<Option<R>>, Failure> {
    all_until(threads, what, jobs, work, &interrupt::requested)
}

/// As [`all`], but `stop` interrupts the jobs in place of Ctrl-C.
///
/// # Errors
/// When threads cannot be started.
pub fn all_until<J: Sync, R: Send>(
    threads: Threads,
    what: &str,
    jobs: &[J],
    work: impl Fn(usize, &J) -> Option<R> + Sync,
    stop: &Stop<'_>,
) -> Result<Vec<Option<R>>, Failure> {
    let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
    let done = |index: usize, result| {
        results[index] = Some(result);
        Ok(())
    };
    each_until(threads, what, jobs, work, done, stop)?;
    Ok(results)
}

/// A bar on a terminal that counts to a limit.
#[derive(Debug)]
pub struct Counter(ProgressBar);

impl Counter {
    /// Creates a bar.
    pub fn new(limit: usize, what: &str) -> Counter {
        Counter(bar(limit, what))
    }

    /// Shows a count and a text.
    pub fn set(&self, count: usize, text: &str) {
        self.0.set_position(count as u64);
        self.0.set_message(text.to_owned());
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

fn bar(count: usize, what: &str) -> ProgressBar {
    // On anything but a terminal it draws nothing.
    let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(style("{bar:30} {pos} of {len} {msg}, {elapsed} real, {eta} to go"));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
