//! Samples of distributions of times.

use crate::rng::{StreamRng, below, exponential, standard_normal, uniform};
use sanloom_fc::config::TimeDistribution;

/// Returns a sample in ps, rounded once. A constant uses no random number.
pub fn sample_ps(times: &TimeDistribution, rng: &mut StreamRng) -> u64 {
    let ps = match *times {
        TimeDistribution::Constant(time) => return time.0,
        TimeDistribution::Uniform { min, max } => {
            return min.0 + below(rng, max.0.saturating_sub(min.0).saturating_add(1));
        }
        TimeDistribution::Exponential { mean } => mean.0 as f64 * exponential(rng),
        TimeDistribution::Gamma { mean, deviation } if deviation.0 > 0 && mean.0 > 0 => {
            let (mean, deviation) = (mean.0 as f64, deviation.0 as f64);
            deviation * deviation / mean * gamma((mean / deviation) * (mean / deviation), rng)
        }
        TimeDistribution::LogNormal { mean, deviation } if deviation.0 > 0 && mean.0 > 0 => {
            let (mean, deviation) = (mean.0 as f64, deviation.0 as f64);
            let variance = libm::log1p((deviation / mean) * (deviation / mean));
            mean * libm::exp(libm::sqrt(variance) * standard_normal(rng) - variance / 2.0)
        }
        TimeDistribution::Gamma { mean, .. } | TimeDistribution::LogNormal { mean, .. } => return mean.0,
        TimeDistribution::Pareto { mean, shape } => {
            let least = mean.0 as f64 * (shape - 1.0) / shape;
            least * libm::pow(1.0 - uniform(rng), -1.0 / shape)
        }
    };
    libm::round(ps) as u64
}

/// Returns a sample of the gamma distribution with this shape and the scale 1 (G. Marsaglia, W. W.
/// Tsang, "A simple method for generating gamma variables", 2000). At least 95 % of the attempts
/// are accepted.
fn gamma(shape: f64, rng: &mut StreamRng) -> f64 {
    // Section 6 of the paper: shapes below 1.
    let (boost, shape) = match shape < 1.0 {
        true => (libm::pow(1.0 - uniform(rng), 1.0 / shape), shape + 1.0),
        false => (1.0, shape),
    };
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = standard_normal(rng);
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(1.0 - uniform(rng)) < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
            return boost * d * v;
        }
    }
}
