//! Burstiness: counts of arrivals in windows of several lengths.
//!
//! The index of dispersion is the variance of the counts divided by their mean: 1 for a Poisson
//! process at every length, growing with the length if bursts are correlated. The Hurst parameter
//! follows from the slope of the variance-time plot (Leland, Taqqu, Willinger, Wilson: On the
//! Self-Similar Nature of Ethernet Traffic, IEEE/ACM Transactions on Networking 2 (1), 1994,
//! section 4): 0.5 without long-range dependence, towards 1 with it.

use serde::Serialize;

/// Length of the shortest window: 1 ms.
const FIRST_PS: u64 = 1_000_000_000;
/// Windows of one length in a window of the next.
const STEP: u64 = 4;
/// Number of lengths: 1 ms to 262 s.
const SCALES: usize = 10;
/// Fewest windows of a length in the plot.
const FEWEST: u64 = 10;

/// Counts of arrivals in windows of one length.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Burst {
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Number of whole windows in the trace.
    pub windows: u64,
    /// Variance of the number of arrivals in a window, divided by its mean.
    pub index_of_dispersion: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Scale {
    /// Sum of the windows of the shorter length in the open window, and their number.
    open: u64,
    parts: u64,
    windows: u64,
    sum: u64,
    squares: u128,
}

/// Counter of arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    scales: [Scale; SCALES],
    /// Window of the shortest length, and the arrivals in it.
    window: u64,
    count: u64,
}

impl Counts {
    /// Counts an arrival; times are since the first one and do not decrease.
    pub(super) fn add(&mut self, since_ps: u64) {
        let window = since_ps / FIRST_PS;
        if window > self.window {
            self.push(0, self.count);
            self.zeros(0, window - self.window - 1);
            (self.window, self.count) = (window, 0);
        }
        self.count += 1;
    }

    /// Adds a whole window of a length.
    fn push(&mut self, scale: usize, count: u64) {
        let Some(own) = self.scales.get_mut(scale) else { return };
        own.windows += 1;
        own.sum += count;
        own.squares += u128::from(count) * u128::from(count);
        let Some(next) = self.scales.get_mut(scale + 1) else { return };
        next.open += count;
        next.parts += 1;
        if next.parts == STEP {
            let count = next.open;
            (next.open, next.parts) = (0, 0);
            self.push(scale + 1, count);
        }
    }

    /// Adds whole windows of a length without arrivals.
    fn zeros(&mut self, scale: usize, windows: u64) {
        let mut windows = windows;
        // The open window of the next length is filled one by one, whole ones are added at once.
        while windows > 0 && self.scales.get(scale + 1).is_some_and(|next| next.parts > 0) {
            self.push(scale, 0);
            windows -= 1;
        }
        if windows == 0 {
            return;
        }
        if scale + 1 == SCALES {
            self.scales[scale].windows += windows;
            return;
        }
        self.scales[scale].windows += windows - windows % STEP;
        self.zeros(scale + 1, windows / STEP);
        (0..windows % STEP).for_each(|_| self.push(scale, 0));
    }

    /// Lengths with at least two whole windows.
    pub(super) fn bursts(&self) -> Vec<Burst> {
        let mut length_s = FIRST_PS as f64 / 1e12;
        let mut bursts = Vec::new();
        for scale in self.scales.iter().take_while(|scale| scale.windows >= 2) {
            let (mean, variance) = scale.moments();
            if mean > 0.0 {
                bursts.push(Burst { window_s: length_s, windows: scale.windows, index_of_dispersion: variance / mean });
            }
            length_s *= STEP as f64;
        }
        bursts
    }

    /// Hurst parameter; none if fewer than three lengths have ten windows with a variance.
    pub(super) fn hurst(&self) -> Option<f64> {
        let mut points = Vec::new();
        for (index, scale) in self.scales.iter().enumerate().filter(|(_, scale)| scale.windows >= FEWEST) {
            let (mean, variance) = scale.moments();
            let log_length = index as f64 * libm::log(STEP as f64);
            if mean > 0.0 && variance > 0.0 {
                points.push((log_length, libm::log(variance) - 2.0 * log_length));
            }
        }
        if points.len() < 3 {
            return None;
        }
        let count = points.len() as f64;
        let (mean_x, mean_y) = points.iter().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / count, sum.1 + y / count));
        let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let variance: f64 = points.iter().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
        Some((1.0 + covariance / variance / 2.0).clamp(0.0, 1.0))
    }
}

impl Scale {
    /// Mean and variance of the counts.
    fn moments(&self) -> (f64, f64) {
        let windows = self.windows as f64;
        let mean = self.sum as f64 / windows;
        (mean, (self.squares as f64 / windows - mean * mean).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts in windows of one length, one window after the other.
    fn plain(times_ps: &[u64], scale: u32) -> (u64, f64) {
        let length = FIRST_PS * STEP.pow(scale);
        // The last window of 1 ms is still open.
        let whole = times_ps.last().map_or(0, |last| last / FIRST_PS * FIRST_PS / length);
        let counts: Vec<f64> =
            (0..whole).map(|window| times_ps.iter().filter(|time| **time / length == window).count() as f64).collect();
        let mean = counts.iter().sum::<f64>() / whole as f64;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / whole as f64;
        (whole, variance / mean)
    }

    #[test]
    fn counts_with_long_gaps_are_those_of_a_plain_loop() {
        let mut times = Vec::new();
        let (mut time, mut state) = (0_u64, 1_u64);
        for _ in 0..400 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            time += match state >> 61 {
                0 => (state >> 40) * FIRST_PS / 100_000,
                _ => FIRST_PS / 7,
            };
            times.push(time);
        }
        let mut counts = Counts::default();
        times.iter().for_each(|time| counts.add(*time));
        let bursts = counts.bursts();
        assert!(bursts.len() >= 5, "{bursts:?}");
        for (scale, burst) in bursts.iter().enumerate() {
            let (windows, dispersion) = plain(&times, scale as u32);
            assert_eq!(burst.windows, windows);
            assert!((burst.index_of_dispersion - dispersion).abs() < 1e-9 * dispersion, "{burst:?} {dispersion}");
        }
    }
}
