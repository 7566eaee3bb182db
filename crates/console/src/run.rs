//! One simulation as commands use it: watched for Ctrl-C, shown as a progress bar, and timed.

use crate::exit::Failure;
use crate::interrupt;
use crate::machine::{Stopwatch, thread_cpu};
use crate::report::format;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use sanloom_api::results::{ExpectationResult, Metrics, Results};
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_sim::net::Observed;
use sanloom_sim::parallel::Threads;
use sanloom_sim::run::{Control, Finished, Observer, Options, Progress, simulate};
use sanloom_sim::world::World;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Links whose frames a [`Tap`] receives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Watch {
    /// Indices of links.
    pub links: Vec<u16>,
    /// Indices of Ethernet links.
    pub ethernet_links: Vec<u16>,
    /// Indices of InfiniBand links.
    pub infiniband_links: Vec<u16>,
}

/// Receiver of the records of watched links.
pub trait Tap {
    /// Receives a record. `Stop` ends the run, because the tap accepts no more.
    fn take(&mut self, world: &World, observed: &[Observed]) -> Control;
}

/// Inspection of the world of a run.
pub type Inspect<'a> = dyn FnMut(&mut World) -> Control + 'a;

/// Wait for the time up to which a run may go on, see [`Observer::limit_ps`].
pub type Limit<'a> = dyn FnMut(&mut World) -> Option<u64> + 'a;

/// Condition that ends a run early.
pub type Stop<'a> = dyn Fn() -> bool + Sync + 'a;

/// Options of [`run`].
#[derive(Default)]
pub struct View<'a> {
    /// Shows progress on standard error if it is a terminal.
    pub bar: bool,
    /// Indices of the links to watch, and the receiver of their records.
    pub tap: Option<(Watch, &'a mut dyn Tap)>,
    /// Longest simulated time between two inspections in ps, and the inspection, which can end the
    /// run as planned.
    pub inspect: Option<(u64, &'a mut Inspect<'a>)>,
    /// Receiver of the progress.
    pub progress: Option<&'a mut dyn FnMut(&Progress)>,
    /// Continues after the first Ctrl-C.
    pub ignores_interrupt: bool,
    /// Ends the run early, in place of Ctrl-C.
    pub stop: Option<&'a Stop<'a>>,
    /// Paces the run, such as [`crate::paced::Pacer::limit_ps`].
    pub limit: Option<&'a mut Limit<'a>>,
    /// Number of threads of the run; 0 and 1 mean the thread of the caller.
    pub threads: usize,
}

/// Returns the options of a run with this number of threads, whose work is measured.
pub fn measured_threads(count: usize) -> Threads {
    let clock = || u64::try_from(thread_cpu().as_nanos()).unwrap_or(u64::MAX);
    Threads { count, clock: (count > 1).then_some(clock), ..Threads::default() }
}

/// Simulates a lab; `engine` is filled in.
pub fn run(lab: &Arc<Lab>, view: View<'_>) -> Finished {
    let (watch, tap) = match view.tap {
        Some((watch, tap)) => (watch, Some(tap)),
        None => (Watch::default(), None),
    };
    let (step_ps, inspect) = view.inspect.map_or((None, None), |(step_ps, inspect)| (Some(step_ps), Some(inspect)));
    let mut watcher = Watcher {
        bar: (view.bar && std::io::stderr().is_terminal()).then(Bar::new),
        stopwatch: None,
        tap,
        full: false,
        inspect,
        limit: view.limit,
        progress: view.progress,
        ignores_interrupt: view.ignores_interrupt,
        stop: view.stop,
    };
    let threads = measured_threads(view.threads);
    let Watch { links, ethernet_links, infiniband_links } = watch;
    let options =
        Options { watch: links, watch_ethernet: ethernet_links, watch_infiniband: infiniband_links, step_ps, threads };
    let mut finished = simulate(lab, &options, &mut watcher);
    if let Some(stopwatch) = &watcher.stopwatch {
        let others_ns: u64 = finished.threads.worked_ns.iter().skip(1).sum();
        stopwatch.fill(&mut finished.results.engine, Duration::from_nanos(others_ns));
    }
    if let Some(bar) = &watcher.bar {
        bar.bar.finish_and_clear();
    }
    finished
}

/// The world of a lab at a time after the workloads began; without a time when every port has
/// logged in.
///
/// # Errors
/// When the user interrupts the run.
pub fn world_at(lab: &Arc<Lab>, at: Option<Picos>) -> Result<World, Failure> {
    let bar = std::io::stderr().is_terminal().then(Bar::new);
    let mut watcher = Watcher { bar, ..Watcher::default() };
    let world = sanloom_sim::run::world_at(lab, at.map(|at| at.0), &mut watcher);
    if let Some(bar) = &watcher.bar {
        bar.bar.finish_and_clear();
    }
    if interrupt::requested() {
        return Err(Failure::interrupted("the time to be shown was not reached"));
    }
    Ok(world)
}

/// Holds the results against the expectations of the lab. A run that was cut short is not judged:
/// its bounds were meant for a whole one.
pub fn judge(lab: &Lab, results: &mut Results) {
    results.expectations.clear();
    if results.lab.interrupted || lab.expectations.is_empty() {
        return;
    }
    let metrics = Metrics::new(results);
    results.expectations =
        lab.expectations.iter().map(|e| ExpectationResult::check(&metrics, &e.metric, e.min, e.max)).collect();
}

#[derive(Default)]
struct Watcher<'a> {
    bar: Option<Bar>,
    stopwatch: Option<Stopwatch>,
    tap: Option<&'a mut dyn Tap>,
    /// The tap has ended the run.
    full: bool,
    inspect: Option<&'a mut Inspect<'a>>,
    limit: Option<&'a mut Limit<'a>>,
    progress: Option<&'a mut dyn FnMut(&Progress)>,
    ignores_interrupt: bool,
    stop: Option<&'a Stop<'a>>,
}

impl Observer for Watcher<'_> {
    fn progress(&mut self, progress: &Progress) -> Control {
        if !progress.logging_in {
            self.stopwatch.get_or_insert_with(Stopwatch::start).lap();
        }
        if let Some(bar) = &mut self.bar {
            bar.show(progress);
        }
        if let Some(receive) = &mut self.progress {
            receive(progress);
        }
        let interrupted = match self.stop {
            Some(stop) => stop(),
            None => !self.ignores_interrupt && interrupt::requested(),
        };
        if self.full || interrupted { Control::Stop } else { Control::Continue }
    }

    fn limit_ps(&mut self, world: &mut World) -> Option<u64> {
        self.limit.as_mut().map_or(Some(u64::MAX), |limit| limit(world))
    }

    fn inspect(&mut self, world: &mut World) -> Control {
        self.inspect.as_mut().map_or(Control::Continue, |inspect| inspect(world))
    }

    fn observed(&mut self, world: &World, observed: &[Observed]) {
        if let Some(tap) = &mut self.tap
            && !self.full
        {
            self.full = tap.take(world, observed) == Control::Stop;
        }
    }
}

struct Bar {
    bar: ProgressBar,
    began: Option<(Instant, u64)>,
}

impl Bar {
    fn new() -> Bar {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(style("{bar:16} {wide_msg}"));
        bar.set_message("logging in");
        bar.enable_steady_tick(Duration::from_millis(500));
        Bar { bar, began: None }
    }

    fn show(&mut self, progress: &Progress) {
        if progress.logging_in {
            return;
        }
        let (began, hops) = *self.began.get_or_insert_with(|| (Instant::now(), progress.frame_hops));
        let real_s = began.elapsed().as_secs_f64();
        let rate = (progress.frame_hops - hops) as f64 / real_s.max(1e-3);
        let duration_ps = progress.duration_ps.max(1);
        self.bar.set_position((u128::from(progress.run_ps) * 1000 / u128::from(duration_ps)) as u64);
        self.bar.set_message(message(progress, real_s, rate));
    }
}

/// Text after the bar: simulated and real time, and `rate` in frame-hops per second of real time.
fn message(progress: &Progress, real_s: f64, rate: f64) -> String {
    format!(
        "{} of {} simulated, {real_s:.1} s real, {:.1} M frame-hops/s{}",
        format::seconds(progress.run_ps as f64 / 1e12),
        format::seconds(progress.duration_ps.max(1) as f64 / 1e12),
        rate / 1e6,
        to_go(progress, real_s)
    )
}

/// Estimated remaining time at the current rate; empty before an estimate is possible.
fn to_go(progress: &Progress, real_s: f64) -> String {
    if progress.run_ps == 0 {
        return String::new();
    }
    let rest = progress.duration_ps.saturating_sub(progress.run_ps) as f64;
    let left_s = rest / progress.run_ps as f64 * real_s;
    format!(", {:#} to go", HumanDuration(Duration::try_from_secs_f64(left_s).unwrap_or_default()))
}

/// The style of a bar; a template that does not parse gives the plain one.
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("#>-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_says_simulated_and_real_time_and_what_is_left() {
        let at = |run_ps| Progress { run_ps, duration_ps: 2_000_000_000_000, frame_hops: 0, logging_in: false };
        let text = message(&at(500_000_000_000), 10.0, 7_250_000.0);
        assert_eq!(text, "500 ms of 2 s simulated, 10.0 s real, 7.2 M frame-hops/s, 30s to go");
        assert_eq!(message(&at(0), 0.0, 0.0), "0 µs of 2 s simulated, 0.0 s real, 0.0 M frame-hops/s");
    }
}
