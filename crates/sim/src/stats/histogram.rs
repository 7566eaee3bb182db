//! Latency distributions.

use super::summary::Summary;
use hdrhistogram::Histogram;

/// A histogram of latencies. Percentiles come from buckets; mean, minimum and maximum are exact.
///
/// Buckets are linear within a power of two and double in width from one power to the next (a "high
/// dynamic range" histogram), so the error is relative. With 3 significant digits, a power of two
/// has 1,024 buckets. A percentile is then at most 1/1,024 (0.1 %) above the true value, and exact
/// to the nanosecond below 2,048 ns. With 2 digits, there are 128 buckets and the error is 1/128
/// (0.8 %). Values range from 0 to 1,000 s. Longer ones count as 1,000 s in percentiles, but not in
/// the exact numbers.
///
/// Memory depends on the largest value. With 3 digits it is about 8 KiB for the first 2 µs and 4
/// KiB for each doubling beyond (1 ms: 44 KiB, 1 s: 84 KiB, 1,000 s: 124 KiB). It may be up to
/// twice that, because it grows in steps. With 2 digits it is one eighth. Memory is allocated at
/// the first value, and later only if a value exceeds all earlier ones by powers of two.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    digits: u8,
    buckets: Option<Histogram<u32>>,
    exact: Summary,
}

/// One bucket of a histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistogramBucket {
    /// Smallest latency of the bucket, in ns.
    pub from_ns: u64,
    /// Largest latency of the bucket, in ns.
    pub to_ns: u64,
    /// Number of latencies.
    pub count: u64,
}

const MAX_NS: u64 = 1_000_000_000_000;
const DEFAULT_DIGITS: u8 = 3;

impl LatencyHistogram {
    /// Returns an empty histogram with 3 significant digits.
    pub fn new() -> LatencyHistogram {
        LatencyHistogram::with_digits(DEFAULT_DIGITS)
    }

    /// Returns an empty histogram with `digits` significant digits, clamped to 1 to 5.
    pub fn with_digits(digits: u8) -> LatencyHistogram {
        LatencyHistogram { digits: digits.clamp(1, 5), buckets: None, exact: Summary::default() }
    }

    /// Adds one latency in ps, rounded to the nearest nanosecond for the buckets.
    pub fn record_ps(&mut self, latency_ps: u64) {
        self.exact.add(latency_ps);
        let latency_ns = (latency_ps / 1_000 + u64::from(latency_ps % 1_000 >= 500)).min(MAX_NS);
        if self.buckets.is_none() {
            self.buckets = Histogram::new(self.digits).ok();
        }
        if let Some(buckets) = &mut self.buckets {
            // This cannot fail, because the histogram grows automatically and MAX_NS is far below
            // the end of its range.
            let recorded = buckets.record(latency_ns);
            debug_assert!(recorded.is_ok());
        }
    }

    /// Adds all latencies of `other`.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.exact.merge(&other.exact);
        match (&mut self.buckets, &other.buckets) {
            (Some(own), Some(added)) => {
                let result = own.add(added);
                debug_assert!(result.is_ok());
            }
            (None, Some(added)) if self.digits == other.digits => {
                self.buckets = Some(added.clone());
            }
            (None, Some(added)) => {
                if let Ok(mut own) = Histogram::new(self.digits) {
                    own.auto(true);
                    let result = own.add(added);
                    debug_assert!(result.is_ok());
                    self.buckets = Some(own);
                }
            }
            (_, None) => {}
        }
    }

    /// Removes all values but keeps the memory; called at the end of the warm-up.
    pub fn clear(&mut self) {
        self.exact = Summary::default();
        if let Some(buckets) = &mut self.buckets {
            buckets.clear();
        }
    }

    /// Returns the exact count, sum, minimum and maximum in ps.
    pub fn exact(&self) -> &Summary {
        &self.exact
    }

    /// Returns the `quantile` (0 to 1) of the latencies in ns, at most the largest latency; `None`
    /// without values.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let buckets = self.buckets.as_ref().filter(|b| !b.is_empty())?;
        let max_ns = self.exact.max()?.div_ceil(1_000);
        Some(buckets.value_at_quantile(quantile).min(max_ns))
    }

    /// Iterates over the non-empty buckets, shortest latency first.
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
