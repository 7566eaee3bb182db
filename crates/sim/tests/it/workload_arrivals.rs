//! Arrival processes compared with their analytic distributions.
//!
//! The bounds: a mean of n intervals may be off by 4 standard errors. The largest distance between
//! the empirical and the analytic distribution function (Kolmogorov-Smirnov) may be 1.63/sqrt(n),
//! which chance exceeds for 1 % of all seeds. With n = 20,000, both detect a mean that is 5 % off;
//! `a_deviation_of_five_percent_exceeds_the_bounds` proves it.

use sanloom_fc::config::{Arrival, Picos, Rate, TimeDistribution};
use sanloom_sim::rng::{Purpose, stream_rng};
use sanloom_sim::workload::Arrivals;

const SAMPLES: usize = 20_000;
const SECOND_PS: f64 = 1e12;

fn arrivals(kinds: &[Arrival], start_ps: u64) -> Arrivals {
    Arrivals::new(kinds, start_ps, |process| stream_rng(7, Purpose::Arrival { process }, &["a"]))
}

fn intervals(kind: Arrival) -> Vec<f64> {
    let mut arrivals = arrivals(&[kind], 0);
    let mut before_ps = 0;
    let mut next = || {
        let at_ps = arrivals.next_ps();
        let gap_ps = at_ps - before_ps;
        before_ps = at_ps;
        gap_ps as f64
    };
    (0..SAMPLES).map(|_| next()).collect()
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

fn deviation(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / (samples.len() - 1) as f64).sqrt()
}

fn mean_is(samples: &[f64], expected: f64, expected_deviation: f64) -> bool {
    let standard_error = expected_deviation / (samples.len() as f64).sqrt();
    (mean(samples) - expected).abs() <= 4.0 * standard_error
}

/// Returns the largest distance between the empirical distribution function and `cdf`, in units of
/// the 1 % bound.
fn distance(samples: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let distances = sorted.iter().enumerate().map(|(index, &x)| {
        let expected = cdf(x);
        let below = expected - index as f64 / n;
        let above = (index + 1) as f64 / n - expected;
        below.max(above)
    });
    distances.fold(0.0, f64::max) / (1.63 / n.sqrt())
}

fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[test]
fn poisson_intervals_are_exponential() {
    let rate = 22_500.0;
    let samples = intervals(Arrival::Poisson { rate: Rate(rate) });
    let expected = SECOND_PS / rate;
    assert!(mean_is(&samples, expected, expected));
    assert!((deviation(&samples) / expected - 1.0).abs() < 0.04);
    assert!(distance(&samples, |x| 1.0 - (-x / expected).exp()) < 1.0);
}

#[test]
fn poisson_intervals_do_not_depend_on_the_one_before() {
    let samples = intervals(Arrival::Poisson { rate: Rate(1e6) });
    let mean = mean(&samples);
    let covariance: f64 = samples.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let variance: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    let bound = 4.0 / (SAMPLES as f64).sqrt();
    assert!((covariance / variance).abs() < bound);
}

#[test]
fn a_deviation_of_five_percent_exceeds_the_bounds() {
    let rate = 1000.0;
    let samples = intervals(Arrival::Poisson { rate: Rate(rate) });
    for wrong in [0.95, 1.05] {
        let expected = wrong * SECOND_PS / rate;
        assert!(!mean_is(&samples, expected, expected));
        assert!(distance(&samples, |x| 1.0 - (-x / expected).exp()) > 1.0);
    }
}

#[test]
fn constant_arrivals_do_not_drift() {
    // The period is 44,444,444.44… ps. Rounded periods would lose 0.44 ps each.
    let mut arrivals = arrivals(&[Arrival::Constant { rate: Rate(22_500.0) }], 5);
    assert_eq!(arrivals.next_ps(), 5 + 44_444_444);
    let last = (1..22_500).map(|_| arrivals.next_ps()).last();
    assert_eq!(last, Some(5 + 1_000_000_000_000));
}

#[test]
fn uniform_intervals_fill_their_range_evenly() {
    let (min, max) = (2e6, 10e6);
    let samples = intervals(Arrival::Uniform { min: Picos(min as u64), max: Picos(max as u64) });
    assert!(samples.iter().all(|&x| (min..=max).contains(&x)));
    assert!(mean_is(&samples, (min + max) / 2.0, (max - min) / 12f64.sqrt()));
    assert!(distance(&samples, |x| (x - min) / (max - min)) < 1.0);
}

#[test]
fn uniform_intervals_reach_both_bounds() {
    let samples = intervals(Arrival::Uniform { min: Picos(3), max: Picos(6) });
    let mut seen: Vec<u64> = samples.iter().map(|&x| x as u64).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [3, 4, 5, 6]);
}

#[test]
fn normal_intervals_far_from_zero_are_normal() {
    let (mu, sigma) = (1e9, 1e8);
    let samples = intervals(Arrival::Normal { mean: Picos(mu as u64), deviation: Picos(sigma as u64) });
    assert!(mean_is(&samples, mu, sigma));
    assert!((deviation(&samples) / sigma - 1.0).abs() < 0.03);
    assert!(distance(&samples, |x| normal_cdf((x - mu) / sigma)) < 1.0);
}

#[test]
fn normal_intervals_are_cut_off_at_zero() {
    let (mu, sigma) = (1e9, 1e9);
    let samples = intervals(Arrival::Normal { mean: Picos(mu as u64), deviation: Picos(sigma as u64) });
    // The truncated normal distribution: the probability below zero is spread over the rest.
    let below = normal_cdf(-mu / sigma);
    let left = 1.0 - below;
    let expected = mu + sigma * normal_density(-mu / sigma) / left;
    assert!(mean_is(&samples, expected, sigma));
    let cdf = |x: f64| (normal_cdf((x - mu) / sigma) - below) / left;
    assert!(distance(&samples, cdf) < 1.0);
}

fn renewal(times: TimeDistribution) -> Vec<f64> {
    intervals(Arrival::Renewal(times))
}

#[test]
fn gamma_intervals_keep_their_mean_and_deviation() {
    for (mu, sigma) in [(1e8, 1e8), (1e8, 2e7), (1e8, 3e8)] {
        let samples = renewal(TimeDistribution::Gamma { mean: Picos(mu as u64), deviation: Picos(sigma as u64) });
        assert!(mean_is(&samples, mu, sigma), "{mu} {sigma}: {}", mean(&samples));
        // The kurtosis of the distribution is 3 + 6 (sigma / mu)^2, which gives the error of the
        // deviation.
        let error = ((2.0 + 6.0 * (sigma / mu) * (sigma / mu)) / SAMPLES as f64).sqrt() / 2.0;
        assert!((deviation(&samples) / sigma - 1.0).abs() < 4.0 * error, "{mu} {sigma}: {}", deviation(&samples));
    }
    // A deviation equal to the mean is the exponential distribution.
    let samples = renewal(TimeDistribution::Gamma { mean: Picos(100_000_000), deviation: Picos(100_000_000) });
    assert!(distance(&samples, |x| 1.0 - (-x / 1e8).exp()) < 1.0);
}

#[test]
fn log_normal_intervals_have_a_normal_logarithm() {
    let (mean, deviation) = (1e9f64, 2e9f64);
    let samples = renewal(TimeDistribution::LogNormal { mean: Picos(mean as u64), deviation: Picos(deviation as u64) });
    let variance = (1.0 + (deviation / mean) * (deviation / mean)).ln();
    assert!(distance(&samples, |x| normal_cdf((x.ln() - mean.ln() + variance / 2.0) / variance.sqrt())) < 1.0);
}

#[test]
fn pareto_intervals_have_a_tail_of_their_shape() {
    let (mean, shape) = (1e9, 1.5);
    let least = mean * (shape - 1.0) / shape;
    let samples = renewal(TimeDistribution::Pareto { mean: Picos(mean as u64), shape });
    assert!(samples.iter().all(|&x| x >= least - 1.0));
    assert!(distance(&samples, |x| 1.0 - (least / x.max(least)).powf(shape)) < 1.0);
}

/// Requests of `count` independent processes in each of `windows` windows.
fn counts(kind: Arrival, count: u32, window_ps: u64, windows: usize) -> Vec<f64> {
    let mut counts = vec![0.0; windows];
    for number in 0..count {
        let name = number.to_string();
        let rng = |process| stream_rng(7, Purpose::Arrival { process }, &[&name]);
        let mut arrivals = Arrivals::new(&[kind], 0, rng);
        while let Some(count) = counts.get_mut((arrivals.next_ps() / window_ps) as usize) {
            *count += 1.0;
        }
    }
    counts
}

/// Variance of the counts of `together` adjacent windows, divided by their mean.
fn dispersion(counts: &[f64], together: usize) -> f64 {
    let sums: Vec<f64> = counts.chunks_exact(together).map(|chunk| chunk.iter().sum()).collect();
    let mean = mean(&sums);
    sums.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (sums.len() - 1) as f64 / mean
}

#[test]
fn a_markov_modulated_process_has_the_dispersion_of_theory() {
    let (rates, stays) = ([9_000.0, 1_000.0], [0.001, 0.003]);
    let kind = Arrival::Markov { rates: rates.map(Rate), stays: stays.map(|stay| Picos((stay * SECOND_PS) as u64)) };
    let counts = counts(kind, 1, 1_000_000_000, 400_000);
    // The index of dispersion of a window of length t (Fischer and Meier-Hellstern, 1993).
    let [r1, r2] = stays.map(|stay| 1.0 / stay);
    let rate = (rates[0] * r2 + rates[1] * r1) / (r1 + r2);
    assert!((mean(&counts) / 1e-3 / rate - 1.0).abs() < 0.02, "{} {rate}", mean(&counts) / 1e-3);
    let a = 2.0 * (rates[0] - rates[1]).powi(2) * r1 * r2 / ((r1 + r2).powi(2) * (rates[0] * r2 + rates[1] * r1));
    for together in [1, 10, 100] {
        let t = 1e-3 * together as f64;
        let theory = 1.0 + a * (1.0 - (1.0 - (-(r1 + r2) * t).exp()) / ((r1 + r2) * t));
        let ours = dispersion(&counts, together);
        assert!((ours / theory - 1.0).abs() < 0.1, "{together}: {ours} {theory}");
    }
}

#[test]
fn pareto_phases_are_self_similar_and_exponential_ones_are_not() {
    // The variance of a self-similar process grows with the power 2H of the window, with
    // H = (3 - shape) / 2; that of a process with a short memory grows with the power 1.
    let shape = 1.4;
    let (on, off) = (Picos(5_000_000_000), Picos(15_000_000_000));
    let hurst = |kind: Arrival| {
        let counts = counts(kind, 60, 50_000_000_000, 40_000);
        let [short, long] = [4, 256].map(|together| (dispersion(&counts, together) * together as f64).ln());
        (long - short) / 64f64.ln() / 2.0
    };
    let pareto = hurst(Arrival::ParetoOnOff { rate: Rate(4_000.0), on, off, shape });
    assert!((pareto - (3.0 - shape) / 2.0).abs() < 0.08, "{pareto}");
    let short = hurst(Arrival::Markov { rates: [Rate(4_000.0), Rate(1e-3)], stays: [on, off] });
    assert!((short - 0.5).abs() < 0.06, "{short}");
}

#[test]
fn on_off_arrivals_are_silent_in_off_phases() {
    let (start_ps, on_ps, off_ps) = (77, 2_000_000_000, 6_000_000_000);
    let mut arrivals =
        arrivals(&[Arrival::OnOff { rate: Rate(100_000.0), on: Picos(on_ps), off: Picos(off_ps) }], start_ps);
    let times: Vec<u64> = (0..SAMPLES).map(|_| arrivals.next_ps()).collect();
    // An arrival may move by 1 ps to keep two arrivals apart.
    assert!(times.iter().all(|at_ps| (at_ps - start_ps) % (on_ps + off_ps) <= on_ps));
    // On a clock that runs only during on-phases, the process is Poisson at the full rate.
    let on_time = |at_ps: u64| {
        let since_ps = at_ps - start_ps;
        since_ps / (on_ps + off_ps) * on_ps + since_ps % (on_ps + off_ps)
    };
    let samples: Vec<f64> = times.windows(2).map(|pair| (on_time(pair[1]) - on_time(pair[0])) as f64).collect();
    assert!(mean_is(&samples, 1e7, 1e7));
    assert!(distance(&samples, |x| 1.0 - (-x / 1e7).exp()) < 1.0);
    // Over the whole time, it has a quarter of the rate.
    let elapsed_s = (times[SAMPLES - 1] - start_ps) as f64 / SECOND_PS;
    assert!((SAMPLES as f64 / elapsed_s / 25_000.0 - 1.0).abs() < 0.04);
}

#[test]
fn processes_side_by_side_keep_their_own_times() {
    let kinds = [
        Arrival::Poisson { rate: Rate(3_000.0) },
        Arrival::Constant { rate: Rate(1_000.0) },
        Arrival::Uniform { min: Picos::from_us(100), max: Picos::from_us(300) },
    ];
    let mut both = arrivals(&kinds, 0);
    let merged: Vec<u64> = (0..SAMPLES).map(|_| both.next_ps()).collect();
    assert!(merged.is_sorted());
    let end_ps = merged[SAMPLES - 1];
    let mut apart = Vec::new();
    for (kind, process) in kinds.iter().zip(0..) {
        let mut single = Arrivals::new(&[*kind], 0, |_| stream_rng(7, Purpose::Arrival { process }, &["a"]));
        apart.extend(std::iter::repeat_with(|| single.next_ps()).take_while(|&at| at <= end_ps));
    }
    apart.sort_unstable();
    assert_eq!(merged, apart);
}

#[test]
fn peeking_takes_nothing() {
    let mut arrivals = arrivals(&[Arrival::Poisson { rate: Rate(10.0) }], 0);
    for _ in 0..100 {
        let peeked = arrivals.peek_ps();
        assert_eq!(arrivals.next_ps(), peeked);
    }
}

#[test]
fn a_process_that_cannot_fire_is_silent() {
    let silent = [
        Arrival::Poisson { rate: Rate(0.0) },
        Arrival::Constant { rate: Rate(f64::NAN) },
        Arrival::OnOff { rate: Rate(1.0), on: Picos::ZERO, off: Picos::SECOND },
    ];
    let mut arrivals = arrivals(&silent, 0);
    assert_eq!(arrivals.next_ps(), u64::MAX);
    assert_eq!(arrivals.next_ps(), u64::MAX);
}

#[test]
fn intervals_of_zero_still_advance_time() {
    let mut arrivals = arrivals(&[Arrival::Uniform { min: Picos::ZERO, max: Picos::ZERO }], 0);
    let times: Vec<u64> = (0..5).map(|_| arrivals.next_ps()).collect();
    assert_eq!(times, [1, 2, 3, 4, 5]);
}
