//! Latency distributions.

use super::summary::Summary;
use hdrhistogram::Histogram;

/// A histogram of latencies: percentiles from buckets, mean, minimum and maximum exact.
///
/// Buckets are linear within a power of two and double in width from one power to the next (a "high dynamic range"
/// histogram), so the error is relative. With 3 significant digits a power of two has 1,024 buckets, and a percentile
/// is at most 1/1,024 (0.1 %) above the true value; below 2,048 ns it is exact to the nanosecond. With 2 digits: 128
/// buckets and 1/128 (0.8 %). Values run from 0 to 1,000 s; longer ones count as 1,000 s in percentiles, not in the
/// exact numbers.
///
/// Memory follows the largest value seen: with 3 digits about 8 KiB for the first 2 µs and 4 KiB for each doubling
/// beyond (1 ms: 44 KiB, 1 s: 84 KiB, 1,000 s: 124 KiB), up to twice that as it grows in jumps; with 2 digits an eighth
/// of it. Nothing is allocated before the first value, and later only when a value is larger than any before by powers
/// of two.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    digits: u8,
    buckets: Option<Histogram<u32>>,
    exact: Summary,
}

/// Latencies of one bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistogramBucket {
    /// Smallest latency of the bucket in nanoseconds.
    pub from_ns: u64,
    /// Largest latency of the bucket in nanoseconds.
    pub to_ns: u64,
    /// Number of latencies.
    pub count: u64,
}

const MAX_NS: u64 = 1_000_000_000_000;
const DEFAULT_DIGITS: u8 = 3;

impl LatencyHistogram {
    /// An empty histogram with 3 significant digits.
    pub fn new() -> LatencyHistogram {
        LatencyHistogram::with_digits(DEFAULT_DIGITS)
    }

    /// An empty histogram with `digits` significant digits, 1 to 5; other numbers become the nearest of them.
    pub fn with_digits(digits: u8) -> LatencyHistogram {
        LatencyHistogram { digits: digits.clamp(1, 5), buckets: None, exact: Summary::default() }
    }

    /// Takes one latency in picoseconds, rounded to the nearest nanosecond for the buckets.
    pub fn record_ps(&mut self, latency_ps: u64) {
        self.exact.add(latency_ps);
        let latency_ns = (latency_ps / 1_000 + u64::from(latency_ps % 1_000 >= 500)).min(MAX_NS);
        if self.buckets.is_none() {
            self.buckets = Histogram::new(self.digits).ok();
        }
        if let Some(buckets) = &mut self.buckets {
            // Cannot fail: the histogram grows by itself, and MAX_NS is far from the end of its range.
            let recorded = buckets.record(latency_ns);
            debug_assert!(recorded.is_ok());
        }
    }

    /// Takes all latencies that `other` has seen.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.exact.merge(&other.exact);
        match (&mut self.buckets, &other.buckets) {
            (Some(mine), Some(theirs)) => {
                let added = mine.add(theirs);
                debug_assert!(added.is_ok());
            }
            (None, Some(theirs)) if self.digits == other.digits => {
                self.buckets = Some(theirs.clone());
            }
            (None, Some(theirs)) => {
                if let Ok(mut mine) = Histogram::new(self.digits) {
                    mine.auto(true);
                    let added = mine.add(theirs);
                    debug_assert!(added.is_ok());
                    self.buckets = Some(mine);
                }
            }
            (_, None) => {}
        }
    }

    /// Forgets everything and keeps the memory: the end of the warm-up.
    pub fn clear(&mut self) {
        self.exact = Summary::default();
        if let Some(buckets) = &mut self.buckets {
            buckets.clear();
        }
    }

    /// The exact count, sum, minimum and maximum in picoseconds.
    pub fn exact(&self) -> &Summary {
        &self.exact
    }

    /// The latency in nanoseconds that the share `quantile` (0 to 1) of all latencies does not exceed, at most the
    /// largest one seen; `None` without values.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let buckets = self.buckets.as_ref().filter(|b| !b.is_empty())?;
        let max_ns = self.exact.max()?.div_ceil(1_000);
        Some(buckets.value_at_quantile(quantile).min(max_ns))
    }

    /// The buckets that hold something, shortest latency first.
    pub fn non_empty(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        self.buckets.iter().flat_map(|buckets| {
            buckets.iter_recorded().map(|at| HistogramBucket {
                from_ns: buckets.lowest_equivalent(at.value_iterated_to()),
                to_ns: buckets.highest_equivalent(at.value_iterated_to()),
                count: u64::from(at.count_at_value()),
            })
        })
    }
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram::new()
    }
}
