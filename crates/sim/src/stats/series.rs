//! Time series.

/// One step of a [`Series`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Bytes of the requests that ended in the step.
    pub bytes: u64,
    /// Requests that ended in the step.
    pub ios: u64,
    /// Sum of their latencies in picoseconds.
    pub latency_sum_ps: u64,
}

impl Step {
    /// Returns the mean latency in ps; `None` if no request ended.
    pub fn mean_latency_ps(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.latency_sum_ps as f64 / self.ios as f64)
    }

    fn add(&mut self, other: Step) {
        self.bytes += other.bytes;
        self.ios += other.ios;
        self.latency_sum_ps = self.latency_sum_ps.saturating_add(other.latency_sum_ps);
    }
}

/// Bytes, requests and latency per interval of time.
///
/// Memory is bounded. A series that would need more than `max_steps` steps of 24 bytes merges them
/// in pairs and continues with twice the interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    start_ps: u64,
    interval_ps: u64,
    max_steps: usize,
    steps: Vec<Step>,
}

impl Series {
    /// Returns an empty series that starts at `start_ps`, with steps of `interval_ps` (at least 1)
    /// and at most `max_steps` (at least 2) of them. Memory for the steps until `end_ps` is
    /// reserved at once.
    pub fn new(start_ps: u64, end_ps: u64, interval_ps: u64, max_steps: usize) -> Series {
        let interval_ps = interval_ps.max(1);
        let max_steps = max_steps.max(2);
        let expected = end_ps.saturating_sub(start_ps) / interval_ps + 1;
        let capacity = usize::try_from(expected).map_or(max_steps, |n| n.min(max_steps));
        Series { start_ps, interval_ps, max_steps, steps: Vec::with_capacity(capacity) }
    }

    /// Adds a request of `bytes` that ended at `now_ps` with the given latency. Requests before the
    /// start are ignored.
    pub fn record(&mut self, now_ps: u64, bytes: u64, latency_ps: u64) {
        let Some(since_start_ps) = now_ps.checked_sub(self.start_ps) else {
            return;
        };
        let mut index = since_start_ps / self.interval_ps;
        while index >= self.max_steps as u64 {
            self.join_pairs();
            index = since_start_ps / self.interval_ps;
        }
        let index = index as usize;
        if index >= self.steps.len() {
            self.steps.resize(index + 1, Step::default());
        }
        self.steps[index].add(Step { bytes, ios: 1, latency_sum_ps: latency_ps });
    }

    /// Returns the start of the first step.
    pub fn start_ps(&self) -> u64 {
        self.start_ps
    }

    /// Returns the width of a step. It starts as the constructor's interval and doubles each time
    /// the steps are merged.
    pub fn interval_ps(&self) -> u64 {
        self.interval_ps
    }

    /// Returns the steps from the start to the last one in which a request ended.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn join_pairs(&mut self) {
        let joined = self.steps.len().div_ceil(2);
        for index in 0..joined {
            let mut step = self.steps[2 * index];
            if let Some(&second) = self.steps.get(2 * index + 1) {
                step.add(second);
            }
            self.steps[index] = step;
        }
        self.steps.truncate(joined);
        self.interval_ps = self.interval_ps.saturating_mul(2);
    }
}
