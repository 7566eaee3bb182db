//! The table of routers of IP.

use super::*;
use crate::report::routers::{all, worst_first};
use sanloom_api::results::IpRouterResult;

/// Returns the number of packets that routers have dropped, with the routers; `None` without any.
pub(super) fn drops(results: &Results) -> Option<String> {
    let dropping = || all(results).filter(|(_, router)| router.dropped > 0);
    let total: u64 = dropping().map(|(_, router)| router.dropped).sum();
    let of =
        |(host, router): (&HostResult, &IpRouterResult)| format!("{} {}", grouped(router.dropped), clean(&host.name));
    let all: Vec<String> = dropping().take(MAX_ROWS).map(of).collect();
    (total > 0).then(|| format!("Packets dropped by routers: {} ({})", grouped(total), all.join(", ")))
}

pub(super) fn table(out: &mut String, results: &Results, width: usize) {
    let rows = worst_first(results);
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Routers of IP"),
        Column::right("packets"),
        Column::right("dropped"),
        Column::right("busy"),
    ]);
    for (host, router) in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            clean(&host.name),
            grouped(router.forwarded),
            grouped(router.dropped),
            percent(router.utilisation),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}
