//! Demerit figure: distance of two distributions of response times.
//!
//! Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3),
//! 1994. The figure is the root mean square of the horizontal distance between two cumulative
//! distributions. Times are rounded to microseconds, the steps of DiskSim's histograms.

/// Picoseconds in a microsecond.
const PS_PER_US: u64 = 1_000_000;

/// Response times as a distribution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distribution {
    /// Times in microseconds, sorted.
    sorted_us: Vec<u64>,
}

impl Distribution {
    /// Creates the distribution of times in picoseconds.
    pub fn new(times_ps: impl IntoIterator<Item = u64>) -> Distribution {
        let mut sorted_us: Vec<u64> =
            times_ps.into_iter().map(|time_ps| (time_ps + PS_PER_US / 2) / PS_PER_US).collect();
        sorted_us.sort_unstable();
        Distribution { sorted_us }
    }

    /// Number of times.
    pub fn len(&self) -> usize {
        self.sorted_us.len()
    }

    /// True if there are no times.
    pub fn is_empty(&self) -> bool {
        self.sorted_us.is_empty()
    }

    /// Returns the mean in microseconds; 0 without times.
    pub fn mean_us(&self) -> f64 {
        self.sorted_us.iter().sum::<u64>() as f64 / self.len().max(1) as f64
    }

    /// Returns the time in microseconds below which a share of the times lies; 0 without times.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let last = self.len().saturating_sub(1);
        let index = ((share * self.len() as f64) as usize).min(last);
        self.sorted_us.get(index).map_or(0.0, |us| *us as f64)
    }

    /// Returns the root mean square of the horizontal distance to another distribution, in
    /// microseconds; 0 if one of them is empty.
    pub fn demerit_us(&self, other: &Distribution) -> f64 {
        let (a, b) = (self.len() as u64, other.len() as u64);
        if a == 0 || b == 0 {
            return 0.0;
        }
        // Shares count in steps of 1/(a b), so both distributions have whole steps.
        let (mut at, mut sum) = (0, 0.0);
        while at < a * b {
            let (i, j) = (at / b, at / a);
            let next = ((i + 1) * b).min((j + 1) * a);
            let distance = self.sorted_us[i as usize].abs_diff(other.sorted_us[j as usize]) as f64;
            sum += distance * distance * (next - at) as f64;
            at = next;
        }
        (sum / (a * b) as f64).sqrt()
    }

    /// Returns the demerit figure in percent of the mean of `measured`.
    pub fn demerit_percent(&self, measured: &Distribution) -> f64 {
        100.0 * self.demerit_us(measured) / measured.mean_us()
    }
}
