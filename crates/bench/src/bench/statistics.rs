//! Statistics of repeated measurements: percentiles, medians, geometric means, and [`Estimate`],
//! the median of paired samples with its confidence interval.
//!
//! Comparisons alternate in short slices: A, B, B, A, and so on. Each slice of A is paired with the
//! neighbouring slice of B, and the ratio of each pair is one sample. A machine that is slow or
//! busy for a while slows both slices of a pair, so it widens the interval and leaves the median
//! alone.

use serde::Serialize;
use std::fmt;

/// Confidence that an interval must have before it decides anything.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the smallest of the ascending values that at least this share of them does not exceed;
/// the default value if there are none.
pub fn percentile<T: Copy + Default>(ascending: &[T], share: f64) -> T {
    let rank = (share * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Returns the middle value, or the mean of the two middle values; 0 if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let ascending = sorted(values);
    let middle = ascending.len() / 2;
    match ascending.len() {
        0 => 0.0,
        len if len % 2 == 0 => f64::midpoint(ascending[middle - 1], ascending[middle]),
        _ => ascending[middle],
    }
}

/// Returns the values in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Returns the geometric mean; 1 if there are no ratios.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    let logs: f64 = ratios.iter().map(|ratio| ratio.max(1e-9).ln()).sum();
    (logs / ratios.len().max(1) as f64).exp()
}

/// Returns the mean and the standard deviation of a sample (divisor n - 1); the deviation of fewer
/// than two values is 0. `None` if there are no values.
pub fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (values.len() - 1).max(1) as f64).sqrt()))
}

/// Median of paired samples, with the confidence interval of the median.
///
/// The interval consists of two order statistics of the samples. It makes no assumption about their
/// distribution: the number of samples below the true median is binomial with probability 1/2.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// Median of the samples.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability that such an interval contains the true median. Fewer than six samples cannot
    /// reach [`CONFIDENCE`]; their interval is the whole range.
    pub confidence: f64,
    /// Number of samples.
    pub samples: usize,
}

/// Bound of a measured quantity.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A smaller value is a miss.
    AtLeast(f64),
    /// A larger value is a miss.
    AtMost(f64),
}

/// Result of the comparison of an [`Estimate`] with a [`Limit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The whole interval satisfies the limit.
    Ok,
    /// The whole interval violates the limit.
    Missed,
    /// The interval crosses the limit, or there are too few samples for an interval.
    Undecided,
}

impl Estimate {
    /// Estimates the median of samples; values that are not finite are left out. `None` without
    /// any.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let ascending = sorted(samples.into_iter().filter(|sample| sample.is_finite()));
        let samples = ascending.len();
        let rank = interval_rank(samples);
        let (low, high) = (*ascending.get(rank - 1)?, *ascending.get(samples.checked_sub(rank)?)?);
        let confidence = coverage(samples, rank);
        Some(Estimate { median: median(ascending), low, high, confidence, samples })
    }

    /// Estimates the ratio of paired measurements: `a[i]` and `b[i]` are neighbouring slices.
    pub fn of_ratios(a: &[f64], b: &[f64]) -> Option<Estimate> {
        Estimate::of(a.iter().zip(b).map(|(a, b)| a / b))
    }

    /// Applies a function that increases or decreases strictly, such as a change of unit.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Estimate {
        let (a, b) = (function(self.low), function(self.high));
        Estimate { median: function(self.median), low: a.min(b), high: a.max(b), ..self }
    }

    /// Compares the interval with a limit.
    pub fn decide(&self, limit: Limit) -> Decision {
        if self.confidence < CONFIDENCE {
            return Decision::Undecided;
        }
        let [low, high] = [self.low, self.high].map(|end| limit.holds(end));
        match (low, high) {
            (true, true) => Decision::Ok,
            (false, false) => Decision::Missed,
            _ => Decision::Undecided,
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median.abs() < 20.0 { 2 } else { 1 };
        write!(f, "{:.digits$} [{:.digits$}, {:.digits$}]", self.median, self.low, self.high)
    }
}

impl Limit {
    /// True if the value satisfies the limit; a value that is no number does not.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Limit::AtLeast(least) => value >= least,
            Limit::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::AtLeast(least) => write!(f, "at least {least}"),
            Limit::AtMost(most) => write!(f, "at most {most}"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Decision::Ok => "ok",
            Decision::Missed => "missed",
            Decision::Undecided => "undecided",
        })
    }
}

/// Returns the probability that the interval from the `rank`-th smallest to the `rank`-th largest
/// of so many samples contains the true median: 1 - 2 P(B < rank) with B binomial (samples, 1/2).
fn coverage(samples: usize, rank: usize) -> f64 {
    let n = samples as f64;
    // The logarithm, because 2^-n is 0 for a float from about 1,075 samples on.
    let mut log = -n * std::f64::consts::LN_2;
    let mut below = 0.0;
    for i in 0..rank {
        below += log.exp();
        log += ((n - i as f64) / (i as f64 + 1.0)).ln();
    }
    (1.0 - 2.0 * below).max(0.0)
}

/// Returns the largest rank whose interval has [`CONFIDENCE`]; 1, the whole range, if none has it.
fn interval_rank(samples: usize) -> usize {
    (1..=samples / 2).take_while(|rank| coverage(samples, *rank) >= CONFIDENCE).last().unwrap_or(1)
}

/// Returns the order in which a round visits the paths, as indices.
///
/// The order alternates between neighbours (0, 1, 2, ... becomes 0, 1, n-1, 2, ...), begins with
/// another path in each round, and turns around after each full cycle. No path is therefore always
/// behind another one, and a drift of the machine affects all paths alike. Two paths give A B, B A,
/// B A, A B.
pub fn order(paths: usize, round: usize) -> Vec<usize> {
    let zigzag = (0..paths).map(|step| if step % 2 == 1 { step.div_ceil(2) } else { paths - step / 2 });
    let mut order: Vec<usize> = zigzag.map(|step| (round + step) % paths).collect();
    if round / paths.max(1) % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_scsi::random::SplitMix64;

    #[test]
    fn medians_percentiles_and_means_are_those_of_the_textbook() {
        assert_eq!([median([3.0, 1.0, 2.0]), median([4.0, 1.0]), median([])], [2.0, 2.5, 0.0]);
        let thousand: Vec<u64> = (1..=1000).collect();
        assert_eq!([0.0, 0.5, 0.99, 0.999].map(|share| percentile(&thousand, share)), [1, 500, 990, 999]);
        assert_eq!(percentile::<u64>(&[], 0.5), 0);
        assert_eq!(percentile(&sorted([4.0, 1.0, 3.0, 2.0]), 0.99), 4.0);
        assert!((geometric_mean(&[0.5, 2.0, 8.0]) - 2.0).abs() < 1e-9);
        let (mean, deviation) = mean_and_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((mean - 5.0).abs() < 1e-9 && (deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-9);
        assert_eq!([mean_and_deviation(&[3.0]), mean_and_deviation(&[])], [Some((3.0, 0.0)), None]);
    }

    #[test]
    fn the_ranks_of_the_interval_are_those_of_the_table_of_the_sign_test() {
        // Conover, Practical Nonparametric Statistics: 95 % intervals of the median.
        for (samples, rank, confidence) in
            [(6, 1, 0.96875), (9, 2, 0.9609375), (12, 3, 0.9614), (15, 4, 0.9648), (20, 6, 0.9586), (25, 8, 0.9567)]
        {
            assert_eq!(interval_rank(samples), rank, "{samples}");
            assert!((coverage(samples, rank) - confidence).abs() < 5e-5, "{samples}: {}", coverage(samples, rank));
        }
        assert!((coverage(2000, interval_rank(2000)) - 0.95).abs() < 0.006, "no underflow with many samples");
    }

    #[test]
    fn the_interval_is_made_of_samples_and_contains_the_median() {
        let estimate = Estimate::of((1..=9).rev().map(f64::from)).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high, estimate.samples), (5.0, 2.0, 8.0, 9));
        let estimate = Estimate::of([f64::NAN, 2.0, f64::INFINITY]).unwrap();
        assert_eq!((estimate.median, estimate.samples), (2.0, 1));
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of_ratios(&[1.0], &[0.0]), None);
    }

    #[test]
    fn the_interval_contains_the_true_median_as_often_as_it_promises() {
        // Skewed samples, whose true median is 1: exp of a symmetric triangular variable.
        let mut chance = SplitMix64(7);
        let mut uniform = || chance.below(1 << 30) as f64 / f64::from(1 << 30);
        for samples in [6, 9, 15, 24] {
            let mut inside = 0;
            for _ in 0..4000 {
                let estimate = Estimate::of((0..samples).map(|_| (3.0 * (uniform() - uniform())).exp())).unwrap();
                inside += i32::from((estimate.low..=estimate.high).contains(&1.0));
            }
            let promised = coverage(samples, interval_rank(samples));
            // Three standard deviations of a share of 4,000 trials are 0.010.
            assert!((f64::from(inside) / 4000.0 - promised).abs() < 0.011, "{samples}: {inside} of 4000");
        }
    }

    #[test]
    fn a_temporarily_slow_machine_does_not_change_the_paired_ratio() {
        // A is 1.3 times as fast as B; the machine has a tenth of its speed in the middle third.
        let machine = |slice: usize| if (10..20).contains(&slice) { 0.1 } else { 1.0 };
        let a: Vec<f64> = (0..30).map(|slice| 1.3 * machine(slice)).collect();
        let b: Vec<f64> = (0..30).map(machine).collect();
        let estimate = Estimate::of_ratios(&a, &b).unwrap();
        assert!((estimate.low - 1.3).abs() < 1e-9 && (estimate.high - 1.3).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn a_limit_inside_the_interval_is_undecided() {
        let estimate = Estimate::of((1..=9).map(f64::from)).unwrap();
        for (limit, decision) in [
            (Limit::AtLeast(2.0), Decision::Ok),
            (Limit::AtLeast(2.1), Decision::Undecided),
            (Limit::AtLeast(8.0), Decision::Undecided),
            (Limit::AtLeast(8.1), Decision::Missed),
            (Limit::AtMost(8.0), Decision::Ok),
            (Limit::AtMost(7.9), Decision::Undecided),
            (Limit::AtMost(1.9), Decision::Missed),
        ] {
            assert_eq!(estimate.decide(limit), decision, "{limit}");
        }
    }

    #[test]
    fn fewer_than_six_samples_decide_nothing() {
        for samples in 1..6 {
            let estimate = Estimate::of((0..samples).map(|_| 5.0)).unwrap();
            assert_eq!(estimate.decide(Limit::AtLeast(1.0)), Decision::Undecided, "{samples}");
        }
        assert_eq!(Estimate::of([5.0; 6]).unwrap().decide(Limit::AtLeast(1.0)), Decision::Ok);
    }

    #[test]
    fn a_change_of_unit_moves_median_and_interval() {
        let gain = Estimate::of((1..=9).map(f64::from)).unwrap().map(|ratio| (ratio - 1.0) * 100.0);
        assert_eq!((gain.median, gain.low, gain.high), (400.0, 100.0, 700.0));
        let inverse = Estimate::of((1..=9).map(f64::from)).unwrap().map(|value| 10.0 - value);
        assert_eq!((inverse.low, inverse.high), (2.0, 8.0));
    }

    #[test]
    fn every_round_visits_every_path_and_no_path_is_always_first() {
        assert_eq!([0, 1, 2, 3].map(|round| order(2, round)), [[0, 1], [1, 0], [1, 0], [0, 1]]);
        assert_eq!([order(0, 3), order(1, 3)], [vec![], vec![0]]);
        for paths in 3..7 {
            let firsts: Vec<usize> = (0..paths).map(|round| order(paths, round)[0]).collect();
            assert_eq!(
                sorted(firsts.iter().map(|&path| path as f64)),
                (0..paths).map(|n| n as f64).collect::<Vec<_>>()
            );
            for round in 0..2 * paths {
                let mut order = order(paths, round);
                order.sort_unstable();
                assert_eq!(order, (0..paths).collect::<Vec<_>>());
            }
        }
    }
}
