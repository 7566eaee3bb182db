//! Counts of values in bounded memory.

use std::collections::BTreeMap;

/// Distinct values that are kept exactly.
const EXACT: usize = 4_096;
/// Significant bits of a value beyond [`EXACT`] distinct ones.
const BITS: u32 = 6;

/// Counts of values: exact for the first 4,096 distinct values, later ones are rounded down to six
/// significant bits, by at most 3.2 %.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    counts: BTreeMap<u64, u64>,
    values: u64,
    sum: u128,
    largest: u64,
}

impl Distribution {
    pub(super) fn add(&mut self, value: u64) {
        self.values += 1;
        self.sum += u128::from(value);
        self.largest = self.largest.max(value);
        if let Some(count) = self.counts.get_mut(&value) {
            *count += 1;
            return;
        }
        let key = if self.counts.len() < EXACT { value } else { rounded(value) };
        *self.counts.entry(key).or_default() += 1;
    }

    /// Number of values.
    pub(super) fn values(&self) -> u64 {
        self.values
    }

    pub(super) fn sum(&self) -> u128 {
        self.sum
    }

    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    /// Mean, or 0 without values.
    pub(super) fn mean(&self) -> f64 {
        if self.values == 0 { 0.0 } else { self.sum as f64 / self.values as f64 }
    }

    /// Smallest value that at least a share `q` of the values does not exceed; 0 without values.
    pub(super) fn quantile(&self, q: f64) -> u64 {
        let rank = (q * self.values as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (value, count) in &self.counts {
            below += count;
            if below >= rank {
                return *value;
            }
        }
        self.largest
    }

    /// Values and counts, by value.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(value, count)| (*value, *count))
    }
}

fn rounded(value: u64) -> u64 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
    value >> shift << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_quantiles_stay_within_the_rounding() {
        let mut all = Distribution::default();
        (0..1_000_000_u64).for_each(|n| all.add(n * 1_000_003));
        assert!(all.counts.len() <= EXACT + 64 * 64, "{}", all.counts.len());
        for q in [0.5, 0.9, 0.99] {
            let exact = q * 1e6 * 1_000_003.0;
            let error = (all.quantile(q) as f64 - exact).abs() / exact;
            assert!(error < 0.032, "{q}: {error}");
        }
        assert_eq!(all.largest(), 999_999 * 1_000_003);
    }
}
