//! Results of the FCIP links over Ethernet.

use super::view::View;
use crate::fcip::Fcip;
use sanloom_api::results::FcipLinkResult;

pub(super) fn links(view: &View<'_>) -> Vec<FcipLinkResult> {
    let Some(fcip) = &view.world.fcip else { return Vec::new() };
    fcip.plans().filter_map(|plan| link(view, fcip, plan.link)).collect()
}

fn link(view: &View<'_>, fcip: &Fcip, number: u16) -> Option<FcipLinkResult> {
    let count = fcip.count(number)?;
    let ends = fcip.connections(number)?;
    let [from_window_bytes, to_window_bytes] = ends.map(|end| end.congestion_window().into());
    let round_trips = ends.into_iter().filter_map(|end| end.round_trip());
    Some(FcipLinkResult {
        name: view.world.lab.links[usize::from(number)].name.clone(),
        state: if fcip.is_up(number) == Some(true) { "up" } else { "down" }.to_owned(),
        connections: count.connections,
        frames: [0, 1].map(|side| view.lanes[2 * usize::from(number) + side].frames).into_iter().sum(),
        segments_retransmitted: count.repairs.retransmissions,
        retransmission_timeouts: count.repairs.timeouts,
        fast_recoveries: count.repairs.recoveries,
        from_window_bytes,
        to_window_bytes,
        round_trip_us: round_trips.map(|span| span.as_ns() as f64 / 1e3).fold(0.0, f64::max),
    })
}
