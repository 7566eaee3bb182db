//! A server that processes one item at a time.

/// A FIFO server for one item at a time, such as a processor or a bus. Work that arrives while it
/// is busy waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FifoServer {
    free_at_ps: u64,
    /// All work ever assigned, including the unfinished part, in ps.
    given_ps: u128,
    start_ps: u64,
}

impl FifoServer {
    /// Queues work of `duration_ps` at `now_ps`, which must not decrease, and returns the time of
    /// completion.
    pub fn occupy(&mut self, now_ps: u64, duration_ps: u64) -> u64 {
        let done_ps = self.free_at_ps.max(now_ps).saturating_add(duration_ps);
        self.occupy_until(now_ps, done_ps)
    }

    /// Like [`FifoServer::occupy`], for callers that know the time of completion.
    pub fn occupy_until(&mut self, now_ps: u64, done_ps: u64) -> u64 {
        let begin_ps = self.free_at_ps.max(now_ps);
        let done_ps = done_ps.max(begin_ps);
        self.given_ps += u128::from(done_ps - begin_ps);
        self.free_at_ps = done_ps;
        done_ps
    }

    /// Returns the time at which all work queued so far is complete.
    pub fn free_at_ps(&self) -> u64 {
        self.free_at_ps
    }

    /// Returns the busy time from the start of the measurement to `now_ps`, in ps. `now_ps` must
    /// not be earlier than the last arrival of work.
    pub fn busy_ps(&self, now_ps: u64) -> u128 {
        let still_to_do_ps = self.free_at_ps.saturating_sub(now_ps);
        self.given_ps.saturating_sub(u128::from(still_to_do_ps))
    }

    /// Returns the busy share of the time from the start of the measurement to `now_ps`, 0 to 1.
    pub fn utilisation(&self, now_ps: u64) -> f64 {
        let elapsed_ps = now_ps.saturating_sub(self.start_ps);
        if elapsed_ps == 0 {
            return 0.0;
        }
        self.busy_ps(now_ps) as f64 / elapsed_ps as f64
    }

    /// Restarts the measurement at `now_ps`, the end of the warm-up. Unfinished work counts from
    /// then on.
    pub fn restart(&mut self, now_ps: u64) {
        self.start_ps = now_ps;
        self.given_ps = u128::from(self.free_at_ps.saturating_sub(now_ps));
    }
}
