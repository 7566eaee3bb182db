//! Averages over time.

/// A level that changes in steps, such as the depth of a queue or busy (1) and idle (0), with its average over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeWeighted {
    level: u64,
    max: u64,
    start_ps: u64,
    last_ps: u64,
    /// Sum of level times picoseconds from `start_ps` to `last_ps`.
    area: u128,
}

impl TimeWeighted {
    /// A level of 0, watched from `start_ps`.
    pub fn new(start_ps: u64) -> TimeWeighted {
        TimeWeighted { start_ps, last_ps: start_ps, ..TimeWeighted::default() }
    }

    /// The level is `level` from `now_ps` on. An earlier time than the last one counts as the last one.
    pub fn set(&mut self, now_ps: u64, level: u64) {
        self.area = self.area_at(now_ps);
        self.last_ps = self.last_ps.max(now_ps);
        self.level = level;
        self.max = self.max.max(level);
    }

    /// The level rises by `by`.
    pub fn raise(&mut self, now_ps: u64, by: u64) {
        self.set(now_ps, self.level.saturating_add(by));
    }

    /// The level falls by `by`, at most to 0.
    pub fn lower(&mut self, now_ps: u64, by: u64) {
        self.set(now_ps, self.level.saturating_sub(by));
    }

    /// Forgets everything before `now_ps` except the level: the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        let level = self.level;
        *self = TimeWeighted::new(now_ps);
        self.level = level;
        self.max = level;
    }

    /// The level now.
    pub fn level(&self) -> u64 {
        self.level
    }

    /// The highest level since the start.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The average from the start to `now_ps`; the level itself if no time has passed.
    pub fn mean(&self, now_ps: u64) -> f64 {
        let elapsed_ps = now_ps.saturating_sub(self.start_ps);
        if elapsed_ps == 0 {
            return self.level as f64;
        }
        self.area_at(now_ps) as f64 / elapsed_ps as f64
    }

    /// Sum of level times picoseconds from the start to `now_ps`. For a busy flag: the busy time.
    pub fn area_at(&self, now_ps: u64) -> u128 {
        let since_last_ps = now_ps.saturating_sub(self.last_ps);
        self.area + u128::from(self.level) * u128::from(since_last_ps)
    }
}
