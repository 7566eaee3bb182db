//! Latency percentiles and their error.

use proptest::prelude::*;
use sanloom_sim::stats::LatencyHistogram;

const NS: u64 = 1_000;
const SECOND_PS: u64 = 1_000_000_000_000;

fn recorded(latencies_ps: impl IntoIterator<Item = u64>) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    for latency_ps in latencies_ps {
        histogram.record_ps(latency_ps);
    }
    histogram
}

#[test]
fn short_latencies_have_exact_percentiles() {
    let histogram = recorded((1..=1000).map(|ns| ns * NS));
    assert_eq!(histogram.quantile_ns(0.5), Some(500));
    assert_eq!(histogram.quantile_ns(0.95), Some(950));
    assert_eq!(histogram.quantile_ns(0.99), Some(990));
    assert_eq!(histogram.quantile_ns(0.999), Some(999));
    assert_eq!(histogram.quantile_ns(1.0), Some(1000));
    assert_eq!(histogram.exact().mean(), Some(500_500.0));
}

#[test]
fn picoseconds_are_rounded_to_nanoseconds_in_buckets_only() {
    let histogram = recorded([1_499, 1_500]);
    assert_eq!(histogram.quantile_ns(0.5), Some(1));
    assert_eq!(histogram.quantile_ns(1.0), Some(2));
    assert_eq!(histogram.exact().sum(), 2_999);
}

#[test]
fn the_range_ends_at_a_thousand_seconds() {
    let histogram = recorded([0, 5_000 * SECOND_PS]);
    assert_eq!(histogram.quantile_ns(0.5), Some(0));
    let top = histogram.quantile_ns(1.0).expect("two values");
    assert!((1_000_000_000_000..1_001_000_000_000).contains(&top));
    assert_eq!(histogram.exact().max(), Some(5_000 * SECOND_PS));
}

#[test]
fn an_empty_histogram_has_no_percentile_and_no_buckets() {
    let mut histogram = LatencyHistogram::new();
    assert_eq!(histogram.quantile_ns(0.5), None);
    assert_eq!(histogram.non_empty().count(), 0);
    histogram.record_ps(5 * NS);
    histogram.clear();
    assert_eq!(histogram.quantile_ns(0.5), None);
    assert_eq!(histogram.exact().count(), 0);
    histogram.record_ps(7 * NS);
    assert_eq!(histogram.quantile_ns(0.5), Some(7));
}

#[test]
fn no_percentile_is_above_the_largest_value() {
    let histogram = recorded([123_456_789_012]);
    assert_eq!(histogram.quantile_ns(0.5), Some(123_456_790));
}

#[test]
fn buckets_hold_every_value_once() {
    let histogram = recorded((0..5_000).map(|i| i * i * i));
    let buckets: Vec<_> = histogram.non_empty().collect();
    assert_eq!(buckets.iter().map(|b| b.count).sum::<u64>(), 5_000);
    assert!(buckets.windows(2).all(|pair| pair[0].to_ns < pair[1].from_ns));
    for bucket in &buckets {
        let inside = |ps: u64| (bucket.from_ns..=bucket.to_ns).contains(&((ps + 500) / NS));
        let count = (0..5_000u64).filter(|&i| inside(i * i * i)).count();
        assert_eq!(bucket.count, count as u64);
    }
}

proptest! {
    /// The documented bound: a percentile is not below the true value (to the nanosecond), and at
    /// most 1/1,024 above it with 3 digits, 1/128 with 2.
    #[test]
    fn percentiles_keep_their_error_bound(
        mut exponents in prop::collection::vec(0.0..50.0f64, 1..200),
        quantile in 0.0..=1.0f64,
    ) {
        let two_digits = LatencyHistogram::with_digits(2);
        for (mut histogram, bound) in [(LatencyHistogram::new(), 1024.0), (two_digits, 128.0)] {
            let latencies: Vec<u64> = exponents.iter().map(|e| e.exp2() as u64).collect();
            for &latency_ps in &latencies {
                histogram.record_ps(latency_ps);
            }
            exponents.sort_by(f64::total_cmp);
            let rank = (quantile * exponents.len() as f64).ceil().max(1.0) as usize;
            let true_ns = ((exponents[rank - 1].exp2() as u64).min(1000 * SECOND_PS) + 500) / NS;
            let got = histogram.quantile_ns(quantile).expect("not empty");
            prop_assert!(got >= true_ns, "{got} < {true_ns}");
            prop_assert!((got - true_ns) as f64 <= true_ns as f64 / bound + 1.0);
        }
    }

    #[test]
    fn merged_histograms_are_the_histogram_of_everything(
        first in prop::collection::vec(0..SECOND_PS, 0..50),
        second in prop::collection::vec(0..SECOND_PS, 0..50),
    ) {
        let mut merged = recorded(first.clone());
        merged.merge(&recorded(second.clone()));
        let all = recorded(first.into_iter().chain(second));
        prop_assert_eq!(merged.exact(), all.exact());
        for quantile in [0.0, 0.5, 0.95, 0.99, 0.999, 1.0] {
            prop_assert_eq!(merged.quantile_ns(quantile), all.quantile_ns(quantile));
        }
        prop_assert!(merged.non_empty().eq(all.non_empty()));
    }

    #[test]
    fn histograms_of_different_precision_can_be_merged(
        latencies in prop::collection::vec(0..SECOND_PS, 1..50),
    ) {
        let mut coarse = LatencyHistogram::with_digits(2);
        let fine = recorded(latencies.clone());
        coarse.merge(&fine);
        prop_assert_eq!(coarse.exact(), fine.exact());
        let counted: u64 = coarse.non_empty().map(|bucket| bucket.count).sum();
        prop_assert_eq!(counted, latencies.len() as u64);
    }
}
