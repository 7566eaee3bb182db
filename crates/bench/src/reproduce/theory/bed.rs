//! Runs of generated labs, and the size of the samples.

use sanloom_api::results::{EventKind, Results};
use sanloom_console::exit::Failure;
use sanloom_console::run::{self, View};
use sanloom_fc::san::Lab;
use sanloom_sim::stats::ConfidenceInterval;
use std::sync::Arc;

/// Size of the samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sample {
    /// A few seconds in total.
    Small,
    /// Minutes in total.
    Full,
}

impl Sample {
    /// Returns the number that belongs to the size.
    pub fn of(self, small: f64, full: f64) -> f64 {
        match self {
            Sample::Small => small,
            Sample::Full => full,
        }
    }
}

/// Parses a generated lab.
///
/// # Errors
/// If the lab is invalid.
pub fn parse(name: &str, text: &str) -> Result<Arc<Lab>, Failure> {
    Ok(Arc::new(sanloom_lab::load(&format!("{name}.toml"), text, &[])?.lab))
}

/// Simulates a generated lab.
///
/// # Errors
/// If the lab is invalid, or the run was interrupted.
pub fn simulate(name: &str, text: &str) -> Result<Results, Failure> {
    let results = run::run(&parse(name, text)?, View::default()).results;
    match results.lab.interrupted {
        true => Err(interrupted()),
        false => Ok(results),
    }
}

/// The error of an interrupted run.
pub fn interrupted() -> Failure {
    Failure::interrupted("not all runs are finished; nothing was written")
}

/// Simulates a generated lab with `seeds` seeds, and returns the interval of a value.
///
/// # Errors
/// If the lab is invalid, or a run was interrupted.
pub fn repeated(
    name: &str,
    seeds: u32,
    text: impl Fn(u32) -> String,
    value: impl Fn(&Results) -> f64,
) -> Result<ConfidenceInterval, Failure> {
    let values = (1..=seeds).map(|seed| Ok(value(&simulate(name, &text(seed))?)));
    let values = values.collect::<Result<Vec<f64>, Failure>>()?;
    Ok(ConfidenceInterval::of_samples(&values).unwrap_or(ConfidenceInterval {
        mean: values.first().copied().unwrap_or(f64::NAN),
        half_width: f64::INFINITY,
        samples: values.len(),
    }))
}

/// Returns the times of the events of a kind whose subject contains `subject`, in seconds.
pub fn times<'r>(results: &'r Results, kind: EventKind, subject: &'r str) -> impl Iterator<Item = f64> + 'r {
    let concerns = move |of: &Option<String>| of.as_deref().unwrap_or_default().contains(subject);
    results.events.iter().filter(move |event| event.kind == kind && concerns(&event.subject)).map(|event| event.at_s)
}
