//! Counters of FCIP links.

use super::{Fcip, Tunnel};
use crate::tcp::{Repairs, Stacks};

/// Counters of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunnelCount {
    /// TCP connections opened.
    pub connections: u64,
    pub repairs: Repairs,
}

/// Adds the counters of the current connection, which ends, to those of its link, once.
pub(super) fn keep(fcip: &mut Fcip, number: usize) {
    let tunnel = &mut fcip.tunnels[number];
    if std::mem::take(&mut tunnel.is_open) {
        tunnel.count.repairs = tunnel.count.repairs.and(&of_tcp(&fcip.stacks, tunnel));
    }
}

/// Repairs of the current connection.
fn of_tcp(stacks: &Stacks, tunnel: &Tunnel) -> Repairs {
    Repairs::of(stacks, [tunnel.end, tunnel.end + 1])
}

/// Returns the counters of a link since the first login.
fn total(fcip: &Fcip, number: usize) -> TunnelCount {
    let tunnel = &fcip.tunnels[number];
    let TunnelCount { connections, repairs } = tunnel.count;
    match tunnel.is_open {
        true => TunnelCount { connections, repairs: repairs.and(&of_tcp(&fcip.stacks, tunnel)) },
        false => tunnel.count,
    }
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
        let (now, before) = (total(self, number), self.tunnels[number].before);
        Some(TunnelCount {
            connections: now.connections - before.connections,
            repairs: now.repairs.since(&before.repairs),
        })
    }
}
