//! The same lab with several seeds.

use indicatif::{ProgressBar, ProgressDrawTarget};
use sanloom_api::results::Replications;
use sanloom_console::input::Threads;
use sanloom_console::interrupt;
use sanloom_console::run::style;
use sanloom_fc::san::Lab;
use sanloom_sim::replicate::replicate;
use sanloom_sim::run::Control;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Means and confidence intervals over `count` seeds; of fewer after Ctrl-C.
pub fn run(lab: &Arc<Lab>, count: u32, threads: Threads, quiet: bool) -> Option<Replications> {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
    let bar = ProgressBar::with_draw_target(Some(u64::from(count)), target);
    bar.set_style(style("{bar:30} {pos} of {len} replications, {elapsed} real, {eta} to go"));
    let workers = threads.threads.map_or_else(cores, NonZeroUsize::get);
    let results = replicate(lab, count, workers, &|done| {
        bar.set_position(u64::from(done));
        if interrupt::requested() { Control::Stop } else { Control::Continue }
    });
    bar.finish_and_clear();
    let replications = results.replications?;
    (replications.seeds.len() > 1).then_some(replications)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
