//! Fairness index.

/// Returns Jain's index of `shares`: 1 if all are equal, 1/n if all but one are 0 (R. Jain,
/// D. Chiu, W. Hawe, 1984). Returns `None` without shares, or if all are 0.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}
