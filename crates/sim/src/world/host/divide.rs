//! The hosts of a world that is divided for several threads.

use super::Hosts;
use crate::world::RequestTotals;

/// Exchanges the state of some hosts and N_Ports with another world. The measurements of the
/// workloads on these hosts move, except those of all hosts together.
pub(in crate::world) fn hand_over(from: &mut Hosts, to: &mut Hosts, hosts: &[u16], nports: &[u16]) {
    debug_assert!(!from.has_completions(), "completions are processed before the world is divided");
    for &host in hosts {
        std::mem::swap(&mut from.nodes[usize::from(host)], &mut to.nodes[usize::from(host)]);
        from.workloads.iter_mut().zip(&mut to.workloads).for_each(|(own, other)| own.swap_host(other, host));
    }
    for &nport in nports {
        std::mem::swap(&mut from.initiators[usize::from(nport)], &mut to.initiators[usize::from(nport)]);
        from.windows.swap(&mut to.windows, nport);
    }
}

/// Adds the sums of the hosts of another part of the world, whose totals began with `base`.
pub(in crate::world) fn add_counts(hosts: &mut Hosts, part: &mut Hosts, base: RequestTotals) {
    hosts.totals.issued += part.totals.issued - base.issued;
    hosts.totals.completed += part.totals.completed - base.completed;
    hosts.totals.failed += part.totals.failed - base.failed;
    hosts.workloads.iter_mut().zip(&mut part.workloads).for_each(|(own, part)| own.add_sums(part));
}
