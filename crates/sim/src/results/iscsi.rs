//! Results of the sessions of iSCSI.

use super::view::View;
use crate::iscsi::{Iscsi, Machine, SessionPlan};
use sanloom_api::results::{IpRouterResult, IscsiSessionResult};

/// Returns the sessions of hosts. A session of a virtualization switch with a back end is not a
/// path of a host.
pub(super) fn sessions(view: &View<'_>) -> Vec<IscsiSessionResult> {
    let Some(iscsi) = &view.world.iscsi else { return Vec::new() };
    let of_host = |(_, plan): &(u32, &SessionPlan)| matches!(plan.initiator, Machine::Host(_));
    (0..).zip(iscsi.plans()).filter(of_host).map(|(number, plan)| session(view, iscsi, number, plan)).collect()
}

fn session(view: &View<'_>, iscsi: &Iscsi, number: u32, plan: &SessionPlan) -> IscsiSessionResult {
    let count = iscsi.count(number);
    let host = &view.world.lab.hosts[usize::from(plan.host)].name;
    let window = |side| iscsi.connection(number, side).map_or(0, |tcp| tcp.congestion_window().into());
    IscsiSessionResult {
        name: format!("{host} {}", view.names.session(plan.host, plan.hba, plan.storage, plan.port)),
        state: if iscsi.is_up(number) { "up" } else { "down" }.to_owned(),
        connections: count.connections,
        pdus_sent: count.pdus_sent,
        pdus_received: count.pdus_received,
        commands: count.commands,
        command_waits: count.command_waits,
        r2ts: count.r2ts,
        segments_retransmitted: count.repairs.retransmissions,
        retransmission_timeouts: count.repairs.timeouts,
        fast_recoveries: count.repairs.recoveries,
        host_window_bytes: window(0),
        storage_window_bytes: window(1),
    }
}

/// Returns the work of a host as a router.
pub(super) fn router(view: &View<'_>, host: u16) -> Option<IpRouterResult> {
    let (_, count) = view.world.iscsi.as_ref()?.routers().find(|(plan, _)| plan.host == host)?;
    let utilisation = (count.busy_ps as f64 / view.measured_ps.max(1) as f64).min(1.0);
    Some(IpRouterResult { forwarded: count.forwarded, dropped: count.dropped, utilisation })
}
