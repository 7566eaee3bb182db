//! What many measurements come to: [`median`], [`percentile`], [`geometric_mean`].

/// Of ascending values, the smallest that at least this share of them does not exceed; the default value if there are none.
pub fn percentile<T: Copy + Default>(ascending: &[T], share: f64) -> T {
    let rank = (share * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The value in the middle, or halfway between the two there; 0 if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let ascending = sorted(values);
    let middle = ascending.len() / 2;
    match ascending.len() {
        0 => 0.0,
        len if len % 2 == 0 => f64::midpoint(ascending[middle - 1], ascending[middle]),
        _ => ascending[middle],
    }
}

/// Ascending.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The mean of ratios; 1 if there are none.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    let logs: f64 = ratios.iter().map(|ratio| ratio.max(1e-9).ln()).sum();
    (logs / ratios.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_percentiles_and_means_are_those_of_the_textbook() {
        assert_eq!([median([3.0, 1.0, 2.0]), median([4.0, 1.0]), median([])], [2.0, 2.5, 0.0]);
        let thousand: Vec<u64> = (1..=1000).collect();
        assert_eq!([0.0, 0.5, 0.99, 0.999].map(|share| percentile(&thousand, share)), [1, 500, 990, 999]);
        assert_eq!(percentile::<u64>(&[], 0.5), 0);
        assert_eq!(percentile(&sorted([4.0, 1.0, 3.0, 2.0]), 0.99), 4.0);
        assert!((geometric_mean(&[0.5, 2.0, 8.0]) - 2.0).abs() < 1e-9);
    }
}
