//! Results of InfiniBand links and SRP channels.

use super::events::FaultText;
use super::view::View;
use crate::net::infiniband::{Deadlock, PacketLoss};
use crate::world::infiniband::Counts;
use sanloom_api::results::measure::{per_s, ratio, s_of_ps};
use sanloom_api::results::{InfinibandDirection, InfinibandLinkResult, SrpChannelResult, SubnetResult};
use sanloom_fc::config::{Direction, InfinibandFault, InfinibandLink};
use sanloom_fc::san::{Lab, SubnetRoutes};

pub(super) fn links(view: &View<'_>) -> Vec<InfinibandLinkResult> {
    let counts = view.world.measured().infiniband();
    let one = |(number, link): (u32, &InfinibandLink)| InfinibandLinkResult {
        name: link.name.clone(),
        rate: link.rate.name().to_owned(),
        rate_bytes_per_s: link.rate.bytes_per_s() as f64,
        downtime_s: s_of_ps(view.world.infiniband_faults.downtimes.measured_ps(number as u16, view.now_ps)),
        forward: direction(view, &counts, link, 2 * number),
        backward: direction(view, &counts, link, 2 * number + 1),
    };
    (0..).zip(&view.world.lab.infiniband.links).map(one).collect()
}

fn direction(view: &View<'_>, counts: &Counts, link: &InfinibandLink, number: u32) -> InfinibandDirection {
    let lab = &view.world.lab;
    let side = (number % 2) as usize;
    let (line, own) = (&view.world.net.infiniband.lines()[number as usize], &counts.lines[number as usize]);
    let on_line = own.count.line_bytes();
    let waits_ps = own.waits_ps.min(view.measured_ps);
    let lost = || counts.lost(number);
    let is_of_lifetime = |why: PacketLoss| matches!(why, PacketLoss::Lifetime | PacketLoss::Stalled);
    InfinibandDirection {
        from: link.ends[side].name(lab),
        to: link.ends[1 - side].name(lab),
        packets: own.count.packets,
        bytes: own.count.bytes,
        throughput_bytes_per_s: per_s(own.count.bytes, view.measured_ps),
        utilisation: ratio(line.time_of(on_line).min(view.measured_ps), view.measured_ps),
        flow_packets: own.count.flow,
        blocks: lab.infiniband_blocks(link, 1 - side).into(),
        credit_waits: own.waits,
        credit_wait_s: s_of_ps(waits_ps),
        credit_wait_fraction: ratio(waits_ps, view.measured_ps),
        lane_stalls: own.count.stalls,
        packets_lost: lost().map(|(_, packets)| packets).sum(),
        lifetime_drops: lost().filter(|(why, _)| is_of_lifetime(*why)).map(|(_, packets)| packets).sum(),
        drops: lost().map(|(why, packets)| (why.name().to_owned(), packets)).collect(),
    }
}

pub(super) fn channels(view: &View<'_>) -> Vec<SrpChannelResult> {
    let Some(srp) = &view.world.srp else { return Vec::new() };
    let lab = &view.world.lab;
    let interfaces = lab.infiniband_interfaces();
    let one = |(number, plan): (u32, &crate::srp::ChannelPlan)| {
        let [from, to] = plan.interfaces.map(|interface| interfaces[usize::from(interface)].end.name(lab));
        let count = srp.count(number);
        SrpChannelResult {
            name: format!("{from}>{to}"),
            is_up: srp.is_up(number),
            connections: count.connections,
            requests: count.requests,
            responses: count.responses,
            credit_waits: count.credit_waits,
            rdma_written_bytes: count.rdma_bytes[0],
            rdma_read_bytes: count.rdma_bytes[1],
            partition_refusals: count.partition_refusals,
            repetitions: count.repetitions,
        }
    };
    (0..).zip(srp.plans()).map(one).collect()
}

pub(super) fn subnet(view: &View<'_>) -> Option<SubnetResult> {
    if view.world.lab.infiniband.links.is_empty() {
        return None;
    }
    let (engine, refusal) = view.world.net.infiniband.routing();
    Some(SubnetResult {
        routing: engine.to_string(),
        refusal: refusal.map(|refusal| SubnetRoutes::refusal_text(&view.world.lab, refusal)),
        sweeps: view.world.measured().infiniband().sweeps,
        deadlocks: deadlocks(view),
    })
}

/// Returns 1 if lanes waited for each other in a circle since the end of the warm-up, or 0.
pub(super) fn deadlocks(view: &View<'_>) -> u64 {
    deadlock(view).is_some().into()
}

/// Returns the first circle of lanes that was found since the end of the warm-up, or else the one
/// that holds at the end of the run.
pub(super) fn deadlock(view: &View<'_>) -> Option<Deadlock> {
    let plane = &view.world.net.infiniband;
    plane.deadlocks().first().cloned().or_else(|| plane.standing_deadlock(view.now_ps))
}

/// Returns the description of a fault.
pub(super) fn fault_text(lab: &Lab, fault: InfinibandFault) -> FaultText {
    let of_link = |link: u16| &lab.infiniband.links[usize::from(link)];
    let end_name = |link: u16, end: u8| of_link(link).ends[usize::from(end).min(1)].name(lab);
    let on_link = |link: u16, what: String| FaultText { what, link: Some(of_link(link).name.clone()), node: None };
    let on_line = |link: u16, direction: Direction| match direction {
        Direction::Forward => format!("{} towards {}", of_link(link).name, end_name(link, 1)),
        Direction::Backward => format!("{} towards {}", of_link(link).name, end_name(link, 0)),
        Direction::Both => of_link(link).name.clone(),
    };
    match fault {
        InfinibandFault::LinkDown { link } => on_link(link, format!("link {} down", of_link(link).name)),
        InfinibandFault::LinkUp { link } => on_link(link, format!("link {} up", of_link(link).name)),
        InfinibandFault::PortDown { link, end } => on_link(link, format!("port {} down", end_name(link, end))),
        InfinibandFault::SwitchReset { switch } => {
            let name = lab.infiniband.switches[usize::from(switch)].name.clone();
            FaultText { what: format!("switch {name} reset"), link: None, node: Some(name) }
        }
        InfinibandFault::PacketLoss { link, direction, probability } => {
            on_link(link, format!("packet loss of {} % on {}", probability * 100.0, on_line(link, direction)))
        }
        InfinibandFault::CrcErrors { link, direction, probability } => on_link(
            link,
            format!("CRC errors in {} % of the packets on {}", probability * 100.0, on_line(link, direction)),
        ),
        InfinibandFault::LostCreditUpdates { link, end, probability } => on_link(
            link,
            format!(
                "{} % of the flow-control packets that {} sends are lost",
                probability * 100.0,
                end_name(link, end)
            ),
        ),
        InfinibandFault::WithheldCredits { link, end } => {
            on_link(link, format!("{} frees no buffer", end_name(link, end)))
        }
    }
}
