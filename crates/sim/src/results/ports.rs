//! Results of ports and switches.

use super::view::View;
use crate::net::{BufferCount, Crossbar, End, LossSite, WaitCount};
use crate::world::{Note, NoteKind, SwitchNode, discarded_at_ports};
use sanloom_api::results::measure::{mean_level, mean_us, ratio, s_of_ps, us_of_ps};
use sanloom_api::results::{Latency, PortKind, PortResult, SwitchResult};
use sanloom_fc::config::{LinkEnd, Node};
use sanloom_fc::fabric_switch::IslState;
use sanloom_fc::san::fcoe_paths;
use sanloom_fc::switch::LoginRejects;
use std::collections::BTreeMap;

pub(super) fn ports(view: &View<'_>) -> Vec<PortResult> {
    let mut ports: Vec<(Node, u16, PortResult)> = Vec::new();
    let has_fcoe = fcoe_paths(&view.world.lab).iter().any(|path| path.config.fcip.is_none());
    let discarded = has_fcoe.then(|| discarded_at_ports(view.world));
    for (link, number) in view.world.lab.links.iter().zip(0u32..) {
        for (end, side) in link.ends.iter().zip(0u32..).filter(|(end, _)| !matches!(end.node, Node::Loop(_))) {
            // Lane 2n + side leaves from the end `side` of link n.
            let (tx, rx) = (2 * number + side, 2 * number + 1 - side);
            let mut port = one(view, end, link.ends[1 - side as usize].node, tx, rx);
            port.link.clone_from(&link.name);
            if let End::NPort(plane) = view.world.net.fc.lanes()[rx as usize].to
                && let Some(discarded) = &discarded
            {
                port.sequence_discards = Some(discarded.get(&plane).copied().unwrap_or(0));
            }
            ports.push((end.node, end.port, port));
        }
    }
    ports.sort_by_key(|(node, port, _)| (*node, *port));
    ports.into_iter().map(|(.., port)| port).collect()
}

fn one(view: &View<'_>, end: &LinkEnd, other: Node, tx: u32, rx: u32) -> PortResult {
    let net = &view.world.net;
    let (frames_received, bytes_received) = view.world.measured().received(rx);
    let (buffers, waiting) = match end.node {
        Node::Switch(switch) => {
            let crossbar = &net.fc.switch(switch).crossbar;
            let count = crossbar.input_count(end.port);
            let area_ps = crossbar.held_area_ps(end.port, view.now_ps);
            (BufferCount { area_ps, max: count.max_frames }, waiting(&count.wait))
        }
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => {
            let End::NPort(nport) = net.fc.lanes()[rx as usize].to else { return PortResult::default() };
            (net.fc.nport(nport).buffers(view.now_ps), Latency::default())
        }
    };
    let sent = &view.lanes[tx as usize];
    PortResult {
        name: view.names.port(end),
        node: view.names.node(end.node).to_owned(),
        kind: match (end.node, other) {
            (Node::Switch(_), Node::Switch(_)) => PortKind::EPort,
            (Node::Switch(_), Node::Loop(_)) => PortKind::FlPort,
            (Node::Switch(_), _) => PortKind::FPort,
            (_, Node::Loop(_)) => PortKind::NlPort,
            _ => PortKind::NPort,
        },
        link: String::new(),
        frames_sent: sent.frames,
        frames_received,
        bytes_sent: sent.bytes,
        bytes_received,
        buffers: u64::from(end.bb_credit),
        buffers_used_mean: mean_level(u128::from(buffers.area_ps), view.measured_ps).min(f64::from(end.bb_credit)),
        buffers_used_max: u64::from(buffers.max),
        waiting,
        zero_credit_s: s_of_ps(sent.zero_credit_ps.min(view.measured_ps)),
        zero_credit_fraction: ratio(sent.zero_credit_ps.min(view.measured_ps), view.measured_ps),
        discards: view.lost_at(&[LossSite::Receiver(rx)]),
        sequence_discards: None,
    }
}

fn waiting(count: &WaitCount) -> Latency {
    let quantile = |q| us_of_ps(count.quantile_ps(q));
    Latency {
        count: count.frames(),
        mean_us: mean_us(u128::from(count.sum_ps), count.frames()),
        p50_us: quantile(0.5),
        p95_us: quantile(0.95),
        p99_us: quantile(0.99),
        p99_9_us: quantile(0.999),
        max_us: us_of_ps(count.max_ps),
    }
}

pub(super) fn switches(view: &View<'_>) -> Vec<SwitchResult> {
    let switches = view.world.lab.switches.iter().zip(0u16..);
    switches
        .map(|(config, number)| {
            let plane = view.world.net.fc.switch(number);
            let mut sites = vec![LossSite::Processor(number)];
            sites.extend((0..config.ports).filter_map(|port| plane.rx_lane(port)).map(LossSite::Receiver));
            let inputs = inputs(view, &plane.crossbar, config.ports);
            let node = &view.world.control.switches[usize::from(number)];
            let counted = node.counted();
            SwitchResult {
                name: config.name.clone(),
                domain: node.machine.domain().unwrap_or(0),
                frames_forwarded: inputs.wait.frames(),
                bytes_forwarded: inputs.bytes,
                buffers_used_mean: mean_level(inputs.area_ps, view.measured_ps),
                waiting: waiting(&inputs.wait),
                logins: counted.logins,
                logins_rejected: rejected(&counted.rejects),
                name_server_requests: counted.name_server_requests,
                rscns_sent: counted.rscns_sent,
                zone_changes: zone_changes(view, number, false),
                zone_changes_refused: zone_changes(view, number, true),
                incident_reports_sent: counted.incident_reports_sent,
                isolated_ports: isolated_ports(node),
                discards: view.lost_at(&sites),
            }
        })
        .collect()
}

/// Returns the number of zone changes committed at a switch that failed (`refused`) or succeeded.
fn zone_changes(view: &View<'_>, number: u16, refused: bool) -> u64 {
    let ended = |note: &&Note| matches!(&note.kind, NoteKind::ZonesChanged { switch, failure, .. } if *switch == number && failure.is_some() == refused);
    view.world.notes.list().iter().filter(ended).count() as u64
}

/// Returns the reject counts that are not 0, by reason.
fn rejected(rejects: &LoginRejects) -> BTreeMap<String, u64> {
    let LoginRejects { port_limit, switch_limit, no_address, name, other } = *rejects;
    let counts = [
        ("port_limit", port_limit),
        ("switch_limit", switch_limit),
        ("no_address", no_address),
        ("name", name),
        ("other", other),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.to_owned(), count)).collect()
}

/// Returns the number of isolated ports. Each port of an isolated bundle counts.
fn isolated_ports(node: &SwitchNode) -> u64 {
    let isls = node.machine.isls().filter(|isl| matches!(isl.state, IslState::Isolated(_)));
    isls.map(|isl| isl.members.len() as u64).sum()
}

#[derive(Default)]
struct Inputs {
    wait: WaitCount,
    bytes: u64,
    area_ps: u128,
}

/// Returns the sums over all ports of a switch. Frames from the switch's processor did not cross
/// the switch and are excluded.
fn inputs(view: &View<'_>, crossbar: &Crossbar, ports: u16) -> Inputs {
    let mut sum = Inputs::default();
    for port in 0..ports {
        let count = crossbar.input_count(port);
        sum.wait.merge(&count.wait);
        sum.bytes += count.bytes;
        sum.area_ps += u128::from(crossbar.held_area_ps(port, view.now_ps));
    }
    sum
}
