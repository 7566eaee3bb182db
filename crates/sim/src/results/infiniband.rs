//! Results of InfiniBand links and SRP channels.

use super::view::View;
use crate::net::infiniband::{FLOW_BYTES, PacketLoss};
use crate::world::infiniband::Counts;
use sanloom_api::results::measure::{per_s, ratio, s_of_ps};
use sanloom_api::results::{InfinibandDirection, InfinibandLinkResult, SrpChannelResult, SubnetResult};
use sanloom_fc::config::{InfinibandEnd, InfinibandLink, InfinibandNode};
use sanloom_fc::san::Lab;
use sanloom_transport::infiniband::packet::DELIMITERS;

pub(super) fn links(view: &View<'_>) -> Vec<InfinibandLinkResult> {
    let counts = view.world.measured().infiniband();
    let one = |(number, link): (u32, &InfinibandLink)| InfinibandLinkResult {
        name: link.name.clone(),
        rate: link.rate.name().to_owned(),
        rate_bytes_per_s: link.rate.bytes_per_s() as f64,
        forward: direction(view, &counts, link, 2 * number),
        backward: direction(view, &counts, link, 2 * number + 1),
    };
    (0..).zip(&view.world.lab.infiniband.links).map(one).collect()
}

/// Returns the name of a port or interface: `ib1:4`, `server1:ib0`.
pub(super) fn port(lab: &Lab, end: InfinibandEnd) -> String {
    let name = lab.infiniband_node_name(end.node);
    match end.node {
        InfinibandNode::Switch(_) => format!("{name}:{}", end.port),
        InfinibandNode::Host(_) | InfinibandNode::Storage(_) => format!("{name}:ib{}", end.port),
    }
}

fn direction(view: &View<'_>, counts: &Counts, link: &InfinibandLink, number: u32) -> InfinibandDirection {
    let lab = &view.world.lab;
    let side = (number % 2) as usize;
    let (line, own) = (&view.world.net.infiniband.lines()[number as usize], &counts.lines[number as usize]);
    let on_line = own.count.bytes + own.count.packets * u64::from(DELIMITERS) + own.count.flow * FLOW_BYTES;
    let waits_ps = own.waits_ps.min(view.measured_ps);
    let lost = || counts.lost(number);
    let is_of_lifetime = |why: PacketLoss| matches!(why, PacketLoss::Lifetime | PacketLoss::Stalled);
    InfinibandDirection {
        from: port(lab, link.ends[side]),
        to: port(lab, link.ends[1 - side]),
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
        let [from, to] = plan.interfaces.map(|interface| port(lab, interfaces[usize::from(interface)].end));
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
        refusal: refusal.map(|refusal| refusal.to_string()),
        sweeps: view.world.measured().infiniband().sweeps,
        deadlocks: deadlocks(view),
    })
}

/// Returns 1 if lanes that wait for each other were found since the end of the warm-up, or 0.
pub(super) fn deadlocks(view: &View<'_>) -> u64 {
    view.world.net.infiniband.deadlocks().iter().any(|deadlock| deadlock.at_ps >= view.from_ps).into()
}
