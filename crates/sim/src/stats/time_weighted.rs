//! Averages over time.

/// A level that changes in steps, with its average over time. Examples are the depth of a queue, or
/// busy (1) and idle (0).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeWeighted {
    level: u64,
    max: u64,
    start_ps: u64,
    last_ps: u64,
    /// Integral of the level over time from `start_ps` to `last_ps`, in level × ps.
    area: u128,
}

impl TimeWeighted {
    /// Returns a level of 0 that is measured from `start_ps`.
    pub fn new(start_ps: u64) -> TimeWeighted {
        TimeWeighted { start_ps, last_ps: start_ps, ..TimeWeighted::default() }
    }

    /// Sets the level from `now_ps` on. A time before the last change is treated as the time of
    /// that change.
    pub fn set(&mut self, now_ps: u64, level: u64) {
        self.area = self.area_at(now_ps);
        self.last_ps = self.last_ps.max(now_ps);
        self.level = level;
        self.max = self.max.max(level);
    }

    /// Increases the level by `by`.
    pub fn raise(&mut self, now_ps: u64, by: u64) {
        self.set(now_ps, self.level.saturating_add(by));
    }

    /// Decreases the level by `by`, at most to 0.
    pub fn lower(&mut self, now_ps: u64, by: u64) {
        self.set(now_ps, self.level.saturating_sub(by));
    }

    /// Restarts the measurement at `now_ps`, the end of the warm-up, and keeps the level.
    pub fn restart(&mut self, now_ps: u64) {
        let level = self.level;
        *self = TimeWeighted::new(now_ps);
        self.level = level;
        self.max = level;
    }

    /// Returns the current level.
    pub fn level(&self) -> u64 {
        self.level
    }

    /// Returns the highest level since the start.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the average from the start to `now_ps`, or the level if no time has passed.
    pub fn mean(&self, now_ps: u64) -> f64 {
        let elapsed_ps = now_ps.saturating_sub(self.start_ps);
        if elapsed_ps == 0 {
            return self.level as f64;
        }
        self.area_at(now_ps) as f64 / elapsed_ps as f64
    }

    /// Returns the integral of the level over time from the start to `now_ps`, in level × ps. For a
    /// busy flag, this is the busy time.
    pub fn area_at(&self, now_ps: u64) -> u128 {
        let since_last_ps = now_ps.saturating_sub(self.last_ps);
        self.area + u128::from(self.level) * u128::from(since_last_ps)
    }
}
