//! The path selection policies.

use super::{End, Multipath, Path, PathState};
use sanloom_fc::config::PathPolicy;

/// Outstanding work and recent throughput of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    commands: u32,
    bytes: u64,
    /// Bytes of recent commands, and the time the path needed for them. Each new command reduces
    /// the old sums by one eighth.
    recent_bytes: u64,
    recent_ps: u64,
    last_end_ps: u64,
}

/// Returns the path in `state` that the policy prefers among those for which `admits` returns true.
/// Among equal paths, round robin decides.
pub(super) fn choose(
    multipath: &Multipath,
    state: PathState,
    bytes: u32,
    admits: impl Fn(u16) -> bool,
) -> Option<usize> {
    let count = multipath.paths.len();
    let first = match multipath.config.policy {
        PathPolicy::Failover => 0,
        _ => usize::from(multipath.last) + 1,
    };
    let with_secondary = multipath.uses_secondary();
    let is_usable = |path: &Path| path.state == state && (with_secondary || !path.is_secondary);
    let usable = (first..first + count).map(|index| index % count).filter(|&index| is_usable(&multipath.paths[index]));
    let load_of = |index: &usize| &multipath.paths[*index].load;
    let candidates = usable.clone().filter(|&index| admits(index as u16));
    match multipath.config.policy {
        // The usual policy is on the path of each command, so it goes without iterators.
        PathPolicy::RoundRobin => {
            let mut index = usize::from(multipath.last);
            for _ in 0..count {
                index = if index + 1 < count { index + 1 } else { 0 };
                if is_usable(&multipath.paths[index]) && admits(index as u16) {
                    return Some(index);
                }
            }
            None
        }
        // Do not fall back to another path because the first is full; otherwise every burst would
        // use it.
        PathPolicy::Failover => usable.clone().next().filter(|&index| admits(index as u16)),
        PathPolicy::LeastQueue => candidates.min_by_key(|index| load_of(index).commands),
        PathPolicy::ServiceTime => {
            let all_measured = usable.clone().all(|index| load_of(&index).is_measured());
            if all_measured {
                let cost = |index: &usize| load_of(index).expected_ps(bytes);
                candidates.min_by_key(cost)
            } else {
                candidates.min_by_key(|index| load_of(index).bytes)
            }
        }
    }
}

impl Load {
    pub(super) fn commands(&self) -> u32 {
        self.commands
    }

    pub(super) fn send(&mut self, bytes: u32) {
        self.commands += 1;
        self.bytes += u64::from(bytes);
    }

    pub(super) fn release(&mut self, bytes: u32, end: End) {
        self.commands = self.commands.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(bytes));
        if let End::Done { sent_ps, now_ps } = end {
            // Commands overlap, so the time for this one starts at the completion of the previous
            // one.
            let began_ps = sent_ps.max(self.last_end_ps);
            let took_ps = now_ps.saturating_sub(began_ps).max(1);
            self.recent_bytes = self.recent_bytes - self.recent_bytes / 8 + u64::from(bytes);
            self.recent_ps = (self.recent_ps - self.recent_ps / 8).saturating_add(took_ps);
            self.last_end_ps = now_ps;
        }
    }

    /// Discards the measured throughput of a path that returns after a failure, because it is no
    /// longer valid.
    pub(super) fn reset_speed(&mut self) {
        self.recent_bytes = 0;
        self.recent_ps = 0;
    }

    fn is_measured(&self) -> bool {
        self.recent_bytes > 0
    }

    /// Returns the expected time for all outstanding bytes and `bytes` more, in ps.
    fn expected_ps(&self, bytes: u32) -> u128 {
        let bytes = u128::from(self.bytes) + u128::from(bytes);
        bytes * u128::from(self.recent_ps) / u128::from(self.recent_bytes.max(1))
    }
}
