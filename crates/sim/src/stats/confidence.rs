//! Confidence intervals of means.

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ConfidenceInterval {
    pub mean: f64,
    /// Half width of the interval. The true mean lies within `mean` ± `half_width` with 95 %
    /// confidence, if the samples are independent and roughly normal.
    pub half_width: f64,
    /// Number of samples.
    pub samples: usize,
}

impl ConfidenceInterval {
    /// Returns the interval of independent samples, one per replication of a run; `None` with fewer
    /// than two.
    pub fn of_samples(samples: &[f64]) -> Option<ConfidenceInterval> {
        if samples.len() < 2 {
            return None;
        }
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
        let standard_error = libm::sqrt(squares / (count - 1.0) / count);
        Some(ConfidenceInterval {
            mean,
            half_width: student_t_975(samples.len() - 1) * standard_error,
            samples: samples.len(),
        })
    }

    /// Returns the interval of correlated `observations` of one run. The means of `batches` (at
    /// least 2) equal parts are treated as independent samples. A remainder that fills no batch is
    /// left out. Returns `None` if there are fewer observations than batches.
    pub fn of_batches(observations: &[f64], batches: usize) -> Option<ConfidenceInterval> {
        let length = observations.len() / batches.max(2);
        if length == 0 {
            return None;
        }
        let means: Vec<f64> = observations
            .chunks_exact(length)
            .take(batches.max(2))
            .map(|batch| batch.iter().sum::<f64>() / length as f64)
            .collect();
        ConfidenceInterval::of_samples(&means)
    }

    /// Returns half width / mean: 0.05 means ± 5 %. Returns `None` for a mean of 0.
    pub fn relative(&self) -> Option<f64> {
        (self.mean != 0.0).then(|| self.half_width / self.mean.abs())
    }
}

/// Batch means of a run of unknown length in constant memory.
///
/// Batches have equal length. When twice the requested number is full, neighbours are merged and
/// later batches are twice as long.
#[derive(Clone, Debug)]
pub struct BatchMeans {
    batches: usize,
    length: u64,
    full: Vec<u128>,
    filling: u128,
    filled: u64,
}

impl BatchMeans {
    /// Returns an empty accumulator. Once there are `batches` observations (at least 2), it has at
    /// least as many full batches.
    pub fn new(batches: usize) -> BatchMeans {
        let batches = batches.max(2);
        BatchMeans { batches, length: 1, full: Vec::with_capacity(2 * batches), filling: 0, filled: 0 }
    }

    /// Adds one observation, such as a latency in ps.
    pub fn add(&mut self, value: u64) {
        self.filling += u128::from(value);
        self.filled += 1;
        if self.filled < self.length {
            return;
        }
        self.full.push(self.filling);
        self.filling = 0;
        self.filled = 0;
        if self.full.len() == 2 * self.batches {
            for index in 0..self.batches {
                self.full[index] = self.full[2 * index] + self.full[2 * index + 1];
            }
            self.full.truncate(self.batches);
            self.length *= 2;
        }
    }

    /// Returns the means of the full batches, in order of time.
    pub fn means(&self) -> Vec<f64> {
        self.full.iter().map(|&sum| sum as f64 / self.length as f64).collect()
    }

    /// Returns the interval of all full batches; `None` with fewer than two.
    pub fn interval(&self) -> Option<ConfidenceInterval> {
        ConfidenceInterval::of_samples(&self.means())
    }
}

/// Returns the 97.5 % quantile of Student's t distribution with `degrees` degrees of freedom: the
/// factor of a two-sided 95 % interval. Infinite for 0 degrees.
///
/// Up to 30 degrees the value comes from the standard table. Beyond, it is the expansion around the
/// normal quantile (M. Abramowitz and I. Stegun, 26.7.5), which is accurate to six digits there.
pub fn student_t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
        2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
        2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
    ];
    const NORMAL: f64 = 1.959_963_985;
    if degrees == 0 {
        return f64::INFINITY;
    }
    if let Some(&t) = TABLE.get(degrees - 1) {
        return t;
    }
    let n = degrees as f64;
    let z = NORMAL;
    let z2 = z * z;
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let third = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    z + (first + (second + third / n) / n) / n
}
