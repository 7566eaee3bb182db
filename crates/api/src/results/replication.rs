//! Results of several runs with different seeds: [`Replications`], [`Interval`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Means and confidence intervals over runs that differ only in their seed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Replications {
    /// One seed for each run, in order.
    pub seeds: Vec<u64>,
    /// Confidence level of the intervals: 0.95.
    pub confidence: f64,
    /// An interval for each number, by its path (see [`super::Metrics`]).
    pub metrics: BTreeMap<String, Interval>,
    /// The values of each number, one for each seed, in the order of `seeds`. Numbers that not all
    /// runs have are left out.
    pub values: BTreeMap<String, Vec<f64>>,
}

/// A mean with its confidence interval: `mean - half_width` to `mean + half_width`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Mean of the values.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; 0 for fewer than two values.
    pub half_width: f64,
    /// Smallest value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// Number of values.
    pub count: u64,
}

impl Interval {
    /// Computes the 95 % confidence interval of the mean of independent values, with Student's t
    /// distribution. Values that are not finite are left out.
    pub fn of(values: &[f64]) -> Interval {
        let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let Some(&first) = values.first() else {
            return Interval::default();
        };
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let half_width = if values.len() < 2 {
            0.0
        } else {
            let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
            student_t_975(values.len() - 1) * (variance / n).sqrt()
        };
        Interval {
            mean,
            half_width,
            min: values.iter().copied().fold(first, f64::min),
            max: values.iter().copied().fold(first, f64::max),
            count: values.len() as u64,
        }
    }
}

/// The 97.5th percentile of Student's t distribution, from the usual table. Between two rows of the
/// table, the larger value is used.
fn student_t_975(degrees_of_freedom: usize) -> f64 {
    const TO_30: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match degrees_of_freedom {
        0 => 0.0,
        n @ 1..=30 => TO_30[n - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        120..=999 => 1.980,
        _ => 1.962,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_five_values_uses_four_degrees_of_freedom() {
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(interval.mean, 3.0);
        assert!((interval.half_width - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!((interval.min, interval.max, interval.count), (1.0, 5.0, 5));
    }

    #[test]
    fn one_value_has_an_interval_of_width_zero_and_no_value_gives_zeros() {
        assert_eq!(Interval::of(&[7.0]).half_width, 0.0);
        assert_eq!(Interval::of(&[]), Interval::default());
        assert_eq!(Interval::of(&[f64::NAN]), Interval::default());
    }

    #[test]
    fn the_factor_never_grows_with_the_number_of_values() {
        for n in 1..2000 {
            assert!(student_t_975(n + 1) <= student_t_975(n), "{n}");
        }
    }
}
