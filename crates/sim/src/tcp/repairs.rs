//! Losses that TCP has repaired: [`Repairs`].

use super::Stacks;

/// Losses that both ends of connections have repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Repairs {
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expired retransmission timers.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
}

impl Repairs {
    /// Returns the repairs of the connection with these ends.
    pub fn of(stacks: &Stacks, ends: [u32; 2]) -> Repairs {
        let of_end = |end| {
            let tcp = stacks.connection(end).counters();
            let (timeouts, recoveries) = (tcp.timeouts.into(), tcp.recoveries.into());
            Repairs { retransmissions: tcp.retransmissions, timeouts, recoveries }
        };
        let [near, far] = ends.map(of_end);
        near.and(&far)
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn and(&self, other: &Repairs) -> Repairs {
        Repairs {
            retransmissions: self.retransmissions + other.retransmissions,
            timeouts: self.timeouts + other.timeouts,
            recoveries: self.recoveries + other.recoveries,
        }
    }

    /// Returns the repairs since an earlier count.
    #[must_use]
    pub fn since(&self, before: &Repairs) -> Repairs {
        Repairs {
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            recoveries: self.recoveries.saturating_sub(before.recoveries),
        }
    }
}
