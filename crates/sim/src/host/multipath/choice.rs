//! The policies.

use super::{End, Multipath, PathState};
use sanloom_core::config::PathPolicy;

/// What is outstanding on a path, and how fast it has been lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    commands: u32,
    bytes: u64,
    /// Bytes of recent commands and the time the path needed for them; each new command takes an eighth of the old
    /// sums away.
    recent_bytes: u64,
    recent_ps: u64,
    last_end_ps: u64,
}

/// The path in `state` that the policy prefers among those that `admits`. Of equally good ones the next in turn.
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
    let usable =
        (first..first + count).map(|index| index % count).filter(|&index| multipath.paths[index].state == state);
    let load_of = |index: &usize| &multipath.paths[*index].load;
    let mut candidates = usable.clone().filter(|&index| admits(index as u16));
    match multipath.config.policy {
        PathPolicy::RoundRobin => candidates.next(),
        // Not another one because the first is full: it would be used by and by with every burst.
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
            // Commands overlap: the path worked on this one since the one before ended.
            let began_ps = sent_ps.max(self.last_end_ps);
            let took_ps = now_ps.saturating_sub(began_ps).max(1);
            self.recent_bytes = self.recent_bytes - self.recent_bytes / 8 + u64::from(bytes);
            self.recent_ps = (self.recent_ps - self.recent_ps / 8).saturating_add(took_ps);
            self.last_end_ps = now_ps;
        }
    }

    /// The path comes back after a pause: what it was like before says nothing.
    pub(super) fn forget_speed(&mut self) {
        self.recent_bytes = 0;
        self.recent_ps = 0;
    }

    fn is_measured(&self) -> bool {
        self.recent_bytes > 0
    }

    /// How long the path needs for all that is outstanding and `bytes` more.
    fn expected_ps(&self, bytes: u32) -> u128 {
        let bytes = u128::from(self.bytes) + u128::from(bytes);
        bytes * u128::from(self.recent_ps) / u128::from(self.recent_bytes.max(1))
    }
}
