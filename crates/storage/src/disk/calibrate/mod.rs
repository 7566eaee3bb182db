//! Fit of the free parameters of a disk to a measured trace.
//!
//! Free are the parameters that a data sheet does not state, or states roughly: overheads, bus,
//! head switch, write settle, three numbers of the seek curve, and the choices of the cache. The
//! layout and the speed of rotation are never changed.
//!
//! The requests of the trace are divided into groups that the trace alone defines: operation,
//! operation before, sequential or not, size, distance. The fit minimises the mean square of the
//! demerit figures of all groups. Its root is an upper bound of the demerit figure of the whole
//! trace. The errors of single requests count with a smaller weight, and errors far above 0.5 ms
//! hardly count, because one missed revolution says little about the numbers. The method is that of
//! Levenberg and Marquardt with numerical derivatives, followed by a search along coordinates and a
//! few other directions. Both are deterministic, and the number of replays is bounded.
//!
//! Only the first part of the trace is used for the fit; [`compare`] judges the rest.

mod choice;
mod objective;
mod parameter;
mod search;

use super::check::ConfigError;
use super::config::DiskConfig;
use super::demerit::Distribution;
use super::replay::Replay;
use crate::trace::validate::Record;
use objective::Objective;
use parameter::Space;
use search::{CHOICE_GAINS, Search};

/// Smallest number of requests of a trace for a fit.
pub const MIN_REQUESTS: usize = 200;

/// Default of the largest number of replays.
pub const REPLAYS: usize = 2_000;

/// Progress of a fit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Replays so far.
    pub replays: usize,
    /// Largest number of replays.
    pub limit: usize,
    /// Distance of the best parameters so far, in milliseconds.
    pub distance_ms: f64,
}

/// A number that was fitted.
#[derive(Clone, PartialEq, Debug)]
pub struct Fitted {
    /// Name of the parameter, as in the parameter file.
    pub name: &'static str,
    /// Value before the fit.
    pub before: f64,
    /// Value after the fit.
    pub after: f64,
    /// Change of the value that raises the distance by 5 percent although all other numbers are
    /// fitted again (linearised). `None` if the trace does not determine the value.
    pub plus_minus: Option<f64>,
}

/// A choice of the cache that was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// Name of the parameter, as in the parameter file.
    pub name: &'static str,
    /// Value before the fit.
    pub before: String,
    /// Value after the fit.
    pub after: String,
}

/// Result of a fit.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// Parameters after the fit.
    pub config: DiskConfig,
    /// Numbers, in the order of the parameter file.
    pub fitted: Vec<Fitted>,
    /// Choices that differ from those before.
    pub changed: Vec<Changed>,
    /// Number of replays.
    pub replays: usize,
    /// True if the limit of replays or the caller ended the fit.
    pub is_cut: bool,
    /// Distance of the part for the fit before and after, in milliseconds: root mean square of the
    /// demerit figures of its groups.
    pub distance_ms: [f64; 2],
}

/// Fits a disk to `records`, which are the part of a trace for the fit. `progress` is called after
/// each replay and returns false to end the fit.
///
/// # Errors
/// If the parameters are impossible.
pub fn fit(
    config: &DiskConfig,
    records: &[Record],
    limit: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Calibration, ConfigError> {
    super::Disk::new(config)?;
    let objective = Objective::new(records);
    let mut search = Search::new(&objective, limit, progress);
    let mut space = Space::new(config);
    let mut values = space.start();
    let before_ms = search.distance_ms(&space, &values);
    let mut chosen = config.clone();
    // First with the numbers of the file, then with fitted ones, because each hides the other.
    while let Some(next) = search.choose(&chosen, CHOICE_GAINS[0]) {
        chosen = next;
    }
    space = Space::new(&chosen);
    values = space.start();
    search.descend(&space, &mut values, 4, 1.0);
    for _ in 0..3 {
        let Some(next) = search.choose(&space.config(&values), CHOICE_GAINS[1]) else { break };
        space = Space::new(&next);
        values = space.start();
        search.descend(&space, &mut values, 3, 1.0);
    }
    // Large steps cross small steps of the distance, and small ones find its end.
    for step in [1.0, 0.3, 0.1] {
        search.descend(&space, &mut values, 10, step);
        search.walk(&space, &mut values);
    }
    let plus_minus = search.plus_minus(&space, &values);
    search.restore(&space, &mut values, &space.values_of(config), &plus_minus);
    let fitted_config = space.rounded(&values);
    let after_ms = objective.distance_ms(&fitted_config).unwrap_or(f64::INFINITY);
    let (first, last) = (Space::new(config), Space::new(&fitted_config));
    let fitted = last.shown(&first, &plus_minus);
    let (replays, is_cut) = (search.replays(), search.is_cut());
    Ok(Calibration {
        changed: choice::changed(config, &fitted_config),
        config: fitted_config,
        fitted,
        replays,
        is_cut,
        distance_ms: [before_ms, after_ms],
    })
}

/// Replays all records, and returns the measured and the modelled distribution of those from
/// `from` on.
///
/// # Errors
/// If the parameters are impossible.
pub fn compare(
    config: &DiskConfig,
    records: &[Record],
    from: usize,
) -> Result<(Distribution, Distribution), ConfigError> {
    let times = times_ps(config, records)?;
    let judged = records.get(from..).unwrap_or(&[]);
    let measured = Distribution::new(judged.iter().map(|record| record.response_ps));
    Ok((measured, Distribution::new(times.into_iter().skip(from))))
}

/// Modelled response times of all records.
fn times_ps(config: &DiskConfig, records: &[Record]) -> Result<Vec<u64>, ConfigError> {
    let mut replay = Replay::new(config)?;
    Ok(records.iter().map(|record| replay.step(record).map_or(0, |ended| ended.response_ps())).collect())
}
