//! Conversion of a world at the end of its run to the values of `sanloom-api`.
//!
//! Counts are integers in the world and become floats only in [`sanloom_api::results::measure`].
//! Times are relative to the start of the workloads.

mod ethernet;
mod events;
mod fcip;
mod findings;
mod hosts;
mod infiniband;
mod iscsi;
mod links;
mod loops;
mod names;
mod ports;
mod series;
mod storage;
mod view;

use crate::net::Loss;
use crate::world::World;
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{Conservation, LabInfo, Results};
use std::collections::BTreeMap;
use view::View;

pub(crate) use names::Names;

/// Number of hosts above which the histograms of single hosts are left out.
const MAX_HOST_HISTOGRAMS: usize = 64;

/// Returns the results of a run. `interrupted` means that it was stopped before its end.
pub fn of(world: &World, interrupted: bool) -> Results {
    let view = View::new(world);
    let mut results = Results {
        lab: lab(&view, interrupted),
        totals: hosts::totals(&view),
        hosts: hosts::hosts(&view),
        streams: hosts::streams(&view),
        links: links::links(&view),
        ports: ports::ports(&view),
        storage: storage::storage(&view),
        loops: loops::results(&view),
        ethernet_links: ethernet::links(&view),
        ethernet_switches: ethernet::switches(&view),
        iscsi_sessions: iscsi::sessions(&view),
        fcip_links: fcip::links(&view),
        infiniband_links: infiniband::links(&view),
        srp_channels: infiniband::channels(&view),
        subnet: infiniband::subnet(&view),
        switches: ports::switches(&view),
        drops: drops(world),
        conservation: conservation(world),
        faults: events::faults(&view),
        events: events::events(&view),
        series: series::series(&view),
        ..Results::default()
    };
    results.lab.settled_s = series::settled_s(&view, &results.series);
    results.findings = findings::findings(&view, &results);
    results
}

fn lab(view: &View<'_>, interrupted: bool) -> LabInfo {
    let lab = &view.world.lab;
    LabInfo {
        name: lab.name.clone(),
        description: lab.description.clone(),
        seed: lab.run.seed,
        duration_s: s_of_ps(view.world.run_ps()),
        warmup_s: s_of_ps(view.from_ps - view.world.start_ps),
        interrupted,
        sanloom_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..LabInfo::default()
    }
}

fn drops(world: &World) -> BTreeMap<String, u64> {
    let lost = Loss::ALL.iter().zip(world.measured().lost()).filter(|&(_, frames)| frames > 0);
    lost.map(|(why, frames)| (why.name().to_owned(), frames)).collect()
}

fn conservation(world: &World) -> Conservation {
    let (fate, books) = (&world.net.fc.fate, &world.hosts.totals);
    Conservation {
        frames_sent: fate.sent,
        frames_delivered: fate.delivered,
        frames_dropped: fate.lost_frames(),
        frames_in_flight: world.net.fc.frames_in_flight(),
        commands_issued: books.issued,
        commands_completed: books.completed,
        commands_failed: books.failed,
        commands_in_flight: world.hosts.requests_in_flight(),
    }
}

#[cfg(test)]
mod tests {
    use crate::net::{Loss, ethernet, infiniband};
    use sanloom_api::results::drops;

    #[test]
    fn every_reason_for_a_loss_is_known_to_expectations() {
        assert_eq!(Loss::ALL.map(Loss::name), drops::FRAMES);
        use ethernet::PacketLoss::*;
        let all = [Congestion, Headroom, Fcs, FrameLoss, LinkDown, Vlan, TooLong, NoPath];
        assert_eq!(all.map(ethernet::PacketLoss::name), drops::ETHERNET);
        use infiniband::PacketLoss as P;
        let all =
            [P::Lifetime, P::Stalled, P::Crc, P::PacketLoss, P::LinkDown, P::NoPath, P::NoLane, P::ManagementFull];
        assert_eq!(all.map(P::name), drops::INFINIBAND);
    }
}
