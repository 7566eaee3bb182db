//! Detection of the warm-up in a series of observations.

/// Observations of one batch.
const BATCH: usize = 5;
/// Batches at the end that are never the steady part alone. A few of them may be equal by chance,
/// which looks like the smallest error (K. Hoad, S. Robinson, R. Davies, "Automating warm-up length
/// estimation", Journal of the Operational Research Society 61, 2010).
const LAST: usize = 5;

/// Returns the number of observations at the beginning that belong to the warm-up, by MSER-5
/// (K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
/// Simulation 69, 1997; K. P. White, M. J. Cobb, S. C. Spratt, Winter Simulation Conference 2000).
///
/// The observations are averaged in batches of five. The truncation minimises the squared standard
/// error of the mean of the remaining batches, as if they were independent: Σ (y - mean)² / n².
/// Among equal minima it is the shortest one.
///
/// Returns `None` if the minimum is in the second half of the series, because the series is then
/// too short to find the end of the warm-up, and for fewer than ten batches. A remainder that fills
/// no batch is ignored.
pub fn warm_up(observations: &[f64]) -> Option<usize> {
    let batches: Vec<f64> =
        observations.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if batches.len() < 2 * LAST {
        return None;
    }
    // Values around their mean, because differences of large squares lose digits.
    let centre = batches.iter().sum::<f64>() / batches.len() as f64;
    // Rounding makes no difference between the errors of equal values.
    let rounding = 1e-12 * batches.iter().map(|batch| (batch - centre) * (batch - centre)).sum::<f64>();
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    let (mut best, mut least) = (0, f64::INFINITY);
    for (at, batch) in batches.iter().enumerate().rev() {
        let value = batch - centre;
        sum += value;
        squares += value * value;
        count += 1.0;
        if batches.len() - at < LAST {
            continue;
        }
        let error = (squares - sum * sum / count).max(0.0) / (count * count);
        if error <= least + rounding {
            (best, least) = (at, least.min(error));
        }
    }
    (best <= batches.len() / 2).then_some(best * BATCH)
}
