//! Routers of IP in the results, for the terminal and the HTML page.

use sanloom_api::results::{HostResult, IpRouterResult, Results};

/// Returns the routers with their hosts, in the order of the lab.
pub(super) fn all(results: &Results) -> impl Iterator<Item = (&HostResult, &IpRouterResult)> {
    results.hosts.iter().filter_map(|host| Some((host, host.ip_router.as_ref()?)))
}

/// Returns the routers with their hosts, first those that dropped the most packets.
pub(super) fn worst_first(results: &Results) -> Vec<(&HostResult, &IpRouterResult)> {
    let mut rows: Vec<(&HostResult, &IpRouterResult)> = all(results).collect();
    rows.sort_by_key(|(_, router)| std::cmp::Reverse(router.dropped));
    rows
}
