//! Counters of FCIP links.

use super::{Fcip, Tunnel};
use crate::tcp::Stacks;

/// Counters of a link, with the sums of both ends for TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunnelCount {
    /// TCP connections opened.
    pub connections: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expired retransmission timers.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
}

impl TunnelCount {
    fn pairs<'a>(&'a mut self, other: &'a TunnelCount) -> [(&'a mut u64, u64); 4] {
        [
            (&mut self.connections, other.connections),
            (&mut self.retransmissions, other.retransmissions),
            (&mut self.timeouts, other.timeouts),
            (&mut self.recoveries, other.recoveries),
        ]
    }

    fn add(&mut self, other: &TunnelCount) {
        self.pairs(other).into_iter().for_each(|(own, other)| *own += other);
    }
}

/// Returns the counters of TCP of both ends of the current connection.
fn of_tcp(stacks: &Stacks, tunnel: &Tunnel) -> TunnelCount {
    let mut count = TunnelCount::default();
    for end in [tunnel.end, tunnel.end + 1] {
        let tcp = stacks.connection(end).counters();
        count.add(&TunnelCount {
            connections: 0,
            retransmissions: tcp.retransmissions,
            timeouts: tcp.timeouts.into(),
            recoveries: tcp.recoveries.into(),
        });
    }
    count
}

/// Adds the counters of the current connection, which ends, to those of its link, once.
pub(super) fn keep(fcip: &mut Fcip, number: usize) {
    let tunnel = &mut fcip.tunnels[number];
    if std::mem::take(&mut tunnel.is_open) {
        let tcp = of_tcp(&fcip.stacks, tunnel);
        tunnel.count.add(&tcp);
    }
}

/// Returns the counters of a link since the first login.
fn total(fcip: &Fcip, number: usize) -> TunnelCount {
    let tunnel = &fcip.tunnels[number];
    let mut count = tunnel.count;
    if tunnel.is_open {
        count.add(&of_tcp(&fcip.stacks, tunnel));
    }
    count
}

impl Fcip {
    /// Begins the measured time.
    pub fn restart_counts(&mut self) {
        for number in 0..self.tunnels.len() {
            self.tunnels[number].before = total(self, number);
        }
    }

    /// Returns the counters of the link with this number since the end of the warm-up.
    pub fn count(&self, link: u16) -> Option<TunnelCount> {
        let number = *self.by_link.get(&link)?;
        let mut count = total(self, number);
        let before = self.tunnels[number].before;
        count.pairs(&before).into_iter().for_each(|(own, before)| *own -= before);
        Some(count)
    }
}
