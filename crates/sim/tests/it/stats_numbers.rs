//! Sums, averages over time, time series, confidence and fairness against known values.

use proptest::prelude::*;
use sanloom_sim::stats::{
    BatchMeans, ConfidenceInterval, Series, Step, Summary, TimeWeighted, jain_index, student_t_975, warm_up,
};

fn summary(values: &[u64]) -> Summary {
    let mut summary = Summary::default();
    for &value in values {
        summary.add(value);
    }
    summary
}

#[test]
fn sums_are_exact_where_floats_are_not() {
    let mut summary = Summary::default();
    summary.add(u64::MAX);
    for _ in 0..1000 {
        summary.add(1);
    }
    assert_eq!(summary.sum(), u128::from(u64::MAX) + 1000);
    assert_eq!(summary.count(), 1001);
    assert_eq!((summary.min(), summary.max()), (Some(1), Some(u64::MAX)));
}

#[test]
fn an_empty_summary_has_no_mean_minimum_or_maximum() {
    let nothing = Summary::default();
    assert_eq!(nothing.mean(), None);
    assert_eq!((nothing.min(), nothing.max()), (None, None));
    let mut merged = summary(&[5, 7]);
    merged.merge(&nothing);
    assert_eq!(merged, summary(&[5, 7]));
    let mut other = nothing;
    other.merge(&merged);
    assert_eq!(other, merged);
}

proptest! {
    #[test]
    fn merging_is_the_same_as_adding_everything(
        first in prop::collection::vec(any::<u64>(), 0..50),
        second in prop::collection::vec(any::<u64>(), 0..50),
    ) {
        let mut merged = summary(&first);
        merged.merge(&summary(&second));
        prop_assert_eq!(merged, summary(&[first, second].concat()));
    }
}

#[test]
fn a_level_is_averaged_over_time_and_not_over_changes() {
    let mut depth = TimeWeighted::new(100);
    depth.set(200, 4);
    depth.raise(300, 2);
    depth.lower(350, 6);
    // 100 ps at level 0, 100 ps at 4, 50 ps at 6, 150 ps at 0.
    assert_eq!(depth.mean(500), 700.0 / 400.0);
    assert_eq!(depth.max(), 6);
    assert_eq!(depth.level(), 0);
    assert_eq!(depth.area_at(500), 700);
}

#[test]
fn a_restart_keeps_the_level_and_resets_the_integral() {
    let mut depth = TimeWeighted::new(0);
    depth.set(10, 9);
    depth.set(20, 3);
    depth.restart(100);
    assert_eq!(depth.max(), 3);
    depth.set(150, 5);
    assert_eq!(depth.mean(200), 4.0);
    assert_eq!(depth.mean(100), 5.0, "no time has passed: the level itself");
}

#[test]
fn a_series_adds_up_what_ends_in_each_step() {
    let mut series = Series::new(1_000, 5_000, 1_000, 100);
    series.record(999, 1, 1);
    series.record(1_000, 10, 100);
    series.record(1_999, 20, 300);
    series.record(4_000, 40, 50);
    let first = Step { bytes: 30, ios: 2, latency_sum_ps: 400 };
    let last = Step { bytes: 40, ios: 1, latency_sum_ps: 50 };
    let empty = Step::default();
    assert_eq!(series.steps(), [first, empty, empty, last]);
    assert_eq!(first.mean_latency_ps(), Some(200.0));
    assert_eq!(empty.mean_latency_ps(), None);
}

#[test]
fn a_series_that_grows_too_long_doubles_its_interval() {
    let mut series = Series::new(0, 10, 10, 4);
    for now_ps in 0..1_000 {
        series.record(now_ps, 1, 2);
    }
    // 100 steps of 10 do not fit into 4 steps; merged to 320, they do.
    assert_eq!(series.interval_ps(), 320);
    let ios: Vec<u64> = series.steps().iter().map(|step| step.ios).collect();
    assert_eq!(ios, [320, 320, 320, 40]);
    let bytes: u64 = series.steps().iter().map(|step| step.bytes).sum();
    assert_eq!(bytes, 1_000);
}

proptest! {
    #[test]
    fn a_joined_series_is_the_series_of_the_longer_interval(
        mut times in prop::collection::vec(0..100_000u64, 1..200),
        max_steps in 2..20usize,
    ) {
        times.sort_unstable();
        let mut joined = Series::new(7, 7, 3, max_steps);
        for &now_ps in &times {
            joined.record(now_ps, now_ps, 1);
        }
        prop_assert!(joined.steps().len() <= max_steps);
        let mut direct = Series::new(7, 7, joined.interval_ps(), max_steps);
        for &now_ps in &times {
            direct.record(now_ps, now_ps, 1);
        }
        prop_assert_eq!(joined.steps(), direct.steps());
    }
}

/// Integrates Student's t density from 0 to `t` by Simpson's rule, independently of the table.
fn central_probability(degrees: usize, t: f64) -> f64 {
    const PARTS: usize = 20_000;
    let n = degrees as f64;
    let log_factor = libm::lgamma((n + 1.0) / 2.0) - libm::lgamma(n / 2.0) - (n * std::f64::consts::PI).ln() / 2.0;
    let density = |x: f64| (log_factor - (n + 1.0) / 2.0 * (x * x / n).ln_1p()).exp();
    let h = t / PARTS as f64;
    let weighted = |i: usize| {
        let weight = match i {
            0 | PARTS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * density(i as f64 * h)
    };
    2.0 * (0..=PARTS).map(weighted).sum::<f64>() * h / 3.0
}

#[test]
fn student_quantiles_enclose_95_percent() {
    for degrees in (1..=60).chain([100, 300, 1000]) {
        let probability = central_probability(degrees, student_t_975(degrees));
        assert!((probability - 0.95).abs() < 2e-7, "{degrees}: {probability}");
    }
    assert_eq!(student_t_975(0), f64::INFINITY);
}

#[test]
fn replications_give_the_textbook_interval() {
    // Mean 10, s = 1, n = 4, t(3) = 3.182446: half width 1.591223 * sqrt(2/3).
    let interval = ConfidenceInterval::of_samples(&[9.0, 10.0, 10.0, 11.0]);
    let interval = interval.expect("four samples");
    assert_eq!(interval.mean, 10.0);
    let expected = 3.182446 * (2.0f64 / 3.0 / 4.0).sqrt();
    assert!((interval.half_width - expected).abs() < 1e-9);
    assert!(interval.relative().is_some_and(|r| (r - expected / 10.0).abs() < 1e-9));
    assert_eq!(ConfidenceInterval::of_samples(&[1.0]), None);
}

#[test]
fn batches_are_equal_parts_and_a_rest_is_left_out() {
    let observations = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 1000.0];
    let batches = ConfidenceInterval::of_batches(&observations, 3);
    assert_eq!(batches, ConfidenceInterval::of_samples(&[2.0, 6.0, 10.0]));
    assert_eq!(ConfidenceInterval::of_batches(&[1.0], 2), None);
}

#[test]
fn streamed_batches_are_the_batches_of_the_whole() {
    let values: Vec<u64> = (0..64).map(|i| i * i).collect();
    let mut streamed = BatchMeans::new(4);
    for &value in &values {
        streamed.add(value);
    }
    // 64 observations give 8 batches of 8, which are merged at once into 4 batches of 16.
    let floats: Vec<f64> = values.iter().map(|&v| v as f64).collect();
    assert_eq!(streamed.interval(), ConfidenceInterval::of_batches(&floats, 4));
    let mut few = BatchMeans::new(4);
    few.add(1);
    assert_eq!(few.interval(), None);
}

#[test]
fn dependent_observations_make_wider_intervals_in_batches() {
    // Runs of equal values make single observations look more certain than they are.
    let observations: Vec<f64> = (0..400).map(|i| f64::from((i / 20 * 7) % 13)).collect();
    let single = ConfidenceInterval::of_samples(&observations).map(|i| i.half_width);
    let batched = ConfidenceInterval::of_batches(&observations, 20).map(|i| i.half_width);
    assert!(single.zip(batched).is_some_and(|(s, b)| b > 3.0 * s));
}

#[test]
fn jains_index_runs_from_one_nth_to_one() {
    assert_eq!(jain_index(&[3.0; 8]), Some(1.0));
    assert_eq!(jain_index(&[0.0, 5.0, 0.0, 0.0]), Some(0.25));
    let uneven = jain_index(&[46.0, 46.0, 58.0, 58.0]);
    assert!(uneven.is_some_and(|index| (index - 0.986_861_313_868_613).abs() < 1e-12));
    assert_eq!(jain_index(&[]), None);
    assert_eq!(jain_index(&[0.0, 0.0]), None);
}

#[test]
fn a_warm_up_ends_where_the_bias_ends() {
    // A deterministic ripple of mean 0 without a trend, so that the best truncation is known.
    let ripple = |at: usize| [0.5, -0.25, -0.5, 0.25, 0.0, 0.125, -0.125][at % 7];
    let biased = |length: usize, until: usize| -> Vec<f64> {
        (0..length).map(|at| ripple(at) + if at < until { 10.0 } else { 0.0 }).collect()
    };
    assert_eq!(warm_up(&biased(700, 100)), Some(100));
    assert_eq!(warm_up(&biased(700, 0)).map(|end| end < 100), Some(true));
    // The last observation of the bias is within a batch, which belongs to the warm-up as a whole.
    assert_eq!(warm_up(&biased(700, 102)), Some(105));
    // A bias that lasts for most of the series leaves no steady part.
    assert_eq!(warm_up(&biased(700, 600)), None);
    // A trend never ends.
    assert_eq!(warm_up(&(0..700).map(|at| at as f64).collect::<Vec<_>>()), None);
    // Two equal batches at the end are no steady part.
    let last = |at: usize| if at < 690 { ripple(at) } else { 0.0 };
    assert!(warm_up(&(0..700).map(last).collect::<Vec<_>>()).is_some());
    assert_eq!(warm_up(&[1.0; 49]), None);
    assert_eq!(warm_up(&[1.0; 50]), Some(0));
}

#[test]
fn a_warm_up_is_found_with_any_offset_and_scale() {
    let decay = |at: usize| (-(at as f64) / 20.0).exp() * 30.0 + ((at * 7919) % 101) as f64 / 101.0;
    let plain: Vec<f64> = (0..1_000).map(decay).collect();
    let end = warm_up(&plain).expect("a steady part");
    assert!((60..=150).contains(&end), "{end}");
    let shifted: Vec<f64> = plain.iter().map(|value| 1e6 + value * 1e3).collect();
    assert_eq!(warm_up(&shifted), Some(end));
}
